"""One ledger by two names: each name would have a log of its own, and not count what the other has.

A symbolic link is no second name: SQLite follows it. Hard links and files that are mounted by
themselves are, and are refused at every door.
"""

import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile

import pytest
from ledgers import DELTA, build, receipt
from typer.testing import CliRunner

import discreet
from discreet.cli import app
from discreet.errors import LedgerError
from discreet.ledger import Ledger

SUPPORT = pathlib.Path(__file__).parents[1] / "support"
HEAD = f"""
import json, os, sys
sys.path.insert(0, {str(SUPPORT)!r})
import discreet
from discreet.ledger import Ledger
from ledgers import DELTA, build, receipt
"""
NOBODY = 65534


@pytest.fixture
def ledger(tmp_path):
    folder = tmp_path / "host"
    folder.mkdir()
    made = Ledger(folder / "budget.db")
    made.create("clinic", epsilon=0.3, delta=1e-5)
    return made


# All that can be done with a ledger.
DOORS = {
    "create": lambda at: at.create("new", epsilon=1.0, delta=1e-6),
    "limit": lambda at: at.limit_analyst("clinic", "eve", epsilon=0.1, delta=1e-6),
    "check": lambda at: at.check("clinic", receipt(0.1).mechanisms, unit="row", delta=DELTA),
    "reserve": lambda at: at.account("clinic").reserve(receipt(0.1), delta=DELTA),
    "draw": lambda at: at.draw("some"),
    "void": lambda at: at.void("some"),
    "spend": lambda at: at.spend("clinic", receipt(0.1), delta=DELTA),
    "released": lambda at: at.released(receipt(0.1), "it"),
    "datasets": lambda at: at.datasets(),
    "statement": lambda at: at.statement("clinic"),
    "build": lambda at: build(at, 0.1),
}


@pytest.mark.parametrize("door", DOORS)
def test_a_ledger_with_two_names_is_refused_by_both(ledger, tmp_path, door):
    other = tmp_path / "other.db"
    os.link(ledger.path, other)
    before = ledger.path.read_bytes()
    for path in (ledger.path, other):
        with pytest.raises(LedgerError, match=r"one name, and it has 2 \(hard links\)"):
            DOORS[door](Ledger(path))
    assert ledger.path.read_bytes() == before
    assert {each.name for each in tmp_path.rglob("*")} == {"host", "budget.db", "other.db"}
    other.unlink()
    assert ledger.statement("clinic").spends == ()


def test_the_command_line_refuses_two_names(ledger, tmp_path):
    os.link(ledger.path, tmp_path / "other.db")
    for command, *more in (["show"], ["void", "some"]):
        done = CliRunner().invoke(app, ["ledger", command, str(ledger.path), *more])
        assert done.exit_code == 2
        assert "2 (hard links)" in done.stderr
        assert done.stderr.count("\n") == 1


def test_a_link_that_is_made_meanwhile_is_noticed_by_the_next_step(ledger, tmp_path):
    held = ledger.account("clinic").reserve(receipt(0.1), delta=DELTA)
    os.link(ledger.path, tmp_path / "other.db")
    with pytest.raises(LedgerError, match="hard links"):
        held.draw()
    (tmp_path / "other.db").unlink()
    held.draw()


def test_a_ledger_that_was_renamed_without_its_log_is_refused(ledger):
    """Somebody is killed while others look: the last that was spent is in the log alone."""
    looking = sqlite3.connect(ledger.path)  # whose log is not emptied as long as this is open
    looking.execute("SELECT * FROM spends").fetchall()
    build(ledger, 0.2)
    log = pathlib.Path(f"{ledger.path}-wal")
    kept = log.read_bytes()
    looking.close()
    assert kept
    renamed = Ledger(ledger.path.with_name("renamed.db"))
    os.rename(ledger.path, renamed.path)
    log.write_bytes(kept)  # as the system leaves it if all of them are killed
    for door in (lambda: build(renamed, 0.2), lambda: renamed.statement("clinic")):
        with pytest.raises(LedgerError, match="log of a database that is gone"):
            door()
    os.rename(renamed.path, ledger.path)
    [spend] = ledger.statement("clinic").spends
    assert spend.counts
    os.rename(ledger.path, renamed.path)
    log.unlink(missing_ok=True)
    assert renamed.statement("clinic").spends


def test_a_directory_is_no_file_with_many_names(tmp_path):
    (tmp_path / "folder" / "below").mkdir(parents=True)
    with pytest.raises(LedgerError, match="could not be read"):
        Ledger(tmp_path / "folder").datasets()


@pytest.fixture(params=["file", "folder"])
def by_link(request, ledger, tmp_path):
    """The same ledger by a symbolic link."""
    name = tmp_path / "link"
    name.symlink_to(ledger.path if request.param == "file" else ledger.path.parent)
    return Ledger(name if request.param == "file" else name / "budget.db")


