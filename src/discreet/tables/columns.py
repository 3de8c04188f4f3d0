"""Which columns of a table are wanted, and what they hold as far as its schema says."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

from numpy.typing import NDArray

from discreet.errors import InvalidInput

# One name, or several: "age,income" or ["age", "income"].
Names = str | Sequence[str]

# Keys (m, d), values (m, d_v) or labels (m,), and the record of each row (m,), if asked for.
Chunk = tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]

Kind = Literal["numbers", "lists", "texts", "bytes"]


@dataclass(frozen=True)
class Columns:
    """What to read of every row.

    Attributes:
        keys: columns of numbers, or one of lists.
        values: likewise; or the one column of labels.
        labels: whether those are labels: numbers or texts, one for each row.
        groups: the column that says which record a row belongs to; None if each row is its own.
    """

    keys: tuple[str, ...]
    values: tuple[str, ...]
    labels: bool
    groups: str | None

    @classmethod
    def of(
        cls, keys: Names, values: Names | None, labels: str | None, groups: str | None
    ) -> "Columns":
        """Return what was asked for, if it can be."""
        if (values is None) == (labels is None):
            raise InvalidInput("Expected names of values, or of labels: one of the two.")
        for role, name in (("labels", labels), ("groups", groups)):
            if name is not None and (not isinstance(name, str) or not name):
                raise InvalidInput(f"Expected {role} to be the name of one column.")
        targets = _parsed("values", values) if labels is None else (labels,)  # type: ignore[arg-type]
        return cls(_parsed("keys", keys), targets, labels is not None, groups)

    @property
    def all(self) -> list[str]:
        """Every column once."""
        named = [*self.keys, *self.values, *([] if self.groups is None else [self.groups])]
        return list(dict.fromkeys(named))


@dataclass(frozen=True)
class Form:
    """What some columns hold together.

    Attributes:
        kind: numbers, one for each column; lists of numbers; texts; or bytes.
        width: how many numbers a row has; None for lists whose length is not known yet.
    """

    kind: Kind
    width: int | None = 1

    def __str__(self) -> str:
        if self.kind != "lists":
            return self.kind
        return "lists of numbers" if self.width is None else f"lists of {self.width} numbers"

    def fits(self, other: "Form") -> bool:
        """Return whether both can be parts of one table."""
        same_width = self.width == other.width or None in (self.width, other.width)
        return self.kind == other.kind and same_width


@dataclass(frozen=True)
class Forms:
    """What keys, values or labels, and groups hold, and who says so.

    Attributes:
        keys: of keys.
        values: of values or labels.
        groups: of groups, if they are asked for.
        where: the file, or the table, for messages.
    """

    keys: Form
    values: Form
    groups: Form | None
    where: str

    def check_fits(self, other: "Forms", columns: Columns) -> None:
        """Raise `InvalidInput` unless rows of both can stand in one table."""
        named = (columns.keys, columns.values, (columns.groups or "",))
        mine, others = (
            (self.keys, self.values, self.groups),
            (other.keys, other.values, other.groups),
        )
        for names, one, two in zip(named, mine, others, strict=True):
            if one is not None and two is not None and not one.fits(two):
                if self.where == other.where and one.kind == two.kind:
                    raise InvalidInput(f"Expected lists of one length in {self.where}.")
                raise InvalidInput(
                    f"Expected {','.join(names)} to be the same everywhere: {one} in {self.where}, "
                    f"{two} in {other.where}."
                )

    def of_chunk(self, chunk: Chunk) -> "Forms":
        """Return what the rows of a chunk hold: lists have a length now."""
        keys, values, _ = chunk
        width = self.values.width if values.ndim == 1 else values.shape[1]
        return Forms(
            Form(self.keys.kind, keys.shape[1]),
            Form(self.values.kind, width),
            self.groups,
            self.where,
        )


class Part(Protocol):
    """One table: a file, a part of a dataset, or something in memory."""

    @property
    def name(self) -> str:
        """Public, and its own among the parts of a source."""

    @property
    def where(self) -> str:
        """What messages call it."""

    @property
    def again(self) -> bool:
        """Whether it can be read more than once."""

    def forms(self, columns: Columns) -> Forms:
        """Return what the columns hold, if all are there and of a kind that can be read."""

    def count(self, columns: Columns) -> int | None:
        """Return the number of rows, if it is known without reading them. PRIVATE."""

    def chunks(self, columns: Columns) -> Iterator[Chunk]:
        """Yield all rows in order, some at a time."""


@dataclass(frozen=True)
class FilePart:
    """One file as a table: other processes can open it, too.

    Attributes:
        path: of the file.
        name: its path relative to what was given.
    """

    path: Path
    name: str
    again: ClassVar[bool] = True

    @property
    def where(self) -> str:
        """The file."""
        return str(self.path)


def _parsed(role: str, names: Names) -> tuple[str, ...]:
    parsed = tuple(names.split(",") if isinstance(names, str) else names)
    if not parsed or not all(isinstance(name, str) and name for name in parsed):
        raise InvalidInput(
            f'Expected {role} to be names of columns, like "embedding" or "age,income".'
        )
    if len(set(parsed)) != len(parsed):
        raise InvalidInput(f"Expected {role} to name each column once.")
    return parsed
