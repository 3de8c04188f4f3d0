"""How fast a memory answers and is built, and what it takes: ratios measured in one run.

Run: python benchmarks/memory.py (five minutes and 4 GB; needs torch). It prints a page and, with
--write, puts it into docs/memory-results.md.

- Answers: `attend` in float32 on a batch of 64 queries against torch's scaled_dot_product_attention
  over the raw keys and values, for growing numbers of rows.
- Builds: against a plain float32 build of the same features in torch, without clipping, rounding or
  noise; the fastest of two runs against the fastest of three chunk sizes. No ratio is reported
  unless both give the same state.
- Features: attend with standard errors against attend without, and the time of attend and of a
  build for each feature, over that with 1,024 frequencies; for kernels of other sizes and kinds.
- A busy neighbour: both builds again, while another process keeps one core busy.
- Peak memory: of a process of its own that builds from memory-mapped files.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch
from sharing import quiet_time
from torch.nn.functional import scaled_dot_product_attention

import discreet
from discreet.kernels import Fourier, Kernel, Landmarks, Minimax
from discreet.testing import Silent

DIM = 64
BATCH = 64
SPEND = {"epsilon": 1.0, "delta": 1e-6}
KERNELS = {"Minimax, degree 2 (scale 1)": 1.0, "Fourier, 1,024 frequencies (scale 6)": 6.0}
PAGE = pathlib.Path(__file__).parents[1] / "docs" / "memory-results.md"

# The kernel's own figures: what getrusage calls the peak counts the parent's, too.
PEAK = """
import json, sys
import numpy as np
import discreet

def status(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(name)) * 1024

