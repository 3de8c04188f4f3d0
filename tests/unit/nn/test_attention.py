"""The private module: the manners of MultiheadAttention, and the answers of exact attention."""

import copy
import warnings

import numpy as np
import pytest
from attention import layer_norm, multihead, rows

torch = pytest.importorskip("torch", reason="needs the extra `torch`")

import discreet
from discreet.nn import (
    PrivateCrossAttention,
    attach,
    bounds_of,
    calibrate,
    from_multihead,
    from_multiheads,
)
from discreet.testing import Seeded, Silent

SPEND = {"epsilon": 1.0, "delta": 1e-6}
NORM = layer_norm(16)
CONTEXT = NORM(rows(300, 16)).detach()
QUERY = NORM(rows(3, 5, 16, seed=5)).detach()


def private(mha=None, context=CONTEXT, **options):
    mha = multihead() if mha is None else mha
    bounds = bounds_of(mha, queries=NORM, context=NORM)
    return from_multihead(
        mha, context, **{**SPEND, "bounds": bounds, "entropy": Silent(), **options}
    )


def exact(mha, query=QUERY):
    batch = CONTEXT.expand(len(query), -1, -1)
    return mha(query, batch, batch)[0].detach()


@pytest.mark.parametrize("options", [{}, {"bias": False}, {"kdim": 16, "vdim": 16}])
def test_without_noise_it_answers_like_the_module_that_it_was_made_of(options):
    mha = multihead(16, 2, **options)
    out, weights = private(mha)(QUERY)
    assert weights is None
    torch.testing.assert_close(out, exact(mha), atol=1e-3, rtol=0)


@pytest.mark.slow
def test_random_features_answer_alike_but_for_their_error():
    mha = multihead()
    few, many = (private(mha, kernel="fourier", features=n) for n in (16, 16384))
    errors = [(each(QUERY)[0] - exact(mha)).abs().max() for each in (few, many)]
    assert errors[1] < 0.01 < errors[0]


def test_with_noise_it_differs_by_the_noise():
    mha = multihead()
    context, options = CONTEXT.repeat(30, 1), {"features": 500}
    silent = private(mha, context, **options)(QUERY)[0]
    noisy = private(mha, context, entropy=Seeded(1), **options)
    apart = (noisy(QUERY)[0] - silent).abs()
    assert 0 < apart.mean() < 0.1
    other = private(mha, context, entropy=Seeded(2), **options)
    assert not torch.equal(other(QUERY)[0], noisy(QUERY)[0])


def test_batch_axes_follow_torch():
    mha = multihead()
    first = private(mha)
    mha.batch_first = False
    second = private(mha)
    out = first(QUERY)[0]
    torch.testing.assert_close(second(QUERY.transpose(0, 1))[0].transpose(0, 1), out)
    torch.testing.assert_close(first(QUERY[0])[0], out[0])


def test_keys_and_values_are_ignored_and_masks_refused():
    module = private()
    noise = rows(3, 9, 16, seed=8)
    torch.testing.assert_close(module(QUERY, noise, noise)[0], module(QUERY)[0])
    for name in ("key_padding_mask", "attn_mask"):
        with pytest.raises(discreet.InvalidInput, match="no mask"):
            module(QUERY, **{name: torch.zeros(3, 9, dtype=torch.bool)})


def test_it_takes_its_place_in_a_decoder_layer():
    torch.manual_seed(0)
    layer = torch.nn.TransformerDecoderLayer(16, 2, 32, batch_first=True, norm_first=True).eval()
    batch = CONTEXT.expand(3, -1, -1)
    before = layer(QUERY, batch)
    bounds = bounds_of(layer.multihead_attn, queries=layer.norm2, context=NORM)
    layer.multihead_attn = from_multihead(
        layer.multihead_attn, CONTEXT, bounds=bounds, entropy=Silent(), **SPEND
    )
    apart = (layer(QUERY, batch * 0) - before).abs().max()
    assert apart < 0.02


