"""The costs of the paper's structures: time, memory, and what their accounting gives away."""

import math
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from discreet import paper
from discreet._typing import Floats
from discreet.bench import paper_loops
from discreet.bench.paper_setup import (
    BASE,
    Size,
    attention,
    panels,
    rows_and_weights,
    save,
    slope,
    style,
    timed,
)
from discreet.bench.points import spread
from discreet.errors import DiscreetError
from discreet.noise import Entropy
from discreet.paper.node import Noise
from discreet.testing import Silent


def times_page(out: Path, size: Size) -> list[str]:
    """Build and query time against n."""
    rows = [2**k for k in range(10, size.largest_power + 1)]
    queries = spread(500, 2, start=0.5)
    builds, answers = [], []
    for n in rows:
        builder = attention(n)
        builds.append(timed(partial(builder, None)))
        structure = builder(None)
        answers.append(timed(partial(structure.sums, queries), 7))
    figure, axes = panels(2, size=(9, 3.6))
    axes[0].plot(rows, np.array(builds) / builds[0], "ko-")
    style(axes[0], "build time, relative", "rows n", "")
    axes[1].plot(rows, np.array(answers) / answers[0], "ks-", label="measured")
    axes[1].plot(rows, np.log2(rows) / math.log2(rows[0]), "k:", label="log n")
    style(axes[1], "query time, relative", "rows n", "")
    axes[1].legend()
    save(figure, out / "paper-times.png")
    growth = answers[-1] / answers[0]
    upper = rows[len(rows) // 2 :]  # where the fixed costs of a build no longer show
    return [
        "## Time",
        "",
        "![build and query time against n](paper-times.png)",
        "",
        f"- build against n (from {upper[0]} rows on): slope {slope(upper, builds[-len(upper) :]):.2f} (the theorem: 1)",
        f"- queries: {growth:.2f} times as long at n = {rows[-1]} as at n = {rows[0]}, where log n grows",
        f"  {math.log2(rows[-1]) / math.log2(rows[0]):.2f} times; slope {slope(rows, answers):.2f}",
        "  (the theorem: logarithmic; caches add to it)",
        "",
    ]


def speed_page() -> list[str]:
    """Against plain loops, and against the noise draws alone."""
    rows, weights = rows_and_weights(4096, 4)
    weights, queries = weights[:, 0], spread(100, 4, start=0.5)
    settings: dict[str, Any] = {
        "upper": 1.0,
        "weight_bound": 1.0,
        "epsilon": 1.0,
        "delta": 1e-6,
        "delta_prime": 1e-6,
        "c": 0.1,
        "eps_s": 0.1,
    }

    def ours(entropy: Entropy | None) -> tuple[paper.DPTreeSoftmax, Floats]:
        structure = paper.DPTreeSoftmax(rows, weights, entropy=entropy, **settings)
        return structure, structure.query(queries)

    structure, answers = ours(Silent())
    trees, totals = structure._sums.trees, structure._sums.totals_noise  # noqa: SLF001
    if totals is None:
        raise DiscreetError("Expected a structure whose weights are private.")

    def loops() -> list[float]:
        plain = paper_loops.Softmax(
            rows.tolist(),
            weights.tolist(),
            kernel=structure.kernel,
            upper=1.0,
            bound=1.0,
            units=(trees.noise.unit, totals.unit),
        )
        return [plain.query(query) for query in queries.tolist()]

    if not np.allclose(loops(), answers, rtol=1e-9, atol=1e-6):
        raise DiscreetError("The plain loops and the structure give different numbers: no ratio.")
    slow, fast = timed(loops, 1), timed(lambda: ours(Silent()), 7)
    noisy = timed(lambda: ours(None), 7)
    nodes = trees.forest.nodes

    def draws() -> None:
        trees.noise.law.sample(nodes.shape)
        totals.law.sample(nodes.shape[1:])  # one more coordinate

    alone = timed(draws, 7)
    memory, nbytes = build_memory()
    return [
        "## Speed and memory, as ratios in one run",
        "",
        f"- one DPTreeSoftmax, n = 4096, r = {structure.kernel.features}, built and asked 100 queries without noise:",
        f"  {slow / fast:.0f} times faster than plain loops over Algorithms 1, 2, 4 and 5",
        "  (`discreet.bench.paper_loops`), which give the same numbers",
        f"- with noise: {noisy / alone:.2f} times the time of its noise draws alone",
        f"- DPCrossAttention at n = 1024, d = 4, ε_s = 0.1: {nbytes / 2**20:.0f} MiB of state; the whole process that",
        f"  builds it peaks at {memory / 2**20:.0f} MiB",
        "",
    ]


def build_memory() -> tuple[int, int]:
    """Return the peak memory of a process that builds one attention, and the bytes it keeps."""
    script = (
        "import resource, warnings, numpy as np; from discreet import paper; warnings.simplefilter('ignore');"
        "from discreet.bench.paper_setup import rows_and_weights; K, V = rows_and_weights(1024, 4, 4);"
        "s = paper.DPCrossAttention(K, V, upper=1.0, value_bound=1.0, epsilon=1.0, delta=1e-6,"
        " delta_prime=1e-6, c=0.1, eps_s=0.1, p_f=0.01);"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, s.nbytes)"
    )
    done = subprocess.run(  # noqa: S603 (the script above)
        [sys.executable, "-c", script], capture_output=True, check=True, text=True
    )
    peak, nbytes = done.stdout.split()
    unit = 1 if sys.platform == "darwin" else 1024
    return int(peak) * unit, int(nbytes)


