"""Counts near public points as a mechanism: options, public settings from them, one pass."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from discreet import _validate
from discreet._arrays import plain_numbers
from discreet._typing import Array
from discreet.errors import InvalidInput
from discreet.features.nearest import Nearest
from discreet.provenance import Stated
from discreet.readers.softmax.rows import Labels, check_classes, labelled
from discreet.readers.table.answers import LEVEL, Law, Table
from discreet.readers.table.layout import TableLayout, units_for
from discreet.sums.cells import RECORD_UNITS
from discreet.sums.forecast import Forecast, planned_shape, planned_unit
from discreet.sums.mechanism import Mechanism, ReleaseOptions
from discreet.sums.settings import Settings, Shape, Unit
from discreet.sums.source import Chunk, Form, RowSource, tables_of
from discreet.sums.source import Table as Rows

# So many rows a cell, at ε = 1, are clear of the noise: with more points their counts are noise.
ROWS_A_POINT = 12.0


@dataclass(frozen=True, kw_only=True)
class TableOptions(ReleaseOptions):
    """The options of a table, checked.

    Attributes:
        points: public, shape (T, d): each row counts for the nearest.
        classes: all labels that there may be, public; None if rows have none.
        epsilon: above 0.
        delta: not used: the guarantee has δ = 0.
        neighbours: "add_remove" (the number of rows is private, too), or "replace".
        rows_hint: a public, rounded number of rows, for the card.
        group_rows: a record's influence is scaled down to that of so many rows.
        stated: where the release comes from, in your words and public: a mapping with some
            of "data", "builder", "purpose", "contact" and "date", or a `discreet.Stated`. In
            the file and on the card, marked as stated by the builder.
        leaks: names of what was taken from the private rows, which the guarantee does not cover.
    """

    delta: float = 1e-6
    points: Any = field(repr=False)
    classes: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        points = self.points if isinstance(self.points, Nearest) else Nearest(self.points)
        classes: tuple[Any, ...] = ()
        if self.classes is not None and len(self.classes):
            classes = tuple(Labels.of(self.classes, distinct=True).classes.tolist())
            check_classes(classes)
        self._keep({"points": points, "classes": classes})


class TableMechanism(Mechanism[TableOptions, TableLayout, Table]):
    """Counts of rows in cells of public points and labels, with Laplace noise once."""

    name = "table"
    options = TableOptions
    answers = Table

    def source(self, keys: Array, values: Array, groups: Array, options: TableOptions) -> RowSource:
        """Return the rows of a table: keys, and labels for values.

        Args:
            keys: arrays, or chunks.
            values: the label of each row; whatever they are where there are no labels.
            groups: the record of each row; None if each row is its own.
            options: public.
        """
        if options.classes:
            form = replace(labelled(Labels(np.asarray(options.classes))), passes=False)
            return RowSource.of(keys, values, groups, form)
        if values is None and hasattr(keys, "__array__"):
            values = np.broadcast_to(0.0, len(keys))  # nobody looks at them
        return RowSource.of(keys, values, groups, Form(values="labels", chunk=_unlabelled))

    def resolve(
        self, shapes: Sequence[Shape], options: TableOptions, *, unit: Unit = Unit.ROW
    ) -> Settings[TableLayout]:
        """Return the settings: points, labels, and how finely rows are counted.

        Args:
            shapes: of the layers.
            options: checked.
            unit: whom the guarantee protects.
        """
        [shape] = shapes
        if shape.heads:
            _validate.reject("heads", shape.heads, "(): keys have shape (n, d)")
        if shape.key_dim != options.points.dim:
            wanted = f"as wide as keys are, {shape.key_dim}"
            _validate.reject("points", (options.points.features, options.points.dim), wanted)
        return settings_of(options, unit, pure=options.epsilon)

    def forecast(self, **given: Any) -> Forecast:  # noqa: ANN401 (of `plan`)
        """Return what a table would be like; see `plan`.

        Args:
            **given: the arguments of this reader's `plan`.
        """
        return plan(**given)


TABLE = TableMechanism()


def settings_of(options: TableOptions, unit: Unit, *, pure: float) -> Settings[TableLayout]:
    """Return the settings of a table that spends so much, alone or beside other releases.

    Args:
        options: checked.
        unit: whom the guarantee protects.
        pure: ε of the table.
    """
    layout = TableLayout(kernel=options.points, classes=options.classes, units=RECORD_UNITS)
    both = options.neighbours == "replace"
    if unit is Unit.ROW:
        least = min((1 + both) / (pure * weight) for weight in layout.part_weights)
        layout = replace(layout, units=units_for(least))
    return replace(_whole(options), layouts=(layout,), unit=unit, pure=pure)


def _whole(options: TableOptions) -> Settings[TableLayout]:
    """Return settings that have everything but a layout and its unit."""
    return Settings(
        layouts=(),
        privacy=options.privacy,
        unit=Unit.RECORD,
        group_rows=options.group_rows,
        rows_hint=options.rows_hint,
        leaks=options.leaks,
        stated=Stated.of(options.stated),
    )


def _unlabelled(keys: Array, values: Array, groups: Array) -> Chunk:
    """Return keys as a table; whatever stands for their labels is not looked at."""
    del values
    rows = plain_numbers("keys", keys)
    if rows.ndim != 2:
        raise InvalidInput("Expected keys of shape (n, d).")
    tables: list[Rows] = tables_of([(rows, np.broadcast_to(0.0, (len(rows), 1)))])
    return tables, groups


@dataclass(frozen=True, kw_only=True)
class TablePlan(Forecast):
    """Predictions for a table. `str(plan)` is a page for people.

    Attributes:
        points: how many there are.
        labels: how many labels.
        count_margin: the ± of a count.
        most_points: with more points than that, most counts would be noise.
    """

    derived: ClassVar[tuple[str, ...]] = ("verdict", "warning")

    points: int
    labels: int
    count_margin: float
    most_points: int

    @property
    def verdict(self) -> str:
        """How far a count will be off."""
        mean = self.rows / self.points
        return (
            f"counts are within ±{self.count_margin:.3g} ({LEVEL:.0%}), where a point has "
            f"{mean:,.3g} rows on the mean"
        )

    @property
    def lines(self) -> list[tuple[str, str]]:
        """Points and labels."""
        return [("cells", f"{self.points:,} points, {self.labels:,} labels")]

    @property
    def _own_warning(self) -> str | None:
        """Whether there are too many points."""
        if self.points <= self.most_points:
            return None
        return f"Most counts will be noise: take {self.most_points:,} points at most."


def most_points(*, rows: int, epsilon: float) -> int:
    """Return how many points so many rows deserve: with more, most counts would be noise.

    Args:
        rows: a public number of rows.
        epsilon: of the table.
    """
    return max(int(rows * epsilon / ROWS_A_POINT), 2)


def plan(*, rows: int, key_dim: int, by_record: bool = False, **options: Any) -> TablePlan:  # noqa: ANN401
    """Return what a table with these options would give, before anything is spent.

    Args:
        rows: a public (rounded) number of rows.
        key_dim: width of keys.
        by_record: whether `groups` will be given.
        **options: those of the reader, but for rows_hint.
    """
    rows, shape = planned_shape(rows=rows, key_dim=key_dim)
    wanted = TableOptions(**options, rows_hint=rows)
    settings = TABLE.resolve([shape], wanted, unit=planned_unit(by_record=by_record))
    [layout] = settings.layouts
    scales = tuple([scale * layout.real_unit for scale in settings.scales(layout)])
    return TablePlan(
        rows=rows,
        epsilon=settings.privacy.epsilon,
        delta=settings.privacy.delta,
        points=layout.kernel.features,
        labels=layout.labels,
        count_margin=Law(layout, scales).count_margin,
        most_points=most_points(rows=rows, epsilon=settings.privacy.epsilon),
    )
