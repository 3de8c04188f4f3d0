"""What a text adds to the sums that typical words are read from: words ⊗ coordinates, in integers.

A text marks at most `most` words of a public vocabulary, each with the same weight, and has
coordinates near public anchors (`words.Directions`). Both have a length that is bounded exactly.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from discreet import _validate
from discreet._typing import Floats, Integers
from discreet.features.base import FEATURE_RADIUS, KeyFeatures, RowMap
from discreet.sums.layout import RowLayout
from discreet.text.words import Directions, mark_weight

# All weights of a text together have this length, in units.
_RADIUS = 2**12


@dataclass(frozen=True, eq=False)
class NearAnchors(RowMap):
    """Coordinates of a text near public anchors, as integers.

    Attributes:
        directions: the anchors.
        key_norm: texts have vectors of length one; longer ones are cut to it.
    """

    kind: ClassVar[str] = "near_anchors"
    argument: ClassVar[str] = "directions"

    directions: Directions
    key_norm: float = 1.0

    @property
    def dim(self) -> int:  # type: ignore[override]  # it follows from the anchors
        """D."""
        return int(self.directions.anchors.shape[1])

    @property
    def features(self) -> int:
        """A constant, and one for each anchor."""
        return self.directions.width

    @property
    def unit(self) -> float:
        """Coordinates have length one."""
        return float(FEATURE_RADIUS)

    @property
    def least_inner(self) -> int:
        """No coordinate is negative."""
        return 0

    @property
    def operations(self) -> int:
        """A product with each anchor."""
        return 2 * self.dim * self.features

    def key_features(self, keys: Floats, *, out: Floats | None = None) -> KeyFeatures:  # noqa: ARG002
        """Return the integer coordinates of texts, row by row to the bit.

        Args:
            keys: vectors of texts, shape (n, d).
            out: not used.
        """
        return KeyFeatures(self.directions.units(keys).astype(np.float64), None)

    def fill(self, integers: Integers, out: Floats) -> None:
        """Anchors have a lattice of their own: `key_features`.

        Args:
            integers: not used.
            out: not used.
        """
        raise NotImplementedError

    def describe(self) -> str:
        """Return how many anchors there are."""
        return f"near {self.features - 1:,} public anchors"

    def parameters(self) -> dict[str, object]:
        """Return the numbers that, with the anchors, make the same map again."""
        return {"kind": self.kind, "reach": self.directions.reach}

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """The anchors."""
        return {"anchors": self.directions.anchors.astype(np.int32)}

    @classmethod
    def restore(cls, parameters: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the map with these `parameters` and `arrays`.

        Args:
            parameters: the numbers of `parameters`.
            arrays: those of `arrays`.
        """
        anchors = arrays["anchors"].astype(np.int64)
        return cls(Directions(anchors=anchors, reach=parameters["reach"]))


@dataclass(frozen=True, kw_only=True)
class WordsLayout(RowLayout):
    """Words of a vocabulary ⊗ coordinates of texts.

    Attributes:
        kernel: the anchors.
        heads: ().
        words: how many the vocabulary has.
        most: how many a text may mark.
    """

    noun: ClassVar[tuple[str, str]] = ("sums of words", "sums of words")

    kernel: NearAnchors = field()
    heads: tuple[int, ...] = ()
    words: int
    most: int

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.whole("words", self.words, at_least=1, at_most=2**17)
        _validate.whole("most", self.most, at_least=1, at_most=2**10)

    @property
    def value_width(self) -> int:
        """The words that a text marks."""
        return self.most

    @property
    def columns(self) -> int:
        """The words of the vocabulary."""
        return self.words

    @property
    def real_unit(self) -> float:
        """What one unit of the sums stands for."""
        return 1 / (_RADIUS * FEATURE_RADIUS)

    @property
    def outer_bound(self) -> float:
        """The length of all weights times that of coordinates: a product of whole numbers."""
        return float(_RADIUS * FEATURE_RADIUS)

    @property
    def inner_range(self) -> tuple[int, int]:
        """No weight is negative."""
        return 0, _RADIUS**2

    @property
    def _largest_product(self) -> int:
        return FEATURE_RADIUS * _RADIUS

    def weighed(self, features: Floats, values: Floats, weights: Floats | None) -> Floats:  # noqa: ARG002
        """Return the weight of each word that a text marks, shape (1, m, words).

        Args:
            features: not used.
            values: places of words, shape (m, most), each once; a number that is none marks none.
            weights: not used.
        """
        # A place that is given twice would count once, and the text for less: never for more.
        marked = (values >= 0) & (values < self.words)
        rows, which = np.nonzero(marked)
        table = np.array([mark_weight(each, radius=_RADIUS) for each in range(self.most + 1)])
        each = table[np.count_nonzero(marked, axis=1)]
        found = np.zeros((len(values), self.words))
        found[rows, values[rows, which].astype(np.int64)] = each[rows]
        return found[None]

    def parameters(self) -> dict[str, object]:
        """Return the numbers that, with the `arrays`, make the same layout again."""
        return {**super().parameters(), "words": self.words, "most": self.most}

    @classmethod
    def restore(
        cls, parameters: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> "WordsLayout":
        """Return the layout with these `parameters` and `arrays`.

        Args:
            parameters: those of `parameters`.
            arrays: those of `arrays`.
        """
        return cls(
            kernel=NearAnchors.restore(parameters["kernel"], arrays),
            words=parameters["words"],
            most=parameters["most"],
        )
