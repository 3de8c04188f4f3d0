"""How much noise states of a stream have, over that of one single release: built, and computed."""

import math
import pathlib
import tempfile
from dataclasses import dataclass
from typing import Any

import numpy as np
from sharing import table, tell
from stream_shared import DELTA, EPSILON, KEY, YEAR, Effort, Promise, Report, near

import discreet
from discreet._typing import Floats
from discreet.kernels import Fourier
from discreet.noise.correlated import Participation, Reading, chosen
from discreet.readers.attention.memory import Memory
from discreet.stream.state import StreamState, released
from discreet.testing import Seeded

PICTURE = "stream-noise.png"
HORIZONS = (64, YEAR, 1_024, 4_096, 16_384)
WINDOWS, HALF_LIVES = (7, 30, 90), (7, 14, 30)
ALL, THIS = "all", "a stream"
SQUARE_ROOT, TREE, HONAKER = "square root", "binary tree", "Honaker's tree"
INDEPENDENT, BOUND = "independent steps", "lower bound"
# Where the noise of a year is looked at, for the picture.
DAYS = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, YEAR)

NOBODY = np.zeros((0, 1)), np.zeros((0, 1))


@dataclass(frozen=True)
class Maker:
    """Streams and single releases of no rows: all that is in them is noise.

    Attributes:
        frequencies: of the kernel.
    """

    frequencies: int

    @property
    def options(self) -> dict[str, Any]:
        """What streams and single releases are built with."""
        bounds: dict[str, Any] = {"scale": 1.0, "key_norm": 1.0, "query_norm": 1.0}
        kernel = Fourier(1, frequencies=self.frequencies, seed=0, **bounds)
        return {"epsilon": EPSILON, "delta": DELTA, "kernel": kernel, "rows_hint": 100_000}

    @property
    def numbers(self) -> int:
        """How many numbers a state has."""
        return 4 * self.frequencies

    def single(self) -> float:
        """Return σ of one single release, as what its sums stand for."""
        made = discreet.build(*NOBODY, entropy=Seeded(0), **self.options).released
        return float(made.sigma * made.layout.real_unit)

    def stream(
        self, folder: pathlib.Path, steps: int, seed: int, tuned: dict[str, Any]
    ) -> discreet.Stream:
        """Return a stream in a folder, with as many steps as it was made for."""
        stream = discreet.Stream(
            folder, key=KEY, steps=steps, entropy=Seeded(seed), **tuned, **self.options
        )
        for step in range(1, steps + 1):
            stream.append(*NOBODY, step=f"{step}")
        return stream

    def grown(self, steps: int, seed: int) -> Memory:
        """Return the last state of a stream that has no folder: every draw, and no disk."""
        entropy = Seeded(seed)
        shape: dict[str, Any] = {"key_dim": 1, "value_dim": 1}
        with tempfile.TemporaryDirectory() as name:
            path = pathlib.Path(name) / "begun"
            begun = discreet.Stream(
                path, key=KEY, steps=steps, entropy=entropy, **shape, **self.options
            )
        state = StreamState.begin(begun.settings)
        nothing = state.totals
        for _ in range(steps):
            state = state.next(nothing, begun.settings, entropy, rows=0)
        [found] = released(
            state.totals,
            begun.settings,
            begun.receipt,
            step=steps,
            reading=Reading(),
            rows=0,
            rows_hint=None,
        )
        return Memory(found)


def spread(memory: Memory) -> float:
    """Return the root mean square of a state without rows, as what its sums stand for."""
    made = memory.released
    return math.sqrt(np.mean(np.square(made.state.astype(np.float64)))) * made.layout.real_unit


def said(memory: Memory) -> float:
    """Return what the card says."""
    factor = memory.card.to_dict()["noise_over_one_release"]
    assert isinstance(factor, float)
    return factor


def together(memories: list[Memory], single: float) -> Report:
    """Return the noise of the same state of several streams, measured and said."""
    squares = [spread(memory) ** 2 for memory in memories]
    return {"measured": math.sqrt(np.mean(squares)) / single, "card": said(memories[0])}


# --- computed -------------------------------------------------------------------------------------


def square_root(steps: int) -> Floats:
    """Return the noise after each step, if noise is correlated by the root of the prefix sums."""
    k = np.arange(1, steps)
    squares = np.cumsum(np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k))]) ** 2)
    return np.asarray(np.sqrt(squares * squares[-1]))


