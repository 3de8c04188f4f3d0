"""From private rows to a file that can be given away: plan, build, save, load, attend, card.

20,000 made-up people each have a vector (their taste) and a value (what they spend, and whether
they came back). Anyone may ask "what do people like this do?", as often as they want; nobody can
learn about one person. Look for: the plan, made before any privacy is spent; beside each answer
its standard error against exact attention, noise and feature map together; and the card, which says
what is promised.
"""

import argparse
import pathlib
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import discreet
from discreet.noise import Entropy
from discreet.readers.attention import comparison as oracle

EPSILON, DELTA = 1.0, 1e-6


@dataclass(frozen=True)
class Answers:
    """Spending and coming back for each taste: private with standard errors, and exact."""

    private: np.ndarray
    stderr: np.ndarray
    exact: np.ndarray

    @property
    def worst(self) -> float:
        """The largest difference from exact attention."""
        return float(np.max(np.abs(self.private - self.exact)))

    @property
    def within(self) -> int:
        """How many numbers are within two standard errors of exact attention."""
        return int(np.sum(np.abs(self.private - self.exact) <= 2 * self.stderr))

    @property
    def spread(self) -> float:
        """How far the exact spending of two tastes can be apart."""
        return float(np.ptp(self.exact[:, 0]))


def unit(vectors: np.ndarray) -> np.ndarray:
    """Return the vectors with length one: each row alone, no statistic of the others."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def make_people(tastes: np.ndarray, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return keys of length one around the tastes, and values of length one at most."""
    rng = np.random.default_rng(1)
    taste = rng.integers(len(tastes), size=rows)
    keys = unit(tastes[taste] + 0.2 * rng.normal(size=(rows, tastes.shape[1])))
    spending = 0.1 + 0.15 * taste + rng.uniform(-0.1, 0.1, size=rows)
    came_back = np.where(rng.random(rows) < 0.2 + 0.1 * taste, 0.5, -0.5)
    return keys, np.stack([spending, came_back], axis=1)


def conclusion(answers: Answers) -> str:
    """Return what the answers are worth, in a sentence."""
    clear = answers.worst < answers.spread / 4
    return (
        f"{answers.within} of {answers.exact.size} private numbers are within two standard errors "
        f"of exact attention, the farthest is off by {answers.worst:.3f}; spending differs by "
        f"{answers.spread:.3f} between tastes, so ε = {EPSILON:g} "
        + ("leaves the pattern clear" if clear else "leaves too little of the pattern")
        + ", and protects each person."
    )


def main(arguments: Sequence[str] | None = None, *, entropy: Entropy | None = None) -> Answers:
    """Run the example, and return the answers that it prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000, help="people (default: 20,000)")
    rows = parser.parse_args(arguments).rows
    tastes = unit(np.random.default_rng(0).normal(size=(5, 8)))  # public profiles to ask about
    keys, values = make_people(tastes, rows)

    print("1. Plan: what to expect, from public numbers only\n")
    plan = discreet.plan(rows=rows, key_dim=8, value_dim=2, epsilon=EPSILON, delta=DELTA)
    print(plan)

    # The noise is drawn here, once. `rows_hint` is a public round figure, never a count of the
    # data. (Here it is an option of the script, so it is public.)
    memory = discreet.build(
        keys, values, epsilon=EPSILON, delta=DELTA, rows_hint=rows, entropy=entropy
    )

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "memory.safetensors"
        memory.save(path)
        print(f"\n2. Build and save: {path.stat().st_size:,} bytes, whatever the number of people")
        memory = discreet.load(path)  # anywhere, by anyone

    print("\n3. Attend: private answer ± standard error (exact: for the owner's eyes only)\n")
    private, stderr = memory.attend(tastes, stderr=True)
    exact = oracle.attention(tastes, keys, values, scale=memory.scale)
    for i in range(len(tastes)):
        spent, came_back = (
            f"{private[i, j]:+.3f} ± {stderr[i, j]:.3f} (exact {exact[i, j]:+.3f})" for j in (0, 1)
        )
        print(f"   taste {i}:  spent {spent},  came back {came_back}")

    print("\n4. The card that travels with the file\n")
    print(memory.card)

    answers = Answers(private, stderr, exact)
    print(f"\nConclusion: {conclusion(answers)}")
    return answers


if __name__ == "__main__":
    main()
