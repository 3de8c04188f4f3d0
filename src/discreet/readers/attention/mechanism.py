"""Attention as a mechanism: public settings from options, and one pass over the rows."""

import math
from collections.abc import Hashable, Sequence
from typing import Any

from discreet import _validate
from discreet.features.fourier import FREQUENCIES, Fourier, random_error
from discreet.features.kernel import Kernel, check_logit
from discreet.features.public_rows import PublicRows
from discreet.provenance import Stated
from discreet.readers.attention.error_model import ErrorModel, Goal, Sample
from discreet.readers.attention.layout import Layout, Request, choose
from discreet.readers.attention.memory import Memory
from discreet.readers.attention.options import Options
from discreet.readers.attention.reference import USUAL_POINTS
from discreet.sums.forecast import Forecast
from discreet.sums.layout import check_tau, default_tau
from discreet.sums.mechanism import Mechanism
from discreet.sums.release import Released
from discreet.sums.settings import Settings, Shape, Unit, crude_multiplier, value_resolution


class Attention(Mechanism[Options, Layout, Memory]):
    """Σ φ(k) ⊗ [v; τ] over all rows, with noise once: what a `Memory` answers from."""

    name = "attention"
    options = Options
    answers = Memory

    def resolve(
        self, shapes: Sequence[Shape], options: Options, *, unit: Unit = Unit.ROW
    ) -> Settings[Layout]:
        """Return the settings of a build: kernels and temperatures, bounds and lattices.

        Args:
            shapes: of the layers.
            options: checked.
            unit: whom the guarantee protects.
        """
        heads = sum(math.prod(shape.heads) for shape in shapes)
        multiplier = crude_multiplier(options.privacy, heads, options.group_rows)
        known: dict[
            Hashable, Kernel
        ] = {}  # layers that want the same share one kernel, and its memory
        layouts = tuple(
            _layout(shape, options, (index, len(shapes)), multiplier, known)
            for index, shape in enumerate(shapes)
        )
        return Settings(
            layouts=layouts,
            privacy=options.privacy,
            unit=unit,
            group_rows=options.group_rows,
            rows_hint=options.rows_hint,
            leaks=options.leaks,
            stated=Stated.of(options.stated),
        )

    def forecast(self, **given: Any) -> Forecast:  # noqa: ANN401 (of `planning.plan`)
        """Return what a release would be like, from public numbers only (`planning.plan`).

        Args:
            **given: the arguments of this reader's `plan`.
        """
        from discreet.readers.attention.planning import plan

        return plan(**given)

    def read(self, released: Sequence[Released[Layout]]) -> list[Memory]:
        """Return one memory for each layer, and warn once if their answers are mostly noise.

        Args:
            released: noisy sums of each layer.
        """
        return Memory.of_release(released)


ATTENTION = Attention()


def _layout(
    shape: Shape,
    options: Options,
    layer: tuple[int, int],
    multiplier: float,
    known: dict[Hashable, Kernel],
) -> Layout:
    """Return the layout of one of so many layers, with a kernel that is known if it can be."""
    key_norm, query_norm, value_norm = (
        options.number(name, *layer) for name in ("key_norm", "query_norm", "value_norm")
    )
    scale = None if options.scale is None else options.number("scale", *layer)
    tau = (
        default_tau(value_norm, shape.value_dim)
        if options.tau is None
        else options.number("tau", *layer)
    )
    kernel = options.kernel_of(*layer)
    points = options.reference_of(*layer, dim=shape.key_dim)
    if isinstance(kernel, Kernel):
        given = {"scale": scale, "key_norm": key_norm, "query_norm": query_norm}
        _check_kernel(kernel, shape, given)
    else:
        if scale is not None:
            check_logit(scale * key_norm * query_norm)
        check_tau(tau, value_norm)
        public_rows = options.public_rows_of(*layer, dim=shape.key_dim)
        norms = (key_norm, query_norm, value_norm)
        same = (kernel, shape.key_dim, shape.value_dim, scale, tau, norms, public_rows, points)
        if same not in known:
            request = Request(
                name=kernel,
                dim=shape.key_dim,
                scale=scale,
                key_norm=key_norm,
                query_norm=query_norm,
                eps_s=options.eps_s,
                features=options.features,
                goal=Goal(options.goal),
                public_rows=public_rows,
                spread=_spread(
                    options.rows_hint,
                    shape,
                    tau=tau / value_norm,
                    multiplier=multiplier,
                    sample=_sample(public_rows, key_norm),
                    reference=_sample(points, key_norm),
                ),
            )
            known[same] = choose(request)
        kernel = known[same]
    return Layout(
        kernel=kernel,
        heads=shape.heads,
        value_dim=shape.value_dim,
        value_norm=value_norm,
        tau=tau,
        resolution=value_resolution(multiplier, rows_hint=options.rows_hint),
        # Other kernels are read as they are.
        reference=points if isinstance(kernel, Fourier) else None,
    )


def _sample(rows: PublicRows | None, norm: float) -> Sample | None:
    return None if rows is None else Sample.of(rows.mixed / norm)


def _spread(
    rows: int | None,
    shape: Shape,
    *,
    tau: float,
    multiplier: float,
    sample: Sample | None,
    reference: Sample | None,
) -> ErrorModel | None:
    """Return what answers will be like with the usual random features; None without a number."""
    if rows is None:
        return None
    return ErrorModel(
        rows=rows,
        dim=shape.key_dim,
        value_dim=shape.value_dim,
        tau=tau,
        multiplier=multiplier,
        weight_error=random_error(FREQUENCIES),
        sample=sample,
        points=USUAL_POINTS,
        reference=reference,
    )


def _check_kernel(kernel: Kernel, shape: Shape, given: dict[str, float | None]) -> None:
    """Raise `InvalidInput` if a ready-made kernel contradicts the data's width or other options."""
    if kernel.dim != shape.key_dim:
        _validate.reject("kernel.dim", kernel.dim, f"the width of keys, {shape.key_dim}")
    defaults = {"scale": None, "key_norm": 1.0, "query_norm": 1.0}
    for name, value in given.items():
        own = getattr(kernel, name)
        if value not in (defaults[name], own):
            _validate.reject(name, value, f"left out, or the kernel's own {own}")
