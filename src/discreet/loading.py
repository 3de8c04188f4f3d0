"""Opening a file, whatever was released in it."""

import os
from typing import Any

from discreet.memory import Memory, container
from discreet.memory.file import MEMORY
from discreet.memory.layout import Layout
from discreet.regression import LeastSquares
from discreet.regression.file import LEAST_SQUARES


def load(path: str | os.PathLike[str]) -> Any:  # noqa: ANN401 (what it is, the file says)
    """Return what is in a file: a `Memory`, or a `LeastSquares`.

    (`discreet.memory.load` and `discreet.regression.load` open one kind, and say so to a type
    checker.) Raises `CorruptRelease` if the file is none, was cut short or altered; warns with
    `NotPrivateWarning` if it was made with a test source of noise.
    """
    released: Any = container.load(path, MEMORY, LEAST_SQUARES)
    return Memory(released) if isinstance(released.layout, Layout) else LeastSquares(released)
