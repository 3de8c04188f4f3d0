"""The paper's structures, whole and faithful.

"Provable Differentially Private Computation of the Cross-Attention Mechanism", Ke, Liang, Shi, Song
and Zhang. From the bottom up: `bounds`, `options` (what can be asked for) → `forest` (Algorithm 2
for many trees), `design` (which of them, and what it costs) → `structure` (what all have, and the
one place that draws noise) → `tree`, `distance` (4, 5, 6), `softmax` (3, 7), `attention` (1);
`file` and `oracle`. `docs/paper.md` goes through it theorem by theorem.
"""

from discreet.paper.attention import DPCrossAttention
from discreet.paper.distance import DPTreeDistance, DPTreeHighDim, DPTreeHighDimAdaptive
from discreet.paper.file import load
from discreet.paper.options import Accounting, Estimator, Noise, Scope
from discreet.paper.softmax import DPTreeSoftmax, DPTreeSoftmaxAdaptive
from discreet.paper.tree import DPTree, DPTreeBoosted

__all__ = [
    "Accounting",
    "DPCrossAttention",
    "DPTree",
    "DPTreeBoosted",
    "DPTreeDistance",
    "DPTreeHighDim",
    "DPTreeHighDimAdaptive",
    "DPTreeSoftmax",
    "DPTreeSoftmaxAdaptive",
    "Estimator",
    "Noise",
    "Scope",
    "load",
]
