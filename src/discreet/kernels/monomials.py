"""All monomials of degree at most s in d variables, each made from one of the degree before."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._typing import Floats, Integers


@dataclass(frozen=True, kw_only=True)
class Step:
    """How the monomials of one degree come from those of the degree before: parent × variable.

    Attributes:
        parents: which monomial of the degree before, for each new one.
        variables: which variable it is multiplied by.
        powers: the exponent of that variable in the product.
    """

    parents: Integers
    variables: Integers
    powers: Integers


@dataclass(frozen=True, kw_only=True)
class Monomials:
    """The multi-indices α with |α| ≤ degree, in order of degree."""

    dim: int
    degree: int

    @property
    def count(self) -> int:
        """How many there are, C(d + s, s); known before any is computed."""
        return math.comb(self.dim + self.degree, self.degree)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The plan for each degree, in order of the largest variable.

        The parents of the monomials whose largest variable is v are those of the degree before
        whose largest variable is at most v: the first so many of them.
        """
        steps = []
        last = np.zeros(1, dtype=np.int64)  # the largest variable in each multi-index
        power = np.zeros(1, dtype=np.int64)  # and its exponent
        for degree in range(1, self.degree + 1):
            prefixes = [math.comb(v + degree - 1, degree - 1) for v in range(self.dim)]
            parents = np.concatenate([np.arange(prefix) for prefix in prefixes])
            variables = np.repeat(np.arange(self.dim), prefixes)
            power = np.where(last[parents] == variables, power[parents], 0) + 1
            steps.append(Step(parents=parents, variables=variables, powers=power))
            last = variables
        return tuple(steps)

    def extend(
        self, block: Floats, columns: NDArray[np.floating[Any]], degree: int, *, out: Floats
    ) -> None:
        """Write x^α/√α! for one degree, from those of the degree before, shape (count, m).

        Args:
            block: the monomials of the degree before, shape (count before, m).
            columns: x, shape (d, m); may carry a factor for all of the degree.
            degree: of the result.
            out: the result.
        """
        start, before = 0, 0
        for v in range(self.dim):
            prefix = math.comb(v + degree - 1, degree - 1)
            part = out[start : start + prefix]
            np.multiply(block[:prefix], columns[v], out=part)
            # Parents that contain v are the last of the prefix; there its power is above one.
            powers = self.steps[degree - 1].powers[start + before : start + prefix, None]
            part[before:] /= np.sqrt(powers)
            start, before = start + prefix, prefix

    @cached_property
    def exponents(self) -> Integers:
        """The multi-index of each monomial, shape (r, d)."""
        block = np.zeros((1, self.dim), dtype=np.int64)
        blocks = [block]
        for step in self.steps:
            block = block[step.parents] + np.eye(self.dim, dtype=np.int64)[step.variables]
            blocks.append(block)
        return np.concatenate(blocks)

    def inverse_root_factorials(self) -> list[Floats]:
        """Return √(1/α!) for the monomials of each degree."""
        factors = [np.ones(1)]
        for step in self.steps:
            factors.append(factors[-1][step.parents] / np.sqrt(step.powers))
        return factors
