"""The file of a structure: what was released, public settings by name, and what is promised.

Names here are the file's, and stay when the code behind them changes: nothing is a dump of what an
object holds. Whatever follows from these numbers is worked out again. A file is believed as far as
it can be checked: shapes against settings, the receipt against the nodes that there are, the
guarantee against the receipt.
"""

import os
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import _files, _validate
from discreet._files import whole_file
from discreet._version import __version__
from discreet.accounting import Mechanism, Receipt
from discreet.accounting.compose import covers
from discreet.accounting.events import check_mechanisms
from discreet.errors import CorruptRelease
from discreet.paper.attention import ENTRY, AttentionState, DPCrossAttention
from discreet.paper.bounds import Box, Logits, Net, public_bound
from discreet.paper.design import FORESTS, REPLACED_ROW, Change, NodeNoise, law_of
from discreet.paper.distance import (
    DistanceForest,
    DistanceState,
    DPTreeDistance,
    DPTreeHighDim,
    DPTreeHighDimAdaptive,
    answer_scale,
)
from discreet.paper.forest import Forest, all_depths, levels_for, node_count
from discreet.paper.options import Accounting, Estimator, Scope, checked_c
from discreet.paper.softmax import (
    MOMENTS,
    DPTreeSoftmax,
    DPTreeSoftmaxAdaptive,
    SoftmaxDesign,
    SoftmaxNoise,
    SumsState,
)
from discreet.paper.structure import ALL_COLUMNS, WHOLE, Promise, State, Structure
from discreet.paper.tree import DPTree, DPTreeBoosted, TreeState, leaf_change
from discreet.privacy import Guarantee, Neighbours

FORMAT = "discreet-structure"

Settings = Mapping[str, Any]
Tensors = Mapping[str, NDArray[Any]]
Described = tuple[dict[str, object], Tensors]

# Beyond any machine, and far from where shapes leave 64 bits.
_MOST_LEVELS = 48
_MOST_ROWS = 2**_MOST_LEVELS

# More than rounding.
_ROUNDING = 1 + 1e-9


def save(structure: Structure, path: str | os.PathLike[str]) -> None:
    """Write a structure to a file: whole, or not at all.

    Args:
        structure: one of `FAMILIES`.
        path: of the file.
    """
    data = to_bytes(structure)
    with whole_file(Path(path)) as file:
        file.write(data)


def load(path: str | os.PathLike[str]) -> Structure:
    """Return the structure in a file that `Structure.save` wrote; it answers with the same bits.

    Raises `CorruptRelease` if the file is none, was cut short or altered, or claims what cannot be;
    warns with `NotPrivateWarning` if it was made with a test source of noise.

    Args:
        path: of the file.
    """
    return _files.read(path, from_bytes)


def to_bytes(structure: Structure) -> bytes:
    """Return the file of a structure. Its length depends on public settings only."""
    family = FAMILIES.get(type(structure).__name__)
    if family is None or family.kind is not type(structure):
        _validate.reject_argument("structure", structure, f"one of {', '.join(FAMILIES)}")
    settings, tensors = family.described(structure.state)
    everything = {
        "class": family.kind.__name__,
        "settings": settings,
        "guarantee": asdict(structure.guarantee),
        "total_delta": structure.promise.total_delta,
        "receipt": structure.receipt.to_dict(),
        "version": __version__,
    }
    return _files.pack(tensors, name=FORMAT, settings=everything, card=structure.card.to_dict())


def from_bytes(data: bytes) -> Structure:
    """Return the structure in a file's bytes, or raise `CorruptRelease`."""
    return _files.unpack(data, {FORMAT: restored})


def restored(settings: Any, tensors: Tensors) -> Structure:  # noqa: ANN401 (whatever JSON holds)
    """Return the structure with these settings and tensors, as far as they can be believed."""
    family = FAMILIES[settings["class"]]
    state = family.restored(settings["settings"], tensors)
    promise = Promise(
        Guarantee(**settings["guarantee"]),
        Receipt.from_dict(settings["receipt"]),
        _validate.real("total_delta", settings["total_delta"], above=0, below=1),
    )
    _check_claims(state, promise)
    return family.kind.of(state, promise)


