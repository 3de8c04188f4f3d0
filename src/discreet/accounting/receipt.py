"""What was done to people's data, written down before it is done, and how such papers add up.

A receipt is made before the first bit of noise is drawn, and travels with whatever was made: in an
object, in a file, in a ledger. `combine` is the guarantee of giving away everything that a set of
receipts stands for. `docs/privacy.md`, "Receipts".
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol

from discreet import _validate
from discreet.accounting.compose import tight
from discreet.accounting.events import (
    DiscreteLaplace,
    Laplace,
    Mechanism,
    check_kind,
    check_mechanisms,
)
from discreet.errors import InvalidInput
from discreet.noise import Entropy, SystemEntropy
from discreet.noise.entropy import is_private
from discreet.privacy import NOT_PRIVATE, Guarantee, Neighbours


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """The mechanisms of one release, of the whole of it, with whom they protect.

    Attributes:
        id: a random name. Whatever was made by one release carries the same receipt.
        mechanisms: (mechanism, how many times): all that one unit touches, equal ones together.
        neighbours: the relation that all their sensitivities are meant under.
        unit: whom they protect, for instance "row" or "record".
        scope: what they cover, for instance "the structure and all its answers".
        source: where the noise comes from.
        private: False if that is not the operating system; then nobody is protected.
        leaks: names of what was taken from the private rows without noise, and is part of what was
            made: no mechanism covers it. Empty if nothing was, as far as the builder has said.
    """

    id: str
    mechanisms: tuple[tuple[Mechanism, int], ...]
    neighbours: Neighbours
    unit: str
    scope: str
    source: str
    private: bool
    leaks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("id", "unit", "scope", "source"):
            _validate.text(name, getattr(self, name))
        _validate.instance("private", self.private, bool)
        object.__setattr__(self, "leaks", checked_leaks(self.leaks))
        object.__setattr__(self, "neighbours", Neighbours.parse(self.neighbours))
        pairs = tuple(check_mechanisms(self.mechanisms))
        for mechanism, _ in pairs:
            check_kind("a part of mechanisms", mechanism)
        if pairs[0][0].neighbours is not self.neighbours:
            raise InvalidInput(
                f"Expected neighbours={str(self.neighbours)!r} to be the mechanisms' "
                f"{str(pairs[0][0].neighbours)!r}."
            )
        object.__setattr__(self, "mechanisms", pairs)

    @classmethod
    def issue(
        cls,
        *,
        mechanisms: Sequence[tuple[Mechanism, int]],
        neighbours: Neighbours,
        unit: str,
        scope: str,
        entropy: Entropy,
        leaks: Sequence[str] = (),
    ) -> "Receipt":
        """Return a new receipt for noise that is about to be drawn from `entropy`.

        Its name is from the operating system whatever the source is: two releases never share one.

        Args:
            mechanisms: (mechanism, how many times), all that one unit touches.
            neighbours: the relation that all their sensitivities are meant under.
            unit: whom they protect.
            scope: what they cover.
            entropy: where the noise will come from.
            leaks: names of what was taken from the private rows without noise.

        Returns:
            The receipt.

        Raises:
            InvalidInput: if these are no mechanisms under that relation, or a text is blank.
        """
        _validate.instance("entropy", entropy, Entropy)
        return cls(
            id=SystemEntropy().words(2).tobytes().hex(),
            mechanisms=tuple(check_mechanisms(mechanisms)),
            neighbours=neighbours,
            unit=unit,
            scope=scope,
            source=repr(entropy),
            private=is_private(entropy),
            leaks=tuple(leaks),
        )

    @property
    def mark(self) -> str:
        """How a text about a release begins whose noise protects nobody; else empty."""
        return "" if self.private else f"{NOT_PRIVATE} (noise from {self.source}): "

    @property
    def note(self) -> str:
        """How a short text about a release ends that has leaks; else empty."""
        return f", taken from the data: {', '.join(self.leaks)}" if self.leaks else ""

    def covering(self, scope: str) -> str:
        """Return a scope in words: with the mark, and without what was taken from the rows.

        Args:
            scope: what is covered if there are no leaks.

        Returns:
            A text for a `Guarantee`.
        """
        return f"{self.mark}{but_for(scope, self.leaks)}"

    def agrees_with(self, guarantee: Guarantee) -> bool:
        """Return whether both say the same of whether the noise protects anybody.

        And the receipt no more than its source does: nobody's noise is private but the operating
        system's. This finds a mark that was taken off in one place and left in another.

        Args:
            guarantee: of the same release.
        """
        if not self.private:
            return guarantee.scope.startswith(self.mark)
        return self.source == repr(SystemEntropy()) and NOT_PRIVATE not in guarantee.scope

    def guarantee(self, *, delta: float) -> Guarantee:
        """Return what is promised at this δ: the tight ε of all mechanisms together.

        Args:
            delta: above 0 and below 1.

        Returns:
            The guarantee of the whole release.

        Raises:
            InvalidInput: if δ is out of range, or too small for any ε.
        """
        return Guarantee(
            _finite_epsilon(self.mechanisms, delta),
            delta,
            self.neighbours,
            unit=self.unit,
            scope=self.covering(self.scope),
        )

    def to_dict(self) -> dict[str, object]:
        """Return all fields as plain JSON types; `from_dict` makes the same receipt again.

        Without `leaks` if there are none: so it was before there was such a field.
        """
        own = {
            field.name: getattr(self, field.name) for field in fields(self) if field.name != "leaks"
        }
        leaks = {"leaks": list(self.leaks)} if self.leaks else {}
        pairs = [
            {"mechanism": mechanism.to_dict(), "count": count}
            for mechanism, count in self.mechanisms
        ]
        return own | {"neighbours": str(self.neighbours), "mechanisms": pairs} | leaks

    @classmethod
    def from_dict(cls, data: object) -> "Receipt":
        """Return the receipt that `to_dict` described.

        Args:
            data: what `to_dict` returned, possibly by way of JSON.

        Returns:
            An equal receipt.

        Raises:
            InvalidInput: if a field is missing, too many or wrong, or a mechanism is unknown.
        """
        names = {field.name for field in fields(cls)}
        given = _fields("receipt", data, names - {"leaks"}, optional=frozenset({"leaks"}))
        for name in ("mechanisms", "leaks"):
            _validate.instance(name, given.get(name, []), list)
        pairs = [
            _fields("mechanisms", each, {"mechanism", "count"}) for each in given["mechanisms"]
        ]
        mechanisms = tuple(
            (Mechanism.from_dict(each["mechanism"]), each["count"]) for each in pairs
        )
        return cls(**given | {"mechanisms": mechanisms, "leaks": tuple(given.get("leaks", ()))})


class Carrier(Protocol):
    """Whatever carries its receipt: a memory, a structure of the paper."""

    @property
    def receipt(self) -> Receipt:
        """What was spent on it, in whole."""
        ...

    @property
    def guarantee(self) -> Guarantee:
        """What is promised of it."""
        ...


def combine(releases: Sequence[Receipt | Carrier], *, delta: float | None = None) -> Guarantee:
    """Return the joint guarantee of giving away several releases of the same people's data.

    Exact for Gaussian mechanisms, whose (Δ/σ)² add up, and tight for all. Receipts of one name are
    one release and count once, as do the memories of one `build_many`. `docs/privacy.md`,
    "Receipts".

    Args:
        releases: memories, structures of the paper and receipts, under one neighbouring relation
            and one unit.
        delta: of the joint guarantee; by default the largest that one of the releases has. If none
            has any (tables of counts), ε simply adds up.

    Returns:
        The guarantee of everybody who has all of them.

    Raises:
        InvalidInput: if something is no release, they protect other neighbours or other units, or
            there are receipts alone and no δ.

    Example:
        >>> spend = {"epsilon": 1.0, "delta": 1e-6, "scale": 2.0}
        >>> keys = [[0.6, 0.8], [1.0, 0.0]]
        >>> first = discreet.build(keys, [[1.0], [0.0]], **spend)
        >>> second = discreet.build(keys, [[0.0], [1.0]], **spend)
        >>> round(discreet.combine([first, second]).epsilon, 3)
        1.455
    """
    receipts = _receipts(releases)
    found = _releases(receipts)
    if len({(each.neighbours, each.unit) for each in receipts}) > 1:
        raise InvalidInput("Expected releases with one neighbouring relation and one unit.")
    total = _largest_delta(releases) if delta is None else delta
    pairs = [pair for each in found for pair in each.mechanisms]
    pure = all(isinstance(mechanism, Laplace | DiscreteLaplace) for mechanism, _ in pairs)
    if delta is None and total == 0 and pure:  # no loss is larger than Δ/scale, and these add up
        epsilon = math.fsum(count * mechanism.largest_loss for mechanism, count in pairs)
    else:
        total = _validate.real("delta", total, above=0, below=1)
        epsilon = _finite_epsilon(pairs, total)
    return Guarantee(
        epsilon,
        total,
        found[0].neighbours,
        unit=found[0].unit,
        scope=together(receipts, releases=len(found)),
    )


def together(receipts: Sequence[Receipt], *, releases: int) -> str:
    """Return in words what a joint guarantee of so many releases covers, given their receipts."""
    mark = "" if all(each.private for each in receipts) else f"{NOT_PRIVATE}: "
    leaks = dict.fromkeys(leak for each in receipts for leak in each.leaks)  # each once, in order
    scope = f"all of {releases} releases together, with all answers to any queries,"
    return f"{mark}{but_for(scope, tuple(leaks))}"


def but_for(scope: str, leaks: Sequence[str]) -> str:
    """Return a scope in words, without what was taken from the rows, if anything was."""
    if not leaks:
        return scope
    return f"{scope} but for what was taken from the rows and is not covered ({', '.join(leaks)}),"


def checked_leaks(leaks: object) -> tuple[str, ...]:
    """Return names of what was taken from the rows, if that is what they are."""
    if not isinstance(leaks, tuple) or not all(
        isinstance(each, str) and each.isidentifier() for each in leaks
    ):
        raise InvalidInput("Expected leaks to be a tuple of names, such as 'bounds' or 'classes'.")
    return leaks


def _receipts(releases: Sequence[Receipt | Carrier]) -> list[Receipt]:
    """Return the receipt of each release, or raise `InvalidInput` if one has none."""
    _validate.instance("releases", releases, Sequence)
    if not releases:
        raise InvalidInput("Expected at least one of releases, got none.")
    receipts = [
        each if isinstance(each, Receipt) else getattr(each, "receipt", None) for each in releases
    ]
    for given, receipt in zip(releases, receipts, strict=True):
        if not isinstance(receipt, Receipt):
            _validate.reject_argument(
                "a part of releases", given, "a memory, a regression, a structure or a receipt"
            )
    return [receipt for receipt in receipts if receipt is not None]


def _largest_delta(releases: Sequence[Receipt | Carrier]) -> float:
    deltas = [each.guarantee.delta for each in releases if not isinstance(each, Receipt)]
    if not deltas:
        raise InvalidInput("Expected a delta for receipts alone: they have none of their own.")
    return max(deltas)


def _releases(receipts: Sequence[Receipt]) -> list[Receipt]:
    """Return one receipt of each name, or raise `InvalidInput` if two of one name differ."""
    found: dict[str, Receipt] = {}
    for receipt in receipts:
        known = found.setdefault(receipt.id, receipt)
        if dict(known.mechanisms) != dict(receipt.mechanisms):
            raise InvalidInput("Expected receipts of one id to have the same mechanisms.")
    return list(found.values())


def _finite_epsilon(mechanisms: Sequence[tuple[Mechanism, int]], delta: float) -> float:
    """Return the tight ε, or raise `InvalidInput` if this δ is too small for any."""
    epsilon = tight(mechanisms, delta=delta)
    if math.isinf(epsilon):
        _validate.reject_argument("delta", delta, "above the mechanisms' truncated tails together")
    return epsilon


def _fields(
    name: str, data: object, wanted: set[str], optional: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """Return a dictionary that has just these keys, or raise `InvalidInput`."""
    _validate.instance(name, data, Mapping)
    given: dict[str, Any] = dict(data)  # type: ignore[call-overload]  # checked just now
    if given.keys() - optional != wanted:
        raise InvalidInput(f"Expected {name} to have the fields {sorted(wanted)}.")
    return given
