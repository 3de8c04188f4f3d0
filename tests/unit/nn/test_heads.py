"""Private rows become keys and values one by one: to the bit, wherever they stand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

pytest.importorskip("torch", reason="needs the extra `torch`")

from discreet.nn.heads import ExactLinear, normalised

WIDTH, OUT = 37, 11
RANDOM = np.random.default_rng(0)
LINEAR = ExactLinear(RANDOM.normal(size=(OUT, WIDTH)), RANDOM.normal(size=OUT))
SPECIAL = st.sampled_from([0.0, 1e-310, 1e-200, 1e300, -1e300, 5e-324, 1.0, -2.0])
ROWS = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 9), st.just(WIDTH)),
    elements=st.one_of(SPECIAL, st.floats(-1e3, 1e3)),
)


@given(ROWS, st.randoms(use_true_random=False))
def test_a_row_has_the_same_image_alone_in_a_batch_and_permuted(rows, random):
    images = LINEAR(rows)
    order = list(range(len(rows)))
    random.shuffle(order)
    np.testing.assert_array_equal(LINEAR(np.asfortranarray(rows[order])), images[order])
    for row, image in zip(rows, images, strict=True):
        np.testing.assert_array_equal(LINEAR(row[None])[0], image)
    gain = np.linspace(0.5, 2, WIDTH)
    unit = normalised(rows, gain, 1e-6)
    for row, image in zip(rows, unit, strict=True):
        np.testing.assert_array_equal(normalised(row[None], gain, 1e-6)[0], image)


def test_a_float_product_would_not_have_that_law():
    """On some processors narrow rows have the same bits in every batch, and wider ones do not."""
    different = 0
    for width, out in ((WIDTH, OUT), (64, 7), (100, 33), (1000, 1)):
        rows = RANDOM.normal(size=(2000, width)).astype(np.float32)
        weight = RANDOM.normal(size=(width, out)).astype(np.float32)
        whole = rows @ weight
        different += sum(np.any(rows[i : i + 1] @ weight != whole[i]) for i in range(200))
    assert different > 0


@pytest.mark.parametrize("size", [1e-300, 1e-3, 1.0, 1e5, 1e100])
def test_it_is_the_linear_map(size):
    rows = RANDOM.normal(size=(50, WIDTH)) * size
    exact = rows @ LINEAR.weight.T + LINEAR.bias
    np.testing.assert_allclose(LINEAR(rows), exact, atol=2e-6 * max(size, 1) * WIDTH)


def test_products_stay_exact_where_all_signs_agree():
    weight = np.full((2, 4096), 1.0)
    linear = ExactLinear(weight, np.zeros(2))
    rows = np.full((3, 4096), 0.75)
    np.testing.assert_allclose(linear(rows), 4096 * 0.75, rtol=1e-6)
    bound = 2.0**22 * np.max(np.sum(np.abs(linear._integers), axis=0))
    assert bound <= 2.0**52 * (1 + 1e-6)


def test_rows_of_zeros_have_the_bias_and_no_weight_is_no_trouble():
    np.testing.assert_array_equal(LINEAR(np.zeros((2, WIDTH))), np.tile(LINEAR.bias, (2, 1)))
    nothing = ExactLinear(np.zeros((2, 3)), np.ones(2))
    np.testing.assert_array_equal(nothing(np.ones((4, 3))), np.ones((4, 2)))
    np.testing.assert_array_equal(normalised(np.zeros((2, 3)), np.ones(3), 0.0), np.zeros((2, 3)))


def test_normalised_rows_have_the_gain_as_root_mean_square():
    rows = RANDOM.normal(size=(20, 8)) * 10.0 ** RANDOM.integers(-9, 9, size=(20, 1))
    unit = normalised(rows, np.full(8, 8**-0.5), 0.0)
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1, rtol=1e-6)
