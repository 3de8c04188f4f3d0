"""Audits of one release with many canaries."""

import json

import numpy as np
import pytest
from broken_noise import noise_times

import discreet
from discreet.audit import one_run
from discreet.errors import InvalidInput
from discreet.testing import Seeded

COUNT = 150
NOBODY = (np.zeros((0, 2)), np.zeros((0, COUNT)))
CANARIES = (np.repeat([[1.0, 0.0]], COUNT, axis=0), np.eye(COUNT))


def build(rows, entropy=None, epsilon=8.0):
    return discreet.build(
        *rows,
        epsilon=epsilon,
        delta=1e-5,
        scale=1.0,
        kernel="minimax",
        eps_s=0.5,
        entropy=entropy,
    )


def test_one_release_tells_some_of_epsilon():
    found = one_run(build, NOBODY, CANARIES, seed=3, workers=1)
    assert found.holds
    assert 1 < found.epsilon_lower < 8
    assert found.guesses.canaries == COUNT
    assert json.loads(json.dumps(found.to_dict()))["right"] == found.guesses.right
    assert str(found).startswith("your function, one release: holds")


def test_noise_that_is_much_too_small_refutes_the_promise():
    def promises_more(rows, entropy=None):
        return build(rows, entropy, epsilon=1.0)

    assert one_run(promises_more, NOBODY, CANARIES, seed=3, workers=1).holds
    with noise_times(0.1):
        found = one_run(promises_more, NOBODY, CANARIES, seed=3, workers=1)
    assert not found.holds
    assert "DOES NOT HOLD" in str(found)


def test_rows_that_are_there_in_any_case_change_nothing():
    rng = np.random.default_rng(0)
    crowd = (rng.normal(size=(50, 2)), np.pad(rng.normal(size=(50, 3)), ((0, 0), (0, COUNT - 3))))
    assert one_run(build, crowd, CANARIES, seed=3, workers=1).holds


def test_too_few_canaries_and_what_is_no_sum_are_refused():
    few = tuple(each[:5] for each in CANARIES)
    with pytest.raises(InvalidInput, match="canaries"):
        one_run(build, NOBODY, few)

    def rounds(rows, entropy=None):
        return discreet.softmax_regression(
            rows[0],
            np.zeros(len(rows[0]), dtype=int),
            classes=(0, 1),
            epsilon=1,
            delta=1e-5,
            features="linear",
            entropy=entropy,
        )

    with pytest.raises(InvalidInput, match="sums and noise"):
        one_run(rounds, NOBODY, CANARIES)


def test_one_run_is_of_rows_that_are_there_or_not():
    def replaced(rows, entropy=None):
        return discreet.build(
            *rows, epsilon=1.0, delta=1e-5, scale=1.0, neighbours="replace", entropy=entropy
        )

    someone = (np.zeros((1, 2)), np.zeros((1, COUNT)))
    with pytest.raises(InvalidInput, match="add_remove"):
        one_run(replaced, someone, CANARIES, workers=1)


def from_a_test_source(rows, entropy=None):
    return build(rows, Seeded(1) if entropy is None else entropy)


def counted(rows, entropy=None):
    return discreet.build(
        *rows, epsilon=8.0, delta=1e-5, scale=1.0, rows_hint=len(rows[0]) + 1, entropy=entropy
    )


@pytest.mark.parametrize(
    ("function", "why"), [(from_a_test_source, "NOT PRIVATE"), (counted, "rows_hint")]
)
def test_what_a_release_says_of_itself_refutes_one_run_too(function, why):
    found = one_run(function, NOBODY, CANARIES, workers=1)
    assert not found.holds
    assert why in str(found)
    assert why in found.to_dict()["reasons"][0]
