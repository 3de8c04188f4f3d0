"""The demo's texts: what they answer, and that nothing of them is in the answers."""

import csv
import gzip
import io
from importlib import resources

import pytest

from discreet_benchmarks.demo import texts

pytestmark = pytest.mark.docs


@pytest.fixture(scope="module")
def found():
    pytest.importorskip("tokenizers", reason="needs the extra `text`")
    return texts.find(1.0)


def test_counts_and_domains_are_mostly_right(found):
    assert (found.rows, found.topics) == (8_000, 150)
    assert 0.9 < found.within < 1
    assert 0.75 < found.right < 1
    assert found.card.to_dict()["private"]


def test_questions_are_answered_in_words(found):
    flight, joke, *_, stranger = [each.answer for each in found.asked]
    assert flight.covered
    assert max(flight.shares, key=lambda label: flight.shares[label].share) == "travel"
    assert joke.topics[0].name == "tell joke"
    assert not stranger.covered
    for each in found.asked:
        for topic, exact in zip(each.answer.topics, each.exact, strict=True):
            assert abs(topic.count - exact) < 6 * topic.margin


def test_the_data_are_what_their_notice_says():
    folder = resources.files("discreet_benchmarks.demo")
    rows = list(
        csv.DictReader(
            io.StringIO(gzip.decompress(folder.joinpath("questions.csv.gz").read_bytes()).decode())
        )
    )
    assert len(rows) == 9_000
    assert {row["domain"] for row in rows} == set(texts.DOMAINS)
    assert "CC BY 3.0" in folder.joinpath("questions.txt").read_text()
