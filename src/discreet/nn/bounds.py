"""Public bounds on keys, queries and values, head by head: from weights, or from public inputs.

Bounds never decide about privacy: whatever is longer is clipped. They decide about the noise, which
grows with e^(scaling·key_norm·query_norm), and about the bias of what is clipped.

A layer's input behind a norm layer is x = G·z + c with ‖z‖ ≤ √D. Keys are then W·G·z and a
constant; softmax does not see the constant, so it is taken out; of values it is taken out and added
back to answers. And ⟨q, k⟩ = ⟨M⁻ᵀq, M·k⟩ for every invertible M: a good M makes the product of the
two bounds as small as the largest singular value of W_qᵀW_k allows.

`bounds_of` asks what the weights allow; `calibrate` what a trained model really does, on inputs
that anybody may see.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits
from torch import nn

from discreet import _validate
from discreet._typing import Array, Floats
from discreet.errors import InvalidInput
from discreet.nn.heads import HeadMap, Heads, Norm

# Directions in which a map is this much shorter than in its longest count as none.
_NEGLIGIBLE = 1e-9

# Directions that public inputs do not have get this share of the mean spread.
_UNSEEN = 1e-3

WEIGHTS = "from the weights alone"
GIVEN = "given by the builder"

PerHead = float | Sequence[float] | Floats


@dataclass(frozen=True, eq=False, repr=False)
class Bounds:
    """Public bounds of one attention layer, one of each for every key head.

    Attributes:
        key_norm: bound on M·(k - centre), shape (heads,).
        query_norm: bound on M⁻ᵀ·q, likewise.
        value_norm: bound on v - centre, likewise.
        key_map: M, shape (heads, d, d).
        query_map: M⁻ᵀ, likewise.
        key_centre: what is taken out of keys; softmax does not see it. Shape (heads, d).
        value_centre: what is taken out of values, and added back to answers. Shape (heads, d_v).
        source: where they come from, for the card.
    """

    key_norm: Floats
    query_norm: Floats
    value_norm: Floats
    key_map: Floats
    query_map: Floats
    key_centre: Floats
    value_centre: Floats
    source: str

    def __repr__(self) -> str:
        norms = (self.key_norm, self.query_norm, self.value_norm)
        keys, queries, values = (f"{np.min(each):.3g} to {np.max(each):.3g}" for each in norms)
        return (
            f"<Bounds of {len(self.key_norm)} heads, {self.source}: keys {keys}, queries "
            f"{queries}, values {values}>"
        )

    def largest_logits(self, scaling: Floats) -> Floats:
        """Return the bound on logits of each head.

        Args:
            scaling: logit = scaling·⟨query, key⟩, one for each key head.
        """
        return scaling * self.key_norm * self.query_norm

    def replaced(
        self,
        *,
        key_norm: PerHead | None = None,
        query_norm: PerHead | None = None,
        value_norm: PerHead | None = None,
    ) -> "Bounds":
        """Return the same with other norms where some are given.

        Args:
            key_norm: one number for all heads, or one for each; None to keep what there is.
            query_norm: likewise.
            value_norm: likewise.
        """
        given = {"key_norm": key_norm, "query_norm": query_norm, "value_norm": value_norm}
        chosen = {
            name: _per_head(name, value, len(self.key_norm))
            for name, value in given.items()
            if value is not None
        }
        if not chosen:
            return self
        kept = "" if len(chosen) == len(given) else f" ({', '.join(chosen)}), else {self.source}"
        return replace(self, **chosen, source=f"{GIVEN}{kept}")

    def capped(self, scaling: Floats, largest_logit: float | None) -> "Bounds":
        """Return bounds with no logit beyond a limit: longer keys and queries are clipped more.

        Args:
            scaling: as for `largest_logits`.
            largest_logit: the limit; None for none.
        """
        if largest_logit is None:
            return self
        limit = _validate.real("largest_logit", largest_logit, above=0)
        logits = self.largest_logits(scaling)
        if np.all(logits <= limit):
            return self
        # A little more than needed, so that no rounding leaves a logit above the limit.
        shrink = np.where(logits > limit, np.sqrt(limit / logits) * (1 - 1e-12), 1.0)
        return replace(
            self,
            key_norm=self.key_norm * shrink,
            query_norm=self.query_norm * shrink,
            source=f"{self.source}, cut to logits of at most {limit:g}",
        )


@dataclass(frozen=True, eq=False)
class Inputs:
    """All inputs that a layer can get: matrix·z + centre with ‖z‖ ≤ radius.

    Attributes:
        matrix: shape (D, D).
        centre: shape (D,).
        radius: of the ball.
    """

    matrix: Floats
    centre: Floats
    radius: float

    @classmethod
    def of(cls, source: "nn.Module | float | None", width: int) -> "Inputs":
        """Return the inputs behind a norm layer, or within a ball of some radius.

        Args:
            source: a LayerNorm or an RMSNorm, of any library; a radius; or None for the radius √D
                of a norm layer without weights.
            width: D.
        """
        eye = np.eye(width)
        if source is None or isinstance(source, (int, float)):
            root = float(np.sqrt(width))
            radius = root if source is None else _validate.real("radius", source, above=0)
            return cls(eye, np.zeros(width), radius)
        norm = Norm.of(source, width)
        centring = eye - 1 / width if norm.centred else eye
        return cls(norm.gain[:, None] * centring, norm.bias, float(np.sqrt(width)))


def bounds_of(
    module: nn.Module,
    *,
    queries: nn.Module | float | None = None,
    context: nn.Module | float | None = None,
) -> Bounds:
    """Return bounds that follow from weights alone, for all inputs that there can be.

    Nothing is clipped, and usually they are far too loose: no real input is the worst one, and the
    noise grows with e to the power of what they allow. Where there are public inputs, `calibrate`.

    Args:
        module: `torch.nn.MultiheadAttention` or `BoundedAttention`.
        queries: the norm layer that queries come from, or a bound on the length of its inputs;
            None for √D, which is what a norm layer without weights gives.
        context: likewise, for what keys and values are made of.

    Returns:
        Bounds of each head.

    Raises:
        InvalidInput: the module is no attention layer that is known, or has no such norm layer.
    """
    return weight_bounds(Heads.of(module), queries=queries, context=context)


def weight_bounds(
    heads: Heads,
    *,
    queries: nn.Module | float | None = None,
    context: nn.Module | float | None = None,
) -> Bounds:
    """Return what `bounds_of` returns, given the heads of any attention layer."""
    # Many small matrices: threads would only wait for one another.
    with threadpool_limits(limits=1, user_api="blas"):
        return _weight_bounds(heads, queries, context)


def _weight_bounds(
    heads: Heads, queries: nn.Module | float | None, context: nn.Module | float | None
) -> Bounds:
    asked = Inputs.of(queries, heads.query.width)
    rows = Inputs.of(context, heads.key.width)
    same = heads.value.width == heads.key.width
    value_image, value_centre = _image(
        heads.value, rows if same else Inputs.of(None, heads.value.width)
    )
    value_norm = _positive(_spectral(value_image))
    if heads.value_limit is not None:  # what the model clips must not be moved before
        value_norm = np.full(heads.value.heads, heads.value_limit)
        value_centre = np.zeros_like(value_centre)
    normalised = heads.key.gain is not None or heads.query.gain is not None
    products = _normalised(heads, asked, rows) if normalised else _balanced(heads, asked, rows)
    return Bounds(**products, value_norm=value_norm, value_centre=value_centre, source=WEIGHTS)


def _balanced(heads: Heads, asked: Inputs, rows: Inputs) -> dict[str, Floats]:
    """Return bounds, maps and centre of keys and queries that are linear in their inputs."""
    key_image, key_centre = _image(heads.key, rows)
    query_image, query_centre = _image(heads.query, asked)
    stacked = query_image.reshape(heads.key.heads, heads.repeats, *query_image.shape[1:])
    key_map, query_map = balance(stacked, key_image)
    apart = query_map[:, None] @ stacked
    offset = np.einsum("gij,grj->gri", query_map, query_centre.reshape(*stacked.shape[:3]))
    query_norm = _spectral(apart) + np.linalg.norm(offset, axis=-1)
    return {
        "key_norm": _positive(_spectral(key_map @ key_image)),
        "query_norm": _positive(np.max(query_norm, axis=1)),
        "key_map": key_map,
        "query_map": query_map,
        "key_centre": key_centre,
    }


def _normalised(heads: Heads, asked: Inputs, rows: Inputs) -> dict[str, Floats]:
    """Return the same where keys or queries are normalised: nothing can be taken out."""
    count, dim = heads.key.heads, heads.key.dim
    eye = np.broadcast_to(np.eye(dim), (count, dim, dim))

    def longest(maps: HeadMap, inputs: Inputs) -> Floats:
        if maps.longest is not None:
            return np.full(maps.heads, maps.longest)
        image, centre = _image(maps, inputs)
        return np.asarray(_spectral(image) + np.linalg.norm(centre, axis=-1))

    query_norm = longest(heads.query, asked).reshape(count, heads.repeats)
    return {
        "key_norm": _positive(longest(heads.key, rows)),
        "query_norm": _positive(np.max(query_norm, axis=1)),
        "key_map": eye,
        "query_map": eye,
        "key_centre": np.zeros((count, dim)),
    }


def balance(queries: Floats, keys: Floats) -> tuple[Floats, Floats]:
    """Return M and M⁻ᵀ for each head: ⟨M⁻ᵀq, M·k⟩ = ⟨q, k⟩, and both sides equally long.

    With W_qᵀW_k = U·S·Vᵀ the balanced key is √S·Vᵀz and the balanced query √S·Uᵀz.

    Args:
        queries: W_q, shape (heads, repeats, d, D_q).
        keys: W_k, shape (heads, d, D_k).
    """
    left, sizes, _ = np.linalg.svd(keys, full_matrices=False)
    asked = np.swapaxes(queries, -1, -2).reshape(len(keys), -1, keys.shape[1])
    _, product, right = np.linalg.svd(asked @ left * sizes[:, None, :], full_matrices=False)
    inverse_sizes = _inverse(sizes)
    root = np.sqrt(product)
    inverse_root = _inverse(root)
    turned = right @ (inverse_sizes[:, :, None] * np.swapaxes(left, 1, 2))
    turned_back = right @ (sizes[:, :, None] * np.swapaxes(left, 1, 2))
    return root[:, :, None] * turned, inverse_root[:, :, None] * turned_back


def _image(maps: HeadMap, inputs: Inputs) -> tuple[Floats, Floats]:
    """Return what the unit ball becomes in each head, and the constant part."""
    return maps.weight @ inputs.matrix * inputs.radius, maps.weight @ inputs.centre + maps.bias


def _spectral(matrices: Floats) -> Floats:
    return np.asarray(np.linalg.norm(matrices, ord=2, axis=(-2, -1)))


def _positive(norms: Floats) -> Floats:
    """Return bounds that a build accepts, and that float32's rounding does not clip at."""
    return np.maximum(norms * (1 + 1e-5), 1e-9)


