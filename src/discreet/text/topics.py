"""Public topics: names with vectors, which private texts are counted at and questions compared to.

Topics come from people, files or public texts, never from the private texts: a list made from those
would tell of them before any noise is added. Nothing in this file reads a private text.
"""

import csv
import io
import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import ClassVar, Self, TypeAlias

import numpy as np

from discreet import _validate
from discreet._arrays import float64, plain_numbers
from discreet._typing import Array, Floats, Integers
from discreet.errors import InvalidInput
from discreet.features.fourier import public_uniforms
from discreet.text.encoders import TextEncoder, Vectors

# More are no list that anybody has read.
MOST_TOPICS = 100_000

# With so many texts, topics that are found among public words make a list that can be read.
ENOUGH_TO_FIND = 8_000

# Longer names fill a screen.
_LONGEST_NAME = 200
_LONGEST_CENTRAL = 60

# A cell of fewer texts than this, divided by epsilon, is mostly noise.
_TEXTS_PER_TOPIC = 12

# Above this, all pairs of topics take too much memory: they are grouped by k-means.
_MOST_LINKED = 6_000

# Public, and the same for everybody: who has the public texts gets the same topics.
_START = "discreet topics"


def most_topics(rows_hint: int, epsilon: float) -> int:
    """Return how many topics so many texts can fill: rows_hint · ε / 12, and at least one.

    Args:
        rows_hint: about how many texts there are; public.
        epsilon: of the table of topics.
    """
    rows = _validate.whole("rows_hint", rows_hint, at_least=1)
    budget = _validate.real("epsilon", epsilon, above=0)
    return max(1, min(math.floor(rows * budget / _TEXTS_PER_TOPIC), MOST_TOPICS))


@dataclass(frozen=True, eq=False)
class PublicTexts:
    """Public texts of the same kind as the private ones, to make topics from. Never private ones.

    Attributes:
        texts: public.
        topics: how many to make.
    """

    texts: Sequence[str] = field(repr=False)
    topics: int = 150

    def __post_init__(self) -> None:
        _validate.whole("topics", self.topics, at_least=1, at_most=10_000)
        object.__setattr__(self, "texts", tuple(_listed("public texts", self.texts)))
        if any(not isinstance(text, str) or not text.strip() for text in self.texts):
            raise InvalidInput("Expected each public text to be a str that is not blank.")
        if len(set(self.texts)) < self.topics:
            raise InvalidInput(
                f"Expected at least {self.topics} different public texts for as many topics."
            )


@dataclass(frozen=True, eq=False)
class PublicWords:
    """Public words among which topics are found privately: those that many texts are nearest to.

    It takes a fifth of the ε of topics, and gives a readable list from some 8,000 texts on. Names
    that somebody wrote down are better.

    Attributes:
        words: public; None for the most frequent English ones.
        count: how many of these.
    """

    words: Sequence[str] | None = field(default=None, repr=False)
    count: int = 4_000

    def topics(self, encoder: TextEncoder) -> "Topics":
        """Return all words with their vectors.

        Args:
            encoder: which encodes the private texts, too.
        """
        words = self.words
        if words is None:
            from discreet.text.words import Vocabulary

            words = Vocabulary.common(size=_validate.whole("count", self.count, at_least=8)).words
        return Topics.of(list(words), encoder)


