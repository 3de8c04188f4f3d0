"""What the tests of several rooms look at."""

import pytest


@pytest.fixture(scope="session")
def found():
    """What the demo finds out, from few builds."""
    from discreet.demo import find

    return find(2, epsilons=(0.5, 1.0, 4.0), trials=40)
