"""Classification of private rows in a few noisy rounds.

Follow a row through the files: `building` (the front door) → `labels`, `passes` (rows that are
read again and again), `remembered` (their features) → `training` (the rounds) → `layout` and
`residuals` (what a row says against W, in integers) → `descent` (the next W). A query goes through
`classifier`. `options`, `settings` and `choosing` hold what is public, `planning` foretells, `card`
describes.
"""

from discreet.rounds.building import load, softmax_regression
from discreet.rounds.classifier import SoftmaxRegression
from discreet.rounds.labels import Labels
from discreet.rounds.layout import Rounds
from discreet.rounds.options import SoftmaxOptions
from discreet.rounds.planning import ClassifierPlan, plan
from discreet.rounds.settings import settle

__all__ = [
    "ClassifierPlan",
    "Labels",
    "Rounds",
    "SoftmaxOptions",
    "SoftmaxRegression",
    "load",
    "plan",
    "settle",
    "softmax_regression",
]
