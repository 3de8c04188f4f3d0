"""Words that many texts say: what might be one, what a text gives for it, what a question asks.

Every function here looks at ONE text, and at public things: word frequencies, words that were
released, a question. Nothing here adds noise or counts.
"""

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from discreet import _validate
from discreet._typing import Array, Floats
from discreet.errors import InvalidInput
from discreet.text.encoders import Encoder

# How many characters of a text are looked at.
LONGEST_TEXT = 20_000

# The class of texts that say none of the released words. No word of a text has brackets.
OTHER = "(other)"

# Where an answer is asked for, in a sentence such as "The diagnosis is ___".
BLANK = "___"

# How many candidates of a text count, and how much less each counts than the one before. Fewer or
# even weights find more where facts are the rarest words of all; these find real words, too.
MOST = 4
DECAY = 0.7

# Zipf: the logarithm of how often a word is said among 10^9. "rheumatism" has 2.6, "rain" 4.8.
_RARE = 3.0
# A common word that begins a sentence joins a name that follows, as in "Sudden Infant Death".
_JOINS = 5.0
# The most common words are no names by themselves, whatever their capitals: "The", "You".
_COMMON = 6.0

# Longer runs are headlines, or text without punctuation.
_MOST_WORDS = 8
_LONGEST_WORD = 40
_LONGEST_NUMBER = 4

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_CHUNK = re.compile(r"\S+")
_ADDRESS = re.compile(r"@|://|www\.")
_STOPS = frozenset('.!?:;\u2026\n\r"\u201c\u201d\u2022*')

# The words on either side of an answer that say what it is an answer to.
_BESIDE = 4

# A name behind one of these is a person's: rare, and nobody else's.
_INTRODUCES = frozenset(["am", "i'm", "named", "mr", "mrs", "ms", "dr", "dear", "hi", "hello"])

# The first word of a question stands for the answer: "what is the cause" asks "the cause is ___".
_ASKS = frozenset(["what", "which", "who", "whom", "whose", "where", "when", "how"])
_IS = frozenset(["is", "are", "was", "were"])

# The weights of a text, of the other words that it says, and of an answer's neighbours.
_PART_WEIGHTS = (1.0, 0.5, 0.5)

# Of log(count): otherwise frequent words answer everything.
_DAMPING = 0.5

# The zipf frequency of one word, in lower case. Public.
Rarity = Callable[[str], float]


def rarity(language: str = "en") -> Rarity:
    """Return the zipf frequencies of a language, from the public lists of `wordfreq`.

    Args:
        language: as `wordfreq` calls it.

    Returns:
        A function of a word in lower case; words that are not listed have 0.

    Raises:
        InvalidInput: wordfreq is missing, or does not have the language.
    """
    try:
        import wordfreq
    except ImportError:
        raise InvalidInput("Expected wordfreq: pip install 'discreet[text]'.") from None

    if language not in wordfreq.available_languages():
        _validate.reject_argument("language", language, "a language that wordfreq has")

    @lru_cache(maxsize=2**18)
    def zipf(word: str) -> float:
        return float(wordfreq.zipf_frequency(word, language))

    return zipf


def forget(rarity: Rarity | None) -> None:
    """Let go of all words that were looked up: they are those of private texts.

    They are kept to be found again, here and by wordfreq, and would be as long as a release is.

    Args:
        rarity: of `rarity`; whatever has no memory has nothing to forget.
    """
    import wordfreq

    getattr(rarity, "cache_clear", lambda: None)()
    getattr(wordfreq, "_wf_cache", {}).clear()


class _Token(NamedTuple):
    """A word of a text, PRIVATE: its spelling in any text, where it is, and how it is set."""

    plain: str
    start: int
    end: int
    capital: bool
    # Whether it begins a sentence, and whether it follows the last word without punctuation.
    initial: bool
    joined: bool


def candidates(text: str, *, most: int = MOST, rarity: Rarity) -> tuple[str, ...]:
    """Return words or phrases of one text that might be facts, the rarest first.

    They are runs of words that are rare, or capitalised within a sentence. A run is as rare as its
    rarest word; among equals, what is said first comes first; who is greeted or introduced comes
    last. The same name has the same spelling in any text: lower case, one space between words,
    straight apostrophes, no possessive.

    Args:
        text: private; its first `LONGEST_TEXT` characters are looked at.
        most: how many are returned, at the most.
        rarity: zipf frequencies of words.
    """
    tokens = _tokens(_clean(text))
    found: dict[str, tuple[bool, float]] = {}
    for first, last in _runs(tokens, rarity):
        person = _introduced(tokens, first)
        for words in _parts([token.plain for token in tokens[first:last]], rarity):
            zipf = _rarest(words, rarity)
            if zipf < _COMMON:
                found.setdefault(" ".join(words), (person, zipf))
    return tuple(sorted(found, key=found.__getitem__)[:most])


