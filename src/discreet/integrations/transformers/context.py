"""`privatize` and its kin: an encoder-decoder of transformers with a private context."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack

import torch
from transformers import PreTrainedModel

from discreet import _validate
from discreet._typing import Array
from discreet.errors import InvalidInput
from discreet.integrations.transformers.places import (
    Place,
    check_fresh,
    hidden_states,
    install,
    places_of,
    private_context,
    private_layers,
)
from discreet.ledger import Account, Ledger
from discreet.ledger.ledger import account_of
from discreet.nn.bounds import Bounds, watched_bounds
from discreet.nn.building import Context, Encoded, PrivateOptions, each_alone
from discreet.nn.model import build_places, warn_of_noise, watched_stderr
from discreet.noise import Entropy
from discreet.readers.attention import bundle

_OF_ROWS = (
    "one row of the context: what the encoder made of one token. The encoder's self-attention "
    "mixes the tokens of a passage, so the promise does not reach a token of the raw input"
)
_OF_RECORDS = (
    "one record of the context, all of its rows. It reaches the raw input if each record was "
    "encoded alone, as `encode_passages` does"
)


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

    Returns:
        The rows of all passages, and the passage of each: PRIVATE.

    Raises:
        InvalidInput: a batch is none, or its padding is not known.
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


def privatize(
    model: PreTrainedModel,
    context: Encoded | Array,
    *,
    epsilon: float,
    delta: float,
    groups: Array = None,
    attention_mask: Array = None,
    bounds: Mapping[str, Bounds] | None = None,
    largest_logit: float | None = None,
    layers: Sequence[int] | None = None,
    entropy: Entropy | None = None,
    progress: bool = False,
    ledger: Ledger | None = None,
    dataset: str | None = None,
    analyst: str | None = None,
    account: Account | None = None,
    **options: Unpack[PrivateOptions],
) -> PreTrainedModel:
    """Put a private context in place of what a model's cross-attention attends to; in place.

    (epsilon, delta)-differentially private for one passage (`Encoded`), one record (`groups`) or
    one row; all layers and heads together, on one card (`model.private_context.card`). `generate`
    and calls then need no encoder input; what the model goes on from is `decoder_input_ids`.

    The promise is about rows of the encoder's output. An encoder mixes the tokens of what it
    encodes together: only records that were encoded alone (`encode_passages`) are protected as raw
    input.

    Warns with `MostlyNoiseWarning` if outputs of some layers are predicted to be mostly noise; the
    card has the prediction of each, and `layer_stderr` what a call of the model has.

    Args:
        model: T5, BART, Whisper, Moonshine, Mllama and their kin.
        context: from `encode_passages`; or rows of an encoder's output, shape (n, D), or a batch
            (records, n, D).
        epsilon: above 0.
        delta: above 0.
        groups: the record of each row, in the shape of the context but for D; by default the
            passage, or the row itself.
        attention_mask: 0 for rows of the context that are padding, in the same shape: dropped.
        bounds: from `calibrate`; None for bounds that follow from the weights.
        largest_logit: clips keys and queries so that no logit is larger; the noise grows with e to
            this power.
        layers: which cross-attention layers, counted from 0; None for all. Others still attend to
            the encoder's output that a call gives them.
        entropy: where the noise comes from; by default the operating system.
        progress: whether to show a progress bar.
        ledger: where the release is counted, if anywhere: a `discreet.ledger.Ledger`.
        dataset: the name that the rows have there.
        analyst: who asks, if that is to be known.
        account: the three in one, from `Ledger.account`.
        **options: `neighbours`, `rows_hint`, `kernel`, `eps_s`, `features`, `group_rows`,
            `stated`: as for `discreet.build`.

    Returns:
        The same model.

    Raises:
        BudgetExceeded: the ledger's limit leaves no room; nothing was released, and the model is
            what it was.
        InvalidInput: model, context and bounds do not fit each other, or the model has a private
            context already.
    """
    _validate.instance("model", model, PreTrainedModel)
    check_fresh(model)
    rows = _context(context, groups, attention_mask)
    memories = build_places(
        _chosen(places_of(model), layers),
        rows,
        bounds=bounds,
        largest_logit=largest_logit,
        notes={"unit": _OF_ROWS if rows.groups is None else _OF_RECORDS},
        epsilon=epsilon,
        delta=delta,
        account=account_of(ledger, dataset, analyst, account),
        entropy=entropy,
        progress=progress,
        **options,
    )
    install(model, memories)
    warn_of_noise([memories], paid=True)
    return model


def release(model: PreTrainedModel, path: str | os.PathLike[str]) -> None:
    """Write the private context of a model to one file; the model's own weights are not in it.

    Args:
        model: with a private context.
        path: of the file.
    """
    private_context(model).save(path)


def attach(model: PreTrainedModel, path: str | os.PathLike[str]) -> PreTrainedModel:
    """Put the private context in a file that `release` wrote on a fresh model; in place.

    Warns with `MostlyNoiseWarning` if outputs of some layers are predicted to be mostly noise.

    Args:
        model: with the weights that the release was made with.
        path: of the file.

    Returns:
        The same model.

    Raises:
        CorruptRelease: the file is none, was cut short or altered.
        InvalidInput: the release is for another model.
    """
    _validate.instance("model", model, PreTrainedModel)
    memories = bundle.Memories.load(path)
    install(model, memories)
    warn_of_noise([memories])
    return model


def layer_stderr(
    model: PreTrainedModel,
    *inputs: Any,  # noqa: ANN401 (the model's own)
    **named: Any,  # noqa: ANN401
) -> dict[str, torch.Tensor]:
    """Return the standard errors of the outputs of private layers, in one call of the model.

    Of each cross-attention module by itself, given what it is asked in this call, against exact
    attention over the same rows: noise and kernel of all of its heads together; 1.96 of them hold
    95% of the time, but for what bounds clip. What the rest of the model makes of such errors is
    not in them. Post-processing, like an answer.

    Args:
        model: with a private context.
        *inputs: what the model is called with.
        **named: likewise, by name: `decoder_input_ids`.

    Returns:
        Shape (batch, positions, width), by the layer's name.

    Raises:
        InvalidInput: the model has no private context.
    """
    _validate.instance("model", model, PreTrainedModel)
    return watched_stderr(private_layers(model), lambda: model(*inputs, **named))


def calibrate(
    model: PreTrainedModel,
    public_inputs: Iterable[Mapping[str, torch.Tensor]],
    *,
    quantile: float = 0.99,
) -> dict[str, Bounds]:
    """Return bounds of all cross-attention layers from public inputs, for `privatize`.

    Never give it private inputs: bounds are released as they are. Private rows that exceed them are
    clipped.

    Args:
        model: as for `privatize`, before it.
        public_inputs: what the model is called with, as a mapping or several: encoder and decoder
            inputs.
        quantile: bounds are this quantile of the lengths that occur.

    Returns:
        Bounds of each layer, by its name.

    Raises:
        InvalidInput: public inputs do not reach the model's cross-attention.
    """
    layers = {place.name: (place.module, place.heads()) for place in places_of(model)}
    return watched_bounds(model, layers, public_inputs, look=_inputs, quantile=quantile)


def _inputs(inputs: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return hidden states and context, under whichever name a model passes them on."""
    names = ("key_value_states", "cross_attention_states", "encoder_hidden_states", "key")
    context = next((named[name] for name in names if named.get(name) is not None), None)
    rows = inputs[1] if context is None and len(inputs) > 1 else context
    return hidden_states(inputs, named), rows


def _context(context: Encoded | Array, groups: Array, mask: Array) -> Context:
    if isinstance(context, Encoded) and mask is not None:
        raise InvalidInput("Expected no attention_mask: passages have no padding.")
    if hasattr(context, "last_hidden_state"):
        context = context.last_hidden_state
    return Context.of(context, groups, mask=mask)


def _chosen(places: list[Place], layers: Sequence[int] | None) -> list[Place]:
    if layers is None:
        return places
    wanted = [
        _validate.whole("layers", each, at_least=0, at_most=len(places) - 1) for each in layers
    ]
    return [place for index, place in enumerate(places) if index in wanted]


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
