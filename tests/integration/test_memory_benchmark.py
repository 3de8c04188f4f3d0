"""The benchmark's parts run, refuse wrong states, and a build stays within its memory."""

import pathlib

import numpy as np
import pytest
import torch

import benchmarks


@pytest.fixture(scope="module")
def benchmark():
    return benchmarks.script("memory")


@pytest.mark.slow
def test_file_sizes_do_not_depend_on_the_number_of_rows(benchmark):
    few, many = benchmark.answers([100, 2_000])
    sizes = [name for name in few if name.endswith("file")]
    assert len(sizes) == 2
    for name in sizes:
        assert few[name] == many[name]


def test_builds_are_compared_only_if_they_add_up_the_same(benchmark, monkeypatch):
    [row] = benchmark.builds([3_000])
    assert all(row[name] > 0 for name in benchmark.KERNELS)
    honest = benchmark.plain_build
    monkeypatch.setattr(benchmark, "plain_build", lambda *args: honest(*args) * 1.05)
    with pytest.raises(SystemExit, match="no ratio"):
        benchmark.builds([3_000])


@pytest.mark.slow
def test_kernels_of_other_sizes_are_compared(benchmark):
    found = benchmark.other_kernels(2_000)
    assert len(found) == 4
    assert all(row["stderr"] > 0.5 for row in found.values())


@pytest.mark.slow
@pytest.mark.skipif(not pathlib.Path("/proc/self/status").exists(), reason="needs Linux")
def test_a_build_from_files_takes_its_inputs_and_less_than_512_mb(benchmark):
    count = 60_000
    for scale in benchmark.KERNELS.values():
        assert benchmark.peak_bytes(count, scale) < count * 64 * 4 * 2 + 512e6


def test_the_raw_rows_are_attended_by_the_same_formula(benchmark):
    """What `attend` is compared with is attention, not something faster."""
    keys, values, queries = (torch.from_numpy(benchmark.rows(50, seed)) for seed in range(3))
    plain = benchmark.scaled_dot_product_attention(
        queries[None, None], keys[None, None], values[None, None]
    )
    weights = np.exp(queries.numpy() @ keys.numpy().T / 8)
    exact = weights @ values.numpy() / weights.sum(1, keepdims=True)
    np.testing.assert_allclose(plain[0, 0].numpy(), exact, atol=1e-5)
