"""The front doors: one function for each reader, and builders for rows that come in chunks.

Each of them makes options and a row source of its arguments, and hands both to the engine
(`sums.mechanism.build`), or to processes that read files side by side (`shards.processes`).
"""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Unpack, overload

from discreet._typing import Array
from discreet.errors import InvalidInput
from discreet.features.base import SymmetricMap
from discreet.features.kernel import Kernel
from discreet.ledger import Account, Ledger
from discreet.ledger.ledger import account_of
from discreet.noise import Entropy
from discreet.provenance import Stated
from discreet.readers.attention.bundle import Memories
from discreet.readers.attention.layout import Layout
from discreet.readers.attention.mechanism import ATTENTION
from discreet.readers.attention.memory import Memory
from discreet.readers.attention.options import BuildOptions, CommonOptions, Options
from discreet.readers.attention.planning import Plan
from discreet.readers.attention.planning import plan as plan_attention
from discreet.readers.distances.answers import Distances
from discreet.readers.distances.mechanism import DISTANCES, DistanceOptions, DistancePlan
from discreet.readers.least_squares.answers import LeastSquares
from discreet.readers.least_squares.layout import Moments
from discreet.readers.least_squares.mechanism import (
    LEAST_SQUARES,
    LeastSquaresOptions,
    RegressionOptions,
)
from discreet.readers.least_squares.planning import RegressionPlan
from discreet.readers.registry import mechanism_named
from discreet.readers.rounds.cached import MEMORY_LIMIT
from discreet.readers.softmax.answers import SoftmaxRegression
from discreet.readers.softmax.mechanism import SOFTMAX, SoftmaxOptions
from discreet.readers.softmax.planning import ClassifierPlan
from discreet.sums import mechanism as engine
from discreet.sums.forecast import Forecast
from discreet.sums.mechanism import (
    AnyLayout,
    AnyOptions,
    AnyRelease,
    Mechanism,
    PerLayer,
    ReleaseBuilder,
    shows_options,
)
from discreet.sums.source import Layers, RowSource, tables_of
from discreet.tables.doors import takes_stores


