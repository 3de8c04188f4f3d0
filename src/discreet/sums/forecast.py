"""What people read of a release: the plan, before anything is spent, and the card, afterwards.

This is what plans of all readers share, and what every card says of who is protected, and how much.
"""

import abc
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import ClassVar, Protocol

from discreet import _validate, provenance
from discreet.accounting import Receipt
from discreet.accounting.promise import Promise
from discreet.errors import CorruptRelease
from discreet.features.base import RowMap
from discreet.features.columns import TableColumns
from discreet.noise.correlated import Continual, ReadingKind, StateNoise
from discreet.privacy import NOT_PRIVATE, Card, Guarantee, Neighbours, rounded_up, taken, titled
from discreet.provenance import Stated
from discreet.sums.layout import RowLayout
from discreet.sums.release import Released
from discreet.sums.settings import Shape, Unit


@dataclass(frozen=True, kw_only=True)
class Forecast(abc.ABC):
    """Predictions for one release, from public numbers only. `str(plan)` is a page for people.

    A reader's plan is a subclass: its fields are what was worked out, and it says what they come to
    (`verdict`) and how they read on a page (`lines`).

    Attributes:
        rows: the public number of rows that it is planned for.
        epsilon: to be spent.
        delta: to be spent.
    """

    # Properties that `to_dict` has beside the fields, and fields that it leaves out.
    derived: ClassVar[tuple[str, ...]] = ("verdict", "warning")
    inner: ClassVar[tuple[str, ...]] = ()

    rows: int
    epsilon: float
    delta: float

    @property
    @abc.abstractmethod
    def verdict(self) -> str:
        """What the figures come to, in a sentence or two."""

    @property
    @abc.abstractmethod
    def lines(self) -> list[tuple[str, str]]:
        """The page below the verdict: titles and texts."""

    @property
    def subject(self) -> str:
        """What follows the number of rows on the page."""
        return "rows"

    @property
    def warning(self) -> str | None:
        """What is wrong with the promise or with the figures, if anything."""
        if self.delta * self.rows < 1:
            return self._own_warning
        return f"δ = {self.delta:g} is not below one over the number of rows: it protects nobody."

    @property
    def _own_warning(self) -> str | None:
        """What is wrong with the figures, if anything."""
        return None

    def to_dict(self) -> dict[str, object]:
        """Return the figures under their names, ready for JSON."""
        facts: dict[str, object] = {}
        for name in (each.name for each in fields(self) if each.name not in self.inner):
            value = getattr(self, name)
            facts[name] = value.describe() if isinstance(value, RowMap) else value
        return {**facts, **{name: getattr(self, name) for name in self.derived}}

    def __str__(self) -> str:
        spent = f"ε = {rounded_up(self.epsilon)}, δ = {rounded_up(self.delta)}"
        facts = [
            ("for", f"{self.rows:,} {self.subject} at {spent}"),
            ("verdict", self.verdict),
            *self.lines,
        ]
        if self.warning:
            facts.append(("warning", self.warning))
        return titled(facts)


def planned_shape(
    *, rows: int, key_dim: int, value_dim: int = 1, heads: int | None = None
) -> tuple[int, Shape]:
    """Return the number of rows and the shape that a plan is for, checked.

    Args:
        rows: a public number of rows.
        key_dim: width of keys.
        value_dim: width of values.
        heads: of all layers together; None for keys without an axis of heads.
    """
    rows = _validate.whole("rows", rows, at_least=1, at_most=2**40)
    axes = () if heads is None else (_validate.whole("heads", heads, at_least=1, at_most=2**20),)
    key_dim = _validate.whole("key_dim", key_dim, at_least=1, at_most=2**20)
    value_dim = _validate.whole("value_dim", value_dim, at_least=1, at_most=2**20)
    return rows, Shape(heads=axes, key_dim=key_dim, value_dim=value_dim)


def planned_unit(*, by_record: bool) -> Unit:
    """Return whom a guarantee will protect.

    Args:
        by_record: whether records of many rows are protected.
    """
    return Unit.RECORD if by_record else Unit.ROW


def card_of(
    released: Released[RowLayout], facts: Mapping[str, object], lines: Iterable[tuple[str, str]]
) -> Card:
    """Return a card: who is protected, then what a reader has to say, then where it comes from.

    Args:
        released: noisy sums, with what is public about them.
        facts: the reader's own.
        lines: the same for people.
    """
    origin = {
        "state_bytes": released.nbytes,
        "rows": released.rows,
        "rows_hint": released.rows_hint,
        "entropy": released.source,
        "version": released.version,
    }
    told = [
        *protection(released),
        *_columns(released),
        *lines,
        ("entropy", released.source),
        ("made by", f"discreet {released.version}"),
    ]
    return Card(tuple({**protection_facts(released), **facts, **origin}.items()), tuple(told))


def _columns(released: Released[RowLayout]) -> list[tuple[str, str]]:
    """Return the lines of a card that name the columns of a table, and what was found of them."""
    kernel, described = released.layout.kernel, released.estimator
    names = described.get("names") if described is not None else None
    if not isinstance(kernel, TableColumns) or not isinstance(names, list):
        return []
    if len(names) != kernel.dim:
        raise CorruptRelease("Expected a name for each column.")
    told = "; ".join(
        f"{name} ({each.describe()})" for name, each in zip(names, kernel.columns, strict=True)
    )
    # Columns may have any name: a line break, say. Here all of them are in one line.
    plain = (each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in told)
    return [("columns", "".join(plain))]


