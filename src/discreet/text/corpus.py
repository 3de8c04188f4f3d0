"""A corpus: private texts that anybody may ask, in words, from one release."""

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from discreet import _validate
from discreet._files import read, unpack, whole_file
from discreet._typing import Array, Floats
from discreet._validate import warn
from discreet.accounting import Receipt
from discreet.errors import InvalidInput, MostlyNoiseWarning
from discreet.ledger import Account, Ledger
from discreet.ledger.ledger import account_of
from discreet.noise import Entropy
from discreet.privacy import NOT_PRIVATE, Card, Guarantee, rounded_up
from discreet.provenance import Stated
from discreet.readers.softmax.answers import SoftmaxRegression
from discreet.readers.softmax.rows import Labels, check_classes
from discreet.readers.table.answers import Table
from discreet.sums.mechanism import ReleaseOptions
from discreet.sums.release import Released
from discreet.text import facts as facts_of_text
from discreet.text.answers import Answer, NearTopic, Share
from discreet.text.building import Names, Parts, Plan, integers_of, run
from discreet.text.encoders import Encodable, TextEncoder, Vectors, loaded
from discreet.text.encoders import encoder as encoder_of
from discreet.text.facts import Fact
from discreet.text.source import chunks_of, encoded
from discreet.text.topics import GivenTopics, PublicWords, Topics
from discreet.text.words import Vocabulary, typical

# How much faster a topic counts for less, the less near it is: e^(-β·what its cosine is short of
# the nearest topic's).
_SHARPNESS = 12.0

# So many of the nearest topics are listed; and so many facts.
_LISTED, _FACTS = 3, 5

_NEEDED = (
    "Expected topics (a list of names, a file, PublicTexts or PublicWords), or facts=True: nothing "
    "else can be released of texts."
)
_NOT_FROM_RECORDS = "[Written by a language model. Not from the records:]"


