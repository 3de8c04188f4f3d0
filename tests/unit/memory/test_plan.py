import math

import numpy as np
import pytest
from data import unit_rows
from hypothesis import given
from hypothesis import strategies as st

import discreet
from discreet import InvalidInput
from discreet.memory.settings import default_tau, spread_mass
from discreet.testing import Silent

SPEND = {"epsilon": 1.0, "delta": 1e-6}
SHAPE = {"rows": 5000, "key_dim": 16, "value_dim": 8}


def test_a_plan_foretells_the_memory():
    for options in (
        {},
        {"scale": 1.0},
        {"neighbours": "replace"},
        {"value_norm": 2.0, "key_norm": 3.0, "query_norm": 0.5, "tau": 0.4},
        {"kernel": "fourier", "scale": 3.0},
    ):
        plan = discreet.plan(**SHAPE, **SPEND, **options)
        memory = discreet.build(
            unit_rows(50, 16), unit_rows(50, 8), **SPEND, rows_hint=5000, **options
        )
        assert plan.kernel == memory.kernel
        assert plan.scale == memory.scale
        assert plan.state_bytes == memory.nbytes
        query = unit_rows(1, 16) * memory.kernel.query_norm
        num_err, den_err = memory.sums_stderr(query)
        assert plan.numerator_stderr == pytest.approx(num_err[0], rel=1e-6)
        assert plan.denominator_stderr == pytest.approx(den_err[0], rel=1e-6)
        assert plan.rows_needed == pytest.approx(memory.card.to_dict()["rows_needed"], rel=0.1)


def test_heads_and_records_cost_what_they_cost():
    one = discreet.plan(**SHAPE, **SPEND, scale=1.0)
    four = discreet.plan(**SHAPE, **SPEND, scale=1.0, heads=4)
    record = discreet.plan(**SHAPE, **SPEND, scale=1.0, by_record=True, group_rows=3.0)
    assert four.numerator_stderr == pytest.approx(2 * one.numerator_stderr, rel=1e-3)
    assert record.numerator_stderr == pytest.approx(3 * one.numerator_stderr, rel=1e-3)
    assert four.state_bytes == 4 * one.state_bytes


def test_the_predicted_error_of_evenly_spread_rows_is_met():
    keys, values = unit_rows(20_000, 8), unit_rows(20_000, 4, seed=1)
    queries = unit_rows(200, 8, seed=2)
    options = {**SPEND, "scale": 2.0, "rows_hint": 20_000}
    plan = discreet.plan(rows=20_000, key_dim=8, value_dim=4, **SPEND, scale=2.0)
    quiet = discreet.build(keys, values, **options, entropy=Silent())
    errors = [
        discreet.build(keys, values, **options).attend(queries) - quiet.attend(queries)
        for _ in range(12)
    ]
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(plan.worst_stderr, rel=0.15)
    assert plan.stderr < plan.worst_stderr
    narrow = discreet.plan(rows=20_000, key_dim=3, value_dim=4, **SPEND, scale=2.0)
    assert narrow.worst_stderr == narrow.stderr


def test_at_the_recommended_scale_rows_are_twice_the_error():
    plan = discreet.plan(**SHAPE, **SPEND)
    both = math.hypot(plan.stderr, plan.kernel_stderr * math.sqrt(8))  # of whole vectors
    assert both == pytest.approx(1 / 2, rel=0.02)


def test_a_sharp_temperature_is_warned_of_with_one_that_would_do():
    sharp = discreet.plan(**SHAPE, **SPEND, scale=30.0)
    assert "too sharp" in sharp.warning
    assert f"scale={sharp.recommended_scale:.3g}" in sharp.warning
    assert sharp.warning in str(sharp)
    fine = discreet.plan(**SHAPE, **SPEND, scale=sharp.recommended_scale)
    assert fine.warning is None
    assert fine.recommended_scale == sharp.recommended_scale


def test_the_recommended_scale_is_taken_by_default_and_grows_with_rows_and_epsilon():
    scales = [discreet.plan(**SHAPE | {"rows": n}, **SPEND).scale for n in (100, 10_000, 1_000_000)]
    assert scales == sorted(set(scales))
    scales = [discreet.plan(**SHAPE, epsilon=epsilon, delta=1e-6).scale for epsilon in (0.1, 1, 10)]
    assert scales == sorted(set(scales))
    stretched = discreet.plan(**SHAPE, **SPEND, key_norm=2.0, query_norm=5.0)
    assert stretched.scale == pytest.approx(discreet.plan(**SHAPE, **SPEND).scale / 10, rel=0.01)


def test_the_text_explains_the_choice_and_ends_in_a_verdict():
    text = str(discreet.plan(**SHAPE, **SPEND))
    for part in ("5,000 rows", "recommended", "no polynomial", "95% of the time", "bytes", "rows"):
        assert part in text
    assert "reaches eps_s" in str(discreet.plan(**SHAPE, **SPEND, scale=1.0))
    assert "as asked" in str(discreet.plan(**SHAPE, **SPEND, scale=1.0, kernel="fourier"))


@given(attended=st.floats(1, 1e6))
def test_more_attended_rows_mean_less_error(attended):
    plan = discreet.plan(**SHAPE, **SPEND, scale=1.0)
    assert plan.stderr_if(attended=2 * attended) == pytest.approx(
        plan.stderr_if(attended=attended) / 2
    )


@pytest.mark.parametrize("dim", [1, 2, 3, 64, 1000])
@pytest.mark.parametrize("logit", [0.1, 1.0, 8.0, 20.0])
def test_the_mass_of_evenly_spread_rows(dim, logit):
    """E[e^(t·cos)] by quadrature over the angle."""
    if dim == 1:
        expected = math.log(math.cosh(logit))
    else:
        angle = np.linspace(0, np.pi, 200_001)[1:-1]
        log_weights = (dim - 2) * np.log(np.sin(angle))
        weights = np.exp(log_weights - log_weights.max())
        expected = math.log(np.sum(weights * np.exp(logit * np.cos(angle))) / np.sum(weights))
    assert spread_mass(logit, dim) == pytest.approx(expected, rel=2e-3, abs=1e-6)


def test_tau_falls_with_the_width_of_values():
    assert default_tau(4.0, 1) == 1.0
    assert default_tau(4.0, 16) == 0.5


@pytest.mark.parametrize("name", ["rows", "key_dim", "value_dim", "heads"])
def test_bad_sizes_are_named(name):
    with pytest.raises(InvalidInput, match=name):
        discreet.plan(**{**SHAPE, **SPEND, name: 0})
