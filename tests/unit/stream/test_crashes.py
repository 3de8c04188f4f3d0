"""Killed anywhere, no step is ever released with two states."""

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from streams import KEY, again, rows_of, small

from discreet import BudgetExceeded, CorruptRelease, InvalidInput, LedgerError, Stream
from discreet.ledger import Ledger
from discreet.stream.folder import Folder
from discreet.stream.people import People
from discreet.sums.settings import Settings
from discreet.testing import Seeded

RNG = np.random.default_rng(4)
DAYS = [rows_of(range(5), RNG) for _ in range(9)]


class Killed(BaseException):
    """Nobody catches this."""


def begun(folder, **options):
    """A stream of three steps, of records, with a ledger."""
    ledger = Ledger(folder / "budget.db")
    ledger.create("people", epsilon=1.0, delta=1e-6, unit="record")
    counted = {"ledger": ledger, "dataset": "people"}
    stream = small(folder, participations=9, entropy=Seeded(1), **counted | options)
    for number in range(3):
        stream.append(*DAYS[number], groups=np.arange(5), step=f"day {number}")
    return stream


def published(path):
    """What anybody can see: a hash of the totals of each step, from both places."""
    states = {
        int(each.name): hashlib.sha256(each.read_bytes()).hexdigest()
        for each in (path / "states").iterdir()
        if each.name.isdigit()
    }
    lines = (
        (path / "steps.jsonl").read_text().splitlines() if (path / "steps.jsonl").exists() else []
    )
    listed = {}
    for number, line in enumerate(lines, 1):
        try:
            listed[number] = json.loads(line)["digest"]
        except ValueError:
            assert number == len(lines)
    return states, listed


