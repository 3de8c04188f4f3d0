"""Partition selection: which of unknown names (words, categories, ids) many units have.

Nobody says beforehand which names there may be. Every name in the data gets noise, and those above
a threshold are told; of the others nothing is, not even how many there are. `docs/privacy.md`,
"What is in the data".
"""

import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from discreet import _validate, provenance
from discreet._files import pack, whole_file
from discreet._typing import Array
from discreet.accounting import Gaussian, Receipt
from discreet.accounting.compose import covers
from discreet.accounting.promise import Promise
from discreet.errors import CorruptRelease, InvalidInput
from discreet.ledger import Account, Ledger
from discreet.ledger.ledger import account_of
from discreet.noise import Entropy
from discreet.privacy import NOT_PRIVATE, Card, Guarantee, rounded_up
from discreet.provenance import Stated
from discreet.sums.container import stated_in
from discreet.sums.door import Door
from discreet.sums.mechanism import ReleaseOptions
from discreet.sums.selection import LENGTH, Selection
from discreet.sums.settings import Settings, Unit
from discreet.sums.source import Records

# Of δ, for names that only one unit has.
_DISCLOSURE = 0.5

# Half width of an interval that holds 95 of 100 times, in standard deviations.
_MARGIN = 1.959963984540054

# A name that is longer is none.
_LONGEST = 1_000


class Name(NamedTuple):
    """A name that many units have.

    Attributes:
        name: as it is in the data.
        count: about how many units have it; where units may have several, a unit with t of them
            counts 1/√t for each.
        margin: the ± of the count.
    """

    name: str
    count: float  # type: ignore[assignment]  # of a tuple, which nobody needs here
    margin: float


