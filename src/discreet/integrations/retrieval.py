"""What a retriever brings back from a private release: public texts, and what was released.

`AskedCorpus` asks a corpus, `PublicPassages` asks a memory which of some public texts are near its
answer. Whatever comes back is one or the other: a public text as it was given, or noisy counts,
shares, words and names that the corpus has released anyway. No private text is stored anywhere,
so none can be retrieved; and as all of it is post-processing, nothing is spent, however many
questions are asked.

No library of retrievers is needed here. `discreet.integrations.langchain` and
`discreet.integrations.llama_index` hand this to theirs.
"""

import abc
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice, zip_longest
from statistics import NormalDist
from typing import Any

import numpy as np

from discreet import _validate
from discreet._arrays import float64, plain_numbers
from discreet._typing import Array, Floats
from discreet.errors import InvalidInput
from discreet.readers.attention.joint import combined_stderr
from discreet.readers.attention.memory import Memory
from discreet.text.answers import NOT_CLEAR, Answer, NearTopic
from discreet.text.encoders import Encodable
from discreet.text.encoders import encoder as encoder_of
from discreet.text.facts import Fact

# What a ± says holds 95 of 100 times.
_MISSED = 0.05

__all__ = ["AskedCorpus", "Found", "PublicPassages", "Source", "source_of"]


@dataclass(frozen=True, kw_only=True)
class Found:
    """One thing that a question has brought back.

    Attributes:
        text: in plain words: a public text, or a sentence about what was released.
        score: how near it is to the question, larger is nearer; None where nothing tells.
        figures: of the release, ready for JSON, under the names that `discreet serve` has for them.
        metadata: of a public text, as it was given.
    """

    text: str
    score: float | None
    figures: Mapping[str, Any]
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The same for the same text, and for no other: 32 hex digits."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class Source(abc.ABC):
    """What is searched: public texts, or what was released."""

    @abc.abstractmethod
    def find(self, question: str, k: int) -> list[Found]:
        """Return what is nearest to a question, the nearest first.

        Args:
            question: in words. It is not protected: whoever runs the encoder sees it.
            k: how many, at the most.
        """


def source_of(given: Any) -> Source:  # noqa: ANN401
    """Return what is searched: a source as it is, or a corpus as one.

    Args:
        given: a `Source`, a `discreet.Corpus`, or a corpus that `discreet.connect` has.

    Raises:
        InvalidInput: it is none of these.
    """
    if isinstance(given, Source):
        return given
    if not callable(getattr(given, "ask", None)):
        wanted = "a corpus, or PublicPassages of a memory and public texts"
        _validate.reject_argument("source", given, wanted)
    return AskedCorpus(given)


class AskedCorpus(Source):
    """What a corpus has released about a question: topics near it, and names that may answer it.

    A topic comes with how many texts are nearest to it, the labels of these and their typical
    words; a name with how many texts have it. Every figure has its ±, and the text says "not clear
    of the noise" where that is so. If no topic is near the question, the text says that first. Of a
    corpus with topics and names the nearest of each comes first, then the second of each, and so
    on. All of this is in the corpus' own file: post-processing, and nothing else of the texts.

    Args:
        corpus: a `discreet.Corpus`, or a corpus that `discreet.connect` has.
    """

    def __init__(self, corpus: Any) -> None:  # noqa: ANN401
        self._corpus = corpus

    def find(self, question: str, k: int) -> list[Found]:
        """Return topics near a question, and names that may answer it.

        Args:
            question: in words.
            k: how many, at the most.
        """
        answer: Answer = self._corpus.ask(question, topics=k)
        topics = (self._of_topic(answer, each) for each in answer.topics)
        facts = (_of_fact(answer, each) for each in answer.facts or ())
        return list(islice(_by_turns(topics, facts), k))

    def _of_topic(self, answer: Answer, topic: NearTopic) -> Found:
        own: Answer = self._corpus.ask_topic(topic.name)
        doubt = "" if topic.clear else f" ({NOT_CLEAR})"
        about = str(replace(own, topics=()))
        said = [answer.caveat, f"Topic: {topic}{doubt}.", about]
        of_answer, of_own = replace(answer, topics=(topic,)).to_dict(), own.to_dict()
        figures = {
            "kind": "topic",
            **of_answer["topics"][0],
            **{name: of_answer[name] for name in ("covered", "threshold")},
            **{name: of_own[name] for name in ("shares", "words")},
        }
        return Found(text=" ".join(filter(None, said)), score=topic.near, figures=figures)


def _of_fact(answer: Answer, fact: Fact) -> Found:
    doubt = "" if fact.clear else f", {NOT_CLEAR}"
    name = f"{fact.word}: a name in many texts ({fact.said}{doubt}). That it answers is a guess."
    figures = {"kind": "fact", **fact._asdict(), "clear": fact.clear, "covered": answer.covered}
    said = [answer.caveat, name]
    return Found(text=" ".join(filter(None, said)), score=None, figures=figures)


