"""What was given, and the tables that it stands for: files, folders, patterns, or Arrow's own.

Folders are searched by `os.walk` and not by pyarrow (`dataset`, `fs.FileSelector`), which knows no
patterns, passes over what is no Parquet file or fails at it without saying which to name, lists the
files of a folder that links to itself forty times over, and takes the types of all files from the
first, and those of columns from the names of folders. And .npz files are found without it.
"""

import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from discreet.errors import InvalidInput
from discreet.tables.columns import Part, needing_pyarrow
from discreet.tables.files import ArrayPart

_TABLES = (".parquet", ".npz", ".safetensors")


def parts_of(given: object) -> list[Part]:
    """Return the tables that something stands for, in order, at least one.

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
        from discreet.tables.parquet import ParquetPart
    return ParquetPart(path, name)
