"""Files of fitted estimators: they predict the same anywhere, and forged ones are refused.

Then pickles of versions that knew less.
"""

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from resealing import contents, resealed

import discreet
from discreet import CorruptRelease, InvalidInput, NotPrivateWarning, PrivacyLeakWarning

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from discreet.readers.registry import to_bytes
from discreet.sklearn import PrivateClassifier, PrivateRegressor
from discreet.tables import Date, Schema
from discreet.testing import Silent

GENERATOR = np.random.default_rng(0)
ROWS = 300
X = GENERATOR.uniform(0, 1, (ROWS, 3))
LABELS = np.array(["no", "yes", "maybe"])[(X[:, 0] > 0.5).astype(int) + (X[:, 1] > 0.7)]
TARGET = X @ [1.0, 0.5, -0.2]
FRAME = pd.DataFrame(
    {
        "zeal": X[:, 0],
        "amount": np.where(X[:, 1] > 0.9, np.nan, X[:, 1] * 1e5),
        "job": np.array(["cook", "clerk"], dtype=object)[(X[:, 2] > 0.5).astype(int)],
        "when": np.datetime64("2020-01-01", "s") + (X[:, 2] * 1e7).astype(np.int64),
    }
)
COLUMNS = {
    "zeal": (0, 1),
    "amount": (0, 100_000),
    "job": ["cook", "clerk"],
    "when": Date("2020-01-01", "2020-06-01"),
}
PAIR = np.column_stack([LABELS == "yes", X[:, 2] > 0.5]).astype(int)

WORDS = {"classes": ["no", "yes", "maybe"]}
NUMBERS = {"target_bounds": (-1, 2)}
CASES = {
    "bounds, rounds": (PrivateClassifier, {"bounds": (0, [1, 1, 2]), **WORDS}, X, LABELS),
    "bounds, pictures": (
        PrivateClassifier,
        {"bounds": (0, 1), "public_rows": X[:40], **WORDS},
        X,
        LABELS,
    ),
    "bounds, averages of classes": (
        PrivateClassifier,
        {"bounds": (0, 1), "reader": "average", **WORDS},
        X,
        LABELS,
    ),
    "bounds, least squares of classes": (
        PrivateClassifier,
        {"bounds": (0, 1), "reader": "least_squares", **WORDS},
        X,
        LABELS,
    ),
    "norm, classes": (PrivateClassifier, {"norm": 2.0, **WORDS}, X, LABELS),
    "bounds, averages": (
        PrivateRegressor,
        {"bounds": (0, 1), "reader": "average", **NUMBERS},
        X,
        TARGET,
    ),
    "bounds, least squares": (PrivateRegressor, {"bounds": (0, 1), **NUMBERS}, X, TARGET),
    "bounds, a frame": (
        PrivateRegressor,
        {"bounds": (0, 1), **NUMBERS},
        pd.DataFrame(X, columns=["b", "a", "c"]),
        TARGET,
    ),
    "norm, least squares": (PrivateRegressor, {"norm": 2.0, **NUMBERS}, X, TARGET),
    "bounds, numbers in rounds": (
        PrivateRegressor,
        {"bounds": (0, 1), "reader": "rounds", **NUMBERS},
        X,
        TARGET,
    ),
    "columns, classes": (PrivateClassifier, {"columns": COLUMNS, **WORDS}, FRAME, LABELS),
    "columns, balanced": (
        PrivateClassifier,
        {"columns": COLUMNS, "decision": "balanced", **WORDS},
        FRAME,
        LABELS,
    ),
    "columns, several labels": (PrivateClassifier, {"columns": COLUMNS}, FRAME, PAIR),
    "columns, numbers": (PrivateRegressor, {"columns": COLUMNS, **NUMBERS}, FRAME, TARGET),
    "columns, waves": (
        PrivateRegressor,
        {"columns": COLUMNS, "epsilon": 8.0, "delta": 1e-7, **NUMBERS, "rows_hint": 100_000},
        FRAME,
        TARGET,
    ),
    "columns, logarithms of two numbers": (
        PrivateRegressor,
        {"columns": COLUMNS, "target_bounds": (-1, [2, 4]), "target": "log"},
        FRAME,
        np.column_stack([TARGET, 2 * TARGET]),
    ),
    "columns, least squares": (
        PrivateRegressor,
        {"columns": COLUMNS, "reader": "least_squares", **NUMBERS},
        FRAME,
        TARGET,
    ),
    "private columns": (
        PrivateClassifier,
        {"columns": {**COLUMNS, "amount": "private", "job": "private"}, **WORDS},
        FRAME,
        LABELS,
    ),
}


