"""Private attention: softmax(scale·QKᵀ)·V over rows that nobody can get out again."""

from discreet.readers.attention.bundle import Memories
from discreet.readers.attention.comparison import Comparison, compare
from discreet.readers.attention.layout import Layout
from discreet.readers.attention.mechanism import ATTENTION
from discreet.readers.attention.memory import Memory
from discreet.readers.attention.options import Options
from discreet.readers.attention.planning import Plan, plan
from discreet.readers.attention.reader import Reader

__all__ = [
    "ATTENTION",
    "Comparison",
    "Layout",
    "Memories",
    "Memory",
    "Options",
    "Plan",
    "Reader",
    "compare",
    "plan",
]
