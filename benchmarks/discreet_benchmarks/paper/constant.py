"""Where the paper's noise goes: the factor between its accounting and a tight one, in parts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from discreet import paper
from discreet.errors import DiscreetError
from discreet.paper.options import Noise
from discreet.pictures.style import legend_below
from discreet.testing import Silent
from discreet_benchmarks.paper import forecast, page
from discreet_benchmarks.paper.attention import Setting, rows_and_weights, structure
from discreet_benchmarks.paper.forecast import Design, design_of, worst_noise
from discreet_benchmarks.paper.page import Size, claim, number, paragraph, table, times

_SETTINGS = ((256, 2), (1024, 2), (4096, 2), (1024, 4))

# What each step of the way from the paper's noise to the tight one changes, and nothing else: its
# name in the picture, its colour there, and the head of its column.
STEPS = (
    ("c: from 0.1 to all of its third of ε", page.BLUE, "c to its third"),
    ("c: the idle third of ε as well", page.AMBER, "idle third"),
    ("copies: one, not l", page.GREEN, "copies"),
    ("split: δ, δ' and the third for s_w", page.PURPLE, "split"),
    ("composition: privacy loss, not theorems", page.ORANGE, "composition"),
)
_AFTER = ("c = 0.1", "c of its third", "c = largest", "one copy", "all spent", "tight")


@dataclass(frozen=True)
class Parts:
    """The noise of one setting, step by step, and what a structure that is built has.

    Attributes:
        rows: n.
        dim: d.
        copies: l, of the paper's form.
        noise: standard deviation of one copy's denominator at the worst query, after each step.
        gaussian: the same with Gaussian noise, tightly accounted.
        constants: the c of the first three steps.
        at_three: the noise with c = 3 and everything else as in the paper.
        bounds: error bounds of the denominator for all queries together (99%), paper's and tight.
    """

    rows: int
    dim: int
    copies: int
    noise: tuple[float, ...]
    gaussian: float
    constants: tuple[float, ...]
    at_three: float
    bounds: tuple[float, float]

    @property
    def factors(self) -> list[float]:
        """What each step takes off."""
        return [a / b for a, b in zip(self.noise, self.noise[1:], strict=False)]

    @property
    def whole(self) -> float:
        """What all of them take off together."""
        return self.noise[0] / self.noise[-1]


def constant_page(out: Path, size: Size) -> list[str]:
    """Split the factor into its parts, in a table and a picture."""
    found = [parts_of(rows, dim) for rows, dim in (_SETTINGS[:2] if size.quick else _SETTINGS)]
    _picture(found, out / "paper-constant.png")
    return page.section(
        "The constant c, and where the noise goes",
        _takeaway(found),
        paragraph(
            "Standard deviation of one copy's noise in the denominator at the worst query; R = R_w = 1, ε = 1, δ = δ' = 1e-6, "
            "ε_s = 0.1, p_f = 0.01, d_v = d, whole vector, truncated Laplace. From left to right each step changes one thing "
            "and keeps what the steps before have changed; the product of what they take off is the factor in whole. Four of "
            "the columns of noise (c = 0.1, largest c, one copy, tight) are checked against structures that were built; the "
            "other two are formulas."
        ),
        table(["n", "d", "l", *_AFTER], [_noise_cells(each) for each in found]),
        table(
            ["n", "d", *(head for _, _, head in STEPS), "in whole"],
            [
                [each.rows, each.dim, *map(times, each.factors), f"**{times(each.whole)}**"]
                for each in found
            ],
        ),
        page.image(
            "the factor between the paper's noise and the tight one, in parts", "paper-constant.png"
        ),
        _EXPLAINED,
        _bounds_and_gaussian(found),
    )


_EXPLAINED = [
    "- *c to its third*: Algorithm 3 gives the feature trees a third of ε, of which c = 0.1 spends little.",
    '- *idle third*: another third of ε is meant for P_wx, which is post-processing; `c="largest"` spends it.',
    "- *copies*: a median of l copies needs a budget of 1/l each; one copy and a union bound do not.",
    "- *split*: a third of δ and half of δ' are idle, and the trees for s_w get a third of ε, however many features",
    "  there are; here all trees of a structure are alike and all is spent.",
    "- *composition*: the theorems add up the ε of levels, moments and structures; the privacy loss distribution",
    "  composes all nodes at once.",
    "",
]


def _takeaway(found: Sequence[Parts]) -> list[str]:
    at = max(found, key=lambda each: (each.rows, -each.dim))
    by_c = at.factors[0] * at.factors[1]
    return paragraph(
        claim(
            all(each.factors[0] * each.factors[1] > max(each.factors[2:]) for each in found),
            "**No part of the paper's noise is larger than that of its constant c.**",
        ),
        f"At n = {at.rows}, d = {at.dim} the paper's accounting has {times(at.whole)} the noise of a tight account of the "
        f"same trees: {times(by_c)} by c = 0.1, where the theorems allow c = {number(at.constants[2])}, and "
        f"{times(at.whole / by_c)} by all the rest. (With c = 3 it would be {times(at.at_three / at.noise[-1])} in whole.)",
    )


def _noise_cells(parts: Parts) -> list[object]:
    cells = [number(value) for value in parts.noise]
    for step in (1, 2, 3):
        cells[step] += f" (c = {number(parts.constants[step])})"
    return [parts.rows, parts.dim, parts.copies, *cells]


def _bounds_and_gaussian(found: Sequence[Parts]) -> list[str]:
    bounds = [
        f"n = {each.rows}, d = {each.dim}: {number(each.bounds[0])} (paper) and {number(each.bounds[1])} (tight)"
        for each in found
    ]
    ratios = [f"{each.gaussian / each.noise[-1]:.2f}" for each in found]
    return [
        *paragraph(
            "Error bounds of the denominator for all queries together (99%), the median included:",
            "; ".join(bounds) + ".",
        ),
        *paragraph(
            f"With Gaussian noise under the same tight account the noise is {page.listed(ratios)} times that of truncated Laplace "
            "in these settings."
        ),
    ]


def parts_of(rows: int, dim: int) -> Parts:
    """Return the noise of each step, after comparing formulas with structures that are built."""
    setting = Setting(rows=rows, dim=dim, columns=dim)
    one = design_of(setting)
    design = one.as_built()
    constants = (
        0.1,
        forecast.largest_c_of_third(design),
        forecast.largest_c(design),
        forecast.largest_c(one),
    )
    designs = (design, design, design, one, one, one)
    by_c = [forecast.paper_variance(*each) for each in zip(designs, constants, strict=False)]
    nodes = (*by_c, forecast.spent_variance(one), forecast.tight_variance(one))
    built = {
        0: _built(setting, c=0.1),
        2: _built(setting, c="largest"),
        3: _built(setting, c="largest", copies=1),
        5: _built(setting, accounting="tight"),
    }
    for step, built_structure in built.items():
        _check(built_structure, designs[step], nodes[step])
    return Parts(
        rows,
        dim,
        design.copies,
        tuple(map(worst_noise, designs, nodes)),
        worst_noise(one, forecast.tight_variance(one, Noise.GAUSSIAN)),
        constants,
        worst_noise(design, forecast.paper_variance(design, 3.0)),
        (built[0].sums_error_bound(0.99)[1], built[5].sums_error_bound(0.99)[1]),
    )


def _built(setting: Setting, **options: Any) -> paper.DPCrossAttention:  # noqa: ANN401
    """Return a structure over some rows; its noise does not depend on them."""
    rows = rows_and_weights(setting.rows, setting.dim, setting.columns)
    return structure(setting, *rows, Silent(), **options)


def _check(built: paper.DPCrossAttention, design: Design, node: float) -> None:
    """Raise an error if the formulas are not those of a structure that was built."""
    corner = np.ones((1, design.dim))
    at = design.net.snap(corner)
    _, formula = forecast.query_variances(design, at, node=node, totals=0.0)
    _, real = built.variance(corner)
    if not math.isclose(real[0], formula[0], rel_tol=1e-3) or built.copies != design.copies:
        raise DiscreetError(f"The variance by formula, {formula}, is not a structure's, {real}.")


def _picture(found: Sequence[Parts], path: Path) -> None:
    figure, [axis] = page.panels(1, size=(8.6, 1.9 + 0.5 * len(found)))
    for place, each in enumerate(found):
        _bar(axis, place, each)
    axis.set_xscale("log")
    page.plain_ticks(axis.xaxis)
    axis.set_xlim(1, 2.6 * max(each.whole for each in found))
    axis.set_yticks(range(len(found)), [f"n = {each.rows}, d = {each.dim}" for each in found])
    axis.invert_yaxis()
    axis.grid(visible=False, axis="y")
    page.titled(
        axis,
        "The paper's noise over that of a tight account, in parts",
        "times the noise of the tight account",
    )
    legend_below(figure, axis, 2)
    page.save(figure, path)


def _bar(axis: Axes, place: int, parts: Parts) -> None:
    """Draw the factor of one setting, a piece for each step."""
    start = 1.0
    for factor, (name, colour, _) in zip(parts.factors, STEPS, strict=True):
        axis.barh(
            place,
            start * (factor - 1),
            left=start,
            height=0.62,
            color=colour,
            edgecolor="white",
            label=name if place == 0 else None,
        )
        if factor > 1.35:
            axis.text(
                start * math.sqrt(factor),
                place,
                times(factor),
                ha="center",
                va="center",
                color="white",
                fontsize=9,
                weight="bold",
            )
        start *= factor
    whole = times(parts.whole)
    axis.text(start * 1.06, place, whole, ha="left", va="center", color=page.INK, fontsize=10)
