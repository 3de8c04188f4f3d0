import copy
import math
import pickle

import numpy as np
import pytest
import torch
from data import unit_rows
from map_contract import landmarks

import discreet
from discreet import InvalidInput
from discreet.kernels import Fourier, Minimax, Taylor
from discreet.readers.attention import comparison as oracle
from discreet.testing import Seeded, Silent

KEYS, VALUES = unit_rows(800, 6), unit_rows(800, 3, seed=1)
QUERIES = unit_rows(20, 6, seed=2)
SPEND = {"epsilon": 1.0, "delta": 1e-6}


def silent(keys=KEYS, values=VALUES, **options):
    return discreet.build(keys, values, **{**SPEND, "entropy": Silent(), "scale": 1.0} | options)


BOUNDS = {"scale": 1.0, "key_norm": 1.0, "query_norm": 1.0}
KERNELS = {
    "auto": "auto",
    "fourier": Fourier(6, frequencies=4096, **BOUNDS),
    "taylor": Taylor(6, degree=6, **BOUNDS),
    "minimax": Minimax(6, degree=5, **BOUNDS),
    "landmarks": landmarks(6, rank=120, **BOUNDS),
}


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_without_noise_it_is_attention_up_to_the_kernel(kernel):
    memory = silent(kernel=kernel)
    num, den = memory.sums(QUERIES)
    true_num, true_den = oracle.attention_sums(QUERIES, KEYS, VALUES, scale=1.0)
    tolerance = 0.05 if memory.kernel.error > 1e-3 else 1e-3
    np.testing.assert_allclose(den, true_den, rtol=tolerance)
    np.testing.assert_allclose(num, true_num, atol=tolerance * true_den.max())
    exact = oracle.attention(QUERIES, KEYS, VALUES, scale=1.0)
    np.testing.assert_allclose(memory.attend(QUERIES), exact, atol=tolerance)
    assert memory.attend(QUERIES) == pytest.approx(num / den[:, None])


@pytest.mark.parametrize("tau", [0.05, 0.3, 1.0, 3.0])
@pytest.mark.parametrize("value_norm", [0.5, 1.0, 20.0])
def test_bounds_and_tau_do_not_change_noiseless_answers(tau, value_norm):
    memory = silent(
        values=VALUES * value_norm,
        value_norm=value_norm,
        tau=tau * value_norm,
        kernel=KERNELS["minimax"],
    )
    exact = oracle.attention(QUERIES, KEYS, VALUES * value_norm, scale=1.0)
    np.testing.assert_allclose(memory.attend(QUERIES), exact, atol=1e-3 * value_norm)


@pytest.mark.parametrize("key_norm", [0.01, 1.0, 50.0])
@pytest.mark.parametrize("query_norm", [0.02, 1.0, 30.0])
def test_keys_and_queries_of_other_lengths_are_balanced(key_norm, query_norm):
    scale = 1.2 / key_norm / query_norm
    memory = silent(
        KEYS * key_norm, key_norm=key_norm, query_norm=query_norm, scale=scale, eps_s=1e-4
    )
    plain = oracle.attention(QUERIES, KEYS, VALUES, scale=1.2)
    np.testing.assert_allclose(memory.attend(QUERIES * query_norm), plain, atol=2e-3)


def test_longer_rows_and_queries_are_clipped_to_the_public_bounds():
    memory = silent(KEYS * 5, VALUES * 7)
    np.testing.assert_allclose(memory.attend(QUERIES * 9), silent().attend(QUERIES), atol=1e-6)


@pytest.mark.parametrize("heads", [(3,), (2, 2)])
def test_heads_are_leading_axes(heads):
    keys, values = unit_rows(*heads, 300, 4), unit_rows(*heads, 300, 5, seed=1)
    queries = unit_rows(7, *heads, 6, 4, seed=2)
    memory = silent(keys, values, kernel="minimax", eps_s=1e-4)
    out = memory.attend(queries)
    assert out.shape == (7, *heads, 6, 5)
    np.testing.assert_allclose(out, oracle.attention(queries, keys, values, scale=1.0), atol=1e-3)
    num, den = memory.sums(queries)
    assert num.shape == out.shape
    assert den.shape == out.shape[:-1]
    one = memory.attend(queries[0])
    np.testing.assert_allclose(one, out[0], rtol=1e-12)
    with pytest.raises(InvalidInput, match=r"queries\.shape"):
        memory.attend(queries[:, 0])


