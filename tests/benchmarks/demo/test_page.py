"""The demo's page, without a browser; tests/integration/test_browser.py opens it in one."""

import re

import pytest
from markup import Reader

from discreet.privacy import Card
from discreet_benchmarks.demo import page

pytestmark = pytest.mark.docs


@pytest.fixture(scope="module")
def written(found):
    return page.as_html(found, pictures=True)


def test_the_page_is_whole(written):
    reader = Reader(written)
    assert written.startswith("<!DOCTYPE html>")
    assert len(written) < 2_000_000
    assert "$" not in written
    assert [each["lang"] for each in reader.all("html")] == ["en"]
    [viewport] = [each for each in reader.all("meta") if each.get("name") == "viewport"]
    assert "width=device-width" in viewport["content"]
    assert len(reader.all("h1")) == 1
    names = [each["id"] for _, each in reader.tags if "id" in each]
    assert len(names) == len(set(names)) >= 6


def test_the_page_loads_nothing_from_elsewhere(written):
    reader = Reader(written)
    loading = [
        value
        for tag, attributes in reader.tags
        for name, value in attributes.items()
        if name in ("src", "srcset", "data", "poster", "action")
        or (name == "href" and tag != "a")
        or "url(" in (value or "")
    ]
    assert len(loading) == 6  # five pictures and an icon that is empty
    assert all(each.startswith("data:") for each in loading)
    assert not re.search(r"@import|url\(|https?:", "".join(reader.styles))
    assert reader.all("script") == []
    assert all(each["href"].startswith("https://") for each in reader.all("a"))


def test_every_picture_says_what_it_shows(written):
    pictures = Reader(written).all("img")
    assert len(pictures) == 5
    assert all(len(each["alt"]) > 60 for each in pictures)
    assert len({each["alt"] for each in pictures}) == 5


def test_the_page_says_what_was_found(found, written):
    text = Reader(written).text
    for each in found.accuracies:
        assert f"{each.private.mean:.3f} ±" in text
        assert f"{each.rounds.mean:.3f} ±" in text
        assert f"{each.least_squares.mean:.3f} ±" in text
        assert f"{each.dpsgd.mean:.3f} ±" in text
    for each in found.attacks:
        assert f"{each.share:.1%}" in text
    assert f"secret in {found.attack_on_exact.share:.0%} of attacks" in text
    assert f"she is right in {found.attack_on_chosen.share:.0%}" in text
    assert f"{found.ceilings.classifier.mean:.1%}" in text
    assert f"{found.ceilings.attention.mean:.1%}" in text
    for _, sentence in found.card.sentences:
        assert sentence in text
    for name in found.card.to_dict():
        assert name.replace("_", " ") in text
    assert "owner's eyes" in text
    assert "public data" in text


def test_what_limits_it_is_what_costs_most(found):
    said = page._limits(found)
    losses = {name.partition(":")[0]: loss for name, loss in found.losses.items()}
    worst = max(losses, key=lambda name: losses[name][0])
    assert f"is the {worst} at ε = 0.5 ({100 * losses[worst][0]:.0f} points)" in said


def test_what_is_on_a_card_is_text_and_not_html(found):
    evil = Card((("a<b", "<script>"),), (("noise", "1 < 2 & <img src=x>"),))
    reader = Reader(page.as_html(found.__class__(**{**vars(found), "card": evil}), pictures=False))
    assert reader.all("script") == reader.all("img") == []
    assert "1 < 2 & <img src=x>" in reader.text


def test_without_pictures_the_page_says_how_to_get_them(found):
    reader = Reader(page.as_html(found, pictures=False))
    assert reader.all("img") == []
    assert "pip install 'discreet[plots]'" in reader.text
