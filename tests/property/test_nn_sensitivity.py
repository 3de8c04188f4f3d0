"""One row, or one record, of a context moves the joint state of all heads by the claim at most."""

import numpy as np
import pytest
from attention import joint_distance, layer_norm, multihead
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

torch = pytest.importorskip("torch", reason="needs the extra `torch`")

import discreet
from discreet.nn import BoundedAttention, bounds_of, encode_alone, from_multihead
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


def odd_rows():
    """Rows of every kind that a library could make one of all rows for."""
    large, numbers = 2**24 + 1, [0.1, 1.0, -2.0, 3.0, 0.7, 1e-3]
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64):
        yield str(dtype), torch.tensor(numbers, dtype=dtype)
    for dtype in (torch.int64, torch.int32):
        yield (
            str(dtype),
            torch.tensor([2049, 1023, -3, 4, 5, 0], dtype=dtype),
        )  # float16 has no 2049
    yield "uint8", torch.arange(6, dtype=torch.uint8)
    yield "bool", torch.tensor([True, False] * 3)
    yield "huge", torch.tensor([1e300, *numbers[1:]], dtype=torch.float64)
    for number in (float("nan"), float("inf")):
        yield str(number), torch.tensor([number, *numbers[1:]])
    yield "wide", torch.ones(7)
    yield "narrow", torch.ones(5)
    yield "several rows", torch.ones(3, 6)
    yield "integers, unsigned", np.array([2**63 + 1, large, 0, 1, 2, 3], dtype=np.uint64)
    yield "long", np.array(numbers, dtype=np.longdouble)
    yield "texts", np.array(["1", "2", "3", "4", "5", "6"])
    yield "dates", np.arange(6).astype("datetime64[s]")
    yield "objects", np.array([1, 2.0, None, 4, 5, 6], dtype=object)


ODD = dict(odd_rows())


def of_encoded(records):
    return encode_alone(lambda batch: batch, [torch.as_tensor(each) for each in records])


def of_list(records):
    return list(records)


def of_arrays(records):
    return [np.asarray(each) for each in records]


def state_of(records, door):
    """What a release without noise holds of records; None if they are refused."""
    [(module, options), _] = modules()
    try:
        made = from_multihead(module, door(records), **SPEND, **options)
    except (discreet.InvalidInput, TypeError):  # torch itself has no tensor of texts
        return None
    return [each.released.state for each in made.memories]


DOORS = [of_encoded, of_list, of_arrays]
BESIDE = ["torch.float32", "torch.float16", "torch.int64"]


# Every odd record at every door, beside each type at one of them: all pairs are met.
@pytest.mark.parametrize(
    ("door", "odd", "beside"),
    [
        (door, odd, BESIDE[(place + number) % 3])
        for place, odd in enumerate(ODD)
        for number, door in enumerate(DOORS)
    ],
)
def test_an_odd_record_is_refused_or_leaves_others_as_they_are(door, odd, beside):
    """Sums of records together are the sums of each alone: exactly, so nobody moved anybody."""
    records = [ODD[beside], ODD[odd], ODD[beside] * 3]
    together = state_of(records, door)
    if together is None:
        return
    alone = [state_of([each], door) for each in records]
    plain = [each for each in alone if each is not None]
    assert len(plain) == 3 or odd == "bool"  # which stands for 0 and 1 where others are numbers
    for head, state in enumerate(together):
        rest = state - sum(each[head] for each in (alone[0], alone[2]))
        if alone[1] is not None:
            np.testing.assert_array_equal(rest, alone[1][head])
