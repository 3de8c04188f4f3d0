import math
from dataclasses import replace

import numpy as np
import pytest
from data import unit_rows
from hypothesis import given
from hypothesis import strategies as st

import discreet
from discreet import InvalidInput
from discreet.features.kernel import answer_length, log_mean_weight
from discreet.kernels import Fourier
from discreet.readers.attention import comparison as oracle
from discreet.readers.attention.error_model import ErrorModel, Goal, Sample
from discreet.sums.layout import default_tau
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
        num_err, den_err = memory.plain.sums_stderr(query)
        assert plan.numerator_stderr == pytest.approx(num_err[0], rel=1e-6)
        assert plan.denominator_stderr == pytest.approx(den_err[0], rel=1e-6)
        assert plan.rows_needed == pytest.approx(memory.card.to_dict()["rows_needed"])
        same = [line for line in str(plan).splitlines() if line.startswith(("noise of", "match"))]
        assert len(same) == 2
        card = [line.split() for line in str(memory.card).splitlines()]
        assert all(line.split() in card for line in same)


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
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(plan.noise_stderr, rel=0.15)
    assert plan.stderr == math.hypot(plan.noise_stderr, plan.kernel_stderr)


def test_the_predicted_error_where_rows_match_and_agree_is_met():
    keys = np.tile(unit_rows(1, 4), (2_000, 1))
    values = np.full((2_000, 4), 0.4)  # not so long that errors would be clamped
    plan = discreet.plan(rows=2_000, key_dim=4, value_dim=4, **SPEND, scale=2.0)
    options = {**SPEND, "scale": 2.0, "rows_hint": 2_000}
    errors = [discreet.build(keys, values, **options).attend(keys[:1]) - 0.4 for _ in range(300)]
    longest = plan.stderr_if(attended=2_000)
    expected = longest * math.hypot(1, 0.4 / plan.tau) / math.hypot(1, 0.5 / plan.tau)
    assert np.std(errors) == pytest.approx(expected, rel=0.2)


def test_with_too_few_rows_nothing_helps_and_the_plan_says_so():
    quiet = discreet.plan(**SHAPE | {"rows": 10}, **SPEND)
    assert quiet.scale < 2
    assert "too few at this ε" in quiet.warning
    assert quiet.prediction.signal_to_error < 0.3
    assert "mostly noise" in quiet.advice


@pytest.mark.parametrize("goal", list(Goal))
def test_the_recommended_scale_has_the_least_risk(goal):
    spread = ErrorModel(
        rows=1_000, dim=4, value_dim=1, tau=0.25, multiplier=4.0, weight_error=2048**-0.5
    )
    logit = spread.recommended_scale(0.5, goal) * 0.5
    near = [spread.risk(times * logit, goal) for times in (0.8, 0.9, 1.0, 1.1, 1.25)]
    assert min(near) == near[2]
    assert spread.recommended_scale(5.0, goal) == pytest.approx(logit / 5, rel=0.01)


@pytest.mark.parametrize("rows", [4_000, 6_000, 8_000])
def test_no_scale_is_recommended_at_which_errors_hide_the_answers(rows):
    shape = {"rows": rows, "key_dim": 300, "value_dim": 2, "epsilon": 0.7, "delta": 1e-6}
    plan = discreet.plan(**shape)
    assert plan.prediction.signal_to_error >= 0.79
    sharper = discreet.plan(**shape, scale=1.5 * plan.scale)
    assert sharper.prediction.signal_to_error < max(0.8, plan.prediction.signal_to_error)


def test_where_errors_hide_all_answers_the_clearest_scale_is_recommended():
    spread = ErrorModel(
        rows=100, dim=300, value_dim=2, tau=0.2, multiplier=4.0, weight_error=2048**-0.5
    )
    logit = spread.recommended_scale(1.0, Goal.RANK)
    at = [spread.signal(times * logit) / spread.error(times * logit) for times in (0.7, 1.0, 1.4)]
    assert max(at) == at[1] < 0.8


