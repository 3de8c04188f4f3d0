"""The attacker of the demo: strong where nothing protects, held back where something does."""

import math
import warnings

import pytest

from discreet_benchmarks.demo import attack, digits

pytestmark = pytest.mark.docs


@pytest.fixture(scope="module")
def data():
    return digits.splits(2)[0]


def test_exact_attention_gives_every_secret_away(data):
    found = attack.on_exact_attention(data, 4.0, trials=50)
    assert (found.right, found.share, found.allowed) == (50, 1.0, None)
    low, high = found.interval
    assert 0.9 < low < high == 1.0


def test_the_attack_is_a_real_one(data):
    """Where ε protects nobody, she is right nearly always."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = attack.on_memories(data, 64.0, trials=50)
    assert found.share > 0.9


def test_a_small_epsilon_holds_her_back(data):
    """Unlikely to fail by chance: she would have to be right twice as often as is allowed."""
    found = attack.on_memories(data, 0.5, trials=200)
    assert found.allowed == pytest.approx(math.exp(0.5) / 10 + digits.DELTA)
    assert found.share < 2 * found.allowed
    low, high = found.interval
    assert low < found.share < high


def test_every_class_is_the_secret_equally_often(data):
    images, hidden, values = attack._planted(data, 200)
    assert sorted(hidden) == sorted(list(range(10)) * 20)
    assert images.shape == (200, 1, 64)
    assert values.sum() == pytest.approx(0)
