"""Rows of tables, however they are cut into batches: every row once, every record whole."""

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.tables import Rows
from discreet.tables import rows as reading

IDS = st.one_of(
    st.lists(st.integers(-5, 5) | st.integers(-(2**63), 2**63 - 1), max_size=40),
    st.lists(st.sampled_from(["a", "b", "né", ""]) | st.text(max_size=3), max_size=40),
)


@settings(max_examples=60, deadline=None)
@given(
    ids=IDS,
    cuts=st.lists(st.integers(0, 40), max_size=6),
    numbers=st.integers(1, 60),
    size=st.integers(16, 2000),
    once=st.booleans(),
)
def test_chunks_are_the_rows_and_records_are_whole(ids, cuts, numbers, size, once):
    places = np.arange(len(ids), dtype=np.float64)
    kind = pa.string() if ids and isinstance(ids[0], str) else pa.int64()
    table = pa.table({"keys": places, "values": -places, "who": pa.array(ids, kind)})
    ends = sorted({0, *(min(cut, len(ids)) for cut in cuts), len(ids)})
    batches = [table.slice(a, b - a) for a, b in itertools.pairwise(ends)] or [table]

    def rows():
        return Rows(iter(batches) if once else batches, keys="keys", values="values", groups="who")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_NUMBERS", numbers)
        patch.setattr(reading, "_BYTES_AT_ONCE", size)
        in_order, gathered = list(rows().chunks()), list(rows())
    assert all(len(keys) <= max(1, numbers // 2) for keys, _, _ in in_order)
    assert np.concatenate([keys[:, 0] for keys, _, _ in in_order]).tolist() == places.tolist()
    assert [each for _, _, of_row in in_order for each in of_row.tolist()] == ids
    found = [
        (int(key), -value, each)
        for chunk in gathered
        for key, value, each in zip(chunk[0][:, 0], chunk[1][:, 0], chunk[2].tolist(), strict=True)
    ]
    assert sorted(place for place, _, _ in found) == list(range(len(ids)))
    assert all(place == value and ids[place] == each for place, value, each in found)
    met = [set(of_row.tolist()) for _, _, of_row in gathered]
    assert sum(map(len, met)) == len(set(ids))
