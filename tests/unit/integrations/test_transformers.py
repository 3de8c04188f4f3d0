"""Models of transformers with a private context: without noise, they do what they did."""

import copy
import re

import numpy as np
import pytest
from attention import joint_distance
from counted_builds import CountedBuilds

torch = pytest.importorskip("torch", reason="needs the extra `torch`")
pytest.importorskip("transformers", reason="needs the extra `transformers`")

import tiny_models
from tiny_models import VOCABULARY, WIDTH, encoder_inputs
from transformers import BertConfig, BertModel, GPT2Config, GPT2LMHeadModel

import discreet
from discreet.integrations.transformers import (
    attach,
    calibrate,
    encode_passages,
    layer_stderr,
    privatize,
    release,
)
from discreet.testing import Seeded, Silent

SPEND = {"epsilon": 1.0, "delta": 1e-6}
FAST = {"entropy": Silent(), "features": 500, **SPEND}
GREEDY = {"max_new_tokens": 7, "do_sample": False}
INTERFACE = ("t5", "bart", "whisper", "moonshine")
OUTSIDE = ("fsmt", "prophetnet")


def encoded(model, name, count=1):
    """An encoder's output for one input, and a function that repeats it for a batch."""
    with torch.no_grad():
        made = model.get_encoder()(**encoder_inputs(name))
    rows = made.last_hidden_state

    def outputs(batch):
        repeated = copy.copy(made)
        repeated["last_hidden_state"] = rows.expand(batch, -1, -1).contiguous()
        return repeated

    return rows[0], outputs


def words(batch=3, count=5):
    return torch.randint(3, VOCABULARY, (batch, count), generator=torch.Generator().manual_seed(2))


@pytest.fixture(scope="module", params=[*INTERFACE, *OUTSIDE])
def served(request):
    """A stock model, its encoder's output, and the same model with that as private context."""
    model = tiny_models.model(request.param)
    rows, outputs = encoded(model, request.param)
    return model, outputs, privatize(copy.deepcopy(model), rows, **FAST)


@torch.no_grad()
def test_logits_are_those_of_the_stock_model(served):
    model, outputs, private = served
    stock = model(encoder_outputs=outputs(3), decoder_input_ids=words()).logits
    ours = private(decoder_input_ids=words()).logits
    torch.testing.assert_close(ours, stock, atol=1e-3, rtol=0)
    # And the context matters.
    other = outputs(3)
    other["last_hidden_state"] = other.last_hidden_state[:, :1]
    apart = model(encoder_outputs=other, decoder_input_ids=words()).logits - stock
    assert apart.abs().max() > 1e-2


@torch.no_grad()
def test_masks_of_the_decoder_are_those_of_the_stock_model(served):
    """Without them, prompts of several lengths would see each other's padding."""
    model, outputs, private = served
    mask = torch.ones_like(words())
    mask[1, 3:] = 0
    given = {"decoder_input_ids": words(), "decoder_attention_mask": mask}
    stock = model(encoder_outputs=outputs(3), **given).logits
    torch.testing.assert_close(private(**given).logits, stock, atol=1e-3, rtol=0)
    unmasked = private(decoder_input_ids=words()).logits
    assert (unmasked[1, 4] - stock[1, 4]).abs().max() > 1e-5


@pytest.mark.parametrize(
    "how",
    [{}, {"num_beams": 3}, {"use_cache": False}, {"decoder_input_ids": words(2, 3)}],
    ids=["greedy", "beams", "no cache", "prompts"],
)
@torch.no_grad()
def test_it_writes_what_the_stock_model_writes_without_a_context(served, how):
    model, outputs, private = served
    batch = len(how.get("decoder_input_ids", [1]))
    stock = model.generate(encoder_outputs=outputs(batch), **GREEDY, **how)
    assert torch.equal(private.generate(**GREEDY, **how), stock)


@torch.no_grad()
def test_sampling_needs_no_context_either(served):
    _, _, private = served
    torch.manual_seed(0)
    written = private.generate(max_new_tokens=4, do_sample=True, decoder_input_ids=words(2, 1))
    assert len(written) == 2


