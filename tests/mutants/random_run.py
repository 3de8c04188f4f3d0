"""Breaks lines at random, and sees whether a fast test of their room notices.

The lists of `run.py` are of what somebody thought of. Here nobody has: every comparison, constant,
sum, condition and call of the rooms below can be changed, and a seed says which are.
`python tests/mutants/random_run.py --seed 7 --count 60` tries so many of them. What no test
notices has to be in `survivors.toml` with the reason why it costs nobody's privacy; else the run
fails.
"""

import argparse
import ast
import copy
import os
import pathlib
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from run import PYTEST, ROOT, Copy, in_parallel, known, say, written

# A room's fast tests take a minute of the processor: what takes longer goes round in circles.
_SECONDS = 240

_SOURCE = "src/discreet"

# The fast tests of each room, the nearest first; those of a file of the same name come before all.
_TESTS = {
    "noise": (
        "tests/unit/noise",
        "tests/property/test_lattice_laws.py",
        "tests/statistical/test_laws.py",
        "tests/golden/test_against_opendp.py",
        "tests/golden/test_truncated_laplace_account.py",
        "tests/property/test_stream_sensitivity.py",
        "tests/unit/stream/test_stream.py",
    ),
    "accounting": (
        "tests/unit/accounting",
        "tests/golden/test_plain_fft.py",
        "tests/golden/test_truncated_laplace_account.py",
        "tests/unit/paper/test_accounts.py",
        "tests/unit/ledger/test_limits.py",
        "tests/property/test_accounting_laws.py",
    ),
    "sums": (
        "tests/unit/sums",
        "tests/golden/test_states.py",
        "tests/unit/readers/attention/test_mechanism.py",
        "tests/unit/readers/attention/test_card.py",
        "tests/unit/readers/attention/test_memory.py",
        "tests/unit/readers/least_squares",
        "tests/unit/readers/softmax/test_rows.py",
        "tests/unit/readers/softmax/test_layout.py",
        "tests/unit/readers/glm/test_rows.py",
        "tests/unit/readers/discovery",
        "tests/unit/readers/table",
        "tests/unit/shards/test_job.py",
        "tests/unit/stream/test_stream.py",
        "tests/unit/ledger/test_counting.py",
        "tests/unit/test_provenance.py",
        "tests/unit/readers/attention/test_reference.py",
        "tests/property/test_memory_sensitivity.py",
        "tests/property/test_moments_sensitivity.py",
        "tests/property/test_rounds_sensitivity.py",
        "tests/property/test_corpus_sensitivity.py",
        "tests/statistical/test_memory_noise.py",
        "tests/statistical/test_tables_noise.py",
    ),
}

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
    ast.MatMult: ast.Mult,
}
_PAIRS = [
    ("min", "max"),
    ("minimum", "maximum"),
    ("floor", "ceil"),
    ("any", "all"),
    ("rint", "trunc"),
    ("zeros", "ones"),
    ("argmin", "argmax"),
    ("exp", "expm1"),
    ("log", "log1p"),
]
_NAMES = {one: other for pair in _PAIRS for one, other in (pair, pair[::-1])}


@dataclass(frozen=True, kw_only=True)
class Change:
    """One change of one file.

    Attributes:
        file: from the root of the repository.
        place: the function or class that it is in.
        kind: of the change.
        lines: those that change, from which to before which, in the file as it is.
        code: what stands in their place.
        before: the lines that change, as one, with single blanks.
        after: what stands in their place, likewise.
    """

    file: str
    place: str
    kind: str
    lines: tuple[int, int]
    code: str
    before: str
    after: str

    def applied_to(self, text: str) -> str:
        """Return the file with the change.

        Args:
            text: the file as it was when the change was found.
        """
        lines = text.encode().splitlines(keepends=True)
        first, end = self.lines
        return b"".join([*lines[:first], self.code.encode(), *lines[end:]]).decode()

    @property
    def known_as(self) -> tuple[str, str, str, str]:
        """What stays the same as long as these lines do, wherever they move."""
        return self.file, self.place, self.before, self.after

    @property
    def within(self) -> list[str]:
        """The place, those that it is in, and "*", which is the whole file."""
        names = self.place.split(".")
        return ["*", *(".".join(names[: count + 1]) for count in range(len(names)))]

    @property
    def room(self) -> str:
        """The folder that it is in."""
        return pathlib.PurePath(self.file).parts[2]

    def stages(self) -> list[tuple[str, ...]]:
        """Return the tests that may notice: of this file, of this room, and all others.

        One after the other, since most changes are noticed by the first, and to load tests takes
        longer than to run them.
        """
        path = pathlib.PurePath(self.file)
        own = f"tests/unit/{self.room}/test_{path.stem}.py"
        first, *rest = _TESTS[self.room]
        stages = [(first,), tuple(rest)]
        return [(own,), *stages] if (ROOT / own).is_file() else stages

    def __str__(self) -> str:
        where = f"{self.file}:{self.lines[0] + 1} {self.place} ({self.kind})"
        return f"{where}\n  - {self.before}\n  + {self.after}"


