"""Names that many units have: totals by a loop, units of many rows, what is said and refused."""

import math
from collections import Counter

import numpy as np
import pytest
from resealing import resealed

import discreet
from discreet import discover
from discreet.accounting import Disclosure
from discreet.errors import BudgetExceeded, CorruptRelease, InvalidInput
from discreet.ledger import Ledger
from discreet.privacy import Neighbours
from discreet.readers.discovery.mechanism import totals_of
from discreet.sums.selection import LENGTH, Selection
from discreet.testing import Seeded, Silent

SPEND = {"epsilon": 1.0, "delta": 1e-6}


def selection(most=1):
    return Selection(
        most=most,
        multiplier=1.0,
        share=1.0,
        probability=1e-7,
        neighbours=Neighbours.ADD_REMOVE,
    )


def test_totals_of_one_name_a_row_are_counts():
    said = ["b", "a", "b", ["c"], [], ("b",)]
    assert totals_of(said, None, selection()) == {
        "b": 3 * selection().weights(1)[0],
        "a": selection().weights(1)[0],
        "c": selection().weights(1)[0],
    }


def test_of_a_record_the_names_count_that_most_of_its_rows_have_then_by_the_alphabet():
    """By a loop; a name that a row says twice is said once."""
    rng = np.random.default_rng(0)
    said = [rng.choice(list("abcdef"), rng.integers(0, 6)).tolist() for _ in range(60)]
    groups = rng.integers(0, 9, 60).tolist()
    chosen = selection(3)
    wanted = Counter()
    for owner in set(groups):
        rows = [set(each) for each, who in zip(said, groups, strict=True) if who == owner]
        counts = Counter(name for row in rows for name in row)
        kept = sorted(counts, key=lambda name: (-counts[name], name))[:3]
        for name in kept:
            wanted[name] += chosen.weights(len(kept))[0]
    assert totals_of(said, groups, chosen) == dict(wanted)


def test_many_rows_of_one_person_count_once():
    one = totals_of(["a"] * 1_000, [7] * 1_000, selection())
    assert one == {"a": selection().weights(1)[0]}
    found = discover(["only mine"] * 5_000, groups=[1] * 5_000, entropy=Seeded(0), **SPEND)
    assert found.names == ()


def test_groups_that_are_the_same_are_one_however_they_are_written():
    chosen = selection()
    for groups in ([1, 1, 2], np.array([1, 1, 2]), np.array([1, 1, 2], dtype=np.uint8)):
        assert totals_of(["a", "a", "a"], groups, chosen)["a"] == 2 * chosen.weights(1)[0]
    for groups in ([1, "1", 2], [1.0, 1.0, 2.0], [1, 2]):
        with pytest.raises(InvalidInput):
            totals_of(["a", "a", "a"], groups, chosen)


def test_what_was_found_is_a_list_with_counts_and_margins():
    said = ["flu"] * 900 + ["cold"] * 700 + [f"rare {at}" for at in range(300)]
    found = discover(said, entropy=Seeded(1), **SPEND)
    assert found.names == ("flu", "cold")
    assert len(found) == 2
    first = found[0]
    assert (first.name, first.count) == (first[0], first[1])
    assert abs(first.count - 900) < 3 * first.margin
    assert first.margin == found[1].margin == pytest.approx(1.96 * found.selection.stderr, rel=1e-3)
    assert found.guarantee.epsilon == 1.0
    assert not found.private
    assert "NOT PRIVATE" in repr(found)
    assert "rare" not in repr(found) + str(found.card)


def test_names_that_several_of_a_unit_has_count_less():
    said = [["flu", "cold"]] * 800
    found = discover(said, most=2, entropy=Silent(), **SPEND)
    assert [each.count for each in found] == pytest.approx([800 / math.sqrt(2)] * 2, rel=1e-6)