@takes_stores("values")
def build(
    keys: Array,
    values: Array = None,
    *,
    epsilon: float,
    delta: float,
    neighbours: str = "add_remove",
    key_norm: PerLayer = 1.0,
    query_norm: PerLayer = 1.0,
    value_norm: PerLayer = 1.0,
    scale: PerLayer | None = None,
    rows_hint: int | None = None,
    kernel: str | Kernel | Sequence[str | Kernel] = "auto",
    eps_s: float = 0.05,
    features: int | None = None,
    goal: str = "rank",
    public_rows: Array = None,
    reference: Array = None,
    tau: PerLayer | None = None,
    groups: Array = None,
    group_rows: float = 1.0,
    entropy: Entropy | None = None,
    progress: bool = False,
    workers: int | None = None,
    account: Account | None = None,
    ledger: Ledger | None = None,
    dataset: str | None = None,
    analyst: str | None = None,
    stated: Stated | Mapping[str, Any] | None = None,
) -> Memory:
    """Return a memory that answers attention over private keys and values, any number of times.

    (epsilon, delta)-differentially private when one row (key and value, in all heads) or one record
    (`groups`) is added or removed, or replaced. The noise of an answer is that of the Gaussian
    mechanism for one single query; the kernel's error comes on top. `docs/privacy.md`, "Memory".

    Rows are read a few at a time, and each is copied before it is looked at: peak memory is the
    inputs and less than 512 MB (and a few times the state). Inputs must hold still: rows that
    change during a build may be counted as they were or as they are.

    Example::

        memory = discreet.build(keys, values, epsilon=1.0, delta=1e-6, rows_hint=10_000)
        answers, errors = memory.attend(queries, stderr=True)

    Args:
        keys: shape (n, d), or (*heads, n, d); an array, a memory map or a torch tensor, or an
            iterator of such chunks. Longer keys than `key_norm` are clipped to it. Without values:
            an iterable of chunks (keys, values) or (keys, values, groups), such as
            `discreet.tables.Rows`; all rows of a record belong in one chunk. Or where vectors live
            (Chroma, LanceDB, FAISS, PostgreSQL, Hugging Face: `docs/howto/stores.md`): then values
            and groups are names of metadata or columns.
        values: shape (n, d_v), or (*heads, n, d_v); likewise. Clipped to `value_norm`.
        epsilon: above 0.
        delta: above 0; well below one over the number of people.
        neighbours: "add_remove" (the number of rows is private, too), or "replace".
        key_norm: public bound on ‖key‖₂. Choose it without looking at the data.
        query_norm: public bound on ‖query‖₂; longer queries are clipped.
        value_norm: public bound on ‖value‖₂.
        scale: logit = scale·⟨query, key⟩, fixed for ever; None for what `plan` recommends, which
            needs `rows_hint`.
        rows_hint: a public, rounded number of rows. Never computed from the data under
            "add_remove"; under "replace" the number of rows is public, and the default for arrays
            that come whole, without groups. With it as many random features are taken as the noise
            deserves.
        kernel: "auto", "minimax", "fourier", "taylor", "landmarks", or a kernel from
            `discreet.kernels`.
        eps_s: relative error of exp that "auto" asks of a polynomial.
        features: the most features that may be taken; None for 4,096 of a polynomial, 16,384
            random ones and 512 landmarks.
        goal: what answers are for: "rank" (votes, classes) or "average" (the numbers themselves).
            The recommended scale follows from it.
        public_rows: rows that look like the private keys, and that anybody may see, shape (n, d);
            for several layers also a list with one such array for each. Random features are read
            more exactly near them (`reference`); "auto" makes landmarks of them where these do
            better still. They become part of the release.
        reference: points near which random features are read more exactly, shape (n, d), or a list
            with one such array for each layer: public rows, or example queries like those that will
            be asked. None for `public_rows`, and beside them points that are spread evenly. They
            become part of the release; `discreet.load` and `Memory.with_reference` take others.
        tau: weight of the denominator; None for value_norm/(4·d_v^¼).
        groups: the record that each row belongs to, shape (n,); None if each row is its own.
        group_rows: a record's influence is scaled down to that of so many rows.
        entropy: where the noise comes from; by default the operating system.
        progress: whether to show a progress bar.
        workers: processes that read the files of a `discreet.tables.Rows` side by side; None to
            read in this process, with a thread for each processor. The same bits either way.
        account: where the release is counted, if anywhere: `Ledger.account(dataset, analyst)`.
        ledger: or its parts: a `discreet.ledger.Ledger`,
        dataset: the name that the rows have there,
        analyst: and who asks, if that is to be known.
        stated: where the release comes from, in your words and public: a mapping with some
            of "data", "builder", "purpose", "contact" and "date", or a `discreet.Stated`. In
            the file and on the card, marked as stated by the builder.

    Returns:
        The memory.

    Raises:
        InvalidInput: an argument is not what it should be. Nothing was released.
        BudgetExceeded: the ledger's limit leaves no room. Nothing was released.

    Warns with `MostlyNoiseWarning` if answers are predicted to be mostly noise.
    """
    rows = _source(keys, values, groups, workers)
    options = Options(
        epsilon=epsilon,
        delta=delta,
        neighbours=neighbours,
        key_norm=key_norm,
        query_norm=query_norm,
        value_norm=value_norm,
        scale=scale,
        rows_hint=_hint(rows, rows_hint, neighbours),
        kernel=kernel,
        eps_s=eps_s,
        features=features,
        goal=goal,
        public_rows=public_rows,
        reference=reference,
        tau=tau,
        group_rows=group_rows,
        stated=stated,
    )
    counted = account_of(ledger, dataset, analyst, account)
    return _built(ATTENTION, rows, options, entropy, counted, progress=progress, workers=workers)


