"""The front door: from keys and values to memories, under one guarantee."""

import itertools
import os
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from discreet import _validate, accounting
from discreet.errors import InvalidInput, PrivacyLeakWarning
from discreet.kernels import Kernel
from discreet.memory import file
from discreet.memory.joint import Joint
from discreet.memory.memory import Memory
from discreet.memory.partial import Partial
from discreet.memory.progress import Advance, progress_bar
from discreet.memory.release import NOT_PRIVATE, release
from discreet.memory.rows import Table
from discreet.memory.settings import Options, PerLayer, Shape, settle
from discreet.noise import Entropy
from discreet.privacy import Guarantee, Neighbours

Layer = tuple[Any, Any]


def build(
    keys: Any,  # noqa: ANN401 (numpy, memory map, torch, or an iterator of them)
    values: Any,  # noqa: ANN401
    *,
    epsilon: float,
    delta: float,
    neighbours: str = Neighbours.ADD_REMOVE,
    key_norm: float = 1.0,
    query_norm: float = 1.0,
    value_norm: float = 1.0,
    scale: float | None = None,
    rows_hint: int | None = None,
    kernel: str | Kernel = "auto",
    eps_s: float = 0.05,
    tau: float | None = None,
    groups: Any = None,  # noqa: ANN401
    group_rows: float = 1.0,
    entropy: Entropy | None = None,
    progress: bool = False,
) -> Memory:
    """Return a memory that answers attention over private keys and values, any number of times.

    (epsilon, delta)-differentially private when one row (key and value, in all heads) or one record
    (`groups`) is added or removed, or replaced. The noise of an answer is that of the Gaussian
    mechanism for one single query; the kernel's error comes on top. `docs/privacy.md`, "Memory".

    Rows are read a few at a time: peak memory is the inputs and less than 512 MB (and a few times
    the state).

    Args:
        keys: shape (n, d), or (*heads, n, d); an array, a memory map or a torch tensor, or an
            iterator of such chunks. Longer keys than `key_norm` are clipped to it.
        values: shape (n, d_v), or (*heads, n, d_v); likewise. Clipped to `value_norm`.
        epsilon: above 0.
        delta: above 0; well below one over the number of people.
        neighbours: "add_remove" (the number of rows is private, too), or "replace".
        key_norm: public bound on ‖key‖₂. Choose it without looking at the data.
        query_norm: public bound on ‖query‖₂; longer queries are clipped.
        value_norm: public bound on ‖value‖₂.
        scale: logit = scale·⟨query, key⟩, fixed for ever; None for what `plan` recommends, which
            needs `rows_hint`.
        rows_hint: a public, rounded number of rows. Never computed from the data under
            "add_remove"; under "replace" the number of rows is public, and the default.
        kernel: "auto", "minimax", "fourier", "taylor", or a kernel from `discreet.kernels`.
        eps_s: relative error of exp that "auto" asks of a polynomial.
        tau: weight of the denominator; None for value_norm/(4·d_v^¼).
        groups: the record that each row belongs to, shape (n,); None if each row is its own.
        group_rows: a record's influence is scaled down to that of so many rows.
        entropy: where the noise comes from; by default the operating system.
        progress: whether to show a progress bar.
    """
    return build_many(
        [(keys, values)],
        epsilon=epsilon,
        delta=delta,
        neighbours=neighbours,
        key_norm=key_norm,
        query_norm=query_norm,
        value_norm=value_norm,
        scale=scale,
        rows_hint=rows_hint,
        kernel=kernel,
        eps_s=eps_s,
        tau=tau,
        groups=groups,
        group_rows=group_rows,
        entropy=entropy,
        progress=progress,
    )[0]


