"""What a corpus answers, in words: what is clear is said with its ±, what is not is called so."""

import pytest

from discreet.text.answers import NOT_CLEAR, Answer, NearTopic, Share
from discreet.text.facts import Fact


def test_a_topic_is_name_count_and_margin_and_how_near_it_is():
    topic = NearTopic("card arrival", 1_304, 13.0, 0.71)
    name, count, margin = topic
    assert (name, count, margin, topic.near) == ("card arrival", 1_304, 13.0, 0.71)
    assert topic.clear
    assert str(topic) == "card arrival, 1,304 ± 13 texts"


@pytest.mark.parametrize(("count", "most"), [(5, "18"), (-9, "13"), (13, "26")])
def test_a_count_that_may_be_noise_says_how_many_there_are_at_most(count, most):
    topic = NearTopic("horses", count, 13.0, 0.3)
    assert not topic.clear
    assert str(topic) == f"horses, at most {most} texts"


def test_shares_say_when_they_are_not_clear_of_the_noise():
    assert str(Share(0.85, 0.02)) == "85% ± 2%"
    assert str(Share(0.85, 0.002)) == "85.0% ± 0.2%"
    assert not Share(0.1, 0.1).clear
    assert str(Share(0.1, 0.2)) == f"{NOT_CLEAR} (at most 30%)"
    assert str(Share(0.7, 0.9)) == f"{NOT_CLEAR} (at most 100%)"


def test_a_paragraph_has_all_parts_in_order():
    answer = Answer(
        question="my card has not arrived",
        topics=(NearTopic("card arrival", 142, 13.0, 0.8), NearTopic("loan", 2, 13.0, 0.4)),
        shares={"card": Share(0.85, 0.02), "money": Share(0.01, 0.02)},
        words=("card", "arrived"),
        facts=(Fact("visa", 120.4, 30.0), Fact("amex", -3.0, 30.0)),
        covered=True,
        near=0.8,
        threshold=0.5,
    )
    assert str(answer) == (
        "Nearest topics: card arrival, 142 ± 13 texts; loan, at most 15 texts. "
        "Labels near it: card 85% ± 2%. Typical words: card, arrived. "
        "Names that many have, the likeliest answer first (a guess): visa (120 ± 30), amex (at "
        "most 30)."
    )


def test_a_paragraph_says_what_is_not_covered_and_what_there_is_none_of():
    answer = Answer(
        question="?",
        topics=(NearTopic("loan", 2, 13.0, 0.2),),
        shares={"a": Share(0.3, 0.5)},
        words=(),
        facts=(),
        covered=False,
        near=0.2,
        threshold=0.5,
    )
    text = str(answer)
    assert text.startswith("Perhaps no topic is near this question")
    assert "cosine 0.20, and 0.50 is near" in text
    assert f"Labels near it: {NOT_CLEAR}." in text
    assert "none is clear of the noise" in text
    assert "No name that many have is an answer." in text


def test_facts_without_topics_say_that_nothing_tells_what_they_are_about():
    text = str(Answer(question="?", facts=(Fact("visa", 120.4, 30.0),)))
    assert text.startswith("Without topics, nothing tells")
    assert "visa (120 ± 30)" in text


def test_an_answer_without_parts_says_nothing():
    assert str(Answer(question="?")) == ""