def fitted(name, **more):
    kind, options, rows, y = CASES[name]
    given = {"epsilon": 4.0, "delta": 1e-5, "rows_hint": ROWS, **options}
    return kind(**{**given, **more}).fit(rows, y), rows


def answers(model, rows):
    """All that it can be asked."""
    found = [model.predict(rows), model.keys(rows)]
    if isinstance(model, PrivateClassifier):
        return [*found, model.predict_proba(rows), model.decision_function(rows)]
    return [*found, *model.predict(rows, return_std=True)]


@pytest.mark.parametrize("name", CASES)
def test_a_file_predicts_the_same(name, tmp_path):
    model, rows = fitted(name)
    path = tmp_path / "model.safetensors"
    model.save(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = discreet.load(path)
    assert type(again) is type(model)
    for ours, theirs in zip(answers(model, rows), answers(again, rows), strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(theirs, ours)
    assert again.reader_ == model.reader_
    assert again.n_features_in_ == model.n_features_in_
    names = [list(getattr(each, "feature_names_in_", ())) for each in (model, again)]
    assert names[0] == names[1]
    assert again.card_ == model.card_
    assert again.guarantee_ == model.guarantee_
    assert again.leaks_ == model.leaks_
    if isinstance(model, PrivateClassifier):
        assert again.classes_.tolist() == model.classes_.tolist()
        assert again.classes_.dtype == model.classes_.dtype
    for parameter in ("epsilon", "delta", "neighbours", "rows_hint", "group_rows"):
        assert getattr(again, parameter) == getattr(model, parameter)
    assert again.get_params().keys() == model.get_params().keys()
    # And so on: the file of a file is the file.
    (ours, sums), (theirs, more) = (contents(to_bytes(each.release_)) for each in (model, again))
    assert theirs == ours
    assert sums.keys() == more.keys()
    assert all(np.array_equal(sums[each], more[each]) for each in sums)
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(again)).predict(rows), model.predict(rows)
    )


@pytest.mark.parametrize("name", [name for name in CASES if "columns" in name])
def test_a_file_has_the_schema_and_the_shapes(name, tmp_path):
    model, _ = fitted(name)
    model.save(tmp_path / "model")
    again = discreet.load(tmp_path / "model")
    assert isinstance(again.columns, Schema)
    assert again.columns == model._columns.schema
    assert again.columns.names == list(COLUMNS)  # and not in the order of letters
    if model.reader_ != "rounds":
        return
    assert list(again.shapes_) == list(COLUMNS)
    for ours, theirs in zip(model.shapes_.values(), again.shapes_.values(), strict=True):
        assert ours.labels == theirs.labels
        np.testing.assert_array_equal(theirs.values, ours.values)
        np.testing.assert_array_equal(theirs.stderr, ours.stderr)
    np.testing.assert_array_equal(again.feature_importances_, model.feature_importances_)


def test_a_file_checks_what_it_is_asked_about(tmp_path):
    model, rows = fitted("bounds, a frame")
    model.save(tmp_path / "model")
    again = discreet.load(tmp_path / "model")
    with pytest.raises(ValueError, match="feature names"):
        again.predict(rows[["a", "b", "c"]])
    model, rows = fitted("columns, classes")
    model.save(tmp_path / "model")
    again = discreet.load(tmp_path / "model")
    with pytest.raises(InvalidInput, match="column 'zeal'"):
        again.predict(rows.drop(columns="zeal"))
    np.testing.assert_array_equal(again.predict(rows[rows.columns[::-1]]), model.predict(rows))


