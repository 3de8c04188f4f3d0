import copy
import dataclasses
import itertools
import multiprocessing
import pathlib
import pickle
import struct
import tempfile

import numpy as np
import pytest
from data import unit_rows
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet import BudgetExceeded, CorruptRelease, InvalidInput, LedgerError
from discreet.ledger import Ledger
from discreet.shards import Job
from discreet.sums.partial import fingerprint
from discreet.testing import Silent

KEYS, VALUES = unit_rows(60, 3), unit_rows(60, 2, seed=1)
PEOPLE = np.arange(60) % 23
OPTIONS = {"epsilon": 1.0, "delta": 1e-6, "scale": 1.0}
NAMES = [f"part {number}" for number in range(6)]


def job(**changes):
    return Job(**{"key_dim": 3, "value_dim": 2, **OPTIONS, **changes})


def shards(of, names=NAMES):
    step = 60 // len(names)
    return [
        of.partial((KEYS[at : at + step], VALUES[at : at + step]), shard=name)
        for at, name in zip(range(0, 60, step), names, strict=True)
    ]


def state(memory):
    return memory.released.state


BUILT = state(discreet.build(KEYS, VALUES, entropy=Silent(), **OPTIONS))
BY_PERSON = state(discreet.build(KEYS, VALUES, groups=PEOPLE, entropy=Silent(), **OPTIONS))
FOLDER = tempfile.TemporaryDirectory()
LEDGER = Ledger(pathlib.Path(FOLDER.name, "budget.db"))
LEDGER.create("clinic", epsilon=1.5, delta=1e-5)
JOB = job(ledger=LEDGER, dataset="clinic")
PARTS = shards(JOB)


@settings(max_examples=20, deadline=None)
@given(order=st.permutations(range(6)), cuts=st.sets(st.integers(1, 5)))
def test_any_order_and_any_tree_of_merges_gives_the_bits_of_one_build(order, cuts):
    one = job()
    parts = shards(one)
    mixed = [parts[place] for place in order]
    ends = [0, *sorted(cuts), 6]
    merged = [one.merge(mixed[start:end]) for start, end in itertools.pairwise(ends)]
    memory = one.release(merged, expected=NAMES, entropy=Silent())
    assert np.array_equal(state(memory), BUILT)


def test_chunks_are_rows_too():
    one = job()
    chunks = [(KEYS[:7], VALUES[:7]), (KEYS[7:], VALUES[7:])]
    memory = one.release(
        iter([one.partial(iter(chunks), shard="all", threads=1)]),
        expected=iter(["all"]),
        entropy=Silent(),
    )
    assert np.array_equal(state(memory), BUILT)


def test_heads_and_no_rows_at_all():
    one = Job(key_dim=3, value_dim=2, heads=(2,), **OPTIONS)
    keys, values = np.stack([KEYS, -KEYS]), np.stack([VALUES, VALUES])
    part = one.partial((keys, values), shard="a")
    empty = one.partial((keys[:, :0], values[:, :0]), shard="b")
    memory = one.release([part, empty], expected=["a", "b"], entropy=Silent())
    built = discreet.build(keys, values, entropy=Silent(), **OPTIONS)
    assert np.array_equal(state(memory), state(built))


def test_noise_comes_from_the_operating_system():
    one, other = job(), job()
    first, second = (each.release(shards(each), expected=NAMES) for each in (one, other))
    assert first.private
    assert not np.array_equal(state(first), BUILT)
    assert not np.array_equal(state(first), state(second))
    assert first.receipt.id != second.receipt.id


def test_a_record_that_lies_in_two_shards_is_an_error():
    one = job(by_record=True)
    parts = [
        one.partial((KEYS[rows], VALUES[rows]), shard=name, groups=PEOPLE[rows])
        for name, rows in (("a", slice(0, 30)), ("b", slice(30, 60)))
    ]
    with pytest.raises(InvalidInput, match="one chunk or partial"):
        one.release(parts, expected=["a", "b"])
    whole = [
        one.partial((KEYS[rows], VALUES[rows]), shard=name, groups=PEOPLE[rows])
        for name, rows in (("a", PEOPLE < 9), ("b", PEOPLE >= 9))
    ]
    memory = one.release(whole, expected=["a", "b"], entropy=Silent())
    assert np.array_equal(state(memory), BY_PERSON)
    assert memory.guarantee.unit == "record"


def test_it_releases_once():
    one = job()
    parts = shards(one)
    one.release(parts, expected=NAMES)
    with pytest.raises(BudgetExceeded, match="spent"):
        one.release(parts, expected=NAMES)


