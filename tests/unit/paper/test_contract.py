"""What every structure of the paper must do: one suite for all of them."""

import dataclasses
import inspect
import json
import pickle
import re
import warnings
from decimal import Decimal

import numpy as np
import pytest
from resealing import contents, resealed

import discreet
from discreet import (
    BudgetExceeded,
    CorruptRelease,
    Guarantee,
    InvalidInput,
    Neighbours,
    NotPrivateWarning,
    paper,
)
from discreet.accounting import Receipt, tight
from discreet.ledger import Ledger
from discreet.paper import file, forest
from discreet.paper.structure import Structure
from discreet.readers.registry import to_bytes
from discreet.testing import Seeded, Silent

RNG = np.random.default_rng(4)
ROWS, DIM = 33, 2
X, W, V = RNG.random((ROWS, DIM)), RNG.uniform(-1, 1, ROWS), RNG.uniform(-1, 1, (ROWS, 3))
BUDGET = {"epsilon": 0.8, "delta": 1e-6}
SPLIT = {**BUDGET, "delta_prime": 2e-6, "c": 0.1}
BOXES = {"upper": 1.0, "weight_bound": 1.0}
FAR = np.array([[0.2, 0.9], [-3.0, 7.0]])  # the second is clipped

# name → (class, positional data, options, queries)
STRUCTURES = {
    "tree": (paper.DPTree, (W,), {"sensitivity": 2.0, "upper": 1.0, **BUDGET}, FAR[:, 0]),
    "boosted": (
        paper.DPTreeBoosted,
        (W,),
        {"sensitivity": 2.0, "upper": 1.0, "delta_fail": 1e-3, **BUDGET},
        FAR[:, 0],
    ),
    "distance": (paper.DPTreeDistance, (X[:, 0], W), {"p": 2, **BOXES, **BUDGET}, FAR[:, 0]),
    "high_dim": (paper.DPTreeHighDim, (X, W), {"p": 2, **BOXES, **SPLIT}, FAR),
    "high_dim_adaptive": (
        paper.DPTreeHighDimAdaptive,
        (X, W),
        {"p_f": 0.01, **BOXES, **SPLIT},
        FAR,
    ),
    "softmax": (paper.DPTreeSoftmax, (X, W), {"eps_s": 0.1, **BOXES, **SPLIT}, FAR),
    "softmax_adaptive": (
        paper.DPTreeSoftmaxAdaptive,
        (X, W),
        {"eps_s": 0.1, "p_f": 0.01, **BOXES, **SPLIT},
        FAR,
    ),
    "attention": (
        paper.DPCrossAttention,
        (X, V),
        {"upper": 1.0, "value_bound": 1.0, "eps_s": 0.1, "p_f": 0.01, **SPLIT},
        FAR,
    ),
    "tree_consistent": (
        paper.DPTree,
        (W,),
        {"sensitivity": 2.0, "upper": 1.0, "estimator": "consistent", **BUDGET},
        FAR[:, 0],
    ),
    "distance_consistent_tight": (
        paper.DPTreeDistance,
        (X[:, 0], W),
        {"p": 1, "estimator": "consistent", "accounting": "tight", **BOXES, **BUDGET},
        FAR[:, 0],
    ),
    "high_dim_consistent": (
        paper.DPTreeHighDimAdaptive,
        (X, W),
        {"p_f": 0.01, "estimator": "consistent", "branching": 4, **BOXES, **SPLIT},
        FAR,
    ),
    "softmax_tight": (
        paper.DPTreeSoftmaxAdaptive,
        (X, W),
        {"degree": 2, "p_f": 0.01, "accounting": "tight", "lower": -0.5, **BOXES, **SPLIT},
        FAR,
    ),
    "attention_tight": (
        paper.DPCrossAttention,
        (X, V),
        {
            "upper": 1.0,
            "value_bound": 1.0,
            "eps_s": 0.1,
            "p_f": 0.01,
            "accounting": "tight",
            **SPLIT,
        },
        FAR,
    ),
    "attention_entry": (
        paper.DPCrossAttention,
        (X, V),
        {"upper": 1.0, "value_bound": 1.0, "eps_s": 0.1, "p_f": 0.01, "scope": "entry", **SPLIT},
        FAR,
    ),
}