def _rarest(words: list[str], rarity: Rarity) -> float:
    """Return the zipf frequency of a phrase: of its rarest word. Numbers are not rare."""
    return min((rarity(word) for word in words if not word[0].isdigit()), default=_COMMON)


def _clean(text: str) -> str:
    """Return the text that is looked at: one spelling of a character, no addresses."""
    text = text[:LONGEST_TEXT]
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)[:LONGEST_TEXT].replace("\u2019", "'")
    if _ADDRESS.search(text):
        # A comma, so that what stands before and behind an address is not one name.
        text = _CHUNK.sub(lambda match: "," if _ADDRESS.search(match[0]) else match[0], text)
    return text


def _tokens(text: str) -> list[_Token]:
    """Return the words of a text that was cleaned."""
    tokens, end = [], 0
    capitals = not text.isupper()
    for match in _WORD.finditer(text):
        word = match[0]
        start = match.start()
        gap = text[end:start]
        joined = gap in (" ", "-") or (gap.isspace() and "\n" not in gap)
        initial = not end or not (joined or _STOPS.isdisjoint(gap))
        end = match.end()
        plain = word.casefold()
        if plain[-2:] == "'s" and len(plain) > 3:
            plain = plain[:-2]
        capital = capitals and word[0].isupper()
        tokens.append(_Token(plain, start, end, capital, initial, joined))
    return tokens


def _runs(tokens: list[_Token], rarity: Rarity) -> list[tuple[int, int]]:
    """Return runs of words that might be a name: their first word, and the first one behind."""
    runs = []
    first = -1
    for index, token in enumerate(tokens):
        # Most words are neither: this comes first for speed.
        part = (token.capital or rarity(token.plain) < _RARE) or token.plain[0].isdigit()
        if first >= 0 and not (part and token.joined and _goes_on(token, rarity)):
            runs.append((first, index))
            first = -1
        if part and first < 0 and _begins(tokens, index, rarity):
            first = index
    return [*runs, (first, len(tokens))] if first >= 0 else runs


def _introduced(tokens: list[_Token], first: int) -> bool:
    """Whether a name that begins here is likely a person's, who would take a place in vain."""
    if not first or not tokens[first].capital:
        return False
    before = tokens[first - 1].plain
    named = before == "is" and first > 1 and tokens[first - 2].plain == "name"
    return named or before in _INTRODUCES


def _goes_on(token: _Token, rarity: Rarity) -> bool:
    """Whether a word can be the second or a later one of a name."""
    word = token.plain
    if sum(map(str.isdigit, word)) > _LONGEST_NUMBER:
        return False
    if word == "i" or word.startswith("i'") or word in _INTRODUCES or len(word) > _LONGEST_WORD:
        return False
    return token.capital or word[0].isdigit() or rarity(word) < _RARE


def _begins(tokens: list[_Token], index: int, rarity: Rarity) -> bool:
    """Whether a word can be the first one of a name."""
    token = tokens[index]
    if len(token.plain) == 1 or not _goes_on(token, rarity) or token.plain[0].isdigit():
        return False
    zipf = rarity(token.plain)
    if not token.initial or zipf < _RARE:
        return True
    # Any word has a capital here. It is part of a name if it is not too common, and one follows.
    if zipf >= _JOINS or index + 1 == len(tokens):
        return False
    after = tokens[index + 1]
    return after.joined and after.capital and len(after.plain) > 1 and _goes_on(after, rarity)


def _parts(run: list[str], rarity: Rarity) -> list[list[str]]:
    """Return a run, or the rare words of one that is too long to be a name."""
    if len(run) <= _MOST_WORDS:
        return [run]
    return [[word] for word in run if not word[0].isdigit() and rarity(word) < _RARE]