def _check_claims(state: State, promise: Promise) -> None:
    """Check that nodes, receipt and guarantee belong together, as far as a file can tell."""
    guarantee, receipt = promise.guarantee, promise.receipt
    fits = (
        dict(receipt.mechanisms) == dict(check_mechanisms(state.whole))
        and guarantee.neighbours is receipt.neighbours is Neighbours.REPLACE
        and guarantee.unit == receipt.unit == "row"
        and receipt.agrees_with(guarantee)
        and _says_what_it_covers(state, promise)
        and 0 < guarantee.delta <= promise.total_delta * _ROUNDING
        and covers(guarantee, state.covered)
    )
    if not fits:
        raise CorruptRelease("Expected the noise to be what the guarantee needs.")


def _says_what_it_covers(state: State, promise: Promise) -> bool:
    """Whether guarantee and receipt say of themselves what the settings say of the structure."""
    said, receipt = promise.guarantee.scope, promise.receipt
    if receipt.leaks:  # nothing makes such a structure
        return False
    if isinstance(state, AttentionState) and state.scope is Scope.ENTRY:
        whole = said.startswith(receipt.mark + ENTRY) and said.isprintable()
        return whole and receipt.scope == ALL_COLUMNS
    return said == receipt.mark + WHOLE and receipt.scope == WHOLE


def _describe_tree(state: TreeState) -> Described:
    settings: dict[str, object] = {
        "levels": state.forest.levels,
        "upper": state.upper,
        "sensitivity": state.step * state.noise.unit,  # a power of two: exact
        "noise": _described_noise(state.noise),
        "copies": state.copies,
    }
    return settings | _described_reading(state.forest), {"nodes": state.forest.nodes}


def _tree(settings: Settings, tensors: Tensors) -> TreeState:
    levels, copies = _count(settings, "levels", _MOST_LEVELS), _copies(settings)
    noise = _noise(settings["noise"], leaf_change(1 << levels))
    return TreeState(
        _accounting(settings),
        forest=_forest(settings, tensors, levels=levels, shape=(1, copies, 1, 1)),
        noise=noise,
        upper=public_bound("upper", settings["upper"]),
        step=public_bound("sensitivity", settings["sensitivity"]) / noise.unit,
    )


def _describe_distance(state: DistanceState) -> Described:
    trees = state.trees
    settings: dict[str, object] = {
        "p": trees.power,
        "weight_bound": state.weight_bound,
        "rows": trees.rows,
        "noise": _described_noise(trees.noise),
        "dim": state.dim,
        "c": state.c,
        "copies": state.copies,
    }
    public = _described_places(state.box, state.net) | _described_reading(trees.forest)
    return settings | public, {"nodes": trees.forest.nodes}


def _distance(settings: Settings, tensors: Tensors) -> DistanceState:
    box, power, rows = _box(settings), _count(settings, "p", 200), _count(settings, "rows")
    dim = _count(settings, "dim") if "dim" in settings else 1  # a line
    bound = public_bound("weight_bound", settings["weight_bound"])
    answer_scale(bound, box, power)  # must fit
    net = _net(settings, box.side, dim)
    if net is not None and power != 1:
        raise CorruptRelease("Expected p = 1, for which alone there is an adaptive bound.")
    shape = (dim, _copies(settings), 1, power + 1)
    forest = _forest(settings, tensors, levels=levels_for(rows), shape=shape)
    trees = DistanceForest(forest, _noise(settings["noise"]), power, rows)
    return DistanceState(_accounting(settings), trees, box, bound, _constant(settings), net)


def _describe_sums(state: SumsState) -> Described:
    sums, kernel, box = state.sums, state.logits.kernel, state.logits.box
    # None for the paper's own, whose reach is the side and nothing that is rounded.
    paper = kernel.scale == 1 / kernel.dim and state.logits.reach == box.side
    settings: dict[str, object] = {
        "rows": sums.trees.rows,
        "noise": _described_noise(sums.noise.features),
        "totals_noise": _described_noise(sums.noise.totals),
        "weight_bound": state.bound,
        "c": state.c,
        "copies": sums.design.copies,
        "dim": kernel.dim,
        "degree": kernel.degree,
        "eps_s": kernel.eps_s,
        "scale": None if paper else kernel.scale,
    }
    totals = sums.totals[:, : sums.design.private]
    tensors = {"nodes": sums.trees.forest.nodes, "totals": totals}
    return settings | _described_places(box, state.net), tensors


