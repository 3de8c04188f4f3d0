"""Where a diffusion model attends to its context: texts, and the images of an IP-Adapter."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from diffusers import ModelMixin
from diffusers.models.attention_processor import Attention
from torch import nn

from discreet.errors import InvalidInput
from discreet.nn.heads import HeadMap, Heads

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


@dataclass(frozen=True, eq=False)
class Place:
    """One cross-attention module of a model, for one of its contexts.

    Attributes:
        name: under which the model knows the module.
        module: itself.
        key: makes keys of the context.
        value: makes values of it.
        query_norm: the norm layer whose output queries are made of, if there is one.
    """

    name: str
    module: Attention
    key: nn.Linear
    value: nn.Linear
    query_norm: nn.Module | None

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


def places_of(model: ModelMixin, kind: Kind) -> list[Place]:
    """Return the modules that attend to one of a model's contexts, in their order."""
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
    return [_place(name, each, blocks[name.rpartition(".")[0]], kind) for name, each in found]


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
    return Place(name, module, key, value, _query_norm(block, module))


def _query_norm(block: nn.Module, module: nn.Module) -> nn.Module | None:
    """Return the layer norm before a block's second attention, where the block applies it there."""
    norm = getattr(block, "norm2", None)
    applied = getattr(block, "norm_type", None) != "ada_norm_single"
    second = getattr(block, "attn2", None) is module
    return norm if second and applied and isinstance(norm, nn.LayerNorm) else None
