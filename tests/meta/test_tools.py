"""Scripts that prepare a machine: tried with commands that only write down what they are told."""

import os
import pathlib
import subprocess

import pytest

INSTALL = "apt-get install -y --no-install-recommends"
SCRIPT = pathlib.Path(__file__).parents[2] / "tools" / "install-debian-packages"


def run(folder, commands, *arguments):
    """Run the script where only these commands exist; return it and what they were told."""
    for name, body in commands.items():
        (folder / name).write_text(f'#!/bin/sh\necho {name} "$@" >> {folder}/told\n{body}\n')
        (folder / name).chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", str(SCRIPT), *arguments],
        env={"PATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    told = folder / "told"
    return done, told.read_text().splitlines() if told.exists() else []


def test_the_script_can_be_run():
    assert os.access(SCRIPT, os.X_OK)


def test_what_is_there_is_left_alone(tmp_path):
    done, told = run(tmp_path, {"chromium": "", "apt-get": ""})
    assert done.returncode == 0
    assert told == []


@pytest.mark.parametrize("user", [0, 1000])
def test_what_is_missing_is_installed_as_root(tmp_path, user):
    commands = {"apt-get": "", "env": "", "sudo": "", "id": f"echo {user}"}
    done, told = run(tmp_path, commands)
    assert done.returncode == 0, done.stderr
    first = "sudo " if user else ""
    assert told[-2:] == [
        f"{first}apt-get update",
        f"{first}env DEBIAN_FRONTEND=noninteractive {INSTALL} chromium",
    ]


def test_without_debian_it_says_what_is_needed(tmp_path):
    done, _ = run(tmp_path, {})
    assert done.returncode == 1
    assert "need chromium" in done.stderr


def test_it_installs_what_it_is_asked_for_and_is_not_there(tmp_path):
    query = 'case "$*" in *libold) echo installed;; *) exit 1;; esac'
    commands = {"apt-get": "", "env": "", "id": "echo 0", "dpkg-query": query, "coqc": ""}
    commands["grep"] = 'read -r line && [ "$line" = installed ]'
    done, told = run(tmp_path, commands, "coqc:coq", ":libold", ":libnew", "other:package")
    assert done.returncode == 0, done.stderr
    assert told[-1] == f"env DEBIAN_FRONTEND=noninteractive {INSTALL} libnew package"


def test_libraries_alone_are_asked_of_dpkg(tmp_path):
    done, _ = run(tmp_path, {}, ":libcoq")
    assert done.returncode == 1
    assert "need libcoq" in done.stderr
