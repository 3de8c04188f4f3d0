"""The memory against the literal construction, on the same rows and with the same budget."""

import warnings

import numpy as np
import pytest

import discreet
from discreet.paper import DPCrossAttention, oracle

ROWS, DIM = 4096, 4


@pytest.mark.slow
def test_the_numerators_of_the_memory_are_thousands_of_times_nearer():
    rng = np.random.default_rng(0)
    keys, queries = rng.uniform(0, 1, (ROWS, DIM)), rng.uniform(0, 1, (64, DIM))
    values = rng.uniform(-1, 1, (ROWS, DIM))
    truth, _ = oracle.attention_sums(queries, keys, values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # it says itself that its answers are noise
        paper = DPCrossAttention(
            keys,
            values,
            upper=1.0,
            value_bound=1.0,
            epsilon=1.0,
            delta=5e-7,
            delta_prime=5e-7,
            c=0.1,
            eps_s=0.05,
            p_f=0.1,
        )
    # The same bounds as Euclidean norms: [0, 1]^4 and ±1 in four columns.
    memory = discreet.build(
        keys,
        values,
        epsilon=1.0,
        delta=1e-6,
        neighbours="replace",
        scale=1 / DIM,
        key_norm=2.0,
        query_norm=2.0,
        value_norm=2.0,
        eps_s=0.001,
    )
    ours, theirs = (
        np.sqrt(np.mean((mechanism.sums(queries)[0] - truth) ** 2)) for mechanism in (memory, paper)
    )
    assert theirs >= 5_000 * ours
