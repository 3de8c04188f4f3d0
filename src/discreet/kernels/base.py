"""What every feature map offers: row-wise features, in integers for keys and in floats for queries.

A kernel approximates exp(scale·⟨q, k⟩) by an inner product φ(q)·φ'(k). Keys are private: they are
clipped, rounded to a lattice, and mapped to *integer* features whose norm is bounded exactly, by
sums of integers and elementwise functions only, so that a row has the same features alone, in any
batch and at any position. Queries are public: they are mapped in floating point, by numpy or torch.
"""

import abc
import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, fields
from enum import Enum, auto
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self, TypedDict

import numpy as np
from numpy.typing import NDArray

from discreet import _validate
from discreet._arrays import namespace
from discreet._typing import Array, Floats, Integers
from discreet.kernels.public_rows import PublicRows
from discreet.noise import Lattice

# The L2 norm of a key's integer features never exceeds this. With 16 bits, rounding changes a
# weight by about 1e-5 of the largest weight.
FEATURE_RADIUS = 2**16

# Keys are rounded to about 2^-22 of their norm bound.
KEY_RESOLUTION = 22

# "auto" takes no map with more features than this for the sake of its error.
MOST_FEATURES = 4096

# More than all roundings of a computed bound or feature together.
SHRINK = 1 - 2.0**-40

_LEAST_LOGIT, LARGEST_LOGIT = 1e-9, 100.0

# More than float32 adds to the squared length of a vector of length one.
_LENGTH_ROUNDING = 1e-5

_LEAST_NORM, _LARGEST_NORM = 1e-30, 1e30  # within float32, too


@dataclass(frozen=True, eq=False, repr=False)
class KeyFeatures:
    """Integer features of some keys: φ'(k) = features·weight/unit, row by row. PRIVATE.

    Attributes:
        features: integers stored as float64, shape (n, r); each row's L2 norm is at most
            `FEATURE_RADIUS`, exactly.
        weights: factors from 0 to 1, shape (n,); None if all are one.
    """

    features: Floats
    weights: Floats | None


class Evidence(Enum):
    """What a kernel knows of its own error, and so what the ± of an answer is made of.

    `docs/errors.md`, "Where it comes from".
    """

    DRAWS = auto()
    """Features are random draws: blocks of them differ as they do from the truth."""
    CERTIFICATE = auto()
    """A bound on the relative error of every weight (`Kernel.certified_error`)."""
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
    """Raise `InvalidInput` unless integer features are within their bounds for such logits."""
    limits = {"at_least": _LEAST_LOGIT, "at_most": LARGEST_LOGIT}
    _validate.real("scale * key_norm * query_norm", largest, **limits)


