"""What every map of least squares offers: integer features for rows, and floats for queries.

The same features on both sides, of length one: a prediction is φ(q)·W. Rows are private, and their
side is a `RowMap`; queries are public, and mapped in floating point, by numpy or torch.
"""

import abc
from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from discreet._arrays import namespace
from discreet._typing import Array
from discreet.kernels import RowMap

# More than float32 adds to the squared length of a vector of length one.
_LENGTH_ROUNDING = 1e-5


class QueryMap(RowMap):
    """A map whose features are the same for rows and for queries, but for rounding."""

    @property
    def block_sizes(self) -> tuple[int, ...]:
        """How many features each block has; blocks are shrunk by a λ of their own."""
        return (self.features,)

    @abc.abstractmethod
    def query_arrays(self) -> dict[str, NDArray[Any]]:
        """Return all that `query_features` needs, by name: public arrays."""

    @abc.abstractmethod
    def query_features(self, queries: Array, arrays: Mapping[str, Array]) -> Array:
        """Return φ(q), shape (heads, m, r), of length one at the most.

        Args:
            queries: clipped, shape (heads, m, d).
            arrays: of `query_arrays`, where and in which precision the queries are.
        """

    def within(self, queries: Array) -> Array:
        """Return queries that are no longer than `key_norm`, as rows are, shape (heads, m, d)."""
        xp = namespace(queries)
        relative = queries if self.key_norm == 1 else queries * (1 / self.key_norm)
        squared = xp.sum(relative * relative, axis=-1, keepdims=True)
        one = xp.ones_like(squared)
        return queries / xp.sqrt(xp.where(squared > 1 + _LENGTH_ROUNDING, squared, one))
