"""The public settings of a stream, from options and shapes: it sees no row."""

import math
from dataclasses import replace
from typing import Any

from discreet import _validate
from discreet.accounting import gaussian_epsilon
from discreet.errors import InvalidInput
from discreet.noise.correlated import Continual, Participation, Reading, ReadingKind, chosen
from discreet.privacy import Privacy
from discreet.sums.mechanism import Mechanism, ReleaseOptions
from discreet.sums.settings import Settings, Shape, Unit, noise_multiplier

# Noise beyond this is of no ε at all; the least that settings are made for.
_LEAST_EPSILON = 1e-6


def reading_of(tune: str, window: int | None, half_life: float | None, *, steps: int) -> Reading:
    """Return which reading of a stream is to have the least noise.

    Args:
        tune: "all".
        window: or the last so many steps.
        half_life: or all, with weights that halve.
        steps: the design horizon.
    """
    if tune != ReadingKind.ALL:
        _validate.reject_argument("tune", tune, "'all', or left out: window and half_life say more")
    if window is not None and half_life is not None:
        raise InvalidInput("Expected window or half_life, not both.")
    if window is not None:
        _validate.whole("window", window, at_least=1, at_most=steps)
        return Reading(ReadingKind.WINDOW, window)
    return Reading() if half_life is None else Reading(ReadingKind.DECAY, half_life)


def resolve(
    mechanism: Mechanism[Any, Any, Any],
    shapes: list[Shape],
    options: ReleaseOptions,
    *,
    unit: Unit,
    steps: int,
    tune: Reading,
    participation: Participation,
    enforced: bool,
) -> Settings[Any]:
    """Return the public settings of a stream.

    Kernel and lattice are those of one release with as much noise as the state has that the
    stream is tuned for. Such a release has a smaller ε, so that is what the reader is asked for.

    Args:
        mechanism: what is built of its states.
        shapes: of the layers.
        options: checked; `rows_hint` is for all `steps` together.
        unit: whom the guarantee protects.
        steps: the design horizon.
        tune: which reading is to have the least noise.
        participation: in how many steps a unit may have rows.
        enforced: whether rows beyond that are left out, by the ids of records.
    """
    continual = Continual(chosen(tune, participation, steps=steps), participation, enforced)
    heads = sum(math.prod(shape.heads) for shape in shapes)
    noisy = replace(
        options,
        epsilon=epsilon_of_state(options.privacy, heads, continual, tune, steps=steps),
        rows_hint=_part(options.rows_hint, tune.steps(steps) / steps),
    )
    settings = mechanism.resolve(shapes, noisy, unit=unit)
    return replace(
        settings,
        privacy=options.privacy,
        rows_hint=options.rows_hint,
        continual=continual,
    )


def epsilon_of_state(
    privacy: Privacy, heads: int, continual: Continual, tune: Reading, *, steps: int
) -> float:
    """Return the ε of one single release with as much noise as a state of a stream has.

    For choosing kernels and lattices, which follow from the noise. No promise.

    Args:
        privacy: of the stream.
        heads: of all layers together.
        continual: strategy and participation.
        tune: which state.
        steps: after so many.
    """
    factor = continual.sensitivity * math.sqrt(tune.variance(continual.strategy, steps))
    epsilon = gaussian_epsilon(
        sigma=noise_multiplier(privacy, heads) * factor,
        delta=privacy.delta,
        sensitivity=math.sqrt(heads),
    )
    return max(epsilon, _LEAST_EPSILON)


def _part(rows: int | None, share: float) -> int | None:
    """Return a public number of rows for a part of all steps."""
    return None if rows is None else max(round(rows * min(share, 1.0)), 1)