@dataclass(frozen=True)
class Kernel(abc.ABC):
    """A feature map of exp(scale·⟨q, k⟩) for ‖k‖ ≤ key_norm and ‖q‖ ≤ query_norm.

    Both sides are balanced: the norms of a key's and of a query's features have the same bound.

    Attributes:
        dim: number of coordinates d of keys and queries.
        scale: logit = scale·⟨q, k⟩.
        key_norm: bound on ‖k‖₂; public, enforced by clipping.
        query_norm: bound on ‖q‖₂; public, enforced by clipping.
        kind: the name under which files and callers know the map; see `registry`.
        evidence: what the ± of an answer is made of.
    """

    kind: ClassVar[str]
    evidence: ClassVar[Evidence]

    dim: int
    _: KW_ONLY
    scale: float
    key_norm: float
    query_norm: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "dim", _validate.whole("dim", self.dim, at_least=1))
        for name in ("scale", "key_norm", "query_norm"):
            value = _validate.real(name, getattr(self, name), above=0)
            object.__setattr__(self, name, value)
        _validate.real("scale * key_norm * query_norm", self.largest_logit, at_most=LARGEST_LOGIT)

    def check_integers(self) -> None:
        """Raise `InvalidInput` unless `key_features` is within its bounds for these parameters.

        Every mechanism that adds integer features up calls this first. It leaves a wide range: no
        power or product of these numbers leaves float64 (or, for queries, float32).
        """
        for name in ("key_norm", "query_norm"):
            _validate.real(name, getattr(self, name), at_least=_LEAST_NORM, at_most=_LARGEST_NORM)
        check_logit(self.largest_logit)

    @property
    def largest_logit(self) -> float:
        """The bound on logits, t = scale·key_norm·query_norm."""
        return self.scale * self.key_norm * self.query_norm

    @property
    @abc.abstractmethod
    def features(self) -> int:
        """The number of features r."""

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
    @abc.abstractmethod
    def unit(self) -> float:
        """How many integer units one stands for: φ'(k) = features·weight/unit."""

    @property
    @abc.abstractmethod
    def entry_bound(self) -> int:
        """The largest magnitude of one integer feature."""

    @property
    def least_inner(self) -> int:
        """A lower bound on the inner product of the integer features of any two keys."""
        return -(FEATURE_RADIUS**2)

    @property
    def takes_signed_keys(self) -> bool:
        """Whether keys may have coordinates of any sign."""
        return True

    @property
    def query_exponent(self) -> float:
        """What `read` leaves out: a factor e^(exponent·s), s = ‖q‖²/query_norm²."""
        return 0.0

    @property
    @abc.abstractmethod
    def operations(self) -> int:
        """Floating-point operations for the features of one key."""

    @property
    def weight_error(self) -> float:
        """The standard error of one weight, over the largest, where it varies from row to row.

        A random map has one, and a polynomial does not: it errs alike wherever the logit is the
        same (`length_error`).
        """
        return 0.0

    def length_error(self, directions: float) -> float:  # noqa: ARG002
        """Return how wrong the length of answers is, over that of values, without any noise.

        For rows that are spread evenly, and the longest queries (`sphere.answer_length`).

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
        """A bound on the relative error of every weight, rounding included; infinite if unknown."""
        return math.inf

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
        """Return what a caller gets who asks for this kind by its name."""
        return _validate.reject("kernel", cls.kind, "made by you: it takes more than numbers")

    @classmethod
    def offered(cls, wanted: Wanted) -> Self | None:  # noqa: ARG003
        """Return the kernel that "auto" may take, if this kind has one to offer (`registry`)."""
        return None

    def why_offered(self, eps_s: float) -> str:
        """Return why "auto" takes this kernel, as a clause."""
        return f"the first that has something to offer for eps_s = {eps_s:g}"

    def key_features(self, keys: Floats, *, out: Floats | None = None) -> KeyFeatures:
        """Return the integer features of keys of any finite size, shape (n, d).

        Args:
            keys: the rows.
            out: memory for at least n·r numbers, to be used again: fresh memory costs as much as
                the arithmetic.
        """
        integers = self.key_lattice.clip_rows(keys, norm=self.key_norm)
        size = len(keys) * self.features
        features = self._arrange(np.empty(size) if out is None else out[:size], len(keys))
        self._fill(integers, features)
        return KeyFeatures(features, self._weights(integers))

    def _arrange(self, memory: Floats, rows: int) -> Floats:
        """Return memory for rows·r numbers as features, shape (rows, r), in the map's own order."""
        return memory.reshape(rows, self.features)

    @abc.abstractmethod
    def _fill(self, integers: Integers, out: Floats) -> None:
        """Write the integer features of rounded keys."""

    def _weights(self, integers: Integers) -> Floats | None:  # noqa: ARG002
        """Return the factor of each rounded key; None if all are one."""
        return None

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

        Returns:
            Shape (heads, blocks, m, c).
        """
        return namespace(queries).expand_dims(self.read(queries, arrays), axis=1)

    def read_parts(self, queries: Array, squared: Array, arrays: Mapping[str, Array]) -> ReadParts:
        """Return sums with what is known of their error, where that is a residual (`evidence`)."""
        raise NotImplementedError

    @abc.abstractmethod
    def query_norms(self, queries: Array, squared: Array, arrays: Mapping[str, Array]) -> Array:
        """Return ‖φ(q)‖, shape (heads, m, 1).

        Args:
            queries: clipped, shape (heads, m, d).
            squared: their squared lengths in units of query_norm, shape (heads, m, 1).
            arrays: of `reading`.
        """

    @abc.abstractmethod
    def describe(self) -> str:
        """Return what the map is, in a phrase."""

    def parameters(self) -> dict[str, object]:
        """Return the numbers that, with `arrays`, make the same kernel again (`restore`)."""
        return {
            "kind": self.kind,
            "dim": self.dim,
            "scale": self.scale,
            "key_norm": self.key_norm,
            "query_norm": self.query_norm,
        }

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return what was computed and must be the same to the bit wherever the kernel is used."""
        return {}

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:  # noqa: ARG003
        """Return the kernel that has these `parameters` (but for the kind) and `arrays`."""
        return cls(**parameters)

    @cached_property
    def key_lattice(self) -> Lattice:
        """The grid that keys are rounded to."""
        return Lattice.for_norm(self.key_norm, resolution=KEY_RESOLUTION)

    @property
    def key_radius(self) -> int:
        """The norm bound of a rounded key, in units of `key_lattice`."""
        return self.key_lattice.units(self.key_norm)

    def clip_queries(self, queries: Array) -> tuple[Array, Array]:
        """Shrink each query that is longer than `query_norm` to that length.

        A query that is longer by less than rounding stays as it is: queries are public, and their
        length changes no guarantee. Without a branch that depends on a value.

        Args:
            queries: numpy or torch, floats, shape (..., d), of a size whose square is finite
                (`Memory` sees to that).

        Returns:
            The queries, and their squared lengths in units of query_norm, shape (..., 1), 0 to 1
            (and a rounding).
        """
        xp = namespace(queries)
        relative = queries if self.query_norm == 1 else queries * (1 / self.query_norm)
        squared = xp.sum(relative * relative, axis=-1, keepdims=True)
        one = xp.ones_like(squared)
        long = squared > 1 + _LENGTH_ROUNDING
        # Where nothing is long the divisor is one, and has no gradient.
        return queries / xp.sqrt(xp.where(long, squared, one)), xp.where(long, one, squared)

    def __getstate__(self) -> dict[str, object]:
        """Return the fields; what was computed from them is computed again where needed."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @property
    def _query_factor(self) -> float:
        """Y = factor·q has a norm of at most √t."""
        return math.sqrt(self.largest_logit) / self.query_norm

    @property
    def _key_factor(self) -> float:
        """X = factor·k has a norm of at most √t, and ⟨x, y⟩ is the logit."""
        return math.sqrt(self.largest_logit) / self.key_norm
