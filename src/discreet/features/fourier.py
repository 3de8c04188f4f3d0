"""Orthogonal random Fourier features: of exp(scale·⟨q, k⟩), and of the Gaussian kernel.

exp(⟨x, y⟩) = e^(‖x‖²/2)·e^(‖y‖²/2)·e^(-‖x-y‖²/2), and the last factor is the mean of cos(ω·(x - y))
over normal ω (Rahimi, Recht 2007). Features are cos and sin of ω·x, so their squares add up to one
for each frequency: the norm is known exactly, whatever the frequencies are. Those are public, and
the same to the bit on every machine.
"""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import special

from discreet import _validate
from discreet._arrays import namespace
from discreet._typing import Array, Floats, Integers
from discreet.features.base import FEATURE_RADIUS, SymmetricMap
from discreet.features.kernel import Evidence, Kernel, Wanted

# The randomness of the map is public, and protects nobody. One seed for all, so that builds with
# the same settings share their features and their sums can be added.
PUBLIC_SEED = 0

# So many frequencies serve where nobody knows how many rows there are, and the most that are taken
# for the sake of the error.
FREQUENCIES, MOST_FREQUENCIES = 1024, 8192

# cos and sin are tabulated at 2^12 angles; that moves a weight by about 1e-5 of the largest.
_TABLE_BITS = 12

# Answers are computed from this many blocks of frequencies, to see how much they differ.
_MOST_BLOCKS = 16

# Directions of frequencies are integer vectors of about this length, in bits.
_DIRECTION_BITS = 24

# How files keep frequencies.
_STORED = np.int32

# So many keys are looked up at a time that their angles stay in the processor's cache.
_BLOCK = 32

# |Σ z·f| stays below 2^52, so a projection is exact and one more addition can round it.
_LARGEST_PROJECTION = 2.0**52


@dataclass(frozen=True)
class IntegerFrequencies:
    """Frequencies for keys in lattice units; a projection of 2^turn_bits is one turn.

    Attributes:
        values: shape (frequencies, d).
        turn_bits: the resolution of angles.
    """

    values: Integers
    turn_bits: int

    def __post_init__(self) -> None:
        own = np.array(self.values)  # what was checked stays as it was
        own.flags.writeable = False
        object.__setattr__(self, "values", own)