@shows_options(Options, BuildOptions.__annotations__)
def build_many(
    layers: Layers,
    *,
    groups: Array = None,
    entropy: Entropy | None = None,
    progress: bool = False,
    account: Account | None = None,
    ledger: Ledger | None = None,
    dataset: str | None = None,
    analyst: str | None = None,
    **options: Unpack[BuildOptions],
) -> Memories:
    """Return one memory for each layer, all of them together under one (epsilon, delta).

    Row i of every layer belongs to the same person; layers may differ in heads and widths. Bounds,
    `scale`, `tau`, `kernel`, `public_rows` and `reference` may be sequences with one for each
    layer. With H heads in all, each state has √H times the noise that it would have alone.

    Args:
        layers: keys and values of each: all arrays, or all iterators of chunks.
        groups: the record that each row belongs to, shape (n,); None if each row is its own.
        entropy: where the noise comes from; by default the operating system.
        progress: whether to show a progress bar.
        account: where the release is counted, if anywhere: `Ledger.account(dataset, analyst)`.
        ledger: or its parts: a `discreet.ledger.Ledger`,
        dataset: the name that the rows have there,
        analyst: and who asks, if that is to be known.
        **options: as for `build`.

    Returns:
        A bundle: a sequence of memories with one card, which is saved and loaded as one file.
    """
    rows = RowSource.of_layers(layers, groups)
    options["rows_hint"] = _hint(rows, options.get("rows_hint"), options.get("neighbours"))
    memories = engine.build(
        ATTENTION,
        rows,
        Options(**options),
        entropy=entropy,
        progress=progress,
        account=account_of(ledger, dataset, analyst, account),
    )
    return Memories(tuple(memories), {}, {})


@shows_options(Options, BuildOptions.__annotations__)
class Builder(ReleaseBuilder[Options, Layout, Memory]):
    """Adds up rows that come in chunks, and releases them once, under one (epsilon, delta).

    The options are those of `build_many`. Nothing is released before `release`; what is added up
    until then is private, and cannot be copied, pickled or printed. Each row may be added once;
    with `groups`, all rows of a record belong in one chunk. Settings are fixed by the first
    chunk's shapes::

        builder = discreet.Builder(epsilon=1.0, delta=1e-6, rows_hint=100_000)
        for keys, values in chunks:
            builder.add(keys, values)
        [memory] = builder.release()

    Args:
        account: where the release is counted, if anywhere: `Ledger.account(dataset, analyst)`.
        ledger: or its parts: a `discreet.ledger.Ledger`,
        dataset: the name that the rows have there,
        analyst: and who asks, if that is to be known.
        **options: as for `build`.
    """

    def __init__(
        self,
        *,
        account: Account | None = None,
        ledger: Ledger | None = None,
        dataset: str | None = None,
        analyst: str | None = None,
        **options: Unpack[BuildOptions],
    ) -> None:
        counted = account_of(ledger, dataset, analyst, account)
        super().__init__(ATTENTION, Options(**options), counted)

    def add(self, keys: Array, values: Array, groups: Array = None) -> None:
        """Add rows of one layer.

        Args:
            keys: shape (*heads, n, d).
            values: shape (*heads, n, d_v).
            groups: the record of each row, shape (n,); None if each row is its own.
        """
        self.add_layers([(keys, values)], groups)

    def add_layers(self, layers: Layers, groups: Array = None) -> None:
        """Add rows of all layers: row i of each belongs to the same person.

        Args:
            layers: keys and values of each layer, as for `build_many`.
            groups: the record of each row, shape (n,); None if each row is its own.
        """
        self.add_tables(tables_of(layers), groups)

    def release(self, entropy: Entropy | None = None) -> list[Memory]:
        """Add the noise, and return one memory for each layer. Once.

        Args:
            entropy: where the noise comes from; by default the operating system.

        Raises:
            BudgetExceeded: it was released before; or the ledger's limit leaves no room.

        Warns with `MostlyNoiseWarning` if answers are predicted to be mostly noise.
        """
        return self._release(entropy)


