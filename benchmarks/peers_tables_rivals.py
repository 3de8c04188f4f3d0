"""DP-EBM and Opacus on small tables at PrivTab's budgets, for `peers.py`: prints JSON.

Run by `peers_tables.py` with the packages of rivals on the path: interpret-core and opacus.

- DP-EBM has its defaults and what is public, as in `tables_rivals.py`.
- Opacus trains logistic regression of one-hot columns, scaled by public ranges to rows of length
  one. Batches are full: with all rows in each, all steps are one Gaussian mechanism, which is
  accounted for exactly here (Opacus's own accountants ask for a little more noise). Learning rate,
  clipping and the number of steps are picked ON THE TEST SETS, by the mean over the first splits,
  and picking is charged nothing.
"""

import argparse
import importlib.metadata
import itertools
import json
import math
import pathlib
import pickle
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import opacus
import torch
from estimators_data import Dataset
from estimators_peers import bounded
from interpret.privacy import DPExplainableBoostingClassifier
from sharing import tell
from tables_data import TableData, load
from tables_rivals import filled
from tables_shared import DELTA, classified, in_order, one_hot
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from discreet.accounting import gaussian_sigma

TESTED = 0.2
RATES, CLIPS, STEPS = (1.0, 4.0, 16.0, 64.0), (0.3, 1.0), (16, 48)
SEARCHED = 2  # splits


@dataclass(frozen=True)
class Setting:
    """What is picked."""

    rate: float
    clip: float
    steps: int


def split(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return which rows are fitted and which are held out, as in `tables.py` for PrivTab."""
    order = np.random.default_rng(1_000 + seed).permutation(count)
    tested = round(TESTED * count)
    return order[tested:], order[:tested]


class Boosting:
    """DP-EBM of a table."""

    def __init__(self, data: TableData) -> None:
        self.data, self.rows = data, filled(data)

    def fitted(
        self, epsilon: float, train: np.ndarray, seed: int
    ) -> DPExplainableBoostingClassifier:
        """Return a fit of some rows."""
        data = self.data
        ranges = {name: data.columns[name] for name in data.numbers}
        return DPExplainableBoostingClassifier(
            feature_names=list(data.columns),
            feature_types=["continuous" if name in ranges else "nominal" for name in data.columns],
            privacy_bounds=ranges,
            epsilon=epsilon,
            delta=DELTA,
            n_jobs=1,
            random_state=1 + seed,
        ).fit(self.rows.iloc[train], data.target[train])

    def area(self, epsilon: float, seed: int) -> float:
        """Return the area on one split."""
        train, test = split(len(self.rows), seed)
        made = self.fitted(epsilon, train, seed)
        found = in_order(self.data, made.predict_proba(self.rows.iloc[test]), made.classes_)
        return classified(self.data, found, self.data.target[test])["auc"]

    def pace(self, epsilon: float) -> dict[str, float]:
        """Return the processor seconds of a fit and of 1,000 predictions, and its size."""
        every = np.arange(len(self.rows))
        fit, made = seconds(lambda: self.fitted(epsilon, every, 0))
        asked = self.rows.iloc[np.resize(every, 1_000)]
        ask, _ = seconds(lambda: made.predict_proba(asked))
        return {"fit": fit, "ask": ask, "bytes": len(pickle.dumps(made))}


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the least processor seconds of three calls, and what the last returned."""
    times = []
    for _ in range(3):
        start = time.process_time()
        made = call()
        times.append(time.process_time() - start)
    return min(times), made


class Opacus:
    """Logistic regression of a table by Opacus."""

    def __init__(self, data: TableData) -> None:
        self.data = data
        rows, bounds = one_hot(data)
        labels = np.array([data.classes.index(each) for each in data.target])
        scaled = bounded(Dataset(rows, labels, tested=0, bounds=bounds), rows)
        self.rows, self.labels = torch.from_numpy(scaled), torch.from_numpy(labels)

    def fitted(
        self, setting: Setting, epsilon: float, train: np.ndarray, seed: int
    ) -> torch.nn.Module:
        """Return a fit of some rows."""
        torch.manual_seed(seed)
        model = torch.nn.Linear(self.rows.shape[1], len(self.data.classes))
        given = TensorDataset(self.rows[train], self.labels[train])
        private, optimizer, loader = opacus.PrivacyEngine().make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=setting.rate),
            data_loader=DataLoader(given, batch_size=len(train)),
            noise_multiplier=multiplier(setting.steps, epsilon),
            max_grad_norm=setting.clip,
        )
        for _ in range(setting.steps):
            for x, y in loader:
                optimizer.zero_grad()
                functional.cross_entropy(private(x), y).backward()
                optimizer.step()
        return private

    def area(self, setting: Setting, epsilon: float, seed: int) -> float:
        """Return the area on one split."""
        train, test = split(len(self.rows), seed)
        found = self.likely(self.fitted(setting, epsilon, train, seed), test)
        return classified(self.data, found, self.data.target[test])["auc"]

    def likely(self, model: torch.nn.Module, some: np.ndarray) -> np.ndarray:
        """Return the probabilities of some rows."""
        with torch.no_grad():
            return torch.softmax(model(self.rows[some]), 1).double().numpy()

    def pace(self, setting: Setting, epsilon: float) -> dict[str, float]:
        """Return the processor seconds of a fit and of 1,000 predictions, and its size."""
        every = np.arange(len(self.rows))
        fit, made = seconds(lambda: self.fitted(setting, epsilon, every, 0))
        ask, _ = seconds(lambda: self.likely(made, np.resize(every, 1_000)))
        return {"fit": fit, "ask": ask, "bytes": 4 * sum(p.numel() for p in made.parameters())}

    def tuned(self, epsilon: float, splits: int) -> tuple[list[float], Setting]:
        """Return the areas of the best setting, and the setting."""
        settings = [Setting(*each) for each in itertools.product(RATES, CLIPS, STEPS)]
        some = range(min(SEARCHED, splits))
        best = max(
            settings,
            key=lambda setting: np.mean([self.area(setting, epsilon, seed) for seed in some]),
        )
        return [self.area(best, epsilon, seed) for seed in range(splits)], best


