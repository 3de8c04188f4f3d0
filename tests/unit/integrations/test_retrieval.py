"""What retrievers bring back: public texts and what was released, with figures that hold."""

import json

import corpora
import helped
import numpy as np
import pytest

import discreet
from discreet import InvalidInput
from discreet.integrations.retrieval import AskedCorpus, PublicPassages, Source, source_of
from discreet.testing import Seeded
from discreet.text.answers import NOT_CLEAR

SPEND = {"epsilon": 4.0, "delta": 1e-4, "rows_hint": None}


def small(**parts):
    return discreet.Corpus.build(corpora.texts(300), encoder=corpora.encode, **SPEND, **parts)


def test_topics_come_back_with_the_figures_of_the_corpus(corpus):
    question = "is my card here"
    answer = corpus.ask(question, topics=8)
    found = [
        each for each in AskedCorpus(corpus).find(question, 20) if each.figures["kind"] == "topic"
    ]
    assert [each.figures["name"] for each in found] == [each.name for each in answer.topics]
    for each, topic in zip(found, answer.topics, strict=True):
        own = corpus.ask_topic(topic.name)
        assert each.score == topic.near
        figures = dict(each.figures)
        assert figures.pop("kind") == "topic"
        said = answer.to_dict()
        [wanted] = [one for one in said["topics"] if one["name"] == topic.name]
        wanted |= {name: said[name] for name in ("covered", "threshold")}
        assert figures == wanted | {name: own.to_dict()[name] for name in ("shares", "words")}
        assert str(topic) in each.text
        assert (NOT_CLEAR in each.text.partition(". Labels")[0]) == (not topic.clear)
        assert all(str(share) in each.text for share in own.shares.values() if share.clear)
        assert json.loads(json.dumps(each.figures))["name"] == topic.name
    assert {each.figures["clear"] for each in found} == {True, False}


def test_names_come_back_between_topics(corpus):
    question = "what is with horse music?"
    found = AskedCorpus(corpus).find(question, 20)
    facts = corpus.ask(question).facts
    assert len(facts) > 1
    assert [each.figures["kind"] for each in found[:4]] == ["topic", "fact", "topic", "fact"]
    told = [each for each in found if each.figures["kind"] == "fact"]
    for each, fact in zip(told, facts, strict=True):
        assert each.score is None
        assert fact.word in each.text
        assert fact.said in each.text
        assert {**each.figures} == {
            "kind": "fact",
            "word": fact.word,
            "count": fact.count,
            "margin": fact.margin,
            "clear": fact.clear,
            "covered": corpus.ask(question).covered,
        }


@pytest.mark.parametrize("k", [1, 2, 5])
def test_so_many_are_found(corpus, passages, k):
    for source in (AskedCorpus(corpus), passages):
        assert len(source.find("card", k)) == k


def test_a_corpus_may_have_topics_or_names_alone():
    kinds = [
        {each.figures["kind"] for each in AskedCorpus(one).find("horse music", 9)}
        for one in (small(topics=corpora.TOPICS), small(facts=True))
    ]
    assert kinds == [{"topic"}, {"fact"}]


def test_a_question_about_something_else_is_said_to_be_one():
    """In the text, which is all that a language model sees."""
    corpus = small(topics=corpora.TOPICS)
    found = AskedCorpus(corpus).find("zzz", 2)
    assert corpus.ask("zzz").covered is False
    for each in found:
        assert each.figures["covered"] is False
        assert each.text.startswith("Perhaps no topic is near this question")
    for each in AskedCorpus(small(facts=True)).find("zzz", 2):
        assert each.figures["covered"] is None
        assert each.text.startswith("Without topics, nothing tells")


def test_no_private_text_comes_back(corpus):
    found = AskedCorpus(corpus).find("card arrived", 20)
    said = " ".join(each.text + json.dumps(each.figures) for each in found)
    assert not [text for text in corpora.texts(400) if len(text.split()) > 3 and text in said]


def test_public_texts_come_back_as_they_were_given(passages):
    """What the memory learnt: no page has a word of its question."""
    for question, page in [("horse music", "exchange rate"), ("card", "bank loan")]:
        first, *others = passages.find(question, 5)
        assert first.text == page
        assert first.metadata == {"page": helped.PAGES.index(page)}
        assert first.figures["clear"]
        assert first.score == first.figures["score"] > first.figures["margin"] > 0
        scores = [each.score for each in others]
        assert scores == sorted(scores, reverse=True)
        assert abs(sum([first.score, *scores])) < 1e-6  # above and below the average text


