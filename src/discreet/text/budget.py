"""Which part of a corpus spends what: a public rule, from what is asked for and nothing else.

Counts of topics have Laplace noise and cost ε alone. What else there is (typical words, names that
many texts have, what they answer) is Gaussian, and shares the squared budget that is left.
"""

from dataclasses import dataclass

from discreet import _validate

# ε of the table of topics, where other parts want some of it, too.
_TABLE = 0.5

# Of the table's ε, to find topics among public words.
_FINDING = 0.2

# Of the squared budget of facts: to find names (less where ε is large: then few records are enough
# for a name anyway), and to count them.
_NAMES, _NAMES_IF_LARGE, _LARGE = 0.3, 0.2, 5.0
_COUNTS = 0.1

# Of δ, for names that only one unit has.
_DISCLOSURE = 0.1


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What each part of a corpus spends.

    Attributes:
        finding: ε of the counts that topics are found by.
        table: ε of the table of topics.
        words: share of the squared Gaussian budget that typical words have.
        names: the same of names that many texts have.
        counts: of how many texts have each.
        learning: of what they answer.
        disclosure: δ of a name that only one unit has.
    """

    finding: float = 0.0
    table: float = 0.0
    words: float = 0.0
    names: float = 0.0
    counts: float = 0.0
    learning: float = 0.0
    disclosure: float = 0.0

    def __post_init__(self) -> None:
        for name in ("finding", "table", "disclosure"):
            _validate.real(name, getattr(self, name), at_least=0)
        for name in ("words", "names", "counts", "learning"):
            _validate.real(name, getattr(self, name), at_least=0, at_most=1)

    @classmethod
    def of(
        cls, *, epsilon: float, delta: float, topics: bool, finding: bool, words: bool, facts: bool
    ) -> "Budget":
        """Return the budget of a corpus with these parts.

        Args:
            epsilon: of the whole release.
            delta: of the whole release.
            topics: whether topics are counted.
            finding: whether they are found privately.
            words: whether there are typical words.
            facts: whether there are facts.
        """
        gaussian = words or facts
        pure = (epsilon * _TABLE if gaussian else epsilon) if topics else 0.0
        half = 0.5 if words and facts else 1.0
        found = _NAMES_IF_LARGE if epsilon >= _LARGE else _NAMES
        shares = (found, _COUNTS, 1 - found - _COUNTS) if facts else (0.0, 0.0, 0.0)
        return cls(
            finding=_FINDING * pure if finding else 0.0,
            table=(1 - _FINDING) * pure if finding else pure,
            words=half if words else 0.0,
            names=half * shares[0],
            counts=half * shares[1],
            learning=half * shares[2],
            disclosure=_DISCLOSURE * delta if facts else 0.0,
        )

    @property
    def gaussian(self) -> float:
        """The share of the squared Gaussian budget that all parts have together."""
        return self.words + self.names + self.counts + self.learning

    @property
    def lines(self) -> list[str]:
        """What each part costs, for people."""
        pure = [
            f"{what} ε = {cost:.3g}"
            for what, cost in (("finding topics", self.finding), ("counts of topics", self.table))
            if cost
        ]
        shares = (
            ("typical words", self.words),
            ("finding names", self.names),
            ("counting them", self.counts),
            ("what they answer", self.learning),
        )
        squared = [f"{what} {share:.0%}" for what, share in shares if share]
        if squared:
            rest = "of the rest" if pure else "all of it"
            pure.append(f"{rest}, as shares of the squared budget: {', '.join(squared)}")
        if self.disclosure:
            pure.append(f"δ = {self.disclosure:.3g} for names that only one unit has")
        return pure