class Corpus:
    """Private texts that answer questions in words, any number of times.

    Made by `Corpus.build` or `discreet.load`. (ε, δ)-private as `guarantee` says, for all parts
    together, any number of questions, and for giving the whole object away. `docs/privacy.md`,
    "Corpora".

    What is released: counts of the texts nearest to each public topic, by label; sums that typical
    words are read from; names that many texts have, and what they answer. No text, and nothing
    that only a few texts say.

    Args:
        plan: the public settings.
        parts: what was released.
        threshold: the cosine with its nearest topic that a covered question has; None without
            topics.
        words: vectors of the vocabulary's words, shape (words, d); None without one.
        guarantee: of all parts together.
        receipt: what they cost.
    """

    kind = "discreet-corpus"

    def __init__(
        self,
        plan: Plan,
        parts: Parts,
        *,
        threshold: float | None,
        words: Vectors | None,
        guarantee: Guarantee,
        receipt: Receipt,
    ) -> None:
        self._plan = plan
        # Vectors as a file has them: what was built answers as what was opened, to the bit.
        self._parts = parts.as_filed
        self._threshold = threshold
        self._word_vectors = None if words is None else words.astype(np.float16).astype(np.float32)
        self._guarantee = guarantee
        self._receipt = receipt

    @classmethod
    def build(
        cls,
        texts: Any,  # noqa: ANN401 (lists, columns, tables, files, chunks)
        labels: Any = None,  # noqa: ANN401
        *,
        encoder: Encodable,
        topics: "GivenTopics | PublicWords | None" = None,
        classes: Sequence[Any] | None = None,
        words: bool | Vocabulary = False,
        facts: bool = False,
        people: Any = None,  # noqa: ANN401
        epsilon: float = 1.0,
        delta: float = 1e-6,
        rows_hint: int | None = 8_000,
        person_texts: float = 1.0,
        column: str = "text",
        cache: str | os.PathLike[str] | None = None,
        progress: bool = False,
        entropy: Entropy | None = None,
        account: Account | None = None,
        ledger: Ledger | None = None,
        dataset: str | None = None,
        analyst: str | None = None,
        stated: Stated | Mapping[str, Any] | None = None,
    ) -> "Corpus":
        """Return a corpus: one release of private texts, with one receipt.

        (epsilon, delta)-differentially private when one text, or one person with all her texts
        (`people`), is added or removed. With topics and labels alone δ is 0. What is spent on which
        part follows from what is asked for (`Budget`), and is on the card. `docs/privacy.md`,
        "Corpora".

        Example::

            corpus = discreet.Corpus.build(
                texts, labels, encoder="minilm", topics=["card arrival", "exchange rate"],
                classes=["card", "money"], rows_hint=10_000)
            print(corpus.ask("my card has not arrived"))

        Args:
            texts: a list of texts, or a column of them; a .csv or .parquet file, a folder of such
                files, a frame, an Arrow table or an Arrow stream with a column of them; or an
                iterator of chunks (texts, labels, people), of which the last two may be left out.
            labels: the label of each text; of a table, the name of the column.
            encoder: what makes vectors of texts, one text at a time: "minilm", "static", a path or
                a callable (`discreet.text.encoder`).
            topics: public topics: a list of names, a file of them, `PublicTexts` or `Topics`; or
                `PublicWords`, among which topics are found privately (from 8,000 texts on). None
                for none.
            classes: all labels that there may be; public, said without looking at the texts.
            words: whether typical words can be asked for: True for the most frequent English ones,
                or a public `Vocabulary`.
            facts: whether names that many texts have are found, and what they answer.
            people: whose each text is; of a table, the name of the column. Then a person is
                protected with all her texts.
            epsilon: above 0.
            delta: above 0; well below one over the number of texts. Not spent on topics alone.
            rows_hint: a public, rounded number of texts: too many topics for so many texts are
                merged. None to keep all topics.
            person_texts: the texts of a person count for so many, at the most, all together.
            column: the name of the column with the texts, of a table.
            cache: a folder for vectors that are there already the next time: as private as texts.
            progress: whether to show progress bars.
            entropy: where the noise comes from; by default the operating system.
            account: where the release is counted, if anywhere: `Ledger.account(dataset, analyst)`.
            ledger: or its parts: a `discreet.ledger.Ledger`,
            dataset: the name that the texts have there,
            analyst: and who asks, if that is to be known.
            stated: where the release comes from, in your words and public: a mapping with some
                of "data", "builder", "purpose", "contact" and "date", or a `discreet.Stated`. In
                the file and on the card, marked as stated by the builder.

        Returns:
            The corpus.

        Raises:
            InvalidInput: an argument is not what it should be. Nothing was released.
            BudgetExceeded: the ledger's limit leaves no room. Nothing was released.

        Warns with `MostlyNoiseWarning` if counts are mostly noise, as they themselves say.
        """
        made = encoder_of(encoder)
        counted = account_of(ledger, dataset, analyst, account)
        options = ReleaseOptions(
            epsilon=epsilon,
            delta=delta,
            rows_hint=rows_hint,
            group_rows=1.0 if people is None else person_texts,
            stated=stated,
        )
        _validate.real("person_texts", person_texts, at_least=1e-3, at_most=1e6)
        plan = plan_of(
            options,
            made,
            topics=topics,
            classes=classes,
            words=words,
            facts=facts,
            people=people is not None,
        )
        if not isinstance(texts, Iterator):  # with chunks, whom it protects is not known yet
            # Before anything is encoded, and again before noise is drawn.
            plan.settings.check(counted)
        vocabulary = plan.vocabulary
        private = encoded(
            chunks_of(texts, labels, people, column),
            None if plan.topics is None else made,
            classes=plan.classes,
            marks=None if vocabulary is None else vocabulary.marks,
            most=1 if vocabulary is None else vocabulary.most,
            keep=facts,
            progress=progress,
            cache=cache,
        )
        if private.people is not None:  # which may have come with the chunks
            options = replace(options, group_rows=person_texts)
        plan = replace(plan, options=options, people=private.people is not None)
        vectors = None if vocabulary is None else made.encode_all(vocabulary.words)
        parts, door = run(
            plan,
            private,
            entropy=entropy,
            account=counted,
            progress=progress,
            words=vectors,
            cache=cache,
        )
        threshold = None if parts.topics is None else parts.topics.threshold(made)
        guarantee, receipt = door.promise
        corpus = cls(
            plan,
            parts,
            threshold=threshold,
            words=vectors,
            guarantee=guarantee,
            receipt=receipt,
        )
        corpus.warn_if_noise()
        return corpus

    def __repr__(self) -> str:
        mark = "" if self.private else f" {NOT_PRIVATE}"
        epsilon = rounded_up(self.guarantee.epsilon)
        topics = 0 if self.topics is None else len(self.topics)
        return f"<Corpus{mark}, {topics:,} topics, {self.nbytes:,} bytes, ε = {epsilon}>"

    # --- what is promised -------------------------------------------------------------------------

    @property
    def guarantee(self) -> Guarantee:
        """What is promised, for all parts together."""
        return self._guarantee

    @property
    def receipt(self) -> Receipt:
        """What was spent; `discreet.combine` adds receipts up."""
        return self._receipt

    @property
    def private(self) -> bool:
        """False if the noise came from a test source."""
        return self._receipt.private

    @property
    def plan(self) -> Plan:
        """The public settings, with what each part spends (`plan.budget`)."""
        return self._plan

    @property
    def parts(self) -> Parts:
        """What was released, part by part."""
        return self._parts

    @property
    def released(self) -> dict[str, Released[Any]]:
        """The noisy sums of each part, by its name in the file."""
        names = self._parts.names
        found = {
            "table": self._parts.table,
            "words": self._parts.words,
            "facts": None if names is None else names.learnt,
        }
        return {name: each for name, each in found.items() if each is not None}

    @property
    def nbytes(self) -> int:
        """Bytes of the noisy sums."""
        return sum(each.nbytes for each in self.released.values())

    @cached_property
    def card(self) -> Card:
        """What is protected, how much, what each part costs. `str(card)`, `card.to_dict()`."""
        from discreet.text.file import card_of_corpus

        return card_of_corpus(self)

    # --- what is public about it ------------------------------------------------------------------

    @property
    def topics(self) -> Topics | None:
        """The public topics; None if there are none."""
        return self._parts.topics

    @property
    def classes(self) -> tuple[Any, ...]:
        """The labels; () if there are none."""
        return self._plan.classes

    @property
    def threshold(self) -> float | None:
        """The cosine with its nearest topic that a covered question has; None without topics."""
        return self._threshold

    @property
    def word_vectors(self) -> Vectors | None:
        """Vectors of the vocabulary's words; None without one."""
        return self._word_vectors

    @property
    def facts(self) -> tuple[Fact, ...]:
        """All names that many texts have, the most frequent first; () if none were asked for."""
        names = self._parts.names
        if names is None:
            return ()
        order = np.argsort(-names.counts, kind="stable")
        return tuple([self._fact(names, int(at)) for at in order])

    @property
    def names_need(self) -> float | None:
        """About how many texts a name needs to be found, if each has no other; None without facts.

        One of several names of a text needs more.
        """
        if not self._plan.facts:
            return None
        return self._plan.selection(self._plan.settings.multiplier).units_needed

    @property
    def encoder(self) -> TextEncoder:
        """What makes vectors of questions.

        Raises:
            InvalidInput: the corpus was made with an encoder that is not known by its name.
        """
        return self._loaded

    @cached_property
    def _loaded(self) -> TextEncoder:
        return loaded(self._plan.encoder)

    def with_encoder(self, encoder: Encodable) -> "Corpus":
        """Return the same corpus, with another way to the same encoder: a path, or a callable.

        Args:
            encoder: the one that it was made with.

        Raises:
            InvalidInput: vectors of the topics' names are not those that the corpus has.
        """
        made = encoder_of(encoder)
        if made.dim != self._plan.encoder.dim:
            raise InvalidInput(
                f"Expected an encoder with {self._plan.encoder.dim} numbers a vector, as the "
                f"corpus has; {made.name!r} has {made.dim}."
            )
        topics = self.topics
        if topics is not None and topics.source in {"names", "file", "found privately"}:
            alone = [at for at, each in enumerate(topics.merged) if len(each) == 1][:4]
            for at in alone:
                if float(made.encode(topics.names[at]) @ topics.vectors[at]) < 0.99:
                    raise InvalidInput(
                        f"Expected encoder {made.name!r} to be the one that the corpus was made "
                        "with: it has other vectors for its topics."
                    )
        return Corpus(
            replace(self._plan, encoder=made),
            self._parts,
            threshold=self._threshold,
            words=self._word_vectors,
            guarantee=self._guarantee,
            receipt=self._receipt,
        )

    # --- questions --------------------------------------------------------------------------------

    @cached_property
    def table(self) -> Table | None:
        """Counts of topics and labels; None without topics."""
        return None if self._parts.table is None else Table(self._parts.table)

    def ask(self, question: str, *, blank: str | None = None, topics: int = _LISTED) -> Answer:
        """Return what the texts say about a question: noise, and what is near, are in its words.

        Args:
            question: in words.
            blank: of a corpus with facts: a sentence with ___ in the answer's place, such as "The
                diagnosis is ___".
            topics: how many of the nearest are listed.
        """
        if blank is not None and self._parts.names is None:
            raise InvalidInput("Expected a corpus with facts: a blank asks for these.")
        vector = self._encoded("question", question)
        return self.ask_vector(vector, question, blank=blank, topics=topics)

    def ask_vector(
        self, vector: Array, question: str = "", *, blank: str | None = None, topics: int = _LISTED
    ) -> Answer:
        """Return what `ask` does, of a question whose vector is known.

        Args:
            vector: of the question, by the encoder of the corpus, shape (d,).
            question: in words; facts are asked for by these.
            blank: as for `ask`.
            topics: how many of the nearest are listed.
        """
        if not np.all(np.isfinite(vector)) or not np.any(vector):
            raise InvalidInput("Expected the vector of a question: finite numbers, not all zero.")
        answer = Answer(question=question)
        if self.topics is not None and self.table is not None and self._threshold is not None:
            cosines = self.topics.near(vector)
            near = float(cosines.max())
            answer = replace(
                answer,
                topics=self._listed(cosines, topics),
                shares=self._shares(cosines),
                words=self._words(vector, covered=near >= self._threshold),
                covered=near >= self._threshold,
                near=near,
                threshold=self._threshold,
            )
        if self._parts.names is not None:
            answer = replace(answer, facts=self._answers(question, blank))
        return answer

    def label_of(self, text: str) -> Any:  # noqa: ANN401 (one of the classes)
        """Return the most probable label of a whole text, by the labels of texts near its topics.

        Args:
            text: in words.
        """
        if not self.classes or self.topics is None or self.table is None:
            raise InvalidInput("Expected a corpus with labels.")
        cosines = self.topics.near(self._encoded("text", text))
        shares, _ = self.table.shares(_weights(cosines[None]))
        return self.classes[int(np.argmax(shares[0]))]

    def _encoded(self, name: str, text: str) -> Vectors:
        """Return the vector of a text that somebody typed."""
        _validate.instance(name, text, str)
        if not text.strip():
            raise InvalidInput(f"Expected {name} to have words.")
        vector = self.encoder.encode(text)
        if not vector.any():
            raise InvalidInput(f"Expected {name} to have words that the encoder knows.")
        return vector

    def labels_of(self, vectors: Array) -> list[Any]:
        """Return the most probable label of each of some texts whose vectors are known.

        Args:
            vectors: by the encoder of the corpus, shape (m, d).
        """
        if not self.classes or self.topics is None or self.table is None:
            raise InvalidInput("Expected a corpus with labels.")
        shares, _ = self.table.shares(_weights(self.topics.near(vectors)))
        return [self.classes[at] for at in np.argmax(shares, axis=1)]

    def map(self) -> list[Answer]:
        """Return all topics with counts, shares of labels and words, the most frequent first.

        Each is an answer to the topic's own name, about the texts that are nearest to it alone.
        """
        table, _ = self._counted
        order = np.argsort(-table.counts, kind="stable")
        return [self._of_topic(int(at)) for at in order]

    def ask_topic(self, topic: str) -> Answer:
        """Return what the texts nearest to one public topic are: count, shares of labels, words.

        Args:
            topic: the name of one of `topics`.

        Raises:
            InvalidInput: there is no such topic.
        """
        _, topics = self._counted
        if topic not in topics.names:
            _validate.reject_argument("topic", topic, "the name of a topic of the corpus")
        return self._of_topic(topics.names.index(topic))

    def speak(self, question: str, *, llm: Callable[[str], str] | None = None, **asked: Any) -> str:  # noqa: ANN401
        """Return an answer to read out: first what was released, quoted; then what a model adds.

        Only the first part comes from the records. What a language model writes behind it is
        marked, and may be invented.

        Args:
            question: in words.
            llm: from a prompt to a text; None for none. The prompt has what was released, only.
            **asked: as for `ask`.
        """
        answer = self.ask(question, **asked)
        quoted = str(answer)
        if answer.facts is not None:
            noun = self._plan.noun
            said = facts_of_text.template(question, answer.facts[:_LISTED], noun=noun)
            rest = replace(answer, facts=None, covered=None)
            quoted = " ".join(filter(None, (answer.caveat, said, str(rest))))
        if llm is None:
            return quoted
        prompt = (
            f"Question: {question}\nWhat is known, from statistics over many records: {quoted}\n"
            "Answer in one or two sentences, beginning with what is known."
        )
        added = llm(prompt)
        _validate.instance("what llm returned", added, str)
        return f"{quoted}\n{_NOT_FROM_RECORDS} {added.strip()}"

    # --- files ------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one safetensors file that answers anywhere, atomically; never pickle.

        It has public topics, vectors and released integers; no text.

        Args:
            path: of the file; one that is there is replaced.
        """
        from discreet.text.file import to_bytes

        data = to_bytes(self)
        with whole_file(Path(path)) as file:
            file.write(data)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Corpus":
        """Return the corpus in a file that `save` wrote.

        Args:
            path: of the file.

        Raises:
            CorruptRelease: the file is of another kind, was cut short or altered.

        Warns with `NotPrivateWarning` if it was made with a test source of noise.
        """
        from discreet.text.file import restored

        return read(path, lambda data: unpack(data, {cls.kind: restored}))

    # --- how --------------------------------------------------------------------------------------

    def _listed(self, cosines: Floats, most: int) -> tuple[NearTopic, ...]:
        table, topics = self._counted
        nearest = np.argsort(-cosines, kind="stable")[: _validate.whole("topics", most, at_least=1)]
        counts = integers_of(table.counts)
        return tuple(
            [
                NearTopic(
                    topics.names[at],
                    int(counts[at]),
                    table.count_margin,
                    float(cosines[at]),
                    self._plan.noun,
                )
                for at in nearest
            ]
        )

    def _shares(self, cosines: Floats) -> Mapping[Any, Share]:
        table, _ = self._counted
        return self._named_shares(table, _weights(cosines[None])) if self.classes else {}

    def _shares_of(self, table: Table, only: Floats, *, clear: bool) -> Mapping[Any, Share]:
        """Return the shares of labels in one topic; nothing is known where it may have no text."""
        found = self._named_shares(table, only)
        return found if clear else {label: Share(each.share, 1.0) for label, each in found.items()}

    def _named_shares(self, table: Table, weights: Floats) -> Mapping[Any, Share]:
        shares, margins = table.shares(weights)
        order = np.argsort(-shares[0], kind="stable")
        return {
            self.classes[at]: Share(float(shares[0, at]), float(margins[0, at])) for at in order
        }

    def _words(self, vector: Array, *, covered: bool) -> tuple[str, ...] | None:
        released, vocabulary = self._parts.words, self._plan.vocabulary
        if released is None or vocabulary is None or self._word_vectors is None:
            return None
        if not covered:  # whatever is read there is about other texts
            return ()
        question = released.layout.kernel.directions.coordinates(np.asarray(vector)[None])[0]
        # Not by BLAS, whose threads take longer to wake up than this takes.
        words, one = self._word_vectors, np.asarray(vector, dtype=np.float32)
        cosines = np.einsum("ij,j->i", words.astype(np.float32, copy=False), one)
        found = typical(
            self._word_sums, question, vocabulary, noise_sd=self._word_noise, cosines=cosines
        )
        return tuple([each.word for each in found])

    @cached_property
    def _word_sums(self) -> Floats:
        released = self._parts.words
        if released is None:
            raise TypeError("Expected sums of words.")
        return np.asarray(released.state[0] * released.layout.real_unit)

    @cached_property
    def _word_noise(self) -> float:
        released = self._parts.words
        if released is None:
            raise TypeError("Expected sums of words.")
        return math.sqrt(released.sigma**2 + 1 / 12) * released.layout.real_unit

    def _answers(self, question: str, blank: str | None) -> tuple[Fact, ...]:
        names, model = self._parts.names, self._model
        if names is None or model is None:
            return ()
        vocabulary = self._name_vocabulary
        key = facts_of_text.question_key(
            question, vocabulary, encoder=self.encoder.encode, blank=blank
        )
        logits = np.asarray(model.logits(key))
        logs = logits - np.logaddexp.reduce(logits)
        probable = dict(zip(model.classes.tolist(), logs.tolist(), strict=True))
        counts = dict(zip(names.words, names.counts.tolist(), strict=True))
        best = facts_of_text.scores(probable, counts, question)
        place = {word: at for at, word in enumerate(names.words)}
        return tuple([self._fact(names, place[word]) for word in list(best)[:_FACTS]])

    @cached_property
    def _model(self) -> SoftmaxRegression | None:
        names = self._parts.names
        learnt = None if names is None else names.learnt
        return None if learnt is None else SoftmaxRegression(learnt)

    @cached_property
    def _name_vocabulary(self) -> facts_of_text.Vocabulary:
        names = self._parts.names
        return facts_of_text.Vocabulary(() if names is None else names.words)

    @staticmethod
    def _fact(names: Names, at: int) -> Fact:
        return Fact(names.words[at], float(names.counts[at]), names.margin)

    def _of_topic(self, at: int) -> Answer:
        table, topics = self._counted
        count = int(integers_of(table.counts)[at])
        topic = NearTopic(topics.names[at], count, table.count_margin, 1.0, self._plan.noun)
        only = np.zeros((1, len(topics)))
        only[0, at] = 1.0
        return Answer(
            question=topics.names[at],
            topics=(topic,),
            shares=self._shares_of(table, only, clear=topic.clear) if self.classes else {},
            words=self._words(topics.vectors[at], covered=True),
            near=1.0,
            covered=True,
            threshold=self._threshold,
        )

    @property
    def _counted(self) -> tuple[Table, Topics]:
        if self.table is None or self.topics is None:
            raise InvalidInput("Expected a corpus with topics.")
        return self.table, self.topics

    @property
    def mostly_noise(self) -> str | None:
        """A sentence that says so, if counts are mostly noise; None if they are not."""
        table, topics = self.table, self.topics
        if table is None or topics is None:
            return None
        total = max(table.total, 0.0)
        mean = total / len(topics)
        if mean >= table.count_margin:
            return None
        each = "" if len(topics) == 1 else f", {mean:.2g} for each of {len(topics):,} topics"
        return (
            f"Counts are mostly noise: they add up to about {total:,.0f} ± "
            f"{table.total_margin:,.0f} {self._plan.noun}{each}, and the noise of a count is "
            f"±{table.count_margin:.3g}."
        )

    def warn_if_noise(self) -> None:
        """Warn with `MostlyNoiseWarning` if counts are mostly noise, as they themselves say.

        They were released with noise, so whatever is said of them costs nothing.
        """
        if self.mostly_noise is None:
            return
        with suppress(MostlyNoiseWarning):  # an error to some: what is paid for is not thrown away
            warn(
                f"{self.mostly_noise} Fewer topics (a smaller rows_hint merges them), more texts "
                "or a larger epsilon would help; every build spends its epsilon.",
                MostlyNoiseWarning,
            )


def _weights(cosines: Floats) -> Floats:
    """Return how much each topic counts for a question, shape (m, T)."""
    return np.asarray(np.exp(_SHARPNESS * (cosines - cosines.max(axis=1, keepdims=True))))


def plan_of(
    options: ReleaseOptions,
    encoder: TextEncoder,
    *,
    topics: "GivenTopics | PublicWords | None",
    classes: Sequence[Any] | None,
    words: bool | Vocabulary = False,
    facts: bool = False,
    people: bool,
) -> Plan:
    """Return the public settings, checked: before a text is read.

    Args:
        options: ε, δ, and a public number of texts.
        encoder: of one text at a time.
        topics: as for `Corpus.build`; likewise the others.
        classes: all labels that there may be.
        words: whether typical words can be asked for.
        facts: whether names that many texts have are found.
        people: whether a person with many texts is protected.
    """
    if topics is None and not facts:
        raise InvalidInput(_NEEDED)
    if topics is None and (words or classes is not None):
        raise InvalidInput("Expected topics: labels and words are counted near them.")
    finding = isinstance(topics, PublicWords)
    made = None
    if isinstance(topics, PublicWords):
        made = topics.topics(encoder)
    elif topics is not None:
        made = Topics.of(topics, encoder)
    vocabulary = words if isinstance(words, Vocabulary) else None
    if words is True:
        vocabulary = Vocabulary.common(topics=() if made is None or finding else made.names)
    return Plan(
        options=options,
        encoder=encoder,
        topics=made,
        finding=finding,
        classes=_classes(classes),
        vocabulary=vocabulary,
        facts=bool(facts),
        rarity=facts_of_text.rarity() if facts else None,
        people=people,
    )


def _classes(classes: Sequence[Any] | None) -> tuple[Any, ...]:
    if classes is None:
        return ()
    found = tuple(Labels.of(classes, distinct=True).classes.tolist())
    check_classes(found)
    return found
