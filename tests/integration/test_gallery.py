"""The gallery: its page shows what the examples printed when its pictures were drawn."""

import importlib.util
import json
import pathlib
import re
import sys

import pytest
from documents import matches

pytestmark = pytest.mark.docs

ROOT = pathlib.Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "gallery"
PAGE = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
PRINTED = json.loads((FOLDER / "figures.json").read_text(encoding="utf-8"))
ENTRY = re.compile(
    r"^## [^\n]+\n\n!\[[^\]]+\]\(gallery/(?P<name>\w+)\.png\)\n\n"
    r"(?P<words>[^\n]+)\n\n> (?P<end>[^\n]+)\n\n"
    r"`(?P<command>[^`]+)` \(\[(?P=name)\.py\]\(\.\./examples/(?P=name)\.py\)\)\n\n"
    r"```text\n(?P<shown>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
ENTRIES = {found["name"]: found for found in ENTRY.finditer(PAGE)}


@pytest.fixture
def gallery(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])  # the script adds the folders of examples
    path = ROOT / "docs" / "draw_gallery.py"
    spec = importlib.util.spec_from_file_location("draw_gallery", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_example_has_an_entry_a_picture_and_figures(gallery):
    commands = re.findall(r"`(python examples/.+?)`", (ROOT / "examples/README.md").read_text())
    names = [re.split(r"[/.]", command)[1] for command in commands]
    assert list(ENTRIES) == names == list(gallery.NAMES)
    assert [entry["command"] for entry in ENTRIES.values()] == commands
    assert PAGE.count("\n## ") == len(names)
    assert set(PRINTED) == set(names)
    assert {path.stem for path in FOLDER.glob("*.png")} == set(names)


@pytest.mark.parametrize("name", ENTRIES)
def test_an_entry_shows_what_was_printed(name):
    shown, printed = ENTRIES[name]["shown"], "\n".join(PRINTED[name]) + "\n"
    assert matches(shown, printed)
    assert ENTRIES[name]["end"] == PRINTED[name][-1]
    assert PRINTED[name][-1].startswith("Conclusion: ")


@pytest.mark.parametrize("name", ENTRIES)
def test_pictures_are_small(name):
    picture = (FOLDER / f"{name}.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) < 150_000


def figures(lines):
    """Return a text without its numbers, and the numbers."""
    text = "\n".join(lines)
    number = r"(?<!\w)[+-]?\d[\d,]*\.?\d*(?:e[+-]\d+)?"
    found = [float(each.replace(",", "")) for each in re.findall(number, text)]
    return re.sub(r" +", " ", re.sub(number, "#", text)), found


@pytest.mark.parametrize(
    "name",
    [
        "quickstart",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("rag_topics", "digits_classifier", "adaptive_attacker", "epsilon_sweep")
        ),
    ],
)
def test_the_same_seed_prints_and_draws_the_same_again(gallery, name, tmp_path, monkeypatch):
    pytest.importorskip("sklearn", reason="needs the extra `sklearn`")
    found, lines = gallery.run(name, tmp_path)
    words, numbers = figures(lines)
    kept_words, kept_numbers = figures(PRINTED[name])
    assert words == kept_words
    # Another machine may round otherwise.
    assert numbers == pytest.approx(kept_numbers, rel=0.05, abs=0.02)
    monkeypatch.setattr(gallery, "FOLDER", tmp_path)
    gallery.draw(name, found)
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
