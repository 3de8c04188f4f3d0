"""The page of a corpus in a real browser: how it looks, and that its search finds topics.

Pictures of it are kept in the folder that DISCREET_SCREENSHOTS names.
"""

import hashlib

import numpy as np
import pytest

pytest.importorskip("playwright.sync_api", reason="needs the extra `browser`")

from browser import DESK, PHONE, brightness, contrasts, widths

import discreet
from discreet.pages.corpus import corpus_page
from discreet.testing import Seeded

pytestmark = [pytest.mark.docs, pytest.mark.slow]

EVIL = "<img src=x onerror=document.title='owned'>"
TOPICS = [
    "Card arrival",
    "exchange rate",
    "refund not showing up",
    "averyveryverylongnamewithoutanyblankinit" * 4,
    EVIL,
    *(f"topic number {number}" for number in range(25)),
]
CLASSES = ["card", "money", "a label whose name is rather long, as some are"]
NAMES = ["Zorbulitis", "Flibberine"]


def encoder(text):
    seed = hashlib.sha256(text.partition(":")[0].encode()).digest()
    return np.random.default_rng(list(seed)).normal(size=16)


@pytest.fixture(scope="module")
def corpus():
    texts, labels = [], []
    for place, topic in enumerate(TOPICS):
        for number in range(max(400 - 40 * place, 0)):
            texts.append(f"{topic}: the answer is {NAMES[number % 2]}.")
            labels.append(CLASSES[(place + number // 50) % 3])
    return discreet.Corpus.build(
        texts,
        labels,
        encoder=encoder,
        topics=TOPICS,
        classes=CLASSES,
        words=True,
        facts=True,
        epsilon=4.0,
        rows_hint=2_000,
        entropy=Seeded(1),
    )


@pytest.fixture(scope="module")
def page(corpus, tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "corpus.html"
    path.write_text(corpus_page(corpus, name="tickets.safetensors"), encoding="utf-8")
    return path.as_uri()


# Elements that leave the window.
OUTSIDE = """() => [...document.querySelectorAll("body *")].filter(each => {
  const box = each.getBoundingClientRect();
  return box.width && (box.left < -1 || box.right > document.documentElement.clientWidth + 1);
}).map(each => each.outerHTML.slice(0, 80))"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("device", [DESK, PHONE], ids=["desk", "phone"])
def test_the_page_looks_right(visit, page, keep, device, scheme):
    tab = visit(page, device, scheme)
    keep(tab, f"corpus-{'desk' if device is DESK else 'phone'}-{scheme}")
    assert tab.said == []
    assert [each for each in tab.asked if not each.startswith("data:")] == [page]
    wide, window = widths(tab)
    assert wide <= window == device["viewport"]["width"]
    assert tab.evaluate(OUTSIDE) == []
    assert len(contrasts(tab)) > 50
    assert min(contrasts(tab)) >= 4.5
    assert (brightness(tab) > 0.5) == (scheme == "light")


def shown(tab):
    return tab.locator(".items > li:visible .name").all_inner_texts()


def test_the_search_finds_parts_of_names_in_any_case(visit, page, corpus):
    tab = visit(page, DESK, "light")
    everything = shown(tab)
    assert len(everything) == len(TOPICS) + len(corpus.facts)
    tab.get_by_label("Search among topics and names").fill("CARD ARR")
    assert shown(tab) == ["Card arrival"]
    assert tab.get_by_role("status").inner_text().startswith("1 of 3")
    tab.get_by_label("Search").fill("zorb")
    assert shown(tab) == ["zorbulitis"]
    tab.get_by_label("Search").fill("<img")
    assert shown(tab) == [EVIL]
    assert "<img" in tab.get_by_role("status").inner_text()
    assert tab.locator("img").count() == 0
    tab.get_by_label("Search").fill("nothing is called so")
    assert shown(tab) == []
    tab.get_by_label("Search").press("Escape")
    assert shown(tab) == everything
    assert tab.said == []
    assert tab.title() != "owned"


def test_a_keyboard_is_enough(visit, page):
    tab = visit(page, DESK, "light")
    tab.reload()  # with all topics closed
    inside = tab.locator(".items .inside").first
    assert not inside.is_visible()
    tab.locator(".items summary").first.focus()
    tab.keyboard.press("Enter")
    assert inside.is_visible()
    tab.get_by_role("button", name="Open all").focus()
    tab.keyboard.press("Enter")
    assert tab.locator(".items details:not([open])").count() == 0
    tab.get_by_role("button", name="Close all").press("Space")
    assert tab.locator(".items details[open]").count() == 0


def test_a_screen_reader_finds_its_way(visit, page):
    tab = visit(page, DESK, "light")
    levels = tab.evaluate(
        "[...document.querySelectorAll('h1, h2, h3')].map(each => Number(each.tagName[1]))"
    )
    assert levels[0] == 1
    assert set(levels[1:]) == {2}
    assert tab.locator("main").count() == 1
    assert tab.locator(".bar:not([aria-hidden=true])").count() == 0
    assert tab.evaluate("new Set([...document.querySelectorAll('[id]')].map(e => e.id)).size") == (
        tab.locator("[id]").count()
    )


def test_all_figures_can_be_read_without_a_script(chromium, page, corpus):
    context = chromium.new_context(**PHONE, java_script_enabled=False)
    try:
        tab = context.new_page()
        tab.goto(page)
        assert len(shown(tab)) == len(TOPICS) + len(corpus.facts)
        assert not tab.locator(".search").is_visible()
        tab.locator(".items summary").first.tap()
        assert tab.locator(".items .inside").first.is_visible()
    finally:
        context.close()


def test_a_script_that_is_not_the_page_s_own_does_not_run(visit, page, tmp_path):
    """Even if a name got through: the policy lets one script run, by its digest."""
    path = tmp_path / "corpus.html"
    text = visit(page, DESK, "light").content()
    path.write_text(text.replace("<main>", f"<main><script>document.title='owned'</script>{EVIL}"))
    tab = visit(path.as_uri(), DESK, "light")
    assert tab.title() != "owned"
    assert len(tab.said) >= 2
