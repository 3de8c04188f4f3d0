"""From how many rows on the paper's attention says something: computed, and measured where it fits."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from discreet import paper
from discreet.errors import DiscreetError
from discreet.noise import Entropy
from discreet.paper.oracle import spread
from discreet.pictures.style import legend_below
from discreet.testing import Seeded, Silent
from discreet_benchmarks.paper import forecast, page
from discreet_benchmarks.paper.attention import Setting, rows_and_weights, structure
from discreet_benchmarks.paper.forecast import Design
from discreet_benchmarks.paper.page import Size, claim, paragraph, power_of_two, table

# A denominator of at least n is clear of noise below this share of n.
_SHARE = 0.1
_DIMS = (1, 2, 4, 8)
_QUERIES = 400
_COLUMNS = 3
# A net so fine that queries stay apart; with one copy it has no part in the noise.
_FINE = 1e-3
_MOST_POWER = 80

Variance = Callable[[Design], float]


@dataclass(frozen=True)
class Account:
    """A reading of the paper's budget.

    Attributes:
        variance: of a feature node.
        start: log2 of the rows at which the search for the first useful n begins.
        marker: in the picture.
        colour: likewise.
    """

    variance: Variance
    start: int
    marker: str
    colour: str


def _largest(design: Design) -> float:
    return forecast.paper_variance(design, forecast.largest_c(design))


ACCOUNTS = {
    "c = 0.1": Account(lambda design: forecast.paper_variance(design, 0.1), 25, "o", page.ORANGE),
    "largest c": Account(_largest, 20, "s", page.AMBER),
    "tight": Account(forecast.tight_variance, 15, "^", page.GREEN),
}
# Kinds of structures, and their names in the picture.
_KINDS = {
    "entry": "one entry, one copy",
    "vector": "the vector, as implemented",
    "proof": "the vector, constants of the proof",
}


def _designs(dim: int) -> dict[tuple[str, str], Design]:
    """Return the design of each kind and account; the number of rows is not yet set."""
    entry, vector = Design(dim, 10, 2), Design(dim, 10, dim + 1)
    kinds = {"entry": entry, "vector": vector.as_built(), "proof": vector.as_proved()}
    designs = {(kind, name): design for kind, design in kinds.items() for name in ACCOUNTS}
    # One copy where the account is tight: it needs no median.
    return designs | {("vector", "tight"): vector}


def useful_page(out: Path, size: Size) -> list[str]:
    """Compute the first useful n for every reading of the paper, and measure one crossing."""
    rows, firsts = [], {}
    for dim in (2,) if size.quick else _DIMS:
        designs = _designs(dim)
        firsts[dim] = {
            (kind, name): first_power(design, ACCOUNTS[name])
            for (kind, name), design in designs.items()
        }
        copies = [designs[kind, "c = 0.1"].copies for kind in ("vector", "proof")]
        features = designs["entry", "tight"].kernel.features
        rows.append([dim, features, *copies, *(f"2^{power}" for power in firsts[dim].values())])
    measured = [_crossing(power, size.builds) for power in size.crossing_powers]
    _picture(measured, out / "paper-useful.png", size)
    head = [f"{kind}: {name}" for kind, name in _designs(2)]
    return page.section(
        "Rows from which the paper's attention says something",
        _takeaway(firsts[2]),
        paragraph(
            "The first n, a power of two, at which the noise of the denominator (standard deviation at the worst query) is below "
            "n/10; R = 1, ε = 1, δ = δ' = 1e-6, ε_s = 0.1, p_f = 0.01. *Entry*: one entry (two structures), one copy. *Vector*: "
            "d_v = d, all d + 1 structures, the median of l copies as implemented (one copy where the account is tight, which needs "
            "no median). *Proof*: the vector with the proof's own number of copies, from (5R/ε_0)^d net points and Chernoff's "
            "exp(-0.1²·0.99·l/2). The noise is that of the answer: of the median, where there are copies. Computed from the "
            'variances, which are checked against structures that were built (section "The constant c").'
        ),
        table(["d", "features r", "l", "l of the proof", *head], rows),
        _measured_words(measured),
    )


def _takeaway(firsts: dict[tuple[str, str], int]) -> list[str]:
    """Say how many rows are needed at d = 2."""
    shown = {key: power_of_two(power) for key, power in firsts.items()}
    return paragraph(
        claim(
            firsts["entry", "tight"]
            < firsts["entry", "largest c"]
            < firsts["entry", "c = 0.1"]
            <= firsts["proof", "c = 0.1"],
            "**How many rows the literal construction needs depends on which of its constants are taken literally**: at "
            f"d = 2, {shown['entry', 'c = 0.1']} for one entry and one copy with c = 0.1, {shown['entry', 'largest c']} with the "
            f"largest c and {shown['entry', 'tight']} with a tight account; {shown['vector', 'c = 0.1']}, "
            f"{shown['vector', 'largest c']} and {shown['vector', 'tight']} for the vector as implemented; and "
            f"{shown['proof', 'c = 0.1']}, {shown['proof', 'largest c']} and {shown['proof', 'tight']} for the vector with the "
            "constants of the proof.",
        )
    )


def _share(design: Design, account: Account, power: int) -> float:
    """Return the noise of the answer with 2^power rows, as a share of them."""
    scaled = design.with_rows(power)
    return forecast.answer_noise(scaled, account.variance(scaled)) / 2.0**power


def first_power(design: Design, account: Account) -> int:
    """Return the first power of two of rows at which the answer's noise is below n/10.

    Noise over n falls with n.
    """
    power = account.start
    while _share(design, account, power) < _SHARE:
        power -= 1
    while _share(design, account, power) >= _SHARE:
        power += 1
        if power > _MOST_POWER:
            raise DiscreetError("Expected the noise to fall below n/10 at some n.")
    return power


@dataclass(frozen=True)
class Crossing:
    """The denominator's noise at one n: measured, computed at the same queries, and at the worst."""

    power: int
    ratio: float
    ratio_error: float
    worst: float

    @property
    def share(self) -> float:
        """The measured noise at the worst query over n: by its ratio to what is computed."""
        return self.ratio * self.worst / 2.0**self.power

    @property
    def share_error(self) -> float:
        """Its standard error."""
        return self.ratio_error * self.worst / 2.0**self.power


