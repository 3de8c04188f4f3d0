"""`discreet.softmax_regression`: from rows to predictions, and all the ways in and out."""

import math

import numpy as np
import pytest
import torch
from data import unit_rows
from maps import public_rows

import discreet
from discreet import CorruptRelease, InvalidInput, NotPrivateWarning, PrivacyLeakWarning
from discreet.accounting import gaussian_sigma
from discreet.features.linear import Linear, UnitLinear
from discreet.privacy import NOT_PRIVATE
from discreet.readers.softmax.answers import SoftmaxRegression
from discreet.readers.softmax.mechanism import SoftmaxOptions
from discreet.testing import Seeded, Silent

SPEND = {"epsilon": 2.0, "delta": 1e-6}
ROWS, DIM = 3_000, 4
KEYS = unit_rows(ROWS, DIM) * np.linspace(0.4, 1, ROWS)[:, None]
NAMES = np.array(["ash", "birch", "cedar"])
LABELS = NAMES[np.argmax(KEYS @ unit_rows(3, DIM, seed=5).T, axis=1)]
QUERIES = unit_rows(30, DIM, seed=3) * 0.9


def fit(keys=KEYS, labels=LABELS, **options):
    given = {"classes": NAMES, "features": "linear", "entropy": Seeded(0), **SPEND}
    return discreet.softmax_regression(keys, labels, **given | options)


@pytest.fixture(scope="module")
def made():
    return fit()


@pytest.mark.parametrize("entropy", [Silent(), Seeded(1)])
@pytest.mark.parametrize(
    "options",
    [
        {"features": "linear"},
        {"features": "rays"},
        {"features": "waves"},
        {"features": "lines_and_waves"},
        {"features": "auto", "rows_hint": 3_000},
        {"features": "auto", "rows_hint": 3_000, "public_rows": public_rows(DIM)},
        {"features": UnitLinear(DIM, stretch=2.0), "neighbours": "replace"},
    ],
)
def test_easy_classes_are_told_apart(options, entropy):
    predicted = fit(entropy=entropy, **options).predict(KEYS)
    assert np.mean(predicted == LABELS) > (0.9 if isinstance(entropy, Silent) else 0.85)


def test_curved_classes_need_waves():
    labels = (np.linalg.norm(KEYS[:, :2], axis=1) > np.linalg.norm(KEYS[:, 2:], axis=1)).astype(int)
    right = {
        kind: np.mean(
            fit(labels=labels, classes=[0, 1], features=kind, epsilon=4.0).predict(KEYS) == labels
        )
        for kind in ("linear", "waves")
    }
    assert right["linear"] < 0.65
    assert right["waves"] > 0.85


def test_many_records_teach_as_rows_do():
    groups = np.arange(ROWS) // 2
    made = fit(groups=groups, group_rows=2.0)
    assert np.mean(made.predict(KEYS) == LABELS) > 0.85
    assert made.guarantee.unit == "record"


def test_without_rows_there_is_nothing_but_noise():
    made = fit(KEYS[:0], LABELS[:0])
    assert set(made.predict(QUERIES)) <= set(NAMES)
    silent = fit(KEYS[:0], LABELS[:0], entropy=Silent())
    assert np.array_equal(silent.coefficients, np.zeros((DIM + 1, 3)))
    np.testing.assert_allclose(silent.probabilities(QUERIES), 1 / 3)


@pytest.mark.parametrize("shape", [(DIM,), (7, DIM), (2, 3, DIM), (1, 2, 1, DIM), (0, DIM)])
def test_answers_have_the_shape_of_queries(made, shape):
    queries = np.resize(QUERIES, shape)
    logits, probabilities = made.logits(queries), made.probabilities(queries)
    assert logits.shape == probabilities.shape == (*shape[:-1], 3)
    predicted = made.predict(queries)
    assert np.shape(predicted) == shape[:-1]
    assert np.array_equal(predicted, NAMES[np.argmax(logits, axis=-1)])
    flat = made.logits(queries.reshape(-1, DIM))
    np.testing.assert_allclose(logits.reshape(-1, 3), flat, atol=1e-12)
    np.testing.assert_allclose(logits.sum(axis=-1), 0, atol=1e-9)
    np.testing.assert_allclose(probabilities.sum(axis=-1), 1)
    ratio = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(probabilities, ratio)


