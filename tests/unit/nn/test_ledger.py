"""A private layer is counted on a ledger, and several layers of one build are counted once."""

import pytest
from attention import multihead, rows
from counted_builds import CountedBuilds

torch = pytest.importorskip("torch", reason="needs the extra `torch`")

from discreet.nn import BoundedAttention, from_multihead, from_multiheads

pytestmark = pytest.mark.filterwarnings("ignore::discreet.MostlyNoiseWarning")
CONTEXT = rows(30, 16)


class TestOneLayer(CountedBuilds):
    def models(self):
        return [multihead()]

    def build(self, models, **options):
        return [from_multihead(*models, CONTEXT, largest_logit=1.0, **options).memories]


class TestBoundedLayer(TestOneLayer):
    def models(self):
        torch.manual_seed(0)
        return [BoundedAttention(16, 2, head_dim=4, largest_logit=1.0)]


class TestSeveralLayers(CountedBuilds):
    def models(self):
        return [multihead(seed=seed) for seed in range(3)]

    def build(self, models, **options):
        made = from_multiheads(models, CONTEXT, largest_logit=1.0, **options)
        return [each.memories for each in made]
