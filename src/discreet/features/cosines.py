"""Cosine features of distances: ⟨φ(x), ψ(y)⟩ is about ‖x - y‖_p^p for points in a box.

On [-1, 1] the even function |t|^p is a series Σ_k c_k·cos(kπt), and
cos(kπ(t - s)) = cos(kπt)·cos(kπs) + sin(kπt)·sin(kπs). With √|c_k| on either side, rows and queries
have the same length √Σ|c_k| in each coordinate, wherever they are.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from discreet import _validate
from discreet._arrays import namespace
from discreet._typing import Array, Floats, Integers
from discreet.features.base import FEATURE_RADIUS, SHRINK, KeyFeatures, RowMap

# Points are rounded to 2^-16 of the width of the box: then angles kπt are exact places in a table.
_POINT_BITS = 16
_TURN = 2 ** (_POINT_BITS + 1)

# The series is found from so many values of |t|^p; what it leaves out is far below any noise.
_NODES = 2**16
MOST_TERMS, LEAST_TERMS = 2**14, 16

# A pair of numbers that are rounded moves by no more than this.
_PAIR_ROUNDING = math.sqrt(0.5)


@cache
def cosine_series(power: float) -> Floats:
    """Return c_0, c_1, ... of |t|^p = Σ c_k·cos(kπt) on [-1, 1], by a discrete cosine transform.

    Args:
        power: p, above 0.

    Returns:
        Read-only, shape (terms,).
    """
    from scipy import fft

    values = np.linspace(0.0, 1.0, _NODES + 1) ** power
    series = np.asarray(fft.dct(values, type=1)[:_NODES] / _NODES)
    series[0] /= 2
    series.flags.writeable = False
    return series


def left_out(power: float, terms: int) -> float:
    """Return how far |t|^p is from the first terms of its series, at the most.

    Args:
        power: p, above 0.
        terms: how many are kept.
    """
    return float(np.sum(np.abs(cosine_series(power)[terms:])))


@dataclass(frozen=True)
class Cosines(RowMap):
    """A constant, and cosines and sines of every coordinate of a point in a box.

    With widths b_j of the box and W = Σ_j b_j^p, φ(x) is √c_0 and, for each coordinate j and each
    k ≥ 1, √(b_j^p/W·|c_k|) times the cosine and the sine of kπ(x_j - low_j)/b_j. Every point has a
    φ of length √Σ|c_k|, which is one for p = 1.

    Attributes:
        low: lower end of each column; public.
        high: upper end of each column; points are clipped to both.
        power: p.
        terms: how many terms of the series are kept, the constant included.
        series: the first coefficients c_k, as they were computed when the map was made.
    """

    kind: ClassVar[str] = "cosines"
    argument: ClassVar[str] = "bounds"

    low: tuple[float, ...]
    high: tuple[float, ...]
    power: float
    terms: int
    series: Floats | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        power = _validate.real("p", self.power, above=0, at_most=16)
        terms = _validate.whole("terms", self.terms, at_least=LEAST_TERMS, at_most=MOST_TERMS)
        if len(self.low) != len(self.high) or not self.low:
            _validate.reject("bounds", "...", "two ends, with one number for each column")
        low, high = (
            tuple(_validate.real("bounds", each, at_least=-1e30, at_most=1e30) for each in ends)
            for ends in (self.low, self.high)
        )
        if not all(first < last for first, last in zip(low, high, strict=True)):
            _validate.reject(
                "bounds",
                "...",
                "(all lower ends, all upper ends), each lower end below its upper end",
            )
        own = cosine_series(power)[:terms]
        series = own if self.series is None else np.array(self.series)
        shaped = series.shape == (terms,) and series.dtype == np.float64
        if not shaped or not np.allclose(series, own, rtol=0, atol=1e-9):
            _validate.reject("series", "...", f"the first {terms} coefficients of |t|^p")
        series.flags.writeable = False
        self._set(low=low, high=high, power=power, terms=terms, series=series)
        _validate.real("bounds", float(np.min(self.widths)), at_least=1e-30)
        _validate.real("bounds", self.total_width, at_least=1e-100, at_most=1e100)

    @property
    def dim(self) -> int:  # type: ignore[override]
        """The number of columns."""
        return len(self.low)

    @cached_property
    def widths(self) -> Floats:
        """b_j: how wide the box is, shape (d,)."""
        return np.asarray(np.subtract(self.high, self.low), dtype=np.float64)

    @cached_property
    def total_width(self) -> float:
        """W = Σ_j b_j^p: no two points are further apart, to the power p."""
        try:
            return math.fsum(float(width) ** self.power for width in self.widths)
        except OverflowError:
            return math.inf

    @property
    def features(self) -> int:
        """A constant, and two numbers for each column and each other term."""
        return 1 + 2 * self.dim * (self.terms - 1)

    @cached_property
    def length(self) -> float:
        """The squared length of φ: Σ|c_k|."""
        return math.fsum(np.abs(self._series))

    @property
    def _series(self) -> Floats:
        if self.series is None:
            raise TypeError("Expected a series.")
        return self.series

    @cached_property
    def _amplitudes(self) -> Floats:
        """√(b_j^p/W·|c_k|) for k ≥ 1, shape (d, terms - 1)."""
        shares = np.sqrt(self.widths**self.power / self.total_width)
        return np.asarray(shares[:, None] * np.sqrt(np.abs(self._series[1:])))

    @cached_property
    def unit(self) -> float:
        """The largest s such that rounded features are within the radius.

        s²·c_0 + Σ (s·A + √½)² ≤ R² over all amplitudes A: rounding moves a cosine and its sine by
        √½ together, at the most.
        """
        pairs = self._amplitudes.size
        squares = math.fsum([float(self._series[0]), *np.square(self._amplitudes).flat])
        linear = 2 * _PAIR_ROUNDING * math.fsum(self._amplitudes.flat)
        rest = pairs * _PAIR_ROUNDING**2 - FEATURE_RADIUS**2
        root = math.sqrt(linear**2 - 4 * squares * rest)
        return (root - linear) / (2 * squares) * SHRINK

    @cached_property
    def constant(self) -> int:
        """The integer feature that all rows share: √c_0, cut."""
        return math.floor(self.unit * math.sqrt(float(self._series[0])))

    @cached_property
    def least_inner(self) -> int:
        """A lower bound on ⟨a, a'⟩ of two rows.

        It is about s²·Σ_j b_j^p/W·K(t_j - t'_j) with K(t) = Σ|c_k|·cos(kπt), whose least value on
        the grid of rounded points is known; and each row is off by its rounding.
        """
        spectrum = np.zeros(_TURN // 2 + 1)
        spectrum[: self.terms] = np.abs(self._series)
        from scipy import fft

        # Type one counts inner terms twice, and the ends once.
        spectrum[1:-1] /= 2
        least = float(np.min(fft.dct(spectrum, type=1)))
        off = math.sqrt(self._amplitudes.size * 0.5 + 1)
        slack = 2 * FEATURE_RADIUS * off + off**2 + 1
        inner = self.unit**2 * least
        return math.floor(inner - abs(inner) * 1e-9 - slack)

    @property
    def operations(self) -> int:
        """A look-up and a product for each feature."""
        return 4 * self.features

    def check_integers(self) -> None:
        """Raise `InvalidInput` unless rounding leaves something of the features."""
        if self._amplitudes.size * _PAIR_ROUNDING**2 >= FEATURE_RADIUS**2 / 4:
            _validate.reject("bounds", f"{self.dim} columns", "fewer, or fewer features")

    def key_features(self, keys: Floats, *, out: Floats | None = None) -> KeyFeatures:
        """Return the integer features of points of any finite size, shape (n, d).

        Args:
            keys: the points; clipped to the box.
            out: memory for at least n·r numbers, to be used again.

        Returns:
            The features; no row has a factor.
        """
        # Clipped first: no number of a row, however large, makes numpy say something about it.
        inside = np.clip(keys, self.low, self.high)
        scaled = np.rint((inside - self.low) * (2.0**_POINT_BITS / self.widths))
        integers = np.clip(scaled, 0.0, 2.0**_POINT_BITS).astype(np.int64)
        size = len(keys) * self.features
        features = (np.empty(size) if out is None else out[:size]).reshape(len(keys), -1)
        self.fill(integers, features)
        return KeyFeatures(features, None)

    def fill(self, integers: Integers, out: Floats) -> None:
        """Write the integer features of points in units of 2^-16 of the box.

        Args:
            integers: from 0 to 2^16, shape (n, d).
            out: shape (n, r).
        """
        cosines, sines = _tables()
        places = integers[:, :, None] * np.arange(1, self.terms) % _TURN
        scaled, pairs = self.unit * self._amplitudes, self._amplitudes.size
        out[:, 0] = self.constant
        for start, table in ((1, cosines), (1 + pairs, sines)):
            waves = np.take(table, places)
            waves *= scaled
            np.rint(waves.reshape(len(out), pairs), out=out[:, start : start + pairs])

    def query_arrays(self) -> dict[str, NDArray[Any]]:
        """Return what `query_features` needs: ends, frequencies, and amplitudes with their sign."""
        return {
            "low": np.asarray(self.low),
            "width": self.widths,
            "frequencies": np.arange(1, self.terms) * math.pi,
            "signed": np.sign(self._series[1:]) * self._amplitudes,
        }

    def query_features(self, queries: Array, arrays: Mapping[str, Array]) -> Array:
        """Return ψ(y), shape (heads, m, r): φ(y) with the signs of the series.

        Args:
            queries: shape (heads, m, d); clipped to the box.
            arrays: of `query_arrays`, where and in which precision the queries are.
        """
        xp = namespace(queries)
        relative = (queries - arrays["low"]) / arrays["width"]
        inside = xp.minimum(xp.maximum(relative, 0 * relative), 0 * relative + 1)
        angles = inside[..., None] * arrays["frequencies"]
        shape = (*queries.shape[:-1], self.dim * (self.terms - 1))
        # All rows have the same: what rounding took from it is given back.
        own = float(self._series[0]) * self.unit / self.constant
        constant = xp.full_like(queries[..., :1], own)
        waves = [xp.reshape(wave(angles) * arrays["signed"], shape) for wave in (xp.cos, xp.sin)]
        return xp.concat([constant, *waves], axis=-1)

    def describe(self) -> str:
        """Return how many terms and columns there are."""
        return (
            f"{self.terms:,} cosines of |t|^{self.power:g} in {self.dim:,} column(s) "
            f"({self.features:,} features)"
        )

    def parameters(self) -> dict[str, object]:
        """Return the numbers that, with the series, make the same map again."""
        return {
            "kind": self.kind,
            "low": list(self.low),
            "high": list(self.high),
            "power": self.power,
            "terms": self.terms,
        }

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return the series."""
        return {"series": self._series}

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the map that has these `parameters` (but for the kind) and `arrays`.

        Args:
            parameters: the numbers of `parameters`, but for the kind.
            arrays: those of `arrays`.
        """
        given = dict(parameters)
        low, high = tuple(given.pop("low")), tuple(given.pop("high"))
        return cls(low=low, high=high, series=arrays["series"], **given)


@cache
def _tables() -> tuple[Floats, Floats]:
    """Cosine and sine at each place of a turn."""
    angles = np.arange(_TURN) * (2 * math.pi / _TURN)
    tables = np.cos(angles), np.sin(angles)
    for table in tables:
        table.flags.writeable = False
    return tables
