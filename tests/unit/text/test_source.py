"""Private texts in, in any form, to the same bits; and messages that quote none of them."""

import csv
import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from corpora import CLASSES, DIM, VOCABULARY, encode, labels, texts
from pyarrow import parquet

from discreet.errors import InvalidInput
from discreet.text import encoder
from discreet.text.source import chunks_of, encoded

SOME, THEIR = texts(30), labels(30)
PEOPLE = [at // 3 for at in range(30)]
ENCODER = encoder(encode)


def read(given, their=None, people=None, column="text", *, classes=CLASSES, keep=True):
    """Texts as mechanisms read them."""
    return encoded(
        chunks_of(given, their, people, column),
        ENCODER,
        classes=classes,
        marks=VOCABULARY.marks,
        most=VOCABULARY.most,
        keep=keep,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("texts")
    table = pa.table({"text": SOME, "label": THEIR, "who": PEOPLE})
    parquet.write_table(table, place / "all.parquet")
    with (place / "all.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["text", "label", "who"])
        rows.writerows(zip(SOME, THEIR, PEOPLE, strict=True))
    return place


FORMS = {
    "list": lambda _: (SOME, THEIR, PEOPLE),
    "tuple": lambda _: (tuple(SOME), tuple(THEIR), np.array(PEOPLE)),
    "array": lambda _: (np.array(SOME), np.array(THEIR), np.array(PEOPLE, dtype=np.uint8)),
    "array of objects": lambda _: (np.array(SOME, dtype=object), THEIR, PEOPLE),
    "series": lambda _: (pd.Series(SOME), pd.Series(THEIR), pd.Series(PEOPLE)),
    "frame": lambda _: (
        pd.DataFrame({"text": SOME, "label": THEIR, "who": PEOPLE}),
        "label",
        "who",
    ),
    "arrow": lambda _: (pa.table({"text": SOME, "label": THEIR, "who": PEOPLE}), "label", "who"),
    "columns": lambda _: ({"text": SOME, "label": THEIR, "who": PEOPLE}, "label", "who"),
    "parquet": lambda place: (place / "all.parquet", "label", "who"),
    "csv": lambda place: (str(place / "all.csv"), "label", "who"),
    "chunks": lambda _: (
        iter(
            [(SOME[at : at + 7], THEIR[at : at + 7], PEOPLE[at : at + 7]) for at in range(0, 30, 7)]
        ),
        None,
        None,
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_bits(form, folder):
    one = read(SOME, THEIR, PEOPLE)
    other = read(*FORMS[form](folder))
    assert np.array_equal(one.vectors, other.vectors)
    assert np.array_equal(one.values, other.values)
    assert [str(each) for each in one.people] == [str(each) for each in other.people]
    assert one.texts == other.texts == SOME


def test_a_text_has_its_vector_label_and_marks_alone_and_in_any_batch():
    whole = read(SOME, THEIR)
    assert whole.vectors.shape == (30, DIM)
    for at in (0, 7, 29):
        alone = read(SOME[at : at + 1], THEIR[at : at + 1])
        assert np.array_equal(alone.vectors[0], whole.vectors[at])
        assert np.array_equal(alone.values[0], whole.values[at])
    order = np.random.default_rng(0).permutation(30)
    mixed = read([SOME[at] for at in order], [THEIR[at] for at in order])
    assert np.array_equal(mixed.vectors, whole.vectors[order])
    assert np.array_equal(mixed.values, whole.values[order])


def test_no_texts_are_texts_and_no_chunks_are_not():
    assert read([], []).vectors.shape == (0, DIM)
    assert read([], [], []).people == []
    with pytest.raises(InvalidInput, match="at least one chunk"):
        read(iter([]))


SECRET = "Mirabellum Octavian"
WRONG = {
    "a text that is none": lambda: read([SECRET, None], ["a", "b"]),
    "a number": lambda: read([SECRET, 7], ["a", "b"]),
    "one text": lambda: read(b"Mirabellum Octavian", ["a"]),
    "a label that is no class": lambda: read(["x"], [SECRET]),
    "labels of several kinds": lambda: read(["x", "y"], [SECRET, 7]),
    "too few labels": lambda: read([SECRET, "x"], ["a"]),
    "too few people": lambda: read([SECRET, "x"], ["a", "b"], [1]),
    "people of several kinds": lambda: read(["x", "y"], ["a", "b"], [SECRET, 7]),
    "people with fractions": lambda: read(["x", "y"], ["a", "b"], [0.5, 1.5]),
    "people who end in zeros": lambda: read(["x", "y"], ["a", "b"], ["u\0", SECRET + "\0"]),
    "a missing person": lambda: read(["x", "y"], ["a", "b"], [SECRET, None]),
    "a chunk that is none": lambda: read(iter([SECRET])),
    "people with some chunks": lambda: read(iter([([SECRET], ["a"], [1]), (["x"], ["a"])])),
    "labels beside chunks": lambda: read(iter([([SECRET],)]), ["a"]),
    "no column": lambda: read({"words": [SECRET]}),
    "no labels": lambda: encoded(
        chunks_of([SECRET], None, None, "text"),
        ENCODER,
        classes=CLASSES,
        marks=None,
        most=1,
        keep=False,
    ),
    "labels without classes": lambda: encoded(
        chunks_of(["x"], [SECRET], None, "text"),
        ENCODER,
        classes=(),
        marks=None,
        most=1,
        keep=False,
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_refused_and_nothing_private_is_quoted(wrong):
    with pytest.raises(InvalidInput) as raised:
        WRONG[wrong]()
    error = raised.value
    shown = [error]
    while error := (None if error.__suppress_context__ else error.__context__):
        shown.append(error)
    for each in shown:
        assert "Mirabellum" not in str(each)
        assert "2" not in str(each).replace("(n, 2", "")  # nor how many there are


def test_an_encoder_that_fails_says_so_without_the_text():
    def failing(text):
        if "Octavian" in text:
            raise ValueError(text)
        return encode(text)

    with pytest.raises(InvalidInput, match="ValueError") as raised:
        encoded(
            chunks_of(["x", SECRET], None, None, "text"),
            encoder(failing),
            classes=(),
            marks=None,
            most=1,
            keep=False,
        )
    assert "Octavian" not in str(raised.value)
    assert raised.value.__suppress_context__


def test_texts_that_were_read_show_nothing_and_are_not_pickled():
    whole = read(SOME, THEIR, PEOPLE)
    assert repr(whole) == str(whole) == "<Encoded: private>"
    with pytest.raises(TypeError, match="private"):
        pickle.dumps(whole)
    assert read(SOME, THEIR, keep=False).texts is None