@dataclass(frozen=True, eq=False, repr=False)
class Discovered(Sequence[Name]):
    """Names that were found in private data, the most frequent first. Public from now on.

    Attributes:
        found: the names, with counts.
        selection: how they were found.
        guarantee: what is promised.
        receipt: what was spent; `discreet.combine` adds receipts up.
        stated: by the builder; None if nothing was.
    """

    kind: ClassVar[str] = "discreet-discovered"

    found: tuple[Name, ...]
    selection: Selection
    guarantee: Guarantee
    receipt: Receipt
    stated: Stated | None = None

    @classmethod
    def of(
        cls,
        totals: Mapping[str, int],
        *,
        selection: Selection,
        guarantee: Guarantee,
        receipt: Receipt,
        stated: Stated | None = None,
    ) -> Self:
        """Return the names with these noisy totals.

        Args:
            totals: in lattice units.
            selection: how they were found.
            guarantee: what is promised.
            receipt: what was spent.
            stated: by the builder.
        """
        margin = _MARGIN * selection.stderr
        ordered = sorted(totals.items(), key=lambda each: (-each[1], each[0]))
        told = tuple([Name(name, total / LENGTH, margin) for name, total in ordered])
        return cls(told, selection, guarantee, receipt, stated)

    def __len__(self) -> int:
        return len(self.found)

    def __getitem__(self, index: Any) -> Any:  # noqa: ANN401 (a name, or some)
        return self.found[index]

    def __repr__(self) -> str:
        mark = "" if self.private else f" {NOT_PRIVATE}"
        return f"<Discovered{mark}, {len(self)} names, ε = {rounded_up(self.guarantee.epsilon)}>"

    @property
    def names(self) -> tuple[str, ...]:
        """The names alone."""
        return tuple([each.name for each in self.found])

    @property
    def private(self) -> bool:
        """False if the noise came from a test source."""
        return self.receipt.private

    @cached_property
    def card(self) -> Card:
        """What is protected, how much, and how many units a name needs."""
        promise = Promise.of(self.guarantee, self.receipt)
        facts: dict[str, object] = {
            "private": self.private,
            "epsilon": self.guarantee.epsilon,
            "delta": self.guarantee.delta,
            "neighbours": str(self.guarantee.neighbours),
            "unit": self.guarantee.unit,
            "guarantee": str(self.guarantee),
            **promise.facts,
            "mechanism": "rounded Gaussian noise on counts of names, and a threshold",
            "most": self.selection.most,
            "units_needed": self.selection.units_needed,
            "disclosure": self.selection.probability,
            "names": len(self),
            **provenance.facts(self.stated),
        }
        lines = [
            ("guarantee", str(self.guarantee)),
            ("for one person", promise.in_words),
            *provenance.lines(self.stated),
            (
                "names",
                f"{len(self):,} found; a {self.guarantee.unit} may have {self.selection.most}",
            ),
            (
                "a name needs",
                f"about {self.selection.units_needed:.3g} {self.guarantee.unit}s that have it",
            ),
            ("entropy", self.receipt.source),
        ]
        return Card(tuple(facts.items()), tuple(lines))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one safetensors file that `discreet.load` opens, atomically; never pickle.

        Args:
            path: of the file; one that is there is replaced.
        """
        totals = np.array([round(each.count * LENGTH) for each in self.found], dtype=np.int64)
        settings = {
            "names": list(self.names),
            "selection": asdict(self.selection),
            "guarantee": asdict(self.guarantee),
            "receipt": self.receipt.to_dict(),
            "private": self.private,
            "source": self.receipt.source,
            **provenance.facts(self.stated),
        }
        card = self.card.to_dict()
        data = pack({"totals": totals}, name=self.kind, settings=settings, card=card)
        with whole_file(Path(path)) as file:
            file.write(data)


def restored(settings: Any, tensors: Mapping[str, NDArray[Any]]) -> Discovered:  # noqa: ANN401 (as a file has them)
    """Return the names in a file, as far as it can be believed.

    Args:
        settings: of `Discovered.save`.
        tensors: likewise.
    """
    guarantee = Guarantee(**settings["guarantee"])
    given = {**settings["selection"], "neighbours": guarantee.neighbours}
    selection = Selection(**given)
    receipt = Receipt.from_dict(settings["receipt"])
    totals, names = tensors["totals"], settings["names"]
    gaussian = [each for each, _ in receipt.mechanisms if isinstance(each, Gaussian)]
    fits = (
        totals.dtype == np.int64
        and totals.shape == (len(names),)
        and len(set(names)) == len(names)
        and bool(np.all(totals >= selection.threshold))
        and len(receipt.mechanisms) == 2
        and math.isclose(gaussian[0].sigma, selection.multiplier, rel_tol=1e-9)
        and (selection.disclosure, 1) in receipt.mechanisms
        and selection.share == 1
        and covers(guarantee, receipt.mechanisms)
        and (receipt.private, receipt.source) == (settings["private"], settings["source"])
        and receipt.covering(receipt.scope) == guarantee.scope
        and receipt.agrees_with(guarantee)
        and receipt.unit == guarantee.unit == Unit(guarantee.unit)
    )
    if not fits:
        raise CorruptRelease("Expected names with the noise that their guarantee needs.")
    found = dict(zip(names, totals.tolist(), strict=True))
    return Discovered.of(
        found,
        selection=selection,
        guarantee=guarantee,
        receipt=receipt,
        stated=stated_in(settings),
    )


def discover(
    names: Iterable[str | Iterable[str]],
    *,
    groups: Array = None,
    most: int = 1,
    epsilon: float,
    delta: float,
    neighbours: str = "add_remove",
    entropy: Entropy | None = None,
    account: Account | None = None,
    ledger: Ledger | None = None,
    dataset: str | None = None,
    analyst: str | None = None,
    stated: Stated | Mapping[str, Any] | None = None,
) -> Discovered:
    """Return which names many units have: of unknown words, categories or ids.

    (epsilon, delta)-differentially private when one row, or one record (`groups`), is added or
    removed, or replaced. Half of δ is for the chance that noise carries a name above the threshold
    that only one unit has. `docs/privacy.md`, "What is in the data".

    Example:
        >>> said = ["flu"] * 500 + ["what one person said"]
        >>> discreet.discover(said, epsilon=1.0, delta=1e-6).names
        ('flu',)

    Args:
        names: the name of each row, or several of each.
        groups: the record of each row; None if each row is its own.
        most: how many names of a unit count: of more, those that most of its rows have, then by the
            alphabet. Each of t names counts 1/√t.
        epsilon: above 0.
        delta: above 0; well below one over the number of people.
        neighbours: "add_remove", or "replace".
        entropy: where the noise comes from; by default the operating system.
        account: where the release is counted, if anywhere: `Ledger.account(dataset, analyst)`.
        ledger: or its parts: a `discreet.ledger.Ledger`,
        dataset: the name that the rows have there,
        analyst: and who asks, if that is to be known.
        stated: where the release comes from, in your words and public: a mapping with some
            of "data", "builder", "purpose", "contact" and "date", or a `discreet.Stated`. In
            the file and on the card, marked as stated by the builder.

    Returns:
        The names with noisy counts, the most frequent first.

    Raises:
        InvalidInput: an argument is not what it should be. Nothing was released.
        BudgetExceeded: the ledger's limit leaves no room. Nothing was released.
    """
    options = ReleaseOptions(epsilon=epsilon, delta=delta, neighbours=neighbours, stated=stated)
    unit = Unit.ROW if groups is None else Unit.RECORD
    settings, selection = _resolved(options, unit, _validate.whole("most", most, at_least=1))
    options.warn_if_nobody_is_protected()
    counted = account_of(ledger, dataset, analyst, account)
    with Door(settings, entropy=entropy, account=counted) as door:
        noisy = door.select(selection, totals_of(names, groups, selection))
        guarantee, receipt = door.promise
    return Discovered.of(
        noisy,
        selection=selection,
        guarantee=guarantee,
        receipt=receipt,
        stated=settings.stated,
    )


def _resolved(options: ReleaseOptions, unit: Unit, most: int) -> tuple[Settings[Any], Selection]:
    """Return the public settings: how much noise, and which threshold."""
    draft = Selection(
        most=most,
        multiplier=1.0,
        share=1.0,
        probability=_DISCLOSURE * options.delta,
        neighbours=options.privacy.neighbours,
    )
    settings: Settings[Any] = Settings(
        layouts=(),
        privacy=options.privacy,
        unit=unit,
        beside=(draft.disclosure,),
        noun=("list of names", "lists of names"),
        stated=Stated.of(options.stated),
    )
    return settings, Selection(
        most=most,
        multiplier=settings.multiplier,
        share=1.0,
        probability=draft.probability,
        neighbours=draft.neighbours,
    )


def totals_of(
    names: Iterable[str | Iterable[str]], groups: Array, selection: Selection
) -> dict[str, int]:
    """Return the exact total of every name in the data, in lattice units. PRIVATE.

    Args:
        names: the name of each row, or several of each.
        groups: the record of each row; None if each row is its own.
        selection: how much a unit adds.
    """
    if isinstance(names, str | bytes) or not isinstance(names, Iterable):
        raise InvalidInput("Expected names to be a list: a name of each row, or several of each.")
    rows = [_names_of(each) for each in names]
    units: Iterable[Counter[str]]
    if groups is None:
        units = map(Counter, rows)
    else:
        owners = Records.of(groups, len(rows))
        counters: list[Counter[str]] = [Counter() for _ in owners.ids]
        for row, owner in zip(rows, owners.of_row.tolist(), strict=True):
            counters[owner].update(row)
        units = counters
    totals: dict[str, int] = {}
    for unit in units:
        kept = sorted(unit, key=lambda name: (-unit[name], name))[: selection.most]
        for name, weight in zip(kept, selection.weights(len(kept)), strict=True):
            totals[name] = totals.get(name, 0) + weight
    return totals


def _names_of(given: str | Iterable[str]) -> set[str]:
    """Return the names of a row, each once."""
    listed = [given] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
    if not all(isinstance(each, str) for each in listed):
        raise InvalidInput("Expected every name to be a text: none missing, and no numbers.")
    if not all(len(each) <= _LONGEST for each in listed):
        raise InvalidInput(f"Expected names to be texts of at most {_LONGEST:,} characters.")
    return {str(each) for each in listed}
