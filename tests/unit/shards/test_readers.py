"""Readers that read rows once are added up anywhere: files by workers, partitions by Dask."""

import numpy as np
import pyarrow as pa
import pytest
from data import unit_rows
from pyarrow import parquet

import discreet
from discreet import InvalidInput
from discreet.shards import dask, processes
from discreet.tables import Rows
from discreet.testing import Seeded

SPEND = {"epsilon": 1.0, "delta": 1e-6, "rows_hint": 90}
COLUMNS = {"keys": ["a", "b", "c"], "values": "v"}
READERS = {
    "attention": (discreet.build, {"kernel": "fourier", "scale": 1.0, "features": 64}),
    "least_squares": (discreet.least_squares, {"features": "linear"}),
    "distances": (discreet.distances, {"p": 1, "bounds": (-1.0, 1.0), "features": 200}),
}


@pytest.fixture
def folder(tmp_path):
    keys, values = unit_rows(90, 3), np.linspace(-1, 1, 90)
    for at in range(3):
        rows = slice(30 * at, 30 * (at + 1))
        columns = dict(zip("abc", keys[rows].T, strict=True))
        table = pa.table({**columns, "v": values[rows], "person": np.arange(90)[rows] // 2})
        parquet.write_table(table, tmp_path / f"{at}.parquet")
    return tmp_path


def states(release):
    return [release.released.state, *release.released.others]


@pytest.mark.parametrize("by_record", [False, True])
@pytest.mark.parametrize("reader", READERS)
def test_workers_give_the_bits_of_one_process(folder, reader, by_record):
    front, own = READERS[reader]
    groups = {"groups": "person"} if by_record else {}
    options = {**SPEND, **own, **({"group_rows": 1.5} if by_record else {})}
    here = front(Rows(folder, **COLUMNS, **groups), **options, entropy=Seeded(1))
    there = processes.build(
        folder, **COLUMNS, **groups, reader=reader, workers=2, **options, entropy=Seeded(1)
    )
    assert type(there) is type(here)
    for mine, theirs in zip(states(here), states(there), strict=True):
        assert np.array_equal(mine, theirs)


@pytest.mark.parametrize("reader", READERS)
def test_front_doors_have_workers(folder, reader):
    front, own = READERS[reader]
    rows = Rows(folder, **COLUMNS)
    here = front(rows, **SPEND, **own, entropy=Seeded(1))
    there = front(rows, **SPEND, **own, workers=2, entropy=Seeded(1))
    for mine, theirs in zip(states(here), states(there), strict=True):
        assert np.array_equal(mine, theirs)
    with pytest.raises(InvalidInput, match="Rows"):
        front(unit_rows(9, 3), unit_rows(9, 1), **SPEND, **own, workers=2)
    with pytest.raises(InvalidInput, match="Rows"):
        front(unit_rows(9, 3), **SPEND, **own, workers=2)


def test_dask_takes_a_reader(folder):
    front, own = READERS["least_squares"]
    here = front(Rows(folder, **COLUMNS), **SPEND, **own, entropy=Seeded(1))
    there = dask.build(
        folder, **COLUMNS, reader="least_squares", workers=2, **SPEND, **own, entropy=Seeded(1)
    )
    for mine, theirs in zip(states(here), states(there), strict=True):
        assert np.array_equal(mine, theirs)


def test_what_reads_rows_again_is_refused(folder):
    with pytest.raises(InvalidInput, match="reads rows once"):
        processes.build(folder, **COLUMNS, reader="softmax", classes=[0, 1], **SPEND)
    with pytest.raises(InvalidInput, match="reader"):
        processes.build(folder, **COLUMNS, reader="trees", **SPEND)
