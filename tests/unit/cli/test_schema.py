"""Tables with a schema: guessed, fitted, asked and shown, from .csv and .parquet files."""

import csv
import io
import json
import os
import sys
import tomllib
from datetime import date, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

import discreet
from discreet.cli import app, tabular
from discreet.cli.releases import opened_release
from discreet.ledger import Ledger
from discreet.readers.glm import GeneralizedLinear
from discreet.tables import Date, Schema
from discreet.tables.whole import read_columns, read_table

RUNNER = CliRunner()
SPEND = ("--epsilon", "20", "--delta", "1e-6")
FIT = ("fit", "--schema", "schema.toml", "--label", "income", *SPEND, "-o", "m.safetensors")
CLASSES = ("--classes", "low,high")
REGRESS = ("regress", "--schema", "schema.toml", *SPEND, "-o", "m.safetensors")
PRICE = ("--target", "price", "--target-bounds", "0,100")
SCHEMA = """
[columns]
age = { range = [20, 80] }
job = ["clerk", "nurse", "farmer"]
zone = [1, 2, 3]
day = { first = "2020-01-01", last = "2024-01-01" }
code = "private numbers"
"""
FIRST = date(2020, 1, 1)
COUNT = 900


def rows(count, seed):
    """Return a table whose columns say which class a row is of; some of it is missing."""
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 80, count).tolist()
    job = rng.choice(["clerk", "nurse", "farmer"], count).tolist()
    table = {
        "age": [None if rng.random() < 0.05 else each for each in age],
        "job": [None if rng.random() < 0.05 else each for each in job],
        "zone": rng.integers(1, 4, count).tolist(),
        "day": [FIRST + timedelta(days=int(each)) for each in rng.integers(0, 1400, count)],
        "code": rng.normal(size=count).round(3).tolist(),
        "who": [f"person {row // 3}" for row in range(count)],
    }
    scores = [(a - 50) / 8 + 3 * (j == "nurse") - 1 for a, j in zip(age, job, strict=True)]
    table["income"] = ["high" if each > 0 else "low" for each in scores]
    table["rare"] = ["yes" if each > 3 else "no" for each in scores]
    table["flag"] = [int(each > 0) for each in scores]
    table["price"] = [min(max(50 + 8 * each, 0.0), 100.0) for each in scores]
    return table


DATA, ASKED = rows(COUNT, 1), rows(40, 2)


def write_csv(path, table):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, table in (("data", DATA), ("asked", ASKED), ("public", rows(200, 3))):
        write_csv(f"{name}.csv", table)
        parquet.write_table(pa.table(table), f"{name}.parquet")
    Path("schema.toml").write_text(SCHEMA, encoding="utf-8")
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


