"""What everything that answers from a release shows of it, however it answers."""

from typing import ClassVar, Generic

from discreet import _validate
from discreet.accounting import Receipt
from discreet.memory.release import Released
from discreet.memory.row_layout import AnyLayout_co, RowLayout
from discreet.privacy import NOT_PRIVATE, Guarantee, rounded_up


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
