"""A sheet of HTML, and the parts that pages are put together from: tables, pictures, a card.

A card's lines come with what each of them means, which opens on a tap, or shows on hover.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources
from string import Template

from discreet._version import __version__
from discreet.privacy import NOT_PRIVATE, TAKEN, Card
from discreet.provenance import NAMES, PREFIX, STATED
from discreet.readers.attention.memory import MOSTLY_NOISE

HOW_TO_GET_PICTURES = "Pictures need matplotlib: pip install 'discreet[plots]'."

MEANINGS = {
    NOT_PRIVATE: (
        "This file was made for a test. Its noise can be repeated, or there is none: whoever "
        "has it may compute the exact sums over the rows. Do not give it away."
    ),
    "structure": (
        "Which of the paper's data structures this is. Each answers one kind of question."
    ),
    "protects": (
        "Who is hidden, and what a neighbour is. A row: one line of the table. A record: all lines "
        "that the builder gave one id. Somebody with several rows, or several records, is "
        "protected less."
    ),
    "guarantee": (
        "The promise itself. It holds for what it names, whatever anybody does with that, now or "
        "later, and whatever else they know. It does not wear out with the number of questions."
    ),
    "whole file": (
        "What holds for somebody who has the file, and with it all columns of all answers. The "
        "guarantee above is for one column, and for whoever sees no more than that."
    ),
    "for one person": (
        "What the promise comes to for somebody who wants to know whether certain people were in "
        "the data: whatever the method, and whatever else is known. Without the file, a method "
        "that wrongly accuses 10 of 1,000 finds 10 of 1,000."
    ),
    TAKEN: (
        "What the builder did not give, so that it was read off the private rows, without noise. "
        "classes: the labels that occur, even once. bounds, target_bounds: the smallest and the "
        "largest number of a column, each of them somebody's. rows_hint: the number of rows, "
        "rounded to one digit. columns: whether a column holds numbers, or categories. The promise "
        "covers none of it."
    ),
    "stream": (
        "This is one of many memories of rows that arrive in steps. The promise covers all of them "
        "together: whoever has every one, after every step, knows no more than it says."
    ),
    "participation": (
        "In how many of these steps somebody may have rows. The promise is for those who have no "
        "more; with ids of records, rows beyond that were left out."
    ),
    "rows": (
        "How many rows there were is private unless it says otherwise. The public figure is what "
        "settings were chosen by: one that the builder gave, or the usual one. It should not have "
        "been counted."
    ),
    STATED: (
        "Where the file comes from, in the builder's words. Whoever builds a file can state "
        "anything: ask them, and hold the answer beside what is written here."
    ),
    f"{PREFIX}data": "Which rows the file was made of.",
    f"{PREFIX}builder": "Who built the file, and has seen the rows.",
    f"{PREFIX}purpose": "What the file was built for.",
    f"{PREFIX}contact": "Whom to ask about the file.",
    f"{PREFIX}date": "When the file was built.",
    "noise": (
        "How large the random numbers are that were added to the sums. The noise is what protects."
    ),
    "bounds": (
        "How long keys, queries and values may be. Longer ones were cut to this length before "
        "they were added up, so nobody counts for more. They have to be set without looking at the "
        "rows: a bound that was read off them is somebody's."
    ),
    "temperature": (
        "How sharply an answer follows the rows nearest to the question. Sharper answers rest "
        "on fewer rows, so the noise weighs more. It cannot be changed afterwards."
    ),
    "kernel": (
        "The features that stand for exp(scale·⟨query, key⟩), and how well. This error comes "
        "on top of the noise, and is part of the ± of every answer."
    ),
    "readout": (
        "How an answer is made of the sums. Near public points it is computed exactly, so that "
        "less is lost to the kernel. Whoever has the file may take other points: nothing more of "
        "the rows is shown by it."
    ),
    "features": (
        "What the rows were turned into before they were added up; it follows from settings."
    ),
    "columns": (
        "The columns of the table that the model looks at, and what is known of each: ranges and "
        "lists that the builder gave, or that were found with a share of the budget."
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
        "What answers will be like, guessed from settings, or from the noisy sums where it says "
        "so: how much they differ from question to question, and how far they are from exact "
        "attention. Your rows may differ; the ± of an answer is about the rows themselves."
    ),
    MOSTLY_NOISE: (
        "Answers differ less from question to question than they are off: most questions get the "
        "same answer, the mean of all rows, and noise. A guess from public numbers and from this "
        "file, for rows that are spread evenly. The ± of an answer is about the rows themselves."
    ),
    "parts": (
        "What the parts of a corpus cost. Counts of topics spend some of ε; words and names share "
        "what is left. The promise is for all of them together."
    ),
    "topics": (
        "The list that texts are counted by. It is part of the file, and was written down, or made "
        "of public texts, before the private ones were looked at; or it was found among public "
        "words, with a share of the budget. Each text counts for one topic, the nearest."
    ),
    "counts": (
        "Every row counts once: for the public point that is nearest to it, and for its label."
    ),
    "counts are within": (
        "How far the noise moves a count, 95 times of 100. A count that is smaller may be of no "
        "text at all."
    ),
    "they add up to": (
        "All counts together: about how many texts there were. Of people with many texts, each "
        "counts for as many as the promise allows."
    ),
    "a count says": (
        "That a text is nearest to a topic is the judgement of an encoder, a public program that "
        "makes numbers of texts. Such a text need not be about the topic; it is less about others."
    ),
    "covered": (
        "Below this, no topic is near a question, and what is answered may be about something "
        "else. It is a hint, which follows from the topics and from public sentences."
    ),
    "words": (
        "Words of a public list that texts near a question say more often than others. Only those "
        "that are clear of the noise are told."
    ),
    "names": (
        "Words and names that were found in the texts themselves, each said by many of them: one "
        "person's own are told with a chance of at most δ."
    ),
    "a name needs": (
        "How many texts must say a name for it to be found, about. Names that fewer texts say are "
        "not told, and nor is how many such names there are."
    ),
    "encoder": (
        "The public program that made numbers of texts, and makes them of questions. It must not "
        "have learnt from the private texts."
    ),
    "size": ("How much is in the file. It does not grow with the number of rows."),
    "entropy": (
        "Where the random numbers came from. SystemEntropy is the operating system, through a "
        "cipher; anything else is for tests."
    ),
    "made by": ("The version of the software that made it."),
    "context": ("What the private rows are to the model that this is for."),
    "unit": ("What one row or one record is, in the words of whoever built this."),
    "places": ("Which layers and heads of a model answer from this file."),
}

# How a page marks what no file can prove.
STATED_MARK = f'<em class="stated">{STATED}</em>'

# Lines that a file cannot prove, whatever is in it.
_STATED = {
    TAKEN,
    *(f"{PREFIX}{name}" for name in NAMES),
    "participation",
    "rows",
    "bounds",
    "encoder",
    "entropy",
    "made by",
    "context",
    "unit",
    "places",
}


def is_stated(title: str) -> bool:
    """Return whether a line of a card is what its builder states, and no file can prove.

    Args:
        title: of the line.
    """
    return title in _STATED


def escaped(text: object) -> str:
    """Return a text as HTML that does nothing to a page but fill it, whoever wrote it.

    Nothing of it is markup, a control character, or turns the direction of what follows.

    Args:
        text: or what has one.
    """
    plain = (each if _is_shown(each) else "\N{REPLACEMENT CHARACTER}" for each in str(text))
    return escape("".join(plain))


def _is_shown(character: str) -> bool:
    """Return whether a character is seen, or a blank: those that keep words together are."""
    return character.isprintable() or unicodedata.category(character) == "Zs"


def sheet(*, title: str, body: str, footer: str, head: str = "") -> str:
    """Return a page.

    Args:
        title: of the window, as text.
        body: as HTML.
        footer: as text.
        head: what else is in the page's head, as HTML.
    """
    page = resources.files("discreet.pages").joinpath("sheet.html").read_text(encoding="utf-8")
    return Template(page).substitute(
        version=escaped(__version__),
        title=escaped(title),
        head=head,
        body=body,
        footer=escaped(footer),
    )


def picture(address: str | None, alt: str) -> str:
    """Return a figure, with what it says to those who do not see it; or how to get one.

    Args:
        address: of the picture, as `pictures.data_uri` gives it; None if there is no matplotlib.
        alt: what it shows, as text.
    """
    if address is None:
        return f'<p class="note">{escaped(HOW_TO_GET_PICTURES)}</p>'
    return f'<figure><img src="{address}" alt="{escaped(alt)}"></figure>'


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Return a table of names and what they are."""
    rows = "\n".join(
        f'<tr><th scope="row">{escaped(name)}</th><td>{escaped(text)}</td></tr>'
        for name, text in pairs
    )
    return f'<div class="table"><table class="facts">\n{rows}\n</table></div>'


