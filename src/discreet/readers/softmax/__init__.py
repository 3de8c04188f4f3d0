"""Softmax regression on private rows: noisy gradients, round by round, under one guarantee."""

from discreet.readers.softmax.answers import SoftmaxRegression
from discreet.readers.softmax.building import load, softmax_regression
from discreet.readers.softmax.labels import Labels
from discreet.readers.softmax.layout import Rounds
from discreet.readers.softmax.options import SoftmaxOptions
from discreet.readers.softmax.planning import ClassifierPlan, plan
from discreet.readers.softmax.settings import settle

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
