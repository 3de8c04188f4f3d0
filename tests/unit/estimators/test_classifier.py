"""The private classifier: scores, classes, and what is refused."""

import numpy as np
import pytest

from discreet import InvalidInput

pytest.importorskip("sklearn")

from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from discreet.features.linear import Linear
from discreet.readers.least_squares.answers import LeastSquares
from discreet.readers.softmax.answers import SoftmaxRegression
from discreet.sklearn import PrivateClassifier
from discreet.testing import Seeded, Silent

DIGITS, NUMERALS = load_digits(return_X_y=True)
PUBLIC = {"bounds": (0, 16), "classes": range(10), "rows_hint": 2000}


def blobs(count=600, classes=3, seed=0, dim=4):
    generator = np.random.default_rng(seed)
    centres = generator.uniform(-2, 2, (classes, dim))
    y = generator.integers(classes, size=count)
    return centres[y] + generator.normal(scale=0.4, size=(count, dim)), y


X, Y = blobs()
BLOBS = {"bounds": (-4, 4), "classes": [0, 1, 2], "rows_hint": 600}


@pytest.mark.parametrize(
    ("reader", "share", "least"), [("average", 0.0, 0.8), ("least_squares", 1 / 3, 0.87)]
)
def test_digits(reader, share, least):
    model = PrivateClassifier(4, 1e-5, reader=reader, entropy=Seeded(1), **PUBLIC)
    model.fit(DIGITS[::2], NUMERALS[::2])
    assert model.score(DIGITS[1::2], NUMERALS[1::2]) > least
    assert isinstance(model.release_, LeastSquares)
    assert model.release_.released.layout.share == share
    assert model.reader_ == reader
    assert model.card_ == model.release_.card
    assert model.receipt_ is model.release_.receipt
    assert model.guarantee_ == model.release_.guarantee
    assert model.guarantee_.epsilon == 4
    assert model.guarantee_.unit == "row"
    assert model.n_features_in_ == 64
    assert not hasattr(model, "feature_names_in_")


def test_classes_are_learnt_in_rounds_unless_another_reader_is_named():
    model = PrivateClassifier(1, 1e-5, **PUBLIC).fit(DIGITS, NUMERALS)
    assert model.reader_ == "rounds"
    assert isinstance(model.release_, SoftmaxRegression)
    assert model.release_.classes.tolist() == list(range(10))
    for reader in ("average", "least_squares"):
        other = PrivateClassifier(1, 1e-5, reader=reader, **PUBLIC).fit(DIGITS, NUMERALS)
        assert other.reader_ == reader
        assert isinstance(other.release_, LeastSquares)


def test_rounds_give_the_probabilities_of_their_release():
    model = PrivateClassifier(4, 1e-5, **PUBLIC).fit(DIGITS, NUMERALS)
    found = model.predict_proba(DIGITS)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert np.array_equal(model.classes_[found.argmax(axis=1)], model.predict(DIGITS))
    # About as sure as it is right.
    right = np.mean(model.predict(DIGITS) == NUMERALS)
    assert abs(found.max(axis=1).mean() - right) < 0.1


def test_classes_are_in_order_and_predictions_are_of_their_kind():
    names = np.array(["pear", "apple", "fig"])
    model = PrivateClassifier(
        4, 1e-5, bounds=(-4, 4), classes=["pear", "fig", "apple"], rows_hint=600
    ).fit(X, names[Y])
    assert model.classes_.tolist() == ["apple", "fig", "pear"]
    assert np.mean(model.predict(X) == names[Y]) > 0.9


def test_a_class_without_rows_has_its_column():
    model = PrivateClassifier(4, 1e-5, bounds=(-4, 4), classes=range(5), rows_hint=600).fit(X, Y)
    assert model.predict_proba(X).shape == (600, 5)
    assert set(model.predict(X)) <= {0, 1, 2}


def test_a_label_that_is_not_public_is_refused_and_not_quoted():
    labels = np.where(np.arange(600) == 7, 4711, Y)
    model = PrivateClassifier(1, 1e-5, **BLOBS)
    with pytest.raises(InvalidInput, match="one of classes") as caught:
        model.fit(X, labels)
    assert "4711" not in str(caught.value)
    assert not hasattr(model, "release_")


@pytest.mark.parametrize("reader", ["average", "least_squares"])
@pytest.mark.parametrize("classes", [2, 3])
def test_scores_classes_and_probabilities_agree(reader, classes):
    rows, labels = blobs(classes=classes)
    model = PrivateClassifier(
        0.3, 1e-5, bounds=(-4, 4), classes=range(classes), rows_hint=600, reader=reader
    ).fit(rows, labels)
    scores, shares = model.decision_function(rows), model.predict_proba(rows)
    predicted = model.predict(rows)
    np.testing.assert_allclose(shares.sum(1), 1)
    assert shares.min() >= 0
    np.testing.assert_array_equal(shares.argmax(1), predicted)
    if classes == 2:
        assert scores.shape == (600,)
        np.testing.assert_array_equal(predicted, scores > 0)
        order = np.argsort(scores)
        assert np.diff(shares[order, 1]).min() > -1e-12
    else:
        assert scores.shape == (600, 3)
        np.testing.assert_array_equal(predicted, scores.argmax(1))
        np.testing.assert_allclose(
            shares, (p := np.maximum(scores + 1 / 3, 0)) / p.sum(1, keepdims=True)
        )


