"""One safetensors file for one release: noisy state, public settings, card, checksum. No pickle.

The checksum guards against damage and mix-ups, not against somebody who wants to deceive: whoever
can write the file can write a checksum.
"""

import hashlib
import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

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
from discreet.memory.layout import Layout
from discreet.memory.release import Released
from discreet.memory.settings import Unit, unit_sensitivity
from discreet.privacy import NOT_PRIVATE, Guarantee

FORMAT = "discreet-memory"
FORMAT_VERSION = "1"

_BLANK = "0" * 64
_CHECKSUM = re.compile(rb'"checksum":"([0-9a-f]{64})"')


def save(released: Released, path: str | os.PathLike[str]) -> None:
    """Write a release to a file: whole, or not at all."""
    data = to_bytes(released)
    with whole_file(Path(path)) as file:
        file.write(data)


def load(path: str | os.PathLike[str]) -> Released:
    """Read a release, or raise `CorruptRelease` if the file is not one, or was altered."""
    data = Path(path).read_bytes()
    try:
        released = from_bytes(data)
    except CorruptRelease as error:
        raise CorruptRelease(f"{os.fspath(path)}: {error}") from None
    if not released.private:
        warn(
            f"{os.fspath(path)} is {NOT_PRIVATE}: its noise came from {released.source}.",
            NotPrivateWarning,
        )
    return released


def to_bytes(released: Released) -> bytes:
    """Return the file of a release. Its length depends on public settings only."""
    tensors = {"state": released.state, **released.layout.kernel.arrays()}
    metadata = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "settings": _json(_settings(released)),
        "card": _json(Card.of(released).to_dict()),
        "checksum": _BLANK,
    }
    blank = safetensors.save(tensors, metadata=metadata)
    found = _CHECKSUM.findall(blank)
    if found != [_BLANK.encode()]:
        raise DiscreetError("Expected one place for the checksum in the file's header.")
    return blank.replace(b'"checksum":"' + found[0], b'"checksum":"' + _digest(blank), 1)


def from_bytes(data: bytes) -> Released:
    """Return the release that a file holds."""
    match = _CHECKSUM.search(data)
    if match is None:
        raise CorruptRelease("Expected a file written by discreet, and this one has no checksum.")
    blank = data[: match.start(1)] + _BLANK.encode() + data[match.end(1) :]
    if _digest(blank) != match.group(1):
        raise CorruptRelease("Expected the checksum to match: the file was cut short or altered.")
    try:
        tensors = safetensors.load(data)
        length = int.from_bytes(data[:8], "little")
        metadata = json.loads(data[8 : 8 + length])["__metadata__"]
        if metadata["format"] != FORMAT or metadata["format_version"] != FORMAT_VERSION:
            kind = f"{metadata['format']} {metadata['format_version']}"
            raise CorruptRelease(f"Expected {FORMAT} {FORMAT_VERSION}, got {kind}.")
        return _restore(json.loads(metadata["settings"]), tensors)
    except CorruptRelease:
        raise
    except (
        SafetensorError,
        DiscreetError,
        ArithmeticError,
        LookupError,
        TypeError,
        ValueError,
        RecursionError,
    ):
        raise CorruptRelease("Expected a release, but the file's contents make no sense.") from None


def _settings(released: Released) -> dict[str, object]:
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


def _restore(settings: dict[str, Any], tensors: Mapping[str, NDArray[Any]]) -> Released:
    layout = Layout.restore(settings, tensors)
    if not all(str(settings[name]).isprintable() for name in ("source", "release", "version")):
        raise CorruptRelease("Expected texts that can be printed.")
    state = tensors["state"]
    if state.shape != layout.shape or state.dtype != np.int64:
        raise CorruptRelease("Expected the state to have the shape that its settings say.")
    state.flags.writeable = False
    guarantee = Guarantee(**settings["guarantee"])
    mechanism = accounting.Gaussian(**settings["mechanism"])
    _check_claims(guarantee, mechanism, layout, settings)
    return Released(
        state=state,
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
    guarantee: Guarantee, mechanism: accounting.Gaussian, layout: Layout, settings: dict[str, Any]
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
    )
    if not fits:
        raise CorruptRelease("Expected the noise to be what the guarantee needs.")


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode()
