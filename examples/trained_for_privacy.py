"""A model trained for private memory: it learned how to read records, and is then given new ones.

A small encoder-decoder learns from thousands of invented hospitals (`hospitals.py`) how to answer
questions about one from its records; its weights know nothing of the next hospital. There it
answers from the records alone, through `BoundedAttention`: exactly, or from a private memory that
`from_multihead` makes of them. Look for: how little is lost at 10,000 records; what training with
the noise of the release brings where records are few; and what a private histogram or a private
regression makes of the same records, by the words' public vectors or by the model's own keys, with
a rule for each kind of question that somebody had to write.

A run trains for a short while, without that noise, and compares with the regression by the words'
public vectors, in under a minute. `--full` trains for long, both ways, and has all of it, in 6 to
10 minutes.
"""

import argparse
import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from hospital_tables import (
    DELTA,
    Answerer,
    Embedding,
    histogram,
    raw_embedding,
    regression,
)
from hospitals import (
    GRADES,
    KINDS,
    TREATMENTS,
    UNASKED,
    WORD_DIM,
    Questions,
    Records,
    Worlds,
    note_vectors,
)
from torch import Tensor, nn
from torch.nn import functional

from discreet.nn import BoundedAttention, Rehearsal, encode_alone, from_multihead
from discreet.noise import Entropy

WIDTH, EVENT_WIDTH = 64, 16
HEADS, HEAD_DIM, VALUE_DIM = 1, 4, 10  # narrow keys: no kernel error; few heads: little noise
LARGEST_LOGIT = 8.0
TEST_SEED = 3_000_000  # of worlds; training has seeds of its own
PRIVATE, BY_WORDS = "**model, private memory**", "private regression, word vectors"