def test_its_own_file_is_what_it_was(served):
    model, _, private = served
    assert set(private.state_dict()) == set(model.state_dict())
    assert type(private).__name__ == type(model).__name__
    assert isinstance(private, type(model))


@torch.no_grad()
def test_a_release_goes_on_a_fresh_model(served, tmp_path):
    model, _, private = served
    path = tmp_path / "context.safetensors"
    release(private, path)
    with pytest.warns(discreet.NotPrivateWarning):
        fresh = attach(copy.deepcopy(model), path)
    for copied in (fresh, copy.deepcopy(private)):
        same = copied(decoder_input_ids=words()).logits
        torch.testing.assert_close(same, private(decoder_input_ids=words()).logits)
        assert torch.equal(copied.generate(**GREEDY), private.generate(**GREEDY))
    with pytest.warns(discreet.NotPrivateWarning):
        opened = discreet.load(path)
    assert str(opened.card) == str(private.private_context.card)
    with pytest.raises(discreet.InvalidInput, match="private context"):
        release(model, path)


def test_the_card_says_whom_it_protects(served):
    card = str(served[2].private_context.card)
    assert "one row of the context" in card
    assert "does not reach a token of the raw input" in card
    assert "from the weights alone" in card
    assert "NOT PRIVATE" in card


@pytest.mark.parametrize("name", INTERFACE)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["float16", "bfloat16"])
@torch.no_grad()
def test_half_precision_is_that_of_the_stock_model(name, dtype, half_precision_works):
    half_precision_works(dtype)
    model = tiny_models.model(name)
    rows, outputs = encoded(model, name)
    private = privatize(copy.deepcopy(model), rows, **FAST).to(dtype)
    given = outputs(3)
    given["last_hidden_state"] = given.last_hidden_state.to(dtype)
    stock = model.to(dtype)(encoder_outputs=given, decoder_input_ids=words()).logits
    ours = private(decoder_input_ids=words()).logits
    assert ours.dtype is dtype
    # Logits of T5 are up to 4, and bfloat16 has eight bits.
    size = max(1.0, stock.abs().max().item())
    torch.testing.assert_close(ours.float(), stock.float(), atol=2e-2 * size, rtol=0)


@torch.no_grad()
def test_mllama_attends_to_a_release(mllama_bounds):
    model, rows, bounds = mllama_bounds
    given = rows.expand(3, -1, -1)
    stock = model(input_ids=words(), cross_attention_states=given).logits
    private = privatize(copy.deepcopy(model), rows, bounds=bounds, **FAST)
    torch.testing.assert_close(private(input_ids=words()).logits, stock, atol=1e-3, rtol=0)
    assert (model(input_ids=words()).logits - stock).abs().max() > 1e-2
    written = model.generate(words(), cross_attention_states=given, **GREEDY)
    assert torch.equal(private.generate(words(), **GREEDY), written)


@pytest.fixture
def mllama_bounds():
    model = tiny_models.model("mllama")
    # Without a mask, transformers' fast attention hides later rows of the context from it.
    model.set_attn_implementation("eager")
    rows = torch.randn(15, WIDTH, generator=torch.Generator().manual_seed(0))
    given = {"input_ids": words(), "cross_attention_states": rows.expand(3, -1, -1)}
    return model, rows, calibrate(model, [given], quantile=1.0)


@torch.no_grad()
def test_padding_of_a_batch_is_dropped():
    model = tiny_models.model("t5")
    ids = encoder_inputs("t5", 3)["input_ids"]
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0
    made = model.get_encoder()(input_ids=ids, attention_mask=mask).last_hidden_state
    private = privatize(copy.deepcopy(model), made, attention_mask=mask, **FAST)
    rows = made[mask.bool()]
    stock = model(encoder_outputs=(rows[None],), decoder_input_ids=words(1)).logits
    torch.testing.assert_close(private(decoder_input_ids=words(1)).logits, stock, atol=1e-3, rtol=0)
    plain = privatize(copy.deepcopy(model), rows, **FAST)
    assert joint_distance(private.private_context, plain.private_context) == 0


