"""The file of a release: noisy sums, settings and card.

`_files` knows what files look like. This module says what a release puts into one, and checks
what it finds when one is opened.
"""

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet import accounting, provenance
from discreet._files import Restorer, pack, read, unpack, whole_file
from discreet.accounting import Receipt
from discreet.accounting.compose import covers
from discreet.accounting.receipt import but_for
from discreet.errors import CorruptRelease
from discreet.noise.correlated import StateNoise
from discreet.privacy import Guarantee
from discreet.provenance import Stated
from discreet.sums.layout import Norm, RowLayout
from discreet.sums.release import Release, Released
from discreet.sums.settings import Unit, rows_are_public, unit_sensitivity

# More than a header has besides parameters: names, the guarantee in words, the card's lines.
_SENTENCES = 2**14

# More mechanisms than any release has: to compose millions would take a machine's memory.
_PARTS = 64

AnyRelease = TypeVar("AnyRelease", bound=Release[Any])


def save(release: Release[Any], path: str | os.PathLike[str]) -> None:
    """Write a release to a file: whole, or not at all.

    Args:
        release: of any kind.
        path: of the file; one that is there is replaced.
    """
    data = to_bytes(release)
    with whole_file(Path(path)) as file:
        file.write(data)


def load(path: str | os.PathLike[str], kind: type[AnyRelease]) -> AnyRelease:
    """Return the release of one kind that a file holds.

    Args:
        path: of the file.
        kind: the class of the release.

    Raises:
        CorruptRelease: the file is of another kind, was cut short or altered.
    """
    return read(path, lambda data: unpack(data, {kind.kind: restorer(kind)}))


def to_bytes(release: Release[Any]) -> bytes:
    """Return the file of a release. Its length depends on public settings only.

    Args:
        release: of any kind.
    """
    released = release.released
    return pack(
        tensors_of(released),
        name=release.kind,
        settings=settings_of(released),
        card=release.card.to_dict(),
    )


def largest_file(layout: RowLayout) -> int:
    """Return what the file of a release takes, at most, in bytes: known before a row is read.

    Sums and public arrays as they are; a header that has the parameters in the settings and once
    more on the card, in JSON within JSON, which may double them; and sentences.

    Args:
        layout: of the release.
    """
    sums = sum(np.dtype(np.int64).itemsize * math.prod(shape) for shape in layout.shapes)
    arrays = sum(array.nbytes for array in layout.arrays().values())
    parameters = len(json.dumps(layout.parameters()).encode())
    return sums + arrays + 4 * parameters + _SENTENCES


def restorer(kind: type[AnyRelease]) -> Restorer[AnyRelease]:
    """Return what makes a release of one kind from a file's settings and tensors.

    Args:
        kind: the class of the release.
    """
    return lambda settings, tensors: kind(restore(settings, tensors, kind.layout))


def tensors_of(released: Released[RowLayout]) -> dict[str, NDArray[Any]]:
    """Return the noisy sums and the kernel's arrays, under the names that a file has for them.

    Args:
        released: noisy sums, with what is public about them.
    """
    return {
        **dict(zip(released.layout.part_names, (released.state, *released.others), strict=True)),
        **released.layout.arrays(),
    }


def settings_of(released: Released[RowLayout]) -> dict[str, object]:
    """Return the numbers that, with the tensors, make the same release again.

    Args:
        released: noisy sums, with what is public about them.
    """
    return {
        **released.layout.parameters(),
        "guarantee": asdict(released.guarantee),
        **_mechanisms(released),
        "sigma": released.sigma,
        "source": released.source,
        "private": released.private,
        "group_rows": released.group_rows,
        "rows": released.rows,
        "rows_hint": released.rows_hint,
        "release": released.release,
        "version": released.version,
        # Only where there are some: so it was before there was such a field.
        **({"leaks": list(released.receipt.leaks)} if released.receipt.leaks else {}),
        **({} if released.stream is None else {"stream": released.stream.parameters()}),
        **({} if released.estimator is None else {"estimator": dict(released.estimator)}),
        **provenance.facts(released.stated),
    }


def _mechanisms(released: Released[RowLayout]) -> dict[str, object]:
    """Return what the release is made of: one Gaussian mechanism; or whatever is on its receipt."""
    pairs = released.receipt.mechanisms
    if len(pairs) == 1 and isinstance(pairs[0][0], accounting.Gaussian) and released.share == 1:
        return {"mechanism": asdict(pairs[0][0])}
    made_of = [[each.to_dict(), count] for each, count in pairs]
    return {"mechanisms": made_of, "of_budget": released.share}


def _made_of(settings: dict[str, Any]) -> tuple[tuple[accounting.Mechanism, int], ...]:
    """Return the mechanisms that a file says its release is made of."""
    if "mechanism" in settings:
        return ((accounting.Gaussian(**settings["mechanism"]), 1),)
    return few(
        tuple(
            (accounting.Mechanism.from_dict(each), count) for each, count in settings["mechanisms"]
        )
    )


def few(
    mechanisms: tuple[tuple[accounting.Mechanism, int], ...],
) -> tuple[tuple[accounting.Mechanism, int], ...]:
    """Return what a file says its release is made of, or raise `CorruptRelease` if that is a lot.

    Args:
        mechanisms: (mechanism, how many times).
    """
    if sum(count for _, count in mechanisms) > _PARTS:
        raise CorruptRelease("Expected fewer mechanisms.")
    return mechanisms


