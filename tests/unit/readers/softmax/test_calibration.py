"""After the last round: what is added up of each row, what logits are multiplied by, and totals."""

import math

import numpy as np
import pytest
import torch
from data import unit_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from maps import KINDS, maps
from rounds import confidence_table, rounds_of

import discreet
from discreet.features.fourier import UnitFourier
from discreet.features.linear import UnitLinear
from discreet.readers.rounds.cached import CachedFeatures
from discreet.readers.softmax.layout import Calibration, factor, split
from discreet.sums.source import Table
from discreet.testing import Seeded, Silent

MAPS = maps(3)
POWERS = np.arange(-4, 4) / 2
ROWS, CLASSES = 300, 4
KEYS, LABELS = unit_rows(ROWS, 3), np.arange(ROWS) % CLASSES


def weights_of(kind, scale=20.0, classes=CLASSES):
    shape = (MAPS[kind].features, classes)
    return np.random.default_rng(1).normal(size=shape) * scale


def calibrated(kind, table=None, weights=None):
    table = Table(KEYS, LABELS[:, None]) if table is None else table
    weights = weights_of(kind) if weights is None else weights
    return confidence_table(table, rounds_of(MAPS[kind], CLASSES), weights)


@pytest.mark.parametrize("scale", [0.0, 0.5, 20.0, 1e4])
@pytest.mark.parametrize("kind", KINDS)
def test_each_row_adds_whether_it_is_right_less_how_sure_and_its_label(kind, scale):
    weights = weights_of(kind, scale)
    keys, values = calibrated(kind, weights=weights).read(slice(0, ROWS))
    assert np.array_equal(keys, np.zeros((ROWS, 1)))
    assert values.shape == (ROWS, 8 + CLASSES)
    logits = MAPS[kind].key_features(KEYS).features / MAPS[kind].unit @ weights
    right = np.argmax(logits, axis=1) == LABELS
    for column, power in enumerate(POWERS):
        shares = np.exp(2**power * (logits - logits.max(axis=1, keepdims=True)))
        sure = 1 / shares.sum(axis=1)
        np.testing.assert_allclose(values[:, column], right - sure, atol=3e-3)
    assert np.array_equal(values[:, 8:], np.eye(CLASSES)[LABELS])
    assert np.all(np.sum(values**2, axis=1) <= 9)
    differences, labels = split(values.T)
    assert np.array_equal(differences, values.T[:8])
    assert np.array_equal(labels, values.T[8:])


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_row_is_calibrated_the_same_to_the_bit_alone_in_any_batch_and_at_any_place(kind, kept):
    together = calibrated(kind).read(slice(0, ROWS))[1]

    def table(order):
        made = Table(KEYS[order], LABELS[order, None])
        return calibrated(kind, CachedFeatures.of(made, MAPS[kind]) if kept else made)

    whole = table(np.arange(ROWS))
    assert np.array_equal(whole.read(slice(0, ROWS))[1], together)
    for row in range(0, ROWS, 23):
        assert np.array_equal(whole.read(slice(row, row + 1))[1][0], together[row])
        assert np.array_equal(table(np.array([row])).read(slice(0, 1))[1][0], together[row])
    for index in (slice(7, 200), slice(5, 5), np.array([250, 3, 3, 77])):
        assert np.array_equal(whole.read(index)[1], together[index])
    order = np.random.default_rng(2).permutation(ROWS)
    assert np.array_equal(table(order).read(slice(0, ROWS))[1], together[order])


class Watched(Table):
    """Remembers how many features were asked for at a time."""

    def features(self, layout, keys, memory):
        sizes.append((len(keys) * layout.kernel.features, memory.size))
        return super().features(layout, keys, memory)


sizes = []


