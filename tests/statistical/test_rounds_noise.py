"""The noise of a classifier's rounds is what its settings say: on sums, on moments, and in W."""

import math
from functools import cache

import numpy as np
import pytest
from maps import maps
from rounds import calibration, first_round, later_round, resolved
from scipy import stats

import discreet
from discreet.accounting import gaussian_sigma
from discreet.features.linear import Linear
from discreet.noise import RoundedGaussian
from discreet.readers.rounds.layout import Weights
from discreet.readers.softmax import mechanism
from discreet.readers.softmax.layout import Calibration, factor
from discreet.readers.softmax.mechanism import SoftmaxOptions
from discreet.sums.settings import Unit
from discreet.testing import Seeded

# Each test is run at this level; seeds are fixed, so it fails always or never.
ALPHA = 1e-4

DIM, CLASSES = 100, 5
OPTIONS = {"epsilon": 1.0, "delta": 1e-6, "features": "linear", "classes": range(CLASSES)}
SIGMA = gaussian_sigma(epsilon=1.0, delta=1e-6)


def settings_of(unit=Unit.ROW, **changes):
    return resolved(DIM, SoftmaxOptions(**OPTIONS | changes), unit=unit)


# That shares add up to one is tested elsewhere.
[LAYOUT] = settings_of().layouts
ROUNDS, CLIP = LAYOUT.rounds, LAYOUT.clip
ON_SUMS = SIGMA * CLIP / math.sqrt(LAYOUT.of_round)
ON_MOMENTS = SIGMA / math.sqrt(LAYOUT.moments)
ON_CALIBRATION = 3 * SIGMA / math.sqrt(LAYOUT.judging)


@cache
def drawn(rows, seed, epsilon=1.0, neighbours="add_remove"):
    """All noise that rounds draw, in real units: sums of each of them, diagonal, above it."""
    changes = {"epsilon": epsilon, "neighbours": neighbours, "rows_hint": 100}
    rng = np.random.default_rng(seed)
    keys, labels = rng.normal(size=(rows, DIM)), rng.integers(0, CLASSES, rows)
    noises, sample = [], RoundedGaussian.sample

    def watched(law, size, *, entropy=None):
        noises.append(sample(law, size, entropy=entropy))
        return noises[-1].copy()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RoundedGaussian, "sample", watched)
        made = discreet.softmax_regression(keys, labels, entropy=Seeded(seed), **OPTIONS | changes)
    layout, [first] = made.released.layout, first_round(settings_of(**changes)).layouts
    sums = [noise.ravel() * layout.real_unit for noise in noises if noise.shape == layout.shape]
    moments = [noise.ravel() / first.moment_unit**2 for noise in noises[1:3]]
    assert [noise.shape for noise in noises[1:3]] == list(first.shapes[1:])
    assert len(sums) == ROUNDS
    return *sums, *moments


def of_seeds(part, count, *build):
    return np.concatenate([drawn(build[0], seed, *build[1:])[part] for seed in range(count)])


def is_of_size(noise, predicted):
    """Whether noise is normal and as large as predicted; a twentieth less or more shows."""
    assert noise.std() == pytest.approx(predicted, rel=0.05)
    assert noise.mean() == pytest.approx(0, abs=5 * predicted / math.sqrt(noise.size))
    assert stats.kstest(noise / predicted, "norm").pvalue > ALPHA
    for times in (2 / 3, 3 / 2):
        assert stats.kstest(noise / predicted * times, "norm").pvalue < ALPHA


@pytest.mark.parametrize("number", range(ROUNDS))
def test_every_round_has_its_noise(number):
    """Whatever W is by then."""
    is_of_size(of_seeds(number, 10, 300), ON_SUMS)


IN_PAIRS = {"group_rows": 3.0, "groups": np.arange(30) // 2}
KINDS = {
    "rows": ({}, 1),
    "replaced rows": ({"neighbours": "replace"}, 2),
    "records": (IN_PAIRS, 3),
    "replaced records": ({"neighbours": "replace", **IN_PAIRS}, 6),
}
MANY = 1_000  # classes, to have much noise in few builds


@cache
def calibrated(kind):
    """Noise on the calibration, in real units; errors of totals, in units of what is stated."""
    noises, errors, sample = [], [], RoundedGaussian.sample

    def watched(law, size, *, entropy=None):
        noise = sample(law, size, entropy=entropy)
        if size == (1, 8 + MANY + 1, 2):
            noises.append(noise.ravel().copy())
        return noise

    truth = (np.arange(MANY) < 30) * 1.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RoundedGaussian, "sample", watched)
        for seed in range(5):
            options = OPTIONS | {"classes": range(MANY), "rows_hint": 100, **KINDS[kind][0]}
            made = discreet.softmax_regression(
                np.eye(30, 2), np.arange(30), entropy=Seeded(seed), **options
            )
            totals, stated = made.totals
            errors.append((totals - truth) / stated)
    assert len(noises) == 5
    unit = Calibration.of(made.released.layout).real_unit
    return np.concatenate(noises) * unit, np.concatenate(errors)