def test_probabilities_of_least_squares_are_about_right():
    generator = np.random.default_rng(3)
    rows = generator.uniform(0, 1, (20_000, 2))
    labels = generator.random(20_000) < 0.2 + 0.6 * rows[:, 0]
    model = PrivateClassifier(
        4, 1e-5, bounds=([0, -1], 1), classes=[False, True], rows_hint=20_000
    ).fit(rows, labels)
    error = model.predict_proba(rows)[:, 1] - (0.2 + 0.6 * rows[:, 0])
    assert np.sqrt(np.mean(error**2)) < 0.08


def test_scores_of_averages_are_numerators_less_shares_of_denominators():
    rows, labels = blobs(dim=2)
    keep = (labels == 0) | (np.arange(600) % 4 == 0)  # unbalanced
    rows, labels = rows[keep], labels[keep]
    model = PrivateClassifier(4, 1e-5, reader="average", entropy=Silent(), **BLOBS)
    model.fit(rows, labels)
    # The same with exact weights.
    keys = model._columns.keys(rows)
    distances = np.sum((keys[:50, None] - keys) ** 2, axis=-1)
    weights = np.exp(-model.release_.features.scale * distances / 2)
    one_hot = np.eye(3)[labels]
    shares = model.release_.shares[0] + 1 / 3
    np.testing.assert_allclose(shares, one_hot.mean(0), atol=0.15)
    wanted = weights @ one_hot - np.outer(weights.sum(1), shares)
    found = model.decision_function(rows[:50]) * 600
    assert np.abs(found - wanted).max() < 0.1 * np.abs(wanted).max()


def test_equal_classes_are_not_corrected_by_noise():
    # Shares of ten classes with noise, times large denominators, would hide all that is there.
    model = PrivateClassifier(0.5, 1e-5, reader="average", entropy=Seeded(1), **PUBLIC)
    model.fit(DIGITS, NUMERALS)
    assert model.score(DIGITS, NUMERALS) > 0.78


def test_rare_classes_are_found_by_averages():
    generator = np.random.default_rng(5)
    labels = (generator.random(8000) < 0.08).astype(int)
    rows = generator.normal(size=(8000, 6)) * 0.5 + labels[:, None] * 1.2
    model = PrivateClassifier(
        1, 1e-5, bounds=(-2, 3), classes=[0, 1], rows_hint=8000, reader="average", entropy=Seeded(2)
    ).fit(rows, labels)
    rows, labels = rows[:1000], labels[:1000]
    assert roc_auc_score(labels, model.decision_function(rows)) > 0.9
    assert np.mean(model.predict(rows)[labels == 1]) > 0.9
    # A class wins where its share is above its share everywhere: rare ones are found too often.
    assert np.mean(model.predict(rows)[labels == 0]) < 0.3


def test_embeddings_and_features():
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    model = PrivateClassifier(4, 1e-5, norm=1.0, classes=[0, 1, 2], rows_hint=2000).fit(unit, Y)
    assert model.release_.features.key_norm == 1.0
    own = PrivateClassifier(4, 1e-5, norm=3.0, classes=[0, 1, 2], features="linear").fit(X, Y)
    assert own.release_.features == Linear(4, key_norm=3.0)
    given = PrivateClassifier(
        4, 1e-5, bounds=(-4, 4), classes=[0, 1, 2], features=Linear(4, stretch=2.0)
    ).fit(X, Y)
    assert given.release_.features.stretch == 2.0


@pytest.mark.parametrize("reader", ["average", "least_squares"])
def test_public_rows_are_in_the_units_of_the_rows(reader):
    public, _ = blobs(seed=0)
    model = PrivateClassifier(
        4, 1e-5, public_rows=public, reader=reader, entropy=Silent(), **BLOBS
    ).fit(X, Y)
    kind = {"average": "waves", "least_squares": "near_landmarks"}[reader]
    assert model.release_.released.layout.kernel.kind == kind
    # Landmarks that are not where the rows are would know nothing of them.
    assert model.score(X, Y) > 0.9


def test_public_rows_of_another_width_are_refused():
    model = PrivateClassifier(4, 1e-5, public_rows=np.zeros((9, 3)), **BLOBS)
    with pytest.raises(InvalidInput, match=r"public_rows=\(9, 3\).*as wide as X"):
        model.fit(X, Y)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"norm": 1.0}, "not both"),
        ({"reader": "rank"}, "reader='rank'"),
        ({"reader": "average", "features": "linear"}, "features='linear'"),
        ({"epsilon": 0}, "epsilon=0"),
        ({"delta": 2}, "delta=2"),
        ({"bounds": (1, 0)}, "bounds"),
        ({"classes": [1]}, "two classes"),
        ({"neighbours": "all"}, "neighbours='all'"),
        ({"rows_hint": 0}, "rows_hint=0"),
        ({"group_rows": -1}, "group_rows=-1"),
        ({"entropy": "dice"}, "entropy='dice'"),
        ({"features": "cubes", "reader": "least_squares"}, "features='cubes'"),
    ],
)
def test_bad_parameters_are_refused_by_fit_and_by_nothing_before(change, message):
    model = PrivateClassifier(**{"epsilon": 1, "delta": 1e-5, **BLOBS, **change})
    with pytest.raises(InvalidInput, match=message):
        model.fit(X, Y)


def test_epsilon_and_delta_are_required():
    with pytest.raises(TypeError, match="epsilon"):
        PrivateClassifier()
    with pytest.raises(TypeError, match="delta"):
        PrivateClassifier(1.0)
