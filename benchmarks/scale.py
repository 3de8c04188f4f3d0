"""Many rows in many files, measured, and a model of many more: docs/scale.md.

Run: python benchmarks/scale.py (a quarter of an hour on two quiet cores; needs the extra `dask`).
It prints the measured part of the page and, with --write, puts it there. --quick has few rows,
--keep measures the constants of the model, and ways of building that benchmarks/scale.json lacks.

- The same rows are built in one process with one thread, in one with two, by two workers, by two
  workers of which one is killed in the middle, by two of a Dask cluster likewise, and from shards
  that are merged in random order; each of them also by records. All must give the same bits: the
  noise is `discreet.testing.Silent`.
- The model: seconds a row = reading + features x (a + b x key width + c x value columns), with
  constants measured on one core of this machine, and what sealing, merging and exchanging take.
- Times are of one machine, the fastest of two runs where they are compared: compare them with each
  other.
"""

import argparse
import hashlib
import json
import logging
import math
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from scipy import optimize
from sharing import ROOT, replaced, table, tell

import discreet
from discreet.noise import RoundedGaussian, SystemEntropy
from discreet.shards import Job, exchange
from discreet.sums.settings import Settings
from discreet.tables import Rows
from discreet.testing import Silent

PAGE = ROOT / "docs" / "scale.md"
KEPT = ROOT / "benchmarks" / "scale.json"
ROWS, FILES, WIDTH, FEATURES = 4_000_000, 64, 64, 2048
COLUMNS = {"keys": "embedding", "values": "label"}
EPSILON = 1.0

# Runs of which the fastest counts: a neighbour on the machine makes some of them slower.
TIMES = {"one process, one thread": 2, "one process, two threads": 2, "two workers": 2}

# What the model takes for granted: change them to your own.
NETWORK = 1e9  # bytes a second, of each worker
ROWS_IN_A_FILE = 1_000_000
PRICE = 0.05  # of a core for an hour, in any currency


def options(rows: int) -> dict[str, Any]:
    """Return what all builds are asked for."""
    return {
        "epsilon": EPSILON,
        "delta": 0.1 / rows,
        "scale": 2.0,
        "rows_hint": rows,
        "kernel": "fourier",
        "features": FEATURES,
    }


