"""`discreet stream`: a key, a folder, steps, what is public, and files to give away."""

import itertools
import json
import re
import shutil
import stat
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from data import unit_rows
from pyarrow import parquet
from typer.testing import CliRunner

import discreet
from discreet.cli import app
from discreet.cli.stream_noise import noise_alone, noise_of_tree, verdict
from discreet.ledger import Ledger
from discreet.noise.correlated import Participation, Reading, ReadingKind
from discreet.pages.sheet import MEANINGS
from discreet.readers.attention.prediction import noisy_rows
from discreet.stream import folder as folders
from discreet.sums.accumulate import Accumulator
from discreet.testing import Seeded, Silent

RUNNER = CliRunner()
ROWS = 400
CREATE = ("stream", "create", "tickets", "--key-file", "key", "--steps", "40", "--delta", "1e-6")
SHAPE = ("--key-dim", "3", "--value-dim", "2")
SMALL = ("--epsilon", "20", "--scale", "1", "--kernel", "minimax", *SHAPE)
KEYS, VALUES = unit_rows(ROWS, 3), unit_rows(ROWS, 2, seed=1)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("keys.npy", KEYS)
    np.save("values.npy", VALUES)
    np.save("queries.npy", unit_rows(5, 3, seed=2))
    return tmp_path


def run(*arguments):
    return RUNNER.invoke(app, [str(each) for each in arguments])


def done(*arguments):
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result


def said(*arguments):
    """The one sentence that a command ends with, and nothing else."""
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    [line] = result.stderr.splitlines()
    return line.removeprefix("discreet: ")


def create(*more):
    return done(*CREATE, *SMALL, *more)


def append(step, *more, rows=("keys.npy", "values.npy")):
    return run("stream", "append", "tickets", *rows, "--key-file", "key", "--step", step, *more)


def several(count):
    """Add steps without the command, which is faster."""
    stream = discreet.Stream.resume("tickets", key=bytes.fromhex(Path("key").read_text()))
    for number in range(count):
        stream.append(KEYS, VALUES, step=f"day {number + 1}")


def everything():
    return {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}


def published():
    return discreet.Stream.published("tickets")


def test_a_stream_begins_with_a_key_that_only_its_owner_can_read():
    result = create()
    assert "key: a new key" in result.stdout
    assert "tickets: Adding or removing any one row" in result.stdout
    assert stat.S_IMODE(Path("key").stat().st_mode) == 0o600
    text = Path("key").read_text()
    assert re.fullmatch(r"[0-9a-f]{64}\n", text)
    assert text.strip() not in result.output
    assert discreet.Stream.resume("tickets", key=bytes.fromhex(text)).step == 0
    again = done("stream", "create", "other", *CREATE[3:], *SMALL)
    assert "new key" not in again.stdout
    assert Path("key").read_text() == text
    discreet.Stream.resume("other", key=bytes.fromhex(text))


def test_facts_of_a_new_stream():
    facts = json.loads(create("--json").stdout)
    assert (facts["folder"], facts["key_file"], facts["new_key"]) == ("tickets", "key", True)
    assert facts["steps"] == 40


def test_a_new_key_is_never_written_through_a_link():
    Path("key").symlink_to("elsewhere")
    assert said(*CREATE, *SMALL) == "key: File exists."
    assert not Path("elsewhere").exists()


@pytest.mark.parametrize("text", ["", "00" * 31, "00" * 33, "xy" * 32, "00" * 200, "secret"])
def test_a_file_that_holds_no_key_is_refused_and_not_quoted(text):
    Path("key").write_text(text)
    sentence = said(*CREATE, *SMALL)
    assert sentence == "Expected key to hold a key: 64 hexadecimal digits, and no more."
    assert not Path("tickets").exists()


