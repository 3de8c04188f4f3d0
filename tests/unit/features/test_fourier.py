import hashlib

import numpy as np
import pytest
from data import unit_rows

from discreet import InvalidInput
from discreet.features.fourier import PUBLIC_SEED, IntegerFrequencies, normal_frequencies
from discreet.kernels import FEATURE_RADIUS, Fourier

BOUNDS = {"scale": 2.0, "key_norm": 1.0, "query_norm": 1.0}


def test_public_frequencies_never_change():
    """Partial sums made by different versions or machines must add up."""
    frequencies = Fourier(6, frequencies=20, **BOUNDS).integer_frequencies
    digest = hashlib.sha256(frequencies.values.astype("<i8").tobytes()).hexdigest()
    assert digest[:16] == "d3985b2412aa758d"
    assert PUBLIC_SEED == 0


@pytest.mark.parametrize(("dim", "count"), [(1, 10), (3, 10), (16, 64), (40, 8), (384, 500)])
def test_frequencies_are_orthogonal_within_a_block(dim, count):
    rows = normal_frequencies(dim, count, 0)
    assert rows.shape == (count, dim)
    for start in range(0, count, dim):
        block = rows[start : start + dim]
        unit = block / np.linalg.norm(block, axis=1, keepdims=True)
        np.testing.assert_allclose(unit @ unit.T, np.eye(len(unit)), atol=1e-4)


def test_frequencies_are_normal():
    rows = normal_frequencies(4, 20_000, 1)
    assert abs(rows.mean()) < 0.02
    assert rows.var() == pytest.approx(1, abs=0.02)
    assert np.mean(rows**4) == pytest.approx(3, abs=0.1)
    assert np.mean(rows[:, 0] ** 2 * rows[:, 1] ** 2) == pytest.approx(1, abs=0.05)


def test_another_seed_gives_other_frequencies_and_the_same_error():
    one, other = (Fourier(8, frequencies=32, seed=seed, **BOUNDS) for seed in (0, 1))
    assert one != other
    assert not np.array_equal(one.integer_frequencies.values, other.integer_frequencies.values)
    assert one.error == other.error


def test_the_error_is_the_standard_deviation_over_seeds():
    """Far keys have 1/√(2m), near ones less; orthogonal frequencies do not exceed it."""
    key, query = unit_rows(2, 32, seed=3)
    weights = []
    for seed in range(150):
        kernel = Fourier(32, frequencies=32, seed=seed, **BOUNDS)
        mapped = kernel.key_features(key[None])
        growth = np.exp(kernel.largest_logit / 2)
        basis = kernel.read(query[None, None], kernel.reading(np.eye(64)[None]))[0] * growth
        weights.append(float(basis[0] @ mapped.features[0] * mapped.weights[0] / kernel.unit))
    largest = np.exp(kernel.largest_logit)
    assert np.mean(weights) == pytest.approx(np.exp(2 * key @ query), abs=0.03 * largest)
    assert 0.3 * kernel.error * largest < np.std(weights) < 1.2 * kernel.error * largest


@pytest.mark.parametrize("frequencies", [1, 2, 3, 1000, 1024, 5000])
def test_every_angle_of_the_table_keeps_the_norm(frequencies):
    kernel = Fourier(2, frequencies=frequencies, **BOUNDS)
    lengths = kernel._table.real**2 + kernel._table.imag**2
    assert lengths.max() * frequencies <= FEATURE_RADIUS**2
    near_tie = np.abs(np.abs(kernel._amplitude * np.cos(np.arange(4096) * np.pi / 2048)) % 1 - 0.5)
    assert near_tie.min() > 1e-9  # so no library's last bit decides an entry


def test_projections_are_exact_integers():
    kernel = Fourier(50, frequencies=64, scale=30.0, key_norm=1.0, query_norm=1.0)
    frequencies = kernel.integer_frequencies.values.astype(object)
    keys = kernel.key_lattice.clip_rows(unit_rows(20, 50), norm=1.0)
    exact = keys.astype(object) @ frequencies.T
    assert np.array_equal(exact, (keys.astype(float) @ kernel._float_frequencies).astype(object))
    assert np.abs(exact).max() < 2**52


def test_stored_frequencies_are_checked():
    values = np.ones((4, 3), dtype=np.int64)
    kernel = Fourier(3, frequencies=4, stored=IntegerFrequencies(values, 40), **BOUNDS)
    assert np.array_equal(kernel.integer_frequencies.values, values)
    for bad in (values[:2], values.astype(np.int32), values * 2**40):
        with pytest.raises(InvalidInput, match="stored"):
            Fourier(3, frequencies=4, stored=IntegerFrequencies(bad, 40), **BOUNDS)
    with pytest.raises(InvalidInput, match="turn_bits"):
        Fourier(3, frequencies=4, stored=IntegerFrequencies(values, 99), **BOUNDS)


@pytest.mark.parametrize("length", [1, 2, 3, 7, 8, 9, 63, 64, 1000])
def test_exp_gives_the_same_bits_at_any_position_of_numbers_that_lie_side_by_side(length):
    """What the weights of keys rely on, and what a reversed view would not give."""
    arguments = -np.random.default_rng(0).exponential(3.0, 5_000)
    together = np.exp(arguments)
    for start in range(0, 4_000, 131):
        alone = np.exp(arguments[start : start + length])
        assert np.array_equal(alone, together[start : start + length])
    memory = np.empty(5_001 * 8 + 1, dtype=np.uint8)[1 : 1 + 8 * 5_000].view(np.float64)
    memory[:] = arguments  # not aligned to eight bytes
    assert np.array_equal(np.exp(memory), together)


def test_frequencies_that_a_file_would_wrap_are_refused():
    bounds = BOUNDS | {"key_norm": 1.0}
    plain = Fourier(2, frequencies=2, **bounds)
    fits = IntegerFrequencies(np.array([[2**29, 0], [0, -(2**29)]]), 40)
    assert Fourier(2, frequencies=2, stored=fits, **bounds).features == plain.features
    # A key bound just above a power of two has the coarsest lattice, and room for 32 bits.
    bounds["key_norm"] = 1.0 + 2**-40
    stored = IntegerFrequencies(np.array([[2**31, 0], [0, 1]]), 40)
    with pytest.raises(InvalidInput, match="32 bits"):
        Fourier(2, frequencies=2, stored=stored, **bounds)


def test_frequencies_whose_angles_would_wrap_are_refused():
    """At the coarsest resolution of angles, one addition rounds only half as long projections."""
    for turn_bits, longest in ((12, 2**29), (13, 2**30)):
        for length, refused in ((longest, False), (longest + 1, True)):
            stored = IntegerFrequencies(np.array([[length, 0]]), turn_bits)
            if refused:
                with pytest.raises(InvalidInput, match="exact"):
                    Fourier(2, frequencies=1, stored=stored, **BOUNDS)
                continue
            kernel = Fourier(2, frequencies=1, stored=stored, **BOUNDS)
            keys = np.array([[1.0, 0.0], [-1.0, 0.0], [0.25, 0.0], [3 / 2**22, 0.0]])
            angles = np.rint(keys[:, 0] * 2**22) * length / 2**turn_bits * 2 * np.pi
            expected = np.cos(angles) * np.sqrt(2**32 - 2**17)
            np.testing.assert_allclose(kernel.key_features(keys).features[:, 0], expected, atol=120)
