"""One suite for every feature map: what the memory's proof relies on, and what answers rely on."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
import torch
from data import unit_rows
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from discreet import InvalidInput
from discreet.kernels import FEATURE_RADIUS, Fourier, Minimax, Taylor

# Bounds that differ from each other and from one, so that a forgotten factor shows.
BOUNDS = {"scale": 0.7, "key_norm": 3.0, "query_norm": 0.4}

UNIT = {"scale": 1.0, "key_norm": 1.0, "query_norm": 1.0}
KERNELS = {
    "taylor": Taylor(5, degree=3, **BOUNDS),
    "taylor of odd degree that is not positive": Taylor(
        2, degree=1, scale=4.0, key_norm=1.0, query_norm=1.0
    ),
    "constant": Taylor(3, degree=0, **BOUNDS),
    "minimax": Minimax(5, degree=2, **BOUNDS),
    "minimax with eps_s": Minimax(3, eps_s=0.001, **BOUNDS),
    "fourier": Fourier(5, frequencies=64, **BOUNDS),
    "positive, with a negative coefficient": Minimax(
        5, degree=3, stored=(1.0, 0.8, 0.0, -0.7), **UNIT
    ),
    "negative in the middle": Minimax(5, degree=2, stored=(1.0, -0.9, 0.3), **UNIT),
    "barely positive": Taylor(5, degree=1, **UNIT | {"scale": 1 - 1e-9}),
    "fourier, not a square": Fourier(7, frequencies=37, **BOUNDS),
    "fourier in one dimension": Fourier(1, frequencies=3, **BOUNDS),
}


@pytest.fixture(params=KERNELS.values(), ids=KERNELS, scope="module")
def kernel(request):
    return request.param


def sized_keys(kernel, count=200, seed=0):
    """Keys of all lengths: inside, on and outside the bound."""
    rng = np.random.default_rng(seed)
    lengths = kernel.key_norm * rng.choice([0, 1e-9, 0.5, 1, 1, 1.0000001, 7, 1e30], (count, 1))
    return unit_rows(count, kernel.dim, seed=seed) * lengths


def query_features(kernel, queries):
    """φ(q), in the order of the state's features."""
    clipped, squared = kernel.clip_queries(queries)
    growth = np.exp(squared * kernel.largest_logit / 2) if kernel.grows else 1.0
    return kernel.read(clipped[None], everything(kernel))[0] * growth


def everything(kernel):
    """The readouts of a state that gives back each feature."""
    return kernel.readouts(np.eye(kernel.features)[None])


def key_features(kernel, keys):
    mapped = kernel.key_features(keys)
    weights = 1.0 if mapped.weights is None else mapped.weights[:, None]
    return mapped.features * weights / kernel.unit


def test_integer_features_are_integers_within_the_radius(kernel):
    features = kernel.key_features(sized_keys(kernel)).features
    exact = [[int(value) for value in row] for row in features]
    assert all(int(value) == value for value in features.ravel())
    norms = [sum(value**2 for value in row) for row in exact]
    assert max(norms) <= FEATURE_RADIUS**2
    assert max(norms) >= 0.98 * FEATURE_RADIUS**2 or kernel.features < 8
    assert np.abs(features).max() <= kernel.entry_bound


@given(data=st.data())
def test_no_key_exceeds_the_radius(kernel, data):
    keys = data.draw(
        hnp.arrays(
            np.float64, (3, kernel.dim), elements=st.floats(allow_nan=False, allow_infinity=False)
        )
    )
    mapped = kernel.key_features(keys)
    assert all(sum(int(v) ** 2 for v in row) <= FEATURE_RADIUS**2 for row in mapped.features)
    if mapped.weights is not None:
        assert np.all((mapped.weights >= 0) & (mapped.weights <= 1))


def test_a_row_has_the_same_features_alone_in_any_batch_and_at_any_position(kernel):
    keys = sized_keys(kernel, 300)
    together = kernel.key_features(keys)
    order = np.random.default_rng(1).permutation(300)
    buffer = kernel.feature_buffer(400)
    shuffled = kernel.key_features(keys[order], out=buffer)
    for row in range(0, 300, 7):
        alone = kernel.key_features(keys[row : row + 1])
        here = int(np.flatnonzero(order == row)[0])
        assert np.array_equal(alone.features[0], together.features[row])
        assert np.array_equal(alone.features[0], shuffled.features[here])
        if alone.weights is not None:
            assert alone.weights[0] == together.weights[row] == shuffled.weights[here]


