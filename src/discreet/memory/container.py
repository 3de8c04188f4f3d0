"""One safetensors file for one release: noisy state, public settings, card, checksum. No pickle.

The checksum guards against damage and mix-ups, not against somebody who wants to deceive: whoever
can write the file can write a checksum.
"""

import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors import numpy as safetensors

from discreet import accounting
from discreet._files import whole_file
from discreet._warn import warn
from discreet.accounting import Receipt
from discreet.errors import CorruptRelease, DiscreetError, NotPrivateWarning
from discreet.memory.card import Card
from discreet.memory.release import Released
from discreet.memory.row_layout import AnyLayout_co, RowLayout
from discreet.memory.settings import Unit, rows_are_public, unit_sensitivity
from discreet.privacy import NOT_PRIVATE, Guarantee

FORMAT_VERSION = "1"

BLANK = "0" * 64
# What makes something of a file's settings and tensors.
Opened = TypeVar("Opened", bound="_Opened")
Restorer = Callable[[Any, Mapping[str, NDArray[Any]]], Opened]

_CHECKSUM = re.compile(rb'"checksum":"([0-9a-f]{64})"')


class _Opened(Protocol):
    """What a file holds: something that knows whether it is private, and what it cost."""

    @property
    def private(self) -> bool: ...

    @property
    def receipt(self) -> Receipt: ...


@dataclass(frozen=True)
class Format(Generic[AnyLayout_co]):
    """One kind of release, as files know it.

    Attributes:
        name: that a file says it is.
        restore: makes the layout from its parameters and arrays.
        card: makes the card that a file carries.
    """

    name: str
    restore: Callable[[Mapping[str, Any], Mapping[str, NDArray[Any]]], AnyLayout_co]
    card: Callable[[Any], Card]


def save(
    released: Released[AnyLayout_co],
    path: str | os.PathLike[str],
    form: Format[AnyLayout_co],
) -> None:
    """Write a release to a file: whole, or not at all."""
    data = to_bytes(released, form)
    with whole_file(Path(path)) as file:
        file.write(data)


def load(path: str | os.PathLike[str], *forms: Format[AnyLayout_co]) -> Released[AnyLayout_co]:
    """Read a release of one of some formats.

    Raises `CorruptRelease` if the file is none, or was altered.
    """
    return read(path, lambda data: from_bytes(data, *forms))


def read(path: str | os.PathLike[str], opener: Callable[[bytes], Opened]) -> Opened:
    """Return what a file holds, in the opener's words, with its name in every complaint."""
    try:
        opened = opener(Path(path).read_bytes())
    except CorruptRelease as error:
        raise CorruptRelease(f"{os.fspath(path)}: {error}") from None
    if not opened.private:
        warn(
            f"{os.fspath(path)} is {NOT_PRIVATE}: its noise came from {opened.receipt.source}.",
            NotPrivateWarning,
        )
    return opened


def to_bytes(released: Released[AnyLayout_co], form: Format[AnyLayout_co]) -> bytes:
    """Return the file of a release. Its length depends on public settings only."""
    return pack(
        tensors_of(released),
        name=form.name,
        settings=settings_of(released),
        card=form.card(released),
    )


def pack(
    tensors: Mapping[str, NDArray[Any]], *, name: str, settings: dict[str, Any], card: Card
) -> bytes:
    """Return a file: tensors, settings and card under a format's name, with a checksum."""
    metadata = {
        "format": name,
        "format_version": FORMAT_VERSION,
        "settings": _json(settings),
        "card": _json(card.to_dict()),
        "checksum": BLANK,
    }
    # Of an array in another order it would write the memory, not the numbers.
    ordered = {name: np.ascontiguousarray(each) for name, each in tensors.items()}
    blank = safetensors.save(ordered, metadata=metadata)
    found = _CHECKSUM.findall(blank)
    if found != [BLANK.encode()]:
        raise DiscreetError("Expected one place for the checksum in the file's header.")
    return blank.replace(b'"checksum":"' + found[0], b'"checksum":"' + digest(blank), 1)


def from_bytes(data: bytes, *forms: Format[AnyLayout_co]) -> Released[AnyLayout_co]:
    """Return the release that a file holds, if it is of one of these formats."""
    return unpack(data, {form.name: restorer(form) for form in forms})


def restorer(form: Format[AnyLayout_co]) -> Restorer[Released[AnyLayout_co]]:
    """Return what makes a release of one format from a file's settings and tensors."""
    return lambda settings, tensors: restore(settings, tensors, form.restore)


