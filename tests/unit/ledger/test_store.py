"""Files that cannot be read or written: one sentence, and nothing is released."""

import contextlib
import os
import pathlib
import re
import sqlite3
import subprocess
import sys
import tempfile
import textwrap

import pytest
from ledgers import DELTA, build, receipt

import discreet
from discreet.errors import LedgerError
from discreet.ledger import Ledger, store

SUPPORT = pathlib.Path(__file__).parents[2] / "support"
NOBODY = 65534


@pytest.fixture
def ledger(tmp_path):
    made = Ledger(tmp_path / "budget.db")
    made.create("clinic", epsilon=2.0, delta=1e-5)
    return made


def run(code, path):
    """Run code in a process of its own, with `ledger` in it; return what it printed."""
    script = f"""
import os, resource, sys
sys.path.insert(0, {str(SUPPORT)!r})
import numpy, discreet
from discreet.ledger import Ledger
from ledgers import DELTA, build, receipt
ledger = Ledger({str(path)!r})
{textwrap.dedent(code)}
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def fill(path):
    """Write a file until the disk is full."""
    file = os.open(path, os.O_CREAT | os.O_WRONLY)
    with contextlib.suppress(OSError):
        while os.write(file, bytes(4096)):
            pass
    os.close(file)


TRY_TO_BUILD = """
build(None, 1.0, dataset=None)  # everything is loaded
drawn = []
original = discreet.noise.RoundedGaussian.sample
discreet.noise.RoundedGaussian.sample = lambda *a, **k: drawn.append(1) or original(*a, **k)
{before}
try:
    build(ledger, 1.0)
except discreet.LedgerError as error:
    print(error)
print("noise" if drawn else "no noise")
"""


def test_a_file_that_is_too_large_for_the_disk(ledger):
    """As on a full disk, but for the error code: no byte more can be written."""
    limit = "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))"
    printed = run(TRY_TO_BUILD.format(before=limit), ledger.path)
    assert re.search(r"could not be (read|written) \(", printed)
    assert "disk full" in printed
    assert "nothing was released" in printed
    assert printed.endswith("no noise\n")
    assert ledger.statement("clinic").spends == ()
    assert build(ledger, 1.0)


def test_a_disk_that_is_full(tmp_path):
    """A real one, where a small file system can be mounted."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder],
        check=False,
        capture_output=True,
    )
    if mounted.returncode:
        pytest.skip("needs the right to mount")
    try:
        ledger = Ledger(folder / "budget.db")
        ledger.create("clinic", epsilon=2.0, delta=1e-5)
        ledger.spend("clinic", receipt(0.1), delta=DELTA)
        before = ledger.statement("clinic").spends
        fill(folder / "rubbish")
        with pytest.raises(LedgerError, match=r"disk full.*nothing was released"):
            build(ledger, 1e-3)
        (folder / "rubbish").unlink()
        assert ledger.statement("clinic").spends == before
        build(ledger, 1e-3)
        assert len(ledger.statement("clinic").spends) == len(before) + 1
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.mark.parametrize("what", ["file", "directory"])
def test_what_is_read_only(what):
    """As somebody who may not write: for root nothing is read-only."""
    with tempfile.TemporaryDirectory() as name:  # which others may look into, unlike tmp_path
        folder = pathlib.Path(name)
        ledger = Ledger(folder / "budget.db")
        ledger.create("clinic", epsilon=2.0, delta=1e-5)
        ledger.path.chmod(0o444)
        folder.chmod(0o555 if what == "directory" else 0o777)
        leave = f"if os.getuid() == 0: os.setuid({NOBODY})"
        printed = run(TRY_TO_BUILD.format(before=leave), ledger.path)
        folder.chmod(0o755)
        assert "read-only" in printed
        assert printed.endswith("no noise\n")
        ledger.path.chmod(0o644)
        assert ledger.statement("clinic").spends == ()


