import math

import numpy as np
import pytest
from data import unit_rows
from hypothesis import given
from hypothesis import strategies as st

import discreet
from discreet import InvalidInput
from discreet.kernels import Fourier
from discreet.kernels.sphere import answer_length, log_mean_weight
from discreet.memory import oracle
from discreet.memory.settings import default_tau
from discreet.memory.temperature import Spread, usual_directions
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


@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_the_predicted_error_of_evenly_spread_rows_is_met(scale):
    """Values are the keys themselves, so that answers have the length that is predicted."""
    keys, queries = unit_rows(20_000, 8), unit_rows(200, 8, seed=2)
    plan = discreet.plan(rows=20_000, key_dim=8, value_dim=8, **SPEND, scale=scale)
    options = {**SPEND, "scale": scale, "rows_hint": 20_000}
    quiet = discreet.build(keys, keys, **options, entropy=Silent()).attend(queries)
    lengths = np.linalg.norm(quiet, axis=1)
    assert lengths.mean() == pytest.approx(answer_length(scale, 8), rel=0.07)
    errors = [discreet.build(keys, keys, **options).attend(queries) - quiet for _ in range(12)]
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(plan.stderr, rel=0.15)
    assert plan.worst_stderr == math.hypot(plan.stderr, plan.kernel_stderr)
    wide = discreet.plan(rows=20_000, key_dim=32, value_dim=8, **SPEND, scale=scale)
    assert wide.stderr < wide.worst_stderr


def test_the_predicted_error_where_rows_match_and_agree_is_met():
    keys = np.tile(unit_rows(1, 4), (2_000, 1))
    values = np.full((2_000, 4), 0.4)  # not so long that errors would be clamped
    plan = discreet.plan(rows=2_000, key_dim=4, value_dim=4, **SPEND, scale=2.0)
    options = {**SPEND, "scale": 2.0, "rows_hint": 2_000}
    errors = [discreet.build(keys, values, **options).attend(keys[:1]) - 0.4 for _ in range(300)]
    longest = plan.stderr_if(attended=2_000)
    expected = longest * math.hypot(1, 0.4 / plan.tau) / math.hypot(1, 0.5 / plan.tau)
    assert np.std(errors) == pytest.approx(expected, rel=0.2)


def test_at_the_recommended_scale_answers_are_clear_of_their_error():
    plan = discreet.plan(**SHAPE, **SPEND)
    length = answer_length(plan.scale, usual_directions(SHAPE["key_dim"]))
    from_noise = length / plan.stderr
    kernel = plan.kernel_stderr * math.sqrt(8)  # of whole vectors
    assert from_noise > 1.4
    assert length / math.hypot(plan.stderr, kernel) > 1.4  # without clusters
    assert plan.spread.clearness(plan.scale) == pytest.approx(1.4, rel=0.01)
    quiet = discreet.plan(**SHAPE | {"rows": 10}, **SPEND)  # too few for any temperature
    assert 0.5 < quiet.scale < 2
    assert "too few at this ε" in quiet.warning


def test_the_recommended_scale_is_where_the_formula_says():
    spread = Spread(rows=1_000, dim=4, value_dim=1, tau=0.25, multiplier=4.0)
    logit = spread.recommended_scale(0.5) * 0.5
    cosines = np.cos(np.linspace(0, math.pi, 200_001)[1:-1])
    weights = np.exp(logit * cosines) * (1 - cosines**2)  # of a sphere in four dimensions
    length = np.sum(weights * cosines) / np.sum(weights)
    mass = 1_000 * np.sum(weights) / np.sum(1 - cosines**2) / math.exp(logit)
    noise = 4.0 * math.hypot(1, 0.25) / mass * math.hypot(1, length / 0.25)
    fourier = math.sqrt(1_000 * (1 + max(mass, 50)) / 2048) / mass
    assert length == pytest.approx(1.4 * math.hypot(noise, fourier), rel=0.02)


