"""Tables: counts by a loop, exact margins, shares whose intervals hold, cards, plans and files."""

import math
import time
from dataclasses import replace

import numpy as np
import pytest
from reader_contract import parts_of
from resealing import resealed

import discreet
from discreet.errors import CorruptRelease, InvalidInput, NotPrivateWarning
from discreet.features.nearest import Nearest
from discreet.noise import DiscreteLaplace
from discreet.readers import registry
from discreet.readers.table import TABLE, Table, TableLayout, TableOptions
from discreet.readers.table.answers import Law
from discreet.readers.table.mechanism import most_points, plan, settings_of
from discreet.sums.mechanism import build
from discreet.sums.settings import Unit
from discreet.testing import Seeded, Silent

LABELS = ("a", "b", "c", "d", "e", "f", "g", "h", "i", "j")


def made(keys, values=None, *, groups=None, entropy=None, **options):
    """A table, through the engine's door."""
    chosen = TableOptions(**options)
    rows = TABLE.source(keys, values, groups, chosen)
    [release] = build(TABLE, rows, chosen, entropy=entropy)
    return release


def drawn(count, points, labels, seed=0):
    """Rows near points, of which some have many, and their labels, some of them rare."""
    rng = np.random.default_rng(seed)
    weights = np.arange(1, points + 1) ** -0.7
    at = rng.choice(points, count, p=weights / weights.sum())
    shares = 0.8 * rng.dirichlet(np.full(labels, 0.5), points) + 0.2 / labels
    chances = np.cumsum(shares, axis=1)[at, :-1]
    return at, np.sum(rng.random(count)[:, None] > chances, axis=1)


# --- counts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [1, 3, 7])
def test_without_noise_cells_and_counts_are_those_of_a_loop(labels):
    rng = np.random.default_rng(0)
    points, keys = rng.normal(size=(5, 3)), rng.normal(size=(200, 3))
    names = LABELS[:labels]
    said = rng.integers(0, labels, 200)
    wanted = np.zeros((5, labels))
    rounded = Nearest(points).real_points
    for key, place in zip(keys, said, strict=True):
        unit = key / max(np.linalg.norm(key), 1.0)
        wanted[np.argmax([unit @ point for point in rounded]), place] += 1
    given = None if labels == 1 else np.array(names)[said]
    table = made(
        keys,
        given,
        points=points,
        classes=None if labels == 1 else names,
        epsilon=1.0,
        entropy=Silent(),
    )
    np.testing.assert_allclose(table.counts, wanted.sum(axis=1), atol=1e-9)
    np.testing.assert_allclose(table.cells, wanted, atol=1e-9)
    np.testing.assert_allclose(table.overall, wanted.sum(axis=0) / 200, atol=1e-12)
    one = np.eye(5)[:1]
    shares, _ = table.shares(one)
    if wanted[0].sum() > table.law.count_deviation:
        np.testing.assert_allclose(shares[0], wanted[0] / wanted[0].sum(), atol=1e-9)


def test_no_rows_at_all_are_a_table_under_add_remove():
    table = made(np.zeros((0, 2)), points=np.eye(2), epsilon=1.0, entropy=Silent())
    assert table.counts.tolist() == [0, 0]
    assert table.released.rows is None
    assert table.overall.tolist() == [1.0]


def test_cells_of_a_point_add_up_to_its_count_with_noise_too():
    at, labels = drawn(300, 4, 7)
    table = made(
        np.eye(4)[at],
        np.array(LABELS)[labels],
        points=np.eye(4),
        classes=LABELS[:7],
        epsilon=1.0,
        entropy=Seeded(0),
    )
    np.testing.assert_allclose(table.cells.sum(axis=1), table.counts)
    assert table.classes == LABELS[:7]


