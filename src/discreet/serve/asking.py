"""What each kind of release is asked by HTTP, under which verb, and what comes back.

A release has one verb: the method that it has in Python. What a question may hold is checked here,
field by field, before the release sees it; what the release itself refuses is said in its words.
"""

import abc
import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from discreet._typing import Floats
from discreet._validate import reject, reject_argument
from discreet._validate import whole as whole_number
from discreet.accounting import Receipt
from discreet.accounting.promise import Promise
from discreet.errors import DiscreetError, InvalidInput
from discreet.pages.sheet import MEANINGS, is_stated
from discreet.privacy import Card, Guarantee
from discreet.readers.attention.bundle import Memories
from discreet.readers.attention.memory import Memory
from discreet.readers.distances.answers import Distances
from discreet.readers.glm import GeneralizedLinear
from discreet.readers.least_squares.answers import LeastSquares
from discreet.readers.softmax.answers import SoftmaxRegression
from discreet.serve.limits import Limits
from discreet.serve.wire import Refused, flag, numbers, single, text
from discreet.text import Corpus

# So many public examples are offered to pick from, and so many topics are told at once.
_EXAMPLES, _TOPICS = 12, 100

# Numbers in cells are smaller.
_LARGEST = 1e308

# The fields of a question by name, as JSON has them.
Asked = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Answers:
    """What comes back.

    Attributes:
        fields: by name: arrays, or what JSON knows.
        count: how many questions were answered.
    """

    fields: Mapping[str, Any]
    count: int


class Answering(abc.ABC):
    """A release that is served.

    Args:
        release: what answers.
        card: what it says of itself.
        guarantee: what it promises, whole.
        receipt: what it cost.
    """

    verb: ClassVar[str]
    kind: str
    fields: ClassVar[frozenset[str]]

    def __init__(self, release: Any, card: Card, guarantee: Guarantee, receipt: Receipt) -> None:  # noqa: ANN401
        self.release = release
        self.card, self.guarantee, self.receipt = card, guarantee, receipt

    def answer(self, asked: Asked, limits: Limits) -> Answers:
        """Return the answers to a question.

        Args:
            asked: by the names of fields.
            limits: on how many there may be.

        Raises:
            Refused: a field is not there, not known, or not what it should be.
            InvalidInput: the release does not take it.
        """
        if not asked.keys() <= self.fields:
            known = ", ".join(sorted(self.fields))
            raise Refused(400, f"Expected no fields but these: {known}.")
        return self._answer(asked, limits)

    @abc.abstractmethod
    def _answer(self, asked: Asked, limits: Limits) -> Answers:
        """Return the answers to a question whose fields are known."""

    @abc.abstractmethod
    def about(self) -> dict[str, Any]:
        """Return what has to be known to ask: shapes, columns, public examples."""

    @abc.abstractmethod
    def warm_up(self) -> None:
        """Compute what the first question would have to wait for."""

    def described(self) -> dict[str, Any]:
        """Return what it is and promises, and how it is asked."""
        return {
            "kind": self.kind,
            "verb": self.verb,
            "fields": sorted(self.fields),
            "private": self.receipt.private,
            "guarantee": str(self.guarantee),
            **self.about(),
        }

    def carded(self) -> dict[str, Any]:
        """Return the card: its facts, its lines with what each means, and the promise in words."""
        guarantee = self.guarantee
        return {
            "card": self.card.to_dict(),
            "guarantee": {
                "epsilon": guarantee.epsilon,
                "delta": guarantee.delta,
                "neighbours": str(guarantee.neighbours),
                "unit": guarantee.unit,
                "scope": guarantee.scope,
                "in_words": str(guarantee),
            },
            "for_one_person": Promise.of(guarantee, self.receipt).in_words,
            "leaks": list(self.receipt.leaks),
            "lines": [
                {
                    "title": title,
                    "text": said,
                    "meaning": MEANINGS[title],
                    "stated": is_stated(title),
                }
                for title, said in self.card.sentences
            ],
        }


