"""Causal attention over a stream of records: how far answers are from exact ones.

One record a step, T = 4,096 of them, keys of 16 numbers at scale 2. Records lie around six centres,
and have a label whose mean depends on the centre: attention answers with the mean label near a
query. In the second layer of the stack, keys have the first layer's answer in them.
"""

import math
import time
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from sharing import table, tell
from stream_noise import HONAKER, TREE, of_tree
from stream_shared import DELTA, Effort, Promise, Report

import discreet
from discreet.accounting import gaussian_epsilon, gaussian_sigma
from discreet.nn import BoundedAttention, CausalBlock, PrivateCausalAttention, PrivateCausalStack
from discreet.testing import Seeded

Floats = NDArray[np.float64]

STEPS, DIM, SCALE = 4_096, 16, 2.0
EPSILONS = (1.0, 2.0, 8.0)
REBUILT = "built anew each step"

_WIDTH, _LABEL, _FIRST, _SECOND = DIM + 4, DIM, DIM + 1, DIM + 2


@dataclass(frozen=True, eq=False)
class Records:
    """Made-up records.

    Attributes:
        hidden: what a model is given, shape (T, width): key, label, and room for answers.
    """

    hidden: Floats

    @classmethod
    def drawn(cls, seed: int, steps: int = STEPS) -> "Records":
        """Return records around six centres.

        Args:
            seed: of the draw.
            steps: how many.
        """
        rng = np.random.default_rng(seed)
        centres = np.linalg.qr(rng.normal(size=(DIM, DIM)))[0][:6]
        means = np.array([0.8, -0.8, 0.5, -0.5, 0.2, -0.2])
        which = rng.integers(0, 6, steps)
        keys = centres[which] + 0.6 * rng.normal(size=(steps, DIM)) / math.sqrt(DIM)
        hidden = np.zeros((steps, _WIDTH))
        hidden[:, :DIM] = keys / np.linalg.norm(keys, axis=1, keepdims=True)
        hidden[:, _LABEL] = np.where(rng.random(steps) < (1 + means[which]) / 2, 1.0, -1.0)
        return cls(hidden)


def _attention(inputs: tuple[int, ...], answer: int) -> BoundedAttention:
    """Return a layer whose keys are some numbers of a record, and that answers into one of them."""
    made = BoundedAttention(_WIDTH, 1, head_dim=len(inputs), value_dim=1, largest_logit=2 * SCALE)
    with torch.no_grad():
        for each in made.parameters():
            each.zero_()  # half of the largest logit: the scale
        for place, number in enumerate(inputs):
            made.q_proj.weight[place, number] = made.k_proj.weight[place, number] = 1.0
        made.v_proj.weight[0, _LABEL] = 1.0
        made.out_proj.weight[answer, 0] = 1.0
    return made


_KEYS = tuple(range(DIM))
_LAYERS = ((_KEYS, _FIRST), ((*_KEYS, _FIRST), _SECOND))


def _exact(hidden: Floats, inputs: tuple[int, ...]) -> Floats:
    """Return each record's exact attention to all before it; zero for the first."""
    keys = hidden[:, inputs]
    keys = keys / np.linalg.norm(keys, axis=1, keepdims=True)
    weights = np.tril(np.exp(SCALE * keys @ keys.T), -1)
    answers = np.zeros(len(hidden))
    answers[1:] = weights[1:] @ hidden[:, _LABEL] / weights[1:].sum(axis=1)
    return answers