def test_a_key_that_others_can_read_is_warned_of():
    Path("key").write_text(f" {'AB' * 32}\n\n")
    for mode, warned in ((0o600, False), (0o640, True), (0o604, True)):
        Path("key").chmod(mode)
        shutil.rmtree("tickets", ignore_errors=True)
        lines = create().stderr.splitlines()
        assert len(lines) == warned
        assert all(line.startswith("discreet: warning: key can be opened by") for line in lines)
    assert "AB" * 32 not in append("a").output


@pytest.mark.parametrize(
    ("more", "start"),
    [
        (("--steps", "0"), "Expected --steps 0 to be a whole number"),
        (("--epsilon", "0"), "Expected --epsilon 0.0 to be a finite number"),
        (("--key-dim", "0"), "Expected --key-dim 0 to be a whole number"),
        (("--heads", "0"), "Expected --heads '0' to be whole numbers, such as 8 or 2,4."),
        (("--heads", "2,"), "Expected --heads '2,' to be whole numbers"),
        (("--window", "7", "--half-life", "7"), "Expected --window or --half-life, not both."),
        (("--window", "0"), "Expected --window 0 to be a whole number"),
        (("--half-life", "0"), "Expected --half-life 0.0 to be a finite number"),
        (("--separation", "0"), "Expected --separation 0 to be a whole number"),
        (("--participations", "0"), "Expected --participations 0 to be a whole number"),
        (("--lifetime-rows", "3"), "Expected --by-record with --lifetime-rows"),
        (
            ("--lifetime-rows", "3", "--by-record", "--separation", "2"),
            "Expected --lifetime-rows, or --participations and --separation, not both.",
        ),
        (
            ("--lifetime-rows", "3", "--by-record", "--group-rows", "2"),
            "Expected --lifetime-rows or --group-rows, not both.",
        ),
        (("--group-rows", "2"), "Expected --group-rows 2.0 to be 1 unless groups are given."),
        (("--reader", "trees"), "Expected --reader 'trees' to be attention or least_squares."),
        (("--reader", "least_squares"), "Expected --scale with --reader attention, not least_sq"),
        (("--ridge", "2"), "Expected --ridge with --reader least_squares, not attention."),
        (("--key-file", "tickets/key"), "Expected --key-file tickets/key not to lie in tickets:"),
        (("--key-file", "."), "Expected . to be the file of the stream's key."),
        (("--key-file", "no/key"), "no/key: No such file or directory."),
        (("--dataset", "x"), "Expected --dataset 'x' to come with --ledger."),
        (("--ledger", "b.db", "--dataset", "x"), "Expected"),
    ],
)
def test_a_stream_that_cannot_begin_leaves_neither_key_nor_folder(more, start):
    before = everything()
    assert said(*CREATE, *SMALL, *more).startswith(start)
    assert everything() == before
    assert not Path("tickets").exists()


def test_a_folder_that_has_a_stream_or_is_none_is_refused():
    create()
    before = everything()
    known = said(*CREATE[:3], "--key-file", "new", *CREATE[5:], *SMALL)
    assert known.startswith("Expected tickets to have no stream in it yet")
    assert said("stream", "create", "keys.npy", *CREATE[3:], *SMALL).startswith(
        "Expected keys.npy to be a folder"
    )
    assert everything() == before


