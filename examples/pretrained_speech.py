"""A speech recogniser that was trained without privacy in mind, with a private recording: it fails.

Moonshine-tiny (27 million weights, six layers of cross-attention, eight heads each) transcribes
recordings that ship with it. Then what it attends to is made private, layer by layer and all at
once, and the words that come out wrong are counted. Look for: logits up to 150, how few frames the
later layers attend to, and that a layer which survives need not have looked at all.

The private unit is one row: one frame of the encoder's output, of which a recording has hundreds.
The encoder mixes frames, so not even that is a promise about a piece of the sound.

This is an experiment, and what it prints is NOT PRIVATE: exact transcripts stand beside private
ones, and noise comes from fixed seeds, so that each run prints the same figures.

It needs the weights: pip install --no-deps moonshine-voice==0.0.73
"""

import argparse
import copy
import re
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from moonshine_weights import RATE, Tokenizer, load, transcribe
from scipy.special import entr, logsumexp, softmax
from threadpoolctl import threadpool_limits
from torch import nn
from transformers import MoonshineForConditionalGeneration

from discreet.errors import InvalidInput, PrivacyLeakWarning
from discreet.integrations.transformers import calibrate, privatize
from discreet.integrations.transformers.places import Place, places_of
from discreet.nn import Bounds
from discreet.nn.bounds import weight_bounds
from discreet.noise import Entropy
from discreet.testing import Seeded, Silent

DELTA, QUANTILE, DRAWS = 1e-5, 0.99, 2
PUBLIC = (0, 2)  # recordings that bounds are calibrated on
PRIVATE = (1, 3)  # other recordings: the first is made private, both are clipped
CAP, LOW_CAP = 10.0, 2.0  # on logits, where one layer is private
ALIKE = 1e-3  # logits this small: every frame weighs the same, as if the layer did not look
CAPS = (None, 40.0, 20.0, 10.0, 5.0, ALIKE)  # where all are
LONGEST = 1.5  # times the tokens of the exact transcript; whatever goes on is a loop


@dataclass(frozen=True, eq=False)
class Recording:
    """A recording, and what the model makes of it."""

    name: str
    sound: torch.Tensor
    tokens: torch.Tensor
    text: str
    frames: torch.Tensor

    @property
    def given(self) -> dict[str, torch.Tensor]:
        """The model's inputs, with the exact transcript as what was said so far."""
        return {"input_values": self.sound, "decoder_input_ids": self.tokens[None, :-1]}


@dataclass(frozen=True, eq=False)
class Experiment:
    """The model, one recording, and bounds from other recordings."""

    model: MoonshineForConditionalGeneration
    tokenizer: Tokenizer
    recording: Recording
    bounds: dict[str, Bounds]

    def errors(
        self,
        layers: Sequence[int] | None,
        *,
        cap: float | None,
        epsilon: float = 8.0,
        sources: Sequence[Entropy] = (Silent(),),
    ) -> float:
        """Return the word error rate with private layers, None for all: the mean over sources.

        NaN if the bounds allow logits that no build accepts.
        """
        rates = []
        for source in sources:
            model = copy.deepcopy(self.model)
            try:
                with warnings.catch_warnings():
                    # Beyond ε = 20 discreet warns that nobody is protected. The page says so.
                    warnings.simplefilter("ignore", PrivacyLeakWarning)
                    privatize(
                        model,
                        self.recording.frames,
                        epsilon=epsilon,
                        delta=DELTA,
                        bounds=self.bounds,
                        largest_logit=cap,
                        layers=layers,
                        entropy=source,
                    )
            except InvalidInput:
                return float("nan")
            # With all layers private there is no need of the sound. Others still attend to it.
            rates.append(self.rate(model, heard=layers is not None))
        return float(np.mean(rates))

    def clipped_errors(self, cap: float | None) -> float:
        """Return the word error rate of the exact model with clipped keys, queries and values."""
        with clipped(places_of(self.model), self.bounds, cap):
            return self.rate(self.model, heard=True)

    def rate(self, model: MoonshineForConditionalGeneration, *, heard: bool) -> float:
        """Return the word error rate of a model, which gets the sound or not."""
        given = {"input_values": self.recording.sound} if heard else {}
        limit = int(LONGEST * len(self.recording.tokens))
        with torch.inference_mode():
            [tokens] = model.generate(**given, do_sample=False, num_beams=1, max_new_tokens=limit)
        return word_error_rate(self.recording.text, self.tokenizer.decode(tokens))


