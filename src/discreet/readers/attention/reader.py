"""Answers from a released state, as pure functions of queries and arrays.

No cache, no branch that depends on a value, and nothing of numpy where the arrays are torch's: so
torch compiles, exports, maps and differentiates them. Queries must be finite; `Memory` checks that
at the door.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from discreet._arrays import namespace
from discreet._typing import Array, Floats
from discreet.features.fourier import Fourier
from discreet.features.kernel import Evidence, Kernel
from discreet.noise import RoundedGaussian
from discreet.readers.attention import reference
from discreet.readers.attention.layout import Layout
from discreet.readers.attention.readout import Blocks, Readout
from discreet.sums.asking import Queries
from discreet.sums.release import Released

# So many standard errors hold 95% of the time.
WITHIN = 1.96

_FAR = 16.0

# Quotients beyond this, in units of the length of values, are shortened before they are squared.
_HUGE = 1e15

# Errors beyond this, in units of the length of values, are not told apart.
_FAR_OFF = 1e6

# A remainder of so many times the square that it has by chance stands for something.
_BY_CHANCE = 4.0

# Less than this of a query's squared length, and blocks of landmarks know nothing of it.
_LEAST_OWN = 1e-6

# The number of rows is estimated from the noisy state; the truth is within this many standard
# errors of it 399 times in 400.
_CERTAIN = 3.0


class Known(NamedTuple):
    """Answers, and all that their errors are made of (`Evidence` of draws, and certificates).

    Attributes:
        answers: shape (heads, m, d_v).
        noise: the standard error of a numerator over the denominator, in units of the length of
            values, shape (heads, m, 1).
        noise_of_rest: the same of what blocks of draws add; all of it without reference points.
        left_out: what answers are without each block of draws, in these units, shape
            (heads, blocks, m, d_v).
        doubt: the mean square of what is lost with the part of a remainder that is left out, in
            the square of these units, shape (heads, m, d_v); zero without reference points.
        certified: so many standard errors hold what a kernel can do to a number, shape
            (heads, m, 1); zero if its error is one of draws.
    """

    answers: Array
    noise: Array
    noise_of_rest: Array
    left_out: Array
    doubt: Array
    certified: Array


@dataclass(frozen=True, eq=False)
class Reader:
    """How to answer from one state; post-processing, so it costs no privacy, ever.

    Attributes:
        layout: kernel, bounds and lattice.
        deviation: standard deviation of the noise on one entry of the state, in real units.
        certified: E/(1 - E) for weights that are certified to be wrong by a factor of at most
            1 ± E; infinite if nothing is.
        rounding: what rounding moves each weight by at the most, over ‖φ(q)‖ and the largest weight
            e^t.
        widening: Student's quantile over the normal one: few blocks know a spread only roughly.
        arrays: all that depends on the state, by name, in float64 (and whole numbers). `attend` and
            the others take them as an argument, wherever and in whatever precision a caller keeps
            them: answers are computed there, in that precision.
    """

    layout: Layout
    deviation: float
    certified: float
    rounding: float
    widening: float
    arrays: Mapping[str, NDArray[Any]]

    @classmethod
    def of(cls, released: Released[Layout]) -> "Reader":
        """Return the reader of a state: near its reference points, if it has some, else `plain`.

        Args:
            released: the noisy sums, with what is public about them.
        """
        return cls.near(released)

    @classmethod
    def near(cls, released: Released[Layout]) -> "Reader":
        """Return the reader that is more exact near public points (`reference.fit`).

        Near those of the layout and the usual ones. Kernels without random frequencies are read as
        they are.

        Args:
            released: the noisy sums, with what is public about them.
        """
        layout, kernel = released.layout, released.layout.kernel
        if not isinstance(kernel, Fourier) or not reference.usual_points(kernel):
            return cls.plain(released)
        noise = np.full(layout.columns, _deviation(released))
        noise[-1] /= layout.real_tau
        arrays = reference.fit(
            kernel,
            _arrays(released),
            layout.reference,
            noise=noise,
            value_norm=layout.value_norm,
            heads=round(released.mechanism.sensitivity**2),  # each moves by one
        )
        return cls._reading(released, arrays)

    @classmethod
    def plain(cls, released: Released[Layout]) -> "Reader":
        """Return the reader that takes the kernel's features as they are: φ(q)·S.

        Args:
            released: the noisy sums, with what is public about them.
        """
        return cls._reading(released, _arrays(released))

    @classmethod
    def _reading(cls, released: Released[Layout], arrays: dict[str, NDArray[Any]]) -> "Reader":
        layout, kernel = released.layout, released.layout.kernel
        deviation = _deviation(released)
        least, most = _mass(released, arrays, deviation)
        edge, error = math.exp(kernel.largest_logit), kernel.certified_error
        bounds = {"least": least[:, None, None] / edge, "most": most[:, None, None] * edge}
        return cls(
            layout,
            deviation,
            certified=error / (1 - error) if error < 1 else math.inf,
            rounding=kernel.rounding_error / edge,
            widening=float(special.stdtrit(max(kernel.blocks - 1, 1), 0.975)) / WITHIN,
            arrays={**arrays, **bounds},
        )

    @property
    def kernel(self) -> Kernel:
        """The feature map."""
        return self.layout.kernel

    @property
    def readout(self) -> Readout:
        """How sums are read from the arrays."""
        return Readout(self.kernel)

    def attend(self, queries: Array, arrays: Mapping[str, Array]) -> Array:
        """Return private attention, in the shape and dtype of the queries: (..., d_v).

        Args:
            queries: finite, shape (..., d), or (..., *heads, m, d).
            arrays: those of `arrays`, in the library and on the device of the queries.
        """
        flat = Queries.of(queries, self.layout, arrays["least"].dtype)
        return flat.back(self.answers(flat.rows, arrays)[0])

    def answers(self, rows: Array, arrays: Mapping[str, Array]) -> tuple[Array]:
        """Return private attention, clamped to the ball of values, shape (heads, m, d_v).

        Args:
            rows: queries, finite, shape (heads, m, d), in the precision of the arrays.
            arrays: as for `attend`.
        """
        clipped, squared = self.kernel.clip_queries(rows)
        return (self._quotients(self.readout.sums(clipped, arrays), squared, arrays)[0],)

    def answers_with_stderr(self, rows: Array, arrays: Mapping[str, Array]) -> tuple[Array, Array]:
        """Return the same, and the standard error of each number against exact attention.

        Noise and kernel together. `docs/errors.md` says where it comes from, and why it holds.

        Args:
            rows: queries, finite, shape (heads, m, d), in the precision of the arrays.
            arrays: as for `attend`.
        """
        clipped, squared = self.kernel.clip_queries(rows)
        match self.kernel.evidence:
            case Evidence.DRAWS:
                inside, error = self._by_draws(clipped, squared, arrays)
            case Evidence.CERTIFICATE:
                inside, error = self._by_certificate(clipped, squared, arrays)
            case Evidence.RESIDUAL:
                inside, error = self._by_residual(clipped, squared, arrays)
        # No number of exact attention is longer than values are.
        xp = namespace(inside)
        most = (xp.abs(inside) + self.layout.value_norm) / WITHIN
        return inside, xp.minimum(error, most)

    def answers_with_noise(self, rows: Array, arrays: Mapping[str, Array]) -> tuple[Array, Array]:
        """Return the same answers, and the standard error of the noise in each number alone.

        Args:
            rows: queries, finite, shape (heads, m, d), in the precision of the arrays.
            arrays: as for `attend`.
        """
        return self._with_noise(*self.kernel.clip_queries(rows), arrays)

    def differences(self, rows: Array, arrays: Mapping[str, Array]) -> tuple[Array, Array]:
        """Return how far answers are from the base rate, and the standard error of each distance.

        The base rate is the answer to the query at the origin: the plain mean of values. Both come
        from one noisy state, so errors that they share cancel. `docs/errors.md`, "Differences".

        Args:
            rows: queries, finite, shape (heads, m, d), in the precision of the arrays.
            arrays: as for `attend`.
        """
        xp = namespace(rows)
        clipped, squared = self.kernel.clip_queries(xp.concat([0 * rows[:, :1], rows], axis=1))
        inside, den = self._quotients(self.readout.sums(clipped, arrays), squared, arrays)
        length = self.readout.norms(clipped, squared, arrays)
        inner = self.readout.inner_with_origin(clipped, squared, arrays)
        over = 1 / (self._factor(squared) * den)
        known = self._noise_apart(inside, over, length, inner)
        match self.kernel.evidence:
            case Evidence.DRAWS:
                blocks = self.readout.blocks(clipped, squared, arrays)
                kept, rest = blocks.kept, self._rest(blocks, inside, den)
                length = self.kernel.query_norms(clipped, squared, arrays) * kept
                inner = self.kernel.inner_with_origin(clipped, arrays) * kept * kept[:, :1]
                without = self._left_out(blocks)
                jackknife = self._jackknife(without[:, :, 1:] - without[:, :, :1])
                least = xp.minimum(kept[:, 1:], kept[:, :1])
                error = self._beside(
                    known,
                    jackknife,
                    noise_of_rest=self._noise_apart(inside, over, length, inner),
                    doubt=_doubt(jackknife, rest[:, 1:] - rest[:, :1], least, blocks.doubt),
                )
            case Evidence.CERTIFICATE:
                # At the origin a polynomial gives all rows one weight, but for rounding.
                there, here = (
                    self._certified_part(den, clipped, squared, arrays, certified)
                    for certified in (self.certified, 0.0)
                )
                error = known + there[:, 1:] + here[:, :1]
            case Evidence.RESIDUAL:
                noise = self._noise_of(inside, den, clipped, squared, arrays)
                whole = self._by_residual(clipped, squared, arrays)[1]
                beyond = xp.sqrt(xp.maximum(whole * whole - noise * noise, 0 * whole))
                error = xp.hypot(known, beyond[:, 1:] + beyond[:, :1])
        apart = inside[:, 1:] - inside[:, :1]
        # No two numbers of exact attention are further apart than values can be.
        most = (xp.abs(apart) + 2 * self.layout.value_norm) / WITHIN
        return apart, xp.minimum(error, most)

    def known(self, rows: Array, arrays: Mapping[str, Array]) -> Known:
        """Return answers, and what their errors are made of: for whoever combines answers.

        Args:
            rows: queries, finite, shape (heads, m, d), in the precision of the arrays.
            arrays: as for `attend`.
        """
        clipped, squared = self.kernel.clip_queries(rows)
        xp = namespace(clipped)
        blocks = self.readout.blocks(clipped, squared, arrays)
        inside, den = self._quotients(blocks.sums, squared, arrays)
        over = self.deviation / self._factor(squared) / den / self.layout.value_norm
        own = self.kernel.query_norms(clipped, squared, arrays) * blocks.kept
        far = xp.full_like(den, _FAR_OFF)
        noise, noise_of_rest = (xp.minimum(each * over, far) for each in (blocks.norms, own))
        without = self._left_out(blocks)
        doubt, certified = xp.zeros_like(inside), xp.zeros_like(den)
        if self.kernel.evidence is Evidence.CERTIFICATE:
            certified = self._certified_part(den, clipped, squared, arrays, self.certified)
        if self.kernel.evidence is Evidence.DRAWS:
            rest = self._rest(blocks, inside, den)
            doubt = _doubt(self._jackknife(without), rest, blocks.kept, blocks.doubt)
        return Known(inside, noise, noise_of_rest, without, doubt, certified)

    def sums(self, rows: Array, arrays: Mapping[str, Array]) -> tuple[Array]:
        """Return AV and, last, D, before normalisation and clamping, shape (heads, m, d_v + 1).

        Args:
            rows: queries, finite, shape (heads, m, d), in the precision of the arrays.
            arrays: as for `attend`.
        """
        clipped, squared = self.kernel.clip_queries(rows)
        return (self.readout.sums(clipped, arrays) * self._factor(squared),)

    def noise(self, rows: Array, arrays: Mapping[str, Array]) -> tuple[Array]:
        """Return the standard error of each entry of AV, shape (heads, m, 1).

        Args:
            rows: queries, finite, shape (heads, m, d), in the precision of the arrays.
            arrays: as for `attend`.
        """
        return (self._noise(*self.kernel.clip_queries(rows), arrays),)

    def _with_noise(
        self, clipped: Array, squared: Array, arrays: Mapping[str, Array]
    ) -> tuple[Array, Array]:
        """Return answers, and the standard error of their noise."""
        inside, den = self._quotients(self.readout.sums(clipped, arrays), squared, arrays)
        return inside, self._noise_of(inside, den, clipped, squared, arrays)

    def _by_draws(
        self, clipped: Array, squared: Array, arrays: Mapping[str, Array]
    ) -> tuple[Array, Array]:
        """Return answers, and their standard errors by a jackknife over blocks of draws."""
        blocks = self.readout.blocks(clipped, squared, arrays)
        inside, den = self._quotients(blocks.sums, squared, arrays)
        over = self.deviation / self._factor(squared) / den
        noise = blocks.norms * over
        alone = self.kernel.query_norms(clipped, squared, arrays) * over * blocks.kept
        jackknife = self._jackknife(self._left_out(blocks))
        rest = self._rest(blocks, inside, den)
        return inside, self._beside(
            noise * self._quotient_factor(inside, noise),
            jackknife,
            noise_of_rest=alone * self._quotient_factor(inside, alone),
            doubt=_doubt(jackknife, rest, blocks.kept, blocks.doubt),
        )

    def _beside(
        self, noise: Array, jackknife: Array, *, noise_of_rest: Array, doubt: Array
    ) -> Array:
        """Return the standard error of noise and kernel, by a jackknife of what blocks add.

        The noise is known, and not estimated; what blocks differ by beyond theirs is the kernel's.
        Where part of what they add is left out, that may be wrong, too: `doubt`.
        """
        xp, norm = namespace(noise), self.layout.value_norm
        far = xp.full_like(noise, _FAR_OFF)
        known, own = (xp.minimum(each / norm, far) ** 2 for each in (noise, noise_of_rest))
        beyond = jackknife - own
        kernel = (xp.maximum(beyond, xp.zeros_like(beyond)) + doubt) * self.widening**2
        return xp.sqrt(known + kernel) * norm

    def _rest(self, blocks: Blocks, inside: Array, den: Array) -> Array:
        """Return what blocks of draws add to answers, in units of the length of values."""
        xp = namespace(inside)
        rest = xp.sum(blocks.parts, axis=1)
        moved = (rest[..., :-1] - inside * rest[..., -1:]) / (den * self.layout.value_norm)
        far = xp.full_like(moved, _FAR_OFF)
        return xp.minimum(xp.maximum(moved, -far), far)

    def _noise_apart(self, inside: Array, over: Array, length: Array, inner: Array) -> Array:
        """Return the standard error of the noise in the distance of answers from the first.

        To first order the noise N moves an answer o by N·h(q)/D·(1, -o), so a distance by what is
        left of two such terms. In one entry of numerators and, times 1/τ, of denominators.

        Args:
            inside: answers; the first is that of the origin.
            over: one over the denominators D.
            length: ‖h(q)‖.
            inner: ⟨h(q), h(0)⟩.
        """
        xp, tau = namespace(inside), self.layout.real_tau
        length, inner = length * over, inner * over * over[:, :1]
        total = 0
        for times in (xp.ones_like(inside), inside * (1 / tau)):
            each = times * length
            both = each[:, 1:] ** 2 + each[:, :1] ** 2
            cross = 2 * inner[:, 1:] * times[:, 1:] * times[:, :1]
            total = total + xp.maximum(both - cross, 0 * both)
        return xp.sqrt(total) * self.deviation

    def _by_certificate(
        self, clipped: Array, squared: Array, arrays: Mapping[str, Array]
    ) -> tuple[Array, Array]:
        """Return answers, and errors of which 1.96 hold the noise and all that a kernel can do.

        Weights that are wrong by a factor of at most 1 ± E, and by at most ρ besides, move an
        average of numbers within ±value_norm by at most value_norm times
        (1 + nρ/D)·E/(1 - E) + 2nρ/D, for n rows and the denominator D (`docs/errors.md`).
        """
        inside, den = self._quotients(self.readout.sums(clipped, arrays), squared, arrays)
        noise = self._noise_of(inside, den, clipped, squared, arrays)
        return inside, noise + self._certified_part(den, clipped, squared, arrays, self.certified)

    def _certified_part(
        self,
        den: Array,
        clipped: Array,
        squared: Array,
        arrays: Mapping[str, Array],
        certified: float,
    ) -> Array:
        """Return what a kernel with such an E/(1 - E) can do to answers, over 1.96."""
        # As many rows as there may be: `most` has e^t in it.
        norms = self.kernel.query_norms(clipped, squared, arrays)
        rounded = self.rounding * arrays["most"] * norms / den
        return self.layout.value_norm / WITHIN * (certified * (1 + rounded) + 2 * rounded)

    def _by_residual(
        self, clipped: Array, squared: Array, arrays: Mapping[str, Array]
    ) -> tuple[Array, Array]:
        """Return answers, and their standard errors by what blocks of landmarks alone know.

        Leaving a block out moves an answer by what it alone adds. What no landmark spans counts for
        as much in proportion; and for a query that is unlike the public rows, all rows might be
        like it.
        """
        xp = namespace(clipped)
        read = self.kernel.read_parts(clipped, squared, arrays)
        inside, den = self._quotients(read.sums, squared, arrays)
        norm = self.layout.value_norm
        residual = xp.maximum(read.whole - read.covered, xp.zeros_like(read.whole))
        missing = residual / xp.maximum(read.own, xp.full_like(read.own, _LEAST_OWN))
        missing = xp.maximum(missing, xp.ones_like(missing))
        apart = read.parts[..., :-1] - xp.expand_dims(inside, axis=1) * read.parts[..., -1:]
        # In units of the length of values; far beyond it one error is as bad as another, and no
        # square leaves float32.
        far = xp.full_like(den, _FAR_OFF)
        apart = xp.minimum(xp.abs(apart) / xp.expand_dims(den * norm, axis=1), far[:, None])
        noise = xp.minimum(self.deviation * self.kernel.bound / norm / den, far)
        noise = noise * self._quotient_factor(inside, noise * norm * xp.sqrt(read.covered))
        # The parts have noise of their own, which is known.
        kernel = xp.sum(apart * apart, axis=1) - noise * noise * read.own
        kernel = xp.sqrt(xp.maximum(kernel, xp.zeros_like(kernel))) * missing
        squares = noise * noise * read.covered + kernel * kernel
        # As many rows as there may be, all like the query: `most` has e^t in it.
        beyond = xp.maximum(residual - read.usual, xp.zeros_like(residual))
        rows = arrays["most"] / xp.maximum(den, arrays["most"] * (1 / _FAR_OFF))
        error = xp.sqrt(squares) + beyond * rows
        # A denominator that is too large by its noise makes the error look too small.
        shown = self.deviation * self.kernel.bound / self.layout.real_tau / den
        room = 1 - shown * xp.sqrt(read.covered)
        return inside, error * norm / xp.maximum(room, xp.full_like(room, 0.25))

    def _quotients(
        self, sums: Array, squared: Array, arrays: Mapping[str, Array]
    ) -> tuple[Array, Array]:
        """Return answers, and the denominators that they were divided by.

        Args:
            sums: numerators and denominators, over a factor that both share.
            squared: lengths of the queries.
            arrays: as for `attend`.
        """
        xp = namespace(sums)
        # What n rows can give; n is public, or estimated from the noisy state.
        low = arrays["least"] / self._factor(squared)
        den = xp.minimum(xp.maximum(sums[..., -1:], low), arrays["most"])
        out = sums[..., :-1] / den
        norm = self.layout.value_norm
        relative = out if norm == 1 else out * (1 / norm)
        # To a size whose square is finite, in float32 too; by one, almost always.
        top = xp.max(xp.abs(relative), axis=-1, keepdims=True) * (1 / _HUGE)
        shrink = xp.maximum(top, xp.ones_like(top))
        out, relative = out / shrink, relative / shrink
        length = xp.sum(relative * relative, axis=-1, keepdims=True)
        return out / xp.sqrt(xp.maximum(length, xp.ones_like(length))), den

    def _left_out(self, blocks: Blocks) -> Array:
        """Return quotients without each block of features: (heads, blocks, m, d_v).

        In units of the length of values. They are not clamped as answers are: where a denominator
        is noise, they fly apart, and the error is wide instead of wrong.

        Args:
            blocks: sums of each.
        """
        parts = blocks.parts
        xp, count = namespace(parts), parts.shape[1]
        others = xp.sum(parts, axis=1, keepdims=True) - parts
        others = others + xp.expand_dims(blocks.base, axis=1) * ((count - 1) / count)
        den = others[..., -1:] * self.layout.value_norm
        without = others[..., :-1] / xp.where(den == 0, xp.ones_like(den), den)
        # Far outside the ball of values one quotient is as wrong as another.
        far = xp.full_like(without, _FAR)
        return xp.minimum(xp.maximum(without, -far), far)

    def _jackknife(self, without: Array) -> Array:
        """Return how much quotients differ when one block is left out, as a variance."""
        xp, count = namespace(without), self.kernel.blocks
        apart = without - xp.mean(without, axis=1, keepdims=True)
        return xp.sum(apart * apart, axis=1) * ((count - 1) / count)

    def _noise_of(
        self,
        inside: Array,
        den: Array,
        clipped: Array,
        squared: Array,
        arrays: Mapping[str, Array],
    ) -> Array:
        """Return the standard error of the noise in answers."""
        numerator = self._noise(clipped, squared, arrays) / self._factor(squared) / den
        return numerator * self._quotient_factor(inside, numerator)

    def _quotient_factor(self, inside: Array, numerator: Array) -> Array:
        """Return how much more noise an answer has than its numerator, over its denominator.

        √(1 + o²/τ²). An answer's square is larger than the truth's, by the variance of its noise:
        that is taken out.
        """
        xp, norm = namespace(inside), self.layout.value_norm
        own = xp.minimum(numerator / norm, xp.full_like(numerator, _FAR_OFF))
        squares = (inside / norm) ** 2 - own * own
        true = xp.maximum(squares, xp.zeros_like(squares))
        return xp.sqrt(1 + true / (self.layout.real_tau / norm) ** 2)

    def _noise(self, clipped: Array, squared: Array, arrays: Mapping[str, Array]) -> Array:
        """Return the standard error of a numerator: σ·‖h(q)‖."""
        return self.readout.norms(clipped, squared, arrays) * self.deviation

    def _factor(self, squared: Array) -> Array:
        """Return what `Kernel.read` leaves out: e^(s·exponent) for squared lengths s."""
        exponent = self.kernel.query_exponent
        return namespace(squared).exp(squared * exponent) if exponent else 1.0


def _deviation(released: Released[Layout]) -> float:
    """Return the standard deviation of the noise on one entry of the state, in real units."""
    return math.sqrt(RoundedGaussian(sigma=released.sigma).variance) * released.layout.real_unit


def _arrays(released: Released[Layout]) -> dict[str, NDArray[Any]]:
    """Return all that the kernel needs to read a state in real units."""
    layout = released.layout
    real = released.state.astype(np.float64) * layout.real_unit
    real[:, -1] /= layout.real_tau
    return layout.kernel.reading(np.asarray(real.swapaxes(1, 2)))


def _doubt(jackknife: Array, rest: Array, kept: Array, usual: Array) -> Array:
    """Return the mean square of what is lost with the part of a remainder that is left out.

    Args:
        jackknife: the variance of the part that is kept.
        rest: that part.
        kept: its share ρ.
        usual: the mean square, over the variance of the whole remainder and (1 - ρ)², as it was
            measured. Where a remainder is larger than chance, its own square counts instead.
    """
    xp, left = namespace(rest), 1 / kept - 1
    return xp.maximum(usual * jackknife, rest * rest - _BY_CHANCE * jackknife) * (left * left)


def _mass(
    released: Released[Layout], arrays: Mapping[str, NDArray[Any]], deviation: float
) -> tuple[Floats, Floats]:
    """Return bounds on Σ_i 1 (for records: of their factors) in each head, shape (heads,)."""
    layout, kernel = released.layout, released.layout.kernel
    if released.rows is not None:
        rows = np.full(layout.head_count, float(max(released.rows, 1)))
        return rows, rows
    mass, noise = at_origin(layout, arrays)
    margin = _CERTAIN * noise * deviation / layout.real_tau
    rows, margin = mass / kernel.weight_at_origin, margin / kernel.weight_at_origin
    return np.maximum(rows - margin, 1.0), np.maximum(rows + margin, 1.0)


def at_origin(layout: Layout, arrays: Mapping[str, NDArray[Any]]) -> tuple[Floats, Floats]:
    """Return the denominator of the query at the origin, and ‖h(0)‖, both of shape (heads,)."""
    readout = Readout(layout.kernel)
    origin = np.zeros((layout.head_count, 1, layout.kernel.dim))
    length = np.zeros((layout.head_count, 1, 1))
    norms = np.broadcast_to(readout.norms(origin, length, arrays), length.shape)[:, 0, 0]
    return readout.sums(origin, arrays)[:, 0, -1], norms
