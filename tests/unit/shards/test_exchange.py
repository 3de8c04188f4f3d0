import numpy as np
import pytest
from data import unit_rows
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet import CorruptRelease, InvalidInput
from discreet._arrays import digests_of
from discreet.shards import Job, exchange
from discreet.sums.source import tables_of
from discreet.testing import Silent

ROWS = 48
KEYS, VALUES = unit_rows(ROWS, 3), unit_rows(ROWS, 2, seed=1)
OPTIONS = {"epsilon": 1.0, "delta": 1e-6, "scale": 1.0, "group_rows": 2.0}
NAMES = ["a", "b", "c"]

IDS = {
    "numbers": np.array,
    "small numbers": lambda ids: np.array(ids, dtype=np.uint8),
    "Python's numbers": lambda ids: [10**30 + each for each in ids],
    "texts": lambda ids: [f"é{each}" for each in ids],
    "fixed texts": lambda ids: np.array([f"p{each}" for each in ids]),
    "half a character": lambda ids: [f"\ud800{each}" for each in ids],
    "bytes": lambda ids: [b"\xff%d" % each for each in ids],
}


def job():
    return Job(key_dim=3, value_dim=2, by_record=True, **OPTIONS)


def scattered(one, owner, groups, parts):
    """Return the pieces of each shard; `owner` says which shard a row is in."""
    made = []
    for number, name in enumerate(NAMES):
        index = np.flatnonzero(owner == number)
        some = groups[index] if isinstance(groups, np.ndarray) else [groups[i] for i in index]
        rows = (KEYS[index], VALUES[index])
        made.append(one.scatter(rows, shard=name, parts=parts, groups=some))
    return made


def gathered(one, pieces, parts):
    return [
        one.gather([each[part] for each in pieces], part=part, parts=parts, expected=NAMES)
        for part in range(parts)
    ]


def names(parts):
    return [exchange.part_name(part, parts) for part in range(parts)]


@settings(max_examples=30, deadline=None)
@given(
    ids=st.lists(st.integers(0, 9), min_size=ROWS, max_size=ROWS),
    owner=st.lists(st.integers(0, 2), min_size=ROWS, max_size=ROWS),
    parts=st.integers(1, 5),
    kind=st.sampled_from(sorted(IDS)),
)
def test_records_come_together_wherever_their_rows_lie(ids, owner, parts, kind):
    groups = IDS[kind](ids)
    one = job()
    pieces = scattered(one, np.array(owner), groups, parts)
    memory = one.release(gathered(one, pieces, parts), expected=names(parts), entropy=Silent())
    built = discreet.build(KEYS, VALUES, groups=groups, entropy=Silent(), **OPTIONS)
    assert np.array_equal(memory.released.state, built.released.state)


ONE = job()
PEOPLE = np.arange(ROWS) % 11
PIECES = scattered(ONE, np.arange(ROWS) % 3, PEOPLE, 2)
OTHER = scattered(job(), np.arange(ROWS) % 3, PEOPLE, 2)


@pytest.mark.parametrize(
    ("pieces", "error"),
    [
        ([PIECES[0][0], PIECES[1][0]], InvalidInput),
        ([PIECES[0][0], PIECES[1][0], PIECES[1][0]], InvalidInput),
        ([PIECES[0][0], PIECES[1][0], PIECES[2][0], PIECES[2][0]], InvalidInput),
        ([PIECES[0][0], PIECES[1][0], PIECES[2][1]], InvalidInput),
        ([PIECES[0][0], PIECES[1][0], OTHER[2][0]], CorruptRelease),
        ([PIECES[0][0], PIECES[1][0], PIECES[2][0][:-1]], CorruptRelease),
        ([PIECES[0][0], PIECES[1][0], b"discreet"], CorruptRelease),
        ([], InvalidInput),
    ],
    ids=["missing", "twice", "repeated", "part", "job", "cut", "else", "none"],
)
def test_pieces_that_do_not_belong_there_are_refused(pieces, error):
    with pytest.raises(error):
        ONE.gather(pieces, part=0, parts=2, expected=NAMES)


def test_a_piece_is_no_partial():
    with pytest.raises(CorruptRelease):
        ONE.release([PIECES[0][0]], expected=["a"])


def test_a_part_that_was_forgotten_is_missed():
    parts = gathered(ONE, PIECES, 2)
    with pytest.raises(InvalidInput, match="missing: 'records 2 of 2'"):
        ONE.release(parts[:1], expected=names(2))
    with pytest.raises(InvalidInput, match="all parts of one shuffle"):
        ONE.release(parts[:1], expected=names(2)[:1])