@dataclass(frozen=True)
class Fourier(Kernel):
    """Random Fourier features with orthogonal frequencies. r = 2·frequencies, whatever d is.

    Attributes:
        dim: number of coordinates d of keys and queries.
        scale: logit = scale·⟨q, k⟩.
        key_norm: bound on ‖k‖₂; public, enforced by clipping.
        query_norm: bound on ‖q‖₂; public, enforced by clipping.
        frequencies: how many; the error falls with their square root.
        seed: of the public frequencies.
        stored: frequencies that were made before (as a file keeps them); None to make them.
    """

    kind: ClassVar[str] = "fourier"
    evidence: ClassVar[Evidence] = Evidence.DRAWS

    _: KW_ONLY
    frequencies: int = FREQUENCIES
    seed: int = PUBLIC_SEED
    stored: IntegerFrequencies | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(
            frequencies=_validate.whole("frequencies", self.frequencies, at_least=1, at_most=2**22),
            seed=_validate.whole("seed", self.seed, at_least=0, at_most=2**63 - 1),
        )
        if self.stored is not None:
            self._check_stored(self.stored)

    def _check_stored(self, stored: IntegerFrequencies) -> None:
        shape = (self.frequencies, self.dim)
        _validate.whole("stored.turn_bits", stored.turn_bits, at_least=_TABLE_BITS, at_most=50)
        if stored.values.shape != shape or stored.values.dtype != np.int64:
            given = f"{stored.values.dtype} of shape {stored.values.shape}"
            _validate.reject("stored.values", given, f"int64 of shape {shape}")
        # One addition rounds an angle to the table's grid only below this (`fill`).
        limit = min(_LARGEST_PROJECTION, 2.0 ** (51 - _TABLE_BITS + stored.turn_bits))
        if np.max(_lengths(stored.values)) * self.key_radius > limit:
            _validate.reject("stored.values", "...", "short enough for exact projections")
        stored_as = np.iinfo(_STORED)
        if stored.values.min() < stored_as.min or stored.values.max() > stored_as.max:
            _validate.reject("stored.values", "...", "within 32 bits, as files keep them")

    @cached_property
    def features(self) -> int:
        """A cosine and a sine for each frequency."""
        return 2 * self.frequencies

    @property
    def error(self) -> float:
        """1/√(2·frequencies), an upper bound on the standard deviation over the frequencies."""
        return random_error(self.frequencies)

    @property
    def weight_error(self) -> float:
        """The same: it is random, and another for each row."""
        return self.error

    @property
    def blocks(self) -> int:
        """Frequencies are draws: blocks of them are as many small kernels of their own."""
        return -(-self.frequencies // self._block)

    @property
    def _block(self) -> int:
        """How many frequencies a block has; the last may have fewer."""
        return -(-self.frequencies // _MOST_BLOCKS)

    @property
    def query_exponent(self) -> float:
        """Cosines and sines leave e^(‖y‖²/2) out, and ‖y‖² is t for the longest query."""
        return self.largest_logit / 2

    @property
    def operations(self) -> int:
        """A projection on each frequency for each feature."""
        return 2 * self.features * self.dim

    @classmethod
    def named(cls, wanted: Wanted) -> Self:
        """Return the fewest frequencies whose error the noise hides, or the most allowed.

        The usual number of them if nobody knows what the noise hides, or twice, four times, ...

        Args:
            wanted: public numbers: width, bounds, and which error is good enough.
        """
        allowed = doublings(wanted.features)
        enough = (m for m in allowed if random_error(m) <= (wanted.weight_error or math.inf))
        return cls(wanted.dim, frequencies=next(enough, allowed[-1]), **wanted.bounds)

    @classmethod
    def offered(cls, wanted: Wanted) -> Self:
        """Return the same: the last resort, whatever the logits are.

        Args:
            wanted: public numbers: width, bounds, and which error is good enough.
        """
        return cls.named(wanted)

    def why_offered(self, eps_s: float) -> str:
        """Return that there is nothing better.

        Args:
            eps_s: the relative error of a weight that was asked for.
        """
        return (
            f"no polynomial with few enough features reaches eps_s = {eps_s:g} for "
            f"logits up to {self.largest_logit:.3g} in {self.dim} dimensions"
        )

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the kernel with the frequencies that were stored.

        Args:
            parameters: the numbers of `parameters`, but for the kind.
            arrays: those of `arrays`.
        """
        given = dict(parameters)
        values = arrays["frequencies"].astype(np.int64)
        return cls(stored=IntegerFrequencies(values, given.pop("turn_bits")), **given)

    @property
    def error_meaning(self) -> str:
        """A standard deviation, in units of the largest weight."""
        return "standard deviation of one row's weight, in units of exp(scale*key_norm*query_norm)"

    @cached_property
    def bound(self) -> float:
        """e^(t/2), exactly the norm at the edge of the ball."""
        return math.exp(self.largest_logit / 2)

    @cached_property
    def unit(self) -> float:
        """Integer units to one: the table's amplitude, with √frequencies and e^(t/2) taken out."""
        return self._amplitude * math.sqrt(self.frequencies) / self.bound

    @cached_property
    def _amplitude(self) -> int:
        """Rounding adds at most √½ to the length of (cos, sin), so one is enough to leave free."""
        return math.isqrt(FEATURE_RADIUS**2 // self.frequencies) - 1

    @cached_property
    def entry_bound(self) -> int:
        """The amplitude of the table."""
        return self._amplitude + 1

    @cached_property
    def integer_frequencies(self) -> IntegerFrequencies:
        """The frequencies that are used: as fine as exact projections allow."""
        if self.stored is not None:
            return self.stored
        real = normal_frequencies(self.dim, self.frequencies, self.seed)
        # Turns for one lattice unit of a key along a frequency of length one.
        turns = self._key_factor * self.key_lattice.step / (2 * math.pi)
        reach = (float(np.max(_lengths(real))) + 1) * turns * self.key_radius
        turn_bits = min(math.floor(math.log2(_LARGEST_PROJECTION / reach)) - 1, 50)
        integers = np.rint(real * math.ldexp(turns, turn_bits)).astype(np.int64)
        return IntegerFrequencies(integers, turn_bits)

    @property
    def _turn_bits(self) -> int:
        return self.integer_frequencies.turn_bits

    @cached_property
    def _table(self) -> NDArray[np.complex128]:
        """The cosine and sine of each tabulated angle, cos² + sin² ≤ radius²/frequencies."""
        angles = np.arange(2**_TABLE_BITS) * (2 * math.pi / 2**_TABLE_BITS)
        table = np.empty(2**_TABLE_BITS, dtype=np.complex128)
        table.real = np.rint(self._amplitude * np.cos(angles))
        table.imag = np.rint(self._amplitude * np.sin(angles))
        table.flags.writeable = False
        return table

    def fill(self, integers: Integers, out: Floats) -> None:
        """Write the integer features of rounded keys.

        Args:
            integers: rounded keys, shape (n, d).
            out: where features are written, shape (n, r).
        """
        # Angles are computed in the second half of the result's own memory, and looked up from the
        # first row on: what is written never reaches an angle that is still needed.
        flat = out.reshape(-1)
        angles = flat[len(flat) // 2 :].reshape(len(integers), self.frequencies)
        # Exact in any order of summation: by Cauchy-Schwarz Σ|z·f| ≤ ‖z‖·‖f‖ ≤ 2^52.
        np.matmul(integers.astype(np.float64), self._float_frequencies, out=angles)
        pairs = out.view(np.complex128)
        # Adding this constant rounds an angle to the table's grid and leaves its index in the last
        # bits of the number; ties go to even.
        shift = 1.5 * 2.0 ** (52 + self._turn_bits - _TABLE_BITS)
        buffer = np.empty((_BLOCK, self.frequencies))
        for start in range(0, len(angles), _BLOCK):
            block = angles[start : start + _BLOCK]
            index = np.add(block, shift, out=buffer[: len(block)]).view(np.int64)
            index &= 2**_TABLE_BITS - 1
            np.take(self._table, index, mode="clip", out=pairs[start : start + _BLOCK])

    def _weights(self, integers: Integers) -> Floats | None:
        """Return e^((‖x‖² - t)/2), at most one."""
        squared = np.sum(integers * integers, axis=1) / self.key_radius**2
        exponents = np.minimum(squared - 1, 0.0) * (self.largest_logit / 2)
        # np.exp gives other last bits for other memory layouts, but the same at every position of
        # an array whose numbers lie side by side: `docs/privacy.md`, "Memory".
        return np.asarray(np.exp(np.ascontiguousarray(exponents)))

    @cached_property
    def _float_frequencies(self) -> Floats:
        return np.ascontiguousarray(self.integer_frequencies.values.T).astype(np.float64)

    @cached_property
    def _query_frequencies(self) -> Floats:
        """Radians for one unit of a query's coordinate, shape (d, frequencies)."""
        turn = self.key_norm / self.query_norm * 2 * math.pi
        return np.ldexp(self._float_frequencies, self.key_lattice.bits - self._turn_bits) * turn

    def reading(self, state: Floats) -> dict[str, NDArray[Any]]:
        """Return the frequencies, and the state's cosines and sines over √frequencies.

        With zeros for the frequencies that the last block has fewer than the others.

        Args:
            state: in real units, shape (heads, r, c).
        """
        root, missing = 1 / math.sqrt(self.frequencies), -self.frequencies % self._block
        cosines, sines = (
            np.pad(state[:, wave::2] * root, ((0, 0), (0, missing), (0, 0))) for wave in (0, 1)
        )
        frequencies = np.pad(self._query_frequencies, ((0, 0), (0, missing)))
        return {"frequencies": frequencies, "cosines": cosines, "sines": sines}

    def read(self, queries: Array, arrays: Mapping[str, Array]) -> Array:
        """Return φ(q)·S over e^(‖y‖²/2): (heads, m, d), clipped, to (heads, m, c).

        Args:
            queries: clipped, shape (heads, m, d).
            arrays: of `reading`, where and in which precision the queries are.
        """
        xp = namespace(queries)
        angles = queries @ arrays["frequencies"]
        return xp.cos(angles) @ arrays["cosines"] + xp.sin(angles) @ arrays["sines"]

    def read_blocks(self, queries: Array, arrays: Mapping[str, Array]) -> Array:
        """Return `read` of each block of frequencies alone: (heads, blocks, m, c).

        Args:
            queries: clipped, shape (heads, m, d).
            arrays: of `reading`, where and in which precision the queries are.
        """
        xp = namespace(queries)
        heads, count, _ = queries.shape
        angles = queries @ arrays["frequencies"]
        total = 0
        for wave, name in ((xp.cos, "cosines"), (xp.sin, "sines")):
            values = xp.reshape(wave(angles), (heads, count, self.blocks, self._block))
            state = arrays[name]
            by_block = xp.reshape(state, (heads, self.blocks, self._block, state.shape[-1]))
            total = total + xp.permute_dims(values, (0, 2, 1, 3)) @ by_block
        return total

    def reads_like(self, other: Kernel) -> bool:
        """Frequencies are in the arrays.

        Args:
            other: any kernel.
        """
        return isinstance(other, Fourier) and (other.dim, other.frequencies) == (
            self.dim,
            self.frequencies,
        )

    def at(self, *, scale: float, key_norm: float, query_norm: float) -> Self:
        """Return as many frequencies of the same seed for other bounds.

        Args:
            scale: logit = scale·⟨q, k⟩.
            key_norm: bound on ‖k‖₂.
            query_norm: bound on ‖q‖₂.
        """
        return replace(self, stored=None, scale=scale, key_norm=key_norm, query_norm=query_norm)

    def query_norms(self, queries: Array, squared: Array, arrays: Mapping[str, Array]) -> Array:  # noqa: ARG002
        """Return ‖φ(q)‖ = e^(‖y‖²/2), given squared lengths in units of query_norm.

        Args:
            queries: clipped, shape (heads, m, d).
            squared: their squared lengths in units of query_norm, shape (heads, m, 1).
            arrays: of `reading`, where and in which precision the queries are.
        """
        return namespace(squared).exp(squared * self.query_exponent)

    def describe(self) -> str:
        """Return the number of frequencies and the seed."""
        return (
            f"{self.frequencies:,} orthogonal random Fourier frequencies, public seed {self.seed} "
            f"({self.features:,} features)"
        )

    def parameters(self) -> dict[str, object]:
        """Return the numbers that make the same kernel again."""
        return {
            **super().parameters(),
            "frequencies": self.frequencies,
            "seed": self.seed,
            "turn_bits": self._turn_bits,
        }

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return the integer frequencies."""
        return {"frequencies": self.integer_frequencies.values.astype(_STORED)}


@dataclass(frozen=True)
class UnitFourier(SymmetricMap, Fourier):
    """Random Fourier features of length one: φ(x)·φ(y) ≈ e^(-scale·‖x - y‖²/2), smooth curves.

    The features of `Fourier` without the weights that make e^(scale·⟨x, y⟩) of them: every row has
    length one, whatever its own length is. Give `query_norm` the value of `key_norm`.

    Attributes:
        dim: number of coordinates d.
        scale: how fast φ(x)·φ(y) falls with the distance.
        key_norm: bound on ‖x‖₂; public, enforced by clipping.
        query_norm: the same, for queries.
        frequencies: how many; the error falls with their square root.
        seed: of the public frequencies.
        stored: frequencies that were made before (as a file keeps them); None to make them.
    """

    kind: ClassVar[str] = "waves"
    aliases: ClassVar[tuple[str, ...]] = ("unit_fourier",)

    @cached_property
    def unit(self) -> float:
        """Integer units to one: the table's amplitude, with √frequencies taken out."""
        return self._amplitude * math.sqrt(self.frequencies)

    def _weights(self, integers: Integers) -> Floats | None:  # noqa: ARG002
        """All are one."""
        return None

    def query_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the frequencies, in radians for one unit of a coordinate."""
        return {"frequencies": self._query_frequencies}

    def query_features(self, queries: Array, arrays: Mapping[str, Array]) -> Array:
        """Return φ(q): (heads, m, d), clipped, to (heads, m, 2·frequencies).

        Args:
            queries: clipped, shape (heads, m, d).
            arrays: of `query_arrays`, where and in which precision the queries are.
        """
        xp = namespace(queries)
        angles = queries @ arrays["frequencies"]
        pairs = xp.stack([xp.cos(angles), xp.sin(angles)], axis=-1)
        heads, count, _ = queries.shape
        return xp.reshape(pairs, (heads, count, self.features)) / math.sqrt(self.frequencies)

    def describe(self) -> str:
        """Return the number of frequencies, their scale and the seed."""
        return (
            f"{self.frequencies:,} random waves at scale {self.scale:.4g}, public seed {self.seed} "
            f"({self.features:,} features)"
        )


@lru_cache(maxsize=16)
def normal_frequencies(dim: int, count: int, seed: int) -> Floats:
    """Return `count` frequencies, shape (count, dim): each normal, orthogonal within a block.

    Rows of a normal matrix, made orthogonal in blocks of d (Yu et al., NeurIPS 2016), which lowers
    the variance of the kernel. Linear algebra libraries differ in the last bits, so everything that
    adds numbers up is done on integers, in any order with the same result.

    Args:
        dim: d.
        count: how many.
        seed: public; another gives others.

    Returns:
        The frequencies, read-only.
    """
    blocks, size = -(-count // dim), min(dim, count)
    drawn = public_normals(f"discreet frequencies {seed}", 2 * blocks * size * dim)
    # Rounded, so that a last bit of the quantile function does not matter.
    normal = np.rint(drawn * 2.0**20).reshape(2, blocks, size, dim)
    directions = _orthonormal(normal[0])
    squared = np.sum(normal[1].astype(np.int64) ** 2, axis=-1)
    lengths = np.sqrt(squared.astype(np.float64)) * 2.0 ** -(20 + _DIRECTION_BITS)
    rows: Floats = (directions * lengths[..., None]).reshape(-1, dim)[:count]
    rows.flags.writeable = False
    return rows


def public_normals(text: str, count: int) -> Floats:
    """Return so many normal numbers that anybody can draw again, shape (count,).

    A hash of the text is the same everywhere and for ever. (This is no noise: it hides nothing.)

    Args:
        text: what they are for.
        count: how many.

    Returns:
        The numbers.
    """
    return np.asarray(special.ndtri(public_uniforms(text, count)))


def public_uniforms(text: str, count: int) -> Floats:
    """Return so many numbers between 0 and 1 that anybody can draw again, shape (count,).

    Args:
        text: what they are for.
        count: how many.

    Returns:
        The numbers.
    """
    words = np.frombuffer(hashlib.shake_256(text.encode()).digest(8 * count), dtype="<u8")
    return np.asarray(((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52)


def _orthonormal(rows: Floats) -> Floats:
    """Return integer rows of length about 2^24, orthogonal within each block.

    Gram-Schmidt, twice for each row. Every product and sum is of integers that stay below 2^53.

    Args:
        rows: integers, shape (blocks, size, dim).
    """
    basis = np.zeros_like(rows)
    for index in range(rows.shape[1]):
        row = _normalised(rows[:, index])
        before = basis[:, :index]
        for _ in range(2):
            shares = np.rint(np.matmul(before, row[:, :, None]) * 2.0**-_DIRECTION_BITS)
            along = np.matmul(before.swapaxes(1, 2), shares)[:, :, 0]
            row = _normalised(np.rint(row - along * 2.0**-_DIRECTION_BITS))
        basis[:, index] = row
    return basis


def _normalised(rows: Floats) -> Floats:
    """Return integer rows of length about 2^24 in the same directions."""
    squared = np.sum(rows.astype(np.int64) ** 2, axis=1).astype(np.float64)
    factors = 2.0**_DIRECTION_BITS / np.sqrt(np.maximum(squared, 1.0))
    return np.asarray(np.rint(rows * factors[:, None]))


def random_error(frequencies: int) -> float:
    """Return the standard error of one weight, over the largest, with so many frequencies.

    Args:
        frequencies: how many.
    """
    return 1 / math.sqrt(2 * frequencies)


def doublings(features: int | None) -> list[int]:
    """Return the numbers of frequencies to choose from, if so many features are allowed.

    Args:
        features: the most that are allowed, two for each frequency; None for the usual limit.

    Returns:
        From the fewest to the most.
    """
    most = MOST_FREQUENCIES if features is None else max(features // 2, 1)
    below = [FREQUENCIES << double for double in range((most // FREQUENCIES).bit_length())]
    return sorted({*below, most})


def _lengths(rows: NDArray[Any]) -> Floats:
    """Return the L2 norm of each row."""
    return np.asarray(np.sqrt(np.sum(rows.astype(np.float64) ** 2, axis=1)))
