"""A speech recogniser that was trained without privacy in mind, with a private recording: it fails.

Moonshine-tiny (27 million weights, six layers of cross-attention, eight heads each) transcribes
recordings that ship with it. Then what it attends to is made private, layer by layer and all at
once, and the words that come out wrong are counted. Look for: logits up to 150, how few frames the
later layers attend to, and that a layer which survives need not have looked at all.

The private unit is one row: one frame of the encoder's output, of which a recording has hundreds.
The encoder mixes frames, so not even that is a promise about a piece of the sound.

This is an experiment, and what it prints is NOT PRIVATE: exact transcripts stand beside private
ones, and noise comes from fixed seeds, so that each run prints the same figures.

It needs the weights: pip install --no-deps moonshine-voice==0.0.73. A run makes all layers of one
recording private, in half a minute. `--full` has both recordings, each
layer alone, and more caps, in three minutes.
"""

import argparse
import copy
import itertools
import re
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from moonshine_weights import RATE, Tokenizer, load, transcribe
from scipy.special import entr, softmax
from speech_bounds import clipped, frames_needed, projected
from threadpoolctl import threadpool_limits
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
FEW_CAPS = (40.0, ALIKE)  # where all are
CAPS = (None, 40.0, 20.0, 10.0, 5.0, ALIKE)  # the same, in full
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
        pairs = [projected(each.model, place, each.recording.given, bounds) for each in experiments]
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


@dataclass(frozen=True)
class Rates:
    """Word error rates with all layers private, for caps on logits and each ε.

    Attributes:
        clipped: of the exact model with clipped keys, queries and values, for one cap each.
        silent: private but for the noise, likewise; NaN where the build is refused.
        noisy: likewise, with one rate for each ε.
    """

    caps: tuple[float | None, ...]
    epsilons: tuple[float, ...]
    clipped: tuple[float, ...]
    silent: tuple[float, ...]
    noisy: tuple[tuple[float, ...], ...]

    @property
    def lowest(self) -> float:
        """The lowest rate with noise, at any cap that lets layers look."""
        looking = [rates for cap, rates in zip(self.caps, self.noisy, strict=True) if cap != ALIKE]
        return float(np.nanmin(looking))

    @property
    def alike(self) -> float:
        """The rate if every frame weighs the same: no layer looks where anything is."""
        return self.silent[self.caps.index(ALIKE)]


def show_all_layers(
    experiments: Sequence[Experiment],
    caps: tuple[float | None, ...],
    epsilons: tuple[float, ...],
) -> Rates:
    """Print what becomes of the first experiment's transcript with all layers private."""
    show("", *("clipped:" for _ in experiments), "private:", *("private:" for _ in epsilons))
    names = [each.recording.name for each in experiments]
    show("", *names, "no noise", *(f"ε = {epsilon:g}" for epsilon in epsilons))
    first, clipping, silent, noisy = experiments[0], [], [], []
    for cap in caps:
        exact = [each.clipped_errors(cap) for each in experiments]
        clipping.append(exact[0])
        silent.append(first.errors(None, cap=cap))
        noisy.append(
            tuple(
                first.errors(None, cap=cap, epsilon=epsilon, sources=seeds())
                for epsilon in epsilons
            )
        )
        show(named(cap), *exact, silent[-1], *noisy[-1])
    return Rates(caps, epsilons, tuple(clipping), tuple(silent), tuple(noisy))


def conclusion(rates: Rates) -> str:
    """Return what becomes of the words, in a sentence."""
    useless = rates.lowest > rates.alike - 0.1
    return (
        f"with all layers private the word error rate is {rates.lowest:.2f} or more, at every cap "
        f"and even at ε = {max(rates.epsilons):g}; if no layer looks where anything is, it is "
        f"{rates.alike:.2f}: "
        + ("this model cannot be made private as it is." if useless else "some words survive.")
    )


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


def show_frames_needed(experiment: Experiment, place: Place, at_largest: float) -> None:
    """Print how many frames a layer needs at ε = 1, by caps on logits."""
    print(
        f"At the largest logit itself: {at_largest:,.0f}. At the logits that occur (median query):"
    )
    bounds, scaling = experiment.bounds[place.name], place.heads().scaling
    queries, keys = projected(experiment.model, place, experiment.recording.given, bounds)
    for cap in (None, 10.0, 5.0, 2.0):
        needed = frames_needed(queries, keys, bounds.capped(scaling, cap), scaling, at_largest)
        show(named(cap), f"{needed:,.0f}")


def set_up(*, full: bool) -> list[Experiment]:
    """Return an experiment for each private recording, and print what is said in all of them."""
    model, tokenizer, sounds = load()
    private = PRIVATE if full else PRIVATE[:1]
    used = sorted({*PUBLIC, *private})
    recordings = {index: listen(model, tokenizer, *sounds[index]) for index in used}
    for index, each in recordings.items():
        kind = "public" if index in PUBLIC else "private"
        seconds = each.sound.shape[-1] / RATE
        print(f"{each.name} ({kind}, {seconds:.1f} s, {len(each.frames)} frames)\n{each.text}\n")
    bounds = calibrate(model, [recordings[index].given for index in PUBLIC], quantile=QUANTILE)
    return [Experiment(model, tokenizer, recordings[index], bounds) for index in private]


def main(arguments: Sequence[str] | None = None) -> Rates:
    """Run the example, and return what becomes of the words."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="all there is to see: three minutes")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    threadpool_limits(1)
    start, section = time.perf_counter(), itertools.count(1)

    print(f"{next(section)}. What is said, exactly\n")
    experiments = set_up(full=options.full)
    first = experiments[0]
    places = places_of(first.model)
    built = privatize(
        copy.deepcopy(first.model),
        first.recording.frames,
        epsilon=1.0,
        delta=DELTA,
        bounds=first.bounds,
        layers=[0],
    )
    at_largest = float(max(built.private_context.card.to_dict()["rows_needed"]))
    name, count = first.recording.name, len(first.recording.frames)
    print(
        f"{next(section)}. Logits, layer by layer; calibrated on the public recordings, "
        f"at {QUANTILE}\n"
    )
    show_logits(experiments, places, at_largest)

    if options.full:
        print(
            f"\n{next(section)}. Word error rate of {name}, one layer private; noise: mean of "
            f"{DRAWS} draws\n"
            "The other layers attend to the true recording: this protects nobody. Where the words\n"
            "survive that a layer weighs all frames alike, they did not need it.\n"
        )
        show_single_layers(first, range(len(places)), (8.0, 100.0, 500.0))

    print(
        f"\n{next(section)}. Word error rate, all layers private: the decoder hears nothing else\n"
    )
    rates = show_all_layers(experiments, CAPS if options.full else FEW_CAPS, (8.0, 500.0))

    print(f"\n{next(section)}. Frames that layer 0 needs at ε = 1; {name} has {count}\n")
    show_frames_needed(first, places[0], at_largest)

    print(f"\n{time.perf_counter() - start:.0f} s in all.")
    print(f"\nConclusion: {conclusion(rates)}")
    return rates


if __name__ == "__main__":
    main()
