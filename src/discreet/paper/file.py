"""The file of a structure: what was released, public settings by name, and what is promised.

What each class puts in it is in `families`. A file is believed as far as it can be checked: shapes
against settings, the receipt against the nodes that there are, the guarantee against the receipt.
"""

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from discreet import _packing, _validate
from discreet._files import whole_file
from discreet._version import __version__
from discreet.accounting import Receipt
from discreet.accounting.compose import check_mechanisms, covers
from discreet.errors import CorruptRelease
from discreet.paper.cross_attention import ENTRY, Scope
from discreet.paper.families import FAMILIES, Nodes
from discreet.paper.restoring import Tensors
from discreet.paper.structure import ALL_COLUMNS, WHOLE, Structure
from discreet.privacy import Guarantee, Neighbours

FORMAT = "discreet-structure"

# More than rounding.
_ROUNDING = 1 + 1e-9


def save(structure: Structure, path: str | os.PathLike[str]) -> None:
    """Write a structure to a file: whole, or not at all."""
    data = to_bytes(structure)
    with whole_file(Path(path)) as file:
        file.write(data)


def load(path: str | os.PathLike[str]) -> Structure:
    """Return the structure in a file that `Structure.save` wrote; it answers with the same bits.

    Raises `CorruptRelease` if the file is none, was cut short or altered, or claims what cannot be;
    warns with `NotPrivateWarning` if it was made with a test source of noise.
    """
    return _packing.read(path, from_bytes)


def to_bytes(structure: Structure) -> bytes:
    """Return the file of a structure. Its length depends on public settings only."""
    family = FAMILIES.get(type(structure).__name__)
    if family is None or family.kind is not type(structure):
        _validate.reject_argument("structure", structure, f"one of {', '.join(FAMILIES)}")
    settings, tensors = family.describe(structure)
    everything = {
        "class": family.kind.__name__,
        "settings": settings,
        "guarantee": asdict(structure.guarantee),
        "total_delta": structure._total_delta,
        "receipt": structure.receipt.to_dict(),
        "version": __version__,
    }
    return _packing.pack(tensors, name=FORMAT, settings=everything, card=structure.card.to_dict())


def from_bytes(data: bytes) -> Structure:
    """Return the structure in a file's bytes, or raise `CorruptRelease`."""
    return _packing.unpack(data, {FORMAT: restored})


def restored(settings: Any, tensors: Tensors) -> Structure:  # noqa: ANN401 (whatever JSON holds)
    """Return the structure with these settings and tensors, as far as they can be believed."""
    family = FAMILIES[settings["class"]]
    found = family.restore(settings["settings"], tensors)
    promise = {
        "guarantee": Guarantee(**settings["guarantee"]),
        "receipt": Receipt.from_dict(settings["receipt"]),
        "_mechanisms": found.covered,
        "_total_delta": _validate.real("total_delta", settings["total_delta"], above=0, below=1),
    }
    made: Structure = object.__new__(family.kind)  # its own __init__ takes rows, and draws
    vars(made).update(found.attributes | promise)
    _check_claims(made, found.whole)
    return made


def _check_claims(made: Structure, whole: Nodes) -> None:
    """Check that nodes, receipt and guarantee belong together, as far as a file can tell."""
    guarantee, receipt = made.guarantee, made.receipt
    fits = (
        dict(receipt.mechanisms) == dict(check_mechanisms(whole))
        and guarantee.neighbours is receipt.neighbours is Neighbours.REPLACE
        and guarantee.unit == receipt.unit == "row"
        and _says_what_it_covers(made)
        and 0 < guarantee.delta <= made._total_delta * _ROUNDING
        and covers(guarantee, made._mechanisms)
    )
    if not fits:
        raise CorruptRelease("Expected the noise to be what the guarantee needs.")


def _says_what_it_covers(made: Structure) -> bool:
    """Whether guarantee and receipt say of themselves what the settings say of the structure."""
    said, receipt = made.guarantee.scope, made.receipt
    if receipt.leaks:  # nothing makes such a structure
        return False
    if getattr(made, "scope", Scope.VECTOR) is Scope.ENTRY:
        whole = said.startswith(receipt.mark + ENTRY) and said.isprintable()
        return whole and receipt.scope == ALL_COLUMNS
    return said == receipt.mark + WHOLE and receipt.scope == WHOLE
