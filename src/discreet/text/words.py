"""Typical words: which words are more frequent in texts near a question than elsewhere.

The parts that touch one text at a time, and those that read what was released. A text marks at
most `most` words of a public vocabulary and has coordinates of length one at the most. It adds the
outer product of both to sums S, shape (words, coordinates), with an L2 norm of one at the most.
Noise is added elsewhere; `typical` reads noisy sums.

Coordinates are how near a text is to its nearest public anchors (topics), beyond the next one. Two
texts have a large inner product if they are near the same anchors, so ⟨S_w, coordinates of a
question⟩ is how often a word is said in texts near the question, softly counted. How many anchors
there are does not change the noise of that.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from discreet import _validate
from discreet._typing import Floats, Integers
from discreet.errors import InvalidInput
from discreet.features.base import FEATURE_RADIUS, SHRINK
from discreet.noise.lattice import Lattice, exact_product

# Letters of any script; what follows an apostrophe is a token of its own, and in no vocabulary.
_TOKEN = re.compile(r"[^\W\d_]+")

# Shorter tokens are initials, units and remains of contractions.
_LEAST_LETTERS = 3

# Words that say nothing of what a text is about.
_STOP_TEXT = """
    about above across after again against ain all almost along already also although always among
    and another any anybody anyone anything are aren around away back became because become been
    before being below between both but came can cannot cant come could couldn did didn didnt does
    doesn doesnt doing don done dont down during each eight either else enough etc even ever every
    everyone everything few first five for four from further gave get gets getting give given goes
    going gone got had hadn has hasn have haven having hence her here hers herself him himself his
    how however indeed into isn isnt its itself ive just keep kind let like likely lot lots made
    make makes many may maybe might mine more most much must mustn myself near neither never nine
    nobody none nor not nothing now off often okay once one only onto other others our ours
    ourselves out over own per perhaps please put quite rather really said same say saying says
    second see seem seemed seems seen seven several shall she should shouldn since six some somebody
    someone something sometimes somewhat such sure take ten than that thats the their theirs them
    themselves then there therefore these they thing things third this those though three through
    thus together too took toward towards two under until upon use used using very via want wants
    was wasn wasnt way well went were weren what whatever when where whether which while who whole
    whom whose why will with within without won wont would wouldn yes yet you your yours yourself