def accounting_page(out: Path) -> list[str]:
    """The same trees, accounted by theorems with constants and by the privacy loss distribution."""
    lines = [
        "## Paper accounting against tight accounting",
        "",
        "Standard deviation of one copy's noise in the denominator at the worst query, ε = 1, δ + δ' = 2e-6, whole",
        "vector, and the error bound that holds for all queries together (99%). The bound of the paper's form",
        "counts its copies: each of the l copies has a budget of 1/l.",
        "",
        "| n | d | copies | noise, paper | noise, tight | less noise | bound, paper | bound, tight | smaller bound |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    ratios = []
    for rows, dim in ((256, 2), (1024, 2), (4096, 2), (1024, 4)):
        keys, values = rows_and_weights(rows, dim, dim)
        settings = {**BASE, "p_f": 0.01, "epsilon": 1.0, "value_bound": 1.0}
        found = {}
        for name, noise in (
            ("paper", Noise.TRUNCATED_LAPLACE),
            ("tight", Noise.TRUNCATED_LAPLACE),
            ("gaussian", Noise.GAUSSIAN),
        ):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                structure = paper.DPCrossAttention(
                    keys,
                    values,
                    accounting="paper" if name == "paper" else "tight",
                    noise=noise,
                    **settings,
                )
            corner = np.ones((1, dim))
            spread = math.sqrt(structure._sums.variance(corner)[0, -1])  # noqa: SLF001
            found[name] = (spread, structure.sums_error_bound(0.99)[1], structure.copies)
        (loose, loose_bound, copies), (tight, tight_bound, _) = found["paper"], found["tight"]
        ratios.append((rows, dim, loose / tight, found["gaussian"][0] / tight))
        lines.append(
            f"| {rows} | {dim} | {copies} | {loose:.3g} | {tight:.3g} | {loose / tight:.0f}× "
            f"| {loose_bound:.3g} | {tight_bound:.3g} | {loose_bound / tight_bound:.0f}× |"
        )
    figure, [axis] = panels(1, size=(6, 3.4))
    labels = [f"n = {rows}\nd = {dim}" for rows, dim, _, _ in ratios]
    axis.bar(labels, [ratio for _, _, ratio, _ in ratios], color="0.4")
    axis.set(title="times less noise for the same (ε, δ)", ylabel="paper / tight")
    save(figure, out / "paper-accounting.png")
    gaussian = ", ".join(f"{g:.2f}" for *_, g in ratios)
    return [
        *lines,
        "",
        "![times less noise under tight accounting](paper-accounting.png)",
        "",
        f"With Gaussian noise under the same tight account the spread is {gaussian} times that of truncated Laplace",
        "in these four settings.",
        "",
    ]
