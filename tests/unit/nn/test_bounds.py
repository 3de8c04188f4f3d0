"""Bounds from weights hold for all inputs; bounds from public inputs are their quantiles."""

import numpy as np
import pytest
from attention import layer_norm, multihead, rows

torch = pytest.importorskip("torch", reason="needs the extra `torch`")

import discreet
from discreet.nn import BoundedAttention, bounds_of, calibrate
from discreet.nn.bounds import balance
from discreet.nn.building import Layer
from discreet.nn.heads import Heads

NORMS = {
    "layer norm": layer_norm(16),
    "root mean square": torch.nn.RMSNorm(16, eps=0.0),
    "a ball": 3.0,
    "no weights": None,
}


def inputs(norm, count=400):
    """Inputs behind a norm layer, or as long as a ball allows."""
    given = rows(count, 16, seed=3) ** 3  # some coordinates far larger than others
    if isinstance(norm, torch.nn.Module):
        return norm(given).detach()
    radius = 4.0 if norm is None else norm
    return given / given.norm(dim=1, keepdim=True) * radius


def projected(heads, bounds, asked, context):
    """Balanced keys, values and queries of each head."""
    layer = Layer(heads, bounds)
    keys, values = zip(
        *layer.project(context.double().numpy(), context.double().numpy()), strict=True
    )
    raw = asked.double().numpy() @ heads.query.weight.swapaxes(1, 2) + heads.query.bias[:, None]
    return np.stack(keys), np.stack(values), raw @ bounds.query_map.swapaxes(1, 2)


@pytest.mark.parametrize("name", NORMS)
def test_bounds_from_weights_hold_and_are_not_far_off(name):
    norm, mha = NORMS[name], multihead(16, 2)
    heads = Heads.of(mha)
    bounds = bounds_of(mha, queries=norm, context=norm)
    context = inputs(norm)
    # The longest key there can be: the input along the top singular vector.
    keys, values, asked = projected(heads, bounds, inputs(norm), context)
    for made, limit in (
        (keys, bounds.key_norm),
        (values, bounds.value_norm),
        (asked, bounds.query_norm),
    ):
        longest = np.max(np.linalg.norm(made, axis=-1), axis=1)
        assert np.all(longest <= limit)
        assert np.all(longest >= 0.2 * limit)
    assert bounds.source == "from the weights alone"


def test_the_bound_on_keys_is_reached():
    mha = multihead(16, 2)
    heads, bounds = Heads.of(mha), bounds_of(mha, context=3.0)
    for head in range(2):
        _, _, right = np.linalg.svd(bounds.key_map[head] @ heads.key.weight[head])
        worst = torch.from_numpy(3.0 * right[:1])
        keys, _, _ = projected(heads, bounds, worst, worst)
        assert np.linalg.norm(keys[head]) == pytest.approx(bounds.key_norm[head], rel=1e-4)


def test_balancing_keeps_products_and_lowers_the_bound():
    random = np.random.default_rng(0)
    queries, keys = random.normal(size=(3, 2, 4, 9)), random.normal(size=(3, 4, 7))
    key_map, query_map = balance(queries, keys)
    made = np.einsum("hij,hjk,hil,hrlm->hrkm", key_map, keys, query_map, queries)
    np.testing.assert_allclose(made, np.einsum("hjk,hrjm->hrkm", keys, queries), atol=1e-9)
    size = lambda m: np.linalg.norm(m, ord=2, axis=(-2, -1))  # noqa: E731
    before = size(keys)[:, None] * size(queries)
    after = size(key_map @ keys)[:, None] * size(query_map[:, None] @ queries)
    assert np.max(after) < np.max(before)
    largest = size(np.swapaxes(queries, -1, -2) @ keys[:, None])
    np.testing.assert_array_less(largest, after * (1 + 1e-9))


def test_heads_have_bounds_of_their_own():
    mha = multihead(16, 2)
    with torch.no_grad():
        mha.in_proj_weight[:8] *= 5  # the queries of the first head
    first, second = bounds_of(mha).largest_logits(Heads.of(mha).scaling)
    assert first > 3 * second


