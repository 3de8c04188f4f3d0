"""The noise of least squares is what its settings say, and its ± can be believed."""

import math

import numpy as np
import pytest
from data import unit_rows
from scipy import stats

import discreet
from discreet.features.concatenation import LinearAndFourier
from discreet.features.fourier import UnitFourier
from discreet.features.linear import Linear, UnitLinear
from discreet.sums.settings import part_sigmas
from discreet.testing import Seeded, Silent

# Each test is run at this level; seeds are fixed, so it fails always or never.
ALPHA = 1e-4

DIM = 40


def noises(factor=1.0, builds=12):
    """Noise of sums of no rows, part by part, over what is claimed of it times a factor."""
    parts = []
    for seed in range(builds):
        made = discreet.least_squares(
            np.zeros((0, DIM)),
            np.zeros((0, 3)),
            epsilon=1.0,
            delta=1e-6,
            features="linear",
            entropy=Seeded(seed),
        ).released
        sigmas = part_sigmas(made.layout, made.sigma)
        both = zip((made.state, *made.others), sigmas, strict=True)
        parts.append([part.ravel() / (sigma * factor) for part, sigma in both])
    return [np.concatenate(each) for each in zip(*parts, strict=True)]


@pytest.mark.parametrize("part", [0, 1, 2], ids=["sums", "diagonal", "above it"])
def test_the_noise_is_normal_and_of_the_claimed_size(part):
    noise = noises()[part]
    assert noise.std() == pytest.approx(1, abs=0.05)
    assert stats.kstest(noise, "norm").pvalue > ALPHA
    for factor in (2 / 3, 3 / 2):
        assert stats.kstest(noises(factor)[part], "norm").pvalue < ALPHA


def test_parts_have_noise_of_their_own():
    """Noise that two parts shared would show in one of them."""
    [state, diagonal, upper] = noises(builds=1)
    count = DIM + 1
    for one, other in ((state[:count], diagonal), (diagonal, upper[:count])):
        assert abs(np.corrcoef(one, other)[0, 1]) < 0.7


def test_the_noise_is_that_of_the_shares():
    """σ·√(V² + τ²)/√(1 - share) on sums, σ/√share on the diagonal, and that over √2 above it."""
    sigma = discreet.accounting.gaussian_sigma(epsilon=1.0, delta=1e-6)
    for share in (0.1, 0.25, 0.6):
        made = discreet.least_squares(
            np.zeros((0, DIM)),
            np.zeros((0, 3)),
            epsilon=1.0,
            delta=1e-6,
            features="linear",
            share=share,
            entropy=Silent(),
        ).released
        tau = made.layout.real_tau
        on_sums, diagonal, upper = part_sigmas(made.layout, made.sigma)
        unit = made.layout.kernel.unit
        assert on_sums * made.layout.real_unit == pytest.approx(
            sigma * math.hypot(1, tau) / math.sqrt(1 - share), rel=1e-3
        )
        assert diagonal / unit**2 == pytest.approx(sigma / math.sqrt(share), rel=1e-3)
        assert upper / unit**2 == pytest.approx(sigma / math.sqrt(2 * share), rel=1e-3)


def rows_of(kind, count, dim):
    rng = np.random.default_rng(5)
    rows = unit_rows(count, dim, seed=4)
    if kind == "clusters":
        rows = rows + 1.5 * unit_rows(6, dim, seed=6)[rng.integers(0, 6, count)]
    if kind == "few directions":
        rows = rows / np.arange(1, dim + 1)
    if kind == "columns":
        return rng.uniform(-1, 1, (count, dim)) / math.sqrt(dim)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


CELLS = [
    ("even", 5_000, 12, "linear", 1.0),
    ("even", 20_000, 12, "waves", 1.0),
    ("even", 1_000, 8, "rays", 4.0),
    ("clusters", 5_000, 12, "waves", 1.0),
    ("clusters", 20_000, 12, "rays", 0.5),
    ("few directions", 5_000, 12, "waves", 4.0),
    ("few directions", 20_000, 12, "linear", 0.5),
    ("columns", 20_000, 8, "lines and waves", 0.5),
    pytest.param(("columns", 20_000, 8, "many waves", 1.0), marks=pytest.mark.slow),
    pytest.param(("columns", 5_000, 8, "many waves", 4.0), marks=pytest.mark.slow),
]


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: "-".join(map(str, cell)))
def test_standard_errors_hold_as_often_as_they_should(cell):
    """Against the solution without noise, at the same λ: 91 to 99% within 1.96 of them."""
    kind, count, dim, name, epsilon = cell
    rows = rows_of(kind, count + 200, dim)
    keys, queries = rows[:count], rows[count:]
    values = np.tanh(3 * keys @ unit_rows(2, dim, seed=7).T) / math.sqrt(2)
    features = {
        "linear": Linear(dim),
        "rays": UnitLinear(dim),
        "waves": UnitFourier(dim, frequencies=64, scale=3.0, key_norm=1.0, query_norm=1.0),
        "many waves": UnitFourier(dim, frequencies=160, scale=2.5, key_norm=1.0, query_norm=1.0),
        "lines and waves": LinearAndFourier(
            UnitLinear(dim),
            UnitFourier(dim, frequencies=64, scale=6.0, key_norm=1.0, query_norm=1.0),
        ),
    }[name]
    options = {"epsilon": epsilon, "delta": 1e-5, "features": features}
    truth = discreet.least_squares(keys, values, **options, entropy=Silent()).predict(queries)
    held, squares = [], []
    for seed in range(20):
        made = discreet.least_squares(keys, values, **options, entropy=Seeded(seed))
        predicted, errors = made.predict(queries, stderr=True)
        held.append(np.mean(np.abs(predicted - truth) <= 1.96 * errors))
        squares.append([np.mean((predicted - truth) ** 2), np.mean(errors**2)])
    assert 0.91 <= np.mean(held) <= 0.99
    measured, said = np.sqrt(np.mean(squares, axis=0))
    assert 0.75 < said / measured < 1.5
