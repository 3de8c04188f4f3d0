"""OpenDP's samplers are exact too, and slow: an independent implementation to agree with."""

import numpy as np
import opendp.prelude as dp
import pytest
from scipy import stats

from discreet.noise import DiscreteLaplace, RoundedGaussian, TruncatedLaplace

ALPHA = 1e-8
DRAWS = 30_000

dp.enable_features("contrib")


def opendp_laplace(scale):
    domain = dp.vector_domain(dp.atom_domain(T=int))
    mechanism = dp.m.make_laplace(domain, dp.l1_distance(T=int), scale=scale)
    return np.array(mechanism([0] * DRAWS), dtype=np.int64)


def opendp_gaussian(scale):
    domain = dp.vector_domain(dp.atom_domain(T=int))
    mechanism = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=scale)
    return np.array(mechanism([0] * DRAWS), dtype=np.int64)


def same_law_p_value(left, right):
    """Two-sample chi-square over bins of the pooled sample, for integers of any scale."""
    pooled = np.sort(np.concatenate([left, right]))
    edges = np.unique(pooled[:: len(pooled) // 40])
    table = [
        np.bincount(np.searchsorted(edges, side), minlength=len(edges) + 1)
        for side in (left, right)
    ]
    table = np.array(table)[:, np.sum(table, axis=0) > 20]
    return stats.chi2_contingency(table).pvalue


@pytest.mark.parametrize("scale", [0.7, 5.0, 1e6])
def test_discrete_laplace(scale):
    theirs = opendp_laplace(scale)
    assert same_law_p_value(DiscreteLaplace(scale=scale).sample(DRAWS), theirs) > ALPHA
    assert same_law_p_value(DiscreteLaplace(scale=scale * 1.5).sample(DRAWS), theirs) < ALPHA


def test_rounded_gaussian_where_rounded_and_discrete_are_the_same():
    # OpenDP draws the discrete Gaussian; at this scale the two laws differ by less than 1e-6.
    theirs = opendp_gaussian(1e4)
    assert same_law_p_value(RoundedGaussian(sigma=1e4).sample(DRAWS), theirs) > ALPHA
    assert same_law_p_value(RoundedGaussian(sigma=1.5e4).sample(DRAWS), theirs) < ALPHA


def test_truncated_laplace_is_laplace_given_the_bound():
    law = TruncatedLaplace(sensitivity=10, epsilon=0.5, delta=0.1)
    theirs = opendp_laplace(20.0)
    within = theirs[np.abs(theirs) <= law.bound]
    assert 0.5 * DRAWS < len(within) < 0.95 * DRAWS
    assert same_law_p_value(law.sample(DRAWS), within) > ALPHA
    assert same_law_p_value(law.sample(DRAWS), theirs) < ALPHA
