"""Outputs that cannot be written: nothing was drawn and nothing counted, or all bytes are there.

Through the command line itself, with a ledger, on disks that are full, read-only, or mounted oddly.
"""

import logging
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys

import numpy as np
import pytest
from data import unit_rows
from mounts import as_anybody, in_own_mounts, needs_mounts

import discreet
from discreet.ledger import Ledger, State

DISCREET = [sys.executable, "-m", "discreet"]
COUNTED = ["--epsilon", "1", "--delta", "1e-6", "--ledger", "budget.db", "--dataset", "clinic"]
TABLE = ["data.npz", "--keys", "keys", "--values", "values"]
MEMORY = ["--scale", "1.5", "--kernel", "fourier", *COUNTED]
CLASSES = ",".join(map(str, range(40)))
COMMANDS = {
    "build": ["build", "keys.npy", "values.npy", *MEMORY],
    "workers": ["build", *TABLE, "--workers", "1", *MEMORY],
    "fit": ["fit", "data.npz", "--classes", CLASSES, "--features", "waves", *COUNTED],
}
OUTPUT = pathlib.Path("out/release.safetensors")
# Runs a command, and prints what it left in the folder.
THEN_LIST = ["sh", "-c", '"$@"; code=$?; ls -A out; exit $code', "sh"]
each_command = pytest.mark.parametrize(
    "command",
    ["build", *(pytest.param(each, marks=pytest.mark.slow) for each in ("workers", "fit"))],
)

# Runs the command line, and does something at a moment that only a program can hit: as the noise is
# about to be drawn (a folder or a limit changes), or as the file is about to take its name.
AT_A_MOMENT = """
import os, resource, signal, sys
from discreet.cli import main
from discreet.ledger import Ledger

output = os.path.abspath({output!r})

def refuse_names_for_files_without(event, arguments):
    if event == "os.link" and str(arguments[0]).startswith("/proc"):
        raise PermissionError(1, "Operation not permitted")

def as_noise_is_drawn(draw=Ledger.draw):
    def then(ledger, id):
        draw(ledger, id)
        {as_noise_is_drawn}
    Ledger.draw = then

def as_it_takes_its_name(event, arguments):
    if event in ("os.link", "os.rename") and os.path.abspath(arguments[1]) == output:
        {as_it_takes_its_name}

as_noise_is_drawn()
sys.addaudithook(as_it_takes_its_name)
sys.argv = ["discreet", *sys.argv[1:]]
main()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("out", "temporary", "home", "host"):
        (tmp_path / name).mkdir()
    keys, values = unit_rows(300, 5), unit_rows(300, 40, seed=1)
    np.save("keys.npy", keys)
    np.save("values.npy", values)
    np.savez("data.npz", keys=keys, values=values, label=(keys[:, 0] > 0).astype(int))
    Ledger("budget.db").create("clinic", epsilon=2, delta=1e-5)
    return tmp_path


def run(command, *more, output=OUTPUT, at=None, before=(), **options):
    named = COMMANDS[command] if isinstance(command, str) else command
    arguments = [*named, "-o", str(output), *more]
    moments = {"as_noise_is_drawn": "pass", "as_it_takes_its_name": "pass", **(at or {})}
    script = AT_A_MOMENT.format(output=str(output), **moments)
    start = DISCREET if at is None else [sys.executable, "-c", script]
    return subprocess.run(
        [*before, *start, *arguments], capture_output=True, text=True, check=False, **options
    )


def spends():
    return Ledger("budget.db").statement("clinic").spends


def assert_nothing_spent(done, *said):
    assert done.returncode == 2, done.stderr
    assert (done.stdout, done.stderr.count("\n")) == ("", 1)
    assert all(each in done.stderr for each in said), done.stderr
    assert spends() == ()


def assert_kept(done, code, *said):
    """All bytes are in a file that the message and the ledger name, and it takes its place."""
    assert done.returncode == code, done.stderr
    errors = [line for line in done.stderr.splitlines() if "warning: Answers" not in line]
    assert len(errors) == 1, done.stderr
    assert all(each in done.stderr for each in said), done.stderr
    assert "counted in the ledger" in done.stderr
    [(kept, to)] = re.findall(r"\(mv (\S+) (\S+)\)", done.stderr)
    [spend] = spends()
    assert (spend.state, spend.places) == (State.RELEASED, (kept,))
    assert kept.endswith(".part")
    assert discreet.load(kept).receipt == spend.receipt
    return pathlib.Path(kept), to


@each_command
def test_all_is_well_where_there_is_room(command):
    done = run(command)
    assert done.returncode == 0, done.stderr
    assert os.listdir("out") == [OUTPUT.name]
    [spend] = spends()
    assert discreet.load(OUTPUT).receipt == spend.receipt
    assert spend.places == (str(OUTPUT),)
    assert OUTPUT.stat().st_mode & 0o777 == 0o666 & ~umask()


def umask():
    before = os.umask(0)
    os.umask(before)
    return before


@needs_mounts
@each_command
def test_a_full_disk_is_known_before_noise_is_drawn(command):
    done = in_own_mounts(
        [["-t", "tmpfs", "-o", "size=8k", "none", "out"]],
        [*THEN_LIST, *DISCREET, *COMMANDS[command], "-o", OUTPUT],
    )
    assert_nothing_spent(done, "No space left on device", "nothing is spent")


@needs_mounts
@each_command
def test_an_output_that_is_mounted_by_itself_is_known_before_noise_is_drawn(command):
    for place in ("host/release.safetensors", OUTPUT):
        pathlib.Path(place).write_bytes(b"before")
    done = in_own_mounts(
        [["--bind", "host/release.safetensors", OUTPUT]],
        [*DISCREET, *COMMANDS[command], "-o", OUTPUT, "--force"],
    )
    assert_nothing_spent(done, "mounted by itself: mount its folder")
    assert {path.read_bytes() for path in pathlib.Path().glob("*/*")} == {b"before"}


@needs_mounts
def test_a_mounted_folder_is_as_good_as_any():
    done = in_own_mounts([["--bind", "host", "out"]], [*DISCREET, *COMMANDS["build"], "-o", OUTPUT])
    assert done.returncode == 0, done.stderr
    assert discreet.load("host/release.safetensors").receipt == spends()[0].receipt


@needs_mounts
def test_a_disk_that_is_read_only_is_known_before_noise_is_drawn():
    done = in_own_mounts(
        [["-t", "tmpfs", "-o", "ro", "none", "out"]],
        [*DISCREET, *COMMANDS["build"], "-o", OUTPUT],
    )
    assert_nothing_spent(done, "out to be a directory that can be written to")


def limited():
    """Let no file grow beyond this, which is enough for a ledger as long as it is only read."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**16, 2**16))


