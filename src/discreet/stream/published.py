"""What anybody may see of a stream: its settings, its steps, and what was released after each.

All of it is public, and needs no key: `settings.safetensors`, `steps.jsonl` and the folder `states`
can be given away. What is read from them is post-processing.
"""

import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from discreet import _validate, provenance
from discreet._files import pack, unpack
from discreet._typing import Integers
from discreet._validate import warn
from discreet.accounting import Gaussian, Receipt
from discreet.errors import CorruptRelease, InvalidInput, NotPrivateWarning
from discreet.noise.correlated import Continual, Reading, ReadingKind, StateNoise
from discreet.privacy import NOT_PRIVATE, Guarantee, Privacy, rounded_up
from discreet.readers.registry import mechanism_named
from discreet.stream.state import StreamState, continual_of, packed, released, unpacked
from discreet.sums.container import stated_in
from discreet.sums.mechanism import Mechanism
from discreet.sums.release import Release
from discreet.sums.settings import Settings, Unit

_FORMAT = "discreet-stream"
SETTINGS = "settings.safetensors"


@dataclass(frozen=True, eq=False)
class StreamSettings:
    """What is fixed and public about a stream, from its beginning on.

    Attributes:
        mechanism: what is built of its states.
        sums: the settings of its sums.
        steps: the design horizon.
        tune: which reading has the least noise.
        rows_hint: a public number of rows in so many steps, if there is one.
        receipt: of its whole life.
        counted: whether a ledger has it, and notes each step.
        keep: so many of the last states stay in the folder; None for all.
        file: what they are written as. Made once: the same settings may be written in two ways.
    """

    mechanism: Mechanism[Any, Any, Any]
    sums: Settings[Any]
    steps: int
    tune: Reading
    rows_hint: int | None
    receipt: Receipt
    counted: bool
    keep: int | None = None
    file: bytes = field(default=b"", repr=False)

    def __post_init__(self) -> None:
        if not self.file:
            object.__setattr__(self, "file", self._to_bytes())

    @property
    def private(self) -> bool:
        """False if the noise comes from a test source."""
        return self.receipt.private

    @cached_property
    def digest(self) -> str:
        """A hash of all of them, the name of the receipt among them: no two streams share one."""
        return hashlib.sha256(self.file).hexdigest()

    def _to_bytes(self) -> bytes:
        """Return a file of these settings."""
        sums = self.sums
        tensors = {
            f"{index}.{name}": array
            for index, layout in enumerate(sums.layouts)
            for name, array in layout.arrays().items()
        }
        settings = {
            "reader": self.mechanism.name,
            "layouts": [layout.parameters() for layout in sums.layouts],
            "privacy": asdict(sums.privacy),
            "unit": str(sums.unit),
            "group_rows": sums.group_rows,
            "leaks": list(sums.leaks),
            "stream": {} if sums.continual is None else sums.continual.parameters(),
            "steps": self.steps,
            "tune": self.tune.parameters(),
            "rows_hint": self.rows_hint,
            "receipt": self.receipt.to_dict(),
            "counted": self.counted,
            "keep": self.keep,
            **provenance.facts(sums.stated),
        }
        return pack(tensors, name=_FORMAT, settings=settings, card=None)

    @classmethod
    def from_bytes(cls, data: bytes) -> "StreamSettings":
        """Return the settings in a file, or raise `CorruptRelease`.

        Args:
            data: the file.
        """
        return replace(unpack(data, {_FORMAT: _restored}), file=data)


def _restored(settings: Any, tensors: Mapping[str, NDArray[Any]]) -> StreamSettings:  # noqa: ANN401
    mechanism = mechanism_named(settings["reader"])
    kind = mechanism.answers.layout
    arrays: dict[str, dict[str, NDArray[Any]]] = {}
    for name, array in tensors.items():
        index, _, rest = name.partition(".")
        arrays.setdefault(index, {})[rest] = array
    layouts = tuple(
        kind.restore(each, arrays.get(str(index), {}))
        for index, each in enumerate(settings["layouts"])
    )
    sums = Settings(
        layouts=layouts,
        privacy=Privacy(**settings["privacy"]),
        unit=Unit(settings["unit"]),
        group_rows=settings["group_rows"],
        rows_hint=settings["rows_hint"],
        leaks=tuple(settings["leaks"]),
        continual=Continual.restore(settings["stream"]),
        stated=stated_in(settings),
    )
    receipt = Receipt.from_dict(settings["receipt"])
    _check_receipt(receipt, sums)
    return StreamSettings(
        mechanism=mechanism,
        sums=sums,
        steps=settings["steps"],
        tune=Reading.restore(settings["tune"]),
        rows_hint=settings["rows_hint"],
        receipt=receipt,
        counted=settings["counted"],
        keep=settings["keep"],
    )


