"""The front door: from keys and labels to a classifier, under one guarantee."""

import os
from dataclasses import replace
from typing import Unpack

import numpy as np

from discreet import _validate
from discreet._typing import Array
from discreet.ledger import Ledger
from discreet.ledger.ledger import account_of
from discreet.noise import Entropy
from discreet.privacy import Neighbours
from discreet.readers.softmax import card as file
from discreet.readers.softmax.answers import SoftmaxRegression
from discreet.readers.softmax.labels import Labels
from discreet.readers.softmax.options import ClassifierOptions, SoftmaxOptions
from discreet.readers.softmax.passes import Passes
from discreet.readers.softmax.settings import settle
from discreet.readers.softmax.training import train
from discreet.sums.collector import OnSettled
from discreet.sums.options import shows_options
from discreet.sums.settings import Unit


@shows_options(SoftmaxOptions, ClassifierOptions.__annotations__)
def softmax_regression(
    keys: Array,
    labels: Array = None,
    *,
    groups: Array = None,
    entropy: Entropy | None = None,
    progress: bool = False,
    ledger: Ledger | None = None,
    dataset: str | None = None,
    analyst: str | None = None,
    on_settled: OnSettled | None = None,
    **options: Unpack[ClassifierOptions],
) -> SoftmaxRegression:
    """Return a classifier that was trained on private rows, and predicts any number of times.

    (epsilon, delta)-differentially private when one row (key and label) or one record (`groups`) is
    added or removed, or replaced. A few rounds of noisy steps, all of them under one guarantee;
    nothing is tuned on the rows: steps, rounds and features follow from public numbers.
    `docs/privacy.md`, "Rounds".

    Every round reads all rows. Their features are kept in between if they take no more than
    `memory_limit`, and computed again if they take more; beside them, less than 512 MB is needed.
    Rows must hold still until the end.

    Args:
        keys: shape (n, d); an array, a memory map or a torch tensor. Longer keys than `key_norm`
            are clipped to it. Or, with labels=None, a function without arguments that returns a new
            iterator of chunks (keys, labels) or (keys, labels, groups) each time, or an object that
            can be iterated over again.
        labels: each of them one of `classes`, shape (n,).
        groups: the record that each row belongs to, shape (n,); None if each row is its own.
        entropy: where the noise comes from; by default the operating system.
        progress: whether to show a progress bar.
        ledger: where the release is counted, if anywhere: a `discreet.ledger.Ledger`.
        dataset: the name that the rows have there.
        analyst: who asks, if that is to be known.
        on_settled: told the public settings before rows are read; whatever it raises ends the
            training, and nothing is drawn or counted.
        **options: see `SoftmaxOptions`. classes, epsilon and delta are required.
    """
    if entropy is not None:
        _validate.instance("entropy", entropy, Entropy)
    account = account_of(ledger, dataset, analyst)
    chosen = SoftmaxOptions(**options)
    passes = Passes.of(keys, labels, groups, Labels(np.asarray(chosen.classes)))
    if chosen.rows_hint is None and _rows_are_public(passes, chosen):
        chosen = replace(chosen, rows_hint=max(passes.rows or 1, 1))
    settings = settle(passes.dim, chosen, unit=Unit.RECORD if passes.by_record else Unit.ROW)
    chosen.warn_if_nobody_is_protected()
    settings.check(account)  # before rows are read, and again when the first noise is drawn
    if on_settled is not None:
        on_settled(settings)
    [layout] = settings.layouts
    kept = passes.remembered(layout.kernel, chosen.memory_limit)
    return SoftmaxRegression(
        train(kept, settings, entropy=entropy, progress=progress, account=account)
    )


def _rows_are_public(passes: Passes, options: SoftmaxOptions) -> bool:
    replaced = options.privacy.neighbours is Neighbours.REPLACE
    return replaced and passes.rows is not None and not passes.by_record


def load(path: str | os.PathLike[str]) -> SoftmaxRegression:
    """Return the classifier in a file that `SoftmaxRegression.save` wrote.

    Raises `CorruptRelease` if the file is not one, was cut short or altered; warns with
    `NotPrivateWarning` if it was made with a test source of noise.
    """
    return SoftmaxRegression(file.load(path))
