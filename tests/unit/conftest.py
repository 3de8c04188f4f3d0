"""What the tests of several rooms look at."""

import warnings

import pytest

from discreet.errors import MostlyNoiseWarning


@pytest.fixture(scope="session")
def found():
    """What the demo finds out, from few builds."""
    from discreet.demo import find

    with warnings.catch_warnings():
        # The demo tells its story, and no prediction of what it measures.
        warnings.simplefilter("error", MostlyNoiseWarning)
        return find(2, epsilons=(0.5, 1.0, 4.0), trials=40)
