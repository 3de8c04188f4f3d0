"""A private classifier without training: test images attend to private training images.

The key of a training image is its pixels, its value is its class (one-hot less 0.1), so the ten
numbers of an answer are votes. Look for: how little accuracy is lost at ε = 1, and that the
temperature (scale) gets sharper as ε grows, up to a logit of 6; `build` chooses it from public
numbers.

Accuracy is a mean over random splits. Each split builds a memory of its own, to measure; an owner
builds once, and pays ε once.
"""

import argparse
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import discreet
from discreet.noise import Entropy
from discreet.readers.attention import comparison as oracle

DELTA = 1e-5
ROWS_HINT = 1350  # three quarters of the data set, whose size is public
VALUE_NORM = 0.9**0.5  # of a one-hot vector less 0.1, whatever the class


@dataclass(frozen=True)
class Accuracy:
    """Shares of test images that are judged right at one ε, one for each split."""

    promise: str
    epsilon: float
    scale: float
    private: list[float]
    exact: list[float]


def measure(
    keys: np.ndarray,
    classes: np.ndarray,
    *,
    epsilon: float,
    splits: int,
    entropy: Entropy | None = None,
) -> Accuracy:
    """Return the accuracy of private memories and of exact attention, which is NOT private."""
    votes = np.eye(10)[classes] - 0.1
    private, exact = [], []
    for seed in range(splits):
        train, test = train_test_split(np.arange(len(keys)), test_size=0.25, random_state=seed)
        memory = discreet.build(
            keys[train],
            votes[train],
            epsilon=epsilon,
            delta=DELTA,
            value_norm=VALUE_NORM,
            rows_hint=ROWS_HINT,
            entropy=entropy,
        )
        answers = memory.attend(keys[test])
        truth = oracle.attention(keys[test], keys[train], votes[train], scale=memory.scale)
        private.append(float(np.mean(answers.argmax(axis=1) == classes[test])))
        exact.append(float(np.mean(truth.argmax(axis=1) == classes[test])))
    return Accuracy(str(memory.guarantee), epsilon, memory.scale, private, exact)


def conclusion(found: Sequence[Accuracy]) -> str:
    """Return the table in a sentence."""
    said = []
    for each in found:
        private, exact = np.mean(each.private), np.mean(each.exact)
        said.append(f"{private:.3f} at ε = {each.epsilon:g} ({1 - private / exact:.0%} lost)")
    return (
        f"a private memory, never trained, judges a share of {', '.join(said)} of images right; "
        "guessing, a tenth."
    )


def main(
    arguments: Sequence[str] | None = None, *, entropy: Entropy | None = None
) -> list[Accuracy]:
    """Run the example, and return what it prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=8, help="random splits (default: 8)")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.5, 1.0, 2.0, 4.0, 8.0])
    options = parser.parse_args(arguments)

    images, classes = load_digits(return_X_y=True)
    keys = images / 16 - 0.5  # pixels are between 0 and 16, by definition
    keys /= np.linalg.norm(keys, axis=1, keepdims=True)

    print("accuracy on test images, mean over splits (exact attention is NOT private)\n")
    print("    ε   scale   private   exact, same scale")
    found = []
    for epsilon in options.epsilon:
        with warnings.catch_warnings():
            # Predicted for some at ε = 0.5: what that costs is what is measured here.
            warnings.simplefilter("ignore", discreet.MostlyNoiseWarning)
            each = measure(keys, classes, epsilon=epsilon, splits=options.splits, entropy=entropy)
        found.append(each)
        private, exact = np.mean(each.private), np.mean(each.exact)
        print(f"{epsilon:5g} {each.scale:7.3g} {private:9.3f} {exact:19.3f}", flush=True)
    print(f"\nOne of these memories promises: {found[-1].promise}")
    print(f"\nConclusion: {conclusion(found)}")
    return found


if __name__ == "__main__":
    main()
