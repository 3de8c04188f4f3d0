"""As much noise again tells how far the noise has moved a prediction."""

import math

import numpy as np
import pytest
from data import unit_rows

import discreet
from discreet.features.fourier import UnitFourier
from discreet.features.linear import Linear
from discreet.readers.least_squares.solution import Doubled
from discreet.testing import Seeded

DIM = 6


def fitted(rows=50_000, **options):
    keys = unit_rows(rows, DIM)
    values = keys @ unit_rows(2, DIM, seed=1).T / 2
    given = {"epsilon": 1.0, "delta": 1e-6, "features": Linear(DIM), "entropy": Seeded(0)}
    return discreet.least_squares(keys, values, **given | options)


def test_of_many_rows_it_is_what_calculus_says():
    """½·σ_G²·(‖x‖²·‖w‖² + ⟨x, w⟩²) with x = (G₊ + λ)⁻¹·φ, and hardly any bias."""
    made = fitted()
    solution, doubled = made.solution, Doubled.of(made.released, made.solution)
    features = unit_rows(400, DIM + 1, seed=2)
    x, w = features @ solution.inverse[0], solution.weights[0]
    lengths = np.sum(x * x, axis=1)[:, None] * np.sum(w * w, axis=0)
    exact = solution.moments_sigma[0] ** 2 / 2 * (lengths + (x @ w) ** 2)
    apart = np.einsum("mr,rpc->mpc", features, doubled.apart[0])
    widening = 2.306 / 1.96  # Student's quantile for eight pairs, over the normal one
    ratio = np.mean(apart**2) / np.mean(exact) / widening**2
    assert 0.7 < ratio < 1.4
    assert np.mean((features @ doubled.bias[0]) ** 2) < 0.01 * np.mean(exact)


def test_noise_that_is_clipped_is_a_bias():
    """In directions without rows noise acts like more λ: with more of it solutions are shorter."""
    waves = UnitFourier(DIM, frequencies=64, scale=2.5, key_norm=1.0, query_norm=1.0)
    made = fitted(5_000, features=waves)
    doubled = Doubled.of(made.released, made.solution)
    [weights], [bias] = made.solution.weights, doubled.bias
    assert np.sum(weights * bias) < 0


def test_second_moments_without_noise_move_nothing():
    made = fitted(share=0.0)
    doubled = Doubled.of(made.released, made.solution)
    assert not np.any(doubled.apart)
    assert not np.any(doubled.bias)
    queries = unit_rows(5, DIM, seed=3)
    features = np.hstack([np.ones((5, 1)), queries]) / math.sqrt(2)
    x = features @ made.solution.inverse[0]
    wanted = np.linalg.norm(x, axis=1)[:, None] * made.solution.centred_sigma[0]
    _, error = made.predict(queries, stderr=True)
    np.testing.assert_allclose(error, np.broadcast_to(wanted, error.shape), rtol=0.01)


def test_the_same_release_has_the_same_error(tmp_path):
    made, queries = fitted(1_000), unit_rows(5, DIM, seed=3)
    made.save(tmp_path / "fit.safetensors")
    with pytest.warns(discreet.NotPrivateWarning):
        again = discreet.load(tmp_path / "fit.safetensors")
    both = (each.predict(queries, stderr=True) for each in (made, again))
    for one, other in zip(*both, strict=True):
        assert np.array_equal(one, other)