def test_a_ledger_that_others_hold_for_too_long(ledger, monkeypatch):
    monkeypatch.setattr(store, "PATIENCE", 0.05)
    blocker = sqlite3.connect(ledger.path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(LedgerError, match=r"others have locked it for more than 0\.05 seconds"):
            build(ledger, 1.0)
    finally:
        blocker.close()
    assert build(ledger, 1.0)


def test_what_is_no_ledger(tmp_path):
    text = tmp_path / "text.db"
    text.write_text("no database at all, whatever its name may say" * 100)
    foreign = tmp_path / "foreign.db"
    with sqlite3.connect(foreign) as raw:
        raw.execute("CREATE TABLE mine (x)")
    raw.close()
    before = foreign.read_bytes()
    for path in (text, foreign):
        for use in (Ledger(path).datasets, lambda at=path: build(Ledger(at), 1.0)):
            with pytest.raises(LedgerError, match=f"{path} to be a ledger, and it is"):
                use()
        with pytest.raises(LedgerError, match="to be a ledger"):
            Ledger(path).create("clinic", epsilon=1.0, delta=1e-6)
    assert foreign.read_bytes() == before


def test_a_file_that_is_missing_and_one_that_is_empty(tmp_path):
    with pytest.raises(LedgerError, match=r"there is no such file: Ledger\.create makes it"):
        build(Ledger(tmp_path / "budget.db"), 1.0)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "empty.db").touch()
    with pytest.raises(LedgerError, match="to be a ledger"):
        Ledger(tmp_path / "empty.db").datasets()
    Ledger(tmp_path / "empty.db").create("clinic", epsilon=1.0, delta=1e-6)
    with pytest.raises(LedgerError, match="no directory"):
        Ledger(tmp_path / "nowhere" / "budget.db").create("clinic", epsilon=1.0, delta=1e-6)


def test_a_ledger_of_a_newer_version(ledger):
    with sqlite3.connect(ledger.path) as raw:
        raw.execute(f"PRAGMA user_version = {store.VERSION + 1}")
    raw.close()
    with pytest.raises(LedgerError, match="a newer discreet made it"):
        ledger.datasets()


def test_a_ledger_that_is_damaged(ledger):
    ledger.spend("clinic", receipt(0.1), delta=DELTA)
    whole = ledger.path.read_bytes()
    ledger.path.write_bytes(whole[:4096] + os.urandom(len(whole) - 4096))
    with pytest.raises(LedgerError, match="or damaged"):
        build(ledger, 0.1)


def test_every_commit_is_on_the_disk_before_it_returns(ledger):
    with ledger._store.writing() as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
        assert connection.execute("PRAGMA foreign_keys").fetchone() == (1,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA busy_timeout").fetchone() == (60_000,)
    assert discreet.LedgerError is LedgerError


def test_a_directory_that_we_may_not_look_into(ledger):
    code = TRY_TO_BUILD.format(before=f"if os.getuid() == 0: os.setuid({NOBODY})")
    ledger.path.parent.chmod(0o000)
    try:
        printed = run(code, ledger.path)
    finally:
        ledger.path.parent.chmod(0o700)
    assert "to be a ledger" in printed
    assert printed.endswith("no noise\n")


def test_a_file_that_was_read_only_for_a_while_is_a_ledger_again():
    """SQLite leaves files beside it that would stay read-only."""
    code = f"""
    build(None, 0.5, dataset=None)  # everything is loaded
    if os.getuid() == 0: os.setuid({NOBODY})
    ledger.create("clinic", epsilon=2.0, delta=1e-5)
    os.chmod(ledger.path, 0o444)
    print(ledger.statement("clinic"))
    try:
        build(ledger, 0.5)
    except discreet.LedgerError as error:
        print(error)
    os.chmod(ledger.path, 0o644)
    build(ledger, 0.5)
    print(len(ledger.statement("clinic").spends))
    """
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder).chmod(0o777)
        printed = run(code, pathlib.Path(folder) / "budget.db")
    shown, refused, count = printed.splitlines()
    assert "is left" in shown
    assert "read-only" in refused
    assert count == "1"
