"""Bounds from public inputs: what a trained model really does, on data that anybody may see.

Private all the same: whatever private rows exceed the bounds is clipped. Biased where it clips.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from discreet import _validate
from discreet._typing import Array, Floats
from discreet.errors import InvalidInput
from discreet.nn.bounds import Bounds, balance
from discreet.nn.heads import HeadMap, Heads
from discreet.nn.projection import ExactLinear, normalised

# Directions that public inputs do not have get this share of the mean spread.
_UNSEEN = 1e-3


def calibrate(module: nn.Module, public_inputs: Iterable[Any], *, quantile: float = 0.99) -> Bounds:
    """Return bounds and centres from public inputs, for `from_multihead`.

    Never give it private inputs: bounds are released as they are. Private queries, keys and values
    that are longer are clipped: of inputs like the public ones, 1 - quantile of each.

    Args:
        module: `torch.nn.MultiheadAttention` or `BoundedAttention`.
        public_inputs: what the module would be called with: pairs (query, context) or triples
            (query, key, value), or mappings with these names; tensors whose last axis is the
            model's. One of them, or many; one tensor stands for queries and context alike.
        quantile: bounds are this quantile of the lengths that occur. The rest is clipped.
    """
    asked: list[Floats] = []
    rows: list[Floats] = []
    value_rows: list[Floats] = []
    for given in _calls(public_inputs):
        parts = (
            [given.get(name) for name in ("query", "key", "value")]
            if isinstance(given, Mapping)
            else list(given)
        )
        if len(parts) not in {2, 3} or any(part is None for part in parts[:2]):
            raise InvalidInput("Expected public_inputs to be pairs (query, context) of tensors.")
        last = parts[2] if len(parts) == 3 and parts[2] is not None else parts[1]
        for found, part in ((asked, parts[0]), (rows, parts[1]), (value_rows, last)):
            found.append(_flat(part))
    if not asked:
        raise InvalidInput("Expected public_inputs to have at least one pair.")
    return input_bounds(
        Heads.of(module),
        np.concatenate(asked),
        np.concatenate(rows),
        np.concatenate(value_rows),
        quantile=quantile,
    )


# What a module was called with, by position and by name, to queries' inputs and context; or None.
Look = Callable[[tuple[Any, ...], Mapping[str, Any]], tuple[Any, Any] | None]


def watched_bounds(
    model: Callable[..., Any],
    layers: Mapping[str, tuple[nn.Module, Heads]],
    public_inputs: Iterable[Mapping[str, Any]],
    *,
    look: Look,
    quantile: float,
) -> dict[str, Bounds]:
    """Return bounds of the attention layers of a model, from what they get in public calls of it.

    Args:
        model: is called with each of the inputs.
        layers: modules and their heads, by name.
        public_inputs: arguments by name, of one call or of many.
        look: finds a layer's inputs in what it was called with.
        quantile: of the lengths that occur.
    """
    seen: dict[str, list[tuple[Floats, Floats]]] = {name: [] for name in layers}

    def noting(name: str) -> Callable[..., None]:
        def note(_: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
            pair = look(inputs, named)
            if pair is not None and pair[0] is not None and pair[1] is not None:
                seen[name].append((_flat(pair[0]), _flat(pair[1])))

        return note

    handles = [
        module.register_forward_pre_hook(noting(name), with_kwargs=True)
        for name, (module, _) in layers.items()
    ]
    try:
        with torch.no_grad():
            for given in _calls(public_inputs):
                if not isinstance(given, Mapping):
                    raise InvalidInput("Expected public_inputs to be mappings: arguments by name.")
                model(**given)
    finally:
        for handle in handles:
            handle.remove()
    if not all(seen.values()):
        raise InvalidInput("Expected public_inputs to reach the model's cross-attention.")
    found = {}
    for name, (_, heads) in layers.items():
        asked, rows = (np.concatenate(parts) for parts in zip(*seen[name], strict=True))
        found[name] = input_bounds(heads, asked, rows, rows, quantile=quantile)
    return found


def input_bounds(
    heads: Heads, queries: Floats, rows: Floats, value_rows: Floats, *, quantile: float
) -> Bounds:
    """Return what `calibrate` returns, given the inputs of any attention layer, shape (n, D)."""
    return projected_bounds(
        heads,
        _project(heads.query, queries),
        _project(heads.key, rows),
        _project(heads.value, value_rows),
        quantile=quantile,
    )


def projected_bounds(
    heads: Heads, queries: Floats, keys: Floats, values: Floats, *, quantile: float
) -> Bounds:
    """Return the same, given queries, keys and values of each head, shape (heads, n, d)."""
    share = _validate.real("quantile", quantile, above=0, at_most=1)
    count = heads.key.heads
    queries = queries.reshape(count, -1, queries.shape[-1])
    key_centre = np.mean(keys, axis=1)
    value_centre = np.mean(values, axis=1)
    if heads.value_limit is not None:
        value_centre = np.zeros_like(value_centre)
    centred = keys - key_centre[:, None]
    if heads.key.gain is None:
        key_map, query_map = balance(_root(queries)[:, None], _root(centred))
    else:
        key_map = query_map = np.broadcast_to(np.eye(keys.shape[-1]), (count, *2 * keys.shape[-1:]))
    centred = centred @ key_map.swapaxes(1, 2)
    asked = queries @ query_map.swapaxes(1, 2)
    found = {
        "key_norm": _quantile(centred, share),
        "query_norm": _quantile(asked, share),
        "value_norm": _quantile(values - value_centre[:, None], share),
    }
    if heads.value_limit is not None:
        found["value_norm"] = np.minimum(found["value_norm"], heads.value_limit)
    return Bounds(
        **found,
        key_map=key_map,
        query_map=query_map,
        key_centre=key_centre,
        value_centre=value_centre,
        source=f"calibrated on public inputs, at their {share:.4g} quantile",
    )


def _calls(public_inputs: Any) -> Iterable[Any]:  # noqa: ANN401 (a call, or many)
    """Return what a module would be called with, one call after the other."""
    if hasattr(public_inputs, "shape"):
        return [(public_inputs, public_inputs)]
    parts = public_inputs if isinstance(public_inputs, (tuple, list)) else ()
    one_call = bool(parts) and all(hasattr(each, "shape") for each in parts)
    if one_call or isinstance(public_inputs, Mapping):
        return [public_inputs]
    return public_inputs  # type: ignore[no-any-return]


def _project(maps: HeadMap, rows: Floats) -> Floats:
    """Return what each head makes of rows: (heads, n, d)."""
    if rows.shape[-1] != maps.weight.shape[-1]:
        width = maps.weight.shape[-1]
        _validate.reject("public_inputs.shape[-1]", rows.shape[-1], f"the layer's own {width}")
    weight = maps.weight.reshape(-1, maps.weight.shape[-1])
    flat = ExactLinear(weight, maps.bias.reshape(-1))(rows)
    by_head = flat.reshape(len(rows), maps.heads, maps.dim).swapaxes(0, 1)
    if maps.gain is None:
        return by_head
    return normalised(by_head.reshape(-1, maps.dim), maps.gain, maps.epsilon).reshape(by_head.shape)


def _root(rows: Floats) -> Floats:
    """Return a square root of the second moment of rows (heads, n, d), never singular."""
    moment = rows.swapaxes(1, 2) @ rows / max(rows.shape[1], 1)
    mean = np.trace(moment, axis1=1, axis2=2) / rows.shape[-1]
    eye = np.eye(rows.shape[-1])
    values, vectors = np.linalg.eigh(moment + (_UNSEEN * mean + 1e-12)[:, None, None] * eye)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0))[:, None, :] @ vectors.swapaxes(1, 2))


def _quantile(rows: Floats, share: float) -> Floats:
    lengths = np.linalg.norm(rows, axis=-1)
    return np.asarray(np.maximum(np.quantile(lengths, share, axis=1) * (1 + 1e-6), 1e-9))


def _flat(part: Array) -> Floats:
    array = part.detach().to("cpu", torch.float64).numpy() if hasattr(part, "detach") else part
    rows = np.asarray(array, dtype=np.float64)
    if rows.ndim < 2 or not np.all(np.isfinite(rows)):
        raise InvalidInput("Expected public_inputs to be finite tensors of shape (..., D).")
    return rows.reshape(-1, rows.shape[-1])
