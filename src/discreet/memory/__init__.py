"""The memory: private attention at the noise of a single query.

Follow a row through the files: `building` (the front door) → `rows` (reading) → `layout` (bounds
and lattice) → `partial` and `records` (exact sums) → `release` (noise, once) → `memory` (answers).
`settings`, `temperature` and `joint` hold what is public, `planning` predicts, `card` and `file`
describe and keep a release; `comparison` and `oracle` are for the owner's eyes.
"""

from discreet.memory.building import build, build_many, combine, load
from discreet.memory.card import Card
from discreet.memory.comparison import Comparison, compare
from discreet.memory.joint import Joint, Unit
from discreet.memory.layout import Layout
from discreet.memory.memory import Memory
from discreet.memory.partial import Partial
from discreet.memory.planning import Plan, plan
from discreet.memory.release import Released, release
from discreet.memory.rows import Table
from discreet.memory.settings import Options, Shape, settle

__all__ = [
    "Card",
    "Comparison",
    "Joint",
    "Layout",
    "Memory",
    "Options",
    "Partial",
    "Plan",
    "Released",
    "Shape",
    "Table",
    "Unit",
    "build",
    "build_many",
    "combine",
    "compare",
    "load",
    "plan",
    "release",
    "settle",
]