def all_changes() -> list[Change]:
    """Return every change that there is of the rooms, in the order of files and lines."""
    found = []
    for room in _TESTS:
        for path in sorted((ROOT / _SOURCE / room).glob("*.py")):
            file = path.relative_to(ROOT).as_posix()
            found += changes_of(path.read_text(encoding="utf-8"), file)
    out = {(each["file"], place) for each in known("left_out") for place in each["places"]}
    return [each for each in found if not out & {(each.file, name) for name in each.within}]


def changes_of(text: str, file: str) -> list[Change]:
    """Return every change that there is of one file.

    Args:
        text: of the file.
        file: its name, from the root of the repository.
    """
    lines = text.encode().splitlines(keepends=True)
    made: dict[tuple[int, int, bytes], Change] = {}
    for node, place in _nodes(ast.parse(text)):
        for kind, old, new in _variants(node):
            first, end, code = found = _put(lines, old, new)
            if ast.dump(old) != ast.dump(new):
                before = b"".join(lines[first:end]).decode()
                change = Change(
                    file=file,
                    place=place,
                    kind=kind,
                    lines=(first, end),
                    code=code.decode(),
                    before=_plain(before),
                    after=_plain(code.decode()),
                )
                made.setdefault(found, change)
    return list(made.values())


def _nodes(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """Yield nodes that decide something, and the function or class that each is in."""
    waiting: list[tuple[ast.AST, str]] = [(tree, "")]
    while waiting:
        node, place = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            place = f"{place}.{node.name}".strip(".")
        yield node, place
        waiting += [(child, place) for child in reversed(list(_children(node)))]


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what is below a node, but for annotations, texts, errors and what only prints."""
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert | ast.match_case):
        return
    if isinstance(node, ast.keyword) and node.arg == "strict":  # of `zip`: an assertion, too
        return
    if isinstance(node, ast.FunctionDef) and node.name in {"__repr__", "__str__"}:
        return
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list", "bases", "type_params"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_message(child):
                yield child


def _is_message(node: ast.AST) -> bool:
    """Whether this raises an error in words of its own: the words decide nothing."""
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr.startswith("reject")


# A kind of change, the node that changes, and what stands in its place.
Variant = tuple[str, ast.AST, ast.AST]


def _variants(node: ast.AST) -> Iterator[Variant]:
    """Yield what may stand in the place of a node, or of its condition."""
    if isinstance(node, ast.stmt):
        yield from _of_statement(node)
    elif isinstance(node, ast.Constant):
        yield from _of_constant(node)
    elif isinstance(node, ast.expr):
        yield from _of_expression(node)


def _of_statement(node: ast.stmt) -> Iterator[Variant]:
    match node:
        case ast.AugAssign():
            yield "arithmetic", node, _but(node, op=_ARITHMETIC[type(node.op)]())
            yield "dropped", node, ast.Pass()
        case ast.If():
            yield "negated", node.test, ast.UnaryOp(ast.Not(), node.test)
        case ast.While():
            yield "never", node.test, ast.Constant(value=False)
        case ast.Return(value=ast.expr()):
            yield "nothing returned", node, ast.Return(value=None)
        case ast.Raise() | ast.Expr(value=ast.Call()):
            yield "dropped", node, ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "dropped", node, ast.Pass()


def _of_constant(node: ast.Constant) -> Iterator[Variant]:
    value = node.value
    if isinstance(value, bool):
        others: list[float] = [not value]
    elif isinstance(value, int):
        others = [value + 1, value - 1]
    elif isinstance(value, float):
        others = [value * 2, value / 2]
    else:
        return
    for other in others:
        yield "constant", node, ast.Constant(value=other)


def _of_expression(node: ast.expr) -> Iterator[Variant]:
    match node:
        case ast.Compare():
            for place, operator in enumerate(node.ops):
                ops = [*node.ops]
                ops[place] = _COMPARISONS[type(operator)]()
                yield "comparison", node, _but(node, ops=ops)
        case ast.BinOp():
            yield "arithmetic", node, _but(node, op=_ARITHMETIC[type(node.op)]())
        case ast.BoolOp():
            other = ast.And() if isinstance(node.op, ast.Or) else ast.Or()
            yield "and, or", node, _but(node, op=other)
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert()):
            yield "dropped sign", node, node.operand
        case ast.IfExp():
            yield "negated", node.test, ast.UnaryOp(ast.Not(), node.test)
        case ast.Name() if node.id in _NAMES:
            yield "another function", node, _but(node, id=_NAMES[node.id])
        case ast.Attribute() if node.attr in _NAMES:
            yield "another function", node, _but(node, attr=_NAMES[node.attr])


def _but(node: ast.AST, **fields: object) -> ast.AST:
    """Return a copy of a node with other fields."""
    new = copy.copy(node)
    vars(new).update(fields)
    return new


def _put(lines: Sequence[bytes], node: ast.AST, new: ast.AST) -> tuple[int, int, bytes]:
    """Return which lines change, from which to before which, and what stands in their place."""
    first, end = node.lineno - 1, node.end_lineno  # type: ignore[attr-defined]
    head = lines[first][: node.col_offset]  # type: ignore[attr-defined]
    tail = lines[end - 1][node.end_col_offset :]  # type: ignore[attr-defined]
    code = ast.unparse(new)
    middle = f"({code})" if isinstance(node, ast.expr) else code
    return first, end, head + middle.encode() + tail


def _plain(lines: str) -> str:
    """Return lines as one, with single blanks."""
    return " ".join(lines.split())


def sample(changes: Sequence[Change], *, seed: int, count: int) -> list[Change]:
    """Return some of the changes: with the same seed the same, and of more the first are those.

    Args:
        changes: all that there are.
        seed: of the choice.
        count: how many.
    """
    shuffled = list(changes)
    random.Random(seed).shuffle(shuffled)
    return shuffled[:count]


@dataclass(frozen=True)
class Fate:
    """What became of one change.

    Attributes:
        change: which.
        noticed_by: what failed; nothing if it survived.
        seconds: how long that took.
    """

    change: Change
    noticed_by: str
    seconds: float


def try_change(folder: Copy, change: Change) -> Fate:
    """Make a change, run the tests of its room until one fails, and take it back.

    Args:
        folder: a copy of the repository.
        change: of one file.
    """
    began = time.monotonic()
    path, noticed_by = folder.root / change.file, ""
    with written(path, change.applied_to(path.read_text(encoding="utf-8"))):
        for tests in change.stages():
            noticed_by = noticed_by or _noticed(folder, tests)
    return Fate(change, noticed_by, time.monotonic() - began)


def _noticed(folder: Copy, tests: Sequence[str]) -> str:
    """Return what fails first; nothing if all pass."""
    done = folder.python([*PYTEST, "-m", "not slow and not docs", *tests], seconds=_SECONDS)
    if done is None:
        return "no end of it"
    if done.returncode == 0:
        return ""
    lines = [each for each in done.stdout.splitlines() if each.startswith(("FAILED ", "ERROR "))]
    if lines:
        return lines[0].partition(" ")[2].partition(" - ")[0]
    if "ImportError while loading conftest" in done.stderr:
        return "nothing can be imported"
    raise RuntimeError(f"pytest ended with {done.returncode}:\n{done.stdout}{done.stderr}")


def explained() -> dict[tuple[str, ...], str]:
    """Return why known survivors cost nobody's privacy, by what they are `known_as`.

    An entry without its last part is about a whole line: what survives of its changes.
    """
    return {
        tuple(each[name] for name in ("file", "place", "before", "after") if name in each): each[
            "why"
        ]
        for each in known("survivor")
    }


def reason_of(change: Change, reasons: Mapping[tuple[str, ...], str]) -> str | None:
    """Return why a change that no test notices costs nobody's privacy; None if nobody knows.

    Args:
        change: what survived.
        reasons: of `explained`.
    """
    return reasons.get(change.known_as) or reasons.get(change.known_as[:-1])


def main(arguments: Sequence[str] | None = None) -> int:
    """Try changes, and print what becomes of each; return whether any survives unexplained.

    Args:
        arguments: of the command line.
    """
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--skip", type=int, default=0, help="leave out the first so many")
    parser.add_argument("--room", action="append", choices=sorted(_TESTS))
    parser.add_argument("--workers", type=int, default=min(2, os.cpu_count() or 1))
    given = parser.parse_args(arguments)
    every = [each for each in all_changes() if not given.room or each.room in given.room]
    chosen = sample(every, seed=given.seed, count=given.skip + given.count)[given.skip :]
    say(f"{len(chosen)} of {len(every):,} changes, seed {given.seed}.")
    reasons = explained()

    def attempt(folder: Copy, change: Change) -> Fate:
        fate = try_change(folder, change)
        why = reason_of(change, reasons) or "no test notices"
        say(f"{change}\n  {fate.noticed_by or 'SURVIVED: ' + why} ({fate.seconds:.0f} s)")
        return fate

    with tempfile.TemporaryDirectory(prefix="discreet-mutants-") as made:
        copies = Copy.several(pathlib.Path(made), max(min(given.workers, len(chosen)), 1))
        fates = in_parallel(copies, attempt, chosen)
    survived = [each.change for each in fates if not each.noticed_by]
    unexplained = [each for each in survived if reason_of(each, reasons) is None]
    for each in unexplained:
        say(f"NOT EXPLAINED: {each}")
    say(
        f"{len(fates) - len(survived)} noticed, {len(survived) - len(unexplained)} survived for "
        f"a reason, {len(unexplained)} survived without one"
    )
    return int(bool(unexplained))


if __name__ == "__main__":
    sys.exit(main())
