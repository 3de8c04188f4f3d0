"""Encoding records one by one, so that no record's rows depend on another record."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch

from discreet.errors import InvalidInput
from discreet.memory.progress import progress_bar


@dataclass(frozen=True, eq=False, repr=False)
class Encoded:
    """Records that were encoded each alone: a context, with the record of each row. PRIVATE.

    Attributes:
        rows: what an encoder made of all of them, shape (n, D), without padding.
        groups: the record of each row, shape (n,).
    """

    rows: torch.Tensor
    groups: torch.Tensor

    def __repr__(self) -> str:
        return "<Encoded: private rows>"

    @classmethod
    def of(cls, made: Iterable[torch.Tensor | None], *, progress: bool = False) -> "Encoded | None":
        """Return the rows of one record after the other; None if there are none at all.

        Args:
            made: rows (k, D), or one row (D,), of each record; None for a record of no rows.
            progress: whether to show a progress bar.
        """
        rows, groups = [], []
        with torch.no_grad(), progress_bar("encoding records", rows=None, show=progress) as step:
            for index, each in enumerate(made):
                step(1)
                if each is None:
                    continue
                rows.append(each if each.dim() == 2 else each[None])
                groups.append(torch.full((len(rows[-1]),), index))
        return cls(torch.cat(rows), torch.cat(groups)) if rows else None


def encode_alone(
    encoder: Callable[[torch.Tensor], torch.Tensor],
    records: Iterable[torch.Tensor],
    *,
    progress: bool = False,
) -> Encoded:
    """Return what an encoder makes of records, each as a batch of one: a context for a module.

    In a batch of several, the last bits of one record's rows may depend on how many others there
    are: then removing a person would move other people's rows, and no promise holds to the bit.
    The encoder's result for a record must be the same each time: switch dropout off, and build on
    one machine.

    Args:
        encoder: takes a batch of one, (1, ...), and returns (1, D), or (1, rows, D).
        records: one tensor each, without a batch axis.
        progress: whether to show a progress bar.
    """
    found = Encoded.of((encoder(record[None])[0] for record in records), progress=progress)
    if found is None:
        raise InvalidInput("Expected at least one record; give from_multihead an array of no rows.")
    return found
