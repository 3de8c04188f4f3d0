"""What `discreet demo` prints and writes; what it finds out and shows is in the room `demo`."""

from pathlib import Path

from rich.table import Table

from discreet.cli.commands import check_output, output_file, print_json, print_page
from discreet.cli.shell import Page
from discreet.demo import Findings, as_html, digits, find
from discreet.demo.digits import Mean
from discreet.demo.findings import EPSILON
from discreet.demo.page import HOW_TO_GET_PICTURES
from discreet.errors import DiscreetError, InvalidInput
from discreet.paper.needs import Needs


def show(
    page: Path,
    *,
    picture: Path | None = None,
    splits: int = digits.SPLITS,
    force: bool = False,
    as_json: bool = False,
) -> None:
    """Print the card and the table, or JSON, and write the page and the picture.

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
    found = find(splits)
    html = as_html(found, pictures=pictures).encode()
    with output_file(page, force=force) as file:
        file.write(html)
    if picture is not None:
        _draw(found, picture)
    if as_json:
        print_json(found.to_dict())
        return
    console = Page()
    console.rule(f"[bold]A private memory of {found.rows:,} handwritten digits, and its card")
    print_page(str(found.card))
    console.print()
    console.rule("[bold]How well it answers: classes of images that it has never seen, no training")
    console.print(_table(found))
    console.print(_paper_line(found.paper))
    if not pictures:
        console.print(f"No pictures on the page. {HOW_TO_GET_PICTURES}", markup=False)
    for name, path in (("Page", page), ("Picture", picture)):
        if path is not None:
            console.print(f"{name}: {path}", markup=False, soft_wrap=True)


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
    from discreet.demo.gallery import accuracy
    from discreet.pictures import save

    save(accuracy(found), path)


def _table(found: Findings) -> Table:
    table = Table(title=f"Accuracy, mean of splits ± standard error (δ = {digits.DELTA:g})")
    for heading in ("ε", "scale", "exact attention", "private memory", "DP-SGD"):
        table.add_column(heading, justify="right")
    for each in found.accuracies:
        table.add_row(
            f"{each.epsilon:g}",
            f"{each.scale:.3g}",
            f"{each.exact.mean:.3f}",
            _with_error(each.private),
            "" if each.dpsgd is None else _with_error(each.dpsgd),
        )
    return table


def _with_error(mean: Mean) -> str:
    return f"{mean.mean:.3f} ± {mean.stderr:.3f}"


def _paper_line(needs: Needs) -> str:
    return (
        f"The paper's construction for the same data and logits, at ε = {EPSILON:g}: "
        f"{needs.state_bytes:.1e} bytes of state, and {needs.rows:.0e} rows before an answer means "
        "anything."
    )
