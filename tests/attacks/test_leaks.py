"""One recognisable person is looked for wherever a release, or making one, leaves something.

In the file, in what is printed, logged and warned of, in errors, pickles and copies, on the disk,
in the objects that stay in memory, and in what other processes show of themselves. Their numbers,
their word and their id must be nowhere. (What of the builder's machine is not protected is said in
the threat model: swap, core files, memory while a build runs.)
"""

import copy
import gc
import hashlib
import io
import logging
import os
import pathlib
import pickle
import resource
import subprocess
import sys
import tempfile
import traceback
import warnings
from contextlib import contextmanager, redirect_stderr, redirect_stdout

import numpy as np
import pytest
from every_release import (
    KINDS,
    PERSON,
    ROWS,
    SAID,
    SPEND,
    STREAM_KEY,
    Data,
    betrayed,
    data,
    released,
)

import discreet
from discreet.errors import DiscreetError
from discreet.shards import Job
from discreet.testing import Silent

each_kind = pytest.mark.parametrize("kind", KINDS)
SILENT = Silent()
PRIVACY = pathlib.Path(__file__).parents[2] / "docs" / "privacy.md"


def test_the_person_would_be_found():
    """In arrays, however they are stored, in texts, and in what Python prints of them."""
    rows = data()
    assert betrayed(rows.keys.tobytes())
    assert betrayed(rows.values.astype("f4").tobytes())
    assert betrayed(rows.keys.astype(">f8").tobytes())
    assert betrayed(repr(rows.keys[7].tolist()))
    assert betrayed(f"{rows.keys[7, 0]:.10g}")
    assert betrayed(rows.texts[7])
    assert betrayed(pickle.dumps(rows.ids))
    assert betrayed(rows.texts[7].upper().lower())
    assert not any(betrayed(each) for each in (data(planted=False).keys.tobytes(), "", "0.12"))


# --- what is made ---------------------------------------------------------------------------------


@each_kind
def test_nothing_of_the_person_is_in_the_file(kind, shelf):
    assert betrayed(shelf.file(kind)) == []


@each_kind
def test_nothing_of_the_person_is_in_a_file_without_noise(kind, shelf):
    """A test source hides nobody; and even then single rows are not there, only sums of them."""
    assert betrayed(shelf.file(kind, entropy=SILENT)) == []


def seen_of(release):
    """All that a look at a release shows."""
    one = released(release)
    texts = [repr(release), str(release), repr(one), str(one.card), str(one.guarantee)]
    texts += [repr(one.receipt), str(one.card.to_dict()), str(dir(release))]
    within = getattr(one, "released", None)
    texts += [repr(within), f"{release:}"]
    return "\n".join(texts)


@each_kind
def test_nothing_of_the_person_is_in_what_is_printed(kind, shelf):
    release = shelf.release(kind)
    assert betrayed(seen_of(release)) == []
    answers = KINDS[kind].answers(release)
    assert betrayed("\n".join(map(repr, answers))) == []


