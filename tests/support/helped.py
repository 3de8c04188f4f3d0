"""A memory of private questions, each with the vector of the public page that helped."""

import corpora
import numpy as np

import discreet
from discreet.testing import Seeded

# No question has a word of its page: what leads from one to the other is in the rows alone.
HELPED = {"horse music": "exchange rate", "card": "bank loan", "film": "money arrived"}

# Public, and two of them helped nobody.
PAGES = (*HELPED.values(), "film music", "horse card")

ROWS = 4_000
OFTEN = np.bincount(np.random.default_rng(0).integers(len(HELPED), size=ROWS))


def vectors():
    """Return vectors of the questions and of their pages."""
    encode = discreet.text.encoder(corpora.encode)
    return encode.encode_all(list(HELPED)), encode.encode_all(list(HELPED.values()))


def memory():
    """Return the memory, with noise for tests."""
    keys, values = (np.repeat(each, OFTEN, axis=0) for each in vectors())
    return discreet.build(
        keys, values, epsilon=8.0, delta=1e-6, scale=2.0, rows_hint=ROWS, entropy=Seeded(1)
    )
