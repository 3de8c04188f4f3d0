"""The task has nearly the largest signal there is; rows change what methods say they change."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.kernels import Taylor
from discreet.paper import oracle
from discreet_benchmarks.paper import attention
from discreet_benchmarks.paper.attention import METHODS, Setting, task_of

pytestmark = pytest.mark.docs


@given(
    seed=st.integers(0, 2**32 - 1),
    dim=st.integers(1, 4),
    upper=st.floats(0.2, 2.5),
    sharp=st.booleans(),
)
def test_no_task_has_a_larger_spread(seed, dim, upper, sharp):
    rng = np.random.default_rng(seed)
    keys, queries = rng.random((30, dim)), rng.random((10, dim))
    if sharp:
        keys, queries = keys.round(), queries.round()
    values = rng.choice([-1.0, 1.0], (30, 1))
    answers = oracle.attention(upper * queries, upper * keys, values)
    most = Setting(upper=upper).largest_spread
    assert np.ptp(answers) <= 2 * most * (1 + 1e-9)
    assert answers.std() <= most * (1 + 1e-9)


@pytest.mark.parametrize("setting", [Setting(), Setting(upper=2.0, dim=4), Setting(bound=3.0)])
def test_the_task_has_nearly_that_spread_and_zero_is_the_best_constant(setting):
    task = task_of(setting)
    assert 0.85 * setting.largest_spread < task.spread <= setting.largest_spread
    assert task.relative_error(np.zeros_like(task.truth)) == pytest.approx(1, abs=0.01)
    assert task.relative_error(task.truth) == 0
    for rows in (task.keys, task.queries):
        assert rows.min() >= 0
        assert rows.max() <= setting.upper


def replaced(setting, rows, rng, sharp):
    """Return keys and values of two rows, either anywhere or at corners."""
    keys = rng.random((2, rows, setting.dim))
    values = rng.uniform(-1, 1, (2, rows, setting.columns))
    if sharp:
        keys, values = keys.round(), np.sign(values)
    return setting.upper * keys, setting.bound * values


@pytest.mark.parametrize("setting", [Setting(), Setting(dim=3, columns=2, upper=1.4, bound=2.0)])
def test_sums_of_features_change_by_at_most_what_is_claimed(setting):
    rng = np.random.default_rng(1)
    kernel = Taylor.on_box(setting.dim, upper=setting.upper, eps_s=setting.eps_s)
    tau = setting.bound * math.sqrt(setting.columns)
    largest = 0.0
    for sharp in (False, True):
        keys, values = replaced(setting, 4000, rng, sharp)
        weights = np.concatenate([values, np.full((2, 4000, 1), tau)], axis=2)
        both = kernel(keys)[..., None] * weights[:, :, None, :]
        largest = max(largest, np.linalg.norm(both[0] - both[1], axis=(1, 2)).max())
    claimed = attention.direct_change(setting)
    assert 0.99 * claimed < largest <= claimed * (1 + 1e-12)


@pytest.mark.parametrize("setting", [Setting(), Setting(columns=3, upper=0.5, bound=2.0)])
def test_items_change_by_at_most_what_is_claimed(setting):
    rng = np.random.default_rng(2)
    largest = 0.0
    for sharp in (False, True):
        keys, values = replaced(setting, 4000, rng, sharp)
        query = np.full(setting.dim, setting.upper)
        items = np.exp(keys @ query / setting.dim)[..., None]
        weights = np.concatenate([values, np.full((2, 4000, 1), setting.bound)], axis=2)
        both = items * weights
        largest = max(largest, np.linalg.norm(both[0] - both[1], axis=1).max())
    claimed = attention.item_change(setting)
    assert 0.99 * claimed < largest <= claimed * (1 + 1e-12)


@pytest.mark.parametrize("name", list(METHODS))
def test_every_method_answers_within_the_bounds_and_by_its_seed(name):
    setting = Setting(rows=64, bound=0.5, columns=2)
    task = task_of(setting)
    answers = METHODS[name](setting, task, 1)
    assert answers.shape == task.truth.shape
    assert np.linalg.norm(answers, axis=1).max() <= 0.5 * math.sqrt(2) * (1 + 1e-9)
    np.testing.assert_array_equal(answers, METHODS[name](setting, task, 1))
    if name != "zero":
        assert not np.array_equal(answers, METHODS[name](setting, task, 2))


@pytest.mark.parametrize("name", ["Σ w·P(x) directly", "memory", "noise on every item"])
def test_methods_find_the_truth_if_they_may_spend_enough(name):
    setting = Setting(rows=4096, epsilon=400.0, eps_s=0.01)
    task = task_of(setting)
    assert task.relative_error(METHODS[name](setting, task, 0)) < 0.15
