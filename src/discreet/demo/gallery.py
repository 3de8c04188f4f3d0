"""The demo's findings as pictures. Needs the extra `plots`."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from discreet.demo import digits
from discreet.demo.digits import Mean
from discreet.demo.findings import EPSILON, Errors, Findings
from discreet.pictures import (
    Curve,
    Panel,
    accuracy_against_epsilon,
    error_against_epsilon_and_rows,
    exact_against_private,
    noise_by_level,
)

_PUBLIC = "These digits are public. Of private data,\nthis picture is for the owner's eyes."


def accuracy(found: Findings) -> Figure:
    """Return accuracy against ε."""
    return accuracy_against_epsilon(
        private=_curve([each.private for each in found.accuracies]),
        exact=_curve([each.exact for each in found.accuracies]),
        dpsgd=_curve([each.dpsgd for each in found.accuracies if each.dpsgd is not None]),
        delta=digits.DELTA,
    )


def answers(found: Findings) -> Figure:
    """Return one memory's answers against exact ones."""
    drawn = found.answers
    return exact_against_private(drawn.exact, drawn.private, drawn.stderr, banner=_PUBLIC)


def errors(found: Findings) -> Figure:
    """Return the error of answers over ε and over rows."""
    return error_against_epsilon_and_rows(
        _panel(found.by_epsilon, f"n = {found.rows:,}, scale {found.scale:.3g}"),
        _panel(found.by_rows, f"ε = {EPSILON:g}, scale {found.scale:.3g}"),
    )


def tree(found: Findings) -> Figure:
    """Return the noise of the paper's tree."""
    noise = found.tree
    return noise_by_level(
        range(1, noise.levels + 1),
        [noise.node] * noise.levels,
        label="one node of the tree",
        reference=("the memory, same budget: a denominator", noise.memory),
    )


def _curve(means: Sequence[Mean]) -> Curve:
    return Curve(
        [each.at for each in means],
        [each.mean for each in means],
        [each.stderr for each in means],
    )


def _panel(errors: Errors, fixed: str) -> Panel:
    measured = _curve(errors.measured)
    predicted = {
        "rows that are centred": Curve(measured.x, errors.centred),
        "rows with much in common": Curve(measured.x, errors.in_common),
    }
    return Panel(predicted, measured, fixed)
