"""Laws of the lattice that hold for any data."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from discreet.noise import Lattice, checked_add, clip_integer_rows, exact_product

FLOATS = st.floats(allow_nan=False, allow_infinity=False, width=64)
SHAPES = st.tuples(st.integers(1, 12), st.integers(1, 9))
ROWS = hnp.arrays(np.float64, SHAPES, elements=st.one_of(FLOATS, st.floats(-3, 3)))
NORMS = st.floats(0.01, 100)
BITS = st.integers(8, 20)


def squared_norms(rows):
    return [sum(int(z) ** 2 for z in row) for row in rows]


@given(rows=ROWS, norm=NORMS, bits=BITS)
def test_the_norm_bound_holds_exactly(rows, norm, bits):
    lattice = Lattice(bits=bits)
    radius = lattice.units(norm)
    clipped = lattice.clip_rows(rows, norm=norm)
    assert all(square <= radius**2 for square in squared_norms(clipped))
    assert radius <= norm * 2**bits


@given(rows=ROWS, norm=NORMS, bits=BITS, data=st.data())
def test_a_row_is_the_same_alone_in_any_batch_at_any_position(rows, norm, bits, data):
    lattice = Lattice(bits=bits)
    together = lattice.clip_rows(rows, norm=norm)
    order = data.draw(st.permutations(range(len(rows))))
    assert np.array_equal(lattice.clip_rows(rows[order], norm=norm), together[order])
    column_major = np.asfortranarray(rows)
    assert np.array_equal(lattice.clip_rows(column_major, norm=norm), together)
    alone = np.concatenate([lattice.clip_rows(row[None], norm=norm) for row in rows])
    assert np.array_equal(alone, together)


@given(rows=ROWS, norm=NORMS, bits=BITS)
def test_clipping_twice_changes_nothing(rows, norm, bits):
    lattice = Lattice(bits=bits)
    once = lattice.clip_rows(rows, norm=norm)
    assert np.array_equal(clip_integer_rows(once, radius=lattice.units(norm)), once)


@given(rows=ROWS, norm=NORMS, bits=BITS, data=st.data())
def test_one_row_moves_the_sum_by_at_most_the_bound(rows, norm, bits, data):
    """The sensitivity that later mechanisms claim, on the integers themselves."""
    lattice = Lattice(bits=bits)
    radius = lattice.units(norm)
    gone = data.draw(st.integers(0, len(rows) - 1))
    total = lattice.clip_rows(rows, norm=norm).sum(axis=0)
    without = lattice.clip_rows(np.delete(rows, gone, axis=0), norm=norm).sum(axis=0)
    assert squared_norms([total - without])[0] <= radius**2


@given(angle=st.floats(0, 2 * np.pi), bits=st.integers(10, 20))
def test_the_bound_is_reached_within_a_percent(angle, bits):
    """So that the bound is known to be tight, not just true."""
    lattice = Lattice(bits=bits)
    row = 7.0 * np.array([[np.cos(angle), np.sin(angle)]])
    assert squared_norms(lattice.clip_rows(row, norm=1.0))[0] >= (0.99 * lattice.units(1.0)) ** 2


@given(
    shapes=st.tuples(st.integers(1, 4), st.integers(0, 40), st.integers(1, 4)),
    bounds=st.tuples(st.integers(1, 2**27), st.integers(1, 2**26)),
    data=st.data(),
)
def test_products_are_those_of_python_integers(shapes, bounds, data):
    m, n, c = shapes
    left, right = (
        data.draw(hnp.arrays(np.int64, shape, elements=st.integers(-bound, bound)))
        for shape, bound in (((m, n), bounds[0]), ((n, c), bounds[1]))
    )
    truth = left.astype(object) @ right.astype(object) if n else np.zeros((m, c), dtype=object)
    for kind in (np.float64, np.int64):
        product = exact_product(
            left.astype(kind), right.astype(kind), left_bound=bounds[0], right_bound=bounds[1]
        )
        assert product.dtype == np.int64
        assert np.array_equal(product.astype(object), truth)


@given(pairs=st.lists(st.tuples(*[st.integers(-(2**63), 2**63 - 1)] * 2), min_size=1, max_size=8))
def test_addition_is_exact_or_refused(pairs):
    left, right = np.array(pairs, dtype=np.int64).T
    truth = [a + b for a, b in pairs]
    fits = all(-(2**63) <= total < 2**63 for total in truth)
    try:
        result = checked_add(left, right).tolist()
    except ValueError:
        result = None
    assert result == (truth if fits else None)
