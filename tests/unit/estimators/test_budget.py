"""Fits that a ledger counts: each of them once, before its noise."""

import pathlib
import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

import discreet
from discreet import BudgetExceeded, InvalidInput
from discreet.ledger import Ledger, State
from discreet.noise import Entropy, SystemEntropy
from discreet.sklearn import PrivateClassifier, PrivateRegressor

# Several fits of one estimator and its clones are warned of: `test_fits.py`.
pytestmark = pytest.mark.filterwarnings("ignore:.* fits by now:discreet.PrivacyLeakWarning")

X = np.random.default_rng(0).uniform(0, 1, (300, 2))
LABELS = (X[:, 0] > 0.5).astype(int)
PEOPLE = np.arange(300) // 3
KINDS = {
    "rounds": (PrivateClassifier, {"classes": [0, 1]}, LABELS),
    "least squares": (
        PrivateClassifier,
        {"classes": [0, 1], "reader": "least_squares", "features": "linear"},
        LABELS,
    ),
    "votes": (PrivateClassifier, {"classes": [0, 1], "reader": "average"}, LABELS),
    "numbers": (PrivateRegressor, {"target_bounds": (0, 1)}, X[:, 0]),
    "means": (PrivateRegressor, {"target_bounds": (0, 1), "reader": "average"}, X[:, 0]),
}


@pytest.fixture
def ledger(tmp_path):
    made = Ledger(tmp_path / "budget.db")
    made.create("clinic", epsilon=2.0, delta=1e-5)
    return made


@pytest.fixture(params=KINDS.values(), ids=KINDS.keys())
def case(request):
    kind, options, y = request.param

    def make(**more):
        return kind(1.0, 1e-6, bounds=(0, 1), rows_hint=300, **options, **more)

    return make, y


def classifier(**more):
    return PrivateClassifier(1.0, 1e-6, bounds=(0, 1), classes=[0, 1], rows_hint=300, **more)


class Counting(Entropy):
    """Tells how much noise was drawn."""

    def __init__(self, before=lambda: None):
        self.drawn = 0
        self.before = before

    def words(self, count):
        self.before()
        self.drawn += count
        return SystemEntropy().words(count)


def ids(ledger, dataset="clinic"):
    return [each.id for each in ledger.statement(dataset).spends]


def test_each_fit_is_counted_once(case, ledger):
    make, y = case
    model = make(ledger=ledger, dataset="clinic")
    first = model.fit(X, y).receipt_
    second = model.fit(X, y).receipt_
    model.predict(X)
    assert ids(ledger) == [first.id, second.id]
    stated = ledger.statement("clinic")
    assert {each.state for each in stated.spends} == {State.SPENT}
    assert [each.delta for each in stated.spends] == [1e-6, 1e-6]
    assert stated.spent.epsilon == pytest.approx(
        discreet.combine([first, second], delta=1e-5).epsilon
    )


def test_an_account_is_a_ledger_a_data_set_and_who_asks(case, ledger):
    make, y = case
    ledger.limit_analyst("clinic", "eve", epsilon=1.5, delta=1e-5)
    make(account=ledger.account("clinic", "eve")).fit(X, y)
    make(ledger=ledger, dataset="clinic", analyst="eve").fit(X, y)
    make(account=ledger.account("clinic")).fit(X, y)
    spends = ledger.statement("clinic").spends
    assert [each.analyst for each in spends] == ["eve", "eve", None]


def test_a_fit_is_counted_before_its_noise(case, ledger):
    make, y = case
    counted = []
    entropy = Counting(before=lambda: counted.append(len(ids(ledger))))
    make(ledger=ledger, dataset="clinic", entropy=entropy).fit(X, y)
    assert entropy.drawn > 0
    assert set(counted) == {1}


def test_a_fit_that_does_not_fit_the_budget_draws_nothing_and_leaves_nothing(case, ledger):
    make, y = case
    entropy = Counting()
    model = make(account=ledger.account("clinic"), entropy=entropy).set_params(epsilon=3.0)
    with pytest.raises(BudgetExceeded, match="'clinic'"):
        model.fit(X, y)
    assert entropy.drawn == 0
    assert ids(ledger) == []
    assert set(vars(model)) == set(model.get_params())  # as unfitted as it was


def test_the_fit_before_stays_when_the_next_is_refused(case, ledger):
    make, y = case
    model = make(account=ledger.account("clinic")).fit(X, y)
    before, kept = model.predict(X), model.release_
    with pytest.raises(BudgetExceeded):
        model.set_params(epsilon=3.0).fit(X, y)
    assert model.release_ is kept
    np.testing.assert_array_equal(model.predict(X), before)


def test_input_that_is_refused_is_not_counted(case, ledger):
    make, y = case
    model = make(account=ledger.account("clinic"))
    with pytest.raises(InvalidInput, match="as many targets"):
        model.fit(X, y[:-1])
    with pytest.raises(InvalidInput, match="NaN"):
        model.fit(np.where(X > 0.9, np.nan, X), y)
    assert ids(ledger) == []


