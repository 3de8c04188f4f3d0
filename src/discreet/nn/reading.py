"""Released heads as a torch module: queries in, answers out. No private row is in reach of it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from discreet import _validate
from discreet._typing import Floats
from discreet.memory import Memory
from discreet.memory.joint import join

# Beyond this, in units of a bound, one query or answer is as far off as another; its square is
# within float32.
_HUGE = 1e15


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
        norms = arrays.pop("query_norm")
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

    def forward(self, queries: torch.Tensor) -> torch.Tensor:
        """Return answers of shape (batch, heads, m, d_v) to queries (batch, heads, m, d).

        In the dtype of the queries; computed in that of the state.
        """
        if not torch.is_autocast_enabled(queries.device.type):
            return self._answers(queries)
        with torch.autocast(queries.device.type, enabled=False):
            return self._answers(queries)

    def _answers(self, queries: torch.Tensor) -> torch.Tensor:
        batch, asked, count, dim = queries.shape
        heads, each = self.joint.heads, self.repeats * count
        # A module looks its buffers up slowly, and a model that writes asks one query at a time.
        buffers = self._buffers
        # (batch, heads·repeats, m, d) → (heads, batch·repeats·m, d)
        rows = queries.to(self.least.dtype).reshape(batch, heads, each, dim)
        rows = rows.transpose(0, 1).reshape(heads, batch * each, dim)
        turn, factor, centre = (
            buffers[name] for name in ("query_map", "query_factor", "value_centre")
        )
        rows = rows if turn is None else rows @ turn
        rows = rows if factor is None else rows * factor
        out = self._read(rows, buffers)
        out = out if centre is None else out + centre
        out = out.reshape(heads, batch, each, -1).transpose(0, 1)
        return out.reshape(batch, asked, count, self.joint.value_dim).to(queries.dtype)

    def _read(self, rows: torch.Tensor, arrays: Mapping[str, Any]) -> torch.Tensor:
        """Return answers to queries in units of their bounds, shape (heads, m, d).

        `discreet.memory.joint` says what the steps are; there are as few as possible.
        """
        rows = rows.clamp(-_HUGE, _HUGE)
        length = torch.linalg.vector_norm(rows, dim=-1, keepdim=True)
        rows = rows * (arrays["query_unit"] / length.clamp(min=1))
        sums = self.joint.kernel.read(rows, arrays)
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

    def extra_repr(self) -> str:
        """Return how many heads, and which kernel."""
        return f"heads={self.joint.heads * self.repeats}, {self.joint.kernel.describe()}"


def _tensor(array: Any, working: torch.dtype) -> torch.Tensor | None:  # noqa: ANN401
    if array is None:
        return None
    array = np.array(array)
    return torch.from_numpy(array).to(working if array.dtype.kind == "f" else torch.int64)
