"""The tight account of truncated Laplace against a computation that shares nothing with it.

From the law's own probabilities, to fifty digits: the loss of one shift by Δ (in whole multiples of
ε/Δ, so that equal losses meet exactly) with the mass that the shifted law cannot produce, convolved
with itself directly, and δ(ε) = E[(1 - e^(ε - loss))₊] + mass at infinity. No grid, no FFT, no
tilt, no dp-accounting.
"""

import functools
import itertools
from decimal import Decimal, localcontext

import pytest

from discreet.accounting import TruncatedLaplace, tight

DIGITS = 50
AGREES = Decimal("1e-9")
ROUNDING = Decimal("1e-40")

# (Δ, ε, δ): laws whose losses are whole steps of the account's grid, so that it rounds none. The
# bounds B are 12, 32, 27, 34 and 261.
ON_GRID = [(1, 0.5, 1e-3), (2, 0.5, 1e-4), (4, 1.0, 1e-3), (5, 1.0, 1e-3), (8, 0.3, 1e-5)]
# Whose losses lie between: there the account rounds up.
OFF_GRID = [(3, 0.5, 1e-4), (7, 0.3, 1e-3), (100, 0.3, 1e-4)]
COUNTS = [1, 2, 3, 5, 8]
# The δ that is asked for, as a multiple of the mass at infinity, which is the least there can be.
MULTIPLES = [1.01, 1.5, 3.0]


@pytest.fixture(autouse=True)
def many_digits():
    with localcontext() as context:
        context.prec = DIGITS
        yield


@functools.cache
def law_of(shift, epsilon, delta):
    """Pr[Z = z] ∝ e^(-ε|z|/Δ) on the shortest [-B, B] whose last Δ integers weigh at most δ."""
    ratio = (-Decimal(epsilon) / shift).exp()
    weights = [Decimal(1)]  # of 0, 1, 2, ...
    while True:
        weights.append(weights[-1] * ratio)
        bound = len(weights) - 1
        total = 2 * sum(weights) - 1
        tail = sum(weights[max(bound - shift + 1, 0) :])
        if tail <= Decimal(delta) * total:
            return {z: weights[abs(z)] / total for z in range(-bound, bound + 1)}


def losses(law, shift):
    """Return (mass of each finite loss in multiples of ε/Δ, mass at infinity): Z against Z + shift.

    Z + shift has Pr[Z = z - shift] at z, so the loss there is (|z - shift| - |z|)·ε/Δ.
    """
    finite, infinite = {}, Decimal(0)
    for z, mass in law.items():
        if z - shift in law:
            loss = abs(z - shift) - abs(z)
            finite[loss] = finite.get(loss, Decimal(0)) + mass
        else:
            infinite += mass
    return finite, infinite


def convolved(finite, infinite, count):
    """Return the same of `count` independent ones together, by plain convolution."""
    total = {0: Decimal(1)}
    for _ in range(count):
        longer = {}
        for (loss, mass), (more, chance) in itertools.product(total.items(), finite.items()):
            longer[loss + more] = longer.get(loss + more, Decimal(0)) + mass * chance
        total = longer
    return total, 1 - (1 - infinite) ** count


def delta_of(finite, infinite, rate, epsilon):
    """δ(ε) = E[(1 - e^(ε - loss))₊], the infinite loss included."""
    return infinite + sum(
        mass * (1 - (epsilon - rate * loss).exp())
        for loss, mass in finite.items()
        if rate * loss > epsilon
    )


def epsilon_of(finite, infinite, rate, delta):
    """The smallest ε ≥ 0 with δ(ε) ≤ delta: between two losses δ(ε) = above - e^ε·damped."""
    above, damped = infinite, Decimal(0)
    descending = sorted(finite, reverse=True)
    for loss, following in zip(descending, [*descending[1:], None], strict=True):
        above += finite[loss]
        damped += finite[loss] * (-rate * loss).exp()
        if above > delta:
            epsilon = ((above - delta) / damped).ln()
            if following is None or epsilon >= rate * following:
                return max(epsilon, Decimal(0))
    return Decimal(0)


def composed(shift, epsilon, delta, count, *, moved=None):
    """The exact losses of `count` nodes whose noise is meant for Δ, and ε/Δ."""
    law = law_of(shift, epsilon, delta)
    return *convolved(*losses(law, moved or shift), count), Decimal(epsilon) / shift


def mechanism_of(shift, epsilon, delta):
    return TruncatedLaplace(sensitivity=shift, epsilon=epsilon, delta=delta, neighbours="replace")


