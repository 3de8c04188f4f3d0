"""Predictions from released sums, and the card: post-processing, so it costs no privacy, ever."""

from collections.abc import Mapping
from functools import cached_property
from typing import Literal, overload

import numpy as np

from discreet._arrays import namespace
from discreet._typing import Array, Floats
from discreet.features.base import SymmetricMap
from discreet.privacy import Card
from discreet.readers.least_squares.layout import Moments
from discreet.readers.least_squares.solution import Doubled, Solution
from discreet.sums.asking import Placed, ask
from discreet.sums.forecast import card_of, drawing, size_of
from discreet.sums.release import Release, Released


def describe(released: Released[Moments]) -> Card:
    """Return the card of a release.

    Args:
        released: the noisy sums, with what is public about them.
    """
    layout, features = released.layout, released.layout.kernel
    sigma, moments_sigma = released.sigma * layout.real_unit, layout.moments_sigma(released.sigma)
    facts = {
        "noise_sigma": sigma,
        "moments_sigma": moments_sigma,
        "noise_multiplier": released.noise_multiplier,
        "share": layout.share,
        "ridge": layout.ridge,
        "centred": layout.centred,
        "key_norm": features.key_norm,
        "value_norm": layout.value_norm,
        "tau": layout.real_tau,
        "features": features.describe(),
        "heads": list(layout.heads),
        "key_dim": features.dim,
        "value_dim": layout.value_dim,
    }
    noise = f"rounded Gaussian, {drawing(released)}: σ = {sigma:.6g} on each of the sums"
    if layout.share:
        noise += (
            f", {moments_sigma:.6g} on second moments ({layout.share:.0%} of the squared budget)"
        )
    bounds = f"{features.bounds_text}, ‖value‖ ≤ {layout.value_norm:g}, enforced by clipping"
    lines = [
        ("noise", noise),
        ("bounds", bounds),
        ("features", features.describe()),
        ("second moments", _moments(layout)),
        ("size", size_of(released, f"{layout.head_count} head(s)")),
    ]
    return card_of(released, facts, lines)


def _moments(layout: Moments) -> str:
    """Return where the second moments come from."""
    if layout.share:
        mixed = ", and mixed with those of public rows if rows are like them"
        return "released with noise" + (mixed if layout.moment is not None else "")
    whose = "of public rows" if layout.moment is not None else "of features that point anywhere"
    return f"{whose}: only the sums are private, and have the whole budget"


