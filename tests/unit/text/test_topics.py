"""Topics: lists that make sense, merging that loses nobody, groups that are the same for all."""

import json
from importlib import resources
from itertools import chain

import numpy as np
import pytest

from discreet import InvalidInput
from discreet.text import topics as module
from discreet.text.encoders import TextEncoder
from discreet.text.topics import PublicTexts, Topics, most_topics

PLACES = ["beach", "forest", "harbour", "mountain", "river", "station"]
NAMES = ["card arrival", "card delivery", "exchange rate", "lost card", "refund", "top up"]


def trigrams(text):
    """Count three letters in a row: texts are alike that share words."""
    padded = f"  {text.casefold()} "
    vector = np.zeros(512)
    for start in range(len(padded) - 2) if text.strip() else ():
        code = sum(ord(each) * 31**power for power, each in enumerate(padded[start : start + 3]))
        vector[code % 512] += 1
    return vector


ENCODER = TextEncoder("custom", 512, trigrams)


def of(angles):
    """Return topics on a circle, called by their place."""
    angles = np.asarray(angles, float)
    vectors = np.column_stack([np.cos(angles), np.sin(angles)])
    return Topics(tuple(f"t{place}" for place in range(len(angles))), vectors)


# What topics are made of.


def test_names_have_their_encoders_vectors():
    topics = Topics.of([f" {name} " for name in NAMES], ENCODER)
    assert (topics.names, topics.source, len(topics), topics.dim) == (
        tuple(NAMES),
        "names",
        6,
        512,
    )
    assert topics.merged == tuple((name,) for name in NAMES)
    for name, vector in zip(NAMES, topics.vectors, strict=True):
        assert vector.tobytes() == ENCODER.encode(name).tobytes()
    assert topics.vectors.dtype == np.float32
    with pytest.raises(ValueError, match="read-only"):
        topics.vectors[0] = 0
    assert Topics.of(topics, ENCODER) is topics
    assert Topics.of(np.array(NAMES), ENCODER).names == topics.names


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        ("txt", "\n".join([*NAMES, "", ""])),
        ("md", "\ufeff" + "\r\n".join(NAMES)),
        ("csv", "\n".join(NAMES)),
        ("csv", "id,Topic\n" + "\n".join(f"{row},{name}" for row, name in enumerate(NAMES))),
        ("CSV", "name\n" + "\n".join(f'"{name}"' for name in NAMES)),
        ("json", json.dumps(NAMES)),
    ],
)
def test_files_hold_names(tmp_path, suffix, text):
    path = tmp_path / f"topics.{suffix}"
    path.write_text(text, encoding="utf-8")
    for given in (path, str(path)):
        topics = Topics.of(given, ENCODER)
        assert (topics.names, topics.source) == (tuple(NAMES), "file")


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        ("csv", "a,b\nc,d"),
        ("csv", '"a\nb'),
        ("json", '{"a": 1}'),
        ("json", '"refund"'),
        ("json", "[1, 2]"),
        ("json", "[refund"),
        ("txt", ""),
        ("txt", "refund\nRefund"),
    ],
)
def test_files_that_hold_something_else_are_refused(tmp_path, suffix, text):
    path = tmp_path / f"topics.{suffix}"
    path.write_text(text)
    with pytest.raises(InvalidInput, match="topics"):
        Topics.of(path, ENCODER)


def test_a_file_that_is_not_there_is_refused_with_its_name(tmp_path):
    with pytest.raises(InvalidInput, match=r"card arrival.*a list of names, or a file"):
        Topics.of("card arrival", ENCODER)
    (tmp_path / "latin.txt").write_bytes("grün".encode("latin-1"))
    with pytest.raises(InvalidInput, match="UTF-8"):
        Topics.of(tmp_path / "latin.txt", ENCODER)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "1 to 100000 topics"),
        (["a", " "], r"topics\[1\] to be a printable text"),
        (["a", "b\x07"], r"topics\[1\] to be a printable text"),
        (["secret" * 100], r"topics\[0\] to be a printable text"),
        (["a", 7], r"topics\[1\] to be a printable text"),
        (["a", "secret  one", "b", "Secret one "], r"topics\[3\] is topics\[1\] again"),
        ({"a", "b"}, "a list"),
        ({"a": 1}, "a list"),
        (7, "a list"),
        (None, "a list"),
        (b"a", "a list"),
    ],
)
def test_what_is_no_list_of_names_is_refused_and_not_quoted(names, message):
    with pytest.raises(InvalidInput, match=message) as caught:
        Topics.of(names, ENCODER)
    assert "secret" not in str(caught.value).casefold()


