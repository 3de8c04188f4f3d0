"""The base of kernels: maps with a temperature, which attention is made of.

A kernel approximates exp(scale·⟨q, k⟩) by an inner product φ(q)·φ'(k), and knows how well. Errors
are predicted for keys that are spread evenly over a sphere; their attention is here, too.
"""

import abc
import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from enum import Enum, auto
from typing import Any, ClassVar, NamedTuple, Self, TypedDict

from numpy.typing import NDArray
from scipy import special

from discreet import _validate
from discreet._arrays import namespace
from discreet._typing import Array, Floats
from discreet.features.base import NORMS, RowMap, clip_queries
from discreet.features.public_rows import PublicRows

# "auto" takes no map with more features than this for the sake of its error.
MOST_FEATURES = 4096

_LEAST_LOGIT, LARGEST_LOGIT = 1e-9, 100.0


class Evidence(Enum):
    """What a kernel knows of its own error, and so what the ± of an answer is made of.

    `docs/errors.md`, "Where it comes from".
    """

    DRAWS = auto()
    """Features are random draws: blocks of them differ as they do from the truth."""
    CERTIFICATE = auto()
    """A bound on the relative error of every weight (`Kernel.certified_error`), and on rounding."""
    RESIDUAL = auto()
    """What blocks of landmarks alone know, and what none of them does (`ReadParts`)."""


class ReadParts(NamedTuple):
    """Sums that were read through landmarks, and what is known of their error.

    Lengths are over the largest weight, e^t, so that none of them leaves float32.

    Attributes:
        sums: φ(q)·S, shape (heads, m, c).
        parts: what each block of landmarks alone adds to them, shape (heads, blocks, m, c).
        own: Σ over blocks of ‖the part of φ(q) that the block alone spans‖², shape (heads, m, 1).
        covered: ‖φ(q)‖², likewise.
        whole: K(q, q), likewise; what is not covered no landmark spans.
        usual: what is not covered of queries like the public rows is at most this.
    """

    sums: Array
    parts: Array
    own: Array
    covered: Array
    whole: Array
    usual: float


