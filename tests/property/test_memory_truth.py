"""Without noise, no answer is further from exact attention than a certified kernel says."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet.kernels import Minimax, Taylor
from discreet.readers.attention import comparison as oracle
from discreet.readers.attention.reader import Reader
from discreet.testing import Silent


def rows(seed, count, dim, away):
    """Unit vectors; some of them opposite to the first axis, along which queries ask."""
    rng = np.random.default_rng(seed)
    keys = rng.normal(size=(count, dim))
    opposite = rng.random(count) < away
    keys[opposite] = 0.3 * keys[opposite] - 2 * np.eye(1, dim)
    return keys / np.linalg.norm(keys, axis=1, keepdims=True)


def without_noise(keys, values, queries, kernel, neighbours="replace"):
    """Return answers, and 1.96 of the errors that are left of them without noise."""
    options = {"epsilon": 1.0, "delta": 1e-6, "neighbours": neighbours, "entropy": Silent()}
    memory = discreet.build(keys, values, kernel=kernel, **options)
    # So little noise that the number of rows is known, too.
    reader = replace(Reader.of(replace(memory.released, sigma=0.5)), deviation=0.0)
    answers, stderr = reader.answers_with_stderr(queries[None], reader.arrays)
    return answers[0], 1.96 * stderr[0]


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("kind", [Minimax, Taylor])
@given(
    seed=st.integers(0, 2**32),
    dim=st.integers(1, 4),
    scale=st.floats(0.5, 6.0),
    degree=st.integers(1, 9),
    away=st.sampled_from([0.0, 0.9, 1.0]),
    length=st.floats(0.0, 1.0),
)
@settings(max_examples=25)
def test_no_answer_is_further_off_than_the_certificate(  # noqa: PLR0917
    kind, neighbours, seed, dim, scale, degree, away, length
):
    keys = rows(seed, 60, dim, away)
    values = np.sign(np.random.default_rng(seed).normal(size=(60, 2))) / np.sqrt(2)
    queries = length * np.concatenate([np.eye(1, dim), -np.eye(1, dim), keys[:3]])
    kernel = kind(dim, degree=degree, scale=scale, key_norm=1.0, query_norm=1.0)
    answers, margin = without_noise(keys, values, queries, kernel, neighbours)
    exact = oracle.attention(queries, keys, values, scale=scale)
    assert np.all(np.abs(answers - exact) <= margin + 3e-5)  # values have been rounded, too


def test_rounding_counts_where_all_rows_are_far_from_the_query():
    """Weights are e^-6 there: what rounding does to them is more than the polynomial's error."""
    keys, query = rows(1, 60, 3, 1.0), np.eye(1, 3)
    values = np.sign(np.random.default_rng(1).normal(size=(60, 2))) / np.sqrt(2)
    kernel = Minimax(3, degree=14, scale=6.0, key_norm=1.0, query_norm=1.0)
    answers, margin = without_noise(keys, values, query, kernel)
    error = np.max(np.abs(answers - oracle.attention(query, keys, values, scale=6.0)))
    assert error > 100 * kernel.error
    assert error <= np.min(margin)
    near, close = without_noise(-keys, values, query, kernel)
    assert np.max(close) < 0.01
    assert np.all(np.abs(near - oracle.attention(query, -keys, values, scale=6.0)) <= close)


def test_a_denominator_is_clamped_to_what_so_many_rows_can_give():
    """Rows are counted at the origin, where the polynomial is not one."""
    keys, values = np.full((1_000, 1), -1.0), np.full((1_000, 1), 0.98)
    kernel = Minimax(1, degree=1, scale=0.3, key_norm=1.0, query_norm=1.0)
    answers, margin = without_noise(keys, values, np.ones((1, 1)), kernel, "add_remove")
    assert abs(kernel.coefficients[0] - 1) > 0.02
    assert np.all(np.abs(answers - 0.98) <= margin)
