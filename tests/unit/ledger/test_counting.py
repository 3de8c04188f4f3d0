"""Whatever draws noise counts it first: every front door, in the same way."""

import inspect

import numpy as np
import pytest
from ledgers import DELTA, KEYS, VALUES, build, receipt

import discreet
from discreet import paper
from discreet.errors import BudgetExceeded, InvalidInput, LedgerError
from discreet.ledger import Ledger, State
from discreet.noise import RoundedGaussian
from discreet.paper.forest import Forest
from discreet.sums.door import release
from discreet.sums.partial import Partial
from discreet.sums.source import Table
from discreet.testing import Seeded

LABELS = np.arange(8) % 2
OPTIONS = {"epsilon": 1.0, "delta": DELTA}
MEMORY = OPTIONS | {"scale": 1.0, "kernel": "minimax", "eps_s": 0.5}


def builder(**options):
    made = discreet.Builder(**MEMORY | options)
    made.add(KEYS[:4], VALUES[:4])
    made.add(KEYS[4:], VALUES[4:])
    return made.release()[0]


def squares(**options):
    made = discreet.LeastSquaresBuilder(**OPTIONS, features="linear", **options)
    made.add(KEYS, VALUES)
    return made.release()


DOORS = {
    "build": lambda **o: discreet.build(KEYS, VALUES, **MEMORY | o),
    "build_many": lambda **o: discreet.build_many([(KEYS, VALUES)] * 2, **MEMORY | o)[0],
    "Builder": builder,
    "least_squares": lambda **o: discreet.least_squares(
        KEYS, VALUES, **OPTIONS | o, features="linear"
    ),
    "LeastSquaresBuilder": squares,
    "softmax_regression": lambda **o: discreet.softmax_regression(
        KEYS, LABELS, classes=[0, 1], **OPTIONS | o, features="linear"
    ),
}

PLACE = {"upper": 1.0, "weight_bound": 1.0, "epsilon": 1.0, "delta": 1e-7}
PRIME = PLACE | {"delta_prime": 1e-7, "c": 0.05}
POINTS, WEIGHTS = np.linspace(0, 1, 16).reshape(8, 2), np.linspace(-1, 1, 8)
STRUCTURES = {
    "DPTree": lambda **o: paper.DPTree(
        WEIGHTS, sensitivity=1.0, epsilon=1.0, delta=1e-7, upper=1.0, **o
    ),
    "DPTreeBoosted": lambda **o: paper.DPTreeBoosted(
        WEIGHTS, delta_fail=0.3, sensitivity=1.0, epsilon=1.0, delta=1e-7, upper=1.0, **o
    ),
    "DPTreeDistance": lambda **o: paper.DPTreeDistance(POINTS[:, 0], WEIGHTS, p=1, **PLACE, **o),
    "DPTreeHighDim": lambda **o: paper.DPTreeHighDim(POINTS, WEIGHTS, p=1, **PRIME, **o),
    "DPTreeHighDimAdaptive": lambda **o: paper.DPTreeHighDimAdaptive(
        POINTS, WEIGHTS, p_f=0.3, eps_0=0.5, **PRIME, **o
    ),
    "DPTreeSoftmax": lambda **o: paper.DPTreeSoftmax(POINTS, WEIGHTS, eps_s=0.5, **PRIME, **o),
    "DPTreeSoftmaxAdaptive": lambda **o: paper.DPTreeSoftmaxAdaptive(
        POINTS, WEIGHTS, eps_s=0.5, p_f=0.3, **PRIME, **o
    ),
    "DPCrossAttention": lambda **o: paper.DPCrossAttention(
        POINTS,
        WEIGHTS[:, None],
        upper=1.0,
        value_bound=1.0,
        epsilon=1.0,
        delta=1e-7,
        delta_prime=1e-7,
        c=0.02,
        eps_s=0.5,
        p_f=0.3,
        **o,
    ),
}


@pytest.fixture
def ledger(tmp_path):
    made = Ledger(tmp_path / "budget.db")
    made.create("clinic", epsilon=1.0, delta=1e-5)
    made.create("line", epsilon=1.5, delta=1e-5, neighbours="replace")
    return made


@pytest.fixture
def drawn(monkeypatch):
    """Return what the ledger said at each draw of Gaussian noise."""
    seen = []
    sample = RoundedGaussian.sample

    def watched(self, *given, **named):
        ledger = drawn_for["ledger"]
        seen.append([each.state for each in ledger.statement("clinic").spends])
        return sample(self, *given, **named)

    drawn_for = {}
    monkeypatch.setattr(RoundedGaussian, "sample", watched)
    return seen, drawn_for


