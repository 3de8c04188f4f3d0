"""What every structure of the paper offers, and the checks that all of them need."""

import abc
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from discreet import _validate, accounting
from discreet._arrays import float64, plain_numbers
from discreet._card import Card
from discreet._typing import Floats
from discreet._warn import warn
from discreet.accounting import Mechanism, Receipt
from discreet.errors import BudgetExceeded, InvalidInput
from discreet.ledger.account import Counted, count
from discreet.ledger.ledger import account_of
from discreet.noise import Entropy, SystemEntropy
from discreet.privacy import NOT_PRIVATE, Guarantee, Neighbours, Privacy, rounded_up

MEMORY_LIMIT = 4 * 2**30
BUILD_BYTES = 24

# A sum of k equal shares may exceed the whole by rounding; it never does so in exact arithmetic.
_ROUNDING = 1e-13

# Bounds and answers beyond these would leave float64 when they are squared.
_LEAST, LARGEST_BOUND = 1e-100, 1e100

# Far beyond any use; overflows begin later.
_LARGEST_EPSILON = 1e9

# What a receipt covers. Always the whole object: whoever gives it away gives away all of it.
WHOLE = "the structure and all its answers"
ALL_COLUMNS = "the whole structure, with all columns of its answers,"


# The largest c that the theorems allow for what was asked for.
LARGEST = "largest"
_LARGEST_C = 1e9


class Accounting(StrEnum):
    """How the noise is set: by the paper's theorems, or by the privacy loss distribution."""

    PAPER = "paper"
    TIGHT = "tight"


