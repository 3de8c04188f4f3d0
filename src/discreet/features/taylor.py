"""The Taylor feature map: P(x)·P(y) is the degree-s Taylor polynomial of exp at scale·⟨x, y⟩.

The paper's Lemma "Polynomial approximation", with all monomials of degree at most s in d variables:
P(x)_α = x^α·√(scale^|α|/α!), so r = C(d + s, s) features. The paper's has scale 1/d, on [0, R]^d.
"""

import itertools
import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import array_api_compat
import numpy as np

from discreet import _validate
from discreet._typing import Array, Floats
from discreet.errors import InvalidInput
from discreet.features.polynomial import Polynomial
from discreet.noise.exact import exp_bounds

# exp is enclosed to this many digits when an error is certified.
_DIGITS = 40


@dataclass(frozen=True)
class Taylor(Polynomial):
    """Polynomial features whose inner product approximates exp(scale·⟨x, y⟩) within `error`.

    Row by row, to the bit: a row's features are products of its own coordinates in a fixed order,
    so they are the same alone, in any batch and at any position.

    Attributes:
        dim: number of variables d.
        degree: s; the smallest that meets `eps_s`, if that is given instead.
        eps_s: the relative error that was asked for, if the degree was found from it.
        scale: logit = scale·⟨x, y⟩.
        key_norm: bound on ‖x‖₂; public.
        query_norm: bound on ‖y‖₂; public.
        nonnegative: whether all coordinates of keys and queries are at least zero, so that logits
            are too; otherwise the error is certified on the whole interval [-t, t].
    """

    kind: ClassVar[str] = "taylor"

    _: KW_ONLY
    nonnegative: bool = False

    @classmethod
    def on_box(
        cls,
        dim: int,
        *,
        upper: float,
        eps_s: float | None = None,
        degree: int | None = None,
        scale: float | None = None,
        query_upper: float | None = None,
    ) -> "Taylor":
        """Return the paper's P: scale 1/d, keys and queries in [0, upper]^d.

        Args:
            dim: d.
            upper: right end of the range of each coordinate.
            eps_s: the relative error that the degree is found from.
            degree: s, if it is given instead.
            scale: logit = scale·⟨x, y⟩, if not 1/d.
            query_upper: right end for queries, if it is another.
        """
        dim = _validate.whole("dim", dim, at_least=1)
        side = _validate.real("upper", upper, above=0) * math.sqrt(dim)
        ask = side if query_upper is None else query_upper * math.sqrt(dim)
        return cls(
            dim,
            eps_s=eps_s,
            degree=degree,
            scale=1 / dim if scale is None else _validate.real("scale", scale, above=0),
            key_norm=side,
            query_norm=ask,
            nonnegative=True,
        )

    @property
    def takes_signed_keys(self) -> bool:
        """Not if the error was certified for coordinates that are at least zero."""
        return not self.nonnegative

    @cached_property
    def coefficients(self) -> tuple[float, ...]:
        """1/j! for each degree j."""
        return tuple(1 / math.factorial(j) for j in range(self._degree + 1))

    def _relative_error(self, degree: int) -> float:
        # exp(z)/T_s(z) has derivative of the sign of z^s, so it is monotone on each side of zero,
        # where it is one: the ends of the interval are the worst points. (T_s is positive on
        # [-t, t] if it is at -t: for even s it always is, for odd s it is increasing.)
        t = Fraction(self.largest_logit) * (1 + Fraction(1, 2**50))  # above its own rounding
        ends = [t] if self.nonnegative else [t, -t]
        return max(_relative_error_at(end, degree) for end in ends)

    def __call__(self, rows: Array) -> Array:
        """Return P(x) for each row, in floating point: the paper's map, the same for both sides.

        Args:
            rows: numpy or torch array of floats, shape (..., d).

        Returns:
            An array of the same kind, dtype and device, shape (..., r).
        """
        xp = array_api_compat.array_namespace(rows)
        if rows.ndim < 1 or rows.shape[-1] != self.dim:
            # Without the other axes: how many rows there are may be private.
            width = "()" if rows.ndim < 1 else f"(..., {rows.shape[-1]})"
            raise InvalidInput(f"Expected rows.shape={width} to be (..., {self.dim}).")
        if not xp.isdtype(rows.dtype, "real floating"):
            _validate.reject("rows.dtype", rows.dtype, "a floating-point type")
        block = xp.ones_like(rows[..., :1])
        blocks = [block]
        device = array_api_compat.device(rows)
        for step in self._monomials.steps:
            parents = xp.asarray(step.parents, device=device)
            variables = xp.asarray(step.variables, device=device)
            factors = xp.asarray(np.sqrt(self.scale / step.powers), dtype=rows.dtype, device=device)
            block = xp.take(block, parents, axis=-1) * xp.take(rows, variables, axis=-1) * factors
            blocks.append(block)
        return xp.concat(blocks, axis=-1)

    def feature_bounds(self, upper: float) -> Floats:
        """Return Γ_α = P(upper, ..., upper)_α, the exact range of each feature on [0, upper]^d.

        Args:
            upper: right end of the range of each coordinate.

        Returns:
            Shape (r,).
        """
        upper = _validate.real("upper", upper, above=0)
        return np.asarray(self(np.full(self.dim, upper)))


def _relative_error_at(logit: Fraction, degree: int) -> float:
    """Return an upper bound on |T - e^z|/min(T, e^z) at one logit z; infinite if T ≤ 0."""
    terms = itertools.accumulate(
        range(1, degree + 1), lambda term, k: term * logit / k, initial=Fraction(1)
    )
    polynomial = sum(terms)
    low, high = exp_bounds(logit, _DIGITS)
    if polynomial <= 0:
        return math.inf
    ratio = max(high / polynomial, polynomial / low)
    return math.nextafter(float(ratio - 1), math.inf)
