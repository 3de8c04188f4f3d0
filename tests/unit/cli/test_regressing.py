"""Regressions from tables and arrays, and predictions from regressions."""

import json
import os

import numpy as np
import pyarrow as pa
import pytest
from data import unit_rows
from pyarrow import parquet
from typer.testing import CliRunner

import discreet
from discreet.cli import app
from discreet.features.landmarks import UnitLandmarks
from discreet.ledger import Ledger

RUNNER = CliRunner()
SPEND = ("--epsilon", "20", "--delta", "1e-6")
KEYS = unit_rows(900, 5)
VALUES = KEYS[:, :2] / 2
QUERIES = unit_rows(40, 5, seed=2)
TABLE = ("regress", "data.parquet", "--keys", "keys", "--values", "v0,v1")
LINEAR = ("--features", "linear", *SPEND, "-o", "fit.safetensors")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    columns = {"keys": list(KEYS), "v0": VALUES[:, 0], "v1": VALUES[:, 1]}
    columns["who"] = [f"person {row // 3}" for row in range(900)]
    parquet.write_table(pa.table(columns), "data.parquet")
    np.save("keys.npy", KEYS)
    np.save("values.npy", VALUES)
    np.save("queries.npy", QUERIES)
    return tmp_path


def run(*arguments):
    return RUNNER.invoke(app, [str(each) for each in arguments])


def done(*arguments):
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def assert_refused(result, folder, before, *said):
    assert result.exit_code == 2, result.output
    assert len(result.output.splitlines()) == 1
    assert sorted(os.listdir(folder)) == before
    for each in said:
        assert each in result.output


@pytest.mark.parametrize(
    "given",
    [
        (*TABLE, "--groups", "who", "--group-rows", "2"),
        ("regress", "keys.npy", "values.npy"),
        (*TABLE, "--workers", "1"),
    ],
)
def test_regress_predict_and_card(folder, given):
    said = done(*given, *LINEAR)
    fit = discreet.load("fit.safetensors")
    assert said.strip() == f"fit.safetensors: {fit.guarantee}"
    assert fit.guarantee.unit == ("record" if "--groups" in given else "row")
    assert np.max(np.abs(fit.predict(QUERIES) - QUERIES[:, :2] / 2)) < 0.1
    said = done("predict", "fit.safetensors", "queries.npy", "-o", "out.npy")
    assert said.strip() == "out.npy: predictions of shape (40, 2)"
    np.testing.assert_array_equal(np.load("out.npy"), fit.predict(QUERIES), strict=True)
    assert json.loads(done("card", "fit.safetensors", "--json")) == fit.card.to_dict()


def test_standard_errors_come_with_predictions_and_are_shown(folder):
    done(*TABLE, *LINEAR)
    predicted, stderr = discreet.load("fit.safetensors").predict(QUERIES, stderr=True)
    asked = ("predict", "fit.safetensors", "queries.npy", "--stderr", "-o", "out.npz")
    said = done(*asked).splitlines()
    assert said[0].startswith("out.npz: predictions of shape (40, 2), ±")
    assert said[1].split() == ["query", "number", "value", "±"]
    assert f"{predicted[0, 0]:.3g}" in said[2]
    assert said[-1] == "and 60 more, in the file"
    with np.load("out.npz") as made:
        assert sorted(made) == ["predictions", "stderr"]
        np.testing.assert_array_equal(made["predictions"], predicted)
        np.testing.assert_array_equal(made["stderr"], stderr)
    facts = json.loads(done(*asked, "--force", "--json"))
    assert facts == {
        "output": "out.npz",
        "shape": [40, 2],
        "median_stderr": pytest.approx(np.median(stderr)),
    }


