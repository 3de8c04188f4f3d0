"""The demonstration: private digits and texts, measured, drawn and put on a page.

`digits` (the data, a memory for each ε, and what it is compared with; what DP-SGD reached is in
`dpsgd.json`), `texts` (questions that people asked, as a corpus; questions.txt says whose they are)
and `attack` (a secret that somebody is after) → `findings` (all that is measured) →
`gallery` (pictures; needs matplotlib) → `page` (one HTML file). `released`: two of the releases,
for files. Nothing is printed or written here: `discreet demo`, in `cli`, does that. The digits come
with scikit-learn and are public; what is computed from them without noise would be NOT PRIVATE of
other data.
"""

from discreet_benchmarks.demo.findings import Findings, find
from discreet_benchmarks.demo.page import as_html

__all__ = ["Findings", "as_html", "find"]