def test_too_many_topics_are_refused(monkeypatch):
    monkeypatch.setattr(module, "MOST_TOPICS", 3)
    with pytest.raises(InvalidInput, match="1 to 3 topics, got 4"):
        Topics.of(NAMES[:4], ENCODER)


def test_a_name_without_tokens_is_refused():
    deaf = TextEncoder("deaf", 2, lambda text: [float("card" in text), 0.0])
    with pytest.raises(InvalidInput, match=r"'deaf'.*topics\[1\] has none"):
        Topics.of(["card", "refund"], deaf)


@pytest.mark.parametrize(
    "change",
    [
        {"vectors": np.eye(3)},
        {"vectors": 2 * np.eye(2)},
        {"vectors": np.ones(2)},
        {"vectors": np.full((2, 2), np.nan)},
        {"names": ("a", "a")},
        {"merged": (("a",),)},
        {"source": "somewhere"},
        {"reach": 2.0},
    ],
)
def test_topics_that_make_no_sense_are_refused(change):
    good = {"names": ("a", "b"), "vectors": np.eye(2)}
    Topics(**good)
    with pytest.raises(InvalidInput):
        Topics(**good | change)


def test_topics_of_another_encoder_are_refused():
    with pytest.raises(InvalidInput, match="512 numbers"):
        Topics.of(of([0, 1]), ENCODER)
    with pytest.raises(InvalidInput, match="the topics' own, with 2 numbers"):
        of([0, 1]).threshold(ENCODER)


@pytest.mark.parametrize(
    ("rows", "epsilon", "topics"),
    [(8000, 1.0, 666), (500, 0.5, 20), (5, 0.1, 1), (10**9, 9, 10**5)],
)
def test_how_many_topics_texts_can_fill(rows, epsilon, topics):
    assert most_topics(rows, epsilon) == topics


# Merging.


def test_the_most_similar_are_merged_first():
    topics = of([0.0, 2.0, 0.1, 4.0, 2.3])
    four = topics.merged_to(4)
    assert four.names == ("t0 / t2", "t1", "t3", "t4")
    three = topics.merged_to(3)
    assert three.names == ("t0 / t2", "t1 / t4", "t3")
    assert three.merged == (("t0", "t2"), ("t1", "t4"), ("t3",))
    np.testing.assert_allclose(three.vectors[0], [np.cos(0.05), np.sin(0.05)], atol=1e-6)
    np.testing.assert_array_equal(three.vectors[2], topics.vectors[3])
    np.testing.assert_allclose(np.linalg.norm(three.vectors, axis=1), 1, atol=1e-6)
    assert topics.merged_to(5) is topics
    assert topics.merged_to(99) is topics


def test_merging_is_average_link():
    # A plain one: of all pairs of groups, merge the one with the highest mean cosine of members.
    vectors = np.random.default_rng(3).normal(size=(30, 4))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    names = tuple(f"n{place}" for place in range(30))
    topics = Topics(names, vectors)
    groups = [[place] for place in range(30)]
    cosines = topics.vectors.astype(float) @ topics.vectors.T
    for count in range(29, 0, -1):
        pairs = [(a, b) for a in range(len(groups)) for b in range(a)]
        a, b = max(pairs, key=lambda pair: cosines[np.ix_(groups[pair[0]], groups[pair[1]])].mean())
        groups[b] += groups.pop(a)
        expected = {frozenset(names[place] for place in group) for group in groups}
        assert {frozenset(group) for group in topics.merged_to(count).merged} == expected


