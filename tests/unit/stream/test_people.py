"""Participation: who has had their share is left out, by their own steps and nobody else's."""

import hashlib

import numpy as np
import pytest
from streams import KEY, again, increments_of, rows_of, small

from discreet import InvalidInput
from discreet._arrays import marks_of
from discreet.noise.correlated import Participation
from discreet.shards import Job
from discreet.stream.people import Cap, People
from discreet.testing import Silent

ROW = (np.array([[1.0, 0.0]]), np.array([[1.0]]))


def steps_taken(stream, comes):
    """In which steps of those that she comes in her rows are taken."""
    for number, there in enumerate(comes):
        keys, values = (part[: int(there)] for part in ROW)
        stream.append(keys, values, groups=["her"] * int(there), step=f"{number}")
    return [bool(np.any(each)) for each in increments_of(stream)]


@pytest.mark.parametrize(
    ("options", "comes", "taken"),
    [
        ({}, "1111", "1000"),
        ({"participations": 2}, "1111", "1100"),
        ({"participations": 2, "separation": 2}, "11111", "10100"),
        ({"participations": 3, "separation": 2}, "011011011", "010010010"),
        ({"lifetime_rows": 3}, "11111", "11100"),
    ],
)
def test_rows_beyond_the_cap_are_left_out(tmp_path, options, comes, taken):
    stream = small(tmp_path, by_record=True, key_dim=2, value_dim=1, **options)
    found = steps_taken(stream, [each == "1" for each in comes])
    assert found == [each == "1" for each in taken]


def test_it_is_remembered_after_a_break(tmp_path):
    stream = small(tmp_path, participations=2, by_record=True, key_dim=2, value_dim=1)
    steps_taken(stream, [True, False])
    later = again(stream._path, entropy=Silent())
    later.append(*ROW, groups=["her"], step="2")
    third = again(stream._path, entropy=Silent())
    third.append(*ROW, groups=["her"], step="3")
    assert [bool(np.any(each)) for each in increments_of(third)] == [True, False, True, False]


def test_hashes_of_ids_cannot_be_found_without_the_key():
    """Whoever gets at hashes and has a list of people finds nobody in it."""
    marks = marks_of(["her", "him"])
    found = [{hashlib.blake2b(mark, digest_size=16).digest() for mark in marks}]
    for key in (bytes(32), KEY):
        visit = People(key, Cap(Participation(), 1)).visit(1)
        visit.admit_marks(marks)
        found.append(set(visit.came))
    assert len(set.union(*found)) == sum(map(len, found)) == 6


def test_others_add_the_same_with_her_and_without_her(tmp_path):
    rng = np.random.default_rng(1)
    people = np.array(["a", "her", "b", "her", "c"])
    keys, values = rows_of(people, rng)
    without = people != "her"
    streams = [small(tmp_path, participations=1) for _ in range(2)]
    for stream in streams:
        stream.append(*ROW, groups=["her"], step="0")
    streams[0].append(keys, values, groups=people, step="1")
    streams[1].append(keys[without], values[without], groups=people[without], step="1")
    states = [stream.memory().released.state for stream in streams]
    assert np.array_equal(*states)


def test_the_first_rows_of_a_lifetime_are_taken(tmp_path):
    keys, values = rows_of(range(5), np.random.default_rng(2))
    capped, whole = small(tmp_path, lifetime_rows=2), small(tmp_path, lifetime_rows=2)
    capped.append(keys, values, groups=["x", "y", "x", "x", "y"], step="0")
    first = [0, 1, 2, 4]
    whole.append(keys[first], values[first], groups=["x", "y", "x", "y"], step="0")
    assert np.array_equal(capped.memory().released.state, whole.memory().released.state)


def test_ids_of_two_types_are_refused(tmp_path):
    stream = small(tmp_path, participations=2)
    stream.append(*ROW, groups=[7], step="0")
    with pytest.raises(InvalidInput, match="of one type"):
        stream.append(*ROW, groups=["7"], step="1")
    later = again(stream._path, entropy=Silent())
    with pytest.raises(InvalidInput, match="of one type"):
        later.append(*ROW, groups=["7"], step="1")
    assert later.step == 1


def test_shards_of_somebody_who_has_had_her_share_are_refused(tmp_path):
    stream = small(tmp_path, by_record=True, key_dim=2, value_dim=1)
    stream.append(*ROW, groups=["her"], step="0")
    sealed = Job.of_step(stream, "1").partial(ROW, shard="x", groups=["her"])
    with pytest.raises(InvalidInput, match="had its share"):
        stream.append_parts([sealed], expected=["x"], step="1")
    other = Job.of_step(stream, "1").partial(ROW, shard="x", groups=["other"])
    stream.append_parts([other], expected=["x"], step="1")
    stream.append(*ROW, groups=["other"], step="2")
    assert [bool(np.any(each)) for each in increments_of(stream)] == [True, True, False]


def test_the_folder_has_no_ids_and_no_rows(tmp_path):
    stream = small(tmp_path, participations=3)
    stream.append(*ROW, groups=["Ada Lovelace"], step="0")
    everything = b"".join(path.read_bytes() for path in stream._path.rglob("*") if path.is_file())
    assert b"Lovelace" not in everything
    assert KEY not in everything


def test_what_is_sealed_tells_the_number_of_records_to_a_power_of_two(tmp_path):
    sizes = []
    for count in (1, 150, 190):
        stream = small(tmp_path)
        people = np.arange(count)
        stream.append(*rows_of(people, np.random.default_rng(3)), groups=people, step="0")
        sizes.append((stream._path / "people" / "00000001").stat().st_size)
    assert sizes[0] == sizes[1] == sizes[2]


@pytest.mark.parametrize(
    ("options", "groups", "said"),
    [
        ({}, None, "any one row in one step"),
        ({"participations": 5, "separation": 7}, None, "nobody checks that without ids"),
        ({"participations": 5, "separation": 7}, ["a"], "at most 5 steps, at least 7 steps apart"),
        ({"lifetime_rows": 4}, ["a"], "in any number of steps"),
    ],
)
def test_the_card_says_what_is_enforced(tmp_path, options, groups, said):
    made = small(tmp_path, **options).append(*ROW, groups=groups, step="0")
    assert said in dict(made.card.sentences)["participation"]