def lines(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def changed(text, old, new):
    assert old in text
    return text.replace(old, new)


# Guessing.


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_schema_is_guessed_from_public_rows_and_read_again(folder, kind):
    said = done("schema", "guess", f"public.{kind}", "-o", "guessed.toml")
    assert "public" in said
    assert "never guess from private rows" in said
    text = Path("guessed.toml").read_text(encoding="utf-8")
    assert text.startswith("# Guessed by discreet from public rows")
    assert "rounded outwards" in text
    assert "Never guess from private rows" in text
    assert tomllib.loads(text)["columns"]["job"] == ["clerk", "farmer", "nurse"]
    found = Schema.read("guessed.toml")
    assert found.names == list(DATA)
    assert found.columns["age"].range == (0, 80)
    assert isinstance(found.columns["day"], Date)
    assert done("schema", "guess", f"public.{kind}") == text
    assert "'who' has more than 64 categories" in text


def test_both_kinds_of_files_give_one_schema_and_a_file_is_replaced_by_force_only(folder):
    done("schema", "guess", "public.csv", "-o", "one.toml")
    done("schema", "guess", "public.parquet", "-o", "two.toml")
    assert Schema.read("one.toml") == Schema.read("two.toml")
    before = sorted(os.listdir(folder))
    assert_refused(run("schema", "guess", "public.csv", "-o", "one.toml"), folder, before, "--forc")
    done("schema", "guess", "public.csv", "-o", "one.toml", "--force")
    same = run("schema", "guess", "public.csv", "-o", "public.csv", "--force")
    assert_refused(same, folder, before, "one of the files that are read")


def test_a_schema_is_shown_in_words_a_line_a_column(folder):
    assert done("schema", "show", "schema.toml").splitlines() == [
        "age   numbers from 20 to 80; others count as the nearer end",
        "job   3 categories: clerk, nurse, farmer",
        "zone  3 categories: 1, 2, 3",
        "day   dates from 2020-01-01 to 2024-01-01; others count as the nearer end",
        "code  private: numbers; their range is found with a share of ε",
    ]


# Fitting and predicting.


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_fit_and_predict_a_table(folder, kind):
    said = done(*FIT, f"data.{kind}", *CLASSES)
    model = discreet.load("m.safetensors")
    assert said.strip() == f"m.safetensors: {model.guarantee_}"
    assert model.leaks_ == ()
    assert model.columns.names == ["age", "job", "zone", "day", "code"]
    said = done("predict", "m.safetensors", f"asked.{kind}", "-o", "out.csv")
    assert said.strip() == "out.csv: labels of shape (40,), each one of 2 classes"
    labels = [line["label"] for line in lines("out.csv")]
    assert np.mean(np.array(labels) == ASKED["income"]) > 0.8
    assert labels == model.predict({**ASKED, "zone": np.array(ASKED["zone"])}).tolist()


def test_a_model_of_one_kind_of_file_answers_the_other(folder):
    done(*FIT, "data.csv", *CLASSES)
    for kind in ("csv", "parquet"):
        done("predict", "m.safetensors", f"asked.{kind}", "--probabilities", "-o", f"{kind}.csv")
    assert lines("csv.csv") == lines("parquet.csv")


def test_probabilities_come_with_labels_and_balanced_changes_them(folder):
    done(*FIT, "data.csv", *CLASSES)
    asked = ("predict", "m.safetensors", "asked.csv")
    printed = done(*asked, "--probabilities", "-o", "-")
    model = discreet.load("m.safetensors")
    found = list(csv.DictReader(io.StringIO(printed)))
    assert list(found[0]) == ["label", "p_high", "p_low"]
    expected = model.predict_proba(read_table(Path("asked.csv"), model.columns).columns)
    got = [[float(line["p_high"]), float(line["p_low"])] for line in found]
    np.testing.assert_array_equal(got, expected)
    facts = json.loads(done(*asked, "--probabilities", "-o", "out.npz", "--json"))
    assert facts == {"output": "out.npz", "shape": [40], "classes": ["high", "low"]}
    with np.load("out.npz", allow_pickle=False) as made:
        assert sorted(made) == ["classes", "labels", "probabilities"]
        np.testing.assert_array_equal(made["probabilities"], expected)


def test_balanced_finds_more_of_a_rare_class(folder):
    done(*FIT, "data.csv", "--label", "rare", "--classes", "no,yes")
    asked = ("predict", "m.safetensors", "data.csv")
    done(*asked, "-o", "plain.npy")
    done(*asked, "--balanced", "-o", "balanced.npy")
    plain, balanced = np.load("plain.npy"), np.load("balanced.npy")
    assert np.sum(balanced == "yes") > np.sum(plain == "yes") > 0
    model = discreet.load("m.safetensors")
    model.decision = "balanced"
    same = model.predict(read_table(Path("data.csv"), model.columns).columns)
    np.testing.assert_array_equal(balanced, same)


def test_labels_that_are_numbers_are_numbers_again(folder):
    for kind in ("csv", "parquet"):
        given = (f"data.{kind}", "--label", "flag", "--classes", "0,1", "--force")
        done(*FIT, *given)
        done("predict", "m.safetensors", "asked.csv", "-o", "out.npy", "--force")
        labels = np.load("out.npy")
        assert labels.dtype.kind == "i"
        assert np.mean(labels == ASKED["flag"]) > 0.8


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_regress_and_predict_a_table(folder, kind):
    done(*REGRESS, f"data.{kind}", *PRICE, "--rows-hint", "900")
    asked = ("predict", "m.safetensors", f"asked.{kind}")
    said = done(*asked, "--stderr", "-o", "out.csv").splitlines()
    assert said[0].startswith("out.csv: predictions of shape (40,), ±")
    assert said[-1] == "and 20 more, in the file"
    found = lines("out.csv")
    assert list(found[0]) == ["prediction", "stderr"]
    predicted = np.array([float(line["prediction"]) for line in found])
    assert np.mean(np.abs(predicted - ASKED["price"])) < 12
    assert done(*asked, "-o", "out.npy").strip() == "out.npy: predictions of shape (40,)"
    np.testing.assert_array_equal(np.load("out.npy"), predicted)


def test_a_logarithm_of_the_target_and_options_reach_the_library(folder):
    options = ("--target-scale", "log", "--neighbours", "replace", "--rows-hint", "700")
    given = (*options, "--groups", "who", "--group-rows", "3", "--json")
    facts = json.loads(done(*REGRESS, "data.csv", *PRICE, *given))
    model = discreet.load("m.safetensors")
    assert facts == {"output": "m.safetensors", **model.card_.to_dict()}
    assert (model.target, model.guarantee_.unit) == ("log", "record")
    assert (facts["neighbours"], facts["rows_hint"], facts["group_rows"]) == ("replace", 700, 3.0)


def test_the_label_and_ids_may_be_in_the_schema_and_are_not_looked_at(folder):
    done("schema", "guess", "public.csv", "-o", "schema.toml", "--force")
    done(*FIT, "data.csv", *CLASSES, "--groups", "who")
    model = discreet.load("m.safetensors")
    assert model.columns.names == [each for each in DATA if each not in ("income", "who")]
    assert model.guarantee_.unit == "record"


def test_a_ledger_counts_a_fit_once(folder):
    Ledger("budget.db").create("clinic", epsilon=50.0, delta=1e-4)
    counted = ("--ledger", "budget.db", "--dataset", "clinic", "--analyst", "eve")
    done(*FIT, "data.csv", *CLASSES, *counted)
    [spend] = Ledger("budget.db").statement("clinic").spends
    assert spend.id == discreet.load("m.safetensors").receipt_.id
    assert spend.analyst == "eve"
    assert spend.state == "released"
    before = sorted(os.listdir(folder))
    again = (*FIT, "data.csv", *CLASSES, *counted, "--force", "--epsilon", "49")
    assert run(*again).exit_code == 2
    assert sorted(os.listdir(folder)) == before
    assert len(Ledger("budget.db").statement("clinic").spends) == 1


def test_room_is_claimed_for_all_that_is_written(folder):
    for given in ((*FIT, "data.csv", *CLASSES), (*REGRESS, "data.csv", *PRICE)):
        done(*given, "--rows-hint", "90000", "--force")
        release = opened_release(Path("m.safetensors"))
        size = os.path.getsize("m.safetensors")
        claimed = tabular._room(discreet.load("m.safetensors").columns, 2)
        assert size <= claimed <= 1.5 * size + 2**18, type(release)


def test_what_is_only_private_in_a_csv_file_is_refused_and_nothing_is_counted(folder):
    Path("schema.toml").write_text(changed(SCHEMA, '"private numbers"', '"private"'))
    result = run(*FIT, "data.csv", *CLASSES)
    assert result.exit_code == 2
    [line] = result.stderr.splitlines()
    assert "the schema to say what 'code' holds" in line
    assert not Path("m.safetensors").exists()
    # The type of a column of a .parquet file is part of the file, and not of a row.
    result = run(*FIT, "data.parquet", *CLASSES, "--force")
    assert result.stderr == ""
    assert discreet.load("m.safetensors").leaks_ == ()


# What is wrong.

WRONG = {
    "keys": (("data.csv", "--keys", "age"), "--schema or --keys, not both"),
    "public": (("data.csv", "--public", "asked.csv"), "--schema or --public, not both"),
    "key norm": (("data.csv", "--key-norm", "2"), "--schema or --key-norm, not both"),
    "features": (("data.csv", "--features", "linear"), "Expected --features 'linear' to be 'auto'"),
    "label": (("data.csv", "--label", "pay"), "data.csv to have one column 'pay'; it has: age"),
    "file": (("absent.csv",), "none of this name"),
    "kind": (("schema.toml",), "to be a table, a .csv or .parquet file"),
    "classes": (("data.csv", "--classes", "low,mid"), "every label to be one of classes"),
    "labels": (("data.csv", "--classes", "0,1"), "'income' to hold numbers"),
    "missing label": (("data.csv", "--label", "job"), "no missing value in 'job' of data.csv"),
    "missing group": (("data.parquet", "--groups", "job"), "no missing value in 'job' of data.par"),
    "epsilon": (("data.csv", "--epsilon", "0"), "--epsilon"),
    "group rows": (("data.csv", "--group-rows", "2"), "--group-rows"),
    "dataset": (("data.csv", "--dataset", "x"), "--dataset 'x' to come with --ledger"),
    "output": (("data.csv", "-o", "data.csv", "--force"), "one of the files that are read"),
    "schema": (("data.csv", "--schema", "data.csv"), "data.csv to be a schema in TOML"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_one_sentence_and_nothing_is_written(folder, case):
    given, said = WRONG[case]
    before = sorted(os.listdir(folder))
    assert_refused(run(*FIT, *CLASSES, *given), folder, before, said)


SECRET = "4711.5"
HEADER = "age,job,zone,day,code,income"
ODD = {
    "a text among numbers": ("age", f"x{SECRET}", "column 'age' to hold numbers"),
    "a text on a list of numbers": ("zone", f"x{SECRET}", "column 'zone' to hold numbers"),
    "a number among dates": ("day", SECRET, "column 'day' to hold dates"),
    "a text among private numbers": ("code", f"x{SECRET}", "column 'code' to hold numbers"),
    "another label": ("income", SECRET, "every label to be one of classes"),
}


@pytest.mark.parametrize("case", ODD)
def test_an_odd_cell_is_refused_without_a_word_about_it(folder, case):
    name, cell, said = ODD[case]
    write_csv("data.csv", {**DATA, name: [*DATA[name][:-1], cell]})
    before = sorted(os.listdir(folder))
    result = run(*FIT, "data.csv", *CLASSES)
    assert_refused(result, folder, before, said)
    assert SECRET not in result.output


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "whose first line names columns"),
        ("age,,job\n1,2,3\n", "whose first line names columns"),
        (f"{HEADER}\n{SECRET}\n", "to have 6 cells, as the first has"),
        (f'{HEADER}\n"{SECRET},3\n', "there was a Error"),
        (f"age,age,income\n{SECRET},1,low\n", "one column 'age'; it has: age, age, income"),
        (f"job,income\n{SECRET},low\n", "one column 'age'; it has: income, job"),
    ],
)
def test_a_broken_csv_file_is_named_and_not_quoted(folder, text, said):
    Path("data.csv").write_text(text)
    before = sorted(os.listdir(folder))
    result = run(*FIT, "data.csv", *CLASSES)
    assert_refused(result, folder, before, "data.csv", said)
    assert SECRET not in result.output


