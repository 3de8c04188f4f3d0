"""Sums of distances from released sums: post-processing only, so it costs no privacy, ever."""

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from discreet._arrays import namespace
from discreet._typing import Array
from discreet.features.cosines import left_out
from discreet.noise import RoundedGaussian
from discreet.privacy import Card
from discreet.readers.distances.layout import DistanceLayout
from discreet.sums.asking import Placed, ask
from discreet.sums.forecast import card_of, drawing
from discreet.sums.release import Release, Released


def describe(released: Released[DistanceLayout]) -> Card:
    """Return the card of sums of distances.

    Args:
        released: the noisy sums, with what is public about them.
    """
    layout, kernel = released.layout, released.layout.kernel
    noise = noise_of(released)
    weights = f"of at most {layout.weight_bound:g}, clipped" if layout.weighted else "all one"
    ends = [f"{low:g} to {high:g}" for low, high in zip(kernel.low, kernel.high, strict=True)]
    shown = "; ".join(ends[:8]) + ("; ..." if len(ends) > 8 else "")
    facts: dict[str, object] = {
        "noise_sigma": released.sigma * layout.real_unit,
        "noise_multiplier": released.noise_multiplier,
        "noise_stderr": noise,
        "p": kernel.power,
        "low": list(kernel.low),
        "high": list(kernel.high),
        "weight_bound": layout.weight_bound,
        "weighted": layout.weighted,
        "features": kernel.describe(),
        "left_out": left_out(kernel.power, kernel.terms) * kernel.total_width,
        "key_dim": kernel.dim,
    }
    lines = [
        (
            "noise",
            (
                f"rounded Gaussian, {drawing(released)}: {noise:.4g} on each answer, wherever it "
                "is asked"
            ),
        ),
        ("bounds", f"points {shown}; weights {weights}"),
        (
            "features",
            (
                f"{kernel.describe()}; the series is off by at most {facts['left_out']:.3g} for "
                "each unit of weight that lies at the query itself"
            ),
        ),
        ("size", f"{kernel.features:,} integers, {released.nbytes:,} bytes"),
    ]
    return card_of(released, facts, lines)


def noise_of(released: Released[DistanceLayout]) -> float:
    """Return the standard error of the noise in an answer: σ·√Σ|c_k|·W, the same everywhere."""
    kernel = released.layout.kernel
    return _deviation(released) * math.sqrt(kernel.length) * kernel.total_width


def _deviation(released: Released[DistanceLayout]) -> float:
    """Return the standard deviation of one released number, in real units."""
    variance = RoundedGaussian(sigma=released.sigma).variance
    return math.sqrt(variance) * released.layout.real_unit


class Distances(Release[DistanceLayout]):
    """Private sums of distances: Σ_i w_i·‖y - x_i‖_p^p for any y in a box.

    Made by `discreet.distances` or `discreet.load`. (ε, δ)-private as `guarantee` says, for any
    number of queries, and for giving the whole object away. `docs/privacy.md`, "Distances".

    Args:
        released: the noisy sums, with what is public about them.
    """

    kind = "discreet-distances"
    layout = DistanceLayout
    describe = staticmethod(describe)

    @property
    def total(self) -> tuple[float, float]:
        """About how much all rows weigh together, and its standard error.

        The number of rows, where all weigh one: what to divide a sum by for a mean.
        """
        constant = self._released.layout.kernel.constant / self._released.layout.kernel.unit
        noisy = float(self._released.state[0, 0, 0]) * self._released.layout.real_unit
        return noisy / constant, _deviation(self._released) / constant

    @overload
    def query(self, points: Array, *, stderr: Literal[False] = False) -> Array: ...
    @overload
    def query(self, points: Array, *, stderr: Literal[True]) -> tuple[Array, Array]: ...

    def query(self, points: Array, *, stderr: bool = False) -> Array:
        """Return the sum of distances from each point to all rows.

        Args:
            points: shape (..., d), numpy or torch; or (m,) where rows have one column. Clipped to
                the public bounds.
            stderr: whether to return standard errors, too: of each number against the exact sum
                over rows within the bounds, noise and series together. 1.96 of them hold 95% of the
                time. `docs/errors.md`, "Distances".

        Returns:
            Shape (...). With `stderr`, a pair of arrays of that shape.
        """
        kernel = self._released.layout.kernel
        given = points if hasattr(points, "shape") else np.asarray(points, dtype=np.float64)
        if kernel.dim == 1 and given.ndim < 2:
            given = given[..., None]
        norm = max(abs(each) for each in (*kernel.low, *kernel.high))
        question = self._with_stderr if stderr else self._answers
        answers = ask(
            question, given, self._released.layout, self._placed, norm=norm, in_float64=True
        )
        flat = tuple(each[..., 0] for each in answers)
        return flat if stderr else flat[0]

    @cached_property
    def _placed(self) -> Placed:
        arrays: dict[str, NDArray[Any]] = self._released.layout.kernel.query_arrays()
        sums = self._released.state[:, 0, :, None] * self._real_unit
        return Placed({**arrays, "sums": sums, "later": sums * self._later[:, None]})

    @property
    def _real_unit(self) -> float:
        return self._released.layout.real_unit * self._released.layout.kernel.total_width

    @cached_property
    def _later(self) -> NDArray[np.bool_]:
        """Which features belong to the second half of the series."""
        kernel = self._released.layout.kernel
        half = np.tile(np.arange(1, kernel.terms) >= kernel.terms // 2, 2 * kernel.dim)
        return np.concatenate([[False], half])

    def _answers(self, rows: Array, arrays: Mapping[str, Array]) -> tuple[Array]:
        features = self._released.layout.kernel.query_features(rows, arrays)
        return (features @ arrays["sums"],)

    def _with_stderr(self, rows: Array, arrays: Mapping[str, Array]) -> tuple[Array, Array]:
        """Return answers, and their standard errors.

        What is left out of a series beyond T terms is about as much, near a cusp, as what its
        second half adds: that is in the release, and its own noise is known.
        """
        released, kernel = self._released, self._released.layout.kernel
        xp = namespace(rows)
        features = kernel.query_features(rows, arrays)
        second = features @ arrays["later"]
        half = float(np.sum(np.abs(kernel.arrays()["series"][kernel.terms // 2 :])))
        own = (_deviation(released) * kernel.total_width) ** 2 * half
        beyond = xp.maximum(second * second - own, 0 * second)
        # Beyond T terms errors fall with T^-p, or 1/T: so much more is left than the half added.
        more = 1 / (2 ** min(kernel.power, 1.0) - 1)
        return features @ arrays["sums"], xp.sqrt(noise_of(released) ** 2 + beyond * more**2)
