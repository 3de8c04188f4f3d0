"""How long least squares takes to build: over the float32 products that it cannot do without."""

import pathlib
import tempfile
import time

import numpy as np
from threadpoolctl import threadpool_limits

import discreet
from discreet.regression import Waves

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
    waves = Waves(DIM, frequencies=FREQUENCIES, scale=2.5, key_norm=1.0, query_norm=1.0)
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
