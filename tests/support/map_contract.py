"""One suite for every map of rows: what proofs rely on, and what answers rely on.

`RowContract` is about rows; `SymmetricContract` and `KernelContract` add what queries need.
"""

import math
import pickle

import numpy as np
import pytest
import torch
from data import unit_rows
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import discreet
from discreet.features import registry
from discreet.features.base import FEATURE_RADIUS
from discreet.features.landmarks import Landmarks


def sized_keys(kernel, count=200, seed=0):
    """Keys of all lengths: inside, on and outside the bound."""
    rng = np.random.default_rng(seed)
    lengths = kernel.key_norm * rng.choice([0, 1e-9, 0.5, 1, 1, 1.0000001, 7, 1e30], (count, 1))
    return unit_rows(count, kernel.dim, seed=seed) * lengths


def squared_norms(kernel, features):
    """The squared norm of each row of integer features, exactly."""
    assert np.array_equal(features, np.rint(features))
    assert np.abs(features).max() <= kernel.entry_bound <= FEATURE_RADIUS
    return np.sum(features.astype(np.int64) ** 2, axis=1)


def query_features(kernel, queries):
    """φ(q), in the order of the state's features."""
    clipped, squared = kernel.clip_queries(queries)
    growth = np.exp(squared * kernel.query_exponent)
    return kernel.read(clipped[None], everything(kernel))[0] * growth


def everything(kernel):
    """What reads a state that gives back each feature."""
    return kernel.reading(np.eye(kernel.features)[None])


def landmarks(dim, *, rank=40, **bounds):
    """Landmarks from rows of all lengths up to the bound."""
    rows = unit_rows(200, dim, seed=8) * bounds["key_norm"]
    rows[::3] *= 0.5
    return Landmarks(rows, rank=rank, **bounds)


def wild_landmarks(dim, **bounds):
    """Landmarks with a matrix that makes no sense: features are far too long, and cut."""
    kernel = landmarks(dim, **bounds)
    arrays = kernel.arrays()
    noise = np.random.default_rng(0).integers(-(2**22), 2**22, arrays["matrix"].shape)
    arrays |= {"matrix": noise.astype(np.int32), "exponents": arrays["exponents"] * 0 + 12}
    return registry.KERNELS.restore(kernel.parameters(), arrays)


def in_torch(arrays):
    """The same in torch."""
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def key_features(kernel, keys):
    mapped = kernel.key_features(keys)
    weights = 1.0 if mapped.weights is None else mapped.weights[:, None]
    return mapped.features * weights / kernel.unit


class RowContract:
    """Of every map. A subclass has a fixture `kernel`, of scope class or wider: the map.

    Where keys are not points in a ball, it also has its own `keys` and `drawn`.
    """

    facts = ("features", "unit", "entry_bound", "least_inner", "operations")

    def keys(self, kernel, count=200, seed=0):
        """Keys of all sorts, shape (count, d)."""
        return sized_keys(kernel, count, seed)

    def drawn(self, kernel, data):
        """A few keys that hypothesis thinks of, shape (m, d)."""
        usual = st.floats(-1.5, 1.5).map(lambda number: number * kernel.key_norm)
        wild = st.floats(allow_nan=False, allow_infinity=False) | usual
        elements = data.draw(st.sampled_from([usual, wild]))
        return data.draw(hnp.arrays(np.float64, (3, kernel.dim), elements=elements))

    @given(data=st.data())
    def test_no_key_exceeds_the_bounds(self, kernel, data):
        keys = self.drawn(kernel, data)
        mapped = kernel.key_features(np.concatenate([keys, -keys]))
        assert squared_norms(kernel, mapped.features).max() <= FEATURE_RADIUS**2
        assert (mapped.features @ mapped.features.T).min() >= kernel.least_inner
        if mapped.weights is not None:
            assert np.all((mapped.weights >= 0) & (mapped.weights <= 1))

    def test_many_keys_are_within_the_bounds(self, kernel):
        keys = self.keys(kernel)
        features = kernel.key_features(np.concatenate([keys, -keys])).features
        assert squared_norms(kernel, features).max() <= FEATURE_RADIUS**2
        assert (features @ features.T).min() >= kernel.least_inner  # opposite keys have the least

    def test_a_row_has_the_same_features_alone_in_any_batch_and_at_any_position(self, kernel):
        keys = self.keys(kernel, 300)
        together = kernel.key_features(keys)
        order = np.random.default_rng(1).permutation(300)
        shuffled = kernel.key_features(keys[order], out=np.empty(400 * kernel.features))
        alone = [kernel.key_features(keys[row : row + 1]) for row in range(0, 300, 7)]
        assert np.array_equal(shuffled.features, together.features[order])
        assert np.array_equal([each.features[0] for each in alone], together.features[::7])
        if together.weights is not None:
            assert np.array_equal(shuffled.weights, together.weights[order])
            assert np.array_equal([each.weights[0] for each in alone], together.weights[::7])
        for other in (np.asfortranarray(keys), np.repeat(keys, 2, axis=0)[::2], keys[::-1][::-1]):
            assert np.array_equal(kernel.key_features(other).features, together.features)

    def test_a_file_and_a_pickle_bring_the_same_map_back(self, kernel):
        copied = pickle.loads(pickle.dumps(kernel))
        assert copied == kernel
        again = self.registry.restore(kernel.parameters(), kernel.arrays())
        keys = self.keys(kernel, 20)
        for each in (copied, again):
            assert type(each) is type(kernel)
            assert each.describe() == kernel.describe()
            assert [getattr(each, name) for name in self.facts] == [
                getattr(kernel, name) for name in self.facts
            ]
            ours, theirs = (some.key_features(keys) for some in (kernel, each))
            assert np.array_equal(theirs.features, ours.features)
            assert np.array_equal(theirs.weights, ours.weights)
        for name, array in kernel.arrays().items():
            assert np.array_equal(again.arrays()[name], array)


