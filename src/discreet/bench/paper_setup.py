"""What the experiments on the paper share: structures to measure, clocks, slopes, pictures."""

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from discreet import paper
from discreet.bench.points import spread
from discreet.noise import Entropy
from discreet.pictures import dress
from discreet.testing import Seeded, Silent

# One copy (p_f is that large), one column, ε so large that D is not noise: the law in n, ε, R_w and
# d is the same at every ε, because the noise is inversely proportional to it.
BASE: dict[str, Any] = {
    "upper": 1.0,
    "delta": 1e-6,
    "delta_prime": 1e-6,
    "c": 0.1,
    "eps_s": 0.1,
    "p_f": 0.6,
}
LARGE_EPSILON = 2000.0
QUERIES = 50

Builder = Callable[[Entropy | None], paper.DPCrossAttention]


@dataclass(frozen=True)
class Size:
    """How much work to do."""

    builds: int
    largest_power: int


def rows_and_weights(rows: int, dim: int, columns: int = 1) -> tuple[Any, Any]:
    """Return points in [0, 1]^dim and weights in ±1, one for each row and column."""
    both = spread(rows, dim + columns)
    return both[:, :dim], 2 * both[:, dim:] - 1


def attention(rows: int, *, dim: int = 2, bound: float = 1.0, **options: Any) -> Builder:  # noqa: ANN401
    """Return a builder of attention over evenly spread rows, given a source of noise."""
    keys, values = rows_and_weights(rows, dim)
    settings: dict[str, Any] = {
        "value_bound": bound,
        "epsilon": LARGE_EPSILON,
        "scope": "entry",
        **BASE,
        **options,
    }

    def build(entropy: Entropy | None) -> paper.DPCrossAttention:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return paper.DPCrossAttention(keys, bound * values, entropy=entropy, **settings)

    return build


def attention_error(builder: Builder, dim: int, builds: int) -> float:
    """Return the root mean square error of AV/D, neither clamped nor with kernel error."""
    queries = spread(QUERIES, dim, start=0.5)

    def output(entropy: Entropy) -> NDArray[np.float64]:
        numerator, denominator = builder(entropy).sums(queries)
        return np.asarray(numerator[:, 0] / denominator)

    truth = output(Silent())
    errors = [output(Seeded(seed)) - truth for seed in range(builds)]
    return math.sqrt(np.mean(np.square(errors)))


def slope(x: list[float] | list[int], y: list[float]) -> float:
    """Return the slope of a straight line through log y against log x."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def timed(work: Callable[[], object], repeats: int = 3) -> float:
    """Return the time of the quietest of some runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def panels(count: int, *, size: tuple[float, float]) -> tuple[Figure, list[Axes]]:
    """Return a figure, in inches, with some axes side by side."""
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    axes = list(figure.subplots(1, count, squeeze=False)[0])
    for axis in axes:
        dress(axis)
    return figure, axes


def style(
    axis: Axes, title: str, x: str, y: str, ticks: list[float] | list[int] | None = None
) -> None:
    """Label one picture; with ticks at the given values if there are few."""
    axis.set(title=title, xlabel=x, ylabel=y, xscale="log", yscale="log")
    if ticks is not None:
        axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.set_xticks([], minor=True)


def save(figure: Figure, path: Path) -> None:
    """Write one PNG, small enough to commit."""
    figure.savefig(path, dpi=80, metadata={"Software": None})