def test_logits_are_features_times_coefficients(made):
    assert made.coefficients.shape == (DIM + 1, 3)
    assert np.array_equal(made.coefficients, made.released.state[0].T / 2.0**30)
    mapped = made.features.key_features(QUERIES).features / made.features.unit
    logits = mapped @ made.coefficients
    logits -= logits.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(made.logits(QUERIES), logits, atol=1e-3)
    assert made.classes.tolist() == list(NAMES)


def test_classes_of_any_order_are_answered_in_theirs(made):
    shuffled = fit(classes=["cedar", "ash", "birch"])
    assert shuffled.classes.tolist() == ["ash", "birch", "cedar"]
    assert np.array_equal(shuffled.released.state, made.released.state)


@pytest.mark.parametrize("classes", [[10, 20, 30], [0.5, 1.5, 2.5], [True, False]])
def test_labels_come_back_as_they_are(classes):
    places = np.arange(ROWS) % len(classes)
    predicted = fit(labels=np.array(classes)[places], classes=classes).predict(QUERIES)
    assert set(predicted.tolist()) <= set(classes)
    assert predicted.dtype == np.array(classes).dtype


def test_a_class_that_no_row_has_is_predicted_next_to_never():
    made = fit(classes=[*NAMES, "unseen"], entropy=Silent())
    assert made.logits(QUERIES).shape == (30, 4)
    assert "unseen" not in made.predict(KEYS)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("features", ["linear", "waves"])
def test_torch_asks_and_differentiates(features, dtype):
    made = fit(features=features)
    queries = torch.tensor(QUERIES, dtype=dtype, requires_grad=True)
    logits, shares = made.logits(queries), made.probabilities(queries)
    assert logits.dtype == shares.dtype == dtype
    np.testing.assert_allclose(logits.detach().numpy(), made.logits(QUERIES), atol=1e-3)
    np.testing.assert_allclose(shares.detach().numpy(), made.probabilities(QUERIES), atol=1e-3)
    predicted = made.predict(queries)
    assert isinstance(predicted, np.ndarray)
    assert np.mean(predicted == made.predict(QUERIES)) > 0.9
    loss = torch.log(shares[:, 0]).sum()
    loss.backward()
    assert torch.all(torch.isfinite(queries.grad))
    step = 1e-5
    moved = QUERIES.copy()
    moved[0, 1] += step
    before, after = (np.log(made.probabilities(each)[0, 0]) for each in (QUERIES, moved))
    assert queries.grad[0, 1].item() == pytest.approx((after - before) / step, rel=0.02, abs=1e-2)


def test_single_precision_stays_single_and_lists_are_double(made):
    assert made.logits(QUERIES.astype(np.float32)).dtype == np.float32
    assert made.logits(QUERIES.tolist()).dtype == np.float64


def test_long_keys_and_queries_are_clipped_alike():
    made = fit(KEYS * 10, LABELS, entropy=Silent())
    unit = KEYS / np.linalg.norm(KEYS, axis=1, keepdims=True)
    short = fit(unit, LABELS, entropy=Silent())
    np.testing.assert_allclose(made.logits(QUERIES), short.logits(QUERIES), atol=1e-2)
    norms = np.linalg.norm(QUERIES, axis=1, keepdims=True)
    long = made.logits(QUERIES / norms * 1e200)
    np.testing.assert_allclose(long, made.logits(QUERIES / norms), atol=1e-9)
    assert fit(key_norm=3.0).features.key_norm == 3.0


@pytest.mark.parametrize("kind", ["linear", "waves", "lines_and_waves", "near_landmarks"])
def test_a_file_predicts_the_same(tmp_path, kind):
    made = fit(features=kind, public_rows=public_rows(DIM), rows_hint=3_000)
    path = tmp_path / "fit.safetensors"
    made.save(path)
    for load in (discreet.load, discreet.SoftmaxRegression.load):
        with pytest.warns(NotPrivateWarning):
            again = load(path)
        assert isinstance(again, SoftmaxRegression)
        assert again.card == made.card
        assert again.receipt == made.receipt
        assert again.classes.tolist() == made.classes.tolist()
        assert np.array_equal(again.released.state, made.released.state)
        assert np.array_equal(again.logits(QUERIES), made.logits(QUERIES))
        assert np.array_equal(again.predict(QUERIES), made.predict(QUERIES))
    for load in (discreet.Memory.load, discreet.LeastSquares.load):
        with pytest.raises(CorruptRelease):
            load(path)
    damaged = bytearray(path.read_bytes())
    damaged[-9] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(CorruptRelease):
        discreet.load(path)


