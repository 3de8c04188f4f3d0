"""Where points lie: a public interval in each coordinate, which the paper has begin at zero."""

from dataclasses import dataclass

import numpy as np

from discreet import _validate
from discreet._typing import Floats
from discreet.paper.structure import LARGEST_BOUND, public_bound


@dataclass(frozen=True)
class Box:
    """[lower, upper] in each coordinate. Points outside are clipped, silently: it is public.

    The paper's trees stand on [0, R]. Distances do not change if points and queries are shifted
    together, and softmax does not change if all keys are: so both are shifted by `lower`.
    """

    lower: float
    upper: float

    def __post_init__(self) -> None:
        lower = _validate.real("lower", self.lower, at_least=-LARGEST_BOUND, at_most=LARGEST_BOUND)
        if lower == 0:
            upper = public_bound("upper", self.upper)
        else:
            upper = _validate.real("upper", self.upper, above=lower, at_most=LARGEST_BOUND)
            public_bound("upper - lower", upper - lower)
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)

    @property
    def side(self) -> float:
        """R of the trees: upper - lower."""
        return self.upper - self.lower

    def shifted(self, values: Floats) -> Floats:
        """Return values, clipped, as seen from the lower end: in [0, side]."""
        return np.asarray(np.clip(values, self.lower, self.upper) - self.lower)

    def to_unit(self, values: Floats) -> Floats:
        """Return values, clipped, as parts of the side: in [0, 1]."""
        return np.asarray(self.shifted(values) / self.side)
