"""Files of the paper's structures of the first format version: every later version must load them.

They were written by `write` below, with noise for tests, and are never written again.
"""

import json
import pathlib
import warnings

import numpy as np
import pytest

import discreet
from discreet import NotPrivateWarning, paper
from discreet.testing import Seeded

FILES = pathlib.Path(__file__).parent / "files"
X = np.array([[0.1, 0.7], [0.3, 0.2], [0.4, 0.9], [0.6, 0.5], [0.9, 0.1]])
W = np.array([0.9, -0.4, 0.6, 0.2, -0.7])
V = np.stack([W, W[::-1]], axis=1)
QUERIES = np.array([[0.2, 0.8], [0.55, 0.05], [1.0, 0.0]])
BUDGET = {"epsilon": 2.0, "delta": 1e-5}
SPLIT = {**BUDGET, "delta_prime": 1e-5}
RANGES = {"upper": 1.0, "weight_bound": 1.0}

# name → (class, data, options, queries): every class, and every way to read and to account.
STRUCTURES = {
    "tree": (paper.DPTree, (W,), {"sensitivity": 2.0, "upper": 1.0, **BUDGET}, QUERIES[:, 0]),
    "tree-consistent": (
        paper.DPTree,
        (W,),
        {
            "sensitivity": 2.0,
            "upper": 1.0,
            "accounting": "tight",
            "estimator": "consistent",
            "branching": 4,
            "noise": "gaussian",
            **BUDGET,
        },
        QUERIES[:, 0],
    ),
    "tree-boosted": (
        paper.DPTreeBoosted,
        (W,),
        {"sensitivity": 2.0, "upper": 1.0, "delta_fail": 0.01, "copies": 3, **BUDGET},
        QUERIES[:, 0],
    ),
    "distance": (
        paper.DPTreeDistance,
        (X[:, 0], W),
        {"p": 1, "lower": -1.0, "noise": "laplace", **RANGES, **BUDGET},
        QUERIES[:, 0],
    ),
    "high-dim": (paper.DPTreeHighDim, (X, W), {"p": 2, "c": 0.3, **RANGES, **SPLIT}, QUERIES),
    "high-dim-adaptive": (
        paper.DPTreeHighDimAdaptive,
        (X, W),
        {"p_f": 0.1, "eps_0": 0.2, "copies": 2, "estimator": "consistent", **RANGES, **SPLIT},
        QUERIES,
    ),
    "softmax": (paper.DPTreeSoftmax, (X, W), {"eps_s": 0.2, "c": 0.2, **RANGES, **SPLIT}, QUERIES),
    "softmax-adaptive": (
        paper.DPTreeSoftmaxAdaptive,
        (X, W),
        {
            "degree": 1,
            "scale": 0.4,
            "lower": -0.5,
            "accounting": "tight",
            "p_f": 0.1,
            **RANGES,
            **SPLIT,
        },
        QUERIES,
    ),
    "attention": (
        paper.DPCrossAttention,
        (X, V),
        {"eps_s": 0.4, "upper": 1.0, "value_bound": 1.0, "p_f": 0.1, "copies": 1, **SPLIT},
        QUERIES,
    ),
    "attention-entry": (
        paper.DPCrossAttention,
        (X, V),
        {
            "degree": 1,
            "upper": 1.0,
            "value_bound": 1.0,
            "p_f": 0.1,
            "scope": "entry",
            "accounting": "tight",
            **SPLIT,
        },
        QUERIES,
    ),
}


def made(name):
    kind, data, options, _ = STRUCTURES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # answers of five rows are noise
        return kind(*data, entropy=Seeded(2026), **options)


def facts_of(structure, name):
    """What a structure answers and promises, as JSON holds it."""
    queries = STRUCTURES[name][3]
    asked = {"answers": structure.query(queries), "variance": structure.variance(queries)}
    if isinstance(structure, paper.DPCrossAttention):
        asked["sums"] = structure.sums(queries)
    lists = {
        key: [np.asarray(each).tolist() for each in (part if isinstance(part, tuple) else (part,))]
        for key, part in asked.items()
    }
    return {
        "class": type(structure).__name__,
        **lists,
        "error_bound": structure.error_bound(0.9),
        "epsilon": structure.guarantee.epsilon,
        "delta": structure.guarantee.delta,
        "tight_epsilon": structure.tight_guarantee.epsilon,
        "tight_delta": structure.tight_guarantee.delta,
        "scope": structure.guarantee.scope,
        "receipt": structure.receipt.to_dict(),
    }


def write(name):
    """Write one of the files and what it answers."""
    structure = made(name)
    structure.save(FILES / f"structure-v1-{name}.safetensors")
    text = json.dumps(facts_of(structure, name), indent=1, ensure_ascii=False)
    (FILES / f"structure-v1-{name}.json").write_text(text + "\n", encoding="utf-8")


@pytest.mark.parametrize("name", STRUCTURES)
def test_a_file_of_the_first_version_loads_and_answers_as_it_did(name):
    then = json.loads((FILES / f"structure-v1-{name}.json").read_text(encoding="utf-8"))
    with pytest.warns(NotPrivateWarning):
        structure = discreet.load(FILES / f"structure-v1-{name}.safetensors")
    now = facts_of(structure, name)
    for key in ("answers", "variance", "sums"):
        for mine, theirs in zip(now.pop(key, []), then.pop(key, []), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9)
    # The account of the same nodes may become tighter, and bounds better.
    assert now.pop("tight_epsilon") <= then.pop("tight_epsilon") * (1 + 1e-9)
    assert now.pop("error_bound") <= then.pop("error_bound") * (1 + 1e-9)
    assert now == then


def test_every_class_has_a_file():
    kinds = {kind for kind, *_ in STRUCTURES.values()}
    classes = [getattr(paper, each) for each in paper.__all__]
    assert kinds == {each for each in classes if hasattr(each, "query")}
