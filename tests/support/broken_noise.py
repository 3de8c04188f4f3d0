"""Noise that is not what it should be, as mistakes would make it."""

from contextlib import contextmanager

import numpy as np
import pytest

from discreet.noise.exact import IntegerLaw


@contextmanager
def noise_made(change):
    """Make something else of all noise: `change` gets the numbers of one draw, and returns some."""
    draw = IntegerLaw._draw

    def changed(law, count, entropy):
        return np.rint(change(draw(law, count, entropy))).astype(np.int64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(IntegerLaw, "_draw", changed)
        yield


def noise_times(factor):
    """Make all noise so many times what is said of it."""
    return noise_made(lambda noise: noise * factor)


def exact_here_and_there(noise):
    """Every other number is exact, and the others make up for it."""
    return np.where(np.arange(len(noise)) % 2, noise * np.sqrt(2), 0)


def exact_at_the_beginning(noise):
    """The first quarter is exact: of a memory's sums, what belongs to some columns of values."""
    return np.where(np.arange(len(noise)) < len(noise) / 4, 0, noise)


def exact_at_the_end(noise):
    """The last number is exact."""
    return np.concatenate([noise[:-1], [0]])


def repeated(noise):
    """The second half has the noise of the first."""
    half = len(noise) // 2
    return np.concatenate([noise[: len(noise) - half], noise[:half]])


def mirrored(noise):
    """The second half has the noise of the first, with the other sign."""
    half = len(noise) // 2
    return np.concatenate([noise[: len(noise) - half], -noise[:half]])


def coarse(noise):
    """All noise is a multiple of eight: the last bits are exact."""
    return np.rint(noise / 8) * 8


def rarely_small(noise):
    """One release in twenty has a hundredth of the noise."""
    return noise / 100 if int(np.abs(noise).sum()) % 20 == 0 else noise
