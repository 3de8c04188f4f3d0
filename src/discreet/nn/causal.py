"""Private causal self-attention: each record attends to all before it, and every layer is private.

Records arrive in steps. In every layer a record asks the *released* state of all earlier steps;
then its own keys and values, in all layers, are added, and the next states are released. So what
anybody is answered depends on releases and on her own record: all layers and heads, at all steps,
are one Gaussian mechanism, and answers are jointly private. What that means, and what it does not:
`docs/privacy.md`, "Causal self-attention".
"""

import copy
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NoReturn, Unpack

import torch
from torch import nn

from discreet import _validate
from discreet._typing import Array
from discreet.accounting import Receipt
from discreet.errors import BudgetExceeded, InvalidInput
from discreet.ledger import Account, Ledger
from discreet.ledger.ledger import account_of, count
from discreet.nn.attention import PrivateCrossAttention, layer_of, private_module
from discreet.nn.bounds import Bounds, bounds_of
from discreet.nn.building import (
    Context,
    Layer,
    PrivateOptions,
    check_options,
    in_evaluation,
    kernels_of,
    own_options,
)
from discreet.nn.heads import Heads
from discreet.nn.reading import PrivateHeads
from discreet.noise import Entropy, SystemEntropy
from discreet.noise.correlated import Continual, Participation, Reading, chosen
from discreet.privacy import NOT_PRIVATE, Guarantee, Neighbours, Privacy, rounded_up
from discreet.readers.attention.mechanism import ATTENTION
from discreet.readers.attention.memory import Memory
from discreet.readers.attention.options import Options
from discreet.stream.design import epsilon_of_state, resolve
from discreet.stream.state import StreamState, released
from discreet.sums.accumulate import Accumulator
from discreet.sums.settings import Settings, Shape, Unit
from discreet.sums.source import Records, tables_of

_COPIED = "A private stream is never pickled or copied: noise would be drawn twice."


@dataclass(frozen=True, eq=False)
class CausalBlock:
    """One layer of a causal model: h + attention(norm(h)), and then h + feed_forward(h).

    Public weights: trained on public data.

    Attributes:
        attention: `torch.nn.MultiheadAttention`, or `BoundedAttention`.
        norm: before the attention; None for none.
        feed_forward: with its own norm, if it has one; None for none.
        bounds: on keys, queries and values; None for `bounds_of`.
    """

    attention: nn.Module
    norm: nn.Module | None = None
    feed_forward: nn.Module | None = None
    bounds: Bounds | None = None