def test_parts_stand_alone():
    """They carry no ids, so nothing else may be beside them: it might share a record."""
    parts = gathered(ONE, PIECES, 2)
    other = ONE.partial((KEYS, VALUES), shard="other", groups=PEOPLE)
    with pytest.raises(InvalidInput, match="all parts of one shuffle"):
        ONE.release([*parts, other], expected=[*names(2), "other"])
    three = gathered(ONE, scattered(ONE, np.arange(ROWS) % 3, PEOPLE, 3), 3)
    with pytest.raises(InvalidInput, match="all parts of one shuffle"):
        ONE.release([parts[0], *three], expected=[names(2)[0], *names(3)])
    with pytest.raises(InvalidInput, match="same rows"):
        ONE.merge([parts[0], other])
    with pytest.raises(InvalidInput, match="another name"):
        ONE.partial((KEYS, VALUES), shard="records 1 of 1", groups=PEOPLE)


def test_ids_of_two_types_are_refused_wherever_they_meet():
    texts = [str(each) for each in PEOPLE]
    mixed = [
        ONE.scatter((KEYS, VALUES), shard=name, parts=5, groups=groups)
        for name, groups in (("a", PEOPLE), ("b", texts))
    ]
    for part in range(5):
        with pytest.raises(InvalidInput, match="one type"):
            ONE.gather([each[part] for each in mixed], part=part, parts=5, expected=["a", "b"])
    chunks = [(KEYS, VALUES, PEOPLE), (KEYS, VALUES, texts)]
    with pytest.raises(InvalidInput, match="one type"):
        ONE.scatter(chunks, shard="a", parts=2)


def test_nothing_of_a_row_can_be_read():
    secret = np.array([[0.125, 0.25, 0.5]])
    [piece] = ONE.scatter((secret, VALUES[:1]), shard="a", parts=1, groups=["somebody"])
    assert secret[0, 0].tobytes() not in piece
    assert b"somebody" not in piece


def test_hashes_of_ids_need_the_key_of_the_job():
    """Who gets hold of opened pieces and has a list of people finds nobody in it."""
    people = np.array(["her", "him"])
    found = [set(digests_of(people).tolist())]
    for key in (bytes(32), bytes(range(32))):
        chunks = [(tables_of([(KEYS[:2], VALUES[:2])]), people)]
        pieces = exchange.scatter(chunks, shard="a", parts=1, digest="", key=key)
        (_, _, groups), _ = exchange.gather(
            pieces, part=0, parts=1, expected={"a"}, digest="", key=key
        )
        found.append(set(groups.tolist()))
    assert len(set.union(*found)) == sum(map(len, found)) == 6


def test_the_length_of_a_piece_says_little():
    wide = unit_rows(ROWS, 500)
    one = Job(key_dim=500, value_dim=2, by_record=True, **OPTIONS, kernel="fourier", features=64)
    lengths = [
        len(one.scatter((wide[:n], VALUES[:n]), shard="a", parts=1, groups=PEOPLE[:n])[0])
        for n in range(ROWS)
    ]
    assert len(set(lengths)) == 1  # with few rows, all are alike
    sizes = range(10_000, 20_000)
    padded = [exchange._padded(size) for size in sizes]
    assert len(set(padded)) < 12
    assert all(0 <= big / size - 1 < 1 / 8 for size, big in zip(sizes, padded, strict=True))


