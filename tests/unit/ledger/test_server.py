"""A ledger in a database: rights, passwords, lost connections, backups and standbys."""

import copy
import json
import pickle
import sqlite3
import subprocess
import sys

import psycopg
import pytest
from ledgers import DELTA, KEYS, VALUES, build, receipt
from relay import Relay
from typer.testing import CliRunner

import discreet
from discreet.cli import app
from discreet.errors import BudgetExceeded, InvalidInput, LedgerError
from discreet.ledger import Ledger, State, store
from discreet.ledger.addresses import Address
from discreet.noise import RoundedGaussian

TABLES = ("servers", "datasets", "limits", "spends", "events", "steps", "history")


@pytest.fixture
def ledger(database):
    made = Ledger(database)
    made.create("clinic", epsilon=2.0, delta=1e-5)
    return made


@pytest.fixture
def drawn(monkeypatch):
    """Return how often noise was drawn."""
    times, sample = [], RoundedGaussian.sample

    def watched(self, *given, **named):
        times.append(1)
        return sample(self, *given, **named)

    monkeypatch.setattr(RoundedGaussian, "sample", watched)
    return times


def states(ledger):
    return [each.state for each in ledger.statement("clinic").spends]


def test_steps_of_a_stream_are_released_once(place):
    ledger = Ledger(place)
    ledger.create("clinic", epsilon=2.0, delta=1e-5)
    made = receipt(0.5)
    held = ledger.account("clinic").reserve(made, delta=DELTA)
    with pytest.raises(InvalidInput, match="to be spent, and it is reserved"):
        ledger.note_step(made.id, 1, "a")
    held.draw()
    assert ledger.last_step(made.id) == 0
    for _ in range(2):
        ledger.note_step(made.id, 1, "a")
    with pytest.raises(BudgetExceeded, match="with other noise"):
        ledger.note_step(made.id, 1, "b")
    ledger.note_step(made.id, 2, "b")
    assert ledger.last_step(made.id) == 2


def test_a_stream_is_counted_in_a_database(ledger, cluster, tmp_path):
    options = {"epsilon": 0.5, "delta": DELTA, "key_dim": 3, "value_dim": 2, "scale": 1.0}
    kept = Ledger(cluster.address().replace("owner@", "owner:secret@"))
    account = kept.account("clinic")
    stream = discreet.Stream(tmp_path / "days", key=bytes(32), steps=4, account=account, **options)
    stream.append(KEYS, VALUES, step="one")
    resumed = discreet.Stream.resume(tmp_path / "days", key=bytes(32))
    resumed.append(KEYS, VALUES, step="two")
    assert ledger.last_step(ledger.statement("clinic").spends[0].id) == 2
    written = (tmp_path / "days" / "ledger.json").read_text()
    assert json.loads(written)[0] == str(ledger.path)


def test_passwords_are_nowhere(cluster, database, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where a witness without a folder is made
    host = f"host={cluster.folder}"
    for address in (
        f"postgresql://owner:sec%40ret@/postgres?{host}",
        f"postgresql://owner@/postgres?password=sec%40ret&{host}&witness=it.db",
        f"postgresql://owner:sec%40ret@/missing?{host}",
    ):
        ledger = Ledger(address)
        with pytest.raises(LedgerError) as refused:
            ledger.statement("clinic")
        said = (repr(ledger), str(ledger.path), str(refused.value), repr(ledger._store))
        assert all("sec@ret" not in each and "sec%40ret" not in each for each in said)
        assert b"sec" not in pickle.dumps(ledger)
        assert pickle.loads(pickle.dumps(ledger)) == ledger
        # Estimators of scikit-learn are copied before they are fitted.
        for copied in (copy.copy(ledger), copy.deepcopy(ledger), copy.deepcopy([ledger])[0]):
            assert copied is ledger
        assert "sec%40ret" in ledger._store.address.url


def test_what_a_server_says_has_no_password():
    address = Address.parse("postgres://eve:sec%40ret@a,b:5433/name?sslpassword=other&a=b")
    assert address.shown == "postgres://eve@a,b:5433/name?a=b"
    said = address.scrubbed("no sec@ret, no sec%40ret, no other")
    assert said == "no ***, no ***, no ***"


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://owner:sec@ret@host/name",
        "postgresql://owner:sec/ret@host/name",
        "postgresql://owner:sec?ret@host/name",
        "postgresql://owner:sec#ret@host/name",
        "postgresql://owner:sec\nret@host/name",
        "postgresql://[owner:secret@host/name",
    ],
)
def test_addresses_whose_password_would_be_taken_for_something_else(address):
    with pytest.raises(InvalidInput, match="Expected the address of a ledger's data") as refused:
        Ledger(address)
    assert "sec" not in str(refused.value)
    assert "ret" not in str(refused.value).replace("secrets", "")


