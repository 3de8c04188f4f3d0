"""A stream whose process is killed, again and again: is any step ever seen with two states?

`stream_kills.py FOLDER` is the process that is killed: it resumes the stream and appends steps, for
ever. Whoever starts it kills it after a random time, and looks on at what it publishes meanwhile.
"""

import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
from sharing import table, tell
from stream_shared import DELTA, EPSILON, KEY, Effort, Promise, Report

import discreet
from discreet.errors import DiscreetError
from discreet.ledger import Ledger
from discreet.stream.folder import _STATE
from discreet.stream.state import packed
from discreet.testing import Silent

DATASET = "people"
OPTIONS: dict[str, Any] = {"epsilon": EPSILON, "delta": DELTA, "scale": 1.0, "steps": 1_000}
LONGEST = 0.1  # seconds from when a process is ready to when it is killed, at the most
LOOK = 0.0005  # seconds between two looks at what is published

BEFORE = "before a step was sealed, or between two"
SEALED = "sealed, not yet in the ledger"
NOTED = "in the ledger, not yet published"
PUBLISHED = "published, not yet on the list of steps"
PHASES = (BEFORE, SEALED, NOTED, PUBLISHED)


# --- the process that is killed -------------------------------------------------------------------


def rows(count: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """Return rows that are never the same again."""
    keys = np.random.default_rng().standard_normal((count, 2))
    return keys / np.linalg.norm(keys, axis=1, keepdims=True), np.sign(keys[:, :1])


def digest(memory: discreet.Memory) -> str:
    """Return the hash of a state, as the stream itself has it."""
    made = memory.released
    return hashlib.sha256(packed([made.state, *made.others])).hexdigest()


def returned(folder: pathlib.Path) -> list[tuple[int, str]]:
    """Return steps and hashes that the process wrote down, as far as lines are whole."""
    path = folder / "returned.log"
    whole, _, _ = (path.read_text() if path.exists() else "").rpartition("\n")
    pairs = [line.split() for line in whole.split("\n")]
    return [(int(pair[0]), pair[1]) for pair in pairs if len(pair) == 2 and len(pair[1]) == 64]


def warm_up() -> None:
    """Load whatever is loaded when it is first needed, so that kills come later than that."""
    with tempfile.TemporaryDirectory() as name:
        path = pathlib.Path(name) / "stream"
        discreet.Stream(path, key=KEY, entropy=Silent(), **OPTIONS).append(*rows(), step="1")
        discreet.Stream.resume(path, key=KEY, entropy=Silent()).append(*rows(), step="2")


def append_for_ever(folder: pathlib.Path) -> None:
    """Go on with a stream; write down what each step returned, and only then go on."""
    warm_up()
    known = returned(folder)
    number = known[-1][0] + 1 if known else 1
    print("ready", flush=True)
    stream = discreet.Stream.resume(folder / "stream", key=KEY)
    with (folder / "returned.log").open("ab") as log:
        log.write(b"\n")  # after a line that was cut short
        while True:
            # Whoever was killed before he could write it down asks for the same step again.
            memory = stream.append(*rows(), step=f"{number}")
            log.write(f"{number} {digest(memory)}\n".encode())
            log.flush()
            os.fsync(log.fileno())
            number += 1


# --- who looks on ---------------------------------------------------------------------------------


class Observer:
    """Remembers every state of every step that was ever to be seen.

    Args:
        folder: with the stream, and what its process wrote down.
    """

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.seen: dict[int, set[str]] = defaultdict(set)
        self.looks = 0

    def lines(self) -> list[dict[str, str]]:
        """Return the whole lines of the list of steps."""
        path = self.folder / "stream" / "steps.jsonl"
        whole, _, _ = (path.read_text("utf-8") if path.exists() else "").rpartition("\n")
        return [json.loads(line) for line in whole.split("\n") if line]

    def look(self, *, everywhere: bool = False) -> None:
        """Look at the list, and at the last states; or at all of them, and at what was returned."""
        self.looks += 1
        lines = self.lines()
        for number, line in enumerate(lines, 1):
            self.seen[number].add(line["digest"])
        first = 1 if everywhere else max(len(lines) - 1, 1)
        for number in range(first, len(lines) + 3):
            path = self.folder / "stream" / "states" / f"{number:08d}"
            if path.exists():
                self.seen[number].add(hashlib.sha256(path.read_bytes()).hexdigest())
        if everywhere:
            for number, found in returned(self.folder):
                self.seen[number].add(found)

    def sealed(self) -> int:
        """Return the number of the last step that was sealed: the process cannot go back."""
        header = _STATE.header((self.folder / "stream" / "state.sealed").read_bytes())
        return int(header["step"])

    def phase(self, ledger: Ledger, receipt: str) -> str:
        """Return what the process was doing when it was killed, as far as the disk tells."""
        sealed = self.sealed()
        if sealed == len(self.lines()):
            return BEFORE
        if (self.folder / "stream" / "states" / f"{sealed:08d}").exists():
            return PUBLISHED
        return NOTED if ledger.last_step(receipt) == sealed else SEALED

    @property
    def twice(self) -> int:
        """How many steps were seen with two states."""
        return sum(len(found) > 1 for found in self.seen.values())


def kill_once(observer: Observer, delay: float) -> None:
    """Start the process, look on for a while, and kill it."""
    command = [sys.executable, __file__, str(observer.folder)]
    with (
        (observer.folder / "errors.log").open("ab") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors) as process,
    ):
        assert process.stdout is not None
        process.stdout.readline()  # "ready"
        until = time.monotonic() + delay
        while time.monotonic() < until:
            observer.look()
            time.sleep(LOOK)
        process.kill()
        process.wait()
    if process.returncode != -signal.SIGKILL:
        raise RuntimeError((observer.folder / "errors.log").read_text())


