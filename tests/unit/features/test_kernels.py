"""Every kind of kernel passes the contract; what follows is about single kinds."""

import math
from fractions import Fraction

import numpy as np
import pytest
from data import unit_rows
from map_contract import KernelContract, key_features, query_features

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


class TestContract(KernelContract):
    """Of every kind, with parameters at the edges."""


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
