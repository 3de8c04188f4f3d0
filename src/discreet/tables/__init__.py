"""People's tables in: some columns in chunks (`Rows`), or one array of a file (FILE or FILE:NAME).

Nothing is unpickled, pyarrow is loaded when it is needed, and messages name files, columns and
types, never a value. What rows mean is for others to know: nothing here imports a mechanism.
"""

from discreet.tables.files import read_array, read_groups, read_labels, split
from discreet.tables.rows import Rows
from discreet.tables.schema import Date, Private, Schema, Text, guess

__all__ = [
    "Date",
    "Private",
    "Rows",
    "Schema",
    "Text",
    "guess",
    "read_array",
    "read_groups",
    "read_labels",
    "split",
]
