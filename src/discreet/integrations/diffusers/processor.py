"""What a diffusion model's cross-attention does in place of attending to a private context."""

from typing import Any

import torch
from diffusers.models.attention_processor import Attention
from torch import nn
from torch.nn import functional

from discreet.errors import InvalidInput
from discreet.integrations.diffusers.places import Kind
from discreet.nn.reading import PrivateHeads, linear_weight


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
