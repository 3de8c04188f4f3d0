"""Which reader and which features: by public numbers."""

import numpy as np
import pytest

from discreet import InvalidInput

pytest.importorskip("sklearn")

from discreet.features.concatenation import LinearAndFourier
from discreet.features.fourier import UnitFourier
from discreet.features.linear import Linear, UnitLinear
from discreet.privacy import Neighbours, Privacy
from discreet.readers.attention.building import build
from discreet.sklearn import readers
from discreet.sklearn.averaging import Average, _excess
from discreet.sklearn.columns import Columns, Embeddings
from discreet.sklearn.ranges import Ranges
from discreet.sklearn.solving import Solve
from discreet.testing import Silent

QUANTITIES = Columns(Ranges.of("bounds", ([0, 0, 0], [1, 2, 3]), 3))
PICTURES = Columns(Ranges.of("bounds", (0, 16), 64))
EMBEDDINGS = Embeddings(2.0)
WIDTHS = {id(QUANTITIES): 3, id(PICTURES): 64, id(EMBEDDINGS): 384}


def situation(**change):
    given = {
        "reader": "auto",
        "features": "auto",
        "columns": PICTURES,
        "classes": 10,
        "privacy": Privacy(1.0, 1e-5, Neighbours.ADD_REMOVE),
        "group_rows": 1.0,
        "has_public_rows": False,
    } | change
    return readers.Situation(**{"width": WIDTHS[id(given["columns"])], **given})


@pytest.mark.parametrize(
    ("rows", "change", "name"),
    [
        (1_450, {}, "rounds"),
        (None, {}, "rounds"),
        (100, {"columns": QUANTITIES}, "rounds"),
        (100, {"columns": EMBEDDINGS}, "rounds"),
        (100, {"features": "waves"}, "rounds"),
        (100, {"has_public_rows": True}, "rounds"),
        (100, {"classes": 2}, "rounds"),
        (100, {"classes": None}, "least_squares"),
        (100, {"classes": None, "columns": EMBEDDINGS}, "least_squares"),
    ],
)
def test_the_rule(rows, change, name):
    assert situation(**change).choose(rows).reader.name == name
    for named in ("average", "least_squares"):
        assert situation(**{**change, "reader": named}).choose(rows).reader.name == named


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
    assert situation(**change).needs_rows is needed


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
    features = situation(**change).choose(rows).features
    assert type(features) is kind
    assert features.key_norm == situation(**change).columns.norm
    own = Linear(2)
    assert situation(**change, features=own).choose(rows).features is own


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
    features = situation(**change).choose(rows).features
    assert type(features) is kind
    assert features.key_norm == situation(**change).columns.norm
    own = Linear(2)
    assert situation(**change, features=own).choose(rows).features is own


def test_of_embeddings_the_classifier_itself_knows_what_to_make():
    for width in (8, 384):
        assert situation(columns=EMBEDDINGS, width=width).choose(5_000).features == "auto"


def test_features_that_public_rows_make():
    for columns in (PICTURES, EMBEDDINGS):
        chosen = situation(columns=columns, has_public_rows=True).choose(5_000)
        assert chosen.features == "near_landmarks"
    # Quantities stay what they are: to least squares public rows tell their second moments.
    solved = {"reader": "least_squares"}
    chosen = situation(columns=QUANTITIES, has_public_rows=True, **solved).choose(3_000)
    assert type(chosen.features) is UnitLinear
    assert situation(columns=EMBEDDINGS, width=8, **solved).choose(5_000).features == "waves"


def test_more_rows_have_more_waves_and_classes_are_shrunk_less():
    counts = [situation().choose(rows).features.frequencies for rows in (3_000, 20_000, 200_000)]
    assert counts == [256, 512, 1024]
    assert situation().choose(9_000).ridge < situation(classes=None).choose(9_000).ridge


def test_what_there_is_not_is_refused():
    every, of_numbers = readers.READERS, readers.NUMBER_READERS
    with pytest.raises(InvalidInput, match=r"reader='rank'.*rounds.*average.*least_squares"):
        readers.check("rank", "auto", every)
    with pytest.raises(InvalidInput, match=r"reader='rounds'.*average.*least_squares"):
        readers.check("rounds", "auto", of_numbers)
    with pytest.raises(InvalidInput, match=r"features='linear'.*'auto'"):
        readers.check("average", "linear", every)
    readers.check("rounds", "linear", every)
    readers.check("least_squares", "linear", of_numbers)
    readers.check("auto", Linear(2), every)


def test_a_release_of_another_reader_is_refused():
    memory = build(
        np.zeros((3, 2)), np.zeros((3, 1)), epsilon=1, delta=1e-5, scale=1.0, entropy=Silent()
    )
    with pytest.raises(TypeError, match="Memory"):
        Solve().numbers(memory, np.zeros((1, 2)))
    with pytest.raises(TypeError, match="str"):
        Average().numbers("memory", np.zeros((1, 2)))


def test_shares_that_are_noise_are_taken_for_equal():
    noise = np.random.default_rng(0).normal(size=(2000, 10))
    ones = np.ones(10)
    kept = [np.linalg.norm(_excess(each, ones)) / np.linalg.norm(each) for each in noise]
    assert np.median(kept) < 0.2
    clear = np.array([0.6, -0.1, -0.1, -0.1, -0.1, -0.2])
    np.testing.assert_allclose(_excess(clear, np.full(6, 0.01)), clear, atol=0.01)
    np.testing.assert_allclose(_excess(clear + 5, np.zeros(6)), clear, atol=1e-12)
