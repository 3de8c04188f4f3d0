"""What a model of a table says: a step function for each column, with the error of noise.

The model is a sum over columns (and waves over the numbers, which belong to no column alone), so
what a column adds to a score is a public function of the column's bin or category. Errors are of
the noise. What steps, cuts and features leave out, bias, is in none of them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from discreet._typing import Floats
from discreet.features.columns import Bins, TableColumns
from discreet.readers.rounds.errors import Spread


@dataclass(frozen=True, eq=False)
class Shape:
    """What one column adds to a score.

    For two classes the score is the log-odds of the second; for more, there is one for each class,
    around their mean; for numbers it is in units of the target (with `target="log"`, in natural
    logarithms). All are around the mean over bins
    or categories.

    Attributes:
        name: of the column.
        edges: of a column of numbers: where bins end, rising, one fewer than there are bins; None
            for categories. Dates are in seconds since 1970.
        labels: of each bin or category.
        values: shape (bins or categories,), or (..., outputs) if there are several.
        stderr: one standard error of the noise in each, of the same shape.
        missing: what is added where the column is missing, shape () or (outputs,).
        importance: how much the column moves scores of the rows, on the mean (a root of a mean of
            squares), by the shares of its bins that the release tells.
    """

    name: str
    edges: Floats | None
    labels: tuple[str, ...]
    values: Floats
    stderr: Floats
    missing: Floats
    importance: float

    def __repr__(self) -> str:
        return (
            f"<Shape of {self.name!r}: {len(self.labels)} steps, importance {self.importance:.3g}>"
        )


def shapes_of(
    features: TableColumns,
    weights: Floats,
    spread: Spread,
    *,
    names: Sequence[str],
    labels: Sequence[Sequence[str] | None],
    unit: Floats,
) -> dict[str, Shape]:
    """Return the shape of each column, by its name.

    Args:
        features: the map.
        weights: coefficients of scores, shape (r, k).
        spread: of the noise in a column of coefficients, one for each of k.
        names: of the columns.
        labels: of the categories of each column; None for numbers.
        unit: what scores are multiplied by, and mixed by, shape (k, outputs).
    """
    mixed = weights @ unit
    # Coefficients of different scores have noise of their own, of the same size.
    grown = np.sqrt(np.sum(unit * unit, axis=0))
    shares = features.shares(spread.moments[0] / features.constant / spread.rows)
    made = {}
    for at, name in enumerate(names):
        where, steps = features.column_rows(at)
        centred = steps - (steps.mean(axis=0) if len(steps) else 0.0)
        own = spread.covariance[where, where]
        errors = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", centred, own, centred), 0.0))
        gone, height = features.missing_feature(at)
        column = features.columns[at]
        edges = np.asarray(column.edges) if isinstance(column, Bins) else None
        said = labels[at]
        made[name] = Shape(
            name=name,
            edges=edges,
            labels=tuple(said) if said is not None else _between(edges),
            values=_squeezed(centred @ mixed[where]),
            stderr=_squeezed(errors[:, None] * grown),
            missing=_squeezed(mixed[gone] * height),
            importance=_importance(steps @ mixed[where], mixed[gone] * height, shares[at]),
        )
    return made


def _importance(steps: Floats, missing: Floats, shares: Floats) -> float:
    """Return the root of the mean square of what a column adds to a score, around its mean."""
    added = np.concatenate([steps, missing[None]])
    around = added - shares @ added
    return math.sqrt(float(np.mean(shares @ (around * around))))


def _between(edges: Floats | None) -> tuple[str, ...]:
    """Return the names of bins."""
    if edges is None or not len(edges):
        return ("any",)
    inner = [f"{low:.4g} to {high:.4g}" for low, high in pairwise(edges)]
    return (f"below {edges[0]:.4g}", *inner, f"from {edges[-1]:.4g}")


def _squeezed(numbers: Floats) -> Floats:
    """Return numbers without the last axis, if that has one entry only."""
    return numbers[..., 0] if numbers.shape[-1] == 1 else numbers