@torch.no_grad()
def test_one_layer_may_be_private_and_the_others_attend_to_what_they_are_given():
    model = tiny_models.model("bart")
    rows, outputs = encoded(model, "bart")
    private = privatize(copy.deepcopy(model), rows, layers=[1], **FAST)
    assert len(private.private_context) == 4
    stock = model(encoder_outputs=outputs(3), decoder_input_ids=words()).logits
    ours = private(encoder_outputs=outputs(3), decoder_input_ids=words()).logits
    torch.testing.assert_close(ours, stock, atol=1e-3, rtol=0)


def test_whoever_gives_an_encoder_input_is_told_that_it_is_not_used():
    model = tiny_models.model("t5")
    private = privatize(model, encoded(model, "t5")[0], **FAST)
    with pytest.warns(UserWarning, match="input_ids is not used"):
        out = private(**encoder_inputs("t5"), decoder_input_ids=words(1))
    torch.testing.assert_close(out.logits, private(decoder_input_ids=words(1)).logits)


@torch.no_grad()
def test_passages_are_encoded_each_alone():
    model = tiny_models.model("t5")
    ids = encoder_inputs("t5", 4)["input_ids"]
    mask = torch.ones_like(ids)
    mask[2, 7:] = 0
    passages = encode_passages(model, [{"input_ids": ids, "attention_mask": mask}])
    assert passages.groups.tolist() == [0] * 12 + [1] * 12 + [2] * 7 + [3] * 12
    for index in range(4):
        alone = encode_passages(model, [ids[index][mask[index].bool()].tolist()])
        assert torch.equal(alone.rows, passages.rows[passages.groups == index])
    assert "private" in repr(passages)
    for wrong in ([3], ["a text"], [["a", "text"]], [[[1, 2], [3]]], [{"input_ids": "a text"}]):
        with pytest.raises(discreet.InvalidInput, match="mappings"):
            encode_passages(model, wrong)
    for shape in ((4, 5), (3, 12)):
        given = {"input_ids": ids, "attention_mask": torch.ones(shape)}
        with pytest.raises(discreet.InvalidInput, match="shape of the inputs"):
            encode_passages(model, [given])
    together = encode_passages(model, {"input_ids": ids})  # no padding: all of one length
    assert torch.equal(together.rows[:12], passages.rows[:12])
    padded = ids.clone()
    padded[1, 9:] = model.config.pad_token_id
    with pytest.raises(discreet.InvalidInput, match="attention_mask"):
        encode_passages(model, padded)  # how much depends on the others
    mask[1] = 0
    empty = encode_passages(model, [{"input_ids": ids, "attention_mask": mask}])
    assert empty.groups.unique().tolist() == [0, 2, 3]
    for name in ("moonshine", "whisper"):
        heard = encoder_inputs(name, 2)
        if name == "moonshine":
            heard["attention_mask"] = torch.ones_like(heard["input_values"], dtype=torch.long)
        assert encode_passages(tiny_models.model(name), [heard]).groups.max() == 1


def test_passages_are_encoded_as_in_evaluation_and_every_mode_is_what_it_was():
    model = tiny_models.model("t5")
    model.config.dropout_rate = 0.5
    for each in model.modules():
        if isinstance(each, torch.nn.Dropout):
            each.p = 0.5
    wanted = encode_passages(model.eval(), [[5, 6, 7], [8, 9]])
    frozen = model.train().get_encoder().block[0].eval()
    modes = {name: each.training for name, each in model.named_modules()}
    found = encode_passages(model, [[5, 6, 7], [8, 9]])
    assert torch.equal(found.rows, wanted.rows)
    assert {name: each.training for name, each in model.named_modules()} == modes
    assert not frozen.training
    with pytest.raises(discreet.InvalidInput, match="mappings"):
        encode_passages(model, [[5, 6, 7], "a text"])
    assert {name: each.training for name, each in model.named_modules()} == modes


