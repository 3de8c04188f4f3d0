"""Draw docs/demo.svg from what docs/demo.json has: python docs/draw_demo.py.

The figures are those of `discreet demo --splits 20 --json`.
"""

import json
import pathlib
from types import SimpleNamespace

from discreet.pictures import save
from discreet_benchmarks.demo import gallery

FOUND = pathlib.Path(__file__).with_name("demo.json")
PATH = FOUND.with_suffix(".svg")


def draw(path: pathlib.Path) -> None:
    """Draw accuracy against ε."""
    found = json.loads(FOUND.read_text("utf-8"), object_hook=lambda each: SimpleNamespace(**each))
    save(gallery.accuracy(found), path)


if __name__ == "__main__":
    draw(PATH)
