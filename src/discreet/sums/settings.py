"""The public settings of a release: one Gaussian mechanism over all heads and layers.

Or, where contributions are bounded in the L1 norm (`sums.cells`), discrete Laplace noise; and a
release may be made of both, and of names that only many have (`beside`).

Mechanisms make them from options and shapes (`Mechanism.resolve`): pure functions of public
numbers. Nothing here ever sees a row, or how many there are: a builder who needs a size gives a
public `rows_hint`.
"""

import hashlib
import json
import math
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, cached_property
from typing import Generic, TypeVar

from discreet import _validate, accounting
from discreet.accounting import Receipt
from discreet.errors import InvalidInput
from discreet.ledger.ledger import Account, check
from discreet.noise import DiscreteLaplace, Entropy, RoundedGaussian
from discreet.noise.correlated import MOST_STEPS, Continual
from discreet.noise.exact import LARGEST_SCALE
from discreet.privacy import Guarantee, Neighbours, Privacy
from discreet.provenance import Stated
from discreet.sums.layout import AnyLayout_co, Norm, RowLayout

# A sum this many standard errors above zero is clear of the noise.
CLEAR = 5.0

# The noise is aimed at this many lattice units: fine enough to see no rounding, and coarse enough
# for exact draws to be fast.
_NOISE_BITS = 36
_FEATURE_BITS = 16
_LEAST_RESOLUTION, _FINEST_RESOLUTION = 8, 22


AnyPart = TypeVar("AnyPart", bound=RowLayout)


