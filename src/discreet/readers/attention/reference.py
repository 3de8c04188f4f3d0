"""Public reference points, and the weights with which they explain a released state.

The plain readout of random Fourier features, φ(q)·S, is the mean of φ_ω(q)·S_ω over the frequencies
ω that were drawn, and its error falls with the root of their number only. But the state knows more:
where rows lie near reference points, a few weights T on the points explain all S_ω at once, and the
exact kernel K(q, points)·T is the mean of what they explain over *all* frequencies. What they do
not explain, the remainder e, is read as before (`readout`).

- T is a ridge regression of the state on the features of the points. The remainder of a fold of
  frequencies is what T gets wrong there when it is fitted on all other folds. So, with ρ = 1, the
  mean over draws of frequencies is the same as the plain readout's, wherever the rows are; and the
  variance is that of e instead of that of S. A wrong reference explains nothing, and costs nothing.
- The ridge is the one with the shortest remainder, and so is the weight that a caller's points have
  beside the usual ones: points that explain nothing are not used. Frequencies are orthogonal, so
  the plain readout is better than its length says (`_orthogonality`), and it stays where no
  remainder is shorter than that.
- ρ weighs what leaving the remainder out would cost against what it adds (`_share_kept`): where
  all rows lie near points, the remainder is noise and chance, and little of it is kept.

All of this is a function of the released state and of public points. It is post-processing, and
costs no privacy. `docs/errors.md`, "Reading near public points".
"""

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet._typing import Floats
from discreet.features.fourier import Fourier, public_normals
from discreet.features.kernel import Kernel
from discreet.features.public_rows import PublicRows

# Points that nobody has to give: so many on the sphere of the longest keys, and so many inside it;
# and which share of the prior variance those on the sphere have. Beside a caller's own points there
# are a quarter as many, with one of these shares of all.
_ON_SPHERE, _INSIDE, _SPHERE_SHARE = 1024, 512, 0.7
_USUAL_SHARES = (0.1, 0.5)
USUAL_POINTS = _ON_SPHERE + _INSIDE

# So many frequencies tell which share is best.
_THINNED = 256

# Releases of more features than these, in all heads together, have fewer of the usual points: down
# to one in so many.
_AT_FULL_EFFORT, _LEAST_EFFORT = 2**13, 8

# Ridges to choose from, over the mean eigenvalue of the features of points.
_RIDGES = tuple(10.0 ** (half / 2) for half in range(-3, 5))

# A ridge at which points explain nothing: the state is its own remainder.
_NOTHING = 1e12

# Directions that have less than this of a ridge are left out.
_NEGLIGIBLE = 1e-2

# So many frequencies are in a fold at the most.
_MOST_IN_FOLD = 64

# The remainder is never left out altogether.
_LEAST_KEPT = 1 / 64

# What a remainder stands for is looked at where so many points are, or a few more.
_TRIED = 256

# So many pairs of folds tell what is missing, or a few fewer: the fewer, the larger folds are.
_FEWEST_PAIRS, _MOST_PAIRS = 40, 120

# The features of points are remembered for the next memory up to so many features: 100 MB or less.
_MOST_KEPT = 4096

# So many rows of signs tell ‖h‖ within 4% or so; in a release of many heads, 64 of them within 9%.
_SIGN_ROWS = 256


def usual_points(kernel: Kernel) -> int:
    """Return how many points nobody has to give, for one head; zero if a kernel has no draws."""
    draws = isinstance(kernel, Fourier) and kernel.blocks > 1
    return USUAL_POINTS if draws else 0


