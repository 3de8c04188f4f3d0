"""What `discreet ledger` does: puts data sets in, counts, shows."""

from pathlib import Path
from typing import Any

from discreet.cli.aligned import aligned
from discreet.cli.commands import check_output, opened_release, pictures, print_json, print_page
from discreet.cli.counting import note_release
from discreet.cli.shell import Page, printable
from discreet.errors import BudgetExceeded
from discreet.ledger import Ledger, Spend, State, Statement
from discreet.privacy import NOT_PRIVATE, rounded_down, rounded_up

_BAR = 20
_HEADINGS = ("when (UTC)", "state", "ε", "δ", "analyst")


def create_dataset(path: Path, name: str, **options: Any) -> None:  # noqa: ANN401 (Ledger.create's)
    """Put a data set into a ledger."""
    ledger = Ledger(path)
    ledger.create(name, **options)
    print_page(f"{path}: {ledger.statement(name)}")


def limit_analyst(path: Path, name: str, analyst: str, *, epsilon: float, delta: float) -> None:
    """Give an analyst a limit of his own."""
    ledger = Ledger(path)
    ledger.limit_analyst(name, analyst, epsilon=epsilon, delta=delta)
    print_page(f"{path}: {ledger.statement(name, analyst=analyst)}")


def spend_file(path: Path, name: str, release: Path, *, analyst: str | None) -> None:
    """Count the receipt of a released file, and note where it is."""
    ledger, made = Ledger(path), opened_release(release)
    try:
        ledger.spend(name, made, analyst=analyst)
    except BudgetExceeded:  # and counted
        note_release({"ledger": ledger}, made, release)
        raise
    note_release({"ledger": ledger}, made, release)
    print_page(f"{path}: {ledger.statement(name)}")


def void_spend(path: Path, name: str) -> None:
    """Take back a reservation."""
    ends = "keeps counting" if Ledger(path).void(name) else "counts no more"  # a warning says why
    print_page(f"{path}: {name} is voided, and {ends}.")


def show_budget(
    path: Path, name: str | None, *, picture: Path | None, force: bool, as_json: bool
) -> None:
    """Print what is spent on one data set or on all, and draw it."""
    if picture is not None:
        check_output(picture, force=force, inputs=(path,))
        pictures().check_suffix(picture)
    ledger = Ledger(path)
    names = ledger.datasets() if name is None else [name]
    statements = [ledger.statement(each) for each in names]
    accounts = [
        [each, *(ledger.statement(each.dataset, analyst=who) for who in each.limits)]
        for each in statements
    ]
    if picture is not None:
        draw = pictures()
        draw.save(draw.budgets([_bar_of(each) for some in accounts for each in some]), picture)
    if as_json:
        print_json([each.to_dict() for each in statements])
        return
    if not statements:
        print_page(f"{path}: no data set yet.")
    for some in accounts:
        for each in some:
            print_page(str(each))
            print_page(_bar(each))
        if some[0].spends:
            _print_spends(some[0])
    if picture is not None:
        print_page(f"{picture}: the same, drawn")


def _bar_of(statement: Statement) -> tuple[str, float, float]:
    """Return a name, what is spent, and the limit, as a picture needs them."""
    who = "" if statement.analyst is None else f", {statement.analyst}"
    mark = "" if statement.private else f" ({NOT_PRIVATE})"
    label = f"{statement.dataset}{who}{mark}\nδ = {statement.limit.delta:g}"
    return label, statement.spent.epsilon, statement.limit.epsilon


def _bar(statement: Statement) -> str:
    """Return what is spent as a bar; it is full if nothing is left, and only then."""
    part = min(statement.spent.epsilon / statement.limit.epsilon, 1.0)
    full = round(part * _BAR)
    if not statement.left:
        full = _BAR
    elif part > 0:
        full = min(max(full, 1), _BAR - 1)
    left = f"{rounded_down(statement.left)} left" if statement.left else "nothing left"
    spent = rounded_up(statement.spent.epsilon)
    return f"[{'#' * full}{'.' * (_BAR - full)}] ε = {spent} spent, {left}"


def _print_spends(statement: Statement) -> None:
    """Print when and what was spent; under each its id, which is to be typed again, and its files.

    What counts no more is dim.
    """
    console = Page()
    cells = [
        (
            each.at[:10],
            _state(each),
            rounded_up(each.epsilon),
            f"{each.delta:g}",
            printable(each.analyst or ""),
        )
        for each in statement.spends
    ]
    heading, *drawn = aligned([_HEADINGS, *cells], gap=2, right=False)
    console.print(heading, style="bold", markup=False, soft_wrap=True)
    for each, text in zip(statement.spends, drawn, strict=True):
        style = None if each.counts else "dim"
        leaks = [each.receipt.note.removeprefix(", ")] if each.receipt.leaks else []
        below = [each.id, *leaks, *(printable(place) for place in each.places)]
        for line in (text, *(f"  {one}" for one in below)):
            console.print(line, style=style, markup=False, soft_wrap=True)


def _state(spend: Spend) -> str:
    """Return how far a spend has come, and what else there is to know of it."""
    still = ", still counts" if spend.state is State.VOIDED and spend.counts else ""
    return f"{spend.state}{still}{'' if spend.receipt.private else f' {NOT_PRIVATE}'}"