class PrivateCausalStack(nn.Module):
    """A causal model over a stream of private records, all layers and heads under one guarantee.

    (epsilon, delta)-differentially private for one person's record, all states of all layers at all
    steps together; and the answers are jointly private: all answers to others, with all states,
    tell no more about her. Her own answers are for her alone.
    `docs/privacy.md`, "Causal self-attention"::

        stack = PrivateCausalStack([block, block], steps=4096, epsilon=2.0, delta=1e-6)
        mine = stack(record)          # one step: attends to all records before, then is added
        public = stack.ask(queries)   # public queries: nothing is added

    States live in this object: it cannot be copied or pickled, since two copies would draw noise
    twice for one step. What was released can be saved (`layers`).

    Args:
        blocks: one for each layer.
        steps: how many there will be, about: the noise is least there. There may be more.
        epsilon: of all of it together.
        delta: likewise.
        participations: in so many steps a person may have records. Nobody checks that here.
        separation: and those at least so many steps apart.
        by_record: whether a person may have several rows in a step: then steps come with groups.
        largest_logit: clips keys and queries so that no logit is larger; the noise grows with e to
            this power.
        entropy: where the noise comes from; by default the operating system.
        ledger: where the stream is counted, once, if anywhere.
        dataset: the name that the records have there.
        analyst: who asks, if that is to be known.
        account: the three in one, from `Ledger.account`.
        **options: `neighbours`, `rows_hint` (of all `steps` together), `kernel`, `eps_s`,
            `features`, `group_rows`, `stated`: as for `discreet.build`.
    """

    def __init__(
        self,
        blocks: Sequence[CausalBlock],
        *,
        steps: int,
        epsilon: float,
        delta: float,
        participations: int = 1,
        separation: int = 1,
        by_record: bool = False,
        largest_logit: float | None = None,
        entropy: Entropy | None = None,
        ledger: Ledger | None = None,
        dataset: str | None = None,
        analyst: str | None = None,
        account: Account | None = None,
        **options: Unpack[PrivateOptions],
    ) -> None:
        super().__init__()
        if not blocks:
            raise InvalidInput("Expected at least one block.")
        for each in blocks:
            _validate.instance("blocks", each, CausalBlock)
        if entropy is not None:
            _validate.instance("entropy", entropy, Entropy)
        self._entropy = SystemEntropy() if entropy is None else entropy
        # Weights as they are now: keys and queries of all steps are made by the same.
        self._blocks = [replace(each, attention=copy.deepcopy(each.attention)) for each in blocks]
        self._limits = [_layer(each, largest_logit) for each in blocks]
        self._width = self._limits[0].heads.key.width
        self._settings = _settings(
            self._limits,
            {"epsilon": epsilon, "delta": delta, **options},
            unit=Unit.RECORD if by_record else Unit.ROW,
            steps=steps,
            participation=Participation(
                _validate.whole("participations", participations, at_least=1), separation
            ),
        )
        self.norms = nn.ModuleList([_or_identity(each.norm) for each in blocks])
        self.feed_forwards = nn.ModuleList(
            [_Nothing() if each.feed_forward is None else each.feed_forward for each in blocks]
        )
        counted = account_of(ledger, dataset, analyst, account)
        self._settings.check(counted)
        self._receipt = self._settings.receipt(self._entropy)
        count(counted, self._receipt, delta=delta)
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._state = StreamState.begin(self._settings)
        self._modules_of_step: list[PrivateCrossAttention] | None = None
        self._repeats_itself = False

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(_COPIED)

    def _replicate_for_data_parallel(self) -> NoReturn:
        raise TypeError(_COPIED)

    @property
    def settings(self) -> Settings[Any]:
        """The public settings of all sums."""
        return self._settings

    @property
    def receipt(self) -> Receipt:
        """What is spent on all steps together, once."""
        return self._receipt

    @property
    def guarantee(self) -> Guarantee:
        """What is promised, for all layers, heads and steps together."""
        return self._settings.guarantee(self._receipt)

    @property
    def step(self) -> int:
        """How many steps there have been."""
        return self._state.step

    @property
    def layers(self) -> list[PrivateCrossAttention]:
        """One private module for each layer, of the state after the last step.

        Released, and nobody's: they can be asked by anybody, saved and given away, and have the
        card, with the guarantee of the whole stream.
        """
        memories = self._memories(self._state)
        return [
            private_module(block.attention, layer, each)
            for block, layer, each in zip(self._blocks, self._limits, memories, strict=True)
        ]

    def forward(self, records: torch.Tensor, groups: Array = None) -> torch.Tensor:
        """Return each person's own answers in one step, and add their records to what is private.

        Every record is answered from the states before this step, alone, so that no bit of one
        person's keys depends on another; then all are added, and the next states are released. No
        gradients. Answer t goes to the owner of record t, and to nobody else. Whoever was
        interrupted looks at `step` before trying again: records that are added twice count twice.

        Args:
            records: of this step, shape (n, E), or (E,) for one; no records are a step, too.
            groups: the person of each row, shape (n,), if the stack was made `by_record`.

        Returns:
            In the shape of the records.
        """
        if os.getpid() != self._process:
            raise BudgetExceeded("Expected the process that made this stream: a fork is a copy.")
        rows = _rows_of("records", records, self._width)
        people = None if groups is None else Records.of(groups, len(rows)).of_row
        parts = _apart(len(rows), people)
        inputs: list[list[torch.Tensor]] = [[] for _ in self._blocks]
        answers = torch.empty_like(rows)
        with self._lock, torch.no_grad(), self._as_written():
            for part in parts:
                answers[part] = self._run(rows[part], inputs)
            self._check_repeats(rows, parts, answers)
            order = torch.cat([*parts, torch.empty(0, dtype=torch.long)])
            self._add([torch.cat([rows[:0], *each]) for each in inputs], order, people)
        return answers.reshape(records.shape)

    @contextmanager
    def _as_written(self) -> Iterator[None]:
        """Run modules as in evaluation, and as they are written: no dropout, nothing compiled."""
        with in_evaluation(self), torch.compiler.set_stance("force_eager"):
            yield

    def _check_repeats(
        self, rows: torch.Tensor, parts: list[torch.Tensor], answers: torch.Tensor
    ) -> None:
        """Refuse modules that answer one record in two ways: others' bits would depend on it."""
        if self._repeats_itself or not parts:
            return
        again = self._run(rows[parts[0]], [[] for _ in self._blocks])
        if not torch.equal(again, answers[parts[0]]):
            raise InvalidInput(
                "Expected blocks to make the same of a record each time: switch off whatever is "
                "random, or remembers records."
            )
        self._repeats_itself = True

    def ask(self, queries: torch.Tensor) -> torch.Tensor:
        """Return what the model makes of public inputs, from the last states. Nothing is added.

        Post-processing: as often as liked, for anybody.

        Args:
            queries: nobody's record, shape (m, E), or (E,).
        """
        rows = _rows_of("queries", queries, self._width)
        with self._lock, torch.no_grad(), in_evaluation(self):
            return self._run(rows, [[] for _ in self._blocks]).reshape(queries.shape)

    def _run(self, hidden: torch.Tensor, inputs: list[list[torch.Tensor]]) -> torch.Tensor:
        """Return what all layers make of some rows; keep what each attention was given."""
        for index in range(len(self._blocks)):
            given = self.norms[index](hidden)
            inputs[index].append(given)
            hidden = hidden + self._attended(index, given)
            hidden = hidden + self.feed_forwards[index](hidden)
        return hidden

    def _attended(self, index: int, given: torch.Tensor) -> torch.Tensor:
        """Return what one layer answers from the released state; zeros before the first step."""
        if self._modules_of_step is None:
            return torch.zeros_like(given)
        out: torch.Tensor = self._modules_of_step[index](given)[0]
        return out

    def _add(self, inputs: list[torch.Tensor], order: torch.Tensor, people: Array) -> None:
        """Add the rows of a step in all layers, draw its noise, and read the next states."""
        accumulator = Accumulator(self._settings)
        pairs = []
        for layer, each in zip(self._limits, inputs, strict=True):
            context = Context.of(each)
            pairs += layer.project(context.rows, context.value_rows)
        groups = None if people is None else people[order.numpy()]
        accumulator.add(tables_of(pairs), groups=groups)
        state = self._state.next(
            accumulator.sums, self._settings, self._entropy, rows=accumulator.rows
        )
        modules = self._modules_for(state)
        self._state, self._modules_of_step = state, modules  # what fails before has added nothing

    def _modules_for(self, state: StreamState) -> list[PrivateCrossAttention]:
        """Return modules that answer from a state, plainly: each is read for one step."""
        memories = [[memory.plain for memory in each] for each in self._memories(state)]
        if self._modules_of_step is None:
            return [
                private_module(block.attention, layer, each)
                for block, layer, each in zip(self._blocks, self._limits, memories, strict=True)
            ]
        made = []
        for module, layer, each in zip(self._modules_of_step, self._limits, memories, strict=True):
            following = copy.copy(module)  # projections are the same
            following._modules = dict(module._modules)  # noqa: SLF001 (torch copies no further)
            following.heads = PrivateHeads(
                each,
                query_map=layer.bounds.query_map,
                value_centre=layer.bounds.value_centre,
                repeats=layer.heads.repeats,
            )
            made.append(following)
        return made

    def _memories(self, state: StreamState) -> list[list[Memory]]:
        """Return the memories of each layer, of a state."""
        if not state.step:
            raise InvalidInput("Expected a stream with at least one step.")
        states = iter(
            released(
                state.totals,
                self._settings,
                self._receipt,
                step=state.step,
                reading=Reading(),
                rows=state.rows,
                rows_hint=None,
            )
        )
        return [
            [Memory(next(states)) for _ in range(layer.heads.key.heads)] for layer in self._limits
        ]

    def extra_repr(self) -> str:
        """Return how many layers and steps, and what is promised."""
        epsilon = rounded_up(self.guarantee.epsilon)
        mark = "" if self._receipt.private else f"{NOT_PRIVATE}, "
        return f"{mark}layers={len(self._blocks)}, steps={self.step}, ε = {epsilon} for all of them"


