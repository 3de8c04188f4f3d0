"""What both estimators do the way scikit-learn does, and what they never keep."""

import copy
import pickle
import traceback

import numpy as np
import pandas as pd
import polars as pl
import pytest

pytest.importorskip("sklearn")

import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import discreet
from discreet import CorruptRelease, InvalidInput, NotPrivateWarning
from discreet.noise import SystemEntropy
from discreet.readers.registry import to_bytes
from discreet.sklearn import PrivateClassifier, PrivateRegressor
from discreet.sklearn.estimator import unpacked
from discreet.testing import Seeded, Silent

# Several fits of one estimator and its clones are warned of: `test_fits.py`.
pytestmark = pytest.mark.filterwarnings("ignore:.* fits by now:discreet.PrivacyLeakWarning")

GENERATOR = np.random.default_rng(0)
X = GENERATOR.uniform(0, 1, (400, 3))
CLASS = (X[:, 0] > 0.5).astype(int) + (X[:, 1] > 0.5)
TARGET = X @ [1.0, 0.5, -0.2]
PEOPLE = np.arange(400) // 4

CASES = {
    "classes, least squares": (
        PrivateClassifier,
        {"classes": [0, 1, 2], "reader": "least_squares", "features": "linear"},
        CLASS,
    ),
    "classes, average": (PrivateClassifier, {"classes": [0, 1, 2], "reader": "average"}, CLASS),
    "numbers, least squares": (
        PrivateRegressor,
        {"target_bounds": (-1, 2), "reader": "least_squares", "features": "linear"},
        TARGET,
    ),
    "numbers, average": (PrivateRegressor, {"target_bounds": (-1, 2), "reader": "average"}, TARGET),
}


@pytest.fixture(params=CASES.values(), ids=CASES.keys())
def case(request):
    kind, options, y = request.param

    def make(**more):
        given = {"epsilon": 4.0, "delta": 1e-5, "bounds": (0, 1), "rows_hint": 400}
        return kind(**{**given, **options, **more})

    return make, y


def states(model):
    released = model.release_.released
    return [part.astype(object) for part in (released.state, *released.others)]


@pytest.mark.parametrize(
    "more", [{}, {"bounds": ([0, -1, 0], [1, 1, 2])}, {"norm": 1.0}, {"features": "waves"}]
)
def test_rows_add_up_and_none_moves_when_another_comes(case, more):
    make, y = case
    if "norm" in more:
        more = {**more, "bounds": None}
    if "features" in more and make().reader == "average":
        more = {}
    model = make(entropy=Silent(), **more)
    whole = states(model.fit(X, y))
    parts = [states(model.fit(X[some], y[some])) for some in (slice(0, 151), slice(151, None))]
    for total, first, second in zip(whole, *parts, strict=True):
        assert np.array_equal(total, first + second)
    reversed_rows = states(model.fit(X[::-1], y[::-1]))
    assert all(map(np.array_equal, whole, reversed_rows))


def test_each_fit_is_a_new_release_and_receipts_add_up(case):
    make, y = case
    model = make()
    first = model.fit(X, y).release_
    second = model.fit(X, y).release_
    assert first.receipt.id != second.receipt.id
    assert not np.array_equal(first.released.state, second.released.state)
    joint = discreet.combine([first, second])
    assert 4.0 < joint.epsilon < 8.0
    assert discreet.combine([model.receipt_, first.receipt], delta=1e-5).epsilon == joint.epsilon


def test_a_structure_of_the_paper_is_no_release_of_an_estimator():
    tree = discreet.paper.DPTree([1.0, 2.0], sensitivity=1.0, upper=1.0, epsilon=1.0, delta=1e-6)
    with pytest.raises(CorruptRelease, match="structure"):
        unpacked(to_bytes(tree))


