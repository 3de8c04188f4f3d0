"""An audit of one release with many canaries, each of which is in it by the toss of a fair coin.

One build instead of thousands: for pipelines that take long. What each canary adds is known from
builds without noise, and they are chosen so that they hardly overlap; so each of them can be looked
for by itself, and the share of right guesses bounds ε. It finds gross mistakes: with a thousand
canaries at ε = 1 the bound is about a quarter of what is promised (`docs/audit.md`).
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from discreet import _validate
from discreet._typing import Array, Floats
from discreet.accounting.promise import Promise
from discreet.audit.bounds import Guesses, epsilon_of_mu
from discreet.audit.experiments import (
    Build,
    accepts_entropy,
    check_functions,
    check_same,
    few_rows,
    with_entropy,
)
from discreet.audit.looking import Seen, seen
from discreet.audit.pairs import at_sight, promise_in, taken_from_rows, too_little
from discreet.audit.report import percent
from discreet.audit.workers import map_forked
from discreet.errors import InvalidInput
from discreet.noise import Entropy, SystemEntropy
from discreet.privacy import Guarantee, Neighbours, rounded_down
from discreet.testing import Seeded, Silent

# Shares of canaries about which something may be said: the clearest ones.
_SHARES = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
_USUAL_SHARE = 0.2
_LEAST_CANARIES = 20


@dataclass(frozen=True, eq=False)
class OneRun:
    """What an audit of one release found. `str` for people, `to_dict` for programs.

    Attributes:
        name: of what was audited.
        claimed: what is promised.
        epsilon_lower: ε is at least this, with so much confidence, at the δ that is claimed.
        confidence: how often such an audit says nothing wrong, at least.
        guesses: how many canaries there were, how many guesses, and how many of them were right.
        seconds: how long it took.
        reasons: what refutes the promise whatever the guesses are; none as a rule.
    """

    name: str
    claimed: Guarantee
    epsilon_lower: float
    confidence: float
    guesses: Guesses
    seconds: float
    reasons: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether what was measured is within what is promised. False refutes the promise."""
        return not self.reasons and self.epsilon_lower <= self.claimed.epsilon * (1 + 1e-9)

    def to_dict(self) -> dict[str, object]:
        """Return what was found under its names, ready for JSON."""
        return {
            "name": self.name,
            "epsilon_lower": self.epsilon_lower,
            "claimed": self.claimed.epsilon,
            "delta": self.claimed.delta,
            "neighbours": str(self.claimed.neighbours),
            "unit": self.claimed.unit,
            "holds": self.holds,
            "confidence": self.confidence,
            "canaries": self.guesses.canaries,
            "guesses": self.guesses.made,
            "right": self.guesses.right,
            "seconds": round(self.seconds, 3),
            "reasons": list(self.reasons),
        }

    def __str__(self) -> str:
        verdict = (
            "holds, as far as this shows: no contradiction was found"
            if self.holds
            else "DOES NOT HOLD: the promise is refuted"
        )
        made, right = self.guesses.made, self.guesses.right
        return "\n".join(
            [
                f"{self.name}, one release: {verdict}",
                *(f"  because    {each}" for each in self.reasons),
                (
                    f"  measured   ε ≥ {rounded_down(self.epsilon_lower)}, "
                    f"{percent(self.confidence)} sure"
                ),
                (
                    f"  promised   {self.claimed.figures}, one {self.claimed.unit} "
                    f"{self.claimed.neighbours.change}"
                ),
                (
                    f"  guesses    {right:,} of {made:,} right ({right / made:.1%}), about "
                    f"{self.guesses.canaries:,} canaries; {self.seconds:.0f} s"
                ),
            ]
        )


def one_run(
    build: Callable[..., Any],
    rows: Sequence[Array],
    canaries: Sequence[Array],
    *,
    confidence: float = 0.99,
    name: str = "your function",
    seed: int | None = None,
    workers: int | None = None,
    progress: bool = False,
) -> OneRun:
    """Return a lower bound on ε from one release with many canaries. NOT PRIVATE.

    A fair coin decides for each canary whether it is among the rows. Their contributions should
    overlap little, and be as long as the bounds let them: rows with values in directions of their
    own, say. Under add_remove; what is built must be sums and noise.

    Args:
        build: from rows to a release, with an argument `entropy` that it hands on.
        rows: arrays of the rows that are there in any case, such as (keys, values).
        canaries: arrays of rows, each of which may be there: the same widths.
        confidence: how often the bound is right, at least.
        name: of what is audited, for people.
        seed: of coins and noise, for tests of audits; None for the operating system's.
        workers: how many processes; None for one for each processor.
        progress: whether to show a bar.

    Returns:
        The lower bound, what is promised, whether that holds, and the guesses.

    Raises:
        InvalidInput: there are too few canaries, what is built is not sums and noise, or its unit
            is replaced.
    """
    began = time.monotonic()
    confidence = _validate.real("confidence", confidence, above=0.5, below=1)
    count = _checked(build, rows, canaries, workers)
    made = with_entropy(build)
    coins, noise = _chance(seed, count)

    def with_canaries(places: Any) -> tuple[Array, ...]:  # noqa: ANN401 (an index)
        pairs = zip(rows, canaries, strict=True)
        return tuple(
            np.concatenate([np.asarray(own), np.asarray(more)[places]]) for own, more in pairs
        )

    with few_rows():
        none = with_canaries(np.zeros(0, dtype=np.intp))
        base = _exact(made, none)
        if base.guarantee.neighbours is not Neighbours.ADD_REMOVE:
            raise InvalidInput(
                'Expected neighbours="add_remove": canaries are there or not, and under "replace" '
                "the number of rows is public."
            )
        if not np.array_equal(base.vector, _exact(made, none).vector):
            raise InvalidInput(
                "Expected `build` to hand on `entropy`, and to have no other chance."
            )
        added = map_forked(
            lambda at: _exact(made, with_canaries([at])).vector - base.vector,
            range(count),
            workers=workers,
            progress=progress,
            text="what each canary adds",
        )
        release = seen(made(with_canaries(np.flatnonzero(coins)), noise))
        ends = (none, with_canaries(np.arange(count)))
        begun = [[seen(made(each, None)) for _ in range(2)] for each in ends]
        reasons = at_sight(made, ends, begun)
    check_same(release.parts, base.parts)
    promise = promise_in(release)
    guesses = _guess(np.stack(added), release.vector - base.vector, coins, promise, confidence)
    return OneRun(
        name=name,
        claimed=release.guarantee,
        epsilon_lower=_lower(guesses, promise, 1 - confidence),
        confidence=confidence,
        guesses=guesses,
        seconds=time.monotonic() - began,
        reasons=reasons + too_little(promise) + taken_from_rows([release]),
    )


