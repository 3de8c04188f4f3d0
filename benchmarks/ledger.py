"""How long one more spend takes in a ledger that has many, against an empty one.

    python benchmarks/ledger.py

Medians of alternating spends, in milliseconds: checked, written and on the disk. Kinds of ledgers:
distinct Gaussians (memories, regressions, classifiers) and structures of the paper (truncated
Laplace).
"""

import pathlib
import statistics
import tempfile
import time

from discreet.accounting import Gaussian, Mechanism, Receipt, TruncatedLaplace
from discreet.ledger import Ledger
from discreet.noise import SystemEntropy

SPENDS, TRIALS, DELTA = 1000, 31, 1e-6


def gaussian(index: int) -> Mechanism:
    """Return one of many Gaussians, no two of them the same."""
    return Gaussian(sigma=1000.0 + index, sensitivity=1.0, neighbours="replace")


def tree(index: int) -> Mechanism:
    """Return the nodes of one of many trees, no two of them the same."""
    return TruncatedLaplace(
        sensitivity=2**12, epsilon=1e-4 * (1 + 1e-4 * index), delta=1e-13, neighbours="replace"
    )


KINDS = {"gaussian": gaussian, "tree": tree}


def receipt(mechanism: Mechanism) -> Receipt:
    """Return a receipt for ten of a mechanism."""
    return Receipt.issue(
        mechanisms=[(mechanism, 10)],
        neighbours=mechanism.neighbours,
        unit="row",
        scope="a measurement",
        entropy=SystemEntropy(),
    )


def spend_once(ledger: Ledger, mechanism: Mechanism) -> float:
    """Return how long it takes to reserve a spend and to mark it as drawn, in milliseconds."""
    made = receipt(mechanism)
    start = time.perf_counter()
    ledger.account("people").reserve(made, delta=DELTA).draw()
    return 1e3 * (time.perf_counter() - start)


def ledger_with(folder: pathlib.Path, kind: str, spends: int) -> Ledger:
    """Return a ledger with so many spends of a kind."""
    ledger = Ledger(folder / f"{kind}-{spends}-{time.monotonic_ns()}.db")
    ledger.create("people", epsilon=100.0, delta=1e-5, neighbours="replace")
    for index in range(spends):
        ledger.spend("people", receipt(KINDS[kind](index)), delta=DELTA)
    return ledger


def measure(folder: pathlib.Path, kind: str, spends: int = SPENDS) -> tuple[float, float]:
    """Return the median time of a spend in an empty ledger and in one with so many, by turns."""
    full, empty_times, full_times = ledger_with(folder, kind, spends), [], []
    for trial in range(TRIALS):
        mechanism = KINDS[kind](spends + trial)
        empty_times.append(spend_once(ledger_with(folder, kind, 0), mechanism))
        full_times.append(spend_once(full, mechanism))
    return statistics.median(empty_times), statistics.median(full_times)


def main() -> None:
    """Print the table."""
    print(f"{'kind':<10} {'empty, ms':>10} {f'{SPENDS:,} spends':>14} {'more':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            empty, full = measure(pathlib.Path(folder), kind)
            print(f"{kind:<10} {empty:>10.1f} {full:>14.1f} {full - empty:>8.1f}")


if __name__ == "__main__":
    main()