"""
_STOP = frozenset(_STOP_TEXT.split())

# Anchors are unit vectors in this many units, as rounded vectors of texts are.
_VECTORS = Lattice(bits=16)

# Products of two have 32 bits; less these, their squares can be added in int64.
_DROPPED_BITS = 8

# Of the length of a row, what the constant has: its share of the signal is 1 - √(1 - 1/16) = 3%.
_CONSTANT = 0.25

# Fewer anchors than this tell too little apart; then vectors of words help out.
_LEAST_ANCHORS = 40
_MOST_ANCHORS = 2**12

# Which share of the anchors a text is near. With more, words of neighbouring topics are shown, too;
# with fewer, less is clear of the noise.
_REACH = 0.1
_LEAST_REACH = 3

# Words that are shown by mistake because of noise: one in a hundred questions.
_MISTAKES = 0.01

# Only this share of the vocabulary, the nearest to the question, is looked at.
_CLOSE = 0.1

# Estimated; so that the true one is 1.5 at least, though near is soft here.
_LEAST_LIFT = 2.0


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """A public list of words that texts may mark.

    Attributes:
        words: lower case, each once, the most frequent first. Public: words that are taken from
            private texts void the promise.
        most: how many words one text may mark.
    """

    words: tuple[str, ...]
    most: int = 16

    def __post_init__(self) -> None:
        words = tuple(self.words)
        if not words or not all(_is_word(word) for word in words):
            raise InvalidInput(
                "Expected words to be a list of words in lower case, without digits."
            )
        if len(set(words)) < len(words):
            raise InvalidInput("Expected words to hold each word once.")
        object.__setattr__(self, "words", words)
        object.__setattr__(self, "most", _validate.whole("most", self.most, at_least=1))

    @classmethod
    def common(
        cls, *, size: int = 3000, topics: Iterable[str] = (), most: int = 16
    ) -> "Vocabulary":
        """Return the most frequent English words, without those that say nothing.

        Args:
            size: how many words.
            topics: public texts; what is said in them is in the vocabulary, if it is English.
            most: how many words one text may mark.

        Returns:
            The vocabulary. Frequencies are those of `wordfreq`.

        Raises:
            InvalidInput: if `wordfreq` is not installed, or a number is out of range.
        """
        size = _validate.whole("size", size, at_least=1, at_most=100_000)
        try:
            from wordfreq import top_n_list, zipf_frequency
        except ImportError:
            raise InvalidInput(
                "Expected wordfreq to be installed (pip install wordfreq), or words to be given."
            ) from None
        said = {word for text in topics for word in _tokens(text) if _is_content(word)}
        said = {word for word in said if zipf_frequency(word, "en") > 0}
        frequent = (word for word in top_n_list("en", 4 * size + 1000) if _is_content(word))
        words = dict.fromkeys(sorted(said)[:size])
        for word in frequent:
            if len(words) >= size:
                break
            words[word] = None
        ranked = sorted(words, key=lambda word: (-zipf_frequency(word, "en"), word))
        return cls(words=tuple(ranked), most=most)

    @classmethod
    def from_texts(
        cls, public_texts: Iterable[str], *, size: int = 3000, most: int = 16
    ) -> "Vocabulary":
        """Return the words that most of some public texts say, without those that say nothing.

        Args:
            public_texts: texts of the same kind that anybody may read; never the private ones.
            size: how many words at the most; a word that is said in one text only is left out.
            most: how many words one text may mark.

        Returns:
            The vocabulary.

        Raises:
            InvalidInput: if no word is said in two of them, or a number is out of range.
        """
        size = _validate.whole("size", size, at_least=1)
        counts: Counter[str] = Counter()
        for text in public_texts:
            counts.update({word for word in _tokens(text) if _is_content(word)})
        ranked = sorted(
            (word for word, count in counts.items() if count > 1),
            key=lambda word: (-counts[word], word),
        )
        return cls(words=tuple(ranked[:size]), most=most)

    def marks(self, text: str) -> tuple[int, ...]:
        """Return the places of the words that a text says, of the text and public things alone.

        Args:
            text: PRIVATE.

        Returns:
            At most `most` places in `words`, each once, in rising order. Of more words the rarest
            (by public frequency) are kept.
        """
        places = self._places
        said = sorted({places[token] for token in _tokens(text) if token in places})
        return tuple(said[-self.most :])

    @cached_property
    def _places(self) -> dict[str, int]:
        return {word: place for place, word in enumerate(self.words)}


def mark_weight(marks: int, *, radius: int) -> int:
    """Return the weight w of each of the words that a text marks: about radius/√marks.

    Args:
        marks: how many words the text marks.
        radius: the L2 norm of all its weights, in units.

    Returns:
        The largest integer with marks·w² ≤ radius², exactly; 0 if there are no words.
    """
    return math.isqrt(radius**2 // marks) if marks else 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Directions:
    """Public anchors, and how near a text is to the nearest of them.

    Attributes:
        anchors: unit vectors, rounded to 2^-16; integers, shape (anchors, d). Public.
        reach: how many anchors a text is near, at the most.
    """

    anchors: Integers = field(repr=False)
    reach: int

    def __post_init__(self) -> None:
        if self.anchors.ndim != 2 or not 2 <= len(self.anchors) <= _MOST_ANCHORS:
            _validate.reject("anchors.shape", self.anchors.shape, f"2 to {_MOST_ANCHORS} rows")
        anchors = _VECTORS.clip_rows(_VECTORS.to_real(self.anchors), norm=1.0)
        anchors.flags.writeable = False
        object.__setattr__(self, "anchors", anchors)
        reach = _validate.whole("reach", self.reach, at_least=1, at_most=len(anchors) - 1)
        object.__setattr__(self, "reach", reach)

    @classmethod
    def of(
        cls, topics: ArrayLike, words: ArrayLike | None = None, *, count: int = 128
    ) -> "Directions":
        """Return anchors at public vectors.

        Args:
            topics: vectors of public topics, shape (m, d). More than `count` are merged.
            words: vectors of the vocabulary, shape (v, d); their centres join if there are fewer
                than 40 topics.
            count: how many anchors at the most.

        Returns:
            The anchors. A text is near a tenth of them, and near three at least.

        Raises:
            InvalidInput: if these are no finite vectors of one width, or fewer than two.
        """
        count = _validate.whole("count", count, at_least=_LEAST_ANCHORS, at_most=_MOST_ANCHORS)
        anchors = _centres(_unit_rows("topics", topics), count)
        if words is not None and len(anchors) < _LEAST_ANCHORS:
            others = _unit_rows("words", words)
            if others.shape[1] != anchors.shape[1]:
                _validate.reject("words.shape[1]", others.shape[1], f"{anchors.shape[1]}")
            anchors = np.concatenate([anchors, _centres(others, _LEAST_ANCHORS - len(anchors))])
        reach = max(_LEAST_REACH, round(_REACH * len(anchors)))
        return cls(anchors=_VECTORS.round(anchors), reach=min(reach, len(anchors) - 1))

    @property
    def width(self) -> int:
        """How many coordinates a text has: a constant, and one for each anchor."""
        return len(self.anchors) + 1

    @property
    def constant(self) -> float:
        """The first coordinate of each text: sums of it are how many texts say a word."""
        return self._constant / FEATURE_RADIUS

    @property
    def _constant(self) -> int:
        return round(_CONSTANT * FEATURE_RADIUS)

    def units(self, vectors: ArrayLike) -> Integers:
        """Return coordinates as integers, whose L2 norm is 2^16 at the most, exactly.

        A row's integers are those of the row alone: exact sums of integers, and steps of one row
        or one number. In any batch, at any position, they are the same.

        Args:
            vectors: PRIVATE vectors of texts, shape (n, d); longer than one are cut to that.

        Returns:
            Integers, shape (n, width).

        Raises:
            InvalidInput: if these are no finite vectors of the anchors' width.
        """
        cosines = self._products(vectors)
        following = len(self.anchors) - 1 - self.reach
        floor = np.partition(cosines, following, axis=1)[:, following, None]
        nearer = np.maximum(cosines - floor, 0) >> _DROPPED_BITS
        # Exact in any order: at most 2^12 squares of 2^25.
        squared = np.einsum("ij,ij->i", nearer, nearer)
        room = math.isqrt(FEATURE_RADIUS**2 - self._constant**2)
        # Smaller than the quotient by more than all roundings can add; cutting only shrinks.
        factors = room / np.sqrt(np.maximum(squared, 1).astype(np.float64)) * SHRINK
        out = np.empty((len(cosines), self.width), dtype=np.int64)
        out[:, 0] = self._constant
        out[:, 1:] = np.trunc(nearer * factors[:, None])
        return out

    def coordinates(self, vectors: ArrayLike) -> Floats:
        """Return coordinates as real numbers, whose L2 norm is one at the most, exactly.

        Args:
            vectors: PRIVATE vectors of texts, or those of questions; shape (n, d).

        Returns:
            `units` times 2^-16, shape (n, width).
        """
        return self.units(vectors) / FEATURE_RADIUS

    def nearness(self, vectors: ArrayLike) -> Floats:
        """Return the cosine of each unit vector with the nearest anchor, shape (n,).

        Args:
            vectors: of questions, shape (n, d).
        """
        return np.asarray(self._products(vectors).max(axis=1) / FEATURE_RADIUS**2)

    def _products(self, vectors: ArrayLike) -> Integers:
        """Return inner products with anchors, in units of 2^-32, exactly."""
        rows = np.asarray(vectors)
        if rows.ndim != 2 or rows.shape[1] != self.anchors.shape[1]:
            # The number of rows may be private.
            raise InvalidInput(f"Expected vectors to have shape (n, {self.anchors.shape[1]}).")
        integers = _VECTORS.clip_rows(rows, norm=1.0)
        return exact_product(
            integers, self.anchors.T, left_bound=FEATURE_RADIUS, right_bound=FEATURE_RADIUS
        )


class TypicalWord(NamedTuple):
    """A word that is said more often near a question than elsewhere.

    Attributes:
        word: of the vocabulary.
        lift: how many times more often, estimated.
        z: how clear of the noise that is, in standard deviations.
    """

    word: str
    lift: float
    z: float


def typical(
    sums: Floats,
    question: Floats,
    vocabulary: Vocabulary,
    *,
    noise_sd: float,
    cosines: ArrayLike | None = None,
    most: int = 8,
) -> list[TypicalWord]:
    """Return the words that are typical of texts near a question, the clearest first.

    What is read is released already: this costs no privacy.

    A word's softly counted mentions near the question are compared with what its mentions
    everywhere, times how near words are to the question on average, would give. A word is shown
    if the difference is so clear of the noise that one question in a hundred shows a word by
    mistake, and if the word is said twice as often as elsewhere.

    Args:
        sums: noisy Σ b ⊗ c, shape (words, width); b is 1/√t for the t words that a text marks.
        question: its coordinates, shape (width,).
        vocabulary: whose words the rows of `sums` are.
        noise_sd: standard deviation of the noise in an entry of `sums`.
        cosines: of public vectors of the words with that of the question, shape (words,). Only the
            nearest tenth of the words is looked at: fewer mistakes, and less noise to be clear of.
        most: how many words at the most.

    Returns:
        Words; none if none is clear.

    Raises:
        InvalidInput: if shapes do not match, or a number is out of range.
    """
    noise_sd = _validate.real("noise_sd", noise_sd, above=0)
    most = _validate.whole("most", most, at_least=1)
    _check_shapes(sums, question, vocabulary)
    candidates = _candidates(len(sums), cosines)
    threshold = _threshold(len(candidates))
    rates = _rates(sums, question, noise_sd)
    if rates is None:
        return []
    z, lift = (each[candidates] for each in rates)
    shown = np.flatnonzero((z >= threshold) & (lift >= _LEAST_LIFT))
    best = shown[np.argsort(-z[shown], kind="stable")][:most]
    return [TypicalWord(vocabulary.words[candidates[i]], float(lift[i]), float(z[i])) for i in best]


def _rates(sums: Floats, question: Floats, noise_sd: float) -> tuple[Floats, Floats] | None:
    """Return z and the estimated lift of each word near a question; None if all is noise.

    Args:
        sums: noisy, shape (words, width).
        question: its coordinates, shape (width,).
        noise_sd: of an entry.
    """
    constant, length = float(question[0]), float(np.linalg.norm(question[1:]))
    mentions, mentions_sd = sums[:, 0] / constant, noise_sd / constant
    frequent = mentions > _threshold(len(sums)) * mentions_sd
    if not frequent.any() or length == 0:
        return None
    near = sums[:, 1:] @ (question[1:] / length)
    total = float(mentions[frequent].sum())
    expected = float(near[frequent].sum()) / total
    excess = near - expected * mentions
    z = excess / (noise_sd * math.hypot(1.0, expected / constant))
    # Where next to no text is near, what is expected is not known better than this.
    floor = 2 * noise_sd * math.sqrt(np.count_nonzero(frequent)) / total
    return z, 1 + excess / (np.maximum(mentions, mentions_sd) * max(expected, floor))


def _check_shapes(sums: Floats, question: Floats, vocabulary: Vocabulary) -> None:
    if sums.ndim != 2 or len(sums) != len(vocabulary.words):
        _validate.reject("sums.shape", sums.shape, f"({len(vocabulary.words)}, width)")
    if question.shape != sums.shape[1:]:
        _validate.reject("question.shape", question.shape, f"({sums.shape[1]},)")
    if not question[0] > 0:
        _validate.reject("question[0]", float(question[0]), "above 0")


def _candidates(words: int, cosines: ArrayLike | None) -> Integers:
    """Return the places of the words that are looked at, in rising order."""
    if cosines is None:
        return np.arange(words)
    near = np.asarray(cosines, dtype=np.float64)
    if near.shape != (words,):
        _validate.reject("cosines.shape", near.shape, f"({words},)")
    return np.sort(np.argsort(-near, kind="stable")[: math.ceil(_CLOSE * words)])


def _threshold(candidates: int) -> float:
    """Return z that noise alone exceeds in `_MISTAKES` of so many words: 4.5 for 3,000."""
    from scipy.special import ndtri

    return float(-ndtri(_MISTAKES / candidates))


def _centres(rows: Floats, count: int) -> Floats:
    """Return at most `count` unit vectors near public unit rows: themselves, or centres of them."""
    if len(rows) <= count:
        return rows
    # Farthest first, from the row in the middle: no chance in it.
    chosen = [int(np.argmax(rows @ rows.mean(axis=0)))]
    nearest = rows @ rows[chosen[0]]
    while len(chosen) < count:
        chosen.append(int(np.argmin(nearest)))
        nearest = np.maximum(nearest, rows @ rows[chosen[-1]])
    centres = rows[chosen]
    for _ in range(20):
        cell = np.argmax(rows @ centres.T, axis=1)
        sums = np.zeros_like(centres)
        np.add.at(sums, cell, rows)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        centres = np.where(lengths > 0, sums / np.where(lengths > 0, lengths, 1), centres)
    return np.asarray(centres)


def _unit_rows(name: str, vectors: ArrayLike) -> Floats:
    """Return public vectors, each of length one; those of length zero are left out."""
    rows = np.asarray(vectors, dtype=np.float64)
    if rows.ndim != 2:
        _validate.reject(f"{name}.ndim", rows.ndim, "2")
    if not np.all(np.isfinite(rows)):
        raise InvalidInput(f"Expected {name} to have no NaN and no infinity.")
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray((rows / np.where(lengths > 0, lengths, 1))[lengths[:, 0] > 0])


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text.lower())


def _is_content(word: str) -> bool:
    return len(word) >= _LEAST_LETTERS and word not in _STOP and _is_word(word)


def _is_word(word: object) -> bool:
    return isinstance(word, str) and _tokens(word) == [word]
