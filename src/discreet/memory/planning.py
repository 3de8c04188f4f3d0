"""What a memory will be like, before anything is spent: from public numbers only."""

import math
from dataclasses import dataclass
from typing import Unpack

from discreet import _validate
from discreet.kernels import Kernel, registry
from discreet.kernels.sphere import answer_length
from discreet.memory.layout import Layout
from discreet.memory.options import CommonOptions, Options, shows_options
from discreet.memory.reader import WITHIN
from discreet.memory.settings import CLEAR, Settings, Shape, Unit, settle
from discreet.memory.temperature import Spread, usual_directions
from discreet.privacy import rounded_up


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Predictions for one memory. `str(plan)` is a page for people.

    Attributes:
        rows: the public number of rows that it is planned for.
        scale: the one that was asked for, or recommended.
        recommended_scale: the sharpest at which answers can be ranked (`Spread.clearness`); half of
            it has far less error.
        spread: the rows that stand in for the private ones.
        kernel: the feature map.
        kernel_reason: why it was chosen.
        tau: weight of the denominator.
        value_norm: public bound on values.
        value_dim: width of values.
        numerator_stderr: standard error of each entry of AV at a query of length `query_norm`.
        denominator_stderr: of D.
        rows_needed: rows at the largest logit for D to be five standard errors: fewer are noise.
        stderr: standard error of each number of an answer if rows are spread evenly in as many
            directions as is usual (`temperature.usual_directions`).
        kernel_stderr: what the kernel's own error adds to it.
        worst_stderr: both, if rows are spread evenly in all d directions; at least the usual.
        state_bytes: size of the state.
        build_flops: floating-point operations of the build.
        warning: what is wrong with the temperature, if anything.
    """

    rows: int
    epsilon: float
    delta: float
    scale: float
    recommended_scale: float
    spread: Spread
    kernel: Kernel
    kernel_reason: str
    tau: float
    value_norm: float
    value_dim: int
    numerator_stderr: float
    denominator_stderr: float
    rows_needed: float
    stderr: float
    kernel_stderr: float
    worst_stderr: float
    state_bytes: int
    build_flops: float
    warning: str | None

    def stderr_if(self, *, attended: float) -> float:
        """Return the standard error of an answer that so many rows at the largest logit make up.

        If they agree, so that the answer is as long as values are, and its numbers are alike; the
        other rows come in clusters as large.

        Args:
            attended: a number of rows, for instance a tenth of all.
        """
        attended = _validate.real("attended", attended, above=0)
        number = self.value_norm / math.sqrt(self.value_dim)
        noise = self.numerator_stderr / math.exp(self.kernel.largest_logit)
        noise *= math.hypot(1, number / self.tau)
        of_kernel = self.spread.sum_error(self.kernel.weight_error, attended)
        return math.hypot(noise, of_kernel * number) / attended

    def __str__(self) -> str:
        facts = [
            (
                "for",
                (
                    f"{self.rows:,} rows at ε = {rounded_up(self.epsilon)}, "
                    f"δ = {rounded_up(self.delta)}"
                ),
            ),
            (
                "scale",
                (
                    f"{self.scale:.4g} (recommended: {self.recommended_scale:.4g}, to rank by; "
                    "half of it has far less error)"
                ),
            ),
            ("kernel", f"{self.kernel.describe()}: {self.kernel_reason}"),
            ("kernel error", f"{self.kernel.error:.3g} {self.kernel.error_meaning}"),
            (
                "noise",
                (
                    f"±{self.numerator_stderr:.4g} on a numerator, "
                    f"±{self.denominator_stderr:.4g} on a denominator, at the longest query"
                ),
            ),
            (
                "rows needed",
                f"{self.rows_needed:,.0f} that match a query; from fewer, noise",
            ),
            ("state", f"{self.state_bytes:,} bytes, whatever the number of rows"),
            ("build", f"{self.build_flops / 1e9:,.3g} billion operations"),
            ("verdict", self.verdict),
        ]
        if self.warning:
            facts.append(("warning", self.warning))
        return "\n".join(f"{name:<14}{text}" for name, text in facts)

    @property
    def verdict(self) -> str:
        """What the figures come to, in a sentence."""
        usual, worst, matched = (
            f"±{WITHIN * error:.2g}"
            for error in (
                math.hypot(self.stderr, self.kernel_stderr),
                self.worst_stderr,
                self.stderr_if(attended=self.rows / 10),
            )
        )
        return (
            f"If rows vary in up to {usual_directions(self.kernel.dim):.0f} directions, each "
            f"number of an answer will be within {usual} of exact attention, 95% of the time; if "
            f"they are spread over all of space, within {worst}; where a tenth of all rows match "
            f"a query, within {matched}. (Values are at most {self.value_norm:g} long.)"
        )


@shows_options(without="rows_hint")
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

    A function of public numbers only. The options are those of `build` (`Options`), but for: rows,
    a public (rounded) number of them, `build`'s `rows_hint`; key_dim and value_dim, d and d_v;
    heads, of all layers together; by_record, whether `groups` will be given.
    """
    rows = _validate.whole("rows", rows, at_least=1, at_most=2**40)
    heads = _validate.whole("heads", heads, at_least=1, at_most=2**20)
    key_dim = _validate.whole("key_dim", key_dim, at_least=1, at_most=2**20)
    value_dim = _validate.whole("value_dim", value_dim, at_least=1, at_most=2**20)
    wanted = Options(rows_hint=rows, **options)
    shape = Shape(heads=(heads,), key_dim=key_dim, value_dim=value_dim)
    settings = settle([shape], wanted, unit=Unit.RECORD if by_record else Unit.ROW)
    automatic = wanted.kernel == registry.AUTO
    reason = settings.layouts[0].kernel.why_offered(wanted.eps_s) if automatic else "as asked"
    return _predict(rows, settings, reason)