def fit(
    kernel: Fourier,
    arrays: Mapping[str, NDArray[Any]],
    reference: PublicRows | None,
    *,
    noise: Floats,
    value_norm: float,
    heads: int,
) -> dict[str, NDArray[Any]]:
    """Return the arrays with which `Readout` reads a state near points.

    It takes about a second for 2,048 features, and while it lasts a few matrices of as many rows as
    there are features, and as many columns as there are points. Of many heads each takes a tenth
    of a second or two.

    Args:
        kernel: the feature map.
        arrays: of its `reading`: the state.
        reference: a caller's public points, in the units of keys; None if there are none.
        noise: the standard deviation of the noise on each column of the state, shape (c,).
        value_norm: public bound on values.
        heads: of the whole release: where there are many, each has fewer of the usual points.
    """
    waves = _Waves.of(kernel, arrays["frequencies"])
    columns = _Columns.of(waves, arrays, noise, value_norm)
    fewer = min(max(heads * waves.size // _AT_FULL_EFFORT, 1), _LEAST_EFFORT)
    places = _best(_Places(kernel, arrays["frequencies"], fewer), reference, waves, columns)
    small = kernel.features <= _MOST_KEPT
    basis = _basis(places) if small else _basis.__wrapped__(places)
    points, roots = basis.points, np.sqrt(basis.shares)[:, None]
    ridges, rest, _ = _shortest_remainder(basis, columns)
    weights = basis.weights(columns.state, rest, ridges)
    mass = columns.mass(np.sum(weights[:, :, -1] * roots, axis=0), rest, kernel.largest_logit)
    share = _share_kept(basis, columns, rest, ridges, mass)

    sign_rows = max(_SIGN_ROWS // fewer, 64)
    signs = [basis.signs(ridge, sign_rows) for ridge in ridges.tolist()]
    rest_of_signs, point_signs = (np.stack(each) for each in zip(*signs, strict=True))

    by_head = (1, 0, 2)
    half = kernel.largest_logit / (2 * kernel.query_norm**2)
    cosines, sines = np.split(rest.transpose(by_head) * waves.root, 2, axis=1)
    cosine_signs, sine_signs = np.split(rest_of_signs * waves.root, 2, axis=1)
    return {
        "frequencies": arrays["frequencies"],
        "cosines": cosines,
        "sines": sines,
        "reference": _exponents(points, half),
        "half_square": np.full((1, 1), half),
        "reference_weights": weights.transpose(by_head) * roots,
        "kept": share.kept[:, None, None],
        "usual_square": share.usual_square[:, None, None],
        "doubt": share.doubt[:, None, None],
        "reference_signs": point_signs * roots,
        "cosine_signs": cosine_signs,
        "sine_signs": sine_signs,
    }


def _exponents(points: Floats, half: float) -> Floats:
    """Return what makes exponents of [y, half·‖y‖², 1], shape (d + 2, M).

    They are -half·‖y - x‖², to the base of two.
    """
    squares = half * np.sum(points * points, axis=1)[None]
    parts = [np.ascontiguousarray(points.T) * (2 * half), np.full_like(squares, -1.0), -squares]
    return np.concatenate(parts) / math.log(2)


@dataclass(frozen=True, eq=False)
class _Places:
    """What the points and their features depend on: a kernel, and a caller's points. Hashable.

    Attributes:
        kernel: the feature map.
        frequencies: as they are read, shape (d, m); with zeros for those that the last block lacks.
        fewer: how many times fewer of the usual points there are.
        reference: a caller's points, if there are any.
        usual_share: of the prior variance, that the usual points have beside them.
    """

    kernel: Fourier
    frequencies: Floats
    fewer: int
    reference: PublicRows | None = None
    usual_share: float = 1.0

    @cached_property
    def _known_by(self) -> tuple[object, ...]:
        digest = hashlib.sha256(np.ascontiguousarray(self.frequencies).tobytes()).digest()
        return self.kernel, digest, self.fewer, self.reference, self.usual_share

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Places) and self._known_by == other._known_by

    def __hash__(self) -> int:
        return hash(self._known_by)

    def points(self) -> tuple[Floats, Floats]:
        """Return points in the units of queries, (M, d), and their shares, which add up to one."""
        fewer = max(self.fewer, 1 if self.reference is None else 4)
        on_sphere, inside = _ON_SPHERE // fewer, _INSIDE // fewer
        size = (on_sphere + inside, self.kernel.dim)
        drawn = public_normals("discreet reference points", math.prod(size)).reshape(size)
        drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
        drawn[on_sphere:] *= np.sqrt((np.arange(inside)[:, None] + 0.5) / inside)
        each = [_SPHERE_SHARE / on_sphere, (1 - _SPHERE_SHARE) / inside]
        shares = np.repeat(each, [on_sphere, inside])
        if self.reference is None:
            return drawn * self.kernel.query_norm, shares
        given = self.reference.rows / self.kernel.key_norm
        given = given / np.maximum(np.linalg.norm(given, axis=1, keepdims=True), 1.0)
        own = np.full(len(given), (1 - self.usual_share) / len(given))
        points = np.concatenate([drawn, given]) * self.kernel.query_norm
        return points, np.concatenate([shares * self.usual_share, own])


def _best(
    usual: _Places, reference: PublicRows | None, waves: "_Waves", columns: "_Columns"
) -> _Places:
    """Return the places that explain a state best: a caller's points, with some weight, or none.

    Of all heads together, by what some of the frequencies leave over.
    """
    if reference is None:
        return usual
    given = [replace(usual, reference=reference, usual_share=each) for each in _USUAL_SHARES]
    some, rows = waves.thinned(_THINNED)
    state = columns._replace(state=columns.state[rows])
    whole = np.sum(state.centred(state.state) ** 2, axis=(0, 2))

    def left_over(places: _Places) -> float:
        length = _shortest_remainder(_Basis.of(*places.points(), some), state)[2]
        return float(np.sum(length / np.maximum(whole, np.finfo(np.float64).tiny)))

    return min((*given, usual), key=left_over)


# Memories of one kind follow each other, as those of a stream do: the last two are remembered.
@lru_cache(maxsize=2)
def _basis(places: _Places) -> "_Basis":
    points, shares = places.points()
    return _Basis.of(points, shares, _Waves.of(places.kernel, places.frequencies))


def _orthogonality(kernel: Fourier) -> float:
    """Return the variance of a weight over that of as many independent frequencies.

    For k orthogonal frequencies of d numbers and two rows at the distance z it is
    1 - (k - 1)/d·e^(-z²)·z⁴/(1 - e^(-z²))², up to 1/d (Yu et al., NeurIPS 2016). Taken at z² = 2t,
    for the largest logit t: rows that have nothing to do with each other.
    """
    square, together = 2 * kernel.largest_logit, min(kernel.frequencies, kernel.dim)
    gain = math.exp(-square) * (square / -math.expm1(-square)) ** 2
    return 1 - (together - 1) / kernel.dim * gain


@dataclass(frozen=True, eq=False)
class _Waves:
    """Features of length one, all cosines before all sines.

    Attributes:
        frequencies: shape (d, m); with zeros for those that the last block lacks.
        used: which of the 2·m features there are, as zeros and ones.
        root: one over the root of their number of frequencies.
        blocks: into how many of the jackknife's blocks the frequencies fall.
        folds: into how many folds; as many as there are blocks, or a multiple.
        orthogonality: the variance of the plain readout over that of independent frequencies.
    """

    frequencies: Floats
    used: Floats
    root: float
    blocks: int
    folds: int
    orthogonality: float

    @classmethod
    def of(cls, kernel: Fourier, frequencies: Floats) -> "_Waves":
        root = 1 / math.sqrt(kernel.frequencies)
        used = np.tile(np.arange(frequencies.shape[1]) < kernel.frequencies, 2).astype(np.float64)
        # Each block of the jackknife is one fold, or a whole number of them.
        block = frequencies.shape[1] // kernel.blocks
        each = next(
            k for k in range(1, block + 1) if block % k == 0 and block // k <= _MOST_IN_FOLD
        )
        return cls(
            frequencies, used, root, kernel.blocks, kernel.blocks * each, _orthogonality(kernel)
        )

    @property
    def size(self) -> int:
        """How many features there are."""
        return len(self.used)

    def thinned(self, count: int) -> tuple["_Waves", NDArray[np.intp]]:
        """Return so many of the frequencies, the first of each block, and their features' places.

        All of them if they are not more.
        """
        total = self.size // 2
        each = min(max(count // self.blocks, 1), total // self.blocks)
        some = (np.arange(self.blocks)[:, None] * (total // self.blocks) + np.arange(each)).ravel()
        rows = np.concatenate([some, some + total])
        used = self.used[rows]
        root = 1 / math.sqrt(max(np.sum(used) / 2, 1.0))
        few = replace(self, frequencies=self.frequencies[:, some], used=used, root=root)
        return replace(few, folds=self.blocks), rows

    def features(self, points: Floats) -> Floats:
        """Return features of points, shape (M, 2·m)."""
        angles = points @ self.frequencies
        both = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
        return both * (self.used * self.root)

    def by_fold(self, rows: Floats) -> Floats:
        """Return rows of shape (2·m, k) fold by fold: (folds, features of one, k)."""
        parts = rows.reshape(2, self.folds, -1, rows.shape[-1]).swapaxes(0, 1)
        return parts.reshape(self.folds, -1, rows.shape[-1])

    def back(self, parts: Floats) -> Floats:
        """Return what `by_fold` took apart, shape (2·m, k)."""
        rows = parts.reshape(self.folds, 2, -1, parts.shape[-1]).swapaxes(0, 1)
        return rows.reshape(self.size, parts.shape[-1])


@dataclass(frozen=True, eq=False)
class _Basis:
    """Features P of points, and the ridge regressions on them; PᵀP = U·Λ·Uᵀ.

    Attributes:
        waves: the features.
        points: in the units of queries, shape (M, d).
        shares: of the prior variance, which add up to one, shape (M,).
        features: P, each row times the root of the point's share, shape (M, 2·m).
        eigenvalues: Λ, shape (k,), the smallest first.
        vectors: U, shape (2·m, k).
    """

    waves: _Waves
    points: Floats
    shares: Floats
    features: Floats
    eigenvalues: Floats
    vectors: Floats

    @classmethod
    def of(cls, points: Floats, shares: Floats, waves: _Waves) -> "_Basis":
        features = waves.features(points) * np.sqrt(shares)[:, None]
        few = len(features) < features.shape[1]
        gram = features @ features.T if few else features.T @ features
        eigenvalues, vectors = np.linalg.eigh(gram)
        some = eigenvalues > _NEGLIGIBLE * _RIDGES[0] / waves.size
        eigenvalues, vectors = eigenvalues[some], vectors[:, some]
        if few:
            vectors = features.T @ vectors / np.sqrt(eigenvalues)
        return cls(waves, points, shares, features, eigenvalues, vectors)

    @cached_property
    def tried(self) -> "_Tried":
        """Some of the points, at which remainders are read."""
        some = slice(None, None, max(len(self.shares) // _TRIED, 1))
        shares = self.shares[some]
        return _Tried(self.waves, self.features[some] / np.sqrt(shares)[:, None], shares)

    @cached_property
    def _by_fold(self) -> Floats:
        return self.waves.by_fold(self.vectors)

    def _shrink(self, ridge: float) -> tuple[slice, Floats]:
        """Return which directions a ridge does not shrink to nothing, and Λ/(Λ + λ) of these."""
        ridge = ridge / self.waves.size
        some = slice(int(np.searchsorted(self.eigenvalues, _NEGLIGIBLE * ridge)), None)
        return some, self.eigenvalues[some] / (self.eigenvalues[some] + ridge)

    def unexplained(self, flat: Floats, ridge: float, along: Floats | None = None) -> Floats:
        """Return λ·C⁻¹·S with C = PᵀP + λ: what a ridge regression on all folds leaves over.

        Args:
            flat: S, shape (2·m, k).
            ridge: over the mean eigenvalue.
            along: Uᵀ·S, if it is known.
        """
        some, shrink = self._shrink(ridge)
        vectors = self.vectors[:, some]
        known = vectors.T @ flat if along is None else along[some]
        return flat - vectors @ (shrink[:, None] * known)

    # What does not depend on a state is remembered as long as the basis is.
    @cached_property
    def _inverses(self) -> Callable[[float], Floats]:
        return cache(self._inverses_at)

    @cached_property
    def signs(self) -> Callable[[float, int], tuple[Floats, Floats]]:
        """So many rows of signs, as a ridge makes remainders and weights of them (`_signs_at`)."""
        return cache(self._signs_at)

    def _signs_at(self, ridge: float, rows: int) -> tuple[Floats, Floats]:
        """Return shapes (2·m, rows) and (M, rows)."""
        waves, ridges = self.waves, np.array([ridge])
        signs = np.sign(public_normals("discreet signs", waves.size * rows))
        signs = signs.reshape(waves.size, 1, rows) * waves.used[:, None, None]
        rest = self.remainder(signs, ridge)
        return rest[:, 0], self.weights(signs, rest, ridges)[:, 0]

    def _inverses_at(self, ridge: float) -> Floats:
        """Return λ·[C⁻¹]_ff of each fold f, shape (folds, features of one, features of one)."""
        some, shrink = self._shrink(ridge)
        vectors = self._by_fold[..., some]
        inverses = -(vectors * shrink) @ vectors.swapaxes(1, 2)
        diagonal = np.arange(inverses.shape[1])
        inverses[:, diagonal, diagonal] += 1.0
        return inverses

    def remainder(self, state: Floats, ridge: float, along: Floats | None = None) -> Floats:
        """Return what is left of each fold when the others predict it, in the state's shape.

        The error of predicting a fold f by all others is [C⁻¹]_ff⁻¹·[C⁻¹·S]_f.

        Args:
            state: S, shape (2·m, ...).
            ridge: over the mean eigenvalue.
            along: Uᵀ·S, if it is known.
        """
        left = self.unexplained(state.reshape(self.waves.size, -1), ridge, along)
        parts = np.linalg.solve(self._inverses(ridge), self.waves.by_fold(left))
        return self.waves.back(np.asarray(parts, dtype=np.float64)).reshape(state.shape)

    def missing(self, columns: "_Columns", ridges: Floats) -> Floats:
        """Return the mean square of what points lack where some of them are, shape (heads, c).

        For each of many pairs of folds, both are predicted by all the others.
        """
        folds, size = self.waves.folds, self.waves.size
        most = min(max(_MOST_PAIRS * 1024 // size, _FEWEST_PAIRS), _MOST_PAIRS)
        pairs = np.stack(np.triu_indices(folds, 1), axis=1)
        pairs = pairs[:: -(-len(pairs) // most)]
        total = np.zeros(columns.noise.shape)
        for ridge in np.unique(ridges):
            heads = ridges == ridge
            state = columns.state[:, heads]
            left = self.waves.by_fold(self.unexplained(state.reshape(len(state), -1), ridge))
            some, shrink = self._shrink(ridge)
            vectors, inverses = self._by_fold[..., some], self._inverses(ridge)
            for one, other in pairs:
                across = -(vectors[one] * shrink) @ vectors[other].T
                inverse = np.block([[inverses[one], across], [across.T, inverses[other]]])
                rest = np.linalg.solve(inverse, np.concatenate([left[one], left[other]]))
                rest = columns.centred_of(rest.reshape(len(rest), -1, state.shape[-1]), heads)
                first, second = np.split(rest, 2)
                read = self.tried.fold(one, first) * self.tried.fold(other, second)
                total[heads] += self.tried.mean(read)
        return total * (folds**2 / len(pairs))

    def weights(self, state: Floats, rest: Floats, ridges: Floats) -> Floats:
        """Return the weights of points, fitted without a fold, on average: shape (M, heads, c).

        Leaving a fold out is as good as having predicted it, so the average is the fit of the state
        less the remainder over the number of folds. The root of a point's share is not in them.
        """
        fitted = np.empty((len(self.features), *state.shape[1:]))
        for ridge in np.unique(ridges):
            heads = ridges == ridge
            flat = (state - rest / self.waves.folds)[:, heads].reshape(self.waves.size, -1)
            left = self.unexplained(flat, ridge) * (self.waves.size / ridge)
            fitted[:, heads] = (self.features @ left).reshape(len(fitted), -1, state.shape[-1])
        return fitted


@dataclass(frozen=True, eq=False)
class _Tried:
    """Some of the points, at which remainders are read.

    Attributes:
        waves: the features.
        features: of these points, shape (tried, 2·m).
        shares: of these points, shape (tried,).
    """

    waves: _Waves
    features: Floats
    shares: Floats

    def mean(self, numbers: Floats) -> Floats:
        """Return a mean over points, which are the first axis."""
        return np.tensordot(self.shares / np.sum(self.shares), numbers, axes=1)

    @cached_property
    def _by_fold(self) -> Floats:
        folds = self.waves.by_fold(np.ascontiguousarray(self.features.T))
        return np.ascontiguousarray(folds.swapaxes(1, 2))

    def by_fold(self, rest: Floats) -> Floats:
        """Return what each fold of a remainder is read as, shape (folds, tried, heads, c)."""
        read = self._by_fold @ self.waves.by_fold(rest.reshape(self.waves.size, -1))
        return read.reshape(*read.shape[:2], *rest.shape[1:])

    def fold(self, index: int, rest: Floats) -> Floats:
        """Return what one fold of a remainder is read as, shape (tried, heads, c)."""
        read = self._by_fold[index] @ rest.reshape(len(rest), -1)
        return np.asarray(read.reshape(-1, *rest.shape[1:]))


class _Columns(NamedTuple):
    """The state, and with its numerators centred, since answers are quotients.

    Attributes:
        state: shape (2·m, heads, c); the last column is the denominator's.
        mean: the answer at the origin, of length `value_norm` at the most, shape (heads, d_v).
        rows: the denominator there: how many rows there are, one at least; shape (heads,).
        noise: variance on each centred column, and on the denominator's, shape (heads, c).
        value_norm: public bound on values.
    """

    state: Floats
    mean: Floats
    rows: Floats
    noise: Floats
    value_norm: float

    @classmethod
    def of(
        cls,
        waves: _Waves,
        arrays: Mapping[str, NDArray[Any]],
        noise: Floats,
        value_norm: float,
    ) -> "_Columns":
        state = np.concatenate([arrays["cosines"], arrays["sines"]], axis=1).transpose(1, 0, 2)
        origin = np.sum(arrays["cosines"], axis=1)
        rows = np.maximum(origin[:, -1], 1.0)
        mean = origin[:, :-1] / rows[:, None] / value_norm
        mean /= np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1.0)
        mean *= value_norm
        centred = noise[:-1] ** 2 + mean**2 * noise[-1] ** 2
        variance = np.concatenate([centred, np.full((len(rows), 1), noise[-1] ** 2)], axis=1)
        return cls(state / waves.root, mean, rows, variance, value_norm)

    def centred(self, state: Floats) -> Floats:
        """Return a state with the mean times the denominators taken out of its numerators."""
        return self.centred_of(state, slice(None))

    def centred_of(self, state: Floats, heads: Any) -> Floats:  # noqa: ANN401 (an index)
        """Return the same for the state of some heads."""
        numerators = state[..., :-1] - state[..., -1:] * self.mean[heads]
        return np.concatenate([numerators, state[..., -1:]], axis=-1)

    def spread(self) -> Floats:
        """Return the square of how much answers differ from their mean, typically, (heads,)."""
        squares = np.sum(self.centred(self.state) ** 2, axis=0)
        signal = squares - len(self.state) * self.noise
        below = np.maximum(signal[:, -1], 1e-9 * squares[:, -1] + np.finfo(np.float64).tiny)
        above = np.clip(np.sum(signal[:, :-1], axis=1), 0.0, self.value_norm**2 * below)
        return np.asarray(above / below)

    def mass(self, weights: Floats, rest: Floats, logit: float) -> Floats:
        """Return Σ_i c_i over all rows, each c_i from 1 to e^(t/2), shape (heads,).

        Args:
            weights: what those of the points add up to, which a ridge has shrunk, shape (heads,).
            rest: the remainder.
            logit: the largest, t.
        """
        state, noise = self.state[..., -1], len(self.state) * self.noise[:, -1]
        squares = np.sum(state * state, axis=0)
        left = np.sum(state * rest[..., -1], axis=0) - noise
        # Where all is noise, nothing is known, and the bounds decide.
        whole = np.maximum(squares - noise, 1e-9 * squares + np.finfo(np.float64).tiny)
        explained = np.clip((squares - noise - left) / whole, 0.01, 1)
        return np.asarray(np.clip(weights / explained, self.rows, self.rows * math.exp(logit / 2)))


def _shortest_remainder(basis: _Basis, columns: _Columns) -> tuple[Floats, Floats, Floats]:
    """Return the ridge of each head, the remainder, shape (2·m, heads, c), and its squared length.

    Remainders are measured as quotients are wrong by them: by that of the numerators, and by that
    of the denominator times how much answers differ.
    """
    spread, best = columns.spread(), columns.state

    def length_of(squares: Floats) -> Floats:
        return np.asarray(np.sum(squares[:, :-1], axis=1) + spread * squares[:, -1])

    noise = len(best) * columns.noise
    signal = np.maximum(np.sum(columns.centred(best) ** 2, axis=0) - noise, 0.0)
    least = length_of(noise + basis.waves.orthogonality * signal)
    ridges, along = np.full(len(spread), _NOTHING), basis.vectors.T @ best.reshape(len(best), -1)
    for ridge in _RIDGES:
        rest = basis.remainder(columns.state, ridge, along)
        length = length_of(np.sum(columns.centred(rest) ** 2, axis=0))
        shorter = length < least
        least, ridges = np.where(shorter, length, least), np.where(shorter, ridge, ridges)
        best = np.where(shorter[:, None], rest, best)
    return ridges, best, least


class _Share(NamedTuple):
    """How much of the remainder is kept, for each head; all of shape (heads,).

    Attributes:
        kept: ρ.
        usual_square: the mean square of what the remainder's denominator is read as, before ρ.
        doubt: the mean square of what leaving it out costs, over (1 - ρ)²·V, with V the variance of
            what is read from the remainder.
    """

    kept: Floats
    usual_square: Floats
    doubt: Floats


def _share_kept(
    basis: _Basis, columns: _Columns, rest: Floats, ridges: Floats, mass: Floats
) -> _Share:
    """Return how much of the remainder is kept.

    What is read from the remainder is r = f + ξ: f is what is missing near the points, and ξ the
    chance of the frequencies that were drawn, of variance V. With a share ρ of r, an answer is
    wrong by ρ·ξ - (1 - ρ)·f. Its mean square is least at ρ = (F² + Γ)/R², where F² and R² are the
    mean squares of f and r, and Γ the covariance of f and ξ, which is negative where the points
    explain what was drawn by chance. They are measured twice, and the larger ρ is taken:

    - *At the points.* V and R² as folds have it; F² by pairs of folds, each of which is predicted
      without the other: the product of what is read from the two has no chance in common. Γ is
      what R² lacks of F² + V, by half.
    - *At the rows*, wherever they are, with Γ = 0: S·e, less the noise that both have, is
      Σ_i c_i·u_i·f(x_i) over all rows, of weight c_i and value u_i.

    Args:
        basis: the points.
        columns: the state.
        rest: the remainder, shape (2·m, heads, c).
        ridges: of each head.
        mass: Σ_i c_i, shape (heads,).
    """
    waves, tried, spread = basis.waves, basis.tried, columns.spread()
    centred, state = columns.centred(rest), columns.centred(columns.state)
    read = tried.by_fold(centred)
    by_column = tried.mean(np.var(read, axis=0, ddof=1)) * waves.folds

    def together(squares: Floats) -> Floats:
        return np.asarray(np.sum(squares[:, :-1], axis=1) + spread * squares[:, -1])

    # Far below what rounding leaves, so that nothing is divided by zero.
    size = np.sum(columns.state[..., -1] ** 2, axis=0) + waves.size * columns.noise[:, -1]
    tiny = 1e-30 * size + np.finfo(np.float64).tiny
    variance = together(by_column) + tiny
    whole = together(tried.mean(np.sum(read, axis=0) ** 2)) + tiny
    missing = np.maximum(together(basis.missing(columns, ridges)), 0.0)
    # No correlation is beyond one.
    most = np.sqrt(missing * variance)
    common = np.clip((whole - missing - variance) / 2, -most, most)
    kept = (missing + common) / (missing + variance + 2 * common + tiny)

    by_fold = np.sum(waves.by_fold((state * centred).reshape(waves.size, -1)), axis=1)
    by_fold = by_fold.reshape(-1, *columns.noise.shape)
    by_fold -= columns.noise * (waves.size / waves.folds)
    total, chance = np.sum(by_fold, axis=0), waves.folds * np.var(by_fold, axis=0, ddof=1)
    signal = np.maximum(total**2 - chance, 0.0) / mass[:, None] ** 2
    # Each column of values has an equal part of their squared length.
    width = signal.shape[1] - 1
    over = [
        np.sum(signal[:, :-1], axis=1)
        * (width / columns.value_norm**2)
        / (np.sum(by_column[:, :-1], axis=1) + tiny),
        signal[:, -1] / (by_column[:, -1] + tiny),
    ]
    at_rows = np.max(over, axis=0)

    kept = np.clip(np.maximum(kept, at_rows / (1 + at_rows)), _LEAST_KEPT, 1.0)
    left = np.maximum(1 - kept, 1e-6)
    doubt = (missing * left - 2 * kept * common) / (variance * left)
    usual = tried.mean(np.sum(read, axis=0) ** 2)[:, -1]
    usual = np.maximum(usual, by_column[:, -1] * (1 + at_rows))
    return _Share(kept, usual + tiny, np.maximum(np.maximum(doubt, at_rows), 0.0))
