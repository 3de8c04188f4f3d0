"""What else could be made of private records: a histogram and a regression, with written rules.

For `trained_for_privacy.py`, to compare with. Both answer from shares of treatment and outcome
among notes like the one that is asked about; a rule for each kind of question does the rest.
"""

from collections.abc import Callable

import torch
from hospitals import GRADES, NOTE, TREATMENTS, WORDS, Questions, Records, note_vectors
from torch import Tensor
from torch.nn import functional

import discreet
from discreet.accounting import gaussian_sigma
from discreet.noise import Entropy, RoundedGaussian, SystemEntropy

DELTA = 1e-6
PUBLIC_SEED = 2_000_000  # of notes that cells are made around

Answerer = Callable[[Records, Questions], Tensor]
Embedding = Callable[[Tensor], Tensor]


def by_rule(joint: Tensor, kinds: Tensor, prior: float) -> Tensor:
    """Return answers from counts (or shares) of treatment and outcome, shape (m, 10)."""
    failed, recovered = joint.clamp(min=0).view(-1, TREATMENTS, 2).unbind(-1)
    total = failed + recovered
    overall = (recovered.sum(-1, keepdim=True) + prior) / (total.sum(-1, keepdim=True) + 2 * prior)
    rate = (recovered + prior * overall) / (total + prior)
    scores = torch.stack([rate, -rate, total], dim=-2)
    first = scores.take_along_dim(kinds.view(-1, 1, 1), dim=-2)[:, 0].argmax(-1)
    grade = (rate.gather(-1, first[:, None])[:, 0] * GRADES).long().clamp(0, GRADES - 1)
    return torch.stack([first, TREATMENTS + grade], dim=-1)[None]


def raw_embedding(words: Tensor) -> Tensor:
    """Return public vectors of notes, with length one."""
    return functional.normalize(note_vectors(words), dim=-1)


def histogram(embed: Embedding, epsilon: float, cells: int, *, prior: float = 10) -> Answerer:
    """Return a private table: cells around public notes, by treatment and outcome.

    Cells and prior were chosen from a few, on public worlds.
    """
    generator = torch.Generator().manual_seed(PUBLIC_SEED)
    notes = embed(torch.randint(WORDS, (5_000, NOTE), generator=generator))
    centres = notes[:cells]
    for _ in range(10):  # k-means
        nearest = functional.one_hot((notes @ centres.T).argmax(-1), cells).float()
        centres = functional.normalize(nearest.T @ notes, dim=-1)
    law = RoundedGaussian(sigma=gaussian_sigma(epsilon=epsilon, delta=DELTA))

    def answer(records: Records, asked: Questions) -> Tensor:
        cell = (embed(records.words[0]) @ centres.T).argmax(-1)
        bins = 2 * TREATMENTS
        counts = torch.bincount(cell * bins + records.events[0], minlength=cells * bins)
        noisy = counts.numpy() + law.sample(len(counts), entropy=SystemEntropy())
        mine = (embed(asked.words[0]) @ centres.T).argmax(-1)
        return by_rule(torch.from_numpy(noisy).float().view(cells, bins)[mine], asked.kinds, prior)

    return answer


def regression(
    embed: Embedding, epsilon: float, *, prior: float = 0.03, entropy: Entropy | None = None
) -> Answerer:
    """Return private least squares of treatment and outcome on the embedding.

    The prior was chosen from a few, on public worlds.
    """

    def answer(records: Records, asked: Questions) -> Tensor:
        fit = discreet.least_squares(
            embed(records.words[0]),
            functional.one_hot(records.events[0], 2 * TREATMENTS).float(),
            epsilon=epsilon,
            delta=DELTA,
            rows_hint=records.events.shape[-1],
            entropy=entropy,
        )
        shares = torch.as_tensor(fit.predict(embed(asked.words[0])))
        return by_rule(shares.float(), asked.kinds, prior)

    return answer
