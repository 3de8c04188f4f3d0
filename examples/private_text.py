"""Good or bad? Film reviews judged by private reviews, through a real sentence encoder.

Each private review is a row: its key is its embedding (384 numbers), its value is +1 (good) or -1
(bad). A new review attends to all of them, and is good if the answer is above the usual one: the
median answer to public sentences, which costs nothing, since answers are free. Look for: how close
private accuracy comes to exact attention at the same temperature, and what a sharper softmax would
give, at which a memory of this size has nothing but noise and kernel error to say.

Embeddings share a mean, which is subtracted. It comes from public sentences (Rotten Tomatoes, never
among the private rows, which are from IMDB): a mean of the private rows would void the guarantee.
The temperature is the one that `plan` recommends: `scale` is left out, and `rows_hint` is a public
round number.

The first run embeds the reviews; later runs read them from the cache. A run takes the beginnings of
1,100 reviews, which are embedded in about a minute and are few for a memory; `--full` takes more of
25,000 reviews, in 10 to 20 minutes.
"""

import argparse
import pathlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from review_embeddings import embedded_reviews

import discreet
from discreet.noise import Entropy
from discreet.readers.attention import comparison as oracle

DELTA, SHARP = 1e-6, 15.0
# Private reviews, reviews to judge, public sentences, and tokens that are read of each.
SHORT, FULL = (800, 300, 200, 32), (20_000, 5_000, 4_000, 128)


@dataclass(frozen=True)
class Accuracy:
    """Shares of reviews judged right at one ε: by a memory, and exactly at the same scale."""

    epsilon: float
    scale: float
    private: float
    exact: float


def unit(vectors: np.ndarray) -> np.ndarray:
    """Return the vectors with length one: each row alone, no statistic of the others."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def accuracy(answers: np.ndarray, usual: np.ndarray, votes: np.ndarray) -> float:
    """Return how often an answer is on the right side of the median of usual ones."""
    return float(np.mean((answers > np.median(usual)) == (votes > 0)))


def exact_answers(
    queries: np.ndarray, keys: np.ndarray, votes: np.ndarray, *, scale: float
) -> np.ndarray:
    """Return exact attention, a few queries at a time. NOT private."""
    parts = np.array_split(queries, max(len(queries) // 250, 1))
    return np.concatenate([oracle.attention(part, keys, votes, scale=scale) for part in parts])


def conclusion(found: Sequence[Accuracy], sharp: float) -> str:
    """Return the table in a sentence."""
    first, last = found[0], found[-1]
    points = 100 * (sharp - last.private)
    return (
        f"private reviews judge {first.private:.1%} of reviews right at ε = {first.epsilon:g} and "
        f"{last.private:.1%} at ε = {last.epsilon:g}, where exact attention gets {last.exact:.1%}; "
        f"a sharper softmax that is not private, {sharp:.1%}: "
        + (f"{points:.1f} points more." if points > 0 else "no more.")
    )


def main(
    arguments: Sequence[str] | None = None, *, entropy: Entropy | None = None
) -> tuple[list[Accuracy], float]:
    """Run the example, and return what it prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="20,000 private reviews of 128 tokens")
    parser.add_argument("--private", type=int, help="private reviews (default: 800)")
    parser.add_argument("--test", type=int, help="reviews to judge (default: 300)")
    parser.add_argument("--public", type=int, help="public sentences for the mean (default: 200)")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 2.0, 4.0, 8.0])
    parser.add_argument(
        "--cache", type=pathlib.Path, default=pathlib.Path.home() / ".cache" / "discreet"
    )
    options = parser.parse_args(arguments)
    many, test, sentences, tokens = FULL if options.full else SHORT
    many, test = options.private or many, options.test or test

    public, _ = embedded_reviews(
        "rotten_tomatoes", options.public or sentences, options.cache, tokens=tokens
    )
    vectors, labels = embedded_reviews("imdb", many + test, options.cache, tokens=tokens)
    centre = public.mean(axis=0)
    vectors, public = unit(vectors - centre), unit(public - centre)
    votes = 2.0 * labels[:, None] - 1
    queries, truth = vectors[:test], votes[:test]
    keys, votes = vectors[test:], votes[test:]

    print(f"{len(queries):,} reviews judged by {len(keys):,} private ones (exact is NOT private)\n")
    print("    ε   scale   private   exact, same scale")

    def exactly(scale: float) -> float:
        answers = (exact_answers(each, keys, votes, scale=scale) for each in (queries, public))
        return accuracy(*answers, truth)

    found = []
    for epsilon in options.epsilon:
        memory = discreet.build(
            keys, votes, epsilon=epsilon, delta=DELTA, rows_hint=many, entropy=entropy
        )
        private = accuracy(memory.attend(queries), memory.attend(public), truth)
        exact = exactly(memory.scale)
        found.append(Accuracy(epsilon, memory.scale, private, exact))
        print(f"{epsilon:5g} {memory.scale:7.3g} {private:9.3f} {exact:19.3f}", flush=True)
    sharp = exactly(SHARP)
    print(f"\nexact attention at scale {SHARP:g} (NOT private): {sharp:.3f}")
    print(f"The last memory promises: {memory.guarantee}")
    print(f"\nConclusion: {conclusion(found, sharp)}")
    return found, sharp


if __name__ == "__main__":
    main()
