"""How much may be unpacked in memory: what is mapped needs none."""

import os
from pathlib import Path

from discreet.errors import InvalidInput


def check_unpacked(path: Path, size: int) -> None:
    """Raise `InvalidInput` if so many bytes are too many to unpack in memory."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if size > memory // 2:
        raise InvalidInput(
            f"Expected {path} to unpack to less than half of this machine's memory; "
            "a .npy file is mapped and needs none."
        )
