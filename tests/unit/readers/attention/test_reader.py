"""The reader is pure: torch compiles, exports, maps and differentiates it."""

import numpy as np
import pytest
import torch
from affine import Affine
from data import unit_rows
from map_contract import landmarks

import discreet
from discreet.features import registry
from discreet.features.fourier import Fourier
from discreet.features.minimax import Minimax
from discreet.features.taylor import Taylor

BOUNDS = {"scale": 1.5, "key_norm": 1.0, "query_norm": 2.0}
KERNELS = {
    "fourier": Fourier(6, frequencies=256, **BOUNDS),
    "minimax": Minimax(6, degree=3, **BOUNDS),
    "taylor": Taylor(6, degree=2, **BOUNDS),
    "landmarks": landmarks(6, **BOUNDS),
    "affine": Affine(6, **BOUNDS),
    "constant": Taylor(6, degree=0, **BOUNDS),
}
HEADS = 2
# Of all lengths: none, inside, on the bound, outside, far outside.
QUERIES = unit_rows(3, HEADS, 5, 6, seed=4) * np.array([0.0, 0.5, 2.0, 3.0, 1e12])[:, None]


@pytest.fixture(params=KERNELS)
def memory(request, monkeypatch):
    monkeypatch.setattr(registry, "KINDS", (*registry.KINDS, Affine))
    keys, values = unit_rows(HEADS, 400, 6), unit_rows(HEADS, 400, 3, seed=1)
    return discreet.build(
        keys, values, epsilon=1.0, delta=1e-6, kernel=KERNELS[request.param], value_norm=0.7
    )


class Attention(torch.nn.Module):
    """What anybody would write around a reader."""

    def __init__(self, reader, dtype):
        super().__init__()
        self.reader = reader
        for name, array in reader.arrays.items():
            tensor = torch.from_numpy(array)
            tensor = tensor.to(dtype) if tensor.is_floating_point() else tensor
            self.register_buffer(name, tensor)

    def forward(self, queries):
        return self.reader.attend(queries, dict(self.named_buffers()))


def module(memory, dtype=torch.float64):
    return Attention(memory.reader, dtype), torch.from_numpy(QUERIES).to(dtype)


@pytest.mark.parametrize(
    "dtype", [pytest.param(torch.float64, marks=pytest.mark.slow), torch.float32]
)
def test_it_compiles_as_one_graph_and_answers_like_numpy(memory, dtype):
    torch.compiler.reset()
    attention, queries = module(memory, dtype)
    compiled = torch.compile(attention, fullgraph=True, backend="aot_eager")
    tolerance = 1e-6 if dtype is torch.float64 else 2e-4
    np.testing.assert_allclose(compiled(queries), memory.attend(QUERIES), atol=tolerance)


class Errors(Attention):
    """The same, with standard errors."""

    def forward(self, rows):
        return self.reader.answers_with_stderr(rows, dict(self.named_buffers()))[1]


@pytest.mark.slow
def test_standard_errors_compile_too(memory):
    torch.compiler.reset()
    rows = np.ascontiguousarray(QUERIES[0])
    compiled = torch.compile(
        Errors(memory.reader, torch.float64), fullgraph=True, backend="aot_eager"
    )
    expected = memory.attend(rows, stderr=True)[1]
    np.testing.assert_allclose(compiled(torch.from_numpy(rows)), expected, rtol=1e-6)


def test_it_is_exported_and_answers_like_numpy(memory):
    attention, queries = module(memory)
    program = torch.export.export(attention, (queries,))
    np.testing.assert_allclose(program.module()(queries), memory.attend(QUERIES), atol=1e-6)


def test_it_is_mapped_over_a_batch(memory):
    attention, queries = module(memory)
    mapped = torch.func.vmap(attention)(queries)
    np.testing.assert_allclose(mapped, memory.attend(QUERIES), atol=1e-12)


def test_it_runs_on_meta_tensors(memory):
    attention, queries = module(memory)
    out = attention.to("meta")(queries.to("meta"))
    assert out.shape == (3, HEADS, 5, 3)
    assert out.device.type == "meta"


def test_it_is_differentiated_by_function(memory):
    attention, queries = module(memory)
    gradients = torch.func.grad(lambda some: attention(some).sum())(queries)
    assert torch.isfinite(gradients).all()


def test_it_keeps_nothing_and_changes_nothing(memory):
    reader = memory.reader
    before = {name: array.copy() for name, array in reader.arrays.items()}
    facts = dict(vars(reader))
    first = reader.attend(QUERIES, reader.arrays)
    assert np.array_equal(reader.attend(QUERIES, reader.arrays), first)
    assert vars(reader) == facts
    assert all(np.array_equal(reader.arrays[name], before[name]) for name in before)
    np.testing.assert_array_equal(first, memory.attend(QUERIES))


def test_half_precision_in_and_out_is_computed_in_the_precision_of_the_arrays(memory):
    attention, queries = module(memory, torch.float32)
    out = attention(queries.clamp(-1e4, 1e4).bfloat16())
    assert out.dtype == torch.bfloat16


def test_huge_queries_are_answered_as_their_directions(memory):
    direction = unit_rows(HEADS, 4, 6, seed=7)
    near = memory.attend(direction * 2.0)
    for length in (3.0, 1e30, 1e200, 1e307):
        np.testing.assert_allclose(memory.attend(direction * length), near, atol=1e-12)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the compiler's own
def test_the_default_compiler_agrees(memory):
    torch.compiler.reset()
    attention, queries = module(memory)
    compiled = torch.compile(attention, fullgraph=True)
    np.testing.assert_allclose(compiled(queries), memory.attend(QUERIES), atol=1e-6)