@pytest.mark.parametrize("duplicate", [copy.copy, lambda it: pickle.loads(pickle.dumps(it))])
def test_a_copy_adds_up_and_merges_but_does_not_release(duplicate):
    one = job()
    other = duplicate(one)
    parts = shards(other)
    with pytest.raises(BudgetExceeded, match="copy"):
        other.release(parts, expected=NAMES)
    memory = one.release([other.merge(parts)], expected=NAMES, entropy=Silent())
    assert np.array_equal(state(memory), BUILT)


def _release_in_a_fork(one, parts, answers):
    try:
        one.release(parts, expected=NAMES)
    except BudgetExceeded:
        answers.put("refused")


@pytest.mark.filterwarnings("ignore:.*fork.*")
def test_a_fork_does_not_release():
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=_release_in_a_fork, args=(JOB, PARTS, answers))
    child.start()
    assert answers.get(timeout=60) == "refused"
    child.join()


def test_it_shows_neither_its_key_nor_rows():
    secret, _ = JOB.__getstate__()
    key = secret.key
    shown = repr(JOB) + str(JOB) + repr(secret)
    assert key.hex() not in shown
    assert repr(key) not in shown
    assert KEYS[0].tobytes() not in PARTS[0]
    assert key not in PARTS[0]


# --- a hundred ways to be wrong -----------------------------------------------------------------


def flipped(place):
    data = bytearray(PARTS[2])
    data[int(place * (len(data) - 1))] ^= 1 << int(place * 7)
    return [*PARTS[:2], bytes(data), *PARTS[3:]]


def with_exchanged_ends():
    """The header of one shard on the sums of another."""
    (length,) = struct.unpack_from("<I", PARTS[0], 19)
    head = 19 + 4 + length
    return [PARTS[0][:head] + PARTS[1][head:], *PARTS[1:]]


FOREIGN = {
    "another key": shards(job())[3],
    "another epsilon": shards(job(epsilon=2.0))[3],
    "another scale": shards(job(scale=1.5))[3],
    "another bound": shards(job(key_norm=2.0))[3],
    "another unit": job(by_record=True).partial(
        (KEYS[30:40], VALUES[30:40]), shard="part 3", groups=np.arange(10)
    ),
    "another width": Job(key_dim=2, value_dim=2, **OPTIONS).partial(
        (KEYS[30:40, :2], VALUES[30:40]), shard="part 3"
    ),
    "another name": JOB.partial((KEYS[30:40], VALUES[30:40]), shard="part 9"),
    "no partial": b"something else",
    "nothing": b"",
    "text": "part 3",
    "a number": 3,
    "none": None,
}

WRONG = {
    **{f"bit {place:.3f}": flipped(place) for place in np.linspace(0, 1, 40)},
    **{
        f"cut to {share:.2f}": [*PARTS[:5], PARTS[5][: int(share * len(PARTS[5]))]]
        for share in np.linspace(0, 0.999, 12)
    },
    **{f"longer by {count}": [*PARTS[:5], PARTS[5] + bytes(count)] for count in (1, 16, 100)},
    **{f"repeated {place}": [*PARTS, PARTS[place]] for place in range(6)},
    **{f"missing {place}": PARTS[:place] + PARTS[place + 1 :] for place in range(6)},
    **{f"twice {place}": [*PARTS[:-1], PARTS[place]] for place in range(5)},
    **{
        f"merged and alone {count}": [JOB.merge(PARTS[:count]), *PARTS[count - 1 :]]
        for count in range(1, 6)
    },
    **{f"foreign: {name}": [*PARTS[:3], data, *PARTS[4:]] for name, data in FOREIGN.items()},
    **{f"besides: {name}": [*PARTS, data] for name, data in FOREIGN.items()},
    "none at all": [],
    "renamed": [PARTS[0].replace(b"part 0", b"part 7"), *PARTS[1:]],
    "renamed to another": [PARTS[0].replace(b"part 0", b"part 1"), *PARTS[2:]],
    "exchanged ends": with_exchanged_ends(),
    "bytes, not a list": PARTS[0],
}


def test_there_are_a_hundred_of_them():
    assert len(WRONG) >= 100


