"""The demo's private texts: 8,000 questions that people asked a machine, and what they answer.

The questions are public (questions.txt says whose they are), so exact counts may be shown beside
private ones. Else, NOT PRIVATE.
"""

import csv
import gzip
import importlib.util
import io
from collections import Counter
from dataclasses import dataclass
from importlib import resources

import numpy as np

from discreet.features.nearest import Nearest
from discreet.privacy import Card
from discreet.text import Answer, Corpus, TextEncoder, Topics
from discreet.text.encoders import encoder

ROWS_HINT, ENCODER = 8_000, "static"
_STATED = {
    "data": "Questions that people asked a machine. A topic is what somebody wants, a label the "
    "part of life that it belongs to."
}

# What questions are about, as the data set has it: public.
DOMAINS = (
    "auto and commute",
    "banking",
    "credit cards",
    "home",
    "kitchen and dining",
    "meta",
    "small talk",
    "travel",
    "utility",
    "work",
)

# Typed by us, and in none of the texts; the last one is about nothing that they are about.
QUESTIONS = (
    "When does my flight leave?",
    "I want to hear a joke",
    "How much money is left in my account?",
    "What causes a solar eclipse?",
)

NEEDED = ("tokenizers", "wordllama")
HOW_TO_GET_TEXTS = "Texts need an encoder: pip install 'discreet[text]'."


@dataclass(frozen=True, kw_only=True, eq=False)
class Asked:
    """A question, and its answer.

    Attributes:
        answer: of the corpus.
        exact: how many texts are nearest to each topic that is listed. NOT PRIVATE.
    """

    answer: Answer
    exact: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Texts:
    """What a corpus of the questions says.

    Attributes:
        rows: how many questions there are.
        topics: how many public topics.
        asked: questions with answers.
        within: the share of all counts of topics that are within their ±.
        right: the share of unseen questions whose domain is named.
        card: of the corpus.
    """

    rows: int
    topics: int
    asked: tuple[Asked, ...]
    within: float
    right: float
    card: Card

    def to_dict(self) -> dict[str, object]:
        """Return everything but single answers, ready for JSON."""
        measured = {"rows": self.rows, "topics": self.topics}
        figures = {"within_their_margin": self.within, "right": self.right}
        return {**measured, **figures, "card": self.card.to_dict()}


def installed() -> bool:
    """Whether the encoder of texts is there."""
    return all(importlib.util.find_spec(name) for name in NEEDED)


def build(epsilon: float) -> Corpus:
    """Return a corpus of the questions.

    Args:
        epsilon: of all that it releases.
    """
    private = _rows("private")
    made = encoder(ENCODER)
    return Corpus.build(
        [row["text"] for row in private],
        [row["domain"] for row in private],
        encoder=made,
        topics=Topics.of(_file("topics.txt").decode().split("\n")[:-1], made),
        classes=DOMAINS,
        epsilon=epsilon,
        rows_hint=ROWS_HINT,
        stated=_STATED,
    )


def find(epsilon: float) -> Texts:
    """Build a corpus and ask it.

    Args:
        epsilon: of all that it releases.
    """
    private = _rows("private")
    unseen = _rows("unseen")
    corpus = build(epsilon)
    topics = corpus.topics
    table = corpus.table
    if topics is None or table is None:
        raise TypeError("Expected counts of topics.")
    made = encoder(ENCODER)
    exact = _exact([row["text"] for row in private], made, topics)
    counts = np.array([exact[name] for name in topics.names])
    vectors = made.encode_all([row["text"] for row in unseen])
    named = corpus.labels_of(vectors)
    answers = [corpus.ask(question) for question in QUESTIONS]
    return Texts(
        rows=len(private),
        topics=len(topics),
        asked=tuple(
            [
                Asked(answer=each, exact=tuple([exact[topic.name] for topic in each.topics]))
                for each in answers
            ]
        ),
        within=float(np.mean(np.abs(table.counts - counts) <= table.count_margin)),
        right=float(np.mean([a == row["domain"] for a, row in zip(named, unseen, strict=True)])),
        card=corpus.card,
    )


def _exact(texts: list[str], made: TextEncoder, topics: Topics) -> Counter[str]:
    """Return how many texts are nearest to each topic. NOT PRIVATE."""
    places = Nearest(topics.vectors).nearest(made.encode_all(texts).astype(np.float64))
    return Counter(topics.names[place] for place in places.tolist())


def _rows(part: str) -> list[dict[str, str]]:
    """Return the private questions, or those that nobody has seen, with their domains."""
    text = gzip.decompress(_file("questions.csv.gz")).decode()
    return [row for row in csv.DictReader(io.StringIO(text)) if row["part"] == part]


def _file(name: str) -> bytes:
    return resources.files(__package__).joinpath(name).read_bytes()
