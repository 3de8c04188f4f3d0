"""Audits of builders' functions: what is kept is not refuted, what is broken is."""

import json
import multiprocessing
import pathlib
import random
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import pytest
from broken_noise import (
    coarse,
    exact_at_the_end,
    exact_here_and_there,
    mirrored,
    noise_made,
    noise_times,
    rarely_small,
    repeated,
)

import discreet
from discreet import paper
from discreet.accounting import gaussian_epsilon
from discreet.audit import Audit, audit
from discreet.audit.workers import map_forked
from discreet.errors import InvalidInput, PrivacyLeakWarning
from discreet.noise import RoundedGaussian
from discreet.sklearn import PrivateClassifier
from discreet.testing import Seeded, Silent

SPEND = {"epsilon": 1.0, "delta": 1e-5}
FEW = {"scale": 1.0, "kernel": "minimax", "eps_s": 0.5}

KEYS, VALUES = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[1.0], [-1.0]])
PAIR = ((KEYS[:1], VALUES[:1]), (KEYS, VALUES))


def build(rows, entropy=None):
    return discreet.build(*rows, **SPEND, **FEW, entropy=entropy)


def build_without_entropy(rows):
    return build(rows)


def audited(function, pair=PAIR, *, builds=120, seed=1, **options):
    return audit(function, pair, builds=builds, seed=seed, workers=1, **options)


def test_some_hundred_builds_tell_most_of_epsilon():
    found = audited(build)
    assert found.holds
    assert 0.75 < found.epsilon_lower <= 1
    assert (found.direction, found.builds) == ("known", 120)
    assert found.distance == pytest.approx(1, abs=0.01)
    assert found.claimed.epsilon == 1
    assert 0.95 < found.noise.ratio < 1.05


@pytest.mark.parametrize("factor", [0.7, 0.5])
def test_noise_that_is_too_small_refutes_the_promise(factor):
    with noise_times(factor):
        found = audited(build)
    assert not found.holds
    assert found.epsilon_lower > 1.2
    assert found.noise.at_most < 1


def test_more_noise_than_promised_is_no_breach():
    with noise_times(1.5):
        found = audited(build)
    assert found.holds
    assert found.epsilon_lower < 0.8


def test_without_entropy_noise_that_is_too_small_is_seen_all_the_same():
    found = audit(build_without_entropy, PAIR, builds=60, workers=1)
    assert found.holds
    assert found.direction == "learned"
    assert "entropy" in str(found)
    with noise_times(0.6):
        found = audit(build_without_entropy, PAIR, builds=60, workers=1)
    assert not found.holds


def by_the_largest(rows, entropy=None):
    keys, values = rows
    return build((keys / np.abs(keys).max(), values), entropy)


def by_the_largest_alone(rows):
    return by_the_largest(rows)


# The longest key of all decides how far all others are clipped.
LONG = (np.repeat([[0.5, 0.0]], 60, axis=0), np.ones((60, 1)))
LONGER = (np.concatenate([LONG[0], [[50.0, 0.0]]]), np.ones((61, 1)))


@pytest.mark.parametrize("known", [True, False])
def test_a_pipeline_that_scales_by_the_datas_maximum_is_caught(known):
    function = by_the_largest if known else by_the_largest_alone
    found = audit(function, (LONG, LONGER), builds=100, workers=1)
    assert not found.holds
    assert found.epsilon_lower > 2
    assert (found.direction == "known") is known


def test_a_pipeline_that_clips_at_public_bounds_is_not():
    def clipped(rows, entropy=None):
        return build((np.clip(rows[0], -1, 1), rows[1]), entropy)

    assert audited(clipped, (LONG, LONGER), builds=100).holds


def test_a_pipeline_with_chance_of_its_own_is_learned():
    rng = np.random.default_rng(0)

    def shuffled(rows, entropy=None):
        return build((rows[0] * rng.uniform(0.5, 1), rows[1]), entropy)

    assert audited(shuffled, builds=80).direction == "learned"