def _crossing(power: int, builds: int) -> Crossing:
    """Build one entry, one copy, largest c, d = 2, and compare its sums with those without noise.

    All values are one, so that every column has trees like the denominator's: more noise to measure
    for each build. The part of the noise that all queries share is large.
    """
    keys, _ = rows_and_weights(2**power, 2)
    values = np.ones((2**power, _COLUMNS))
    queries = 1 - 0.5 * spread(_QUERIES, 2, start=0.5)  # the worse half of each coordinate

    def built(entropy: Entropy, columns: int) -> paper.DPCrossAttention:
        options = {"c": "largest", "copies": 1, "eps_0": _FINE, "scope": "entry"}
        return structure(Setting(), keys, values[:, :columns], entropy, **options)

    exact = built(Silent(), 1).sums(queries)[1][:, None]
    squares = []
    for build in range(builds):
        noisy = built(Seeded(build), _COLUMNS)
        noise, variance = (
            np.column_stack(each) for each in (noisy.sums(queries), noisy.variance(queries))
        )
        squares += list(np.mean((noise - exact) ** 2 / variance, axis=0))
    design = Design(2, power, 2)
    ratio = math.sqrt(np.mean(squares))
    error = float(np.std(squares, ddof=1)) / math.sqrt(len(squares)) / (2 * ratio)
    return Crossing(power, ratio, error, forecast.worst_noise(design, _largest(design)))


def _measured_words(measured: list[Crossing]) -> list[str]:
    first, last = measured[0], measured[-1]
    apart = first.share - 2 * first.share_error > _SHARE > last.share + 2 * last.share_error
    where = (
        f"At {power_of_two(first.power)} the noise is clearly above a tenth of n, at {power_of_two(last.power)} clearly below it: the "
        "crossing is where it was computed to be."
        if apart
        else "These sizes are too small, or measured too seldom, to show the crossing."
    )
    return [
        *page.image("noise of the denominator over n", "paper-useful.png"),
        *paragraph(
            "Measured: one entry, one copy, largest c, d = 2; the denominator, and numerators with all values one (their trees are of "
            f"the same kind), against the same structure without noise, {_QUERIES} queries. Measured over computed at these queries, and "
            "by that ratio at the worst one:"
        ),
        *table(
            ["n", "measured / computed noise", "noise at the worst query / n", "computed"],
            [
                [
                    power_of_two(each.power),
                    f"{each.ratio:.2f} ± {each.ratio_error:.2f}",
                    f"{each.share:.3f} ± {each.share_error:.3f}",
                    f"{each.worst / 2**each.power:.3f}",
                ]
                for each in measured
            ],
        ),
        *paragraph(
            claim(
                all(abs(each.ratio - 1) < max(0.25, 4 * each.ratio_error) for each in measured),
                where,
            )
        ),
    ]


def _picture(measured: list[Crossing], path: Path, size: Size) -> None:
    figure, axes = page.panels(3, size=(12, 4.3))
    powers = range(8, 42, 12 if size.quick else 2)
    rows = [2.0**power for power in powers]
    designs = _designs(2)
    for axis, (kind, title) in zip(axes, _KINDS.items(), strict=True):
        for name, account in ACCOUNTS.items():
            axis.plot(
                rows,
                [_share(designs[kind, name], account, power) for power in powers],
                color=account.colour,
                marker=account.marker,
                markersize=3.5,
                label=name,
            )
        axis.axhline(_SHARE, color=page.INK, linestyle=":", label="a tenth of n")
        page.by_ratios(axis)
        axis.set_ylim(1e-7, 1e6)
        page.titled(axis, title, "rows n, d = 2")
    axes[0].plot(
        [2.0**each.power for each in measured],
        [each.share for each in measured],
        linestyle="",
        marker="D",
        color=page.BLUE,
        markersize=6,
        zorder=5,
        label="largest c, measured",
    )
    axes[0].set_ylabel("noise of the denominator / n")
    legend_below(figure, axes[0], 5)
    page.save(figure, path)
