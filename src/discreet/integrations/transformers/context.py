"""What a model is to attend to: the rows that its encoder makes of passages, each passage alone."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import PreTrainedModel

from discreet.errors import InvalidInput
from discreet.memory.progress import progress_bar


@dataclass(frozen=True, eq=False, repr=False)
class Passages:
    """Encoded passages. PRIVATE.

    Attributes:
        rows: what the encoder made of all tokens, shape (n, D), without padding.
        groups: the passage of each row, shape (n,).
    """

    rows: torch.Tensor
    groups: torch.Tensor

    def __repr__(self) -> str:
        return "<Passages: private rows>"


def encode_passages(
    model: PreTrainedModel, batches: Iterable[Any], *, progress: bool = False
) -> Passages:
    """Return what the model's encoder makes of passages, each of them encoded alone.

    So that one passage is one private record: no row depends on another passage, not even in its
    last bit, as it would in a batch. (Fusion-in-Decoder encodes like this, too.) The encoder's
    result for a passage must be the same each time: dropout is off, and one machine builds.

    Args:
        model: an encoder-decoder of transformers.
        batches: mappings as a tokenizer or processor returns them, with a batch axis (`input_ids`
            and `attention_mask`, `input_values`, `input_features`); or lists of token numbers.
            Padding is dropped where an `attention_mask` says so; a batch of several needs one.
        progress: whether to show a progress bar.
    """
    encoder = model.get_encoder()
    device = next(model.parameters()).device
    rows, groups = [], []
    training = encoder.training
    encoder.eval()
    try:
        with torch.no_grad(), progress_bar("encoding passages", rows=None, show=progress) as step:
            for count, passage in enumerate(_alone(batches, model.config.pad_token_id)):
                given = {name: each.to(device) for name, each in passage.items()}
                if any(each.numel() == 0 for each in given.values()):
                    continue  # nothing but padding: a record of no rows
                encoded = encoder(**given)[0][0]
                rows.append(encoded.float())
                groups.append(torch.full((len(encoded),), count, device=device))
                step(1)
    finally:
        encoder.train(training)
    if not rows:
        width = int(model.config.hidden_size)
        return Passages(torch.zeros((0, width)), torch.zeros((0,), dtype=torch.long))
    return Passages(torch.cat(rows), torch.cat(groups))


def _alone(batches: Iterable[Any], padding: int | None) -> Iterable[dict[str, torch.Tensor]]:
    """Yield the inputs of one passage after the other, as batches of one."""
    if isinstance(batches, (Mapping, torch.Tensor)) or hasattr(batches, "items"):
        batches = [batches]
    for batch in batches:
        if isinstance(batch, Mapping) or hasattr(batch, "items"):
            made = {name: torch.as_tensor(each) for name, each in batch.items()}
            yield from _split(made, padding)
        elif isinstance(batch, (Sequence, torch.Tensor)) and not isinstance(batch, str):
            ids = torch.as_tensor(batch)
            yield from _split({"input_ids": ids if ids.dim() == 2 else ids[None]}, padding)
        else:
            raise InvalidInput(
                "Expected batches to be mappings of tensors, or lists of token numbers: what a "
                "tokenizer or processor returns, not texts."
            )


def _split(
    batch: dict[str, torch.Tensor], padding: int | None
) -> Iterable[dict[str, torch.Tensor]]:
    mask = batch.pop("attention_mask", None)
    first = next(iter(batch.values()))
    count = len(first)
    wanted = first.shape if first.dim() == 2 else first.shape[:1]
    if mask is not None and mask.shape[: len(wanted)] != wanted:
        raise InvalidInput("Expected attention_mask to have the shape of the inputs of its batch.")
    if count > 1 and mask is None and not _of_one_length(batch, padding):
        raise InvalidInput(
            "Expected an attention_mask with a batch of several passages: padding depends on the "
            "longest of them. Or give passages one by one."
        )
    for index in range(count):
        passage = {name: each[index : index + 1] for name, each in batch.items()}
        if mask is not None:
            keep = mask[index].bool()
            passage = {
                name: each[:, keep] if each.shape[1:2] == keep.shape else each
                for name, each in passage.items()
            }
        yield passage


def _of_one_length(batch: dict[str, torch.Tensor], padding: int | None) -> bool:
    """Return whether a batch is known to have no padding: or one that depends on no other."""
    if "input_features" in batch:  # which have one length always
        return True
    ids = batch.get("input_ids")
    return ids is not None and padding is not None and not bool(torch.any(ids == padding))