def test_bytes_that_are_no_text_are_refused(folder):
    Path("data.csv").write_bytes(b"age,income\n\xff,low\n")
    before = sorted(os.listdir(folder))
    assert_refused(run(*FIT, "data.csv", *CLASSES), folder, before, "in UTF-8")


def test_columns_of_another_type_are_refused_in_a_parquet_file_too(folder):
    parquet.write_table(pa.table({**DATA, "age": DATA["who"]}), "data.parquet")
    before = sorted(os.listdir(folder))
    result = run(*FIT, "data.parquet", *CLASSES)
    assert_refused(result, folder, before, "column 'age' to hold numbers")
    assert "person" not in result.output


def test_without_a_schema_and_keys_a_sentence_says_that_one_is_needed(folder):
    before = sorted(os.listdir(folder))
    for kind in ("csv", "parquet"):
        result = run("fit", f"data.{kind}", *CLASSES, *SPEND, "-o", "m.safetensors")
        assert_refused(result, folder, before, "Expected --schema, a file", "or --keys")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("data.csv",), "--target, a column, and --target-bounds LOW,HIGH"),
        (("data.csv", "--target", "price"), "--target-bounds LOW,HIGH"),
        (("data.csv", "--target", "price", "--target-bounds", "9"), "'9' to be LOW,HIGH"),
        (("data.csv", "--target", "price", "--target-bounds", "9,1"), "'9,1' to be LOW,HIGH"),
        (("data.csv", *PRICE, "--target-scale", "cube"), "--target-scale 'cube' to be one of"),
        (("data.csv", *PRICE, "--target", "job"), "no missing value in 'job'"),
        (("data.csv", *PRICE, "--target", "who"), "column 'who' to hold numbers"),
        (("data.csv", *PRICE, "--ridge", "2"), "--schema or --ridge, not both"),
        (("data.csv", *PRICE, "--workers", "2"), "--schema or --workers, not both"),
        (("data.csv", *PRICE, "--values", "age"), "--schema or --values, not both"),
        (("data.csv", "asked.csv", *PRICE), "--schema or VALUES_FILE, not both"),
    ],
)
def test_what_is_wrong_with_a_regression_is_one_sentence(folder, given, said):
    before = sorted(os.listdir(folder))
    assert_refused(run(*REGRESS, *given), folder, before, said)


