"""Commands that see mounts of their own, gone when they end; and root, without its rights."""

import os
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


def as_anybody():
    """Return what to put before a command so that rights are looked at, also those of root."""
    if os.geteuid() != 0:
        return []
    plain = ["setpriv", "--inh-caps=-all", "--bounding-set=-all"]
    if (
        shutil.which("setpriv") is None
        or subprocess.run([*plain, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("root cannot do without its rights here")
    return plain
