"""Encoding records one by one, so that no record's rows depend on another record."""

from collections.abc import Callable, Iterable

import torch

from discreet.errors import InvalidInput
from discreet.memory.progress import progress_bar


def encode_alone(
    encoder: Callable[[torch.Tensor], torch.Tensor],
    records: Iterable[torch.Tensor],
    *,
    progress: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what an encoder makes of records, each as a batch of one, and the record of each row.

    In a batch of several, the last bits of one record's rows may depend on how many others there
    are: then removing a person would move other people's rows, and no promise holds to the bit.
    The encoder's result for a record must be the same each time: switch dropout off, and build on
    one machine.

    Args:
        encoder: takes a batch of one, (1, ...), and returns (1, D), or (1, rows, D).
        records: one tensor each, without a batch axis.
        progress: whether to show a progress bar.

    Returns:
        Rows (n, D) and groups (n,), for `from_multihead`; leave the groups out if each record is
        one row.
    """
    rows, groups = [], []
    with torch.no_grad(), progress_bar("encoding records", rows=None, show=progress) as step:
        for index, record in enumerate(records):
            made = encoder(record[None])[0]
            rows.append(made if made.dim() == 2 else made[None])
            groups.append(torch.full((len(rows[-1]),), index))
            step(1)
    if not rows:
        raise InvalidInput("Expected at least one record; give from_multihead an array of no rows.")
    return torch.cat(rows), torch.cat(groups)
