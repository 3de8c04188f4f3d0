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

All that is sealed is bound to the settings of this stream and to its key. The sealed state knows a
hash of all lines of `steps.jsonl`, and these a hash of who came. A sealed state that is older than
what was published (a backup that was restored) is refused.
"""

import hashlib
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from discreet._files import whole_file
from discreet._typing import Integers
from discreet.accounting import Receipt
from discreet.errors import BudgetExceeded, CorruptRelease, InvalidInput, LedgerError
from discreet.ledger import Account, Ledger
from discreet.ledger.ledger import count
from discreet.noise.correlated import Reading
from discreet.stream.people import People, Visit
from discreet.stream.published import SETTINGS, Line, Published, StreamSettings
from discreet.stream.state import StreamState, packed, strategy_of, unpacked
from discreet.sums.partial import Envelope
from discreet.sums.release import Release

try:
    import fcntl
except ImportError:  # a system without it: one process at a time is up to its owner
    fcntl = None  # type: ignore[assignment]

_STATE = Envelope(b"discreet-stream-1\n", "the state of a stream (state.sealed)")
_PEOPLE = Envelope(b"discreet-stream-people-1\n", "the records of a step")
_FOLDERS = ("states", "people")
THERE = "Expected a folder without a stream: Stream.resume goes on with one."

# So that all of a sealed state but its numbers fits one kilobyte.
_LONGEST_NAME = 120


class Folder(Published):
    """The files of one stream, and what is known of them. PRIVATE: has the key.

    What is known changes only once all of it is on the disk. Whatever fails on the way leaves it
    stale, and the next who asks reads everything again.

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
        self._key = key
        # Of all settings, the name of the receipt among them: what is sealed is of this stream.
        self._digest = self._chain = settings.digest
        self._length = 0  # of steps.jsonl, in bytes
        self._threads = threading.Lock()
        self._holder = self._thread = 0  # the process, and the thread, that has the lock
        self._stale = True

    def create(self) -> None:
        """Write what a stream begins with.

        Raises:
            InvalidInput: there is a stream in that folder.
        """
        for name in _FOLDERS:
            (self.path / name).mkdir(exist_ok=True, parents=True)
        with self.locked():
            if (self.path / SETTINGS).exists():
                raise InvalidInput(THERE)
            self.keep_account()  # before the settings, which say that there is one
            with whole_file(self.path / SETTINGS) as file:
                file.write(self.settings.file)
            self._seal(self.state, "", self._chain)
            self._stale = False

    def keep_account(self) -> None:
        """Write down where the stream is counted, if anywhere."""
        if self.account is not None:
            account = self.account
            counted = [str(account.ledger.path), account.dataset, account.analyst]
            self._write("ledger.json", json.dumps(counted).encode())

    def refresh(self) -> None:
        """Read what other processes did, or what failed here, if there is any such.

        Raises:
            CorruptRelease: a file is missing or was altered, or the key is another.
            InvalidInput: the sealed state is older than what was published.
            BudgetExceeded: the ledger knows the last step with other noise.
        """
        if self._stale or self._is_behind():
            self.load()

    def load(self) -> None:
        """Read all that was committed, publish what was not yet, and check that all is there.

        Raises: as `refresh`.
        """
        self._stale = True
        for each in _FOLDERS:
            (self.path / each).mkdir(
                exist_ok=True
            )  # whatever copies folders may leave out empty ones
        if self._is_new():
            self._seal(StreamState.begin(self.settings.sums), "", self.settings.digest)
        state, name, chain = self._unseal()
        lines = self.published_lines()
        self._check_latest(state, chain, len(lines))
        behind = state.step - len(lines)
        if behind > 1:
            raise CorruptRelease("Expected a line for every step of the stream.")
        length = _length_of(lines)
        if behind == 1:
            people = self._people_digest(state.step)
            lines.append(Line.of(name, state, people, before=_chain_of(lines, self._digest)))
        if chain != _chain_of(lines, self._digest):
            raise CorruptRelease("Expected the lines of all steps as they were written.")
        came = None if self.people is None else self._recalled(self.people, lines)
        if behind == 1:
            self._publish(lines[-1], state, length)
        self.people, self.state, self._chain = came, state, chain
        self._length = _length_of(lines)
        self.take(lines)
        self._stale = False

    def _check_latest(self, state: StreamState, chain: str, listed: int) -> None:
        """Raise `InvalidInput` if anything shows that the sealed state is not the latest."""
        published = [each.name for each in (self.path / "states").iterdir() if each.name.isdigit()]
        latest = max([listed, self.state.step, *map(int, published)])
        same = state.step > self.state.step or chain == self._chain
        if state.step < latest or not same:
            raise InvalidInput(
                "Expected the latest state of this stream, and its sealed file is older than what "
                "was published (a backup that was restored?): noise would be drawn twice."
            )

    def _is_new(self) -> bool:
        """Whether it was killed while it was created: nothing was drawn."""
        if (self.path / "state.sealed").exists() or self.published_lines():
            return False
        return not any(any((self.path / name).iterdir()) for name in _FOLDERS)

    def _recalled(self, people: People, lines: list[Line]) -> People:
        """Return who came in all steps, from what was sealed of each."""
        recalled = people.nobody()
        for number, line in enumerate(lines, 1):
            data = self.file(f"people/{number:08d}")
            header, contents = _PEOPLE.unseal(data, self._key, self._digest)
            if header["step"] != number or hashlib.sha256(data).hexdigest() != line.people:
                raise CorruptRelease("Expected the records of each step where they were sealed.")
            recalled.restore(contents, number)
        return recalled

    def commit(self, name: str, state: StreamState, visit: Visit | None) -> None:
        """Make a step part of the stream, for good; then publish it.

        Args:
            name: of the step; a new one.
            state: after it.
            visit: who was admitted in it, if anybody is counted.

        Raises:
            InvalidInput: another process went on meanwhile, in spite of the lock: nothing is added.
        """
        if self._holder != os.getpid() or self._is_behind():
            self._stale = True
            raise InvalidInput(
                "Expected nobody else to go on with the stream meanwhile; nothing was added."
            )
        self._stale = True
        if visit is not None:
            header = {"settings": self._digest, "step": state.step}
            self._write(
                f"people/{state.step:08d}", _PEOPLE.seal(header, visit.contents(), self._key)
            )
        people = self._people_digest(state.step)
        line = Line.of(name, state, people, before=self._chain)
        self._seal(state, name, line.chain)
        length = self._publish(line, state, self._length)
        self.state, self._chain, self._length = state, line.chain, length
        self.lines.append(line)
        self.numbers[name] = state.step
        if self.people is not None and visit is not None:
            self.people.keep(visit)
        self._stale = False

    def _people_digest(self, step: int) -> str:
        """Return a hash of who was sealed for a step; of nothing if nobody is counted."""
        if self.people is None:
            return ""
        return hashlib.sha256(self.file(f"people/{step:08d}")).hexdigest()

    def _publish(self, line: Line, state: StreamState, length: int) -> int:
        """Note a step in the ledger, and then give it away; return how long the list is then."""
        if self.account is not None:
            self.account.ledger.note_step(self.settings.receipt.id, state.step, line.digest)
        self._write(f"states/{state.step:08d}", packed(state.totals))
        with (self.path / "steps.jsonl").open("ab") as file:
            file.truncate(length)  # what is beyond is of a line that was cut short
            file.write(f"{line}\n".encode())
            file.flush()
            os.fsync(file.fileno())
            length = file.tell()
        if self.settings.keep is not None and state.step > self.settings.keep:
            old = self.path / f"states/{state.step - self.settings.keep:08d}"
            old.unlink(missing_ok=True)
        return length

    def answers(self, reading: Reading, step: str | None = None) -> Release[Any]:
        """Return what answers from the rows of a reading, after a step that was published.

        Args:
            reading: which steps, with which weights.
            step: the name of the last; None for the last that there is.
        """
        if self._stale:
            with self.locked():
                self.refresh()
        return super().answers(reading, step)

    def totals(self, step: int) -> tuple[Integers, ...]:
        """Return what was released after a step; zeros before the first.

        Args:
            step: its number.
        """
        state = self.state  # once: another thread may go on meanwhile
        return state.totals if step == state.step else super().totals(step)

    def _is_behind(self) -> bool:
        """Return whether another process has gone on with the stream."""
        header = _STATE.header(self.file("state.sealed"))
        return (header.get("step"), header.get("chain")) != (self.state.step, self._chain)

    def count(self) -> None:
        """Count the stream, if anybody does: before its first step, and once for all of them.

        Whoever was killed between its creation and this has drawn nothing, and is counted when the
        stream is resumed. If it does not fit, nothing is left of the stream.

        Raises:
            BudgetExceeded: the ledger has too little left.
            LedgerError: the ledger cannot be written.
        """
        if self.account is None or self.state.step:
            return
        receipt = self.settings.receipt
        try:
            self.account.ledger.last_step(receipt.id)
        except InvalidInput:  # it is not spent
            try:
                self._spend(self.account, receipt)
            except (BudgetExceeded, LedgerError):
                for name in (SETTINGS, "state.sealed", "ledger.json"):
                    (self.path / name).unlink(missing_ok=True)
                raise

    def _spend(self, account: Account, receipt: Receipt) -> None:
        try:
            account.ledger.draw(receipt.id)  # reserved, by somebody who was killed then
        except InvalidInput:
            count(account, receipt, delta=self.settings.sums.privacy.delta)

    def check_ledger(self) -> None:
        """Raise `BudgetExceeded` if the ledger knows of later steps: of a copy, or a backup."""
        if self.account is None:
            return
        ledger = self.account.ledger
        if not ledger.exists():
            raise LedgerError(
                f"This stream is counted in the ledger {ledger.path}, and there is no such file. "
                "If it has moved, say where (ledger=, --ledger); if it is lost, the stream cannot "
                "go on, since nobody could tell it from a copy. What was published stays."
            )
        known = ledger.last_step(self.settings.receipt.id)
        if known > self.state.step:
            raise BudgetExceeded(
                f"Expected the latest state of this stream: the ledger knows its step {known:,}, "
                f"and this is a copy or a backup with {self.state.step:,} steps, which would draw "
                "noise twice. Nothing was released; go on with the stream itself."
            )

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes and threads from going on with the stream meanwhile."""
        if self._threads.locked() and self._thread == threading.get_ident():
            raise InvalidInput("Expected rows that do not go on with the stream themselves.")
        with self._threads, (self.path / "lock").open("ab") as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
            self._holder, self._thread = os.getpid(), threading.get_ident()
            try:
                yield
            finally:
                # A process that was forked meanwhile has the file open, too: so it is unlocked
                # here, and only by whoever locked it.
                if fcntl is not None and self._holder == os.getpid():
                    fcntl.flock(file, fcntl.LOCK_UN)

    def _seal(self, state: StreamState, name: str, chain: str) -> None:
        header = {
            "settings": self._digest,
            "step": state.step,
            "name": name,
            "rows": state.rows,
            "chain": chain,
        }
        contents = [packed(state.totals), packed([state.buffers])]
        self._write("state.sealed", _STATE.seal(header, contents, self._key))

    def _unseal(self) -> tuple[StreamState, str, str]:
        """Return the sealed state, the name of its step, and the hash of all lines."""
        header, contents = _STATE.unseal(self.file("state.sealed"), self._key, self._digest)
        size = sum(each.nbytes for each in self.state.totals)
        buffers = np.frombuffer(contents[size:], dtype="<i8").astype(np.int64)
        state = replace(
            self.state,
            step=header["step"],
            totals=unpacked(contents[:size], self.settings.sums),
            buffers=buffers.reshape(strategy_of(self.settings.sums).buffers, -1),
            rows=header["rows"],
        )
        return state, str(header["name"]), str(header["chain"])

    def _write(self, name: str, data: bytes) -> None:
        with whole_file(self.path / name) as file:
            file.write(data)


def _chain_of(lines: list[Line], first: str) -> str:
    return lines[-1].chain if lines else first


def _length_of(lines: list[Line]) -> int:
    return sum(len(f"{line}\n".encode()) for line in lines)


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
        or name != name.strip()
        or len(name.encode("utf-8", "replace")) > _LONGEST_NAME
    ):
        raise InvalidInput(
            f"Expected step to be a public name, such as a date: a text of at most {_LONGEST_NAME} "
            "bytes that can be printed, without spaces around it."
        )
    return name
