"""How long a release and its answers take, and how large it is, for `peers.py`: all in one run.

Times are those of the processor for everything, on one thread but for what a library does itself,
over what exact attention takes for the same queries (numpy, double precision, rows as they are).
"""

import pathlib
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import peers_mechanisms as rivals
import peers_sums as sums
from peers_data import CASES, Places
from sharing import tell

from discreet.testing import Seeded

EXACT, ONE_QUESTION = "exact", "1 questions"
REPEATED = 3
EPSILON = 1.0

Found = dict[str, Any]


def least(call: Callable[[], object]) -> float:
    """Return the least processor seconds of some calls."""
    times = []
    for _ in range(REPEATED):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def once(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the processor seconds of one call, and what it returned."""
    start = time.process_time()
    made = call()
    return time.process_time() - start, made


def of_memory(problem: sums.Problem, method: str) -> Found:
    """Return the times of a memory and the size of its file."""
    options = {"public_rows": problem.points} if method == sums.PUBLIC else {}
    build, memory = once(lambda: sums.built(problem, EPSILON, 0, **options))
    first, _ = once(lambda: memory.attend(problem.queries))
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "memory.safetensors"
        memory.save(path)
        size = path.stat().st_size
    ask = least(lambda: memory.attend(problem.queries))
    return {"build": build, "first": first, "ask": ask, "bytes": size}


def of_waves(problem: sums.Problem, pairs: int) -> Found:
    """Return the times of so many pairs of random features with Laplace noise."""
    columns = problem.one_hot.shape[1] + 1

    def build() -> tuple[rivals.Waves, np.ndarray]:
        made = rivals.Waves.of(
            problem.keys, problem.one_hot, problem.weights, features=pairs, seed=0
        )
        return made, made.sums + rivals.laplace(made.sums.shape, 0)

    took, (waves, noisy) = once(build)
    ask = least(lambda: rivals.read_waves(waves.mapped(problem.queries), noisy, pairs))
    return {"build": took, "ask": ask, "bytes": 2 * pairs * columns * 8, "of": f"{pairs:,} pairs"}


def of_counts(problem: sums.Problem, count: int) -> Found:
    """Return the times of counts at so many points, which are public and found beforehand."""
    points = next(each for each in sums.centres(problem) if len(each) == count)
    build, found = once(lambda: rivals.counts(problem.keys, problem.one_hot, points))
    noisy = found + rivals.laplace(found.shape, 0)
    ask = least(
        lambda: rivals.read_counts(problem.queries, points, noisy, problem.weights).attention(1.0)
    )
    size = 8 * (points.size + found.size)
    return {"build": build, "ask": ask, "bytes": size, "of": f"{count:,} points"}


def measured(name: str, places: Places, picked: Mapping[str, Any]) -> Found:
    """Return times and sizes of all methods on rows of one kind.

    Args:
        name: of the rows.
        places: where files are.
        picked: what was best for rivals, by method.
    """
    problem = sums.problem_of(CASES[name](places), sums.ATTENTION)
    size = 8 * (problem.keys.size + problem.values.size)
    given = problem.queries, problem.keys, problem.values, problem.weights
    exact = least(lambda: rivals.exact(*given).attention(problem.length))
    seconds, noisy = once(lambda: _noisy_rows(problem))
    columns = problem.values.shape[1] + 1
    process = least(lambda: rivals.process(problem.queries, columns, problem.weights, 0))
    found: Found = {
        EXACT: {"build": 0.0, "ask": exact, "kept": size},
        ONE_QUESTION: {"build": 0.0, "ask": exact, "kept": size},
        sums.PROCESS: {"build": 0.0, "ask": exact + process, "kept": size},
        sums.NOISY_ROWS: {
            "build": seconds,
            "ask": least(lambda: rivals.exact(problem.queries, *noisy, problem.weights)),
            "bytes": size,
        },
        sums.WAVES: of_waves(problem, picked[sums.WAVES]["pairs"]),
        sums.COUNTS: of_counts(problem, picked[sums.COUNTS]["points"]),
        sums.MEMORY: of_memory(problem, sums.MEMORY),
        sums.PUBLIC: of_memory(problem, sums.PUBLIC),
    }
    return told(name, {"rows": len(problem.keys), "dim": problem.keys.shape[1]}, found, problem)


def _noisy_rows(problem: sums.Problem) -> tuple[np.ndarray, np.ndarray]:
    keys, values = rivals.noisy_rows(
        problem.keys,
        problem.values,
        problem.promise(EPSILON),
        weight=1.0,
        length=problem.length,
        radius=problem.radius,
        seed=0,
    )
    return rivals.within(keys, problem.radius, on_sphere=True), values


def measured_square(count: int) -> Found:
    """Return times and sizes of the paper's trees, and of a memory, on the paper's own task."""
    setting, problem = sums.on_the_square(count)
    given = problem.queries, problem.keys, problem.values, problem.weights
    exact = least(lambda: rivals.exact(*given).attention(problem.length))
    size = 8 * (problem.keys.size + problem.values.size)
    found: Found = {EXACT: {"build": 0.0, "ask": exact, "kept": size}}
    for method, name in sums.TREES.items():
        build, made = once(
            lambda name=name: sums.square.structure(
                setting, problem.keys, problem.values, Seeded(0), **sums.square.TREES[name]
            )
        )
        ask = least(lambda made=made: made.query(problem.queries))
        found[method] = {"build": build, "ask": ask, "bytes": made.nbytes}
    found[sums.MEMORY] = of_memory(problem, sums.MEMORY)
    return told(sums.SQUARE, {"rows": count, "dim": setting.dim}, found, problem)


def told(name: str, about: Found, found: Found, problem: sums.Problem) -> Found:
    """Return figures with three digits, and say that they are there."""
    methods = {
        method: {
            key: float(f"{each:.3g}") if isinstance(each, float) else each
            for key, each in cell.items()
        }
        for method, cell in found.items()
    }
    tell(f"speed, {name}: {len(methods)} methods")
    return {**about, "queries": len(problem.queries), "methods": methods}
