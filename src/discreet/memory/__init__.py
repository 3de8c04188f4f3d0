"""The memory: private attention at the noise of a single query.

Follow a row through the files: `building` (the front door) → `builder` → `rows` (reading) →
`adder` with `layout` (bounds and lattice), `records` and `workers` (exact sums) → `release` (noise,
once) → `file`. A query goes through `memory` (the door) → `queries` (shapes) → `reader` (answers).
`several` holds the memories of one model, and `joint` puts their arrays side by side. `options`,
`settings` and `temperature` hold what is public, `planning` predicts, `card` describes, `seen` is
what noisy sums show of all rows; `partial` and `sealing` are exact sums that travel, in an
`envelope`; `comparison` and `oracle` are for the owner's eyes.
"""

from discreet._card import Card
from discreet.accounting import combine
from discreet.memory.builder import Builder
from discreet.memory.building import build, build_many, load
from discreet.memory.comparison import Comparison, compare
from discreet.memory.envelope import new_key
from discreet.memory.layout import Layout
from discreet.memory.memory import Memory
from discreet.memory.options import Options
from discreet.memory.partial import Partial
from discreet.memory.planning import Plan, plan
from discreet.memory.reader import Reader
from discreet.memory.release import Released, release
from discreet.memory.rows import Table
from discreet.memory.settings import Settings, Shape, Unit, settle
from discreet.memory.several import Memories

__all__ = [
    "Builder",
    "Card",
    "Comparison",
    "Layout",
    "Memories",
    "Memory",
    "Options",
    "Partial",
    "Plan",
    "Reader",
    "Released",
    "Settings",
    "Shape",
    "Table",
    "Unit",
    "build",
    "build_many",
    "combine",
    "compare",
    "load",
    "new_key",
    "plan",
    "release",
    "settle",
]
