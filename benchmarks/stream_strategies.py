"""Strategies of noise that is correlated over time, for sums that are released at every step.

Run: python benchmarks/stream_strategies.py. It prints the factors of the shipped table
src/discreet/noise/strategies.json and checks them; with --write it first makes the table anew.

A strategy is a few pairs of whole numbers (a, W), for λ = a/2³⁰ and s = W/2¹⁶. It stands for the
coefficients m_0 = 1, m_k = Σ s λ^(k-1), and adds w_t = z_t - Σ s u(t) to what arrives at step t,
where u(t+1) = λ u(t) + w_t and z is independent noise. A factor is the standard deviation of the
noise on a released sum, times the norm of m over all steps; one release of one sum has factor 1.
There are three kinds of released sum:

- prefix T: everything so far, at step T, where its noise is largest;
- window w: the last w steps, for ever;
- half-life h: everything so far, each step weighing 2^(-1/h) of the next, for ever.
"""

import argparse
import functools
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit

Array = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Pairs = tuple[Whole, Whole]

TABLE = Path(__file__).parents[1] / "src" / "discreet" / "noise" / "strategies.json"
COMMENT = (
    "Public constants of noise that is correlated over time, "
    "made by benchmarks/stream_strategies.py."
)
# Two an octave, and two more among the shortest, where half an octave off costs most.
PREFIXES = tuple(sorted({19, 27, *(round(2 ** (k / 2)) for k in range(8, 41))}))
WINDOWS = (2, 4, 7, 11, 16, 22, 30, 45, 64, 90, 128, 180, 256, 365, 512, 730, 1024, 2048, 4096)
HALF_LIVES = (1, 2, 4, 7, 14, 30, 60, 120, 365, 1024)
TARGETS = (
    *(("prefix", size) for size in PREFIXES),
    *(("window", size) for size in WINDOWS),
    *(("half-life", size) for size in HALF_LIVES),
)
BARS = {  # the largest factor that the best entry may have
    ("prefix", 365): 2.97,
    ("window", 7): 1.88,
    ("window", 30): 2.53,
    ("window", 90): 3.03,
    ("half-life", 7): 1.47,
    ("half-life", 14): 1.66,
    ("half-life", 30): 1.88,
}

A_ONE = 2**30  # what stands for λ = 1
W_ONE = 2**16  # what stands for s = 1
PAIRS = 4  # as many as a strategy may have ...
MORE_PAIRS = 5  # ... and for a prefix that would else miss NEAR
NEAR = 1.013  # a prefix at its own horizon, over the square-root factorisation
NEAR_BETWEEN = 1.014  # the same at any horizon, with the best entry
WORTH = 1.001  # one more pair has to gain more than this
ROUNDING = 1.0005  # whole numbers may not cost more than this
STEP = 1e-5  # of the differences that stand for derivatives
DOUBLINGS = 40  # 2⁴⁰ steps stand for ever


# Factors: of many strategies at once, one a row, as q = 1 - λ and s.


def outer(x: Array, y: Array) -> Array:
    """Return the products of every two entries of each row."""
    return np.asarray(x[:, :, None] * y[:, None, :])


def transposed(x: Array) -> Array:
    """Return each matrix the other way round."""
    return np.swapaxes(x, 1, 2)


def norms(q: Array, s: Array) -> Array:
    """Return the squared norm of the coefficients over all steps."""
    apart = q[:, :, None] + q[:, None, :] - outer(q, q)  # 1 - λ_i λ_j without cancellation
    return np.asarray(1 + np.sum(outer(s, s) / apart, axis=(1, 2)))


def system(q: Array, s: Array, keep: float) -> Array:
    """Return the matrices that carry (u, d) one step on, where d_t = keep d_(t-1) + w_t."""
    rows, pairs = q.shape
    step = np.zeros((rows, pairs + 1, pairs + 1))
    step[:, :, :pairs] = -s[:, None, :]
    step[:, range(pairs), range(pairs)] += 1 - q
    step[:, pairs, pairs] = keep
    return step


def after(step: Array, steps: int) -> tuple[Array, Array]:
    """Return the covariance after some steps from zero, and the matrix that carries so far.

    Args:
        step: The matrix of one step, which adds the same unit noise to every entry.
        steps: How many, at least 1.
    """
    noise = np.ones_like(step)
    covariance, power = noise, step
    for bit in format(steps, "b")[1:]:
        covariance = covariance + power @ covariance @ transposed(power)
        power = power @ power
        if bit == "1":
            covariance = noise + step @ covariance @ transposed(step)
            power = step @ power
    return covariance, power


