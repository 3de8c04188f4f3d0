"""The end of a page: a checklist for whoever has to decide whether a file may be given away.

In three parts: what the file proves, what its builder states, and what to ask. What a file proves
is what was checked when it was opened; all else is somebody's word.
"""

from collections.abc import Iterable
from typing import Protocol

from discreet.accounting import Receipt
from discreet.ledger import Standing
from discreet.ledger.standing import UNKNOWN
from discreet.pages.sheet import STATED_MARK, escaped, facts
from discreet.privacy import NOT_PRIVATE, Card, Guarantee, Neighbours, rounded_up
from discreet.provenance import NAMES

_NOT_STATED = "not stated"

_INTRODUCTION = (
    "No file can show everything that a decision needs. Here is what this one proves, what "
    "somebody only says of it, and what is left to ask."
)
_WHOLE = (
    "It is whole: the checksum fits. That is a check against damage. Whoever can write a file can "
    "write a checksum, too."
)
_BELONGS = (
    "Noise, settings and promise belong together. Noise of the size that the file names, on sums "
    "that one {unit} can move only as far as the settings allow, gives this promise, whatever the "
    "rows are: {guarantee}"
)
_ABOUT = {
    Neighbours.ADD_REMOVE: "The promise is about any one {unit}, there or not. It says nothing of "
    "what one {unit} is.",
    Neighbours.REPLACE: "The promise is about any one {unit}, replaced by another. It does not "
    "hide how many {unit}s there are, and says nothing of what one {unit} is.",
}
_NOTHING = (
    f"{NOT_PRIVATE}. It was made with a source of noise for tests, and says so: it protects nobody."
)

# What is stated by whoever gives a file away as one of discreet.
_IMPLIED = (
    ("that discreet made this file, unchanged, and that the noise came from {source}{secret};"),
    (
        "that bounds, classes and all other settings were chosen without looking at the private "
        "rows{but};"
    ),
    (
        "that public rows, where there are any, are public, and that nothing which made the rows "
        "what they are (a scaler, an encoder) had learnt from private ones;"
    ),
    "{whose}, and whose.",
)
_NOT_COVERED = "It says of itself what was taken from the rows, and is not covered: {names}."

_FOR_TESTS = (
    "Why was it made with a source of noise for tests? Ask for a file with the noise of the "
    "operating system, and do not give this one away."
)
_TAKEN = "Why was this taken from the private rows, and may anybody know it: {names}?"
_UNSTATED = {
    "data": "Whose rows are these, and from when?",
    "builder": "Who built the file?",
    "purpose": "What is it for?",
    "contact": "Who answers questions about it?",
    "date": "When was it built?",
}
_OF_ROWS = (
    "Can one person have several rows? The promise is for one row. A file that was built by record "
    "(with an id for each person) can promise more."
)
_OF_RECORDS = (
    "Are all rows of one person one record, under one id? Where do the ids come from, and can one "
    "person have several?"
)
_SETTINGS = (
    "Were bounds, classes and all other settings chosen without looking at the private rows? A "
    "bound that was read off the rows is somebody's number."
)
_PREPARED = (
    "What was done to the rows before the build? Whatever was left out, filled in, scaled or put "
    "together with a look at other rows is outside the promise."
)
_PUBLIC = (
    "Are public rows, topics and word lists in the file public? And had the encoder, or whatever "
    "else made rows what they are, learnt nothing from private ones?"
)
_DELTA = "Is δ = {delta:g} well below one over the number of people?"
_HINT = (
    "Where does the figure of {hint:,} rows come from? It is in the file, and should be a public, "
    "rounded one: a count tells how many rows there were."
)
_BUILT_ONCE = (
    "Was the file built once? Builds that were looked at and thrown away cost as much as the one "
    "that was kept."
)
_LEDGER = (
    "Who holds the ledger, and what is counted in it? Which other releases of the same people's "
    "data are there, and what do all of them together come to?"
)
_IS_ALL = (
    "Does this ledger count all releases of the same people's data? Who else may have made some?"
)
_WHO_SEES = (
    "Who has seen the rows, and who can still read them? The promise is about this file, and not "
    "about whoever built it."
)
_ENOUGH = (
    "Is ε = {epsilon} enough protection for this purpose, and for whoever gets the file? Once "
    "given away, it cannot be called back."
)


class Decided(Protocol):
    """What somebody has to decide about: anything that was released."""

    @property
    def receipt(self) -> Receipt:
        """What was spent."""

    @property
    def card(self) -> Card:
        """What it says of itself."""


