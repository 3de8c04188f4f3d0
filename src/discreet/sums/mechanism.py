"""A mechanism is a program over one noisy door: what one reader adds up, and what answers from it.

Options are what a caller may ask of a release; they are public, and checked here for all readers.

To add a reader, write a folder below `readers` with its options (`ReleaseOptions`), its layout
(`RowLayout`: what a row contributes, and a bound on it), its mechanism (this class) and its answers
(`Release`), and add a line to `readers/registry.py`. `tests/support/reader_contract.py` is the
suite of tests that it has to pass.
"""

import abc
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar, Generic, NoReturn, TypeVar

import numpy as np

from discreet import _validate
from discreet._typing import Array
from discreet._validate import warn
from discreet.accounting.receipt import checked_leaks
from discreet.errors import BudgetExceeded, InvalidInput, LedgerError, PrivacyLeakWarning
from discreet.features.base import NORMS
from discreet.features.public_rows import PublicRows
from discreet.ledger.ledger import Account
from discreet.noise import Entropy
from discreet.privacy import Neighbours, Privacy
from discreet.provenance import Stated
from discreet.sums.accumulate import Accumulator
from discreet.sums.door import Door, Latch
from discreet.sums.forecast import Forecast
from discreet.sums.layout import RowLayout
from discreet.sums.release import Release, Released
from discreet.sums.settings import Settings, Shape, Unit
from discreet.sums.source import Advance, RowSource, Table, passes_bar, unseen

PerLayer = float | Sequence[float]
AnyLayout = TypeVar("AnyLayout", bound=RowLayout)
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
    stated: Stated | Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        checked = {
            "epsilon": _validate.real("epsilon", self.epsilon, above=0),
            "delta": _validate.real("delta", self.delta, above=0, below=1),
            "neighbours": Neighbours.parse(self.neighbours),
            "group_rows": _validate.real("group_rows", self.group_rows, at_least=1e-3, at_most=1e6),
            "leaks": checked_leaks(self.leaks),
            "stated": Stated.of(self.stated),
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

    def settings(self, layout: AnyLayout, unit: Unit) -> Settings[AnyLayout]:
        """Return the public settings of a release of one layer.

        Args:
            layout: what each row adds.
            unit: whom the guarantee protects.
        """
        return Settings(
            layouts=(layout,),
            privacy=self.privacy,
            unit=unit,
            group_rows=self.group_rows,
            rows_hint=self.rows_hint,
            leaks=self.leaks,
            stated=Stated.of(self.stated),
        )

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
                "public_rows": checked_points("public_rows", self.public_rows),
            }
        )

    def _check_one_layer(self, reader: str, *names: str) -> None:
        """Raise `InvalidInput` if an option has one value for each of several layers."""
        for name in names:
            if isinstance(getattr(self, name), tuple):
                kind = "array" if name == "public_rows" else "number"
                _validate.reject(name, "...", f"one {kind}: {reader} has one layer")

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
        return self._points_of("public_rows", layer, layers, dim=dim)

    def _points_of(self, name: str, layer: int, layers: int, *, dim: int) -> PublicRows | None:
        """Return what `public_rows_of` does, of an option of that name."""
        rows: PublicRows | tuple[PublicRows | None, ...] | None = getattr(self, name)
        if isinstance(rows, tuple):
            if len(rows) != layers:
                raise InvalidInput(f"Expected {name} to be one array, or one for each layer.")
            rows = rows[layer]
        if rows is not None and rows.dim != dim:
            _validate.reject(name, rows.rows.shape, f"as wide as keys are, {dim}")
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


def checked_points(name: str, rows: Array) -> PublicRows | tuple[PublicRows | None, ...] | None:
    """Return public rows, checked: of all layers, or of each.

    Args:
        name: of the option.
        rows: an array, or a list with one for each layer; None for none.
    """
    if rows is None or isinstance(rows, PublicRows):
        return rows
    if isinstance(rows, (list, tuple)) and all(np.ndim(each) in {0, 2} for each in rows):
        return tuple(
            each if each is None or isinstance(each, PublicRows) else PublicRows(each, name=name)
            for each in rows
        )
    return PublicRows(rows, name=name)


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


AnyOptions = TypeVar("AnyOptions", bound=ReleaseOptions)
AnyRelease = TypeVar("AnyRelease", bound=Release[Any])

# Told the public settings of a release before any row is added up; whatever it raises ends the
# build, and nothing is drawn or counted.
OnResolved = Callable[[Settings[Any]], object]


