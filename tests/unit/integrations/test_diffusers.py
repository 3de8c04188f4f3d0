"""Diffusion models with a private context: without noise, they do what they did."""

import copy
import re

import pytest
from attention import joint_distance, rows
from counted_builds import CountedBuilds

torch = pytest.importorskip("torch", reason="needs the extra `torch`")
pytest.importorskip("diffusers", reason="needs the extra `diffusers`")

from diffusers import (
    AutoencoderKL,
    PixArtTransformer2DModel,
    SD3Transformer2DModel,
    UNet2DConditionModel,
)

import discreet
from discreet.integrations.diffusers import (
    attach,
    calibrate,
    encode_contexts,
    layer_stderr,
    privatize,
    release,
)
from discreet.testing import Seeded, Silent

SPEND = {"epsilon": 1.0, "delta": 1e-6}
FAST = {"entropy": Silent(), "features": 500, **SPEND}
WIDTH, IMAGE = 12, 10
STEP = torch.tensor([5])
SAMPLE = rows(2, 4, 8, 8, seed=5)
CONTEXT = torch.nn.functional.layer_norm(rows(20, WIDTH), (WIDTH,))


def unet(*, seed=0, **options):
    torch.manual_seed(seed)
    made = UNet2DConditionModel(
        sample_size=8,
        in_channels=4,
        out_channels=4,
        block_out_channels=(16, 16),
        layers_per_block=1,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        cross_attention_dim=WIDTH,
        attention_head_dim=4,
        norm_num_groups=8,
        **options,
    ).eval()
    with torch.no_grad():
        for name, weight in made.named_parameters():
            if "attn2.to_q" in name or "attn2.to_k" in name:
                weight.mul_(0.5)
            elif "attn2.to_v" in name:
                weight.mul_(4)
    return made


def with_adapter(model, *, tokens=4):
    """The same model with an IP-Adapter of random weights."""
    torch.manual_seed(3)
    weights, index = {}, 1
    for name in model.attn_processors:
        if "attn2" in name:
            module = model.get_submodule(name.removesuffix(".processor"))
            inner = module.to_k.out_features
            for part, size in (("k", 0.15), ("v", 0.5)):
                weights[f"{index}.to_{part}_ip.weight"] = torch.randn(inner, WIDTH) * size
        index += 2 if "attn2" in name else 0
    projection = {
        "proj.weight": torch.randn(tokens * WIDTH, IMAGE) * 0.3,
        "proj.bias": torch.zeros(tokens * WIDTH),
        "norm.weight": torch.ones(WIDTH),
        "norm.bias": torch.randn(WIDTH) * 0.2,
    }
    model._load_ip_adapter_weights([{"image_proj": projection, "ip_adapter": weights}])
    return model


@pytest.fixture(scope="module")
def models():
    model = unet()
    return model, privatize(copy.deepcopy(model), CONTEXT, **FAST)


@torch.no_grad()
def test_a_picture_is_that_of_the_stock_model(models):
    model, private = models
    stock = model(SAMPLE, STEP, encoder_hidden_states=CONTEXT.expand(2, -1, -1)).sample
    torch.testing.assert_close(private(SAMPLE, STEP, None).sample, stock, atol=1e-3, rtol=0)
    # A context that is given for all is not used; and another one would matter.
    other = CONTEXT[:3].expand(2, -1, -1)
    with pytest.warns(UserWarning, match="context is not used"):
        ignored = private(SAMPLE, STEP, other).sample
    torch.testing.assert_close(ignored, private(SAMPLE, STEP, None).sample)
    assert (model(SAMPLE, STEP, other).sample - stock).abs().max() > 1e-2
    assert set(private.state_dict()) == set(model.state_dict())


@torch.no_grad()
def test_guidance_pairs_have_a_public_and_a_private_half(models, tmp_path):
    model, private = models
    negative = rows(2, 7, WIDTH, seed=9)
    pairs = torch.cat([SAMPLE, SAMPLE])
    public = model(SAMPLE, STEP, encoder_hidden_states=negative).sample
    kept = private(SAMPLE, STEP, None).sample
    out = private(pairs, STEP, negative).sample
    torch.testing.assert_close(out, torch.cat([public, kept]), atol=1e-5, rtol=0)
    guided = privatize(copy.deepcopy(model), CONTEXT, guided=True, **FAST)
    out = guided(pairs, STEP, torch.cat([negative, negative * 0])).sample
    torch.testing.assert_close(out, torch.cat([public, kept]), atol=1e-5, rtol=0)
    with pytest.raises(discreet.InvalidInput, match="pairs"):
        guided(SAMPLE[:1], STEP, negative[:1])
    release(guided, tmp_path / "pairs.safetensors")
    with pytest.warns(discreet.NotPrivateWarning):
        again = attach(copy.deepcopy(model), tmp_path / "pairs.safetensors")
    torch.testing.assert_close(again(pairs, STEP, torch.cat([negative, negative * 0])).sample, out)