def unpack(data: bytes, known: Mapping[str, Restorer[Opened]]) -> Opened:
    """Return what a file holds, made by the restorer of the format that it says it is.

    Raises `CorruptRelease` if it is of none of them, or was altered.
    """
    match = _CHECKSUM.search(data)
    if match is None:
        raise CorruptRelease("Expected a file written by discreet, and this one has no checksum.")
    blank = data[: match.start(1)] + BLANK.encode() + data[match.end(1) :]
    if digest(blank) != match.group(1):
        raise CorruptRelease("Expected the checksum to match: the file was cut short or altered.")
    try:
        tensors = safetensors.load(data)
        length = int.from_bytes(data[:8], "little")
        metadata = json.loads(data[8 : 8 + length])["__metadata__"]
        if metadata["format"] not in known or metadata["format_version"] != FORMAT_VERSION:
            kind = f"{metadata['format']} {metadata['format_version']}"
            wanted = " or ".join(f"{name} {FORMAT_VERSION}" for name in known)
            raise CorruptRelease(f"Expected {wanted}, got {kind}.")
        return known[metadata["format"]](json.loads(metadata["settings"]), tensors)
    except CorruptRelease:
        raise
    except (
        SafetensorError,
        DiscreetError,
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
        RecursionError,
    ):
        raise CorruptRelease("Expected a release, but the file's contents make no sense.") from None


def tensors_of(released: Released[RowLayout]) -> dict[str, NDArray[Any]]:
    """Return the noisy sums and the kernel's arrays, under the names that a file has for them."""
    return {
        **dict(zip(released.layout.part_names, (released.state, *released.others), strict=True)),
        **released.layout.arrays(),
    }


def settings_of(released: Released[RowLayout]) -> dict[str, object]:
    """Return the numbers that, with the tensors, make the same release again."""
    return {
        **released.layout.parameters(),
        "guarantee": asdict(released.guarantee),
        "mechanism": asdict(released.mechanism),
        "sigma": released.sigma,
        "source": released.source,
        "private": released.private,
        "group_rows": released.group_rows,
        "rows": released.rows,
        "rows_hint": released.rows_hint,
        "release": released.release,
        "version": released.version,
    }


def restore(
    settings: dict[str, Any],
    tensors: Mapping[str, NDArray[Any]],
    layout_of: Callable[[Mapping[str, Any], Mapping[str, NDArray[Any]]], AnyLayout_co],
) -> Released[AnyLayout_co]:
    """Return the release with these settings and tensors, as far as they can be believed."""
    layout = layout_of(settings, tensors)
    if not all(str(settings[name]).isprintable() for name in ("source", "release", "version")):
        raise CorruptRelease("Expected texts that can be printed.")
    parts = [tensors[name] for name in layout.part_names]
    for part, shape in zip(parts, layout.shapes, strict=True):
        if part.shape != shape or part.dtype != np.int64:
            raise CorruptRelease("Expected the state to have the shape that its settings say.")
        part.flags.writeable = False
    state, *others = parts
    guarantee = Guarantee(**settings["guarantee"])
    mechanism = accounting.Gaussian(**settings["mechanism"])
    _check_claims(guarantee, mechanism, layout, settings)
    return Released(
        state=state,
        others=tuple(others),
        layout=layout,
        guarantee=guarantee,
        receipt=_receipt(guarantee, mechanism, settings),
        **{
            name: settings[name] for name in ("sigma", "group_rows", "rows", "rows_hint", "version")
        },
    )


def _receipt(
    guarantee: Guarantee, mechanism: accounting.Gaussian, settings: dict[str, Any]
) -> Receipt:
    made = Receipt(
        id=settings["release"],
        mechanisms=((mechanism, 1),),
        neighbours=guarantee.neighbours,
        unit=guarantee.unit,
        scope=guarantee.scope,
        source=settings["source"],
        private=settings["private"],
    )
    return replace(made, scope=guarantee.scope.removeprefix(made.mark))


def _check_claims(
    guarantee: Guarantee,
    mechanism: accounting.Gaussian,
    layout: RowLayout,
    settings: dict[str, Any],
) -> None:
    """Check that noise, mechanism and guarantee belong together, as far as a file can tell."""
    sensitivity = unit_sensitivity(
        layout, guarantee.neighbours, Unit(guarantee.unit), settings["group_rows"]
    )
    fits = (
        mechanism.neighbours is guarantee.neighbours
        and mechanism.sensitivity >= math.sqrt(layout.head_count) * (1 - 1e-12)
        and math.isclose(settings["sigma"], mechanism.sigma * sensitivity, rel_tol=1e-9)
        and mechanism.epsilon_at(guarantee.delta) <= guarantee.epsilon * (1 + 1e-9)
        and (settings["group_rows"] == 1 or guarantee.unit == Unit.RECORD)
        and (settings["rows"] is None or rows_are_public(guarantee.neighbours, guarantee.unit))
    )
    if not fits:
        raise CorruptRelease("Expected the noise to be what the guarantee needs.")


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def digest(data: bytes) -> bytes:
    """Return the checksum of a file that has `BLANK` in its place."""
    return hashlib.sha256(data).hexdigest().encode()