def words(text: str) -> list[str]:
    """Return words in small letters, without punctuation."""
    return re.findall(r"[\w']+", text.lower())


def word_error_rate(truth: str, text: str) -> float:
    """Return how many words must be changed, added or removed, for each word of the truth."""
    wanted, found = words(truth), words(text)
    row = np.arange(len(found) + 1)  # changes from nothing to each beginning of `found`
    for count, word in enumerate(wanted, start=1):
        above, row = row, np.full(len(found) + 1, count)
        for i, other in enumerate(found):
            row[i + 1] = min(above[i] + (word != other), above[i + 1] + 1, row[i] + 1)
    return float(row[-1] / len(wanted))


def listen(
    model: MoonshineForConditionalGeneration, tokenizer: Tokenizer, name: str, waveform: np.ndarray
) -> Recording:
    """Return a recording with its exact transcript."""
    tokens, sound = transcribe(model, waveform), torch.from_numpy(waveform)[None]
    with torch.no_grad():
        [frames] = model.get_encoder()(sound).last_hidden_state
    return Recording(name, sound, tokens, tokenizer.decode(tokens), frames)


def projected(
    model: nn.Module, place: Place, recording: Recording, bounds: Bounds
) -> tuple[np.ndarray, np.ndarray]:
    """Return queries and keys of a layer, shape (heads, n, d), as private heads see them."""
    found = []
    handles = [
        place.projection(index).register_forward_hook(lambda *each: found.append(each[-1][0]))
        for index in (0, 1)
    ]
    with torch.no_grad():
        model(**recording.given, use_cache=False)
    for handle in handles:
        handle.remove()
    heads = len(bounds.key_norm)
    queries, keys = (
        each.double().unflatten(-1, (heads, -1)).transpose(0, 1).numpy() for each in found
    )
    keys = keys - bounds.key_centre[:, None]
    return queries @ bounds.query_map.swapaxes(1, 2), keys @ bounds.key_map.swapaxes(1, 2)


