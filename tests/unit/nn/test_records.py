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
    for wrong in ([[1, 1, 0], [1, 0, "0"]], np.array([["1"] * 3] * 2), [[1, 1, 0], [1, 0, None]]):
        # Of texts, "0" would be true.
        with pytest.raises(discreet.InvalidInput, match="attention_mask"):
            Context.of(batch, ids, mask=wrong)
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


class Averaging(torch.nn.Module):
    """An encoder with all that training mode changes: chance, and statistics of the batch."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = torch.nn.Linear(3, 16)
        self.dropout = torch.nn.Dropout(0.3)
        self.norm = torch.nn.BatchNorm1d(16)

    def forward(self, batch):
        rows = self.linear(batch)
        return self.norm(self.dropout(rows).transpose(1, 2)).transpose(1, 2)


def hidden(encoder):
    return lambda batch: encoder(batch) + 0


@pytest.mark.parametrize("given", [lambda encoder: encoder, hidden], ids=["module", "function"])
def test_records_are_encoded_as_in_evaluation_and_every_mode_is_what_it_was(given):
    encoder, records = Averaging(), list(rows(6, 5, 3))
    encoder.linear.eval()  # frozen by somebody
    buffers = {name: each.clone() for name, each in encoder.named_buffers()}
    whole = encode_alone(given(encoder), records)
    rest = encode_alone(given(encoder), records[1:])
    torch.testing.assert_close(whole.rows[5:], rest.rows, atol=0, rtol=0)
    modes = {name: each.training for name, each in encoder.named_modules()}
    assert modes == {"": True, "linear": False, "dropout": True, "norm": True}
    for name, each in encoder.named_buffers():  # batch norm learned nothing from private rows
        assert torch.equal(each, buffers[name])
    torch.testing.assert_close(whole.rows[:5], encoder.eval()(records[0][None])[0], atol=0, rtol=0)


def test_modes_are_what_they_were_after_a_failure():
    encoder = Averaging()
    with pytest.raises(RuntimeError):
        encode_alone(encoder, [rows(5, 3), rows(5, 4)])
    assert all(each.training for each in encoder.modules())


def test_an_encoder_with_a_will_of_its_own_is_refused():
    seen = []

    def counting(batch):
        seen.append(batch)
        return batch + len(seen)

    with pytest.raises(discreet.InvalidInput, match="the same rows each time"):
        encode_alone(counting, rows(4, 3))
    with pytest.raises(discreet.InvalidInput, match="the same rows each time"):
        encode_alone(torch.nn.functional.dropout, rows(1, 64))


def test_rows_are_kept_whatever_an_encoder_does_with_its_memory():
    kept = torch.empty(1, 3)
    found = encode_alone(kept.copy_, rows(4, 3))
    assert torch.equal(found.rows, rows(4, 3))


def test_a_compiled_encoder_has_no_code_for_some_records_only():
    """The second length makes torch compile again, for any length: with other last bits."""

    def encoded(records):
        made = []

        def backend(graph, _):
            made.append(graph)
            number = len(made)
            return lambda *inputs: tuple(each + number for each in graph(*inputs))

        torch.compiler.reset()
        return encode_alone(torch.compile(encoder, backend=backend), records)

    encoder = torch.nn.Linear(3, 4).requires_grad_(requires_grad=False)
    records = [rows(count, 3) for count in (2, 3, 4)]
    assert torch.equal(encoded(records).rows[2:], encoded(records[1:]).rows)
    torch.compiler.reset()


@pytest.mark.parametrize(
    "odd",
    [
        rows(3).double(),
        torch.tensor([2**24 + 1, 2, 3]),
        rows(4),
        rows(2, 2, 3),
        torch.tensor(1.0),
        rows(3).to("meta"),
        rows(3).numpy(),
    ],
    ids=["dtype", "integers", "width", "axes", "number", "device", "array"],
)
def test_rows_of_another_kind_are_refused(odd):
    for made in ([rows(3), odd], [odd, rows(3)]):
        encoder = iter([[made[0]], [made[1]], [made[0]]]).__next__
        with pytest.raises(discreet.InvalidInput, match="one kind"):
            encode_alone(lambda _, encoder=encoder: encoder(), rows(2, 3))