def one_layer(epsilon: float, seed: int, steps: int = STEPS) -> dict[str, float]:
    """Return root mean square errors of one layer, at the end and on the way, for one draw.

    Args:
        epsilon: for all steps together.
        seed: of records and noise.
        steps: how many.
    """
    records = Records.drawn(seed, steps)
    layer = _attention(*_LAYERS[0])
    private = PrivateCausalAttention(
        layer, steps=steps, epsilon=epsilon, delta=DELTA, rows_hint=steps, entropy=Seeded(seed)
    )
    rows = torch.from_numpy(records.hidden).float()
    answers, times = np.zeros(steps), np.zeros(steps)
    for step, row in enumerate(rows):
        start = time.perf_counter()
        answers[step] = private(row)[_FIRST]
        times[step] = time.perf_counter() - start
    exact = _exact(records.hidden, _KEYS)
    queries, truth = _held_out(records, seed)
    asked = private.ask(torch.from_numpy(queries).float())[:, _FIRST].numpy()
    tenth = steps // 10
    first, last = (float(np.median(some)) for some in (times[1:tenth], times[-tenth:]))
    found = {"end": _rms(asked - truth), "signal": float(truth.std())}
    found |= {"milliseconds": 1e3 * last, "last over first": last / first}
    for step in (steps // 16, steps // 8, steps // 4, steps // 2):
        some = slice(step, step + steps // 32)
        found[f"at {step}"] = _rms(answers[some] - exact[some])
    return found


def _held_out(records: Records, seed: int) -> tuple[Floats, Floats]:
    """Return public queries like the records, and their exact answers over all of them."""
    # Of the same centres: the last rows of a longer draw with the same seed would be records.
    rng = np.random.default_rng(1_000 + seed)
    near = records.hidden[rng.integers(0, len(records.hidden), 500)]
    keys = near[:, :DIM] + 0.3 * rng.normal(size=(500, DIM)) / math.sqrt(DIM)
    queries = np.zeros((500, _WIDTH))
    queries[:, :DIM] = keys / np.linalg.norm(keys, axis=1, keepdims=True)
    weights = np.exp(SCALE * queries[:, :DIM] @ records.hidden[:, :DIM].T)
    return queries, weights @ records.hidden[:, _LABEL] / weights.sum(axis=1)


def others(
    epsilon: float, seed: int, factors: dict[str, float], steps: int = STEPS
) -> dict[str, float]:
    """Return the error at the end of states with other noise, over the same records.

    Args:
        epsilon: as for `one_layer`.
        seed: likewise.
        factors: the noise of each over that of one release.
        steps: how many records.
    """
    records = Records.drawn(seed, steps)
    queries, truth = _held_out(records, seed)
    found = {}
    for name, factor in factors.items():
        sigma = gaussian_sigma(epsilon=epsilon, delta=DELTA) * factor
        memory = discreet.build(
            records.hidden[:, :DIM],
            records.hidden[:, [_LABEL]],
            epsilon=max(gaussian_epsilon(sigma=sigma, delta=DELTA), 1e-6),
            delta=DELTA,
            scale=SCALE,
            rows_hint=steps,
            entropy=Seeded(seed),
        )
        found[name] = _rms(memory.attend(queries[:, :DIM])[:, 0] - truth)
    return found


def two_layers(epsilon: float, seed: int, steps: int = STEPS) -> dict[str, float]:
    """Return how answers of two private layers correlate with exact ones, over the last half.

    Args:
        epsilon: for both layers and all steps together.
        seed: of records and noise.
        steps: how many.
    """
    records = Records.drawn(seed, steps)
    stack = PrivateCausalStack(
        [CausalBlock(_attention(*layer)) for layer in _LAYERS],
        steps=steps,
        epsilon=epsilon,
        delta=DELTA,
        rows_hint=steps,
        entropy=Seeded(seed),
    )
    rows = torch.from_numpy(records.hidden).float()
    answers = np.array([stack(row).numpy() for row in rows])
    exact = records.hidden.copy()
    for inputs, answer in _LAYERS:
        exact[:, answer] = _exact(exact, inputs)
    half = steps // 2
    found = {}
    for name, answer in (("first", _FIRST), ("second", _SECOND)):
        found[name] = float(np.corrcoef(answers[half:, answer], exact[half:, answer])[0, 1])
    return found


def measure(effort: Effort) -> Report:
    """Return errors and correlations, each the mean over some draws.

    Args:
        effort: how many draws, and how many records each.
    """
    steps, seeds = effort.records, range(effort.draws)
    # Of the worst step; and of the whole, built with a share of the budget at every step.
    tree, honaker = (float(of_tree(steps, honaker=each)[-2]) for each in (False, True))
    factors = {"one release": 1.0, HONAKER: honaker, TREE: tree, REBUILT: math.sqrt(steps)}
    found: Report = {"records": steps, "one": {}, "others": {}, "two": {}}
    for epsilon in EPSILONS:
        name = f"{epsilon:g}"
        found["one"][name] = _mean([one_layer(epsilon, seed, steps) for seed in seeds])
        found["two"][name] = _mean([two_layers(epsilon, seed, steps) for seed in seeds])
        found["others"][name] = _mean([others(epsilon, seed, factors, steps) for seed in seeds])
        tell(f"causal attention at ε = {name}")
    return found


def page(report: Report) -> list[str]:
    """Return the section of the page."""
    steps = report["records"]
    early = [name for name in report["one"]["1"] if name.startswith("at ")]
    return [
        (
            f"One record a step, {steps:,} of them, keys of {DIM} numbers at scale {SCALE:g}; each "
            "attends to all before it ([private self-attention](self-attention.md)). Root mean "
            f"square errors of answers that lie within ±1 and differ by {_signal(report):.2f}:"
        ),
        *table(
            ["ε", "after all records", HONAKER, TREE, REBUILT, "one release"],
            [
                [
                    name,
                    f"**{report['one'][name]['end']:.3f}**",
                    *(
                        f"{report['others'][name][way]:.3f}"
                        for way in (HONAKER, TREE, REBUILT, "one release")
                    ),
                ]
                for name in report["one"]
            ],
        ),
        "Early records have less to attend to, and are answered with more noise:",
        "",
        *table(
            ["ε", *(f"records {int(each[3:]):,} and on" for each in early)],
            [
                [name, *(f"{report['one'][name][each]:.2f}" for each in early)]
                for name in report["one"]
            ],
        ),
        (
            f"A step took {report['one']['1']['milliseconds']:.1f} ms at the end, "
            f"{report['one']['1']['last over first']:.2f} times as long as at the beginning."
        ),
        "",
        (
            "Two private layers, both read from released states, under one guarantee; correlation "
            "of answers with those of the exact model, over the last half of the records:"
        ),
        "",
        *table(
            ["ε", "first layer", "second layer"],
            [
                [name, f"{found['first']:.3f}", f"{found['second']:.3f}"]
                for name, found in report["two"].items()
            ],
        ),
    ]


def _signal(report: Report) -> float:
    return float(report["one"]["1"]["signal"])


def promises(report: Report) -> list[Promise]:
    """Return what was promised of causal attention."""
    error, other = report["one"]["1"]["end"], report["others"]["1"][HONAKER]
    second = report["two"]["2"]["second"]
    return [
        Promise(
            "error of causal attention, ε = 1, after 4,096 records",
            "at most 0.035",
            f"{error:.3f}",
            kept=error <= 0.035,
        ),
        Promise(
            "the same over that of Honaker's tree",
            "at most 0.5",
            f"{error / other:.2f}",
            kept=error <= other / 2,
        ),
        Promise(
            "correlation of two private layers with exact ones, ε = 2",
            "at least 0.95",
            f"{second:.3f}",
            kept=second >= 0.95,
        ),
    ]


def _mean(figures: list[dict[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([each[name] for each in figures])) for name in figures[0]}


def _rms(errors: Floats) -> float:
    return float(np.sqrt(np.mean(np.square(errors))))
