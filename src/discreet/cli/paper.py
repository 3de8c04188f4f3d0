"""`discreet paper`: the paper's structures, on files or on points that are made up."""

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli import options
from discreet.cli.shell import App

paper = App(
    help="The paper's structures, on your data or on generated data, beside the exact answers.",
    no_args_is_help=True,
)

Points = Annotated[
    Path | None,
    typer.Argument(metavar="[POINTS]", help="Shape (n, d); left out: generated, like the rest."),
]
Weights = Annotated[Path | None, typer.Argument(metavar="[WEIGHTS]", help="Shape (n,).")]
Positions = Annotated[Path | None, typer.Argument(metavar="[QUERIES]", help="Shape (m, d).")]
Rows = Annotated[int, typer.Option(min=1, max=10**8, help="Rows to generate.")]
Dim = Annotated[int, typer.Option(min=1, max=10**4, help="Dimension to generate.")]
Upper = Annotated[float, typer.Option(help="R: points and queries lie in [0, R]^d.")]
Bound = Annotated[float, typer.Option(help="R_w: public bound on weights or values.")]
Prime = Annotated[float, typer.Option(help="δ': what advanced composition may use.")]


def constant(given: object) -> object:
    """Return the paper's c as it was typed: a number, or a word that the structures check."""
    try:
        return float(str(given))
    except ValueError:
        return given


Constant = Annotated[
    float,
    typer.Option(
        "-c",
        parser=constant,
        metavar="<float>|largest",
        help="The paper's constant, or the largest that fits.",
    ),
]
How = Annotated[str, typer.Option("--accounting", help="How noise is set: paper, or tight.")]
Lower = Annotated[
    float, typer.Option(help="Left end of the range, if points may lie below zero: a public shift.")
]
EpsS = Annotated[float, typer.Option(help="ε_s: relative error of the kernel.")]
Failure = Annotated[float, typer.Option("--p-f", help="How often any answer may miss the bound.")]
Adaptive = Annotated[
    bool, typer.Option("--adaptive", help="An error bound for all queries, however chosen.")
]
Answers = Annotated[
    Path | None, typer.Option("--output", "-o", help="Write the private answers to a .npy file.")
]


@paper.command(runs="structures.run_attention")
def attention(
    keys: Points = None,
    values: Annotated[
        Path | None, typer.Argument(metavar="[VALUES]", help="Shape (n, d_v).")
    ] = None,
    queries: Positions = None,
    *,
    rows: Rows = 4096,
    dim: Dim = 2,
    upper: Upper = 1.0,
    bound: Bound = 1.0,
    epsilon: options.Epsilon = 1.0,
    delta: options.Delta = 1e-6,
    delta_prime: Prime = 1e-6,
    c: Constant = 0.1,
    eps_s: EpsS = 0.1,
    p_f: Failure = 0.01,
    lower: Lower = 0.0,
    accounting: How = "paper",
    output: Answers = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Cross-attention (DPCrossAttention, Algorithm 1).

    Example: discreet paper attention --rows 1024 --epsilon 50 --accounting tight
    """


@paper.command(runs="structures.run_softmax")
def softmax(
    points: Points = None,
    weights: Weights = None,
    queries: Positions = None,
    *,
    rows: Rows = 4096,
    dim: Dim = 2,
    upper: Upper = 1.0,
    bound: Bound = 1.0,
    epsilon: options.Epsilon = 1.0,
    delta: options.Delta = 1e-6,
    delta_prime: Prime = 1e-6,
    c: Constant = 0.1,
    eps_s: EpsS = 0.1,
    lower: Lower = 0.0,
    accounting: How = "paper",
    adaptive: Adaptive = False,
    p_f: Failure = 0.01,
    output: Answers = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Weighted sums of exp(⟨x, y⟩/d) (DPTreeSoftmax, Algorithms 2, 3 and 7).

    Example: discreet paper softmax --rows 4096 --dim 2 --epsilon 10 -c 0.5
    """


@paper.command(runs="structures.run_distance")
def distance(
    points: Points = None,
    weights: Weights = None,
    queries: Positions = None,
    *,
    power: Annotated[int, typer.Option(min=1, help="p of ℓ_p distances, to the power p.")] = 1,
    rows: Rows = 4096,
    dim: Dim = 2,
    upper: Upper = 1.0,
    bound: Bound = 1.0,
    epsilon: options.Epsilon = 1.0,
    delta: options.Delta = 1e-6,
    delta_prime: Prime = 1e-6,
    c: Constant = 0.1,
    lower: Lower = 0.0,
    accounting: How = "paper",
    estimator: Annotated[
        str, typer.Option(help="paper, or consistent: least squares over better trees.")
    ] = "paper",
    adaptive: Adaptive = False,
    p_f: Failure = 0.01,
    output: Answers = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Weighted sums of ‖x - y‖_p^p (DPTreeHighDim, Algorithms 2 and 4 to 6).

    Example: discreet paper distance --rows 4096 --accounting tight --estimator consistent
    """


@paper.command()
def report(
    *,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="A folder for the page and its pictures.")
    ] = Path("discreet-paper"),
    quick: Annotated[bool, typer.Option("--quick", help="Fewer rows, builds and values.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Write into a folder with files.")] = False,
    as_json: options.Json = False,
) -> None:
    """Run the experiments that the paper does not have: a page with pictures.

    Needs matplotlib and scikit-learn. Takes some minutes; with --quick, less than one.

    Example: discreet paper report --quick -o report
    """
    from discreet.cli.structures import write_report

    write_report(output, quick=quick, force=force, as_json=as_json)
