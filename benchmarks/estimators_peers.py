"""What private estimators are compared with: exact ceilings, DP-SGD, and diffprivlib.

- Ceilings are not private: logistic regression (ridge for numbers) and 15 nearest neighbours of
  scikit-learn.
- DP-SGD is full batch: every step sees all rows, so that all steps together are one Gaussian
  mechanism, exactly accounted for. Learning rate, clipping and features (columns, or random waves
  of them) are picked ON THE TEST SET, by the mean over the splits, and picking is charged nothing.
  The noise is as large as a private run's, but drawn from a seed.
- diffprivlib runs in an interpreter of its own, since it needs an older scikit-learn.
"""

import itertools
import json
import math
import pathlib
import subprocess
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from estimators_data import Dataset, Split
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import r2_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from discreet.accounting import gaussian_sigma

NEIGHBOURS = 15
STEPS = 48
MOMENTUM = 0.75
# The noise of a logit in the end, if gradients were noise alone and rows of length one: a learning
# rate by what it costs, so that one list serves all numbers of rows.
REACHES = (0.005, 0.02, 0.1, 0.4, 1.3, 2.5, 5.0)
CLIPS = (0.2, 0.7)
COLUMNS, WAVES = "columns", "waves"
WAVE_COUNT, WAVE_SCALE = 512, 6.0

DIFFPRIVLIB = pathlib.Path(__file__).with_name("estimators_diffprivlib.py")


@dataclass(frozen=True)
class Setting:
    """What is picked on the test set."""

    features: str
    reach: float
    clip: float


def score(dataset: Dataset, predicted: np.ndarray, truth: np.ndarray) -> float:
    """Return the accuracy, or R² of numbers."""
    if dataset.is_regression:
        return float(r2_score(truth, predicted))
    return float(np.mean(predicted == truth))


def ceilings(dataset: Dataset, split: Split) -> dict[str, float]:
    """Return how well exact methods do, with nothing private."""
    if dataset.is_regression:
        exact = {"linear": Ridge(), "neighbours": KNeighborsRegressor(NEIGHBOURS)}
    else:
        exact = {
            "linear": LogisticRegression(max_iter=300),
            "neighbours": KNeighborsClassifier(NEIGHBOURS),
        }
    train, test = split.train_x, split.test_x
    if not _is_table(dataset):  # so that a column is a number of the order of one
        side = np.float32(math.sqrt(train.shape[1]))
        train, test = (side * ball(dataset, rows) for rows in (train, test))
    found = {}
    for name, each in exact.items():
        with warnings.catch_warnings():
            # Stopped early on pixels, where that costs nothing.
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted = _scaled(dataset, each).fit(train, split.train_y)
        found[name] = score(dataset, fitted.predict(test), split.test_y)
    return found


def _is_table(dataset: Dataset) -> bool:
    """Whether each column is a quantity of its own."""
    return dataset.bounds is not None and np.ndim(dataset.bounds[0]) > 0


def _scaled(dataset: Dataset, estimator: object) -> Pipeline:
    return make_pipeline(*([StandardScaler()] if _is_table(dataset) else []), estimator)


def ball(dataset: Dataset, rows: np.ndarray) -> np.ndarray:
    """Return rows of length one at the most: columns from -1 to 1, over √d; or as they are."""
    if dataset.bounds is None:
        return np.asarray(rows / dataset.norm, dtype=np.float32)
    low, high = (np.asarray(each, dtype=np.float32) for each in dataset.bounds)
    fractions = (rows.astype(np.float32) - low) / (high - low)
    return (2 * np.clip(fractions, 0, 1) - 1) / np.float32(math.sqrt(rows.shape[1]))


def bounded(dataset: Dataset, rows: np.ndarray) -> np.ndarray:
    """Return rows for linear models: for classes of length one, as in dpsgd.py."""
    scaled = ball(dataset, rows)
    if dataset.is_regression:
        return scaled
    return scaled / np.maximum(np.linalg.norm(scaled, axis=1, keepdims=True), 1e-9)


def features(dataset: Dataset, rows: np.ndarray, kind: str) -> np.ndarray:
    """Return what DP-SGD is linear in, float32: columns and a one, or random waves."""
    if kind == COLUMNS:
        scaled = bounded(dataset, rows)
        return np.hstack([scaled, np.ones((len(scaled), 1), dtype=np.float32)])
    scaled = ball(dataset, rows)
    rng = np.random.default_rng(0)
    waves = rng.normal(size=(scaled.shape[1], WAVE_COUNT)) * math.sqrt(WAVE_SCALE)
    angles = scaled @ waves.astype(np.float32)
    return np.hstack([np.cos(angles), np.sin(angles)]) / np.float32(math.sqrt(WAVE_COUNT))


def dpsgd(
    dataset: Dataset, splits: Sequence[Split], epsilons: Sequence[float], delta: float
) -> dict[float, dict[str, object]]:
    """Return, for each ε, the scores of the best setting on each split, and the setting."""
    kinds = [COLUMNS] if dataset.norm is not None else [COLUMNS, WAVES]
    settings = list(itertools.product(REACHES, CLIPS))
    scores: dict[float, dict[Setting, list[float]]] = {epsilon: {} for epsilon in epsilons}
    for kind, (seed, split) in itertools.product(kinds, enumerate(splits)):
        train, test = (features(dataset, rows, kind) for rows in (split.train_x, split.test_x))
        for epsilon in epsilons:
            sigma = gaussian_sigma(epsilon=epsilon, delta=delta)
            weights = descend(dataset, train, split.train_y, settings, sigma=sigma, seed=seed)
            for setting, each in zip(settings, weights, strict=True):
                answers = test @ each
                if dataset.is_regression:
                    found = score(dataset, _numbers(dataset, answers[:, 0]), split.test_y)
                else:
                    found = score(dataset, answers.argmax(axis=1), split.test_y)
                scores[epsilon].setdefault(Setting(kind, *setting), []).append(found)
    best = {
        epsilon: max(tried, key=lambda setting: float(np.mean(tried[setting])))
        for epsilon, tried in scores.items()
    }
    return {
        epsilon: {"scores": scores[epsilon][setting], "setting": asdict(setting)}
        for epsilon, setting in best.items()
    }


