"""All rounds of a classifier: W → exact integer sums → noise → the next W.

One receipt for all of them, made before the first noise is drawn. `docs/privacy.md`, "Rounds".
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from discreet._typing import Floats, Integers
from discreet._warn import Note
from discreet.errors import InvalidInput
from discreet.ledger.account import Account, count
from discreet.noise import Entropy, RoundedGaussian, SystemEntropy
from discreet.readers.softmax.calibration import Judged, factor, split
from discreet.readers.softmax.descent import Descent, Slowed
from discreet.readers.softmax.layout import STATE_BITS, Rounds, Weights
from discreet.readers.softmax.passes import Passes
from discreet.readers.softmax.settings import (
    PartSettings,
    first_round,
    judgement,
    later_round,
    noise_of_round,
)
from discreet.sums.accumulate import Adder
from discreet.sums.layout import RowLayout
from discreet.sums.progress import Advance, passes_bar, unseen
from discreet.sums.release import Released
from discreet.sums.settings import Settings
from discreet.sums.source import Table

_SPENT = (
    "Nothing was released. But noise had been drawn in {drawn} of {passes} passes, and whoever saw "
    "what was in memory saw that: count (epsilon, delta) as spent."
)


def train(
    passes: Passes,
    settings: Settings[Rounds],
    *,
    entropy: Entropy | None,
    progress: bool,
    account: Account | None = None,
) -> Released[Rounds]:
    """Return a classifier of private rows, after all rounds.

    Args:
        passes: the rows, counted (`Passes.remembered`), as often as they are needed.
        settings: the public settings.
        entropy: where the noise comes from; by default the operating system.
        progress: whether to show a progress bar.
        account: on which all rounds are counted, once, before the first noise; if on any.
    """
    [layout] = settings.layouts
    source = SystemEntropy() if entropy is None else entropy
    receipt = settings.receipt(source)  # before any noise: what is drawn has been accounted for
    rounds = layout.rounds + 1
    door = _Door(passes, source, lambda: count(account, receipt, delta=settings.privacy.delta))
    try:
        with passes_bar(rounds, rows=passes.rows, show=progress) as door.begin:
            descent = _last(settings, door)
            scale, totals = _judged(settings, Weights.of(descent.weights), door)
        return Released(
            state=_frozen(np.ldexp(scale * descent.weights.T[None], STATE_BITS)),
            others=(_frozen(totals[None]),),
            layout=layout,
            guarantee=settings.guarantee(receipt),
            receipt=receipt,
            sigma=settings.sigma(layout),
            group_rows=settings.group_rows,
            rows=passes.rows if settings.public_rows else None,
            rows_hint=settings.rows_hint,
        )
    except BaseException as error:
        if door.drawn:
            error.add_note(Note(_SPENT.format(drawn=door.drawn, passes=rounds)))
        raise


@dataclass(eq=False, repr=False)
class _Door:
    """The one way out for anything that rows add up to: a pass over them, and noise. PRIVATE.

    Attributes:
        passes: the rows.
        source: of the noise.
        before_noise: called once, when rows have been read and before anything is drawn.
        begin: told the number of a pass, from 1 on; returns what to tell of progress.
        drawn: how many times noise was drawn.
    """

    passes: Passes
    source: Entropy
    before_noise: Callable[[], None]
    begin: Callable[[int], Advance] = field(default=lambda _: unseen, init=False)
    drawn: int = field(default=0, init=False)

    def noisy(
        self, settings: PartSettings[RowLayout], view: Callable[[Table], Table]
    ) -> list[Integers]:
        """Return the sums over all rows with noise, one array for each part; no exact one is kept.

        Args:
            settings: of this release, with its share of the budget.
            view: what is added up of a table of rows.
        """
        [layout] = settings.layouts
        adder = Adder(settings)
        advance = self.begin(self.drawn + 1)
        for table, groups in self.passes.open():
            adder.add([view(table)], groups=groups, advance=advance)
        if adder.rows != self.passes.rows:
            raise InvalidInput("Expected the same rows in every pass: their number has changed.")
        if not self.drawn:
            self.before_noise()
        self.drawn += 1
        return [
            law.sample(exact.shape, entropy=self.source) + exact
            for law, exact in zip(settings.laws(layout), adder.sums, strict=True)
        ]


def _last(settings: Settings[Rounds], door: _Door) -> Descent:
    """Return where W is after all rounds. From what the door lets out, and public numbers."""
    [rounds] = settings.layouts
    this = first_round(settings)
    [first] = this.layouts
    sums, *moments = door.noisy(this, _as_it_is)
    _, moments_law, _ = this.laws(first)
    shape = (rounds.kernel.features, rounds.columns)
    noise = noise_of_round(settings) * rounds.real_unit
    descent = Descent.start(shape, rounds=rounds.rounds, noise=noise)
    unit = first.moment_unit**2
    [matrix] = first.matrices(*moments) / unit
    slowed = Slowed.of(matrix, _deviation(moments_law) / unit, descent.longest)
    descent = descent.next(slowed(_gradient(rounds, sums)))
    for _ in range(1, rounds.rounds):
        [sums] = door.noisy(later_round(settings, Weights.of(descent.weights)), _as_it_is)
        descent = descent.next(slowed(_gradient(rounds, sums)))
    return descent


def _judged(settings: Settings[Rounds], weights: Weights, door: _Door) -> tuple[float, Floats]:
    """Return what logits are to be multiplied by, and about how many rows each class has."""
    [rounds] = settings.layouts
    this, last = judgement(settings), rounds.at(weights)
    [layout] = this.layouts
    [sums] = door.noisy(this, lambda table: Judged(table.keys, table.values, table, last))
    # The first feature is the constant; the last column counts rows.
    differences, totals = split(np.asarray(sums[0, :-1, 0] * layout.real_unit))
    [law] = this.laws(layout)
    return factor(differences, _deviation(law) * layout.real_unit), totals


def _as_it_is(table: Table) -> Table:
    return table


def _gradient(rounds: Rounds, noisy: Integers) -> Floats:
    """Return Σ φ ⊗ q in real units, shape (r, C)."""
    return np.asarray(noisy[0].T * rounds.real_unit)


def _deviation(law: RoundedGaussian) -> float:
    return math.sqrt(law.variance)


def _frozen(numbers: Floats) -> Integers:
    """Return whole numbers, as a file keeps them."""
    whole = np.rint(numbers).astype(np.int64, order="C")
    whole.flags.writeable = False
    return whole
