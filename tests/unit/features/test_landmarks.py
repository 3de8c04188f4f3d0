"""Features from public rows: the contract of all kernels, and what is theirs alone."""

import math
import warnings

import numpy as np
import pytest
import torch
from data import unit_rows
from map_contract import KernelContract, key_features, query_features, wild_landmarks

import discreet
from discreet import InvalidInput
from discreet.features import registry
from discreet.features.base import FEATURE_RADIUS
from discreet.features.fourier import Fourier
from discreet.features.landmarks import Landmarks
from discreet.features.public_rows import PublicRows
from discreet.readers.attention import comparison as oracle
from discreet.testing import Silent

SMALLEST = np.iinfo(np.int64).min
BOUNDS = {"scale": 2.0, "key_norm": 1.0, "query_norm": 1.0}


@pytest.fixture(
    scope="module",
    params=[(3, 2.0, 1.0, 1.0, 300), (2, 0.5, 30.0, 1e-3, 40), (3, 3.0, 0.01, 7.0, 300)],
    ids=str,
)
def kernel(request):
    """Landmarks that span all there is: in few dimensions that is possible."""
    dim, logit, key_norm, query_norm, rank = request.param
    rows = unit_rows(900, dim, seed=8) * key_norm
    rows[::3] *= 0.5
    scale = logit / key_norm / query_norm
    return Landmarks(rows, rank=rank, scale=scale, key_norm=key_norm, query_norm=query_norm)


class TestLandmarks(KernelContract):
    reached = 1e-3
    rounding = 1e-12


def clustered(count, dim, *, seed=0, centres=6):
    """Rows of length one in a few clusters; all seeds have the same centres."""
    rng = np.random.default_rng(seed)
    middle = unit_rows(centres, dim, seed=99)[rng.integers(centres, size=count)]
    rows = middle + 0.5 * unit_rows(count, dim, seed=seed + 1)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def clusters():
    """A kernel of rows in clusters, in too many dimensions to span."""
    return Landmarks(clustered(1_200, 20), rank=150, **BOUNDS)


def test_a_row_has_the_same_features_alone_in_any_batch_and_at_any_position(clusters):
    keys = np.concatenate([clustered(300, 20, seed=5), unit_rows(200, 20, seed=6) * 3])
    whole = clusters.key_features(keys).features
    order = np.random.default_rng(0).permutation(len(keys))
    assert np.array_equal(clusters.key_features(keys[order]).features, whole[order])
    for at in (0, 63, 64, 299, 499):
        assert np.array_equal(clusters.key_features(keys[at : at + 1]).features[0], whole[at])
    odd = np.asfortranarray(keys)[::-1]
    assert np.array_equal(clusters.key_features(odd).features, whole[::-1])


def test_features_that_are_too_long_are_cut_to_the_bound_and_no_further():
    kernel = wild_landmarks(5, **BOUNDS)
    features = kernel.key_features(unit_rows(300, 5)).features
    norms = [sum(int(value) ** 2 for value in row) for row in features]
    assert max(norms) <= FEATURE_RADIUS**2
    assert min(norms) >= 0.999 * FEATURE_RADIUS**2


def test_exact_sensitivity_is_reached_by_a_landmark():
    """A key at a landmark of full length has features of the full norm."""
    rows = unit_rows(40, 12, seed=2)
    kernel = Landmarks(rows, rank=200, **BOUNDS | {"scale": 8.0})
    norms = np.sum(kernel.key_features(rows).features ** 2, axis=1)
    assert norms.max() <= FEATURE_RADIUS**2
    assert norms.max() >= 0.999 * FEATURE_RADIUS**2


def test_on_rows_like_the_public_ones_the_error_is_far_below_random_features(clusters):
    keys, queries = clustered(3_000, 20, seed=7), clustered(200, 20, seed=9)
    values = np.sign(keys[:, :4]) / 2
    exact = oracle.attention(queries, keys, values, scale=2.0)
    errors = []
    for kernel in (clusters, Fourier(20, frequencies=75, **BOUNDS)):
        memory = discreet.build(
            keys, values, epsilon=1.0, delta=1e-6, kernel=kernel, entropy=Silent()
        )
        errors.append(np.sqrt(np.mean((memory.attend(queries) - exact) ** 2)))
    assert errors[0] < errors[1] / 5


