"""The end of a page: what a file proves, what its builder states, and what to ask."""

import warnings

import numpy as np
import pytest
from data import unit_rows
from markup import Reader

import discreet
from discreet.ledger import Ledger, Standing
from discreet.pages import as_html
from discreet.testing import Seeded

SMALL = {"epsilon": 1.0, "delta": 1e-6, "scale": 1.0, "kernel": "minimax"}
SAID = {"data": "visits", "builder": "Ann", "contact": "ann@clinic.example"}


def built(**options):
    rows = unit_rows(200, 3)
    return discreet.build(rows, rows, **SMALL, **options)


def end_of(release, standing=None):
    """The text of the checklist, and of each of its three parts."""
    page = as_html(release, name="a", pictures=False, standing=standing)
    text = Reader(page).text.partition("For whoever has to decide")[2]
    proves, _, rest = text.partition("What its builder states")
    states, _, ask = rest.partition("What to ask")
    assert page.index('id="proves"') < page.index('id="states"') < page.index('id="ask"')
    assert page.index('id="card"') < page.index('id="decide"')
    return proves, states, ask


def test_it_names_what_is_stated_and_what_is_not():
    proves, states, ask = end_of(built(stated=SAID))
    assert "data visits builder Ann purpose not stated contact ann@clinic.example" in states
    assert "date not stated" in states
    assert "What is not stated: What is it for? When was it built?" in ask
    assert "Ann" not in proves
    _, nothing, ask = end_of(built())
    assert nothing.count("not stated") == 5
    assert "What is not stated: Whose rows are these, and from when? Who built the file?" in ask
    everything = {**SAID, "purpose": "wards", "date": "2026-03-01"}
    assert "What is not stated" not in end_of(built(stated=everything))[2]


def test_what_is_proved_is_the_promise_and_whom_it_is_about():
    release = built()
    proves, _, ask = end_of(release)
    assert str(release.guarantee) in proves
    assert "any one row, there or not" in proves
    assert "Can one person have several rows?" in ask
    assert "Are all rows of one person one record" not in ask
    replaced = built(groups=np.arange(200) // 2, neighbours="replace")
    proves, states, ask = end_of(replaced)
    assert "any one record, replaced by another" in proves
    assert "how many records there are" in proves
    assert "which rows are one record, and whose" in states
    assert "Are all rows of one person one record" in ask


def test_a_file_for_tests_proves_nothing():
    release = built(entropy=Seeded(1))
    proves, states, ask = end_of(release)
    assert "NOT PRIVATE" in proves
    assert str(release.guarantee) not in proves
    assert "a source for tests" in states
    assert "known to nobody" not in states
    assert ask.strip().startswith("Why was it made with a source of noise for tests?")
    assert "tests" not in " ".join(end_of(built()))


def test_a_figure_of_rows_is_asked_for_only_where_it_might_be_a_count():
    assert "figure of 300 rows" in end_of(built(rows_hint=300))[2]
    assert "figure of" not in end_of(built())[2]
    assert "figure of" not in end_of(built(rows_hint=200, neighbours="replace"))[2]


def test_what_was_taken_from_rows_is_in_all_three_parts():
    sklearn = pytest.importorskip("discreet.sklearn", reason="needs the extra `sklearn`")
    rows = unit_rows(200, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", discreet.PrivacyLeakWarning)
        model = sklearn.PrivateClassifier(1.0, 1e-6, norm=1.0, rows_hint=200)
        model.fit(rows, np.where(rows[:, 0] > 0, "yes", "no"))
    proves, states, ask = end_of(model.release_)
    assert "taken from the rows, and is not covered: classes" in proves
    assert "without looking at the private rows, but for classes" in states
    assert "may anybody know it: classes?" in ask


def test_a_ledger_stands_beside_it(tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    ledger.create("clinic", epsilon=4.0, delta=1e-5)
    first, second = (built(ledger=ledger, dataset="clinic") for _ in range(2))
    ledger.released(first, "<b>first</b>.safetensors")
    _, states, ask = end_of(second, Standing.of(second, ledger))
    assert str(ledger.statement("clinic")) in states
    assert "1 of the same data" in states
    assert "<b>first</b>.safetensors" in states  # as a text
    assert "Does this ledger count all releases" in ask
    for standing in (None, Standing.of(built(), ledger)):
        _, states, ask = end_of(second, standing)
        assert "nobody here can say which there are" in states
        assert "Who holds the ledger" in ask
