"""How sums are read from the arrays of a state: as the kernel has it, or exactly near points.

Pure functions of queries and arrays, as `reader` needs them. `reference` says what the points are,
and fits their weights::

    sums = K(q, points)·T + ρ·φ(q)·e

with K the exact kernel, T the weights of the points, and e the remainder of the state, which the
points do not explain. Without points it is φ(q)·S.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from discreet._arrays import namespace
from discreet._typing import Array
from discreet.features.kernel import Kernel

# The arrays that only standard errors need: models that are compiled do without.
FOR_ERRORS = frozenset({"reference_signs", "cosine_signs", "sine_signs", "doubt"})

# A remainder of so many times its usual square begins to stand out; of twice as many, it does.
_STANDS_OUT = 6.0


class Blocks(NamedTuple):
    """Sums, block by block of random draws, and what is known of them.

    Attributes:
        parts: what each block adds, times `kept`, shape (heads, blocks, m, c).
        base: what is read exactly, near points, shape (heads, m, c); zero without points. With all
            parts it adds up to the sums.
        norms: ‖h‖ of the functional h that answers a query, shape (heads, m, 1) or one number for
            all: the noise of a numerator is σ·‖h‖.
        kept: the share ρ of the remainder that counts, shape (heads, m, 1); one without points.
        doubt: the mean square of what leaving it out costs, over (1 - ρ)² times the variance of
            what is read from the whole remainder, shape (heads, 1, 1).
    """

    parts: Array
    base: Array
    norms: Array
    kept: Array
    doubt: Array

    @property
    def sums(self) -> Array:
        """All of it, shape (heads, m, c)."""
        return namespace(self.base).sum(self.parts, axis=1) + self.base


@dataclass(frozen=True)
class Readout:
    """Reads sums from arrays: those of `Kernel.reading`, or those of `reference.fit`.

    Sums lack the factor that `Kernel.query_exponent` speaks of; `norms` and `inner_with_origin` do
    not. No branch depends on a value: torch compiles it.

    Attributes:
        kernel: the feature map.
    """

    kernel: Kernel

    def sums(self, queries: Array, arrays: Mapping[str, Array]) -> Array:
        """Return numerators and, last, denominators, shape (heads, m, c).

        Args:
            queries: clipped, shape (heads, m, d).
            arrays: where and in which precision the queries are.
        """
        rest = self.kernel.read(queries, arrays)
        if "reference" not in arrays:
            return rest
        return (
            _at_points(queries, arrays) @ arrays["reference_weights"] + _kept(rest, arrays) * rest
        )

    def blocks(self, queries: Array, squared: Array, arrays: Mapping[str, Array]) -> Blocks:
        """Return the same, block by block of random draws.

        Args:
            queries: clipped, shape (heads, m, d).
            squared: their squared lengths in units of query_norm, shape (heads, m, 1).
            arrays: as for `sums`.
        """
        xp, parts = namespace(queries), self.kernel.read_blocks(queries, arrays)
        rest = xp.sum(parts, axis=1)
        alone = self.kernel.query_norms(queries, squared, arrays)
        if "reference" not in arrays:
            none = xp.zeros_like(rest)
            return Blocks(parts, none, alone, none[..., -1:] + 1, none[:, :1, -1:])
        kept, near = _kept(rest, arrays), _at_points(queries, arrays)
        norms = _root_mean_square(_of_signs(queries, near, kept, arrays)) * alone
        parts = parts * xp.expand_dims(kept, axis=1)
        return Blocks(parts, near @ arrays["reference_weights"], norms, kept, arrays["doubt"])

    def norms(self, queries: Array, squared: Array, arrays: Mapping[str, Array]) -> Array:
        """Return ‖h‖ of the functional h that answers a query, shape (heads, m, 1).

        Near points it is the root mean square of what h makes of rows of signs.

        Args:
            queries: clipped, shape (heads, m, d).
            squared: their squared lengths in units of query_norm, shape (heads, m, 1).
            arrays: as for `sums`.
        """
        alone = self.kernel.query_norms(queries, squared, arrays)
        if "reference" not in arrays:
            return alone
        return _root_mean_square(self._signs(queries, arrays)) * alone

    def inner_with_origin(
        self, queries: Array, squared: Array, arrays: Mapping[str, Array]
    ) -> Array:
        """Return ⟨h(q), h(0)⟩, shape (heads, m, 1) or one number. The first query is the origin.

        Args:
            queries: clipped, shape (heads, m, d).
            squared: their squared lengths in units of query_norm, shape (heads, m, 1).
            arrays: as for `sums`.
        """
        if "reference" not in arrays:
            return self.kernel.inner_with_origin(queries, arrays)
        xp, signs = namespace(queries), self._signs(queries, arrays)
        alone = self.kernel.query_norms(queries, squared, arrays)
        return xp.mean(signs * signs[:, :1], axis=-1, keepdims=True) * alone

    def _signs(self, queries: Array, arrays: Mapping[str, Array]) -> Array:
        kept = _kept(self.kernel.read(queries, arrays), arrays)
        return _of_signs(queries, _at_points(queries, arrays), kept, arrays)


def _at_points(queries: Array, arrays: Mapping[str, Array]) -> Array:
    """Return e^(-‖y - x‖²/2) for each query y and point x, shape (heads, m, points)."""
    xp = namespace(queries)
    half = xp.sum(queries * queries, axis=-1, keepdims=True) * arrays["half_square"]
    # One product has all three terms of the exponent, to the base of two: each pass over all pairs
    # counts, and powers of two are the cheapest.
    return xp.exp2(xp.concat([queries, half, xp.ones_like(half)], axis=-1) @ arrays["reference"])


def _kept(rest: Array, arrays: Mapping[str, Array]) -> Array:
    """Return which share of a remainder counts: ρ, or up to all of it where it stands out."""
    xp = namespace(rest)
    times = rest[..., -1:] ** 2 / arrays["usual_square"]
    out = xp.clip((times - _STANDS_OUT) / _STANDS_OUT, 0, 1)
    return arrays["kept"] + (1 - arrays["kept"]) * out


def _of_signs(queries: Array, near: Array, kept: Array, arrays: Mapping[str, Array]) -> Array:
    """Return what h makes of rows of signs, shape (heads, m, rows)."""
    xp = namespace(queries)
    angles = queries @ arrays["frequencies"]
    waves = xp.cos(angles) @ arrays["cosine_signs"] + xp.sin(angles) @ arrays["sine_signs"]
    return near @ arrays["reference_signs"] + kept * waves


def _root_mean_square(numbers: Array) -> Array:
    xp = namespace(numbers)
    return xp.sqrt(xp.mean(numbers * numbers, axis=-1, keepdims=True))