def test_ctrl_c_while_a_stream_begins_leaves_nothing_or_says_what(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(folders.Folder, "create", interrupted)
        result = run(*CREATE, *SMALL)
    assert result.exit_code == 130
    assert "interrupted, nothing was written." in result.stderr
    assert not Path("key").exists()
    with monkeypatch.context() as patched:
        patched.setattr(folders.Folder, "_seal", interrupted)
        result = run(*CREATE, *SMALL)
    assert result.exit_code == 130
    assert "interrupted. But tickets has a stream now, with its key in key." in result.stderr
    assert append("day 1").exit_code == 0


def test_rows_of_files_become_a_step():
    create("--rows-hint", "16000")
    result = append("2026-03-01")
    assert result.exit_code == 0, result.output
    noise = published().noise(Reading(), 1)
    assert result.stdout.splitlines()[0] == (
        "tickets: 2026-03-01, step 1 of about 40, was added. The noise of all steps so far is "
        f"{noise:.3g} times that of one single release of the same rows."
    )
    [line] = published().lines
    assert line.name == "2026-03-01"
    memory = published().answers(Reading())
    assert result.stdout.splitlines()[1:] == [verdict(memory)]
    assert "clear of the noise" in verdict(memory)
    assert noisy_rows(memory.released) == pytest.approx(ROWS, abs=40)


def test_a_step_that_is_there_is_left_alone():
    create()
    append("a")
    before = everything()
    result = append("a", rows=("absent.npy", "values.npy"))
    assert result.exit_code == 0
    [line] = result.stdout.splitlines()
    assert line == "tickets: a, step 1 of about 40, is there already: nothing was added."
    facts = json.loads(append("a", "--json").stdout)
    assert (facts["added"], facts["step"], facts["name"]) == (False, 1, "a")
    after = everything()
    assert after.keys() <= before.keys() | {Path("tickets/lock")}
    assert all(after[path] == before[path] for path in before)


def test_a_step_that_is_mostly_noise_says_so():
    done(*CREATE, "--epsilon", "1", "--scale", "5", "--rows-hint", "400", *SHAPE)
    line = append("a").stdout.splitlines()[1]
    # The noise decides which: whether any rows are to be seen in it.
    predicted = (
        r"Answers are predicted to be mostly noise: from query to query .* standard errors\."
    )
    unseen = r"Answers are mostly noise: the noisy sums show no rows at all\."
    assert re.fullmatch(f"{predicted}|{unseen}", line)
    assert "Built again" not in line


def test_rows_of_tables_with_records():
    create("--by-record", "--participations", "2")
    for part in range(2):
        some = slice(200 * part, 200 * part + 200)
        columns = {"k": list(KEYS[some]), "one": VALUES[some, 0], "two": VALUES[some, 1]}
        people = [f"person {row}" for row in range(some.start, some.stop)]
        Path("data").mkdir(exist_ok=True)
        parquet.write_table(pa.table({**columns, "who": people}), f"data/{part}.parquet")
    names = ("--keys", "k", "--values", "one,two", "--groups", "who")
    for step in ("a", "b", "c"):
        result = append(step, *names, rows=("data",))
        assert result.exit_code == 0, result.output
    counts = [
        noisy_rows(published().answers(Reading(ReadingKind.WINDOW, 1), step).released)
        for step in ("a", "b", "c")
    ]
    assert counts == pytest.approx([ROWS, ROWS, 0], abs=60)  # everybody has had two steps
    assert said("stream", "append", "tickets", "keys.npy", "values.npy", *LAST).startswith(
        "Expected --groups, the record of each row"
    )


LAST = ("--key-file", "key", "--step", "z")


def test_rows_of_arrays_with_records():
    create("--by-record")
    np.save("who.npy", np.arange(ROWS) // 2)
    result = append("a", "--groups", "who.npy")
    assert result.exit_code == 0, result.output
    found = noisy_rows(published().answers(Reading()).released)
    assert found == pytest.approx(ROWS / 2, rel=0.5)  # two rows of a record count as one, or more
    assert found < 0.9 * ROWS


@pytest.mark.parametrize("more", [(), ("--heads", "2,3"), ("--by-record",), ("--lifetime-rows",)])
def test_a_step_without_rows(more):
    options = ("--by-record", *more, "5") if more == ("--lifetime-rows",) else more
    create(*options)
    result = append("a", "--no-rows", rows=())
    assert result.exit_code == 0, result.output
    assert published().step == 1
    assert np.any(published().totals(1)[0])  # noise, like any other step
    heads = (2, 3) if "--heads" in more else ()
    assert published().settings.sums.layouts[0].heads == heads


@pytest.mark.parametrize(
    ("arguments", "start"),
    [
        (("tickets", *LAST), "Expected the rows of the step, in files, or --no-rows."),
        (("tickets", "keys.npy", "--no-rows", *LAST), "Expected rows, in files, or --no-rows, not"),
        (("tickets", "--groups", "g.npy", "--no-rows", *LAST), "Expected rows, in files, or"),
        (("tickets", "keys.npy", *LAST), "Expected --keys and --values"),
        (("tickets", "keys.npy", "absent.npy", *LAST), "Expected absent.npy to be a file"),
        (("tickets", "values.npy", "values.npy", *LAST), "Expected"),
        (
            ("tickets", "keys.npy", "values.npy", "--groups", "keys.npy", *LAST),
            "Expected rows without --groups",
        ),
        (("absent", "--no-rows", *LAST), "Expected absent to be the folder of a stream"),
        (
            ("tickets", "--no-rows", "--key-file", "absent", "--step", "z"),
            "Expected absent to be the file of the stream's key.",
        ),
        (
            ("tickets", "--no-rows", "--key-file", "other", "--step", "z"),
            "Expected the state of a stream (state.sealed) as it was sealed, and its key",
        ),
        (
            ("tickets", "--no-rows", "--key-file", "key", "--step", ""),
            "Expected step to be a public name",
        ),
        (
            ("tickets", "--no-rows", "--ledger", "b.db", *LAST),
            "Expected no --ledger: this stream was",
        ),
    ],
)
def test_a_step_that_cannot_be_added_changes_nothing(arguments, start):
    create()
    Path("other").write_text("12" * 32)
    Path("other").chmod(0o600)
    before = everything()
    assert said("stream", "append", *arguments).startswith(start)
    after = everything()
    after.pop(Path("tickets/lock"), None)
    before.pop(Path("tickets/lock"), None)
    assert after == before


def test_ctrl_c_in_a_step_says_whether_it_was_added(monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    create()
    with monkeypatch.context() as patched:
        patched.setattr(Accumulator, "add", interrupted)
        result = append("a")
    assert result.exit_code == 130
    assert "interrupted, nothing was written." in result.stderr
    before = everything()
    with monkeypatch.context() as patched:
        patched.setattr(folders.os, "fsync", interrupted_once_there_is("tickets/states/00000001"))
        result = append("a")
    assert result.exit_code == 130
    assert "interrupted. But the step a was added before that." in result.stderr
    assert everything() != before
    assert "nothing was added" in append("a").stdout
    assert published().step == 1


def interrupted_once_there_is(path):
    """Return what stands for `os.fsync`, and is interrupted once, when a file is there."""
    done_before = []

    def fsync(_):
        if Path(path).exists() and not done_before:
            done_before.append(True)
            raise KeyboardInterrupt

    return fsync


def test_a_stream_is_counted_once_and_one_that_does_not_fit_leaves_nothing():
    counted = ("--ledger", "b.db", "--dataset", "clinic", "--analyst", "eve")
    done("ledger", "create", "b.db", "clinic", "--epsilon", "21", "--delta", "1e-5")
    create(*counted)
    for step in ("a", "b"):
        assert append(step).exit_code == 0
    [spend] = Ledger("b.db").statement("clinic").spends
    assert (spend.receipt, spend.analyst) == (published().settings.receipt, "eve")
    assert Ledger("b.db").last_step(spend.id) == 2
    assert "counted        in a ledger" in done("stream", "show", "tickets").stdout
    before = everything()
    sentence = said("stream", "create", "other", "--key-file", "new", *CREATE[5:], *SMALL, *counted)
    assert "has the budget for" in sentence
    assert everything() == before
    Path("b.db").rename("moved.db")
    assert append("c").exit_code == 2
    result = append("c", "--ledger", "moved.db")
    assert result.exit_code == 0, result.output


def shown(*more):
    return json.loads(done("stream", "show", "tickets", "--json", *more).stdout)


def test_what_is_shown_is_what_the_library_says():
    create("--rows-hint", "16000", "--half-life", "3")
    several(9)
    facts = shown()
    assert (facts["step"], facts["first"], facts["last"]) == (9, "day 1", "day 9")
    assert (facts["steps"], facts["tune"]) == (40, {"kind": "decay", "length": 3.0})
    readings = {(each["kind"], each["length"]): each for each in facts["readings"]}
    lives = [("decay", life) for life in (3, 7, 14, 30)]
    assert list(readings) == [("all", 0), ("window", 7), ("window", 30), *lives]
    for (kind, length), each in readings.items():
        reading = Reading(kind, length)
        planned = each["planned"]["noise_over_one_release"]
        assert planned == published().noise(reading, 40)
        assert each["tuned"] == ((kind, length) == ("decay", 3))
        if (kind, length) == ("window", 30):
            assert each["now"] is None
            continue
        card = published().answers(reading).card.to_dict()
        assert each["now"]["noise_over_one_release"] == card["noise_over_one_release"]
        ratio = each["now"]["predicted_signal_to_error"]
        assert ratio == pytest.approx(card["predicted_signal_to_error"])


def test_the_page_of_a_stream():
    create("--rows-hint", "16000")
    page = done("stream", "show", "tickets").stdout
    assert "steps          none yet, about 40 planned" in page
    assert "there is no step yet" in page
    several(8)
    lines = done("stream", "show", "tickets").stdout.splitlines()
    assert "steps          8 (day 1 to day 8), about 40 planned" in lines
    assert "participation  any one row in one step" in lines
    assert "tuned for      all steps so far" in lines
    [own] = [line for line in lines if line.startswith("* all steps ")]
    assert f"{published().noise(Reading(), 8):#.3g}" in own
    assert f"{published().noise(Reading(), 40):#.3g}" in own
    week = Reading(ReadingKind.WINDOW, 7)
    [line] = [line for line in lines if line.startswith("  the last 7 ")]
    assert f"{published().noise(week, 8):#.3g}" in line


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (
            ("--participations", "3"),
            "anybody with one row in each step, in at most 3 steps; nobody",
        ),
        (("--participations", "3", "--separation", "7", "--by-record"), "at least 7 steps apart; "),
        (("--lifetime-rows", "4", "--by-record"), "any one record with at most 4 rows in all, in "),
    ],
)
def test_who_may_come_how_often_is_on_the_page(more, told):
    create(*more)
    assert told in done("stream", "show", "tickets").stdout


def test_a_stream_for_tests_says_first_that_it_is_not_private():
    spend = {"epsilon": 1.0, "delta": 1e-6, "scale": 1.0, "key_dim": 3, "value_dim": 2}
    discreet.Stream("tickets", key=bytes(32), steps=4, entropy=Silent(), **spend)
    assert done("stream", "show", "tickets").stdout.startswith("NOT PRIVATE")
    assert shown()["private"] is False


def test_readings_that_are_mostly_noise_are_marked_as_their_cards_mark_them():
    """With many steps, all of them are clear; a window has fewer rows, and is not."""
    spend = ("--epsilon", "0.5", "--scale", "2", "--rows-hint", "2000", "--kernel", "minimax")
    done(*CREATE, *SHAPE, *spend)
    several(40)
    marks = {}
    for each in shown()["readings"]:
        if each["kind"] == "decay":
            assert each["mostly_noise"] is None
            continue
        memory = published().answers(Reading(each["kind"], each["length"]))
        marks[each["length"]] = each["mostly_noise"]
        assert each["mostly_noise"] == ("MOSTLY NOISE" in dict(memory.card.sentences))
    assert marks[0] is False
    assert marks[7] is True
    lines = done("stream", "show", "tickets").stdout.splitlines()
    marked = {line.split("  ")[1].strip() for line in lines if " mostly noise  " in line}
    assert "the last 7" in marked
    assert not any(line.startswith("* all") and "mostly noise" in line for line in lines)


def test_without_a_public_number_of_rows_the_noisy_sums_tell_what_windows_can():
    create()
    several(3)
    for each in shown()["readings"]:
        assert each["planned"]["predicted_signal_to_error"] is None
        if each["kind"] == "all":
            assert each["now"]["predicted_signal_to_error"] > 1


def test_whoever_has_the_public_files_can_see_and_export_all_that_the_owner_can():
    create()
    several(2)
    Path("copy").mkdir()
    shutil.copytree("tickets/states", "copy/states")
    for name in ("settings.safetensors", "steps.jsonl"):
        shutil.copy(f"tickets/{name}", f"copy/{name}")
    Path("key").unlink()
    theirs = done("stream", "show", "copy").stdout
    assert theirs == done("stream", "show", "tickets").stdout
    done("stream", "export", "copy", "-o", "theirs.safetensors")
    done("stream", "export", "tickets", "-o", "ours.safetensors")
    one, other = (discreet.load(f"{who}.safetensors") for who in ("ours", "theirs"))
    np.testing.assert_array_equal(one.released.state, other.released.state)
    assert one.card == other.card


@pytest.mark.parametrize(
    ("steps", "hint"), [(0, ()), (0, ("--rows-hint", "16000")), (1, ("--rows-hint", "9")), (9, ())]
)
def test_a_picture(steps, hint):
    pytest.importorskip("matplotlib", reason="needs the extra `plots`")
    create(*hint)
    several(steps)
    drawn = done("stream", "show", "tickets", "--picture", "it.png")
    assert drawn.stdout.splitlines()[-1] == "it.png: the same, drawn"
    assert Path("it.png").read_bytes().startswith(b"\x89PNG")
    assert said("stream", "show", "tickets", "--picture", "it.png").endswith("--force replaces it.")
    inside = said("stream", "show", "tickets", "--picture", "tickets/it.png")
    assert inside == "Expected tickets/it.png not to lie in tickets, which is read."


@pytest.mark.parametrize(
    ("more", "reading", "step", "told"),
    [
        ((), Reading(), None, "all steps so far, after day 4."),
        (("--last", "2"), Reading("window", 2), None, "the last 2 steps, after day 4."),
        (("--half-life", "2.5"), Reading("decay", 2.5), None, "weight after 2.5 more, after day 4"),
        (("--last", "1", "--step", "day 2"), Reading("window", 1), "day 2", "step, after day 2."),
    ],
)
def test_a_state_is_a_file_that_all_other_commands_take(more, reading, step, told):
    create("--rows-hint", "16000")
    several(4)
    result = done("stream", "export", "tickets", "-o", "state.safetensors", *more)
    assert told in result.stdout
    wanted = published().answers(reading, step)
    found = discreet.load("state.safetensors")
    np.testing.assert_array_equal(found.released.state, wanted.released.state)
    facts = json.loads(done("card", "state.safetensors", "--json").stdout)
    assert facts == wanted.card.to_dict()
    assert facts["reading"] == str(reading)
    done("attend", "state.safetensors", "queries.npy", "-o", "out.npy")
    np.testing.assert_array_equal(np.load("out.npy"), wanted.attend(np.load("queries.npy")))
    done("card", "state.safetensors", "--html")
    for title in ("stream", "participation"):
        assert MEANINGS[title] in Path("state.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "start"),
    [
        (("tickets", "--last", "2", "--half-life", "2"), "Expected --last or --half-life, not"),
        (("tickets", "--last", "0"), "Expected --last 0 to be a whole number"),
        (("tickets", "--half-life", "0"), "Expected --half-life 0.0 to be a finite number"),
        (("tickets", "--step", "day 9"), "Expected --step 'day 9' to be the name of a step of tic"),
        (("absent",), "Expected absent to be the folder of a stream"),
        (("empty",), "Expected a stream with at least one step"),
        (("tickets", "-o", "key"), "Expected key not to exist yet; --force replaces it."),
        (("tickets", "-o", "tickets/x"), "Expected tickets/x not to lie in tickets"),
    ],
)
def test_a_state_that_there_is_not_is_one_sentence(arguments, start):
    create()
    several(1)
    done("stream", "create", "empty", *CREATE[3:], *SMALL)
    before = everything()
    assert said("stream", "export", "-o", "x.safetensors", *arguments).startswith(start)
    assert everything() == before


def test_regressions_are_streams_too():
    kind = ("--reader", "least_squares", "--feature-kind", "linear", "--ridge", "0.3")
    done(*CREATE, *SHAPE, "--epsilon", "20", *kind)
    [layout] = published().settings.sums.layouts
    assert (layout.ridge, layout.kernel.features) == (0.3, 4)
    result = append("a")
    assert len(result.stdout.splitlines()) == 1  # nobody predicts what it will be worth
    page = done("stream", "show", "tickets").stdout
    assert "s/e" not in page
    assert "reader         least_squares" in page
    assert all(each["mostly_noise"] is None for each in shown()["readings"])
    done("stream", "export", "tickets", "-o", "fit.safetensors")
    done("predict", "fit.safetensors", "queries.npy", "-o", "out.npy")
    assert np.load("out.npy").shape == (5, 2)
    pytest.importorskip("matplotlib", reason="needs the extra `plots`")
    done("stream", "show", "tickets", "--picture", "it.svg")
    assert "a single release of one step" in Path("it.svg").read_text(encoding="utf-8")


def brute_force(steps, participation):
    """The noise of sums from a tree, by its nodes: what they move by, and how they are mixed."""
    levels = range((steps - 1).bit_length() + 1)
    moved = 0
    for visits in range(1, (participation.steps or 1) + 1):
        for days in itertools.combinations(range(steps), visits):
            if all(b - a >= participation.separation for a, b in itertools.pairwise(days)):
                nodes = Counter((level, day >> level) for level in levels for day in days)
                moved = max(moved, sum(count**2 for count in nodes.values()))

    def variance(level):
        if level == 0:
            return 1.0
        below = 2 * variance(level - 1)
        return below / (1 + below)

    def left(step):
        return sum(variance(bit) for bit in range(step.bit_length()) if step >> bit & 1)

    return [np.sqrt(moved * left(step)) for step in range(1, steps + 1)]


@pytest.mark.parametrize("steps", [1, 2, 8])
@pytest.mark.parametrize(
    "participation", [Participation(), Participation(2), Participation(None), Participation(2, 4)]
)
def test_a_tree_has_the_noise_of_its_nodes(steps, participation):
    found = noise_of_tree(steps, participation)
    assert found == pytest.approx(brute_force(steps, participation))


def test_steps_that_are_released_alone_add_up():
    assert noise_alone(9, Participation())[[0, 3, 8]] == pytest.approx([1, 2, 3])
    assert noise_alone(9, Participation(4))[0] == pytest.approx(2)
    assert noise_alone(9, Participation(4, 5))[0] == pytest.approx(np.sqrt(2))  # two fit in nine


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (20, "Answers are predicted to be mostly noise"),
        (60, "Answers may be clear of the noise: rows seem to have much in common. If they have"),
        (500, "Answers are predicted to be clear of the noise: they differ by"),
    ],
)
def test_what_a_state_can_tell_is_said_with_as_much_doubt_as_there_is(tmp_path, rows, said):
    rng = np.random.default_rng(0)
    keys = rng.normal(size=(rows, 8))
    keys[:, 0] += 4  # in common
    keys /= np.linalg.norm(keys, axis=1, keepdims=True)
    spend = {"epsilon": 4.0, "delta": 1e-6, "scale": 2.0, "rows_hint": 4 * rows}
    stream = discreet.Stream(tmp_path / "s", key=bytes(32), steps=4, entropy=Seeded(1), **spend)
    memory = stream.append(keys, np.sign(keys[:, 1:2]), step="a")
    assert verdict(memory).startswith(said)
