"""One layer: private cross-attention that is called like `torch.nn.MultiheadAttention`."""

import copy
import os
from collections.abc import Sequence
from typing import Any, Unpack

import torch
from torch import nn

from discreet import _validate
from discreet._typing import Array, Floats
from discreet.errors import InvalidInput
from discreet.ledger import Account, Ledger
from discreet.ledger.ledger import account_of
from discreet.nn.bounds import Bounds, PerHead, bounds_of
from discreet.nn.building import Context, Layer, PrivateOptions, build_layers
from discreet.nn.heads import Heads
from discreet.nn.model import check_weights, public_arrays, warn_of_noise
from discreet.nn.reading import PrivateHeads, batch_of, linear_weight, unbatched
from discreet.noise import Entropy
from discreet.privacy import Card, Guarantee
from discreet.readers.attention import bundle
from discreet.readers.attention.bundle import Memories
from discreet.readers.attention.memory import Memory

_UNIT = (
    "a row of the context (or a record, where groups were given). Rows that an encoder made of "
    "several people's data mix them: then the promise does not reach the raw input"
)


class PrivateCrossAttention(nn.Module):
    """Cross-attention over a private context, as a module: `(query, key, value) -> (out, None)`.

    Made by `from_multihead`, or of a `Memory` (or `Memories`). The context was fixed when it was
    built: `key` and `value` are ignored, and there are no weights to return. Post-processing only:
    no call costs privacy. `state_dict` has the released arrays and the public projections.

    Args:
        memory: with as many heads as queries have; or one memory for each head.
        q_proj: makes queries of inputs; None if inputs are queries, head after head.
        q_norm: normalises the queries of each head; None if nothing does.
        out_proj: makes outputs of all heads' answers; None for the answers themselves.
        query_map: turns queries before they are asked, shape (heads, d, d'); None for none.
        value_centre: added to answers, shape (heads, d_v); None for none.
        repeats: how many query heads share one key head. (`Memories` of `from_multihead` bring
            these three.)
        batch_first: whether the batch is the first axis; as in torch it is not.
    """

    def __init__(
        self,
        memory: Memory | Memories | Sequence[Memory],
        *,
        q_proj: nn.Module | None = None,
        q_norm: nn.Module | None = None,
        out_proj: nn.Module | None = None,
        query_map: Floats | None = None,
        value_centre: Floats | None = None,
        repeats: int = 1,
        batch_first: bool = False,
    ) -> None:
        super().__init__()
        members = [memory] if isinstance(memory, Memory) else list(memory)
        if isinstance(memory, Memories) and "query_map" in memory.arrays:  # made by from_multihead
            query_map, value_centre = (memory.arrays[k] for k in ("query_map", "value_centre"))
            repeats = int(memory.arrays["shape"][1])
        self.memories = memory if isinstance(memory, Memories) else Memories(tuple(members), {}, {})
        self.heads = PrivateHeads(
            members, query_map=query_map, value_centre=value_centre, repeats=repeats
        )
        self.q_proj, self.q_norm, self.out_proj = q_proj, q_norm, out_proj
        self.num_heads = self.heads.joint.heads * repeats
        self.batch_first = batch_first

    @property
    def guarantee(self) -> Guarantee:
        """What is promised, for all heads together."""
        return self.memories.guarantee

    @property
    def card(self) -> Card:
        """What is protected, how much, and from what."""
        return self.memories.card

    @property
    def private(self) -> bool:
        """False if the noise came from a test source."""
        return self.memories.private

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the release to one file, with its card; `attach` puts it on a module again.

        Args:
            path: of the file.
        """
        self.memories.save(path)

    def get_extra_state(self) -> torch.Tensor:
        """Return the name of the release, as bytes: `state_dict` has it beside the numbers."""
        name = self.memories.receipt.id.encode()
        return torch.tensor(list(name), dtype=torch.uint8)

    def set_extra_state(self, state: torch.Tensor) -> None:
        """Refuse the numbers of another release: the card would not be theirs.

        Args:
            state: what `get_extra_state` returned.
        """
        if bytes(state.tolist()) != self.memories.receipt.id.encode():
            raise InvalidInput(
                "Expected the state of the same release; another one has its own card and module."
            )

    def forward(  # noqa: PLR0917 (torch's own signature)
        self,
        query: torch.Tensor,
        key: torch.Tensor | None = None,  # noqa: ARG002
        value: torch.Tensor | None = None,  # noqa: ARG002
        key_padding_mask: torch.Tensor | None = None,
        need_weights: bool = True,  # noqa: ARG002, FBT001, FBT002
        attn_mask: torch.Tensor | None = None,
        average_attn_weights: bool = True,  # noqa: ARG002, FBT001, FBT002
        is_causal: bool = False,  # noqa: ARG002, FBT001, FBT002
    ) -> tuple[torch.Tensor, None]:
        """Return private attention, and None for the weights, which nobody can see.

        Args:
            query: shape (m, batch, E), (batch, m, E) with `batch_first`, or (m, E).
            key: ignored, and `value` too: the context was fixed when it was built.
            value: ignored.
            key_padding_mask: must be None: padding was dropped when the context was built.
            need_weights: ignored.
            attn_mask: must be None: a release cannot leave rows out.
            average_attn_weights: ignored.
            is_causal: ignored.

        Returns:
            Outputs in the shape of the query, but for the width; and None.

        Raises:
            InvalidInput: there is a mask.
        """
        if key_padding_mask is not None or attn_mask is not None:
            raise InvalidInput(
                "Expected no mask (None): a release cannot leave out rows of its context."
            )
        out = self.heads(self._asked(query)).transpose(1, 2).flatten(2)
        if self.out_proj is not None:
            out = self.out_proj(out)
        return unbatched(out, query, batch_first=self.batch_first), None

    def stderr(self, query: torch.Tensor) -> torch.Tensor:
        """Return the standard error of each number of the output, in its shape.

        Against this attention over the exact context, noise and kernel of all heads together: 1.96
        of them hold 95% of the time, but for what bounds clip (`docs/errors.md`). Post-processing,
        like an answer. Not for a compiled path, and without gradients.

        Args:
            query: as for `forward`.

        Returns:
            Standard errors in the shape of the output.

        Raises:
            InvalidInput: the projection behind the heads is not linear.
        """
        with torch.no_grad():
            asked = self._asked(query)
            out = self.out_proj
            weight = None if out is None else linear_weight(out, self.heads.width)
            found = self.heads.stderr(asked, weight)
        return unbatched(found, query, batch_first=self.batch_first)

    def _asked(self, query: torch.Tensor) -> torch.Tensor:
        """Return what is asked of each head, shape (batch, heads, m, d)."""
        rows = batch_of(query, batch_first=self.batch_first)
        asked = rows if self.q_proj is None else self.q_proj(rows)
        asked = asked.reshape(*rows.shape[:2], self.num_heads, -1)
        if self.q_norm is not None:
            asked = self.q_norm(asked)
        return asked.transpose(1, 2)


def from_multihead(
    mha: nn.Module,
    context: Array,
    *,
    epsilon: float,
    delta: float,
    bounds: Bounds | None = None,
    key_norm: PerHead | None = None,
    query_norm: PerHead | None = None,
    value_norm: PerHead | None = None,
    largest_logit: float | None = None,
    groups: Array = None,
    entropy: Entropy | None = None,
    progress: bool = False,
    ledger: Ledger | None = None,
    dataset: str | None = None,
    analyst: str | None = None,
    account: Account | None = None,
    **options: Unpack[PrivateOptions],
) -> PrivateCrossAttention:
    """Return a trained attention module with a private context in place of keys and values.

    (epsilon, delta)-differentially private for one row of the context, or one record (`groups`);
    all heads together, each with its own bounds and temperature. The promise reaches as far as a
    row does: if an encoder made rows of several people's data, give `groups` that keep them
    together. `stderr(query)` of the module says how far its outputs are off; a `MostlyNoiseWarning`
    says here that they are predicted to be mostly noise.

    Args:
        mha: `torch.nn.MultiheadAttention`, or `BoundedAttention`.
        context: what keys and values are made of, shape (n, D); or a pair of such, for keys and for
            values. Without padding.
        epsilon: above 0.
        delta: above 0.
        bounds: from `calibrate`, on public inputs; or from `bounds_of`, the default (for inputs of
            length √D), which is usually far too loose.
        key_norm: in place of the bound on keys: one number, or one for each head. As in `Bounds`,
            of keys that are centred and balanced against queries.
        query_norm: likewise.
        value_norm: likewise.
        largest_logit: clips keys and queries so that no logit is larger; the noise grows with e to
            this power.
        groups: the record of each row, shape (n,); None if each row is its own.
        entropy: where the noise comes from; by default the operating system.
        progress: whether to show a progress bar.
        ledger: where the release is counted, if anywhere: a `discreet.ledger.Ledger`.
        dataset: the name that the rows have there.
        analyst: who asks, if that is to be known.
        account: the three in one, from `Ledger.account`.
        **options: `neighbours`, `rows_hint`, `kernel`, `eps_s`, `features`, `group_rows`,
            `stated`: as for `discreet.build`.

    Returns:
        A module that answers from the release, with copies of the other's public projections.

    Raises:
        BudgetExceeded: the ledger's limit leaves no room; nothing was released.
        InvalidInput: module, context and bounds do not fit each other.
    """
    chosen = bounds_of(mha) if bounds is None else bounds
    _validate.instance("bounds", chosen, Bounds)
    own = chosen.replaced(key_norm=key_norm, query_norm=query_norm, value_norm=value_norm)
    [private] = from_multiheads(
        [mha],
        context,
        epsilon=epsilon,
        delta=delta,
        bounds=[own],
        largest_logit=largest_logit,
        groups=groups,
        entropy=entropy,
        progress=progress,
        account=account_of(ledger, dataset, analyst, account),
        **options,
    )
    return private


def from_multiheads(
    modules: Sequence[nn.Module],
    context: Array,
    *,
    epsilon: float,
    delta: float,
    bounds: Sequence[Bounds] | None = None,
    largest_logit: float | None = None,
    groups: Array = None,
    entropy: Entropy | None = None,
    progress: bool = False,
    ledger: Ledger | None = None,
    dataset: str | None = None,
    analyst: str | None = None,
    account: Account | None = None,
    **options: Unpack[PrivateOptions],
) -> list[PrivateCrossAttention]:
    """Return several layers of a model with one private context, all under one guarantee.

    (epsilon, delta)-differentially private for all of them together, and for all that a model
    answers with them: one release, which a ledger counts once. Arguments are those of
    `from_multihead`.

    Args:
        modules: the layers, which attend to the same rows.
        context: likewise.
        epsilon: of the whole release.
        delta: likewise.
        bounds: one for each layer; None for `bounds_of` each.
        largest_logit: likewise.
        groups: likewise.
        entropy: likewise.
        progress: likewise.
        ledger: likewise.
        dataset: likewise.
        analyst: likewise.
        account: likewise.
        **options: likewise.

    Returns:
        One module for each.

    Raises:
        BudgetExceeded: the ledger's limit leaves no room; nothing was released.
        InvalidInput: modules, context and bounds do not fit each other.
    """
    given = [bounds_of(each) for each in modules] if bounds is None else list(bounds)
    if len(given) != len(modules) or not modules:
        raise InvalidInput("Expected at least one module, and bounds for each.")
    layers = [
        layer_of(Heads.of(module), limits, largest_logit)
        for module, limits in zip(modules, given, strict=True)
    ]
    built = build_layers(
        layers,
        Context.of(context, groups),
        epsilon=epsilon,
        delta=delta,
        account=account_of(ledger, dataset, analyst, account),
        entropy=entropy,
        progress=progress,
        **options,
    )
    made = [
        private_module(module, layer, memories)
        for module, layer, memories in zip(modules, layers, built, strict=True)
    ]
    warn_of_noise((each.memories for each in made), paid=True)
    return made


def layer_of(heads: Heads, bounds: Bounds, largest_logit: float | None) -> Layer:
    """Return a layer with its bounds, clipped to the largest logit that is wanted.

    Args:
        heads: its weights.
        bounds: of the same module.
        largest_logit: None for no limit but the bounds' own.
    """
    _validate.instance("bounds", bounds, Bounds)
    if bounds.key_map.shape[::2] != (heads.key.heads, heads.key.dim):
        raise InvalidInput("Expected bounds of the same module: these are of other heads.")
    return Layer(heads, bounds.capped(heads.scaling, largest_logit))


def private_module(
    module: nn.Module, layer: Layer, memories: list[Memory]
) -> PrivateCrossAttention:
    """Return a module that asks and answers like another one, from released memories.

    Args:
        module: whose public projections are copied.
        layer: its weights and bounds.
        memories: one for each key head.
    """
    notes = {"unit": _UNIT, "bounds": f"{layer.bounds.source}; what is longer is clipped"}
    return PrivateCrossAttention(
        Memories(tuple(memories), notes, public_arrays(layer)), **_public_parts(module)
    )


def attach(mha: nn.Module, path: str | os.PathLike[str]) -> PrivateCrossAttention:
    """Return a module with the private context in a file that `PrivateCrossAttention.save` wrote.

    Warns with `MostlyNoiseWarning` if outputs are predicted to be mostly noise: here, and not when
    it is called, since a module that is compiled or exported cannot warn.

    Args:
        mha: the module that it was made of, or one with the same weights.
        path: of the file.

    Returns:
        A module that answers from the release.

    Raises:
        CorruptRelease: the file is none, was cut short or altered.
        InvalidInput: the release was made with other weights.
    """
    memories = bundle.Memories.load(path)
    check_weights("the module", memories.arrays, Heads.of(mha))
    warn_of_noise([memories])
    return PrivateCrossAttention(memories, **_public_parts(mha))


def _public_parts(module: nn.Module) -> dict[str, Any]:
    """Return how a module asks, and what it makes of answers: copies of its public parts."""
    return {
        "q_proj": _query_projection(module),
        "q_norm": copy.deepcopy(getattr(module, "q_norm", None)),
        "out_proj": copy.deepcopy(module.out_proj),
        "batch_first": bool(module.batch_first),
    }


def _query_projection(mha: nn.Module) -> nn.Module:
    """Return a copy of what makes queries."""
    if not isinstance(mha, nn.MultiheadAttention):
        return copy.deepcopy(mha.q_proj)  # type: ignore[return-value]
    packed = mha.in_proj_weight is not None
    weight = mha.in_proj_weight.chunk(3)[0] if packed else mha.q_proj_weight
    biased = mha.in_proj_bias is not None
    made = nn.Linear(mha.embed_dim, mha.embed_dim, bias=biased).to(weight)
    with torch.no_grad():
        made.weight.copy_(weight)
        if biased:
            made.bias.copy_(mha.in_proj_bias.chunk(3)[0])
    return made
