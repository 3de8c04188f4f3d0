"""A row's integers stay within their bounds, also where rounding pushes them out."""

import math
from fractions import Fraction

import numpy as np
import pytest
from data import unit_rows
from hypothesis import given
from hypothesis import strategies as st

import discreet
from discreet import InvalidInput
from discreet.features.cosines import Cosines
from discreet.kernels import FEATURE_RADIUS, Fourier, Taylor
from discreet.privacy import Neighbours, Privacy
from discreet.readers.attention.layout import Layout
from discreet.readers.glm.layout import GlmRound
from discreet.readers.softmax.layout import Round
from discreet.sums import records
from discreet.sums.layout import RowLayout, ValueLayout
from discreet.sums.partial import Partial
from discreet.sums.settings import Settings, Unit
from discreet.sums.source import Table
from discreet.text.layout import WordsLayout

KERNEL = Fourier(2, frequencies=4, scale=1.0, key_norm=1.0, query_norm=1.0)


def layout(**options):
    defaults = {"kernel": KERNEL, "heads": (), "value_dim": 64, "value_norm": 1.0, "tau": 0.5}
    return Layout(**defaults | {"resolution": 8} | options)


@given(
    seed=st.integers(0, 1000),
    weight=st.one_of(st.floats(0, 1), st.sampled_from([1 - 1e-16, 1 - 1e-6, 1 - 1e-3, 0.999])),
)
def test_weighed_values_never_exceed_their_radius(seed, weight):
    """At a coarse lattice a weight just below one rounds half of the coordinates back up."""
    each = layout()
    values = np.abs(unit_rows(20, 64, seed=seed)) * 5
    weighed = each.weigh(values, np.full(20, weight))
    assert np.all((weighed[:, :-1] ** 2).sum(axis=1) <= each.value_radius**2)
    assert np.all((weighed[:, -1] >= 0) & (weighed[:, -1] <= each.tau_units))
    assert np.array_equal(weighed, np.rint(weighed))


def test_claims_are_never_below_the_exact_numbers():
    """Square roots are rounded up: compared as fractions."""
    for tau in np.linspace(0.01, 4, 60).tolist():
        each = layout(tau=tau, resolution=20)
        exact = FEATURE_RADIUS**2 * (each.value_radius**2 + each.tau_units**2)
        assert Fraction(each.row_bound) ** 2 >= exact
        assert each.row_bound == pytest.approx(math.sqrt(exact), rel=1e-12)
    for heads in range(1, 300):
        mechanism = Settings(
            layouts=(layout(heads=(heads,)),),
            privacy=Privacy(1.0, 1e-6, Neighbours.ADD_REMOVE),
            unit=Unit.ROW,
        ).mechanism
        assert Fraction(mechanism.sensitivity) ** 2 >= heads


def test_long_records_are_cut_towards_zero():
    """At a coarse lattice and a small allowance, rounding to the nearest would lengthen them."""
    kernel = Fourier(2, frequencies=512, scale=1.0, key_norm=1.0, query_norm=1.0)
    settings = Settings(
        layouts=(layout(kernel=kernel),),
        privacy=Privacy(1.0, 1e-6, Neighbours.ADD_REMOVE),
        unit=Unit.RECORD,
        group_rows=1e-3,
    )
    table = Table(unit_rows(300, 2), unit_rows(300, 64, seed=1))
    [sums] = Partial.of([table], settings, groups=np.zeros(300, int)).sums
    exact = sum(int(entry) ** 2 for entry in sums.ravel())
    assert 0 < exact <= Fraction(1e-3) ** 2 * Fraction(settings.layouts[0].row_bound) ** 2


@pytest.mark.parametrize("tau", [0.01, 1.0, 4.0])
@pytest.mark.parametrize("resolution", [8, 16, 22])
def test_the_largest_sums_fit_whichever_of_value_and_tau_is_larger(tau, resolution):
    each = layout(tau=tau, resolution=resolution)
    term = each.kernel.entry_bound * max(each.value_radius, each.tau_units)
    assert each.most_rows * term <= 2**62
    assert each.exact_rows * term <= 2**53


def test_many_rows_of_few_features_are_added_up_exactly():
    """So many rows fit one chunk that a float64 sum over all of them would be rounded."""
    kernel = Taylor(1, degree=0, scale=1.0, key_norm=1.0, query_norm=1.0)
    each = layout(kernel=kernel, value_dim=1, resolution=22)
    settings = Settings(
        layouts=(each,), privacy=Privacy(100.0, 1e-6, Neighbours.ADD_REMOVE), unit=Unit.ROW
    )
    rows = 400_000
    values = np.full((rows, 1), (2**22 - 1) / 2**22)
    [sums] = Partial.of([Table(np.ones((rows, 1)), values)], settings).sums
    feature = int(kernel.key_features(np.ones((1, 1))).features[0, 0])
    assert feature * (2**22 - 1) * rows > 2**53
    assert sums[0, 0, 0] == feature * (2**22 - 1) * rows


@pytest.mark.parametrize("heads", [1, 3, 64, 16_384])
def test_gram_matrices_of_all_heads_fit_int64_together(heads):
    settings = Settings(
        layouts=(layout(heads=(heads,)),),
        privacy=Privacy(1.0, 1e-6, Neighbours.ADD_REMOVE),
        unit=Unit.RECORD,
    )
    assert heads * records.gram_rows(settings) ** 2 * 2**32 * 2**16 <= 2**62


def test_no_heads_at_all_are_refused():
    with pytest.raises(InvalidInput, match="heads"):
        layout(heads=(2, 0))


def test_more_heads_than_records_can_have_are_refused_before_anything_is_read():
    keys, values = np.zeros((16_385, 1, 1)), np.zeros((16_385, 1, 1))
    options = {"epsilon": 1.0, "delta": 1e-6, "scale": 1.0, "kernel": "taylor", "eps_s": 0.9}
    with pytest.raises(InvalidInput, match="16,384 heads"):
        discreet.build(keys, values, groups=[1], **options)
    discreet.build(keys[:2], values[:2], groups=[1], **options)


def test_replaced_rows_of_a_map_whose_features_are_all_alike_move_no_further_than_claimed():
    """Inner products of features are far above zero there, and so are those of values."""
    kernel = Cosines(low=(0.0,), high=(1.0,), power=0.3, terms=64)
    layout = ValueLayout(
        kernel=kernel, heads=(), value_dim=1, value_norm=1.0, tau=3.0, resolution=16
    )
    ends = np.array([[0.0], [0.5], [1.0]])
    features = kernel.key_features(ends).features
    claim = layout.row_sensitivity(Neighbours.REPLACE)
    most = 0.0
    for one in range(3):
        for other in range(3):
            for value in (-1.0, 1.0):
                sums = [
                    np.outer(features[at], layout.weigh(np.array([[v]]), None)[0])
                    for at, v in ((one, value), (other, -value))
                ]
                most = max(most, float(np.linalg.norm(sums[0] - sums[1])))
    assert 0.9 * claim < most <= claim


def kinds_of(base):
    """Classes that are made of a class, and of those."""
    return {base}.union(*(kinds_of(each) for each in base.__subclasses__()))


@pytest.mark.parametrize(
    "kind",
    sorted(
        {each for each in kinds_of(RowLayout) if not each.__subclasses__()} | {Round, GlmRound},
        key=lambda kind: kind.__name__,
    ),
)
def test_every_layout_says_in_words_what_is_built_of_it(kind):
    """A guarantee says it; and tests that fail could not print what is not there."""
    assert all(kind.noun)
    assert kind.noun[0] != kind.noun[1] or kind is WordsLayout
