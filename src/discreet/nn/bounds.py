"""Public bounds on keys, queries and values, head by head: from weights, or from public inputs.

Bounds never decide about privacy: whatever is longer is clipped. They decide about the noise, which
grows with e^(scaling·key_norm·query_norm), and about the bias of what is clipped.

A layer's input behind a norm layer is x = G·z + c with ‖z‖ ≤ √D. Keys are then W·G·z and a
constant; softmax does not see the constant, so it is taken out; of values it is taken out and added
back to answers. And ⟨q, k⟩ = ⟨M⁻ᵀq, M·k⟩ for every invertible M: a good M makes the product of the
two bounds as small as the largest singular value of W_qᵀW_k allows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from threadpoolctl import threadpool_limits
from torch import nn

from discreet import _validate
from discreet._typing import Array, Floats
from discreet.nn.heads import HeadMap, Heads
from discreet.nn.norms import Norm

# Directions in which a map is this much shorter than in its longest count as none.
_NEGLIGIBLE = 1e-9

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
        """Return the bound on logits of each head."""
        return scaling * self.key_norm * self.query_norm

    def replaced(
        self,
        *,
        key_norm: PerHead | None = None,
        query_norm: PerHead | None = None,
        value_norm: PerHead | None = None,
    ) -> "Bounds":
        """Return the same with other norms where some are given: one for all heads, or one each."""
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
        """Return bounds with no logit beyond a limit: longer keys and queries are clipped more."""
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
    asked = Inputs.of(queries, heads.query.weight.shape[-1])
    rows = Inputs.of(context, heads.key.weight.shape[-1])
    value_rows = rows
    if heads.value.weight.shape[-1] != heads.key.weight.shape[-1]:
        value_rows = Inputs.of(None, heads.value.weight.shape[-1])
    value_image, value_centre = _image(heads.value, value_rows)
    value_norm = _positive(_spectral(value_image))
    if heads.value_limit is not None:  # what the model clips must not be moved before
        value_norm = np.full(heads.value.heads, heads.value_limit)
        value_centre = np.zeros_like(value_centre)
    if heads.key.gain is not None or heads.query.gain is not None:
        return _normalised(heads, asked, rows, value_norm, value_centre)
    key_image, key_centre = _image(heads.key, rows)
    query_image, query_centre = _image(heads.query, asked)
    stacked = query_image.reshape(heads.key.heads, heads.repeats, *query_image.shape[1:])
    key_map, query_map = balance(stacked, key_image)
    apart = query_map[:, None] @ stacked
    offset = np.einsum("gij,grj->gri", query_map, query_centre.reshape(*stacked.shape[:3]))
    query_norm = _spectral(apart) + np.linalg.norm(offset, axis=-1)
    return Bounds(
        key_norm=_positive(_spectral(key_map @ key_image)),
        query_norm=_positive(np.max(query_norm, axis=1)),
        value_norm=value_norm,
        key_map=key_map,
        query_map=query_map,
        key_centre=key_centre,
        value_centre=value_centre,
        source=WEIGHTS,
    )


def _normalised(
    heads: Heads, asked: Inputs, rows: Inputs, value_norm: Floats, value_centre: Floats
) -> Bounds:
    """Return bounds of heads whose keys or queries are normalised: nothing can be taken out."""
    count, dim = heads.key.heads, heads.key.dim
    eye = np.broadcast_to(np.eye(dim), (count, dim, dim))

    def longest(maps: HeadMap, inputs: Inputs) -> Floats:
        if maps.longest is not None:
            return np.full(maps.heads, maps.longest)
        image, centre = _image(maps, inputs)
        return np.asarray(_spectral(image) + np.linalg.norm(centre, axis=-1))

    return Bounds(
        key_norm=_positive(longest(heads.key, rows)),
        query_norm=_positive(
            np.max(longest(heads.query, asked).reshape(count, heads.repeats), axis=1)
        ),
        value_norm=value_norm,
        key_map=eye,
        query_map=eye,
        key_centre=np.zeros((count, dim)),
        value_centre=value_centre,
        source=WEIGHTS,
    )


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
