"""`discreet stream`: rows that arrive in steps, and a release after each, under one guarantee.

What can be typed is declared here; `streaming` begins streams, goes on with them and saves their
states, and `stream_page` shows them.
"""

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli import options
from discreet.cli.shell import App

stream = App(
    help="A memory that grows: rows arrive in steps, and one guarantee covers all of them.",
    no_args_is_help=True,
)

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of the stream.")]
KeyFile = Annotated[
    Path,
    typer.Option(
        metavar="FILE", help="The stream's key, 64 hexadecimal digits; keep it where the rows are."
    ),
]


@stream.command(runs="streaming.create_stream")
def create(
    folder: Folder,
    *,
    key_file: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="The stream's key, 64 hexadecimal digits; made if there is no such file. Keep it "
            "where the rows are.",
        ),
    ],
    steps: Annotated[
        int, typer.Option(help="How many there will be, about: the noise is least there.")
    ],
    epsilon: options.Epsilon,
    delta: options.Delta,
    key_dim: Annotated[int, typer.Option(help="Numbers in a key.")],
    value_dim: Annotated[int, typer.Option(help="Numbers in a value.")],
    heads: Annotated[
        str | None,
        typer.Option(metavar="N", help="Heads of keys and values: 8, or 2,4 for two axes of them."),
    ] = None,
    by_record: options.ByRecord = False,
    participations: Annotated[
        int, typer.Option(help="In so many steps a record, or a row's owner, may have rows.")
    ] = 1,
    separation: Annotated[int, typer.Option(help="And those at least so many steps apart.")] = 1,
    lifetime_rows: Annotated[
        int | None,
        typer.Option(help="Or, for records: so many rows in all, in any steps."),
    ] = None,
    window: Annotated[
        int | None,
        typer.Option(help="Least noise for the last so many steps; left out: for all steps."),
    ] = None,
    half_life: Annotated[
        float | None,
        typer.Option(help="Or for all steps, weights halved after so many more."),
    ] = None,
    keep: Annotated[
        int | None,
        typer.Option(help="So many of the last states stay in the folder; left out: all."),
    ] = None,
    rows_hint: Annotated[
        int | None,
        typer.Option(help="A public, rounded number of rows of all --steps; never a count."),
    ] = None,
    group_rows: Annotated[
        float, typer.Option(help="A record counts as so many rows, in each step.")
    ] = 1.0,
    neighbours: options.Relation = "add_remove",
    key_norm: options.KeyNorm = 1.0,
    value_norm: options.ValueNorm = 1.0,
    public: options.Public = None,
    reader: Annotated[
        str,
        typer.Option(
            help="What is made of each state: attention, or least_squares.",
            autocompletion=lambda: ["attention", "least_squares"],
        ),
    ] = "attention",
    scale: options.Scale = None,
    kernel: options.KernelName = "auto",
    features: options.Features = None,
    goal: options.GoalName = "rank",
    reference: options.Reference = None,
    query_norm: options.QueryNorm = 1.0,
    feature_kind: options.OtherFeatureKind = "auto",
    ridge: options.Ridge = 0.5,
    share: options.Share = None,
    ledger: options.LedgerFile = None,
    dataset: options.Dataset = None,
    analyst: options.Analyst = None,
    stated: options.Stated = None,
    as_json: options.Json = False,
) -> None:
    """Begin a stream: fix what is public, count it once for all its steps, and make its folder.

    ε and δ are for all that is ever released of it. --feature-kind, --ridge and --share are for
    least_squares; --scale, --kernel, --features, --goal, --reference and --query-norm for
    attention.

    Example: discreet stream create tickets --key-file tickets.key --steps 365 --rows-hint 100000
    --key-dim 5 --value-dim 3 --epsilon 1 --delta 1e-6
    """


@stream.command(runs="streaming.append_step")
def append(
    folder: Folder,
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="[SOURCE]",
            help="The rows of the step: a directory of .parquet files, a quoted pattern like "
            "'data/*.parquet', or one file (.parquet, .npz or .safetensors). Without --keys: the "
            "keys, as FILE[:NAME], also .npy, shape (n, d) or (*heads, n, d).",
        ),
    ] = None,
    values_file: options.ValuesFile = None,
    *,
    key_file: KeyFile,
    step: Annotated[
        str, typer.Option(metavar="NAME", help="The public name of the step, such as a date.")
    ],
    keys: options.SomeKeyNames = None,
    values: options.ValueNames = None,
    groups: options.Groups = None,
    no_rows: Annotated[
        bool, typer.Option("--no-rows", help="A step without rows, which is one, too.")
    ] = False,
    ledger: Annotated[
        str | None,
        typer.Option(metavar="BUDGET", help="Where the stream's ledger is, if it has moved."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Add the rows of one step, and publish the sums of all steps so far, with their noise.

    Rows are given as to discreet build. A step that is there already is left alone: the command can
    be run again. Steps follow a public clock, so a day without rows is a step: --no-rows.

    Example: discreet stream append tickets keys.npy values.npy --key-file tickets.key --step
    2026-03-01
    """


@stream.command(runs="stream_page.show_stream")
def show(
    folder: Folder,
    *,
    picture: options.Picture = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Show what anybody may know of a stream: its guarantee, its steps, and how noisy it is.

    Needs no key. Windows and half-lives are read from what is published, as often as liked: that
    costs no privacy.

    Example: discreet stream show tickets --picture tickets.png
    """


@stream.command(runs="streaming.export_state")
def export(
    folder: Folder,
    *,
    output: options.Output,
    last: Annotated[
        int | None, typer.Option(metavar="N", help="Of the last so many steps; left out: of all.")
    ] = None,
    half_life: Annotated[
        float | None, typer.Option(help="Or of all, weights halved after so many more steps.")
    ] = None,
    step: Annotated[
        str | None, typer.Option(metavar="NAME", help="As it was after this step; else the last.")
    ] = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Save a state of a stream as one file that can be given away. Needs no key.

    It is a file like that of discreet build (or regress), for discreet attend, predict and card.

    Example: discreet stream export tickets --last 30 -o month.safetensors
    """
