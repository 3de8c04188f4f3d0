"""`discreet ledger`: a privacy budget in a file."""

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli import options
from discreet.cli.shell import App

ledger = App(
    help="A privacy budget in a file: what was spent on a data set, by whom, and what is left.",
    no_args_is_help=True,
)

Budget = Annotated[Path, typer.Argument(metavar="BUDGET", help="The ledger's file.")]
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
    """Put a data set into a ledger, and make the file if there is none.

    Example: discreet ledger create budget.db clinic --epsilon 4 --delta 1e-5
    """
    from discreet.cli.budget import create_dataset

    create_dataset(budget, name, epsilon=epsilon, delta=delta, neighbours=neighbours, unit=unit)


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
    from discreet.cli.budget import limit_analyst

    limit_analyst(budget, name, analyst, epsilon=epsilon, delta=delta)


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
    from discreet.cli.budget import show_budget

    show_budget(budget, name, picture=picture, force=force, as_json=as_json)


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
    from discreet.cli.budget import spend_file

    spend_file(budget, name, release, analyst=analyst)


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
    from discreet.cli.budget import void_spend

    void_spend(budget, spend_id)
