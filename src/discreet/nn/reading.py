"""Released heads as a torch module: queries in, answers out. No private row is in reach of it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from discreet import _validate
from discreet._typing import Floats
from discreet.errors import InvalidInput
from discreet.readers.attention.joint import combined_stderr, join
from discreet.readers.attention.memory import Memory
from discreet.readers.attention.readout import Readout
from discreet.sums.asking import Placed

# Beyond this, in units of a bound, one query or answer is as far off as another; its square is
# within float32.
_HUGE = 1e15

# So many features of queries, and numbers of outputs, at a time, where errors are asked for.
_AT_ONCE = 2**22


# The buffers that do not come from a release.
_PUBLIC = frozenset({"query_map", "query_factor", "value_centre"})


class PrivateHeads(nn.Module):
    """Answers for all heads of one attention layer, from released states kept as buffers.

    Post-processing only. The buffers hold what is released and public numbers, nothing else; they
    stay in float32 whatever the rest of a model is converted to, since sums of thousands of rows
    need it. Compiles without graph breaks, exports, and works under autocast and vmap.

    Args:
        memories: one for each key head, or one with heads.
        query_map: turns queries before they are asked, shape (heads, d, d'); None for none.
        value_centre: added to answers, shape (heads, d_v); None for none.
        repeats: how many query heads share one key head.
        persistent: whether `state_dict` has the buffers.
    """

    least: torch.Tensor

    def __init__(
        self,
        memories: Sequence[Memory],
        *,
        query_map: Floats | None = None,
        value_centre: Floats | None = None,
        repeats: int = 1,
        persistent: bool = True,
    ) -> None:
        super().__init__()
        self.repeats = _validate.whole("repeats", repeats, at_least=1)
        self.joint, arrays = join(list(memories))
        self._readers = [each.reader for each in memories]
        self._placed = [Placed(each.arrays) for each in self._readers]
        self._query_norms = norms = arrays.pop("query_norm")
        # Queries are rows, in units of their bound: q·Mᵀ/norm, one product or one factor.
        turned = None if query_map is None else np.swapaxes(query_map, -1, -2) / norms
        public = {
            "query_map": turned,
            "query_factor": 1 / norms if query_map is None else None,
            "value_centre": None if value_centre is None else value_centre[:, None, :],
        }
        working = torch.float64 if self.joint.in_float64 else torch.float32
        for name, array in {**arrays, **public}.items():
            self.register_buffer(name, _tensor(array, working), persistent=persistent)

    @property
    def width(self) -> int:
        """Of the answers of all heads to one query, head after head."""
        return self.joint.heads * self.repeats * self.joint.value_dim

    def forward(self, queries: torch.Tensor) -> torch.Tensor:
        """Return answers of shape (batch, heads, m, d_v) to queries (batch, heads, m, d).

        In the dtype of the queries; computed in that of the state.
        """
        if not torch.is_autocast_enabled(queries.device.type):
            return self._answers(queries)
        with torch.autocast(queries.device.type, enabled=False):
            return self._answers(queries)

    def stderr(self, queries: torch.Tensor, weight: torch.Tensor | None = None) -> torch.Tensor:
        """Return the standard error of each number that a linear layer makes of the answers.

        Against exact attention over the same rows, noise and kernel together: 1.96 of them hold 95%
        of the time (`docs/errors.md`). Not for a compiled path, and without gradients.

        Args:
            queries: as for `forward`, shape (batch, heads, m, d).
            weight: of the layer, shape (e, heads·d_v); None for the answers themselves, head after
                head.

        Returns:
            Shape (batch, m, e), in the dtype of the queries.
        """
        with torch.no_grad(), torch.autocast(queries.device.type, enabled=False):
            return self._stderr(queries, weight)

    def _stderr(self, queries: torch.Tensor, weight: torch.Tensor | None) -> torch.Tensor:
        batch, _, count, _ = queries.shape
        heads, repeats, width = self.joint.heads, self.repeats, self.joint.value_dim
        rows = self._asked(queries).clamp(-_HUGE, _HUGE)
        # To the length of a bound at most, as answers are read; in the units that readers ask in.
        rows = rows / torch.linalg.vector_norm(rows, dim=-1, keepdim=True).clamp(min=1)
        rows = rows * torch.from_numpy(self._query_norms).to(rows)
        rows = rows.reshape(heads, batch, repeats, count, -1).transpose(1, 2).flatten(2, 3)
        taken = torch.eye(self.width) if weight is None else weight
        by_head = taken.to(rows).reshape(-1, heads, repeats, width).permute(1, 2, 0, 3)
        arrays = [each.like(rows) for each in self._placed]
        size = self.joint.kernel.features + self.joint.kernel.blocks * len(taken)
        pieces = [
            combined_stderr(self._readers, arrays, some, by_head)
            for some in rows.split(max(_AT_ONCE // (repeats * size), 1), dim=2)
        ]
        return torch.cat(pieces).reshape(batch, count, len(taken)).to(queries.dtype)

    def _asked(self, queries: torch.Tensor) -> torch.Tensor:
        """Return queries in units of their bounds, head by head.

        (batch, heads·repeats, m, d) → (heads, batch·repeats·m, d')
        """
        batch, _, count, dim = queries.shape
        heads, each = self.joint.heads, self.repeats * count
        # A module looks its buffers up slowly, and a model that writes asks one query at a time.
        turn, factor = (self._buffers[name] for name in ("query_map", "query_factor"))
        rows = queries.to(self.least.dtype).reshape(batch, heads, each, dim)
        rows = rows.transpose(0, 1).reshape(heads, batch * each, dim)
        rows = rows if turn is None else rows @ turn
        return rows if factor is None else rows * factor

    def _answers(self, queries: torch.Tensor) -> torch.Tensor:
        batch, asked, count, _ = queries.shape
        heads, each = self.joint.heads, self.repeats * count
        out = self._read(self._asked(queries), self._buffers)
        centre = self._buffers["value_centre"]
        out = out if centre is None else out + centre
        out = out.reshape(heads, batch, each, -1).transpose(0, 1)
        return out.reshape(batch, asked, count, self.joint.value_dim).to(queries.dtype)

    def _read(self, rows: torch.Tensor, arrays: Mapping[str, Any]) -> torch.Tensor:
        """Return answers to queries in units of their bounds, shape (heads, m, d).

        `discreet.readers.attention.joint` says what the steps are; there are as few as possible.
        """
        rows = rows.clamp(-_HUGE, _HUGE)
        length = torch.linalg.vector_norm(rows, dim=-1, keepdim=True)
        rows = rows * (arrays["query_unit"] / length.clamp(min=1))
        sums = Readout(self.joint.kernel).sums(rows, arrays)
        low = arrays["least"]
        if self.joint.kernel.query_exponent:
            low = low * torch.exp(length.clamp(max=1).square() * -arrays["exponent"])
        out = (sums[..., :-1] / sums[..., -1:].clamp(low, arrays["most"])).clamp(-_HUGE, _HUGE)
        norm = arrays["value_norm"]
        length = torch.linalg.vector_norm(out, dim=-1, keepdim=True)
        answers: torch.Tensor = out * (norm / torch.maximum(length, norm))
        return answers

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> Any:  # noqa: ANN401, FBT001, FBT002 (torch's own signature)
        """Move the state, and keep its precision."""
        before = dict(self._buffers)
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, kept in before.items():
            moved = self._buffers[name]
            if kept is None or moved is None or moved.dtype == kept.dtype:
                continue
            if not (moved.dtype == torch.float64 and moved.device.type != "meta"):
                self._buffers[name] = kept.to(moved.device)
        return self

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        *args: Any,  # noqa: ANN401 (torch's own)
    ) -> None:
        """Load buffers; those of an earlier version are the same release, read plainly.

        It had no reference points. Whoever owns this module checks that the release is the same.
        """
        here, there = ("reference" in self._buffers, f"{prefix}reference" in state_dict)
        if here and not there and f"{prefix}least" in state_dict:
            names = self._buffers.keys() - _PUBLIC
            state_dict |= {f"{prefix}{name}": self._buffers[name] for name in names}
        super()._load_from_state_dict(state_dict, prefix, *args)

    def extra_repr(self) -> str:
        """Return how many heads, and which kernel."""
        return f"heads={self.joint.heads * self.repeats}, {self.joint.kernel.describe()}"


def _tensor(array: Any, working: torch.dtype) -> torch.Tensor | None:  # noqa: ANN401
    if array is None:
        return None
    array = np.array(array)
    return torch.from_numpy(array).to(working if array.dtype.kind == "f" else torch.int64)


def linear_weight(layer: nn.Module, width: int) -> torch.Tensor:
    """Return the weight of a layer that makes W·x + b of x, found by trying.

    So a layer that is wrapped, adapted or quantised serves as well.

    Args:
        layer: the projection behind the heads.
        width: of x.
    """
    weight = next(layer.parameters())
    tried = torch.cat([torch.zeros(1, width), torch.eye(width), torch.ones(1, width)])
    with torch.no_grad():
        made = layer(tried.to(weight)).double()
    found: torch.Tensor = (made[1:-1] - made[:1]).T
    both = made[0] + found.sum(dim=1)
    if not torch.allclose(made[-1], both, atol=1e-3 * float(made.abs().max()) * width**0.5):
        raise InvalidInput("Expected the projection behind the heads to be linear.")
    return found


def batch_of(rows: torch.Tensor, *, batch_first: bool) -> torch.Tensor:
    """Return what torch's attention takes, (m, batch, E) or (m, E), with the batch first."""
    if rows.dim() != 3:
        return rows.unsqueeze(0)
    return rows if batch_first else rows.transpose(0, 1)


def unbatched(out: torch.Tensor, like: torch.Tensor, *, batch_first: bool) -> torch.Tensor:
    """Return outputs (batch, m, e) with the axes that a query has."""
    if like.dim() != 3:
        return out.squeeze(0)
    return out if batch_first else out.transpose(0, 1)
