"""Softmax regression on private rows: noisy gradients, round by round, under one guarantee."""

from discreet.readers.softmax.answers import SoftmaxRegression
from discreet.readers.softmax.layout import Rounds
from discreet.readers.softmax.mechanism import SOFTMAX, SoftmaxOptions
from discreet.readers.softmax.planning import ClassifierPlan, plan
from discreet.readers.softmax.rows import Labels

__all__ = [
    "SOFTMAX",
    "ClassifierPlan",
    "Labels",
    "Rounds",
    "SoftmaxOptions",
    "SoftmaxRegression",
    "plan",
]