@pytest.mark.parametrize("door", DOORS)
def test_every_front_door_counts_before_it_draws(door, ledger, drawn):
    seen, drawn_for = drawn
    drawn_for["ledger"] = ledger
    made = DOORS[door](ledger=ledger, dataset="clinic", analyst="eve")
    assert seen
    assert all(states == [State.SPENT] for states in seen)  # one receipt, before the first draw
    [spend] = ledger.statement("clinic").spends
    assert spend.receipt == made.receipt
    assert (spend.delta, spend.analyst, spend.state) == (DELTA, "eve", State.SPENT)
    seen.clear()
    with pytest.raises(BudgetExceeded, match="still fits"):
        DOORS[door](ledger=ledger, dataset="clinic")
    assert seen == []
    assert len(ledger.statement("clinic").spends) == 1


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", STRUCTURES)
def test_every_structure_of_the_paper_counts(name, ledger):
    made = STRUCTURES[name](ledger=ledger, dataset="line", analyst="eve")
    [spend] = ledger.statement("line").spends
    assert spend.receipt == made.receipt
    assert (spend.analyst, spend.state) == ("eve", State.SPENT)
    assert spend.delta == pytest.approx(made.guarantee.delta, rel=1e-6) or spend.delta <= 2e-7
    assert set(STRUCTURES) == {each for each in paper.__all__ if each.startswith("DP")}
    with pytest.raises(TypeError, match="unexpected keyword"):
        STRUCTURES[name](ledgers=ledger, dataset="line")


def test_a_structure_that_does_not_fit_draws_nothing(ledger, monkeypatch):
    ledger.create("small", epsilon=0.5, delta=1e-5, neighbours="replace")
    grown = []
    monkeypatch.setattr(Forest, "grow", lambda *given: grown.append(given))
    with pytest.raises(BudgetExceeded, match=r"at most ε = 0\.5 still fits"):
        STRUCTURES["DPTree"](ledger=ledger, dataset="small")
    assert grown == []
    assert ledger.statement("small").spends == ()


def test_bad_rows_reserve_nothing(ledger):
    wrong = KEYS.copy()
    wrong[-1, -1] = np.nan
    counted = {"ledger": ledger, "dataset": "clinic"}
    with pytest.raises(InvalidInput):
        discreet.build(wrong, VALUES, **MEMORY, **counted)
    with pytest.raises(InvalidInput):
        discreet.softmax_regression(
            wrong, LABELS, classes=[0, 1], features="linear", **OPTIONS, **counted
        )
    with pytest.raises(InvalidInput):
        discreet.softmax_regression(
            KEYS, LABELS + 1, classes=[0, 1], features="linear", **OPTIONS, **counted
        )
    assert ledger.statement("clinic").spends == ()


def test_what_does_not_fit_is_refused_before_a_row_is_read(ledger):
    def rows():  # the first chunk has the shapes
        yield KEYS
        raise AssertionError("the second chunk was read")

    with pytest.raises(BudgetExceeded):
        discreet.build(
            rows(),
            iter([VALUES, VALUES]),
            **MEMORY | {"epsilon": 9.0},
            ledger=ledger,
            dataset="clinic",
        )

    with pytest.raises(BudgetExceeded):
        discreet.softmax_regression(
            KEYS,
            LABELS,
            classes=[0, 1],
            features="linear",
            epsilon=9.0,
            delta=DELTA,
            ledger=ledger,
            dataset="clinic",
        )
    assert ledger.statement("clinic").spends == ()


def test_ledger_and_dataset_go_together(ledger):
    for wrong in (
        {"dataset": "clinic"},
        {"analyst": "eve"},
        {"ledger": ledger},
        {"ledger": "budget.db", "dataset": "clinic"},
        {"ledger": ledger, "dataset": 3},
        {"ledger": ledger, "dataset": "clinic", "analyst": ""},
    ):
        with pytest.raises(InvalidInput):
            DOORS["build"](**wrong)
        with pytest.raises(InvalidInput):
            STRUCTURES["DPTree"](**wrong)
    with pytest.raises(InvalidInput, match="do not add up"):
        DOORS["build"](ledger=ledger, dataset="line")
    with pytest.raises(InvalidInput, match="one record"):
        DOORS["build"](ledger=ledger, dataset="clinic", groups=np.arange(8))
    for door in (discreet.build, discreet.softmax_regression, discreet.Builder):
        assert {"ledger", "dataset", "analyst"} <= set(inspect.signature(door).parameters)


