"""The lists of mutants fit the code, the tests and the page about them."""

import ast
import importlib.util
import pathlib
import re
import shutil
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / "docs" / "mutants.md"


def loaded(name):
    """A script of tests/mutants, which is no package."""
    path = ROOT / "tests" / "mutants" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


run = loaded("run")
random_run = loaded("random_run")
MUTANTS = run.all_mutants()


def classes_of(path):
    """The classes of a file, by name."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return {node.name: node for node in body if isinstance(node, ast.ClassDef)}


SHARED = {}
for each in sorted((ROOT / "tests" / "support").glob("*.py")):
    SHARED |= classes_of(each)


def methods_of(node, classes):
    """The names of a class's functions, and of those that it takes over."""
    names = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
    for base in map(ast.unparse, node.bases):
        if base in classes:
            names |= methods_of(classes[base], classes)
    return names


def functions_of(path):
    """The names of tests in a file, those in classes behind the name of the class."""
    body = ast.parse((ROOT / path).read_text(encoding="utf-8")).body
    names = {node.name for node in body if isinstance(node, ast.FunctionDef)}
    own = classes_of(ROOT / path)
    for name, node in own.items():
        names |= {f"{name}::{each}" for each in methods_of(node, SHARED | own)}
    return names


def slow_of(path):
    """The names of functions in a file that are marked as slow, or as tests of documents."""
    marked = set()
    for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            words = " ".join(map(ast.unparse, node.decorator_list))
            if re.search(r"mark\.(slow|docs)\b(?!.*pytest\.param)", words):
                marked.add(node.name)
    return marked


def test_there_are_many_and_each_has_a_name_of_its_own():
    names = [each.name for each in MUTANTS]
    assert len(names) >= 40
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9.-]+", name) for name in names)
    assert len({each.lost for each in MUTANTS}) == len(MUTANTS)


def test_every_mutant_applies_to_its_file_once():
    texts = {each.file: (ROOT / each.file).read_text(encoding="utf-8") for each in MUTANTS}
    for each in MUTANTS:
        assert each.applied_to(texts[each.file]) != texts[each.file]


def test_what_does_not_apply_is_refused():
    some = MUTANTS[0]
    whole = (ROOT / some.file).read_text(encoding="utf-8")
    for text in ("", whole + some.before):
        with pytest.raises(ValueError, match="not once"):
            some.applied_to(text)


def test_the_tests_that_must_notice_exist_and_are_fast():
    for path in {test.partition("::")[0] for each in MUTANTS for test in each.tests}:
        there, slow = functions_of(path), slow_of(path)
        named = {
            re.sub(r"\[.*", "", test.partition("::")[2])
            for each in MUTANTS
            for test in each.tests
            if test.startswith(f"{path}::")
        }
        assert named <= there, path
        assert not named & slow, path


def test_each_kind_that_the_page_promises_is_there():
    kinds = PAGE.read_text(encoding="utf-8").partition("## The kinds")[2].partition("\n## ")[0]
    promised = re.findall(r"`([a-z0-9.-]+)`", kinds)
    assert len(promised) >= 20
    assert set(promised) <= {each.name for each in MUTANTS}


def test_the_page_has_every_mutant_and_a_test_that_is_named_for_it():
    rows = dict(
        re.findall(
            r"^\| `([a-z0-9.-]+)` \| .* \| (`.*`) \|$", PAGE.read_text("utf-8"), re.MULTILINE
        )
    )
    assert rows.keys() == {each.name for each in MUTANTS}
    for each in MUTANTS:
        test, path = re.fullmatch("`(.*)` in `(.*)`", rows[each.name]).groups()
        assert f"tests/{path}::{test}" in {named.partition("[")[0] for named in each.tests}


def test_the_page_explains_what_survives_random_runs():
    text = PAGE.read_text(encoding="utf-8")
    assert run.with_survivors(text) == text


def test_survivors_are_changes_that_there_are():
    """An entry for lines that are gone would explain nothing."""
    files = sorted({file for file, *_ in random_run.explained()})
    there = {
        known_as
        for file in files
        for change in random_run.changes_of((ROOT / file).read_text(encoding="utf-8"), file)
        for known_as in (change.known_as, change.known_as[:-1])
    }
    assert random_run.explained().keys() <= there


def test_a_reason_is_for_one_change_or_for_those_of_one_line():
    one, other, *_ = (
        each for each in random_run.changes_of(SOURCE, "more.py") if each.before == "LIMIT = 3"
    )
    assert random_run.reason_of(one, {one.known_as: "why"}) == "why"
    assert random_run.reason_of(other, {one.known_as: "why"}) is None
    assert random_run.reason_of(other, {one.known_as[:-1]: "why"}) == "why"
    elsewhere = ("other.py", *one.known_as[1:-1])
    assert random_run.reason_of(other, {elsewhere: "why"}) is None