def test_targets_need_a_schema(folder):
    before = sorted(os.listdir(folder))
    result = run("regress", "data.parquet", *PRICE, *SPEND, "-o", "m.safetensors")
    assert_refused(result, folder, before, "Expected --target and the like with --schema")


def test_a_model_of_a_table_is_asked_for_what_it_can_say(folder):
    done(*FIT, "data.csv", *CLASSES)
    done(*REGRESS, "data.csv", *PRICE, "-o", "price.safetensors")
    np.save("asked.npy", np.zeros((3, 5)))
    write_csv("narrow.csv", {"age": [SECRET]})
    before = sorted(os.listdir(folder))
    for arguments, said in [
        (("m.safetensors", "asked.csv", "--stderr", "-o", "out.csv"), "--stderr with a regression"),
        (("price.safetensors", "asked.csv", "--balanced", "-o", "o.csv"), "with a classifier"),
        (("m.safetensors", "asked.npy", "-o", "out.csv"), "looks at: age, job, zone, day, code"),
        (("m.safetensors", "narrow.csv", "-o", "out.csv"), "one column 'job'; it has: age"),
        (
            ("m.safetensors", "asked.csv", "-o", "out.txt"),
            "to end in .csv, .parquet, .jsonl, .npy or .npz",
        ),
        (("m.safetensors", "asked.csv", "-o", "out.npz"), "to end in .npy"),
        (("m.safetensors", "asked.csv", "-o", "-", "--json"), "--json with a file"),
        (("m.safetensors", "asked.csv", "-o", "asked.csv", "--force"), "files that are read"),
        (("m.safetensors", "asked.csv", "-o", "data.csv"), "--force"),
    ]:
        result = run("predict", *arguments)
        assert_refused(result, folder, before, said)
        assert SECRET not in result.output