def test_a_file_of_a_table_is_fitted_again_with_its_schema(tmp_path):
    model, rows = fitted("columns, numbers")
    model.save(tmp_path / "model")
    again = clone(discreet.load(tmp_path / "model"))
    assert again.columns == Schema(COLUMNS)
    with pytest.raises(NotFittedError):
        again.predict(rows)


AGAIN = (
    "bounds, rounds",
    "norm, classes",
    "bounds, least squares",
    "columns, logarithms of two numbers",
    "private columns",
)


@pytest.mark.parametrize("name", AGAIN)
def test_a_file_has_what_is_public_as_parameters(name, tmp_path):
    """Whoever fits again needs them: else they would be taken from the new rows."""
    model, rows = fitted(name)
    model.save(tmp_path / "model")
    again = discreet.load(tmp_path / "model")
    options = CASES[name][1]
    for parameter in ("bounds", "norm", "columns", "classes", "target_bounds"):
        assert (getattr(again, parameter, None) is None) == (parameter not in options)
    if "norm" in options:
        assert again.norm == options["norm"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyLeakWarning)
        fresh = clone(again).fit(rows, CASES[name][3])
    assert fresh._targets.to_json() == model._targets.to_json()
    assert fresh._columns.to_json() == model._columns.to_json()


def test_what_was_taken_from_rows_is_no_parameter_of_a_file(tmp_path):
    with pytest.warns(PrivacyLeakWarning):
        model = PrivateClassifier(4.0, 1e-5, rows_hint=ROWS).fit(X, LABELS)
    model.save(tmp_path / "model")
    again = discreet.load(tmp_path / "model")
    assert again.leaks_ == ("bounds", "classes")
    assert (again.bounds, again.classes) == (None, None)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    with pytest.warns(PrivacyLeakWarning, match="bounds"):
        clone(again).fit(X, LABELS)


def test_a_number_of_rows_that_was_taken_from_rows_is_no_parameter_of_a_file(tmp_path):
    """Else whoever fits again would give it away as the builder's own figure."""
    options = {"bounds": (0, [1, 1, 2]), **WORDS, "reader": "average"}
    with pytest.warns(PrivacyLeakWarning, match="number of rows"):
        model = PrivateClassifier(4.0, 1e-5, **options).fit(X, LABELS)
    model.save(tmp_path / "model")
    again = discreet.load(tmp_path / "model")
    assert again.leaks_ == ("rows_hint",)
    assert again.rows_hint is None
    with pytest.warns(PrivacyLeakWarning, match="number of rows"):
        assert clone(again).fit(X, LABELS).leaks_ == ("rows_hint",)


CLASSES = {
    "texts": LABELS,
    "texts as objects": LABELS.astype(object),
    "a categorical": pd.Categorical(LABELS),
    "whole numbers": (X[:, 0] > 0.5) * 7 - 3,
    "small numbers": (X[:, 0] > 0.5).astype(np.uint8),
    "large numbers": (X[:, 0] > 0.5) * 2**50,
    "numbers": np.where(X[:, 0] > 0.5, 2.0, 1.0).astype(np.float32),
    "booleans": X[:, 0] > 0.5,
}


@pytest.mark.parametrize("kind", CLASSES)
def test_classes_are_of_the_type_that_they_had(kind, tmp_path):
    y = CLASSES[kind]
    model = PrivateClassifier(4.0, 1e-5, bounds=(0, 1), rows_hint=ROWS, reader="average")
    with pytest.warns(PrivacyLeakWarning, match="labels that occur"):
        model.fit(X, y)
    model.save(tmp_path / "model")
    again = discreet.load(tmp_path / "model")
    for ours, theirs in ((model.classes_, again.classes_), (model.predict(X), again.predict(X))):
        assert ours.dtype == theirs.dtype
        assert ours.tolist() == theirs.tolist()
        assert list(map(type, ours.tolist())) == list(map(type, theirs.tolist()))


