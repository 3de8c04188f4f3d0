#!/usr/bin/env python3
"""Checks all proofs from nothing, and what each theorem rests on. Needs Coq and nothing of Python.

    proofs/check.py            # what `make proofs` runs
    proofs/check.py --ready    # whether Coq and its libraries are there

It copies the proofs to build/proofs, compiles them there with nothing left of earlier runs, and
asks Coq what every theorem assumes. It fails if a proof does not hold, if a word stands in a file
that leaves something unproved, if a theorem rests on an axiom that is not in ALLOWED_AXIOMS, or if
docs/privacy.md names a theorem that is not there.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# None. What Gaussian differential privacy is taken for granted to be is no axiom of Coq but an
# argument of the theorems that need it, and is shown beside them.
ALLOWED_AXIOMS: frozenset[str] = frozenset()
ASSUMED = "gaussian_dp"

# What leaves something unproved, or lets Coq believe what it should check.
_LEFT_OUT = re.compile(
    r"\b(Admitted|admit|give_up|Abort|Axioms?|Parameters?|Conjectures?|Primitive|bypass_check)\b"
    r"|\bDeclare\s+(ML\s+)?Module\b|\bUnset\s+(Guard|Positivity|Universe)\s+Checking\b"
)
_THEOREM = re.compile(r"^(?:Theorem|Lemma|Corollary)\s+([A-Za-z_][\w']*)", re.MULTILINE)
_DEFINITION = re.compile(r"^Definition\s+(\w+)\s*:\s*Z\s*:=\s*([^.]+)\.", re.MULTILINE)
_MARK = "*Checked by machine.*"
_WORD = re.compile(r"`(?:proofs/(\w+)\.v|([A-Za-z_][\w']*))`")

_LIBRARIES = """From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From mathcomp.zify Require Import ssrZ zify.
"""

# Said of the libraries' own files, whatever is done with them.
_QUIET = "-notation-overridden,-ambiguous-paths,-projection-no-head-constant"


class ProofError(Exception):
    """Something does not hold, or could not be checked."""


def without_comments(text: str) -> str:
    """Return Coq source without its comments, which may be nested."""
    kept, depth, at = [], 0, 0
    for each in re.finditer(r"\(\*|\*\)|\Z", text):
        if depth == 0:
            kept.append(text[at : each.start()])
        depth = max(depth + {"(*": 1, "*)": -1}.get(each.group(), 0), 0)
        at = each.end()
    return " ".join(kept)


def theorems(path: Path) -> list[str]:
    """Return the names of all theorems and lemmas of a file."""
    return _THEOREM.findall(without_comments(path.read_text("utf-8")))


def constants(path: Path) -> dict[str, int]:
    """Return the whole numbers that a file defines: `Definition name : Z := 2 ^ 16.`."""
    found = {}
    for name, text in _DEFINITION.findall(without_comments(path.read_text("utf-8"))):
        base, _, power = text.partition("^")
        found[name] = int(base) ** int(power or 1)
    return found


def left_out(path: Path) -> list[str]:
    """Return what stands in a file that leaves something unproved."""
    return [each.group() for each in _LEFT_OUT.finditer(without_comments(path.read_text("utf-8")))]


def named(text: str) -> list[tuple[str, str]]:
    """Return the theorems that a document names as checked: pairs of a file's stem and a name."""
    pairs = []
    for part in text.split(_MARK)[1:]:
        stem = ""
        for file, name in _WORD.findall(part.split("\n\n")[0]):
            if file:
                stem = file
            else:
                pairs.append((stem, name))
    return pairs


