"""How far noise has moved coefficients that were learnt in rounds. Post-processing.

Each round adds its own noise to a step, and later rounds pull it back where rows say so. With P the
preconditioner and H = c·G the curvature, both are linear: the noise that is left after all rounds
is a sum over rounds of what is left of each round's, and its covariance is known. What rounds, cuts
and features leave out (bias) is not in it.

G is known but for noise. Where it does not stand out of that, all directions are taken for their
mean; or, to tell errors of predictions, rows are imagined whose columns are independent of each
other. Both are measured, on many tables: `docs/tables.md`.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet._typing import Floats, Integers
from discreet.features.base import SymmetricMap
from discreet.features.columns import TableColumns
from discreet.readers.rounds.descent import (
    MOMENTUM,
    Descent,
    Pace,
    Preconditioner,
    edge_of,
    rows_counted,
)
from discreet.readers.rounds.layout import MOMENT_BITS, RoundsLayout
from discreet.sums.release import Released

# So many rows are made up to know second moments by.
_IMAGINED = 4096


@dataclass(frozen=True, eq=False)
class Spread:
    """The covariance of the noise in one column of coefficients.

    Attributes:
        covariance: shape (r, r).
        moments: second moments of features, as they were released, shape (r, r).
        rows: about how many there are; 0 if features do not tell.
    """

    covariance: Floats
    moments: Floats
    rows: float

    @classmethod
    def of(
        cls,
        released: Released[RoundsLayout],
        *,
        kept: Integers,
        moment_noise: float,
        pace: Pace,
        curvature: float,
        scale: float = 1.0,
        of_rows: bool = False,
    ) -> "Spread":
        """Return how far coefficients of a release are spread by noise.

        Args:
            released: with layout and noise.
            kept: its second moments, as it keeps them, shape (1, r·(r + 1)/2).
            moment_noise: standard deviation of the noise of one of them.
            pace: how long steps were.
            curvature: c.
            scale: what coefficients were multiplied by, after the last round.
            of_rows: whether it is to tell errors of predictions, for rows like those that were
                learnt from; else of contrasts, such as that of two bins, which few rows may tell
                apart.
        """
        layout = released.layout
        moments = unpacked(kept, layout.kernel.features)
        edge = edge_of(moment_noise, len(moments))
        noise = released.sigma / math.sqrt(layout.of_round) * layout.real_unit
        descent = Descent.start(
            (layout.kernel.features, layout.columns),
            rounds=layout.rounds,
            noise=noise,
            pace=pace,
            edge=edge,
        )
        shortened = Preconditioner.of(moments, moment_noise, descent.longest)
        rows = 0.0
        if layout.kernel.constant is not None:
            hint = released.rows_hint if released.rows is None else released.rows
            unit = layout.kernel.constant**2
            rows = rows_counted(float(moments[0, 0]), moment_noise, unit, hint)
        seen = _cleaned(moments, layout.kernel if of_rows else None, edge, rows)
        left = _left(shortened, curvature * seen, step=descent.step, rounds=layout.rounds)
        return cls(left * (noise * scale) ** 2, moments, rows)

    @cached_property
    def roots(self) -> Floats:
        """A matrix R with covariance R·Rᵀ, shape (r, r)."""
        values, vectors = np.linalg.eigh(self.covariance)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def _left(shortened: Preconditioner, pulled: Floats, *, step: float, rounds: int) -> Floats:
    """Return the covariance that noise of one in every round leaves, shape (r, r).

    With w = P^½·u the way from round to round is symmetric, so it falls apart along eigenvectors of
    P^½·H·P^½; but there the noise of a round has the covariance P.

    Args:
        shortened: P.
        pulled: H.
        step: how long steps are.
        rounds: how many there are.
    """
    directions = shortened.directions
    root = np.eye(len(pulled))
    root -= (directions * (1 - np.sqrt(1 - shortened.missing))) @ directions.T
    values, vectors = np.linalg.eigh(root @ pulled @ root)
    answers = _answers(np.maximum(values, 0.0), step=step, rounds=rounds)
    turned = root @ vectors
    inner = (turned.T @ turned) * (answers.T @ answers)
    return np.asarray(turned @ inner @ turned.T)


def _answers(pulled: Floats, *, step: float, rounds: int) -> Floats:
    """Return what is left of noise of one after 1, 2, ... rounds along each direction.

    Args:
        pulled: how strongly it is pulled back, shape (r,).
        step: how long steps are.
        rounds: how many there are.

    Returns:
        Shape (rounds, r).
    """
    momentum = np.full_like(pulled, 1 - MOMENTUM)
    place = -step * momentum
    answers = [place]
    for _ in range(1, rounds):
        momentum = MOMENTUM * momentum + (1 - MOMENTUM) * pulled * place
        place = place - step * momentum
        answers.append(place)
    return np.stack(answers)


def _cleaned(moments: Floats, features: SymmetricMap | None, edge: float, rows: float) -> Floats:
    """Return second moments without most of their noise.

    Those of made-up rows with the same columns, independent of each other; and what stands out of
    the noise besides (Benaych-Georges and Nadakuditi 2011: an eigenvalue λ above the edge e is
    (λ + √(λ² - e²))/2 without noise). Without columns only the latter, and the mean of the rest in
    every other direction.

    Args:
        moments: noisy, shape (r, r).
        features: the map, to imagine rows by; None to imagine none.
        edge: the largest eigenvalue that noise alone has.
        rows: about how many there are.
    """
    simple = np.zeros_like(moments)
    if isinstance(features, TableColumns):
        imagined = features.imagined(moments[0] / features.constant / rows, _IMAGINED)
        simple = imagined.T @ imagined * (rows / _IMAGINED)
    values, vectors = np.linalg.eigh(moments - simple)
    clear = np.abs(values) > edge
    large = values[clear]
    cleaned = (large + np.sign(large) * np.sqrt(large * large - edge * edge)) / 2
    if not isinstance(features, TableColumns):
        rest = max(float(values.sum() - cleaned.sum()), 0.0) / max(len(values) - len(large), 1)
        simple = (vectors[:, ~clear] * rest) @ vectors[:, ~clear].T
    return np.asarray(simple + (vectors[:, clear] * cleaned) @ vectors[:, clear].T)


def unpacked(kept: Integers, count: int) -> Floats:
    """Return second moments as a release keeps them, as a symmetric matrix, shape (r, r).

    Args:
        kept: the diagonal and what is above it, row by row, shape (1, r·(r + 1)/2).
        count: r.
    """
    square = np.zeros((count, count))
    square[np.triu_indices(count)] = np.ldexp(kept[0].astype(np.float64), -MOMENT_BITS)
    return np.asarray(square + np.triu(square, 1).T)