class Unit(StrEnum):
    """Whom the guarantee protects."""

    ROW = "row"
    RECORD = "record"


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What one layer looks like, without its number of rows.

    Attributes:
        heads: leading axes of keys and values; () for one head.
        key_dim: width of keys, d.
        value_dim: width of values, d_v.
    """

    heads: tuple[int, ...]
    key_dim: int
    value_dim: int

    def __post_init__(self) -> None:
        heads = tuple(_validate.whole("heads", each, at_least=1) for each in self.heads)
        object.__setattr__(self, "heads", heads)
        for name in ("key_dim", "value_dim"):
            _validate.whole(name, getattr(self, name), at_least=1)


@dataclass(frozen=True, kw_only=True)
class Settings(Generic[AnyLayout_co]):
    """What all states of one build share; fixed before the first row is read.

    Each head's state gets noise in proportion to its own sensitivity s: σ = multiplier·s. A row
    moves every head by at most s, so the whole release is one Gaussian mechanism of sensitivity
    √heads and standard deviation `multiplier`, in units of s. `docs/privacy.md`, "Memory".

    Attributes:
        layouts: the layers.
        privacy: what the whole release may spend.
        unit: a row, or a record of many rows.
        group_rows: a record's influence is scaled down to that of so many rows.
        rows_hint: the public number of rows that the builder gave, if any.
        leaks: names of what was taken from the rows: on the receipt, and wherever that goes.
        share: of the squared budget that these sums have; one where there is one pass over the
            rows. The shares of all passes of a release add up to one (`Door`).
        continual: of a stream: how its noise follows from step to step, and in how many steps a
            unit may have rows. None for sums that are released once.
        pure: ε that cells in the L1 norm spend; then all layouts are such. 0 for Gaussian noise.
        beside: what is released besides under the same guarantee, by mechanisms that are not
            Gaussian; the Gaussian one has what they leave.
        noun: what is built, in one word and in the plural, where that is not what its layouts say.
        stated: by the builder, about the whole release. No sum depends on it, so it is no part of
            the digest.
    """

    layouts: tuple[AnyLayout_co, ...]
    privacy: Privacy
    unit: Unit
    group_rows: float = 1.0
    rows_hint: int | None = None
    leaks: tuple[str, ...] = ()
    share: float = 1.0
    continual: Continual | None = None
    pure: float = 0.0
    beside: tuple[accounting.Mechanism, ...] = ()
    noun: tuple[str, str] | None = None
    stated: Stated | None = None

    def __post_init__(self) -> None:
        if any((layout.norm is Norm.L1) is not (self.pure > 0) for layout in self.layouts):
            raise InvalidInput(
                "Expected cells, which have Laplace noise, in settings of their own."
            )
        group_rows = _validate.real("group_rows", self.group_rows, at_least=1e-3, at_most=1e6)
        if self.unit is Unit.ROW and group_rows != 1:
            _validate.reject("group_rows", self.group_rows, "1 unless groups are given")
        object.__setattr__(self, "group_rows", group_rows)
        for layout in self.layouts:
            largest = max(self.scales(layout))
            if largest > LARGEST_SCALE:
                _validate.reject(
                    "epsilon",
                    self.privacy.epsilon,
                    f"larger{layout.or_else}: the noise would be "
                    f"{self._relative_noise:,.0f} times what one row can contribute",
                )
            if self.continual is not None:
                self.continual.strategy.check_room(largest)
        if self.continual is not None and self.continual.enforced and self.unit is not Unit.RECORD:
            raise InvalidInput("Expected groups: who has had rows is known by the ids of records.")

    @cached_property
    def head_count(self) -> int:
        """The number of heads of all layers together; a program without layers has one."""
        return sum([layout.head_count for layout in self.layouts]) or 1

    @property
    def multiplier(self) -> float:
        """σ in units of one head's sensitivity."""
        return noise_multiplier(self.privacy, self.head_count, self.beside)

    @property
    def _relative_noise(self) -> float:
        """The noise in units of what one row can contribute."""
        return (1 / self.pure if self.pure else self.multiplier) * self.group_rows

    @property
    def mechanism(self) -> accounting.Gaussian:
        """All that is Gaussian in the release, as the accountant sees it."""
        return accounting.Gaussian(
            sigma=self.multiplier,
            sensitivity=_root(self.head_count),
            neighbours=self.privacy.neighbours,
        )

    @property
    def mechanisms(self) -> tuple[accounting.Mechanism, ...]:
        """The whole release, as the accountant sees it."""
        if not self.pure:
            return (self.mechanism, *self.beside)
        return (
            *[
                accounting.DiscreteLaplace(
                    scale=scale,
                    sensitivity=round(self.sensitivity(layout)),
                    neighbours=self.privacy.neighbours,
                )
                for layout in self.layouts
                for scale in self.scales(layout)
            ],
            *self.beside,
        )

    def check(self, account: Account | None) -> None:
        """Raise `BudgetExceeded` if there is an account with too little left for the release.

        Args:
            account: where the release will be counted, if anywhere.

        Raises:
            BudgetExceeded: it would not fit.
        """
        pairs = [(each, 1) for each in self.mechanisms]
        check(account, pairs, unit=str(self.unit), delta=self.privacy.delta)

    def sensitivity(self, layout: RowLayout) -> float:
        """Return how far one head's sums of a layer can move, in lattice units.

        Sums in several parts: each part times its weight. For records only the sum over all heads
        is bounded, by √heads times this.

        Args:
            layout: of the layer.
        """
        return unit_sensitivity(layout, self.privacy.neighbours, self.unit, self.group_rows)

    def sigma(self, layout: RowLayout) -> float:
        """Return the standard deviation of the noise on a layer's first part, in lattice units.

        Of cells: the scale of Laplace noise that would spend the whole of `pure` on each part.

        Args:
            layout: of the layer.
        """
        if self.pure:
            return self.sensitivity(layout) / self.pure
        return self.multiplier * self.stretch * self.sensitivity(layout) / math.sqrt(self.share)

    @cached_property
    def stretch(self) -> float:
        """How much further a unit moves all draws of a stream than those of one single release.

        In units of each head's sensitivity: √heads·(what the strategy makes of it), and what
        rounding adds, at most ρ for each number of each step. `docs/privacy.md`, "Streams".
        """
        if self.continual is None:
            return 1.0
        squared = sum(
            weight**2 * math.prod(shape) / self.sensitivity(layout) ** 2
            for layout in self.layouts
            for weight, shape in zip(layout.part_weights, layout.shapes, strict=True)
        )
        rounding = self.continual.strategy.rounding * math.sqrt(MOST_STEPS * squared)
        return self.continual.sensitivity + rounding / math.sqrt(self.head_count)

    def part(self, layout: AnyPart, share: float) -> "Settings[AnyPart]":
        """Return the settings of one of several passes, which spends a share of the squared budget.

        Args:
            layout: what a row adds in that pass.
            share: of the squared budget.
        """
        return Settings(
            layouts=(layout,),
            privacy=self.privacy,
            unit=self.unit,
            group_rows=self.group_rows,
            rows_hint=self.rows_hint,
            share=self.share * share,
            beside=self.beside,
        )

    def scales(self, layout: RowLayout) -> tuple[float, ...]:
        """Return σ of the noise of each part of a layer (of cells: its scale), in lattice units.

        Args:
            layout: of the layer.
        """
        return part_sigmas(layout, self.sigma(layout))

    def laws(self, layout: RowLayout) -> tuple[RoundedGaussian | DiscreteLaplace, ...]:
        """Return the noise of each part of a layer.

        Args:
            layout: of the layer.
        """
        return tuple([law_of(layout, each) for each in self.scales(layout)])

    @property
    def crude_multiplier(self) -> float:
        """σ in units of the largest contribution of one row; for replaced rows at most this."""
        return crude_multiplier(self.privacy, self.head_count, self.group_rows)

    @property
    def squared_cap(self) -> float:
        """A record's contribution, in units of each head's C, has at most this squared norm."""
        return self.head_count * self.group_rows**2

    @property
    def public_rows(self) -> bool:
        """Whether the number of rows is public: only rows that are replaced leave it as it is."""
        return rows_are_public(self.privacy.neighbours, self.unit)

    @property
    def scope(self) -> str:
        """What the guarantee covers."""
        count, (one, many) = len(self.layouts) or 1, self.noun or self.layouts[0].noun
        if self.continual is not None:
            return f"all {many} of this stream, at every step, with all answers to any queries,"
        all_of_it = f"the {one}" if count == 1 else f"all {count} {many} of this build together"
        return f"{all_of_it}, with all answers to any queries,"

    def receipt(self, entropy: Entropy) -> Receipt:
        """Return a receipt for one release, to be made before its noise is drawn.

        Args:
            entropy: where the noise will come from.
        """
        return Receipt.issue(
            mechanisms=[(each, 1) for each in self.mechanisms],
            neighbours=self.privacy.neighbours,
            unit=str(self.unit),
            scope=self.scope,
            entropy=entropy,
            leaks=self.leaks,
        )

    def guarantee(self, receipt: Receipt) -> Guarantee:
        """Return what is promised for the whole release: all that was asked for is spent.

        Args:
            receipt: of the release.
        """
        pure = bool(self.pure) and not any(each.infinite_loss for each in self.beside)
        return Guarantee(
            self.privacy.epsilon,
            0.0 if pure else self.privacy.delta,
            self.privacy.neighbours,
            unit=receipt.unit,
            scope=receipt.covering(receipt.scope),
        )

    @cached_property
    def digest(self) -> str:
        """A hash of every public number, arrays of kernels included.

        Partials with other hashes do not merge. Minimax polynomials and landmarks are found by
        linear algebra, which may differ in a last bit on another kind of processor, and then so
        does this: give all machines one kernel.
        """
        layouts = [layout.parameters() for layout in self.layouts]
        facts = {
            "layouts": layouts,
            "privacy": [self.privacy.epsilon, self.privacy.delta, self.privacy.neighbours],
            "unit": self.unit,
            "group_rows": self.group_rows,
            "rows_hint": self.rows_hint,
            **({"leaks": self.leaks} if self.leaks else {}),
            **({} if self.continual is None else {"stream": self.continual.parameters()}),
            **({"pure": self.pure} if self.pure else {}),
            **({"beside": [each.to_dict() for each in self.beside]} if self.beside else {}),
        }
        hashed = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
        for layout in self.layouts:
            for name, array in sorted(layout.arrays().items()):
                hashed.update(f"{name} {array.dtype.str} {array.shape}".encode())
                hashed.update(array.tobytes())
        return hashed.hexdigest()


