import dataclasses
import os

import numpy as np
import pytest
from data import unit_rows

import discreet
from discreet import InvalidInput
from discreet.accounting import gaussian_sigma
from discreet.features.linear import Linear
from discreet.readers.softmax.planning import ClassifierPlan, plan

SPEND = {"epsilon": 1.0, "delta": 1e-6}
SHAPE = {"rows": 5000, "key_dim": 4, "classes": ["a", "b", "c"]}
SIGMA = gaussian_sigma(epsilon=1.0, delta=1e-6, sensitivity=1.0)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"features": "linear"},
        {"features": "rays", "key_norm": 3.0},
        {"public_rows": unit_rows(300, 4, seed=9)},
        {"neighbours": "replace", "features": "linear"},
    ],
)
def test_a_plan_foretells_the_classifier(tmp_path, options):
    made = plan(**SHAPE, **SPEND, **options)
    keys, labels = unit_rows(60, 4), np.array(["a", "b", "c"])[np.arange(60) % 3]
    fit = discreet.softmax_regression(
        keys, labels, classes=SHAPE["classes"], rows_hint=5000, **SPEND, **options
    )
    facts = fit.card.to_dict()
    assert made.features == fit.features
    assert made.rounds == facts["rounds"]
    assert made.noise_multiplier == facts["noise_multiplier"]
    assert made.class_count == len(fit.classes)
    fit.save(tmp_path / "fit.safetensors")
    assert 0 < os.path.getsize(tmp_path / "fit.safetensors") - made.file_bytes < 8_000


def test_what_accuracy_depends_on_is_rows_of_a_class_for_each_unit_of_noise():
    made = plan(**SHAPE, **SPEND)
    assert made.noise_multiplier == pytest.approx(SIGMA, rel=1e-6)
    assert made.rows_for_noise == pytest.approx(5000 / (3 * SIGMA), rel=1e-6)
    for options, times in [
        ({"neighbours": "replace"}, 2),
        ({"by_record": True, "group_rows": 3.0}, 3),
        ({"by_record": True, "group_rows": 3.0, "neighbours": "replace"}, 6),
    ]:
        other = plan(**SHAPE, **SPEND, **options)
        assert other.noise_multiplier == made.noise_multiplier
        assert other.noise_rows == pytest.approx(times * made.noise_rows, rel=1e-6)
        assert other.rows_for_noise == pytest.approx(made.rows_for_noise / times, rel=1e-6)
    enough = plan(**SHAPE | {"rows": made.rows_needed}, **SPEND)
    assert enough.rows_for_noise == pytest.approx(20, rel=0.01)


@pytest.mark.parametrize(
    ("rows_for_noise", "said"),
    [
        (4.9, "little better than guessing"),
        (5.1, "three quarters"),
        (19.0, "three quarters"),
        (21.0, "most of what is possible"),
        (99.0, "most of what is possible"),
        (101.0, "nearly all"),
    ],
)
def test_the_verdict_follows_from_it(rows_for_noise, said):
    rows = round(rows_for_noise * 10 * SIGMA)
    made = plan(rows=rows, key_dim=8, classes=10, **SPEND)
    assert said in made.verdict
    assert made.verdict in str(made)
    assert "embeddings" not in made.verdict
    wide = plan(rows=rows, key_dim=384, classes=10, **SPEND)
    assert said in wide.verdict
    assert "several times more" in wide.verdict


def test_classes_are_a_list_or_a_number_of_them():
    listed = plan(**SHAPE, **SPEND)
    assert dataclasses.replace(listed) == plan(**SHAPE | {"classes": 3}, **SPEND)
    for wrong in (1, 2.5, "abc", ["a"], ["a", "a"], True):
        with pytest.raises(InvalidInput, match="classes"):
            plan(**SHAPE | {"classes": wrong}, **SPEND)


def test_features_are_kept_where_they_fit_and_computed_again_where_not():
    features = Linear(4, key_norm=1.0)
    taken = 5000 * 5 * 4
    kept = plan(**SHAPE, **SPEND, features=features, memory_limit=taken)
    again = plan(**SHAPE, **SPEND, features=features, memory_limit=taken - 1)
    assert (kept.feature_bytes, kept.kept) == (taken, True)
    assert (again.feature_bytes, again.kept) == (taken, False)
    assert "kept between rounds" in str(kept)
    assert "computes them again" in str(again)
    assert kept.passes == kept.rounds + 1
    assert again.fit_flops - kept.fit_flops == 5000 * kept.rounds * features.operations


def test_operations_are_those_of_all_passes():
    """Of 5 features and 3 classes: 16 rounds of sums, 16 of logits, and second moments once."""
    made = plan(**SHAPE, **SPEND, features="linear")
    products = 2 * 5 * 3
    row = made.features.operations + made.rounds * products * 2 + 5 * 6
    assert made.fit_flops == 5000 * row


def test_a_delta_that_lets_a_row_out_whole_is_warned_of():
    assert plan(**SHAPE, **SPEND).warning is None
    made = plan(**SHAPE, epsilon=1.0, delta=1e-3)
    assert "protects nobody" in made.warning
    assert made.warning in str(made)


def test_a_plan_is_frozen_and_its_numbers_are_checked():
    made = plan(**SHAPE, **SPEND)
    assert isinstance(made, ClassifierPlan)
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.rows = 3
    for name, wrong in [
        ("rows", 0),
        ("rows", 2**41),
        ("key_dim", 0),
        ("epsilon", 0.0),
        ("features", "none"),
        ("memory_limit", -1.0),
    ]:
        with pytest.raises(InvalidInput, match=name):
            plan(**SHAPE | SPEND | {name: wrong})
    with pytest.raises(InvalidInput, match="group_rows"):
        plan(**SHAPE, **SPEND, group_rows=2.0)
    with pytest.raises(InvalidInput, match="public_rows"):
        plan(**SHAPE, **SPEND, public_rows=unit_rows(10, 3))