def of_tree(steps: int, *, honaker: bool) -> Floats:
    """Return the noise after each step, if prefixes are put together from nodes of a binary tree.

    A row is in one node of each level. Honaker's nodes are the best estimates from all nodes below.
    """
    levels = steps.bit_length()
    heights = np.arange(levels)
    variances = 0.5 / (1 - 0.5 ** (heights + 1)) if honaker else np.ones(levels)
    parts = (np.arange(1, steps + 1)[:, None] >> heights) & 1
    return np.asarray(np.sqrt(levels * (parts @ variances)))


def of_stream(steps: int) -> Floats:
    """Return the noise after each step of a stream that is made for so many."""
    strategy = chosen(Reading(), Participation(), steps=steps)
    step, state = strategy.dynamics()
    pushed = []
    for _ in range(steps):
        pushed.append(state[-1])
        state = step @ state
    return np.asarray(strategy.norm * np.sqrt(np.cumsum(np.square(pushed))))


def lower_bound(steps: int) -> float:
    """Return what the root mean square over steps is at least, whatever the factorisation.

    The nuclear norm of the matrix of prefix sums, over the number of steps.
    """
    angles = np.pi * np.arange(1, steps + 1) / (2 * steps + 1)
    return float(np.mean(0.5 / np.cos(angles)))


def curves(steps: int) -> dict[str, Floats]:
    """Return the noise after each step, by how it is made."""
    return {
        INDEPENDENT: np.sqrt(np.arange(1, steps + 1)),
        TREE: of_tree(steps, honaker=False),
        HONAKER: of_tree(steps, honaker=True),
        THIS: of_stream(steps),
        SQUARE_ROOT: square_root(steps),
    }


# --- measured -------------------------------------------------------------------------------------


def of_a_year(maker: Maker, streams: int, single: float) -> Report:
    """Return the noise of a year of days: of every reading, and of all so far over time."""
    with tempfile.TemporaryDirectory() as name:
        made = [
            maker.stream(pathlib.Path(name) / f"{seed}", YEAR, seed, {}) for seed in range(streams)
        ]
        readings = {
            **{f"window {each}": [one.window(last=each) for one in made] for each in WINDOWS},
            **{
                f"half-life {each}": [one.decayed(half_life=each) for one in made]
                for each in HALF_LIVES
            },
        }
        return {
            "readings": {each: together(found, single) for each, found in readings.items()},
            "over_time": {
                f"{day}": together([one.memory(step=f"{day}") for one in made], single)
                for day in DAYS
            },
        }


def tuned(maker: Maker, streams: int, single: float) -> Report:
    """Return the noise of readings that streams were made for."""
    found = {}
    for kind, lengths in (("window", WINDOWS), ("half_life", HALF_LIVES)):
        for length in lengths:
            with tempfile.TemporaryDirectory() as name:
                made = [
                    maker.stream(pathlib.Path(name) / f"{seed}", YEAR, seed, {kind: length})
                    for seed in range(streams)
                ]
                read = [
                    one.window(last=length) if kind == "window" else one.decayed(half_life=length)
                    for one in made
                ]
                of_all = together([one.memory() for one in made], single)
                target = f"{kind.replace('_', '-')} {length}"
                found[target] = {**together(read, single), "all": of_all}
                tell(f"tuned for {target}: {found[target]['measured']:.3f}")
    return found


def after(maker: Maker, effort: Effort, single: float) -> Report:
    """Return the noise after the last step of streams of each length."""
    found = {}
    for steps in effort.built:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            made = [
                maker.stream(folder / f"{seed}", steps, seed, {}).memory()
                for seed in range(effort.streams)
            ]
            found[f"{steps}"] = together(made, single)
        tell(f"{steps:,} steps: {found[f'{steps}']['measured']:.3f}")
    for steps in effort.grown:
        found[f"{steps}"] = together([maker.grown(steps, 0)], single)
        tell(f"{steps:,} steps: {found[f'{steps}']['measured']:.3f}")
    return found


def measure(effort: Effort) -> Report:
    """Return the noise of built states, and that of other ways."""
    maker = Maker(effort.frequencies)
    single = maker.single()
    return {
        "numbers": maker.numbers,
        "streams": effort.streams,
        "after": after(maker, effort, single),
        **of_a_year(maker, effort.streams, single),
        "tuned": tuned(maker, effort.streams, single),
        "computed": {
            f"{steps}": {
                **{
                    name: [float(np.max(each)), float(np.mean(each))]
                    for name, each in curves(steps).items()
                },
                BOUND: lower_bound(steps),
                "arrays": chosen(Reading(), Participation(), steps=steps).buffers,
            }
            for steps in HORIZONS
        },
    }


# --- the page -------------------------------------------------------------------------------------


