"""How far sums of a regression in rounds can move: up to the claim of every pass, never beyond."""

import math

import numpy as np
import pytest
from glm import LINEAR, glm_rounds
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from rounds import (
    ROUNDED,
    asked_by,
    drawn_cells,
    exact_sums,
    moved,
    round_of,
    settings_of,
    some_cells,
    tables,
    unknown_tables,
)

from discreet.privacy import Neighbours
from discreet.readers.glm.layout import Loss
from discreet.readers.glm.mechanism import GLM
from discreet.readers.rounds.layout import Weights
from discreet.sums.settings import Unit
from discreet.testing import Seeded

MAPS = tables() | {"linear": LINEAR}
KINDS = tuple(MAPS)
GROUP_ROWS = [0.5, 1.0, 3.0]
WHICH = ["first", "coarse first", "later"]
NUMBERS = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 1e-200, 1e300, -1e300, 0.5, 0.49999, 2.0, -0.0]),
    st.floats(-3, 3),
)
LONGEST = {
    "numbers": [0.99, 0.0, 4.0],
    "categories": [1.0, 2.0**127, 2.0**127],
    "mixed": [0.5, 5.0, -5.0],
    "mixed with waves": [0.5, 5.0, -5.0],
    "linear": [2.0, 0.0, 0.0],
}


@st.composite
def drawn_layout(draw, kind, loss):
    """Rounds with targets wherever they may be found, of one to three outputs."""
    outputs = draw(st.integers(1, 3))
    aimed = {}
    if loss == Loss.SQUARED:
        centres = st.one_of(st.sampled_from([-1.0, 0.0, 1.0]), st.floats(-1, 1))
        reaches = st.one_of(st.sampled_from([1e-3, 1.0]), st.floats(1e-3, 1))
        aimed["centre"] = tuple(draw(centres) for _ in range(outputs))
        aimed["reach"] = tuple(draw(reaches) for _ in range(outputs))
    return glm_rounds(MAPS[kind], outputs, loss, resolution=16, **aimed)


@st.composite
def drawn_weights(draw, layout):
    """W of any size: none, short, long, or far too long."""
    scale = draw(st.sampled_from([0.0, 1e-6, 1.0, 30.0, 1e4, 1e12]))
    seed = draw(st.integers(0, 2**32 - 1))
    shape = (layout.kernel.features, layout.columns)
    return np.random.default_rng(seed).normal(size=shape) * scale


@st.composite
def drawn_round(draw, kind, which, loss, **of_all):
    whole = settings_of(draw(drawn_layout(kind, loss)), **of_all)
    if which == "first":
        return round_of(whole)
    if which == "coarse first":
        return round_of(whole, coarseness=draw(st.integers(1, 8)))
    return round_of(whole, draw(drawn_weights(whole.layouts[0])))


@st.composite
def drawn_rows(draw, outputs, sizes):
    """Cells, and numbers of any size."""
    count = draw(sizes)
    return draw(drawn_cells(count)), draw(
        hnp.arrays(np.float64, (count, outputs), elements=NUMBERS)
    )


@pytest.mark.parametrize("loss", Loss)
@pytest.mark.parametrize("neighbours", Neighbours)
@settings(max_examples=100)
@given(kind=st.sampled_from(KINDS), which=st.sampled_from(WHICH), data=st.data())
def test_one_row_moves_a_round_of_regression_by_at_most_the_claim(
    kind, neighbours, which, loss, data
):
    this = data.draw(drawn_round(kind, which, loss, neighbours=neighbours))
    outputs = this.layouts[0].outputs
    keys, values = data.draw(drawn_rows(outputs, st.just(3)))
    at = data.draw(st.integers(0, 2))
    if neighbours is Neighbours.ADD_REMOVE:
        other = np.delete(keys, at, axis=0), np.delete(values, at, axis=0)
    else:
        other = keys.copy(), values.copy()
        [other[0][at]], [other[1][at]] = data.draw(drawn_rows(outputs, st.just(1)))
    assert moved(this, exact_sums(this, keys, values), exact_sums(this, *other)) <= ROUNDED