def test_under_replace_the_pair_is_of_two_rows():
    def replaced(rows, entropy=None):
        return discreet.build(*rows, neighbours="replace", **SPEND, **FEW, entropy=entropy)

    pair = ((KEYS, VALUES), (KEYS, VALUES * [[1], [-1]]))
    found = audited(replaced, pair)
    assert found.holds
    assert found.epsilon_lower > 0.75
    assert "replaced by another" in str(found)


def test_a_view_of_answers_tells_less_than_the_sums():
    def first_answer(memory):
        return memory.plain.sums(KEYS[1:])[0]

    found = audited(build, view=first_answer)
    assert found.holds
    assert found.direction == "learned"
    assert found.noise is None


def test_any_object_with_a_guarantee_can_be_audited():
    """A mechanism of the caller's own, which promises more than it keeps."""
    guarantee = discreet.Guarantee(0.2, 1e-5, "add_remove", unit="row", scope="a number")
    law = RoundedGaussian(sigma=1.0)

    class Number:
        def __init__(self, count, entropy):
            self.guarantee = guarantee
            self.noisy = count + int(law.sample(1, entropy=entropy)[0])

    found = audited(
        Number, (5, 8), builds=400, view=lambda made: np.array([made.noisy]), confidence=0.95
    )
    assert not found.holds
    assert found.epsilon_lower < gaussian_epsilon(sigma=1.0, sensitivity=3.0, delta=1e-5)


def test_the_same_seed_gives_the_same_audit_whoever_does_the_work():
    one = audit(build, PAIR, builds=80, seed=7, workers=1)
    two = audit(build, PAIR, builds=80, seed=7, workers=2)
    assert one.epsilon_lower == two.epsilon_lower
    assert np.array_equal(one.scores, two.scores)
    assert audit(build, PAIR, builds=80, seed=8, workers=1).epsilon_lower != one.epsilon_lower


def test_workers_know_what_this_process_knows():
    with noise_times(0.5):
        assert not audit(build, PAIR, builds=100, workers=2).holds


def test_an_error_of_a_build_comes_from_workers_too():
    calls = []

    def fails(rows, entropy=None):
        calls.append(1)
        if len(calls) > 20:
            raise InvalidInput("Expected another day.")
        return build(rows, entropy)

    with pytest.raises(InvalidInput, match="another day"):
        audit(fails, PAIR, builds=200, workers=2)


def test_audits_print_and_are_json():
    found = audited(build, builds=60, name="clinic")
    text = str(found)
    assert text.startswith("clinic: holds, as far as this shows")
    assert "ε = 1, δ = 1e-05" in text
    facts = json.loads(json.dumps(found.to_dict()))
    assert facts["epsilon_lower"] == found.epsilon_lower
    assert facts["holds"] is True
    shares, low, high = found.curve([0.1, 0.5])
    assert all(a <= b <= c for a, b, c in zip(low, shares, high, strict=True))


def test_no_warning_of_few_rows_is_shown():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        audited(build, builds=40)


@pytest.mark.parametrize(
    ("pair", "options", "message"),
    [
        (KEYS[:1], {}, "a pair"),
        (PAIR, {"builds": 10}, "builds"),
        (PAIR, {"confidence": 0.3}, "confidence"),
        (PAIR, {"seed": -1}, "seed"),
    ],
)
def test_what_is_asked_for_wrongly_is_refused(pair, options, message):
    with pytest.raises(InvalidInput, match=message):
        audit(build, pair, **{"builds": 40, "workers": 1, **options})


# --- what is broken otherwise ---------------------------------------------------------------------


def test_two_data_sets_that_give_the_same_sums_are_not_told_apart():
    found = audited(build, (PAIR[1], PAIR[1]))
    assert found.holds
    assert found.epsilon_lower == 0
    assert found.distance == 0
    assert "NOTHING WAS TESTED" in str(found)