def write_rows(folder: pathlib.Path, rows: int) -> None:
    """Write files with embeddings of length one, a label and a person; five rows a person."""
    rng = np.random.default_rng(0)
    count = rows // FILES
    for number in range(FILES):
        keys = rng.standard_normal((count, WIDTH), dtype=np.float32)
        keys /= np.linalg.norm(keys, axis=1, keepdims=True)
        ends = np.arange(0, keys.size + 1, WIDTH, dtype=np.int32)
        columns = {
            "embedding": pa.ListArray.from_arrays(pa.array(ends), pa.array(keys.ravel())),
            "label": np.sign(keys[:, 0]),
            "person": rng.integers(rows // 5, size=count),
        }
        parquet.write_table(pa.table(columns), folder / f"part-{number:03d}.parquet")


# --- one run, in a process of its own -------------------------------------------------------------


def one_run(folder: str, how: str, groups: str | None, rows: int) -> dict[str, Any]:
    """Build in one way, and return seconds, a hash of the sums, and how much memory it took."""
    source = Rows(folder, **COLUMNS, groups=groups)
    start = time.perf_counter()
    memory = WAYS[how](source, rows)
    seconds = time.perf_counter() - start
    own, children = (
        resource.getrusage(who).ru_maxrss * 1024
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return {
        "seconds": seconds,
        "bits": hashlib.sha256(memory.released.state.tobytes()).hexdigest(),
        "memory": children if "worker" in how else own,
    }


def _one_process(source: Rows, rows: int) -> discreet.Memory:
    return discreet.build(source, entropy=Silent(), **options(rows))


def _one_thread(source: Rows, rows: int) -> discreet.Memory:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    return _one_process(source, rows)


def _two_workers(source: Rows, rows: int) -> discreet.Memory:
    from discreet.shards.processes import build

    return build(source, workers=2, entropy=Silent(), **options(rows))


def _killed(source: Rows, rows: int) -> discreet.Memory:
    with one_killed(lambda: _children(os.getpid()), rows):
        return _two_workers(source, rows)


def _killed_on_a_cluster(source: Rows, rows: int) -> discreet.Memory:
    import dask
    from distributed import Client, LocalCluster

    from discreet.shards.dask import build

    memory = {"target": 0.01, "transfer": 0.01, "spill": False, "pause": False, "terminate": False}
    with (
        # As docs/howto/shards.md says: what is sealed goes to disk, and not into memory.
        dask.config.set({f"distributed.worker.memory.{name}": at for name, at in memory.items()}),
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            security=True,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
        one_killed(lambda: list(client.run(os.getpid).values()), rows),
    ):
        return build(source, client=client, entropy=Silent(), **options(rows))


@contextmanager
def one_killed(processes: Callable[[], list[int]], rows: int) -> Iterator[None]:
    """Kill one of some processes as soon as it has worked for a while; raise if none was."""
    killed: list[int] = []
    before: dict[int, float] = {}
    # Of few rows no worker has much to do, however fast the machine is.
    enough = 4.0 if rows > 1e6 else 0.5

    def kill() -> None:
        while not killed:
            time.sleep(0.02)
            for pid in processes():
                spent = _cpu_seconds(pid)
                if spent - before.setdefault(pid, spent) > enough:
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)
                    return

    threading.Thread(target=kill, daemon=True).start()
    yield
    if not killed:
        raise RuntimeError("no worker was killed")


def _shards(source: Rows, rows: int) -> discreet.Memory:
    """Merge shards in random order; records by way of an exchange."""
    job = Job(key_dim=WIDTH, value_dim=1, by_record=source.by_record, **options(rows))
    parts = source.parts()
    names = [part.name for part in parts]
    rng = np.random.default_rng(1)
    if not source.by_record:
        sealed = [job.partial(part, shard=part.name) for part in parts]
    else:
        count = 16
        with tempfile.TemporaryDirectory() as name:  # sealed rows lie on a disk between the steps
            folder = pathlib.Path(name)
            for place, part in enumerate(parts):
                pieces = job.scatter(part.chunks(), shard=part.name, parts=count)
                for number, piece in enumerate(pieces):
                    (folder / f"{place}-{number}").write_bytes(piece)
            sealed = [
                job.gather(
                    (
                        (folder / f"{place}-{number}").read_bytes()
                        for place in rng.permutation(len(parts))
                    ),
                    part=number,
                    parts=count,
                    expected=names,
                )
                for number in range(count)
            ]
        names = [exchange.part_name(part, count) for part in range(count)]
    mixed = [sealed[place] for place in rng.permutation(len(sealed))]
    middle = len(mixed) // 3
    merged = [job.merge(mixed[:middle]), *mixed[middle:]]
    return job.release(merged, expected=names, entropy=Silent())


WAYS: dict[str, Callable[[Rows, int], discreet.Memory]] = {
    "one process, one thread": _one_thread,
    "one process, two threads": _one_process,
    "two workers": _two_workers,
    "two workers, one killed": _killed,
    "two workers of Dask, one killed": _killed_on_a_cluster,
    "shards in random order": _shards,
}


def _children(parent: int) -> list[int]:
    """Return processes that compute for this one."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, rest = path.read_text().split(" (", 1)
        except OSError:
            continue
        if int(rest.rsplit(") ", 1)[1].split()[1]) == parent:
            found.append(int(pid))
    return found


def _cpu_seconds(pid: int) -> float:
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measured_ways(
    folder: pathlib.Path, rows: int, known: dict[str, dict[str, dict[str, Any]]]
) -> dict[str, dict[str, dict[str, Any]]]:
    """Return what each way takes, by row and by record, if it is not known; all give one result."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for unit, groups in (("rows", None), ("records", "person")):
        found[unit] = dict(known.get(unit, {}))
        for how in [each for each in WAYS if each not in found[unit]]:
            given = json.dumps([str(folder), how, groups, rows])
            command = [sys.executable, "-W", "ignore", __file__, "--one-run", given]
            runs = []
            for _ in range(TIMES.get(how, 1)):
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                runs.append(json.loads(done.stdout.splitlines()[-1]))
            fastest = min(runs, key=lambda run: run["seconds"])
            found[unit][how] = fastest | {"memory": max(run["memory"] for run in runs)}
            tell(f"{unit}, {how}: {found[unit][how]['seconds']:.1f} s")
        if len({each["bits"] for each in found[unit].values()}) != 1:
            raise RuntimeError(f"not all ways give the same bits: {unit}")
    return found


# --- the model ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Model:
    """Seconds on one core of this machine.

    Attributes:
        read: for each number of a row.
        feature: for each feature of a row.
        key: for each feature and column of keys.
        value: for each feature and column of values, and one more.
        sealed: for each byte of sums that is sealed, opened and merged.
        exchanged: for each byte of rows that is divided, sealed, opened and joined.
        bounded: for each feature of a row, more, where its record is bounded (five rows a record).
        drawn: for each number that gets noise.
    """

    read: float
    feature: float
    key: float
    value: float
    sealed: float
    exchanged: float
    bounded: float
    drawn: float

    def row(self, key_dim: int, value_dim: int, features: int) -> float:
        """Return the seconds that a row takes."""
        each = self.feature + self.key * key_dim + self.value * (value_dim + 1)
        return self.read * (key_dim + value_dim) + features * each

    def total(
        self,
        rows: float,
        *,
        workers: int,
        key_dim: int = WIDTH,
        value_dim: int = 1,
        features: int = FEATURES,
        by_record: bool = False,
        files: float | None = None,
    ) -> float:
        """Return the seconds that a build takes, without the start of workers."""
        files = max(rows / ROWS_IN_A_FILE, 1) if files is None else files
        state = 8 * features * (value_dim + 1)
        rest = files * state * (2 * self.sealed + 2 / NETWORK)
        if by_record:
            rest += rows * features * self.bounded
        if by_record and workers > 1:  # rows in double precision, there and back
            rest += rows * 8 * (key_dim + value_dim) * (self.exchanged + 2 / NETWORK)
        elif by_record:  # files are read once for every 256 MB of rows
            numbers = rows * (key_dim + value_dim)
            rest += (math.ceil(8 * numbers / 2**28) - 1) * numbers * self.read
        shared = rows * self.row(key_dim, value_dim, features) + rest
        return shared / workers + features * (value_dim + 1) * self.drawn


def seconds_of(work: Callable[[], object], times: int = 3) -> float:
    """Return the shortest of several runs."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return min(found)


def fitted(folder: pathlib.Path, *, quick: bool) -> Model:
    """Measure the constants of the model, on one core."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    part = Rows(folder, **COLUMNS).parts()[0]
    numbers = sum(len(keys) for keys, _, _ in part.chunks()) * (WIDTH + 1)
    read = seconds_of(lambda: sum(len(keys) for keys, _, _ in part.chunks())) / numbers
    count = 4_000 if quick else 20_000
    shapes = [(16, 1, 512), (16, 1, 2048), (64, 1, 2048), (64, 64, 2048), (128, 1, 4096)]
    lines, seconds = [], []
    for key_dim, value_dim, features in shapes:
        job = _job(key_dim, value_dim, features)
        rows = _random(count, key_dim), _random(count, value_dim)
        taken = seconds_of(lambda job=job, rows=rows: job.partial(rows, shard="a", threads=1))
        lines.append([features, features * key_dim, features * (value_dim + 1)])
        seconds.append(taken / count)
    # Relative errors count, so that narrow rows weigh as much as wide ones.
    weight = 1 / np.array(seconds)
    (feature, key, value), _ = optimize.nnls(np.array(lines) * weight[:, None], np.ones(len(lines)))
    job = _job(WIDTH, 64, FEATURES)
    rows = _random(100, WIDTH), _random(100, 64)
    parts = [job.partial(rows, shard=str(number)) for number in range(8)]
    sealed = seconds_of(lambda: job.merge(parts)) / sum(map(len, parts))
    return Model(
        read=read,
        feature=feature,
        key=key,
        value=value,
        sealed=sealed,
        exchanged=_exchange_seconds(count),
        bounded=_bounding_seconds(count),
        drawn=seconds_of(lambda: RoundedGaussian(sigma=2.0**30).sample(10**5, entropy=_SOURCE))
        / 10**5,
    )


_SOURCE = SystemEntropy()


def _job(key_dim: int, value_dim: int, features: int, *, by_record: bool = False) -> Job:
    return Job(
        key_dim=key_dim,
        value_dim=value_dim,
        by_record=by_record,
        **{**options(10**6), "features": features},
    )


def _random(rows: int, width: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((rows, width), dtype=np.float32)


def _exchange_seconds(count: int) -> float:
    """Return the seconds for each byte of rows, there and back; five rows a person."""
    job = _job(WIDTH, 1, FEATURES, by_record=True)
    rows = _random(count, WIDTH), _random(count, 1)
    people = np.random.default_rng(1).integers(count // 5, size=count)
    secret, settings = job.__getstate__()

    def there_and_back() -> None:
        pieces = job.scatter(rows, shard="a", parts=16, groups=people)
        for part, piece in enumerate(pieces):
            exchange.gather(
                [piece],
                part=part,
                parts=16,
                expected=["a"],
                digest=settings.digest,
                key=secret.key,
            )

    return seconds_of(there_and_back) / sum(8 * each.size for each in rows)


def _bounding_seconds(count: int) -> float:
    """Return the seconds for each feature of a row that bounding its record takes."""
    rows = _random(count, WIDTH), _random(count, 1)
    people = np.random.default_rng(1).integers(count // 5, size=count)
    alone, together = _job(WIDTH, 1, FEATURES), _job(WIDTH, 1, FEATURES, by_record=True)
    without = seconds_of(lambda: alone.partial(rows, shard="a", threads=1))
    bounded = seconds_of(lambda: together.partial(rows, shard="a", groups=people, threads=1))
    return max(bounded - without, 0.0) / (count * FEATURES)


# --- the page -------------------------------------------------------------------------------------


def ways_table(found: dict[str, dict[str, dict[str, Any]]], rows: int) -> list[str]:
    """Return what was measured: seconds, times faster than one thread, and memory."""
    body = []
    for how in WAYS:
        cells = [how]
        for unit in ("rows", "records"):
            each, one = found[unit][how], found[unit]["one process, one thread"]
            ratio = one["seconds"] / each["seconds"]
            cells += [
                f"{each['seconds']:.0f} s",
                f"{ratio:.2f} ×",
                f"{each['memory'] / 1e6:.0f} MB",
            ]
        body.append(cells)
    head = ["", "rows", "", "memory", "records", "", "memory"]
    told = (
        f"{rows:,} rows of {WIDTH} numbers in {FILES} Parquet files, {FEATURES:,} features. All "
        f"{len(WAYS)} ways gave the same bits, by row and by record. Times, and how many times "
        "faster than one thread; memory is the most that one process (one worker) had."
    )
    return [told, *table(head, body)]


def model_tables(model: Model, found: dict[str, dict[str, dict[str, Any]]], rows: int) -> list[str]:
    """Return the constants, measured points beside the model, and what it says of more rows."""
    constants = [
        ["reading a number of a row", f"{model.read * 1e9:.2f} ns"],
        ["a feature of a row", f"{model.feature * 1e9:.2f} ns"],
        ["a feature and a column of keys", f"{model.key * 1e9:.3f} ns"],
        ["a feature and a column of values (and one more)", f"{model.value * 1e9:.3f} ns"],
        ["a byte of sums, sealed, opened, merged", f"{model.sealed * 1e9:.2f} ns"],
        ["a byte of rows, exchanged by record", f"{model.exchanged * 1e9:.2f} ns"],
        ["a feature of a row whose record is bounded, more", f"{model.bounded * 1e9:.2f} ns"],
        ["a number of noise", f"{model.drawn * 1e9:.0f} ns"],
    ]
    points = []
    for unit in ("rows", "records"):
        for how, workers in (("one process, one thread", 1), ("two workers", 2)):
            said = model.total(
                rows,
                workers=workers,
                by_record=unit == "records",
                files=FILES,
            )
            points.append(
                [f"{unit}, {how}", f"{said:.0f} s", f"{found[unit][how]['seconds']:.0f} s"]
            )
    assumed = (
        f"Keys of {WIDTH} numbers; {ROWS_IN_A_FILE:,} rows a file; {NETWORK / 1e9:g} GB/s to and "
        f"from each worker; {PRICE:g} for a core for an hour. Sent: sums by all workers together, "
        "and rows by an exchange of records."
    )
    return [
        "### The model",
        "",
        "One core of this machine:",
        *table(["what", "time"], constants),
        "Beside it, what was measured (with the start of workers, which the model leaves out):",
        *table(["", "model", "measured"], points),
        "### A billion rows, and a thousand billion",
        "",
        assumed,
        *table(
            [
                "rows",
                "features",
                "values",
                "workers",
                "time",
                "by record",
                "cost",
                "sums sent",
                "rows sent",
            ],
            [_line(model, *each) for each in _CASES],
        ),
    ]


_CASES = [
    (1e6, 2048, 1, 1),
    (1e9, 2048, 1, 16),
    (1e9, 2048, 1, 256),
    (1e9, 16384, 64, 256),
    (1e12, 2048, 1, 256),
    (1e12, 2048, 1, 4096),
    (1e12, 16384, 64, 4096),
]


def _line(model: Model, rows: float, features: int, value_dim: int, workers: int) -> list[str]:
    shape = {"features": features, "value_dim": value_dim}
    alone = model.total(rows, workers=1, **shape)
    sent = max(rows / ROWS_IN_A_FILE, 1) * 8 * features * (value_dim + 1)
    return [
        f"{rows:,.0f}",
        f"{features:,}",
        str(value_dim),
        f"{workers:,}",
        _duration(model.total(rows, workers=workers, **shape)),
        _duration(model.total(rows, workers=workers, by_record=True, **shape)),
        f"{max(alone / 3600 * PRICE, 0.01):,.2f}",
        _bytes(sent),
        _bytes(rows * 8 * (WIDTH + value_dim)),
    ]


def _duration(seconds: float) -> str:
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def _bytes(count: float) -> str:
    power = min(max(int(math.log10(count) // 3), 1), 5)
    return f"{count / 1000**power:.0f} {'kMGTP'[power - 1]}B"


def limits_table() -> list[str]:
    """Return where numbers end: from the settings themselves."""
    body = []
    for rows in (10**6, 10**9, 10**12):
        settings = _settled(rows)
        [layout] = settings.layouts
        noise = settings.multiplier / rows
        body.append(
            [
                f"{rows:,}",
                f"{layout.most_rows:.1e}",
                f"2^-{layout.resolution}",
                f"{0.1 / rows:.0e}",
                f"{settings.multiplier:.2f}",
                f"{noise:.0e}",
            ]
        )
    head = ["`rows_hint`", "int64 holds", "values rounded to", "δ", "σ at ε = 1", "σ / rows"]
    return ["### Where numbers end", *table(head, body)]


def _settled(rows: int) -> Settings:
    return Job(key_dim=WIDTH, value_dim=1, **options(rows)).settings


def page(*, rows: int, quick: bool, kept: bool, write: bool) -> list[str]:
    """Measure, and return the measured part of the page.

    Args:
        rows: how many.
        quick: whether the model is measured with few rows, too.
        kept: whether ways of building that were measured the last time are not measured again.
        write: whether to keep it for the next.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        tell(f"writing {rows:,} rows")
        write_rows(folder, rows)
        found = measured_ways(folder, rows, json.loads(KEPT.read_text()) if kept else {})
        model = fitted(folder, quick=quick)
    if write:
        KEPT.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    lines = ["", *ways_table(found, rows), *model_tables(model, found, rows), *limits_table()]
    while lines[-1] == "":
        lines.pop()
    return [*lines, ""]


def main() -> None:
    """Measure, print, and write what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rows")
    parser.add_argument("--write", action="store_true", help=f"put it into {PAGE.name}")
    parser.add_argument("--keep", action="store_true", help=f"builds as {KEPT.name} has them")
    parser.add_argument("--one-run", help=argparse.SUPPRESS)
    given = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    if given.one_run is not None:
        print(json.dumps(one_run(*json.loads(given.one_run))))
        return
    rows = FILES * 5_000 if given.quick else ROWS
    lines = page(rows=rows, quick=given.quick, kept=given.keep, write=given.write)
    print("\n".join(lines))
    if given.write:
        text = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(replaced(text, "scale", "\n".join(lines)), encoding="utf-8")


if __name__ == "__main__":
    main()
