"""`discreet ledger`: a privacy budget, in a file or on a server."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli import options
from discreet.cli.shell import App, Page, aligned, print_json, print_page, printable
from discreet.errors import BudgetExceeded
from discreet.privacy import NOT_PRIVATE, rounded_down, rounded_up

if TYPE_CHECKING:
    from discreet.ledger import Spend, Statement

_BAR = 20
_HEADINGS = ("when (UTC)", "state", "ε", "δ", "analyst")

ledger = App(
    help="A privacy budget, in a file or on a server: what was spent on a data set, by whom, and "
    "what is left.",
    no_args_is_help=True,
)

Budget = Annotated[
    str,
    typer.Argument(metavar="BUDGET", help="The ledger: a file, or postgresql://user@host/name."),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The data set's name in the ledger.")]


@ledger.command()
def create(
    budget: Budget,
    name: Name,
    *,
    epsilon: Annotated[float, typer.Option(help="ε of all releases together, for ever.")],
    delta: Annotated[float, typer.Option(help="δ of all releases together, for ever.")],
    neighbours: options.Relation = "add_remove",
    unit: Annotated[
        str, typer.Option(help="row, or record: what all releases are to protect.")
    ] = "row",
) -> None:
    """Put a data set into a ledger, and make the ledger if there is none.

    Example: discreet ledger create budget.db clinic --epsilon 4 --delta 1e-5
    """
    from discreet.ledger import Ledger

    made = Ledger(budget)
    made.create(name, epsilon=epsilon, delta=delta, neighbours=neighbours, unit=unit)
    print_page(f"{_shown(budget)}: {made.statement(name)}")


@ledger.command()
def limit(
    budget: Budget,
    name: Name,
    analyst: Annotated[str, typer.Argument(metavar="ANALYST", help="Whose limit it is.")],
    *,
    epsilon: Annotated[float, typer.Option(help="ε of all that he releases, for ever.")],
    delta: Annotated[float, typer.Option(help="δ of all that he releases, for ever.")],
) -> None:
    """Give one analyst a limit of his own, within that of the data set.

    Example: discreet ledger limit budget.db clinic eve --epsilon 1 --delta 1e-6
    """
    from discreet.ledger import Ledger

    opened = Ledger(budget)
    opened.limit_analyst(name, analyst, epsilon=epsilon, delta=delta)
    print_page(f"{_shown(budget)}: {opened.statement(name, analyst=analyst)}")


@ledger.command()
def show(
    budget: Budget,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="One data set; left out: all.")
    ] = None,
    *,
    picture: options.Picture = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Show what is spent on data sets, and what is left.

    Example: discreet ledger show budget.db clinic --picture clinic.png
    """
    from discreet.cli.files import check_picture, pictures
    from discreet.ledger import Ledger

    check_picture(picture, force=force, inputs=(Path(budget),))
    opened = Ledger(budget)
    statements = [
        opened.statement(each) for each in (opened.datasets() if name is None else [name])
    ]
    accounts = [
        [each, *(opened.statement(each.dataset, analyst=who) for who in each.limits)]
        for each in statements
    ]
    if picture is not None:
        draw = pictures()
        draw.save(draw.budgets([_bar_of(each) for some in accounts for each in some]), picture)
    if as_json:
        print_json([each.to_dict() for each in statements])
        return
    if not statements:
        print_page(f"{_shown(budget)}: no data set yet.")
    for some in accounts:
        _print_account(some)
    if picture is not None:
        print_page(f"{picture}: the same, drawn")


@ledger.command()
def spend(
    budget: Budget,
    name: Name,
    release: Annotated[
        Path, typer.Argument(metavar="FILE", help="A file that discreet build or fit wrote.")
    ],
    *,
    analyst: options.Analyst = None,
) -> None:
    """Count a file that was made without the ledger.

    It is counted even if it exceeds the limit, since it cannot be taken back.

    Example: discreet ledger spend budget.db clinic memory.safetensors
    """
    from discreet.cli.files import note_release
    from discreet.cli.releases import opened_release
    from discreet.ledger import Ledger

    opened, made = Ledger(budget), opened_release(release)
    try:
        opened.spend(name, made, analyst=analyst)
    except BudgetExceeded:  # and counted
        note_release(opened, made, release)
        raise
    note_release(opened, made, release)
    print_page(f"{_shown(budget)}: {opened.statement(name)}")


@ledger.command()
def void(
    budget: Budget,
    spend_id: Annotated[
        str,
        typer.Argument(metavar="ID", help="Of the reservation, as discreet ledger show has it."),
    ],
) -> None:
    """Take back a reservation whose noise was never drawn, for instance after a crash.

    It counts no more, unless another release of the data set was drawn since it was reserved: then
    it keeps counting, and a warning says so.

    Example: discreet ledger void budget.db 0123456789abcdef0123456789abcdef
    """
    from discreet.ledger import Ledger

    ends = (
        "keeps counting" if Ledger(budget).void(spend_id) else "counts no more"
    )  # a warning says why
    print_page(f"{_shown(budget)}: {spend_id} is voided, and {ends}.")


def _shown(budget: str) -> str:
    """Return the ledger's place as it was typed, but for a password."""
    from discreet.ledger.addresses import shown

    return shown(budget)


def _bar_of(statement: "Statement") -> tuple[str, float, float]:
    """Return a name, what is spent, and the limit, as a picture needs them."""
    who = "" if statement.analyst is None else f", {statement.analyst}"
    mark = "" if statement.private else f" ({NOT_PRIVATE})"
    label = f"{statement.dataset}{who}{mark}\nδ = {statement.limit.delta:g}"
    return label, statement.spent.epsilon, statement.limit.epsilon


def _bar(statement: "Statement") -> str:
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


def _print_account(statements: "list[Statement]") -> None:
    """Print the statements of a data set and of its analysts, and what was spent on it."""
    for each in statements:
        print_page(str(each))
        print_page(_bar(each))
    if statements[0].spends:
        _print_spends(statements[0])


def _print_spends(statement: "Statement") -> None:
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


def _state(spend: "Spend") -> str:
    """Return how far a spend has come, and what else there is to know of it."""
    from discreet.ledger import State

    still = ", still counts" if spend.state is State.VOIDED and spend.counts else ""
    return f"{spend.state}{still}{'' if spend.receipt.private else f' {NOT_PRIVATE}'}"