class Structure(abc.ABC):
    """A noisy data structure: built once from private rows, then queried for ever.

    Neighbours: one row is replaced by another; the number of rows is public. Whatever is kept after
    construction is noisy or public.

    Attributes:
        guarantee: what the paper's theorems give for the parameters that were used.
        receipt: the mechanisms of all nodes of all columns: what giving the structure away costs.
    """

    guarantee: Guarantee
    receipt: Receipt

    _mechanisms: Sequence[tuple[Mechanism, int]]
    _total_delta: float

    def _promise(
        self,
        composed: Privacy,
        *,
        requested: Privacy,
        mechanisms: Sequence[tuple[Mechanism, int]],
        entropy: Entropy | None,
        counted: Counted,
        scope: str = WHOLE,
        whole: Sequence[tuple[Mechanism, int]] | None = None,
    ) -> Entropy:
        """Set receipt and guarantee, and return the source from which noise may now be drawn.

        Args:
            composed: what `check_composition` has let through.
            requested: the (ε, δ) that was asked for in total.
            mechanisms: the nodes that the guarantee covers.
            entropy: as given; None for the operating system.
            counted: the ledger on which the release is counted, data set and analyst; if on any.
            scope: what the guarantee covers.
            whole: the nodes of the whole structure, if the guarantee covers only a part of it.
        """
        account = account_of(**counted)
        source = SystemEntropy() if entropy is None else entropy
        self.receipt = Receipt.issue(
            mechanisms=mechanisms if whole is None else whole,
            neighbours=Neighbours.REPLACE,
            unit="row",
            scope=WHOLE if whole is None else ALL_COLUMNS,
            entropy=source,
        )
        self.guarantee = Guarantee(
            composed.epsilon,
            composed.delta,
            Neighbours.REPLACE,
            unit="row",
            scope=self.receipt.covering(scope),
        )
        count(account, self.receipt, delta=requested.delta)
        self._mechanisms = mechanisms
        self._total_delta = requested.delta
        return source

    @property
    def private(self) -> bool:
        """False if the noise came from a test source; the guarantee then says so."""
        return self.receipt.private

    @cached_property
    def tight_guarantee(self) -> Guarantee:
        """The guarantee by the privacy loss distribution over all released nodes.

        Never worse than `guarantee`, at the δ that was asked for in total. `docs/privacy.md`,
        "Trees".
        """
        epsilon = accounting.tight(self._mechanisms, delta=self._total_delta)
        return Guarantee(
            min(epsilon, self.guarantee.epsilon),
            self._total_delta,
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
            for nodes in (self.receipt.mechanisms, self._mechanisms)
        )
        if whole == covered:
            return self.guarantee
        return self.receipt.guarantee(delta=min(self._total_delta * whole / covered, 0.5))

    @property
    def card(self) -> Card:
        """What the structure says about itself: `str` for people, `to_dict` for programs."""
        from discreet.paper.card import card_of  # which asks structures

        return card_of(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the structure to a safetensors file: whole, or not at all.

        Released numbers and public settings only. `discreet.paper.load` and `discreet.load` open
        it, and it answers with the same bits.
        """
        from discreet.paper.file import save  # which knows every kind of structure

        save(self, path)

    @property
    @abc.abstractmethod
    def nbytes(self) -> int:
        """Bytes of noisy state that are kept."""

    @abc.abstractmethod
    def error_bound(self, confidence: float) -> float:
        """Return a bound on the error of `query` that holds with at least this probability.

        Worst case over data and queries, in the units of the answer, with all constants: noise,
        points in the query's own leaf, kernel, snapping and lattice rounding.
        """

    def __repr__(self) -> str:
        mark = "" if self.private else f" {NOT_PRIVATE}"
        epsilon = rounded_up(self.guarantee.epsilon)
        return f"<{type(self).__name__}{mark}, {self.nbytes:,} bytes, {epsilon}>"


def check_composition(composed: Privacy, requested: Privacy) -> Privacy:
    """Return what was composed, or raise `BudgetExceeded` if it does not reach the request."""
    if composed.epsilon > requested.epsilon * (1 + _ROUNDING) or composed.delta > (
        requested.delta * (1 + _ROUNDING)
    ):
        raise BudgetExceeded(
            f"Expected the parameters to compose to {requested}, got {composed}: use a smaller c."
        )
    return replace_privacy(
        min(composed.epsilon, requested.epsilon), min(composed.delta, requested.delta)
    )


def settled_c(c: float | str, composed: Callable[[float], Privacy], requested: Privacy) -> float:
    """Return the paper's constant: as given, or the largest that composes to the request.

    Args:
        c: a number, or "largest".
        composed: what the theorems give for a c; it grows with c.
        requested: the (ε, δ) in total.
    """
    if checked_c(c) is not None:
        return float(c)

    def fits(log_c: float) -> bool:
        found = composed(math.exp(log_c))
        return found.epsilon <= requested.epsilon and found.delta <= requested.delta * (
            1 + _ROUNDING
        )

    low, high = math.log(1e-9), math.log(_LARGEST_C)
    if fits(high):
        return _LARGEST_C
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return math.exp(low)


def checked_c(c: object) -> float | None:
    """Return c if it is a number that makes sense, or None if it is "largest"."""
    if isinstance(c, str):
        if c != LARGEST:
            _validate.reject("c", c, f'a number above 0, or "{LARGEST}"')
        return None
    return _validate.real("c", c, above=0, at_most=_LARGEST_C)


def checked_copies(copies: int | None, needed: int) -> int:
    """Return how many copies a median is taken of: as given, or as many as are needed."""
    return needed if copies is None else _validate.whole("copies", copies, at_least=1)


def public_bound(name: str, value: object) -> float:
    """Return a public bound if its squares and products stay within float64."""
    return _validate.real(name, value, at_least=_LEAST, at_most=LARGEST_BOUND)


def replace_privacy(epsilon: float, delta: float) -> Privacy:
    """Return a `Privacy` under the paper's neighbouring relation."""
    return Privacy(epsilon, delta, Neighbours.REPLACE)


def compose_equal(part: Privacy, count: int, *, delta_prime: float) -> Privacy:
    """Return the better of the paper's two composition theorems for `count` equal parts."""
    simple = accounting.basic([(part, count)])
    if part.epsilon > 1:  # e^ε - 1 > ε: then basic composition is always the better one
        return simple
    advanced = accounting.advanced(part, count, delta_prime=delta_prime)
    return simple if simple.epsilon <= advanced.epsilon else advanced


@dataclass(frozen=True)
class Budget:
    """What a structure may spend: ε, δ for truncation, δ' for advanced composition (or none)."""

    epsilon: float
    delta: float
    delta_prime: float | None = None

    def __post_init__(self) -> None:
        _validate.real("epsilon", self.epsilon, above=0, at_most=_LARGEST_EPSILON)
        _validate.real("delta", self.delta, above=0, below=0.5)
        if self.delta_prime is not None:
            _validate.real("delta_prime", self.delta_prime, above=0, below=0.5)

    @property
    def prime(self) -> float:
        """δ', zero if there is none."""
        return self.delta_prime or 0.0

    @property
    def total(self) -> Privacy:
        """The (ε, δ + δ') that the whole must stay within."""
        return replace_privacy(self.epsilon, self.delta + self.prime)

    def share(self, parts: int) -> "Budget":
        """Return an equal share: basic composition of `parts` of them is the whole."""
        prime = None if self.delta_prime is None else self.delta_prime / parts
        return Budget(self.epsilon / parts, self.delta / parts, prime)

    @property
    def spent(self) -> Privacy:
        """The (ε, δ) of one node, if this is the share of one node."""
        return replace_privacy(self.epsilon, self.delta)


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
    size = math.prod(factors.values()) * BUILD_BYTES
    if size > limit:
        driver = max(factors, key=lambda name: factors[name])
        counts = [f"{count:,} {name}" for name, count in factors.items()]
        parts = " × ".join([*counts, f"{BUILD_BYTES} bytes while building"])
        raise InvalidInput(
            f"Expected at most memory_limit={limit:,} bytes, got {size:,} ({parts}); "
            f"mostly because of the {driver}."
        )


def warn_noise(message: str) -> None:
    """Warn that answers will be noise; from public parameters only."""
    warn(message, UserWarning)
