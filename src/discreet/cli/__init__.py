"""The `discreet` command. Thin: it parses, calls the library and prints.

What can be typed is declared here; what a command does is imported when it runs, so that
`discreet --help` is instant.
"""

import io
import sys
from pathlib import Path
from typing import Annotated

import typer

from discreet._version import __version__
from discreet.cli import options
from discreet.cli.corpus import corpus as corpus_app
from discreet.cli.ledger import ledger as ledger_app
from discreet.cli.paper import paper
from discreet.cli.schema import schema as schema_app
from discreet.cli.shell import App, Commands, clean_up_when_terminated, listen_to_all
from discreet.cli.stream import stream as stream_app

app = App(
    cls=Commands,
    help="Differentially private attention over private keys and values, and classification and "
    "regression.",
    epilog="Exit codes: 0 done; 1 a bug in discreet, or a promise that does not hold; 2 something "
    "given is wrong; 130 interrupted; 143 terminated.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,  # its tracebacks would show values
)
app.add_typer(paper, name="paper")
app.add_typer(ledger_app, name="ledger")
app.add_typer(stream_app, name="stream")
app.add_typer(corpus_app, name="corpus")
app.add_typer(schema_app, name="schema")


def _print_version(asked: bool) -> None:  # noqa: FBT001 (typer calls it with the flag)
    if asked:
        typer.echo(f"discreet {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[  # noqa: FBT002
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
    debug: Annotated[  # noqa: FBT002
        bool, typer.Option("--debug", help="Show tracebacks, which may quote private values.")
    ] = False,
) -> None:
    """Options of the command as a whole."""


@app.command(runs="memories.show_plan")
def plan(
    *,
    rows: Annotated[int, typer.Option(help="A public, rounded number of rows.")],
    key_dim: Annotated[int, typer.Option(help="Numbers in a key.")],
    value_dim: Annotated[int, typer.Option(help="Numbers in a value.")],
    epsilon: options.Epsilon,
    delta: options.Delta,
    neighbours: options.Relation = "add_remove",
    scale: options.Scale = None,
    kernel: options.KernelName = "auto",
    features: options.Features = None,
    goal: options.GoalName = "rank",
    public: options.Public = None,
    reference: options.Reference = None,
    key_norm: options.KeyNorm = 1.0,
    query_norm: options.QueryNorm = 1.0,
    value_norm: options.ValueNorm = 1.0,
    heads: Annotated[int, typer.Option(help="Heads of all layers together.")] = 1,
    by_record: options.ByRecord = False,
    group_rows: options.GroupRows = 1.0,
    as_json: options.Json = False,
) -> None:
    """Predict error, size and cost before anything is spent, and recommend a temperature.

    Example: discreet plan --rows 100000 --key-dim 64 --value-dim 64 --epsilon 1 --delta 1e-6
    """