def test_load_opens_the_others_too(tmp_path):
    values = np.eye(3)[np.searchsorted(NAMES, LABELS)]
    discreet.build(KEYS, values, **SPEND, scale=1.0).save(tmp_path / "memory")
    discreet.least_squares(KEYS, values, **SPEND, features="linear").save(tmp_path / "lines")
    fit(entropy=None).save(tmp_path / "rounds")
    kinds = (discreet.Memory, discreet.LeastSquares, SoftmaxRegression)
    for name, kind in zip(("memory", "lines", "rounds"), kinds, strict=True):
        assert isinstance(discreet.load(tmp_path / name), kind)
    for name in ("memory", "lines"):
        with pytest.raises(CorruptRelease, match="discreet-softmax-regression"):
            discreet.SoftmaxRegression.load(tmp_path / name)


def test_files_and_cards_do_not_depend_on_the_rows(tmp_path):
    sizes, cards = set(), set()
    for rows in (0, 1, ROWS):
        made = fit(KEYS[:rows], LABELS[:rows], rows_hint=100)
        made.save(tmp_path / "fit.safetensors")
        sizes.add((tmp_path / "fit.safetensors").stat().st_size)
        cards.add(str(made.card))
        assert np.all(np.isfinite(made.logits(QUERIES)))
    assert len(sizes) == len(cards) == 1


def test_the_card_says_what_is_protected_and_how():
    made = fit(rows_hint=3_000)
    text, facts = str(made.card), made.card.to_dict()
    assert NOT_PRIVATE in text
    assert "any one row (added or removed)" in text
    assert "each of 16 rounds" in text
    assert "of the squared budget 3% is for second moments, in the first round" in text
    assert "3% for how sure to be, after the last" in text
    assert "the classifier" in made.guarantee.scope
    sigma = gaussian_sigma(**SPEND)
    assert facts["noise_multiplier"] == pytest.approx(sigma, rel=1e-9)
    assert facts["noise_sigma"] == pytest.approx(sigma * 0.2 / math.sqrt(0.94 / 16), rel=1e-3)
    assert facts["rounds"] == 16
    assert facts["moments"] == 0.03
    assert facts["judging"] == 0.03
    assert facts["clip"] == 0.2
    assert fit(labels=LABELS == "ash", classes=[False, True]).card.to_dict()["clip"] == 0.4
    assert facts["classes"] == list(NAMES)
    assert facts["mechanism"].endswith("in each round")
    assert (facts["epsilon"], facts["delta"]) == (2.0, 1e-6)
    assert (facts["neighbours"], facts["unit"]) == ("add_remove", "row")
    assert (facts["rows"], facts["rows_hint"]) == (None, 3_000)
    assert facts["state_bytes"] == made.nbytes == 8 * 3 * (DIM + 1) + 8 * 3
    assert (facts["private"], facts["entropy"]) == (False, "Seeded(0)")
    two = fit(neighbours="replace").card.to_dict()
    assert two["noise_sigma"] == pytest.approx(2 * facts["noise_sigma"], rel=1e-3)


def test_noise_for_tests_is_marked_and_that_of_the_system_is_not():
    for entropy in (Seeded(0), Silent()):
        made = fit(entropy=entropy)
        for text in (repr(made), repr(made.released), str(made.card), made.guarantee.scope):
            assert NOT_PRIVATE in text
        assert not made.private
    real = fit(entropy=None)
    assert real.private
    for text in (repr(real), repr(real.released), str(real.card), real.guarantee.scope):
        assert NOT_PRIVATE not in text
    assert repr(real) == "<SoftmaxRegression, 144 bytes, ε = 2>"
    assert not np.array_equal(real.released.state, fit(entropy=None).released.state)