def test_sums_that_are_too_far_apart_refute_whatever_is_counted():
    """Gaps are filled with the mean: one row more moves several others, a little."""

    def filled(rows, entropy=None):
        rows = np.where(np.isnan(rows), np.nanmean(rows), rows)
        return build((rows, np.ones((len(rows), 1))), entropy)

    crowd = np.array([[0.0]] * 20 + [[np.nan]] * 2)
    found = audited(filled, (crowd, np.concatenate([crowd, [[1.0]]])), builds=40)
    assert not found.holds
    assert "times as far apart" in found.reasons[0]


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (build_without_entropy, "takes no argument"),
        (lambda rows, entropy=None: build(rows), "does not hand"),
        (lambda rows, **more: named_by_the_rows((rows[0], ["no", "yes"]), **more), "in rounds"),
    ],
)
def test_why_a_direction_is_learned_is_said(function, why):
    pair = ((KEYS, VALUES), (KEYS, -VALUES))
    assert why in str(audit(function, pair, builds=40, workers=1))


def test_what_every_build_warns_of_is_said_once():
    def leaky(rows, entropy=None):
        warnings.warn("taken from the rows", PrivacyLeakWarning, stacklevel=2)
        return build(rows, entropy)

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        audited(leaky, builds=40)
    assert 0 < len(told) <= 4


def test_noise_of_a_test_source_refutes_a_promise():
    def careless(rows, entropy=None):
        return build(rows, Seeded(len(rows[0])) if entropy is None else entropy)

    found = audited(careless, builds=40)
    assert not found.holds
    assert "NOT PRIVATE" in str(found)


def test_noise_that_is_the_same_twice_refutes_a_promise():
    """Drawn by the system, and kept."""
    kept = {}

    def cached(rows, entropy=None):
        if repr(entropy) == "Silent()":
            return build(rows, entropy)
        return kept.setdefault(len(rows[0]), build(rows))

    found = audited(cached, builds=40)
    assert not found.holds
    assert "the same noise" in str(found)
    assert json.loads(json.dumps(found.to_dict()))["reasons"]


@pytest.mark.parametrize("entropy", [Seeded(7), Silent()], ids=repr)
def test_no_noise_of_its_own_is_refuted_and_nothing_breaks(entropy):
    assert not audited(lambda rows, _=None: build(rows, entropy), builds=40).holds

    def tree(rows, entropy=None):
        return paper.DPTree(
            rows[1][:, 0] ** 2, sensitivity=1.0, upper=1.0, **SPEND, entropy=Silent()
        )

    assert not audited(tree, (PAIR[1], (KEYS, VALUES * 0)), builds=40).holds


def named_by_the_rows(rows, entropy=None):
    keys, labels = rows
    return discreet.softmax_regression(
        keys,
        labels,
        classes=tuple(sorted(set(labels))),
        features="linear",
        **SPEND,
        entropy=entropy,
    )


def counted_by_the_rows(rows, entropy=None):
    return discreet.build(*rows, **SPEND, **FEW, rows_hint=len(rows[0]), entropy=entropy)


@pytest.mark.parametrize(
    ("function", "pair", "named"),
    [
        (named_by_the_rows, ((KEYS, ["no", "yes"]), (KEYS, ["no", "patient X"])), "classes"),
        (counted_by_the_rows, PAIR, "rows_hint"),
    ],
)
def test_what_a_file_says_of_itself_must_not_follow_from_the_rows(function, pair, named):
    found = audited(function, pair, builds=40)
    assert not found.holds
    assert named in found.reasons[0]
    assert "patient X" not in str(found)


def test_what_was_taken_from_the_rows_is_said():
    columns = np.repeat([[0.1, 0.7], [0.3, 0.2]], 10, axis=0)

    def fitted(rows, entropy=None):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return PrivateClassifier(1.0, 1e-5, classes=[0, 1], rows_hint=20, entropy=entropy).fit(
                rows, np.arange(len(rows)) % 2
            )

    found = audited(fitted, (columns, columns[:-1]), builds=40)
    assert not found.holds
    assert "bounds" in found.reasons[-1]
    assert "not covered" in str(found)


