"""The front door: from keys and values to a regression, under one guarantee."""

import os
from collections.abc import Sequence
from typing import Unpack

from discreet import _validate
from discreet._typing import Array
from discreet.ledger import Ledger
from discreet.ledger.ledger import account_of
from discreet.noise import Entropy
from discreet.readers.least_squares import card as file
from discreet.readers.least_squares.answers import LeastSquares
from discreet.readers.least_squares.mechanism import Moments, settle
from discreet.readers.least_squares.options import LeastSquaresOptions, RegressionOptions
from discreet.sums.collector import Collector
from discreet.sums.options import shows_options
from discreet.sums.settings import Settings, Shape, Unit
from discreet.sums.source import Feed, tables_of


@shows_options(LeastSquaresOptions, RegressionOptions.__annotations__)
def least_squares(
    keys: Array,
    values: Array = None,
    *,
    groups: Array = None,
    entropy: Entropy | None = None,
    progress: bool = False,
    ledger: Ledger | None = None,
    dataset: str | None = None,
    analyst: str | None = None,
    **options: Unpack[RegressionOptions],
) -> LeastSquares:
    """Return a regression of private values on private keys, that predicts any number of times.

    (epsilon, delta)-differentially private when one row (key and value, in all heads) or one record
    (`groups`) is added or removed, or replaced. Nothing is tuned on the rows: λ and the features
    follow from public numbers. `docs/privacy.md`, "Least squares".

    Rows are read a few at a time: what is in memory does not grow with their number.

    Args:
        keys: shape (n, d), or (*heads, n, d); an array, a memory map or a torch tensor, or an
            iterator of such chunks. Longer keys than `key_norm` are clipped to it. Without values:
            an iterable of chunks (keys, values) or (keys, values, groups), such as
            `discreet.tables.Rows`; all rows of a record belong into one chunk.
        values: shape (n, d_v), or (*heads, n, d_v); likewise. Clipped to `value_norm`.
        groups: the record that each row belongs to, shape (n,); None if each row is its own.
        entropy: where the noise comes from; by default the operating system.
        progress: whether to show a progress bar.
        ledger: where the release is counted, if anywhere: a `discreet.ledger.Ledger`.
        dataset: the name that the rows have there.
        analyst: who asks, if that is to be known.
        **options: see `LeastSquaresOptions`. epsilon and delta are required;
            with features="auto", so is `rows_hint` (under "replace" the number of rows is public,
            and the default).
    """
    if entropy is not None:
        _validate.instance("entropy", entropy, Entropy)
    feed = Feed.of_one(keys, values, groups)
    options["rows_hint"] = feed.rows_hint(options.get("rows_hint"), options.get("neighbours"))
    builder = LeastSquaresBuilder(ledger=ledger, dataset=dataset, analyst=analyst, **options)
    feed.into(builder, progress=progress)
    return builder.release(entropy)


@shows_options(LeastSquaresOptions, RegressionOptions.__annotations__)
class LeastSquaresBuilder(Collector[Moments]):
    """Adds up rows that come in chunks, and releases them once, under one (epsilon, delta).

    The options are those of `least_squares`. Nothing is released before `release`; what is added up
    until then is private, and cannot be copied, pickled or printed. Each row may be added once;
    with `groups`, all rows of a record belong into one chunk.

    Args:
        ledger: where the release is counted, if anywhere: a `discreet.ledger.Ledger`.
        dataset: the name that the rows have there.
        analyst: who asks, if that is to be known.
        **options: see `discreet.readers.least_squares.LeastSquaresOptions`.
    """

    def __init__(
        self,
        *,
        ledger: Ledger | None = None,
        dataset: str | None = None,
        analyst: str | None = None,
        **options: Unpack[RegressionOptions],
    ) -> None:
        super().__init__(account_of(ledger, dataset, analyst))
        self._options = LeastSquaresOptions(**options)

    def add(self, keys: Array, values: Array, groups: Array = None) -> None:
        """Add rows: keys (*heads, n, d), values (*heads, n, d_v), groups (n,)."""
        self.add_tables(tables_of([(keys, values)]), groups)

    def release(self, entropy: Entropy | None = None) -> LeastSquares:
        """Add the noise, and return the regression. Once.

        Args:
            entropy: where the noise comes from; by default the operating system.

        Raises:
            BudgetExceeded: it was released before; or the ledger's limit leaves no room.
        """
        [released] = self._release(entropy)
        return LeastSquares(released)

    def _settle(self, shapes: Sequence[Shape], unit: Unit) -> Settings[Moments]:
        settings = settle(shapes, self._options, unit=unit)
        self._options.warn_if_nobody_is_protected()
        return settings


def load(path: str | os.PathLike[str]) -> LeastSquares:
    """Return the regression in a file that `LeastSquares.save` wrote.

    Raises `CorruptRelease` if the file is not one, was cut short or altered; warns with
    `NotPrivateWarning` if it was made with a test source of noise.
    """
    return LeastSquares(file.load(path))
