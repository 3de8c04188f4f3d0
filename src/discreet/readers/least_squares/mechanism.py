"""Least squares as a mechanism: public settings from options, and one pass over the rows."""

import math
from collections.abc import Sequence
from typing import Any

from discreet import _validate
from discreet.readers.least_squares.answers import LeastSquares
from discreet.readers.least_squares.layout import Moments, Request, choose
from discreet.readers.least_squares.options import LeastSquaresOptions
from discreet.sums.forecast import Forecast
from discreet.sums.layout import default_tau
from discreet.sums.mechanism import Mechanism
from discreet.sums.moments import drawable
from discreet.sums.settings import Settings, Shape, Unit, crude_multiplier, value_resolution


class LeastSquaresMechanism(Mechanism[LeastSquaresOptions, Moments, LeastSquares]):
    """Σ φ ⊗ [v; τ] and Σ φ ⊗ φ over all rows, with noise once: what `LeastSquares` solves."""

    name = "least_squares"
    options = LeastSquaresOptions
    answers = LeastSquares

    def resolve(
        self, shapes: Sequence[Shape], options: LeastSquaresOptions, *, unit: Unit = Unit.ROW
    ) -> Settings[Moments]:
        """Return the settings of a regression: features, bounds, and shares of the budget.

        Args:
            shapes: of the layers.
            options: checked.
            unit: whom the guarantee protects.
        """
        if len(shapes) != 1:
            _validate.reject("layers", f"{len(shapes)} of them", "one")
        [shape] = shapes
        multiplier = crude_multiplier(options.privacy, math.prod(shape.heads), options.group_rows)
        value_norm = options.number("value_norm", 0, 1)
        request = Request(
            features=options.features,
            dim=shape.key_dim,
            key_norm=options.number("key_norm", 0, 1),
            rows=options.rows_hint,
            multiplier=multiplier,
            public_rows=options.public_rows_of(0, 1, dim=shape.key_dim),
        )
        chosen = choose(request, options.share)
        tau = value_norm / 2 if options.centred else default_tau(value_norm, shape.value_dim)
        layout = Moments(
            kernel=chosen.features,
            heads=shape.heads,
            value_dim=shape.value_dim,
            value_norm=value_norm,
            tau=tau if options.tau is None else options.number("tau", 0, 1),
            resolution=value_resolution(multiplier, rows_hint=options.rows_hint),
            share=chosen.share,
            ridge=options.ridge,
            centred=options.centred,
            moment=chosen.moment,
        )
        return Settings(
            layouts=(drawable(layout, options.privacy, unit, options.group_rows),),
            privacy=options.privacy,
            unit=unit,
            group_rows=options.group_rows,
            rows_hint=options.rows_hint,
            leaks=options.leaks,
        )

    def forecast(self, **given: Any) -> Forecast:  # noqa: ANN401 (of `planning.plan`)
        """Return what a release would be like, from public numbers only (`planning.plan`).

        Args:
            **given: the arguments of this reader's `plan`.
        """
        from discreet.readers.least_squares.planning import plan

        return plan(**given)


LEAST_SQUARES = LeastSquaresMechanism()
