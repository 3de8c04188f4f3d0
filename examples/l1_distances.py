"""How far is everyone from a given profile? ℓ1 distances over a census, with the paper's trees.

`DPTreeHighDim` adds noise once to a tree over ages and one over working hours; then any profile
(age, hours per week) can be asked for its mean distance to all people. The profile with the least
is the median person: a choice that many answers go into. Look for: errors within the bound,
and a private choice that costs little more than the best one.

Exact figures are printed to compare; they are NOT private, and an owner keeps them.
"""

import argparse
import pathlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from census import read_people

from discreet.noise import Entropy
from discreet.paper import DPTreeHighDim
from discreet.paper.oracle import high_dim_distance

UPPER = 100.0  # years, and hours a week: public, larger ones are clipped
PROFILES = {
    "student": (20, 15),
    "office worker": (40, 40),
    "two jobs": (35, 70),
    "retired": (75, 5),
}


@dataclass(frozen=True)
class Distances:
    """Mean distances of profiles, private and exact, and medians with what they cost.

    Attributes:
        grid: the private mean distance of every profile of the grid, shape (hours, ages).
        costs: exact mean distances from the private and from the exact median.
    """

    private: np.ndarray
    exact: np.ndarray
    bound: float
    ages: np.ndarray
    hours: np.ndarray
    grid: np.ndarray
    chosen: np.ndarray
    best: np.ndarray
    costs: np.ndarray


def conclusion(found: Distances) -> str:
    """Return what the private distances are worth, in a sentence."""
    gaps, more = np.abs(found.private - found.exact), found.costs[0] - found.costs[1]
    return (
        f"{np.sum(gaps <= found.bound)} of {len(gaps)} private distances are within the bound of "
        f"{found.bound:.2f}, and the private median person is "
        + ("as good as" if more < 0.005 else f"{more:.2f} farther from everyone than")
        + f" the exact one (mean distance {found.costs[0]:.2f} against {found.costs[1]:.2f})."
    )


def main(arguments: Sequence[str] | None = None, *, entropy: Entropy | None = None) -> Distances:
    """Run the example, and return what it prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--file", help="instead of the census: text, two numbers up to 100 a line")
    parser.add_argument(
        "--cache", type=pathlib.Path, default=pathlib.Path.home() / ".cache" / "discreet"
    )
    options = parser.parse_args(arguments)
    people = np.loadtxt(options.file) if options.file else read_people(options.cache)
    count = len(people)  # public here: neighbours are data sets in which one person is replaced

    trees = DPTreeHighDim(
        people,
        np.ones(count),
        p=1,
        upper=UPPER,
        weight_bound=1.0,
        epsilon=2.0,
        delta=1e-6,
        delta_prime=1e-6,
        c=2.4,  # as large as the composition theorem allows here
        entropy=entropy,
    )
    bound = trees.error_bound(0.95) / count
    print(f"{count:,} people; the same trees promise, for all answers together,")
    print(f"  ε = {trees.guarantee.epsilon:.2f} by the paper's composition")
    print(f"  ε = {trees.tight_guarantee.epsilon:.2f} by tight accounting\n")

    print("mean distance, in years + hours      private     exact   (NOT private)")
    asked = np.array(list(PROFILES.values()), dtype=float)
    private = trees.query(asked) / count
    exact = high_dim_distance(people, np.ones(count), asked, p=1) / count
    for (name, (age, hours)), noisy, true in zip(PROFILES.items(), private, exact, strict=True):
        print(f"  {name:<14} age {age:2}, {hours:2} hours {noisy:14.2f} {true:9.2f}")
    print(f"each is within {bound:.2f} of the exact one, 95% of the time\n")

    ages, hours = np.arange(20.0, 71.0), np.arange(20.0, 61.0)
    profiles = np.stack(np.meshgrid(ages, hours), axis=-1).reshape(-1, 2)
    distances = trees.query(profiles) / count
    chosen = profiles[np.argmin(distances)]
    best = np.median(people, axis=0)
    costs = high_dim_distance(people, np.ones(count), np.stack([chosen, best]), p=1) / count
    print(
        f"private median of {len(profiles):,} profiles: age {chosen[0]:.0f}, {chosen[1]:.0f} hours"
    )
    print(f"exact median (NOT private): age {best[0]:.0f}, {best[1]:.0f} hours")
    print(f"mean distance from the private median {costs[0]:.2f}, from the exact {costs[1]:.2f}")

    grid = distances.reshape(len(hours), len(ages))
    found = Distances(private, exact, bound, ages, hours, grid, chosen, best, costs)
    print(f"\nConclusion: {conclusion(found)}")
    return found


if __name__ == "__main__":
    main()
