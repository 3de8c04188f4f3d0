"""Measured comparisons: what structures cost and how far off they are.

The paper has no experiments; this room has them. `paper_report` runs them all and writes one page
with pictures: `paper_laws` (errors, variances, when an answer becomes useful) and `paper_costs`
(time, memory, accounting), with `paper_setup` and `points` to measure with and `paper_loops`, the
algorithms as plain loops, as the yardstick.

`discreet paper report` and `benchmarks/paper.py` call `paper_report.write`; what it wrote is in
docs/paper-results.md. Run: `discreet paper report --quick -o report` (needs matplotlib; without
--quick it takes some minutes). `discreet paper` also takes its generated data from `points`.
Measurements that the package does not need are scripts in `benchmarks/`.
"""
