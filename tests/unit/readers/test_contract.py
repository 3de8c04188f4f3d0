"""Every reader passes one contract; and a new one is a folder and a line in the registry."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import strategies as st
from reader_contract import Pass, Reader, ReaderContract
from rounds import (
    Recording,
    calibration,
    confidence_table,
    first_round,
    frequency,
    frequency_table,
    later_round,
)
from toy_reader import BIN_MEANS

import discreet
from discreet.features.columns import Bins, TableColumns, Unknown
from discreet.kernels import Fourier
from discreet.readers import registry
from discreet.readers.attention import ATTENTION
from discreet.readers.distances import DISTANCES
from discreet.readers.glm import GLM
from discreet.readers.glm.aiming import aimed
from discreet.readers.least_squares import LEAST_SQUARES
from discreet.readers.rounds.finding import with_found
from discreet.readers.rounds.layout import Weights
from discreet.readers.softmax import SOFTMAX
from discreet.readers.table import TABLE as TABLE_READER
from discreet.sums.settings import Unit
from discreet.sums.source import Form, RowSource
from discreet.testing import Silent

BOUNDS = {"scale": 1.0, "key_norm": 1.0, "query_norm": 1.0}


TABLE = TableColumns((Bins.between(-1, 1, skewed=False), Bins((-0.3, 0.4))))
POINTS = np.random.default_rng(0).normal(size=(12, 2))
UNKNOWN = TableColumns((Unknown(numbers=True), Unknown(numbers=False)))


def weights_of(layout, seed):
    """W of any length."""
    shape = (layout.kernel.features, layout.columns)
    length = [0.0, 1e-6, 1.0, 30.0, 1e4][seed % 5]
    return np.random.default_rng(seed).normal(size=shape) * length


def counted(whole):
    """What is counted before the first round, and the settings with what it came to."""
    [layout] = whole.layouts
    groups = None if whole.unit is Unit.ROW else np.zeros(1, int)
    rows = RowSource.of(
        np.zeros((1, 2)), np.zeros((1, layout.value_width)), groups, Form(passes=True)
    )
    door = Recording(whole, entropy=Silent())
    layout = with_found(rows, door, layout)
    if whole.layouts[0].noun == GLM.answers.layout.noun:
        layout = aimed(rows, door, layout)
    passes = [Pass(settings=each.settings, view=each.view) for each in door.asked]
    return passes, replace(whole, layouts=(layout,))


def rounds(whole, seed):
    """The first round, a later one, and what is counted before them."""
    before, whole = counted(whole)
    weights = weights_of(whole.layouts[0], seed)
    return [
        Pass(settings=first_round(whole)),
        Pass(settings=later_round(whole, Weights.of(weights))),
        *before,
    ]


def rounds_and_calibration(whole, seed):
    """And the calibration, in one pass or two."""
    passes = rounds(whole, seed)
    _, whole = counted(whole)
    [layout] = whole.layouts
    weights = weights_of(layout, seed)
    passes.append(
        Pass(
            settings=calibration(whole),
            view=lambda table: confidence_table(table, layout, weights),
        )
    )
    if layout.keeps_more:
        passes.append(
            Pass(
                settings=frequency(whole),
                view=lambda table: frequency_table(table, layout, weights),
            )
        )
    return passes


READERS = {
    "attention": Reader(
        mechanism=ATTENTION,
        options={"scale": 1.0, "kernel": "minimax", "eps_s": 0.5},
        answer=lambda release, queries: release.attend(queries),
        front=discreet.build,
        planned={"value_dim": 2},
    ),
    "attention with heads": Reader(
        mechanism=ATTENTION,
        options={"kernel": Fourier(2, frequencies=8, **BOUNDS)},
        heads=(2,),
        answer=lambda release, queries: release.attend(queries),
        front=discreet.build,
        planned={"value_dim": 2},
    ),
    "least squares": Reader(
        mechanism=LEAST_SQUARES,
        options={"features": "linear"},
        answer=lambda release, queries: release.predict(queries),
        front=discreet.least_squares,
    ),
    "least squares without second moments": Reader(
        mechanism=LEAST_SQUARES,
        options={"features": "rays", "share": 0.0},
        answer=lambda release, queries: release.predict(queries),
        front=discreet.least_squares,
    ),
    "softmax": Reader(
        mechanism=SOFTMAX,
        options={"features": "rays", "classes": [0, 1]},
        value_dim=None,
        values=st.integers(0, 1),
        answer=lambda release, queries: release.probabilities(queries),
        front=discreet.softmax_regression,
        passes=rounds_and_calibration,
    ),
    "softmax of a table": Reader(
        mechanism=SOFTMAX,
        options={"features": TABLE, "classes": [0, 1]},
        value_dim=None,
        values=st.integers(0, 1),
        answer=lambda release, queries: release.probabilities(queries),
        front=discreet.softmax_regression,
        passes=rounds_and_calibration,
    ),
    "softmax of a table with unknown columns": Reader(
        mechanism=SOFTMAX,
        options={"features": UNKNOWN.with_waves(4), "classes": [0, 1]},
        value_dim=None,
        values=st.integers(0, 1),
        answer=lambda release, queries: release.probabilities(queries),
        front=discreet.softmax_regression,
        passes=rounds_and_calibration,
    ),
    "numbers in rounds": Reader(
        mechanism=GLM,
        options={"features": "linear"},
        answer=lambda release, queries: release.predict(queries),
        passes=rounds,
        planned=None,
    ),
    "numbers of a table with unknown columns": Reader(
        mechanism=GLM,
        options={"features": UNKNOWN},
        answer=lambda release, queries: release.predict(queries),
        passes=rounds,
        planned=None,
    ),
    "labels of a table in rounds": Reader(
        mechanism=GLM,
        options={"features": TABLE, "loss": "logistic"},
        value_dim=3,
        answer=lambda release, queries: release.predict(queries),
        passes=rounds,
        planned=None,
    ),
    "distances": Reader(
        mechanism=DISTANCES,
        options={"p": 1.5, "bounds": (-1.0, 1.0), "features": 80},
        value_dim=1,
        answer=lambda release, queries: release.query(queries),
        front=discreet.distances,
    ),
    "distances without weights": Reader(
        mechanism=DISTANCES,
        options={"p": 1, "bounds": (-1.0, 1.0), "features": 80, "weighted": False},
        value_dim=1,
        answer=lambda release, queries: release.query(queries),
    ),
    "table": Reader(
        mechanism=TABLE_READER,
        options={"points": POINTS, "classes": [0, 1]},
        value_dim=None,
        values=st.integers(0, 1),
        answer=lambda release, _: release.cells,
        delta=0.0,
    ),
    "table of many labels": Reader(
        mechanism=TABLE_READER,
        options={"points": POINTS, "classes": range(7)},
        value_dim=None,
        values=st.integers(0, 6),
        answer=lambda release, _: release.cells,
        delta=0.0,
    ),
    "table without labels": Reader(
        mechanism=TABLE_READER,
        options={"points": POINTS},
        value_dim=1,
        answer=lambda release, _: release.counts,
        delta=0.0,
    ),
}


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS, scope="class")
class TestReaders(ReaderContract):
    """Those that are registered."""


def test_every_reader_that_is_registered_is_here():
    assert {each.mechanism for each in READERS.values()} == set(registry.MECHANISMS)


class TestToy(ReaderContract):
    """One that only this test knows: no line of the engine does."""

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def known(cls):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(registry, "MECHANISMS", (*registry.MECHANISMS, BIN_MEANS))
            yield

    @pytest.fixture(scope="class")
    @classmethod
    def reader(cls):
        return Reader(
            mechanism=BIN_MEANS,
            options={"edges": (-0.5, 0.0, 0.4)},
            answer=lambda release, queries: release.means(queries),
            planned={"value_dim": 2},
        )
