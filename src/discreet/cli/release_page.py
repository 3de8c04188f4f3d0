"""What `discreet card --html` writes; what is on the page is made in the room `pages`."""

from pathlib import Path

from discreet.cli.commands import (
    check_output,
    opened_release,
    output_file,
    print_json,
    print_page,
)
from discreet.cli.shell import already_written
from discreet.pages import as_html
from discreet.pages.sheet import HOW_TO_GET_PICTURES
from discreet.readers.registry import whole_guarantee


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
