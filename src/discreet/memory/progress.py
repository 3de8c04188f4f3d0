"""A progress bar with the time left, on the trusted builder's own terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Advance = Callable[[int], None]


def unseen(_: int) -> None:
    """Show nothing."""


@contextmanager
def progress_bar(text: str, *, rows: int | None, show: bool) -> Iterator[Advance]:
    """Yield what is to be told how many rows more have been read.

    On standard error, so that results can be piped. It shows no number of rows, just a share of
    them.

    Args:
        text: what is being done.
        rows: how many there are, if that is known.
        show: whether to show anything.
    """
    if not show:
        yield unseen
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bars:
        task = bars.add_task(text, total=rows)
        yield lambda count: bars.advance(task, count)