@torch.no_grad()
def test_a_release_goes_on_a_fresh_model(models, tmp_path):
    model, private = models
    path = tmp_path / "context.safetensors"
    release(private, path)
    with pytest.warns(discreet.NotPrivateWarning):
        fresh = attach(copy.deepcopy(model), path)
    for copied in (fresh, copy.deepcopy(private)):
        torch.testing.assert_close(
            copied(SAMPLE, STEP, None).sample, private(SAMPLE, STEP, None).sample
        )
    with pytest.raises(discreet.InvalidInput, match="image context"):
        release(private, path, on="image")
    for other in (pixart(), unet(seed=5)):
        with pytest.warns(discreet.NotPrivateWarning), pytest.raises(discreet.InvalidInput):
            attach(other, path)


def test_the_card_says_whom_it_protects(models):
    card = str(models[1].private_contexts["text"].card)
    assert "the text that the model attends to" in card
    assert "does not reach a token of the raw input" in card
    grouped = privatize(unet(), CONTEXT, groups=torch.arange(20) // 4, **FAST)
    assert "one image, one text" in str(grouped.private_contexts["text"].card)
    assert grouped.private_contexts["text"].guarantee.unit == "record"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["float16", "bfloat16"])
@torch.no_grad()
def test_half_precision_is_that_of_the_stock_model(models, dtype, half_precision_works):
    half_precision_works(dtype)
    model, private = (copy.deepcopy(each).to(dtype) for each in models)
    given = SAMPLE.to(dtype)
    stock = model(given, STEP, CONTEXT.to(dtype).expand(2, -1, -1)).sample
    ours = private(given, STEP, None).sample
    assert ours.dtype is dtype
    size = max(1.0, stock.abs().max().item())
    torch.testing.assert_close(ours.float(), stock.float(), atol=2e-2 * size, rtol=0)


@torch.no_grad()
def test_images_of_an_adapter_are_a_context_of_their_own():
    model = with_adapter(unet())
    images = [rows(IMAGE, seed=20 + i) for i in range(6)]
    encoded = encode_contexts(model, images, on="image")
    assert encoded.groups.tolist() == [i for i in range(6) for _ in range(4)]
    text = CONTEXT.expand(2, -1, -1)
    # All images at once, as one context of 24 rows.
    added = {"image_embeds": [torch.stack(images).expand(2, -1, -1)]}
    stock = model(SAMPLE, STEP, text, added_cond_kwargs=added).sample
    private = privatize(copy.deepcopy(model), encoded.rows, on="image", **FAST)
    ours = private(SAMPLE, STEP, text).sample
    torch.testing.assert_close(ours, stock, atol=1e-3, rtol=0)
    privatize(private, CONTEXT, **FAST)
    torch.testing.assert_close(private(SAMPLE, STEP, None).sample, stock, atol=1e-3, rtol=0)
    assert set(private.private_contexts) == {"image", "text"}
    both = discreet.combine(list(private.private_contexts.values()))
    assert 1 < both.epsilon < 2
    assert set(private.state_dict()) == set(model.state_dict())


def test_an_image_is_a_record():
    model = with_adapter(unet())
    images = [rows(IMAGE, seed=20 + i) * 10.0**i for i in range(5)]
    options = {"on": "image", "kernel": "fourier", **FAST, "features": 64}
    whole, rest = (
        privatize(copy.deepcopy(model), encode_contexts(model, each, on="image"), **options)
        for each in (images, images[:2] + images[3:])
    )
    moved = joint_distance(whole.private_contexts["image"], rest.private_contexts["image"])
    assert 0.1 < moved <= 1


def pixart():
    torch.manual_seed(0)
    return PixArtTransformer2DModel(
        num_attention_heads=4,
        attention_head_dim=4,
        in_channels=4,
        out_channels=8,
        num_layers=2,
        cross_attention_dim=16,
        sample_size=8,
        patch_size=2,
        caption_channels=WIDTH,
        use_additional_conditions=False,
    ).eval()


@torch.no_grad()
def test_transformers_without_a_norm_before_queries_are_calibrated():
    model = pixart()
    steps = torch.tensor([5, 5])
    given = {
        "hidden_states": SAMPLE,
        "encoder_hidden_states": CONTEXT.expand(2, -1, -1),
        "timestep": steps,
    }
    stock = model(**given).sample
    context = encode_contexts(model, [CONTEXT])
    with pytest.raises(discreet.InvalidInput, match="calibrate"):
        privatize(model, context, **FAST)
    bounds = calibrate(model, [given], quantile=1.0)
    private = privatize(copy.deepcopy(model), context.rows, bounds=bounds, **FAST)
    ours = private(hidden_states=SAMPLE, timestep=steps).sample
    torch.testing.assert_close(ours, stock, atol=1e-3, rtol=0)
    assert "calibrated on public inputs" in str(private.private_contexts["text"].card)