def checklist(release: Decided, guarantee: Guarantee, standing: Standing | None = None) -> str:
    """Return the checklist as HTML.

    Args:
        release: what is in the file.
        guarantee: of the whole file.
        standing: what a ledger knows of it, if somebody asked one.
    """
    parts = [
        '<h2 id="decide">For whoever has to decide</h2>',
        f"<p>{_INTRODUCTION}</p>",
        '<h3 id="proves">What this file proves</h3>',
        _proved(release, guarantee),
        '<h3 id="states">What its builder states</h3>',
        _said(release, guarantee, standing),
        '<h3 id="ask">What to ask</h3>',
        _listed(_questions(release, guarantee, standing), kind="ask"),
    ]
    return "\n".join(parts)


def _proved(release: Decided, guarantee: Guarantee) -> str:
    """Return what was checked when the file was opened."""
    receipt, unit = release.receipt, guarantee.unit
    if not receipt.private:
        return f'<p class="alarm">{escaped(_NOTHING)}</p>\n{_listed([_WHOLE])}'
    proved = [
        _BELONGS.format(unit=unit, guarantee=guarantee),
        _ABOUT[guarantee.neighbours].format(unit=unit),
        _WHOLE,
    ]
    if receipt.leaks:
        proved.insert(0, _NOT_COVERED.format(names=_names(receipt)))
    return f"<p>Checked when it was opened:</p>\n{_listed(proved)}"


def _said(release: Decided, guarantee: Guarantee, standing: Standing | None) -> str:
    """Return what nobody but the builder knows: in the builder's words, and by using discreet."""
    stated = release.card.stated
    receipt = release.receipt
    secret = " and is known to nobody" if receipt.private else ", a source for tests"
    but = f", but for {_names(receipt)}" if receipt.leaks else ""
    whose = "which rows are one record" if guarantee.unit == "record" else "what one row is"
    implied = [
        each.format(source=receipt.source, secret=secret, but=but, whose=whose) for each in _IMPLIED
    ]
    return "\n".join(
        [
            f"<p>{STATED_MARK} None of it can be proved by any file.</p>",
            facts((name, stated.get(name, _NOT_STATED)) for name in NAMES),
            "<p>And whoever gives it away as a file of discreet states:</p>",
            _listed(implied),
            _beside(standing),
        ]
    )


def _beside(standing: Standing | None) -> str:
    """Return what a ledger states, which is the builder's word, too."""
    if standing is None:
        return f"<p>Other releases: {escaped(UNKNOWN)}.</p>"
    return (
        f"<p>A ledger that was given for this page states beside it:</p>\n{facts(standing.lines)}"
    )


def _questions(release: Decided, guarantee: Guarantee, standing: Standing | None) -> list[str]:
    """Return what is left to ask, the gravest first."""
    receipt, card = release.receipt, release.card
    asked = []
    if not receipt.private:
        asked.append(_FOR_TESTS)
    if receipt.leaks:
        asked.append(_TAKEN.format(names=_names(receipt)))
    missing = [question for name, question in _UNSTATED.items() if name not in card.stated]
    if missing:
        asked.append(f"What is not stated: {' '.join(missing)}")
    asked += [
        _OF_RECORDS if guarantee.unit == "record" else _OF_ROWS,
        _SETTINGS,
        _PREPARED,
        _PUBLIC,
    ]
    hint = card.to_dict().get("rows_hint")
    hidden = guarantee.neighbours is Neighbours.ADD_REMOVE and "rows_hint" not in receipt.leaks
    if isinstance(hint, int) and hidden:
        asked.append(_HINT.format(hint=hint))
    if guarantee.delta:
        asked.append(_DELTA.format(delta=guarantee.delta))
    known = standing is not None and standing.statement is not None
    asked += [_IS_ALL if known else _LEDGER, _BUILT_ONCE, _WHO_SEES]
    return [*asked, _ENOUGH.format(epsilon=rounded_up(guarantee.epsilon))]


def _names(receipt: Receipt) -> str:
    return ", ".join(receipt.leaks)


def _listed(texts: Iterable[str], *, kind: str | None = None) -> str:
    items = "\n".join(f"<li>{escaped(text)}</li>" for text in texts)
    opened = "<ul>" if kind is None else f'<ul class="{kind}">'
    return f"{opened}\n{items}\n</ul>"
