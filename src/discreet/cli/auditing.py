"""What `discreet audit` prints and draws: lower bounds on ε of discreet's own mechanisms."""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from discreet import _validate
from discreet.accounting.promise import Promise
from discreet.audit.canaries import OneRun
from discreet.audit.catalogue import CASES, Case, named, one_run_of_memory
from discreet.audit.pairs import Run
from discreet.audit.report import Audit
from discreet.cli.files import check_picture, pictures
from discreet.cli.shell import has_terminal, print_json, print_page, say
from discreet.errors import InvalidInput
from discreet.privacy import rounded_down, rounded_up

_HEADINGS = ("mechanism", "measured ε ≥", "promised ε", "share", "pair", "noise", "")

_LIMITS = (
    "An audit tries {what}. A measured ε above what is promised refutes the "
    "promise; where it is kept, 1 audit in {once:,.0f} says so by chance, at most. A measured ε "
    "below it proves nothing by itself: that is what proofs are for."
)

# What is made if nobody says how many.
_BUILDS, _CANARIES = 4_000, 2_000


def show(
    mechanisms: list[str] | None,
    *,
    builds: int | None,
    confidence: float,
    epsilon: float,
    delta: float,
    one_run: bool,
    canaries: int | None,
    picture: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Audit mechanisms, and print what was found; exit with 1 if a promise does not hold."""
    cases = named(mechanisms or ["memory"])
    check_picture(picture, force=force)
    if one_run:
        if [each.name for each in cases] != ["memory"] or picture is not None:
            raise InvalidInput("Expected --one-run of a memory, without a picture.")
        if builds is not None:
            raise InvalidInput("Expected no --builds with --one-run, which makes one release.")
        found: list[Audit] | list[OneRun] = [
            one_run_of_memory(
                epsilon=epsilon,
                delta=delta,
                canaries=_CANARIES if canaries is None else canaries,
                confidence=confidence,
                progress=has_terminal(),
            )
        ]
    else:
        if picture is not None and len(cases) > 1:
            raise InvalidInput("Expected one mechanism for a picture.")
        if canaries is not None:
            raise InvalidInput("Expected --one-run with --canaries.")
        builds = _validate.whole("builds", _BUILDS if builds is None else builds, at_least=40)
        run = Run(builds=builds, confidence=confidence, progress=has_terminal())
        found = _audits(cases, run, epsilon, delta, quiet=as_json)
        if picture is not None:
            _draw(found[0], picture)
    if as_json:
        print_json([each.to_dict() for each in found])
    elif len(found) == 1:
        print_page(str(found[0]))
    if not as_json:
        what = "canaries of one kind in one release" if one_run else "one pair of data sets"
        print_page(_LIMITS.format(what=what, once=1 / (1 - confidence)))
    if not all(each.holds for each in found):
        sys.exit(1)


def _audits(
    cases: Sequence[Case], run: Run, epsilon: float, delta: float, *, quiet: bool
) -> list[Audit]:
    """Return what audits find; of several, a line each is printed as soon as it is known."""
    found, widths = list[Audit](), [max(len(each.name) for each in CASES), *[13] * 3]
    many = len(cases) > 1 and not quiet
    if many:
        print_page(_line(_HEADINGS, widths))
    for case in cases:
        found.append(case.audit(epsilon=epsilon, delta=delta, run=run))
        if many:
            print_page(_line(_cells(found[-1]), widths))
            for each in found[-1].reasons:
                print_page(f"{'':{widths[0]}} because {each}")
            sys.stdout.flush()
    return found


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=False)]
    rest = [cell.ljust(8) for cell in cells[len(widths) :]]
    return " ".join([*padded, *rest]).rstrip()


def _cells(audit: Audit) -> tuple[str, ...]:
    noise = "" if audit.noise is None else f"{audit.noise.ratio:.3f}"
    return (
        audit.name,
        rounded_down(audit.epsilon_lower),
        rounded_up(audit.claimed.epsilon),
        f"{audit.share:.0%}",
        "" if audit.distance is None else f"{audit.distance:.1%}",
        noise,
        "holds" if audit.holds else "DOES NOT HOLD",
    )


def _draw(audit: Audit, picture: Path) -> None:
    """Draw the measured and the promised trade-off."""
    draw = pictures()
    shares = np.geomspace(2e-3, 1.0, 60).tolist()
    found, low, high = audit.curve(shares)
    promise = Promise(audit.claimed, audit.claimed_mu)
    promised = draw.Curve(shares, [promise.found(each) for each in shares])
    title = f"Audit of {audit.name}: {audit.builds:,} builds"
    figure = draw.trade_off(draw.Curve(shares, found), (low, high), promised, title=title)
    draw.save(figure, picture)
    say(f"picture: {picture}")