ASK = """
account, drawn = Ledger(sys.argv[1]).account("clinic"), 0
for _ in range(40):
    try:
        account.reserve(receipt(0.05), delta=1e-6).draw()
        drawn += 1
    except discreet.BudgetExceeded:
        break
print(json.dumps(drawn))
"""


def test_a_symbolic_link_leads_to_the_same_ledger(ledger, by_link):
    """Two processes, each by another name, and both count what the other draws."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", HEAD + ASK, path], stdout=subprocess.PIPE, text=True
        )
        for path in (ledger.path, by_link.path)
    ]
    drawn = [json.loads(each.communicate()[0]) for each in started]
    spends = ledger.statement("clinic").spends
    assert len(spends) == len(by_link.statement("clinic").spends) == sum(drawn) > 0
    assert discreet.combine([each.receipt for each in spends], delta=1e-5).epsilon <= 0.3
    assert not list(by_link.path.parent.glob("link-*"))


def test_somebody_who_may_only_read_a_link_sees_what_others_have_in_their_log():
    """The log lies beside the file, and not beside the link."""
    with tempfile.TemporaryDirectory() as name:  # which others may look into, unlike tmp_path
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        (folder / "host").mkdir()
        ledger = Ledger(folder / "host" / "budget.db")
        ledger.create("clinic", epsilon=2.0, delta=1e-5)
        (folder / "link.db").symlink_to(ledger.path)
        with ledger._store.reading():  # keeps the log from being written back
            ledger.spend("clinic", receipt(0.1), delta=DELTA)
            code = f"""
if os.getuid() == 0: os.setuid({NOBODY})
print(len(Ledger({str(folder / "link.db")!r}).statement("clinic").spends))
"""
            done = subprocess.run(
                [sys.executable, "-c", HEAD + code], capture_output=True, text=True, check=False
            )
    assert done.stdout == "1\n", done.stderr


def in_a_namespace(script, *words):
    """Run a shell script that mounts, where nobody else sees it; skip where that is not allowed."""
    probe = subprocess.run(
        ["unshare", "-m", "mount", "--bind", "/tmp", "/tmp"], check=False, capture_output=True
    )
    if probe.returncode:
        pytest.skip("needs the right to mount")
    return subprocess.run(
        ["unshare", "-m", "sh", "-ec", script, "sh", *map(str, words)],
        check=False,
        capture_output=True,
        text=True,
    )


TRY = (
    HEAD
    + """
for path in sys.argv[1:]:
    for use in (
        Ledger(path).datasets,
        lambda: Ledger(path).create("new", epsilon=1.0, delta=1e-6),
        lambda: build(Ledger(path), 0.1),
    ):
        try:
            print("done:", use())
        except discreet.LedgerError as error:
            print(error)
"""
)


@pytest.mark.parametrize("name", ["c1", 'a folder\\with "strange" names\tand\nlines, ö'])
def test_a_file_that_is_mounted_by_itself_is_refused(ledger, tmp_path, name):
    inside = tmp_path / name
    inside.mkdir()
    (inside / "budget.db").touch()
    (tmp_path / "link.db").symlink_to(inside / "budget.db")
    (tmp_path / "link").symlink_to(inside)
    before = ledger.path.read_bytes()
    done = in_a_namespace(
        'mount --bind "$1" "$2"; shift 2; exec "$@"',
        *(ledger.path, inside / "budget.db", sys.executable, "-c", TRY),
        *(inside / "budget.db", tmp_path / "link.db", tmp_path / "link" / "budget.db"),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("the file is mounted by itself") == 9
    assert done.stdout.count("Mount the folder") == 9
    assert "done:" not in done.stdout
    assert ledger.path.read_bytes() == before
    assert [each.name for each in inside.iterdir()] == ["budget.db"]
    assert ledger.statement("clinic").spends == ()


def test_a_folder_that_is_mounted_is_shared(ledger, tmp_path):
    """By two names at once, in processes that write at the same time."""
    (tmp_path / "c1").mkdir()
    (tmp_path / "c2").mkdir()
    script = """
    mount --bind "$1" "$2"; mount --bind "$1" "$3"
    "$4" -c "$5" "$2/budget.db" & "$4" -c "$5" "$3/budget.db"; wait
    """
    done = in_a_namespace(
        script, ledger.path.parent, tmp_path / "c1", tmp_path / "c2", sys.executable, HEAD + ASK
    )
    assert done.returncode == 0, done.stderr
    drawn = sum(json.loads(line) for line in done.stdout.split())
    spends = ledger.statement("clinic").spends
    assert len(spends) == drawn > 0
    assert discreet.combine([each.receipt for each in spends], delta=1e-5).epsilon <= 0.3
