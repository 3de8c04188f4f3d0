"""What a row adds to a round, what is claimed of it, and what comes back from a file."""

import json
import math

import numpy as np
import pytest
from data import unit_rows
from maps import KINDS, maps
from rounds import CLIP, calibration, exact_sums, round_of, rounds_of, settings_of

from discreet import InvalidInput
from discreet.accounting import gaussian_sigma
from discreet.kernels import FEATURE_RADIUS, Fourier
from discreet.noise.exact import LARGEST_SCALE
from discreet.privacy import Neighbours, Privacy
from discreet.readers.rounds.layout import Weights
from discreet.readers.softmax.layout import Round, Rounds
from discreet.sums.moments import drawable
from discreet.sums.settings import Unit, part_sigmas, unit_sensitivity

MAPS = maps(3)
LONGEST = 2**36
OPTIONS = {"clip": 0.7, "resolution": 17, "rounds": 5, "moments": 0.1, "judging": 0.07}


def weights_of(kind="linear", classes=3, scale=2.0, seed=0):
    shape = (MAPS[kind].features, classes)
    return np.random.default_rng(seed).normal(size=shape) * scale


def this_round(kind="linear", **changes):
    options = {"kernel": MAPS[kind], "class_count": 3, "clip": CLIP, "resolution": 14}
    return Round(**options | changes)


@pytest.mark.parametrize("scale", [1e-30, 1e-6, 1.0, 977.0, 1e9, 1e30])
def test_weights_are_rounded_as_finely_as_exact_logits_allow(scale):
    given = weights_of(scale=scale)
    made = Weights.of(given)
    assert np.array_equal(made.integers, np.rint(made.integers))
    longest = np.sqrt(np.sum(made.integers**2, axis=0)).max()
    assert longest <= LONGEST
    assert longest >= LONGEST / 5 or made.bits == 40
    np.testing.assert_allclose(made.real, given, atol=2.0 ** -(made.bits + 1))
    assert made.real.max() == pytest.approx(given.max(), rel=1e-9) or scale < 1e-9


def test_weights_just_below_a_power_of_two_are_not_rounded_beyond_the_bound():
    for seed in range(20):
        made = Weights.of(unit_rows(3, 9, seed=seed).T * (1 - 2.0**-52))
        assert np.sum(made.integers**2, axis=0).max() <= LONGEST**2


def test_weights_of_nothing_are_nothing():
    made = Weights.of(np.zeros((4, 2)))
    assert np.array_equal(made.real, np.zeros((4, 2)))


def test_the_longest_column_decides_and_may_just_reach_the_bound():
    column = np.zeros((4, 2))
    column[0, 1] = LONGEST
    assert Weights(column, 3).bits == 3
    for wrong in (column + np.eye(4, 2)[:, ::-1], column * 2, column + 0.5, column * np.nan):
        with pytest.raises(InvalidInput, match=r"2\^36"):
            Weights(wrong, 3)
    both = np.full((4, 2), LONGEST / 2.0)  # each column has the longest length
    assert Weights(both, 0).integers.shape == (4, 2)
    with pytest.raises(InvalidInput, match=r"2\^36"):
        Weights(np.full((5, 2), LONGEST / 2.0), 0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300])
def test_weights_that_are_no_numbers_or_too_large_are_refused(bad):
    given = weights_of()
    given[1, 1] = bad
    with pytest.raises(InvalidInput), np.errstate(all="ignore"):
        Weights.of(given)


def test_weights_stay_as_they_were_checked():
    own = np.ones((4, 2))
    made = Weights(own, 0)
    own[:] = 2.0**50
    assert np.all(made.integers == 1)
    with pytest.raises(ValueError, match="read-only"):
        made.integers[:] = 2.0**50


@pytest.mark.parametrize("kind", KINDS)
def test_the_sums_are_those_of_a_loop_over_rows(kind):
    weights = weights_of(kind)
    whole = settings_of(rounds_of(MAPS[kind], 3))
    keys, labels = unit_rows(40, 3), np.arange(40) % 3
    features = MAPS[kind].key_features(keys).features.astype(np.int64)
    for this in (round_of(whole), round_of(whole, weights)):
        [layout] = this.layouts
        state, *moments = exact_sums(this, keys, labels)
        used = np.zeros_like(weights) if layout.weights is None else layout.weights.real
        q = []
        for row, label in zip(features, labels, strict=True):
            logits = row / MAPS[kind].unit @ used
            shares = np.exp(logits - logits.max())
            shares /= shares.sum()
            shares[label] -= 1
            shares *= min(1, CLIP / np.linalg.norm(shares))
            q.append(shares)
        truth = np.array(q).T @ features * layout.lattice.step**-1
        off = np.abs(state[0] - truth).max() * layout.real_unit
        assert off < 40 * 5e-4
        if moments:
            squares = sum(map(np.outer, features, features))
            assert np.array_equal(layout.matrices(*moments)[0], squares)
        assert len(state[0]) == 3
        exact = np.concatenate(
            [exact_sums(this, keys[i : i + 1], labels[i : i + 1])[0] for i in range(40)]
        )
        assert np.array_equal(state[0], exact.sum(axis=0))


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_adds_the_same_alone_in_any_batch_and_at_any_place(kind):
    layout = this_round(kind, weights=Weights.of(weights_of(kind, scale=30.0)))
    features = MAPS[kind].key_features(unit_rows(90, 3)).features[None].copy()
    places = np.arange(90.0)[:, None] % 3
    together = layout.weighed(features, places, None)[0]
    assert np.all(np.sum(together**2, axis=1) <= layout.radius**2)
    order = np.random.default_rng(3).permutation(90)
    assert np.array_equal(
        layout.weighed(features[:, order], places[order], None)[0], together[order]
    )
    for row in range(0, 90, 11):
        some = slice(row, row + 1)
        alone = layout.weighed(features[:, some], places[some], None)[0]
        assert np.array_equal(alone[0], together[row])
    fortran = np.asfortranarray(features[0])[None]
    assert np.array_equal(layout.weighed(fortran, places, None)[0], together)