@takes_stores("values")
def least_squares(
    keys: Array,
    values: Array = None,
    *,
    epsilon: float,
    delta: float,
    neighbours: str = "add_remove",
    key_norm: float = 1.0,
    value_norm: float = 1.0,
    features: str | SymmetricMap = "auto",
    rows_hint: int | None = None,
    public_rows: Array = None,
    share: float | None = None,
    ridge: float = 0.5,
    centred: bool = True,
    tau: float | None = None,
    groups: Array = None,
    group_rows: float = 1.0,
    entropy: Entropy | None = None,
    progress: bool = False,
    workers: int | None = None,
    account: Account | None = None,
    ledger: Ledger | None = None,
    dataset: str | None = None,
    analyst: str | None = None,
    stated: Stated | Mapping[str, Any] | None = None,
) -> LeastSquares:
    """Return a regression of private values on private keys, that predicts any number of times.

    (epsilon, delta)-differentially private when one row (key and value, in all heads) or one record
    (`groups`) is added or removed, or replaced. Nothing is tuned on the rows: λ and the features
    follow from public numbers. `docs/privacy.md`, "Least squares".

    Rows are read a few at a time: what is in memory does not grow with their number.

    Example::

        fit = discreet.least_squares(keys, values, epsilon=1.0, delta=1e-6, rows_hint=10_000)
        predictions, errors = fit.predict(queries, stderr=True)

    Args:
        keys: shape (n, d), or (*heads, n, d); an array, a memory map or a torch tensor, or an
            iterator of such chunks. Longer keys than `key_norm` are clipped to it. Without values:
            an iterable of chunks (keys, values) or (keys, values, groups), such as
            `discreet.tables.Rows`; all rows of a record belong in one chunk. Or where vectors live
            (Chroma, LanceDB, FAISS, PostgreSQL, Hugging Face: `docs/howto/stores.md`): then values
            and groups are names of metadata or columns.
        values: shape (n, d_v), or (*heads, n, d_v); likewise. Clipped to `value_norm`.
        epsilon: above 0.
        delta: above 0; well below one over the number of people.
        neighbours: "add_remove" (the number of rows is private, too), or "replace".
        key_norm: public bound on ‖key‖₂, and on queries. Choose it without looking at the data.
        value_norm: public bound on ‖value‖₂.
        features: "auto", "linear" (straight lines), "unit_linear" (straight lines between classes),
            "unit_fourier" (curves of any shape: random Fourier features), "linear_and_fourier"
            (both), "unit_landmarks" (like public rows), or a map from `discreet.features`. Files
            and older code call the last four "rays", "waves", "lines_and_waves" and
            "near_landmarks", which still work.
        rows_hint: a public, rounded number of rows. Never computed from the data under
            "add_remove"; under "replace" the number of rows is public, and the default for arrays
            that come whole, without groups. "auto" needs it.
        public_rows: rows that look like the private keys, and that anybody may see, shape (n, d).
            They become part of the release.
        share: of the squared budget, for the second moments; None for a third. 0 leaves the whole
            budget to the sums, for few rows. Then the second moments are those of `public_rows`,
            which must be like the private ones; or, without any, those of features that point
            everywhere alike: predictions are sums over rows that are near, as in a memory.
        ridge: how much is shrunk: λ in units of σ·√features, σ the noise of second moments. 0.5
            for numbers; 0.3 is better for classes.
        centred: whether predictions are shrunk towards the mean of all values (known from the
            noisy sums), and not to zero. For numbers, whose mean may be anything. For classes, less
            1/C, zero is better: the mean has noise, too.
        tau: weight of the column that counts rows; None for value_norm/2 if centred, which needs
            it, else value_norm/(4·d_v^¼).
        groups: the record that each row belongs to, shape (n,); None if each row is its own.
        group_rows: a record's influence is scaled down to that of so many rows.
        entropy: where the noise comes from; by default the operating system.
        progress: whether to show a progress bar.
        workers: processes that read the files of a `discreet.tables.Rows` side by side; None to
            read in this process, with a thread for each processor. The same bits either way.
        account: where the release is counted, if anywhere: `Ledger.account(dataset, analyst)`.
        ledger: or its parts: a `discreet.ledger.Ledger`,
        dataset: the name that the rows have there,
        analyst: and who asks, if that is to be known.
        stated: where the release comes from, in your words and public: a mapping with some
            of "data", "builder", "purpose", "contact" and "date", or a `discreet.Stated`. In
            the file and on the card, marked as stated by the builder.

    Returns:
        The regression.

    Raises:
        InvalidInput: an argument is not what it should be. Nothing was released.
        BudgetExceeded: the ledger's limit leaves no room. Nothing was released.
    """
    rows = _source(keys, values, groups, workers)
    options = LeastSquaresOptions(
        epsilon=epsilon,
        delta=delta,
        neighbours=neighbours,
        key_norm=key_norm,
        value_norm=value_norm,
        features=features,
        rows_hint=_hint(rows, rows_hint, neighbours),
        public_rows=public_rows,
        share=share,
        ridge=ridge,
        centred=centred,
        tau=tau,
        group_rows=group_rows,
        stated=stated,
    )
    counted = account_of(ledger, dataset, analyst, account)
    return _built(
        LEAST_SQUARES, rows, options, entropy, counted, progress=progress, workers=workers
    )


