"""Composition: the guarantee of releasing several things about the same people.

`basic` and `advanced` are the paper's rules on (ε, δ) pairs; `tight` knows the mechanisms,
`calibrate` inverts it, and `covers` asks it whether to believe a guarantee.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from discreet import _validate
from discreet.accounting.events import (
    Disclosure,
    Gaussian,
    Mechanism,
    check_mechanisms,
    one_relation,
    pairs_of,
)
from discreet.accounting.gaussian import LARGEST_MU, LEAST_DELTA, gaussian_sigma
from discreet.errors import BudgetExceeded, InvalidInput
from discreet.privacy import Privacy, rounded_up

# What a claim may be off by: more than rounding, where the account is exact. Where it is on a grid,
# more than two accounts of the same mechanisms differ by, if machines or grids are not the same: a
# file that was written once is to load for ever.
_ROUNDING = 1 + 1e-9
_GRID_EPSILON, _GRID_DELTA = 1 + 1e-3, 2.0

# More than the relative error of the sums of `concentrated_epsilon`.
_SUMS_ROUNDING = 1e-12

# `gaussian_beside` finds σ to this relative precision, and gives up this far (in logarithms).
_SIGMA_PRECISION, _HOPELESS = 1e-4, 12.0

# `calibrate` finds the noise factor to this relative precision, and ends on the private side.
_PRECISION = 1e-6


def basic(parts: Sequence[tuple[Privacy, int]]) -> Privacy:
    """Return the sums of all ε and all δ (the paper's Fact "Basic composition").

    Args:
        parts: (guarantee, how many times), all under one neighbouring relation.

    Returns:
        The guarantee of all of them together; its δ is at most 1.

    Raises:
        InvalidInput: if there is none, or they are under different relations.
    """
    pairs = pairs_of("parts", parts, Privacy)
    neighbours = one_relation([part.neighbours for part, _ in pairs])
    epsilon = math.fsum(part.epsilon * count for part, count in pairs)
    delta = math.fsum(part.delta * count for part, count in pairs)
    return Privacy(epsilon, min(delta, 1.0), neighbours)


def advanced(part: Privacy, count: int, *, delta_prime: float) -> Privacy:
    """Return the paper's Theorem "Advanced composition" for `count` mechanisms of one guarantee.

    ε' = k·ε·(e^ε - 1) + ε·√(2k·ln(1/δ')), δ_total = k·δ + δ' (Dwork, Roth 2014, Theorem 3.20).

    Args:
        part: the guarantee of each; its ε is at most 100.
        count: how many there are.
        delta_prime: δ', above 0 and below 1.

    Returns:
        The guarantee of all of them together; its δ is at most 1.

    Raises:
        InvalidInput: if a number is out of range.
    """
    _validate.instance("part", part, Privacy)
    count = _validate.whole("count", count, at_least=1)
    delta_prime = _validate.real("delta_prime", delta_prime, above=0, below=1)
    _validate.real("part.epsilon", part.epsilon, at_least=0, at_most=100)
    epsilon = count * part.epsilon * math.expm1(part.epsilon) + part.epsilon * math.sqrt(
        2 * count * math.log(1 / delta_prime)
    )
    return Privacy(epsilon, min(count * part.delta + delta_prime, 1.0), part.neighbours)


def tight(mechanisms: Sequence[tuple[Mechanism, int]], *, delta: float) -> float:
    """Return the ε of all the mechanisms together at this δ, by their privacy loss distribution.

    An upper bound, usually within a few parts in ten thousand of the truth; from some ten million
    mechanisms on, where their distribution would not fit the memory, within a few percent
    (`concentrated_epsilon`). Infinite if the mechanisms' truncated tails alone exceed δ.

    Args:
        mechanisms: (mechanism, how many times), all under one neighbouring relation, on the same
            data and possibly chosen adaptively.
        delta: the total δ, above 0 and below 1.

    Returns:
        ε.

    Raises:
        InvalidInput: if there is no mechanism, they are under different relations, or δ is out of
            range.

    Example:
        >>> one = Gaussian(sigma=10.0, sensitivity=1.0, neighbours="add_remove")
        >>> round(tight([(one, 20)], delta=1e-6), 4)
        1.9945
    """
    delta = _validate.real("delta", delta, above=0, below=1)
    pairs, delta = _without_disclosures(check_mechanisms(mechanisms), delta)
    if delta <= 0:
        return math.inf
    if not pairs:
        return 0.0
    if _gaussian_ratio(pairs) > LARGEST_MU:  # beyond the closed form: nobody is protected
        return concentrated_epsilon(pairs, delta)
    pairs = _merge_gaussians(pairs)
    if _is_one(pairs):
        return pairs[0][0].epsilon_at(delta)
    return composed_epsilon(pairs, delta)


def composed_epsilon(mechanisms: Sequence[tuple[Mechanism, int]], delta: float) -> float:
    """Return an upper bound on the smallest ε at which all the mechanisms together have δ.

    Infinite if their infinite losses alone (the truncated tails) exceed δ. Where the grid would be
    too large, or its rounding errors exceed δ, only the closed form answers. Elsewhere it is nearly
    always the larger of the two; where it is not, it keeps one more mechanism from being cheaper.
    """
    # dp-accounting takes longer to load than a small memory to build, and few calls come here.
    from discreet.accounting.loss import epsilon_on_grid

    return min(epsilon_on_grid(mechanisms, delta), concentrated_epsilon(mechanisms, delta))


def concentrated_epsilon(mechanisms: Sequence[tuple[Mechanism, int]], delta: float) -> float:
    """Return an upper bound on the ε of all the mechanisms together at this δ, in closed form.

    A little larger than tight, at any count: concentrated differential privacy (Bun, Steinke, TCC
    2016). The Rényi divergence of order α of a pure ε-private mechanism is at most α·ε²/2 (their
    Proposition 3.3), that of a Gaussian is α·μ²/2, and such bounds add up. For small losses both
    are the same number, so that nothing is lost to the bound itself, and some 7% of ε to the way
    back (at δ = 1e-6). `docs/privacy.md`, "Tight composition".

    Infinite if their infinite losses alone (the truncated tails) exceed δ. With α = 1 + θ and
    ρ = Σ n·spread²/2, the bound (1 - e^-x)₊ ≤ θ^θ/(1+θ)^(1+θ)·e^(θx) gives, for every θ > 0,
    ln δ(ε) ≤ θ(1+θ)ρ - θε + θ·ln θ - (1+θ)·ln(1+θ). Any θ is valid, so the best of many will do.
    """
    logs = math.fsum(n * math.log1p(-each.infinite_loss) for each, n in mechanisms)
    left = delta + math.expm1(logs) * (1 + _SUMS_ROUNDING)
    if left <= 0:
        return math.inf
    rho = math.fsum(n * each.spread**2 for each, n in mechanisms) / 2
    theta = np.exp2(np.arange(-64, 64, 1 / 64))
    moment, needed = (1 + theta) * rho, -math.log(left)
    constant = theta * np.log1p(1 / theta) + np.log1p(theta)
    epsilons = moment + (needed - constant) / theta
    slack = _SUMS_ROUNDING * (moment + (needed + constant) / theta)
    # But for the infinite losses, mechanisms with bounded losses never cost more than their sum.
    bounded = not any(isinstance(each, Gaussian) for each, _ in mechanisms)
    most = math.fsum(n * each.spread for each, n in mechanisms) if bounded else math.inf
    return max(0.0, min(float(np.min(epsilons + slack)), most))


def calibrate(
    mechanisms: Sequence[tuple[Mechanism, int]], *, target: Privacy
) -> list[tuple[Mechanism, int]]:
    """Return the mechanisms with the least noise whose tight composition stays within `target`.

    All noise scales are multiplied by one common factor, so the given scales fix the proportions
    between the mechanisms and nothing else. The δ of each truncated Laplace is kept.

    Args:
        mechanisms: (mechanism, how many times), as for `tight`.
        target: the total (ε, δ), under the mechanisms' neighbouring relation.

    Returns:
        (mechanism, how many times), as given but for the noise.

    Raises:
        BudgetExceeded: no amount of noise helps, because the truncated tails alone exceed δ.
        InvalidInput: if these are no mechanisms under one relation, or not under the target's.
    """
    pairs = check_mechanisms(mechanisms)
    _validate.instance("target", target, Privacy)
    _validate.real("target.epsilon", target.epsilon, above=0)
    _validate.real("target.delta", target.delta, above=0, below=1)
    if pairs[0][0].neighbours is not target.neighbours:
        raise InvalidInput(
            f"Expected target.neighbours={target.neighbours} to be the mechanisms' "
            f"{pairs[0][0].neighbours}."
        )

    def with_noise(log_factor: float) -> list[tuple[Mechanism, int]]:
        factor = math.exp(log_factor)
        return [(mechanism.with_noise_times(factor), count) for mechanism, count in pairs]

    def overspent(log_factor: float) -> float:
        spent = tight(with_noise(log_factor), delta=target.delta)
        # Bounded, so that an ε of zero or infinity still has a side of the root.
        return min(max(math.log(max(spent, 1e-300) / target.epsilon), -50.0), 50.0)

    tails = math.fsum(count * mechanism.truncation for mechanism, count in pairs)
    if tails >= target.delta:
        raise BudgetExceeded(
            f"Expected the truncated tails of all mechanisms, {rounded_up(tails)} together, to be "
            f"below target.delta={target.delta!r}."
        )
    least = max(mechanism.least_factor for mechanism, _ in pairs)
    if least == 0:  # disclosures alone, which have no noise
        return pairs
    floor = math.log(least) + 1e-12
    low, high = _bracket(overspent, floor)
    if overspent(low) <= 0:
        return with_noise(low)
    from scipy import optimize  # here, because it takes long to load and few calls need it

    root = float(optimize.brentq(overspent, low, high, xtol=_PRECISION))
    while overspent(root) > 0:
        root += _PRECISION
    return with_noise(root)


def covers(claim: Privacy, mechanisms: Sequence[tuple[Mechanism, int]]) -> bool:
    """Whether all the mechanisms together satisfy a guarantee that somebody claims for them.

    Exactly, where δ(ε) has a closed form: for one mechanism, and for any number of Gaussians, with
    or without disclosures. For others, ε may be too small by a thousandth if that changes δ(ε) by
    no more than a factor of two: what is accepted holds as (1.001·ε, δ) and as (ε, 2·δ).

    Args:
        claim: under the mechanisms' neighbouring relation.
        mechanisms: as for `tight`.

    Returns:
        Whether it holds. Not, if it is under another relation.

    Raises:
        InvalidInput: if these are no mechanisms under one relation.
    """
    pairs = check_mechanisms(mechanisms)
    if claim.neighbours is not pairs[0][0].neighbours:
        return False
    epsilon = claim.epsilon * _ROUNDING
    bounded = not any(isinstance(each, Gaussian) for each, _ in pairs)
    if bounded and _sums_cover(epsilon, claim.delta * _ROUNDING, pairs):  # which is quick
        return True
    # The second is quick, too, however large the losses are.
    if not LEAST_DELTA <= claim.delta < 1 or any(_exceeds(claim, each) for each, _ in pairs):
        return False

    def spent(factor: float) -> float:
        return tight(pairs, delta=min(claim.delta * factor, math.nextafter(1, 0)))

    if spent(_ROUNDING) <= epsilon:
        return True
    others, _ = _without_disclosures(pairs, claim.delta)
    if _gaussian_ratio(pairs) <= LARGEST_MU and _is_one(_merge_gaussians(others)):
        return False
    return spent(1.0) <= claim.epsilon * _GRID_EPSILON and spent(_GRID_DELTA) <= epsilon


def _exceeds(claim: Privacy, mechanism: Mechanism) -> bool:
    """Whether one mechanism alone has more than a claim, by more than the grid can be off."""
    with np.errstate(all="ignore"):  # of a loss next to nothing
        delta = float(mechanism.hockey_stick(np.array([claim.epsilon * _GRID_EPSILON]))[0])
    return delta > claim.delta * _GRID_DELTA


def with_sampler_error(privacy: Privacy, total_variation: float) -> Privacy:
    """Return what is left if the noise was only within `total_variation` of its law.

    Replacing each of the two output laws costs η, once on either side of
    Pr[M(D) ∈ S] ≤ e^ε·Pr[M(D') ∈ S] + δ: together (1 + e^ε)·η.

    Args:
        privacy: what the law itself gives.
        total_variation: η, over all draws together, from 0 to 1.

    Returns:
        The same ε, with a larger δ.

    Raises:
        InvalidInput: if ε exceeds 700, or η is no such number.
    """
    _validate.instance("privacy", privacy, Privacy)
    eta = _validate.real("total_variation", total_variation, at_least=0, at_most=1)
    _validate.real("privacy.epsilon", privacy.epsilon, at_least=0, at_most=700)
    delta = privacy.delta + (1 + math.exp(privacy.epsilon)) * eta
    return Privacy(privacy.epsilon, min(delta, 1.0), privacy.neighbours)


def gaussian_beside(
    others: Sequence[tuple[Mechanism, int]], *, target: Privacy, sensitivity: float = 1.0
) -> float:
    """Return σ of the Gaussian mechanism that spends, beside others, the whole of a target.

    The least σ, but for a part in ten thousand, whose tight composition with them stays within.

    Args:
        others: (mechanism, how many times); their noise is fixed, and fits the target.
        target: the total (ε, δ), under their neighbouring relation.
        sensitivity: Δ of the Gaussian mechanism.

    Raises:
        BudgetExceeded: the others leave nothing for it.
    """
    pairs = check_mechanisms(others)

    def overspent(log_sigma: float) -> float:
        gaussian = Gaussian(
            sigma=math.exp(log_sigma), sensitivity=sensitivity, neighbours=target.neighbours
        )
        spent = tight([*pairs, (gaussian, 1)], delta=target.delta)
        return min(max(math.log(max(spent, 1e-300) / target.epsilon), -50.0), 50.0)

    alone = gaussian_sigma(epsilon=target.epsilon, delta=target.delta, sensitivity=sensitivity)
    low = high = math.log(alone)
    while overspent(high) > 0:
        low, high = high, high + 0.5
        if high - math.log(alone) > _HOPELESS:
            raise BudgetExceeded("Expected the other mechanisms to leave room for a Gaussian.")
    while high - low > _SIGMA_PRECISION:
        middle = (low + high) / 2
        low, high = (low, middle) if overspent(middle) <= 0 else (middle, high)
    return math.exp(high)


def _without_disclosures(
    pairs: Sequence[tuple[Mechanism, int]], delta: float
) -> tuple[list[tuple[Mechanism, int]], float]:
    """Return the other mechanisms, and the δ that is left for them.

    With P the probability that any disclosure tells all, δ(ε) of everything is P + (1 - P)·δ'(ε),
    with δ' of the others: a product of pairs one of which has no loss but an infinite one.
    """
    others = [pair for pair in pairs if not isinstance(pair[0], Disclosure)]
    if len(others) == len(pairs):
        return others, delta
    logs = math.fsum(
        count * math.log1p(-each.infinite_loss)
        for each, count in pairs
        if isinstance(each, Disclosure)
    )
    none = math.exp(logs)
    return others, (delta + math.expm1(logs) * (1 + _SUMS_ROUNDING)) / none


def _sums_cover(epsilon: float, delta: float, pairs: Sequence[tuple[Mechanism, int]]) -> bool:
    """Whether largest losses and truncated tails that add up are within ε and δ."""
    losses = math.fsum(count * mechanism.largest_loss for mechanism, count in pairs)
    tails = math.fsum(count * mechanism.infinite_loss for mechanism, count in pairs)
    return losses <= epsilon and tails <= delta


def _is_one(merged: Sequence[tuple[Mechanism, int]]) -> bool:
    """Whether this is one mechanism, whose δ(ε) has a closed form."""
    return len(merged) == 1 and merged[0][1] == 1


def _merge_gaussians(pairs: Sequence[tuple[Mechanism, int]]) -> list[tuple[Mechanism, int]]:
    """Put all Gaussians into one: their squared ratios Δ²/σ² add up, with no loss at all."""
    ratio = _gaussian_ratio(pairs)
    if ratio == 0:
        return list(pairs)
    merged = Gaussian(sigma=1 / ratio, sensitivity=1.0, neighbours=pairs[0][0].neighbours)
    others = [
        (mechanism, count) for mechanism, count in pairs if not isinstance(mechanism, Gaussian)
    ]
    return [(merged, 1), *others]


def _gaussian_ratio(pairs: Sequence[tuple[Mechanism, int]]) -> float:
    """Return Δ/σ of all Gaussians together, zero if there are none."""
    squares = (count * each.spread**2 for each, count in pairs if isinstance(each, Gaussian))
    return math.sqrt(math.fsum(squares))


def _bracket(overspent: Callable[[float], float], floor: float) -> tuple[float, float]:
    """Return two log factors with the answer between them (or the floor, if it is enough)."""
    low = high = max(0.0, floor)
    while overspent(high) > 0:
        low, high = high, high + 2.0
    while low > floor and overspent(low) <= 0:
        low, high = max(low - 2.0, floor), low
    return low, high
