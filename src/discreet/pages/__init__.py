"""Pages of HTML: one file each, that loads nothing from elsewhere.

`promise` (what a guarantee means for one person, in numbers) and `asking` (how good a memory's
answers are, by its own word) → `explained` (a card, line by line) → `release` (a released file as a
page), all of them on a `sheet` (style, tables, pictures). The demo's page is made of the same
parts. Nothing is written here: `discreet card --html`, in `cli`, does that.
"""

from discreet.pages.release import as_html

__all__ = ["as_html"]
