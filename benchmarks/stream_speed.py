"""How long steps of a stream take, first and last, and how large its sealed state is."""

import pathlib
import tempfile
import time
from collections.abc import Callable

import numpy as np
from sharing import table, tell
from stream_shared import DELTA, EPSILON, KEY, Effort, Promise, Report

import discreet

DIM, SCALE = 16, 2.0
SLOWER = 1.2  # times as long as the first steps the last ones take, at the most
STATES, MORE = 5, 1_000  # as large as so many states, and bytes, the sealed one is at the most


def days(rows: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the rows of some steps, to be taken in turn: points of a sphere, with signs."""
    rng = np.random.default_rng(0)
    keys = rng.standard_normal((16, rows, DIM))
    keys /= np.linalg.norm(keys, axis=-1, keepdims=True)
    return [(each, np.sign(each[:, :1])) for each in keys]


def seconds(call: Callable[[], object]) -> float:
    """Return how long a call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def measure(effort: Effort) -> Report:
    """Return times of steps, and sizes of files, of one stream in a folder."""
    given = days(effort.rows)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name) / "stream"
        stream = discreet.Stream(
            folder, key=KEY, steps=effort.steps, epsilon=EPSILON, delta=DELTA, scale=SCALE
        )
        times = []
        for step in range(effort.steps):
            keys, values = given[step % len(given)]
            start = time.perf_counter()
            stream.append(keys, values, step=f"{step}")
            times.append(time.perf_counter() - start)
            if (step + 1) % 1_000 == 0:
                tell(f"{step + 1:,} steps, {1e3 * np.median(times[-1_000:]):.2f} ms each")
        tenth = max(effort.steps // 10, 1)
        medians = [float(np.median(times[at : at + tenth])) for at in range(0, len(times), tenth)]
        released = stream.memory().released
        return {
            "steps": effort.steps,
            "rows": effort.rows,
            "medians": medians,
            "ratio": medians[-1] / medians[0],
            "total": sum(times),
            "features": released.layout.kernel.features,
            "state": released.nbytes,
            "sealed": (folder / "state.sealed").stat().st_size,
            "states": sum(each.stat().st_size for each in (folder / "states").iterdir()),
            "lines": (folder / "steps.jsonl").stat().st_size,
            "window": seconds(lambda: stream.window(last=30)),
            "decayed": seconds(lambda: stream.decayed(half_life=14)),
            "resume": seconds(lambda: discreet.Stream.resume(folder, key=KEY)),
        }


def sealed(report: Report) -> str:
    """Return how large the sealed state is."""
    states, more = divmod(report["sealed"], report["state"])
    return f"{states} states and {more:,} bytes"


def in_short(report: Report) -> list[str]:
    """Return what to act on."""
    return [
        (
            f"- A step of {report['rows']:,} rows takes {1e3 * report['medians'][-1]:.0f} ms after "
            f"{report['steps']:,} steps, {report['ratio']:.2f} times as long as at the beginning."
        )
    ]


def page(report: Report) -> list[str]:
    """Return the section of the page."""
    return [
        (
            f"{report['steps']:,} steps of {report['rows']:,} rows each, keys of {DIM} numbers, "
            f"{report['features']:,} features, in a folder on a local disk, one thread. Every step "
            "is on the disk when `append` returns."
        ),
        *table(
            ["", "measured"],
            [
                ["a step, first tenth (median)", f"{1e3 * report['medians'][0]:.2f} ms"],
                ["a step, last tenth", f"{1e3 * report['medians'][-1]:.2f} ms"],
                ["last over first", f"{report['ratio']:.2f}"],
                [f"all {report['steps']:,} steps", f"{report['total']:.0f} s"],
                ["what is released after a step", f"{report['state']:,} bytes"],
                ["the sealed state", f"{report['sealed']:,} bytes: {sealed(report)}"],
                ["all that was published", f"{report['states'] / 1e6:.0f} MB"],
                ["`window(last=30)`, at the end", f"{1e3 * report['window']:.1f} ms"],
                ["`Stream.resume`, at the end", f"{1e3 * report['resume']:.0f} ms"],
                ["`decayed(half_life=14)`, at the end", f"{1e3 * report['decayed']:.0f} ms"],
            ],
        ),
        (
            "What is kept does not grow with the steps, but for what was published. A window reads "
            "two states. A half-life reads all that there are, and takes longer with every step."
        ),
        "",
    ]


def promises(report: Report) -> list[Promise]:
    """Return what was promised of time and size."""
    return [
        Promise(
            "time of the last steps over the first, 10,000 steps",
            f"at most {SLOWER}",
            f"{report['ratio']:.2f}",
            kept=report["ratio"] <= SLOWER,
        ),
        Promise(
            "size of the sealed state",
            f"at most {STATES} states and {MORE:,} bytes",
            sealed(report),
            kept=report["sealed"] <= STATES * report["state"] + MORE,
        ),
    ]
