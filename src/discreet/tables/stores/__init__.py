"""Where vectors live: Chroma, LanceDB, FAISS, PostgreSQL, Hugging Face datasets.

Each store becomes a `Part`, a table like any other, with its own name for embeddings. A store is
known by its type; no library is loaded to recognise one, and none that is not there already to read
it.
"""

import importlib

from discreet.errors import InvalidInput
from discreet.tables.columns import Part
from discreet.tables.stores.vectors import Vectors

# Library and type of what is recognised, and the module here that reads it.
_STORES = {
    ("chromadb", "Collection"): "chroma",
    ("datasets", "Dataset"): "hugging_face",
    ("datasets", "DatasetDict"): "hugging_face",
    ("datasets", "IterableDataset"): "hugging_face",
    ("datasets", "IterableDatasetDict"): "hugging_face",
    ("discreet", "Query"): "postgres",
    ("discreet", "Vectors"): "faiss",
    ("faiss", "Index"): "faiss",
    ("lancedb", "Table"): "lance",
}


def is_store(given: object) -> bool:
    """Return whether something is a store of vectors: by its type, without loading anything."""
    return _module_of(given) is not None


def is_index(given: object) -> bool:
    """Return whether something is an index of FAISS, which has no columns beside its vectors."""
    return ("faiss", "Index") in _kinds(given)


def store_part(given: object) -> Part:
    """Return a store as a table.

    Args:
        given: what `is_store` recognises.
    """
    module = importlib.import_module(f"{__name__}.{_module_of(given)}")
    part: Part = module.part_of(given)
    return part


def with_columns(index: object, **columns: object) -> Vectors:
    """Return an index of FAISS with what belongs to its vectors, as far as it is given.

    Args:
        index: it.
        **columns: arrays or mappings, or None.
    """
    for name, column in columns.items():
        if isinstance(column, str):
            raise InvalidInput(
                f"Expected {name} to be an array or a mapping of ids, since an index of FAISS has "
                "no columns; or discreet.tables.Vectors, which gives names to some."
            )
    return Vectors(index, {name: each for name, each in columns.items() if each is not None})


def _module_of(given: object) -> str | None:
    for kind in _kinds(given):
        if kind in _STORES:
            return _STORES[kind]
    return None


def _kinds(given: object) -> list[tuple[str, str]]:
    """Return library and name of a thing's type, and of those that it is derived from."""
    return [(each.__module__.partition(".")[0], each.__name__) for each in type(given).__mro__]
