"""What `stream show` does: a stream's promise and steps, and how noisy its readings are.

All of it is read from public files, without a key.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet import provenance
from discreet._typing import Floats
from discreet.cli.files import check_picture, pictures
from discreet.cli.shell import aligned, print_json, print_page
from discreet.cli.stream_noise import State, noise_alone, noise_of_tree, prediction
from discreet.noise.correlated import Reading, ReadingKind
from discreet.privacy import NOT_PRIVATE, titled
from discreet.readers.attention.memory import Memory
from discreet.readers.attention.prediction import mostly_noise, times
from discreet.stream import Stream
from discreet.stream.published import Published
from discreet.stream.state import continual_of
from discreet.sums.forecast import participating

# Readings that are shown of every stream: windows and half-lives, in steps.
_WINDOWS = (7, 30, 90)
_HALF_LIVES = (7.0, 14.0, 30.0)

_MOSTLY_NOISE = "mostly noise"

# So many points of a curve, and of what windows can tell.
_POINTS, _WINDOW_POINTS = 200, 25


@dataclass(frozen=True)
class Told:
    """How noisy one reading of a stream is, and what it can tell.

    Attributes:
        reading: which steps it is about.
        tuned: whether the stream has the least noise for it.
        now: as it is after the last step; None if there are too few steps.
        planned: as it will be after as many steps as were planned.
        noisy: whether answers are predicted to be mostly noise now, as its card would say; None
            where nobody looked.
    """

    reading: Reading
    tuned: bool
    now: State | None
    planned: State
    noisy: bool | None

    def to_dict(self) -> dict[str, object]:
        """Return the same, ready for JSON."""
        return {
            **self.reading.parameters(),
            "tuned": self.tuned,
            "now": None if self.now is None else asdict(self.now),
            "planned": asdict(self.planned),
            "mostly_noise": self.noisy,
        }


def show_stream(folder: Path, *, picture: Path | None, force: bool, as_json: bool) -> None:
    """Print, and draw, what is public about a stream.

    Args:
        folder: of the stream, or of what is public in it.
        picture: where to draw, if it is to be drawn.
        force: whether a picture that is there may be replaced.
        as_json: whether to print JSON.
    """
    check_picture(picture, force=force, inputs=(folder,))
    published = Stream.published(folder)
    readings = [_told(published, each) for each in _readings(published)]
    if picture is not None:
        draw = pictures()
        draw.save(draw.noise_of_stream(**_drawn(published, draw.Curve)), picture)
    if as_json:
        print_json({**_facts(published), "readings": [each.to_dict() for each in readings]})
        return
    print_page(titled(_lines(published)))
    print_page("\nNoise, over that of one single release of the same rows\n", style="bold")
    for line in _table(readings):
        print_page(line)
    print_page(f"\n{titled(_legend(published, predicts=_predicts(readings)))}")
    if picture is not None:
        print_page(f"\n{picture}: the same, drawn")


def _lines(published: Published) -> list[tuple[str, str]]:
    """Return the page above the table: titles and texts."""
    settings, sums = published.settings, published.settings.sums
    [layout] = sums.layouts
    guarantee = published.guarantee
    hint = "" if settings.rows_hint is None else f"; about {settings.rows_hint:,} of them in all"
    widths = f"keys of {layout.kernel.dim:,} numbers, values of {layout.value_width:,}"
    heads = f"{layout.head_count:,} heads, " if layout.head_count > 1 else ""
    marks = []
    if not settings.private:
        marks = [(NOT_PRIVATE, f"the noise comes from {settings.receipt.source}, for tests")]
    return [
        *marks,
        (
            "protects",
            f"any one {guarantee.unit} ({guarantee.neighbours.change}): {guarantee.figures}",
        ),
        ("guarantee", str(guarantee)),
        ("participation", participating(continual_of(sums), sums.unit, sums.group_rows)),
        ("steps", _steps(published)),
        ("tuned for", str(settings.tune)),
        ("rows", f"{heads}{widths}{hint}"),
        ("reader", settings.mechanism.name),
        ("counted", "in a ledger, with each step" if settings.counted else "in no ledger"),
        *provenance.lines(sums.stated),
    ]


def _steps(published: Published) -> str:
    planned = f"about {published.settings.steps:,} planned"
    if not published.lines:
        return f"none yet, {planned}"
    first, last = published.lines[0].name, published.lines[-1].name
    names = first if published.step == 1 else f"{first} to {last}"
    return f"{published.step:,} ({names}), {planned}"


def _facts(published: Published) -> dict[str, object]:
    settings, guarantee = published.settings, published.guarantee
    [layout] = settings.sums.layouts
    names = [line.name for line in published.lines]
    return {
        "private": settings.private,
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "neighbours": str(guarantee.neighbours),
        "unit": guarantee.unit,
        "group_rows": settings.sums.group_rows,
        **provenance.facts(settings.sums.stated),
        "guarantee": str(guarantee),
        "participation": str(continual_of(settings.sums).participation),
        "step": published.step,
        "first": names[0] if names else None,
        "last": names[-1] if names else None,
        "steps": settings.steps,
        "tune": settings.tune.parameters(),
        "rows_hint": settings.rows_hint,
        "reader": settings.mechanism.name,
        "heads": list(layout.heads),
        "key_dim": layout.kernel.dim,
        "value_dim": layout.value_width,
        "counted": settings.counted,
    }


def _readings(published: Published) -> Iterator[Reading]:
    """Yield all steps, then windows that are shorter, then half-lives; the stream's own, too."""
    most, tune = max(published.step, published.settings.steps), published.settings.tune
    yield Reading()
    for kind, usual in ((ReadingKind.WINDOW, _WINDOWS), (ReadingKind.DECAY, _HALF_LIVES)):
        own = {tune.length} if tune.kind is kind else set()
        for length in sorted(own.union(usual)):
            if length in own or kind is ReadingKind.DECAY or length < most:
                yield Reading(kind, length)


