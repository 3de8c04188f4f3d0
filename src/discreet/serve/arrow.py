"""Questions and answers as streams of Arrow, for those who have columns. Needs the extra `parquet`.

What comes is believed no more than JSON is. Compressed streams are refused before they are opened:
a short one may hold any number of bytes. So are dictionaries, which say little in less space; and
cells that take none, such as empty lists, may be as many as bytes that a body may have.
"""

import io
import json
import struct
from typing import Any

import numpy as np

from discreet.serve.asking import Answers
from discreet.serve.limits import Limits
from discreet.serve.wire import Refused

# What comes of bytes that were changed, besides pyarrow's own exceptions.
_DAMAGED = (
    ArithmeticError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    TypeError,
    ValueError,
    struct.error,
)

try:
    import pyarrow as pa
    from pyarrow import ipc, types
except ImportError:
    pa = None

_STREAM = "Expected a stream of Arrow, whole and without compression or dictionaries."

# Columns that are fields of a question; any others are those of rows.
_TEXTS = {"question": "questions", "questions": "questions"}

# Parts of a stream, as its messages number them.
_SCHEMA, _BATCH = 1, 3


def asked(body: bytes, limits: Limits) -> dict[str, Any]:
    """Return the fields of a question, as JSON would have them.

    A column `queries` of lists of numbers, a column `question` of texts, or the columns of rows.

    Args:
        body: the stream.
        limits: on how many rows there may be.

    Raises:
        Refused: it is no such stream; or there is no pyarrow here.
    """
    if pa is None:
        raise Refused(415, "Expected JSON: this server has no pyarrow, which reads Arrow.")
    try:
        _check_messages(body)
        return _fields(_table(body, limits))
    except Refused:
        raise
    except (pa.ArrowException, *_DAMAGED):
        raise Refused(400, _STREAM) from None


def _fields(table: Any) -> dict[str, Any]:  # noqa: ANN401
    names = table.column_names
    if len(set(names)) != len(names) or not names:
        raise Refused(400, "Expected columns with different names.")
    if names == ["queries"]:
        return {"queries": table["queries"].to_pylist()}
    if len(names) == 1 and names[0] in _TEXTS:
        return {_TEXTS[names[0]]: table[names[0]].to_pylist()}
    return {"rows": table.to_pylist()}


def _table(body: bytes, limits: Limits) -> Any:  # noqa: ANN401 (pyarrow's types are not annotated)
    """Return what a stream holds, checked before any of it is converted."""
    with ipc.open_stream(io.BytesIO(body)) as reader:
        for each in reader.schema:
            _check_type(each.type)
        batches, count, cells = [], 0, 0
        for batch in reader:
            count += batch.num_rows
            limits.check_count("rows", max(count, 1))
            batch.validate(full=True)
            cells += sum(map(_cells, batch.columns))
            if cells > limits.body:
                raise Refused(413, f"Expected at most {limits.body:,} cells in one request.")
            batches.append(batch)
        limits.check_count("rows", count)
        return pa.Table.from_batches(batches, reader.schema)


def _check_type(kind: Any) -> None:  # noqa: ANN401
    inner = kind
    while types.is_list(inner) or types.is_large_list(inner) or types.is_fixed_size_list(inner):
        inner = inner.value_type
    plain = (
        types.is_floating(inner)
        or types.is_integer(inner)
        or (inner is kind and (types.is_boolean(kind) or types.is_string(kind)))
        or (inner is kind and types.is_large_string(kind))
    )
    if not plain:
        raise Refused(400, "Expected columns of numbers, of lists of numbers, or of texts.")


def _cells(column: Any) -> int:  # noqa: ANN401
    """Return how many cells a column has, lists and what is in them."""
    count = len(column)
    while hasattr(column, "values"):
        column = column.values
        count += len(column)
    return count


def _check_messages(body: bytes) -> None:
    """Raise unless a stream is made of a schema and batches that are not compressed.

    Each message is a length and its description, a flat buffer, before its own bytes.
    """
    reader = ipc.MessageReader.open_stream(io.BytesIO(body))
    kinds = []
    for message in iter(reader.read_next_message, None):
        head = message.metadata.to_pybytes()
        root = struct.unpack_from("<I", head)[0]
        kinds.append(head[_place(head, root, 1) or len(head)])
        place = _place(head, root, 2) or len(head)
        table = place + struct.unpack_from("<I", head, place)[0]
        if kinds[-1] == _BATCH and _place(head, table, 3) is not None:
            raise Refused(400, _STREAM)
        if len(kinds) > 2**10:
            break
    if kinds[:1] != [_SCHEMA] or set(kinds[1:]) - {_BATCH} or len(kinds) > 2**10:
        raise Refused(400, _STREAM)


def _place(data: bytes, table: int, field: int) -> int | None:
    """Return where a field of a table in a flat buffer is; None if it is not there."""
    fields = table - struct.unpack_from("<i", data, table)[0]
    size = struct.unpack_from("<H", data, fields)[0]
    if fields < 0 or 4 + 2 * field + 2 > size:
        return None
    offset = struct.unpack_from("<H", data, fields + 4 + 2 * field)[0]
    return table + offset if offset else None


def written(answers: Answers) -> bytes:
    """Return answers as a stream: a row for each question, and lists where it has several numbers.

    What is said once of all of them, such as the classes, is in the schema's metadata, as JSON.

    Args:
        answers: to one question or more.
    """
    columns, once = {}, {}
    for name, each in answers.fields.items():
        found = np.asarray(each) if isinstance(each, np.ndarray) else each
        if isinstance(found, np.ndarray):
            columns[name] = found.tolist() if found.ndim else [found.item()]
        elif name == "answers":
            columns[name] = found if isinstance(found, list) else [found]
        else:
            once[name] = json.dumps(each)
    table = pa.table(columns, metadata=once)
    sink = io.BytesIO()
    with ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()
