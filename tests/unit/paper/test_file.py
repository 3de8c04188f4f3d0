"""Files of structures: every option comes back, and no file breaks the reader."""

import copy
import json
import random
import warnings

import numpy as np
import pytest
from resealing import contents, resealed

from discreet import CorruptRelease, _files, paper
from discreet.paper import file
from discreet.paper.file import FAMILIES
from discreet.paper.structure import WHOLE
from discreet.readers import registry as loading

RNG = np.random.default_rng(8)
X, W, V = RNG.random((9, 2)), RNG.uniform(-1, 1, 9), RNG.uniform(-1, 1, (9, 2))
BUDGET = {"epsilon": 3.0, "delta": 1e-4}
SPLIT = {**BUDGET, "delta_prime": 1e-4}
RANGES = {"upper": 1.5, "weight_bound": 0.7}
ATTENTION = {"upper": 1.5, "value_bound": 0.7, "p_f": 0.1, **SPLIT}
QUERIES = RNG.random((4, 2)) * 1.5

# Every way to set what a file has to remember.
OPTIONS = {
    "tree": (paper.DPTree, (W,), {"upper": 1.5, "sensitivity": 0.3, **BUDGET}),
    "wide tree": (
        paper.DPTree,
        (W,),
        {"upper": 3, "sensitivity": 1e-30, "estimator": "consistent", "branching": 16, **BUDGET},
    ),
    "gaussian tree": (
        paper.DPTreeBoosted,
        (W,),
        {
            "upper": 1.5,
            "sensitivity": 0.3,
            "noise": "gaussian",
            "accounting": "tight",
            "delta_fail": 0.1,
            "copies": 3,
            **BUDGET,
        },
    ),
    "signed points": (
        paper.DPTreeDistance,
        (X[:, 0], W),
        {"p": 3, "lower": -2.0, "noise": "laplace", **RANGES, **BUDGET},
    ),
    "one row": (paper.DPTreeDistance, (X[:1, 0], W[:1]), {"p": 1, **RANGES, **BUDGET}),
    "largest c": (paper.DPTreeHighDim, (X, W), {"p": 1, **RANGES, **SPLIT}),
    "own net": (
        paper.DPTreeHighDimAdaptive,
        (X, W),
        {"p_f": 0.1, "eps_0": 0.3, "copies": 2, "lower": -1.0, **RANGES, **SPLIT},
    ),
    "own degree": (
        paper.DPTreeSoftmax,
        (X, W),
        {"degree": 1, "scale": 0.3, "lower": -0.1, **RANGES, **SPLIT},
    ),
    "the paper's scale, given": (
        paper.DPTreeSoftmaxAdaptive,
        (np.repeat(X, 2, axis=1)[:, :3], W),
        {"eps_s": 0.3, "scale": 1 / 3, "p_f": 0.1, **RANGES, **SPLIT},
    ),
    "attention": (
        paper.DPCrossAttention,
        (X, V),
        {"eps_s": 0.3, "lower": -0.5, "eps_0": 0.4, "copies": 2, "c": 0.2, **ATTENTION},
    ),
    "one column": (
        paper.DPCrossAttention,
        (X, V),
        {"degree": 2, "scope": "entry", "accounting": "tight", "noise": "gaussian", **ATTENTION},
    ),
}


def built(name):
    kind, data, options = OPTIONS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # answers are noise here
        return kind(*data, **options)


def asked(structure, name):
    dim = np.shape(OPTIONS[name][1][0])[1:]
    queries = np.resize(QUERIES, (4, *dim))
    parts = structure.query(queries), structure.variance(queries)
    return [
        np.asarray(each) for part in parts for each in (part if isinstance(part, tuple) else [part])
    ]


