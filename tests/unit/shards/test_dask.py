"""Dask as it runs: real workers, real files."""

import logging
import os
import signal
import threading
import uuid
import warnings
from contextlib import contextmanager, suppress
from types import SimpleNamespace

import numpy as np
import pytest
from data import unit_rows
from watching import Watch, eventually

dask = pytest.importorskip("dask", reason="needs the extra `dask`")
pytest.importorskip("pyarrow", reason="needs the extra `dask`")

import pyarrow as pa
from distributed import Client, LocalCluster, get_task_stream
from pyarrow import parquet

import discreet
from discreet.shards import Job, tasks
from discreet.shards import dask as cluster
from discreet.shards import dask as shards
from discreet.sums.partial import Partial
from discreet.sums.source import Table
from discreet.tables import Rows
from discreet.testing import Silent

ROWS, FILES = 600, 6
KEYS, VALUES = unit_rows(ROWS, 4), unit_rows(ROWS, 2, seed=1)
PEOPLE = np.arange(ROWS) * 7 % 90
PLAIN = {"epsilon": 1.0, "delta": 1e-6, "scale": 1.0, "rows_hint": 600}
OPTIONS = {**PLAIN, "group_rows": 2.0}
COLUMNS = {"keys": "key", "values": "one,two"}

# A row that can be recognised, in whatever form it is written.
PLANTED = np.array([0.4375, -0.21875, 0.328125, 0.109375])


def write(folder, *, keys=KEYS, values=VALUES):
    folder.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(ROWS), FILES)):
        columns = {"key": list(keys[rows]), "one": values[rows, 0], "two": values[rows, 1]}
        table = pa.table({**columns, "person": [f"person {each}" for each in PEOPLE[rows]]})
        parquet.write_table(table, folder / f"part-{number}.parquet")
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write(tmp_path_factory.mktemp("shards") / "data")


@pytest.fixture(scope="module")
def spill(tmp_path_factory):
    return tmp_path_factory.mktemp("spill")


@pytest.fixture(scope="module")
def client(spill):
    """Two workers that spill whatever they hold."""
    with (
        dask.config.set(
            {
                "distributed.worker.memory.target": 1e-6,
                "distributed.worker.memory.spill": False,
                "distributed.worker.memory.pause": False,
                "distributed.worker.memory.terminate": False,
            }
        ),
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            security=True,
            dashboard_address="127.0.0.1:0",
            local_directory=str(spill),
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as own,
    ):
        yield own


def built(*, groups=None, keys=KEYS):
    options = {
        name: at for name, at in OPTIONS.items() if groups is not None or name != "group_rows"
    }
    return discreet.build(keys, VALUES, groups=groups, entropy=Silent(), **options).released.state


def distributed(source, *, groups=None, **more):
    options = {
        name: at for name, at in OPTIONS.items() if groups is not None or name != "group_rows"
    }
    memory = shards.build(source, **COLUMNS, groups=groups, entropy=Silent(), **options, **more)
    return memory.released.state


def test_files_give_the_bits_of_one_build(data, client):
    assert np.array_equal(distributed(data, client=client), built())


def test_all_workers_have_work_from_the_start(data, client):
    """A scheduler gives tasks to whoever has the settings: that must not be one worker."""
    with get_task_stream(client) as stream:
        distributed(data, client=client)
    work = [task["worker"] for task in stream.data if "guarded" in str(task["key"])]
    assert len(work) > FILES
    assert set(work) == set(client.scheduler_info()["workers"])


def test_records_give_the_bits_of_one_build(data, client):
    got = distributed(data, client=client, groups="person")
    assert np.array_equal(got, built(groups=PEOPLE))


def test_rows_that_are_named_already(data, client):
    rows = Rows(data, **COLUMNS, groups="person")
    memory = shards.build(rows, client=client, entropy=Silent(), **OPTIONS)
    assert np.array_equal(memory.released.state, built(groups=PEOPLE))
    with pytest.raises(discreet.InvalidInput, match="named"):
        shards.build(rows, keys="key", client=client, **OPTIONS)


@pytest.mark.parametrize("groups", [None, "person"])
def test_a_collection_of_dask(data, client, groups):
    frames = pytest.importorskip("dask.dataframe", reason="needs pandas")
    frame = frames.read_parquet([str(path) for path in sorted(data.glob("*.parquet"))])
    people = None if groups is None else PEOPLE
    assert np.array_equal(distributed(frame, client=client, groups=groups), built(groups=people))


@pytest.mark.parametrize("groups", [None, "person"])
def test_nothing_that_dask_keeps_can_be_read(  # noqa: PLR0917
    tmp_path, client, spill, groups, capfd, monkeypatch
):
    keys = KEYS.copy()
    keys[::100] = PLANTED
    folder = write(tmp_path / "data", keys=keys)
    key = bytes(range(100, 132))
    monkeypatch.setattr("discreet.shards.job.new_key", lambda: key)
    with kept_when_removed(client, spill), Watch(spill) as watch:
        distributed(folder, client=client, groups=groups)
    assert b"discreet-partial-2" in watch.seen  # it did spill
    written = watch.seen + "".join(capfd.readouterr()).encode()
    needles = [PLANTED.tobytes(), PLANTED.astype(np.float32).tobytes(), key, b"person 7"]
    needles += [repr(float(PLANTED[0])).encode(), *exact_sums(keys)]
    assert [needle for needle in needles if needle in written] == []


