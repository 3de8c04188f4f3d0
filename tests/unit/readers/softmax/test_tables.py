"""Classifiers of tables: a plain loop, and what a release of them keeps."""

import math

import numpy as np
import pytest
from glm import phi, plain_descent, softmax
from rounds import asked_by, some_cells, tables, unknown_tables

import discreet
from discreet import InvalidInput
from discreet.accounting import gaussian_sigma
from discreet.readers.rounds.errors import unpacked
from discreet.readers.softmax.answers import TABLE_PACE
from discreet.readers.softmax.mechanism import SOFTMAX
from discreet.testing import Seeded, Silent

ROWS = 3_000
TABLES = tables()
FACTORS = 2.0 ** (np.arange(-4, 4) / 2)


def rows_of(kind, classes, uneven=1.0):
    keys = some_cells(TABLES[kind], ROWS)
    features = phi(TABLES[kind], keys)
    rng = np.random.default_rng(classes)
    scores = features @ rng.normal(size=(features.shape[1], classes)) * 4
    scores += rng.gumbel(size=scores.shape) + uneven * np.arange(classes)
    return keys, np.argmax(scores, axis=1)


def fitted(kind, keys, labels, classes, epsilon, **changes):
    options = {"epsilon": epsilon, "delta": 1e-6, "features": TABLES[kind]}
    options |= {"classes": range(classes)}
    return asked_by(SOFTMAX, keys, labels, **options | changes)[1]


def plain(kind, keys, labels, layout, epsilon):
    """Coefficients and totals, in floating point, without noise."""
    count, constant = layout.columns, TABLES[kind].constant
    features, own = phi(TABLES[kind], keys), np.eye(count)[labels]
    sigma = gaussian_sigma(epsilon=epsilon, delta=1e-6)

    def start(sums, moments):
        noise = sigma * layout.clip / math.sqrt(layout.of_round) / constant
        shortened = min(layout.clip / math.sqrt(1 - 1 / count), 1.0)
        about = moments[0, 0] / constant**2 / count - sums[0] / constant / shortened
        odds = np.log(np.maximum(about, 0) + noise / shortened)
        odds -= odds.mean()
        weights = np.zeros_like(sums)
        weights[0] = odds / constant
        shares = softmax(odds[None])[0]
        return weights, sums * (1 - shares @ shares) / (1 - 1 / count)

    weights = plain_descent(
        features,
        count,
        lambda scores: softmax(scores) - own,
        clip=layout.clip,
        share=layout.of_round,
        moments=layout.moments,
        pace=TABLE_PACE,
        epsilon=epsilon,
        start=start,
    )
    logits = features @ weights
    right = np.argmax(logits, axis=1) == labels
    noise = 3 * sigma / math.sqrt(0.02)
    falling = np.array([np.sum(right - softmax(f * logits).max(axis=1)) for f in FACTORS])
    falling -= 2 * noise * np.log2(FACTORS)
    assert np.all(np.diff(falling) < 0)
    scale = 2.0 ** np.interp(0.0, falling[::-1], np.log2(FACTORS)[::-1])
    weights = weights * scale
    held = 2 * math.sqrt(2) * sigma / math.sqrt(0.01)
    totals, expected = own.sum(axis=0), softmax(features @ weights).sum(axis=0)
    shift = np.log((totals + held) / (expected + held))
    weights[0] += (shift - shift.mean()) / constant
    return weights, totals


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kind", TABLES)
def test_classes_are_learnt_as_in_a_plain_loop(kind, classes, epsilon):
    keys, labels = rows_of(kind, classes)
    made = fitted(kind, keys, labels, classes, epsilon)
    weights, totals = plain(kind, keys, labels, made.released.layout, epsilon)
    largest = np.abs(weights).max()
    assert largest > 0.3
    np.testing.assert_allclose(made.coefficients, weights, atol=0.01 * largest)
    np.testing.assert_allclose(made.totals[0], totals, atol=2)
    features = phi(TABLES[kind], keys[:200])
    np.testing.assert_allclose(
        made.probabilities(keys[:200]), softmax(features @ weights), atol=0.01
    )


def test_a_release_of_a_table_keeps_second_moments_factor_and_curvature():
    keys, labels = rows_of("mixed", 3)
    made = fitted("mixed", keys, labels, 3, 3.0)
    _, kept, figures = made.released.others
    features = phi(TABLES["mixed"], keys)
    np.testing.assert_allclose(
        unpacked(kept, features.shape[1]), features.T @ features, atol=1e-3 * ROWS
    )
    scale, noise, curved = figures[0] * 2.0**-30
    sigma = gaussian_sigma(epsilon=3.0, delta=1e-6)
    assert noise == pytest.approx(sigma / math.sqrt(0.03), rel=1e-3)
    assert 2.0**-2 <= scale <= 2.0**1.5
    shares = softmax(features @ made.coefficients)
    off = np.linalg.norm(shares - np.eye(3)[labels], axis=1)
    about = np.sum(shares * (1 - shares), axis=1)[off < made.released.layout.clip].sum() / 2 / ROWS
    assert curved == pytest.approx(about, rel=0.5)


def test_only_tables_tell_errors_by_what_they_keep():
    keys, labels = np.random.default_rng(0).normal(size=(50, 2)), np.arange(50) % 2
    made = discreet.softmax_regression(
        keys, labels, classes=[0, 1], epsilon=1.0, delta=1e-6, features="rays", entropy=Silent()
    )
    assert len(made.released.others) == 1
    with pytest.raises(InvalidInput, match="second moments"):
        _ = made.spread


def test_noise_that_cannot_be_drawn_is_refused_before_a_row_is_read():
    """As much noise as the first pass of the calibration can draw, and not the second."""
    keys, labels = rows_of("mixed", 2)
    options = {"classes": [0, 1], "features": TABLES["mixed"], "epsilon": 1.0, "delta": 1e-6}
    options |= {"groups": np.arange(ROWS) // 2, "group_rows": 2_500.0}
    with pytest.raises(InvalidInput, match="epsilon") as caught:
        discreet.softmax_regression(keys, labels, entropy=Seeded(0), **options)
    assert not any("had been drawn" in note for note in getattr(caught.value, "__notes__", ()))


@pytest.mark.parametrize("kind", [*TABLES, *unknown_tables()])
def test_chunks_order_and_kept_features_change_no_bit_of_a_release_of_a_table(kind):
    kernel = (TABLES | unknown_tables())[kind]
    keys, labels = some_cells(kernel, 300), np.arange(300) % 2
    options = {"classes": [0, 1], "features": kernel, "epsilon": 1.0, "delta": 1e-6}

    def bits(*rows, **more):
        made = discreet.softmax_regression(*rows, entropy=Seeded(4), **options | more).released
        return [part.tobytes() for part in (made.state, *made.others)]

    whole = bits(keys, labels)
    order = np.random.default_rng(0).permutation(300)
    chunks = [(keys[at : at + 77], labels[at : at + 77]) for at in range(0, 300, 77)]
    assert bits(keys[order], labels[order]) == whole
    assert bits(chunks) == whole
    assert bits(keys, labels, memory_limit=0) == whole
    assert bits(lambda: iter(chunks[::-1]), None, memory_limit=0) == whole
