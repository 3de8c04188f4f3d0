"""Laws of composition that hold for every mechanism."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from discreet import Privacy, accounting
from discreet.accounting import tight
from discreet.accounting.compose import covers

RELATION = st.sampled_from(["add_remove", "replace"])
MECHANISMS = {
    "gaussian": st.builds(
        accounting.Gaussian,
        sigma=st.floats(0.5, 200),
        sensitivity=st.just(1.0),
        neighbours=RELATION,
    ),
    "laplace": st.builds(
        accounting.Laplace,
        scale=st.floats(0.5, 200),
        sensitivity=st.just(1.0),
        neighbours=RELATION,
    ),
    "discrete": st.builds(
        accounting.DiscreteLaplace,
        scale=st.floats(0.5, 200),
        sensitivity=st.integers(1, 5),
        neighbours=RELATION,
    ),
    "truncated": st.builds(
        accounting.TruncatedLaplace,
        sensitivity=st.integers(1, 100),
        epsilon=st.floats(1e-3, 2.0),
        delta=st.floats(1e-15, 1e-10),
        neighbours=RELATION,
    ),
}
COUNTS = st.one_of(st.integers(1, 20), st.integers(1, 3000))
DELTAS = st.floats(-11, -0.5).map(lambda power: 10**power)


@pytest.mark.parametrize("kind", MECHANISMS)
@settings(max_examples=60)
@given(data=st.data(), count=COUNTS, delta=DELTAS)
def test_one_more_is_never_cheaper(kind, data, count, delta):
    mechanism = data.draw(MECHANISMS[kind])
    fewer, more = (tight([(mechanism, times)], delta=delta) for times in (count, count + 1))
    assert fewer <= more


@pytest.mark.parametrize("kind", MECHANISMS)
@settings(max_examples=30)
@given(data=st.data(), count=COUNTS, delta=DELTAS)
def test_a_larger_delta_is_never_dearer(kind, data, count, delta):
    mechanism = data.draw(MECHANISMS[kind])
    small, large = (tight([(mechanism, count)], delta=d) for d in (delta / 2, delta))
    assert large <= small


@pytest.mark.parametrize("kind", MECHANISMS)
@settings(max_examples=30)
@given(data=st.data(), count=COUNTS, delta=DELTAS, factor=st.floats(1.0, 10.0))
def test_more_noise_is_never_dearer(kind, data, count, delta, factor):
    mechanism = data.draw(MECHANISMS[kind])
    assume(count * mechanism.truncation < delta)  # otherwise the tails decide, not the noise
    noisier = mechanism.with_noise_times(factor)
    # Two grids: each rounds upwards by up to a few parts in ten thousand.
    assert (
        tight([(noisier, count)], delta=delta) <= tight([(mechanism, count)], delta=delta) * 1.001
    )


@settings(max_examples=30)
@given(data=st.data(), delta=DELTAS)
def test_order_and_grouping_do_not_matter(data, delta):
    relation = data.draw(RELATION)
    pairs = [
        (accounting.Laplace(scale=20.0, sensitivity=1.0, neighbours=relation), 3),
        (accounting.Gaussian(sigma=5.0, sensitivity=1.0, neighbours=relation), 2),
        (accounting.DiscreteLaplace(scale=9.0, sensitivity=2, neighbours=relation), 4),
    ]
    split = [(mechanism, 1) for mechanism, count in pairs for _ in range(count)]
    shuffled = data.draw(st.permutations(split))
    assert tight(shuffled, delta=delta) == pytest.approx(
        tight(pairs, delta=delta), rel=1e-9, abs=1e-9
    )


@given(
    epsilon=st.floats(0, 3),
    delta=st.floats(0, 1e-3),
    count=st.integers(1, 1000),
    delta_prime=st.floats(1e-12, 0.5),
)
def test_the_theorems_are_monotone_too(epsilon, delta, count, delta_prime):
    part = Privacy(epsilon, delta, "replace")
    for compose in (
        lambda times: accounting.basic([(part, times)]),
        lambda times: accounting.advanced(part, times, delta_prime=delta_prime),
    ):
        fewer, more = compose(count), compose(count + 1)
        assert fewer.epsilon <= more.epsilon
        assert fewer.delta <= more.delta


@pytest.mark.parametrize("kind", MECHANISMS)
@settings(max_examples=60)
@given(data=st.data(), power=st.floats(-5, -0.5), less=st.floats(-3, -0.1))
def test_where_the_account_is_exact_no_less_than_the_truth_may_be_claimed(kind, data, power, less):
    mechanism = data.draw(MECHANISMS[kind])
    count = data.draw(COUNTS) if kind == "gaussian" else 1
    delta, share = 10**power, 1 - 10**less
    epsilon = tight([(mechanism, count)], delta=delta)
    assume(epsilon > 1e-3)

    def accepted(epsilon, delta):
        return covers(Privacy(epsilon, delta, mechanism.neighbours), [(mechanism, count)])

    assert accepted(epsilon, delta)
    assert accepted(epsilon * (1 - 1e-10), delta)  # rounding
    assert not accepted(epsilon * share, delta)
    assert not accepted(epsilon * (1 - 1e-8), delta * (1 - 1e-8))
    assert not accepted(epsilon, delta * share)
    assert not accepted(epsilon / 1.0009, 1e-300)


@pytest.mark.slow
@pytest.mark.parametrize("kind", MECHANISMS)
@settings(max_examples=30)
@given(data=st.data(), count=COUNTS, delta=DELTAS)
def test_where_the_account_is_on_a_grid_neither_number_may_be_far_off(kind, data, count, delta):
    mechanism = data.draw(MECHANISMS[kind])
    others = accounting.Laplace(scale=9.0, sensitivity=1.0, neighbours=mechanism.neighbours)
    pairs = [(mechanism, count), (others, 2)]
    assume(count * mechanism.truncation < delta)
    epsilon = tight(pairs, delta=delta)
    assume(epsilon > 1e-3)

    def accepted(epsilon, delta):
        return covers(Privacy(epsilon, delta, mechanism.neighbours), pairs)

    assert accepted(epsilon, delta)
    assert not accepted(epsilon / 1.0011, delta)
    assert not accepted(epsilon / 1.0009, delta * 1e-290)
    losses = sum(times * each.largest_loss for each, times in pairs)
    whole = tight(pairs, delta=max(1e-300, 2 * count * mechanism.truncation))
    assert not accepted(min(losses, whole) / 1.0009, 1e-300)
