"""Algorithms 2, 3, 4 and 5 as the paper writes them: plain loops, one node at a time.

The yardstick for `discreet.paper`, which must give the same numbers without noise.
"""

import math

from discreet.features.taylor import Taylor


class Tree:
    """Algorithm 2 without noise and without its root: nodes in heap order, leaves from N on."""

    def __init__(self, leaves: list[int]) -> None:
        self.size = len(leaves)
        self.nodes = [0] * self.size + leaves
        for node in range(self.size - 1, 1, -1):
            self.nodes[node] = self.nodes[2 * node] + self.nodes[2 * node + 1]

    def query(self, y: float) -> tuple[int, int]:
        """Return the sums left and right of the leaf that contains y."""
        node = self.size + min(int(y * self.size), self.size - 1)
        left = right = 0
        while node > 1:
            if node % 2:
                left += self.nodes[node - 1]
            else:
                right += self.nodes[node + 1]
            node //= 2
        return left, right


class Distance:
    """Algorithms 4 and 5 for p = 2: one tree for each moment."""

    def __init__(self, points: list[float], weights: list[float], unit: int) -> None:
        size = max(2, 1 << (len(points) - 1).bit_length())
        leaves = [[0] * size for _ in range(3)]
        for t, u in zip(points, weights, strict=True):
            j = min(int(t * size), size - 1)
            power = 1.0
            for q in range(3):
                leaves[q][j] += round(u * power * unit)
                power *= t
        self.trees = [Tree(one) for one in leaves]
        self.unit = unit

    def query(self, y: float) -> float:
        """Return Σ u·(y - t)²."""
        total = 0.0
        for q, tree in enumerate(self.trees):
            left, right = tree.query(y)
            weight = math.comb(2, q) * y ** (2 - q)
            total += weight * ((-1) ** (2 - q) * right + (-1) ** q * left)
        return total / self.unit


class Softmax:
    """Algorithm 3: a Distance for each feature, and one for the sum of the weights."""

    def __init__(
        self,
        rows: list[list[float]],
        weights: list[float],
        *,
        kernel: Taylor,
        upper: float,
        bound: float,
        units: tuple[int, int],
    ) -> None:
        self.exponents = [[int(a) for a in alpha] for alpha in kernel.exponents]
        self.scale = kernel.scale
        self.bound = bound
        self.ranges = self.features([upper] * kernel.dim)
        scaled = [weight / bound for weight in weights]
        features = [self.features(row) for row in rows]
        self.lines = []
        for j, largest in enumerate(self.ranges):
            column = [min(feature[j] / largest, 1.0) for feature in features]
            self.lines.append(Distance(column, scaled, units[0]))
        self.offset = 0.0
        for line, largest in zip(self.lines, self.ranges, strict=True):
            self.offset += bound * largest**2 * line.query(0.0)
        self.total = bound * Distance([1.0] * len(rows), scaled, units[1]).query(0.0)

    def features(self, row: list[float]) -> list[float]:
        """Return P(x), one monomial at a time."""
        result = []
        for alpha in self.exponents:
            value = math.sqrt(self.scale ** sum(alpha))
            for x, a in zip(row, alpha, strict=True):
                value *= x**a / math.sqrt(math.factorial(a))
            result.append(value)
        return result

    def query(self, y: list[float]) -> float:
        """Return the weighted softmax sum at y."""
        features = self.features(y)
        value = norm = 0.0
        for feature, line, largest in zip(features, self.lines, self.ranges, strict=True):
            value += self.bound * largest**2 * line.query(min(feature / largest, 1.0))
            norm += feature**2
        return 0.5 * (self.offset + self.total * norm - value)
