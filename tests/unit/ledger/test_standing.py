"""Where a released file stands in a ledger: what it was counted for, and what else there is."""

import dataclasses

import pytest
from ledgers import DELTA, gaussian, receipt

from discreet.errors import InvalidInput
from discreet.ledger import Ledger, Standing
from discreet.ledger.standing import lines_of


@pytest.fixture
def ledger(place):
    made = Ledger(place)
    for name in ("clinic", "school"):
        made.create(name, epsilon=4.0, delta=1e-5)
    return made


def counted(ledger, dataset="clinic", analyst=None):
    made = receipt(0.5)
    ledger.account(dataset, analyst).reserve(made, delta=DELTA).draw()
    return made


def test_it_knows_what_else_there_is_of_the_same_data(ledger):
    first, second = counted(ledger), counted(ledger, analyst="eve")
    counted(ledger, "school")
    ledger.released(first, "first.safetensors")
    standing = Standing.of(second, ledger)
    assert standing.statement.dataset == "clinic"
    assert (standing.spend.id, standing.spend.analyst) == (second.id, "eve")
    assert [each.id for each in standing.others] == [first.id]
    lines = dict(standing.lines)
    assert lines["ledger"] == str(ledger.statement("clinic"))
    assert lines["this release"].endswith("spent, by eve")
    assert lines["other releases"] == "1 of the same data"
    assert "ε = 0.5" in lines["other 1"]
    assert lines["other 1"].endswith("released to first.safetensors")
    told = standing.to_dict()
    assert (told["release"], told["statement"]["dataset"]) == (second.id, "clinic")
    alone = dict(Standing.of(counted(ledger, "school"), ledger).lines)
    assert alone["other releases"] == "1 of the same data"


def test_what_was_taken_back_is_said_to_count_no_more(ledger):
    made, voided = counted(ledger), receipt(0.5)
    ledger.reserve("clinic", voided, delta=DELTA)
    ledger.void(voided.id)
    lines = dict(Standing.of(made, ledger).lines)
    assert "voided, counts no more" in lines["other 1"]


def test_a_release_that_it_does_not_know(ledger):
    counted(ledger)
    standing = Standing.of(stranger := receipt(0.5), ledger)
    assert (standing.statement, standing.spend, standing.others) == (None, None, ())
    lines = dict(standing.lines)
    assert lines["ledger"].startswith(f"does not know this release ({stranger.id})")
    assert lines["other releases"] == dict(lines_of(None))["other releases"]
    assert standing.to_dict() == {"release": stranger.id, "statement": None}


def test_another_receipt_of_the_same_name_is_refused(ledger):
    """A file that took the name of a release which was counted as less than the file spends."""
    made = counted(ledger)
    forged = dataclasses.replace(made, mechanisms=((gaussian(3.0), 1),))
    with pytest.raises(InvalidInput, match="counted something else"):
        Standing.of(forged, ledger)
