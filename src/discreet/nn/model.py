"""All layers of one model that share a private context: one release, one card, one file.

`discreet.integrations` says where a model attends to its context (a `Place`), and what it does
there in place of attending.
"""

import abc
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from torch import nn

from discreet._typing import Floats
from discreet._validate import warn
from discreet.errors import CorruptRelease, InvalidInput, MostlyNoiseWarning
from discreet.nn.bounds import WEIGHTS, Bounds, weight_bounds
from discreet.nn.building import Context, Layer, build_layers
from discreet.nn.heads import Heads
from discreet.nn.reading import PrivateHeads
from discreet.readers.attention.bundle import PLACES, SHAPE, Memories, mostly_noise
from discreet.readers.attention.memory import Memory

_MAP, _CENTRE, _SIGNATURE = "query_map", "value_centre", "signature"

# Weights that differ by more than this, relatively, are others; half precision differs by less.
_OTHER = 0.05


@dataclass(frozen=True, eq=False, kw_only=True)
class Place(abc.ABC):
    """One cross-attention module of a model.

    Attributes:
        name: under which the model knows it.
        module: itself.
        query_norm: the norm layer whose output queries are made of, if there is one.
        context_norm: the norm layer whose output keys and values are made of, or a bound on the
            length of these rows; None if nothing bounds them.
    """

    name: str
    module: nn.Module
    query_norm: nn.Module | None
    context_norm: nn.Module | float | None

    @abc.abstractmethod
    def heads(self) -> Heads:
        """Return the module's public weights, head by head."""

    def layer(self, given: Mapping[str, Bounds] | None, largest_logit: float | None) -> Layer:
        """Return the layer with its bounds.

        Args:
            given: bounds by name, of `calibrate`; None for those that follow from the weights.
            largest_logit: no bound allows more than this; None for no limit.
        """
        heads = self.heads()
        if given is None:
            bounds = self._weight_bounds(heads)
        elif self.name in given:
            bounds = given[self.name]
        else:
            raise InvalidInput(f"Expected bounds for {self.name}.")
        return Layer(heads, bounds.capped(heads.scaling, largest_logit))

    def _weight_bounds(self, heads: Heads) -> Bounds:
        asks = heads.query.gain if self.query_norm is None else self.query_norm
        for what, bounded_by in (("queries", asks), ("context", self.context_norm)):
            if bounded_by is None:
                raise InvalidInput(
                    f"Expected bounds: no norm layer bounds the {what} of {self.name}. Use "
                    "`calibrate`."
                )
        return weight_bounds(heads, queries=self.query_norm, context=self.context_norm)


_Place = TypeVar("_Place", bound=Place)


def build_places(
    places: Sequence[Place],
    context: Context,
    *,
    bounds: Mapping[str, Bounds] | None,
    largest_logit: float | None,
    notes: Mapping[str, str],
    **options: Any,  # noqa: ANN401 (those of `build_layers`)
) -> Memories:
    """Return one release for all layers of a model, by the names that the layers have there.

    (epsilon, delta)-differentially private for one row of the context, or one record; all layers
    and heads together.

    Args:
        places: the layers.
        context: the rows that they attend to.
        bounds: by name, of `calibrate`; None for those that follow from the weights.
        largest_logit: no bound allows more than this; None for no limit.
        notes: what the card says besides.
        **options: those of `build_layers`.
    """
    if not places:
        raise InvalidInput("Expected at least one layer with cross-attention.")
    layers = {place.name: place.layer(bounds, largest_logit) for place in places}
    built = build_layers(list(layers.values()), context, **options)
    arrays: dict[str, Floats] = {}
    for name, layer in layers.items():
        arrays |= {f"{name}.{key}": each for key, each in public_arrays(layer).items()}
    sources = sorted({layer.bounds.source for layer in layers.values()})
    said = {
        **notes,
        "bounds": f"{'; '.join(sources)}; what is longer is clipped",
        PLACES: ", ".join(layers),
    }
    return Memories(tuple(memory for part in built for memory in part), said, arrays)


def public_arrays(layer: Layer) -> dict[str, Floats]:
    """Return what a reader needs of one layer besides its memories, and whose layer it is."""
    return {
        _MAP: layer.bounds.query_map,
        _CENTRE: layer.bounds.value_centre,
        SHAPE: np.array([layer.heads.key.heads, layer.heads.repeats]),
        _SIGNATURE: _signature(layer.heads),
    }


def _signature(heads: Heads) -> Floats:
    """Return what the projections of queries and values make of one public vector."""
    made = []
    for maps in (heads.query, heads.value):
        vector = np.cos(1.0 + np.arange(maps.width))
        made.append((maps.weight @ vector + maps.bias).ravel())
    return np.concatenate([*made, heads.scaling])


def check_weights(name: str, arrays: Mapping[str, Floats], heads: Heads) -> None:
    """Raise `InvalidInput` if a release was made with other weights than a layer has.

    Args:
        name: of the layer, for the message.
        arrays: of the release, those of `public_arrays`.
        heads: of the layer.
    """
    made = np.asarray(arrays.get(_SIGNATURE, np.empty(0)))
    own = _signature(heads)
    same = made.shape == own.shape and np.linalg.norm(made - own) <= _OTHER * np.linalg.norm(own)
    if not same:
        raise InvalidInput(
            f"Expected {name} to have the weights that the release was made with: keys and values "
            "are theirs, and other queries do not fit them."
        )


