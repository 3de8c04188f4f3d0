"""What attacks found, beside what is promised, and how it reads."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from discreet.accounting.promise import Promise
from discreet.audit.bounds import Test, at_least, interval
from discreet.privacy import Neighbours, titled

# All checks of one attack together are wrong about a promise that is kept at most so often.
DOUBT = 0.01

OWNER = "NOT PRIVATE: made from the rows, for their owner. Every file here is made to be attacked."
LIMITS = (
    "An attack that finds more than is allowed refutes the promise. One that finds less proves",
    "nothing: another may do better. The proof is about all of them; discreet audit tests it.",
)


@dataclass(frozen=True)
class Found:
    """How many members are found where so many others are wrongly accused.

    Attributes:
        false_alarms: the share of those who are not in the data that may be accused.
        test: what was counted, at a threshold that was chosen by other noise: so that about such a
            share is accused if all of it is alike.
        at_best: the largest share of members that the promise lets anybody find.
        promised: what (ε, δ) alone lets anybody find, whatever the noise is.
        exact_attention: the share that is found from the answers of exact attention.
        exact_retrieval: from those of a search for the nearest row.
    """

    false_alarms: float
    test: Test
    at_best: float
    promised: float
    exact_attention: float
    exact_retrieval: float

    @property
    def share(self) -> float:
        """The share of members that was found."""
        return self.test.found

    @property
    def interval(self) -> tuple[float, float]:
        """95% of the time the true share lies between these (Clopper and Pearson)."""
        return interval(self.test.hits, self.test.with_unit)

    def holds(self, promise: Promise, doubt: float) -> bool:
        """Return whether the promise allows what was counted, but for this doubt.

        Args:
            promise: of the files.
            doubt: the probability of saying no of a promise that is kept.
        """
        rates = self.test.surely(doubt)
        return rates.found <= promise.found(rates.false_alarms)

    def to_dict(self) -> dict[str, object]:
        """Return the figures under their names, ready for JSON."""
        return {
            "false_alarms": self.false_alarms,
            "accused": self.test.false_alarms,
            "found": self.share,
            "interval": list(self.interval),
            "at_best": self.at_best,
            "promised": self.promised,
            "exact_attention": self.exact_attention,
            "exact_retrieval": self.exact_retrieval,
        }


@dataclass(frozen=True)
class Membership:
    """Was this row in the data? Under "replace": which of two rows was it?

    Attributes:
        files: so many had the row, and as many had not.
        levels: at some shares of false alarms.
        curve: pairs of shares, of others who are accused and of members who are found, from few to
            many: one attack for each threshold.
    """

    files: int
    levels: tuple[Found, ...]
    curve: tuple[tuple[float, float], ...]

    def to_dict(self) -> dict[str, object]:
        """Return the figures under their names, ready for JSON."""
        return {"files": self.files, "levels": [each.to_dict() for each in self.levels]}


@dataclass(frozen=True)
class Named:
    """How often a secret was named, one of so many that are equally likely.

    Attributes:
        candidates: how many there are.
        right: how often it was named.
        trials: of so many.
        at_best: the largest share that the promise lets anybody name.
        promised: what (ε, δ) alone lets anybody name: e^ε/candidates + δ.
        exact_attention: the share that is named from the answers of exact attention.
        exact_retrieval: from those of a search for the nearest row; None if nobody tried.
    """

    candidates: int
    right: int
    trials: int
    at_best: float
    promised: float
    exact_attention: float
    exact_retrieval: float | None

    @property
    def share(self) -> float:
        """How often it was named, as a share."""
        return self.right / self.trials

    @property
    def chance(self) -> float:
        """How often a guess without the file is right."""
        return 1 / self.candidates

    @property
    def interval(self) -> tuple[float, float]:
        """95% of the time the true share lies between these (Clopper and Pearson)."""
        return interval(self.right, self.trials)

    def holds(self, promise: Promise, doubt: float) -> bool:
        """Return whether the promise allows what was counted, but for this doubt.

        Args:
            promise: of the files.
            doubt: the probability of saying no of a promise that is kept.
        """
        return at_least(self.right, self.trials, doubt=doubt) <= promise.found(self.chance)

    def to_dict(self) -> dict[str, object]:
        """Return the figures under their names, ready for JSON."""
        return {
            "candidates": self.candidates,
            "right": self.right,
            "trials": self.trials,
            "share": self.share,
            "interval": list(self.interval),
            "chance": self.chance,
            "at_best": self.at_best,
            "promised": self.promised,
            "exact_attention": self.exact_attention,
            "exact_retrieval": self.exact_retrieval,
        }


@dataclass(frozen=True)
class Secret(Named):
    """A code word as the value of one row: how often it was named, and how close estimates are.

    Attributes:
        error: the distance of the best estimate from the value, root mean square.
        error_without_file: of the best guess without the file.
        exact_error: of what exact attention answers.
    """

    error: float
    error_without_file: float
    exact_error: float

    def to_dict(self) -> dict[str, object]:
        """Return the figures under their names, ready for JSON."""
        own = ("error", "error_without_file", "exact_error")
        return {**super().to_dict(), **{name: getattr(self, name) for name in own}}


@dataclass(frozen=True)
class Asked:
    """How often the class was named after so many questions, each chosen by the answers before.

    Attributes:
        questions: how many.
        named: how often it was right.
    """

    questions: int
    named: Named

    def to_dict(self) -> dict[str, object]:
        """Return the figures under their names, ready for JSON."""
        return {"questions": self.questions, **self.named.to_dict()}


@dataclass(frozen=True)
class Attacked:
    """What attackers got from files, against what is promised. NOT PRIVATE: it depends on the rows.

    Attributes:
        claimed: the promise of every one of the files.
        membership: whether a row was in the data.
        attribute: which value a known row has, of few that it may have.
        secret: which value a row has, of many.
        questions: the attribute again, by somebody who has no file and asks for answers.
        reasons: where the noise of files is not what they say; nothing as a rule.
    """

    claimed: Promise
    membership: Membership
    attribute: Named
    secret: Secret
    questions: tuple[Asked, ...]
    reasons: tuple[str, ...] = ()

    @cached_property
    def holds(self) -> bool:
        """Whether the promise allows all of it; wrongly False at most one time in a hundred.

        True is no proof: another attack may find more.
        """
        if self.reasons:
            return False
        return self._within

    @cached_property
    def _within(self) -> bool:
        """Whether the promise allows what was counted."""
        named = [self.attribute, self.secret, *(each.named for each in self.questions)]
        checks: list[Found | Named] = [*self.membership.levels, *named]
        doubt = DOUBT / len(checks)
        return all(each.holds(self.claimed, doubt) for each in checks)

    @property
    def verdict(self) -> str:
        """What it comes to, in a sentence."""
        if self.holds:
            return "no attack surely found more than noise like this allows"
        if self._within:
            return "THE PROMISE IS BROKEN: the noise is not what the files say"
        return "THE PROMISE IS BROKEN: an attack found more than it allows"

    def to_dict(self) -> dict[str, object]:
        """Return all figures under their names, ready for JSON."""
        guarantee = self.claimed.guarantee
        return {
            "private": False,
            "holds": self.holds,
            "verdict": self.verdict,
            "reasons": list(self.reasons),
            "claimed": {
                "epsilon": guarantee.epsilon,
                "delta": guarantee.delta,
                "neighbours": str(guarantee.neighbours),
                "mu": self.claimed.mu,
            },
            "membership": self.membership.to_dict(),
            "attribute": self.attribute.to_dict(),
            "secret": self.secret.to_dict(),
            "questions": [each.to_dict() for each in self.questions],
        }

    def __str__(self) -> str:
        return "\n".join([OWNER, "", *_page(self), "", *LIMITS])


# --- words ----------------------------------------------------------------------------------------


def _page(made: Attacked) -> list[str]:
    guarantee, files = made.claimed.guarantee, made.membership.files
    facts = [
        ("verdict", made.verdict),
        *(("because", each) for each in made.reasons),
        ("promise", f"{guarantee.figures}: any one row {guarantee.neighbours.change}"),
        ("attacker", "has the file, all settings, and all rows but one"),
        ("files", f"{files:,} with the row and {files:,} without"),
        ("promised", "the most that ε and δ allow, whatever the noise is"),
        (
            "at best",
            "the most that noise like this allows: who surely finds more breaks the promise",
        ),
    ]
    attribute, secret, asked = made.attribute, made.secret, made.questions
    return [
        titled(facts),
        "",
        *_membership(made),
        "",
        f"Which of {attribute.candidates:,} values has a row whose key she knows?",
        *_table([_named("by chance", percent(attribute.chance), attribute)]),
        _exactly([attribute]),
        "",
        f"Which of {secret.candidates:,} code words is the value of such a row?",
        *_table([_named("by chance", percent(secret.chance), secret)]),
        _exactly([secret]),
        _estimate(secret),
        "",
        _by_questions(asked),
        *_table([_asked(each) for each in asked]),
        _exactly([asked[0].named]),
    ]


def _membership(made: Attacked) -> list[str]:
    two = made.claimed.guarantee.neighbours is Neighbours.REPLACE
    asked = "Which of two rows is in the data?" if two else "Is this row in the data?"
    return [
        f"{asked} So many others may be accused, and so many are:",
        *_table(
            [
                {
                    "may be": percent(each.false_alarms),
                    "accused": percent(each.test.false_alarms),
                    **_figures(each),
                }
                for each in made.membership.levels
            ]
        ),
        _exactly(made.membership.levels),
    ]


def _named(title: str, text: str, named: Named) -> dict[str, str]:
    return {title: text, **_figures(named)}


def _asked(each: Asked) -> dict[str, str]:
    counts = {"questions": f"{each.questions:,}", "memories": f"{each.named.trials:,}"}
    return {**counts, **_figures(each.named)}


def _figures(found: Found | Named) -> dict[str, str]:
    low, high = found.interval
    return {
        "found": percent(found.share),
        "95% interval": f"{percent(low).removesuffix('%')} to {percent(high)}",
        "promised": percent(found.promised),
        "at best": percent(found.at_best),
    }


def _exactly(found: Sequence[Found | Named]) -> str:
    """Return what is found where nothing is private: the least, of several."""
    attention = percent(min(each.exact_attention for each in found))
    retrieval = [each.exact_retrieval for each in found if each.exact_retrieval is not None]
    if not retrieval:
        return f"From exact attention: {attention}."
    nearest = percent(min(retrieval))
    return f"From exact attention: {attention}; from a search for the nearest row: {nearest}."


def _by_questions(asked: tuple[Asked, ...]) -> str:
    candidates = asked[0].named.candidates
    return f"Which of {candidates:,}, by questions alone, each chosen by the answers before?"


def _estimate(secret: Secret) -> str:
    return (
        f"Her best estimate is {secret.error:.3g} away; without the file "
        f"{secret.error_without_file:.3g}; from exact attention {secret.exact_error:.1g}."
    )


def _table(lines: list[dict[str, str]]) -> list[str]:
    rows = [list(lines[0]), *(list(each.values()) for each in lines)] if lines else []
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]


def percent(share: float) -> str:
    """Return a share in percent, with two digits that count.

    Args:
        share: from 0 to 1.
    """
    for above, decimals in ((0.995, 0), (0.0995, 1), (0.00995, 2)):
        if share >= above:
            return f"{share:.{decimals}%}"
    return f"{share:.3%}" if share else "0%"
