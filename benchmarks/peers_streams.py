"""Noise of releases that go on: a stream beside trees and others, drawn and computed; `peers.py`.

Each way adds noise to running totals, so that all of them together keep one promise for ever, with
as many steps as it was made for. Figures are over the noise of one single release.
"""

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import stream_noise
from sharing import tell

STEPS = (365, 4_096)
NUMBERS = 4_096
FREQUENCIES = NUMBERS // 4

Found = dict[str, Any]
Floats = np.ndarray


def independent(steps: int, numbers: int, rng: np.random.Generator) -> Floats:
    """Return the noise of totals of releases of one step each, shape (steps, numbers)."""
    return np.cumsum(rng.normal(size=(steps, numbers)), axis=0)


def tree(steps: int, numbers: int, rng: np.random.Generator, *, honaker: bool) -> Floats:
    """Return the noise of totals that are put together from nodes of a binary tree.

    A step is in one node of each level, so nodes have √levels times the noise of one release. Of
    each level the last whole node is kept. Honaker's nodes are averages of a node's own noise and
    the sum of its two halves, by their variances.
    """
    levels = steps.bit_length()
    kept = np.zeros((levels, numbers))
    spread = math.sqrt(levels)
    totals = np.zeros((steps, numbers))
    for step in range(1, steps + 1):
        node, variance = spread * rng.normal(size=numbers), 1.0
        height = 0
        while step >> height & 1 == 0:
            halves = kept[height] + node
            height += 1
            own = spread * rng.normal(size=numbers)
            # The halves together have twice the variance of one.
            share = 2 * variance / (1 + 2 * variance) if honaker else 1.0
            node = share * own + (1 - share) * halves
            variance = share
        kept[height] = node
        inside = [level for level in range(levels) if step >> level & 1]
        totals[step - 1] = kept[inside].sum(axis=0)
    return totals


def square_root(steps: int, numbers: int, rng: np.random.Generator) -> Floats:
    """Return noise that is correlated by the root of the matrix of prefix sums."""
    k = np.arange(1, steps)
    column = np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k))])
    places = np.subtract.outer(np.arange(steps), np.arange(steps))
    root = np.where(places >= 0, column[np.maximum(places, 0)], 0.0)
    return np.linalg.norm(column) * (root @ rng.normal(size=(steps, numbers)))


DRAWN: dict[str, Callable[[int, int, np.random.Generator], Floats]] = {
    stream_noise.INDEPENDENT: independent,
    stream_noise.TREE: lambda *given: tree(*given, honaker=False),
    stream_noise.HONAKER: lambda *given: tree(*given, honaker=True),
    stream_noise.SQUARE_ROOT: square_root,
}


def kept_arrays(steps: int) -> dict[str, int]:
    """Return how many arrays as large as a state have to be kept secret, whatever the way."""
    levels = steps.bit_length()
    strategy = stream_noise.chosen(
        stream_noise.Reading(), stream_noise.Participation(), steps=steps
    )
    return {
        stream_noise.INDEPENDENT: 0,
        stream_noise.TREE: levels,
        stream_noise.HONAKER: levels,
        stream_noise.THIS: len(strategy.dynamics()[1]),
        stream_noise.SQUARE_ROOT: steps,
    }


def measured(steps: int, frequencies: int = FREQUENCIES) -> Found:
    """Return noise, time and size of each way for so many steps."""
    computed, arrays = stream_noise.curves(steps), kept_arrays(steps)
    maker = stream_noise.Maker(frequencies)
    start = time.process_time()
    grown = maker.grown(steps, 0)
    seconds = {stream_noise.THIS: time.process_time() - start}
    last = {stream_noise.THIS: stream_noise.spread(grown) / maker.single()}
    for seed, (name, draw) in enumerate(DRAWN.items()):
        if name == stream_noise.SQUARE_ROOT and steps > STEPS[0]:
            continue  # it has to keep every draw there ever was
        start = time.process_time()
        totals = draw(steps, maker.numbers, np.random.default_rng(seed))
        seconds[name] = time.process_time() - start
        last[name] = float(np.sqrt(np.mean(totals[-1] ** 2)))
    tell(f"{steps:,} steps: a stream {last[stream_noise.THIS]:.3f} times one release")
    return {
        name: {
            "most": float(f"{curve.max():.4g}"),
            "mean": float(f"{curve.mean():.4g}"),
            "last": float(f"{curve[-1]:.4g}"),
            "arrays": arrays[name],
            "quieter": int(np.sum(curve < computed[stream_noise.THIS] * (1 - 1e-9))),
            **(
                {"drawn": float(f"{last[name]:.4g}"), "seconds": float(f"{seconds[name]:.3g}")}
                if name in last
                else {}
            ),
        }
        for name, curve in computed.items()
    }
