"""What a regression will be like, before anything is spent: from public numbers only.

Rows and values that stand in for the private ones come from a public hash (`Rehearsal`). Their sums
are solved with and without noise, as those of a release are.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Unpack

import numpy as np

from discreet import _validate
from discreet._typing import Floats
from discreet.features.base import SymmetricMap
from discreet.features.fourier import public_normals
from discreet.features.public_rows import PublicRows
from discreet.readers.attention.prediction import times
from discreet.readers.attention.reader import WITHIN
from discreet.readers.least_squares.layout import Moments
from discreet.readers.least_squares.mechanism import LEAST_SQUARES, LeastSquaresOptions, PlanOptions
from discreet.readers.least_squares.solution import NoisySums, Solution
from discreet.sums.forecast import Forecast, planned_shape, planned_unit
from discreet.sums.mechanism import shows_options
from discreet.sums.settings import part_sigmas

# Rows that stand in: so many for each feature, and no fewer, for the sums; and for queries.
_ROWS_PER_FEATURE, _LEAST_ROWS, _QUERIES = 2, 1_000, 400

# So many numbers of a value are predicted: each is as noisy as the others.
_MOST_NUMBERS = 4

# Where features are few, one draw of the noise tells little: all draws have so many of them.
_FEATURES_DRAWN, _MOST_DRAWS = 1_024, 64

# Rows that are needed are found within this factor, in so many steps at most, none of them by more
# than this factor (log), and clearness is taken to grow with rows at least this fast.
_NEAR, _STEPS, _FURTHEST, _LEAST_SLOPE = 1.1, 5, 5.0, 0.2


@dataclass(frozen=True)
class Outcome:
    """What predictions are like with so many rows; root mean squares, in the units of values.

    Attributes:
        signal: how much predictions without noise differ from query to query.
        of_sums: how far the noise of the sums moves them.
        of_moments: how far that of the second moments does.
        stderr: how far both do.
    """

    signal: float
    of_sums: float
    of_moments: float
    stderr: float

    @property
    def signal_to_error(self) -> float:
        """Signal over standard error."""
        return self.signal / max(self.stderr, np.finfo(float).tiny)


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """Means over rows that stand in for the private ones, and the noise that sums will have.

    Attributes:
        layout: of a regression with one head for each draw of the noise.
        sigma: of the noise on the sums, in lattice units.
        totals: the mean of φ ⊗ [v; τ], in lattice units, shape (d_v + 1, r).
        moments: the mean of φ ⊗ φ, likewise, shape (r, r).
        queries: features of other rows of the kind, shape (m, r).
    """

    layout: Moments
    sigma: float
    totals: Floats
    moments: Floats
    queries: Floats

    @classmethod
    def of(
        cls, layout: Moments, *, sigma: float, signal: float, public_rows: PublicRows | None
    ) -> "Rehearsal":
        """Return the rehearsal of a regression.

        Args:
            layout: its public settings.
            sigma: of the noise on its sums, in lattice units.
            signal: how much each number of a value follows the key, a standard deviation.
            public_rows: rows like the private ones, if there are any.
        """
        count = layout.kernel.features
        numbers = min(layout.value_dim, _MOST_NUMBERS)
        rows = max(_ROWS_PER_FEATURE * count, _LEAST_ROWS)
        keys = _keys(layout, rows + _QUERIES, public_rows)
        values = _values(keys, numbers, signal)
        mapped = layout.kernel.key_features(keys).features
        shown, asked = mapped[:rows], mapped[rows:]
        weighed = np.column_stack([values[:rows], np.full(rows, layout.real_tau)])
        squared = layout.coarse(shown)
        draws = min(math.ceil(_FEATURES_DRAWN / count), _MOST_DRAWS)
        return cls(
            layout=replace(layout, heads=(draws,), value_dim=numbers),
            sigma=sigma,
            totals=weighed.T @ shown / (rows * layout.kernel.unit * layout.real_unit),
            moments=squared.T @ squared / rows,
            queries=asked / layout.kernel.unit,
        )

    def outcome(self, rows: float) -> Outcome:
        """Return what predictions are like with so many rows.

        Noise of the sums is known exactly: σ·‖x‖ with x = (G₊ + λ)⁻¹·φ. That of the second moments
        is drawn.
        """
        quiet = Solution.of(self._sums(rows, noise=False))
        noisy = Solution.of(self._sums(rows, noise=True))
        pulled = self.queries @ noisy.inverse
        of_sums = _size(np.linalg.norm(pulled, axis=-1)[..., None] * noisy.centred_sigma)
        of_moments = _size(self.queries @ (noisy.weights - quiet.weights))
        predicted = self.queries @ quiet.weights
        signal = _size(predicted - predicted.mean(axis=1, keepdims=True))
        return Outcome(signal, of_sums, of_moments, math.hypot(of_sums, of_moments))

    def rows_for(
        self, ratio: float, start: float, outcome: Outcome, *, most: float
    ) -> float | None:
        """Return about how many rows make signal over standard error as large as `ratio`.

        Args:
            ratio: the one that is wanted.
            start: a number of rows to begin with.
            outcome: what predictions are like with that.
            most: None is returned if it takes more.
        """
        rows, clear = start, outcome.signal_to_error
        slope = 1.0  # of log clearness over log rows; then that of the last two
        for _ in range(_STEPS):
            if abs(math.log(ratio / clear)) < slope * math.log(_NEAR):
                break
            step = min(max(math.log(ratio / clear) / slope, -_FURTHEST), _FURTHEST)
            last, before = rows, clear
            rows = min(max(rows * math.exp(step), 1.0), 2 * most)
            clear = self.outcome(rows).signal_to_error
            if rows != last:
                slope = math.log(clear / before) / math.log(rows / last)
                slope = min(max(slope, _LEAST_SLOPE), 2.0)
        return rows if rows <= most else None

    def _sums(self, rows: float, *, noise: bool) -> NoisySums:
        """Return what so many rows add up to, with noise on the second moments or without."""
        layout = self.layout if noise else replace(self.layout, heads=())
        heads = layout.head_count
        others: tuple[Floats, ...] = ()
        if layout.share:
            _, *sigmas = part_sigmas(layout, self.sigma)
            exact = rows * np.diagonal(self.moments), rows * self._upper
            others = tuple(
                part + sigma * more if noise else part[None]
                for part, sigma, more in zip(exact, sigmas, self._normals, strict=True)
            )
        state = np.broadcast_to(rows * self.totals, (heads, *self.totals.shape))
        return NoisySums(layout, state, others, self.sigma, None, max(round(rows), 1))

    @cached_property
    def _upper(self) -> Floats:
        return self.moments[np.triu_indices(len(self.moments), 1)]

    @cached_property
    def _normals(self) -> tuple[Floats, Floats]:
        """Noise of variance one, for the diagonal and for what is above it, in each draw."""
        draws = self.layout.head_count
        sizes = (len(self.moments), len(self._upper))
        diagonal, upper = (
            public_normals(f"discreet rehearsal noise {part}", draws * size).reshape(draws, size)
            for part, size in enumerate(sizes)
        )
        return diagonal, upper


def _keys(layout: Moments, count: int, public_rows: PublicRows | None) -> Floats:
    """Return rows that stand in for the private ones: public ones, or such as are common.

    Those are as long as can be, around zero, and vary along axis i with a variance of 1/i: much in
    a few directions, and a little in all others.
    """
    if public_rows is not None:
        return np.asarray(public_rows.mixed[np.arange(count) % len(public_rows.mixed)])
    dim = layout.kernel.dim
    keys = public_normals("discreet rehearsal rows", count * dim).reshape(count, dim)
    keys /= np.sqrt(np.arange(1, dim + 1))
    keys *= layout.kernel.key_norm / np.linalg.norm(keys, axis=1, keepdims=True)
    return keys


def _values(keys: Floats, numbers: int, signal: float) -> Floats:
    """Return values on straight lines, which follow most what keys vary by most."""
    apart = keys - keys.mean(axis=0)
    drawn = public_normals("discreet rehearsal lines", len(keys) * numbers)
    values = apart @ (apart.T @ drawn.reshape(-1, numbers))
    values *= signal / np.maximum(values.std(axis=0), np.finfo(float).tiny)
    return np.asarray(values)


def _size(numbers: Floats) -> float:
    """Return the root mean square."""
    return float(np.sqrt(np.mean(np.square(numbers))))


# Of how much a number of values differs at most (values spread evenly in their ball), where nobody
# says how much of it keys tell.
_TOLD = 0.5

# What predictions differ by is clear of the noise at so many standard errors.
_CLEAR = 2.0

# A plan solves for all features, as a release does; more of them would take minutes.
_MOST_FEATURES, _MANY_FEATURES = 4_096, 1_024

# No more rows are offered.
_MOST_ROWS = 1e12


@dataclass(frozen=True, kw_only=True)
class RegressionPlan(Forecast):
    """Predictions for one regression. `str(plan)` is a page for people.

    Standard errors are those of one number of a prediction against the same fit without noise, as
    `LeastSquares.predict` gives them: right within a factor of two for most data, if values follow
    keys about as closely as `signal` says and rows fill their bounds. What features cannot express
    is not in them. `docs/errors.md`, "Least squares".

    Attributes:
        rows: the public number of rows that it is planned for.
        epsilon: to be spent.
        delta: to be spent.
        signal: how much each number of a value follows the key: a standard deviation.
        features: the feature map.
        share: of the squared budget, for the second moments.
        value_norm: public bound on values.
        value_dim: width of values.
        noise_sigma: standard deviation of the noise on each of the sums.
        moments_sigma: on each of the second moments.
        outcome: signal and errors of predictions.
        rehearsal: what they were found by.
        public: whether public rows stood in for the private ones.
        file_bytes: of the numbers in the file; its header has a few thousand more.
        build_flops: floating-point operations of the build.
    """

    inner: ClassVar[tuple[str, ...]] = ("outcome", "rehearsal")
    derived: ClassVar[tuple[str, ...]] = (
        "feature_count",
        "predicted_signal",
        "stderr",
        "sums_stderr",
        "moments_stderr",
        "signal_to_error",
        "rows_needed",
        "verdict",
        "advice",
        "warning",
    )

    signal: float
    features: SymmetricMap
    share: float
    value_norm: float
    value_dim: int
    noise_sigma: float
    moments_sigma: float
    outcome: Outcome
    rehearsal: Rehearsal
    public: bool
    file_bytes: int
    build_flops: float

    @property
    def feature_count(self) -> int:
        """How many numbers stand for a key."""
        return self.features.features

    @property
    def predicted_signal(self) -> float:
        """How much predictions differ from query to query, shrunk by λ."""
        return self.outcome.signal

    @property
    def stderr(self) -> float:
        """The standard error that the noise makes in each number of a prediction."""
        return self.outcome.stderr

    @property
    def sums_stderr(self) -> float:
        """The part of `stderr` that the noise on the sums makes."""
        return self.outcome.of_sums

    @property
    def moments_stderr(self) -> float:
        """The part of `stderr` that the noise on the second moments makes."""
        return self.outcome.of_moments

    @property
    def signal_to_error(self) -> float:
        """Signal over standard error of predictions: below one, they are mostly noise."""
        return self.outcome.signal_to_error

    @cached_property
    def rows_needed(self) -> int | None:
        """About how many rows make predictions differ by two standard errors, all else the same.

        None if no number that anybody has would do; and where fewer than are planned for would do,
        but features are so many that it takes long to say how many.
        """
        if self.signal_to_error >= _CLEAR and self.feature_count > _MANY_FEATURES:
            return None
        found = self.rehearsal.rows_for(_CLEAR, self.rows, self.outcome, most=_MOST_ROWS)
        return None if found is None else round(float(f"{found:.2g}"))

    @property
    def verdict(self) -> str:
        """Signal and error, and for which rows."""
        assumed = "rows like the public ones" if self.public else "rows that fill their bounds"
        return (
            f"Predictions differ by {times(self.signal_to_error)} times their standard error. The "
            f"noise moves each number by {self._within(self.stderr)}, 95% of the time: that of the "
            f"sums {self._within(self.sums_stderr)}, that of the second moments "
            f"{self._within(self.moments_stderr)}. This assumes {self.rows:,} {assumed}, and "
            f"values whose linear part has a standard deviation of {self.signal:.2g}."
        )

    @property
    def advice(self) -> str:
        """What limits the predictions, and what to change."""
        if self.signal_to_error < 1:
            return (
                "predictions will be mostly noise: more rows, a larger ε, fewer features "
                "(features='linear'), or narrower bounds."
            )
        if self.predicted_signal < self.signal / 2:
            return (
                f"predictions are shrunk to {self.predicted_signal / self.signal:.0%} of what keys "
                "tell, because the noise would hide the rest: more rows or a larger ε."
            )
        return "more rows or a larger ε make it less; so do bounds that rows and values fill."

    @property
    def lines(self) -> list[tuple[str, str]]:
        """The page below the verdict: advice, rows, features, noise and costs."""
        noise = f"σ = {self.noise_sigma:.4g} on each of the sums"
        if self.share:
            noise += (
                f", {self.moments_sigma:.4g} on second moments ({self.share:.0%} of the squared "
                "budget)"
            )
        needed = "fewer than these" if self.signal_to_error >= _CLEAR else "none would do"
        if self.rows_needed is not None:
            needed = f"about {self.rows_needed:,}"
        return [
            ("advice", self.advice),
            ("rows needed", f"{needed}, for predictions that differ by two standard errors"),
            ("features", self.features.describe()),
            ("noise", noise),
            ("file", f"{self.file_bytes:,} bytes and a header, whatever the number of rows"),
            ("build", f"{self.build_flops / 1e9:,.3g} billion operations"),
        ]

    @property
    def _own_warning(self) -> str | None:
        if self.signal_to_error >= 1:
            return None
        return (
            f"{self.rows:,} rows are too few at this ε and δ: predictions will be mostly noise, "
            f"unless values follow keys by more than {self.signal:.2g}."
        )

    def _within(self, stderr: float) -> str:
        return f"±{WITHIN * stderr:.2g}"


@shows_options(LeastSquaresOptions, PlanOptions.__annotations__)
def plan(
    *,
    rows: int,
    key_dim: int,
    value_dim: int = 1,
    heads: int = 1,
    by_record: bool = False,
    signal: float | None = None,
    **options: Unpack[PlanOptions],
) -> RegressionPlan:
    """Return what `least_squares` with these options would give, before anything is spent.

    A function of public numbers only.

    Args:
        rows: a public (rounded) number of rows: what the builder will give as `rows_hint`.
        key_dim: width of keys, d.
        value_dim: width of values, d_v.
        heads: how many there are.
        by_record: whether `groups` will be given.
        signal: by how much each number of a value follows the key: a standard deviation, in the
            units of values; None for half of what values that are spread evenly in their ball
            differ by.
        **options: those of `least_squares`.

    Returns:
        The plan.

    Raises:
        InvalidInput: an argument is not what it should be.
    """
    rows, shape = planned_shape(rows=rows, key_dim=key_dim, value_dim=value_dim, heads=heads)
    wanted = LeastSquaresOptions(rows_hint=rows, **options)
    settings = LEAST_SQUARES.resolve([shape], wanted, unit=planned_unit(by_record=by_record))
    [layout] = settings.layouts
    if layout.kernel.features > _MOST_FEATURES:
        count = f"{layout.kernel.features:,}"
        _validate.reject("features", count, f"at most {_MOST_FEATURES:,} of them, for a plan")
    follows = _TOLD * layout.value_norm / math.sqrt(layout.value_dim + 2)
    if signal is not None:
        follows = _validate.real("signal", signal, above=0, at_most=layout.value_norm)
    public_rows = wanted.public_rows_of(0, 1, dim=shape.key_dim)
    sigma = settings.sigma(layout)
    rehearsal = Rehearsal.of(layout, sigma=sigma, signal=follows, public_rows=public_rows)
    return RegressionPlan(
        rows=rows,
        epsilon=settings.privacy.epsilon,
        delta=settings.privacy.delta,
        signal=follows,
        features=layout.kernel,
        share=layout.share,
        value_norm=layout.value_norm,
        value_dim=layout.value_dim,
        noise_sigma=sigma * layout.real_unit,
        moments_sigma=layout.moments_sigma(sigma),
        outcome=rehearsal.outcome(rows),
        rehearsal=rehearsal,
        public=public_rows is not None,
        file_bytes=_file_bytes(layout),
        build_flops=_build_flops(rows, layout),
    )


def _file_bytes(layout: Moments) -> int:
    numbers = sum(math.prod(shape) for shape in layout.shapes)
    return 8 * numbers + sum(array.nbytes for array in layout.arrays().values())


def _build_flops(rows: int, layout: Moments) -> float:
    """Return the operations of a build: features, sums, and second moments if there are any."""
    kernel = layout.kernel
    moments = float(kernel.features) * (kernel.features + 1) if layout.share else 0.0
    sums = 2.0 * kernel.features * layout.columns
    return rows * layout.head_count * (kernel.operations + sums + moments)
