"""What `discreet paper` does: build one of the paper's structures and show it beside the truth."""

import io
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet import paper
from discreet._typing import Floats
from discreet.cli.commands import check_output, print_json, print_lines
from discreet.cli.delivery import Delivery
from discreet.cli.shell import say
from discreet.errors import InvalidInput
from discreet.paper import oracle
from discreet.paper.oracle import spread
from discreet.paper.structure import Structure
from discreet.tables import read_array

Setting = Any
Inputs = tuple[Path | None, Path | None, Path | None]

_CONFIDENCE = 0.95
_QUERIES = 50
# More than what stands before the numbers in a .npy file.
_HEADER = 1024
_OWNER = "Exact answers and measured errors are for the owner of the data: they are not private."


@dataclass(frozen=True)
class Shown:
    """What is to be done with the answers."""

    output: Path | None
    force: bool
    as_json: bool

    def check(self, inputs: Inputs) -> None:
        """Raise `InvalidInput` if the answers could not be written."""
        if self.output is not None:
            check_output(self.output, force=self.force, inputs=inputs)

    @contextmanager
    def written(self, queries: Floats, *, width: int = 1) -> Iterator[Callable[[Floats], None]]:
        """Yield what writes the answers, if they are wanted: noise is drawn when there is room.

        Args:
            queries: that will be asked, one a row.
            width: numbers in an answer.
        """
        if self.output is None:
            yield lambda _: None
            return
        with Delivery(self.output, force=self.force) as delivery:
            numbers = math.prod(queries.shape[:1]) * width
            delivery.claim(_HEADER + np.dtype(np.float64).itemsize * numbers)
            yield lambda answers: delivery.write(lambda: _array_file(answers))


def run_attention(
    inputs: Inputs, *, generate: tuple[int, int], shown: Shown, **settings: Setting
) -> None:
    """Build `DPCrossAttention`, ask it, and show what came of it."""
    shown.check(inputs)
    keys, values, queries = _data(inputs, ("keys", "values", "queries"), generate, settings)
    bound = settings["value_bound"]
    with shown.written(queries, width=_two_axes(values).shape[-1]) as write:
        structure = paper.DPCrossAttention(keys, _two_axes(values), **settings)
        answers = structure.query(queries)  # checks them
        write(answers)
    truth = oracle.attention(
        np.clip(queries, 0, structure.upper),
        np.clip(keys, structure.box.lower, structure.upper),
        np.clip(_two_axes(values), -bound, bound),
    )
    _show(structure, answers, truth, shown)


def run_softmax(
    inputs: Inputs,
    *,
    generate: tuple[int, int],
    shown: Shown,
    p_f: float | None,
    **settings: Setting,
) -> None:
    """Build `DPTreeSoftmax`, or its adaptive form if there is a p_f."""
    shown.check(inputs)
    points, weights, queries = _data(inputs, ("points", "weights", "queries"), generate, settings)
    with shown.written(queries) as write:
        structure = (
            paper.DPTreeSoftmax(points, weights, **settings)
            if p_f is None
            else paper.DPTreeSoftmaxAdaptive(points, weights, p_f=p_f, **settings)
        )
        answers = structure.query(queries)
        write(answers)
    truth = oracle.softmax_sum(*_clipped(points, weights, queries, settings))
    _show(structure, answers, truth, shown)


def run_distance(
    inputs: Inputs,
    *,
    generate: tuple[int, int],
    shown: Shown,
    power: int,
    p_f: float | None,
    **settings: Setting,
) -> None:
    """Build `DPTreeHighDim`, or its adaptive form (p = 1) if there is a p_f."""
    shown.check(inputs)
    if p_f is not None and power != 1:
        raise InvalidInput("Expected --power 1 with --adaptive, as in the paper.")
    points, weights, queries = _data(inputs, ("points", "weights", "queries"), generate, settings)
    with shown.written(queries) as write:
        structure = (
            paper.DPTreeHighDim(points, weights, p=power, **settings)
            if p_f is None
            else paper.DPTreeHighDimAdaptive(points, weights, p_f=p_f, **settings)
        )
        answers = structure.query(queries)
        write(answers)
    inside = _clipped(points, weights, queries, settings, from_=settings["lower"])
    truth = oracle.high_dim_distance(*inside, power)
    _show(structure, answers, truth, shown)


