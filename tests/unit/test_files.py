"""Files that are written whole, or not at all."""

import errno
import os
import stat
import subprocess
import sys

import pytest
from mounts import in_own_mounts, needs_mounts

import discreet
from discreet._files import Part, is_mounted_alone, whole_file


def without_links(*_, **__):
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))


@pytest.fixture(params=["as it is", "every file has a name", "a file has one name"])
def system(request, monkeypatch):
    """What systems and file systems can do: NFS has no files without names, FAT has no links."""
    if request.param != "as it is":
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    if request.param == "a file has one name":
        monkeypatch.setattr(os, "link", without_links)


everywhere = pytest.mark.usefixtures("system")


@everywhere
def test_a_file_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "x"
    with whole_file(path) as file:
        file.write(b"all of it")
        assert not path.exists()
    assert path.read_bytes() == b"all of it"
    assert list(tmp_path.iterdir()) == [path]


def fail_after(work, error):
    work()
    raise error


@everywhere
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_nothing_is_left_of_a_failure(tmp_path, error):
    path = tmp_path / "x"
    path.write_bytes(b"before")
    with pytest.raises(error), whole_file(path) as file:
        fail_after(lambda: file.write(b"half"), error)
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


@everywhere
def test_who_comes_second_fails_unless_it_may_replace(tmp_path):
    path = tmp_path / "x"
    with pytest.raises(FileExistsError), whole_file(path, replace=False):
        path.write_bytes(b"first")  # meanwhile
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]
    with whole_file(path, replace=True) as file:
        file.write(b"third")
    assert path.read_bytes() == b"third"


@everywhere
def test_a_folder_and_its_entry_are_on_the_disk_in_the_end(tmp_path, monkeypatch):
    synced, sync = [], os.fsync

    def spied(file):
        kind = "folder" if stat.S_ISDIR(os.fstat(file).st_mode) else "file"
        synced.append((kind, (tmp_path / "x").exists()))
        sync(file)

    monkeypatch.setattr(os, "fsync", spied)
    with whole_file(tmp_path / "x") as file:
        file.write(b"all of it")
    assert synced == [("file", False), ("folder", True)]


@everywhere
def test_what_others_have_left_stays_as_it_is(tmp_path):
    left = {tmp_path / name: name.encode() for name in ("x.1.part", ".x.1.part", "x.2.part")}
    for path, data in left.items():
        path.write_bytes(data)
    part = Part(tmp_path / "x", replace=True)
    part.fill(b"all of it")
    assert part.whole == tmp_path / "x.3.part"
    part.publish()
    part.discard()
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == {
        **left,
        tmp_path / "x": b"all of it",
    }


@everywhere
def test_a_part_is_hidden_until_it_is_complete_and_may_be_kept(tmp_path):
    path = tmp_path / ("x" * 250)
    part = Part(path, replace=True)
    part.claim(2**16)
    assert all(each.name.startswith(".") for each in tmp_path.iterdir())
    part.fill(b"all of it")
    part.close()
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [
        (f"{'x' * 200}.1.part", b"all of it")
    ]


@everywhere
def test_room_that_is_not_there_cannot_be_claimed(tmp_path, monkeypatch):
    part = Part(tmp_path / "x", replace=True)
    with pytest.raises(OSError, match=r"File too large|No space left"):
        part.claim(2**60)
    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    part.claim(1)
    with pytest.raises(OSError, match="No space left"):
        part.claim(2**60)
    part.discard()
    assert list(tmp_path.iterdir()) == []


@everywhere
def test_an_error_names_the_file_that_was_asked_for(tmp_path):
    (tmp_path / "folder").mkdir()
    for name in ("nowhere/x", "folder"):
        with pytest.raises(OSError, match=f"{tmp_path / name}'$"), whole_file(tmp_path / name):
            pass
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]


@needs_mounts
def test_a_release_that_cannot_be_saved_leaves_the_earlier_file(tmp_path):
    script = """
import sys
import numpy as np
import discreet
from discreet.testing import Silent

rows = np.eye(4)
options = {"epsilon": 1.0, "delta": 1e-6, "scale": 1.0, "kernel": "fourier", "entropy": Silent()}
memory = discreet.build(rows, rows, **options)
for name in ("full/x", "alone/x"):
    try:
        memory.save(name)
    except OSError as error:
        print(error.strerror, open(name).read())
memory.save("x")
"""
    for folder in ("full", "alone", "host"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x").write_text("before")
    filled = 'echo -n before > full/x; "$@"; ls -A full alone'
    done = in_own_mounts(
        [["-t", "tmpfs", "-o", "size=8k", "none", "full"], ["--bind", "host/x", "alone/x"]],
        ["sh", "-c", filled, "sh", sys.executable, "-W", "ignore", "-c", script],
        cwd=tmp_path,
    )
    assert done.stdout.splitlines()[:2] == [
        "No space left on device before",
        "the file was mounted by itself: mount its folder before",
    ], done.stderr
    assert done.stdout.splitlines()[2:] == ["alone:", "x", "", "full:", "x"]
    with pytest.warns(discreet.NotPrivateWarning):
        assert discreet.load(tmp_path / "x").scale == 1.0


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_program_that_is_terminated_cleans_up(tmp_path, name):
    script = f"""
import os, pathlib, signal
from discreet._files import whole_file
from discreet.cli.shell import clean_up_when_terminated

clean_up_when_terminated()
with whole_file(pathlib.Path("x")) as file:
    file.write(b"half")
    os.kill(os.getpid(), signal.{name})
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=False)
    assert done.returncode in (143, 129)
    assert list(tmp_path.iterdir()) == []


@needs_mounts
def test_a_file_that_is_mounted_alone_is_known(tmp_path):
    beside = tmp_path / "a b\\c\té"  # blanks and backslashes are escaped in the list of mounts
    for folder in (tmp_path / "host", beside, tmp_path / "whole"):
        folder.mkdir()
        (folder / "x y").write_bytes(b"")
        (folder / "other").write_bytes(b"")
    (tmp_path / "link").symlink_to(beside / "x y")
    script = """
import sys
from pathlib import Path
from discreet._files import is_mounted_alone
print(*(int(is_mounted_alone(Path(each))) for each in sys.argv[1:]))
"""
    asked = [beside / "x y", "link", beside / "other", "host/x y", "whole/x y", "whole", "none"]
    done = in_own_mounts(
        [["--bind", "host/x y", beside / "x y"], ["--bind", "host", "whole"]],
        [sys.executable, "-c", script, *asked],
        cwd=tmp_path,
    )
    assert (done.stdout.split(), done.stderr) == (list("1100000"), "")
    assert not is_mounted_alone(beside / "x y")
