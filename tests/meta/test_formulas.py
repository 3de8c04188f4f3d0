"""Formulas are read twice: by our pages, and by GitHub, which reads them as Markdown first."""

import pathlib
import re

import pytest
from markdown_it import MarkdownIt

pytestmark = pytest.mark.docs

ROOT = pathlib.Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
CODE = re.compile(r"^( *)```.*?^\1```$|`[^`\n]+`", re.DOTALL | re.MULTILINE)
FORMULA = re.compile(r"\$\$(.+?)\$\$|\$([^$\n]+)\$", re.DOTALL)
# What may stand before and after a formula within a line, or GitHub takes the dollars for money.
AROUND = re.compile(r"(?:^|[\s(\[\"*])\$\S(?:[^$\n]*[^\s$])?\$(?:$|[\s),.;:\]\"*])", re.MULTILINE)


def formulas(page):
    """Return all formulas of a page, in order, as they are written."""
    return [one or other for one, other in FORMULA.findall(CODE.sub("", page))]


def plain(page):
    """Return the text of a page for someone who knows Markdown and no formulas."""
    tokens = MarkdownIt("commonmark").enable("table").parse(page)
    inline = [each for token in tokens for each in token.children or ()]
    return "".join(
        "\n" if each.type == "softbreak" else each.content
        for each in inline
        if each.type in ("text", "softbreak", "text_special")
    )


def squeezed(text):
    return "".join(text.split())


def lost(page):
    """Return the formulas that Markdown changes, because it finds markup in them."""
    text = squeezed(plain(page))
    return [each for each in formulas(page) if squeezed(each) not in text]


def loose(page):
    """Return the formulas within a line whose dollars GitHub does not take for a formula's."""
    prose = re.sub(r"\$\$.+?\$\$", "", CODE.sub("", page), flags=re.DOTALL)
    for _ in range(2):  # a blank may stand after one formula and before the next
        prose = AROUND.sub(lambda found: found[0].replace("$", ""), prose)
    return re.findall(r".{0,20}\$.{0,20}", prose)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_markdown_leaves_formulas_alone(path):
    page = path.read_text(encoding="utf-8")
    assert lost(page) == []
    assert loose(page) == []


def test_the_proofs_have_formulas():
    assert len(formulas((DOCS / "privacy.md").read_text(encoding="utf-8"))) > 100


@pytest.mark.parametrize(
    "page",
    [
        r"$a_1 \, b$",  # an escaped comma
        r"$(x)_+$ and $c_{i}$",  # emphasis from one formula to the next
        r"$F^*$ and $G^*$",
        "| a |\n|---|\n| $|x|$ |",
        "$$\na\n- b\n$$",  # a list
        "$$\na\n=\nb\n$$",  # a heading
    ],
)
def test_markup_in_a_formula_is_noticed(page):
    assert lost(page) != []


@pytest.mark.parametrize("page", ["the $n$th", "$k$-fold", "$ a$", "it costs $5", "$a$$b$"])
def test_dollars_that_are_no_formula_are_noticed(page):
    assert loose(page) + lost(page) != []


@pytest.mark.parametrize("page", ['($a$), $b$: "$c$"\n$d$.', "$$\na < b\n$$", "`$x` and `$y`"])
def test_good_ones_pass(page):
    assert loose(page) + lost(page) == []
