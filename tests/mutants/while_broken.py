"""For pytest, where something is broken on purpose: be short.

Hypothesis stops at the first example that fails, since any catches a mutant. And tests that go
round in circles end after so many seconds of the processor, however busy the machine is.
"""

import os
import resource

from hypothesis import Phase, settings

SECONDS = "MUTANTS_SECONDS"

if SECONDS in os.environ:
    most = int(os.environ[SECONDS])
    resource.setrlimit(resource.RLIMIT_CPU, (most, most + 1))


def pytest_collection() -> None:
    """Before tests are imported, and after the settings that they share."""
    settings.register_profile(
        "mutants",
        settings.get_profile("discreet"),
        phases=[Phase.explicit, Phase.generate],
        database=None,
        report_multiple_bugs=False,
    )
    settings.load_profile("mutants")
