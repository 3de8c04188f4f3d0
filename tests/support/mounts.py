"""Commands that see mounts of their own, which are gone when they end."""

import shlex
import shutil
import subprocess

import pytest


def _may_mount() -> bool:
    if shutil.which("unshare") is None:
        return False
    tried = ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/tmp"]
    return subprocess.run(tried, capture_output=True, check=False).returncode == 0


needs_mounts = pytest.mark.skipif(not _may_mount(), reason="mounting is not permitted here")


def in_own_mounts(mounts, command, **options):
    """Run a command after mounts, each a list of arguments of `mount`, that only it sees."""
    lines = [["mount", *each] for each in mounts]
    script = " && ".join(shlex.join(map(str, each)) for each in (*lines, command))
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        **options,
    )
