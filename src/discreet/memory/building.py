"""The front door: from keys and values to memories, under one guarantee."""

import os
from collections.abc import Iterator, Sequence
from typing import Unpack

from discreet import _validate
from discreet._typing import Array
from discreet.errors import InvalidInput
from discreet.memory import file
from discreet.memory.builder import Builder, Layers, tables_of
from discreet.memory.memory import Memory
from discreet.memory.options import BuildOptions, shows_options
from discreet.memory.progress import progress_bar
from discreet.memory.rows import Table
from discreet.noise import Entropy
from discreet.privacy import Neighbours


@shows_options()
def build(
    keys: Array,
    values: Array,
    *,
    groups: Array = None,
    entropy: Entropy | None = None,
    progress: bool = False,
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
            iterator of such chunks. Longer keys than `key_norm` are clipped to it.
        values: shape (n, d_v), or (*heads, n, d_v); likewise. Clipped to `value_norm`.
        groups: the record that each row belongs to, shape (n,); None if each row is its own.
        entropy: where the noise comes from; by default the operating system.
        progress: whether to show a progress bar.
        **options: see `discreet.memory.Options`. epsilon and delta are required; without a `scale`,
            so is `rows_hint` (under "replace" the number of rows is public, and the default).
    """
    layers = [(keys, values)]
    [memory] = build_many(layers, groups=groups, entropy=entropy, progress=progress, **options)
    return memory


@shows_options()
def build_many(
    layers: Layers,
    *,
    groups: Array = None,
    entropy: Entropy | None = None,
    progress: bool = False,
    **options: Unpack[BuildOptions],
) -> list[Memory]:
    """Return one memory for each layer, all of them together under one (epsilon, delta).

    Row i of every layer belongs to the same person; layers may differ in heads and widths. Options
    are those of `build`; bounds, `scale` and `tau` may be sequences with one number for each layer.
    With H heads in all, each state has √H times the noise that it would have alone.
    """
    if entropy is not None:
        _validate.instance("entropy", entropy, Entropy)
    layers = list(layers)
    tables = None if _are_streams(layers) else tables_of(layers)
    if tables is not None and groups is None:
        options = _with_public_rows(options, tables[0].rows)
    builder = Builder(**options)
    chunks = _streamed(layers, groups) if tables is None else iter([(tables, groups)])
    total = None if tables is None else tables[0].rows * len(tables)
    with progress_bar("adding up rows", rows=total, show=progress) as advance:
        for chunk, of_row in chunks:
            builder.add_tables(chunk, of_row, advance=advance)
    return builder.release(entropy)


def load(path: str | os.PathLike[str]) -> Memory:
    """Return the memory in a file that `Memory.save` wrote.

    Raises `CorruptRelease` if the file is not one, was cut short or altered; warns with
    `NotPrivateWarning` if it was made with a test source of noise.
    """
    return Memory(file.load(path))


def _with_public_rows(options: BuildOptions, rows: int) -> BuildOptions:
    """Return the options with the number of rows, where that is public and no other was given."""
    neighbours = options.get("neighbours")
    replaced = isinstance(neighbours, str) and neighbours == Neighbours.REPLACE
    if replaced and options.get("rows_hint") is None:
        return {**options, "rows_hint": max(rows, 1)}
    return options


def _are_streams(layers: Sequence[Array]) -> bool:
    """Return whether keys and values are iterators of chunks; all are, or none."""
    streams = {isinstance(part, Iterator) for layer in layers for part in layer}
    if len(streams) > 1:
        raise InvalidInput("Expected all keys and values to be arrays, or all iterators of chunks.")
    return streams == {True}


def _streamed(layers: Layers, groups: Array) -> Iterator[tuple[list[Table], Array]]:
    """Yield the tables of all layers, and the record of each row, chunk by chunk."""
    columns = [part for layer in layers for part in layer]
    if groups is not None:
        columns.append(iter(groups))
    try:
        for parts in zip(*columns, strict=True):
            pairs = [parts[i : i + 2] for i in range(0, 2 * len(layers), 2)]
            if groups is not None and parts[-1] is None:
                raise InvalidInput(
                    "Expected groups for every chunk, since there are groups at all."
                )
            yield tables_of(pairs), None if groups is None else parts[-1]
    except ValueError as error:
        if isinstance(error, InvalidInput) or "zip()" not in str(error):
            raise
        raise InvalidInput("Expected as many chunks of keys as of values and groups.") from None
