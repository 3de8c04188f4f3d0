"""Files that are written whole, or not at all."""

import subprocess
import sys

import pytest
from mounts import in_own_mounts, needs_mounts

from discreet._files import is_mounted_alone, whole_file


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


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_nothing_is_left_of_a_failure(tmp_path, error):
    path = tmp_path / "x"
    path.write_bytes(b"before")
    with pytest.raises(error), whole_file(path) as file:
        fail_after(lambda: file.write(b"half"), error)
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_who_comes_second_fails_unless_it_may_replace(tmp_path):
    path = tmp_path / "x"
    with pytest.raises(FileExistsError), whole_file(path, replace=False):
        path.write_bytes(b"first")  # meanwhile
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]
    with whole_file(path, replace=True) as file:
        file.write(b"third")
    assert path.read_bytes() == b"third"


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
