"""Tables of LanceDB, which are Arrow's, at one version. Needs the extra `parquet`."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from discreet.errors import InvalidInput
from discreet.tables.arrow import Arrow, embeddings
from discreet.tables.columns import Columns, InMemory, Part, the_one
from discreet.tables.streams import Readable, no_rows

_ROWS_AT_ONCE = 2**13


def part_of(given: Any) -> Part:  # noqa: ANN401
    """Return a table of LanceDB as one of ours."""
    return _LanceTable(given)


@dataclass(frozen=True, eq=False, repr=False)
class _LanceTable(InMemory, Readable):
    """A table, read at the version that it had at first. PRIVATE.

    A handle stays at its version until somebody moves it: then the next pass, or the one that is
    going on, is an error.
    """

    given: Any
    name: str = "table"
    where: str = "the table"
    ahead: ClassVar[bool] = True

    def own_keys(self) -> str:
        """Return the only column of vectors."""
        schema = self.given.schema
        return the_one(embeddings(schema), schema.names, self.where)

    @cached_property
    def version(self) -> int:
        """The version that is read."""
        return int(self.given.version)

    def _batches(self, columns: Columns) -> Iterator[Arrow]:
        self._check_version()
        schema = self.given.schema
        names = columns.all
        if all(schema.names.count(name) == 1 for name in names):
            search = self.given.search().select(names)
            yield from search.to_batches(batch_size=_ROWS_AT_ONCE)
            self._check_version()
        yield no_rows(schema)  # of which whoever looks for a column can say what there is

    def _count(self) -> int | None:
        """Return the number of rows. PRIVATE."""
        self._check_version()
        return int(self.given.count_rows())

    def _check_version(self) -> None:
        if int(self.given.version) != self.version:
            raise InvalidInput(
                f"Expected {self.where} to stay at version {self.version} while it is read: "
                "table.checkout(version) keeps a handle there."
            )
