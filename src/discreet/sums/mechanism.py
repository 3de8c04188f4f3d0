"""A mechanism is a program over one noisy door: what one reader adds up, and what answers from it.

To add a reader, write a folder below `readers` with its options (`ReleaseOptions`), its layout
(`RowLayout`: what a row contributes, and a bound on it), its mechanism (this class) and its answers
(`Release`), and add a line to `readers/registry.py`. `tests/support/reader_contract.py` is the
suite of tests that it has to pass.
"""

import abc
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic, NoReturn, TypeVar

from discreet import _validate
from discreet._typing import Array
from discreet.errors import BudgetExceeded, InvalidInput, LedgerError
from discreet.ledger.ledger import Account
from discreet.noise import Entropy
from discreet.sums.accumulate import Accumulator
from discreet.sums.door import Door, Latch
from discreet.sums.forecast import Forecast
from discreet.sums.layout import RowLayout
from discreet.sums.options import ReleaseOptions
from discreet.sums.release import Release, Released
from discreet.sums.settings import Settings, Shape, Unit
from discreet.sums.source import RowSource, Table
from discreet.sums.threads import Advance, passes_bar, unseen

AnyOptions = TypeVar("AnyOptions", bound=ReleaseOptions)
AnyLayout = TypeVar("AnyLayout", bound=RowLayout)
AnyRelease = TypeVar("AnyRelease", bound=Release[Any])

# Told the public settings of a release before any row is added up; whatever it raises ends the
# build, and nothing is drawn or counted.
OnResolved = Callable[[Settings[Any]], object]


class Mechanism(abc.ABC, Generic[AnyOptions, AnyLayout, AnyRelease]):
    """One reader, as builds know it: public settings from options, and a program over the door.

    A value without state: there is one of each.

    Attributes:
        name: under which callers ask for it.
        options: their type.
        answers: what is made of a release.
        reads_once: whether one pass over the rows is enough. Only then can they be added up in
            chunks (`ReleaseBuilder`) or in many places (`discreet.shards`).
    """

    name: ClassVar[str]
    options: type[AnyOptions]
    answers: type[AnyRelease]
    reads_once: ClassVar[bool] = True

    def source(
        self,
        keys: Array,
        values: Array,
        groups: Array,
        options: AnyOptions,  # noqa: ARG002
    ) -> RowSource:
        """Return the rows of one layer, as a caller has them.

        Args:
            keys: arrays, or chunks of keys and values.
            values: what comes with the keys.
            groups: the record of each row; None if each row is its own.
            options: public.
        """
        return RowSource.of(keys, values, groups)

    @abc.abstractmethod
    def resolve(
        self, shapes: Sequence[Shape], options: AnyOptions, *, unit: Unit = Unit.ROW
    ) -> Settings[AnyLayout]:
        """Return the public settings. The same options and shapes always give the same.

        Args:
            shapes: of the layers.
            options: checked.
            unit: whom the guarantee protects.
        """

    def forecast(self, **given: Any) -> Forecast:  # noqa: ANN401 (each reader's own)
        """Return what a release would be like, from public numbers only: what `plan` returns.

        Args:
            **given: `rows`, `key_dim`, and what else the reader's plan takes.
        """
        del given
        return _validate.reject_argument("reader", self.name, "one that can be planned")

    def passes_of(self, settings: Settings[AnyLayout]) -> int:  # noqa: ARG002
        """Return how many passes over the rows a release takes.

        Args:
            settings: the public settings.
        """
        return 1

    def run(
        self,
        rows: RowSource,
        door: Door[AnyLayout],
        options: AnyOptions,  # noqa: ARG002
    ) -> list[Released[AnyLayout]]:
        """Return what is released, one for each layer: only what came out of the door.

        Args:
            rows: private; to be handed to the door.
            door: which adds up, and lets sums out with noise.
            options: public.
        """
        return door.release_all(rows)

    def read(self, released: Sequence[Released[AnyLayout]]) -> list[AnyRelease]:
        """Return what answers from what was released.

        Args:
            released: noisy sums of each layer.
        """
        return [self.answers(each) for each in released]


