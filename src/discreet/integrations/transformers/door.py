"""`privatize` and its kin: a model of transformers with a private context."""

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Unpack

import torch
from transformers import PreTrainedModel

from discreet import _validate
from discreet._typing import Array
from discreet.errors import InvalidInput, MostlyNoiseWarning
from discreet.integrations.transformers.places import Place, places_of
from discreet.integrations.transformers.serving import check_fresh, install, private_layers
from discreet.nn.alone import Encoded
from discreet.nn.bounds import Bounds, weight_bounds
from discreet.nn.building import Context, Layer, PrivateOptions
from discreet.nn.calibration import watched_bounds
from discreet.nn.model import build_places, layer_at, warn_of_noise, watched_stderr
from discreet.noise import Entropy
from discreet.readers.attention import bundle as several

_OF_ROWS = (
    "one row of the context: what the encoder made of one token. The encoder's self-attention "
    "mixes the tokens of a passage, so the promise does not reach a token of the raw input"
)
_OF_RECORDS = (
    "one record of the context, all of its rows. It reaches the raw input if each record was "
    "encoded alone, as `encode_passages` does"
)


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
        **options: `neighbours`, `rows_hint`, `kernel`, `eps_s`, `features`, `group_rows`: as for
            `discreet.build`.
    """
    _validate.instance("model", model, PreTrainedModel)
    check_fresh(model)
    rows = _context(context, groups, attention_mask)
    chosen = _chosen(places_of(model), layers)
    built = {place.name: _layer(place, bounds, largest_logit) for place in chosen}
    memories = build_places(
        built,
        rows,
        epsilon=epsilon,
        delta=delta,
        notes={"unit": _OF_ROWS if rows.groups is None else _OF_RECORDS},
        entropy=entropy,
        progress=progress,
        **options,
    )
    install(model, memories)
    with suppress(MostlyNoiseWarning):  # an error to some: what is paid for is not thrown away
        warn_of_noise([memories])
    return model


def release(model: PreTrainedModel, path: str | os.PathLike[str]) -> None:
    """Write the private context of a model to one file; the model's own weights are not in it."""
    memories = getattr(model, "private_context", None)
    if memories is None:
        raise InvalidInput("Expected a model that `privatize` or `attach` gave a private context.")
    memories.save(path)


def attach(model: PreTrainedModel, path: str | os.PathLike[str]) -> PreTrainedModel:
    """Put the private context in a file that `release` wrote on a fresh model; in place.

    Warns with `MostlyNoiseWarning` if outputs of some layers are predicted to be mostly noise.
    """
    _validate.instance("model", model, PreTrainedModel)
    memories = several.Memories.load(path)
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
    """
    layers = {place.name: (place.module, place.heads()) for place in places_of(model)}
    return watched_bounds(model, layers, public_inputs, look=_inputs, quantile=quantile)


def _inputs(inputs: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return hidden states and context, under whichever name a model passes them on."""
    hidden = inputs[0] if inputs else named.get("hidden_states", named.get("query"))
    names = ("key_value_states", "cross_attention_states", "encoder_hidden_states", "key")
    context = next((named[name] for name in names if named.get(name) is not None), None)
    return hidden, inputs[1] if context is None and len(inputs) > 1 else context


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


def _layer(place: Place, bounds: Mapping[str, Bounds] | None, largest_logit: float | None) -> Layer:
    heads = place.heads()

    def from_weights() -> Bounds:
        if place.query_norm is None and heads.query.gain is None:
            raise InvalidInput(f"Expected bounds: nothing bounds the queries of {place.name}.")
        if place.context_norm is None:
            raise InvalidInput(
                f"Expected bounds: no norm layer bounds the context of {place.name}. Use "
                "`calibrate`."
            )
        return weight_bounds(heads, queries=place.query_norm, context=place.context_norm)

    return layer_at(
        place.name, heads, given=bounds, from_weights=from_weights, largest_logit=largest_logit
    )