@dataclass(frozen=True)
class Vocabulary:
    """Words and phrases that were released, and where they are in a text.

    Attributes:
        words: as `candidates` spells them. Of a text that says many, the first of these count.
    """

    words: tuple[str, ...]
    _by_first: Mapping[str, list[list[str]]] = field(init=False, repr=False, compare=False)
    _place: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_place", {word: at for at, word in enumerate(self.words)})
        by_first: dict[str, list[list[str]]] = {}
        for phrase in sorted((word.split() for word in self.words), key=len, reverse=True):
            by_first.setdefault(phrase[0], []).append(phrase)
        object.__setattr__(self, "_by_first", by_first)

    @classmethod
    def ranked(cls, words: Iterable[str], rarity: Rarity) -> "Vocabulary":
        """Return released words, the rarest first; equally rare ones by the alphabet.

        Args:
            words: as `candidates` spells them.
            rarity: zipf frequencies of words.
        """
        return cls(tuple(sorted(words, key=lambda word: (_rarest(word.split(), rarity), word))))

    def find(self, plain: Sequence[str]) -> list[tuple[str, int, int]]:
        """Return which words occur, and from which word of a text to which: the longest first.

        Args:
            plain: the words of one text, in the spelling of any text.
        """
        found, index = [], 0
        while index < len(plain):
            for phrase in self._by_first.get(plain[index], ()):
                if plain[index : index + len(phrase)] == phrase:
                    found.append((" ".join(phrase), index, index + len(phrase)))
                    index += len(phrase) - 1
                    break
            index += 1
        return found

    def first(self, words: Iterable[str], most: int) -> list[str]:
        """Return those words that come first in the vocabulary, in its order.

        Args:
            words: of the vocabulary, each of them once.
            most: how many, at the most.
        """
        return sorted(words, key=self._place.__getitem__)[:most]


@dataclass(frozen=True)
class Piece:
    """What a text gives for one released word that it says. PRIVATE.

    Attributes:
        label: the word.
        text: the text without any released word.
        other: the other released words, or nothing.
        context: the words on either side, or nothing.
    """

    label: str
    text: str
    other: str
    context: str


def pieces(text: str, vocabulary: Vocabulary, *, most: int = 2) -> tuple[Piece, ...]:
    """Return what one text gives for the released words that it says.

    If it says more than `most`, those that come first in the vocabulary count.

    A text that says none gives one piece, of the class `OTHER`.

    Args:
        text: private; its first `LONGEST_TEXT` characters are looked at.
        vocabulary: the released words.
        most: how many pieces there are, at the most.
    """
    text = _clean(text)
    tokens = _tokens(text)
    found = vocabulary.find([token.plain for token in tokens])
    rest = _without(text, [(tokens[a].start, tokens[b - 1].end) for _, a, b in found])
    if not found:
        return (Piece(OTHER, rest, "", ""),)
    places = {word: (a, b) for word, a, b in reversed(found)}
    words = list(dict.fromkeys(word for word, _, _ in found))
    hidden = {index for _, a, b in found for index in range(a, b)}
    return tuple(
        Piece(
            label=word,
            text=rest,
            other=", ".join(other for other in words if other != word),
            context=_context(tokens, places[word], hidden),
        )
        for word in vocabulary.first(words, most)
    )


def _without(text: str, spans: list[tuple[int, int]]) -> str:
    """Return a text without some of its parts, which are in order."""
    ends = [0, *(end for _, end in spans)]
    starts = [*(start for start, _ in spans), len(text)]
    kept = "".join(text[end:start] for end, start in zip(ends, starts, strict=True))
    return " ".join(kept.split())


def _context(tokens: list[_Token], place: tuple[int, int], hidden: set[int]) -> str:
    """Return the words of a sentence on either side of a place in it."""
    first, last = place
    before = range(first - 1, -1, -1)
    left: list[str] = []
    for index in before:
        if tokens[index + 1].initial or len(left) == _BESIDE:
            break
        if index not in hidden:
            left.append(tokens[index].plain)
    right: list[str] = []
    for index in range(last, len(tokens)):
        if tokens[index].initial or len(right) == _BESIDE:
            break
        if index not in hidden:
            right.append(tokens[index].plain)
    return " ".join([*reversed(left), BLANK, *right])


def combine(text: Array, other: Array | None = None, context: Array | None = None) -> Floats:
    """Return the key of three texts: a unit vector, shape (3 d,), or zeros if all parts are.

    Args:
        text: the vector of `Piece.text`, shape (d,): of unit length, or zeros, as are the others.
        other: of `Piece.other`; None if that is empty.
        context: of `Piece.context`; None if that is empty.
    """
    key = np.zeros((3, len(text)))
    square = 0.0
    for row, part, weight in zip(key, (text, other, context), _PART_WEIGHTS, strict=True):
        if part is not None and np.any(part):
            np.multiply(part, weight, out=row)
            square += weight**2
    # Parts are of unit length, so this is known: no sum over entries, whose order would matter.
    return key.reshape(-1) / math.sqrt(square) if square else key.reshape(-1)


