"""Files that commands write: checked before any work, whole or not there, counted in a ledger.

What noise was drawn for is a `Delivery`: room is claimed before, and nothing paid for is lost.
"""

import glob
import os
import shlex
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import IO, Any, Self

from discreet import provenance
from discreet._files import Part, whole_file
from discreet._validate import Note, warn
from discreet.accounting.receipt import Carrier
from discreet.cli.shell import Kept
from discreet.errors import DiscreetError, InvalidInput
from discreet.ledger import Ledger
from discreet.sums.container import largest_file
from discreet.sums.settings import Settings
from discreet.tables import split


def check_output(path: Path, *, force: bool, inputs: Iterable[Path | None] = ()) -> None:
    """Raise `InvalidInput` unless a file can be written there, before any work is done.

    Args:
        path: where to write.
        force: whether a file that is there may be replaced.
        inputs: files that may not, even so, and directories that nothing is written into.
    """
    if path.is_dir():
        raise InvalidInput(f"Expected {path} to be a file name, and it is a directory.")
    if path.exists() and not path.is_file():
        raise InvalidInput(f"Expected {path} to be a file, and it is something else.")
    for each in inputs:
        read = None if each is None else split(each)[0]
        if read is not None and read.exists() and path.exists() and path.samefile(read):
            raise InvalidInput(f"Expected {path} not to be one of the files that are read.")
        if read is not None and read.is_dir() and path.resolve().is_relative_to(read.resolve()):
            raise InvalidInput(f"Expected {path} not to lie in {read}, which is read.")
    if os.path.lexists(path) and not force:
        raise InvalidInput(f"Expected {path} not to exist yet; --force replaces it.")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise InvalidInput(f"Expected {path.parent} to be a directory that can be written to.")


@contextmanager
def output_file(path: Path, *, force: bool) -> Iterator[IO[bytes]]:
    """Yield a file that takes its name when it is complete; else nothing is left of it.

    A full disk, and the like, becomes a sentence that names the file.
    """
    try:
        with whole_file(path, replace=force) as file:
            yield file
    except FileExistsError:
        raise InvalidInput(f"Expected {path} not to exist yet; --force replaces it.") from None
    except OSError as error:
        raise DiscreetError(
            f"{path} could not be written ({_reason(error)}), so nothing was; is there room for it?"
        ) from None


def pictures() -> ModuleType:
    """Return what draws, if matplotlib is there."""
    try:
        from discreet import pictures as drawing
    except ImportError:
        raise InvalidInput("Expected matplotlib: pip install 'discreet[plots]'.") from None
    return drawing


def check_picture(path: Path | None, *, force: bool, inputs: Iterable[Path | None] = ()) -> None:
    """Raise `InvalidInput` unless a picture can be drawn there, if one is wanted.

    Args:
        path: where to draw.
        force: whether a file that is there may be replaced.
        inputs: files that may not, even so.
    """
    if path is not None:
        check_output(path, force=force, inputs=inputs)
        pictures().check_suffix(path)