def test_what_is_longer_than_its_bound_is_clipped():
    mha = multihead()
    tight = private(mha, key_norm=1e-3)
    even = private(mha, key_norm=1e-6)
    # All keys alike: the mean of the values.
    torch.testing.assert_close(tight(QUERY)[0], even(QUERY)[0], atol=1e-2, rtol=0)
    assert (exact(mha) - even(QUERY)[0]).abs().max() > 0.01
    assert "given by the builder (key_norm)" in str(tight.card)


def test_the_card_says_whom_it_protects_and_where_bounds_come_from():
    card = str(private().card)
    assert "a row of the context" in card
    assert "does not reach the raw input" in card
    assert "from the weights alone" in card
    assert "NOT PRIVATE" in card
    record = private(groups=np.arange(300) // 3, group_rows=3.0)
    assert record.guarantee.unit == "record"
    assert not record.private


def test_several_layers_are_one_release():
    layers = [multihead(seed=seed) for seed in range(3)]
    bounds = [bounds_of(each, queries=NORM, context=NORM) for each in layers]
    options = {"features": 500, "entropy": Silent(), **SPEND}
    modules = from_multiheads(layers, CONTEXT, bounds=bounds, **options)
    for layer, module in zip(layers, modules, strict=True):
        torch.testing.assert_close(module(QUERY)[0], exact(layer), atol=5e-3, rtol=0)
    assert len({each.memories.receipt for each in modules}) == 1
    assert "all 6 memories of this build together" in str(modules[0].card)
    assert discreet.combine([each.memories for each in modules]).epsilon == pytest.approx(1.0)
    for wrong in ([], layers[:2]):
        with pytest.raises(discreet.InvalidInput, match="bounds for each"):
            from_multiheads(wrong, CONTEXT, bounds=bounds, **options)


def test_logits_beyond_reason_are_refused_with_advice():
    with pytest.raises(discreet.InvalidInput, match="Calibrate"):
        private(multihead(shrink=30.0))
    assert private(multihead(shrink=30.0), largest_logit=2.0).card.to_dict()["largest_logit"] == [
        pytest.approx(2.0),
        pytest.approx(2.0),
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"add_bias_kv": True}, "add_bias_kv"),
        ({"add_zero_attn": True}, "add_zero_attn"),
    ],
)
def test_attention_with_rows_of_its_own_is_refused(options, message):
    with pytest.raises(discreet.InvalidInput, match=message):
        private(multihead(16, 2, **options))


@pytest.mark.parametrize(
    ("context", "groups", "message"),
    [
        (rows(7, 15), None, "own 16"),
        (rows(7), None, "shape"),
        (rows(7, 16) / 0, None, "no NaN"),
        (rows(7, 16), np.arange(6), "groups"),
        ((rows(7, 16), rows(6, 16)), None, "as many"),
        ((rows(7, 16),), None, "pair"),
    ],
)
def test_a_context_that_does_not_fit_is_refused_without_a_word_about_its_rows(
    context, groups, message
):
    with pytest.raises(discreet.InvalidInput, match=message) as caught:
        private(context=context, groups=groups)
    assert "7" not in str(caught.value)


def test_no_rows_at_all_are_a_context():
    out, _ = private(context=rows(0, 16), entropy=None)(QUERY)
    assert torch.all(torch.isfinite(out))


def test_records_lie_in_one_chunk_whatever_its_size(monkeypatch):
    groups = np.random.default_rng(0).integers(0, 40, size=300)
    whole = private(groups=groups, group_rows=2.0)
    from discreet.nn import building

    monkeypatch.setattr(building, "_AT_ONCE", 2**12)
    pieces = private(groups=groups, group_rows=2.0)
    order = np.random.default_rng(1).permutation(300)
    turned = private(context=CONTEXT[order], groups=groups[order], group_rows=2.0)
    for other in (pieces, turned):
        for a, b in zip(whole.memories, other.memories, strict=True):
            np.testing.assert_array_equal(a.released.state, b.released.state)


