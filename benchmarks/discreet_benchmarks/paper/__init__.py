"""The paper, measured: the experiments that it does not have, as one page with pictures.

`report` runs all sections and writes the page. A section is a file, or a function of one: `error`
(every method against the truth), `constant` (the noise in parts), `useful` (from how many rows on),
`distances`, `trees` (ranges, and better trees), `laws` (how errors grow; three noises; one tree's
levels) and `costs` (time and memory, and the algorithms as plain loops, as a yardstick). They
measure the task and the methods of `attention`, and the data and methods of `distance_methods`;
`forecast` computes what need not be measured. `page` is for all of them: a sentence that states a
result goes through `page.claim`, which refuses what the numbers do not support.

`discreet paper report` calls `report.write`; what it wrote is in docs/paper-results.md. Run:
`discreet paper report --quick -o report` (needs matplotlib and scikit-learn; without --quick it
takes some minutes).
"""
