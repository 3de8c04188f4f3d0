"""`discreet schema`: what the columns of a table hold, as far as that is public."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli import options
from discreet.cli.shell import App, already_written, print_lines, print_page, printable

if TYPE_CHECKING:
    from discreet.tables import Schema
    from discreet.tables.schema import Entry

# A list of more categories is likely to be of ids, or of free texts.
_MANY = 64

# So many categories of a list are shown.
_LISTED = 12

schema = App(
    help="What the columns of a table hold: ranges, lists of categories, dates. Public, and for "
    "discreet fit and regress.",
    no_args_is_help=True,
)


@schema.command("guess")
def guess_file(
    public_table: Annotated[
        Path,
        typer.Argument(
            metavar="PUBLIC_TABLE",
            help="A .csv or .parquet file of rows that anybody may see; never the private ones.",
        ),
    ],
    *,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Where to write the schema; left out: printed."),
    ] = None,
    force: options.Force = False,
) -> None:
    """Guess a schema from PUBLIC rows: ranges rounded outwards, and categories that occur.

    Never from private rows: the largest number of a column is somebody's, and so is a rare
    category. The schema is a TOML file, with a line for each column: look at all of them, change
    what is too narrow, and remove columns that the model is not to look at. Without public rows,
    write it by hand: a range, a list, two dates, or "private numbers" and "private categories",
    which are found with a share of the budget.

    Example: discreet schema guess public.csv -o schema.toml
    """
    from discreet.cli.files import check_output, output_file
    from discreet.tables import guess
    from discreet.tables.whole import read_public

    if output is not None:
        check_output(output, force=force, inputs=(public_table,))
    made = guess(read_public(public_table))
    text = f"{_warning(made, public_table)}\n{made.to_toml()}"
    if output is None:
        print(text, end="")  # noqa: T201 (this is the output)
        return
    with output_file(output, force=force) as file:
        file.write(text.encode())
    with already_written(output):
        count = len(made.names)
        print_page(
            f"{output}: {count} column{'s' * (count != 1)}, guessed from rows that have to be "
            "public. Look at every range and list; never guess from private rows."
        )


@schema.command()
def show(
    schema_file: Annotated[Path, typer.Argument(metavar="SCHEMA_FILE", help="In TOML.")],
) -> None:
    """Print what a schema says of each column, in words.

    Example: discreet schema show schema.toml
    """
    from discreet.tables import Schema

    entries = Schema.read(schema_file).columns
    print_lines({name: _in_words(entry) for name, entry in entries.items()})


def _warning(made: "Schema", public: Path) -> str:
    """Return what stands above a schema that was guessed, as comments of TOML."""
    from discreet.tables.schema import Category

    long = [
        name
        for name, entry in made.columns.items()
        if isinstance(entry, Category) and len(entry.categories) > _MANY
    ]
    lines = [
        f"Guessed by discreet from public rows, those of {public.name!r}.",
        "Ranges were rounded outwards, and lists hold the categories that occur: look at each of",
        "them, since they become part of the model. Remove columns that it is not to look at.",
        "Never guess from private rows: the largest number of a column is somebody's, and so is a",
        "rare category.",
        *(
            f"{name!r} has more than {_MANY} categories: is it an id, or free text?"
            for name in long
        ),
    ]
    return "\n".join(f"# {printable(line)}" for line in lines)


def _in_words(entry: "Entry") -> str:
    from discreet.tables.schema import Category, Date, Number

    if isinstance(entry, Number):
        return f"numbers from {entry.low:g} to {entry.high:g}; others count as the nearer end"
    if isinstance(entry, Date):
        return f"dates from {entry.first} to {entry.last}; others count as the nearer end"
    if isinstance(entry, Category):
        count = len(entry.categories)
        shown = ", ".join(map(str, entry.categories[:_LISTED]))
        more = ", ..." if count > _LISTED else ""
        return f"{count:,} categor{'y' if count == 1 else 'ies'}: {shown}{more}"
    found = "a list of them" if entry.holds == "categories" else "their range"
    held = entry.holds or "numbers, dates or categories, as the table says"
    return (
        f"private: {held}; {found if entry.holds else 'range or list'} is found with a share of ε"
    )