def test_the_certificate_holds_for_every_query_and_row(clusters):
    keys = np.concatenate([clustered(50, 20, seed=3), unit_rows(50, 20, seed=4)])
    weights = query_features(clusters, keys) @ key_features(clusters, keys).T
    off = np.abs(weights * math.exp(-2) - np.exp(2.0 * (keys @ keys.T - 1)))
    residuals = clusters.residuals(keys)
    rounding = 3e-4  # of tables and matrices
    assert np.all(off <= np.sqrt(np.outer(residuals, residuals) + rounding))
    assert np.all((residuals >= 0) & (residuals <= 1))


def test_rows_that_were_kept_back_tell_the_error_and_the_usual_residual(clusters):
    fresh = clustered(400, 20, seed=11)
    weights = query_features(clusters, fresh) @ key_features(clusters, fresh).T
    off = weights * math.exp(-2) - np.exp(2.0 * (fresh @ fresh.T - 1))
    apart = off[~np.eye(len(fresh), dtype=bool)]
    assert np.sqrt(np.mean(apart**2)) == pytest.approx(clusters.held_back_error, rel=0.15)
    assert np.mean(clusters.residuals(fresh) <= clusters.usual_residual) > 0.95


def test_queries_unlike_the_public_rows_are_noticed_and_others_are_not(clusters):
    keys = clustered(500, 20, seed=7)
    memory = discreet.build(keys, keys, epsilon=1.0, delta=1e-6, kernel=clusters)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, near = memory.attend(clustered(100, 20, seed=13), stderr=True)
        memory.attend(keys[0])
        memory.attend(np.zeros((0, 20)))
        memory.attend(torch.from_numpy(keys[:5]).requires_grad_())
    strangers = clustered(100, 20, seed=13)[:, ::-1]
    with pytest.warns(discreet.NotCoveredWarning, match="unlike the public rows"):
        _, far = memory.attend(strangers, stderr=True)
    with pytest.warns(discreet.NotCoveredWarning):
        memory.attend(strangers[0])
    assert np.median(far) > 2 * np.median(near)
    half = np.concatenate([keys[:60], strangers[:40]])
    memory.attend(half)  # most are known


def test_points_on_the_sphere_know_nothing_of_rows_that_are_alike():
    """Such landmarks know as little of one row as of another, so no residual is unusual."""
    kernel = Landmarks(unit_rows(1_000, 64), rank=300, **BOUNDS | {"scale": 5.0})
    alike = unit_rows(200, 64, seed=1) * 0.6 + unit_rows(1, 64, seed=2)
    alike /= np.linalg.norm(alike, axis=1, keepdims=True)
    assert np.mean(kernel.covers(alike)) > 0.9
    memory = discreet.build(alike, alike, epsilon=1.0, delta=1e-6, kernel=kernel)
    with pytest.warns(discreet.NotCoveredWarning):
        memory.attend(alike[:30])
    like = Landmarks(alike[:150], rank=100, **BOUNDS | {"scale": 5.0})
    memory = discreet.build(alike, alike, epsilon=1.0, delta=1e-6, kernel=like)
    memory.attend(alike[150:])


def test_queries_that_are_nearly_the_same_say_nothing_about_landmarks(clusters):
    keys = clustered(300, 20, seed=7)
    memory = discreet.build(keys, keys, epsilon=1.0, delta=1e-6, kernel=clusters)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same = memory.attend(np.tile(keys[:1], (20, 1)))
        near = memory.attend(keys[:1] + 0.01 * unit_rows(20, 20))
    assert np.max(np.abs(near - same)) < 0.2


