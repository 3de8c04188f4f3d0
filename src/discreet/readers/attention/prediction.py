"""What answers of one memory will be like, in the words that `plan` and the card share.

For a release, this rests on what the noisy sums show of the rows as a whole: about how many there
are, and what they have in common. That is post-processing, so it costs no privacy; and these are
estimates, with noise in them.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._typing import Array
from discreet.accounting import gaussian_epsilon
from discreet.features.fourier import MOST_FREQUENCIES
from discreet.features.kernel import Evidence, Kernel
from discreet.readers.attention.error_model import ErrorModel, Sample
from discreet.readers.attention.layout import Layout
from discreet.readers.attention.reader import WITHIN, at_origin
from discreet.readers.attention.reference import usual_points
from discreet.sums.asking import Placed, ask
from discreet.sums.release import Released
from discreet.sums.settings import CLEAR

# No rows are taken to have more in common than this.
_MOST_COMMON = 0.95


def noisy_rows(released: Released[Layout]) -> float:
    """Return how many rows there seem to be (for records: the sum of their factors).

    The mean over heads, each with noise of its own. May be below zero.
    """
    mass, _ = at_origin(released.layout, _denominators(released))
    return float(np.mean(mass)) / released.layout.kernel.weight_at_origin


def noisy_common(released: Released[Layout], *, rows: float, near: float) -> float:
    """Return what rows have in common at least: the squared length of their mean, over their bound.

    The slope of denominators at the origin is scale·Σk. Less its error, noise and kernel, and one
    standard error of what is left.

    Args:
        released: the noisy sums.
        rows: how many there are, or seem to be.
        near: the mean weight of two rows over the largest: so much alike are the kernel's errors.
    """
    layout, kernel = released.layout, released.layout.kernel
    logit = kernel.largest_logit
    step = min(1.0, 1 / logit)  # of the longest query: logits are at most one
    probes = np.eye(kernel.dim) * (step * kernel.query_norm)
    queries = np.broadcast_to(
        np.concatenate([probes, -probes]), (*layout.heads, 2 * kernel.dim, kernel.dim)
    )

    def denominators(asked: Array, arrays: Mapping[str, Array]) -> tuple[Array]:
        return (kernel.read(asked, arrays)[..., -1:],)

    placed = Placed(_denominators(released))
    [read] = ask(denominators, queries, layout, placed, norm=kernel.query_norm)
    ahead, behind = np.split(read.reshape(layout.head_count, 2, kernel.dim), 2, axis=1)
    # `read` leaves out e^(‖y‖²/2), the same for all of these.
    squared = logit * step**2
    left_out = math.exp(kernel.query_exponent * step**2)
    over = 2 * logit * step * rows
    mean = (ahead - behind) * left_out / over
    sigma = released.sigma * layout.real_unit / layout.real_tau * kernel.bound
    wrong = kernel.weight_error * math.exp(logit) * rows * math.sqrt(near + 1 / rows)
    variance = 4 * math.sinh(squared) * math.exp(-logit) * (sigma**2 + wrong**2) / over**2
    common = float(np.mean(np.sum(mean**2, axis=-1))) - kernel.dim * variance
    spread = 2 * kernel.dim * variance**2 + 4 * variance * max(common, 0.0)
    least = common - math.sqrt(spread / layout.head_count)
    return min(max(least, 0.0), _MOST_COMMON)


def _denominators(released: Released[Layout]) -> dict[str, NDArray[Any]]:
    """Return what reads the denominators of a state, and nothing else."""
    layout = released.layout
    real = released.state[:, -1:].astype(np.float64) * (layout.real_unit / layout.real_tau)
    return layout.kernel.reading(np.asarray(real.swapaxes(1, 2)))


# What rows that are not centred have in common: pixels, counts, raw embeddings.
_COMMON = 0.6

# No softer scale than that of this largest logit is looked at; no larger ε and no more rows are
# offered.
_LEAST_LOGIT, _MOST_EPSILON, _MOST_ROWS = 0.1, 10.0, 1e12

# Keys of so many numbers are embeddings more often than not; small encoders have 256.
_EMBEDDING = 200

_AGAIN = "Every build spends its epsilon."

# Another scale is offered if it makes the signal so many times clearer.
_WORTH = 1.25


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """Signal and errors of one number of an answer. Standard errors, in the units of values.

    Attributes:
        kernel: the feature map.
        spread: the rows that stand in for the private ones.
        value_norm: public bound on values.
    """

    kernel: Kernel
    spread: ErrorModel
    value_norm: float

    @classmethod
    def of(
        cls, layout: Layout, *, rows: int, sigma: float, sample: Sample | None = None
    ) -> "Prediction":
        """Return the prediction for so many rows.

        Args:
            layout: kernel, bounds and lattice.
            rows: a public number.
            sigma: of the noise, in lattice units.
            sample: what public rows tell, if there are any and the kernel was not made of them.
        """
        known = layout.kernel.public_sample
        if known is not None:
            sample = Sample.of(known)
        near = None
        if layout.reference is not None:
            near = Sample.of(layout.reference.mixed / layout.kernel.key_norm)
        kernel, tau = layout.kernel, layout.real_tau / layout.value_norm
        numerator = sigma * layout.real_unit * kernel.bound / math.exp(kernel.largest_logit)
        spread = ErrorModel(
            rows=rows,
            dim=kernel.dim,
            value_dim=layout.value_dim,
            tau=tau,
            multiplier=numerator / layout.value_norm / math.hypot(1, tau),
            weight_error=kernel.weight_error,
            sample=sample,
            points=usual_points(kernel),
            reference=near,
        )
        return cls(kernel=kernel, spread=spread, value_norm=layout.value_norm)

    @property
    def logit(self) -> float:
        """The largest logit."""
        return self.kernel.largest_logit

    @property
    def signal(self) -> float:
        """How much answers differ from query to query where keys tell values apart: at best."""
        return self.spread.signal(self.logit) * self.value_norm

    @property
    def noise_stderr(self) -> float:
        """The part of the standard error that the noise makes."""
        return min(self.spread.noise(self.logit), 1.0) * self.value_norm

    @property
    def kernel_stderr(self) -> float:
        """The part that the kernel makes."""
        varied = self.spread.kernel(self.logit)
        return min(math.hypot(varied, self._length_error), 1.0) * self.value_norm

    @property
    def _length_error(self) -> float:
        return self.kernel.length_error(self.spread.directions) * self.spread.value_spread

    @property
    def stderr(self) -> float:
        """The standard error of a number of an answer, noise and kernel; at most `value_norm`."""
        return min(math.hypot(self.noise_stderr, self.kernel_stderr), self.value_norm)

    @property
    def signal_to_error(self) -> float:
        """Signal over standard error: below one, answers are mostly error."""
        return self.signal / self.stderr

    @property
    def doubled_stderr(self) -> float:
        """The standard error with twice as many random features."""
        fewer = replace(self.spread, weight_error=self.spread.weight_error / math.sqrt(2))
        return replace(self, spread=fewer).stderr

    @property
    def noise_to_shrink_to(self) -> float | None:
        """How much of the noise may stay for the signal to be one standard error.

        None if the kernel's error alone is as large as the signal.
        """
        left = self.signal**2 - self.kernel_stderr**2
        if left <= 0:
            return None
        return math.sqrt(left) / (self.spread.noise(self.logit) * self.value_norm)

    @property
    def clearest_scale(self) -> tuple[float, float]:
        """The scale with the clearest answers, and their signal over standard error there.

        With a kernel that is as good there.
        """
        grid = np.geomspace(min(_LEAST_LOGIT, self.logit), 2 * self.logit, 60)
        clearest = max(grid, key=self._clearness)
        scale = float(f"{clearest / self.logit * self.kernel.scale:.2g}")
        return scale, self._clearness(scale / self.kernel.scale * self.logit)

    def _clearness(self, logit: float) -> float:
        """Return signal over standard error at another largest logit."""
        kernel = math.hypot(self.spread.kernel(logit), self._length_error)
        error = math.hypot(self.spread.noise(logit), kernel)
        return self.spread.signal(logit) / min(error, 1.0)

    @property
    def features_needed(self) -> int | None:
        """How many random features leave the signal one standard error; None if none do."""
        left = self.signal**2 - self.noise_stderr**2
        if left <= 0 or self.kernel.evidence is not Evidence.DRAWS:
            return None
        now = self.kernel.features
        needed = now * (self.spread.kernel(self.logit) * self.value_norm) ** 2 / left
        if not now < needed <= 2 * MOST_FREQUENCIES:
            return None
        return int(2 ** math.ceil(math.log2(needed)))

    def if_in_common(self, common: float = _COMMON) -> "Prediction":
        """Return the prediction for rows that have so much in common, as pixels have."""
        return replace(self, spread=self.spread.with_common(common))

    def within(self, stderr: float) -> str:
        """Return the ± that holds 95% of the time; never beyond the length of values."""
        return f"±{min(WITHIN * stderr, self.value_norm):.2g}"

    @property
    def assumed(self) -> str:
        """What rows the prediction is for."""
        if self.spread.sample is not None:
            return f"{self.spread.rows:,} rows like the public ones"
        if self.spread.common:
            return f"{self.spread.rows:,} rows that have {self.spread.common:.0%} in common"
        return f"{self.spread.rows:,} rows that are centred"

    @property
    def verdict(self) -> str:
        """Signal and error, the two parts of it, and for which rows."""
        said = (
            f"Answers differ by {times(self.signal_to_error)} times their standard error, at best. "
            f"Each number is within {self.within(self.stderr)} of exact attention, 95% of the "
            f"time: noise {self.within(self.noise_stderr)}, kernel "
            f"{self.within(self.kernel_stderr)}. For {self.assumed}"
        )
        if self.spread.sample is not None:
            return f"{said}."
        alike = self.if_in_common()
        return (
            f"{said}. For rows that have much in common, as pixels and counts do: "
            f"{times(alike.signal_to_error)} times, and within about {alike.within(alike.stderr)}."
        )

    @property
    def for_texts(self) -> str:
        """Better advice, if keys are as wide as embeddings of texts and answers hardly differ.

        They are nearly orthogonal, so an average over all of them says little.
        """
        if self.kernel.dim < _EMBEDDING or self.signal_to_error >= 2:
            return ""
        return (
            " If keys are vectors of texts: counts near public topics (discreet.Corpus, or "
            "reader='table') say far more at the same ε."
        )

    @property
    def of_more_features(self) -> str:
        """What the next doubling of the features would buy."""
        match self.kernel.evidence:
            case Evidence.CERTIFICATE:
                return "a smaller eps_s takes more of them"
            case Evidence.RESIDUAL:
                return "more landmarks have less error, and need more public rows"
        before, after = self.within(self.stderr), self.within(self.doubled_stderr)
        if before == after:
            return "more would change nothing: the noise hides the kernel's error"
        return f"twice as many features would bring {before} down to {after}"


def planned(released: Released[Layout]) -> Prediction | None:
    """Return what `plan` would say, if a number of rows is public; from settings alone."""
    rows = released.rows_hint or released.rows
    if not rows:
        return None
    return Prediction.of(released.layout, rows=rows, sigma=released.sigma)


def predicted(released: Released[Layout]) -> Prediction | None:
    """Return what `plan` would say, for as many rows as the noisy sums show if none is public.

    Of a stream's state the figure is a guess: days may be empty, and rows were left out. If the
    noisy sums show fewer rows, those count. Post-processing. None if there are no rows, or none to
    be seen.
    """
    rows = released.rows_hint or released.rows
    if rows is None:
        rows = round(noisy_rows(released))
    elif released.stream is not None and released.rows is None:
        rows = min(rows, round(noisy_rows(released)))
    if rows < 1:
        return None
    return Prediction.of(released.layout, rows=rows, sigma=released.sigma)


def mostly_noise(releases: Iterable[Released[Layout]]) -> str | None:
    """Return the sentences of a `MostlyNoiseWarning`; None if answers are clear of the noise.

    Post-processing: from public settings and noisy sums.

    Args:
        releases: the layers of one release, or one of them.
    """
    given = list(releases)
    judged = [_judged(each) for each in given]
    ratios = [0.0 if said is None else said.signal_to_error for said in judged]
    noisy = [ratio for ratio in ratios if ratio < 1]
    if not noisy:
        return None
    worst = ratios.index(min(ratios))
    which = "" if len(ratios) == 1 else f" of {len(noisy)} of {len(ratios)} layers"
    said, released = judged[worst], given[worst]
    if said is None:
        return f"Answers{which} are mostly noise: the noisy sums show no rows at all."
    public = said.spread.rows == (released.rows_hint or released.rows)
    counted = "" if public else " (as the noisy sums count them)"
    evenly = " and are spread evenly" if said.spread.sample is None else ""
    return (
        f"Answers{which} are predicted to be mostly noise: from query to query they would differ "
        f"by {times(min(ratios[worst], 0.99))} standard errors. That assumes "
        f"{said.assumed}{evenly}{counted}; "
        "where rows lie in groups it can be more, and differences of answers from the base rate "
        f"show it. {_what_would_help(said, released)}{said.for_texts}"
    )


def _what_would_help(said: Prediction, released: Released[Layout]) -> str:
    if released.stream is not None:
        shrink = said.noise_to_shrink_to
        rows = "" if shrink is None else f", {_two_digits_up(said.spread.rows / shrink):,.0f} or so"
        return (
            f"More rows would help{rows}: more steps, or a longer window or half-life, which cost "
            "nothing; a stream of its own with a larger epsilon, or tuned for what is read, would, "
            "too."
        )
    if found := remedies(said, released):
        return (
            f"Built again, at scale={said.kernel.scale:.3g} where no other is named, one of these "
            f"would bring that to one standard error: {'; '.join(found)}. {_AGAIN}"
        )
    scale, clear = said.clearest_scale
    if clear >= _WORTH * said.signal_to_error:
        near = f"scale={scale:g} would come nearest: {times(clear)} standard errors"
        return f"Built again, {near}. {_AGAIN}"
    return "No one change would do: it takes more rows, a larger epsilon and more features."


def _judged(released: Released[Layout]) -> Prediction | None:
    """Return the prediction, with what rows have in common as the noisy sums show it.

    Only where that decides: rows with much in common have less error than centred ones.
    """
    said = predicted(released)
    if said is None or said.signal_to_error >= 1 or said.spread.sample is not None:
        return said
    near = said.spread.nearness(said.logit)
    alike = said.if_in_common(noisy_common(released, rows=said.spread.rows, near=near))
    return max(said, alike, key=lambda each: each.signal_to_error)


def remedies(said: Prediction, released: Released[Layout]) -> list[str]:
    """Return what would each bring the signal to one standard error, all else the same.

    Args:
        said: a prediction whose signal is below that.
        released: what it was made for.
    """
    found, mechanism = [], released.mechanism
    if (shrink := said.noise_to_shrink_to) is not None:
        if (rows := said.spread.rows / shrink) <= _MOST_ROWS:
            found.append(f"{_two_digits_up(rows):,.0f} rows")
        delta, sigma = released.guarantee.delta, mechanism.sigma * shrink
        if sigma * _MOST_EPSILON > mechanism.sensitivity:  # else ε is larger than that
            sensitivity = mechanism.sensitivity
            epsilon = gaussian_epsilon(sigma=sigma, delta=delta, sensitivity=sensitivity)
            if 0 < epsilon <= _MOST_EPSILON:
                found.append(f"epsilon={_two_digits_up(epsilon):g}")
        heads = round(mechanism.sensitivity**2)
        if heads > 1 and (fewer := math.floor(heads * shrink**2)) >= 1:
            found.append(f"{fewer} of the {heads} heads")
    scale, clear = said.clearest_scale
    if clear >= max(1.0, _WORTH * said.signal_to_error):
        found.append(f"scale={scale:g}")
    if (features := said.features_needed) is not None:
        found.append(f"features={features}")
    return found


def _two_digits_up(number: float) -> float:
    """Return a number rounded up to two digits."""
    unit = 10.0 ** (math.floor(math.log10(number)) - 1)
    return float(f"{math.ceil(number / unit * (1 - 1e-12)) * unit:.2g}")


def rows_needed(layout: Layout, *, sigma: float) -> float:
    """Return how many rows at the largest logit make a denominator `CLEAR` standard errors.

    Args:
        layout: kernel, bounds and lattice.
        sigma: of the noise, in lattice units.
    """
    numerator = sigma * layout.real_unit * layout.kernel.bound
    return CLEAR * numerator / math.exp(layout.kernel.largest_logit) / layout.real_tau


def noise_of_sums(*, numerator: float, denominator: float) -> tuple[str, str]:
    """Return what a page says of the noise before sums are divided; both are standard errors."""
    return (
        "noise of sums",
        (
            f"standard error {numerator:.4g} of a numerator, {denominator:.4g} of a denominator, "
            "at the longest query"
        ),
    )


def matching_rows(needed: float) -> tuple[str, str]:
    """Return what a page says of `rows_needed`."""
    return "matching rows", f"{needed:,.0f} or more for an answer; from fewer, it is noise"


def times(ratio: float) -> str:
    """Return a ratio as a person says it."""
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2g}"
