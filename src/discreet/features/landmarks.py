"""Features made from public rows that look like the private keys (Nyström).

With landmarks z_1, ..., z_m and g_i(x) = e^(⟨x, z_i⟩), the features φ(x) = G^(-½)·g(x), where
G_ij = g_i(z_j), are the coordinates of e^(⟨x, ·⟩) within the span of the landmarks' own. So
φ(x)·φ(y) is e^(⟨x, y⟩) but for what the landmarks do not span, and ‖φ(x)‖² ≤ e^(‖x‖²): the noise
is that of the other kernels, and on rows like the landmarks the error is far below that of random
features. The guarantee needs none of this: features are cut to their bound exactly, whatever the
landmarks are.
"""

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet import _validate
from discreet._arrays import namespace
from discreet._typing import Array, Floats, Integers
from discreet.features.base import FEATURE_RADIUS, SymmetricMap, cut_to_radius
from discreet.features.kernel import Evidence, Kernel, ReadParts, Wanted
from discreet.features.public_rows import (
    MOST_LANDMARKS,
    IntegerLandmarks,
    PublicRows,
    lengths,
    whitened,
)
from discreet.noise import Lattice

# So many landmarks, and features, serve where nobody asks for others.
RANK = 512

# Landmarks are rounded to about 2^-20 of the keys' norm bound, so that products with keys (2^22)
# are exact. Entries of the table of exp are below 2^20 and those of the matrix 2^22: with 2,000 of
# them a feature is a sum below 2^53.
_POINT_RESOLUTION, _EXP_BITS = 20, 20

# exp is tabulated at steps of at most this, and of at most this share of the largest logit.
_STEP = 2.0**-12

# Answers are read from this many blocks of landmarks, to see what each alone knows.
_MOST_BLOCKS = 16

# A file keeps so many of the rows that were kept back.
_KEPT = 100

# Queries of a larger kernel, over the largest weight, are nearly the same: how well they are told
# apart says nothing about the landmarks.
_NEARLY_THE_SAME = 0.5

# What `restore` takes besides arrays, and nothing else.
_PARAMETERS = {"dim", "scale", "key_norm", "query_norm", "held_back_error", "usual_residual"}

# So many keys are looked up at a time that their exponents stay in the processor's cache.
_BLOCK = 64


