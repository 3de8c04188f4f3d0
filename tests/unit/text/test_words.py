"""Typical words: what one text gives, and what is read from noisy sums."""

import math
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import InvalidInput
from discreet.text.words import Directions, Vocabulary, mark_weight, typical

RADIUS = 2**16
ALPHA = 1e-6  # how often a statistical test here may fail by chance


# The vocabulary


def test_marks_are_distinct_words_in_any_case_and_beside_any_sign():
    vocabulary = Vocabulary(words=("card", "bank", "rate"))
    assert vocabulary.marks("The BANK's rate: rate, (card) bankers 3rate_") == (0, 1, 2)
    assert vocabulary.marks("CARD\u2019s card") == (0,)
    assert vocabulary.marks("") == ()


def test_of_too_many_words_the_rarest_are_kept():
    vocabulary = Vocabulary(words=("time", "bank", "refund", "iban"), most=2)
    assert vocabulary.marks("time to refund my bank iban") == (2, 3)
    assert vocabulary.marks("time bank") == (0, 1)


@given(st.text(max_size=60), st.integers(1, 4))
def test_marks_never_exceed_most(text, most):
    vocabulary = Vocabulary(words=("a", "b", "c", "d", "e", "f"), most=most)
    marks = vocabulary.marks(f"a b c d e f {text}")
    assert len(set(marks)) == len(marks) == most


def test_common_words_say_something_and_topics_are_among_them():
    pytest.importorskip("wordfreq")
    vocabulary = Vocabulary.common(size=500, topics=["Overdraft fees of the bank"])
    words = vocabulary.words
    assert len(words) == len(set(words)) == 500
    assert {"overdraft", "fees", "bank", "money"} <= set(words)
    assert not {"the", "of", "would", "don", "because"} & set(words)
    assert words.index("money") < words.index("bank") < words.index("overdraft")
    assert "overdraft" not in Vocabulary.common(size=500).words


def test_without_wordfreq_words_must_be_given(monkeypatch):
    monkeypatch.setitem(sys.modules, "wordfreq", None)
    with pytest.raises(InvalidInput, match="wordfreq"):
        Vocabulary.common()


def test_words_of_public_texts_are_those_of_most_texts():
    texts = ["card card card lost", "my card is lost", "bank card", "unique", "the bank"]
    assert Vocabulary.from_texts(texts).words == ("card", "bank", "lost")
    assert Vocabulary.from_texts(texts, size=1).words == ("card",)


@pytest.mark.parametrize(
    "words", [(), ("Card",), ("two words",), ("card", "card"), ("secret1",), (3,), ("",)]
)
def test_words_that_no_text_can_mark_are_rejected_and_not_quoted(words):
    with pytest.raises(InvalidInput) as caught:
        Vocabulary(words=words)
    assert "ecret" not in str(caught.value)


def test_most_is_one_at_least():
    with pytest.raises(InvalidInput, match="most"):
        Vocabulary(words=("card",), most=0)


@pytest.mark.parametrize("radius", [1, 255, 2**8, RADIUS])
def test_weights_have_the_largest_norm_that_is_within_the_radius(radius):
    assert mark_weight(0, radius=radius) == 0
    for marks in range(1, 65):
        weight = mark_weight(marks, radius=radius)
        assert marks * weight**2 <= radius**2 < marks * (weight + 1) ** 2


# Coordinates


def directions(anchors: int = 50, dim: int = 24, seed: int = 0) -> Directions:
    return Directions.of(np.random.default_rng(seed).normal(size=(anchors, dim)))


def texts(n: int, dim: int = 24, seed: int = 1) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(n, dim))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_coordinates_are_those_of_the_row_alone_to_the_bit(data):
    dtype = data.draw(st.sampled_from([np.float64, np.float32, np.float16]))
    n = data.draw(st.integers(1, 70))
    scale = data.draw(st.sampled_from([1.0, 1e-3, 1e3]))
    rows = (texts(n, seed=data.draw(st.integers(0, 99))) * scale).astype(dtype)
    place = data.draw(st.integers(0, n - 1))
    if data.draw(st.booleans()):  # others may be as long or as short as they like
        rows[np.arange(n) != place] *= data.draw(st.sampled_from([0.0, 20.0]))
    public = directions()
    alone = public.units(rows[place : place + 1])[0]
    np.testing.assert_array_equal(public.units(rows)[place], alone)
    np.testing.assert_array_equal(public.units(np.asfortranarray(rows))[place], alone)
    np.testing.assert_array_equal(public.coordinates(rows)[place], alone / RADIUS)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 60),
    st.integers(1, 20),
    st.integers(0, 99),
    st.sampled_from([0.0, 1e-5, 1.0, 1e9]),
    st.integers(1, 40),
)
def test_a_text_adds_no_more_than_the_bound_exactly(anchors, dim, seed, scale, marks):
    public = directions(anchors, dim, seed)
    units = [[int(each) for each in row] for row in public.units(texts(5, dim, seed) * scale)]
    weight = mark_weight(marks, radius=RADIUS)
    for row in units:
        squared = sum(each**2 for each in row)
        assert squared <= RADIUS**2
        assert marks * weight**2 * squared <= RADIUS**4
        assert row[0] == RADIUS // 4
        assert sum(each > 0 for each in row[1:]) <= public.reach
        assert min(row) >= 0