def test_a_row_has_the_same_features_in_any_memory_order(kernel):
    keys = sized_keys(kernel, 50)
    plain = kernel.key_features(keys)
    for other in (np.asfortranarray(keys), np.repeat(keys, 2, axis=0)[::2], keys[::-1][::-1]):
        assert np.array_equal(kernel.key_features(other).features, plain.features)


def test_inner_products_approximate_exp_within_the_error(kernel):
    keys = unit_rows(60, kernel.dim, seed=1) * kernel.key_norm
    keys[::3] *= 0.3
    queries = unit_rows(50, kernel.dim, seed=2) * kernel.query_norm
    queries[::3] *= 0.2
    weights = query_features(kernel, queries) @ key_features(kernel, keys).T
    truth = np.exp(kernel.scale * queries @ keys.T)
    largest = math.exp(kernel.largest_logit)
    if kernel.kind == "fourier":
        assert np.sqrt(np.mean((weights - truth) ** 2)) <= 1.5 * kernel.error * largest
    elif math.isfinite(kernel.error):
        rounding = largest * math.sqrt(kernel.features) / FEATURE_RADIUS
        assert np.all(np.abs(weights - truth) <= kernel.error * truth + rounding)


def test_query_norms_are_those_of_the_features_and_the_bound_is_reached(kernel):
    queries = unit_rows(20, kernel.dim, seed=3) * kernel.query_norm
    queries[::2] *= 0.4
    features = query_features(kernel, queries)
    _, squared = kernel.clip_queries(queries)
    np.testing.assert_allclose(
        np.linalg.norm(features, axis=1), kernel.query_norms(squared)[:, 0], rtol=1e-12
    )
    assert kernel.query_norms(np.ones((1, 1)))[0, 0] == pytest.approx(kernel.bound, rel=1e-11)


def test_keys_and_queries_are_balanced(kernel):
    """The longest key has features as long as the longest query, whatever the two bounds are."""
    keys = unit_rows(50, kernel.dim) * kernel.key_norm
    longest = np.linalg.norm(key_features(kernel, keys), axis=1).max()
    assert longest == pytest.approx(kernel.bound, rel=0.05)


def test_long_queries_are_clipped(kernel):
    queries = unit_rows(5, kernel.dim) * kernel.query_norm
    inside, _ = kernel.clip_queries(queries)
    for factor in (1.5, 1e30, 1e160, 1e300):
        clipped, squared = kernel.clip_queries(queries * factor)
        np.testing.assert_allclose(clipped, inside, rtol=1e-12)
        np.testing.assert_allclose(squared, 1.0)
    with pytest.raises(InvalidInput, match="queries"):
        kernel.clip_queries(queries * np.nan)


def test_torch_answers_like_numpy(kernel):
    queries = unit_rows(9, kernel.dim) * kernel.query_norm * 1.3
    clipped, squared = kernel.clip_queries(torch.from_numpy(queries))
    theirs = kernel.read(clipped[None], [torch.from_numpy(part) for part in everything(kernel)])
    ours = kernel.read(kernel.clip_queries(queries)[0][None], everything(kernel))
    np.testing.assert_allclose(theirs.numpy(), ours, rtol=1e-12, atol=1e-14)
    assert theirs.dtype == torch.float64
    np.testing.assert_allclose(
        kernel.query_norms(squared).numpy(), kernel.query_norms(squared.numpy()), rtol=1e-12
    )


def test_the_inner_product_of_two_keys_is_at_least_what_is_claimed(kernel):
    keys = unit_rows(200, kernel.dim, seed=5) * kernel.key_norm
    keys = np.concatenate([keys, -keys])  # opposite keys have the least
    features = kernel.key_features(keys).features
    assert (features @ features.T).min() >= kernel.least_inner