def test_pickles_hold_the_release_and_no_rows(case):
    make, y = case
    model = make(entropy=Seeded(3)).fit(X, y)
    data = pickle.dumps(model)
    with pytest.warns(NotPrivateWarning, match="Seeded"):
        again = pickle.loads(data)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.card_ == model.card_
    assert again.entropy is None
    assert model.entropy is not None
    assert b"Seeded" not in data.replace(b"Seeded(3)", b"")  # the card names it
    keys = model._columns.keys(X)
    for number in (*X.ravel(), *keys.ravel(), *(TARGET if y is TARGET else ())):
        assert number.tobytes() not in data
    # As long for any number of rows, but for the digits of noise.
    more = pickle.dumps(make(entropy=Seeded(3)).fit(np.tile(X, (5, 1)), np.tile(y, 5)))
    assert len(more) == len(data)


def test_what_is_kept_is_public(case):
    make, y = case
    model = make().fit(X, y)
    kept = set(vars(model)) - set(model.get_params())
    allowed = {"release_", "reader_", "leaks_", "n_features_in_", "_columns", "_targets", "_family"}
    assert kept == allowed | (set() if y is TARGET else {"classes_"})


def test_unfitted_estimators_are_pickled_and_copied(case):
    make, _ = case
    model = make(entropy=SystemEntropy())
    assert pickle.loads(pickle.dumps(model)).get_params()["epsilon"] == 4.0
    assert copy.deepcopy(model).entropy is None


def test_private_pickles_and_copies_do_not_warn(case):
    make, y = case
    model = make().fit(X, y)
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize("entropy", [None, SystemEntropy(), Seeded(1), Silent()])
def test_clones_have_the_parameters_and_no_release(case, entropy):
    make, y = case
    model = make(entropy=entropy).fit(X, y)
    model.set_fit_request  # noqa: B018 (there with or without routing)
    other = clone(model)
    assert not hasattr(other, "release_")
    with pytest.raises(NotFittedError):
        other.predict(X)
    for name, value in model.get_params().items():
        assert other.get_params()[name] == value
    assert other.entropy is entropy


def test_clones_do_not_repeat_the_noise():
    make = PrivateRegressor(1, 1e-5, bounds=(0, 1), target_bounds=(-1, 2), entropy=Seeded(1))
    fits = [clone(make).fit(X, TARGET).predict(X[:5]) for _ in range(2)]
    assert not np.array_equal(*fits)


def test_pipelines_and_cross_validation(case):
    make, y = case
    shift = FunctionTransformer(lambda rows: rows / 2)
    model = make_pipeline(shift, make(bounds=(0, 0.5)))
    assert cross_val_score(model, X, y, cv=3).shape == (3,)
    model.set_output(transform="default").fit(X, y)
    assert len(model.predict(X)) == 400
    assert model[-1].guarantee_.epsilon == 4


def test_records(case):
    make, y = case
    model = make(group_rows=2.0).fit(X, y, groups=PEOPLE)
    assert model.guarantee_.unit == "record"
    assert model.card_.to_dict()["group_rows"] == 2.0
    names = np.array([f"person {i}" for i in PEOPLE], dtype=object)
    assert make().fit(X, y, groups=names).guarantee_.unit == "record"
    with pytest.raises(InvalidInput):
        make().fit(X, y, groups=PEOPLE[:-1])


def test_groups_are_routed(case):
    make, y = case
    seen = []
    original = type(make()).fit

    class Spy(type(make())):
        def fit(self, X, y, groups=None, **more):
            seen.append(groups)
            return original(self, X, y, groups=groups, **more)

    with sklearn.config_context(enable_metadata_routing=True):
        model = Spy(**make().get_params()).set_fit_request(groups=True)
        cross_val_score(model, X, y, cv=GroupKFold(4), params={"groups": PEOPLE})
    assert len(seen) == 4
    assert all(len(each) == 300 for each in seen)


def test_weights_are_refused_with_the_reason(case):
    make, y = case
    with pytest.raises(InvalidInput, match=r"no sample_weight.*how much one row can move"):
        make().fit(X, y, sample_weight=np.ones(400))
    assert make().fit(X, y, sample_weight=None).release_ is not None
    with pytest.raises(TypeError, match="'colour'"):
        make().fit(X, y, colour=1)