def within(value, seen):
    """Everything that an object holds, however deep: arrays, bytes, texts and numbers."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, type | type(os) | type(within)):
            continue
        seen[id(one)] = one
        waiting += gc.get_referents(one)
        if isinstance(one, np.ndarray) and one.dtype == object:
            waiting += one.ravel().tolist()
    return seen.values()


def bytes_of(one):
    """What an object holds by itself, as bytes."""
    if isinstance(one, np.ndarray) and one.dtype != object:
        return one.tobytes()
    if isinstance(one, bytes | bytearray | memoryview):
        return bytes(one)
    if isinstance(one, str):
        return one.encode("utf-8", "surrogatepass")
    return repr(one).encode() if isinstance(one, float) else b""


@each_kind
def test_nothing_of_the_person_is_held_by_the_release(kind, tmp_path):
    release = KINDS[kind].build(tmp_path)
    KINDS[kind].answers(release)
    held = [bytes_of(one) for one in within(released(release), {})]
    assert len(held) > 30
    assert betrayed(b"\n".join(each for each in held if each)) == []


def alive():
    """All arrays that anything holds now."""
    held = gc.get_referents(*gc.get_objects())
    own = {id(each): each for each in held if type(each) is np.ndarray}
    return [each for each in own.values() if each.dtype != object]


def test_neither_rows_nor_exact_sums_outlive_any_build(tmp_path):
    """Whatever is still in memory when all kinds were made, of rows and of what they add up to."""
    exact = {hashlib.sha256(each).digest() for kind in KINDS for each in sums_of(kind, tmp_path)}
    before = alive()  # on the shelf, say
    known = set(map(id, before))
    made = [KINDS[kind].build(tmp_path) for kind in KINDS]
    for kind, release in zip(KINDS, made, strict=True):
        KINDS[kind].answers(release)
    gc.collect()
    arrays = [each for each in alive() if id(each) not in known]
    assert len(arrays) > 100
    assert any(each is released(made[0]).released.state for each in arrays)
    numbers = [each for each in arrays if each.dtype.kind == "f"]
    assert betrayed(b"\n".join(each.tobytes() for each in numbers)) == []
    # Noise on a few counts may be zero by chance: what was released is not what outlived a build.
    own = {id(state) for release in made for state in states_of(released(release))}
    others = [each for each in arrays if id(each) not in own]
    left = [each.shape for each in others if hashlib.sha256(each.tobytes()).digest() in exact]
    assert left == []


def sums_of(kind, folder):
    """The exact sums of a kind, as bytes: what a release without noise holds."""
    silent = released(KINDS[kind].build(folder, entropy=SILENT))
    other = released(KINDS[kind].build(folder, entropy=SILENT, planted=False))
    pairs = zip(states_of(silent), states_of(other), strict=False)
    return [one.tobytes() for one, two in pairs if not np.array_equal(one, two)]


def states_of(release):
    held = [each for each in within(release, {}) if isinstance(each, np.ndarray)]
    return [each for each in held if each.dtype == np.int64 and each.size > 3]


@each_kind
def test_nothing_of_the_person_is_in_pickles_and_copies(kind, shelf):
    """Of a release; a pickle that is refused has nothing, either."""
    release = shelf.release(kind)
    for dump in (pickle.dumps, lambda one: pickle.dumps(copy.deepcopy(one))):
        try:
            pickled = dump(release)
        except (TypeError, pickle.PicklingError, AttributeError, DiscreetError) as error:
            pickled = said_of(error).encode()
        assert betrayed(pickled) == []


# --- while it is made -----------------------------------------------------------------------------


@contextmanager
def everything_told():
    """All that is printed, logged at any level, and warned of, as one text."""
    told = io.StringIO()
    handler = logging.StreamHandler(told)
    root, levels = logging.getLogger(), {}
    for name in [None, *logging.root.manager.loggerDict]:
        levels[name] = logging.getLogger(name).level
        logging.getLogger(name).setLevel(logging.DEBUG)
    root.addHandler(handler)
    try:
        with (
            redirect_stdout(told),
            redirect_stderr(told),
            warnings.catch_warnings(record=True) as w,
        ):
            warnings.simplefilter("always")
            yield told
            told.write("\n".join(str(each.message) for each in w))
    finally:
        root.removeHandler(handler)
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


MAKES = {"os.mkdir", "os.rename", "os.link", "os.symlink", "sqlite3.connect"}
REACHES = {"socket.connect", "socket.bind", "subprocess.Popen", "os.system", "os.exec"}


class Opened:
    """Which files are opened to be written, and folders made, while a block runs: all of them.

    An audit hook of the interpreter cannot be removed; it is told when to listen.
    """

    def __init__(self):
        self.names = None
        sys.addaudithook(self.heard)

    def heard(self, event, given):
        if self.names is None or (given and isinstance(given[0], int)):  # open already
            return
        writes = isinstance(given[-1], int) and given[-1] & (os.O_WRONLY | os.O_RDWR)
        if event in MAKES or (event == "open" and writes):
            self.names.append(str(given[0]))
        elif event in REACHES:
            self.names.append(f"{event} {given}")

    @contextmanager
    def listening(self):
        self.names = []
        try:
            yield self.names
        finally:
            self.names = None


OPENED = Opened()


@each_kind
def test_a_build_tells_and_writes_nothing(kind, tmp_path, monkeypatch):
    """No file but those of a stream, no process, no connection; and nothing of anybody in a log."""
    own = tmp_path / "own"
    for name in ("own", "temporary", "home", "here"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "here")
    with everything_told() as told, OPENED.listening() as opened:
        release = KINDS[kind].build(own, quiet=False)
        KINDS[kind].answers(release)
    assert betrayed(told.getvalue()) == []
    if "stream" not in kind:
        assert opened == []
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert all(own in path.parents for path in written)
    for path in written:
        assert betrayed(path.read_bytes()) == [], path.name
        assert STREAM_KEY not in path.read_bytes()


@each_kind
def test_saving_writes_one_file(kind, shelf, tmp_path):
    release = shelf.release(kind)
    with everything_told() as told, OPENED.listening() as opened:
        release.save(tmp_path / "out.safetensors")
    # A file without a name, in this folder; then two names for it, of which one stays.
    assert opened[0] == str(tmp_path)
    assert {os.path.dirname(name) for name in opened[1:]} <= {str(tmp_path), "/proc/self/fd"}
    assert [path.name for path in tmp_path.iterdir()] == ["out.safetensors"]
    assert betrayed(told.getvalue()) == []


def test_the_hook_hears_what_is_written(tmp_path):
    with OPENED.listening() as opened:
        (tmp_path / "x").write_text("x")
        tempfile.mkdtemp(dir=tmp_path)
    assert len(opened) == 2


@each_kind
def test_limits_of_the_process_stay_as_they_are(kind, tmp_path):
    """Core files are the builder's business: nothing here turns them on or off."""
    names = [name for name in dir(resource) if name.startswith("RLIMIT_")]
    before = [resource.getrlimit(getattr(resource, name)) for name in names]
    KINDS[kind].build(tmp_path)
    assert [resource.getrlimit(getattr(resource, name)) for name in names] == before


