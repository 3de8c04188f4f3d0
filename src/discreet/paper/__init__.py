"""The paper's structures, whole and faithful.

"Provable Differentially Private Computation of the Cross-Attention Mechanism", Ke, Liang, Shi, Song
and Zhang. From the bottom up: `node` (noise) → `forest` (Algorithm 2 for many trees), `consistent`
(better read), `design` (which of them, and what it costs) → `tree`, `distance` (4, 5), `high_dim`
(6), `logits`, `softmax` (3, 7), `cross_attention` (1); `file` and `card`. `docs/paper.md` goes
through it theorem by theorem.
"""

from discreet.paper.cross_attention import DPCrossAttention, Scope
from discreet.paper.design import Estimator
from discreet.paper.distance import DPTreeDistance
from discreet.paper.file import load
from discreet.paper.high_dim import DPTreeHighDim, DPTreeHighDimAdaptive
from discreet.paper.node import Noise
from discreet.paper.softmax import DPTreeSoftmax, DPTreeSoftmaxAdaptive
from discreet.paper.structure import Accounting
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
