"""Facts: candidates of one text, what it gives for released words, and answers that quote them."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet.errors import InvalidInput
from discreet.testing import Seeded
from discreet.text import facts
from discreet.text.facts import OTHER, Fact, Piece, Vocabulary

pytest.importorskip("wordfreq")

ZIPF = facts.rarity()


def found(text, most=10):
    return facts.candidates(text, most=most, rarity=ZIPF)


def encoder(text):
    """A public toy: counts of letters, as a unit vector."""
    counts = np.bincount([ord(letter) % 7 for letter in text], minlength=7).astype(float)
    return counts / np.linalg.norm(counts)


def seconds(text):
    """Of the processor: the least of a few runs."""
    taken = []
    for _ in range(3):
        start = time.process_time()
        found(text)
        taken.append(time.process_time() - start)
    return max(min(taken), 1e-4)


class TestCandidates:
    def test_names_and_rare_words_are_found_and_common_ones_are_not(self):
        text = (
            "I went to London last week. The doctor said it was Norglesnap Fever, not a zoonosis."
        )
        assert set(found(text)) == {"london", "norglesnap fever", "zoonosis"}

    def test_the_rarest_comes_first_and_the_most_are_kept(self):
        text = "From London we saw a pterodactyl and then Snurflaxitis."
        assert found(text) == ("snurflaxitis", "pterodactyl", "london")
        assert found(text, most=2) == ("snurflaxitis", "pterodactyl")
        assert found(text, most=0) == ()

    def test_a_name_is_spelt_the_same_in_any_text(self):
        texts = [
            "we saw Zorblio Flos here",
            "Zorblio Flos was here",
            "it is zorblio   flos!",
            "the (Zorblio-Flos) case",
            "ask for ZORBLIO FLOS",
            "that is Zorblio Flos\u2019s",
            "what \uff3aorblio Flos does",  # a full-width letter
        ]
        assert {found(text) for text in texts} == {("zorblio flos",)}

    @pytest.mark.parametrize(
        "text",
        [
            "Maybe it will rain. Perhaps not! However, we wait: Please come.",
            "I think I'm late, and I\u2019ve lost it, as I do.",
            "THE WHOLE THING IS IN CAPITALS AND SAYS NOTHING",
            "write to someone@zorblio.org or https://zorblio.org/flos or www.zorblio.org",
            "a hash like " + "f00dcafe" * 8,
            "my order ZX83749201 is 83749201ZX",
            "call 555 1234567 or 20240131",
            "then You and The and We",
            "a T-shirt and an X of e-mail",
        ],
    )
    def test_capitals_and_numbers_that_are_no_names(self, text):
        assert found(text) == ()

    def test_an_apostrophe_is_one_in_any_text(self):
        assert found("the O\u2019Zorblio") == found("the O'Zorblio") == ("o'zorblio",)

    @pytest.mark.parametrize("gap", [", ", ". ", "\n", " (", " and ", " https://a.org "])
    def test_what_ends_a_name(self, gap):
        assert found(f"the Zorblio{gap}Flargle") == ("zorblio", "flargle")

    def test_a_common_word_that_begins_a_sentence_joins_a_name_only(self):
        assert found("Sudden Zorblio Toe was seen. Sudden rain fell. The Zorblio Toe hurts.") == (
            "sudden zorblio toe",
            "zorblio toe",
        )

    def test_numbers_and_letters_end_a_name_and_never_begin_one(self):
        assert found("a dose of Zorbvac 3000 or of 3000 Zorbvac or Zorbvac C") == (
            "zorbvac 3000",
            "zorbvac",
            "zorbvac c",
        )
        assert found("the Zorbvac 123456789") == ("zorbvac",)

    @pytest.mark.parametrize("before", ["I am", "hello", "my name is", "call Mr."])
    def test_who_is_introduced_comes_last(self, before):
        text = f"well, {before} Zorblio Flos, from London"
        assert found(text) == ("london", "zorblio flos")
        assert found("it is Zorblio Flos, from London") == ("zorblio flos", "london")

    def test_a_headline_gives_its_rare_words_only(self):
        text = "see London And Paris And Rome And Berlin And Zorblio Win Again Today"
        assert found(text) == ("zorblio",)

    @pytest.mark.parametrize(
        "text", ["@ " + "a" * 10**6, "Aa" * 10**6, "a'" * 10**6, "\ufdfa" * 10**6]
    )
    def test_no_text_takes_long(self, text):
        """A text ten times as long takes ten times as long at most, not a hundred times."""
        assert len(found(text)) < 10
        assert seconds(text) < 40 * seconds(text[: len(text) // 10])

    def test_only_the_beginning_of_a_huge_text_is_looked_at(self):
        assert found("so " * 3_000_000 + "Zorblio") == ()
        assert seconds("so " * 3_000_000) < 10 * seconds("so " * 300_000)
        assert found(" " * (facts.LONGEST_TEXT - 7) + "Zorblio") == ("zorblio",)

    @settings(max_examples=100, deadline=None)
    @given(text=st.text(max_size=80), more=st.text(max_size=20))
    def test_any_text_gives_words_that_are_found_in_it_again(self, text, more):
        words = found(text + " Zorblio " + more, most=4)
        assert words == found(text + " Zorblio " + more, most=4)
        assert len(words) <= 4
        for word in words:
            assert word == " ".join(word.split()) != ""
            labels = [
                piece.label
                for piece in facts.pieces(text + " Zorblio " + more, Vocabulary((word,)))
            ]
            assert labels == [word]

    def test_a_language_that_is_not_there_is_refused(self):
        with pytest.raises(InvalidInput, match="language"):
            facts.rarity("klingon")

    def test_words_of_another_language_are_common_there(self):
        text = "og jeg er også her"
        assert found(text) != ()
        assert facts.candidates(text, most=9, rarity=facts.rarity("da")) == ()


class TestPieces:
    vocabulary = Vocabulary(("snurfle fever", "snurfle", "glitterbombix"))
    text = "My nose itches. Your diagnosis is Snurfle Fever; take Glitterbombix twice. Ask again."

    def test_each_word_gives_text_other_words_and_context_without_itself(self):
        rest = "My nose itches. Your diagnosis is ; take twice. Ask again."
        assert facts.pieces(self.text, self.vocabulary) == (
            Piece("snurfle fever", rest, "glitterbombix", "your diagnosis is ___"),
            Piece("glitterbombix", rest, "snurfle fever", "take ___ twice"),
        )

    def test_four_words_either_side_and_not_the_other_words(self):
        text = "one two three four five snurfle glitterbombix six seven eight nine ten"
        piece, _ = facts.pieces(text, self.vocabulary)
        assert piece.context == "two three four five ___ six seven eight nine"

    def test_the_context_is_that_of_the_first_time(self):
        [piece] = facts.pieces("first snurfle. Then snurfle again", self.vocabulary)
        assert piece.context == "first ___"

    def test_a_label_is_hidden_wherever_it_is(self):
        text = "Snurfle fever, SNURFLE-FEVER and snurfle  fever's end; glitterbombix."
        for piece in facts.pieces(text, self.vocabulary):
            for part in (piece.text, piece.other, piece.context):
                assert piece.label.split()[0] not in part.lower()

    def test_the_longest_word_counts(self):
        assert [p.label for p in facts.pieces("a snurfle fever", self.vocabulary)] == [
            "snurfle fever"
        ]
        assert [p.label for p in facts.pieces("a snurfle", self.vocabulary)] == ["snurfle"]

    def test_the_rarest_words_count(self):
        vocabulary = Vocabulary.ranked(["london", "pterodactyl", "zorb", "snurfle fever"], ZIPF)
        assert vocabulary.words == ("snurfle fever", "zorb", "pterodactyl", "london")
        text = "in london a pterodactyl had zorb"
        assert [p.label for p in facts.pieces(text, vocabulary)] == ["zorb", "pterodactyl"]
        assert [p.other for p in facts.pieces(text, vocabulary)] == [
            "london, pterodactyl",
            "london, zorb",
        ]

    def test_no_more_than_the_most(self):
        text = "snurfle, snurfle fever, glitterbombix"
        assert [p.label for p in facts.pieces(text, self.vocabulary)] == [
            "snurfle fever",
            "snurfle",
        ]
        assert len(facts.pieces(text, self.vocabulary, most=1)) == 1

    def test_a_text_without_any_is_of_the_other_class(self):
        assert facts.pieces(" so  what? ", self.vocabulary) == (Piece(OTHER, "so what?", "", ""),)
        assert facts.pieces("", Vocabulary(())) == (Piece(OTHER, "", "", ""),)


class TestKeys:
    def test_a_key_is_a_unit_vector_of_weighted_parts(self):
        text, other, context = np.eye(3)
        key = facts.combine(text, other, context)
        np.testing.assert_allclose(key, np.r_[text, other / 2, context / 2] / np.sqrt(1.5))
        np.testing.assert_allclose(facts.combine(text), np.r_[text, 0 * text, 0 * text])
        assert not facts.combine(0 * text).any()

    def test_a_question_has_the_key_of_a_text_that_asks_the_same(self):
        vocabulary = Vocabulary(("snurfle", "glitterbombix"))
        piece, _ = facts.pieces("for an itch with Glitterbombix they take snurfle", vocabulary)
        key = facts.question_key(
            "for an itch with they take",
            vocabulary,
            encoder=encoder,
            blank="Itch with, they take ___.",
        )
        other = facts.question_key(
            "for an itch with Glitterbombix they take",
            vocabulary,
            encoder=encoder,
            blank="Itch with, they take ___.",
        )
        expected = facts.piece_key(piece, encoder)
        assert piece.context == "itch with they take ___"
        np.testing.assert_allclose(other, expected)
        assert np.abs(key - expected).max() > 0.1

    @pytest.mark.parametrize(
        ("question", "blank"),
        [
            ("I cough. What is my disease?", "My disease is ___"),
            ("What is it? Which treatment helps? Thanks.", "___ treatment helps"),
            ("What are, in the end, all of the reasons?", "end all of the reasons are ___"),
            ("Who?", "___"),
        ],
    )
    def test_a_question_word_stands_in_the_place_of_the_answer(self, question, blank):
        key = facts.question_key(question, Vocabulary(()), encoder=encoder)
        same = facts.question_key(question, Vocabulary(()), encoder=encoder, blank=blank)
        np.testing.assert_array_equal(key, same)
        assert np.linalg.norm(key[14:]) > 0.4

    def test_no_blank_and_no_question_word_no_context(self):
        key = facts.question_key("my nose", Vocabulary(()), encoder=encoder)
        np.testing.assert_allclose(key, facts.combine(encoder("my nose")))

    def test_a_blank_must_have_one(self):
        with pytest.raises(InvalidInput, match="blank"):
            facts.question_key("what", Vocabulary(()), encoder=encoder, blank="The diagnosis")


class TestAnswers:
    def test_the_likely_one_wins_unless_it_is_only_frequent(self):
        logs = {"a": np.log(0.5), "b": np.log(0.3), OTHER: np.log(0.2)}
        assert list(facts.scores(logs, {"a": 100.0, "b": 100.0}, "what")) == ["a", "b"]
        ranked = facts.scores(logs, {"a": 900.0, "b": 100.0}, "what")
        assert list(ranked) == ["b", "a"]
        assert ranked["b"] == pytest.approx(np.log(0.3) - 0.5 * np.log(100))

    def test_counts_below_one_count_as_one(self):
        ranked = facts.scores({"a": -1.0, "b": -1.0}, {"a": -30.0, "b": 0.0}, "what")
        assert ranked == {"a": -1.0, "b": -1.0}

    def test_words_of_the_question_are_no_answers(self):
        logs = {"snurfle fever": -0.1, "snurfle": -0.2, "glitterbombix": -3.0}
        ranked = facts.scores(logs, dict.fromkeys(logs, 50.0), "What helps with Snurfle Fever?")
        assert list(ranked) == ["glitterbombix"]

    def test_the_sentence_quotes_words_counts_and_errors(self):
        said = facts.template("What is\nit?", [Fact("snurfle", 1310.2, 12.6), Fact("zorb", -3, 13)])
        assert said == (
            'A guess at "What is it?", among names that many texts have: "snurfle" (in 1,310 ± 13 '
            'texts); then "zorb" (at most 13).'
        )

    def test_the_sentence_has_one_word_several_or_none(self):
        known = [Fact("snurfle", 40, 13), Fact("zorb", 30, 13), Fact("flos", 13, 13)]
        assert facts.template("It?", known).endswith(
            '; then "zorb" (30 ± 13) and "flos" (at most 26).'
        )
        assert facts.template("It?", known[:1]).endswith('"snurfle" (in 40 ± 13 texts).')
        assert "(in 40 ± 13 people)" in facts.template("It?", known[:1], noun="people")
        assert facts.template("It?", []) == 'No name that many texts have is an answer to "It?".'


class TestBuilding:
    texts = tuple(
        f"My {part} hurts, {how}. The diagnosis is {name}, so take Zorbvac."
        for part, name in (("nose", "Snurfle Fever"), ("toe", "Flargle Toe"))
        for how in ("a lot", "at night", "again", "since Monday")
        for _ in range(60)
    )

    def build(self, encoder, **options):
        return discreet.Corpus.build(
            list(self.texts),
            encoder=encoder,
            facts=True,
            epsilon=4.0,
            entropy=Seeded(0),
            **options,
        )

    def test_names_are_found_counted_and_answer(self):
        corpus = self.build(encoder)
        counts = {fact.word: fact for fact in corpus.facts}
        assert {"snurfle fever", "flargle toe", "zorbvac"} <= set(counts)
        fact = counts["flargle toe"]
        assert abs(fact.count - 240) < 2 * fact.margin < 120
        assert 'A guess at "Help.", among names that many texts have: "' in corpus.speak("Help.")

    def test_what_a_model_adds_comes_last_and_is_marked(self):
        prompts = []
        corpus = self.build(encoder)
        quoted = corpus.speak("What is it?")
        said = corpus.speak("What is it?", llm=lambda prompt: prompts.append(prompt) or " So. ")
        assert said == f"{quoted}\n[Written by a language model. Not from the records:] So."
        assert quoted in prompts[0]
        assert "hurts" not in prompts[0]

    def test_vectors_of_parts_of_texts_are_kept_where_the_cache_is(self, tmp_path):
        calls = []

        def counted(text):
            calls.append(text)
            return encoder(text)

        first = self.build(counted, cache=tmp_path / "cache")
        assert "___ so take zorbvac" not in calls
        assert any("hurts" in text and "Fever" not in text for text in calls)
        calls.clear()
        again = self.build(counted, cache=tmp_path / "cache")
        assert not [text for text in calls if "hurts" in text or "___" in text]
        assert again.facts == first.facts
