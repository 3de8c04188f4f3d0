"""The architecture page names files that exist, and all modules of the engine and its readers."""

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


@pytest.mark.parametrize("room", ["sums", "readers"])
def test_every_module_of_the_engine_and_of_its_readers_is_named(room):
    modules = [path for path in (SOURCE / room).rglob("*.py") if path.name != "__init__.py"]
    named = {str(path.relative_to(SOURCE)) for path in modules if _is_named(path)}
    assert named == {str(path.relative_to(SOURCE)) for path in modules}


def _is_named(path):
    """Whether the page has a module: with its folder, as `sums/door.py` or `attention/card.py`."""
    return re.search(rf"{path.parent.name}/{path.stem}\b", PAGE) is not None
