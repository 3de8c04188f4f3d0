"""An attacker who knows everybody else, and asks thousands of adaptive questions.

One patient's record hides among 1,000: a key (an unknown direction) and one of 16 diagnoses. The
attacker knows all other rows and every public setting. She subtracts what the others contribute to
an answer, climbs towards the direction where most is left, and reads the diagnosis there. A second
attacker is told the key, and need not search. Look for: exact attention gives the diagnosis away
every time; a memory at small ε hardly at all, and never more often than (ε, δ) allows; a memory at
ε = 64 gives it away again. The noise is drawn once, so asking again does not average it out.

The bound: if guesses are right with probability p on average over 16 equally likely diagnoses, and
any two of them are neighbours, p ≤ (e^ε + 15·δ)/(e^ε + 15). Without any answer, p = 1/16.
"""

import argparse
import math
import warnings
from collections.abc import Callable

import numpy as np
from scipy.stats import binomtest

import discreet
from discreet.memory import oracle
from discreet.testing import Silent

ROWS, DIM, BITS, SCALE, DELTA = 1_000, 4, 4, 3.0, 1e-6
ROUNDS, CANDIDATES = 40, 50  # of her search

# From queries, shape (m, DIM), to what the target alone adds to the sums, shape (m, BITS).
Leftover = Callable[[np.ndarray], np.ndarray]


def unit(vectors: np.ndarray) -> np.ndarray:
    """Return the vectors with length one."""
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def search(leftover: Leftover, rng: np.random.Generator) -> np.ndarray:
    """Return the direction where most is left: each question depends on the answers before."""
    best = unit(rng.normal(size=DIM))
    for attempt in range(ROUNDS):
        steps = 0.85**attempt * rng.normal(size=(CANDIDATES, DIM))
        candidates = np.vstack([best, unit(best + steps)])
        best = candidates[np.argmax(np.linalg.norm(leftover(candidates), axis=1))]
    return best


def read(leftover: Leftover, direction: np.ndarray) -> np.ndarray:
    """Return the diagnosis, as BITS signs."""
    return leftover(direction[None])[0] > 0


def exact_leftover(others: tuple, everyone: tuple) -> Leftover:
    """Return what she sees of exact attention. NOT private."""
    return lambda queries: (
        oracle.attention_sums(queries, *everyone, scale=SCALE)[0]
        - oracle.attention_sums(queries, *others, scale=SCALE)[0]
    )


def private_leftover(others: tuple, everyone: tuple, epsilon: float) -> Leftover:
    """Return what she sees of a memory, less what she computes for the others without noise."""
    options = {"epsilon": epsilon, "delta": DELTA, "scale": SCALE, "rows_hint": ROWS}
    with warnings.catch_warnings():
        # That a large epsilon protects nobody is what the last rows of the table show.
        warnings.simplefilter("ignore", discreet.PrivacyLeakWarning)
        memory = discreet.build(*everyone, neighbours="replace", **options)
        known = discreet.build(*others, neighbours="replace", entropy=Silent(), **options)
    return lambda queries: memory.sums(queries)[0] - known.sums(queries)[0]


def attack(epsilon: float | None, trials: int) -> tuple[int, int, float]:
    """Return how often searching and being told the key succeed, and the median cosine found."""
    rng = np.random.default_rng(0)
    found, told, cosines = 0, 0, []
    for _ in range(trials):
        keys = unit(rng.normal(size=(ROWS, DIM)))
        values = rng.choice([-1.0, 1.0], size=(ROWS, BITS)) / math.sqrt(BITS)
        others, everyone = (keys[1:], values[1:]), (keys, values)  # row 0 is the target
        if epsilon is None:
            leftover = exact_leftover(others, everyone)
        else:
            leftover = private_leftover(others, everyone, epsilon)
        direction = search(leftover, rng)
        cosines.append(float(direction @ keys[0]))
        found += bool(np.all(read(leftover, direction) == (values[0] > 0)))
        told += bool(np.all(read(leftover, keys[0]) == (values[0] > 0)))
    return found, told, float(np.median(cosines))


def main() -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=150, help="attacks at each ε (default: 150)")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.5, 1.0, 4.0, 16.0, 64.0])
    options = parser.parse_args()
    trials = options.trials

    print(
        f"diagnosis guessed right in {trials} attacks (95% interval); {1 / 2**BITS:.1%} by chance\n"
    )
    titles = ("", "cosine to key", "key searched", "key known", "(ε, δ) allows")
    print("{:<14}{:<16}{:<26}{:<26}{}".format(*titles))
    for epsilon in (None, *options.epsilon):
        *successes, cosine = attack(epsilon, trials)
        shares = ""
        for count in successes:
            low, high = binomtest(count, trials).proportion_ci()
            shares += f"{f'{count / trials:.1%} ({low:.1%} to {high:.1%})':26}"
        name, bound = "exact", "everything"
        if epsilon is not None:
            most = math.exp(epsilon)
            name, bound = f"ε = {epsilon:g}", f"{(most + 15 * DELTA) / (most + 15):.1%}"
        print(f"{name:<14}{cosine:<16.2f}{shares}{bound}", flush=True)


if __name__ == "__main__":
    main()
