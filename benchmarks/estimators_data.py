"""Data for `estimators.py`: rows, what is public about them, and how they are split.

Whatever an estimator is told beside its rows is in this file or in `estimators_packages.py` as
plain numbers: ranges of columns, bounds on lengths, classes. Nothing is computed from the rows but
the number of them, rounded to two digits.
"""

import enum
import pathlib
from collections.abc import Callable
from dataclasses import dataclass, replace

import estimators_packages as packages
import numpy as np
from sharing import ROOT, example

EPSILONS = (0.5, 1.0, 2.0, 4.0)

# Of the measurements of cells of a breast: nothing is below 0; one digit is above what occurs.
CANCER_HIGH = (
    *(30, 40, 200, 3_000, 0.2, 0.4, 0.5, 0.3, 0.4, 0.1),
    *(3, 5, 30, 600, 0.04, 0.2, 0.4, 0.06, 0.08, 0.03),
    *(40, 50, 300, 5_000, 0.3, 2, 2, 0.3, 0.7, 0.3),
)
# Of the chemistry of wine, likewise.
WINE_HIGH = (20, 6, 4, 30, 200, 4, 6, 0.7, 4, 20, 2, 4, 2_000)

# Reviews that the encoder reads to their end.
REVIEW_TOKENS, REVIEW_WORDS = 256, 160
REVIEWS, REVIEWS_TESTED = 11_000, 3_000
SENTENCES, SENTENCES_TESTED = 8_530, 1_530


@dataclass(frozen=True)
class Places:
    """Where files are.

    Attributes:
        packages: folder of downloaded packages; None if there is none.
        embeddings: folder of embedded reviews.
    """

    packages: pathlib.Path | None = None
    embeddings: pathlib.Path = ROOT / "build" / "embeddings"