@dataclass(frozen=True, eq=False, repr=False)
class Topics:
    """Public topics, shape (T, d). Make them with `Topics.of`.

    Attributes:
        names: T different names.
        vectors: of unit length, shape (T, d); read-only.
        merged: for each topic, the names of the topics that it stands for: its own, or several.
        source: "names", "file", "public texts" or "found privately".
        reach: the cosine that nine of ten public texts have with the topic made from them; None for
            names.
    """

    names: tuple[str, ...]
    vectors: Vectors = field(repr=False)
    merged: tuple[tuple[str, ...], ...] = field(default=(), repr=False)
    source: str = "names"
    reach: float | None = None

    SOURCES: ClassVar[tuple[str, ...]] = (
        "names",
        "file",
        "public texts",
        "found privately",
    )

    def __post_init__(self) -> None:
        names = tuple(_checked_names(self.names))
        merged = tuple(map(tuple, self.merged)) or tuple((name,) for name in names)
        vectors = float64(plain_numbers("vectors", self.vectors)).astype(np.float32)
        if vectors.ndim != 2 or len(vectors) != len(names) or len(merged) != len(names):
            _validate.reject("vectors", vectors.shape, f"a vector for each of {len(names)} topics")
        if not np.all(np.abs(np.linalg.norm(vectors, axis=1) - 1) < 1e-3):
            raise InvalidInput("Expected vectors of topics to be of unit length.")
        if self.source not in self.SOURCES:
            _validate.reject_argument("source", self.source, f"one of {list(self.SOURCES)}")
        if self.reach is not None:
            _validate.real("reach", self.reach, at_least=-1, at_most=1)
        vectors.flags.writeable = False
        for name, value in (("names", names), ("merged", merged), ("vectors", vectors)):
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, given: "GivenTopics", encoder: TextEncoder, *, progress: bool = False) -> Self:
        """Return topics with their vectors.

        Args:
            given: a list of names; a file with a name on each line, a CSV file (one column, or one
                called "topic" or "name") or a JSON file with a list; `PublicTexts`, which are
                grouped by k-means; or `Topics`, which are returned as they are. Public, all of it.
            encoder: which encodes the private texts, too.
            progress: whether to show a bar on standard error.

        Raises:
            InvalidInput: if names are blank, not printable, too long or too many; if two are the
                same; or if the encoder knows no token of one.
        """
        if isinstance(given, cls):
            if given.dim != encoder.dim:
                wanted = f"topics of encoder {encoder.name!r}, with {encoder.dim} numbers"
                _validate.reject("topics", given.vectors.shape, wanted)
            return given
        if isinstance(given, PublicTexts):
            return cls._found(given, encoder, progress=progress)
        from_file = isinstance(given, str | os.PathLike)
        listed = _read(Path(given)) if from_file else _listed("topics", given)  # type: ignore[arg-type]
        names = _checked_names(listed)
        vectors = encoder.encode_all(names, progress=progress)
        if (blank := np.flatnonzero(~vectors.any(axis=1))).size:
            raise InvalidInput(
                f"Expected topics that encoder {encoder.name!r} knows a token of: topics"
                f"[{blank[0]}] has none."
            )
        return cls(tuple(names), vectors, source="file" if from_file else "names")

    @classmethod
    def _found(cls, public: PublicTexts, encoder: TextEncoder, *, progress: bool) -> Self:
        """Return the groups that public texts fall into, named by their most central text."""
        texts = list(dict.fromkeys(public.texts))
        vectors = encoder.encode_all(texts, progress=progress)
        known = np.flatnonzero(vectors.any(axis=1))
        texts, vectors = [texts[each] for each in known], vectors[known]
        if len(np.unique(vectors, axis=0)) < public.topics:
            raise InvalidInput(
                f"Expected public texts with at least {public.topics} different vectors, for as "
                "many topics."
            )
        groups = _k_means(vectors, public.topics)
        centres = _means(vectors, groups, public.topics)
        names = _different(_group_names(texts, vectors, groups, centres))
        own = np.quantile(np.sum(vectors * centres[groups], axis=1), 0.1)
        reach = float(np.clip(own, -1.0, 1.0))
        return cls(tuple(names), centres, source="public texts", reach=reach)

    def __repr__(self) -> str:
        return f"<Topics: {len(self):,} from {self.source}>"

    @property
    def dim(self) -> int:
        """How many numbers a vector has."""
        return int(self.vectors.shape[1])

    def __len__(self) -> int:
        return len(self.names)

    def merged_to(self, count: int) -> "Topics":
        """Return at most `count` topics: the most similar are merged, those left stay as they are.

        Average link: the two groups whose members have the highest cosines on average become one,
        again and again. Its vector is the mean, and its name is that of its most central members.
        From more than 6,000 topics, groups are those of k-means.

        Args:
            count: how many may be left; see `most_topics`.
        """
        wanted = _validate.whole("count", count, at_least=1)
        if wanted >= len(self):
            return self
        link = _linked if len(self) <= _MOST_LINKED else _k_means
        groups = _in_order(link(self.vectors, wanted))
        centres = _means(self.vectors, groups, wanted)
        names, merged = [], []
        for group, centre in enumerate(centres):
            members = np.flatnonzero(groups == group)
            order = np.argsort(-np.round(self.vectors[members] @ centre, 5), kind="stable")
            merged.append(tuple(name for each in members[order] for name in self.merged[each]))
            alone = len(members) == 1
            names.append(self.names[members[0]] if alone else _joined(merged[-1]))
        reach = self.reach
        if reach is not None:  # what was near a topic is less near to the mean of several
            reach *= float(np.clip(np.sum(self.vectors * centres[groups], axis=1).mean(), 0.0, 1.0))
        return Topics(tuple(_different(names)), centres, tuple(merged), self.source, reach)

    def near(self, questions: Array) -> Floats:
        """Return the cosine of each question with each topic, shape (m, T); (T,) for one question.

        For questions, which are public once they are asked. Private texts are assigned to topics
        by exact integers elsewhere.

        Args:
            questions: vectors of unit length, shape (m, d) or (d,).
        """
        vectors = float64(plain_numbers("questions", questions))
        if vectors.ndim not in (1, 2) or vectors.shape[-1] != self.dim:
            _validate.reject("questions", vectors.shape, f"vectors of {self.dim} numbers")
        return np.clip(vectors @ self.vectors.T.astype(np.float64), -1.0, 1.0)

    def threshold(self, encoder: TextEncoder) -> float:
        """Return the cosine, in (0, 1), with its nearest topic that a covered question has.

        From public things alone: a few hundred everyday sentences from all walks of life, which
        come with this library. It is halfway between two numbers: the 95% quantile of their
        cosines with their nearest topics; and the 70% quantile of their cosines with their nearest
        other sentence, which is how near this encoder puts texts about different things, whatever
        the topics are. At most the 80% quantile of these: with broad topics, some of the sentences
        are about them. With public texts, it is halfway between that and `reach`.

        It is a hint. On topics and questions of several kinds, 2 to 14 of 100 questions about
        something else are still said to be covered, and 1 to 40 of 100 that belong are not: most
        of them where the encoder is "static", or the topics are names of a word or two.

        Args:
            encoder: which made the topics' vectors.
        """
        strangers = _strangers(encoder)
        if strangers.shape[1] != self.dim:
            _validate.reject("encoder", encoder.dim, f"the topics' own, with {self.dim} numbers")
        nearest = self.near(strangers).max(axis=1)
        others = strangers @ strangers.T
        np.fill_diagonal(others, -1.0)
        usual, most = np.quantile(others.max(axis=1), [0.70, 0.80])
        found = min((np.quantile(nearest, 0.95) + usual) / 2, most)
        if self.reach is not None:
            found = (found + self.reach) / 2
        return float(np.clip(found, 0.001, 0.999))