class _OfArrays(Answering):
    """A release that takes arrays of numbers, and has a standard error of each answer."""

    fields = frozenset({"queries", "stderr"})

    def _queries(self, asked: Asked, limits: Limits, width: int) -> tuple[Any, int]:
        """Return queries of so many numbers each, and how many there are."""
        if "queries" not in asked:
            raise Refused(400, "Expected queries: a list of lists of numbers.")
        found = numbers("queries", asked["queries"])
        count = limits.check_count("queries", _count(found.shape))
        if found.shape[-1] != width:
            said = f"Expected {width} numbers in each query, and there are {found.shape[-1]}."
            raise Refused(400, said)
        return found, count

    def _wants_stderr(self, asked: Asked) -> bool:
        return flag("stderr", asked.get("stderr", True))


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for each in shape[:-1]:
        count *= each
    return count if shape[-1] else 0


def _paired(made: Any, count: int, *, stderr: bool) -> Answers:  # noqa: ANN401
    """Return answers, with standard errors if there are any."""
    fields = dict(zip(("answers", "stderr"), made, strict=True)) if stderr else {"answers": made}
    return Answers(fields, count)


class _Attention(_OfArrays):
    """A memory."""

    verb, kind = "attend", "memory"

    @property
    def memory(self) -> Memory:
        """What answers."""
        found: Memory = self.release
        return found

    def _answer(self, asked: Asked, limits: Limits) -> Answers:
        queries, count = self._queries(asked, limits, self.memory.kernel.dim)
        wanted = self._wants_stderr(asked)
        return _attended(self.memory, queries, count, stderr=wanted)

    def about(self) -> dict[str, Any]:
        layout = self.memory.released.layout
        return {
            "key_dim": layout.kernel.dim,
            "value_dim": layout.value_dim,
            "heads": list(layout.heads),
            "query_norm": layout.kernel.query_norm,
            "scale": layout.kernel.scale,
            "examples": [] if layout.heads else _points(layout),
        }

    def warm_up(self) -> None:
        shape = (*self.memory.heads, 1, self.memory.kernel.dim)
        self.memory.attend(np.zeros(shape, dtype=np.float32), stderr=True)


def _attended(memory: Memory, queries: Floats, count: int, *, stderr: bool) -> Answers:
    asked = single(queries)
    made = memory.attend(asked, stderr=True) if stderr else memory.attend(asked)
    return _paired(made, count, stderr=stderr)