def numbers(
    headings: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str, ours: int | None = None
) -> str:
    """Return a table of numbers.

    Args:
        headings: of the columns.
        rows: as text; the first cell names its row.
        caption: what it shows.
        ours: the column to look at, if there is one.
    """
    head = "".join(f'<th scope="col">{escaped(each)}</th>' for each in headings)
    lines = []
    for name, *cells in rows:
        marked = "".join(
            f'<td class="ours">{escaped(cell)}</td>'
            if place == ours
            else f"<td>{escaped(cell)}</td>"
            for place, cell in enumerate(cells, 1)
        )
        lines.append(f'<tr><th scope="row">{escaped(name)}</th>{marked}</tr>')
    body = "\n".join(lines)
    return (
        f'<div class="table"><table class="numbers">\n<caption>{escaped(caption)}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )


def card_lines(card: Card) -> str:
    """Return a card, each line with what it means, and with a mark if the file cannot prove it."""
    return "\n".join(_line(title, text) for title, text in card.sentences)


def _line(title: str, text: str) -> str:
    meaning = escaped(MEANINGS[title])
    stated = f" {STATED_MARK}" if is_stated(title) else ""
    return (
        f'<div class="line"><details><summary><b>{escaped(title)}</b> <span>{escaped(text)}{stated}'
        f"</span></summary><p>{meaning}</p></details>"
        f'<p class="aside" aria-hidden="true">{meaning}</p></div>'
    )


def card_facts(card: Card) -> str:
    """Return the facts of a card as a table."""
    return facts(
        (name.replace("_", " "), as_fact(name, value)) for name, value in card.to_dict().items()
    )


def as_fact(name: str, value: object) -> str:
    """Return a fact of a card as people write it."""
    match value:
        case None:
            return "not public"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.6g}"
        case int():
            return f"{value:,}"
        case dict():
            value = "; ".join(f"{key}: {each}" for key, each in value.items())
        case list():
            return ", ".join(map(str, value)) or ("one" if name == "heads" else "none")
    return str(value)
