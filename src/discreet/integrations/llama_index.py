"""A LlamaIndex retriever over private releases. Needs the extra `llama-index`.

What comes back are public texts, or what a corpus has released: never private ones.
"""

import asyncio
from typing import Any

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from discreet import _validate
from discreet.integrations.retrieval import Found, source_of

__all__ = ["PrivateRetriever"]


class PrivateRetriever(BaseRetriever):
    """Nodes from a private release, for any number of questions; no node is private.

    Of a corpus, nodes are topics near the question and names that may answer it, in plain words
    with their ±; of a memory, the public texts nearest to its answer. `metadata` has the figures,
    under the names that `discreet serve` has for them; a language model is shown the words alone.
    Names have no score. Post-processing: nothing is spent.

    Questions and nodes are shown to whatever callbacks and tracers LlamaIndex is told to call.

    Example::

        retriever = PrivateRetriever(corpus, k=3)
        retriever.retrieve("my card has not arrived")

    Args:
        source: a `discreet.Corpus`, one that `discreet.connect` has, or
            `discreet.integrations.retrieval.PublicPassages`.
        k: how many nodes, at the most.
        **more: what every retriever of LlamaIndex takes: `callback_manager`, `verbose`.

    Raises:
        InvalidInput: an argument is not what it should be.
    """

    def __init__(self, source: Any, *, k: int = 4, **more: Any) -> None:  # noqa: ANN401
        self.source, self.k = source_of(source), _validate.whole("k", k, at_least=1)
        super().__init__(**more)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return list(map(_node, self.source.find(query_bundle.query_str, self.k)))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)


def _node(found: Found) -> NodeWithScore:
    node = TextNode(
        id_=found.id,
        text=found.text,
        metadata={**found.metadata, **found.figures},
        # The words say what a language model needs to know of the figures.
        excluded_llm_metadata_keys=list(found.figures),
        excluded_embed_metadata_keys=list(found.figures),
    )
    return NodeWithScore(node=node, score=found.score)
