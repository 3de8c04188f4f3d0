"""Where a model attends to its context, and what it does there: found by looking and by trying.

Names of projections differ between families of models, and so does where the norm layer stands
whose output is asked with. The first is a short list of names; the second is seen in a trial run of
the decoder on nothing.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput

from discreet.errors import InvalidInput
from discreet.nn import model as any_model
from discreet.nn.heads import HeadMap, Heads
from discreet.nn.records import in_evaluation

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