def _inverse(sizes: Floats) -> Floats:
    """Return one over each size, and zero where it is negligible."""
    least = np.max(sizes, axis=-1, keepdims=True) * _NEGLIGIBLE
    kept = sizes > least
    return np.where(kept, 1 / np.where(kept, sizes, 1.0), 0.0)


def _per_head(name: str, value: Array, heads: int) -> Floats:
    numbers = np.asarray(value, dtype=np.float64)
    if numbers.shape not in {(), (heads,)} or not np.all((numbers > 0) & (numbers < np.inf)):
        _validate.reject_argument(name, value, f"a positive number, or {heads} of them")
    return np.broadcast_to(numbers, (heads,)).copy()


def calibrate(module: nn.Module, public_inputs: Iterable[Any], *, quantile: float = 0.99) -> Bounds:
    """Return bounds and centres from public inputs, for `from_multihead`.

    Never give it private inputs: bounds are released as they are. Private queries, keys and values
    that are longer are clipped, which is private all the same, and biased: of inputs like the
    public ones, 1 - quantile of each.

    Args:
        module: `torch.nn.MultiheadAttention` or `BoundedAttention`.
        public_inputs: what the module would be called with: pairs (query, context) or triples
            (query, key, value), or mappings with these names; tensors whose last axis is the
            model's. One of them, or many; one tensor stands for queries and context alike.
        quantile: bounds are this quantile of the lengths that occur. The rest is clipped.

    Returns:
        Bounds of each head.

    Raises:
        InvalidInput: there are no public inputs, or they do not fit the module.
    """
    calls = [_parts(given) for given in _calls(public_inputs)]
    if not calls:
        raise InvalidInput("Expected public_inputs to have at least one pair.")
    return _input_bounds(Heads.of(module), calls, quantile)


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
    seen: dict[str, list[tuple[Floats, Floats, Floats]]] = {name: [] for name in layers}

    def noting(name: str) -> Callable[..., None]:
        def note(_: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
            asked, context = look(inputs, named) or (None, None)
            if asked is not None and context is not None:
                rows = _flat(context)
                seen[name].append((_flat(asked), rows, rows))

        return note

    with ExitStack() as stack, torch.no_grad():
        for name, (module, _) in layers.items():
            hook = module.register_forward_pre_hook(noting(name), with_kwargs=True)
            stack.callback(hook.remove)
        for given in _calls(public_inputs):
            if not isinstance(given, Mapping):
                raise InvalidInput("Expected public_inputs to be mappings: arguments by name.")
            model(**given)
    if not all(seen.values()):
        raise InvalidInput("Expected public_inputs to reach the model's cross-attention.")
    return {name: _input_bounds(heads, seen[name], quantile) for name, (_, heads) in layers.items()}


def _input_bounds(
    heads: Heads, calls: Sequence[tuple[Floats, Floats, Floats]], quantile: float
) -> Bounds:
    """Return what `calibrate` returns, given rows (n, D) for queries, keys and values."""
    share = _validate.real("quantile", quantile, above=0, at_most=1)
    queries, keys, values = (
        _project(maps, np.concatenate(rows))
        for maps, rows in zip(
            (heads.query, heads.key, heads.value), zip(*calls, strict=True), strict=True
        )
    )
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
    value_norm = _quantile(values - value_centre[:, None], share)
    if heads.value_limit is not None:
        value_norm = np.minimum(value_norm, heads.value_limit)
    return Bounds(
        key_norm=_quantile(centred @ key_map.swapaxes(1, 2), share),
        query_norm=_quantile(queries @ query_map.swapaxes(1, 2), share),
        value_norm=value_norm,
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


def _parts(given: Any) -> tuple[Floats, Floats, Floats]:  # noqa: ANN401
    """Return what queries, keys and values are made of in one call."""
    names = ("query", "key", "value")
    parts = [given.get(name) for name in names] if isinstance(given, Mapping) else list(given)
    if len(parts) not in {2, 3} or any(part is None for part in parts[:2]):
        raise InvalidInput("Expected public_inputs to be pairs (query, context) of tensors.")
    last = parts[2] if len(parts) == 3 and parts[2] is not None else parts[1]
    return _flat(parts[0]), _flat(parts[1]), _flat(last)


def _project(maps: HeadMap, rows: Floats) -> Floats:
    if rows.shape[-1] != maps.width:
        _validate.reject("public_inputs.shape[-1]", rows.shape[-1], f"the layer's own {maps.width}")
    return maps.project(rows)


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
