"""Opacus's own DP-SGD on the data of `estimators.py`: logistic regression of columns, tuned.

Rows are scaled by what is public to length one, as in `dpsgd.py`, whose search and whose training
serve here, too: learning rate, clipping, epochs and batch size are picked ON THE TEST SET, by the
mean over the splits, and picking is charged nothing. Needs opacus.
"""

from collections.abc import Sequence
from dataclasses import asdict

import dpsgd
import torch
from dpsgd import Grid
from estimators_data import Dataset, Split
from estimators_peers import bounded

# Of the rows, in one batch.
BATCHES = (16, 4, 1)
# Tables with more numbers than this are searched on one split, and for fewer epochs.
LARGE = 1_000_000


def opacus(
    dataset: Dataset, splits: Sequence[Split], epsilons: Sequence[float], delta: float
) -> dict[float, dict[str, object]]:
    """Return, for each ε, the accuracy of the best setting on each split, and the setting."""
    if delta != dpsgd.DELTA:
        raise ValueError(f"Expected delta={delta} to be {dpsgd.DELTA}.")
    dpsgd.prepare()
    given = [_tensors(dataset, split) for split in splits]
    found = {}
    for epsilon in epsilons:
        setting = dpsgd.search(given, epsilon, _grid(dataset))
        runs = dpsgd.repeat(given, setting, epsilon=epsilon, seeds=1)
        found[epsilon] = {"scores": runs.accuracies, "setting": asdict(setting)}
    return found


def _grid(dataset: Dataset) -> Grid:
    rows = dataset.private_rows
    large = rows * dataset.rows.shape[1] > LARGE
    return Grid(
        learning_rates=(1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0),
        clips=(0.1, 0.3, 1.0),
        epochs=(10, 40) if large else (20, 60, 180),
        batches=tuple(-(-rows // parts) for parts in BATCHES),
        coarse_splits=1 if large else 2,
        best_pairs=1 if large else 3,
        fine_seeds=1 if large else 2,
    )


def _tensors(dataset: Dataset, split: Split) -> dpsgd.Split:
    return dpsgd.Split(
        torch.from_numpy(bounded(dataset, split.train_x).astype("float32")),
        torch.from_numpy(split.train_y),
        torch.from_numpy(bounded(dataset, split.test_x).astype("float32")),
        torch.from_numpy(split.test_y),
        classes=len(dataset.classes),
    )