@pytest.mark.parametrize(
    "dtype", ["float64", "U1", "U999999999", "V8", "datetime64[D]", 5, ["int8"]]
)
def test_a_type_that_does_not_hold_the_classes_is_refused(dtype, tmp_path):
    model, _ = fitted("columns, classes")

    def change(settings, _):
        settings["estimator"]["targets"]["dtype"] = dtype

    path = tmp_path / "model"
    path.write_bytes(resealed(to_bytes(model.release_for_file()), change))
    with pytest.raises(CorruptRelease, match="Expected"):
        discreet.load(path)


def test_a_type_that_is_too_small_for_the_classes_is_refused(tmp_path):
    model = PrivateClassifier(
        4.0, 1e-5, bounds=(0, 1), classes=[1, 300], rows_hint=100, reader="average"
    )
    model.fit(X, np.where(X[:, 0] > 0.5, 300, 1))

    def change(settings, _):
        settings["estimator"]["targets"]["dtype"] = "int8"

    path = tmp_path / "model"
    path.write_bytes(resealed(to_bytes(model.release_for_file()), change))
    with pytest.raises(CorruptRelease, match="holds the classes"):
        discreet.load(path)


def test_a_type_that_makes_truths_of_numbers_is_refused(tmp_path):
    """0 and False are equal, and not the same."""
    model = PrivateClassifier(4.0, 1e-5, bounds=(0, 1), classes=[0, 1], rows_hint=ROWS)
    model.fit(X, (X[:, 0] > 0.5).astype(int))

    def change(settings, _):
        settings["estimator"]["targets"]["dtype"] = "bool"

    path = tmp_path / "model"
    path.write_bytes(resealed(to_bytes(model.release_for_file()), change))
    with pytest.raises(CorruptRelease, match="holds the classes"):
        discreet.load(path)


def test_a_width_of_embeddings_that_the_release_does_not_have_is_refused(tmp_path):
    model = PrivateClassifier(4.0, 1e-5, norm=1.0, classes=[0, 1], rows_hint=ROWS)
    model.fit(X, (X[:, 0] > 0.5).astype(int))

    def change(settings, _):
        settings["estimator"]["width"] = 10**12

    path = tmp_path / "model"
    path.write_bytes(resealed(to_bytes(model.release_for_file()), change))
    with pytest.raises(CorruptRelease, match="belongs to the release"):
        discreet.load(path)


def test_files_that_do_not_say_the_type_of_classes_are_opened(tmp_path):
    """As those of earlier versions."""
    model, rows = fitted("columns, classes")

    def change(settings, _):
        del settings["estimator"]["targets"]["dtype"]

    path = tmp_path / "model"
    path.write_bytes(resealed(to_bytes(model.release_for_file()), change))
    np.testing.assert_array_equal(discreet.load(path).predict(rows), model.predict(rows))


OTHER_PROCESS = """
import pathlib, sys
import numpy as np, pandas as pd, polars as pl
import discreet
folder = pathlib.Path(sys.argv[1])
frame = pd.read_parquet(folder / "rows.parquet")
tables = {
    "pandas": frame,
    "polars": pl.read_parquet(folder / "rows.parquet"),
    "Arrow": __import__("pyarrow.parquet").parquet.read_table(folder / "rows.parquet"),
    "columns": {name: frame[name].to_numpy() for name in frame},
}
found = {}
for name in ("classes", "numbers"):
    model = discreet.load(folder / name)
    for kind, table in tables.items():
        found[f"{name} of {kind}"] = model.predict(table)
    try:
        model.predict(frame.drop(columns="zeal"))
    except discreet.InvalidInput as error:
        found[f"{name} without zeal"] = np.array(str(error))
found["probabilities"] = discreet.load(folder / "classes").predict_proba(frame)
found["stderr"] = discreet.load(folder / "numbers").predict(frame, return_std=True)[1]
found["arrays"] = discreet.load(folder / "arrays").predict(np.load(folder / "rows.npy"))
np.savez(folder / "found.npz", **found)
"""


