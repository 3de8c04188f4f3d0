"""Rows in, as many chunks as there are; memories out, once."""

from collections.abc import Sequence
from typing import Unpack

from discreet._typing import Array
from discreet.ledger import Ledger
from discreet.ledger.ledger import account_of
from discreet.memory.collector import Collector, Layers, OnSettled, tables_of
from discreet.memory.layout import Layout
from discreet.memory.memory import Memory
from discreet.memory.options import BuildOptions, Options, shows_options
from discreet.memory.settings import Settings, Shape, Unit, settle
from discreet.noise import Entropy


@shows_options()
class Builder(Collector[Layout]):
    """Adds up rows that come in chunks, and releases them once, under one (epsilon, delta).

    The options are those of `build_many` (`Options`). Nothing is released before `release`; what
    is added up until then is private, and cannot be copied, pickled or printed. Each row may be
    added once; with `groups`, all rows of a record belong into one chunk. Settings are fixed by the
    first chunk's shapes::

        builder = discreet.Builder(epsilon=1.0, delta=1e-6, rows_hint=100_000)
        for keys, values in chunks:
            builder.add(keys, values)
        [memory] = builder.release()

    Args:
        ledger: where the release is counted, if anywhere: a `discreet.ledger.Ledger`.
        dataset: the name that the rows have there.
        analyst: who asks, if that is to be known.
        on_settled: told the public settings before rows are added up; whatever it raises ends the
            build, and nothing is drawn or counted.
        **options: see `discreet.memory.Options`.
    """

    def __init__(
        self,
        *,
        ledger: Ledger | None = None,
        dataset: str | None = None,
        analyst: str | None = None,
        on_settled: OnSettled | None = None,
        **options: Unpack[BuildOptions],
    ) -> None:
        super().__init__(account_of(ledger, dataset, analyst), on_settled)
        self._options = Options(**options)

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

    def release(self, entropy: Entropy | None = None) -> list[Memory]:
        """Add the noise, and return one memory for each layer. Once.

        Args:
            entropy: where the noise comes from; by default the operating system.

        Warns with `MostlyNoiseWarning` if answers are predicted to be mostly noise.

        Raises:
            BudgetExceeded: it was released before; or the ledger's limit leaves no room.
        """
        return Memory.of_release(self._release(entropy))

    def _settle(self, shapes: Sequence[Shape], unit: Unit) -> Settings[Layout]:
        settings = settle(shapes, self._options, unit=unit)
        self._options.warn_if_nobody_is_protected()
        return settings
