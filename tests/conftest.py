"""Settings that all tests share, and what the tests of several packages look at."""

import warnings

import pytest
from hypothesis import HealthCheck, settings

from discreet.errors import MostlyNoiseWarning

# No deadline: the machines that run this have noisy neighbours. Contracts are classes, whose tests
# several classes inherit; none of them keeps anything in `self`.
settings.register_profile(
    "discreet",
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.differing_executors],
)
settings.load_profile("discreet")


@pytest.fixture(scope="session")
def found():
    """What the demo finds out, from few builds."""
    from discreet_benchmarks.demo import find

    with warnings.catch_warnings():
        # The demo tells its story, and no prediction of what it measures.
        warnings.simplefilter("error", MostlyNoiseWarning)
        return find(2, epsilons=(0.5, 1.0, 4.0), trials=40)