@dataclass(frozen=True, eq=False)
class Split:
    """One random split of the rows."""

    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray
    public_x: np.ndarray | None


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows, and what is public about them.

    Attributes:
        rows: shape (n, d).
        targets: labels from 0, or numbers, shape (n,).
        bounds: public (low, high) of columns; None if there is a norm.
        norm: public bound on the length of rows; None if there are bounds.
        target_bounds: public (low, high) of numbers; None for classes.
        tested: how many rows are held out.
        last_tested: whether these are always the last ones, as the makers of the data say.
        set_aside: so many rows are not private; they are public or not used at all.
        has_public: whether the rows set aside are given as public ones.
    """

    rows: np.ndarray
    targets: np.ndarray
    tested: int
    bounds: tuple[np.ndarray, np.ndarray] | tuple[float, float] | None = None
    norm: float | None = None
    target_bounds: tuple[float, float] | None = None
    last_tested: bool = False
    set_aside: int = 0
    has_public: bool = False

    @property
    def is_regression(self) -> bool:
        """Whether targets are numbers."""
        return self.target_bounds is not None

    @property
    def classes(self) -> np.ndarray:
        """Labels in order."""
        return np.arange(int(self.targets.max()) + 1)

    @property
    def most_frequent(self) -> float:
        """The share of the most frequent class: what who knows nothing else reaches."""
        return float(np.bincount(self.targets).max() / len(self.targets))

    @property
    def private_rows(self) -> int:
        """How many rows are fitted."""
        return len(self.rows) - self.tested - self.set_aside

    @property
    def rows_hint(self) -> int:
        """How many rows are fitted, rounded to two digits."""
        return int(float(f"{self.private_rows:.1e}"))

    def split(self, seed: int) -> Split:
        """Return the rows of one split. No row is in two parts."""
        rng = np.random.default_rng(seed)
        count = len(self.rows)
        if self.last_tested:
            test, others = np.arange(count)[-self.tested :], rng.permutation(count - self.tested)
        else:
            test, others = np.split(rng.permutation(count), [self.tested])
        aside, train = np.split(others, [self.set_aside])
        rows = self.rows
        return Split(
            train_x=self._numbers(rows[train]),
            train_y=self.targets[train],
            test_x=self._numbers(rows[test]),
            test_y=self.targets[test],
            public_x=self._numbers(rows[aside]) if self.has_public else None,
        )

    def _numbers(self, rows: np.ndarray) -> np.ndarray:
        """Return pixels as numbers; other rows as they are."""
        return rows.astype(np.float32) if rows.dtype == np.uint8 else rows


class Kind(enum.Enum):
    """Where a line of the page belongs."""

    PROMISED = "something was promised, and rules were chosen on such data"
    WATCHED = "nothing was promised, but these data were looked at while rules were chosen"
    UNSEEN = "nothing was chosen on these data"
    SPOILED = "public numbers that are not good"


@dataclass(frozen=True)
class Case:
    """A line of the page.

    Attributes:
        name: for --only.
        title: for the page.
        load: the data.
        splits: how many.
        draws: of the noise for each split: several where rows are few, and luck is large.
        bars: what accuracy (R²) is to be reached at each ε; None if nothing was promised.
        kind: where on the page.
        same_rows_as: another line with the same splits, whose peers serve for this one, too.
        peer_splits: how many of the splits peers are measured on; None for all.
    """

    name: str
    title: str
    load: Callable[[Places], Dataset]
    splits: int
    bars: tuple[float, ...] | None = None
    kind: Kind = Kind.PROMISED
    draws: int = 1
    same_rows_as: str | None = None
    peer_splits: int | None = None


def digits(places: Places) -> Dataset:  # noqa: ARG001
    """Return handwritten digits of 8 × 8 pixels from 0 to 16."""
    from sklearn.datasets import load_digits

    rows, targets = load_digits(return_X_y=True)
    return Dataset(rows, targets, tested=450, bounds=(0.0, 16.0))


def cancer(places: Places) -> Dataset:  # noqa: ARG001
    """Return measurements of cells, whether they are benign."""
    from sklearn.datasets import load_breast_cancer

    rows, targets = load_breast_cancer(return_X_y=True)
    return Dataset(rows, targets, tested=143, bounds=_from_zero(CANCER_HIGH))


def cancer_wide(places: Places) -> Dataset:
    """Return the same with ranges that are twice too wide."""
    narrow = cancer(places)
    low, high = narrow.bounds
    return replace(narrow, bounds=(low, 2 * high))


def cancer_scaled(places: Places) -> Dataset:
    """Return the same with all columns scaled to one range, as if they were pixels."""
    plain = cancer(places)
    return replace(plain, rows=plain.rows / plain.bounds[1], bounds=(0.0, 1.0))


def digits_wide(places: Places) -> Dataset:
    """Return digits with a range that is twice too wide."""
    return replace(digits(places), bounds=(0.0, 32.0))


def wine(places: Places) -> Dataset:  # noqa: ARG001
    """Return the chemistry of wines of three growers."""
    from sklearn.datasets import load_wine

    rows, targets = load_wine(return_X_y=True)
    return Dataset(rows, targets, tested=45, bounds=_from_zero(WINE_HIGH))


def _from_zero(high: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(len(high)), np.array(high, dtype=np.float64)


def adult(places: Places) -> Dataset:
    """Return people, and who earns much."""
    rows, bounds, targets = packages.adult(places.packages)
    return Dataset(rows, targets, tested=4_000, bounds=bounds)


def compas(places: Places) -> Dataset:
    """Return people, and who is charged again."""
    rows, bounds, targets = packages.compas(places.packages)
    return Dataset(rows, targets, tested=1_000, bounds=bounds)


def german(places: Places) -> Dataset:
    """Return people, and whose credit is bad."""
    rows, bounds, targets = packages.german(places.packages)
    return Dataset(rows, targets, tested=250, bounds=bounds)


def _pictures(rows: np.ndarray, targets: np.ndarray, *, has_public: bool) -> Dataset:
    """Return 55,000 private images, 5,000 that are set aside, and the rest for tests."""
    return Dataset(
        rows,
        targets,
        tested=len(rows) - 60_000,
        bounds=(0.0, 255.0),
        last_tested=True,
        set_aside=5_000,
        has_public=has_public,
    )


def mnist(places: Places) -> Dataset:
    """Return images of digits."""
    return _pictures(*packages.mnist(places.packages), has_public=False)


def mnist_public(places: Places) -> Dataset:
    """Return images of digits, 5,000 of them public."""
    return _pictures(*packages.mnist(places.packages), has_public=True)


def fashion(places: Places) -> Dataset:
    """Return images of clothes."""
    return _pictures(*packages.fashion(places.packages), has_public=False)


def fashion_public(places: Places) -> Dataset:
    """Return images of clothes, 5,000 of them public."""
    return _pictures(*packages.fashion(places.packages), has_public=True)


def reviews(words: int | None) -> Callable[[Places], Dataset]:
    """Return a loader of film reviews as unit vectors, good or bad; longer ones are left out."""

    def load(places: Places) -> Dataset:
        embedded = example("review_embeddings").embedded_reviews
        rows, targets = embedded(
            "imdb", REVIEWS, places.embeddings, tokens=REVIEW_TOKENS, words=words
        )
        return Dataset(rows, targets, tested=REVIEWS_TESTED, norm=1.0)

    return load


def sentences(places: Places) -> Dataset:
    """Return sentences of film reviews as unit vectors, good or bad."""
    embedded = example("review_embeddings").embedded_reviews
    rows, targets = embedded("rotten_tomatoes", SENTENCES, places.embeddings, tokens=REVIEW_TOKENS)
    return Dataset(rows, targets, tested=SENTENCES_TESTED, norm=1.0)


# How columns are made of normal numbers, and their ranges: all even; four of eight skewed; three
# very skewed, with ranges far beyond most of them, and two that are yes or no.
EVEN, SKEWED, MIXED = range(3)
# Noise in units of the signal, such that ridge without privacy has an R² of about 0.62.
NOISE = (0.60, 0.60, 0.655)


def regression(kind: int) -> Callable[[Places], Dataset]:
    """Return a loader of 25,000 made-up rows: mostly linear, somewhat curved, much noise."""

    def load(places: Places) -> Dataset:  # noqa: ARG001
        rng = np.random.default_rng(kind)
        mixing = np.eye(8) + 0.35 * rng.normal(size=(8, 8))
        normal = rng.normal(size=(25_000, 8)) @ (mixing / np.linalg.norm(mixing, axis=0))
        rows, low, high = _columns(normal, kind)
        weights = rng.normal(size=8) * (1.0, 0.8, 0.8, 0.6, 0.6, 0.5, 0.5, 0.4)
        straight = _unit_spread(_unit_spread(rows) @ weights)
        curved = _unit_spread(
            np.sin(1.5 * normal[:, 0])
            + normal[:, 1] * normal[:, 5]
            + np.tanh(normal[:, 6] ** 2 - 1)
            + 0.8 * normal[:, 2] * normal[:, 7]
        )
        signal = _unit_spread(straight + 0.42 * curved)
        targets = _unit_spread(signal + NOISE[kind] * rng.normal(size=len(rows)))
        return Dataset(rows, targets, tested=5_000, bounds=(low, high), target_bounds=(-3.0, 3.0))

    return load


def _columns(normal: np.ndarray, kind: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return columns within their ranges, low and high ends."""
    rows, low, high = normal.copy(), np.full(8, -4.0), np.full(8, 4.0)
    if kind == EVEN:
        low, high = np.full(8, -3.0), np.full(8, 3.0)
    elif kind == SKEWED:
        rows[:, :4] = np.exp(0.7 * normal[:, :4])
        low[:4], high[:4] = 0.0, 10.0
    else:
        rows[:, :3], rows[:, 3:5] = np.exp(0.9 * normal[:, :3]), normal[:, 3:5] > 0.7
        low[:5], high[:3], high[3:5] = 0.0, 30.0, 1.0
    return np.clip(rows, low, high), low, high