@dataclass(frozen=True, init=False)
class Landmarks(Kernel):
    """Nyström features of public rows: as many features as landmarks.

    Best where the private keys look like the public rows; where they do not, worse than `Fourier`,
    and each query says so (`covers`). Rows are split: one in four (at most 500) is kept back and
    tells how good the others are (`held_back_error`, `usual_residual`); the others are the
    landmarks, or the centres of their clusters if they are more than `rank`.

    Attributes:
        stored: the integers, as a file keeps them.
        held_back_error: how far a weight is off between two rows that were kept back, root mean
            square, over the largest weight.
        usual_residual: the largest residual of these rows.
    """

    kind: ClassVar[str] = "landmarks"
    evidence: ClassVar[Evidence] = Evidence.RESIDUAL
    for_errors: ClassVar[frozenset[str]] = frozenset({"matrix", "own", "own_state"})

    _: KW_ONLY
    stored: IntegerLandmarks = field(repr=False)
    held_back_error: float
    usual_residual: float

    def __init__(
        self,
        public_rows: ArrayLike | PublicRows,
        *,
        rank: int = RANK,
        scale: float,
        key_norm: float,
        query_norm: float,
    ) -> None:
        """Make landmarks of public rows.

        Args:
            public_rows: that look like the private keys, shape (n, d); longer ones are clipped.
                They become part of every file: never private rows, nor anything computed from them.
            rank: how many landmarks and features at most.
            scale: logit = scale·⟨q, k⟩.
            key_norm: public bound on keys.
            query_norm: public bound on queries.
        """
        rank = _validate.whole("rank", rank, at_least=2, at_most=MOST_LANDMARKS)
        public = public_rows if isinstance(public_rows, PublicRows) else PublicRows(public_rows)
        self._set(dim=public.dim, scale=scale, key_norm=key_norm, query_norm=query_norm)
        super().__post_init__()
        self.check_integers()
        lattice = self._point_lattice
        # With the origin among them constants are spanned, and a state tells how many rows it has.
        found = np.concatenate([np.zeros((1, public.dim)), public.points(rank - 1)])
        points = lattice.clip_rows(found, norm=self.key_norm)
        held_back = public.held_back
        kept = lattice.clip_rows(held_back[:_KEPT], norm=self.key_norm)
        real = np.ldexp(points.astype(np.float64), -lattice.bits) * self._key_factor
        tops = np.asarray(self._tops_of(points) * self._step, dtype=np.float64)
        stored = whitened(points, kept, real=real, tops=tops, logit=self.largest_logit)
        stored.check(self.dim, self._point_radius)
        self._set(stored=stored)
        off, residuals = self._tried_on(held_back)
        self._set(held_back_error=off, usual_residual=float(np.max(residuals)))

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the kernel with the landmarks that were stored.

        Args:
            parameters: the numbers of `parameters`, but for the kind.
            arrays: those of `arrays`.

        Raises:
            InvalidInput: they are not those of such a kernel.
        """
        if set(parameters) != _PARAMETERS:
            _validate.reject("parameters", sorted(parameters), f"exactly {sorted(_PARAMETERS)}")
        for name in ("held_back_error", "usual_residual"):
            _validate.real(name, parameters[name], at_least=0)
        integers = [arrays[name] for name in ("landmarks", "matrix", "exponents", "kept")]
        if any(array.dtype.kind not in "iu" for array in integers):
            _validate.reject("stored", "...", "integers whose products are exact")
        kernel = cls.__new__(cls)
        stored = IntegerLandmarks(*(array.astype(np.int64) for array in integers))
        kernel._set(stored=stored, **parameters)  # noqa: SLF001 (our own)
        kernel.__post_init__()
        stored.check(kernel.dim, kernel._point_radius)  # noqa: SLF001
        return kernel

    @cached_property
    def _point_lattice(self) -> Lattice:
        return Lattice.for_norm(self.key_norm, resolution=_POINT_RESOLUTION)

    @cached_property
    def _point_radius(self) -> int:
        return self._point_lattice.units(self.key_norm)

    @cached_property
    def _product_unit(self) -> float:
        """The logit that one unit of a product of a key and a landmark stands for."""
        return self._key_factor**2 * self.key_lattice.step * self._point_lattice.step

    @cached_property
    def _shift(self) -> int:
        """A step of the table is 2^shift units of a product of a key and a landmark."""
        return math.floor(math.log2(_STEP * min(1.0, self.largest_logit) / self._product_unit))

    @cached_property
    def _step(self) -> float:
        """The step of the table, as a logit."""
        return math.ldexp(self._product_unit, self._shift)

    @cached_property
    def _tops(self) -> Integers:
        return self._tops_of(self.stored.points)

    def _tops_of(self, points: Integers) -> Integers:
        """Return the largest product that any key has with each point, in steps of the table."""
        steps = np.ceil(np.ldexp(lengths(points) * self.key_radius, -self._shift))
        return np.asarray(steps, dtype=np.int64)

    @cached_property
    def _table(self) -> Floats:
        """2^20·e^(-j·step), and last the first zero: further entries would be zeros, too."""
        zero = math.ceil((_EXP_BITS + 1) * math.log(2) / self._step)
        # No product is below minus the largest.
        count = min(zero, 2 * int(self._tops.max()) + 2)
        return np.asarray(np.rint(2.0**_EXP_BITS * np.exp(-self._step * np.arange(count + 1))))

    @cached_property
    def _float_points(self) -> Floats:
        """Landmarks, such that a product with a key is minus its steps; exact powers of two."""
        return np.ldexp(-self.stored.points.T.astype(np.float64), -self._shift)

    @cached_property
    def _float_matrix(self) -> Floats:
        return np.ascontiguousarray(self.stored.matrix.T).astype(np.float64)

    def fill(self, integers: Integers, out: Floats) -> None:
        """Write the integer features of rounded keys.

        Args:
            integers: rounded keys, shape (n, d).
            out: where features are written, shape (n, r).
        """
        keys = integers.astype(np.float64)
        for start in range(0, len(keys), _BLOCK):
            block = slice(start, start + _BLOCK)
            # Exact: |Σ z·l| ≤ ‖z‖·‖l‖ ≤ 2^42, in units of a power of two, and whole tops are added.
            steps = np.matmul(keys[block], self._float_points)
            steps += self._tops
            np.rint(steps, out=steps)
            np.clip(steps, 0, len(self._table) - 1, out=steps)
            values = np.take(self._table, steps.astype(np.intp))
            # Exact: at most 2,000 terms of 2^20·2^22.
            features = np.matmul(values, self._float_matrix, out=out[block])
            features *= self._feature_units
            np.rint(features, out=features)
        self._cut(out)

    @cached_property
    def _feature_units(self) -> Floats:
        """Integer units of a feature for each unit of its sum: powers of two."""
        powers = round(math.log2(FEATURE_RADIUS)) - _EXP_BITS - self.stored.exponents
        return np.ldexp(1.0, powers)

    @staticmethod
    def _cut(features: Floats) -> None:
        """Shorten features whose norm is above `FEATURE_RADIUS`, in place: then none is.

        Rounding carries some beyond it by a little; nothing that is promised rests on how many.
        """
        squared = _clipped(features)
        long = squared > FEATURE_RADIUS**2
        cut = features[long]
        cut_to_radius(cut, squared[long])
        features[long] = cut

    def _tried_on(self, rows: Floats) -> tuple[float, Floats]:
        """Return the error of weights between rows that no landmark was made of, and residuals.

        Both over the largest weight.
        """
        keys = self.key_lattice.clip_rows(rows, norm=self.key_norm)
        real = np.ldexp(keys.astype(np.float64), -self.key_lattice.bits) * self._key_factor
        features = self.key_features(rows).features / FEATURE_RADIUS
        off = np.exp(real @ real.T - self.largest_logit) - features @ features.T
        residuals = np.maximum(np.diag(off), 0.0)
        pairs = len(rows) * (len(rows) - 1)
        squares = np.sum(off * off) - np.sum(np.diag(off) ** 2)
        return math.sqrt(max(float(squares), 0.0) / max(pairs, 1)), residuals

    @cached_property
    def _real_matrix(self) -> Floats:
        """φ(q) = e^(t/2)·matrix·g(q): shape (m, r)."""
        real = np.ldexp(self.stored.matrix.astype(np.float64), -self.stored.exponents[:, None])
        return np.ascontiguousarray(real.T)

    @cached_property
    def _map(self) -> dict[str, NDArray[Any]]:
        """What makes features of queries."""
        real = np.ldexp(self.stored.points.T.astype(np.float64), -self._point_lattice.bits)
        return {
            "points": real * self.scale,
            "tops": self._tops * self._step,
            "matrix": self._real_matrix,
        }

    @cached_property
    def _blocks_of(self) -> list[Integers]:
        """Which landmarks each block has; clusters that lie side by side go to different ones."""
        count = min(len(self.stored.points), _MOST_BLOCKS)
        return [np.arange(start, len(self.stored.points), count) for start in range(count)]

    @cached_property
    def _own_directions(self) -> list[Floats]:
        """An orthonormal basis of what each block alone spans, shape (r, width); zeros at the end.

        The columns of the matrix are the dual basis of the landmarks: each is orthogonal to all
        landmarks but its own.
        """
        width = max(map(len, self._blocks_of))
        bases = [np.linalg.qr(self._real_matrix[block].T)[0] for block in self._blocks_of]
        return [np.pad(base, ((0, 0), (0, width - base.shape[1]))) for base in bases]

    @cached_property
    def _own(self) -> Floats:
        """What makes the part of φ(q) that each block alone spans, shape (m, blocks·width)."""
        return self._real_matrix @ np.concatenate(self._own_directions, axis=1)

    def reading(self, state: Floats) -> dict[str, NDArray[Any]]:
        """Return the map of queries, the state in terms of landmarks, and the blocks' own part.

        Args:
            state: in real units, shape (heads, r, c).
        """
        return {
            **self._map,
            "solution": self._real_matrix @ state * self.bound,
            "own": self._own,
            "own_state": np.stack([each.T @ state for each in self._own_directions], axis=1),
        }

    def _values(self, queries: Array, arrays: Mapping[str, Array]) -> Array:
        """Return g(q), each over its largest value: (heads, m, landmarks)."""
        return namespace(queries).exp(queries @ arrays["points"] - arrays["tops"])

    def read(self, queries: Array, arrays: Mapping[str, Array]) -> Array:
        """Return φ(q)·S: (heads, m, d), clipped, to (heads, m, c).

        Args:
            queries: clipped, shape (heads, m, d).
            arrays: of `reading`, where and in which precision the queries are.
        """
        return self._values(queries, arrays) @ arrays["solution"]

    def read_parts(self, queries: Array, squared: Array, arrays: Mapping[str, Array]) -> ReadParts:
        """Return sums, and what each block of landmarks alone adds to them.

        Args:
            queries: clipped, shape (heads, m, d).
            squared: their squared lengths in units of query_norm, shape (heads, m, 1).
            arrays: of `reading`, where and in which precision the queries are.
        """
        xp = namespace(queries)
        values = self._values(queries, arrays)
        own = values @ arrays["own"]
        heads, count, _ = own.shape
        state = arrays["own_state"]
        by_block = xp.permute_dims(
            xp.reshape(own, (heads, count, state.shape[1], state.shape[2])), (0, 2, 1, 3)
        )
        return ReadParts(
            sums=values @ arrays["solution"],
            parts=by_block @ state * self.bound,
            own=xp.sum(own * own, axis=-1, keepdims=True),
            covered=self._covered(values, arrays),
            whole=self._whole(squared),
            usual=self.usual_residual,
        )

    def _covered(self, values: Array, arrays: Mapping[str, Array]) -> Array:
        """Return ‖φ(q)‖² over the largest weight, e^t."""
        features = values @ arrays["matrix"]
        return namespace(values).sum(features * features, axis=-1, keepdims=True)

    def _whole(self, squared: Array) -> Array:
        """Return K(q, q) over the largest weight."""
        return namespace(squared).exp((squared - 1) * self.largest_logit)

    def residuals(self, queries: Array) -> Array:
        """Return K(q, q) - ‖φ(q)‖² over the largest weight, from 0 to 1, for queries (..., d).

        A certificate: the weight of a row k is off by at most √(residual(q)·residual(k)) of the
        largest. Queries above `usual_residual` are unlike the public rows.

        Args:
            queries: numpy or torch, finite, shape (..., d); longer ones are clipped.

        Returns:
            Shape (...).
        """
        arrays = self._placed(queries)
        clipped, squared = self.clip_queries(queries)
        residual = self._whole(squared) - self._covered(self._values(clipped, arrays), arrays)
        return namespace(queries).maximum(residual, 0 * residual)[..., 0]

    def covers(self, queries: Array) -> Array:
        """Return for each query, shape (..., d), whether its residual is a usual one.

        Args:
            queries: numpy or torch, finite, shape (..., d); longer ones are clipped.

        Returns:
            Shape (...).
        """
        return self.residuals(queries) <= self.usual_residual

    def knows(self, queries: Array, arrays: Mapping[str, Array]) -> Array:
        """Return whether queries, shape (heads, m, d), are like the public rows.

        They are not if most of them have an unusual residual, or if the landmarks are further from
        the kernel between them than a constant would be (where they are not nearly the same).

        Args:
            queries: some, finite, shape (heads, m, d).
            arrays: of `reading`, where and in which precision the queries are.

        Returns:
            One truth for all of them.
        """
        xp = namespace(queries)
        clipped, squared = self.clip_queries(queries)
        values = self._values(clipped, arrays)
        features = values @ arrays["matrix"]
        residual = self._whole(squared)[..., 0] - xp.sum(features * features, axis=-1)
        usual = xp.astype(residual <= self.usual_residual, queries.dtype)
        products = clipped @ xp.matrix_transpose(clipped) * self._query_factor**2
        kernel = xp.exp(products - self.largest_logit)
        off = kernel - features @ xp.matrix_transpose(features)
        pairs = xp.astype(kernel < _NEARLY_THE_SAME, queries.dtype)
        count = xp.maximum(xp.sum(pairs), xp.ones_like(xp.sum(pairs)))
        apart = (kernel - xp.sum(kernel * pairs) / count) * pairs
        known = xp.sum((off * pairs) ** 2) <= xp.sum(apart * apart)
        return known & (xp.mean(usual) >= 0.5)

    def _placed(self, queries: Array) -> dict[str, Array]:
        """Return what makes features of queries, where they are."""
        xp = namespace(queries)
        return {
            name: xp.asarray(array, dtype=queries.dtype, device=queries.device)
            for name, array in self._map.items()
        }

    def query_norms(self, queries: Array, squared: Array, arrays: Mapping[str, Array]) -> Array:  # noqa: ARG002
        """Return ‖φ(q)‖.

        Args:
            queries: clipped, shape (heads, m, d).
            squared: their squared lengths in units of query_norm, shape (heads, m, 1).
            arrays: of `reading`, where and in which precision the queries are.
        """
        covered = self._covered(self._values(queries, arrays), arrays)
        return namespace(queries).sqrt(covered) * self.bound

    def inner_with_origin(self, queries: Array, arrays: Mapping[str, Array]) -> Array:
        """Return ⟨φ(q), φ(0)⟩, which is one as far as landmarks know both.

        Args:
            queries: clipped, shape (heads, m, d).
            arrays: of `reading`, where and in which precision the queries are.
        """
        here, origin = (
            self._values(each, arrays) @ arrays["matrix"] for each in (queries, 0 * queries[:, :1])
        )
        return namespace(queries).sum(here * origin, axis=-1, keepdims=True) * self.bound**2

    @property
    def public_sample(self) -> Floats:
        """Rows that no landmark was made of, over `key_norm`."""
        real = np.ldexp(self.stored.kept.astype(np.float64), -self._point_lattice.bits)
        return real / self.key_norm

    @property
    def features(self) -> int:
        """One for each landmark."""
        return len(self.stored.matrix)

    @property
    def error(self) -> float:
        """The `held_back_error`: measured on public rows, not certified."""
        return self.held_back_error

    @property
    def weight_error(self) -> float:
        """The same."""
        return self.held_back_error

    @property
    def error_meaning(self) -> str:
        """Measured on public rows."""
        return (
            "root mean square error of one row's weight, between public rows that were kept back, "
            "in units of exp(scale*key_norm*query_norm)"
        )

    @cached_property
    def bound(self) -> float:
        """e^(t/2), the norm of e^(⟨x, ·⟩) at the edge of the ball."""
        return math.exp(self.largest_logit / 2)

    @property
    def unit(self) -> float:
        """FEATURE_RADIUS integer units are e^(t/2)."""
        return FEATURE_RADIUS / self.bound

    @property
    def operations(self) -> int:
        """A product with each landmark, and the matrix."""
        return 2 * len(self.stored.points) * (self.dim + self.features)

    @classmethod
    def named(cls, wanted: Wanted) -> Self:
        """Return the landmarks of the public rows that came with the request.

        Args:
            wanted: public numbers: width, bounds, and which error is good enough.

        Raises:
            InvalidInput: no public rows came with it.
        """
        if wanted.public_rows is None:
            need = "public_rows"
            return _validate.reject(
                "kernel", cls.kind, f"given with {need}, of which it is made", needs=need
            )
        rank = RANK if wanted.features is None else min(wanted.features, MOST_LANDMARKS)
        return cls(wanted.public_rows, rank=rank, **wanted.bounds)

    def why_offered(self, eps_s: float) -> str:  # noqa: ARG002
        """Return what was better than all else.

        Args:
            eps_s: the relative error of a weight that was asked for.
        """
        return "on public rows that were kept back it has the least error"

    def describe(self) -> str:
        """Return how many landmarks there are."""
        return (
            f"{len(self.stored.points):,} landmarks from public rows ({self.features:,} features)"
        )

    def parameters(self) -> dict[str, object]:
        """Return the numbers that make the same kernel again."""
        return {
            **super().parameters(),
            "held_back_error": self.held_back_error,
            "usual_residual": self.usual_residual,
        }

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return landmarks and matrix: another machine's linear algebra would find others."""
        return {
            "landmarks": self.stored.points.astype(np.int32),
            "matrix": self.stored.matrix.astype(np.int32),
            "exponents": self.stored.exponents.astype(np.int32),
            "kept": self.stored.kept.astype(np.int32),
        }