@pytest.mark.parametrize("count", [1, 2, 7, 39])
@pytest.mark.parametrize("linked", [True, False])
def test_merging_keeps_all_members_and_is_the_same_each_time(monkeypatch, count, linked):
    if not linked:
        monkeypatch.setattr(module, "_MOST_LINKED", 0)
    names = [f"{first} {second}" for first in PLACES[:5] for second in "abcdefgh"]
    topics = Topics.of(names, ENCODER)
    merged = topics.merged_to(count)
    assert len(merged) == count
    assert sorted(chain(*merged.merged)) == sorted(names)
    again = Topics.of(names, ENCODER).merged_to(count)
    assert (again.names, again.merged) == (merged.names, merged.merged)
    assert again.vectors.tobytes() == merged.vectors.tobytes()
    twice = topics.merged_to(39).merged_to(count)
    assert sorted(chain(*twice.merged)) == sorted(names)


def test_groups_of_names_are_found_whatever_the_method(monkeypatch):
    names = [f"{first} {second}" for second in "abcde" for first in PLACES]
    expected = {frozenset(f"{first} {second}" for second in "abcde") for first in PLACES}
    topics = Topics.of(names, ENCODER)
    assert {frozenset(group) for group in topics.merged_to(6).merged} == expected
    monkeypatch.setattr(module, "_MOST_LINKED", 0)
    assert {frozenset(group) for group in topics.merged_to(6).merged} == expected


def test_a_merged_name_shows_the_three_most_central_members():
    merged = of([0.0, 0.1, 0.2, 0.3, 0.4]).merged_to(1)
    assert merged.names == ("t2 / t1 / t3 and 2 more",)
    assert merged.merged == (("t2", "t1", "t3", "t0", "t4"),)
    long = Topics(("a" * 200, "b" * 200), np.array([[1, 0], [0.8, 0.6]])).merged_to(1)
    assert len(long.names[0]) < 110


def test_a_merged_name_that_is_taken_gets_a_number():
    vectors = of([0.0, 0.1, 2.0]).vectors
    merged = Topics(("a", "b", "A / B"), vectors).merged_to(2)
    assert merged.names == ("a / b", "A / B (2)")


def test_opposite_topics_can_be_merged():
    merged = Topics(("a", "b"), np.array([[0.6, 0.8], [-0.6, -0.8]])).merged_to(1)
    np.testing.assert_allclose(merged.vectors, [[0.6, 0.8]], atol=1e-6)


def test_merging_wants_a_number():
    with pytest.raises(InvalidInput, match="count=0"):
        of([0.0, 1.0]).merged_to(0)


# Public texts.


def public(each=12):
    return [f"{place} walk number {word}" for word in range(each) for place in PLACES]


def test_public_texts_fall_into_their_groups():
    topics = Topics.of(PublicTexts(public(), topics=6), ENCODER)
    assert (len(topics), topics.source) == (6, "public texts")
    assert sorted(name.split()[0] for name in topics.names) == PLACES
    assert set(topics.names) <= set(public())
    nearest = topics.near(ENCODER.encode_all(public())).argmax(axis=1)
    assert [topics.names[place].split()[0] for place in nearest] == PLACES * 12
    np.testing.assert_allclose(np.linalg.norm(topics.vectors, axis=1), 1, atol=1e-6)


def test_public_texts_give_the_same_topics_each_time():
    one, two = (Topics.of(PublicTexts(public(), topics=9), ENCODER) for _ in range(2))
    assert one.names == two.names
    assert one.vectors.tobytes() == two.vectors.tobytes()
    # A text that is there twice is no better than one.
    more = Topics.of(PublicTexts(public() + public(3), topics=9), ENCODER)
    assert more.names == one.names


def test_groups_of_long_texts_are_called_by_their_words():
    tail = "and then we went on for a while until it was late and everybody was tired"
    texts = [f"{(place + ' ') * 8}{number} {tail}" for number in range(5) for place in PLACES]
    topics = Topics.of(PublicTexts(texts, topics=6), ENCODER)
    assert sorted(name.split(",")[0] for name in topics.names) == PLACES


def test_as_many_topics_as_texts_are_the_texts():
    topics = Topics.of(PublicTexts(NAMES, topics=6), ENCODER)
    assert sorted(topics.names) == NAMES
    assert topics.reach == pytest.approx(1, abs=1e-6)


def test_reach_is_how_near_public_texts_are_to_their_topics():
    topics = Topics.of(PublicTexts(public(), topics=6), ENCODER)
    nearest = topics.near(ENCODER.encode_all(public())).max(axis=1)
    assert np.mean(nearest >= topics.reach) == pytest.approx(0.9, abs=0.05)
    assert 0 < topics.merged_to(2).reach < topics.reach
    assert Topics.of(NAMES, ENCODER).reach is None