keys, values = (np.load(path, mmap_mode="r") for path in sys.argv[1:3])
discreet.build(keys[:10], values[:10], epsilon=1.0, delta=1e-6, scale=float(sys.argv[3]))
before = status("VmRSS")
discreet.build(keys, values, epsilon=1.0, delta=1e-6, scale=float(sys.argv[3]))
print(json.dumps(status("VmHWM") - before))
"""


def rows(count: int, seed: int) -> np.ndarray:
    """Return float32 rows of length one."""
    made = np.random.default_rng(seed).standard_normal((count, DIM), dtype=np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def answers(counts: list[int]) -> list[dict[str, float]]:
    """Compare `attend` with attention over the raw rows, for each number of rows."""
    queries = torch.from_numpy(rows(BATCH, 2))
    results = []
    for count in counts:
        keys, values = rows(count, 0), rows(count, 1)
        # Four axes: torch's fast kernel.
        raw = [torch.from_numpy(each)[None, None] for each in (keys, values)]
        row: dict[str, float] = {"rows": count}
        for name, scale in KERNELS.items():
            memory = discreet.build(keys, values, **SPEND, scale=scale)
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "memory.safetensors"
                memory.save(path)
                row[f"{name}: file"] = path.stat().st_size
            row[name] = quiet_time(lambda memory=memory: memory.attend(queries)) / BATCH
        plain = quiet_time(lambda raw=raw: scaled_dot_product_attention(queries[None, None], *raw))
        row["plain"] = plain / BATCH
        results.append(row)
    return results


def plain_build(
    kernel: Kernel, keys: torch.Tensor, weighed: torch.Tensor, chunk: int
) -> torch.Tensor:
    """Add up the same features in float32, without bounds, rounding or noise."""
    if isinstance(kernel, Fourier):
        frequencies = torch.from_numpy(kernel._query_frequencies).float()  # noqa: SLF001
        state = torch.zeros(2, kernel.frequencies, weighed.shape[1])
        for start in range(0, len(keys), chunk):
            angles = keys[start : start + chunk] @ frequencies
            part = weighed[start : start + chunk]
            state[0] += angles.cos().T @ part
            state[1] += angles.sin().T @ part
        return state.transpose(0, 1).reshape(-1, weighed.shape[1]) / kernel.frequencies**0.5
    steps = kernel._monomials.steps  # noqa: SLF001
    parents, variables = (torch.from_numpy(each) for each in (steps[1].parents, steps[1].variables))
    state = torch.zeros(kernel.features, weighed.shape[1])
    for start in range(0, len(keys), chunk):
        columns = keys[start : start + chunk].T.contiguous()
        part = weighed[start : start + chunk]
        state[0] += part.sum(0)
        state[1 : DIM + 1] += columns @ part
        state[DIM + 1 :] += (columns[parents] * columns[variables]) @ part
    ones = kernel.reading(np.ones((1, kernel.features, 1)))
    weights = np.concatenate([ones[f"degree_{degree}"][0, 0] for degree in range(3)])
    return state * torch.from_numpy(weights).float()[:, None]


def builds(counts: list[int]) -> list[dict[str, float]]:
    """Compare builds with plain float32 ones of the same features, for each number of rows."""
    return [
        {"rows": count} | {k: v for name in KERNELS for k, v in build_times(count, name).items()}
        for count in counts
    ]


def build_times(count: int, name: str) -> dict[str, float]:
    """Return the seconds of our build with one kernel, and of the plain one."""
    keys, values = rows(count, 0), rows(count, 1)
    ours = float("inf")
    for _ in range(2):
        start = time.perf_counter()
        memory = discreet.build(keys, values, **SPEND, scale=KERNELS[name])
        ours = min(ours, time.perf_counter() - start)
    tau = memory.released.layout.real_tau
    weighed = torch.from_numpy(np.hstack([values, np.full((count, 1), tau, np.float32)]))
    best, state = float("inf"), torch.empty(0)
    for chunk in (512, 1024, 2048):  # whichever suits the processor's cache
        start = time.perf_counter()
        state = plain_build(memory.kernel, torch.from_numpy(keys), weighed, chunk)
        best = min(best, time.perf_counter() - start)
    check_same_state(memory.kernel, keys, values, state)
    return {name: ours, f"{name}: plain": best}


def other_kernels(count: int) -> dict[str, dict[str, float]]:
    """Compare kernels of other sizes and kinds: with standard errors and without, by feature."""
    keys, values, queries = rows(count, 0), rows(count, 1), torch.from_numpy(rows(1_000, 2))
    bounds = {"key_norm": 1.0, "query_norm": 1.0}
    kernels = {
        "Fourier, 1,024 frequencies": Fourier(DIM, scale=6.0, **bounds),
        "Fourier, 8,192 frequencies": Fourier(DIM, frequencies=8192, scale=6.0, **bounds),
        "Minimax, degree 2": Minimax(DIM, degree=2, scale=1.0, **bounds),
        "Landmarks, 512": Landmarks(rows(2_000, 3), scale=2.0, **bounds),
    }
    results = {}
    for name, kernel in kernels.items():
        start = time.perf_counter()
        memory = discreet.build(keys, values, **SPEND, kernel=kernel)
        built = time.perf_counter() - start
        plain = quiet_time(lambda memory=memory: memory.attend(queries))
        errors = quiet_time(lambda memory=memory: memory.attend(queries, stderr=True))
        results[name] = {
            "attend": plain / len(queries),
            "stderr": errors / plain,
            "attend a feature": plain / kernel.features,
            "build a feature": built / kernel.features,
        }
    return results


def slowdowns(count: int) -> dict[str, float]:
    """Return how many times longer builds take while another process keeps one core busy."""
    quiet = builds([count])[0]
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as neighbour:
        try:
            busy = builds([count])[0]
        finally:
            neighbour.kill()
    return {name: busy[name] / quiet[name] for name in quiet if name != "rows"}


def check_same_state(
    kernel: Kernel, keys: np.ndarray, values: np.ndarray, state: torch.Tensor
) -> None:
    """Stop unless the plain build adds up the same features as ours."""
    quiet = discreet.build(keys, values, **SPEND, kernel=kernel, entropy=Silent()).released
    ours = quiet.state[0].T * quiet.layout.real_unit
    grown = np.exp(kernel.query_exponent)
    gap = np.linalg.norm(ours - state.numpy() * grown) / np.linalg.norm(ours)
    if gap > 0.01:
        raise SystemExit(f"The two builds differ by {gap:.1%}: no ratio is reported.")


def peak_bytes(count: int, scale: float) -> int:
    """Return how much a build from memory-mapped files adds to the peak of its process."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, name) for name in ("keys.npy", "values.npy")]
        for seed, path in enumerate(paths):
            np.save(path, rows(count, seed))
        command = [sys.executable, "-c", PEAK, *paths, str(scale)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(json.loads(done.stdout))


def page(counts: list[int]) -> str:
    """Measure everything and return it as a page."""
    lines = [
        "# The memory, measured",
        "",
        (
            "Made by `benchmarks/memory.py`: ratios from one run on a machine with "
            f"{torch.get_num_threads()} threads. Keys and values of 64 numbers, ε = 1, δ = 1e-6."
        ),
        "",
        f"## Answers: batch of {BATCH}, float32, times faster than attention over the raw rows",
        "",
        "| rows | raw rows, µs a query | "
        + " | ".join(f"{name}: µs, ratio" for name in KERNELS)
        + " | file |",
        "|---|---|" + "---|" * (len(KERNELS) + 1),
    ]
    for row in answers(counts):
        cells = [f"{row[name] * 1e6:.1f}, {row['plain'] / row[name]:,.1f} ×" for name in KERNELS]
        sizes = " / ".join(f"{row[f'{name}: file'] / 1e6:.2f} MB" for name in KERNELS)
        lines.append(
            f"| {row['rows']:,.0f} | {row['plain'] * 1e6:,.1f} | {' | '.join(cells)} | {sizes} |"
        )
    lines += [
        "",
        "## Builds: seconds, and times the plain float32 build of the same features",
        "",
        "| rows | " + " | ".join(f"{name}: s, ratio" for name in KERNELS) + " |",
        "|---|" + "---|" * len(KERNELS),
    ]
    for row in builds(counts[1:]):
        cells = [f"{row[name]:.2f}, {row[name] / row[f'{name}: plain']:.2f} ×" for name in KERNELS]
        lines.append(f"| {row['rows']:,.0f} | {' | '.join(cells)} |")
    found = other_kernels(counts[-2])
    usual = next(iter(found.values()))
    lines += [
        "",
        "## Other kernels: batch of 1,000, float32",
        "",
        "Standard errors: times the time without. By feature: times that of 1,024 frequencies.",
        "",
        "| kernel | µs a query | with standard errors | attend, by feature | build, by feature |",
        "|---|---|---|---|---|",
        *(
            f"| {name} | {row['attend'] * 1e6:.1f} | {row['stderr']:.1f} × | "
            + " | ".join(
                f"{row[each] / usual[each]:.2f} ×"
                for each in ("attend a feature", "build a feature")
            )
            + " |"
            for name, row in found.items()
        ),
    ]
    slower = slowdowns(counts[-2])
    lines += [
        "",
        f"## A busy neighbour: how many times longer a build of {counts[-2]:,} rows takes",
        "",
        *(f"- {name}: {times:.2f} ×" for name, times in slower.items()),
    ]
    lines += ["", "## Peak memory of a build from memory-mapped files", ""]
    for name, scale in KERNELS.items():
        inputs = counts[-1] * DIM * 4 * 2
        peak = peak_bytes(counts[-1], scale)
        lines.append(
            f"- {name}: {counts[-1]:,} rows, {inputs / 1e6:,.0f} MB of input, which counts as it "
            f"is read; the build took {peak / 1e6:,.0f} MB more than the process had before."
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print, and write the page if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--write", action="store_true", help="write docs/memory-results.md")
    options = parser.parse_args()
    text = page(options.rows)
    print(text)
    if options.write:
        PAGE.write_text(text)


if __name__ == "__main__":
    main()