def test_an_estimator_without_a_schema_takes_arrays_in_its_own_units(folder):
    from discreet.sklearn import PrivateClassifier

    rng = np.random.default_rng(0)
    table = rng.uniform(0, [10, 500], size=(800, 2))
    model = PrivateClassifier(20.0, 1e-6, bounds=([0, 0], [10, 500]), classes=[0, 1])
    model.fit(table, (table[:, 1] > 200).astype(int)).save("m.safetensors")
    np.save("asked.npy", table[:50])
    done("predict", "m.safetensors", "asked.npy", "-o", "out.npy")
    np.testing.assert_array_equal(np.load("out.npy"), model.predict(table[:50]))
    before = sorted(os.listdir(folder))
    assert_refused(run("shapes", "m.safetensors"), folder, before, "to be a model of columns")


@pytest.mark.parametrize("module", ["sklearn", "pyarrow"])
def test_an_extra_that_is_missing_is_named(folder, monkeypatch, module):
    done(*FIT, "data.csv", *CLASSES)
    before = sorted(os.listdir(folder))
    if module == "sklearn":
        for each in [name for name in sys.modules if name.startswith("discreet.sklearn")]:
            monkeypatch.delitem(sys.modules, each)
        monkeypatch.setitem(sys.modules, "discreet.sklearn", None)
        monkeypatch.setitem(sys.modules, "discreet.sklearn.file", None)
        wanted = "pip install 'discreet[sklearn]'"
        tables = ("data.csv", "asked.csv")
    else:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
        wanted = "pip install 'discreet[parquet]'"
        tables = ("data.parquet", "asked.parquet")
    assert_refused(run(*FIT, tables[0], *CLASSES, "--force"), folder, before, wanted)
    result = run("predict", "m.safetensors", tables[1], "-o", "out.csv")
    assert_refused(result, folder, before, wanted)


