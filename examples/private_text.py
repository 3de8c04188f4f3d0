"""Good or bad? Film reviews judged by private reviews, through a real sentence encoder.

Each private review is a row: its key is its embedding (384 numbers), its value is +1 (good) or -1
(bad). A new review attends to all of them, and the sign of the answer is its verdict. Look for:
how close private accuracy comes to exact attention at the same temperature, and what a sharper
softmax would give, at which a memory of this size has nothing but noise and kernel error to say.

Embeddings share a mean, which is subtracted. It comes from public sentences (Rotten Tomatoes, never
among the private rows, which are from IMDB): a mean of the private rows would void the guarantee.
The temperature is the one that `plan` recommends: `scale` is left out, and `rows_hint` is a public
round number.

The first run embeds the reviews and takes 10 to 20 minutes; later runs read them from the cache.
"""

import argparse
import pathlib

import numpy as np
from review_embeddings import embedded_reviews

import discreet
from discreet.memory import oracle

DELTA = 1e-6


def unit(vectors: np.ndarray) -> np.ndarray:
    """Return the vectors with length one: each row alone, no statistic of the others."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def accuracy(answers: np.ndarray, votes: np.ndarray) -> float:
    """Return how often the sign is right."""
    return float(np.mean((answers > 0) == (votes > 0)))


def exact_answers(
    queries: np.ndarray, keys: np.ndarray, votes: np.ndarray, *, scale: float
) -> np.ndarray:
    """Return exact attention, a few queries at a time. NOT private."""
    parts = np.array_split(queries, max(len(queries) // 250, 1))
    return np.concatenate([oracle.attention(part, keys, votes, scale=scale) for part in parts])


def main() -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--private", type=int, default=20_000, help="private reviews")
    parser.add_argument("--test", type=int, default=5_000, help="reviews to judge")
    parser.add_argument("--public", type=int, default=4_000, help="public sentences for the mean")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.5, 1.0, 2.0, 4.0])
    parser.add_argument(
        "--cache", type=pathlib.Path, default=pathlib.Path.home() / ".cache" / "discreet"
    )
    options = parser.parse_args()

    public, _ = embedded_reviews("rotten_tomatoes", options.public, options.cache)
    total = options.private + options.test
    vectors, labels = embedded_reviews("imdb", total, options.cache)
    vectors = unit(vectors - public.mean(axis=0))
    votes = 2.0 * labels[:, None] - 1
    queries, truth = vectors[: options.test], votes[: options.test]
    keys, votes = vectors[options.test :], votes[options.test :]

    print(f"{len(queries):,} reviews judged by {len(keys):,} private ones (exact is NOT private)\n")
    print("    ε   scale   private   exact, same scale")
    for epsilon in options.epsilon:
        memory = discreet.build(
            keys, votes, epsilon=epsilon, delta=DELTA, rows_hint=options.private
        )
        private = accuracy(memory.attend(queries), truth)
        exact = accuracy(exact_answers(queries, keys, votes, scale=memory.scale), truth)
        print(f"{epsilon:5g} {memory.scale:7.3g} {private:9.3f} {exact:19.3f}", flush=True)
    sharp = accuracy(exact_answers(queries, keys, votes, scale=15.0), truth)
    print(f"\nexact attention at scale 15 (NOT private): {sharp:.3f}")
    print(f"The last memory promises: {memory.guarantee}")


if __name__ == "__main__":
    main()
