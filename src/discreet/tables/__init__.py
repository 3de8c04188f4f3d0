"""People's tables in: from FILE or FILE:NAME to an array of numbers, or to one thing for each row.

Follow a file through the room: `files` (what was typed, and the reader for it) → `formats` (.npy,
.npz and .safetensors, mapped where they can be) or `parquet` (the one module that imports pyarrow)
→ `names` (which array is meant) and `limits` (what is too large to unpack). Nothing is unpickled,
and messages name files, columns and types, never a value. What rows mean is for others to know:
nothing here imports a mechanism.
"""

from discreet.tables.files import read_array, read_groups, read_labels, split
from discreet.tables.rows import Rows

__all__ = ["Rows", "read_array", "read_groups", "read_labels", "split"]
