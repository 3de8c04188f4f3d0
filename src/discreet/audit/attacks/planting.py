"""Files with one more row in them, and what an attacker who knows all other rows has left of them.

The attacker has the file: noisy sums S. She knows every setting and all rows but one, so she adds
the others up herself and takes them off. What is left is the row's contribution w⊗a and noise, the
same in all directions; with the key known, so is a, and L·a/(σ·‖a‖) holds all that the file says of
the row: normal numbers of variance one around w·‖a‖/σ.

Files are made as `build` makes them: the same settings, exact sums, and the one noisy door. The
sums over everybody else are the same in all of them, and are added up once.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from discreet import _validate
from discreet._typing import Array, Floats, Integers
from discreet.errors import InvalidInput
from discreet.noise import Entropy, RoundedGaussian
from discreet.privacy import Neighbours
from discreet.readers.attention.layout import Layout
from discreet.readers.attention.mechanism import ATTENTION
from discreet.readers.attention.memory import Memory
from discreet.readers.attention.options import Options
from discreet.sums.accumulate import thread_count
from discreet.sums.door import release
from discreet.sums.partial import Partial
from discreet.sums.release import Released
from discreet.sums.settings import Settings, Unit
from discreet.sums.source import Table
from discreet.testing import Seeded, Silent

# So many rows of the caller are taken out in turn, evenly spread.
_MOST_TARGETS = 200

# Releases are made so many at a time, in each thread.
_AT_ONCE = 50

Item = TypeVar("Item")


@dataclass(frozen=True, eq=False, repr=False)
class Scene:
    """Rows that an attacker knows, and keys of rows that may be among them or not. PRIVATE.

    Attributes:
        keys: of the rows, shape (n, d).
        values: likewise, shape (n, d_v).
        targets: keys of known rows, shape (m, d).
        own: which row each target is, if they are the caller's own: it is taken out first. None if
            they are others.
        settings: of every file.
        total: exact sums over the rows.
        entropy: where noise comes from; None for the operating system.
    """

    keys: Floats
    values: Floats
    targets: Floats
    own: Integers | None
    settings: Settings[Layout]
    total: Partial[Layout]
    entropy: Entropy | None

    @classmethod
    def of(
        cls, keys: Array, values: Array, targets: Array, options: Options, entropy: Entropy | None
    ) -> "Scene":
        """Return the scene of some rows.

        Args:
            keys: shape (n, d).
            values: shape (n, d_v).
            targets: keys of other rows, shape (m, d); None for the rows themselves.
            options: of every file.
            entropy: where noise comes from; None for the operating system.
        """
        table = Table(keys, values)
        if table.shape.heads:
            raise InvalidInput("Expected keys of shape (n, d): attacks are on one head.")
        if table.rows < 2:
            raise InvalidInput("Expected at least two rows.")
        settings = ATTENTION.resolve([table.shape], options, unit=Unit.ROW)
        [layout] = settings.layouts
        # Exact answers, too, are about rows within the bounds.
        known = _clipped("keys", table.keys, layout.kernel.key_norm)
        held = _clipped("values", table.values, layout.value_norm)
        total = Partial.of([Table(known, held)], settings)
        if targets is None:
            own = np.unique(np.linspace(0, len(known) - 1, _MOST_TARGETS).round().astype(np.int64))
            return cls(known, held, known[own], own, settings, total, entropy)
        planted = np.asarray(targets)
        if planted.ndim != 2 or planted.shape[1] != known.shape[1] or not len(planted):
            wanted = f"keys of rows, shape (m, {known.shape[1]})"
            _validate.reject("targets", planted.shape, wanted)
        planted = _clipped("targets", planted, layout.kernel.key_norm)
        return cls(known, held, planted, None, settings, total, entropy)

    @property
    def layout(self) -> Layout:
        """Kernel, bounds and lattice."""
        [layout] = self.settings.layouts
        return layout

    @property
    def replaced(self) -> bool:
        """Whether a row that is not there has another in its place."""
        return self.settings.privacy.neighbours is Neighbours.REPLACE

    def others(self, target: int) -> Partial[Layout]:
        """Return the exact sums over all rows but the target.

        Args:
            target: which.
        """
        if self.own is None:
            return self.total
        row = int(self.own[target])
        [whole] = self.total.sums
        [alone] = self._alone(self.keys[row], self.values[row]).sums
        return Partial(
            self.settings, (whole - alone,), self.total.rows - 1, frozenset(), frozenset(["others"])
        )

    def file(self, target: int, value: Floats | None, others: Partial[Layout]) -> Released[Layout]:
        """Return a file of all others and the target, with noise of its own.

        Args:
            target: which.
            value: that it has there, shape (d_v,); None to leave it out.
            others: the exact sums over all rows but the target.
        """
        rows = [others]
        if value is not None:
            rows.append(self._alone(self.targets[target], value))
        [released] = release(Partial.merged(self.settings, rows), entropy=self.entropy)
        return released

    def memory(self, target: int, value: Floats, others: Partial[Layout]) -> Memory:
        """Return what answers from such a file.

        Features are read as they are, without reference points: whoever has the memory may do so,
        and answers are then linear in the file, but for one division.

        Args:
            target: which.
            value: that it has there, shape (d_v,).
            others: the exact sums over all rows but the target.
        """
        return Memory(self.file(target, value, others)).plain

    def silent(self, others: Partial[Layout]) -> Memory:
        """Return a memory of all others without noise: what the attacker computes herself.

        Args:
            others: the exact sums over all rows but the target.
        """
        [released] = release(others, entropy=Silent())
        return Memory(released).plain

    def _alone(self, key: Floats, value: Floats) -> Partial[Layout]:
        table = Table(key[None], value[None])
        return Partial.of_chunks([((table,), None)], self.settings, threads=1)

    def left(self, target: int, released: Released[Layout], others: Partial[Layout]) -> Floats:
        """Return what the file says of the target, in units of the noise, shape (d_v + 1,).

        Args:
            target: which.
            released: the file.
            others: the exact sums over all rows but the target.
        """
        [known] = others.sums
        rest = (released.state - known)[0].astype(np.float64)
        return np.asarray(rest @ self._directions[target]) / self.settings.sigma(self.layout)

    @cached_property
    def _mapped(self) -> tuple[Floats, Floats]:
        """The features of the targets, and their weights."""
        mapped = self.layout.kernel.key_features(self.targets)
        ones = np.ones(len(self.targets))
        return mapped.features, ones if mapped.weights is None else mapped.weights

    @cached_property
    def _directions(self) -> Floats:
        """The features of the targets, of length one."""
        features, _ = self._mapped
        return np.asarray(features / np.linalg.norm(features, axis=1, keepdims=True))

    def means(self, target: int, values: Floats) -> Floats:
        """Return what `left` is on average, if the target has these values, shape (k, d_v + 1).

        Args:
            target: which.
            values: shape (k, d_v).
        """
        features, weights = self._mapped
        weighed = self.layout.weigh(values, np.full(len(values), weights[target]))
        return weighed * (
            float(np.linalg.norm(features[target])) / self.settings.sigma(self.layout)
        )

    def seen(
        self,
        targets: Integers,
        values: Sequence[Floats | None],
        advance: Callable[[int], object],
    ) -> Floats:
        """Return what is left of a file for each target, shape (trials, d_v + 1).

        Args:
            targets: which, shape (trials,).
            values: of each; None where it is left out.
            advance: told how many files more have been made.
        """
        found = np.empty((len(targets), self.layout.columns))
        order = np.argsort(targets, kind="stable")  # others are added up once for each target

        def some(start: int) -> int:
            places = order[start : start + _AT_ONCE]
            before, others = -1, self.total
            for at in places:
                target = int(targets[at])
                if target != before:
                    before, others = target, self.others(target)
                released = self.file(target, values[at], others)
                found[at] = self.left(target, released, others)
            return len(places)

        for made in self.each(some, range(0, len(targets), _AT_ONCE)):
            advance(made)
        return found

    def each(self, work: Callable[[int], Item], items: Iterable[int]) -> Iterator[Item]:
        """Yield what some work gives for each item, in threads; noise of a seed comes in order."""
        if self.entropy is not None:
            yield from map(work, items)
            return
        threads = ThreadPoolExecutor(thread_count())
        try:
            yield from threads.map(work, items)
        finally:
            threads.shutdown(cancel_futures=True)  # whoever interrupts it need not wait for all


class Coins:
    """What an attacker draws, and what is drawn for her: the same for the same seed.

    No noise: nobody is protected by it.

    Args:
        seed: a whole number of at least 0.
    """

    def __init__(self, seed: int) -> None:
        self._entropy = Seeded(seed)

    def whole(self, below: int, count: int) -> Integers:
        """Return whole numbers from 0 on, each equally likely, shape (count,).

        Args:
            below: what they are below.
            count: how many.
        """
        return (self._entropy.words(count) % np.uint64(below)).astype(np.int64)

    def steps(self, count: int, width: int) -> Floats:
        """Return evenly spread numbers of mean zero and variance one, shape (count, width).

        Args:
            count: how many rows.
            width: of each.
        """
        words = self._entropy.words(-(-count * width // 4)).view(np.uint16)[: count * width]
        centred = (words.astype(np.float64) - 32767.5) * (12**0.5 / 65536)
        return centred.reshape(count, width)


def _clipped(name: str, rows: Array, norm: float) -> Floats:
    """Return rows as float64, shortened to a bound.

    Args:
        name: of the rows, for messages.
        rows: shape (n, d).
        norm: the most that a row may be long.
    """
    given = np.asarray(rows, dtype=np.float64)
    if not np.all(np.isfinite(given)):
        raise InvalidInput(f"Expected {name} to have no NaN and no infinity.")
    lengths = np.linalg.norm(given, axis=1, keepdims=True)
    return np.asarray(given * np.minimum(norm / np.maximum(lengths, 1e-300), 1.0))


def code_words(count: int, width: int, radius: float) -> Floats:
    """Return public code words, values of that length or even steps, shape (count, d_v).

    Args:
        count: how many.
        width: d_v.
        radius: the bound on their length.
    """
    if width == 1:
        return np.linspace(-radius, radius, count)[:, None]
    law = RoundedGaussian(sigma=2.0**20)  # so that directions are spread evenly
    drawn = law.sample((count, width), entropy=Seeded(0)).astype(np.float64)
    return np.asarray(drawn * (radius / np.linalg.norm(drawn, axis=1, keepdims=True)))


def classes_of(values: Floats, radius: float, most: int) -> Floats:
    """Return the values that a row may have: those that there are, if they are few; else two.

    Args:
        values: of all rows, shape (n, d_v).
        radius: the bound on their length.
        most: that are few.
    """
    some = np.unique(values[: 100 * most], axis=0)
    if 2 <= len(some) <= most:
        some = np.unique(values, axis=0)
        if len(some) <= most:
            return np.asarray(some)
    ends = np.zeros((2, values.shape[1]))
    ends[:, 0] = (-radius, radius)
    return ends
