"""What every structure of the paper is: a released state, what is promised of it, how it is built.

A structure has a state, which is noisy or public throughout, and a promise. Building is: check the
options, add the rows up, and have `release` draw the noise; loading is the last step alone. Nothing
but `release` draws noise in this room.
"""

import abc
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from discreet import _validate, accounting
from discreet._arrays import float64, plain_numbers
from discreet._typing import Floats
from discreet.accounting import Receipt
from discreet.accounting.promise import Promise as PromiseToOne
from discreet.errors import InvalidInput
from discreet.ledger.ledger import count
from discreet.noise import SystemEntropy
from discreet.paper.design import Nodes
from discreet.paper.forest import ExactTrees, Forest
from discreet.paper.options import Accounting, Options, described
from discreet.privacy import NOT_PRIVATE, Card, Guarantee, Neighbours, Privacy, rounded_up

BUILD_BYTES = 24

# What a receipt covers. Always the whole object: whoever gives it away gives away all of it.
WHOLE = "the structure and all its answers"
ALL_COLUMNS = "the whole structure, with all columns of its answers,"

# How often the error that a card names is kept.
_CONFIDENCE = 0.95


@dataclass(frozen=True)
class State(abc.ABC):
    """What a structure keeps: noisy nodes and public numbers, from which everything else follows.

    Attributes:
        accounting: how the noise was set.
    """

    accounting: Accounting

    @property
    @abc.abstractmethod
    def covered(self) -> Nodes:
        """The nodes of a row that the guarantee covers."""

    @property
    def whole(self) -> Nodes:
        """All nodes of a row."""
        return self.covered

    @property
    @abc.abstractmethod
    def nbytes(self) -> int:
        """Bytes of what is noisy."""


@dataclass(frozen=True)
class Promise:
    """What is promised of a state.

    Attributes:
        guarantee: what the paper's theorems give for the parameters that were used.
        receipt: the mechanisms of all nodes of all columns: what giving the structure away costs.
        total_delta: the δ that was asked for in total.
    """

    guarantee: Guarantee
    receipt: Receipt
    total_delta: float


def release(
    exact: Sequence[ExactTrees],
    options: Options,
    *,
    composed: Privacy,
    whole: Nodes,
    scope: str = WHOLE,
) -> tuple[list[Forest], Promise]:
    """Return noisy trees and what is promised of them. The one place that draws noise.

    First the receipt, then the account, and only then the noise: whatever fails before it, nothing
    was released.

    Args:
        exact: the trees, whose noise is drawn in this order.
        options: with the budget, the source of noise, and what the release is counted on.
        composed: what `check_composition` has let through.
        whole: the nodes of all trees that a row touches.
        scope: what the guarantee covers.
    """
    source = SystemEntropy() if options.entropy is None else options.entropy
    receipt = Receipt.issue(
        mechanisms=whole,
        neighbours=Neighbours.REPLACE,
        unit="row",
        scope=WHOLE if scope == WHOLE else ALL_COLUMNS,
        entropy=source,
    )
    guarantee = Guarantee(
        composed.epsilon,
        composed.delta,
        Neighbours.REPLACE,
        unit="row",
        scope=receipt.covering(scope),
    )
    total = options.budget.total.delta
    count(options.account, receipt, delta=total)
    return [trees.noisy(source) for trees in exact], Promise(guarantee, receipt, total)


def kept(path: str, meaning: str) -> Any:  # noqa: ANN401 (whatever is annotated where it is used)
    """Return a property that reads a part of a structure, for its class body."""
    return property(attrgetter(path), doc=meaning)


