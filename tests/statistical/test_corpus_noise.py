"""The noise of tables, words and names is what is claimed of it, and rare names stay hidden.

What the door draws is compared with its law in both directions: the right scale is accepted, two
thirds and three halves of it are not. How often a name comes out that one unit has is compared
with what the threshold promises, at a δ so large that it can be seen.
"""

import math
from dataclasses import replace
from functools import cached_property

import numpy as np
import pytest
from corpora import CLASSES, TOPICS, VOCABULARY, encode, labels, texts
from scipy import optimize, stats

from discreet import accounting, discover
from discreet.accounting import Disclosure, Gaussian, gaussian_beside, gaussian_sigma, tight
from discreet.noise import DiscreteLaplace, RoundedGaussian
from discreet.privacy import Neighbours, Privacy
from discreet.readers.table import TABLE, TableOptions
from discreet.sums.door import Door
from discreet.sums.mechanism import build
from discreet.sums.selection import LENGTH, Selection
from discreet.sums.settings import Settings, Unit
from discreet.testing import Seeded, Silent
from discreet.text import Corpus

# Each test is run at this level; seeds are fixed, so it fails always or never.
ALPHA = 1e-4

SPEND = {"epsilon": 1.0, "delta": 1e-6}
BUILDS = 40

# --- the size of the noise ------------------------------------------------------------------------


def laplace_fits(noise, scale):
    """Whether whole numbers have this law: by the mean of |z|, which tells scales best."""
    law = DiscreteLaplace(scale=scale)
    reach = np.arange(-math.ceil(60 * scale), math.ceil(60 * scale) + 1)
    masses, sizes = law.pmf(reach), np.abs(reach)
    mean = masses @ sizes
    deviation = math.sqrt((masses @ sizes**2 - mean**2) / len(noise))
    return abs(np.abs(noise).mean() - mean) < stats.norm.isf(ALPHA / 2) * deviation


def is_laplace(noise, scale):
    """Whether noise has this scale, and neither two thirds of it nor three halves."""
    noise = np.concatenate([each.ravel() for each in noise])
    assert noise.size > 800
    assert laplace_fits(noise, scale)
    for wrong in (2 / 3, 3 / 2):
        assert not laplace_fits(noise, max(scale * wrong, 0.5))
    assert abs(np.mean(np.sign(noise))) < 5 / math.sqrt(noise.size)


def is_gaussian(noise, sigma):
    """Whether noise is normal and as large as predicted; two thirds or three halves show."""
    scaled = np.concatenate([np.ravel(each) for each in noise]) / sigma
    assert scaled.size > 300
    assert stats.kstest(scaled, "norm").pvalue > ALPHA
    for times, fits in ((1.0, True), (2 / 3, False), (3 / 2, False)):
        below = stats.chi2.cdf(np.sum((scaled * times) ** 2), scaled.size)
        assert bool(ALPHA < below < 1 - ALPHA) is fits


# What one unit can change, in rows: whom the guarantee protects, and how they change.
UNITS = {
    "rows": ({}, 1),
    "replaced rows": ({"neighbours": "replace"}, 2),
    "records": ({"group_rows": 3.0}, 3),
    "replaced records": ({"neighbours": "replace", "group_rows": 3.0}, 6),
}


def table_noise(unit, classes, epsilon):
    """Noise of the parts of tables, in rows: (part by part, build by build)."""
    options = TableOptions(
        points=np.eye(8), classes=classes, epsilon=epsilon, delta=1e-6, **UNITS[unit][0]
    )
    groups = np.arange(30) // 3 if "records" in unit else None
    keys = np.random.default_rng(0).normal(size=(30, 8))
    values = np.full(30, classes[0])

    def parts(entropy):
        rows = TABLE.source(keys, values, groups, options)
        [made] = build(TABLE, rows, options, entropy=entropy)
        return made.released

    exact = parts(Silent())
    noises = [[] for _ in (exact.state, *exact.others)]
    for seed in range(BUILDS * 3):
        noisy = parts(Seeded(seed))
        pairs = zip((noisy.state, *noisy.others), (exact.state, *exact.others), strict=True)
        for part, (one, other) in zip(noises, pairs, strict=True):
            part.append(one - other)
    return noises, exact.layout


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 12.0])
@pytest.mark.parametrize("unit", UNITS)
def test_cells_have_their_noise(unit, epsilon):
    """In rows: what a unit can change over ε; rows of records are counted more finely."""
    [noise], layout = table_noise(unit, ["a", "b"], epsilon)
    is_laplace(noise, UNITS[unit][1] * layout.units / epsilon)


