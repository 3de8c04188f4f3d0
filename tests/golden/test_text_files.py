"""Files of corpora, tables and found names, committed once: every later version must open them.

They were written by `write` below, with noise for tests, and are never written again.
"""

import json
import pathlib

import numpy as np
import pytest

import discreet
from discreet import Corpus, NotPrivateWarning
from discreet.shards import Job
from discreet.testing import Seeded
from discreet.text import Vocabulary

FILES = pathlib.Path(__file__).parent / "files"
SPEND = {"epsilon": 8.0, "delta": 1e-4}
LETTERS = "abcdefghijklmnopqrstuvwxyz "
TOPICS = ["a lost card", "exchange rates", "music"]
CLASSES = ["money", "other"]
SAID = {
    "my card is lost and Florbinitis too": "money",
    "which exchange rate for euros, says Doctor Vandoria": "money",
    "play music": "other",
}
QUESTION = "the card is lost, what is it?"


def encode(text):
    """How often each letter is in a text: a vector of that text alone."""
    return [1.0 + text.lower().count(letter) for letter in LETTERS]


def answered(corpus):
    """What a corpus answers, in JSON's types."""
    answer = corpus.ask(QUESTION, blank="it is ___")
    return {
        "topics": [[*each, each.near] for each in answer.topics],
        "shares": {label: list(share) for label, share in answer.shares.items()},
        "words": list(answer.words),
        "facts": [list(each) for each in answer.facts],
        "covered": answer.covered,
        "map": [each.question for each in corpus.map()],
        "label": corpus.label_of("music"),
    }


def write():
    """Write the files, and what they answer."""
    texts, labels = list(SAID) * 80, list(SAID.values()) * 80
    corpus = Corpus.build(
        texts,
        labels,
        encoder=encode,
        topics=TOPICS,
        classes=CLASSES,
        words=Vocabulary(words=("card", "lost", "music", "rate"), most=3),
        facts=True,
        rows_hint=240,
        entropy=Seeded(2026),
        **SPEND,
    )
    corpus.save(FILES / "corpus-v1.safetensors")
    found = discreet.discover(labels, entropy=Seeded(2026), **SPEND)
    found.save(FILES / "discovered-v1.safetensors")
    job = Job(key_dim=3, value_dim=1, reader="table", points=np.eye(3), epsilon=1.0)
    part = job.partial((np.eye(3), np.zeros((3, 1))), shard="all")
    table = job.release([part], expected=["all"], entropy=Seeded(2026))
    table.save(FILES / "table-v1.safetensors")
    facts = {
        # As whoever has the file is answered: it has topics with fewer digits.
        "corpus": answered(discreet.load(FILES / "corpus-v1.safetensors").with_encoder(encode)),
        "names": [list(each) for each in found],
        "counts": table.counts.tolist(),
    }
    (FILES / "texts-v1.json").write_text(json.dumps(facts, indent=1) + "\n")


def opened(name):
    with pytest.warns(NotPrivateWarning):
        return discreet.load(FILES / f"{name}-v1.safetensors")


def known():
    return json.loads((FILES / "texts-v1.json").read_text())


def test_a_corpus_answers_as_it_did():
    expected = known()["corpus"]
    found = json.loads(json.dumps(answered(opened("corpus").with_encoder(encode))))
    for name in ("topics", "facts"):
        for mine, then in zip(found.pop(name), expected.pop(name), strict=True):
            assert mine[0] == then[0]
            np.testing.assert_allclose(mine[1:], then[1:], rtol=1e-6)
    shares = found.pop("shares")
    for label, then in expected.pop("shares").items():
        np.testing.assert_allclose(shares[label][0], then[0], rtol=1e-6)
    assert found == expected


def test_names_and_counts_are_what_they_were():
    assert [list(each) for each in opened("discovered")] == known()["names"]
    np.testing.assert_array_equal(opened("table").counts, known()["counts"])