@pytest.mark.parametrize("parts", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_refused_and_nothing_is_spent(parts):
    with pytest.raises((InvalidInput, CorruptRelease)):
        JOB.release(parts, expected=NAMES)
    assert LEDGER.statement("clinic").spends == ()


def test_after_all_that_it_still_releases():
    one = job()
    parts = shards(one)
    with pytest.raises(InvalidInput, match=r"missing: 'part 5'"):
        one.release(parts[:5], expected=NAMES)
    with pytest.raises(InvalidInput, match=r"not expected: 'part 0'"):
        one.release(parts, expected=NAMES[1:])
    assert np.array_equal(state(one.release(parts, expected=NAMES, entropy=Silent())), BUILT)


def test_what_is_released_is_counted(tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    ledger.create("clinic", epsilon=1.1, delta=1e-5)
    one, late = (job(ledger=ledger, dataset="clinic", analyst="eve") for _ in range(2))
    first = one.release(shards(one), expected=NAMES)
    [spend] = ledger.statement("clinic").spends
    assert (spend.id, spend.analyst, spend.state) == (first.receipt.id, "eve", "spent")
    parts = shards(late)
    with pytest.raises(BudgetExceeded, match="clinic"):
        late.release(parts, expected=NAMES)
    with pytest.raises(BudgetExceeded, match="clinic"):  # no row is read in vain
        job(ledger=ledger, dataset="clinic")
    (tmp_path / "budget.db").unlink()
    with pytest.raises(LedgerError):
        late.release(parts, expected=NAMES)
    ledger.create("clinic", epsilon=1.1, delta=1e-5)
    assert late.release(parts, expected=NAMES).private  # nothing had been drawn, so it can go on


@pytest.mark.parametrize("expected", ["part 0", None, 3, [], ["a", "a"], [""], [3], [b"a"]])
def test_names_that_are_none(expected):
    with pytest.raises(InvalidInput):
        JOB.release(PARTS, expected=expected)


@pytest.mark.parametrize(
    ("rows", "groups"),
    [
        (KEYS, None),
        ((KEYS,), None),
        ([(KEYS, VALUES)], PEOPLE),
        ([KEYS], None),
        ([(KEYS, VALUES, PEOPLE)], None),
        ((KEYS, VALUES), PEOPLE),
        ((KEYS[:, :2], VALUES), None),
        ((KEYS, VALUES[1:]), None),
        ((np.where(KEYS > 0.9, np.nan, KEYS), VALUES), None),
        (iter([]), None),  # a stream that was read before
        (7, None),
    ],
)
def test_rows_that_are_none(rows, groups):
    with pytest.raises(InvalidInput):
        JOB.partial(rows, shard="a", groups=groups)


def test_a_release_within_a_release():
    """Parts may come from anywhere, also from code that uses the job."""
    one = job()

    def parts():
        yield from shards(one)
        one.release(shards(one), expected=NAMES)

    with pytest.raises(BudgetExceeded, match="spent"):
        one.release(parts(), expected=NAMES)


@pytest.mark.parametrize("threads", [0, -1, 1.5, "2"])
def test_threads_that_are_none(threads):
    with pytest.raises(InvalidInput, match="threads"):
        JOB.partial((KEYS, VALUES), shard="a", threads=threads)


def test_settings_that_are_none():
    with pytest.raises(InvalidInput, match="epsilon"):
        job(epsilon=0)
    with pytest.raises(InvalidInput, match="key_dim"):
        job(key_dim=0)
    with pytest.raises(InvalidInput, match="rows_hint"):
        job(scale=None)
    with pytest.raises(InvalidInput, match="by_record"):
        JOB.scatter((KEYS, VALUES), shard="a", parts=2, groups=PEOPLE)
    with pytest.raises(discreet.PrivacyLeakWarning):
        job(epsilon=30.0)


def test_settings_travel_to_the_bit():
    for kernel in ("fourier", "minimax", "taylor"):
        one = job(kernel=kernel, eps_s=0.3, features=64)
        again = pickle.loads(pickle.dumps(one))
        assert again.settings.digest == one.settings.digest
        assert dataclasses.asdict(again.settings.privacy) == dataclasses.asdict(
            one.settings.privacy
        )


def test_a_machine_that_computes_otherwise_is_refused(monkeypatch):
    one = job()
    assert len(fingerprint()) == 64
    monkeypatch.setattr("discreet.shards.job.fingerprint", lambda: "0" * 64)
    with pytest.raises(InvalidInput, match="one kind"):
        one.partial((KEYS, VALUES), shard="a")


@pytest.mark.parametrize("name", ["exp", "cos", "sin", "power"])
def test_a_last_bit_is_seen(monkeypatch, name):
    """The fingerprint is of what numpy computes, to the last bit of one argument in thousands."""
    exact, function = fingerprint(), getattr(np, name)

    def off_by_one(values, *others):
        result = function(values, *others)
        result[30_000] = np.nextafter(result[30_000], 2)
        return result

    monkeypatch.setattr(np, name, off_by_one)
    assert fingerprint.__wrapped__() != exact
    monkeypatch.undo()
    assert fingerprint.__wrapped__() == exact
