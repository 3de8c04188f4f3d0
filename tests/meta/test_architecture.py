"""The architecture page names files and functions that exist, and every room."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
SOURCE = ROOT / "src" / "discreet"


def test_every_file_that_it_names_exists():
    named = set(re.findall(r"`((?:\w+/)*\w+\.py)`", PAGE))
    assert len(named) > 30
    places = {path: [ROOT / path, SOURCE / path] for path in named}
    assert [path for path, tried in places.items() if not any(p.exists() for p in tried)] == []


def test_every_room_is_on_the_list():
    rooms = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    modules = {path.stem for path in SOURCE.glob("*.py")} - {"__init__", "__main__", "_version"}
    listed = PAGE[PAGE.index("## The rooms") : PAGE.index("## Where is")]
    assert {name for name in rooms | modules if f"`{name}`" not in listed} == {"kernels"}
    assert "`discreet.kernels`" in listed


def test_every_function_that_it_names_exists():
    named = re.findall(r"`((?:\w+/)*\w+)\.py` \| (?:`(\w+)(?:\.(\w+))?`)", PAGE)
    assert len(named) >= 5
    for file, *names in named:
        text = (SOURCE / f"{file}.py").read_text(encoding="utf-8")
        for name in filter(None, names):
            assert re.search(rf"(def|class) {name}\b", text), (file, name)


def test_the_picture_is_the_one_that_its_script_draws():
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        import draw_architecture
    finally:
        sys.path.remove(str(ROOT / "docs"))
    drawn = (ROOT / "docs" / "architecture.svg").read_text(encoding="utf-8")
    assert draw_architecture.drawing() == drawn
    assert "prefers-color-scheme: dark" in drawn
