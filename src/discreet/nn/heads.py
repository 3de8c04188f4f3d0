"""The public weights of one attention layer, head by head: what makes keys and values of rows."""

from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import nn

from discreet import _validate
from discreet._typing import Floats
from discreet.errors import InvalidInput
from discreet.nn.norms import Norm


@dataclass(frozen=True, eq=False)
class HeadMap:
    """x ↦ W·x + b for each head, and a normalisation of the result if the model has one.

    Attributes:
        weight: shape (heads, d, in).
        bias: shape (heads, d).
        gain: the result is divided by its root mean square and multiplied by this, shape (d,);
            None if it stays as it is.
        epsilon: what is added to the mean square.
    """

    weight: Floats
    bias: Floats
    gain: Floats | None = None
    epsilon: float = 0.0

    @classmethod
    def of(cls, weight: torch.Tensor, bias: torch.Tensor | None, heads: int) -> "HeadMap":
        """Return the map of a linear layer whose outputs are those of one head after another."""
        rows = as_floats(weight)
        shift = np.zeros(len(rows)) if bias is None else as_floats(bias)
        if len(rows) % heads:
            _validate.reject("heads", heads, f"a divisor of the width {len(rows)}")
        return cls(rows.reshape(heads, -1, rows.shape[1]), shift.reshape(heads, -1))

    def normalised_by(self, norm: nn.Module | None) -> "HeadMap":
        """Return the same map with the norm layer that follows it in each head, if there is one."""
        if norm is None:
            return self
        found = Norm.of(norm, self.dim)
        if found.centred or np.any(found.bias):
            _validate.reject("norm layer", type(norm).__name__, "an RMSNorm of each head")
        return replace(self, gain=found.gain, epsilon=_norm_epsilon(norm))

    @property
    def heads(self) -> int:
        """How many."""
        return len(self.weight)

    @property
    def dim(self) -> int:
        """The width of one head."""
        return int(self.weight.shape[1])

    @property
    def longest(self) -> float | None:
        """The longest that a result can be, if it is normalised: √d·max|gain|."""
        if self.gain is None:
            return None
        return float(np.sqrt(self.dim) * np.max(np.abs(self.gain)))


@runtime_checkable
class HasHeads(Protocol):
    """A module that knows its heads."""

    def public_heads(self) -> "Heads":
        """Return them."""
        ...


@dataclass(frozen=True, eq=False)
class Heads:
    """One attention layer: logit = scaling·⟨query, key⟩.

    Attributes:
        query: one map for each query head.
        key: one map for each key head; queries may have a multiple of them.
        value: likewise.
        scaling: of logits, one for each key head.
        value_limit: the model itself clips values to this length; None if it does not.
    """

    query: HeadMap
    key: HeadMap
    value: HeadMap
    scaling: Floats
    value_limit: float | None = None

    def __post_init__(self) -> None:
        if self.key.heads != self.value.heads or self.query.heads % self.key.heads:
            raise InvalidInput("Expected as many value heads as key heads, and a multiple to ask.")
        scaling = np.broadcast_to(np.asarray(self.scaling, dtype=np.float64), (self.key.heads,))
        object.__setattr__(self, "scaling", scaling)

    @property
    def repeats(self) -> int:
        """How many query heads share one key head."""
        return self.query.heads // self.key.heads

    @classmethod
    def of(cls, module: nn.Module) -> "Heads":
        """Return the heads of an attention module of torch or of this package."""
        if isinstance(module, HasHeads):
            return module.public_heads()
        if isinstance(module, nn.MultiheadAttention):
            return _of_torch(module)
        return _validate.reject(
            "module", type(module).__name__, "torch.nn.MultiheadAttention or BoundedAttention"
        )


def _of_torch(module: nn.MultiheadAttention) -> Heads:
    if module.bias_k is not None or module.bias_v is not None or module.add_zero_attn:
        raise InvalidInput("Expected attention without add_bias_kv and add_zero_attn.")
    count, width = module.num_heads, module.embed_dim
    weights: Any
    if module.in_proj_weight is not None:
        weights = module.in_proj_weight.chunk(3)
    else:
        weights = (module.q_proj_weight, module.k_proj_weight, module.v_proj_weight)
    biases: Any = (None,) * 3 if module.in_proj_bias is None else module.in_proj_bias.chunk(3)
    query, key, value = (HeadMap.of(w, b, count) for w, b in zip(weights, biases, strict=True))
    return Heads(query, key, value, scaling=np.array((width // count) ** -0.5))


def as_floats(tensor: torch.Tensor) -> Floats:
    """Return public weights as float64, wherever they live."""
    return np.asarray(tensor.detach().to("cpu", torch.float64).numpy())


def _norm_epsilon(norm: nn.Module) -> float:
    """Return what a norm layer adds to the mean square, under whichever name it keeps it."""
    for name in ("eps", "variance_epsilon"):
        value = getattr(norm, name, None)
        if value is not None:
            return float(value)
    return 0.0
