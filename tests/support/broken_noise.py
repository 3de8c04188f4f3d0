"""Noise that is too small, as a mistake would make it."""

from contextlib import contextmanager

import numpy as np
import pytest

from discreet.noise.exact import IntegerLaw


@contextmanager
def noise_times(factor):
    """Make all noise so many times what is said of it."""
    draw = IntegerLaw._draw

    def smaller(law, count, entropy):
        return np.rint(draw(law, count, entropy) * factor).astype(np.int64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(IntegerLaw, "_draw", smaller)
        yield
