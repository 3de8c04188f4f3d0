"""Rows of a regression in rounds: what may be given, and that no way of giving matters."""

import numpy as np
import pytest
from glm import LINEAR
from rounds import some_cells, tables, unknown_tables

from discreet import InvalidInput
from discreet.readers.glm.mechanism import GLM
from discreet.sums.mechanism import build
from discreet.testing import Seeded

KERNELS = tables() | unknown_tables() | {"linear": LINEAR}
ROWS = 300


def made(keys, values=None, groups=None, **changes):
    """The released integers."""
    options = {"epsilon": 1.0, "delta": 1e-6, "features": LINEAR, "key_norm": 2.0} | changes
    if options["features"] is not LINEAR:
        del options["key_norm"]
    chosen = GLM.options(**options)
    [fit] = build(GLM, GLM.source(keys, values, groups, chosen), chosen, entropy=Seeded(3))
    return [part.tobytes() for part in (fit.released.state, *fit.released.others)]


def rows_of(kind):
    kernel = KERNELS[kind]
    rng = np.random.default_rng(0)
    keys = rng.normal(size=(ROWS, 3)) if kernel is LINEAR else some_cells(kernel, ROWS)
    return keys, rng.uniform(-1.5, 1.5, (ROWS, 2))


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("kind", KERNELS)
def test_chunks_order_and_kept_features_change_no_bit(kind, loss):
    keys, values = rows_of(kind)
    options = {"features": KERNELS[kind], "loss": loss}
    whole = made(keys, values, **options)
    order = np.random.default_rng(1).permutation(ROWS)
    chunks = [(keys[at : at + 77], values[at : at + 77]) for at in range(0, ROWS, 77)]
    assert made(keys[order], values[order], **options) == whole
    assert made(chunks, **options) == whole
    assert made(keys, values, memory_limit=0, **options) == whole
    assert made(lambda: iter(chunks[::-1]), memory_limit=0, **options) == whole


@pytest.mark.parametrize("kind", ["linear", "mixed", "several"])
def test_records_in_chunks_give_the_bits_of_arrays(kind):
    keys, values = rows_of(kind)
    groups = np.random.default_rng(2).integers(0, 60, ROWS)
    options = {"features": KERNELS[kind], "group_rows": 2.0}
    whole = made(keys, values, groups, **options)
    order = np.argsort(groups, kind="stable")
    assert made(keys[order], values[order], groups[order], **options) == whole
    parts = [order[groups[order] < 30], order[groups[order] >= 30]]
    chunks = [(keys[at], values[at], groups[at]) for at in parts]
    assert made(lambda: iter(chunks), **options) == whole


@pytest.mark.parametrize("aim", [True, False])
def test_keys_with_heads_are_refused_before_anything_is_drawn(aim):
    """A row of each head would count in one sum of counts: twice what is claimed of it."""
    with pytest.raises(ValueError, match=r".") as caught:
        made(np.zeros((2, 20, 3)), np.zeros((2, 20, 1)), aim=aim)
    assert isinstance(caught.value, InvalidInput)
    assert not any("had been drawn" in note for note in getattr(caught.value, "__notes__", ()))


def test_an_iterator_is_refused_because_rows_are_read_again():
    keys, values = rows_of("linear")
    with pytest.raises(InvalidInput, match="read again"):
        made(iter([(keys, values)]))


def test_rows_that_change_their_number_between_passes_are_refused():
    keys, values = rows_of("linear")
    opened = []

    def chunks():
        opened.append(1)
        yield keys[len(opened) :], values[len(opened) :]

    with pytest.raises(InvalidInput, match="same rows in every pass"):
        made(chunks, memory_limit=0)


@pytest.mark.parametrize("reused", [False, True])
def test_rows_stay_with_their_records(reused):
    """Also if all ids come in one buffer, which is used again in every pass."""
    keys, values = rows_of("linear")
    buffer, opened = np.zeros(ROWS, int), []

    def chunks():
        opened.append(1)
        ids = np.arange(ROWS) // (2 if len(opened) < 3 else 3)
        buffer[:] = ids
        yield keys, values, buffer if reused else ids

    with pytest.raises(InvalidInput, match="same record in every pass"):
        made(chunks, memory_limit=0)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_numbers_that_are_none_are_refused_without_being_quoted(wrong):
    keys, values = rows_of("linear")
    for where in (keys, values):
        before = where[5, 0]
        where[5, 0] = wrong
        with pytest.raises(InvalidInput, match="NaN"):
            made(keys, values)
        where[5, 0] = before
