"""Run the examples, and draw what they found: python docs/draw_gallery.py [NAME ...].

For each example it writes docs/gallery/NAME.png, and what the script printed into
docs/gallery/figures.json, which the page is tested against. Noise comes from a fixed seed, so that
pictures and figures are the same each time: NOT PRIVATE. A run of all takes some minutes.
"""

import argparse
import contextlib
import importlib
import io
import json
import pathlib
import sys
import time
import warnings
from typing import Any

ROOT = pathlib.Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "gallery"
FIGURES = FOLDER / "figures.json"
NAMES = (
    "quickstart",
    "rag_topics",
    "private_rag",
    "cross_attention",
    "private_text_classifier",
    "private_text",
    "digits_classifier",
    "adaptive_attacker",
    "epsilon_sweep",
    "l1_distances",
    "trained_for_privacy",
    "pretrained_speech",
)
OWN_SEEDS = {"pretrained_speech"}  # has seeds of its own, and takes no source of noise
CACHED = {"private_text", "private_text_classifier", "l1_distances"}

sys.path[:0] = [str(ROOT / "examples"), str(ROOT / "docs")]


def run(name: str, cache: pathlib.Path) -> tuple[Any, list[str]]:
    """Return what an example found, and the lines that it printed."""
    from discreet import NotPrivateWarning
    from discreet.testing import Seeded

    module = importlib.import_module(name)
    arguments = ["--cache", str(cache)] if name in CACHED else []
    source = {} if name in OWN_SEEDS else {"entropy": Seeded(0)}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)  # the page says it
        found = module.main(arguments, **source)
    return found, printed.getvalue().splitlines()


def draw(name: str, found: Any) -> None:  # noqa: ANN401 (each example has its own findings)
    """Write the picture of an example."""
    import epsilon_sweep
    import gallery_pictures

    from discreet import pictures

    path = FOLDER / f"{name}.png"
    if name == "epsilon_sweep":  # draws its own
        epsilon_sweep.draw(found, path)
    else:
        pictures.save(getattr(gallery_pictures, name)(found), path)


def main() -> None:
    """Run and draw what was asked for, and keep the rest."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    parser.add_argument(
        "--cache", type=pathlib.Path, default=pathlib.Path.home() / ".cache" / "discreet"
    )
    options = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    for name in options.names or NAMES:
        start = time.monotonic()
        found, lines = run(name, options.cache)
        draw(name, found)
        kept = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
        kept[name] = lines
        text = json.dumps(kept, ensure_ascii=False, indent=1, sort_keys=True)
        FIGURES.write_text(text + "\n", encoding="utf-8")
        print(f"{name}: {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