def stationary(step: Array) -> Array:
    """Return the covariance after very many steps."""
    covariance, power = np.ones_like(step), step
    for _ in range(DOUBLINGS):
        if np.max(np.abs(power)) < 1e-12:
            break
        covariance = covariance + power @ covariance @ transposed(power)
        power = power @ power
    return covariance


def variances(kind: str, size: float, q: Array, s: Array) -> Array:
    """Return the variance of the noise on a released sum, of unit noise z.

    Args:
        kind: "prefix", "window" or "half-life".
        size: Its horizon, width or half-life in steps.
        q: 1 - λ, one strategy a row.
        s: The weights beside them.
    """
    if kind == "half-life":
        return stationary(system(q, s, 2 ** (-1 / size)))[:, -1, -1]
    step = system(q, s, 1.0)
    covariance, power = after(step, int(size))
    if kind == "prefix":
        return covariance[:, -1, -1]
    before = power[:, -1, :-1]  # what u at the start of the window adds to its sum
    old = np.sum(outer(before, before) * stationary(step[:, :-1, :-1]), axis=(1, 2))
    return np.asarray(old + covariance[:, -1, -1])


def factors(kind: str, size: float, q: Array, s: Array) -> Array:
    """Return the factor of each strategy for one target."""
    return np.sqrt(norms(q, s) * variances(kind, size, q, s))


def figure(kind: str, size: float, pairs: Pairs) -> float:
    """Return the factor of a strategy of whole numbers."""
    a, weights = pairs
    return float(factors(kind, size, (A_ONE - a[None]) / A_ONE, weights[None] / W_ONE)[0])


@functools.cache
def square_roots(longest: int) -> Array:
    """Return the factor of the square-root factorisation at horizons 1 .. longest."""
    k = np.arange(1, longest)
    coefficients = np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k))])
    return np.cumsum(coefficients**2)


def square_root(horizon: int) -> float:
    """Return the factor of the square-root factorisation at a horizon."""
    return float(square_roots(PREFIXES[-1])[horizon - 1])


# The search: over real numbers, which are then rounded.


def decoded(x: Array) -> tuple[Array, Array]:
    """Return q and s, with 0 < q < 1 and Σ s < 1, for rows of unbounded numbers."""
    pairs = x.shape[1] // 2
    raised = np.exp(np.clip(x[:, pairs:], -30, 30))
    return expit(np.clip(x[:, :pairs], -20, 20)), raised / (1 + raised.sum(axis=1, keepdims=True))


def objective(kind: str, size: float) -> Callable[[Array], tuple[float, Array]]:
    """Return the function that gives the logarithm of a target's factor, and its slope."""

    def value(x: Array) -> tuple[float, Array]:
        shifts = STEP * np.eye(len(x))
        found = np.log(factors(kind, size, *decoded(np.vstack([x, x + shifts, x - shifts]))))
        return float(found[0]), (found[1 : len(x) + 1] - found[len(x) + 1 :]) / (2 * STEP)

    return value


def starts(size: float, pairs: int) -> Iterator[Array]:
    """Yield where to start: λ in even ratios of 1 - λ, as the square root's would be."""
    generator = np.random.default_rng(pairs)
    for slowest in (0.3, 1.0, 3.0):
        for fastest in (0.8, 0.3):
            q = np.geomspace(fastest, min(0.2, slowest / size), pairs)
            s = np.sqrt(q)
            s *= 0.5 / s.sum()
            start = np.concatenate([np.log(q / (1 - q)), np.log(s / 0.5)])
            yield start + 0.1 * generator.standard_normal(2 * pairs)


def rounded(x: Array) -> Pairs:
    """Return the nearest whole numbers, a in rising order, with Σ W at most 2¹⁶."""
    q, s = (row[0] for row in decoded(x[None]))
    order = np.argsort(-q)
    a = np.clip(np.rint(A_ONE * (1 - q[order])), 1, A_ONE - 1).astype(np.int64)
    weights = np.maximum(np.rint(W_ONE * s[order]), 1).astype(np.int64)
    weights[np.argmax(weights)] -= max(0, int(weights.sum()) - W_ONE)
    return a, weights


def best_of(kind: str, size: float, pairs: int) -> Pairs:
    """Return the best strategy of so many pairs that was found for a target."""
    function = objective(kind, size)
    ends = [
        minimize(function, start, jac=True, method="BFGS", options={"maxiter": 300})
        for start in starts(size, pairs)
    ]
    best = min(ends, key=lambda end: float(end.fun))
    found = rounded(np.asarray(best.x))
    lost = figure(kind, size, found) / np.exp(float(best.fun))
    if lost > ROUNDING:
        raise ArithmeticError(f"rounding costs {kind} {size} with {pairs} pairs {lost - 1:.3%}")
    return found


