"""What docs/scale.md measures can be made again, and the page says what its tables show."""

import pathlib
import re
import subprocess
import sys

import pytest

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


def test_the_page_says_what_its_tables_show():
    assert "4,000,000 rows of 64 numbers in 64 Parquet files" in PAGE
    two = cells(PAGE, "two workers")
    assert number(two[1]) >= 1.6  # times faster than one process with one thread
    assert number(two[1]) >= number(cells(PAGE, "one process, two threads")[1])
    for how in ("two workers", "two workers, one killed", "two workers of Dask, one killed"):
        _, _, by_row, _, _, by_record = cells(PAGE, how)
        assert max(number(by_row), number(by_record)) < 1000
    for unit in ("rows", "records"):
        model, measured = map(number, cells(PAGE, f"{unit}, one process, one thread"))
        assert 0.6 < model / measured < 1.5
    ends = PAGE[PAGE.index("### Where numbers end") :]
    assert cells(ends, "1,000,000,000,000")[1:3] == ["2^-8", "1e-13"]