@contextmanager
def kept_when_removed(client, folder):
    """Let workers keep in a folder what they remove: nothing is there too short to be seen."""

    def keep():
        remove = os.remove

        def kept(path, **given):
            with suppress(OSError):
                os.link(path, f"{folder}/{uuid.uuid4().hex}")
            remove(path, **given)

        os.remove, kept.plain = kept, remove

    def stop():
        os.remove = os.remove.plain

    client.run(keep)
    try:
        yield
    finally:
        client.run(stop)


def exact_sums(keys):
    """Return the beginning of what each file adds up to, as the machine has it."""
    job = Job(key_dim=4, value_dim=2, **PLAIN)
    for rows in np.array_split(np.arange(ROWS), FILES):
        sums = Partial.of([Table(keys[rows], VALUES[rows])], job.settings).sums
        yield sums[0].tobytes()[:24]


def test_the_watch_would_have_seen_it(client, spill):
    with Watch(spill) as watch:
        held = client.submit(lambda: PLANTED.tobytes() * 1000, pure=False)
        held.result()
        assert eventually(lambda: PLANTED.tobytes() in watch.seen)


@pytest.mark.parametrize("wrong", ["nan", "corrupt", "column"])
def test_what_a_worker_finds_wrong_is_one_sentence_here(tmp_path, client, wrong):
    keys = np.where(np.arange(ROWS)[:, None] == 333, np.nan, KEYS) if wrong == "nan" else KEYS
    folder = write(tmp_path / "data", keys=keys)
    columns = COLUMNS
    if wrong == "corrupt":
        path = folder / "part-3.parquet"
        data = path.read_bytes()
        path.write_bytes(data[:4] + bytes(100) + data[104:])  # its end is whole
    if wrong == "column":
        columns = {"keys": "key", "values": "three"}
    with pytest.raises(discreet.InvalidInput) as error:
        shards.build(folder, **columns, client=client, **PLAIN)
    assert "Expected" in str(error.value)


def test_rows_in_memory_need_no_workers(client):
    table = pa.table({"key": list(KEYS), "one": VALUES[:, 0], "two": VALUES[:, 1]})
    with pytest.raises(discreet.InvalidInput, match="files"):
        distributed(table, client=client)


@pytest.mark.parametrize(
    ("protocol", "security", "warned"),
    [("tcp", None, True), ("tls", True, False), ("inproc", None, False)],
)
def test_a_cluster_that_others_can_reach_is_warned_of(data, protocol, security, warned):
    """Also on this machine: its other users can connect to a port, and get the job's key."""
    with (
        LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            processes=False,
            protocol=f"{protocol}://",
            security=security,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        ) as own,
        Client(own) as client,
        warnings.catch_warnings(record=True) as found,
    ):
        warnings.simplefilter("always", discreet.PrivacyLeakWarning)
        assert np.array_equal(distributed(data, client=client), built())
        assert client.scheduler.address.startswith(protocol)
    told = [each for each in found if each.category is discreet.PrivacyLeakWarning]
    assert len(told) == warned
    for each in told:
        assert each.filename == __file__
        for word in ("scheduler", "key", "security=True", "inproc://", "shards.processes"):
            assert word in str(each.message)


@pytest.mark.parametrize(
    ("scheduler", "worker", "warned"),
    [
        ("tcp://192.0.2.7:8786", "tcp://192.0.2.7:1", True),
        ("ws://192.0.2.7:8786", "ws://192.0.2.7:1", True),
        ("inproc://a/1", "tcp://192.0.2.7:1", True),
        ("tcp://127.0.0.1:8786", "tls://192.0.2.7:1", True),
        ("tls://192.0.2.7:8786", "tls://192.0.2.8:1", False),
        ("wss://192.0.2.7:8786", "wss://192.0.2.8:1", False),
    ],
)
def test_a_connection_between_machines_that_others_can_read(scheduler, worker, warned):
    elsewhere = SimpleNamespace(
        scheduler=SimpleNamespace(address=scheduler), nthreads=lambda: {worker: 1}
    )
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        cluster.warn_if_anybody_listens(elsewhere)
    assert [each.category for each in found] == [discreet.PrivacyLeakWarning] * warned


