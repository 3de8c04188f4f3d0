"""A card, line by line, with what each line means. Explanations open on a tap, or show on hover."""

from html import escape

from discreet._card import Card
from discreet.memory.card import MOSTLY_NOISE
from discreet.privacy import NOT_PRIVATE

MEANINGS = {
    NOT_PRIVATE: (
        "This file was made for a test. Its noise can be repeated, or there is none: whoever "
        "has it may compute the exact sums over the rows. Do not give it away."
    ),
    "structure": (
        "Which of the paper's data structures this is. Each answers one kind of question."
    ),
    "protects": (
        "Who is hidden, and what a neighbour is. A row: one line of the table; somebody with "
        "several lines is protected less. A record: all lines of one person together."
    ),
    "guarantee": (
        "The promise itself, for everything that anybody does with this file, now or later, "
        "whatever else they know. It does not wear out with the number of questions."
    ),
    "rows": (
        "How many rows there were is private unless it says otherwise. The public figure is "
        "one that the builder gave without counting, to choose settings by."
    ),
    "noise": (
        "How large the random numbers are that were added to each sum, once. Everything else "
        "on this card follows from public settings; the noise is what protects."
    ),
    "bounds": (
        "How long keys, queries and values may be. Longer ones were cut to this length before "
        "they were added up, so nobody counts for more. Set without looking at the rows."
    ),
    "temperature": (
        "How sharply an answer follows the rows nearest to the question. Sharper answers rest "
        "on fewer rows, so the noise weighs more. It cannot be changed afterwards."
    ),
    "kernel": (
        "The features that stand for exp(scale·⟨query, key⟩), and how well. This error comes "
        "on top of the noise, and is part of the ± of every answer."
    ),
    "features": (
        "What the rows were turned into before they were added up; fixed by public numbers."
    ),
    "second moments": (
        "How features go together: least squares needs it. Part of the noise is spent on it."
    ),
    "noise of sums": (
        "What the noise does to the two sums behind an answer, at the worst: the answer is one "
        "divided by the other, so what matters is how large the sums themselves are."
    ),
    "matching rows": (
        "How many rows like the question there have to be for its answer to mean something. "
        "An answer that rests on fewer is noise."
    ),
    "error bound": (
        "How far an answer of this structure can be off, whatever the rows and the question, but "
        "for one time in twenty."
    ),
    "prediction": (
        "What answers will be like, from public numbers alone: how much they differ from "
        "question to question, and how far they are from exact attention. Your rows may "
        "differ; the ± of an answer is about the rows themselves."
    ),
    MOSTLY_NOISE: (
        "Answers differ less from question to question than they are off: most questions get the "
        "same answer, the mean of all rows, and noise. A guess from public numbers and from this "
        "file, for rows that are spread evenly. The ± of an answer is about the rows themselves."
    ),
    "size": ("How much is in the file. It does not grow with the number of rows."),
    "entropy": (
        "Where the random numbers came from. SystemEntropy is the operating system, through a "
        "cipher; anything else is for tests."
    ),
    "made by": ("The version of the software that made it."),
    "context": ("What the private rows are to the model that this is for."),
    "unit": ("What one record is, in the words of whoever built this."),
    "places": ("Which layers and heads of a model answer from this file."),
}


def lines(card: Card) -> str:
    """Return a card, each line with what it means."""
    return "\n".join(_line(title, text) for title, text in card.sentences)


def _line(title: str, text: str) -> str:
    meaning = escape(MEANINGS[title])
    return (
        f'<div class="line"><details><summary><b>{escape(title)}</b> <span>{escape(text)}</span>'
        f'</summary><p>{meaning}</p></details><p class="aside" aria-hidden="true">{meaning}</p>'
        "</div>"
    )
