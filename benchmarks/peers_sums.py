"""Kernel density and attention at equal (ε, δ): a memory beside other mechanisms, for `peers.py`.

A row is added or removed, but where the paper's trees take part: these protect a replaced row and
are built for points of a square, so there everybody does the same.

Errors are those of many queries at once. *Density*: the mean absolute error of Σ K(q, k)/n.
*Attention*: the root mean square error of an answer, over that of the best constant answer, so that
1 says as little as no data.
"""

import time
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import peers_mechanisms as rivals
from peers_data import ATTENTION_SCALE, CASES, Places, Rows
from peers_mechanisms import ADD_REMOVE, REPLACE, Promise, Sums, Weights
from sharing import tell
from sklearn.cluster import KMeans

import discreet
from discreet.paper.attention import attention_needs
from discreet.testing import Seeded
from discreet_benchmarks.paper import attention as square

DELTA = 1e-6
DENSITY, ATTENTION, SQUARE = "density", "attention", "square"

MEMORY, PUBLIC, EXACTER = "memory", "memory, public rows", "memory, finer kernel"
FINER = 1e-3  # of the kernel, in place of the default 0.05
PROCESS, WAVES, GAUSSIAN_WAVES = "process", "waves, Laplace", "waves, Gaussian"
COUNTS, NOISY_ROWS, CONSTANT = "counts", "noisy rows", "constant"
QUESTIONS = (1, 100, 10_000)
TREES = {"trees, paper": square.PAPER, "trees, c": square.LARGEST, "trees, tight": square.TIGHT}

# What is tried for rivals.
TAUS = (0.05, 0.1, 0.2, 0.4, 0.8)
POINTS = (16, 64, 256, 1_024)
ROW_WEIGHTS = (0.5, 2.0)
LEAST = (1.0, 3.0, 10.0, 30.0)
READ_SCALES = (0.01, 0.5, 1.0, 2.0)

Picked = dict[str, object]
Tried = Iterator[tuple[Picked, float]]
Found = dict[str, Any]


@dataclass(frozen=True)
class Effort:
    """How much work to do.

    Attributes:
        epsilons: budgets.
        draws: of noise, and of random features.
        pairs: the most random features that are tried, as a power of two.
        rows: the most private rows, for a quick look; None for all.
        square_rows: how many rows there are on the square.
    """

    epsilons: tuple[float, ...] = (0.25, 1.0, 4.0)
    draws: int = 2
    pairs: int = 14
    rows: int | None = None
    square_rows: tuple[int, ...] = (2**14, 2**16)


