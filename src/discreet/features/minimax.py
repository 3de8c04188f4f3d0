"""The polynomial that is nearest to exp in relative error on the interval of logits.

Found by Remez' exchange; what is promised about it is certified afterwards from its coefficients
alone, so nothing rests on the exchange having converged.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.polynomial import chebyshev, polynomial
from numpy.typing import NDArray

from discreet import _validate
from discreet._typing import Integers
from discreet.features.kernel import MOST_FEATURES, Wanted
from discreet.features.polynomial import Polynomial

_EXCHANGES = 30
_CELLS = 4096
_ORDER = 5  # of the Taylor bound in each cell


@dataclass(frozen=True)
class Minimax(Polynomial):
    """Best polynomial approximation of exp(z) on |z| ≤ t = scale·key_norm·query_norm.

    Same monomials as `Taylor`, and the same number of them, with a far smaller error: 4% instead of
    36% for degree 2 on [-1, 1]. A negative coefficient is carried by the query's side.

    Attributes:
        dim: number of coordinates d of keys and queries.
        scale: logit = scale·⟨q, k⟩.
        key_norm: bound on ‖k‖₂; public, enforced by clipping.
        query_norm: bound on ‖q‖₂; public, enforced by clipping.
        degree: s; the smallest that meets `eps_s`, if that is given instead.
        eps_s: the relative error that was asked for, if the degree was found from it.
        stored: coefficients that were computed before (as a file keeps them); None to compute them.
    """

    kind: ClassVar[str] = "minimax"

    stored: tuple[float, ...] | None = field(default=None, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        if self.stored is not None:
            stored = tuple(_validate.real("stored", value) for value in self.stored)
            self._set(stored=stored)
            if self.degree != len(stored) - 1:
                _validate.reject("degree", self.degree, "one less than the stored coefficients")
        super().__post_init__()

    @property
    def _most(self) -> int:
        return 60

    @cached_property
    def coefficients(self) -> tuple[float, ...]:
        """c_0, ..., c_s."""
        if self.stored is not None:
            return self.stored
        return best_coefficients(self.largest_logit, self._degree)

    def _relative_error(self, degree: int) -> float:
        if self.stored is not None:
            return certified_error(self.stored, self.largest_logit)
        return certified_error(best_coefficients(self.largest_logit, degree), self.largest_logit)

    @classmethod
    def offered(cls, wanted: Wanted) -> Self | None:
        """Return the polynomial of the lowest degree that meets eps_s, if it is small enough.

        Args:
            wanted: public numbers: width, bounds, and which error is good enough.
        """
        most = MOST_FEATURES if wanted.features is None else wanted.features
        for degree in range(60):
            if math.comb(wanted.dim + degree, degree) > most:
                return None
            kernel = cls(wanted.dim, degree=degree, **wanted.bounds)
            if kernel.error <= wanted.eps_s:
                return kernel
        return None

    def why_offered(self, eps_s: float) -> str:
        """Return the degree and what it reaches.

        Args:
            eps_s: the relative error of a weight that was asked for.
        """
        return (
            f"a polynomial of degree {self.degree} reaches eps_s = {eps_s:g} with few enough "
            "features"
        )

    def at(self, *, scale: float, key_norm: float, query_norm: float) -> Self:
        """Return the best polynomial of the same degree for other bounds.

        Args:
            scale: logit = scale·⟨q, k⟩.
            key_norm: bound on ‖k‖₂.
            query_norm: bound on ‖q‖₂.
        """
        return replace(
            self,
            eps_s=None,
            stored=None,
            scale=scale,
            key_norm=key_norm,
            query_norm=query_norm,
        )

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the kernel with the coefficients that were stored.

        Args:
            parameters: the numbers of `parameters`, but for the kind.
            arrays: those of `arrays`.
        """
        return cls(**parameters, stored=tuple(arrays["coefficients"].tolist()))

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return the coefficients: another machine's linear algebra could differ in a last bit."""
        return {"coefficients": np.array(self.coefficients)}


