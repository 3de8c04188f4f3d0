"""What docs/models/applications.md measures can be made again, and the page says what it shows."""

import pathlib
import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.docs

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
