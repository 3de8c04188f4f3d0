"""Where the paper's noise goes: the factor between its accounting and a tight one, in parts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet import paper
from discreet.bench import paper_noise
from discreet.bench.paper_methods import quietly
from discreet.bench.paper_noise import Design, worst_noise
from discreet.bench.paper_pictures import (
    AMBER,
    BLUE,
    GREEN,
    INK,
    ORANGE,
    PURPLE,
    panels,
    plain_ticks,
    save,
    titled,
)
from discreet.bench.paper_task import rows_and_weights
from discreet.bench.paper_words import claim, listed, number, paragraph, table, times
from discreet.errors import DiscreetError
from discreet.paper.options import Noise
from discreet.testing import Silent

_SETTINGS = ((256, 2), (1024, 2), (4096, 2), (1024, 4))

# What each step of the way from the paper's noise to the tight one changes, and nothing else.
PARTS = (
    "c: from 0.1 to all of its third of ε",
    "c: the idle third of ε as well",
    "copies: one, not l",
    "split: δ, δ' and the third for s_w",
    "composition: privacy loss, not theorems",
)
_COLOURS = (BLUE, AMBER, GREEN, PURPLE, ORANGE)


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


def constant_page(out: Path, *, quick: bool = False) -> list[str]:
    """Split the factor into its parts, in a table and a picture."""
    found = [parts_of(rows, dim) for rows, dim in (_SETTINGS[:2] if quick else _SETTINGS)]
    _picture(found, out / "paper-constant.png")
    at = max(found, key=lambda each: (each.rows, -each.dim))
    by_c = at.factors[0] * at.factors[1]
    gaussian = [each.gaussian / each.noise[-1] for each in found]
    return [
        "## The constant c, and where the noise goes",
        "",
        *paragraph(
            claim(
                all(each.factors[0] * each.factors[1] > max(each.factors[2:]) for each in found),
                "**No part of the paper's noise is larger than that of its constant c.**",
            ),
            f"At n = {at.rows}, d = {at.dim} the paper's accounting has {times(at.whole)} the noise of a tight account of the "
            f"same trees: {times(by_c)} by c = 0.1, where the theorems allow c = {number(at.constants[2])}, and "
            f"{times(at.whole / by_c)} by all the rest. (With c = 3 it would be {times(at.at_three / at.noise[-1])} in whole.)",
        ),
        *paragraph(
            "Standard deviation of one copy's noise in the denominator at the worst query; R = R_w = 1, ε = 1, δ = δ' = 1e-6, "
            "ε_s = 0.1, p_f = 0.01, d_v = d, whole vector, truncated Laplace. From left to right each step changes one thing "
            "and keeps what the steps before have changed; the product of what they take off is the factor in whole. Four of "
            "the columns of noise (c = 0.1, largest c, one copy, tight) are checked against structures that were built; the "
            "other two are formulas."
        ),
        *_noise_table(found),
        *_factor_table(found),
        "![the factor between the paper's noise and the tight one, in parts](paper-constant.png)",
        "",
        "- *c to its third*: Algorithm 3 gives the feature trees a third of ε, of which c = 0.1 spends little.",
        '- *idle third*: another third of ε is meant for P_wx, which is post-processing; `c="largest"` spends it.',
        "- *copies*: a median of l copies needs a budget of 1/l each; one copy and a union bound do not.",
        "- *split*: a third of δ and half of δ' are idle, and the trees for s_w get a third of ε, however many features",
        "  there are; here all trees of a structure are alike and all is spent.",
        "- *composition*: the theorems add up the ε of levels, moments and structures; the privacy loss distribution",
        "  composes all nodes at once.",
        "",
        *paragraph(
            "Error bounds of the denominator for all queries together (99%), the median included:",
            "; ".join(
                f"n = {each.rows}, d = {each.dim}: {number(each.bounds[0])} (paper) and {number(each.bounds[1])} (tight)"
                for each in found
            )
            + ".",
        ),
        *paragraph(
            "With Gaussian noise under the same tight account the noise is "
            + listed([f"{ratio:.2f}" for ratio in gaussian])
            + " times that of truncated Laplace in these settings."
        ),
    ]


def parts_of(rows: int, dim: int) -> Parts:
    """Return the noise of each step, after comparing formulas with structures that are built."""
    one = Design(dim, int(math.log2(rows)), dim + 1)
    design = one.as_built()
    third, largest, alone = (
        paper_noise.largest_c_of_third(design),
        paper_noise.largest_c(design),
        paper_noise.largest_c(one),
    )
    steps = (
        (design, paper_noise.paper_variance(design, 0.1)),
        (design, paper_noise.paper_variance(design, third)),
        (design, paper_noise.paper_variance(design, largest)),
        (one, paper_noise.paper_variance(one, alone)),
        (one, paper_noise.spent_variance(one)),
        (one, paper_noise.tight_variance(one)),
    )
    built = {
        0: _built(design, c=0.1),
        2: _built(design, c="largest"),
        3: _built(one, c="largest", copies=1),
        5: _built(one, accounting="tight"),
    }
    for step, structure in built.items():
        _check(structure, *steps[step])
    noise = tuple(worst_noise(*step) for step in steps)
    return Parts(
        rows,
        dim,
        design.copies,
        noise,
        worst_noise(one, paper_noise.tight_variance(one, Noise.GAUSSIAN)),
        (0.1, third, largest, alone),
        worst_noise(design, paper_noise.paper_variance(design, 3.0)),
        (built[0].sums_error_bound(0.99)[1], built[5].sums_error_bound(0.99)[1]),
    )


def _check(structure: paper.DPCrossAttention, design: Design, node: float) -> None:
    """Raise an error if the formulas are not those of a structure that was built."""
    corner = np.ones((1, design.dim))
    at = design.net.snap(corner)
    _, formula = paper_noise.query_variances(design, at, node=node, totals=0.0)
    _, real = structure.variance(corner)
    if not math.isclose(real[0], formula[0], rel_tol=1e-3) or structure.copies != design.copies:
        raise DiscreetError(f"The variance by formula, {formula}, is not a structure's, {real}.")


def _built(design: Design, **options: Any) -> paper.DPCrossAttention:  # noqa: ANN401
    """Return a structure of this design over some rows; its noise does not depend on them."""
    keys, values = rows_and_weights(2**design.levels, design.dim, design.structures - 1)
    with quietly():
        return paper.DPCrossAttention(
            keys,
            values,
            upper=design.upper,
            value_bound=1.0,
            epsilon=design.budget.epsilon,
            delta=design.budget.delta,
            delta_prime=design.budget.prime,
            eps_s=design.eps_s,
            p_f=design.p_f,
            entropy=Silent(),
            **options,
        )


def _noise_table(found: Sequence[Parts]) -> list[str]:
    head = [
        "n",
        "d",
        "l",
        "c = 0.1",
        "c of its third",
        "c = largest",
        "one copy",
        "all spent",
        "tight",
    ]
    rows = []
    for each in found:
        cells = [number(value) for value in each.noise]
        for step, c in ((1, each.constants[1]), (2, each.constants[2]), (3, each.constants[3])):
            cells[step] += f" (c = {number(c)})"
        rows.append([str(each.rows), str(each.dim), str(each.copies), *cells])
    return table(head, rows)


def _factor_table(found: Sequence[Parts]) -> list[str]:
    head = ["n", "d", "c to its third", "idle third", "copies", "split", "composition", "in whole"]
    return table(
        head,
        [
            [
                str(each.rows),
                str(each.dim),
                *(times(f) for f in each.factors),
                f"**{times(each.whole)}**",
            ]
            for each in found
        ],
    )


def _picture(found: Sequence[Parts], path: Path) -> None:
    figure, [axis] = panels(1, size=(8.6, 1.9 + 0.5 * len(found)))
    for place, each in enumerate(found):
        start = 1.0
        for factor, colour, name in zip(each.factors, _COLOURS, PARTS, strict=True):
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
                middle = start * math.sqrt(factor)
                axis.text(
                    middle,
                    place,
                    times(factor),
                    ha="center",
                    va="center",
                    color="white",
                    fontsize=9,
                    weight="bold",
                )
            start *= factor
        axis.text(
            start * 1.06, place, times(each.whole), ha="left", va="center", color=INK, fontsize=10
        )
    axis.set_xscale("log")
    plain_ticks(axis.xaxis)
    axis.set_xlim(1, 2.6 * max(each.whole for each in found))
    axis.set_yticks(range(len(found)), [f"n = {each.rows}, d = {each.dim}" for each in found])
    axis.invert_yaxis()
    axis.grid(visible=False, axis="y")
    titled(
        axis,
        "The paper's noise over that of a tight account, in parts",
        "times the noise of the tight account",
    )
    figure.legend(
        *axis.get_legend_handles_labels(),
        loc="outside lower left",
        fontsize=9,
        frameon=False,
        labelcolor=INK,
        ncols=2,
    )
    save(figure, path)