@pytest.mark.parametrize("rows", [8, 9, 30])
def test_few_public_rows_are_all_landmarks_but_for_those_that_are_kept_back(rows):
    kernel = Landmarks(unit_rows(rows, 4), **BOUNDS)
    assert kernel.features == 1 + rows - rows // 4
    assert kernel.public_sample.shape == (rows // 4, 4)
    memory = discreet.build(
        unit_rows(20, 4), unit_rows(20, 2), epsilon=1.0, delta=1e-6, kernel=kernel
    )
    out, stderr = memory.attend(unit_rows(5, 4), stderr=True)
    assert np.all(np.isfinite(out))
    assert np.all(np.isfinite(stderr))


def test_rows_that_repeat_and_rows_of_no_length_are_taken():
    rows = np.concatenate([np.zeros((10, 4)), np.tile(unit_rows(2, 4), (20, 1))])
    kernel = Landmarks(rows, **BOUNDS)
    features = kernel.key_features(unit_rows(10, 4)).features
    assert np.all(np.isfinite(features))
    assert np.sum(features**2, axis=1).max() <= FEATURE_RADIUS**2


def test_points_are_the_centres_of_clusters():
    centres = unit_rows(12, 6) * 5
    rng = np.random.default_rng(0)
    public = PublicRows(centres[rng.integers(12, size=2_000)] + 0.01 * rng.normal(size=(2_000, 6)))
    points = public.points(36)
    nearest = np.min(np.linalg.norm(points[:, None] - centres, axis=2), axis=0)
    assert np.all(nearest < 0.1)
    again = PublicRows(public.rows)
    assert again == public
    assert np.array_equal(again.points(36), points)
    assert len(public.held_back) == 500
    assert len(PublicRows(unit_rows(40, 6)).held_back) == 10


@pytest.mark.parametrize("period", [2, 3, 4, 5, 8, 12, 100])
@pytest.mark.parametrize("sort", [False, True])
def test_rows_in_any_order_are_split_into_parts_that_are_like_the_whole(period, sort):
    kinds = np.arange(3_000) % period
    kinds = np.sort(kinds) if sort else kinds
    public = PublicRows(np.stack([kinds, np.arange(3_000)], axis=1))
    for part in (public.held_back, public.mixed[500:1_500]):
        shares = np.bincount(part[:, 0].astype(int), minlength=period) / len(part) * period
        assert np.all(np.abs(shares - 1) < 0.5)
    both = np.concatenate([public.held_back, public.points(2_990)])
    assert len(np.unique(both[:, 1])) == 3_000


@pytest.mark.parametrize(
    "rows",
    [
        np.ones(5),
        np.ones((7, 3)),
        np.ones((9, 0)),
        np.full((9, 3), np.nan),
        np.full((9, 3), 1e101),
        np.ones((2, 9, 3)),
        np.ones((9, 3), dtype=complex),
        [[1.0, 2.0], [1.0]] * 8,
        "abc",
    ],
    ids=lambda rows: str(np.shape(rows)) if isinstance(rows, np.ndarray) else str(type(rows)),
)
def test_public_rows_that_are_none_are_refused(rows):
    with pytest.raises(InvalidInput, match="public_rows"):
        Landmarks(rows, **BOUNDS)


@pytest.mark.parametrize("rank", [0, 1, 2_001, 1.5])
def test_a_rank_out_of_range_is_named(rank):
    with pytest.raises(InvalidInput, match="rank"):
        Landmarks(unit_rows(20, 3), rank=rank, **BOUNDS)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("matrix", lambda array: array * 0 + 2**23),
        ("landmarks", lambda array: array * 0 + 2**21),
        ("exponents", lambda array: array * 0 + 201),
        ("matrix", lambda array: array[:, :-1]),
        ("exponents", lambda array: array[:-1]),
        ("landmarks", lambda array: array[:, :-1]),
        ("kept", lambda array: array[:1]),
        ("kept", lambda array: array * 0 + 2**21),
        ("matrix", lambda array: array.astype(np.int64) * 0 + SMALLEST),
        ("landmarks", lambda array: array.astype(np.int64) * 0 + SMALLEST),
        ("exponents", lambda array: array.astype(np.int64) * 0 + SMALLEST),
        ("kept", lambda array: array.astype(np.int64) * 0 + SMALLEST),
        ("matrix", lambda array: array * np.nan),
        ("landmarks", lambda array: array.astype(complex)),
    ],
)
def test_stored_integers_that_would_not_be_exact_are_refused(clusters, name, change):
    arrays = clusters.arrays()
    arrays[name] = change(arrays[name])
    with pytest.raises(InvalidInput, match="exact"):
        registry.KERNELS.restore(clusters.parameters(), arrays)


@pytest.mark.parametrize("extra", ["_table", "_tops", "_float_matrix", "_step", "error", "rank"])
def test_a_file_brings_these_numbers_and_no_others(clusters, extra):
    """What is computed from checked integers cannot be brought along."""
    with pytest.raises(InvalidInput, match="parameters"):
        registry.KERNELS.restore(
            {**clusters.parameters(), extra: [math.nan] * 4}, clusters.arrays()
        )
    few = {name: each for name, each in clusters.parameters().items() if name != "scale"}
    with pytest.raises(InvalidInput, match="parameters"):
        registry.KERNELS.restore(few, clusters.arrays())