# Shapes.


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_shapes_are_printed_and_drawn_most_important_first(folder, suffix):
    done(*FIT, "data.csv", *CLASSES)
    said = done("shapes", "m.safetensors", "-o", f"it{suffix}")
    assert said.count("The ± is that of the noise") == 1
    assert "bias, is not in it; nor are waves over several columns" in said
    assert "log-odds of low against high" in said
    model = discreet.load("m.safetensors")
    ranked = sorted(model.shapes_, key=lambda name: -model.shapes_[name].importance)
    titles = [line for line in said.splitlines() if "of what columns do" in line]
    assert [title.partition(",")[0] for title in titles] == ranked
    age = model.shapes_["age"]
    [first] = [line.split() for line in said.splitlines() if line.startswith("  below 23.8 ")]
    assert float(first[2]) == pytest.approx(age.values[0], abs=0.06)
    assert float(first[4]) == pytest.approx(1.96 * age.stderr[0], abs=0.06)
    assert "2020-04-01 to 2020-07-01" in said
    assert said.splitlines()[-1] == f"it{suffix}: a picture of it"
    assert os.path.getsize(f"it{suffix}") > 10_000


def test_shapes_are_rows_with_what_json_says(folder):
    done(*FIT, "data.csv", *CLASSES)
    facts = json.loads(done("shapes", "m.safetensors", "--json"))["columns"]
    assert done("shapes", "m.safetensors", "-o", "steps.parquet") == "steps.parquet: 5 columns\n"
    rows = parquet.read_table("steps.parquet").to_pylist()
    for column in facts:
        mine = [row for row in rows if row["name"] == column["name"]]
        assert [row["label"] for row in mine] == [*column["labels"], "missing"]
        assert [row["value"] for row in mine] == [*column["values"], column["missing"]]
        assert [row["stderr"] for row in mine[:-1]] == pytest.approx(column["stderr"])
        assert mine[-1]["stderr"] is None
        assert {(row["share"], row["clear"]) for row in mine} == {
            (column["share"], column["clear"])
        }
        edges = column["edges"] or []
        assert [row["high"] for row in mine if row["high"] is not None] == edges
        assert [row["low"] for row in mine if row["low"] is not None] == edges
    printed = done("shapes", "m.safetensors", "-o", "-", "--format", "jsonl")
    assert [json.loads(line) for line in printed.splitlines()] == rows