def _check_receipt(receipt: Receipt, sums: Settings[Any]) -> None:
    """Raise `CorruptRelease` if a receipt is not of these settings.

    σ is found by bisection, whose last bits may differ between machines: as in other files it may.
    """
    [(given, count)] = receipt.mechanisms
    wanted = sums.mechanism
    fits = (
        isinstance(given, Gaussian)
        and count == 1
        and (given.sensitivity, given.neighbours) == (wanted.sensitivity, wanted.neighbours)
        and math.isclose(given.sigma, wanted.sigma, rel_tol=1e-9)
    )
    if not fits:
        raise CorruptRelease("Expected the receipt to be of these settings.")


@dataclass(frozen=True)
class Line:
    """What is public about one step.

    Attributes:
        name: of the step.
        digest: of its totals.
        rows: how many rows there have been so far, where that is public; else 0.
        people: a hash of what was sealed of who came; empty if nobody is counted.
        chain: a hash of all this, of all lines before, and of the stream's settings.
    """

    name: str
    digest: str
    rows: int
    people: str
    chain: str

    @classmethod
    def of(cls, name: str, state: StreamState, people: str, *, before: str) -> "Line":
        """Return the line of a step.

        Args:
            name: of the step.
            state: after it.
            people: a hash of who came.
            before: the chain of the line before; the digest of the settings for the first.
        """
        digest = hashlib.sha256(packed(state.totals)).hexdigest()
        return cls(name, digest, state.rows, people, "").chained(before)

    def __str__(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False)

    def chained(self, before: str) -> "Line":
        """Return the same with the chain that it has after another one.

        Args:
            before: the chain of the line before.
        """
        said = replace(self, chain=before)
        return replace(self, chain=hashlib.sha256(f"{said}".encode()).hexdigest())