def test_answers_to_rank_by_are_sharper_than_numbers():
    rank, average = (discreet.plan(**SHAPE, **SPEND, goal=goal) for goal in ("rank", "average"))
    assert rank.scale > average.scale
    assert rank.stderr > average.stderr
    assert "votes" in str(rank)
    assert "numbers" in str(average)
    with pytest.raises(InvalidInput, match="goal"):
        discreet.plan(**SHAPE, **SPEND, goal="mean")


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "scale"), [(300, 3.0), (3_000, 3.0), (3_000, 6.0)])
def test_the_predicted_error_of_fourier_features_is_met(rows, scale):
    """Of answers, over frequencies that are drawn anew; values are the keys themselves.

    As features are read plainly. Near points errors of even rows are far below the plan, which
    takes rows to lie in groups.
    """
    keys, queries = unit_rows(rows, 8), unit_rows(50, 8, seed=1)
    exact = oracle.attention(queries, keys, keys, scale=scale)
    plain, near = [], []
    for seed in range(20):
        kernel = Fourier(8, frequencies=256, seed=seed, scale=scale, key_norm=1.0, query_norm=1.0)
        quiet = discreet.build(keys, keys, kernel=kernel, entropy=Silent(), **SPEND)
        plain.append(quiet.plain.attend(queries) - exact)
        near.append(quiet.attend(queries) - exact)
    said = discreet.plan(rows=rows, key_dim=8, value_dim=8, kernel=kernel, **SPEND).prediction
    without = replace(said, spread=replace(said.spread, points=0))
    assert 0.5 < np.sqrt(np.mean(np.square(plain))) / without.kernel_stderr < 1.5
    assert np.sqrt(np.mean(np.square(near))) < said.kernel_stderr < without.kernel_stderr