def run(command: list[str], folder: Path) -> str:
    """Return what a command prints, or raise with what it complains about."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ProofError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def ready() -> bool:
    """Return whether Coq and all libraries are there."""
    if shutil.which("coqc") is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "Libraries.v").write_text(_LIBRARIES)
        try:
            run(["coqc", "-w", _QUIET, "Libraries.v"], Path(folder))
        except ProofError:
            return False
    return True


def compiled(source: Path, into: Path) -> list[Path]:
    """Compile all files of a folder in another one, which is made anew; return them in order."""
    files = sorted(source.glob("*.v"))
    for path in files:
        if words := left_out(path):
            raise ProofError(f"{path.name} leaves something unproved: {', '.join(words)}")
    if into.exists():
        shutil.rmtree(into)
    into.mkdir(parents=True)
    for path in files:
        shutil.copy(path, into)
    flags = ["-Q", ".", "Discreet"]
    names = run(["coqdep", *flags, "-sort", *[path.name for path in files]], into).split()
    order = [into / Path(name).name for name in names]
    if sorted(path.name for path in order) != [path.name for path in files]:
        raise ProofError(f"coqdep knows other files than there are: {names}")
    for path in order:
        run(["coqc", "-q", "-w", _QUIET, *flags, path.name], into)
    return order


def assumptions(stem: str, names: list[str], into: Path) -> dict[str, tuple[list[str], bool]]:
    """Return the axioms that each theorem rests on, and whether it is about `ASSUMED`."""
    lines = [f"From Discreet Require {stem}.", "Require Import String.", "Open Scope string_scope."]
    for name in names:
        lines += [f'Check "{name}".', f"Print Assumptions {stem}.{name}."]
        lines += ['Check "statement".', f"Check @{stem}.{name}."]
    (into / "Assumptions.v").write_text("\n".join(lines) + "\n")
    text = run(["coqc", "-q", "-w", "-all", "-Q", ".", "Discreet", "Assumptions.v"], into)
    # One answer after each word in quotes: the word, what was asked about it, and so on.
    answers = re.split(r'^"([\w\']+)"\s*: string\s*', text, flags=re.MULTILINE)[1:]
    found = {}
    for name, axioms, _, statement in zip(*[iter(answers)] * 4, strict=True):
        closed = axioms.strip() == "Closed under the global context"
        listed = re.findall(r"^(?!Axioms:)([\w.']+)\s*:", axioms, re.MULTILINE) or [axioms]
        found[name] = ([] if closed else listed, ASSUMED in statement)
    if list(found) != names:
        raise ProofError(f"{stem}: Coq answered for {list(found)}, asked for {names}")
    return found


def report(order: list[Path], wanted: set[tuple[str, str]], into: Path) -> int:
    """Print each theorem with what it rests on; return how many there are."""
    count = 0
    for path in order:
        names = theorems(path)
        if not names:
            continue
        print(f"proofs/{path.name}")
        for name, (axioms, about) in assumptions(path.stem, names, into).items():
            if unlisted := set(axioms) - ALLOWED_AXIOMS:
                raise ProofError(f"{path.stem}.{name} rests on {', '.join(sorted(unlisted))}")
            rests = f"axioms: {', '.join(axioms)}" if axioms else "no axioms"
            rests += f"; for every `{ASSUMED}`" if about else ""
            print(f"  {'*' if (path.stem, name) in wanted else ' '} {name:28} {rests}")
            count += 1
    return count


def check(source: Path, page: Path, into: Path) -> None:
    """Check all proofs of a folder, and that those which a page names are among them."""
    wanted = set(named(page.read_text("utf-8")))
    order = compiled(source, into)
    there = {(path.stem, name) for path in order for name in theorems(path)}
    if missing := wanted - there:
        lost = ", ".join(f"{name} in {stem}.v" for stem, name in sorted(missing))
        raise ProofError(f"{page.name} names what is not there: {lost}")
    count = report(order, wanted, into)
    version = run(["coqc", "--print-version"], into).split()[0]
    print(f"{count} theorems and lemmas in {len(order)} files hold (Coq {version}).")
    print(f"The {len(wanted)} with a star are those that {page.name} names; none is missing.")


def main() -> int:
    """Check what the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--ready", action="store_true", help="only say whether Coq is there")
    parser.add_argument("--proofs", type=Path, default=ROOT / "proofs")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "privacy.md")
    parser.add_argument("--into", type=Path, default=ROOT / "build" / "proofs")
    given = parser.parse_args()
    if given.ready:
        return 0 if ready() else 1
    try:
        check(given.proofs, given.page, given.into)
    except (ProofError, OSError) as error:
        print(f"Not checked: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
