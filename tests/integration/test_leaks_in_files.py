"""What an estimator had to take from the rows goes wherever its release goes."""

import json
import pickle

import numpy as np
import pytest
from markup import Reader
from typer.testing import CliRunner

import discreet
from discreet.cli import app
from discreet.ledger import Ledger

pytest.importorskip("sklearn")

from discreet.sklearn import PrivateClassifier, PrivateRegressor

RUNNER = CliRunner()
LINE = ("taken from the data", "bounds, classes: not covered by the guarantee")
X = np.random.default_rng(0).uniform(0, 9, (300, 2))
# A label that occurs once.
LABELS = np.where(np.arange(300) == 7, "rare", np.where(X[:, 0] > 4, "well", "ill"))


@pytest.fixture(scope="module")
def careless():
    with pytest.warns(discreet.PrivacyLeakWarning):
        return PrivateClassifier(1.0, 1e-5, rows_hint=300).fit(X, LABELS)


@pytest.fixture
def saved(careless, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    careless.release_.save("model.safetensors")
    return discreet.load("model.safetensors")


def card(*arguments):
    result = RUNNER.invoke(app, ["card", "model.safetensors", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_the_file_of_a_classifier_says_that_its_classes_were_taken_from_the_rows(careless, saved):
    assert saved.receipt == careless.receipt_
    assert saved.receipt.leaks == careless.leaks_ == ("bounds", "classes")
    assert LINE in saved.card.sentences
    assert careless.card_ == saved.card
    assert saved.card.to_dict()["leaks"] == ["bounds", "classes"]
    assert saved.guarantee == careless.guarantee_
    assert "taken from the rows and is not covered (bounds, classes)" in str(saved.guarantee)
    assert "taken from the data: bounds, classes" in repr(saved)


def test_so_do_the_commands(saved, tmp_path):
    assert f"{LINE[0]}  {LINE[1]}" in card()
    facts = json.loads(card("--json"))
    assert facts["leaks"] == ["bounds", "classes"]
    assert facts["guarantee"] == str(saved.guarantee)
    assert "is not covered (bounds, classes)" in card("--html")
    page = Reader((tmp_path / "model.html").read_text("utf-8"))
    assert "Taken from the private rows, without noise: bounds, classes." in page.text
    assert LINE[1] in page.text
    assert "can be given away" not in page.text
    assert "computed from private rows" not in page.text


def test_so_do_pickles_what_it_is_combined_with_and_a_ledger(careless, saved, tmp_path):
    again = pickle.loads(pickle.dumps(careless))
    assert again.receipt_ == careless.receipt_
    careful = PrivateClassifier(
        1.0, 1e-5, rows_hint=300, bounds=(0, 9), classes=["ill", "rare", "well"]
    ).fit(X, LABELS)
    assert careful.receipt_.leaks == ()
    assert "taken" not in f"{careful.card_}{careful.guarantee_}{careful.release_!r}"
    both = discreet.combine([careful.release_, saved])
    assert "is not covered (bounds, classes)" in str(both)
    ledger = Ledger(tmp_path / "budget.db")
    ledger.create("clinic", epsilon=3.0, delta=1e-4, neighbours="add_remove")
    ledger.spend("clinic", saved)
    statement = ledger.statement("clinic")
    assert statement.spends[0].receipt == saved.receipt
    assert statement.to_dict()["spends"][0]["leaks"] == ["bounds", "classes"]
    assert "is not covered (bounds, classes)" in str(statement.spent)
    shown = RUNNER.invoke(app, ["ledger", "show", str(tmp_path / "budget.db")])
    assert "taken from the data: bounds, classes" in shown.output


@pytest.mark.parametrize("reader", ["average", "least_squares"])
def test_every_reader_hands_it_down(reader, tmp_path):
    with pytest.warns(discreet.PrivacyLeakWarning):
        fitted = PrivateRegressor(1.0, 1e-5, reader=reader, rows_hint=300).fit(X, X[:, 0])
    fitted.release_.save(tmp_path / "fit.safetensors")
    assert discreet.load(tmp_path / "fit.safetensors").receipt.leaks == ("bounds", "target_bounds")
    with pytest.warns(discreet.PrivacyLeakWarning):
        voted = PrivateClassifier(1.0, 1e-5, reader=reader, bounds=(0, 9)).fit(X, LABELS)
    assert voted.receipt_.leaks == ("classes", "rows_hint")


def test_a_pickle_of_before_says_it_from_now_on(careless, tmp_path):
    """Earlier versions had the names beside the release, and not in it."""
    with pytest.warns(discreet.PrivacyLeakWarning):
        fitted = PrivateClassifier(1.0, 1e-5).fit(X, LABELS)
    released = fitted.release_.released
    bare = discreet.accounting.Receipt.from_dict(
        {name: each for name, each in released.receipt.to_dict().items() if name != "leaks"}
    )
    silent = "the classifier, with all answers to any queries,"
    vars(released).update(
        receipt=bare, guarantee=type(released.guarantee)(1.0, 1e-5, "add_remove", "row", silent)
    )
    again = pickle.loads(pickle.dumps(fitted))
    assert again.release_.receipt.leaks == again.leaks_ == ("bounds", "classes")
    again.leaks_ = ("rows_hint",)
    both = pickle.loads(pickle.dumps(again)).release_.receipt.leaks
    assert set(both) == {"bounds", "classes", "rows_hint"}
    assert LINE in again.card_.sentences
    again.release_.save(tmp_path / "old.safetensors")
    assert discreet.load(tmp_path / "old.safetensors").guarantee == again.guarantee_
    assert "is not covered (bounds, classes)" in str(again.guarantee_)