@each_command
def test_a_limit_on_files_is_known_before_noise_is_drawn(command):
    done = run(command, preexec_fn=limited)
    assert_nothing_spent(done, "File too large", "nothing is spent")
    assert os.listdir("out") == []


@pytest.mark.slow
def test_a_cluster_is_asked_when_there_is_room():
    distributed = pytest.importorskip("distributed", reason="needs the extra `dask`")
    with distributed.LocalCluster(
        n_workers=1,
        processes=False,
        protocol="tcp://",
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
    ) as cluster:
        command = ["build", *TABLE, "--scheduler", cluster.scheduler_address, *MEMORY]
        refused = run(command, preexec_fn=limited)
        assert "File too large), and needs" in refused.stderr
        assert (refused.returncode, spends()) == (2, ())
        done = run(command)
    assert done.returncode == 0, done.stderr
    assert discreet.load(OUTPUT).receipt == spends()[0].receipt


@each_command
def test_a_folder_that_may_not_be_written_to_is_known_before_noise_is_drawn(command):
    os.chmod("out", 0o555)
    done = run(command, before=as_anybody())
    os.chmod("out", 0o755)
    assert_nothing_spent(done, "out to be a directory that can be written to")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs files of somebody else")
@each_command
def test_a_file_that_may_not_be_replaced_is_known_before_noise_is_drawn(command):
    OUTPUT.write_bytes(b"of somebody else")
    for each in ("out", OUTPUT):
        os.chown(each, 65534, 65534)
    os.chmod("out", 0o1777)
    assert_nothing_spent(run(command, "--force", before=as_anybody()), "Operation not permitted")
    assert OUTPUT.read_bytes() == b"of somebody else"
    done = run(command, output="out/own.safetensors", before=as_anybody())
    assert done.returncode == 0, done.stderr


@each_command
def test_what_is_there_is_replaced_on_demand_only(command):
    OUTPUT.write_bytes(b"before")
    assert_nothing_spent(run(command), "not to exist yet; --force replaces it")
    assert OUTPUT.read_bytes() == b"before"
    OUTPUT.unlink()
    OUTPUT.symlink_to("nowhere")
    assert_nothing_spent(run(command), "not to exist yet; --force replaces it")
    done = run(command, "--force")
    assert done.returncode == 0, done.stderr
    assert discreet.load(OUTPUT).receipt == spends()[0].receipt