def test_predictions_are_rows_with_a_column_of_the_table(folder):
    done(*FIT, "data.csv", *CLASSES)
    asked = ("predict", "m.safetensors", "asked.parquet", "--probabilities")
    done(*asked, "-o", "out.csv")
    done(*asked, "-o", "out.parquet", "--id", "day")
    rows = parquet.read_table("out.parquet").to_pylist()
    assert [row.pop("day") for row in rows] == ASKED["day"]
    assert [{name: str(cell) for name, cell in row.items()} for row in rows] == lines("out.csv")
    before = sorted(os.listdir(folder))
    refused = run("predict", "m.safetensors", "asked.csv", "-o", "out.npy", "--id", "day")
    assert_refused(refused, folder, before, "--id with rows")


def test_columns_that_say_nothing_are_not_clear_of_the_noise(folder):
    done(*FIT, "data.csv", *CLASSES, "--epsilon", "1")
    facts = json.loads(done("shapes", "m.safetensors", "--json"))
    said = done("shapes", "m.safetensors", "--top", "5")
    model = discreet.load("m.safetensors")
    assert {each["name"] for each in facts["columns"]} == set(model.shapes_)
    for each in facts["columns"]:
        shape = model.shapes_[each["name"]]
        clear = bool(np.any(np.abs(shape.values) > 1.96 * shape.stderr))
        assert each["clear"] is clear
        [title] = [line for line in said.splitlines() if line.startswith(f"{each['name']}, ")]
        assert title.endswith("not clear of the noise") is not clear
    assert any(not each["clear"] for each in facts["columns"])
    assert sum(each["share"] for each in facts["columns"]) == pytest.approx(1)


def test_top_leaves_columns_out_but_not_of_json(folder):
    done(*REGRESS, "data.csv", *PRICE)
    said = done("shapes", "m.safetensors", "--top", "2")
    assert said.count("of what columns do") == 2
    assert said.splitlines()[-1] == "and 3 less important; --top shows more"
    assert "in units of the target" in said
    facts = json.loads(done("shapes", "m.safetensors", "--top", "2", "--json", "-o", "it.png"))
    assert len(facts["columns"]) == 5
    assert facts["output"] == "it.png"


def test_scores_of_several_classes_stand_side_by_side(folder):
    done(*FIT, "data.csv", "--label", "zone", "--classes", "1,2,3", "--groups", "who")
    said = done("shapes", "m.safetensors", "-o", "it.png")
    heading = next(line for line in said.splitlines() if line.split() == ["1", "2", "3"])
    assert heading.startswith("  ")
    assert max(map(len, said.splitlines()[2:])) <= 80
    assert "score of each class" in said


def test_several_outputs_have_a_column_each(folder):
    from discreet.sklearn import PrivateClassifier, PrivateRegressor

    table = {"age": np.array(ASKED["zone"])}
    two = np.stack([ASKED["flag"], ASKED["price"]], axis=1)
    columns = {"columns": {"age": (0, 4)}, "rows_hint": 40}
    numbers = PrivateRegressor(20.0, 1e-6, target_bounds=(0, 100), **columns).fit(table, two)
    numbers.save("numbers.safetensors")
    PrivateClassifier(20.0, 1e-6, **columns).fit(table, two > 0).save("labels.safetensors")
    write_csv("q.csv", {"age": [1, 2]})
    for file, names in (
        ("numbers", ["prediction_0", "prediction_1"]),
        ("labels", ["label_0", "label_1"]),
    ):
        done("predict", f"{file}.safetensors", "q.csv", "-o", f"{file}.csv")
        assert list(lines(f"{file}.csv")[0]) == names
    assert "log-odds of each label" in done("shapes", "labels.safetensors")
    assert "output 0" in done("shapes", "numbers.safetensors")
    done("predict", "labels.safetensors", "q.csv", "--probabilities", "-o", "out.csv")
    assert list(lines("out.csv")[0]) == ["label_0", "label_1", "p_0", "p_1"]


