"""Every reader passes one contract; and a new one is a folder and a line in the registry."""

import numpy as np
import pytest
from hypothesis import strategies as st
from reader_contract import Pass, Reader, ReaderContract
from rounds import calibration, confidence_table, first_round, later_round
from toy_reader import BIN_MEANS

import discreet
from discreet.kernels import Fourier
from discreet.readers import registry
from discreet.readers.attention import ATTENTION
from discreet.readers.distances import DISTANCES
from discreet.readers.least_squares import LEAST_SQUARES
from discreet.readers.softmax import SOFTMAX
from discreet.readers.softmax.layout import Weights

BOUNDS = {"scale": 1.0, "key_norm": 1.0, "query_norm": 1.0}


def rounds(whole, seed):
    """The first round, a later one, and the calibration; W is of any length."""
    [layout] = whole.layouts
    shape = (layout.kernel.features, layout.columns)
    length = [0.0, 1e-6, 1.0, 30.0, 1e4][seed % 5]
    weights = np.random.default_rng(seed).normal(size=shape) * length
    return [
        Pass(settings=first_round(whole)),
        Pass(settings=later_round(whole, Weights.of(weights))),
        Pass(
            settings=calibration(whole),
            view=lambda table: confidence_table(table, layout, weights),
        ),
    ]


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
        passes=rounds,
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
