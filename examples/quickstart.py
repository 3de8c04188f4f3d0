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

import numpy as np

import discreet
from discreet.memory import oracle

EPSILON, DELTA = 1.0, 1e-6


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


def main() -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000, help="people (default: 20,000)")
    rows = parser.parse_args().rows
    tastes = unit(np.random.default_rng(0).normal(size=(5, 8)))  # public profiles to ask about
    keys, values = make_people(tastes, rows)

    print("1. Plan: what to expect, from public numbers only\n")
    plan = discreet.plan(rows=rows, key_dim=8, value_dim=2, epsilon=EPSILON, delta=DELTA)
    print(plan)

    # The noise is drawn here, once. `rows_hint` is a public round figure, never a count of the
    # data. (Here it is an option of the script, so it is public.)
    memory = discreet.build(keys, values, epsilon=EPSILON, delta=DELTA, rows_hint=rows)

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "memory.safetensors"
        memory.save(path)
        print(f"\n2. Build and save: {path.stat().st_size:,} bytes, whatever the number of people")
        memory = discreet.load(path)  # anywhere, by anyone

    print("\n3. Attend: private answer ± standard error (exact: for the owner's eyes only)\n")
    answers, stderr = memory.attend(tastes, stderr=True)
    exact = oracle.attention(tastes, keys, values, scale=memory.scale)
    for i in range(len(tastes)):
        spent, came_back = (
            f"{answers[i, j]:+.3f} ± {stderr[i, j]:.3f} (exact {exact[i, j]:+.3f})" for j in (0, 1)
        )
        print(f"   taste {i}:  spent {spent},  came back {came_back}")

    print("\n4. The card that travels with the file\n")
    print(memory.card)


if __name__ == "__main__":
    main()