QUICK = Effort(epsilons=(1.0,), draws=1, pairs=7, rows=600, square_rows=(256,))


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows, queries, and what is asked of them.

    Attributes:
        keys: shape (n, d).
        one_hot: classes of rows, shape (n, classes); no columns if only the density is asked.
        meaning: what a class stands for, shape (classes, c): values are one_hot @ meaning.
        length: no value is longer.
        queries: shape (m, d).
        weights: K.
        neighbours: "add_remove" or "replace".
        points: public rows; None if there are none.
        radius: no key is longer.
        middle: what keys are around: a public point.
        on_sphere: whether all keys have the length of the radius.
    """

    keys: np.ndarray
    one_hot: np.ndarray
    meaning: np.ndarray
    length: float
    queries: np.ndarray
    weights: Weights
    neighbours: str = ADD_REMOVE
    points: np.ndarray | None = None
    radius: float = 1.0
    middle: float = 0.0
    on_sphere: bool = True

    @property
    def is_density(self) -> bool:
        """Whether there are no values."""
        return self.meaning.shape[1] == 0

    @cached_property
    def values(self) -> np.ndarray:
        """Shape (n, c)."""
        return self.one_hot @ self.meaning

    @cached_property
    def exact(self) -> Sums:
        """The truth."""
        return rivals.exact(self.queries, self.keys, self.values, self.weights)

    @cached_property
    def truth(self) -> np.ndarray:
        """Exact attention."""
        return self.exact.attention(self.length)

    @property
    def taus(self) -> tuple[float, ...]:
        """Weights of the denominator that are tried."""
        return (1.0,) if self.is_density else TAUS

    def promise(self, epsilon: float) -> Promise:
        """Return what everybody promises."""
        return Promise(epsilon, DELTA, self.neighbours)

    def off(self, sums: Sums) -> float:
        """Return the error of noisy sums, after what can be had for nothing.

        Rivals are told the smallest denominator of all queries, and which of some factors of it
        serves them best: nobody could know either.
        """
        if self.is_density:
            found = np.clip(sums.denominator, 0, len(self.keys))
            return float(np.mean(np.abs(found - self.exact.denominator)) / len(self.keys))
        # Larger denominators draw answers to zero, which is nearly the best constant.
        least = float(self.exact.denominator.min())
        return min(
            self.off_answers(sums.attention(self.length, factor * least)) for factor in LEAST
        )

    def off_answers(self, answers: np.ndarray) -> float:
        """Return the error of answers, over that of the best constant."""
        spread = np.sqrt(np.mean((self.truth - self.truth.mean(axis=0)) ** 2))
        return float(np.sqrt(np.mean((answers - self.truth) ** 2)) / spread)

    def constant(self) -> float:
        """Return the error of the best answer that is the same for all queries."""
        if not self.is_density:
            return 1.0
        density = self.exact.denominator / len(self.keys)
        return float(np.mean(np.abs(density - np.median(density))))


def problem_of(rows: Rows, task: str) -> Problem:
    """Return what is asked of rows."""
    if task == DENSITY:
        scale, one_hot, meaning = rows.density_scale(), np.zeros((len(rows.keys), 0)), (0, 0)
        given = Problem(
            rows.keys, one_hot, np.zeros(meaning), 0.0, rows.queries, Weights(scale, scale)
        )
    else:
        weights = Weights(ATTENTION_SCALE, ATTENTION_SCALE)
        meaning = np.eye(rows.classes) - 1 / rows.classes
        given = Problem(rows.keys, rows.one_hot, meaning, rows.value_norm, rows.queries, weights)
    return replace(given, points=rows.public)


def on_the_square(count: int) -> tuple[square.Setting, Problem]:
    """Return the paper's own task: attention near two corners of a square."""
    setting = square.Setting(rows=count, delta=DELTA / 2, delta_prime=DELTA / 2)
    task = square.task_of(setting)
    one_hot = np.hstack([task.values < 0, task.values > 0]).astype(np.float64)
    scale, side = 1 / setting.dim, np.linspace(0, 1, 33)[:-1] + 1 / 64
    grid = np.stack([each.ravel() for each in np.meshgrid(side, side)], axis=1)
    return setting, Problem(
        task.keys,
        one_hot,
        np.array([[-1.0], [1.0]]),
        1.0,
        task.queries,
        Weights(scale, setting.upper**2),
        neighbours=REPLACE,
        points=grid,
        radius=float(np.sqrt(setting.dim) / 2),
        middle=0.5,
        on_sphere=False,
    )


# --- rivals ---------------------------------------------------------------------------------------


def of_noise(problem: Problem, noise: np.ndarray, spread: Callable[[float], float]) -> Tried:
    """Return errors of exact sums with noise whose deviation depends on τ."""
    for tau in problem.taus:
        yield {"tau": tau}, problem.off(problem.exact.noisy(spread(tau) * noise, tau))


def of_questions(problem: Problem, epsilon: float, count: int, seed: int) -> Tried:
    """Return errors of the Gaussian mechanism for each of so many questions.

    No question is further from all keys than another where keys are on a sphere; elsewhere each
    has the noise that it needs by itself.
    """
    shape = len(problem.queries), problem.meaning.shape[1] + 1
    noise = np.random.default_rng(seed).normal(size=shape) * reach(problem)[:, None]
    promise = problem.promise(epsilon)
    return of_noise(
        problem,
        noise,
        lambda tau: rivals.question_spread(promise, count, tau, problem.length),
    )


def reach(problem: Problem) -> np.ndarray:
    """Return the largest weight that any key can have for each query."""
    if problem.on_sphere:
        return np.ones(len(problem.queries))
    corner = np.ones((1, problem.queries.shape[1])) * 2 * problem.middle
    return problem.weights.of(problem.queries, corner)[:, 0]


