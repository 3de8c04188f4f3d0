"""`privatize` and its kin: a diffusion model with a private context."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
import torch
from diffusers import ModelMixin
from torch import nn

from discreet import _validate
from discreet._typing import Array
from discreet._validate import warn
from discreet.errors import InvalidInput
from discreet.integrations.diffusers.attention import Kind, PrivateProcessor, places_of
from discreet.ledger import Account, Ledger
from discreet.ledger.ledger import account_of
from discreet.nn.bounds import Bounds, watched_bounds
from discreet.nn.building import Context, Encoded, PrivateOptions, each_alone
from discreet.nn.model import answering, build_places, names_of, warn_of_noise, watched_stderr
from discreet.noise import Entropy
from discreet.readers.attention import bundle
from discreet.readers.attention.bundle import Memories

# Where a release says that batches are pairs.
_GUIDED = "guided"

_OF_ROWS = (
    "one row of the context: what an encoder made of one token. A text encoder's self-attention "
    "mixes the tokens of a text, so the promise does not reach a token of the raw input"
)
_OF_RECORDS = (
    "one record of the context (one image, one text), all of its rows. It reaches the raw input if "
    "each record was encoded alone, as `encode_contexts` does with what the model itself adds"
)


def encode_contexts(
    model: ModelMixin,
    embeddings: Iterable[torch.Tensor],
    *,
    on: str = Kind.TEXT,
    progress: bool = False,
) -> Encoded:
    """Return what the model itself makes of embeddings before it attends to them, each alone.

    So that one text or one image is one private record: no row depends on another one.

    Args:
        model: as for `privatize`.
        embeddings: one tensor for each text, shape (tokens, D), or for each image, shape (D,) or
            (tokens, D), from an encoder that saw it alone.
        on: "text", or "image" for the images of an IP-Adapter.
        progress: whether to show a progress bar.

    Returns:
        The rows of all texts or images, and which of them each belongs to: PRIVATE.

    Raises:
        InvalidInput: there is no embedding, or one is no tensor.
    """
    kind = _validate.choice("on", on, Kind)
    projection = _projection(model, kind)

    def encoded(each: torch.Tensor) -> torch.Tensor:
        if not isinstance(each, torch.Tensor):
            raise InvalidInput("Expected embeddings to be tensors, as an encoder makes them.")
        return _projected(projection, each, kind).float().cpu()

    found = each_alone(encoded, embeddings, encoder=projection, progress=progress)
    if found is None:
        raise InvalidInput("Expected at least one embedding; give privatize an array of no rows.")
    return found


def privatize(
    model: ModelMixin,
    context: Encoded | Array,
    *,
    epsilon: float,
    delta: float,
    on: str = Kind.TEXT,
    groups: Array = None,
    context_norm: nn.Module | float | None = None,
    bounds: Mapping[str, Bounds] | None = None,
    largest_logit: float | None = None,
    guided: bool = False,
    entropy: Entropy | None = None,
    progress: bool = False,
    ledger: Ledger | None = None,
    dataset: str | None = None,
    analyst: str | None = None,
    account: Account | None = None,
    **options: Unpack[PrivateOptions],
) -> ModelMixin:
    """Put a private context in place of what a model's cross-attention attends to; in place.

    (epsilon, delta)-differentially private for one text or image (`Encoded`), one record
    (`groups`) or one row; all layers and heads together, on one card
    (`model.private_contexts["text"].card`). A model with an IP-Adapter has two contexts; call this
    once for each, and `discreet.combine` says what both cost somebody who is in both. The promise
    is about rows that the model attends to: of raw texts and images it is true where each was
    encoded alone. Warns with `MostlyNoiseWarning` if outputs of some layers are predicted to be
    mostly noise; the card has the prediction of each, `layer_stderr` what a call of the model has.

    Args:
        model: a `UNet2DConditionModel`, a PixArt transformer or their kin. Joint attention (SD3,
            Flux) is refused: its context changes with every step.
        context: from `encode_contexts`; or rows as the model's attention gets them, shape (n, D).
        epsilon: above 0.
        delta: above 0.
        on: "text", or "image" for the images of an IP-Adapter.
        groups: the record of each row, shape (n,).
        context_norm: the norm layer that rows of the context come from (a text encoder's last), or
            a bound on their length; None for √D, which a norm layer without weights gives.
        bounds: from `calibrate`; None for bounds that follow from the weights.
        largest_logit: clips keys and queries so that no logit is larger.
        guided: whether batches are pairs for classifier-free guidance: the first half attends to
            the public (negative) context of the call, the second to the release.
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
    _validate.instance("model", model, ModelMixin)
    kind = _validate.choice("on", on, Kind)
    _check_fresh(model, kind)
    rows = Context.of(context, groups)
    if kind is Kind.IMAGE and context_norm is None:
        context_norm = _last_norm(_projection(model, kind))
    memories = build_places(
        places_of(model, kind, context_norm),
        rows,
        bounds=bounds,
        largest_logit=largest_logit,
        notes={
            "context": f"the {kind} that the model attends to",
            "unit": _OF_ROWS if rows.groups is None else _OF_RECORDS,
        },
        epsilon=epsilon,
        delta=delta,
        account=account_of(ledger, dataset, analyst, account),
        entropy=entropy,
        progress=progress,
        **options,
    )
    # In the file, too: a model that serves pairs serves them wherever it is put.
    made = replace(memories, arrays={**memories.arrays, _GUIDED: np.array(guided)})
    _install(model, made, kind)
    warn_of_noise([made], paid=True)
    return model


def release(model: ModelMixin, path: str | os.PathLike[str], *, on: str = Kind.TEXT) -> None:
    """Write one of a model's private contexts to a file; the model's own weights are not in it.

    Args:
        model: with a private context.
        path: of the file.
        on: "text", or "image": which context.
    """
    _context_on(model, _validate.choice("on", on, Kind)).save(path)


def attach(model: ModelMixin, path: str | os.PathLike[str], *, on: str = Kind.TEXT) -> ModelMixin:
    """Put the private context in a file that `release` wrote on a fresh model; in place.

    Warns with `MostlyNoiseWarning` if outputs of some layers are predicted to be mostly noise.

    Args:
        model: with the weights that the release was made with.
        path: of the file.
        on: "text", or "image": what it was released for.

    Returns:
        The same model.

    Raises:
        CorruptRelease: the file is none, was cut short or altered.
        InvalidInput: the release is for another model, or this one has such a context already.
    """
    _validate.instance("model", model, ModelMixin)
    kind = _validate.choice("on", on, Kind)
    _check_fresh(model, kind)
    memories = bundle.Memories.load(path)
    _install(model, memories, kind)
    warn_of_noise([memories])
    return model


def layer_stderr(
    model: ModelMixin,
    *inputs: Any,  # noqa: ANN401 (the model's own)
    on: str = Kind.TEXT,
    **named: Any,  # noqa: ANN401
) -> dict[str, torch.Tensor]:
    """Return the standard errors of what private layers answer, in one call of the model.

    Of each cross-attention module by itself, given what it is asked in this call, against exact
    attention over the same rows: noise and kernel of all of its heads together; 1.96 of them hold
    95% of the time, but for what bounds clip. What the rest of the model makes of such errors is
    not in them. Post-processing, like an answer.

    Args:
        model: with a private context.
        *inputs: what the model is called with.
        on: "text", or "image": of which context.
        **named: what the model is called with by name.

    Returns:
        Shape (private items of the batch, positions, width), by the layer's name.

    Raises:
        InvalidInput: the model has no such private context.
    """
    _validate.instance("model", model, ModelMixin)
    kind = _validate.choice("on", on, Kind)
    called: Any = model
    layers = {
        name: called.get_submodule(name).get_processor().behind(called.get_submodule(name), kind)
        for name in names_of(_context_on(model, kind))
    }
    return watched_stderr(layers, lambda: called(*inputs, **named))


def calibrate(
    model: ModelMixin,
    public_inputs: Iterable[Mapping[str, Any]],
    *,
    on: str = Kind.TEXT,
    quantile: float = 0.99,
) -> dict[str, Bounds]:
    """Return bounds of all cross-attention layers from public inputs, for `privatize`.

    Never give it private inputs: bounds are released as they are.

    Args:
        model: as for `privatize`, before it.
        public_inputs: what the model is called with, as a mapping or several.
        on: "text", or "image".
        quantile: bounds are this quantile of the lengths that occur.

    Returns:
        Bounds of each layer, by its name.

    Raises:
        InvalidInput: public inputs do not reach the model's cross-attention.
    """
    kind = _validate.choice("on", on, Kind)
    layers = {place.name: (place.module, place.heads()) for place in places_of(model, kind)}

    def look(inputs: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, Any]:
        hidden = inputs[0] if inputs else named["hidden_states"]
        states = inputs[1] if len(inputs) > 1 else named.get("encoder_hidden_states")
        text, images = states if isinstance(states, tuple) else (states, None)
        return hidden, text if kind is Kind.TEXT else images and images[0]

    called: Any = model
    return watched_bounds(called, layers, public_inputs, look=look, quantile=quantile)


def _context_on(model: ModelMixin, kind: Kind) -> Memories:
    memories: Memories | None = getattr(model, "private_contexts", {}).get(kind)
    if memories is None:
        raise InvalidInput(f"Expected a model with a private {kind} context.")
    return memories


def _check_fresh(model: Any, kind: Kind) -> None:  # noqa: ANN401
    if kind in getattr(model, "private_contexts", {}):
        raise InvalidInput(
            f"Expected a model without a private {kind} context: the card could not speak for both."
        )


def _install(model: Any, memories: Memories, kind: Kind) -> None:  # noqa: ANN401
    guided = bool(memories.arrays.get(_GUIDED, False))
    places = places_of(model, kind)
    found = answering(model, memories, places)
    if len(found) != len(places):
        raise InvalidInput("Expected a model with the layers of the release, and no others.")
    for place, private in found:
        module: Any = place.module
        processor = PrivateProcessor(module.get_processor(), guided=guided)
        processor.put(kind, private)
        module.set_processor(processor)
    known = dict(getattr(model, "private_contexts", {}))
    model.private_contexts = {**known, kind.value: memories}
    if not known:
        model.register_forward_pre_hook(_before_model, with_kwargs=True)


def _before_model(
    model: Any,  # noqa: ANN401
    inputs: tuple[Any, ...],
    named: dict[str, Any],
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Give a model nothing in place of contexts that it has already."""
    sample: Any = inputs[0] if inputs else named.get("sample", named.get("hidden_states"))
    kinds = model.private_contexts
    given = inputs[2] if len(inputs) > 2 else named.get("encoder_hidden_states")
    guided = any(bool(each.arrays.get(_GUIDED, False)) for each in kinds.values())
    if given is not None and Kind.TEXT in kinds and not guided and len(given) == len(sample):
        warn(
            "The context is not used: this model attends to its release. A context for the first "
            "items of a batch is public; for pairs of guidance, privatize(..., guided=True).",
            UserWarning,
        )
    if given is None and Kind.TEXT in kinds and len(inputs) <= 2:
        projection = _projection(model, Kind.TEXT)
        width = None if projection is None else _first_width(projection)
        zeros = None if width is None else sample.new_zeros((len(sample), 1, width))
        named["encoder_hidden_states"] = zeros
    if Kind.IMAGE in kinds:
        added = dict(named.get("added_cond_kwargs") or {})
        if added.get("image_embeds") is None:
            width = _first_width(_projection(model, Kind.IMAGE))
            added["image_embeds"] = [sample.new_zeros((len(sample), 1, width))]
            named["added_cond_kwargs"] = added
    return inputs, named


def _projection(model: Any, kind: Kind) -> nn.Module | None:  # noqa: ANN401
    """Return what a model itself does to a context before its layers see it."""
    if kind is Kind.IMAGE:
        layers = getattr(getattr(model, "encoder_hid_proj", None), "image_projection_layers", None)
        if layers is None or len(layers) != 1:
            raise InvalidInput("Expected a model with one IP-Adapter, which attends to images.")
        return layers[0]  # type: ignore[no-any-return]
    if getattr(model, "caption_projection", None) is not None:
        return model.caption_projection  # type: ignore[no-any-return]
    if getattr(model.config, "encoder_hid_dim_type", None) == "text_proj":
        return model.encoder_hid_proj  # type: ignore[no-any-return]
    return getattr(model, "text_encoder_hid_proj", None)


def _projected(projection: nn.Module | None, each: torch.Tensor, kind: Kind) -> torch.Tensor:
    """Return the rows that one text or image becomes."""
    rows = each if each.dim() > 1 or kind is Kind.IMAGE else each[None]
    if projection is None:
        return rows
    weight = next(projection.parameters())
    made: torch.Tensor = projection(rows[None].to(weight))
    return made.reshape(-1, made.shape[-1])


def _first_width(projection: Any) -> int:  # noqa: ANN401
    [first, *_] = [each for each in projection.modules() if isinstance(each, nn.Linear)]
    return int(first.in_features)


def _last_norm(projection: nn.Module | None) -> nn.Module | None:
    norms = [
        each for each in (projection or nn.Identity()).modules() if isinstance(each, nn.LayerNorm)
    ]
    return norms[-1] if norms else None
