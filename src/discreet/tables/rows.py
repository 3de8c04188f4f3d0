"""Rows of tables, wherever they are: chunks of keys and values, and of whole records.

`parts_of` finds the tables: files, folders, patterns, Arrow's own, or stores. `sized` cuts and
joins chunks to one size; `gathered` has every record wholly in one of them.
"""

import glob
import hashlib
import math
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._arrays import distinct, encoded
from discreet._typing import Array, Words
from discreet.errors import InvalidInput
from discreet.tables.columns import (
    Chunk,
    Columns,
    FilePart,
    Form,
    Forms,
    Names,
    Part,
    needing_pyarrow,
)
from discreet.tables.files import ArrayPart
from discreet.tables.stores import is_store, store_part

_TABLES = (".parquet", ".npz", ".safetensors")

# Numbers of keys and values in a chunk: 32 MB as float64.
_NUMBERS = 2**22

# What a pass keeps, as float64, and what is held of a stream that comes once.
_BYTES_AT_ONCE = 2**28
_BYTES_HELD = 2**30

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class Rows:
    """Some columns of a table, or of many that are alike, in chunks of bounded size. PRIVATE.

    Iterating yields (keys, values), or (keys, values, groups) with every record wholly in one
    chunk: numpy arrays of shapes (m, d), (m, d_v) and (m,). With `labels`, those stand where values
    would: shape (m,), numbers or texts. Floats keep their width; groups that are texts are Python's
    own, in an array of objects. It can be iterated over again,
    unless the source comes once (a reader, a generator).

    Without groups a chunk has about 2^22 numbers. With them the source is read once for every
    256 MB of rows (as float64), and a chunk has about so many; what comes once is held, up to
    1 GiB.

    Args:
        source: a directory (read recursively, sorted), a pattern like "data/*.parquet", a file
            (.parquet, .npz or .safetensors) or a list of them; or anything that speaks Arrow: a
            table, a data frame of pandas or Polars, a relation of DuckDB, a dataset or reader of
            pyarrow, or an iterable of such tables and batches; or where vectors live: a collection
            of Chroma, a table of LanceDB, a dataset of Hugging Face, `Query` (PostgreSQL),
            `Vectors` (FAISS).
        keys: the column of lists, or columns of numbers: "embedding", "age,income" or
            ["age", "income"]. None for a store's own name of its embeddings, or its only column of
            them.
        values: likewise.
        labels: the column of labels, instead of values.
        groups: the column that says which record a row belongs to, whole numbers or texts.
        widths: of keys and values, if they are known: for a table, or a list of tables, that may
            have no rows and so nothing to tell them by.
    """

    def __init__(
        self,
        source: object,
        *,
        keys: Names | None = None,
        values: Names | None = None,
        labels: str | None = None,
        groups: str | None = None,
        widths: tuple[int, int] | None = None,
    ) -> None:
        nothing = widths is not None and isinstance(source, list) and not source
        if keys is not None:  # what is wrong with names is said before anything is looked for
            Columns.of(keys, values, labels, groups)
        self._tables = [] if nothing else parts_of(source)
        self._given_widths = widths
        try:
            keys = self._tables[0].own_keys() if keys is None and self._tables else keys
            self._columns = Columns.of(keys or "", values, labels, groups)
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"<Rows of {self.name}: private>"

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        if not self.by_record:
            return ((keys, values) for keys, values, _ in self.chunks())
        return self._records()

    def chunks(self) -> Iterator[Chunk]:
        """Yield (keys, values, groups or None) in the order of the source, at least one chunk.

        A record's rows lie where they lie: whoever bounds what a record adds must gather them.
        """
        chunks = sized(self._alike())
        return read_ahead(chunks) if all(each.ahead for each in self._tables) else chunks

    def parts(self) -> list["Rows"]:
        """Return one for each file, or fragment of a dataset; itself, if there is but one.

        Those of files can be pickled: they hold paths and names, and nothing that was read.
        """
        if len(self._tables) < 2:
            return [self]
        widths = self._found_widths()
        return [self._part(each, widths) for each in self._tables]

    def close(self) -> None:
        """Let go of what a source keeps between passes, such as a transaction of PostgreSQL.

        The next pass begins anew, and may see other rows.
        """
        for table in self._tables:
            table.close()

    def check(self) -> None:
        """Raise `InvalidInput` if a file or schema is not what was asked for, or unlike others."""
        known: Forms | None = None
        for table in self._tables:
            known = self._met(known, table.forms(self._columns))

    @property
    def name(self) -> str:
        """The public name of a part: its path relative to what was given. Of many, the first's."""
        return self._tables[0].name if self._tables else "nothing"

    @property
    def files(self) -> list[Path]:
        """The files that are read, if they are files."""
        return [table.path for table in self._tables if isinstance(table, FilePart)]

    @property
    def has_texts(self) -> bool:
        """Whether labels are texts."""
        return self._tables[0].forms(self._columns).values.kind == "texts"

    @property
    def key_dim(self) -> int:
        """The width of keys."""
        return self._widths()[0]

    @property
    def value_dim(self) -> int:
        """The width of values; 1 for labels."""
        return self._widths()[1]

    @property
    def count(self) -> int | None:
        """How many rows there are, if that is known without reading them. PRIVATE."""
        counts = [table.count(self._columns) for table in self._tables]
        return None if None in counts else sum(counts)  # type: ignore[arg-type]

    @property
    def in_files(self) -> bool:
        """Whether all rows are in files, which other processes can open, too."""
        return all(isinstance(table, FilePart) for table in self._tables)

    @property
    def by_record(self) -> bool:
        """Whether rows come with the record that they belong to."""
        return self._columns.groups is not None

    def _part(self, table: Part, widths: tuple[int, int] | None) -> "Rows":
        part = object.__new__(Rows)
        part._columns, part._tables, part._given_widths = self._columns, [table], widths
        return part

    def _records(self) -> Iterator[Chunk]:
        return gathered(
            self._alike,
            rows=self.count,
            row_bytes=8 * sum(self._widths()),
            again=all(table.again for table in self._tables),
        )

    def _alike(self) -> Iterator[Chunk]:
        """Yield all rows, if they can stand in one table."""
        known: Forms | None = None
        empty = True
        for table in self._tables:
            with table.opened(self._columns) as reading:
                if self._given_widths is not None and reading.rows == 0:
                    continue  # its columns may be of no type at all
                forms = reading.forms()
                known = self._met(known, forms)
                for chunk in reading.chunks():
                    if len(chunk[0]):
                        known = self._met(known, forms.of_chunk(chunk))
                        empty = False
                        yield chunk
        if empty:
            yield self._nothing(known)

    def _met(self, known: Forms | None, met: Forms) -> Forms:
        """Return what rows hold as far as it is known by now, if what was met fits to it."""
        if known is None:
            return met
        known.check_fits(met, self._columns)
        return met if None in (known.keys.width, known.values.width) else known

    def _widths(self) -> tuple[int, int]:
        widths = self._found_widths()
        if widths is None:
            raise self._unknown()
        return widths

    def _found_widths(self) -> tuple[int, int] | None:
        """Return the widths of keys and values, from the first table that tells them."""
        if self._given_widths is not None:
            return self._given_widths
        known: Forms | None = None
        for table in self._tables:
            known = self._met(known, table.forms(self._columns))
            if known.keys.width is not None and known.values.width is not None:
                return known.keys.width, known.values.width
        return None

    def _nothing(self, forms: Forms | None) -> Chunk:
        """Return a chunk without rows."""
        key_dim, value_dim = self._given_widths or (
            (None, None) if forms is None else (forms.keys.width, forms.values.width)
        )
        if key_dim is None or value_dim is None:
            raise self._unknown()
        values = np.empty((0, value_dim))
        if self._columns.labels:
            values = np.empty(0, _dtype(None if forms is None else forms.values))
        groups = np.empty(0, _dtype(None if forms is None else forms.groups))
        return np.empty((0, key_dim)), values, groups if self.by_record else None

    def _unknown(self) -> InvalidInput:
        where = self._tables[0].where if self._tables else "the table"
        return InvalidInput(f"Expected {where} to have rows: else its width is unknown.")