def of_process(problem: Problem, epsilon: float, seed: int) -> Tried:
    """Return errors of the Gaussian process."""
    columns = problem.meaning.shape[1] + 1
    noise = rivals.process(problem.queries, columns, problem.weights, seed)
    promise = problem.promise(epsilon)
    return of_noise(
        problem, noise, lambda tau: promise.sigma * promise.of_function(tau, problem.length)
    )


def of_waves(
    problem: Problem, epsilons: Sequence[float], pairs: int, seed: int
) -> Iterator[tuple[str, float, Picked, float]]:
    """Return errors of random features, with Laplace noise and with Gaussian noise, at each ε."""
    count = 2**pairs
    waves = rivals.Waves.of(
        problem.keys, problem.one_hot, problem.weights, features=count, seed=seed
    )
    mapped = waves.mapped(problem.queries)
    draws = {
        WAVES: rivals.laplace(waves.sums.shape, seed),
        GAUSSIAN_WAVES: np.random.default_rng(seed).normal(
            size=(2, count, problem.meaning.shape[1] + 1)
        ),
    }
    for power in range(4, pairs + 1):
        features = 2**power
        found = rivals.read_waves(mapped, waves.sums, features)
        signal = Sums(found[:, :-1], found[:, -1])
        noise = {name: rivals.read_waves(mapped, each, features) for name, each in draws.items()}
        for epsilon in epsilons:
            for tau in problem.taus:
                spreads = _of_waves(problem, problem.promise(epsilon), features, tau)
                one_hot = signal.noisy(spreads[WAVES] * noise[WAVES], tau)
                ways = {
                    WAVES: _meant(one_hot, problem),
                    GAUSSIAN_WAVES: _meant(signal, problem).noisy(
                        spreads[GAUSSIAN_WAVES] * noise[GAUSSIAN_WAVES], tau
                    ),
                }
                for name, sums in ways.items():
                    yield name, epsilon, {"pairs": features, "tau": tau}, problem.off(sums)


def _of_waves(problem: Problem, promise: Promise, pairs: int, tau: float) -> dict[str, float]:
    """Return how much noise sums of features have. One-hot classes have L1 length one."""
    alone = 0.0 if problem.is_density else 1.0
    return {
        WAVES: promise.of_waves(pairs, tau, alone) / promise.epsilon,
        GAUSSIAN_WAVES: promise.sigma * promise.of_waves_squared(pairs, tau, problem.length),
    }


def _meant(sums: Sums, problem: Problem) -> Sums:
    """Return sums of values from those of classes."""
    return Sums(sums.numerator @ problem.meaning, sums.denominator)


def centres(problem: Problem) -> list[np.ndarray]:
    """Return public points to count at: centres of public rows; of the square, coarser grids."""
    public = problem.points
    if not problem.on_sphere:
        sides = (4, 8, 16, 32)
        made = [np.linspace(0, 1, side + 1)[:-1] + 1 / (2 * side) for side in sides]
        return [np.stack([each.ravel() for each in np.meshgrid(m, m)], axis=1) for m in made]
    found = []
    for count in POINTS:
        if count <= len(public) // 2:
            fitted = KMeans(count, n_init=1, max_iter=20, random_state=0).fit(public)
            found.append(rivals.within(fitted.cluster_centers_, 1.0, on_sphere=True))
    return found


def of_counts(problem: Problem, epsilons: Sequence[float], draws: int) -> dict[float, Any]:
    """Return errors of counts at public points with Laplace noise, for each ε and draw."""
    tallied = np.ones((len(problem.keys), 1)) if problem.is_density else problem.one_hot
    found: dict[float, list[list[tuple[Picked, float]]]] = {
        epsilon: [[] for _ in range(draws)] for epsilon in epsilons
    }
    for points in centres(problem):
        exact = rivals.counts(problem.keys, tallied, points)
        for epsilon in epsilons:
            scale = problem.promise(epsilon).of_counts() / epsilon
            for draw in range(draws):
                noisy = exact + scale * rivals.laplace(exact.shape, seed_of("counts", draw))
                for name, kept in (("all", noisy), ("positive", np.maximum(noisy, 0))):
                    sums = rivals.read_counts(problem.queries, points, kept, problem.weights)
                    read = (
                        Sums(np.zeros((len(problem.queries), 0)), sums.denominator)
                        if problem.is_density
                        else _meant(sums, problem)
                    )
                    error = problem.off(read)
                    found[epsilon][draw].append(({"points": len(points), "kept": name}, error))
    return found