def test_few_features_are_in_memory_at_a_time_however_many_rows_are_asked_for():
    kernel = UnitFourier(3, frequencies=512, scale=1.0, key_norm=1.0, query_norm=1.0)
    rows = 3 * 2**21 // kernel.features + 7
    table = Watched(np.resize(KEYS, (rows, 3)), np.zeros((rows, 1)))
    weights = np.random.default_rng(0).normal(size=(kernel.features, 2))
    sizes.clear()
    values = confidence_table(table, rounds_of(kernel), weights).read(slice(0, rows))[1]
    assert len(sizes) == 4
    assert sum(size for size, _ in sizes) == rows * kernel.features
    assert max(size for size, _ in sizes) <= 2**21
    assert max(memory for _, memory in sizes) <= 2**21
    assert np.array_equal(values[ROWS : 2 * ROWS], values[:ROWS])


@pytest.mark.parametrize("classes", [2, 3, 1_000])
@pytest.mark.parametrize("resolution", [8, 15, 22])
def test_its_layout_has_values_of_length_three_and_next_to_no_weight(classes, resolution):
    layout = Calibration.of(rounds_of(UnitLinear(1), classes, resolution=resolution))
    assert (layout.value_dim, layout.value_norm) == (8 + classes, 3.0)
    assert layout.real_tau <= max(3.1e-3, layout.lattice.step)
    longest = np.concatenate([-np.ones(8), np.eye(classes)[0]])
    [weighed] = layout.weigh(longest[None], None)
    assert sum(int(each) ** 2 for each in weighed[:-1]) == layout.value_radius**2
    assert weighed[-1] == layout.tau_units


def line(crossing, slope=1000.0):
    return slope * (crossing - POWERS)


@pytest.mark.parametrize("crossing", [-1.99, -1.3, -0.5, -0.01, 0.0, 0.25, 1.0, 1.49])
@pytest.mark.parametrize("slope", [1e-3, 1.0, 1e6])
def test_the_factor_is_where_differences_cross_zero(crossing, slope):
    assert factor(line(crossing, slope), 0.0) == pytest.approx(2**crossing, rel=1e-9)


def test_between_two_factors_it_is_interpolated():
    differences = np.array([9.0, 8, 7, 6, 3, -1, -5, -9])
    assert factor(differences, 0.0) == pytest.approx(2 ** (0 + 0.5 * 3 / 4))


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_beyond_the_ends_it_is_the_end(noise):
    assert factor(line(5.0), noise) == 2**1.5
    assert factor(line(1.6), noise) == 2**1.5
    assert factor(line(-2.1), noise) == 1 / 4
    assert factor(line(-9.0), noise) == 1 / 4


def test_where_noise_makes_differences_rise_the_nearest_that_fall_are_taken():
    assert factor(np.array([3.0, 3, 3, -1, 1, -3, -3, -3]), 0.0) == pytest.approx(2**-0.5)
    assert factor(POWERS * 10 + 3, 0.0) == 2**1.5  # all of them are their mean, above zero
    assert factor(POWERS * 10 + 2, 0.0) == 1 / 4


@pytest.mark.parametrize("noise", [1e-6, 1.0, 1e9])
def test_without_rows_it_is_one(noise):
    assert factor(np.zeros(8), noise) == 1.0


@pytest.mark.parametrize("crossing", [-2.0, -0.7, 0.4, 1.5])
def test_it_is_pulled_towards_one_by_two_units_of_noise(crossing):
    slope = 100.0
    before = abs(crossing)
    for noise in (0.0, 1.0, 30.0, 100.0, 1e4, 1e9):
        found = math.log2(factor(line(crossing, slope), noise))
        assert found == pytest.approx(crossing * slope / (slope + 2 * noise), abs=1e-9)
        assert abs(found) <= before + 1e-12
        before = abs(found)
    assert before < 1e-6


@settings(max_examples=100)
@given(
    differences=hnp.arrays(np.float64, 8, elements=st.floats(-1e15, 1e15)),
    noise=st.floats(0, 1e12),
)
def test_it_never_leaves_its_range(differences, noise):
    assert 1 / 4 <= factor(differences, noise) <= 2**1.5


