"""The small table of public facts that a notebook shows below an estimator."""

from collections.abc import Sequence
from html import escape

# Colours are the page's own, so that it is as legible at night.
_TABLE = "border-collapse: collapse; margin: 0.5em 0; font-size: 0.9em"
_CELL = "text-align: left; vertical-align: top; padding: 0.2em 1em 0.2em 0"
_LOUD = "font-weight: bold; border-left: 4px solid #d55e00; padding-left: 0.5em"


def table(facts: Sequence[tuple[str, str]], *, loud: Sequence[str] = ()) -> str:
    """Return facts, one a line, as HTML; those with a title in `loud` stand out."""
    lines = "".join(
        f'<tr><th scope="row" style="{_CELL}{"; " + _LOUD if title in loud else ""}">'
        f'{escape(title)}</th><td style="{_CELL}">{escape(text)}</td></tr>'
        for title, text in facts
    )
    return f'<table class="discreet-card" style="{_TABLE}"><tbody>{lines}</tbody></table>'
