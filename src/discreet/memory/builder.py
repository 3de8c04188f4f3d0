"""Rows in, as many chunks as there are; memories out, once."""

import os
import threading
from collections.abc import Sequence
from typing import NoReturn, Unpack

from discreet import _validate
from discreet._typing import Array
from discreet.errors import BudgetExceeded, InvalidInput
from discreet.memory.adder import Adder
from discreet.memory.memory import Memory
from discreet.memory.options import BuildOptions, Options, shows_options
from discreet.memory.progress import Advance, unseen
from discreet.memory.release import release_sums
from discreet.memory.rows import Table
from discreet.memory.settings import Settings, Shape, Unit, settle
from discreet.noise import Entropy

Layers = Sequence[tuple[Array, Array]]


@shows_options()
class Builder:
    """Adds up rows that come in chunks, and releases them once, under one (epsilon, delta).

    The options are those of `build_many` (`Options`). Nothing is released before `release`; what
    is added up until then is private, and cannot be copied, pickled or printed. Each row may be
    added once; with `groups`, all rows of a record belong into one chunk. Settings are fixed by the
    first chunk's shapes::

        builder = discreet.Builder(epsilon=1.0, delta=1e-6, rows_hint=100_000)
        for keys, values in chunks:
            builder.add(keys, values)
        [memory] = builder.release()
    """

    def __init__(self, **options: Unpack[BuildOptions]) -> None:
        self._options = Options(**options)
        self._adder: Adder | None = None
        self._closed: str | None = None
        self._lock = threading.Lock()
        self._process = os.getpid()

    def __repr__(self) -> str:
        return "<Builder: exact sums, private>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("Exact sums are private and are never pickled or copied.")

    @property
    def settings(self) -> Settings | None:
        """The public settings; None before the first chunk."""
        return None if self._adder is None else self._adder.settings

    def add(self, keys: Array, values: Array, groups: Array = None) -> None:
        """Add rows of one layer: keys (*heads, n, d), values (*heads, n, d_v), groups (n,)."""
        self.add_layers([(keys, values)], groups)

    def add_layers(self, layers: Layers, groups: Array = None) -> None:
        """Add rows of all layers: row i of each belongs to the same person.

        Args:
            layers: keys and values of each layer, as for `build_many`.
            groups: the record of each row, shape (n,); None if each row is its own.
        """
        self.add_tables(tables_of(layers), groups)

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

    def release(self, entropy: Entropy | None = None) -> list[Memory]:
        """Add the noise, and return one memory for each layer. Once.

        Args:
            entropy: where the noise comes from; by default the operating system.

        Raises:
            BudgetExceeded: it was released before.
        """
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
        released = release_sums(adder.sums, adder.settings, rows=adder.rows, entropy=entropy)
        return [Memory(each) for each in released]

    def _begin(self, tables: Sequence[Table], groups: object) -> Adder:
        shapes = [
            Shape(heads=table.heads, key_dim=table.key_dim, value_dim=table.value_dim)
            for table in tables
        ]
        unit = Unit.ROW if groups is None else Unit.RECORD
        settings = settle(shapes, self._options, unit=unit)
        self._options.warn_if_nobody_is_protected()
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


_RELEASED = "its privacy budget is spent, and a second release would spend it again"


def tables_of(layers: Layers) -> list[Table]:
    """Return keys and values of each layer as tables, if there are any."""
    pairs = [tuple(layer) for layer in layers]
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise InvalidInput("Expected layers to be pairs (keys, values), at least one.")
    return [Table(*pair) for pair in pairs]
