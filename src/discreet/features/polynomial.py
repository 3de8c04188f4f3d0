"""Kernels p(scale·⟨q, k⟩) for a polynomial p: features are all monomials of degree s at most.

With x and y the balanced key and query (⟨x, y⟩ = logit, norms at most √t),
p(⟨x, y⟩) = Σ_α c_|α|·(|α|!/α!)·x^α·y^α, so a key has the features √(|c|·|α|!/α!)·x^α and a query
the same with y and the sign of c. By the multinomial theorem ‖φ'(k)‖² = Σ_j |c_j|·‖x‖^2j exactly.
"""

import abc
import itertools
import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from discreet import _validate
from discreet._arrays import namespace
from discreet._typing import Array, Floats, Integers
from discreet.features.base import FEATURE_RADIUS, KEY_RESOLUTION, SHRINK
from discreet.features.kernel import Evidence, Kernel, Wanted, answer_length


@dataclass(frozen=True, kw_only=True)
class Step:
    """How the monomials of one degree come from those of the degree before: parent × variable.

    Attributes:
        parents: which monomial of the degree before, for each new one.
        variables: which variable it is multiplied by.
        powers: the exponent of that variable in the product.
    """

    parents: Integers
    variables: Integers
    powers: Integers


@dataclass(frozen=True, kw_only=True)
class Monomials:
    """The multi-indices α with |α| ≤ degree, in order of degree.

    Attributes:
        dim: number of variables d.
        degree: s.
    """

    dim: int
    degree: int

    @property
    def count(self) -> int:
        """How many there are, C(d + s, s); known before any is computed."""
        return math.comb(self.dim + self.degree, self.degree)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The plan for each degree, in order of the largest variable.

        The parents of the monomials whose largest variable is v are those of the degree before
        whose largest variable is at most v: the first so many of them.
        """
        steps = []
        last = np.zeros(1, dtype=np.int64)  # the largest variable in each multi-index
        power = np.zeros(1, dtype=np.int64)  # and its exponent
        for degree in range(1, self.degree + 1):
            prefixes = [math.comb(v + degree - 1, degree - 1) for v in range(self.dim)]
            parents = np.concatenate([np.arange(prefix) for prefix in prefixes])
            variables = np.repeat(np.arange(self.dim), prefixes)
            power = np.where(last[parents] == variables, power[parents], 0) + 1
            steps.append(Step(parents=parents, variables=variables, powers=power))
            last = variables
        return tuple(steps)

    def extend(
        self, block: Floats, columns: NDArray[np.floating[Any]], degree: int, *, out: Floats
    ) -> None:
        """Write x^α/√α! for one degree, from those of the degree before, shape (count, m).

        Args:
            block: the monomials of the degree before, shape (count before, m).
            columns: x, shape (d, m); may carry a factor for all of the degree.
            degree: of the result.
            out: the result.
        """
        start, before = 0, 0
        for v in range(self.dim):
            prefix = math.comb(v + degree - 1, degree - 1)
            part = out[start : start + prefix]
            np.multiply(block[:prefix], columns[v], out=part)
            # Parents that contain v are the last of the prefix; there its power is above one.
            powers = self.steps[degree - 1].powers[start + before : start + prefix, None]
            part[before:] /= np.sqrt(powers)
            start, before = start + prefix, prefix

    @cached_property
    def exponents(self) -> Integers:
        """The multi-index of each monomial, shape (r, d)."""
        block = np.zeros((1, self.dim), dtype=np.int64)
        blocks = [block]
        for step in self.steps:
            block = block[step.parents] + np.eye(self.dim, dtype=np.int64)[step.variables]
            blocks.append(block)
        return np.concatenate(blocks)

    def inverse_root_factorials(self) -> list[Floats]:
        """Return √(1/α!) for the monomials of each degree."""
        factors = [np.ones(1)]
        for step in self.steps:
            factors.append(factors[-1][step.parents] / np.sqrt(step.powers))
        return factors


# More than the relative rounding error of a computed bound.
_ROUNDING = 1 + 1e-12


@dataclass(frozen=True)
class Polynomial(Kernel):
    """A kernel that is a polynomial of the logit.

    Attributes:
        dim: number of coordinates d of keys and queries.
        scale: logit = scale·⟨q, k⟩.
        key_norm: bound on ‖k‖₂; public, enforced by clipping.
        query_norm: bound on ‖q‖₂; public, enforced by clipping.
        degree: s; the smallest that meets `eps_s`, if that is given instead.
        eps_s: the relative error that was asked for, if the degree was found from it.
    """

    evidence: ClassVar[Evidence] = Evidence.CERTIFICATE
    for_errors: ClassVar[frozenset[str]] = frozenset({"sizes"})

    _: KW_ONLY
    degree: int | None = None
    eps_s: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.degree is None) == (self.eps_s is None):
            given = f"degree={self.degree} and eps_s={self.eps_s}"
            _validate.reject("degree, eps_s", given, "one given and the other None")
        if self.degree is None:
            eps_s = _validate.real("eps_s", self.eps_s, above=0, below=1)
            self._set(degree=self._smallest_degree(eps_s))
        else:
            self._set(degree=_validate.whole("degree", self.degree, at_least=0, at_most=self._most))

    def check_integers(self) -> None:
        """Raise `InvalidInput` also if a coefficient or weight is not finite, or nothing is left.

        Rounding so many features may take more than the whole of their norm: then no unit is left.
        """
        super().check_integers()
        if not all(map(math.isfinite, [*self.coefficients, self.unit, *self._key_weights])):
            _validate.reject("degree", self.degree, "smaller for logits as small as these")
        if self.unit <= 0:
            wanted = "smaller for keys as wide as these: ask for a softer scale or another kernel"
            _validate.reject("degree", self.degree, wanted)

    @property
    def _most(self) -> int:
        """The largest degree that is tried or taken; 171! is beyond float64."""
        return 170

    @property
    def _degree(self) -> int:
        return cast("int", self.degree)  # set by __post_init__ if it was not given

    def _smallest_degree(self, eps_s: float) -> int:
        for degree in range(self._most + 1):
            if self._relative_error(degree) <= eps_s:
                return degree
        return _validate.reject("eps_s", eps_s, f"reachable with a degree <= {self._most}")

    @abc.abstractmethod
    def _relative_error(self, degree: int) -> float:
        """Return the certified error of the polynomial of this degree; infinite if not positive."""

    @property
    @abc.abstractmethod
    def coefficients(self) -> tuple[float, ...]:
        """c_0, ..., c_s of the polynomial p."""

    @cached_property
    def error(self) -> float:
        """Certified: |p(z) - exp(z)| ≤ error·min(exp(z), p(z)) for all logits z allowed.

        Infinite if the polynomial is not positive on the whole interval.
        """
        return self._relative_error(self._degree)

    @property
    def certified_error(self) -> float:
        """The error of the polynomial."""
        return self.error

    @property
    def rounding_error(self) -> float:
        """Rounding moves r features by at most half a unit each, so by √r/2 units together."""
        return math.sqrt(self.features) / 2 / self.unit

    @property
    def weight_at_origin(self) -> float:
        """p(0), which is near one and not one."""
        return self.coefficients[0]

    @property
    def error_meaning(self) -> str:
        """A certified relative error."""
        return "certified relative error of every weight exp(scale * <q, k>)"

    @cached_property
    def features(self) -> int:
        """The number of features, r = C(d + s, s); known before any is computed."""
        return math.comb(self.dim + self._degree, self._degree)

    @property
    def operations(self) -> int:
        """A product and a rounding for each feature."""
        return 2 * self.features

    def length_error(self, directions: float) -> float:
        """Return by how much the polynomial, in place of exp, changes the length of answers.

        Args:
            directions: in how many rows are spread evenly.
        """
        t = self.largest_logit
        polynomial = polynomial_length(self.coefficients, t, directions)
        return abs(polynomial - answer_length(t, directions))

    @classmethod
    def named(cls, wanted: Wanted) -> Self:
        """Return the polynomial of the lowest degree that meets eps_s, however large it is.

        Args:
            wanted: public numbers: width, bounds, and which error is good enough.
        """
        return cls(wanted.dim, eps_s=wanted.eps_s, **wanted.bounds)

    @property
    def exponents(self) -> Integers:
        """The multi-index of each feature, shape (r, d)."""
        return self._monomials.exponents

    @cached_property
    def _monomials(self) -> Monomials:
        return Monomials(dim=self.dim, degree=self._degree)

    @cached_property
    def bound(self) -> float:
        """√Σ|c_j|·t^j, the norm of the features at the edge of the ball."""
        return math.sqrt(_horner(self._sizes, self.largest_logit)) * _ROUNDING

    @property
    def _sizes(self) -> list[float]:
        """|c_j|: ‖φ'(k)‖² is this polynomial of ‖x‖², and ‖φ(q)‖² of ‖y‖²."""
        return [abs(coefficient) for coefficient in self.coefficients]

    @cached_property
    def unit(self) -> float:
        """Chosen so that the rounded features of any key have a norm of at most FEATURE_RADIUS.

        Rounding moves r coordinates by at most one half each, so by at most √r/2 together.
        """
        return (FEATURE_RADIUS - math.sqrt(self.features) / 2) * SHRINK / self.bound

    @property
    def least_inner(self) -> int:
        """Almost zero where all coefficients are positive: the kernel of two keys is positive too.

        ⟨φ'(k), φ'(k')⟩ = p(⟨x, x'⟩) > 0, since ⟨x, x'⟩ lies in [-t, t] like every logit; each
        rounded vector is within √r/2 of its own, and no longer than the radius.
        """
        if min(self.coefficients) < 0 or not math.isfinite(self.error):
            return super().least_inner
        return -math.ceil(FEATURE_RADIUS * math.sqrt(self.features))

    def _arrange(self, memory: Floats, rows: int) -> Floats:
        """Return memory in which the values of one monomial lie side by side."""
        return memory.reshape(self.features, rows).T

    def fill(self, integers: Integers, out: Floats) -> None:
        """Write the integer features of rounded keys.

        Args:
            integers: rounded keys, shape (n, d).
            out: where features are written, shape (n, r), as `_arrange` has them.
        """
        # An exact division by a power of two, so that no power of a coordinate overflows.
        columns = np.ascontiguousarray(integers.T).astype(np.float64) * 2.0**-KEY_RESOLUTION
        block = np.ones((1, len(integers)))
        out.T[:1] = np.rint(block * self._key_weights[0])
        start = 1
        for degree, weight in enumerate(self._key_weights[1:], start=1):
            count = math.comb(self.dim + degree - 1, degree)
            part = out.T[start : start + count]
            if degree == self._degree:  # most of all features: nothing else is made of them
                self._monomials.extend(block, columns * weight, degree, out=part)
            else:
                longer = np.empty((count, len(integers)))
                self._monomials.extend(block, columns, degree, out=longer)
                block = longer
                np.multiply(block, weight, out=part)
            np.rint(part, out=part)
            start += count

    @cached_property
    def _key_weights(self) -> list[float]:
        """What x^α/√α! of the lattice coordinates is multiplied by, for each degree |α|."""
        stretch = math.ldexp(self._key_factor, KEY_RESOLUTION - self.key_lattice.bits)
        return [
            self.unit * stretch**degree * math.sqrt(abs(coefficient) * math.factorial(degree))
            for degree, coefficient in enumerate(self.coefficients)
        ]

    def reading(self, state: Floats) -> dict[str, NDArray[Any]]:
        """Return the state by degree, times sign(c)·√(|c|·|α|!/α!), and how monomials are made.

        Args:
            state: in real units, shape (heads, r, c).
        """
        roots = self._monomials.inverse_root_factorials()
        parts = np.split(state, np.cumsum([len(root) for root in roots])[:-1], axis=1)
        arrays: dict[str, NDArray[Any]] = {"sizes": np.array(self._sizes)}
        for degree, (part, root, c) in enumerate(zip(parts, roots, self.coefficients, strict=True)):
            factor = math.copysign(math.sqrt(abs(c) * math.factorial(degree)), c)
            arrays[f"degree_{degree}"] = (
                np.ascontiguousarray((part * root[:, None]).swapaxes(1, 2)) * factor
            )
        for degree, step in itertools.islice(enumerate(self._monomials.steps, start=1), 1, None):
            arrays |= {f"parents_{degree}": step.parents, f"variables_{degree}": step.variables}
        return arrays

    def read(self, queries: Array, arrays: Mapping[str, Array]) -> Array:
        """Return φ(q)·S: (heads, m, d), clipped, to (heads, m, c).

        Args:
            queries: clipped, shape (heads, m, d).
            arrays: of `reading`, where and in which precision the queries are.
        """
        xp = namespace(queries)
        heads, count, dim = queries.shape
        # Side by side for each coordinate: a parent is then copied as one piece, which is several
        # times faster than a gather along the last axis.
        turned = xp.reshape(
            xp.permute_dims(queries * self._query_factor, (2, 0, 1)), (dim * heads * count,)
        )
        columns = block = xp.reshape(turned, (dim, heads * count))
        total = arrays["degree_0"]
        for degree in range(1, self._degree + 1):
            if degree > 1:
                parents, variables = arrays[f"parents_{degree}"], arrays[f"variables_{degree}"]
                block = xp.take(block, parents, axis=0) * xp.take(columns, variables, axis=0)
            by_head = xp.reshape(block, (block.shape[0], heads, count))
            total = total + arrays[f"degree_{degree}"] @ xp.permute_dims(by_head, (1, 0, 2))
        if self._degree == 0:  # a constant, the same for every query
            total = xp.broadcast_to(total, (heads, total.shape[1], count))
        return xp.permute_dims(total, (0, 2, 1))

    @property
    def query_unit(self) -> float:
        """Balanced queries are what monomials are made of."""
        return self._query_factor

    def reads_like(self, other: Kernel) -> bool:
        """Coefficients are in the arrays; the degree is not.

        Args:
            other: any kernel.
        """
        return isinstance(other, Polynomial) and (other.dim, other.degree) == (
            self.dim,
            self.degree,
        )

    def at(self, *, scale: float, key_norm: float, query_norm: float) -> Self:
        """Return the polynomial of the same degree for other bounds.

        Args:
            scale: logit = scale·⟨q, k⟩.
            key_norm: bound on ‖k‖₂.
            query_norm: bound on ‖q‖₂.
        """
        return replace(self, eps_s=None, scale=scale, key_norm=key_norm, query_norm=query_norm)

    def query_norms(self, queries: Array, squared: Array, arrays: Mapping[str, Array]) -> Array:  # noqa: ARG002
        """Return ‖φ(q)‖ = √Σ|c_j|·‖y‖^2j, given squared lengths in units of query_norm.

        Args:
            queries: clipped, shape (heads, m, d).
            squared: their squared lengths in units of query_norm, shape (heads, m, 1).
            arrays: of `reading`, where and in which precision the queries are.
        """
        sizes = [arrays["sizes"][degree] for degree in range(self._degree + 1)]
        total = _horner(sizes, squared * self.largest_logit)
        return namespace(squared).sqrt(total)

    def describe(self) -> str:
        """Return the kind, degree and number of features."""
        return f"{self.kind} polynomial of degree {self.degree} ({self.features:,} features)"

    def parameters(self) -> dict[str, object]:
        """Return the numbers that make the same kernel again."""
        return {**super().parameters(), "degree": self.degree}


def _horner(terms: list[Any], at: Array) -> Array:
    """Return Σ terms_j·at^j, for a number or an array."""
    total = terms[-1] + 0 * at
    for term in reversed(terms[:-1]):
        total = total * at + term
    return total


@lru_cache(maxsize=256)  # a prediction asks sixty times, and the next release again
def polynomial_length(coefficients: tuple[float, ...], logit: float, dim: float) -> float:
    """Return `answer_length` with a polynomial in place of exp.

    Args:
        coefficients: c_0, ..., c_s.
        logit: t, the largest logit.
        dim: how many directions they are spread in.
    """
    if dim <= 1:
        cosines, shares = np.array([-1.0, 1.0]), np.ones(2)
    else:
        angles = (np.arange(4000) + 0.5) * (math.pi / 4000)
        cosines, shares = np.cos(angles), np.sin(angles) ** (dim - 2)
    weights = shares * np.polynomial.polynomial.polyval(logit * cosines, np.array(coefficients))
    return float(np.sum(weights * cosines) / np.sum(weights))
