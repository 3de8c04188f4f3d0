"""Breaks the lines that protect people, one at a time, and sees whether a fast test notices.

A mutant is a change of a few characters that would cost privacy, while every answer would look as
before. The lists beside this file have, for each, what would be lost and the tests that must fail.
`python tests/mutants/run.py` tries all of them in copies of the repository, two at a time.
"""

import argparse
import os
import pathlib
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs" / "mutants.md"
SURVIVORS = HERE / "survivors.toml"

# What a copy does without: histories, environments and whatever is made of the rest.
_LEFT_OUT = shutil.ignore_patterns(
    ".*", "__pycache__", "build", "dist", "*.egg-info", "node_modules"
)

# No tests that are named for a mutant take a tenth of this, in seconds of the processor: what does
# goes round in circles. And in seconds, for what waits for something that never comes.
_SECONDS, PATIENCE = 120, 3600.0

PYTEST = (
    "-m",
    "pytest",
    "--exitfirst",
    "--quiet",
    "--no-header",
    "--tb=short",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:xdist",
    "-p",
    "while_broken",
    "--hypothesis-seed=0",
)

# What Hypothesis raises in place of the failure that it found.
_FLAKY = re.compile(r"^E +hypothesis\.errors\.Flaky", re.MULTILINE)

_FIELDS = {"name", "lost", "file", "before", "after", "tests"}


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One way to break the promise.

    Attributes:
        name: short, of lower-case words with hyphens.
        lost: what would be lost, in a sentence.
        file: the file that is changed, from the root of the repository.
        before: a text that is once in the file.
        after: what stands in its place.
        tests: node ids of the tests one of which must fail.
        room: the list that it is in.
    """

    name: str
    lost: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]
    room: str

    def applied_to(self, text: str) -> str:
        """Return the file with the change.

        Args:
            text: the file as it is.

        Raises:
            ValueError: the place is not there once, or nothing would change.
            SyntaxError: Python could not read what comes out.
        """
        found = text.count(self.before)
        if found != 1 or self.before == self.after:
            raise ValueError(f"{self.name}: its `before` is {found} times in {self.file}, not once")
        changed = text.replace(self.before, self.after)
        compile(changed, self.file, "exec")
        return changed


def all_mutants() -> list[Mutant]:
    """Return the mutants of all lists."""
    found: list[Mutant] = []
    for path in sorted(set(HERE.glob("*.toml")) - {SURVIVORS}):
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]:
            if entry.keys() != _FIELDS:
                raise ValueError(f"{path.name}: expected {sorted(_FIELDS)}, got {sorted(entry)}")
            fields = {**entry, "tests": tuple(entry["tests"])}
            found.append(Mutant(room=path.stem, **fields))
    return found


@dataclass(frozen=True)
class Outcome:
    """What became of one mutant.

    Attributes:
        mutant: which.
        caught_by: the tests that failed; none if it survived.
        why: how it got away, in words.
        seconds: how long that took.
    """

    mutant: Mutant
    caught_by: tuple[str, ...]
    why: str
    seconds: float


@dataclass(frozen=True)
class Copy:
    """A copy of the repository, in which things may be broken.

    Attributes:
        root: of the copy.
    """

    root: pathlib.Path

    @classmethod
    def of_repository(cls, folder: pathlib.Path) -> "Copy":
        """Return a new copy, whose package Python finds before any that is installed.

        Args:
            folder: where it is made; not there yet.

        Raises:
            RuntimeError: Python finds another package.
        """
        shutil.copytree(ROOT, folder, ignore=_LEFT_OUT, symlinks=True)
        made = cls(folder.resolve())
        for package, home in (("discreet", "src"), ("discreet_benchmarks", "benchmarks")):
            code = f"import {package}; print({package}.__file__)"
            done = made.python(["-c", code])
            found = "" if done is None else done.stdout.strip()
            if not pathlib.Path(found).is_relative_to(made.root / home / package):
                raise RuntimeError(f"Expected {package} of the copy, got {found or done}.")
        return made

    @classmethod
    def several(cls, folder: pathlib.Path, count: int) -> "list[Copy]":
        """Return so many new copies.

        Args:
            folder: where they are made.
            count: how many.
        """
        return [cls.of_repository(folder / f"copy-{number}") for number in range(count)]

    def python(
        self, arguments: Sequence[str], *, seconds: int | None = None
    ) -> subprocess.CompletedProcess[str] | None:
        """Run Python in the copy, with one thread; None if it does not come to an end.

        Args:
            arguments: of Python.
            seconds: of the processor, that pytest may take where something is broken; nothing is
                compiled for later then. None for as many as it takes.
        """
        paths = [str(self.root / each) for each in ("src", "benchmarks", "tests/mutants")]
        own = {
            "PYTHONPATH": os.pathsep.join(paths),
            "PYTHONDONTWRITEBYTECODE": "" if seconds is None else "1",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "PYTEST_ADDOPTS": "",
            **({} if seconds is None else {"MUTANTS_SECONDS": str(seconds)}),
        }
        try:
            done = subprocess.run(
                [sys.executable, *arguments],
                cwd=self.root,
                env=os.environ | own,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=None if seconds is None else PATIENCE,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return None
        return None if done.returncode in {-signal.SIGXCPU, -signal.SIGKILL} else done

    def try_mutant(self, mutant: Mutant) -> Outcome:
        """Break one thing, run the tests that must notice, and mend it.

        Args:
            mutant: what to break.
        """
        path = self.root / mutant.file
        began = time.monotonic()
        with written(path, mutant.applied_to(path.read_text(encoding="utf-8"))):
            done = self.python([*PYTEST, *mutant.tests], seconds=_SECONDS)
        why = _verdict(done)
        caught = () if done is None else _failures(done.stdout)
        return Outcome(mutant, () if why else caught, why, time.monotonic() - began)


@contextmanager
def written(path: pathlib.Path, text: str) -> Iterator[None]:
    """Keep another text in a file meanwhile.

    Args:
        path: of a Python file.
        text: that it has.
    """
    whole = path.read_text(encoding="utf-8")
    # Python tells compiled files by time and length, and both may stay as they were.
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()
    path.write_text(text, encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(whole, encoding="utf-8")


def _failures(printed: str) -> tuple[str, ...]:
    """Return the names of tests that failed; errors before a test began are none."""
    lines = [line for line in printed.splitlines() if line.startswith("FAILED ")]
    return tuple(line.removeprefix("FAILED ").partition(" - ")[0] for line in lines)


def _verdict(done: subprocess.CompletedProcess[str] | None) -> str:
    """Return in words why this is no catch; nothing if it is one."""
    if done is None:
        return "its tests did not come to an end"
    if _FLAKY.search(done.stdout):
        return "Hypothesis failed while it replayed a failure, and hides which"
    if done.returncode == 1 and _failures(done.stdout):
        return ""
    reasons = {
        0: "all its tests passed",
        1: "a test could not begin, which is no failure",
        2: "its tests could not be imported, which is no failure",
        4: "its tests are not there, or could not be imported",
        5: "its tests are not there",
    }
    return reasons.get(done.returncode, f"pytest ended with {done.returncode}")


def check_unchanged(copies: Sequence[Copy], tests: Iterable[str]) -> None:
    """Raise `RuntimeError` unless all tests pass where nothing is broken.

    Args:
        copies: each runs a part of them.
        tests: node ids.
    """
    files: dict[str, list[str]] = {}
    for each in sorted(set(tests)):
        files.setdefault(each.partition("::")[0], []).append(each)
    parts = [
        [test for tests in list(files.values())[at :: len(copies)] for test in tests]
        for at in range(len(copies))
    ]
    with ThreadPoolExecutor(len(copies)) as pool:
        runs = pool.map(
            lambda pair: pair[0].python([*PYTEST, *pair[1]]), zip(copies, parts, strict=True)
        )
        for part, done in zip(parts, runs, strict=True):
            if part and (done is None or done.returncode):
                said = "" if done is None else f"{done.stdout}{done.stderr}"
                raise RuntimeError(f"Expected all tests to pass before anything is broken:\n{said}")


Given = TypeVar("Given")
Made = TypeVar("Made")


def in_parallel(
    copies: Sequence[Copy], attempt: Callable[[Copy, Given], Made], every: Sequence[Given]
) -> list[Made]:
    """Return what each attempt makes, in order; one at a time is in each copy.

    Args:
        copies: of the repository.
        attempt: told a copy and one of those that are given.
        every: what there is to try.
    """
    free: queue.SimpleQueue[Copy] = queue.SimpleQueue()
    for each in copies:
        free.put(each)

    def with_copy(given: Given) -> Made:
        own = free.get()
        try:
            return attempt(own, given)
        finally:
            free.put(own)

    with ThreadPoolExecutor(len(copies)) as pool:
        return list(pool.map(with_copy, every))


def try_all(copies: Sequence[Copy], mutants: Sequence[Mutant]) -> list[Outcome]:
    """Return what becomes of each mutant, and say so while it goes on.

    Args:
        copies: of the repository.
        mutants: in the order in which they are tried.
    """
    width = max(len(each.name) for each in mutants)

    def attempt(own: Copy, mutant: Mutant) -> Outcome:
        outcome = own.try_mutant(mutant)
        say(_line(outcome, width))
        return outcome

    return in_parallel(copies, attempt, mutants)


def _line(outcome: Outcome, width: int) -> str:
    name = outcome.mutant.name.ljust(width)
    if outcome.caught_by:
        return f"{name} | {outcome.caught_by[0]} ({outcome.seconds:.1f} s)"
    return f"{name} | SURVIVED: {outcome.why}. Lost: {outcome.mutant.lost}"


_SAYING = threading.Lock()


def say(text: str) -> None:
    """Print something at once, whatever other threads print.

    Args:
        text: of one or more lines.
    """
    with _SAYING:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


def page_with(text: str, name: str, lines: Iterable[str]) -> str:
    """Return a page with other lines between two marks.

    Args:
        text: of the page.
        name: of the marks.
        lines: that are there from now on.

    Raises:
        ValueError: the marks are not there once.
    """
    begin, end = f"<!-- {name}: made by tests/mutants/run.py -->", f"<!-- {name}: end -->"
    if text.count(begin) != 1 or text.count(end) != 1:
        raise ValueError(f"Expected {begin} and {end} once.")
    made = "\n".join([begin, "", *lines, "", end])
    return re.sub(f"{re.escape(begin)}.*{re.escape(end)}", lambda _: made, text, flags=re.DOTALL)


def table(outcomes: Sequence[Outcome]) -> list[str]:
    """Return which test catches which mutant, room by room, as lines of a page.

    Args:
        outcomes: all of them, none of which survived.
    """
    lines = [f"{len(outcomes)} mutants, each caught.", ""]
    for room in dict.fromkeys(each.mutant.room for each in outcomes):
        lines += [f"### {room.capitalize()}", "", "| mutant | lost | caught by |", "|---|---|---|"]
        for each in outcomes:
            if each.mutant.room == room:
                path, _, test = each.caught_by[0].partition("[")[0].partition("::")
                by = f"`{test}` in `{path.removeprefix('tests/')}`"
                lines.append(f"| `{each.mutant.name}` | {each.mutant.lost} | {by} |")
        lines.append("")
    return lines[:-1]


def known(kind: str) -> list[dict[str, Any]]:
    """Return what random runs leave out, or what survives them: entries of `survivors.toml`.

    Args:
        kind: "left_out" or "survivor".
    """
    return list(tomllib.loads(SURVIVORS.read_text(encoding="utf-8")).get(kind, []))


def list_of_survivors() -> list[str]:
    """Return what survives random runs, by the reason, as lines of a page."""
    reasons: dict[str, list[str]] = {}
    for each in known("survivor"):
        lines = reasons.setdefault(each["why"], [])
        where = f"@@ {each['file'].removeprefix('src/discreet/')} {each['place']}".rstrip()
        if where not in lines:
            lines.append(where)
        lines.append(f"- {each['before']}")
        if "after" in each:
            lines.append(f"+ {each['after']}")
    found = [
        line
        for why, lines in reasons.items()
        for line in (f"**{why}**", "", "```diff", *lines, "```", "")
    ]
    return found[:-1] if found else ["Nothing, so far."]


def list_of_what_is_left_out() -> list[str]:
    """Return what random runs leave out, with reasons, as lines of a page."""
    return [
        f"- {', '.join(_where(each['file'], place) for place in each['places'])}: {each['why']}"
        for each in known("left_out")
    ]


def with_survivors(text: str) -> str:
    """Return the page with what random runs leave out, and what survives them.

    Args:
        text: of the page.
    """
    left_out = page_with(text, "left out", list_of_what_is_left_out())
    return page_with(left_out, "survivors", list_of_survivors())


def _where(file: str, place: str) -> str:
    name = f"`{file.removeprefix('src/discreet/')}`"
    return f"{name}, `{place}`" if place not in {"", "*"} else name


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the mutants, and print which test catches which; return how many survive, at most one.

    Args:
        arguments: of the command line.
    """
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", action="append", metavar="NAME", help="a mutant, or a list")
    parser.add_argument("--workers", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--list", action="store_true", help="say what there is, and try nothing")
    parser.add_argument(
        "--write", action="store_true", help="put what comes out on docs/mutants.md"
    )
    given = parser.parse_args(arguments)
    if given.write and given.only:
        parser.error("--write takes all mutants")
    mutants = all_mutants()
    if given.only:
        unknown = set(given.only) - {each.name for each in mutants} - {e.room for e in mutants}
        if unknown:
            parser.error(f"there is no {min(unknown)}")
        mutants = [each for each in mutants if {each.name, each.room} & set(given.only)]
    if given.list:
        for each in mutants:
            say(f"{each.name} ({each.file}): {each.lost}")
        return 0
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="discreet-mutants-") as folder:
        workers = max(min(given.workers, len(mutants)), 1)
        copies = Copy.several(pathlib.Path(folder), workers)
        check_unchanged(copies, [test for each in mutants for test in each.tests])
        say(f"Unbroken, all tests pass ({time.monotonic() - began:.0f} s).")
        outcomes = try_all(copies, mutants)
    caught = sum(bool(outcome.caught_by) for outcome in outcomes)
    for outcome in outcomes:
        if not outcome.caught_by:
            say(f"SURVIVED: {outcome.mutant.name} ({outcome.mutant.file}): {outcome.why}")
    say(f"{caught} caught, {len(outcomes) - caught} survived ({time.monotonic() - began:.0f} s)")
    if given.write and caught == len(outcomes):
        text = page_with(PAGE.read_text(encoding="utf-8"), "table", table(outcomes))
        PAGE.write_text(with_survivors(text), encoding="utf-8")
    return int(caught < len(outcomes))


if __name__ == "__main__":
    sys.exit(main())
