"""How many times faster the samplers are than OpenDP's, in one run on the same machine.

Run: python benchmarks/noise.py [--draws 1000000] [--json PATH]

No ratio is printed unless both sides' draws pass a goodness-of-fit test: a fast sampler of the
wrong law is worth nothing.
"""

import argparse
import json
import pathlib
import statistics
import sys
import time
from collections.abc import Callable

import goodness
import numpy as np
import opendp.prelude as dp
from numpy.typing import NDArray

from discreet.noise import DiscreteLaplace, RoundedGaussian

ALPHA = 1e-6
SCALE = 1e6
REPEATS = 5

Sampler = Callable[[int], NDArray[np.int64]]


def opendp_sampler(kind: str) -> Sampler:
    """Return OpenDP's integer sampler: its mechanism on a vector of zeros."""
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=int))
    if kind == "gaussian":
        mechanism = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=SCALE)
    else:
        mechanism = dp.m.make_laplace(domain, dp.l1_distance(T=int), scale=SCALE)
    return lambda count: np.array(mechanism([0] * count), dtype=np.int64)


def timed(sampler: Sampler, draws: int, repeats: int) -> tuple[float, NDArray[np.int64]]:
    """Return the median time of some runs, and the draws of the last."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        sample = sampler(draws)
        times.append(time.perf_counter() - start)
    return statistics.median(times), sample


def compare(kind: str, draws: int) -> dict[str, float | str]:
    """Measure one law on both sides; exits if either side draws the wrong law."""
    ours, cdf, spread = {
        "gaussian": (
            RoundedGaussian(sigma=SCALE).sample,
            goodness.rounded_gaussian_cdf(SCALE),
            SCALE,
        ),
        "laplace": (
            DiscreteLaplace(scale=SCALE).sample,
            goodness.discrete_laplace_cdf(SCALE),
            1.4 * SCALE,
        ),
    }[kind]
    seconds, sample = timed(ours, draws, REPEATS)
    peer_seconds, peer_sample = timed(opendp_sampler(kind), draws, 1)
    for name, drawn in (("discreet", sample), ("OpenDP", peer_sample)):
        p_values = (
            goodness.chi_square_p_value(drawn, cdf, spread=spread),
            goodness.kolmogorov_smirnov_p_value(drawn, cdf),
        )
        if min(p_values) < ALPHA:
            sys.exit(
                f"{kind}: {name}'s draws do not fit the law (p = {min(p_values):.3g}): no ratio."
            )
    return {
        "law": kind,
        "draws": draws,
        "scale": SCALE,
        "discreet_seconds": seconds,
        "opendp_seconds": peer_seconds,
        "times_faster": peer_seconds / seconds,
    }


def main() -> None:
    """Measure, print, and write the figures if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1_000_000)
    parser.add_argument("--json", type=pathlib.Path, help="also write the figures to this file")
    arguments = parser.parse_args()
    results = [compare(kind, arguments.draws) for kind in ("gaussian", "laplace")]
    print(f"{arguments.draws:,} draws at scale {SCALE:g}; every sample fits its law.")
    for result in results:
        print(
            f"{result['law']:>9}: discreet {result['discreet_seconds']:.3f} s, "
            f"OpenDP {result['opendp_seconds']:.2f} s, {result['times_faster']:.0f} times faster"
        )
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
