"""What an attacker really gets from a file, against what is promised. NOT PRIVATE.

Files are made of the caller's rows, with one row more or less, and attacked by somebody who knows
everything else. Statistics are the best that there are: the noise is the same in all directions, so
that what matters is how far a file moves towards what the row would add. `docs/attack.md`.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from discreet import _validate
from discreet._typing import Array, Floats, Integers
from discreet.accounting.promise import Promise
from discreet.audit.attacks.asking import Hidden, ask_exactly, ask_memory, levels
from discreet.audit.attacks.found import (
    Asked,
    Attacked,
    Found,
    Membership,
    Named,
    Secret,
)
from discreet.audit.attacks.planting import Coins, Scene, classes_of, code_words
from discreet.audit.attacks.rivals import Exact, nearest_of
from discreet.audit.bounds import Test
from discreet.audit.levels import normal_levels, oddities
from discreet.errors import InvalidInput, MostlyNoiseWarning, NotPrivateWarning
from discreet.noise import Entropy
from discreet.readers.attention.options import Options
from discreet.sums.source import Advance, progress_bar

__all__ = ["Asked", "Attacked", "Found", "Membership", "Named", "Secret", "attack"]

# Shares of false alarms at which members are counted.
LEVELS = (0.001, 0.01, 0.1)

# A threshold is chosen by at least so many figures above it; the curve begins at this share.
_ENOUGH, _RAREST = 10, 5e-4

# A secret is one of so many code words.
CODE_WORDS = 1_000

# Values that are so many, or fewer, are the classes of an attribute.
_MOST_CLASSES = 100

# If nobody says how many files: so many, or fewer if they are large.
_TRIALS, _FEWEST_TRIALS, _NUMBERS = 20_000, 1_000, 10**9

# One memory is asked for so many files that are attacked, and so often exact attention; so many
# features of questions are made for the last count of questions, and for each count before.
_FILES_FOR_ONE, _FEWEST_ASKED, _EXACTLY = 50, 10, 50
_LAST_FEATURES, _FEATURES = 10**10, 25 * 10**8

# Noise that is what it should be is taken for other noise by this chance.
_BY_CHANCE = 1e-6

# What a feature of a question takes beside a number of a file.
_COST = 1 / 15


@dataclass(frozen=True, eq=False, repr=False)
class _Plan:
    """Which rows are planted, with which values. PRIVATE.

    Attributes:
        scene: rows and targets.
        targets: of each trial, shape (trials,).
        classes: values that a known row may have, shape (k, d_v).
        words: code words that a secret may be, shape (n, d_v).
        hidden: which class or code word each is; class and code word by turns, shape (trials,).
    """

    scene: Scene
    targets: Integers
    classes: Floats
    words: Floats
    hidden: Integers

    @classmethod
    def of(cls, scene: Scene, classes: Floats, trials: int) -> "_Plan":
        coins = Coins(0)
        words = code_words(CODE_WORDS, scene.values.shape[1], scene.layout.value_norm)
        hidden = np.empty(trials, dtype=np.int64)
        for turn, values in enumerate((classes, words)):
            hidden[turn::2] = coins.whole(len(values), len(hidden[turn::2]))
        targets = coins.whole(len(scene.targets), trials)
        return cls(scene, targets, classes, words, hidden)

    @property
    def instead(self) -> Floats:
        """Values that stand in their place under "replace": as unlike as bounds allow."""
        values, most = self.values, self.scene.layout.value_norm
        lengths = np.linalg.norm(values, axis=1, keepdims=True)
        ends = np.zeros_like(values)
        ends[:, 0] = most  # for those that are zero
        return np.where(lengths > 0, -values * (most / np.maximum(lengths, 1e-300)), ends)

    @cached_property
    def values(self) -> Floats:
        """The value of each, shape (trials, d_v)."""
        found = np.empty((len(self.hidden), self.words.shape[1]))
        for turn, values in enumerate((self.classes, self.words)):
            found[turn::2] = values[self.hidden[turn::2]]
        return found


def attack(
    keys: Array,
    values: Array,
    *,
    epsilon: float,
    delta: float,
    targets: Array = None,
    classes: Array = None,
    trials: int | None = None,
    questions: int = 100_000,
    entropy: Entropy | None = None,
    progress: bool = False,
    **options: Any,  # noqa: ANN401 (those of `build`)
) -> Attacked:
    """Attack files made of the caller's rows, and return what attackers get. NOT PRIVATE.

    Each file is one that `build` could have made of these rows with these options, with one row
    more or less. The attacker has the file, every setting, and all rows but one; she wants to know
    whether that row is in it, its value where it is one of few or of many, and, with answers only,
    the same again.

    The result depends on the rows, and is for their owner. Whether the promise is kept does not: it
    holds for all rows, and `discreet.audit` looks at the worst ones.

    Example::

        found = discreet.audit.attack(keys, values, epsilon=1.0, delta=1e-6, rows_hint=10_000)
        print(found, found.holds)

    Args:
        keys: shape (n, d).
        values: shape (n, d_v).
        epsilon: of each file.
        delta: of each file.
        targets: keys of other rows that are put in, shape (m, d); None to take rows of the caller
            out, 200 of them at the most.
        classes: values that a row may have as far as an attacker knows, shape (k, d_v), two at
            least. None for those that there are if these are at most 100, and else for two opposite
            ones.
        trials: so many files have a row in them, and as many have not; 100 at least. None for
            20,000, or fewer where files are large.
        questions: how many may be asked of a memory; 10 at least.
        entropy: where the noise comes from; by default the operating system.
        progress: whether to show a progress bar.
        **options: as for `build`, without records (`groups`) and ledger.

    Returns:
        What was found, beside what is promised.

    Raises:
        InvalidInput: an argument is not what it should be.
    """
    hint = options.pop("rows_hint", None)
    if hint is None and str(options.get("neighbours")) == "replace":
        hint = max(len(keys), 1)  # public then, and what `build` takes
    made = _options(epsilon=epsilon, delta=delta, rows_hint=hint, **options)
    scene = Scene.of(keys, values, targets, made, entropy)
    size = scene.layout.columns * scene.layout.kernel.features
    if trials is None:
        trials = int(np.clip(_NUMBERS // (2 * size), _FEWEST_TRIALS, _TRIALS))
    trials = _validate.whole("trials", trials, at_least=100, at_most=10**7)
    questions = _validate.whole("questions", questions, at_least=10, at_most=10**8)
    plan = _Plan.of(scene, _classes(scene, classes), trials)
    limits = _limits(trials, questions, scene.layout.kernel.features)
    costs = [1 + int(each * scene.layout.kernel.features * _COST / size) for each in limits]
    with (
        warnings.catch_warnings(),
        threadpool_limits(1, user_api="blas"),  # files are attacked side by side
        progress_bar("attacking files", rows=2 * trials + sum(costs), show=progress) as advance,
    ):
        # Files are attacked, and nobody is told to believe their answers.
        warnings.simplefilter("ignore", MostlyNoiseWarning)
        warnings.simplefilter("ignore", NotPrivateWarning)
        return _attacked(plan, limits, advance, lambda place: advance(costs[place]))


def _options(**given: Any) -> Options:  # noqa: ANN401 (those of `build`)
    try:
        return Options(**given)
    except TypeError:
        known = Options.__dataclass_fields__
        unknown = [name for name in given if name not in known]
        if not unknown:
            raise
        raise InvalidInput(
            f"Expected options of build that are about rows and noise, got {', '.join(unknown)}."
        ) from None


def _classes(scene: Scene, classes: Array) -> Floats:
    if classes is None:
        return classes_of(scene.values, scene.layout.value_norm, _MOST_CLASSES)
    given, width = np.asarray(classes, dtype=np.float64), scene.values.shape[1]
    if given.ndim != 2 or given.shape[1] != width or len(given) < 2:
        _validate.reject(
            "classes", given.shape, f"values of rows, shape (k, {width}), two at least"
        )
    if len(np.unique(given, axis=0)) < len(given):
        raise InvalidInput("Expected classes that differ from each other.")
    if not np.all(np.linalg.norm(given, axis=1) <= scene.layout.value_norm * (1 + 1e-9)):
        raise InvalidInput("Expected classes to be no longer than value_norm.")
    return given


def _limits(trials: int, questions: int, features: int) -> list[int]:
    """Return how many questions each memory is asked: few of them all, and more of them fewer."""
    limits: list[int] = []
    for level in reversed(levels(questions)):
        made = _LAST_FEATURES if level == questions else _FEATURES
        most = min(trials // _FILES_FOR_ONE, made // (level * features))
        limits += [level] * (max(most, _FEWEST_ASKED) - len(limits))
    return limits


def _attacked(
    plan: _Plan, limits: list[int], advance: Advance, asked: Callable[[int], object]
) -> Attacked:
    scene, exact = plan.scene, Exact.of(plan.scene)
    present = scene.seen(plan.targets, list(plan.values), advance)
    stand_in = plan.instead if scene.replaced else [None] * len(plan.targets)
    absent = scene.seen(plan.targets, list(stand_in), advance)
    claimed = _promise(scene)
    return Attacked(
        claimed=claimed,
        membership=_membership(plan, exact, present, absent, claimed),
        attribute=_attribute(plan, exact, present, claimed),
        secret=_secret(plan, exact, present, claimed),
        questions=_questions(plan, limits, claimed, asked),
        reasons=_of_noise(plan, absent),
    )


def _of_noise(plan: _Plan, absent: Floats) -> tuple[str, ...]:
    """Return in words where the noise of files is not what they say; nothing as a rule.

    Found shares cannot say it: noise that is a little too small hides among their intervals.
    """
    noise = absent.copy()
    if plan.scene.replaced:
        for target in np.unique(plan.targets):
            chosen = np.flatnonzero(plan.targets == target)
            noise[chosen] -= plan.scene.means(int(target), plan.instead[chosen])
    odd = oddities(normal_levels(noise), doubt=_BY_CHANCE)
    if len(np.unique(np.column_stack([plan.targets, noise]), axis=0)) < len(noise):
        odd = ("two files have the same noise", *odd)
    return odd


def _promise(scene: Scene) -> Promise:
    """Return what every one of the files promises."""
    released = scene.file(0, None, scene.total)
    return Promise.of(released.guarantee, released.receipt)


# --- was it in the data? --------------------------------------------------------------------------


def _membership(
    plan: _Plan, exact: Exact, present: Floats, absent: Floats, claimed: Promise
) -> Membership:
    (hits, one), (alarms, other) = (_turned(plan, each) for each in (present, absent))
    aside = np.concatenate([one.ravel(), other.ravel()])
    with_row, without = plan.values, plan.instead if plan.scene.replaced else None
    sides = (with_row, without)
    rivals = [
        [look(exact, plan.targets, here, sides) for here in sides]
        for look in (_by_attention, _by_retrieval)
    ]
    found = []
    for level in (each for each in LEVELS if each * len(aside) >= _ENOUGH):
        threshold = np.quantile(aside, 1 - level)
        test = Test(
            int(np.sum(alarms > threshold)), len(alarms), int(np.sum(hits > threshold)), len(hits)
        )
        shares = [_above_others(here, not_here, level) for here, not_here in rivals]
        found.append(_found(level, test, claimed, shares))
    return Membership(len(hits), tuple(found), _curve(hits, aside))


def _turned(plan: _Plan, left: Floats) -> tuple[Floats, Floats]:
    """Return how far each file moves towards the row, and how far in other directions.

    The first, from what stands in the row's place if anything does, is the best statistic (Neyman
    and Pearson): the noise is normal, and the same in all directions. The others, at right angles,
    are noise that has nothing to do with it: thresholds are chosen by them, so that neither hits
    nor false alarms are counted on what chose the threshold.
    """
    turned, values = np.empty_like(left), plan.values
    for target in np.unique(plan.targets):
        chosen = np.flatnonzero(plan.targets == target)
        towards, moved = plan.scene.means(int(target), values[chosen]), left[chosen]
        if plan.scene.replaced:
            instead = plan.scene.means(int(target), plan.instead[chosen])
            towards, moved = towards - instead, moved - instead
        # A reflection (Householder's) that takes the first axis to the row's direction.
        lengths = np.linalg.norm(towards, axis=1, keepdims=True)
        mirror = towards / np.maximum(lengths, 1e-300)
        mirror[:, 0] -= 1.0
        squared = np.maximum(np.sum(mirror**2, axis=1, keepdims=True), 1e-300)
        inner = np.sum(mirror * moved, axis=1, keepdims=True)
        turned[chosen] = moved - 2 * mirror * inner / squared
    return turned[:, 0], turned[:, 1:]


def _above_others(hits: Floats, alarms: Floats, level: float) -> float:
    """Return the share of hits that are above all alarms but for this share."""
    kept = len(alarms) - 1 - math.floor(level * len(alarms))
    return float(np.mean(hits > np.partition(alarms, kept)[kept]))


def _found(level: float, test: Test, claimed: Promise, rivals: list[float]) -> Found:
    return Found(
        false_alarms=level,
        test=test,
        at_best=claimed.found(level),
        promised=Promise(claimed.guarantee, None).found(level),
        exact_attention=rivals[0],
        exact_retrieval=rivals[1],
    )


def _curve(hits: Floats, aside: Floats) -> tuple[tuple[float, float], ...]:
    """Return shares of alarms and of hits at some thresholds, evenly spaced by ratios."""
    levels = np.geomspace(max(_ENOUGH / len(aside), _RAREST), 1.0, 60)
    thresholds = np.quantile(aside, 1 - levels)
    shares = 1 - np.searchsorted(np.sort(hits), thresholds, side="right") / len(hits)
    return tuple(zip(levels.tolist(), shares.tolist(), strict=True))


_Sides = tuple[Floats, Floats | None]


def _by_attention(exact: Exact, targets: Integers, here: Floats | None, sides: _Sides) -> Floats:
    """Return how much closer an exact answer is to what it is with the row than without."""
    answers = exact.answers(targets, here)
    near, far = (np.linalg.norm(answers - exact.answers(targets, each), axis=1) for each in sides)
    return np.asarray(far - near)


def _by_retrieval(exact: Exact, targets: Integers, here: Floats | None, sides: _Sides) -> Floats:
    """Return how much closer what is retrieved is to the row than to what stands in its place."""
    values, unlike = exact.retrieved(targets, here)
    near, far = (
        unlike if each is None else np.linalg.norm(values - each, axis=1) for each in sides
    )
    return np.asarray(-unlike - near if sides[1] is None else far - near)


# --- what is its value? ---------------------------------------------------------------------------


def _attribute(plan: _Plan, exact: Exact, present: Floats, claimed: Promise) -> Named:
    named, hidden, targets = _named(plan, present, 0, plan.classes), plan.hidden[::2], plan.targets
    values = plan.classes[hidden]
    return Named(
        **_figures(named == hidden, len(plan.classes), claimed),
        **_rivals(exact, targets[::2], values, plan.classes, hidden),
    )


def _secret(plan: _Plan, exact: Exact, present: Floats, claimed: Promise) -> Secret:
    hidden, targets, words = plan.hidden[1::2], plan.targets[1::2], plan.words
    named = np.empty(len(hidden), dtype=np.int64)
    estimates = np.empty((len(hidden), words.shape[1]))
    for target in np.unique(targets):
        chosen = np.flatnonzero(targets == target)
        likely = _likelihoods(plan.scene, int(target), present[1::2][chosen], words)
        named[chosen] = np.argmax(likely, axis=1)
        weights = np.exp(likely - likely.max(axis=1, keepdims=True))
        # The mean of what the value may be, given the file: no estimate is closer on average.
        estimates[chosen] = weights @ words / weights.sum(axis=1, keepdims=True)
    truth = words[hidden]
    answers = exact.left(targets, exact.answers(targets, truth))
    return Secret(
        **_figures(named == hidden, len(words), claimed),
        **_rivals(exact, targets, truth, words, hidden),
        error=_apart(estimates, truth),
        error_without_file=_apart(words.mean(axis=0), truth),
        exact_error=_apart(answers, truth),
    )


def _named(plan: _Plan, present: Floats, turn: int, values: Floats) -> Integers:
    targets = plan.targets[turn::2]
    named = np.empty(len(targets), dtype=np.int64)
    for target in np.unique(targets):
        chosen = np.flatnonzero(targets == target)
        likely = _likelihoods(plan.scene, int(target), present[turn::2][chosen], values)
        named[chosen] = np.argmax(likely, axis=1)
    return named


def _likelihoods(scene: Scene, target: int, left: Floats, values: Floats) -> Floats:
    """Return how likely what is left is for each value, up to a factor, as logarithms."""
    means = scene.means(target, values)
    return np.asarray(left @ means.T - np.sum(means**2, axis=1) / 2)


def _figures(right: Array, candidates: int, claimed: Promise) -> dict[str, Any]:
    """Return the figures of a secret, one of so many that are equally likely.

    Without the row no file depends on its value, so whoever names one is right with probability
    1/k. With it, each name is at most as likely as the promise lets a member be found where the
    other share is accused; and what it allows is concave, so that the mean is allowed no more than
    at 1/k. If rows are replaced, the same holds beside any one fixed value.
    """
    chance = 1 / candidates
    return {
        "candidates": candidates,
        "right": int(np.sum(right)),
        "trials": len(right),
        "at_best": claimed.found(chance),
        "promised": Promise(claimed.guarantee, None).found(chance),
    }


def _rivals(
    exact: Exact, targets: Integers, values: Floats, candidates: Floats, hidden: Integers
) -> dict[str, Any]:
    left = exact.left(targets, exact.answers(targets, values))
    retrieved, _ = exact.retrieved(targets, values)
    return {
        "exact_attention": float(np.mean(nearest_of(left, candidates) == hidden)),
        "exact_retrieval": float(np.mean(nearest_of(retrieved, candidates) == hidden)),
    }


def _apart(estimates: Floats, truth: Floats) -> float:
    return math.sqrt(float(np.mean(np.sum((estimates - truth) ** 2, axis=1))))


# --- by questions alone ---------------------------------------------------------------------------


def _questions(
    plan: _Plan, limits: list[int], claimed: Promise, asked: Callable[[int], object]
) -> tuple[Asked, ...]:
    scene, coins = plan.scene, Coins(1)
    hidden = coins.whole(len(plan.classes), len(limits))
    targets = coins.whole(len(scene.targets), len(limits))
    counts = levels(max(limits))

    def one(place: int) -> tuple[list[int], list[int]]:
        which = Hidden(int(targets[place]), plan.classes[hidden[place]], plan.classes, place)
        exactly = ask_exactly(scene, which, counts[0]) if place < _EXACTLY else []
        return ask_memory(scene, which, limits[place]), exactly

    private, exact = [], []
    for place, (named, exactly) in enumerate(scene.each(one, range(len(limits)))):
        private.append(np.array(named) == hidden[place])
        exact += [each == hidden[place] for each in exactly]
        asked(place)
    found = []
    for at, count in enumerate(counts):
        right = np.array([each[at] for each in private if len(each) > at])
        figures = _figures(right, len(plan.classes), claimed)
        share = float(np.mean(exact))
        found.append(Asked(count, Named(**figures, exact_attention=share, exact_retrieval=None)))
    return tuple(found)
