"""How Sphinx builds these pages. `make docs`: warnings are errors, and no network is needed."""

import re
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy.typing

from discreet import __version__

if TYPE_CHECKING:
    from sphinx.application import Sphinx

Number = TypeVar("Number")


class ArrayLike:
    """Stands in for numpy's, which would be spelt out over three lines wherever it occurs."""


class NDArray(Generic[Number]):
    """Likewise."""


# Before a module is imported that uses them.
numpy.typing.ArrayLike, numpy.typing.NDArray = ArrayLike, NDArray
ArrayLike.__module__ = NDArray.__module__ = "numpy.typing"

project = "discreet"
author = "The discreet developers"
project_copyright = author
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"discreet {release}"
html_show_sourcelink = False
smartquotes = False  # --groups is an option, not a dash

# A name in single backticks is a link where it names something documented, and code elsewhere.
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
python_maximum_signature_line_length = 88
napoleon_use_ivar = True
toc_object_entries_show_parents = "hide"


def _plain_text(
    _app: "Sphinx", what: str, _name: str, _obj: object, _options: object, lines: list[str]
) -> None:
    """Escape what is markup for Sphinx and plain text in our docstrings: |z| and (*heads, n, d)."""
    text = re.sub(r"(`[^`]*`)|([|*])", lambda found: found[1] or f"\\{found[2]}", "\n".join(lines))
    # Napoleon takes what stands before a colon in the first line of a property for its type. An
    # empty comment takes that place.
    lines[:] = [*(["..", ""] if what == "property" else []), *text.split("\n")]


def setup(app: "Sphinx") -> None:
    """Read docstrings before napoleon does, which makes markup of them."""
    app.connect("autodoc-process-docstring", _plain_text, priority=400)