def test_replaced_rows_have_a_public_number():
    made = fit(neighbours="replace")
    assert made.released.rows == ROWS
    assert made.released.rows_hint == ROWS
    assert f"the number of rows is public: {ROWS:,}" in str(made.card)
    assert fit(neighbours="replace", features="auto").released.rows_hint == ROWS
    assert fit(neighbours="replace", rows_hint=7).released.rows_hint == 7
    chunked = fit(lambda: iter([(KEYS, LABELS)]), None, neighbours="replace")
    assert (chunked.released.rows, chunked.released.rows_hint) == (ROWS, None)


def test_the_number_of_rows_stays_private_otherwise():
    for made in (fit(), fit(groups=np.arange(ROWS), neighbours="replace")):
        assert made.released.rows is None
        assert made.released.rows_hint is None
        assert f"{ROWS:,}" not in str(made.card)
    few = slice(0, 50)  # as many features as with more rows
    chosen = fit(KEYS[few], LABELS[few], features="auto").features
    assert chosen.frequencies == 512


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": ["ash"]}, "classes"),
        ({"classes": []}, "classes"),
        ({"classes": ["ash", "birch", "cedar", "ash"]}, "distinct"),
        ({"classes": ["ash", "birch"]}, "label"),
        ({"classes": [1, 2, 3]}, "label"),
        ({"classes": 7}, "classes"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"epsilon": 1e-6}, "epsilon"),
        ({"delta": 0.0}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"neighbours": "swap"}, "neighbours"),
        ({"key_norm": -1.0}, "key_norm"),
        ({"key_norm": (1.0, 2.0)}, "key_norm"),
        ({"features": "cubic"}, "features"),
        ({"features": "near_landmarks"}, "public_rows"),
        ({"features": Linear(DIM + 1)}, "features"),
        ({"features": Linear(DIM, key_norm=2.0)}, "features"),
        ({"public_rows": [public_rows(DIM)] * 2}, "public_rows"),
        ({"public_rows": public_rows(3), "features": "near_landmarks"}, "public_rows"),
        ({"rows_hint": 0}, "rows_hint"),
        ({"group_rows": 2.0}, "group_rows"),
        ({"memory_limit": -1}, "memory_limit"),
        ({"memory_limit": math.nan}, "memory_limit"),
        ({"entropy": 7}, "entropy"),
        ({"entropy": np.random.default_rng(0)}, "entropy"),
    ],
)
def test_what_cannot_be_is_refused_with_its_name(options, message):
    with pytest.raises(InvalidInput, match=message):
        fit(**options)


def test_options_that_there_are_not_are_refused():
    for name in ("share", "rounds", "clip", "values"):
        with pytest.raises(TypeError, match=name):
            fit(**{name: 1})


def test_options_that_are_missing_are_named():
    with pytest.raises(TypeError, match="classes"):
        discreet.softmax_regression(KEYS, LABELS, features="linear", **SPEND)


def test_numbers_that_protect_nobody_are_warned_of():
    for options in ({"epsilon": 30.0}, {"delta": 0.1}, {"delta": 1e-3, "rows_hint": 10_000}):
        with pytest.warns(PrivacyLeakWarning):
            fit(**options)


@pytest.mark.parametrize(
    "queries", [np.zeros((2, 3)), np.full((2, DIM), np.nan), np.full(DIM, np.inf), ["a"] * DIM, 1.0]
)
def test_bad_queries_are_refused(made, queries):
    for ask in (made.predict, made.logits, made.probabilities):
        with pytest.raises(InvalidInput):
            ask(queries)


def test_a_release_of_another_kind_is_refused(made):
    memory = discreet.build(KEYS, KEYS, **SPEND, scale=1.0)
    with pytest.raises(InvalidInput):
        SoftmaxRegression(memory.released)
    for kind in (discreet.Memory, discreet.LeastSquares):
        with pytest.raises(InvalidInput):
            kind(made.released)


def test_what_is_released_cannot_be_changed(made):
    with pytest.raises(ValueError, match="read-only"):
        made.released.state[:] = 0


def test_options_do_not_show_the_classes():
    assert "ash" not in repr(SoftmaxOptions(classes=NAMES, **SPEND))
