"""How a corpus is made: one program over one noisy door, with one receipt for all its parts.

Topics are counted (and found, if nobody gave any); words are added up near anchors; names that many
texts have are found, counted, and learnt. `docs/privacy.md`, "Corpora".
"""

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from discreet._typing import Array, Integers
from discreet.accounting import Mechanism
from discreet.features.nearest import Nearest
from discreet.ledger.ledger import Account
from discreet.noise import Entropy
from discreet.readers.rounds.counts import Counts, as_cells, count
from discreet.readers.softmax.layout import MOST_CLASSES, Rounds
from discreet.readers.softmax.mechanism import SOFTMAX, SoftmaxOptions
from discreet.readers.table.answers import Law
from discreet.readers.table.layout import TableLayout
from discreet.readers.table.mechanism import TableOptions, settings_of
from discreet.sums.door import Door
from discreet.sums.mechanism import ReleaseOptions
from discreet.sums.release import Released
from discreet.sums.selection import Selection
from discreet.sums.settings import Settings, Unit
from discreet.sums.source import Form, RowSource, Table, passes_bar, unseen
from discreet.text import facts as facts_of_text
from discreet.text.budget import Budget
from discreet.text.encoders import TextEncoder, Vectors
from discreet.text.facts import DECAY, MOST, OTHER, Rarity
from discreet.text.layout import NearAnchors, WordsLayout
from discreet.text.source import Encoded
from discreet.text.topics import Topics, most_topics
from discreet.text.words import Directions, Vocabulary

# A public word with so many standard deviations of the noise is a topic that is found; and there
# are at least so many, the best guesses where none is clear.
_FOUND, _FEWEST = 4.5, 8

# A text answers with so many names, at the most.
ANSWERS = 2

# As many names as are of any use: the most frequent.
_MOST_NAMES = min(MOST_CLASSES - 1, 2_000)

