"""The experiments that the paper does not have, as one page with pictures.

Run: python benchmarks/paper.py [--out docs] [--quick]

Writes paper-results.md and PNGs. Errors are measured against the same structure without noise, so
that they are the noise's alone. Times are ratios or slopes within this run. `--quick` is a smaller
run, for tests.
"""

import argparse
import dataclasses
import math
import pathlib
import resource
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable

import matplotlib as mpl
import numpy as np
import paper_loops
from matplotlib import pyplot as plt
from numpy.typing import NDArray

from discreet import paper
from discreet.kernels import Taylor
from discreet.paper.node import Noise, node_noise
from discreet.paper.softmax_forest import paper_budgets
from discreet.paper.structure import Budget
from discreet.testing import Seeded, Silent

mpl.use("Agg")

# One copy (p_f is that large), one column, ε so large that D is not noise: the law in n, ε, R_w and
# d is the same at every ε, because the noise is inversely proportional to it.
BASE = {"upper": 1.0, "delta": 1e-6, "delta_prime": 1e-6, "c": 0.1, "eps_s": 0.1, "p_f": 0.6}
LARGE_EPSILON = 2000.0
QUERIES = 50


@dataclasses.dataclass(frozen=True)
class Size:
    """How much work to do."""

    builds: int
    largest_power: int


def attention(
    rows: int, *, dim: int = 2, bound: float = 1.0, **options: object
) -> Callable[[object], paper.DPCrossAttention]:
    """Return a builder of attention over uniform keys and values, given a source of noise."""
    rng = np.random.default_rng(rows + dim)
    keys, values = rng.random((rows, dim)), rng.uniform(-bound, bound, (rows, 1))
    settings = {"value_bound": bound, "epsilon": LARGE_EPSILON, "scope": "entry", **BASE, **options}

    def build(entropy: object) -> paper.DPCrossAttention:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return paper.DPCrossAttention(keys, values, entropy=entropy, **settings)

    return build


def attention_error(
    builder: Callable[[object], paper.DPCrossAttention], dim: int, builds: int
) -> float:
    """Return the root mean square error of AV/D, neither clamped nor with kernel error."""
    queries = np.random.default_rng(1).random((QUERIES, dim))

    def output(entropy: object) -> NDArray[np.float64]:
        numerator, denominator = builder(entropy).sums(queries)
        return numerator[:, 0] / denominator

    truth = output(Silent())
    errors = [output(Seeded(seed)) - truth for seed in range(builds)]
    return float(np.sqrt(np.mean(np.square(errors))))


def slope(x: list[float], y: list[float]) -> float:
    """Return the slope of a straight line through log y against log x."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def timed(work: Callable[[], object], repeats: int = 3) -> float:
    """Return the median time of some runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def style(
    axis: plt.Axes, title: str, x: str, y: str, ticks: list[float] | list[int] | None = None
) -> None:
    """Label one picture; with ticks at the given values if there are few."""
    axis.set(title=title, xlabel=x, ylabel=y, xscale="log", yscale="log")
    if ticks is not None:
        axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.set_xticks([], minor=True)
    axis.grid(visible=True, which="major", alpha=0.3)


def save(figure: plt.Figure, path: pathlib.Path) -> None:
    """Write one PNG, small enough to commit."""
    figure.tight_layout()
    figure.savefig(path, dpi=80, metadata={"Software": None})
    plt.close(figure)


