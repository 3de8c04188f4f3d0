import dataclasses
import json
import struct

import numpy as np
import pytest
from data import unit_rows

from discreet import CorruptRelease, InvalidInput
from discreet.readers.attention.mechanism import ATTENTION
from discreet.readers.attention.options import Options
from discreet.sums.door import release
from discreet.sums.partial import Envelope, Partial, new_key
from discreet.sums.settings import Shape, Unit
from discreet.sums.source import Table
from discreet.testing import Silent

KEYS, VALUES = unit_rows(40, 3), unit_rows(40, 2, seed=1)
SHAPES = [Shape(heads=(), key_dim=3, value_dim=2)]
OPTIONS = Options(epsilon=1.0, delta=1e-6, scale=1.0)
SETTINGS, BY_RECORD = (
    ATTENTION.resolve(SHAPES, OPTIONS, unit=unit) for unit in (Unit.ROW, Unit.RECORD)
)


def partial(rows=slice(None), *, settings=SETTINGS, groups=None, shard=None):
    return Partial.of([Table(KEYS[rows], VALUES[rows])], settings, groups=groups, shard=shard)


@pytest.mark.parametrize(
    "ids", [None, list(range(40)), [f"é{i}" for i in range(40)], [b"\xff"] * 40, ["\ud800"] * 40]
)
def test_what_was_sealed_comes_back(ids):
    key = new_key()
    settings = SETTINGS if ids is None else BY_RECORD
    exact = partial(settings=settings, groups=ids, shard="part 1")
    again = Partial.unseal(exact.seal(key), key, settings)
    assert np.array_equal(again.sums[0], exact.sums[0])
    assert (again.rows, again.ids, again.shards) == (40, exact.ids, frozenset(["part 1"]))
    [mine], [theirs] = (release(each, entropy=Silent()) for each in (exact, again))
    assert np.array_equal(mine.state, theirs.state)


def as_sealed_by_the_first_version(exact, ids, key):
    """The layout of "discreet-partial-1": ids as they are, in JSON."""
    raw = [each.hex() if isinstance(each, bytes) else each for each in ids]
    stored = {"bytes": isinstance(ids[0], bytes), "ids": raw, "origin": ""}
    encoded = json.dumps(stored).encode().ljust(4096)
    header = {"settings": exact.settings.digest, "shards": sorted(exact.shards)}
    contents = [struct.pack("<qq", exact.rows, 4096) + encoded, *exact.sums]
    return Envelope(b"discreet-partial-1\n", "").seal(header, contents, key)


@pytest.mark.parametrize(
    "ids", [list(range(40)), [f"é{i}" for i in range(40)], [b"\xff%d" % i for i in range(40)]]
)
def test_what_an_earlier_version_has_sealed_is_opened_and_meets_what_is_sealed_now(ids):
    key = new_key()
    exact = partial(settings=BY_RECORD, groups=ids, shard="old")
    old = as_sealed_by_the_first_version(exact, ids, key)
    again = Partial.unseal(old, key, BY_RECORD)
    assert np.array_equal(again.sums[0], exact.sums[0])
    assert (again.rows, again.ids, again.shards) == (40, exact.ids, frozenset(["old"]))
    shared = partial(slice(0, 1), settings=BY_RECORD, groups=ids[39:], shard="new")
    with pytest.raises(InvalidInput, match="every record"):
        again.merge(Partial.unseal(shared.seal(key), key, BY_RECORD))


def test_sealed_shards_merge_to_the_bits_of_one_build_and_only_once():
    key = new_key()
    parts = [
        partial(slice(start, start + 10), shard=f"shard {start}").seal(key)
        for start in range(0, 40, 10)
    ]
    merged = Partial.empty(SETTINGS)
    for part in reversed(parts):
        merged = merged.merge(Partial.unseal(part, key, SETTINGS))
    assert np.array_equal(merged.sums[0], partial().sums[0])
    assert len(merged.shards) == 4
    with pytest.raises(InvalidInput, match="twice"):
        merged.merge(Partial.unseal(parts[2], key, SETTINGS))


