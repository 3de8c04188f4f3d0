"""Pages of HTML: one file each, that loads nothing from elsewhere.

A released file as a page, for whoever has to decide about it. `discreet card --html` writes it.
"""

from discreet.pages.release import as_html

__all__ = ["as_html"]
