"""What `discreet build` costs beside the library call that it makes, in one run.

Run: python benchmarks/command.py [--rows 1000000] [--dim 64] [--kernel fourier]

Both read the same mapped files and write a memory; the command also starts Python and imports.
The quicker of three runs counts on either side, taken in turn.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np

import discreet

SPEND = {"epsilon": 1.0, "delta": 1e-6, "scale": 2.0}


def write_rows(folder: pathlib.Path, rows: int, dim: int) -> None:
    """Write keys and values of length one, as float32."""
    rng = np.random.default_rng(0)
    for name in ("keys", "values"):
        array = rng.standard_normal((rows, dim), dtype=np.float32)
        array /= np.linalg.norm(array, axis=1, keepdims=True)
        np.save(folder / f"{name}.npy", array)


def library(folder: pathlib.Path, kernel: str) -> None:
    """Build and save by the library."""
    keys, values = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("keys", "values"))
    discreet.build(keys, values, kernel=kernel, **SPEND).save(folder / "library.safetensors")


def command(folder: pathlib.Path, kernel: str) -> None:
    """Build and save by the command."""
    options = [text for name, value in SPEND.items() for text in (f"--{name}", str(value))]
    subprocess.run(
        [
            *(sys.executable, "-m", "discreet", "build", "keys.npy", "values.npy"),
            *("-o", "command.safetensors", "--force", "--kernel", kernel, *options),
        ],
        cwd=folder,
        check=True,
        stdout=subprocess.DEVNULL,
    )


def seconds(work: Callable[[], None]) -> float:
    """Return how long some work takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    """Measure, and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--kernel", default="auto")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_rows(folder, given.rows, given.dim)
        times = [
            (
                seconds(lambda: library(folder, given.kernel)),
                seconds(lambda: command(folder, given.kernel)),
            )
            for _ in range(3)
        ]
        size = os.path.getsize(folder / "command.safetensors")
    called, ran = (min(each) for each in zip(*times, strict=True))
    print(f"library call {called:.2f} s, command {ran:.2f} s: {ran / called:.2f} times")
    print(f"{given.rows:,} x {given.dim}, kernel {given.kernel}, file of {size:,} bytes")


if __name__ == "__main__":
    main()
