"""Commands that read and write files."""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pytest
import safetensors.numpy
from data import unit_rows
from pyarrow import parquet
from typer.testing import CliRunner
from watching import eventually, has_open

import discreet
from discreet.cli import app
from discreet.kernels import Landmarks
from discreet.readers.attention.comparison import compare
from discreet.testing import Silent

RUNNER = CliRunner()
SPEND = ["--epsilon", "1", "--delta", "1e-6"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("keys.npy", unit_rows(400, 5))
    np.save("values.npy", unit_rows(400, 3, seed=1))
    np.save("queries.npy", unit_rows(7, 5, seed=2).astype(np.float32))
    np.save("groups.npy", np.arange(400) // 4)
    return tmp_path


def run(*arguments):
    return RUNNER.invoke(app, [str(each) for each in arguments])


def build(*extra, output="memory.safetensors"):
    return run("build", "keys.npy", "values.npy", "-o", output, *SPEND, "--scale", "1.5", *extra)


def test_build_attend_and_card(folder):
    result = build("--groups", "groups.npy", "--group-rows", "2")
    assert result.exit_code == 0, result.output
    assert "one record" in result.output
    memory = discreet.load("memory.safetensors")
    assert memory.scale == 1.5
    assert memory.guarantee.unit == "record"
    assert run("attend", "memory.safetensors", "queries.npy", "-o", "out.npy").exit_code == 0
    out, error = memory.attend(np.load("queries.npy"), stderr=True)
    assert np.load("out.npy").dtype == np.float32
    np.testing.assert_array_equal(np.load("out.npy"), out)
    run("attend", "memory.safetensors", "queries.npy", "-o", "out.npz", "--stderr")
    with np.load("out.npz") as both:
        np.testing.assert_array_equal(both["stderr"], error)
    done = run("attend", "memory.safetensors", "queries.npy", "-o", "again.npy", "--json")
    assert json.loads(done.stdout)["shape"] == [7, 3]
    assert "protects" in run("card", "memory.safetensors").output
    facts = json.loads(run("card", "memory.safetensors", "--json").output)
    assert facts == memory.card.to_dict()


def test_answers_are_shown_beside_the_base_rate_and_as_noise_where_they_are(folder):
    keys = unit_rows(4_000, 8)
    np.save("keys.npy", keys)
    np.save("values.npy", np.sign(keys[:, :2]) / 2)
    np.save("queries.npy", np.array([[1, 0], [-1, 1], [0, 0]]) @ np.eye(2, 8))
    assert build("--rows-hint", "4000").stderr == ""
    shown = run("attend", "memory.safetensors", "queries.npy", "-o", "out.npz", "--stderr").stdout
    _, heading, *lines, last = shown.splitlines()
    names = ["answer", "number", "value", "base", "rate", "difference", "±"]
    assert heading.split() == names
    memory = discreet.load("memory.safetensors")
    apart, error = memory.differences(np.load("queries.npy"))
    base = memory.attend(np.zeros((1, 8)))
    with np.load("out.npz") as all_of_it:
        np.testing.assert_array_equal(all_of_it["difference"], apart)
        np.testing.assert_array_equal(all_of_it["difference_stderr"], error)
        np.testing.assert_allclose(all_of_it["base_rate"], np.tile(base, (3, 1)), atol=1e-12)
    for index, line in enumerate(lines):
        number = int(line.split()[1])
        assert line.split()[0] == str(index)
        assert f"{apart[index, number]:+.2g}" in line
        assert f"{1.96 * error[index, number]:.2g}" in line
        assert line.endswith("not clear of the noise") == (index == 2)
    assert last.startswith("2 of 3 answers are clear of the noise")
    facts = json.loads(
        run("attend", "memory.safetensors", "queries.npy", "-o", "out.npy", "--json").stdout
    )
    assert facts["clear"] == 2
    assert [each["clear"] for each in facts["answers"]] == [True, True, False]
    assert facts["answers"][0]["number"] == 0
    assert facts["answers"][0]["difference"] == pytest.approx(apart[0, 0])
    assert facts["answers"][0]["base_rate"] == pytest.approx(base[0, 0])


def test_only_the_first_answers_are_shown_and_no_answers_are_none(folder):
    build()
    np.save("queries.npy", unit_rows(50, 5))
    shown = run("attend", "memory.safetensors", "queries.npy", "-o", "out.npy").stdout
    assert "and 30 more, in the file" in shown
    assert "of 50 answers" in shown
    np.save("queries.npy", np.zeros((0, 5)))
    done = run("attend", "memory.safetensors", "queries.npy", "-o", "none.npy")
    assert done.stdout.splitlines() == ["none.npy: answers of shape (0, 3)"]


def test_a_build_and_an_answer_that_are_noise_say_so_and_what_would_help(folder):
    np.save("keys.npy", unit_rows(2_000, 384))
    np.save("values.npy", unit_rows(2_000, 3, seed=1))
    np.save("queries.npy", unit_rows(4, 384))
    result = build("--rows-hint", "2000")
    assert "discreet: warning: Answers are predicted to be mostly noise" in result.stderr
    assert re.search(r"rows; epsilon=[\d.]+", result.stderr)
    assert "mostly noise" not in result.stdout
    result = run("attend", "memory.safetensors", "queries.npy", "-o", "out.npy")
    assert result.stderr.count("mostly noise") == 1
    assert "MOSTLY NOISE" in run("card", "memory.safetensors").output


def test_the_signal_of_a_plan_has_one_meaning_and_its_ratio_another_name(folder):
    asked = ["--rows", "3400", "--key-dim", "384", "--value-dim", "5", *SPEND, "--value-norm", "2"]
    facts = json.loads(run("plan", *asked, "--json").output)
    plan = discreet.plan(
        rows=3_400, key_dim=384, value_dim=5, epsilon=1.0, delta=1e-6, value_norm=2.0
    )
    assert (facts["signal"], facts["signal_to_error"]) == (plan.signal, plan.signal_to_error)
    for each in (facts, *facts["table"]):
        assert each["signal_to_error"] == pytest.approx(each["signal"] / each["stderr"])
    shown = run("plan", *asked).output.splitlines()
    [heading] = [line.split() for line in shown if line.split()[:2] == ["ε", "scale"]]
    [chosen] = [line.lstrip("> *").split() for line in shown if line.startswith(">")][:1]
    assert heading[2] == "s/e"
    assert chosen[2] == f"{plan.signal_to_error:.2g}"


def test_the_card_of_a_regression_is_shown_and_it_attends_to_nothing(folder):
    fit = discreet.least_squares(
        np.load("keys.npy"), np.load("values.npy"), epsilon=1.0, delta=1e-6, features="linear"
    )
    fit.save("fit.safetensors")
    assert json.loads(run("card", "fit.safetensors", "--json").output) == fit.card.to_dict()
    before = sorted(os.listdir(folder))
    refused = run("attend", "fit.safetensors", "queries.npy", "-o", "out.npy")
    assert_refused(refused, folder, before)
    assert "Expected fit.safetensors to be a memory, and it is a regression" in refused.output


def test_the_card_of_a_structure_is_shown_and_it_is_counted(folder):
    structure = discreet.paper.DPTreeDistance(
        np.load("keys.npy")[:, 0],
        np.load("values.npy")[:, 0],
        p=1,
        upper=1.0,
        weight_bound=1.0,
        epsilon=1.0,
        delta=1e-6,
    )
    structure.save("tree.safetensors")
    facts = json.loads(run("card", "tree.safetensors", "--json").output)
    assert facts == structure.card.to_dict()
    assert facts["guarantee"] == str(structure.guarantee)
    assert "whole_epsilon" not in facts
    shown = run("card", "tree.safetensors").output
    bound = f"{structure.error_bound(0.95):.4g}"
    for said in ("DPTreeDistance", "any one row", "e^ε", f"{structure.nbytes:,} bytes", bound):
        assert said in shown
    before = sorted(os.listdir(folder))
    refused = run("attend", "tree.safetensors", "queries.npy", "-o", "out.npy")
    assert_refused(refused, folder, before)
    assert (
        "to be a memory, and it is one of the paper's structures: discreet.load" in refused.output
    )
    limits = ["--epsilon", "2", "--delta", "1e-5", "--neighbours", "replace"]
    assert run("ledger", "create", "budget.db", "clinic", *limits).exit_code == 0
    counted = run("ledger", "spend", "budget.db", "clinic", "tree.safetensors")
    assert counted.exit_code == 0, counted.output


def test_build_tells_what_it_promises_as_json(folder):
    facts = json.loads(build("--json").output)
    memory = discreet.load("memory.safetensors")
    assert facts == {"output": "memory.safetensors", **memory.card.to_dict()}


def test_all_kinds_of_files_build_the_same_shape(folder):
    keys, values = np.load("keys.npy"), np.load("values.npy")
    np.savez("both.npz", keys=keys, values=values, groups=np.load("groups.npy"))
    safetensors.numpy.save_file({"k": keys, "v": values}, "both.safetensors")
    people = [f"person {row // 4}" for row in range(400)]
    columns = {"k": list(keys), "one": values[:, 0], "two": values[:, 1], "who": people}
    parquet.write_table(pa.table(columns), "both.parquet")
    for number, given in enumerate(
        [
            ("both.npz", "both.npz", "--groups", "both.npz"),
            ("both.safetensors:k", "both.safetensors:v"),
            ("both.parquet:k", "both.parquet:one,two", "--groups", "both.parquet:who"),
        ]
    ):
        result = run("build", *given, "-o", f"{number}.safetensors", *SPEND, "--scale", "1.5")
        assert result.exit_code == 0, result.output
        assert discreet.load(f"{number}.safetensors").kernel.dim == 5


def test_compare_tells_errors_as_a_page_as_json_and_as_a_picture(folder):
    build("--force", "--epsilon", "100")
    given = ("compare", "memory.safetensors", "keys.npy", "values.npy", "queries.npy")
    result = run(*given, "--picture", "it.png")
    assert result.exit_code == 0, result.output
    assert "owner" in result.output.splitlines()[0]
    assert (folder / "it.png").read_bytes().startswith(b"\x89PNG")
    facts = json.loads(run(*given, "--json").output)
    made = compare(
        discreet.load("memory.safetensors"),
        *(np.load(f"{name}.npy") for name in ("keys", "values", "queries")),
    )
    assert facts["error"] == pytest.approx(made.error)
    assert facts["verdict"] in result.output
    before = sorted(os.listdir(folder))
    assert_refused(run(*given, "--picture", "it.png"), folder, before)
    assert_refused(run(*given, "--picture", "it.gif"), folder, before)
    assert_refused(run(*given[:-1], "values.npy"), folder, before)


def test_compare_takes_what_build_takes(folder):
    keys, values = np.load("keys.npy"), np.load("values.npy")
    build("--epsilon", "100", "--force")
    wanted = run("compare", "memory.safetensors", "keys.npy", "values.npy", "queries.npy", "--json")
    np.savez("both.npz", k=keys, v=values)
    safetensors.numpy.save_file({"k": keys, "v": values}, "both.safetensors")
    columns = {"k": list(keys), **{f"v{place}": values[:, place] for place in range(3)}}
    parquet.write_table(pa.table(columns), "both.parquet")
    (folder / "parts").mkdir()
    for place in range(2):
        half = pa.table(columns).slice(200 * place, 200)
        parquet.write_table(half, f"parts/{place}.parquet")
    named, apart = ("--keys", "k", "--values", "v"), ("--keys", "k", "--values", "v0,v1,v2")
    for given in [
        ("both.npz", "queries.npy", *named),
        ("both.safetensors", "queries.npy", *named),
        ("both.npz:k", "both.npz:v", "queries.npy"),
        ("both.parquet", "queries.npy", *apart),
        ("parts", "queries.npy", *apart),
        ("parts/*.parquet", "queries.npy", *apart),
    ]:
        result = run("compare", "memory.safetensors", *given, "--json")
        assert result.exit_code == 0, result.output
        found, exact = json.loads(result.stdout), json.loads(wanted.stdout)
        assert found.pop("verdict") == exact.pop("verdict")
        assert found == pytest.approx(exact, rel=1e-9)
    before = sorted(os.listdir(folder))
    for given, said in [
        (("both.npz", "queries.npy"), "Expected --keys and --values"),
        (("both.npz", *named), "Expected a file of queries after the rows"),
        (("both.npz", "values.npy", "queries.npy", *named), "as the file of values"),
        (("both.parquet", "queries.npy", "--keys", "v0", "--values", "v1"), "as the memory has"),
    ]:
        refused = run("compare", "memory.safetensors", *given)
        assert_refused(refused, folder, before)
        assert said in refused.output


def test_plan_as_a_page_and_as_json():
    arguments = ["plan", "--rows", "5000", "--key-dim", "16", "--value-dim", "8", *SPEND]
    made = discreet.plan(rows=5000, key_dim=16, value_dim=8, epsilon=1.0, delta=1e-6)
    assert made.verdict in run(*arguments).output
    facts = json.loads(run(*arguments, "--json").output)
    assert facts["recommended_scale"] == made.recommended_scale
    assert facts["verdict"] == made.verdict
    assert [(each["epsilon"], each["scale"]) for each in facts["table"]] == [
        (epsilon, pytest.approx(times * made.scale))
        for epsilon in (0.5, 1.0, 2.0)
        for times in (0.25, 0.5, 1.0, 2.0)
    ]
    [chosen] = [each for each in facts["table"] if each["chosen"]]
    assert (chosen["epsilon"], chosen["scale"]) == (1.0, made.scale)
    assert chosen["recommended"]
    for each in facts["table"]:
        same = discreet.plan(
            rows=5000,
            key_dim=16,
            value_dim=8,
            epsilon=each["epsilon"],
            delta=1e-6,
            scale=each["scale"],
        )
        assert each["stderr"] == same.stderr


def test_the_table_of_a_plan_has_the_recommended_scale_beside_the_chosen():
    arguments = ["plan", "--rows", "5000", "--key-dim", "16", "--value-dim", "8", *SPEND]
    facts = json.loads(run(*arguments, "--scale", "0.5", "--json").output)
    [chosen] = [each for each in facts["table"] if each["chosen"]]
    [best] = [each for each in facts["table"] if each["recommended"]]
    assert chosen["scale"] == 0.5
    assert not chosen["recommended"]
    assert best["scale"] == facts["recommended_scale"] > 1
    same = discreet.plan(
        rows=5000, key_dim=16, value_dim=8, epsilon=1.0, delta=1e-6, scale=best["scale"]
    )
    assert best["stderr"] == same.stderr


def test_no_table_offers_a_state_that_no_machine_holds():
    wide = ("plan", "--rows", "1000", "--key-dim", "64", "--value-dim", "64", *SPEND)
    facts = json.loads(run(*wide, "--scale", "3", "--kernel", "minimax", "--json").output)
    assert {0.75, 1.5, 3.0} <= {each["scale"] for each in facts["table"]}
    assert all(each["state_bytes"] <= 1e12 for each in facts["table"])
    asked = json.loads(run(*wide, "--scale", "6", "--kernel", "minimax", "--json").output)
    assert asked["state_bytes"] > 1e12  # it can be planned


def test_public_rows_make_landmarks_and_bad_ones_are_refused(folder):
    public = unit_rows(400, 5, seed=9)
    np.save("public.npy", public)
    done = build("--public", "public.npy", "--kernel", "landmarks")
    assert done.exit_code == 0, done.output
    memory = discreet.load("memory.safetensors")
    assert memory.kernel == Landmarks(public, scale=1.5, key_norm=1.0, query_norm=1.0)
    assert "landmarks from public rows" in run("card", "memory.safetensors").output
    np.save("narrow.npy", public[:, :3])
    os.remove("memory.safetensors")
    before = sorted(os.listdir(folder))
    assert_refused(build("--public", "narrow.npy"), folder, before)
    assert_refused(build("--public", "absent.npy"), folder, before)
    assert_refused(build("--kernel", "landmarks"), folder, before)


def test_points_to_read_near_are_given_at_a_build_or_later(folder):
    points = unit_rows(300, 5, seed=9)
    np.save("points.npy", points)
    assert build("--kernel", "fourier").exit_code == 0
    other = "near.safetensors"
    assert build("--kernel", "fourier", "--reference", "points.npy", output=other).exit_code == 0
    assert len(discreet.load(other).released.layout.reference.rows) == 300
    asked = ("attend", "memory.safetensors", "queries.npy", "--reference", "points.npy")
    assert run(*asked, "-o", "out.npy").exit_code == 0
    near = discreet.load("memory.safetensors", reference=points)
    queries = np.load("queries.npy")
    np.testing.assert_array_equal(np.load("out.npy"), near.attend(queries, stderr=True)[0])
    rows = ("memory.safetensors", "keys.npy", "values.npy", "queries.npy")
    assert run("compare", *rows, "--reference", "points.npy").exit_code == 0
    before = sorted(os.listdir(folder))
    assert_refused(run(*asked[:-1], "keys.npy", "-o", "keys.npy", "--force"), folder, before)
    again = ("--reference", "points.npy", "--force")
    assert_refused(build(*again, output="points.npy"), folder, before)
    np.save("narrow.npy", points[:, :3])
    before = sorted(os.listdir(folder))
    assert_refused(build("--reference", "narrow.npy", output="new.safetensors"), folder, before)
    refused = run(*asked[:-1], "narrow.npy", "-o", "new.npy")
    assert_refused(refused, folder, before)
    assert "reference" in refused.output


@pytest.mark.slow
def test_plan_takes_features_a_goal_and_public_rows(folder):
    np.save("public.npy", unit_rows(400, 12, seed=9))
    arguments = [
        "plan",
        "--rows",
        "900000",
        "--key-dim",
        "12",
        "--value-dim",
        "8",
        *SPEND,
        "--json",
    ]
    soft = json.loads(run(*arguments, "--goal", "average").output)
    assert soft["goal"] == "average"
    few = json.loads(run(*arguments, "--features", "3000").output)
    assert few["features"] == 3000
    assert few["kernel_stderr"] > soft["kernel_stderr"]
    known = json.loads(run(*arguments, "--public", "public.npy").output)
    assert "public ones" in known["verdict"]
    assert run(*arguments, "--goal", "mean").exit_code == 2
    assert run(*arguments, "--features", "0").exit_code == 2


def test_a_file_is_replaced_only_by_force(folder):
    assert build().exit_code == 0
    before = (folder / "memory.safetensors").read_bytes()
    again = build()
    assert again.exit_code == 2
    assert "--force" in again.output
    assert (folder / "memory.safetensors").read_bytes() == before
    assert build("--force").exit_code == 0
    assert (folder / "memory.safetensors").read_bytes() != before


def saved(path, array):
    with path.open("wb") as file:
        np.save(file, array, allow_pickle=True)


def zipped(path):
    with path.open("wb") as file:
        np.savez(file, a=np.zeros(3))


def damaged(name):
    """Write a file that is not what it should be."""
    good = np.lib.format.magic(1, 0)
    makers = {
        "text": lambda path: path.write_text("1,2,3\n"),
        "empty": lambda path: path.write_bytes(b""),
        "directory": lambda path: path.mkdir(),
        "missing": lambda path: None,
        "npz": zipped,
        "objects": lambda path: saved(path, np.array([{}], dtype=object)),
        "words": lambda path: saved(path, np.full((400, 5), "a")),
        "complex": lambda path: saved(path, np.zeros((400, 5), dtype=complex)),
        "dates": lambda path: saved(path, np.zeros((400, 5), dtype="M8[s]")),
        "nan": lambda path: saved(path, np.full((400, 5), np.nan)),
        "infinity": lambda path: saved(path, np.full((400, 5), np.inf)),
        "fewer rows": lambda path: saved(path, np.zeros((399, 5))),
        "one axis": lambda path: saved(path, np.zeros(400)),
        "no columns": lambda path: saved(path, np.zeros((400, 0))),
        "number": lambda path: saved(path, np.zeros(())),
        "magic only": lambda path: path.write_bytes(good),
        "huge header": lambda path: path.write_bytes(good + b"\xff\xff" + b"{" * 65535),
        "bad header": lambda path: path.write_bytes(good + b"\x10\x00{'descr': __imp"),
        "cut short": lambda path: path.write_bytes(
            good
            + b"\x46\x00{'descr': '<f8', 'fortran_order': False, 'shape': (400, 5), }".ljust(70)
        ),
        "huge shape": lambda path: path.write_bytes(
            good
            + b"\x46\x00{'descr': '<f8', 'fortran_order': False, 'shape': (9"
            + b"9" * 15
            + b"), }"
        ),
        "zeros": lambda path: path.write_bytes(bytes(5000)),
        "noise": lambda path: path.write_bytes(np.random.default_rng(0).bytes(5000)),
    }
    return makers[name]


KINDS = [
    "text", "empty", "directory", "missing", "npz", "objects", "words", "complex", "dates", "nan",
    "infinity", "fewer rows", "one axis", "no columns", "number", "magic only", "huge header",
    "bad header", "cut short", "huge shape", "zeros", "noise",
]  # fmt: skip


def assert_refused(result, folder, before):
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    assert len(result.output.splitlines()) == 1
    assert sorted(os.listdir(folder)) == before


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("which", ["keys.npy", "values.npy", "groups.npy"])
def test_bad_inputs_of_a_build_are_refused_in_one_sentence(folder, kind, which):
    (folder / which).unlink()
    damaged(kind)(folder / which)
    before = sorted(os.listdir(folder))
    assert_refused(build("--groups", "groups.npy"), folder, before)


@pytest.mark.parametrize("kind", [each for each in KINDS if each != "fewer rows"])
def test_bad_queries_are_refused_in_one_sentence(folder, kind):
    build()
    (folder / "queries.npy").unlink()
    damaged(kind)(folder / "queries.npy")
    before = sorted(os.listdir(folder))
    result = run("attend", "memory.safetensors", "queries.npy", "-o", "out.npy")
    assert_refused(result, folder, before)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_a_memory_is_refused_in_one_sentence(folder, kind):
    damaged(kind)(folder / "memory.safetensors")
    before = sorted(os.listdir(folder))
    assert_refused(run("card", "memory.safetensors"), folder, before)
    result = run("attend", "memory.safetensors", "queries.npy", "-o", "out.npy")
    assert_refused(result, folder, before)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--epsilon", "-1"),
        ("--epsilon", "0"),
        ("--epsilon", "nan"),
        ("--epsilon", "many"),
        ("--delta", "1"),
        ("--delta", "0"),
        ("--neighbours", "none"),
        ("--scale", "0"),
        ("--scale", "1e9"),
        ("--kernel", "rbf"),
        ("--key-norm", "-1"),
        ("--query-norm", "0"),
        ("--value-norm", "inf"),
        ("--group-rows", "2"),
        ("--rows-hint", "0"),
        ("--rows-hint", "some"),
        ("--frobnicate",),
    ],
)
def test_bad_options_are_refused(folder, arguments):
    assert_refused(build(*arguments), folder, sorted(os.listdir(folder)))


