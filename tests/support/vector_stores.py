"""Rows that every store gets, and what a store must give: the bits that arrays give."""

from contextlib import closing

import numpy as np
import pyarrow as pa
import pytest
from data import unit_rows

import discreet
from discreet.errors import InvalidInput
from discreet.tables import Rows
from discreet.testing import Seeded

COUNT, DIM = 300, 8
EMBEDDING = unit_rows(COUNT, DIM).astype(np.float32)
# Chroma itself changes the last bit of some numbers of 64 bits: not of these.
RATING = np.linspace(-1, 1, COUNT).round(2)
PERSON = np.arange(COUNT) * 7 % 100
BOTH = np.stack([RATING, PERSON], axis=1)
NAME = [f"né {each}" for each in PERSON]
KIND = ["yes" if each > 0 else "no" for each in EMBEDDING[:, 0]]
TABLE = pa.table(
    {
        "embedding": pa.FixedSizeListArray.from_arrays(pa.array(EMBEDDING.ravel()), DIM),
        "rating": RATING,
        "person": PERSON,
        "name": NAME,
        "kind": KIND,
    }
)
CHANGED = "the same rows whenever they are read"

_OPTIONS = {"epsilon": 1.0, "delta": 1e-6}


def bits(*rows, **more):
    """Return the noisy integers of a memory."""
    options = {"scale": 1.0, "kernel": "minimax", "eps_s": 0.2}
    return discreet.build(*rows, **_OPTIONS, **options, **more, entropy=Seeded(3)).released.state


def logits(*rows, **more):
    """Return what a classifier answers that was trained in rounds."""
    model = discreet.softmax_regression(
        *rows,
        classes=["no", "yes"],
        features="linear",
        **_OPTIONS,
        **more,
        entropy=Seeded(4),
    )
    return model.logits(np.eye(DIM))


def coefficients(*rows, **more):
    """Return what a regression answers."""
    fit = discreet.least_squares(*rows, features="linear", **_OPTIONS, **more, entropy=Seeded(5))
    return fit.predict(np.eye(DIM))


def check_bits(store):
    """Check that a store gives what arrays give: rows, records by numbers and by texts, labels."""
    same = np.testing.assert_array_equal
    same(bits(store, values="rating"), bits(EMBEDDING, RATING[:, None]))
    for groups, ids in (("person", PERSON), ("name", NAME)):
        got = bits(store, values="rating", groups=groups)
        same(got, bits(EMBEDDING, RATING[:, None], groups=ids))
    got = logits(store, labels="kind", groups="person")
    same(got, logits(EMBEDDING, KIND, groups=PERSON))
    same(coefficients(store, values="rating,person"), coefficients(EMBEDDING, BOTH))


def refused(store, match, **names):
    """Check that a store is refused with a sentence, which holds nothing that is in a row."""
    keys = names.pop("keys", None)
    with (
        pytest.raises(InvalidInput, match=match) as caught,
        closing(Rows(store, keys=keys, **{"values": "rating", **names})) as rows,
    ):
        bits(rows)
    shown = str(caught.value)
    assert "né" not in shown
    assert "secret" not in shown
