"""The lemma behind the tight account: a change spread over coordinates is no worse than one shift.

docs/privacy.md, "A change over several coordinates". For log-concave noise, shifting coordinates by
a and b is dominated by shifting one coordinate by a + b.
"""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from discreet.noise import DiscreteLaplace, TruncatedLaplace


def hockey_stick(left, right, epsilon):
    return np.maximum(left - np.exp(epsilon) * right, 0).sum()


def shifted(law, reach, shift):
    return law.pmf(np.arange(-reach, reach + 1) - shift)


@given(
    law=st.one_of(
        st.builds(
            TruncatedLaplace,
            sensitivity=st.integers(1, 6),
            epsilon=st.floats(0.5, 2.0),
            delta=st.floats(1e-3, 0.4),
        ),
        st.builds(DiscreteLaplace, scale=st.floats(0.5, 3.0)),
    ),
    shifts=st.tuples(st.integers(0, 4), st.integers(0, 4)),
    epsilon=st.floats(-3, 3),
)
def test_two_shifts_are_dominated_by_their_sum(law, shifts, epsilon):
    reach = 160
    a, b = shifts
    still = shifted(law, reach, 0)
    two = hockey_stick(
        np.outer(still, still), np.outer(shifted(law, reach, a), shifted(law, reach, b)), epsilon
    )
    one = hockey_stick(still, shifted(law, reach, a + b), epsilon)
    assert two <= one + 1e-12
