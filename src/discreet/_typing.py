"""Names for the arrays that go through the house."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Of numpy, of torch, or of another library with the array API; there is no common type to name.
Array = Any

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Words = NDArray[np.uint64]
