"""Datasets of Hugging Face, which are Arrow's. Needs the extra `parquet`."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from discreet.errors import InvalidInput
from discreet.tables.arrow import Arrow, embeddings
from discreet.tables.columns import Columns, InMemory, Part, the_one
from discreet.tables.streams import Readable, no_rows

_ROWS_AT_ONCE = 2**13


def part_of(given: Any) -> Part:  # noqa: ANN401
    """Return a dataset, or one that can only be iterated over, as a table."""
    if isinstance(given, dict):  # what load_dataset gives unless it is asked for a split
        raise InvalidInput(
            f"Expected one dataset, and it is a {type(given).__name__} of {', '.join(given)}: "
            "give one of these by its name."
        )
    return _HuggingFace(given)


@dataclass(frozen=True, eq=False, repr=False)
class _HuggingFace(InMemory, Readable):
    """A dataset: its columns as they are stored, whatever format it is set to. PRIVATE.

    Those of a `Dataset` never change. One that can only be iterated over gives what its source
    gives, each time anew, and has to say which types its columns have: else they are guessed from
    rows, and one could change what all others are read as.
    """

    given: Any
    name: str = "dataset"
    where: str = "the dataset"

    def own_keys(self) -> str:
        """Return the only column of lists of numbers with a point."""
        schema = self._schema()
        return the_one(embeddings(schema), schema.names, self.where)

    def _batches(self, columns: Columns) -> Iterator[Arrow]:
        schema = self._schema()
        names = columns.all
        if all(schema.names.count(name) == 1 for name in names):
            some = self.given.select_columns(names).with_format("arrow")
            for table in some.iter(batch_size=_ROWS_AT_ONCE):
                yield from table.to_batches()
        yield no_rows(schema)  # of which whoever looks for a column can say what there is

    def _count(self) -> int | None:
        """Return the number of rows, if it is known. PRIVATE."""
        return len(self.given) if hasattr(self.given, "__len__") else None

    def _schema(self) -> Arrow:
        if self.given.features is None:
            raise InvalidInput(
                f"Expected {self.where} to say which types its columns have, which are guessed "
                "from rows else: dataset.cast(datasets.Features(...))."
            )
        return self.given.features.arrow_schema
