"""Attacks find what there is to find, and no more than is promised; a broken promise shows."""

import dataclasses
import json

import numpy as np
import pytest
from broken_noise import exact_at_the_beginning, noise_made
from data import unit_rows

import discreet
from discreet.accounting.promise import Promise
from discreet.audit import attack, attacks
from discreet.audit.attacks import Found, Named
from discreet.audit.attacks.asking import Target, climb, levels
from discreet.audit.attacks.found import percent
from discreet.audit.attacks.planting import Coins, Scene, classes_of, code_words
from discreet.audit.bounds import Test as Counted
from discreet.errors import InvalidInput
from discreet.noise import RoundedGaussian
from discreet.noise.exact import IntegerLaw
from discreet.privacy import Guarantee
from discreet.readers.attention.options import Options
from discreet.sums.settings import Settings
from discreet.testing import Seeded, Silent

KEYS, CLASSES = unit_rows(30, 3), np.eye(3) * 0.9
VALUES = CLASSES[np.arange(30) % 3]
SMALL = {"epsilon": 1.0, "delta": 1e-5, "scale": 2.0, "trials": 100, "questions": 20}


def attacked(**changed):
    """What attackers get from small files of known noise."""
    return attack(KEYS, VALUES, **{**SMALL, "entropy": Seeded(3), **changed})


@pytest.fixture(scope="module")
def strong():
    """Of files that promise little, so that a good attack finds much."""
    return attacked(epsilon=4.0, trials=1_200)


# --- what is found --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changed", [{}, {"neighbours": "replace"}, {"targets": unit_rows(5, 3, seed=1)}]
)
def test_where_nothing_is_private_all_is_found(changed):
    made = attacked(**changed)
    assert made.membership.levels
    for each in (*made.membership.levels, made.attribute, made.secret):
        assert each.exact_attention == 1
        assert each.exact_retrieval == 1
    assert all(each.named.exact_attention == 1 for each in made.questions)
    assert made.secret.exact_error < 1e-9


def test_an_attack_finds_nearly_as_much_as_is_promised_and_no_more(strong):
    assert strong.holds
    assert strong.claimed.guarantee.epsilon == 4
    for each in strong.membership.levels:
        assert each.at_best < each.promised
        assert abs(each.test.false_alarms - each.false_alarms) < 0.25 * each.false_alarms + 2e-3
    common = strong.membership.levels[-1]
    assert common.false_alarms == 0.1
    assert 0.75 * common.at_best < common.share < common.interval[1]
    assert strong.attribute.chance < 0.7 * strong.attribute.share
    assert strong.secret.error < 0.95 * strong.secret.error_without_file


def test_under_replace_an_attack_says_which_of_two_rows_it_is():
    made = attacked(neighbours="replace", epsilon=4.0, trials=500)
    common = made.membership.levels[-1]
    assert made.holds
    assert 1.5 * common.false_alarms < common.share < common.at_best
    assert "Which of two rows is in the data?" in str(made)


def test_what_is_hidden_well_is_not_found():
    made = attacked(epsilon=0.01, trials=400)
    common = made.membership.levels[-1]
    low, high = common.interval
    assert low < 0.1 < high
    assert made.attribute.interval[0] < 1 / 3 < made.attribute.interval[1]


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_noise_that_is_too_small_breaks_the_promise(monkeypatch, neighbours):
    given = {"trials": 500, "neighbours": neighbours, "epsilon": 2.0}
    assert attacked(**given).holds

    def weaker(self, layout):
        return (RoundedGaussian(sigma=0.3 * self.sigma(layout)),)

    monkeypatch.setattr(Settings, "laws", weaker)
    broken = attacked(**given)
    common = broken.membership.levels[-1]
    assert not broken.holds
    assert common.share > common.at_best
    assert "BROKEN" in broken.verdict
    assert not broken.to_dict()["holds"]


def exact_in_files(noise):
    """Of files: code words, of which there are a thousand, are drawn, too."""
    return noise if len(noise) > 2_000 else exact_at_the_beginning(noise)


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("broken", [lambda noise: noise * 0.7, exact_in_files])
def test_noise_that_no_share_shows_to_be_broken_is_seen_by_itself(broken, neighbours):
    with noise_made(broken):
        found = attacked(trials=500, neighbours=neighbours, epsilon=0.5)
    assert not found.holds
    assert "too small" in found.reasons[0]
    assert "the noise is not what the files say" in str(found)


def test_two_files_with_the_same_noise_break_the_promise(monkeypatch):
    monkeypatch.setattr(IntegerLaw, "_draw", _the_same_each_time(IntegerLaw._draw))
    found = attacked(trials=500, epsilon=0.5)
    assert not found.holds
    assert "the same noise" in found.reasons[0]


