"""Which reader and which features: by public numbers."""

import numpy as np
import pytest

from discreet import InvalidInput

pytest.importorskip("sklearn")

from discreet import build
from discreet.features.concatenation import LinearAndFourier
from discreet.features.fourier import UnitFourier
from discreet.features.linear import Linear, UnitLinear
from discreet.privacy import Neighbours, Privacy
from discreet.sklearn import readers
from discreet.sklearn.columns import Columns, Embeddings, Tabled
from discreet.sklearn.ranges import Ranges
from discreet.sklearn.readers import Attention, LeastSquares, Terms, _excess, on_sphere
from discreet.sklearn.targets import Labels, LabelSets, Targets
from discreet.tables import Schema
from discreet.testing import Silent

QUANTITIES = Columns(Ranges.of("bounds", ([0, 0, 0], [1, 2, 3]), 3))
PICTURES = Columns(Ranges.of("bounds", (0, 16), 64))
EMBEDDINGS = Embeddings(2.0)
WIDTHS = {id(QUANTITIES): 3, id(PICTURES): 64, id(EMBEDDINGS): 384}
PUBLIC = np.zeros((9, 2))
NUMBERS = Targets(Ranges.of("target_bounds", (0, 1), 1), single=True)


def terms(rows=None, *, classes=10, **change):
    given = {
        "features": "auto",
        "columns": PICTURES,
        "targets": Labels.of(range(classes), distinct=True) if classes else NUMBERS,
        "privacy": Privacy(1.0, 1e-5, Neighbours.ADD_REMOVE),
        "group_rows": 1.0,
        "public_rows": None,
        "rows_hint": rows,
    } | change
    return Terms(**{"width": WIDTHS[id(given["columns"])], **given})


def reader_of(stated, name="auto"):
    return readers.chosen(name, stated.features, stated.targets, stated.columns)


def features(rows, *, reader="auto", **change):
    stated = terms(rows, **change)
    return reader_of(stated, reader).resolve(stated).features


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({}, "rounds"),
        ({"columns": QUANTITIES}, "rounds"),
        ({"columns": EMBEDDINGS}, "rounds"),
        ({"features": "waves"}, "rounds"),
        ({"public_rows": PUBLIC}, "rounds"),
        ({"classes": 2}, "rounds"),
        ({"classes": None}, "least_squares"),
        ({"classes": None, "columns": EMBEDDINGS}, "least_squares"),
    ],
)
def test_the_rule(change, name):
    assert reader_of(terms(**change)).name == name
    for named in ("average", "least_squares"):
        assert reader_of(terms(**{**change, "features": "auto"}), named).name == named


@pytest.mark.parametrize(
    ("change", "needed"),
    [
        ({}, False),
        ({"columns": QUANTITIES}, False),
        ({"classes": None}, False),
        ({"reader": "least_squares"}, True),
        ({"reader": "least_squares", "classes": 2}, True),
        ({"reader": "least_squares", "columns": QUANTITIES}, False),
        ({"reader": "least_squares", "columns": EMBEDDINGS}, False),
        ({"reader": "least_squares", "features": "waves"}, False),
        ({"reader": "average", "columns": QUANTITIES, "classes": None}, True),
    ],
)
def test_a_number_of_rows_is_asked_for_only_where_it_is_used(change, needed):
    name = change.pop("reader", "auto")
    stated = terms(**change)
    assert reader_of(stated, name).needs_rows(stated) is needed


@pytest.mark.parametrize(
    ("rows", "change", "kind"),
    [
        (50_000, {}, UnitFourier),
        (50_000, {"classes": None}, UnitLinear),
        (50_000, {"columns": QUANTITIES}, LinearAndFourier),
        (None, {"columns": QUANTITIES}, UnitLinear),
        (3_000, {"columns": QUANTITIES}, UnitLinear),
        (3_000, {"columns": QUANTITIES, "classes": None}, UnitLinear),
        (50_000, {"columns": EMBEDDINGS}, UnitLinear),
        (50_000, {"columns": EMBEDDINGS, "classes": None}, UnitLinear),
    ],
)
def test_features_of_least_squares_follow_the_columns(rows, change, kind):
    change = {"reader": "least_squares", **change}
    found = features(rows, **change)
    assert type(found) is kind
    assert found.key_norm == change.get("columns", PICTURES).norm
    own = Linear(2)
    assert features(rows, **change, features=own) is own


@pytest.mark.parametrize(
    ("rows", "change", "kind"),
    [
        (50_000, {}, UnitFourier),
        (None, {}, UnitFourier),
        (50_000, {"columns": QUANTITIES}, LinearAndFourier),
        (1_000, {"columns": QUANTITIES}, UnitLinear),
        (None, {"columns": QUANTITIES}, UnitLinear),
    ],
)
def test_features_of_rounds_follow_the_columns(rows, change, kind):
    found = features(rows, **change)
    assert type(found) is kind
    assert found.key_norm == change.get("columns", PICTURES).norm
    own = Linear(2)
    assert features(rows, **change, features=own) is own