@pytest.mark.parametrize("unit", UNITS)
def test_cells_of_many_labels_and_counts_of_points_have_their_parts_of_epsilon(unit):
    noises, layout = table_noise(unit, list("abcdef"), 1.0)
    for noise, share in zip(noises, (0.7, 0.3), strict=True):
        is_laplace(noise, UNITS[unit][1] * layout.units / share)


def corpus_noise(part, seeds, *, people=None, **asked):
    """Noise on a part of a corpus, in units of what one text adds."""
    some = texts(40)

    def released(entropy):
        made = Corpus.build(
            some,
            labels(40) if "classes" in asked else None,
            encoder=encode,
            people=people,
            person_texts=3.0,
            rows_hint=None,
            entropy=entropy,
            **SPEND,
            **asked,
        )
        return made.released[part]

    exact = released(Silent())
    unit = exact.layout.row_bound if part == "words" else exact.layout.units
    return [(released(Seeded(seed)).state - exact.state) / unit for seed in seeds]


def gaussian_part():
    """σ of what a table with half of ε leaves, found by another search."""

    def excess(sigma):
        gaussian = Gaussian(sigma=sigma, sensitivity=1.0, neighbours="add_remove")
        return tight([table, (gaussian, 1)], delta=1e-6) - 1.0

    table = (accounting.DiscreteLaplace(scale=2.0, sensitivity=1, neighbours="add_remove"), 1)
    return optimize.brentq(excess, 4.0, 40.0, xtol=1e-3)


