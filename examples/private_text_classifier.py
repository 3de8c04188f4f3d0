"""Good or bad? A classifier made of private film reviews, in ten lines.

A public encoder turns each review into 384 numbers of length one, and `PrivateClassifier` makes
one release of them and their labels. Look for: what a private classifier loses against the same
encoder without privacy, and that nothing was tuned. `private_text.py` does it with a memory.

What is public: the length of embeddings (one, by the encoder), the two classes, and about how many
reviews there are. The first run embeds the reviews, one at a time so that no row depends on
another, which takes some minutes; later runs read them from the cache.
"""

import argparse
import pathlib

from review_embeddings import embedded_reviews
from sklearn.linear_model import LogisticRegression

from discreet.sklearn import PrivateClassifier

DELTA = 1e-5


def main() -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--private", type=int, default=8_000, help="private reviews")
    parser.add_argument("--test", type=int, default=2_000, help="reviews to judge")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.5, 1.0, 2.0, 4.0])
    parser.add_argument(
        "--cache", type=pathlib.Path, default=pathlib.Path.home() / ".cache" / "discreet"
    )
    options = parser.parse_args()

    total = options.private + options.test
    vectors, labels = embedded_reviews("imdb", total, options.cache)
    shown, private = slice(options.test), slice(options.test, None)

    print(f"{options.test:,} reviews judged by {options.private:,} private ones\n")
    print("    ε   accuracy")
    for epsilon in options.epsilon:
        model = PrivateClassifier(
            epsilon, DELTA, norm=1.0, classes=[0, 1], rows_hint=options.private
        )
        model.fit(vectors[private], labels[private])  # one release; each epsilon is another
        print(f"{epsilon:5g} {model.score(vectors[shown], labels[shown]):10.3f}", flush=True)
    exact = LogisticRegression(max_iter=1000).fit(vectors[private], labels[private])
    print(f"\nlogistic regression (NOT private): {exact.score(vectors[shown], labels[shown]):.3f}")
    print(f"The last model promises: {model.guarantee_}")


if __name__ == "__main__":
    main()