def test_of_embeddings_the_classifier_itself_knows_what_to_make():
    for width in (8, 384):
        assert features(5_000, columns=EMBEDDINGS, width=width) == "auto"


def test_features_that_public_rows_make():
    for columns in (PICTURES, EMBEDDINGS):
        assert features(5_000, columns=columns, public_rows=PUBLIC) == "near_landmarks"
    # Quantities stay what they are: to least squares public rows tell their second moments.
    solved = {"reader": "least_squares"}
    assert type(features(3_000, columns=QUANTITIES, public_rows=PUBLIC, **solved)) is UnitLinear
    assert features(5_000, columns=EMBEDDINGS, width=8, **solved) == "waves"


def test_more_rows_have_more_waves_and_classes_are_shrunk_less():
    counts = [features(rows).frequencies for rows in (3_000, 20_000, 200_000)]
    assert counts == [256, 512, 1024]
    ridge = LeastSquares().ridge
    assert ridge(terms()) < ridge(terms(classes=None)) == ridge(terms(columns=EMBEDDINGS))


def test_what_there_is_not_is_refused():
    classes, labels = Labels.of([0, 1], distinct=True), LabelSets(2)
    with pytest.raises(InvalidInput, match=r"reader='rank'.*rounds.*average.*least_squares"):
        readers.chosen("rank", "auto", classes, QUANTITIES)
    with pytest.raises(InvalidInput, match=r"reader='average'.*'rounds'"):
        readers.chosen("average", "auto", labels, QUANTITIES)
    with pytest.raises(InvalidInput, match=r"features='linear'.*'auto'"):
        readers.chosen("average", "linear", classes, QUANTITIES)
    assert readers.chosen("rounds", "linear", classes, QUANTITIES).name == "rounds"
    assert readers.chosen("least_squares", "linear", NUMBERS, QUANTITIES).name == "least_squares"
    assert readers.chosen("auto", Linear(2), classes, QUANTITIES).name == "rounds"


def test_numbers_are_learnt_in_rounds_of_tables_or_if_asked_for():
    table = Tabled(Schema({"a": (0, 1)}))
    assert readers.chosen("auto", "auto", NUMBERS, QUANTITIES).name == "least_squares"
    assert readers.chosen("auto", "auto", NUMBERS, table).name == "rounds"
    assert readers.chosen("rounds", "auto", NUMBERS, QUANTITIES) is readers.NUMBER_READERS[0]
    assert readers.chosen("auto", "auto", LabelSets(2), QUANTITIES).name == "rounds"


def test_a_release_of_another_reader_is_refused():
    memory = build(
        np.zeros((3, 2)), np.zeros((3, 1)), epsilon=1, delta=1e-5, scale=1.0, entropy=Silent()
    )
    with pytest.raises(TypeError, match="Memory"):
        LeastSquares().numbers(memory, np.zeros((1, 2)))
    with pytest.raises(TypeError, match="str"):
        Attention().numbers("memory", np.zeros((1, 2)))


def test_shares_that_are_noise_are_taken_for_equal():
    noise = np.random.default_rng(0).normal(size=(2000, 10))
    ones = np.ones(10)
    kept = [np.linalg.norm(_excess(each, ones)) / np.linalg.norm(each) for each in noise]
    assert np.median(kept) < 0.2
    clear = np.array([0.6, -0.1, -0.1, -0.1, -0.1, -0.2])
    np.testing.assert_allclose(_excess(clear, np.full(6, 0.01)), clear, atol=0.01)
    np.testing.assert_allclose(_excess(clear + 5, np.zeros(6)), clear, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_keys_on_the_sphere_are_all_as_long_and_each_the_same_wherever_it_stands(dtype):
    table = np.random.default_rng(1).uniform(-0.5, 3.5, (500, 3))
    keys = (2.5 * QUANTITIES.keys(table)).astype(dtype)
    lifted = on_sphere(keys, 2.5)
    assert lifted.dtype == dtype
    np.testing.assert_array_equal(on_sphere(keys.astype(np.float64), 2.5), lifted)
    np.testing.assert_array_equal(lifted[:, :-1], keys)
    np.testing.assert_allclose(np.linalg.norm(lifted, axis=1), 2.5, rtol=1e-6)
    for other in (np.asfortranarray(keys), keys[::-1][::-1]):
        np.testing.assert_array_equal(on_sphere(other, 2.5), lifted)
    np.testing.assert_array_equal(on_sphere(keys[3:4], 2.5), lifted[3:4])
    wide = np.random.default_rng(0).uniform(-0.1, 0.1, (300, 77)).astype(dtype)
    np.testing.assert_array_equal(on_sphere(np.asfortranarray(wide), 1.0), on_sphere(wide, 1.0))
    np.testing.assert_array_equal(on_sphere(10 * keys, 0.1)[:, -1], 0)
