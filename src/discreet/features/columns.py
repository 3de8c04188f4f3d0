"""Features of the columns of a table: bins of numbers, corners for categories, waves over numbers.

An additive model that uses the whole sensitivity: each column says one thing of a row, and all
columns say it equally loud, so every row has about the same length, whatever is in it. A number
picks one of 16 rows of a fixed public table, a category a corner of a simplex, what is missing a
coordinate of its own. All of it is comparisons and look-ups of integers: a row has the same
features to the bit, wherever it stands.

Keys are not points in a ball here. The key of a row has one number for each column: the number
itself, the place of a category, or `MISSING`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from discreet import _validate
from discreet._arrays import namespace
from discreet._keys import LARGEST, MISSING
from discreet._typing import Array, Floats, Integers
from discreet.features.base import FEATURE_RADIUS, SHRINK, KeyFeatures, SymmetricMap
from discreet.features.fourier import UnitFourier, public_uniforms

# A row of this table for each of 16 bins, in units of 2^-16: the inner product of two rows is, but
# for 6e-4, half of a Gaussian kernel of width 0.3 and half of one of width 0.15 of the range, each
# centred in rows and columns and scaled to a diagonal of one. No row is longer than one. Shipped
# and not computed: eigenvectors differ in last bits between machines.
_TABLE: Integers = np.array(
    [
        (38_540, 35_226, 30_125, 19_657, 13_983, 6883, 4166, 3172, 2108),
        (48_010, 34_112, 26_410, 9050, 2683, -3769, -3120, 3326, -2144),
        (56_030, 26_952, 15_143, -5754, -8431, -8771, -3655, 2206, -569),
        (60_378, 12_691, -1492, -17_916, -11_609, -4582, 1262, 1657, 2240),
        (58_934, -7443, -17_396, -20_218, -4463, 3474, 4001, 2329, 1193),
        (50_322, -29_906, -25_631, -11_030, 6425, 6057, 670, 2925, -1587),
        (34_256, -49_657, -22_321, 3833, 11_090, 389, -3577, 2352, -1068),
        (12_204, -61_368, -8796, 14_806, 5360, -6632, -2392, 1369, 1725),
        (-12_204, -61_368, 8796, 14_806, -5360, -6632, 2392, 1369, 1725),
        (-34_256, -49_657, 22_321, 3833, -11_090, 389, 3577, 2352, -1068),
        (-50_322, -29_906, 25_631, -11_030, -6425, 6057, -670, 2925, -1587),
        (-58_934, -7443, 17_396, -20_218, 4463, 3474, -4001, 2329, 1193),
        (-60_378, 12_691, 1492, -17_916, 11_609, -4582, -1262, 1657, 2240),
        (-56_030, 26_952, -15_143, -5754, 8431, -8771, 3655, 2206, -569),
        (-48_010, 34_112, -26_410, 9050, -2683, -3769, 3120, 3326, -2144),
        (-38_540, 35_226, -30_125, 19_657, -13_983, 6883, -4166, 3172, 2108),
    ],
    dtype=np.int64,
)
_TABLE.flags.writeable = False
BINS, _WIDTH = int(_TABLE.shape[0]), int(_TABLE.shape[1])

# Which of the 15 steps between bins a bin is above.
_ABOVE = np.where(np.arange(BINS)[:, None] > np.arange(BINS - 1), 1, -1)

# Of the squared length of a row: what the constant has. Columns share the rest evenly.
_CONSTANT = 0.05

# Of a number's squared length: what the waves have, if there are any.
_OF_WAVES = 0.5

# How fast waves fall with the number of steps that two rows are apart.
_WAVES_SCALE = 5.0

_FOUND = ", found with a share of the budget"

# No bin is taken to be quite empty.
_LEAST_SHARE = 1e-9

# So many categories of one column are kept, if they have to be found.
MOST_FOUND = 64


@dataclass(frozen=True)
class Bins:
    """A column of numbers, cut into bins.

    Attributes:
        edges: rising, at most 15; a number is in the bin after all edges that it is not below.
        found: whether they were found with a share of the budget.
    """

    kind: ClassVar[str] = "bins"

    edges: tuple[float, ...]
    found: bool = False

    def __post_init__(self) -> None:
        edges = tuple(_validate.real("edges", each) for each in self.edges)
        rising = all(low < high for low, high in pairwise(edges))
        if len(edges) >= BINS or not rising or any(abs(each) > LARGEST for each in edges):
            _validate.reject("edges", "...", f"rising numbers, fewer than {BINS}")
        object.__setattr__(self, "edges", edges)

    @classmethod
    def between(cls, low: float, high: float, *, skewed: bool) -> "Bins":
        """Return 16 bins for numbers from low to high.

        Args:
            low: public.
            high: public, above `low`.
            skewed: whether bins are equally wide in the root of the distance from `low`: for
                amounts and counts, most of which are small. Else they are equally wide.
        """
        steps = np.arange(1, BINS) / BINS
        edges = low + (high - low) * (steps * steps if skewed else steps)
        # Ranges that are narrower than float64 can cut have fewer bins.
        return cls(tuple(np.unique(edges).tolist()))

    @property
    def width(self) -> int:
        """The number of features."""
        return _WIDTH

    @property
    def rows(self) -> Integers:
        """Which row of the table each bin has: fewer bins are spread over all of it."""
        count = len(self.edges) + 1
        return np.asarray((2 * np.arange(count) + 1) * BINS // (2 * count))

    def to_list(self) -> list[object]:
        """Return it as JSON knows it."""
        return [self.kind, list(self.edges), self.found]

    def describe(self) -> str:
        """Return where the bins are, in a phrase."""
        if not self.edges:
            return "numbers in one bin"
        ends = f"edges from {self.edges[0]:.4g} to {self.edges[-1]:.4g}"
        return f"numbers in {len(self.edges) + 1} bins, {ends}{_FOUND * self.found}"


@dataclass(frozen=True)
class Categories:
    """A column of categories, each known by a place.

    Attributes:
        places: rising whole numbers, one for each category; other keys are unknown, and say
            nothing.
        found: whether they were found with a share of the budget.
    """

    kind: ClassVar[str] = "categories"

    places: tuple[int, ...]
    found: bool = False

    def __post_init__(self) -> None:
        places = tuple(
            _validate.whole("places", each, at_least=0, at_most=2**24) for each in self.places
        )
        if any(first >= last for first, last in pairwise(places)):
            _validate.reject("places", "...", "rising whole numbers")
        object.__setattr__(self, "places", places)

    @property
    def width(self) -> int:
        """The number of features."""
        return len(self.places)

    def to_list(self) -> list[object]:
        """Return it as JSON knows it."""
        return [self.kind, list(self.places), self.found]

    def describe(self) -> str:
        """Return how many there are, in a phrase."""
        return f"{len(self.places):,} categories{_FOUND * self.found}"


@dataclass(frozen=True)
class Unknown:
    """A column whose edges or categories have to be found, with a share of the budget.

    Attributes:
        numbers: whether it holds numbers; else categories.
    """

    kind: ClassVar[str] = "unknown"

    numbers: bool

    @property
    def width(self) -> int:
        """The number of features, at the most."""
        return _WIDTH if self.numbers else MOST_FOUND

    def to_list(self) -> list[object]:
        """Return it as JSON knows it."""
        return [self.kind, self.numbers]

    def describe(self) -> str:
        """Return that nothing is known, in a phrase."""
        return "to be found"


Column = Bins | Categories | Unknown
_KINDS = (Bins, Categories, Unknown)


@dataclass(frozen=True)
class TableColumns(SymmetricMap):
    """A constant; for each number a row of a fixed table, for each category a corner; waves.

    With p columns, the constant has 0.05 of the squared length of φ, and each column 0.95/p. A
    category c of L is (e_c - 1/L) at that length, and one that is not on the list is zero. Waves
    take half of what numbers have: random Fourier features of the steps that numbers are above.

    Attributes:
        columns: what each column is.
        fourier: waves over the numbers, if any (`waves_over`).
    """

    kind: ClassVar[str] = "columns"
    key_norm: ClassVar[float] = 1.0  # type: ignore[misc]  # no bound: keys are looked up

    columns: tuple[Column, ...]
    _: KW_ONLY
    fourier: UnitFourier | None = None

    def __post_init__(self) -> None:
        columns = tuple(self.columns)
        self._set(columns=columns)
        # A subclass may have rows that no proof covers.
        if not columns or any(type(each) not in _KINDS for each in columns):
            _validate.reject("columns", "...", "at least one of Bins, Categories and Unknown")
        if self.fourier is None:
            return
        if type(self.fourier) is not UnitFourier or self.fourier.dim != len(self._numeric) * (
            BINS - 1
        ):
            _validate.reject("fourier", "...", "waves over the numbers of these columns")

    def with_waves(self, frequencies: int) -> Self:
        """Return the map with random Fourier features over its numbers.

        Args:
            frequencies: how many.
        """
        dim = len(self._numeric) * (BINS - 1)
        waves = UnitFourier(
            dim, frequencies=frequencies, scale=_WAVES_SCALE, key_norm=1.0, query_norm=1.0
        )
        return replace(self, fourier=waves)

    def with_found(self, columns: Sequence[Column]) -> Self:
        """Return the map with columns in the place of those that are unknown.

        Args:
            columns: all of them.
        """
        return replace(self, columns=tuple(columns))

    @property
    def dim(self) -> int:  # type: ignore[override]
        """The number of columns p."""
        return len(self.columns)

    @cached_property
    def known(self) -> bool:
        """Whether nothing has to be found any more."""
        return not any(isinstance(each, Unknown) for each in self.columns)

    @cached_property
    def _numeric(self) -> Integers:
        """Which columns hold numbers."""
        return self._places(lambda each: isinstance(each, Bins) or getattr(each, "numbers", False))

    @cached_property
    def _categorical(self) -> Integers:
        """Which columns hold categories."""
        return self._places(
            lambda each: isinstance(each, Categories) or not getattr(each, "numbers", True)
        )

    def _places(self, wanted: Any) -> Integers:  # noqa: ANN401
        return np.array([at for at, each in enumerate(self.columns) if wanted(each)], dtype=int)

    @property
    def numbers(self) -> int:
        """How many columns hold numbers."""
        return len(self._numeric)

    @property
    def block_sizes(self) -> tuple[int, ...]:
        """Columns, then waves."""
        waves = 0 if self.fourier is None else self.fourier.features
        return (self._additive, waves) if waves else (self._additive,)

    @property
    def _additive(self) -> int:
        """A constant, what columns have, and a feature for each that says it is missing."""
        return 1 + sum(each.width for each in self.columns) + self.dim

    @property
    def features(self) -> int:
        """Those of columns, and those of waves."""
        return sum(self.block_sizes)

    @property
    def operations(self) -> int:
        """A few for each feature, and those of the waves."""
        waves = 0 if self.fourier is None else self.fourier.operations
        return 6 * self._additive + waves

    @property
    def constant(self) -> float:
        """The first feature φ₀, which is the same for all rows."""
        return self._constant_units / FEATURE_RADIUS

    @cached_property
    def _constant_units(self) -> int:
        return math.floor(FEATURE_RADIUS * math.sqrt(_CONSTANT) * SHRINK)

    @cached_property
    def _column_units(self) -> float:
        """The length of a column's features, in units."""
        return FEATURE_RADIUS * math.sqrt((1 - _CONSTANT) / self.dim) * SHRINK

    @cached_property
    def _number_units(self) -> float:
        """The length that numbers have beside the waves."""
        return self._column_units * math.sqrt(1.0 if self.fourier is None else 1 - _OF_WAVES)

    @cached_property
    def _wave_factor(self) -> float:
        """What the waves' integer features are multiplied by."""
        if self.fourier is None:
            return 0.0
        # A pair of features is rounded by √½, so this is more than the length of all.
        longest = min(self.fourier.unit + math.sqrt(self.fourier.frequencies), FEATURE_RADIUS)
        length = self._column_units * math.sqrt(self.numbers * _OF_WAVES)
        return length / longest * SHRINK

    @cached_property
    def _step(self) -> int:
        """One step of the waves' keys, in units of their lattice: all of them are in the ball."""
        if self.fourier is None:
            return 0
        return math.isqrt(self.fourier.key_radius**2 // self.fourier.dim)

    @cached_property
    def _arrays(self) -> dict[str, NDArray[Any]]:
        """What rows and queries are looked up in: whole numbers, whatever their type."""
        if not self.known:
            raise ValueError("Expected columns whose edges and categories are known.")
        numeric = [each for each in self.columns if isinstance(each, Bins)]
        edges = np.full((len(numeric), BINS - 1), np.inf)
        rows = np.zeros((len(numeric), BINS), dtype=np.int64)
        for at, each in enumerate(numeric):
            edges[at, : len(each.edges)] = each.edges
            rows[at, : len(each.edges) + 1] = each.rows
        lists = [each.places for each in self.columns if isinstance(each, Categories)]
        sizes = np.array([len(each) for each in lists], dtype=int)
        of_feature = np.repeat(self._categorical, sizes)
        count = np.repeat(sizes, sizes).astype(np.float64)
        # (e_c - 1/L) at the length of a column: L - 1 in its own place, and -1 in the others.
        unit = self._column_units / np.sqrt(np.maximum(count * count - count, 1.0))
        missing = np.full(self.dim, self._column_units)
        missing[self._numeric] = self._number_units
        arrays = {
            "edges": edges,
            "rows": rows,
            "table": np.trunc(_TABLE * (self._number_units / FEATURE_RADIUS)),
            "above": _ABOVE * float(self._step),
            "column": of_feature,
            "place": np.array([each for places in lists for each in places], dtype=np.float64),
            "own": np.trunc(unit * (count - 1)),
            "other": np.where(count > 1, np.trunc(-unit), 0.0),
            "list": np.repeat(np.arange(len(lists)), sizes),
            "missing": np.trunc(missing),
        }
        for array in arrays.values():  # they are handed out for queries, too
            array.flags.writeable = False
        return arrays

    def key_features(self, keys: Floats, *, out: Floats | None = None) -> KeyFeatures:
        """Return the integer features of rows, shape (n, p).

        Args:
            keys: a number, a place or `MISSING` for each column; finite.
            out: memory for at least n·r numbers, to be used again.

        Returns:
            The features; no row has a factor.
        """
        size = len(keys) * self.features
        features = (np.empty(size) if out is None else out[:size]).reshape(len(keys), -1)
        keys = np.asarray(keys, dtype=np.float64)
        additive, steps = self._looked_up(keys, self._arrays)
        features[:, : self._additive] = additive
        if self.fourier is not None:
            self._fill_waves(steps, features[:, self._additive :])
        return KeyFeatures(features, None)

    def fill(self, integers: Integers, out: Floats) -> None:
        """Write the integer features of keys that are whole numbers.

        Args:
            integers: shape (n, p).
            out: shape (n, r).
        """
        out[...] = self.key_features(integers.astype(np.float64)).features

    def _fill_waves(self, steps: Floats, out: Floats) -> None:
        """Write the waves' integer features, shape (n, 2·frequencies)."""
        assert self.fourier is not None  # noqa: S101 (for the type checker)
        waves = np.empty(out.shape)
        self.fourier.fill(steps.astype(np.int64), waves)
        waves *= self._wave_factor
        np.trunc(waves, out=out)

    def _looked_up(self, keys: Array, arrays: Mapping[str, Array]) -> tuple[Array, Array]:
        """Return integer features (..., m, 1 + ...) without waves, and the steps for those.

        Args:
            keys: shape (..., m, p), of numpy or torch.
            arrays: of `_arrays`, where and in which precision the keys are.
        """
        xp = namespace(keys)
        gone = keys == MISSING
        lead = keys.shape[:-1]
        numbers = keys[..., self._numeric]
        bins = xp.sum(xp.astype(numbers[..., None] >= arrays["edges"], xp.int64), axis=-1)
        rows = arrays["rows"][np.arange(self.numbers), bins]
        there = xp.astype(~gone[..., self._numeric], keys.dtype)[..., None]
        table = xp.reshape(arrays["table"][rows] * there, (*lead, self.numbers * _WIDTH))
        steps = arrays["above"][rows] * there
        of_feature = keys[..., arrays["column"]]
        own = xp.astype(of_feature == arrays["place"], keys.dtype)
        # A category is on its column's list if it is one of them: the sum of its row is one.
        known = self._listed(own, arrays)
        corners = own * arrays["own"] + (known - own) * arrays["other"]
        missing = xp.astype(gone, keys.dtype) * arrays["missing"]
        constant = xp.full_like(keys[..., :1], float(self._constant_units))
        additive = xp.concat([constant, table, corners, missing], axis=-1)
        return additive, xp.reshape(steps, (*lead, self.numbers * (BINS - 1)))

    def _listed(self, own: Array, arrays: Mapping[str, Array]) -> Array:
        """Return for each category feature whether the row has any category of that list: 0, 1."""
        xp = namespace(own)
        if not len(self._categorical):
            return own
        totals = [xp.sum(own[..., start:stop], axis=-1) for start, stop in pairwise(self._starts)]
        return xp.stack(totals, axis=-1)[..., arrays["list"]]

    @cached_property
    def _starts(self) -> list[int]:
        """Where the features of each list of categories begin, and where the last ends."""
        widths = [self.columns[at].width for at in self._categorical]
        return [0, *np.cumsum(widths).tolist()]

    def query_arrays(self) -> dict[str, NDArray[Any]]:
        """Return what rows are looked up in, and the waves' frequencies."""
        waves = {} if self.fourier is None else self.fourier.query_arrays()
        return {**self._arrays, **waves}

    def query_features(self, queries: Array, arrays: Mapping[str, Array]) -> Array:
        """Return φ(q): (heads, m, p) to (heads, m, r).

        Args:
            queries: shape (heads, m, p).
            arrays: of `query_arrays`, where and in which precision the queries are.
        """
        additive, steps = self._looked_up(queries, arrays)
        features = additive / FEATURE_RADIUS
        if self.fourier is None:
            return features
        steps = steps * self.fourier.key_lattice.step
        shrunk = self._wave_factor * self.fourier.unit / FEATURE_RADIUS
        waves = self.fourier.query_features(steps, arrays) * shrunk
        return namespace(queries).concat([features, waves], axis=-1)

    def shares(self, means: Floats) -> list[Floats]:
        """Return for each column the shares of its bins or categories, and of what is missing.

        Those that explain the means of its features best. Post-processing of noisy means.

        Args:
            means: of φ over some rows, shape (r,).
        """
        from scipy.optimize import nnls  # loads slowly, and is needed for errors and shapes only

        found = []
        for at in range(self.dim):
            where, steps = self.column_rows(at)
            gone, height = self.missing_feature(at)
            wanted = np.concatenate([means[where], [means[gone], 1.0]])
            table = np.zeros((len(steps) + 1, len(wanted)))
            table[:-1, :-2], table[-1, -2], table[:, -1] = steps, height, 1.0
            fitted = nnls(table.T, wanted)[0] + _LEAST_SHARE
            found.append(np.asarray(fitted / fitted.sum()))
        return found

    def imagined(self, means: Floats, rows: int) -> Floats:
        """Return φ of made-up rows with such means of features, shape (rows, r). Public.

        Columns are independent of each other, with the `shares` that explain the means. Drawn from
        a hash that anybody can compute: no noise, and nothing private.

        Args:
            means: of φ over the rows to imagine, shape (r,).
            rows: how many to make up.
        """
        keys = np.empty((rows, self.dim))
        for at, (column, shares) in enumerate(zip(self.columns, self.shares(means), strict=True)):
            uniform = public_uniforms(f"discreet imagined rows {at}", rows)
            drawn = np.searchsorted(np.cumsum(shares)[:-1], uniform, side="right")
            keys[:, at] = np.append(_examples(column), MISSING)[drawn]
        return np.asarray(self.query_features(keys[None], self.query_arrays())[0])

    @property
    def query_bound(self) -> float:
        """None: queries are looked up."""
        return math.inf

    def within(self, queries: Array) -> Array:
        """Return queries as they are: there is no ball.

        Args:
            queries: finite, shape (heads, m, p).
        """
        return queries

    @property
    def bounds_text(self) -> str:
        """Rows need no bound."""
        return "numbers are cut into bins, categories looked up in a list: every row counts alike"

    def column_rows(self, at: int) -> tuple[slice, Floats]:
        """Return where the features of a column are, and φ of each of its bins or categories.

        Args:
            at: which column, from 0 on.

        Returns:
            A slice of the features, and an array of shape (bins or categories, its width).
        """
        column = self.columns[at]
        numeric = isinstance(column, Bins)
        order = self._numeric if numeric else self._categorical
        place = int(np.flatnonzero(order == at)[0])
        if numeric:
            start = 1 + place * _WIDTH
            table = self._arrays["table"][column.rows]  # type: ignore[union-attr]
            return slice(start, start + _WIDTH), np.asarray(table / FEATURE_RADIUS)
        first, last = self._starts[place : place + 2]
        own, other = (self._arrays[name][first:last] for name in ("own", "other"))
        corners = np.where(np.eye(last - first, dtype=bool), own, other)
        start = 1 + self.numbers * _WIDTH
        return slice(start + first, start + last), np.asarray(corners / FEATURE_RADIUS)

    def missing_feature(self, at: int) -> tuple[int, float]:
        """Return which feature says that a column is missing, and its φ.

        Args:
            at: which column, from 0 on.
        """
        return self._additive - self.dim + at, float(self._arrays["missing"][at] / FEATURE_RADIUS)

    def describe(self) -> str:
        """Return how many columns of each kind there are."""
        numbers, categories = self.numbers, len(self._categorical)
        parts = []
        if numbers:
            parts.append(f"{numbers:,} column(s) of numbers in {BINS} bins")
        if categories:
            total = self._starts[-1]
            parts.append(f"{categories:,} column(s) of {total:,} categories in all")
        if self.fourier is not None:
            parts.append(f"{self.fourier.frequencies:,} random waves over the numbers")
        return f"{', '.join(parts)} ({self.features:,} features)"

    def parameters(self) -> dict[str, object]:
        """Return the numbers that, with the arrays of the waves, make the map again."""
        return {
            "kind": self.kind,
            "columns": [each.to_list() for each in self.columns],
            "fourier": None if self.fourier is None else self.fourier.parameters(),
        }

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return those of the waves."""
        return {} if self.fourier is None else self.fourier.arrays()

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the map that has these `parameters` (but for the kind) and `arrays`.

        Args:
            parameters: the numbers of `parameters`, but for the kind.
            arrays: those of `arrays`.
        """
        waves = parameters["fourier"]
        if waves is not None:
            given = dict(waves)
            if given.pop("kind") != UnitFourier.kind:
                _validate.reject("kind", "...", "waves")
            waves = UnitFourier.restore(given, arrays)
        return cls(tuple(map(_column, parameters["columns"])), fourier=waves)


def _examples(column: Column) -> Floats:
    """Return a key in each bin, or of each category."""
    if isinstance(column, Bins):
        edges = np.asarray(column.edges)
        low = np.nextafter(edges[:1], -np.inf) if len(edges) else np.zeros(1)
        return np.concatenate([low, edges])
    return np.asarray(getattr(column, "places", ()), dtype=np.float64)


def _column(given: Any) -> Column:  # noqa: ANN401
    """Return the column that `to_list` described."""
    kind, value, found = given
    if kind not in {Bins.kind, Categories.kind} or not isinstance(value, list):
        _validate.reject("columns", "...", "bins or categories")
    made = Bins if kind == Bins.kind else Categories
    return made(tuple(value), found=bool(found))
