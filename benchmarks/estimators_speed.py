"""How long builds take, over the float32 products that they cannot do without."""

import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

import discreet
from discreet.features.fourier import UnitFourier

DIM, FREQUENCIES, OUTPUTS = 64, 256, 10
CHUNK = 20_000


def speed(counts: list[int]) -> dict[str, object]:
    """Return seconds of a build and of the products alone, and sizes of files, by rows.

    The products are ΦᵀΦ and ΦᵀV in float32 of as many features and rows, in chunks, of features
    that are already there: no map, no clipping, no rounding, no noise. The fastest of three,
    and of two builds, since neighbours come and go. Seconds are of the processor, over all
    threads: a build shares its work among threads, and would seem faster than it is.
    """
    measured = []
    for count in counts:
        keys, values = rows(count, DIM, 0), rows(count, OUTPUTS, 1)
        seconds, size = float("inf"), 0
        for _ in range(2):
            start = time.process_time()
            fitted = build(keys, values)
            seconds = min(seconds, time.process_time() - start)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "fitted.safetensors"
            fitted.save(path)
            size = path.stat().st_size
        plain = min(products(values) for _ in range(3))
        measured.append({"rows": count, "build": seconds, "products": plain, "file": size})
    return {
        "features": 2 * FREQUENCIES,
        "columns": DIM,
        "outputs": OUTPUTS,
        "sizes": measured,
    }


def rows(count: int, width: int, seed: int) -> np.ndarray:
    """Return float32 rows of length one."""
    made = np.random.default_rng(seed).standard_normal((count, width), dtype=np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def build(keys: np.ndarray, values: np.ndarray) -> discreet.LeastSquares:
    """Return a private regression."""
    waves = UnitFourier(DIM, frequencies=FREQUENCIES, scale=2.5, key_norm=1.0, query_norm=1.0)
    return discreet.least_squares(keys, values, epsilon=1.0, delta=1e-5, features=waves)


def products(values: np.ndarray) -> float:
    """Return the processor seconds of the float32 products alone."""
    features = rows(min(CHUNK, len(values)), 2 * FREQUENCIES, 2)
    second = np.zeros((features.shape[1], features.shape[1]), dtype=np.float32)
    first = np.zeros((features.shape[1], OUTPUTS), dtype=np.float32)
    with threadpool_limits(1):
        start = time.process_time()
        for at in range(0, len(values), CHUNK):
            part = values[at : at + CHUNK]
            some = features[: len(part)]
            second += some.T @ some
            first += some.T @ part
        return time.process_time() - start


ROUNDS_ROWS, ROUNDS_DIM, ROUNDS_WAVES, ROUNDS_CLASSES = 55_000, 784, 512, 10
PASSES = 17  # 16 rounds, and one more to judge


def rounds_speed() -> dict[str, object]:
    """Return seconds of a classifier, and of the same rounds in plain float32 without privacy.

    The plain ones map rows once (cos and sin of products), too, and do as many rounds: logits,
    softmax, clipping, the sum of products. Both are allowed all processors; seconds are of the
    processor, over all threads, the fastest of two runs. Peak memory is of a process of its own.
    """
    keys = rows(ROUNDS_ROWS, ROUNDS_DIM, 0)
    labels = np.random.default_rng(1).integers(0, ROUNDS_CLASSES, ROUNDS_ROWS)
    private = min(_seconds(lambda: _classifier(keys, labels)) for _ in range(2))
    plain = min(_seconds(lambda: _plain_rounds(keys, labels)) for _ in range(2))
    return {
        "rows": ROUNDS_ROWS,
        "columns": ROUNDS_DIM,
        "features": 2 * ROUNDS_WAVES,
        "passes": PASSES,
        "private": private,
        "plain": plain,
        "memory": _peak(),
    }


def _seconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def _classifier(keys: np.ndarray, labels: np.ndarray) -> discreet.SoftmaxRegression:
    waves = UnitFourier(
        keys.shape[1], frequencies=ROUNDS_WAVES, scale=5.0, key_norm=1.0, query_norm=1.0
    )
    return discreet.softmax_regression(
        keys, labels, classes=range(ROUNDS_CLASSES), epsilon=1.0, delta=1e-5, features=waves
    )


def _plain_rounds(keys: np.ndarray, labels: np.ndarray) -> np.ndarray:
    rng = np.random.default_rng(2)
    waves = rng.standard_normal((keys.shape[1], ROUNDS_WAVES), dtype=np.float32)
    angles = keys @ waves
    features = np.hstack([np.cos(angles), np.sin(angles)]) / np.float32(ROUNDS_WAVES**0.5)
    wanted = np.eye(ROUNDS_CLASSES, dtype=np.float32)[labels]
    weights = np.zeros((features.shape[1], ROUNDS_CLASSES), dtype=np.float32)
    for _ in range(PASSES):
        shares = features @ weights
        shares -= shares.max(axis=1, keepdims=True)
        np.exp(shares, out=shares)
        shares /= shares.sum(axis=1, keepdims=True)
        shares -= wanted
        shares *= np.minimum(1, 0.2 / np.linalg.norm(shares, axis=1))[:, None]
        weights -= np.float32(1e-3) * (features.T @ shares)
    return weights


# Linux forgets the largest size so far when it is told to: rows were made of larger ones.
_PEAK = """
import pathlib, re
import estimators_speed as speed
import numpy as np
def size(name):
    status = pathlib.Path("/proc/self/status").read_text()
    return 1024 * int(re.search(name + r":\\s+(\\d+) kB", status)[1])
keys = speed.rows(speed.ROUNDS_ROWS, speed.ROUNDS_DIM, 0)
labels = np.random.default_rng(1).integers(0, speed.ROUNDS_CLASSES, speed.ROUNDS_ROWS)
pathlib.Path("/proc/self/clear_refs").write_text("5")
before = size("VmRSS")
speed._classifier(keys, labels)
print(size("VmHWM") - before)
"""


def _peak() -> int:
    """Return by how many bytes a process grows that has its rows already, at most."""
    folder = pathlib.Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-c", _PEAK], check=True, capture_output=True, text=True, cwd=folder
    )
    return int(done.stdout)