def test_records_have_data_sets_of_their_own(case, ledger):
    make, y = case
    ledger.create("people", epsilon=2.0, delta=1e-5, unit="record")
    make(ledger=ledger, dataset="people").fit(X, y, groups=PEOPLE)
    assert len(ids(ledger, "people")) == 1
    with pytest.raises(InvalidInput, match="record"):
        make(ledger=ledger, dataset="clinic").fit(X, y, groups=PEOPLE)


@pytest.mark.parametrize("more", [("ledger", "dataset"), ("dataset",), ("analyst",), ("ledger",)])
def test_an_account_or_its_parts_but_not_both(case, ledger, more):
    make, y = case
    parts = {"ledger": ledger, "dataset": "clinic", "analyst": "eve"}
    model = make(account=ledger.account("clinic"), **{name: parts[name] for name in more})
    with pytest.raises(InvalidInput, match=r"Expected account, or ledger and dataset, not both\."):
        model.fit(X, y)
    assert ids(ledger) == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"ledger": "budget.db", "dataset": "clinic"}, "ledger"),
        ({"account": "clinic"}, "account='clinic'"),
        ({"dataset": "clinic"}, "given with a ledger"),
        ({"analyst": "eve"}, "given with a ledger"),
    ],
)
def test_what_nobody_can_count_on_is_refused_by_fit(case, given, message):
    make, y = case
    model = make(**given)
    for name, value in given.items():
        assert model.get_params()[name] is value
    with pytest.raises(InvalidInput, match=message):
        model.fit(X, y)


def test_a_ledger_needs_the_name_of_a_data_set_that_it_has(case, ledger):
    make, y = case
    with pytest.raises(InvalidInput, match="Expected a dataset"):
        make(ledger=ledger).fit(X, y)
    with pytest.raises(InvalidInput, match="elsewhere"):
        make(ledger=ledger, dataset="elsewhere").fit(X, y)


def test_clones_count_where_the_original_did(case, ledger):
    make, y = case
    by_account = clone(make(account=ledger.account("clinic", "eve")))
    assert by_account.account == ledger.account("clinic", "eve")
    by_parts = clone(make(ledger=ledger, dataset="clinic", analyst="bob"))
    assert by_parts.get_params()["ledger"] == ledger
    for each in (by_account, by_parts):
        each.fit(X, y)
    assert [each.analyst for each in ledger.statement("clinic").spends] == ["eve", "bob"]


def test_an_unfitted_pickle_counts_where_the_original_did(ledger):
    """Workers of a search are sent pickles: what they fit must not go uncounted."""
    sent = pickle.loads(pickle.dumps(classifier(account=ledger.account("clinic"))))
    made = sent.fit(X, LABELS).receipt_
    assert ids(ledger) == [made.id]


def test_a_fitted_pickle_does_without_the_ledger(case, ledger):
    make, y = case
    model = make(account=ledger.account("clinic")).fit(X, y)
    data = pickle.dumps(model)
    for path in ledger.path.parent.iterdir():
        path.unlink()
    ledger.path.parent.rmdir()
    shipped = pickle.loads(data)
    np.testing.assert_array_equal(shipped.predict(X), model.predict(X))
    assert shipped.guarantee_ == model.guarantee_
    assert clone(shipped).account == model.account
    assert type(shipped).__name__ in repr(shipped)
    with pytest.raises(discreet.DiscreetError):  # and is not fitted uncounted
        shipped.fit(X, y)
    np.testing.assert_array_equal(shipped.predict(X), model.predict(X))


def test_every_fit_of_a_search_and_of_cross_validation_is_counted(ledger):
    ledger.create("large", epsilon=40.0, delta=1e-4)
    model = classifier(ledger=ledger, dataset="large")
    cross_val_score(model, X, LABELS, cv=3)
    assert len(ids(ledger, "large")) == 3
    search = GridSearchCV(model, {"epsilon": [0.5, 1.0]}, cv=3).fit(X, LABELS)
    assert len(ids(ledger, "large")) == 3 + 2 * 3 + 1  # and the last one, of all rows
    assert ids(ledger, "large")[-1] == search.best_estimator_.receipt_.id


def test_a_search_beyond_the_budget_ends_there(ledger):
    search = GridSearchCV(
        classifier(ledger=ledger, dataset="clinic"),
        {"group_rows": [1.0, 2.0]},
        cv=5,
        error_score="raise",
    )
    with pytest.raises(BudgetExceeded):
        search.fit(X, LABELS)
    assert ledger.statement("clinic").spent.epsilon <= 2.0


def test_the_page_of_a_notebook_shows_where_it_counts(ledger):
    model = classifier(account=ledger.account("clinic"))
    assert "clinic" in model._repr_html_()
    assert "clinic" in model.fit(X, LABELS)._repr_html_()
    assert "clinic" in repr(model)


def test_a_pickle_of_before_there_was_a_ledger_is_counted_nowhere():
    files = pathlib.Path(__file__).parents[2] / "golden" / "files"
    with pytest.warns(discreet.NotPrivateWarning):
        model = pickle.loads((files / "estimator-v1-regressor.pickle").read_bytes())
    assert "PrivateRegressor" in model._repr_html_()
    again = clone(model)
    assert again.get_params()["account"] is again.get_params()["ledger"] is None
    rows = np.random.default_rng(0).uniform(-1, 1, (60, 3))
    assert again.fit(rows, rows[:, 0] ** 2).guarantee_.epsilon == model.epsilon
