"""A progress bar with the time left, on the trusted builder's own terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Advance = Callable[[int], None]


def unseen(_: int) -> None:
    """Show nothing."""


@contextmanager
def progress_bar(text: str, *, rows: int | None, show: bool) -> Iterator[Advance]:
    """Yield what is to be told how many rows more have been read.

    Args:
        text: what is being done.
        rows: how many there are, if that is known.
        show: whether to show anything.
    """
    with passes_bar(1, rows=rows, show=show, text=text) as begin:
        yield begin(1)


@contextmanager
def passes_bar(
    passes: int, *, rows: int | None, show: bool, text: str = "adding up rows"
) -> Iterator[Callable[[int], Advance]]:
    """Yield what is told that a pass begins, from 1 on, and returns what to tell of its rows.

    On standard error, so that results can be piped. It shows no number of rows, just a share of
    them.

    Args:
        passes: how many there will be.
        rows: of each pass, if that is known.
        show: whether to show anything.
        text: what is being done, where there is one pass.
    """
    if not show:
        yield lambda _: unseen
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bars:
        task = bars.add_task(text, total=None if rows is None else passes * max(rows, 1))

        def begin(number: int) -> Advance:
            if passes > 1:
                bars.update(task, description=f"pass {number} of {passes}")
            return lambda count: bars.advance(task, count)

        yield begin
