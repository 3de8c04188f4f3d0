"""Pictures of the command line for the documents."""

import importlib.util
import pathlib
import sys
from xml.etree import ElementTree

import pytest

import discreet

pytestmark = pytest.mark.docs

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="module")
def screenshots():
    spec = importlib.util.spec_from_file_location("screenshots", ROOT / "docs" / "screenshots.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["screenshots"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["screenshots"]


def words(svg):
    texts = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    return "\n".join(each.text.replace("\N{NO-BREAK SPACE}", " ") for each in texts)


def test_a_command_is_run_and_drawn(screenshots, tmp_path):
    command = "discreet --version"
    svg = screenshots.draw(command, screenshots.run(command, tmp_path))
    assert f"discreet {discreet.__version__}" in words(svg)
    assert "discreet --version" in words(svg)
    assert svg.count("http") == svg.count("http://www.w3.org/2000/svg") == 1
    assert "@font-face" not in svg


def test_a_command_that_fails_is_not_drawn(screenshots, tmp_path):
    with pytest.raises(SystemExit, match="exit code 2"):
        screenshots.run("discreet card nothing.safetensors", tmp_path)


def test_folders_of_the_machine_are_not_drawn(screenshots, tmp_path):
    screenshots.make_rows(tmp_path)
    command = screenshots.tutorial()[1]["build"]
    assert "%" in screenshots.run(command, tmp_path)  # a progress bar: this is a terminal
    with pytest.raises(SystemExit, match="folder of this machine"):
        screenshots.run(command.replace("memory.saf", f"{tmp_path}/again.saf"), tmp_path)


@pytest.mark.parametrize(
    ("printed", "seen"),
    [
        ("one\r\ntwo\r\n", "one\ntwo"),
        ("10%\r50%\r100%\r\ndone", "100%\ndone"),
        ("10%\r\x1b[2K100%\r\ndone", "100%\ndone"),
        ("a\r\nb\r\x1b[2K\x1b[1A\x1b[2Kc\r\nd", "c\nd"),
        ("\x1b[?25lbar\x1b[?25h", "bar"),
        ("\x1b[1mbold\x1b[0m", "\x1b[1mbold\x1b[0m"),
    ],
)
def test_what_is_overwritten_is_not_seen(screenshots, printed, seen):
    screen = screenshots.Screen()
    screen.feed(printed)
    assert str(screen) == seen


def test_a_long_command_is_broken_between_options(screenshots):
    command = screenshots.tutorial()[1]["build"].replace(" -o", " --rows-hint 20000 -o")
    drawn = words(screenshots.draw(command, ""))
    assert "\n    -o memory.safetensors" in drawn
    assert "\\" in drawn
