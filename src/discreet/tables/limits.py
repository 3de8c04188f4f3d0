"""What readers of files stop at: too much to unpack in memory, and files that are not their own."""

import lzma
import os
import struct
import tokenize
import zipfile
import zlib
from pathlib import Path

from discreet.errors import InvalidInput

# What readers raise for files that are not their own.
UNREADABLE = (
    ArithmeticError,
    EOFError,
    LookupError,
    MemoryError,
    NotImplementedError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    lzma.LZMAError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


def check_unpacked(path: Path, size: int) -> None:
    """Raise `InvalidInput` if so many bytes are too many to unpack in memory."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if size > memory // 2:
        raise InvalidInput(
            f"Expected {path} to unpack to less than half of this machine's memory; "
            "a .npy file is mapped and needs none."
        )