def _dtype(form: Form | None) -> Any:  # noqa: ANN401
    return np.int64 if form is None else {"texts": str, "bytes": bytes}.get(form.kind, np.int64)


def parts_of(given: object) -> list[Part]:
    """Return the tables that something stands for, in order, at least one.

    Folders are searched by `os.walk` and not by pyarrow (`dataset`, `fs.FileSelector`), which knows
    no patterns, passes over what is no Parquet file or fails at it without saying which to name,
    lists the files of a folder that links to itself forty times over, and takes the types of all
    files from the first, and those of columns from the names of folders. And .npz files are found
    without it.

    Raises `InvalidInput` if there is none, or one that cannot be read, or one twice: its rows would
    count twice.
    """
    if isinstance(given, str | os.PathLike):
        return _files([given])
    if isinstance(given, list | tuple) and any(
        isinstance(each, str | os.PathLike) for each in given
    ):
        return _files(given)
    with needing_pyarrow("tables"):
        if is_store(given):
            return [store_part(given)]
        from discreet.tables.streams import arrow_parts
    return arrow_parts(given)


def _files(given: Sequence[object]) -> list[Part]:
    roots, paths = [], []
    for each in given:
        if not isinstance(each, str | os.PathLike):
            raise InvalidInput("Expected a list of files, or a list of tables, and no mixture.")
        try:
            root, found = _found(Path(each))
        except OSError as error:
            path = error.filename or each
            raise InvalidInput(f"Expected {path} to be readable: {error.strerror}.") from None
        roots.append(os.path.abspath(root))
        paths += found
    common = os.path.commonpath(roots)
    _check_once(paths)
    return [_part(path, Path(os.path.relpath(path, common)).as_posix()) for path in paths]


