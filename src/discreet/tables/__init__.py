"""People's tables in: some columns in chunks (`Rows`), or one array of a file (FILE or FILE:NAME).

Stores of vectors are tables, too (`stores`).

Nothing is unpickled, pyarrow is loaded when it is needed, and messages name files, columns and
types, never a value. What rows mean is for others to know: nothing here imports a mechanism.
"""

from discreet.tables.files import read_array, read_groups, read_labels, split
from discreet.tables.rows import Rows
from discreet.tables.schema import Date, Private, Schema, Text, guess
from discreet.tables.stores.vectors import Query, Vectors

__all__ = [
    "Date",
    "Private",
    "Query",
    "Rows",
    "Schema",
    "Text",
    "Vectors",
    "guess",
    "read_array",
    "read_groups",
    "read_labels",
    "split",
]