def test_kernels_with_the_same_settings_are_equal_and_pickle(kernel):
    again = pickle.loads(pickle.dumps(kernel))
    assert again == kernel
    keys = sized_keys(kernel, 5)
    assert np.array_equal(again.key_features(keys).features, kernel.key_features(keys).features)


@pytest.mark.parametrize("name", ["scale", "key_norm", "query_norm"])
@pytest.mark.parametrize("bad", [0, -1.0, math.nan, math.inf, "1", None])
def test_bad_bounds_are_named(name, bad):
    for kind, extra in ((Taylor, {"degree": 2}), (Minimax, {"degree": 2}), (Fourier, {})):
        with pytest.raises(InvalidInput, match=name):
            kind(3, **{**BOUNDS, name: bad}, **extra)


def test_bounds_beyond_floating_point_are_refused():
    for name, value in (("key_norm", 1e-31), ("key_norm", 1e-35), ("scale", 1e-20)):
        kernel = Fourier(2, **{"scale": 1.0, "key_norm": 1.0, "query_norm": 1.0, name: value / 1})
        with pytest.raises(InvalidInput, match=name):
            kernel.check_integers()


@pytest.mark.parametrize("norm", [1e-29, 1e-9, 1.0, 1e9, 1e29])
def test_bounds_of_any_size_work(norm):
    for kernel in (
        Fourier(3, frequencies=16, scale=1.0, key_norm=norm, query_norm=1 / norm),
        Minimax(3, degree=3, scale=1.0, key_norm=norm, query_norm=1 / norm),
    ):
        keys = unit_rows(30, 3) * norm
        queries = unit_rows(5, 3) / norm
        weights = query_features(kernel, queries) @ key_features(kernel, keys).T
        same = Fourier if kernel.kind == "fourier" else Minimax
        options = {"frequencies": 16} if same is Fourier else {"degree": 3}
        unit = same(3, **options, scale=1.0, key_norm=1.0, query_norm=1.0)
        plain = query_features(unit, unit_rows(5, 3)) @ key_features(unit, unit_rows(30, 3)).T
        np.testing.assert_allclose(weights, plain, atol=2e-3)


def test_the_bound_on_a_polynomial_follows_its_formula():
    kernel = KERNELS["minimax"]
    t = Fraction(kernel.largest_logit)
    squared = sum(abs(Fraction(c)) * t**j for j, c in enumerate(kernel.coefficients))
    assert kernel.bound == pytest.approx(math.sqrt(squared), rel=1e-11)
    assert kernel.bound**2 >= squared


@pytest.mark.parametrize(("t", "degree"), [(1e-9, 60), (1e-5, 50), (1e-4, 60), (1e-9, 40)])
def test_degrees_whose_weights_are_not_finite_are_refused(t, degree):
    kernel = Minimax(2, degree=degree, scale=t, key_norm=1.0, query_norm=1.0)
    with pytest.raises(InvalidInput, match="degree"):
        kernel.check_integers()


@pytest.mark.parametrize("degree", [100, 170])
def test_high_degrees_stay_within_the_radius(degree):
    kernel = Taylor(1, degree=degree, scale=50.0, key_norm=1.0, query_norm=1.0)
    features = kernel.key_features(np.array([[1.0], [-1.0], [0.3]])).features
    assert np.all(np.sum(features**2, axis=1) <= FEATURE_RADIUS**2)
    with pytest.raises(InvalidInput, match="degree"):
        Taylor(1, degree=171, scale=1.0, key_norm=1.0, query_norm=1.0)


def test_constants_made_in_inference_mode_are_not_used_outside(kernel):
    fresh = pickle.loads(pickle.dumps(kernel))
    if fresh.features == 1:
        return  # a constant has no gradient
    queries = torch.from_numpy(unit_rows(3, kernel.dim) * kernel.query_norm * 2)
    readouts = [torch.from_numpy(part) for part in everything(fresh)]
    with torch.inference_mode():
        fresh.read(fresh.clip_queries(queries)[0][None], readouts)
    queries.requires_grad_()
    clipped, _ = fresh.clip_queries(queries)
    fresh.read(clipped[None], readouts).sum().backward()
    assert torch.isfinite(queries.grad).all()
