"""A LangChain retriever over private releases. Needs the extra `langchain`.

What comes back are public texts, or what a corpus has released: never private ones.
"""

from typing import Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables.config import run_in_executor

from discreet import _validate
from discreet.integrations.retrieval import Source, source_of

__all__ = ["PrivateRetriever"]


class PrivateRetriever(BaseRetriever):
    """Documents from a private release, for any number of questions; no document is private.

    Of a corpus, documents are topics near the question and names that may answer it, in plain
    words with their ±; of a memory, the public texts nearest to its answer. `metadata` has the
    figures, under the names that `discreet serve` has for them, and `score`. Post-processing:
    nothing is spent.

    Questions and documents are shown to whatever callbacks and tracers LangChain is told to call.

    Example::

        retriever = PrivateRetriever(corpus, k=3)
        retriever.invoke("my card has not arrived")

    Args:
        source: a `discreet.Corpus`, one that `discreet.connect` has, or
            `discreet.integrations.retrieval.PublicPassages`.
        k: how many documents, at the most; `invoke(question, k=...)` for one question.
        **more: what every retriever of LangChain takes: `tags`, `metadata`.

    Raises:
        InvalidInput: an argument is not what it should be.
    """

    source: Any
    k: int

    def __init__(self, source: Any, *, k: int = 4, **more: Any) -> None:  # noqa: ANN401
        count = _validate.whole("k", k, at_least=1)
        super().__init__(source=source_of(source), k=count, **more)

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: Any = None,  # noqa: ANN401, ARG002 (LangChain's own)
        k: int | None = None,
    ) -> list[Document]:
        source: Source = self.source
        count = self.k if k is None else _validate.whole("k", k, at_least=1)
        return [
            Document(
                id=each.id,
                page_content=each.text,
                metadata={**each.metadata, **each.figures, "score": each.score},
            )
            for each in source.find(query, count)
        ]

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: Any = None,  # noqa: ANN401, ARG002 (LangChain's own)
        k: int | None = None,
    ) -> list[Document]:
        found: list[Document] = await run_in_executor(
            None, self._get_relevant_documents, query, k=k
        )
        return found
