"""Where a diffusion model attends to its context, and what it does there in place of attending.

Contexts are texts, and the images of an IP-Adapter.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
import torch
from diffusers import ModelMixin
from diffusers.models.attention_processor import Attention
from torch import nn
from torch.nn import functional

from discreet.errors import InvalidInput
from discreet.nn import model as any_model
from discreet.nn.heads import HeadMap, Heads
from discreet.nn.reading import PrivateHeads, linear_weight

# The ways to attend that a release can stand in for.
_KNOWN = (
    "AttnProcessor",
    "AttnProcessor2_0",
    "IPAdapterAttnProcessor",
    "IPAdapterAttnProcessor2_0",
    "PrivateProcessor",
)


class Kind(StrEnum):
    """Which of a model's contexts."""

    TEXT = "text"
    IMAGE = "image"


@dataclass(frozen=True, eq=False, kw_only=True)
class Place(any_model.Place):
    """One cross-attention module of a model, for one of its contexts.

    Attributes:
        name: under which the model knows the module.
        module: itself.
        query_norm: the norm layer whose output queries are made of, if there is one.
        context_norm: the norm layer that rows of the context come from, or their largest length.
        key: makes keys of the context.
        value: makes values of it.
    """

    key: nn.Linear
    value: nn.Linear

    def heads(self) -> Heads:
        """Return the module's public weights, head by head."""
        attention: Any = self.module
        count = int(attention.heads)
        query, key, value = (
            HeadMap.of(each.weight, each.bias, count)
            for each in (attention.to_q, self.key, self.value)
        )
        own = self.key is attention.to_k  # an IP-Adapter's keys are not normalised
        return Heads(
            query.normalised_by(attention.norm_q),
            key.normalised_by(attention.norm_k if own else None),
            value,
            scaling=np.array(query.dim**-0.5),
        )


def places_of(
    model: ModelMixin, kind: Kind, context_norm: nn.Module | float | None = None
) -> list[Place]:
    """Return the modules that attend to one of a model's contexts, in their order.

    Args:
        model: of diffusers.
        kind: which context.
        context_norm: the norm layer that its rows come from, or a bound on their length; None for
            √D, which a norm layer without weights gives.
    """
    modules: Any = list(model.named_modules())
    if any(getattr(each, "add_k_proj", None) is not None for _, each in modules):
        raise InvalidInput(
            f"Expected a model with cross-attention, and {type(model).__name__} has joint "
            "attention: the context's own keys change with each picture and step, so nothing of it "
            "can be fixed beforehand, and no release can stand in for it."
        )
    found = [
        (name, each)
        for name, each in modules
        if isinstance(each, Attention) and each.is_cross_attention
    ]
    if not found:
        raise InvalidInput(f"Expected {type(model).__name__} to have cross-attention.")
    blocks = dict(modules)
    made = [_place(name, each, blocks[name.rpartition(".")[0]], kind) for name, each in found]
    return (
        made
        if context_norm is None
        else [replace(each, context_norm=context_norm) for each in made]
    )


def _place(name: str, module: Attention, block: nn.Module, kind: Kind) -> Place:
    attention: Any = module
    processor = attention.get_processor()
    if type(processor).__name__ not in _KNOWN:
        raise InvalidInput(
            f"Expected {name} to attend in a way that is known, not by "
            f"{type(processor).__name__}: a release answers plain softmax attention only."
        )
    if attention.norm_cross:
        raise InvalidInput(f"Expected {name} to take its context as it is, without a norm layer.")
    key, value = attention.to_k, attention.to_v
    if kind is Kind.IMAGE:
        if not hasattr(processor, "to_k_ip"):
            raise InvalidInput("Expected a model with an IP-Adapter, which attends to images.")
        if len(processor.to_k_ip) != 1:
            raise InvalidInput("Expected one IP-Adapter, not several.")
        key, value = processor.to_k_ip[0], processor.to_v_ip[0]
    return Place(
        name=name,
        module=module,
        query_norm=_query_norm(block, module),
        context_norm=float(np.sqrt(key.in_features)),
        key=key,
        value=value,
    )


def _query_norm(block: nn.Module, module: nn.Module) -> nn.Module | None:
    """Return the layer norm before a block's second attention, where the block applies it there."""
    norm = getattr(block, "norm2", None)
    applied = getattr(block, "norm_type", None) != "ada_norm_single"
    second = getattr(block, "attn2", None) is module
    return norm if second and applied and isinstance(norm, nn.LayerNorm) else None