class Delivery:
    """One file that is to be written with what cannot be made again without paying again.

    `claim` comes before any noise is drawn, and takes the room that will be needed. `write` puts
    the file in its place; whatever keeps it from that (no room all the same, Ctrl-C), all bytes are
    kept in a part file, and the sentence that tells of it says where, and what to do.

    Args:
        path: of the file.
        force: whether one that is there may be replaced.
    """

    def __init__(self, path: Path, *, force: bool) -> None:
        self._path = path
        self._force = force
        self._part: Part | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave nothing but what was written, or kept."""
        if self._part is not None:
            self._part.discard()

    def claim_release(self, settings: Settings[Any]) -> None:
        """Claim room for a release with these public settings."""
        said = 0 if settings.stated is None else provenance.LARGEST
        self.claim(sum(map(largest_file, settings.layouts)) + said)

    def claim(self, size: int) -> None:
        """Raise `DiscreetError` unless a file of so many bytes can be written there."""
        for each in _left(self._path):
            warn(
                f"{each} is complete, and left of an earlier run that could not give it its name: "
                "noise is paid for again now.",
                UserWarning,
            )
        try:
            self._part = Part(self._path, replace=self._force)
            self._part.claim(size)
        except OSError as error:
            raise DiscreetError(
                f"{self._path} could not be written ({_reason(error)}), and needs up to {size:,} "
                "bytes: no noise was drawn, and nothing is spent."
            ) from None

    def write_release(
        self, release: Carrier, make: Callable[[], bytes], ledger: Ledger | None
    ) -> None:
        """Write a release, and note in the ledger, if one counts, where it went.

        Args:
            release: that is written.
            make: its bytes.
            ledger: that counts it.
        """
        if ledger is None:
            self.write(make)
        else:
            self.write(
                make,
                paid="counted in the ledger",
                note=lambda where: note_release(ledger, release, where),
            )

    def write(
        self,
        make: Callable[[], bytes],
        *,
        paid: str = "paid for",
        note: Callable[[Path], None] = lambda _: None,
    ) -> None:
        """Put a file in its place, or keep it elsewhere and raise.

        Args:
            make: its bytes, the same each time.
            paid: what has happened to its price, as a participle.
            note: told where the file is in the end.
        """
        part = self._claimed
        try:
            part.fill(make())
            part.publish()
        except BaseException as error:
            where = self._path if part.is_at(self._path) else self._keep(make)
            if where is not None:
                note(where)
            _tell(error, self._path, where, paid)
            raise
        note(self._path)

    @property
    def _claimed(self) -> Part:
        if self._part is None:
            raise DiscreetError("Expected room to be claimed before anything is drawn.")
        return self._part

    def _keep(self, make: Callable[[], bytes]) -> Path | None:
        """Return the name of a part file with all bytes, wherever there is room for one."""
        for part in self._places():
            try:
                if part.whole is None:
                    part.fill(make())
                part.sync_folder()
            except (OSError, MemoryError):
                part.discard()
                continue
            if part.whole is not None and part.is_at(part.whole):  # and nobody moved the folder
                self._part = None  # nothing is discarded any more
                part.close()
                return part.whole
        return None

    def _places(self) -> Iterator[Part]:
        """Yield parts to write to: the one that has room by now, then others elsewhere."""
        yield self._claimed
        for folder in _folders(self._path):
            with suppress(OSError):
                yield Part(self._path, replace=False, folder=folder)


def _folders(path: Path) -> Iterator[Path]:
    yield path.parent
    for find in (tempfile.gettempdir, Path.cwd, Path.home):
        with suppress(OSError, RuntimeError):
            yield Path(find())


def _left(path: Path) -> list[Path]:
    """Return the complete parts that others have left beside a file."""
    pattern = f"{glob.escape(path.name)}.[0-9]*.part"
    return sorted(path.parent.glob(pattern))


def _reason(error: OSError) -> str:
    return error.strerror or "the disk is full"


def _tell(error: BaseException, path: Path, where: Path | None, paid: str) -> None:
    """Say what has become of a file: in the place of an error of the system, or in a note."""
    if where is None:
        said = f"It was {paid} all the same, and is lost: there was no room for it anywhere."
    elif where == path:
        said = f"{path} was written."
    else:
        free = not os.path.lexists(path) or not isinstance(error, FileExistsError)
        to = shlex.quote(str(path)) if free else "ANOTHER-NAME"
        said = (
            f"But all of it is in {where}, and it is {paid}: do not build it again, move it (mv "
            f"{shlex.quote(str(where))} {to})."
        )
    if isinstance(error, OSError):
        raise DiscreetError(f"{path} could not be written ({_reason(error)}). {said}") from None
    error.add_note(Note(said) if where is None else Kept(said))


def note_release(ledger: Ledger, release: Carrier, output: Path) -> None:
    """Note where a release went that was counted; the file is there, so a failure only warns."""
    try:
        ledger.released(release, output)
    except DiscreetError as error:
        warn(
            f"{output} was written and is counted, but not noted as released: {error}", UserWarning
        )