class Block(nn.Module):
    """x plus a small network of it."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        layers = [nn.LayerNorm(WIDTH), nn.Linear(WIDTH, hidden), nn.GELU()]
        self.change = nn.Sequential(*layers, nn.Linear(hidden, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        """Return x plus the change."""
        return x + self.change(x)


class Reader(nn.Module):
    """One encoder for notes of records and of questions, and a decoder that attends to records."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(WORD_DIM, WIDTH), Block(2 * WIDTH))
        self.event = nn.Embedding(2 * TREATMENTS, EVENT_WIDTH)
        self.kind = nn.Embedding(KINDS, WIDTH)
        self.answer = nn.Embedding(TREATMENTS, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.self_attention = nn.MultiheadAttention(WIDTH, 2, batch_first=True)
        self.memory = BoundedAttention(
            WIDTH,
            HEADS,
            head_dim=HEAD_DIM,
            value_dim=VALUE_DIM,
            vdim=EVENT_WIDTH,
            largest_logit=LARGEST_LOGIT,
        )
        self.decoder = nn.Sequential(Block(4 * WIDTH), Block(4 * WIDTH), nn.LayerNorm(WIDTH))
        self.out = nn.Linear(WIDTH, TREATMENTS + GRADES)
        with torch.no_grad():
            # Alike notes must find each other from the start, or nothing is ever learned.
            self.memory.k_proj.weight.copy_(self.memory.q_proj.weight)
            self.kind.weight.mul_(0.3)
            # What worlds differ in is a few hundredths of an average: make it heard.
            self.memory.v_proj.weight.mul_(2)
            self.memory.out_proj.weight.mul_(20)

    def context(self, records: Records) -> tuple[Tensor, Tensor]:
        """Return what keys and values are made of: each row of its own record alone."""
        return self.encoder(note_vectors(records.words)), self.event(records.events)

    def forward(
        self, memory: nn.Module, context: tuple[Tensor, ...], asked: Questions, spoken: Tensor
    ) -> Tensor:
        """Return logits of the next word after each, (worlds, m, 1 + spoken words, vocabulary).

        Args:
            memory: `self.memory`, or what serves in its place.
            context: of the records; none for a memory that has its own.
            asked: the questions.
            spoken: words of the answer so far, shape (worlds, m, 0 or 1).
        """
        question = self.encoder(note_vectors(asked.words)) + self.kind(asked.kinds)
        x = torch.cat([question[..., None, :], self.answer(spoken)], dim=-2)
        worlds, _, length, _ = x.shape
        later = torch.ones(length, length).triu(1).bool()
        flat = self.norm(x).flatten(0, 1)
        mixed, _ = self.self_attention(flat, flat, flat, attn_mask=later, need_weights=False)
        x = x + mixed.view_as(x)
        read, _ = memory(x.view(worlds, -1, WIDTH), *context)
        return self.out(self.decoder(x + read.view_as(x)))

    @torch.no_grad()
    def generate(self, memory: nn.Module, context: tuple[Tensor, ...], asked: Questions) -> Tensor:
        """Return the two likeliest words, one after the other, shape (worlds, m, 2)."""
        nothing = asked.answers[..., :0]
        first = self(memory, context, asked, nothing)[..., -1, :TREATMENTS].argmax(-1, keepdim=True)
        second = self(memory, context, asked, first)[..., -1, TREATMENTS:].argmax(-1, keepdim=True)
        return torch.cat([first, TREATMENTS + second], dim=-1)


class NoMemory(nn.Module):
    """Nothing to attend to."""

    def forward(self, query: Tensor) -> tuple[Tensor, None]:
        """Return zeros."""
        return torch.zeros_like(query), None


def train(
    model: Reader, steps: int, *, seed: int, records: int, rehearsal: Rehearsal | None = None
) -> None:
    """Teach the model on new worlds in every step; every other step with the noise to come, if any.

    (Noise in every step blunts the exact model; noise in every other was better on public worlds.)
    """
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, steps, pct_start=0.1)
    model.train()
    for step in range(steps):
        model.memory.rehearsal = rehearsal if step % 2 else None
        worlds = Worlds(16, generator)
        context, asked = model.context(worlds.records(records)), worlds.questions(40)
        spoken = asked.answers[..., :1].clamp(min=0)
        logits = model(model.memory, context, asked, spoken)
        loss = functional.cross_entropy(logits.flatten(0, 2), asked.answers.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    model.eval()


def score(answerer: Answerer, rows: int, worlds: int, *, seed: int = TEST_SEED) -> np.ndarray:
    """Return how often the treatment is right, and the whole answer, over so many new worlds."""
    shares = []
    for index in range(worlds):
        world = Worlds(1, torch.Generator().manual_seed(seed + index))
        asked = world.questions(300)
        right = answerer(world.records(rows), asked) == asked.answers
        clear = asked.answers[..., 0] != UNASKED
        shares.append([right[..., 0][clear].float().mean(), right.all(-1)[clear].float().mean()])
    return np.mean(shares, axis=0)


def without_memory(model: Reader) -> Answerer:
    """Return the model alone."""
    return lambda _, asked: model.generate(NoMemory(), (), asked)


def exactly(model: Reader) -> Answerer:
    """Return the model with exact attention to all records. NOT private."""
    return lambda records, asked: model.generate(model.memory, model.context(records), asked)


class Served:
    """A model whose memory is built anew for each world, privately."""

    def __init__(self, model: Reader, entropy: Entropy | None = None) -> None:
        self.model, self._entropy = model, entropy
        self._encoded: dict[bytes, Tensor] = {}  # notes of a world, for more than one ε

    def at(self, epsilon: float) -> Answerer:
        """Return the model with private memories."""

        @torch.no_grad()
        def answer(records: Records, asked: Questions) -> Tensor:
            context = (self.encoded(records.words[0]), self.model.event(records.events[0]))
            served = from_multihead(
                self.model.memory, context, epsilon=epsilon, delta=DELTA, entropy=self._entropy
            )
            return self.model.generate(served, (), asked)

        return answer

    def encoded(self, words: Tensor) -> Tensor:
        """Return the notes of a world, each encoded alone: to the bit, it is its own row."""
        key = words.numpy().tobytes()
        if key not in self._encoded:
            self._encoded[key] = encode_alone(self.model.encoder, note_vectors(words)).rows
        return self._encoded[key]


def trained_embedding(model: Reader) -> Embedding:
    """Return what makes the keys of the model's first head."""

    @torch.no_grad()
    def embed(words: Tensor) -> Tensor:
        keys = model.memory.k_proj(model.encoder(note_vectors(words)))
        return functional.normalize(keys[..., :HEAD_DIM], dim=-1)

    return embed


@dataclass(frozen=True)
class Sizes:
    """How much is done. Without last steps (`fine_steps`) there is one model."""

    steps: int
    fine_steps: int
    records: int  # of a world, in training
    worlds: int
    rows: tuple[int, ...]
    epsilons: tuple[float, ...]
    compared: int = 60


SHORT = Sizes(300, 0, 256, worlds=3, rows=(3_000,), epsilons=(1.0, 4.0))
FULL = Sizes(800, 600, 512, worlds=24, rows=(2_000, 10_000), epsilons=(0.5, 1.0, 4.0))


@dataclass(frozen=True)
class Scores:
    """How often the treatment is right, and the whole answer, at so many records.

    Attributes:
        exact: of the model with exact attention to the records. NOT private.
        alone: of the model without records.
        private: by who answers and at which ε.
    """

    rows: int
    exact: np.ndarray
    alone: np.ndarray
    private: dict[tuple[str, float], np.ndarray]


def trained_models(sizes: Sizes, seed: int) -> tuple[Reader, Reader]:
    """Return the model, its last steps without the noise of a release and with it."""
    torch.manual_seed(seed)
    plain, records = Reader(), sizes.records
    train(plain, sizes.steps, seed=1000 * seed, records=records)
    if not sizes.fine_steps:
        return plain, plain
    aware = copy.deepcopy(plain)
    train(plain, sizes.fine_steps, seed=1000 * seed + 1, records=records)
    release = Rehearsal(rows=2_000, epsilon=2.0, delta=DELTA, heads=HEADS)
    train(aware, sizes.fine_steps, seed=1000 * seed + 1, records=records, rehearsal=release)
    return plain, aware


def answerers(
    aware: Served, plain: Served, rows: int, entropy: Entropy | None
) -> dict[str, Callable[[float], Answerer]]:
    """Return who answers privately: each is made for an ε."""
    trained = trained_embedding(aware.model)
    cells = 32 if rows > 5_000 else 16
    few: dict[str, Callable[[float], Answerer]] = {
        PRIVATE: aware.at,
        BY_WORDS: lambda epsilon: regression(raw_embedding, epsilon, entropy=entropy),
    }
    if aware is plain:
        return few
    return {
        PRIVATE: aware.at,
        "the same, trained without noise": plain.at,
        "private histogram, word vectors": lambda epsilon: histogram(raw_embedding, epsilon, cells),
        BY_WORDS: few[BY_WORDS],
        "private histogram, the model's keys": lambda epsilon: histogram(trained, epsilon, cells),
        "private regression, the model's keys": lambda epsilon: regression(trained, epsilon),
    }


def report(
    model: Reader, shown: dict[str, Callable[[float], Answerer]], rows: int, sizes: Sizes
) -> Scores:
    """Print how often the treatment is right at so many records."""
    exact = score(exactly(model), rows, sizes.worlds)
    alone = score(without_memory(model), rows, sizes.worlds)
    for name, found in (("no memory", alone), ("exact", exact)):
        print(f"| {rows:,} | model, {name} | {cell(found)} |" + " |" * len(sizes.epsilons))
    private = {}
    for name, make in shown.items():
        print(f"| {rows:,} | {name} | |", end="", flush=True)
        for epsilon in sizes.epsilons:
            private[name, epsilon] = score(make(epsilon), rows, sizes.worlds)
            print(f" {cell(private[name, epsilon])} |", end="", flush=True)
        print()
    return Scores(rows, exact, alone, private)


def cell(shares: np.ndarray) -> str:
    """Return a cell of the table."""
    return f"{shares[0]:.3f} ({shares[1]:.2f})"


def conclusion(scores: Scores) -> str:
    """Return what is left of what records teach, in a sentence."""
    gain = scores.exact[0] - scores.alone[0]
    if gain < 0.05:
        return f"{scores.rows:,} records teach the model nothing, and privacy has nothing to take."
    kept = []
    for (name, epsilon), share in scores.private.items():
        if name == PRIVATE:
            left = (share[0] - scores.alone[0]) / gain
            kept.append(f"{'all' if left > 0.995 else f'{left:.0%}'} at ε = {epsilon:g}")
    return f"of what {scores.rows:,} records teach the model, privacy leaves {', '.join(kept)}."


def main(arguments: Sequence[str] | None = None, *, entropy: Entropy | None = None) -> Scores:
    """Run the example, and return what it prints of the most records."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="all there is to see: 6 to 10 minutes")
    parser.add_argument("--seed", type=int, default=1, help="of training (default: 1)")
    options = parser.parse_args(arguments)
    sizes = FULL if options.full else SHORT
    torch.set_num_threads(2 if options.full else 1)
    start = time.monotonic()
    models = trained_models(sizes, options.seed)
    plain = Served(models[0], entropy)
    aware = plain if models[1] is models[0] else Served(models[1], entropy)
    print(f"Trained in {time.monotonic() - start:.0f} s. ", end="")
    print(f"Temperature of the memory: {aware.model.memory.temperatures.item():.2f}.\n")
    print(f"Treatment right (both words right) in {sizes.worlds} new worlds; chance: .2\n")
    titles = ["records", "answered by", "NOT private", *(f"ε = {e:g}" for e in sizes.epsilons)]
    print("| " + " | ".join(titles) + " |\n|" + "---|" * len(titles))
    for rows in sizes.rows:
        scores = report(aware.model, answerers(aware, plain, rows, entropy), rows, sizes)
    print()
    if aware is not plain:
        compare(aware, plain, sizes)
    print(f"{time.monotonic() - start:.0f} s in all.")
    print(f"\nConclusion: {conclusion(scores)}")
    return scores


def compare(aware: Served, plain: Served, sizes: Sizes) -> None:
    """Print what training with the noise brings where records are few."""
    fewest, many = sizes.rows[0], sizes.compared
    with_noise, without_noise = (
        score(each.at(2.0), fewest, many, seed=TEST_SEED + 10_000)[0] for each in (aware, plain)
    )
    print(
        f"At {fewest:,} records and ε = 2, over {many} more worlds: {with_noise:.3f} for the model "
        f"that was trained with noise, {without_noise:.3f} for the one that was not."
    )


if __name__ == "__main__":
    main()
