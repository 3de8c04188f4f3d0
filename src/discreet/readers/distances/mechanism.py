"""Sums of distances as a mechanism: public settings from options, and one pass over the rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet import _validate
from discreet._arrays import plain_numbers
from discreet._typing import Array
from discreet.errors import InvalidInput
from discreet.features.cosines import LEAST_TERMS, MOST_TERMS, Cosines, left_out
from discreet.readers.distances.answers import Distances
from discreet.readers.distances.options import DistanceLayout, DistanceOptions
from discreet.sums.forecast import Forecast
from discreet.sums.mechanism import Mechanism
from discreet.sums.settings import Settings, Shape, Unit, crude_multiplier, value_resolution
from discreet.sums.source import Chunk, Form, RowSource, tables_of

# Where nobody says how many rows there are; and the most numbers that are released.
_USUAL_TERMS, _MOST_FEATURES = 512, 2**15

# Rows are spread out: a cusp is met by one in so many of them, or fewer.
_AT_A_CUSP = 8.0


class DistanceMechanism(Mechanism[DistanceOptions, DistanceLayout, Distances]):
    """Σ w·φ(x) over all rows, with noise once: what `Distances` answers from."""

    name = "distances"
    options = DistanceOptions
    answers = Distances

    def source(
        self, keys: Array, values: Array, groups: Array, options: DistanceOptions
    ) -> RowSource:
        """Return points and weights: arrays, or chunks of both.

        Args:
            keys: arrays, or chunks.
            values: what comes with the keys.
            groups: the record of each row; None if each row is its own.
            options: public.
        """
        if values is None and not options.weighted and hasattr(keys, "__array__"):
            values = np.broadcast_to(0.0, len(keys))  # nobody looks at them
        chunk = _weighted if options.weighted else _unweighted
        return RowSource.of(keys, values, groups, Form(values="weights", chunk=chunk))

    def resolve(
        self, shapes: Sequence[Shape], options: DistanceOptions, *, unit: Unit = Unit.ROW
    ) -> Settings[DistanceLayout]:
        """Return the settings: bounds, lattice, and as many terms as the noise deserves.

        Args:
            shapes: of the layers.
            options: checked.
            unit: whom the guarantee protects.
        """
        [shape] = shapes
        if shape.heads:
            _validate.reject("heads", shape.heads, "(): points have shape (n, d)")
        multiplier = crude_multiplier(options.privacy, 1, options.group_rows)
        low, high = options.ends(shape.key_dim)
        layout = DistanceLayout(
            kernel=Cosines(
                low=low,
                high=high,
                power=options.p,
                terms=_terms(options, shape.key_dim, multiplier),
            ),
            weight_bound=options.weight_bound,
            weighted=options.weighted,
            resolution=value_resolution(multiplier, rows_hint=options.rows_hint),
        )
        return options.settings(layout, unit)

    def forecast(self, **given: Any) -> Forecast:  # noqa: ANN401 (of `planning.plan`)
        """Return what sums of distances will be like; see `planning.plan`.

        Args:
            **given: the arguments of this reader's `plan`.
        """
        from discreet.readers.distances.planning import plan

        return plan(**given)


DISTANCES = DistanceMechanism()


def _terms(options: DistanceOptions, dim: int, multiplier: float) -> int:
    """Return how many terms of the series are kept: what is left out is below the noise.

    The noise of an answer is σ times the bound on weights; a row whose cusp is asked for moves it
    by `left_out`.
    """
    most = _MOST_FEATURES if options.features is None else options.features
    allowed = min(max((most - 1) // (2 * dim) + 1, LEAST_TERMS), MOST_TERMS)
    if options.rows_hint is None:
        return min(_USUAL_TERMS, allowed)
    terms = LEAST_TERMS
    hidden = _AT_A_CUSP * multiplier / options.rows_hint
    while terms < allowed and left_out(options.p, terms) > hidden:
        terms *= 2
    return min(max(terms, 64), allowed)


def _unweighted(keys: Array, values: Array, groups: Array) -> Chunk:
    """Return points as a table; whatever stands for their weights is not looked at."""
    del values
    return _weighted(keys, np.broadcast_to(0.0, len(keys)), groups)


def _weighted(keys: Array, values: Array, groups: Array) -> Chunk:
    """Return points and weights as a table: those with one column may be shape (n,)."""
    points, weights = plain_numbers("points", keys), plain_numbers("weights", values)
    points, weights = (each[:, None] if each.ndim == 1 else each for each in (points, weights))
    if points.ndim != 2:
        raise InvalidInput("Expected points of shape (n, d), or (n,) for one column.")
    return tables_of([(points, weights)]), groups
