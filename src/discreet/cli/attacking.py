"""What `discreet attack` prints and draws: what attackers get from files. NOT PRIVATE."""

import sys
from pathlib import Path
from typing import Any

import numpy as np

from discreet.audit.attacks import Attacked, attack
from discreet.audit.bounds import interval
from discreet.cli.files import check_picture, pictures
from discreet.cli.releases import public_rows
from discreet.cli.shell import has_terminal, print_json, print_page, say
from discreet.errors import InvalidInput

# What the demo's memory is made with, which has a promise of its own choice only.
_DEFAULTS = {
    "neighbours": "add_remove",
    "scale": None,
    "rows_hint": None,
    "kernel": "auto",
    "features": None,
    "goal": "rank",
    "public": None,
    "reference": None,
    "key_norm": 1.0,
    "query_norm": 1.0,
    "value_norm": 1.0,
}


def show(
    keys: Path | None,
    values: Path | None,
    *,
    picture: Path | None,
    force: bool,
    as_json: bool,
    **options: Any,  # noqa: ANN401 (those of `attack`)
) -> None:
    """Attack, print and draw; exit with 1 if a promise does not hold.

    Args:
        keys: a file of rows; None for the demo's.
        values: likewise.
        picture: where to draw, if anywhere.
        force: whether the picture may be replaced.
        as_json: whether to print JSON.
        **options: those of `attack`, with names of files for arrays.
    """
    files = (keys, values, options["public"], options["reference"])
    check_picture(picture, force=force, inputs=files)
    options["progress"] = has_terminal()
    if keys is None:
        found = _of_the_demo(**options)
    elif values is None:
        raise InvalidInput(
            "Expected VALUES beside KEYS: arrays of your own rows. A released file does not say "
            "what a row in it would be; files are made of these rows, and attacked."
        )
    else:
        found = _of_rows(keys, values, **options)
    if picture is not None:
        _draw(found, picture)
    if as_json:
        print_json(found.to_dict())
    else:
        print_page(str(found))
    if not found.holds:
        sys.exit(1)


def _of_rows(
    keys: Path,
    values: Path,
    *,
    public: Path | None,
    reference: Path | None,
    **options: Any,  # noqa: ANN401 (those of `attack`)
) -> Attacked:
    from discreet.tables import read_array

    return attack(
        np.asarray(read_array(keys, "keys")),
        np.asarray(read_array(values, "values")),
        public_rows=public_rows(public),
        reference=public_rows(reference, "reference"),
        **options,
    )


def _of_the_demo(**options: Any) -> Attacked:  # noqa: ANN401 (those of `attack`)
    """Attack memories of handwritten digits: one image more, whose class is the secret."""
    from discreet_benchmarks.demo import digits

    for name, default in _DEFAULTS.items():
        if options.pop(name) != default:
            typed = f"--{name.replace('_', '-')}"
            raise InvalidInput(f"Expected {typed} with KEYS and VALUES: the demo has its own.")
    [data] = digits.splits(1)
    return attack(
        data.keys,
        data.values,
        targets=data.queries,
        classes=np.eye(data.values.shape[1]) - 0.1,
        value_norm=digits.VALUE_NORM,
        rows_hint=digits.ROWS_HINT,
        **options,
    )


def _draw(found: Attacked, path: Path) -> None:
    """Draw what is found over what is wrongly accused, and the most that is promised."""
    draw, membership = pictures(), found.membership
    accused, shares = (list(each) for each in zip(*membership.curve, strict=True))
    counts = [round(each * membership.files) for each in shares]
    ends = [interval(each, membership.files, confidence=0.99) for each in counts]
    low, high = (list(each) for each in zip(*ends, strict=True))
    promised = draw.Curve(accused, [found.claimed.found(each) for each in accused])
    exact = [each.exact_attention for each in membership.levels]
    figure = draw.trade_off(
        draw.Curve(accused, shares),
        (low, high),
        promised,
        title="What an attacker finds in files",
        more={
            "exact attention": draw.Curve([each.false_alarms for each in membership.levels], exact)
        },
    )
    draw.save(figure, path)
    say(f"picture: {path}")