@pytest.mark.parametrize("kind", ["random", "adversarial"])
def test_a_passage_is_a_record_of_the_whole_model(kind):
    model = tiny_models.model("t5")
    generator = torch.Generator().manual_seed(4)
    passages = [
        torch.randint(3, VOCABULARY, (int(n),), generator=generator).tolist()
        for n in torch.randint(1, 30, (20,), generator=generator)
    ]
    if kind == "adversarial":  # one token again and again: all rows pull the same way
        passages[7] = [9] * 60
    whole = encode_passages(model, passages)
    rest = encode_passages(model, passages[:7] + passages[8:])
    options = {"kernel": "fourier", "features": 64, "entropy": Silent(), **SPEND}
    with_it, without = (
        privatize(copy.deepcopy(model), each, group_rows=3.0, **options) for each in (whole, rest)
    )
    moved = joint_distance(with_it.private_context, without.private_context)
    assert 0.05 < moved <= 1
    assert with_it.private_context.guarantee.unit == "record"
    assert "encoded alone" in str(with_it.private_context.card)


def test_real_noise_makes_a_private_model():
    model = tiny_models.model("t5")
    private = privatize(model, encoded(model, "t5")[0], features=64, kernel="fourier", **SPEND)
    assert private.private_context.private
    assert private.private_context.guarantee.epsilon == 1.0
    assert torch.all(torch.isfinite(private(decoder_input_ids=words()).logits))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            lambda: GPT2LMHeadModel(GPT2Config(n_embd=8, n_layer=1, n_head=1, vocab_size=9)),
            "prompt",
        ),
        (
            lambda: BertModel(
                BertConfig(
                    hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8
                )
            ),
            "cross-attention",
        ),
        (lambda: torch.nn.Linear(2, 2), "PreTrainedModel"),
    ],
)
def test_models_without_cross_attention_are_refused(model, message):
    with pytest.raises(discreet.InvalidInput, match=message):
        privatize(model(), np.zeros((3, 8)), **SPEND)


def test_requests_that_do_not_fit_are_refused():
    model = tiny_models.model("t5")
    rows, _ = encoded(model, "t5")
    with pytest.raises(discreet.InvalidInput, match="layers"):
        privatize(model, rows, layers=[2], **FAST)
    with pytest.raises(discreet.InvalidInput, match="bounds for"):
        privatize(model, rows, bounds={}, **FAST)
    with pytest.raises(discreet.InvalidInput, match="attention_mask"):
        privatize(model, rows, attention_mask=torch.ones(3), **FAST)
    with pytest.raises(discreet.InvalidInput, match="own 16"):
        privatize(model, rows[:, :9], **FAST)
    with pytest.raises(discreet.InvalidInput, match="Use `calibrate`"):
        privatize(tiny_models.model("mllama"), rows, **FAST)


def test_a_second_release_on_one_model_is_refused_before_anything_is_spent():
    model = tiny_models.model("t5")
    rows, _ = encoded(model, "t5")
    privatize(model, rows, layers=[0], **FAST)
    with pytest.raises(discreet.InvalidInput, match="fresh model"):
        privatize(model, rows, layers=[1], **FAST)


def test_bounds_are_of_the_norm_layer_that_the_encoder_ends_with():
    model = tiny_models.model("bart")
    with torch.no_grad():
        model.model.encoder.layers[-1].final_layer_norm.weight.mul_(10)
    from discreet.integrations.transformers.places import places_of

    for place in places_of(model):
        assert place.context_norm is model.model.encoder.layers[-1].final_layer_norm
        assert "self_attn_layer_norm" in next(
            name for name, each in model.named_modules() if each is place.query_norm
        )


def test_a_release_of_another_model_is_refused(tmp_path):
    model = tiny_models.model("t5")
    path = tmp_path / "context.safetensors"
    release(privatize(copy.deepcopy(model), encoded(model, "t5")[0], **FAST), path)
    for other in (tiny_models.model("bart"), tiny_models.model("t5", seed=3)):
        with pytest.warns(discreet.NotPrivateWarning), pytest.raises(discreet.InvalidInput):
            attach(other, path)
    memory = discreet.build(np.eye(3), np.eye(3), scale=1.0, **SPEND)
    memory.save(tmp_path / "memory.safetensors")
    with pytest.raises(discreet.CorruptRelease):
        attach(model, tmp_path / "memory.safetensors")