def test_queries_may_have_any_leading_axes():
    memory = silent()
    flat = memory.attend(QUERIES)
    assert memory.attend(QUERIES[0]).shape == (3,)
    np.testing.assert_allclose(memory.attend(QUERIES.reshape(2, 5, 2, 6)).reshape(20, 3), flat)
    assert memory.attend(np.zeros((0, 6))).shape == (0, 3)
    np.testing.assert_allclose(memory.attend(QUERIES.tolist()), flat)
    assert memory.attend(np.zeros((2, 6), dtype=int)).dtype == np.float64


def test_many_queries_are_answered_in_pieces(monkeypatch):
    memory = silent()
    whole = memory.attend(QUERIES)
    monkeypatch.setattr("discreet.sums.asking._FEATURES_AT_ONCE", 100)
    np.testing.assert_allclose(memory.attend(QUERIES), whole, rtol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_torch_in_torch_out(dtype):
    memory = silent(kernel="fourier")
    queries = torch.from_numpy(QUERIES).to(dtype)
    out, error = memory.attend(queries, stderr=True)
    assert out.dtype == error.dtype == dtype
    assert out.device == queries.device
    exact = memory.attend(QUERIES)
    np.testing.assert_allclose(out.double().numpy(), exact, atol=float(torch.finfo(dtype).eps) * 20)


def test_float32_stays_float32_in_numpy():
    memory = silent()
    assert memory.attend(QUERIES.astype(np.float32)).dtype == np.float32
    assert memory.attend(QUERIES.astype(np.float16)).dtype == np.float16


@pytest.mark.parametrize("kernel", ["minimax", "fourier"])
@pytest.mark.parametrize("length", [0.0, 0.5, 1.7])
def test_it_is_differentiable_with_respect_to_queries(kernel, length):
    memory = discreet.build(KEYS, VALUES, **SPEND, scale=1.0, kernel=kernel, entropy=Seeded(1))
    queries = torch.from_numpy(QUERIES[:3] * length).requires_grad_()
    assert torch.autograd.gradcheck(memory.attend, (queries,), eps=1e-5, atol=1e-4)


def test_heads_are_differentiable():
    memory = silent(unit_rows(2, 50, 4), unit_rows(2, 50, 3))
    queries = torch.from_numpy(unit_rows(2, 2, 3, 4, seed=4)).requires_grad_()
    memory.attend(queries).sum().backward()
    assert torch.isfinite(queries.grad).all()


def test_the_standard_error_follows_its_formula():
    memory = discreet.build(KEYS, VALUES, **SPEND, scale=1.0, kernel="fourier", tau=0.4).plain
    num_err, den_err = memory.sums_stderr(QUERIES)
    sigma = discreet.accounting.gaussian_sigma(**SPEND)
    worst = sigma * math.exp(1.0) * math.hypot(1.0, 0.4)
    np.testing.assert_allclose(num_err, worst, rtol=2e-3)
    np.testing.assert_allclose(den_err, worst / 0.4, rtol=2e-3)
    short = memory.sums_stderr(QUERIES * 0.0)[0]
    np.testing.assert_allclose(short, worst * math.exp(-0.5), rtol=2e-3)
    out, err = memory.attend(QUERIES), memory.noise_stderr(QUERIES)
    _, den = memory.sums(QUERIES)
    clear = den > 5 * den_err
    assert clear.any()
    expected = num_err[:, None] / den[:, None] * np.sqrt(1 + (out / 0.4) ** 2)
    np.testing.assert_allclose(err[clear], expected[clear], rtol=1e-3)


def test_answers_stay_in_the_ball_of_values_whatever_the_noise():
    memory = discreet.build(KEYS[:2], VALUES[:2], epsilon=0.01, delta=1e-9, scale=1.0)
    out = memory.attend(QUERIES)
    assert np.all(np.linalg.norm(out, axis=1) <= 1 + 1e-12)
    assert np.all(np.isfinite(out))


@pytest.mark.parametrize("kernel", ["minimax", "fourier"])
def test_denominators_stay_within_what_n_rows_can_give(kernel):
    spend = {"epsilon": 0.05, "delta": 1e-9, "neighbours": "replace"}
    memory = discreet.build(KEYS, VALUES, **spend, scale=1.0, kernel=kernel, entropy=Seeded(1))
    _, den = memory.sums(QUERIES)
    assert memory.card.to_dict()["rows"] == 800
    assert (den < 800 * math.exp(-1)).any()  # the noise is large enough for the bounds to matter
    bounds = [memory.reader.arrays[name].item() for name in ("least", "most")]
    assert bounds == pytest.approx([800 * math.exp(-1), 800 * math.exp(1)], rel=1e-12)
    out, stderr = memory.attend(QUERIES), memory.noise_stderr(QUERIES)
    noise, _ = memory.sums_stderr(QUERIES)
    bounds[1] *= math.exp(memory.kernel.query_exponent)  # of Fourier's, the upper is looser
    numerator = (noise / np.clip(den, *bounds))[:, None]
    true = np.maximum(out**2 - numerator**2, 0)  # an answer's square, less that of its noise
    expected = numerator * np.sqrt(1 + true / memory.released.layout.real_tau**2)
    np.testing.assert_allclose(stderr, expected, rtol=1e-9)


def test_no_rows_at_all_is_an_answer():
    memory = discreet.build(np.zeros((0, 6)), np.zeros((0, 3)), **SPEND, scale=1.0)
    assert np.all(np.isfinite(memory.attend(QUERIES)))
    nothing = silent(np.zeros((0, 6)), np.zeros((0, 3)))
    assert np.array_equal(nothing.attend(QUERIES), np.zeros((20, 3)))


@pytest.mark.parametrize(
    "bad", [np.zeros((2, 5)), np.zeros(()), np.full((1, 6), np.nan), np.full((1, 6), np.inf)]
)
def test_bad_queries_are_refused(bad):
    with pytest.raises(InvalidInput, match="queries"):
        silent().attend(bad)
    with pytest.raises(InvalidInput, match="queries"):
        silent().attend(torch.from_numpy(bad))
    with pytest.raises(InvalidInput, match="queries"):
        silent().attend([["a"]])


def test_the_repr_says_what_it_is():
    assert repr(silent()).startswith("<Memory NOT PRIVATE")
    assert "NOT" not in repr(discreet.build(KEYS, VALUES, **SPEND, scale=1.0))


def test_sharp_logits_have_finite_answers_in_float32():
    memory = discreet.build(KEYS, VALUES, **SPEND, scale=95.0, kernel="fourier")
    out = memory.attend(QUERIES.astype(np.float32))
    assert np.all(np.isfinite(out))
    assert out.dtype == np.float32


def test_memories_and_kernels_can_be_copied():
    memory = silent()
    memory.attend(torch.from_numpy(QUERIES))
    for again in (copy.deepcopy(memory), pickle.loads(pickle.dumps(memory))):
        np.testing.assert_array_equal(again.attend(QUERIES), memory.attend(QUERIES))


def test_inference_mode_does_not_spoil_later_gradients():
    memory = discreet.build(KEYS, VALUES, **SPEND, scale=5.0)
    with torch.inference_mode():
        memory.attend(torch.from_numpy(QUERIES))
    queries = torch.from_numpy(QUERIES).requires_grad_()
    memory.attend(queries).sum().backward()
    assert torch.isfinite(queries.grad).all()


@pytest.mark.parametrize("heads", [(), (2,), (2, 3)])
@pytest.mark.parametrize("kernel", ["fourier", "minimax"])
def test_differences_are_answers_less_the_answer_at_the_origin(heads, kernel):
    keys, values = unit_rows(*heads, 300, 4), unit_rows(*heads, 300, 3, seed=1)
    memory = discreet.build(keys, values, epsilon=5.0, delta=1e-6, scale=1.0, kernel=kernel)
    queries = unit_rows(*heads, 5, 4, seed=2)
    apart, stderr = memory.differences(queries)
    origin = memory.attend(np.zeros((*heads, 1, 4)))
    np.testing.assert_allclose(apart, memory.attend(queries) - origin, atol=1e-12)
    assert apart.shape == stderr.shape == (*heads, 5, 3)
    assert np.all(stderr > 0)
    there, error = memory.differences(np.zeros((*heads, 5, 4)))
    np.testing.assert_allclose(there, 0, atol=1e-12)
    assert memory.kernel.kind == "minimax" or np.all(error < 1e-6)
    single, errors = memory.differences(queries.astype(np.float32))
    assert single.dtype == errors.dtype == np.float32
    np.testing.assert_allclose(errors, stderr, rtol=1e-2)
