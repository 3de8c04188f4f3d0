"""Texts in many places: sealed counts that add up to the corpus of all, and however texts come."""

import pickle

import numpy as np
import pytest

import discreet
from discreet import InvalidInput
from discreet.testing import Seeded
from discreet.text import PublicWords, TextJob
from discreet.text.encoders import encoder as encoder_of

WORDS = ("card", "bank", "weather", "rain")
TEXTS = ["my card is lost", "where is the bank", "weather today", "rain tomorrow"] * 50
LABELS = ["money", "money", "sky", "sky"] * 50

pytestmark = pytest.mark.filterwarnings("ignore::discreet.NotPrivateWarning")


def says(text):
    """Which of the words a text says: a vector of one text alone, by a function that pickles."""
    return np.array([0.01, *[float(word in text) for word in WORDS]])


OPTIONS = {
    "encoder": says,
    "topics": list(WORDS),
    "classes": ["money", "sky"],
    "epsilon": 1.0,
    "rows_hint": 200,
}


def whole(**options):
    return discreet.Corpus.build(TEXTS, LABELS, entropy=Seeded(0), **{**OPTIONS, **options})


def test_shards_add_up_to_the_corpus_of_all_texts():
    job = TextJob(**OPTIONS)
    parts = [
        job.partial(TEXTS[:90], LABELS[:90], shard="a"),
        job.partial(TEXTS[90:], LABELS[90:], shard="b"),
    ]
    corpus = job.release([job.merge(parts)], expected=["b", "a"], entropy=Seeded(0))
    expected = whole()
    np.testing.assert_array_equal(corpus.table.counts, expected.table.counts)
    assert corpus.ask("rain?") == expected.ask("rain?")
    assert (corpus.guarantee.epsilon, corpus.guarantee.delta) == (1.0, 0.0)
    assert corpus.threshold == expected.threshold
    with pytest.raises(discreet.BudgetExceeded):
        job.release(parts, expected=["a", "b"], entropy=Seeded(0))


def test_a_job_travels_without_its_encoder():
    job = TextJob(**{**OPTIONS, "encoder": encoder_of(says)})
    worker = pickle.loads(pickle.dumps(job))
    assert worker.partial(TEXTS, LABELS, shard="all") is not None
    parts = [worker.partial(TEXTS, LABELS, shard="all")]
    corpus = job.release(parts, expected=["all"], entropy=Seeded(0))
    np.testing.assert_array_equal(corpus.table.counts, whole().table.counts)
    with pytest.raises(discreet.BudgetExceeded):
        worker.release(parts, expected=["all"])


