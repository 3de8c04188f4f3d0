"""The file of a corpus: the same to the bit, and refused if it promises more than was done."""

import numpy as np
import pytest
from corpora import CLASSES, TOPICS, VOCABULARY, encode, labels, texts
from resealing import contents, resealed

import discreet
from discreet.errors import CorruptRelease, NotPrivateWarning
from discreet.testing import Seeded
from discreet.text import Corpus, PublicTexts, PublicWords
from discreet.text.file import to_bytes

SPEND = {"epsilon": 4.0, "delta": 1e-4, "rows_hint": None}
PARTS = {
    "topics": {"topics": TOPICS},
    "many labels": {"topics": TOPICS, "classes": list("abcdefg")},
    "merged topics": {"topics": TOPICS, "rows_hint": 9},
    "found topics": {"topics": PublicWords(["card", "rate", "horse", "loan"]), "rows_hint": 9},
    "topics of texts": {"topics": PublicTexts(texts(60, seed=9), topics=4)},
    "words": {"topics": TOPICS, "words": VOCABULARY},
    "facts": {"facts": True},
    "everything": {"topics": TOPICS, "classes": CLASSES, "words": VOCABULARY, "facts": True},
}


def build(parts, *, people=None, count=300, **changes):
    asked = SPEND | PARTS[parts] | changes
    their = labels(count, classes=asked["classes"]) if "classes" in asked else None
    return Corpus.build(texts(count), their, encoder=encode, people=people, **asked)


def opened(data, tmp_path):
    place = tmp_path / "corpus.safetensors"
    place.write_bytes(data)
    return Corpus.load(place)


