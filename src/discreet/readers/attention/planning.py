"""What a memory will be like, before anything is spent: from public numbers only."""

import math
from dataclasses import dataclass
from typing import ClassVar, Unpack

from discreet import _validate
from discreet.features import registry
from discreet.features.kernel import Kernel
from discreet.readers.attention.error_model import Goal, Sample
from discreet.readers.attention.layout import Layout
from discreet.readers.attention.mechanism import ATTENTION
from discreet.readers.attention.options import CommonOptions, Options
from discreet.readers.attention.prediction import (
    Prediction,
    matching_rows,
    noise_of_sums,
    rows_needed,
)
from discreet.sums.forecast import Forecast, planned_shape, planned_unit
from discreet.sums.mechanism import shows_options
from discreet.sums.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Plan(Forecast):
    """Predictions for one memory. `str(plan)` is a page for people.

    Standard errors and the signal are those of one number of an answer (`Prediction`), right within
    a factor of two or three for most data: `docs/errors.md`.

    Attributes:
        epsilon: to be spent.
        delta: to be spent.
        rows: the public number of rows that it is planned for.
        goal: what answers are for.
        scale: the one that was asked for, or recommended.
        recommended_scale: the best for the goal, with this kernel.
        kernel: the feature map.
        kernel_reason: why it was chosen.
        tau: weight of the denominator.
        value_norm: public bound on values.
        value_dim: width of values.
        numerator_stderr: standard error of each entry of AV at a query of length `query_norm`.
        denominator_stderr: of D.
        rows_needed: rows at the largest logit for D to be five standard errors: fewer are noise.
        prediction: signal and errors for rows that are centred, or like the public rows.
        state_bytes: size of the state.
        build_flops: floating-point operations of the build.
    """

    inner: ClassVar[tuple[str, ...]] = ("prediction",)
    derived: ClassVar[tuple[str, ...]] = (
        "signal",
        "signal_to_error",
        "stderr",
        "noise_stderr",
        "kernel_stderr",
        "doubled_stderr",
        "kernel_error",
        "features",
        "verdict",
        "advice",
        "warning",
    )

    goal: Goal
    scale: float
    recommended_scale: float
    kernel: Kernel
    kernel_reason: str
    tau: float
    value_norm: float
    value_dim: int
    numerator_stderr: float
    denominator_stderr: float
    rows_needed: float
    prediction: Prediction
    state_bytes: int
    build_flops: float

    @property
    def features(self) -> int:
        """How many numbers stand for a key."""
        return self.kernel.features

    @property
    def kernel_error(self) -> float:
        """The error of the kernel itself; `kernel.error_meaning` says of what."""
        return self.kernel.error

    @property
    def signal(self) -> float:
        """How much answers differ from query to query where keys tell values apart: at best."""
        return self.prediction.signal

    @property
    def signal_to_error(self) -> float:
        """Signal over standard error: below one, answers are mostly error."""
        return self.prediction.signal_to_error

    @property
    def noise_stderr(self) -> float:
        """The part of `stderr` that the noise makes."""
        return self.prediction.noise_stderr

    @property
    def kernel_stderr(self) -> float:
        """The part of `stderr` that the kernel makes."""
        return self.prediction.kernel_stderr

    @property
    def stderr(self) -> float:
        """The standard error of each number of an answer, noise and kernel."""
        return self.prediction.stderr

    @property
    def doubled_stderr(self) -> float:
        """The same with twice as many random features."""
        return self.prediction.doubled_stderr

    def stderr_if(self, *, attended: float) -> float:
        """Return the standard error of an answer that so many rows make up.

        If they are as near as rows can be and agree, so that the answer is as long as values are,
        and its numbers are alike.

        Args:
            attended: a number of rows, for instance a tenth of all.
        """
        attended = _validate.real("attended", attended, above=0)
        return min(self.prediction.spread.error_of(attended), 1.0) * self.value_norm

    @property
    def lines(self) -> list[tuple[str, str]]:
        """The page below the verdict: advice, temperature, kernel, noise and costs."""
        return [
            ("advice", self.advice),
            (
                "scale",
                (
                    f"{self.scale:.4g} (recommended: {self.recommended_scale:.4g}, for "
                    f"goal={str(self.goal)!r}: {_MEANING[self.goal]})"
                ),
            ),
            ("kernel", f"{self.kernel.describe()}: {self.kernel_reason}"),
            ("kernel error", f"{self.kernel.error:.3g} {self.kernel.error_meaning}"),
            ("features", f"{self.kernel.features:,}; {self.prediction.of_more_features}"),
            noise_of_sums(numerator=self.numerator_stderr, denominator=self.denominator_stderr),
            matching_rows(self.rows_needed),
            ("state", f"{self.state_bytes:,} bytes, whatever the number of rows"),
            ("build", f"{self.build_flops / 1e9:,.3g} billion operations"),
        ]

    @property
    def verdict(self) -> str:
        """What the figures come to, in a sentence or two."""
        return self.prediction.verdict

    @property
    def advice(self) -> str:
        """What limits the answers, and what to change."""
        return f"{self._limit}{self.prediction.for_texts}"

    @property
    def _limit(self) -> str:
        said = self.prediction
        if self.scale > 1.2 * self.recommended_scale and said.signal_to_error < 2:
            return f"the temperature limits it: scale={self.recommended_scale:.3g} would do better."
        if said.kernel_stderr > said.noise_stderr:
            more = f"allow more features (features={2 * self.kernel.features})"
            if said.spread.sample is None:
                more += ", or give public rows"
            if not self.kernel.weight_error:
                more = "ask for a smaller eps_s"
            return f"the kernel limits it: {more}; more rows or a larger ε do not help against it."
        if said.signal_to_error < 1:
            return (
                "the noise limits it, and answers will be mostly noise: more rows, a larger ε, or "
                "fewer and wider classes of values."
            )
        return "the noise limits it: twice the rows, or twice the ε, would halve it."

    @property
    def _own_warning(self) -> str | None:
        """What is wrong with the temperature or the number of rows; None if nothing is."""
        if self.rows_needed > self.rows:
            return (
                f"{self.rows:,} rows are too few at this ε and δ, at any temperature: answers will "
                "be noise."
            )
        if self.scale <= self.recommended_scale * 1.2 or self.signal_to_error >= 1:
            return None
        return (
            f"scale {self.scale:.4g} is too sharp for {self.rows:,} rows, this ε and this kernel: "
            f"answers differ by {self.signal_to_error:.2g} times their standard error. "
            f"scale={self.recommended_scale:.3g} would do."
        )


