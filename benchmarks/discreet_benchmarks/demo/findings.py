"""What the demo finds out about memories of digits. The digits are public; else, NOT PRIVATE."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from discreet._typing import Floats
from discreet.errors import MostlyNoiseWarning
from discreet.privacy import Card
from discreet.readers.attention.comparison import Comparison, compare
from discreet.readers.attention.memory import Memory
from discreet_benchmarks.demo import attack, digits, texts
from discreet_benchmarks.demo.attack import Attacked
from discreet_benchmarks.demo.digits import Ceilings, Mean, Split
from discreet_benchmarks.demo.texts import Texts

EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
EPSILON = 1.0  # of the memory whose card and answers are shown
SPLITS = 5  # enough to see, and quick

# Errors vary little from split to split: so many are enough for them.
_SPLITS_FOR_ERRORS = 3

# Images whose answers are shown in a row, and the one of them that is shown in full.
_SHOWN = 10


@dataclass(frozen=True, eq=False)
class Asked:
    """One test image, and the ten votes for its class.

    Attributes:
        image: 8 x 8 pixels between 0 and 1.
        truth: the class that a person gave it.
        exact: votes of exact attention, (10,). NOT PRIVATE.
        private: votes of the memory, likewise.
        stderr: the standard error that the memory tells of each.
    """

    image: Floats
    truth: int
    exact: Floats
    private: Floats
    stderr: Floats

    @property
    def answer(self) -> int:
        """The class with most of the memory's votes."""
        return int(np.argmax(self.private))


@dataclass(frozen=True)
class Compared:
    """Accuracies at one ε; attention at the temperature that `build` recommends.

    Attributes:
        exact: attention over the rows themselves. NOT PRIVATE.
        quiet: the memory without its noise: what temperature and kernel leave. NOT PRIVATE.
        private: the memory.
        rounds: softmax regression in noisy rounds.
        least_squares: fitted to noisy sums.
        dpsgd: of somebody else, if it was measured.
    """

    epsilon: float
    scale: float
    exact: Mean
    quiet: Mean
    private: Mean
    rounds: Mean
    least_squares: Mean
    dpsgd: Mean | None


@dataclass(frozen=True)
class Errors:
    """Errors of answers at one temperature, measured and predicted.

    Attributes:
        measured: root mean square over the numbers of all answers.
        centred: what `plan` predicts for rows that vary around zero.
        in_common: what it predicts for rows that have much in common, as pixels have.
    """

    measured: tuple[Mean, ...]
    centred: tuple[float, ...]
    in_common: tuple[float, ...]


@dataclass(frozen=True)
class Findings:
    """All that the demo shows, in the order in which it is told; texts if they can be read."""

    rows: int
    splits: int
    scale: float
    asked: tuple[Asked, ...]
    answers: Comparison
    attacks: tuple[Attacked, ...]
    accuracies: tuple[Compared, ...]
    ceilings: Ceilings
    by_epsilon: Errors
    by_rows: Errors
    card: Card
    texts: Texts | None

    @property
    def chosen(self) -> Compared:
        """Accuracies at the ε of the memory that is shown."""
        return next(each for each in self.accuracies if each.epsilon == EPSILON)

    @property
    def attack_on_exact(self) -> Attacked:
        """What exact attention gives away."""
        return self.attacks[0]

    @property
    def attack_on_chosen(self) -> Attacked:
        """What memories give away at the ε of the one that is shown."""
        return next(each for each in self.attacks if each.epsilon == EPSILON)

    @property
    def losses(self) -> dict[str, list[float]]:
        """What the memory's accuracy is lost to, at each ε, from exact attention's best on."""
        best = self.ceilings.attention.mean
        return {
            "temperature: it is softer than the best": [
                best - each.exact.mean for each in self.accuracies
            ],
            "kernel: random features": [
                each.exact.mean - each.quiet.mean for each in self.accuracies
            ],
            "noise": [each.quiet.mean - each.private.mean for each in self.accuracies],
        }

    def to_dict(self) -> dict[str, object]:
        """Return everything but single answers, ready for JSON."""
        return {
            "rows": self.rows,
            "splits": self.splits,
            "delta": digits.DELTA,
            "within_1.96_standard_errors": self.answers.within,
            "attacks": [asdict(each) | {"share": each.share} for each in self.attacks],
            "accuracies": [asdict(each) for each in self.accuracies],
            "ceilings": asdict(self.ceilings),
            "error_by_epsilon": asdict(self.by_epsilon),
            "error_by_rows": asdict(self.by_rows),
            "card": self.card.to_dict(),
            "texts": None if self.texts is None else self.texts.to_dict(),
        }