def test_logits_are_exact_for_the_longest_weights_and_features():
    """‖a‖ ≤ 2^16 and ‖W‖ ≤ 2^36: every sum stays below 2^53, so no order of adding rounds."""
    kernel = MAPS["linear"]
    features = kernel.key_features(unit_rows(60, 3)).features
    weights = Weights.of(unit_rows(2, kernel.features, seed=4).T * 1e9)
    exact = [
        [
            sum(int(a) * int(w) for a, w in zip(row, column, strict=True))
            for column in weights.integers.T
        ]
        for row in features
    ]
    assert np.array_equal(features @ weights.integers, np.array(exact, dtype=float))
    assert max(abs(each) for row in exact for each in row) > 2**49


def test_a_sum_of_many_rows_stays_exact():
    for kind in KINDS:
        for each in (
            this_round(kind),
            this_round(kind, share=0.3),
            this_round(kind, resolution=22),
        ):
            entry = MAPS[kind].entry_bound
            largest = entry * max(each.radius, entry if each.share else 0)
            assert each.exact_rows * largest <= 2**53
            assert each.most_rows * largest <= 2**62
            assert each.radius <= 2**each.resolution
    with pytest.raises(InvalidInput, match="raise rows_hint"):
        this_round(resolution=22).check_rows(2**40)


def test_one_real_unit_is_one_step_of_a_residual_times_one_of_a_feature():
    each = this_round()
    assert each.real_unit == pytest.approx(CLIP / each.radius / FEATURE_RADIUS, rel=1e-3)
    assert each.outer_bound * each.real_unit == pytest.approx(CLIP, rel=1e-3)
    assert each.outer_bound * each.real_unit <= CLIP


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"class_count": 1}, "class_count"),
        ({"class_count": 2**14 + 1}, "class_count"),
        ({"clip": 0.0}, "clip"),
        ({"clip": 2.5}, "clip"),
        ({"clip": math.nan}, "clip"),
        ({"resolution": 7}, "resolution"),
        ({"resolution": 23}, "resolution"),
        ({"heads": (2,)}, "heads"),
        ({"share": 1.0}, "share"),
        ({"share": 1e-9}, "share"),
        ({"coarseness": -1}, "coarseness"),
        ({"coarseness": 9}, "coarseness"),
        ({"weights": Weights.of(np.zeros((4, 2)))}, "weights"),
        ({"weights": Weights.of(np.zeros((3, 3)))}, "weights"),
        ({"kernel": Fourier(3, scale=1.0, key_norm=1.0, query_norm=1.0)}, "features"),
    ],
)
def test_a_round_that_makes_no_sense_is_refused(changes, message):
    with pytest.raises(InvalidInput, match=message):
        this_round(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rounds": 0}, "rounds"),
        ({"rounds": 2**13}, "rounds"),
        ({"moments": -0.1}, "moments"),
        ({"moments": 0.0}, "moments"),
        ({"moments": 0.6}, "moments"),
        ({"judging": 0.0}, "judging"),
        ({"judging": 0.3}, "judging"),
        ({"judging": math.nan}, "judging"),
        ({"clip": 3.0}, "clip"),
        ({"heads": (2,)}, "heads"),
    ],
)
def test_rounds_that_make_no_sense_are_refused(changes, message):
    with pytest.raises(InvalidInput, match=message):
        rounds_of(MAPS["linear"], 3, **changes)


@pytest.mark.parametrize("classes", [(1,), (), (1, 1), ("a", "b", "a")])
def test_fewer_than_two_classes_and_classes_that_are_there_twice_are_refused(classes):
    with pytest.raises(InvalidInput, match="classes"):
        Rounds(kernel=MAPS["linear"], classes=classes, **OPTIONS)


