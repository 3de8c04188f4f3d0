"""Estimators of tables: columns with a schema, of all types, with what is missing."""

import copy
import pickle
import traceback
import warnings

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet
from discreet import InvalidInput, NotPrivateWarning, PrivacyLeakWarning

pytest.importorskip("sklearn")

import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from discreet._keys import MISSING
from discreet.features.columns import Bins, Categories
from discreet.readers.glm import GeneralizedLinear
from discreet.readers.least_squares.answers import LeastSquares
from discreet.readers.softmax.answers import SoftmaxRegression
from discreet.sklearn import PrivateClassifier, PrivateRegressor
from discreet.tables import Date, Private, Schema
from discreet.testing import Seeded, Silent

# Noise is for tests, and some of them fit clones.
pytestmark = [
    pytest.mark.filterwarnings("ignore::discreet.NotPrivateWarning"),
    pytest.mark.filterwarnings("ignore:.* fits by now:discreet.PrivacyLeakWarning"),
]

ROWS = 400
COLUMNS = {
    "since": Date("2010-01-01", "2020-01-01"),
    "owner": [False, True],
    "age": (18, 90),
    "job": ["cook", "clerk", "smith"],
    "income": (0, 200_000),
}


def people(rows=ROWS, seed=0):
    """A table with numbers, amounts, texts, booleans and dates, some of them missing."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.uniform(18, 90, rows).round(2),
            "income": rng.exponential(3e4, rows).round(),
            "job": rng.choice(["cook", "clerk", "smith"], rows),
            "owner": rng.random(rows) < 0.5,
            "since": np.datetime64("2010-01-01", "s") + rng.integers(0, 315_000_000, rows),
            "note": "not to be read",
        }
    )
    frame.loc[::7, "income"] = np.nan
    frame.loc[::11, "job"] = None
    frame.loc[::13, "since"] = pd.NaT
    return frame


TABLE = people()
OLD = (TABLE["age"] > 50).to_numpy().astype(int)
THREE = OLD + (TABLE["age"] > 70).to_numpy().astype(int)
PAIR = np.column_stack([OLD, TABLE["owner"].to_numpy().astype(int)])
YEARS = TABLE["age"].to_numpy() * 1.0
BOTH = np.column_stack([YEARS, -2 * YEARS])
SALES = np.expm1(YEARS / 15)

CASES = {
    "two classes": (PrivateClassifier, {"classes": [0, 1]}, OLD),
    "three classes": (PrivateClassifier, {"classes": [0, 1, 2]}, THREE),
    "several labels": (PrivateClassifier, {}, PAIR),
    "classes, least squares": (
        PrivateClassifier,
        {"classes": [0, 1], "reader": "least_squares"},
        OLD,
    ),
    "numbers": (PrivateRegressor, {"target_bounds": (0, 100)}, YEARS),
    "two numbers": (PrivateRegressor, {"target_bounds": ([0, -200], [100, 0])}, BOTH),
    "logarithms": (PrivateRegressor, {"target_bounds": (0, 500), "target": "log"}, SALES),
    "numbers, least squares": (
        PrivateRegressor,
        {"target_bounds": (0, 100), "reader": "least_squares"},
        YEARS,
    ),
}


@pytest.fixture(params=CASES.values(), ids=CASES.keys())
def case(request):
    kind, options, y = request.param

    def make(**more):
        given = {"epsilon": 4.0, "delta": 1e-5, "columns": COLUMNS, "rows_hint": ROWS}
        return kind(**{**given, "entropy": Silent(), **options, **more})

    return make, y


def classifier(**more):
    given = {"columns": COLUMNS, "classes": [0, 1], "rows_hint": ROWS, "entropy": Silent()}
    return PrivateClassifier(**{"epsilon": 4.0, "delta": 1e-5, **given, **more})


def states(model):
    released = model.release_.released
    return [released.state, *released.others]


def same_bits(one, other):
    return all(map(np.array_equal, states(one), states(other)))


# Fits.


def test_rows_of_tables_are_learnt_from(case):
    make, y = case
    model = make().fit(TABLE, y)
    assert model.score(TABLE, y) > 0.75
    assert model.n_features_in_ == 5
    assert model.feature_names_in_.tolist() == list(COLUMNS)
    assert model.leaks_ == ()
    assert model.guarantee_.epsilon == 4.0
    predicted = model.predict(TABLE)
    assert np.shape(predicted) == np.shape(y)
    assert np.all(np.isfinite(predicted))


def test_without_silence_rows_are_learnt_from_too(case):
    make, y = case
    model = make(entropy=Seeded(1)).fit(TABLE, y)
    assert np.all(np.isfinite(model.predict(TABLE)))
    if model.reader_ == "rounds":
        assert model.score(TABLE, y) > 0.3


@pytest.mark.parametrize(
    ("name", "kind", "reader"),
    [
        ("two classes", SoftmaxRegression, "rounds"),
        ("several labels", GeneralizedLinear, "rounds"),
        ("numbers", GeneralizedLinear, "rounds"),
        ("numbers, least squares", LeastSquares, "least_squares"),
    ],
)
def test_tables_are_learnt_in_rounds_unless_another_reader_is_named(name, kind, reader):
    made, options, y = CASES[name]
    model = made(4.0, 1e-5, columns=COLUMNS, **options).fit(TABLE, y)
    assert type(model.release_) is kind
    assert model.reader_ == reader


def test_predictions_do_not_depend_on_what_else_is_asked(case):
    """What is missing in one row is a huge key, and must not shorten the others."""
    make, y = case
    model = make().fit(TABLE, y)
    whole = model.predict(TABLE)
    complete = ~TABLE[list(COLUMNS)].isna().any(axis=1).to_numpy()
    np.testing.assert_allclose(model.predict(TABLE[complete]), whole[complete], rtol=1e-9)
    for row in (0, 1, 2, 13):
        np.testing.assert_allclose(
            model.predict(TABLE.iloc[[row]])[0], whole[row], rtol=1e-9, atol=1e-12
        )


def test_classes_scores_and_probabilities_agree():
    two = classifier().fit(TABLE, OLD)
    shares = two.predict_proba(TABLE)
    assert shares.shape == (ROWS, 2)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    scores = two.decision_function(TABLE)
    np.testing.assert_array_equal(two.predict(TABLE), scores > 0)
    np.testing.assert_allclose(shares[:, 1], 1 / (1 + np.exp(-scores)))
    three = classifier(classes=["a", "b", "c"]).fit(TABLE, np.array(["a", "b", "c"])[THREE])
    assert three.decision_function(TABLE).shape == (ROWS, 3)
    assert three.classes_.tolist() == ["a", "b", "c"]
    best = three.predict_proba(TABLE).argmax(axis=1)
    np.testing.assert_array_equal(three.predict(TABLE), three.classes_[best])


def test_several_labels_are_each_by_themselves():
    model = classifier(classes=None).fit(TABLE, PAIR)
    predicted, shares = model.predict(TABLE), model.predict_proba(TABLE)
    assert predicted.shape == shares.shape == model.decision_function(TABLE).shape == (ROWS, 2)
    assert set(np.unique(predicted)) == {0, 1}
    np.testing.assert_array_equal(predicted, shares > 0.5)
    assert np.mean(predicted == PAIR, axis=0).min() > 0.95
    assert not np.allclose(shares.sum(axis=1), 1)
    assert model.classes_.tolist() == [0, 1]


@pytest.mark.parametrize(
    "given",
    [PAIR.astype(bool), PAIR.astype(float), pd.DataFrame(PAIR, columns=["a", "b"]), PAIR.tolist()],
    ids=["booleans", "floats", "frame", "lists"],
)
def test_labels_may_have_any_type(given):
    model = classifier(classes=None).fit(TABLE, given)
    assert same_bits(model, classifier(classes=None).fit(TABLE, PAIR))


def test_labels_in_a_polars_frame():
    given = pl.DataFrame(PAIR, schema=["a", "b"])
    model = classifier(classes=None).fit(pl.from_pandas(TABLE), given)
    assert same_bits(model, classifier(classes=None).fit(TABLE, PAIR))


def test_what_is_no_set_of_labels_is_refused_and_not_quoted():
    for odd in (4711, -1, 0.5):
        labels = PAIR.astype(float)
        labels[3, 1] = odd
        with pytest.raises(InvalidInput, match="0 or 1") as caught:
            classifier(classes=None).fit(TABLE, labels)
        assert str(odd) not in str(caught.value)
    with pytest.raises(InvalidInput, match="classes"):
        classifier(classes=[0, 1]).fit(TABLE, PAIR)
    for reader in ("average", "least_squares"):
        with pytest.raises(InvalidInput, match="reader"):
            classifier(classes=None, reader=reader).fit(TABLE, PAIR)


def test_two_outputs_are_predicted_in_their_own_units():
    kind, options, y = CASES["two numbers"]
    model = kind(4.0, 1e-5, columns=COLUMNS, rows_hint=ROWS, entropy=Silent(), **options)
    predicted = model.fit(TABLE, y).predict(TABLE)
    assert predicted.shape == (ROWS, 2)
    assert np.abs(predicted - y).mean(axis=0)[0] < 8
    assert np.abs(predicted - y).mean(axis=0)[1] < 16
    assert predicted[:, 0].min() >= 0
    assert predicted[:, 1].max() <= 0


def test_logarithms_are_nearer_in_proportion():
    options = {"columns": COLUMNS, "rows_hint": ROWS, "entropy": Silent()}
    plain, logs = (
        PrivateRegressor(4.0, 1e-5, target_bounds=(0, 500), target=each, **options).fit(
            TABLE, SALES
        )
        for each in ("linear", "log")
    )
    errors = [
        np.abs(np.log1p(each.predict(TABLE)) - np.log1p(SALES)).mean() for each in (plain, logs)
    ]
    assert errors[1] < 0.7 * errors[0]
    assert logs.predict(TABLE).min() >= 0
    assert logs.predict(TABLE).max() <= 500


def test_standard_errors_of_predictions():
    for name in ("numbers", "two numbers", "logarithms", "numbers, least squares"):
        kind, options, y = CASES[name]
        given = {"columns": COLUMNS, "rows_hint": ROWS, **options}
        loud, quiet = (
            kind(epsilon, 1e-5, entropy=Seeded(3), **given).fit(TABLE, y) for epsilon in (0.5, 4.0)
        )
        found = []
        for model in (loud, quiet):
            predicted, errors = model.predict(TABLE, return_std=True)
            np.testing.assert_array_equal(predicted, model.predict(TABLE))
            assert errors.shape == y.shape
            assert errors.min() >= 0
            assert np.all(np.isfinite(errors))
            found.append(np.median(errors))
        assert found[0] > 1.3 * found[1] > 0, name


def test_standard_errors_are_about_the_noise():
    """Fits that differ by their noise only differ by about what they say."""
    kind, options, y = CASES["numbers"]
    fits = [
        kind(4.0, 1e-5, columns=COLUMNS, rows_hint=ROWS, entropy=Seeded(seed), **options).fit(
            TABLE, y
        )
        for seed in range(12)
    ]
    predicted, errors = zip(*(each.predict(TABLE, return_std=True) for each in fits), strict=True)
    spread = np.std(predicted, axis=0, ddof=1)
    assert 0.5 < np.median(np.mean(errors, axis=0) / spread) < 2


# The same bits.


def tables():
    """The same rows in other libraries."""
    return {
        "polars": pl.from_pandas(TABLE),
        "arrow": pa.Table.from_pandas(TABLE),
        "lists": TABLE.to_dict("list"),
        "nullable": TABLE.convert_dtypes(),
        "arrow in pandas": TABLE.convert_dtypes(dtype_backend="pyarrow"),
        "objects": TABLE.astype(object),
        "texts for dates": TABLE.assign(since=TABLE["since"].astype(str).replace("NaT", None)),
        "categories": TABLE.astype({"job": "category"}),
        "other columns first": TABLE[TABLE.columns[::-1]],
        "rows in order": TABLE[list(COLUMNS)].astype(object).to_numpy(),
    }


@pytest.mark.parametrize("name", tables())
def test_a_release_is_the_same_whatever_holds_the_rows(name):
    table = tables()[name]
    for make in (
        lambda: classifier(entropy=Seeded(5)),
        lambda: classifier(
            entropy=Seeded(5), columns={**COLUMNS, "income": "private", "job": "private"}
        ),
    ):
        one, other = make().fit(TABLE, OLD), make().fit(table, OLD)
        assert same_bits(one, other)
        assert np.array_equal(one.predict_proba(TABLE), other.predict_proba(table))


def test_the_order_of_rows_and_what_stands_beside_them_does_not_matter(case):
    make, y = case
    order = np.random.default_rng(2).permutation(ROWS)
    one = make(entropy=Seeded(5)).fit(TABLE, y)
    other = make(entropy=Seeded(5)).fit(TABLE.iloc[order], y[order])
    assert same_bits(one, other)


def test_columns_beyond_their_range_count_as_its_end():
    wild = TABLE.assign(age=TABLE["age"].where(TABLE["age"] < 80, 1e300))
    clipped = TABLE.assign(age=TABLE["age"].where(TABLE["age"] < 80, 90.0))
    assert same_bits(classifier().fit(wild, OLD), classifier().fit(clipped, OLD))


def test_keys_are_what_a_release_takes():
    model = classifier().fit(TABLE, OLD)
    assert np.array_equal(model.release_.predict(model.keys(TABLE)), model.predict(TABLE))
    assert model.keys(TABLE)[0].tolist()[3:] == [MISSING, MISSING]


def test_records():
    model = classifier(group_rows=2.0).fit(TABLE, OLD, groups=np.arange(ROWS) // 4)
    assert model.guarantee_.unit == "record"


# What is found with a share of the budget.


def test_private_columns_are_found():
    columns = {"age": "private", "job": Private("categories"), "since": "private"}
    model = classifier(columns=columns).fit(TABLE, OLD)
    assert model.score(TABLE, OLD) > 0.9
    age, job, since = model.release_.features.columns
    assert isinstance(age, Bins)
    assert age.found
    assert len(age.edges) > 4
    assert 8 <= age.edges[0] < age.edges[-1] <= 128
    assert isinstance(since, Bins)
    assert isinstance(job, Categories)
    assert len(job.places) == 3
    assert model._columns.schema.columns["age"] == Private("numbers")
    assert model._columns.schema.columns["since"] == Private("dates")
    assert model.columns is columns
    assert model.leaks_ == ()
    with pytest.raises(InvalidInput, match="reader"):
        classifier(columns=columns, reader="least_squares").fit(TABLE, OLD)


# As scikit-learn has it.


def test_parameters_are_kept_and_cloned(case):
    make, y = case
    for columns in (COLUMNS, Schema(COLUMNS)):
        model = make(columns=columns).fit(TABLE, y)
        assert model.get_params()["columns"] is columns
        assert model.columns is columns
        other = clone(model)
        assert Schema(other.columns) == Schema(COLUMNS)
        assert not hasattr(other, "release_")
        assert same_bits(other.fit(TABLE, y), model)
        assert repr(other)
        assert "discreet-card" in model._repr_html_()


def test_columns_are_not_looked_at_before_fit():
    model = PrivateClassifier(1.0, 1e-5, columns="nonsense", decision="nonsense")
    assert clone(model).columns == "nonsense"
    model.set_params(columns=COLUMNS)
    assert model.columns is COLUMNS
    with pytest.raises(NotFittedError):
        model.predict(TABLE)


def test_searches_and_pipelines(case):
    make, y = case
    for table in (TABLE, pl.from_pandas(TABLE)):
        assert np.all(np.isfinite(cross_val_score(make(entropy=None), table, y, cv=2)))
    search = GridSearchCV(make(), {"columns": [COLUMNS, {"job": COLUMNS["job"]}]}, cv=2)
    search.fit(TABLE, y)
    assert search.best_params_["columns"] == COLUMNS
    keep = FunctionTransformer(lambda frame: frame.assign(age=frame["age"] * 1.0))
    pipeline = make_pipeline(keep, make()).fit(TABLE, y)
    np.testing.assert_array_equal(pipeline.predict(TABLE), make().fit(TABLE, y).predict(TABLE))


def test_pickles_copies_and_joblib(case, tmp_path):
    make, y = case
    model = make(entropy=None).fit(TABLE, y)
    joblib.dump(model, tmp_path / "model.joblib")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for again in (
            pickle.loads(pickle.dumps(model)),
            copy.deepcopy(model),
            joblib.load(tmp_path / "model.joblib"),
        ):
            np.testing.assert_array_equal(again.predict(TABLE), model.predict(TABLE))
            assert again.feature_names_in_.tolist() == list(COLUMNS)
            assert again.card_ == model.card_
            assert again.get_params().keys() == model.get_params().keys()
    with pytest.warns(NotPrivateWarning, match="Silent"):
        pickle.loads(pickle.dumps(make().fit(TABLE, y)))


def test_pickles_hold_no_rows(case):
    make, y = case
    model = make(entropy=Seeded(1)).fit(TABLE, y)
    data = pickle.dumps(model)
    for number in [*TABLE["age"], *TABLE["income"].dropna()]:
        assert np.float64(number).tobytes() not in data
    twice = make(entropy=Seeded(1)).fit(pd.concat([TABLE] * 2), np.concatenate([y, y]))
    assert abs(len(pickle.dumps(twice)) - len(data)) < 100  # digits of noise
    kept = set(vars(model)) - set(model.get_params())
    public = {"release_", "reader_", "leaks_", "n_features_in_", "_columns", "_targets", "_family"}
    classes = {"classes_"} if isinstance(model, PrivateClassifier) else set()
    assert kept == public | {"feature_names_in_"} | classes


# What is refused: one sentence, and no value.


def refused(call, match):
    with pytest.raises(InvalidInput, match=match) as caught:
        call()
    said = str(caught.value)
    assert said.endswith(".")
    assert said.count("\n") == 0
    for secret in ("4711", "secret", str(ROWS)):
        assert secret not in "".join(traceback.format_exception_only(caught.value))
    return said


BAD_TABLES = {
    "no such column": (lambda: TABLE.drop(columns="age"), "column 'age'"),
    "another name": (lambda: TABLE.rename(columns={"age": "Age"}), "column 'age'"),
    "texts for numbers": (lambda: TABLE.assign(age="4711"), "column 'age' to hold numbers"),
    "one text": (
        lambda: TABLE.astype({"age": object}).assign(age=["secret", *[4711.0] * (ROWS - 1)]),
        "column 'age' to hold numbers",
    ),
    "numbers for texts": (lambda: TABLE.assign(job=4711), "column 'job' to hold texts"),
    "texts for booleans": (lambda: TABLE.assign(owner="secret"), "column 'owner' to hold numbers"),
    "numbers for dates": (lambda: TABLE.assign(since=4711), "column 'since' to hold dates"),
    "texts for dates": (lambda: TABLE.assign(since="secret"), "column 'since' to hold dates"),
    "dates for numbers": (
        lambda: TABLE.assign(age=np.datetime64("4711-01-01", "s")),
        "column 'age' to hold numbers",
    ),
    "an array of another width": (lambda: np.zeros((ROWS, 4)), "5 columns"),
    "no table": (lambda: None, "table"),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_tables_that_are_not_as_the_schema_says_are_refused(name):
    table, match = BAD_TABLES[name]
    refused(lambda: classifier().fit(table(), OLD), match)
    fitted = classifier().fit(TABLE, OLD)
    for method in (fitted.predict, fitted.predict_proba, fitted.decision_function, fitted.keys):
        refused(lambda method=method: method(table()), match)


def test_a_column_that_no_longer_holds_what_it_held_is_refused():
    columns = {"age": "private", "job": "private"}
    fitted = classifier(columns=columns).fit(TABLE, OLD)
    refused(lambda: fitted.predict(TABLE.assign(age="secret")), "column 'age' to hold numbers")
    with pytest.raises(InvalidInput, match="column 'job'"):
        fitted.predict(TABLE.assign(job=np.datetime64("2020-01-01", "s")))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"bounds": (0, 1)}, "columns= or bounds="),
        ({"norm": 1.0}, "columns= or norm="),
        ({"public_rows": TABLE[:20]}, "columns= or public_rows="),
        ({"features": "linear"}, "features='linear'"),
        ({"reader": "average"}, "reader='average'"),
        ({"columns": {}}, "columns"),
        ({"columns": [("age", (0, 1))]}, "columns"),
        ({"columns": {"age": (90, 18)}}, "'age'"),
        ({"columns": {"age": "everything"}}, "'age'"),
        ({"decision": "fair"}, "decision='fair'"),
        ({"decision": "balanced", "reader": "least_squares"}, "rounds"),
    ],
)
def test_parameters_that_do_not_fit_are_refused_before_anything_is_spent(change, match):
    model = classifier(**change)
    refused(lambda: model.fit(TABLE, OLD), match)
    assert not hasattr(model, "release_")


def test_targets_that_do_not_fit_are_refused(case):
    make, y = case
    refused(lambda: make().fit(TABLE, None), "y")
    refused(lambda: make().fit(TABLE, y[:-1]), "as many targets")
    refused(lambda: make().fit(TABLE[:0], y[:0]), "Expected")
    refused(lambda: make().fit(TABLE, y, sample_weight=np.ones(ROWS)), "sample_weight")
    if not issubclass(type(make()), PrivateClassifier):
        for odd in (np.nan, np.inf):
            refused(lambda odd=odd: make().fit(TABLE, np.where(y > y.mean(), odd, y)), "finite")
        refused(lambda: make(target="root").fit(TABLE, y), "target='root'")


def test_a_fit_that_fails_leaves_the_one_before_as_it_was(case):
    make, y = case
    model = make().fit(TABLE, y)
    before = dict(vars(model))
    for table in (TABLE.drop(columns="age"), TABLE.assign(age="secret")):
        with pytest.raises(InvalidInput):
            model.fit(table, y)
    with pytest.raises(InvalidInput):
        model.fit(TABLE, y[:-1])
    assert vars(model) == before


def test_what_is_not_given_is_taken_with_a_warning():
    with pytest.warns(PrivacyLeakWarning, match="classes="):
        model = classifier(classes=None).fit(TABLE, OLD)
    assert model.leaks_ == ("classes",)
    with pytest.warns(PrivacyLeakWarning, match="target_bounds="):
        PrivateRegressor(1.0, 1e-5, columns=COLUMNS, rows_hint=ROWS).fit(TABLE, YEARS)


def test_tables_need_no_number_of_rows():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", discreet.errors.MostlyNoiseWarning)
        model = PrivateClassifier(1.0, 1e-5, columns=COLUMNS, classes=[0, 1]).fit(TABLE, OLD)
    assert model.leaks_ == ()


# Rare classes.


def test_balanced_decisions_find_more_of_a_rare_class():
    rng = np.random.default_rng(1)
    table = people(3000, seed=1)
    rare = (rng.random(3000) < np.where(table["age"] > 80, 0.3, 0.01)).astype(int)
    found = {}
    for decision in ("probable", "balanced"):
        model = classifier(decision=decision, rows_hint=3000, entropy=Seeded(2)).fit(table, rare)
        found[decision] = model.predict(table)
        scores = model.predict_proba(table)
    assert found["balanced"][rare == 1].mean() > 0.6
    assert found["probable"][rare == 1].mean() < 0.3
    assert np.mean(found["balanced"] == rare) < np.mean(found["probable"] == rare)
    # Probabilities do not change: only what is made of them.
    np.testing.assert_allclose(
        scores, classifier(rows_hint=3000, entropy=Seeded(2)).fit(table, rare).predict_proba(table)
    )
    release = model.release_
    np.testing.assert_array_equal(
        release.predict(model.keys(table), balanced=True), found["balanced"]
    )


def test_settings_of_scikit_learn_change_nothing():
    with sklearn.config_context(transform_output="pandas", enable_metadata_routing=True):
        model = classifier().set_fit_request(groups=True).fit(TABLE, OLD)
        assert isinstance(model.predict(TABLE), np.ndarray)