def divergence_of(one, other, epsilon):
    """Σ (P - e^ε·Q)₊ over outputs, for laws given as output → mass."""
    growth = epsilon.exp()
    return sum(
        max(mass - growth * other.get(at, Decimal(0)), Decimal(0)) for at, mass in one.items()
    )


def moved(law, shift):
    return {z + shift: mass for z, mass in law.items()}


def product(*laws):
    """The law of independent outputs together: every tuple of outputs, one by one."""
    joint = {(): Decimal(1)}
    for law in laws:
        joint = {(*at, z): p * mass for at, p in joint.items() for z, mass in law.items()}
    return joint


@pytest.mark.parametrize(("shift", "epsilon", "delta"), [*ON_GRID, *OFF_GRID])
def test_the_law_is_the_one_that_is_meant(shift, epsilon, delta):
    law, sampled = law_of(shift, epsilon, delta), mechanism_of(shift, epsilon, delta).law
    assert max(law) == sampled.bound
    assert sampled.pmf(list(law)) == pytest.approx(
        [float(mass) for mass in law.values()], rel=1e-12
    )
    assert sum(law.values()) == pytest.approx(1, rel=ROUNDING)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize(("shift", "epsilon", "delta"), ON_GRID)
def test_the_account_agrees_with_direct_convolution(shift, epsilon, delta, count):
    finite, infinite, rate = composed(shift, epsilon, delta, count)
    mechanism = mechanism_of(shift, epsilon, delta)
    for multiple in MULTIPLES:
        asked = float(infinite) * multiple
        found = Decimal(tight([(mechanism, count)], delta=asked))
        exact = epsilon_of(finite, infinite, rate, Decimal(asked))
        assert 0 < exact <= found <= exact + AGREES * max(exact, Decimal(1))
        # Through δ as well, by the definition: what is promised holds, and is not wasted.
        assert delta_of(finite, infinite, rate, found) <= Decimal(asked) * (1 + Decimal("1e-12"))
        assert delta_of(finite, infinite, rate, found * (1 - AGREES) - AGREES) > Decimal(asked)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize(("shift", "epsilon", "delta"), ON_GRID)
def test_at_a_large_delta_it_agrees_in_delta(shift, epsilon, delta, count):
    """The account keeps 1e-9 of δ for rounding; where the curve is flat, that is more of ε."""
    finite, infinite, rate = composed(shift, epsilon, delta, count)
    mechanism = mechanism_of(shift, epsilon, delta)
    largest = delta_of(finite, infinite, rate, Decimal(0))
    for part in (0.1, 0.5, 0.9):
        asked = float(largest) * part
        found = Decimal(tight([(mechanism, count)], delta=asked))
        reached = delta_of(finite, infinite, rate, found)
        assert Decimal(asked) * (1 - Decimal("1.1e-9")) <= reached <= Decimal(asked)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize(("shift", "epsilon", "delta"), OFF_GRID)
def test_between_its_grid_points_the_account_is_an_upper_bound(shift, epsilon, delta, count):
    """Losses that are no multiples of a step are split over two, which never flatters."""
    finite, infinite, rate = composed(shift, epsilon, delta, count)
    mechanism = mechanism_of(shift, epsilon, delta)
    for multiple in MULTIPLES:
        asked = float(infinite) * multiple
        found = Decimal(tight([(mechanism, count)], delta=asked))
        exact = epsilon_of(finite, infinite, rate, Decimal(asked))
        assert exact <= found <= exact * (1 + Decimal("2e-4"))


def test_below_the_mass_at_infinity_there_is_no_epsilon():
    for count in COUNTS:
        _, infinite, _ = composed(4, 1.0, 1e-3, count)
        mechanism = mechanism_of(4, 1.0, 1e-3)
        assert tight([(mechanism, count)], delta=float(infinite) * (1 - 1e-9)) == float("inf")
        assert tight([(mechanism, count)], delta=float(infinite) * (1 + 1e-7)) <= count


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_a_wrong_shift_and_a_forgotten_delta_would_be_seen(count):
    """The comparison above can fail: each of these mistakes moves ε far more than 1e-9."""
    shift, epsilon, delta = 4, 1.0, 1e-3
    finite, infinite, rate = composed(shift, epsilon, delta, count)
    asked = float(infinite) * 1.5
    found = Decimal(tight([(mechanism_of(shift, epsilon, delta), count)], delta=asked))
    for wrong in (shift - 1, shift + 1):
        others, beyond, _ = composed(shift, epsilon, delta, count, moved=wrong)
        assert abs(epsilon_of(others, beyond, rate, Decimal(asked)) - found) > Decimal("1e-3")
    forgotten = epsilon_of(finite, Decimal(0), rate, Decimal(asked))
    assert abs(forgotten - found) > Decimal("1e-4")


