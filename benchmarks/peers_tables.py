"""Small tables at PrivTab's budgets: ours, DP-EBM and Opacus on the same splits, for `peers.py`.

PrivTab's own figures are published ones: other splits, and ranges from the data. Ours, DP-EBM and
Opacus have the ε of half its μ when a row is added or removed, which keeps the same promise when a
row is replaced. Packages that only rivals need are installed into a folder of their own
(`--fetch`), and used by a process of its own.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tables
from peers_data import Places
from sharing import tell
from tables_data import load
from tables_packages import PACKAGES, located
from tables_page import PRIVTAB

from discreet.accounting import gaussian_epsilon
from discreet.sklearn import PrivateClassifier

NAMES, BUDGETS, SPLITS = tables.PRIVTAB, tables.BUDGETS, tables.PRIVTAB_SPLITS
PACKAGES_OF_RIVALS = ("opacus==1.6.0", "interpret-core==0.7.8", "opt_einsum==3.4.0")
SCRIPT = pathlib.Path(__file__).with_name("peers_tables_rivals.py")
OURS, EBM, OPACUS, PRIVTAB_NAME, LOGISTIC = (
    "ours",
    "dp-ebm",
    "opacus",
    "PrivTab",
    "PrivTab's logistic regression",
)
TIMED = 0.4

Found = dict[str, Any]


def fetch(folder: pathlib.Path) -> None:
    """Install what only rivals need into a folder, beside the environment and not into it."""
    arguments = ["install", "--quiet", "--no-deps", "--target", str(folder), *PACKAGES_OF_RIVALS]
    if not (folder / "opacus").exists():
        subprocess.run([sys.executable, "-m", "pip", *arguments], check=True, stdout=sys.stderr)


def epsilon_of(budget: float) -> float:
    """Return the ε of half of μ, for a row that is added or removed."""
    return float(gaussian_epsilon(sigma=2 / budget, delta=tables.DELTA))


def published() -> Found:
    """Return the figures of PrivTab's authors, by table and μ."""
    return {
        name: {
            PRIVTAB_NAME: dict(zip(map(str, BUDGETS), theirs, strict=True)),
            LOGISTIC: dict(zip(map(str, BUDGETS), own, strict=True)),
        }
        for name, (_, theirs, own) in PRIVTAB.items()
    }


def ours(name: str, budgets: Sequence[float] = BUDGETS) -> Found:
    """Return our areas on a table, by μ."""
    start = time.process_time()
    areas = {f"{budget:g}": tables.measure_privtab((name, budget)) for budget in budgets}
    tell(f"{name}: ours, {time.process_time() - start:.0f} s of the processor")
    return areas


def of_rivals(
    name: str, places: Places, budgets: Sequence[float] = BUDGETS, splits: int = SPLITS
) -> Found | None:
    """Return the areas of rivals on a table, by μ; None if their packages are not there."""
    if not (places.rivals / "opacus").exists():
        tell(f"{name}: no packages of rivals in {places.rivals.name}; --fetch installs them")
        return None
    epsilons = {f"{budget:g}": repr(epsilon_of(budget)) for budget in budgets}
    command = [sys.executable, SCRIPT, "--data", places.packages, "--tables", name]
    command += ["--splits", str(splits), "--epsilons", *epsilons.values()]
    found = json.loads(
        subprocess.run(
            [str(each) for each in command],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(places.rivals)},
        ).stdout
    )
    cells = found[name]
    report: Found = {"versions": found["versions"], "pace": found["pace"][name]}
    for method in (OPACUS, EBM):
        report[method] = {
            budget: [float(f"{each:.5g}") for each in cells[epsilon][method]]
            for budget, epsilon in epsilons.items()
            if method in cells[epsilon]
        }
    report["picked"] = {budget: cells[each]["picked"] for budget, each in epsilons.items()}
    return report


def pace(name: str) -> Found:
    """Return the processor seconds of one of our fits and 1,000 predictions, and its size."""
    data = load(name)
    every = np.arange(len(data.frame))
    fits = [
        _seconds(lambda seed=seed: tables.fitted(data, every, epsilon_of(TIMED), seed))
        for seed in range(3)
    ]
    made: PrivateClassifier = fits[0][1]
    rows = data.frame.iloc[np.resize(every, 1_000)]
    asked = [_seconds(lambda: made.predict_proba(rows))[0] for _ in range(3)]
    return {"fit": min(each for each, _ in fits), "ask": min(asked), "bytes": len(_file(made))}


def _seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    made = call()
    return time.process_time() - start, made


def _file(made: PrivateClassifier) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.safetensors"
        made.save(path)
        return path.read_bytes()


def measured(
    name: str, places: Places, before: Mapping[str, Any], budgets: Sequence[float] = BUDGETS
) -> Found:
    """Return areas on one table; those of rivals that are not there are kept from before."""
    for package in PACKAGES:
        if package.file.startswith("keel"):
            located(package, places.packages)
    rivals = of_rivals(name, places, budgets) or before.get("rivals")
    rows = len(load(name, places.packages).frame)
    return {"rows": rows, OURS: ours(name, budgets), "pace": pace(name), "rivals": rivals}