@pytest.mark.parametrize(
    ("texts", "count", "message"),
    [
        (["a", "b", "a"], 3, "at least 3 different"),
        (["a", " "], 1, "not blank"),
        (["a", None], 1, "not blank"),
        ("a", 1, "a list"),
        (["a"], 0, "topics=0"),
    ],
)
def test_public_texts_that_give_no_topics_are_refused(texts, count, message):
    with pytest.raises(InvalidInput, match=message):
        PublicTexts(texts, topics=count)


def test_public_texts_that_are_one_to_the_encoder_are_refused():
    with pytest.raises(InvalidInput, match="at least 2 different vectors"):
        Topics.of(PublicTexts(["refund", "Refund", "REFUND"], topics=2), ENCODER)


# Near, and not covered.


def test_near_is_the_cosine():
    topics = of([0.0, np.pi / 2, np.pi])
    np.testing.assert_allclose(topics.near([1.0, 0.0]), [1, 0, -1], atol=1e-6)
    np.testing.assert_allclose(
        topics.near([[0.6, 0.8], [0, -1]]), [[0.6, 0.8, -0.6], [0, -1, 0]], atol=1e-6
    )
    many = of(np.linspace(0, 1, 200))
    assert many.near(many.vectors).max() == 1
    with pytest.raises(InvalidInput, match="2 numbers"):
        topics.near([1.0, 0.0, 0.0])


def strangers():
    return (
        resources.files("discreet.text").joinpath("strangers.txt").read_text("utf-8").splitlines()
    )


def test_strangers_are_many_and_different():
    listed = strangers()
    assert len(listed) >= 250
    assert len({" ".join(each.casefold().split()) for each in listed}) == len(listed)
    assert all(each == each.strip() and each.isprintable() and each for each in listed)


def test_most_strangers_are_below_the_threshold_and_topics_above():
    topics = Topics.of(NAMES, ENCODER)
    threshold = topics.threshold(ENCODER)
    assert 0 < threshold < 1
    assert threshold == topics.threshold(ENCODER)
    nearest = topics.near(ENCODER.encode_all(strangers())).max(axis=1)
    assert np.mean(nearest < threshold) > 0.9
    asked = ["my card has not arrived: card delivery?", "what is the exchange rate", "a lost card"]
    assert (topics.near(ENCODER.encode_all(asked)).max(axis=1) > threshold).all()


def nearest_other(vectors):
    return (vectors @ vectors.T - 2 * np.eye(len(vectors))).max(axis=1)


def test_the_threshold_is_halfway_between_topics_and_other_strangers():
    topics = Topics.of(NAMES, ENCODER)
    vectors = ENCODER.encode_all(strangers()).astype(float)
    near = np.quantile(topics.near(vectors).max(axis=1), 0.95)
    usual = np.quantile(nearest_other(vectors), 0.7)
    assert topics.threshold(ENCODER) == pytest.approx((near + usual) / 2)


def test_broad_topics_do_not_push_the_threshold_up():
    # Topics that some of the strangers are about, word for word.
    broad = Topics.of([*NAMES, *strangers()[:150]], ENCODER)
    vectors = ENCODER.encode_all(strangers()).astype(float)
    assert np.quantile(broad.near(vectors).max(axis=1), 0.95) == pytest.approx(1)
    assert broad.threshold(ENCODER) == pytest.approx(np.quantile(nearest_other(vectors), 0.8))


def test_public_texts_raise_the_threshold():
    made = Topics.of(PublicTexts(public(), topics=6), ENCODER)
    plain = Topics(made.names, made.vectors)
    assert made.threshold(ENCODER) == pytest.approx((plain.threshold(ENCODER) + made.reach) / 2)
    assert made.threshold(ENCODER) > plain.threshold(ENCODER)


@pytest.mark.parametrize(("side", "expected"), [(1.0, 0.999), (-1.0, 0.001)])
def test_thresholds_stay_between_0_and_1(side, expected):
    # To this encoder all texts are one, and a topic is the same or the opposite.
    flat = TextEncoder("flat", 2, lambda text: [side if text == "topic" else 1.0, 0.0])
    assert Topics.of(["topic"], flat).threshold(flat) == pytest.approx(expected)
