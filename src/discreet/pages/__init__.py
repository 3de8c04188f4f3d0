"""Pages of HTML: one file each, that loads nothing from elsewhere.

`release` is a released file as a page, with what its guarantee means for one person and how good
its answers are; it stands on a `sheet` (style, tables, pictures, a card line by line), as the
demo's page does. Nothing is written here: `discreet card --html`, in `cli`, does that.
"""

from discreet.pages.release import as_html

__all__ = ["as_html"]
