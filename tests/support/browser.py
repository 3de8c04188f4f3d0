"""Pages in a real browser: how they are opened, and what can be seen to be wrong with them.

Needs the extra `browser`, and Chromium.
"""

import contextlib
import re
import shutil

import pytest
from playwright.sync_api import sync_playwright

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

# Colours of every element that has text of its own, with what is painted behind it.
COLOURS = """selector => [...document.querySelectorAll(selector)].filter(each =>
  [...each.childNodes].some(node => node.nodeType === 3 && node.data.trim())
).map(each => {
  let behind = each;
  while (behind !== document.documentElement
      && getComputedStyle(behind).backgroundColor === "rgba(0, 0, 0, 0)")
    behind = behind.parentElement;
  return [getComputedStyle(each).color, getComputedStyle(behind).backgroundColor];
})"""

_WIDTHS = """selector => {
  const each = selector ? document.querySelector(selector) : document.scrollingElement;
  return [each.scrollWidth, each.clientWidth];
}"""


@contextlib.contextmanager
def chromium():
    """Run the system's Chromium."""
    path = shutil.which("chromium")
    if path is None:
        pytest.fail("There is no chromium: run tools/install-debian-packages.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@contextlib.contextmanager
def visitor(browser):
    """Give a function that opens an address in a tab, with what went wrong and was asked for."""
    with contextlib.ExitStack() as contexts:

        def opened(address, device, scheme):
            context = browser.new_context(**device, color_scheme=scheme)
            contexts.callback(context.close)
            tab = context.new_page()
            tab.said, tab.asked = [], []
            tab.on("console", lambda message: tab.said.append(message.text))
            tab.on("pageerror", lambda error: tab.said.append(str(error)))
            tab.on("requestfailed", lambda request: tab.said.append(request.url))
            tab.on("request", lambda request: tab.asked.append(request.url))
            go(tab, address, until="networkidle")
            return tab

        yield opened


def go(tab, address, *, until="load"):
    """Open another address in the same tab, with everything that can be unfolded."""
    tab.goto(address, wait_until=until)
    tab.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")


def widths(tab, selector=None):
    """Return how wide the page (or an element) is, and how much of that is seen."""
    return tab.evaluate(_WIDTHS, selector)


def contrasts(tab, selector="body *"):
    """Return the contrast of every text with what is behind it, as WCAG defines it."""
    return [_contrast(*each) for each in tab.evaluate(COLOURS, selector)]


def brightness(tab):
    """Return the luminance of the page's background, from 0 to 1."""
    return _luminance(tab.evaluate("getComputedStyle(document.body).backgroundColor"))


def _contrast(front, back):
    low, high = sorted((_luminance(front), _luminance(back)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour):
    parts = [int(each) / 255 for each in re.findall(r"\d+", colour)[:3]]
    linear = [
        each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