@shows_options(LeastSquaresOptions, RegressionOptions.__annotations__)
class LeastSquaresBuilder(ReleaseBuilder[LeastSquaresOptions, Moments, LeastSquares]):
    """Adds up rows that come in chunks, and releases them once, under one (epsilon, delta).

    The options are those of `least_squares`. Nothing is released before `release`; what is added up
    until then is private, and cannot be copied, pickled or printed. Each row may be added once;
    with `groups`, all rows of a record belong in one chunk.

    Args:
        account: where the release is counted, if anywhere: `Ledger.account(dataset, analyst)`.
        ledger: or its parts: a `discreet.ledger.Ledger`,
        dataset: the name that the rows have there,
        analyst: and who asks, if that is to be known.
        **options: as for `least_squares`.
    """

    def __init__(
        self,
        *,
        account: Account | None = None,
        ledger: Ledger | None = None,
        dataset: str | None = None,
        analyst: str | None = None,
        **options: Unpack[RegressionOptions],
    ) -> None:
        counted = account_of(ledger, dataset, analyst, account)
        super().__init__(LEAST_SQUARES, LeastSquaresOptions(**options), counted)

    def add(self, keys: Array, values: Array, groups: Array = None) -> None:
        """Add rows.

        Args:
            keys: shape (*heads, n, d).
            values: shape (*heads, n, d_v).
            groups: the record of each row, shape (n,); None if each row is its own.
        """
        self.add_tables(tables_of([(keys, values)]), groups)

    def release(self, entropy: Entropy | None = None) -> LeastSquares:
        """Add the noise, and return the regression. Once.

        Args:
            entropy: where the noise comes from; by default the operating system.

        Raises:
            BudgetExceeded: it was released before; or the ledger's limit leaves no room.
        """
        [fit] = self._release(entropy)
        return fit


