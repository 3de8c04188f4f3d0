"""What `discreet card` prints and writes; what is on a page is made in the room `pages`."""

from pathlib import Path

from discreet.cli.files import check_output, output_file
from discreet.cli.inputs import opened_release
from discreet.cli.shell import already_written, print_json, print_page
from discreet.errors import InvalidInput
from discreet.pages import as_html
from discreet.pages.sheet import HOW_TO_GET_PICTURES
from discreet.readers.registry import whole_guarantee


def show_card(memory: Path, *, html: bool, output: Path | None, force: bool, as_json: bool) -> None:
    """Print the card of whatever is in a file, or write it as a page."""
    if html:
        write_page(memory, output, force=force, as_json=as_json)
        return
    if output is not None:
        raise InvalidInput("Expected --html with --output: without it, nothing is written.")
    card = opened_release(memory).card
    if as_json:
        print_json(card.to_dict())
    else:
        print_page(str(card))


def write_page(path: Path, output: Path | None, *, force: bool, as_json: bool) -> None:
    """Write a released file as a page.

    Args:
        path: the released file.
        output: where to write; by default a file of the same name, in the current directory.
        force: whether it may be replaced.
        as_json: whether to print the card as JSON besides.
    """
    page = Path(f"{path.stem}.html") if output is None else output
    check_output(page, force=force, inputs=(path,))
    release = opened_release(path)
    drawn = _can_draw()
    html = as_html(release, name=path.name, pictures=drawn).encode()
    with output_file(page, force=force) as file:
        file.write(html)
    with already_written(page):
        if as_json:
            print_json({"output": str(page), **release.card.to_dict()})
            return
        print_page(f"{page}: {whole_guarantee(release)}")
        if not drawn:
            print_page(f"No picture on the page. {HOW_TO_GET_PICTURES}")


def _can_draw() -> bool:
    try:
        import matplotlib as _  # noqa: F401
    except ImportError:
        return False
    return True