def refusal(call: Callable[[], object]) -> str:
    """Return the name of the error that a call raises, or that there was none."""
    try:
        call()
    except DiscreetError as error:
        return type(error).__name__
    return "none"


def measure(effort: Effort) -> Report:
    """Kill a stream many times, and return what was seen."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        ledger = Ledger(folder / "ledger.db")
        ledger.create(DATASET, epsilon=2 * EPSILON, delta=2 * DELTA)
        path = folder / "stream"
        account = ledger.account(DATASET)
        stream = discreet.Stream(path, key=KEY, key_dim=2, value_dim=1, account=account, **OPTIONS)
        observer, again = Observer(folder), 0
        phases: dict[str, int] = defaultdict(int)
        for kill in range(effort.kills):
            kill_once(observer, float(rng.uniform(0, LONGEST)))
            observer.look(everywhere=True)
            phases[observer.phase(ledger, stream.receipt.id)] += 1
            known = returned(folder)
            again += observer.sealed() > (known[-1][0] if known else 0)
            if kill == effort.kills // 2:
                shutil.copytree(path, folder / "backup")
            if (kill + 1) % 20 == 0:
                tell(f"{kill + 1} kills, {len(observer.lines()):,} steps, {dict(phases)}")
        return {**at_the_end(observer, ledger), "phases": dict(phases), "again": again}


def at_the_end(observer: Observer, ledger: Ledger) -> Report:
    """Resume a last time, and return whether all is whole, and what is refused."""
    folder, path = observer.folder, observer.folder / "stream"
    stream = discreet.Stream.resume(path, key=KEY)
    stream.append(*rows(), step="the end")
    observer.look(everywhere=True)
    published = discreet.Stream.published(path)
    for number in range(1, published.step + 1):
        published.totals(number)  # checks its hash
    shutil.copytree(path, folder / "mixed")
    shutil.copy(folder / "backup" / "state.sealed", folder / "mixed" / "state.sealed")
    return {
        "steps": published.step,
        "seen": len(observer.seen),
        "looks": observer.looks,
        "returned": len(dict(returned(folder))),
        "twice": observer.twice,
        "spends": len(ledger.statement(DATASET).spends),
        "backup": refusal(lambda: discreet.Stream.resume(folder / "backup", key=KEY)),
        "older_state": refusal(lambda: discreet.Stream.resume(folder / "mixed", key=KEY)),
    }


# --- the page -------------------------------------------------------------------------------------


def in_short(report: Report) -> list[str]:
    """Return what to act on."""
    kills, spends = sum(report["phases"].values()), report["spends"]
    return [
        (
            f"- Killed {kills} times, a stream went on. {report['twice'] or 'No'} step was seen "
            f"with two states, and the ledger counted it {'once' if spends == 1 else spends}. A "
            "restored backup is refused, if there is a ledger."
        )
    ]


def refused(error: str) -> str:
    """Return whether something was refused, and how."""
    return "**not refused**" if error == "none" else f"refused (`{error}`)"


def page(report: Report) -> list[str]:
    """Return the section of the page."""
    kills, backup = sum(report["phases"].values()), refused(report["backup"])
    again = "steps that were asked for again, and returned as they were stored"
    phases = [[name, f"{report['phases'].get(name, 0)}"] for name in PHASES]
    return [
        (
            f"A process appended steps to one stream with a ledger, and was killed {kills} times "
            "(SIGKILL) at random moments. Each time another one resumed the stream and asked first "
            "for the step that it had not seen returned. Meanwhile somebody looked on, "
            f"{report['looks']:,} times, and wrote down every state of every step: in the folder, "
            "on the list of steps, and as `append` returned it."
        ),
        *table(
            ["", "measured"],
            [
                ["steps", f"{report['steps']:,}"],
                ["steps that were seen with two states", f"{report['twice']}"],
                ["entries in the ledger, for all steps", f"{report['spends']}"],
                [again, f"{report['again']}"],
                ["`Stream.resume` of a backup of the folder", backup],
                ["`Stream.resume` with an old `state.sealed`", refused(report["older_state"])],
            ],
        ),
        "Where the process was when it was killed:",
        *table(["the last step was", "kills"], phases),
        (
            "At the end all steps were there, each with the hash that it was published with. Only "
            "a ledger can tell that a whole folder is old: without one, never restore a backup of "
            "a stream that went on."
        ),
        "",
    ]


def promises(report: Report) -> list[Promise]:
    """Return what was promised of streams that are killed."""
    kills = sum(report["phases"].values())
    return [
        Promise(
            f"steps with two states after {kills} kills",
            "0",
            f"{report['twice']}",
            kept=report["twice"] == 0,
        ),
        Promise("entries in the ledger", "1", f"{report['spends']}", kept=report["spends"] == 1),
        Promise(
            "a restored backup, with a ledger",
            "refused",
            report["backup"],
            kept=report["backup"] == "BudgetExceeded",
        ),
    ]


if __name__ == "__main__":
    append_for_ever(pathlib.Path(sys.argv[1]))
