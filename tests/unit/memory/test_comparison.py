"""Exact attention beside a memory's answers."""

import numpy as np
import pytest
from data import unit_rows

import discreet
from discreet.memory import Comparison, compare, comparison, oracle
from discreet.testing import Seeded, Silent

KEYS, VALUES, QUERIES = unit_rows(300, 4), unit_rows(300, 3, seed=1), unit_rows(20, 4, seed=2)


def built(entropy, keys=KEYS, values=VALUES, **options):
    settings = {"epsilon": 20, "delta": 1e-6, "scale": 1.0, "eps_s": 1e-4, **options}
    return discreet.build(keys, values, entropy=entropy, **settings)


@pytest.mark.parametrize("at_once", [1, 500, 2**22])
def test_the_exact_answers_are_those_of_the_oracle(monkeypatch, at_once):
    monkeypatch.setattr(comparison, "_LOGITS_AT_ONCE", at_once)
    made = compare(built(Silent()), KEYS, VALUES, QUERIES)
    truth = oracle.attention(QUERIES, KEYS, VALUES, scale=1.0)
    np.testing.assert_allclose(made.exact, truth, rtol=1e-12)


def test_without_noise_nothing_is_left_but_the_kernel():
    made = compare(built(Silent()), KEYS, VALUES, QUERIES)
    assert made.error < 1e-3
    assert "100%" in made.verdict


def test_with_noise_error_and_prediction_agree_and_bars_cover():
    made = [compare(built(Seeded(seed)), KEYS, VALUES, QUERIES) for seed in range(40)]
    measured = np.sqrt(np.mean([each.error**2 for each in made]))
    predicted = np.sqrt(np.mean([each.predicted**2 for each in made]))
    assert 0.9 < measured / predicted < 1.1
    assert 0.92 < np.mean([each.within for each in made]) < 0.98


def test_heads_and_logits_that_would_overflow():
    keys, values = 40 * unit_rows(2, 50, 4), unit_rows(2, 50, 3, seed=1)
    queries = unit_rows(2, 6, 4, seed=2)
    memory = built(Silent(), keys, values, kernel="fourier", scale=30.0)
    made = compare(memory, keys, values, queries)
    assert made.exact.shape == made.private.shape == (2, 6, 3)
    truth = oracle.attention(queries, keys, values, scale=30.0)
    np.testing.assert_allclose(made.exact, truth, rtol=1e-9)


def test_rows_are_compared_as_they_are_and_clipping_shows():
    made = compare(built(Silent(), key_norm=0.1), KEYS, VALUES, QUERIES)
    assert made.error > 2 * made.predicted
    assert "clipping" in made.verdict


def test_noise_is_called_noise_and_counts_for_no_more_than_the_ball():
    exact = np.array([[0.1], [0.2]])
    assert "One query" in Comparison(exact[:1], exact[:1], exact[:1], value_norm=1.0).verdict
    alike = Comparison(
        np.array([[0.8, -0.4]] * 5), np.zeros((5, 2)), np.ones((5, 2)), value_norm=1.0
    )
    assert alike.spread == pytest.approx(0)  # numbers differ, answers do not
    assert "less than a constant" in alike.verdict
    half = Comparison(exact, exact + 0.025, np.ones((2, 1)), value_norm=1.0)
    assert "75%" in half.verdict
    made = Comparison(exact, exact + 1, np.array([[1e9], [1.0]]), value_norm=1.0)
    assert made.predicted == 1
    assert "less than a constant" in made.verdict


@pytest.mark.parametrize(
    ("keys", "values", "queries"),
    [
        (KEYS[:, :3], VALUES, QUERIES),
        (KEYS, VALUES[:, :2], QUERIES),
        (KEYS[:5], VALUES, QUERIES),
        (KEYS, VALUES, QUERIES[0]),
        (KEYS, VALUES, QUERIES[:0]),
        (KEYS[:0], VALUES[:0], QUERIES),
        (KEYS[None], VALUES[None], QUERIES),
        (KEYS, VALUES, QUERIES[:, :3]),
    ],
)
def test_what_does_not_fit_is_refused(keys, values, queries):
    with pytest.raises(discreet.InvalidInput):
        compare(built(Silent()), keys, values, queries)
