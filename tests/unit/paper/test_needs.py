import warnings

import numpy as np
import pytest

from discreet import InvalidInput
from discreet.paper import DPCrossAttention
from discreet.paper.attention import attention_needs

SPEND = {"epsilon": 1.0, "delta": 1e-6}


def test_needs_of_data_that_can_be_built_are_those_of_the_structure():
    rng = np.random.default_rng(0)
    keys, values = rng.uniform(0, 1, (300, 2)), rng.uniform(-1, 1, (300, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        built = DPCrossAttention(
            keys,
            values,
            upper=1.0,
            value_bound=1.0,
            epsilon=1.0,
            delta=5e-7,
            delta_prime=5e-7,
            c=0.1,
            eps_s=0.05,
            p_f=0.1,
        )
    needs = attention_needs(rows=300, key_dim=2, value_dim=3, largest_logit=1.0, **SPEND)
    assert needs.state_bytes == pytest.approx(built.nbytes, rel=0.01)
    spread = float(np.sqrt(built._sums.variance(np.ones((1, 2)))[0, -1]))
    # Rows are doubled until the noise is clear; it grows with the depth of the trees only.
    assert 5 * spread < needs.rows < 60 * spread


def test_wide_sharp_data_needs_what_nobody_has():
    needs = attention_needs(rows=1347, key_dim=64, value_dim=10, largest_logit=6.0, **SPEND)
    assert needs.state_bytes > 1e18
    assert needs.rows > 1e12


def test_bad_logits_are_named():
    with pytest.raises(InvalidInput, match="largest_logit"):
        attention_needs(rows=10, key_dim=2, value_dim=1, largest_logit=0.0, **SPEND)