def test_ordinary_texts_use_the_whole_bound():
    units = directions().units(texts(100))
    assert np.all(np.linalg.norm(units, axis=1) > 0.9999 * RADIUS)


def test_a_text_of_length_zero_has_the_constant_only():
    units = directions().units(np.zeros((1, 24)))
    assert units[0, 0] > 0
    assert not units[0, 1:].any()


def test_the_nearest_anchor_has_the_largest_coordinate():
    rng = np.random.default_rng(3)
    topics = texts(50, 24, 3)
    rows = topics[:20] + 0.05 * rng.normal(size=(20, 24))
    public = Directions.of(topics)
    np.testing.assert_array_equal(public.coordinates(rows)[:, 1:].argmax(axis=1), np.arange(20))
    np.testing.assert_allclose(public.nearness(topics), 1, atol=1e-3)
    assert public.reach == 5


def test_too_many_topics_are_merged_and_too_few_are_joined_by_words():
    assert directions(500).anchors.shape == (128, 24)
    assert directions(500).width == 129
    few, words = texts(10), texts(900, seed=2)
    assert len(Directions.of(few).anchors) == 10
    joined = Directions.of(few, words)
    assert joined.anchors.shape == (40, 24)
    np.testing.assert_array_equal(joined.anchors[:10], Directions.of(few).anchors)
    assert len(Directions.of(texts(60), words).anchors) == 60


def test_merged_topics_stay_near_their_anchor():
    centres = texts(64, 24, 5)
    near = centres.repeat(5, axis=0) + 0.02 * np.random.default_rng(5).normal(size=(320, 24))
    public = Directions.of(near, count=64)
    assert public.nearness(centres).min() > 0.99


@pytest.mark.parametrize(
    "rows",
    [np.zeros((7, 23)), np.zeros(24), np.full((7, 24), np.nan), np.array([["a"] * 24])],
)
def test_vectors_that_are_none_are_rejected_without_their_number(rows):
    with pytest.raises(InvalidInput) as caught:
        directions().units(rows)
    assert "7" not in str(caught.value)


def test_stored_anchors_are_the_same_anchors_and_no_texts_have_no_coordinates():
    public = directions()
    again = Directions(anchors=public.anchors.copy(), reach=public.reach)
    np.testing.assert_array_equal(again.anchors, public.anchors)
    assert again.units(np.empty((0, 24))).shape == (0, public.width)


def test_topics_that_are_none_are_rejected():
    for bad in (np.zeros((3, 4)), np.ones((1, 4)), np.full((3, 4), np.inf), np.ones(4)):
        with pytest.raises(InvalidInput):
            Directions.of(bad)
    with pytest.raises(InvalidInput, match="words"):
        Directions.of(texts(5), texts(5, 23))
    with pytest.raises(InvalidInput, match="anchors"):
        Directions(anchors=np.ones((5000, 2), dtype=np.int64), reach=3)
    with pytest.raises(InvalidInput, match="reach"):
        Directions(anchors=np.ones((5, 2), dtype=np.int64), reach=5)


# Reading

NAMES = tuple(f"{a}{b}{c}" for a in "bcdfghjklm" for b in "aeiou" for c in "npqrstvwxz")


def corpus(n: int = 12_000, seed: int = 0):
    """Texts near 50 topics. Word 0 is said by all topics alike; word 1 + t mostly in topic t."""
    rng = np.random.default_rng(seed)
    topics = texts(50, 32, seed)
    topic = rng.integers(0, 50, n)
    rows = topics[topic] + 0.12 * rng.normal(size=(n, 32))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    said = np.zeros((n, len(NAMES)))
    said[:, 0] = rng.random(n) < 0.6
    said[np.arange(n), 1 + topic] = rng.random(n) < 0.7
    others = 1 + rng.integers(0, 50, n)
    said[np.arange(n), others] = np.maximum(said[np.arange(n), others], rng.random(n) < 0.3)
    weights = said / np.sqrt(np.maximum(said.sum(axis=1, keepdims=True), 1))
    public = Directions.of(topics)
    return public, topics, weights.T @ public.coordinates(rows)


@pytest.fixture(scope="module")
def planted():
    return corpus()