@dataclass(frozen=True, init=False)
class UnitLandmarks(SymmetricMap, Landmarks):
    """The features of `Landmarks`, each row's stretched to length one.

    No kernel of attention any more, and better for it here: a row uses the whole of the
    sensitivity, also where no landmark is near.
    """

    kind: ClassVar[str] = "near_landmarks"
    aliases: ClassVar[tuple[str, ...]] = ("unit_landmarks",)

    def __init__(
        self,
        public_rows: ArrayLike | PublicRows,
        *,
        rank: int = RANK,
        scale: float,
        key_norm: float,
    ) -> None:
        """Make landmarks of public rows.

        Args:
            public_rows: that look like the private keys, shape (n, d); longer ones are clipped.
                They become part of every file: never private rows, nor anything computed from them.
            rank: how many landmarks and features at most.
            scale: φ(x)·φ(y) is about e^(-scale·‖x - y‖²/2) where landmarks are near.
            key_norm: public bound on keys.
        """
        made = Landmarks(
            public_rows, rank=rank, scale=scale, key_norm=key_norm, query_norm=key_norm
        )
        self._set(**{each.name: getattr(made, each.name) for each in fields(made)})

    @staticmethod
    def _cut(features: Floats) -> None:
        """Bring features to the length of `FEATURE_RADIUS`, or a little less, in place."""
        # A row of zeros stays one.
        cut_to_radius(features, np.maximum(_clipped(features), 1.0))

    def query_arrays(self) -> dict[str, NDArray[Any]]:
        """Return landmarks and matrix."""
        return self._map

    def query_features(self, queries: Array, arrays: Mapping[str, Array]) -> Array:
        """Return φ(q): (heads, m, d), clipped, to (heads, m, r).

        Args:
            queries: clipped, shape (heads, m, d).
            arrays: of `query_arrays`, where and in which precision the queries are.
        """
        xp = namespace(queries)
        features = self._values(queries, arrays) @ arrays["matrix"]
        squared = xp.sum(features * features, axis=-1, keepdims=True)
        # Less than rounding leaves of a row, and it is nowhere near any of them.
        floor = xp.full_like(squared, FEATURE_RADIUS**-2.0)
        return features / xp.sqrt(xp.maximum(squared, floor))

    def describe(self) -> str:
        """Return how many landmarks there are."""
        return f"{super().describe()}, renormalised"


def _clipped(features: Floats) -> Floats:
    """Clip each feature to the radius, in place, and return the squared length of each row.

    Exact in any order: at most 2,000 squares of 2^32.
    """
    np.clip(features, -FEATURE_RADIUS, FEATURE_RADIUS, out=features)
    return np.asarray(np.einsum("ij,ij->i", features, features))