@pytest.fixture(scope="module", params=["minimax", "fourier"])
def module(request):
    return private(kernel=request.param, eps_s=0.05, features=200, entropy=Seeded(0))


@pytest.mark.slow
def test_it_compiles_without_a_break_and_exports(module):
    torch.compiler.reset()
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(QUERY)[0], module(QUERY)[0], atol=1e-6, rtol=1e-5)
    exported = torch.export.export(module, (QUERY,)).module()
    torch.testing.assert_close(exported(QUERY)[0], module(QUERY)[0], atol=1e-6, rtol=1e-5)


def test_it_maps_copies_and_differentiates(module):
    out = module(QUERY)[0]
    mapped = torch.vmap(lambda each: module(each)[0])(QUERY)
    torch.testing.assert_close(mapped, out, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(copy.deepcopy(module)(QUERY)[0], out)
    asked = QUERY.clone().requires_grad_()
    module(asked)[0].sum().backward()
    assert torch.all(torch.isfinite(asked.grad))
    assert asked.grad.abs().max() > 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_state_keeps_its_precision(module, dtype):
    converted = copy.deepcopy(module).to(dtype)
    state = {name: each.dtype for name, each in converted.heads.named_buffers()}
    assert set(state.values()) <= {torch.float32, torch.int64}
    for name, before in module.heads.named_buffers():
        torch.testing.assert_close(converted.heads.get_buffer(name), before, atol=0, rtol=0)
    assert converted.out_proj.weight.dtype is dtype
    answers = converted.heads(rows(1, 2, 4, 8).to(dtype))
    assert answers.dtype is dtype
    torch.testing.assert_close(
        answers.float(), module.heads(rows(1, 2, 4, 8).to(dtype).float()), atol=2e-2, rtol=0
    )
    assert copy.deepcopy(module).double().heads.least.dtype is torch.float64


def test_autocast_leaves_the_state_alone(module):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = module(QUERY)[0]
    torch.testing.assert_close(out.float(), module(QUERY)[0], atol=2e-2, rtol=0)


def test_the_state_dict_has_what_is_released_and_public_weights(module):
    names = set(module.state_dict())
    allowed = {f"heads.{name}" for name, _ in module.heads.named_buffers()}
    weights = {"q_proj.weight", "q_proj.bias", "out_proj.weight", "out_proj.bias"}
    assert names == allowed | weights | {"_extra_state"}
    # No row of the context, nor any key or value of it, is anywhere in it.
    numbers = np.concatenate([t.double().numpy().ravel() for t in module.state_dict().values()])
    found = np.isin(CONTEXT.double().numpy(), numbers)
    assert np.max(np.sum(found, axis=1)) <= 2  # single numbers coincide by chance
    same = copy.deepcopy(module)
    same.load_state_dict(module.state_dict())
    torch.testing.assert_close(same(QUERY)[0], module(QUERY)[0])


def test_the_numbers_of_another_release_do_not_come_under_this_card(module):
    options = {"kernel": module.heads.joint.kernel.kind, "eps_s": 0.05, "features": 200}
    other = private(entropy=Seeded(1), **options)
    with pytest.raises(discreet.InvalidInput, match="same release"):
        other.load_state_dict(module.state_dict())


def test_the_state_of_a_version_without_reference_points_loads():
    keys, values = rows(2, 300, 8).numpy(), rows(2, 300, 8, seed=3).numpy()
    bounds = {"scale": 1.0, "key_norm": 2.0, "value_norm": 2.0, "kernel": "fourier"}
    memory = discreet.build(keys, values, entropy=Seeded(0), **bounds, **SPEND)
    module, asked = PrivateCrossAttention(memory, batch_first=True), rows(3, 5, 16, seed=4)
    before, _ = module(asked)
    module.load_state_dict(PrivateCrossAttention(memory.plain, batch_first=True).state_dict())
    after, _ = module(asked)
    assert torch.equal(before, after)


def test_a_memory_with_heads_becomes_a_module():
    keys, values = rows(2, 300, 8).numpy(), rows(2, 300, 8, seed=3).numpy()
    memory = discreet.build(keys, values, scale=1.0, key_norm=2.0, value_norm=2.0, **SPEND)
    module = PrivateCrossAttention(memory, batch_first=True)
    asked = rows(3, 5, 16, seed=4)
    out, _ = module(asked)
    plain = memory.attend(asked.reshape(3, 5, 2, 8).transpose(1, 2))
    torch.testing.assert_close(out, plain.transpose(1, 2).reshape(3, 5, 16), atol=1e-5, rtol=1e-4)


def test_errors_have_the_shape_of_outputs_and_those_of_the_memory():
    keys, values = rows(2, 300, 8).numpy(), rows(2, 300, 8, seed=3).numpy()
    bounds = {"scale": 1.0, "key_norm": 2.0, "query_norm": 1.5, "value_norm": 2.0}
    for kernel in ("minimax", "fourier"):
        memory = discreet.build(
            keys, values, kernel=kernel, eps_s=0.3, entropy=Seeded(0), **bounds, **SPEND
        )
        asked = rows(3, 5, 16, seed=4)
        by_head = asked.reshape(3, 5, 2, 8).transpose(1, 2)
        _, wanted = memory.attend(by_head, stderr=True)
        wanted = wanted.transpose(1, 2).reshape(3, 5, 16)
        module = PrivateCrossAttention(memory, batch_first=True)
        torch.testing.assert_close(module.stderr(asked), wanted, atol=1e-6, rtol=1e-3)
        module.batch_first = False
        turned = module.stderr(asked.transpose(0, 1)).transpose(0, 1)
        torch.testing.assert_close(turned, wanted, atol=1e-6, rtol=1e-3)
        torch.testing.assert_close(module.stderr(asked[0]), wanted[0], atol=1e-6, rtol=1e-3)
        module.out_proj = torch.nn.Linear(16, 1)
        one = module.stderr(asked[0])
        assert one.shape == (5, 1)
        assert not one.requires_grad
        turned = torch.nn.Sequential(torch.nn.Identity(), module.out_proj)  # as an adapter wraps it
        module.out_proj = turned
        torch.testing.assert_close(module.stderr(asked[0]), one, atol=1e-6, rtol=1e-4)
        module.out_proj = torch.nn.Sequential(torch.nn.Linear(16, 4), torch.nn.ReLU())
        with pytest.raises(discreet.InvalidInput, match="linear"):
            module.stderr(asked)


def test_errors_of_many_queries_are_those_of_few(module, monkeypatch):
    from discreet.nn import reading

    whole = module.stderr(QUERY)
    monkeypatch.setattr(reading, "_AT_ONCE", 1)
    torch.testing.assert_close(module.stderr(QUERY), whole, atol=1e-6, rtol=1e-3)


def test_errors_follow_the_module_wherever_it_goes(module):
    wanted = module.stderr(QUERY)
    assert torch.all((wanted > 0) & torch.isfinite(wanted))
    torch.testing.assert_close(copy.deepcopy(module).stderr(QUERY), wanted)
    half = copy.deepcopy(module).to(torch.bfloat16).stderr(QUERY.to(torch.bfloat16))
    assert half.dtype is torch.bfloat16
    torch.testing.assert_close(half.float(), wanted, atol=0, rtol=0.1)
    torch.testing.assert_close(
        copy.deepcopy(module).double().stderr(QUERY.double()).float(), wanted, atol=1e-6, rtol=1e-3
    )
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(module.stderr(QUERY).float(), wanted, atol=0, rtol=0.1)
    assert torch.all(torch.isfinite(module.stderr(QUERY * 1e30)))


def test_a_file_puts_the_context_on_the_same_module_again(tmp_path):
    path, mha = tmp_path / "context.safetensors", multihead()
    made = private(mha, features=500, entropy=None)
    made.save(path)
    again = attach(mha, path)
    torch.testing.assert_close(again(QUERY)[0], made(QUERY)[0], atol=0, rtol=0)
    torch.testing.assert_close(
        attach(mha.half(), path).float()(QUERY)[0], made(QUERY)[0], atol=1e-2, rtol=0
    )
    memories = discreet.load(path)
    plain = PrivateCrossAttention(
        memories, q_proj=made.q_proj, out_proj=made.out_proj, batch_first=True
    )
    torch.testing.assert_close(plain(QUERY)[0], made(QUERY)[0], atol=0, rtol=0)
    for other in (multihead(seed=9), multihead(16, 4)):
        with pytest.raises(discreet.InvalidInput, match="weights that the release was made with"):
            attach(other, path)


def test_whoever_builds_or_attaches_is_told_once_that_outputs_are_noise(tmp_path):
    mha, path = multihead(), tmp_path / "context.safetensors"
    bounds = bounds_of(mha, queries=NORM, context=NORM)
    with pytest.warns(discreet.MostlyNoiseWarning, match=r"mostly noise.*`calibrate`") as told:
        made = from_multihead(mha, CONTEXT, bounds=bounds, entropy=Seeded(0), **SPEND)
    assert len(told) == 1
    assert told[0].filename == __file__
    assert "mostly noise" in str(made.card)
    assert made.memories.observed_signal_to_error[""] < 1
    with warnings.catch_warnings():
        warnings.simplefilter("error", discreet.MostlyNoiseWarning)
        again = from_multihead(mha, CONTEXT, bounds=bounds, entropy=Seeded(0), **SPEND)
        made(QUERY)  # it was said; and a compiled module could not say it
        again.stderr(QUERY)
    made.save(path)
    with pytest.warns() as told:
        attach(mha, path)
    kinds = [each.category for each in told]
    assert sorted(kinds, key=str) == [discreet.MostlyNoiseWarning, discreet.NotPrivateWarning]
    with pytest.warns(discreet.MostlyNoiseWarning, match="of 2 of 2 layers") as told:
        from_multiheads([mha, mha], CONTEXT, bounds=[bounds] * 2, entropy=Seeded(0), **SPEND)
    assert len(told) == 1


@pytest.mark.slow
def test_outputs_that_are_clear_of_the_noise_need_no_warning():
    mha, context = multihead(shrink=1.0), CONTEXT.repeat(100, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", discreet.MostlyNoiseWarning)
        made = from_multihead(
            mha, context, bounds=calibrate(mha, CONTEXT), entropy=Seeded(0), **SPEND
        )
    [ratio] = made.memories.observed_signal_to_error.values()
    assert ratio > 2
    wanted = exact(mha)
    true = wanted.flatten(0, 1).std(dim=0).norm() / (made(QUERY)[0] - wanted).std(dim=(0, 1)).norm()
    assert 0.4 < ratio / true < 2.5
    assert "mostly noise" not in str(made.card)


def test_options_that_do_not_exist_and_bounds_of_others_are_refused():
    with pytest.raises(discreet.InvalidInput, match="'group_row' is none of them"):
        private(group_row=3.0)
    with pytest.raises(discreet.InvalidInput, match="other heads"):
        from_multihead(multihead(16, 4), CONTEXT, bounds=bounds_of(multihead(16, 2)), **SPEND)
    assert "2 heads, from the weights alone" in repr(bounds_of(multihead()))


def test_memories_of_other_widths_are_refused():
    one, two = (
        discreet.build(rows(9, d).numpy(), rows(9, 2).numpy(), scale=1.0, **SPEND) for d in (3, 4)
    )
    with pytest.raises(discreet.InvalidInput, match="one release"):
        PrivateCrossAttention([one, two])


def test_huge_queries_are_shortened_and_no_number_is_lost(module):
    asked = QUERY * torch.tensor([1e30, 1.0, 0.0])[:, None, None]
    assert torch.all(torch.isfinite(module(asked)[0]))