def build_many(
    layers: Sequence[Layer],
    *,
    epsilon: float,
    delta: float,
    neighbours: str = Neighbours.ADD_REMOVE,
    key_norm: PerLayer = 1.0,
    query_norm: PerLayer = 1.0,
    value_norm: PerLayer = 1.0,
    scale: PerLayer | None = None,
    rows_hint: int | None = None,
    kernel: str | Kernel = "auto",
    eps_s: float = 0.05,
    tau: PerLayer | None = None,
    groups: Any = None,  # noqa: ANN401
    group_rows: float = 1.0,
    entropy: Entropy | None = None,
    progress: bool = False,
) -> list[Memory]:
    """Return one memory for each layer, all of them together under one (epsilon, delta).

    Row i of every layer belongs to the same person; layers may differ in heads and widths. Options
    are those of `build`; bounds, `scale` and `tau` may be sequences with one number for each layer.
    With H heads in all, each state has √H times the noise that it would have alone.
    """
    chunks = _chunks(layers, groups)
    first = next(chunks, None)
    if first is None:
        raise InvalidInput("Expected at least one chunk of keys and values (it may have no rows).")
    tables, of_row = first
    if rows_hint is not None:
        rows_hint = _validate.whole("rows_hint", rows_hint, at_least=1, at_most=2**40)
    if rows_hint is None and neighbours == Neighbours.REPLACE and groups is None:
        rows_hint = None if _is_stream(layers[0][0]) else max(tables[0].rows, 1)
    options = Options(
        epsilon=epsilon,
        delta=delta,
        neighbours=neighbours,
        key_norm=key_norm,
        query_norm=query_norm,
        value_norm=value_norm,
        scale=scale,
        rows_hint=rows_hint,
        kernel=kernel,
        eps_s=eps_s,
        tau=tau,
        by_record=groups is not None,
        group_rows=group_rows,
    )
    shapes = [
        Shape(heads=table.heads, key_dim=table.key_dim, value_dim=table.value_dim)
        for table in tables
    ]
    joint = settle(shapes, options)
    if rows_hint is not None and joint.privacy.delta * rows_hint >= 1:
        warnings.warn(
            f"delta={joint.privacy.delta:g} is not below one over the number of rows: whoever "
            "published a row of it whole, chosen at random, would keep this promise.",
            PrivacyLeakWarning,
            stacklevel=3,
        )
    if entropy is not None:
        _validate.instance("entropy", entropy, Entropy)
    known = None if _is_stream(layers[0][0]) else tables[0].rows
    with progress_bar("adding up rows", rows=known, show=progress) as advance:
        partial = _add_up(itertools.chain([(tables, of_row)], chunks), joint, advance)
    return [Memory(part) for part in release(partial, rows_hint=rows_hint, entropy=entropy)]


def load(path: str | os.PathLike[str]) -> Memory:
    """Return the memory in a file that `Memory.save` wrote.

    Raises `CorruptRelease` if the file is not one, was cut short or altered; warns with
    `NotPrivateWarning` if it was made with a test source of noise.
    """
    return Memory(file.load(path))


def combine(memories: Sequence[Memory], *, delta: float | None = None) -> Guarantee:
    """Return the joint guarantee of giving away several memories made from the same people's data.

    Exact for Gaussian mechanisms: their (Δ/σ)² add up. Memories of one `build_many` count once.

    Args:
        memories: all under one neighbouring relation and one unit.
        delta: of the joint guarantee; by default the largest of theirs.
    """
    if not memories:
        _validate.reject("memories", list(memories), "at least one")
    for memory in memories:
        _validate.instance("memories", memory, Memory)
    guarantees = [memory.guarantee for memory in memories]
    if len({(each.neighbours, each.unit) for each in guarantees}) > 1:
        raise InvalidInput("Expected memories with one neighbouring relation and one unit.")
    total = max(each.delta for each in guarantees) if delta is None else delta
    total = _validate.real("delta", total, above=0, below=1)
    releases = {memory.released.release: memory.released.mechanism for memory in memories}
    epsilon = accounting.tight([(each, 1) for each in releases.values()], delta=total)
    mark = "" if all(memory.private for memory in memories) else f"{NOT_PRIVATE}: "
    return Guarantee(
        epsilon,
        total,
        guarantees[0].neighbours,
        unit=guarantees[0].unit,
        scope=f"{mark}all of {len(releases)} releases together, with all answers to any queries,",
    )


def _add_up(chunks: "Iterator[tuple[list[Table], Any]]", joint: Joint, advance: Advance) -> Partial:
    total = Partial.empty(joint)
    for tables, of_row in chunks:
        total = total.merge(Partial.of(tables, joint, groups=of_row, advance=advance))
    return total


def _is_stream(keys: object) -> bool:
    return isinstance(keys, Iterator)


def _chunks(layers: Sequence[Layer], groups: Any) -> Iterator[tuple[list[Table], Any]]:  # noqa: ANN401
    """Yield the tables of all layers, and the record of each row: once, or chunk by chunk."""
    layers = [tuple(layer) for layer in layers]
    if not layers or any(len(layer) != 2 for layer in layers):
        _validate.reject("layers", f"{len(layers)} of them", "at least one pair (keys, values)")
    streams = {_is_stream(part) for layer in layers for part in layer}
    if len(streams) > 1:
        raise InvalidInput("Expected all keys and values to be arrays, or all iterators of chunks.")
    if not streams.pop():
        yield [Table(*layer) for layer in layers], groups
        return
    columns = [part for layer in layers for part in layer]
    if groups is not None:
        columns.append(iter(groups))
    try:
        for parts in zip(*columns, strict=True):
            pairs = [parts[i : i + 2] for i in range(0, 2 * len(layers), 2)]
            yield [Table(*pair) for pair in pairs], None if groups is None else parts[-1]
    except ValueError as error:
        if isinstance(error, InvalidInput) or "zip()" not in str(error):
            raise
        raise InvalidInput("Expected as many chunks of keys as of values and groups.") from None