def _the_same_each_time(draw):
    kept = {}

    def again(law, count, entropy):
        return kept.setdefault(count, draw(law, count, entropy)).copy()

    return again


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_thresholds_are_chosen_by_noise_that_has_nothing_to_do_with_the_row(neighbours):
    options = Options(epsilon=9, delta=1e-5, scale=2, neighbours=neighbours)
    scene = Scene.of(KEYS, VALUES, None, options, Silent())
    plan = attacks._Plan.of(scene, CLASSES, 3_000)
    noise = np.random.default_rng(0).standard_normal((3_000, 4))
    sides = (plan.values,) if neighbours == "add_remove" else (plan.values, plan.instead)
    means = [
        np.vstack(
            [scene.means(at, value[None]) for at, value in zip(plan.targets, values, strict=True)]
        )
        for values in sides
    ]
    instead = means[1] if len(means) == 2 else np.zeros_like(means[0])
    here, aside = attacks._turned(plan, noise + means[0])
    gone, nothing = attacks._turned(plan, noise + instead)
    assert here - gone == pytest.approx(np.linalg.norm(means[0] - instead, axis=1))
    assert nothing == pytest.approx(aside, abs=1e-9)
    turned = np.column_stack([gone, nothing])
    assert np.sum(turned**2, axis=1) == pytest.approx(np.sum(noise**2, axis=1))
    assert np.cov(turned.T) == pytest.approx(np.eye(4), abs=0.12)


@pytest.mark.parametrize("classes", [np.array([[0.0], [0.5]]), np.array([[-1.0], [1.0]])])
def test_under_replace_another_row_is_as_unlike_as_bounds_allow(classes):
    options = Options(epsilon=9, delta=1e-5, scale=2, neighbours="replace")
    scene = Scene.of(KEYS, np.repeat(classes, 15, axis=0), None, options, Silent())
    plan = attacks._Plan.of(scene, classes, 40)
    assert np.abs(plan.instead) == pytest.approx(np.ones((40, 1)))
    assert np.abs(plan.values - plan.instead) == pytest.approx(1 + np.abs(plan.values))


def test_where_values_are_zero_all_is_found_from_exact_answers():
    values = np.repeat([[0.0], [1.0]], 15, axis=0)
    made = attack(KEYS, values, **{**SMALL, "entropy": Seeded(3), "neighbours": "replace"})
    assert all(each.exact_attention == 1 for each in made.membership.levels)


def test_classes_that_nobody_can_tell_apart_are_refused():
    with pytest.raises(InvalidInput, match="differ"):
        attacked(classes=np.array([[0.0] * 3, [0.0] * 3, [0.5] * 3]))


def test_a_file_is_what_build_makes_of_the_same_rows():
    options = {"epsilon": 1.0, "delta": 1e-5, "scale": 2.0}
    scene = Scene.of(KEYS, VALUES, None, Options(**options), Silent())
    row = 7
    same = scene.file(row, VALUES[row], scene.others(row))
    fewer = scene.file(row, None, scene.others(row))
    rest = np.arange(30) != row
    quiet = {**options, "entropy": Silent()}
    assert np.array_equal(same.state, discreet.build(KEYS, VALUES, **quiet).released.state)
    without = discreet.build(KEYS[rest], VALUES[rest], **quiet).released
    assert np.array_equal(fewer.state, without.state)
    assert fewer.receipt.mechanisms == without.receipt.mechanisms


def test_what_is_left_of_a_file_without_noise_is_the_row():
    scene = Scene.of(KEYS, VALUES, None, Options(epsilon=1, delta=1e-5, scale=2), Silent())
    for row in (0, 29):
        others = scene.others(row)
        left = scene.left(row, scene.file(row, CLASSES[1], others), others)
        [mean] = scene.means(row, CLASSES[1:2])
        assert left == pytest.approx(mean)
        assert np.linalg.norm(mean) <= scene.settings.mechanism.spread * (1 + 1e-9)


# --- questions ------------------------------------------------------------------------------------


def known(values):
    return Target(
        key=np.array([0.6, 0.8]),
        values=values,
        scale=1.0,
        norm=1.0,
        others=lambda queries: (np.zeros((len(queries), 1)), np.full(len(queries), 5.0)),
    )


def test_questions_are_counted_at_powers_of_ten():
    assert levels(100_000) == (10, 100, 1_000, 10_000, 100_000)
    assert levels(10) == (10,)
    assert levels(250) == (10, 100, 250)