def restore(
    settings: dict[str, Any],
    tensors: Mapping[str, NDArray[Any]],
    kind: type[RowLayout],
) -> Released[Any]:
    """Return the release with these settings and tensors, as far as they can be believed.

    Args:
        settings: of `settings_of`, as a file has them.
        tensors: of `tensors_of`, likewise.
        kind: of the layout.
    """
    layout = kind.restore(settings, tensors)
    if not all(str(settings[name]).isprintable() for name in ("source", "release", "version")):
        raise CorruptRelease("Expected texts that can be printed.")
    parts = [tensors[name] for name in layout.part_names]
    for part, shape in zip(parts, layout.shapes, strict=True):
        if part.shape != shape or part.dtype != np.int64:
            raise CorruptRelease("Expected the state to have the shape that its settings say.")
        part.flags.writeable = False
    state, *others = parts
    guarantee = Guarantee(**settings["guarantee"])
    stream = StateNoise.restore(settings["stream"]) if "stream" in settings else None
    released = Released(
        state=state,
        others=tuple(others),
        layout=layout,
        guarantee=guarantee,
        receipt=_receipt(guarantee, _made_of(settings), settings),
        stream=stream,
        estimator=_estimator(settings),
        share=settings.get("of_budget", 1.0),
        stated=stated_in(settings),
        **{
            name: settings[name] for name in ("sigma", "group_rows", "rows", "rows_hint", "version")
        },
    )
    _check_claims(released)
    return released


def stated_in(settings: Mapping[str, Any]) -> Stated | None:
    """Return what the settings in a file say that the builder stated, checked as at a build.

    Args:
        settings: with an entry for it, if anything was stated.
    """
    found = settings.get("stated")
    if found is not None and not isinstance(found, dict):
        raise CorruptRelease("Expected what was stated to be texts by name.")
    return Stated.of(found)


def _estimator(settings: dict[str, Any]) -> Mapping[str, Any] | None:
    """Return how an estimator made keys of rows, if one did; what is in it, estimators check."""
    found = settings.get("estimator")
    if found is not None and not isinstance(found, dict):
        raise CorruptRelease("Expected an estimator to be described by names and values.")
    return found


def _receipt(
    guarantee: Guarantee,
    mechanisms: tuple[tuple[accounting.Mechanism, int], ...],
    settings: dict[str, Any],
) -> Receipt:
    made = Receipt(
        id=settings["release"],
        mechanisms=mechanisms,
        neighbours=guarantee.neighbours,
        unit=guarantee.unit,
        scope=guarantee.scope,
        source=settings["source"],
        private=settings["private"],
        leaks=tuple(settings.get("leaks", ())),
    )
    if not made.agrees_with(guarantee):
        raise CorruptRelease("Expected the guarantee to say whether the noise protects anybody.")
    scope = guarantee.scope.removeprefix(made.mark).removesuffix(but_for("", made.leaks))
    if made.leaks and made.covering(scope) != guarantee.scope:
        raise CorruptRelease("Expected the guarantee to say what was taken from the rows.")
    return replace(made, scope=scope)


def _check_claims(released: Released[RowLayout]) -> None:
    """Check that noise, mechanism and guarantee belong together, as far as a file can tell."""
    guarantee, stream = released.guarantee, released.stream
    by_record = guarantee.unit == Unit.RECORD
    fits = (
        (_fits_cells(released) if released.layout.norm is Norm.L1 else _fits_gaussian(released))
        and covers(guarantee, released.receipt.mechanisms)
        and (released.group_rows == 1 or by_record)
        and (stream is None or not stream.continual.enforced or by_record)
        and (released.rows is None or rows_are_public(guarantee.neighbours, guarantee.unit))
    )
    if not fits:
        raise CorruptRelease("Expected the noise to be what the guarantee needs.")


def _fits_gaussian(released: Released[RowLayout]) -> bool:
    """Whether the noise is that of the Gaussian mechanism, or of a share of it."""
    mechanism, layout = released.mechanism, released.layout
    needed = released.noise_multiplier * _sensitivity(released)
    return mechanism.sensitivity >= math.sqrt(layout.head_count) * (1 - 1e-12) and math.isclose(
        released.sigma, needed, rel_tol=1e-9
    )


def _fits_cells(released: Released[RowLayout]) -> bool:
    """Whether the noise of every part is on the receipt, for counts that move as these do."""
    left = [each for each, count in released.receipt.mechanisms for _ in range(min(count, 8))]
    for scale in released.scales:
        part = accounting.DiscreteLaplace(
            scale=scale,
            sensitivity=round(_sensitivity(released)),
            neighbours=released.guarantee.neighbours,
        )
        if part not in left:
            return False
        left.remove(part)
    return True


def _sensitivity(released: Released[RowLayout]) -> float:
    """Return how far a unit moves the sums, by what their layout says."""
    guarantee = released.guarantee
    return unit_sensitivity(
        released.layout, guarantee.neighbours, Unit(guarantee.unit), released.group_rows
    )
