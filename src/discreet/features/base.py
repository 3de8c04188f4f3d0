"""The base of every map of rows to integers, and of the maps that treat queries as rows.

Rows are private: they are clipped, rounded to a lattice, and mapped to *integer* features whose
norm is bounded exactly, by sums of integers and elementwise functions only, so that a row has the
same features alone, in any batch and at any position. Queries are public, and mapped in floating
point, by numpy or torch.
"""

import abc
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from discreet import _validate
from discreet._arrays import namespace
from discreet._typing import Array, Floats, Integers
from discreet.noise import Lattice

# The L2 norm of a key's integer features never exceeds this. With 16 bits, rounding changes a
# weight by about 1e-5 of the largest weight.
FEATURE_RADIUS = 2**16

# Keys are rounded to about 2^-22 of their norm bound.
KEY_RESOLUTION = 22

# More than all roundings of a computed bound or feature together.
SHRINK = 1 - 2.0**-40

# What a bound on the length of keys or queries may be: within float32, too.
NORMS = {"at_least": 1e-30, "at_most": 1e30}

# More than float32 adds to the squared length of a vector of length one.
_LENGTH_ROUNDING = 1e-5


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


class RowMap(abc.ABC):
    """A map of rows in a ball to integer features. Subclasses are frozen dataclasses.

    To add a map:

    1. Write a frozen dataclass with a `kind`, in a module of its own. For predictions derive it
       from `SymmetricMap`; for attention from `kernel.Kernel`, which adds a temperature.
    2. For rows, define `features`, `operations`, `fill`, `describe`, `parameters` (which a kernel
       has for its own numbers) and `unit` (which is the radius where nothing else is said). If
       numbers alone do not make the same map again, also `arrays` and `restore`; if proofs give
       more than the worst case, `entry_bound` and `least_inner`.
       `fill` must give integers of norm `FEATURE_RADIUS` at the most, whatever the key, and the
       same to the bit in any batch: exact sums of integers, then elementwise functions.
    3. For queries, define `query_arrays` and `query_features`; of a kernel `reading`, `read`,
       `query_norms`, `bound`, `error`, `error_meaning` and `evidence`.
    4. Add the class to `registry.KINDS`: nothing else is built or loaded. To be asked for by its
       name, a kernel needs `named`, and a map for predictions a line where readers choose features.
    5. Let it pass `SymmetricContract` or `KernelContract` (tests/support/map_contract.py), as the
       toys in tests/unit/features/test_toy.py do.

    Attributes:
        dim: number of coordinates d of keys.
        key_norm: bound on ‖k‖₂; public, enforced by clipping.
        kind: the name of the map in files, which callers may use, too.
        aliases: other names that callers may use.
        argument: which argument takes such a map: "kernel" (attention) or "features" (predictions).
    """

    kind: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    argument: ClassVar[str]

    dim: int
    key_norm: float

    @property
    @abc.abstractmethod
    def features(self) -> int:
        """The number of features r."""

    @property
    @abc.abstractmethod
    def unit(self) -> float:
        """How many integer units one stands for: φ'(k) = features·weight/unit."""

    @property
    def entry_bound(self) -> int:
        """The largest magnitude of one integer feature: no coordinate exceeds the norm."""
        return FEATURE_RADIUS

    @property
    def least_inner(self) -> int:
        """A lower bound on the inner product of the integer features of any two keys."""
        return -(FEATURE_RADIUS**2)

    @property
    def takes_signed_keys(self) -> bool:
        """Whether keys may have coordinates of any sign."""
        return True

    @property
    @abc.abstractmethod
    def operations(self) -> int:
        """Floating-point operations for the features of one key."""

    def check_integers(self) -> None:
        """Raise `InvalidInput` unless `key_features` is within its bounds for these parameters.

        Every mechanism that adds integer features up calls this first. It leaves a wide range: no
        power or product of these numbers leaves float64 (or, for queries, float32).
        """
        _validate.real("key_norm", self.key_norm, **NORMS)

    def key_features(self, keys: Floats, *, out: Floats | None = None) -> KeyFeatures:
        """Return the integer features of keys of any finite size, shape (n, d).

        Args:
            keys: the rows.
            out: memory for at least n·r numbers, to be used again: fresh memory costs as much as
                the arithmetic.

        Returns:
            The features, and the factor of each row.
        """
        integers = self.key_lattice.clip_rows(keys, norm=self.key_norm)
        size = len(keys) * self.features
        features = self._arrange(np.empty(size) if out is None else out[:size], len(keys))
        self.fill(integers, features)
        return KeyFeatures(features, self._weights(integers))

    def _arrange(self, memory: Floats, rows: int) -> Floats:
        """Return memory for rows·r numbers as features, shape (rows, r), in the map's own order."""
        return memory.reshape(rows, self.features)

    @abc.abstractmethod
    def fill(self, integers: Integers, out: Floats) -> None:
        """Write the integer features of keys that have been clipped and rounded (`key_lattice`).

        Args:
            integers: rounded keys, shape (n, d).
            out: shape (n, r), in rows that lie side by side (or as `_arrange` has them).
        """

    def _weights(self, integers: Integers) -> Floats | None:  # noqa: ARG002
        """Return the factor of each rounded key; None if all are one."""
        return None

    @abc.abstractmethod
    def describe(self) -> str:
        """Return what the map is, in a phrase."""

    @abc.abstractmethod
    def parameters(self) -> dict[str, object]:
        """Return the numbers that, with `arrays`, make the same map again (`restore`)."""

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return what was computed and must be the same to the bit wherever the map is used."""
        return {}

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:  # noqa: ARG003
        """Return the map that has these `parameters` (but for the kind) and `arrays`.

        Args:
            parameters: the numbers of `parameters`, but for the kind.
            arrays: those of `arrays`.
        """
        return cls(**parameters)

    @cached_property
    def key_lattice(self) -> Lattice:
        """The grid that keys are rounded to."""
        return Lattice.for_norm(self.key_norm, resolution=KEY_RESOLUTION)

    @cached_property
    def key_radius(self) -> int:
        """The norm bound of a rounded key, in units of `key_lattice`."""
        return self.key_lattice.units(self.key_norm)

    def _set(self, **values: object) -> None:
        """Give fields their values while the map is made; afterwards they are frozen."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __getstate__(self) -> dict[str, object]:
        """Return the fields; what was computed from them is computed again where needed."""
        return {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]