def test_a_retried_shard_has_other_bytes_and_is_still_counted_once():
    key = new_key()
    first, second = (partial(shard="a").seal(key) for _ in range(2))
    assert first != second
    one = Partial.unseal(first, key, SETTINGS)
    with pytest.raises(InvalidInput, match="twice"):
        one.merge(Partial.unseal(second, key, SETTINGS))


def test_every_byte_is_authenticated():
    key = new_key()
    sealed = partial(shard="a").seal(key)
    places = [*range(150), *range(150, len(sealed), 997), len(sealed) - 1]
    for place in places:
        altered = bytearray(sealed)
        altered[place] ^= 1
        with pytest.raises((CorruptRelease, InvalidInput)):
            Partial.unseal(bytes(altered), key, SETTINGS)


def test_a_renamed_shard_is_refused():
    key = new_key()
    sealed = partial(shard="shard-1").seal(key)
    with pytest.raises(CorruptRelease):
        Partial.unseal(sealed.replace(b"shard-1", b"shard-2"), key, SETTINGS)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"discreet-partial-1\n",
        b"discreet-partial-2\n",
        b"x" * 500,
        None,
        7,
        b"discreet-partial-1\n" + struct.pack("<I", 21) + b'["settings","shards"]' + b"x" * 99,
        b"discreet-partial-1\n" + struct.pack("<I", 90_000) + b"[" * 90_000,
    ],
)
def test_what_is_no_sealed_partial_is_refused(data):
    with pytest.raises(CorruptRelease):
        Partial.unseal(data, new_key(), SETTINGS)


def test_cut_short_is_refused():
    key = new_key()
    sealed = partial().seal(key)
    for length in (20, 100, 200, len(sealed) - 1):
        with pytest.raises(CorruptRelease):
            Partial.unseal(sealed[:length], key, SETTINGS)


def test_another_key_or_other_settings_are_refused():
    key = new_key()
    sealed = partial().seal(key)
    with pytest.raises(CorruptRelease, match="key"):
        Partial.unseal(sealed, new_key(), SETTINGS)
    for other in (
        BY_RECORD,
        dataclasses.replace(SETTINGS, rows_hint=10),
        ATTENTION.resolve(SHAPES, dataclasses.replace(OPTIONS, epsilon=2.0)),
        ATTENTION.resolve(SHAPES, dataclasses.replace(OPTIONS, scale=1.01)),
    ):
        with pytest.raises(InvalidInput, match="settings"):
            Partial.unseal(sealed, key, other)


@pytest.mark.parametrize("key", [b"", b"short", b"x" * 31, "x" * 32, None])
def test_bad_keys_are_refused_and_not_shown(key):
    with pytest.raises(InvalidInput, match="key") as caught:
        partial().seal(key)
    assert "xxx" not in str(caught.value)


def test_nothing_private_can_be_read_without_the_key():
    """Neither ids nor sums, nor how many rows or (but for its order of magnitude) records."""
    key = new_key()
    ids = [f"patient {i:04}" for i in range(40)]
    sealed = partial(settings=BY_RECORD, groups=ids, shard="a").seal(key)
    assert b"patient" not in sealed
    fewer = partial(slice(0, 39), settings=BY_RECORD, groups=ids[:39], shard="a").seal(key)
    assert len(fewer) == len(sealed)
    exact = partial()
    assert exact.sums[0].tobytes()[:64] not in exact.seal(key)
    assert len(partial(slice(0, 3)).seal(key)) == len(exact.seal(key))


def test_the_same_sums_never_look_the_same():
    key = new_key()
    exact = partial(shard="a")
    header = len(exact.seal(key)) - exact.sums[0].nbytes
    first, second = (exact.seal(key)[header:] for _ in range(2))
    same = np.frombuffer(first, np.uint8) == np.frombuffer(second, np.uint8)
    assert same.mean() < 0.02  # one byte in 256, by chance


@pytest.mark.parametrize("shard", ["", " ", "a\nb", 7])
def test_shards_have_names(shard):
    with pytest.raises(InvalidInput, match="shard"):
        partial(shard=shard)