@pytest.mark.parametrize("classes", [(0, 1), ("no", "yes"), (-1.5, 2.5), (False, True)])
@pytest.mark.parametrize("kind", KINDS)
def test_it_comes_back_from_its_parameters_and_arrays(kind, classes):
    each = Rounds(kernel=MAPS[kind], classes=classes, **OPTIONS)
    again = Rounds.restore(json.loads(json.dumps(each.parameters())), each.arrays())
    assert again.parameters() == each.parameters()
    assert {name: getattr(again, name) for name in OPTIONS} == OPTIONS
    assert again.classes == each.classes == classes
    assert (again.of_first, again.of_round) == (each.of_first, each.of_round)
    assert again.radius == each.radius
    keys = unit_rows(5, 3)
    mine, theirs = (one.kernel.key_features(keys).features for one in (each, again))
    assert np.array_equal(mine, theirs)


def test_classes_are_in_order():
    each = Rounds(kernel=MAPS["linear"], classes=("a", "b", "c"), **OPTIONS)
    assert each.columns == 3
    with pytest.raises(InvalidInput, match="in order"):
        Rounds(kernel=MAPS["linear"], classes=("c", "a", "b"), **OPTIONS)


@pytest.mark.parametrize("judging", [0.001, 0.03, 0.25])
@pytest.mark.parametrize("moments", [0.001, 0.03, 0.25])
@pytest.mark.parametrize("count", [1, 2, 16, 90])
def test_shares_of_all_releases_add_up_to_one(count, moments, judging):
    each = rounds_of(MAPS["linear"], rounds=count, moments=moments, judging=judging, resolution=14)
    shares = each.of_first + (count - 1) * each.of_round + judging
    assert shares == pytest.approx(1, abs=1e-12)
    whole = settings_of(each)
    later = round_of(whole, np.zeros((4, 2)))
    of_parts = [round_of(whole).share, *[later.share] * (count - 1), calibration(whole).share]
    assert math.fsum(of_parts) == pytest.approx(1, abs=1e-12)
    first = each.first()
    assert first.share == pytest.approx(moments / each.of_first, abs=1e-12)
    assert first.weights is None
    later = each.at(Weights.of(np.zeros((4, 2))))
    assert later.share == 0
    assert later.part_names == ("state",)
    for made in (first, later):
        assert (made.clip, made.resolution, made.kernel) == (
            each.clip,
            each.resolution,
            each.kernel,
        )
        assert made.class_count == 2


@pytest.mark.parametrize("coarseness", range(1, 9))
def test_cut_features_are_no_longer_than_their_bound_and_what_they_stand_for(coarseness):
    each = this_round("waves", share=0.3, coarseness=coarseness)
    features = MAPS["waves"].key_features(unit_rows(50, 3)).features
    cut = each.coarse(features)
    assert np.array_equal(cut, np.trunc(features / 2**coarseness))
    bound = FEATURE_RADIUS // 2**coarseness
    assert max(sum(int(x) ** 2 for x in row) for row in cut) <= bound**2
    np.testing.assert_allclose(cut / each.moment_unit, features / each.kernel.unit, atol=2.0**-8)
    assert np.array_equal(this_round("waves", share=0.3).coarse(features), features)


@pytest.mark.parametrize("unit", Unit)
@pytest.mark.parametrize("neighbours", Neighbours)
def test_features_are_cut_where_noise_could_not_be_drawn_and_only_there(neighbours, unit):
    layout = this_round("waves", share=0.3, resolution=8)
    seen = set()
    for epsilon in (5.0, 0.5, 0.05, 0.01, 1e-3):
        privacy = Privacy(epsilon, 1e-6, neighbours)
        multiplier = gaussian_sigma(epsilon=epsilon, delta=1e-6)
        made = drawable(layout, privacy, unit, 1.0, 0.09)
        largest, fits = (
            max(part_sigmas(each, unit_sensitivity(each, neighbours, unit, 1.0) * multiplier / 0.3))
            for each in (layout, made)
        )
        assert (made is layout) is (largest <= LARGEST_SCALE)
        assert fits <= LARGEST_SCALE
        if made.coarseness:
            assert fits > LARGEST_SCALE / 16  # not more than needed
        seen.add(made.coarseness)
        assert made.share == layout.share
    assert len(seen) > 2


def test_sums_are_the_same_whether_moments_are_cut_or_not():
    whole = settings_of(rounds_of(MAPS["waves"]))
    keys, labels = unit_rows(30, 3), np.arange(30) % 2
    plain, cut = (exact_sums(round_of(whole, coarseness=c), keys, labels) for c in (0, 5))
    assert np.array_equal(plain[0], cut[0])
    squares = [
        round_of(whole, coarseness=c).layouts[0].matrices(*parts[1:])[0] * 4.0**c
        for c, parts in ((0, plain), (5, cut))
    ]
    np.testing.assert_allclose(*squares, atol=30 * 2.0**22)