def test_what_is_not_protected_is_said():
    [line] = [
        line for line in PRIVACY.read_text("utf-8").splitlines() if "the builder's machine" in line
    ]
    for each in (
        "how long a build takes",
        "swap",
        "core dumps",
        "logs",
        "exact sums in its memory",
    ):
        assert each in line


# --- what goes wrong ------------------------------------------------------------------------------


def said_of(error):
    """All that an error says, with those that it came from: messages, notes, arguments."""
    seen, waiting, told = set(), [error], []
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        told += [str(one), repr(one), repr(one.args), *getattr(one, "__notes__", ())]
        told += [repr(value) for value in vars(one).values()]
        told += traceback.format_exception_only(one)
        waiting += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]
    lines = "".join(traceback.format_exception(error)).splitlines()
    return "\n".join([*told, *(line for line in lines if not line.startswith("  "))])


def but(rows, **changes):
    return Data(**{**vars(rows), **changes})


def beside(array, value):
    """Rows with another value beside the person's, in their row."""
    changed = np.array(array, dtype=object if isinstance(value, str) else None)
    changed[7, -1] = value
    return changed


WRONG = {
    "NaN": lambda d: but(d, keys=beside(d.keys, np.nan), values=beside(d.values, np.nan)),
    "infinity": lambda d: but(d, keys=beside(d.keys, np.inf), values=beside(d.values, -np.inf)),
    "a text": lambda d: but(d, keys=beside(d.keys, SAID), values=beside(d.values, SAID)),
    "texts": lambda d: but(d, keys=d.keys.astype(str), values=d.values.astype(str)),
    "complex": lambda d: but(d, keys=d.keys + 1j, values=d.values + 1j),
    "one row less": lambda d: but(d, keys=d.keys[:-1], labels=d.labels[:-1], texts=d.texts[:-2]),
    "flat": lambda d: but(d, keys=d.keys[7], values=d.values[7]),
    "deep": lambda d: but(d, keys=d.keys[None, :, :, None], values=d.values[None, :, :, None]),
    "ragged": lambda d: but(
        d, keys=[*d.keys.tolist(), [d.keys[7, 0]]], values=[*d.values.tolist(), []]
    ),
    "dates": lambda d: but(d, keys=np.full(d.keys.shape, np.datetime64("2020-01-01"))),
    "masked": lambda d: but(d, keys=np.ma.array(d.keys, mask=d.keys > 0)),
    "labels": lambda d: but(d, labels=[SAID] * len(d.labels), names=[SAID, 7] * 30),
    "nothing": lambda d: but(
        d, keys=None, values=None, labels=None, texts=[None, SAID], names=None
    ),
    "a dictionary": lambda d: but(
        d, keys={SAID: d.keys}, values={PERSON: d.values}, names={SAID: 1}
    ),
    "texts that are none": lambda d: but(d, texts=[SAID, 7] * 30, names=[[SAID, None]] * 60),
    "huge": lambda d: but(d, keys=[[10**400] * 3] * 60, values=[[10**400] * 2] * 60),
}


def error_of(kind, rows, folder):
    """What a build of such rows raises, if it comes so far; errors of this test's own are none."""
    try:
        KINDS[kind].build(folder, rows=rows, quiet=False)
    except Exception as error:  # noqa: BLE001 (whatever it is, it must not quote)
        frames = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
        return error if any(f"{os.sep}discreet{os.sep}" in each for each in frames) else None
    return None


@each_kind
def test_what_is_wrong_is_said_without_quoting_anybody(kind, tmp_path):
    refused = 0
    for name, wrong in WRONG.items():
        with everything_told() as told:
            error = error_of(kind, wrong(data()), tmp_path)
            if error is not None:
                told.write(said_of(error))
        assert error is None or isinstance(error, DiscreetError), (name, repr(error)[:200])
        assert betrayed(told.getvalue()) == [], (name, told.getvalue()[-300:])
        refused += error is not None
    assert refused >= 2


# --- objects that hold rows -----------------------------------------------------------------------


def builder(folder):
    made = discreet.Builder(scale=1.0, rows_hint=ROWS, **SPEND)
    rows = data()
    made.add(rows.keys, rows.values)
    return made