@pytest.mark.parametrize("unit", ["texts", "people"])
def test_words_have_the_noise_that_topics_leave_them(unit):
    people = None if unit == "texts" else [at // 2 for at in range(40)]
    times = 1 if unit == "texts" else 3
    noise = corpus_noise("words", range(3), people=people, topics=TOPICS, words=VOCABULARY)
    is_gaussian(noise, times * gaussian_part())


@pytest.mark.parametrize("unit", ["texts", "people"])
def test_topics_have_half_of_epsilon_beside_words(unit):
    people = None if unit == "texts" else [at // 2 for at in range(40)]
    times = 1 if unit == "texts" else 3
    asked = {"topics": TOPICS, "classes": CLASSES, "words": VOCABULARY}
    noise = corpus_noise("table", range(120), people=people, **asked)
    in_rows = np.concatenate([each.ravel() for each in noise])
    if unit == "texts":
        is_laplace([np.rint(in_rows).astype(int)], times / 0.5)
    else:
        is_laplace([np.rint(in_rows * 4096).astype(int)], 4096 * times / 0.5)


# --- names ----------------------------------------------------------------------------------------


class Lower(Selection):
    """A mutant: its threshold is where the noise alone is at its claim, as if no weight was there.

    Whoever forgets what a unit adds makes this mistake.
    """

    @cached_property
    def threshold(self):
        return super().threshold - LENGTH


class OneName(Selection):
    """A mutant: its threshold is right for units with one name, and not for those with several."""

    @cached_property
    def threshold(self):
        return self._least(self.weights(1))


def door(chosen):
    """Settings of one list of names, with noise that is large beside what a unit adds."""
    return Settings(
        layouts=(),
        privacy=Privacy(0.5, 1.2 * chosen.probability, chosen.neighbours),
        unit=Unit.ROW,
        beside=(chosen.disclosure,),
        noun=("list of names", "lists of names"),
    )


def told(chosen, totals, draws):
    """How often any of these names is told."""
    whole, entropy = door(chosen), Seeded(7)
    return sum(bool(Door(whole, entropy=entropy).select(chosen, totals)) for _ in range(draws))


def chosen_for(kind, *, most, probability, neighbours, decay=1.0):
    """The names of such a release, with the noise that its budget asks for."""
    options = {"most": most, "share": 1.0, "probability": probability, "decay": decay}
    draft = Selection(multiplier=1.0, neighbours=neighbours, **options)
    return kind(multiplier=door(draft).multiplier, neighbours=neighbours, **options)


CASES = [
    pytest.param(
        most,
        decay,
        probability,
        neighbours,
        marks=[pytest.mark.slow] if most > 1 and (decay == 1.0 or probability == 0.05) else [],
    )
    for most, decay in ((1, 1.0), (4, 1.0), (4, 0.7), (16, 1.0))
    for probability in (0.05, 0.2)
    for neighbours in Neighbours
]
DRAWS = 4_000


@pytest.mark.parametrize(("most", "decay", "probability", "neighbours"), CASES)
def test_names_of_one_unit_are_told_as_rarely_as_is_promised(most, decay, probability, neighbours):
    """Added: its names come out with at most p. Removed: the same, from the other side.

    Whatever number of names it has; and for the worst number, about as often as p: no less.
    """
    chosen = chosen_for(
        Selection, most=most, probability=probability, neighbours=neighbours, decay=decay
    )
    rates = []
    for names in {1, (most + 1) // 2, most}:
        totals = dict(zip(map(str, range(names)), chosen.weights(names), strict=True))
        count = told(chosen, totals, DRAWS)
        assert stats.binom.sf(count - 1, DRAWS, probability) > ALPHA
        rates.append(count)
    assert stats.binom.cdf(max(rates), DRAWS, 2 / 3 * probability) > 1 - ALPHA


@pytest.mark.parametrize("mutant", [Lower, OneName])
@pytest.mark.parametrize("probability", [0.05, 0.2])
def test_a_threshold_that_is_too_low_is_seen(probability, mutant):
    most = 16 if mutant is OneName else 1
    chosen = chosen_for(
        mutant, most=most, probability=probability, neighbours=Neighbours.ADD_REMOVE
    )
    totals = dict(zip(map(str, range(most)), chosen.weights(most), strict=True))
    count = told(chosen, totals, DRAWS)
    assert stats.binom.sf(count - 1, DRAWS, probability) < ALPHA


@pytest.mark.parametrize("most", [1, 4])
def test_removing_a_unit_changes_what_is_told_of_others_as_the_guarantee_says(most):
    """Both directions of (ε, δ), for the event that shows the unit best: measured on one name.

    With the unit "shared" has one more; and "own" is there. The event that "own" is told has at
    most p; the event that the noisy total of "shared" is above any level moves as a Gaussian does.
    """
    chosen = chosen_for(Selection, most=most, probability=0.1, neighbours=Neighbours.ADD_REMOVE)
    whole = door(chosen)
    weights = chosen.weights(2) if most > 1 else (0, *chosen.weights(1))
    base = round(chosen.threshold - 0.5 * chosen.law.sigma)
    without = {"shared": base}
    with_unit = {"shared": base + weights[0], "own": weights[1]}
    results = {}
    for name, totals in (("with", with_unit), ("without", without)):
        entropy = Seeded(11)
        results[name] = [Door(whole, entropy=entropy).select(chosen, totals) for _ in range(DRAWS)]
    epsilon, delta = whole.privacy.epsilon, whole.privacy.delta
    events = [lambda out: "own" in out]
    events += [
        lambda out, level=level: out.get("shared", 0) >= level
        for level in chosen.threshold + np.linspace(0, 2, 5) * chosen.law.sigma
    ]
    events += [lambda out, each=each: not each(out) for each in list(events)]
    slack = 5 / math.sqrt(DRAWS)
    for event in events:
        one, other = (sum(map(event, results[name])) / DRAWS for name in ("with", "without"))
        assert one <= math.exp(epsilon) * other + delta + slack
        assert other <= math.exp(epsilon) * one + delta + slack
    assert stats.binom.sf(sum(map(events[0], results["with"])) - 1, DRAWS, 0.1) > ALPHA
    assert not any(map(events[0], results["without"]))


@pytest.mark.parametrize("neighbours", Neighbours)
def test_totals_of_names_have_their_noise(neighbours):
    """Of names that everybody has: none is below the threshold, so nothing is cut off."""
    said, times = [f"name {at}" for at in range(400)], 1.0
    if neighbours is Neighbours.REPLACE:
        times = math.sqrt(2)
    made = discover(
        [said[at] for at in range(400) for _ in range(500)],
        neighbours=neighbours,
        entropy=Seeded(3),
        **SPEND,
    )
    assert len(made) == 400
    beside = [(Disclosure(probability=5e-7, neighbours=neighbours), 1)]
    sigma = times * gaussian_beside(beside, target=Privacy(1.0, 1e-6, neighbours))
    # With p = δ/2 in all, the Gaussian has (δ - p)/(1 - p): by its closed form.
    left = (1e-6 - 5e-7) / (1 - 5e-7)
    assert sigma == pytest.approx(times * gaussian_sigma(epsilon=1.0, delta=left), rel=2e-4)
    is_gaussian([[each.count - 500 for each in made]], sigma)
    assert all(each.margin == pytest.approx(1.96 * sigma, rel=1e-3) for each in made)


def test_names_that_many_have_come_out_and_names_of_one_do_not():
    said = [["flu", f"only {at}"] for at in range(4_000)]
    for seed in range(5):
        made = discover(said, most=2, entropy=Seeded(seed), **SPEND)
        assert made.names == ("flu",)
    [found] = made
    assert found.count == pytest.approx(4_000 / math.sqrt(2), abs=3 * found.margin)


@pytest.mark.parametrize("most", [1, 3])
def test_about_half_of_the_names_that_just_reach_the_threshold_come_out(most):
    """Noise is neither less nor more, where it matters most."""
    chosen = chosen_for(Selection, most=most, probability=0.01, neighbours=Neighbours.ADD_REMOVE)
    totals = {str(at): chosen.threshold for at in range(2_000)}
    found = Door(door(chosen), entropy=Seeded(1)).select(chosen, totals)
    assert ALPHA < stats.binom.cdf(len(found), 2_000, 0.5) < 1 - ALPHA
    lifted = {name: total + round(chosen.law.sigma) for name, total in totals.items()}
    above = len(Door(door(chosen), entropy=Seeded(2)).select(chosen, lifted))
    for sigma, fits in ((1.0, True), (2 / 3, False), (3 / 2, False)):
        rate = stats.norm.cdf(1 / sigma)
        assert bool(ALPHA < stats.binom.cdf(above, 2_000, rate) < 1 - ALPHA) is fits


@pytest.mark.slow
def test_counts_of_names_in_a_corpus_are_as_far_off_as_they_say():
    """Their intervals hold as often as they say, and narrower ones do not."""
    names = [f"Zar{one}{other}umab" for one in "bcdfghklmn" for other in "aeiouy"]
    some = texts(1_500, names=names)
    exact = {name.lower(): sum(name in each for each in some) for name in names}
    off = []
    for seed in range(5):
        made = Corpus.build(
            some, encoder=encode, facts=True, epsilon=7.0, delta=1e-4, entropy=Seeded(seed)
        )
        off += [(each.count - exact[each.word]) / each.margin for each in made.facts]
    assert len(off) > 200
    for times, fits in ((1.0, True), (2 / 3, False), (3 / 2, False)):
        inside = sum(abs(each) <= times for each in off)
        assert bool(ALPHA < stats.binom.cdf(inside, len(off), 0.95) < 1 - ALPHA) is fits


def test_noise_of_the_parts_of_a_corpus_is_not_shared():
    """Noise that two parts or two builds shared would show in one of them."""
    parts = []
    for seed in range(2):
        made = Corpus.build(
            texts(300),
            labels(300),
            encoder=encode,
            topics=TOPICS,
            classes=CLASSES,
            words=VOCABULARY,
            facts=True,
            epsilon=6.0,
            delta=1e-4,
            entropy=Seeded(seed),
        )
        parts += [each.state.ravel() for each in made.released.values() if each.state.size > 40]
    assert len(parts) >= 4
    for number, one in enumerate(parts):
        for other in parts[:number]:
            count = min(one.size, other.size)
            assert not np.array_equal(one[:count], other[:count])


def test_all_draws_of_a_door_come_from_the_entropy_that_it_was_given(monkeypatch):
    """Nothing is drawn anywhere else: with the same source, all is the same to the bit."""
    drawn = []
    for law in (RoundedGaussian, DiscreteLaplace):
        sample = law.sample

        def seen(self, size, *, entropy=None, sample=sample):
            drawn.append(entropy)
            return sample(self, size, entropy=entropy)

        monkeypatch.setattr(law, "sample", seen)
    source = Seeded(5)
    asked = {"topics": TOPICS, "words": VOCABULARY, "facts": True, "epsilon": 6.0, "delta": 1e-4}
    one = Corpus.build(texts(300), encoder=encode, entropy=source, **asked)
    assert len(drawn) > 4
    assert all(each is source for each in drawn)
    other = Corpus.build(texts(300), encoder=encode, entropy=Seeded(5), **asked)
    for name, released in one.released.items():
        assert np.array_equal(released.state, other.released[name].state)
    assert replace(one.receipt, id="x") == replace(other.receipt, id="x")
