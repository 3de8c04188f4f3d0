"""A sheet of HTML, and the parts that pages are put together from."""

from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources
from string import Template

from discreet._card import Card
from discreet._version import __version__

HOW_TO_GET_PICTURES = "Pictures need matplotlib: pip install 'discreet[plots]'."


def sheet(*, title: str, body: str, footer: str) -> str:
    """Return a page.

    Args:
        title: of the window, as text.
        body: as HTML.
        footer: as text.
    """
    page = resources.files("discreet.pages").joinpath("sheet.html").read_text(encoding="utf-8")
    return Template(page).substitute(
        version=escape(__version__), title=escape(title), body=body, footer=escape(footer)
    )


def picture(address: str | None, alt: str) -> str:
    """Return a figure, with what it says to those who do not see it; or how to get one.

    Args:
        address: of the picture, as `pictures.data_uri` gives it; None if there is no matplotlib.
        alt: what it shows, as text.
    """
    if address is None:
        return f'<p class="note">{escape(HOW_TO_GET_PICTURES)}</p>'
    return f'<figure><img src="{address}" alt="{escape(alt)}"></figure>'


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Return a table of names and what they are."""
    rows = "\n".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(text)}</td></tr>'
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
    head = "".join(f'<th scope="col">{escape(each)}</th>' for each in headings)
    lines = []
    for name, *cells in rows:
        marked = "".join(
            f'<td class="ours">{escape(cell)}</td>' if place == ours else f"<td>{escape(cell)}</td>"
            for place, cell in enumerate(cells, 1)
        )
        lines.append(f'<tr><th scope="row">{escape(name)}</th>{marked}</tr>')
    body = "\n".join(lines)
    return (
        f'<div class="table"><table class="numbers">\n<caption>{escape(caption)}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
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
        case list():
            return ", ".join(map(str, value)) or ("one" if name == "heads" else "none")
    return str(value)
