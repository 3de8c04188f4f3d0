"""The architecture page names files and functions that exist, and every room."""

import pathlib
import re

import pytest

pytestmark = pytest.mark.docs

ROOT = pathlib.Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
SOURCE = ROOT / "src" / "discreet"


def test_every_file_that_it_names_exists():
    named = set(re.findall(r"`((?:\w+/)*\w+\.py)`", PAGE))
    assert named
    places = {path: [ROOT / path, SOURCE / path] for path in named}
    assert [path for path, tried in places.items() if not any(p.exists() for p in tried)] == []


def test_every_room_is_on_the_list():
    rooms = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    modules = {path.stem for path in SOURCE.glob("*.py")} - {"__init__", "__main__", "_version"}
    listed = PAGE[PAGE.index("## The rooms") : PAGE.index("## Where is")]
    assert {name for name in rooms | modules if f"`{name}`" not in listed} == {"kernels"}
    assert "`discreet.kernels`" in listed