GivenTopics: TypeAlias = Topics | PublicTexts | Iterable[str] | str | os.PathLike[str]


@lru_cache(maxsize=1)
def _strangers(encoder: TextEncoder) -> Floats:
    """Return the vectors of public sentences about everything, shape (s, d)."""
    text = resources.files("discreet.text").joinpath("strangers.txt").read_text("utf-8")
    return encoder.encode_all(text.splitlines()).astype(np.float64)


# Names. They are public, but whoever passes the wrong list may have passed rows: none is quoted.


def _listed(name: str, given: object) -> list[str]:
    """Return a list of what was given, which has an order."""
    if isinstance(given, str | bytes | Mapping | AbstractSet) or not isinstance(given, Iterable):
        _validate.reject_argument(name, given, "a list of texts, or a file")
    return list(given)


def _checked_names(names: Sequence[str]) -> list[str]:
    """Return names without blanks around them, or raise."""
    if not 1 <= len(names) <= MOST_TOPICS:
        raise InvalidInput(f"Expected 1 to {MOST_TOPICS} topics, got {len(names)}.")
    places: dict[str, int] = {}
    checked = []
    for place, name in enumerate(names):
        clean = name.strip() if isinstance(name, str) else ""
        if not clean or not clean.isprintable() or len(clean) > _LONGEST_NAME:
            raise InvalidInput(
                f"Expected topics[{place}] to be a printable text of 1 to {_LONGEST_NAME} letters."
            )
        same = _same(clean)
        if same in places:
            raise InvalidInput(
                f"Expected topics to be different: topics[{place}] is topics[{places[same]}] again."
            )
        places[same] = place
        checked.append(clean)
    return checked


