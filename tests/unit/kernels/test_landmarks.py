"""Features from public rows: the contract of all kernels, and what is theirs alone."""

import numpy as np
import pytest
from data import unit_rows
from kernel_contract import KernelContract

from discreet.kernels import Landmarks

BOUNDS = {"scale": 2.0, "key_norm": 1.0, "query_norm": 1.0}


def like(count, dim, *, seed=0, centres=6):
    """Rows of length one in a few clusters."""
    rng = np.random.default_rng(seed)
    middle = unit_rows(centres, dim, seed=99)[rng.integers(centres, size=count)]
    rows = middle + 0.5 * unit_rows(count, dim, seed=seed + 1)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture(
    scope="module",
    params=[(3, 2.0, 1.0, 1.0, 300), (2, 0.5, 30.0, 1e-3, 40), (3, 5.0, 0.01, 7.0, 512)],
    ids=str,
)
def kernel(request):
    """Landmarks that span all there is: in few dimensions that is possible."""
    dim, logit, key_norm, query_norm, rank = request.param
    rows = unit_rows(900, dim, seed=8) * key_norm
    rows[::3] *= 0.5
    scale = logit / key_norm / query_norm
    return Landmarks(rows, rank=rank, scale=scale, key_norm=key_norm, query_norm=query_norm)


class TestLandmarks(KernelContract):
    reached = 1e-3
