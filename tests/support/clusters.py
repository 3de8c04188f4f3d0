"""A PostgreSQL cluster in a temporary folder, for tests: on a socket there, with no other door."""

import os
import pathlib
import pwd
import shutil
import subprocess
import tempfile

import psycopg
import pytest

_SETTINGS = """
listen_addresses = ''
unix_socket_directories = '{folder}'
shared_buffers = 16MB
max_wal_size = 16MB
min_wal_size = 2MB
max_connections = 60
autovacuum = off
"""


def programs():
    """Return the folder of initdb and the others, or skip the test with a reason."""
    asked = shutil.which("pg_config") and subprocess.run(
        ["pg_config", "--bindir"], capture_output=True, text=True, check=False
    )
    said = [pathlib.Path(asked.stdout.strip())] if asked and asked.returncode == 0 else []
    debian = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in (*said, *debian):
        if (folder / "initdb").exists():
            return folder
    pytest.skip("needs PostgreSQL's server: apt-get install postgresql")


def _quick_folder():
    """Return a folder in memory if there is room: no test cuts the power, and disks are slow."""
    memory = pathlib.Path("/dev/shm")
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > 500 << 20
    return memory if roomy and os.access(memory, os.W_OK) else pathlib.Path("/tmp")


class Cluster:
    """A server and its data; stopped or killed, started again, copied.

    PostgreSQL refuses to run as root: then it runs as nobody, or as postgres if there is one.
    """

    def __init__(self):
        self.bin = programs()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="pg-", dir=_quick_folder()))
        self.data = self.folder / "data"
        if os.getuid() == 0:
            names = {each.pw_name for each in pwd.getpwall()}
            self.user = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
            os.chown(self.folder, self.user.pw_uid, self.user.pw_gid)
        else:
            self.user = None
        flags = ("--auth=trust", "--username=owner", "--no-sync", "--no-locale", "--encoding=UTF8")
        self.run("initdb", "--pgdata", self.data, "--wal-segsize=1", *flags)
        with (self.data / "postgresql.conf").open("a") as file:
            file.write(_SETTINGS.format(folder=self.folder))
            if int((self.data / "PG_VERSION").read_text()) >= 14:  # else each file by itself
                file.write("recovery_init_sync_method = syncfs\n")
        self.start()

    def run(self, name, *arguments):
        self.as_user([self.bin / name, *arguments])

    def as_user(self, command):
        leave = {}
        if self.user is not None:
            leave = {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []}
        log = self.folder / "programs.log"
        with log.open("ab") as file:
            done = subprocess.run(
                command, stdout=file, stderr=file, cwd=self.folder, check=False, **leave
            )
        assert done.returncode == 0, log.read_text()

    def start(self):
        log = self.folder / "server.log"
        self.run("pg_ctl", "start", "--wait", "--pgdata", self.data, "--log", log)

    def stop(self, mode="fast"):
        self.run("pg_ctl", "stop", "--wait", "--pgdata", self.data, "--mode", mode)

    def kill(self):
        """Kill the server at once, as a power cut would, and wait until all of it is gone."""
        self.stop("immediate")

    def promote(self):
        self.run("pg_ctl", "promote", "--wait", "--pgdata", self.data)

    def copy_to(self, name):
        """Copy the data of a server that is stopped."""
        self.as_user(["cp", "-a", self.data, self.folder / name])

    def put_back(self, name):
        """Go on from such a copy."""
        self.stop("immediate")
        self.data.rename(self.folder / f"before-{name}")
        (self.folder / name).rename(self.data)
        self.start()

    def address(self, user="owner", database="postgres", **more):
        query = "&".join(f"{key}={value}" for key, value in {"host": self.folder, **more}.items())
        return f"postgresql://{user}@/{database}?{query}"

    def raw(self, user="owner"):
        return psycopg.connect(self.address(user), autocommit=True)

    def forget(self):
        """Drop the ledger and whatever may look at it, so that the next test begins with none."""
        with self.raw() as raw:
            raw.execute("DROP SCHEMA IF EXISTS discreet CASCADE")

    def remove(self):
        self.stop("immediate")
        shutil.rmtree(self.folder)
