"""Tables of plain text: the same in a file and on a terminal of any width, and never cut."""

from collections.abc import Sequence


def aligned(rows: Sequence[Sequence[str]], *, gap: int, right: bool) -> list[str]:
    """Return a line for each row, with cells in columns.

    Args:
        rows: as many cells each.
        gap: spaces between columns.
        right: whether cells end below each other, as numbers do, or begin there.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    side = ">" if right else "<"
    return [
        (" " * gap)
        .join(f"{cell:{side}{width}}" for cell, width in zip(row, widths, strict=True))
        .rstrip()
        for row in rows
    ]
