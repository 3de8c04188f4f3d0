"""A trained `torch.nn.MultiheadAttention` whose context becomes private: exact and private outputs.

A small model reads examples of a rule (points and their labels) and labels a new point. It learns
on public rules how to read; then its context is 20,000 private examples of a rule that it has never
seen. `from_multihead` puts them into the same layer, all heads under one guarantee, and the rest of
the model stays as it is. Look for: the outputs of the layer, private against exact, and how often
the label is right with the exact context, with the private one, and without any.

Bounds come from the public rules (`calibrate`). What is longer is clipped, which is private. Bounds
of the weights (`bounds_of`) need no public inputs; they hold for all that there can be, so they are
longer than what occurs, and have more noise.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from discreet.nn import calibrate, from_multihead
from discreet.noise import Entropy

DELTA, DIM, WIDTH, HEADS = 1e-6, 4, 8, 2


@dataclass(frozen=True)
class Served:
    """Outputs of the layer for new points, exact and private, and shares of right labels."""

    epsilon: float
    exact: np.ndarray
    private: np.ndarray
    exact_right: float
    private_right: float
    blind_right: float

    @property
    def error(self) -> float:
        """The typical difference of a private output, in standard deviations of exact ones."""
        gap = np.sqrt(np.mean(np.square(self.private - self.exact)))
        return float(gap / np.std(self.exact - self.exact.mean(axis=0)))


class Model(nn.Module):
    """A point asks, labelled points answer."""

    def __init__(self) -> None:
        super().__init__()
        self.point = nn.Sequential(nn.Linear(DIM, WIDTH), nn.LayerNorm(WIDTH))
        self.label = nn.Embedding(2, WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.out = nn.Linear(WIDTH, 2)

    def context(self, points: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Return what keys and what values are made of: each row of its own example alone."""
        return self.point(points), self.label(labels)

    def forward(self, points: Tensor, *context: Tensor) -> Tensor:
        """Return logits of the labels."""
        return self.out(self.attention(self.point(points), *context, need_weights=False)[0])


def examples_of_a_rule(rules: int, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return points of length one and their labels: on which side of a rule's plane they are."""
    points = functional.normalize(torch.randn(rules, count, DIM, generator=generator), dim=-1)
    planes = torch.randn(rules, DIM, 1, generator=generator)
    return points, ((points @ planes)[..., 0] > 0).long()


def train(steps: int, generator: torch.Generator) -> Model:
    """Return a model that learned on public rules, other ones in every step."""
    torch.manual_seed(0)
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(steps):
        points, labels = examples_of_a_rule(16, 264, generator)
        context = model.context(points[:, 8:], labels[:, 8:])
        logits = model(points[:, :8], *context)
        loss = functional.cross_entropy(logits.flatten(0, 1), labels[:, :8].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


def serve(model: Model, epsilon: float, rows: int, entropy: Entropy | None = None) -> Served:
    """Return what the model makes of a private rule, and of the same rule exactly (NOT private)."""
    public, private = torch.Generator().manual_seed(1), torch.Generator().manual_seed(2)
    points, labels = examples_of_a_rule(1, rows + 2_000, private)
    asked, wanted = points[:, rows:], labels[:, rows:]
    with torch.no_grad():
        query, context = model.point(asked), model.context(points[:, :rows], labels[:, :rows])
        seen = examples_of_a_rule(1, 2_000, public)
        bounds = calibrate(model.attention, (model.point(seen[0]), *model.context(*seen)))
        served = from_multihead(
            model.attention,
            (context[0][0], context[1][0]),
            epsilon=epsilon,
            delta=DELTA,
            bounds=bounds,
            entropy=entropy,
        )
        exact, answer = model.attention(query, *context)[0], served(query)[0]
        right = [
            float((model.out(each).argmax(-1) == wanted).float().mean())
            for each in (exact, answer, torch.zeros_like(exact))
        ]
    return Served(epsilon, exact[0].numpy(), answer[0].numpy(), *right)


def conclusion(found: Sequence[Served]) -> str:
    """Return the table in a sentence."""
    first = found[0]
    lost = round(first.exact_right, 3) - round(first.private_right, 3)  # as they are printed
    return (
        f"at ε = {first.epsilon:g} the model reads {first.private_right:.1%} of labels out of a "
        f"private context, {first.exact_right:.1%} out of the exact one and "
        f"{first.blind_right:.1%} out of none: privacy "
        + (f"costs {100 * lost:.1f} points." if lost > 0 else "costs nothing that shows.")
    )


def main(arguments: Sequence[str] | None = None, *, entropy: Entropy | None = None) -> list[Served]:
    """Run the example, and return what it prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000, help="private examples")
    parser.add_argument("--steps", type=int, default=200, help="of training, on public rules")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.5, 1.0, 4.0])
    options = parser.parse_args(arguments)

    torch.set_num_threads(1)  # layers this small only wait for each other on several
    model = train(options.steps, torch.Generator().manual_seed(0))
    print(f"{options.rows:,} private examples of one rule, 2,000 new points (exact: NOT private)\n")
    print("    ε   right, private   right, exact   error of outputs (1: as large as they differ)")
    found = []
    for epsilon in options.epsilon:
        each = serve(model, epsilon, options.rows, entropy)
        found.append(each)
        print(
            f"{epsilon:5g} {each.private_right:16.3f} {each.exact_right:14.3f} {each.error:18.3f}"
        )
    print(f"\nwithout any context: {found[0].blind_right:.3f}")
    print(f"\nConclusion: {conclusion(found)}")
    return found


if __name__ == "__main__":
    main()
