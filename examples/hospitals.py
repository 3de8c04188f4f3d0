"""Invented hospitals: data for `trained_for_privacy.py`.

Each hospital is a world of its own. A record is a note (four words), one of five treatments, and
whether the patient recovered. How likely that is depends on what the note means and on the
treatment, in another way in every world; so does which treatment doctors choose. A question is a
new note and a kind: which treatment is best for it, worst, or most given? The answer is two words:
the treatment, and how often patients like this recover with it.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

WORDS, WORD_DIM, NOTE = 300, 16, 4  # words, numbers in the public vector of each, words in a note
SENSES = 3  # directions among the 16 that matter to patients; nobody tells the model which
TREATMENTS, GRADES = 5, 3  # grades: rarely, sometimes, often
KINDS = 3  # best, worst, most given
WAVES = 48  # of which a world's smooth random functions are made
ROUGHNESS, EFFECT, CHOICE = 1.0, 3.0, 1.0
CLEAR = 0.05  # a question is asked where the answer leads by so much
UNASKED = -100  # the answer to others; torch's losses leave it out

_PUBLIC = torch.Generator().manual_seed(7)
VECTORS = torch.randn(WORDS, WORD_DIM, generator=_PUBLIC)
AXES = torch.linalg.qr(torch.randn(WORD_DIM, SENSES, generator=_PUBLIC)).Q

AVERAGE_NOTES = torch.randint(WORDS, (200, NOTE), generator=_PUBLIC)


def note_vectors(words: Tensor) -> Tensor:
    """Return the public vector of each note: the sum of its words', with entries of about one."""
    return VECTORS[words].sum(dim=-2) / math.sqrt(NOTE)


@dataclass(frozen=True)
class Records:
    """Notes (..., n, 4), treatments (..., n) and outcomes (..., n), 1 for recovered. PRIVATE."""

    words: Tensor
    treatments: Tensor
    outcomes: Tensor

    @property
    def events(self) -> Tensor:
        """Treatment and outcome as one number, below 10."""
        return 2 * self.treatments + self.outcomes


@dataclass(frozen=True)
class Questions:
    """Notes (..., m, 4), kinds (..., m), and the two words of each answer (..., m, 2)."""

    words: Tensor
    kinds: Tensor
    answers: Tensor


class Worlds:
    """Several hospitals, each with its own smooth random functions of what a note means."""

    def __init__(self, count: int, generator: torch.Generator) -> None:
        self._count, self._generator = count, generator
        self._waves = math.sqrt(ROUGHNESS) * self._normal(count, SENSES, WAVES)
        self._phases = 2 * math.pi * torch.rand(count, 1, WAVES, generator=generator)
        self._weights = math.sqrt(2 / WAVES) * self._normal(count, WAVES, 2 * TREATMENTS + 1)

    def _normal(self, *shape: int) -> Tensor:
        return torch.randn(*shape, generator=self._generator)

    def _notes(self, count: int) -> Tensor:
        return torch.randint(WORDS, (self._count, count, NOTE), generator=self._generator)

    def _chances(self, words: Tensor) -> tuple[Tensor, Tensor]:
        """Return how likely patients recover and are given each treatment, shape (..., 5) each."""
        # Less the average over notes: without a note there is little to know.
        smooth = self._smooth(words) - self._smooth(AVERAGE_NOTES).mean(dim=-2, keepdim=True)
        effect, choice, health = smooth.split([TREATMENTS, TREATMENTS, 1], dim=-1)
        return torch.sigmoid(EFFECT * effect + health), torch.softmax(CHOICE * choice, dim=-1)

    def _smooth(self, words: Tensor) -> Tensor:
        meaning = functional.normalize(note_vectors(words) @ AXES, dim=-1)
        return torch.cos(meaning @ self._waves + self._phases) @ self._weights

    def records(self, count: int) -> Records:
        """Return so many records of each world."""
        words = self._notes(count)
        recover, given = self._chances(words)
        drawn = torch.multinomial(given.flatten(0, 1), 1, generator=self._generator)
        treatments = drawn.view(self._count, count)
        chance = recover.gather(-1, treatments[..., None])[..., 0]
        lucky = torch.rand(self._count, count, generator=self._generator) < chance
        return Records(words, treatments, lucky.long())

    def questions(self, count: int) -> Questions:
        """Return so many questions to each world, a third of each kind."""
        words = self._notes(count)
        kinds = torch.arange(count).remainder(KINDS).expand(self._count, count)
        recover, given = self._chances(words)
        scores = torch.stack([recover, -recover, given], dim=-2)
        scores = scores.take_along_dim(kinds[..., None, None], dim=-2)[..., 0, :]
        (first, second), treatment = scores.topk(2).values.unbind(-1), scores.argmax(-1)
        chance = recover.gather(-1, treatment[..., None])[..., 0]
        grade = (chance * GRADES).long().clamp(max=GRADES - 1)
        answers = torch.stack([treatment, TREATMENTS + grade], dim=-1)
        return Questions(words, kinds, answers.where((first - second >= CLEAR)[..., None], UNASKED))
