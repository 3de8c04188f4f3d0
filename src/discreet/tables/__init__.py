"""People's tables in: some columns in chunks (`Rows`), or one array of a file (FILE or FILE:NAME).

Follow a row through the room: `rows` → `sources` (what was given, and the tables that it stands
for) → `files` (arrays of .npz and .safetensors files), `parquet` and `streams` (what speaks Arrow)
→ `arrow` (its columns as numpy's) → `chunks` (cut and joined to one size, or records as a whole).
`columns` says what is asked of a table, and what every reader of one is like. A single array comes
from `files`, too. pyarrow is loaded when it is needed. Nothing is unpickled, and messages name
files, columns and types, never a value. What rows mean is for others to know: nothing here imports
a mechanism.
"""

from discreet.tables.files import read_array, read_groups, read_labels, split
from discreet.tables.rows import Rows

__all__ = ["Rows", "read_array", "read_groups", "read_labels", "split"]
