"""What docs/models/applications.md measures can be made again, and the page says what it shows."""

import pathlib
import re
import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="needs the extra `torch`")

ROOT = pathlib.Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "models" / "applications.md").read_text(encoding="utf-8")


def errors(text, name):
    """Return the errors of one row of a table."""
    [row] = re.findall(rf"^\| {re.escape(name)} \|(.*)\|$", text, re.MULTILINE)
    return [float(cell.split()[0]) for cell in row.split("|")]


@pytest.mark.slow
def test_a_quick_run_measures_what_the_page_says():
    command = [sys.executable, str(ROOT / "benchmarks" / "models.py"), "--quick"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    few = errors(text, "100")
    assert few[0] > few[1] > few[2]  # more ε, less error
    memory, trees = errors(text, "memory"), errors(text, "trees, tight accounting")
    assert all(ours < theirs for ours, theirs in zip(memory, trees, strict=True))


def test_the_page_says_what_its_tables_show():
    prompt, longer = errors(PAGE, "1,700"), errors(PAGE, "17,000")
    assert prompt[0] > 1 > prompt[1]  # a prompt of 1,700 tokens: not at ε = 1, with one head at 4
    assert all(later < first for first, later in zip(prompt, longer, strict=True))
    whole = re.search(r"The whole prompt as one record, ε = 4: (\d+\.\d+)", PAGE)
    assert float(whole[1]) > 1
    memory, constant = errors(PAGE, "memory"), errors(PAGE, "one answer for all")
    assert all(ours < theirs for ours, theirs in zip(memory, constant, strict=True))
    tight, paper = (errors(PAGE, f"trees, {name} accounting") for name in ("tight", "the paper's"))
    assert [ours < theirs for ours, theirs in zip(tight, constant, strict=True)].index(True) == 5
    assert min(paper) > max(constant)


def test_the_page_of_the_trained_model_claims_what_its_table_shows():
    page = (ROOT / "docs" / "models" / "training.md").read_text(encoding="utf-8")
    many = page[page.index("| 10,000 |") :]

    def row(name):
        [found] = re.findall(rf"^\| 10,000 \| {re.escape(name)} \|(.*)\|$", many, re.MULTILINE)
        return [float(each.split()[0]) for each in found.split("|") if each.strip()]

    [without], [exact] = row("model, no memory"), row("model, exact")
    kept = [(each - without) / (exact - without) for each in row("**model, private memory**")]
    assert abs(without - 0.2) < 0.02
    assert exact > 0.75
    assert kept[1] > 0.98  # ε = 1: "99% of the gain"
    assert kept[2] > 0.99
    assert row("private regression, the model's keys")[2] > row("**model, private memory**")[2]