def test_one_file_and_files_without_rows(tmp_path, client):
    folder = write(tmp_path / "data")
    alone = distributed(folder / "part-0.parquet", client=client)
    rows = slice(0, ROWS // FILES)
    built_alone = discreet.build(KEYS[rows], VALUES[rows], entropy=Silent(), **PLAIN)
    assert np.array_equal(alone, built_alone.released.state)
    empty = parquet.read_table(folder / "part-0.parquet").slice(0, 0)
    parquet.write_table(empty, folder / "part-9.parquet")
    assert np.array_equal(distributed(folder, client=client), built())
    got = distributed(folder, client=client, groups="person")
    assert np.array_equal(got, built(groups=PEOPLE))


def test_a_partition_without_rows(client):
    frames = pytest.importorskip("dask.dataframe", reason="needs pandas")
    pandas = pytest.importorskip("pandas")
    columns = {"key": list(KEYS), "one": VALUES[:, 0], "two": VALUES[:, 1], "n": range(ROWS)}
    with dask.config.set({"dataframe.convert-string": False}):  # else lists become texts
        whole = frames.from_pandas(pandas.DataFrame(columns), npartitions=3)
    some = whole[whole.n < 250]
    built_some = discreet.build(KEYS[:250], VALUES[:250], entropy=Silent(), **PLAIN)
    assert np.array_equal(distributed(some, client=client), built_some.released.state)


def test_an_error_on_its_way_carries_no_other(tmp_path, client):
    """An exception is pickled with those that it came from, which may quote a cell."""
    folder = write(tmp_path / "data")
    table = parquet.read_table(folder / "part-1.parquet")
    cells = pa.array([b"patient-J\xf6rg"] * len(table)).view(pa.string())
    place = table.schema.get_field_index("person")
    parquet.write_table(table.set_column(place, "person", cells), folder / "part-1.parquet")
    with pytest.raises(discreet.InvalidInput, match="UTF-8") as found:
        distributed(folder, client=client, groups="person")
    seen, error = b"", found.value
    while error is not None:
        seen += repr(error).encode() + repr(error.args).encode()
        error = error.__cause__ or error.__context__
    assert b"J\\xf6rg" not in seen
    assert b"patient" not in seen


def test_what_is_told_of_an_error():
    def told(error):
        def work():
            try:
                raise ValueError("secret")
            finally:
                raise error

        with pytest.raises((discreet.DiscreetError, MemoryError, OSError)) as found:
            tasks.guarded(work)
        assert found.value.__cause__ is found.value.__context__ is None
        return found.value

    assert str(told(discreet.InvalidInput("Expected a."))) == "Expected a."
    assert type(told(KeyError("secret"))) is discreet.DiscreetError
    assert "secret" not in str(told(KeyError("secret")))
    assert told(MemoryError("shape (1234567, 8)")).args == ()
    assert told(FileNotFoundError(2, "No such file", "a.parquet")).filename == "a.parquet"


def test_a_collection_has_a_cluster_of_its_own_if_there_is_none(data):
    frames = pytest.importorskip("dask.dataframe", reason="needs pandas")
    frame = frames.read_parquet([str(path) for path in sorted(data.glob("*.parquet"))])
    assert np.array_equal(distributed(frame, workers=1), built())


def test_files_need_no_cluster(data, monkeypatch):
    monkeypatch.setattr(shards, "own_cluster", None)
    assert np.array_equal(distributed(data, workers=1), built())


def tasks_in(cluster, *states):
    return [task for task in list(cluster.scheduler.tasks.values()) if task.state in states]


@pytest.mark.slow
@pytest.mark.parametrize("groups", [None, "person"])
def test_a_worker_that_is_killed_in_the_middle_changes_nothing(tmp_path, groups):
    keys = np.tile(KEYS, (100, 1))
    folder = tmp_path / "data"
    folder.mkdir()
    people = np.tile(PEOPLE, 100)
    values = np.tile(VALUES, (100, 1))
    for number, rows in enumerate(np.array_split(np.arange(len(keys)), 40)):
        columns = {"key": list(keys[rows]), "one": values[rows, 0], "two": values[rows, 1]}
        table = pa.table({**columns, "person": people[rows]})
        parquet.write_table(table, folder / f"{number:02d}.parquet")
    killed = []
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            security=True,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as own,
    ):
        pids = list(own.run(os.getpid).values())

        def kill():
            """Wait until some tasks are done, of many that take long."""
            if eventually(lambda: len(tasks_in(cluster, "memory")) > 4):
                os.kill(pids[0], signal.SIGKILL)
                killed.append(len(tasks_in(cluster, "waiting", "processing", "queued")))

        thread = threading.Thread(target=kill)
        thread.start()
        memory = shards.build(
            folder,
            **COLUMNS,
            groups=groups,
            client=own,
            entropy=Silent(),
            epsilon=1.0,
            delta=1e-6,
            scale=1.0,
            kernel="fourier",
            rows_hint=60_000,
        )
        thread.join()
    assert killed[0] > 0  # while rows were added up
    whole = discreet.build(
        keys,
        values,
        groups=None if groups is None else people,
        entropy=Silent(),
        epsilon=1.0,
        delta=1e-6,
        scale=1.0,
        kernel="fourier",
        rows_hint=60_000,
    )
    assert np.array_equal(memory.released.state, whole.released.state)
