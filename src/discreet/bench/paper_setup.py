"""What the experiments on the paper share: how much work to do, clocks and slopes."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from discreet._typing import Floats
from discreet.accounting import gaussian_sigma
from discreet.noise import RoundedGaussian
from discreet.testing import Seeded


@dataclass(frozen=True)
class Size:
    """How much work to do.

    Attributes:
        quick: whether to leave out what takes long.
        builds: of each structure, where the number is not by its size.
        draws: of noise for each method and point; at least one build is done.
        base_rows: n of the base setting.
        most_nodes: structures with more are computed and not built.
        largest_power: of the number of rows, where laws and times are measured.
        crossing_powers: of the number of rows, where the useful n is measured.
    """

    quick: bool
    builds: int
    draws: int
    base_rows: int
    most_nodes: int
    largest_power: int
    crossing_powers: tuple[int, ...]


FULL = Size(
    quick=False,
    builds=4,
    draws=12 * 10**6,
    base_rows=16384,
    most_nodes=7 * 10**6,
    largest_power=16,
    crossing_powers=(16, 17, 18),
)
QUICK = Size(
    quick=True,
    builds=2,
    draws=3 * 10**5,
    base_rows=1024,
    most_nodes=5 * 10**5,
    largest_power=13,
    crossing_powers=(12,),
)


def normals(shape: int | tuple[int, ...], seed: int) -> Floats:
    """Return standard normal numbers, the same for the same seed: for measurements, NOT PRIVATE.

    From the package's own law, so that randomness has one door.
    """
    steps = 2.0**30
    return RoundedGaussian(sigma=steps).sample(shape, entropy=Seeded(seed)) / steps


@cache
def sigma(epsilon: float, delta: float) -> float:
    """Return the Gaussian mechanism's σ for a change of one."""
    return gaussian_sigma(epsilon=epsilon, delta=delta)


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