@pytest.mark.parametrize(("rows", "scale"), [(300, 3.0), (3_000, 3.0), (3_000, 8.0)])
def test_the_predicted_error_of_fourier_features_is_met(rows, scale):
    """Of denominators, over frequencies that are drawn anew."""
    keys, query = unit_rows(rows, 12), unit_rows(1, 12, seed=1)
    norms = {"scale": scale, "key_norm": 1.0, "query_norm": 1.0}
    sums = []
    for seed in range(60):
        kernel = Fourier(12, frequencies=64, seed=seed, **norms)
        quiet = discreet.build(keys, keys, kernel=kernel, scale=scale, entropy=Silent(), **SPEND)
        sums.append(quiet.sums(query)[1][0])
    options = {"rows": rows, "dim": 12, "value_dim": 1, "tau": 1.0, "multiplier": 1.0}
    spread = Spread(**options, weight_error=kernel.error)
    expected = spread.sum_error(kernel.weight_error, spread.mass(scale, 12)) * math.exp(scale)
    assert np.std(sums) == pytest.approx(expected, rel=0.35)


@pytest.mark.parametrize(("clusters", "scale"), [(4, 9.0), (10, 5.0), (30, 9.0)])
def test_the_predicted_error_of_clusters_is_met(clusters, scale):
    """Of answers to queries in the middle of clusters whose rows agree."""
    centres, rows = unit_rows(clusters, 64), 6_000
    kind = np.arange(rows) % clusters
    spend = {"epsilon": 20.0, "delta": 1e-6}
    plan = discreet.plan(rows=rows, key_dim=64, value_dim=clusters, **spend, scale=scale)
    memory = discreet.build(
        centres[kind], np.eye(clusters)[kind], **spend, scale=scale, entropy=Silent()
    )
    exact = oracle.attention(centres, centres[kind], np.eye(clusters)[kind], scale=scale)
    error = np.sqrt(np.mean(np.square(memory.attend(centres) - exact)))
    assert 0.5 < error / plan.stderr_if(attended=rows / clusters) < 1.5


@pytest.mark.parametrize("scale", [0.04, 0.5, 0.7, 1.0, 2.0])
def test_the_predicted_error_of_polynomials_is_met(scale):
    keys, queries = unit_rows(20_000, 8), unit_rows(300, 8, seed=2)
    plan = discreet.plan(rows=20_000, key_dim=8, value_dim=8, **SPEND, scale=scale)
    quiet = discreet.build(keys, keys, **SPEND, scale=scale, entropy=Silent()).attend(queries)
    exact = oracle.attention(queries, keys, keys, scale=scale)
    error = np.sqrt(np.mean(np.square(quiet - exact)))
    assert error == pytest.approx(plan.kernel_stderr, rel=0.15)


def test_the_recommended_scale_has_a_cap_and_no_unit():
    assert discreet.plan(**SHAPE | {"key_dim": 2}, **SPEND).scale == 20
    one = discreet.plan(**SHAPE, **SPEND, value_norm=1.0, tau=0.2)
    ten = discreet.plan(**SHAPE, **SPEND, value_norm=10.0, tau=2.0)
    assert one.scale == ten.scale
    far = discreet.plan(**SHAPE, **SPEND, key_norm=5.0, query_norm=2.0, tau=0.2)
    assert far.scale == pytest.approx(one.scale / 10, rel=0.01)


def test_a_delta_that_lets_a_row_out_whole_is_warned_of():
    spend = {"epsilon": 1.0, "delta": 1e-3}
    assert "protects nobody" in discreet.plan(**SHAPE, **spend).warning
    with pytest.warns(discreet.PrivacyLeakWarning, match="one over the number of rows"):
        discreet.build(unit_rows(5, 4), unit_rows(5, 4), **spend, scale=1.0, rows_hint=1000)
    discreet.build(unit_rows(5, 4), unit_rows(5, 4), **spend, scale=1.0, rows_hint=100)


def test_more_frequencies_allow_a_sharper_softmax():
    def advice(frequencies):
        kernel = Fourier(64, frequencies=frequencies, scale=5.0, key_norm=1.0, query_norm=1.0)
        shape = {"rows": 100_000, "key_dim": 64, "value_dim": 8}
        return discreet.plan(**shape, **SPEND, scale=5.0, kernel=kernel).recommended_scale

    assert advice(256) < advice(1024) < advice(4096)


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
    assert log_mean_weight(logit, dim) == pytest.approx(expected, rel=2e-3, abs=1e-6)


def test_tau_falls_with_the_width_of_values():
    assert default_tau(4.0, 1) == 1.0
    assert default_tau(4.0, 16) == 0.5


@pytest.mark.parametrize("name", ["rows", "key_dim", "value_dim", "heads"])
def test_bad_sizes_are_named(name):
    with pytest.raises(InvalidInput, match=name):
        discreet.plan(**{**SHAPE, **SPEND, name: 0})
