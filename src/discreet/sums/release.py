"""Noise, once. All that leaves a build goes through here, and only what comes out is kept.

What everything that answers from a release shows of it, however it answers.
"""

from dataclasses import dataclass
from typing import ClassVar, Generic, cast

from discreet import _validate, accounting
from discreet._typing import Integers
from discreet._version import __version__
from discreet._warn import Note
from discreet.accounting import Receipt
from discreet.ledger.account import Account, count
from discreet.noise import Entropy, RoundedGaussian, SystemEntropy
from discreet.privacy import NOT_PRIVATE, Guarantee, rounded_up
from discreet.sums.layout import AnyLayout_co, RowLayout
from discreet.sums.partial import Partial
from discreet.sums.settings import Settings

_SPENT = (
    "Nothing was released. But its noise was being drawn, and whoever saw what was in memory saw "
    "that: count (epsilon, delta) as spent."
)


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

    def __post_init__(self) -> None:
        """Check what a file may get wrong; the state itself is checked where it is read."""
        _validate.instance("layout", self.layout, RowLayout)
        _validate.instance("receipt", self.receipt, Receipt)
        _validate.instance("mechanism", self.mechanism, accounting.Gaussian)
        _validate.instance("version", self.version, str)
        _validate.real("sigma", RoundedGaussian(sigma=self.sigma).sigma, above=0)
        _validate.real("group_rows", self.group_rows, above=0)
        for name in ("rows", "rows_hint"):
            if getattr(self, name) is not None:
                _validate.whole(name, getattr(self, name), at_least=0)

    @property
    def mechanism(self) -> accounting.Gaussian:
        """The whole release, as the accountant sees it: one Gaussian mechanism."""
        [(mechanism, _)] = self.receipt.mechanisms
        return cast("accounting.Gaussian", mechanism)  # checked when this was made

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


def release(
    partial: Partial[AnyLayout_co],
    *,
    entropy: Entropy | None = None,
    account: Account | None = None,
) -> list[Released[AnyLayout_co]]:
    """Add noise to exact sums, and return what may be given away: one state for each layer.

    (ε, δ) as in the partial's settings, for all states together. Each call spends it again.

    Args:
        partial: the sums.
        entropy: where the noise comes from; by default the operating system.
        account: on which the release is counted before its noise is drawn, if on any.
    """
    _validate.instance("partial", partial, Partial)
    return release_sums(
        list(partial.sums), partial.settings, rows=partial.rows, entropy=entropy, account=account
    )


def release_sums(
    sums: list[Integers],
    settings: Settings[AnyLayout_co],
    *,
    rows: int,
    entropy: Entropy | None,
    account: Account | None,
) -> list[Released[AnyLayout_co]]:
    """Add noise to the sums of all layers, and empty the list: no exact sum is kept.

    Args:
        sums: exact, one array for each part of each layer.
        settings: the public settings that they were added up under.
        rows: how many rows there were; kept only where that is public.
        entropy: where the noise comes from; by default the operating system.
        account: on which the release is counted, if on any. If that fails, the sums are whole.
    """
    source = SystemEntropy() if entropy is None else entropy
    _validate.instance("entropy", source, Entropy)
    receipt = settings.receipt(source)  # before any noise: what is drawn has been accounted for
    count(account, receipt, delta=settings.privacy.delta)
    try:
        return _with_noise(sums, settings, receipt, rows=rows, source=source)
    except BaseException as error:
        error.add_note(Note(_SPENT))
        raise


def _with_noise(
    sums: list[Integers],
    settings: Settings[AnyLayout_co],
    receipt: Receipt,
    *,
    rows: int,
    source: Entropy,
) -> list[Released[AnyLayout_co]]:
    released = []
    for layout in settings.layouts:
        parts = []
        for law, shape in zip(settings.laws(layout), layout.shapes, strict=True):
            noisy = law.sample(shape, entropy=source)
            noisy += sums.pop(0)
            noisy.flags.writeable = False
            parts.append(noisy)
        state, *others = parts
        released.append(
            Released(
                state=state,
                layout=layout,
                guarantee=settings.guarantee(receipt),
                receipt=receipt,
                sigma=settings.sigma(layout),
                group_rows=settings.group_rows,
                rows=rows if settings.public_rows else None,
                rows_hint=settings.rows_hint,
                others=tuple(others),
            )
        )
    return released


class Readable(Generic[AnyLayout_co]):
    """A release that can be asked. Post-processing only: it costs no privacy, ever."""

    _layout_type: ClassVar[type[RowLayout]]

    def __init__(self, released: Released[AnyLayout_co]) -> None:
        _validate.instance("released", released, Released)
        _validate.instance("released.layout", released.layout, self._layout_type)
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
