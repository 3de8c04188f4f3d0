"""An attacker who knows everybody else, and asks thousands of adaptive questions.

One patient's record hides among 1,000: a key (an unknown direction) and one of 16 diagnoses. The
attacker knows all other rows and every public setting. She subtracts what the others contribute to
an answer, climbs towards the direction where most is left, and reads the diagnosis there. A second
attacker is told the key, and need not search. Each attack is on another patient and a memory with
noise of its own. Look for: exact attention gives the diagnosis away
every time; a memory at small ε hardly at all, and never more often than (ε, δ) allows; a memory at
ε = 64 gives it away again. The noise is drawn once, so asking again does not average it out.

The bound: if guesses are right with probability p on average over 16 equally likely diagnoses, and
any two of them are neighbours, p ≤ (e^ε + 15·δ)/(e^ε + 15). Without any answer, p = 1/16.
"""

import argparse
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest

import discreet
from discreet.noise import Entropy
from discreet.readers.attention import comparison as oracle
from discreet.testing import Silent

ROWS, DIM, BITS, SCALE, DELTA = 1_000, 4, 4, 3.0, 1e-6
ROUNDS, CANDIDATES = 40, 50  # of her search
QUESTIONS = ROUNDS * (CANDIDATES + 1) + 1  # and the last, for the diagnosis
CHANCE = 1 / 2**BITS

# From queries of all attacks, shape (attacks, m, DIM), to what each target alone adds to the sums,
# shape (attacks, m, BITS).
Leftover = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Outcome:
    """Attacks on exact attention (ε is None) or on memories, and how often they succeeded."""

    epsilon: float | None
    trials: int
    searched: int
    told: int
    cosine: float

    @property
    def name(self) -> str:
        """What was attacked."""
        return "exact" if self.epsilon is None else f"ε = {self.epsilon:g}"

    @property
    def allowed(self) -> float:
        """The largest probability of a right guess under (ε, δ)."""
        if self.epsilon is None:
            return 1.0
        others, most = 2**BITS - 1, math.exp(self.epsilon)
        return (most + others * DELTA) / (most + others)

    def interval(self, count: int) -> tuple[float, float]:
        """Return the 95% interval of a share."""
        low, high = binomtest(count, self.trials).proportion_ci()
        return float(low), float(high)


