"""The pages that discreet writes, in a real browser, as people see them on a desk and on a phone.

Pictures of them are kept in the folder that DISCREET_SCREENSHOTS names.
"""

import itertools
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("playwright.sync_api", reason="needs the extra `browser`")

from browser import DESK, PHONE, brightness, contrasts, widths
from data import unit_rows

import discreet

pytestmark = [pytest.mark.docs, pytest.mark.slow]

ROOT = pathlib.Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "discreet"]

# Elements whose text leaves them, or that leave the window. A pixel is for rounding.
CUT = """() => [...document.querySelectorAll("body *")].filter(each => {
  const box = each.getBoundingClientRect();
  return box.width && (each.scrollWidth > each.clientWidth + 1 && each.clientWidth
    || box.left < -1 || box.right > document.documentElement.clientWidth + 1);
}).map(each => each.outerHTML.slice(0, 80))"""


def write_demo(folder):
    subprocess.run(
        [*COMMAND, "demo", "--splits", "2", "-o", "demo.html"],
        cwd=folder,
        check=True,
        capture_output=True,
    )


def write_card(folder):
    rows = unit_rows(5_000, 8)
    values = np.sign(rows[:, :3]) / 2
    discreet.build(rows, values, epsilon=1.0, delta=1e-6, scale=2.0).save(folder / "card")
    command = [*COMMAND, "card", "--html", "card"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


# Who writes a page, and how many pictures are on it.
PAGES = {"demo": (write_demo, 5), "card": (write_card, 1)}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Gives the address of a page, which is written once."""
    folder, done = tmp_path_factory.mktemp("pages"), {}

    def address(name):
        if name not in done:
            PAGES[name][0](folder)
            done[name] = (folder / f"{name}.html").as_uri()
        return done[name]

    return address


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("device", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("name", PAGES)
def test_the_page_looks_right(visit, written, keep, name, device, scheme):  # noqa: PLR0917
    page = written(name)
    tab = visit(page, device, scheme)
    keep(tab, f"{name}-{'desk' if device is DESK else 'phone'}-{scheme}")
    assert tab.said == []
    assert [each for each in tab.asked if not each.startswith("data:")] == [page]
    wide, window = widths(tab)
    assert wide <= window == device["viewport"]["width"]
    pictures = tab.evaluate(
        "Promise.all([...document.images].map(each => each.decode().then(() =>"
        " [each.complete, each.naturalWidth, each.clientWidth])))"
    )
    assert len(pictures) == PAGES[name][1]
    assert all(done and natural > 100 and shown > 300 for done, natural, shown in pictures)
    assert tab.evaluate(CUT) == []
    assert len(contrasts(tab)) > 50
    assert min(contrasts(tab)) >= 4.5
    assert (brightness(tab) > 0.5) == (scheme == "light")


@pytest.mark.parametrize("name", PAGES)
def test_the_card_explains_itself_to_a_mouse_a_finger_and_a_keyboard(visit, written, name):
    meaning = "The promise itself"
    desk = visit(written(name), DESK, "light")
    desk.reload()  # with all lines closed
    line = desk.locator(".line", has_text="guarantee").first
    assert not line.get_by_text(meaning).first.is_visible()
    line.hover()
    assert line.locator(".aside").is_visible()
    box = line.locator(".aside").bounding_box()
    assert box["x"] + box["width"] <= 1280
    line.locator("summary").focus()
    desk.keyboard.press("Enter")
    assert line.locator("details p").is_visible()
    phone = visit(written(name), PHONE, "light")
    phone.reload()
    line = phone.locator(".line", has_text="guarantee").first
    line.locator("summary").tap()
    assert line.locator("details p").is_visible()
    assert meaning in line.locator("details p").inner_text()


@pytest.mark.parametrize("name", PAGES)
def test_a_screen_reader_finds_its_way(visit, written, name):
    tab = visit(written(name), DESK, "light")
    levels = tab.evaluate(
        "[...document.querySelectorAll('h1, h2, h3')].map(each => Number(each.tagName[1]))"
    )
    assert levels[:2] == [1, 2]
    assert levels.count(1) == 1
    assert all(below <= above + 1 for above, below in itertools.pairwise(levels))
    assert tab.locator("main").count() == 1
    unnamed = "[...document.images].filter(each => each.alt.length < 60).length"
    assert tab.evaluate(unnamed) == 0
    assert tab.locator("svg:not([aria-label])").count() == 0
    heads = "document.querySelectorAll('th:not([scope])').length"
    assert tab.evaluate(heads) == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_pictures_of_the_readme_can_be_seen(visit, keep, tmp_path, scheme):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    pictures = re.findall(r"!\[([^]]+)\]\(([^)]+)\)", readme)
    assert len(pictures) == 2
    shown = "".join(
        f'<p><img src="{(ROOT / name).as_uri()}" alt="{alt}" width="880"></p>'
        for alt, name in pictures
    )
    behind = {"light": "#ffffff", "dark": "#0d1117"}[scheme]
    path = tmp_path / "readme.html"
    path.write_text(f'<!DOCTYPE html><body style="background:{behind}">{shown}', "utf-8")
    tab = visit(path.as_uri(), DESK, scheme)
    keep(tab, f"readme-{scheme}")
    sizes = tab.evaluate("[...document.images].map(each => [each.naturalWidth, each.complete])")
    assert all(width > 300 and done for width, done in sizes)
    assert tab.said == []


BAD = """<!DOCTYPE html><html lang="en"><meta name="viewport" content="width=device-width">
<body style="margin:0;background:#fff"><img src="missing.png">
<p style="width:900px;color:#eee;background:#fff">wide</p>
<p style="width:50px;overflow:hidden;white-space:nowrap">text that is cut off</p>
<script>console.warn("warned"); fetch("http://127.0.0.1:9/x").catch(() => 0)</script>"""


def test_a_page_that_does_not_is_noticed(visit, tmp_path):
    path = tmp_path / "bad.html"
    path.write_text(BAD)
    tab = visit(path.as_uri(), PHONE, "light")
    assert "warned" in tab.said
    assert any(each.endswith("missing.png") for each in tab.said)
    assert "http://127.0.0.1:9/x" in tab.asked
    assert widths(tab)[0] > 360
    assert len(tab.evaluate(CUT)) == 2
    assert min(contrasts(tab)) < 4.5