@pytest.mark.parametrize("output", ["keys.npy", "values.npy", "groups.npy", "pipe"])
def test_what_is_read_or_no_file_is_not_replaced_even_by_force(folder, output):
    os.mkfifo("pipe")
    before = sorted(os.listdir(folder))
    assert_refused(build("--groups", "groups.npy", "--force", output=output), folder, before)
    assert np.load("keys.npy").shape == (400, 5)


def test_a_memory_is_not_replaced_by_its_answers(folder):
    build(output="memory.npy")
    before = sorted(os.listdir(folder))
    result = run("attend", "memory.npy", "queries.npy", "-o", "memory.npy", "--force")
    assert_refused(result, folder, before)
    assert_refused(run("attend", "memory.npy", "queries.npy", "-o", "o.txt"), folder, before)


@pytest.mark.parametrize("where", ["> /dev/full", "| true", "--json > /dev/full", ">&-"])
def test_a_file_that_was_written_counts_whoever_listens(folder, where):
    line = f"build keys.npy values.npy -o m.safetensors {' '.join(SPEND)} --scale 1.5 {where}"
    script = f"set -o pipefail; {sys.executable} -m discreet {line}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    discreet.load("m.safetensors")


@pytest.mark.parametrize(
    "options",
    [
        ("--rows", "1" + 400 * "0"),
        ("--key-dim", "1" + 400 * "0"),
        ("--delta", "5e-324"),
        ("--value-norm", "5e-324"),
        ("--epsilon", "501"),
    ],
)
def test_absurd_plans_are_refused(folder, options):
    shape = ("--rows", "10", "--key-dim", "4", "--value-dim", "4", *SPEND)
    assert_refused(run("plan", *shape, *options), folder, sorted(os.listdir(folder)))