def test_only_models_of_columns_have_shapes(folder):
    np.savez("arrays.npz", keys=np.eye(5)[np.arange(99) % 5], label=np.arange(99) % 2)
    done("fit", "arrays.npz", "--classes", "0,1", *SPEND, "-o", "m.safetensors")
    before = sorted(os.listdir(folder))
    assert_refused(run("shapes", "m.safetensors"), folder, before, "discreet fit and regress make")
    result = run("shapes", "m.safetensors", "-o", "it.pdf")
    assert_refused(result, folder, before, ".png or .svg")


# Cards.


def test_cards_and_pages_know_models_of_tables(folder):
    done(*FIT, "data.csv", *CLASSES)
    done(*REGRESS, "data.csv", *PRICE, "-o", "price.safetensors")
    assert isinstance(opened_release(Path("price.safetensors")), GeneralizedLinear)
    for file in ("m", "price"):
        assert "age (numbers in 16 bins" in done("card", f"{file}.safetensors")
        done("card", "--html", f"{file}.safetensors")
        assert "job (3 categories)" in Path(f"{file}.html").read_text(encoding="utf-8")
    assert "a private regression" in Path("price.html").read_text(encoding="utf-8")
    np.save("asked.npy", np.zeros((3, 5)))
    before = sorted(os.listdir(folder))
    result = run("attend", "price.safetensors", "asked.npy", "-o", "out.npy")
    assert_refused(result, folder, before, "and it is a regression: discreet predict answers")


# Reading.


def test_cells_are_what_the_schema_says(tmp_path):
    path = tmp_path / "it.csv"
    path.write_text(
        '\ufeffage, job ,yes,day,mine\n1e3, "nurse, night",TRUE,2020-01-02,7\n\n ,,0,,\n',
        encoding="utf-8",
    )
    schema = Schema(
        {"age": (0, 9), "job": ["nurse, night"], "yes": [False, True], "mine": "private categories"}
    )
    found = read_table(path, schema, "day")
    assert found.columns == {
        "age": [1000.0, None],
        "job": ["nurse, night", None],
        "yes": [1.0, 0.0],
        "mine": ["7", None],
    }
    assert found.others == {"day": ["2020-01-02", None]}
    assert schema.keys(found.columns)[:, 2].tolist() == [1.0, 0.0]


@pytest.mark.parametrize("last", ["3", "three", ""])
def test_no_cell_decides_what_a_private_column_holds(tmp_path, last):
    path = tmp_path / "it.csv"
    path.write_text(f"mine,other\n1.5,a\n{last},b\n")
    with pytest.raises(discreet.InvalidInput, match="the schema to say what 'mine' holds"):
        read_table(path, Schema({"mine": "private"}))


def test_a_missing_whole_number_changes_no_other(tmp_path):
    large = 2**53 + 1
    for others in ([4], [None]):
        parquet.write_table(pa.table({"n": [large, *others]}), tmp_path / "it.parquet")
        found = read_columns(tmp_path / "it.parquet", ["n"])
        assert int(next(iter(found["n"]))) == large


def test_instants_are_read_in_utc_to_the_second(tmp_path):
    nanoseconds = pa.array([1_600_000_000_123_456_789], pa.timestamp("ns", tz="Asia/Tokyo"))
    parquet.write_table(pa.table({"t": nanoseconds}), tmp_path / "it.parquet")
    schema = Schema({"t": Date("2000-01-01", "2030-01-01")})
    found = read_table(tmp_path / "it.parquet", schema).columns
    assert found["t"] == [datetime.fromisoformat("2020-09-13T12:26:40.123456")]
    assert type(found["t"][0]) is datetime  # and not one of a library that may not be there
    assert schema.keys(found).tolist() == [[1_600_000_000.0]]


def test_a_column_alone_may_have_empty_cells_and_a_table_no_rows(tmp_path):
    path = tmp_path / "it.csv"
    path.write_text("a\n1\n\n2\n")
    assert read_columns(path, ["a"]) == {"a": ["1", None, "2"]}
    path.write_text("a,b\n")
    assert read_columns(path, ["b", "a"]) == {"b": [], "a": []}
