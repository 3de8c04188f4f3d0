import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from discreet import InvalidInput
from discreet.kernels import Taylor

BOX = Taylor.on_box(3, upper=1.5, eps_s=0.05)


def naive(kernel, row):
    """P(x) from its formula, one monomial at a time, in the kernel's own order."""

    def monomial(alpha):
        power = math.prod(float(x) ** int(a) for x, a in zip(row, alpha, strict=True))
        return power * math.sqrt(
            kernel.scale ** int(sum(alpha)) / math.prod(map(math.factorial, alpha))
        )

    return np.array([monomial(alpha) for alpha in kernel.exponents])


def test_features_are_all_monomials_once():
    assert len(BOX.exponents) == BOX.features == math.comb(3 + BOX.degree, 3)
    assert len(np.unique(BOX.exponents, axis=0)) == BOX.features
    assert BOX.exponents.sum(axis=1).max() == BOX.degree


@given(row=hnp.arrays(np.float64, 3, elements=st.floats(-2, 2)))
def test_features_follow_their_formula(row):
    np.testing.assert_allclose(BOX(row), naive(BOX, row), rtol=1e-12, atol=1e-300)


@given(rows=hnp.arrays(np.float64, (2, 3), elements=st.floats(0, 1.5)))
def test_the_inner_product_is_the_taylor_polynomial(rows):
    x, y = BOX(rows)
    logit = rows[0] @ rows[1] / 3
    polynomial = sum(logit**k / math.factorial(k) for k in range(BOX.degree + 1))
    assert x @ y == pytest.approx(polynomial, rel=1e-12)


@pytest.mark.parametrize("eps_s", [0.3, 0.1, 0.01, 1e-4])
@pytest.mark.parametrize("upper", [0.5, 1.0, 2.0])
def test_the_degree_is_the_smallest_that_is_certified(upper, eps_s):
    kernel = Taylor.on_box(2, upper=upper, eps_s=eps_s)
    logits = np.linspace(0, upper**2, 200)

    def worst(degree):
        series = sum(logits**k / math.factorial(k) for k in range(degree + 1))
        return np.max((np.exp(logits) - series) / np.minimum(series, np.exp(logits)))

    assert worst(kernel.degree) - 1e-14 <= kernel.error <= eps_s
    assert kernel.error == pytest.approx(worst(kernel.degree), rel=1e-6)
    assert kernel.degree == 0 or worst(kernel.degree - 1) > eps_s


@pytest.mark.parametrize("degree", range(1, 9))
def test_signed_logits_are_certified_on_the_whole_interval(degree):
    kernel = Taylor(2, degree=degree, scale=1.0, key_norm=1.0, query_norm=1.0)
    logits = np.linspace(-1, 1, 401)
    series = sum(logits**k / math.factorial(k) for k in range(degree + 1))
    if series.min() <= 1e-12:
        assert kernel.error == math.inf
    else:
        worst = np.max(np.abs(series - np.exp(logits)) / np.minimum(series, np.exp(logits)))
        assert worst - 1e-14 <= kernel.error <= worst * (1 + 1e-6)


def test_a_sign_costs_accuracy():
    signed = Taylor(2, degree=2, scale=1.0, key_norm=1.0, query_norm=1.0)
    box = Taylor(2, degree=2, scale=1.0, key_norm=1.0, query_norm=1.0, nonnegative=True)
    assert signed.error == pytest.approx(0.359, abs=0.001)  # at -1: 0.5 against e^-1
    assert box.error == pytest.approx(0.0873, abs=0.0001)


def test_the_bounds_are_the_largest_features():
    bounds = BOX.feature_bounds(1.5)
    rng = np.random.default_rng(0)
    assert np.all(BOX(rng.uniform(0, 1.5, (500, 3))) <= bounds)
    np.testing.assert_allclose(bounds, naive(BOX, [1.5] * 3), rtol=1e-12)


@pytest.mark.parametrize("kind", ["numpy64", "numpy32", "torch64", "torch32"])
def test_a_row_is_the_same_alone_in_any_batch_and_at_any_position(kind):
    rows = np.random.default_rng(1).uniform(0, 1.5, (1000, 3))
    rows = rows.astype(np.float64 if kind.endswith("64") else np.float32)
    convert = torch.from_numpy if kind.startswith("torch") else np.asarray
    together = np.asarray(BOX(convert(rows)))
    assert together.dtype == rows.dtype
    order = np.random.default_rng(2).permutation(1000)
    assert np.array_equal(np.asarray(BOX(convert(rows[order]))), together[order])
    for index in (0, 1, 7, 500, 999):
        assert np.array_equal(np.asarray(BOX(convert(rows[index : index + 1])))[0], together[index])
        assert np.array_equal(np.asarray(BOX(convert(rows[index]))), together[index])


def test_torch_and_numpy_agree_to_the_bit_and_torch_stays_torch():
    rows = np.random.default_rng(1).uniform(0, 1.5, (50, 4, 3))
    tensor = torch.from_numpy(rows).requires_grad_()
    features = BOX(tensor)
    assert isinstance(features, torch.Tensor)
    assert features.shape == (50, 4, BOX.features)
    assert np.array_equal(features.detach().numpy(), BOX(rows))
    features.sum().backward()
    assert torch.isfinite(tensor.grad).all()


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"dim": 0}, "dim="),
        ({"dim": 2.5}, "dim="),
        ({"scale": -1.0}, "scale="),
        ({"key_norm": 0.0}, "key_norm="),
        ({"query_norm": math.inf}, "query_norm="),
        ({"scale": 1e3}, "scale \\* key_norm"),
        ({"eps_s": 0.0}, "eps_s="),
        ({"eps_s": None}, "degree, eps_s="),
        ({"degree": 3}, "degree, eps_s="),
        ({"eps_s": None, "degree": -1}, "degree="),
    ],
)
def test_bad_options_are_named(options, name):
    good = {"dim": 3, "eps_s": 0.1, "scale": 1.0, "key_norm": 1.0, "query_norm": 1.0}
    with pytest.raises(InvalidInput, match=name):
        Taylor(**good | options)
    with pytest.raises(InvalidInput, match=r"rows\.shape="):
        BOX(np.ones((2, 4)))
    with pytest.raises(InvalidInput, match=r"rows\.dtype="):
        BOX(np.ones((2, 3), dtype=np.int64))


def test_messages_do_not_tell_how_many_rows_there_are():
    for rows in (np.ones((7311, 4)), np.ones((2, 7311, 4)), np.float64(1.0)):
        with pytest.raises(InvalidInput, match=r"rows\.shape=.* to be \(\.\.\., 3\)") as caught:
            BOX(rows)
        assert "7311" not in str(caught.value)
