"""The paper's structures, whole and faithful. `docs/paper.md` goes through them theorem by theorem.

"Provable Differentially Private Computation of the Cross-Attention Mechanism", Ke, Liang, Shi, Song
and Zhang.
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
