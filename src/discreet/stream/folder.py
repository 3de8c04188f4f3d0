"""The folder of a stream: what is public lies open, what is private is sealed, one file commits.

    settings.safetensors   public: what the stream is, its receipt, where it is counted
    state.sealed           buffers of the noise and the last totals: the commit point of a step
    people/00000001        sealed: hashes of who had rows in step 1, if anybody is counted
    states/00000001        public: the totals that were released after step 1
    ledger.json            where it is counted, if it is: for its owner
    steps.jsonl            public: a line for each step: its name, and a hash of its totals

A step is drawn in memory; then who came is sealed; then `state.sealed` is replaced, which commits
it; then a ledger notes it; and only then is it published. Whoever is killed before the commit has
released nothing, and whoever is killed after it finds the totals in the sealed file, and publishes
those. So no step is ever released with two states.

The sealed file knows a hash of all lines of `steps.jsonl`. One that is older than what was
published (a backup that was restored) is refused.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO

import numpy as np

from discreet._files import whole_file
from discreet._typing import Integers
from discreet.errors import BudgetExceeded, CorruptRelease, InvalidInput
from discreet.ledger import Account, Ledger
from discreet.stream.people import People, Visit
from discreet.stream.published import SETTINGS, Line, Published, StreamSettings
from discreet.stream.state import StreamState, packed, strategy_of, unpacked
from discreet.sums.partial import Envelope

_STATE = Envelope(b"discreet-stream-1\n", "the state of a stream")
_PEOPLE = Envelope(b"discreet-stream-people-1\n", "the records of a step")
THERE = "Expected a folder without a stream: Stream.resume goes on with one."
_FIRST = hashlib.sha256(b"discreet-stream").hexdigest()

# So that all of a sealed state but its numbers fits one kilobyte.
_LONGEST_NAME = 120


class Folder(Published):
    """The files of one stream, and what is known of them. PRIVATE: has the key.

    Attributes:
        state: the last that was committed.
        people: who has had rows, if anybody is counted.
        account: where the stream is counted, if anywhere.
    """

    def __init__(
        self,
        path: Path,
        key: bytes,
        settings: StreamSettings,
        people: People | None,
        account: Account | None,
    ) -> None:
        """Begin with no steps; nothing is written.

        Args:
            path: of the folder.
            key: that private files are sealed with.
            settings: public.
            people: who has had rows: nobody yet; None if nobody is counted.
            account: where the stream is counted, if anywhere.
        """
        super().__init__(path, settings)
        self.people = people
        self.account = account
        self.state = StreamState.begin(settings.sums)
        self._chain = _FIRST
        self._length = 0  # of steps.jsonl, in bytes
        self._recalled = 0  # steps whose records are known
        self._pending: Line | None = None  # committed, and not yet published
        self._key = key
        self._digest = settings.sums.digest

    def create(self) -> None:
        """Write what a stream begins with.

        Raises:
            InvalidInput: there is a stream in that folder.
        """
        for name in ("states", "people"):
            (self.path / name).mkdir(exist_ok=True, parents=True)
        try:
            with whole_file(self.path / SETTINGS, replace=False) as file:
                file.write(self.settings.to_bytes())
        except FileExistsError:
            raise InvalidInput(THERE) from None
        if self.account is not None:
            counted = [str(self.account.ledger.path), self.account.dataset, self.account.analyst]
            self._write("ledger.json", json.dumps(counted).encode())
        self._seal("")

    def load(self) -> None:
        """Read all that was committed, publish what was not yet, and check that all is there.

        Raises:
            CorruptRelease: a file is missing or was altered, or the key is another.
            InvalidInput: the sealed state is older than what was published.
        """
        if not (self.path / "state.sealed").exists() and not self.published_lines():
            self._seal("")  # killed while it was created: nothing was drawn
        name = self._unseal()
        published = self.published_lines()
        behind = self.state.step - len(published)
        if behind < 0:
            raise InvalidInput(
                "Expected the latest state of this stream, and its sealed file is older than what "
                "was published (a backup that was restored?): noise would be drawn twice."
            )
        if behind > 1:
            raise CorruptRelease("Expected a line for every step of the stream.")
        if behind == 1:
            published.append(Line.of(name, self.state))
        chain = _FIRST
        for line in published:
            chain = line.chained(chain)
        if chain != self._chain:
            raise CorruptRelease("Expected the lines of all steps as they were written.")
        self.take(published)
        self._length = sum(
            len(f"{line}\n".encode()) for line in published[: len(published) - behind]
        )
        if self.people is not None:
            for number in range(self._recalled, self.state.step):
                self._recall(self.people, number + 1)
        self._recalled = self.state.step
        self._pending = published[-1] if behind else None
        self.publish()

    def _recall(self, people: People, number: int) -> None:
        data = self.file(f"people/{number:08d}")
        header, contents = _PEOPLE.unseal(data, self._key, self._digest)
        if header["step"] != number:
            raise CorruptRelease("Expected the records of each step where they were sealed.")
        people.restore(contents, number)

    def commit(self, name: str, state: StreamState, visit: Visit | None) -> None:
        """Make a step part of the stream, for good; then publish it.

        Args:
            name: of the step; a new one.
            state: after it.
            visit: who was admitted in it, if anybody is counted.
        """
        line = Line.of(name, state)
        if visit is not None:
            header = {"settings": self._digest, "step": state.step}
            self._write(
                f"people/{state.step:08d}", _PEOPLE.seal(header, visit.contents(), self._key)
            )
        before = self.state, self._chain
        self.state, self._chain = state, line.chained(self._chain)
        try:
            self._seal(name)
        except BaseException:
            # Whether it took its name or not is on the disk.
            self.state, self._chain = before
            raise
        self._pending = line
        self._recalled = state.step
        self.lines.append(line)
        self.numbers[name] = state.step
        if self.people is not None and visit is not None:
            self.people.keep(visit)
        self.publish()

    def publish(self) -> None:
        """Note the last step in the ledger, and then give it away, if that was not done."""
        line, step = self._pending, self.state.step
        if line is None:
            return
        if self.account is not None:
            self.account.ledger.note_step(self.settings.receipt.id, step, line.digest)
        self._write(f"states/{step:08d}", packed(self.state.totals))
        with (self.path / "steps.jsonl").open("ab") as file:
            file.truncate(self._length)  # what is beyond is of a line that was cut short
            file.write(f"{line}\n".encode())
            file.flush()
            os.fsync(file.fileno())
            self._length = file.tell()
        self._pending = None

    def totals(self, step: int) -> tuple[Integers, ...]:
        """Return what was released after a step; zeros before the first.

        Args:
            step: its number.
        """
        return self.state.totals if step == self.state.step else super().totals(step)

    def is_behind(self) -> bool:
        """Return whether another process has gone on with the stream."""
        header = _STATE.header(self.file("state.sealed"))
        return (header.get("step"), header.get("chain")) != (self.state.step, self._chain)

    def check_ledger(self) -> None:
        """Raise `BudgetExceeded` if the ledger knows of later steps: of a copy, or a backup."""
        if self.account is None:
            return
        known = self.account.ledger.last_step(self.settings.receipt.id)
        if known > self.state.step:
            raise BudgetExceeded(
                f"Expected the latest state of this stream: the ledger knows its step {known:,}, "
                f"and this is a copy or a backup with {self.state.step:,} steps, which would draw "
                "noise twice. Nothing was released; go on with the stream itself."
            )

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes and threads from going on with the stream meanwhile."""
        with (self.path / "lock").open("ab") as file:
            _lock(file)
            yield

    def _seal(self, name: str) -> None:
        state = self.state
        header = {
            "settings": self._digest,
            "step": state.step,
            "name": name,
            "rows": state.rows,
            "chain": self._chain,
        }
        contents = [packed(state.totals), packed([state.buffers])]
        self._write("state.sealed", _STATE.seal(header, contents, self._key))

    def _unseal(self) -> str:
        header, contents = _STATE.unseal(self.file("state.sealed"), self._key, self._digest)
        size = sum(each.nbytes for each in self.state.totals)
        buffers = np.frombuffer(contents[size:], dtype="<i8").astype(np.int64)
        strategy = strategy_of(self.settings.sums)
        self.state = replace(
            self.state,
            step=header["step"],
            totals=unpacked(contents[:size], self.settings.sums),
            buffers=buffers.reshape(strategy.buffers, -1),
            rows=header["rows"],
        )
        self._chain = header["chain"]
        return str(header["name"])

    def _write(self, name: str, data: bytes) -> None:
        with whole_file(self.path / name) as file:
            file.write(data)


def account_in(path: Path) -> Account:
    """Return where the stream in a folder is counted.

    Args:
        path: of the folder.

    Raises:
        CorruptRelease: the file that says so is gone, or makes no sense.
    """
    try:
        ledger, dataset, analyst = json.loads((path / "ledger.json").read_bytes())
        return Ledger(ledger).account(dataset, analyst)
    except (OSError, TypeError, ValueError):
        raise CorruptRelease("Expected ledger.json to say where the stream is counted.") from None


def checked_step(name: object) -> str:
    """Return the name of a step, if it is one.

    Args:
        name: what the caller gave.

    Raises:
        InvalidInput: it is no text that can be printed, or too long.
    """
    if (
        not isinstance(name, str)
        or not name.strip()
        or not name.isprintable()
        or len(name.encode("utf-8", "replace")) > _LONGEST_NAME
    ):
        raise InvalidInput(
            f"Expected step to be a public name, such as a date: a text of at most {_LONGEST_NAME} "
            "bytes that can be printed."
        )
    return name


def _lock(file: IO[bytes]) -> None:
    try:
        import fcntl
    except ImportError:  # a system without it: one process at a time is up to its owner
        return
    fcntl.flock(file, fcntl.LOCK_EX)
