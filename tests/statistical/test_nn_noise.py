"""The noise on every head of a model is what its guarantee needs for all heads together."""

import math

import numpy as np
import pytest
from attention import multihead, rows
from scipy import stats

pytest.importorskip("torch", reason="needs the extra `torch`")

from discreet.accounting import gaussian_sigma
from discreet.nn import from_multihead
from discreet.testing import Seeded, Silent

SPEND = {"epsilon": 1.0, "delta": 1e-6}
HEADS, BUILDS = 4, 12

# Each test is run at this level; seeds are fixed, so it fails always or never.
ALPHA = 1e-4


def noise():
    """Noise of each head, in units of what one row can change there, shape (heads, numbers)."""
    mha = multihead(16, HEADS)
    options = {"kernel": "fourier", "features": 32, "largest_logit": 2.0, **SPEND}
    silent, *noisy = (
        from_multihead(mha, rows(40, 16), entropy=entropy, **options).memories
        for entropy in (Silent(), *map(Seeded, range(BUILDS)))
    )
    found = []
    for head in range(HEADS):
        quiet = silent[head].released
        sensitivity = quiet.layout.row_sensitivity(quiet.guarantee.neighbours)
        apart = [each[head].released.state - quiet.state for each in noisy]
        found.append(np.concatenate([each.ravel() for each in apart]) / sensitivity)
    return np.array(found)


def test_each_head_has_the_noise_of_all_heads_and_no_other():
    sigma = gaussian_sigma(sensitivity=math.sqrt(HEADS), **SPEND)
    for head in noise():
        assert len(head) > 1_000
        assert stats.kstest(head, "norm", args=(0, sigma)).pvalue > ALPHA
        for wrong in (2 / 3, 3 / 2):
            assert stats.kstest(head, "norm", args=(0, sigma * wrong)).pvalue < ALPHA


def test_the_noise_of_one_head_tells_nothing_of_another():
    between = np.corrcoef(noise())[np.triu_indices(HEADS, 1)]
    assert np.max(np.abs(between)) < 5 / math.sqrt(BUILDS * 32 * 5)
