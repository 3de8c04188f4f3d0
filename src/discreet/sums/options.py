"""What every release asks for, checked: privacy, bounds, and what is public of the rows."""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, TypeVar

import numpy as np

from discreet import _validate
from discreet._typing import Array
from discreet._validate import warn
from discreet.accounting.receipt import checked_leaks
from discreet.errors import InvalidInput, PrivacyLeakWarning
from discreet.features.base import NORMS
from discreet.features.public_rows import PublicRows
from discreet.privacy import Neighbours, Privacy

PerLayer = float | Sequence[float]
Function = TypeVar("Function", bound=Callable[..., Any])

# Numbers from here on protect nobody.
_LARGE_EPSILON, _LARGE_DELTA = 20.0, 1e-2


@dataclass(frozen=True, kw_only=True)
class ReleaseOptions:
    """What every release asks for, whatever is made; checked. Front doors say what each means."""

    epsilon: float
    delta: float
    neighbours: str = Neighbours.ADD_REMOVE
    rows_hint: int | None = None
    group_rows: float = 1.0
    # Whoever takes something from the rows says so here, on behalf of the builder; no front door
    # shows it among its options.
    leaks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        checked = {
            "epsilon": _validate.real("epsilon", self.epsilon, above=0),
            "delta": _validate.real("delta", self.delta, above=0, below=1),
            "neighbours": Neighbours.parse(self.neighbours),
            "group_rows": _validate.real("group_rows", self.group_rows, at_least=1e-3, at_most=1e6),
            "leaks": checked_leaks(self.leaks),
        }
        if self.rows_hint is not None:
            checked["rows_hint"] = _validate.whole(
                "rows_hint", self.rows_hint, at_least=1, at_most=2**40
            )
        self._keep(checked)

    def _keep(self, checked: dict[str, Any]) -> None:
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def privacy(self) -> Privacy:
        """ε, δ and the neighbouring relation."""
        return Privacy(self.epsilon, self.delta, Neighbours(self.neighbours))

    def warn_if_nobody_is_protected(self) -> None:
        """Warn of public numbers that make the promise an empty one."""
        if self.epsilon > _LARGE_EPSILON:
            warn(
                f"epsilon={self.epsilon:g} protects nobody: one row may change the probability of "
                f"an outcome by a factor of e^{self.epsilon:g}.",
                PrivacyLeakWarning,
            )
        if self.delta >= _LARGE_DELTA:
            warn(
                f"delta is the probability of a total failure; {self.delta:g} is too high: it "
                "protects nobody.",
                PrivacyLeakWarning,
            )
        elif self.rows_hint is not None and self.delta * self.rows_hint >= 1:
            warn(
                f"delta={self.delta:g} is not below one over the number of rows: publishing one "
                "row, chosen at random, would keep such a promise.",
                PrivacyLeakWarning,
            )


