"""The noise by formulas is that of structures that are built."""

import math

import numpy as np
import pytest
from scipy import stats

from discreet.paper.design import node_noise
from discreet.paper.options import Noise
from discreet.testing import Seeded, Silent
from discreet_benchmarks.paper import forecast
from discreet_benchmarks.paper.attention import (
    LARGEST,
    PAPER,
    TIGHT,
    TREES,
    Setting,
    structure,
    task_of,
)
from discreet_benchmarks.paper.forecast import Design

pytestmark = pytest.mark.docs

SETTINGS = [
    Setting(rows=64),
    Setting(rows=128, dim=1, epsilon=4.0),
    Setting(rows=64, dim=3, eps_s=0.3, delta_prime=1e-9),
    Setting(rows=64, upper=1.5, p_f=0.1),
    Setting(rows=32, columns=3, bound=2.5, delta=1e-4),
]


@pytest.mark.parametrize("setting", SETTINGS, ids=repr)
@pytest.mark.parametrize("name", list(TREES))
def test_variances_copies_and_c_are_those_of_a_structure(setting, name):
    task, design = task_of(setting), forecast.design_of(setting)
    built = structure(setting, task.keys, task.values, Silent(), **TREES[name])
    if name == TIGHT:
        node = totals = forecast.tight_variance(design)
    else:
        design = design.as_built()
        c = 0.1 if name == PAPER else forecast.largest_c(design)
        assert built.c == pytest.approx(c, rel=1e-6)
        node, totals = forecast.paper_variance(design, c), forecast.totals_variance(design)
    assert built.copies == design.copies
    at = design.net.snap(task.queries)
    above, below = forecast.query_variances(design, at, node=node, totals=totals)
    real_above, real_below = built.variance(task.queries)
    np.testing.assert_allclose(real_below, below, rtol=1e-4)
    np.testing.assert_allclose(real_above[:, 0], setting.bound**2 * above, rtol=1e-4)


def test_the_worst_query_is_the_far_corner():
    design = Design(2, 7, 2)
    corner = np.ones((1, 2))
    _, variance = forecast.query_variances(design, corner, node=3.0, totals=0.0)
    assert forecast.worst_noise(design, 3.0) == pytest.approx(math.sqrt(variance[0]))
    inside = np.random.default_rng(0).random((100, 2))
    _, others = forecast.query_variances(design, inside, node=3.0, totals=0.0)
    assert np.all(others <= variance)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 1e-8), (0.3, 1e-3), (2.0, 0.1)])
def test_continuous_and_integer_laplace_have_one_variance(epsilon, delta):
    integer = node_noise(Noise.TRUNCATED_LAPLACE, epsilon=epsilon, delta=delta).variance
    assert forecast.laplace_variance(epsilon, delta) == pytest.approx(integer, rel=1e-5)


def test_the_proof_wants_2651_copies_where_the_code_has_5():
    entry = Design(2, 10, 2)
    assert entry.as_proved().copies == 2651
    assert entry.as_built().copies == 5


@pytest.mark.parametrize("copies", [1, 3, 5, 6, 7, 41])
def test_medians_of_copies_spread_as_computed(copies):
    draws = np.random.default_rng(copies).normal(size=(40_000, copies))
    spread = np.median(draws, axis=1).std()
    factor = forecast.median_factor(copies)
    assert spread == pytest.approx(factor, rel=0.03)
    assert not 0.97 < spread / (factor * 2 / 3) < 1.03


def test_the_spread_of_a_median_of_three_is_known():
    # 1 - √3/π: Jones, American Mathematical Monthly 55 (1948).
    assert forecast.median_factor(3) ** 2 == pytest.approx(1 - math.sqrt(3) / math.pi, abs=1e-6)


def test_more_rows_than_a_machine_holds_need_no_structure():
    design = Design(2, 60, 3).as_proved()
    assert forecast.answer_noise(design, forecast.tight_variance(design)) > 0
    # All but normal: the variance of a node grows as the number of nodes.
    few, many = Design(2, 10, 3), Design(2, 10, 3, copies=100)
    ratio = forecast.tight_variance(many) / forecast.tight_variance(few)
    assert ratio == pytest.approx(100, rel=0.02)


def test_the_parts_of_a_budget_are_spent_in_full():
    design = Design(2, 10, 3)
    third, largest = forecast.largest_c_of_third(design), forecast.largest_c(design)
    assert 0.1 < third < largest
    by_c = forecast.paper_variance(design, largest)
    assert forecast.spent_variance(design) < by_c < forecast.paper_variance(design, 0.1)


@pytest.mark.slow
@pytest.mark.parametrize("name", [LARGEST, TIGHT])
def test_forecast_errors_are_the_measured_ones(name):
    setting = Setting(rows=256, epsilon=20.0)
    task = task_of(setting)
    errors = []
    for seed in range(60):
        built = structure(setting, task.keys, task.values, Seeded(seed), **TREES[name])
        errors.append(task.relative_error(built.query(task.queries)) ** 2)
    measured = math.sqrt(np.mean(errors))
    error = stats.sem(errors) / (2 * measured)
    computed = forecast.forecast_trees(setting, name)
    assert abs(measured - computed) < 4 * error
    assert abs(measured - 1.5 * computed) > 4 * error
    assert abs(measured - computed / 1.5) > 4 * error