def test_options_reach_the_library(folder):
    np.save("public.npy", unit_rows(300, 5, seed=9))
    Ledger("budget.db").create("clinic", epsilon=50.0, delta=1e-4, neighbours="replace")
    facts = json.loads(
        done(
            *TABLE,
            *("--public", "public.npy", "--key-norm", "2", "--value-norm", "0.5"),
            *("--neighbours", "replace", "--rows-hint", "700", "--ridge", "0.3"),
            *("--share", "0.2", "--ledger", "budget.db", "--dataset", "clinic", "--json"),
            *(*SPEND, "-o", "fit.safetensors"),
        )
    )
    fit = discreet.load("fit.safetensors")
    assert facts == {"output": "fit.safetensors", **fit.card.to_dict()}
    assert isinstance(fit.features, UnitLandmarks)
    assert (facts["ridge"], facts["share"], facts["value_norm"]) == (0.3, 0.2, 0.5)
    assert (facts["key_norm"], facts["rows_hint"], facts["neighbours"]) == (2.0, 700, "replace")
    [spend] = Ledger("budget.db").statement("clinic").spends
    assert spend.id == fit.receipt.id


def test_each_kind_of_file_is_answered_as_it_can_be(folder):
    done(*TABLE, *LINEAR)
    options = {"epsilon": 1.0, "delta": 1e-6}
    discreet.build(KEYS, KEYS, scale=1.0, **options).save("memory.safetensors")
    labels = np.arange(900) % 2
    discreet.softmax_regression(KEYS, labels, classes=[0, 1], features="linear", **options).save(
        "model.safetensors"
    )
    before = sorted(os.listdir(folder))
    for arguments, said in [
        (("fit", "--probabilities", "out.npz"), "Expected --probabilities with a classifier"),
        (("fit", "--balanced", "out.npy"), "Expected --balanced with a classifier"),
        (("model", "--stderr", "out.npz"), "Expected --stderr with a regression"),
        (("memory", "--stderr", "out.npz"), "a classifier or a regression, and it is a memory"),
        (("fit", "--stderr", "out.npy"), "end in .npz"),
    ]:
        file, flag, output = arguments
        result = run("predict", f"{file}.safetensors", "queries.npy", flag, "-o", output)
        assert_refused(result, folder, before, said)
    result = run("attend", "fit.safetensors", "queries.npy", "-o", "out.npy")
    assert_refused(result, folder, before, "it is a regression: discreet predict answers")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("data.parquet", "--keys", "keys"), "both --keys and --values"),
        (("data.parquet",), "--keys and --values, the names of columns"),
        (("keys.npy", "values.npy", "--workers", "2"), "for several workers"),
        (("keys.npy", "values.npy", "--features", "curves"), "--features 'curves'"),
        (("keys.npy", "values.npy", "--features", "auto"), "--rows-hint"),
        (("keys.npy", "values.npy", "--features", "near_landmarks"), "--public"),
        (("keys.npy", "values.npy", "--ridge", "0"), "--ridge 0"),
        (("keys.npy", "values.npy", "--share", "2"), "--share"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(folder, given, said):
    before = sorted(os.listdir(folder))
    source, *others = given
    options = others if "--features" in others else [*others, "--features", "linear"]
    result = run("regress", source, *options, *SPEND, "-o", "fit.safetensors")
    assert_refused(result, folder, before, said)


@pytest.mark.slow
def test_a_plan_as_a_page_and_as_json(folder):
    arguments = ["plan-regress", "--rows", "900", "--key-dim", "2", "--value-dim", "2", *SPEND]
    made = discreet.plan(
        reader="least_squares", rows=900, key_dim=2, value_dim=2, epsilon=20.0, delta=1e-6
    )
    assert done(*arguments).rstrip() == str(made)
    assert json.loads(done(*arguments, "--json")) == made.to_dict()
    np.save("public.npy", unit_rows(300, 2, seed=9))
    others = ("--public", "public.npy", "--neighbours", "replace", "--by-record", "--ridge", "0.3")
    more = ("--share", "0.2", "--group-rows", "3", "--value-norm", "2", "--signal", "0.4")
    facts = json.loads(done(*arguments, *others, *more, "--json"))
    same = discreet.plan(
        reader="least_squares",
        rows=900,
        key_dim=2,
        value_dim=2,
        epsilon=20.0,
        delta=1e-6,
        public_rows=np.load("public.npy"),
        neighbours="replace",
        by_record=True,
        ridge=0.3,
        share=0.2,
        group_rows=3.0,
        value_norm=2.0,
        signal=0.4,
    )
    assert facts == same.to_dict()