@takes_stores("labels")
def softmax_regression(
    keys: Array,
    labels: Array = None,
    *,
    classes: Array,
    epsilon: float,
    delta: float,
    neighbours: str = "add_remove",
    key_norm: float = 1.0,
    features: str | SymmetricMap = "auto",
    rows_hint: int | None = None,
    public_rows: Array = None,
    groups: Array = None,
    group_rows: float = 1.0,
    memory_limit: float = MEMORY_LIMIT,
    entropy: Entropy | None = None,
    progress: bool = False,
    account: Account | None = None,
    ledger: Ledger | None = None,
    dataset: str | None = None,
    analyst: str | None = None,
    stated: Stated | Mapping[str, Any] | None = None,
) -> SoftmaxRegression:
    """Return a classifier that was trained on private rows, and predicts any number of times.

    (epsilon, delta)-differentially private when one row (key and label) or one record (`groups`) is
    added or removed, or replaced. A few rounds of noisy steps, all of them under one guarantee;
    nothing is tuned on the rows: steps, rounds and features follow from public numbers.
    `docs/privacy.md`, "Rounds".

    Every round reads all rows. Their features are kept in between if they take no more than
    `memory_limit`, and computed again if they take more; beside them, less than 512 MB is needed.
    Rows must hold still until the end.

    Example::

        model = discreet.softmax_regression(keys, labels, classes=["no", "yes"], epsilon=1.0,
                                            delta=1e-6, rows_hint=10_000)
        model.probabilities(queries)

    Args:
        keys: shape (n, d); an array, a memory map or a torch tensor. Longer keys than `key_norm`
            are clipped to it. Or, with labels=None, a function without arguments that returns a new
            iterator of chunks (keys, labels) or (keys, labels, groups) each time, or an object that
            can be iterated over again. Or where vectors live (`docs/howto/stores.md`): then labels
            and groups are names of metadata or columns.
        labels: each of them one of `classes`, shape (n,).
        classes: all labels that there may be; public, numbers or texts. A label beyond them is
            refused.
        epsilon: above 0.
        delta: above 0; well below one over the number of people.
        neighbours: "add_remove" (the number of rows is private, too), or "replace".
        key_norm: public bound on ‖key‖₂, and on queries. Choose it without looking at the data.
        features: "auto", "linear" (straight lines), "unit_linear" (straight lines between classes),
            "unit_fourier" (curves of any shape: random Fourier features), "linear_and_fourier"
            (both), "unit_landmarks" (like public rows), or a map from `discreet.features`. Files
            and older code call the last four "rays", "waves", "lines_and_waves" and
            "near_landmarks", which still work.
        rows_hint: a public, rounded number of rows. Never computed from the data under
            "add_remove"; under "replace" the number of rows is public, and the default for arrays
            that come whole, without groups. "auto" takes as many random Fourier features as so many
            rows deserve.
        public_rows: rows that look like the private keys, and that anybody may see, shape (n, d).
            They become part of the release.
        groups: the record that each row belongs to, shape (n,); None if each row is its own.
        group_rows: a record's influence is scaled down to that of so many rows.
        memory_limit: bytes of features that may be kept between rounds; beyond it they are
            computed again in each round. The release is the same, to the bit.
        entropy: where the noise comes from; by default the operating system.
        progress: whether to show a progress bar.
        account: where the release is counted, if anywhere: `Ledger.account(dataset, analyst)`.
        ledger: or its parts: a `discreet.ledger.Ledger`,
        dataset: the name that the rows have there,
        analyst: and who asks, if that is to be known.
        stated: where the release comes from, in your words and public: a mapping with some
            of "data", "builder", "purpose", "contact" and "date", or a `discreet.Stated`. In
            the file and on the card, marked as stated by the builder.

    Returns:
        The classifier.

    Raises:
        InvalidInput: an argument is not what it should be. Nothing was released.
        BudgetExceeded: the ledger's limit leaves no room. Nothing was released.
    """
    counted = account_of(ledger, dataset, analyst, account)
    options = SoftmaxOptions(
        classes=classes,
        epsilon=epsilon,
        delta=delta,
        neighbours=neighbours,
        key_norm=key_norm,
        features=features,
        rows_hint=rows_hint,
        public_rows=public_rows,
        group_rows=group_rows,
        stated=stated,
        memory_limit=memory_limit,
    )
    rows = SOFTMAX.source(keys, labels, groups, options)
    hint = _hint(rows, options.rows_hint, options.neighbours)
    if hint != options.rows_hint:
        options = replace(options, rows_hint=hint)
    return _built(SOFTMAX, rows, options, entropy, counted, progress=progress, workers=None)


