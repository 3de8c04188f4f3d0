"""The noise of every pass over a table is what is claimed of it, neither less nor more.

What the door draws is watched, and compared with σ(ε, δ) times what a row can change over the root
of the pass's share, all of it computed here by hand, in real units.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from glm import LINEAR
from rounds import asked_by, some_cells, tables, unknown_tables
from scipy import stats

from discreet.accounting import gaussian_sigma
from discreet.errors import BudgetExceeded
from discreet.features.columns import Unknown
from discreet.noise import RoundedGaussian
from discreet.readers.glm.layout import GlmRounds
from discreet.readers.glm.mechanism import GLM
from discreet.readers.rounds.counts import Counts
from discreet.readers.rounds.layout import RoundLayout
from discreet.readers.softmax.layout import Calibration, Rounds
from discreet.readers.softmax.mechanism import SOFTMAX
from discreet.testing import Seeded

# Each test is run at this level; seeds are fixed, so it fails always or never.
ALPHA = 1e-4

SPEND = {"epsilon": 1.0, "delta": 1e-6}
SIGMA = gaussian_sigma(**SPEND)
SEEDS = range(8)

TABLE, UNKNOWN = tables()["mixed with waves"], unknown_tables()["several"]
RUNS = {
    "classes": (SOFTMAX, TABLE, {"classes": range(4)}),
    "classes, found": (SOFTMAX, UNKNOWN, {"classes": range(2)}),
    "numbers": (GLM, TABLE, {}),
    "numbers, found": (GLM, UNKNOWN, {}),
    "numbers, not aimed": (GLM, TABLE, {"aim": False}),
    "numbers, not aimed, found": (GLM, UNKNOWN, {"aim": False}),
    "labels": (GLM, TABLE, {"loss": "logistic"}),
    "labels, found": (GLM, UNKNOWN, {"loss": "logistic"}),
}
# What one unit can change, in rows: whom the guarantee protects, and how they change.
UNITS = {
    "rows": ({}, 1),
    "replaced rows": ({"neighbours": "replace"}, 2),
    "records": ({"group_rows": 3.0}, 3),
    "replaced records": ({"neighbours": "replace", "group_rows": 3.0}, 6),
}
OUTPUTS = 3


@dataclass(frozen=True, eq=False)
class Drawn:
    """Noise of one pass: the layout that asked for it, its share, and what was drawn for a part."""

    layout: object
    share: float
    noises: list


@cache
def drawn(run, unit="rows", seed=0, rows=40):
    """All noise that a run draws, pass by pass, and what it releases."""
    mechanism, kernel, changes = RUNS[run]
    keys = some_cells(kernel, rows)
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, rows)
    values = labels if mechanism is SOFTMAX else rng.uniform(-2, 2, (rows, OUTPUTS))
    options = SPEND | {"features": kernel} | changes | UNITS[unit][0]
    groups = np.arange(rows) // 2 if "group_rows" in options else None
    noises, sample = [], RoundedGaussian.sample

    def watched(law, size, *, entropy=None):
        noises.append(sample(law, size, entropy=entropy))
        return noises[-1].copy()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RoundedGaussian, "sample", watched)
        asked, made = asked_by(mechanism, keys, values, groups, entropy=Seeded(seed), **options)
    passes = []
    for each in asked:
        [layout] = each.settings.layouts
        taken = [noises.pop(0) for _ in layout.shapes]
        assert [noise.shape for noise in taken] == list(layout.shapes)
        passes.append(Drawn(layout, each.settings.share, taken))
    assert noises == []
    return passes, made


def is_of_size(noise, predicted):
    """Whether noise is normal and as large as predicted; two thirds or three halves show."""
    scaled = np.concatenate([each.ravel() for each in noise]) / predicted
    assert scaled.size > 300
    assert stats.kstest(scaled, "norm").pvalue > ALPHA
    for times, fits in ((1.0, True), (2 / 3, False), (3 / 2, False)):
        below = stats.chi2.cdf(np.sum((scaled * times) ** 2), scaled.size)
        assert bool(ALPHA < below < 1 - ALPHA) is fits


def of_kind(kind, part, *build, seeds=SEEDS):
    """Noise of one part of all passes with layouts of a kind, in real units."""
    noises = []
    for seed in seeds:
        passes = [each for each in drawn(*build, seed)[0] if type(each.layout) is kind]
        noises += [each.noises[part] * each.layout.real_unit for each in passes]
    assert noises
    return noises


def rounds_of(*build, first, seeds=SEEDS):
    """Noise on the sums of the first round, or of all later ones, in real units."""
    noises = []
    for seed in seeds:
        rounds = [each for each in drawn(*build, seed)[0] if isinstance(each.layout, RoundLayout)]
        assert len(rounds) == 16
        wanted = rounds[:1] if first else rounds[1:]
        noises += [each.noises[0] * each.layout.real_unit for each in wanted]
    return noises


def layout_of(run):
    return drawn(run)[1].released.layout


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("run", ["classes, found", "numbers, found", "labels, found"])
def test_finding_columns_has_its_noise(run, unit):
    """A row marks one cell of each of five columns; replaced, it moves them by √2 of that."""
    share, times = layout_of(run).finding, UNITS[unit][1]
    assert 0.05 <= share <= 0.2
    times = math.sqrt(2) if unit == "replaced rows" else times
    found = [
        each.noises[0] * each.layout.real_unit
        for seed in SEEDS
        for each in drawn(run, unit, seed)[0]
        if isinstance(each.layout, Counts) and each.layout.cells == 2 * 105 + 3 * 512
    ]
    assert len(found) == len(SEEDS)
    is_of_size(found, times * SIGMA * math.sqrt(5) / math.sqrt(share))


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("run", ["numbers", "numbers, found"])
def test_aiming_has_its_noise_in_every_pass(run, unit):
    """A row marks one cell for each output, or fewer."""
    layout, times = layout_of(run), UNITS[unit][1]
    times = math.sqrt(2) if unit == "replaced rows" else times
    aimed = [
        each
        for seed in SEEDS
        for each in drawn(run, unit, seed)[0]
        if isinstance(each.layout, Counts) and each.layout.cells != 2 * 105 + 3 * 512
    ]
    marks = {each.layout.marks for each in aimed}
    passes = len(aimed) // len(SEEDS)
    assert sum(each.share for each in aimed[:passes]) == pytest.approx(layout.aiming, rel=1e-12)
    [mark] = marks
    predicted = times * SIGMA * math.sqrt(mark) / math.sqrt(layout.aiming / passes)
    is_of_size([each.noises[0] * each.layout.real_unit for each in aimed], predicted)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("run", RUNS)
def test_later_rounds_have_their_noise(run, unit):
    layout = layout_of(run)
    predicted = UNITS[unit][1] * SIGMA * layout.clip / math.sqrt(layout.of_round)
    is_of_size(rounds_of(run, unit, first=False, seeds=range(2)), predicted)


@pytest.mark.parametrize("unit", ["rows", "records", "replaced records"])
@pytest.mark.parametrize("run", ["classes", "numbers", "labels"])
def test_the_first_round_has_its_noise_on_sums_and_second_moments(run, unit):
    layout, times = layout_of(run), UNITS[unit][1]
    predicted = times * SIGMA * layout.clip / math.sqrt(layout.of_round)
    is_of_size(rounds_of(run, unit, first=True), predicted)
    for part, size in ((1, 1.0), (2, math.sqrt(0.5))):
        noises = [
            each.noises[part] / each.layout.moment_unit**2
            for seed in SEEDS
            for each in drawn(run, unit, seed)[0]
            if isinstance(each.layout, RoundLayout) and each.layout.share
        ]
        assert len(noises) == len(SEEDS)
        is_of_size(noises, times * SIGMA * size / math.sqrt(layout.moments))


def test_the_first_round_of_replaced_rows_has_its_whole_share_for_the_sums_alone():
    """Sums and second moments of two rows are never at their worst together."""
    for run in ("classes", "numbers"):
        layout = layout_of(run)
        predicted = 2 * SIGMA * layout.clip / math.sqrt(layout.of_first)
        is_of_size(rounds_of(run, "replaced rows", first=True), predicted)


# Two numbers of noise for each: of the constant and of the key, which is zero.
CONFIDENCE, FREQUENCY = (1, 10, 2), (1, 9, 2)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(
    ("shape", "length", "part"),
    [(CONFIDENCE, 3.0, 2 / 3), (FREQUENCY, math.sqrt(2), 1 / 3)],
    ids=["confidence", "frequency"],
)
def test_both_passes_of_the_calibration_have_their_noise(shape, length, part, unit):
    """Eight differences and a curvature are at most 3 long, a label and probabilities √2."""
    noises = [
        noise
        for noise in of_kind(Calibration, 0, "classes", unit, seeds=range(25))
        if noise.shape == shape
    ]
    assert len(noises) == 25
    is_of_size(noises, UNITS[unit][1] * length * SIGMA / math.sqrt(0.03 * part))


@pytest.mark.parametrize("unit", UNITS)
def test_totals_of_classes_of_tables_are_as_far_off_as_they_say(unit):
    """No row is of the last two classes: their totals are noise."""
    errors = []
    for seed in range(100):
        made = drawn("classes", unit, seed, 2)[1]
        totals, stated = made.totals
        errors.append(totals[2:] / stated)
    scaled = np.concatenate(errors)
    for times, fits in ((1.0, True), (2 / 3, False), (3 / 2, False)):
        below = stats.chi2.cdf(np.sum((scaled * times) ** 2), scaled.size)
        assert bool(ALPHA < below < 1 - ALPHA) is fits


@pytest.mark.parametrize("run", RUNS)
def test_shares_of_all_passes_of_a_run_add_up_to_one(run):
    passes, made = drawn(run)
    layout = made.released.layout
    assert math.fsum(each.share for each in passes) == pytest.approx(1, abs=1e-12)
    counted = [each.share for each in passes if isinstance(each.layout, Counts)]
    aiming = getattr(layout, "aiming", 0.0)
    assert math.fsum(counted) == pytest.approx(layout.finding + aiming, abs=1e-12)
    assert bool(layout.finding) is ("found" in run)
    assert bool(aiming) is (run in {"numbers", "numbers, found"})
    judged = [each.share for each in passes if isinstance(each.layout, Calibration)]
    judging = getattr(layout, "judging", 0.0)
    assert judged == pytest.approx([judging * 2 / 3, judging / 3] if judging else [], rel=1e-12)
    rounds = [each.share for each in passes if isinstance(each.layout, RoundLayout)]
    wanted = [layout.of_round + layout.moments] + [layout.of_round] * 15
    assert rounds == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("run", RUNS)
def test_a_run_that_spends_more_than_there_is_is_refused(run, monkeypatch):
    """A part in a hundred more for each round; what is left of the last pass then does not fit."""
    for kind in (Rounds, GlmRounds):
        before = kind.of_round.fget
        more = property(lambda self, before=before: before(self) * 1.01)
        monkeypatch.setattr(kind, "of_round", more)
    drawn.cache_clear()
    try:
        with pytest.raises(BudgetExceeded, match="not been made"):
            drawn(run)
    finally:
        drawn.cache_clear()


@pytest.mark.parametrize("hint", [None, 30, 300, 3_000, 10**6])
@pytest.mark.parametrize("columns", [1, 5, 60])
def test_more_is_spent_on_finding_where_rows_are_few_and_never_more_than_a_fifth(hint, columns):
    """And shares still add up to one: from public numbers, before a row is read."""
    kernel = type(UNKNOWN)((Unknown(numbers=True),) * columns)
    for mechanism, more in ((SOFTMAX, {"classes": range(2)}), (GLM, {}), (GLM, {"aim": False})):
        options = mechanism.options(**SPEND, features=kernel, rows_hint=hint, **more)
        values = np.zeros(1, int) if mechanism is SOFTMAX else np.zeros((1, 1))
        rows = mechanism.source(np.zeros((1, columns)), values, None, options)
        [layout] = mechanism.resolve(rows.shapes, options).layouts
        assert 0.05 <= layout.finding <= 0.2
        whole = 16 * layout.of_round + layout.besides
        assert whole == pytest.approx(1, abs=1e-12)


def test_passes_have_noise_of_their_own():
    """Noise that two of them shared would show in one of them."""
    for run in RUNS:
        parts = [noise.ravel() for each in drawn(run)[0] for noise in each.noises]
        parts = [part for part in parts if part.size > 40]
        for number, one in enumerate(parts):
            for other in parts[:number]:
                count = min(one.size, other.size)
                assert abs(np.corrcoef(one[:count], other[:count])[0, 1]) < 0.65


def test_a_regression_on_points_has_the_same_noise_as_one_on_tables():
    keys = np.random.default_rng(0).normal(size=(30, 3))
    options = SPEND | {"features": LINEAR, "key_norm": 2.0}
    asked, made = asked_by(GLM, keys, np.zeros((30, 1)), entropy=Seeded(0), **options)
    layout = made.released.layout
    for each in asked[-15:]:
        [own] = each.settings.layouts
        [law] = each.settings.laws(own)
        predicted = SIGMA * layout.clip / math.sqrt(layout.of_round)
        assert law.sigma * own.real_unit == pytest.approx(predicted, rel=1e-3)
