"""What a model of a table says of each column: steps, their errors, and how much they matter."""

import numpy as np
import pandas as pd
import pytest

from discreet import InvalidInput

pytest.importorskip("sklearn")

from sklearn.exceptions import NotFittedError

from discreet.features.columns import Bins, Categories, TableColumns
from discreet.readers.rounds.errors import Spread
from discreet.sklearn import PrivateClassifier, PrivateRegressor
from discreet.sklearn.shapes import shapes_of
from discreet.tables import Date
from discreet.testing import Seeded, Silent

# Waves belong to no column: with so few rows there are none.
ROWS, HINT = 2000, 400
COLUMNS = {
    "still": (-1, 1),
    "rising": (-1, 1),
    "job": ["cook", "clerk", "smith"],
    "gaps": (-1, 1),
    "when": Date("2010-01-01", "2020-01-01"),
}


def rows(seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "still": rng.uniform(-1, 1, ROWS),
            "rising": rng.uniform(-1, 1, ROWS),
            "job": rng.choice(["cook", "clerk", "smith"], ROWS),
            "gaps": rng.uniform(-1, 1, ROWS),
            "when": np.datetime64("2010-01-01", "s") + rng.integers(0, 315_000_000, ROWS),
        }
    )
    table.loc[rng.random(ROWS) < 0.3, "gaps"] = np.nan
    return table


TABLE = rows()
EFFECT = (
    4 * TABLE["rising"].to_numpy()
    + TABLE["job"].map({"cook": -1.0, "clerk": 0.0, "smith": 1.0}).to_numpy()
    + 1.5 * TABLE["gaps"].isna().to_numpy()
)
CHANCE = np.random.default_rng(9).random(ROWS)
BINARY = (np.exp(EFFECT) / (1 + np.exp(EFFECT)) > CHANCE).astype(int)
THREE = np.digitize(EFFECT, [-1.5, 1.5])
PAIR = np.column_stack([BINARY, EFFECT > 1]).astype(int)


def classifier(y, **more):
    several = np.ndim(y) == 2
    given = {"columns": COLUMNS, "rows_hint": HINT, "entropy": Silent()}
    given["classes"] = None if several else sorted(set(y.tolist()))
    return PrivateClassifier(**{"epsilon": 4.0, "delta": 1e-5, **given, **more}).fit(TABLE, y)


def regressor(y, **more):
    given = {"columns": COLUMNS, "rows_hint": HINT, "entropy": Silent(), "target_bounds": (-8, 8)}
    return PrivateRegressor(**{"epsilon": 4.0, "delta": 1e-5, **given, **more}).fit(TABLE, y)


MODELS = {
    "two classes": (lambda: classifier(BINARY), ()),
    "three classes": (lambda: classifier(THREE), (3,)),
    "several labels": (lambda: classifier(PAIR), (2,)),
    "numbers": (lambda: regressor(EFFECT), ()),
    "two numbers": (lambda: regressor(np.column_stack([EFFECT, -EFFECT])), (2,)),
}


@pytest.fixture(params=MODELS, scope="module")
def told(request):
    make, outputs = MODELS[request.param]
    return make(), outputs


def test_there_is_a_shape_for_each_column(told):
    model, outputs = told
    shapes = model.shapes_
    assert list(shapes) == list(COLUMNS)
    for name, shape in shapes.items():
        steps = 3 if name == "job" else 16
        assert shape.name == name
        assert len(shape.labels) == steps
        assert shape.values.shape == shape.stderr.shape == (steps, *outputs)
        assert shape.missing.shape == outputs
        assert np.all(np.isfinite(shape.values))
        assert np.all(shape.stderr > 0)
        assert shape.importance >= 0
        np.testing.assert_allclose(shape.values.mean(axis=0), 0, atol=1e-9 * (1 + 8))
        assert name in repr(shape)
        if name == "job":
            assert shape.edges is None
            assert shape.labels == ("cook", "clerk", "smith")
        else:
            assert len(shape.edges) == 15
            assert np.all(np.diff(shape.edges) > 0)
            assert shape.labels[0].startswith("below")
            assert shape.labels[-1].startswith("from")


def test_the_column_that_matters_has_the_largest_importance(told):
    model, _ = told
    shares = model.feature_importances_
    assert shares.shape == (5,)
    assert shares.min() >= 0
    assert shares.sum() == pytest.approx(1)
    found = dict(zip(COLUMNS, shares, strict=True))
    assert max(found, key=found.get) == "rising"
    assert found["rising"] > 3 * found["still"]
    assert found["rising"] > 3 * found["when"]
    assert found["job"] > found["still"]
    assert found["gaps"] > found["still"]


@pytest.mark.parametrize("name", ["two classes", "numbers"])
def test_an_effect_that_rises_has_a_shape_that_rises(name):
    shape = MODELS[name][0]().shapes_["rising"]
    steps = np.diff(shape.values)
    assert steps[1:-1].min() > 0  # the ends, which few rows tell, may bend a little
    assert shape.values[-1] - shape.values[0] > 4
    assert np.corrcoef(shape.values, np.arange(16))[0, 1] > 0.97


@pytest.mark.parametrize("name", ["two classes", "numbers"])
def test_categories_and_what_is_missing_are_in_order(name):
    shapes = MODELS[name][0]().shapes_
    cook, clerk, smith = shapes["job"].values
    assert cook < clerk < smith
    # Nothing is known of its bins, and much of its being missing.
    assert shapes["gaps"].missing > np.abs(shapes["gaps"].values).max()


