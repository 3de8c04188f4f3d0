"""The only place where anything computed from private rows is released: exact sums, then noise.

A mechanism is a program over a `Door`. It may ask for sums over all rows as often as it likes, as
long as the shares of the squared budget that it spends add up to one; what it computes from the
noisy sums is post-processing. `docs/privacy.md`, "Memory" and "Rounds".

Here, and nowhere else in this room, noise is added. The order is always the same: the receipt is
issued, the ledger counts it, the noise is drawn.
"""

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Generic, NoReturn, Self, TypeVar

import numpy as np

from discreet import _validate
from discreet._typing import Integers
from discreet._validate import Note
from discreet.accounting import Gaussian, Mechanism, Receipt
from discreet.errors import BudgetExceeded, InvalidInput, LedgerError
from discreet.ledger.ledger import Account, count
from discreet.noise import Entropy, SystemEntropy
from discreet.privacy import Guarantee
from discreet.sums.accumulate import Accumulator
from discreet.sums.layout import AnyLayout_co, RowLayout
from discreet.sums.partial import Partial
from discreet.sums.release import Released
from discreet.sums.selection import Selection
from discreet.sums.settings import Settings, Unit
from discreet.sums.source import Advance, RowSource, Table, unseen

AnyLayout = TypeVar("AnyLayout", bound=RowLayout)

_SPENT_ONCE = (
    "Nothing was released. But its noise was being drawn, and whoever saw what was in memory saw "
    "that: count (epsilon, delta) as spent."
)
_SPENT = (
    "Nothing was released. But noise had been drawn in {drawn} of {passes} passes, and whoever saw "
    "what was in memory saw that: count (epsilon, delta) as spent."
)
_RELEASED = "its privacy budget is spent, and a second release would spend it again"

_ONE_PROMISE = "Expected a part of a release to have the promise of the whole."

# Shares are quotients of float64: they add up to one but for this.
_ROUNDING = 1e-9


