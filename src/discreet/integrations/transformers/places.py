"""Where a model attends to its context, and what it does there: found by looking and by trying.

Names of projections differ between families of models, and so does where the norm layer stands
whose output is asked with. The first is a short list of names; the second is seen in a trial run of
the decoder on nothing.

`install` puts a release there: what its modules then do in place of cross-attention.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_outputs import BaseModelOutput
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from discreet._validate import warn
from discreet.errors import InvalidInput
from discreet.nn import model as any_model
from discreet.nn.building import in_evaluation
from discreet.nn.heads import HeadMap, Heads
from discreet.nn.model import answering, names_of
from discreet.nn.reading import PrivateHeads, linear_weight
from discreet.readers.attention.bundle import Memories

# What the attribute with cross-attention is called: T5, BART and its kin, Mllama and ProphetNet.
_NAMES = ("EncDecAttention", "encoder_attn", "cross_attn")

# What projections are called, for queries, keys, values and the output.
_PROJECTIONS = (
    ("q", "k", "v", "o"),
    ("q_proj", "k_proj", "v_proj", "out_proj"),
    ("q_proj", "k_proj", "v_proj", "o_proj"),
    ("query_proj", "key_proj", "value_proj", "out_proj"),
)

# What the decoder is given in the trial run: so many sequences of so many tokens.
_BATCH, _TOKENS = 2, 3

_HEADS = "private_heads"
_PREFIX = "discreet_"

# What the encoder would be given; a private model has no use for it.
_ENCODER_INPUTS = ("input_ids", "input_values", "input_features", "inputs", "inputs_embeds")


@dataclass
class Nothing(BaseModelOutput):
    """An encoder's output with nothing in it, in the form that every family of models takes."""

    attention_mask: torch.Tensor | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Place(any_model.Place):
    """One cross-attention module of a model.

    Attributes:
        name: under which the model knows it.
        module: itself.
        query_norm: the norm layer whose output queries are made of, if one was seen.
        context_norm: the norm layer whose output keys and values are made of, likewise.
        projections: the names of what makes queries, keys, values and the output.
        returned: how many values the module returns.
        time_first: whether its inputs have time before the batch.
    """

    projections: tuple[str, str, str, str]
    returned: int
    time_first: bool

    @property
    def in_interface(self) -> bool:
        """Whether it asks transformers' attention interface what to do."""
        return hasattr(sys.modules[type(self.module).__module__], "ALL_ATTENTION_FUNCTIONS")

    def projection(self, index: int) -> nn.Linear:
        """Return what makes queries (0), keys (1), values (2) or the output (3)."""
        return getattr(self.module, self.projections[index])  # type: ignore[no-any-return]

    @property
    def head_dim(self) -> int:
        """The width of one head."""
        for name in ("key_value_proj_dim", "head_dim"):
            if hasattr(self.module, name):
                return int(getattr(self.module, name))
        for name in ("num_heads", "num_attn_heads", "n_heads"):
            if hasattr(self.module, name):
                return int(self.projection(0).out_features // getattr(self.module, name))
        raise InvalidInput(f"Expected {self.name} to say how many heads it has.")

    @property
    def scaling(self) -> float:
        """Logit = scaling·⟨query, key⟩."""
        return float(getattr(self.module, "scaling", self.head_dim**-0.5))

    def heads(self) -> Heads:
        """Return the module's public weights, head by head."""
        query, key, value = (
            HeadMap.of(
                self.projection(index).weight,
                self.projection(index).bias,
                self.projection(index).out_features // self.head_dim,
            )
            for index in range(3)
        )
        return Heads(
            query.normalised_by(getattr(self.module, "q_norm", None)),
            key.normalised_by(getattr(self.module, "k_norm", None)),
            value,
            scaling=self.scaling,  # type: ignore[arg-type]
        )


def decoder_of(model: PreTrainedModel) -> nn.Module:
    """Return the part of a model that attends to a context."""
    decoder: nn.Module = model.get_decoder()
    return decoder


def projections_of(module: nn.Module) -> tuple[str, str, str, str] | None:
    """Return the names of what makes queries, keys, values and outputs; None if none is known."""
    for names in _PROJECTIONS:
        if all(isinstance(getattr(module, each, None), nn.Linear) for each in names):
            return names
    return None


def places_of(model: PreTrainedModel) -> list[Place]:
    """Return all cross-attention modules of a model, in their order."""
    found = [
        (name, module, projections)
        for name, module in model.named_modules()
        if name.rpartition(".")[2] in _NAMES
        if (projections := projections_of(module)) is not None
    ]
    if not found:
        raise InvalidInput(
            f"Expected a model with cross-attention, and {type(model).__name__} has none that is "
            f"known ({', '.join(_NAMES)}). Models that put their context into the prompt have "
            "self-attention only: nothing of it can be fixed beforehand."
        )
    if any(getattr(module, "attn_logit_softcapping", None) for _, module, _ in found):
        raise InvalidInput("Expected plain softmax, and this model bends its logits (softcapping).")
    width = getattr(found[0][1], found[0][2][1]).in_features
    seen = _Trial.of(model, [module for _, module, _ in found], width)
    context_norm = _context_norm(model)
    return [
        Place(
            name=name,
            module=module,
            projections=projections,
            query_norm=seen.norms.get(module),
            context_norm=context_norm,
            returned=seen.returned.get(module, 2),
            time_first=seen.time_first.get(module, False),
        )
        for name, module, projections in found
    ]


@dataclass(eq=False)
class _Trial:
    """What each module got and returned in a run of the decoder on nothing."""

    norms: dict[nn.Module, nn.Module] = field(default_factory=dict)
    returned: dict[nn.Module, int] = field(default_factory=dict)
    time_first: dict[nn.Module, bool] = field(default_factory=dict)

    @classmethod
    def of(cls, model: PreTrainedModel, modules: list[nn.Module], width: int) -> "_Trial":
        trial, decoder = cls(), decoder_of(model)
        weight = next(decoder.parameters())
        ids = torch.zeros((_BATCH, _TOKENS), dtype=torch.long, device=weight.device)
        context = torch.zeros((_BATCH, 1, width), dtype=weight.dtype, device=weight.device)
        with _norm_outputs(decoder) as outputs, ExitStack() as stack, in_evaluation(model):
            for each in modules:
                asked = each.register_forward_pre_hook(trial._asked(outputs), with_kwargs=True)
                stack.callback(asked.remove)
                stack.callback(each.register_forward_hook(trial._answered).remove)
            if model.config.is_encoder_decoder:
                given = Nothing(last_hidden_state=context)
                model(encoder_outputs=given, decoder_input_ids=ids, use_cache=False)
            else:
                decoder(input_ids=ids, use_cache=False, cross_attention_states=context)
        return trial

    def _asked(self, outputs: "_Outputs") -> Callable[..., None]:
        def note(module: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
            hidden = hidden_states(inputs, named)
            if isinstance(hidden, torch.Tensor):
                norm = _maker(hidden, outputs)
                if norm is not None:
                    self.norms[module] = norm
                self.time_first[module] = tuple(hidden.shape[:2]) == (_TOKENS, _BATCH)

        return note

    def _answered(self, module: nn.Module, _inputs: object, output: object) -> None:
        self.returned[module] = len(output) if isinstance(output, tuple) else 1


def hidden_states(inputs: tuple[Any, ...], named: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Return what an attention module asks with, under whichever name a model passes it on."""
    return inputs[0] if inputs else named.get("hidden_states", named.get("query"))


# What norm layers made, in their order, and which of them.
_Outputs = list[tuple[torch.Tensor, nn.Module]]


@contextmanager
def _norm_outputs(module: nn.Module) -> Iterator[_Outputs]:
    """Note what the norm layers of a module make for a while, without gradients."""
    outputs: _Outputs = []

    def note(norm: nn.Module, _inputs: object, output: torch.Tensor) -> None:
        outputs.append((output, norm))

    with ExitStack() as stack, torch.no_grad():
        for each in module.modules():
            name = type(each).__name__.lower()
            if ("layernorm" in name or "rmsnorm" in name) and not list(each.children()):
                stack.callback(each.register_forward_hook(note).remove)
        yield outputs


def _maker(tensor: torch.Tensor, outputs: _Outputs) -> nn.Module | None:
    """Return the last norm layer that a tensor is the output of, the same numbers in one place."""
    for output, norm in reversed(outputs):
        if output.data_ptr() == tensor.data_ptr() and output.numel() == tensor.numel():
            return norm
    return None


def _context_norm(model: PreTrainedModel) -> nn.Module | None:
    """Return the norm layer whose output is the encoder's, as seen in a trial run; None if none is.

    Tokens of nothing, or silence; an encoder that takes something else ends without an answer.
    """
    if not model.config.is_encoder_decoder:
        return None
    encoder = model.get_encoder()
    try:
        with _norm_outputs(encoder) as outputs, in_evaluation(encoder):
            return _maker(encoder(**_silence(model, next(encoder.parameters())))[0], outputs)
    except (AttributeError, RuntimeError, TypeError, ValueError):
        return None


def _silence(model: PreTrainedModel, weight: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return something for an encoder to encode."""
    name = str(model.main_input_name)
    if name == "input_features":
        config = model.config
        return {name: weight.new_zeros((1, config.num_mel_bins, 2 * config.max_source_positions))}
    if name == "input_values":
        return {name: weight.new_zeros((1, 16_000))}
    return {name: torch.zeros((1, _TOKENS), dtype=torch.long, device=weight.device)}


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