def strategy(kind: str, size: float) -> Pairs:
    """Return the strategy for a target: the fewest pairs that serve it about as well as more do."""
    tried = [best_of(kind, size, pairs) for pairs in range(1, PAIRS + 1)]
    goal = np.inf if kind != "prefix" else NEAR * square_root(int(size))
    if figure(kind, size, tried[-1]) > goal:
        tried.append(best_of(kind, size, MORE_PAIRS))
    reached = [figure(kind, size, pairs) for pairs in tried]
    enough = WORTH * min(reached)
    if min(reached) <= goal:
        enough = min(enough, goal)
    return next(pairs for pairs, factor in zip(tried, reached, strict=True) if factor <= enough)


# The table, and what is printed.


def write(strategies: list[tuple[str, Pairs]]) -> None:
    """Write the table, one strategy a line."""
    lines = [
        json.dumps({"a": pairs[0].tolist(), "W": pairs[1].tolist(), "for": target})
        for target, pairs in strategies
    ]
    body = ",\n".join(f"  {line}" for line in lines)
    TABLE.write_text(
        f'{{\n "comment": {json.dumps(COMMENT)},\n "strategies": [\n{body}\n ]\n}}\n',
        encoding="utf-8",
    )


def read() -> list[tuple[str, Pairs]]:
    """Return the targets and strategies of the shipped table."""
    content: dict[str, Any] = json.loads(TABLE.read_text(encoding="utf-8"))
    return [
        (str(one["for"]), (np.array(one["a"], np.int64), np.array(one["W"], np.int64)))
        for one in content["strategies"]
    ]


def optimised() -> list[tuple[str, Pairs]]:
    """Return a strategy for every target, telling on standard error how far it is."""
    strategies = []
    for kind, size in TARGETS:
        began = time.perf_counter()
        pairs = strategy(kind, size)
        strategies.append((f"{kind} {size}", pairs))
        took = time.perf_counter() - began
        print(f"{kind} {size}: {took:.1f} s", file=sys.stderr, flush=True)
    return strategies


def pick(kind: str, size: float, strategies: list[tuple[str, Pairs]]) -> tuple[float, str, Pairs]:
    """Return the least factor for a target, and the entry that has it."""
    found = [(figure(kind, size, pairs), target, pairs) for target, pairs in strategies]
    return min(found, key=lambda one: one[0])


def show_factors(strategies: list[tuple[str, Pairs]]) -> None:
    """Print the factor of each entry for its own target."""
    print("| for | pairs | factor | square root | above it |")
    print("|---|---|---|---|---|")
    for target, pairs in strategies:
        kind, size = target.rsplit(" ", 1)
        factor = figure(kind, float(size), pairs)
        beside = "| |"
        if kind == "prefix":
            root = square_root(int(size))
            missed = ", not within 1.3%" if factor > NEAR * root else ""
            beside = f"{root:.4f} | {factor / root - 1:.2%}{missed} |"
        print(f"| {target} | {len(pairs[0])} | {factor:.4f} | {beside}")


def show_checks(strategies: list[tuple[str, Pairs]]) -> None:
    """Print the bars, and the best entries at horizons between those of the table."""
    for (kind, size), bar in BARS.items():
        factor, target, _ = pick(kind, size, strategies)
        said = "within" if factor <= bar else "above"
        print(f"{kind} {size}: {factor:.4f} with {target}, {said} {bar}")
    _, target, pairs = pick("prefix", 365, strategies)
    print(f"window 30 with {target}: {figure('window', 30, pairs):.4f}")
    horizons = np.unique(np.rint(np.geomspace(PREFIXES[0], PREFIXES[-1], 200)).astype(np.int64))
    ratios = [pick("prefix", int(t), strategies)[0] / square_root(int(t)) for t in horizons]
    worst = int(np.argmax(ratios))
    said = "within" if ratios[worst] <= NEAR_BETWEEN else "not within"
    print(
        f"{len(horizons)} horizons from {horizons[0]} to {horizons[-1]}: at most "
        f"{ratios[worst] - 1:.2%} above the square root (at {horizons[worst]}), "
        f"{said} {NEAR_BETWEEN - 1:.1%}"
    )


def main() -> None:
    """Make the table if asked to, then print its factors and the checks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--write", action="store_true", help="make the table anew")
    if parser.parse_args(sys.argv[1:]).write:
        write(optimised())
    strategies = read()
    show_factors(strategies)
    show_checks(strategies)


if __name__ == "__main__":
    main()
