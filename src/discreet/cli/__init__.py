"""The `discreet` command. Thin: it parses, calls the library and prints.

Commands import what they need when they run, so that `discreet --help` is instant. Exit codes: 0
done; 2 something that was given is wrong (one sentence says what); 130 interrupted, and nothing was
written.
"""

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from discreet._version import __version__
from discreet.errors import DiscreetError

app = typer.Typer(
    help="Differentially private attention over private keys and values.",
    no_args_is_help=True,
    add_completion=True,
)

Epsilon = Annotated[float, typer.Option(help="ε: how much any one row may change what is seen.")]
Delta = Annotated[float, typer.Option(help="δ: well below one over the number of people.")]
Relation = Annotated[str, typer.Option("--neighbours", help="add_remove, or replace.")]
Scale = Annotated[
    float | None, typer.Option(help="logit = scale·⟨query, key⟩; left out: recommended.")
]
KernelName = Annotated[str, typer.Option("--kernel", help="auto, minimax, fourier or taylor.")]
KeyNorm = Annotated[float, typer.Option(help="Public bound on the length of keys.")]
QueryNorm = Annotated[float, typer.Option(help="Public bound on the length of queries.")]
ValueNorm = Annotated[float, typer.Option(help="Public bound on the length of values.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing file.")]
Output = Annotated[Path, typer.Option("--output", "-o", help="Where to write.")]


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
) -> None:
    """Options of the command as a whole."""


@contextmanager
def _one_sentence() -> Iterator[None]:
    """Turn what the library raises on purpose into one sentence and exit code 2."""
    try:
        yield
    except (DiscreetError, OSError) as error:
        typer.echo(f"discreet: {error}", err=True)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        typer.echo("discreet: interrupted, nothing was written.", err=True)
        raise typer.Exit(130) from None


@app.command()
def plan(
    *,
    rows: Annotated[int, typer.Option(help="A public, rounded number of rows.")],
    key_dim: Annotated[int, typer.Option(help="Numbers in a key.")],
    value_dim: Annotated[int, typer.Option(help="Numbers in a value.")],
    epsilon: Epsilon,
    delta: Delta,
    neighbours: Relation = "add_remove",
    scale: Scale = None,
    kernel: KernelName = "auto",
    key_norm: KeyNorm = 1.0,
    query_norm: QueryNorm = 1.0,
    value_norm: ValueNorm = 1.0,
    heads: Annotated[int, typer.Option(help="Heads of all layers together.")] = 1,
    as_json: Json = False,
) -> None:
    """Predict error, size and cost before anything is spent, and recommend a temperature.

    Example: discreet plan --rows 100000 --key-dim 64 --value-dim 64 --epsilon 1 --delta 1e-6
    """
    from discreet.cli.commands import show_plan
    from discreet.memory import plan as make

    with _one_sentence():
        made = make(
            rows=rows,
            key_dim=key_dim,
            value_dim=value_dim,
            epsilon=epsilon,
            delta=delta,
            neighbours=neighbours,
            scale=scale,
            kernel=kernel,
            key_norm=key_norm,
            query_norm=query_norm,
            value_norm=value_norm,
            heads=heads,
        )
        show_plan(made, as_json=as_json)


@app.command()
def build(
    keys: Annotated[Path, typer.Argument(help="A .npy file, shape (n, d) or (*heads, n, d).")],
    values: Annotated[Path, typer.Argument(help="A .npy file, shape (n, d_v), likewise.")],
    *,
    output: Output,
    epsilon: Epsilon,
    delta: Delta,
    neighbours: Relation = "add_remove",
    scale: Scale = None,
    rows_hint: Annotated[
        int | None, typer.Option(help="A public, rounded number of rows; never a count.")
    ] = None,
    kernel: KernelName = "auto",
    key_norm: KeyNorm = 1.0,
    query_norm: QueryNorm = 1.0,
    value_norm: ValueNorm = 1.0,
    groups: Annotated[
        Path | None, typer.Option(help="A .npy file with the record of each row.")
    ] = None,
    group_rows: Annotated[float, typer.Option(help="A record counts as so many rows.")] = 1.0,
    force: Force = False,
) -> None:
    """Build a private memory from files, and write one file that can be given away.

    Example: discreet build keys.npy values.npy --epsilon 1 --delta 1e-6 --scale 2 -o m.safetensors
    """
    from discreet.cli.commands import build_file

    with _one_sentence():
        memory = build_file(
            keys,
            values,
            output,
            groups=groups,
            force=force,
            epsilon=epsilon,
            delta=delta,
            neighbours=neighbours,
            scale=scale,
            rows_hint=rows_hint,
            kernel=kernel,
            key_norm=key_norm,
            query_norm=query_norm,
            value_norm=value_norm,
            group_rows=group_rows,
        )
        typer.echo(f"{output}: {memory.guarantee}")


@app.command()
def attend(
    memory: Annotated[Path, typer.Argument(help="A file that discreet build wrote.")],
    queries: Annotated[Path, typer.Argument(help="A .npy file, shape (..., d).")],
    *,
    output: Output,
    stderr: Annotated[
        bool, typer.Option("--stderr", help="Write a .npz with out and stderr.")
    ] = False,
    force: Force = False,
) -> None:
    """Answer queries from a memory. Costs no privacy, however often.

    Example: discreet attend memory.safetensors queries.npy -o out.npy
    """
    from discreet.cli.commands import attend_file

    with _one_sentence():
        attend_file(memory, queries, output, stderr=stderr, force=force)


@app.command()
def card(
    memory: Annotated[Path, typer.Argument(help="A file that discreet build wrote.")],
    *,
    as_json: Json = False,
) -> None:
    """Print what a memory promises, and to whom.

    Example: discreet card memory.safetensors --json
    """
    from discreet.cli.commands import show_card

    with _one_sentence():
        show_card(memory, as_json=as_json)


@app.command()
def demo(
    *,
    picture: Annotated[
        Path, typer.Option(help="Where to draw accuracy against ε (needs matplotlib).")
    ] = Path("discreet-demo.png"),
    splits: Annotated[
        int, typer.Option(min=2, help="Random splits of the data to average over.")
    ] = 8,
) -> None:
    """Build private memories of handwritten digits, and show card, accuracy and alternatives."""
    from discreet.cli.demo import show

    with _one_sentence():
        show(picture, splits=splits)


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without Greek letters still works
    app()
