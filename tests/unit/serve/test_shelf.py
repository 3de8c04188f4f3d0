"""Files that are replaced, cut short, removed: the right release answers, or the one before."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

import discreet
from discreet.serve import Shelf, application
from discreet.serve import app as serving
from discreet.testing import Seeded

QUERIES = [[0.3, 0.1, -0.2]]


@pytest.fixture
def files(tmp_path, folder):
    """The file that is served; one with other answers; and one that must not be served."""
    shutil.copy(folder / "memory.safetensors", tmp_path / "memory.safetensors")
    rng = np.random.default_rng(5)
    keys = rng.normal(size=(50, 3))
    for name, entropy in (("other", None), ("toy", Seeded(1))):
        made = discreet.build(
            keys, -keys, epsilon=9.0, delta=1e-5, scale=1.0, eps_s=0.3, entropy=entropy
        )
        made.save(tmp_path / f"{name}.new")
    return tmp_path


def answers(shelf):
    from discreet.serve import Limits

    return np.asarray(shelf["memory"].answer({"queries": QUERIES}, Limits()).fields["answers"])


def wanted(path):
    return discreet.load(path).attend(np.array(QUERIES, dtype=np.float32))


def is_like(found, other):
    return found.shape == other.shape and np.allclose(found, other, atol=1e-5)


def test_a_new_file_answers_once_it_was_looked_at(files):
    path, said = files / "memory.safetensors", []
    shelf = Shelf([path])
    first = answers(shelf)
    os.replace(files / "other.new", path)
    assert is_like(answers(shelf), first)
    shelf.look(say=said.append)
    assert is_like(answers(shelf), wanted(path))
    assert not is_like(answers(shelf), first)
    assert said == ["memory: a new file was opened, and answers from now on."]
    assert shelf.problems == {}
    shelf.look(say=said.append)
    assert len(said) == 1


def cut(path):
    os.truncate(path, path.stat().st_size // 2)


def emptied(path):
    path.write_bytes(b"")


def damaged(path):
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)


def something_else(path):
    path.write_bytes(b"PK\x03\x04 not a release" * 100)


def not_private(path):
    os.replace(path.with_name("toy.new"), path)


def is_folder(path):
    path.unlink()
    path.mkdir()


def is_pipe(path):
    path.unlink()
    os.mkfifo(path)


DAMAGE = {
    cut: "cut short or damaged",
    emptied: "cut short or damaged",
    damaged: "cut short or damaged",
    something_else: "cut short or damaged",
    not_private: "not one that is served here",
    is_folder: "cannot be read",
    is_pipe: "cannot be read",  # and nobody waits for what is written to it
    os.remove: "was removed",
}


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda each: each.__name__)
def test_a_file_that_is_no_good_leaves_the_old_release_answering(files, damage):
    path, said = files / "memory.safetensors", []
    shelf = Shelf([path])
    first, kept = answers(shelf), path.read_bytes()
    damage(path)
    for _ in range(3):
        shelf.look(say=said.append)
        assert is_like(answers(shelf), first)
    [problem] = shelf.problems.values()
    assert DAMAGE[damage] in problem
    assert "the release that was there before still answers" in problem
    assert str(files) not in problem
    assert said == [f"memory: {problem}"]  # once
    if path.is_dir():
        path.rmdir()
    elif not path.is_file():
        path.unlink(missing_ok=True)
    path.write_bytes(kept)
    shelf.look(say=said.append)
    assert shelf.problems == {}
    assert is_like(answers(shelf), first)
    os.replace(files / "other.new", path)
    shelf.look()
    assert is_like(answers(shelf), wanted(path))


def test_a_file_that_is_written_to_in_place_is_never_half_of_each(files):
    """Written piece by piece, as `cp` does: old answers until all of it is there."""
    path, new = files / "memory.safetensors", (files / "other.new").read_bytes()
    shelf = Shelf([path])
    first = answers(shelf)
    with path.open("wb") as file:
        for start in range(0, len(new), len(new) // 4):
            file.write(new[start : start + len(new) // 4])
            file.flush()
            shelf.look()
            if start + len(new) // 4 < len(new):
                assert is_like(answers(shelf), first)
    shelf.look()
    assert is_like(answers(shelf), wanted(path))
    assert shelf.problems == {}


def test_an_application_looks_by_itself_and_says_what_is_wrong(files, monkeypatch):
    monkeypatch.setattr(serving, "_EVERY", 0.01)
    path = files / "memory.safetensors"
    with TestClient(application(Shelf([path])), base_url="http://127.0.0.1") as client:
        path.unlink()
        for _ in range(500):
            if client.get("/health").json()["problems"]:
                break
        assert client.get("/health").json()["problems"] == 1
        assert "was removed" in client.get("/v1/memory").json()["problem"]
        assert "discreet_file_problems 1" in client.get("/metrics").text
        assert client.post("/v1/memory/attend", json={"queries": QUERIES}).status_code == 200
        os.replace(files / "other.new", path)
        for _ in range(500):
            if not client.get("/health").json()["problems"]:
                break
        found = client.post("/v1/memory/attend", json={"queries": QUERIES}).json()["answers"]
    assert is_like(np.array(found), wanted(path))


@pytest.mark.parametrize("name", ["two words", "a&b", "café", ".hidden", "a" * 101, "<b>"])
def test_names_that_no_address_has_are_refused(files, name):
    path = files / f"{name}.safetensors"
    shutil.copy(files / "memory.safetensors", path)
    with pytest.raises(discreet.InvalidInput, match="letters, digits"):
        Shelf([path])


def test_two_files_of_one_name_are_refused(files):
    (files / "b").mkdir()
    shutil.copy(files / "memory.safetensors", files / "b" / "memory.safetensors")
    with pytest.raises(discreet.InvalidInput, match="different names"):
        Shelf([files / "memory.safetensors", files / "b" / "memory.safetensors"])


def test_what_cannot_be_served_is_refused_at_the_start(files):
    with pytest.raises(discreet.InvalidInput, match="Expected a file to serve"):
        Shelf([])
    with pytest.raises(discreet.InvalidInput, match=r"none\.safetensors"):
        Shelf([files / "none.safetensors"])
    with pytest.raises(discreet.InvalidInput, match="it is a folder; name the files in it"):
        Shelf([files])
    is_pipe(pipe := files / "other.new")
    for each in (pipe, Path("/dev/zero")):  # which would be waited for, or read, for ever
        with pytest.raises(discreet.InvalidInput, match="it is a pipe or a device"):
            Shelf([each])
    cut(files / "memory.safetensors")
    with pytest.raises(discreet.CorruptRelease, match="memory"):
        Shelf([files / "memory.safetensors"])
    names = discreet.discover(["flu"] * 500, epsilon=4.0, delta=1e-5)
    names.save(files / "names.safetensors")
    with pytest.raises(discreet.InvalidInput, match="nothing else is asked by HTTP"):
        Shelf([files / "names.safetensors"])