@app.command(runs="memories.build_file")
def build(
    source: options.Source,
    values_file: options.ValuesFile = None,
    *,
    output: options.Output,
    epsilon: options.Epsilon,
    delta: options.Delta,
    keys: options.SomeKeyNames = None,
    values: options.ValueNames = None,
    neighbours: options.Relation = "add_remove",
    scale: options.Scale = None,
    rows_hint: options.RowsHint = None,
    kernel: options.KernelName = "auto",
    features: options.Features = None,
    goal: options.GoalName = "rank",
    public: options.Public = None,
    reference: options.Reference = None,
    key_norm: options.KeyNorm = 1.0,
    query_norm: options.QueryNorm = 1.0,
    value_norm: options.ValueNorm = 1.0,
    groups: options.Groups = None,
    group_rows: options.GroupRows = 1.0,
    workers: options.Workers = None,
    scheduler: options.Scheduler = None,
    ledger: options.LedgerFile = None,
    dataset: options.Dataset = None,
    analyst: options.Analyst = None,
    stated: options.Stated = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Build a private memory from files, and write one file that can be given away.

    With --keys and --values, SOURCE is a table, or a directory of them, and these are its columns:
    discreet build data/ --keys embedding --values vote --groups person. Without, SOURCE is the file
    of keys, and VALUES_FILE that of values.

    Example: discreet build keys.npy values.npy --epsilon 1 --delta 1e-6 --rows-hint 20000 -o
    memory.safetensors
    """


@app.command(runs="memories.attend_file")
def attend(
    memory: options.MemoryFile,
    queries: options.Queries,
    *,
    output: options.Answers,
    file_format: options.RowFormat = None,
    row_id: options.RowId = None,
    stderr: Annotated[
        bool,
        typer.Option(
            "--stderr",
            help="Write stderr, base_rate, difference and difference_stderr, too, and in rows "
            "whether each is clear of the noise; arrays (out and these) go into a .npz file.",
        ),
    ] = False,
    reference: options.Reference = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Answer queries from a memory. Costs no privacy, however often.

    Beside each answer is its difference from the base rate (what the query at the origin gets: the
    mean of all values), and whether that is clear of the noise. In rows, each has the number of its
    query, or --id, and the answer: in a .csv table, answer_0, answer_1, ..., else a list.

    Example: discreet attend memory.safetensors queries.npy -o out.npy
    """


@app.command(runs="releases.show_card")
def card(
    memory: options.MemoryFile,
    *,
    html: Annotated[
        bool, typer.Option("--html", help="Write a page that explains it, for everybody.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Where to write the page; like the file, but .html."),
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            metavar="BUDGET",
            help="Show beside it what this ledger, a file or a database, knows of the release and "
            "of others of the same data.",
        ),
    ] = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Print what a released file promises, whatever it holds.

    With --html, write it as one page that loads nothing: the promise in plain words, what can be
    said to somebody in the data, how large errors are, the card, explained, and a checklist for
    whoever has to decide about the file: what it proves, what its builder states, what to ask.

    Example: discreet card --html memory.safetensors
    """


@app.command(runs="memories.compare_files")
def compare(
    memory: options.MemoryFile,
    source: options.Source,
    values_file: options.ValuesFile = None,
    queries: Annotated[
        Path | None,
        typer.Argument(
            metavar="QUERIES",
            help="Shape (m, d), or (*heads, m, d). With --keys and --values they follow SOURCE.",
        ),
    ] = None,
    *,
    keys: options.SomeKeyNames = None,
    values: options.ValueNames = None,
    reference: options.Reference = None,
    picture: options.Picture = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """For the owner of the rows: exact answers against private ones. NOT PRIVATE.

    Rows are given as to discreet build: discreet compare memory.safetensors data/ queries.npy
    --keys embedding --values vote.

    Example: discreet compare memory.safetensors keys.npy values.npy queries.npy --picture it.png
    """


@app.command(runs="predicting.show_fit_plan")
def plan_fit(
    *,
    rows: Annotated[int, typer.Option(help="A public, rounded number of rows.")],
    key_dim: Annotated[int, typer.Option(help="Numbers in a key.")],
    classes: options.CountOrClasses,
    epsilon: options.Epsilon,
    delta: options.Delta,
    neighbours: options.Relation = "add_remove",
    features: options.FeatureKind = "auto",
    public: options.Public = None,
    key_norm: options.KeyNorm = 1.0,
    by_record: options.ByRecord = False,
    group_rows: options.GroupRows = 1.0,
    memory_limit: options.MemoryLimit = 2e9,
    as_json: options.Json = False,
) -> None:
    """Predict what a classifier will be worth and cost, before anything is spent.

    Example: discreet plan-fit --rows 20000 --key-dim 54 --classes 10 --epsilon 1 --delta 1e-5
    """


@app.command(runs="predicting.fit_file")
def fit(
    data: options.Data,
    *,
    output: options.Output,
    classes: options.Classes,
    epsilon: options.Epsilon,
    delta: options.Delta,
    keys: options.KeyNames = None,
    schema: options.SchemaFile = None,
    label: options.LabelName = "label",
    groups: options.GroupName = None,
    neighbours: options.Relation = "add_remove",
    rows_hint: options.RowsHint = None,
    features: options.FeatureKind = "auto",
    public: options.Public = None,
    key_norm: options.KeyNorm = 1.0,
    group_rows: options.GroupRows = 1.0,
    memory_limit: options.MemoryLimit = 2e9,
    ledger: options.LedgerFile = None,
    dataset: options.Dataset = None,
    analyst: options.Analyst = None,
    stated: options.Stated = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Fit a private classifier to a table, and write one file that can be given away.

    Keys longer than --key-norm are clipped to it, whatever their columns mean. For columns that
    mean something (age, job, a date; some of them missing) give --schema in place of --keys:
    discreet fit people.csv --schema schema.toml --label income --classes 'low,high' --rows-hint
    30000 --epsilon 1 --delta 1e-6 -o model.safetensors. That needs scikit-learn. The columns of
    labels and groups may be in the schema; the model does not look at them.

    In a .csv file the first line names the columns, and an empty cell is a missing value. Cells
    are numbers, dates like 2026-03-01 or categories as the schema says, and labels are numbers if
    all of --classes are. Write "private numbers" or "private categories" into the schema rather
    than "private": else a column is numbers if every cell is one, which is read off the rows, and
    the card says so.

    Example: discreet fit data.parquet --classes cat,dog,bird --rows-hint 20000 --epsilon 1 --delta
    1e-5 -o model.safetensors
    """


@app.command(runs="predicting.show_regress_plan")
def plan_regress(
    *,
    rows: Annotated[int, typer.Option(help="A public, rounded number of rows.")],
    key_dim: Annotated[int, typer.Option(help="Numbers in a key.")],
    value_dim: Annotated[int, typer.Option(help="Numbers in a value.")] = 1,
    epsilon: options.Epsilon,
    delta: options.Delta,
    neighbours: options.Relation = "add_remove",
    features: options.FeatureKind = "auto",
    public: options.Public = None,
    key_norm: options.KeyNorm = 1.0,
    value_norm: options.ValueNorm = 1.0,
    signal: Annotated[
        float | None,
        typer.Option(
            help="By how much a number of a value follows the key: a standard deviation. Left out: "
            "half of what values that fill their bound differ by."
        ),
    ] = None,
    ridge: options.Ridge = 0.5,
    share: options.Share = None,
    heads: Annotated[int, typer.Option(help="Heads of keys and values.")] = 1,
    by_record: options.ByRecord = False,
    group_rows: options.GroupRows = 1.0,
    as_json: options.Json = False,
) -> None:
    """Predict what a regression will be worth and cost, before anything is spent.

    Example: discreet plan-regress --rows 20000 --key-dim 8 --epsilon 1 --delta 1e-5
    """


@app.command(runs="predicting.regress_file")
def regress(
    source: options.Source,
    values_file: options.ValuesFile = None,
    *,
    output: options.Output,
    epsilon: options.Epsilon,
    delta: options.Delta,
    keys: options.SomeKeyNames = None,
    values: options.ValueNames = None,
    schema: options.SchemaFile = None,
    target: options.TargetName = None,
    target_bounds: options.TargetBounds = None,
    target_scale: options.TargetScale = "linear",
    groups: options.Groups = None,
    neighbours: options.Relation = "add_remove",
    rows_hint: options.RowsHint = None,
    features: options.FeatureKind = "auto",
    public: options.Public = None,
    key_norm: options.KeyNorm = 1.0,
    value_norm: options.ValueNorm = 1.0,
    ridge: options.Ridge = 0.5,
    share: options.Share = None,
    group_rows: options.GroupRows = 1.0,
    workers: options.Workers = None,
    scheduler: options.Scheduler = None,
    ledger: options.LedgerFile = None,
    dataset: options.Dataset = None,
    analyst: options.Analyst = None,
    stated: options.Stated = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Fit a private regression: numbers as a function of keys. Write one file to give away.

    Keys and values are given as to discreet build. Both are clipped to public lengths, whatever
    their columns mean. For columns that mean something, as in discreet fit, give --schema, and
    SOURCE is one .csv or .parquet file: discreet regress flats.csv --schema schema.toml --target
    price --target-bounds 0,20000 --rows-hint 20000 --epsilon 1 --delta 1e-6 -o model.safetensors.

    Example: discreet regress keys.npy values.npy --rows-hint 20000 --epsilon 1 --delta 1e-5 -o
    regression.safetensors
    """


@app.command(runs="predictions.predict_file")
def predict(
    model: options.ModelFile,
    queries: options.Rows,
    *,
    output: options.Answers,
    file_format: options.RowFormat = None,
    row_id: options.RowId = None,
    probabilities: Annotated[
        bool,
        typer.Option(
            "--probabilities",
            help="Write probabilities, too: in rows, a column p_A for each class A; arrays (labels,"
            " probabilities and classes) go into a .npz file.",
        ),
    ] = False,
    balanced: Annotated[
        bool,
        typer.Option("--balanced", help="Judge as if all classes were equally frequent."),
    ] = False,
    stderr: Annotated[
        bool,
        typer.Option(
            "--stderr",
            help="Of a regression: write stderr, too; arrays (predictions and stderr) go into a "
            ".npz file.",
        ),
    ] = False,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Predict labels with a classifier, or numbers with a regression. Costs no privacy.

    A model with a schema answers a table: discreet predict model.safetensors people.csv -o out.csv.
    What is written has a column label or prediction, with a line for each row, in their order.

    Example: discreet predict model.safetensors queries.npy -o labels.npy
    """


@app.command(runs="shapes.show_shapes")
def shapes(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="A file that discreet fit or regress wrote, with --schema."
        ),
    ],
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Draw them, into a .png or .svg file (needs matplotlib); or write rows: a .csv, "
            ".parquet or .jsonl file; - for standard output.",
        ),
    ] = None,
    file_format: options.SomeRowFormat = None,
    top: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, help="The most important columns to show. JSON and rows have all."
        ),
    ] = 12,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Show what each column of a table does to predictions, step by step. Costs no privacy.

    The model is a sum over columns: what a column adds is printed, with the ± of the noise, for
    each bin of its numbers and each of its categories, the most important columns first.

    Example: discreet shapes people.safetensors -o shapes.png
    """


@app.command(runs="predicting.distances_file")
def distances(
    source: Annotated[
        Path,
        typer.Argument(help="Points, shape (n,) or (n, d): FILE or FILE:NAME; or a table."),
    ],
    weights_file: Annotated[
        Path | None, typer.Argument(help="Weights, shape (n,): FILE or FILE:NAME; else all one.")
    ] = None,
    *,
    output: options.Output,
    bounds: Annotated[
        str,
        typer.Option(
            help="Public ends of the points: LOW,HIGH; or one pair a column, LOW,HIGH:LOW,HIGH."
        ),
    ],
    epsilon: options.Epsilon,
    delta: options.Delta,
    p: Annotated[float, typer.Option("--power", "-p", help="Distances are Σ|y - x|^p.")] = 1.0,
    keys: options.SomeKeyNames = None,
    weights: Annotated[
        str | None, typer.Option(help="Column of weights, if SOURCE is a table that has one.")
    ] = None,
    weight_bound: Annotated[
        float, typer.Option(help="Public bound on the size of a weight.")
    ] = 1.0,
    neighbours: options.Relation = "add_remove",
    rows_hint: options.RowsHint = None,
    features: options.Features = None,
    groups: options.Groups = None,
    group_rows: options.GroupRows = 1.0,
    ledger: options.LedgerFile = None,
    dataset: options.Dataset = None,
    analyst: options.Analyst = None,
    stated: options.Stated = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Release sums of distances to private points, and write one file that can be given away.

    SOURCE is the file of points, shape (n,) or (n, d); or, with --keys, a table.

    Example: discreet distances points.npy --bounds 0,1 --epsilon 1 --delta 1e-6 -o
    distances.safetensors
    """