class PrivateCausalAttention(PrivateCausalStack):
    """One causal attention layer over a stream of private records: its outputs, and no more.

    As `PrivateCausalStack`, with answers that are the attention's own: no residual, no norm.

    Args:
        attention: `torch.nn.MultiheadAttention`, or `BoundedAttention`.
        bounds: on keys, queries and values; None for `bounds_of`.
        **options: all that `PrivateCausalStack` takes: `steps`, `epsilon`, `delta`, ...
    """

    def __init__(
        self,
        attention: nn.Module,
        *,
        bounds: Bounds | None = None,
        **options: Any,  # noqa: ANN401 (those of the stack)
    ) -> None:
        super().__init__([CausalBlock(attention, bounds=bounds)], **options)

    def _run(self, hidden: torch.Tensor, inputs: list[list[torch.Tensor]]) -> torch.Tensor:
        inputs[0].append(hidden)
        return self._attended(0, hidden)


def _rows_of(name: str, given: torch.Tensor, width: int) -> torch.Tensor:
    """Return rows of shape (n, E), or one of shape (E,), as rows."""
    _validate.instance(name, given, torch.Tensor)
    if given.dim() not in {1, 2} or given.shape[-1] != width:
        _validate.reject(f"{name}.shape", tuple(given.shape), f"(n, {width}), or ({width},)")
    return given if given.dim() == 2 else given[None]


