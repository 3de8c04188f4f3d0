"""Public ranges of columns: what `bounds` and `target_bounds` mean."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from discreet._typing import Array, Floats
from discreet.errors import InvalidInput


@dataclass(frozen=True, eq=False)
class Ranges:
    """The smallest and the largest number that each column may have.

    Attributes:
        low: shape (d,).
        high: shape (d,), nowhere below `low`.
    """

    low: Floats
    high: Floats

    @classmethod
    def of(cls, name: str, pair: Array, width: int) -> "Ranges":
        """Return the ranges that argument `name` gives to so many columns.

        Args:
            name: of the argument, for messages.
            pair: (low, high), each one number or one for each column. Of two columns, lists that
                could as well be (low, high) of the first and (low, high) of the second are refused,
                unless low and high are arrays.
            width: the number of columns.
        """
        sides = _two(name, pair)
        low, high = (_numbers(name, side, width) for side in sides)
        arrays = all(isinstance(side, np.ndarray) for side in sides)
        if width == 2 and (isinstance(pair, np.ndarray) or not arrays):
            _refuse_pairs(name, sides)
        with np.errstate(over="ignore"):
            sound = np.all(low < high) and np.all(np.isfinite(high - low))
        if not sound:
            raise InvalidInput(
                f"Expected {name}=(low, high) to be finite, low below high in every column: two "
                "numbers, or two lists with one number for each column (not a list of pairs)."
            )
        return cls(low, high)

    @classmethod
    def seen(cls, rows: Floats) -> "Ranges":
        """Return the ranges that rows (n, d) have. Not private."""
        low, high = (np.asarray(side, dtype=np.float64) for side in (rows.min(0), rows.max(0)))
        with np.errstate(over="ignore"):
            if not np.all(np.isfinite(high - low)):
                raise InvalidInput("Expected numbers whose differences are finite.")
        return cls(low, high)

    @property
    def alike(self) -> bool:
        """Whether all columns have the same range."""
        return bool(np.all(self.low == self.low[0]) and np.all(self.high == self.high[0]))

    def fractions(self, rows: Floats) -> Floats:
        """Return where between low and high each number is, from 0 to 1; outside, the nearer end.

        Sums, products and quotients only, which are the same to the bit for a row wherever it
        stands. Columns of one number only become 0.
        """
        width = self.high - self.low
        clipped = np.clip(rows.astype(np.float64), self.low, self.high)
        clipped -= self.low
        clipped /= np.where(width > 0, width, 1.0)
        # A width that was rounded down would leave the largest number above one.
        return np.minimum(clipped, 1.0, out=clipped)

    def numbers(self, fractions: Floats) -> Floats:
        """Return the numbers that are so far between low and high: the way back."""
        clipped = np.clip(fractions, 0.0, 1.0)
        return np.asarray(self.low * (1 - clipped) + self.high * clipped)


def _two(name: str, pair: Array) -> tuple[Array, Array]:
    try:
        if isinstance(pair, Mapping):  # whose keys would be taken
            raise TypeError
        low, high = pair
    except (TypeError, ValueError):
        raise InvalidInput(
            f"Expected {name} to be a pair (low, high), each one number or one for each column."
        ) from None
    return low, high


def _refuse_pairs(name: str, sides: tuple[Array, Array]) -> None:
    """Raise if two lists of two numbers make ranges by rows and by columns, and not the same."""
    numbers = np.array([np.asarray(side, dtype=np.float64) for side in sides if np.ndim(side)])
    if numbers.shape != (2, 2):
        return
    both = np.all(numbers[0] < numbers[1]) and np.all(numbers[:, 0] < numbers[:, 1])
    if both and numbers[0, 1] != numbers[1, 0]:
        raise InvalidInput(
            f"Expected {name}=(low, high), and these lists could as well be one pair for each of "
            f"the two columns. Say which: {name}=(np.array([low of the first, low of the second]), "
            "np.array([high of the first, high of the second]))."
        )


def _numbers(name: str, side: Array, width: int) -> Floats:
    try:
        numbers = np.asarray(side, dtype=np.float64)
    except (TypeError, ValueError):  # whose message may quote one of them
        raise InvalidInput(f"Expected {name}=(low, high) to be real numbers.") from None
    if numbers.shape not in {(), (width,)}:
        raise InvalidInput(
            f"Expected {name}=(low, high) to have one number for all columns, or {width}."
        )
    return np.array(np.broadcast_to(numbers, (width,)))