def _logits(settings: Settings) -> Logits:
    """Return the logits, of the degree that there is, whatever eps_s would give today."""
    dim, box, scale = _count(settings, "dim"), _box(settings), settings["scale"]
    if settings["eps_s"] is not None:
        found = Logits.of(dim, box, eps_s=settings["eps_s"], scale=scale)
        if found.kernel.degree == settings["degree"]:
            return found
    return Logits.of(dim, box, degree=settings["degree"], scale=scale)


def _sums(
    settings: Settings, tensors: Tensors, *, bounds: tuple[float, ...], private: int
) -> SumsState:
    """Return the softmax sums of these columns."""
    logits, rows, copies = _logits(settings), _count(settings, "rows"), _copies(settings)
    design = SoftmaxDesign(logits.kernel, logits.box.side, bounds, private, rows, copies)
    noise = SoftmaxNoise(_noise(settings["noise"]), _noise(settings["totals_noise"]))
    levels = levels_for(rows)
    forest = _forest(
        {"estimator": Estimator.PAPER, "depths": all_depths(levels)},
        tensors,
        levels=levels,
        shape=(logits.kernel.features, copies, len(bounds), MOMENTS),
    )
    totals = _checked_tensor(tensors, "totals", (copies, private), np.float64)
    net = _net(settings, logits.box.upper, logits.kernel.dim)
    sums = design.restored(forest, totals, noise)
    return SumsState(_accounting(settings), sums, logits, _constant(settings), net)


def _softmax(settings: Settings, tensors: Tensors) -> SumsState:
    bound = public_bound("weight_bound", settings["weight_bound"])
    return _sums(settings, tensors, bounds=(bound,), private=1)


def _describe_attention(state: AttentionState) -> Described:
    settings, tensors = _describe_sums(state)
    own = {
        "value_bound": state.bound,
        "columns": state.sums.design.private,
        "scope": str(state.scope),
    }
    return settings | own, tensors


def _attention(settings: Settings, tensors: Tensors) -> AttentionState:
    columns = _count(settings, "columns", tensors["nodes"].size)
    bound = public_bound("value_bound", settings["value_bound"])
    bounds = (*[bound] * columns, 1.0)
    found = _sums(settings, tensors, bounds=bounds, private=columns)
    return AttentionState(**vars(found), scope=_validate.choice("scope", settings["scope"], Scope))


@dataclass(frozen=True)
class Family:
    """What the files of one class hold.

    Attributes:
        kind: the class.
        names: of its settings.
        describe: returns settings, these among them, and tensors of a state.
        restore: returns the state.
    """

    kind: type[Structure]
    names: AbstractSet[str]
    describe: Callable[[Any], Described]
    restore: Callable[[Settings, Tensors], State]

    def described(self, state: State) -> Described:
        """Return the settings and tensors of a state."""
        settings, tensors = self.describe(state)
        every = settings | {"accounting": str(state.accounting)}
        return {name: every[name] for name in self.names}, tensors

    def restored(self, settings: Settings, tensors: Tensors) -> State:
        """Return the state with these settings, if all are there, and tensors."""
        return self.restore({name: settings[name] for name in self.names}, tensors)


_LEVELS = {"accounting", "estimator", "depths", "noise", "upper"}
_TREE = _LEVELS | {"levels", "sensitivity"}
_LINE = _LEVELS | {"p", "lower", "weight_bound", "rows"}
_SPACE = _LINE | {"dim", "c"}
_MEDIAN = {"eps_0", "copies"}
_LOGITS = {"lower", "upper", "dim", "degree", "eps_s", "scale"}
_SUMS = _LOGITS | {"accounting", "c", "rows", "noise", "totals_noise"}
_SOFTMAX = _SUMS | {"weight_bound"}
_ATTENTION = _SUMS | _MEDIAN | {"value_bound", "columns", "scope"}