@pytest.mark.slow
def test_another_process_predicts_the_same_of_tables_of_any_kind(tmp_path):
    pytest.importorskip("pyarrow", reason="needs the extra `parquet`")
    pytest.importorskip("polars", reason="needs polars")
    models = {
        "classes": fitted("private columns")[0],
        "numbers": fitted("columns, numbers")[0],
        "arrays": fitted("bounds, averages of classes")[0],
    }
    for name, model in models.items():
        model.save(tmp_path / name)
    FRAME.to_parquet(tmp_path / "rows.parquet")
    np.save(tmp_path / "rows.npy", X)
    command = [sys.executable, "-c", OTHER_PROCESS, str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True)
    found = dict(np.load(tmp_path / "found.npz"))
    for name in ("classes", "numbers"):
        for kind in ("pandas", "polars", "Arrow", "columns"):
            np.testing.assert_array_equal(found[f"{name} of {kind}"], models[name].predict(FRAME))
        with pytest.raises(InvalidInput) as raised:
            models[name].predict(FRAME.drop(columns="zeal"))
        assert str(found[f"{name} without zeal"]) == str(raised.value)
    np.testing.assert_array_equal(found["probabilities"], models["classes"].predict_proba(FRAME))
    _, stderr = models["numbers"].predict(FRAME, return_std=True)
    np.testing.assert_array_equal(found["stderr"], stderr)
    np.testing.assert_array_equal(found["arrays"], models["arrays"].predict(X))


@pytest.mark.parametrize("protocol", [2, 5])
def test_a_pickle_is_not_opened_and_said_to_be_one(protocol, tmp_path):
    model, _ = fitted("columns, classes")
    path = tmp_path / "model"
    path.write_bytes(pickle.dumps(model, protocol=protocol))
    with pytest.raises(CorruptRelease, match=r"looks like a pickle.*model\.save"):
        discreet.load(path)


def test_what_is_not_fitted_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError):
        PrivateClassifier(1.0, 1e-5).save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_a_file_replaces_another_whole(tmp_path):
    path = tmp_path / "model"
    path.write_text("something else")
    model, rows = fitted("columns, numbers")
    model.save(path)
    np.testing.assert_array_equal(discreet.load(path).predict(rows), model.predict(rows))
    assert [each.name for each in tmp_path.iterdir()] == ["model"]


def test_a_file_says_if_its_noise_was_for_tests(tmp_path):
    model, _ = fitted("columns, numbers", entropy=Silent())
    model.save(tmp_path / "model")
    with pytest.warns(NotPrivateWarning):
        again = discreet.load(tmp_path / "model")
    assert not again.release_.private


def test_the_release_in_a_file_is_opened_without_an_estimator(tmp_path):
    model, rows = fitted("columns, classes")
    model.save(tmp_path / "model")
    release = discreet.SoftmaxRegression.load(tmp_path / "model")
    np.testing.assert_array_equal(release.predict(model.keys(rows)), model.predict(rows))


def test_a_file_holds_no_rows():
    model, _ = fitted("columns, numbers")
    data = to_bytes(model.release_for_file())
    for number in [*X.ravel(), *FRAME["amount"].dropna()]:
        assert np.float64(number).tobytes() not in data
    settings, _ = contents(data)
    assert set(settings["estimator"]) == {
        "kind",
        "reader",
        "columns",
        "targets",
        "names",
        "width",
        "parameters",
    }


# Forged files.