class Structure(abc.ABC):
    """A noisy data structure: built once from private rows, then queried for ever.

    Neighbours: one row is replaced by another; the number of rows is public. Whatever is kept after
    construction is noisy or public.

    Attributes:
        state: what was released, and the public numbers that it is read with.
        promise: what it costs.
    """

    state: State
    promise: Promise

    def __init_subclass__(cls) -> None:
        """Describe the options that the constructor takes."""
        options = getattr(vars(cls).get("__init__"), "options", None)
        if options is not None and cls.__doc__:
            cls.__doc__ = described(cls.__doc__, options)

    @classmethod
    def of(cls, state: State, promise: Promise) -> Self:
        """Return the structure with a state that was released before; draws nothing.

        Args:
            state: what was released.
            promise: its guarantee and receipt.
        """
        made = object.__new__(cls)
        made.state, made.promise = state, promise
        return made

    guarantee: Guarantee = kept(
        "promise.guarantee", "What the paper's theorems give for the parameters that were used."
    )
    receipt: Receipt = kept(
        "promise.receipt",
        "The mechanisms of all nodes of all columns: what giving the structure away costs.",
    )
    private: bool = kept(
        "promise.receipt.private",
        "False if the noise came from a test source; the guarantee then says so.",
    )
    accounting: Accounting = kept("state.accounting", "How the noise was set.")
    nbytes: int = kept("state.nbytes", "Bytes of noisy state that are kept.")

    @cached_property
    def tight_guarantee(self) -> Guarantee:
        """The guarantee by the privacy loss distribution over all released nodes.

        Never worse than `guarantee`, at the δ that was asked for in total. `docs/privacy.md`,
        "Trees".
        """
        epsilon = accounting.tight(self.state.covered, delta=self.promise.total_delta)
        return Guarantee(
            min(epsilon, self.guarantee.epsilon),
            self.promise.total_delta,
            Neighbours.REPLACE,
            unit=self.guarantee.unit,
            scope=self.guarantee.scope,
        )

    @cached_property
    def whole_guarantee(self) -> Guarantee:
        """What is promised to whoever has the structure, or its file.

        `guarantee`, unless that covers a part of it only (`scope="entry"`): then the tight ε of all
        nodes, at a δ that is larger by as much as they are more.
        """
        whole, covered = (
            sum(count for _, count in nodes)
            for nodes in (self.receipt.mechanisms, self.state.covered)
        )
        if whole == covered:
            return self.guarantee
        return self.receipt.guarantee(delta=min(self.promise.total_delta * whole / covered, 0.5))

    @cached_property
    def card(self) -> Card:
        """What the structure says about itself: `str` for people, `to_dict` for programs.

        Worked out once: its error bound is a search.
        """
        return _card_of(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the structure to a safetensors file: whole, or not at all.

        Released numbers and public settings only. `discreet.paper.load` and `discreet.load` open
        it, and it answers with the same bits.

        Args:
            path: of the file.
        """
        from discreet.paper.file import save  # which knows every kind of structure

        save(self, path)

    def error_bound(self, confidence: float) -> float:
        """Return a bound on the error of `query`: of one answer, or of all if there is a net.

        Worst case over data and queries, in the units of the answer, with all constants: noise,
        points in the query's own leaf, kernel, snapping and lattice rounding. With a net (the
        adaptive structures and attention) it holds for all queries together, however chosen.

        Args:
            confidence: the probability with which it holds, at least; between zero and one.

        Raises:
            InvalidInput: if the confidence is none.
        """
        return self._bound(_validate.real("confidence", confidence, above=0, below=1))

    @abc.abstractmethod
    def _bound(self, confidence: float) -> float:
        """Return the error bound at a confidence that was checked."""

    def __repr__(self) -> str:
        mark = "" if self.private else f" {NOT_PRIVATE}"
        epsilon = rounded_up(self.guarantee.epsilon)
        return f"<{type(self).__name__}{mark}, {self.nbytes:,} bytes, {epsilon}>"


def _card_of(structure: Structure) -> Card:
    """Return the card of a structure."""
    guarantee, receipt = structure.guarantee, structure.receipt
    whole = structure.whole_guarantee
    promise = PromiseToOne.of(whole, receipt)  # who is told what holds for the whole file
    kinds = sorted({mechanism.kind for mechanism, _ in receipt.mechanisms})
    touched = sum(count for _, count in receipt.mechanisms)
    facts: dict[str, object] = {
        "private": structure.private,
        "class": type(structure).__name__,
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "neighbours": str(guarantee.neighbours),
        "unit": guarantee.unit,
        "scope": guarantee.scope,
        "guarantee": str(guarantee),
        "leaks": list(receipt.leaks),
        **_whole_facts(whole if whole != guarantee else None),
        **promise.facts,
        "noise": kinds,
        "nodes_of_a_row": touched,
        "error_bound": structure.error_bound(_CONFIDENCE),
        "error_bound_confidence": _CONFIDENCE,
        "state_bytes": structure.nbytes,
        "entropy": receipt.source,
    }
    mark = (NOT_PRIVATE, f"the noise came from {receipt.source}, a source for tests")
    sentences = [
        *([] if structure.private else [mark]),
        ("structure", f"{facts['class']}, of the paper"),
        (
            "protects",
            f"any one {guarantee.unit} ({guarantee.neighbours.change}): {guarantee.figures}",
        ),
        ("guarantee", str(guarantee)),
        *([("whole file", str(whole))] if whole != guarantee else []),
        ("for one person", promise.in_words),
        ("noise", f"{_words(kinds)}, drawn once; a row touches {touched:,} nodes"),
        (
            "error bound",
            (
                f"at most {facts['error_bound']:.4g}, with probability {_CONFIDENCE:.0%}, whatever "
                "the rows and the query"
            ),
        ),
        ("size", f"{structure.nbytes:,} bytes"),
        ("entropy", receipt.source),
    ]
    return Card(tuple(facts.items()), tuple(sentences))


def _whole_facts(whole: Guarantee | None) -> dict[str, object]:
    """Return what holds for the whole file, where the guarantee covers a part of it only."""
    if whole is None:
        return {}
    return {
        "whole_epsilon": whole.epsilon,
        "whole_delta": whole.delta,
        "whole_guarantee": str(whole),
    }


def _words(kinds: list[str]) -> str:
    return " and ".join(kind.replace("_", " ") for kind in kinds)


def weighted_points(
    name: str, points: ArrayLike, weights: ArrayLike, *, dimensions: int
) -> tuple[Floats, Floats]:
    """Return points, shape (n,) or (n, d), and their weights, shape (n,), if there are any."""
    rows = finite(name, points, shape=(None,) * dimensions)
    signed = finite("weights", weights, shape=(None,))
    check_rows({name: rows, "weights": signed})
    return rows, signed


def check_rows(arrays: dict[str, Floats]) -> None:
    """Check that arrays have as many rows as one another, and at least one of everything.

    Without saying how many: n is public here, but no message needs it.
    """
    names = " and ".join(arrays)
    if any(array.size == 0 for array in arrays.values()):
        raise InvalidInput(f"Expected the shape of {names} to have at least one row and column.")
    if len({len(array) for array in arrays.values()}) > 1:
        raise InvalidInput(f"Expected the shape of {names} to have one and the same row count.")


def finite(name: str, values: ArrayLike, *, shape: tuple[int | None, ...]) -> Floats:
    """Return `values` as float64 if they have the shape (None: any length) and are all finite."""
    array = float64(plain_numbers(name, values))
    fits = array.ndim == len(shape) and all(
        want is None or have == want for have, want in zip(array.shape, shape, strict=True)
    )
    if not fits:
        # The shape that came is not shown: one of its numbers is that of the rows.
        wanted = ", ".join("any" if want is None else str(want) for want in shape)
        raise InvalidInput(f"Expected the shape of {name} to be ({wanted}).")
    if not np.all(np.isfinite(array)):
        raise InvalidInput(f"Expected {name} to have no NaN and no infinity.")
    return array


def check_size(factors: dict[str, int], *, limit: int) -> None:
    """Raise `InvalidInput` if a product of factors, in bytes, exceeds the limit.

    Runs before anything is allocated; names the largest factor, which is what to change. A number
    takes 8 bytes in the finished structure, and up to three times that while it is built.
    """
    limit = _validate.whole("memory_limit", limit, at_least=1)
    factors = {name: number for name, number in factors.items() if number > 1}
    size = math.prod(factors.values()) * BUILD_BYTES
    if size > limit:
        driver = max(factors, key=lambda name: factors[name])
        counts = [f"{count:,} {name}" for name, count in factors.items()]
        parts = " × ".join([*counts, f"{BUILD_BYTES} bytes while building"])
        raise InvalidInput(
            f"Expected at most memory_limit={limit:,} bytes, got {size:,} ({parts}); "
            f"mostly because of the {driver}."
        )