def errors_page(out: pathlib.Path, size: Size) -> list[str]:
    """Error against n, ε, R_w and d."""
    figure, axes = plt.subplots(1, 4, figsize=(15, 3.6))
    rows = [2**k for k in range(11, size.largest_power + 1)]
    by_rows = [attention_error(attention(n), 2, size.builds) for n in rows]
    levelled = [e / math.log2(n) ** 1.5 for n, e in zip(rows, by_rows, strict=True)]
    axes[0].plot(rows, levelled, "ko-")
    axes[0].plot(rows, [levelled[0] * rows[0] / n for n in rows], "k:", label="slope -1")
    axes[0].legend()
    style(axes[0], "error / log₂(n)^1.5", "rows n", "rms error of AV/D")

    # The other laws at few rows and a larger ε still, so that many builds can be averaged.
    few, epsilon, builds = 4096, 2 * LARGE_EPSILON, 3 * size.builds
    epsilons = [epsilon / 2, epsilon, 2 * epsilon, 4 * epsilon]
    by_epsilon = [attention_error(attention(few, epsilon=e), 2, builds) for e in epsilons]
    axes[1].plot(epsilons, by_epsilon, "ks-")
    style(axes[1], f"n = {few}", "ε", "", epsilons)
    bounds = [0.5, 1.0, 2.0, 4.0]
    by_bound = [
        attention_error(attention(few, epsilon=epsilon, bound=b), 2, builds) for b in bounds
    ]
    axes[2].plot(bounds, by_bound, "k^-")
    style(axes[2], f"n = {few}", "value bound R_w", "", bounds)
    dims = [1, 2, 3, 4, 6]
    by_dim = [attention_error(attention(few, dim=d, epsilon=epsilon), d, builds) for d in dims]
    axes[3].plot(dims, by_dim, "kD-")
    style(axes[3], f"n = {few}", "dimension d", "", dims)
    save(figure, out / "paper-errors.png")

    features = [Taylor.on_box(d, upper=1.0, eps_s=0.1).features for d in dims]
    copies = [attention(2, dim=d)(Silent()).copies for d in dims]
    lines = [
        "## Error of the unclamped attention",
        "",
        "![error against n, epsilon, value bound and dimension](paper-errors.png)",
        "",
        "Root mean square of AV/D against the same structure without noise; d = 2, one column, one copy,",
        f"ε = {LARGE_EPSILON:g} (so large that the denominator is not noise at these n; the laws are the same",
        f"at every ε), {size.builds} builds, {QUERIES} queries each; for ε, R_w and d: n = {few}, ε = {epsilon:g} unless",
        f"said otherwise, {builds} builds.",
        "",
        f"- against n, divided by log₂(n)^1.5: slope {slope(rows, levelled):.2f} (the theorem: -1)",
        f"- against ε: slope {slope(epsilons, by_epsilon):.2f} (the theorem: -1)",
        f"- against R_w: slope {slope(bounds, by_bound):.2f} (the theorem: 1)",
        f"- against d = {dims} with r = {features} features and l = {copies} copies (the net grows with d): "
        + ", ".join(f"{e:.3g}" for e in by_dim),
        "",
        "| n | rms error | error·n / log₂(n)^1.5 |",
        "|---|---|---|",
    ]
    lines += [
        f"| {n} | {e:.4g} | {e * n / math.log2(n) ** 1.5:.4g} |"
        for n, e in zip(rows, by_rows, strict=True)
    ]
    return [*lines, ""]


def variance_page(out: pathlib.Path) -> list[str]:
    """The paper's comparison of three noises, by their exact variances."""
    deltas = [10.0**-k for k in range(2, 13)]
    epsilon = 0.1
    series = {
        "truncated Laplace": (Noise.TRUNCATED_LAPLACE, "ko-"),
        "Laplace (δ = 0)": (Noise.LAPLACE, "k--"),
        "Gaussian, exact": (Noise.GAUSSIAN, "ks-"),
    }
    figure, axis = plt.subplots(figsize=(6, 3.8))
    table: dict[str, list[float]] = {}
    for name, (kind, mark) in series.items():
        table[name] = [node_noise(kind, epsilon=epsilon, delta=d).variance for d in deltas]
        axis.plot(deltas, table[name], mark, label=name)
    table["Gaussian, the paper's formula"] = [
        2 * 4 * math.log(1.25 / d) / epsilon**2 for d in deltas
    ]
    axis.plot(
        deltas, table["Gaussian, the paper's formula"], "k:", label="Gaussian, paper's formula"
    )
    style(axis, f"one node, Δ = 2, ε = {epsilon}", "δ", "variance")
    axis.legend(fontsize=8)
    save(figure, out / "paper-variance.png")
    lines = [
        "## Variance of the three noises",
        "",
        "![variance of truncated Laplace, Laplace and Gaussian noise](paper-variance.png)",
        "",
        f"One node with Δ = 2 at ε = {epsilon}; exact variances of the integer laws, in real units. Truncation saves",
        "variance only where δ is not far below ε. For a single node the truncated Laplace is the best of the three,",
        "as the paper says; for many nodes together, tightly accounted, the Gaussian is (two sections below).",
        "",
        "| δ | " + " | ".join(table) + " |",
        "|---|" + "---|" * len(table),
    ]
    lines += [
        f"| {d:g} | " + " | ".join(f"{values[i]:.5g}" for values in table.values()) + " |"
        for i, d in enumerate(deltas)
        if i % 2 == 0
    ]
    return [*lines, ""]


