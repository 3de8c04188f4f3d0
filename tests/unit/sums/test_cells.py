"""Cells: what a record adds, what is refused, and noise in the right order."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.accounting import DiscreteLaplace
from discreet.errors import BudgetExceeded, InvalidInput
from discreet.features.nearest import Nearest
from discreet.noise import DiscreteLaplace as LaplaceLaw
from discreet.privacy import Neighbours, Privacy
from discreet.readers.rounds.counts import Counts
from discreet.readers.table import TABLE, TableLayout, TableOptions
from discreet.readers.table.layout import units_for
from discreet.sums.accumulate import Accumulator
from discreet.sums.cells import _add_capped
from discreet.sums.door import Door
from discreet.sums.settings import Settings, Shape, Unit
from discreet.sums.source import Form, RowSource
from discreet.testing import Seeded, Silent

PRIVACY = Privacy(1.0, 1e-6, Neighbours.ADD_REMOVE)


def layout(**changes):
    return TableLayout(kernel=Nearest(np.eye(3)), **changes)


def whole(**changes):
    options = TableOptions(points=np.eye(3), **changes)
    return TABLE.resolve([Shape(heads=(), key_dim=3, value_dim=1)], options)


def rows(count=5):
    return RowSource.of(np.eye(3)[np.arange(count) % 3], np.zeros((count, 1)), None, Form())


@given(
    places=st.lists(st.integers(0, 4), min_size=1, max_size=40),
    cap=st.integers(0, 200),
    records=st.integers(1, 3),
)
def test_a_capped_record_adds_the_floor_of_its_part_to_each_cell(places, cap, records):
    """⌊c·cap/n⌋ for c of n rows, by fractions; and never more than the cap in all."""
    total = np.zeros(5, dtype=np.int64)
    _add_capped(np.array([places] * records), total, cap)
    for cell in range(5):
        part = math.floor(Fraction(places.count(cell) * cap, len(places)))
        assert total[cell] == records * part
    assert total.sum() <= records * cap


def test_a_record_of_more_rows_than_a_product_would_fit_is_capped_all_the_same():
    """c·cap is far beyond what a float holds exactly, and the order of rows does not matter."""
    places = np.arange(30_000) % 7
    one, other = np.zeros(7, dtype=np.int64), np.zeros(7, dtype=np.int64)
    cap = 2**40 + 12_345
    _add_capped(places[None], one, cap)
    _add_capped(np.random.default_rng(0).permutation(places)[None], other, cap)
    assert np.array_equal(one, other)
    for cell, count in enumerate(np.bincount(places)):
        assert one[cell] == int(count) * cap // 30_000


def test_cells_say_what_a_unit_adds():
    fine = layout(units=16)
    assert fine.row_sensitivity(Neighbours.ADD_REMOVE) == 16
    assert fine.row_sensitivity(Neighbours.REPLACE) == 32
    assert fine.record_bound(2.5) == 40
    assert fine.record_bound(0.3) == 4  # ⌊4.8⌋
    assert (fine.row_bound, fine.real_unit, fine.most_rows) == (16, 1 / 16, 2**62 // 16)


@pytest.mark.parametrize("units", [0, 2**20 + 1, 1.5])
def test_units_are_whole_and_not_too_many(units):
    with pytest.raises(InvalidInput, match="units"):
        layout(units=units)


def test_cells_have_no_heads_and_only_a_layer_of_their_own():
    with pytest.raises(InvalidInput, match="heads"):
        layout(heads=(2,))
    spend = {"privacy": PRIVACY, "unit": Unit.ROW}
    with pytest.raises(InvalidInput, match="settings of their own"):
        Settings(layouts=(layout(),), **spend)
    with pytest.raises(InvalidInput, match="settings of their own"):
        Settings(layouts=(Counts(cells=2, marks=1),), pure=1.0, **spend)
    with pytest.raises(InvalidInput, match="one layer"):
        Accumulator(Settings(layouts=(layout(), layout()), pure=1.0, **spend))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0, 2.1, 8.0, 33.0, 400.0])
@pytest.mark.parametrize("classes", [None, range(3), range(9)])
@pytest.mark.parametrize("neighbours", Neighbours)
def test_the_receipt_has_each_part_with_its_share_of_epsilon_and_no_delta(
    epsilon, classes, neighbours
):
    """Rows are counted so finely that noise of that scale can be drawn, and no finer."""
    made = whole(epsilon=epsilon, classes=classes, neighbours=neighbours)
    [own] = made.layouts
    spent = [Fraction(each.sensitivity) / Fraction(each.scale) for each in made.mechanisms]
    assert float(sum(spent)) == pytest.approx(epsilon, rel=1e-14)
    assert len(spent) == (2 if own.counts_points else 1)
    assert all(isinstance(each, DiscreteLaplace) for each in made.mechanisms)
    assert [each.scale for each in made.laws(own)] == [each.scale for each in made.mechanisms]
    assert min(each.scale for each in made.mechanisms) >= 0.5
    receipt = made.receipt(Silent())
    assert made.guarantee(receipt).delta == 0
    coarse = min(each.scale / own.units for each in made.mechanisms)
    assert own.units == units_for(coarse) == (1 if coarse >= 0.5 else own.units)


def test_noise_is_drawn_after_the_receipt_is_there(monkeypatch):
    """Receipt, then noise; and a second release of the same settings is refused."""
    made = whole(epsilon=1.0, classes=range(6))
    seen = []
    monkeypatch.setattr(
        LaplaceLaw,
        "sample",
        lambda law, size, *, entropy: (seen.append((law, door._receipt)), np.zeros(size, int))[1],
    )
    door = Door(made, entropy=Seeded(1))
    [own] = made.layouts
    door.sum_of(made, rows())
    assert [law.scale for law, _ in seen] == list(made.scales(own))
    assert all(receipt is not None for _, receipt in seen)
    with pytest.raises(BudgetExceeded, match="has not been made"):
        door.sum_of(made, rows())


def test_other_numbers_of_rows_in_two_passes_are_refused():
    made = whole(epsilon=1.0)
    both = Settings(
        layouts=(),
        privacy=PRIVACY,
        unit=Unit.ROW,
        pure=1.0,
        beside=made.mechanisms * 2,
        noun=("corpus", "corpora"),
    )
    door = Door(both, entropy=Silent())
    door.sum_of(made, rows(5))
    with pytest.raises(InvalidInput, match="same rows in every pass") as raised:
        door.sum_of(made, rows(6))
    assert "5" not in str(raised.value)


# --- a door lets nothing out that is not on its receipt -------------------------------------------


def beside(*mechanisms, pure=0.0, unit=Unit.ROW):
    return Settings(
        layouts=(),
        privacy=PRIVACY,
        unit=unit,
        pure=pure,
        beside=mechanisms,
        noun=("corpus", "corpora"),
    )


def test_cells_with_less_noise_than_the_receipt_has_are_refused():
    made = whole(epsilon=1.0)
    for more in (1.001, 2.0):
        door = Door(beside(*made.mechanisms, pure=1.0), entropy=Silent())
        with pytest.raises(BudgetExceeded, match="has not been made"):
            door.sum_of(whole(epsilon=more), rows())


def test_sums_with_gaussian_noise_are_refused_where_the_receipt_has_none():
    """All of ε is for cells: there is no squared budget of which one could have a share."""
    made = whole(epsilon=0.5)
    door = Door(beside(*made.mechanisms, pure=1.0), entropy=Silent())
    with pytest.raises(BudgetExceeded):
        door.sum(Counts(cells=2, marks=1), _marks(), share=0.5)


def _marks():
    return RowSource.of(np.zeros((4, 1)), np.zeros((4, 1)), None, Form())


def test_a_part_with_a_promise_of_its_own_is_refused():
    """More ε, other mechanisms beside it, or other neighbours: less noise than the whole needs."""
    whole_ = beside(*whole(epsilon=0.5).mechanisms)
    part = whole_.part(Counts(cells=2, marks=1), 0.5)
    others = [
        replace(part, privacy=Privacy(9.0, 1e-6, Neighbours.ADD_REMOVE)),
        replace(part, privacy=Privacy(1.0, 1e-2, Neighbours.ADD_REMOVE)),
        replace(part, beside=()),
        replace(part, privacy=Privacy(1.0, 1e-6, Neighbours.REPLACE), beside=()),
    ]
    for other in others:
        with pytest.raises(InvalidInput, match="promise of the whole"):
            Door(whole_, entropy=Silent()).sum_of(other, _marks())
        with pytest.raises(InvalidInput, match="promise of the whole"):
            Door(whole_, entropy=Silent()).portion(other)
    assert Door(whole_, entropy=Silent()).sum_of(part, _marks())


def test_a_part_that_protects_rows_is_refused_in_a_release_that_protects_people():
    made = whole(epsilon=1.0)
    whole_ = beside(*made.mechanisms, pure=1.0, unit=Unit.RECORD)
    with pytest.raises(InvalidInput, match="promise of the whole"):
        Door(whole_, entropy=Silent()).sum_of(made, rows())


def test_cells_with_other_shares_of_epsilon_are_of_other_settings():
    """Their exact sums do not merge: noise is of one share."""
    one = whole(epsilon=1.0)
    other = replace(one, pure=one.pure / 2)
    assert one.digest != other.digest
    assert one.digest == replace(one).digest