class PrivateProcessor(nn.Module):
    """An attention processor: private heads for one context or both, exact attention for the rest.

    Post-processing only. The public items of a batch come first: if the model is called with a
    context for the first n items of a batch, these attend to it exactly, and the others to the
    release. `guided` says that the first half of each batch is public (the negative prompts of
    classifier-free guidance), whatever length the context has.

    Args:
        before: the processor that was there; the weights of an IP-Adapter are its own.
        guided: whether batches are pairs of a public and a private half.
    """

    def __init__(self, before: Any, *, guided: bool = False) -> None:  # noqa: ANN401
        super().__init__()
        # Under the names that a model's file has for them.
        self.to_k_ip = getattr(before, "to_k_ip", None)
        self.to_v_ip = getattr(before, "to_v_ip", None)
        self.scale = getattr(before, "scale", [1.0])
        self.guided = guided
        self.text: PrivateHeads | None = getattr(before, "text", None)
        self.image: PrivateHeads | None = getattr(before, "image", None)

    def put(self, kind: Kind, heads: PrivateHeads) -> None:
        """Answer for one of the contexts from now on."""
        setattr(self, kind.value, heads)

    def behind(self, attn: Any, kind: Kind) -> tuple[PrivateHeads, torch.Tensor]:  # noqa: ANN401
        """Return the heads of one of the contexts, and the weight that makes outputs of answers."""
        heads: PrivateHeads = getattr(self, kind.value)
        weight = linear_weight(attn.to_out[0], heads.width) / attn.rescale_output_factor
        return heads, weight if kind is Kind.TEXT else weight * self.scale[0]

    def forward(
        self,
        attn: Any,  # noqa: ANN401 (an Attention, which is typed as a plain module)
        hidden_states: torch.Tensor,
        encoder_hidden_states: Any = None,  # noqa: ANN401 (a tensor, or a pair with images)
        attention_mask: torch.Tensor | None = None,
        temb: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Return what an attention module returns."""
        residual = hidden_states
        states, images = _both(encoder_hidden_states)
        if attn.spatial_norm is not None:
            hidden_states = attn.spatial_norm(hidden_states, temb)
        square = hidden_states.shape if hidden_states.ndim == 4 else None
        if square is not None:
            hidden_states = hidden_states.flatten(2).transpose(1, 2)
        if attn.group_norm is not None:
            hidden_states = attn.group_norm(hidden_states.transpose(1, 2)).transpose(1, 2)
        query = attn.to_q(hidden_states).unflatten(-1, (attn.heads, -1)).transpose(1, 2)
        if attn.norm_q is not None:
            query = attn.norm_q(query)
        out = self._attended(attn, query, self.text, (attn.to_k, attn.to_v), states, attention_mask)
        if self.to_k_ip is not None:
            out = out + self._of_images(attn, query, images)
        out = out.transpose(1, 2).flatten(2)
        out = attn.to_out[1](attn.to_out[0](out))
        if square is not None:
            out = out.transpose(-1, -2).reshape(square)
        if attn.residual_connection:
            out = out + residual
        answer: torch.Tensor = out / attn.rescale_output_factor
        return answer

    def _of_images(self, attn: Attention, query: torch.Tensor, images: Any) -> torch.Tensor:  # noqa: ANN401
        """Return what an IP-Adapter adds, by its scale."""
        total = torch.zeros_like(query)
        for index, scale in enumerate(self.scale):
            if isinstance(scale, list):
                raise InvalidInput("Expected one scale for an IP-Adapter: masks are not supported.")
            states = None if images is None else images[index]
            maps = (self.to_k_ip[index], self.to_v_ip[index])  # type: ignore[index]
            total = total + scale * self._attended(attn, query, self.image, maps, states, None)
        return total

    def _attended(  # noqa: PLR0917
        self,
        attn: Any,  # noqa: ANN401
        query: torch.Tensor,
        private: PrivateHeads | None,
        maps: tuple[nn.Module, nn.Module],
        states: torch.Tensor | None,
        mask: torch.Tensor | None,
    ) -> torch.Tensor:
        """Return attention of shape (batch, heads, m, d): exact for public items, then private."""
        batch = len(query)
        public = batch if private is None else self._public(batch, states)
        if public and states is None:
            raise InvalidInput("Expected encoder_hidden_states for the public items of a batch.")
        parts = []
        if public and states is not None:
            given = states[:public].flatten(1, -2)
            key, value = (
                each(given).unflatten(-1, (attn.heads, -1)).transpose(1, 2) for each in maps
            )
            if attn.norm_k is not None and maps[0] is attn.to_k:
                key = attn.norm_k(key)
            if mask is not None:
                mask = attn.prepare_attention_mask(mask[:public], key.shape[2], public)
                mask = mask.view(public, attn.heads, -1, mask.shape[-1])
            parts.append(
                functional.scaled_dot_product_attention(query[:public], key, value, attn_mask=mask)
            )
        if public < batch and private is not None:
            parts.append(private(query[public:]))
        return torch.cat(parts)

    def _public(self, batch: int, states: torch.Tensor | None) -> int:
        """Return how many items of a batch, the first, attend to a public context."""
        if self.guided:
            if batch % 2:
                raise InvalidInput(
                    "Expected batches of pairs: the model was made with guided=True."
                )
            return batch // 2
        return 0 if states is None or len(states) == batch else len(states)


def _both(states: Any) -> tuple[torch.Tensor | None, Any]:  # noqa: ANN401
    """Return the text's states, and the images' if there are any."""
    return states if isinstance(states, tuple) else (states, None)