def test_each_question_depends_on_answers_before_and_none_is_too_long():
    values = np.array([[1.0], [-1.0]])
    target, asked = known(values), {}
    for lean in (-1, 1):
        seen = asked[lean] = []

        def answer(queries, lean=lean, seen=seen):
            seen.append(queries)
            weight = np.exp(queries @ target.key)
            return (weight / (5 + weight) * (1 + lean * queries[:, 0]))[:, None]

        climb(target, answer, 100, Coins(0))
        assert sum(map(len, seen)) == 100
        assert max(np.linalg.norm(each, axis=1).max() for each in seen) <= 1 + 1e-9
    first, later = (np.array_equal(asked[-1][at], asked[1][at]) for at in (0, len(asked[1]) // 2))
    assert first
    assert not later


@pytest.mark.parametrize("secret", [0, 1])
def test_a_climber_names_what_answers_say(secret):
    values = np.array([[1.0], [-1.0]])
    target = known(values)

    def answer(queries):
        weight = np.exp(queries @ target.key)
        return (weight / (5 + weight))[:, None] * values[secret]

    assert climb(target, answer, 100, Coins(0)) == [secret, secret]


# --- judging --------------------------------------------------------------------------------------

PROMISE = Promise(Guarantee(1.0, 1e-6, "add_remove", unit="row", scope="all"), 0.5)


@pytest.mark.parametrize(("hits", "holds"), [(60, True), (200, True), (330, False), (900, False)])
def test_more_than_is_allowed_refutes_and_less_does_not(hits, holds):
    test = Counted(100, 1_000, hits, 1_000)
    found = Found(0.1, test, PROMISE.found(0.1), 0.27, 1.0, 1.0)
    assert found.holds(PROMISE, 1e-3) is holds
    named = Named(10, hits, 1_000, PROMISE.found(0.1), 0.27, 1.0, None)
    assert named.holds(PROMISE, 1e-3) is holds


def test_classes_are_the_values_that_there_are_if_they_are_few():
    assert np.array_equal(classes_of(VALUES, 1.0, 100), np.unique(VALUES, axis=0))
    assert classes_of(unit_rows(300, 2), 2.0, 100).tolist() == [[-2, 0], [2, 0]]
    same = np.ones((5, 2))
    assert classes_of(same, 1.0, 100).shape == (2, 2)


def test_coins_are_fair_and_steps_go_everywhere():
    assert np.bincount(Coins(0).whole(5, 10_000)) == pytest.approx(2_000, abs=150)
    steps = Coins(0).steps(2_001, 3)
    assert np.cov(steps.T) == pytest.approx(np.eye(3), abs=0.1)
    assert steps.mean(axis=0) == pytest.approx(0, abs=0.1)


@pytest.mark.parametrize("width", [1, 4])
def test_code_words_differ_and_are_as_long_as_may_be(width):
    words = code_words(50, width, 0.5)
    assert len(np.unique(words, axis=0)) == 50
    assert np.linalg.norm(words, axis=1).max() == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "0%"), (0.00238, "0.238%"), (0.0198, "1.98%"), (0.155, "15.5%"), (1, "100%")],
)
def test_shares_are_written_with_the_digits_that_count(share, text):
    assert percent(share) == text


def test_the_result_is_frozen_and_says_that_it_is_not_private():
    made = attacked()
    text = str(made)
    assert text.startswith("NOT PRIVATE")
    assert "proves" in text
    assert max(map(len, text.splitlines())) <= 96
    facts = json.loads(json.dumps(made.to_dict(), allow_nan=False))
    assert facts["private"] is False
    assert facts["holds"] is True
    assert [each["questions"] for each in facts["questions"]] == [10, 20]
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.claimed = None


def test_progress_comes_to_its_end(monkeypatch):
    from contextlib import contextmanager

    seen = []

    @contextmanager
    def bar(_text, *, rows, show):
        seen.append((rows, show))
        yield seen.append

    monkeypatch.setattr(attacks, "progress_bar", bar)
    attacked(progress=True)
    (rows, show), *counts = seen
    assert show
    assert rows == sum(counts)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"trials": 99}, "trials=99"),
        ({"questions": 9}, "questions=9"),
        ({"classes": [[1.0, 0, 0]]}, "two at least"),
        ({"classes": np.eye(3) * 3}, "no longer than value_norm"),
        ({"targets": np.eye(2)}, "keys of rows"),
        ({"targets": [[np.nan] * 3]}, "targets to have no NaN"),
        ({"groups": [1]}, "got groups"),
        ({"scale": None}, "rows_hint"),
    ],
)
def test_what_cannot_be_attacked_is_refused(changed, message):
    with pytest.raises(InvalidInput, match=message):
        attacked(**changed)


def test_heads_and_single_rows_are_refused():
    with pytest.raises(InvalidInput, match="one head"):
        attack(KEYS[None], VALUES[None], **SMALL)
    with pytest.raises(InvalidInput, match="two rows"):
        attack(KEYS[:1], VALUES[:1], **SMALL)


def test_noise_of_the_operating_system_is_the_default():
    made = attack(KEYS, VALUES, **SMALL)
    assert made.holds
    assert made.membership.files == 100


def test_few_questions_are_asked_of_many_memories_and_many_of_fewer():
    limits = attacks._limits(20_000, 100_000, 2_048)
    counts = [sum(each >= level for each in limits) for level in levels(100_000)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] == 400
    assert 40 < counts[-1] < 100 < counts[-2] < 200
    assert attacks._limits(100, 20, 2_048) == [20] * 10
