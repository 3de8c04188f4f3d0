"""Builds from the command line that are counted in a ledger."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from discreet._warn import warn
from discreet.accounting.receipt import Carrier
from discreet.errors import DiscreetError
from discreet.ledger import Ledger


def counted(path: Path | None, dataset: str | None, analyst: str | None) -> dict[str, Any]:
    """Return the options of a build that say where it is counted."""
    ledger = None if path is None else Ledger(path)
    return {"ledger": ledger, "dataset": dataset, "analyst": analyst}


def note_release(options: Mapping[str, Any], release: Carrier, output: Path) -> None:
    """Note where a release went, if it was counted; the file is there, so a failure only warns."""
    ledger = options.get("ledger")
    if not isinstance(ledger, Ledger):
        return
    try:
        ledger.released(release, output)
    except DiscreetError as error:
        warn(
            f"{output} was written and is counted, but not noted as released: {error}", UserWarning
        )