def stream(folder):
    made = discreet.Stream(
        folder / "s", key=STREAM_KEY, steps=4, scale=1.0, rows_hint=ROWS, **SPEND
    )
    rows = data()
    made.append(rows.keys, rows.values, step="one")
    return made


def partial(folder):
    rows = data()
    job = Job(key_dim=3, value_dim=2, scale=1.0, rows_hint=ROWS, **SPEND)
    return job.partial((rows.keys, rows.values), shard="one")


HOLDERS = {"builder": builder, "stream": stream, "partial": partial}


@pytest.mark.parametrize("holder", HOLDERS)
def test_what_holds_rows_or_their_sums_shows_neither(holder, tmp_path):
    """Pickles are refused, or sealed; what is printed has nothing."""
    held = HOLDERS[holder](tmp_path)
    told = [repr(held), str(held)]
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        try:
            told.append(repr(copied(held)))
        except (TypeError, DiscreetError, pickle.PicklingError) as error:
            told.append(said_of(error))
        else:
            assert holder == "partial", copied  # which is bytes, and sealed
    assert betrayed("\n".join(told)) == []
    if holder == "partial":
        assert betrayed(held) == []
        with OPENED.listening():
            silent = discreet.build(
                data().keys, data().values, scale=1.0, rows_hint=ROWS, **SPEND, entropy=SILENT
            )
        assert silent.released.state.tobytes()[:24] not in held


# --- other processes ------------------------------------------------------------------------------

BUILD = """
import sys
import numpy as np
from discreet.shards.processes import build
from discreet.testing import Silent

print("ready", flush=True)
build(sys.argv[1], keys="key", values="value", groups="person", workers=2, entropy=Silent(),
      epsilon=1.0, delta=1e-6, scale=1.0, rows_hint=600)
"""


def family(pid):
    """A process and all that it has started."""
    found = [pid]
    for each in found:
        for task in pathlib.Path(f"/proc/{each}/task").glob("*/children"):
            with_children = read(task).decode().split()
            found += [int(child) for child in with_children]
    return found


def read(path):
    try:
        return pathlib.Path(path).read_bytes()
    except OSError:  # it is gone
        return b""


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="needs Linux")
def test_what_workers_show_of_themselves_has_nothing_of_anybody(tmp_path):
    """Anybody may list the processes of a machine with their arguments; their own user, more."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows, folder = data(), tmp_path / "data"
    folder.mkdir()
    for number in range(4):
        table = {"key": list(rows.keys), "value": list(rows.values), "person": rows.ids}
        table["person"] = [f"{each}-{number}" for each in rows.ids]
        parquet.write_table(pyarrow.table(table), folder / f"{number}.parquet")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", BUILD, str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )
    shown, workers = set(), set()
    process.stdout.readline()
    while process.poll() is None:
        members = family(process.pid)
        workers |= set(members[1:])
        for pid in members:
            shown |= {
                read(f"/proc/{pid}/{name}") for name in ("cmdline", "environ", "comm", "wchan")
            }
        for folder_, _, names in os.walk(temporary):  # which minds no folder that is gone
            shown |= {read(os.path.join(folder_, name)) for name in names}
    out, err = process.communicate()
    assert process.returncode == 0, err
    assert len(workers) >= 2
    assert any(b"discreet.shards.pool" in each for each in shown)
    assert betrayed(b"\n".join(shown) + out + err) == []
    assert list(temporary.iterdir()) == []


@pytest.fixture
def crossing(monkeypatch):
    """All bytes that go to workers and come back."""
    from discreet.shards import pool

    seen = []
    tell, load = pool._Worker.tell, pickle.load

    def told(worker, message):
        seen.append(message)
        tell(worker, message)

    def loaded(file):
        found = load(file)
        seen.append(pickle.dumps(found))
        return found

    monkeypatch.setattr(pool._Worker, "tell", told)
    monkeypatch.setattr(pool.pickle, "load", loaded)
    return seen


@pytest.mark.parametrize("groups", [None, "person"])
def test_what_goes_through_pipes_is_sealed(groups, crossing, tmp_path):
    """Tasks go out; partial sums and pieces of rows come back, sealed. The key is told once."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    from discreet.shards import processes

    rows, folder = data(), tmp_path / "data"
    folder.mkdir()
    table = {"key": list(rows.keys), "value": list(rows.values), "person": rows.ids}
    parquet.write_table(pyarrow.table(table), folder / "0.parquet")
    options = {"scale": 1.0, "rows_hint": ROWS, **SPEND}
    processes.build(folder, keys="key", values="value", groups=groups, workers=1, **options)
    assert len(crossing) >= 3
    assert betrayed(b"\n".join(crossing)) == []
    exact = discreet.build(
        rows.keys, rows.values, groups=rows.ids if groups else None, **options, entropy=SILENT
    )
    assert exact.released.state.tobytes()[:24] not in b"\n".join(crossing)
