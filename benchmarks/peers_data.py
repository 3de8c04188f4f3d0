"""Rows for `peers.py`: four kinds, cut into private rows, queries and public rows.

Two need no files: digits come with scikit-learn, clusters are made up. MNIST is read from a folder
of packages, as for `estimators.py`; embedded texts from a file, as for `texts.py`.
"""

import pathlib
import sys
from collections.abc import Callable
from dataclasses import dataclass

import errors_readout
import estimators_packages
import numpy as np
from errors_measure import clusters
from sharing import ROOT
from tables_packages import FOLDER

Floats = np.ndarray

CLUSTERED, CLUSTER_DIM = 50_000, 16
MOST_IMAGES = 20_000
ASKED = 250
CLASSES_OF_CLUSTERS = 4

# Of the kernel density: weights are this on the mean, as in the measurements of LSQ's authors.
MEAN_DENSITY = 0.1
# Of attention: sharp enough that answers differ from query to query.
ATTENTION_SCALE = 4.0


@dataclass(frozen=True)
class Places:
    """Where files are.

    Attributes:
        clinc: the embedded texts; None if they are not there.
        dprag: folder of dp-rag's data; None if it is not there.
        packages: folder of downloaded packages.
        rivals: folder of packages that only rivals need.
    """

    clinc: pathlib.Path | None = None
    dprag: pathlib.Path | None = None
    packages: pathlib.Path = FOLDER
    rivals: pathlib.Path = ROOT / "build" / "rivals"


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of one kind, of length one, in parts that have no row in common.

    Attributes:
        name: for --only and for the page.
        keys: private, shape (n, d).
        one_hot: their classes, shape (n, c).
        queries: to ask.
        public: rows like the private ones, which anybody may see.
    """

    name: str
    keys: Floats
    one_hot: Floats
    queries: Floats
    public: Floats

    @property
    def classes(self) -> int:
        """How many columns values have."""
        return int(self.one_hot.shape[1])

    @property
    def values(self) -> Floats:
        """Classes as values whose mean is zero if classes are even."""
        return self.one_hot - 1 / self.classes

    @property
    def value_norm(self) -> float:
        """How long values are."""
        return float(np.sqrt(1 - 1 / self.classes))

    @property
    def rows_hint(self) -> int:
        """How many rows there are, rounded to two digits: all that is known beforehand."""
        return int(float(f"{len(self.keys):.1e}"))

    def density_scale(self) -> float:
        """Return the scale at which weights of public rows are 0.1 on the mean, to two digits."""
        products = self.queries @ self.public[:500].T - 1
        low, high = 0.0, 1_000.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (
                (middle, high) if np.exp(middle * products).mean() > MEAN_DENSITY else (low, middle)
            )
        return float(f"{low:.2g}")


def digits(places: Places) -> Rows:  # noqa: ARG001
    """Return handwritten digits of 8 × 8 pixels."""
    return _of(errors_readout.digits())


def mnist(places: Places) -> Rows:
    """Return handwritten digits of 28 × 28 pixels, less the mean of public ones."""
    found = errors_readout.mnist(places.packages)
    if found is None:
        command = " ".join(estimators_packages.MNIST.command)
        sys.exit(f"{estimators_packages.MNIST.file} is missing: {command}, or let --fetch do it.")
    return _of(found, MOST_IMAGES)


def texts(places: Places) -> Rows:
    """Return questions to an assistant, embedded, less the mean of public ones."""
    if places.clinc is None or not places.clinc.exists():
        sys.exit("clinc_minilm.npz is missing: say where it is with --clinc, or leave it out.")
    found = errors_readout.texts(places.clinc.parent)
    return _of(found)


def made_up(places: Places, count: int = CLUSTERED) -> Rows:  # noqa: ARG001
    """Return points around twelve centres; classes are quadrants of two coordinates."""
    public, asked = errors_readout.PUBLIC, errors_readout.QUERIES
    keys = clusters(asked + public + count, CLUSTER_DIM)
    labels = 2 * (keys[:, 0] > 0) + (keys[:, 1] > 0)
    queries, alike, private = np.split(keys, [asked, asked + public])
    one_hot = np.eye(CLASSES_OF_CLUSTERS)[labels[asked + public :]]
    return Rows("clusters", private, one_hot, queries[:ASKED], alike)


def _of(found: errors_readout.Rows, most: int | None = None) -> Rows:
    """Return rows that were cut for `errors.py`, with classes as ones and zeros."""
    values = found.values[:most]
    one_hot = (values > 0).astype(np.float64)
    name = {"texts": "texts", "digits": "digits", "MNIST": "mnist"}[found.name]
    return Rows(name, found.keys[:most], one_hot, found.queries[:ASKED], found.alike)


CASES: dict[str, Callable[[Places], Rows]] = {
    "digits": digits,
    "texts": texts,
    "mnist": mnist,
    "clusters": made_up,
}
TITLES = {
    "digits": "handwritten digits of 8 × 8 pixels (scikit-learn)",
    "texts": "questions to an assistant, MiniLM (CLINC150)",
    "mnist": "handwritten digits of 28 × 28 pixels (MNIST)",
    "clusters": "made-up points around twelve centres",
}