def test_the_receipt_is_a_gaussian_beside_a_disclosure_and_spends_all():
    found = discover(["a"] * 3, **SPEND)
    kinds = {each.kind: each for each, _ in found.receipt.mechanisms}
    assert kinds["disclosure"] == Disclosure(probability=5e-7, neighbours="add_remove")
    spent = discreet.combine([found.receipt], delta=1e-6)
    assert 0.999 < spent.epsilon <= 1.0
    assert found.private
    assert found.receipt.unit == "row"
    by_record = discover(["a"] * 3, groups=[1, 1, 2], neighbours="replace", **SPEND)
    assert (by_record.receipt.unit, by_record.receipt.neighbours) == ("record", "replace")


def test_nothing_at_all_and_nothing_that_many_have_look_alike():
    empty = discover([], entropy=Seeded(1), **SPEND)
    rare = discover([str(at) for at in range(500)], entropy=Seeded(1), **SPEND)
    assert empty.found == rare.found == ()
    one, other = (dict(each.card.to_dict()) for each in (empty, rare))
    assert one == other
    assert str(empty.card) == str(rare.card)
    assert repr(empty) == repr(rare)


@pytest.mark.parametrize(
    "names", ["flu", b"flu", 7, [7], [["a", 7]], ["x" * 1_001], [None], [["a", b"b"]]]
)
def test_what_is_no_list_of_names_is_refused_without_a_quote_and_nothing_is_counted(
    names, tmp_path
):
    ledger = Ledger(tmp_path / "budget.db")
    ledger.create("clinic", epsilon=1.0, delta=1e-5)
    with pytest.raises(InvalidInput) as raised:
        discover(names, ledger=ledger, dataset="clinic", **SPEND)
    assert "flu" not in str(raised.value)
    assert "xxx" not in str(raised.value)
    assert ledger.statement("clinic").spends == ()


def test_a_list_is_counted_once_and_refused_when_there_is_no_room(tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    ledger.create("clinic", epsilon=1.0, delta=1e-5)
    found = discover(["a"] * 9, ledger=ledger, dataset="clinic", analyst="eve", **SPEND)
    [spend] = ledger.statement("clinic").spends
    assert spend.receipt == found.receipt
    with pytest.raises(BudgetExceeded):
        discover(["a"] * 9, account=ledger.account("clinic"), **SPEND)
    assert len(ledger.statement("clinic").spends) == 1


@pytest.mark.parametrize(
    "wrong", [{"epsilon": 0.0}, {"delta": 0.0}, {"most": 0}, {"neighbours": "other"}]
)
def test_options_out_of_range_are_refused(wrong):
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        discover(["a"], **SPEND | wrong)


def test_lengths_are_those_of_one_unit():
    assert LENGTH == 2**24
    assert selection().weights(1)[0] == pytest.approx(LENGTH, rel=1e-6)


def test_names_travel_in_a_file_with_their_guarantee(tmp_path):
    found = discover(["flu"] * 500 + ["gout"] * 200 + ["secret"], **SPEND)
    found.save(tmp_path / "names.safetensors")
    opened = discreet.load(tmp_path / "names.safetensors")
    assert opened.found == found.found
    assert (opened.guarantee, opened.receipt) == (found.guarantee, found.receipt)
    assert str(opened.card) == str(found.card)
    assert b"secret" not in (tmp_path / "names.safetensors").read_bytes()


@pytest.mark.parametrize("change", ["threshold", "noise", "guarantee", "name"])
def test_a_file_that_claims_more_than_its_noise_gives_is_refused(tmp_path, change):
    found = discover(["flu"] * 500 + ["gout"] * 200, **SPEND)
    path = tmp_path / "names.safetensors"
    found.save(path)

    def changed(settings, _):
        if change == "threshold":
            settings["selection"]["probability"] *= 2
        elif change == "noise":
            settings["selection"]["multiplier"] /= 2
        elif change == "guarantee":
            settings["guarantee"]["epsilon"] /= 2
        else:
            settings["names"] = ["flu", "flu"]

    path.write_bytes(resealed(path.read_bytes(), changed))
    with pytest.raises(CorruptRelease):
        discreet.load(path)
