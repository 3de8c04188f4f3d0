"""What tests of the ledger share: receipts of known cost, and builds that take milliseconds."""

import numpy as np

import discreet
from discreet import testing
from discreet.accounting import Gaussian, Receipt, gaussian_sigma
from discreet.noise import SystemEntropy
from discreet.privacy import Neighbours

DELTA = 1e-6
KEYS = np.linspace(-1, 1, 24).reshape(8, 3)
VALUES = np.linspace(-1, 1, 16).reshape(8, 2)


class Watching(testing.Seeded):
    """The noise of a seed; notes what a ledger says of "clinic" whenever some is drawn."""

    def __init__(self, seed, ledger):
        super().__init__(seed)
        self.ledger, self.seen = ledger, []

    def words(self, count):
        self.seen.append([each.state for each in self.ledger.statement("clinic").spends])
        return super().words(count)


def gaussian(epsilon, *, delta=DELTA, neighbours=Neighbours.ADD_REMOVE):
    sigma = gaussian_sigma(epsilon=epsilon, delta=delta)
    return Gaussian(sigma=sigma, sensitivity=1.0, neighbours=neighbours)


def receipt(*mechanisms, unit="row", private=True):
    """Return a receipt for mechanisms, each once; or for a Gaussian of such an ε."""
    parts = [gaussian(each) if isinstance(each, float) else each for each in mechanisms]
    return Receipt.issue(
        mechanisms=[(each, 1) for each in parts],
        neighbours=parts[0].neighbours,
        unit=unit,
        scope="a test",
        entropy=SystemEntropy() if private else testing.Seeded(1),
    )


def build(ledger, epsilon, *, dataset="clinic", delta=DELTA, **options):
    """Return a memory of a few rows, counted in a ledger."""
    return discreet.build(
        KEYS,
        VALUES,
        epsilon=epsilon,
        delta=delta,
        scale=1.0,
        kernel="minimax",
        eps_s=0.5,
        ledger=ledger,
        dataset=dataset,
        **options,
    )