def test_a_person_counts_once_in_a_shard_and_lies_in_one():
    people = [number // 10 for number in range(len(TEXTS))]
    job = TextJob(**OPTIONS, by_person=True)
    parts = [
        job.partial(TEXTS[:100], LABELS[:100], people[:100], shard="a"),
        job.partial(TEXTS[100:], LABELS[100:], people[100:], shard="b"),
    ]
    corpus = job.release(parts, expected=["a", "b"], entropy=Seeded(0))
    np.testing.assert_array_equal(corpus.table.counts, whole(people=people).table.counts)
    assert str(corpus.guarantee.unit) == "record"
    again = TextJob(**OPTIONS, by_person=True)
    twice = [again.partial(["rain"], ["sky"], [7], shard=name) for name in ("a", "b")]
    with pytest.raises(InvalidInput, match="record"):
        again.release(twice, expected=["a", "b"])
    with pytest.raises(InvalidInput, match="people"):
        TextJob(**OPTIONS).partial(TEXTS, LABELS, people, shard="a")
    with pytest.raises(InvalidInput, match="people"):
        TextJob(**OPTIONS, by_person=True).partial(TEXTS, LABELS, shard="a")


def test_topics_are_known_beforehand():
    with pytest.raises(InvalidInput, match="known beforehand"):
        TextJob(**{**OPTIONS, "topics": PublicWords(list(WORDS))})


def test_the_account_counts_a_job_once(tmp_path):
    from discreet.ledger import Ledger

    ledger = Ledger(tmp_path / "ledger.db")
    ledger.create("mail", epsilon=1.5, delta=1e-6, neighbours="add_remove", unit="row")
    job = TextJob(**OPTIONS, ledger=ledger, dataset="mail")
    job.release([job.partial(TEXTS, LABELS, shard="a")], expected=["a"])
    with pytest.raises(discreet.BudgetExceeded):
        TextJob(**OPTIONS, ledger=ledger, dataset="mail")


@pytest.mark.parametrize("kind", ["folder", "table", "stream", "pandas", "polars", "dictionary"])
def test_texts_come_in_tables_and_streams(kind, tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table({"text": TEXTS, "label": LABELS})
    if kind == "folder":
        pq.write_table(table.slice(0, 30), tmp_path / "1.parquet")
        pq.write_table(table.slice(30), tmp_path / "2.parquet")
        (tmp_path / "notes.txt").write_text("of another kind")
    given = {
        "folder": lambda: tmp_path,
        "table": lambda: table,
        "stream": lambda: table.to_reader(max_chunksize=70),
        "pandas": table.to_pandas,
        "polars": lambda: pytest.importorskip("polars").from_arrow(table),
        "dictionary": lambda: {"text": TEXTS, "label": LABELS},
    }[kind]()
    corpus = discreet.Corpus.build(given, "label", entropy=Seeded(0), **OPTIONS)
    np.testing.assert_array_equal(corpus.table.counts, whole().table.counts)


def test_columns_are_lists_and_a_missing_cell_is_a_text_without_a_word():
    pa, pd = pytest.importorskip("pyarrow"), pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    expected = whole().table.counts
    for column in (pa.array(TEXTS), pd.Series(TEXTS), polars.Series(TEXTS), np.array(TEXTS)):
        corpus = discreet.Corpus.build(column, LABELS, entropy=Seeded(0), **OPTIONS)
        np.testing.assert_array_equal(corpus.table.counts, expected)
    frame = pd.DataFrame({"text": ["rain", None], "label": ["sky", "sky"]})
    missing = discreet.Corpus.build(frame, "label", entropy=Seeded(0), **OPTIONS)
    given = discreet.Corpus.build(["rain", ""], ["sky", "sky"], entropy=Seeded(0), **OPTIONS)
    np.testing.assert_array_equal(missing.table.counts, given.table.counts)


def test_a_folder_of_two_kinds_may_have_all_texts_twice(tmp_path):
    (tmp_path / "1.csv").write_text("text,label\nrain,sky\n")
    assert discreet.Corpus.build(tmp_path, "label", entropy=Seeded(0), **OPTIONS).topics is not None
    (tmp_path / "1.parquet").write_bytes(b"")
    with pytest.raises(InvalidInput, match="all of one kind"):
        discreet.Corpus.build(tmp_path, "label", **OPTIONS)


@pytest.mark.parametrize("text", ["Anna owes money to the bank", "Anna " * 900, "Anna\0"])
def test_a_text_that_is_no_list_is_not_quoted(text):
    with pytest.raises(InvalidInput, match="list of texts") as raised:
        discreet.Corpus.build(text, **OPTIONS)
    assert "Anna" not in str(raised.value)


def test_texts_without_a_word_count_nowhere():
    blank = ["", "  ", "\n\t", *TEXTS]
    corpus = discreet.Corpus.build(
        blank, ["sky"] * 3 + LABELS, people=range(len(blank)), entropy=Seeded(0), **OPTIONS
    )
    given = whole(people=range(3, len(blank)))
    np.testing.assert_array_equal(corpus.table.counts, given.table.counts)


def test_a_folder_without_tables_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="folder"):
        discreet.Corpus.build(tmp_path, "label", **OPTIONS)