def _same(name: str) -> str:
    """Return what names have in common that most encoders cannot tell apart."""
    return " ".join(name.casefold().split())


def _read(path: Path) -> list[str]:
    """Return the names in a file: lines, a column of a CSV file, or a list in a JSON file."""
    wanted = "a list of names, or a file with one name a line, a CSV or a JSON file in UTF-8"
    try:
        text = path.read_text(encoding="utf-8-sig")
        if path.suffix.lower() == ".json":
            return _listed("topics", json.loads(text))
        if path.suffix.lower() == ".csv":
            return _column(list(csv.reader(io.StringIO(text), strict=True)), path)
    except (OSError, ValueError, csv.Error) as error:
        if isinstance(error, InvalidInput):
            raise
        _validate.reject_argument("topics", os.fspath(path), wanted)
    return [line for line in text.splitlines() if line.strip()]


def _column(rows: list[list[str]], path: Path) -> list[str]:
    """Return the names in a table: its only column, or the one that is called so."""
    rows = [row for row in rows if any(each.strip() for each in row)]
    header = [each.strip().casefold() for each in rows[0]] if rows else []
    for called in ("topic", "topics", "name", "names"):
        if called in header:
            place = header.index(called)
            return [row[place] if place < len(row) else "" for row in rows[1:]]
    if any(len(row) != 1 for row in rows):
        wanted = 'a CSV file of one column, or with one called "topic"'
        _validate.reject_argument("topics", os.fspath(path), wanted)
    return [row[0] for row in rows]


def _joined(names: Sequence[str]) -> str:
    """Return a name for merged topics: the first three, and how many more."""
    shown = [name if len(name) <= 50 else f"{name[:47].rstrip()}..." for name in names[:3]]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return " / ".join(shown) + more


def _different(names: Sequence[str]) -> list[str]:
    """Return names with a number behind those that were there already."""
    taken: set[str] = set()
    found = []
    for name in names:
        number, new = 1, name
        while _same(new) in taken:
            number += 1
            new = f"{name} ({number})"
        taken.add(_same(new))
        found.append(new)
    return found


def _group_names(
    texts: Sequence[str], vectors: Vectors, groups: Integers, centres: Vectors
) -> list[str]:
    """Return a name for each group: its most central text if that is short, else typical words."""
    bags = [set(re.findall(r"[^\W\d_]{3,}", text.casefold())) for text in texts]
    everywhere = Counter(word for bag in bags for word in bag)
    names = []
    for group, centre in enumerate(centres):
        members = np.flatnonzero(groups == group)
        central = texts[members[np.argmax(np.round(vectors[members] @ centre, 5))]]
        clean = " ".join("".join(each if each.isprintable() else " " for each in central).split())
        if 0 < len(clean) <= _LONGEST_CENTRAL:
            names.append(clean)
            continue
        here = Counter(word for each in members for word in bags[each])
        lift = {
            word: count * math.log(count * len(texts) / (len(members) * everywhere[word]))
            for word, count in here.items()
        }
        typical = sorted(lift, key=lambda word: (-lift[word], word))[:3]
        names.append(", ".join(typical) or f"group {group + 1}")
    return names