def _found(path: Path) -> tuple[Path, list[Path]]:
    """Return what names are relative to, and the files, sorted."""
    if path.is_dir():
        return path, sorted(_below(path, path))
    if path.is_file():
        return path.parent, [path]
    if path.exists():
        raise InvalidInput(
            f"Expected {path} to be a file or a directory, and it is something else."
        )
    if not glob.has_magic(str(path)):
        raise InvalidInput(f"Expected {path} to be a file, and there is none of this name.")
    found: set[Path] = set()
    root = _fixed(path)
    for text in glob.glob(str(path), recursive=True):
        match = Path(text)
        if any(_is_passed_over(name) for name in match.relative_to(root).parts):
            continue
        found |= set(_below(match, match)) if match.is_dir() else {match}
    if not found:
        raise InvalidInput(f"Expected {path} to match files, and there is none.")
    return root, sorted(found)


def _below(folder: Path, top: Path) -> Iterator[Path]:
    """Yield all files of a folder and the folders in it, of which there must be one."""

    def refuse(error: OSError) -> None:
        raise error

    seen: set[tuple[int, int]] = set()
    count = 0
    for here, folders, files in os.walk(folder, followlinks=True, onerror=refuse):
        state = os.stat(here)
        if (state.st_dev, state.st_ino) in seen:
            raise InvalidInput(f"Expected {here} to be in {top} once.")
        seen.add((state.st_dev, state.st_ino))
        folders[:] = [name for name in folders if not _is_passed_over(name)]
        for name in files:
            if _is_passed_over(name):
                continue
            path = Path(here, name)
            if path.suffix.lower() != ".parquet":
                raise InvalidInput(
                    f"Expected {path} to end in .parquet, as all files in {top} must; those whose "
                    "names begin with . or _ are passed over."
                )
            count += 1
            yield path
    if not count:
        raise InvalidInput(f"Expected {top} to have .parquet files in it, and there is none.")


def _fixed(pattern: Path) -> Path:
    """Return the folder that all matches of a pattern lie in."""
    parts = pattern.parts
    magic = next(place for place, part in enumerate(parts) if glob.has_magic(part))
    return Path(*parts[:magic])