def about_dpsgd(picked: Sequence[dict[str, dict[str, object]]]) -> str:
    """Return in words what DP-SGD is here, given what was picked in each cell."""
    at_an_end = sum(each["setting"]["reach"] in (min(REACHES), max(REACHES)) for each in picked)
    return (
        "the same with more help. Logistic regression (least squares for numbers), full batch, "
        f"{STEPS} steps with momentum {MOMENTUM:g}, exactly accounted for as one Gaussian "
        "mechanism, many settings at once. "
        f"Learning rate ({len(REACHES)}), clipping ({len(CLIPS)}) and features (columns, or "
        f"{2 * WAVE_COUNT:,} random waves of them; embeddings: columns) are picked **on the "
        "test set**, which is generous: nobody can do that privately. The best rate is the first "
        f"or last of its list in {at_an_end} of {len(picked)} cells: a longer list may do better."
    )


def descend(
    dataset: Dataset,
    rows: np.ndarray,
    targets: np.ndarray,
    settings: Sequence[tuple[float, float]],
    *,
    sigma: float,
    seed: int,
) -> np.ndarray:
    """Return the last weights for each setting, shape (settings, features, outputs).

    A step adds noise of σ·√STEPS·clip to the sum of clipped gradients: together, the steps are one
    Gaussian mechanism of multiplier σ. Settings share their noise.
    """
    wanted = _wanted(dataset, targets)
    outputs, count = wanted.shape[1], len(settings)
    clips = np.array([clip for _, clip in settings], dtype=np.float32)
    reaches = np.array([reach for reach, _ in settings], dtype=np.float32)
    rates = (reaches / (sigma * clips * STEPS))[:, None]
    lengths = np.linalg.norm(rows, axis=1)[:, None]
    rng = np.random.default_rng(1_000 + seed)
    weights = np.zeros((rows.shape[1], count, outputs), dtype=np.float32)
    momentum = np.zeros_like(weights)
    for _ in range(STEPS):
        errors = (rows @ weights.reshape(len(weights), -1)).reshape(len(rows), count, outputs)
        if not dataset.is_regression:
            _softmax(errors)
        errors -= wanted[:, None, :]
        norms = np.sqrt(np.einsum("nso,nso->ns", errors, errors)) * lengths
        errors *= np.minimum(1, clips / np.maximum(norms, 1e-9))[:, :, None]
        gradient = (rows.T @ errors.reshape(len(rows), -1)).reshape(weights.shape)
        noise = rng.normal(size=(len(weights), 1, outputs)).astype(np.float32)
        gradient += np.float32(sigma * math.sqrt(STEPS)) * clips[:, None] * noise
        momentum += (1 - MOMENTUM) * (gradient - momentum)
        weights -= rates * momentum
    return weights.transpose(1, 0, 2)


def _softmax(logits: np.ndarray) -> None:
    """Turn logits into probabilities, in place."""
    logits -= logits.max(axis=2, keepdims=True)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=2, keepdims=True)


def _wanted(dataset: Dataset, targets: np.ndarray) -> np.ndarray:
    """Return classes as 0 and 1, or numbers from -1 to 1: float32, shape (n, outputs)."""
    if not dataset.is_regression:
        return np.eye(len(dataset.classes), dtype=np.float32)[targets]
    low, high = dataset.target_bounds
    return (2 * np.clip((targets - low) / (high - low), 0, 1) - 1).astype(np.float32)[:, None]


def _numbers(dataset: Dataset, answers: np.ndarray) -> np.ndarray:
    low, high = dataset.target_bounds
    return low + (np.clip(answers, -1, 1) + 1) / 2 * (high - low)


def diffprivlib(
    python: str, dataset: Dataset, splits: Sequence[Split], epsilons: Sequence[float]
) -> dict[float, dict[str, object]]:
    """Return the scores of diffprivlib's own linear model, pure ε-differentially private."""
    scores: dict[float, list[float]] = {epsilon: [] for epsilon in epsilons}
    for seed, split in enumerate(splits):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "split.npz"
            np.savez(
                path,
                train_x=bounded(dataset, split.train_x),
                train_y=split.train_y,
                test_x=bounded(dataset, split.test_x),
                target_bounds=np.array(dataset.target_bounds or ()),
                epsilons=np.array(epsilons),
                seed=seed,
            )
            done = subprocess.run(
                [python, DIFFPRIVLIB, path], check=True, capture_output=True, text=True
            )
        for epsilon, predicted in zip(epsilons, json.loads(done.stdout), strict=True):
            answers = np.array(predicted)
            if dataset.is_regression:  # it does not know that numbers are within bounds
                answers = np.clip(answers, *dataset.target_bounds)
            scores[epsilon].append(score(dataset, answers, split.test_y))
    return {epsilon: {"scores": found} for epsilon, found in scores.items()}