@pytest.mark.parametrize(("scale", "norm"), [(40.0, 1.0), (30.0, 1.0), (4.0, 1e18), (4.0, 1e-25)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_standard_errors_are_numbers_at_the_edges_too(scale, norm, dtype):
    kernel = Landmarks(clustered(400, 8), rank=100, **BOUNDS | {"scale": scale})
    keys = clustered(500, 8, seed=3)
    options = {"epsilon": 1.0, "delta": 1e-6, "kernel": kernel, "value_norm": norm}
    memory = discreet.build(keys, np.sign(keys[:, :2]) * norm / 2, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", discreet.NotCoveredWarning)
        out, stderr = memory.attend(unit_rows(50, 8, seed=4).astype(dtype), stderr=True)
    assert np.all(np.isfinite(out))
    assert np.all((stderr > 0) & (stderr <= 2 * norm))


def test_torch_asks_in_all_its_ways(clusters):
    keys = clustered(200, 20, seed=7)
    memory = discreet.build(keys, keys[:, :3], epsilon=1.0, delta=1e-6, kernel=clusters)
    queries = torch.from_numpy(clustered(6, 20, seed=9))
    rough = memory.attend(queries.to(torch.bfloat16))
    assert rough.dtype == torch.bfloat16
    gradient = torch.func.grad(lambda one: memory.attend(one).sum())(queries[0])
    assert torch.all(torch.isfinite(gradient))
    with torch.inference_mode():
        memory.attend(queries)


def test_auto_takes_landmarks_where_they_do_better_and_not_otherwise():
    options = {"rows": 5_000, "key_dim": 20, "value_dim": 4, "epsilon": 1.0, "delta": 1e-6}
    options["features"] = 512
    good = discreet.plan(**options, public_rows=clustered(1_000, 20))
    assert good.kernel.kind == "landmarks"
    assert "kept back" in good.kernel_reason
    few = discreet.plan(**options, public_rows=unit_rows(10, 20))
    assert few.kernel.kind == "fourier"
    capped = discreet.plan(**options | {"features": 100}, public_rows=clustered(1_000, 20))
    assert capped.kernel.features == 100
    asked = discreet.plan(**options, public_rows=clustered(1_000, 20), kernel="landmarks")
    assert asked.kernel == good.kernel
    with pytest.raises(InvalidInput, match="public_rows"):
        discreet.plan(**options, kernel="landmarks")


@pytest.mark.slow
def test_a_build_with_public_rows_is_better_and_one_kernel_serves_many_layers(tmp_path):
    keys, queries = clustered(4_000, 20, seed=7), clustered(100, 20, seed=9)
    values = np.sign(keys[:, :4]) / 2
    options = {"epsilon": 4.0, "delta": 1e-6, "scale": 4.0, "rows_hint": 4_000, "features": 2_048}
    exact = oracle.attention(queries, keys, values, scale=4.0)
    plain = discreet.build(keys, values, **options)
    helped = discreet.build(keys, values, **options, public_rows=clustered(1_500, 20))
    errors = [np.sqrt(np.mean((m.attend(queries) - exact) ** 2)) for m in (helped, plain)]
    assert helped.kernel.kind == "landmarks"
    assert errors[0] < 0.7 * errors[1]
    helped.save(tmp_path / "memory.safetensors")
    again = discreet.load(tmp_path / "memory.safetensors")
    assert again.kernel == helped.kernel
    assert np.array_equal(again.attend(queries), helped.attend(queries))
    narrow = np.ascontiguousarray(keys[:, :3])
    one, two, three = discreet.build_many(
        [(keys, values), (keys, values), (narrow, values)],
        **options,
        public_rows=[clustered(1_500, 20), clustered(1_500, 20), None],
    )
    assert one.kernel is two.kernel
    assert one.kernel.kind == "landmarks"
    assert three.kernel.kind != "landmarks"
    for wrong in ([clustered(50, 20), None], clustered(50, 19)):
        with pytest.raises(InvalidInput, match="public_rows"):
            discreet.build(keys, values, **options, public_rows=wrong)
