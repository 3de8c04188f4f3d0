"""Small random models of transformers, with logits that bounds from weights can hold."""

import logging
import os

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import pytest

torch = pytest.importorskip("torch", reason="needs the extra `torch`")
hf = pytest.importorskip("transformers", reason="needs the extra `transformers`")

logging.getLogger("transformers").setLevel(logging.ERROR)
torch.set_num_threads(1)

WIDTH, VOCABULARY = 16, 60
_TOKENS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
_LIKE_BART = {
    "d_model": WIDTH,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
    **_TOKENS,
}


def t5():
    config = hf.T5Config(
        vocab_size=VOCABULARY,
        d_model=WIDTH,
        d_kv=4,
        d_ff=32,
        num_layers=2,
        num_decoder_layers=2,
        num_heads=4,
        decoder_start_token_id=0,
    )
    return hf.T5ForConditionalGeneration(config)


def bart():
    config = hf.BartConfig(
        vocab_size=VOCABULARY, max_position_embeddings=64, forced_eos_token_id=None, **_LIKE_BART
    )
    return hf.BartForConditionalGeneration(config)


def whisper():
    config = hf.WhisperConfig(
        vocab_size=VOCABULARY,
        num_mel_bins=8,
        max_source_positions=20,
        max_target_positions=40,
        suppress_tokens=None,
        begin_suppress_tokens=None,
        **_LIKE_BART,
    )
    return hf.WhisperForConditionalGeneration(config)


def moonshine():
    config = hf.MoonshineConfig(
        vocab_size=VOCABULARY,
        hidden_size=WIDTH,
        intermediate_size=32,
        encoder_num_hidden_layers=2,
        decoder_num_hidden_layers=2,
        encoder_num_attention_heads=4,
        decoder_num_attention_heads=4,
        pad_head_dim_to_multiple_of=8,
        max_position_embeddings=64,
        **_TOKENS,
    )
    return hf.MoonshineForConditionalGeneration(config)


def fsmt():
    config = hf.FSMTConfig(
        langs=["a", "b"],
        src_vocab_size=VOCABULARY,
        tgt_vocab_size=VOCABULARY,
        max_position_embeddings=64,
        forced_eos_token_id=None,
        num_beams=1,
        **_LIKE_BART,
    )
    return hf.FSMTForConditionalGeneration(config)


def prophetnet():
    config = hf.ProphetNetConfig(
        vocab_size=VOCABULARY,
        hidden_size=WIDTH,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        num_encoder_layers=2,
        num_decoder_layers=2,
        num_encoder_attention_heads=4,
        num_decoder_attention_heads=4,
        max_position_embeddings=64,
        ngram=2,
        **_TOKENS,
    )
    return hf.ProphetNetForConditionalGeneration(config)


def mllama():
    config = hf.MllamaConfig().text_config.__class__(
        vocab_size=VOCABULARY,
        hidden_size=WIDTH,
        intermediate_size=32,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        cross_attention_layers=[1, 3],
        max_position_embeddings=64,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
    )
    return hf.MllamaForCausalLM(config)


MAKERS = {each.__name__: each for each in (t5, bart, whisper, moonshine, fsmt, prophetnet, mllama)}
_CROSS = ("EncDecAttention", "encoder_attn", "cross_attn")
_ASKING = ("q", "k", "q_proj", "k_proj", "query_proj", "key_proj")


def model(name, *, seed=0):
    """A model whose cross-attention matters and has small logits."""
    torch.manual_seed(seed)
    made = MAKERS[name]().eval()
    for path, weight in made.named_parameters():
        *_, module, layer, _ = f"..{path}".split(".")
        with torch.no_grad():
            if module in _CROSS and weight.dim() == 2:
                size = 1.0 if layer not in _ASKING else 0.25 if name == "t5" else 0.5
                weight.normal_(0, size * weight.shape[1] ** -0.5)
            elif layer in {"q_norm", "k_norm"} or ("gate" in path and weight.numel() == 1):
                weight.fill_(0.7)
    return made


def encoder_inputs(name, count=1, *, seed=1):
    """What a model's encoder is given."""
    generator = torch.Generator().manual_seed(seed)
    if name == "whisper":
        return {"input_features": torch.randn(count, 8, 40, generator=generator)}
    if name == "moonshine":
        return {"input_values": torch.randn(count, 5000, generator=generator)}
    return {"input_ids": torch.randint(3, VOCABULARY, (count, 12), generator=generator)}