@pytest.mark.parametrize("neighbours", Neighbours)
@settings(max_examples=120)
@given(
    kind=st.sampled_from(KINDS),
    group_rows=st.sampled_from(GROUP_ROWS),
    which=st.sampled_from(WHICH),
    data=st.data(),
)
def test_one_record_moves_a_round_of_regression_by_at_most_the_claim(
    kind, group_rows, neighbours, which, data
):
    of_all = {"neighbours": neighbours, "unit": Unit.RECORD, "group_rows": group_rows}
    this = data.draw(drawn_round(kind, which, data.draw(st.sampled_from(list(Loss))), **of_all))
    outputs, sizes = this.layouts[0].outputs, st.integers(1, 6)
    one, new, rest = (data.draw(drawn_rows(outputs, each)) for each in (sizes, sizes, st.just(3)))
    if neighbours is Neighbours.ADD_REMOVE:
        new = new[0][:0], new[1][:0]
    sums = [
        exact_sums(
            this,
            np.concatenate([keys, rest[0]]),
            np.concatenate([values, rest[1]]),
            np.array([7] * len(values) + [1, 1, 2]),
        )
        for keys, values in (one, new)
    ]
    assert moved(this, *sums) <= ROUNDED


def alone(this, keys, values, groups=None):
    sums = exact_sums(this, keys, values, groups)
    return moved(this, sums, [np.zeros_like(part) for part in sums])


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("loss", Loss)
@pytest.mark.parametrize("kind", KINDS)
def test_an_added_row_reaches_the_claim_of_a_regression(kind, loss, outputs):
    whole = settings_of(glm_rounds(MAPS[kind], outputs, loss))
    key, far = np.array([LONGEST[kind]]), np.full((1, outputs), 1e300)
    assert 0.97 <= alone(round_of(whole), key, far) <= ROUNDED
    away = -50.0 * np.sign(MAPS[kind].key_features(key).features[0])
    weights = np.stack([away] * outputs, axis=1)
    assert 0.97 <= alone(round_of(whole, weights), key, far) <= ROUNDED


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("loss", Loss)
@pytest.mark.parametrize("kind", KINDS)
def test_opposite_numbers_at_one_key_reach_the_claim_for_replaced_rows(kind, loss, outputs):
    whole = settings_of(glm_rounds(MAPS[kind], outputs, loss), Neighbours.REPLACE)
    key, far = np.array([LONGEST[kind]]), np.full((1, outputs), 1e300)
    for weights in (None, np.zeros((MAPS[kind].features, outputs))):
        this = round_of(whole, weights)
        sums = (exact_sums(this, key, values) for values in (far, -far))
        assert 0.97 <= moved(this, *sums) <= ROUNDED


@pytest.mark.parametrize("loss", Loss)
@pytest.mark.parametrize(
    ("size", "group_rows"), [(1, 0.5), (2, 1.0), (128, 0.5), (129, 1.0), (129, 100.0), (600, 3.0)]
)
def test_records_of_a_regression_are_cut_exactly_and_not_more_than_needed(loss, size, group_rows):
    for neighbours in Neighbours:
        resolution = 16 if group_rows < 9 else 10
        layout = glm_rounds(MAPS["mixed"], 2, loss, resolution=resolution)
        whole = settings_of(layout, neighbours, Unit.RECORD, group_rows)
        for weights in (None, np.zeros((MAPS["mixed"].features, 2))):
            keys, values = np.tile(LONGEST["mixed"], (size, 1)), np.full((size, 2), 7.0)
            reached = alone(round_of(whole, weights), keys, values, np.zeros(size, int))
            if neighbours is Neighbours.REPLACE:  # an opposite record is twice as far away
                reached *= 2
            assert 0.97 * min(size / group_rows, 1.0) <= reached <= ROUNDED