def killing(original, where):
    """Return the same, killed at its n-th call, before or after it."""
    count = {"calls": 0}

    def called(*args, **kwargs):
        count["calls"] += 1
        if where == (count["calls"], "before"):
            raise Killed
        result = original(*args, **kwargs)
        if where == (count["calls"], "after"):
            raise Killed
        return result

    return called


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("call", [1, 2, 3])
@pytest.mark.parametrize("resumed", [True, False], ids=["resumed", "in the same process"])
def test_killed_at_any_write(tmp_path, monkeypatch, call, when, resumed):
    """Of who came, of the sealed state, and of the published totals."""
    stream = begun(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(Folder, "_write", killing(Folder._write, (call, when)))
        with pytest.raises(Killed):
            stream.append(*DAYS[3], groups=np.arange(5), step="day 3")
    go_on(stream, committed=call == 3 or (call, when) == (2, "after"), resumed=resumed)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("resumed", [True, False], ids=["resumed", "in the same process"])
def test_killed_at_the_ledger(tmp_path, monkeypatch, when, resumed):
    stream = begun(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "note_step", killing(Ledger.note_step, (1, when)))
        with pytest.raises(Killed):
            stream.append(*DAYS[3], groups=np.arange(5), step="day 3")
    go_on(stream, committed=True, resumed=resumed)


def test_killed_at_the_last_line(tmp_path, monkeypatch):
    """Half of it was written: it is written again, whole."""
    stream = begun(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", killing(os.fsync, (7, "before")))
        with pytest.raises(Killed):
            stream.append(*DAYS[3], groups=np.arange(5), step="day 3")
    path = stream._path
    with (path / "steps.jsonl").open("ab") as file:
        file.write(b'{"name": "da')
    again(path, entropy=Seeded(5))
    states, listed = published(path)
    assert states == listed


def go_on(stream, *, committed, resumed):
    """Append the same step again, and one more: each has one state, everywhere."""
    path = stream._path
    seen_states, seen_lines = published(path)
    if resumed:
        stream = again(path, entropy=Seeded(99))
        assert stream.step == 3 + committed
    made = stream.append(*DAYS[3], groups=np.arange(5), step="day 3")
    stream.append(*DAYS[4], groups=np.arange(5), step="day 4")
    states, lines = published(path)
    assert states == lines
    assert seen_states.items() <= states.items()
    assert seen_lines.items() <= lines.items()
    assert states[4] == hashlib.sha256(made.released.state.tobytes()).hexdigest()
    assert stream.names == [f"day {number}" for number in range(5)]


def test_a_backup_is_refused_by_the_newer_lines(tmp_path):
    stream = small(tmp_path, entropy=Seeded(1))
    stream.append(*DAYS[0], step="0")
    old = (stream._path / "state.sealed").read_bytes()
    stream.append(*DAYS[1], step="1")
    (stream._path / "state.sealed").write_bytes(old)
    with pytest.raises(InvalidInput, match="older than what was published"):
        again(stream._path, entropy=Seeded(2))
    # However often it is tried, in the process that knew better, too.
    for _ in range(3):
        with pytest.raises(InvalidInput, match="older than what was published"):
            stream.append(*DAYS[2], step="2")
    with pytest.raises(InvalidInput, match="older than what was published"):
        stream.memory()


@pytest.mark.parametrize("keep", [None, 1])
def test_a_backup_that_is_unpacked_over_the_folder_is_refused(tmp_path, keep):
    """All files are old again but those that are new: what was published after it."""
    stream = small(tmp_path, entropy=Seeded(1), keep=keep)
    stream.append(*DAYS[0], step="0")
    shutil.copytree(stream._path, tmp_path / "backup")
    for number in (1, 2, 3):
        stream.append(*DAYS[number], step=f"{number}")
    shutil.copytree(tmp_path / "backup", stream._path, dirs_exist_ok=True)
    with pytest.raises(InvalidInput, match="older than what was published"):
        again(stream._path, entropy=Seeded(2))


def test_a_folder_that_goes_back_under_an_open_stream_is_refused(tmp_path):
    stream = small(tmp_path, entropy=Seeded(1))
    stream.append(*DAYS[0], step="0")
    shutil.copytree(stream._path, tmp_path / "backup")
    stream.append(*DAYS[1], step="1")
    shutil.rmtree(stream._path)
    shutil.copytree(tmp_path / "backup", stream._path)
    for _ in range(2):
        with pytest.raises(InvalidInput, match="older than what was published"):
            stream.append(*DAYS[2], step="2")


def test_whoever_went_on_while_rows_were_read_is_noticed(tmp_path):
    """The lock was deleted by somebody: two processes have one each."""
    stream = small(tmp_path, entropy=Seeded(1))
    stream.append(*DAYS[0], step="0")
    other = again(stream._path, entropy=Seeded(2))

    def chunks():
        (stream._path / "lock").unlink()
        made.append(other.append(*DAYS[1], step="x"))
        yield DAYS[2]

    made = []
    with pytest.raises(InvalidInput, match="nothing was added"):
        stream.append(chunks(), step="x")
    states, listed = published(stream._path)
    assert states == listed
    stored = stream.append(*DAYS[2], step="x").released.state
    assert np.array_equal(stored, made[0].released.state)


def test_a_child_that_goes_on_with_the_rows_of_its_parent_adds_nothing(tmp_path):
    stream = small(tmp_path, entropy=Seeded(1))
    stream.append(*DAYS[0], step="0")
    reading, writing = os.pipe()

    def chunks():
        child.append(os.fork())
        yield DAYS[1]

    child = []
    try:
        stream.append(chunks(), step="x")
    except InvalidInput:
        if not child[0]:
            os.write(writing, b"refused")
    finally:
        if not child[0]:
            os._exit(0)
    os.waitpid(child[0], 0)
    os.close(writing)
    assert os.read(reading, 20) == b"refused"
    os.close(reading)
    assert stream.names == ["0", "x"]


def test_rows_that_go_on_with_the_stream_themselves_are_refused(tmp_path):
    stream = small(tmp_path, entropy=Seeded(1), key_dim=2, value_dim=1)

    def chunks():
        yield DAYS[0]
        stream.append(*DAYS[1], step="inner")

    with pytest.raises(InvalidInput, match="do not go on with the stream"):
        stream.append(chunks(), step="outer")
    assert stream.step == 0


def test_folders_that_were_empty_may_be_missing(tmp_path):
    stream = small(tmp_path, entropy=Seeded(1))
    stream.append(*DAYS[0], step="0")
    shutil.rmtree(stream._path / "people")
    again(stream._path, entropy=Seeded(2)).append(*DAYS[1], step="1")


def test_public_files_of_two_streams_are_not_mixed(tmp_path):
    one, other = (small(tmp_path, entropy=None, epsilon=eps) for eps in (1.0, 2.0))
    for stream in (one, other):
        stream.append(*DAYS[0], step="0")
    shutil.copy(other._path / "settings.safetensors", one._path / "settings.safetensors")
    with pytest.raises(CorruptRelease, match=r"steps\.jsonl"):
        Stream.published(one._path)


def test_a_machine_that_finds_another_last_bit_of_the_noise_goes_on(tmp_path, monkeypatch):
    stream = small(tmp_path, entropy=None)
    stream.append(*DAYS[0], step="0")
    usual = Settings.multiplier.fget
    monkeypatch.setattr(Settings, "multiplier", property(lambda own: usual(own) * (1 + 2**-52)))
    assert Stream.resume(stream._path, key=KEY).step == 1
    monkeypatch.setattr(Settings, "multiplier", property(lambda own: usual(own) * 1.01))
    with pytest.raises(CorruptRelease):
        Stream.resume(stream._path, key=KEY)


def test_a_step_that_may_have_been_added_is_to_be_tried_under_its_name(tmp_path, monkeypatch):
    stream = small(tmp_path, entropy=Seeded(1))
    stream.append(*DAYS[0], step="0")

    def full(*_):
        raise OSError("disk full")

    with monkeypatch.context() as patched:
        patched.setattr(Folder, "_publish", full)
        with pytest.raises(OSError, match="disk full") as error:
            stream.append(*DAYS[1], step="1")
    assert "under the same name" in error.value.__notes__[0]
    stream.append(*DAYS[1], step="1")
    assert stream.step == 2


def test_a_whole_backup_is_refused_by_the_ledger(tmp_path):
    stream = begun(tmp_path)
    shutil.copytree(stream._path, tmp_path / "backup")
    stream.append(*DAYS[3], groups=np.arange(5), step="day 3")
    with pytest.raises(BudgetExceeded, match="backup"):
        again(tmp_path / "backup", entropy=Seeded(2))


def test_a_copy_that_goes_on_beside_it_is_refused_by_the_ledger(tmp_path):
    """Both were open: whoever notes the step first has it, and the other releases nothing."""
    stream = begun(tmp_path)
    shutil.copytree(stream._path, tmp_path / "copy")
    copied = again(tmp_path / "copy", entropy=Seeded(2))
    stream.append(*DAYS[3], groups=np.arange(5), step="day 3")
    with pytest.raises(BudgetExceeded):
        copied.append(*DAYS[3], groups=np.arange(5), step="day 3")
    assert 4 not in published(tmp_path / "copy")[0]


def test_a_state_that_the_ledger_refused_is_not_to_be_had(tmp_path, monkeypatch):
    """The copy is overtaken after its own check: it has sealed the step, and releases nothing."""
    stream = begun(tmp_path)
    shutil.copytree(stream._path, tmp_path / "copy")
    copied = again(tmp_path / "copy", entropy=Seeded(2))
    stream.append(*DAYS[3], groups=np.arange(5), step="day 3")
    with monkeypatch.context() as patched:
        patched.setattr(Folder, "check_ledger", lambda _: None)
        with pytest.raises(BudgetExceeded, match="released once"):
            copied.append(*DAYS[3], groups=np.arange(5), step="day 3")
    for _ in range(2):
        with pytest.raises(BudgetExceeded):
            copied.memory()
        with pytest.raises(BudgetExceeded):
            copied.append(*DAYS[3], groups=np.arange(5), step="day 3")
    assert 4 not in published(tmp_path / "copy")[0]


def test_another_ledger_is_refused(tmp_path):
    stream = begun(tmp_path)
    other = Ledger(tmp_path / "other.db")
    other.create("people", epsilon=1.0, delta=1e-6, unit="record")
    with pytest.raises(InvalidInput, match="in the ledger"):
        again(stream._path, entropy=Seeded(2), ledger=other)


def test_a_ledger_that_moved_is_remembered_and_one_that_is_gone_is_missed(tmp_path):
    stream = begun(tmp_path)
    (tmp_path / "budget.db").rename(tmp_path / "moved.db")
    with pytest.raises(LedgerError, match="If it has moved, say where"):
        stream.append(*DAYS[3], groups=np.arange(5), step="day 3")
    later = again(stream._path, entropy=Seeded(2), ledger=Ledger(tmp_path / "moved.db"))
    later.append(*DAYS[3], groups=np.arange(5), step="day 3")
    assert again(stream._path, entropy=Seeded(2)).step == 4


def test_interrupted_while_people_are_counted(tmp_path, monkeypatch):
    """The step is committed: whoever goes on knows all who came."""
    stream = small(tmp_path, entropy=Seeded(1))
    people = [f"{number}" for number in range(5)]
    with monkeypatch.context() as patched:
        patched.setattr(People, "keep", killing(People.keep, (1, "before")))
        with pytest.raises(Killed):
            stream.append(*DAYS[0], groups=people, step="0")
    assert stream.append(*DAYS[1], groups=people, step="1") is not None
    assert list(stream._begun.people.seen.values()) == [(1, 1)] * 5
    assert stream.names == ["0", "1"]


def test_a_failed_look_at_what_others_did_is_repeated(tmp_path, monkeypatch):
    stream = small(tmp_path, entropy=Seeded(1))
    stream.append(*DAYS[0], groups=range(5), step="0")
    other = again(stream._path, entropy=Seeded(2))
    other.append(*DAYS[1], groups=range(5, 10), step="1")
    with monkeypatch.context() as patched:
        patched.setattr(People, "restore", killing(People.restore, (2, "before")))
        with pytest.raises(Killed):
            stream.append(*DAYS[2], groups=range(5, 10), step="2")
    stream.append(*DAYS[2], groups=range(5, 10), step="2")
    assert sorted(stream._begun.people.seen.values()) == [(1, 1)] * 5 + [(1, 2)] * 5


def test_who_was_overtaken_after_a_failed_publication_takes_nothing_back(tmp_path, monkeypatch):
    stream = small(tmp_path, entropy=Seeded(1))
    stream.append(*DAYS[0], step="0")
    with monkeypatch.context() as patched:
        patched.setattr(Folder, "_publish", killing(Folder._publish, (1, "before")))
        with pytest.raises(Killed):
            stream.append(*DAYS[1], step="1")
    other = again(stream._path, entropy=Seeded(2))
    other.append(*DAYS[2], step="2")
    other.append(*DAYS[3], step="3")
    before = published(stream._path)
    stream.append(*DAYS[4], step="4")
    after = published(stream._path)
    assert before[0].items() < after[0].items()
    assert after[0] == after[1]


def test_sealed_files_are_of_one_stream(tmp_path):
    """Two streams with one key and the same settings take nothing from each other."""
    one, other = (small(tmp_path, entropy=Seeded(seed)) for seed in (1, 2))
    for stream in (one, other):
        stream.append(*DAYS[0], groups=range(5), step="0")
    for file in ("state.sealed", "people/00000001"):
        mine = (one._path / file).read_bytes()
        (one._path / file).write_bytes((other._path / file).read_bytes())
        with pytest.raises((InvalidInput, CorruptRelease)):
            again(one._path, entropy=Seeded(3))
        (one._path / file).write_bytes(mine)
    again(one._path, entropy=Seeded(3))


@pytest.mark.parametrize("claim", ["private", "counted"])
def test_settings_that_claim_something_else_are_refused(tmp_path, claim):
    """Made by somebody who can make a checksum, and has no key."""
    stream = small(tmp_path, entropy=Seeded(1), key_dim=2, value_dim=1)
    settings = stream._begun.settings
    if claim == "private":
        forged = replace(settings, file=b"", receipt=replace(settings.receipt, private=True))
    else:
        forged = replace(settings, file=b"", counted=not settings.counted)
    (stream._path / "settings.safetensors").write_bytes(forged.file)
    (stream._path / "ledger.json").write_text('["budget.db", "people", null]')
    with pytest.raises((InvalidInput, CorruptRelease)):
        Stream.resume(stream._path, key=KEY)


@pytest.mark.parametrize("step", ["reserve", "draw"])
def test_killed_before_it_was_counted_it_is_counted_when_it_goes_on(tmp_path, monkeypatch, step):
    ledger = Ledger(tmp_path / "budget.db")
    ledger.create("people", epsilon=1.0, delta=1e-6)
    options = {"ledger": ledger, "dataset": "people", "key_dim": 2, "value_dim": 1}
    with monkeypatch.context() as patched:
        patched.setattr(
            Ledger, step, killing(getattr(Ledger, step), (1 + (step == "draw"), "before"))
        )
        patched.setattr(Ledger, "void", lambda *_: True)  # a process that is killed voids nothing
        with pytest.raises(Killed):
            small(tmp_path, entropy=Seeded(1), **options)
    [path] = [each for each in tmp_path.iterdir() if each.is_dir()]
    stream = again(path, entropy=Seeded(2))
    stream.append(*DAYS[0], step="0")
    assert len(ledger.statement("people").spends) == 1
    assert ledger.last_step(stream.receipt.id) == 1


def test_what_does_not_fit_leaves_no_stream(tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    ledger.create("people", epsilon=0.5, delta=1e-6)
    options = {"ledger": ledger, "dataset": "people", "key_dim": 2, "value_dim": 1}
    with pytest.raises(BudgetExceeded):
        small(tmp_path, **options)
    assert not list(tmp_path.rglob("settings.safetensors"))


def test_a_stream_that_was_never_begun_is_begun(tmp_path):
    """Killed while it was created, before anything was drawn; not if something was published."""
    stream = small(tmp_path, key_dim=2, value_dim=1)
    (stream._path / "state.sealed").unlink()
    assert again(stream._path, entropy=Seeded(3)).step == 0
    stream = small(tmp_path)
    stream.append(*DAYS[0], step="0")
    (stream._path / "state.sealed").unlink()
    (stream._path / "steps.jsonl").unlink()
    with pytest.raises(CorruptRelease):
        again(stream._path, entropy=Seeded(3))


def test_threads_append_one_after_the_other(tmp_path):
    stream = small(tmp_path, entropy=Seeded(1), key_dim=2, value_dim=1)
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda step: stream.append(*DAYS[step], step=f"{step}"), range(8)))
    assert stream.step == 8
    for step, each in enumerate(made):  # each has got the state of its own step
        assert each.released.stream.step == stream.names.index(f"{step}") + 1
    states, listed = published(stream._path)
    assert states == listed


def test_a_child_that_holds_the_file_open_does_not_keep_the_lock(tmp_path):
    stream = small(tmp_path, key_dim=2, value_dim=1)

    def chunks():
        child = os.fork()
        if not child:
            time.sleep(30)
            os._exit(0)
        children.append(child)
        yield DAYS[0]

    children = []
    stream.append(chunks(), step="0")
    stream.append(*DAYS[1], step="1")
    os.kill(children[0], signal.SIGKILL)
    os.waitpid(children[0], 0)
    assert stream.step == 2


@pytest.mark.parametrize(
    ("file", "error"),
    [
        ("state.sealed", CorruptRelease),
        ("steps.jsonl", CorruptRelease),
        ("settings.safetensors", CorruptRelease),
        ("people/00000002", CorruptRelease),
    ],
)
def test_files_that_were_altered_are_refused(tmp_path, file, error):
    stream = begun(tmp_path)
    path = stream._path / file
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(error):
        again(stream._path, entropy=Seeded(2))


@pytest.mark.parametrize("file", ["state.sealed", "people/00000002", "ledger.json"])
def test_files_that_are_gone_are_missed(tmp_path, file):
    stream = begun(tmp_path)
    (stream._path / file).unlink()
    with pytest.raises(CorruptRelease):
        again(stream._path, entropy=Seeded(2))


def test_published_totals_that_were_altered_are_refused(tmp_path):
    stream = begun(tmp_path)
    path = stream._path / "states" / "00000002"
    data = bytearray(path.read_bytes())
    data[3] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptRelease, match="step 2"):
        stream.memory(step="day 1")


