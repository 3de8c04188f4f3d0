"""How Sphinx builds these pages. `make docs`: warnings are errors, and no network is needed."""

import pathlib
import re
import sys
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

sys.path.append(str(pathlib.Path(__file__).parent))  # where formulas.py is

extensions = ["formulas", "myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath"]  # as on GitHub, where the same pages are read
myst_dmath_allow_space = False  # "$5 and $6" is money
html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"discreet {release}"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["pages.css"]
smartquotes = False  # --groups is an option, not a dash

# A name in single backticks is a link where it names something documented, and code elsewhere.
default_role = "py:obj"
# The pages are the same where these are not installed.
autodoc_mock_imports = ["langchain_core", "llama_index"]
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


def _breakable_names(
    _app: "Sphinx", _page: str, _template: str, context: dict[str, object], _doctree: object
) -> None:
    """Let long names in tables go on in the next line: after _ . and /, before a capital."""

    def broken(cell: re.Match[str]) -> str:
        name = re.compile(r'(?<=<span class="pre">)[^<]+')
        return name.sub(lambda found: re.sub(joints, "<wbr>", found[0]), cell[0])

    joints = r"(?<=\w[_./])(?=\w)|(?<=[a-z])(?=[A-Z])"
    if isinstance(body := context.get("body"), str):
        context["body"] = re.sub(r"<td.*?</td>", broken, body, flags=re.DOTALL)


def setup(app: "Sphinx") -> None:
    """Read docstrings before napoleon does, which makes markup of them, and pages last."""
    app.connect("autodoc-process-docstring", _plain_text, priority=400)
    app.connect("html-page-context", _breakable_names)
