"""Least squares as a mechanism: options, public settings from them, and one pass over the rows."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Required, TypedDict

from discreet import _validate
from discreet._typing import Array
from discreet.features import registry
from discreet.features.base import SymmetricMap
from discreet.provenance import Stated
from discreet.readers.least_squares.answers import LeastSquares
from discreet.readers.least_squares.layout import Moments, Request, check_features, choose
from discreet.sums.forecast import Forecast
from discreet.sums.layout import default_tau
from discreet.sums.mechanism import Mechanism, SharedOptions
from discreet.sums.moments import check_share, drawable
from discreet.sums.settings import Settings, Shape, Unit, crude_multiplier, value_resolution


class PlanOptions(TypedDict, total=False):
    """The options by name, for type checkers; `LeastSquaresOptions` has defaults and meaning."""

    epsilon: Required[float]
    delta: Required[float]
    neighbours: str
    key_norm: float
    value_norm: float
    features: str | SymmetricMap
    public_rows: Array
    share: float | None
    ridge: float
    centred: bool
    tau: float | None
    group_rows: float


class RegressionOptions(PlanOptions, total=False):
    """All options; what is `rows_hint` here is `rows` in `plan`."""

    rows_hint: int | None
    stated: Stated | Mapping[str, Any] | None


@dataclass(frozen=True, kw_only=True)
class LeastSquaresOptions(SharedOptions):
    """The options of a regression, checked.

    Attributes:
        epsilon: above 0.
        delta: above 0; well below one over the number of people.
        neighbours: "add_remove" (the number of rows is private, too), or "replace".
        key_norm: public bound on ‖key‖₂, and on queries. Choose it without looking at the data.
        value_norm: public bound on ‖value‖₂.
        features: "auto", "linear" (straight lines), "unit_linear" (straight lines between classes),
            "unit_fourier" (curves of any shape: random Fourier features), "linear_and_fourier"
            (both), "unit_landmarks" (like public rows), or a map from `discreet.features`. Files
            and older code call the last four "rays", "waves", "lines_and_waves" and
            "near_landmarks", which still work.
        rows_hint: a public, rounded number of rows. Never computed from the data under
            "add_remove"; under "replace" the number of rows is public, and the default for arrays
            that come whole, without groups. "auto" needs it.
        public_rows: rows that look like the private keys, and that anybody may see, shape (n, d).
            They become part of the release.
        share: of the squared budget, for the second moments; None for a third. 0 leaves the whole
            budget to the sums, for few rows. Then the second moments are those of `public_rows`,
            which must be like the private ones; or, without any, those of features that point
            everywhere alike: predictions are sums over rows that are near, as in a memory.
        ridge: how much is shrunk: λ in units of σ·√features, σ the noise of second moments. 0.5
            for numbers; 0.3 is better for classes.
        centred: whether predictions are shrunk towards the mean of all values (known from the
            noisy sums), and not to zero. For numbers, whose mean may be anything. For classes, less
            1/C, zero is better: the mean has noise, too.
        tau: weight of the column that counts rows; None for value_norm/2 if centred, which needs
            it, else value_norm/(4·d_v^¼).
        group_rows: a record's influence is scaled down to that of so many rows.
        stated: where the release comes from, in your words and public: a mapping with some
            of "data", "builder", "purpose", "contact" and "date", or a `discreet.Stated`. In
            the file and on the card, marked as stated by the builder.
        leaks: names of what was taken from the private rows, which the guarantee does not cover.
            `discreet.sklearn` gives them.
    """

    features: str | SymmetricMap = registry.AUTO
    share: float | None = None
    ridge: float = 0.5
    centred: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_one_layer("a regression", "key_norm", "value_norm", "tau", "public_rows")
        check_features(self.features)
        if not isinstance(self.centred, bool):
            _validate.reject("centred", "...", "True or False")
        if self.share is not None:
            self._keep({"share": check_share(self.share)})
        self._keep({"ridge": _validate.real("ridge", self.ridge, at_least=1e-3, at_most=1e3)})


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
        drawn = drawable(layout, options.privacy, unit, options.group_rows)
        return options.settings(drawn, unit)

    def forecast(self, **given: Any) -> Forecast:  # noqa: ANN401 (of `planning.plan`)
        """Return what a release would be like, from public numbers only (`planning.plan`).

        Args:
            **given: the arguments of this reader's `plan`.
        """
        from discreet.readers.least_squares.planning import plan

        return plan(**given)


LEAST_SQUARES = LeastSquaresMechanism()