# Groups of unit vectors. Rounded where a last bit would decide, so that machines agree.


def _in_order(groups: Integers) -> Integers:
    """Return groups by new numbers: in the order of their first members."""
    _, first, number = np.unique(groups, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[number].astype(np.int64)


def _means(vectors: Vectors, groups: Integers, count: int) -> Vectors:
    """Return the mean of each group, of unit length, shape (count, d)."""
    sums = np.zeros((count, vectors.shape[1]))
    np.add.at(sums, groups, vectors.astype(np.float64))
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    _, first = np.unique(groups, return_index=True)
    # Opposite vectors have no mean: the first one stands for them.
    sums = np.where(lengths > 1e-6, sums, vectors[first])
    units: Floats = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    return units.astype(np.float32)


def _linked(vectors: Vectors, count: int) -> Integers:
    """Return the group of each vector, shape (n,), by average link on cosines."""
    from scipy.cluster.hierarchy import linkage

    above = np.triu_indices(len(vectors), 1)
    distances = np.round(1.0 - (vectors @ vectors.T)[above].astype(np.float64), 5)
    merges = linkage(np.maximum(distances, 0.0), "average")[: len(vectors) - count, :2]
    parent = np.arange(len(vectors) + len(merges))
    for number, pair in enumerate(merges.astype(np.int64)):
        parent[pair] = len(vectors) + number
    # From the last merge down, each points to the last one that it is part of.
    for node in range(len(parent) - 1, -1, -1):
        parent[node] = parent[parent[node]]
    return np.unique(parent[: len(vectors)], return_inverse=True)[1].astype(np.int64)


def _k_means(vectors: Vectors, count: int, *, rounds: int = 30) -> Integers:
    """Return the group of each vector, shape (n,), by spherical k-means from a public seed.

    No group is empty, as long as there are `count` different vectors.
    """
    centres = vectors[_spread(vectors, count)]
    groups = np.full(len(vectors), -1)
    for _ in range(rounds):
        cosines, found = _nearest(vectors, centres)
        for empty in np.setdiff1d(np.arange(count), found):
            # It takes the vector that is farthest from its own centre, and not alone there.
            crowded = np.bincount(found, minlength=count)[found] > 1
            taken = int(np.argmin(np.where(crowded, cosines, np.inf)))
            found[taken], cosines[taken] = empty, np.inf
        if np.array_equal(found, groups):
            break
        groups = found
        centres = _means(vectors, groups, count)
    return groups


def _nearest(vectors: Vectors, centres: Vectors) -> tuple[Floats, Integers]:
    """Return each vector's highest cosine with a centre, and that centre, both of shape (n,)."""
    cosines, found = np.empty(len(vectors)), np.empty(len(vectors), np.int64)
    for start in range(0, len(vectors), 4096):
        rows = slice(start, start + 4096)
        products = np.round(vectors[rows] @ centres.T, 5)
        found[rows] = products.argmax(axis=1)
        cosines[rows] = products.max(axis=1)
    return cosines, found


def _spread(vectors: Vectors, count: int) -> list[int]:
    """Return the places of vectors far from each other, to start from (k-means++)."""
    drawn = public_uniforms(_START, count)
    places = [int(drawn[0] * len(vectors))]
    distance = np.full(len(vectors), np.inf)
    while len(places) < count:
        newest = 1.0 - np.round(vectors @ vectors[places[-1]], 5).astype(np.float64)
        distance = np.minimum(distance, np.maximum(newest, 0.0))
        share = distance.cumsum()
        # Where all that is left is a copy, any will do.
        if share[-1] == 0:
            left = np.setdiff1d(np.arange(len(vectors)), places)
            places.append(int(left[0]))
        else:
            found = np.searchsorted(share, drawn[len(places)] * share[-1], side="right")
            places.append(min(int(found), len(vectors) - 1))
    return places
