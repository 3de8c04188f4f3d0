"""A model whose context is a release: what its modules do in place of cross-attention."""

import sys
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch
from torch import nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from discreet._validate import warn
from discreet.errors import InvalidInput
from discreet.integrations.transformers.places import (
    Nothing,
    Place,
    decoder_of,
    hidden_states,
    places_of,
    projections_of,
)
from discreet.nn.model import answering, names_of
from discreet.nn.reading import PrivateHeads, linear_weight
from discreet.readers.attention.bundle import Memories

_HEADS = "private_heads"
_PREFIX = "discreet_"

# What the encoder would be given; a private model has no use for it.
_ENCODER_INPUTS = ("input_ids", "input_values", "input_features", "inputs", "inputs_embeds")


def check_fresh(model: PreTrainedModel) -> None:
    """Raise `InvalidInput` if a model has a private context already."""
    if getattr(model, "private_context", None) is not None:
        raise InvalidInput(
            "Expected a model without a private context: two releases would be on one card. "
            "Begin with a fresh model."
        )


def install(model: PreTrainedModel, memories: Memories) -> None:
    """Put a release in place of the context of a model.

    Self-attention stays what it was. Layers that the release does not name still attend to what the
    encoder gives them.
    """
    check_fresh(model)
    places = places_of(model)
    found = answering(model, memories, places)
    for place, private in found:
        _put(model, place, private)
    if any(place.in_interface for place, _ in found):
        _use_interface(model)
    model.private_context = memories
    if len(found) == len(places):
        _needs_no_encoder(model)


def private_context(model: PreTrainedModel) -> Memories:
    """Return the release of a model, or raise `InvalidInput`."""
    memories: Memories | None = getattr(model, "private_context", None)
    if memories is None:
        raise InvalidInput("Expected a model that `privatize` or `attach` gave a private context.")
    return memories


def private_layers(model: PreTrainedModel) -> dict[str, tuple[PrivateHeads, torch.Tensor]]:
    """Return the private heads of a model, and the weight behind them, by the layer's name."""
    found = {}
    for name in names_of(private_context(model)):
        module: Any = model.get_submodule(name)
        heads: PrivateHeads = module.private_heads
        names = projections_of(module)
        if names is None:  # somebody has replaced them since
            raise InvalidInput(f"Expected {name} to have the projections that it had.")
        found[name] = (heads, linear_weight(getattr(module, names[3]), heads.width))
    return found


def _put(model: PreTrainedModel, place: Place, private: PrivateHeads) -> None:
    if place.in_interface:
        place.module.add_module(_HEADS, private)
        return
    parent, _, name = place.name.rpartition(".")
    setattr(model.get_submodule(parent), name, PrivateModule(place, private))


class PrivateModule(nn.Module):
    """In place of a cross-attention module that does not ask the attention interface.

    Args:
        place: what the module is.
        private: what answers in its stead.
    """

    def __init__(self, place: Place, private: PrivateHeads) -> None:
        super().__init__()
        # Layers look at some of their attention's own numbers and names.
        plain = (bool, int, float, str)
        vars(self).update({k: v for k, v in vars(place.module).items() if isinstance(v, plain)})
        # Under the names that a model's file has for them.
        for each in place.projections:
            self.add_module(each, getattr(place.module, each))
        self.private_heads = private
        self._query, self._out = place.projections[0], place.projections[3]
        self._returned, self._time_first = place.returned, place.time_first
        self._num_heads = private.joint.heads * private.repeats

    def forward(self, *inputs: torch.Tensor, **named: Any) -> Any:  # noqa: ANN401 (as the other did)
        """Return private attention in the form that the replaced module returned it."""
        hidden = hidden_states(inputs, named)
        if hidden is None:
            raise InvalidInput("Expected hidden states to ask with.")
        rows = hidden.transpose(0, 1) if self._time_first else hidden
        asked = self.get_submodule(self._query)(rows)
        asked = asked.unflatten(-1, (self._num_heads, -1)).transpose(1, 2)
        out = self.private_heads(asked).transpose(1, 2).flatten(2)
        out = self.get_submodule(self._out)(out)
        out = out.transpose(0, 1) if self._time_first else out
        return (out, *(None,) * (self._returned - 1)) if self._returned > 1 else out


def _use_interface(model: PreTrainedModel) -> None:
    """Make the model's attention modules ask `_attend`, with the masks that they had before."""
    before = str(model.config._attn_implementation)  # noqa: SLF001 (transformers has no other way)
    if before.startswith(_PREFIX):
        return
    name = _PREFIX + before
    AttentionInterface.register(name, _attending(before))
    # Without this every mask would silently become None.
    AttentionMaskInterface.register(name, ALL_MASK_ATTENTION_FUNCTIONS[before])
    model.set_attn_implementation(name)


