"""The Taylor feature map: P(x)·P(y) is the degree-s Taylor polynomial of exp at scale·⟨x, y⟩.

The paper's Lemma "Polynomial approximation", with all monomials of degree at most s in d variables:
P(x)_α = x^α·√(scale^|α|/α!), so r = C(d + s, s) features. The paper's has scale 1/d, on [0, R]^d.
"""

import itertools
import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, cast

import array_api_compat
import numpy as np
from numpy.typing import NDArray

from discreet import _validate
from discreet.noise.exact import exp_bounds

# exp is enclosed to this many digits when an error is certified.
_DIGITS = 40
_LARGEST_DEGREE = 200


@dataclass(frozen=True, kw_only=True)
class _Step:
    """How the features of one degree come from those of the degree before: parent × variable."""

    parents: NDArray[np.int64]
    variables: NDArray[np.int64]
    factors: NDArray[np.float64]


@dataclass(frozen=True)
class Taylor:
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

    dim: int
    _: KW_ONLY
    degree: int | None = None
    eps_s: float | None = None
    scale: float
    key_norm: float
    query_norm: float
    nonnegative: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "dim", _validate.whole("dim", self.dim, at_least=1))
        for name in ("scale", "key_norm", "query_norm"):
            value = _validate.real(name, getattr(self, name), above=0)
            object.__setattr__(self, name, value)
        _validate.real("scale * key_norm * query_norm", self.largest_logit, at_most=100)
        if (self.degree is None) == (self.eps_s is None):
            given = f"degree={self.degree} and eps_s={self.eps_s}"
            _validate.reject("degree, eps_s", given, "one given and the other None")
        if self.degree is None:
            eps_s = _validate.real("eps_s", self.eps_s, above=0, below=1)
            object.__setattr__(self, "degree", self._smallest_degree(eps_s))
        else:
            degree = _validate.whole("degree", self.degree, at_least=0, at_most=_LARGEST_DEGREE)
            object.__setattr__(self, "degree", degree)

    @classmethod
    def on_box(cls, dim: int, *, upper: float, eps_s: float) -> "Taylor":
        """Return the paper's P: scale 1/d, keys and queries in [0, upper]^d."""
        dim = _validate.whole("dim", dim, at_least=1)
        side = _validate.real("upper", upper, above=0) * math.sqrt(dim)
        return cls(
            dim,
            eps_s=eps_s,
            scale=1 / dim,
            key_norm=side,
            query_norm=side,
            nonnegative=True,
        )

    @property
    def largest_logit(self) -> float:
        """The bound on logits, scale·key_norm·query_norm."""
        return self.scale * self.key_norm * self.query_norm

    @property
    def features(self) -> int:
        """The number of features, r = C(d + s, s); known before any is computed."""
        return math.comb(self.dim + self._degree, self._degree)

    @property
    def error(self) -> float:
        """Certified: |P(x)·P(y) - exp(z)| ≤ error·min(exp(z), P(x)·P(y)) for all logits z allowed.

        Infinite if the polynomial is not positive on the whole interval.
        """
        return self._relative_error(self._degree)

    @property
    def _degree(self) -> int:
        return cast("int", self.degree)  # set by __post_init__ if it was not given

    def _relative_error(self, degree: int) -> float:
        # exp(z)/T_s(z) has derivative of the sign of z^s, so it is monotone on each side of zero,
        # where it is one: the ends of the interval are the worst points. (T_s is positive on
        # [-t, t] if it is at -t: for even s it always is, for odd s it is increasing.)
        t = Fraction(self.largest_logit) * (1 + Fraction(1, 2**50))  # above its own rounding
        ends = [t] if self.nonnegative else [t, -t]
        return max(_relative_error_at(end, degree) for end in ends)

    def _smallest_degree(self, eps_s: float) -> int:
        for degree in range(_LARGEST_DEGREE + 1):
            if self._relative_error(degree) <= eps_s:
                return degree
        return _validate.reject("eps_s", eps_s, f"reachable with a degree <= {_LARGEST_DEGREE}")

    @cached_property
    def _steps(self) -> tuple[_Step, ...]:
        """The plan for each degree: a multi-index is a parent and one more of its last variable."""
        steps = []
        last = np.zeros(1, dtype=np.int64)  # the largest variable in each multi-index
        power = np.zeros(1, dtype=np.int64)  # and its exponent
        for _ in range(self._degree):
            children = self.dim - last
            parents = np.repeat(np.arange(len(last)), children)
            offsets = np.arange(len(parents)) - np.repeat(np.cumsum(children) - children, children)
            variables = last[parents] + offsets
            power = np.where(offsets == 0, power[parents] + 1, 1)
            factors = np.sqrt(self.scale / power)
            steps.append(_Step(parents=parents, variables=variables, factors=factors))
            last = variables
        return tuple(steps)

    @cached_property
    def exponents(self) -> NDArray[np.int64]:
        """The multi-index of each feature, shape (r, d)."""
        block = np.zeros((1, self.dim), dtype=np.int64)
        blocks = [block]
        for step in self._steps:
            block = block[step.parents] + np.eye(self.dim, dtype=np.int64)[step.variables]
            blocks.append(block)
        return np.concatenate(blocks)

    def __call__(self, rows: Any) -> Any:  # noqa: ANN401 (any array of the array API)
        """Return P(x) for each row.

        Args:
            rows: numpy or torch array of floats, shape (..., d).

        Returns:
            An array of the same kind, dtype and device, shape (..., r).
        """
        xp = array_api_compat.array_namespace(rows)
        if rows.ndim < 1 or rows.shape[-1] != self.dim:
            _validate.reject("rows.shape", tuple(rows.shape), f"(..., {self.dim})")
        if not xp.isdtype(rows.dtype, "real floating"):
            _validate.reject("rows.dtype", rows.dtype, "a floating-point type")
        block = xp.ones_like(rows[..., :1])
        blocks = [block]
        device = array_api_compat.device(rows)
        for step in self._steps:
            parents = xp.asarray(step.parents, device=device)
            variables = xp.asarray(step.variables, device=device)
            factors = xp.asarray(step.factors, dtype=rows.dtype, device=device)
            block = xp.take(block, parents, axis=-1) * xp.take(rows, variables, axis=-1) * factors
            blocks.append(block)
        return xp.concat(blocks, axis=-1)

    def feature_bounds(self, upper: float) -> NDArray[np.float64]:
        """Return Γ_α = P(upper, ..., upper)_α, the exact range of each feature on [0, upper]^d."""
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