# All there are. Closed: what is not on it is neither saved nor loaded.
FAMILIES = {
    family.kind.__name__: family
    for family in (
        Family(DPTree, _TREE, _describe_tree, _tree),
        Family(DPTreeBoosted, _TREE | {"copies"}, _describe_tree, _tree),
        Family(DPTreeDistance, _LINE, _describe_distance, _distance),
        Family(DPTreeHighDim, _SPACE, _describe_distance, _distance),
        Family(DPTreeHighDimAdaptive, _SPACE | _MEDIAN, _describe_distance, _distance),
        Family(DPTreeSoftmax, _SOFTMAX, _describe_sums, _softmax),
        Family(DPTreeSoftmaxAdaptive, _SOFTMAX | _MEDIAN, _describe_sums, _softmax),
        Family(DPCrossAttention, _ATTENTION, _describe_attention, _attention),
    )
}


def _described_reading(forest: Forest) -> dict[str, object]:
    return {"estimator": str(forest.estimator), "depths": list(forest.depths)}


def _described_places(box: Box, net: Net | None) -> dict[str, object]:
    radius = None if net is None else net.radius
    return {"lower": box.lower, "upper": box.upper, "eps_0": radius}


def _described_noise(noise: NodeNoise) -> dict[str, object]:
    """Return a node's noise as plain JSON types, from which `_noise` makes it again."""
    return {"unit": noise.unit, "mechanism": noise.mechanism.to_dict()}


def _noise(described: Settings, change: Change = REPLACED_ROW) -> NodeNoise:
    """Return a node's noise, if it is for what a replaced row can change."""
    mechanism = Mechanism.from_dict(described["mechanism"])
    unit = _validate.whole("unit", described["unit"], at_least=1, at_most=2**62)
    if mechanism.to_dict()["sensitivity"] != change.sensitivity(unit):
        raise CorruptRelease("Expected the noise to be for what a replaced row can change.")
    return NodeNoise(law_of(mechanism), mechanism, unit)


def _forest(
    settings: Settings, tensors: Tensors, *, levels: int, shape: tuple[int, int, int, int]
) -> Forest:
    """Return the trees, if their nodes have the shape that the settings say.

    Args:
        settings: with the estimator and the depths.
        tensors: with the nodes.
        levels: L.
        shape: coordinates, copies, columns and moments.
    """
    how = _validate.choice("estimator", settings["estimator"], Estimator)
    depths = tuple(
        _validate.whole("depth", each, at_least=1, at_most=levels) for each in settings["depths"]
    )
    if depths != tuple(sorted(set(depths))) or depths[-1] != levels:
        raise CorruptRelease("Expected the levels of a tree to be in order, down to the leaves.")
    if how is Estimator.PAPER and depths != all_depths(levels):
        raise CorruptRelease("Expected all levels of the paper's tree.")
    coordinates, *lanes = shape
    nodes = _checked_tensor(tensors, "nodes", (coordinates, node_count(depths), *lanes), np.int64)
    return FORESTS[how](nodes, levels, depths)


def _checked_tensor(
    tensors: Tensors, name: str, shape: tuple[int, ...], dtype: type[np.generic]
) -> NDArray[Any]:
    """Return a tensor that cannot be written to, if it is what it should be."""
    found = tensors[name]
    if found.shape != shape or found.dtype != dtype or not np.all(np.isfinite(found)):
        raise CorruptRelease("Expected the state to have the shape that its settings say.")
    found.flags.writeable = False
    return found


def _count(settings: Settings, name: str, most: int = _MOST_ROWS) -> int:
    """Return a whole number from one on."""
    return _validate.whole(name, settings[name], at_least=1, at_most=most)


def _copies(settings: Settings) -> int:
    """Return how many copies there are; one where the settings have no number."""
    return _count(settings, "copies") if "copies" in settings else 1


def _net(settings: Settings, upper: float, dim: int) -> Net | None:
    """Return the net on [0, upper]^dim, if the settings have one."""
    return Net(upper, settings["eps_0"], dim) if "eps_0" in settings else None


def _accounting(settings: Settings) -> Accounting:
    """Return how the noise was set."""
    return _validate.choice("accounting", settings["accounting"], Accounting)


def _constant(settings: Settings) -> float | None:
    """Return the paper's c; with tight accounting, or on a line, there is none."""
    if "c" not in settings:
        return None
    if (settings["c"] is None) != (_accounting(settings) is Accounting.TIGHT):
        raise CorruptRelease("Expected a c for the paper's accounting, and none for the tight one.")
    return None if settings["c"] is None else checked_c(settings["c"])


def _box(settings: Settings) -> Box:
    """Return where points lie."""
    return Box(settings["lower"], settings["upper"])
