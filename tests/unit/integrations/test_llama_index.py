"""The LlamaIndex retriever gives nodes with scores, and query engines take it."""

import asyncio

import pytest

pytest.importorskip("llama_index.core", reason="needs the extra `llama-index`")

from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle

from discreet import InvalidInput
from discreet.integrations.llama_index import PrivateRetriever


def test_nodes_of_a_corpus_have_words_and_figures(corpus):
    found = PrivateRetriever(corpus, k=2).retrieve("card arrived")
    assert all(isinstance(each, NodeWithScore) for each in found)
    topic, name = found
    assert topic.text.startswith("Topic: card arrived, ")
    assert topic.score == topic.metadata["near"]
    assert {"count", "margin", "clear", "shares", "words", "covered"} <= topic.metadata.keys()
    assert name.metadata["kind"] == "fact"
    assert name.score is None
    # A language model is shown the words alone.
    assert topic.node.get_content(MetadataMode.LLM) == topic.text


def test_nodes_of_public_texts_keep_their_metadata(passages):
    first = PrivateRetriever(passages, k=3).retrieve(QueryBundle("card"))[0]
    assert first.text == "bank loan"
    assert first.score == first.metadata["score"] > first.metadata["margin"]
    assert "page: 1" in first.node.get_content(MetadataMode.LLM)
    assert "margin" not in first.node.get_content(MetadataMode.LLM)


def test_asked_in_the_background_it_answers_the_same(corpus):
    retriever = PrivateRetriever(corpus, k=3)
    later = asyncio.run(retriever.aretrieve("bank loan"))
    assert [(each.node_id, each.score) for each in later] == [
        (each.node_id, each.score) for each in retriever.retrieve("bank loan")
    ]


def test_a_query_engine_shows_a_model_what_was_released(corpus):
    """The mock says what it was asked: so everything that it was shown."""
    engine = RetrieverQueryEngine.from_args(PrivateRetriever(corpus, k=1), llm=MockLLM())
    answer = engine.query("card arrived")
    assert "Topic: card arrived, " in str(answer)
    assert len(answer.source_nodes) == 1


@pytest.mark.parametrize("k", [0, 1.5, "many"])
def test_a_number_that_is_none_is_refused(corpus, k):
    with pytest.raises(InvalidInput, match="Expected k="):
        PrivateRetriever(corpus, k=k)


def test_a_source_that_is_none_is_refused():
    with pytest.raises(InvalidInput, match="Expected source"):
        PrivateRetriever(["a private text"])
