"""A corpus as a page: what is on it, and that nobody's names can be more than names."""

import base64
import hashlib
import re
from html import unescape

import numpy as np
import pytest
from markup import Reader

import discreet
from discreet.pages.corpus import corpus_page
from discreet.pages.sheet import MEANINGS
from discreet.testing import Seeded, Silent

EVIL = "<script>alert(1)</script>"
QUOTES = '" onmouseover="alert(2)" x="'
TOPICS = [EVIL, QUOTES, "$title & ${body} </ul>", "nobody asks this"]
CLASSES = [f"<b>{EVIL}</b>", "plain", "\N{RIGHT-TO-LEFT OVERRIDE}reversed\x00"]


def encoder(text):
    """A vector of a topic's own for each topic, and near it for what is about it."""
    seed = hashlib.sha256(text.partition(":")[0].encode()).digest()
    return np.random.default_rng(list(seed)).normal(size=16)


def build(entropy=None, **options):
    texts = [f"{TOPICS[0]}: {number}" for number in range(400)]
    texts += [f"{TOPICS[1]}: {number}" for number in range(200)]
    labels = [CLASSES[0]] * 300 + [CLASSES[1]] * 300
    defaults = {"epsilon": 1.0, "rows_hint": 1_000, "classes": CLASSES}
    return discreet.Corpus.build(
        texts,
        labels,
        encoder=encoder,
        topics=TOPICS,
        entropy=entropy or Seeded(1),
        **{**defaults, **options},
    )


@pytest.fixture(scope="module")
def corpus():
    return build()


@pytest.fixture(scope="module")
def page(corpus):
    return corpus_page(corpus, name="a & <b>.safetensors")


def listed(page):
    """The items of the page's lists, as HTML."""
    return re.findall(r"<li data-find=.*?</li>(?=\n<li data-find|\n</ul>)", page, re.DOTALL)


def test_all_topics_are_there_the_largest_first_with_counts_and_shares(corpus, page):
    text = Reader(page).text
    items = listed(page)
    assert len(items) == len(TOPICS)
    for answer, item in zip(corpus.map(), items, strict=True):
        [topic] = answer.topics
        said = " ".join(Reader(item).words)
        assert topic.name in said
        assert f"{topic.count:,} ± {topic.margin:,.0f}" in " ".join(said.split()) or not topic.clear
        clear = [str(share) for share in answer.shares.values() if share.clear]
        assert all(share in said for share in clear)
        assert item.count("<li><bdi>") == len(clear)  # all others are named in one sentence
    assert str(corpus.guarantee) in text
    assert "right at most 732 times in 1,000" in text
    assert "a & <b>.safetensors" in text
    for title, sentence in corpus.card.sentences:
        assert sentence in text
        assert MEANINGS[title] in text


def test_a_count_that_could_be_noise_says_so_and_a_clear_one_does_not(corpus, page):
    clear = [answer.topics[0].clear for answer in corpus.map()]
    assert clear == [True, True, False, False]
    for sure, item in zip(clear, listed(page), strict=True):
        assert (">at most " in item) is not sure
        assert ('<span class="bar unclear"' in item) is not sure
        assert ("not clear of the noise" in item.partition("</summary>")[0]) is not sure


def test_bars_are_as_long_as_counts(corpus, page):
    [margin] = {answer.topics[0].margin for answer in corpus.map()}
    counts = [answer.topics[0].count for answer in corpus.map()]
    for count, item in zip(counts, listed(page), strict=True):
        low, at, high = map(
            float, re.search(r"low:(.*?)%;--at:(.*?)%;--high:(.*?)%", item).groups()
        )
        most = max(counts) + margin
        wanted = [100 * max(each, 0) / most for each in (count - margin, count, count + margin)]
        assert [low, at, high] == pytest.approx(wanted, abs=0.01)


def test_names_of_whatever_kind_are_text(page):
    """Topics, labels, the file's name and the title: none opens a tag, ends an attribute, ..."""
    assert EVIL not in page
    assert page.count("<script") == page.count("</script>") == 1
    reader = Reader(page)
    assert not [tag for tag, given in reader.tags if any(name.startswith("on") for name in given)]
    assert unescape(re.search(r'data-find="([^"]*onmouse[^"]*)"', page)[1]) == QUOTES
    assert "$title & ${body} </ul>" in reader.text
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in page
    assert "\x00" not in page
    titled = corpus_page(build(), name="x", title=EVIL)
    assert EVIL not in titled
    assert EVIL in Reader(titled).text


