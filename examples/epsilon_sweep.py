"""How the error falls with ε and with the number of rows: as `plan` predicts, and as measured.

The error of an answer is about 1/(ε·rows): twice the rows allow half the ε. Look for: the last two
columns agree, though `plan` never saw the data. Keys are their own values here, so that an answer
points where the query does. The temperature stays the same in all lines: only ε and rows differ.
"""

import argparse
import pathlib
from collections.abc import Sequence
from itertools import cycle

import numpy as np

import discreet
from discreet.noise import Entropy
from discreet.readers.attention import comparison as oracle

DELTA, DIM = 1e-6, 4
# A kernel that is as good as exact, so that there is no error but the noise.
SETTINGS = {"scale": 2.0, "eps_s": 1e-4}
EPSILONS = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0]
# For each number of rows: what was predicted and what was measured at each ε.
Results = dict[int, list[tuple[float, float]]]


def unit_vectors(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Return points that are spread evenly over the sphere: `plan` assumes such rows."""
    points = rng.normal(size=(rows, DIM))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def predict(rows: int, epsilon: float) -> float:
    """Return the standard error of a number of an answer, before there is any data."""
    plan = discreet.plan(
        rows=rows, key_dim=DIM, value_dim=DIM, epsilon=epsilon, delta=DELTA, **SETTINGS
    )
    return plan.stderr


def measure(rows: int, builds: int, entropy: Entropy | None = None) -> list[float]:
    """Return the root mean square difference from exact attention at each ε. NOT private."""
    rng = np.random.default_rng(rows)
    keys, queries = unit_vectors(rng, rows), unit_vectors(rng, 200)
    exact = oracle.attention(queries, keys, keys, scale=SETTINGS["scale"])
    measured = []
    for epsilon in EPSILONS:
        # Several builds tell more about the noise. An owner builds once: each one spends ε again.
        gaps = [
            discreet.build(
                keys,
                keys,
                epsilon=epsilon,
                delta=DELTA,
                rows_hint=rows,
                entropy=entropy,
                **SETTINGS,
            ).attend(queries)
            - exact
            for _ in range(builds)
        ]
        measured.append(float(np.sqrt(np.mean(np.square(gaps)))))
    return measured


def draw(results: Results, path: pathlib.Path) -> None:
    """Draw error against ε, one line for each number of rows."""
    from matplotlib.figure import Figure

    from discreet import pictures

    figure = Figure(figsize=(4.8, 4.2), layout="constrained")
    axes = figure.subplots()
    pictures.dress(axes)
    looks = (("-", "o", "#0072b2"), ("--", "s", "#222222"), (":", "^", "#d55e00"))
    for (rows, pairs), (dash, marker, colour) in zip(results.items(), cycle(looks), strict=False):
        predicted, measured = zip(*pairs, strict=True)
        axes.loglog(EPSILONS, predicted, dash, color=colour, label=f"{rows:,} rows: predicted")
        axes.loglog(EPSILONS, measured, marker, color=colour, label=f"{rows:,} rows: measured")
    axes.set_title("Error against ε", loc="left", weight="bold", fontsize=12)
    axes.set(xlabel=f"ε (δ = {DELTA:g})", ylabel="standard error of an answer")
    axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    axes.minorticks_off()
    axes.legend(fontsize=8.5, frameon=False, loc="lower left")
    axes.set_ylim(bottom=axes.get_ylim()[0] / 30)  # room for it
    pictures.save(figure, path)


def conclusion(results: Results) -> str:
    """Return the table in a sentence."""
    ratios = [after / before for pairs in results.values() for before, after in pairs]
    falls = [pairs[0][1] / pairs[-1][1] for pairs in results.values()]
    least, most = min(falls), max(falls)
    times = f"{least:.0f} to {most:.0f}" if round(least) != round(most) else f"{least:.0f}"
    return (
        f"what is measured is {min(ratios):.2f} to {max(ratios):.2f} times what `plan` predicted "
        f"before there was any data, and from ε = {EPSILONS[0]:g} to ε = {EPSILONS[-1]:g}, "
        f"{EPSILONS[-1] / EPSILONS[0]:.0f} times as much, the error falls by a factor of {times}."
    )


def main(arguments: Sequence[str] | None = None, *, entropy: Entropy | None = None) -> Results:
    """Run the example, and return what it prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[2_000, 20_000, 100_000])
    parser.add_argument("--builds", type=int, default=4, help="for each measurement (default: 4)")
    parser.add_argument(
        "--picture", type=pathlib.Path, help="also draw a picture in this file (needs matplotlib)"
    )
    options = parser.parse_args(arguments)

    print(f"standard error of an answer; values have length one, scale {SETTINGS['scale']:g}\n")
    print("   rows      ε   predicted   measured")
    results: Results = {}
    for rows in options.rows:
        predicted = [predict(rows, epsilon) for epsilon in EPSILONS]
        results[rows] = list(zip(predicted, measure(rows, options.builds, entropy), strict=True))
        for epsilon, (before, after) in zip(EPSILONS, results[rows], strict=True):
            print(f"{rows:7,} {epsilon:6g} {before:11.2g} {after:10.2g}", flush=True)
    if options.picture:
        draw(results, options.picture)
        print(f"\ndrawn in {options.picture}")
    print(f"\nConclusion: {conclusion(results)}")
    return results


if __name__ == "__main__":
    main()