class Door(Generic[AnyLayout_co]):
    """Adds rows up, and releases the sums with noise, under one budget. PRIVATE.

    (ε, δ) as in the settings, for all that comes out together: sums with a share s of the squared
    budget get noise of σ/√s, so all of them are one Gaussian mechanism of the whole σ. What is not
    Gaussian (counts in cells, names that many have) is on the receipt by itself, and comes out as
    often as it is there.

    Attributes:
        settings: the public settings of the whole release.
        begin: told the number of a pass, from 1 on; returns what to tell of progress.
    """

    def __init__(
        self,
        settings: Settings[AnyLayout_co],
        *,
        entropy: Entropy | None = None,
        account: Account | None = None,
        passes: int = 1,
        latch: "Latch | None" = None,
    ) -> None:
        """Check that the release would fit the account; read and draw nothing yet.

        Args:
            settings: the public settings.
            entropy: where the noise comes from; by default the operating system.
            account: on which the release is counted before the first noise, if on any.
            passes: how many there will be.
            latch: told when noise is about to be drawn, if anybody holds the exact sums.
        """
        self.settings = settings
        self.begin: Callable[[int], Advance] = lambda _: unseen
        self._entropy = SystemEntropy() if entropy is None else entropy
        _validate.instance("entropy", self._entropy, Entropy)
        self._account = account
        self._passes = passes
        self._latch = latch
        self._receipt: Receipt | None = None
        self._spent = 0.0
        self._drawn = 0
        self._rows: int | None = None
        # What is on the receipt beside the Gaussian mechanism, and has not come out yet.
        self._left = [each for each in settings.mechanisms if not isinstance(each, Gaussian)]
        settings.check(account)

    def __reduce__(self) -> NoReturn:
        raise TypeError("A door to private rows is never pickled or copied.")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Add a note to an error that the budget is spent, if noise had been drawn."""
        if error is not None and self._drawn:
            text = _SPENT_ONCE if self._passes == 1 else _SPENT
            error.add_note(Note(text.format(drawn=self._drawn, passes=self._passes)))

    def sum(
        self,
        layout: RowLayout,
        rows: RowSource,
        *,
        share: float,
        view: Callable[[Table], Table] = lambda table: table,
    ) -> list[Integers]:
        """Return noisy sums over all rows of one layer, one array for each part of the layout.

        Args:
            layout: what each row adds. Public: made of options, and of what came out before.
            rows: all of them; the same in every pass.
            share: of the squared budget.
            view: what is added up of a table, row by row.
        """
        return self.sum_of(self.settings.part(layout, share), rows, view=view)

    def sum_of(
        self,
        part: Settings[RowLayout],
        rows: RowSource,
        *,
        view: Callable[[Table], Table] = lambda table: table,
    ) -> list[Integers]:
        """Return noisy sums over all rows, as `sum` does, of a part with settings of its own.

        Args:
            part: of one layer: cells whose mechanisms are on the receipt, or a share of the squared
                budget.
            rows: all of them; the same in every pass.
            view: what is added up of a table, row by row.
        """
        _check_part(part, self.settings)
        accumulator = Accumulator(part)
        self.add(rows, accumulator, view)
        if self._rows not in {None, accumulator.rows}:
            raise InvalidInput("Expected the same rows in every pass: their number has changed.")
        self._rows = accumulator.rows
        return self._noisy(accumulator.sums, part)

    def portion(self, settings: Settings[AnyLayout]) -> "Portion[AnyLayout]":
        """Return a door for a part of the program, with settings and rows of its own.

        What comes out of it is on the receipt of this one.

        Args:
            settings: of that part: with a share of the squared budget, and the same promise.
        """
        return Portion(self, settings)

    def select(self, selection: Selection, totals: Mapping[str, int]) -> dict[str, int]:
        """Return the names whose noisy totals are above the threshold, with these totals.

        Nothing is told of the others, not even how many there are.

        Args:
            selection: how much a unit can add, the noise and the threshold.
            totals: exact, in lattice units, of every name that is in the data, and of no other.
        """
        whole = self.settings
        if selection.multiplier < whole.multiplier or (
            selection.neighbours is not whole.privacy.neighbours
        ):
            raise InvalidInput(_ONE_PROMISE)
        self._charge(selection.share, [selection.disclosure])
        names = sorted(totals)
        noisy = selection.law.sample(len(names), entropy=self._entropy)
        noisy += np.array([totals[name] for name in names], dtype=np.int64)
        kept = np.flatnonzero(noisy >= selection.threshold)
        return {names[at]: int(noisy[at]) for at in kept}

    def add(
        self,
        rows: RowSource,
        accumulator: Accumulator[RowLayout],
        view: Callable[[Table], Table] = lambda table: table,
    ) -> None:
        """Add all rows up, in one pass.

        Args:
            rows: all of them.
            accumulator: where they are added up.
            view: what is added up of a table, row by row.
        """
        advance = self.begin(self._drawn + 1)
        for tables, groups in rows.chunks():
            accumulator.add([view(table) for table in tables], groups=groups, advance=advance)

    def release_all(self, rows: RowSource) -> list[Released[AnyLayout_co]]:
        """Return the sums of all layers over all rows, with noise: one pass, the whole budget.

        Args:
            rows: all of them.
        """
        accumulator = Accumulator(self.settings)
        self.add(rows, accumulator)
        return self.release(accumulator.sums, rows=accumulator.rows)

    def release(self, sums: list[Integers], *, rows: int) -> list[Released[AnyLayout_co]]:
        """Add noise to exact sums of all layers, and empty the list: no exact sum is kept.

        Args:
            sums: one array for each part of each layer. Whole if the account refuses.
            rows: how many rows there were; kept only where that is public.
        """
        self._rows = rows
        noisy = self._noisy(sums, self.settings)
        states = []
        for layout in self.settings.layouts:
            parts = [noisy.pop(0) for _ in layout.shapes]
            states.append(self.released(layout, parts))
        return states

    def released(self, layout: AnyLayout, parts: list[Integers]) -> Released[AnyLayout]:
        """Return the release of one layer, of arrays that were made of noisy sums only.

        Args:
            layout: of one layer of the settings.
            parts: one array for each part of it.
        """
        return self._released(layout, parts, self.settings)

    def released_part(
        self, part: Settings[AnyLayout], parts: list[Integers]
    ) -> Released[AnyLayout]:
        """Return the release of what came out of `sum_of`.

        Args:
            part: the settings that it had.
            parts: what came out.
        """
        [layout] = part.layouts
        return self._released(layout, parts, part)

    def _released(
        self, layout: AnyLayout, parts: list[Integers], settings: Settings[Any]
    ) -> Released[AnyLayout]:
        if self._receipt is None:
            raise BudgetExceeded("Expected noise to have been drawn.")
        for part in parts:
            part.flags.writeable = False
        return Released(
            state=parts[0],
            others=tuple(parts[1:]),
            layout=layout,
            guarantee=self.settings.guarantee(self._receipt),
            receipt=self._receipt,
            sigma=settings.sigma(layout),
            share=settings.share,
            group_rows=settings.group_rows,
            rows=self._rows if settings.public_rows else None,
            rows_hint=settings.rows_hint,
            stated=self.settings.stated,
        )

    @property
    def promise(self) -> tuple[Guarantee, Receipt]:
        """What is promised of all that has come out, and the receipt for it."""
        if self._receipt is None:
            raise BudgetExceeded("Expected noise to have been drawn.")
        return self.settings.guarantee(self._receipt), self._receipt

    def _noisy(self, sums: list[Integers], settings: Settings[RowLayout]) -> list[Integers]:
        """Return sums with noise, once they are accounted for; empties the list."""
        self._charge(*_cost(settings))
        noisy = []
        for layout in settings.layouts:
            for law, shape in zip(settings.laws(layout), layout.shapes, strict=True):
                drawn = law.sample(shape, entropy=self._entropy)
                drawn += sums.pop(0)
                noisy.append(drawn)
        return noisy

    def _charge(self, share: float, others: Sequence[Mechanism]) -> None:
        """Account for what is about to be drawn, or raise: receipt, then ledger, then latch.

        Args:
            share: of the squared budget of the Gaussian mechanism.
            others: mechanisms that are not Gaussian; each comes off the receipt once.
        """
        spent, left = self._spent + share, list(self._left)
        for each in others:
            if each not in left:
                raise BudgetExceeded(f"Expected a release that has not been made: {_RELEASED}.")
            left.remove(each)
        # Without a Gaussian mechanism on the receipt, there is no squared budget to spend.
        if spent > 1 + _ROUNDING or (share > 0 and self.settings.pure):
            raise BudgetExceeded(f"Expected a release that has not been made: {_RELEASED}.")
        if self._receipt is None:
            receipt = self.settings.receipt(self._entropy)
            count(self._account, receipt, delta=self.settings.privacy.delta)
            self._receipt = receipt
        self._spent, self._left, self._drawn = spent, left, self._drawn + 1
        if self._latch is not None:
            self._latch.spend()


class Portion(Door[AnyLayout_co]):
    """A door for a part of a program: what it lets out is accounted for by the door it is in.

    Args:
        whole: the door of the release.
        settings: of this part, a share of the squared budget.
    """

    def __init__(self, whole: Door[Any], settings: Settings[AnyLayout_co]) -> None:
        _check_part(settings, whole.settings)
        self.settings = settings
        self.begin = whole.begin
        self._whole = whole
        self._entropy = whole._entropy  # noqa: SLF001 (its own kind)
        self._passes = whole._passes  # noqa: SLF001
        self._rows: int | None = None

    def _charge(self, share: float, others: Sequence[Mechanism]) -> None:
        self._whole._charge(share, others)  # noqa: SLF001 (its own kind)

    def _released(
        self, layout: AnyLayout, parts: list[Integers], settings: Settings[Any]
    ) -> Released[AnyLayout]:
        return self._whole._released(layout, parts, settings)  # noqa: SLF001 (its own kind)

    @property
    def _drawn(self) -> int:  # type: ignore[override]  # the whole counts
        return self._whole._drawn  # noqa: SLF001 (its own kind)


def _check_part(part: Settings[Any], whole: Settings[Any]) -> None:
    """Raise `InvalidInput` unless a part has the noise, and protects whom the whole protects.

    What is not Gaussian has noise of its own, which the receipt has to have, too.

    Args:
        part: settings of a part of the release.
        whole: those of the release.
    """
    same = part.pure or (part.privacy, part.beside) == (whole.privacy, whole.beside)
    rows_only = part.unit is Unit.ROW and whole.unit is Unit.RECORD
    if not same or rows_only or part.privacy.neighbours is not whole.privacy.neighbours:
        raise InvalidInput(_ONE_PROMISE)


def _cost(settings: Settings[RowLayout]) -> tuple[float, tuple[Mechanism, ...]]:
    """Return the share of the squared budget that sums cost, and their other mechanisms."""
    return (0.0, settings.mechanisms) if settings.pure else (settings.share, ())


class Latch:
    """Allows one release, in the process that made it. Guards whatever holds exact sums."""

    def __init__(self, noun: str) -> None:
        """Begin open.

        Args:
            noun: what is released, in messages.
        """
        self._noun = noun
        self._closed: str | None = None
        self._spent = False
        self._lock = threading.Lock()
        self._process = os.getpid()

    def spend(self) -> None:
        """Keep it closed for ever: noise is about to be drawn."""
        self._spent = True

    @property
    def spent(self) -> bool:
        """Whether noise was drawn."""
        return self._spent

    def check(self) -> None:
        """Raise unless it can still be released: `BudgetExceeded`, or `InvalidInput`."""
        if os.getpid() != self._process:
            raise BudgetExceeded(
                f"Expected the process that made this {self._noun}: a fork is a copy."
            )
        if self._closed == _RELEASED:
            raise BudgetExceeded(
                f"Expected a {self._noun} that has not been released: {_RELEASED}."
            )
        if self._closed is not None:
            raise InvalidInput(f"Expected a {self._noun} that can go on: {self._closed}.")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other threads out meanwhile; raise if it is closed."""
        with self._lock:
            self.check()
            yield

    def close(self, reason: str) -> None:
        """Close it for good, for a reason that is public.

        Args:
            reason: for messages.
        """
        self._closed = reason

    @contextmanager
    def releasing(self, check: Callable[[], object] = lambda: None) -> Iterator[None]:
        """Close it for a release; open it again if no noise was drawn: another try may do better.

        Args:
            check: raises if there is nothing to release yet; then it stays open.
        """
        with self.held():
            check()
            self.close(_RELEASED)
        try:
            yield
        except (BudgetExceeded, LedgerError):
            if not self._spent:
                self._closed = None
            raise


def release(
    partial: Partial[AnyLayout_co],
    *,
    entropy: Entropy | None = None,
    account: Account | None = None,
    latch: Latch | None = None,
) -> list[Released[AnyLayout_co]]:
    """Add noise to exact sums, and return what may be given away: one state for each layer.

    (ε, δ) as in the partial's settings, for all states together. Each call spends it again.

    Args:
        partial: the sums.
        entropy: where the noise comes from; by default the operating system.
        account: on which the release is counted before its noise is drawn, if on any.
        latch: told when noise is about to be drawn.
    """
    _validate.instance("partial", partial, Partial)
    with Door(partial.settings, entropy=entropy, account=account, latch=latch) as door:
        return door.release(list(partial.sums), rows=partial.rows)