def _told(published: Published, reading: Reading) -> Told:
    """Return how noisy a reading is, and what it can tell now."""
    step, steps = published.step, published.settings.steps
    enough = step > 0 and (reading.kind is not ReadingKind.WINDOW or reading.length <= step)
    noisy = None
    # Half-lives are read from every step: of a long stream, that takes its time.
    if enough and reading.kind is not ReadingKind.DECAY:
        memory = published.answers(reading)
        if isinstance(memory, Memory):
            noisy = mostly_noise([memory.released]) is not None
    return Told(
        reading=reading,
        tuned=reading == published.settings.tune,
        now=State.of(published, reading, step) if enough else None,
        planned=State.of(published, reading, steps),
        noisy=noisy,
    )


def _table(readings: Sequence[Told]) -> list[str]:
    """Return the lines of a table; without what answers will be like, where nobody predicts it."""
    names = [_name(each.reading) for each in readings]
    width = max(map(len, names))
    cells: list[tuple[str, ...]] = [("", "now", "s/e", "", "planned", "s/e")]
    cells += [
        (
            f"{'*' if each.tuned else ' '} {name:<{width}}",
            *_cells(each.now),
            f"{_MOSTLY_NOISE if each.noisy else '':<{len(_MOSTLY_NOISE)}}",
            *_cells(each.planned),
        )
        for name, each in zip(names, readings, strict=True)
    ]
    if not _predicts(readings):
        cells = [(each[0], each[1], each[4]) for each in cells]
    return aligned(cells, gap=2, right=True)


def _predicts(readings: Sequence[Told]) -> bool:
    """Return whether anybody predicts what answers will be like."""
    states = [state for each in readings for state in (each.now, each.planned)]
    return any(each is not None and each.predicted_signal_to_error is not None for each in states)


def _name(reading: Reading) -> str:
    if reading.kind is ReadingKind.WINDOW:
        return f"the last {reading.length:,}"
    return f"half-life {reading.length:g}" if reading.kind is ReadingKind.DECAY else "all steps"


def _cells(state: State | None) -> tuple[str, str]:
    if state is None:
        return "", ""
    clear = state.predicted_signal_to_error
    return f"{state.noise_over_one_release:#.3g}", "" if clear is None else times(clear)


def _legend(published: Published, *, predicts: bool) -> list[tuple[str, str]]:
    now = f"after step {published.step:,}" if published.step else "there is no step yet"
    told = (
        "signal over standard error: how much answers differ from query to query, at best, over "
        "how far they are off; below 1 they are mostly noise, unless rows have much in common"
    )
    return [
        ("*", "what the stream was tuned for"),
        ("now", now),
        ("planned", f"after step {published.settings.steps:,}"),
        *([("s/e", told)] if predicts else []),
    ]


def _smoothed(noise: Floats, at: Sequence[int]) -> list[float]:
    """Return the root mean square of some noise over the last half of the steps before each."""
    total = np.cumsum(np.concatenate([[0.0], noise**2]))
    ends = np.array(at)
    begins = ends // 2
    means = (total[ends] - total[begins]) / (ends - begins)
    return [math.sqrt(each) for each in means]


def _drawn(published: Published, curve: Any) -> dict[str, Any]:  # noqa: ANN401 (the class)
    """Return what the picture shows: noise over steps, and what windows can tell."""
    settings, step = published.settings, published.step
    last = max(step, settings.steps)
    at = _spaced(last, _POINTS)
    own = settings.tune
    if own.kind is ReadingKind.ALL:
        own = Reading(ReadingKind.WINDOW, min(30, max(last // 3, 1)))
    by_step = {
        str(each): curve(at, [published.noise(each, number) for number in at])
        for each in (Reading(), own)
    }
    participation = continual_of(settings.sums).participation
    tree, alone = noise_of_tree(last, participation), noise_alone(last, participation)
    by_step["a binary tree (Honaker's), on average"] = curve(at, _smoothed(tree, at))
    by_step["steps that are released alone, added up"] = curve(
        at, [float(alone[number - 1]) for number in at]
    )
    return {"by_step": by_step, "step": step, **_windows(published, curve)}


def _windows(published: Published, curve: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return what windows of all lengths can tell, as far as it is known, and what 1 means."""
    step = published.step or published.settings.steps
    lengths = _spaced(step, _WINDOW_POINTS)
    readings = [Reading(ReadingKind.WINDOW, length) for length in lengths]
    after = f"window: the last so many steps, after step {step:,}"
    known = [prediction(published, each, step) for each in readings]
    told = [
        (length, said.signal_to_error)
        for length, said in zip(lengths, known, strict=True)
        if said is not None
    ]
    if told:
        return {
            "by_window": curve(*zip(*told, strict=True)),
            "x_label": after,
            "y_label": "signal over error",
            "level": "below 1: mostly noise",
        }
    noise = [
        published.noise(each, step) / length for length, each in zip(lengths, readings, strict=True)
    ]
    return {
        "by_window": curve(lengths, noise),
        "x_label": after,
        "y_label": "noise per step",
        "level": "1: a single release of one step",
    }


def _spaced(last: int, count: int) -> list[int]:
    """Return whole numbers from 1 on, spaced by ratios."""
    return sorted({int(each) for each in np.geomspace(1, last, count).round()})