def test_a_plan_at_the_edge_has_a_shorter_table():
    shape = ("--rows", "1000", "--key-dim", "4", "--value-dim", "4", "--delta", "1e-6")
    facts = json.loads(run("plan", *shape, "--epsilon", "300", "--json").output)
    assert {each["epsilon"] for each in facts["table"]} == {150, 300}


def test_names_do_nothing_to_a_terminal(folder):
    np.savez("x.npz", **{"a\x1b]0;title\x07": np.zeros(3), "b\nb": np.zeros(3)})
    result = run("build", "x.npz", "values.npy", "-o", "m.safetensors", *SPEND, "--scale", "1")
    assert_refused(result, folder, sorted(os.listdir(folder)))
    assert "\x1b" not in result.output
    assert "\x07" not in result.output


@pytest.mark.parametrize("output", [".", "no/such/folder/memory.safetensors"])
def test_an_output_that_cannot_be_written_is_refused_before_the_work(folder, output):
    assert_refused(build(output=output), folder, sorted(os.listdir(folder)))


def large_rows():
    rows = unit_rows(300_000, 16).astype(np.float32)
    for name in ("keys.npy", "values.npy"):
        np.save(name, rows)


def start_build():
    command = ["build", "keys.npy", "values.npy", "-o", "memory.safetensors", *SPEND]
    return subprocess.Popen(
        [sys.executable, "-m", "discreet", *command, "--scale", "5", "--kernel", "fourier"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("reading", [False, True])
def test_a_build_that_is_stopped_leaves_nothing(folder, sent, reading):
    for name in ("keys.npy", "values.npy"):  # zeros that take no room, and far longer than a second
        np.lib.format.open_memmap(name, "w+", np.float32, (10**7, 16)).flush()
    before = sorted(os.listdir(folder))
    process = start_build()
    if reading:
        assert eventually(lambda: has_open(process.pid, str(folder / "keys.npy")))
    else:
        time.sleep(0.2)  # somewhere in its first steps
    process.send_signal(sent)
    _, errors = process.communicate(timeout=300)
    assert sorted(os.listdir(folder)) == before
    assert process.returncode in ((-9,) if sent == signal.SIGKILL else (130, -2, 1))
    assert b"Traceback" not in errors or not reading  # before the command line runs, Python's own


@pytest.mark.slow
def test_builds_that_are_killed_at_fifty_moments_leave_nothing_that_loads(folder):
    """Moments are spread over the whole of a build, and beyond its end.

    A memory is there after a build that was done, whole, and never before.
    """
    large_rows()
    start = time.perf_counter()
    first = start_build()
    first.communicate(timeout=300)
    assert first.returncode == 0
    whole = time.perf_counter() - start
    (folder / "memory.safetensors").unlink()
    killed = 0
    for moment in np.linspace(0, 1.05, 50):
        start, process = time.perf_counter(), start_build()
        with suppress(subprocess.TimeoutExpired):
            process.wait(moment * whole)
            whole = time.perf_counter() - start  # the machine has less to do than before
        process.kill()
        process.communicate(timeout=300)
        if (folder / "memory.safetensors").exists():  # it was done, or just about to end
            assert discreet.load("memory.safetensors").private
            (folder / "memory.safetensors").unlink()
            continue
        assert process.returncode == -signal.SIGKILL
        killed += 1
        for left in folder.glob("*.part"):  # what has this name is whole, and has its noise
            assert discreet.load(left).private
            assert_only_noise(left.read_bytes(), folder)
            left.unlink()
        assert list(folder.glob(".*")) == []
    assert killed > 10


def assert_only_noise(data, folder):
    """A file cut short holds a noisy state or a part of it: none of the exact sums."""
    exact = discreet.build(
        *(np.load(folder / name) for name in ("keys.npy", "values.npy")),
        epsilon=1,
        delta=1e-6,
        scale=5,
        kernel="fourier",
        entropy=Silent(),
    )
    state = exact.released.state
    numbers = np.frombuffer(data[-8 * (len(data) // 8) :], dtype=np.int64)
    assert np.intersect1d(numbers, state[np.abs(state) > 10**6]).size == 0


@pytest.mark.parametrize("command", ["build", "attend"])
def test_a_full_disk_is_a_sentence_and_leaves_nothing(folder, command):
    if command == "attend":
        assert build().exit_code == 0
        np.save("queries.npy", unit_rows(5000, 5))
        arguments = ["attend", "memory.safetensors", "queries.npy", "-o", "out.npy"]
    else:
        arguments = ["build", "keys.npy", "values.npy", "-o", "memory.safetensors", *SPEND]
        arguments += ["--scale", "1.5", "--kernel", "fourier"]
    before = sorted(os.listdir(folder))
    done = subprocess.run(
        [sys.executable, "-m", "discreet", *arguments],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert re.search(r"could not be written \((File too large|the disk is full)\)", done.stderr)
    assert len(done.stderr.splitlines()) == 1
    assert sorted(os.listdir(folder)) == before