def rows_are_public(neighbours: Neighbours, unit: str) -> bool:
    """Return whether the number of rows is public under such a guarantee.

    Args:
        neighbours: whether a unit is added or removed, or replaced.
        unit: a row, or a record of many rows.
    """
    return unit == Unit.ROW and neighbours is Neighbours.REPLACE


def part_sigmas(layout: RowLayout, sigma: float) -> tuple[float, ...]:
    """Return the standard deviation of the noise on each part, given that of the first.

    Args:
        layout: with the weights of the parts.
        sigma: standard deviation of the noise on the first, in lattice units.
    """
    return tuple([sigma / weight for weight in layout.part_weights])


def unit_sensitivity(
    layout: RowLayout, neighbours: Neighbours, unit: Unit, group_rows: float
) -> float:
    """Return how far one unit can move one head's sums, in lattice units.

    Args:
        layout: of the layer.
        neighbours: whether a unit is added or removed, or replaced.
        unit: a row, or a record of many rows.
        group_rows: the influence of a record, in rows.
    """
    if unit is Unit.ROW:
        return layout.row_sensitivity(neighbours)
    both = 2 if neighbours is Neighbours.REPLACE else 1
    return both * layout.record_bound(group_rows)


def law_of(layout: RowLayout, scale: float) -> RoundedGaussian | DiscreteLaplace:
    """Return the noise of a part of a layer.

    Args:
        layout: of the layer.
        scale: σ of Gaussian noise, or the scale of Laplace noise, in lattice units.
    """
    if layout.norm is Norm.L1:
        return DiscreteLaplace(scale=scale)
    return RoundedGaussian(sigma=scale)


