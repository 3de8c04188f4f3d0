"""The demo's page in a real browser, as people see it on a desk and on a phone."""

import subprocess
import sys

import pytest

pytest.importorskip("playwright.sync_api", reason="needs the extra `browser`")

from browser import DESK, PHONE, brightness, contrasts, widths

pytestmark = pytest.mark.slow

# Elements whose text leaves them, or that leave the window. A pixel is for rounding.
CUT = """() => [...document.querySelectorAll("body *")].filter(each => {
  const box = each.getBoundingClientRect();
  return box.width && (each.scrollWidth > each.clientWidth + 1 && each.clientWidth
    || box.left < -1 || box.right > document.documentElement.clientWidth + 1);
}).map(each => each.outerHTML.slice(0, 80))"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The address of a page that the command wrote."""
    path = tmp_path_factory.mktemp("demo") / "page.html"
    command = [sys.executable, "-m", "discreet", "demo", "--splits", "2", "-o", str(path)]
    subprocess.run(command, check=True, capture_output=True)
    return path.as_uri()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("device", [DESK, PHONE], ids=["desk", "phone"])
def test_the_page_looks_right(visit, page, device, scheme):
    tab = visit(page, device, scheme)
    assert tab.said == []
    assert [each for each in tab.asked if not each.startswith("data:")] == [page]
    wide, window = widths(tab)
    assert wide <= window == device["viewport"]["width"]
    pictures = tab.evaluate(
        "Promise.all([...document.images].map(each => each.decode().then(() =>"
        " [each.complete, each.naturalWidth, each.clientWidth])))"
    )
    assert len(pictures) == 4
    assert all(done and natural > 100 and shown > 300 for done, natural, shown in pictures)
    assert tab.evaluate(CUT) == []
    assert len(contrasts(tab)) > 50
    assert min(contrasts(tab)) >= 4.5
    assert (brightness(tab) > 0.5) == (scheme == "light")


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