def multiplier(steps: int, epsilon: float) -> float:
    """Return the noise of one step, over the clipping: all steps see all rows."""
    return math.sqrt(steps) * gaussian_sigma(epsilon=epsilon, delta=DELTA)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure tables at some ε, and print areas."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=pathlib.Path, required=True, help="folder of packages")
    parser.add_argument("--tables", nargs="+", required=True)
    parser.add_argument("--epsilons", type=float, nargs="+", required=True)
    parser.add_argument("--splits", type=int, required=True)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    versions = {name: importlib.metadata.version(name) for name in ("interpret-core", "opacus")}
    report: dict[str, Any] = {"versions": versions, "pace": {}}
    for name in options.tables:
        data, start = load(name, options.data), time.process_time()
        learner, found = Opacus(data), {}
        boosting = Boosting(data) if data.is_binary else None
        for epsilon in options.epsilons:
            areas, setting = learner.tuned(epsilon, options.splits)
            cell = {"opacus": areas, "picked": [setting.rate, setting.clip, setting.steps]}
            if boosting is not None:
                cell["dp-ebm"] = [boosting.area(epsilon, seed) for seed in range(options.splits)]
            found[repr(epsilon)] = cell
            tell(f"{name}, ε = {epsilon:.3g}: rivals, {time.process_time() - start:.0f} s")
        report[name], middle = found, options.epsilons[len(options.epsilons) // 2]
        picked = Setting(*found[repr(middle)]["picked"])
        report["pace"][name] = {"opacus": learner.pace(picked, middle)}
        if boosting is not None:
            report["pace"][name]["dp-ebm"] = boosting.pace(middle)
    json.dump(report, sys.stdout)


if __name__ == "__main__":
    main()