def test_calibrated_bounds_are_quantiles_and_centres_are_means():
    mha = multihead(16, 2)
    context, asked = rows(500, 16), rows(3, 40, 16)
    bounds = calibrate(mha, [(asked, context)], quantile=0.9)
    keys, values, queries = projected(Heads.of(mha), bounds, asked.reshape(-1, 16), context)
    for made, limit in (
        (keys, bounds.key_norm),
        (values, bounds.value_norm),
        (queries, bounds.query_norm),
    ):
        inside = np.mean(np.linalg.norm(made, axis=-1) <= limit[:, None], axis=1)
        np.testing.assert_allclose(inside, 0.9, atol=0.02)
    np.testing.assert_allclose(np.mean(keys, axis=1), 0, atol=1e-6)
    np.testing.assert_allclose(np.mean(values, axis=1), 0, atol=1e-6)
    assert "calibrated on public inputs, at their 0.9 quantile" in bounds.source


def test_calibration_takes_mappings_and_triples():
    mha = multihead(16, 2)
    context, asked = rows(50, 16), rows(9, 16)
    plain = calibrate(mha, [(asked, context)])
    named = calibrate(mha, [{"query": asked, "key": context, "value": context}])
    np.testing.assert_array_equal(plain.key_norm, named.key_norm)
    one = calibrate(mha, (asked, context))
    np.testing.assert_array_equal(plain.key_norm, one.key_norm)
    alike = calibrate(mha, context)
    np.testing.assert_array_equal(plain.value_norm, alike.value_norm)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: calibrate(m, []), "at least one pair"),
        (lambda m: calibrate(m, [(rows(3, 16),)]), "pairs"),
        (lambda m: calibrate(m, [(rows(3, 16), rows(3, 16))], quantile=0), "quantile"),
        (lambda m: calibrate(m, [(rows(3, 16), rows(3, 16) / 0)]), "finite"),
        (lambda m: calibrate(m, [(rows(3, 9), rows(3, 16))]), "own 16"),
        (lambda m: bounds_of(torch.nn.Linear(3, 3)), "MultiheadAttention"),
        (lambda m: bounds_of(m, context=torch.nn.Linear(16, 16)), "LayerNorm"),
        (lambda m: bounds_of(m, context=torch.nn.LayerNorm(8)), "width 16"),
        (lambda m: bounds_of(m, context=-1.0), "radius"),
        (lambda m: bounds_of(m).replaced(key_norm=[1.0, 2.0, 3.0]), "key_norm"),
        (lambda m: bounds_of(m).replaced(query_norm=-1.0), "query_norm"),
    ],
)
def test_what_makes_no_sense_is_refused(call, message):
    with pytest.raises(discreet.InvalidInput, match=message):
        call(multihead(16, 2))


def test_a_cap_shortens_keys_and_queries_alike_and_says_so():
    mha = multihead(16, 2, shrink=2.0)
    scaling = Heads.of(mha).scaling
    bounds = bounds_of(mha)
    capped = bounds.capped(scaling, 1.5)
    np.testing.assert_allclose(capped.largest_logits(scaling), 1.5)
    np.testing.assert_allclose(
        capped.key_norm / bounds.key_norm, capped.query_norm / bounds.query_norm
    )
    assert "cut to logits of at most 1.5" in capped.source
    assert bounds.capped(scaling, 1e6) is bounds
    for limit in np.linspace(0.3, 100, 200):
        larger = bounds.replaced(key_norm=bounds.key_norm * 1e3).capped(scaling, limit)
        assert np.all(larger.largest_logits(scaling) <= limit)


def test_bounded_attention_has_bounds_by_construction():
    attention = BoundedAttention(16, 2, largest_logit=5.0)
    bounds = bounds_of(attention)
    np.testing.assert_allclose(bounds.key_norm, 1, rtol=1e-4)
    np.testing.assert_allclose(bounds.query_norm, 1, rtol=1e-4)
    np.testing.assert_array_equal(bounds.value_norm, 1)