def times_page(out: pathlib.Path, size: Size) -> list[str]:
    """Build and query time against n."""
    rows = [2**k for k in range(10, size.largest_power + 1)]
    queries = np.random.default_rng(2).random((500, 2))
    builds, answers = [], []
    for n in rows:
        builder = attention(n)
        builds.append(timed(lambda builder=builder: builder(None)))
        structure = builder(None)
        answers.append(timed(lambda structure=structure: structure.sums(queries), 7))
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6))
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
    rng = np.random.default_rng(3)
    rows, weights, queries = rng.random((4096, 4)), rng.uniform(-1, 1, 4096), rng.random((100, 4))
    settings = {
        "upper": 1.0,
        "weight_bound": 1.0,
        "epsilon": 1.0,
        "delta": 1e-6,
        "delta_prime": 1e-6,
        "c": 0.1,
        "eps_s": 0.1,
    }

    def ours(entropy: object) -> tuple[paper.DPTreeSoftmax, NDArray[np.float64]]:
        structure = paper.DPTreeSoftmax(rows, weights, entropy=entropy, **settings)
        return structure, structure.query(queries)

    structure, answers = ours(Silent())
    units = (structure._sums.trees.noise.unit, structure._sums.totals_noise.unit)  # noqa: SLF001

    def loops() -> list[float]:
        plain = paper_loops.Softmax(
            rows.tolist(),
            weights.tolist(),
            kernel=structure.kernel,
            upper=1.0,
            bound=1.0,
            units=units,
        )
        return [plain.query(query) for query in queries.tolist()]

    if not np.allclose(loops(), answers, rtol=1e-9, atol=1e-6):
        sys.exit("The plain loops and the structure give different numbers: no ratio.")
    slow, fast = timed(loops, 1), timed(lambda: ours(Silent()), 7)
    noisy = timed(lambda: ours(None), 7)
    trees, totals = structure._sums.trees, structure._sums.totals_noise  # noqa: SLF001
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
        "  (`benchmarks/paper_loops.py`), which give the same numbers",
        f"- with noise: {noisy / alone:.2f} times the time of its noise draws alone",
        f"- DPCrossAttention at n = 1024, d = 4, ε_s = 0.1: {nbytes / 2**20:.0f} MiB of state; the whole process that",
        f"  builds it peaks at {memory / 2**20:.0f} MiB",
        "",
    ]


def build_memory() -> tuple[int, int]:
    """Return the peak memory of a process that builds one attention, and the bytes it keeps."""
    script = (
        "import resource, warnings, numpy as np; from discreet import paper; warnings.simplefilter('ignore');"
        "r = np.random.default_rng(0); K, V = r.random((1024, 4)), r.uniform(-1, 1, (1024, 4));"
        "s = paper.DPCrossAttention(K, V, upper=1.0, value_bound=1.0, epsilon=1.0, delta=1e-6,"
        " delta_prime=1e-6, c=0.1, eps_s=0.1, p_f=0.01);"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, s.nbytes)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, text=True
    )
    peak, nbytes = done.stdout.split()
    unit = 1 if sys.platform == "darwin" else 1024
    return int(peak) * unit, int(nbytes)