def in_common(count, dim, *, seed=0, common=0.6):
    """Rows of length one whose inner products are `common` on average."""
    rows = unit_rows(count, dim, seed=seed) * math.sqrt(1 - common)
    middle = np.zeros(dim)
    middle[0] = math.sqrt(common)
    rows = rows + middle
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("common", [0.0, 0.5, 0.8])
def test_public_rows_tell_what_rows_have_in_common(common):
    rows = in_common(4_000, 20, common=common)
    sample = Sample.of(in_common(400, 20, seed=1, common=common))
    assert sample.common == pytest.approx(common, abs=0.03)
    assert sample.square == pytest.approx(1)
    mean_weight = np.mean(np.exp(5.0 * (rows[:2_000] @ rows[2_000:].T - 1)))
    assert sample.nearness(5.0) == pytest.approx(mean_weight, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("common", [0.0, 0.6])
def test_with_public_rows_the_noise_is_foretold(common):
    keys, queries = in_common(5_000, 24, common=common), in_common(100, 24, seed=3, common=common)
    values = np.sign(keys[:, 1:5]) / 2
    options = {**SPEND, "scale": 4.0, "kernel": "fourier"}
    plan = discreet.plan(
        rows=5_000,
        key_dim=24,
        value_dim=4,
        public_rows=in_common(300, 24, seed=9, common=common),
        **options,
    )
    memory = discreet.build(keys, values, rows_hint=5_000, **options)
    measured = np.median(memory.plain.noise_stderr(queries))
    assert np.median(memory.noise_stderr(queries)) <= 1.05 * measured  # near points
    assert 0.6 < plan.noise_stderr / measured < 1.6
    assert "public ones" in plan.verdict
    tight = unit_rows(3, 24)[np.arange(5_000) % 3]
    clustered = discreet.plan(
        rows=5_000, key_dim=24, value_dim=4, public_rows=tight[:300], **options
    )
    memory = discreet.build(tight, values, rows_hint=5_000, **options)
    measured = np.median(memory.plain.noise_stderr(tight[:3]))
    assert 0.6 < clustered.noise_stderr / measured < 1.6
    blind = discreet.plan(rows=5_000, key_dim=24, value_dim=4, **options)
    assert "in common" in blind.verdict


@pytest.mark.slow
@pytest.mark.parametrize(
    ("clusters", "scale"),
    [
        pytest.param(4, 9.0, marks=pytest.mark.slow),
        (10, 5.0),
        pytest.param(30, 9.0, marks=pytest.mark.slow),
    ],
)
def test_the_predicted_error_of_clusters_is_met(clusters, scale):
    """Of answers to queries in the middle of clusters whose rows agree."""
    centres, rows = unit_rows(clusters, 64), 6_000
    kind = np.arange(rows) % clusters
    spend = {"epsilon": 20.0, "delta": 1e-6}
    plan = discreet.plan(rows=rows, key_dim=64, value_dim=clusters, **spend, scale=scale)
    memory = discreet.build(
        centres[kind],
        np.eye(clusters)[kind],
        **spend,
        scale=scale,
        rows_hint=rows,
        entropy=Silent(),
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
    assert discreet.plan(**SHAPE | {"key_dim": 2, "rows": 10**6}, **SPEND).scale == 20
    assert discreet.plan(**SHAPE | {"rows": 10**6}, **SPEND).scale == 6  # of unknown directions
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
        kernel = Fourier(8, frequencies=frequencies, scale=5.0, key_norm=1.0, query_norm=1.0)
        shape = {"rows": 100_000, "key_dim": 8, "value_dim": 8}
        return discreet.plan(**shape, **SPEND, scale=5.0, kernel=kernel).recommended_scale

    assert advice(256) < advice(1024) < advice(4096)


def test_as_many_frequencies_as_the_noise_deserves():
    """The fewest whose predicted error is below the noise, or the most that are allowed."""
    found = {}
    for rows in (300, 3_000, 10_000, 30_000, 10**6):
        plan = discreet.plan(rows=rows, key_dim=64, value_dim=8, **SPEND)
        found[rows] = plan.kernel.frequencies
        if plan.kernel.frequencies < 8192:
            assert plan.kernel_stderr <= plan.noise_stderr * 1.001
        if plan.kernel.frequencies > 1024:
            few = Fourier(
                64,
                frequencies=plan.kernel.frequencies // 2,
                scale=plan.scale,
                key_norm=1.0,
                query_norm=1.0,
            )
            half = discreet.plan(rows=rows, key_dim=64, value_dim=8, kernel=few, **SPEND)
            assert half.kernel_stderr > half.noise_stderr
    assert found[300] == 1024
    assert found[10**6] == 8192
    assert list(found.values()) == sorted(found.values())
    assert len(set(found.values())) > 2


def test_without_a_number_of_rows_there_are_1024_and_features_is_the_cap():
    rows = unit_rows(20, 64)
    blind = discreet.build(rows, rows, **SPEND, scale=6.0)
    assert blind.kernel.frequencies == 1024

    def planned(features, rows=10**6):
        shape = {"rows": rows, "key_dim": 64, "value_dim": 8, "scale": 6.0}
        return discreet.plan(**shape, **SPEND, features=features).kernel

    assert [planned(cap).features for cap in (600, 6_000, None, 40_000)] == [
        600,
        6_000,
        16_384,
        40_000,
    ]
    assert planned(40_000, rows=300).features == 2048
    few = discreet.plan(rows=1000, key_dim=8, value_dim=2, **SPEND, scale=1.0, features=8)
    assert few.kernel.features <= 8
    with pytest.raises(InvalidInput, match="features"):
        planned(1)


def test_the_next_doubling_is_worth_what_the_plan_says():
    plan = discreet.plan(rows=100_000, key_dim=16, value_dim=4, epsilon=4.0, delta=1e-6)
    more = discreet.plan(
        rows=100_000,
        key_dim=16,
        value_dim=4,
        epsilon=4.0,
        delta=1e-6,
        scale=plan.scale,
        features=2 * plan.kernel.features,
    )
    assert plan.doubled_stderr == pytest.approx(more.stderr, rel=1e-4)
    assert f"features={2 * plan.kernel.features}" in plan.advice
    assert plan.prediction.within(more.stderr) in str(plan)


def test_no_interval_is_longer_than_values():
    plan = discreet.plan(rows=50, key_dim=64, value_dim=4, epsilon=0.1, delta=1e-6, value_norm=3.0)
    assert plan.stderr <= 3.0
    assert plan.prediction.within(plan.stderr) == "±3"


def test_a_sharp_temperature_is_warned_of_with_one_that_would_do():
    sharp = discreet.plan(**SHAPE, **SPEND, scale=30.0)
    assert "too sharp" in sharp.warning
    assert f"scale={sharp.recommended_scale:.3g}" in sharp.warning
    assert sharp.warning in str(sharp)
    fine = discreet.plan(**SHAPE, **SPEND, scale=sharp.recommended_scale)
    assert fine.warning is None


def test_the_recommended_scale_is_taken_by_default_and_grows_with_rows_and_epsilon():
    scales = [discreet.plan(**SHAPE | {"rows": n}, **SPEND).scale for n in (100, 1_000, 10**6)]
    assert scales == sorted(set(scales))
    scales = [
        discreet.plan(**SHAPE, epsilon=epsilon, delta=1e-6).scale for epsilon in (0.1, 0.5, 10)
    ]
    assert scales == sorted(set(scales))
    stretched = discreet.plan(**SHAPE, **SPEND, key_norm=2.0, query_norm=5.0)
    assert stretched.scale == pytest.approx(discreet.plan(**SHAPE, **SPEND).scale / 10, rel=0.01)


def test_the_text_explains_the_choice_and_ends_in_a_verdict():
    text = str(discreet.plan(**SHAPE, **SPEND))
    for part in ("5,000 rows", "recommended", "no polynomial", "95% of the time", "bytes", "rows"):
        assert part in text
    assert "reaches eps_s" in str(discreet.plan(**SHAPE, **SPEND, scale=1.0))
    assert "as asked" in str(discreet.plan(**SHAPE, **SPEND, scale=1.0, kernel="fourier"))


@given(attended=st.floats(100, 1e6))
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


@pytest.mark.parametrize(
    "options",
    [
        {"scale": 1e-300},
        {"scale": 1e-17},
        {"scale": 1e20},
        {"scale": 1e300},
        {"tau": 1e-300},
        {"tau": 1e300},
        {"public_rows": "abc"},
        {"public_rows": np.full((20, 16), 1e200)},
    ],
    ids=str,
)
@pytest.mark.parametrize("key_dim", [2, 16])
def test_absurd_options_are_refused_by_name(options, key_dim):
    with pytest.raises(InvalidInput, match=next(iter(options))):
        discreet.plan(**SHAPE | {"key_dim": key_dim}, **SPEND, **options)


def test_public_rows_of_any_size_are_clipped():
    huge = discreet.plan(**SHAPE, **SPEND, public_rows=unit_rows(50, 16) * 1e99, key_norm=1e-20)
    usual = discreet.plan(**SHAPE, **SPEND, public_rows=unit_rows(50, 16))
    assert huge.scale * 1e-20 == pytest.approx(usual.scale, rel=0.01)


@pytest.mark.parametrize("public", [None, 300])
def test_what_is_recommended_is_taken(public):
    rows = None if public is None else in_common(public, 16)
    plan = discreet.plan(**SHAPE, **SPEND, public_rows=rows)
    assert plan.scale == plan.recommended_scale


def test_a_polynomial_of_more_features_than_can_be_rounded_is_refused():
    """The noise of such a plan would be below zero."""
    wide = {"rows": 10**6, "key_dim": 64, "value_dim": 4, "kernel": "taylor", **SPEND}
    assert discreet.plan(**wide, scale=2.0).noise_stderr > 0
    with pytest.raises(discreet.InvalidInput, match="degree"):
        discreet.plan(**wide, scale=6.0)


def test_whoever_comes_with_embeddings_is_told_of_topics():
    spend = {"value_dim": 2, "epsilon": 1.0, "delta": 1e-6}
    assert "discreet.Corpus" in discreet.plan(rows=8_000, key_dim=384, **spend).advice
    assert "discreet.Corpus" not in discreet.plan(rows=8_000, key_dim=64, **spend).advice
    assert "discreet.Corpus" not in discreet.plan(rows=10**6, key_dim=384, **spend).advice
    rows = np.eye(384)[:300]
    with pytest.warns(discreet.errors.MostlyNoiseWarning, match=r"discreet\.Corpus"):
        discreet.build(rows, np.ones((300, 1)), epsilon=1.0, delta=1e-6, rows_hint=300)