@takes_stores("weights")
def distances(
    points: Array,
    weights: Array = None,
    *,
    p: float,
    bounds: tuple[Array, Array],
    weight_bound: float = 1.0,
    epsilon: float,
    delta: float,
    neighbours: str = "add_remove",
    features: int | None = None,
    rows_hint: int | None = None,
    groups: Array = None,
    group_rows: float = 1.0,
    entropy: Entropy | None = None,
    progress: bool = False,
    workers: int | None = None,
    account: Account | None = None,
    ledger: Ledger | None = None,
    dataset: str | None = None,
    analyst: str | None = None,
    stated: Stated | Mapping[str, Any] | None = None,
) -> Distances:
    """Return sums of distances from any point to private points: Σ_i w_i·‖y - x_i‖_p^p.

    (epsilon, delta)-differentially private when one row (point and weight) or one record (`groups`)
    is added or removed, or replaced. The noise of an answer is that of the Gaussian mechanism for
    one single query at the worst point, however many rows there are and however many queries.
    `docs/privacy.md`, "Distances".

    Example::

        sums = discreet.distances(ages, p=1, bounds=(0, 120), epsilon=1.0, delta=1e-6)
        total, _ = sums.total
        years, errors = sums.query([20.0, 40.0, 60.0], stderr=True)
        years / total  # the mean distance in years

    Args:
        points: shape (n, d), or (n,) for one column; an array, a memory map or a torch tensor. With
            weights=None also an iterable of chunks (points, weights) or (points, weights, groups),
            such as `discreet.tables.Rows`. Or where vectors live (`docs/howto/stores.md`): then
            weights and groups are names of metadata or columns.
        weights: shape (n,), of any sign; clipped to `weight_bound`. None if all rows weigh one.
        p: the power: distances are Σ_j |y_j - x_j|^p. Above 0, at most 16.
        bounds: lower and upper ends of the points, a number each or one for each column. Public:
            choose them without looking at the data. Points and queries are clipped to them.
        weight_bound: public bound on the size of a weight.
        epsilon: above 0.
        delta: above 0; well below one over the number of people.
        neighbours: "add_remove" (the number of rows is private, too), or "replace".
        features: the most numbers that may be released; None for 2^15. Distances have cusps, which
            more features follow more closely.
        rows_hint: a public, rounded number of rows. Never computed from the data under
            "add_remove"; under "replace" the number of rows is public, and the default for arrays
            that come whole, without groups. With it as many features are taken as the noise
            deserves.
        groups: the record that each row belongs to, shape (n,); None if each row is its own.
        group_rows: a record's influence is scaled down to that of so many rows.
        entropy: where the noise comes from; by default the operating system.
        progress: whether to show a progress bar.
        workers: processes that read the files of a `discreet.tables.Rows` side by side; None to
            read in this process, with a thread for each processor. The same bits either way.
        account: where the release is counted, if anywhere: `Ledger.account(dataset, analyst)`.
        ledger: or its parts: a `discreet.ledger.Ledger`,
        dataset: the name that the rows have there,
        analyst: and who asks, if that is to be known.
        stated: where the release comes from, in your words and public: a mapping with some
            of "data", "builder", "purpose", "contact" and "date", or a `discreet.Stated`. In
            the file and on the card, marked as stated by the builder.

    Returns:
        What answers: `query(points, stderr=False)`.

    Raises:
        InvalidInput: an argument is not what it should be. Nothing was released.
        BudgetExceeded: the ledger's limit leaves no room. Nothing was released.
    """
    options = DistanceOptions(
        p=p,
        bounds=bounds,
        weight_bound=weight_bound,
        weighted=weights is not None or not hasattr(points, "__array__"),
        epsilon=epsilon,
        delta=delta,
        neighbours=neighbours,
        features=features,
        rows_hint=rows_hint,
        group_rows=group_rows,
        stated=stated,
    )
    if workers is None:
        rows: Any = DISTANCES.source(points, weights, groups, options)
    else:
        rows = _source(points, weights, groups, workers)
    options = replace(options, rows_hint=_hint(rows, rows_hint, neighbours))
    counted = account_of(ledger, dataset, analyst, account)
    return _built(DISTANCES, rows, options, entropy, counted, progress=progress, workers=workers)


