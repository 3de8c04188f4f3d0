"""Memories that belong together: the heads and layers of one model, in one release, on one card."""

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from discreet import _validate
from discreet._files import pack, read, unpack, whole_file
from discreet._typing import Array
from discreet.accounting import Receipt
from discreet.errors import InvalidInput
from discreet.features.fourier import public_normals
from discreet.features.kernel import Evidence
from discreet.privacy import NOT_PRIVATE, Card, Guarantee, rounded_up
from discreet.readers.attention.layout import Layout
from discreet.readers.attention.memory import MOSTLY_NOISE, Memory
from discreet.readers.attention.prediction import matching_rows, times
from discreet.sums import container
from discreet.sums.forecast import drawing, protection, protection_facts

FORMAT = "discreet-memories"

# What notes are about; a card has other titles for what it says itself.
TITLES = ("context", "unit", "bounds", "places")

# The title under which the names of layers are; their number of heads is the first of this array.
PLACES, SHAPE = "places", "shape"

# So many made-up queries are asked, of each of these lengths over their bound: the queries of a
# model are shorter than what its bounds allow.
_QUARTILES_APART = 1.349  # of a normal distribution, in its standard deviations
_TRIED, _LENGTHS = 32, (1.0, 0.6, 0.35)


@dataclass(frozen=True, eq=False, repr=False)
class Memories(Sequence[Memory]):
    """Some memories of one release, with what is public about the places they are for.

    All together (ε, δ)-private as `guarantee` says: they are one Gaussian mechanism.

    Attributes:
        members: the memories, of one release.
        notes: what a card says besides, as text under a short title. Public.
        arrays: what a reader needs besides, by name. Public.
    """

    members: tuple[Memory, ...]
    notes: Mapping[str, str]
    arrays: Mapping[str, NDArray[Any]]

    def __post_init__(self) -> None:
        members = tuple(self.members)
        for each in members:
            _validate.instance("members", each, Memory)
        _check_one_release(members)
        _check_notes(self.notes)
        object.__setattr__(self, "members", members)
        object.__setattr__(self, "notes", dict(self.notes))
        object.__setattr__(self, "arrays", {k: np.asarray(v) for k, v in self.arrays.items()})

    def __len__(self) -> int:
        return len(self.members)

    def __iter__(self) -> Iterator[Memory]:
        return iter(self.members)

    @overload
    def __getitem__(self, index: int) -> Memory: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Memory, ...]: ...

    def __getitem__(self, index: int | slice) -> Memory | tuple[Memory, ...]:
        return self.members[index]

    def __repr__(self) -> str:
        mark = "" if self.private else f" {NOT_PRIVATE}"
        epsilon = rounded_up(self.guarantee.epsilon)
        size = f"{len(self)} of them, {self.nbytes:,} bytes"
        return f"<Memories{mark}, {size}, ε = {epsilon}{self.receipt.note}>"

    @property
    def guarantee(self) -> Guarantee:
        """What is promised, for all of them together."""
        return self.members[0].guarantee

    @property
    def receipt(self) -> Receipt:
        """What was spent; `discreet.combine` adds receipts up."""
        return self.members[0].receipt

    @property
    def private(self) -> bool:
        """False if the noise came from a test source."""
        return all(each.private for each in self.members)

    @property
    def nbytes(self) -> int:
        """Bytes of the noisy sums; they do not depend on the number of rows."""
        return sum(each.nbytes for each in self.members)

    @cached_property
    def observed_signal_to_error(self) -> dict[str, float]:
        """How much answers of each layer differ from query to query, over their standard error.

        By the layer's name, "" if it has none. Below one, answers are mostly noise. As the noisy
        sums themselves answer made-up queries, so it is post-processing; at best, since the queries
        of a model may be less apart.
        """
        return {name: _signal_to_error(members) for name, members in _layers(self).items()}

    def with_reference(self, points: Array = None) -> "Memories":
        """Return the same release, read more exactly near public points (`Memory.with_reference`).

        Args:
            points: shape (n, d) for all of them, or a list with one array for each; None for points
                that are spread evenly.
        """
        given = points if isinstance(points, (list, tuple)) else [points] * len(self)
        if len(given) != len(self):
            _validate.reject("points", len(given), f"one array, or one for each of {len(self)}")
        members = (each.with_reference(some) for each, some in zip(self, given, strict=True))
        return replace(self, members=tuple(members))

    @cached_property
    def card(self) -> Card:
        """What is protected, how much, and from what: of all together."""
        return _card(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one safetensors file with all of them, atomically; never pickle.

        Args:
            path: of the file; one that is there is replaced.
        """
        data = to_bytes(self)
        with whole_file(Path(path)) as file:
            file.write(data)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Memories":
        """Return the memories in a file that `save` wrote.

        Args:
            path: of the file.

        Raises:
            CorruptRelease: the file is of another kind, was cut short or altered.

        Warns with `NotPrivateWarning` if they were made with a test source of noise.
        """
        return read(path, from_bytes)


def _layers(several: Memories) -> dict[str, tuple[Memory, ...]]:
    """Return the memories of each layer, by its name; all of them if layers have no names."""
    found, start = {}, 0
    for name in several.notes.get(PLACES, "").split(", "):
        shape = several.arrays.get(f"{name}.{SHAPE}", np.zeros(1))
        end = start + int(shape.flat[0])
        found[name] = several.members[start:end]
        start = end
    whole = start == len(several) and all(found.values())
    return found if whole else {"": several.members}


def _signal_to_error(members: Sequence[Memory]) -> float:
    """Return how much answers of some heads together differ, over their standard error."""
    best = 0.0
    for length in _LENGTHS:
        signal = error = 0.0
        for each in members:
            layout, reader = each.released.layout, each.reader
            size = (layout.head_count, _TRIED, layout.kernel.dim)
            made_up = public_normals("discreet queries", math.prod(size)).reshape(size)
            made_up /= np.linalg.norm(made_up, axis=-1, keepdims=True)
            made_up *= length * each.kernel.query_norm
            certified = each.kernel.evidence is Evidence.CERTIFICATE  # several times too wide
            ask = reader.answers_with_noise if certified else reader.answers_with_stderr
            answers, stderr = ask(made_up, reader.arrays)
            # By quartiles, which a few queries that meet no rows do not move.
            squares = float(np.sum(np.median(stderr, axis=1) ** 2))
            low, high = np.quantile(answers, (0.25, 0.75), axis=1)
            # What is seen to differ is signal and error.
            signal += float(np.sum(((high - low) / _QUARTILES_APART) ** 2)) - squares
            error += squares
        best = max(best, signal / error if error else 0.0)
    return math.sqrt(best)


def _check_one_release(members: tuple[Memory, ...]) -> None:
    """Raise `InvalidInput` unless memories are of one release, whose noise is for all of them."""
    names = ("receipt", "guarantee", "group_rows", "rows", "rows_hint", "stated")
    claims = [[getattr(member.released, name) for name in names] for member in members]
    if not claims or any(claim != claims[0] for claim in claims):
        raise InvalidInput("Expected members to be memories of one release, at least one.")
    heads = sum(member.released.layout.head_count for member in members)
    if members[0].released.mechanism.sensitivity < math.sqrt(heads) * (1 - 1e-12):
        raise InvalidInput("Expected a release whose noise covers all of its heads.")


def _check_notes(notes: Mapping[str, str]) -> None:
    """Raise `InvalidInput` if a note could be taken for something else on a card."""
    for title, text in notes.items():
        plain = all(isinstance(each, str) and each.isprintable() for each in (title, text))
        if not plain or title not in TITLES:
            raise InvalidInput(f"Expected notes to be lines of text under {', '.join(TITLES)}.")


def to_bytes(several: Memories) -> bytes:
    """Return the file. Its length depends on public settings only."""
    tensors = {f"public.{name}": array for name, array in several.arrays.items()}
    settings = []
    for index, member in enumerate(several):
        released = member.released
        settings.append(container.settings_of(released))
        tensors |= {
            f"{index}.{name}": array for name, array in container.tensors_of(released).items()
        }
    facts = {"members": settings, "notes": list(several.notes.items())}  # in their order
    return pack(tensors, name=FORMAT, settings=facts, card=several.card.to_dict())


def from_bytes(data: bytes) -> Memories:
    """Return what a file holds, or raise `CorruptRelease`."""
    return unpack(data, {FORMAT: restored})


def restored(settings: Any, tensors: Mapping[str, NDArray[Any]]) -> Memories:  # noqa: ANN401
    """Return memories from the settings and tensors of a file, as far as they can be believed."""
    by_owner: dict[str, dict[str, NDArray[Any]]] = {}
    for name, array in tensors.items():
        owner, _, rest = name.partition(".")
        by_owner.setdefault(owner, {})[rest] = array
    members = tuple(
        Memory(container.restore(each, by_owner[str(index)], Layout))
        for index, each in enumerate(settings["members"])
    )
    return Memories(members, dict(settings["notes"]), by_owner.get("public", {}))


def _card(several: Memories) -> Card:
    first = several[0].released
    logits = [each.kernel.largest_logit for each in several]
    needed = [_number(each.card.to_dict()["rows_needed"]) for each in several]
    kernels = sorted({each.kernel.describe() for each in several})
    noise = mostly_noise(several.observed_signal_to_error.values())
    facts: dict[str, object] = {
        **protection_facts(first),
        "memories": len(several),
        "noise_multiplier": first.noise_multiplier,
        "largest_logit": [min(logits), max(logits)],
        "rows_needed": [min(needed), max(needed)],
        "kernels": kernels,
        "state_bytes": several.nbytes,
        "rows": first.rows,
        "rows_hint": first.rows_hint,
        "entropy": first.source,
        "version": first.version,
        **{f"note_{title.replace(' ', '_')}": text for title, text in several.notes.items()},
    }
    sentences = [
        *protection(first),
        *several.notes.items(),
        (
            "noise",
            (
                f"rounded Gaussian, {drawing(first)}: {first.noise_multiplier:.6g} times what a "
                f"{first.guarantee.unit} can change in one head"
            ),
        ),
        ("temperature", f"logits at most {_range(logits)}; longer keys and queries are clipped"),
        ("kernel", "; ".join(kernels)),
        matching_rows(max(needed)),
        ("prediction", _prediction(several.observed_signal_to_error)),
        *([] if noise is None else [(MOSTLY_NOISE, noise)]),
        ("size", f"{len(several)} head(s), {several.nbytes:,} bytes"),
        ("entropy", first.source),
        ("made by", f"discreet {first.version}"),
    ]
    return Card(tuple(facts.items()), tuple(sentences))


def mostly_noise(ratios: Iterable[float]) -> str | None:
    """Return the sentence of a `MostlyNoiseWarning`; None if outputs are clear of the noise.

    Args:
        ratios: signal over standard error of each layer (`Memories.observed_signal_to_error`).
    """
    all_of_them = list(ratios)
    noisy = [ratio for ratio in all_of_them if ratio < 1]
    if not noisy:
        return None
    which = "" if len(all_of_them) == 1 else f" of {len(noisy)} of {len(all_of_them)} layers"
    return (
        f"Outputs{which} are predicted to be mostly noise: from query to query they differ by "
        f"{times(min(noisy))} standard errors, at best, as the release answers made-up queries."
    )


def _prediction(ratios: Mapping[str, float]) -> str:
    """Return what is to be expected of answers. No fact: it depends on the noisy sums."""
    mark = {name: ", mostly noise" if ratio < 1 else "" for name, ratio in ratios.items()}
    said = f"{times(min(ratios.values()))}{next(iter(mark.values()))}"
    if len(ratios) > 1:
        said = "; ".join(f"{name}: {times(ratio)}{mark[name]}" for name, ratio in ratios.items())
    return (
        "how much answers differ from query to query, at best, in their standard errors, as this "
        f"release answers made-up queries: {said}"
    )


def _number(value: object) -> float:
    return float(value)  # type: ignore[arg-type]


def _range(numbers: Sequence[float]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{high:,.4g}" if low == high else f"{low:,.4g} to {high:,.4g}, head by head"