def test_records_of_another_step_are_refused(tmp_path):
    stream = begun(tmp_path)
    people = stream._path / "people"
    (people / "00000002").write_bytes((people / "00000001").read_bytes())
    with pytest.raises(CorruptRelease, match="records of each step"):
        again(stream._path, entropy=Seeded(2))


def test_records_of_an_attempt_that_failed_are_refused(tmp_path, monkeypatch):
    """Sealed for the same step, by the same stream: but others came when it was committed."""
    stream = begun(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(Folder, "_write", killing(Folder._write, (1, "after")))
        with pytest.raises(Killed):
            stream.append(*DAYS[3], groups=np.arange(5, 10), step="day 3")
    people = stream._path / "people" / "00000004"
    attempt = people.read_bytes()
    stream.append(*DAYS[3], groups=np.arange(5), step="day 3")
    people.write_bytes(attempt)
    with pytest.raises(CorruptRelease, match="records of each step"):
        again(stream._path, entropy=Seeded(2))


def test_another_key_opens_nothing(tmp_path):
    stream = begun(tmp_path)
    with pytest.raises(CorruptRelease, match="key"):
        again(stream._path, key=bytes(32), entropy=Seeded(2))


def test_a_private_stream_takes_no_test_noise(tmp_path):
    stream = small(tmp_path, entropy=None)
    stream.append(*DAYS[0], step="0")
    with pytest.raises(InvalidInput, match="private"):
        again(stream._path, entropy=Seeded(2))


def test_a_folder_has_one_stream(tmp_path):
    stream = small(tmp_path)
    stream.append(*DAYS[0], step="0")
    sealed = (stream._path / "state.sealed").read_bytes()
    with pytest.raises(InvalidInput, match="resume"):
        Stream(stream._path, key=KEY, steps=3, epsilon=1.0, delta=1e-6, scale=1.0)
    assert (stream._path / "state.sealed").read_bytes() == sealed
    with pytest.raises(InvalidInput, match="there is none"):
        Stream.resume(tmp_path / "nothing", key=KEY)


def test_the_sealed_state_is_as_many_states_as_there_are_buffers_and_one_more(tmp_path):
    stream = small(tmp_path, steps=10_000, entropy=Seeded(1), eps_s=1e-6)
    made = stream.append(*DAYS[0], step="x" * 120)
    assert (stream._path / "state.sealed").stat().st_size <= 5 * made.nbytes + 1024


def test_the_file_holds_no_exact_sum(tmp_path):
    """Nothing of what is private can be read without the key; nor any row in any file."""
    stream = small(tmp_path, entropy=Seeded(1))
    stream.append(*DAYS[0], step="0")
    silent = small(tmp_path)
    exact = silent.append(*DAYS[0], step="0").released.state
    everything = b"".join(each.read_bytes() for each in stream._path.rglob("*") if each.is_file())
    assert exact.tobytes() not in everything
    assert DAYS[0][0].tobytes() not in everything


CHILD = """
import sys
sys.path.insert(0, {support!r})
import numpy as np
from pathlib import Path
from streams import KEY, rows_of
from discreet import Stream
import hashlib, os
stream = Stream.resume({path!r}, key=KEY)
log = open({log!r}, "a")
print("ready", flush=True)
rng = np.random.default_rng(os.getpid())
for number in range(stream.step, 10_000):
    made = stream.append(*rows_of(range(20), rng), groups=np.arange(20), step=f"day {{number}}")
    digest = hashlib.sha256(made.released.state.tobytes()).hexdigest()
    log.write(f"{{stream.step}} {{digest}}\\n")
    log.flush()
"""


def killed_again_and_again(tmp_path, kills):
    """Kill a process that appends steps, at random moments; return what was ever seen."""
    ledger = Ledger(tmp_path / "budget.db")
    ledger.create("people", epsilon=1.0, delta=1e-6, unit="record")
    options = {"participations": 10_000, "by_record": True, "key_dim": 2, "value_dim": 1}
    stream = small(tmp_path, entropy=None, ledger=ledger, dataset="people", **options)
    path, log = stream._path, tmp_path / "log"
    support = str(Path(__file__).parents[2] / "support")
    code = CHILD.format(support=support, path=str(path), log=str(log))
    moments, seen = random.Random(1), {}
    for _ in range(kills):
        child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        assert child.stdout.readline() == b"ready\n"
        time.sleep(moments.uniform(0.0, 0.2))
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        for found in published(path):
            for step, digest in found.items():
                seen.setdefault(step, set()).add(digest)
    for line in log.read_text().splitlines():
        step, _, digest = line.partition(" ")
        if len(digest) == 64:
            seen.setdefault(int(step), set()).add(digest)
    return ledger, path, seen


@pytest.mark.parametrize("kills", [6, pytest.param(200, marks=pytest.mark.slow)])
def test_no_step_has_two_states(tmp_path, kills):
    ledger, path, seen = killed_again_and_again(tmp_path, kills)
    final = Stream.resume(path, key=KEY)
    assert final.step > 1
    assert all(len(states) == 1 for states in seen.values())
    assert len(ledger.statement("people").spends) == 1
    states, listed = published(path)
    assert states == listed
    assert len(states) == final.step == ledger.last_step(final.receipt.id)