def piece_key(piece: Piece, encoder: Encoder) -> Floats:
    """Return the key of what a text gives for a word, shape (3 d,).

    Args:
        piece: private.
        encoder: from one text to a unit vector, or to zeros.
    """
    return combine(
        encoder(piece.text),
        encoder(piece.other) if piece.other else None,
        encoder(piece.context) if piece.context else None,
    )


def question_key(
    question: str, vocabulary: Vocabulary, *, encoder: Encoder, blank: str | None = None
) -> Floats:
    """Return the key of a question, shape (3 d,).

    Released words that the question says count as the other words of a text. Without a blank, what
    stands behind the last question word (in English) says where the answer would be.

    Args:
        question: in words.
        vocabulary: the released words.
        encoder: that keys were made with.
        blank: a sentence with `BLANK` in the answer's place, such as "The diagnosis is ___".
    """
    text = _clean(question)
    tokens = _tokens(text)
    found = vocabulary.find([token.plain for token in tokens])
    rest = _without(text, [(tokens[a].start, tokens[b - 1].end) for _, a, b in found])
    other = ", ".join(dict.fromkeys(word for word, _, _ in found))
    context = _asked_context(tokens) if blank is None else _blank_context(blank)
    return piece_key(Piece(OTHER, rest, other, context), encoder)


def _blank_context(blank: str) -> str:
    """Return the words on either side of the blank, as `pieces` gives them."""
    before, found, after = _validate.text("blank", blank).partition(BLANK)
    if not found:
        _validate.reject_argument("blank", blank, f"a sentence with {BLANK}")
    left = [token.plain for token in _tokens(before)][-_BESIDE:]
    right = [token.plain for token in _tokens(after)][:_BESIDE]
    return " ".join([*left, BLANK, *right])


def _asked_context(tokens: list[_Token]) -> str:
    """Return the words on either side of what is asked for, or nothing."""
    asks = [index for index, token in enumerate(tokens) if token.plain in _ASKS]
    if not asks:
        return ""
    start = asks[-1] + 1
    ends = [index for index in range(start, len(tokens)) if tokens[index].initial]
    words = [token.plain for token in tokens[start : min(ends, default=len(tokens))]]
    if words and words[0] in _IS:
        return " ".join([*[*words[1:], words[0]][-_BESIDE:], BLANK])
    return " ".join([BLANK, *words[:_BESIDE]])


def scores(
    log_probabilities: Mapping[str, float], counts: Mapping[str, float], question: str
) -> dict[str, float]:
    """Return how well each released word answers, the best first.

    Args:
        log_probabilities: of each class, given the key of the question.
        counts: noisy ones of the released words. Those below one count as one.
        question: whose own words are no answer to it.
    """
    said = f" {' '.join(token.plain for token in _tokens(_clean(question)))} "
    scored = {
        word: float(log_probabilities[word]) - _DAMPING * math.log(max(counts[word], 1.0))
        for word in counts
        if f" {word} " not in said
    }
    return dict(sorted(scored.items(), key=lambda item: (-item[1], item[0])))


class Fact(NamedTuple):
    """A released word that answers a question: (word, count, margin).

    Attributes:
        word: as `candidates` spells it.
        count: about how many texts say it, whatever they are about: noisy. Of a person whose many
            texts are protected together, these count for less.
        margin: the ± of the count.
    """

    word: str
    count: float  # type: ignore[assignment]  # of a tuple, which nobody needs here
    margin: float

    @property
    def clear(self) -> bool:
        """Whether any texts say it, noise aside."""
        return self.count > self.margin

    @property
    def said(self) -> str:
        """How many texts say it, for people; how many at most where noise could be all there is."""
        if not self.clear:
            return f"at most {max(self.count, 0) + self.margin:,.0f}"
        return f"{self.count:,.0f} ± {self.margin:,.0f}"


def template(question: str, facts: Sequence[Fact], *, noun: str = "texts") -> str:
    """Return the sentence that quotes what was released, and nothing else.

    Args:
        question: in words; it is quoted.
        facts: the best one first.
        noun: what was counted.
    """
    asked = " ".join(question[:LONGEST_TEXT].split())
    if not facts:
        return f'No name that many {noun} have is an answer to "{asked}".'
    best, *rest = facts
    said = (
        f'A guess at "{asked}", among names that many {noun} have: "{best.word}" '
        f"(in {best.said} {noun})"
    )
    *others, last = [f'"{fact.word}" ({fact.said})' for fact in rest] or [""]
    behind = f"{', '.join(others)} and {last}" if others else last
    return f"{said}; then {behind}." if rest else f"{said}."