@cache
def best_coefficients(t: float, degree: int) -> tuple[float, ...]:
    """Return c_0, ..., c_s that (nearly) minimise max |p(z)e^-z - 1| over |z| ≤ t.

    Args:
        t: half the length of the interval of logits.
        degree: s.
    """
    count = 64 * (degree + 2)
    grid = -np.cos(np.pi * np.arange(count + 1) / count)
    # Chebyshev's basis on [-1, 1] keeps the systems well-conditioned.
    design = chebyshev.chebvander(grid, degree) * np.exp(-t * grid)[:, None]
    reference = np.round(np.linspace(0, count, degree + 2)).astype(int)
    signs = (-1.0) ** np.arange(degree + 2)
    best, least = np.zeros(degree + 1), math.inf
    for _ in range(_EXCHANGES):
        solved = np.linalg.solve(np.column_stack([design[reference], signs]), np.ones(degree + 2))
        basis, level = solved[:-1], abs(solved[-1])
        errors = np.asarray(design @ basis - 1)
        worst = float(np.max(np.abs(errors)))
        if worst < least:
            best, least = basis, worst
        if worst <= level * (1 + 1e-9):
            break
        exchanged = _alternating_extrema(errors, degree + 2)
        if exchanged is None:  # the errors are rounding errors: nothing is left to improve
            break
        reference = exchanged
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # checked by the caller
        return tuple((chebyshev.cheb2poly(best) / t ** np.arange(degree + 1)).tolist())


def _alternating_extrema(errors: NDArray[np.floating[Any]], count: int) -> Integers | None:
    """Return `count` neighbouring extrema of alternating sign, the largest among them."""
    starts = np.flatnonzero(np.diff(np.sign(errors), prepend=0.0) != 0)
    pieces = np.split(np.arange(len(errors)), starts[1:])
    extrema = np.array([piece[np.argmax(np.abs(errors[piece]))] for piece in pieces])
    while len(extrema) > count:
        extrema = (
            extrema[1:] if abs(errors[extrema[0]]) < abs(errors[extrema[-1]]) else extrema[:-1]
        )
    return extrema if len(extrema) == count else None


@cache
def certified_error(coefficients: tuple[float, ...], t: float) -> float:
    """Return a bound on max(p/e^z, e^z/p) - 1 over |z| ≤ t; infinite if p may not be positive.

    With h = p·e^-z, the k-th derivative is h_k = e^-z·(D - 1)^k p. In each of many cells, h differs
    from its value at the middle by at most Σ_{k<5} |h_k|·w^k/k! there, plus w^5/5! times a bound on
    |h_5| over the cell from the sizes of its coefficients. Rounding is bounded the same way.

    Args:
        coefficients: c_0, ..., c_s of p.
        t: half the length of the interval of logits.
    """
    width = t * (1 + 2.0**-50) / _CELLS  # half of a cell
    middle = width * (2 * np.arange(_CELLS) + 1 - _CELLS)
    decay = np.exp(-middle)
    terms = np.array(coefficients)
    reach = np.abs(middle) + width
    rounding = 2.0**-50 * (len(terms) + 4)
    centre = polynomial.polyval(middle, terms) * decay
    slack = rounding * polynomial.polyval(reach, np.abs(terms)) * decay
    for k in range(1, _ORDER + 1):
        terms = np.append(polynomial.polyder(terms), np.zeros(2))[: len(terms)] - terms
        sizes = polynomial.polyval(reach, np.abs(terms)) * decay
        at_middle = np.abs(polynomial.polyval(middle, terms)) * decay + rounding * sizes
        over_cell = sizes * math.exp(width) * (1 + rounding)
        slack += (over_cell if k == _ORDER else at_middle) * width**k / math.factorial(k)
    lowest, highest = float(np.min(centre - slack)), float(np.max(centre + slack))
    if not lowest > 0:
        return math.inf
    return max(highest, 1 / lowest) - 1 + 2.0**-50