@cache
def noise_multiplier(
    privacy: Privacy, heads: int, beside: tuple[accounting.Mechanism, ...] = ()
) -> float:
    """Return σ for a mechanism that moves each of so many heads by one.

    The passes of one release all ask for it, and it is found by bisection.

    Args:
        privacy: what the whole release may spend.
        heads: how many there are, in all layers.
        beside: what else the release is made of.
    """
    if beside:
        others = [(each, 1) for each in beside]
        return accounting.gaussian_beside(others, target=privacy, sensitivity=_root(heads))
    return accounting.gaussian_sigma(
        epsilon=privacy.epsilon, delta=privacy.delta, sensitivity=_root(heads)
    )


def crude_multiplier(privacy: Privacy, heads: int, group_rows: float) -> float:
    """Return σ in units of the largest contribution of one row, before the kernel is known.

    Args:
        privacy: what the whole release may spend.
        heads: how many there are, in all layers.
        group_rows: the influence of a record, in rows.
    """
    both = 2 if privacy.neighbours is Neighbours.REPLACE else 1
    return noise_multiplier(privacy, heads) * both * group_rows


def value_resolution(multiplier: float, *, rows_hint: int | None) -> int:
    """Return how finely values are rounded: coarser where the noise is larger, or the rows many.

    Args:
        multiplier: σ in units of a row's contribution, `group_rows` included.
        rows_hint: a public number of rows, if there is one; four times as many will fit.
    """
    resolution = _NOISE_BITS - _FEATURE_BITS - math.ceil(math.log2(multiplier))
    if rows_hint is not None:
        resolution = min(resolution, 62 - 3 - _FEATURE_BITS - math.ceil(math.log2(rows_hint)))
    return min(max(resolution, _LEAST_RESOLUTION), _FINEST_RESOLUTION)


def _root(heads: int) -> float:
    return math.sqrt(heads) * (1 + 2.0**-50 * (math.isqrt(heads) ** 2 != heads))