def test_the_page_loads_nothing_and_runs_its_own_script_alone(page):
    reader = Reader(page)
    assert [each["href"] for each in reader.all("link")] == ["data:,"]
    for tag in ("img", "iframe", "form", "object", "base"):
        assert reader.all(tag) == []
    assert reader.all("script") == [{}]
    [policy] = [each["content"] for each in reader.all("meta") if "http-equiv" in each]
    assert "default-src 'none'" in policy
    script = re.search(r"<script>(.*)</script>", page, re.DOTALL)[1].encode()
    digest = base64.b64encode(hashlib.sha256(script).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert not any(name in script.decode() for name in ("fetch", "innerHTML", "eval", "http"))


def test_the_page_is_whole_without_its_script(page):
    """All figures are in its lists; what only the script can do is hidden until it runs."""
    before = page.partition("<script>")[0]
    assert len(listed(before)) == len(TOPICS)
    [search] = [each for each in Reader(page).all("div") if each.get("class") == "search"]
    assert "hidden" in search
    assert "hidden" not in str(Reader(page).all("li"))


def test_free_questions_are_where_the_encoder_is(page):
    text = Reader(page).text
    assert (
        """discreet corpus ask 'a & <b>.safetensors' "a question in words" --encoder PATH""" in text
    )


def test_a_test_source_is_called_not_private():
    assert "NOT PRIVATE: This file" in Reader(corpus_page(build(Silent()), name="x")).text


def test_people_are_spoken_of_where_they_are_protected():
    people = [number // 3 for number in range(600)]
    text = Reader(corpus_page(build(people=people, person_texts=2), name="x")).text
    assert "All texts of one person together count for at most 2 texts" in text
    assert "Any one person is blurred, and not hidden: had all their texts been left out" in text
    assert "Any one text" not in text


@pytest.mark.parametrize(
    ("epsilon", "said"),
    [
        (0.3, "Any one text is hidden"),
        (1.0, "Any one text is blurred, and not hidden"),
        (4.0, "This promise is weak"),
    ],
)
def test_a_weak_promise_is_called_weak(epsilon, said):
    text = Reader(corpus_page(build(epsilon=epsilon), name="x")).text
    others = ("Any one text is hidden", "Any one text is blurred", "This promise is weak")
    assert [each in text for each in others] == [said.startswith(each) for each in others]


def test_many_labels_are_folded():
    many = [*CLASSES, *map(str, range(20))]
    assert Reader(corpus_page(build(classes=many), name="x")).text.count("All 23 labels") == 1


def test_merged_topics_say_what_they_stand_for():
    page = corpus_page(build(rows_hint=24), name="x")
    assert len(listed(page)) == 2
    text = Reader(page).text
    assert "Stands for: " in text
    assert all(each in text for each in TOPICS)


def test_names_that_were_found_are_listed_with_counts():
    texts = ["The diagnosis is Zorbulitis.", "They gave him Flibberine again."] * 300
    made = discreet.Corpus.build(
        texts, encoder=encoder, facts=True, epsilon=4.0, delta=1e-5, entropy=Seeded(2)
    )
    page = corpus_page(made, name="x")
    items = listed(page)
    assert len(items) == len(made.facts) == 2
    for fact, item in zip(made.facts, items, strict=True):
        assert fact.word in item
        assert f"{fact.count:,.0f} <i>± {fact.margin:,.0f}</i>" in item
    assert "Search among names" in Reader(page).text
    assert 'id="topics"' not in page


def test_no_name_at_all_is_said():
    made = discreet.Corpus.build(
        ["nothing rare here"] * 300, encoder=encoder, facts=True, epsilon=1.0, entropy=Seeded(3)
    )
    page = corpus_page(made, name="x")
    assert "None is in enough texts to be told." in Reader(page).text
    assert "no name is in enough of them to be told" in Reader(page).text
    assert "0 names" not in Reader(page).text.partition("The promise, exactly")[0]