def write_report(folder: Path, *, quick: bool, force: bool, as_json: bool) -> None:
    """Run the paper's experiments and write their page."""
    if folder.exists() and not folder.is_dir():
        raise InvalidInput(f"Expected {folder} to be a folder, and it is a file.")
    if not folder.absolute().parent.is_dir():
        raise InvalidInput(f"Expected {folder.absolute().parent} to be a folder.")
    if folder.exists() and any(folder.iterdir()) and not force:
        raise InvalidInput(f"Expected {folder} to be empty; --force writes into it even so.")
    try:
        from discreet_benchmarks.paper.report import write
    except ImportError:
        raise InvalidInput(
            "Expected matplotlib for the pictures: pip install 'discreet[plots]'."
        ) from None
    page = write(folder, quick=quick, done=lambda name: say(f"{name}: done"))
    print_json({"output": str(page)}) if as_json else print_lines({"report": str(page)})


def _show(structure: Structure, answers: Floats, truth: Floats, shown: Shown) -> None:
    error = float(np.sqrt(np.mean((answers - truth) ** 2)))
    typical = float(np.sqrt(np.mean(truth**2)))
    bound = structure.error_bound(_CONFIDENCE)
    facts: dict[str, object] = {
        "private": False,
        "structure": type(structure).__name__,
        "guarantee": str(structure.guarantee),
        "tight_guarantee": str(structure.tight_guarantee),
        "nbytes": structure.nbytes,
        "error_bound": bound,
        "confidence": _CONFIDENCE,
        "queries": len(truth),
        "error": error,
        "typical": typical,
        "output": None if shown.output is None else str(shown.output),
    }
    if shown.as_json:
        print_json(facts)
        return
    lines = {
        "structure": f"{type(structure).__name__}, {structure.nbytes:,} bytes",
        "guarantee": str(structure.guarantee),
        "tightly": str(structure.tight_guarantee),
        "error bound": f"{bound:.3g}, {_CONFIDENCE:.0%} of the time",
        "error": f"{error:.3g} (root mean square of {len(truth)} queries)",
        "exact answers": f"{typical:.3g} (likewise)",
    }
    print_lines(lines, note=_OWNER)


def _array_file(numbers: Floats) -> bytes:
    """Return a .npy file."""
    file = io.BytesIO()
    np.save(file, numbers)
    return file.getvalue()


def _data(
    inputs: Inputs,
    roles: tuple[str, str, str],
    generate: tuple[int, int],
    settings: dict[str, Setting],
) -> tuple[Floats, Floats, Floats]:
    """Return rows, weights or values, and queries: from files, or points spread evenly."""
    if all(each is None for each in inputs):
        rows, dim = generate
        lower, upper = settings["lower"], settings["upper"]
        bound = settings["value_bound"] if "value_bound" in settings else settings["weight_bound"]
        both = spread(rows, dim + 1)
        points = lower + (upper - lower) * both[:, :dim]
        return points, bound * both[:, dim], upper * spread(_QUERIES, dim, start=0.5)
    if any(each is None for each in inputs):
        raise InvalidInput(f"Expected all of {', '.join(roles)}, or none of them to generate data.")
    first, second, third = (
        np.asarray(read_array(each, role), dtype=np.float64)
        for each, role in zip(inputs, roles, strict=True)
        if each is not None
    )
    if third.size == 0:
        raise InvalidInput("Expected at least one query.")
    return first, second, third


def _clipped(
    points: Floats,
    weights: Floats,
    queries: Floats,
    settings: dict[str, Setting],
    *,
    from_: float = 0.0,
) -> tuple[Floats, Floats, Floats]:
    """Return what a structure sees of its input: all within the public bounds, queries from_ on."""
    lower, upper, bound = (settings[name] for name in ("lower", "upper", "weight_bound"))
    return (
        np.clip(points, lower, upper),
        np.clip(weights, -bound, bound),
        np.clip(queries, from_, upper),
    )


def _two_axes(values: Floats) -> Floats:
    return values[:, None] if values.ndim == 1 else values
