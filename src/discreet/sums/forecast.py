"""What a release will be like, before anything is spent: what the plans of all readers share."""

import abc
from dataclasses import dataclass, fields
from typing import ClassVar

from discreet import _validate
from discreet.features.base import RowMap
from discreet.privacy import rounded_up, titled
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
