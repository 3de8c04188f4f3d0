"""The LangChain retriever passes LangChain's own suite, over a corpus and over public texts."""

import pytest

pytest.importorskip("langchain_core", reason="needs the extra `langchain`")
pytest.importorskip("langchain_tests", reason="needs langchain-tests")

from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_tests.integration_tests import RetrieversIntegrationTests

from discreet import InvalidInput
from discreet.integrations.langchain import PrivateRetriever


class Suite(RetrieversIntegrationTests):
    """LangChain's own; `source` is what is searched."""

    @property
    def retriever_constructor(self):
        return PrivateRetriever

    @property
    def retriever_constructor_params(self):
        return {"source": self.source}

    @property
    def retriever_query_example(self):
        return "card arrived"


class TestOfACorpus(Suite):
    @pytest.fixture(autouse=True)
    def _source(self, corpus):
        self.source = corpus


class TestOfPublicTexts(Suite):
    @pytest.fixture(autouse=True)
    def _source(self, passages):
        self.source = passages


def test_documents_have_words_figures_and_scores(corpus, passages):
    first = PrivateRetriever(corpus, k=1).invoke("card arrived")[0]
    assert first.page_content.startswith("Topic: card arrived, ")
    assert first.metadata["name"] == "card arrived"
    assert {"count", "margin", "clear", "shares", "words", "covered"} <= first.metadata.keys()
    assert first.metadata["score"] == first.metadata["near"]
    page = PrivateRetriever(passages, k=1).invoke("card")[0]
    assert page.page_content == "bank loan"
    assert page.metadata.keys() == {"page", "kind", "score", "margin", "clear"}


def test_the_same_document_has_the_same_id(corpus):
    one, other = (PrivateRetriever(corpus, k=2).invoke("card arrived") for _ in range(2))
    assert [each.id for each in one] == [each.id for each in other]
    assert one[0].id != one[1].id


async def test_so_many_documents_are_asked_for_later(passages):
    retriever = PrivateRetriever(passages)
    assert len(await retriever.ainvoke("card", k=2)) == 2
    assert [len(each) for each in retriever.batch(["card", "film"], k=1)] == [1, 1]


def test_how_many_may_be_configured_later(corpus):
    retriever = PrivateRetriever(corpus).configurable_fields(k=ConfigurableField(id="k"))
    assert len(retriever.invoke("card", {"configurable": {"k": 2}})) == 2


def test_a_chain_takes_it(corpus):
    chain = PrivateRetriever(corpus, k=2) | RunnableLambda(
        lambda found: " ".join(each.page_content for each in found)
    )
    assert chain.invoke("bank loan").startswith("Topic: bank loan")


@pytest.mark.parametrize("k", [0, -1, 1.5, "many", True])
def test_a_number_that_is_none_is_refused(corpus, k):
    with pytest.raises(InvalidInput, match="Expected k="):
        PrivateRetriever(corpus, k=k)
    with pytest.raises(InvalidInput, match="Expected k="):
        PrivateRetriever(corpus).invoke("card", k=k)


def test_a_source_that_is_none_is_refused_without_being_shown():
    with pytest.raises(InvalidInput, match="Expected source") as raised:
        PrivateRetriever(["a private text"])
    assert "a private text" not in str(raised.value)