class _Nothing(nn.Module):
    """Adds nothing."""

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(hidden)


def _or_identity(norm: nn.Module | None) -> nn.Module:
    return nn.Identity() if norm is None else norm


def _layer(block: CausalBlock, largest_logit: float | None) -> Layer:
    limits = bounds_of(block.attention) if block.bounds is None else block.bounds
    return layer_of(Heads.of(block.attention), limits, largest_logit)


def _apart(count: int, people: Array) -> list[torch.Tensor]:
    """Return the rows of each person, in the order in which they come."""
    if people is None:
        return list(torch.arange(count)[:, None])
    return [
        torch.from_numpy((people == each).nonzero()[0])
        for each in range(max(people, default=-1) + 1)
    ]


def _settings(
    layers: Sequence[Layer],
    options: dict[str, Any],
    *,
    unit: Unit,
    steps: int,
    participation: Participation,
) -> Settings[Any]:
    """Return the settings of a stream of all heads of all layers, each with its own kernel."""
    check_options(options)
    heads = sum(layer.heads.key.heads for layer in layers)
    neighbours = Neighbours.parse(options.get("neighbours", Neighbours.ADD_REMOVE))
    privacy = Privacy(options["epsilon"], options["delta"], neighbours)
    tune = Reading()
    continual = Continual(chosen(tune, participation, steps=steps), participation)
    epsilon = epsilon_of_state(privacy, heads, continual, tune, steps=steps)
    noisy = {**options, "epsilon": epsilon}
    kernels = [kernel for layer in layers for kernel in kernels_of(layer, heads, unit, noisy)]
    asked = Options(
        **own_options(options),
        kernel=kernels,
        value_norm=[float(norm) for layer in layers for norm in layer.bounds.value_norm],
    )
    asked.warn_if_nobody_is_protected()
    shapes = [
        Shape(heads=(), key_dim=layer.key_dim, value_dim=layer.value_dim)
        for layer in layers
        for _ in range(layer.heads.key.heads)
    ]
    return resolve(
        ATTENTION,
        shapes,
        asked,
        unit=unit,
        steps=steps,
        tune=tune,
        participation=participation,
        enforced=False,
    )
