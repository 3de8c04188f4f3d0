"""The noise of a stream is what its states say, at every step; and no attacker gets beyond μ."""

import math

import numpy as np
import pytest
from scipy import stats
from streams import fresh_behind, increments_of, small

from discreet.noise.correlated import Reading
from discreet.sums.settings import part_sigmas
from discreet.testing import Seeded

# Each test is run at this level; seeds are fixed, so it fails always or never.
ALPHA = 1e-4

EMPTY = (np.zeros((0, 2)), np.zeros((0, 1)))
STEPS, STREAMS = 24, 60


@pytest.fixture(scope="module", params=["attention", "least_squares"])
def streams(request, tmp_path_factory):
    """Streams without rows: all that they release is noise."""
    folder = tmp_path_factory.mktemp("noise")
    made = []
    for seed in range(STREAMS):
        stream = small(folder, reader=request.param, entropy=Seeded(seed))
        for step in range(STEPS):
            stream.append(*EMPTY, step=f"{step}")
        made.append(stream)
    return made


READ = {
    "first": lambda stream: stream.memory(step="0"),
    "all": lambda stream: stream.memory(),
    "window": lambda stream: stream.window(last=5),
    "decay": lambda stream: stream.decayed(half_life=3),
}


@pytest.mark.parametrize("read", READ)
def test_the_noise_of_a_state_is_what_it_says(streams, read):
    """Normal, and of the claimed size; two thirds of it and half as much again are rejected."""
    scaled = []
    for stream in streams:
        released = READ[read](stream).released
        sigmas = part_sigmas(released.layout, released.sigma)
        parts = zip((released.state, *released.others), sigmas, strict=True)
        scaled += [part.ravel() / sigma for part, sigma in parts]
    noise = np.concatenate(scaled)
    assert stats.kstest(noise, "norm").pvalue > ALPHA
    for factor in (2 / 3, 3 / 2):
        assert stats.kstest(noise / factor, "norm").pvalue < ALPHA


def test_noise_is_correlated_over_steps_and_over_nothing_else(streams):
    """Running totals stay together; two numbers of one state have nothing to do with each other."""
    last, before = (
        np.array([stream.memory(step=step).released.state.ravel() for stream in streams])
        for step in ("23", "22")
    )
    flat = np.corrcoef(last.ravel(), before.ravel())[0, 1]
    assert flat > 0.6
    across = np.corrcoef(last[:, :-1].ravel(), last[:, 1:].ravel())[0, 1]
    assert abs(across) < 4 / math.sqrt(last.size)


def test_fresh_draws_are_independent_and_of_the_promised_size(streams):
    settings = streams[0].settings
    [layout] = settings.layouts
    laws = settings.laws(layout)
    for stream in streams[:5]:
        increments = increments_of(stream)
        draws = fresh_behind(
            increments, [0 * each for each in increments], settings.continual.strategy
        )
        size = math.prod(layout.shape)
        scaled = draws[:, :size] / laws[0].sigma
        assert stats.kstest(scaled.ravel(), "norm").pvalue > ALPHA
        assert abs(np.corrcoef(scaled[1:].ravel(), scaled[:-1].ravel())[0, 1]) < 4 / math.sqrt(
            size * STEPS
        )


def test_the_last_bit_of_every_step_is_a_coin(streams):
    """Noise that is always even would show the last bit of every exact sum."""
    odd = np.concatenate([each & 1 for stream in streams[:10] for each in increments_of(stream)])
    assert stats.binomtest(int(odd.sum()), odd.size).pvalue > ALPHA


def test_the_best_attacker_is_at_the_promise_and_not_beyond(tmp_path):
    """Who knows all rows but one, projects what is behind the releases on what she would move.

    For two normal distributions apart by μ that is the best test there is; its measured μ may not
    be above the promised one, and is near it.
    """
    steps, tries = 40, 1_000
    probe = small(tmp_path, epsilon=6.0)
    row = probe.append([[1.0, 0.0]], [[1.0]], step="0").released.state.ravel()
    settings = probe.settings
    strategy, law = settings.continual.strategy, settings.laws(settings.layouts[0])[0]
    direction = np.outer(strategy.coefficients(steps), row)
    direction /= np.linalg.norm(direction)
    seen = {}
    for present in (False, True):
        entropy = Seeded(70 + present)
        buffers, increments = strategy.begin(tries * len(row)), []
        for step in range(steps):
            fresh = law.sample(tries * len(row), entropy=entropy)
            noise, buffers = strategy.follow(buffers, fresh)
            increments.append(noise + np.tile(row, tries) * (present and step == 0))
        # The attacker's view: as if she were not there.
        behind = fresh_behind(increments, [0 * each for each in increments], strategy)
        seen[present] = np.einsum("stn,sn->t", behind.reshape(steps, tries, -1), direction)
    spread = math.sqrt((seen[True].var() + seen[False].var()) / 2)
    measured = abs(seen[True].mean() - seen[False].mean()) / spread
    promised = settings.mechanism.sensitivity / settings.mechanism.sigma
    error = math.sqrt(2 / tries)
    assert measured <= promised + 3.7 * error
    assert promised > 8 * error  # else nothing would be seen
    assert measured >= promised - 3.7 * error


def test_the_noise_over_one_release_is_that_of_the_table(tmp_path):
    """Of one state over another with the same settings, and of a window over both."""
    stream = small(tmp_path, steps=365)
    strategy = stream_strategy(stream)
    factor = strategy.norm * math.sqrt(Reading().variance(strategy, 365))
    assert factor == pytest.approx(2.97, rel=0.002)
    window = strategy.norm * math.sqrt(Reading("window", 30).variance(strategy, 365))
    assert window == pytest.approx(3.17, rel=0.002)


def stream_strategy(stream):
    stream.append(*EMPTY, step="0")
    return stream.settings.continual.strategy
