import math

import numpy as np
import pytest
from scipy import stats

from discreet import InvalidInput
from discreet.noise import DiscreteLaplace, RoundedGaussian, TruncatedLaplace
from discreet.paper import bounds
from discreet.paper.bounds import Net
from discreet.testing import Seeded

LAWS = [
    RoundedGaussian(sigma=50.0),
    DiscreteLaplace(scale=40.0),
    TruncatedLaplace(sensitivity=20, epsilon=0.5, delta=1e-3),
]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
@pytest.mark.parametrize("failure", [0.5, 0.1, 0.01, 1e-3])
def test_bounds_hold_and_are_not_absurd(law, failure):
    part = bounds.NoiseSum(law, (1.0, -2.0, 0.5), (3, 1, 10))
    draws = law.sample((60_000, 14), entropy=Seeded(1)).astype(float)
    total = draws @ np.repeat([1.0, -2.0, 0.5], [3, 1, 10])
    bound = bounds.tail_bound((part,), failure)
    assert np.mean(np.abs(total) > bound) <= failure
    assert bound <= 2.5 * np.quantile(np.abs(total), 1 - failure)
    assert total.var() == pytest.approx(part.variance, rel=0.03)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
def test_moments_bound_the_real_ones(law):
    values = np.arange(-4000, 4001)
    for fraction in (0.1, 0.5, 0.9):
        tilt = fraction * min(law.largest_tilt, 0.05)
        real = math.log(np.sum(law.pmf(values) * np.cosh(tilt * values)))
        assert real <= law.log_moment(tilt) * (1 + 1e-9)
        assert law.log_moment(tilt) == law.log_moment(-tilt)
    if math.isfinite(law.largest_tilt):
        assert law.log_moment(law.largest_tilt) == math.inf


def test_several_independent_parts():
    parts = tuple(bounds.NoiseSum(law, (1.0,), (5,)) for law in LAWS)
    draws = sum(law.sample((60_000, 5), entropy=Seeded(2)).sum(axis=1) for law in LAWS)
    bound = bounds.tail_bound(parts, 0.01)
    assert np.mean(np.abs(draws) > bound) <= 0.01
    assert bound > max(bounds.tail_bound((part,), 0.01) for part in parts)
    assert bounds.tail_bound(parts, 1.0) == 0.0


@pytest.mark.parametrize("copies", range(1, 12))
def test_the_median_fails_as_often_as_half_of_the_copies(copies):
    single = 0.2
    by_sum = sum(
        math.comb(copies, k) * single**k * (1 - single) ** (copies - k)
        for k in range(math.ceil(copies / 2), copies + 1)
    )
    assert bounds.median_failure(copies, single) == pytest.approx(by_sum)
    allowed = bounds.single_failure_for(copies, by_sum)
    assert allowed == pytest.approx(single, rel=1e-6)
    assert bounds.median_failure(copies, allowed) <= by_sum


def test_copies_are_the_fewest():
    for failure in (0.3, 1e-2, 4e-4, 2e-4, 1e-9):
        copies = bounds.copies_needed(failure)
        assert bounds.median_failure(copies, 0.01) <= failure
        assert copies == 1 or bounds.median_failure(copies - 1, 0.01) > failure
    assert bounds.copies_needed(2e-4) == 5
    # The sharp Chernoff bound, KL(½‖0.99), needs at most one more.
    divergence = stats.entropy([0.5, 0.5], [0.99, 0.01])
    assert math.ceil(math.log(1 / 2e-4) / divergence) == 6


def test_the_net_covers_the_box():
    net = Net(2.0, 0.15, 3)
    assert net.cells == 7
    points = np.random.default_rng(0).uniform(-1, 3, (1000, 3))
    snapped = net.snap(points)
    assert np.abs(snapped - np.clip(points, 0, 2)).max() <= net.radius
    assert len(np.unique(snapped[:, 0])) == net.cells
    assert net.log_points == pytest.approx(3 * math.log(7))
    assert net.failure_per_point(0.01) == pytest.approx(0.01 / 343)
    assert np.array_equal(net.snap(snapped), snapped)


@pytest.mark.parametrize(("radius", "dim"), [(1 / 16, 300), (1e-320, 1), (0.0, 2), (1e-6, 100)])
def test_a_net_that_cannot_be_counted_is_refused(radius, dim):
    with pytest.raises(InvalidInput, match="eps_0="):
        Net(1.0, radius, dim)
