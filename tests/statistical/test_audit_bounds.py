"""Audits of ideal releases: wrong as rarely as they say, and near the truth."""

import math

import numpy as np
import pytest
from scipy import special

from discreet.accounting import DiscreteLaplace, gaussian_sigma
from discreet.accounting.promise import Promise
from discreet.audit.experiments import Draw
from discreet.audit.pairs import Noise, Run
from discreet.privacy import Guarantee

# Each is run with a fixed seed, so it fails always or never.
ALPHA = 1e-3
AUDITS, BUILDS, CONFIDENCE = 200, 240, 0.9
DELTA = 1e-5


class Gaussians:
    """Releases of one number, with noise that is `times` what is claimed."""

    additive = True

    def __init__(self, seed, times):
        self.mu = 1 / gaussian_sigma(epsilon=1.0, delta=DELTA)
        self.rng, self.times = np.random.default_rng(seed), times

    def mechanisms(self, times):
        return []

    def draw(self, side, entropy):
        noise = self.times * self.rng.normal()
        score = self.mu * noise + (self.mu**2 / 2 if side else -(self.mu**2) / 2)
        return Draw(score, self.mu**2, noise**2, 3.0, 1)


class Laplaces:
    """Releases of one number with Laplace noise, with nothing known but the number."""

    additive = False

    def __init__(self, seed, times):
        self.rng, self.times = np.random.default_rng(seed), times

    def mechanisms(self, times):
        return []

    def draw(self, side, entropy):
        return Draw(side + self.times * self.rng.laplace())


def guarantee(delta):
    return Guarantee(1.0, delta, "add_remove", unit="row", scope="a number")


def found(kind, times, *, mu=None, delta=DELTA, audits=AUDITS):
    run = Run(builds=BUILDS, confidence=CONFIDENCE, workers=1)
    promise = Promise(guarantee(delta), mu)
    return np.array(
        [
            run.audit(kind(seed, times), promise, name="ideal", began=0.0).epsilon_lower
            for seed in range(audits)
        ]
    )


def likely(wrong, share):
    """Whether so many of all audits are wrong by chance, if a share of them is at most."""
    return special.bdtrc(wrong - 1, AUDITS, share) > ALPHA


def test_a_promise_that_is_kept_is_refuted_as_rarely_as_said_and_nearly_reached():
    mu = 1 / gaussian_sigma(epsilon=1.0, delta=DELTA)
    epsilons = found(Gaussians, 1.0, mu=mu)
    assert likely(int(np.sum(epsilons > 1)), 1 - CONFIDENCE)
    assert np.median(epsilons) > 0.85
    # Were it wrong in one of three, or never near: that would be seen.
    assert not likely(AUDITS // 3, 1 - CONFIDENCE)


@pytest.mark.parametrize("times", [2 / 3, 3 / 2])
def test_noise_of_another_size_is_told(times):
    mu = 1 / gaussian_sigma(epsilon=1.0, delta=DELTA)
    epsilons = found(Gaussians, times, mu=mu, audits=50)
    if times < 1:
        assert np.mean(epsilons > 1) > 0.95
    else:
        assert np.all(epsilons < 0.8)


def test_what_is_not_gaussian_is_bounded_by_its_definition():
    assert math.isclose(
        DiscreteLaplace(scale=100.0, sensitivity=100, neighbours="add_remove").largest_loss, 1.0
    )
    epsilons = found(Laplaces, 1.0, delta=0.0)
    assert likely(int(np.sum(epsilons > 1)), 1 - CONFIDENCE)
    assert np.median(epsilons) > 0.2
    assert np.mean(found(Laplaces, 0.25, delta=0.0, audits=50) > 1) > 0.95


@pytest.mark.parametrize(("draw", "fourth"), [("normal", 3.0), ("laplace", 6.0)])
def test_noise_is_called_small_as_rarely_as_said_though_numbers_are_few(draw, fourth):
    doubt, size = 0.01, 160
    rng = np.random.default_rng(1)
    squares = (getattr(rng, draw)(size=(AUDITS * 10, size)) ** 2).sum(axis=1)
    unit = 2.0 if draw == "laplace" else 1.0  # their variance

    def small(times):
        draws = [[Draw(0.0, 0.0, times**2 * each / unit, fourth * size, size)] for each in squares]
        return float(np.mean([Noise.of(each, doubt).at_most < 1 for each in draws]))

    assert small(1.0) <= doubt
    assert small(2 / 3) > (0.95 if draw == "normal" else 0.5)
    assert small(3 / 2) == 0


def test_few_numbers_say_nothing_of_noise():
    assert Noise.of([Draw(0.0, 0.0, 0.1, 6.0, 1)], 1e-4).at_most == math.inf
    assert Noise.of([Draw(0.0)], 1e-4) is None
