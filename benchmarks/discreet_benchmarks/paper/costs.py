"""The costs of the paper's structures: time and memory, also against plain loops.

The loops are Algorithms 2, 3, 4 and 5 as the paper writes them, one node at a time: the yardstick
for `discreet.paper`, which must give the same numbers without noise.
"""

import math
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from discreet import paper
from discreet._typing import Floats
from discreet.errors import DiscreetError
from discreet.kernels import Taylor
from discreet.noise import Entropy
from discreet.paper.oracle import spread
from discreet.pictures.style import legend_below
from discreet.testing import Silent
from discreet_benchmarks.paper import page
from discreet_benchmarks.paper.attention import rows_and_weights
from discreet_benchmarks.paper.laws import attention
from discreet_benchmarks.paper.page import Size, claim, paragraph, slope, table

# Of the one structure that is compared with loops.
_SETTINGS: dict[str, Any] = {
    "upper": 1.0,
    "weight_bound": 1.0,
    "epsilon": 1.0,
    "delta": 1e-6,
    "delta_prime": 1e-6,
    "c": 0.1,
    "eps_s": 0.1,
}


def timed(work: Callable[[], object], repeats: int) -> float:
    """Return the time of the quietest of some runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def times_page(out: Path, size: Size) -> list[str]:
    """Build and query time against n."""
    rows = [2**k for k in range(10, size.largest_power + 1)]
    queries = spread(500, 2, start=0.5)
    builds, answers = [], []
    for n in rows:
        builder = attention(n)
        builds.append(timed(partial(builder, None), 2))
        structure = builder(None)
        answers.append(timed(partial(structure.sums, queries), 5))
    _times_picture(rows, builds, answers, out / "paper-times.png")
    growth, logarithm = answers[-1] / answers[0], math.log2(rows[-1]) / math.log2(rows[0])
    upper = rows[len(rows) // 2 :]  # where the fixed costs of a build no longer show
    return page.section(
        "Time",
        paragraph(
            claim(
                growth < rows[-1] / rows[0],
                f"**Build time grows as n (slope {slope(upper, builds[-len(upper) :]):.2f} from n = {upper[0]} on; the theorem: 1), query "
                f"time hardly at all**: {growth:.2f} times as long at n = {rows[-1]} as at n = {rows[0]}, where log n, the theorem's, grows "
                f"{logarithm:.2f} times (caches add to it).",
            )
        ),
        paragraph(
            "One entry of attention, one copy, d = 2, ε_s = 0.1; 500 queries. Ratios within one run."
        ),
        page.image("build and query time against n", "paper-times.png"),
    )


def _times_picture(rows: list[int], builds: list[float], answers: list[float], path: Path) -> None:
    figure, axes = page.panels(2, size=(9, 3.9))
    logarithms = [math.log2(n) / math.log2(rows[0]) for n in rows]
    for axis, took, law, title in (
        (axes[0], builds, [n / rows[0] for n in rows], "build time, relative; dotted: n"),
        (axes[1], answers, logarithms, "query time, relative; dotted: log n"),
    ):
        axis.plot(rows, np.array(took) / took[0], "o-", color=page.BLUE, label="measured")
        axis.plot(rows, law, ":", color=page.INK, label="the theorem's growth")
        page.by_ratios(axis, rows[::2])
        page.titled(axis, title, "rows n")
    axes[1].set_ylim(0.5, 8)
    legend_below(figure, axes[0], 2)
    page.save(figure, path)


def speed_page(_out: Path, _size: Size) -> list[str]:
    """Against plain loops, and against the noise draws alone."""
    rows, weights = rows_and_weights(4096, 4)
    weights, queries = weights[:, 0], spread(100, 4, start=0.5)

    def ours(entropy: Entropy | None) -> tuple[paper.DPTreeSoftmax, Floats]:
        structure = paper.DPTreeSoftmax(rows, weights, entropy=entropy, **_SETTINGS)
        return structure, structure.query(queries)

    structure, answers = ours(Silent())
    loops = partial(_loops, structure, rows, weights, queries)
    if not np.allclose(loops(), answers, rtol=1e-9, atol=1e-6):
        raise DiscreetError("The plain loops and the structure give different numbers: no ratio.")
    slow, fast = timed(loops, 1), timed(lambda: ours(Silent()), 5)
    noisy, alone = timed(lambda: ours(None), 5), timed(partial(_draws, structure), 5)
    memory, nbytes = build_memory()
    return page.section(
        "Speed and memory",
        paragraph(
            claim(
                slow > fast,
                f"**All trees at once are {slow / fast:.0f} times as fast as plain loops over Algorithms 2, 3, 4 and 5**, which give the "
                f"same numbers; with noise, drawing it is {min(alone / noisy, 1):.0%} of the time.",
            )
        ),
        paragraph(
            f"One DPTreeSoftmax, n = 4096, d = 4, r = {structure.kernel.features}, built and asked 100 queries, without noise and with "
            "it (`discreet_benchmarks.paper.costs` has the loops). DPCrossAttention at n = 1024, d = d_v = 4, ε_s = 0.1, p_f = 0.01:"
        ),
        table(
            ["state", "peak of the whole process that builds it"],
            [[f"{nbytes / 2**20:.0f} MiB", f"{memory / 2**20:.0f} MiB"]],
        ),
    )


def _loops(
    structure: paper.DPTreeSoftmax, rows: Floats, weights: Floats, queries: Floats
) -> list[float]:
    """Answer the queries by plain loops, with weights and points up to 1."""
    noise = structure.state.sums.noise
    plain = Softmax(
        rows.tolist(),
        weights.tolist(),
        kernel=structure.kernel,
        upper=1.0,
        bound=1.0,
        units=(noise.features.unit, noise.totals.unit),
    )
    return [plain.query(query) for query in queries.tolist()]


def _draws(structure: paper.DPTreeSoftmax) -> None:
    """Draw the noise of a structure, and nothing else."""
    sums = structure.state.sums
    shape = sums.trees.forest.nodes.shape
    sums.noise.features.law.sample(shape)
    sums.noise.totals.law.sample(shape[1:])  # one more coordinate


def build_memory() -> tuple[int, int]:
    """Return the peak memory of a process that builds one attention, and the bytes it keeps."""
    script = (
        "import resource, sys, warnings, numpy as np; from discreet import paper; warnings.simplefilter('ignore');"
        "from discreet_benchmarks.paper.attention import rows_and_weights; K, V = rows_and_weights(1024, 4, 4);"
        "s = paper.DPCrossAttention(K, V, upper=1.0, value_bound=1.0, epsilon=1.0, delta=1e-6,"
        " delta_prime=1e-6, c=0.1, eps_s=0.1, p_f=0.01);"
        # Not ru_maxrss where there is another way: it remembers the process that started this one.
        "from pathlib import Path; status = Path('/proc/self/status');"
        "lines = status.read_text().splitlines() if status.exists() else [];"
        "peaks = [int(line.split()[1]) * 1024 for line in lines if line.startswith('VmHWM')];"
        "unit = 1 if sys.platform == 'darwin' else 1024;"
        "peaks += [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit];"
        "print(peaks[0], s.nbytes)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, text=True
    )
    peak, nbytes = done.stdout.split()
    return int(peak), int(nbytes)


class Tree:
    """Algorithm 2 without noise and without its root: nodes in heap order, leaves from N on."""

    def __init__(self, leaves: list[int]) -> None:
        self.size = len(leaves)
        self.nodes = [0] * self.size + leaves
        for node in range(self.size - 1, 1, -1):
            self.nodes[node] = self.nodes[2 * node] + self.nodes[2 * node + 1]

    def query(self, y: float) -> tuple[int, int]:
        """Return the sums left and right of the leaf that contains y."""
        node = self.size + min(int(y * self.size), self.size - 1)
        left = right = 0
        while node > 1:
            if node % 2:
                left += self.nodes[node - 1]
            else:
                right += self.nodes[node + 1]
            node //= 2
        return left, right


class Distance:
    """Algorithms 4 and 5 for p = 2: one tree for each moment."""

    def __init__(self, points: list[float], weights: list[float], unit: int) -> None:
        size = max(2, 1 << (len(points) - 1).bit_length())
        leaves = [[0] * size for _ in range(3)]
        for t, u in zip(points, weights, strict=True):
            j = min(int(t * size), size - 1)
            power = 1.0
            for q in range(3):
                leaves[q][j] += round(u * power * unit)
                power *= t
        self.trees = [Tree(one) for one in leaves]
        self.unit = unit

    def query(self, y: float) -> float:
        """Return Σ u·(y - t)²."""
        total = 0.0
        for q, tree in enumerate(self.trees):
            left, right = tree.query(y)
            weight = math.comb(2, q) * y ** (2 - q)
            total += weight * ((-1) ** (2 - q) * right + (-1) ** q * left)
        return total / self.unit


class Softmax:
    """Algorithm 3: a Distance for each feature, and one for the sum of the weights."""

    def __init__(
        self,
        rows: list[list[float]],
        weights: list[float],
        *,
        kernel: Taylor,
        upper: float,
        bound: float,
        units: tuple[int, int],
    ) -> None:
        self.exponents = [[int(a) for a in alpha] for alpha in kernel.exponents]
        self.scale = kernel.scale
        self.bound = bound
        self.ranges = self.features([upper] * kernel.dim)
        scaled = [weight / bound for weight in weights]
        features = [self.features(row) for row in rows]
        self.lines = []
        for j, largest in enumerate(self.ranges):
            column = [min(feature[j] / largest, 1.0) for feature in features]
            self.lines.append(Distance(column, scaled, units[0]))
        self.offset = 0.0
        for line, largest in zip(self.lines, self.ranges, strict=True):
            self.offset += bound * largest**2 * line.query(0.0)
        self.total = bound * Distance([1.0] * len(rows), scaled, units[1]).query(0.0)

    def features(self, row: list[float]) -> list[float]:
        """Return P(x), one monomial at a time."""
        result = []
        for alpha in self.exponents:
            value = math.sqrt(self.scale ** sum(alpha))
            for x, a in zip(row, alpha, strict=True):
                value *= x**a / math.sqrt(math.factorial(a))
            result.append(value)
        return result

    def query(self, y: list[float]) -> float:
        """Return the weighted softmax sum at y."""
        features = self.features(y)
        value = norm = 0.0
        for feature, line, largest in zip(features, self.lines, self.ranges, strict=True):
            value += self.bound * largest**2 * line.query(min(feature / largest, 1.0))
            norm += feature**2
        return 0.5 * (self.offset + self.total * norm - value)
