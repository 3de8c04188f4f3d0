import copy
import json
import os
import pickle
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import discreet
from discreet import DiscreetError, InvalidInput, paper
from discreet.noise import (
    DiscreteLaplace,
    Entropy,
    RoundedGaussian,
    SystemEntropy,
    TruncatedLaplace,
    entropy,
)
from discreet.noise.entropy import is_private
from discreet.testing import Seeded, Silent

LAWS = [
    RoundedGaussian(sigma=10.0),
    DiscreteLaplace(scale=10.0),
    TruncatedLaplace(sensitivity=10, epsilon=1.0, delta=1e-3),
]

# The first 16 bytes of AES-256-CTR over zeros under SHA-256("discreet test seed 0"), little-endian.
GOLDEN_SEED_ZERO = ["0x43c1e512612847c5", "0x20c6c209ae254fb2"]


def test_words_are_uint64_and_never_repeat():
    source = SystemEntropy()
    words = np.concatenate([source.words(100_000), source.words(100_000), SystemEntropy().words(7)])
    assert words.dtype == np.uint64
    assert len(np.unique(words)) == len(words)


def test_every_bit_is_balanced():
    words = SystemEntropy().words(100_000)
    ones = np.unpackbits(words.view(np.uint8)).reshape(-1, 64).mean(axis=0)
    assert np.all(np.abs(ones - 0.5) < 6 * 0.5 / np.sqrt(len(words)))


class Liar(Seeded):
    """Says of itself that it is private, in every way that there is."""

    private = True
    __class__ = SystemEntropy


def test_only_the_system_source_is_private():
    assert SystemEntropy().private is is_private(SystemEntropy()) is True
    for source in (Seeded(1), Silent()):
        assert source.private is is_private(source) is False
    assert not is_private(SystemEntropy)
    assert not is_private(None)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_no_source_can_talk_itself_private():
    liar = Liar(1)
    assert liar.private
    assert isinstance(liar, SystemEntropy)
    assert not is_private(liar)
    data = np.zeros((4, 2))
    memory = discreet.build(data, data, epsilon=1.0, delta=1e-3, scale=1.0, entropy=liar)
    tree = paper.DPTree(
        data[:, 0], sensitivity=2.0, upper=1.0, epsilon=1.0, delta=1e-3, entropy=liar
    )
    for made in (memory, tree):
        assert not made.private
        assert made.guarantee.scope.startswith("NOT PRIVATE (noise from Seeded(1)): ")


def test_no_source_is_private_by_its_words_or_its_name():
    namesake = type("SystemEntropy", (Seeded,), {"__repr__": lambda self: "SystemEntropy()"})
    namesake.__module__, namesake.__qualname__ = SystemEntropy.__module__, "SystemEntropy"
    liar = namesake(1)
    assert (repr(liar), repr(type(liar))) == (repr(SystemEntropy()), repr(SystemEntropy))
    assert not is_private(liar)
    assert not liar.private


@pytest.mark.parametrize("name", ["private", "words", "realise", "anything"])
def test_nothing_can_be_set_on_the_system_source(name):
    with pytest.raises(AttributeError):
        setattr(SystemEntropy(), name, lambda *_: np.zeros(1, dtype=np.uint64))


def test_what_a_source_says_cannot_be_set():
    for source in (Seeded(1), Silent()):
        with pytest.raises(AttributeError):
            source.private = True
        with pytest.raises(TypeError, match="layout"):
            source.__class__ = SystemEntropy


@pytest.mark.parametrize("source", [SystemEntropy(), Seeded(1), Silent()], ids=repr)
def test_sources_can_be_kept_in_sets_and_referred_to_weakly(source):
    assert len({source, source, Seeded(1)}) == 2
    assert weakref.ref(source)() is source