def blobs(counts, distance=1.0, seed=0):
    """Some classes, each around a corner, of so many rows."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(counts)), counts)
    keys = np.eye(len(counts))[labels] * distance + rng.normal(size=(len(labels), len(counts)))
    return keys / 4, labels


def fit(keys, labels, classes, **options):
    given = {"epsilon": 2.0, "delta": 1e-6, "features": "rays", "entropy": Silent()}
    return discreet.softmax_regression(keys, labels, classes=range(classes), **given | options)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"neighbours": "replace"},
        {"groups": np.arange(1_530) // 2, "group_rows": 2.0},
        {"features": "linear", "memory_limit": 0},
    ],
)
def test_without_noise_totals_are_how_many_rows_each_class_has(options):
    counts = [1_000, 500, 30, 0]
    totals, error = fit(*blobs(counts), 4, **options).totals
    assert totals.dtype == np.float64
    np.testing.assert_allclose(totals, counts, atol=1)
    assert error > 10  # stated all the same


def test_records_that_are_scaled_down_count_for_less():
    """For one row at least, and for three at most: what a row adds is from 1 to 3 long."""
    keys, labels = blobs([1_000, 500])
    totals, _ = fit(keys, labels, 2, groups=np.arange(1_500) // 10).totals
    records = np.array([100, 50])
    assert np.all(totals >= records - 1)
    assert np.all(totals <= 3 * records + 1)


def test_many_rows_are_counted_but_for_a_part_in_ten_thousand():
    """The constant of the keys is 65,535 out of 65,536."""
    counts = [50_000, 20_000]
    totals, _ = fit(*blobs(counts), 2).totals
    np.testing.assert_allclose(totals, counts, rtol=1e-4)


@pytest.mark.parametrize("times", [1 / 3, 1, 3])
def test_classifiers_are_about_as_sure_as_they_are_right(times):
    """With noise, and for classes that are hard or easy to tell apart."""
    keys, labels = blobs([3_000] * 3, distance=2 * times, seed=7)
    made = fit(keys, labels, 3, entropy=Seeded(1))
    keys, labels = blobs([3_000] * 3, distance=2 * times, seed=8)
    right = np.mean(made.predict(keys) == labels)
    sure = np.mean(np.max(made.probabilities(keys), axis=1))
    assert sure == pytest.approx(right, abs=0.04)


@pytest.mark.parametrize("seed", range(5))
def test_balanced_predictions_find_more_of_a_rare_class(seed):
    keys, labels = blobs([3_600, 400], distance=1.5, seed=seed)
    made = fit(keys, labels, 2, entropy=Seeded(seed))
    keys, labels = blobs([3_600, 400], distance=1.5, seed=seed + 100)
    plain, balanced = made.predict(keys), made.predict(keys, balanced=True)
    found, more = (np.mean(each[labels == 1] == 1) for each in (plain, balanced))
    assert more > found + 0.1
    of_each = [np.mean([np.mean(p[labels == c] == c) for c in (0, 1)]) for p in (plain, balanced)]
    assert of_each[1] > of_each[0]
    assert np.mean(plain == labels) > np.mean(balanced == labels)


def test_balanced_predictions_are_logits_less_the_logarithm_of_totals():
    keys, labels = blobs([900, 90, 9, 0])
    made = fit(keys, labels, 4, entropy=Seeded(3))
    totals, error = made.totals
    shifted = made.logits(keys) - np.log(np.maximum(totals, error))  # no rarer than noise tells
    balanced = made.predict(keys, balanced=True)
    assert np.array_equal(balanced, np.argmax(shifted, axis=1))
    assert np.any(balanced != made.predict(keys))
    for dtype in (torch.float32, torch.float64):
        found = made.predict(torch.tensor(keys, dtype=dtype), balanced=True)
        assert isinstance(found, np.ndarray)
        assert np.mean(found == balanced) > 0.99
    assert made.predict(keys[0], balanced=True).shape == ()