def of_noisy_rows(problem: Problem, epsilon: float, seed: int) -> Tried:
    """Return errors of noise on each row, read with every scale that is tried."""
    middle = problem.middle
    for weight in (1.0,) if problem.is_density else ROW_WEIGHTS:
        keys, values = rivals.noisy_rows(
            problem.keys - middle,
            problem.values,
            problem.promise(epsilon),
            weight=weight,
            length=problem.length,
            radius=problem.radius,
            seed=seed,
        )
        keys = middle + rivals.within(keys, problem.radius, on_sphere=problem.on_sphere)
        for factor in READ_SCALES:
            read = Weights(factor * problem.weights.scale, factor * problem.weights.largest)
            found = rivals.exact(problem.queries, keys, values, read)
            yield {"weight": weight, "read": factor}, problem.off(found)


# --- ours -----------------------------------------------------------------------------------------


def built(problem: Problem, epsilon: float, seed: int, **options: object) -> discreet.Memory:
    """Return a memory with its defaults. For densities all values are one."""
    values = np.ones((len(problem.keys), 1)) if problem.is_density else problem.values
    hint = int(float(f"{len(problem.keys):.1e}"))
    norm = 1.0 if problem.on_sphere else 2 * problem.radius
    bounds = {"key_norm": norm, "query_norm": norm}
    return discreet.build(
        problem.keys,
        values,
        epsilon=epsilon,
        delta=DELTA,
        neighbours=problem.neighbours,
        scale=problem.weights.scale,
        value_norm=1.0 if problem.is_density else problem.length,
        entropy=Seeded(seed),
        **{"rows_hint": hint, **bounds, **options},
    )


def off_memory(problem: Problem, memory: discreet.Memory) -> float:
    """Return the error of a memory's answers."""
    if not problem.is_density:
        return problem.off_answers(memory.attend(problem.queries))
    found = memory.sums(problem.queries)[0] * np.exp(-problem.weights.largest)
    return problem.off(Sums(found[:, :0], found[:, 0]))


def of_memory(problem: Problem, epsilon: float, seed: int, method: str) -> Tried:
    """Return the error of a memory: nothing is picked."""
    options = {PUBLIC: {"public_rows": problem.points}, EXACTER: {"eps_s": FINER}}
    memory = built(problem, epsilon, seed, **options.get(method, {}))
    kernel = {"kernel": memory.kernel.kind, "features": memory.kernel.features}
    yield kernel, off_memory(problem, memory)


def of_trees(setting: square.Setting, problem: Problem, name: str, seed: int) -> Tried:
    """Return the error of the paper's trees: nothing to pick."""
    structure = square.structure(
        setting, problem.keys, problem.values, Seeded(seed), **square.TREES[TREES[name]]
    )
    yield {"bytes": structure.nbytes}, problem.off_answers(structure.query(problem.queries))


# --- all of them ----------------------------------------------------------------------------------


def seed_of(*names: object) -> int:
    """Return a seed: the same for the same names."""
    return zlib.crc32(" ".join(map(str, names)).encode())


def best(drawn: Sequence[Sequence[tuple[Picked, float]]]) -> Found:
    """Return the errors of what is best on the mean over draws, and what that is."""
    errors = np.array([[error for _, error in tried] for tried in drawn])
    place = int(np.argmin(errors.mean(axis=0)))
    picked = drawn[0][place][0]
    return {"errors": [float(f"{each:.4g}") for each in errors[:, place]], "picked": picked}


def all_rivals(problem: Problem, effort: Effort, name: str) -> dict[float, dict[str, Found]]:
    """Return the errors of all mechanisms that need no trees, by ε and method."""
    found: dict[float, dict[str, Found]] = {}
    draws = range(effort.draws)
    waves: dict[tuple[str, float], list[list[tuple[Picked, float]]]] = {}
    for draw in draws:
        for method, epsilon, picked, error in of_waves(
            problem, effort.epsilons, effort.pairs, seed_of(name, WAVES, draw)
        ):
            drawn = waves.setdefault((method, epsilon), [[] for _ in draws])
            drawn[draw].append((picked, error))
    counted = of_counts(problem, effort.epsilons, effort.draws)
    for epsilon in effort.epsilons:
        one: dict[str, Callable[[int], Tried]] = {
            PROCESS: lambda seed, e=epsilon: of_process(problem, e, seed),
            NOISY_ROWS: lambda seed, e=epsilon: of_noisy_rows(problem, e, seed),
            **{
                f"{count} questions": lambda seed, e=epsilon, c=count: of_questions(
                    problem, e, c, seed
                )
                for count in QUESTIONS
            },
        }
        found[epsilon] = {
            **{
                method: best([list(call(seed_of(name, method, draw))) for draw in draws])
                for method, call in one.items()
            },
            **{method: best(waves[method, epsilon]) for method in (WAVES, GAUSSIAN_WAVES)},
            COUNTS: best(counted[epsilon]),
        }
    return found


