"""A kind of kernel that only tests know."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from discreet._arrays import namespace
from discreet.features.kernel import Evidence
from discreet.kernels import FEATURE_RADIUS, Kernel


@dataclass(frozen=True)
class Affine(Kernel):
    """φ(x) = [1; x]: the kernel 1 + ⟨x, y⟩, which is near exp where logits are small."""

    kind: ClassVar[str] = "affine"
    evidence: ClassVar[Evidence] = Evidence.CERTIFICATE

    @classmethod
    def named(cls, wanted):
        return cls(wanted.dim, **wanted.bounds)

    @property
    def features(self):
        return self.dim + 1

    @property
    def error(self):
        t = self.largest_logit
        return math.exp(t) - 1 - t + t  # of the largest weight; generous

    @property
    def error_meaning(self):
        return "of the largest weight, at most"

    @property
    def bound(self):
        return math.sqrt(1 + self.largest_logit)

    @property
    def unit(self):
        return (FEATURE_RADIUS - math.sqrt(self.features)) / self.bound

    @property
    def entry_bound(self):
        return FEATURE_RADIUS

    @property
    def operations(self):
        return 2 * self.features

    def fill(self, integers, out):
        out[:, 0] = np.rint(self.unit)
        stretch = self.unit * self._key_factor * self.key_lattice.step
        out[:, 1:] = np.trunc(integers * stretch)

    def reading(self, state):
        return {"constant": state[:, :1], "linear": state[:, 1:] * self._query_factor}

    def read(self, queries, arrays):
        return arrays["constant"] + queries @ arrays["linear"]

    def query_norms(self, queries, squared, arrays):
        return namespace(squared).sqrt(1 + squared * self.largest_logit)

    def describe(self):
        return f"affine features of {self.dim} dimensions"