class SymmetricContract(RowContract):
    """Of predictions: rows and queries have the same features, of length one at the most."""

    registry = registry.FEATURES

    def mapped(self, kernel, queries):
        return kernel.query_features(kernel.within(queries[None]), kernel.query_arrays())[0]

    def test_all_rows_count_alike(self, kernel):
        assert kernel.key_features(self.keys(kernel, 5)).weights is None

    def test_queries_have_the_features_of_rows(self, kernel):
        keys = sized_keys(kernel)
        keys = keys[np.linalg.norm(keys, axis=1) < 1e9 * kernel.key_norm]
        rows = kernel.key_features(keys).features / kernel.unit
        np.testing.assert_allclose(self.mapped(kernel, keys), rows, atol=2e-3)

    def test_torch_has_the_features_of_numpy(self, kernel):
        queries = unit_rows(6, kernel.dim) * kernel.key_norm
        arrays = in_torch({name: each.copy() for name, each in kernel.query_arrays().items()})
        theirs = kernel.query_features(torch.from_numpy(queries[None]), arrays).numpy()[0]
        np.testing.assert_allclose(theirs, self.mapped(kernel, queries), atol=1e-9)


class KernelContract(RowContract):
    """Of attention: inner products of keys and queries are near exp."""

    reached = 1e-11  # how far the longest query may be from the bound
    rounding = 1e-14  # how far torch may be from numpy, where features cancel
    registry = registry.KERNELS
    facts = (*RowContract.facts, "bound", "error")

    def test_the_longest_keys_have_the_radius(self, kernel):
        norms = squared_norms(kernel, kernel.key_features(sized_keys(kernel)).features)
        assert norms.max() >= 0.98 * FEATURE_RADIUS**2 or kernel.features < 8

    def test_inner_products_approximate_exp_within_the_error(self, kernel):
        keys = unit_rows(60, kernel.dim, seed=1) * kernel.key_norm
        keys[::3] *= 0.3
        queries = unit_rows(50, kernel.dim, seed=2) * kernel.query_norm
        queries[::3] *= 0.2
        weights = query_features(kernel, queries) @ key_features(kernel, keys).T
        truth = np.exp(kernel.scale * queries @ keys.T)
        largest = math.exp(kernel.largest_logit)
        if kernel.weight_error:
            assert np.sqrt(np.mean((weights - truth) ** 2)) <= 1.5 * kernel.error * largest
        elif math.isfinite(kernel.error):
            rounding = largest * math.sqrt(kernel.features) / FEATURE_RADIUS
            assert np.all(np.abs(weights - truth) <= kernel.error * truth + rounding)

    def test_query_norms_are_those_of_the_features_and_the_bound_is_reached(self, kernel):
        queries = unit_rows(20, kernel.dim, seed=3) * kernel.query_norm
        queries[::2] *= 0.4
        features = query_features(kernel, queries)
        norms = kernel.query_norms(*kernel.clip_queries(queries), everything(kernel))[:, 0]
        np.testing.assert_allclose(np.linalg.norm(features, axis=1), norms, rtol=1e-12)
        assert norms.max() == pytest.approx(kernel.bound, rel=self.reached)
        assert norms.max() <= kernel.bound * (1 + 1e-11)

    def test_keys_and_queries_are_balanced(self, kernel):
        """The longest key has features as long as the longest query, whatever the bounds."""
        keys = unit_rows(50, kernel.dim) * kernel.key_norm
        longest = np.linalg.norm(key_features(kernel, keys), axis=1).max()
        assert longest == pytest.approx(kernel.bound, rel=0.05)

    def test_long_queries_are_clipped(self, kernel):
        queries = unit_rows(5, kernel.dim) * kernel.query_norm
        inside, _ = kernel.clip_queries(queries)
        for factor in (1.5, 1e9, 1e15):
            clipped, squared = kernel.clip_queries(queries * factor)
            np.testing.assert_allclose(clipped, inside, rtol=1e-12)
            np.testing.assert_allclose(squared, 1.0)

    def test_torch_answers_like_numpy(self, kernel):
        queries = unit_rows(9, kernel.dim) * kernel.query_norm * 1.3
        clipped, squared = kernel.clip_queries(torch.from_numpy(queries))
        arrays = in_torch(everything(kernel))
        theirs = kernel.read(clipped[None], arrays)
        ours = kernel.read(kernel.clip_queries(queries)[0][None], everything(kernel))
        np.testing.assert_allclose(
            theirs.numpy(), ours, rtol=1e-12, atol=self.rounding * kernel.bound
        )
        assert theirs.dtype == torch.float64
        np.testing.assert_allclose(
            kernel.query_norms(clipped, squared, arrays).numpy(),
            kernel.query_norms(clipped.numpy(), squared.numpy(), everything(kernel)),
            rtol=1e-12,
        )

    def test_queries_are_differentiated_where_they_are_clipped_and_where_not(self, kernel):
        if kernel.features == 1:
            return  # a constant has no gradient
        state = np.random.default_rng(0).standard_normal((1, kernel.features, 3))
        arrays = in_torch(kernel.reading(state))
        queries = (
            unit_rows(4, kernel.dim) * kernel.query_norm * np.array([[0.5], [1.0], [1.5], [9.0]])
        )
        given = torch.from_numpy(queries).requires_grad_()
        assert torch.autograd.gradcheck(
            lambda some: kernel.read(kernel.clip_queries(some)[0][None], arrays),
            (given,),
            eps=1e-6 * kernel.query_norm,
            rtol=1e-3,
            atol=1e-4 * kernel.bound / kernel.query_norm,
        )

    def test_blocks_add_up_to_the_whole(self, kernel):
        queries, _ = kernel.clip_queries(unit_rows(2, 7, kernel.dim) * kernel.query_norm)
        state = np.random.default_rng(0).standard_normal((2, kernel.features, 3))
        arrays = kernel.reading(state)
        blocks = kernel.read_blocks(queries, arrays)
        assert blocks.shape == (2, kernel.blocks, 7, 3)
        np.testing.assert_allclose(blocks.sum(axis=1), kernel.read(queries, arrays), atol=1e-10)

    def test_it_says_what_it_costs_and_how_it_errs(self, kernel):
        assert kernel.operations >= kernel.features
        assert 0 <= kernel.weight_error <= 1
        assert kernel.length_error(float(kernel.dim)) >= 0
        assert kernel.kind in kernel.describe().lower()
        assert kernel.error_meaning
        assert kernel.why_offered(0.05)

    def test_a_memory_of_it_is_built_saved_loaded_planned_and_described(self, kernel, tmp_path):
        if not kernel.takes_signed_keys:
            return
        rng = np.random.default_rng(0)
        keys = unit_rows(2, 30, kernel.dim) * kernel.key_norm
        memory = discreet.build(
            keys, rng.uniform(-0.5, 0.5, (2, 30, 3)), epsilon=1.0, delta=1e-6, kernel=kernel
        )
        memory.save(tmp_path / "memory.safetensors")
        again = discreet.load(tmp_path / "memory.safetensors")
        queries = unit_rows(2, 5, kernel.dim, seed=3) * kernel.query_norm
        assert np.array_equal(again.attend(queries), memory.attend(queries))
        assert kernel.describe() in str(memory.card)
        assert memory.card.to_dict() == again.card.to_dict()
        plan = discreet.plan(
            rows=1000, key_dim=kernel.dim, value_dim=3, epsilon=1.0, delta=1e-6, kernel=kernel
        )
        assert kernel.describe() in str(plan)
        assert plan.stderr > 0