def _unit_spread(numbers: np.ndarray) -> np.ndarray:
    return (numbers - numbers.mean(axis=0)) / numbers.std(axis=0)


_REVIEW_BARS = (0.815, 0.823, 0.83, 0.835)
_REGRESSION_BARS = (0.58, 0.60, 0.61, 0.61)

_AS_CANCER = {"kind": Kind.SPOILED, "same_rows_as": "cancer"}
_AS_DIGITS = {"kind": Kind.SPOILED, "draws": 5, "same_rows_as": "digits"}

CASES = (
    Case("digits", "digits", digits, 10, (0.845, 0.905, 0.935, 0.95), draws=5),
    Case("cancer", "breast cancer", cancer, 100, (0.935, 0.945, 0.95, 0.955), peer_splits=20),
    Case("adult", "UCI Adult", adult, 5, (0.838, 0.841, 0.843, 0.844)),
    Case("reviews", "film reviews, MiniLM, cut off", reviews(None), 5, _REVIEW_BARS),
    Case("short-reviews", "short film reviews, MiniLM", reviews(REVIEW_WORDS), 5, _REVIEW_BARS),
    Case("even", "regression, even columns", regression(EVEN), 5, _REGRESSION_BARS),
    Case("skewed", "regression, skewed columns", regression(SKEWED), 5, _REGRESSION_BARS),
    Case("mixed", "regression, mixed columns", regression(MIXED), 5, _REGRESSION_BARS),
    Case("mnist", "MNIST", mnist, 5, (0.92, 0.93, 0.938, 0.943), peer_splits=1),
    Case(
        "mnist-public",
        "MNIST, 5,000 public",
        mnist_public,
        5,
        (0.94, 0.948, 0.953, 0.957),
        same_rows_as="mnist",
    ),
    Case("sentences", "sentences of film reviews, MiniLM", sentences, 5, kind=Kind.UNSEEN),
    Case("compas", "COMPAS", compas, 10, kind=Kind.WATCHED),
    Case("german", "German credit", german, 10, kind=Kind.WATCHED, draws=5),
    Case("wine", "wine", wine, 100, kind=Kind.WATCHED, peer_splits=20),
    Case("fashion", "fashion-MNIST", fashion, 2, kind=Kind.WATCHED, peer_splits=1),
    Case(
        "fashion-public",
        "fashion-MNIST, 5,000 public",
        fashion_public,
        2,
        kind=Kind.WATCHED,
        same_rows_as="fashion",
    ),
    Case("cancer-wide", "breast cancer, ranges twice too wide", cancer_wide, 100, **_AS_CANCER),
    Case("cancer-scaled", "breast cancer, scaled to one range", cancer_scaled, 100, **_AS_CANCER),
    Case("digits-wide", "digits, range twice too wide", digits_wide, 10, **_AS_DIGITS),
)
