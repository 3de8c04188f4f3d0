"""What a build releases: noisy sums with what is public about them, and the base of all readers."""

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self

from discreet import _validate, accounting
from discreet._typing import Integers
from discreet._version import __version__
from discreet.accounting import Receipt
from discreet.errors import InvalidInput
from discreet.noise.correlated import StateNoise
from discreet.privacy import NOT_PRIVATE, Guarantee, rounded_up
from discreet.provenance import Stated
from discreet.sums.layout import AnyLayout_co, Norm, RowLayout
from discreet.sums.settings import law_of, part_sigmas

if TYPE_CHECKING:
    from discreet.privacy import Card


@dataclass(frozen=True, eq=False, repr=False)
class Released(Generic[AnyLayout_co]):
    """Noisy sums with what is public about them: all that a reader needs to answer.

    Attributes:
        state: the noisy sums, in lattice units, shape (heads, d_v + 1, r); read-only.
        layout: kernel, bounds and lattice.
        guarantee: of the whole release.
        receipt: what was spent on it, made before the noise; all states of a release share it.
        sigma: standard deviation of the state's noise before rounding, in lattice units.
        group_rows: the influence of a record, in rows; 1 if the unit is a row.
        rows: the number of rows where it is public (neighbours "replace", unit row), else None.
        rows_hint: the public figure that the builder gave, if any.
        version: of the library that made it.
        others: the other parts of the sums, if the layout has several; with noise in proportion.
        stream: of a state of a stream: what its noise is made of. None if noise was drawn once.
        estimator: of a release that an estimator made: how rows became keys, as JSON knows it.
        share: of the squared budget of the receipt's Gaussian mechanism; one unless other sums
            were released with it.
        stated: by the builder; None if nothing was.
    """

    state: Integers
    layout: AnyLayout_co
    guarantee: Guarantee
    receipt: Receipt
    sigma: float
    group_rows: float
    rows: int | None
    rows_hint: int | None
    version: str = __version__
    others: tuple[Integers, ...] = ()
    stream: StateNoise | None = None
    estimator: Mapping[str, Any] | None = None
    share: float = 1.0
    stated: Stated | None = None

    def __post_init__(self) -> None:
        """Check what a file may get wrong; the state itself is checked where it is read."""
        _validate.instance("layout", self.layout, RowLayout)
        _validate.instance("receipt", self.receipt, Receipt)
        if self.layout.norm is Norm.L2:
            _validate.instance("mechanism", self.mechanism, accounting.Gaussian)
        _validate.instance("version", self.version, str)
        _validate.real("sigma", self.sigma, above=0)
        _validate.real("share", self.share, above=0, at_most=1)
        for each in self.scales:  # raises if noise of that size cannot be drawn
            law_of(self.layout, each)
        _validate.real("group_rows", self.group_rows, above=0)
        for name in ("rows", "rows_hint"):
            if getattr(self, name) is not None:
                _validate.whole(name, getattr(self, name), at_least=0)

    @property
    def mechanism(self) -> accounting.Gaussian:
        """All that is Gaussian in the release, as the accountant sees it: one mechanism."""
        found = [
            each for each, _ in self.receipt.mechanisms if isinstance(each, accounting.Gaussian)
        ]
        if len(found) != 1:
            raise InvalidInput("Expected a release with one Gaussian mechanism.")
        return found[0]

    @property
    def scales(self) -> tuple[float, ...]:
        """σ of the noise on each part (of cells: its scale), in lattice units."""
        return part_sigmas(self.layout, self.sigma)

    @property
    def noise_multiplier(self) -> float:
        """σ of the noise in units of what a unit can change in one head, by a single release."""
        factor = 1.0 if self.stream is None else self.stream.factor
        return self.mechanism.sigma * factor / math.sqrt(self.share)

    @property
    def private(self) -> bool:
        """False if the noise came from a test source."""
        return self.receipt.private

    @property
    def source(self) -> str:
        """Where the noise came from."""
        return self.receipt.source

    @property
    def release(self) -> str:
        """A random name that all states of one release share."""
        return self.receipt.id

    @property
    def nbytes(self) -> int:
        """Bytes of all parts; they do not depend on the number of rows."""
        return sum(part.nbytes for part in (self.state, *self.others))

    def __repr__(self) -> str:
        mark = "" if self.private else f" {NOT_PRIVATE}"
        epsilon = rounded_up(self.guarantee.epsilon)
        return f"<Released{mark}, {self.nbytes:,} bytes, ε = {epsilon}{self.receipt.note}>"


class Release(Generic[AnyLayout_co]):
    """A release that can be asked. Post-processing only: it costs no privacy, ever.

    A reader is a subclass: it names its files (`kind`), says what was added up for it (`layout`)
    and what its card says (`describe`), and answers.

    Args:
        released: the noisy sums, with what is public about them.
    """

    kind: ClassVar[str]
    layout: ClassVar[type[RowLayout]]
    describe: ClassVar[Callable[..., "Card"]]

    def __init__(self, released: Released[AnyLayout_co]) -> None:
        _validate.instance("released", released, Released)
        _validate.instance("released.layout", released.layout, self.layout)
        self._released = released

    def __repr__(self) -> str:
        mark = "" if self.private else f" {NOT_PRIVATE}"
        epsilon = rounded_up(self.guarantee.epsilon)
        note = self.receipt.note
        return f"<{type(self).__name__}{mark}, {self.nbytes:,} bytes, ε = {epsilon}{note}>"

    @property
    def released(self) -> Released[AnyLayout_co]:
        """The noisy sums and their public settings."""
        return self._released

    @property
    def guarantee(self) -> Guarantee:
        """What is promised, for the whole release that this belongs to."""
        return self._released.guarantee

    @property
    def receipt(self) -> Receipt:
        """What was spent, made before the noise; `discreet.combine` adds receipts up."""
        return self._released.receipt

    @property
    def private(self) -> bool:
        """False if the noise came from a test source."""
        return self._released.private

    @property
    def heads(self) -> tuple[int, ...]:
        """Leading axes that queries must have before (m, d); () for one head."""
        return self._released.layout.heads

    @property
    def nbytes(self) -> int:
        """Bytes of the noisy sums; they do not depend on the number of rows."""
        return self._released.nbytes

    @cached_property
    def card(self) -> "Card":
        """What is protected, how much, and from what. `str(card)`, `card.to_dict()`."""
        return type(self).describe(self._released)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one safetensors file that answers anywhere, atomically; never pickle.

        Args:
            path: of the file; one that is there is replaced.
        """
        from discreet.sums.container import save

        save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return what `save` wrote, if it is of this kind; `discreet.load` opens every kind.

        Args:
            path: of the file.

        Raises:
            CorruptRelease: the file is of another kind, was cut short or altered.

        Warns with `NotPrivateWarning` if it was made with a test source of noise.
        """
        from discreet.sums.container import load

        return load(path, cls)
