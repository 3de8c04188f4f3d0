"""A corpus: counts by a loop, one receipt for all parts, people, the ledger, and what it says."""

import pickle
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from corpora import CLASSES, NAMES, TOPICS, VOCABULARY, Transcript, encode, labels, texts
from ledgers import Watching

import discreet
from discreet.errors import BudgetExceeded, InvalidInput, LedgerError, MostlyNoiseWarning
from discreet.features.nearest import Nearest
from discreet.ledger import Ledger, State
from discreet.sums.cells import RECORD_UNITS
from discreet.testing import Seeded, Silent
from discreet.text import Corpus, PublicWords, encoder
from discreet.text.facts import MOST

SPEND = {"epsilon": 4.0, "delta": 1e-4}
EVERYTHING = {"topics": TOPICS, "classes": CLASSES, "words": VOCABULARY, "facts": True}


def build(some, their=None, *, entropy=None, **asked):
    """A corpus with the encoder of tests."""
    return Corpus.build(
        some, their, encoder=encode, entropy=entropy, **SPEND | {"rows_hint": None} | asked
    )


@pytest.fixture(scope="module")
def whole():
    """A corpus with all parts, without noise."""
    return build(texts(400), labels(400), entropy=Silent(), **EVERYTHING)


# --- an oracle ------------------------------------------------------------------------------------


def test_without_noise_counts_are_those_of_a_loop_over_texts(whole):
    made = encoder(encode)
    points = Nearest(whole.topics.vectors).real_points
    wanted = np.zeros((len(TOPICS), len(CLASSES)))
    for text, label in zip(texts(400), labels(400), strict=True):
        vector = made.encode(text).astype(np.float64)
        wanted[np.argmax([vector @ point for point in points]), CLASSES.index(label)] += 1
    np.testing.assert_allclose(whole.table.cells, wanted)
    np.testing.assert_allclose(whole.table.counts, wanted.sum(axis=1))
    [best] = whole.ask(TOPICS[1], topics=1).topics
    assert (best.name, best.count) == (TOPICS[1], wanted[1].sum())
    assert [each.topics[0].count for each in whole.map()] == sorted(wanted.sum(axis=1))[::-1]


def test_without_noise_sums_of_words_are_those_of_a_loop_over_texts(whole):
    """The first coordinate of each text is the same: how many say a word, over √ of its words."""
    released = whole.released["words"]
    directions = released.layout.kernel.directions
    wanted = np.zeros((len(VOCABULARY.words), directions.width))
    made = encoder(encode)
    for text in texts(400):
        marks = list(VOCABULARY.marks(text))
        if marks:
            near = directions.coordinates(made.encode(text)[None])[0]
            wanted[marks] += near / np.sqrt(len(marks))
    sums = released.state[0] * released.layout.real_unit
    np.testing.assert_allclose(sums, wanted, rtol=1e-3, atol=1e-3)


def test_without_noise_facts_are_those_of_a_loop_over_texts(whole):
    exact = {name.lower(): sum(name in each for each in texts(400)) for name in NAMES}
    found = {each.word: each.count for each in whole.facts}
    assert found.keys() == exact.keys()
    for name, count in exact.items():
        assert found[name] == pytest.approx(count, rel=1e-3)


# --- one receipt ----------------------------------------------------------------------------------

PARTS = {
    "topics": {"topics": TOPICS},
    "labels": {"topics": TOPICS, "classes": CLASSES},
    "many labels": {"topics": TOPICS, "classes": list("abcdefg")},
    "words": {"topics": TOPICS, "words": VOCABULARY},
    "found": {"topics": PublicWords(["card", "rate", "horse", "loan"])},
    "facts": {"facts": True},
    "everything": EVERYTHING,
}


