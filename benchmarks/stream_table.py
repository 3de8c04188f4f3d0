"""What a wrong number of steps costs, people who come more than once, and the best that is known.

Computed, from the constants that streams use.
"""

import math

import numpy as np
from sharing import table
from stream_noise import square_root
from stream_shared import YEAR, Effort, Promise, Report

from discreet.noise.correlated import Participation, Reading, chosen

SHORTEST, LONGEST = 16, 2**20
NEAR = 0.014  # above the square-root factorisation, at the most
DESIGNED = (64, YEAR, 1_024, 4_096, 16_384, 65_536)
COMING = (1, 2, 5, 20, 100, YEAR)
APART = (1, 7, 30)


def factor(designed: int, step: int, participation: Participation | None = None) -> float:
    """Return the noise after a step of a stream that was made for so many, over one release."""
    coming = participation or Participation()
    strategy = chosen(Reading(), coming, steps=designed)
    return coming.sensitivity(strategy) * math.sqrt(Reading().variance(strategy, step))


def measure(effort: Effort) -> Report:
    """Return excesses over the square-root factorisation, wrong horizons and participation."""
    roots = np.square(square_root(LONGEST))  # [t - 1]: Σ_(k<t) c_k² times that of all
    roots = roots / math.sqrt(roots[-1])
    spaced = np.geomspace(SHORTEST, LONGEST, effort.horizons)
    horizons = np.unique(np.rint(spaced).astype(np.int64)).tolist()
    excess = {steps: factor(steps, steps) / float(roots[steps - 1]) - 1 for steps in horizons}
    short = {steps: factor(steps, steps) / float(roots[steps - 1]) - 1 for steps in range(1, 16)}
    worst = max(excess, key=lambda steps: excess[steps])
    return {
        "horizons": len(horizons),
        "excess": excess[worst],
        "at": worst,
        "short_excess": max(short.values()),
        "short_at": max(short, key=lambda steps: short[steps]),
        "wrong": {
            f"{made}": {f"{step}": factor(made, step) for step in DESIGNED} for made in DESIGNED
        },
        "coming": {
            f"{apart}": {
                f"{times}": factor(YEAR, YEAR, Participation(times, apart))
                for times in COMING
                if (times - 1) * apart < YEAR
            }
            for apart in APART
        },
    }


def in_short(report: Report) -> list[str]:
    """Return what to act on."""
    longer, shorter = wrong_costs(report)
    return [
        (
            "- If you do not know how many steps there will be, say too many. 16,384 instead of "
            f"{YEAR} costs {100 * longer:.0f}% more noise; 64 instead of 4,096 costs "
            f"{100 * shorter:.0f}%."
        )
    ]


def wrong_costs(report: Report) -> tuple[float, float]:
    """Return how much more noise there is with far too many steps, and with far too few."""
    wrong = report["wrong"]
    longer = wrong["16384"][f"{YEAR}"] / wrong[f"{YEAR}"][f"{YEAR}"] - 1
    return longer, wrong["64"]["4096"] / wrong["4096"]["4096"] - 1


def page(report: Report) -> list[str]:
    """Return the section of the page."""
    return [
        "### If `steps` is wrong",
        "",
        (
            "Noise of all steps so far, over that of one release: lines are what the stream was "
            "made for, columns how many steps there have been. The guarantee holds in any case."
        ),
        *wrong_table(report),
        "### If people come more than once",
        "",
        *coming_lines(report),
        "### Beside the best that is known",
        "",
        (
            "The constants that the package ships have, at the last step, at most "
            f"{100 * report['excess']:.2f}% more noise than the square-root factorisation: the "
            f"largest of {report['horizons']} horizons from {SHORTEST} to {LONGEST:,} steps, at "
            f"{report['at']:,}. Below {SHORTEST} steps it is at most "
            f"{100 * report['short_excess']:.1f}% (at {report['short_at']})."
        ),
        "",
    ]


def wrong_table(report: Report) -> list[str]:
    """Return the noise of streams for each number of steps, after each."""
    rows = []
    for made, line in report["wrong"].items():
        cells = [f"**{found:.2f}**" if at == made else f"{found:.2f}" for at, found in line.items()]
        rows.append([f"{int(made):,}", *cells])
    return table(["`steps=`", *(f"after {step:,}" for step in DESIGNED)], rows)


def coming_lines(report: Report) -> list[str]:
    """Return what participation costs, after a year."""
    alone = report["coming"]["1"]["1"]
    rows = []
    for times in COMING:
        cells = [report["coming"][f"{apart}"].get(f"{times}") for apart in APART]
        rows.append(
            [
                f"{times}",
                *("–" if each is None else f"{each / alone:.2f} ×" for each in cells),
                f"{math.sqrt(times * YEAR) / alone:.2f} ×",
            ]
        )
    weekly = report["coming"]["7"]["5"] / alone
    apart = [f"at least {each} days apart" if each > 1 else "on any days" for each in APART]
    return [
        (
            f"A year of days; how much noise `participations=` and `separation=` cost, over "
            f"one participation ({alone:.2f} times the noise of one release). Beside it: a release "
            "of each day alone, added up."
        ),
        *table(["days with rows", *apart, "independent steps"], rows),
        (
            f"Five days that are a week apart cost {weekly:.1f} times the noise. With rows on "
            "every day, a stream is no better than a release of each day alone. A cap on all rows "
            "of a lifetime (`lifetime_rows=g`) costs g times the noise, on whatever days they are."
        ),
        "",
    ]


def promises(report: Report) -> list[Promise]:
    """Return what was promised of the constants."""
    return [
        Promise(
            f"noise above the square-root factorisation, {SHORTEST} to 2^20 steps",
            f"at most {100 * NEAR:.1f}%",
            f"{100 * report['excess']:.2f}%",
            kept=report["excess"] <= NEAR,
        )
    ]