# --- margins --------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("labels", [1, 2, 4, 5, 40])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_the_margin_of_a_count_is_the_quantile_of_its_law(labels, epsilon, neighbours):
    """By drawing: as many are within as it says; and a little less would not do."""
    names = [str(each) for each in range(labels)] if labels > 1 else None
    options = TableOptions(points=np.eye(2), classes=names, epsilon=epsilon, neighbours=neighbours)
    settings = settings_of(options, Unit.ROW, pure=epsilon)
    [layout] = settings.layouts
    law = Law(layout, tuple(scale * layout.real_unit for scale in settings.scales(layout)))
    draws, entropy = 40_000, Seeded(0)
    cells = settings.laws(layout)[0].sample((draws, labels), entropy=entropy).sum(axis=1)
    noise = cells * layout.real_unit
    if layout.counts_points:
        own = settings.laws(layout)[1].sample(draws, entropy=entropy) * layout.real_unit
        noise = layout.combined * noise + (1 - layout.combined) * own
    within = np.mean(np.abs(noise) <= law.count_margin + 1e-9)
    spread = 4 * math.sqrt(0.95 * 0.05 / draws)
    assert within >= 0.95 - spread
    below = np.mean(np.abs(noise) < law.count_margin - 1e-4)
    assert below <= 0.95 + spread
    assert noise.std() == pytest.approx(law.count_deviation, rel=0.03)


def test_counts_of_many_labels_are_read_where_they_are_most_exact():
    """A count of its own and the sum over labels, weighed so that their noise is least."""
    for labels in (5, 12, 200):
        options = TableOptions(
            points=np.eye(2), classes=[str(each) for each in range(labels)], epsilon=1.0
        )
        settings = settings_of(options, Unit.ROW, pure=1.0)
        [layout] = settings.layouts
        own, sums = (scale**2 for scale in settings.scales(layout)[::-1])
        best = own / (own + labels * sums)
        assert layout.combined == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("labels", [1, 3, 77, 3_000])
def test_margins_of_records_are_found_in_a_blink_though_their_lattice_is_fine(labels):
    """4,096 units a row; near those of rows, which are exact, where noise is many rows."""
    options = TableOptions(
        points=np.eye(2), classes=range(labels) if labels > 1 else None, epsilon=0.02
    )
    margins, times = [], []
    for unit in Unit:
        settings = settings_of(options, unit, pure=0.02)
        [layout] = settings.layouts
        law = Law(layout, tuple(scale * layout.real_unit for scale in settings.scales(layout)))
        start = time.perf_counter()
        margins.append(law.count_margin)
        times.append(time.perf_counter() - start)
    assert margins[1] == pytest.approx(margins[0], rel=0.02)
    assert max(times) < 5


SHAPES = [  # rows, points, labels, ε: at least some 20 rows a point at ε = 1
    (500, 4, 2, 0.5),
    (500, 4, 4, 1.0),
    (500, 4, 10, 4.0),
    (500, 20, 2, 4.0),
    (2_000, 4, 30, 4.0),
    (2_000, 20, 4, 1.0),
    (2_000, 20, 10, 4.0),
    (2_000, 100, 2, 4.0),
    (20_000, 20, 30, 0.5),
    (20_000, 100, 4, 0.5),
    (20_000, 100, 10, 1.0),
    (20_000, 150, 2, 4.0),
]
CROWDED = [  # where noise is as large as what is counted, and shares are cut off at 0
    (500, 20, 10, 0.5),
    (500, 20, 30, 1.0),
    (2_000, 100, 10, 1.0),
    (2_000, 100, 30, 1.0),
]


