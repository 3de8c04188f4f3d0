"""The page about the paper: sections run, the kept page is whole, other pages quote it rightly."""

import pathlib
import re
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

from discreet import paper
from discreet.errors import InvalidInput
from discreet.testing import Silent
from discreet_benchmarks.paper import constant, costs, distance_methods, report
from discreet_benchmarks.paper.page import FULL, QUICK, Size

pytestmark = pytest.mark.docs

ROOT = pathlib.Path(__file__).parents[2]
DOCS = ROOT / "docs"
KEPT = DOCS / report.PAGE
TINY = Size(
    quick=True,
    builds=2,
    draws=10**4,
    base_rows=256,
    most_nodes=10**5,
    largest_power=13,
    crossing_powers=(8,),
)
# The words by which a paragraph of another page says that its figures are on the page.
MARK = "<!-- figures: docs/paper-results.md -->"


@pytest.mark.parametrize("rows", [1, 7, 64, 100])
def test_plain_loops_give_the_same_numbers(rows):
    rng = np.random.default_rng(rows)
    points, weights, queries = rng.random((rows, 3)), rng.uniform(-2, 2, rows), rng.random((9, 3))
    structure = paper.DPTreeSoftmax(
        points,
        weights,
        upper=1.0,
        weight_bound=2.0,
        epsilon=1.0,
        delta=1e-6,
        delta_prime=1e-6,
        c=0.1,
        eps_s=0.1,
        entropy=Silent(),
    )
    plain = costs.Softmax(
        points.tolist(),
        weights.tolist(),
        kernel=structure.kernel,
        upper=1.0,
        bound=2.0,
        units=(
            structure.state.sums.trees.noise.unit,
            structure.state.sums.noise.totals.unit,
        ),
    )
    expected = [plain.query(query) for query in queries.tolist()]
    np.testing.assert_allclose(structure.query(queries), expected, rtol=1e-9, atol=1e-6)


def headings(page):
    return [line for line in page.splitlines() if line.startswith("#")]


def pictures(page):
    return re.findall(r"!\[[^]]+]\((paper-[a-z]+\.png)\)", page)


def check_section(lines, folder):
    """A heading, what to take away, and every picture that is there is shown."""
    assert lines[0].startswith("## ")
    assert lines[2].startswith("**")
    assert "nan" not in " ".join(lines)
    shown = pictures("\n".join(lines))
    assert sorted(shown) == sorted(path.name for path in folder.iterdir())
    widths = [line.count("|") for line in lines]
    in_tables = [line.startswith("|") for line in lines]
    for (first, width), (second, next_width) in pairwise(zip(in_tables, widths, strict=True)):
        assert not (first and second) or width == next_width


# Sections that take long however small they are.
LONG = {"useful n", "error against the truth"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in report.SECTIONS],
)
def test_every_section_is_made(name, tmp_path):
    check_section(report.SECTIONS[name](tmp_path, TINY), tmp_path)


def test_the_factor_is_the_product_of_its_parts():
    found = constant.parts_of(64, 1)
    assert np.prod(found.factors) == pytest.approx(found.whole)
    assert len(found.factors) == len(constant.STEPS)
    assert min(found.factors) > 1


def test_without_scikit_learn_the_report_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(InvalidInput, match=r"pip install 'discreet\[sklearn\]'"):
        report.write(tmp_path / "report", quick=True)
    assert not (tmp_path / "report").exists()


def test_data_lie_within_their_public_bounds():
    sets = distance_methods.data_sets(every=100)
    assert len({each.name for each in sets}) == len(sets) == 5
    for each in sets:
        assert each.points.min() >= 0
        assert each.points.max() <= 1
        assert np.abs(each.weights).max() <= 1
        assert len(each.points) == len(each.weights)


def test_the_page_that_is_kept_has_every_section_and_picture():
    page = KEPT.read_text(encoding="utf-8")
    assert len(headings(page)) == 1 + len(report.SECTIONS)
    assert sorted(pictures(page)) == sorted(path.name for path in DOCS.glob("paper-*.png"))
    for name in pictures(page):
        assert (DOCS / name).stat().st_size < 150_000


def test_the_kept_page_is_of_the_whole_report():
    page = KEPT.read_text(encoding="utf-8")
    assert f"n = {FULL.base_rows}" in page
    assert "1456×" in page  # n = 4096, d = 2
    assert f"*Base setting.* n = {QUICK.base_rows}," not in page


def test_the_kept_section_on_levels_is_what_is_computed(tmp_path):
    """It measures nothing, so it is the same to the letter."""
    lines = report.SECTIONS["levels"](tmp_path, TINY)
    assert "\n".join(lines).strip() in KEPT.read_text(encoding="utf-8")


def quoted(text):
    """Return the figures of a text that are not small whole numbers."""
    plain = re.sub(r"<!--.*?-->|\]\([^)]*\)|`[^`]*`", " ", text)
    found = re.findall(r"2\^\d+|\d[\d,]*\.?\d*(?:e-?\d+)?×?", plain)
    return [each for each in found if not re.fullmatch(r"\d{1,2}", each)]


def marked():
    pages = [*DOCS.rglob("*.md"), ROOT / "README.md"]
    for path in pages:
        for paragraph in path.read_text(encoding="utf-8").split("\n\n"):
            if MARK in paragraph:
                yield path.name, paragraph


def test_figures_that_other_pages_quote_are_on_the_page():
    page = KEPT.read_text(encoding="utf-8")
    known = {each.rstrip(".").replace(",", "") for each in quoted(page)}
    for name, paragraph in marked():
        for figure in quoted(paragraph):
            plain = figure.rstrip(".,").replace(",", "")
            assert plain in known, f"{name} says {figure}, which the report does not"


@pytest.mark.slow
def test_the_results_page_can_be_made_again(tmp_path):
    subprocess.run(
        [sys.executable, "-m", "discreet", "paper", "report", "--quick", "-o", str(tmp_path)],
        check=True,
        capture_output=True,
    )
    made = (tmp_path / report.PAGE).read_text(encoding="utf-8")
    assert headings(made) == headings(KEPT.read_text(encoding="utf-8"))
    assert pictures(made) == pictures(KEPT.read_text(encoding="utf-8"))