def _points(layout: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    """Return public examples: the origin, and points that the file has with it."""
    examples = [{"name": "the origin (the mean of all values)", "query": [0.0] * layout.kernel.dim}]
    rows = () if layout.reference is None else layout.reference.rows[:_EXAMPLES]
    return examples + [
        {"name": f"public point {place}", "query": np.round(row, 6).tolist()}
        for place, row in enumerate(rows, 1)
    ]


class _Bundle(_Attention):
    """The memories of a model, of which each question names one."""

    kind = "memories"
    fields = frozenset({"member", "queries", "stderr"})

    @property
    def memory(self) -> Memory:
        """The first, which stands for all where nobody asks."""
        found: Memory = self.release[0]
        return found

    def _answer(self, asked: Asked, limits: Limits) -> Answers:
        most = len(self.release) - 1
        member = whole_number("member", asked.get("member", 0), at_least=0, at_most=most)
        queries, count = self._queries(asked, limits, self.release[member].kernel.dim)
        wanted = self._wants_stderr(asked)
        return _attended(self.release[member], queries, count, stderr=wanted)

    def about(self) -> dict[str, Any]:
        return {**super().about(), "members": len(self.release)}


class _Numbers(_OfArrays):
    """A regression: numbers, or log-odds of labels."""

    verb, kind = "predict", "regression"

    def _answer(self, asked: Asked, limits: Limits) -> Answers:
        queries, count = self._queries(asked, limits, self.release.features.dim)
        wanted = self._wants_stderr(asked) and self._has_stderr
        return _paired(self.release.predict(queries, stderr=wanted), count, stderr=wanted)

    @property
    def _has_stderr(self) -> bool:
        return bool(getattr(self.release.released.layout, "keeps_more", True))

    def about(self) -> dict[str, Any]:
        return {"key_dim": self.release.features.dim, "heads": list(self.release.heads)}

    def warm_up(self) -> None:
        zero = np.zeros((*self.release.heads, 1, self.release.features.dim))
        self.release.predict(zero, stderr=self._has_stderr)


class _Classes(_OfArrays):
    """A classifier. Standard errors are those of the logits."""

    verb, kind = "predict", "classifier"

    def _answer(self, asked: Asked, limits: Limits) -> Answers:
        queries, count = self._queries(asked, limits, self.release.features.dim)
        wanted = self._wants_stderr(asked)
        return Answers(_classified(self.release, queries, stderr=wanted), count)

    def about(self) -> dict[str, Any]:
        dim = self.release.features.dim
        return {"key_dim": dim, "classes": self.release.classes.tolist()}

    def warm_up(self) -> None:
        _classified(self.release, np.zeros((1, self.release.features.dim)), stderr=True)


def _classified(release: SoftmaxRegression, keys: Any, *, stderr: bool) -> dict[str, Any]:  # noqa: ANN401
    """Return labels, probabilities and logits, which have one standard error in each row."""
    fields: dict[str, Any] = {
        "answers": np.asarray(release.predict(keys)),  # of one query alone, a label
        "classes": release.classes.tolist(),
        "probabilities": release.probabilities(keys),
    }
    if not stderr:
        return fields
    fields["logits"] = logits = release.logits(keys)
    if not release.released.layout.keeps_more:  # what errors are read from
        return fields
    errors = np.broadcast_to(release.stderr(keys), logits.shape)
    return {**fields, "stderr": np.array(errors), "stderr_of": "logits"}


class _Sums(_OfArrays):
    """Sums of distances."""

    verb, kind = "query", "distances"

    def _answer(self, asked: Asked, limits: Limits) -> Answers:
        queries, count = self._queries(asked, limits, self.release.released.layout.kernel.dim)
        wanted = self._wants_stderr(asked)
        return _paired(self.release.query(queries, stderr=wanted), count, stderr=wanted)

    def about(self) -> dict[str, Any]:
        kernel = self.release.released.layout.kernel
        total, error = self.release.total
        bounds = {"low": list(kernel.low), "high": list(kernel.high)}
        return {"key_dim": kernel.dim, "bounds": bounds, "total": total, "total_stderr": error}

    def warm_up(self) -> None:
        self.release.query(np.zeros((1, self.release.released.layout.kernel.dim)), stderr=True)


class _Estimator(_OfArrays):
    """An estimator: rows of a table by the names of its columns, or arrays where it has none."""

    verb = "predict"
    fields = frozenset({"queries", "rows", "stderr"})

    def __init__(self, release: Any, card: Card, guarantee: Guarantee, receipt: Receipt) -> None:  # noqa: ANN401
        super().__init__(release, card, guarantee, receipt)
        self._schema = release.columns
        self._names = list(getattr(release, "feature_names_in_", ()))
        if self._schema is None and self._names:
            # Rows come by name and are put in order here; scikit-learn would warn of arrays.
            del release.feature_names_in_
        self._classifies = hasattr(release, "predict_proba")
        self.kind = "classifier" if self._classifies else "regression"

    def _answer(self, asked: Asked, limits: Limits) -> Answers:
        table, count = self._table(asked, limits)
        wanted = self._wants_stderr(asked)
        if not self._classifies:
            made = self.release.predict(table, return_std=wanted)
            return _paired(made, count, stderr=wanted)
        fields: dict[str, Any] = {"answers": self.release.predict(table)}
        several = fields["answers"].ndim > 1
        fields["probabilities"] = self.release.predict_proba(table)
        fields["classes"] = None if several else self.release.classes_.tolist()
        if wanted:
            fields = self._errors(table) | fields
        return Answers(fields, count)

    def _errors(self, table: Any) -> dict[str, Any]:  # noqa: ANN401
        """Return standard errors of what a classifier decides by, if its reader has any."""
        found = self.release.release_
        if isinstance(found, SoftmaxRegression):
            return _classified(found, self.release.keys(table), stderr=True)
        if isinstance(found, LeastSquares):
            scores, errors = found.predict(self.release.keys(table), stderr=True)
            return {"scores": scores, "stderr": errors, "stderr_of": "scores"}
        return {}

    def _table(self, asked: Asked, limits: Limits) -> tuple[Any, int]:
        width = self.release.n_features_in_
        if not self._names:
            queries, count = self._queries(asked, limits, width)
            if queries.shape[1:] != (width,):
                reject("queries.shape", queries.shape, f"(m, {width})")
            return queries, count
        if "rows" not in asked:
            raise Refused(400, f"Expected rows: objects with {self._listed}.")
        rows = asked["rows"]
        if not isinstance(rows, list):
            raise Refused(400, "Expected rows to be a list of objects, one for each row.")
        count = limits.check_count("rows", len(rows))
        wanted = set(self._names)
        if not all(isinstance(each, dict) and each.keys() == wanted for each in rows):
            raise Refused(400, f"Expected each row to be an object with {self._listed}.")
        columns = {name: [each[name] for each in rows] for name in self._names}
        for name, column in columns.items():
            _check_cells(name, column)
        if self._schema is None:
            return numbers(
                "rows", [list(each) for each in zip(*columns.values(), strict=True)]
            ), count
        return columns, count

    @property
    def _listed(self) -> str:
        return f"these columns: {', '.join(self._names)}; null for what is missing"

    def about(self) -> dict[str, Any]:
        facts: dict[str, Any] = {"key_dim": int(self.release.n_features_in_)}
        if self._names:
            holds = None if self._schema is None else self._schema.to_json()
            facts["columns"] = [
                {"name": name, "holds": None if holds is None else holds[name]}
                for name in self._names
            ]
        if self._classifies:
            facts["classes"] = getattr(self.release.classes_, "tolist", list)()
        return facts

    def warm_up(self) -> None:
        with contextlib.suppress(InvalidInput, Refused):  # a column may not be of this type
            rows = [dict.fromkeys(self._names, None)]
            asked = (
                {"rows": rows}
                if self._names
                else {"queries": [[0.0] * self.release.n_features_in_]}
            )
            self.answer(asked, Limits())


def _check_cells(name: str, column: Iterable[object]) -> None:
    kinds = set(map(type, column)) - {type(None)}
    if not kinds <= {bool, int, float, str}:
        raise Refused(400, f"Expected column {name} to hold numbers or texts, one in each row.")
    if any(isinstance(each, int | float) and not abs(each) < _LARGEST for each in column):
        raise Refused(400, f"Expected column {name} to hold numbers within the range of float64.")
    if str in kinds and len(kinds) > 1:
        raise Refused(400, f"Expected column {name} to hold numbers, or texts, not both.")


class OfTexts(Answering):
    """A corpus, which is asked in words, or by the name of a topic."""

    verb, kind = "ask", "corpus"
    fields = frozenset({"question", "questions", "topic", "topics", "blank"})

    def __init__(self, release: Any, card: Card, guarantee: Guarantee, receipt: Receipt) -> None:  # noqa: ANN401
        super().__init__(release, card, guarantee, receipt)
        self.corpus: Corpus = release
        self.takes_words = False

    def _answer(self, asked: Asked, limits: Limits) -> Answers:
        given = asked.keys() & {"question", "questions", "topic"}
        if len(given) != 1:
            raise Refused(400, "Expected one of question, questions and topic.")
        if "topic" in asked:
            return self._by_topic(asked)
        if not self.takes_words:
            said = "Expected topic, one that GET /v1/NAME/topics lists: words need an encoder."
            raise Refused(400, said)
        options = self._options(asked, limits)
        if "question" in asked:
            question = text("question", asked["question"], longest=limits.text)
            return Answers({"answers": self.corpus.ask(question, **options).to_dict()}, 1)
        several = asked["questions"]
        if not isinstance(several, list):
            raise Refused(400, "Expected questions to be a list of texts.")
        limits.check_count("questions", len(several))
        texts = [text("questions", each, longest=limits.text) for each in several]
        answers = [self.corpus.ask(each, **options).to_dict() for each in texts]
        return Answers({"answers": answers}, len(texts))

    def _by_topic(self, asked: Asked) -> Answers:
        found = [each for each in self._listed if each["question"] == asked["topic"]]
        if not found:
            reject_argument(
                "topic", asked["topic"], "the name of a topic, as GET /v1/NAME/topics lists them"
            )
        return Answers({"answers": found[0]}, 1)

    def _options(self, asked: Asked, limits: Limits) -> dict[str, Any]:
        topics = whole_number("topics", asked.get("topics", 3), at_least=1, at_most=_TOPICS)
        options: dict[str, Any] = {"topics": topics}
        if asked.get("blank") is not None:
            options["blank"] = text("blank", asked["blank"], longest=limits.text)
        return options

    @cached_property
    def _listed(self) -> list[dict[str, Any]]:
        if self.corpus.topics is None:
            return []
        return [each.to_dict() for each in self.corpus.map()]

    def topics(self) -> dict[str, Any]:
        """Return all topics and names, with counts, shares of labels and words."""
        names = [{**each._asdict(), "clear": each.clear} for each in self.corpus.facts]
        return {"topics": self._listed, "names": names}

    def about(self) -> dict[str, Any]:
        """Return what it was made of."""
        topics = self.corpus.topics
        return {
            "takes_words": self.takes_words,
            "encoder": self.corpus.plan.encoder.name.partition(":")[0],
            "topics": 0 if topics is None else len(topics),
            "labels": list(self.corpus.classes),
            "words": self.corpus.plan.vocabulary is not None,
            "names": self.corpus.parts.names is not None,
        }

    def warm_up(self) -> None:
        """Read all topics, and ask once."""
        self.topics()
        if self.takes_words:
            self.corpus.ask("a question in words")


_KINDS: tuple[tuple[type[Any], type[Answering]], ...] = (
    (Memory, _Attention),
    (Memories, _Bundle),
    (LeastSquares, _Numbers),
    (GeneralizedLinear, _Numbers),
    (SoftmaxRegression, _Classes),
    (Distances, _Sums),
    (Corpus, OfTexts),
)


def answering(release: Any, *, encoder: str | None = None) -> Answering:  # noqa: ANN401
    """Return what answers for a release, ready for the first question.

    Args:
        release: as `discreet.load` returns it.
        encoder: of a corpus: a name or a path; "none" for no typed questions; None for the one that
            it was made with, if that is known by its name and installed.

    Raises:
        InvalidInput: nothing of this kind is asked by HTTP, or the encoder is not the right one.
    """
    made = _made(release)
    if isinstance(made, OfTexts):
        _give_encoder(made, encoder)
    made.warm_up()
    return made


def _made(release: Any) -> Answering:  # noqa: ANN401
    if hasattr(release, "guarantee_"):
        return _Estimator(release, release.card_, release.guarantee_, release.receipt_)
    for kind, made in _KINDS:
        if isinstance(release, kind):
            return made(release, release.card, release.guarantee, release.receipt)
    raise InvalidInput(
        "Expected a memory, a model, sums of distances or a corpus: nothing else is asked by HTTP."
    )


def _give_encoder(made: OfTexts, encoder: str | None) -> None:
    """Load what makes numbers of questions, if there is one."""
    if encoder == "none":
        return
    try:
        if encoder is not None:
            made.corpus = made.corpus.with_encoder(encoder)
        _ = made.corpus.encoder
    except (DiscreetError, ImportError):
        if encoder is not None:
            raise
        return  # its topics can be picked all the same
    made.takes_words = True