def test_joint_attention_is_refused_with_the_reason():
    model = SD3Transformer2DModel(
        sample_size=8,
        patch_size=1,
        in_channels=4,
        num_layers=1,
        attention_head_dim=8,
        num_attention_heads=2,
        joint_attention_dim=16,
        caption_projection_dim=16,
        pooled_projection_dim=16,
        out_channels=4,
    )
    with pytest.raises(discreet.InvalidInput, match="joint attention"):
        privatize(model, CONTEXT, **SPEND)


def test_requests_that_do_not_fit_are_refused():
    with pytest.raises(discreet.InvalidInput, match="IP-Adapter"):
        privatize(unet(), CONTEXT, on="image", **SPEND)
    with pytest.raises(discreet.InvalidInput, match="on="):
        privatize(unet(), CONTEXT, on="sound", **SPEND)
    with pytest.raises(discreet.InvalidInput, match="bounds for"):
        privatize(unet(), CONTEXT, bounds={}, **SPEND)
    with pytest.raises(discreet.InvalidInput, match="cross-attention"):
        privatize(AutoencoderKL(norm_num_groups=8, block_out_channels=(8,)), CONTEXT, **SPEND)
    with pytest.raises(discreet.InvalidInput, match="at least one"):
        encode_contexts(unet(), [])
    with pytest.raises(discreet.InvalidInput, match="tensors"):
        encode_contexts(unet(), ["a cat"])
    model = privatize(unet(), CONTEXT, **FAST)
    with pytest.raises(discreet.InvalidInput, match="speak for both"):
        privatize(model, CONTEXT, **FAST)
    with pytest.raises(discreet.InvalidInput, match="mappings"):
        calibrate(unet(), [(SAMPLE, STEP, CONTEXT)])


def test_contexts_are_made_as_in_evaluation_and_every_mode_is_what_it_was():
    model = unet(encoder_hid_dim=12, encoder_hid_dim_type="text_proj")
    model.encoder_hid_proj = torch.nn.Sequential(model.encoder_hid_proj, torch.nn.Dropout(0.5))
    texts = [rows(5, 12, seed=seed) for seed in range(3)]
    wanted = encode_contexts(model.eval(), texts)
    model.train().encoder_hid_proj[0].eval()
    found = encode_contexts(model, texts)
    assert torch.equal(found.rows, wanted.rows)
    assert [each.training for each in model.encoder_hid_proj] == [False, True]


@pytest.mark.parametrize("on", ["text", "image"])
def test_each_layer_says_how_far_its_output_is_off(on):
    """The first layer: only there are queries the same with noise and without."""
    rows_ = CONTEXT.repeat(200, 1)
    model = unet() if on == "text" else with_adapter(unet())
    options = {"features": 300, **SPEND, "epsilon": 8.0, "on": on}
    silent = privatize(copy.deepcopy(model), rows_, entropy=Silent(), **options)
    inputs = (SAMPLE, STEP, None if on == "text" else CONTEXT.expand(2, -1, -1))
    off = []
    for seed in range(6):
        private = privatize(copy.deepcopy(model), rows_, entropy=Seeded(seed), **options)
        found = layer_stderr(private, *inputs, on=on)
        layer = next(iter(found))
        both = []
        for each in (private, silent):
            seen = []
            module = each.get_submodule(layer)
            hook = module.register_forward_hook(lambda *made, seen=seen: seen.append(made[-1]))
            with torch.no_grad():
                each(*inputs)
            hook.remove()
            both.append(seen[0])
        assert found[layer].shape == both[0].shape
        off.append(((both[0] - both[1]) / found[layer]).square().mean().item())
    assert 2 / 3 < (sum(off) / len(off)) ** 0.5 < 3 / 2
    with pytest.raises(discreet.InvalidInput, match=f"private {on} context"):
        layer_stderr(model, *inputs, on=on)


def test_whoever_builds_or_attaches_is_told_once_which_layers_are_noise(tmp_path):
    with pytest.warns(discreet.MostlyNoiseWarning, match=r"4 of 4 layers .*`calibrate`") as told:
        model = privatize(unet(), CONTEXT, **{**FAST, "entropy": Seeded(0)})
    assert len(told) == 1
    memories = model.private_contexts["text"]
    assert list(memories.observed_signal_to_error) == memories.notes["places"].split(", ")
    for name, ratio in memories.observed_signal_to_error.items():
        assert ratio < 1
        assert re.search(rf"{name}: [\d.e-]+, mostly noise", str(memories.card))
    release(model, tmp_path / "context.safetensors")
    with pytest.warns() as told:
        attach(unet(), tmp_path / "context.safetensors")
    kinds = [each.category for each in told]
    assert sorted(kinds, key=str) == [discreet.MostlyNoiseWarning, discreet.NotPrivateWarning]


@pytest.mark.filterwarnings("ignore::discreet.MostlyNoiseWarning")
class TestBudget(CountedBuilds):
    def models(self):
        return [unet()]

    def build(self, models, **options):
        [model] = models
        privatize(model, CONTEXT, features=100, **options)
        return [model.private_contexts["text"]]