def _is_passed_over(name: str) -> bool:
    return name.startswith((".", "_"))


def _check_once(paths: list[Path]) -> None:
    seen: dict[tuple[int, int], Path] = {}
    for path in paths:
        if not path.is_file():
            raise InvalidInput(f"Expected {path} to be a file, and it is something else.")
        state = path.stat()
        other = seen.setdefault((state.st_dev, state.st_ino), path)
        if other is not path:
            raise InvalidInput(
                f"Expected every file once, and {path} is {other}: rows would count twice."
            )


def _part(path: Path, name: str) -> Part:
    kind = path.suffix.lower()
    if kind == ".npy":
        raise InvalidInput(
            f"Expected {path} to be a .parquet, .npz or .safetensors file: a .npy file holds one "
            "array, and a table has several. numpy.savez(file, keys=..., values=...) writes them."
        )
    if kind not in _TABLES:
        raise InvalidInput(f"Expected {path} to end in one of {', '.join(_TABLES)}.")
    if kind != ".parquet":
        return ArrayPart(path, name)
    with needing_pyarrow(path):
        from discreet.tables.arrow import ParquetPart
    return ParquetPart(path, name)


def sized(chunks: Iterable[Chunk]) -> Generator[Chunk, None, None]:
    """Yield the same rows in the same order, in chunks of about 2^22 numbers, at least one row."""
    held: list[Chunk] = []
    rows = 0
    for chunk in chunks:
        most = max(1, _NUMBERS // _row_numbers(chunk))
        for start in range(0, max(len(chunk[0]), 1), most):
            piece = _cut(chunk, slice(start, start + most))
            if held and rows + len(piece[0]) > most:
                yield _joined(held)
                held, rows = [], 0
            held.append(piece)
            rows += len(piece[0])
    if held:
        yield _joined(held)


def read_ahead(chunks: Generator[Chunk, None, None]) -> Iterator[Chunk]:
    """Yield the same chunks; another thread reads the next one meanwhile.

    Args:
        chunks: of a source that another thread may read.
    """
    with closing(chunks), ThreadPoolExecutor(1, "discreet-reading") as reader:
        coming = reader.submit(next, chunks, None)
        while (chunk := coming.result()) is not None:
            coming = reader.submit(next, chunks, None)
            yield chunk


def gathered(
    open_chunks: Callable[[], Iterator[Chunk]], *, rows: int | None, row_bytes: int, again: bool
) -> Iterator[Chunk]:
    """Yield all rows, such that every record lies wholly in one chunk; at least one chunk.

    Rows that can be read again are: once for every 256 MB of them, and maybe once more to count
    them. A pass keeps the records of one bucket. Which one that is depends on the id alone, so no
    record can be in two, whatever the source does between passes; and if ids have changed, that is
    an error.

    Args:
        open_chunks: begins a pass over all rows.
        rows: how many there are, if that is known; else they are counted.
        row_bytes: of keys and values, as float64.
        again: whether there can be more than one pass.
    """
    if not again:
        yield _held(open_chunks())
        return
    if rows is None:
        rows = sum(len(keys) for keys, _, _ in open_chunks())
    buckets = max(1, math.ceil(rows * row_bytes / _BYTES_AT_ONCE))
    passes: set[tuple[int, int]] = set()
    for bucket in range(buckets):
        kept: list[Chunk] = []
        seen, ids = 0, 0
        for chunk in open_chunks():
            mixed = _mixed(chunk[2])
            seen, ids = seen + len(mixed), ids + _sum_of_rows(mixed, chunk)
            kept.append(_of_bucket(chunk, mixed % np.uint64(buckets) == bucket, buckets))
        passes.add((seen, ids % 2**64))
        if len(passes) > 1 or seen != rows:  # a row that has another id now counts twice, or never
            raise InvalidInput("Expected the same rows whenever they are read: they have changed.")
        whole = _joined(kept)
        if len(whole[0]) or bucket == 0:
            yield whole
        del whole  # before the next is gathered


def _sum_of_rows(ids: Words, chunk: Chunk) -> int:
    """Return a sum over rows, each with its id: the same in any order, and for no other rows.

    (Not by chance, that is: nobody has a reason to look for others.)
    """
    rows = ids.copy()
    for array in chunk[:2]:
        if array.dtype.kind in "iufb":
            columns = array if array.ndim == 2 else array[:, None]
            bits = np.ascontiguousarray(columns, dtype=np.float64)
            # Odd multiples of the golden ratio, one for each column.
            weights = np.arange(1, 2 * bits.shape[1], 2, dtype=np.uint64) * _GOLDEN
            rows = _spread(rows ^ (bits.view(np.uint64) @ weights))
        else:
            rows = _spread(rows ^ _mixed(array))
    return int(rows.sum(dtype=np.uint64))


def _of_bucket(chunk: Chunk, kept: NDArray[np.bool_], buckets: int) -> Chunk:
    if buckets == 1:
        return chunk
    keys, values, groups = chunk
    return keys[kept], values[kept], None if groups is None else groups[kept]


def _mixed(groups: Array) -> Words:
    """Return bits of each row's id that are spread evenly, shape (m,): of the same id, the same.

    Nobody sees them, so they may be faster than `digests_of`: whole numbers are mixed as in
    SplitMix64.
    """
    if isinstance(groups, np.ndarray) and groups.dtype.kind in "iu":
        bits = groups.astype(np.uint64)
    else:
        ids, of_row = distinct(groups)
        bits = np.array(list(map(_bits, ids)), dtype=np.uint64)[of_row]
    return _spread(bits)


def _spread(bits: Words) -> Words:
    """Return 64 bits of which each depends on all that were given."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def _bits(record: Any) -> int:  # noqa: ANN401
    """Return a whole number as 64 bits, as numpy has it, and of other ids a digest."""
    if type(record) is int:
        return record & (2**64 - 1)
    return int.from_bytes(hashlib.blake2b(encoded(record), digest_size=8).digest(), "little")


def _held(chunks: Iterator[Chunk]) -> Chunk:
    """Return all rows of a stream that comes once, if they are not too many."""
    kept: list[Chunk] = []
    size = 0
    for chunk in chunks:
        size += chunk[0].nbytes + chunk[1].nbytes
        if size > _BYTES_HELD:
            raise InvalidInput(
                "Expected a stream with groups to fit in 1 GiB, since its rows come once and a "
                "record's rows belong together. Write it to Parquet files first: they can be read "
                "again."
            )
        kept.append(chunk)
    return _joined(kept)


def _joined(chunks: list[Chunk]) -> Chunk:
    """Return the rows of all these chunks, at least one, as one. The list is emptied."""
    keys, values, groups = (list(each) for each in zip(*chunks, strict=True))
    chunks.clear()
    return _stacked(keys), _stacked(values), None if groups[0] is None else _joined_ids(groups)


def _row_numbers(chunk: Chunk) -> int:
    """Return how many numbers of keys and values a row has."""
    keys, values, _ = chunk
    return int(keys.shape[1] + (1 if values.ndim == 1 else values.shape[1]))


def _cut(chunk: Chunk, some: slice) -> Chunk:
    keys, values, groups = chunk
    return keys[some], values[some], None if groups is None else groups[some]


def _stacked(parts: list[NDArray[Any]]) -> NDArray[Any]:
    if len(parts) == 1:
        return parts.pop()
    end = sum(map(len, parts))
    dtype = np.result_type(*(part.dtype for part in parts))
    whole = np.empty((end, *parts[0].shape[1:]), dtype)
    # Each part is let go of once it is copied, and pages are taken as they are written: at no time
    # is there everything twice.
    while parts:
        part = parts.pop()
        whole[end - len(part) : end] = part
        end -= len(part)
    return whole


def _joined_ids(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """Return ids as they are: numpy would make floats of whole numbers with and without a sign."""
    if np.result_type(*(part.dtype for part in parts)).kind == "f":
        parts = [part.astype(object) for part in parts]
    return _stacked(parts)
