"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

_SOURCE = "FILE[:NAME]"

Source = Annotated[
    Path,
    typer.Argument(
        metavar="SOURCE",
        help="A directory of .parquet files, a quoted pattern like 'data/*.parquet', or one file "
        "(.parquet, .npz or .safetensors). Without --keys: the keys, as FILE[:NAME], also .npy, "
        "shape (n, d) or (*heads, n, d).",
    ),
]
ValuesFile = Annotated[
    Path | None,
    typer.Argument(
        metavar="[VALUES_FILE]", help="Without --values: the values, as FILE[:NAME], likewise."
    ),
]
Queries = Annotated[
    Path, typer.Argument(metavar="QUERIES", help="Shape (..., d), or (..., *heads, m, d).")
]
MemoryFile = Annotated[
    Path, typer.Argument(metavar="MEMORY", help="A file that discreet build wrote.")
]
Rows = Annotated[
    Path,
    typer.Argument(
        metavar="QUERIES",
        help="Of a model with a schema: a .csv or .parquet file with the same columns. Else an "
        "array of shape (..., d), FILE or FILE:NAME.",
    ),
]
ModelFile = Annotated[
    Path,
    typer.Argument(metavar="MODEL", help="A file that discreet fit or regress wrote."),
]
Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="A directory of .parquet files, a quoted pattern like 'data/*.parquet', or one file "
        "(.parquet, .npz or .safetensors). With --schema: one .csv or .parquet file.",
    ),
]
KeyNames = Annotated[
    str | None,
    typer.Option(
        "--keys",
        metavar="NAME",
        help="An array of shape (n, d), a column of lists, or columns of numbers: one,two,three. "
        "Left out, and without --schema: keys.",
    ),
]
SchemaFile = Annotated[
    Path | None,
    typer.Option(
        "--schema",
        metavar="FILE",
        help="What columns hold, in place of --keys: a TOML file, as discreet schema guess makes "
        "it.",
    ),
]
TargetName = Annotated[
    str | None,
    typer.Option("--target", metavar="NAME", help="With --schema: the column to predict."),
]
TargetBounds = Annotated[
    str | None,
    typer.Option(
        "--target-bounds",
        metavar="LOW,HIGH",
        help="With --schema: its public range. Numbers beyond are clipped.",
    ),
]
TargetScale = Annotated[
    str,
    typer.Option(
        "--target-scale",
        help="With --schema: linear, or log, for amounts and counts.",
        autocompletion=lambda: ["linear", "log"],
    ),
]
SomeKeyNames = Annotated[
    str | None,
    typer.Option(
        "--keys",
        metavar="NAME",
        help="A column of lists, columns of numbers (one,two,three), or an array, of SOURCE.",
    ),
]
ValueNames = Annotated[
    str | None, typer.Option("--values", metavar="NAME", help="Likewise, for values.")
]
LabelName = Annotated[
    str, typer.Option(metavar="NAME", help="The label of each row, numbers or texts.")
]
GroupName = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The record of each row, whole numbers or texts."),
]
Classes = Annotated[
    str,
    typer.Option(
        metavar="LIST",
        help="All labels that there may be, public: a,b,c, or 0,1,2 where labels are numbers.",
    ),
]
CountOrClasses = Annotated[
    str, typer.Option("--classes", metavar="LIST", help="How many there are, or a list: a,b,c.")
]
_FEATURE_KINDS = (
    "auto, linear, unit_linear, unit_fourier, linear_and_fourier or unit_landmarks (needs --public)"
)


def _feature_kinds() -> list[str]:
    return [
        "auto",
        "linear",
        "unit_linear",
        "unit_fourier",
        "linear_and_fourier",
        "unit_landmarks",
    ]


