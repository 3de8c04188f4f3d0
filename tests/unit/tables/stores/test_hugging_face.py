"""Datasets of Hugging Face: the bits of arrays, in the types that they say."""

import numpy as np
import pytest
from vector_stores import EMBEDDING, RATING, TABLE, bits, check_bits, refused

import discreet
from discreet.tables import Rows

datasets = pytest.importorskip("datasets", reason="needs the extra `stores`")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def test_a_dataset_gives_the_bits_of_arrays():
    check_bits(datasets.Dataset(TABLE))


def test_so_does_one_that_is_iterated_over_and_one_that_is_shuffled():
    dataset = datasets.Dataset(TABLE)
    check_bits(dataset.to_iterable_dataset())
    expected = bits(EMBEDDING, RATING[:, None])
    for other in (dataset.shuffle(seed=1), dataset.with_format("numpy")):
        np.testing.assert_array_equal(bits(other, values="rating"), expected)
    assert Rows(dataset, values="rating").count == len(RATING)
    assert Rows(dataset.to_iterable_dataset(), values="rating").count is None


def test_types_are_not_guessed_from_rows():
    rows = [{"embedding": [1.0, 0.0], "rating": 1.0}, {"embedding": [0.0, 1.0], "rating": 0.5}]
    guessed = datasets.IterableDataset.from_generator(lambda: iter(rows))
    refused(guessed, "to say which types its columns have")
    said = guessed.cast(
        datasets.Features(
            {
                "embedding": datasets.List(datasets.Value("float32")),
                "rating": datasets.Value("float32"),
            }
        )
    )
    [(keys, values)] = Rows(said, values="rating")
    np.testing.assert_array_equal(keys, np.eye(2))
    np.testing.assert_array_equal(values, [[1.0], [0.5]])


def test_what_does_not_fit_is_named_and_not_shown():
    dataset = datasets.Dataset(TABLE)
    refused(dataset, "to have one column 'price'; it has: embedding", values="price")
    refused(dataset.remove_columns("embedding"), "no column of embeddings by its type: kind, name")
    refused(dataset, "to be numbers, or lists", values="name")
    ragged = datasets.Dataset.from_dict({"embedding": [[1.0, 2.0], [1.0]], "rating": [1.0, 2.0]})
    refused(ragged, "lists of one length, complete, in embedding")
    missing = datasets.Dataset.from_dict({"embedding": [[1.0], None], "rating": [1.0, 2.0]})
    refused(missing, "no missing value in embedding")
    splits = datasets.DatasetDict({"train": dataset, "test": dataset})
    refused(splits, "it is a DatasetDict of train, test", keys="embedding")
    with pytest.raises(discreet.InvalidInput, match="it is a DatasetDict of train, test"):
        discreet.build(splits, values="rating", epsilon=1.0, delta=1e-6, scale=1.0)
