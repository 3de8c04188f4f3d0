"""Every mechanism of discreet, small, with two data sets at the bounds: what `discreet audit` runs.

A few rows are enough, and quick: noise does not depend on how many there are, and a row shows no
less among others, since whoever attacks knows them. The two data sets differ in one row (or record)
that is as long as clipping lets it be, so that they are as far apart as the proof allows for, or
nearly.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import discreet
from discreet import _validate, paper
from discreet.accounting.promise import Promise
from discreet.audit.canaries import OneRun, one_run
from discreet.audit.experiments import Build, Experiment, few_rows, known
from discreet.audit.looking import Part, Seen, fresh_draws, seen
from discreet.audit.pairs import Run, claim
from discreet.audit.programs import Program
from discreet.audit.report import Audit
from discreet.errors import DiscreetError
from discreet.features.fourier import Fourier
from discreet.features.landmarks import Landmarks
from discreet.noise import Entropy, RoundedGaussian, SystemEntropy
from discreet.noise.correlated import Participation
from discreet.readers.attention.mechanism import ATTENTION
from discreet.readers.glm import GLM
from discreet.readers.softmax import SOFTMAX
from discreet.readers.table import TABLE
from discreet.shards import Job
from discreet.stream.design import reading_of, resolve
from discreet.stream.state import StreamState, continual_of
from discreet.sums.accumulate import Accumulator
from discreet.sums.mechanism import Mechanism, ReleaseOptions
from discreet.sums.mechanism import build as build_by
from discreet.sums.selection import LENGTH
from discreet.sums.settings import Settings, Shape, Unit
from discreet.sums.source import RowSource, Table

# Rows that are in both data sets, and the one that is in one of them: longer than it may be, so
# that it is as long as clipping lets it be, and that what is not clipped shows.
_KEYS = np.array([[0.6, 0.8], [1.0, 0.0]])
_VALUES = np.array([[0.5], [-1.0]])
_KEY, _VALUE = np.array([[0.0, 10.0]]), np.array([[10.0]])

# Steps of a stream; and rows that all say the same, so that the one that does not stands out.
_STEPS, _CROWD = 8, 300


@dataclass(frozen=True)
class Case:
    """One mechanism that can be audited.

    Attributes:
        name: what it is asked for by.
        about: what the unit is, and what is looked at.
        make: from ε and δ to an experiment and what is promised of it.
    """

    name: str
    about: str
    make: Callable[[float, float], tuple[Experiment, Promise]]

    def audit(self, *, epsilon: float, delta: float, run: Run) -> Audit:
        """Return what an audit finds.

        Args:
            epsilon: that is asked for.
            delta: that is asked for.
            run: how many releases are made, and how.
        """
        began = time.monotonic()
        with few_rows():
            experiment, promise = self.make(epsilon, delta)
            return run.audit(experiment, promise, name=self.name, began=began)


def named(names: Sequence[str]) -> list[Case]:
    """Return the cases of these names, in this order; "all" stands for all of them.

    Args:
        names: of mechanisms.
    """
    if "all" in names:
        return list(CASES)
    known_names = {each.name: each for each in CASES}
    for name in names:
        if name not in known_names:
            _validate.reject_argument("mechanism", name, f"all, or one of {[*known_names]}")
    return [known_names[name] for name in names]


def _with_row(present: int) -> tuple[Any, Any]:
    """Return keys and values, with the row or without."""
    if not present:
        return _KEYS, _VALUES
    return np.concatenate([_KEYS, _KEY]), np.concatenate([_VALUES, _VALUE])


def _replaced(present: int) -> tuple[Any, Any]:
    """Return keys and values whose last row is one, or its opposite."""
    sign = 1.0 if present else -1.0
    return np.concatenate([_KEYS, _KEY]), np.concatenate([_VALUES, sign * _VALUE])


def _of_builds(build: Build, data: Callable[[int], Any] = _with_row) -> tuple[Experiment, Promise]:
    """Return the experiment of a mechanism whose releases are sums plus noise."""
    pair = (data(0), data(1))
    experiment = known(build, pair)
    if experiment is None:
        raise DiscreetError("Expected a release that is sums and noise.")
    first = [seen(build(each, None), view=lambda _: np.zeros(1)) for each in pair]
    return experiment, claim(first)


def _memory(epsilon: float, delta: float) -> tuple[Experiment, Promise]:
    kernel = Fourier(2, frequencies=16, scale=1.0, key_norm=1.0, query_norm=1.0)
    return _of_builds(
        lambda rows, entropy: discreet.build(
            *rows, epsilon=epsilon, delta=delta, kernel=kernel, entropy=entropy
        )
    )


_MONOMIALS: dict[str, Any] = {"scale": 1.0, "kernel": "minimax", "eps_s": 0.5}


def _replace(epsilon: float, delta: float) -> tuple[Experiment, Promise]:
    return _of_builds(
        lambda rows, entropy: discreet.build(
            *rows,
            epsilon=epsilon,
            delta=delta,
            neighbours="replace",
            entropy=entropy,
            **_MONOMIALS,
        ),
        _replaced,
    )


def _records(epsilon: float, delta: float) -> tuple[Experiment, Promise]:
    """A record of four rows, each as long as one may be, has the influence of one."""

    def data(present: int) -> tuple[Any, Any, Any]:
        count = 4 if present else 0
        keys = np.concatenate([_KEYS, np.repeat(_KEY, count, axis=0)])
        values = np.concatenate([_VALUES, np.repeat(_VALUE, count, axis=0)])
        return keys, values, np.array([1, 2, *[3] * count])

    return _of_builds(
        lambda rows, entropy: discreet.build(
            *rows[:2], groups=rows[2], epsilon=epsilon, delta=delta, entropy=entropy, **_MONOMIALS
        ),
        data,
    )


def _heads(epsilon: float, delta: float) -> tuple[Experiment, Promise]:
    """Two layers, one with two heads: the row is as long as it may be in all of them."""

    def data(present: int) -> list[tuple[Any, Any]]:
        keys, values = _with_row(present)
        return [(np.stack([keys, keys]), np.stack([values, -values])), (keys, values)]

    return _of_builds(
        lambda layers, entropy: list(
            discreet.build_many(layers, epsilon=epsilon, delta=delta, entropy=entropy, **_MONOMIALS)
        ),
        data,
    )


def _landmarks(epsilon: float, delta: float) -> tuple[Experiment, Promise]:
    angles = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    public = np.stack([np.sin(angles), np.cos(angles)], axis=1)  # the row's own key is the first
    kernel = Landmarks(public, rank=8, scale=1.0, key_norm=1.0, query_norm=1.0)
    return _of_builds(
        lambda rows, entropy: discreet.build(
            *rows, epsilon=epsilon, delta=delta, kernel=kernel, entropy=entropy
        )
    )


def _least_squares(epsilon: float, delta: float) -> tuple[Experiment, Promise]:
    return _of_builds(
        lambda rows, entropy: discreet.least_squares(
            *rows, features="linear", epsilon=epsilon, delta=delta, entropy=entropy
        )
    )


def _program(
    mechanism: Mechanism[Any, Any, Any],
    options: ReleaseOptions,
    rows: Callable[[int], tuple[Any, Any]],
) -> tuple[Experiment, Promise]:
    """Return the experiment of a mechanism that goes through the door more than once."""

    def source(present: int) -> Callable[[], RowSource]:
        return lambda: mechanism.source(*rows(present), None, options)

    program = Program(mechanism, (source(0), source(1)), options)
    return program, program.promise


def _softmax(epsilon: float, delta: float) -> tuple[Experiment, Promise]:
    """One row says yes among many that say no: in every round it is far from what is expected."""
    options = SOFTMAX.options(
        epsilon=epsilon, delta=delta, classes=("no", "yes"), features="unit_linear"
    )

    def rows(present: int) -> tuple[Any, Any]:
        labels = np.array(["no"] * _CROWD + ["yes"] * present)
        return np.repeat(_KEY, len(labels), axis=0), labels

    return _program(SOFTMAX, options, rows)


def _glm(epsilon: float, delta: float) -> tuple[Experiment, Promise]:
    return _program(
        GLM, GLM.options(epsilon=epsilon, delta=delta, features="unit_linear"), _with_row
    )


def _distances(epsilon: float, delta: float) -> tuple[Experiment, Promise]:
    return _of_builds(
        lambda rows, entropy: discreet.distances(
            rows[0],
            rows[1][:, 0],
            p=1.0,
            bounds=(-1.0, 1.0),
            features=64,
            epsilon=epsilon,
            delta=delta,
            entropy=entropy,
        )
    )


def _table(epsilon: float, delta: float) -> tuple[Experiment, Promise]:
    options = TABLE.options(epsilon=epsilon, delta=delta, points=np.eye(2), classes=("no", "yes"))

    def make(rows: Any, entropy: Entropy | None) -> Any:  # noqa: ANN401
        labels = np.where(rows[1][:, 0] > 0, "yes", "no")
        source = TABLE.source(rows[0], labels, None, options)
        return build_by(TABLE, source, options, entropy=entropy)[0]

    return _of_builds(make)


def _discovery(epsilon: float, delta: float) -> tuple[Experiment, Promise]:
    """A name that many rows have, and one row more or less has; rare ones cannot be tried often."""

    def make(names: Any, entropy: Entropy | None) -> Seen:  # noqa: ANN401
        found = discreet.discover(names, epsilon=epsilon, delta=delta, entropy=entropy)
        totals = np.array([round(each.count * LENGTH) for each in found], dtype=np.int64)
        part = Part.of(totals, found.selection.law)
        return Seen((part,), found.guarantee, found.receipt)

    selection = discreet.discover(["flu"], epsilon=epsilon, delta=delta).selection
    # So many have it that it is always found.
    many = math.ceil(selection.units_needed + 50 * selection.law.sigma / LENGTH)
    return _of_builds(make, lambda present: ["flu"] * (many + present))


def _shards(epsilon: float, delta: float) -> tuple[Experiment, Promise]:
    """The row lies in one of two shards, whose sums travel sealed."""

    def make(rows: Any, entropy: Entropy | None) -> Any:  # noqa: ANN401
        job = Job(key_dim=2, value_dim=1, epsilon=epsilon, delta=delta, **_MONOMIALS)
        shards = {"one": slice(0, 1), "two": slice(1, None)}
        sealed = [
            job.partial(tuple(each[some] for each in rows), shard=name)
            for name, some in shards.items()
        ]
        return job.release(sealed, expected=shards, entropy=entropy)

    return _of_builds(make)


def _stream(epsilon: float, delta: float) -> tuple[Experiment, Promise]:
    """The row comes in the first of eight steps, and all eight states are seen."""
    settings = resolve(
        ATTENTION,
        [Shape(heads=(), key_dim=2, value_dim=1)],
        ATTENTION.options(epsilon=epsilon, delta=delta, **_MONOMIALS),
        unit=Unit.ROW,
        steps=_STEPS,
        tune=reading_of("all", None, None, steps=_STEPS),
        participation=Participation(),
        enforced=False,
    )

    def make(steps: Any, entropy: Entropy | None) -> Seen:  # noqa: ANN401
        return _states(settings, steps, SystemEntropy() if entropy is None else entropy)

    def data(present: int) -> list[tuple[Any, Any]]:
        return [_with_row(present), *[_with_row(0)] * (_STEPS - 1)]

    return _of_builds(make, data)


def _states(settings: Settings[Any], steps: Any, entropy: Entropy) -> Seen:  # noqa: ANN401
    """Return all states of a stream, as fresh draws and what rows add to them.

    In memory: what `discreet.Stream` keeps in its folder is the same.
    """
    receipt = settings.receipt(entropy)
    state, totals = StreamState.begin(settings), []
    for keys, values in steps:
        accumulator = Accumulator(settings)
        accumulator.add([Table(keys, values)])
        state = state.next(accumulator.sums, settings, entropy, rows=len(keys))
        totals.append(state.totals[0])
    [layout] = settings.layouts
    draws = fresh_draws(totals, continual_of(settings).strategy)
    law = RoundedGaussian(sigma=settings.sigma(layout))
    return Seen((Part(draws.ravel(), law),), settings.guarantee(receipt), receipt)


def _tree(epsilon: float, delta: float) -> tuple[Experiment, Promise]:
    return _of_builds(
        lambda leaves, entropy: paper.DPTree(
            leaves, sensitivity=1.0, upper=1.0, epsilon=epsilon, delta=delta, entropy=entropy
        ),
        lambda present: np.array([1.0 * present, 0.0, 0.0, 0.0]),
    )


def _distance_trees(epsilon: float, delta: float) -> tuple[Experiment, Promise]:
    return _of_builds(
        lambda rows, entropy: paper.DPTreeDistance(
            *rows, p=1, upper=1.0, weight_bound=1.0, epsilon=epsilon, delta=delta, entropy=entropy
        ),
        lambda present: (np.array([0.0, 10.0 * present]), np.array([1.0, 10.0])),
    )


def _attention_trees(epsilon: float, delta: float) -> tuple[Experiment, Promise]:
    return _of_builds(
        lambda rows, entropy: paper.DPCrossAttention(
            *rows,
            upper=1.0,
            value_bound=1.0,
            degree=1,
            p_f=0.1,
            epsilon=epsilon,
            delta=delta / 2,
            delta_prime=delta / 2,
            accounting="tight",
            entropy=entropy,
        ),
        lambda present: (
            np.array([[0.0], [10.0 * present]]),
            np.array([[1.0], [20.0 * present - 10.0]]),
        ),
    )


def _encoded(text: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """A vector of a text about cards, or about rates."""
    return np.array([1.0, 0.1]) if "card" in text else np.array([0.1, 1.0])


def _corpus(epsilon: float, delta: float) -> tuple[Experiment, Promise]:
    def make(texts: Any, entropy: Entropy | None) -> Any:  # noqa: ANN401
        return discreet.Corpus.build(
            texts,
            ["no"] * len(texts),
            encoder=_encoded,
            topics=("card", "rate"),
            classes=("no", "yes"),
            words=discreet.text.Vocabulary(words=("card", "rate"), most=1),
            rows_hint=100,
            epsilon=epsilon,
            delta=delta,
            entropy=entropy,
        )

    return _of_builds(make, lambda present: ["rate", "card", "card"][: 2 + present])


def one_run_of_memory(
    *, epsilon: float, delta: float, canaries: int, confidence: float, progress: bool = False
) -> OneRun:
    """Return what one release of a memory tells, with canaries whose values are all different.

    Args:
        epsilon: that is asked for.
        delta: that is asked for.
        canaries: how many.
        confidence: how often the bound is right, at least.
        progress: whether to show a bar.
    """

    def make(rows: Any, *, entropy: Entropy | None) -> Any:  # noqa: ANN401
        return discreet.build(*rows, epsilon=epsilon, delta=delta, entropy=entropy, **_MONOMIALS)

    return one_run(
        make,
        (np.zeros((0, 2)), np.zeros((0, canaries))),
        (np.repeat(_KEY, canaries, axis=0), np.eye(canaries)),
        confidence=confidence,
        name="memory",
        progress=progress,
    )


CASES: tuple[Case, ...] = (
    Case("memory", "a row of a memory, random Fourier features", _memory),
    Case("replace", "a row of a memory is replaced, monomials", _replace),
    Case("records", "a record of four rows, with the influence of one", _records),
    Case("heads", "a row of two layers with three heads, jointly", _heads),
    Case("landmarks", "a row of a memory near public rows", _landmarks),
    Case("least_squares", "a row of a regression in one pass", _least_squares),
    Case("softmax", "a row of a classifier in rounds, at the door", _softmax),
    Case("glm", "a row of a regression in rounds, at the door", _glm),
    Case("distances", "a point among sums of distances", _distances),
    Case("table", "a row of a table of topics and labels", _table),
    Case("discovery", "a row among those that have a name", _discovery),
    Case("corpus", "a text of a corpus, topics and words", _corpus),
    Case("stream", "a row of the first of eight steps, all states seen", _stream),
    Case("shards", "a row of one of two sealed shards", _shards),
    Case("tree", "a leaf of the paper's tree", _tree),
    Case("distance_trees", "a point of the paper's distances", _distance_trees),
    Case("attention_trees", "a row of the paper's attention", _attention_trees),
)
