"""What `discreet demo` shows: the noise against theory, and the accountant's table."""

import math

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from discreet import accounting, noise
from discreet.noise.law import IntegerLaw
from discreet.privacy import Neighbours, Privacy

_DRAWS = 200_000
_BAR = 48
_DELTA = 1e-6


def show() -> None:
    """Print both parts to the terminal."""
    console = Console(highlight=False)
    console.rule("[bold]Noise: integers, drawn exactly, from the operating system's entropy")
    laws: list[tuple[str, IntegerLaw]] = [
        ("Rounded Gaussian, σ = 3", noise.RoundedGaussian(sigma=3.0)),
        ("Discrete Laplace, scale 2", noise.DiscreteLaplace(scale=2.0)),
        (
            "Truncated Laplace, Δ = 2, ε = 1, δ = 0.01",
            noise.TruncatedLaplace(sensitivity=2, epsilon=1.0, delta=0.01),
        ),
    ]
    for title, law in laws:
        console.print(f"\n[bold]{title}[/bold]: {_DRAWS:,} draws, │ = theory")
        _histogram(console, law, law.sample(_DRAWS))
    console.print()
    console.rule("[bold]Accounting: what many releases about the same people cost together")
    console.print(_composition_table())
    console.print(_gaussian_table())
    console.print(
        "Tight accounting follows the whole privacy loss distribution of each mechanism; "
        "the theorems only know its (ε, δ)."
    )


def _histogram(console: Console, law: IntegerLaw, draws: NDArray[np.int64]) -> None:
    """Print one line per integer: how often it was drawn, and a mark where theory expects it."""
    reach = math.ceil(2.5 * math.sqrt(law.variance))
    values = np.arange(-reach, reach + 1)
    expected = law.pmf(values)
    observed = np.array([np.count_nonzero(draws == value) for value in values]) / len(draws)
    width = max(8, min(_BAR, console.width - 24))
    unit = width / max(expected.max(), observed.max())
    for value, seen, theory in zip(values, observed, expected, strict=True):
        bar = ("█" * round(seen * unit)).ljust(width + 1)
        mark = round(theory * unit)
        console.print(f"{value:4d} {bar[:mark]}│{bar[mark + 1 :]} {seen:.4f} / {theory:.4f}")
    ratio = float(draws.var()) / law.variance
    console.print(f"     variance {draws.var():.3f}, theory {law.variance:.3f} ({ratio:.3f} of it)")


def _composition_table() -> Table:
    """Compare the three ways to add up k truncated Laplace mechanisms."""
    table = Table(title=f"ε of k truncated Laplace draws, δ = {_DELTA:g}")
    for heading in ("k", "ε of each", "basic", "advanced", "tight"):
        table.add_column(heading, justify="right")
    for count, epsilon in ((10, 0.1), (1_000, 0.01), (100_000, 0.001)):
        delta = _DELTA / 2 / count
        each = Privacy(epsilon, delta, Neighbours.REPLACE)
        mechanism = accounting.TruncatedLaplace(
            sensitivity=1_000, epsilon=epsilon, delta=delta, neighbours=Neighbours.REPLACE
        )
        table.add_row(
            f"{count:,}",
            f"{epsilon:g}",
            f"{accounting.basic([(each, count)]).epsilon:.4f}",
            f"{accounting.advanced(each, count, delta_prime=_DELTA / 2).epsilon:.4f}",
            f"{accounting.tight([(mechanism, count)], delta=_DELTA):.4f}",
        )
    return table


def _gaussian_table() -> Table:
    """Show the exact Gaussian noise for some budgets."""
    table = Table(title="Exact Gaussian σ for sensitivity 1")
    table.add_column("ε", justify="right")
    deltas = (1e-5, 1e-6, 1e-9)
    for delta in deltas:
        table.add_column(f"δ = {delta:g}", justify="right")
    for epsilon in (0.1, 0.5, 1.0, 4.0):
        sigmas = (accounting.gaussian_sigma(epsilon=epsilon, delta=delta) for delta in deltas)
        table.add_row(f"{epsilon:g}", *(f"{sigma:.4f}" for sigma in sigmas))
    return table
