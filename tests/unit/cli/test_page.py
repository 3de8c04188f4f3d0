"""The demo's page, without a browser; tests/integration/test_browser.py opens it in one."""

import html.parser
import importlib
import json
import re
import sys

import pytest
from typer.testing import CliRunner

from discreet.cli import app, page
from discreet.cli.findings import find
from discreet.memory import Card

RUNNER = CliRunner()
EMPTY = {"meta", "link", "img", "br", "hr"}


class Reader(html.parser.HTMLParser):
    """Collects tags and text, and sees to it that every tag is closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.words, self.styles = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        assert len(dict(attrs)) == len(attrs)
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        (self.styles if self.open[-1:] == ["style"] else self.words).append(data)

    def all(self, name):
        return [attributes for tag, attributes in self.tags if tag == name]

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def found():
    return find(2, epsilons=(0.5, 1.0, 4.0))


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
    assert len(loading) == 5  # four pictures and an icon that is empty
    assert all(each.startswith("data:") for each in loading)
    assert not re.search(r"@import|url\(|https?:", "".join(reader.styles))
    assert reader.all("script") == []
    assert all(each["href"].startswith("https://") for each in reader.all("a"))


def test_every_picture_says_what_it_shows(written):
    pictures = Reader(written).all("img")
    assert len(pictures) == 4
    assert all(len(each["alt"]) > 60 for each in pictures)
    assert len({each["alt"] for each in pictures}) == 4


def test_the_page_says_what_was_found(found, written):
    text = Reader(written).text
    for each in found.accuracies:
        assert f"{each.private.mean:.3f} ±" in text
        assert f"{each.dpsgd.mean:.3f} ±" in text
    for _, sentence in found.card.sentences:
        assert sentence in text
    for name in found.card.to_dict():
        assert name.replace("_", " ") in text
    assert "owner's eyes" in text
    assert "public data" in text


def test_what_is_on_a_card_is_text_and_not_html(found):
    evil = Card((("a<b", "<script>"),), (("title", "1 < 2 & <img src=x>"),))
    reader = Reader(page.as_html(found.__class__(**{**vars(found), "card": evil}), pictures=False))
    assert reader.all("script") == reader.all("img") == []
    assert "1 < 2 & <img src=x>" in reader.text


def test_without_pictures_the_page_says_how_to_get_them(found):
    reader = Reader(page.as_html(found, pictures=False))
    assert reader.all("img") == []
    assert "pip install 'discreet[plots]'" in reader.text


def test_the_demo_needs_no_matplotlib_and_prints_json(found, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "discreet.pictures", None)
    # By its name in full: the package also has the command, a function called demo.
    module = importlib.import_module("discreet.cli.demo")
    monkeypatch.setattr(module, "find", lambda splits: found)
    arguments = ["demo", "-o", str(tmp_path / "page.html")]
    plain = RUNNER.invoke(app, arguments)
    assert plain.exit_code == 0, plain.output
    assert "discreet[plots]" in plain.output
    assert Reader((tmp_path / "page.html").read_text(encoding="utf-8")).all("img") == []
    printed = RUNNER.invoke(app, [*arguments, "--json", "--force"])
    facts = json.loads(printed.stdout)
    assert facts["card"] == found.card.to_dict()
    assert facts["accuracies"][1]["scale"] == facts["card"]["scale"]
    assert facts["accuracies"][1]["private"]["mean"] == found.accuracies[1].private.mean


def test_findings_are_of_the_right_size(found):
    assert 0.9 < found.answers.within < 1
    for errors in (found.by_epsilon, found.by_rows):
        measured = [each.mean for each in errors.measured]
        assert measured[0] > 2 * measured[-1]
        for value, low, high in zip(measured, errors.matched, errors.spread, strict=True):
            assert 0.2 * low < value < 1.5 * low < high  # at the lower line or below, as it says
    assert found.tree.memory < found.tree.query