pytestmark = pytest.mark.parametrize("name", STRUCTURES)


def build(name, *, entropy=None, data=None, **changes):
    kind, given, options, _ = STRUCTURES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # few rows: attention says that it is noise
        return kind(*(data or given), entropy=entropy, **options | changes)


def answers(structure, name):
    result = structure.query(STRUCTURES[name][3])
    return np.stack(result) if isinstance(result, tuple) else result


def arrays_within(value, seen=None):
    """Every array that can be reached from an object."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from arrays_within(item, seen)
    elif hasattr(value, "__dict__"):
        for item in vars(value).values():
            yield from arrays_within(item, seen)


def differences(one, other, name=""):
    """Names of the attributes at which two objects differ, at any depth."""
    if isinstance(one, np.ndarray):
        return set() if np.array_equal(one, other) else {name}
    if isinstance(one, (list, tuple)):
        pairs = zip(one, other, strict=True)
        return set().union(*(differences(a, b, name) for a, b in pairs))
    if hasattr(one, "__dict__") and not isinstance(one, str):
        assert vars(one).keys() == vars(other).keys()
        return set().union(*(differences(v, vars(other)[k], k) for k, v in vars(one).items()))
    return set() if one == other or callable(one) else {name}


def test_the_guarantee_is_within_the_request(name):
    structure = build(name)
    _, _, options, _ = STRUCTURES[name]
    guarantee = structure.guarantee
    assert isinstance(guarantee, Guarantee)
    assert guarantee.neighbours is Neighbours.REPLACE
    assert guarantee.unit == "row"
    assert 0 < guarantee.epsilon <= options["epsilon"]
    assert 0 < guarantee.delta <= options["delta"] + options.get("delta_prime", 0)
    assert structure.private
    assert "NOT PRIVATE" not in str(guarantee) + repr(structure)


def test_the_tight_guarantee_is_never_worse_and_is_that_of_all_nodes(name):
    structure = build(name)
    options = STRUCTURES[name][2]
    total = options["delta"] + options.get("delta_prime", 0)
    assert structure.tight_guarantee.epsilon <= structure.guarantee.epsilon
    assert structure.tight_guarantee.delta == pytest.approx(total)
    spent = tight(structure.state.covered, delta=total)
    assert spent <= options["epsilon"] * (1 + 1e-9)
    assert structure.tight_guarantee.epsilon == min(spent, structure.guarantee.epsilon)


def test_the_receipt_is_of_the_whole_object(name):
    structure = build(name)
    receipt, tightly = structure.receipt, structure.tight_guarantee
    whole = receipt.guarantee(delta=tightly.delta)
    assert receipt.neighbours is Neighbours.REPLACE
    assert receipt.unit == "row"
    assert receipt.private
    assert receipt.source == "SystemEntropy()"
    assert Receipt.from_dict(json.loads(json.dumps(receipt.to_dict()))) == receipt
    assert build(name).receipt.id != receipt.id
    if name == "attention_entry":
        assert whole.epsilon > tightly.epsilon
        assert "all columns" in receipt.scope
    else:
        assert whole == tightly


def test_receipt_then_account_then_noise(name, tmp_path, monkeypatch):
    """Whoever stops a build anywhere has a release that is counted, or none."""
    ledger = Ledger(tmp_path / "budget.db")
    ledger.create("rows", epsilon=5.0, delta=1e-4, neighbours="replace")
    steps, issue, draw = [], Receipt.issue, Ledger.draw

    class Watching(Silent):
        def realise(self, sampler, count):
            steps.append("noise")
            return super().realise(sampler, count)

    def issued(**given):
        steps.append("receipt")
        return issue(**given)

    def drawn(self, name):
        steps.append("account")
        return draw(self, name)

    monkeypatch.setattr(Receipt, "issue", issued)
    monkeypatch.setattr(Ledger, "draw", drawn)
    made = build(name, entropy=Watching(), account=ledger.account("rows", "eve"))
    draws = 2 if "softmax" in name or "attention" in name else 1
    assert steps == ["receipt", "account", *["noise"] * draws]
    [spend] = ledger.statement("rows").spends
    assert (spend.receipt, spend.analyst) == (made.receipt, "eve")
    for both in ({"ledger": ledger, "dataset": "rows"}, {"dataset": "rows"}, {"analyst": "eve"}):
        with pytest.raises(
            InvalidInput, match=r"Expected account, or ledger and dataset, not both"
        ):
            build(name, account=ledger.account("rows"), **both)
    with pytest.raises(InvalidInput, match="account="):
        build(name, account="rows")
    assert len(ledger.statement("rows").spends) == 1


def test_the_signature_shows_every_option_with_its_default_and_its_meaning(name):
    kind, data, options, _ = STRUCTURES[name]
    shown = inspect.signature(kind).parameters
    rows = [each.name for each in shown.values() if each.kind is each.POSITIONAL_OR_KEYWORD]
    assert len(rows) == len(data)
    assert set(options) | {"entropy", "memory_limit", "ledger", "account"} <= set(shown)
    assert all(each.kind is not each.VAR_KEYWORD for each in shown.values())
    described = re.findall(r"^    (\w+): ", kind.__doc__.partition("Args:")[2], re.MULTILINE)
    assert described == list(shown)
    by_default = {
        name: each.default for name, each in shown.items() if each.default is not each.empty
    }
    assert by_default["accounting"] is paper.Accounting.PAPER
    given = {**by_default, **options, "entropy": Seeded(1)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        made = kind(**dict(zip(rows, data, strict=True)), **given)
    np.testing.assert_array_equal(
        answers(made, name), answers(build(name, entropy=Seeded(1)), name)
    )
    with pytest.raises(TypeError, match="missing a required argument"):
        kind(*data)


def test_a_structure_is_its_state_and_its_promise(name):
    structure = build(name)
    assert set(vars(structure)) == {"state", "promise"}
    again = type(structure).of(structure.state, structure.promise)
    np.testing.assert_array_equal(answers(again, name), answers(structure, name))
    for part in (structure.state, structure.promise):
        with pytest.raises(dataclasses.FrozenInstanceError):
            part.accounting = "none"


def test_the_error_of_a_card_is_searched_for_once(name, tmp_path, monkeypatch):
    structure, asked = build(name), []
    bound = type(structure)._bound
    monkeypatch.setattr(
        type(structure), "_bound", lambda self, at: asked.append(at) or bound(self, at)
    )
    for _ in range(2):
        structure.save(tmp_path / "structure")
        str(structure.card)
    assert len(asked) == 1


def test_without_a_receipt_there_is_no_noise(name, monkeypatch):
    class Forbidden(Silent):
        def realise(self, sampler, count):
            raise AssertionError

    def fail(**_):
        raise OSError("no paper left")

    monkeypatch.setattr(Receipt, "issue", fail)
    with pytest.raises(OSError, match="no paper"):
        build(name, entropy=Forbidden())
    monkeypatch.undo()
    with pytest.raises(InvalidInput, match="entropy="):
        build(name, entropy=np.random.default_rng(1))


def test_a_printed_epsilon_is_never_too_small(name):
    for epsilon in (0.70004, 0.7000400000000001):
        structure = build(name, epsilon=epsilon)
        shown = re.search(r", ([\d.e+-]+)>$", repr(structure)).group(1)
        assert Decimal(shown) >= Decimal(structure.guarantee.epsilon)
        assert float(shown) == pytest.approx(structure.guarantee.epsilon, rel=1e-3)


def test_nothing_exact_is_kept(name):
    """Neither inputs nor exact sums: every stored number that depends on the data has noise."""
    structure, silent = build(name, entropy=Seeded(1)), build(name, entropy=Silent())
    data = STRUCTURES[name][1]
    for array in arrays_within(structure):
        assert not any(np.shares_memory(array, given) for given in data)
        assert not any(array.shape == given.shape and np.allclose(array, given) for given in data)
    # The same noise on other data: only what carries noise may differ, and the receipt's name.
    other = build(name, entropy=Seeded(1), data=tuple(np.abs(0.9 - given) for given in data))
    assert differences(structure, other) <= {"nodes", "offset", "totals", "id"}
    large = [array for array in arrays_within(structure) if array.dtype == np.int64]
    exact = [array for array in arrays_within(silent) if array.dtype == np.int64]
    trees = [(a, b) for a, b in zip(large, exact, strict=True) if a.ndim == 5]
    assert trees
    for noisy, plain in trees:
        assert np.mean(noisy == plain) < 0.01


def test_the_inputs_are_not_changed(name):
    data = tuple(np.array(given) for given in STRUCTURES[name][1])
    for given in data:
        given.flags.writeable = False
    build(name, data=data)  # writing to them would raise
    for given, original in zip(data, STRUCTURES[name][1], strict=True):
        assert np.array_equal(given, original)


def test_noise_is_drawn_once(name):
    structure = build(name)
    first = answers(structure, name)
    assert np.array_equal(first, answers(structure, name))
    states = [
        [a for a in arrays_within(s) if a.dtype == np.int64] for s in (structure, build(name))
    ]
    assert all(
        np.mean(one == other) < 0.01 for one, other in zip(*states, strict=True) if one.ndim == 5
    )


def test_test_sources_are_marked(name):
    for entropy in (Seeded(3), Silent()):
        structure = build(name, entropy=entropy)
        assert not structure.private
        assert "NOT PRIVATE" in str(structure.guarantee)
        assert "NOT PRIVATE" in str(structure.tight_guarantee)
        assert "NOT PRIVATE" in repr(structure)
        assert structure.guarantee.scope.startswith(f"NOT PRIVATE (noise from {entropy!r}): ")
        assert structure.receipt.mark == f"NOT PRIVATE (noise from {entropy!r}): "
    seeded = [answers(build(name, entropy=Seeded(3)), name) for _ in range(2)]
    assert np.array_equal(*seeded)


def test_a_query_is_the_same_alone_or_in_a_batch(name):
    structure = build(name)
    queries = STRUCTURES[name][3]
    many = np.concatenate([queries] * 5)
    together = structure.query(many)
    alone = structure.query(queries[1:2])
    if isinstance(together, tuple):
        together, alone = together[0], alone[0]
    np.testing.assert_allclose(together[-1], alone[0], rtol=1e-12)
    assert len(together) == len(many)
    empty = structure.query(many[:0])
    assert len(empty[0] if isinstance(empty, tuple) else empty) == 0


def test_queries_out_of_range_are_clipped(name):
    structure = build(name)
    queries = STRUCTURES[name][3]
    outside, inside = structure.query(queries), structure.query(np.clip(queries, 0, 1))
    np.testing.assert_array_equal(outside, inside)


def test_bounds_grow_with_confidence_and_shrink_with_epsilon(name):
    structure = build(name)
    assert (
        structure.error_bound(0.5) <= structure.error_bound(0.99) <= structure.error_bound(0.9999)
    )
    assert build(name, epsilon=0.4).error_bound(0.9) >= structure.error_bound(0.9)
    for wrong in (0, 1, -1, float("nan"), None):
        with pytest.raises(InvalidInput, match="confidence="):
            structure.error_bound(wrong)


def test_the_size_is_said_before_anything_is_allocated(name):
    structure = build(name)
    assert structure.nbytes > 0
    with pytest.raises(InvalidInput, match=r"memory_limit=100 bytes.*mostly because of the"):
        build(name, memory_limit=100)
    # Of a tree that releases some levels only, all may be needed to read it.
    build(name, memory_limit=(8 if "consistent" in name else 4) * structure.nbytes)


def test_bad_parameters_are_named(name):
    options = STRUCTURES[name][2]
    for key, wrong in {
        "epsilon": 0,
        "delta": 0,
        "delta_prime": 1,
        "c": -0.1,
        "upper": 0,
        "weight_bound": float("nan"),
        "value_bound": float("inf"),
        "sensitivity": -1,
        "eps_s": 0,
        "p_f": 1,
        "delta_fail": 0,
        "p": 0,
    }.items():
        if key in options:
            with pytest.raises(InvalidInput, match=f"{key}="):
                build(name, **{key: wrong})


def test_bad_data_are_refused_without_being_shown(name):
    data = STRUCTURES[name][1]
    broken = tuple(np.array(given) for given in data)
    broken[0].flat[3] = np.nan
    with pytest.raises(InvalidInput, match="NaN") as caught:
        build(name, data=broken)
    assert not any(str(value)[:6] in str(caught.value) for value in data[0].flat)
    for wrong in (
        np.array(["secret-7"] * len(data[0])),
        data[0] * 1j,
        [[10**400]] * len(data[0]),
        [object()] * len(data[0]),
    ):
        with pytest.raises(InvalidInput, match="real numbers") as caught:
            build(name, data=(wrong, *data[1:]))
        assert "secret" not in str(caught.value)
        assert caught.value.__cause__ is None
    with pytest.raises(InvalidInput, match="shape") as caught:
        build(name, data=(data[0][None], *data[1:]))
    assert str(ROWS) not in str(caught.value)
    with pytest.raises(InvalidInput, match=r"shape|len"):
        build(name, data=tuple(given[:0] for given in data))
    if len(data) > 1:
        with pytest.raises(InvalidInput, match="row count") as caught:
            build(name, data=(data[0], data[1][1:]))
        assert str(ROWS) not in str(caught.value)
        assert str(ROWS - 1) not in str(caught.value)
    queries = STRUCTURES[name][3]
    with pytest.raises(InvalidInput, match="NaN"):
        build(name).query(np.full_like(queries, np.nan))
    with pytest.raises(InvalidInput, match="shape"):
        build(name).query(queries[None])


def test_a_constant_that_is_too_large_is_refused(name):
    if "c" in STRUCTURES[name][2] and "tight" not in name:
        with pytest.raises(BudgetExceeded, match="smaller c"):
            build(name, c=30.0)
    else:
        assert build(name).guarantee.epsilon == pytest.approx(BUDGET["epsilon"], rel=1e-4)


def test_huge_values_are_clipped_in_silence(name):
    """A warning or an error would tell that they are there."""
    data = tuple(np.array(given) for given in STRUCTURES[name][1])
    for given in data:
        given.flat[2], given.flat[3] = 1e308, -1e308
    changes = {key: 1e-10 for key in ("upper",) if key in STRUCTURES[name][2]}
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        structure = build(name, data=data, **changes)
        assert np.all(np.isfinite(answers(structure, name)))


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_bounds_that_leave_float64_are_named(name, scale):
    for key in ("upper", "weight_bound", "value_bound", "sensitivity"):
        if key in STRUCTURES[name][2]:
            with pytest.raises(InvalidInput, match=f"{key}="):
                build(name, **{key: scale})


def test_a_budget_that_is_not_met_is_refused_before_noise_is_drawn(name):
    class Forbidden(Seeded):
        def words(self, count):
            raise AssertionError

    if "c" in STRUCTURES[name][2] and "tight" not in name:
        with pytest.raises(BudgetExceeded):
            build(name, c=30.0, entropy=Forbidden(1))
    else:
        with pytest.raises(AssertionError):
            build(name, entropy=Forbidden(1))


def test_many_queries_take_bounded_memory(name, monkeypatch):
    structure = build(name)
    queries = np.concatenate([STRUCTURES[name][3]] * 40)
    whole = structure.query(queries)
    monkeypatch.setattr(forest, "_GATHER_BYTES", 4000)
    np.testing.assert_allclose(structure.query(queries), whole, rtol=1e-12)


@pytest.mark.parametrize("noise", [*paper.Noise, "gaussian"])
def test_all_three_laws_can_be_chosen(name, noise):
    structure = build(name, noise=noise)
    kinds = {"gaussian": "Gaussian", "laplace": "DiscreteLaplace"}
    expected = kinds.get(str(noise), "TruncatedLaplace")
    assert {type(mechanism).__name__ for mechanism, _ in structure.state.covered} == {expected}
    with pytest.raises(InvalidInput, match="noise="):
        build(name, noise="none")
    assert np.all(np.isfinite(answers(structure, name)))
    assert structure.tight_guarantee.epsilon <= BUDGET["epsilon"]


def test_a_saved_structure_carries_no_data(name):
    """Pickle is not how releases travel, but whoever uses it must not find rows in it."""
    structure = build(name)
    blob = pickle.dumps(structure)
    for given in STRUCTURES[name][1]:
        assert given[:4].tobytes() not in blob
    again = pickle.loads(blob)
    np.testing.assert_array_equal(answers(again, name), answers(structure, name))


def unlike(one, other, name=""):
    """Names of the attributes at which two objects differ, but for what is computed from others."""
    if isinstance(one, np.ndarray):
        same = np.array_equal(one, other) and one.dtype == other.dtype
        return set() if same else {name}
    if dataclasses.is_dataclass(one) and type(one) is type(other):
        names = {field.name for field in dataclasses.fields(one)}
    elif isinstance(one, Structure):
        names = {"state", "promise"}
    else:
        return set() if one == other and type(one) is type(other) else {name}
    return set().union(*(unlike(getattr(one, n), getattr(other, n), n) for n in names))


def test_a_file_gives_back_the_same_structure(name, tmp_path):
    structure, path = build(name), tmp_path / "structure.safetensors"
    structure.save(path)
    queries = STRUCTURES[name][3]
    for load in (paper.load, discreet.load):
        again = load(path)
        assert type(again) is type(structure)
        assert unlike(structure, again) == set()
        np.testing.assert_array_equal(answers(again, name), answers(structure, name))
        for mine, theirs in zip(again.variance(queries), structure.variance(queries), strict=True):
            np.testing.assert_array_equal(mine, theirs)
        for confidence in (0.5, 0.999):
            assert again.error_bound(confidence) == structure.error_bound(confidence)
        assert again.tight_guarantee == structure.tight_guarantee
        assert repr(again) == repr(structure)
        assert str(again.card) == str(structure.card)
        assert again.nbytes == structure.nbytes
        assert discreet.combine([again, structure], delta=0.1).epsilon == (
            discreet.combine([structure], delta=0.1).epsilon
        )
    (settings, _), (others, tensors) = map(contents, (file.to_bytes(structure), to_bytes(again)))
    assert settings == others
    assert tensors.keys() <= {"nodes", "totals"}


def test_a_file_holds_nothing_exact(name):
    data = STRUCTURES[name][1]
    structure, other = (
        build(name, entropy=Seeded(1), data=given)
        for given in (data, tuple(np.abs(0.9 - given) for given in data))
    )
    files = [file.to_bytes(each) for each in (structure, other)]
    for given in data:
        for each in (given[:4], given.astype(np.float32)[:4], np.sort(given, axis=0)[:4]):
            assert each.tobytes() not in files[0]
    assert len(files[0]) == len(files[1])
    # The same noise on other rows: only what carries noise differs, and the receipt's name.
    (settings, tensors), (others, changed) = map(contents, files)
    assert settings["receipt"].pop("id") != others["receipt"].pop("id")
    assert settings == others
    assert tensors.keys() <= {"nodes", "totals"}
    assert all(np.any(tensors[key] != changed[key]) for key in tensors)
    exact = contents(file.to_bytes(build(name, entropy=Silent())))[1]
    assert all(np.mean(tensors[key] == exact[key]) < 0.01 for key in tensors)


def test_a_file_that_was_altered_or_cut_short_is_refused(name, tmp_path):
    path = tmp_path / "structure.safetensors"
    build(name).save(path)
    whole = path.read_bytes()
    spots = [0, 9, len(whole) // 2, len(whole) - 1]
    broken = [whole[:at] for at in spots]
    broken += [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in spots]
    for data in broken:
        path.write_bytes(data)
        for load in (paper.load, discreet.load):
            with pytest.raises(CorruptRelease, match=r"structure\.safetensors: Expected"):
                load(path)


def mechanisms_in(settings):
    """Every mechanism that a file names: of nodes, of totals, and in the receipt."""
    own = [
        settings["settings"][key]
        for key in ("noise", "totals_noise")
        if key in settings["settings"]
    ]
    return [each["mechanism"] for each in (*own, *settings["receipt"]["mechanisms"])]


def times_less_noise(factor):
    def change(settings, tensors):
        for mechanism in mechanisms_in(settings):
            powers = {"sigma": -1, "scale": -1, "epsilon": 1}
            mechanism.update(
                {
                    key: mechanism[key] * factor**power
                    for key, power in powers.items()
                    if key in mechanism
                }
            )

    return change


def claims(**fields):
    return lambda settings, tensors: settings["guarantee"].update(fields)


def receipt_says(**fields):
    return lambda settings, tensors: settings["receipt"].update(fields)


def fewer_nodes_in_the_receipt(settings, tensors):
    settings["receipt"]["mechanisms"][0]["count"] -= 1


def other_noise_in_the_receipt(settings, tensors):
    settings["receipt"]["mechanisms"][0]["mechanism"]["sensitivity"] *= 2


def a_finer_lattice(settings, tensors):
    settings["settings"]["noise"]["unit"] *= 2


def both_say(**changes):
    def change(settings, tensors):
        settings["guarantee"].update(changes)
        settings["receipt"].update(changes)

    return change


def narrow_nodes(settings, tensors):
    tensors["nodes"] = tensors["nodes"].astype(np.int32)


def missing_nodes(settings, tensors):
    tensors["nodes"] = tensors["nodes"][:, :-1]


def no_nodes(settings, tensors):
    del tensors["nodes"]


def another_class(settings, tensors):
    kinds = ["DPTreeBoosted", "DPTreeHighDimAdaptive", "DPCrossAttention"]
    settings["class"] = next(kind for kind in kinds if kind != settings["class"])


def test_wrong_claims_are_refused(name):
    """Although the checksum is right: whoever can change a file can write that, too."""
    structure = build(name)
    data, tightly = file.to_bytes(structure), structure.tight_guarantee.epsilon
    assert unlike(file.from_bytes(resealed(data, claims())), structure) == set()
    much = 30 * structure.guarantee.epsilon / tightly
    wrong = [
        claims(epsilon=0.9 * tightly),
        claims(delta=0.0),
        claims(delta=structure.promise.total_delta * 1.01),
        claims(neighbours="add_remove"),
        claims(unit="record"),
        claims(scope="all\nof it"),
        claims(scope="NOT PRIVATE: nothing"),
        claims(scope="one person's whole life, and " + structure.guarantee.scope),
        receipt_says(scope="nothing at all"),
        both_say(unit="person"),
        times_less_noise(much),
        receipt_says(private=False),
        receipt_says(unit="record"),
        fewer_nodes_in_the_receipt,
        other_noise_in_the_receipt,
        a_finer_lattice,
        narrow_nodes,
        missing_nodes,
        no_nodes,
        another_class,
        lambda settings, tensors: settings.update(total_delta=1.0),
        lambda settings, tensors: settings["settings"].update(accounting="none"),
        lambda settings, tensors: settings["settings"].update(upper=float("inf")),
        lambda settings, tensors: settings.pop("settings"),
    ]
    for change in wrong:
        with pytest.raises(CorruptRelease):
            file.from_bytes(resealed(data, change))


def test_a_file_with_noise_for_tests_says_so(name, tmp_path):
    structure, path = build(name, entropy=Seeded(3)), tmp_path / "structure.safetensors"
    structure.save(path)
    for load in (paper.load, discreet.load):
        with pytest.warns(NotPrivateWarning, match=r"structure\.safetensors is NOT PRIVATE"):
            again = load(path)
        assert not again.private
        for text in (repr(again), str(again.card), str(again.guarantee)):
            assert "NOT PRIVATE" in text
    for lie in (
        receipt_says(private=True),
        claims(scope="the structure and all its answers"),
        receipt_says(source="SystemEntropy()"),
    ):
        with pytest.raises(CorruptRelease):
            file.from_bytes(resealed(path.read_bytes(), lie))


def test_only_the_structures_themselves_are_saved(name, tmp_path):
    """A subclass may hold anything; whoever loaded its file would get the class that it was."""
    kind, given, options, _ = STRUCTURES[name]
    own = type(kind.__name__, (kind,), {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        made = own(*given, **options)
    with pytest.raises(InvalidInput, match="structure="):
        made.save(tmp_path / "x")
    assert list(tmp_path.iterdir()) == []