class Bounds(TypedDict):
    """The numbers that every kernel takes under these names."""

    scale: float
    key_norm: float
    query_norm: float


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What somebody asks of a kernel without saying how: public numbers.

    Attributes:
        dim: width of keys.
        scale: logit = scale·⟨q, k⟩.
        key_norm: bound on ‖k‖₂.
        query_norm: bound on ‖q‖₂.
        eps_s: the relative error of a weight that is wanted, if a kind can promise one.
        weight_error: the standard error of one weight, over the largest, that is as good as none:
            the noise hides it. None if it is not known.
        features: the most features that are allowed; None for each kind's own limit.
        public_rows: rows like the keys that anybody may see, if there are any.
    """

    dim: int
    scale: float
    key_norm: float
    query_norm: float
    eps_s: float
    weight_error: float | None = None
    features: int | None = None
    public_rows: PublicRows | None = None

    def __post_init__(self) -> None:
        _validate.real("eps_s", self.eps_s, above=0, below=1)

    @property
    def bounds(self) -> Bounds:
        """What every kernel takes."""
        return {"scale": self.scale, "key_norm": self.key_norm, "query_norm": self.query_norm}


def check_logit(largest: float) -> None:
    """Raise `InvalidInput` unless integer features are within their bounds for such logits.

    Args:
        largest: t = scale·key_norm·query_norm.
    """
    limits = {"at_least": _LEAST_LOGIT, "at_most": LARGEST_LOGIT}
    _validate.real("scale * key_norm * query_norm", largest, **limits)


@dataclass(frozen=True)
class Kernel(RowMap):
    """A feature map of exp(scale·⟨q, k⟩) for ‖k‖ ≤ key_norm and ‖q‖ ≤ query_norm.

    What a temperature adds to a `RowMap`, whose docstring says how to write another one. Both sides
    are balanced: the norms of a key's and of a query's features have the same bound.

    Attributes:
        dim: number of coordinates d of keys and queries.
        scale: logit = scale·⟨q, k⟩.
        key_norm: bound on ‖k‖₂; public, enforced by clipping.
        query_norm: bound on ‖q‖₂; public, enforced by clipping.
        evidence: what the ± of an answer is made of.
        for_errors: the arrays of `reading` that `read` does without.
    """

    argument: ClassVar[str] = "kernel"
    evidence: ClassVar[Evidence]
    for_errors: ClassVar[frozenset[str]] = frozenset()

    dim: int
    _: KW_ONLY
    scale: float
    key_norm: float
    query_norm: float

    def __post_init__(self) -> None:
        self._set(dim=_validate.whole("dim", self.dim, at_least=1))
        for name in ("scale", "key_norm", "query_norm"):
            self._set(**{name: _validate.real(name, getattr(self, name), above=0)})
        _validate.real("scale * key_norm * query_norm", self.largest_logit, at_most=LARGEST_LOGIT)

    def check_integers(self) -> None:
        """Raise `InvalidInput` unless features of keys and queries are within their bounds."""
        super().check_integers()
        _validate.real("query_norm", self.query_norm, **NORMS)
        check_logit(self.largest_logit)

    @property
    def largest_logit(self) -> float:
        """The bound on logits, t = scale·key_norm·query_norm."""
        return self.scale * self.key_norm * self.query_norm

    @property
    @abc.abstractmethod
    def error(self) -> float:
        """How far φ(q)·φ'(k) is from exp(scale·⟨q, k⟩); `error_meaning` says in which sense."""

    @property
    @abc.abstractmethod
    def error_meaning(self) -> str:
        """What kind of number `error` is, as a phrase that follows it."""

    @property
    @abc.abstractmethod
    def bound(self) -> float:
        """The largest norm of a key's features φ'(k), and of a query's φ(q)."""

    @property
    def query_exponent(self) -> float:
        """What `read` leaves out: a factor e^(exponent·s), s = ‖q‖²/query_norm²."""
        return 0.0

    @property
    def weight_error(self) -> float:
        """The standard error of one weight, over the largest, where it varies from row to row.

        A random map has one, and a polynomial does not: it errs alike wherever the logit is the
        same (`length_error`).
        """
        return 0.0

    def length_error(self, directions: float) -> float:  # noqa: ARG002
        """Return how wrong the length of answers is, over that of values, without any noise.

        For rows that are spread evenly, and the longest queries (`answer_length`).

        Args:
            directions: in how many they are spread.
        """
        return 0.0

    @property
    def blocks(self) -> int:
        """Into how many blocks of independent draws the features fall; one if they are no draws."""
        return 1

    @property
    def certified_error(self) -> float:
        """A bound on the relative error of every weight before rounding; infinite if unknown."""
        return math.inf

    @property
    def rounding_error(self) -> float:
        """A bound on how far rounding moves a weight, over ‖φ(q)‖; infinite if unknown."""
        return math.inf

    @property
    def weight_at_origin(self) -> float:
        """The weight that the query at the origin gives to every key; of draws, on average."""
        return 1.0

    @property
    def public_sample(self) -> Floats | None:
        """Some public rows like the keys, over `key_norm`, if the map was made of such."""
        return None

    def knows(self, queries: Array, arrays: Mapping[str, Array]) -> Array:
        """Return whether the map was made for such queries, where that can be told (`evidence`).

        One truth for all of them.

        Args:
            queries: some, finite, shape (heads, m, d).
            arrays: of `reading`, where the queries are.
        """
        raise NotImplementedError

    @classmethod
    def named(cls, wanted: Wanted) -> Self:  # noqa: ARG003
        """Return what a caller gets who asks for this kind by its name.

        Args:
            wanted: public numbers: width, bounds, and which error is good enough.

        Raises:
            InvalidInput: numbers are not enough to make one.
        """
        return _validate.reject("kernel", cls.kind, "made by you: it takes more than numbers")

    @classmethod
    def offered(cls, wanted: Wanted) -> Self | None:  # noqa: ARG003
        """Return the kernel that "auto" may take, if this kind has one to offer (`registry`).

        Args:
            wanted: public numbers: width, bounds, and which error is good enough.
        """
        return None

    def why_offered(self, eps_s: float) -> str:
        """Return why "auto" takes this kernel, as a clause.

        Args:
            eps_s: the relative error of a weight that was asked for.
        """
        return f"the first that has something to offer for eps_s = {eps_s:g}"

    @abc.abstractmethod
    def reading(self, state: Floats) -> dict[str, NDArray[Any]]:
        """Return all that `read` and `query_norms` need to answer from a state, by name.

        What does not depend on the query is done here, once. Callers convert the arrays: floats to
        the precision that they compute in, whole numbers not at all.

        Args:
            state: in real units, shape (heads, r, c).
        """

    @abc.abstractmethod
    def read(self, queries: Array, arrays: Mapping[str, Array]) -> Array:
        """Return φ(q)·S, but for the factor that `query_exponent` speaks of.

        A pure function, without a branch that depends on a value: torch compiles it.

        Args:
            queries: clipped, shape (heads, m, d).
            arrays: of `reading`, where and in which precision the queries are.

        Returns:
            Shape (heads, m, c).
        """

    def read_blocks(self, queries: Array, arrays: Mapping[str, Array]) -> Array:
        """Return what `read` returns, block by block: they add up to it.

        Args:
            queries: clipped, shape (heads, m, d).
            arrays: of `reading`, where and in which precision the queries are.

        Returns:
            Shape (heads, blocks, m, c).
        """
        return namespace(queries).expand_dims(self.read(queries, arrays), axis=1)

    def read_parts(self, queries: Array, squared: Array, arrays: Mapping[str, Array]) -> ReadParts:
        """Return sums with what is known of their error, where that is a residual (`evidence`).

        Args:
            queries: clipped, shape (heads, m, d).
            squared: their squared lengths in units of query_norm, shape (heads, m, 1).
            arrays: of `reading`, where and in which precision the queries are.
        """
        raise NotImplementedError

    @property
    def query_unit(self) -> float:
        """What `read` multiplies queries by on its own, besides what its arrays hold."""
        return 1.0

    def reads_like(self, other: "Kernel") -> bool:
        """Return whether `read` of this kernel reads the other's arrays just as its own would.

        But for `query_unit`. Heads whose kernels differ in their bounds only can so be read at
        once.

        Args:
            other: any kernel.
        """
        return self == other

    def at(self, *, scale: float, key_norm: float, query_norm: float) -> Self:
        """Return the same kind of map, with as many features, for other bounds.

        Args:
            scale: logit = scale·⟨q, k⟩.
            key_norm: bound on ‖k‖₂.
            query_norm: bound on ‖q‖₂.

        Raises:
            InvalidInput: the kernel is made of more than numbers.
        """
        bounds = (scale, key_norm, query_norm)
        return _validate.reject("kernel", self.kind, f"one that is made of numbers, for {bounds}")

    def inner_with_origin(self, queries: Array, arrays: Mapping[str, Array]) -> Array:  # noqa: ARG002
        """Return ⟨φ(q), φ(0)⟩, shape (heads, m, 1), or one number; of draws, on average.

        Args:
            queries: clipped, shape (heads, m, d).
            arrays: of `reading`.
        """
        return self.weight_at_origin

    @abc.abstractmethod
    def query_norms(self, queries: Array, squared: Array, arrays: Mapping[str, Array]) -> Array:
        """Return ‖φ(q)‖, shape (heads, m, 1).

        Args:
            queries: clipped, shape (heads, m, d).
            squared: their squared lengths in units of query_norm, shape (heads, m, 1).
            arrays: of `reading`.
        """

    def parameters(self) -> dict[str, object]:
        """Return the numbers that, with `arrays`, make the same kernel again (`restore`)."""
        return {
            "kind": self.kind,
            "dim": self.dim,
            "scale": self.scale,
            "key_norm": self.key_norm,
            "query_norm": self.query_norm,
        }

    def clip_queries(self, queries: Array) -> tuple[Array, Array]:
        """Shrink each query that is longer than `query_norm` to that length.

        Args:
            queries: numpy or torch, floats, shape (..., d), of a size whose square is finite
                (`Memory` sees to that).

        Returns:
            The queries, and their squared lengths in units of query_norm, shape (..., 1), 0 to 1
            (and a rounding).
        """
        return clip_queries(queries, self.query_norm)

    @property
    def _query_factor(self) -> float:
        """Y = factor·q has a norm of at most √t."""
        return math.sqrt(self.largest_logit) / self.query_norm

    @property
    def _key_factor(self) -> float:
        """X = factor·k has a norm of at most √t, and ⟨x, y⟩ is the logit."""
        return math.sqrt(self.largest_logit) / self.key_norm


def log_mean_weight(logit: float, dim: float) -> float:
    """Return ln E[e^(t·cos)], the mean weight of keys that are spread evenly over the sphere.

    Args:
        logit: t, the largest logit.
        dim: how many directions they are spread in.
    """
    order = dim / 2 - 1
    bessel = float(special.ive(order, logit))
    if not bessel > 0 or not math.isfinite(bessel):  # order far above t: the series' first terms
        return logit**2 / (2 * dim)
    return float(special.gammaln(dim / 2) + order * math.log(2 / logit) + math.log(bessel) + logit)


def answer_length(logit: float, dim: float) -> float:
    """Return E[cos·e^(t·cos)]/E[e^(t·cos)]: how long answers are, over the length of values.

    For values that are such keys themselves.

    Args:
        logit: t, the largest logit.
        dim: how many directions they are spread in.
    """
    above, below = (float(special.ive(order, logit)) for order in (dim / 2, dim / 2 - 1))
    if not below > 0 or not math.isfinite(above / below):  # likewise
        return logit / dim
    return above / below
