"""Streams of few numbers, and the draws behind what they release."""

import warnings
from itertools import count

import numpy as np

from discreet import NotPrivateWarning
from discreet.stream import Stream
from discreet.stream.state import StreamState
from discreet.testing import Silent

KEY = bytes(range(32))
OPTIONS = {
    "attention": {"scale": 1.0, "kernel": "minimax", "eps_s": 0.3},
    "least_squares": {"features": "linear"},
    "distances": {"p": 1, "bounds": (-1.0, 1.0)},
}
_FOLDERS = count()


def small(folder, *, reader="attention", **options):
    """A stream with keys of two numbers and values of one."""
    given = {"epsilon": 1.0, "delta": 1e-6, "steps": 16, "entropy": Silent()}
    path = folder / f"stream-{next(_FOLDERS)}"
    return Stream(path, key=KEY, reader=reader, **OPTIONS[reader] | given | options)


def again(path, *, entropy, key=KEY, **options):
    """Resume a stream with test noise, which says that it is not private."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        return Stream.resume(path, key=key, entropy=entropy, **options)


def rows_of(people, rng):
    """Keys and values of so many people, as long as they may be."""
    angles = rng.uniform(0, 2 * np.pi, len(people))
    keys = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return keys, np.sign(np.sin(3 * angles))[:, None]


def totals_of(stream):
    """What a stream has released, step by step: one array of all numbers each."""
    folder = stream._begun
    every = (folder.totals(number) for number in range(stream.step + 1))
    return [np.concatenate([part.ravel() for part in parts]) for parts in every]


def increments_of(stream):
    """What each step added; of a silent stream, the exact sums of its rows."""
    totals = totals_of(stream)
    return [new - old for new, old in zip(totals[1:], totals, strict=False)]


def deviations_of(settings):
    """The standard deviation of each fresh draw, as long as a state."""
    begun = StreamState.begin(settings)
    laws = [law for layout in settings.layouts for law in settings.laws(layout)]
    pairs = zip(laws, begun.totals, strict=True)
    return np.concatenate([np.full(part.size, law.sigma) for law, part in pairs])


def fresh_behind(increments, exact, strategy):
    """The fresh draws that make these releases of rows with these exact sums."""
    buffers, draws = strategy.begin(len(exact[0])), []
    for released, sums in zip(increments, exact, strict=True):
        noise = released - sums
        taken = (np.sum(buffers, axis=0) + 2**15) >> 16
        draws.append(noise + taken)
        again, buffers = strategy.follow(buffers, draws[-1])
        assert np.array_equal(again, noise)
    return np.array(draws)


def moved(one, other, settings, rng):
    """How far the draws behind the same releases are apart, over what the mechanism claims.

    Args:
        one: exact sums of each step.
        other: those of a neighbour.
        settings: of the stream.
        rng: for the path that releases take.
    """
    strategy = settings.continual.strategy
    sigma = deviations_of(settings)
    path = [np.rint(rng.normal(0, 2, len(sigma)) * sigma).astype(np.int64) for _ in one]
    behind, there = (fresh_behind(path, exact, strategy) for exact in (one, other))
    apart = np.sqrt(np.sum(((behind - there) / sigma) ** 2))
    claim = settings.mechanism.sensitivity / settings.mechanism.sigma
    return float(apart / claim)
