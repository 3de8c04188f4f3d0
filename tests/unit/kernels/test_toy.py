"""A new kind of kernel is one class and its place in the registry: nothing else knows of it."""

import pytest
from affine import Affine
from data import unit_rows
from kernel_contract import KernelContract

import discreet
from discreet.features import registry

BOUNDS = {"scale": 0.5, "key_norm": 2.0, "query_norm": 0.5}


@pytest.fixture(scope="module")
def kernel():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "KINDS", (*registry.KINDS, Affine))
        yield Affine(4, **BOUNDS)


class TestToy(KernelContract):
    """A kind that only this test knows."""

    def test_it_can_be_asked_for_by_name(self, kernel):
        rows = unit_rows(30, 4)
        spend = {"epsilon": 1.0, "delta": 1e-6}
        memory = discreet.build(rows, rows, **spend, **BOUNDS, kernel="affine")
        assert memory.kernel == kernel
        plan = discreet.plan(rows=30, key_dim=4, value_dim=4, **spend, **BOUNDS, kernel="affine")
        assert plan.kernel == kernel