def build(
    mechanism: Mechanism[AnyOptions, AnyLayout, AnyRelease],
    rows: RowSource,
    options: AnyOptions,
    *,
    entropy: Entropy | None = None,
    progress: bool = False,
    account: Account | None = None,
    on_resolved: OnResolved | None = None,
) -> list[AnyRelease]:
    """Return what answers from private rows, one for each layer: under one (ε, δ).

    Args:
        mechanism: what is built.
        rows: private.
        options: public.
        entropy: where the noise comes from; by default the operating system.
        progress: whether to show a progress bar.
        account: on which the release is counted before its noise, if on any.
        on_resolved: told the public settings before rows are added up.
    """
    if entropy is not None:
        _validate.instance("entropy", entropy, Entropy)
    settings = mechanism.resolve(rows.shapes, options, unit=rows.unit)
    options.warn_if_nobody_is_protected()
    passes = mechanism.passes_of(settings)
    door = Door(settings, entropy=entropy, account=account, passes=passes)
    if on_resolved is not None:
        on_resolved(settings)
    count = rows.count() if progress else None
    with door, passes_bar(passes, rows=count, show=progress) as door.begin:
        released = mechanism.run(rows, door, options)
    return mechanism.read(released)


class ReleaseBuilder(Generic[AnyOptions, AnyLayout, AnyRelease]):
    """Adds up rows that come in chunks, and releases them once, under one (ε, δ).

    Nothing is released before the end; what is added up until then is private, and cannot be
    copied, pickled or printed. For mechanisms that read rows once.
    """

    def __init__(
        self,
        mechanism: Mechanism[AnyOptions, AnyLayout, AnyRelease],
        options: AnyOptions,
        account: Account | None = None,
    ) -> None:
        """Begin with no rows.

        Args:
            mechanism: what is built.
            options: public.
            account: on which the release is counted, if on any.
        """
        self._mechanism = mechanism
        self._options = options
        self._account = account
        self._latch = Latch("builder")
        self._accumulator: Accumulator[AnyLayout] | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: exact sums, private>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("Exact sums are private and are never pickled or copied.")

    @property
    def settings(self) -> Settings[AnyLayout] | None:
        """The public settings; None before the first chunk."""
        return None if self._accumulator is None else self._accumulator.settings

    def add_tables(
        self, tables: Sequence[Table], groups: Array = None, *, advance: Advance = unseen
    ) -> None:
        """Add rows that have been checked.

        Args:
            tables: one for each layer.
            groups: the record of each row, shape (n,); None if each row is its own.
            advance: told how many rows have been added.
        """
        with self._latch.held():
            accumulator = self._accumulator or self._begin(tables, groups)
            before = accumulator.rows
            try:
                accumulator.add(tables, groups=groups, advance=advance)
            except BaseException:
                # Whoever adds the chunk again would count its rows twice.
                if not accumulator.whole or accumulator.rows != before:
                    self._latch.close("a chunk failed, and some of its rows were added: begin anew")
                    self._accumulator = None
                raise
            self._accumulator = accumulator

    def _begin(self, tables: Sequence[Table], groups: object) -> Accumulator[AnyLayout]:
        unit = Unit.ROW if groups is None else Unit.RECORD
        shapes = [table.shape for table in tables]
        settings = self._mechanism.resolve(shapes, self._options, unit=unit)
        self._options.warn_if_nobody_is_protected()
        settings.check(self._account)  # before a row is read, and again when noise is drawn
        return Accumulator(settings)

    def _release(self, entropy: Entropy | None) -> list[AnyRelease]:
        """Add the noise, once, or raise `BudgetExceeded`."""
        if entropy is not None:
            _validate.instance("entropy", entropy, Entropy)
        with self._latch.releasing(self._begun):
            accumulator = self._begun()
            self._accumulator = None
            try:
                with Door(
                    accumulator.settings,
                    entropy=entropy,
                    account=self._account,
                    latch=self._latch,
                ) as door:
                    released = door.release(accumulator.sums, rows=accumulator.rows)
            except (BudgetExceeded, LedgerError):
                if not self._latch.spent:  # no noise was drawn: the sums are whole
                    self._accumulator = accumulator
                raise
        return self._mechanism.read(released)

    def _begun(self) -> Accumulator[AnyLayout]:
        """Return the exact sums, if any chunk was added."""
        if self._accumulator is None:
            raise InvalidInput(
                "Expected at least one chunk of keys and values (it may have no rows)."
            )
        return self._accumulator