def held(rows, points, labels, epsilon, builds=100):
    """How often intervals of counts, of shares, and of the largest shares hold, for many builds."""
    at, places = drawn(rows, points, labels)
    names = [str(each) for each in range(labels)]
    exact = made(
        np.eye(points)[at],
        np.array(names)[places],
        points=np.eye(points),
        classes=names,
        epsilon=epsilon,
        entropy=Silent(),
    )
    rng = np.random.default_rng(1)
    cosines = rng.normal(size=(30, points)) / 4
    weights = np.exp(12 * (cosines - cosines.max(axis=1, keepdims=True)))
    weights = np.concatenate([weights, np.eye(points)[:: max(points // 30, 1)]])
    near = weights @ exact.cells
    truth = near / near.sum(axis=1, keepdims=True)
    whole = exact.released
    counts, shares, large = [], [], []
    for seed in range(builds):
        entropy = Seeded(seed)
        laws = [DiscreteLaplace(scale=scale) for scale in whole.scales]
        noisy = [
            part + law.sample(part.shape, entropy=entropy)
            for part, law in zip(parts_of(exact), laws, strict=True)
        ]
        table = Table(replace(whole, state=noisy[0], others=tuple(noisy[1:])))
        counts.append(np.abs(table.counts - exact.counts) <= table.count_margin + 1e-9)
        found, margins = table.shares(weights)
        inside = np.abs(found - truth) <= margins + 1e-12
        shares.append(inside)
        large.append(inside[np.arange(len(truth)), truth.argmax(axis=1)])
    whole_counts = np.concatenate(counts)
    # What is left of 95% by chance, in so many counts.
    low = 0.95 - 4 * math.sqrt(0.95 * 0.05 / whole_counts.size)
    assert whole_counts.mean() >= low
    return [float(np.mean(np.concatenate(each))) for each in (shares, large)]


@pytest.mark.parametrize(("rows", "points", "labels", "epsilon"), SHAPES)
def test_intervals_of_counts_and_shares_hold_95_of_100_times(rows, points, labels, epsilon):
    """Of counts at least: whole rows are a coarse lattice."""
    shares, large = held(rows, points, labels, epsilon)
    assert 0.92 <= shares <= 0.98
    assert 0.92 <= large <= 0.985


@pytest.mark.parametrize(("rows", "points", "labels", "epsilon"), CROWDED)
def test_intervals_of_shares_are_never_too_narrow(rows, points, labels, epsilon):
    """A share that is nearly zero is found to be so more often than its interval says."""
    shares, large = held(rows, points, labels, epsilon)
    assert shares >= 0.95
    assert large >= 0.89


def test_shares_are_shares_whatever_the_noise():
    table = made(
        np.zeros((0, 2)),
        np.array([], dtype=str),
        points=np.eye(6, 2),
        classes=LABELS,
        epsilon=0.05,
        entropy=Seeded(4),
    )
    weights = np.abs(np.random.default_rng(0).normal(size=(200, 6)))
    shares, margins = table.shares(weights)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert np.all((shares >= 0) & (shares <= 1))
    assert np.all((margins > 0) & (margins <= 1))


def test_shares_are_the_nearest_ones_to_what_was_counted():
    """No other shares are nearer: tried against many, and against those that were there already."""
    from discreet.readers.table.answers import _nearest_shares

    rng = np.random.default_rng(0)
    estimates = rng.normal(0.25, 0.4, size=(50, 4))
    found = _nearest_shares(estimates)
    others = rng.dirichlet(np.ones(4), size=(2_000,))
    for estimate, own in zip(estimates, found, strict=True):
        assert own.sum() == pytest.approx(1)
        least = np.sum((others - estimate) ** 2, axis=1).min()
        assert np.sum((own - estimate) ** 2) <= least + 1e-12
    whole = rng.dirichlet(np.ones(5), size=20)
    np.testing.assert_allclose(_nearest_shares(whole), whole, atol=1e-12)


# --- options, plans, cards and files --------------------------------------------------------------


def test_what_makes_no_table_is_refused():
    with pytest.raises(InvalidInput, match="as wide as keys"):
        made(np.zeros((3, 3)), points=np.eye(2), epsilon=1.0)
    with pytest.raises(InvalidInput, match="one of classes") as raised:
        made(np.eye(2), ["a", "secret"], points=np.eye(2), classes=["a", "b"], epsilon=1.0)
    assert "secret" not in str(raised.value)
    for points in (np.zeros((0, 2)), np.zeros(3), np.array([[np.nan, 1.0]])):
        with pytest.raises(InvalidInput, match="points"):
            TableOptions(points=points, epsilon=1.0)
    with pytest.raises(InvalidInput, match="cells"):
        TableLayout(kernel=Nearest(np.ones((2**16, 1))), classes=tuple(range(300)))


def test_a_plan_says_how_far_counts_will_be_off_and_when_points_are_too_many():
    few = plan(rows=2_000, key_dim=2, points=np.eye(2), epsilon=1.0)
    table = made(np.eye(2), points=np.eye(2), epsilon=1.0)
    assert few.count_margin == table.count_margin
    assert few.warning is None
    crowded = plan(rows=100, key_dim=20, points=np.eye(20), epsilon=1.0)
    assert "noise" in crowded.warning
    assert crowded.most_points == most_points(rows=100, epsilon=1.0) == 8
    by_record = plan(rows=2_000, key_dim=2, points=np.eye(2), epsilon=1.0, by_record=True)
    assert by_record.count_margin == pytest.approx(few.count_margin, rel=0.05)


def test_a_card_says_that_no_delta_is_needed():
    table = made(np.eye(2), ["a", "b"], points=np.eye(2), classes=["a", "b"], epsilon=0.5)
    facts = table.card.to_dict()
    assert (facts["epsilon"], facts["delta"], facts["noise_scale"]) == (0.5, 0.0, 2.0)
    assert "δ = 0" in str(table.card)
    assert table.guarantee.delta == 0
    assert discreet.combine([table], delta=1e-9).epsilon == pytest.approx(0.5, rel=1e-6)


@pytest.mark.parametrize("classes", [None, LABELS[:2], LABELS[:7]])
@pytest.mark.parametrize("by_record", [False, True])
def test_a_file_brings_the_same_table_back(classes, by_record, tmp_path):
    at, labels = drawn(60, 3, len(classes or "1"))
    table = made(
        np.eye(3)[at],
        None if classes is None else np.array(classes)[labels],
        points=np.eye(3),
        classes=classes,
        epsilon=1.0,
        groups=np.arange(60) // 2 if by_record else None,
        group_rows=2.5 if by_record else 1.0,
    )
    table.save(tmp_path / "table.safetensors")
    again = discreet.load(tmp_path / "table.safetensors")
    assert type(again) is Table
    assert all(map(np.array_equal, parts_of(again), parts_of(table)))
    assert again.card.to_dict() == table.card.to_dict()
    np.testing.assert_array_equal(again.cells, table.cells)
    assert again.receipt == table.receipt


CHANGES = {
    "less noise": lambda settings, _: settings.update(sigma=settings["sigma"] * 0.99),
    "more noise": lambda settings, _: settings.update(sigma=settings["sigma"] * 1.01),
    "less ε": lambda settings, _: settings["guarantee"].update(epsilon=0.99),
    "a scale of the receipt": lambda settings, _: settings["mechanisms"][0][0].update(scale=5.0),
    "a sensitivity of the receipt": lambda settings, _: settings["mechanisms"][0][0].update(
        sensitivity=2
    ),
    "finer rows": lambda settings, _: settings.update(units=16),
    "other labels": lambda settings, _: settings.update(classes=["a"]),
    "influence of a record": lambda settings, _: settings.update(group_rows=2.0),
    "rows": lambda settings, _: settings.update(rows=7),
    "long points": lambda _, tensors: tensors.update(points=tensors["points"] * 2),
    "no totals": lambda _, tensors: tensors.pop("totals"),
    "fewer cells": lambda _, tensors: tensors.update(state=tensors["state"][..., :2].copy()),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_with_another_promise_is_refused(change):
    table = made(
        np.eye(3), list("abc"), points=np.eye(3), classes=LABELS[:6], epsilon=1.0, entropy=Seeded(1)
    )
    data = registry.to_bytes(table)
    assert registry.from_bytes(resealed(data, lambda *_: None)).receipt == table.receipt
    with pytest.raises(CorruptRelease):
        registry.from_bytes(resealed(data, CHANGES[change]))


def test_a_table_of_test_noise_says_so_when_it_is_opened(tmp_path):
    made(np.eye(2), points=np.eye(2), epsilon=1.0, entropy=Seeded(1)).save(tmp_path / "a.st")
    with pytest.warns(NotPrivateWarning):
        Table.load(tmp_path / "a.st")