def test_what_a_function_does_to_its_data_changes_no_other_build():
    def in_place(rows, entropy=None):
        made = by_the_largest(rows, entropy)
        rows[0].fill(0.0)
        return made

    assert audited(in_place, (LONG, LONGER), builds=40).epsilon_lower == pytest.approx(
        audited(by_the_largest, (LONG, LONGER), builds=40).epsilon_lower
    )
    assert LONG[0].max() == 0.5


@pytest.mark.parametrize("shown", [[np.nan], [np.inf], [], ["yes"]])
def test_a_view_of_what_is_no_number_is_refused(shown):
    with pytest.raises(InvalidInput, match="finite numbers"):
        audited(build, view=lambda memory: shown, builds=40)


def test_releases_that_were_not_made_together_are_refused():
    with pytest.raises(InvalidInput, match="combine"):
        audited(lambda rows, entropy=None: [build(rows, entropy), build(rows, entropy)], builds=40)


def test_workers_draw_apart_whatever_they_draw_from():
    drawn = map_forked(lambda _: (np.random.random(), random.random()), range(200), workers=4)
    assert all(len(set(each)) == 200 for each in zip(*drawn, strict=True))


def test_workers_may_have_workers():
    def nested(number):
        made = multiprocessing.get_context("fork").Process(target=int)
        made.start()
        made.join()
        return made.exitcode

    assert map_forked(nested, range(24), workers=2) == [0] * 24


def test_what_is_no_release_is_refused():
    with pytest.raises(InvalidInput, match="guarantee"):
        audit(lambda rows: 5, PAIR, builds=40)


def test_releases_whose_size_tells_are_refused():
    def wide(rows, entropy=None):
        values = np.ones((len(rows[0]), len(rows[0])))
        return build((rows[0], values), entropy)

    found = audited(wide, builds=40)
    assert not found.holds
    assert "how many numbers there are" in str(found)
    assert (found.test.alarms, found.test.hits) == (0, 20)  # counted, of real releases
    assert json.loads(json.dumps(found.to_dict()))["holds"] is False


def test_the_example_of_the_docstring_runs():
    found = audit(by_the_largest, (LONG, LONGER), builds=40, seed=0, workers=1)
    assert isinstance(found, Audit)
    assert isinstance(Seeded(0), discreet.noise.Entropy)


def wide(rows, entropy=None):
    """A memory of many numbers."""
    return build((rows[0], np.tile(rows[1], 30) / 6), entropy)


def test_nothing_is_said_of_noise_as_it_should_be():
    assert all(audited(wide, builds=80, seed=seed).reasons == () for seed in range(3))


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (exact_here_and_there, "numbers is too small"),
        (exact_at_the_end, "numbers is too small"),
        (repeated, "goes together"),
        (mirrored, "goes together"),
        (coarse, "a multiple of 8 units"),
        (rarely_small, "releases is too small"),
    ],
)
def test_noise_that_is_as_large_as_promised_in_all_but_not_everywhere_refutes(broken, said):
    with noise_made(broken):
        found = audited(wide, builds=80)
    assert not found.holds
    assert any(said in each for each in found.reasons)
    assert found.noise.ratio > 0.9


def states(chunks, entropy=None):
    """All states of a stream, one for each step."""
    with tempfile.TemporaryDirectory() as folder:
        stream = discreet.Stream(
            pathlib.Path(folder) / "s",
            key=STREAM_KEY,
            steps=len(chunks),
            scale=1.0,
            rows_hint=1_000,
            entropy=entropy,
            **SPEND,
        )
        ones = [np.ones((len(chunk), 1)) for chunk in chunks]
        return [
            stream.append(chunk, each, step=str(at))
            for at, (chunk, each) in enumerate(zip(chunks, ones, strict=True))
        ]


STREAM_KEY = discreet.Stream.new_key()
STEPS = ([KEYS[:1]] * 4, [KEYS, *[KEYS[:1]] * 3])