@contextmanager
def clipped(
    places: Sequence[Place], bounds: dict[str, Bounds], cap: float | None
) -> Iterator[None]:
    """Clip queries, keys and values of exact attention for a while, as a private layer does."""
    handles = []
    for place in places:
        within = bounds[place.name].capped(place.heads().scaling, cap)
        # The map, its inverse (both transposed), the centre and the longest length of each.
        queries = (within.query_map, within.key_map.swapaxes(1, 2), 0, within.query_norm)
        keys = (within.key_map, within.query_map.swapaxes(1, 2), within.key_centre, within.key_norm)
        eye = np.eye(within.value_centre.shape[1])[None]
        values = (eye, eye, within.value_centre, within.value_norm)
        handles += [
            place.projection(index).register_forward_hook(clip_hook(*each))
            for index, each in enumerate((queries, keys, values))
        ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def clip_hook(turn: np.ndarray, back: np.ndarray, centre: np.ndarray, longest: np.ndarray):  # noqa: ANN201 (of torch)
    """Return what clips the output of a projection, head by head."""
    turn, back, centre, longest = (
        torch.as_tensor(each, dtype=torch.float32) for each in (turn, back, centre, longest)
    )

    def clip(_module: nn.Module, _inputs: object, output: torch.Tensor) -> torch.Tensor:
        by_head = output.unflatten(-1, (len(longest), -1)) - centre
        turned = (turn @ by_head[..., None])[..., 0]
        length = turned.norm(dim=-1, keepdim=True)
        turned = turned * (longest[:, None] / length.clamp(min=1e-9)).clamp(max=1)
        return ((back @ turned[..., None])[..., 0] + centre).flatten(-2)

    return clip


def shorter(rows: np.ndarray, longest: np.ndarray) -> np.ndarray:
    """Return rows of each head, clipped."""
    length = np.linalg.norm(rows, axis=-1, keepdims=True)
    return rows * np.minimum(longest[:, None, None] / np.maximum(length, 1e-9), 1)


def frames_needed(
    queries: np.ndarray, keys: np.ndarray, bounds: Bounds, scaling: np.ndarray, at_largest: float
) -> float:
    """Return how many frames like these make an answer clear of noise: the median over queries.

    An answer is clear of noise where its denominator is five standard errors. For a query of the
    largest length that takes the weight of `at_largest` rows at the largest logit t, e^t each; the
    noise of a shorter query is e^(t·(1 - ‖q‖²)/2) times smaller. Rows really weigh e^logit.
    """
    asked, rows = shorter(queries, bounds.query_norm), shorter(keys, bounds.key_norm)
    logits = scaling[:, None, None] * asked @ rows.swapaxes(1, 2)
    length = np.linalg.norm(asked, axis=-1) / bounds.query_norm[:, None]
    largest = bounds.largest_logits(scaling)[:, None]
    noise = np.log(at_largest) + largest / 2 * (1 + length**2)
    weight = logsumexp(logits, axis=-1) - np.log(logits.shape[-1])
    return float(np.exp(np.median(noise - weight)))


def show_logits(
    experiments: Sequence[Experiment], places: Sequence[Place], at_largest: float
) -> None:
    """Print logits and bounds, layer by layer, and frames of the first experiment's recording."""
    names = [f"{each.recording.name}:" for each in experiments]
    show("", *names, "bound by", "bound by", "frames", "frames")
    largest = ["largest" for _ in experiments]
    show("layer", *largest, "weights", "calibration", "attended to", "needed, ε = 1")
    for index, place in enumerate(places):
        heads, bounds = place.heads(), experiments[0].bounds[place.name]
        pairs = [projected(each.model, place, each.recording, bounds) for each in experiments]
        logits = [heads.scaling[:, None, None] * q @ k.swapaxes(1, 2) for q, k in pairs]
        chances = softmax(logits[0], axis=-1)
        by_weights = weight_bounds(heads, queries=place.query_norm, context=place.context_norm)
        show(
            index,
            *(f"{np.max(np.abs(each)):.1f}" for each in logits),
            f"{np.max(by_weights.largest_logits(heads.scaling)):.0f}",
            f"{np.max(bounds.largest_logits(heads.scaling)):.1f}",
            f"{np.median(np.exp(np.sum(entr(chances), axis=-1))):.0f}",
            f"{frames_needed(*pairs[0], bounds, heads.scaling, at_largest):.0e}",
        )


def show_single_layers(
    experiment: Experiment, layers: Sequence[int], epsilons: Sequence[float]
) -> None:
    """Print what becomes of the transcript with one private layer."""
    silent = (ALIKE, None, CAP)
    noisy = [*((epsilon, CAP) for epsilon in epsilons), (epsilons[0], LOW_CAP)]
    show("", *("no noise" for _ in silent), *(f"ε = {epsilon:g}" for epsilon, _ in noisy))
    show("layer", *(named(cap) for cap in (*silent, *(cap for _, cap in noisy))))
    for layer in layers:
        rates = [experiment.errors([layer], cap=cap) for cap in silent]
        rates += [
            experiment.errors([layer], cap=cap, epsilon=epsilon, sources=seeds())
            for epsilon, cap in noisy
        ]
        show(layer, *rates)


def show_all_layers(
    experiment: Experiment, other: Experiment, epsilons: Sequence[float]
) -> tuple[float, float]:
    """Print what becomes of the transcript with all layers private.

    Returns the lowest rate of errors with noise, and that with all frames alike.
    """
    show("", "clipped:", "clipped:", "private:", *("private:" for _ in epsilons))
    names = [experiment.recording.name, other.recording.name]
    show("", *names, "no noise", *(f"ε = {epsilon:g}" for epsilon in epsilons))
    lowest, silent = np.inf, np.nan
    for cap in CAPS:
        exact = [each.clipped_errors(cap) for each in (experiment, other)]
        silent = experiment.errors(None, cap=cap)
        noisy = [
            experiment.errors(None, cap=cap, epsilon=epsilon, sources=seeds())
            for epsilon in epsilons
        ]
        lowest = np.nanmin([lowest, *noisy])
        show(named(cap), *exact, silent, *noisy)
    return float(lowest), silent  # of the last cap, with which frames are alike


def show(*cells: object) -> None:
    """Print a line of a table. Numbers that are not whole are rates, and NaN says refused."""
    texts = [
        ("refused" if np.isnan(cell) else f"{cell:.2f}") if isinstance(cell, float) else str(cell)
        for cell in cells
    ]
    print(f"{texts[0]:<7}", *(f"{each:>14}" for each in texts[1:]), sep="", flush=True)


def named(cap: float | None) -> str:
    """Return what a cap on logits is called in tables."""
    return "no cap" if cap is None else "alike" if cap == ALIKE else f"cap {cap:g}"


def seeds() -> list[Entropy]:
    """Return sources of noise that are the same each time. NOT PRIVATE."""
    return [Seeded(seed) for seed in range(DRAWS)]


def main() -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one recording, layer 0, two ε")
    options = parser.parse_args()
    epsilons = (8.0, 500.0) if options.quick else (8.0, 100.0, 500.0)
    torch.set_num_threads(1)
    threadpool_limits(1)
    start = time.perf_counter()

    model, tokenizer, sounds = load()
    print("1. What is said, exactly\n")
    used = sorted({*PUBLIC, *(PRIVATE[:1] if options.quick else PRIVATE)})
    recordings = {index: listen(model, tokenizer, *sounds[index]) for index in used}
    for index, each in recordings.items():
        kind = "public" if index in PUBLIC else "private"
        seconds = each.sound.shape[-1] / RATE
        print(f"{each.name} ({kind}, {seconds:.1f} s, {len(each.frames)} frames)\n{each.text}\n")

    bounds = calibrate(model, [recordings[index].given for index in PUBLIC], quantile=QUANTILE)
    experiments = [
        Experiment(model, tokenizer, recordings[index], bounds)
        for index in PRIVATE
        if index in recordings
    ]
    first = experiments[0]
    places = places_of(model)
    built = privatize(
        copy.deepcopy(model),
        first.recording.frames,
        epsilon=1.0,
        delta=DELTA,
        bounds=bounds,
        layers=[0],
    )
    at_largest = float(max(built.private_context.card.to_dict()["rows_needed"]))
    name, count = first.recording.name, len(first.recording.frames)
    print(f"2. Logits, layer by layer; calibrated on the public recordings, at {QUANTILE}\n")
    show_logits(experiments, places[:1] if options.quick else places, at_largest)

    layers = [0] if options.quick else range(len(places))
    print(
        f"\n3. Word error rate of {name}, one layer private; noise: mean of {DRAWS} draws\n"
        "The other layers attend to the true recording: this protects nobody. Where the words\n"
        "survive that a layer weighs all frames alike, they did not need it.\n"
    )
    show_single_layers(first, layers, epsilons)

    if not options.quick:
        print("\n4. Word error rate, all layers private: the decoder hears nothing else\n")
        best, alike = show_all_layers(*experiments, (8.0, 500.0))

    print(
        f"\n5. Frames that layer 0 needs at ε = 1; {name} has {count}\n\n"
        f"At the largest logit itself: {at_largest:,.0f}. At the logits that occur (median query):"
    )
    queries, keys = projected(model, places[0], first.recording, bounds[places[0].name])
    for cap in (None, 10.0, 5.0, 2.0):
        scaling = places[0].heads().scaling
        within = bounds[places[0].name].capped(scaling, cap)
        needed = frames_needed(queries, keys, within, scaling, at_largest)
        show(named(cap), f"{needed:,.0f}")

    if options.quick:
        end = "One layer says little, since others attend to the recording: run it without --quick."
    else:
        end = (
            f"With all layers private the word error rate is {best:.2f} or more, at any cap and\n"
            f"even at ε = 500; if no layer looks where anything is, it is {alike:.2f}. This model "
            "cannot be\nmade private as it is."
        )
    print(f"\nConclusion: {end} ({time.perf_counter() - start:.0f} s)")


if __name__ == "__main__":
    main()
