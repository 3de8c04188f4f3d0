"""1.96 standard errors hold 95% of the time against exact attention: no less, and not always."""

from functools import cache

import numpy as np
import pytest
from data import unit_rows

import discreet
from discreet.kernels import Fourier, Landmarks, Minimax
from discreet.readers.attention import comparison as oracle
from discreet.testing import Seeded

BUILDS, QUERIES, FREQUENCIES = 8, 200, 1024


def rows(kind, count, dim):
    """Evenly spread, or in twelve clusters."""
    if kind == "even":
        return unit_rows(count, dim)
    noise = unit_rows(count, dim, seed=1) * 0.7
    centres = unit_rows(12, dim, seed=2)[np.arange(count) % 12]
    return (centres + noise) / np.linalg.norm(centres + noise, axis=1, keepdims=True)


def asked(keys, values, queries, *, epsilon, kernel):
    """Builds with noise of their own, the queries' answers, and what they say of their errors."""
    for seed in range(BUILDS):
        memory = discreet.build(
            keys, values, epsilon=epsilon, delta=1e-6, kernel=kernel(seed), entropy=Seeded(seed)
        )
        yield memory, *memory.attend(queries, stderr=True)


@cache
def coverage(kind, count, dim, epsilon, scale):
    """The share of numbers within 1.96 standard errors, by the whole error and by the noise.

    And within half and twice as many, by the whole error.
    """
    keys = rows(kind, count, dim)
    values = np.sign(keys[:, :4]) / 2
    queries = keys[:: max(count // QUERIES, 1)][:QUERIES]
    exact = oracle.attention(queries, keys, values, scale=scale)
    shares = []

    def kernel(seed):
        bounds = {"scale": scale, "key_norm": 1.0, "query_norm": 1.0}
        return Fourier(dim, frequencies=FREQUENCIES, seed=seed, **bounds)

    for memory, out, stderr in asked(keys, values, queries, epsilon=epsilon, kernel=kernel):
        errors = np.abs(out - exact)
        noise = memory.noise_stderr(queries)
        widths = (stderr, noise, stderr / 2, stderr * 2)
        shares.append([np.mean(errors <= 1.96 * each) for each in widths])
    return np.mean(shares, axis=0)


@pytest.mark.parametrize(
    ("kind", "count", "dim", "epsilon", "scale"),
    [
        pytest.param("even", 300, 16, 1.0, 1.5, marks=pytest.mark.slow),
        pytest.param("even", 2_000, 32, 0.5, 2.0, marks=pytest.mark.slow),
        pytest.param("even", 5_000, 32, 4.0, 5.0, marks=pytest.mark.slow),
        pytest.param("clusters", 2_000, 64, 1.0, 3.0, marks=pytest.mark.slow),
        pytest.param("clusters", 5_000, 16, 4.0, 5.0, marks=pytest.mark.slow),
        pytest.param("clusters", 3_000, 384, 4.0, 2.0, marks=pytest.mark.slow),
    ],
)
def test_intervals_hold_as_often_as_they_should(kind, count, dim, epsilon, scale):
    whole, *_ = coverage(kind, count, dim, epsilon, scale)
    assert 0.91 <= whole <= 0.99


@pytest.mark.slow
def test_errors_of_half_or_twice_the_size_would_be_noticed_and_so_would_noise_alone():
    case = ("clusters", 5_000, 16, 4.0, 5.0)
    whole, noise, half, twice = coverage(*case)
    assert 0.91 <= whole <= 0.99
    assert noise < 0.6
    assert half < 0.85
    assert twice > 0.99


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_certified_kernels_hold_at_least_as_often(epsilon):
    keys = unit_rows(5_000, 8)
    values = np.sign(keys[:, :4]) / 2
    queries = keys[:200]
    exact = oracle.attention(queries, keys, values, scale=1.0)
    kernel = discreet.build(keys, values, epsilon=1.0, delta=1e-6, scale=1.0).kernel
    assert kernel.kind == "minimax"
    shares = []
    for memory, out, stderr in asked(
        keys, values, queries, epsilon=epsilon, kernel=lambda _: kernel
    ):
        shares.append(np.mean(np.abs(out - exact) <= 1.96 * stderr))
        assert np.all(stderr >= memory.noise_stderr(queries))
    assert np.mean(shares) >= 0.95


@pytest.mark.parametrize(("dim", "scale"), [(8, 4.0), (4, 8.0), (2, 8.0)])
def test_certified_kernels_say_something_at_sharp_scales(dim, scale):
    keys = unit_rows(20_000, dim)
    values = np.sign(keys[:, :2]) / 2
    queries = keys[:200]
    memory = discreet.build(keys, values, epsilon=1.0, delta=1e-6, scale=scale)
    assert memory.kernel.kind == "minimax"
    out, stderr = memory.attend(queries, stderr=True)
    exact = oracle.attention(queries, keys, values, scale=scale)
    assert np.mean(np.abs(out - exact) <= 1.96 * stderr) >= 0.95
    # Noise, and twice what the polynomial alone could do to values of this length.
    assert np.all(stderr < memory.noise_stderr(queries) + 2 * memory.kernel.error)


@pytest.mark.parametrize(
    ("kind", "count", "dim", "epsilon", "scale"),
    [
        ("clusters", 300, 16, 1.0, 2.0),
        ("clusters", 4_000, 16, 0.5, 5.0),
        ("clusters", 4_000, 16, 20.0, 5.0),
        ("even", 4_000, 16, 4.0, 2.0),
        ("clusters", 4_000, 64, 4.0, 5.0),
    ],
)
def test_landmarks_of_rows_alike_hold_at_least_as_often_and_say_something(
    kind, count, dim, epsilon, scale
):
    """Also at a large ε, where nothing but the kernel's error is left."""
    everything = rows(kind, count + 1_200, dim)
    public, queries, keys = everything[:1_000], everything[1_000:1_200], everything[1_200:]
    values = np.sign(keys[:, :4]) / 2
    exact = oracle.attention(queries, keys, values, scale=scale)
    kernel = Landmarks(public, rank=300, scale=scale, key_norm=1.0, query_norm=1.0)
    shares, widths = [], []
    for _, out, stderr in asked(keys, values, queries, epsilon=epsilon, kernel=lambda _: kernel):
        errors = np.abs(out - exact)
        shares.append(np.mean(errors <= 1.96 * stderr))
        widths.append(np.median(stderr) / np.sqrt(np.mean(errors**2)))
    assert np.mean(shares) >= 0.91
    assert np.mean(widths) < 6


@pytest.mark.parametrize(
    ("made_of", "case"),
    [
        pytest.param("fourier", ("even", 2_000, 32, 0.5, 2.0), marks=pytest.mark.slow),
        pytest.param("fourier", ("even", 5_000, 32, 4.0, 5.0), marks=pytest.mark.slow),
        pytest.param("fourier", ("clusters", 3_000, 384, 1.0, 1.0), marks=pytest.mark.slow),
        pytest.param("fourier", ("clusters", 4_000, 16, 20.0, 5.0), marks=pytest.mark.slow),
        ("landmarks", ("clusters", 4_000, 16, 4.0, 0.5)),
        ("landmarks", ("clusters", 2_000, 64, 1.0, 3.0)),
        ("minimax", ("clusters", 5_000, 8, 0.5, 1.0)),
    ],
)
def test_differences_from_the_base_rate_hold_as_often_as_they_should(made_of, case):
    kind, count, dim, epsilon, scale = case
    everything = rows(kind, count + 1_200, dim)
    public, queries, keys = everything[:1_000], everything[1_000:1_200], everything[1_200:]
    values = np.sign(keys[:, :4]) / 2
    exact = oracle.attention(queries, keys, values, scale=scale) - values.mean(axis=0)
    bounds = {"scale": scale, "key_norm": 1.0, "query_norm": 1.0}
    kernels = {
        "fourier": lambda seed: Fourier(dim, frequencies=FREQUENCIES, seed=seed, **bounds),
        "landmarks": lambda _: Landmarks(public, rank=300, **bounds),
        "minimax": lambda _: Minimax(dim, eps_s=0.05, **bounds),
    }
    shares, widths = [], []
    for memory, _, stderr in asked(keys, values, queries, epsilon=epsilon, kernel=kernels[made_of]):
        apart, error = memory.differences(queries)
        shares.append(np.mean(np.abs(apart - exact) <= 1.96 * error))
        widths.append(np.median(error) / np.sqrt(np.mean((apart - exact) ** 2)))
        # What answers and base rate share cancels: never much more than the answer's own.
        assert np.median(error) < 1.3 * np.median(stderr)
    assert np.mean(shares) >= 0.91
    if made_of == "fourier":
        assert np.mean(shares) <= 0.99
        assert 0.8 < np.mean(widths) < 1.4


def test_landmarks_of_other_rows_say_that_they_know_nothing():
    keys = rows("clusters", 3_000, 16)
    values = np.sign(keys[:, :4]) / 2
    exact = oracle.attention(keys[:200], keys, values, scale=5.0)
    other = rows("clusters", 1_000, 16)[:, ::-1]
    kernel = Landmarks(other, rank=300, scale=5.0, key_norm=1.0, query_norm=1.0)
    memory = discreet.build(keys, values, epsilon=20.0, delta=1e-6, kernel=kernel)
    with pytest.warns(discreet.NotCoveredWarning):
        out, stderr = memory.attend(keys[:200], stderr=True)
    assert np.mean(np.abs(out - exact) <= 1.96 * stderr) >= 0.91
    assert np.median(stderr) > 3 * np.sqrt(np.mean((out - exact) ** 2))


def test_where_the_denominator_is_noise_errors_are_wide_and_not_beyond_the_values():
    keys = unit_rows(20, 16)
    memory = discreet.build(keys, keys, epsilon=0.1, delta=1e-6, scale=4.0, entropy=Seeded(1))
    _, stderr = memory.attend(keys, stderr=True)
    assert np.all(np.isfinite(stderr))
    values = oracle.attention(keys, keys, keys, scale=4.0)
    assert np.mean(np.abs(memory.attend(keys) - values) <= 1.96 * stderr) > 0.91
    assert np.median(stderr) > 0.3
    assert stderr.max() <= 2 / 1.96


@pytest.mark.parametrize("frequencies", [1, 2, 5, 16, 37, 100])
def test_any_number_of_frequencies_has_errors(frequencies):
    kernel = Fourier(3, frequencies=frequencies, scale=1.0, key_norm=1.0, query_norm=1.0)
    rows_ = unit_rows(500, 3)
    memory = discreet.build(rows_, rows_, epsilon=1, delta=1e-6, kernel=kernel)
    out, stderr = memory.attend(rows_[:20], stderr=True)
    assert np.all(np.isfinite(out))
    assert np.all((stderr > 0) & (stderr <= 2 / 1.96))


def test_silence_over_no_rows_is_certain_of_nothing_and_still_finite():
    from discreet.testing import Silent

    memory = discreet.build(
        np.zeros((0, 3)), np.zeros((0, 2)), epsilon=1, delta=1e-6, scale=4.0, entropy=Silent()
    )
    out, stderr = memory.attend(unit_rows(5, 3), stderr=True)
    assert np.array_equal(out, np.zeros((5, 2)))
    assert np.all(np.isfinite(stderr))
