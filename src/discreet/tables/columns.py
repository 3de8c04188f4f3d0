"""Which columns of a table are wanted, what they hold, and what every reader of tables is like."""

import abc
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, NoReturn, Protocol

from numpy.typing import NDArray

from discreet.errors import DiscreetError, InvalidInput

# One name, or several: "age,income" or ["age", "income"].
Names = str | Sequence[str]

# Keys (m, d), values (m, d_v) or labels (m,), and the record of each row (m,), if asked for.
Chunk = tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]

Kind = Literal["numbers", "lists", "texts", "bytes"]

# How many rows there are, and what the columns hold, where that can be read.
_Look = tuple[int | None, "Forms | None"]


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
                raise InvalidInput(
                    f"Expected {role} to be the name of one column, and it is {_named(name)}."
                )
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


class Reading(Protocol):
    """A table that is open: what it holds and its rows are read from one and the same thing."""

    @property
    def rows(self) -> int | None:
        """The number of rows, if it is known without reading them. PRIVATE."""

    def forms(self) -> Forms:
        """Return what the columns hold, if all are there and of a kind that can be read."""

    def chunks(self) -> Iterator[Chunk]:
        """Yield all rows in order, some at a time; once, after `forms`."""


class Part(abc.ABC):
    """One table: a file, a part of a dataset, or something in memory.

    Attributes:
        name: public, and its own among the parts of a source.
        where: what messages call it.
        again: whether it can be read more than once.
        ahead: whether another thread may read it, while rows that came before are added up.
    """

    name: str
    where: str
    again: ClassVar[bool] = True
    ahead: ClassVar[bool] = False

    @abc.abstractmethod
    def opened(self, columns: Columns) -> AbstractContextManager[Reading]:
        """Open the table for one pass; what is wrong with it becomes a sentence."""

    def forms(self, columns: Columns) -> Forms:
        """Return what the columns hold, if all are there and of a kind that can be read."""
        with self.opened(columns) as reading:
            return reading.forms()

    def count(self, columns: Columns) -> int | None:
        """Return the number of rows, if it is known without reading them. PRIVATE."""
        with self.opened(columns) as reading:
            return reading.rows

    def own_keys(self) -> str:
        """Return the table's own name for its embeddings, if it has one."""
        raise InvalidInput('Expected keys to be names of columns, like "embedding".')

    def close(self) -> None:  # noqa: B027 (most keep nothing)
        """Let go of what is kept between passes, if anything is."""


class InMemory:
    """What stays in this process. PRIVATE."""

    def __reduce__(self) -> NoReturn:
        raise TypeError("Rows are private and are never pickled; parts of files can be.")


@dataclass(frozen=True)
class FilePart(Part):
    """One file as a table: other processes can open it, too.

    What it holds and how many rows it has is looked up once, as long as the file stays as it is.
    Only questions before and between passes are answered so: a pass relies on what it opened.

    Attributes:
        path: of the file.
        name: its path relative to what was given.
    """

    path: Path
    name: str
    _looks: dict[object, _Look] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, self.name)  # nothing that was read

    @property
    def where(self) -> str:  # type: ignore[override]
        """The file."""
        return str(self.path)

    def forms(self, columns: Columns) -> Forms:
        """Return what the columns hold, if all are there and of a kind that can be read."""
        _, forms = self._look(columns)
        return super().forms(columns) if forms is None else forms

    def count(self, columns: Columns) -> int | None:
        """Return the number of rows. PRIVATE."""
        return self._look(columns)[0]

    def _look(self, columns: Columns) -> _Look:
        key = columns, _stamp(self.path)
        look = self._looks.get(key)
        if look is None:
            forms = None
            with self.opened(columns) as reading:
                with suppress(InvalidInput):  # whoever asks for them will be told
                    forms = reading.forms()
                look = reading.rows, forms
            self._looks.clear()
            self._looks[key] = look
        return look


def listed(names: Iterable[str]) -> str:
    """Return some names, for a message."""
    known = sorted(names)
    return ", ".join(known[:12]) + (", ..." if len(known) > 12 else "") or "none"


@contextmanager
def sentences(where: object, wanted: str) -> Iterator[None]:
    """Turn what readers raise into a sentence: their messages may quote what is in a table.

    Args:
        where: the file, or what messages call the table.
        wanted: what it should be.
    """
    try:
        yield
    except DiscreetError:
        raise
    except PermissionError:
        raise InvalidInput(f"Expected {where} to be readable: permission was denied.") from None
    except Exception as error:  # noqa: BLE001 (whoever reads: libraries, databases, generators)
        kind = type(error).__name__
        raise InvalidInput(f"Expected {where} to be {wanted}, and there was a {kind}.") from None


@contextmanager
def needing_pyarrow(what: object, *, to: str = "read") -> Iterator[None]:
    """Say what to install, where an import fails because pyarrow is not there.

    Args:
        what: is to be read.
        to: what is to be done to it, if something else.
    """
    try:
        yield
    except ImportError:
        raise InvalidInput(
            f"Expected pyarrow to {to} {what}: pip install 'discreet[parquet]'."
        ) from None


def the_one(names: Sequence[str], known: Iterable[str], where: str) -> str:
    """Return the only column of embeddings, of which there must be one.

    Args:
        names: of the columns that may hold them.
        known: of all columns.
        where: what messages call the table.
    """
    if len(names) != 1:
        count = "several columns" if names else "no column"
        raise InvalidInput(
            f"Expected keys to name a column of {where}, which has {count} of embeddings by "
            f"{'their types' if names else 'its type'}: {listed(names or known)}."
        )
    return names[0]


def check_unpacked(path: Path, size: int) -> None:
    """Raise `InvalidInput` if so many bytes are too many to unpack in memory."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if size > memory // 2:
        raise InvalidInput(
            f"Expected {path} to unpack to less than half of this machine's memory; "
            "a .npy file is mapped and needs none."
        )


def _stamp(path: Path) -> tuple[int, ...] | None:
    """Return what changes when a file is written or replaced; None if it cannot be looked at."""
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns


def _parsed(role: str, names: Names) -> tuple[str, ...]:
    given = names.split(",") if isinstance(names, str) else names
    parsed = tuple(given) if isinstance(given, Iterable) else ()
    if not parsed or not all(isinstance(name, str) and name for name in parsed):
        raise InvalidInput(
            f'Expected {role} to be names of columns, like "embedding" or "age,income", and it is '
            f"{_named(names)}."
        )
    if len(set(parsed)) != len(parsed):
        raise InvalidInput(f"Expected {role} to name each column once.")
    return parsed


def _named(given: object) -> str:
    """Return what was given for a name; of what is no text, the type: it may be the rows."""
    return repr(given) if isinstance(given, str) else f"a {type(given).__name__}"
