"""Draw docs/mechanism.svg, light and dark in one: python docs/draw_mechanism.py."""

import pathlib
from html import escape

PATH = pathlib.Path(__file__).with_name("mechanism.svg")
WIDTH, HEIGHT = 900, 260

STYLE = """
  text { font: 14px system-ui, sans-serif; fill: #1b1f24; text-anchor: middle }
  .title { font-weight: 600; font-size: 16px }
  .small { font-size: 12.5px; fill: #57606a }
  .private { fill: #fff1e5; stroke: #bc4c00 }
  .one { fill: #bc4c00; stroke: #bc4c00 }
  .noise { fill: #0072b2; stroke: none }
  .public { fill: #e6f4ea; stroke: #1a7f37 }
  .person { fill: none; stroke: #57606a; stroke-width: 1.6 }
  rect { stroke-width: 1.4 }
  path.arrow { stroke: #57606a; stroke-width: 1.8; fill: none }
  .tip { fill: #57606a }
  .wall { stroke: #8c959f; stroke-width: 1.4; stroke-dasharray: 5 4; fill: none }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .small { fill: #9ea7b3 }
    .private { fill: #3d2414; stroke: #f0883e }
    .one { fill: #f0883e; stroke: #f0883e }
    .noise { fill: #56b4e9 }
    .public { fill: #12301c; stroke: #56d364 }
    .person, path.arrow { stroke: #9ea7b3 }
    .tip { fill: #9ea7b3 }
  }
"""

# Where each of the five steps stands: its middle, its title and what is said below it.
STEPS = [
    (85, "Private rows", ["a key and a value each;", "one of them is you"]),
    (275, "Exact sums", ["of integers, in any order,", "on any machine"]),
    (460, "Noise, once", ["as much as hides", "any one row"]),
    (635, "One file", ["give it away; the promise", "(ε, δ) is on its card"]),
    (810, "Any questions", ["as often as you like,", "at no further cost"]),
]
# How dark the dots of the noise are, row by row; made up, like noise.
NOISE = [
    (0.9, 0.2, 0.5, 0.1, 0.7),
    (0.3, 0.8, 0.1, 0.6, 0.2),
    (0.6, 0.1, 0.9, 0.3, 0.5),
    (0.1, 0.7, 0.4, 0.8, 0.3),
]
TOP, MIDDLE = 62, 118


def text(x: float, y: float, words: str, kind: str = "") -> str:
    """Return a line of text around a point."""
    return f'<text x="{x:g}" y="{y:g}" class="{kind}">{escape(words)}</text>'


def rect(x: float, y: float, width: float, height: float, kind: str) -> str:
    """Return a rectangle."""
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" class="{kind}"/>'


def arrow(start: float, end: float) -> str:
    """Return an arrow from left to right."""
    return f'<path class="arrow" d="M{start:g} {MIDDLE} H{end:g}" marker-end="url(#tip)"/>'


def rows(x: float) -> list[str]:
    """Return lines of a table, one of them somebody's."""
    return [
        part
        for number in range(7)
        for part in (
            rect(x - 45, TOP + 16 * number, 38, 11, "one" if number == 4 else "private"),
            rect(x - 1, TOP + 16 * number, 46, 11, "one" if number == 4 else "private"),
        )
    ]


def grid(x: float, kind: str) -> list[str]:
    """Return the cells of a matrix of sums."""
    return [
        rect(x - 50 + 20 * column, MIDDLE - 40 + 20 * row, 18, 18, kind)
        for row in range(4)
        for column in range(5)
    ]


def noise(x: float) -> list[str]:
    """Return a number of noise for each sum, as dots of different size."""
    return [
        f'<circle cx="{x - 41 + 20 * column:g}" cy="{MIDDLE - 31 + 20 * row:g}" '
        f'r="{2 + 6 * size:g}" class="noise"/>'
        for row, sizes in enumerate(NOISE)
        for column, size in enumerate(sizes)
    ]


def file(x: float) -> list[str]:
    """Return a sheet with a corner turned down."""
    sheet = f"M{x - 34} {MIDDLE - 48} h48 l20 20 v76 h-68 z"
    corner = f"M{x + 14} {MIDDLE - 48} v20 h20"
    return [
        f'<path d="{sheet}" class="public"/>',
        f'<path d="{corner}" class="public"/>',
        text(x, MIDDLE + 4, "ε = 1"),
        text(x, MIDDLE + 24, "δ = 1e-6"),
    ]


def people(x: float) -> list[str]:
    """Return some who ask."""
    places = [(-42, -18), (0, -34), (42, -18), (-22, 26), (22, 26)]
    made = []
    for right, down in places:
        middle, top = x + right, MIDDLE + down - 8
        made.append(f'<circle cx="{middle:g}" cy="{top:g}" r="7" class="person"/>')
        made.append(f'<path d="M{middle - 13:g} {top + 26:g} a13 14 0 0 1 26 0" class="person"/>')
        made.append(text(middle + 17, top - 4, "?", "small"))
    return made


def drawing() -> str:
    """Return the picture."""
    places = [place for place, _, _ in STEPS]
    parts = [
        *rows(places[0]),
        *grid(places[1], "private"),
        *noise(places[2]),
        *file(places[3]),
        *people(places[4]),
        arrow(142, 212),
        text(368, MIDDLE + 7, "+", "title"),
        arrow(520, 588),
        arrow(682, 745),
        f'<path class="wall" d="M545 34 V{HEIGHT - 12}"/>',
        text(310, HEIGHT - 12, "stays with the owner", "small"),
        text(720, HEIGHT - 12, "can be public", "small"),
    ]
    for place, title, said in STEPS:
        parts.append(text(place, 36, title, "title"))
        parts += [text(place, 198 + 17 * line, words, "small") for line, words in enumerate(said)]
    told = "Private rows become exact sums; noise is added once; one file answers any questions."
    tip = (
        '<marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0 L10 5 L0 10 z" class="tip"/></marker>'
    )
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" role="img" '
        f'aria-label="{told}">\n<title>{told}</title>\n<style>{STYLE}</style>\n'
        f"<defs>{tip}</defs>\n{body}\n</svg>\n"
    )


if __name__ == "__main__":
    PATH.write_text(drawing(), encoding="utf-8")