@pytest.mark.parametrize("kind", KINDS)
def test_the_calibration_has_its_noise(kind):
    """What a row adds to it is at most 3 long."""
    is_of_size(calibrated(kind)[0], KINDS[kind][1] * ON_CALIBRATION)


@pytest.mark.parametrize("kind", KINDS)
def test_totals_are_as_far_off_as_they_say(kind):
    is_of_size(calibrated(kind)[1], 1.0)


@pytest.mark.parametrize(
    ("part", "predicted"),
    [(-2, ON_MOMENTS), (-1, ON_MOMENTS / math.sqrt(2))],
    ids=["diagonal", "above it"],
)
def test_the_first_round_has_noise_on_second_moments(part, predicted):
    is_of_size(of_seeds(part, 20, 300), predicted)


def test_cut_features_have_second_moments_with_the_same_noise_in_real_units():
    [first] = first_round(settings_of(epsilon=0.01, rows_hint=100)).layouts
    assert first.coarseness > 0
    sigma = gaussian_sigma(epsilon=0.01, delta=1e-6)
    is_of_size(of_seeds(0, 15, 0, 0.01), ON_SUMS * sigma / SIGMA)
    is_of_size(of_seeds(-2, 15, 0, 0.01), ON_MOMENTS * sigma / SIGMA)
    is_of_size(of_seeds(-1, 5, 0, 0.01), ON_MOMENTS * sigma / SIGMA / math.sqrt(2))


def test_replaced_rows_have_twice_the_noise_on_later_sums():
    build = (0, 1.0, "replace")
    is_of_size(of_seeds(1, 6, *build), 2 * ON_SUMS)
    # Sums and second moments of two rows are never at their worst together: the first round has
    # its whole share for the sums alone.
    is_of_size(of_seeds(0, 6, *build), 2 * SIGMA * CLIP / math.sqrt(LAYOUT.of_first))


def test_records_have_noise_for_all_of_their_rows():
    whole = settings_of(Unit.RECORD, group_rows=3.0)
    this = later_round(whole, Weights.of(np.ones((DIM + 1, CLASSES))))
    law = this.laws(this.layouts[0])[0]
    assert law.sigma * this.layouts[0].real_unit == pytest.approx(3 * ON_SUMS, rel=1e-3)
    last = calibration(whole)
    [law] = last.laws(last.layouts[0])
    assert law.sigma * last.layouts[0].real_unit == pytest.approx(3 * ON_CALIBRATION, rel=1e-3)


def test_rounds_and_parts_have_noise_of_their_own():
    """Noise that two of them shared would show in one of them."""
    parts = drawn(300, 0)
    for number, one in enumerate(parts):
        for other in parts[:number]:
            count = min(one.size, other.size)
            assert abs(np.corrcoef(one[:count], other[:count])[0, 1]) < 0.5


@pytest.mark.parametrize("features", ["linear", "waves"])
def test_all_noise_together_reaches_the_coefficients_as_fixed_in_advance(features, monkeypatch):
    """Without rows W is noise: each round's with 1 - 2^-j of itself, j rounds before the end.

    Before it is multiplied by what the last release says.
    """
    kernel = Linear(DIM) if features == "linear" else maps(DIM)["waves"]
    factors = []

    def watched(*given):
        factors.append(factor(*given))
        return factors[-1]

    monkeypatch.setattr(mechanism, "factor", watched)
    weights = []
    for seed in range(12):
        made = discreet.softmax_regression(
            np.zeros((0, DIM)), [], entropy=Seeded(seed), **OPTIONS | {"features": kernel}
        )
        weights.append(made.coefficients.ravel() / factors[seed])
    left = 1 - 0.5 ** np.arange(1, ROUNDS + 1)
    reach = 1.3 * max(256 / kernel.features, 1) ** 0.125
    is_of_size(np.concatenate(weights), reach * math.sqrt(np.mean(left**2)))
