"""Bounds on a speech recogniser's logits, and what they do: for `pretrained_speech.py`.

Exact attention can be clipped as a private layer clips, and queries and keys can be counted: how
many frames like these a layer would need.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from scipy.special import logsumexp
from torch import nn

from discreet.integrations.transformers.places import Place
from discreet.nn import Bounds


def projected(
    model: nn.Module, place: Place, given: Mapping[str, torch.Tensor], bounds: Bounds
) -> tuple[np.ndarray, np.ndarray]:
    """Return queries and keys of a layer, shape (heads, n, d), as private heads see them."""
    found = []
    handles = [
        place.projection(index).register_forward_hook(lambda *each: found.append(each[-1][0]))
        for index in (0, 1)
    ]
    with torch.no_grad():
        model(**given, use_cache=False)
    for handle in handles:
        handle.remove()
    heads = len(bounds.key_norm)
    queries, keys = (
        each.double().unflatten(-1, (heads, -1)).transpose(0, 1).numpy() for each in found
    )
    keys = keys - bounds.key_centre[:, None]
    return queries @ bounds.query_map.swapaxes(1, 2), keys @ bounds.key_map.swapaxes(1, 2)


@contextmanager
def clipped(
    places: Sequence[Place], bounds: dict[str, Bounds], cap: float | None
) -> Iterator[None]:
    """Clip queries, keys and values of exact attention for a while, as a private layer does."""
    handles = []
    for place in places:
        within = bounds[place.name].capped(place.heads().scaling, cap)
        # The map, its inverse (both transposed), the centre and the longest length of each.
        queries = (within.query_map, within.key_map.swapaxes(1, 2), 0, within.query_norm)
        keys = (within.key_map, within.query_map.swapaxes(1, 2), within.key_centre, within.key_norm)
        eye = np.eye(within.value_centre.shape[1])[None]
        values = (eye, eye, within.value_centre, within.value_norm)
        handles += [
            place.projection(index).register_forward_hook(clip_hook(*each))
            for index, each in enumerate((queries, keys, values))
        ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def clip_hook(turn: np.ndarray, back: np.ndarray, centre: np.ndarray, longest: np.ndarray):  # noqa: ANN201 (of torch)
    """Return what clips the output of a projection, head by head."""
    turn, back, centre, longest = (
        torch.as_tensor(each, dtype=torch.float32) for each in (turn, back, centre, longest)
    )

    def clip(_module: nn.Module, _inputs: object, output: torch.Tensor) -> torch.Tensor:
        by_head = output.unflatten(-1, (len(longest), -1)) - centre
        turned = (turn @ by_head[..., None])[..., 0]
        length = turned.norm(dim=-1, keepdim=True)
        turned = turned * (longest[:, None] / length.clamp(min=1e-9)).clamp(max=1)
        return ((back @ turned[..., None])[..., 0] + centre).flatten(-2)

    return clip


def shorter(rows: np.ndarray, longest: np.ndarray) -> np.ndarray:
    """Return rows of each head, clipped."""
    length = np.linalg.norm(rows, axis=-1, keepdims=True)
    return rows * np.minimum(longest[:, None, None] / np.maximum(length, 1e-9), 1)


def frames_needed(
    queries: np.ndarray, keys: np.ndarray, bounds: Bounds, scaling: np.ndarray, at_largest: float
) -> float:
    """Return how many frames like these make an answer clear of noise: the median over queries.

    An answer is clear of noise where its denominator is five standard errors. For a query of the
    largest length that takes the weight of `at_largest` rows at the largest logit t, e^t each; the
    noise of a shorter query is e^(t·(1 - ‖q‖²)/2) times smaller. Rows really weigh e^logit.
    """
    asked, rows = shorter(queries, bounds.query_norm), shorter(keys, bounds.key_norm)
    logits = scaling[:, None, None] * asked @ rows.swapaxes(1, 2)
    length = np.linalg.norm(asked, axis=-1) / bounds.query_norm[:, None]
    largest = bounds.largest_logits(scaling)[:, None]
    noise = np.log(at_largest) + largest / 2 * (1 + length**2)
    weight = logsumexp(logits, axis=-1) - np.log(logits.shape[-1])
    return float(np.exp(np.median(noise - weight)))
