"""The memory's error is what it says: the cost of one single query, whatever the kernel is."""

import math
from functools import cache

import numpy as np
import pytest
from data import unit_rows
from map_contract import landmarks
from scipy import stats

import discreet
from discreet.accounting import gaussian_sigma
from discreet.kernels import Fourier, Minimax, Taylor
from discreet.testing import Seeded, Silent

SPEND = {"epsilon": 1.0, "delta": 1e-6}
BUILDS = 200
VALUE_DIM = 16

# Each test is run at this level; seeds are fixed, so it fails always or never.
ALPHA = 1e-4


def kernels(dim):
    bounds = {"scale": 0.5, "key_norm": 1.5, "query_norm": 0.8}
    return [
        Taylor(dim, degree=2, **bounds),
        Minimax(dim, degree=2, **bounds),
        Fourier(dim, frequencies=128, **bounds),
        landmarks(dim, rank=100, **bounds),
    ]


@cache
def numerator_errors(kind, dim):
    """Noisy minus silent numerators at one query of the largest length, shape (builds, d_v).

    As features are read plainly: the noise of a linear readout that does not depend on the state.
    """
    kernel = kernels(dim)[kind]
    keys, vectors = unit_rows(30, dim) * 1.5, unit_rows(30, VALUE_DIM, seed=1) * 2
    query = unit_rows(1, dim, seed=2) * 0.8
    options = {**SPEND, "kernel": kernel, "value_norm": 2.0, "tau": 0.5}
    quiet = discreet.build(keys, vectors, **options, entropy=Silent()).plain
    truth, _ = quiet.sums(query)
    memories = (
        discreet.build(keys, vectors, **options, entropy=Seeded(seed)).plain
        for seed in range(BUILDS)
    )
    errors = np.array([memory.sums(query)[0][0] - truth[0] for memory in memories])
    return errors, float(quiet.sums_stderr(query)[0][0])


# Taylor and minimax polynomials have the same features of wide keys, and as many.
@pytest.mark.parametrize(
    ("kind", "dim"), [(0, 4), (1, 4), (2, 4), (3, 4), (1, 64), (2, 64), (3, 64)]
)
def test_the_error_of_a_worst_case_query_is_predicted_and_is_that_of_one_query(kind, dim):
    kernel = kernels(dim)[kind]
    errors, predicted = numerator_errors(kind, dim)
    measured = np.sqrt(np.mean(errors**2))
    assert measured == pytest.approx(predicted, rel=0.03)
    single = gaussian_sigma(**SPEND) * math.exp(kernel.largest_logit) * math.hypot(2.0, 0.5)
    assert measured <= 1.05 * single
    assert predicted <= 1.01 * single


@pytest.mark.parametrize("kind", range(4), ids=["taylor", "minimax", "fourier", "landmarks"])
def test_the_noise_is_normal_with_the_predicted_scale_and_no_other(kind):
    errors, predicted = numerator_errors(kind, 4)
    sample = errors.ravel()
    assert stats.kstest(sample, "norm", args=(0, predicted)).pvalue > ALPHA
    for wrong in (2 / 3, 3 / 2):
        assert stats.kstest(sample, "norm", args=(0, predicted * wrong)).pvalue < ALPHA


def test_noise_is_independent_between_columns_and_builds():
    errors, predicted = numerator_errors(2, 4)
    correlations = np.corrcoef(errors.T)[np.triu_indices(VALUE_DIM, 1)]
    assert np.abs(correlations).max() < 6 / math.sqrt(BUILDS)
    assert abs(errors.mean()) < 5 * predicted / math.sqrt(errors.size)


@pytest.mark.parametrize("kernel", ["minimax", "fourier"])
def test_intervals_of_two_standard_errors_cover_the_noiseless_answer(kernel):
    """95% intervals hold 93% to 97% of the time where the denominator is clear of zero."""
    keys = np.concatenate([unit_rows(600, 6), np.tile(unit_rows(1, 6, seed=7), (900, 1))])
    values = np.concatenate([unit_rows(600, 3, seed=1), np.tile([0.6, -0.5, 0.4], (900, 1))])
    queries = np.concatenate([unit_rows(60, 6, seed=3), np.tile(keys[-1:], (10, 1))])
    options = {**SPEND, "scale": 1.0, "kernel": kernel}
    quiet = discreet.build(keys, values, **options, entropy=Silent()).plain.attend(queries)
    inside, total = 0, 0
    for seed in range(120):
        memory = discreet.build(keys, values, **options, entropy=Seeded(seed)).plain
        out, error = memory.attend(queries), memory.noise_stderr(queries)
        clear = memory.sums(queries)[1] > 5 * memory.sums_stderr(queries)[1]
        inside += np.sum(np.abs(out - quiet)[clear] <= 1.96 * error[clear])
        total += 3 * np.sum(clear)
    assert total > 10_000
    assert 0.93 <= inside / total <= 0.97


def test_silent_noise_is_what_errors_are_measured_against():
    quiet = [
        discreet.build(unit_rows(9, 3), unit_rows(9, 2), **SPEND, scale=1.0, entropy=Silent())
        for _ in range(2)
    ]
    assert np.array_equal(quiet[0].released.state, quiet[1].released.state)
