"""The demo's releases, to be served, asked and looked at as files; nothing is measured."""

import warnings

import numpy as np

from discreet.errors import MostlyNoiseWarning
from discreet.readers.attention.memory import Memory
from discreet.text import Corpus
from discreet_benchmarks.demo import digits, texts
from discreet_benchmarks.demo.findings import EPSILON

# Of all releases that there may be.
NAMES = ("digits", "questions")

# What ten numbers of an answer are; whoever asks cannot know.
_DIGITS = {
    "data": "Images of handwritten digits. A question is an image of 8 x 8 grey levels, made to "
    "have length 1; number k of the answer is the share of images like it that show a k, less 0.1."
}


def releases() -> dict[str, Memory | Corpus]:
    """Return, by name, a memory of the digits, and a corpus of the questions if they can be read.

    With the memory comes one image of each class that is not private, for people to pick.
    """
    [data] = digits.splits(1)
    _, places = np.unique(data.classes, return_index=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MostlyNoiseWarning)  # the card and each ± say it
        made: dict[str, Memory | Corpus] = {
            "digits": data.memory(EPSILON, stated=_DIGITS).with_reference(data.queries[places])
        }
        if texts.installed():
            made["questions"] = texts.build(EPSILON)
    return made
