"""What tests of models share."""

import functools
import subprocess
import sys

import pytest

# Some processors die on half-precision products, which no test can catch: another process tries.
_TRIAL = "import torch; torch.nn.Linear(16, 16).to(torch.{0})(torch.ones(3, 16, dtype=torch.{0}))"


@functools.cache
def _tried(name):
    command = [sys.executable, "-c", _TRIAL.format(name)]
    return subprocess.run(command, capture_output=True, check=False).returncode


@pytest.fixture(scope="session")
def half_precision_works():
    """Skip where this processor has no linear layers of a precision."""

    def check(dtype):
        name = str(dtype).partition(".")[2]
        if _tried(name):
            pytest.skip(f"linear layers of {name} die on this processor ({_tried(name)})")

    return check