class LeastSquares(Release[Moments]):
    """Private regression: values as a function of keys, from rows that nobody can get out again.

    Made by `discreet.least_squares` or `discreet.load`. (ε, δ)-private as `guarantee` says, for any
    number of predictions, and for giving the whole object away. `docs/privacy.md`, "Least squares".

    Queries are numpy arrays or torch tensors of shape (..., d), or (..., *heads, m, d) for keys
    with heads; predictions have the same kind, dtype and device, and torch differentiates through
    them. Queries longer than the public `key_norm` are clipped to it, as keys are.

    Args:
        released: the noisy sums, with what is public about them.
    """

    kind = "discreet-least-squares"
    layout = Moments
    describe = staticmethod(describe)

    @property
    def features(self) -> SymmetricMap:
        """The feature map, with its bounds."""
        return self._released.layout.kernel

    @cached_property
    def solution(self) -> Solution:
        """The coefficients, found once."""
        return Solution.of(self._released)

    @property
    def coefficients(self) -> Floats:
        """W of a prediction φ(q)·W + `solution.mean`, shape (*heads, r, d_v)."""
        weights = self.solution.weights
        return weights.reshape(*self.heads, *weights.shape[1:])

    @overload
    def predict(self, queries: Array, *, stderr: Literal[False] = False) -> Array: ...
    @overload
    def predict(self, queries: Array, *, stderr: Literal[True]) -> tuple[Array, Array]: ...

    def predict(self, queries: Array, *, stderr: bool = False) -> Array:
        """Return predicted values, and how far the noise has moved each number.

        Args:
            queries: shape (..., d), or (..., *heads, m, d).
            stderr: whether to return standard errors, too: of each number against the solution
                without noise, at the same λ. About 1.96 of them hold 95% of the time. What the
                features cannot express is not in them. The first call takes as long as sixteen
                solutions. `docs/errors.md`, "Least squares".

        Returns:
            Shape (..., d_v). With `stderr`, a pair of arrays of that shape.
        """
        norm = self.features.query_bound
        layout = self._released.layout
        if stderr:
            return ask(self._predicted_with_stderr, queries, layout, self._all_placed, norm=norm)
        return ask(self._predicted, queries, layout, self._placed, norm=norm)[0]

    def sums(self, queries: Array) -> tuple[Array, Array]:
        """Return φ(q)·Σ φ_i⊗v_i, shape (..., d_v), and φ(q)·Σ φ_i, shape (...), with their noise.

        What `solution` is made of: values and number of rows near a query, before solving.

        Args:
            queries: shape (..., d), or (..., *heads, m, d).
        """
        placed = Placed({**self.features.query_arrays(), "sums": self._real_sums})
        norm = self.features.query_bound
        [both] = ask(self._summed, queries, self._released.layout, placed, norm=norm)
        return both[..., :-1], both[..., -1]

    @cached_property
    def _real_sums(self) -> Floats:
        """[Σ φ⊗v, Σ φ] in real units, shape (heads, r, d_v + 1)."""
        layout = self._released.layout
        real = np.array(self._released.state.swapaxes(1, 2), dtype=np.float64) * layout.real_unit
        real[..., -1] /= layout.real_tau
        return real

    @property
    def shares(self) -> tuple[Floats, Floats]:
        """The mean of the values of all rows, about, and its standard error, from the noisy sums.

        Σ φ⊗v·T/‖T‖² with T = Σ φ, shape (*heads, d_v): what all rows have in common points along T.
        For classes as values: how frequent each of them is.
        """
        totals = self._real_sums[..., -1:]
        along = np.sum(self._real_sums[..., :-1] * totals, axis=1)
        squared = np.maximum(np.sum(totals * totals, axis=1), np.finfo(float).tiny)
        shape = (*self.heads, along.shape[-1])
        errors = np.broadcast_to(self.solution.sums_sigma / np.sqrt(squared), along.shape)
        return np.asarray((along / squared).reshape(shape)), np.asarray(errors.reshape(shape))

    @cached_property
    def _placed(self) -> Placed:
        own = {"weights": self.solution.weights, "mean": self.solution.mean}
        return Placed({**self.features.query_arrays(), **own})

    @cached_property
    def _all_placed(self) -> Placed:
        solution = self.solution
        doubled = Doubled.of(self._released, solution)
        heads, count, *_ = doubled.apart.shape
        arrays = {
            "weights": solution.weights,
            "mean": solution.mean,
            "noise": solution.centred_sigma**2,
            "inverse": solution.inverse,
            "apart": doubled.apart.reshape(heads, count, -1),
            "bias": doubled.bias,
        }
        return Placed({**self.features.query_arrays(), **arrays})

    def _predicted(self, rows: Array, arrays: Mapping[str, Array]) -> tuple[Array]:
        features = self.features.query_features(self.features.within(rows), arrays)
        return (features @ arrays["weights"] + arrays["mean"],)

    def _summed(self, rows: Array, arrays: Mapping[str, Array]) -> tuple[Array]:
        features = self.features.query_features(self.features.within(rows), arrays)
        return (features @ arrays["sums"],)

    def _predicted_with_stderr(
        self, rows: Array, arrays: Mapping[str, Array]
    ) -> tuple[Array, Array]:
        """Return predictions φ·W, and how far noise has moved them, in root mean square.

        Noise of S: σ_S²·‖x‖² with x = (G₊ + λ)⁻¹·φ, exactly. Noise of G: `Doubled`.
        """
        xp = namespace(rows)
        features = self.features.query_features(self.features.within(rows), arrays)
        predicted = features @ arrays["weights"]
        pulled = features @ arrays["inverse"]
        of_sums = xp.sum(pulled * pulled, axis=-1, keepdims=True) * arrays["noise"]
        apart = features @ arrays["apart"]
        pairs = xp.reshape(apart, (*apart.shape[:-1], -1, predicted.shape[-1]))
        of_moments = xp.mean(pairs * pairs, axis=-2) + (features @ arrays["bias"]) ** 2
        return predicted + arrays["mean"], xp.sqrt(of_sums + of_moments)
