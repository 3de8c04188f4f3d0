"""What several fits of an estimator and its clones spend together, and that it is said."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

import discreet
from discreet import PrivacyLeakWarning

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from discreet.sklearn import PrivateRegressor

X = np.random.default_rng(0).uniform(0, 1, (200, 2))
PUBLIC = {"bounds": (0, 1), "target_bounds": (0, 1), "reader": "least_squares"}


def regressor(**more):
    return PrivateRegressor(**{"epsilon": 1.0, "delta": 1e-5, **PUBLIC, **more})


def fitted(model, **more):
    """Fit it, and return what was warned of."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model.fit(X, X[:, 0], **more)
    return [str(each.message) for each in seen]


def test_fits_are_counted_and_told_when_their_number_has_doubled():
    model = regressor()
    said = [fitted(each) for each in (model, model, clone(model), clone(clone(model)), model)]
    assert [len(each) for each in said] == [0, 1, 0, 1, 0]
    assert said[1][0].startswith("2 fits by now")
    assert said[3][0].startswith("4 fits by now")
    assert 1.0 < model.all_fits_.epsilon < 5.0
    alone = regressor().fit(X, X[:, 0])
    assert alone.all_fits_.epsilon == pytest.approx(1.0, rel=1e-2)


@pytest.mark.filterwarnings("ignore:.* fits by now:discreet.PrivacyLeakWarning")
def test_a_search_tells_what_all_of_its_fits_spent():
    model = regressor()
    search = GridSearchCV(model, {"features": ["linear", "unit_linear"]}, cv=2).fit(X, X[:, 0])
    five = discreet.combine([regressor().fit(X, X[:, 0]).receipt_ for _ in range(5)], delta=1e-5)
    assert model.all_fits_.epsilon == pytest.approx(five.epsilon, rel=1e-6)
    assert search.best_estimator_.all_fits_ == model.all_fits_


def test_a_release_that_was_paid_for_is_kept_if_warnings_are_errors():
    """In no case is noise drawn, counted and thrown away."""
    model = regressor().fit(X, X[:, 0])
    first = model.receipt_.id
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(PrivacyLeakWarning):
            model.fit(X, X[:, 0])
    assert model.receipt_.id != first
    assert len(model._fits()._receipts) == 2


def test_fits_that_protect_others_do_not_keep_a_fit_from_its_release():
    """Rows and then records, or other neighbours: there is no sum, and both were released."""
    model = regressor()
    fitted(model)
    fitted(model, groups=np.arange(200) // 2)
    assert model.guarantee_.unit == "record"
    model.set_params(neighbours="replace")
    fitted(model)
    assert str(model.guarantee_.neighbours) == "replace"
    assert "discreet-card" in model._repr_html_()


@pytest.mark.parametrize("how", ["pickle", "file"])
def test_what_was_brought_back_has_a_page(how, tmp_path):
    model = regressor().fit(X, X[:, 0])
    if how == "pickle":
        again = pickle.loads(pickle.dumps(model))
    else:
        model.save(tmp_path / "model")
        again = discreet.load(tmp_path / "model")
    assert "discreet-card" in again._repr_html_()


def test_a_table_brought_back_from_a_file_has_a_page(tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b"])
    columns = {"a": (0, 1), "b": (0, 1)}
    model = PrivateRegressor(1.0, 1e-5, columns=columns, target_bounds=(0, 1)).fit(frame, X[:, 0])
    model.save(tmp_path / "model")
    assert "discreet-card" in discreet.load(tmp_path / "model")._repr_html_()


def test_without_a_fit_there_is_no_sum_of_fits():
    assert not hasattr(regressor(), "all_fits_")