RUNS = {
    "squared": ({}, MAPS["mixed"]),
    "squared, several, found": ({}, unknown_tables()["several"]),
    "squared, not aimed": ({"aim": False}, MAPS["mixed with waves"]),
    "squared, linear": ({}, LINEAR),
    "logistic": ({"loss": "logistic"}, MAPS["categories"]),
    "logistic, found": ({"loss": "logistic"}, unknown_tables()["one of three"]),
}


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("unit", Unit)
@pytest.mark.parametrize("name", RUNS)
def test_one_row_or_record_moves_all_passes_of_a_regression_together_by_at_most_one(
    name, unit, neighbours
):
    """All that a run asks for, with the W that it came to: Σ (Δ/σ)² is at most that of one σ."""
    changes, kernel = RUNS[name]
    rng = np.random.default_rng(1)
    linear = kernel is LINEAR
    keys = rng.normal(size=(60, 3)) if linear else some_cells(kernel, 60)
    values = rng.uniform(-2, 2, (60, 2))
    groups = None if unit is Unit.ROW else np.repeat(np.arange(12), 5)
    options = {"epsilon": 1.0, "delta": 1e-6, "features": kernel, "neighbours": neighbours}
    options |= {"key_norm": 2.0} if linear else {}
    options |= {"group_rows": 1.0 if unit is Unit.ROW else 2.0} | changes
    asked, _ = asked_by(GLM, keys, values, groups, entropy=Seeded(3), **options)
    assert sum(each.settings.share for each in asked) == pytest.approx(1, abs=1e-12)
    for seed in range(4):
        changed = 1 if unit is Unit.ROW else 5
        new = rng.normal(size=(changed, 3)) if linear else some_cells(kernel, changed, seed) * 3
        other = keys[changed:], values[changed:]
        if neighbours is Neighbours.REPLACE:
            far = np.full((changed, 2), (-1.0) ** seed * 1e9)
            other = np.concatenate([new, other[0]]), np.concatenate([far, other[1]])
        ids = None if groups is None else groups[len(groups) - len(other[0]) :]
        together = 0.0
        for each in asked:
            one = exact_sums(each.settings, keys, values, groups, view=each.view)
            two = exact_sums(each.settings, *other, ids, view=each.view)
            reached = moved(each.settings, one, two)
            assert reached <= ROUNDED
            together += each.settings.share * reached**2
        assert together <= 1 + 1e-12


@settings(max_examples=40)
@given(kind=st.sampled_from(KINDS), loss=st.sampled_from(list(Loss)), data=st.data())
def test_residuals_of_a_regression_are_the_same_alone_and_in_any_batch(kind, loss, data):
    layout = data.draw(drawn_layout(kind, loss))
    keys, values = data.draw(drawn_rows(layout.outputs, st.integers(1, 40)))
    this = layout.at(Weights.of(data.draw(drawn_weights(layout))))
    order = np.random.default_rng(data.draw(st.integers(0, 99))).permutation(len(keys))

    def made(keys, values):
        features = MAPS[kind].key_features(keys).features
        return this.weighed(features[None], values, None)[0]

    whole = made(keys, values)
    limit = this.radius**2
    assert all(sum(int(x) ** 2 for x in row) <= limit for row in whole)
    assert np.array_equal(made(keys[order], values[order]), whole[order])
    front = np.concatenate([keys[::-1], keys]), np.concatenate([values[::-1], values])
    assert np.array_equal(made(*front)[len(keys) :], whole)
    for at in range(len(keys)):
        assert np.array_equal(made(keys[at : at + 1], values[at : at + 1])[0], whole[at])


@pytest.mark.parametrize("outputs", [1, 2, 256])
@pytest.mark.parametrize("resolution", [8, 22])
def test_the_longest_residuals_of_all_outputs_are_cut_on_any_lattice(outputs, resolution):
    """No square of them leaves 64 bits, and the bound is exact."""
    clip = 0.3 * math.sqrt(outputs)
    layout = glm_rounds(LINEAR, outputs, clip=clip, resolution=resolution)
    this = layout.at(Weights.of(np.full((4, outputs), 1e12)))
    features = LINEAR.key_features(np.array([[2.0, 2.0, 2.0]])).features
    [row] = this.weighed(features[None], np.full((1, outputs), -1e300), None)[0]
    squared = sum(int(x) ** 2 for x in row)
    lost = outputs**0.5 + 1  # of each entry less than one unit, towards zero
    assert (this.radius - lost) ** 2 <= squared <= this.radius**2
