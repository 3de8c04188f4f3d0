"""What a corpus answers: topics with counts, shares of labels, words and facts, and how sure it is.

Every ± is the half width of an interval that holds 95 of 100 times, and is about the noise alone:
what is *near* a question is what the encoder thinks.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from discreet.text.facts import Fact

# What is said where noise could be all that there is.
NOT_CLEAR = "not clear of the noise"

# A paragraph names so many labels; `shares` has all.
_SHOWN = 3


class _Counted(NamedTuple):
    name: str
    count: int  # type: ignore[assignment]  # of a tuple, which nobody needs here
    margin: float


class NearTopic(_Counted):
    """A public topic near a question: (name, count, margin), and how near it is.

    Attributes:
        name: of the topic.
        count: about how many texts have it for their nearest topic.
        margin: the ± of the count.
        near: the cosine of question and topic, at most 1.
        noun: what is counted: "texts"; "people" where each counts for one, with all texts.
    """

    near: float
    noun: str

    def __new__(
        cls, name: str, count: int, margin: float, near: float, noun: str = "texts"
    ) -> Self:
        """Return the three with the others beside them: it unpacks as name, count, margin."""
        made = super().__new__(cls, name, count, margin)
        made.near, made.noun = near, noun
        return made

    @property
    def clear(self) -> bool:
        """Whether there are any such texts, noise aside."""
        return self.count > self.margin

    def __str__(self) -> str:
        if not self.clear:
            return f"{self.name}, at most {max(self.count, 0) + self.margin:,.0f} {self.noun}"
        return f"{self.name}, {self.count:,} ± {self.margin:,.0f} {self.noun}"


class Share(NamedTuple):
    """The share of a label among texts near a question.

    Attributes:
        share: from 0 to 1.
        margin: the ± of it.
    """

    share: float
    margin: float

    @property
    def clear(self) -> bool:
        """Whether the label is there at all, noise aside."""
        return self.share > self.margin

    def __str__(self) -> str:
        if not self.clear:
            return f"{NOT_CLEAR} (at most {min(self.share + self.margin, 1.0):.0%})"
        digits = 0 if self.margin >= 0.01 else 1
        return f"{self.share:.{digits}%} ± {self.margin:.{digits}%}"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a corpus answers to a question. `str(answer)` is a paragraph for people.

    Attributes:
        question: as it was asked.
        topics: the nearest public topics, the nearest first; none without topics.
        shares: of labels among texts near the question, the largest first; none without labels.
        words: that are typical of texts near it; None if none were released.
        facts: words that many texts say in answer to it; None if none were released.
        covered: whether a topic is near enough for the answer to be about the question: a hint.
            None without topics: nothing tells.
        near: the cosine with the nearest topic.
        threshold: the cosine that a covered question has.
    """

    question: str
    topics: tuple[NearTopic, ...] = ()
    shares: Mapping[Any, Share] = field(default_factory=dict)
    words: tuple[str, ...] | None = None
    facts: tuple[Fact, ...] | None = None
    covered: bool | None = None
    near: float | None = None
    threshold: float | None = None

    def __str__(self) -> str:
        first = [self.caveat] if self.caveat else []
        return " ".join([*first, *self._topics, *self._shares, *self._words, *self._facts])

    def to_dict(self) -> dict[str, Any]:
        """Return all of it, ready for JSON."""
        return {
            "question": self.question,
            "covered": self.covered,
            "near": self.near,
            "threshold": self.threshold,
            "topics": [
                {**each._asdict(), "near": each.near, "clear": each.clear, "noun": each.noun}
                for each in self.topics
            ],
            "shares": [
                {"label": label, **each._asdict(), "clear": each.clear}
                for label, each in self.shares.items()
            ],
            "words": None if self.words is None else list(self.words),
            "facts": None if self.facts is None else [each._asdict() for each in self.facts],
            "text": str(self),
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """Return the answer that `to_dict` was made of.

        Args:
            given: by name, as JSON has it.
        """
        facts, words = given["facts"], given["words"]
        return cls(
            question=given["question"],
            topics=tuple(
                NearTopic(*(each[name] for name in ("name", "count", "margin", "near", "noun")))
                for each in given["topics"]
            ),
            shares={
                each["label"]: Share(each["share"], each["margin"]) for each in given["shares"]
            },
            words=None if words is None else tuple(words),
            facts=None if facts is None else tuple(Fact(**each) for each in facts),
            covered=given["covered"],
            near=given["near"],
            threshold=given["threshold"],
        )

    @property
    def caveat(self) -> str:
        """What has to be said first: that the texts may be about something else; or nothing."""
        if self.facts is not None and self.covered is None:
            return "Without topics, nothing tells whether the texts are about this question."
        if self.covered is not False or self.near is None or self.threshold is None:
            return ""
        return (
            "Perhaps no topic is near this question, and what follows is about something else "
            f"(cosine {self.near:.2f}, and {self.threshold:.2f} is near)."
        )

    @property
    def _topics(self) -> list[str]:
        return [f"Nearest topics: {'; '.join(map(str, self.topics))}."] if self.topics else []

    @property
    def _shares(self) -> list[str]:
        if not self.shares:
            return []
        clear = [f"{label} {share}" for label, share in self.shares.items() if share.clear]
        more = len(clear) - _SHOWN
        if more > 0:
            clear = [*clear[:_SHOWN], f"and {more} more with less"]
        return [f"Labels near it: {', '.join(clear) if clear else NOT_CLEAR}."]

    @property
    def _words(self) -> list[str]:
        if self.words is None:
            return []
        return [f"Typical words: {', '.join(self.words) or 'none is clear of the noise'}."]

    @property
    def _facts(self) -> list[str]:
        if self.facts is None:
            return []
        if not self.facts:
            return ["No name that many have is an answer."]
        said = [f"{each.word} ({each.said})" for each in self.facts]
        return [f"Names that many have, the likeliest answer first (a guess): {', '.join(said)}."]
