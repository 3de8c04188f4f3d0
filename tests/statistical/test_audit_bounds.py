"""Audits of ideal releases: wrong as rarely as they say, and near the truth."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import special, stats

from discreet.accounting import DiscreteLaplace, gaussian_epsilon, gaussian_sigma
from discreet.accounting.promise import Promise
from discreet.audit.catalogue import named
from discreet.audit.experiments import Draw, few_rows
from discreet.audit.pairs import Run
from discreet.audit.report import Noise
from discreet.privacy import Guarantee
from discreet.testing import Seeded

# Each is run with a fixed seed, so it fails always or never.
ALPHA = 1e-3
AUDITS, BUILDS, CONFIDENCE = 200, 240, 0.9
DELTA = 1e-5


class Gaussians:
    """Releases of one number, with noise that is `times` what is claimed."""

    additive = fixed = True

    def __init__(self, seed, times):
        self.mu = 1 / gaussian_sigma(epsilon=1.0, delta=DELTA)
        self.rng, self.times = np.random.default_rng(seed), times

    def mechanisms(self, times):
        return []

    def draw(self, side, entropy):
        noise = self.times * self.rng.normal()
        score = self.mu * noise + (self.mu**2 / 2 if side else -(self.mu**2) / 2)
        return Draw(score, self.mu**2, noise**2, 3.0, 1)


class Adaptive:
    """Passes that stop where it suits, by what came out: where both sides look nearly alike."""

    additive, fixed = True, False

    def __init__(self, seed, mu, passes=200):
        self.rng, self.mu, self.passes = np.random.default_rng(seed), mu, passes

    def mechanisms(self, times):
        return []

    def draw(self, side, entropy):
        walk = np.cumsum(self.rng.normal(size=self.passes)) * self.mu / math.sqrt(self.passes)
        squared = self.mu**2 * np.arange(1, self.passes + 1) / self.passes
        scores = walk + (squared / 2 if side else -squared / 2)
        stops = np.flatnonzero(np.abs(scores) <= squared)
        at = stops[0] if len(stops) else self.passes - 1
        return Draw(scores[at], squared[at])


class Laplaces:
    """Releases of one number with Laplace noise, with nothing known but the number."""

    additive = fixed = False

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


def test_distances_that_follow_from_noise_make_no_bound():
    mu = 1.0
    epsilon = gaussian_epsilon(sigma=1.0, delta=DELTA, sensitivity=mu)
    run = Run(builds=BUILDS, confidence=CONFIDENCE, workers=1)
    claim = Promise(Guarantee(epsilon, DELTA, "add_remove", unit="row", scope="passes"), mu)
    held = [
        run.audit(Adaptive(seed, mu), claim, name="adaptive", began=0.0).holds for seed in range(50)
    ]
    assert likely(held.count(False), 1 - CONFIDENCE)


def test_few_distances_that_fall_short_cost_little():
    """One in a hundred: what is found is less, and not much less."""
    mu, count = 1.0, 4_000
    epsilon = gaussian_epsilon(sigma=1.0, delta=DELTA, sensitivity=mu)

    class Nearly(Gaussians):
        fixed = False

        def draw(self, side, entropy):
            whole, seldom = super().draw(side, entropy), self.rng.uniform() < 0.01
            return replace(whole, score=0.0, squared=0.0) if seldom else whole

    made = Nearly(3, 1.0)
    made.mu = mu
    run = Run(builds=count, confidence=0.99, workers=1)
    claim = Promise(Guarantee(epsilon, DELTA, "add_remove", unit="row", scope="passes"), mu)
    lower = run.audit(made, claim, name="nearly", began=0.0).epsilon_lower
    assert 0.8 * epsilon < lower < epsilon


def test_rounds_are_looked_at_as_far_as_every_path_goes():
    """What is seen of them is one normal number around either side, though distances vary."""
    [case] = named(["softmax"])
    with few_rows():
        program, promise = case.make(1.0, DELTA)
        drawn = [program.draw(side, Seeded(seed)) for seed in range(80) for side in (0, 1)]
    squared = np.array([each.squared for each in drawn])
    assert np.ptp(squared) <= 1e-9 * squared[0]
    assert squared[0] == pytest.approx(0.97 * promise.mu**2)
    sign = np.where(np.arange(len(drawn)) % 2, 1, -1)
    noise = (np.array([each.score for each in drawn]) - sign * squared / 2) / np.sqrt(squared)
    assert abs(noise.mean()) < stats.norm.isf(ALPHA / 2) / math.sqrt(len(noise))
    low, high = stats.chi2(len(noise)).ppf([ALPHA / 2, 1 - ALPHA / 2])
    assert low < noise @ noise < high
    assert not low < (2 / 3) ** 2 * noise @ noise < high
    assert not low < (3 / 2) ** 2 * noise @ noise < high


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
