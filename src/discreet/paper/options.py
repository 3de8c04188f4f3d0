"""What the structures of the paper can be asked for: each option, its default and meaning, once.

A structure takes the options of one frozen class below, checked. `takes` makes a constructor of it
that shows them all, with their defaults, in its signature; `described` puts their meaning into the
docstring of the structure.
"""

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, fields
from enum import StrEnum
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from discreet import _validate
from discreet.ledger.ledger import Account, Ledger, account_of
from discreet.noise import Entropy
from discreet.paper.bounds import Box, Logits, Net, copies_needed, public_bound
from discreet.privacy import Neighbours, Privacy

MEMORY_LIMIT = 4 * 2**30

# The largest c that the theorems allow for what was asked for.
LARGEST = "largest"
LARGEST_C = 1e9

# Far beyond any use; overflows begin later.
_LARGEST_EPSILON = 1e9

# In this order a signature shows them.
_SHOWN = (
    "delta_fail", "p", "sensitivity", "upper", "weight_bound", "value_bound", "epsilon", "delta",
    "delta_prime", "c", "eps_s", "degree", "scale", "lower", "p_f", "eps_0", "copies", "scope",
    "accounting", "estimator", "branching", "noise", "entropy", "memory_limit", "ledger", "dataset",
    "analyst", "account",
)  # fmt: skip


class Accounting(StrEnum):
    """How the noise is set: by the paper's theorems, or by the privacy loss distribution."""

    PAPER = "paper"
    TIGHT = "tight"


class Estimator(StrEnum):
    """How noisy nodes are read: as in the paper, or by least squares over all levels."""

    PAPER = "paper"
    CONSISTENT = "consistent"


class Noise(StrEnum):
    """Which law the nodes get; the paper compares the three. An Enum: no law without a proof."""

    TRUNCATED_LAPLACE = "truncated_laplace"
    LAPLACE = "laplace"
    GAUSSIAN = "gaussian"


class Scope(StrEnum):
    """What one guarantee covers: the whole output vector, or one fixed entry of it for ever."""

    VECTOR = "vector"
    ENTRY = "entry"


@dataclass(frozen=True)
class Budget:
    """What a structure may spend: ε, δ for truncation, δ' for advanced composition (or none)."""

    epsilon: float
    delta: float
    delta_prime: float | None = None

    def __post_init__(self) -> None:
        _validate.real("epsilon", self.epsilon, above=0, at_most=_LARGEST_EPSILON)
        _validate.real("delta", self.delta, above=0, below=0.5)
        if self.delta_prime is not None:
            _validate.real("delta_prime", self.delta_prime, above=0, below=0.5)

    @property
    def prime(self) -> float:
        """δ', zero if there is none."""
        return self.delta_prime or 0.0

    @property
    def total(self) -> Privacy:
        """The (ε, δ + δ') that the whole must stay within."""
        return replace_privacy(self.epsilon, self.delta + self.prime)

    def share(self, parts: int) -> "Budget":
        """Return an equal share: basic composition of `parts` of them is the whole."""
        prime = None if self.delta_prime is None else self.delta_prime / parts
        return Budget(self.epsilon / parts, self.delta / parts, prime)

    @property
    def spent(self) -> Privacy:
        """The (ε, δ) of one node, if this is the share of one node."""
        return replace_privacy(self.epsilon, self.delta)


def replace_privacy(epsilon: float, delta: float) -> Privacy:
    """Return a `Privacy` under the paper's neighbouring relation."""
    return Privacy(epsilon, delta, Neighbours.REPLACE)


def checked_c(c: object) -> float | None:
    """Return c if it is a number that makes sense, or None if it is "largest"."""
    if isinstance(c, str):
        if c != LARGEST:
            _validate.reject("c", c, f'a number above 0, or "{LARGEST}"')
        return None
    return _validate.real("c", c, above=0, at_most=LARGEST_C)


def _one_of(kind: type[StrEnum]) -> Callable[[str, object], StrEnum]:
    return lambda name, value: _validate.choice(name, value, kind)


# How an option is checked; None passes where it is the default.
_CHECKS: dict[str, Callable[[str, Any], object]] = {
    "accounting": _one_of(Accounting),
    "noise": _one_of(Noise),
    "scope": _one_of(Scope),
    "sensitivity": public_bound,
    "weight_bound": public_bound,
    "value_bound": public_bound,
    "delta_prime": partial(_validate.real, above=0, below=0.5),
    "p_f": partial(_validate.real, above=0, below=1),
    "delta_fail": partial(_validate.real, above=0, below=1),
    "p": partial(_validate.whole, at_least=1, at_most=200),
    "copies": partial(_validate.whole, at_least=1),
    "c": lambda _, value: value if checked_c(value) is None else float(value),
}


