"""Workers of this machine as they run: real processes, real files."""

import os
import signal
import subprocess
import sys
import tempfile

import numpy as np
import pytest
import worker_tasks
from data import unit_rows
from watching import Watch, eventually

pa = pytest.importorskip("pyarrow", reason="needs the extra `parquet`")
from pyarrow import parquet

import discreet
from discreet.shards import Job, processes, tasks
from discreet.shards.pool import WorkerPool
from discreet.sums.partial import Partial
from discreet.sums.source import Table
from discreet.tables import Rows
from discreet.testing import Silent

ROWS, FILES = 600, 6
KEYS, VALUES = unit_rows(ROWS, 4), unit_rows(ROWS, 2, seed=1)
PEOPLE = np.arange(ROWS) * 7 % 90
PLAIN = {"epsilon": 1.0, "delta": 1e-6, "scale": 1.0, "rows_hint": 600}
COLUMNS = {"keys": "key", "values": "value"}

# A row that can be recognised, in whatever form it is written.
PLANTED = np.array([0.4375, -0.21875, 0.328125, 0.109375])


def write(folder, *, keys=KEYS, values=VALUES, people=PEOPLE, files=FILES):
    folder.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(len(keys)), files)):
        columns = {"key": list(keys[rows]), "value": list(values[rows])}
        table = pa.table({**columns, "person": [f"person {each}" for each in people[rows]]})
        parquet.write_table(table, folder / f"part-{number:02d}.parquet")
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write(tmp_path_factory.mktemp("processes") / "data")


@pytest.fixture(scope="module")
def job():
    return Job(key_dim=4, value_dim=2, **PLAIN)


@pytest.fixture(scope="module")
def pool(job):
    with WorkerPool(2) as own:
        own.brief(job.__getstate__())
        yield own


def people_of(groups):
    return None if groups is None else PEOPLE


@pytest.mark.parametrize(("groups", "workers"), [(None, 2), ("person", 1)])
def test_files_give_the_bits_of_one_build(data, groups, workers):
    got = processes.build(
        data, **COLUMNS, groups=groups, workers=workers, entropy=Silent(), **PLAIN
    )
    whole = discreet.build(KEYS, VALUES, groups=people_of(groups), entropy=Silent(), **PLAIN)
    assert np.array_equal(got.released.state, whole.released.state)
    assert got.guarantee == whole.guarantee


def test_what_was_given_is_checked(data, tmp_path):
    rows = Rows(data, **COLUMNS)
    with pytest.raises(discreet.InvalidInput, match="named"):
        processes.build(rows, keys="key", workers=1, **PLAIN)
    table = pa.table({"key": list(KEYS), "value": list(VALUES)})
    with pytest.raises(discreet.InvalidInput, match="files"):
        processes.build(table, **COLUMNS, workers=1, **PLAIN)
    with pytest.raises(discreet.InvalidInput, match="workers"):
        processes.build(rows, workers=0, **PLAIN)


def test_what_is_released_is_counted(data, tmp_path):
    ledger = discreet.ledger.Ledger(tmp_path / "budget.db")
    ledger.create("clinic", epsilon=1.2, delta=1e-5, neighbours="add_remove")
    counted = {"ledger": ledger, "dataset": "clinic", "workers": 1, **COLUMNS, **PLAIN}
    processes.build(data, **counted)
    with pytest.raises(discreet.BudgetExceeded):
        processes.build(data, **counted)


def test_tasks_come_back_whatever_is_printed_on_the_way(pool):
    work = [(worker_tasks.answer, (number,)) for number in range(20)]
    found = sorted(pool.results(work))
    assert found == [((4, 2), number) for number in range(20)]


def test_all_workers_work(pool):
    seen = set(pool.results([(worker_tasks.name_of_process, ())] * 4))
    assert len(seen) == 2
    assert os.getpid() not in seen


def test_a_worker_has_one_thread_whatever_is_asked_of_others(job, monkeypatch):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    with WorkerPool(1) as own:
        own.brief(job.__getstate__())
        [environment] = own.results([(worker_tasks.environment, ())])
    assert environment["OPENBLAS_NUM_THREADS"] == "1"


def test_results_that_nobody_waits_for_end_the_crew(job):
    with WorkerPool(2) as own:
        own.brief(job.__getstate__())
        with pytest.raises(discreet.DiscreetError, match="ValueError"):
            list(own.results([(worker_tasks.fail, ()), (worker_tasks.never_end, ())]))
        with pytest.raises(discreet.DiscreetError, match="sent home"):
            list(own.results([(worker_tasks.answer, (1,))]))


def test_what_a_task_raises_says_no_more_than_others_may_know(pool):
    with pytest.raises(discreet.DiscreetError, match="ValueError") as found:
        list(pool.results([(worker_tasks.fail, ())]))
    assert "secret" not in repr(found.value)
    assert found.value.__cause__ is found.value.__context__ is None


def test_a_worker_that_dies_is_replaced_and_its_task_done_again(tmp_path, job):
    with WorkerPool(2) as own:
        own.brief(job.__getstate__())
        deadly = [(worker_tasks.die_once, (str(tmp_path / str(number)),)) for number in range(3)]
        plain = [(worker_tasks.answer, (number,)) for number in range(3)]
        found = list(own.results([*deadly, *plain]))
    assert found.count("done") == 3
    assert sorted(each for each in found if each != "done") == [((4, 2), n) for n in range(3)]


