"""How far one unit moves the draws behind a whole stream: up to the claim, never beyond.

Whatever is released, the fresh draws behind it differ between two neighbouring streams by at most
what the mechanism claims, over all steps and all numbers: measured on exact sums of real streams.
"""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from streams import increments_of, moved, rows_of, small

SLOW = settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
STEPS = 7


def exact_sums(stream, steps, groups):
    """Exact sums of each step: of a stream whose noise is silent."""
    for number, (keys, values, people) in enumerate(steps):
        named = {"groups": people} if groups else {}
        stream.append(keys, values, step=f"step {number}", **named)
    return increments_of(stream)


def without(steps, person):
    """The same stream without one person."""
    kept = []
    for keys, values, people in steps:
        others = np.array(people) != person
        kept.append((keys[others], values[others], np.array(people)[others]))
    return kept


@st.composite
def crowds(draw):
    """A few steps with a few people each, person 0 among them in any of them."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    steps = []
    for _ in range(STEPS):
        people = draw(st.lists(st.integers(0, 3), max_size=4))
        steps.append((*rows_of(people, rng), np.array(people, dtype=np.int64)))
    return steps, rng


CAPS = [
    {},
    {"participations": 3},
    {"participations": 3, "separation": 2},
    {"lifetime_rows": 2},
    {"participations": 2, "group_rows": 2.0},
]


@pytest.mark.parametrize("reader", ["attention", "least_squares"])
@pytest.mark.parametrize("cap", CAPS, ids=str)
@SLOW
@given(drawn=crowds())
def test_one_person_moves_all_draws_by_at_most_the_claim(tmp_path, reader, cap, drawn):
    """She may have rows in any steps: what is beyond the cap is left out."""
    steps, rng = drawn
    both = [small(tmp_path, reader=reader, **cap) for _ in range(2)]
    one, other = (
        exact_sums(stream, each, groups=True)
        for stream, each in zip(both, (steps, without(steps, 0)), strict=True)
    )
    assert moved(one, other, both[0].settings, rng) <= 1


@SLOW
@given(drawn=crowds(), at=st.integers(0, STEPS - 1))
def test_one_replaced_row_moves_all_draws_by_at_most_the_claim(tmp_path, drawn, at):
    steps, rng = drawn
    first, second = (small(tmp_path, neighbours="replace", rows_hint=50) for _ in range(2))
    steps[at] = (*rows_of([0, 0], rng), None)
    other = list(steps)
    keys, values, _ = steps[at]
    other[at] = (np.array([-keys[0], keys[1]]), np.array([-values[0], values[1]]), None)
    sums = (exact_sums(first, steps, groups=False), exact_sums(second, other, groups=False))
    assert moved(*sums, first.settings, rng) <= 1


def alone(stream, at, steps):
    """Exact sums of a stream with one row, the same in some steps, and of one with none."""
    key, value = np.array([[1.0, 0.0]]), np.array([[1.0]])
    released = stream.append(key, value, step="probe").released
    parts = (released.state, *released.others)
    one = np.concatenate([part.ravel() for part in parts])
    nothing = np.zeros_like(one)
    return [one if step in at else nothing for step in range(steps)], [nothing] * steps


@pytest.mark.parametrize("reader", ["attention", "least_squares"])
@pytest.mark.parametrize(
    ("cap", "at"),
    [
        ({}, {0}),
        ({"participations": 5}, {0, 1, 2, 3, 4}),
        ({"participations": 5, "separation": 7}, {0, 7, 14, 21, 28}),
    ],
    ids=str,
)
def test_the_worst_comes_within_two_percent_of_the_claim(tmp_path, reader, cap, at):
    """The longest row, in as many steps as it may be in, as near to each other as they may be."""
    stream = small(tmp_path, reader=reader, **cap)
    one, other = alone(stream, at, 300)
    rng = np.random.default_rng(5)
    assert 0.98 < moved(one, other, stream.settings, rng) <= 1


def test_a_lifetime_of_rows_in_one_step_is_the_worst(tmp_path):
    stream = small(tmp_path, lifetime_rows=4, by_record=True, key_dim=2, value_dim=1)
    key, value = np.array([[1.0, 0.0]] * 6), np.array([[1.0]] * 6)
    one = stream.append(key, value, groups=["her"] * 6, step="all at once").released.state.ravel()
    again = stream.append(key, value, groups=["her"] * 6, step="no more").released.state.ravel()
    assert np.array_equal(one, again)  # silent: nothing was added
    sums = [one, *[np.zeros_like(one)] * 299]
    ratio = moved(sums, [np.zeros_like(one)] * 300, stream.settings, np.random.default_rng(6))
    assert 0.98 < ratio <= 1
