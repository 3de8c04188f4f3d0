"""Regression on private rows in rounds: numbers by Huber's loss, several labels by the logistic."""

from discreet.readers.glm.answers import GeneralizedLinear
from discreet.readers.glm.layout import GlmRounds, Loss
from discreet.readers.glm.mechanism import GLM, GlmOptions

__all__ = ["GLM", "GeneralizedLinear", "GlmOptions", "GlmRounds", "Loss"]
