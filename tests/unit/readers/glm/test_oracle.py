"""A plain loop in floating point comes to the same coefficients, if nothing is hidden by noise."""

import numpy as np
import pytest
from glm import LINEAR, phi, plain_descent
from rounds import asked_by, some_cells, tables

from discreet.readers.glm.answers import LOGISTIC_PACE, SQUARED_PACE
from discreet.readers.glm.mechanism import GLM

ROWS = 3_000
MAPS = tables() | {"linear": LINEAR}


def keys_of(kind):
    if kind == "linear":
        return np.random.default_rng(0).normal(size=(ROWS, 3)) * 0.6
    return some_cells(MAPS[kind], ROWS)


def fitted(kind, values, epsilon, **changes):
    options = {"epsilon": epsilon, "delta": 1e-6, "features": MAPS[kind], "rows_hint": ROWS}
    options |= {"key_norm": 2.0} if kind == "linear" else {}
    return asked_by(GLM, keys_of(kind), values, **options | changes)[1]


def scores_of(kind, outputs, seed=1):
    """Numbers that depend on the features."""
    features = phi(MAPS[kind], keys_of(kind))
    rng = np.random.default_rng(seed)
    return features @ rng.normal(size=(features.shape[1], outputs)) * 0.7


@pytest.mark.parametrize("epsilon", [0.3, 2.0])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("kind", MAPS)
@pytest.mark.parametrize("aim", [True, False])
def test_numbers_are_learnt_as_in_a_plain_loop(kind, outputs, aim, epsilon):
    values = np.clip(0.3 + 0.4 * scores_of(kind, outputs), -1.2, 1.2)
    made = fitted(kind, values, epsilon, aim=aim)
    layout = made.released.layout
    centre, reach = np.array(layout.centre), np.array(layout.reach)
    if aim:
        assert np.any(reach < 1)
    else:
        assert (layout.centre, layout.reach) == ((0.0,) * outputs, (1.0,) * outputs)
    there = np.clip((np.clip(values, -1, 1) - centre) / reach, -1, 1)
    weights = plain_descent(
        phi(MAPS[kind], keys_of(kind)),
        outputs,
        lambda scores: np.clip(scores, -4, 4) - there,
        clip=layout.clip,
        share=layout.of_round,
        moments=layout.moments,
        pace=SQUARED_PACE,
        epsilon=epsilon,
    )
    largest = np.abs(weights).max()
    assert largest > 0.05
    np.testing.assert_allclose(made.coefficients, weights, atol=2e-3 * largest)
    queries = keys_of(kind)[:50]
    predicted = np.clip(centre + reach * (phi(MAPS[kind], queries) @ weights), -1, 1)
    np.testing.assert_allclose(made.predict(queries), predicted, atol=5e-3)


@pytest.mark.parametrize("epsilon", [0.3, 2.0])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("kind", MAPS)
def test_labels_are_learnt_as_in_a_plain_loop(kind, outputs, epsilon):
    values = (scores_of(kind, outputs) > 0.1) * 1.0
    made = fitted(kind, values, epsilon, loss="logistic")
    layout = made.released.layout
    weights = plain_descent(
        phi(MAPS[kind], keys_of(kind)),
        outputs,
        lambda scores: 1 / (1 + np.exp(-scores)) - values,
        clip=layout.clip,
        share=layout.of_round,
        moments=layout.moments,
        pace=LOGISTIC_PACE,
        epsilon=epsilon,
    )
    largest = np.abs(weights).max()
    assert largest > 0.05
    np.testing.assert_allclose(made.coefficients, weights, atol=5e-3 * largest)
    queries = keys_of(kind)[:50]
    predicted = 1 / (1 + np.exp(-phi(MAPS[kind], queries) @ weights))
    np.testing.assert_allclose(made.predict(queries), predicted, atol=5e-3)


def test_numbers_and_labels_are_found_where_there_is_no_noise_to_speak_of():
    """The oracle shares its idea with the code; this one does not."""
    values = np.clip(0.3 * scores_of("mixed", 2), -1, 1)
    made = fitted("mixed", values, 30.0)
    left = values - made.predict(keys_of("mixed"))
    assert np.var(left) < 0.05 * np.var(values)
    labels = (scores_of("mixed", 2) > 0) * 1.0
    made = fitted("mixed", labels, 30.0, loss="logistic")
    assert np.mean((made.predict(keys_of("mixed")) > 0.5) == labels) > 0.93
