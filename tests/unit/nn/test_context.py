"""Which record a row belongs to: no two records become one, and none is split."""

import numpy as np
import pytest
from attention import rows

torch = pytest.importorskip("torch", reason="needs the extra `torch`")

import discreet
from discreet.nn import encode_alone
from discreet.nn.building import Context

ROWS = rows(4, 3).numpy()


@pytest.mark.parametrize(
    "groups",
    [
        [1, "1", 2, 3],
        ["a\0", "a", "b", "c"],
        [b"a", "a", "b", "c"],
        [True, 2, 3, 4],
        np.ma.MaskedArray([1, 1, 2, 3], mask=[True, False, False, False]),
        [0.5, 1.0, 2.0, 3.0],
        torch.tensor([0.0, 1.0, 2.0, 3.0]),
        np.array([[1, 2], [3, 4]]),
        [1, 2, 3],
        "abcd",
    ],
    ids=str,
)
def test_ids_that_could_be_taken_for_one_another_are_refused(groups):
    with pytest.raises(discreet.InvalidInput, match="groups"):
        Context.of(ROWS, groups)


@pytest.mark.parametrize(
    "groups",
    [
        [2**60, 2**60 + 1, 2**60, 7],
        [2**70, 2**70 + 1, 2**70, 7],
        torch.tensor([5, 6, 5, 7]),
        ["x", "xy", "x", ""],
        np.array(["x", "xy", "x", "z"]),
    ],
    ids=str,
)
def test_records_are_told_apart(groups):
    codes = Context.of(ROWS, groups).groups
    assert codes[0] == codes[2]
    assert len(set(codes.tolist())) == 3


def test_a_batch_has_its_records_in_its_own_shape():
    batch, ids = rows(2, 3, 4), np.array([[0, 0, 1], [2, 1, 1]])
    context = Context.of(batch, ids)
    assert context.rows.shape == (6, 4)
    assert [len(set(context.groups[ids.reshape(-1) == i])) for i in range(3)] == [1, 1, 1]
    assert len(set(context.groups.tolist())) == 3
    with pytest.raises(discreet.InvalidInput, match="groups"):
        Context.of(batch, ids.T)
    with pytest.raises(discreet.InvalidInput, match="same order"):
        Context.of((batch, rows(3, 2, 4)))
    kept = Context.of(batch, ids, mask=np.array([[1, 1, 0], [1, 0, 0]]))
    assert kept.rows.shape == (3, 4)
    np.testing.assert_array_equal(kept.rows[2], batch[1, 0].double().numpy())


@pytest.mark.parametrize(
    "context",
    [
        [[1.0, 2.0], [3.0]],
        np.ma.MaskedArray(ROWS, mask=ROWS > 0),
        np.array([["a", "b"]]),
        np.array([1e4000, 1.0], dtype=np.longdouble)[None],
        np.zeros((2, 3), dtype=complex),
    ],
    ids=["ragged", "masked", "texts", "too large", "complex"],
)
def test_what_is_no_context_is_refused_without_a_word_about_its_rows(context):
    with pytest.raises(discreet.InvalidInput, match="context") as caught:
        Context.of(context)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("most", [1, 2, 3, 100])
def test_chunks_have_every_row_once_and_every_record_whole(most):
    groups = np.random.default_rng(most).integers(0, 9, size=40)
    context = Context.of(rows(40, 3), groups)
    chunks = list(context.chunks(most))
    seen = [set(each.groups.tolist()) for each in chunks]
    assert sum(map(len, seen)) == len(set.union(*seen))
    whole = np.concatenate([each.rows for each in chunks])
    np.testing.assert_array_equal(np.sort(whole, axis=0), np.sort(context.rows, axis=0))
    assert [len(each.rows) for each in Context.of(rows(0, 3), []).chunks(most)] == [0]
    plain = list(Context.of(rows(7, 3)).chunks(most))
    assert sum(len(each.rows) for each in plain) == 7


def test_records_are_encoded_each_alone():
    encoder = torch.nn.Linear(3, 5).requires_grad_(requires_grad=False)
    shapes = []

    def watched(batch):
        shapes.append(tuple(batch.shape))
        return encoder(batch)

    plain = encode_alone(watched, rows(4, 3))
    assert set(shapes) == {(1, 3)}
    assert plain.groups.tolist() == [0, 1, 2, 3]
    torch.testing.assert_close(plain.rows, encoder(rows(4, 3)))
    several = encode_alone(watched, [rows(2, 3), rows(1, 3), rows(3, 3)])
    assert several.groups.tolist() == [0, 0, 1, 2, 2, 2]
    assert "private" in repr(several)
    context = Context.of(several)
    assert context.groups.tolist() == [0, 0, 1, 2, 2, 2]
    np.testing.assert_array_equal(context.rows, several.rows.double().numpy())
    assert Context.of(several, [7, 7, 7, 8, 8, 8]).groups.tolist() == [0, 0, 0, 1, 1, 1]
    with pytest.raises(discreet.InvalidInput, match="at least one"):
        encode_alone(watched, [])
