"""Files that are written whole, or not at all; and one file for whatever was released."""

import errno
import json
import os
import stat
import subprocess
import sys
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from mounts import in_own_mounts, needs_mounts
from safetensors import safe_open

import discreet
from discreet import CorruptRelease, NotPrivateWarning
from discreet._files import Part, is_mounted_alone, pack, read, unpack, whole_file
from discreet.errors import InvalidInput


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


TENSORS = {"nodes": np.arange(12).reshape(3, 4), "turned": np.arange(6.0).reshape(2, 3).T}
SETTINGS = {"p": 2, "upper": 0.1, "name": "größer"}


@dataclass(frozen=True)
class Held:
    """Something that a file may hold."""

    settings: dict
    tensors: dict
    private: bool = True

    @property
    def receipt(self):
        return SimpleNamespace(source="a die")


def packed(card=None):
    return pack(TENSORS, name="something", settings=SETTINGS, card=card)


def test_what_was_packed_comes_back():
    held = unpack(packed(), {"other": lambda *_: None, "something": Held})
    assert held.settings == SETTINGS
    for name, array in TENSORS.items():
        np.testing.assert_array_equal(held.tensors[name], array)
        assert held.tensors[name].dtype == array.dtype


def test_a_card_is_there_if_one_was_given(tmp_path):
    for card in (None, {"epsilon": 1.0}):
        (tmp_path / "x").write_bytes(packed(card))
        with safe_open(tmp_path / "x", "numpy") as file:
            metadata = file.metadata()
        assert ("card" in metadata) is (card is not None)
        assert json.loads(metadata.get("card", "null")) == card


def test_every_altered_or_missing_byte_is_noticed():
    data = packed()
    for at in range(0, len(data), 7):
        changed = bytearray(data)
        changed[at] ^= 1
        with pytest.raises(CorruptRelease):
            unpack(bytes(changed), {"something": Held})
        with pytest.raises(CorruptRelease):
            unpack(data[:at], {"something": Held})


def test_a_format_that_nobody_knows_is_named():
    with pytest.raises(CorruptRelease, match="Expected other 1, got something 1"):
        unpack(packed(), {"other": Held})


@pytest.mark.parametrize(
    "error", [InvalidInput, KeyError, TypeError, ValueError, ZeroDivisionError, RecursionError]
)
def test_contents_that_make_no_sense_are_no_release(error):
    def fail(settings, tensors):
        raise error("private 7")

    with pytest.raises(CorruptRelease, match="no sense") as caught:
        unpack(packed(), {"something": fail})
    assert "7" not in str(caught.value)


def test_reading_names_the_file_and_warns_of_noise_for_tests(tmp_path):
    path = tmp_path / "x.safetensors"
    path.write_bytes(packed())
    assert read(path, lambda data: unpack(data, {"something": Held})).private
    with pytest.warns(NotPrivateWarning, match=r"x\.safetensors is NOT PRIVATE.*a die"):
        read(path, lambda _: Held({}, {}, private=False))
    path.write_bytes(packed()[:-1])
    with pytest.raises(CorruptRelease, match=r"x\.safetensors: Expected the checksum"):
        read(path, lambda data: unpack(data, {"something": Held}))