@pytest.mark.parametrize("by_person", [False, True], ids=["texts", "people"])
@pytest.mark.parametrize("parts", PARTS)
def test_all_parts_have_one_receipt_that_spends_what_was_asked_for(parts, by_person):
    some = texts(200)
    people = [at // 2 for at in range(200)] if by_person else None
    corpus = build(
        some, labels(200) if "classes" in PARTS[parts] else None, people=people, **PARTS[parts]
    )
    gaussian = "words" in PARTS[parts] or "facts" in PARTS[parts]
    assert corpus.guarantee.epsilon == SPEND["epsilon"]
    assert corpus.guarantee.delta == (SPEND["delta"] if gaussian else 0.0)
    assert corpus.guarantee.unit == corpus.receipt.unit == ("record" if by_person else "row")
    spent = discreet.combine([corpus.receipt], delta=SPEND["delta"]).epsilon
    # Without Gaussian noise the account at this δ is a little less than the sum of all ε.
    assert (0.999 if gaussian else 0.95) * SPEND["epsilon"] < spent <= SPEND["epsilon"] * (1 + 1e-9)
    assert corpus.private
    for each in corpus.released.values():
        assert (each.receipt, each.guarantee) == (corpus.receipt, corpus.guarantee)
        assert each.rows is None
    text = str(corpus.card)
    assert str(corpus.guarantee) in text
    assert "; ".join(corpus.plan.budget.lines) in text


@pytest.mark.parametrize("parts", PARTS)
def test_a_program_asks_for_all_that_is_on_the_receipt_and_for_no_more(parts):
    some = texts(300)
    with Transcript().written() as seen:
        corpus = build(
            some,
            labels(300) if "classes" in PARTS[parts] else None,
            entropy=Silent(),
            **PARTS[parts],
        )
    shares = sum(this.share for this, _ in seen.sums if not this.pure)
    shares += sum(chosen.share for chosen, _ in seen.names)
    assert shares == pytest.approx(corpus.plan.budget.gaussian, abs=1e-9)
    laplace = [each for this, _ in seen.sums if this.pure for each in this.mechanisms]
    on_receipt = [
        each
        for each, count in corpus.receipt.mechanisms
        for _ in range(count)
        if each.kind == "discrete_laplace"
    ]
    assert sorted(each.scale for each in laplace) == sorted(each.scale for each in on_receipt)
    assert [chosen.disclosure for chosen, _ in seen.names] == [
        each for each, _ in corpus.receipt.mechanisms if each.kind == "disclosure"
    ]


def test_what_is_asked_for_says_what_is_answered(whole):
    answer = whole.ask("card arrived")
    assert answer.shares.keys() == set(CLASSES)
    assert sum(each.share for each in answer.shares.values()) == pytest.approx(1)
    assert answer.facts is not None
    topics = build(texts(50), topics=TOPICS, entropy=Silent()).ask("card arrived")
    assert (dict(topics.shares), topics.words, topics.facts) == ({}, None, None)
    facts = build(texts(200), facts=True, entropy=Silent()).ask("what is with card?")
    assert (facts.topics, facts.words) == ((), None)
    assert {each.word for each in facts.facts} <= {name.lower() for name in NAMES}


def test_answers_are_the_same_for_ever(whole):
    first = str(whole.ask("exchange rate of the card"))
    for _ in range(3):
        whole.ask("something else")
    assert str(whole.ask("exchange rate of the card")) == first


# --- order, chunks, and empty corpora -------------------------------------------------------------


def same(one, other):
    """Whether two corpora have the same released numbers."""
    assert one.released.keys() == other.released.keys()
    for name, released in one.released.items():
        for a, b in zip(
            (released.state, *released.others),
            (other.released[name].state, *other.released[name].others),
            strict=True,
        ):
            if not np.array_equal(a, b):
                return False
    names = [each.parts.names for each in (one, other)]
    return names[0].words == names[1].words and np.array_equal(names[0].counts, names[1].counts)


@pytest.mark.parametrize("by_person", [False, True], ids=["texts", "people"])
def test_the_order_and_chunks_of_texts_change_no_bit(by_person):
    some, their = texts(240), labels(240)
    people = [at // 3 for at in range(240)]
    order = np.random.default_rng(0).permutation(240)
    owners = people if by_person else None
    first = build(some, their, people=owners, entropy=Seeded(1), **EVERYTHING)
    shuffled = build(
        [some[at] for at in order],
        [their[at] for at in order],
        people=[people[at] for at in order] if by_person else None,
        entropy=Seeded(1),
        **EVERYTHING,
    )
    chunks = (
        (some[at : at + 50], their[at : at + 50], *([people[at : at + 50]] if by_person else []))
        for at in range(0, 240, 50)
    )
    assert same(first, shuffled)
    assert same(first, build(chunks, entropy=Seeded(1), **EVERYTHING))


@pytest.mark.parametrize("parts", PARTS)
def test_no_texts_at_all_make_a_corpus_that_says_so_little(parts, tmp_path):
    corpus = build([], [] if "classes" in PARTS[parts] else None, entropy=Seeded(2), **PARTS[parts])
    assert corpus.facts == ()
    assert str(corpus.card)
    corpus.save(tmp_path / "empty.safetensors")
    with pytest.warns(discreet.NotPrivateWarning):
        again = Corpus.load(tmp_path / "empty.safetensors").with_encoder(encode)
    assert str(again.ask("card")) == str(corpus.ask("card"))


def test_what_is_saved_and_said_depends_on_no_number_of_texts():
    """But for what was released: names that were found, and what noisy counts add up to."""
    from discreet.text.file import to_bytes

    asked = {"topics": TOPICS, "classes": CLASSES, "words": VOCABULARY}
    one, other = (
        build(texts(count), labels(count), entropy=Silent(), **asked) for count in (40, 39)
    )
    assert len(to_bytes(one)) == len(to_bytes(other))
    assert repr(one) == repr(other)
    said, facts = (
        [dict(getattr(each.card, name)) for each in (one, other)] for name in ("sentences", "facts")
    )
    for each, corpus in zip(said, (one, other), strict=True):
        assert each.pop("they add up to").startswith(f"about {corpus.table.total:,.0f} ± ")
    for each, corpus in zip(facts, (one, other), strict=True):
        assert each.pop("total") == corpus.table.total
    assert said[0] == said[1]
    assert facts[0] == facts[1]


def test_nothing_of_the_texts_is_in_what_is_released():
    """Names that one text has, and what it says, are neither in the file nor in any picture."""
    from discreet.text.file import to_bytes

    some = texts(300)
    some[5] = "Mirabellum Octavian owes money to Bartholomeus Quill"
    corpus = build(some, labels(300), entropy=Seeded(1), **EVERYTHING)
    shown = [to_bytes(corpus), pickle.dumps(corpus.parts), pickle.dumps(corpus.receipt)]
    shown += [each.encode() for each in (repr(corpus), repr(corpus.parts), repr(corpus.plan))]
    shown += [str(corpus.ask("who owes money?")).encode(), str(corpus.card).encode()]
    assert any(b"florbinitis" in each for each in shown)
    for each in shown:
        assert not re.search(rb"mirabellum|octavian|bartholomeus|quill", each.lower())


# --- people ---------------------------------------------------------------------------------------


def test_one_persons_many_texts_count_as_one_in_every_part():
    """500 texts of one person, and 60 of others: cells, words, names and what they answer."""
    mine = ["horse music with Mirabellum"] * 500
    others = texts(60)
    people = [0] * 500 + list(range(1, 61))
    asked = {"topics": TOPICS, "words": VOCABULARY, "facts": True, "entropy": Silent()}
    alone = build(others, people=people[500:], **asked)
    joined = build(mine + others, people=people, **asked)
    assert joined.facts == alone.facts == ()  # "mirabellum" is one person's
    cells = joined.released["table"].state - alone.released["table"].state
    assert cells.sum() == RECORD_UNITS == np.abs(cells).sum()
    words = joined.released["words"].state - alone.released["words"].state
    length = np.linalg.norm(words.astype(float)) / joined.released["words"].layout.row_bound
    assert 0.9 < length <= 1


def test_of_a_person_as_many_names_count_as_of_a_text():
    mine = [f"horse with Zar{letter}umab" for letter in "bcdfgh"]
    with Transcript().written() as seen:
        build(mine, people=[1] * 6, facts=True, entropy=Silent())
    [(chosen, totals)] = seen.names
    assert len(totals) == MOST == chosen.most
    assert sum(each**2 for each in totals.values()) <= chosen.sensitivity**2


def test_texts_of_a_person_count_for_as_many_as_is_said():
    people = [at // 4 for at in range(40)]
    asked = {"topics": TOPICS, "people": people, "entropy": Silent()}
    for times, wanted in ((1.0, 10), (2.0, 20), (4.0, 40), (9.0, 40)):
        corpus = build(texts(40), person_texts=times, **asked)
        assert corpus.table.counts.sum() == pytest.approx(wanted, abs=0.02)
        assert corpus.released["table"].group_rows == times


def test_people_may_come_with_chunks():
    """Whose each text is, is known after the first chunk only; they are protected all the same."""
    for times, wanted in ((1.0, 5), (2.0, 10)):
        chunks = iter([(texts(20), None, [at // 4 for at in range(20)])])
        corpus = build(chunks, topics=TOPICS, person_texts=times, entropy=Silent())
        assert corpus.guarantee.unit == "record"
        assert corpus.table.counts.sum() == pytest.approx(wanted, abs=0.01)


# --- the ledger -----------------------------------------------------------------------------------


@pytest.fixture
def ledger(tmp_path):
    made = Ledger(tmp_path / "budget.db")
    made.create("clinic", epsilon=4.0, delta=1e-3)
    return made


def test_a_corpus_is_counted_once_with_its_whole_cost_before_its_noise(ledger):
    entropy = Watching(1, ledger)
    corpus = build(
        texts(200), labels(200), entropy=entropy, account=ledger.account("clinic"), **EVERYTHING
    )
    assert len(entropy.seen) > 5
    assert all(states == [State.SPENT] for states in entropy.seen)
    [spend] = ledger.statement("clinic").spends
    assert spend.receipt == corpus.receipt
    assert (spend.delta, len(spend.receipt.mechanisms)) == (SPEND["delta"], 3)


def test_a_corpus_without_room_is_refused_before_a_text_is_encoded(ledger):
    account = ledger.account("clinic")
    build(texts(20), topics=TOPICS, account=account)
    asked = []

    def counting(text):
        asked.append(text)
        return encode(text)

    made = encoder(counting)
    entropy = Watching(1, ledger)
    with pytest.raises(BudgetExceeded):
        Corpus.build(
            ["private"], encoder=made, topics=TOPICS, account=account, entropy=entropy, **SPEND
        )
    assert "private" not in asked
    assert entropy.seen == []
    assert len(ledger.statement("clinic").spends) == 1


def test_a_corpus_that_fails_before_its_noise_costs_nothing(ledger):
    with pytest.raises(InvalidInput):
        build([None], topics=TOPICS, account=ledger.account("clinic"))
    assert ledger.statement("clinic").spends == ()


def test_a_corpus_of_people_is_counted_where_people_are_protected(ledger):
    ledger.create("people", epsilon=9.0, delta=1e-3, unit="record")
    people = [at // 4 for at in range(20)]
    asked = {"topics": TOPICS}
    build(texts(20), people=people, account=ledger.account("people"), **asked)
    assert len(ledger.statement("people").spends) == 1
    with pytest.raises((InvalidInput, LedgerError, BudgetExceeded)):
        build(texts(20), account=ledger.account("people"), **asked)


# --- what is refused, and what is warned of -------------------------------------------------------

WRONG = {
    "nothing": ({}, "topics"),
    "labels without topics": ({"facts": True, "classes": CLASSES}, "topics"),
    "words without topics": ({"facts": True, "words": VOCABULARY}, "topics"),
    "no ε": ({"topics": TOPICS, "epsilon": 0.0}, "epsilon"),
    "no δ": ({"topics": TOPICS, "delta": 0.0}, "delta"),
    "no influence": ({"topics": TOPICS, "people": [1], "person_texts": 0.0}, "group_rows"),
    "one class twice": ({"topics": TOPICS, "classes": ["a", "a"]}, "classes"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_makes_no_corpus_is_refused(wrong):
    asked, said = WRONG[wrong]
    with pytest.raises((InvalidInput, BudgetExceeded), match=said):
        build(["card"], ["a"] if "classes" in asked else None, entropy=Silent(), **asked)


def test_counts_that_are_noise_are_warned_of_whatever_the_builder_expected():
    few = {"topics": TOPICS, "epsilon": 0.2, "entropy": Silent()}
    with pytest.warns(MostlyNoiseWarning, match="add up to about 20 ± "):
        build(texts(20), rows_hint=8_000, **few)
    build(texts(2_000), rows_hint=8_000, **few)  # enough: no warning


def test_a_warning_that_is_an_error_does_not_throw_the_corpus_away():
    with warnings.catch_warnings():
        warnings.simplefilter("error", MostlyNoiseWarning)
        corpus = build(texts(20), topics=TOPICS, epsilon=0.2, entropy=Seeded(0))
    assert corpus.table.total == pytest.approx(20, abs=3 * corpus.table.total_margin)


def test_the_card_says_what_counts_add_up_to(whole):
    assert whole.table.total == pytest.approx(400)
    assert "about 400 ± " in dict(whole.card.sentences)["they add up to"]


def test_too_many_topics_for_the_texts_are_merged_and_it_says_so():
    corpus = build(texts(50), topics=TOPICS, rows_hint=9, entropy=Silent())
    assert len(corpus.topics) == 3
    assert sum(map(len, corpus.topics.merged)) == len(TOPICS)
    assert "merged from 4" in str(corpus.card)


def test_another_encoder_is_refused(whole):
    assert str(whole.with_encoder(encode).ask("card")) == str(whole.ask("card"))
    with pytest.raises(InvalidInput, match="other vectors"):
        whole.with_encoder(lambda text: encode(text)[::-1].copy())
    with pytest.raises(InvalidInput, match="numbers a vector"):
        whole.with_encoder(lambda text: encode(text)[:4])


def test_what_is_spoken_is_quoted_first_and_a_model_behind_it_is_marked(whole):
    prompts = []

    def model(prompt):
        prompts.append(prompt)
        return "I think so."

    said = whole.speak("what is with card?", llm=model)
    quoted = whole.speak("what is with card?")
    assert said.startswith(quoted)
    assert said.endswith("Not from the records:] I think so.")
    assert quoted in prompts[0]
    assert whole.facts[0].word in quoted or str(whole.ask("card").topics[0]) in quoted


def test_test_noise_is_marked_everywhere(whole):
    for text in (repr(whole), str(whole.card), str(whole.guarantee)):
        assert "NOT PRIVATE" in text
    assert not whole.private
    assert replace(whole.receipt, id="x").source == "Silent()"