class SymmetricMap(RowMap):
    """A map with the same features φ for rows and for queries, but for rounding.

    What predictions φ(q)·W are made of. No φ is longer than one, and integers stand for it times
    `unit`.
    """

    argument: ClassVar[str] = "features"

    @property
    def unit(self) -> float:
        """Integer features have the length of the radius, but for rounding."""
        return float(FEATURE_RADIUS)

    @property
    def block_sizes(self) -> tuple[int, ...]:
        """How many features each block has; blocks are shrunk by a λ of their own."""
        return (self.features,)

    @abc.abstractmethod
    def query_arrays(self) -> dict[str, NDArray[Any]]:
        """Return all that `query_features` needs, by name: public arrays."""

    @abc.abstractmethod
    def query_features(self, queries: Array, arrays: Mapping[str, Array]) -> Array:
        """Return φ(q), shape (heads, m, r), of length one at the most.

        Args:
            queries: clipped, shape (heads, m, d).
            arrays: of `query_arrays`, where and in which precision the queries are.
        """

    @property
    def constant(self) -> float | None:
        """The first feature, if it is the same for all rows; None if there is no such feature."""
        return None

    @property
    def query_bound(self) -> float:
        """How long queries may be; longer ones are clipped."""
        return self.key_norm

    @property
    def bounds_text(self) -> str:
        """What bounds rows, in words."""
        return f"‖key‖ ≤ {self.key_norm:g}"

    def within(self, queries: Array) -> Array:
        """Return queries that are no longer than `key_norm`, as rows are, shape (heads, m, d).

        Args:
            queries: finite, shape (heads, m, d).
        """
        return clip_queries(queries, self.key_norm)[0]


def cut_to_radius(features: Floats, squared: Floats) -> None:
    """Bring rows to the length of `FEATURE_RADIUS`, or a little less, in integers and in place.

    Args:
        features: shape (n, r).
        squared: the squared length of each, above zero, of exact sums; shape (n,).
    """
    # The factor is smaller than the quotient by more than all roundings can add, and cutting
    # towards zero only shrinks: no row is longer than the radius.
    factors = FEATURE_RADIUS / np.sqrt(squared) * SHRINK
    features *= factors[:, None]
    np.trunc(features, out=features)


def clip_queries(queries: Array, norm: float) -> tuple[Array, Array]:
    """Shrink each query that is longer than a bound to that length.

    A query that is longer by less than rounding stays as it is: queries are public, and their
    length changes no guarantee. Without a branch that depends on a value.

    Args:
        queries: numpy or torch, floats, shape (..., d), of a size whose square is finite.
        norm: the bound.

    Returns:
        The queries, and their squared lengths in units of the bound, shape (..., 1), 0 to 1 (and a
        rounding).
    """
    xp = namespace(queries)
    relative = queries if norm == 1 else queries * (1 / norm)
    squared = xp.sum(relative * relative, axis=-1, keepdims=True)
    one = xp.ones_like(squared)
    long = squared > 1 + _LENGTH_ROUNDING
    # Where nothing is long the divisor is one, and has no gradient.
    return queries / xp.sqrt(xp.where(long, squared, one)), xp.where(long, one, squared)