class Published:
    """The public files of one stream, and what answers from them.

    Attributes:
        path: of the folder.
        settings: public.
        lines: of all steps, in order.
        numbers: of each step, by name, from 1 on.
    """

    def __init__(self, path: Path, settings: StreamSettings) -> None:
        """Begin with no steps.

        Args:
            path: of the folder.
            settings: public.
        """
        self.path = path
        self.settings = settings
        self.lines: list[Line] = []
        self.numbers: dict[str, int] = {}

    @classmethod
    def open(cls, path: Path) -> "Published":
        """Return what was published of a stream so far.

        Args:
            path: of its folder, or of a copy of what is public in it.
        """
        published = cls(path, settings_in(path))
        warn_if_not_private(published.settings, path)
        published.take(published.published_lines())
        return published

    @property
    def step(self) -> int:
        """How many steps there have been."""
        return len(self.lines)

    @property
    def guarantee(self) -> Guarantee:
        """What is promised, for all steps together, those to come included."""
        return self.settings.sums.guarantee(self.settings.receipt)

    def take(self, lines: list[Line]) -> None:
        """Go by these lines.

        Args:
            lines: of all steps, in order.
        """
        self.lines = lines
        self.numbers = {line.name: number for number, line in enumerate(lines, 1)}

    def number(self, step: str | None) -> int:
        """Return the number of a step.

        Args:
            step: its name; None for the last.
        """
        if not self.lines:
            raise InvalidInput("Expected a stream with at least one step: append rows first.")
        if step is None:
            return len(self.lines)
        if step not in self.numbers:
            _validate.reject_argument("step", step, "one that was appended")
        return self.numbers[step]

    def noise(self, reading: Reading, step: int) -> float:
        """Return the noise of a state over that of one single release of the same rows.

        Args:
            reading: which steps it is about.
            step: after so many.
        """
        sums = self.settings.sums
        return StateNoise(continual_of(sums), sums.stretch, step, reading).factor

    @property
    def names(self) -> list[str]:
        """The names of all steps, in order."""
        return [line.name for line in self.lines]

    def __repr__(self) -> str:
        mark = "" if self.settings.private else f" {NOT_PRIVATE}"
        epsilon = rounded_up(self.guarantee.epsilon)
        return f"<{type(self).__name__}{mark}, {self.step:,} steps, ε = {epsilon} for all of them>"

    def memory(self, *, step: str | None = None) -> Any:  # noqa: ANN401 (what the reader makes of it)
        """Return what answers from all rows so far, or from all up to a step.

        Args:
            step: its name; None for the last.
        """
        return self.answers(Reading(), step)

    def window(self, *, last: int, step: str | None = None) -> Any:  # noqa: ANN401
        """Return what answers from the rows of the last steps. Post-processing, as often as liked.

        Args:
            last: how many steps.
            step: the last of them; None for the last that there is.
        """
        return self.answers(Reading(ReadingKind.WINDOW, last), step)

    def decayed(self, *, half_life: float, step: str | None = None) -> Any:  # noqa: ANN401
        """Return what answers from all rows, each with a weight that halves. Post-processing.

        Args:
            half_life: after so many steps a row has half of its weight.
            step: the last step; None for the last that there is.
        """
        return self.answers(Reading(ReadingKind.DECAY, half_life), step)

    def tuned(self, *, step: str | None = None) -> Any:  # noqa: ANN401
        """Return what answers from the rows that the stream was tuned for.

        Args:
            step: the last step; None for the last that there is.
        """
        return self.answers(self.settings.tune, step)

    def answers(self, reading: Reading, step: str | None = None) -> Release[Any]:
        """Return what answers from the rows of a reading, after a step.

        Args:
            reading: which steps, with which weights.
            step: the name of the last; None for the last that there is.
        """
        number, settings = self.number(step), self.settings
        totals, rows = self.read(number, reading)
        hint = None
        if settings.rows_hint is not None:
            share = reading.steps(number) / settings.steps
            hint = max(round(settings.rows_hint * share), 1)
        [state] = released(
            totals,
            settings.sums,
            settings.receipt,
            step=number,
            reading=reading,
            rows=rows,
            rows_hint=hint,
        )
        made: Release[Any] = settings.mechanism.answers(state)
        return made

    def totals(self, step: int) -> tuple[Integers, ...]:
        """Return what was released after a step; zeros before the first.

        Args:
            step: its number.

        Raises:
            InvalidInput: it is not kept any more.
            CorruptRelease: it is not what was released.
        """
        if step == 0:
            return StreamState.begin(self.settings.sums).totals
        keep = self.settings.keep
        if keep is not None and step <= self.step - keep:
            raise InvalidInput(
                f"Expected one of the last {keep:,} states, which is what keep={keep} has kept: it "
                f"serves windows of up to {keep - 1:,} steps."
            )
        data = self.file(f"states/{step:08d}", "it may not be kept any more: open it again")
        if hashlib.sha256(data).hexdigest() != self.lines[step - 1].digest:
            raise CorruptRelease(f"Expected the totals of step {step:,} as they were released.")
        return unpacked(data, self.settings.sums)

    def read(self, step: int, reading: Reading) -> tuple[tuple[Integers, ...], int]:
        """Return totals over the steps of a reading, and their rows, where that is public.

        Args:
            step: the number of the last step.
            reading: which steps, with which weights.
        """
        last = self.totals(step)
        rows = self.lines[step - 1].rows
        if reading.kind is ReadingKind.WINDOW and reading.length < step:
            before = step - int(reading.length)
            totals = zip(last, self.totals(before), strict=True)
            return tuple(new - old for new, old in totals), rows - self.lines[before - 1].rows
        if reading.kind is not ReadingKind.DECAY:
            return last, rows
        sums = earlier = self.totals(0)
        for number in range(1, step + 1):
            now = self.totals(number)
            sums = tuple(
                reading.decayed(kept) + (new - old)
                for kept, new, old in zip(sums, now, earlier, strict=True)
            )
            earlier = now
        return sums, reading.weight([line.rows for line in self.lines[:step]])

    def published_lines(self) -> list[Line]:
        """Return all whole lines; what was cut short was not published."""
        try:
            data = (self.path / "steps.jsonl").read_bytes()
        except FileNotFoundError:
            return []
        whole, _, _ = data.rpartition(b"\n")
        try:
            lines = [Line(**json.loads(line)) for line in whole.split(b"\n") if line]
        except (RecursionError, TypeError, ValueError):
            lines = []
        before = [self.settings.digest, *(line.chain for line in lines)]
        as_written = [line.chained(chain) for line, chain in zip(lines, before, strict=False)]
        if b"".join(f"{line}\n".encode() for line in as_written).strip() != whole:
            raise CorruptRelease(
                "Expected steps.jsonl to have a line for every step of this stream, as written."
            )
        return lines

    def file(self, name: str, why: str = "") -> bytes:
        """Return one of its files, whole.

        Args:
            name: below the folder.
            why: it may be gone, if there is a reason.

        Raises:
            CorruptRelease: there is none.
        """
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            also = f"; {why}" if why else ""
            raise CorruptRelease(f"Expected the stream to have its file {name}{also}.") from None


def warn_if_not_private(settings: StreamSettings, path: Path) -> None:
    """Warn with `NotPrivateWarning` if the noise of a stream comes from a test source.

    Args:
        settings: of the stream.
        path: of its folder.
    """
    if not settings.private:
        warn(
            f"{os.fspath(path)} is {NOT_PRIVATE}: its noise comes from {settings.receipt.source}.",
            NotPrivateWarning,
        )


def settings_in(path: Path) -> StreamSettings:
    """Return the settings of the stream in a folder.

    Args:
        path: of the folder.

    Raises:
        InvalidInput: there is none.
        CorruptRelease: they were altered.
    """
    try:
        return StreamSettings.from_bytes((path / SETTINGS).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise InvalidInput(
            f"Expected {os.fspath(path)} to be the folder of a stream, and there is none."
        ) from None
