"""One tree of the paper, level by level, beside the noise of a memory: for the demo's digits."""

import math
from dataclasses import dataclass
from pathlib import Path

from discreet.bench.paper_words import claim, number, paragraph
from discreet.memory import Plan, plan
from discreet.paper.attention import Needs, attention_needs
from discreet.paper.design import node_noise
from discreet.paper.forest import levels_for
from discreet.paper.options import Noise
from discreet.pictures import noise_by_level, save

# As many rows, of as many numbers and classes, as the demo's digits have.
_ROWS, _KEY_DIM, _VALUE_DIM = 1350, 64, 10
_EPSILON, _DELTA = 1.0, 1e-5


@dataclass(frozen=True)
class Levels:
    """Noise of one segment tree that has the whole budget, in rows.

    Attributes:
        levels: how many there are; a query reads a node of each.
        node: standard error of one node.
        memory: of a memory's denominator, in rows that match the query; same relation and budget.
        needs: of the paper's attention, for the same rows.
    """

    levels: int
    node: float
    memory: float
    needs: Needs

    @property
    def query(self) -> float:
        """Standard error of what a query adds up."""
        return self.node * math.sqrt(self.levels)


def levels() -> Levels:
    """Return the noise of a tree and of a memory, under the paper's relation for both."""
    count = levels_for(_ROWS)
    node = node_noise(Noise.TRUNCATED_LAPLACE, epsilon=_EPSILON / count, delta=_DELTA / count)
    planned = _planned()
    logit = planned.kernel.largest_logit
    return Levels(
        levels=count,
        node=math.sqrt(node.variance),
        memory=planned.denominator_stderr / math.exp(logit),
        needs=attention_needs(
            rows=_ROWS,
            key_dim=_KEY_DIM,
            value_dim=_VALUE_DIM,
            largest_logit=logit,
            epsilon=_EPSILON,
            delta=_DELTA,
        ),
    )


def _planned() -> Plan:
    return plan(
        rows=_ROWS,
        key_dim=_KEY_DIM,
        value_dim=_VALUE_DIM,
        epsilon=_EPSILON,
        delta=_DELTA,
        neighbours="replace",
    )


def levels_page(out: Path) -> list[str]:
    """Why attention is not answered from trees, in one picture."""
    found = levels()
    figure = noise_by_level(
        range(1, found.levels + 1),
        [found.node] * found.levels,
        label="one node of the tree",
        reference=("the memory, same budget: a denominator", found.memory),
    )
    save(figure, out / "paper-levels.png")
    return [
        "## Noise of one tree, level by level",
        "",
        *paragraph(
            claim(
                found.memory < found.query,
                f"**A query of one tree over {_ROWS:,} rows has a noise of ±{found.query:.0f} rows, a denominator of the "
                f"memory ±{found.memory:.0f}**, for the same (ε = {_EPSILON:g}, δ = {_DELTA:g}) and the same relation, "
                "replacement of one row.",
            )
        ),
        "![noise of the nodes of a tree, and of a query that reads one of each level](paper-levels.png)",
        "",
        *paragraph(
            f"Each of {found.levels} levels gets a share of the budget, so a node carries ±{found.node:.0f} rows, and a query "
            "adds up one node of each level, just to count rows on one side of a number. The memory adds noise once to all sums "
            "that attention needs.",
            f"Attention by the paper needs many such trees, which share the budget: for {_ROWS:,} rows of {_KEY_DIM} numbers at "
            f"the same temperature, {number(found.needs.state_bytes)} bytes of state, and {number(found.needs.rows)} rows before "
            "an answer means anything.",
        ),
    ]
