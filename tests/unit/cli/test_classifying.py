"""Classifiers from tables, and labels from classifiers."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
import safetensors.numpy
from data import unit_rows
from pyarrow import parquet
from typer.testing import CliRunner
from watching import eventually, has_open

import discreet
from discreet.cli import app, predicting, releases
from discreet.errors import InvalidInput
from discreet.features.landmarks import UnitLandmarks
from discreet.readers.softmax import mechanism
from discreet.readers.softmax.planning import plan
from discreet.sums import mechanism as engine
from discreet.sums import source
from discreet.sums.accumulate import Accumulator

RUNNER = CliRunner()
SPEND = ["--epsilon", "20", "--delta", "1e-6"]
NAMES = np.array(["cat", "dog", "bird"])
KEYS = unit_rows(600, 5)
NUMBERS = np.argmax(KEYS[:, :3], axis=1)
LABELS = NAMES[NUMBERS]
QUERIES = unit_rows(40, 5, seed=2).astype(np.float32)
FIT = ("fit", "data.parquet", "-o", "model.safetensors", *SPEND)
TEXTS = ("--classes", "cat,dog,bird")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people = [f"person {row // 3}" for row in range(600)]
    columns = {"keys": list(KEYS), "label": LABELS, "number": NUMBERS, "who": people}
    columns |= {f"k{i}": KEYS[:, i] for i in range(5)}
    parquet.write_table(pa.table(columns), "data.parquet")
    np.savez("data.npz", keys=KEYS, label=LABELS, number=NUMBERS, who=np.arange(600) // 3)
    safetensors.numpy.save_file({"keys": KEYS, "label": NUMBERS}, "data.safetensors")
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


def is_right(model, labels=LABELS):
    return np.mean(model.predict(KEYS) == labels) > 0.8


def test_fit_predict_and_card(folder):
    said = done(*FIT, *TEXTS, "--features", "linear", "--groups", "who", "--group-rows", "2")
    model = discreet.load("model.safetensors")
    assert said.strip() == f"model.safetensors: {model.guarantee}"
    assert model.guarantee.unit == "record"
    assert is_right(model)
    said = done("predict", "model.safetensors", "queries.npy", "-o", "out.npy")
    assert said.strip() == "out.npy: labels of shape (40,), each one of 3 classes"
    np.testing.assert_array_equal(
        np.load("out.npy", allow_pickle=False), model.predict(QUERIES), strict=True
    )
    facts = json.loads(done("card", "model.safetensors", "--json"))
    assert facts == model.card.to_dict()
    assert "protects" in done("card", "model.safetensors")


def test_probabilities_come_with_labels_and_classes(folder):
    done(*FIT, *TEXTS, "--features", "linear")
    model = discreet.load("model.safetensors")
    asked = ("predict", "model.safetensors", "queries.npy", "--probabilities", "--json")
    facts = json.loads(done(*asked, "-o", "out.npz"))
    assert facts == {"output": "out.npz", "shape": [40], "classes": ["bird", "cat", "dog"]}
    with np.load("out.npz", allow_pickle=False) as made:
        assert sorted(made) == ["classes", "labels", "probabilities"]
        np.testing.assert_array_equal(made["labels"], model.predict(QUERIES))
        np.testing.assert_array_equal(made["classes"], model.classes)
        np.testing.assert_array_equal(made["probabilities"], model.probabilities(QUERIES))


@pytest.mark.parametrize(
    ("given", "classes", "labels"),
    [
        (("data.parquet",), "dog,cat,bird", LABELS),
        (("data.parquet", "--keys", "k0,k1,k2,k3,k4"), "cat,dog,bird", LABELS),
        (("data.parquet", "--label", "number"), "2,1,0", NUMBERS),
        (("data.npz", "--groups", "who"), "cat,dog,bird", LABELS),
        (("data.npz", "--label", "number"), "0,1.0,2,3.5", NUMBERS),
        (("data.safetensors",), "0,1,2", NUMBERS),
    ],
)
def test_all_kinds_of_files_fit_numbers_and_texts(folder, given, classes, labels):
    done("fit", *given, "--classes", classes, *SPEND, "--features", "linear", "-o", "m.safetensors")
    model = discreet.load("m.safetensors")
    assert is_right(model, labels)
    assert model.classes.dtype.kind == ("U" if labels is LABELS else "f" if "." in classes else "i")
    done("predict", "m.safetensors", "queries.npy", "-o", "out.npy")
    assert np.load("out.npy").dtype == model.classes.dtype


def test_options_reach_the_library(folder):
    np.save("public.npy", unit_rows(300, 5, seed=9))
    facts = json.loads(
        done(
            *FIT,
            *TEXTS,
            *("--public", "public.npy", "--key-norm", "2", "--neighbours", "replace"),
            *("--rows-hint", "700", "--json"),
        )
    )
    model = discreet.load("model.safetensors")
    assert facts == {"output": "model.safetensors", **model.card.to_dict()}
    assert isinstance(model.features, UnitLandmarks)
    assert (facts["key_norm"], facts["rows_hint"], facts["neighbours"]) == (2.0, 700, "replace")
    again = (*FIT, *TEXTS, "--force", "--features", "linear")
    limited = run(*again, "--memory-limit", "-1")
    assert limited.exit_code == 2
    assert "--memory-limit -1" in limited.output
    done(*again, "--memory-limit", "0")


def test_a_file_is_replaced_only_by_force_and_what_is_read_never(folder):
    fit = (*FIT, *TEXTS, "--features", "linear")
    done(*fit)
    before = sorted(os.listdir(folder))
    assert_refused(run(*fit), folder, before, "--force")
    done(*fit, "--force")
    reading = ("-o", "data.parquet", "--force")
    assert_refused(run(*fit, *reading), folder, before)
    for output in ("model.safetensors", "queries.npy"):
        answered = ("predict", "model.safetensors", "queries.npy", "-o", output, "--force")
        assert_refused(run(*answered), folder, before)
    asked = ("predict", "model.safetensors", "queries.npy", "-o")
    assert_refused(run(*asked, "out.npz"), folder, before, "end in .npy")
    assert_refused(run(*asked, "out.npy", "--probabilities"), folder, before, "end in .npz")


def test_one_kind_of_release_is_not_taken_for_another(folder):
    done(*FIT, *TEXTS, "--features", "linear")
    options = {"epsilon": 1.0, "delta": 1e-6}
    discreet.build(KEYS, KEYS, scale=1.0, **options).save("memory.safetensors")
    before = sorted(os.listdir(folder))
    for file, said in [
        ("memory.safetensors", "a classifier or a regression, and it is a memory: discreet attend"),
        ("data.safetensors", "written by discreet"),
        ("absent.safetensors", "it is not there"),
    ]:
        result = run("predict", file, "queries.npy", "-o", "out.npy")
        assert_refused(result, folder, before, file, said)
    result = run("attend", "model.safetensors", "queries.npy", "-o", "out.npy")
    assert_refused(result, folder, before, "to be a memory, and it is a classifier: discreet pred")
    result = run("compare", "model.safetensors", "data.npz", "data.npz:keys", "queries.npy")
    assert_refused(result, folder, before, "it is a classifier")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("queries.npy",), "a .npy file holds one array"),
        (("data.npz:keys",), "without a name: --keys"),
        (("absent.npz",), "there is none of this name"),
        (("data.npz", "--keys", "key"), "an array 'key'; it has: keys, label, number, who."),
        (("data.parquet", "--keys", "k0,k9"), "one column 'k9'; it has: k0, k1"),
        (("data.parquet", "--keys", "label"), "label in data.parquet to be numbers, or lists"),
        (("data.npz", "--label", "keys"), "keys in data.npz to hold a number or text"),
        (("data.npz", "--groups", "keys"), "keys in data.npz to hold a whole number or text"),
        (("data.npz", "--classes", "cat,cow"), "every label to be one of classes"),
        (("data.npz", "--classes", "cat"), "at least two classes"),
        (("data.npz", "--classes", ""), "at least two classes"),
        (("data.npz", "--classes", "cat,cat"), "distinct"),
        (("data.npz", "--classes", "a\nb"), "a list like a,b,c"),
        (("data.npz", "--label", "number"), "--classes to be finite numbers"),
        (("data.npz", "--label", "number", "--classes", "0,nan"), "finite numbers"),
        (("data.npz", "--label", "number", "--classes", "0," + 400 * "9"), "finite numbers"),
        (("data.npz", "--label", "number", "--classes", "1,2"), "every label to be one of"),
        (("data.npz", "--features", "curves"), "--features 'curves'"),
        (("data.npz", "--features", "near_landmarks"), "--public"),
        (("data.npz", "--group-rows", "2"), "--group-rows"),
        (("data.npz", "--epsilon", "0"), "--epsilon"),
        (("data.npz", "--key-norm", "0"), "--key-norm"),
        (("data.npz", "--rows-hint", "0"), "--rows-hint"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence_without_a_label(folder, given, said):
    before = sorted(os.listdir(folder))
    data, *options = given
    result = run("fit", data, "-o", "m.safetensors", *SPEND, *TEXTS, *options)
    assert_refused(result, folder, before, said)
    assert not any(name in result.output for name in ("dog", "bird", "person"))


def test_classes_are_a_list_whose_commas_can_be_quoted():
    parse = predicting.parse_classes
    assert parse('a, b,"c,d"', numbers=False) == ["a", "b", "c,d"]
    assert parse("3,-1,2.5, 4", numbers=True) == [3, -1, 2.5, 4]
    assert [type(each) for each in parse("3,2.5", numbers=True)] == [int, float]
    assert parse("3,-1", numbers=False) == ["3", "-1"]
    assert predicting.parse_count_or_classes("12") == 12
    assert predicting.parse_count_or_classes("1,2") == ["1", "2"]
    with pytest.raises(InvalidInput, match="a number, or a list"):
        predicting.parse_count_or_classes("many")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError()])
def test_rounds_that_are_stopped_leave_nothing_and_say_what_was_spent(folder, monkeypatch, error):
    def stop(*_):
        raise error

    monkeypatch.setattr(mechanism, "_calibrated", stop)
    before = sorted(os.listdir(folder))
    result = run(*FIT, *TEXTS, "--features", "linear")
    assert result.exit_code == (130 if isinstance(error, KeyboardInterrupt) else 2)
    [line] = result.stderr.splitlines()
    assert "noise had been drawn in 16 of 17 passes" in line
    assert "as spent" in line
    assert sorted(os.listdir(folder)) == before


def test_before_the_first_noise_nothing_was_spent(folder, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Accumulator, "add", stop)
    result = run(*FIT, *TEXTS, "--features", "linear")
    assert result.exit_code == 130
    assert result.stderr == "discreet: interrupted, nothing was written.\n"


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_fit_that_gets_a_signal_leaves_nothing(folder, sent):
    keys = np.lib.format.open_memmap("k.npy", "w+", np.float32, (400_000, 16))
    np.savez("data.npz", keys=keys, label=np.arange(400_000) % 2)
    before = sorted(os.listdir(folder))
    command = ["fit", "data.npz", "--classes", "0,1", "--features", "waves", "-o", "m.safetensors"]
    process = subprocess.Popen(
        [sys.executable, "-m", "discreet", *command, *SPEND, "--memory-limit", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert eventually(lambda: has_open(process.pid, str(folder / "data.npz")))
    process.send_signal(sent)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143}[sent]
    assert "Traceback" not in errors
    assert sorted(os.listdir(folder)) == before


def test_rounds_are_shown_on_a_terminal_only(folder, monkeypatch):
    seen = []
    monkeypatch.setattr(releases, "has_terminal", lambda: True)
    monkeypatch.setattr(
        engine,
        "passes_bar",
        lambda count, *, rows, show: (
            seen.append((count, show)) or source.passes_bar(count, rows=rows, show=False)
        ),
    )
    done(*FIT, *TEXTS, "--features", "linear")
    assert seen == [(17, True)]


def test_a_plan_as_a_page_and_as_json(folder):
    arguments = ["plan-fit", "--rows", "5000", "--key-dim", "16", "--classes", "10", *SPEND]
    made = plan(rows=5000, key_dim=16, classes=10, epsilon=20.0, delta=1e-6)
    assert done(*arguments).rstrip() == str(made)
    facts = json.loads(done(*arguments, "--json"))
    assert facts["rows_for_noise"] == made.rows_for_noise
    assert facts["verdict"] == made.verdict
    assert facts["features"] == made.features.describe()
    assert facts["feature_count"] == made.features.features
    assert (facts["passes"], facts["warning"]) == (17, None)


def test_a_plan_takes_the_options_of_a_fit(folder):
    np.save("public.npy", unit_rows(300, 5, seed=9))
    shape = ("plan-fit", "--rows", "5000", "--key-dim", "5", *SPEND, "--json")
    facts = json.loads(
        done(
            *shape,
            *("--classes", "a,b,c", "--public", "public.npy", "--neighbours", "replace"),
            *("--by-record", "--group-rows", "3", "--key-norm", "2", "--memory-limit", "10"),
        )
    )
    made = plan(
        rows=5000,
        key_dim=5,
        classes=3,
        epsilon=20.0,
        delta=1e-6,
        public_rows=np.load("public.npy"),
        neighbours="replace",
        by_record=True,
        group_rows=3.0,
        key_norm=2.0,
        memory_limit=10,
    )
    assert facts["noise_rows"] == made.noise_rows == pytest.approx(6 * made.noise_multiplier)
    assert facts["features"] == made.features.describe()
    assert (facts["class_count"], facts["kept"]) == (3, False)
    assert json.loads(done(*shape, "--classes", "3", "--features", "rays"))["feature_count"] == 6
    before = sorted(os.listdir(folder))
    for wrong in (("1",), ("many",), ("3", "--rows", "0"), ("3", "--features", "curves")):
        assert_refused(run(*shape, "--classes", *wrong), folder, before)