def test_missing_numbers_are_told_by_the_name_of_their_column(case):
    make, y = case
    frame = pd.DataFrame({"age": X[:, 0], "income": X[:, 1], "height": X[:, 2]})
    frame.loc[3, "income"] = np.nan
    for table in (frame, frame.astype({"income": "Float64"}), pl.from_pandas(frame)):
        with pytest.raises(InvalidInput, match=r"NaN in column 'income'\. Fill it with a public"):
            make().fit(table, y)
    with pytest.raises(InvalidInput, match=r"Input y contains NaN\. Leave such rows out"):
        make().fit(X, np.where(np.arange(400) == 3, np.nan, y))


def test_repeating_rows_is_not_advised_in_place_of_weights(case):
    make, y = case
    with pytest.raises(InvalidInput, match=r"Do not repeat rows.*groups=.*group_rows"):
        make().fit(X, y, sample_weight=np.ones(400))


def test_a_fit_that_fails_leaves_the_one_before_as_it_was(case):
    make, y = case
    model = make(entropy=Seeded(4)).fit(X, y)
    kept, before = dict(vars(model)), model.predict(X)
    wide, text = np.c_[X, X], X.astype(object)
    text[0, 0] = "secret"
    for rows, targets in ((wide, y[:-1]), (wide, [None] * len(y)), (text, y), (X[:, 0], y)):
        with pytest.raises(ValueError, match="Expected"):
            model.fit(rows, targets)
        assert vars(model) == kept
    with pytest.raises(InvalidInput, match="groups"):  # after columns were counted
        model.fit(wide, y, groups=[0])
    assert vars(model) == kept
    np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize("secret", [123456.789, "Alice"])
def test_what_cannot_be_read_is_refused_without_a_word_of_it(case, secret):
    make, y = case
    rows = np.full((400, 3), 0.5, dtype=object)
    rows[3, 1] = secret
    tables = [rows[:, 1], secret, [0.5, secret], [[secret, 1.0], [secret]], {"a": secret}]
    if secret == "Alice":
        tables += [rows, rows.astype(str), rows.astype("S"), rows.tolist()]
    for table in tables:
        for call in (make().fit, lambda table, _: make().fit(X, y).predict(table)):
            with pytest.raises(InvalidInput) as caught:
                call(table, y)
            said = "".join(traceback.format_exception(caught.value)).replace(__file__, "")
            said = "".join(line for line in said.splitlines(keepends=True) if line[:2] != "  ")
            assert str(secret) not in said
            assert "1.234" not in said
            assert "400" not in said  # how many rows there are is nobody's business
    targets = [secret] * 400 if secret == "Alice" else [[secret], [secret, 1]] * 200
    with pytest.raises(InvalidInput) as caught:
        make().fit(X, targets)
    assert str(secret) not in str(caught.value)
    with pytest.raises(InvalidInput, match="as many targets"):
        make().fit(X, y[:-1])
    with pytest.raises(InvalidInput) as caught:
        make().fit(X[:, :0], y)
    assert "400" not in str(caught.value)
    sparse = pd.DataFrame({"a": pd.arrays.SparseArray(["x"] * 400, fill_value="Alice")})
    with pytest.raises(InvalidInput, match="column 'a' of X") as caught:
        make().fit(sparse, y)
    assert "Alice" not in str(caught.value)
    with pytest.raises(InvalidInput):
        make().fit(X, np.array(1.0))


def test_numbers_that_are_none_are_refused_and_no_value_is_quoted(case):
    make, y = case
    for bad in (np.nan, np.inf):
        rows = X.copy()
        rows[17, 1] = bad
        rows[17, 0] = 0.123456789
        with pytest.raises(ValueError, match="contains") as caught:
            make().fit(rows, y)
        assert "0.1234" not in str(caught.value)
        assert ("column 1. Fill it with a public" in str(caught.value)) is bool(np.isnan(bad))
        assert "imputer transformer" not in str(caught.value)
        with pytest.raises(ValueError, match="contains"):
            make().fit(X, y).predict(rows)
    texts = X.astype(object)
    texts[17, 1] = "secret"
    with pytest.raises(InvalidInput, match="numbers") as caught:
        make().fit(texts, y)
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__
    with pytest.raises(InvalidInput, match="numbers") as caught:
        make().fit(X + 0.123456789j, y)
    assert "0.1234" not in str(caught.value)