@app.command(runs="predicting.query_file")
def query(
    sums: Annotated[Path, typer.Argument(help="A file that discreet distances wrote.")],
    queries: options.Queries,
    *,
    output: options.Answers,
    file_format: options.RowFormat = None,
    row_id: options.RowId = None,
    stderr: Annotated[
        bool,
        typer.Option(
            "--stderr",
            help="Write stderr, too; arrays (out and stderr) go into a .npz file.",
        ),
    ] = False,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Answer how far points are from all rows, in sum. Costs no privacy, however often.

    In rows, each has the number of its query, or --id, and the answer.

    Example: discreet query distances.safetensors queries.npy -o out.npy
    """


@app.command(runs="serving.serve_files")
def serve(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE...",
            help="Released files: memories, models, distances, corpora. Each is served under its "
            "name, without the ending.",
        ),
    ] = None,
    *,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="The address to listen at.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for a free one.")] = 8000,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Who may ask: SHA-256 hashes of tokens, one a line. Needed where others than this "
            "machine can ask.",
        ),
    ] = None,
    new_token: Annotated[
        bool, typer.Option("--new-token", help="Print a new token and its hash, and stop.")
    ] = False,
    is_open: Annotated[
        bool, typer.Option("--open", help="Let everybody ask who can reach the address.")
    ] = False,
    encoder: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Of corpora: static, minilm or the path of a model; none for no typed questions. "
            "Left out: the one that a file names, if it is installed.",
        ),
    ] = None,
    allow_not_private: Annotated[
        bool,
        typer.Option("--not-private", help="Serve files that test noise was drawn for."),
    ] = False,
    max_body: Annotated[int, typer.Option(metavar="BYTES", help="Of one request.")] = 4_194_304,
    max_queries: Annotated[int, typer.Option(metavar="N", help="In one request.")] = 1_024,
    at_once: Annotated[
        int, typer.Option(metavar="N", help="Questions that are answered at one time; others wait.")
    ] = 64,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="Until a request has to have arrived.")
    ] = 30.0,
    log_queries: Annotated[
        bool, typer.Option("--log-queries", help="Log what is asked. Without it, never.")
    ] = False,
) -> None:
    """Answer questions to released files over HTTP, with a page for people.

    Answers are post-processing: any number of questions, at no cost in privacy. Files that are
    replaced are opened again, without a lost request.

    Example: discreet serve memory.safetensors
    """


@app.command(runs="auditing.show")
def audit(
    mechanisms: Annotated[
        list[str] | None,
        typer.Argument(
            help="memory (the default), replace, records, heads, landmarks, least_squares, "
            "softmax, glm, distances, table, discovery, corpus, stream, shards, tree, "
            "distance_trees, attention_trees; or all."
        ),
    ] = None,
    *,
    builds: Annotated[
        int | None,
        typer.Option(metavar="N", help="How many releases of both data sets; left out: 4,000."),
    ] = None,
    confidence: Annotated[float, typer.Option(help="How often a bound is right, at least.")] = 0.99,
    epsilon: options.Epsilon = 1.0,
    delta: options.Delta = 1e-5,
    one_run: Annotated[
        bool, typer.Option("--one-run", help="One release of a memory, with many canaries.")
    ] = False,
    canaries: Annotated[
        int | None,
        typer.Option(metavar="N", help="With --one-run: how many canaries; left out: 2,000."),
    ] = None,
    picture: options.Picture = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Bound ε from below by experiment: build many releases of two neighbours, and tell them apart.

    Of discreet's own mechanisms, on made-up rows at the bounds. For a
    pipeline of your own, with whatever happens to rows before, there is
    discreet.audit.audit in Python. Exit code 1 if a promise does not hold.

    Example: discreet audit memory table --builds 2000
    """


@app.command(runs="attacking.show")
def attack(
    keys: Annotated[
        Path | None,
        typer.Argument(
            metavar="[KEYS]",
            help="Your own rows, for your eyes only: shape (n, d), a .npy file, or FILE:NAME. "
            "Left out: the images of discreet demo (needs scikit-learn).",
        ),
    ] = None,
    values: Annotated[
        Path | None, typer.Argument(metavar="[VALUES]", help="Shape (n, d_v), likewise.")
    ] = None,
    *,
    epsilon: options.Epsilon = 1.0,
    delta: options.Delta = 1e-5,
    neighbours: options.Relation = "add_remove",
    scale: options.Scale = None,
    rows_hint: options.RowsHint = None,
    kernel: options.KernelName = "auto",
    features: options.Features = None,
    goal: options.GoalName = "rank",
    public: options.Public = None,
    reference: options.Reference = None,
    key_norm: options.KeyNorm = 1.0,
    query_norm: options.QueryNorm = 1.0,
    value_norm: options.ValueNorm = 1.0,
    trials: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Attack so many files with the row, and so many without; left out: 20,000, or "
            "fewer if they are large.",
        ),
    ] = None,
    questions: Annotated[
        int, typer.Option(metavar="N", help="Ask so many questions where there is no file.")
    ] = 100_000,
    picture: options.Picture = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Attack files, and show what an attacker gets from them against what is promised. NOT PRIVATE.

    The attacker has the file, all settings, and all rows but one. She wants
    to know whether that row is in it, which of few values it has, and which
    of many; and the same by questions alone. What exact attention and a
    search for the nearest row give away is beside it. Exit code 1 if a
    promise does not hold. An attack that finds little proves nothing: see
    discreet audit.

    Example: discreet attack keys.npy values.npy --epsilon 1 --delta 1e-6 --rows-hint 20000
    """


@app.command()
def demo(
    *,
    output: options.Output = Path("discreet-demo.html"),
    picture: options.Picture = None,
    splits: Annotated[
        int, typer.Option(metavar="N", min=2, help="Random splits of the data to average over.")
    ] = 5,
    files: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="In place of the page, write two of its releases here, to be served and asked: a "
            "memory of digits and a corpus of questions. Takes seconds.",
        ),
    ] = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Build private memories of handwritten digits, and write a page with all that they show.

    Example: discreet demo
    """
    from discreet.cli.demo import show, write_files

    if files is not None:
        write_files(files, force=force, measured=picture is not None or as_json)
        return
    show(output, picture=picture, splits=splits, force=force, as_json=as_json)


def main() -> None:
    """Run the command line."""
    listen_to_all()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without Greek letters still works
    clean_up_when_terminated()
    app()