def test_shapes_of_numbers_are_in_units_of_the_target():
    shapes = regressor(EFFECT).shapes_
    rise = shapes["rising"].values[-2] - shapes["rising"].values[1]
    assert rise == pytest.approx(4 * 2 * 13 / 16, rel=0.15)
    wide = regressor(EFFECT * 100, target_bounds=(-800, 800)).shapes_
    np.testing.assert_allclose(wide["rising"].values, shapes["rising"].values * 100, rtol=0.02)


def test_shapes_are_what_predictions_are_made_of():
    """Without waves, scores are sums of what columns add: differences of steps say so."""
    model = classifier(BINARY)
    assert model.release_.features.fourier is None
    one = TABLE[:1].assign(gaps=0.0)
    scores = [model.decision_function(one.assign(rising=each))[0] for each in (-0.99, 0.99)]
    values = model.shapes_["rising"].values
    assert scores[1] - scores[0] == pytest.approx(values[-1] - values[0], rel=1e-3)
    jobs = [model.decision_function(one.assign(job=each))[0] for each in COLUMNS["job"]]
    np.testing.assert_allclose(
        np.array(jobs) - np.mean(jobs), model.shapes_["job"].values, rtol=1e-3, atol=1e-6
    )
    gone = model.decision_function(one.assign(rising=np.nan))[0]
    steps, mixed = model.release_.features.column_rows(1)[1], model.release_.coefficients
    added = steps @ (mixed[model.release_.features.column_rows(1)[0]] @ [-1.0, 1.0])
    assert scores[0] - gone == pytest.approx(added[0] - model.shapes_["rising"].missing, rel=1e-3)


def test_of_three_classes_shapes_are_around_their_mean():
    for shape in classifier(THREE).shapes_.values():
        np.testing.assert_allclose(shape.values.sum(axis=1), 0, atol=1e-9)


def test_errors_grow_with_the_noise():
    loud, quiet = (
        classifier(BINARY, epsilon=each, entropy=Seeded(1)).shapes_["rising"].stderr.mean()
        for each in (0.5, 8.0)
    )
    assert loud > 1.5 * quiet > 0


def test_errors_are_about_the_noise():
    """Ten fits differ by about what they say, over all steps."""
    fits = [classifier(BINARY, epsilon=2.0, entropy=Seeded(each)).shapes_ for each in range(10)]
    ratios = []
    for name in COLUMNS:
        values = np.array([each[name].values for each in fits])
        said = np.array([each[name].stderr for each in fits])
        ratios.append(np.sqrt(np.mean(said**2) / np.mean(values.var(axis=0, ddof=1))))
    assert 0.5 < np.median(ratios) < 2


def test_waves_are_in_no_shape():
    model = classifier(BINARY, rows_hint=ROWS)
    assert model.release_.features.fourier is not None
    bent, plain = (each.shapes_["rising"].values for each in (model, classifier(BINARY)))
    assert bent.shape == (16,)
    assert 0.3 < (bent[-1] - bent[0]) / (plain[-1] - plain[0]) < 1


def test_categories_that_were_found_are_called_by_their_place():
    columns = {"rising": "private", "job": "private"}
    shapes = classifier(BINARY, columns=columns).shapes_
    assert len(shapes["job"].labels) == 3
    assert all(each.startswith("place ") for each in shapes["job"].labels)
    assert len(shapes["rising"].labels) == len(shapes["rising"].edges) + 1


def test_columns_in_which_nothing_was_found_have_shapes_without_steps():
    features = TableColumns((Categories((), found=True), Bins((), found=True)))
    spread = Spread(np.eye(features.features), np.eye(features.features), 10.0)
    weights = np.ones((features.features, 1))
    shapes = shapes_of(
        features, weights, spread, names=["a", "b"], labels=[[], None], unit=np.eye(1)
    )
    assert shapes["a"].values.shape == (0,)
    assert shapes["a"].labels == ()
    assert shapes["b"].labels == ("any",)
    np.testing.assert_allclose(shapes["b"].values, [0.0], atol=1e-12)


def test_models_that_are_no_sum_of_columns_have_no_shapes():
    rows = TABLE[["still", "rising"]]
    for model in (
        PrivateClassifier(4.0, 1e-5, bounds=(-1, 1), classes=[0, 1], rows_hint=ROWS),
        PrivateRegressor(4.0, 1e-5, bounds=(-1, 1), target_bounds=(0, 1), rows_hint=ROWS),
    ):
        model.fit(rows, BINARY)
        assert not hasattr(model, "shapes_")
        assert not hasattr(model, "feature_importances_")
        with pytest.raises(AttributeError, match="columns="):
            model.shapes_  # noqa: B018
    with pytest.raises(AttributeError, match="rounds"):
        classifier(BINARY, reader="least_squares").shapes_  # noqa: B018
    with pytest.raises(NotFittedError):
        PrivateClassifier(4.0, 1e-5, columns=COLUMNS).shapes_  # noqa: B018


def test_a_release_that_keeps_no_second_moments_says_so():
    model = PrivateClassifier(4.0, 1e-5, bounds=(-1, 1), classes=[0, 1], rows_hint=ROWS)
    release = model.fit(TABLE[["still", "rising"]], BINARY).release_
    with pytest.raises(InvalidInput, match="second moments"):
        release.spread  # noqa: B018