_MEANING = {
    Goal.RANK: "votes and classes; goal='average' is as soft or softer, with less error",
    Goal.AVERAGE: "numbers; goal='rank' is as sharp or sharper, for votes and classes",
}


@shows_options(Options, CommonOptions.__annotations__)
def plan(
    *,
    rows: int,
    key_dim: int,
    value_dim: int,
    heads: int = 1,
    by_record: bool = False,
    **options: Unpack[CommonOptions],
) -> Plan:
    """Return what `build` with these options would give, before any privacy is spent.

    A function of public numbers only.

    Args:
        rows: a public (rounded) number of rows: what the builder will give as `rows_hint`.
        key_dim: width of keys, d.
        value_dim: width of values, d_v.
        heads: of all layers together.
        by_record: whether `groups` will be given.
        **options: those of `build`.

    Returns:
        The plan.

    Raises:
        InvalidInput: an argument is not what it should be.
    """
    rows, shape = planned_shape(rows=rows, key_dim=key_dim, value_dim=value_dim, heads=heads)
    wanted = Options(rows_hint=rows, **options)
    settings = ATTENTION.resolve([shape], wanted, unit=planned_unit(by_record=by_record))
    automatic = wanted.kernel == registry.AUTO
    reason = settings.layouts[0].kernel.why_offered(wanted.eps_s) if automatic else "as asked"
    public_rows = wanted.public_rows_of(0, 1, dim=shape.key_dim)
    sample = None
    if public_rows is not None:
        sample = Sample.of(public_rows.mixed / settings.layouts[0].kernel.key_norm)
    asked = wanted.scale is not None or isinstance(wanted.kernel, Kernel)
    goal = Goal(wanted.goal)
    return _predict(rows, settings, reason, goal=goal, sample=sample, asked=asked)


def _predict(
    rows: int,
    settings: Settings[Layout],
    reason: str,
    *,
    goal: Goal,
    sample: Sample | None,
    asked: bool,
) -> Plan:
    """Return the plan; `asked` is whether the scale was asked for, and not recommended."""
    layout = settings.layouts[0]
    kernel = layout.kernel
    numerator = settings.sigma(layout) * layout.real_unit * kernel.bound
    prediction = Prediction.of(layout, rows=rows, sigma=settings.sigma(layout), sample=sample)
    best = kernel.scale
    if asked:
        best = prediction.spread.recommended_scale(kernel.key_norm * kernel.query_norm, goal)
    return Plan(
        rows=rows,
        epsilon=settings.privacy.epsilon,
        delta=settings.privacy.delta,
        goal=goal,
        scale=kernel.scale,
        recommended_scale=best,
        kernel=kernel,
        kernel_reason=reason,
        tau=layout.real_tau,
        value_norm=layout.value_norm,
        value_dim=layout.value_dim,
        numerator_stderr=numerator,
        denominator_stderr=numerator / layout.real_tau,
        rows_needed=rows_needed(layout, sigma=settings.sigma(layout)),
        prediction=prediction,
        state_bytes=8 * math.prod(layout.shape),
        build_flops=_build_flops(rows, layout),
    )


def _build_flops(rows: int, layout: Layout) -> float:
    kernel = layout.kernel
    return rows * layout.head_count * (kernel.operations + 2.0 * kernel.features * layout.columns)
