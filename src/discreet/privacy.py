"""What is promised: small frozen values that print as sentences.

`Privacy` is a number pair with its neighbouring relation; `Guarantee` adds whom it protects and
what it covers; a `Card` is all that a release says about itself.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from enum import StrEnum

from discreet import _validate
from discreet.errors import InvalidInput

# How everything that was made with a test source of noise begins to speak of itself.
NOT_PRIVATE = "NOT PRIVATE"

# The title of the line of a card that names what was taken from the rows.
TAKEN = "taken from the data"

# How the scope of most releases says, in files, that queries cost nothing.
_ANSWERS = ", with all answers to any queries,"


class Neighbours(StrEnum):
    """Which two data sets must be hard to tell apart.

    Under `ADD_REMOVE` one unit is present or absent, so the number of units is private. Under
    `REPLACE` one unit is exchanged for another, so the number of units is public. The same noise
    gives different guarantees under the two: never compare or compose across them.
    """

    ADD_REMOVE = "add_remove"
    REPLACE = "replace"

    @property
    def change(self) -> str:
        """What happens to one unit between two neighbouring data sets, as a participle."""
        return {"add_remove": "added or removed", "replace": "replaced by another"}[self.value]

    @classmethod
    def parse(cls, value: object) -> "Neighbours":
        """Return the relation that a value is or names.

        Args:
            value: one of the two, or its name.

        Returns:
            The relation.

        Raises:
            InvalidInput: if it names none.
        """
        return _validate.choice("neighbours", value, cls)


@dataclass(frozen=True)
class Privacy:
    """(ε, δ)-differential privacy under one neighbouring relation.

    For all neighbouring data sets D, D' and every set of outputs S:
    Pr[M(D) ∈ S] ≤ e^ε · Pr[M(D') ∈ S] + δ.

    Attributes:
        epsilon: ε, at least 0.
        delta: δ, from 0 to 1.
        neighbours: the relation, or its name.
    """

    epsilon: float
    delta: float
    neighbours: Neighbours

    def __post_init__(self) -> None:
        epsilon = _validate.real("epsilon", self.epsilon, at_least=0)
        delta = _validate.real("delta", self.delta, at_least=0, at_most=1)
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", delta)
        object.__setattr__(self, "neighbours", Neighbours.parse(self.neighbours))

    def covers(self, spent: "Privacy") -> bool:
        """Return whether a mechanism that spends so much also satisfies this.

        Args:
            spent: under the same relation.

        Returns:
            Whether neither its ε nor its δ is larger.

        Raises:
            InvalidInput: if it is under another relation.
        """
        _validate.instance("spent", spent, Privacy)
        if self.neighbours is not spent.neighbours:
            raise InvalidInput(
                f"Expected one neighbouring relation, got {self.neighbours} and {spent.neighbours}."
            )
        return spent.epsilon <= self.epsilon and spent.delta <= self.delta

    @property
    def figures(self) -> str:
        """ε and δ as a card shows them, rounded up."""
        return f"ε = {rounded_up(self.epsilon)}, δ = {rounded_up(self.delta)}"

    # Files of the paper's structures keep this sentence as a part of their scope.
    def __str__(self) -> str:
        change = self.neighbours.change
        return f"({self.figures})-differentially private when one record is {change}"


@dataclass(frozen=True)
class Guarantee(Privacy):
    """A `Privacy` with whom it protects (`unit`) and what it covers (`scope`).

    Attributes:
        epsilon: ε, at least 0.
        delta: δ, from 0 to 1.
        neighbours: the relation, or its name.
        unit: what one record is, for instance "row" or "customer".
        scope: what may be given away under the promise, for instance "the whole release".
    """

    unit: str
    scope: str

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("unit", "scope"):
            text = getattr(self, name)
            if not isinstance(text, str) or not text.strip():
                _validate.reject_argument(name, text, "a non-empty description")

    def __str__(self) -> str:
        mark, scope = _without_mark(self.scope)
        change = {
            Neighbours.ADD_REMOVE: f"Adding or removing any one {self.unit}",
            Neighbours.REPLACE: f"Replacing any one {self.unit} by another",
        }[self.neighbours]
        return (
            f"{mark}{change} changes the probability of any outcome by at most a factor e^ε = "
            f"{_growth(self.epsilon)}, apart from δ = {rounded_up(self.delta)}. This covers "
            f"{_with_answers(scope)}."
        )


@dataclass(frozen=True)
class Card:
    """What a release says about itself, for people and for programs. Public numbers only.

    What is on it follows from settings and from the noisy sums: neither costs privacy. (The number
    of rows is on it only where it is public.) What was taken from the rows all the same is named on
    it (`TAKEN`).

    Attributes:
        facts: (name, value) pairs in order, for programs.
        sentences: (title, text) pairs in order, for people.
    """

    facts: tuple[tuple[str, object], ...]
    sentences: tuple[tuple[str, str], ...]

    @property
    def stated(self) -> dict[str, str]:
        """What the builder states of where it comes from (`discreet.Stated`); no file proves it."""
        found = self.to_dict().get("stated", {})
        return dict(found) if isinstance(found, Mapping) else {}

    def to_dict(self) -> dict[str, object]:
        """Return the facts under their names, ready for JSON."""
        return dict(self.facts)

    def __str__(self) -> str:
        return titled(self.sentences)


def taken(leaks: Sequence[str]) -> list[tuple[str, str]]:
    """Return the line of a card that names what was taken from the rows, if anything was."""
    return [(TAKEN, f"{', '.join(leaks)}: not covered by the guarantee")] if leaks else []


def titled(sentences: Sequence[tuple[str, str]]) -> str:
    """Return titles and texts, one a line, with all texts below each other."""
    width = max(len(title) for title, _ in sentences) + 2
    return "\n".join(f"{title:<{width}}{text}" for title, text in sentences)


def _without_mark(scope: str) -> tuple[str, str]:
    """Return the mark that a scope begins with if it is not private, and the rest of it."""
    for end in ("): ", ": "):
        mark, found, rest = scope.rpartition(end)
        if found and mark.startswith(NOT_PRIVATE):
            return f"{mark}{found}", rest
    return "", scope


def _with_answers(scope: str) -> str:
    """Return a scope, which files keep as a part of a longer sentence, as the end of one."""
    who = "they" if scope.startswith("all ") else "it"
    said = scope.replace(_ANSWERS, f" and every answer {who} will ever give,")
    return said.rstrip(" ,.")


def _growth(epsilon: float) -> str:
    """Return e^ε as a number, or as a power where it leaves float64."""
    return rounded_up(math.exp(epsilon)) if epsilon < 700 else f"e^{rounded_up(epsilon)}"


def rounded_up(value: float) -> str:
    """Four significant digits, never below the value: a printed promise must not be too good."""
    upwards = Context(prec=4, rounding=ROUND_CEILING)
    return f"{float(upwards.create_decimal(repr(float(value)))):.4g}"


def rounded_down(value: float) -> str:
    """Four significant digits, never above the value: what is said to be left must be there."""
    downwards = Context(prec=4, rounding=ROUND_FLOOR)
    return f"{float(downwards.create_decimal(repr(float(value)))):.4g}"
