"""Mironov's attack (CCS 2012): the low bits of a float betray what the noise was added to."""

import numpy as np
import pytest

from discreet.noise import DiscreteLaplace, Lattice, TruncatedLaplace

EPSILON = 0.5
DRAWS = 200_000


def naive(secret):
    """What most code does: float64 Laplace noise of scale 1/ε on a secret of sensitivity 1."""
    generator = np.random.default_rng()
    return secret + generator.laplace(scale=1 / EPSILON, size=DRAWS)


def on_a_lattice(secret, bits, law_of):
    """The same release on a lattice: integer secret, integer noise of the same scale."""
    lattice = Lattice(bits=bits)
    law = law_of(lattice.units(1.0))
    return lattice.to_real(lattice.round([secret]) + law.sample(DRAWS))


def frequency_of_betrayal(releases):
    """How often a release is small and finer than 2^-53, the grain that 1 + noise leaves behind."""
    small = np.abs(releases) < 0.25
    return np.mean(small & (np.ldexp(releases, 53) != np.rint(np.ldexp(releases, 53))))


def excess_over_privacy(release):
    """By how much Pr[event | 0] exceeds e^ε·Pr[event | 1], and how common the event is."""
    zero, one = (frequency_of_betrayal(release(secret)) for secret in (0.0, 1.0))
    return max(zero - np.exp(EPSILON) * one, one - np.exp(EPSILON) * zero), max(zero, one)


def test_the_attack_breaks_floating_point_noise():
    excess, power = excess_over_privacy(naive)
    assert power > 0.02
    assert excess > 0.02  # an event that is common under one secret and impossible under the other


@pytest.mark.parametrize(
    "law_of",
    [
        lambda units: DiscreteLaplace(scale=units / EPSILON),
        lambda units: TruncatedLaplace(sensitivity=units, epsilon=EPSILON, delta=1e-9),
    ],
    ids=["discrete", "truncated"],
)
@pytest.mark.parametrize("bits", [10, 38])
def test_the_attack_finds_nothing_on_the_lattice(law_of, bits):
    excess, _ = excess_over_privacy(lambda secret: on_a_lattice(secret, bits, law_of))
    assert excess < 0.01


@pytest.mark.parametrize("bits", [10, 38])
def test_no_low_bits_betray_the_secret_on_the_lattice(bits):
    """The attack in general: learn which low-bit patterns favour one secret, then count them."""
    patterns = []
    for secret in (0.0, 1.0):
        release = on_a_lattice(secret, bits, lambda units: DiscreteLaplace(scale=units / EPSILON))
        low = np.ldexp(np.abs(release), bits).astype(np.int64) % 64
        patterns.append(np.bincount(low, minlength=64) / DRAWS)
    assert np.abs(patterns[0] - patterns[1]).max() < 6 * np.sqrt(1 / 64 / DRAWS)