def unit(vectors: np.ndarray) -> np.ndarray:
    """Return the vectors with length one."""
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def make_rows(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return keys of length one, and diagnoses as BITS signs, of length one together."""
    signs = rng.choice([-1.0, 1.0], size=(count, BITS))
    return unit(rng.normal(size=(count, DIM))), signs / math.sqrt(BITS)


def search(leftover: Leftover, trials: int, rng: np.random.Generator) -> np.ndarray:
    """Return the direction where most is left: each question depends on the answers before."""
    best = unit(rng.normal(size=(trials, 1, DIM)))
    for attempt in range(ROUNDS):
        steps = 0.85**attempt * rng.normal(size=(trials, CANDIDATES, DIM))
        candidates = np.concatenate([best, unit(best + steps)], axis=1)
        most = np.argmax(np.linalg.norm(leftover(candidates), axis=-1), axis=1)
        best = candidates[np.arange(trials), most][:, None]
    return best


def exact_leftover(keys: np.ndarray, values: np.ndarray) -> Leftover:
    """Return what she sees of exact attention, less the others: the target's term. NOT private."""
    targets = (keys[:, None], values[:, None])
    return lambda queries: oracle.attention_sums(queries, *targets, scale=SCALE)[0]


def private_leftover(
    others: tuple[np.ndarray, np.ndarray],
    targets: tuple[np.ndarray, np.ndarray],
    epsilon: float,
    entropy: Entropy | None,
) -> Leftover:
    """Return what she sees of memories, less what she computes for the others without noise."""
    options = {"epsilon": epsilon, "delta": DELTA, "scale": SCALE, "rows_hint": ROWS}
    with warnings.catch_warnings():
        # That a large epsilon protects nobody is what the last rows of the table show.
        warnings.simplefilter("ignore", discreet.PrivacyLeakWarning)
        memories = [
            discreet.build(
                np.vstack([key, others[0]]),
                np.vstack([value, others[1]]),
                neighbours="replace",
                entropy=entropy,
                **options,
            )
            for key, value in zip(*targets, strict=True)
        ]
        known = discreet.build(*others, neighbours="replace", entropy=Silent(), **options)

    def leftover(queries: np.ndarray) -> np.ndarray:
        # Read plainly, answers are linear in what was released: nothing of a row is lost to her.
        seen = [memory.plain.sums(each)[0] for memory, each in zip(memories, queries, strict=True)]
        return np.stack(seen) - known.plain.sums(queries)[0]

    return leftover


def attack(epsilon: float | None, trials: int, entropy: Entropy | None = None) -> Outcome:
    """Return how often searching, and being told the key, give the diagnosis."""
    rng = np.random.default_rng(0)
    others = make_rows(rng, ROWS - 1)
    keys, values = make_rows(rng, trials)  # a target for each attack
    if epsilon is None:
        leftover = exact_leftover(keys, values)
    else:
        leftover = private_leftover(others, (keys, values), epsilon, entropy)
    found = search(leftover, trials, rng)
    searched, told = (
        int(np.sum(np.all((leftover(where)[:, 0] > 0) == (values > 0), axis=1)))
        for where in (found, keys[:, None])
    )
    return Outcome(epsilon, trials, searched, told, float(np.median(np.sum(found[:, 0] * keys, 1))))


def conclusion(exact: Outcome, private: Sequence[Outcome]) -> str:
    """Return the table in a sentence."""
    first, last = private[0], private[-1]
    low, high = first.interval(first.searched)
    luck = "more than" if low > CHANCE else "less than" if high < CHANCE else "no more than"
    kept = all(
        max(each.interval(n)[0] for n in (each.searched, each.told)) <= each.allowed
        for each in private
    )
    return (
        f"after {QUESTIONS:,} adaptive questions she knows the diagnosis in "
        f"{exact.searched / exact.trials:.1%} of attacks on exact attention, and in "
        f"{first.searched / first.trials:.1%} at {first.name}, {luck} chance explains "
        f"({CHANCE:.1%})"
        + (f"; in {last.searched / last.trials:.1%} at {last.name}" if last is not first else "")
        + (
            "; never more often than (ε, δ) allows."
            if kept
            else "; MORE OFTEN THAN (ε, δ) ALLOWS, so the promise is broken."
        )
    )


def line(outcome: Outcome) -> str:
    """Return a line of the table."""
    shares = ""
    for count in (outcome.searched, outcome.told):
        low, high = outcome.interval(count)
        shares += f"{f'{count / outcome.trials:.1%} ({low:.1%} to {high:.1%})':26}"
    allowed = "everything" if outcome.epsilon is None else f"{outcome.allowed:.1%}"
    return f"{outcome.name:<14}{outcome.cosine:<16.2f}{shares}{allowed}"


def main(
    arguments: Sequence[str] | None = None, *, entropy: Entropy | None = None
) -> list[Outcome]:
    """Run the example, and return what it prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=150, help="attacks at each ε (default: 150)")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.5, 1.0, 4.0, 16.0, 64.0])
    options = parser.parse_args(arguments)

    print(
        f"diagnosis guessed right in {options.trials} attacks (95% interval); "
        f"{CHANCE:.1%} by chance\n"
    )
    titles = ("", "cosine to key", "key searched", "key known", "(ε, δ) allows")
    print("{:<14}{:<16}{:<26}{:<26}{}".format(*titles))
    outcomes = []
    for epsilon in (None, *options.epsilon):
        outcomes.append(attack(epsilon, options.trials, entropy))
        print(line(outcomes[-1]), flush=True)
    print(f"\nConclusion: {conclusion(outcomes[0], outcomes[1:])}")
    return outcomes


if __name__ == "__main__":
    main()