def _checked(
    build: Callable[..., Any], rows: Sequence[Array], canaries: Sequence[Array], workers: int | None
) -> int:
    """Return how many canaries there are, or raise `InvalidInput`."""
    check_functions(build)
    if not accepts_entropy(build):
        raise InvalidInput("Expected `build` to have an argument `entropy`, and to hand it on.")
    counts = [len(each) for each in canaries]
    if len(counts) != len(rows) or len(set(counts)) != 1:
        raise InvalidInput(
            "Expected as many arrays of canaries as of rows, each with one row for each canary."
        )
    if workers is not None:
        _validate.whole("workers", workers, at_least=1)
    return _validate.whole("canaries", counts[0], at_least=_LEAST_CANARIES)


def _chance(seed: int | None, count: int) -> tuple[Floats, Entropy]:
    """Return a coin for each canary, and the source of the noise."""
    coins = SystemEntropy() if seed is None else Seeded(2 * seed)
    noise = SystemEntropy() if seed is None else Seeded(2 * seed + 1)
    return (coins.words(count) >> np.uint64(63)).astype(np.float64), noise


def _exact(build: Build, data: tuple[Array, ...]) -> Seen:
    """Return a release without noise, if it is sums and noise."""
    found = seen(build(data, Silent()))
    if not found.additive:
        raise InvalidInput("Expected a release that is sums and noise, from `build`.")
    return found


def _guess(
    added: Floats, found: Floats, coins: Floats, promise: Promise, confidence: float
) -> Guesses:
    """Return how many of the clearest guesses are right.

    Least squares: what was found less the noise is the sum of what those canaries add that are in
    it. How many guesses are made follows from the promise alone.
    """
    gram = added @ added.T
    values, vectors = np.linalg.eigh(gram)
    inverse = (vectors / np.maximum(values, values.max() * 1e-9)) @ vectors.T
    evidence = (inverse @ (added @ found) - 0.5) / np.sqrt(np.diag(inverse))
    share = _best_share(len(coins), promise, confidence)
    clearest = np.argsort(-np.abs(evidence), kind="stable")[: max(round(share * len(coins)), 1)]
    right = int(np.count_nonzero((evidence[clearest] > 0) == (coins[clearest] > 0.5)))
    return Guesses(len(coins), len(clearest), right)


def _best_share(canaries: int, promise: Promise, confidence: float) -> float:
    """Return of which share of canaries to speak: where the bound is best if the promise is tight.

    From public numbers: evidence is N(±μ/2, 1), and the clearest lie beyond a quantile of its size.
    """
    mu = promise.mu if promise.mu is not None else promise.guarantee.epsilon / 4
    grid = np.linspace(0, 6 + mu, 4_001)
    beyond = special.ndtr(mu / 2 - grid) + special.ndtr(-mu / 2 - grid)  # P(|evidence| > grid)

    def bound(share: float) -> float:
        at = grid[np.argmin(np.abs(beyond - share))]
        right = special.ndtr(mu / 2 - at) / (special.ndtr(mu / 2 - at) + special.ndtr(-mu / 2 - at))
        made = max(round(share * canaries), 1)
        guesses = Guesses(canaries, made, round(right * made))
        return _lower(guesses, promise, 1 - confidence)

    # Where none tells anything, so few canaries can only find gross mistakes: a fifth will do.
    return max(_SHARES, key=lambda share: (bound(share), share == _USUAL_SHARE))


def _lower(guesses: Guesses, promise: Promise, doubt: float) -> float:
    """Return the lower bound on ε that guesses are worth."""
    delta = promise.guarantee.delta
    if promise.mu is None:
        return guesses.epsilon(delta, doubt=doubt)
    return epsilon_of_mu(guesses.mu(doubt=doubt), delta)
