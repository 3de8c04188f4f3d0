"""Private texts: built once into a file of public topics and noisy counts, then asked in words."""

from discreet.text.answers import Answer, NearTopic, Share
from discreet.text.corpus import Corpus
from discreet.text.encoders import TextEncoder, check_one_at_a_time, encoder
from discreet.text.facts import Fact
from discreet.text.shards import TextJob
from discreet.text.topics import PublicTexts, PublicWords, Topics
from discreet.text.words import Vocabulary

__all__ = [
    "Answer",
    "Corpus",
    "Fact",
    "NearTopic",
    "PublicTexts",
    "PublicWords",
    "Share",
    "TextEncoder",
    "TextJob",
    "Topics",
    "Vocabulary",
    "check_one_at_a_time",
    "encoder",
]
