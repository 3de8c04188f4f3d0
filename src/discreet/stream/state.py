"""One step of a stream: exact sums in, the next released state out. The only noise of this room.

Fresh noise is drawn for every number of every step, whether there were rows or not; buffers make
of it noise that is correlated over time (`noise/correlated.py`); what is released is the running
total. `docs/privacy.md`, "Streams".
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from discreet._typing import Integers
from discreet.accounting import Receipt
from discreet.errors import InvalidInput
from discreet.noise import Entropy
from discreet.noise.correlated import MOST_STEPS, Continual, Reading, StateNoise, Strategy
from discreet.sums.release import Released
from discreet.sums.settings import Settings

# Totals are refused beyond this: there is room for the rows and the noise of one step more.
_FULL = 2**61


@dataclass(frozen=True, eq=False, repr=False)
class StreamState:
    """What a stream goes on from. PRIVATE: buffers and totals together tell exact sums.

    Attributes:
        step: how many steps there have been.
        totals: what was released last, one array for each part of each layer.
        buffers: of the noise, shape (buffers, numbers of all parts).
        rows: how many rows there have been, where that is public; else 0.
    """

    step: int
    totals: tuple[Integers, ...]
    buffers: Integers
    rows: int = 0

    def __repr__(self) -> str:
        return f"<StreamState: after step {self.step}, private>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("The state of a stream is private and is never pickled or copied.")

    @classmethod
    def begin(cls, settings: Settings[Any]) -> "StreamState":
        """Return the state before the first step.

        Args:
            settings: the public settings.
        """
        totals = tuple(np.zeros(shape, dtype=np.int64) for shape in _shapes(settings))
        return cls(0, totals, strategy_of(settings).begin(sum(each.size for each in totals)))

    def next(
        self, sums: Sequence[Integers], settings: Settings[Any], entropy: Entropy, *, rows: int
    ) -> "StreamState":
        """Return the state after one step more. Its totals may be released; nothing else may.

        Args:
            sums: exact, of the rows of this step; one array for each part of each layer.
            settings: the public settings.
            entropy: where the noise comes from.
            rows: of this step; kept only where that is public.

        Raises:
            InvalidInput: there have been too many steps, or totals are full.
        """
        if self.step >= MOST_STEPS:
            raise InvalidInput(f"Expected at most {MOST_STEPS:,} steps in a stream.")
        # Of what is released already: it tells nothing new.
        if any(each.size and int(np.max(np.abs(each))) >= _FULL for each in self.totals):
            raise InvalidInput("Expected a larger rows_hint: the sums of this stream are full.")
        laws = [law for layout in settings.layouts for law in settings.laws(layout)]
        fresh = [
            law.sample(each.shape, entropy=entropy).ravel()
            for law, each in zip(laws, self.totals, strict=True)
        ]
        noise, buffers = strategy_of(settings).follow(self.buffers, np.concatenate(fresh))
        ends = np.cumsum([each.size for each in self.totals])[:-1]
        totals = tuple(
            _frozen(total + exact + part.reshape(total.shape))
            for total, exact, part in zip(self.totals, sums, np.split(noise, ends), strict=True)
        )
        public = self.rows + rows if settings.public_rows else 0
        return StreamState(self.step + 1, totals, buffers, public)


def _frozen(array: Integers) -> Integers:
    array.flags.writeable = False
    return array


def _shapes(settings: Settings[Any]) -> list[tuple[int, ...]]:
    return [shape for layout in settings.layouts for shape in layout.shapes]


def continual_of(settings: Settings[Any]) -> Continual:
    """Return what makes the releases of a stream one mechanism.

    Args:
        settings: those of a stream.
    """
    if settings.continual is None:
        raise InvalidInput("Expected the settings of a stream.")
    return settings.continual


def strategy_of(settings: Settings[Any]) -> Strategy:
    """Return how the noise of a stream follows from step to step.

    Args:
        settings: those of a stream.
    """
    return continual_of(settings).strategy


def released(
    totals: Sequence[Integers],
    settings: Settings[Any],
    receipt: Receipt,
    *,
    step: int,
    reading: Reading,
    rows: int,
    rows_hint: int | None,
) -> list[Released[Any]]:
    """Return what may be given away of a state: noisy sums of each layer. Post-processing.

    Args:
        totals: made of released states only; one array for each part of each layer.
        settings: the public settings.
        receipt: of the stream's whole life.
        step: how many steps there have been.
        reading: which of them the sums are about.
        rows: how many rows there are in them, where that is public.
        rows_hint: a public figure for that, if there is one.
    """
    noise = StateNoise(continual_of(settings), settings.stretch, step, reading)
    guarantee = settings.guarantee(receipt)
    rest = list(totals)
    states = []
    for layout in settings.layouts:
        parts = [rest.pop(0) for _ in layout.shapes]
        states.append(
            Released(
                state=parts[0],
                others=tuple(parts[1:]),
                layout=layout,
                guarantee=guarantee,
                receipt=receipt,
                sigma=settings.sigma(layout) / settings.stretch * noise.factor,
                group_rows=settings.group_rows,
                rows=rows if settings.public_rows else None,
                rows_hint=rows_hint,
                stream=noise,
                stated=settings.stated,
            )
        )
    return states


def packed(arrays: Sequence[Integers]) -> bytes:
    """Return arrays as bytes, one after the other.

    Args:
        arrays: of whole numbers.
    """
    return b"".join(np.ascontiguousarray(each, dtype="<i8").tobytes() for each in arrays)


def unpacked(data: bytes | memoryview, settings: Settings[Any]) -> tuple[Integers, ...]:
    """Return what `packed` made of one array for each part of each layer.

    Args:
        data: of that length.
        settings: the public settings.
    """
    flat = np.frombuffer(data, dtype="<i8").astype(np.int64)
    shapes = _shapes(settings)
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    if len(flat) != ends[-1]:
        raise InvalidInput("Expected as many numbers as the settings say.")
    parts = np.split(flat, ends[:-1])
    return tuple(_frozen(part.reshape(shape)) for part, shape in zip(parts, shapes, strict=True))
