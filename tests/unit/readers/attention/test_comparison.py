"""Exact attention beside a memory's answers."""

import re

import numpy as np
import pytest
from data import unit_rows

import discreet
from discreet.readers.attention import comparison
from discreet.readers.attention import comparison as oracle
from discreet.readers.attention.comparison import Comparison, compare
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


def test_rows_may_come_in_chunks_that_are_read_again():
    chunks = [(KEYS[:100], VALUES[:100]), (KEYS[100:], VALUES[100:])]
    memory = built(Seeded(1), epsilon=0.5)
    whole = compare(memory, KEYS, VALUES, QUERIES)
    assert whole.says_nothing
    for given in (chunks, lambda: iter(chunks)):
        made = compare(memory, given, None, QUERIES)
        np.testing.assert_allclose(made.exact, whole.exact, rtol=1e-12)
        assert made.verdict == whole.verdict
    with pytest.raises(discreet.InvalidInput, match="read again"):
        compare(memory, iter(chunks), None, QUERIES)
    with pytest.raises(discreet.InvalidInput, match="at least one row"):
        compare(memory, [(KEYS[:0], VALUES[:0])], None, QUERIES)


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


def clusters(count, dim, number):
    """Rows in narrow clusters whose values say plus or minus one, and queries like them."""
    centres = unit_rows(number, dim, seed=5)
    which = np.arange(count + 200) * 7919 % number
    rows = centres[which] + 0.3 * unit_rows(count + 200, dim, seed=6)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    values = np.where(which % 2, 1.0, -1.0)[:, None]
    return rows[200:], values[200:], rows[:200]


def evenly(count, dim):
    rows = unit_rows(count + 200, dim, seed=7)
    values = np.sign(rows[:, :4]) / 4
    return rows[200:], values[200:], rows[:200]


def asked(rows, scale, seed, epsilon=1.0):
    keys, values, queries = rows
    memory = discreet.build(
        keys, values, epsilon=epsilon, delta=1e-6, scale=scale, entropy=Seeded(seed)
    )
    return compare(memory, keys, values, queries)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "scale", "epsilon"),
    [
        pytest.param(clusters(5_000, 32, 400), 5.0, 0.5, marks=pytest.mark.slow),
        (evenly(2_000, 16), 5.0, 1.0),
        pytest.param(evenly(20_000, 16), 12.0, 1.0, marks=pytest.mark.slow),
    ],
)
def test_a_scale_that_is_advised_does_better_whoever_follows_it(rows, scale, epsilon):
    made = asked(rows, scale, 1, epsilon)
    advised, clear = re.search(r"At scale=([\d.]+), .* by ([\d.]+) times", made.verdict).groups()
    assert made.error >= made.spread
    for seed in range(2, 6):
        followed = asked(rows, float(advised), seed, epsilon)
        assert followed.spread / followed.error > 0.4 * float(clear)  # the kernel loses some, too
        assert "explain" in followed.verdict


@pytest.mark.slow
def test_a_softer_scale_is_not_advised_where_it_does_worse():
    rows = clusters(300, 16, 100)
    made = [asked(rows, scale, 1, 0.5) for scale in (8.0, 4.0, 2.0)]
    clear = [each.spread / each.error for each in made]
    assert 1 > clear[0] > max(clear[1:])  # half the scale is worse, and so is a quarter
    assert "softer" not in made[0].verdict
    assert "scale=" not in made[0].verdict
    times = int(re.search(r"takes ([\d,]+) times the rows", made[0].verdict)[1])
    keys, values, queries = rows
    more = (np.tile(keys, (times, 1)), np.tile(values, (times, 1)), queries)
    followed = [asked(more, 8.0, seed, 0.5) for seed in range(4)]
    assert all("explain" in each.verdict for each in followed)


def test_where_the_kernel_is_what_loses_most_no_more_rows_are_advised():
    keys, values, queries = unit_rows(20_000, 16), unit_rows(20_000, 16), unit_rows(50, 16, seed=9)
    memory = discreet.build(
        keys, values, epsilon=20, delta=1e-6, scale=8.0, features=16, kernel="fourier"
    )
    made = compare(memory, keys, values, queries)
    assert made.error >= made.spread
    assert "neither more rows nor a larger ε" in made.verdict


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
