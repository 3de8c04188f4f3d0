"""What docs/scale.md measures can be made again, and the page says what its tables show."""

import pathlib
import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.docs

ROOT = pathlib.Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")


def cells(text, name):
    """Return the cells of one row of a table."""
    [row] = re.findall(rf"^\| {re.escape(name)} \|(.*)\|$", text, re.MULTILINE)
    return [cell.strip() for cell in row.split("|")]


def number(cell):
    return float(cell.split()[0].replace(",", ""))


@pytest.mark.slow
def test_a_quick_run_gives_the_same_bits_in_every_way():
    pytest.importorskip("distributed", reason="needs the extra `dask`")
    command = [sys.executable, str(ROOT / "benchmarks" / "scale.py"), "--quick"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "gave the same bits, by row and by record" in text  # it stops otherwise
    for how in ("two workers", "two workers, one killed", "two workers of Dask, one killed"):
        _, _, memory, _, _, by_record = cells(text, how)
        assert max(number(memory), number(by_record)) < 1000