def test_a_task_that_ends_every_worker_ends_the_build(job):
    with WorkerPool(1) as own:
        own.brief(job.__getstate__())
        with pytest.raises(discreet.DiscreetError, match="stay alive"):
            list(own.results([(worker_tasks.die, ())]))


@pytest.mark.parametrize("groups", [None, "person"])
def test_nothing_that_lies_on_a_disk_meanwhile_can_be_read(tmp_path, groups, capfd, monkeypatch):
    keys = KEYS.copy()
    keys[::100] = PLANTED
    folder = write(tmp_path / "data", keys=keys)
    key = bytes(range(100, 132))
    monkeypatch.setattr("discreet.shards.job.new_key", lambda: key)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with Watch(temporary) as watch:
        monkeypatch.setattr(tempfile, "TemporaryDirectory", looked_at(watch))
        processes.build(folder, **COLUMNS, groups=groups, workers=2, entropy=Silent(), **PLAIN)
    assert (watch.files > 0) == (groups is not None)
    assert list(temporary.iterdir()) == []
    written = watch.seen + "".join(capfd.readouterr()).encode()
    needles = [PLANTED.tobytes(), PLANTED.astype(np.float32).tobytes(), key, b"person 7"]
    needles += [repr(float(PLANTED[0])).encode(), *exact_sums(keys)]
    assert [needle for needle in needles if needle in written] == []


def looked_at(watch):
    """Folders that are looked at once more before they are removed."""

    class Folder(tempfile.TemporaryDirectory):
        def cleanup(self):
            watch.look()
            super().cleanup()

    return Folder


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs Linux")
def test_a_full_disk_is_named(data):
    [file, *_] = Rows(data, **COLUMNS, groups="person").parts()
    by_record = Job(key_dim=4, value_dim=2, by_record=True, **PLAIN)
    with pytest.raises(OSError, match=r"No space left on device: '/dev/full'"):
        tasks.scatter_to_files(by_record, file, ["/dev/full"])


def exact_sums(keys):
    """Return the beginning of what each file adds up to, as the machine has it."""
    job = Job(key_dim=4, value_dim=2, **PLAIN)
    for rows in np.array_split(np.arange(ROWS), FILES):
        sums = Partial.of([Table(keys[rows], VALUES[rows])], job.settings).sums
        yield sums[0].tobytes()[:24]


def test_the_key_is_in_no_command_line_and_in_no_environment(pool, job):
    [environment] = pool.results([(worker_tasks.environment, ())])
    secret, _ = job.__getstate__()
    for form in (secret.key.hex(), repr(secret.key), str(list(secret.key))):
        assert form not in repr(environment)
    for worker in pool._workers:
        assert secret.key not in b" ".join(os.fsencode(each) for each in worker.process.args)


SCRIPT = """
import sys
from discreet.shards.processes import build
from discreet.testing import Silent

memory = build(sys.argv[1], keys="key", values="value", workers=2, entropy=Silent(),
               epsilon=1.0, delta=1e-6, scale=1.0, rows_hint=600)
print(memory.released.state.sum())
"""


def test_a_plain_script_can_have_workers(data, tmp_path):
    """They import no script: nothing has to stand below `if __name__ == "__main__"`."""
    path = tmp_path / "script.py"
    path.write_text(SCRIPT, encoding="utf-8")
    (tmp_path / "pickle.py").write_text("raise SystemExit(1)")  # where workers must not look first
    done = subprocess.run(
        [sys.executable, "-P", "-W", "ignore", str(path), str(data)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    whole = discreet.build(KEYS, VALUES, entropy=Silent(), **PLAIN)
    assert done.stdout.strip() == str(whole.released.state.sum()), done.stderr


WAITING = """
import time
from discreet.shards.pool import WorkerPool

with WorkerPool(2) as pool:
    print(*[worker.process.pid for worker in pool._workers], flush=True)
    time.sleep(600)
"""


def test_workers_end_with_the_process_that_started_them():
    process = subprocess.Popen([sys.executable, "-c", WAITING], stdout=subprocess.PIPE, text=True)
    pids = [int(pid) for pid in process.stdout.readline().split()]
    assert all(map(is_alive, pids))
    process.kill()
    process.communicate()
    assert eventually(lambda: not any(map(is_alive, pids)))


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as status:
            return status.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("groups", [None, pytest.param("person", marks=pytest.mark.slow)])
def test_workers_that_are_killed_in_the_middle_change_nothing(tmp_path, groups, monkeypatch):
    keys, values, people = (np.concatenate([each] * 40) for each in (KEYS, VALUES, PEOPLE))
    folder = write(tmp_path / "data", keys=keys, values=values, people=people, files=40)
    options = {**PLAIN, "kernel": "fourier", "rows_hint": 24_000}
    killed = set()

    def results(pool, work):
        """Kill each worker once, while others are at work or just before they get some."""
        for count, each in enumerate(all_results(pool, work)):
            if count in (3, 8):
                worker = pool._workers[len(killed) % 2].process
                os.kill(worker.pid, signal.SIGKILL)
                killed.add(worker.pid)
            yield each

    all_results = WorkerPool.results
    monkeypatch.setattr(WorkerPool, "results", results)
    memory = processes.build(
        folder, **COLUMNS, groups=groups, workers=2, entropy=Silent(), **options
    )
    assert len(killed) >= 2
    people = None if groups is None else people
    whole = discreet.build(keys, values, groups=people, entropy=Silent(), **options)
    assert np.array_equal(memory.released.state, whole.released.state)