def test_a_builder_may_try_again_when_the_ledger_could_not_be_written(ledger, monkeypatch):
    made = discreet.Builder(**MEMORY, ledger=ledger, dataset="clinic")
    made.add(KEYS, VALUES)
    hidden = ledger.path.with_suffix(".away")
    ledger.path.rename(hidden)
    with pytest.raises(LedgerError):
        made.release()
    hidden.rename(ledger.path)
    [memory] = made.release()
    assert [each.id for each in ledger.statement("clinic").spends] == [memory.receipt.id]
    with pytest.raises(BudgetExceeded, match="has not been released"):
        made.release()


def test_a_reservation_is_voided_if_its_draw_fails(ledger, monkeypatch):
    def fail(self, name):
        raise LedgerError("the disk went away")

    monkeypatch.setattr(Ledger, "draw", fail)
    with pytest.raises(LedgerError, match="went away"):
        build(ledger, 1.0)
    [spend] = ledger.statement("clinic").spends
    assert spend.state is State.VOIDED


def test_a_voided_reservation_stops_the_build(ledger, monkeypatch):
    reserve = Ledger.reserve

    def voided_at_once(self, dataset, receipt, **named):
        reserve(self, dataset, receipt, **named)
        self.void(receipt.id)

    monkeypatch.setattr(Ledger, "reserve", voided_at_once)
    with pytest.raises(BudgetExceeded, match="it is voided"):
        build(ledger, 1.0)


def test_sums_that_travelled_are_counted_where_they_are_released(ledger):
    made = discreet.Builder(**MEMORY)
    made.add(KEYS, VALUES)
    partial = Partial.of([Table(KEYS, VALUES)], made.settings)
    account = ledger.account("clinic", "eve")
    made.settings.check(account)
    [released] = release(partial, account=account)
    assert [each.receipt for each in ledger.statement("clinic").spends] == [released.receipt]
    with pytest.raises(BudgetExceeded):
        release(partial, account=account)


def test_test_noise_counts_too(ledger):
    build(ledger, 0.5, entropy=Seeded(1))
    assert not ledger.statement("clinic").private
    ledger.account("clinic").check([(receipt(0.1).mechanisms[0][0], 1)], unit="row", delta=DELTA)


def test_a_release_for_others_than_the_data_set_counts_is_told_what_to_do(ledger):
    ledger.create("people", epsilon=1.0, delta=1e-5, unit="record")

    def said(dataset, door=DOORS["build"], **options):
        with pytest.raises(InvalidInput, match="do not add up") as refused:
            door(ledger=ledger, dataset=dataset, **options)
        return str(refused.value)

    ids = np.arange(8)
    records = said("clinic", groups=ids)
    assert "Leave `groups` out, or count it in another data set" in records
    assert "made for unit 'record' and neighbours 'add_remove' (Ledger.create" in records
    assert "discreet ledger create --unit record --neighbours add_remove" in records
    rows = said("people")
    assert "Give `groups` where it takes them, or count it in another" in rows
    assert "made for unit 'row' and neighbours 'add_remove'" in rows
    relation = said("line")
    assert "Ask for `neighbours` 'replace' where it can be chosen, or count it in" in relation
    assert "groups" not in relation
    both = said("line", groups=ids)
    assert "Leave `groups` out and ask for `neighbours` 'replace' where it" in both
    structure = said("people", STRUCTURES["DPTree"])  # which has neither argument
    assert "count it in another data set" in structure
    assert "made for unit 'row' and neighbours 'replace'" in structure
    # What is made already cannot be asked for otherwise.
    with pytest.raises(InvalidInput, match=r"do not add up\. Count it in another") as refused:
        ledger.spend("clinic", build(None, 0.1, dataset=None, groups=ids))
    assert "groups" not in str(refused.value)


@pytest.mark.parametrize("fix", ["leave groups out", "another data set", "ask for replace"])
def test_what_it_is_told_works(ledger, fix):
    options = {"groups": np.arange(8), "ledger": ledger, "dataset": "clinic"}
    if fix == "leave groups out":
        del options["groups"]
    elif fix == "another data set":
        options["dataset"] = "new"
        ledger.create("new", epsilon=1.0, delta=1e-5, neighbours="add_remove", unit="record")
    else:
        del options["groups"]
        options |= {"neighbours": "replace", "dataset": "line"}
    assert DOORS["build"](**options)