@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_comes_back(name, tmp_path):
    structure = built(name)
    structure.save(tmp_path / "x")
    again = paper.load(tmp_path / "x")
    for mine, theirs in zip(asked(again, name), asked(structure, name), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert again.error_bound(0.9) == structure.error_bound(0.9)
    assert again.tight_guarantee == structure.tight_guarantee
    assert repr(again) == repr(structure)
    for each in (
        "accounting",
        "estimator",
        "kernel",
        "logits",
        "net",
        "copies",
        "c",
        "scope",
        "box",
    ):
        assert getattr(again, each, None) == getattr(structure, each, None)
    _, tensors = FAMILIES[type(again).__name__].described(again.state)
    assert not tensors["nodes"].flags.writeable


def test_a_degree_stays_whatever_a_later_version_would_find():
    structure = built("the paper's scale, given")

    def otherwise(settings, tensors):
        settings["settings"]["eps_s"] = 1e-9  # which needs more than there are features for

    again = file.from_bytes(resealed(file.to_bytes(structure), otherwise))
    assert again.kernel.degree == structure.kernel.degree
    np.testing.assert_array_equal(
        again.query(QUERIES[:, [0, 1, 1]]), structure.query(QUERIES[:, [0, 1, 1]])
    )


def test_the_guarantee_of_one_column_is_none_of_the_whole():
    structure = built("one column")
    data = file.to_bytes(structure)

    def of_everything(settings, tensors):
        settings["settings"]["scope"] = "vector"

    def nodes_of_one_column(settings, tensors):
        [pair] = settings["receipt"]["mechanisms"]
        pair["count"] = sum(count for _, count in structure.state.covered)

    def said_of_everything(settings, tensors):
        settings["guarantee"]["scope"] = WHOLE

    for change in (of_everything, nodes_of_one_column, said_of_everything):
        with pytest.raises(CorruptRelease, match="guarantee"):
            file.from_bytes(resealed(data, change))


@pytest.mark.parametrize(
    ("noise", "accounting"),
    [("laplace", "paper"), ("truncated_laplace", "paper"), ("gaussian", "tight")],
)
@pytest.mark.parametrize("leaves", [2, 9])
def test_a_claim_that_is_a_little_too_good_is_refused(leaves, noise, accounting):
    """The account is exact for the one node of two leaves, and for Gaussians, else on a grid."""
    options = {"upper": 1.0, "sensitivity": 1.0, "noise": noise, "accounting": accounting}
    made = paper.DPTree(np.ones(leaves), epsilon=4.0, delta=1e-3, **options)
    data, (epsilon, delta) = loading.to_bytes(made), (made.guarantee.epsilon, made.guarantee.delta)

    def claimed(epsilon, delta):
        def change(settings, tensors):
            settings["guarantee"] |= {"epsilon": epsilon, "delta": delta}

        return loading.from_bytes(resealed(data, change)).guarantee

    assert claimed(epsilon, delta) == made.guarantee
    exact = leaves == 2 or noise == "gaussian"
    for less in (1e-300, delta * 1e-290, *([delta / 1.001, delta] if exact else [])):
        with pytest.raises(CorruptRelease, match="guarantee"):
            claimed(epsilon / 1.0009, less)


def leaves(value, path=()):
    """The path to every number and text in nested lists and dictionaries."""
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from leaves(value[key], (*path, key))
    else:
        yield path


def replaced(settings, path, value):
    changed = copy.deepcopy(settings)
    at = changed
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return changed


@pytest.mark.parametrize("name", OPTIONS)
def test_no_file_breaks_the_reader(name):
    """Any setting replaced by anything: a structure, or `CorruptRelease`, and nothing else."""
    settings, tensors = contents(file.to_bytes(built(name)))
    chance = random.Random(3)
    odd = [None, True, -1, 0, 1, 2, 0.5, 1e308, 2**70, "", "paper", [], {}, [1, 2], float("nan")]
    refused = 0
    for path in leaves(settings):
        for value in chance.sample(odd, 6):
            changed = replaced(settings, path, value)
            data = _files.pack(tensors, name=file.FORMAT, settings=changed, card=None)
            try:
                opened = file.from_bytes(data)
            except CorruptRelease:
                refused += 1
            else:
                asked(opened, name)
    assert refused > 50


@pytest.mark.parametrize("name", OPTIONS)
def test_no_tensor_breaks_the_reader(name):
    data = file.to_bytes(built(name))
    for key in contents(data)[1]:

        def with_tensor(value, key=key):
            return resealed(
                data, lambda settings, tensors: tensors.update({key: value(tensors[key])})
            )

        for value in (
            lambda array: array[..., None],
            lambda array: array[:0],
            lambda array: array.astype(np.float32),
            lambda array: np.concatenate([array, array]),
            lambda array: np.where(array == array.flat[0], np.nan, array),
        ):
            with pytest.raises(CorruptRelease):
                file.from_bytes(with_tensor(value))


def test_settings_are_plain_and_by_name():
    """What is in a file is listed here: a new name is a decision, not an accident."""
    settings, tensors = contents(file.to_bytes(built("attention")))
    assert settings.keys() == {
        "class",
        "settings",
        "guarantee",
        "total_delta",
        "receipt",
        "version",
    }
    assert set(settings["settings"]) == {
        "accounting", "c", "columns", "copies", "degree", "dim", "eps_0", "eps_s", "lower", "noise",
        "rows", "scale", "scope", "totals_noise", "upper", "value_bound",
    }  # fmt: skip
    assert tensors.keys() == {"nodes", "totals"}
    assert json.loads(json.dumps(settings)) == settings
