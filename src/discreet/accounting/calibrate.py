"""The least noise that stays within a budget."""

import math
from collections.abc import Callable, Sequence

from discreet import _validate
from discreet.accounting.compose import check_mechanisms, tight
from discreet.accounting.events import Mechanism
from discreet.errors import BudgetExceeded, InvalidInput
from discreet.privacy import Privacy, rounded_up

# The noise factor is found to this relative precision, and ends on the private side.
_PRECISION = 1e-6


def calibrate(
    mechanisms: Sequence[tuple[Mechanism, int]], *, target: Privacy
) -> list[tuple[Mechanism, int]]:
    """Return the mechanisms with the least noise whose tight composition stays within `target`.

    All noise scales are multiplied by one common factor, so the given scales fix the proportions
    between the mechanisms and nothing else. The δ of each truncated Laplace is kept.

    Args:
        mechanisms: (mechanism, how many times), as for `tight`.
        target: the total (ε, δ), under the mechanisms' neighbouring relation.

    Raises:
        BudgetExceeded: no amount of noise helps, because the truncated tails alone exceed δ.
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
    floor = math.log(least) + 1e-12 if least > 0 else -math.inf
    low, high = _bracket(overspent, floor)
    if overspent(low) <= 0:
        return with_noise(low)
    from scipy import optimize  # here, because it takes long to load and few calls need it

    root = float(optimize.brentq(overspent, low, high, xtol=_PRECISION))
    while overspent(root) > 0:
        root += _PRECISION
    return with_noise(root)


def _bracket(overspent: Callable[[float], float], floor: float) -> tuple[float, float]:
    """Return two log factors with the answer between them (or the floor, if it is enough)."""
    low = high = max(0.0, floor)
    while overspent(high) > 0:
        low, high = high, high + 2.0
    while low > floor and overspent(low) <= 0:
        low, high = max(low - 2.0, floor), low
    return low, high
