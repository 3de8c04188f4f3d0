"""Correlated noise: integers as the recursion says, and figures that a dense matrix confirms."""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import InvalidInput
from discreet.noise import correlated
from discreet.noise.correlated import (
    MOST_STEPS,
    Continual,
    Participation,
    Reading,
    StateNoise,
    Strategy,
    chosen,
)

STRATEGY = chosen(Reading(), Participation(), steps=64)
LONG = chosen(Reading(), Participation(), steps=2**20)
STRATEGIES = [STRATEGY, LONG, Strategy((1,), (2**16,)), Strategy((2**30 - 1,), (1,))]
DRAWS = st.one_of(st.integers(-3, 3), st.integers(-(2**33), 2**33), st.integers(-(2**40), 2**40))


def naive(strategy, fresh):
    """The recursion in Python's own integers: the noise of each step."""
    buffers, noise = [0] * strategy.buffers, []
    for z in fresh:
        w = z - ((sum(buffers) + 2**15) >> 16)
        pairs = zip(strategy.decays, strategy.weights, buffers, strict=True)
        buffers = [(a * buffer >> 30) + weight * w for a, weight, buffer in pairs]
        noise.append(w)
    return noise


def followed(strategy, fresh):
    """The same by arrays: shape (steps, size)."""
    buffers, noise = strategy.begin(len(fresh[0])), []
    for z in fresh:
        w, buffers = strategy.follow(buffers, np.asarray(z, dtype=np.int64))
        noise.append(w)
    return np.array(noise)


def inverse(strategy, steps):
    """What the noise of each step is of all fresh draws, as a dense matrix."""
    coefficients = strategy.coefficients(steps)
    matrix = np.zeros((steps, steps))
    for step in range(steps):
        matrix[step:, step] = coefficients[: steps - step]
    return np.linalg.inv(matrix)


@pytest.mark.parametrize("strategy", STRATEGIES)
@settings(max_examples=60)
@given(fresh=st.lists(st.tuples(DRAWS, DRAWS), min_size=1, max_size=40))
def test_arrays_follow_the_recursion_to_the_bit(strategy, fresh):
    both = followed(strategy, fresh)
    for column in (0, 1):
        assert both[:, column].tolist() == naive(strategy, [z[column] for z in fresh])


@pytest.mark.parametrize("strategy", STRATEGIES)
@settings(max_examples=80)
@given(data=st.data(), count=st.integers(1, 50))
def test_draws_behind_the_same_releases_deviate_from_linear_by_less_than_rho(strategy, data, count):
    """The rounding lemma, for changes from ±1 to 2^33 in any steps; no change, no deviation."""
    fresh = data.draw(st.lists(DRAWS, min_size=count, max_size=count))
    sizes = st.one_of(st.sampled_from([0, 0, 1, -1, 2**33, -(2**33)]), st.integers(-9, 9))
    changes = data.draw(st.lists(sizes, min_size=count, max_size=count))
    noise = naive(strategy, fresh)
    other = behind(strategy, [w - change for w, change in zip(noise, changes, strict=True)])
    moved = [z - there for z, there in zip(fresh, other, strict=True)]
    exact = [1, *(exact_coefficient(strategy, lag) for lag in range(1, count))]
    changed = False
    for step in range(count):
        changed |= changes[step] != 0
        linear = sum(exact[lag] * changes[step - lag] for lag in range(step + 1))
        assert abs(moved[step] - linear) < strategy.rounding
        assert changed or moved[step] == 0


def behind(strategy, noise):
    """The fresh draws that make this noise."""
    buffers, fresh = [0] * strategy.buffers, []
    for w in noise:
        fresh.append(w + ((sum(buffers) + 2**15) >> 16))
        pairs = zip(strategy.decays, strategy.weights, buffers, strict=True)
        buffers = [(a * buffer >> 30) + weight * w for a, weight, buffer in pairs]
    return fresh


def exact_coefficient(strategy, lag):
    pairs = zip(strategy.decays, strategy.weights, strict=True)
    return sum(Fraction(w, 2**16) * Fraction(a, 2**30) ** (lag - 1) for a, w in pairs)


def test_the_rounding_is_needed():
    """Changes of one lattice unit move draws further than their linear part says."""
    rng = np.random.default_rng(1)
    noise = naive(STRATEGY, rng.integers(-(2**20), 2**20, 2_000).tolist())
    other = [noise[0] - 1, *noise[1:]]
    apart = np.subtract(behind(STRATEGY, noise), behind(STRATEGY, other))
    assert math.sqrt(np.sum(apart**2)) > 1.5 * STRATEGY.norm


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_norm_is_exact_and_rounded_up(strategy):
    pairs = list(zip(strategy.decays, strategy.weights, strict=True))
    squared = 1 + sum(
        Fraction(w * v, 2**32) / (1 - Fraction(a * b, 2**60)) for a, w in pairs for b, v in pairs
    )
    assert squared <= Fraction(strategy.norm) ** 2 <= squared * (1 + Fraction(1, 10**8))


def test_the_correlation_is_that_of_coefficients_and_falls():
    coefficients = STRATEGY.coefficients(3_000)
    distances = np.array([0, 1, 2, 7, 100])
    dense = [coefficients[: 3_000 - d] @ coefficients[d:] for d in distances]
    assert STRATEGY.correlation(distances) == pytest.approx(dense, rel=1e-8)
    assert np.all(np.diff(STRATEGY.correlation(np.arange(500))) < 0)


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("separation", [1, 3])
def test_no_choice_of_steps_has_more_than_the_bound(count, separation):
    """All choices among 14 steps: equal contributions, far beyond which nothing is left out."""
    bound = Participation(count, separation).sensitivity(STRATEGY)
    coefficients = STRATEGY.coefficients(20_000)
    largest = 0.0
    for steps in combinations(range(14), count):
        if min(np.diff(steps)) < separation:
            continue
        both = sum(
            np.concatenate([np.zeros(step), coefficients[:19_000]])[:19_000] for step in steps
        )
        largest = max(largest, float(np.linalg.norm(both)))
    assert bound * (1 - 1e-3) < largest <= bound


