"""The documentation in a real browser: formulas, code that is shown whole, search.

Pictures of it are kept in the folder that DISCREET_SCREENSHOTS names.
"""

import contextlib
import functools
import http.server
import operator
import os
import pathlib
import subprocess
import sys
import threading

import pytest

pytest.importorskip("playwright.sync_api", reason="needs the extra `browser`")
pytest.importorskip("sphinx", reason="needs the extra `docs`")

from browser import DESK, PHONE, brightness, contrasts, go, widths

pytestmark = [pytest.mark.docs, pytest.mark.slow]

DOCS = pathlib.Path(__file__).parents[2] / "docs"
SPHINX = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]

# Blocks that have to be scrolled to be read, and whatever leaves the column without such a block
# around it. A pixel is for rounding.
HIDDEN = """() => {
  const edge = document.querySelector("article").getBoundingClientRect().right + 1;
  const scrolls = each => getComputedStyle(each).overflowX !== "visible";
  const inside = each => each.tagName !== "ARTICLE"
    && (scrolls(each) || inside(each.parentElement));
  const blocks = [...document.querySelectorAll("article *")].filter(each =>
    scrolls(each) && each.clientWidth && each.scrollWidth > each.clientWidth + 1);
  const strays = [...document.querySelectorAll("article :is(p, code, img, math)")].filter(each =>
    each.getBoundingClientRect().right > edge && !inside(each.parentElement));
  return [...blocks, ...strays].map(each => each.outerHTML.slice(0, 80));
}"""

# Fractions, roots and powers as they are drawn.
DRAWN = """() => {
  const box = each => each.getBoundingClientRect();
  const all = name => [...document.querySelectorAll(`article ${name}`)];
  return {
    empty: all("math").filter(each => box(each).width < 2 || box(each).height < 5).length,
    fractions: all("mfrac").map(each => box(each.children[1]).top - box(each.children[0]).bottom),
    powers: all("msup").map(each => box(each.children[0]).bottom - box(each.children[1]).bottom),
    indices: all("msub").map(each => box(each.children[1]).bottom - box(each.children[0]).bottom),
    code: all("p").filter(each => /[$\\\\]/.test(each.innerText)).map(each => each.innerText),
  };
}"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of all pages."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run([*SPHINX, DOCS, folder], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@contextlib.contextmanager
def serving(folder):
    """Serve a folder, as `python -m http.server` does; gives its address."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_arguments):
            pass

    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("device", [DESK, PHONE], ids=["desk", "phone"])
def test_no_page_is_wider_than_its_window(visit, site, device):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 50
    tab = visit(pages[0].as_uri(), device, "light")
    for page in pages:
        go(tab, page.as_uri())
        wide, window = widths(tab)
        assert wide <= window == device["viewport"]["width"], page.name
        column, seen = widths(tab, ".content")  # which would scroll by itself on a phone
        assert column <= seen, page.name
        if device is DESK:
            assert tab.evaluate(HIDDEN) == [], page.name
    assert tab.said == []
    assert [each for each in tab.asked if not each.startswith(site.as_uri())] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_formulas_are_drawn(visit, site, scheme):
    for name, least in {"privacy": 250, "paper": 80, "beyond": 25}.items():
        tab = visit((site / f"{name}.html").as_uri(), DESK, scheme)
        drawn = tab.evaluate(DRAWN)
        assert tab.locator("article math").count() > least
        assert drawn["empty"] == 0
        assert drawn["code"] == []
        assert min(drawn["fractions"]) > -2  # one below the other
        assert min(drawn["powers"]) > 1
        assert min(drawn["indices"]) > 0
        assert min(contrasts(tab, "article math *")) >= 4.5
        assert (brightness(tab) > 0.5) == (scheme == "light")


def test_search_shows_where_a_word_is(visit, site):
    with serving(site) as address:
        tab = visit(f"{address}/index.html", DESK, "light")
        tab.fill("input[name=q]", "temperature")
        tab.keyboard.press("Enter")
        excerpt = tab.locator("ul.search li p.context .highlighted").first
        excerpt.wait_for()
        assert excerpt.inner_text().lower() == "temperature"
        tab.locator("ul.search li p.context").nth(5).wait_for()  # they come one by one


