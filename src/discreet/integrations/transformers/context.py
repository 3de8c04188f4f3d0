"""What a model is to attend to: the rows that its encoder makes of passages, each passage alone."""

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from transformers import PreTrainedModel

from discreet.errors import InvalidInput
from discreet.nn.alone import Encoded, each_alone


def encode_passages(
    model: PreTrainedModel, batches: Iterable[Any], *, progress: bool = False
) -> Encoded:
    """Return what the model's encoder makes of passages, each of them encoded alone.

    So that one passage is one private record: no row depends on another passage, not even in its
    last bit, as it would in a batch. (Fusion-in-Decoder encodes like this, too.) The encoder's
    result for a passage must be the same each time: it runs as in evaluation, without dropout and
    not compiled, whatever mode it is in, and one machine builds.

    Args:
        model: an encoder-decoder of transformers.
        batches: mappings as a tokenizer or processor returns them, with a batch axis (`input_ids`
            and `attention_mask`, `input_values`, `input_features`); or lists of token numbers.
            Padding is dropped where an `attention_mask` says so; a batch of several needs one,
            unless it has no padding.
        progress: whether to show a progress bar.
    """
    encoder = model.get_encoder()
    device = next(model.parameters()).device

    def encoded(passage: dict[str, torch.Tensor]) -> torch.Tensor | None:
        if any(each.numel() == 0 for each in passage.values()):
            return None  # nothing but padding: a record of no rows
        made = encoder(**{name: each.to(device) for name, each in passage.items()})[0][0]
        rows: torch.Tensor = made.float().cpu()
        return rows

    passages = _alone(batches, model.config.pad_token_id)
    found = each_alone(encoded, passages, encoder=encoder, progress=progress)
    if found is None:  # how many passages there are is private: none is a context, too
        width = int(model.config.hidden_size)
        return Encoded(torch.zeros((0, width)), torch.zeros((0,), dtype=torch.long))
    return found


def _alone(batches: Iterable[Any], padding: int | None) -> Iterable[dict[str, torch.Tensor]]:
    """Yield the inputs of one passage after the other, as batches of one."""
    if isinstance(batches, (Mapping, torch.Tensor)) or hasattr(batches, "items"):
        batches = [batches]
    for batch in batches:
        if isinstance(batch, Mapping) or hasattr(batch, "items"):
            made = {name: _tensor(each) for name, each in batch.items()}
            yield from _split(made, padding)
        else:
            ids = _tensor(batch)
            yield from _split({"input_ids": ids if ids.dim() == 2 else ids[None]}, padding)


def _tensor(numbers: Any) -> torch.Tensor:  # noqa: ANN401 (whatever somebody gives)
    try:
        made = torch.as_tensor(numbers)
    except (RuntimeError, TypeError, ValueError):  # whose message may quote what was given
        made = torch.empty(())
    if made.dim() == 0:
        raise InvalidInput(
            "Expected batches to be mappings of tensors, or lists of token numbers: what a "
            "tokenizer or processor returns, not texts."
        ) from None
    return made


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