@pytest.mark.parametrize("by_person", [False, True], ids=["texts", "people"])
@pytest.mark.parametrize("parts", PARTS)
def test_a_file_brings_the_same_corpus_back(parts, by_person, tmp_path):
    people = [at // 2 for at in range(300)] if by_person else None
    corpus = build(parts, people=people, person_texts=2.0)
    corpus.save(tmp_path / "corpus.safetensors")
    for load in (Corpus.load, discreet.load):
        again = load(tmp_path / "corpus.safetensors")
        assert type(again) is Corpus
        assert again.card.to_dict() == corpus.card.to_dict()
        assert str(again.card) == str(corpus.card)
        assert repr(again) == repr(corpus)
        assert (again.guarantee, again.receipt) == (corpus.guarantee, corpus.receipt)
        assert again.plan.budget == corpus.plan.budget
        assert again.released.keys() == corpus.released.keys()
        for name, released in corpus.released.items():
            assert np.array_equal(again.released[name].state, released.state)
            pairs = zip(again.released[name].others, released.others, strict=True)
            assert all(np.array_equal(*pair) for pair in pairs)
        again = again.with_encoder(encode)
        for question in ("card arrived", "what is with horse music?", "Florbinitis"):
            assert again.ask(question, topics=99) == corpus.ask(question, topics=99)  # to the bit
        assert again.facts == corpus.facts
        assert np.array_equal(again.word_vectors, corpus.word_vectors)
        if "topics" in PARTS[parts]:
            assert again.map() == corpus.map()
            assert again.topics.vectors.tobytes() == corpus.topics.vectors.tobytes()
            assert again.topics.reach == corpus.topics.reach
    one, other = contents(to_bytes(again)), contents(to_bytes(corpus))
    assert one[0] == other[0]
    assert one[1].keys() == other[1].keys()
    assert all(np.array_equal(one[1][name], other[1][name]) for name in one[1])


def test_a_corpus_of_test_noise_says_so_when_it_is_opened(tmp_path):
    build("topics", entropy=Seeded(1)).save(tmp_path / "corpus.safetensors")
    with pytest.warns(NotPrivateWarning):
        Corpus.load(tmp_path / "corpus.safetensors")


@pytest.mark.parametrize("classes", [["a", "b"], [5, -2], [True, False], [0.5, 2.0]], ids=str)
def test_labels_of_a_file_are_what_they_were(classes, tmp_path):
    corpus = build("topics", classes=classes)
    corpus.save(tmp_path / "corpus.safetensors")
    again = discreet.load(tmp_path / "corpus.safetensors").with_encoder(encode)
    assert list(map(repr, again.classes)) == list(map(repr, corpus.classes))
    for text in ("card arrived", "horse music"):
        assert repr(again.label_of(text)) == repr(corpus.label_of(text))
        assert again.ask(text).shares == corpus.ask(text).shares


@pytest.fixture(scope="module")
def data():
    """A file with all parts; many labels, so that cells have two parts."""
    classes = list("abcdefg")
    their = labels(300, classes=classes)
    corpus = Corpus.build(
        texts(300), their, encoder=encode, **SPEND | PARTS["everything"] | {"classes": classes}
    )
    return to_bytes(corpus)


def test_a_file_that_was_cut_short_or_changed_in_a_byte_is_refused(data, tmp_path):
    opened(data, tmp_path)
    for length in (0, 8, 100, len(data) // 2, len(data) - 1):
        with pytest.raises(CorruptRelease):
            opened(data[:length], tmp_path)
    for place in range(200, len(data), max(len(data) // 40, 1)):
        changed = bytearray(data)
        changed[place] ^= 1
        with pytest.raises(CorruptRelease):
            opened(bytes(changed), tmp_path)


def every(change):
    """A change of all parts alike, and of the whole."""

    def changed(settings, _):
        for each in (settings, *settings["members"].values()):
            change(each)

    return changed


def of_mechanism(kind, **fields):
    """A change of one mechanism, wherever it is written."""

    def changed(settings, _):
        listed = [each["mechanism"] for each in settings["receipt"]["mechanisms"]]
        for member in settings["members"].values():
            listed += [each for each, _ in member["mechanisms"]]
        for each in listed:
            if each["kind"] == kind:
                each.update(fields)

    return changed


def less_gaussian(settings, _):
    """σ and the Gaussian mechanism, a tenth lower everywhere."""
    sigma = next(
        each["mechanism"]["sigma"]
        for each in settings["receipt"]["mechanisms"]
        if each["mechanism"]["kind"] == "gaussian"
    )
    of_mechanism("gaussian", sigma=0.9 * sigma)(settings, None)
    for name in ("words", "facts"):
        settings["members"][name]["sigma"] *= 0.9


def other_shares(settings, _):
    """Words with a larger share than they had, and less noise for it."""
    settings["members"]["words"]["of_budget"] *= 1.21
    settings["members"]["words"]["sigma"] /= 1.1


def other_budget_too(settings, _):
    """And the budget says so; then all shares are more than there is."""
    other_shares(settings, None)
    settings["budget"]["words"] *= 1.21


def dropped(settings, tensors):
    """Without a part that was asked for."""
    settings["members"].pop("words")
    for name in [each for each in tensors if each.startswith("words.")]:
        tensors.pop(name)


def swapped(settings, tensors):
    """The state of one part in place of another's."""
    tensors["table.state"] = tensors["facts.state"]


def reordered(settings, _):
    settings["classes"] = settings["classes"][::-1]


def renamed(settings, _):
    settings["names"]["words"][0] = "something else"


CHANGES = {
    "less ε": every(lambda each: each["guarantee"].update(epsilon=3.9)),
    "less δ": every(lambda each: each["guarantee"].update(delta=9e-5)),
    "less ε of one part": lambda settings, _: settings["members"]["table"]["guarantee"].update(
        epsilon=3.9
    ),
    "less ε of the whole": lambda settings, _: settings["guarantee"].update(epsilon=3.9),
    "other neighbours": every(lambda each: each["guarantee"].update(neighbours="replace")),
    "another unit": every(lambda each: each["guarantee"].update(unit="record")),
    "another scope": lambda settings, _: settings["guarantee"].update(scope="the universe"),
    "less noise on cells": lambda settings, _: settings["members"]["table"].update(
        sigma=settings["members"]["table"]["sigma"] * 0.9
    ),
    "less noise on words": lambda settings, _: settings["members"]["words"].update(
        sigma=settings["members"]["words"]["sigma"] * 0.9
    ),
    "less noise on facts": lambda settings, _: settings["members"]["facts"].update(
        sigma=settings["members"]["facts"]["sigma"] * 0.9
    ),
    "less Gaussian noise, everywhere": less_gaussian,
    "less Laplace noise, everywhere": of_mechanism("discrete_laplace", scale=0.7),
    "a rarer disclosure": of_mechanism("disclosure", probability=1e-6),
    "a likelier disclosure": of_mechanism("disclosure", probability=9.9e-5),
    "another receipt": lambda settings, _: settings["receipt"].update(id="other"),
    "another release": lambda settings, _: settings["members"]["words"].update(release="other"),
    "another source": lambda settings, _: settings.update(source="Seeded(1)"),
    "not private in one place": lambda settings, _: settings.update(private=False),
    "larger shares": other_shares,
    "larger shares and budget": other_budget_too,
    "another budget of the table": lambda settings, _: settings["budget"].update(table=1.0),
    "another budget of names": lambda settings, _: settings["budget"].update(names=0.3),
    "another disclosure of the budget": lambda settings, _: settings["budget"].update(
        disclosure=1e-9
    ),
    "a budget without a table": lambda settings, _: settings["budget"].update(table=0.0),
    "other options": lambda settings, _: settings["options"].update(epsilon=1.0),
    "another δ of options": lambda settings, _: settings["options"].update(delta=1e-9),
    "people": lambda settings, _: settings.update(people=True),
    "a part is missing": dropped,
    "parts are swapped": swapped,
    "labels in another order": reordered,
    "a name is another": renamed,
    "names that cannot be printed": lambda settings, _: settings["names"]["words"].__setitem__(
        0, "a\x1b[31m"
    ),
    "a smaller margin of names": lambda settings, _: settings["names"].update(margin=0.1),
    "counts that are none": lambda _, tensors: tensors["names.counts"].fill(np.nan),
    "too few counts": lambda _, tensors: tensors.update(
        {"names.counts": tensors["names.counts"][:1].copy()}
    ),
    "a threshold that is none": lambda settings, _: settings.update(threshold=7.0),
    "a threshold in words": lambda settings, _: settings.update(threshold="high"),
    "no threshold": lambda settings, _: settings.update(threshold=None),
    "other words": lambda settings, _: settings["vocabulary"]["words"].pop(),
    "more marks": lambda settings, _: settings["vocabulary"].update(most=9),
    "too few topics": lambda settings, _: settings["topics"]["names"].pop(),
    "no settings": lambda settings, _: settings.clear(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_was_changed_by_somebody_who_knows_how_is_refused(change, data, tmp_path):
    opened(resealed(data, lambda *_: None), tmp_path)
    with pytest.raises(CorruptRelease):
        opened(resealed(data, CHANGES[change]), tmp_path)


def test_the_file_holds_public_things_and_whole_numbers(data):
    settings, tensors = contents(data)
    whole = {"table.state", "table.totals", "words.state", "facts.state"}
    assert all(tensors[name].dtype == np.int64 for name in whole)
    assert not {"rows"} & settings.keys()
    assert all(each["rows"] is None for each in settings["members"].values())
    assert "path" not in str(settings["encoder"])