def test_margins_hold_of_exact_attention(memory, passages):
    """Of all texts at once: so for nearly all questions."""
    encode = discreet.text.encoder(corpora.encode)
    keys, values = helped.vectors()
    missed = 0
    for question in corpora.WORDS:
        weights = np.exp(memory.scale * keys @ encode.encode(question)) * helped.OFTEN
        exact = encode.encode_all(helped.PAGES) @ (weights @ values / weights.sum())
        wanted = dict(zip(helped.PAGES, exact - exact.mean(), strict=True))
        found = passages.find(question, 5)
        missed += any(
            abs(each.score - wanted[each.text]) > each.figures["margin"] for each in found
        )
    assert missed <= 1


def test_a_score_without_rows_behind_it_is_not_clear():
    encode = discreet.text.encoder(corpora.encode)
    texts = ["exchange rate", "bank loan", "money arrived"]
    few = discreet.build(
        encode.encode_all(["card"] * 3),
        encode.encode_all(texts),
        epsilon=0.5,
        delta=1e-6,
        scale=1.0,
        entropy=Seeded(1),
    )
    for question in ("card", "horse", "film"):
        found = PublicPassages(few, texts, encoder=encode).find(question, 3)
        assert not any(each.figures["clear"] for each in found)


def test_the_length_of_vectors_says_nothing(memory):
    vectors = discreet.text.encoder(corpora.encode).encode_all(helped.PAGES)
    longer = vectors * np.array([[9.0], [0.1], [2.0], [3.0], [0.5]])
    found = [
        PublicPassages(memory, helped.PAGES, encoder=corpora.encode, vectors=each).find("film", 5)
        for each in (vectors, longer)
    ]
    assert [each.text for each in found[0]] == [each.text for each in found[1]]
    np.testing.assert_allclose(*([each.score for each in some] for some in found), rtol=1e-5)


class Elsewhere:
    """A memory behind a server: errors of single numbers are all that it tells."""

    def __init__(self, memory):
        self.attend = memory.attend


def test_margins_of_a_memory_elsewhere_are_upper_bounds(memory):
    here, there = (
        PublicPassages(each, helped.PAGES, encoder=corpora.encode).find("card", 5)
        for each in (memory, Elsewhere(memory))
    )
    for one, other in zip(here, there, strict=True):
        assert one.score == other.score
        assert one.figures["margin"] < other.figures["margin"]
    encode = discreet.text.encoder(corpora.encode)
    vectors = encode.encode_all(helped.PAGES)
    _, stderr = memory.attend(encode.encode("card")[None], stderr=True)
    # 0.05 / (2 · 5) above it: five of them hold at once 95 of 100 times.
    wanted = 2.5758 * np.abs(vectors - vectors.mean(axis=0)) @ stderr[0]
    margins = {each.text: each.figures["margin"] for each in there}
    np.testing.assert_allclose([margins[page] for page in helped.PAGES], wanted, rtol=1e-4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"texts": ["one"]}, "at least two"),
        ({"texts": "some text"}, "at least two"),
        ({"texts": ["one", 2]}, "each of texts"),
        ({"vectors": np.eye(8)[:3]}, "a vector for each"),
        ({"vectors": np.zeros((2, 8))}, "none all zero"),
        ({"vectors": np.full((2, 8), np.nan)}, "finite"),
        ({"vectors": np.eye(3)[:2]}, "as vectors"),
        ({"metadata": [{}]}, "one mapping"),
        ({"memory": "memory"}, "a memory"),
    ],
)
def test_what_does_not_go_together_is_refused(memory, change, message):
    given = {"memory": memory, "texts": ["bank loan", "film"], **change}
    with pytest.raises(InvalidInput, match=message):
        PublicPassages(**given, encoder=corpora.encode).find("card", 1)


def test_a_question_has_words(corpus, passages):
    for source in (AskedCorpus(corpus), passages):
        for question in ("", "   "):
            with pytest.raises(InvalidInput, match="words"):
                source.find(question, 1)
        with pytest.raises(InvalidInput, match="question"):
            source.find(5, 1)


def test_sources_are_corpora_and_sources(corpus, passages, memory):
    assert source_of(passages) is passages
    assert isinstance(source_of(corpus), Source)
    for other in (memory, "texts", ["private text"]):
        with pytest.raises(InvalidInput, match="Expected source") as raised:
            source_of(other)
        assert "private text" not in str(raised.value)


def test_one_topic_is_asked_by_its_name(corpus):
    assert (
        corpus.ask_topic("bank loan") == {each.question: each for each in corpus.map()}["bank loan"]
    )
    with pytest.raises(InvalidInput, match="name of a topic"):
        corpus.ask_topic("bank")
    with pytest.raises(InvalidInput, match="with topics"):
        small(facts=True).ask_topic("bank loan")
