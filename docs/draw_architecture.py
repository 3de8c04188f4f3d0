"""Draw docs/architecture.svg: python docs/draw_architecture.py."""

import pathlib
from html import escape

PATH = pathlib.Path(__file__).with_name("architecture.svg")

# Title, lines below it, what is private about it.
BOXES = [
    ("Rows", ["keys and values", "in chunks, from", "any machine"], True),
    ("Exact sums", ["of integers:", "Σ value ⊗ φ(key)", "merging is addition"], True),
    ("Release", ["a receipt, then", "noise, once", "one file"], False),
    ("Reader", ["any number of", "questions, for ever,", "at no further cost"], False),
]
WIDTH, HEIGHT, GAP, LEFT, TOP = 172, 118, 38, 12, 74

STYLE = """
  text { font: 14px system-ui, sans-serif; fill: #1b1f24; text-anchor: middle }
  .title { font-weight: 600; font-size: 16px }
  .small { font-size: 13px }
  rect { fill: #ffffff; stroke: #57606a; stroke-width: 1.5 }
  .private { fill: #fff1e5; stroke: #bc4c00 }
  .public { fill: #e6f4ea; stroke: #1a7f37 }
  .side { fill: none; stroke: #8c959f; stroke-dasharray: 5 4 }
  path { stroke: #57606a; stroke-width: 1.6; fill: none }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .private { fill: #3d2414; stroke: #f0883e }
    .public { fill: #12301c; stroke: #56d364 }
    path { stroke: #9ea7b3 }
  }
"""


def left(index: int) -> int:
    """Return where a box begins."""
    return LEFT + index * (WIDTH + GAP)


def text(x: float, y: float, words: str, kind: str = "") -> str:
    """Return a line of text around a point."""
    return f'<text x="{x:g}" y="{y:g}" class="{kind}">{escape(words)}</text>'


def arrow(points: str) -> str:
    """Return a line that ends in a point."""
    return f'<path d="{points}" marker-end="url(#tip)"/>'


def box(index: int, title: str, lines: list[str], *, private: bool) -> list[str]:
    """Return one of the four boxes."""
    x, kind = left(index), "private" if private else "public"
    middle = x + WIDTH / 2
    made = [f'<rect x="{x}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}" rx="9" class="{kind}"/>']
    made.append(text(middle, TOP + 30, title, "title"))
    made += [text(middle, TOP + 56 + 20 * row, line) for row, line in enumerate(lines)]
    return made


def drawing() -> str:
    """Return the picture."""
    total, bottom = left(len(BOXES)) - GAP + LEFT, TOP + HEIGHT + 44
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} {bottom}" role="img" '
            'aria-label="Public settings; rows become exact integer sums; noise is added once; '
            'readers answer from the release">'
        ),
        f"<style>{STYLE}</style>",
        (
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto"><path d="M0 0 L8 4 L0 8" fill="none"/></marker></defs>'
        ),
        (
            f'<rect x="{LEFT}" y="8" width="{total - 2 * LEFT}" height="36" rx="9" class="side" '
            'style="fill:none"/>'
        ),
        text(
            total / 2,
            31,
            "Public settings: bounds, kernel, temperature, lattice, noise; fixed first",
        ),
    ]
    for index, (title, lines, private) in enumerate(BOXES):
        parts += box(index, title, lines, private=private)
        middle = left(index) + WIDTH / 2
        parts.append(arrow(f"M{middle:g} 44 V{TOP - 2}"))
        if index:
            parts.append(arrow(f"M{left(index) - GAP} {TOP + HEIGHT / 2} h{GAP - 2}"))
    caption = TOP + HEIGHT + 28
    parts.append(
        text((left(0) + left(1) + WIDTH) / 2, caption, "private: never leaves the builder", "small")
    )
    parts.append(
        text((left(2) + left(3) + WIDTH) / 2, caption, "(ε, δ)-private: may be given away", "small")
    )
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    PATH.write_text(drawing(), encoding="utf-8")