def test_a_lifetime_of_rows_costs_no_more_than_one_step():
    assert Participation(None).sensitivity(STRATEGY) == STRATEGY.norm
    assert Participation().sensitivity(STRATEGY) == STRATEGY.norm


@pytest.mark.parametrize("step", [1, 5, 60, 150])
@pytest.mark.parametrize(
    "reading",
    [Reading(), Reading("window", 1), Reading("window", 30), Reading("decay", 14)],
    ids=str,
)
def test_the_variance_is_that_of_a_dense_matrix(reading, step):
    weights = np.ones(step)
    if reading.kind == "window":
        weights[: max(step - int(reading.length), 0)] = 0
    elif reading.kind == "decay":
        weights = 0.5 ** (np.arange(step)[::-1] / reading.length)
    dense = float(np.sum((weights @ inverse(STRATEGY, step)) ** 2))
    assert reading.variance(STRATEGY, step) == pytest.approx(dense, rel=1e-6)


def test_the_integers_have_that_variance():
    rng = np.random.default_rng(2)
    fresh = np.rint(rng.normal(0, 2.0**20, (64, 20_000))).astype(np.int64)
    totals = np.cumsum(followed(STRATEGY, fresh), axis=0)
    for step in (1, 8, 64):
        measured = totals[step - 1].std() / 2.0**20
        assert measured == pytest.approx(math.sqrt(Reading().variance(STRATEGY, step)), rel=0.02)


def square_root(steps):
    """The factor of the square-root factorisation: Σ c_k², c_k = binom(2k, k)/4^k."""
    ratios = (2 * np.arange(1, steps) - 1) / (2 * np.arange(1, steps))
    return 1 + float(np.sum(np.cumprod(ratios) ** 2))


@pytest.mark.parametrize("steps", [16, 17, 19, 30, 64, 100, 365, 1_000, 4_096, 50_000, 2**20])
def test_the_table_is_near_the_square_root_factorisation(steps):
    strategy = chosen(Reading(), Participation(), steps=steps)
    factor = strategy.norm * math.sqrt(Reading().variance(strategy, steps))
    assert factor <= 1.014 * square_root(steps)


@pytest.mark.parametrize(
    ("reading", "factor"),
    [
        (Reading("window", 7), 1.88),
        (Reading("window", 30), 2.54),
        (Reading("window", 90), 3.03),
        (Reading("decay", 7), 1.47),
        (Reading("decay", 14), 1.66),
        (Reading("decay", 30), 1.89),
    ],
    ids=str,
)
def test_windows_and_decays_have_strategies_of_their_own(reading, factor):
    strategy = chosen(reading, Participation(), steps=365)
    forever = strategy.norm * math.sqrt(reading.variance(strategy, MOST_STEPS))
    assert forever <= factor
    usual = chosen(Reading(), Participation(), steps=365)
    assert forever < 0.9 * usual.norm * math.sqrt(reading.variance(usual, MOST_STEPS))


def test_every_strategy_has_room_for_the_largest_noise():
    for strategy in correlated._table():
        strategy.check_room(2.0**40)
        assert strategy.buffers <= 5
    with pytest.raises(InvalidInput, match="no room"):
        LONG.check_room(2.0**52)


@pytest.mark.parametrize(
    ("decays", "weights"),
    [((), ()), ((1,), (1, 1)), ((2**30,), (1,)), ((0,), (1,)), ((1,), (0,)), ((1, 2), (2**16, 1))],
)
def test_a_strategy_that_is_none_is_refused(decays, weights):
    with pytest.raises(InvalidInput):
        Strategy(decays, weights)


def test_the_sum_of_buffers_has_room_where_the_buffers_have():
    """`check_room` looks at the widest; int64 is twice as large. privacy.md, Streams, 7."""
    for strategy in correlated._table():
        _, spread = correlated._after(*strategy.dynamics(0.0), MOST_STEPS)
        weights = np.array(strategy.weights, dtype=np.float64)
        covariance = spread[:-1, :-1] * np.outer(weights, weights)
        widest = math.sqrt(np.max(np.diag(covariance)))
        assert math.sqrt(np.sum(covariance)) < 2.6 * widest
    assert 46 * 2.6 * correlated._LARGEST / correlated._DEVIATIONS < 2**63


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Reading("window", 0),
        lambda: Reading("decay", 0),
        lambda: Reading("all", 3),
        lambda: Reading("other"),
        lambda: Participation(0),
        lambda: Participation(2, 0),
        lambda: Participation(None, 2),
        lambda: chosen(Reading(), Participation(), steps=0),
        lambda: StateNoise(Continual(STRATEGY, Participation()), 1.0, 3, Reading()),
    ],
)
def test_bad_values_are_refused(wrong):
    with pytest.raises(InvalidInput):
        wrong()


def test_the_noise_of_a_state_survives_its_parameters():
    noise = StateNoise(Continual(LONG, Participation(5, 7)), 99.0, 12, Reading("decay", 2.5))
    assert StateNoise.restore(noise.parameters()) == noise
    assert noise.factor == 99.0 * math.sqrt(Reading("decay", 2.5).variance(LONG, 12))


@pytest.mark.parametrize("enforced", ["no", 1, None])
def test_whether_participation_is_enforced_is_yes_or_no(enforced):
    with pytest.raises(InvalidInput, match="enforced"):
        Continual(STRATEGY, Participation(), enforced)