@pytest.mark.parametrize(("shift", "epsilon", "delta"), [*ON_GRID, *OFF_GRID[:2]])
def test_both_directions_of_the_comparison_are_the_same(shift, epsilon, delta):
    law = law_of(shift, epsilon, delta)
    finite, infinite = losses(law, shift)
    backwards, beyond = losses(law, -shift)
    assert finite.keys() == backwards.keys()
    for loss, mass in finite.items():
        assert backwards[loss] == pytest.approx(mass, rel=ROUNDING)
    assert beyond == pytest.approx(infinite, rel=ROUNDING)


@pytest.mark.parametrize(
    ("shift", "epsilon", "delta"), [(1, 0.5, 1e-2), (3, 1.0, 1e-2), (4, 1.0, 1e-2)]
)
def test_two_nodes_over_all_pairs_of_outputs(shift, epsilon, delta):
    """In the space of outputs, where no loss is ever formed; in both directions."""
    law = law_of(shift, epsilon, delta)
    here, there = product(law, law), product(*[moved(law, shift)] * 2)
    finite, infinite, rate = composed(shift, epsilon, delta, 2)
    for part in ("0", "0.3", "1", "1.4", "1.9", "2", "2.5"):
        at = Decimal(part) * Decimal(epsilon)
        expected = delta_of(finite, infinite, rate, at)
        for one, other in ((here, there), (there, here)):
            assert divergence_of(one, other, at) == pytest.approx(expected, rel=ROUNDING)
    asked = float(infinite) * 1.5
    found = Decimal(tight([(mechanism_of(shift, epsilon, delta), 2)], delta=asked))
    assert divergence_of(here, there, found) <= Decimal(asked) * (1 + Decimal("1e-12"))


def splits(shift):
    return [(part, shift - part) for part in range(shift + 1)]


@pytest.mark.parametrize(
    ("shift", "epsilon", "delta"), [(1, 0.5, 1e-2), (3, 1.0, 1e-2), (6, 1.0, 5e-2)]
)
def test_a_change_over_two_coordinates_is_dominated_by_one_shift(shift, epsilon, delta):
    """docs/privacy.md, "A change over several coordinates": all splits, signs and directions."""
    law = law_of(shift, epsilon, delta)
    still, one_shift = product(law, law), losses(law, shift)
    rate = Decimal(epsilon) / shift
    steps = [Decimal(step) / 2 for step in range(-2 * shift, 2 * shift + 3)]
    for (a, b), sign in itertools.product(splits(shift), (1, -1)):
        changed = product(moved(law, a), moved(law, sign * b))
        for step in steps:  # every loss that there is, and half way between
            at = step * rate
            most = delta_of(*one_shift, rate, at)
            for one, other in ((still, changed), (changed, still)):
                spread = divergence_of(one, other, at)
                assert spread <= most * (1 + ROUNDING)
                if 0 in (a, b):
                    assert spread == pytest.approx(most, rel=ROUNDING)
    # And one step more in all is not.
    further = product(moved(law, shift), moved(law, 1))
    assert divergence_of(still, further, Decimal(0)) > delta_of(*one_shift, rate, Decimal(0))


@pytest.mark.parametrize("pair", list(itertools.combinations_with_replacement(splits(3), 2)))
def test_two_levels_each_changed_in_two_coordinates_stay_within_the_account(pair):
    """Domination survives composition: all outputs of four nodes, one by one."""
    shift, epsilon, delta = 3, 1.5, 0.15
    law = law_of(shift, epsilon, delta)
    assert len(law) <= 15
    finite, infinite, rate = composed(shift, epsilon, delta, 2)
    still = product(*[law] * 4)
    changed = product(*(moved(law, part) for level in pair for part in level))
    for multiple in (1.05, 1.5):
        asked = float(infinite) * multiple
        found = Decimal(tight([(mechanism_of(shift, epsilon, delta), 2)], delta=asked))
        reached = divergence_of(still, changed, found)
        assert reached <= Decimal(asked)
        assert reached <= delta_of(finite, infinite, rate, found) * (1 + ROUNDING)
