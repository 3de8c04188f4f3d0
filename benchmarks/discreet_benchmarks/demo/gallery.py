"""The demo's findings as pictures. Needs the extra `plots`."""

import math
from collections.abc import Sequence

from matplotlib.figure import Figure

from discreet.pictures import (
    Curve,
    Panel,
    accuracy_against_epsilon,
    error_against_epsilon_and_rows,
    lost_accuracy,
    secrets_found,
    votes,
)
from discreet_benchmarks.demo import attack, digits
from discreet_benchmarks.demo.digits import Mean
from discreet_benchmarks.demo.findings import EPSILON, Errors, Findings


def digit(found: Findings) -> Figure:
    """Return one image, and what exact attention and the memory answer."""
    shown = found.asked[0]
    return votes(
        shown.image,
        exact=shown.exact,
        private=shown.private,
        stderr=shown.stderr,
        truth=shown.truth,
    )


def attacks(found: Findings) -> Figure:
    """Return how often the attacker names the secret."""
    return secrets_found(
        [attack.name_of(each) for each in found.attacks],
        [each.share for each in found.attacks],
        [each.interval for each in found.attacks],
        [math.nan if each.allowed is None else each.allowed for each in found.attacks],
        chance=1 / attack.CLASSES,
    )


def accuracy(found: Findings) -> Figure:
    """Return accuracy against ε."""
    compared, top = found.accuracies, found.ceilings
    return accuracy_against_epsilon(
        {
            "private memory: attention, no training": _curve([each.private for each in compared]),
            "private classifier: rounds": _curve([each.rounds for each in compared]),
            "private least squares": _curve([each.least_squares for each in compared]),
            "DP-SGD, tuned on the test set": _curve(
                [each.dpsgd for each in compared if each.dpsgd is not None]
            ),
        },
        levels={
            f"not private: {top.classifier_name}": top.classifier.mean,
            "not private: exact attention at its best": top.attention.mean,
        },
        floor=top.constant.mean,
        delta=digits.DELTA,
    )


def losses(found: Findings) -> Figure:
    """Return what the memory's accuracy is lost to."""
    return lost_accuracy([each.epsilon for each in found.accuracies], found.losses)


def errors(found: Findings) -> Figure:
    """Return the error of answers over ε and over rows."""
    return error_against_epsilon_and_rows(
        _panel(found.by_epsilon, f"n = {found.rows:,}, scale {found.scale:.3g}"),
        _panel(found.by_rows, f"ε = {EPSILON:g}, scale {found.scale:.3g}"),
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
