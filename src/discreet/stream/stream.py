"""`Stream`: a memory that grows. Steps of private rows in, after each of them a release of all."""

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from discreet import _validate
from discreet._typing import Array
from discreet._validate import Note
from discreet.accounting import Receipt
from discreet.errors import InvalidInput
from discreet.ledger import Account, Ledger
from discreet.ledger.ledger import account_of
from discreet.noise import Entropy, SystemEntropy
from discreet.noise.correlated import (
    MOST_STEPS,
    Participation,
    Reading,
    ReadingKind,
)
from discreet.noise.entropy import is_private
from discreet.privacy import NOT_PRIVATE, Guarantee, rounded_up
from discreet.readers.attention.options import BuildOptions, Options
from discreet.readers.registry import mechanism_named
from discreet.stream.design import reading_of, resolve
from discreet.stream.folder import THERE, Folder, account_in, checked_step
from discreet.stream.people import Cap, People, Visit
from discreet.stream.published import (
    SETTINGS,
    Published,
    StreamSettings,
    settings_in,
    warn_if_not_private,
)
from discreet.sums.accumulate import Accumulator
from discreet.sums.mechanism import shows_options
from discreet.sums.partial import (
    Partial,
    check_shards,
    derived_key,
    names_of_shards,
    new_key,
)
from discreet.sums.settings import Settings, Shape, Unit
from discreet.sums.source import RowSource, progress_bar

_PERHAPS = (
    "The step {name!r} may have been added all the same: append it once more, under the same name."
)