@pytest.mark.parametrize("name", ["t5", "fsmt"])
@torch.no_grad()
def test_a_release_that_fits_some_layers_only_changes_none(name, tmp_path):
    model, path = tiny_models.model(name), tmp_path / "context.safetensors"
    release(privatize(copy.deepcopy(model), encoded(model, name)[0], **FAST), path)
    *_, last = [
        module
        for layer, module in model.named_modules()
        if layer.endswith(("EncDecAttention", "encoder_attn"))
    ]
    for weight in last.parameters():
        weight.mul_(2)
    before = [(layer, type(module)) for layer, module in model.named_modules()]
    with pytest.warns(discreet.NotPrivateWarning), pytest.raises(discreet.InvalidInput):
        attach(model, path)
    assert [(layer, type(module)) for layer, module in model.named_modules()] == before


def outputs_of(model, name, **inputs):
    """What one module of a model makes in a call."""
    seen = []
    hook = model.get_submodule(name).register_forward_hook(lambda *each: seen.append(each[-1]))
    with torch.no_grad():
        model(**inputs)
    hook.remove()
    return seen[0][0] if isinstance(seen[0], tuple) else seen[0]


@pytest.mark.parametrize("name", ["t5", "bart", "fsmt"])
def test_each_layer_says_how_far_its_output_is_off(name):
    """The first layer: only there are queries the same with noise and without."""
    rows, _ = encoded(tiny_models.model(name), name)
    context = rows.reshape(-1, rows.shape[-1]).repeat(40, 1)
    inputs = {"decoder_input_ids": words(2)}
    options = {"features": 400, **SPEND, "epsilon": 4.0}
    silent = privatize(tiny_models.model(name), context, entropy=Silent(), **options)
    off = []
    for seed in range(6):
        model = privatize(tiny_models.model(name), context, entropy=Seeded(seed), **options)
        found = layer_stderr(model, **inputs)
        assert list(found) == model.private_context.notes["places"].split(", ")
        layer = next(iter(found))
        noisy, plain = (outputs_of(each, layer, **inputs) for each in (model, silent))
        if found[layer].shape != noisy.shape:  # a model with time before the batch
            noisy, plain = noisy.transpose(0, 1), plain.transpose(0, 1)
        assert found[layer].shape == noisy.shape
        off.append(((noisy - plain) / found[layer]).square().mean().item())
    assert 2 / 3 < np.sqrt(np.mean(off)) < 3 / 2
    with pytest.raises(discreet.InvalidInput, match="private context"):
        layer_stderr(tiny_models.model(name), **inputs)


def test_whoever_builds_or_attaches_is_told_once_which_layers_are_noise(tmp_path):
    with pytest.warns(discreet.MostlyNoiseWarning, match=r"2 of 2 layers .*`calibrate`") as told:
        model = privatize(
            tiny_models.model("t5"),
            encoded(tiny_models.model("t5"), "t5")[0],
            **{**FAST, "entropy": Seeded(0)},
        )
    assert len(told) == 1
    memories = model.private_context
    assert list(memories.observed_signal_to_error) == memories.notes["places"].split(", ")
    for name, ratio in memories.observed_signal_to_error.items():
        assert ratio < 1
        assert re.search(rf"{name}: [\d.e-]+, mostly noise", str(memories.card))
    release(model, tmp_path / "context.safetensors")
    with pytest.warns() as told:
        attach(tiny_models.model("t5"), tmp_path / "context.safetensors")
    kinds = [each.category for each in told]
    assert sorted(kinds, key=str) == [discreet.MostlyNoiseWarning, discreet.NotPrivateWarning]


@pytest.mark.filterwarnings("ignore::discreet.MostlyNoiseWarning")
class TestBudget(CountedBuilds):
    def models(self):
        return [tiny_models.model("t5")]

    def build(self, models, **options):
        [model] = models
        rows, _ = encoded(tiny_models.model("t5"), "t5")
        return [privatize(model, rows, features=100, **options).private_context]
