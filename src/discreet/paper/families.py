"""What the file of each structure holds: settings by name, and tensors of released numbers.

Names here are the file's, and stay when the code behind them changes: nothing is a dump of what an
object holds. Whatever follows from these numbers is worked out again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet import _validate
from discreet.accounting import Mechanism
from discreet.errors import CorruptRelease
from discreet.paper.cross_attention import DPCrossAttention, Scope
from discreet.paper.design import Estimator
from discreet.paper.distance import DistanceForest, DPTreeDistance, answer_scale
from discreet.paper.forest import all_depths, levels_for
from discreet.paper.high_dim import DPTreeHighDim, DPTreeHighDimAdaptive
from discreet.paper.logits import Logits
from discreet.paper.net import Net
from discreet.paper.restoring import (
    MOST_LEVELS,
    Settings,
    Tensors,
    accounting_of,
    box_of,
    checked_tensor,
    constant_of,
    count_of,
    described_noise,
    restored_forest,
    restored_noise,
)
from discreet.paper.softmax import DPTreeSoftmax, DPTreeSoftmaxAdaptive
from discreet.paper.softmax_forest import MOMENTS, SoftmaxForest, SoftmaxNoise, softmax_mechanisms
from discreet.paper.structure import Structure, public_bound
from discreet.paper.tree import DPTree, DPTreeBoosted, leaf_change

Nodes = Sequence[tuple[Mechanism, int]]
Described = tuple[dict[str, object], Tensors]


@dataclass(frozen=True)
class Restored:
    """What a structure is made of again.

    Attributes:
        attributes: under the names that its class has for them.
        covered: the nodes that its guarantee covers.
        whole: all nodes.
    """

    attributes: dict[str, object]
    covered: Nodes
    whole: Nodes


@dataclass(frozen=True)
class Family:
    """How structures of one class become settings and tensors, and these a structure again."""

    kind: type[Structure]
    describe: Callable[[Any], Described]
    restore: Callable[[Settings, Tensors], Restored]


def _describe_tree(made: DPTree) -> Described:
    settings: dict[str, object] = {
        "levels": made.levels,
        "upper": made.upper,
        "sensitivity": made._step * made._node.unit,  # a power of two: exact
        "accounting": str(made.accounting),
        "estimator": str(made.estimator),
        "depths": list(made._forest.depths),
        "noise": described_noise(made._node),
    }
    return settings, {"nodes": made._forest.nodes}


def _tree(settings: Settings, tensors: Tensors, *, copies: int = 1) -> Restored:
    levels = count_of(settings, "levels", MOST_LEVELS)
    noise = restored_noise(settings["noise"], leaf_change(1 << levels))
    forest = restored_forest(settings, tensors, levels=levels, shape=(1, copies, 1, 1))
    attributes = {
        "levels": levels,
        "upper": public_bound("upper", settings["upper"]),
        "accounting": accounting_of(settings),
        "copies": copies,
        "_node": noise,
        "_step": public_bound("sensitivity", settings["sensitivity"]) / noise.unit,
        "_forest": forest,
    }
    nodes = [(noise.mechanism, copies * len(forest.depths))]
    return Restored(attributes, nodes, nodes)


def _describe_boosted(made: DPTreeBoosted) -> Described:
    settings, tensors = _describe_tree(made)
    return settings | {"copies": made.copies}, tensors


def _boosted(settings: Settings, tensors: Tensors) -> Restored:
    return _tree(settings, tensors, copies=count_of(settings, "copies"))


def _describe_distance(made: DPTreeDistance | DPTreeHighDim) -> Described:
    trees = made._trees
    settings: dict[str, object] = {
        "p": made.power,
        "lower": made.box.lower,
        "upper": made.box.upper,
        "weight_bound": made.weight_bound,
        "rows": trees.rows,
        "accounting": str(made.accounting),
        "estimator": str(made.estimator),
        "depths": list(trees.forest.depths),
        "noise": described_noise(trees.noise),
    }
    return settings, {"nodes": trees.forest.nodes}


def _distance(settings: Settings, tensors: Tensors, *, dim: int = 1, copies: int = 1) -> Restored:
    box, power = box_of(settings), count_of(settings, "p", 200)
    rows, noise = count_of(settings, "rows"), restored_noise(settings["noise"])
    weight_bound = public_bound("weight_bound", settings["weight_bound"])
    shape = (dim, copies, 1, power + 1)
    forest = restored_forest(settings, tensors, levels=levels_for(rows), shape=shape)
    attributes = {
        "power": power,
        "box": box,
        "weight_bound": weight_bound,
        "accounting": accounting_of(settings),
        "_scale": answer_scale(weight_bound, box.side, power),
        "_trees": DistanceForest(forest, noise, power, rows),
    }
    nodes = [(noise.mechanism, (power + 1) * dim * copies * len(forest.depths))]
    return Restored(attributes, nodes, nodes)


def _describe_high_dim(made: DPTreeHighDim) -> Described:
    settings, tensors = _describe_distance(made)
    return settings | {"dim": made.dim, "c": made.c}, tensors


def _high_dim(settings: Settings, tensors: Tensors, *, copies: int = 1) -> Restored:
    dim = count_of(settings, "dim")
    found = _distance(settings, tensors, dim=dim, copies=copies)
    own = {"dim": dim, "c": constant_of(settings), "copies": copies}
    return Restored(found.attributes | own, found.covered, found.whole)


def _describe_high_dim_adaptive(made: DPTreeHighDimAdaptive) -> Described:
    settings, tensors = _describe_high_dim(made)
    return settings | {"eps_0": made.net.radius, "copies": made.copies}, tensors


def _high_dim_adaptive(settings: Settings, tensors: Tensors) -> Restored:
    if settings["p"] != 1:
        raise CorruptRelease("Expected p = 1, for which alone there is an adaptive bound.")
    found = _high_dim(settings, tensors, copies=count_of(settings, "copies"))
    net = Net(box_of(settings).side, settings["eps_0"], count_of(settings, "dim"))
    return Restored(found.attributes | {"net": net}, found.covered, found.whole)


def _describe_logits(logits: Logits) -> dict[str, object]:
    box, kernel = logits.box, logits.kernel
    # None for the paper's own, whose reach is the side and nothing that is rounded.
    paper = kernel.scale == 1 / kernel.dim and logits.reach == box.side
    return {
        "lower": box.lower,
        "upper": box.upper,
        "dim": kernel.dim,
        "degree": kernel.degree,
        "eps_s": kernel.eps_s,
        "scale": None if paper else kernel.scale,
    }


def _logits(settings: Settings) -> Logits:
    """Return the logits, of the degree that there is, whatever eps_s would give today."""
    dim, scale, eps_s = count_of(settings, "dim"), settings["scale"], settings["eps_s"]
    if eps_s is not None:
        found = Logits.of(dim, box_of(settings), eps_s=eps_s, degree=None, scale=scale)
        if found.kernel.degree == settings["degree"]:
            return found
    return Logits.of(dim, box_of(settings), eps_s=None, degree=settings["degree"], scale=scale)


def _describe_sums(sums: SoftmaxForest, private_columns: int) -> Described:
    settings: dict[str, object] = {
        "rows": sums.trees.rows,
        "noise": described_noise(sums.trees.noise),
        "totals_noise": described_noise(sums.totals_noise),
    }
    totals = sums.totals[:, :private_columns]
    return settings, {"nodes": sums.trees.forest.nodes, "totals": totals}


@dataclass(frozen=True)
class _Sums:
    """Softmax sums again, and the nodes of any number of their columns."""

    forest: SoftmaxForest
    noise: SoftmaxNoise
    copies: int

    @classmethod
    def of(
        cls,
        settings: Settings,
        tensors: Tensors,
        *,
        logits: Logits,
        bounds: list[float],
        private_columns: int,
        copies: int,
    ) -> "_Sums":
        """Return what `_describe_sums` described."""
        rows, noise = count_of(settings, "rows"), restored_noise(settings["noise"])
        levels, kernel = levels_for(rows), logits.kernel
        forest = restored_forest(
            {"estimator": Estimator.PAPER, "depths": all_depths(levels)},
            tensors,
            levels=levels,
            shape=(kernel.features, copies, len(bounds), MOMENTS),
        )
        totals_noise = restored_noise(settings["totals_noise"])
        sums = SoftmaxForest.of(
            DistanceForest(forest, noise, 2, rows),
            checked_tensor(tensors, "totals", (copies, private_columns), np.float64),
            totals_noise,
            kernel=kernel,
            upper=logits.box.side,
            bounds=np.array(bounds),
        )
        return cls(sums, SoftmaxNoise(noise, totals_noise), copies)

    def nodes(self, columns: int, private_columns: int) -> Nodes:
        """Return the nodes of so many columns."""
        return softmax_mechanisms(
            self.noise,
            features=self.forest.kernel.features,
            levels=self.forest.trees.forest.levels,
            copies=self.copies,
            columns=columns,
            private_columns=private_columns,
        )


def _describe_softmax(made: DPTreeSoftmax) -> Described:
    settings, tensors = _describe_sums(made._sums, 1)
    own = {
        "weight_bound": made.weight_bound,
        "accounting": str(made.accounting),
        "c": made.c,
    }
    return settings | own | _describe_logits(made.logits), tensors


def _softmax(settings: Settings, tensors: Tensors, *, copies: int = 1) -> Restored:
    logits = _logits(settings)
    bound = public_bound("weight_bound", settings["weight_bound"])
    sums = _Sums.of(
        settings, tensors, logits=logits, bounds=[bound], private_columns=1, copies=copies
    )
    attributes = {
        "box": logits.box,
        "weight_bound": bound,
        "accounting": accounting_of(settings),
        "logits": logits,
        "c": constant_of(settings),
        "copies": copies,
        "_sums": sums.forest,
    }
    return Restored(attributes, sums.nodes(1, 1), sums.nodes(1, 1))


def _describe_softmax_adaptive(made: DPTreeSoftmaxAdaptive) -> Described:
    settings, tensors = _describe_softmax(made)
    return settings | {"eps_0": made.net.radius, "copies": made.copies}, tensors


def _softmax_adaptive(settings: Settings, tensors: Tensors) -> Restored:
    found = _softmax(settings, tensors, copies=count_of(settings, "copies"))
    net = Net(box_of(settings).upper, settings["eps_0"], count_of(settings, "dim"))
    return Restored(found.attributes | {"net": net}, found.covered, found.whole)


def _describe_attention(made: DPCrossAttention) -> Described:
    settings, tensors = _describe_sums(made._sums, made.columns)
    own = {
        "value_bound": made.value_bound,
        "columns": made.columns,
        "scope": str(made.scope),
        "accounting": str(made.accounting),
        "c": made.c,
        "copies": made.copies,
        "eps_0": made.net.radius,
    }
    return settings | own | _describe_logits(made.logits), tensors


def _attention(settings: Settings, tensors: Tensors) -> Restored:
    logits, copies = _logits(settings), count_of(settings, "copies")
    columns = count_of(settings, "columns", tensors["nodes"].size)
    bound = public_bound("value_bound", settings["value_bound"])
    scope = _validate.choice("scope", settings["scope"], Scope)
    covered = 2 if scope is Scope.ENTRY else columns + 1  # the denominator one of them
    sums = _Sums.of(
        settings,
        tensors,
        logits=logits,
        bounds=[*[bound] * columns, 1.0],
        private_columns=columns,
        copies=copies,
    )
    attributes = {
        "box": logits.box,
        "value_bound": bound,
        "rows": sums.forest.trees.rows,
        "columns": columns,
        "scope": scope,
        "accounting": accounting_of(settings),
        "logits": logits,
        "net": Net(logits.box.upper, settings["eps_0"], logits.kernel.dim),
        "c": constant_of(settings),
        "copies": copies,
        "_structures": covered,
        "_sums": sums.forest,
    }
    return Restored(attributes, sums.nodes(covered, covered - 1), sums.nodes(columns + 1, columns))


# All there are. Closed: what is not on it is neither saved nor loaded.
FAMILIES = {
    family.kind.__name__: family
    for family in (
        Family(DPTree, _describe_tree, _tree),
        Family(DPTreeBoosted, _describe_boosted, _boosted),
        Family(DPTreeDistance, _describe_distance, _distance),
        Family(DPTreeHighDim, _describe_high_dim, _high_dim),
        Family(DPTreeHighDimAdaptive, _describe_high_dim_adaptive, _high_dim_adaptive),
        Family(DPTreeSoftmax, _describe_softmax, _softmax),
        Family(DPTreeSoftmaxAdaptive, _describe_softmax_adaptive, _softmax_adaptive),
        Family(DPCrossAttention, _describe_attention, _attention),
    )
}