@each_command
def test_a_name_that_somebody_else_took_meanwhile(command):
    at = {"as_noise_is_drawn": "open(output, 'wb').write(b'other')"}
    kept, to = assert_kept(run(command, at=at), 2, "File exists")
    assert (kept.parent, to) == (OUTPUT.parent, "ANOTHER-NAME")
    assert OUTPUT.read_bytes() == b"other"


@each_command
def test_a_folder_that_is_gone_meanwhile(command, folder):
    at = {"as_noise_is_drawn": "os.rename('out', 'away')"}
    kept, to = assert_kept(run(command, at=at), 2, "No such file or directory")
    assert (kept.parent, to) == (folder / "temporary", str(OUTPUT))
    assert kept.stat().st_mode & 0o777 == 0o600
    assert os.listdir("away") == []


def test_a_system_that_gives_no_names_to_files_without():
    at = {"as_noise_is_drawn": "sys.addaudithook(refuse_names_for_files_without)"}
    kept, to = assert_kept(run("build", at=at), 2, "Operation not permitted")
    assert (kept.parent, to) == (OUTPUT.parent, str(OUTPUT))
    assert os.listdir("out") == [kept.name]


def test_a_folder_that_is_written_to_but_not_read():
    os.chmod("out", 0o333)
    done = run("build", before=as_anybody())
    os.chmod("out", 0o755)
    assert done.returncode == 0, done.stderr
    assert os.listdir("out") == [OUTPUT.name]


def test_room_that_is_gone_everywhere_is_said_and_counted():
    at = {"as_noise_is_drawn": "resource.setrlimit(resource.RLIMIT_FSIZE, (2**18, 2**18))"}
    done = run("build", at=at)
    assert done.returncode == 2
    assert "File too large" in done.stderr
    assert "counted in the ledger all the same, and is lost" in done.stderr
    assert spends()[0].state is State.SPENT
    assert list(pathlib.Path().glob("**/*.part")) == os.listdir("out") == []


@pytest.mark.parametrize(
    ("command", "name", "code"), [("build", "SIGINT", 130), ("fit", "SIGTERM", 143)]
)
def test_a_signal_while_it_takes_its_name(command, name, code):
    at = {"as_it_takes_its_name": f"os.kill(os.getpid(), signal.{name})"}
    done = run(command, at=at)
    kept, to = assert_kept(done, code, "all of it is in")
    assert "nothing was written" not in done.stderr
    assert (kept.parent, to) == (OUTPUT.parent, str(OUTPUT))
    assert not OUTPUT.exists()


@pytest.mark.parametrize(
    ("command", "force"),
    [("build", False), pytest.param("fit", True, marks=pytest.mark.slow)],
)
def test_a_kill_while_it_takes_its_name(command, force):
    at = {"as_it_takes_its_name": "os.kill(os.getpid(), signal.SIGKILL)"}
    if force:
        OUTPUT.write_bytes(b"before")
    done = run(command, *["--force"] * force, at=at)
    assert done.returncode == -signal.SIGKILL
    [left] = pathlib.Path("out").glob("*.part")
    [spend] = spends()
    assert spend.state is State.SPENT
    assert discreet.load(left).receipt == spend.receipt
    assert OUTPUT.exists() is force
    # The next run says so before it pays again, and leaves it alone.
    done = run(command, "--force", "--epsilon", "0.1")
    assert f"{left} is complete, and left of an earlier run" in " ".join(done.stderr.split())
    assert done.returncode == 0
    assert discreet.load(left).receipt == spend.receipt
    assert discreet.load(OUTPUT).receipt == spends()[1].receipt


def test_a_kill_while_noise_is_drawn_leaves_no_file():
    done = run("build", at={"as_noise_is_drawn": "os.kill(os.getpid(), signal.SIGKILL)"})
    assert done.returncode == -signal.SIGKILL
    assert os.listdir("out") == []


@needs_mounts
@pytest.mark.parametrize(
    "command",
    [
        "attention",
        *(pytest.param(each, marks=pytest.mark.slow) for each in ("softmax", "distance")),
    ],
)
def test_structures_are_built_when_there_is_room_for_their_answers(command):
    arguments = ["paper", command, "--rows", "64", "--epsilon", "50", "-o", "out/answers.npy"]
    held = ["-t", "tmpfs", "-o", "size=4k", "none", "out"]
    full = ["sh", "-c", 'head -c 4096 /dev/zero > out/full; "$@"', "sh"]
    done = in_own_mounts([held], [*full, *DISCREET, *arguments])
    assert_nothing_spent(done, "No space left on device", "nothing is spent")
    done = in_own_mounts([held], [*DISCREET, *arguments])
    assert done.returncode == 0, done.stderr