class Mechanism(abc.ABC, Generic[AnyOptions, AnyLayout, AnyRelease]):
    """One reader, as builds know it: public settings from options, and a program over the door.

    A value without state: there is one of each.

    Attributes:
        name: under which callers ask for it.
        options: their type.
        answers: what is made of a release.
        reads_once: whether one pass over the rows is enough. Only then can they be added up in
            chunks (`ReleaseBuilder`) or in many places (`discreet.shards`).
    """

    name: ClassVar[str]
    options: type[AnyOptions]
    answers: type[AnyRelease]
    reads_once: ClassVar[bool] = True

    def source(
        self,
        keys: Array,
        values: Array,
        groups: Array,
        options: AnyOptions,  # noqa: ARG002
    ) -> RowSource:
        """Return the rows of one layer, as a caller has them.

        Args:
            keys: arrays, or chunks of keys and values.
            values: what comes with the keys.
            groups: the record of each row; None if each row is its own.
            options: public.
        """
        return RowSource.of(keys, values, groups)

    @abc.abstractmethod
    def resolve(
        self, shapes: Sequence[Shape], options: AnyOptions, *, unit: Unit = Unit.ROW
    ) -> Settings[AnyLayout]:
        """Return the public settings. The same options and shapes always give the same.

        Args:
            shapes: of the layers.
            options: checked.
            unit: whom the guarantee protects.
        """

    def forecast(self, **given: Any) -> Forecast:  # noqa: ANN401 (each reader's own)
        """Return what a release would be like, from public numbers only: what `plan` returns.

        Args:
            **given: `rows`, `key_dim`, and what else the reader's plan takes.
        """
        del given
        return _validate.reject_argument("reader", self.name, "one that can be planned")

    def passes_of(self, settings: Settings[AnyLayout]) -> int:  # noqa: ARG002
        """Return how many passes over the rows a release takes.

        Args:
            settings: the public settings.
        """
        return 1

    def run(
        self,
        rows: RowSource,
        door: Door[AnyLayout],
        options: AnyOptions,  # noqa: ARG002
    ) -> list[Released[AnyLayout]]:
        """Return what is released, one for each layer: only what came out of the door.

        Args:
            rows: private; to be handed to the door.
            door: which adds up, and lets sums out with noise.
            options: public.
        """
        return door.release_all(rows)

    def read(self, released: Sequence[Released[AnyLayout]]) -> list[AnyRelease]:
        """Return what answers from what was released.

        Args:
            released: noisy sums of each layer.
        """
        return [self.answers(each) for each in released]


def build(
    mechanism: Mechanism[AnyOptions, AnyLayout, AnyRelease],
    rows: RowSource,
    options: AnyOptions,
    *,
    entropy: Entropy | None = None,
    progress: bool = False,
    account: Account | None = None,
    on_resolved: OnResolved | None = None,
) -> list[AnyRelease]:
    """Return what answers from private rows, one for each layer: under one (ε, δ).

    Args:
        mechanism: what is built.
        rows: private.
        options: public.
        entropy: where the noise comes from; by default the operating system.
        progress: whether to show a progress bar.
        account: on which the release is counted before its noise, if on any.
        on_resolved: told the public settings before rows are added up.
    """
    if entropy is not None:
        _validate.instance("entropy", entropy, Entropy)
    settings = mechanism.resolve(rows.shapes, options, unit=rows.unit)
    options.warn_if_nobody_is_protected()
    passes = mechanism.passes_of(settings)
    door = Door(settings, entropy=entropy, account=account, passes=passes)
    if on_resolved is not None:
        on_resolved(settings)
    count = rows.count() if progress else None
    with door, passes_bar(passes, rows=count, show=progress) as door.begin:
        released = mechanism.run(rows, door, options)
    return mechanism.read(released)


class ReleaseBuilder(Generic[AnyOptions, AnyLayout, AnyRelease]):
    """Adds up rows that come in chunks, and releases them once, under one (ε, δ).

    Nothing is released before the end; what is added up until then is private, and cannot be
    copied, pickled or printed. For mechanisms that read rows once.
    """

    def __init__(
        self,
        mechanism: Mechanism[AnyOptions, AnyLayout, AnyRelease],
        options: AnyOptions,
        account: Account | None = None,
    ) -> None:
        """Begin with no rows.

        Args:
            mechanism: what is built.
            options: public.
            account: on which the release is counted, if on any.
        """
        self._mechanism = mechanism
        self._options = options
        self._account = account
        self._latch = Latch("builder")
        self._accumulator: Accumulator[AnyLayout] | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: exact sums, private>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("Exact sums are private and are never pickled or copied.")

    @property
    def settings(self) -> Settings[AnyLayout] | None:
        """The public settings; None before the first chunk."""
        return None if self._accumulator is None else self._accumulator.settings

    def add_tables(
        self, tables: Sequence[Table], groups: Array = None, *, advance: Advance = unseen
    ) -> None:
        """Add rows that have been checked.

        Args:
            tables: one for each layer.
            groups: the record of each row, shape (n,); None if each row is its own.
            advance: told how many rows have been added.
        """
        with self._latch.held():
            accumulator = self._accumulator or self._begin(tables, groups)
            before = accumulator.rows
            try:
                accumulator.add(tables, groups=groups, advance=advance)
            except BaseException:
                # Whoever adds the chunk again would count its rows twice.
                if not accumulator.whole or accumulator.rows != before:
                    self._latch.close("a chunk failed, and some of its rows were added: begin anew")
                    self._accumulator = None
                raise
            self._accumulator = accumulator

    def _begin(self, tables: Sequence[Table], groups: object) -> Accumulator[AnyLayout]:
        unit = Unit.ROW if groups is None else Unit.RECORD
        shapes = [table.shape for table in tables]
        settings = self._mechanism.resolve(shapes, self._options, unit=unit)
        self._options.warn_if_nobody_is_protected()
        settings.check(self._account)  # before a row is read, and again when noise is drawn
        return Accumulator(settings)

    def _release(self, entropy: Entropy | None) -> list[AnyRelease]:
        """Add the noise, once, or raise `BudgetExceeded`."""
        if entropy is not None:
            _validate.instance("entropy", entropy, Entropy)
        with self._latch.releasing(self._begun):
            accumulator = self._begun()
            self._accumulator = None
            try:
                with Door(
                    accumulator.settings,
                    entropy=entropy,
                    account=self._account,
                    latch=self._latch,
                ) as door:
                    released = door.release(accumulator.sums, rows=accumulator.rows)
            except (BudgetExceeded, LedgerError):
                if not self._latch.spent:  # no noise was drawn: the sums are whole
                    self._accumulator = accumulator
                raise
        return self._mechanism.read(released)

    def _begun(self) -> Accumulator[AnyLayout]:
        """Return the exact sums, if any chunk was added."""
        if self._accumulator is None:
            raise InvalidInput(
                "Expected at least one chunk of keys and values (it may have no rows)."
            )
        return self._accumulator