def test_the_default_cannot_be_seeded_subclassed_pickled_or_copied():
    with pytest.raises(TypeError):
        SystemEntropy(1)
    with pytest.raises(TypeError, match="subclass"):
        type("Mine", (SystemEntropy,), {})
    for leave in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="never pickled"):
            leave(SystemEntropy())


def test_a_new_source_is_not_private_by_default():
    class Mine(Entropy):
        def words(self, count):
            return np.zeros(count, dtype=np.uint64)

    assert Mine().private is False


def test_seeded_repeats_itself_and_differs_by_seed():
    assert np.array_equal(Seeded(5).words(1000), Seeded(5).words(1000))
    assert not np.array_equal(Seeded(5).words(1000), Seeded(6).words(1000))
    source = Seeded(5)
    in_parts = np.concatenate([source.words(1), source.words(600), source.words(399)])
    assert np.array_equal(in_parts, Seeded(5).words(1000))


def test_seeded_is_the_same_on_every_machine():
    assert [hex(word) for word in Seeded(0).words(2)] == GOLDEN_SEED_ZERO


@pytest.mark.parametrize("seed", [-1, 1.5, None, "one"])
def test_a_bad_seed_is_named(seed):
    with pytest.raises(InvalidInput, match="seed="):
        Seeded(seed)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
def test_silent_makes_all_noise_zero(law):
    assert np.array_equal(law.sample((3, 4), entropy=Silent()), np.zeros((3, 4), dtype=np.int64))
    with pytest.raises(DiscreetError):
        Silent().words(1)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
def test_the_default_source_gives_fresh_noise(law):
    assert not np.array_equal(law.sample(100), law.sample(100))
    assert np.array_equal(law.sample(100, entropy=Seeded(1)), law.sample(100, entropy=Seeded(1)))


def test_threads_share_a_source_without_sharing_words():
    source = SystemEntropy()
    drawn, start = [], threading.Barrier(8)

    def draw():
        start.wait()
        for _ in range(200):
            drawn.append(source.words(50))  # noqa: PERF401 (interleaving is the point)

    threads = [threading.Thread(target=draw) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    words = np.concatenate(drawn)
    assert len(words) == 8 * 200 * 50
    assert len(np.unique(words)) == len(words)


def test_each_sign_of_a_fork_alone_brings_a_new_key(monkeypatch):
    keys = []

    def counted():
        keys.append(os.urandom(32))
        return keys[-1]

    monkeypatch.setattr(entropy, "_operating_system_key", counted)
    source = SystemEntropy()
    source.words(1)
    source.words(1)
    assert len(keys) == 1
    monkeypatch.setattr(os, "getpid", lambda: -1)
    source.words(1)
    assert len(keys) == 2
    monkeypatch.setattr(entropy._Forks, "count", entropy._Forks.count)  # restored afterwards
    entropy._Forks.notice()
    source.words(1)
    assert len(keys) == 3
    threads = [threading.Thread(target=source.words, args=(1,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(keys) == 11


FORKING = """
import json, os, sys
from discreet.noise import SystemEntropy

source = SystemEntropy()
history = source.words(100).tolist()      # the stream is running before the fork

def fork(then):
    read, write = os.pipe()
    if os.fork() == 0:
        os.close(read)
        with os.fdopen(write, "w") as pipe:
            json.dump(then(), pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        result = json.load(pipe)
    os.wait()
    return result

def grandchild():
    return [fork(lambda: source.words(5000).tolist()), source.words(5000).tolist()]

children = [fork(lambda: source.words(5000).tolist()) for _ in range(2)]
family = [history, source.words(5000).tolist(), *children, *fork(grandchild)]
json.dump(family, sys.stdout)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
def test_no_process_of_a_family_repeats_another():
    output = subprocess.run(
        [sys.executable, "-W", "error", "-c", FORKING], capture_output=True, check=True, text=True
    ).stdout
    family = json.loads(output)
    assert [len(words) for words in family] == [100] + [5000] * 5
    everything = [word for words in family for word in words]
    assert len(set(everything)) == len(everything)