def in_short(report: Report) -> list[str]:
    """Return what to act on."""
    last = report["after"][f"{YEAR}"]["measured"]
    month, tuned = (report[each]["window 30"]["measured"] for each in ("readings", "tuned"))
    alone = report["computed"][f"{YEAR}"][INDEPENDENT][0]
    return [
        (
            f"- After a year of days, the state of all rows so far has **{last:.2f} times** the "
            "noise of one single release of the same rows. Releases of each day alone, added up, "
            f"would have {alone:.0f} times."
        ),
        (
            f"- The last 30 days have {month:.2f} times the noise of one release of these days; "
            f"{tuned:.2f} times, if the stream was made for it (`window=30`)."
        ),
    ]


def page(report: Report) -> list[str]:
    """Return the section of the page."""
    return [
        (
            "Each figure is the standard deviation of the noise in a state, over that of one "
            "single `discreet.build` with the same ε and δ. A figure of 3 means: a state needs "
            "3,000 rows to say what one release says with 1,000."
        ),
        "",
        f"![Noise after each day of a year, for several ways of adding noise]({PICTURE})",
        *over_time_lines(report),
        "### Of all steps so far",
        "",
        *after_lines(report),
        "### Of the last steps",
        "",
        (
            f"After {YEAR} steps, measured (card). A stream that is made for a window or a "
            "half-life (`window=`, `half_life=`) has less noise there, for ever, and more in the "
            "state of all steps."
        ),
        *readings_table(report),
    ]


def after_lines(report: Report) -> list[str]:
    """Return the noise of all steps so far, and what the columns are."""
    bound = report["computed"][f"{YEAR}"][BOUND]
    error = 100 / math.sqrt(2 * report["numbers"] * report["streams"])
    return [
        (
            f"*Measured* is what states without rows are, with {report['numbers']:,} numbers each: "
            f"within {2 * error:.1f}% (two standard errors) up to 1,024 steps, and within "
            f"{2 * error * math.sqrt(report['streams']):.1f}% beyond. *Card* is what the state "
            "says of itself (`noise_over_one_release`). The other columns are computed: the "
            "largest over all steps, and the mean."
        ),
        *after_table(report),
        (
            "The *square root* of the matrix of prefix sums is nearly the best that is known; it "
            "has to keep every past draw. A *stream* keeps a few arrays, each as large as a state. "
            "*Trees* add up nodes, with noise in each. *Independent steps* adds up releases of one "
            "step each. The *lower bound* is of the root mean square over all steps, for any way "
            f"of this kind: {bound:.2f} for a year."
        ),
        "",
    ]


def over_time_lines(report: Report) -> list[str]:
    """Return what the picture shows, in words."""
    first, last = (report["over_time"][f"{day}"]["measured"] for day in (1, YEAR))
    return [
        "",
        (
            f"The first state of a stream for a year has {first:.2f} times the noise of a single "
            f"release, the last one {last:.2f} times. Dots are measured, lines computed."
        ),
        "",
    ]


def after_table(report: Report) -> list[str]:
    """Return the noise of all steps so far, by length and by way."""
    ways = (SQUARE_ROOT, THIS, HONAKER, TREE, INDEPENDENT)
    rows = []
    for steps, computed in report["computed"].items():
        built = report["after"].get(steps)
        cells = ["–", "–"]
        if built is not None:
            cells = [f"**{built['measured']:.2f}**", f"{built['card']:.2f}"]
        pairs = [f"{computed[way][0]:.2f} / {computed[way][1]:.2f}" for way in ways]
        ends = [f"{computed[BOUND]:.2f}", f"{computed['arrays']}"]
        rows.append([f"{int(steps):,}", *cells, *pairs, *ends])
    return table(["steps", "measured", "card", *ways, BOUND, "arrays kept"], rows)


def readings_table(report: Report) -> list[str]:
    """Return the noise of windows and half-lives, of streams for all steps and of tuned ones."""

    def cell(found: Report) -> str:
        return f"{found['measured']:.2f} ({found['card']:.2f})"

    rows = []
    for name, found in report["readings"].items():
        kind, length = name.rsplit(" ", 1)
        label = f"the last {length} steps" if kind == "window" else f"half-life of {length} steps"
        made = report["tuned"][name]
        rows.append([label, cell(found), cell(made), cell(made["all"])])
    head = ["read", "stream for all steps", "stream made for it", "all steps of that stream"]
    return table(head, rows)


def promises(report: Report) -> list[Promise]:
    """Return what was promised of the noise."""
    found = [
        ("noise after a year", 2.97, report["after"][f"{YEAR}"]["measured"]),
        ("noise of the last 30 days of a year", 3.17, report["readings"]["window 30"]["measured"]),
    ]
    return [
        Promise(what, f"{promised} ± 2%", f"{measured:.3f}", kept=near(measured, promised))
        for what, promised, measured in found
    ]
