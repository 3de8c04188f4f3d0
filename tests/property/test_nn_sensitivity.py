"""One row, or one record, of a context moves the joint state of all heads by the claim at most."""

import numpy as np
import pytest
from attention import joint_distance, layer_norm, multihead
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

torch = pytest.importorskip("torch", reason="needs the extra `torch`")

from discreet.nn import BoundedAttention, bounds_of, from_multihead
from discreet.testing import Silent

SPEND = {"epsilon": 1.0, "delta": 1e-6, "entropy": Silent()}
NORM = layer_norm(6)
SPECIAL = st.sampled_from([0.0, 1.0, -1.0, 1e-30, 1e30, -1e30, 0.5])
NUMBERS = st.one_of(SPECIAL, st.floats(-3, 3, width=32))


def contexts(count):
    return hnp.arrays(np.float32, (count, 6), elements=NUMBERS)


def modules():
    torch.manual_seed(0)
    mha = multihead(6, 2)
    yield mha, {"bounds": bounds_of(mha, queries=NORM, context=NORM), "features": 128}
    yield BoundedAttention(6, 2, head_dim=3), {"kernel": "fourier", "features": 40}


@pytest.mark.parametrize(("module", "options"), list(modules()), ids=["multihead", "bounded"])
@settings(max_examples=20)
@given(context=contexts(7), at=st.integers(0, 6))
def test_a_row_that_is_left_out_moves_all_heads_by_the_claim_at_most(module, options, context, at):
    with_it = from_multihead(module, context, **SPEND, **options)
    without = from_multihead(module, np.delete(context, at, axis=0), **SPEND, **options)
    assert joint_distance(with_it.memories, without.memories) <= 1 + 1e-12


@settings(max_examples=20)
@given(context=contexts(9), group_rows=st.sampled_from([0.5, 1.0, 2.5]))
def test_a_record_that_is_left_out_moves_all_heads_by_the_claim_at_most(context, group_rows):
    [(module, options), _] = modules()
    groups = np.array([0, 1, 1, 1, 2, 2, 3, 1, 1])
    options |= {"group_rows": group_rows, "kernel": "fourier", "features": 40}
    with_it = from_multihead(module, context, groups=groups, **SPEND, **options)
    kept = groups != 1
    without = from_multihead(module, context[kept], groups=groups[kept], **SPEND, **options)
    assert joint_distance(with_it.memories, without.memories) <= 1 + 1e-12


def test_the_claim_is_reached():
    torch.manual_seed(0)
    module = BoundedAttention(6, 2, head_dim=3)
    with torch.no_grad():
        module.v_proj.weight.mul_(100)  # values of full length
    row = np.ones((1, 6), dtype=np.float32)
    options = {"kernel": "fourier", "features": 64, **SPEND}
    one, none = (from_multihead(module, each, **options) for each in (row, row[:0]))
    assert joint_distance(one.memories, none.memories) > 0.98
    many = np.repeat(row, 30, axis=0)
    record = {"groups": np.zeros(30, dtype=int), "group_rows": 4.0, **options}
    grouped = from_multihead(module, many, **record)
    empty = from_multihead(module, many[:0], **{**record, "groups": np.zeros(0, dtype=int)})
    assert 0.98 < joint_distance(grouped.memories, empty.memories) <= 1
