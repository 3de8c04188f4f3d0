"""Rows in, as many chunks as there are; noisy sums out, once."""

import abc
import os
import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, NoReturn

from discreet import _validate
from discreet._typing import Array
from discreet.errors import BudgetExceeded, InvalidInput, LedgerError
from discreet.ledger.account import Account
from discreet.noise import Entropy
from discreet.sums.accumulate import Adder
from discreet.sums.layout import AnyLayout_co
from discreet.sums.progress import Advance, unseen
from discreet.sums.release import Released, release_sums
from discreet.sums.settings import Settings, Shape, Unit
from discreet.sums.source import Table

# Told the public settings of a release before any row is added up.
OnSettled = Callable[[Settings[Any]], object]

_RELEASED = "its privacy budget is spent, and a second release would spend it again"


class Collector(abc.ABC, Generic[AnyLayout_co]):
    """Adds up rows that come in chunks, and releases them once, under one (epsilon, delta).

    Nothing is released before the end; what is added up until then is private, and cannot be
    copied, pickled or printed.

    Args:
        account: on which the release is counted, if on any.
        on_settled: told the public settings before rows are added up, if anybody is; whatever it
            raises ends the build, and nothing is drawn or counted.
    """

    def __init__(self, account: Account | None = None, on_settled: OnSettled | None = None) -> None:
        self._account = account
        self._on_settled = on_settled
        self._adder: Adder[AnyLayout_co] | None = None
        self._closed: str | None = None
        self._lock = threading.Lock()
        self._process = os.getpid()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: exact sums, private>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("Exact sums are private and are never pickled or copied.")

    @abc.abstractmethod
    def _settle(self, shapes: Sequence[Shape], unit: Unit) -> Settings[AnyLayout_co]:
        """Return the public settings for layers of such shapes."""

    @property
    def settings(self) -> Settings[AnyLayout_co] | None:
        """The public settings; None before the first chunk."""
        return None if self._adder is None else self._adder.settings

    def add_tables(
        self,
        tables: Sequence[Table],
        groups: Array = None,
        *,
        advance: Advance = unseen,
    ) -> None:
        """Add rows that have been checked; `advance` is told of progress."""
        with self._lock:
            self._check_open()
            adder = self._adder or self._begin(tables, groups)
            before = adder.rows
            try:
                adder.add(tables, groups=groups, advance=advance)
            except BaseException:
                # Whoever adds the chunk again would count its rows twice.
                if not adder.whole or adder.rows != before:
                    self._close("a chunk failed, and some of its rows were added: begin anew")
                raise
            self._adder = adder

    def _release(self, entropy: Entropy | None) -> list[Released[AnyLayout_co]]:
        """Add the noise, once, or raise `BudgetExceeded`."""
        if entropy is not None:
            _validate.instance("entropy", entropy, Entropy)
        with self._lock:
            self._check_open()
            adder = self._adder
            if adder is None:
                raise InvalidInput(
                    "Expected at least one chunk of keys and values (it may have no rows)."
                )
            self._close(_RELEASED)
        try:
            return release_sums(
                adder.sums,
                adder.settings,
                rows=adder.rows,
                entropy=entropy,
                account=self._account,
            )
        except (BudgetExceeded, LedgerError):  # no noise was drawn, and another try may do better
            with self._lock:
                self._closed, self._adder = None, adder
            raise

    def _begin(self, tables: Sequence[Table], groups: object) -> Adder[AnyLayout_co]:
        shapes = [
            Shape(heads=table.heads, key_dim=table.key_dim, value_dim=table.value_dim)
            for table in tables
        ]
        settings = self._settle(shapes, Unit.ROW if groups is None else Unit.RECORD)
        settings.check(self._account)  # before a row is read, and again when noise is drawn
        if self._on_settled is not None:
            self._on_settled(settings)
        return Adder(settings)

    def _close(self, reason: str) -> None:
        self._closed, self._adder = reason, None

    def _check_open(self) -> None:
        if os.getpid() != self._process:
            raise BudgetExceeded("Expected the process that made this builder: a fork is a copy.")
        if self._closed == _RELEASED:
            raise BudgetExceeded(f"Expected a builder that has not been released: {_RELEASED}.")
        if self._closed is not None:
            raise InvalidInput(f"Expected a builder that can go on: {self._closed}.")
