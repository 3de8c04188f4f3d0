"""What commands read: rows, as a table or as a file for each array; public rows; released files."""

import glob
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from discreet.errors import InvalidInput
from discreet.features.public_rows import PublicRows
from discreet.privacy import Neighbours
from discreet.readers.attention.bundle import Memories
from discreet.readers.attention.memory import Memory
from discreet.readers.distances.answers import Distances
from discreet.readers.least_squares.answers import LeastSquares
from discreet.readers.registry import AnyFile as ReleasedFile
from discreet.readers.registry import load as open_release
from discreet.readers.softmax.answers import SoftmaxRegression
from discreet.sums.release import Release as AnyRelease
from discreet.tables import Rows, read_array, read_groups, split

Release = TypeVar("Release", bound=AnyRelease[Any])

# What files hold, and what answers from each.
_RELEASES: dict[type, tuple[str, str]] = {
    Memory: ("a memory", ": discreet attend answers from it"),
    Memories: ("the context of a model", ": discreet.integrations puts it on one"),
    LeastSquares: ("a regression", ": discreet predict answers from it"),
    SoftmaxRegression: ("a classifier", ": discreet predict answers from it"),
    Distances: ("sums of distances", ": discreet query answers from it"),
}

_STRUCTURE = ("one of the paper's structures", ": discreet.load opens it, in Python")


@dataclass(frozen=True)
class ArrayFiles:
    """Keys, values and groups, each FILE or FILE:NAME."""

    keys: Path
    values: Path | None
    groups: Path | None

    @property
    def files(self) -> list[Path | None]:
        """All that is read."""
        return [self.keys, self.values, self.groups]

    def arguments(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return these options and the rows, as `build` takes them."""
        return {
            **options,
            "keys": read_array(self.keys, "keys"),
            "values": None if self.values is None else read_array(self.values, "values"),
            "groups": None if self.groups is None else read_groups(self.groups),
        }


@dataclass(frozen=True)
class Table:
    """Columns of a file, or of all files of a directory or pattern."""

    source: Path
    rows: Rows

    @property
    def files(self) -> list[Path | None]:
        """All that is read."""
        return [self.source, *self.rows.files]

    def arguments(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return these options and the rows, as `build` and `softmax_regression` take them.

        Every file is looked at before any row is read. Under "replace" the number of rows is
        public, and the default.
        """
        self.rows.check()
        hint = options.get("rows_hint")
        replaced = options.get("neighbours") == Neighbours.REPLACE
        if hint is None and replaced and not self.rows.by_record and self.rows.count is not None:
            hint = max(self.rows.count, 1)
        return {**options, "rows_hint": hint, "keys": self.rows}


def to_build(
    source: Path,
    values_file: Path | None,
    *,
    keys: str | None,
    values: str | None,
    groups: str | None,
) -> ArrayFiles | Table:
    """Return what to build from: a table, by names of columns, or arrays, by a second file."""
    if (keys is None) != (values is None):
        raise InvalidInput("Expected both --keys and --values: names of columns or arrays.")
    if keys is None and values_file is None:
        raise InvalidInput(
            f"Expected --keys and --values, the names of columns of {source}; or a second file, "
            "with values."
        )
    if keys is not None and values_file is not None:
        raise InvalidInput(
            f"Expected either --keys and --values, names of columns of {source}, or {values_file} "
            "as the file of values."
        )
    if values_file is not None:
        return ArrayFiles(source, values_file, None if groups is None else Path(groups))
    return table(source, keys=keys, values=values, groups=groups)


def table(source: Path, **names: Any) -> Table:  # noqa: ANN401 (those of Rows)
    """Return columns of a file, a directory or a pattern, which stands without a name.

    Args:
        source: as it was typed.
        **names: of columns, as `Rows` takes them.
    """
    path, name = split(source)
    if name is not None and not glob.has_magic(str(source)):
        raise InvalidInput(
            f"Expected {path} without a name: --keys and the like say what to read of it."
        )
    return Table(source, Rows(source, **names))


def public_rows(path: Path | None) -> PublicRows | None:
    """Return the public rows in a file, if there is one: read once, however often they are used."""
    return None if path is None else PublicRows(np.asarray(read_array(path, "public")))


def opened_release(path: Path) -> ReleasedFile:
    """Return what is in a file, whatever it is, with all that it says of itself."""
    found: ReleasedFile = open_release(_existing(path))
    return found


def opened(path: Path, *kinds: type[Release]) -> Release:
    """Return what is in a file, if it is of one of these kinds."""
    found = open_release(_existing(path))
    for kind in kinds:
        if isinstance(found, kind):
            return found
    wanted = " or ".join(_RELEASES[kind][0] for kind in kinds)
    name, hint = _RELEASES.get(type(found), _STRUCTURE)
    raise InvalidInput(f"Expected {path} to be {wanted}, and it is {name}{hint}.")


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise InvalidInput(
            f"Expected {path} to be a file written by discreet build, fit or regress."
        )
    return path