def _predict(rows: int, settings: Settings, reason: str) -> Plan:
    layout = settings.layouts[0]
    kernel = layout.kernel
    logit = kernel.largest_logit
    numerator = settings.sigma(layout) * layout.real_unit * kernel.bound
    spread = Spread(
        rows=rows,
        dim=kernel.dim,
        value_dim=layout.value_dim,
        tau=layout.tau / layout.value_norm,
        multiplier=settings.crude_multiplier,
        **({"weight_error": kernel.weight_error} if kernel.weight_error else {}),
    )
    best = spread.recommended_scale(kernel.key_norm * kernel.query_norm)
    noise = numerator / math.exp(logit)
    usual, worst = (
        _errors(spread, layout, noise, dim) for dim in (usual_directions(kernel.dim), kernel.dim)
    )
    return Plan(
        rows=rows,
        epsilon=settings.privacy.epsilon,
        delta=settings.privacy.delta,
        scale=kernel.scale,
        recommended_scale=best,
        spread=spread,
        kernel=kernel,
        kernel_reason=reason,
        tau=layout.real_tau,
        value_norm=layout.value_norm,
        value_dim=layout.value_dim,
        numerator_stderr=numerator,
        denominator_stderr=numerator / layout.real_tau,
        rows_needed=CLEAR * noise / layout.real_tau,
        stderr=usual[0],
        kernel_stderr=usual[1],
        worst_stderr=max(math.hypot(*usual), math.hypot(*worst)),
        state_bytes=8 * math.prod(layout.shape),
        build_flops=_build_flops(rows, layout),
        warning=_warning(
            spread,
            kernel,
            best=best,
            rows_needed=CLEAR * noise / layout.real_tau,
            delta=settings.privacy.delta,
        ),
    )


def _build_flops(rows: int, layout: Layout) -> float:
    kernel = layout.kernel
    return rows * layout.head_count * (kernel.operations + 2.0 * kernel.features * layout.columns)


def _errors(spread: Spread, layout: Layout, noise: float, dim: float) -> tuple[float, float]:
    """Return the errors of a number of an answer, of the noise and of the kernel.

    Args:
        spread: rows spread evenly.
        layout: of the state.
        noise: of a numerator, over the largest weight.
        dim: in how many directions they are spread.
    """
    kernel = layout.kernel
    logit = kernel.largest_logit
    mass, length = spread.mass(logit, dim), answer_length(logit, dim)
    error = math.hypot(spread.sum_error(kernel.weight_error, mass) / mass, kernel.length_error(dim))
    number = layout.value_norm / math.sqrt(layout.value_dim)
    return noise / mass * spread.quotient(length), error * number


def _warning(
    spread: Spread, kernel: Kernel, *, best: float, rows_needed: float, delta: float
) -> str | None:
    """Return what is wrong with the temperature or the number of rows; None if nothing is."""
    if delta * spread.rows >= 1:
        return f"δ = {delta:g} is not below one over the number of rows: it protects nobody."
    if rows_needed > spread.rows:
        return (
            f"{spread.rows:,} rows are too few at this ε and δ, at any temperature: answers will "
            "be noise."
        )
    if kernel.scale <= best * 1.05:
        return None
    times = spread.clearness(kernel.largest_logit)
    return (
        f"scale {kernel.scale:.4g} is too sharp for {spread.rows:,} rows, this ε and this kernel: "
        f"an answer is {times:.2g} times as long as the error of each of its numbers. "
        f"scale={best:.3g} would do."
    )