def test_search_lists_pages_without_a_server(visit, site):
    tab = visit(f"{site.as_uri()}/search.html?q=temperature", DESK, "light")
    tab.locator("ul.search li a").first.wait_for()
    assert "Choosing" in tab.locator("ul.search").inner_text()


def test_the_first_page_has_a_door_for_everybody(visit, site):
    tab = visit((site / "index.html").as_uri(), DESK, "light")
    doors = tab.locator("#which-door-is-yours > ul > li")
    tops = [doors.nth(number).bounding_box()["y"] for number in range(doors.count())]
    assert len(tops) == 7
    # Two in a line, and all but the last begin on the first screen.
    assert tops[0] == tops[1] < tops[2] == tops[3] < tops[4] == tops[5] < 800
    assert all(doors.nth(number).locator("a").count() >= 3 for number in range(7))


@pytest.mark.parametrize(
    "look",
    [("desk", DESK, "light"), ("phone", PHONE, "light"), ("dark", DESK, "dark")],
    ids=operator.itemgetter(0),
)
def test_pictures_are_taken(visit, site, tmp_path, look):
    word, device, scheme = look
    folder = pathlib.Path(os.environ.get("DISCREET_SCREENSHOTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    for name, place in {"index": "body", "privacy": "#truncated-laplace"}.items():
        tab = visit((site / f"{name}.html").as_uri(), device, scheme)
        tab.evaluate("document.documentElement.style.scrollBehavior = 'auto'")
        tab.evaluate("place => document.querySelector(place).scrollIntoView()", place)
        path = folder / f"site-{name}-{word}.png"
        tab.screenshot(path=path)
        assert path.stat().st_size > 20_000


BAD = """<!DOCTYPE html><html lang="en"><body style="margin:0"><article style="width:200px">
<pre style="overflow:auto">a line of code that is far too long for this narrow column</pre>
<p style="width:300px">wide</p>
<div style="overflow:auto"><p style="width:300px">seen by scrolling</p></div>
<p>one $x$</p><math><msup><mi>x</mi><mn style="position:relative;top:30px">2</mn></msup></math>"""


def test_a_page_that_hides_something_is_noticed(visit, tmp_path):
    path = tmp_path / "bad.html"
    path.write_text(BAD)
    tab = visit(path.as_uri(), DESK, "light")
    assert sorted(each[:4] for each in tab.evaluate(HIDDEN)) == ["<div", "<p s", "<pre"]
    drawn = tab.evaluate(DRAWN)
    assert drawn["code"] == ["one $x$"]
    assert min(drawn["powers"]) < 1


def test_latex_that_cannot_be_shown_fails_the_build_with_file_and_line(tmp_path):
    bad = [r"\foo", r"\frac12", r"\frac{1}{2", r"x^10", r"\left( x", "a_"]
    good = [r"x^{10} \le \frac{1}{2}", r"\left( x \right)^2", r"\leftarrow"]
    lines = [f"${each}$\n\n" for each in [*good, *bad]]
    (tmp_path / "index.md").write_text("# Formulas\n\n" + "".join(lines))
    settings = {
        "extensions": ["formulas", "myst_parser"],
        "myst_enable_extensions": ["dollarmath"],
        "html_math_renderer": "mathml",
    }
    (tmp_path / "conf.py").write_text(
        f"import sys\nsys.path.append({str(DOCS)!r})\nglobals().update({settings!r})\n"
    )
    done = subprocess.run(
        [*SPHINX, tmp_path, tmp_path / "out"], check=False, capture_output=True, text=True
    )
    assert done.returncode != 0
    reported = [line for line in done.stderr.splitlines() if "A formula cannot be shown" in line]
    assert len(reported) == len(bad)
    for number, (line, formula) in enumerate(zip(reported, bad, strict=True)):
        assert f"index.md:{3 + 2 * (len(good) + number)}: WARNING" in line
        assert formula in line
