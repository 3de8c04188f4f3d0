"""A new map is one class and its place in the registry: nothing else knows of it."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from affine import Affine
from data import unit_rows
from map_contract import KernelContract, SymmetricContract

import discreet
from discreet.features import registry
from discreet.features.base import FEATURE_RADIUS, SHRINK, SymmetricMap

BOUNDS = {"scale": 0.5, "key_norm": 2.0, "query_norm": 0.5}


@dataclass(frozen=True)
class Plain(SymmetricMap):
    """φ(x) = x/key_norm: the columns, and no constant."""

    kind: ClassVar[str] = "plain"

    dim: int
    key_norm: float = 1.0

    @property
    def features(self):
        return self.dim

    @property
    def operations(self):
        return self.dim

    def fill(self, integers, out):
        out[:] = np.trunc(integers * (FEATURE_RADIUS / self.key_radius * SHRINK))

    def query_arrays(self):
        return {}

    def query_features(self, queries, arrays):
        return queries / self.key_norm

    def describe(self):
        return f"{self.dim} columns"

    def parameters(self):
        return {"kind": self.kind, "dim": self.dim, "key_norm": self.key_norm}


@pytest.fixture(scope="module", autouse=True)
def known():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "KINDS", (*registry.KINDS, Affine, Plain))
        yield


class TestKernel(KernelContract):
    """A kernel that only this test knows."""

    @pytest.fixture(scope="class")
    @classmethod
    def kernel(cls):
        return Affine(4, **BOUNDS)

    def test_it_can_be_asked_for_by_name(self, kernel):
        rows = unit_rows(30, 4)
        spend = {"epsilon": 1.0, "delta": 1e-6}
        memory = discreet.build(rows, rows, **spend, **BOUNDS, kernel="affine")
        assert memory.kernel == kernel
        plan = discreet.plan(rows=30, key_dim=4, value_dim=4, **spend, **BOUNDS, kernel="affine")
        assert plan.kernel == kernel


class TestSymmetric(SymmetricContract):
    """A map for predictions that only this test knows."""

    @pytest.fixture(scope="class")
    @classmethod
    def kernel(cls):
        return Plain(4, key_norm=2.0)

    def test_predictions_are_made_of_it_and_attention_is_not(self, kernel, tmp_path):
        rows, spend = unit_rows(30, 4), {"epsilon": 1.0, "delta": 1e-6}
        fit = discreet.least_squares(rows, rows, **spend, key_norm=2.0, features=kernel)
        fit.save(tmp_path / "fit.safetensors")
        again = discreet.load(tmp_path / "fit.safetensors")
        assert again.features == kernel
        assert np.array_equal(again.predict(rows), fit.predict(rows))
        with pytest.raises(discreet.InvalidInput, match="kernel"):
            discreet.build(rows, rows, **spend, kernel=kernel)
        with pytest.raises(discreet.InvalidInput, match="features"):
            discreet.least_squares(rows, rows, **spend, features=Affine(4, **BOUNDS))