@pytest.mark.parametrize("name", ["bounds, averages", "columns, classes"])
def test_a_file_that_was_cut_or_altered_is_refused(name, tmp_path):
    model, _ = fitted(name)
    path = tmp_path / "model"
    model.save(path)
    data = path.read_bytes()
    for broken in (
        b"",
        data[:7],
        data[: len(data) // 2],
        data[:-1],
        data + b"\0",
        data.replace(b"zeal", b"meal") if b"zeal" in data else data[:-8] + b"\1" * 8,
        data.replace(b'\\"reader\\"', b'\\"Reader\\"'),
    ):
        assert broken != data
        path.write_bytes(broken)
        with pytest.raises(CorruptRelease):
            discreet.load(path)


def changes():
    """What somebody could write into the description of an estimator, and seal again."""

    def put(*path, value):
        def change(settings, _):
            where = settings["estimator"]
            for name in path[:-1]:
                where = where[name]
            where[path[-1]] = value

        return change

    def drop(*path):
        def change(settings, _):
            where = settings["estimator"]
            for name in path[:-1]:
                where = where[name]
            del where[path[-1]]

        return change

    def whole(value):
        def change(settings, _):
            settings["estimator"] = value

        return change

    fewer = [["zeal", {"range": [0.0, 1.0]}], ["job", ["cook", "clerk"]]]
    odd = {name: each for name, each in COLUMNS.items() if name != "when"}
    return {
        "no kind": drop("kind"),
        "another kind": put("kind", value="oracle"),
        "a regressor": put("kind", value="regressor"),
        "no reader": drop("reader"),
        "another reader": put("reader", value="oracle"),
        "a reader of something else": put("reader", value="average"),
        "no columns": drop("columns"),
        "columns that are a number": put("columns", value=5),
        "columns that are empty": put("columns", value={}),
        "a schema that is none": put("columns", "schema", value=[["zeal", {"range": [1.0, 0.0]}]]),
        "a schema of something": put("columns", "schema", value=[["zeal", 5]]),
        "a schema of a range that is a number": put(
            "columns", "schema", value=[["zeal", {"range": 5}]]
        ),
        "a schema that is shorter": put("columns", "schema", value=fewer),
        "a schema of other names": put(
            "columns",
            "schema",
            value=[["when", "private dates"], *Schema(odd).to_json().items()],
        ),
        "ranges": put("columns", value={"low": [0], "high": [1], "root": 0.5, "directions": False}),
        "a norm": put("columns", value={"norm": 1.0}),
        "no targets": drop("targets"),
        "targets that are empty": put("targets", value={}),
        "one class": put("targets", "classes", value=["no"]),
        "two classes of three": put("targets", "classes", value=["no", "yes"]),
        "other classes": put("targets", "classes", value=["a", "b", "c"]),
        "a class twice": put("targets", "classes", value=["no", "no", "yes"]),
        "classes that are a number": put("targets", "classes", value=3),
        "numbers": put("targets", value={"low": [0], "high": [1], "single": True, "log": False}),
        "labels": put("targets", value={"labels": 3}),
        "no names": drop("names"),
        "names that are too few": put("names", value=["zeal"]),
        "names that are numbers": put("names", value=[1, 2, 3, 4]),
        "other names": put("names", value=["a", "b", "c", "d"]),
        "no width": drop("width"),
        "another width": put("width", value=3),
        "a width that is none": put("width", value=0),
        "no parameters": drop("parameters"),
        "parameters that are none": put("parameters", value=5),
        "another epsilon": put("parameters", "epsilon", value=0.1),
        "an unknown parameter": put("parameters", "oracle", value=1),
        "a parameter that is not of predictions": put("parameters", "ledger", value="/tmp/ledger"),
        "another decision": put("parameters", "decision", value="fair"),
        "a list": whole([1, 2]),
        "a text": whole("classifier"),
        "nothing in it": whole({}),
    }


@pytest.mark.parametrize("name", changes())
def test_a_description_that_makes_no_sense_is_refused(name, tmp_path):
    model, _ = fitted("columns, classes")
    path = tmp_path / "model"
    path.write_bytes(resealed(to_bytes(model.release_for_file()), changes()[name]))
    with pytest.raises(CorruptRelease, match="Expected"):
        discreet.load(path)


def test_a_file_that_was_only_sealed_again_is_taken(tmp_path):
    model, rows = fitted("columns, classes")
    path = tmp_path / "model"
    path.write_bytes(resealed(to_bytes(model.release_for_file()), lambda settings, tensors: None))
    np.testing.assert_array_equal(discreet.load(path).predict(rows), model.predict(rows))


def test_ranges_of_targets_that_make_no_sense_are_refused(tmp_path):
    model, _ = fitted("columns, logarithms of two numbers")
    for low, high in (
        ([0.0], [1.0]),
        ([2.0, 2.0], [1.0, 1.0]),
        ([0.0, float("nan")], [1.0, 1.0]),
        ([[0.0]], [[1.0]]),
        (["a", "b"], [1.0, 1.0]),
    ):

        def change(settings, _, low=low, high=high):
            settings["estimator"]["targets"].update(low=low, high=high)

        path = tmp_path / "model"
        try:
            path.write_bytes(resealed(to_bytes(model.release_for_file()), change))
        except ValueError:  # no NaN in a file
            continue
        with pytest.raises(CorruptRelease):
            discreet.load(path)


def test_ranges_of_columns_that_make_no_sense_are_refused(tmp_path):
    model, _ = fitted("bounds, rounds")
    for low, high in (([0.0], [1.0]), ([2.0] * 3, [1.0] * 3), ([0.0] * 4, [1.0] * 4)):

        def change(settings, _, low=low, high=high):
            settings["estimator"]["columns"].update(low=low, high=high)

        (tmp_path / "model").write_bytes(resealed(to_bytes(model.release_for_file()), change))
        with pytest.raises(CorruptRelease):
            discreet.load(tmp_path / "model")


# Pickles of before.


def of_before(model, *, without=("columns", "decision", "target")):
    """The estimator as a version that had none of this would have pickled it."""
    state = pickle.loads(pickle.dumps(model.__getstate__()))
    for name in without:
        state.pop(name, None)
    if isinstance(model, PrivateClassifier):
        state.pop("_targets", None)
    else:
        vars(state["_targets"]).pop("log", None)
    again = type(model).__new__(type(model))
    again.__setstate__(state)
    return again


OLD = [name for name in CASES if not name.startswith(("columns", "private"))]


@pytest.mark.parametrize("name", OLD)
def test_pickles_of_before_predict_the_same(name):
    model, rows = fitted(name)
    again = of_before(model)
    for ours, theirs in zip(answers(model, rows), answers(again, rows), strict=True):
        np.testing.assert_array_equal(theirs, ours)
    assert again.columns is None
    assert again.get_params().keys() == model.get_params().keys()
    assert clone(again).get_params()["epsilon"] == 4.0
    assert repr(again)
    assert not hasattr(again, "shapes_")
    assert not hasattr(again, "feature_importances_")


@pytest.mark.parametrize("name", OLD)
def test_pickles_of_before_are_pickled_and_fitted_again(name):
    model, rows = fitted(name)
    again = pickle.loads(pickle.dumps(of_before(model)))
    np.testing.assert_array_equal(again.predict(rows), model.predict(rows))
    y = CASES[name][3]
    assert again.fit(rows, y).release_.receipt.id != model.release_.receipt.id


def test_a_model_of_before_is_saved_as_an_estimator(tmp_path):
    model, rows = fitted("bounds, least squares")
    of_before(model).save(tmp_path / "model")
    loaded = discreet.load(tmp_path / "model")
    assert np.array_equal(loaded.predict(rows), model.predict(rows))


def test_a_bare_release_is_saved_as_a_release(tmp_path):
    """It does not know its columns: what is loaded takes keys."""
    model, rows = fitted("bounds, least squares")
    model.release_.save(tmp_path / "model")
    loaded = discreet.load(tmp_path / "model")
    assert type(loaded) is type(model.release_)
    assert np.array_equal(
        loaded.predict(model.keys(rows)), model.release_.predict(model.keys(rows))
    )