def find(
    splits: int = SPLITS,
    *,
    epsilons: Sequence[float] = EPSILONS,
    trials: int | None = None,
    advance: Callable[[int], None] = lambda _: None,
) -> Findings:
    """Build the memories and measure them.

    Args:
        splits: of the data, to average over.
        epsilons: to try; `EPSILON` must be among them.
        trials: attacks at each ε; by default 20 for each split.
        advance: told of every step that is done, for a progress bar; there are `steps(epsilons)`.
    """
    # Matrices are small here: BLAS threads would wait for each other longer than they work.
    with threadpool_limits(limits=1, user_api="blas"), warnings.catch_warnings():
        # Small ε are part of the story. What answers are like is measured, which goes before what
        # is predicted.
        warnings.simplefilter("ignore", MostlyNoiseWarning)
        return _find(
            digits.splits(splits), epsilons, 20 * splits if trials is None else trials, advance
        )


def _find(
    data: list[Split], epsilons: Sequence[float], trials: int, advance: Callable[[int], None]
) -> Findings:
    first = data[0]
    memory = first.memory(EPSILON)
    few, scale = data[:_SPLITS_FOR_ERRORS], memory.scale
    rows = len(first.keys)
    attacks, accuracies = [attack.on_exact_attention(first, scale, trials=trials)], []
    others = {each.at: each for each in digits.dpsgd_accuracy()}
    for epsilon in epsilons:
        attacks.append(attack.on_memories(first, epsilon, trials=trials))
        accuracies.append(_compared(data, epsilon, others.get(epsilon)))
        advance(1)
    ceilings = digits.ceilings(data)
    advance(1)
    by_epsilon = _errors(few, [(epsilon, rows) for epsilon in epsilons], scale, by_rows=False)
    by_rows = _errors(few, [(EPSILON, rows // k) for k in (8, 4, 2, 1)], scale, by_rows=True)
    advance(1)
    return Findings(
        rows=rows,
        splits=len(data),
        scale=scale,
        asked=_asked(first, memory),
        answers=compare(memory, first.keys, first.values, first.queries),
        attacks=tuple(attacks),
        accuracies=tuple(accuracies),
        ceilings=ceilings,
        by_epsilon=by_epsilon,
        by_rows=by_rows,
        card=memory.card,
        texts=texts.find(EPSILON) if texts.installed() else None,
    )


def steps(epsilons: Sequence[float] = EPSILONS) -> int:
    """Return how many steps `find` tells of."""
    return len(epsilons) + 2


def splits_for_learning(splits: int) -> int:
    """Return on how many of the splits classifiers are fitted, which takes longest."""
    return min(max(3, splits // 2), splits)


def _asked(data: Split, memory: Memory) -> tuple[Asked, ...]:
    """Return the first test images of a split, with what exact attention and the memory answer."""
    private, stderr = memory.attend(data.queries[:_SHOWN], stderr=True)
    exact = data.exact(memory.scale)[:_SHOWN]
    return tuple(
        Asked(pixels.reshape(8, 8), int(truth), *votes)
        for pixels, truth, *votes in zip(
            data.pixels[:_SHOWN], data.classes[:_SHOWN], exact, private, stderr, strict=True
        )
    )


def _compared(data: list[Split], epsilon: float, dpsgd: Mean | None) -> Compared:
    scale = digits.predicted(rows=digits.ROWS_HINT, epsilon=epsilon, scale=None).scale
    few = data[: splits_for_learning(len(data))]
    return Compared(
        epsilon=epsilon,
        scale=scale,
        exact=digits.exact_accuracy(data, epsilon, scale),
        quiet=digits.quiet_accuracy(data, epsilon),
        private=digits.private_accuracy(data, epsilon),
        rounds=digits.learnt_accuracy(few, epsilon, reader="rounds"),
        least_squares=digits.learnt_accuracy(few, epsilon, reader="least_squares"),
        dpsgd=dpsgd,
    )


def _errors(
    data: list[Split], settings: list[tuple[float, int]], scale: float, *, by_rows: bool
) -> Errors:
    measured, centred, in_common = [], [], []
    for epsilon, rows in settings:
        parts = [each.first(rows) for each in data]
        at = float(rows) if by_rows else epsilon
        measured.append(digits.error(parts, at=at, epsilon=epsilon, scale=scale))
        plan = digits.predicted(rows=rows, epsilon=epsilon, scale=scale)
        centred.append(plan.stderr)
        in_common.append(plan.prediction.if_in_common().stderr)
    return Errors(tuple(measured), tuple(centred), tuple(in_common))