def measured(name: str, task: str, effort: Effort, places: Places) -> Found:
    """Return the errors of all methods on rows of one kind, by ε."""
    start, rows = time.process_time(), CASES[name](places)
    if effort.rows is not None:
        rows = replace(rows, keys=rows.keys[: effort.rows], one_hot=rows.one_hot[: effort.rows])
    problem = problem_of(rows, task)
    found = all_rivals(problem, effort, f"{name} {task}")
    for epsilon in effort.epsilons:
        for method in (MEMORY, PUBLIC):
            found[epsilon][method] = best(
                [
                    list(of_memory(problem, epsilon, seed_of(name, draw), method))
                    for draw in range(effort.draws)
                ]
            )
    tell(f"{name}, {task}: {time.process_time() - start:.0f} s of the processor")
    return {
        "rows": len(rows.keys),
        "dim": rows.keys.shape[1],
        "queries": len(rows.queries),
        "public": len(rows.public),
        "classes": rows.classes,
        "scale": problem.weights.scale,
        "mean": float(f"{problem.exact.denominator.mean() / len(rows.keys):.4g}"),
        CONSTANT: float(f"{problem.constant():.4g}"),
        "by_epsilon": {f"{epsilon:g}": each for epsilon, each in found.items()},
    }


def measured_square(count: int, effort: Effort) -> Found:
    """Return the errors of all methods on the paper's own task, by ε."""
    start = time.process_time()
    setting, problem = on_the_square(count)
    few = replace(effort, pairs=min(effort.pairs, 11))
    found = all_rivals(problem, few, f"{SQUARE} {count}")
    for epsilon in effort.epsilons:
        at = setting.changed(epsilon=epsilon)
        for name in TREES:
            drawn = [
                list(of_trees(at, problem, name, seed_of(name, draw)))
                for draw in range(effort.draws)
            ]
            found[epsilon][name] = best(drawn)
        for method in (MEMORY, EXACTER):
            drawn = [
                list(of_memory(problem, epsilon, seed_of(SQUARE, draw), method))
                for draw in range(effort.draws)
            ]
            found[epsilon][method] = best(drawn)
    tell(f"square, {count:,} rows: {time.process_time() - start:.0f} s of the processor")
    return {
        "rows": count,
        "dim": setting.dim,
        "queries": len(problem.queries),
        "scale": problem.weights.scale,
        CONSTANT: 1.0,
        "by_epsilon": {f"{epsilon:g}": each for epsilon, each in found.items()},
    }


def needs_of_trees() -> Found:
    """Return what the paper's trees would need for the rows of the other tables, at ε = 1.

    None where the net that they snap queries to is too large for any.
    """
    shapes = {"digits": (1_000, 64, 10), "clusters": (50_000, 16, 4), "texts": (20_000, 384, 10)}
    found: Found = {}
    for name, (rows, dim, columns) in shapes.items():
        try:
            needs = attention_needs(
                rows=rows,
                key_dim=dim,
                value_dim=columns,
                largest_logit=ATTENTION_SCALE,
                epsilon=1.0,
                delta=DELTA,
            )
        except discreet.InvalidInput:
            found[name] = None
        else:
            found[name] = {"bytes": needs.state_bytes, "rows": needs.rows}
    return found


def mean_of(cell: Mapping[str, Any]) -> float:
    """Return the mean error of a cell."""
    return float(np.mean(cell["errors"]))


def quiet() -> None:
    """Say nothing of seeds, and of answers that are mostly noise: both are meant."""
    warnings.simplefilter("ignore")