FeatureKind = Annotated[
    str,
    typer.Option("--features", help=f"{_FEATURE_KINDS}.", autocompletion=_feature_kinds),
]
# Where --features is how many an attention may have.
OtherFeatureKind = Annotated[
    str,
    typer.Option("--feature-kind", help=f"{_FEATURE_KINDS}.", autocompletion=_feature_kinds),
]
Ridge = Annotated[
    float, typer.Option(help="How much is shrunk: 0.5 for numbers; 0.3 is better for classes.")
]
Share = Annotated[
    float | None,
    typer.Option(help="Of the squared budget, for second moments; left out: a third."),
]
MemoryLimit = Annotated[
    float,
    typer.Option(help="Bytes of features to keep between rounds; beyond it they are made again."),
]
Groups = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The record of each row, whole numbers or texts: a column of SOURCE. Without --keys: "
        f"{_SOURCE}.",
    ),
]
ByRecord = Annotated[
    bool, typer.Option("--by-record", help="Protect records of many rows (--groups).")
]
Epsilon = Annotated[float, typer.Option(help="ε: how much any one row may change what is seen.")]
Delta = Annotated[float, typer.Option(help="δ: well below one over the number of people.")]
Relation = Annotated[
    str,
    typer.Option(
        "--neighbours",
        help="add_remove, or replace.",
        autocompletion=lambda: ["add_remove", "replace"],
    ),
]
Scale = Annotated[
    float | None, typer.Option(help="logit = scale·⟨query, key⟩; left out: recommended.")
]
KernelName = Annotated[
    str,
    typer.Option(
        "--kernel",
        help="auto, or a kernel by name (minimax, fourier, ...).",
        autocompletion=lambda: ["auto", "minimax", "fourier", "taylor", "landmarks"],
    ),
]
Features = Annotated[
    int | None, typer.Option(help="The most features; more have less error, and take longer.")
]
GoalName = Annotated[
    str,
    typer.Option(
        "--goal",
        help="What answers are for: rank (votes), or average (the numbers themselves).",
        autocompletion=lambda: ["rank", "average"],
    ),
]
Public = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",  # a longer one leaves names of features no room in narrow terminals
        help=f"Rows like the keys that anybody may see, shape (n, d), as {_SOURCE}: they become "
        "part of the file.",
    ),
]
Reference = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help=f"Public rows, or example queries, shape (n, d), as {_SOURCE}: random features are "
        "read more exactly near them.",
    ),
]
KeyNorm = Annotated[
    float, typer.Option(help="Public bound on the length of keys; longer ones are clipped.")
]
QueryNorm = Annotated[
    float, typer.Option(help="Public bound on the length of queries; longer ones are clipped.")
]
ValueNorm = Annotated[
    float, typer.Option(help="Public bound on the length of values; longer ones are clipped.")
]
RowsHint = Annotated[
    int | None, typer.Option(help="A public, rounded number of rows; never a count.")
]
GroupRows = Annotated[float, typer.Option(help="A record counts as so many rows.")]
Workers = Annotated[
    int | None,
    typer.Option(metavar="N", help="Processes that read files side by side."),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="A cluster of Dask that can open the same files: tls://host:port or tcp://host:port.",
    ),
]
LedgerFile = Annotated[
    str | None,
    typer.Option(
        metavar="BUDGET",
        help="Count it in this ledger, a file or a database, before any noise is drawn.",
    ),
]
Dataset = Annotated[
    str | None, typer.Option(metavar="NAME", help="The name that the rows have in the ledger.")
]
Analyst = Annotated[
    str | None, typer.Option(metavar="WHO", help="Who asks; he may have a limit of his own.")
]
Stated = Annotated[
    list[str] | None,
    typer.Option(
        "--stated",
        metavar="TEXT",
        help="What the file says of itself in your words: data=..., builder=..., purpose=..., "
        "contact=..., date=2026-03-01; each with --stated before it. Or a .toml file with these.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing file.")]
Output = Annotated[Path, typer.Option("--output", "-o", help="Where to write.")]
Answers = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        help="Where to write: a .csv, .parquet or .jsonl file of rows, or a .npy file (.npz for "
        "several arrays); - for standard output.",
    ),
]
SomeRows = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="Write rows: a .csv, .parquet or .jsonl file; - for standard output.",
    ),
]
RowFormat = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help="Of what is written, whatever the file's ending: csv, parquet, jsonl, npy or npz. "
        "Left out on standard output: csv.",
        autocompletion=lambda: ["csv", "parquet", "jsonl", "npy", "npz"],
    ),
]
SomeRowFormat = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help="Of what is written, whatever the file's ending: csv, parquet or jsonl. Left out on "
        "standard output: csv.",
        autocompletion=lambda: ["csv", "parquet", "jsonl"],
    ),
]
RowId = Annotated[
    str | None,
    typer.Option(
        "--id",
        metavar="COLUMN",
        help="A column of the file of QUERIES to write before each answer, in its row.",
    ),
]
Picture = Annotated[
    Path | None, typer.Option(help="Draw it, into a .png or .svg file (needs matplotlib).")
]
