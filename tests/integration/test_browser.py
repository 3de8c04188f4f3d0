"""The demo's page in a real browser, as people see it on a desk and on a phone."""

import re
import shutil
import subprocess
import sys

import pytest

browsers = pytest.importorskip("playwright.sync_api", reason="needs the extra `browser`")

pytestmark = pytest.mark.slow

FLAGS = [
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
]
DESK = {"viewport": {"width": 1280, "height": 800}}
PHONE = {
    "viewport": {"width": 360, "height": 740},
    "device_scale_factor": 3,
    "has_touch": True,
    "is_mobile": True,
}

# Elements whose text leaves them, or that leave the window. A pixel is for rounding.
CUT = """() => [...document.querySelectorAll("body *")].filter(each => {
  const box = each.getBoundingClientRect();
  return box.width && (each.scrollWidth > each.clientWidth + 1 && each.clientWidth
    || box.left < -1 || box.right > document.documentElement.clientWidth + 1);
}).map(each => each.outerHTML.slice(0, 80))"""

# Colours of every element that has text of its own, with what is painted behind it.
COLOURS = """() => [...document.querySelectorAll("body *")].filter(each =>
  [...each.childNodes].some(node => node.nodeType === 3 && node.data.trim())
).map(each => {
  let behind = each;
  while (getComputedStyle(behind).backgroundColor === "rgba(0, 0, 0, 0)")
    behind = behind.parentElement;
  return [getComputedStyle(each).color, getComputedStyle(behind).backgroundColor];
})"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The address of a page that the command wrote."""
    path = tmp_path_factory.mktemp("demo") / "page.html"
    command = [sys.executable, "-m", "discreet", "demo", "--splits", "2", "-o", str(path)]
    subprocess.run(command, check=True, capture_output=True)
    return path.as_uri()


@pytest.fixture(scope="module")
def chromium():
    path = shutil.which("chromium")
    if path is None:
        pytest.fail("There is no chromium: run tools/install-debian-packages.")
    with browsers.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium):
    """Opens an address and returns its tab, with what went wrong and what was asked for."""
    contexts = []

    def opened(address, device, scheme):
        context = chromium.new_context(**device, color_scheme=scheme)
        contexts.append(context)
        tab = context.new_page()
        tab.said, tab.asked = [], []
        tab.on("console", lambda message: tab.said.append(message.text))
        tab.on("pageerror", lambda error: tab.said.append(str(error)))
        tab.on("requestfailed", lambda request: tab.said.append(request.url))
        tab.on("request", lambda request: tab.asked.append(request.url))
        tab.goto(address, wait_until="networkidle")
        tab.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        return tab

    yield opened
    for context in contexts:
        context.close()


def luminance(colour):
    parts = [int(each) / 255 for each in re.findall(r"\d+", colour)[:3]]
    linear = [
        each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(front, back):
    low, high = sorted((luminance(front), luminance(back)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("device", [DESK, PHONE], ids=["desk", "phone"])
def test_the_page_looks_right(visit, page, device, scheme):
    tab = visit(page, device, scheme)
    assert tab.said == []
    assert [each for each in tab.asked if not each.startswith("data:")] == [page]
    widths = "[document.scrollingElement.scrollWidth, document.scrollingElement.clientWidth]"
    wide, window = tab.evaluate(widths)
    assert wide <= window == device["viewport"]["width"]
    pictures = tab.evaluate(
        "Promise.all([...document.images].map(each => each.decode().then(() =>"
        " [each.complete, each.naturalWidth, each.clientWidth])))"
    )
    assert len(pictures) == 4
    assert all(done and natural > 100 and shown > 300 for done, natural, shown in pictures)
    assert tab.evaluate(CUT) == []
    colours = tab.evaluate(COLOURS)
    assert len(colours) > 50
    assert min(contrast(*each) for each in colours) >= 4.5
    light = luminance(tab.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert (light > 0.5) == (scheme == "light")


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
    assert tab.evaluate("document.scrollingElement.scrollWidth") > 360
    assert len(tab.evaluate(CUT)) == 2
    assert min(contrast(*each) for each in tab.evaluate(COLOURS)) < 4.5
