"""The costs of the paper's structures: time and memory."""

import math
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from discreet import paper
from discreet._typing import Floats
from discreet.bench import paper_loops
from discreet.bench.paper_laws import attention
from discreet.bench.paper_pictures import BLUE, INK, by_ratios, panels, save, titled
from discreet.bench.paper_setup import Size, slope, timed
from discreet.bench.paper_task import rows_and_weights
from discreet.bench.paper_words import claim, paragraph, table
from discreet.bench.points import spread
from discreet.errors import DiscreetError
from discreet.noise import Entropy
from discreet.pictures.style import legend_below
from discreet.testing import Silent


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
    return [
        "## Time",
        "",
        *paragraph(
            claim(
                growth < rows[-1] / rows[0],
                f"**Build time grows as n (slope {slope(upper, builds[-len(upper) :]):.2f} from n = {upper[0]} on; the theorem: 1), query "
                f"time hardly at all**: {growth:.2f} times as long at n = {rows[-1]} as at n = {rows[0]}, where log n, the theorem's, grows "
                f"{logarithm:.2f} times (caches add to it).",
            )
        ),
        "One entry of attention, one copy, d = 2, ε_s = 0.1; 500 queries. Ratios within one run.",
        "",
        "![build and query time against n](paper-times.png)",
        "",
    ]


def _times_picture(rows: list[int], builds: list[float], answers: list[float], path: Path) -> None:
    figure, axes = panels(2, size=(9, 3.9))
    for axis, took, law, name in (
        (axes[0], builds, [n / rows[0] for n in rows], "n"),
        (axes[1], answers, [math.log2(n) / math.log2(rows[0]) for n in rows], "log n"),
    ):
        axis.plot(rows, np.array(took) / took[0], "o-", color=BLUE, label="measured")
        axis.plot(rows, law, ":", color=INK, label="the theorem's growth")
        by_ratios(axis, rows[::2])
        titled(
            axis, f"{'build' if name == 'n' else 'query'} time, relative; dotted: {name}", "rows n"
        )
    axes[1].set_ylim(0.5, 8)
    legend_below(figure, axes[0], 2)
    save(figure, path)


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
    noise = structure.state.sums.noise

    def loops() -> list[float]:
        plain = paper_loops.Softmax(
            rows.tolist(),
            weights.tolist(),
            kernel=structure.kernel,
            upper=1.0,
            bound=1.0,
            units=(noise.features.unit, noise.totals.unit),
        )
        return [plain.query(query) for query in queries.tolist()]

    if not np.allclose(loops(), answers, rtol=1e-9, atol=1e-6):
        raise DiscreetError("The plain loops and the structure give different numbers: no ratio.")
    slow, fast = timed(loops, 1), timed(lambda: ours(Silent()), 5)
    noisy = timed(lambda: ours(None), 5)
    nodes = structure.state.sums.trees.forest.nodes

    def draws() -> None:
        noise.features.law.sample(nodes.shape)
        noise.totals.law.sample(nodes.shape[1:])  # one more coordinate

    alone = timed(draws, 5)
    memory, nbytes = build_memory()
    return [
        "## Speed and memory",
        "",
        *paragraph(
            claim(
                slow > fast,
                f"**All trees at once are {slow / fast:.0f} times as fast as plain loops over Algorithms 2, 3, 4 and 5**, which give the "
                f"same numbers; with noise, drawing it is {min(alone / noisy, 1):.0%} of the time.",
            )
        ),
        *paragraph(
            f"One DPTreeSoftmax, n = 4096, d = 4, r = {structure.kernel.features}, built and asked 100 queries, without noise and with "
            "it (`discreet.bench.paper_loops` has the loops). DPCrossAttention at n = 1024, d = d_v = 4, ε_s = 0.1, p_f = 0.01:"
        ),
        *table(
            ["state", "peak of the whole process that builds it"],
            [[f"{nbytes / 2**20:.0f} MiB", f"{memory / 2**20:.0f} MiB"]],
        ),
    ]


def build_memory() -> tuple[int, int]:
    """Return the peak memory of a process that builds one attention, and the bytes it keeps."""
    script = (
        "import resource, sys, warnings, numpy as np; from discreet import paper; warnings.simplefilter('ignore');"
        "from discreet.bench.paper_task import rows_and_weights; K, V = rows_and_weights(1024, 4, 4);"
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
    done = subprocess.run(  # noqa: S603 (the script above)
        [sys.executable, "-c", script], capture_output=True, check=True, text=True
    )
    peak, nbytes = done.stdout.split()
    return int(peak), int(nbytes)