def read(planted, sums, topic, **options):
    public, topics, _ = planted
    question = public.coordinates(topics[topic : topic + 1])[0]
    vocabulary = Vocabulary(words=NAMES)
    return typical(sums, question, vocabulary, **options)


def test_planted_words_are_found_and_no_others(planted):
    noise = np.random.default_rng(1).normal(size=planted[2].shape)
    found = [read(planted, planted[2] + 6 * noise, t, noise_sd=6.0) for t in range(50)]
    assert all(NAMES[1 + t] == words[0].word for t, words in enumerate(found))
    shown = [word.word for words in found for word in words]
    assert NAMES[0] not in shown  # it is said everywhere
    assert sum(word not in NAMES[1:51] for word in shown) <= 4  # never said; .5 are expected
    assert all(word.lift >= 2 and word.z >= 4 for words in found for word in words)


def test_the_lift_is_that_of_softly_counted_texts(planted):
    public, topics, sums = planted
    reading = public.coordinates(topics[:1])[0]
    [word, *_] = read(planted, sums, 0, noise_sd=1e-3)
    near = sums[:, 1:] @ reading[1:]
    assert word.word == NAMES[1]
    assert word.lift == pytest.approx(
        near[1] / sums[1, 0] / (near.sum() / sums[:, 0].sum()), rel=1e-3
    )


def test_more_noise_hides_words_and_then_all(planted):
    rng = np.random.default_rng(2)
    noise = rng.normal(size=planted[2].shape)
    shown = []
    for sd in (6.0, 30.0, 60.0, 3000.0):
        sums = planted[2] + sd * noise
        shown.append(sum(len(read(planted, sums, t, noise_sd=sd)) for t in range(50)))
    assert shown[0] > 45
    assert shown[0] >= shown[1] > shown[2] >= shown[3] == 0


def test_mistakes_because_of_noise_are_as_rare_as_said():
    """Accepts the right scale of the noise, and rejects 3/2 of it."""
    rng = np.random.default_rng(4)
    public = directions(50, 32)
    questions = public.coordinates(texts(400, 32))
    vocabulary = Vocabulary(words=NAMES)
    sums = np.zeros((len(NAMES), public.width))
    sums[:, 0] = 6.0  # said everywhere alike, and so rarely that noise makes a large lift
    sums[:, 1:] = sums[:, :1] * questions[:, 1:].mean(axis=0) / public.constant

    def mistakes(scale: float) -> int:
        return sum(
            len(typical(sums + scale * rng.normal(size=sums.shape), each, vocabulary, noise_sd=1.0))
            for each in questions
        )

    # Of 400 questions 4; a Poisson count of mean 4 exceeds 19 with less than ALPHA.
    assert math.exp(-4) * 4**20 / math.factorial(20) * 1.3 < ALPHA
    assert mistakes(1.0) < 20
    assert mistakes(1.5) >= 20


def test_only_words_near_the_question_are_looked_at_and_need_less(planted):
    sums = planted[2]
    cosines = np.linspace(1, 0, len(NAMES))
    [clear, *_] = read(planted, sums, 7, noise_sd=1.0)
    fair = clear.z / 3.9  # 500 words: 4.1 deviations; 50 words: 3.5
    assert read(planted, sums, 7, noise_sd=fair) == []
    [word] = read(planted, sums, 7, noise_sd=fair, cosines=cosines)
    assert word.word == NAMES[8]
    assert read(planted, sums, 7, noise_sd=1.0, cosines=-cosines) == []


def test_the_clearest_come_first_and_no_more_than_asked_for(planted):
    found = read(planted, planted[2], 7, noise_sd=1e-3, most=50)
    z = [word.z for word in found]
    assert z == sorted(z, reverse=True)
    assert len(found) > 1
    assert read(planted, planted[2], 7, noise_sd=1e-3, most=1) == found[:1]


def test_nothing_is_shown_for_a_question_that_is_near_nothing(planted):
    public, _, sums = planted
    question = public.coordinates(np.zeros((1, 32)))[0]
    assert typical(sums, question, Vocabulary(words=NAMES), noise_sd=1.0) == []


@pytest.mark.parametrize("wrong", ["sums", "question", "cosines", "noise_sd", "most"])
def test_what_does_not_fit_is_rejected(planted, wrong):
    public, topics, sums = planted
    options = {"sums": sums, "question": public.coordinates(topics[:1])[0], "noise_sd": 1.0}
    options |= {"cosines": np.zeros(len(NAMES)), "most": 8}
    options[wrong] = options[wrong][1:] if wrong in ("sums", "question", "cosines") else 0
    with pytest.raises(InvalidInput, match=wrong):
        typical(vocabulary=Vocabulary(words=NAMES), **options)
