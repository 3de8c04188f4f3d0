"""Names that many units have: weights, thresholds by long arithmetic, and what a door tells."""

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import Disclosure
from discreet.errors import BudgetExceeded, InvalidInput
from discreet.privacy import Neighbours, Privacy
from discreet.sums.door import Door
from discreet.sums.selection import LENGTH, Selection
from discreet.sums.settings import Settings, Unit
from discreet.testing import Seeded, Silent


def chosen(**changes):
    options = {
        "most": 3,
        "multiplier": 5.0,
        "share": 1.0,
        "probability": 1e-7,
        "neighbours": Neighbours.ADD_REMOVE,
    }
    return Selection(**options | changes)


def told(selection, threshold, names):
    """Pr[any of a unit's names is told that nobody else has], with sixty digits."""
    with mpmath.workdps(60):
        hidden = mpmath.mpf(1)
        for weight in selection.weights(names):
            at = (mpmath.mpf(threshold) - mpmath.mpf("0.5") - weight) / selection.law.sigma
            hidden *= mpmath.ncdf(at)
        return 1 - hidden


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("probability", [0.3, 1e-3, 1e-7, 1e-12, 1e-30])
@pytest.mark.parametrize(("most", "decay"), [(1, 1.0), (4, 0.7), (4, 1.0), (12, 1.0), (12, 0.2)])
def test_the_threshold_is_the_least_that_hides_units_of_any_number_of_names(
    most, decay, probability, neighbours
):
    selection = chosen(most=most, decay=decay, probability=probability, neighbours=neighbours)
    at = selection.threshold
    worst = max(told(selection, at, names) for names in range(1, most + 1))
    assert worst <= probability
    below = max(told(selection, at - 1, names) for names in range(1, most + 1))
    # One unit lower, and it is more, but for the allowance for rounding.
    assert below > mpmath.mpf(probability) * (1 - mpmath.mpf("2e-9"))
    assert at > LENGTH / math.sqrt(sum(decay ** (2 * rank) for rank in range(most)))


@pytest.mark.parametrize("multiplier", [0.05, 0.5, 40.0])
def test_few_or_many_names_may_be_the_worst(multiplier):
    """With little noise it is a unit with one name, with much it is one with many."""
    selection = chosen(most=8, multiplier=multiplier)
    each = [selection._least(selection.weights(names)) for names in range(1, 9)]
    assert selection.threshold == max(each)
    assert int(np.argmax(each)) + 1 == (1 if multiplier < 1 else 8)


@given(
    most=st.integers(1, 6),
    decay=st.floats(0.01, 1),
    multiplier=st.floats(0.01, 1e3),
    share=st.floats(0.01, 1),
    probability=st.floats(1e-12, 0.4),
)
@settings(max_examples=40)
def test_thresholds_hide_whatever_the_settings(most, decay, multiplier, share, probability):
    selection = chosen(
        most=most, decay=decay, multiplier=multiplier, share=share, probability=probability
    )
    for names in range(1, most + 1):
        assert told(selection, selection.threshold, names) <= probability


def test_a_share_of_the_budget_has_more_noise_and_a_higher_threshold():
    assert chosen(share=0.25).law.sigma == 2 * chosen().law.sigma == 10 * LENGTH
    assert chosen(share=0.25).threshold > chosen().threshold
    replaced = chosen(neighbours=Neighbours.REPLACE)
    assert replaced.law.sigma == pytest.approx(math.sqrt(2) * chosen().law.sigma, rel=1e-14)
    assert chosen().units_needed == chosen().threshold / LENGTH


@pytest.mark.parametrize(
    "wrong",
    [
        {"most": 0},
        {"most": 2**10 + 1},
        {"multiplier": 0.0},
        {"share": 0.0},
        {"share": 1.1},
        {"probability": 0.0},
        {"probability": 0.5},
        {"decay": 0.0},
        {"decay": 1.1},
        {"neighbours": "add_remove"},
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong):
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        chosen(**wrong)


# --- the door -------------------------------------------------------------------------------------


def whole(selection, *, twice=False, neighbours=Neighbours.ADD_REMOVE):
    return Settings(
        layouts=(),
        privacy=Privacy(1.0, 1e-5, neighbours),
        unit=Unit.ROW,
        beside=(selection.disclosure,) * (1 + twice),
        noun=("list of names", "lists of names"),
    )


def fitting(**changes):
    draft = chosen(**changes)
    return replace(draft, multiplier=whole(draft).multiplier)


def test_a_door_tells_totals_from_the_threshold_on_and_nothing_of_the_others():
    selection = fitting()
    at = selection.threshold
    totals = {"b": at, "a": at - 1, "c": at + 5, "d": 0}
    assert Door(whole(selection), entropy=Silent()).select(selection, totals) == {
        "b": at,
        "c": at + 5,
    }
    assert Door(whole(selection), entropy=Silent()).select(selection, {}) == {}


def test_noise_on_names_is_drawn_after_the_receipt_is_there():
    class Watching(Seeded):
        def words(self, count):
            seen.append(door._receipt is not None)
            return super().words(count)

    seen = []
    selection = fitting()
    door = Door(whole(selection), entropy=Watching(1))
    door.select(selection, {"a": selection.threshold})
    assert seen
    assert all(seen)


def test_the_order_in_which_names_came_changes_nothing():
    selection = fitting()
    totals = {str(at): selection.threshold for at in range(200)}
    backwards = dict(reversed(totals.items()))
    one, other = (
        Door(whole(selection), entropy=Seeded(3)).select(selection, each)
        for each in (totals, backwards)
    )
    assert list(one.items()) == list(other.items())
    assert 50 < len(one) < 150


def test_names_come_out_once():
    selection = fitting(share=0.4)
    door = Door(whole(selection), entropy=Silent())
    door.select(selection, {})
    with pytest.raises(BudgetExceeded, match="has not been made"):
        door.select(selection, {})


def test_a_threshold_that_the_receipt_does_not_have_is_refused():
    selection = fitting()
    other = replace(selection, probability=1e-6)
    with pytest.raises(BudgetExceeded, match="has not been made"):
        Door(whole(selection), entropy=Silent()).select(other, {})


def test_names_with_less_noise_or_other_neighbours_than_the_release_are_refused():
    selection = fitting()
    door = Door(whole(selection), entropy=Silent())
    wrong = (
        replace(selection, multiplier=selection.multiplier * 0.99),
        replace(selection, neighbours=Neighbours.REPLACE),
    )
    for each in wrong:
        with pytest.raises(InvalidInput, match="promise of the whole"):
            door.select(each, {})


def test_two_lists_of_names_need_two_disclosures_and_their_shares():
    selection = chosen(share=0.5)
    both = whole(selection, twice=True)
    selection = replace(selection, multiplier=both.multiplier)
    door = Door(both, entropy=Silent())
    door.select(selection, {})
    door.select(selection, {})
    assert door.promise[1].mechanisms[1] == (
        Disclosure(probability=1e-7, neighbours="add_remove"),
        2,
    )
    with pytest.raises(BudgetExceeded):
        door.select(selection, {})