def test_addresses_that_lead_nowhere(tmp_path, cluster, database):
    for address, said in (
        (f"postgresql://owner@/postgres?host={tmp_path}", "could not be"),
        ("postgresql://owner@/postgres?nonsense=1", "that PostgreSQL understands"),
        (database, "there is none that this role sees: Ledger.create makes it"),
        (cluster.address(user="nobody"), 'role "nobody" does not exist'),
    ):
        for use in (Ledger(address).datasets, lambda at=address: build(Ledger(at), 1.0)):
            with pytest.raises(LedgerError, match=said):
                use()


def test_psycopg_is_looked_for_when_a_database_is_opened_and_not_before():
    code = """
import sys
sys.modules["psycopg"] = None
from discreet.errors import LedgerError
from discreet.ledger import Ledger
try:
    Ledger("postgresql://owner@host/name").datasets()
except LedgerError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'discreet[postgres]'" in done.stdout, done.stderr


def test_no_row_is_ever_changed_or_deleted(ledger, cluster):
    ledger.limit_analyst("clinic", "eve", epsilon=1.0, delta=1e-6)
    build(ledger, 0.1)
    with cluster.raw() as raw:
        for table in TABLES:
            columns = raw.execute(f"SELECT * FROM discreet.{table} LIMIT 0").description
            for attempt in (
                *(f"UPDATE discreet.{table} SET {each.name} = DEFAULT" for each in columns),
                f"DELETE FROM discreet.{table}",
                f"TRUNCATE discreet.{table} CASCADE",
            ):
                with pytest.raises(psycopg.errors.RaiseException, match="only ever added to"):
                    raw.execute(attempt)


def test_a_role_that_may_only_add_can_build_and_nothing_else(ledger, cluster):
    with cluster.raw() as raw:
        raw.execute("DROP ROLE IF EXISTS builder")
        raw.execute("CREATE ROLE builder LOGIN")
        raw.execute("GRANT USAGE ON SCHEMA discreet TO builder")
        raw.execute("GRANT SELECT ON ALL TABLES IN SCHEMA discreet TO builder")
        raw.execute("GRANT INSERT ON discreet.spends, discreet.events, discreet.steps TO builder")
    theirs = Ledger(cluster.address("builder"))
    memory = build(theirs, 0.5)
    theirs.released(memory, "memory.safetensors")
    assert states(theirs) == [State.RELEASED]
    with pytest.raises(LedgerError, match="permission denied"):
        theirs.create("more", epsilon=9.0, delta=1e-5)
    with cluster.raw("builder") as raw:
        for table in TABLES:
            attempts = [f"DELETE FROM discreet.{table}", f"TRUNCATE discreet.{table}"]
            attempts += [f"ALTER TABLE discreet.{table} DISABLE TRIGGER ALL"]
            if table not in ("spends", "events", "steps"):
                attempts += [f"INSERT INTO discreet.{table} DEFAULT VALUES"]
            column = "digest" if table == "history" else "at"
            attempts += [f"UPDATE discreet.{table} SET {column} = ''"]
            for attempt in attempts:
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    raw.execute(attempt)
    with cluster.raw() as raw:
        raw.execute("DROP OWNED BY builder")
        raw.execute("DROP ROLE builder")


def test_the_database_itself_refuses_a_void_after_a_draw(ledger, cluster):
    memory = build(ledger, 0.1)
    insert = "INSERT INTO discreet.events (spend, kind, detail, at) VALUES (%s, 'voided', '', '')"
    with cluster.raw() as raw, pytest.raises(psycopg.errors.UniqueViolation):
        raw.execute(insert, (memory.receipt.id,))


def test_who_adds_rows_by_other_means_waits_in_line(ledger, cluster):
    """So nothing comes between what is checked and what is written down."""
    insert = "INSERT INTO discreet.limits VALUES ('clinic', 'eve', 1, 1e-6, '')"
    with cluster.raw() as raw:
        raw.execute("SET lock_timeout = '20ms'")
        with ledger._store.writing() as transaction:
            store.dataset_named(transaction, "clinic")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                raw.execute(insert)
        raw.execute(insert)
    assert ledger.statement("clinic").limits["eve"].epsilon == 1


@pytest.mark.parametrize("level", ["off", "local", "remote_write", "on", "remote_apply"])
def test_every_commit_is_on_the_disk_before_it_returns(ledger, cluster, level):
    with cluster.raw() as raw:
        raw.execute(f"ALTER ROLE owner SET synchronous_commit = {level}")
        raw.execute("ALTER ROLE owner SET default_transaction_isolation = 'serializable'")
        try:
            with ledger._store.writing() as transaction:
                wanted = level if level == "remote_apply" else "on"
                assert transaction.one("SHOW synchronous_commit") == (wanted,)
                assert transaction.one("SHOW transaction_isolation") == ("read committed",)
        finally:
            raw.execute("ALTER ROLE owner RESET ALL")


def test_numbers_come_back_to_the_last_bit_whatever_the_role_is_set_to(ledger, cluster):
    with cluster.raw() as raw:
        raw.execute("ALTER ROLE owner SET extra_float_digits = -15")
        try:
            ledger.create("third", epsilon=1 / 3, delta=1e-6 / 3)
            limit = ledger.statement("third").limit
        finally:
            raw.execute("ALTER ROLE owner RESET ALL")
    assert (limit.epsilon, limit.delta) == (1 / 3, 1e-6 / 3)


def test_a_server_that_keeps_nothing_is_refused(ledger, cluster):
    with cluster.raw() as raw:
        for value in ("off", "on"):
            raw.execute(f"ALTER SYSTEM SET fsync = {value}")
            cluster.run("pg_ctl", "reload", "--pgdata", cluster.data)
            while raw.execute("SHOW fsync").fetchone() != (value,):
                pass
            if value == "off":
                with pytest.raises(LedgerError, match=r"to have fsync = on, and it is off"):
                    build(ledger, 0.5)
    assert build(ledger, 0.5)


def test_a_ledger_that_others_hold_for_too_long(ledger, cluster, monkeypatch):
    monkeypatch.setattr(store, "PATIENCE", 0.05)
    with cluster.raw() as raw:
        raw.execute("SELECT pg_advisory_lock(%s)", (store.APPLICATION_ID,))
        with pytest.raises(LedgerError, match=r"others have locked it for more than 0\.05 seconds"):
            ledger.spend("clinic", receipt(0.1), delta=DELTA)
    assert states(ledger) == []


def test_who_holds_the_lock_and_is_silent_loses_it(ledger, monkeypatch):
    monkeypatch.setattr(store, "PATIENCE", 0.4)

    def held():
        with ledger._store.writing() as silent:
            ledger.spend("clinic", receipt(0.1), delta=DELTA)
            silent.one("SELECT 1")

    with pytest.raises(LedgerError, match="could not be written"):
        held()
    assert states(ledger) == [State.SPENT]


COMMIT = b"COMMIT\0"
PHASES = {  # the number of the COMMIT that is lost, and whether the server heard it
    "before it was checked": (0, False),
    "before it was reserved": (1, False),
    "after it was reserved": (1, True),
    "before it was drawn": (2, False),
    "after it was drawn": (2, True),
}


@pytest.mark.parametrize("phase", PHASES)
def test_a_connection_that_is_lost_in_any_phase(phase, ledger, cluster, drawn):
    number, heard = PHASES[phase]
    words, number = (b"FROM datasets", 1) if number == 0 else (COMMIT, number)
    with Relay(cluster.folder, words, number=number, heard=heard) as relay:
        theirs = Ledger(cluster.address().replace(str(cluster.folder), relay.folder))
        if heard:  # it was counted, and they find that out
            memory = build(theirs, 0.5)
            assert [each.id for each in ledger.statement("clinic").spends] == [memory.receipt.id]
            assert states(ledger) == [State.SPENT]
            assert drawn
        else:
            with pytest.raises(LedgerError, match="nothing was released"):
                build(theirs, 0.5)
            assert states(ledger) == ([State.VOIDED] if "drawn" in phase else [])
            assert not drawn
        assert relay.cut


@pytest.mark.parametrize("phase", [each for each in PHASES if "checked" not in each])
def test_who_cannot_find_out_whether_it_was_counted_draws_nothing(
    phase, ledger, cluster, drawn, monkeypatch
):
    monkeypatch.setattr(store, "PATIENCE", 0.3)
    number, heard = PHASES[phase]
    with Relay(cluster.folder, COMMIT, number=number, heard=heard, gone=True) as relay:
        theirs = Ledger(cluster.address().replace(str(cluster.folder), relay.folder))
        with pytest.raises(LedgerError, match="take it as counted"):
            build(theirs, 0.5)
        assert relay.cut
    assert not drawn
    counted = {(1, True): [State.RESERVED], (2, False): [State.RESERVED], (2, True): [State.SPENT]}
    assert states(ledger) == counted.get(PHASES[phase], [])


def test_a_backup_that_was_put_back_is_refused_by_who_has_seen_more(cluster, database, tmp_path):
    witness = tmp_path / "witness.db"
    ledger = Ledger(f"{database}&witness={witness}")
    ledger.create("clinic", epsilon=2.0, delta=1e-5)
    unwitnessed = Ledger(database)
    cluster.stop()
    cluster.copy_to("backup")
    cluster.start()
    build(ledger, 0.5)
    assert states(unwitnessed) == [State.SPENT]
    cluster.put_back("backup")
    forgot = r"entry \d+ of its history is missing, or another: a backup"
    again = pickle.loads(pickle.dumps(ledger))
    assert again._store.address.witness == witness
    newcomer = Ledger(database)
    for _ in range(2):
        for each in (ledger, unwitnessed, again):
            with pytest.raises(LedgerError, match=forgot):
                build(each, 0.1)
            with pytest.raises(LedgerError, match=forgot):
                each.statement("clinic")
        # Who has seen nothing cannot know. When others went on from there, it is still refused.
        build(newcomer, 0.5)
        build(newcomer, 0.1)


def check_refused_until_the_owner_agrees(cluster, **database):
    address = cluster.address(**database)
    restored = Ledger(address)
    with pytest.raises(LedgerError, match="a standby took over or a backup was") as refused:
        restored.spend("clinic", receipt(0.1), delta=DELTA)
    with psycopg.connect(address, autocommit=True) as raw:
        raw.execute(str(refused.value).partition("says so: ")[2])
    restored.spend("clinic", receipt(0.1), delta=DELTA)


def test_a_copy_of_the_database_is_refused_until_the_owner_agrees(ledger, cluster):
    with cluster.raw() as raw:
        raw.execute("CREATE DATABASE origin")
    Ledger(cluster.address(database="origin")).create("clinic", epsilon=2.0, delta=1e-5)
    with cluster.raw() as raw:
        raw.execute("CREATE DATABASE copied TEMPLATE origin")
        raw.execute("DROP DATABASE origin")
    check_refused_until_the_owner_agrees(cluster, database="copied")
    with cluster.raw() as raw:
        raw.execute("DROP DATABASE copied")


def test_a_dump_that_was_read_again_is_refused_until_the_owner_agrees(ledger, cluster):
    """As one is after `pg_dump`, DROP SCHEMA and `psql`: the tables are new, the server is not."""
    build(ledger, 0.1)
    with cluster.raw() as raw:
        raw.execute("CREATE TABLE discreet.again (LIKE discreet.servers INCLUDING ALL)")
        raw.execute(
            "INSERT INTO discreet.again (server, version, at) "
            "SELECT server, version, at FROM discreet.servers"
        )
        raw.execute("ALTER TABLE discreet.servers RENAME TO before")
        raw.execute("ALTER TABLE discreet.again RENAME TO servers")
    check_refused_until_the_owner_agrees(cluster)


def test_a_ledger_that_noted_its_server_and_timeline_alone_goes_on(ledger, cluster):
    with cluster.raw() as raw:
        raw.execute(
            "INSERT INTO discreet.servers (server, version, at) SELECT "
            "split_part(server, '/', 1) || '/' || split_part(server, '/', 2), version, at "
            "FROM discreet.servers"
        )
    build(ledger, 0.1)
    assert states(ledger) == [State.SPENT]


def test_a_ledger_that_was_dropped_is_not_made_again(cluster, database, tmp_path):
    ledger = Ledger(f"{database}&witness={tmp_path / 'witness.db'}")
    ledger.create("clinic", epsilon=2.0, delta=1e-5)
    cluster.forget()
    with pytest.raises(LedgerError, match="of its history is missing"):
        ledger.create("clinic", epsilon=2.0, delta=1e-5)


def test_a_standby_is_refused_and_one_that_took_over_until_the_owner_agrees(ledger, cluster):
    build(ledger, 0.1)
    cluster.stop()
    (cluster.data / "standby.signal").touch()
    cluster.start()
    standby = Ledger(cluster.address())
    for use in (standby.datasets, lambda: build(standby, 0.1)):
        with pytest.raises(LedgerError, match="it is a standby in recovery"):
            use()
    cluster.promote()
    for each in (ledger, standby):
        with pytest.raises(LedgerError, match="a standby took over or a backup was") as refused:
            each.spend("clinic", receipt(0.1), delta=DELTA)
    with pytest.warns(UserWarning, match="a standby took over or a backup was"):
        assert states(standby) == [State.SPENT]
    with cluster.raw() as raw:
        raw.execute(str(refused.value).partition("says so: ")[2])
    for each in (ledger, standby):
        build(each, 0.1)
    assert len(states(ledger)) == 3


def test_a_witness_that_cannot_be_kept(ledger, tmp_path, cluster, drawn):
    broken = Ledger(f"{cluster.address()}&witness={tmp_path / 'no' / 'folder.db'}")
    with pytest.raises(LedgerError, match=r"The witness .*folder\.db of a ledger could not be"):
        build(broken, 0.1)
    assert not drawn
    assert states(ledger) == []
    good = Ledger(f"{cluster.address()}&witness={tmp_path / 'it.db'}")
    for _ in range(2):
        build(good, 0.1)
    with sqlite3.connect(tmp_path / "it.db") as raw:
        kept = raw.execute("SELECT * FROM seen").fetchall()
    raw.close()
    with cluster.raw() as raw:
        last = "SELECT * FROM discreet.history ORDER BY number DESC LIMIT 1"
        assert raw.execute(last).fetchall() == kept


def test_a_ledger_of_a_newer_version(ledger, cluster):
    with cluster.raw() as raw:
        raw.execute(
            "INSERT INTO discreet.servers (server, version, at) "
            "SELECT server, 9, at FROM discreet.servers"
        )
    with pytest.raises(LedgerError, match="a newer discreet made it"):
        build(ledger, 0.1)


def test_the_command_line_takes_an_address(cluster, database, tmp_path):
    secret = database.replace("owner@", "owner:secret@")

    def run(*given):
        done = CliRunner().invoke(app, [str(each) for each in given])
        assert done.exit_code == 0, done.output
        assert "secret" not in done.output
        return done.output

    limits = ("--epsilon", 2, "--delta", 1e-5)
    assert "'clinic'" in run("ledger", "create", secret, "clinic", *limits)
    ledger = Ledger(database)
    memory = build(None, 0.5, dataset=None)
    memory.save(tmp_path / "memory.safetensors")
    run("ledger", "spend", secret, "clinic", tmp_path / "memory.safetensors")
    assert states(ledger) == [State.RELEASED]
    held = receipt(0.1)
    ledger.reserve("clinic", held, delta=DELTA)
    run("ledger", "limit", database, "clinic", "eve", "--epsilon", 1, "--delta", 1e-6)
    assert "counts no more" in run("ledger", "void", secret, held.id)
    assert "voided" in run("ledger", "show", secret)