def accounting_page(out: pathlib.Path) -> list[str]:
    """The same trees, accounted by theorems with constants and by the privacy loss distribution."""
    rng = np.random.default_rng(4)
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
        keys, values = rng.random((rows, dim)), rng.uniform(-1, 1, (rows, dim))
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
    figure, axis = plt.subplots(figsize=(6, 3.4))
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


def predicted_noise(power: int, dim: int) -> float:
    """Return the standard deviation of the denominator's noise at y = (1, ..., 1) for 2^power rows.

    From the formulas, for one copy with an entry's budget (ε/2): n may be larger than memory.
    """
    kernel = Taylor.on_box(dim, upper=1.0, eps_s=0.1)
    entry = Budget(1.0, 1e-6, 1e-6).share(2)
    budgets = paper_budgets(entry, c=0.1, features=kernel.features, levels=power)
    node = node_noise(
        Noise.TRUNCATED_LAPLACE, epsilon=budgets.features.epsilon, delta=budgets.features.delta
    )
    squares = float(np.sum(kernel.feature_bounds(1.0) ** 4))
    return math.sqrt(0.25 * node.variance * squares * power * (2 + 4 + 1))


def useful_page() -> list[str]:
    """The number of rows at which the literal construction first says something."""
    built = attention(1024, epsilon=1.0)(Silent())
    real = math.sqrt(built._sums.variance(np.ones((1, 2)))[0, -1])  # noqa: SLF001
    if not math.isclose(real, predicted_noise(10, 2), rel_tol=1e-3):
        sys.exit("The extrapolated noise is not the one of a structure that was built.")
    lines = [
        "## When the literal construction becomes useful (extrapolated)",
        "",
        "The smallest n (a power of two) at which the noise of the denominator, one copy, one entry, ε = 1, c = 0.1, is",
        "below a tenth of n. Not measured: computed from the same variance formula that the tests check at small n,",
        "because such structures do not fit a machine.",
        "",
        "| d | features r | noise at n = 4096 | first useful n |",
        "|---|---|---|---|",
    ]
    for dim in (1, 2, 4, 8, 16):
        power = next(k for k in range(10, 60) if predicted_noise(k, dim) < 0.1 * 2**k)
        features = Taylor.on_box(dim, upper=1.0, eps_s=0.1).features
        lines.append(
            f"| {dim} | {features} | {predicted_noise(12, dim):.3g} | 2^{power} ≈ {2**power:.1e} |"
        )
    return [*lines, ""]


def main() -> None:
    """Run all experiments and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("docs"))
    parser.add_argument("--quick", action="store_true", help="fewer builds and rows")
    arguments = parser.parse_args()
    size = (
        Size(builds=4, largest_power=13) if arguments.quick else Size(builds=24, largest_power=17)
    )
    arguments.out.mkdir(parents=True, exist_ok=True)
    page = [
        "# The paper, measured",
        "",
        "Made by `python benchmarks/paper.py`; the paper itself has no experiments. What the structures are, theorem",
        "by theorem, is in [paper.md](paper.md).",
        "",
    ]
    for name, section in (
        ("errors", lambda: errors_page(arguments.out, size)),
        ("variances", lambda: variance_page(arguments.out)),
        ("times", lambda: times_page(arguments.out, size)),
        ("speed", speed_page),
        ("accounting", lambda: accounting_page(arguments.out)),
        ("usefulness", useful_page),
    ):
        start = time.perf_counter()
        page += section()
        print(f"{name}: {time.perf_counter() - start:.0f} s", flush=True)
    (arguments.out / "paper-results.md").write_text("\n".join(page).rstrip() + "\n")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"wrote {arguments.out / 'paper-results.md'}; peak memory {peak / 2**20:.1f} GiB")


if __name__ == "__main__":
    main()