def warn_of_noise(releases: Iterable[Memories], *, paid: bool = False) -> None:
    """Warn with `MostlyNoiseWarning`, once, if outputs of layers are predicted to be mostly noise.

    By what the releases themselves answer: post-processing.

    Args:
        releases: of one model.
        paid: they were built just now. A warning that is an error is then left out: what is paid
            for is not thrown away.
    """
    given = list(releases)
    text = mostly_noise(ratio for each in given for ratio in each.observed_signal_to_error.values())
    if text is None:
        return
    logit = max(memory.kernel.largest_logit for each in given for memory in each)
    loose = any(WEIGHTS in each.notes.get("bounds", "") for each in given)
    helps = "bounds of `calibrate`" if loose else "a smaller largest_logit, which clips"
    with suppress(*([MostlyNoiseWarning] if paid else [])):
        warn(
            f"{text} Built again, this helps: {helps}, since the noise grows with e to the power "
            f"of the largest logit, {logit:.3g} here; fewer heads; more rows; a larger epsilon.",
            MostlyNoiseWarning,
        )


def names_of(memories: Memories) -> list[str]:
    """Return the names of the layers that a release is for."""
    if PLACES not in memories.notes:
        raise InvalidInput("Expected the release of a model, which names the layers it is for.")
    return memories.notes[PLACES].split(", ")


def answering(
    model: nn.Module, memories: Memories, places: Iterable[_Place]
) -> list[tuple[_Place, PrivateHeads]]:
    """Return the layers of a model that a release is for, and what answers in place of each.

    The buffers of these modules are not part of a model's `state_dict`: a model's file stays what
    it was.

    Args:
        model: whose weights must be those that the release was made with.
        memories: the release.
        places: where the model attends to such a context.

    Raises:
        InvalidInput: the release is for another model.
    """
    heads = _heads_of(memories)
    by_name = {place.name: place for place in places}
    missing = [name for name in heads if name not in by_name]
    if missing:
        raise InvalidInput(f"Expected a model with the layers of the release; no {missing[0]}.")
    for name in heads:
        check_weights(name, _arrays_at(memories, name), by_name[name].heads())
    device = next(model.parameters()).device
    return [(by_name[name], private.to(device)) for name, private in heads.items()]


def _heads_of(memories: Memories) -> dict[str, PrivateHeads]:
    """Return what answers for each layer of a release, by its name in the model."""
    found, start = {}, 0
    for name in names_of(memories):
        arrays = _arrays_at(memories, name)
        sizes, turn, centre = (arrays.get(each, np.empty(0)) for each in (SHAPE, _MAP, _CENTRE))
        heads, repeats = sizes.tolist() if sizes.shape == (2,) else (0, 0)
        members = memories.members[start : start + heads]
        if not _fits(members, heads, turn, centre):
            raise CorruptRelease(f"Expected the release of a model; {name} makes no sense.")
        found[name] = PrivateHeads(
            members, query_map=turn, value_centre=centre, repeats=repeats, persistent=False
        )
        start += heads
    return found


def _arrays_at(memories: Memories, name: str) -> dict[str, Floats]:
    """Return the public arrays of one layer of a release."""
    start = f"{name}."
    found = memories.arrays.items()
    return {key.removeprefix(start): each for key, each in found if key.startswith(start)}


def _fits(members: tuple[Memory, ...], heads: int, turn: Floats, centre: Floats) -> bool:
    """Return whether the public arrays of a layer are those of its heads."""
    if not members or len(members) != heads:
        return False
    layout = members[0].released.layout
    shapes = turn.ndim == 3 and turn.shape[:2] == (heads, layout.kernel.dim)
    shapes = shapes and centre.shape == (heads, layout.value_dim)
    return shapes and bool(np.all(np.isfinite(turn)) and np.all(np.isfinite(centre)))


def watched_stderr(
    layers: Mapping[str, tuple[PrivateHeads, torch.Tensor]], call: Callable[[], object]
) -> dict[str, torch.Tensor]:
    """Return the standard errors of the outputs of private layers, in one call of their model.

    Of each layer alone, given what it was asked: nothing is said of what the rest of a model makes
    of them.

    Args:
        layers: the heads, and the weight of the linear layer behind them, by name.
        call: calls the model.

    Returns:
        Shape (batch, positions, width) for each layer that was asked.
    """
    found: dict[str, torch.Tensor] = {}

    def noting(name: str, weight: torch.Tensor) -> Callable[..., None]:
        def note(heads: PrivateHeads, inputs: tuple[torch.Tensor, ...]) -> None:
            found[name] = heads.stderr(inputs[0], weight)

        return note

    with ExitStack() as stack, torch.no_grad(), torch.compiler.set_stance("force_eager"):
        for name, (heads, weight) in layers.items():
            stack.callback(heads.register_forward_pre_hook(noting(name, weight)).remove)
        call()
    return found