# Half width of an interval that holds 95 of 100 times, in standard deviations of Gaussian noise.
MARGIN = 1.959963984540054


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """The public settings of a corpus: all that is fixed before a text is read.

    Attributes:
        options: ε, δ, whom it protects, and a public number of texts.
        encoder: of one text at a time.
        topics: public topics, or public words among which topics are found; None for none.
        finding: whether they are found.
        classes: all labels that there may be; () for none.
        vocabulary: whose words are looked at; None for none.
        facts: whether names that many texts have are found, and what they answer.
        rarity: how rare words are, in public; None without facts.
        people: whether a person with many texts is protected, and not a text.
        divided: what each part spent, of a corpus that was opened; None: what the rule says.
    """

    options: ReleaseOptions
    encoder: TextEncoder
    topics: Topics | None = None
    finding: bool = False
    classes: tuple[Any, ...] = ()
    vocabulary: Vocabulary | None = None
    facts: bool = False
    rarity: Rarity | None = None
    people: bool = False
    divided: Budget | None = None

    @property
    def budget(self) -> Budget:
        """What each part spends."""
        if self.divided is not None:
            return self.divided
        return Budget.of(
            epsilon=self.options.epsilon,
            delta=self.options.delta,
            topics=self.topics is not None,
            finding=self.finding,
            words=self.vocabulary is not None,
            facts=self.facts,
        )

    @property
    def noun(self) -> str:
        """What is counted: texts, or people where each counts for one, with all texts."""
        return "people" if self.people and self.options.group_rows == 1 else "texts"

    @property
    def unit(self) -> Unit:
        """Whom the guarantee protects."""
        return Unit.RECORD if self.people else Unit.ROW

    def table(self, topics: Topics, classes: tuple[Any, ...], pure: float) -> Settings[TableLayout]:
        """Return the settings of a table of topics that spends so much.

        Args:
            topics: its points.
            classes: its labels.
            pure: ε.
        """
        return settings_of(self.table_options(topics, classes), self.unit, pure=pure)

    def table_options(self, topics: Topics, classes: tuple[Any, ...]) -> TableOptions:
        """Return the options of a table of topics.

        Args:
            topics: its points.
            classes: its labels.
        """
        return TableOptions(
            points=Nearest(topics.vectors),
            classes=list(classes) or None,
            epsilon=self.options.epsilon,
            delta=self.options.delta,
            neighbours=self.options.neighbours,
            rows_hint=self.options.rows_hint,
            group_rows=self.options.group_rows,
        )

    def counted(self, topics: Topics) -> Topics:
        """Return the topics that are counted: not too many for a public number of texts.

        Their number changes no noise, so that topics that were found may be counted, too.

        Args:
            topics: given, or found.
        """
        if self.options.rows_hint is None:
            return topics
        return topics.merged_to(most_topics(self.options.rows_hint, self.budget.table))

    @property
    def settings(self) -> Settings[Any]:
        """The settings of the whole release."""
        budget, beside = self.budget, list[Mechanism]()
        if self.topics is not None:
            if budget.finding:
                beside += self.table(self.topics, (), budget.finding).mechanisms
            # Noise follows from ε and the labels, not from the topics.
            beside += self.table(self.topics, self.classes, budget.table).mechanisms
        if self.facts:
            beside.append(self.selection(1.0).disclosure)
        return Settings(
            layouts=(),
            privacy=self.options.privacy,
            unit=self.unit,
            group_rows=self.options.group_rows,
            rows_hint=self.options.rows_hint,
            leaks=self.options.leaks,
            pure=0.0 if budget.gaussian else self.options.epsilon,
            beside=tuple(beside),
            noun=("corpus", "corpora"),
        )

    def selection(self, multiplier: float) -> Selection:
        """Return how names are found.

        Args:
            multiplier: σ of the whole Gaussian budget.
        """
        return Selection(
            most=MOST,
            multiplier=multiplier,
            share=self.budget.names,
            probability=self.budget.disclosure,
            neighbours=self.options.privacy.neighbours,
            decay=DECAY,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Names:
    """Names that many texts have, and what they answer: public from now on.

    Attributes:
        words: the names, in the order of `counts`.
        counts: about how many texts have each, shape (names,).
        margin: the ± of a count.
        learnt: the noisy coefficients of a classifier; None if there are no names.
    """

    words: tuple[str, ...] = ()
    counts: Array = field(default_factory=lambda: np.zeros(0))
    margin: float = 0.0
    learnt: Released[Rounds] | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Parts:
    """What was released, part by part.

    Attributes:
        topics: that were counted.
        table: their noisy counts; None without topics.
        words: noisy sums of words; None without words.
        names: names and what they answer; None without facts.
    """

    topics: Topics | None
    table: Released[TableLayout] | None
    words: Released[WordsLayout] | None
    names: Names | None

    @property
    def as_filed(self) -> "Parts":
        """The same; vectors of topics are those that texts were counted at: on the lattice."""
        if self.topics is None or self.table is None:
            return self
        vectors = self.table.layout.kernel.real_points.astype(np.float32)
        return replace(self, topics=replace(self.topics, vectors=vectors))


def run(
    plan: Plan,
    texts: Encoded,
    *,
    entropy: Entropy | None,
    account: Account | None,
    progress: bool,
    words: Vectors | None,
    cache: str | os.PathLike[str] | None = None,
) -> tuple[Parts, Door[Any]]:
    """Return what is released of private texts: noise is drawn here.

    Args:
        plan: public settings.
        texts: private.
        entropy: where the noise comes from; by default the operating system.
        account: on which the release is counted before its noise, if on any.
        progress: whether to show a bar.
        words: vectors of the vocabulary; None without one.
        cache: a folder for vectors of parts of texts, as private as these.
    """
    plan.options.warn_if_nobody_is_protected()
    settings = plan.settings
    passes = (plan.topics is not None) + plan.finding + (plan.vocabulary is not None)
    every = passes + (plan.facts and 12)  # or so: how many rounds there are, follows from names
    door = Door(settings, entropy=entropy, account=account, passes=every)
    with door:
        parts = Parts(topics=None, table=None, words=None, names=None)
        if plan.topics is not None:
            with passes_bar(passes, rows=len(texts.vectors), show=progress) as door.begin:
                parts = _near(plan, plan.topics, door, texts, words)
            door.begin = lambda _: unseen
        if plan.facts:
            try:
                parts = replace(parts, names=_names(plan, door, texts, cache, progress=progress))
            finally:
                facts_of_text.forget(plan.rarity)
        return parts, door


def _near(
    plan: Plan, given: Topics, door: Door[Any], texts: Encoded, words: Vectors | None
) -> Parts:
    """Return topics, how many texts are nearest to each, and what words they say."""
    rows = RowSource.of(texts.vectors, texts.values, texts.people, Form(passes=True))
    topics = plan.counted(_find(plan, given, door, rows) if plan.finding else given)
    part = plan.table(topics, plan.classes, plan.budget.table)
    table = door.released_part(part, door.sum_of(part, rows, view=_labels))
    summed = None if plan.vocabulary is None else _words(plan, door, rows, topics, words)
    return Parts(topics=topics, table=table, words=summed, names=None)


def _labels(table: Table) -> Table:
    """A view of texts: their labels alone."""
    return Table(table.keys, table.values[:, :1])


def _marks(table: Table) -> Table:
    """A view of texts: the words that they mark."""
    return Table(table.keys, table.values[:, 1:])


def _find(plan: Plan, words: Topics, door: Door[Any], rows: RowSource) -> Topics:
    """Return the public words that many texts are nearest to."""
    part = plan.table(words, (), plan.budget.finding)
    [layout] = part.layouts
    [counts] = door.sum_of(part, rows, view=_labels)
    near = counts[0, 0] * layout.real_unit
    noise = Law(layout, tuple([each * layout.real_unit for each in part.scales(layout)]))
    order = np.argsort(-near, kind="stable")
    clear = max(int(np.count_nonzero(near > _FOUND * noise.count_deviation)), _FEWEST)
    kept = np.sort(order[:clear])
    names = tuple([words.names[at] for at in kept])
    return Topics(names, words.vectors[kept], source="found privately")


def _words(
    plan: Plan, door: Door[Any], rows: RowSource, topics: Topics, words: Vectors | None
) -> Released[WordsLayout]:
    """Return noisy sums of the words that texts mark, near public anchors."""
    vocabulary = plan.vocabulary
    if vocabulary is None:
        raise TypeError("Expected a vocabulary.")
    layout = WordsLayout(
        kernel=NearAnchors(Directions.of(topics.vectors, words)),
        words=len(vocabulary.words),
        most=vocabulary.most,
    )
    part = door.settings.part(layout, plan.budget.words)
    return door.released_part(part, door.sum_of(part, rows, view=_marks))


def _names(
    plan: Plan,
    door: Door[Any],
    texts: Encoded,
    cache: str | os.PathLike[str] | None,
    *,
    progress: bool,
) -> Names:
    """Return names that many texts have, how many have each, and what they answer."""
    rarity, private = plan.rarity, texts.texts
    if rarity is None or private is None:
        raise TypeError("Expected texts, and how rare words are.")
    selection = plan.selection(door.settings.multiplier)
    totals: dict[str, int] = {}
    for named in _units(
        private, texts.people, lambda text: facts_of_text.candidates(text, rarity=rarity)
    ):
        for name, weight in zip(named, selection.weights(len(named)), strict=True):
            totals[name] = totals.get(name, 0) + weight
    found = door.select(selection, totals)
    del totals
    kept = sorted(found, key=lambda name: (-found[name], name))[:_MOST_NAMES]
    if not kept:
        return Names()
    vocabulary = facts_of_text.Vocabulary.ranked(kept, rarity)
    pieces = [facts_of_text.pieces(text, vocabulary, most=ANSWERS) for text in private]
    counts, deviation = _counted(plan, door, texts, pieces, vocabulary)
    keys = _keys(plan.encoder, texts, pieces, cache, progress=progress)
    return Names(
        words=vocabulary.words,
        counts=counts,
        margin=MARGIN * deviation,
        learnt=_learnt(plan, door, keys, vocabulary, progress=progress),
    )


def _units(
    texts: Sequence[str], people: Array, candidates: Callable[[str], tuple[str, ...]]
) -> Iterator[tuple[str, ...]]:
    """Yield the names of each unit, at most `MOST`: of a text, or of a person with many.

    Of a person the first names of all her texts come first: by their places, then by the alphabet,
    so that the order of her texts does not matter.
    """
    if people is None:
        yield from map(candidates, texts)
        return
    ranks: dict[Any, dict[str, int]] = {}
    for text, person in zip(texts, people, strict=True):
        own = ranks.setdefault(person, {})
        for rank, name in enumerate(candidates(text)):
            own[name] = min(own.get(name, rank), rank)
    for own in ranks.values():
        yield tuple(sorted(own, key=lambda name: (own[name], name))[:MOST])


def _counted(
    plan: Plan,
    door: Door[Any],
    texts: Encoded,
    pieces: Sequence[tuple[facts_of_text.Piece, ...]],
    vocabulary: facts_of_text.Vocabulary,
) -> tuple[Array, float]:
    """Return about how many texts have each name, and the standard deviation of a count."""
    place = {word: at for at, word in enumerate(vocabulary.words)}
    cells = np.full((len(pieces), ANSWERS), -1, dtype=np.int64)
    for row, given in enumerate(pieces):
        for column, piece in enumerate(given):
            cells[row, column] = place.get(piece.label, -1)
    rows = RowSource.of(np.zeros((len(cells), 1)), cells, texts.people, Form(passes=True))
    layout = Counts(cells=len(vocabulary.words) + 1, marks=ANSWERS)
    portion = door.portion(replace(door.settings, share=1.0))
    counts, deviation = count(
        rows,
        portion,
        lambda _, values: as_cells(values.astype(np.int64)),
        layout,
        share=plan.budget.counts,
    )
    return counts[:-1], deviation


def _learnt(
    plan: Plan,
    door: Door[Any],
    given: tuple[Vectors, Array, Array],
    vocabulary: facts_of_text.Vocabulary,
    *,
    progress: bool,
) -> Released[Rounds]:
    """Return a classifier from what a text says to the names that it has."""
    keys, labels, owners = given
    options = SoftmaxOptions(
        epsilon=plan.options.epsilon,
        delta=plan.options.delta,
        neighbours=plan.options.neighbours,
        classes=[OTHER, *vocabulary.words],
        rows_hint=plan.options.rows_hint,
        group_rows=plan.options.group_rows,
    )
    rows = SOFTMAX.source(keys, labels, owners, options)
    settings = SOFTMAX.resolve(rows.shapes, options, unit=Unit.RECORD)
    share = plan.budget.learning
    portion = door.portion(replace(settings, beside=door.settings.beside, share=share))
    passes = SOFTMAX.passes_of(settings)
    with passes_bar(passes, rows=len(keys), show=progress) as begin:
        own = itertools.count(1)  # the door counts what came out before, too
        portion.begin = lambda _: begin(next(own))
        [released] = SOFTMAX.run(rows, portion, options)
    return released


def _keys(
    encoder: TextEncoder,
    texts: Encoded,
    pieces: Sequence[tuple[facts_of_text.Piece, ...]],
    cache: str | os.PathLike[str] | None,
    *,
    progress: bool,
) -> tuple[Vectors, Array, Array]:
    """Return keys, labels and owners of all pieces, each made of one text alone. PRIVATE."""
    every = [piece for given in pieces for piece in given]
    # Equal parts have equal vectors: each is encoded once.
    parts = list(
        dict.fromkeys(part for piece in every for part in (piece.text, piece.other, piece.context))
    )
    vectors = encoder.encode_all(parts, progress=progress, cache=cache)
    places = {part: place for place, part in enumerate(parts)}
    keys = np.zeros((len(every), 3 * encoder.dim), dtype=np.float32)
    for row, piece in enumerate(every):
        keys[row] = facts_of_text.piece_key(piece, lambda part: vectors[places[part]])
    people = range(len(pieces)) if texts.people is None else texts.people
    owners = [who for who, given in zip(people, pieces, strict=True) for _ in given]
    return keys, np.asarray([piece.label for piece in every], dtype=str), owners


def integers_of(values: Array) -> Integers:
    """Return counts as whole numbers, for people.

    Args:
        values: any shape.
    """
    return np.asarray(np.rint(values), dtype=np.int64)
