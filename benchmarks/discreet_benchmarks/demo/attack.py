"""One image more, with a secret class, and an attacker who knows everything else.

She knows all other images with their classes, the image itself, every public setting, and has the
file; the class, one of ten, is the secret. She asks about the image, takes off what all others add,
and names the class of which most is left. Exact attention answers without noise, so that nothing
but the secret is left.

How often she may be right: let each class be equally likely. Without the image no file depends on
its class, so whatever she does, she is right with probability 1/10. With it, each guess is at most
e^ε times as likely, plus δ: she is right with probability e^ε/10 + δ at most.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet._typing import Floats
from discreet.readers.attention import comparison as oracle
from discreet.readers.attention.mechanism import ATTENTION
from discreet.readers.attention.memory import Memory
from discreet.readers.attention.options import Options
from discreet.sums.door import release
from discreet.sums.partial import Partial
from discreet.sums.settings import Shape, Unit
from discreet.sums.source import Table
from discreet.testing import Silent
from discreet_benchmarks.demo import digits
from discreet_benchmarks.demo.digits import Split

CLASSES = 10


@dataclass(frozen=True)
class Attacked:
    """How an attack went.

    Attributes:
        epsilon: of the memories; None for exact attention.
        trials: each with another image or class, and a memory of its own.
        right: how often the secret was named.
        allowed: the most that (ε, δ) allows, as a share; None where nothing is promised.
    """

    epsilon: float | None
    trials: int
    right: int
    allowed: float | None

    @property
    def share(self) -> float:
        """How often the secret was named, as a share."""
        return self.right / self.trials

    @property
    def interval(self) -> tuple[float, float]:
        """95% of the time the true share lies between these (Clopper and Pearson)."""
        from scipy.stats import binomtest

        found = binomtest(self.right, self.trials).proportion_ci()
        return float(found.low), float(found.high)


def name_of(attacked: Attacked) -> str:
    """Return what was attacked, in a word or two."""
    if attacked.epsilon is None:
        return "exact attention"
    return f"memory, ε = {attacked.epsilon:g}"


def on_exact_attention(data: Split, scale: float, *, trials: int) -> Attacked:
    """Attack the answers of exact attention at some temperature. NOT PRIVATE."""
    images, hidden, values = _planted(data, trials)
    right = 0
    for image, secret, value in zip(images, hidden, values, strict=True):
        keys, everyone = np.vstack([data.keys, image]), np.vstack([data.values, value])
        answer = oracle.attention(image, keys, everyone, scale=scale)
        numerator, denominator = oracle.attention_sums(image, data.keys, data.values, scale=scale)
        own = np.exp(scale * image @ image.T)[0]
        left = answer * (denominator + own)[:, None] - numerator
        right += int(np.argmax(left) == secret)
    return Attacked(None, trials, right, None)


def on_memories(data: Split, epsilon: float, *, trials: int) -> Attacked:
    """Attack memories at some ε, each with noise of its own.

    The sums over everybody else are the same in all of them, and are added up once. She reads
    features plainly: that is linear in what was released, so the difference is one image and noise.
    """
    options = Options(
        epsilon=epsilon,
        delta=digits.DELTA,
        value_norm=digits.VALUE_NORM,
        rows_hint=digits.ROWS_HINT,
    )
    shape = Shape(heads=(), key_dim=data.keys.shape[1], value_dim=CLASSES)
    settings = ATTENTION.resolve([shape], options, unit=Unit.ROW)
    others = Partial.of([Table(data.keys, data.values)], settings)
    [known] = release(others, entropy=Silent())  # what she computes of the others, herself
    images, hidden, values = _planted(data, trials)
    expected, _ = Memory(known).plain.sums(images[:, 0])
    right = 0
    for image, secret, value, known_sums in zip(images, hidden, values, expected, strict=True):
        one_more = Partial.of([Table(image, value)], settings)
        [released] = release(Partial.merged(settings, [others, one_more]))
        sums, _ = Memory(released).plain.sums(image)
        right += int(np.argmax(sums[0] - known_sums) == secret)
    return Attacked(epsilon, trials, right, min(math.exp(epsilon) / CLASSES + digits.DELTA, 1.0))


def _planted(data: Split, trials: int) -> tuple[Floats, NDArray[np.int64], Floats]:
    """Return images (trials, 1, 64), their secret classes and the values of those.

    Each class is the secret equally often, whatever the images show.
    """
    hidden = np.arange(trials) % CLASSES
    images = data.queries[np.arange(trials) % len(data.queries)]
    return images[:, None], hidden, (np.eye(CLASSES)[hidden] - 0.1)[:, None]
