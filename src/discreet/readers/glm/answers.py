"""Predictions of a regression in rounds, and the card: post-processing only."""

from collections.abc import Mapping
from functools import cached_property
from typing import Literal, overload

import numpy as np

from discreet._arrays import namespace
from discreet._typing import Array, Floats
from discreet.features.base import SymmetricMap
from discreet.privacy import Card
from discreet.readers.glm.layout import GlmRounds, Loss
from discreet.readers.rounds.descent import Pace
from discreet.readers.rounds.errors import Spread
from discreet.readers.rounds.layout import STATE_BITS
from discreet.sums.asking import Placed, ask
from discreet.sums.forecast import card_of, size_of
from discreet.sums.release import Release, Released

# κ: of numbers that are within ±1. Steps that are longer than 3.9 over the largest second moment
# that noise may hide would diverge.
SQUARED_PACE = Pace(noise=0.25, longest=3.0, edge=3.9)
LOGISTIC_PACE = Pace(noise=1.3, longest=32.0, few=256)

# How much second moments curve the loss: of numbers, rows whose residual is cut do not.
_CURVATURE = {Loss.SQUARED: 0.7, Loss.LOGISTIC: 0.05}


def describe(released: Released[GlmRounds]) -> Card:
    """Return the card of a release.

    Args:
        released: the noisy sums, with what is public about them.
    """
    layout, features = released.layout, released.layout.kernel
    sigma = released.sigma * layout.real_unit / layout.of_round**0.5
    facts = {
        "mechanism": "rounded Gaussian noise, added to integer sums in each round",
        "noise_sigma": sigma,
        "noise_multiplier": released.noise_multiplier,
        "loss": layout.loss,
        "rounds": layout.rounds,
        "moments": layout.moments,
        "finding": layout.finding,
        "aiming": layout.aiming,
        "clip": layout.clip,
        "outputs": layout.outputs,
        "features": features.describe(),
        "key_dim": features.dim,
    }
    shares = [f"{layout.moments:.0%} is for second moments, in the first round"]
    if layout.finding:
        shares.append(f"{layout.finding:.0%} for ranges and categories, before it")
    if layout.aiming:
        shares.append(f"{layout.aiming:.0%} for where targets are")
    noise = (
        f"rounded Gaussian, σ = {sigma:.6g} at most on each of the sums of each of "
        f"{layout.rounds} rounds, all of them under this one guarantee; of the squared budget "
        f"{', '.join(shares)}"
    )
    bounds = (
        f"{features.bounds_text}; what a row says against a round's coefficients, at most "
        f"{layout.clip:g} long; enforced by clipping"
    )
    lines = [
        ("noise", noise),
        ("bounds", bounds),
        ("features", features.describe()),
        ("size", size_of(released, f"{layout.outputs:,} output(s)")),
    ]
    return card_of(released, facts, lines)


class GeneralizedLinear(Release[GlmRounds]):
    """A private regression that was learnt in rounds: numbers within ±1, or labels 0 and 1.

    Made by `discreet.sklearn` or `discreet.load`. (ε, δ)-private as `guarantee` says, for any
    number of predictions, and for giving the whole object away.

    Queries are numpy arrays or torch tensors of shape (..., d); answers have the same kind, dtype
    and device.

    Args:
        released: the noisy sums, with what is public about them.
    """

    kind = "discreet-generalized-linear"
    layout = GlmRounds
    describe = staticmethod(describe)

    @property
    def features(self) -> SymmetricMap:
        """The feature map, with its bounds."""
        return self._released.layout.kernel

    @cached_property
    def coefficients(self) -> Floats:
        """W of the scores φ(q)·W, shape (r, k)."""
        return np.asarray(self._released.state[0].T * 2.0**-STATE_BITS)

    @cached_property
    def spread(self) -> Spread:
        """How far noise has moved the coefficients of an output."""
        return self._spread(of_rows=False)

    def _spread(self, *, of_rows: bool) -> Spread:
        kept, figures = self._released.others
        loss = Loss(self._released.layout.loss)
        return Spread.of(
            self._released,
            kept=kept,
            moment_noise=float(figures[0, 0]) * 2.0**-STATE_BITS,
            pace=SQUARED_PACE if loss is Loss.SQUARED else LOGISTIC_PACE,
            curvature=_CURVATURE[loss],
            of_rows=of_rows,
        )

    @overload
    def predict(self, queries: Array, *, stderr: Literal[False] = ...) -> Array: ...
    @overload
    def predict(self, queries: Array, *, stderr: Literal[True]) -> tuple[Array, Array]: ...

    def predict(self, queries: Array, *, stderr: bool = False) -> Array | tuple[Array, Array]:
        """Return what is predicted: shape (..., d) to (..., k).

        Numbers within ±1, or probabilities of labels.

        Args:
            queries: shape (..., d).
            stderr: whether to return, too, how far the noise has moved each: one standard error, of
                numbers before they are clipped, of labels of their log-odds. What the features
                cannot express, and what cutting leaves out, is not in it.
        """
        scores = self.scores(queries)
        answers = self._predicted(scores)
        if not stderr:
            return answers
        return answers, self.stderr(queries)

    def scores(self, queries: Array) -> Array:
        """Return φ(q)·W, in units of each output's reach, or log-odds: shape (..., d) to (..., k).

        Args:
            queries: shape (..., d).
        """
        norm = self.features.query_bound
        return ask(self._scores, queries, self._released.layout, self._placed, norm=norm)[0]

    def stderr(self, queries: Array) -> Array:
        """Return how far noise has moved each prediction: shape (..., d) to (..., k).

        Args:
            queries: shape (..., d).
        """
        norm = self.features.query_bound
        return ask(self._errors, queries, self._released.layout, self._placed_errors, norm=norm)[0]

    def _predicted(self, scores: Array) -> Array:
        layout, xp = self._released.layout, namespace(scores)
        if layout.loss == Loss.LOGISTIC:
            return 1 / (1 + xp.exp(-scores))
        centre, reach = (
            xp.asarray(each, dtype=scores.dtype, device=scores.device)
            for each in (layout.centre, layout.reach)
        )
        return xp.clip(centre + reach * scores, -1.0, 1.0)

    @cached_property
    def _placed(self) -> Placed:
        return Placed({**self.features.query_arrays(), "weights": self.coefficients[None]})

    @cached_property
    def _placed_errors(self) -> Placed:
        layout = self._released.layout
        reach = np.ones(layout.outputs) if layout.loss == Loss.LOGISTIC else layout.reach
        return Placed(
            {
                **self.features.query_arrays(),
                "roots": self._spread(of_rows=True).roots[None],
                "reach": np.asarray(reach),
            }
        )

    def _scores(self, queries: Array, arrays: Mapping[str, Array]) -> tuple[Array, ...]:
        features = self.features.query_features(self.features.within(queries), arrays)
        return (features @ arrays["weights"],)

    def _errors(self, queries: Array, arrays: Mapping[str, Array]) -> tuple[Array, ...]:
        features = self.features.query_features(self.features.within(queries), arrays)
        along = features @ arrays["roots"]
        xp = namespace(along)
        return (xp.sqrt(xp.sum(along * along, axis=-1, keepdims=True)) * arrays["reach"],)
