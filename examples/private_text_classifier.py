"""Good or bad? A classifier made of private film reviews, in ten lines.

A public encoder turns each review into 384 numbers of length one, and `PrivateClassifier` makes
one release of them and their labels. Look for: what a private classifier loses against the same
encoder without privacy, and that nothing was tuned. `private_text.py` does it with a memory.

What is public: the length of embeddings (one, by the encoder), the two classes, and about how many
reviews there are. The first run embeds the reviews, one at a time so that no row depends on
another; later runs read them from the cache. A run takes the beginnings of 1,100 reviews, which are
embedded in about a minute; `--full` takes more of 10,000 reviews, in some minutes.
"""

import argparse
import pathlib
from collections.abc import Sequence
from dataclasses import dataclass

from review_embeddings import embedded_reviews
from sklearn.linear_model import LogisticRegression

from discreet.noise import Entropy
from discreet.sklearn import PrivateClassifier

DELTA = 1e-5
# Private reviews, reviews to judge, and tokens that are read of each.
SHORT, FULL = (800, 300, 32), (8_000, 2_000, 128)


@dataclass(frozen=True)
class Accuracies:
    """Shares of reviews judged right: for each ε, and without privacy."""

    private: dict[float, float]
    exact: float


def conclusion(found: Accuracies) -> str:
    """Return the table in a sentence."""
    said = []
    for epsilon, share in found.private.items():
        points = 100 * (found.exact - share)
        cost = f"{points:.1f} points fewer" if points > 0 else "no fewer"
        said.append(f"{share:.1%} at ε = {epsilon:g} ({cost})")
    return (
        f"without privacy {found.exact:.1%} of reviews are judged right, with it "
        f"{', '.join(said)}; a coin, 50%."
    )


def main(arguments: Sequence[str] | None = None, *, entropy: Entropy | None = None) -> Accuracies:
    """Run the example, and return what it prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--full", action="store_true", help="8,000 private reviews, 128 tokens each"
    )
    parser.add_argument("--private", type=int, help="private reviews (default: 800)")
    parser.add_argument("--test", type=int, help="reviews to judge (default: 300)")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 2.0, 4.0, 8.0])
    parser.add_argument(
        "--cache", type=pathlib.Path, default=pathlib.Path.home() / ".cache" / "discreet"
    )
    options = parser.parse_args(arguments)
    many, test, tokens = FULL if options.full else SHORT
    many, test = options.private or many, options.test or test

    vectors, labels = embedded_reviews("imdb", many + test, options.cache, tokens=tokens)
    shown, private = slice(test), slice(test, None)

    print(f"{test:,} reviews judged by {many:,} private ones\n")
    print("    ε   accuracy")
    found = {}
    for epsilon in options.epsilon:
        model = PrivateClassifier(
            epsilon, DELTA, norm=1.0, classes=[0, 1], rows_hint=many, entropy=entropy
        )
        model.fit(vectors[private], labels[private])  # one release; each epsilon is another
        found[epsilon] = float(model.score(vectors[shown], labels[shown]))
        print(f"{epsilon:5g} {found[epsilon]:10.3f}", flush=True)
    exact = LogisticRegression(max_iter=1000).fit(vectors[private], labels[private])
    accuracies = Accuracies(found, float(exact.score(vectors[shown], labels[shown])))
    print(f"\nlogistic regression (NOT private): {accuracies.exact:.3f}")
    print(f"The last model promises: {model.guarantee_}")
    print(f"\nConclusion: {conclusion(accuracies)}")
    return accuracies


if __name__ == "__main__":
    main()
