"""Every mechanism, audited: none is refuted, and each is if its noise is too small."""

import pytest
from broken_noise import noise_times

from discreet.audit.catalogue import CASES, named
from discreet.audit.pairs import Run
from discreet.errors import InvalidInput
from discreet.noise import lattice
from discreet.readers.registry import MECHANISMS
from discreet.sums.settings import Settings

ASKED = {"epsilon": 1.0, "delta": 1e-5}
GAUSSIAN = [
    "memory",
    "replace",
    "records",
    "heads",
    "landmarks",
    "least_squares",
    "softmax",
    "glm",
    "distances",
    "discovery",
    "stream",
    "shards",
]
OTHERS = ["table", "corpus", "tree", "distance_trees", "attention_trees"]


def audited(name, builds, **options):
    [case] = named([name])
    return case.audit(**ASKED, run=Run(builds=builds, confidence=0.99, **options))


def test_every_mechanism_is_there():
    assert sorted(each.name for each in CASES) == sorted(GAUSSIAN + OTHERS)
    asked = {"attention": "memory"} | {each.name: each.name for each in MECHANISMS[1:]}
    assert {asked[each.name] for each in MECHANISMS} <= {each.name for each in CASES}
    assert named(["all"]) == list(CASES)
    with pytest.raises(InvalidInput, match="one of"):
        named(["memory", "nothing"])


@pytest.mark.parametrize("name", GAUSSIAN)
def test_the_pair_is_as_far_apart_as_the_proof_allows_for_and_no_further(name):
    found = audited(name, 40, seed=1, workers=1)
    assert found.holds
    assert 0.98 < found.distance <= 1 + 1e-6
    assert found.claimed.epsilon == 1
    margin = 0.1 if found.noise.numbers > 200 else 0.4
    assert found.noise.ratio == pytest.approx(1, abs=margin)


@pytest.mark.parametrize("name", OTHERS)
def test_mechanisms_that_are_not_gaussian_hold(name):
    found = audited(name, 40, seed=1, workers=1)
    assert found.holds
    assert 0 < found.claimed.epsilon <= 1 + 1e-9
    assert 0.75 < found.noise.ratio < 1.25


@pytest.mark.parametrize(
    ("name", "epsilon"),
    [pytest.param("discovery", 0.01, marks=pytest.mark.slow), ("corpus", 8.0)],
)
def test_little_and_much_epsilon_can_be_audited(name, epsilon):
    [case] = named([name])
    run = Run(builds=40, confidence=0.99, seed=1, workers=1)
    found = case.audit(epsilon=epsilon, delta=1e-5, run=run)
    assert found.holds
    assert found.claimed.epsilon == pytest.approx(epsilon)


@pytest.mark.parametrize("name", [*GAUSSIAN, *OTHERS])
def test_noise_that_is_too_small_is_found_in_each(name):
    with noise_times(0.5):
        found = audited(name, 60, seed=1, workers=1)
    assert not found.holds


@pytest.mark.parametrize("name", ["softmax", "glm"])
def test_passes_with_the_noise_of_one_are_found(name, monkeypatch):
    def forgotten(settings, layout):
        return settings.multiplier * settings.sensitivity(layout)

    monkeypatch.setattr(Settings, "sigma", forgotten)
    found = audited(name, 40, seed=1, workers=1)
    assert not found.holds
    assert found.distance > 2
    assert any("as far apart as noise is made for" in each for each in found.reasons)


@pytest.mark.parametrize("name", ["memory", "replace", "least_squares", "glm", "stream"])
def test_rows_that_are_not_clipped_are_found(name, monkeypatch):
    monkeypatch.setattr(lattice, "_shrink_long_rows", lambda rows, radius: rows)
    found = audited(name, 40, seed=1, workers=1)
    assert not found.holds
    assert found.distance > 2


@pytest.mark.parametrize("name", ["memory", "softmax"])
def test_an_account_that_takes_too_little_noise_for_enough_is_found(name, monkeypatch):
    enough = Settings.multiplier
    monkeypatch.setattr(Settings, "multiplier", property(lambda each: 0.9 * enough.fget(each)))
    found = audited(name, 40, seed=1, workers=1)
    assert not found.holds
    assert any("more than is promised" in each for each in found.reasons)


@pytest.mark.slow
@pytest.mark.parametrize("name", GAUSSIAN)
def test_eight_thousand_builds_tell_eight_tenths_of_epsilon(name):
    found = audited(name, 8_000, seed=2)
    assert 0.8 <= found.epsilon_lower <= 1
    assert found.holds


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_eight_thousand_builds_refute_no_other_either(name):
    found = audited(name, 8_000, seed=2)
    assert found.holds
    if name == "table":
        assert found.epsilon_lower > 0.8


@pytest.mark.slow
@pytest.mark.parametrize("name", [*GAUSSIAN, "table"])
def test_two_thousand_builds_find_seven_tenths_of_the_noise(name):
    with noise_times(0.7):
        assert not audited(name, 2_000, seed=2).holds