def test_keys_are_what_a_release_takes():
    labels = (X[:, 0] > 0.5).astype(int)
    made = PrivateClassifier(4, 1e-5, bounds=([0] * 3, [1, 1, 2]), classes=[0, 1]).fit(X, labels)
    assert np.array_equal(made.release_.predict(made.keys(X)), made.predict(X))
    assert not np.array_equal(made.release_.predict(X), made.predict(X))


def test_keys_do_not_depend_on_the_precision_of_rows(case):
    """One more row may change it for all: a table of float32 with one float64 is float64."""
    make, y = case
    rows = X.astype(np.float32)
    one, other = (make(entropy=Seeded(3)).fit(each, y) for each in (rows, rows.astype(np.float64)))
    assert np.array_equal(one.release_.released.state, other.release_.released.state)


def test_targets_that_are_no_numbers_are_refused_and_not_quoted():
    targets = TARGET.astype(object)
    targets[3] = "secret"
    with pytest.raises(InvalidInput, match="numbers") as caught:
        PrivateRegressor(1, 1e-5, bounds=(0, 1), target_bounds=(-1, 2)).fit(X, targets)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(case, library):
    make, y = case
    frames = pytest.importorskip(library)
    frame = frames.DataFrame({"age": X[:, 0], "height": X[:, 1], "weight": X[:, 2]})
    column = frames.Series(values=y) if library == "polars" else frames.Series(y)
    groups = frames.Series(values=PEOPLE) if library == "polars" else frames.Series(PEOPLE)
    model = make(entropy=Silent(), public_rows=frame[:20]).fit(frame, column, groups=groups)
    assert model.feature_names_in_.tolist() == ["age", "height", "weight"]
    arrays = make(entropy=Silent(), public_rows=X[:20]).fit(X, y, groups=PEOPLE)
    np.testing.assert_array_equal(model.predict(frame), arrays.predict(X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["height", "age", "weight"]])


def test_public_rows_without_names_beside_a_frame():
    frames = pytest.importorskip("pandas")
    frame = frames.DataFrame(X, columns=["a", "b", "c"])
    model = PrivateRegressor(
        1, 1e-5, bounds=(0, 1), target_bounds=(-1, 2), public_rows=X[:20], rows_hint=400
    )
    assert model.fit(frame, TARGET).n_features_in_ == 3


def test_the_page_of_a_notebook(case):
    make, y = case
    model = make(neighbours="replace")
    before = model._repr_html_()
    assert "nothing so far" in before
    assert "discreet-card" in before
    model.fit(X, y)
    after = model._repr_html_()
    assert type(model).__name__ in after
    assert "<td" in after
    assert model.reader_ in after
    assert "any one row (replaced by another)" in after
    assert "NOT PRIVATE" not in after
    assert "taken from the data" not in after
    assert model._repr_mimebundle_()["text/html"].count("discreet-card") == 1
    with sklearn.config_context(display="text"):
        assert "text/html" not in model._repr_mimebundle_()
        assert not hasattr(model, "_repr_html_")


def test_the_page_says_what_is_wrong():
    model = PrivateRegressor(1, 1e-5, bounds=(0, 1), entropy=Silent())
    with pytest.warns(discreet.PrivacyLeakWarning):
        model.fit(X, TARGET)
    page = model._repr_html_()
    assert "NOT PRIVATE" in page
    assert "target_bounds: not covered by the guarantee" in page


def test_the_page_escapes_what_it_is_given():
    page = PrivateRegressor("<script>alert(1)</script>", 1e-5)._repr_html_()
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_nothing_is_checked_or_changed_before_fit(case):
    make, _ = case
    odd = object()
    model = make(bounds=odd, epsilon=-1)
    assert model.bounds is odd
    assert model.get_params()["epsilon"] == -1
    for name in ("card_", "guarantee_", "receipt_", "release_"):
        assert not hasattr(model, name)