@dataclass(frozen=True, kw_only=True)
class Options:
    """What every structure takes.

    Args:
        upper: right end of the interval of points, in each coordinate: R.
        epsilon: for the whole structure and all queries.
        delta: likewise; below one half.
        accounting: "paper" splits the budget as the theorems do; "tight" gives every node the least
            noise whose composition is what was asked for.
        entropy: where the noise comes from; by default the operating system.
        memory_limit: in bytes, while the structure is built.
        ledger: on which the release is counted (`discreet.ledger`), if on any.
        dataset: the name that the rows have in the ledger.
        analyst: who asks.
        account: what `Ledger.account` returns, instead of ledger, dataset and analyst.
    """

    upper: float
    epsilon: float
    delta: float
    accounting: str = Accounting.PAPER
    entropy: Entropy | None = None
    memory_limit: int = MEMORY_LIMIT
    ledger: Ledger | None = None
    dataset: str | None = None
    analyst: str | None = None
    account: Account | None = None

    def __post_init__(self) -> None:
        for each in fields(self):
            value, check = getattr(self, each.name), _CHECKS.get(each.name)
            if check is not None and (value is not None or each.default is not None):
                object.__setattr__(self, each.name, check(each.name, value))
        object.__setattr__(self, "epsilon", self.budget.epsilon)  # which are checked there
        object.__setattr__(self, "upper", self.box.upper)
        account = account_of(self.ledger, self.dataset, self.analyst, self.account)
        object.__setattr__(self, "account", account)

    @property
    def budget(self) -> Budget:
        """What may be spent."""
        return Budget(self.epsilon, self.delta)

    @property
    def box(self) -> Box:
        """Where points lie."""
        return Box(0.0, self.upper)

    @property
    def composition(self) -> Accounting:
        """How the noise is set."""
        return Accounting(self.accounting)

    @property
    def tight(self) -> bool:
        """Whether the noise is set by the privacy loss distribution."""
        return self.composition is Accounting.TIGHT


@dataclass(frozen=True, kw_only=True)
class LevelOptions(Options):
    """What structures take whose trees may have other levels than the paper's.

    Args:
        estimator: "paper" adds siblings up, as the algorithm does; "consistent" reads the nodes by
            least squares over all levels.
        branching: children of a node at the most, a power of two; by default two in the paper's
            tree, and the best in a consistent one.
        noise: which law the nodes get; by default truncated Laplace in the paper's tree, and the
            best of the three in a consistent one.
    """

    estimator: str = Estimator.PAPER
    branching: int | None = None
    noise: Noise | None = None


@dataclass(frozen=True, kw_only=True)
class TreeOptions(LevelOptions):
    """What `DPTree` takes.

    Args:
        sensitivity: Δ, the largest L1 change of all leaves together when one row is replaced.
        upper: right end of the query interval.
    """

    sensitivity: float


@dataclass(frozen=True, kw_only=True)
class BoostedOptions(TreeOptions):
    """What `DPTreeBoosted` takes.

    Args:
        delta_fail: how often the median of one query may miss the bound of a single copy.
        copies: l, to choose it yourself. With accounting="tight" it is one by default: a tail bound
            of one tree is better than the median of many with a part of the budget each.
    """

    delta_fail: float
    copies: int | None = None

    @property
    def median_of(self) -> int:
        """The number of copies: l."""
        if self.copies is not None:
            return self.copies
        return 1 if self.tight else copies_needed(self.delta_fail)


@dataclass(frozen=True, kw_only=True)
class PlacedOptions(Options):
    """What structures take whose points need not begin at zero.

    Args:
        lower: left end of the interval of points; zero in the paper.
    """

    lower: float = 0.0

    @property
    def box(self) -> Box:
        """Where points lie."""
        return Box(self.lower, self.upper)


@dataclass(frozen=True, kw_only=True)
class WeightedOptions(PlacedOptions):
    """What structures take that add up weighted points.

    Args:
        weight_bound: R_w, the largest weight there may be.
    """

    weight_bound: float


@dataclass(frozen=True, kw_only=True)
class SplitOptions(Options):
    """What structures take whose parts compose by the advanced theorem.

    Args:
        delta: for truncation.
        delta_prime: for advanced composition; the total is delta + delta_prime.
        c: the paper's constant; "largest" is the largest that composes to what was asked for. Only
            for accounting="paper".
    """

    delta_prime: float
    c: float | str = LARGEST

    @property
    def budget(self) -> Budget:
        """What may be spent."""
        return Budget(self.epsilon, self.delta, self.delta_prime)


@dataclass(frozen=True, kw_only=True)
class NetOptions(Options):
    """What structures take that answer all queries at once.

    Args:
        p_f: how often any answer at all may miss the bound.
        eps_0: radius of the net in each coordinate; by default a sixteenth of the interval for
            distances, and for softmax such that snapping moves a logit by at most ε_s.
        copies: l, to choose it yourself; by default as many as p_f needs, and one with
            accounting="tight", where a union bound over the net takes the median's place.
    """

    p_f: float
    eps_0: float | None = None
    copies: int | None = None

    def copies_on(self, net: Net, structures: int = 1) -> int:
        """Return l, for answers that are computed from so many structures on a net."""
        if self.copies is not None:
            return self.copies
        return 1 if self.tight else copies_needed(net.failure_per_point(self.p_f / structures))


