"""What `discreet build` costs beside the library call that it makes, in one run.

Run: python benchmarks/command.py [--rows 1000000] [--dim 64] [--kernel fourier]

Both read the same mapped files and write a memory, each time in a process of its own, because the
first call of a process takes up to a third longer than later ones: its memory is not warm. Of the
library, only the call is timed; the command's time includes starting Python and all imports. The
quicker of three runs counts on either side, taken in turn.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

SPEND = {"epsilon": 1.0, "delta": 1e-6, "scale": 2.0}


def write_rows(folder: pathlib.Path, rows: int, dim: int) -> None:
    """Write keys and values of length one, as float32."""
    rng = np.random.default_rng(0)
    for name in ("keys", "values"):
        array = rng.standard_normal((rows, dim), dtype=np.float32)
        array /= np.linalg.norm(array, axis=1, keepdims=True)
        np.save(folder / f"{name}.npy", array)


CALL = """
import time, numpy, discreet
keys, values = (numpy.load(name, mmap_mode="r") for name in ("keys.npy", "values.npy"))
build = discreet.build
start = time.perf_counter()
build(keys, values, kernel={kernel!r}, **{spend!r}).save("library.safetensors")
print(time.perf_counter() - start)
"""


def library(folder: pathlib.Path, kernel: str) -> float:
    """Return the seconds that the call takes, with saving."""
    script = CALL.format(kernel=kernel, spend=SPEND)
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, check=True, capture_output=True, text=True
    )
    return float(done.stdout)


def command(folder: pathlib.Path, kernel: str) -> float:
    """Return the seconds that the command takes, from start to end."""
    start = time.perf_counter()
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
        times = [(library(folder, given.kernel), command(folder, given.kernel)) for _ in range(3)]
        size = os.path.getsize(folder / "command.safetensors")
    called, ran = (min(each) for each in zip(*times, strict=True))
    print(f"library call {called:.2f} s, command {ran:.2f} s: {ran / called:.2f} times")
    print(f"{given.rows:,} x {given.dim}, kernel {given.kernel}, file of {size:,} bytes")


if __name__ == "__main__":
    main()
