"""Good or bad? Film reviews judged by private reviews, through a real sentence encoder.

Each private review is a row: its key is its embedding (384 numbers), its value is +1 (good) or -1
(bad). A new review attends to all of them, and the sign of the answer is its verdict. Look for:
how close private accuracy comes to exact attention at the same temperature, and what a sharper
softmax would give, which takes far more rows to be private.

Two things that matter with embeddings come from public reviews (Rotten Tomatoes, never among the
private rows, which are from IMDB): the mean that is subtracted, since embeddings share one, and
the temperature, which is tried out on them. `plan` recommends a temperature for rows that form
clear groups; good and bad reviews differ too little for that.

The first run embeds the reviews and takes 10 to 20 minutes; later runs read them from the cache.
"""

import argparse
import pathlib

import numpy as np
from review_embeddings import embedded_reviews

import discreet
from discreet.memory import oracle

DELTA = 1e-6
SCALES = [1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0]


def unit(vectors: np.ndarray) -> np.ndarray:
    """Return the vectors with length one: each row alone, no statistic of the others."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def accuracy(answers: np.ndarray, votes: np.ndarray) -> float:
    """Return how often the sign is right."""
    return float(np.mean((answers > 0) == (votes > 0)))


def private_answers(
    queries: np.ndarray, keys: np.ndarray, votes: np.ndarray, *, epsilon: float, scale: float
) -> tuple[np.ndarray, discreet.Guarantee]:
    """Return what a memory answers, and what it promises."""
    memory = discreet.build(keys, votes, epsilon=epsilon, delta=DELTA, scale=scale)
    return memory.attend(queries), memory.guarantee


def exact_answers(
    queries: np.ndarray, keys: np.ndarray, votes: np.ndarray, *, scale: float
) -> np.ndarray:
    """Return exact attention, a few queries at a time. NOT private."""
    parts = np.array_split(queries, max(len(queries) // 250, 1))
    return np.concatenate([oracle.attention(part, keys, votes, scale=scale) for part in parts])


def choose_scale(keys: np.ndarray, votes: np.ndarray, *, epsilon: float, rows: int) -> float:
    """Return the temperature that serves public reviews best, at the noise private ones will have.

    Public data may be built from as often as we like. The error goes with 1/(ε·rows), so fewer
    public rows stand for more private ones at a larger ε.
    """
    half = len(keys) // 2
    alike = min(epsilon * rows / half, 100.0)

    def serves(scale: float) -> float:
        answers, _ = private_answers(
            keys[half:], keys[:half], votes[:half], epsilon=alike, scale=scale
        )
        return accuracy(answers, votes[half:])

    return max(SCALES, key=serves)


def main() -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--private", type=int, default=20_000, help="private reviews")
    parser.add_argument("--test", type=int, default=5_000, help="reviews to judge")
    parser.add_argument("--public", type=int, default=4_000, help="public sentences")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.5, 1.0, 2.0, 4.0])
    parser.add_argument(
        "--cache", type=pathlib.Path, default=pathlib.Path.home() / ".cache" / "discreet"
    )
    options = parser.parse_args()

    public, public_labels = embedded_reviews("rotten_tomatoes", options.public, options.cache)
    total = options.private + options.test
    vectors, labels = embedded_reviews("imdb", total, options.cache)
    mean = public.mean(axis=0)
    public, vectors = unit(public - mean), unit(vectors - mean)
    public_votes, votes = (2.0 * each[:, None] - 1 for each in (public_labels, labels))
    queries, truth = vectors[: options.test], votes[: options.test]
    keys, votes = vectors[options.test :], votes[options.test :]

    print(f"{len(queries):,} reviews judged by {len(keys):,} private ones (exact is NOT private)\n")
    print("    ε   scale   private   exact, same scale")
    for epsilon in options.epsilon:
        scale = choose_scale(public, public_votes, epsilon=epsilon, rows=options.private)
        answers, guarantee = private_answers(queries, keys, votes, epsilon=epsilon, scale=scale)
        private = accuracy(answers, truth)
        exact = accuracy(exact_answers(queries, keys, votes, scale=scale), truth)
        print(f"{epsilon:5g} {scale:7.3g} {private:9.3f} {exact:19.3f}", flush=True)
    sharp = accuracy(exact_answers(queries, keys, votes, scale=15.0), truth)
    print(f"\nexact attention at scale 15 (NOT private): {sharp:.3f}")
    print(f"The last memory promises: {guarantee}")


if __name__ == "__main__":
    main()
