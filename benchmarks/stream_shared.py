"""What the parts of `stream.py` share: how much to do, what was promised, what a part is."""

import pathlib
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from sharing import ROOT

EPSILON, DELTA = 1.0, 1e-6
KEY = bytes(range(32))  # of streams that nobody has to keep secret
YEAR = 365

Report = dict[str, Any]


@dataclass(frozen=True)
class Effort:
    """How much to measure.

    Attributes:
        frequencies: of states whose noise is measured; a state has four numbers for each.
        streams: whose noise is measured together.
        built: horizons of streams in folders.
        grown: horizons of streams that are kept in memory.
        horizons: how many are compared with the square-root factorisation.
        steps: of the stream that is timed.
        rows: of each of them.
        kills: of a stream that is being appended to.
        days: of a year.
        rows_a_day: that are tried, with so many streams each.
        texts: of each data set, at most.
        records: of a stream that is attended to, one a step.
        draws: of these, and of their noise.
        cache: folder of embedded reviews.
        data: folder of more texts, if there is one.
    """

    frequencies: int = 32_768
    streams: int = 4
    built: tuple[int, ...] = (64, YEAR, 1_024)
    grown: tuple[int, ...] = (4_096, 16_384)
    horizons: int = 200
    steps: int = 10_000
    rows: int = 1_000
    kills: int = 200
    days: int = YEAR
    rows_a_day: tuple[tuple[int, int], ...] = (
        (14, 8),
        (50, 6),
        (100, 6),
        (300, 8),
        (600, 3),
        (1_000, 3),
    )
    texts: int = 25_000
    records: int = 4_096
    draws: int = 3
    cache: pathlib.Path = ROOT / "build" / "embeddings"
    data: pathlib.Path | None = None


# Enough to see that every part runs; its figures say little.
QUICK: dict[str, Any] = {
    "frequencies": 1_024,
    "streams": 2,
    "built": (64, YEAR),
    "grown": (1_024,),
    "horizons": 12,
    "steps": 60,
    "rows": 50,
    "kills": 4,
    "days": 40,
    "rows_a_day": ((14, 1), (300, 1)),
    "texts": 1_500,
    "records": 128,
    "draws": 1,
}


@dataclass(frozen=True)
class Promise:
    """Something that was promised before it was measured."""

    what: str
    promised: str
    measured: str
    kept: bool


@dataclass(frozen=True)
class Part:
    """A part of the page. `measure` takes time, the others read what it found.

    Attributes:
        title: its heading.
        measure: returns what is kept in the JSON file under the name of the part.
        in_short: what to act on, for the top of the page: items of a list.
        page: the lines below the heading.
        promises: what was promised of it.
    """

    title: str
    measure: Callable[[Effort], Report]
    in_short: Callable[[Report], list[str]]
    page: Callable[[Report], list[str]]
    promises: Callable[[Report], list[Promise]]

    @classmethod
    def of(cls, title: str, module: ModuleType) -> "Part":
        """Return the part that a module measures, with functions of these names.

        A module without `in_short` has nothing for the top of the page.
        """
        in_short: Callable[[Report], list[str]] = getattr(module, "in_short", lambda _: [])
        return cls(title, module.measure, in_short, module.page, module.promises)


def near(measured: float, promised: float, *, within: float = 0.02) -> bool:
    """Whether a figure is what was promised, up to a share of it."""
    return abs(measured / promised - 1) <= within
