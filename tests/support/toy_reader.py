"""A reader that only tests know: means of values, by the bin of a row's first column."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from discreet.features.base import FEATURE_RADIUS, RowMap
from discreet.sums.forecast import Forecast, card_of, planned_shape
from discreet.sums.layout import ValueLayout, default_tau
from discreet.sums.mechanism import Mechanism, SharedOptions
from discreet.sums.release import Release
from discreet.sums.settings import Settings, Unit, crude_multiplier, value_resolution


@dataclass(frozen=True, kw_only=True)
class BinOptions(SharedOptions):
    edges: tuple[float, ...]  # public


@dataclass(frozen=True)
class Bins(RowMap):
    """φ is one at the bin of the first column, and zero elsewhere."""

    kind: ClassVar[str] = "bins"

    dim: int
    key_norm: float
    edges: tuple[float, ...]

    unit = float(FEATURE_RADIUS)
    operations = least_inner = 0  # rows of two bins have nothing in common

    @property
    def features(self):
        return len(self.edges) + 1

    def bins(self, column):
        return np.searchsorted(np.asarray(self.edges), column)

    def fill(self, integers, out):
        out[:] = 0
        out[np.arange(len(out)), self.bins(integers[:, 0] * self.key_lattice.step)] = FEATURE_RADIUS

    def describe(self):
        return f"{self.features} bins"

    def parameters(self):
        return {"dim": self.dim, "key_norm": self.key_norm, "edges": list(self.edges)}


@dataclass(frozen=True, kw_only=True)
class BinLayout(ValueLayout):
    noun: ClassVar[tuple[str, str]] = ("table", "tables")

    @classmethod
    def restore(cls, parameters, arrays):
        own = parameters["kernel"]
        kernel = Bins(own["dim"], own["key_norm"], tuple(own["edges"]))
        names = ("value_dim", "value_norm", "tau", "resolution")
        heads = tuple(parameters["heads"])
        return cls(kernel=kernel, heads=heads, **{name: parameters[name] for name in names})


class BinMeans(Release[BinLayout]):
    kind = "discreet-test-bins"
    layout = BinLayout

    @staticmethod
    def describe(released):
        return card_of(released, {}, [("bins", released.layout.kernel.describe())])

    def means(self, queries):
        """Return the mean of the values in the bin of each query, shape (m, d_v)."""
        layout = self.released.layout
        sums = self.released.state[0][:, layout.kernel.bins(queries[..., 0])].T * layout.real_unit
        rows = np.maximum(sums[:, -1:] / layout.real_tau, 1.0)
        return np.clip(sums[:, :-1] / rows, -layout.value_norm, layout.value_norm)


class BinMechanism(Mechanism[BinOptions, BinLayout, BinMeans]):
    name, options, answers = "bin_means", BinOptions, BinMeans

    def resolve(self, shapes, options, *, unit):
        [shape] = shapes
        multiplier = crude_multiplier(options.privacy, 1, options.group_rows)
        norm = options.number("value_norm", 0, 1)
        layout = BinLayout(
            kernel=Bins(shape.key_dim, options.number("key_norm", 0, 1), options.edges),
            heads=shape.heads,
            value_dim=shape.value_dim,
            value_norm=norm,
            tau=default_tau(norm, shape.value_dim),
            resolution=value_resolution(multiplier, rows_hint=options.rows_hint),
        )
        shared = {"group_rows": options.group_rows, "rows_hint": options.rows_hint}
        return Settings(layouts=(layout,), privacy=options.privacy, unit=unit, **shared)

    def forecast(self, *, rows, key_dim, value_dim, **given):
        rows, shape = planned_shape(rows=rows, key_dim=key_dim, value_dim=value_dim)
        whole = self.resolve([shape], BinOptions(rows_hint=rows, **given), unit=Unit.ROW)
        [layout] = whole.layouts
        noise = whole.sigma(layout) * layout.real_unit
        spent = {"epsilon": whole.privacy.epsilon, "delta": whole.privacy.delta}
        return BinPlan(rows=rows, noise=noise, **spent)


@dataclass(frozen=True, kw_only=True)
class BinPlan(Forecast):
    noise: float

    @property
    def verdict(self):
        return f"each bin's sum is off by {self.noise:.3g}"

    @property
    def lines(self):
        return []


BIN_MEANS = BinMechanism()
