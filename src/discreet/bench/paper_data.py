"""Real data that comes with scikit-learn and matplotlib, between public bounds."""

from dataclasses import dataclass

import numpy as np

from discreet._typing import Floats
from discreet.errors import InvalidInput

METRES = 2048.0  # no hill of that region is higher
HILLS = "hills"


@dataclass(frozen=True, eq=False)
class Data:
    """Points in [0, 1]^d and weights in [-1, 1].

    Attributes:
        name: of the data set.
        about: what points and weights are, and their public bounds.
        points: shape (n, d).
        weights: shape (n,).
    """

    name: str
    about: str
    points: Floats
    weights: Floats


def data_sets(*, every: int = 1) -> list[Data]:
    """Return all of them, smallest first; without scikit-learn, say what to install.

    Args:
        every: of the largest, take only every so many rows.
    """
    try:
        from sklearn import datasets
    except ImportError:
        raise InvalidInput(
            "Expected scikit-learn, with which some of the data comes: pip install 'discreet[sklearn]'."
        ) from None
    diabetes = datasets.load_diabetes(scaled=False)
    cancer = datasets.load_breast_cancer()
    digits = datasets.load_digits()
    heights, places = elevations()
    hills, places = heights[::every] / METRES, places[::every]
    return [
        Data(
            "diabetes",
            "body mass index in [10, 60], weighed by the progress of the disease over 350",
            _scaled(diabetes.data[:, 2:3], 10, 60),
            np.clip(diabetes.target / 350, -1, 1),
        ),
        _counted(
            "breast cancer",
            "mean radius in [0, 30] and mean texture in [0, 40] of cell nuclei",
            np.concatenate(
                [_scaled(cancer.data[:, k : k + 1], 0, most) for k, most in ((0, 30), (1, 40))],
                axis=1,
            ),
        ),
        _counted(
            "digits",
            "ink of an image, a share of its 64 pixels",
            _scaled(digits.data.sum(axis=1)[:, None], 0, 1024),
        ),
        _counted(HILLS, f"elevation in [0, {METRES:.0f}] metres", hills[:, None]),
        _counted(
            f"{HILLS}, 2-d",
            "the same, and how far north, a share of the map",
            np.stack([hills, places], axis=1),
        ),
    ]


def elevations() -> tuple[Floats, Floats]:
    """Return the elevations of a map that comes with matplotlib, in metres, and how far north."""
    from matplotlib import cbook

    path = cbook.get_sample_data("jacksboro_fault_dem.npz", asfileobj=False)
    with np.load(str(path)) as file:
        heights = np.asarray(file["elevation"], dtype=np.float64)
    north = np.linspace(1, 0, heights.shape[0])
    return heights.reshape(-1), np.repeat(north, heights.shape[1])


def _scaled(values: Floats, low: float, high: float) -> Floats:
    return np.asarray(np.clip((values - low) / (high - low), 0.0, 1.0))


def _counted(name: str, about: str, points: Floats) -> Data:
    return Data(name, f"{about}, weight 1", points, np.ones(len(points)))
