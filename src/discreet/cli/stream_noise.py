"""How noisy a reading of a stream is, and what it can tell: from what is public about it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet._typing import Floats
from discreet.noise.correlated import Participation, Reading, ReadingKind
from discreet.readers.attention.layout import Layout
from discreet.readers.attention.memory import Memory
from discreet.readers.attention.prediction import Prediction, mostly_noise, predicted, times
from discreet.stream.published import Published
from discreet.sums.release import Release


@dataclass(frozen=True)
class State:
    """What is known of one reading after one step.

    Attributes:
        noise_over_one_release: its noise over that of one single release of the same rows.
        predicted_signal_to_error: how much answers differ, at best, over how far they are off; None
            where nobody predicts it.
    """

    noise_over_one_release: float
    predicted_signal_to_error: float | None

    @classmethod
    def of(cls, published: Published, reading: Reading, step: int) -> "State":
        """Return what is known of a reading after so many steps.

        Args:
            published: the stream.
            reading: which steps.
            step: after so many.
        """
        said = prediction(published, reading, step)
        return cls(published.noise(reading, step), None if said is None else said.signal_to_error)


def prediction(published: Published, reading: Reading, step: int) -> Prediction | None:
    """Return what answers of a reading will be like; None where nobody predicts it.

    For the public number of rows, if there is one: then from settings alone.

    Args:
        published: the stream.
        reading: which steps.
        step: after so many.
    """
    settings, sums = published.settings, published.settings.sums
    [layout] = sums.layouts
    if not isinstance(layout, Layout):
        return None
    if settings.rows_hint is not None:
        rows = max(round(settings.rows_hint * reading.steps(step) / settings.steps), 1)
        sigma = sums.sigma(layout) / sums.stretch * published.noise(reading, step)
        return Prediction.of(layout, rows=rows, sigma=sigma)
    if reading.kind is ReadingKind.DECAY or step > published.step:
        return None
    return predicted(published.answers(reading, published.lines[step - 1].name).released)


def verdict(release: Release[Any]) -> str | None:
    """Return whether answers are predicted to be clear of the noise; None if nobody knows.

    Args:
        release: a state of a stream.
    """
    if not isinstance(release, Memory):
        return None
    if (noisy := mostly_noise([release.released])) is not None:
        first, _, _ = noisy.partition(". ")  # the rest is about building again
        return f"{first.removesuffix('.')}."
    said = predicted(release.released)
    if said is None or said.signal_to_error < 1:
        # The noisy sums say so, and noise may have said it.
        return (
            "Answers may be clear of the noise: rows seem to have much in common. If they have "
            "not, answers are mostly noise."
        )
    ratio = times(said.signal_to_error)
    return (
        "Answers are predicted to be clear of the noise: they differ by "
        f"{ratio} standard errors, at best."
    )


def noise_alone(steps: int, participation: Participation) -> Floats:
    """Return the noise of running sums of steps that are each released alone, over that of one.

    Args:
        steps: how many.
        participation: in how many of them a unit may have rows.

    Returns:
        Shape (steps,): after the first, after two, and so on.
    """
    return np.asarray(np.sqrt(_visits(steps, participation) * np.arange(1.0, steps + 1)))


def noise_of_tree(steps: int, participation: Participation) -> Floats:
    """Return the noise of running sums from a binary tree, over that of one single release.

    Every node of a tree over all steps has noise of its own, for what a unit moves in all levels
    together. A sum is made of one whole subtree for each bit of its length, and a subtree's
    estimate mixes its own node with those below it, by their variances (Honaker, 2015): of one with
    2^h steps, 2^h/(2^(h + 1) - 1) of a node's variance is left.

    Args:
        steps: for so many it is made.
        participation: in how many of them a unit may have rows.

    Returns:
        Shape (steps,): after the first, after two, and so on.
    """
    levels = (steps - 1).bit_length() + 1
    visits, moved = _visits(steps, participation), 0
    for level in range(levels):
        # No more visits of a unit fit into one node, and squares are largest if they are there.
        most = -(-(2**level) // participation.separation)
        moved += visits // most * most**2 + (visits % most) ** 2
    number = np.arange(1, steps + 1)
    left = np.zeros(steps)
    for bit in range(levels):
        left += (number >> bit & 1) * (2.0**bit / (2.0 ** (bit + 1) - 1))
    return np.sqrt(moved * left)


def _visits(steps: int, participation: Participation) -> int:
    """Return in how many of so many steps a unit has rows, at the most that moves sums apart.

    Rows that are counted over a lifetime move them furthest if they all come at once.
    """
    return min(participation.steps or 1, -(-steps // participation.separation))
