"""Predictions of a classifier, and the card: post-processing only, so it costs no privacy, ever."""

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from discreet._arrays import namespace
from discreet._typing import Array, Floats
from discreet.errors import InvalidInput
from discreet.features.base import SymmetricMap
from discreet.privacy import Card
from discreet.readers.rounds.descent import Pace
from discreet.readers.rounds.errors import Spread
from discreet.readers.rounds.layout import STATE_BITS
from discreet.readers.softmax.layout import Rounds, totals_stderr
from discreet.sums.asking import Placed, ask
from discreet.sums.forecast import card_of, size_of
from discreet.sums.release import Release, Released

# κ: half as much, or twice, costs little.
PACE = Pace(noise=1.3, longest=32.0, few=256)

# Columns of a table leave less to be found than waves do.
TABLE_PACE = Pace(noise=1.0, longest=32.0, few=256)


def describe(released: Released[Rounds]) -> Card:
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
        "rounds": layout.rounds,
        "moments": layout.moments,
        "judging": layout.judging,
        "clip": layout.clip,
        "classes": list(layout.classes),
        "key_norm": features.key_norm,
        "features": features.describe(),
        "key_dim": features.dim,
    }
    found = f"{layout.finding:.0%} is for ranges and categories, before the first, "
    found *= bool(layout.finding)
    noise = (
        f"rounded Gaussian, σ = {sigma:.6g} at most on each of the sums of each of "
        f"{layout.rounds} rounds, all of them under this one guarantee; of the squared budget "
        f"{found}{layout.moments:.0%} is for second moments, in the first round, and "
        f"{layout.judging:.0%} for how sure to be, after the last"
    )
    bounds = (
        f"{features.bounds_text}; what a row says against a round's coefficients, at most "
        f"{layout.clip:g} long; enforced by clipping"
    )
    lines = [
        ("noise", noise),
        ("bounds", bounds),
        ("features", features.describe()),
        ("size", size_of(released, f"{layout.columns:,} classes")),
    ]
    return card_of(released, facts, lines)


class SoftmaxRegression(Release[Rounds]):
    """A private classifier: which class a row is of, learnt from rows that nobody can get out.

    Made by `discreet.softmax_regression` or `discreet.load`. (ε, δ)-private as `guarantee` says,
    for any number of predictions, and for giving the whole object away. `docs/privacy.md`,
    "Rounds".

    Queries are numpy arrays or torch tensors of shape (..., d); logits and probabilities have the
    same kind, dtype and device, and torch differentiates through them. Queries longer than the
    public `key_norm` are clipped to it, as keys are.

    Args:
        released: the noisy sums, with what is public about them.
    """

    kind = "discreet-softmax-regression"
    layout = Rounds
    describe = staticmethod(describe)

    @property
    def features(self) -> SymmetricMap:
        """The feature map, with its bounds."""
        return self._released.layout.kernel

    @cached_property
    def classes(self) -> Array:
        """The labels, in the order of logits and probabilities, shape (C,)."""
        return np.asarray(self._released.layout.classes)

    @cached_property
    def coefficients(self) -> Floats:
        """W of the logits φ(q)·W, shape (r, C)."""
        return np.asarray(self._released.state[0].T * 2.0**-STATE_BITS)

    @property
    def totals(self) -> tuple[Floats, float]:
        """About how many rows each class has, shape (C,), and the standard error of each.

        Records that were scaled down count for less.
        """
        totals = self._released.others[0][0]
        return totals.astype(np.float64), totals_stderr(self._released)

    @cached_property
    def spread(self) -> Spread:
        """How far noise has moved the coefficients of a class.

        Raises:
            InvalidInput: the release has no second moments: only those of tables keep them.
        """
        return self._spread(of_rows=False)

    def _spread(self, *, of_rows: bool) -> Spread:
        if not self._released.layout.keeps_more:
            raise InvalidInput("Expected a release that keeps second moments: one of a table.")
        _, kept, figures = self._released.others
        scale, noise, curvature = (float(each) * 2.0**-STATE_BITS for each in figures[0])
        return Spread.of(
            self._released,
            kept=kept,
            moment_noise=noise,
            pace=TABLE_PACE,
            curvature=curvature,
            scale=scale,
            of_rows=of_rows,
        )

    def stderr(self, queries: Array) -> Array:
        """Return how far noise has moved the logit of each class: shape (..., d) to (..., 1).

        One standard error, the same for all classes, before their mean is taken off. What rounds,
        clipping and features leave out is not in it.

        Args:
            queries: shape (..., d).
        """
        norm = self.features.query_bound
        return ask(self._errors, queries, self._released.layout, self._placed_errors, norm=norm)[0]

    def logits(self, queries: Array) -> Array:
        """Return how much speaks for each class, around zero: shape (..., d) to (..., C).

        Args:
            queries: shape (..., d).
        """
        norm = self.features.query_bound
        return ask(self._logits, queries, self._released.layout, self._placed, norm=norm)[0]

    def probabilities(self, queries: Array) -> Array:
        """Return the probability of each class, shape (..., C): softmax of the logits.

        As far as noise and clipping let them be right: `docs/classifier.md`, "Probabilities".

        Args:
            queries: shape (..., d).
        """
        logits = self.logits(queries)
        xp = namespace(logits)
        weights = xp.exp(logits - xp.max(logits, axis=-1, keepdims=True))
        return weights / xp.sum(weights, axis=-1, keepdims=True)

    def predict(self, queries: Array, *, balanced: bool = False) -> Array:
        """Return the most probable label, a numpy array of shape (...).

        Args:
            queries: shape (..., d).
            balanced: whether to predict as if all classes were equally frequent: finds more of rare
                classes, and is wrong more often on the whole. By the noisy totals of classes.
        """
        logits = self.logits(queries)
        xp = namespace(logits)
        if balanced:
            logits = logits - xp.asarray(self.log_totals, dtype=logits.dtype, device=logits.device)
        best = xp.argmax(logits, axis=-1)
        return self.classes[np.asarray(best.cpu() if hasattr(best, "cpu") else best)]

    @property
    def log_totals(self) -> Floats:
        """Logarithms of the totals, none of them below its own standard error."""
        totals, error = self.totals
        return np.log(np.maximum(totals, max(error, 1.0)))

    @cached_property
    def _placed(self) -> Placed:
        return Placed({**self.features.query_arrays(), "weights": self.coefficients[None]})

    @cached_property
    def _placed_errors(self) -> Placed:
        return Placed(
            {**self.features.query_arrays(), "roots": self._spread(of_rows=True).roots[None]}
        )

    def _errors(self, queries: Array, arrays: Mapping[str, Array]) -> tuple[Array, ...]:
        features = self.features.query_features(self.features.within(queries), arrays)
        along = features @ arrays["roots"]
        xp = namespace(along)
        return (xp.sqrt(xp.sum(along * along, axis=-1, keepdims=True)),)

    def _logits(self, queries: Array, arrays: Mapping[str, Array]) -> tuple[Array, ...]:
        features = self.features.query_features(self.features.within(queries), arrays)
        logits = features @ arrays["weights"]
        xp = namespace(logits)
        return (logits - xp.mean(logits, axis=-1, keepdims=True),)
