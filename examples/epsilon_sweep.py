"""How the error falls with ε and with the number of rows: as `plan` predicts, and as measured.

The error of an answer is about 1/(ε·rows): twice the rows allow half the ε. Look for: the last two
columns agree, though `plan` never saw the data. Keys are their own values here, so that an answer
points where the query does. The temperature stays the same in all lines: only ε and rows differ.
"""

import argparse

import numpy as np

import discreet
from discreet.memory import oracle

DELTA, DIM = 1e-6, 4
# A kernel that is as good as exact, so that there is no error but the noise.
SETTINGS = {"scale": 2.0, "eps_s": 1e-4}
EPSILONS = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0]


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


def measure(rows: int, builds: int) -> list[float]:
    """Return the root mean square difference from exact attention at each ε. NOT private."""
    rng = np.random.default_rng(rows)
    keys, queries = unit_vectors(rng, rows), unit_vectors(rng, 200)
    exact = oracle.attention(queries, keys, keys, scale=SETTINGS["scale"])
    measured = []
    for epsilon in EPSILONS:
        # Several builds tell more about the noise. An owner builds once: each one spends ε again.
        gaps = [
            discreet.build(
                keys, keys, epsilon=epsilon, delta=DELTA, rows_hint=rows, **SETTINGS
            ).attend(queries)
            - exact
            for _ in range(builds)
        ]
        measured.append(float(np.sqrt(np.mean(np.square(gaps)))))
    return measured


def draw(results: dict[int, list[tuple[float, float]]], path: str) -> None:
    """Draw error against ε, one line for each number of rows."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for rows, pairs in results.items():
        predicted, measured = zip(*pairs, strict=True)
        [line] = axes.loglog(EPSILONS, predicted, label=f"{rows:,} rows, predicted")
        axes.loglog(EPSILONS, measured, "o", color=line.get_color(), label="measured")
    axes.set(xlabel="ε", ylabel="standard error of an answer", title="Error against ε")
    axes.grid(visible=True, which="both", alpha=0.3)
    axes.legend()
    figure.savefig(path)


def main() -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[2_000, 20_000, 100_000])
    parser.add_argument("--builds", type=int, default=4, help="for each measurement (default: 4)")
    parser.add_argument("--picture", help="also draw a picture in this file (needs matplotlib)")
    options = parser.parse_args()

    print(f"standard error of an answer; values have length one, scale {SETTINGS['scale']:g}\n")
    print("   rows      ε   predicted   measured")
    results: dict[int, list[tuple[float, float]]] = {}
    for rows in options.rows:
        predicted = [predict(rows, epsilon) for epsilon in EPSILONS]
        results[rows] = list(zip(predicted, measure(rows, options.builds), strict=True))
        for epsilon, (before, after) in zip(EPSILONS, results[rows], strict=True):
            print(f"{rows:7,} {epsilon:6g} {before:11.2g} {after:10.2g}", flush=True)
    if options.picture:
        draw(results, options.picture)
        print(f"\ndrawn in {options.picture}")


if __name__ == "__main__":
    main()