@dataclass(frozen=True, kw_only=True)
class LogitOptions(PlacedOptions):
    """What structures take that add up exponentials of logits.

    Args:
        eps_s: relative error of the kernel; sets the degree, and so r = C(d + s, s), and the net.
        degree: s, instead of eps_s.
        scale: of the logits, scale·⟨x, y⟩; 1/d in the paper.
        lower: left end of the range of points or keys, at most zero; zero in the paper. They are
            shifted to begin at zero; queries are not, and stay in [0, upper].
        noise: which law the nodes get.
    """

    eps_s: float | None = None
    degree: int | None = None
    scale: float | None = None
    noise: Noise = Noise.TRUNCATED_LAPLACE

    def logits(self, dim: int) -> Logits:
        """Return the logits of points with so many coordinates."""
        return Logits.of(dim, self.box, eps_s=self.eps_s, degree=self.degree, scale=self.scale)


@dataclass(frozen=True, kw_only=True)
class DistanceOptions(WeightedOptions, LevelOptions):
    """What `DPTreeDistance` takes.

    Args:
        p: an integer power ≥ 1.
    """

    p: int


@dataclass(frozen=True, kw_only=True)
class HighDimOptions(SplitOptions, DistanceOptions):
    """What `DPTreeHighDim` takes."""


@dataclass(frozen=True, kw_only=True)
class HighDimAdaptiveOptions(NetOptions, SplitOptions, WeightedOptions, LevelOptions):
    """What `DPTreeHighDimAdaptive` takes; p is one."""


@dataclass(frozen=True, kw_only=True)
class SoftmaxOptions(SplitOptions, LogitOptions, WeightedOptions):
    """What `DPTreeSoftmax` takes."""


@dataclass(frozen=True, kw_only=True)
class SoftmaxAdaptiveOptions(NetOptions, SoftmaxOptions):
    """What `DPTreeSoftmaxAdaptive` takes."""


@dataclass(frozen=True, kw_only=True)
class AttentionOptions(NetOptions, SplitOptions, LogitOptions):
    """What `DPCrossAttention` takes.

    Args:
        value_bound: R_w, the largest entry of a value there may be.
        epsilon: for what `scope` covers and all queries.
        scope: "vector" covers the object; "entry" covers one fixed column of the output only.
    """

    value_bound: float
    scope: str = Scope.VECTOR


Shown = ParamSpec("Shown")
Given_co = TypeVar("Given_co", covariant=True)
Made = TypeVar("Made")
First = TypeVar("First")
Second = TypeVar("Second")


class _Constructor(Protocol[Shown, Given_co]):
    """Makes a constructor that takes every option by name of one that takes them as a value."""

    @overload
    def __call__(
        self, init: "Callable[[Made, First, Given_co], None]", /
    ) -> Callable[Concatenate[Made, First, Shown], None]: ...

    @overload
    def __call__(
        self, init: "Callable[[Made, First, Second, Given_co], None]", /
    ) -> Callable[Concatenate[Made, First, Second, Shown], None]: ...


def takes(options: Callable[Shown, Given_co]) -> _Constructor[Shown, Given_co]:
    """Have a constructor take the options of a class by name, and show them in its signature.

    Args:
        options: the class, of which the constructor gets one, checked, as its last argument.
    """
    known = {each.name: each for each in fields(options)}  # type: ignore[arg-type]  # a dataclass

    def constructor(init: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(init)
        *rows, _ = signature.parameters.values()
        by_name = [_parameter(known[name]) for name in _SHOWN if name in known]
        shown = signature.replace(parameters=[*rows, *by_name])

        @wraps(init)
        def checked(*given: Any, **named: Any) -> None:  # noqa: ANN401
            found = shown.bind(*given, **named).arguments
            asked = {name: found.pop(name) for name in known if name in found}
            init(**found, options=options(**asked))  # type: ignore[call-arg]

        checked.__signature__ = shown  # type: ignore[attr-defined]
        checked.__annotations__ = {
            name: each.annotation for name, each in shown.parameters.items() if name != "self"
        }
        checked.options = options  # type: ignore[attr-defined]
        return checked

    return constructor


def _parameter(option: Any) -> inspect.Parameter:  # noqa: ANN401 (a field of any type)
    """Return an option as a signature shows it."""
    return inspect.Parameter(
        option.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if option.default is MISSING else option.default,
        annotation=option.type,
    )


def described(docstring: str, options: type) -> str:
    """Return the docstring of a structure, whose `Args` come last, with its options among them."""
    known = dict[str, str]()
    for kind in reversed(options.__mro__):
        known |= dict(_entries(kind.__doc__ or ""))
    taken = {each.name for each in fields(options)}
    entries = [known[name] for name in _SHOWN if name in taken]
    return "\n".join([inspect.cleandoc(docstring), *entries, ""])


def _entries(docstring: str) -> Iterator[tuple[str, str]]:
    """Yield the name of each argument that a docstring describes, and its lines."""
    _, _, section = inspect.cleandoc(docstring).partition("\nArgs:\n")
    for entry in re.split(r"\n(?=    \w)", section.rstrip()):
        yield entry.strip().partition(":")[0], entry
