"""What `discreet demo` prints and writes; what it finds out and shows is in the room `demo`."""

import contextlib
import shlex
from pathlib import Path

from discreet.cli.files import check_output, output_file
from discreet.cli.shell import Page, aligned, has_terminal, print_json, print_page
from discreet.errors import DiscreetError, InvalidInput
from discreet.pages.sheet import HOW_TO_GET_PICTURES
from discreet.readers.attention.reader import WITHIN
from discreet.sums.source import progress_bar
from discreet_benchmarks.demo import Findings, as_html, attack, digits, find
from discreet_benchmarks.demo.findings import EPSILON, SPLITS, Asked, steps
from discreet_benchmarks.demo.released import NAMES, releases
from discreet_benchmarks.demo.texts import HOW_TO_GET_TEXTS, Texts

# Pixels from white to black, in letters that every terminal has.
_INK = " .:-=+*#%@"


def show(
    page: Path,
    *,
    picture: Path | None = None,
    splits: int = SPLITS,
    force: bool = False,
    as_json: bool = False,
) -> None:
    """Tell the story in short, or print JSON, and write the page and the picture.

    Args:
        page: the HTML file.
        picture: a PNG or SVG of accuracy against ε, if it is wanted.
        splits: random splits of the data to average over.
        force: whether files may be replaced.
        as_json: whether to print the findings as JSON.
    """
    for path in (page, picture):
        if path is not None:
            check_output(path, force=force)
    if picture == page:
        raise InvalidInput(f"Expected two names for page and picture, got {page} twice.")
    pictures = _pictures(picture)
    with progress_bar("building memories", rows=steps(), show=has_terminal()) as advance:
        found = find(splits, advance=advance)
    html = as_html(found, pictures=pictures).encode()
    with output_file(page, force=force) as file:
        file.write(html)
    if picture is not None:
        _draw(found, picture)
    if as_json:
        print_json(found.to_dict())
        return
    _tell(found)
    if not pictures:
        print_page(f"No pictures on the page. {HOW_TO_GET_PICTURES}")
    for name, path in (("Page", page), ("Picture", picture)):
        if path is not None:
            print_page(f"{name}: {path}")


def write_files(folder: Path, *, force: bool = False, measured: bool = False) -> None:
    """Write the demo's releases into a folder, and say how to serve them.

    Args:
        folder: made if it is not there; not the folder that it would lie in.
        force: whether files may be replaced.
        measured: whether something was asked for that only `show` finds out.
    """
    if measured:
        raise InvalidInput("Expected --files without --picture and --json: nothing is measured.")
    with contextlib.suppress(OSError):  # whatever is wrong with it is said below
        folder.mkdir()
    paths = {name: folder / f"{name}.safetensors" for name in NAMES}
    for path in paths.values():
        check_output(path, force=force)
    made = releases()
    for name, release in made.items():
        release.save(paths[name])
    written = [str(paths[name]) for name in made]
    print_page(f"Released files: {', '.join(written)}")
    if "questions" not in made:
        print_page(f"No questions. {HOW_TO_GET_TEXTS}")
    print_page(f"To ask them: discreet serve {shlex.join(written)}")


def _tell(found: Findings) -> None:
    """Print the story of the page, in short."""
    console = Page()
    console.rule(f"[bold]1. A digit asks {found.rows:,} private images")
    print_page(_digit(found.asked[0]))
    console.rule("[bold]2. Private texts answer in words")
    print_page(_texts(found.texts))
    console.rule("[bold]3. An attacker wants one image's class")
    print_page(_attack(found))
    console.rule("[bold]4. What privacy costs")
    print_page(_table(found))
    print_page(_ceiling(found))
    console.rule("[bold]5. The card that goes with the file")
    print_page(str(found.card))
    console.print()


def _digit(asked: Asked) -> str:
    """Return the image in letters, beside the votes for its class."""
    lines = [f"{'':16}  class, exact vote, private vote ±"]
    for place in range(10):
        pixels = asked.image[place] if place < 8 else [0.0] * 8
        drawn = "".join(2 * _INK[round(9 * float(ink))] for ink in pixels)
        mark = " <- it says" if place == asked.answer else ""
        lines.append(
            f"{drawn}  {place}  {asked.exact[place]:+.3f}  "
            f"{asked.private[place]:+.3f} ± {WITHIN * asked.stderr[place]:.3f}{mark}"
        )
    return "\n".join(lines)


def _texts(found: Texts | None) -> str:
    if found is None:
        return HOW_TO_GET_TEXTS
    asked = "\n".join(f"{each.answer.question}\n  {each.answer}" for each in found.asked)
    return f"{found.rows:,} questions that people asked, at ε = {EPSILON:g}:\n{asked}"


def _attack(found: Findings) -> str:
    exact, private = found.attack_on_exact, found.attack_on_chosen
    return (
        f"She knows everything but the class of one image. From exact attention she reads it in "
        f"{exact.share:.0%} of attacks, from a memory at ε = {EPSILON:g} in {private.share:.0%}; a "
        f"guess is right in {1 / attack.CLASSES:.0%}, and (ε, δ) allows {private.allowed:.0%}."
    )


def _ceiling(found: Findings) -> str:
    top = found.ceilings
    return (
        f"Without privacy: {top.classifier_name} {top.classifier.mean:.3f}, exact attention at its "
        f"best temperature {top.attention.mean:.3f}. A constant: {top.constant.mean:.3f}."
    )


def _pictures(wanted: Path | None) -> bool:
    """Return whether there will be pictures; raise if one was asked for that cannot be drawn."""
    try:
        from discreet.pictures import check_suffix
    except ImportError:
        if wanted is not None:
            raise DiscreetError(HOW_TO_GET_PICTURES) from None
        return False
    if wanted is not None:
        check_suffix(wanted)
    return True


def _draw(found: Findings, path: Path) -> None:
    from discreet.pictures import save
    from discreet_benchmarks.demo.gallery import accuracy

    save(accuracy(found), path)


def _table(found: Findings) -> str:
    """Return accuracies of private methods, in 60 columns; the page has their standard errors."""
    rows = [["ε", "memory", "classifier", "least squares", "DP-SGD"]]
    for each in found.accuracies:
        means = (each.private, each.rounds, each.least_squares, each.dpsgd)
        cells = ["" if one is None else f"{one.mean:.3f}" for one in means]
        rows.append([f"{each.epsilon:g}", *cells])
    title = f"Accuracy on unseen digits, private (δ = {digits.DELTA:g}):"
    return "\n".join([title, *aligned(rows, gap=3, right=True)])