@shows_options(Options, BuildOptions.__annotations__)
class Stream:
    """A memory that grows: rows arrive in steps, and after each the sums so far are released.

    (epsilon, delta) holds for all that is ever released of it, together: every state after every
    step, for as long as it goes on. A record (or a row) may have rows in `participations` steps.
    Each state has a few times the noise of one single release (`card`, "noise"). `docs/privacy.md`,
    "Streams"; `docs/howto/streams.md`::

        stream = discreet.Stream("tickets/", key=key, steps=365, epsilon=1.0, delta=1e-6,
                                 rows_hint=100_000)
        memory = stream.append(keys, values, step="2026-03-01")
        last_month = stream.window(last=30)

    Steps follow a public clock. How many rows a step has is private (under "add_remove"), so a day
    without any is a step, too: append no rows. Rows that are late count in the step that they
    arrive in.

    The folder is its owner's: what is private in it is sealed with the key, and no exact sum is in
    it. A step that was appended is on the disk before it is returned; killed at any moment, the
    stream goes on from there, and no step is ever released twice with other noise.

    Args:
        path: of a folder; it is made.
        key: 32 random bytes (`Stream.new_key()`). Whoever has the key and the folder can
            read the exact sums of every step: keep it where the rows are.
        steps: how many there will be, about: the noise is least there. There may be more.
        participations: in so many steps a record may have rows. With ids (`groups`) its rows in
            any other step are left out; without, nobody checks.
        separation: and those at least so many steps apart.
        lifetime_rows: or, in place of both: so many rows in all, in any steps (needs ids); rows
            beyond are left out.
        tune: "all": what has the least noise is the state of all steps;
        window: or that of the last so many steps;
        half_life: or that of all steps, weights halved after so many more.
        keep: so many of the last states stay in the folder, for windows that are no longer; None
            for all, which `decayed` needs.
        key_dim: width of keys; with it and `value_dim` the stream is made at once, else with its
            first rows.
        value_dim: width of values.
        heads: leading axes of keys and values; () for one head.
        by_record: whether rows will come with groups.
        reader: what is made of each state: "attention", or another that reads rows once
            ("least_squares", "distances"); then the options are those of its own front door.
        entropy: where the noise comes from; by default the operating system.
        account: where the stream is counted, once, if anywhere: `Ledger.account(dataset, analyst)`.
            The ledger also notes each step, so that a copy of the folder cannot go on beside it.
        ledger: or its parts: a `discreet.ledger.Ledger`,
        dataset: the name that the rows have there,
        analyst: and who asks, if that is to be known.
        **options: as for `discreet.build`; `rows_hint` is for all `steps` together.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        key: bytes,
        steps: int,
        participations: int = 1,
        separation: int = 1,
        lifetime_rows: int | None = None,
        tune: str = "all",
        window: int | None = None,
        half_life: float | None = None,
        keep: int | None = None,
        key_dim: int | None = None,
        value_dim: int | None = None,
        heads: tuple[int, ...] = (),
        by_record: bool = False,
        reader: str = "attention",
        entropy: Entropy | None = None,
        account: Account | None = None,
        ledger: Ledger | None = None,
        dataset: str | None = None,
        analyst: str | None = None,
        **options: Any,  # noqa: ANN401 (the reader's own)
    ) -> None:
        self._path = Path(path)
        self._key = derived_key(key, "stream")  # checks it
        self._folder: Folder | None = None
        self._entropy = _source_of_noise(entropy)
        self._account = account_of(ledger, dataset, analyst, account)
        self._mechanism = mechanism_named(reader)
        if not self._mechanism.reads_once:
            _validate.reject_argument("reader", reader, "one that reads rows once")
        self._steps = _validate.whole("steps", steps, at_least=1, at_most=MOST_STEPS)
        self._tune = reading_of(tune, window, half_life, steps=self._steps)
        self._keep = _kept(keep, self._tune)
        self._participation = _participation(participations, separation, lifetime_rows)
        if lifetime_rows is not None:
            if "group_rows" in options:
                raise InvalidInput("Expected lifetime_rows or group_rows, not both.")
            options["group_rows"] = lifetime_rows
        self._options = self._mechanism.options(**options)
        self._check_new()
        if (key_dim is None) != (value_dim is None):
            raise InvalidInput("Expected key_dim and value_dim, or neither.")
        if key_dim is not None and value_dim is not None:
            shape = Shape(heads=tuple(heads), key_dim=key_dim, value_dim=value_dim)
            self._create([shape], Unit.RECORD if by_record else Unit.ROW)

    @staticmethod
    def new_key() -> bytes:
        """Return a fresh key, for `key`. Without it a stream cannot go on."""
        return new_key()

    @classmethod
    def resume(
        cls,
        path: str | os.PathLike[str],
        *,
        key: bytes,
        entropy: Entropy | None = None,
        ledger: Ledger | None = None,
    ) -> "Stream":
        """Return a stream that was begun before, as it was after its last step.

        Args:
            path: of its folder.
            key: that it was begun with.
            entropy: where the noise comes from; by default the operating system.
            ledger: that it is counted in, if that has moved.

        Raises:
            InvalidInput: there is no stream, or it is older than what was published.
            CorruptRelease: a file is missing or was altered, or the key is another.
            BudgetExceeded: the ledger knows of later steps.
        """
        stream = cls.__new__(cls)
        stream._open(Path(path), key, _source_of_noise(entropy), ledger)  # noqa: SLF001
        return stream

    @staticmethod
    def published(path: str | os.PathLike[str]) -> Published:
        """Return what anybody may see of a stream: no key is needed, and nothing can be appended.

        Args:
            path: of its folder, or of a copy of what is public in it.
        """
        return Published.open(Path(path))

    def _open(self, path: Path, key: bytes, entropy: Entropy, ledger: Ledger | None) -> None:
        self._path, self._key, self._entropy = path, derived_key(key, "stream"), entropy
        settings = settings_in(path)
        if settings.private and not is_private(entropy):
            _validate.reject("entropy", "...", "left out: this stream is private")
        account = account_in(path) if settings.counted else None
        if ledger is not None:
            if account is None:
                _validate.reject("ledger", "...", "left out: this stream was counted nowhere")
            account = replace(account, ledger=ledger)
        self._mechanism, self._steps, self._tune = settings.mechanism, settings.steps, settings.tune
        people = _people(self._key, settings.sums)
        self._folder = Folder(path, self._key, settings, people, account)
        with self._folder.locked():
            self._folder.load()
            self._folder.count()
            self._folder.check_ledger()
            if ledger is not None:
                self._folder.keep_account()
        warn_if_not_private(settings, path)

    def _check_new(self) -> None:
        if (self._path / SETTINGS).exists():
            raise InvalidInput(THERE)

    def _create(self, shapes: list[Shape], unit: Unit) -> Folder:
        """Fix everything that is public, count it, and make the folder."""
        self._check_new()
        if self._participation.steps is None and unit is not Unit.RECORD:
            raise InvalidInput("Expected groups with lifetime_rows: rows alone cannot be counted.")
        options = self._options
        sums = resolve(
            self._mechanism,
            shapes,
            options,
            unit=unit,
            steps=self._steps,
            tune=self._tune,
            participation=self._participation,
            enforced=unit is Unit.RECORD,
        )
        options.warn_if_nobody_is_protected()
        sums.check(self._account)
        receipt = sums.receipt(self._entropy)
        settings = StreamSettings(
            mechanism=self._mechanism,
            sums=sums,
            steps=self._steps,
            tune=self._tune,
            rows_hint=options.rows_hint,
            receipt=receipt,
            counted=self._account is not None,
            keep=self._keep,
        )
        people = _people(self._key, sums)
        folder = Folder(self._path, self._key, settings, people, self._account)
        folder.create()
        folder.count()  # what could not be written is not counted
        self._folder = folder
        return folder

    def __reduce__(self) -> NoReturn:
        raise TypeError("A stream has its key, and is never pickled or copied: resume it.")

    def __repr__(self) -> str:
        if self._folder is None:
            return "<Stream: not begun>"
        mark = "" if self.receipt.private else f" {NOT_PRIVATE}"
        epsilon = rounded_up(self.guarantee.epsilon)
        return f"<Stream{mark}, {self.step:,} steps, ε = {epsilon} for all of them>"

    @property
    def _begun(self) -> Folder:
        if self._folder is None:
            raise InvalidInput(
                "Expected a stream with at least one step, or one that was made with key_dim and "
                "value_dim."
            )
        return self._folder

    @property
    def settings(self) -> Settings[Any]:
        """The public settings of its sums."""
        return self._begun.settings.sums

    @property
    def receipt(self) -> Receipt:
        """What is spent on all steps together, once."""
        return self._begun.settings.receipt

    @property
    def guarantee(self) -> Guarantee:
        """What is promised, for all steps together, those to come included."""
        return self._begun.guarantee

    @property
    def step(self) -> int:
        """How many steps there have been."""
        return 0 if self._folder is None else self._folder.state.step

    @property
    def names(self) -> list[str]:
        """The names of all steps, in order."""
        return [] if self._folder is None else self._folder.names

    @property
    def horizon(self) -> int:
        """How many steps it was designed for."""
        return self._steps

    @property
    def tune(self) -> Reading:
        """Which reading has the least noise."""
        return self._tune

    def append(
        self,
        keys: Array,
        values: Array = None,
        *,
        groups: Array = None,
        step: str,
        progress: bool = False,
    ) -> Any:  # noqa: ANN401 (what the reader makes of it)
        """Add the rows of one step, and return what answers from all rows so far.

        Args:
            keys: as for `discreet.build`: arrays, or chunks of keys and values. No rows at all are
                a step, too: shape (0, d).
            values: likewise.
            groups: the record of each row, shape (n,); None if each row is its own.
            step: its public name, such as a date. For a name that is known the rows are not looked
                at, and what was released after that step is returned.
            progress: whether to show a progress bar.

        Raises:
            InvalidInput: rows are not as in the first step, or there have been too many steps.
            BudgetExceeded: the ledger has too little left, or knows of later steps.
        """
        name = checked_step(step)
        if self._folder is None:
            self._check_new()
            rows = RowSource.of(keys, values, groups)
            self._append_rows(self._create(rows.shapes, rows.unit), rows, name, progress)
        elif name not in self._folder.numbers:
            rows = RowSource.of(keys, values, groups)
            self._append_rows(self._folder, rows, name, progress)
        return self.memory(step=name)

    def _append_rows(self, folder: Folder, rows: RowSource, name: str, progress: bool) -> None:  # noqa: FBT001
        with folder.locked():
            if not self._goes_on(folder, name):
                return
            visit = None if folder.people is None else folder.people.visit(self.step + 1)
            accumulator = Accumulator(folder.settings.sums)
            known = rows.count() if progress else None
            _ = rows.unit  # raises if there is no chunk at all: an iterator that was read before
            with progress_bar("adding up rows", rows=known, show=progress) as advance:
                for tables, of_row in rows.chunks():
                    if visit is not None and of_row is None and not tables[0].rows:
                        of_row = []  # noqa: PLW2901 (nobody's rows need no ids)
                    if visit is not None and of_row is not None:
                        tables, of_row = visit.admit(tables, of_row)  # noqa: PLW2901
                    accumulator.add(tables, groups=of_row, advance=advance)
            self._commit(folder, name, accumulator.sums, accumulator.rows, visit)

    def append_parts(self, parts: Iterable[bytes], *, expected: Iterable[str], step: str) -> Any:  # noqa: ANN401
        """Add a step whose rows were added up elsewhere, by a job of this stream and step.

        `discreet.shards.Job.of_step(stream, step)` seals them (`partial`, `merge`). A part of
        another step is refused, and so are parts of a shuffle: they do not know their records.

        Args:
            parts: sealed partials, in any order.
            expected: the names of all shards, each once.
            step: its public name.

        Raises:
            InvalidInput: a shard is missing or there twice, or a record has had its share.
            CorruptRelease: sealed bytes were altered, or are of another step.
        """
        name, folder = checked_step(step), self._begun
        if name not in folder.numbers:
            self._append_parts(folder, parts, list(expected), name)
        return self.memory(step=name)

    def _append_parts(
        self, folder: Folder, parts: Iterable[bytes], names: list[str], name: str
    ) -> None:
        key = self.step_key(name)
        with folder.locked():
            if not self._goes_on(folder, name):
                return
            opened = (Partial.unseal(data, key, folder.settings.sums) for data in parts)
            total = Partial.merged(folder.settings.sums, opened)
            if total.origin:
                raise InvalidInput(
                    "Expected sums of whole shards: those of a shuffle do not know their records, "
                    "so nobody could tell who has had their share."
                )
            check_shards(total.shards, names_of_shards(names))
            visit = None if folder.people is None else folder.people.visit(self.step + 1)
            if visit is not None:
                visit.admit_marks(total.ids)
            self._commit(folder, name, list(total.sums), total.rows, visit)

    def step_key(self, step: str) -> bytes:
        """Return the key that shards of one step are sealed with.

        Args:
            step: its public name.
        """
        return derived_key(self._key, f"shards of {self.receipt.id} {checked_step(step)}")

    def _goes_on(self, folder: Folder, name: str) -> bool:
        """Return whether a step is new, once what other processes did is known."""
        folder.refresh()
        folder.check_ledger()
        return name not in folder.numbers

    def _commit(
        self, folder: Folder, name: str, sums: list[Any], rows: int, visit: Visit | None
    ) -> None:
        state = folder.state.next(sums, folder.settings.sums, self._entropy, rows=rows)
        try:
            folder.commit(name, state, visit)
        except InvalidInput:  # nothing was added
            raise
        except Exception as error:
            error.add_note(Note(_PERHAPS.format(name=name)))
            raise

    def memory(self, *, step: str | None = None) -> Any:  # noqa: ANN401 (what the reader makes of it)
        """Return what answers from all rows so far, or from all up to a step.

        Args:
            step: its name; None for the last.
        """
        return self._begun.memory(step=step)

    def window(self, *, last: int, step: str | None = None) -> Any:  # noqa: ANN401
        """Return what answers from the rows of the last steps. Post-processing, as often as liked.

        Args:
            last: how many steps.
            step: the last of them; None for the last that there is.
        """
        return self._begun.window(last=last, step=step)

    def decayed(self, *, half_life: float, step: str | None = None) -> Any:  # noqa: ANN401
        """Return what answers from all rows, each with a weight that halves. Post-processing.

        Args:
            half_life: after so many steps a row has half of its weight.
            step: the last step; None for the last that there is.
        """
        return self._begun.decayed(half_life=half_life, step=step)

    def tuned(self, *, step: str | None = None) -> Any:  # noqa: ANN401
        """Return what answers from the rows that the stream was tuned for (`window`, `half_life`).

        Args:
            step: the last step; None for the last that there is.
        """
        return self._begun.tuned(step=step)


def _source_of_noise(entropy: Entropy | None) -> Entropy:
    if entropy is None:
        return SystemEntropy()
    _validate.instance("entropy", entropy, Entropy)
    return entropy


def _participation(steps: int, separation: int, rows: int | None) -> Participation:
    if rows is None:
        steps = _validate.whole("participations", steps, at_least=1, at_most=MOST_STEPS)
        return Participation(steps, separation)
    _validate.whole("lifetime_rows", rows, at_least=1, at_most=10**6)
    if steps != 1 or separation != 1:
        raise InvalidInput("Expected lifetime_rows, or participations and separation, not both.")
    return Participation(None)


def _kept(keep: int | None, tune: Reading) -> int | None:
    """Return how many states stay, if what the stream is tuned for can be read from them."""
    if keep is None:
        return None
    keep = _validate.whole("keep", keep, at_least=1)
    if tune.kind is ReadingKind.DECAY:
        _validate.reject("keep", keep, "left out: a half-life is read from all states")
    if tune.kind is ReadingKind.WINDOW and keep <= tune.length:
        _validate.reject("keep", keep, f"more than the window of {tune.length} steps needs")
    return keep


def _people(key: bytes, settings: Settings[Any]) -> People | None:
    """Return who has had rows: nobody yet. None where rows have no ids."""
    if settings.unit is not Unit.RECORD or settings.continual is None:
        return None
    cap = Cap(settings.continual.participation, int(settings.group_rows))
    return People(derived_key(key, "people"), cap)