@dataclass(frozen=True, kw_only=True)
class KeyOptions(ReleaseOptions):
    """What every release asks for that maps keys in a ball."""

    key_norm: PerLayer = 1.0
    public_rows: Array = field(default=None, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._keep(
            {
                "key_norm": numbers("key_norm", self.key_norm, NORMS),
                "public_rows": _public(self.public_rows),
            }
        )

    def number(self, name: str, layer: int, layers: int) -> float:
        """Return the number that one of so many layers has: one for all, or its own.

        Args:
            name: of the option.
            layer: which, from 0 on.
            layers: how many there are.

        Raises:
            InvalidInput: the option is a sequence of another length.
        """
        value: float | tuple[float, ...] = getattr(self, name)
        if not isinstance(value, tuple):
            return value
        if len(value) != layers:
            raise InvalidInput(f"Expected {name} to be one number, or one for each layer.")
        return value[layer]

    def public_rows_of(self, layer: int, layers: int, *, dim: int) -> PublicRows | None:
        """Return the public rows that one of so many layers has: the same for all, or its own.

        Args:
            layer: which, from 0 on.
            layers: how many there are.
            dim: width of its keys.

        Raises:
            InvalidInput: there are not as many as layers, or rows are not as wide as keys.
        """
        rows: PublicRows | tuple[PublicRows | None, ...] | None = self.public_rows
        if isinstance(rows, tuple):
            if len(rows) != layers:
                raise InvalidInput("Expected public_rows to be one array, or one for each layer.")
            rows = rows[layer]
        if rows is not None and rows.dim != dim:
            _validate.reject("public_rows", rows.rows.shape, f"as wide as keys are, {dim}")
        return rows


@dataclass(frozen=True, kw_only=True)
class SharedOptions(KeyOptions):
    """What every builder asks for that adds values up. Front doors say what each means."""

    value_norm: PerLayer = 1.0
    tau: PerLayer | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        checked = {"value_norm": numbers("value_norm", self.value_norm, NORMS)}
        if self.tau is not None:
            checked["tau"] = numbers("tau", self.tau, {"above": 0})
        self._keep(checked)


def shows_options(
    options: type[ReleaseOptions], names: Mapping[str, object]
) -> Callable[[Function], Function]:
    """Show options in the signature and the documentation of a function that takes them.

    In the place of `**options` come their names, defaults and meanings.

    Args:
        options: with the defaults; its docstring has the meanings.
        names: those that the function takes, in the order to show them in.
    """
    known = {each.name: each for each in fields(options)}

    def show(function: Function) -> Function:
        signature = inspect.signature(function)
        own = signature.parameters.values()
        first = [each for each in own if each.kind is each.POSITIONAL_OR_KEYWORD]
        last = [each for each in own if each.kind is each.KEYWORD_ONLY]
        listed = [
            inspect.Parameter(
                each.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if each.default is MISSING else each.default,
                annotation=each.type,
            )
            for each in map(known.__getitem__, names)
        ]
        shown = signature.replace(parameters=[*first, *listed, *last])
        function.__signature__ = shown  # type: ignore[attr-defined]
        meanings = meanings_of(options)
        entries = "\n".join(meanings[name] for name in names)
        own_text = inspect.cleandoc(function.__doc__ or "")
        function.__doc__ = _OPTIONS_ENTRY.sub(lambda _: entries, own_text)
        return function

    return show


def meanings_of(documented: object) -> dict[str, str]:
    """Return the entry of each argument or attribute that a docstring explains, by its name.

    Args:
        documented: a class or a function.
    """
    text = inspect.cleandoc(documented.__doc__ or "")  # as later versions of Python keep it
    return {found["name"]: found[0].rstrip() for found in _ENTRY.finditer(text)}


# An entry of a docstring, with the lines that go on with it; and the one of **options.
_ENTRY = re.compile(r"^ {4}(?P<name>\w+): .*(?:\n {8}.*)*", re.MULTILINE)
_OPTIONS_ENTRY = re.compile(r"^ {4}\*\*options: .*(?:\n {8}.*)*", re.MULTILINE)


def _public(rows: Array) -> PublicRows | tuple[PublicRows | None, ...] | None:
    """Return public rows, checked: of all layers, or of each."""
    if rows is None or isinstance(rows, PublicRows):
        return rows
    if isinstance(rows, (list, tuple)) and all(np.ndim(each) in {0, 2} for each in rows):
        return tuple(
            each if each is None or isinstance(each, PublicRows) else PublicRows(each)
            for each in rows
        )
    return PublicRows(rows)


def numbers(name: str, value: Any, limits: dict[str, float]) -> Any:  # noqa: ANN401
    """Return one number, or a tuple of them, if all are within the limits.

    Args:
        name: of the option, for messages.
        value: a number, or a sequence of numbers.
        limits: those of `_validate.real`.
    """
    if isinstance(value, Sequence) and not isinstance(value, str):
        try:
            return tuple(_validate.real(name, each, **limits) for each in value)
        except InvalidInput:  # whose message quotes one of them
            limited = " and ".join(
                f"{sign.replace('_', ' ')} {at:g}" for sign, at in limits.items()
            )
            raise InvalidInput(f"Expected {name} to be finite numbers, {limited}.") from None
    return _validate.real(name, value, **limits)