def size_of(released: Released[RowLayout], parts: str) -> str:
    """Return what a card says of the size of a release: its numbers, and those of its map.

    Args:
        released: noisy sums, with what is public about them.
        parts: what they are made of.
    """
    size = f"{parts}, {released.layout.kernel.features:,} features, {released.nbytes:,} bytes"
    own = sum(array.nbytes for array in released.layout.arrays().values())
    return f"{size}, and {own:,} of the features" if own else size


class Promised(Protocol):
    """What a card says whom it protects of: noisy sums, or a release of several."""

    @property
    def guarantee(self) -> Guarantee:
        """What is promised."""

    @property
    def receipt(self) -> Receipt:
        """What was spent."""

    @property
    def private(self) -> bool:
        """Whether the noise came from the operating system."""

    @property
    def source(self) -> str:
        """Where it came from."""

    @property
    def group_rows(self) -> float:
        """The influence of a record, in rows."""

    @property
    def rows(self) -> int | None:
        """The number of rows where it is public."""

    @property
    def rows_hint(self) -> int | None:
        """The public figure that the builder gave."""

    @property
    def stream(self) -> StateNoise | None:
        """Of a state of a stream: what its noise is made of."""

    @property
    def stated(self) -> Stated | None:
        """What the builder states."""


def protection_facts(released: Promised) -> dict[str, object]:
    """Return the facts of a card that say who is protected, and how much.

    Args:
        released: noisy sums, with what is public about them.
    """
    guarantee = released.guarantee
    return {
        "private": released.private,
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "neighbours": str(guarantee.neighbours),
        "unit": guarantee.unit,
        "group_rows": released.group_rows,
        "scope": guarantee.scope,
        "guarantee": str(guarantee),
        **Promise.of(guarantee, released.receipt).facts,
        "leaks": list(released.receipt.leaks),
        "mechanism": "rounded Gaussian noise, added once to integer sums",
        **stream_facts(released),
        **provenance.facts(released.stated),
    }


def stream_facts(released: Promised) -> dict[str, object]:
    """Return the facts of a card that say which state of a stream this is; none if it is no such.

    Args:
        released: noisy sums, with what is public about them.
    """
    stream = released.stream
    if stream is None:
        return {}
    return {
        "mechanism": "rounded Gaussian noise, correlated over the steps of a stream, added to "
        "integer sums: one guarantee for all steps",
        "step": stream.step,
        "reading": str(stream.reading),
        "participation": str(stream.continual.participation),
        "noise_over_one_release": stream.factor,
    }


def drawing(released: Released[RowLayout]) -> str:
    """Return how a card says that noise was drawn.

    Args:
        released: noisy sums, with what is public about them.
    """
    if released.stream is None:
        return "drawn once"
    return f"{released.stream.factor:.3g} times that of one single release of the same rows"


def protection(released: Promised) -> list[tuple[str, str]]:
    """Return the lines of a card that say who is protected, and how much.

    Args:
        released: noisy sums, with what is public about them.
    """
    guarantee = released.guarantee
    rows = []
    if not released.private:
        rows.append((NOT_PRIVATE, f"the noise came from {released.source}, a source for tests"))
    protects = f"any one {guarantee.unit} ({guarantee.neighbours.change})"
    if guarantee.unit == "record":
        protects += f", with the influence of at most {released.group_rows:g} row(s)"
    counts = "the number of rows is private, too"
    if released.rows is not None:
        counts = f"the number of rows is public: {released.rows:,}"
    elif guarantee.neighbours is Neighbours.REPLACE:
        counts = "the number of records is public, the number of rows is not"
    hint = "none" if released.rows_hint is None else f"{released.rows_hint:,}"
    given = "public figure that settings were chosen by"
    if released.stream is not None:
        given = "public figure for these steps, by what the builder said of all"
    if "rows_hint" in released.receipt.leaks:
        given = "figure that was taken from the rows"
    rows += [
        ("protects", f"{protects}: {guarantee.figures}"),
        ("guarantee", str(guarantee)),
        ("for one person", Promise.of(guarantee, released.receipt).in_words),
        *taken(released.receipt.leaks),
        *_stream(released),
        ("rows", f"{counts}; {given}: {hint}"),
        *provenance.lines(released.stated),
    ]
    return rows


def _stream(released: Promised) -> list[tuple[str, str]]:
    """Return the lines of a card that say which state of a stream this is, if it is one."""
    stream = released.stream
    if stream is None:
        return []
    which = f"the state after step {stream.step:,}, about {stream.reading}"
    if stream.reading.kind is ReadingKind.WINDOW and stream.reading.length > stream.step:
        which += f", of which there are {stream.step:,} so far"
    return [
        ("stream", f"{which}; one guarantee for all steps, those to come included"),
        (
            "participation",
            participating(stream.continual, released.guarantee.unit, released.group_rows),
        ),
    ]


def participating(continual: Continual, unit: str, rows: float) -> str:
    """Return in how many steps somebody may have rows, and who sees to that.

    Args:
        continual: of the stream.
        unit: whom its guarantee protects.
        rows: the influence of a record, in rows.
    """
    participation = continual.participation
    if continual.enforced:
        most = f" with at most {rows:g} rows in all," if participation.steps is None else ""
        who = f"any one {unit}{most} {participation}"
        return f"{who}; rows beyond that were left out, by ids of records"
    if unit == Unit.RECORD:
        return f"any one {unit} {participation}; nobody has checked that"
    if participation.steps != 1:
        return f"anybody with one row in each step, {participation}; nobody checks that without ids"
    return f"any one {unit} {participation}"
