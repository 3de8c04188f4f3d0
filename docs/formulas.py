"""Formulas of the pages become MathML when pages are built: no script and no network shows them.

docutils, which Sphinx brings along, reads the LaTeX. What it cannot read is a warning with file and
line, so `make docs` fails; so is what it would read otherwise than TeX does.
"""

import re
from typing import TYPE_CHECKING

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata
    from sphinx.writers.html5 import HTML5Translator

_LOGGER = logging.getLogger(__name__)
_PAIRS = (("{", "}"), (r"\left", r"\right"), (r"\begin", r"\end"))
# TeX takes one digit, docutils takes all of them: \frac12 would be twelve over what follows.
_BARE = re.compile(r"\\[a-z]?(?:frac|binom|sqrt)(?!\s*[{\[])\s*\S*|[_^]\s*\d\d+")
# Browsers stretch brackets to the height of the line, put bars apart on both sides as if they were
# operators, and slashes like minus signs. TeX does none of this; \left( and \bigl are for more.
_PLAIN = (
    (r'<mo class="mathopen">([|‖])</mo>', r'<mo form="prefix" stretchy="false">\1</mo>'),
    (r"<mo>([|‖])</mo>", r'<mo form="postfix" stretchy="false">\1</mo>'),
    (r"<mo>([⟨⟩⌊⌋⌈⌉])</mo>", r'<mo stretchy="false">\1</mo>'),
    (
        r"<mo>(?:\u2061|&ApplyFunction;)</mo>(?!\s*(?:<mrow>\s*)?<mo[^>]*>[(\['])",
        '<mspace width="0.167em"/>',  # ln N is not lnN
    ),
    (r"<mo>(max|min)</mo>", r"<mi>\1</mi>"),
    (r"<mo>'</mo>", '<mo form="postfix" lspace="0" rspace="0">′</mo>'),
    (r"<mo>∶</mo>\s*<mo>=</mo>", "<mo>≔</mo>"),
    (r"<mo>=</mo>\s*<mo>∶</mo>", "<mo>≕</mo>"),
    (r'<mo stretchy="false">/</mo>', r'<mo lspace="0" rspace="0" stretchy="false">/</mo>'),
)


def mathml(latex: str, *, display: bool) -> str:
    """Return the formula as MathML, on a line of its own or within one.

    Raises:
        MathError: if it cannot be read, or not for certain.
    """
    if not latex.strip():
        raise MathError("It is empty.")
    for start, end in _PAIRS:
        if _count(start, latex) != _count(end, latex):
            raise MathError(f"{start} and {end} do not pair up.")
    if bare := _BARE.search(latex):
        raise MathError(f"{bare[0]} needs braces.")
    made = str(tex2mathml(latex, as_block=display))
    for found, told in _PLAIN:
        made = re.sub(found, told, made)
    return made


def _count(word: str, latex: str) -> int:
    # Not within a longer command: \leftarrow is no \left.
    return len(re.findall(re.escape(word) + "(?![a-z])" * word.startswith("\\"), latex))


def _visit(translator: "HTML5Translator", node: nodes.math | nodes.math_block) -> None:
    display = isinstance(node, nodes.math_block)
    tag, latex = "div" if display else "span", node.astext()
    try:
        shown = mathml(latex, display=display)
    except MathError as error:
        _LOGGER.warning("A formula cannot be shown: %s (%s)", latex.strip(), error, location=node)
        shown = translator.encode(latex)
    translator.body.append(f'<{tag} class="math notranslate nohighlight">{shown}</{tag}>')
    raise nodes.SkipNode


def setup(app: "Sphinx") -> "ExtensionMetadata":
    """Register the renderer: `html_math_renderer = "mathml"`."""
    app.add_html_math_renderer("mathml", (_visit, None), (_visit, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