LONG = 600
WAYS = {
    "array of texts": np.array,
    "wide array of texts": lambda ids: np.array(ids, dtype="U999"),
    "array of bytes": lambda ids: np.array([each.encode() for each in ids]),
    "list of texts": list,
    "list of bytes": lambda ids: [each.encode() for each in ids],
    "texts with accents": lambda ids: [each + "é" for each in ids],
    "Python's objects": lambda ids: np.array(ids, dtype=object),
    "numbers": lambda ids: [int.from_bytes(each.encode(), "big") for each in ids],
    "numpy's numbers": lambda ids: np.array([int(each[1:]) % 2**31 for each in ids]),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("rows", [40, 3000])
def test_an_id_changes_no_length(rows, way):
    """Whoever watches a shuffle must not see that somebody with a long name is in it."""
    ids = [f"p{each % 1000}" for each in range(rows)]
    table = (unit_rows(rows, 3), unit_rows(rows, 2, seed=1))
    short = ONE.scatter(table, shard="a", parts=1, groups=WAYS["numbers"](ids))
    ids[7] = "p" + "7" * LONG
    one_long = ONE.scatter(table, shard="a", parts=1, groups=WAYS[way](ids))
    assert list(map(len, one_long)) == list(map(len, short))
    divided = ONE.scatter(table, shard="a", parts=3, groups=WAYS[way](ids))
    assert max(map(len, divided)) <= 1.2 * len(short[0])


def test_a_row_changes_no_length():
    """A list of bools is one of bytes for numpy, until there is one other number."""
    keys = [[True, False, False]] * 300
    lengths = [
        len(
            ONE.scatter((rows, VALUES[:1].repeat(300, 0)), shard="a", parts=1, groups=range(300))[0]
        )
        for rows in (keys, [*keys[:-1], [1, 0, 0]], [*keys[:-1], [0.5, 0, 0]])
    ]
    assert len(set(lengths)) == 1


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("records", [3, 1000])
def test_an_id_changes_no_length_of_sums(records, way):
    ids = [f"p{each}" for each in range(records)]
    table = (unit_rows(records, 3), unit_rows(records, 2, seed=1))
    short = ONE.partial(table, shard="a", groups=WAYS["numbers"](ids))
    ids[1] = "p" + "7" * LONG
    assert len(ONE.partial(table, shard="a", groups=WAYS[way](ids))) == len(short)


def test_the_same_id_is_one_record_however_it_is_stored():
    """And sums that share it do not merge; of other ids, they do."""
    whole = (KEYS[:1], VALUES[:1])
    same = [[7], np.array([7], np.int8), np.array([7], np.uint64), np.array([7], object)]
    texts = [["7"], np.array(["7"]), np.array(["7"], "U9"), np.array(["7"], object)]
    for ways in (same, texts, [[b"7"], np.array([b"7"])]):
        sums = [ONE.partial(whole, shard=str(i), groups=each) for i, each in enumerate(ways)]
        for other in sums[1:]:
            with pytest.raises(InvalidInput, match="every record"):
                ONE.merge([sums[0], other])
    one, eight, text = (ONE.partial(whole, shard=repr(each), groups=[each]) for each in (7, 8, "7"))
    assert ONE.merge([one, eight])
    with pytest.raises(InvalidInput, match="one type"):
        ONE.merge([one, text])


def test_parts_of_shards_that_were_divided_anew_do_not_meet():
    """Ids that are not stable would leave a row in two parts, or in none."""
    rows = (KEYS, VALUES)
    first = ONE.scatter(rows, shard="a", parts=2, groups=PEOPLE)
    again = ONE.scatter(rows, shard="a", parts=2, groups=PEOPLE)
    other = ONE.scatter(rows, shard="a", parts=2, groups=PEOPLE + 1)
    zero, one, changed = (
        ONE.gather([piece], part=part, parts=2, expected=["a"])
        for piece, part in ((first[0], 0), (again[1], 1), (other[1], 1))
    )
    with pytest.raises(InvalidInput, match="same rows"):
        ONE.merge([zero, changed])
    assert ONE.merge([zero, one])
    less = ONE.gather([PIECES[0][1]], part=1, parts=2, expected=["a"])
    with pytest.raises(InvalidInput, match="same rows"):  # another shard was forgotten
        ONE.merge([gathered(ONE, PIECES, 2)[0], less])


def test_the_precision_of_one_row_changes_no_length():
    keys, values = KEYS.astype(np.float32), VALUES.astype(np.float16)
    lengths = set()
    for last in (np.float16, np.float32, np.float64, np.int64):
        chunks = [(keys, values, PEOPLE), (keys[:1].astype(last), values[:1], PEOPLE[:1])]
        pieces = ONE.scatter(iter(chunks), shard="a", parts=4)
        lengths.add(tuple(map(len, pieces)))
    assert len(lengths) == 1


def test_rows_travel_in_double_precision_and_are_the_same():
    keys, values = KEYS.astype(np.float32), VALUES.astype(np.float16)
    pieces = [ONE.scatter((keys, values), shard=name, parts=1, groups=PEOPLE)[0] for name in NAMES]
    secret, public = ONE.__getstate__()
    back, _ = exchange.gather(
        pieces, part=0, parts=1, expected=NAMES, digest=public.digest, key=secret.key
    )
    assert (back[0].dtype, back[1].dtype) == (np.float64, np.float64)
    assert np.array_equal(back[0][:ROWS], keys)
    assert np.array_equal(back[1][:ROWS], values)


@pytest.mark.parametrize(
    "given", [{"groups": None}, {"groups": PEOPLE[1:]}, {"parts": 0}, {"shard": ""}]
)
def test_what_cannot_be_scattered(given):
    with pytest.raises(InvalidInput):
        ONE.scatter((KEYS, VALUES), **{"shard": "a", "parts": 2, "groups": PEOPLE, **given})
