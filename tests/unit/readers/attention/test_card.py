import json
import math

import numpy as np
import pytest
from data import unit_rows

import discreet
from discreet.kernels import Fourier
from discreet.testing import Silent

SPEND = {"epsilon": 0.7, "delta": 1e-6}


def build(**options):
    return discreet.build(unit_rows(50, 3), unit_rows(50, 2), **{**SPEND, "scale": 2.5} | options)


def test_the_text_says_what_a_reader_needs():
    text = str(build(key_norm=1.5, query_norm=0.75, value_norm=3.25, rows_hint=4321).card)
    for part in (
        "one row (added or removed)",
        "ε = 0.7",
        "δ = 1e-06",
        "rounded Gaussian",
        "‖key‖ ≤ 1.5",
        "‖query‖ ≤ 0.75",
        "‖value‖ ≤ 3.25",
        "logit = 2.5",
        "at most 2.8125",
        "fixed when the memory was built",
        "number of rows is private",
        "4,321",
        "polynomial",
        "certified relative error",
        "standard error",
        "SystemEntropy()",
        f"discreet {discreet.__version__}",
    ):
        assert part in text
    assert "NOT PRIVATE" not in text


def test_the_dictionary_is_json_and_holds_the_same_numbers():
    memory = build(tau=0.25)
    facts = json.loads(json.dumps(memory.card.to_dict()))
    assert (facts["epsilon"], facts["delta"]) == (0.7, 1e-6)
    assert facts["guarantee"] == str(memory.guarantee)
    assert facts["leaks"] == []
    assert facts["scale"] == 2.5
    assert facts["tau"] == pytest.approx(0.25, rel=1e-4)
    assert facts["rows"] is None
    queries = unit_rows(4, 3)
    num_err, den_err = memory.sums_stderr(queries)
    np.testing.assert_allclose(num_err, facts["worst_numerator_stderr"], rtol=1e-6)
    np.testing.assert_allclose(den_err, facts["worst_denominator_stderr"], rtol=1e-6)
    assert facts["rows_needed"] == pytest.approx(5 * den_err[0] / math.exp(2.5), rel=1e-6)


def test_the_number_of_rows_is_there_only_where_it_is_public():
    assert "50" in str(build(neighbours="replace").card).split("rows", 1)[1]
    assert build(neighbours="replace").card.to_dict()["rows"] == 50
    grouped = build(neighbours="replace", groups=np.arange(50) // 5, group_rows=2.0)
    assert grouped.card.to_dict()["rows"] is None
    assert grouped.card.to_dict()["rows_hint"] is None
    assert build(neighbours="add_remove").card.to_dict()["rows_hint"] is None
    assert build(neighbours="replace").card.to_dict()["rows_hint"] == 50
    assert "number of records is public" in str(grouped.card)
    assert "at most 2 row(s)" in str(grouped.card)


def test_noise_for_tests_is_the_first_line():
    assert str(build(entropy=Silent()).card).startswith("NOT PRIVATE")


def test_a_public_number_of_no_rows_predicts_nothing_and_is_saved(tmp_path):
    kernel = Fourier(3, frequencies=8, scale=1.0, key_norm=1.0, query_norm=1.0)
    builder = discreet.Builder(epsilon=1.0, delta=1e-5, kernel=kernel, neighbours="replace")
    builder.add(np.zeros((0, 3)), np.zeros((0, 3)))
    [memory] = builder.release()
    memory.save(tmp_path / "memory.safetensors")
    assert "prediction" not in str(memory.card)


def test_with_a_hint_the_card_says_what_the_plan_said():
    rows = unit_rows(20, 3)
    memory = discreet.build(rows, rows, epsilon=1.0, delta=1e-6, rows_hint=5_000)
    plan = discreet.plan(rows=5_000, key_dim=3, value_dim=3, epsilon=1.0, delta=1e-6)
    assert plan.verdict in str(memory.card)
    assert memory.card.to_dict()["predicted_stderr"] == pytest.approx(plan.stderr)
