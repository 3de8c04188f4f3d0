"""The demonstration: private memories of handwritten digits, measured, drawn and put on a page.

`digits` (the data, a memory for each ε, and what DP-SGD reached in `dpsgd.json`) → `findings` (all
that is measured) → `gallery` (pictures; needs matplotlib) → `page` (one HTML file, from
`page.html`). Nothing is printed or written here: `discreet demo`, in `cli`, does that. The digits
come with scikit-learn and are public; what is computed from them without noise would be NOT PRIVATE
of other data.
"""

from discreet.demo.findings import Findings, find
from discreet.demo.page import as_html

__all__ = ["Findings", "as_html", "find"]
