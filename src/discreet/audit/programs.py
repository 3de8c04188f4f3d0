"""Mechanisms that go through the door more than once, audited at the door.

A pass is chosen by what came out of those before, so what is released last is no sum plus noise.
But all that comes out of the door is, and all of it is what the guarantee is about. A `TwinDoor`
adds up two data sets side by side: what comes out is that of one, with its noise, and beside it is
known how far the other would have been, with the same past. The likelihood ratio of the whole path
is the sum over all passes. `docs/privacy.md`, "Rounds".

How far both sides are apart depends on the path, and whoever chooses passes by what came out might
stop where it suits. So the look ends at a fixed distance: of the pass that goes beyond it, as much
is left as is needed, with noise from a direction in which nothing moved. Then both sides are
equally far apart on every path that comes so far, and what is seen is one normal number around
either. Paths that fall short are counted, and taken off.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet._typing import Floats, Integers
from discreet.accounting import Mechanism as Account
from discreet.accounting.promise import Promise
from discreet.audit.experiments import Draw, Noisy, measured
from discreet.audit.looking import log_ratio, squared_distance
from discreet.noise import Entropy
from discreet.sums.accumulate import Accumulator
from discreet.sums.door import Door
from discreet.sums.layout import RowLayout
from discreet.sums.mechanism import Mechanism, ReleaseOptions
from discreet.sums.settings import Settings
from discreet.sums.source import RowSource, Table

# A part of the squared distance that the claim allows for: nearly every path comes so far.
_REACH = 0.97


class TwinDoor(Door[Any]):
    """A door that adds up a neighbour of its rows, too. For audits: it tells exact sums.

    Attributes:
        score: ln(likelihood of all that came out under the rows / under the neighbour).
        squared: Σ over passes of the squared distance of both sums, in units of the noise, as far
            as is looked.
        beyond: the rest.
        noises: the noise on all numbers, and the law of each.
    """

    def __init__(
        self,
        settings: Settings[Any],
        neighbour: RowSource,
        *,
        entropy: Entropy | None,
        passes: int,
        most: float,
    ) -> None:
        """Begin with nothing.

        Args:
            settings: of the whole release.
            neighbour: rows that differ in one unit from those that the program is handed.
            entropy: where the noise comes from.
            passes: how many there will be.
            most: the squared distance at which the look ends; infinite to see all of it.
        """
        super().__init__(settings, entropy=entropy, passes=passes)
        self._most = most
        self.score, self.squared, self.beyond = 0.0, 0.0, 0.0
        self.noises: list[Noisy] = []
        self._neighbour = neighbour
        self._others: list[Integers] = []

    def add(
        self,
        rows: RowSource,
        accumulator: Accumulator[RowLayout],
        view: Callable[[Table], Table] = lambda table: table,
    ) -> None:
        """Add all rows up, and those of the neighbour.

        Args:
            rows: all of them.
            accumulator: where they are added up.
            view: what is added up of a table, row by row.
        """
        super().add(rows, accumulator, view)
        beside = Accumulator(accumulator.settings)
        super().add(self._neighbour, beside, view)
        self._others = beside.sums

    def _noisy(self, sums: list[Integers], settings: Settings[RowLayout]) -> list[Integers]:
        """Return sums with noise, and keep how likely these are on either side."""
        exact = [each.copy() for each in sums]
        noisy = super()._noisy(sums, settings)
        laws = [law for layout in settings.layouts for law in settings.laws(layout)]
        for law, out, own, other in zip(laws, noisy, exact, self._others, strict=True):
            noise = np.asarray(out - own, dtype=np.float64).ravel()
            shift = np.asarray(other - own, dtype=np.float64).ravel()
            squared, rest = squared_distance(law, shift), self._most - self.squared
            if squared <= rest:
                self.score -= log_ratio(law, noise, shift)
                self.squared += squared
                squared = 0.0
            elif (free := _elsewhere(noise, shift)) is not None and rest > 0:
                # N(0, squared), made N(0, rest) by noise of its own.
                moved = float(shift @ noise) + free * math.sqrt(
                    shift @ shift * (squared / rest - 1)
                )
                self.score += rest / 2 - moved * rest / float(shift @ shift)
                self.squared, squared = self._most, squared - rest
            self.beyond += squared
            self.noises.append((law, noise))
        self._others = []
        return noisy


def _elsewhere(noise: Floats, shift: Floats) -> float | None:
    """Return the noise in one direction at right angles to a shift; None if there is no other."""
    if len(shift) < 2:
        return None
    away = np.zeros(len(shift))
    away[int(np.argmin(np.abs(shift)))] = 1.0
    away -= shift * (away @ shift) / (shift @ shift)
    return float(away @ noise) / math.sqrt(float(away @ away))


@dataclass(frozen=True, eq=False)
class Program:
    """Releases of a mechanism that runs over the door, watched at the door.

    Attributes:
        mechanism: what is built.
        rows: from nothing to the rows without the unit, and with it: read anew each time.
        options: public.
    """

    mechanism: Mechanism[Any, Any, Any]
    rows: tuple[Callable[[], RowSource], Callable[[], RowSource]]
    options: ReleaseOptions

    @property
    def additive(self) -> bool:
        """Always: each pass is."""
        return True

    @property
    def fixed(self) -> bool:
        """No: how far a pass moves follows from what came out before. A few paths fall short."""
        return False

    @property
    def settings(self) -> Settings[Any]:
        """The public settings of the release."""
        rows = self.rows[1]()
        return self.mechanism.resolve(rows.shapes, self.options, unit=rows.unit)

    @property
    def promise(self) -> Promise:
        """What is promised of it."""
        settings = self.settings
        guarantee = settings.guarantee(settings.receipt(_source()))
        return Promise(guarantee, None if settings.pure else settings.mechanism.spread)

    def mechanisms(self, times: float) -> list[tuple[Account, int]]:  # noqa: ARG002
        """Return nothing: how far both sides are apart is found while passes go on.

        Args:
            times: what the noise is multiplied by.
        """
        return []

    def draw(self, side: int, entropy: Entropy | None) -> Draw:
        """Return all that comes out of the door for the data with the unit, or for those without.

        Args:
            side: 1 if the unit is there, else 0.
            entropy: where the noise comes from.
        """
        settings = self.settings
        door = TwinDoor(
            settings,
            self.rows[1 - side](),
            entropy=entropy,
            passes=self.mechanism.passes_of(settings),
            most=math.inf if settings.pure else _REACH * settings.mechanism.spread**2,
        )
        with door:
            self.mechanism.run(self.rows[side](), door, self.options)
        score = door.score if side else -door.score
        return measured(score, door.squared, door.noises, beyond=door.beyond)


def _source() -> Entropy:
    """Return the source that a receipt names if nobody gives another."""
    from discreet.noise import SystemEntropy

    return SystemEntropy()
