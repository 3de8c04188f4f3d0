"""Rows in, as many chunks as there are; memories out, once.

The front door: from keys and values to memories, under one guarantee.
"""

import os
from collections.abc import Sequence
from typing import Unpack

from discreet import _validate
from discreet._typing import Array
from discreet.ledger import Ledger
from discreet.ledger.account import Counted
from discreet.ledger.ledger import account_of
from discreet.noise import Entropy
from discreet.readers.attention import card as file
from discreet.readers.attention.mechanism import Layout, settle
from discreet.readers.attention.memory import Memory
from discreet.readers.attention.options import BuildOptions, Options
from discreet.sums.collector import Collector, OnSettled
from discreet.sums.options import shows_options
from discreet.sums.settings import Settings, Shape, Unit
from discreet.sums.source import Feed, Layers, tables_of


@shows_options(Options, BuildOptions.__annotations__)
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
        **options: see `discreet.readers.attention.Options`.
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


@shows_options(Options, BuildOptions.__annotations__)
def build(
    keys: Array,
    values: Array = None,
    *,
    groups: Array = None,
    entropy: Entropy | None = None,
    progress: bool = False,
    ledger: Ledger | None = None,
    dataset: str | None = None,
    analyst: str | None = None,
    on_settled: OnSettled | None = None,
    **options: Unpack[BuildOptions],
) -> Memory:
    """Return a memory that answers attention over private keys and values, any number of times.

    (epsilon, delta)-differentially private when one row (key and value, in all heads) or one record
    (`groups`) is added or removed, or replaced. The noise of an answer is that of the Gaussian
    mechanism for one single query; the kernel's error comes on top. `docs/privacy.md`, "Memory".

    Rows are read a few at a time, and each is copied before it is looked at: peak memory is the
    inputs and less than 512 MB (and a few times the state). Inputs must hold still: rows that
    change during a build may be counted as they were or as they are.

    Args:
        keys: shape (n, d), or (*heads, n, d); an array, a memory map or a torch tensor, or an
            iterator of such chunks. Longer keys than `key_norm` are clipped to it. Without values:
            an iterable of chunks (keys, values) or (keys, values, groups), such as
            `discreet.tables.Rows`; all rows of a record belong into one chunk.
        values: shape (n, d_v), or (*heads, n, d_v); likewise. Clipped to `value_norm`.
        groups: the record that each row belongs to, shape (n,); None if each row is its own.
        entropy: where the noise comes from; by default the operating system.
        progress: whether to show a progress bar.
        ledger: where the release is counted, if anywhere: a `discreet.ledger.Ledger`.
        dataset: the name that the rows have there.
        analyst: who asks, if that is to be known.
        on_settled: told the public settings (`Builder.settings`) before rows are added up; whatever
            it raises ends the build, and nothing is drawn or counted.
        **options: see `Options`. epsilon and delta are required; without a `scale`,
            so is `rows_hint` (under "replace" the number of rows is public, and the default).
    """
    counted = Counted(ledger=ledger, dataset=dataset, analyst=analyst)
    feed = Feed.of_one(keys, values, groups)
    [memory] = _built(
        feed, options, counted, entropy=entropy, progress=progress, on_settled=on_settled
    )
    return memory


@shows_options(Options, BuildOptions.__annotations__)
def build_many(
    layers: Layers,
    *,
    groups: Array = None,
    entropy: Entropy | None = None,
    progress: bool = False,
    ledger: Ledger | None = None,
    dataset: str | None = None,
    analyst: str | None = None,
    **options: Unpack[BuildOptions],
) -> list[Memory]:
    """Return one memory for each layer, all of them together under one (epsilon, delta).

    Row i of every layer belongs to the same person; layers may differ in heads and widths. Options
    are those of `build`; bounds, `scale` and `tau` may be sequences with one number for each layer.
    With H heads in all, each state has √H times the noise that it would have alone.
    """
    counted = Counted(ledger=ledger, dataset=dataset, analyst=analyst)
    feed = Feed.of(layers, groups)
    return _built(feed, options, counted, entropy=entropy, progress=progress)


def load(path: str | os.PathLike[str]) -> Memory:
    """Return the memory in a file that `Memory.save` wrote.

    Raises `CorruptRelease` if the file is not one, was cut short or altered; warns with
    `NotPrivateWarning` if it was made with a test source of noise.
    """
    return Memory(file.load(path))


def _built(
    feed: Feed,
    options: BuildOptions,
    counted: Counted,
    *,
    entropy: Entropy | None,
    progress: bool,
    on_settled: OnSettled | None = None,
) -> list[Memory]:
    if entropy is not None:
        _validate.instance("entropy", entropy, Entropy)
    options["rows_hint"] = feed.rows_hint(options.get("rows_hint"), options.get("neighbours"))
    builder = Builder(**counted, on_settled=on_settled, **options)
    feed.into(builder, progress=progress)
    return builder.release(entropy)
