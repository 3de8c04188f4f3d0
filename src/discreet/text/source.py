"""Private texts in: lists, columns of tables and files, chunks. Nothing of them is ever shown."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from discreet import _validate
from discreet._typing import Array, Integers
from discreet.errors import InvalidInput
from discreet.readers.softmax.rows import Labels, of_one_kind
from discreet.sums.source import names_of
from discreet.tables.whole import read_columns
from discreet.text.encoders import TextEncoder, Vectors

# Files of a folder that are read.
_TABLES = (".csv", ".parquet")

# Texts of a chunk, the label of each, and whose it is.
Chunk = tuple[Sequence[str], Array, Array]


@dataclass(frozen=True, eq=False, repr=False)
class Encoded:
    """All private texts, as the mechanisms read them. PRIVATE.

    Attributes:
        vectors: of texts, shape (n, d).
        labels: the place of each text's label among the classes, shape (n,); zeros without labels.
        marks: places of words of a vocabulary, shape (n, most); -1 for none.
        people: whose each text is, as `groups` are; None if each is somebody's own.
        texts: the texts themselves, where they are read again; else None.
    """

    vectors: Vectors
    labels: Integers
    marks: Integers
    people: Array
    texts: list[str] | None

    def __repr__(self) -> str:
        return "<Encoded: private>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("Texts are private and are never pickled or copied.")

    @property
    def values(self) -> Array:
        """Labels and marks side by side, shape (n, 1 + most)."""
        return np.concatenate([self.labels[:, None], self.marks], axis=1)


def chunks_of(texts: Any, labels: Any, people: Any, column: str) -> Iterator[Chunk]:  # noqa: ANN401
    """Yield the texts, however they come.

    Args:
        texts: a list of texts, or any sequence or column of them; a .csv or .parquet file, or a
            folder of them; a frame, an Arrow table or an Arrow stream that has them in a column; or
            an iterator of chunks (texts,), (texts, labels) or (texts, labels, people).
        labels: of the texts, in order; of a table, the name of their column. None for none.
        people: likewise whose each text is.
        column: the name of the column with the texts, of a table.
    """
    if isinstance(texts, str | os.PathLike):
        for path in _files(texts):
            yield _of_file(path, column, labels, people)
        return
    if _is_table(texts):
        yield _of_table(texts, column, labels, people)
        return
    if hasattr(texts, "__arrow_c_stream__") and not _is_column(texts):
        for batch in _batches(texts):
            yield _of_table(batch, column, labels, people)
        return
    if isinstance(texts, Iterator):
        if labels is not None or people is not None:
            raise InvalidInput("Expected labels and people to come with the chunks of texts.")
        for each in texts:
            if not isinstance(each, tuple) or not 1 <= len(each) <= 3:
                raise InvalidInput(
                    "Expected chunks (texts, labels, people); the last two or one may be left out."
                )
            yield (each[0], *each[1:], *[None] * (3 - len(each)))
        return
    yield texts, labels, people


def encoded(
    chunks: Iterable[Chunk],
    encoder: TextEncoder | None,
    *,
    classes: tuple[Any, ...],
    marks: Callable[[str], tuple[int, ...]] | None,
    most: int,
    keep: bool,
    progress: bool = False,
    cache: str | os.PathLike[str] | None = None,
) -> Encoded:
    """Return all texts as mechanisms read them: each by itself, to the bit.

    Args:
        chunks: the texts.
        encoder: of one text at a time; None if nobody reads vectors of whole texts.
        classes: all labels that there may be; () if texts have none.
        marks: the words of a text, as places in a vocabulary; None if none are asked for.
        most: how many there may be.
        keep: whether the texts themselves are kept.
        progress: whether to show a bar.
        cache: a folder for vectors, for its owner's eyes.
    """
    labels_of = Labels(np.asarray(classes)) if classes else None
    parts: list[tuple[Vectors, Integers, Integers]] = []
    people: list[Any] = []
    kept: list[str] = []
    by_person: bool | None = None
    for texts, labels, owners in chunks:
        listed = _texts(texts)
        if by_person not in {None, owners is not None}:
            raise InvalidInput("Expected people with every chunk, or with none.")
        by_person = owners is not None
        whose = _owners(owners, len(listed)) if by_person else []
        places = _places(labels, labels_of, len(listed))  # before what takes long
        vectors = np.ones((len(listed), 1), np.float32)
        if encoder is not None:
            vectors = encoder.encode_all(listed, progress=progress, cache=cache)
        # A text without a word counts nowhere: it would be as near to one topic as to another.
        said = np.array([bool(text.strip()) for text in listed], dtype=bool) & vectors.any(axis=1)
        rows = np.flatnonzero(said)
        marked = np.full((len(rows), most), -1, dtype=np.int64)
        if marks is not None:
            for row, at in enumerate(rows.tolist()):
                found = marks(listed[at])
                marked[row, : len(found)] = found
        parts.append((vectors[rows], places[rows], marked))
        people.extend([whose[at] for at in rows.tolist()] if by_person else [])
        kept.extend([listed[at] for at in rows.tolist()] if keep else [])
    if not parts:
        raise InvalidInput("Expected at least one chunk of texts (it may have none).")
    vectors, places, marked = (np.concatenate(each) for each in zip(*parts, strict=True))
    return Encoded(vectors, places, marked, people if by_person else None, kept if keep else None)


def _texts(texts: Any) -> list[str]:  # noqa: ANN401
    if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
        raise InvalidInput("Expected texts to be a list of texts.")
    if hasattr(texts, "to_pylist"):  # a column of Arrow, whose elements are no texts of Python
        texts = texts.to_pylist()
    listed = [str(each) if isinstance(each, np.str_) else each for each in texts]
    if not all(type(each) is str for each in listed):
        raise InvalidInput("Expected every text to be a text: none missing, and no numbers.")
    return listed


def _owners(people: Any, count: int) -> list[Any]:  # noqa: ANN401
    if isinstance(people, str):
        raise InvalidInput(
            "Expected people to say whose each text is, in order; the name of a column goes with a "
            "table."
        )
    try:
        names = names_of(people)
    except InvalidInput:
        raise InvalidInput(
            "Expected people to be whole numbers, or texts, of one type, none missing."
        ) from None
    if len(names) != count:
        raise InvalidInput("Expected as many people as there are texts: whose each one is.")
    return names.tolist() if isinstance(names, np.ndarray) else names


def _places(labels: Any, known: Labels | None, count: int) -> Integers:  # noqa: ANN401
    if known is None:
        if labels is not None:
            raise InvalidInput(
                "Expected classes: all labels that there may be, said without looking at the texts."
            )
        return np.zeros(count, dtype=np.int64)
    if labels is None:
        raise InvalidInput("Expected labels, one for each text: classes are given.")
    places = known.places(of_one_kind(labels))
    if len(places) != count:
        raise InvalidInput("Expected as many labels as there are texts.")
    return places


def _files(given: str | os.PathLike[str]) -> list[Path]:
    """Return a file, or those in a folder, by name. What is none may be a text: no quotes of it."""
    path = Path(given)
    try:
        folder = path.is_dir()
    except (OSError, ValueError):  # too long a name, or one with a null character
        folder = False
    if not folder and path.suffix.lower() in _TABLES:
        return [path]
    if not folder:
        raise InvalidInput(
            "Expected texts to be a list of texts (also of one), or the path of a .csv or .parquet "
            "file, or of a folder of them."
        )
    found = sorted(each for each in path.iterdir() if each.suffix.lower() in _TABLES)
    if len({each.suffix.lower() for each in found}) != 1:
        wanted = f"a folder with {' or '.join(_TABLES)} files, all of one kind"
        _validate.reject_argument("texts", os.fspath(path), wanted)
    return found


def _batches(stream: Any) -> Iterator[Any]:  # noqa: ANN401
    """Yield the batches of an Arrow stream, as tables."""
    try:
        import pyarrow as pa
    except ImportError:
        raise InvalidInput("Expected pyarrow: pip install 'discreet[parquet]'.") from None
    with pa.RecordBatchReader.from_stream(stream) as reader:
        for batch in reader:
            yield pa.Table.from_batches([batch])


def _of_file(path: Path, column: str, labels: Any, people: Any) -> Chunk:  # noqa: ANN401
    for name, given in (("labels", labels), ("people", people)):
        if given is not None and not isinstance(given, str):
            _validate.reject_argument(name, "...", "the name of a column of the same file")
    names = [column, *[each for each in (labels, people) if each is not None]]
    found = read_columns(path, names)
    return _present(found[column]), labels and found[labels], people and found[people]


def _of_table(table: Any, column: str, labels: Any, people: Any) -> Chunk:  # noqa: ANN401
    texts = _present(_column(table, column, "column"))
    return texts, _column(table, labels, "labels"), _column(table, people, "people")


def _present(texts: Sequence[Any]) -> list[Any]:
    """Return the cells of a column; one that is missing is a text without a word."""
    return ["" if each is None or each != each else each for each in texts]  # noqa: PLR0124 (NaN)


def _is_table(given: object) -> bool:
    """Whether this has named columns: a frame, an Arrow table, a dictionary of columns."""
    return isinstance(given, dict) or hasattr(given, "columns") or hasattr(given, "column_names")


def _is_column(given: object) -> bool:
    """Whether this is a column: of Arrow, Polars or pandas."""
    return hasattr(given, "to_pylist") or hasattr(given, "to_list")


def _column(table: Any, name: Any, what: str) -> Any:  # noqa: ANN401
    """Return a column of a table; what is given, if that is no name; None for none."""
    if name is None or not isinstance(name, str):
        return name
    names = getattr(table, "column_names", None) or list(getattr(table, "columns", table))
    if name not in [str(each) for each in names]:
        wanted = f"a column of the table: {', '.join(map(str, names))}"
        _validate.reject_argument(what, name, wanted)
    column = table[name]
    return column.to_pylist() if hasattr(column, "to_pylist") else list(column)