def test_all_states_of_a_stream_are_under_one_promise():
    found = audited(states, STEPS, builds=40)
    assert found.holds
    assert found.direction == "known"
    assert 0.9 < found.distance <= 1.0001
    with noise_times(0.5):
        assert not audited(states, STEPS, builds=40).holds


def test_some_states_of_a_stream_need_a_view():
    with pytest.raises(InvalidInput, match="from the first step on"):
        audited(lambda chunks, entropy=None: states(chunks, entropy)[1:3], STEPS, builds=40)
    assert audited(lambda chunks, entropy=None: states(chunks, entropy)[-1], STEPS, builds=40).holds


def test_copies_of_a_release_say_nothing_new():
    def twice(rows, entropy=None):
        made = build(rows, entropy)
        return [made, made]

    found = audited(twice, builds=60)
    assert found.holds
    assert found.distance == pytest.approx(1, abs=0.01)


def test_noise_that_comes_twice_is_seen_without_entropy_too():
    """Drawn by the system, eight times for each data set, and kept."""
    kept, calls = {}, []

    def cached(rows):
        calls.append(1)
        key = (len(rows[0]), len(calls) % 8)
        if key not in kept:
            kept[key] = build(rows)
        return kept[key]

    found = audit(cached, PAIR, builds=80, workers=1)
    assert not found.holds
    assert any("the same noise" in each for each in found.reasons)


def noisy_count(names, entropy=None):
    """How many numbers there are follows from noise: names come through a threshold or not."""
    return discreet.discover(names, **SPEND, entropy=entropy)


NAMES = (["flu"] * 18, ["flu"] * 19)


@pytest.mark.parametrize("seed", range(3))
def test_a_size_that_follows_from_noise_is_no_breach_and_needs_a_view_of_one_size(seed):
    def counts(found):
        return [1.0, *(each.count for each in found)]

    def total(found):
        return [len(found), sum(each.count for each in found)]

    with pytest.raises(InvalidInput, match="one and the same size"):
        audited(noisy_count, NAMES, view=counts, builds=60, seed=seed)
    assert audited(noisy_count, NAMES, view=total, builds=60, seed=seed).holds


def test_what_was_found_with_noise_and_is_said_is_no_breach():
    def hinted(names, entropy=None):
        count = sum(each.count for each in noisy_count(names, entropy))
        return discreet.build(
            np.ones((len(names), 2)),
            np.ones((len(names), 1)),
            rows_hint=max(int(count), 1),
            entropy=entropy,
            **SPEND,
            **FEW,
        )

    names = (["flu"] * 60, ["flu"] * 61)
    assert not any("of itself" in each for each in audited(hinted, names, builds=40).reasons)


@pytest.mark.parametrize(
    ("function", "pair", "options", "message"),
    [
        (5, PAIR, {}, "build"),
        (build, PAIR, {"view": "x"}, "view"),
        (build, (iter([1]), iter([1])), {}, "many times"),
        (build, (PAIR,), {}, "a pair"),
    ],
)
def test_what_is_given_wrongly_is_named(function, pair, options, message):
    with pytest.raises(InvalidInput, match=message) as caught:
        audit(function, pair, builds=40, workers=1, **options)
    assert "'...'" not in str(caught.value)


def test_per_cents_are_not_rounded_up():
    found = audited(build, builds=40, confidence=0.999)
    assert "99.9% sure" in str(found)


def test_data_of_polars_do_not_hang():
    """Its threads do not live on in a fork: all is done here."""
    code = """
import numpy as np, polars as pl, discreet
from discreet.audit import audit
def build(rows, entropy=None):
    keys = rows.to_numpy()
    return discreet.build(keys, keys, epsilon=1, delta=1e-5, scale=1.0, entropy=entropy)
one = pl.DataFrame({"a": [0.1, 0.2], "b": [0.3, 0.1]})
two = pl.concat([one, pl.DataFrame({"a": [1.0], "b": [0.0]})])
print(audit(build, (one, two), builds=100).holds)
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.strip() == "True", done.stderr
