"""What `errors.py` measures: data, kernels, and cells of one of each at one ε."""

import itertools
import math
import pathlib
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from sharing import example, tell

import discreet
from discreet.kernels import Fourier, Kernel, Landmarks, Minimax
from discreet.readers.attention import comparison as oracle
from discreet.readers.attention.planning import Plan
from discreet.readers.attention.reader import WITHIN
from discreet.testing import Seeded, Silent

DELTA = 1e-6
QUERIES = 200
RANK = 512
FEW_FREQUENCIES = 1_024
CHECKED = (0.5, 1.0, 4.0)  # ε at which intervals are checked
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
LEAST, MOST = 0.91, 0.99  # intervals that hold as often as this are right

FOURIER, FEWER, MINIMAX, NYSTROM = "Fourier", "Fourier, 1,024", "Minimax", "Landmarks"
OWN, RANDOM, SHUFFLED = "the same source", "random points", "the same source, coordinates shuffled"
LABELS = {FOURIER: "Fourier, as planned", FEWER: FEWER, MINIMAX: MINIMAX, NYSTROM: NYSTROM}


@dataclass(frozen=True)
class Effort:
    """How much work to do.

    Attributes:
        builds: of a cell whose intervals are checked, at least.
        few: of the other ones.
        most_rows: larger data sets are left out.
        public_rows: of each source, or as many as there are.
    """

    builds: int
    few: int
    most_rows: int
    public_rows: int = 2_000

    def builds_of(self, count: int) -> int:
        """Return how many builds of so many rows: more of few, which take no time.

        All queries share a build's noise, so few builds know little about it.
        """
        return self.builds * max(1, min(4, 20_000 // count))


FULL = Effort(builds=8, few=4, most_rows=100_000)
QUICK = Effort(builds=1, few=1, most_rows=2_000, public_rows=600)


@dataclass(frozen=True, eq=False)
class Source:
    """Rows of one kind: first the queries, then public rows, then private ones."""

    name: str
    keys: np.ndarray
    values: np.ndarray
    value_norm: float
    public_rows: int
    counts: tuple[int, ...]

    @property
    def dim(self) -> int:
        """The width of keys."""
        return self.keys.shape[1]

    @property
    def queries(self) -> np.ndarray:
        """Rows that are not in the memory."""
        return self.keys[:QUERIES]

    def public(self, which: str) -> np.ndarray:
        """Return public rows: of the same source, or others that have nothing to do with it."""
        rows = self.keys[QUERIES : QUERIES + self.public_rows]
        if which == RANDOM:
            return unit(np.random.default_rng(3).normal(size=rows.shape))
        if which == SHUFFLED:
            return rows[:, np.random.default_rng(3).permutation(self.dim)]
        return rows

    def private(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return keys and values of a memory."""
        start = QUERIES + self.public_rows
        return self.keys[start : start + count], self.values[start : start + count]


@dataclass(frozen=True)
class Recipe:
    """A kernel but for its seed: frequencies, degree or rank, and where landmarks come from."""

    kind: str
    scale: float
    size: int
    public: str = OWN


@dataclass(frozen=True)
class Cell:
    """What was measured for one source, number of rows, kernel and ε.

    Attributes:
        within: the share of numbers within 1.96 standard errors of exact attention.
        within_stderr: its own standard error, from build to build.
        noise_within: the share within 1.96 standard errors of the noise alone.
        error: root mean square of private less exact.
        wide: the median standard error over it.
        spread: how much exact answers differ from query to query, root mean square.
    """

    source: Source
    rows: int
    recipe: Recipe
    epsilon: float | None
    within: float
    within_stderr: float
    noise_within: float
    error: float
    wide: float
    spread: float


# Cells at growing ε, by source, kernel and number of rows.
Curves = dict[tuple[str, str, int], list[Cell]]


@dataclass(frozen=True)
class Said:
    """What `plan` says of Fourier's kernel: 95% of numbers within so much of exact attention."""

    scale: float
    frequencies: int
    centred: float
    in_common: float
    with_public_rows: float


def unit(rows: np.ndarray) -> np.ndarray:
    """Return rows of length one."""
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def rms(numbers: np.ndarray) -> float:
    """Return the root mean square."""
    return math.sqrt(np.mean(np.square(numbers)))


def even(count: int, dim: int = 16, *, seed: int = 1) -> np.ndarray:
    """Return points of a sphere."""
    return unit(np.random.default_rng(seed).normal(size=(count, dim)))


def clusters(count: int, dim: int = 16, *, seed: int = 2) -> np.ndarray:
    """Return points around twelve centres, as tests/statistical/test_standard_errors.py does."""
    centres = unit(np.random.default_rng(seed).normal(size=(12, dim)))
    return unit(centres[np.arange(count) % 12] + 0.7 * even(count, dim, seed=seed - 1))


def sphere(name: str, keys: np.ndarray, counts: tuple[int, ...]) -> Source:
    """Return points with four signs as values; those that are left over are public."""
    public_rows = len(keys) - QUERIES - counts[-1]
    return Source(name, keys, np.sign(keys[:, :4]) / 2, 1.0, public_rows, counts)


def digits(counts: tuple[int, ...]) -> Source:
    """Return handwritten digits with their classes."""
    from sklearn.datasets import load_digits

    images, classes = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))
    keys, values = unit(images / 16 - 0.5)[order], (np.eye(10)[classes] - 0.1)[order]
    return Source("digits", keys, values, math.sqrt(0.9), len(keys) - QUERIES - 1_000, counts)


def sentences(
    cache_folder: pathlib.Path, counts: tuple[int, ...], *, public_rows: int, embed: bool
) -> Source | None:
    """Return sentences of reviews, good or bad; None if they are neither cached nor installed.

    The mean of public sentences is subtracted, as examples/private_text.py does.

    Args:
        cache_folder: where vectors are kept.
        counts: of private rows.
        public_rows: how many.
        embed: whether to embed what is not in the cache.
    """
    reviews = example("review_embeddings")
    cached = (cache_folder / f"rotten_tomatoes-{reviews.TOKENS}-tokens.npz").exists()
    if not cached and not embed:
        return None
    try:
        vectors, labels = reviews.embedded_reviews("rotten_tomatoes", 8_530, cache_folder)
    except SystemExit as missing:
        tell(str(missing))
        return None
    keys = unit(vectors - vectors[QUERIES : QUERIES + public_rows].mean(axis=0))
    return Source("sentences", keys, 2.0 * labels[:, None] - 1, 1.0, public_rows, counts)


def sources(effort: Effort, cache_folder: pathlib.Path) -> list[Source]:
    """Return the data, with as many rows as there are and as the effort allows."""

    def allowed(*counts: int) -> tuple[int, ...]:
        return tuple(count for count in counts if count <= effort.most_rows)

    counts = allowed(300, 2_000, 20_000, 100_000)
    total = QUERIES + effort.public_rows + counts[-1]
    found = [
        sphere("evenly spread", even(total), counts),
        sphere("12 clusters", clusters(total), counts),
        digits(allowed(300, 1_000)),
        sentences(
            cache_folder,
            allowed(300, 2_000, 6_000),
            public_rows=effort.public_rows,
            embed=effort is FULL,
        ),
    ]
    return [each for each in found if each is not None]


@cache
def said(source: Source, count: int, epsilon: float) -> Said:
    """Return what `plan` says of features that are read as they are.

    All that this page knows of its figures is here.
    """
    plan = plan_of(source, count, epsilon, kernel="fourier")
    informed = plan_of(
        source,
        count,
        epsilon,
        kernel="fourier",
        scale=plan.scale,
        features=plan.kernel.features,
        public_rows=source.public(OWN),
    )
    centred, known = (
        replace(each.prediction, spread=replace(each.prediction.spread, points=0))
        for each in (plan, informed)
    )
    centred, in_common, known = (
        min(WITHIN * each.stderr, source.value_norm)
        for each in (centred, centred.if_in_common(), known)
    )
    return Said(plan.scale, plan.kernel.frequencies, centred, in_common, known)


def plan_of(source: Source, count: int, epsilon: float, **options: object) -> Plan:
    """Return the plan of a memory."""
    return discreet.plan(
        rows=count,
        key_dim=source.dim,
        value_dim=source.values.shape[1],
        value_norm=source.value_norm,
        epsilon=epsilon,
        delta=DELTA,
        **options,
    )


@cache
def recipe(kind: str, source: Source, count: int, epsilon: float) -> Recipe:
    """Return a kernel at the recommended scale; Minimax at half of it, a quarter, and so on.

    As many times as it takes until a polynomial of at most 4,096 features is offered.
    """
    advice = said(source, count, epsilon)
    sizes = {FOURIER: advice.frequencies, FEWER: FEW_FREQUENCIES, NYSTROM: RANK}
    if kind in sizes:
        return Recipe(kind, advice.scale, sizes[kind])
    for halvings in itertools.count():
        scale = advice.scale / 2**halvings
        offered = plan_of(source, count, epsilon, scale=scale).kernel
        if isinstance(offered, Minimax):
            return Recipe(kind, scale, offered.degree)
    raise AssertionError


@cache
def at_one_scale(kind: str, source: Source, count: int, epsilon: float) -> Recipe:
    """Return a kernel at the scale that is recommended at ε = 1, as large as is planned for ε."""
    scale = said(source, count, 1.0).scale
    planned = plan_of(source, count, epsilon, kernel="fourier", scale=scale).kernel.frequencies
    return Recipe(kind, scale, {FOURIER: planned, FEWER: FEW_FREQUENCIES, NYSTROM: RANK}[kind])


def kernel_of(wanted: Recipe, source: Source, seed: int) -> Kernel:
    """Return the kernel of a recipe."""
    if wanted.kind in (FOURIER, FEWER):
        bounds = {"scale": wanted.scale, "key_norm": 1.0, "query_norm": 1.0}
        return Fourier(source.dim, frequencies=wanted.size, seed=seed, **bounds)
    return kernel_without_seed(wanted, source)


@cache
def kernel_without_seed(wanted: Recipe, source: Source) -> Kernel:
    """Return a kernel that is the same for every build."""
    bounds = {"scale": wanted.scale, "key_norm": 1.0, "query_norm": 1.0}
    if wanted.kind == MINIMAX:
        return Minimax(source.dim, degree=wanted.size, **bounds)
    return Landmarks(source.public(wanted.public), rank=wanted.size, **bounds)


@cache
def exact_answers(source: Source, count: int, scale: float) -> np.ndarray:
    """Return exact attention."""
    return oracle.attention(source.queries, *source.private(count), scale=scale)


@cache
def measured(
    source: Source, count: int, wanted: Recipe, epsilon: float | None, builds: int
) -> Cell:
    """Build some memories and compare their answers with exact attention.

    Args:
        source: of the rows.
        count: of rows.
        wanted: the kernel.
        epsilon: None for no noise.
        builds: each with its own frequencies and noise.
    """
    start = time.monotonic()
    exact = exact_answers(source, count, wanted.scale)
    keys, values = source.private(count)
    answers, stderrs, noises = [], [], []
    for build in range(builds):
        seed = zlib.crc32(f"{source.name} {count} {wanted} {epsilon} {build}".encode())
        memory = discreet.build(
            keys,
            values,
            epsilon=epsilon or 1.0,
            delta=DELTA,
            value_norm=source.value_norm,
            rows_hint=count,
            kernel=kernel_of(wanted, source, seed),
            entropy=Seeded(seed) if epsilon else Silent(),
        ).plain
        out, stderr = memory.attend(source.queries, stderr=True)
        answers.append(out)
        stderrs.append(stderr)
        noises.append(memory.noise_stderr(source.queries))
    off = np.abs(np.array(answers) - exact)
    inside = off <= WITHIN * np.array(stderrs)
    cell = Cell(
        source,
        count,
        wanted,
        epsilon,
        within=float(inside.mean()),
        within_stderr=float(np.std(inside.mean(axis=(1, 2)), ddof=builds > 1) / math.sqrt(builds)),
        noise_within=float(np.mean(off <= WITHIN * np.array(noises))),
        error=rms(off),
        wide=float(np.median(stderrs)) / rms(off),
        spread=rms(exact - exact.mean(axis=0)),
    )
    tell(
        f"{source.name}, {count:,} rows, {wanted.kind} {wanted.size:,} at scale "
        f"{wanted.scale:.3g}, ε = {epsilon}: {cell.within:.1%} within, error {cell.error:.3g} "
        f"({time.monotonic() - start:.1f} s)"
    )
    return cell


def cases(data: Sequence[Source]) -> list[tuple[Source, int]]:
    """Return every source with every number of rows."""
    return [(source, count) for source in data for count in source.counts]


def intervals(data: Sequence[Source], effort: Effort) -> dict[str, list[Cell]]:
    """Measure how often intervals hold, by kernel."""
    return {
        kind: [
            measured(
                source,
                count,
                recipe(kind, source, count, epsilon),
                epsilon,
                effort.builds_of(count),
            )
            for source, count in cases(data)
            for epsilon in CHECKED
        ]
        for kind in (FOURIER, MINIMAX, NYSTROM)
    }


def by_epsilon(data: Sequence[Source], effort: Effort) -> Curves:
    """Measure errors at growing ε, by source, kernel and number of rows."""

    def builds(count: int, epsilon: float) -> int:
        return effort.builds_of(count) if epsilon in CHECKED else effort.few

    return {
        (source.name, kind, count): [
            measured(
                source,
                count,
                at_one_scale(kind, source, count, epsilon),
                epsilon,
                builds(count, epsilon),
            )
            for epsilon in EPSILONS
        ]
        for source, count in cases(data)
        for kind in (FOURIER, FEWER, NYSTROM)
    }
