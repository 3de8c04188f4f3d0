import math

import numpy as np
import pytest

from discreet import accounting
from discreet.accounting import compose, loss

ONE = {"neighbours": "replace"}


def part(count, rng, size=12):
    masses = rng.random(size)
    return loss._Loss(masses / masses.sum(), -size // 2, 0.0, count, 0.1)


@pytest.mark.parametrize("tilt", [0.0, 0.5, 3.0])
@pytest.mark.parametrize("counts", [(1,), (2,), (7,), (3, 4), (1, 1, 5)])
def test_the_reported_error_covers_the_real_one(counts, tilt):
    """Against plain convolution in extended precision; the bound must hold and not be absurd."""
    rng = np.random.default_rng(5)
    parts = [part(count, rng) for count in counts]
    exact = np.ones(1, dtype=np.longdouble)
    for one in parts:
        for _ in range(one.count):
            exact = np.convolve(exact, one.tilted(tilt).astype(np.longdouble))
    window = loss._window(parts, tilt)
    masses, error = loss._convolve(parts, tilt, window)
    start = window[0] - sum(one.count * one.lowest for one in parts)
    window = exact[start : start + len(masses)]
    assert float(np.abs(masses[: len(window)] - window).sum()) <= error < 1e-10
    assert float(exact.sum() - window.sum()) <= 2 * loss._OUTSIDE


def test_the_numerical_error_is_charged(monkeypatch):
    mechanism = accounting.Laplace(scale=10.0, sensitivity=1.0, **ONE)
    usual = compose.composed_epsilon([(mechanism, 50)], 1e-6)
    convolve = loss._convolve
    monkeypatch.setattr(loss, "_convolve", lambda *a: (convolve(*a)[0], 1e-3))
    assert compose.composed_epsilon([(mechanism, 50)], 1e-6) > usual * (1 + 1e-5)
    # An error that leaves nothing of δ: no answer from the grid, but one from the closed form.
    monkeypatch.setattr(loss, "_convolve", lambda *a: (convolve(*a)[0], 1e3))
    assert loss.epsilon_on_grid([(mechanism, 50)], 1e-6) == math.inf
    assert usual < compose.composed_epsilon([(mechanism, 50)], 1e-6) < 1.2 * usual


def test_rounding_errors_of_the_masses_are_charged_for_each_mechanism(monkeypatch):
    """And not only up to some number of them: where they exceed half of δ, the grid is silent."""
    mechanism = accounting.Laplace(scale=10.0, sensitivity=1.0, **ONE)
    usual = loss.epsilon_on_grid([(mechanism, 40)], 1e-6)
    monkeypatch.setattr(loss, "_MASS_ERROR", 0.01)
    assert usual < loss.epsilon_on_grid([(mechanism, 40)], 1e-6) < 1.1 * usual
    assert loss.epsilon_on_grid([(mechanism, 50)], 1e-6) == math.inf
    assert compose.composed_epsilon([(mechanism, 50)], 1e-6) < math.inf


def test_no_answer_lies_below_the_window():
    losses, masses = np.array([1.0, 1.5]), np.array([1e-3, 1e-3])
    assert loss._epsilon_at(losses, masses, 0.5) == 1.0
    assert loss._epsilon_at(losses, masses, 0.0) == math.inf


def test_epsilon_solves_its_equation():
    rng = np.random.default_rng(1)
    losses = np.linspace(-2, 3, 51)
    masses = rng.random(51)
    masses /= masses.sum()
    for delta in (1e-4, 1e-2, 0.3):
        epsilon = loss._epsilon_at(losses, masses, delta)
        above = losses > epsilon
        reached = np.sum(masses[above] * -np.expm1(epsilon - losses[above]))
        assert reached == pytest.approx(delta, rel=1e-9)


@pytest.mark.parametrize("tilt", [0.0, 0.7])
@pytest.mark.parametrize("counts", [(40,), (300, 200), (2_000,)])
def test_the_window_holds_all_that_chernoff_lets_out(counts, tilt):
    """E[e^(±o·loss)]·e^(-o·edge) is at most half of what may be outside, for some order o."""
    rng = np.random.default_rng(7)
    parts = [part(count, rng) for count in counts]
    base = sum(one.log_moment(tilt) for one in parts)
    edges = np.array(loss._window(parts, tilt)) * parts[0].step
    orders = np.geomspace(1e-2, 1e2, 300)
    for sign, edge in zip((-1, 1), edges, strict=True):
        outside = min(
            sum(one.log_moment(tilt + sign * order) for one in parts) - base - sign * order * edge
            for order in orders
        )
        assert outside <= math.log(loss._OUTSIDE / 2)
