"""The next W: a step whose noise is fixed in advance, and shorter where it would overshoot."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.readers.rounds.descent import Descent, Preconditioner
from discreet.readers.softmax.mechanism import PACE


@pytest.mark.parametrize("rounds", [1, 4, 16, 100])
@pytest.mark.parametrize("noise", [0.3, 7.0])
@pytest.mark.parametrize(
    ("features", "reach"), [(1, 2.6), (16, 1.3 * math.sqrt(2)), (256, 1.3), (257, 1.3), (4096, 1.3)]
)
def test_a_step_is_as_long_as_the_noise_allows(rounds, noise, features, reach):
    """Longer by the eighth root of what features are too few for 256."""
    descent = Descent.start((features, 2), rounds=rounds, noise=noise, pace=PACE)
    assert descent.step == pytest.approx(reach / (noise * math.sqrt(rounds)))
    assert descent.longest == pytest.approx(32 / descent.step)
    assert np.array_equal(descent.weights, np.zeros((features, 2)))


def test_each_step_goes_against_a_mean_of_gradients():
    gradients = np.random.default_rng(0).normal(size=(4, 3, 2))
    descent = Descent.start((3, 2), rounds=16, noise=1.0, pace=PACE)
    step, weights, mean = descent.step, np.zeros((3, 2)), np.zeros((3, 2))
    for gradient in gradients:
        mean = mean / 2 + gradient / 2
        weights = weights - step * mean
        descent = descent.next(gradient)
        np.testing.assert_allclose(descent.weights, weights)
        assert descent.step == step


def test_all_noise_together_is_what_was_fixed_in_advance():
    """Each round's noise reaches the last W with 1 - 2^-j of itself, j rounds before the end."""
    rounds, noise = 16, 5.0
    rng = np.random.default_rng(1)
    descent = Descent.start((256, 50), rounds=rounds, noise=noise, pace=PACE)
    for _ in range(rounds):
        descent = descent.next(rng.normal(size=(256, 50)) * noise)
    left = 1 - 0.5 ** np.arange(1, rounds + 1)
    assert descent.weights.std() == pytest.approx(1.3 * math.sqrt(np.mean(left**2)), rel=0.03)


def symmetric(seed, size, scale=1.0):
    matrix = np.random.default_rng(seed).normal(size=(size, size)) * scale
    return (matrix + matrix.T) / 2


@settings(max_examples=50)
@given(
    seed=st.integers(0, 10_000),
    size=st.integers(1, 12),
    scale=st.sampled_from([0.0, 1.0, 100.0]),
    noise=st.floats(0, 30),
    most=st.floats(0.1, 100),
)
def test_steps_are_shorter_along_long_directions_and_the_same_along_others(
    seed, size, scale, noise, most
):
    moments = symmetric(seed, size, scale)
    preconditioned = Preconditioner.of(moments, noise, most)
    values, vectors = np.linalg.eigh(moments)
    edge = max(noise * math.sqrt(2 * size), most)
    for value, vector in zip(values, vectors.T, strict=True):
        factor = most / value if value > edge else 1.0
        assert 0 < factor <= 1
        np.testing.assert_allclose(
            preconditioned(vector[:, None])[:, 0], vector * factor, atol=1e-9
        )
    gradient = np.random.default_rng(seed + 1).normal(size=(size, 3))
    assert np.linalg.norm(preconditioned(gradient)) <= np.linalg.norm(gradient) * (1 + 1e-12)
    np.testing.assert_allclose(
        preconditioned.directions.T @ preconditioned.directions,
        np.eye(len(preconditioned.missing)),
        atol=1e-9,
    )


def test_without_long_directions_nothing_is_preconditioned():
    preconditioned = Preconditioner.of(np.diag([3.0, 2.0, -50.0]), 0.0, 3.0)
    gradient = np.ones((3, 2))
    assert np.array_equal(preconditioned(gradient), gradient)


def test_noise_alone_preconditions_next_to_nothing():
    """Its largest eigenvalue is at the edge: √(2·r) deviations of a diagonal entry."""
    size, noise = 300, 4.0
    rng = np.random.default_rng(2)
    upper = np.triu(rng.normal(size=(size, size)) * noise / math.sqrt(2), 1)
    moments = upper + upper.T + np.diag(rng.normal(size=size) * noise)
    preconditioned = Preconditioner.of(moments, noise, 1e-3)
    assert len(preconditioned.missing) <= 2
    largest = np.linalg.eigvalsh(moments).max()
    assert largest == pytest.approx(noise * math.sqrt(2 * size), rel=0.06)
    row = np.zeros((size, 1))
    row[0] = 1
    seen = Preconditioner.of(moments + 4 * noise * math.sqrt(2 * size) * row @ row.T, noise, 1e-3)
    assert np.linalg.norm(seen(row)) < 0.5
