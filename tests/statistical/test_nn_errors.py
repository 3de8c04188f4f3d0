"""1.96 standard errors of a module's outputs hold 95% of the time against the module itself."""

import numpy as np
import pytest
from attention import multihead, rows

torch = pytest.importorskip("torch", reason="needs the extra `torch`")

import discreet
from discreet.nn import PrivateCrossAttention, calibrate, from_multihead
from discreet.readers.attention import comparison as oracle
from discreet.testing import Seeded, Silent

BUILDS, ROWS, QUERIES, WIDTH = 8, 3_000, 60, 16

# An honest 95% is within; two thirds of the right scale hold 81%, three halves 99.7%.
FEWEST, MOST = 0.91, 0.99


def layers():
    """Layers of other weights each, so of other errors, with keys and values that clip nothing."""
    for seed in range(BUILDS):
        mha = multihead(WIDTH, 4, seed=seed, shrink=0.9)
        context, query = rows(ROWS, WIDTH, seed=seed), rows(QUERIES, WIDTH, seed=100 + seed)
        yield seed, mha, context, query, calibrate(mha, (query, context), quantile=1.0)


@torch.no_grad()
def judged(entropy, **options):
    """How far outputs are off, in their standard errors; and these, over how they differ."""
    off, sizes = [], []
    for seed, mha, context, query, bounds in layers():
        private = from_multihead(
            mha, context, delta=1e-6, bounds=bounds, entropy=entropy(seed), **options
        )
        exact = mha(query, context, context)[0]
        stderr = private.stderr(query)
        assert stderr.shape == exact.shape
        off.append(((private(query)[0] - exact) / stderr).abs().numpy())
        sizes.append(float(stderr.median() / exact.std(dim=0).mean()))
    return np.concatenate(off), np.median(sizes)


def share(off, scale=1.0):
    return np.mean(off <= 1.96 * scale)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "features"),
    [pytest.param(2.0, 4096, marks=pytest.mark.slow), (16.0, 512)],
    ids=["mostly noise", "noise and kernel"],
)
def test_intervals_of_random_features_hold_as_often_as_they_should(epsilon, features):
    off, _ = judged(Seeded, epsilon=epsilon, kernel="fourier", features=features)
    assert FEWEST <= share(off) <= MOST
    assert share(off, 2 / 3) < FEWEST
    assert share(off, 3 / 2) > MOST


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::discreet.PrivacyLeakWarning")
def test_the_part_of_the_kernel_is_right_without_any_noise():
    """At an ε at which the noise, which a reader counts all the same, is nothing."""
    off, size = judged(lambda _: Silent(), epsilon=500.0, kernel="fourier", features=256)
    assert size > 0.01
    assert FEWEST <= share(off) <= MOST
    assert share(off, 2 / 3) < FEWEST
    assert share(off, 3 / 2) > MOST


def test_certified_kernels_hold_at_least_as_often_and_say_something():
    options = {"kernel": "minimax", "eps_s": 0.01, "features": 10**5}
    off, size = judged(Seeded, epsilon=4.0, **options)
    assert share(off) >= 0.95
    assert size < 1.5


@torch.no_grad()
def test_queries_that_share_a_head_are_taken_to_be_wrong_together():
    """As in attention with fewer key heads than query heads: never too narrow."""
    keys, values = rows(2, ROWS, 4).numpy() / 2, rows(2, ROWS, 3, seed=3).numpy() / 3
    asked, weight = rows(1, QUERIES, 4 * 4, seed=4) / 2, rows(5, 4 * 3, seed=5)
    project = torch.nn.Linear(12, 5)
    project.weight.copy_(weight)
    bounds = {"scale": 2.0, "key_norm": 2.0, "query_norm": 2.0, "value_norm": 2.0}
    kernel = {"kernel": "fourier", "features": 512}
    off = []
    for seed in range(BUILDS):
        memory = discreet.build(
            keys, values, epsilon=8.0, delta=1e-6, entropy=Seeded(seed), **bounds, **kernel
        )
        module = PrivateCrossAttention(memory, repeats=2, out_proj=project, batch_first=True)
        queries = asked.reshape(QUERIES, 4, 4).transpose(0, 1).double().numpy()
        exact = [
            oracle.attention(queries[h], keys[h // 2], values[h // 2], scale=2.0) for h in range(4)
        ]
        exact = project(torch.from_numpy(np.concatenate(exact, axis=1)).float())
        off.append(((module(asked)[0][0] - exact) / module.stderr(asked)[0]).abs().numpy())
    assert share(np.concatenate(off)) >= 0.95
    assert share(np.concatenate(off), 1 / 2) < 0.95