def _attending(before: str) -> Callable[..., Any]:
    """Return what modules call: private heads where there are some, else what was there before."""

    def attend(
        module: nn.Module,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attention_mask: torch.Tensor | None,
        *rest: Any,  # noqa: ANN401
        **named: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        private = module._modules.get(_HEADS)  # noqa: SLF001
        if private is not None:
            return _private(module, private, query, named.get("scaling")), None
        usual = _usual(module, before)
        return usual(module, query, key, value, attention_mask, *rest, **named)

    return attend


def _usual(module: nn.Module, before: str) -> Callable[..., Any]:
    """Return what a module without private heads did before."""
    if before == "eager":  # each family of models has its own
        found: Callable[..., Any] = sys.modules[type(module).__module__].eager_attention_forward
        return found
    return ALL_ATTENTION_FUNCTIONS[before]  # type: ignore[no-any-return]


def _private(
    module: nn.Module, private: nn.Module, query: torch.Tensor, scaling: float | None
) -> torch.Tensor:
    """Return answers of shape (batch, m, heads, d) to queries (batch, heads, m, d).

    Some models scale queries before they ask, and say so by another `scaling`; some pad them.
    """
    own = float(getattr(module, "scaling", 1.0))
    given = own if scaling is None else scaling
    width = int(getattr(module, "key_value_proj_dim", getattr(module, "head_dim", query.shape[-1])))
    asked = query[..., :width]
    out = private(asked if given == own else asked * (given / own)).transpose(1, 2)
    return nn.functional.pad(out, (0, query.shape[-1] - width)).contiguous()


class PrivateGeneration:
    """`generate` without a context: it is in the release."""

    private_context: ClassVar[Memories]

    def generate(self, inputs: Any = None, **named: Any) -> Any:  # noqa: ANN401
        """Return what the model's own `generate` returns; no encoder input is needed, or used."""
        named = _without_inputs(named if inputs is None else {"inputs": inputs, **named})
        count = _count(named)
        if self.config.is_encoder_decoder:  # type: ignore[attr-defined]
            named["encoder_outputs"] = _nothing(self, count)
        return super().generate(**named)  # type: ignore[misc]


def _needs_no_encoder(model: PreTrainedModel) -> None:
    """Let a model run without an encoder's output: on one token of nothing."""
    if model.config.is_encoder_decoder:
        model.register_forward_pre_hook(_before_model, with_kwargs=True)
        if not isinstance(model, PrivateGeneration) and hasattr(model, "generate"):
            kind = type(model)
            model.__class__ = type(kind.__name__, (PrivateGeneration, kind), {})
    else:
        decoder_of(model).register_forward_pre_hook(_before_decoder, with_kwargs=True)


def _before_model(
    model: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Give an encoder-decoder nothing to attend to."""
    if named.get("encoder_outputs") is None:
        if inputs:
            named, inputs = {"inputs": inputs[0], **named}, ()
        named = _without_inputs(named)
        named["encoder_outputs"] = _nothing(model, _count(named))
    return inputs, named


def _before_decoder(
    decoder: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Give a decoder-only model with cross-attention nothing to attend to: or it skips it."""
    if named.get("cross_attention_states") is None:
        embedded, ids = named.get("inputs_embeds"), named.get("input_ids")
        first = embedded if ids is None else ids
        count = len(inputs[0] if first is None else first)
        weight = next(decoder.parameters())
        shape = (count, 1, decoder.config.hidden_size)  # type: ignore[union-attr]
        named["cross_attention_states"] = weight.new_zeros(shape)  # type: ignore[arg-type]
        for name in ("cross_attention_mask", "full_text_row_masked_out_mask"):
            named[name] = None
    return inputs, named


def _without_inputs(named: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments without those for the encoder; whoever gave some is told."""
    given = [name for name in _ENCODER_INPUTS if named.get(name) is not None]
    if given:
        warn(
            f"{given[0]} is not used: the context of this model is its release. What the model "
            "should go on from is decoder_input_ids.",
            UserWarning,
        )
    left = (*_ENCODER_INPUTS, "attention_mask")
    return {name: value for name, value in named.items() if name not in left}


def _count(named: Mapping[str, Any]) -> int:
    """Return how many sequences a call is about."""
    for name in ("decoder_input_ids", "decoder_inputs_embeds", "labels", "encoder_outputs"):
        value = named.get(name)
        if value is not None:
            return len(value[0]) if name == "encoder_outputs" else len(value)
    return 1


def _nothing(model: Any, count: int) -> Nothing:  # noqa: ANN401 (of transformers)
    weight = next(decoder_of(model).parameters())
    width = getattr(model.config, "d_model", None) or model.config.hidden_size
    return Nothing(last_hidden_state=weight.new_zeros((count, 1, int(width))))
