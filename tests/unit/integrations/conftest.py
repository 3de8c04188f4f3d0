"""What tests of models share."""

import subprocess
import sys

import pytest

# Some processors die on half-precision products, which no test can catch: another process tries.
_TRIAL = "import torch; torch.nn.Linear(16, 16).to(torch.{0})(torch.ones(3, 16, dtype=torch.{0}))"


@pytest.fixture(scope="session")
def half_precision_works():
    """Skip where this processor has no linear layers of a precision."""

    def check(dtype):
        name = str(dtype).partition(".")[2]
        tried = subprocess.run(
            [sys.executable, "-c", _TRIAL.format(name)], capture_output=True, check=False
        )
        if tried.returncode:
            pytest.skip(f"linear layers of {name} die on this processor ({tried.returncode})")

    return check