@overload
def plan(
    *,
    reader: Literal["attention"] = ...,
    **given: Any,  # noqa: ANN401 (of each reader's own plan)
) -> Plan: ...
@overload
def plan(*, reader: Literal["least_squares"], **given: Any) -> RegressionPlan: ...  # noqa: ANN401
@overload
def plan(*, reader: Literal["softmax"], **given: Any) -> ClassifierPlan: ...  # noqa: ANN401
@overload
def plan(*, reader: Literal["distances"], **given: Any) -> DistancePlan: ...  # noqa: ANN401
@overload
def plan(*, reader: str, **given: Any) -> Forecast: ...  # noqa: ANN401


@shows_options(Options, CommonOptions.__annotations__)
def plan(*, reader: str = "attention", **options: Any) -> Forecast:
    """Return what a release would be like, before any privacy is spent.

    A function of public numbers only: error, size and cost. The options below are those of `build`;
    with another reader they are those of its own function, with the same names and defaults.

    Example::

        print(discreet.plan(rows=10_000, key_dim=64, value_dim=8, epsilon=1.0, delta=1e-6))
        discreet.plan(reader="least_squares", rows=10_000, key_dim=8, epsilon=1.0, delta=1e-6)
        discreet.plan(reader="softmax", rows=10_000, key_dim=8, classes=3, epsilon=1.0, delta=1e-6)

    Args:
        reader: "attention" (`build`), "least_squares", "softmax" (`softmax_regression`),
            "distances", or "table": counts near `points`, which a corpus of texts is made of.
        rows: a public (rounded) number of rows: what the builder will give as `rows_hint`.
        key_dim: width of keys, d.
        value_dim: width of values, d_v. Not for "softmax" and "distances"; 1 by default for
            "least_squares".
        heads: of all layers together. Not for "softmax" and "distances".
        by_record: whether `groups` will be given.
        classes: for "softmax": the list of them, or how many there are.
        signal: for "least_squares": by how much each number of a value follows the key, a standard
            deviation; None for half of what values that fill their ball differ by.
        **options: as for `build`.

    Returns:
        The plan: `str(plan)` is a page for people, `plan.to_dict()` is ready for JSON.

    Raises:
        InvalidInput: an argument is not what it should be.
    """
    return mechanism_named(reader).forecast(**options)


# Shown, and completed in editors, with all that attention takes.
plan.__signature__ = inspect.signature(plan).replace(  # type: ignore[attr-defined]
    parameters=[
        inspect.signature(plan).parameters["reader"],
        *inspect.signature(plan_attention).parameters.values(),
    ]
)


def _source(keys: Array, values: Array, groups: Array, workers: int | None) -> Any:  # noqa: ANN401
    """Return rows as the engine reads them; as they are, if workers will read files."""
    if workers is None:
        return RowSource.of(keys, values, groups)
    from discreet.tables import Rows

    if values is not None or groups is not None or not isinstance(keys, Rows):
        raise InvalidInput(
            "Expected workers to come with a discreet.tables.Rows of files, in the place of keys, "
            "values and groups.",
            argument="workers",
        )
    return keys


def _hint(rows: object, given: int | None, neighbours: object) -> int | None:
    """Return the number of rows, where that is public and no other was given."""
    return rows.rows_hint(given, neighbours) if isinstance(rows, RowSource) else given


def _built(
    mechanism: Mechanism[AnyOptions, AnyLayout, AnyRelease],
    rows: Any,  # noqa: ANN401 (a row source, or files)
    options: AnyOptions,
    entropy: Entropy | None,
    account: Account | None,
    *,
    progress: bool,
    workers: int | None,
) -> AnyRelease:
    """Return what answers from the rows of one layer, read here or by workers."""
    common: dict[str, Any] = {"entropy": entropy, "progress": progress, "account": account}
    if workers is not None:
        from discreet.shards.processes import build_files

        return build_files(mechanism, rows, options, workers=workers, **common)
    [release] = engine.build(mechanism, rows, options, **common)
    return release