def test_what_random_runs_leave_out_is_there_and_left_out():
    entries = run.known("left_out")
    assert all(each["why"].endswith(".") for each in entries)
    tried = {(change.file, change.place) for change in random_run.all_changes()}
    for each in entries:
        text = (ROOT / each["file"]).read_text(encoding="utf-8")
        there = {change.place for change in random_run.changes_of(text, each["file"])}
        assert set(each["places"]) <= there | {"*"}
        left = {
            place
            for place in there
            if any(name in ("*", place) or place.startswith(f"{name}.") for name in each["places"])
        }
        assert not {(each["file"], place) for place in left} & tried


SOURCE = '''"""A text with 7 in it."""
LIMIT = 3


def more(count: int = 2, *, wide: bool = False) -> int:
    """Return 5 more."""
    if count < LIMIT and not wide:
        return count + 1
    while count > 2**LIMIT:
        count -= min(count, 4)
    if wide:
        raise ValueError(f"Expected less than {2 * LIMIT}.")
    check(count, list(zip([1], [1], strict=True)))
    return -count
'''


def test_random_changes_are_of_what_decides_something():
    found = random_run.changes_of(SOURCE, "more.py")
    after = {each.after for each in found}
    for wanted in (
        "LIMIT = (4)",
        "def more(count: int = (1), *, wide: bool = False) -> int:",
        "def more(count: int = 2, *, wide: bool = (True)) -> int:",
        "if (count <= LIMIT) and not wide:",
        "if (count < LIMIT or not wide):",
        "if (not (count < LIMIT and (not wide))):",
        "if count < LIMIT and (wide):",
        "return (count - 1)",
        "return",
        "while (False):",
        "while count > (2 * LIMIT):",
        "count += min(count, 4)",
        "count -= (max)(count, 4)",
        "pass",
        "return (count)",
    ):
        assert wanted in after
    unseen = ("(6)", "(8)", "ValueError", "strict=(")
    assert not any(part in each for each in after for part in unseen)
    assert all(compile(each.applied_to(SOURCE), "more.py", "exec") for each in found)


def test_the_seed_says_which_changes_are_tried():
    found = random_run.changes_of(SOURCE, "more.py")
    some = random_run.sample(found, seed=1, count=10)
    assert some == random_run.sample(found, seed=1, count=20)[:10]
    assert some != random_run.sample(found, seed=2, count=10)


def test_lines_between_marks_are_replaced_and_no_others():
    text = "before\n<!-- x: made by tests/mutants/run.py -->\nold\n<!-- x: end -->\nbehind"
    new = run.page_with(text, "x", ["one", r"a \d"])
    assert new.splitlines()[2:5] == ["", "one", r"a \d"]
    assert new.startswith("before\n")
    assert new.endswith("\nbehind")
    assert "old" not in new
    with pytest.raises(ValueError, match="once"):
        run.page_with(text, "y", [])


NUMBERS = """
LARGEST = 5
"""
PROFILE = """
from hypothesis import settings

settings.register_profile("discreet")
"""
LOOKS_AT_THEM = """
from dataclasses import dataclass
from typing import ClassVar

from hypothesis import given
from hypothesis import strategies as st
from numbers_ import LARGEST


@dataclass
class Shown:
    number: int


@dataclass
class Hidden:
    kind: ClassVar[str]
    number: int


@given(st.data())
def test_shown(data):
    assert data.draw(st.integers(0, LARGEST).map(Shown)).number <= 5


@st.composite
def hidden(draw):
    return Hidden(draw(st.integers(0, LARGEST)))


@given(st.data())
def test_hidden(data):
    made = data.draw(hidden())
    assert made.number <= 5 * data.draw(st.integers(1, 1))
"""


@pytest.mark.parametrize(
    ("test", "after", "why"),
    [
        ("shown", "9", ""),
        ("shown", "3", "passed"),
        ("shown", "", "imported"),
        # Hypothesis cannot print what it drew: that failure would catch any mutant or none.
        ("hidden", "9", "hides which"),
    ],
)
def test_a_failure_that_says_what_failed_is_a_catch_and_no_other(tmp_path, test, after, why):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "numbers_.py").write_text(NUMBERS)
    (tmp_path / "conftest.py").write_text(PROFILE)
    (tmp_path / "test_numbers.py").write_text(LOOKS_AT_THEM)
    (tmp_path / "tests").mkdir()
    shutil.copytree(ROOT / "tests" / "mutants", tmp_path / "tests" / "mutants")
    mutant = run.Mutant(
        name="more",
        lost="Nothing.",
        file="src/numbers_.py",
        before="LARGEST = 5",
        after=f"LARGEST = {after}" if after else "SMALLEST = 5",
        tests=(f"test_numbers.py::test_{test}",),
        room="numbers",
    )
    outcome = run.Copy(tmp_path).try_mutant(mutant)
    assert outcome.caught_by == (mutant.tests if not why else ())
    assert why in outcome.why
    assert bool(why) == bool(outcome.why)
