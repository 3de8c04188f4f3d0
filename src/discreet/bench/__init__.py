"""Measured comparisons: what structures cost and how far off they are.

The paper has no experiments; this room has them. `paper_report` runs them all and writes one page
with pictures. A section is a file: `paper_error` (every method against the truth), `paper_constant`
(the noise in parts), `paper_useful` (from how many rows on), `paper_distances`, `paper_ranges`,
`paper_laws` and `paper_costs` (time, memory). They measure `paper_task` with `paper_methods`, and
`paper_data` with `paper_distance_methods`; `paper_noise`, `paper_forecast` and `paper_bounds`
compute what need not be measured; `paper_loops` has the algorithms as plain loops, as a yardstick.
`paper_setup`, `paper_words` and `paper_pictures` are for all of them: a sentence that states a
result goes through `paper_words.claim`, which refuses what the numbers do not support.

`discreet paper report` and `benchmarks/paper.py` call `paper_report.write`; what it wrote is in
docs/paper-results.md. Run: `discreet paper report --quick -o report` (needs matplotlib and
scikit-learn; without --quick it takes some minutes). `discreet paper` also takes its generated data
from `points`. Measurements that the package does not need are scripts in `benchmarks/`.
"""