def _by_turns(*lists: Iterator[Found]) -> Iterator[Found]:
    """Yield the first of each, then the second of each: their scores do not compare."""
    return (each for each in chain.from_iterable(zip_longest(*lists)) if each is not None)


class PublicPassages(Source):
    """Public texts, found by what a private memory answers.

    For a memory whose values are vectors of texts in the space of `vectors`: for instance, keys are
    vectors of private questions, and the value of each is the vector of the public page that
    helped. Its answer to a new question is then a mean of such vectors, and the public texts that
    point most the same way come back, word by word as they were given here.

    The score of a text is ⟨answer, its vector⟩ less the mean of that over all public texts: above 0
    for texts that the answer is nearer to than to the average one. The margin is made of the
    standard error of the score against exact attention, noise and kernel together, and such that
    the margins of all public texts hold at once, 95 of 100 times. Texts are `clear` if they score
    above it; where none is, the order is noise. (A server tells errors of single numbers only: the
    margins of its memories are upper bounds, and several times as wide.)

    Post-processing of the memory's answer: nothing is spent. Texts and vectors must be public: they
    come back as they are, and no guarantee covers them.

    Args:
        memory: a `discreet.Memory` without heads, or one that `discreet.connect` has.
        texts: public; at least two.
        encoder: of questions, as `discreet.text.encoder` takes it: the one that made the keys.
        vectors: of the texts, shape (n, d_v), as values have them; None for those of the encoder.
        metadata: of the texts, one mapping for each, such as where they are from; None for none.

    Raises:
        InvalidInput: texts, vectors and metadata do not go together.
    """

    def __init__(
        self,
        memory: Any,  # noqa: ANN401
        texts: Sequence[str],
        *,
        encoder: Encodable,
        vectors: Array = None,
        metadata: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        if not callable(getattr(memory, "attend", None)):
            _validate.reject_argument("memory", memory, "a memory")
        self._memory, self._texts, self._encoder = memory, tuple(texts), encoder_of(encoder)
        if isinstance(texts, str) or len(self._texts) < 2:
            raise InvalidInput("Expected texts to be a list of at least two public texts.")
        for each in self._texts:
            _validate.instance("each of texts", each, str)
        self._metadata = [{}] * len(self._texts) if metadata is None else list(map(dict, metadata))
        if len(self._metadata) != len(self._texts):
            raise InvalidInput("Expected metadata to have one mapping for each of texts.")
        made = self._encoder.encode_all(self._texts) if vectors is None else vectors
        # Beside the average text: so much of an answer as all texts share says nothing of one.
        units = _units(made, len(self._texts))
        self._contrasts = units - units.mean(axis=0)

    def find(self, question: str, k: int) -> list[Found]:
        """Return the public texts nearest to the memory's answer.

        Args:
            question: in words.
            k: how many, at the most.
        """
        scores, stderr = self._asked(question)
        # All at once: among many texts, noise lifts one or the other.
        margins = NormalDist().inv_cdf(1 - _MISSED / (2 * len(scores))) * stderr
        nearest = np.argsort(-scores, kind="stable")[:k]
        return [self._found(int(at), float(scores[at]), float(margins[at])) for at in nearest]

    def _found(self, at: int, score: float, margin: float) -> Found:
        figures = {"kind": "text", "score": score, "margin": margin, "clear": score > margin}
        return Found(
            text=self._texts[at], score=score, figures=figures, metadata=self._metadata[at]
        )

    def _asked(self, question: str) -> tuple[Floats, Floats]:
        """Return the score of each text for a question, and its standard error."""
        _validate.instance("question", question, str)
        query = self._encoder.encode(question)[None]
        if not query.any():
            raise InvalidInput("Expected question to have words that the encoder knows.")
        answer, single = self._memory.attend(query, stderr=True)
        wanted = (1, self._contrasts.shape[1])
        if np.shape(answer) != wanted:
            _validate.reject("the shape of an answer", np.shape(answer), f"{wanted}, as vectors")
        scores = self._contrasts @ float64(answer)[0]
        if not isinstance(self._memory, Memory):  # as if all numbers were wrong together
            return scores, np.abs(self._contrasts) @ float64(single)[0]
        reader = self._memory.reader
        rows, weights = float64(query)[None, None], self._contrasts[None, None]
        return scores, combined_stderr([reader], [reader.arrays], rows, weights)[0]


def _units(vectors: Array, count: int) -> Floats:
    """Return vectors of unit length."""
    found = float64(plain_numbers("vectors", vectors))
    if found.ndim != 2 or len(found) != count:
        _validate.reject("vectors", found.shape, f"a vector for each of {count} texts")
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    if not np.all(np.isfinite(lengths)) or not np.all(lengths):
        raise InvalidInput("Expected vectors of texts to be finite, and none all zero.")
    return np.asarray(found / lengths)
