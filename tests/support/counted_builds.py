"""One contract for every front door that gives a model a private context: it counts what it spends.

Test modules inherit `CountedBuilds` and say how they build.
"""

import numpy as np
import pytest
import torch
from ledgers import Watching

from discreet.errors import BudgetExceeded, InvalidInput
from discreet.ledger import Ledger, State
from discreet.testing import Seeded

_SPEND = {"epsilon": 1.0, "delta": 1e-6}


def state_of(models):
    """The numbers of modules, and the names of all that somebody put on them."""
    tensors = [each.clone() for model in models for each in model.state_dict().values()]
    names = [
        (name, type(part), sorted(vars(part)))
        for model in models
        for name, part in model.named_modules()
    ]
    return tensors, names


class CountedBuilds:
    """What holds of every front door."""

    def models(self):
        """Return fresh models, which one build makes private."""
        raise NotImplementedError

    def build(self, models, **options):
        """Make them private, and return their releases (`Memories`): all of one build."""
        raise NotImplementedError

    @pytest.fixture
    def ledger(self, tmp_path):
        made = Ledger(tmp_path / "budget.db")
        made.create("clinic", epsilon=1.0, delta=1e-5)
        return made

    @pytest.mark.parametrize("form", ["account", "three names"])
    def test_one_build_of_all_layers_is_counted_once_and_before_its_noise(self, ledger, form):
        counted = (
            {"account": ledger.account("clinic", "eve")}
            if form == "account"
            else {"ledger": ledger, "dataset": "clinic", "analyst": "eve"}
        )
        entropy = Watching(1, ledger)
        made = self.build(self.models(), entropy=entropy, **counted, **_SPEND)
        assert entropy.seen
        assert all(states == [State.SPENT] for states in entropy.seen)
        [spend] = ledger.statement("clinic").spends
        assert {each.receipt for each in made} == {spend.receipt}
        assert (spend.delta, spend.analyst, spend.state) == (1e-6, "eve", State.SPENT)

    def test_what_is_released_does_not_depend_on_who_counts(self, ledger):
        account = ledger.account("clinic")
        builds = [
            self.build(self.models(), entropy=Seeded(3), **counted, **_SPEND)
            for counted in ({}, {"account": account})
        ]
        for one, other in zip(*builds, strict=True):
            for a, b in zip(one, other, strict=True):
                np.testing.assert_array_equal(a.released.state, b.released.state)

    def test_a_budget_without_room_leaves_models_as_they_were(self, ledger):
        account = ledger.account("clinic")
        self.build(self.models(), entropy=Seeded(1), account=account, **_SPEND)
        models, entropy = self.models(), Watching(2, ledger)
        tensors, names = state_of(models)
        with pytest.raises(BudgetExceeded, match="still fits"):
            self.build(models, entropy=entropy, account=account, **_SPEND)
        after, names_after = state_of(models)
        assert names_after == names
        assert all(torch.equal(a, b) for a, b in zip(tensors, after, strict=True))
        assert entropy.seen == []
        assert len(ledger.statement("clinic").spends) == 1
        assert self.build(models, entropy=Seeded(2), **_SPEND)  # they can still be made private

    @pytest.mark.parametrize(
        ("counted", "message"),
        [
            (("account", "ledger", "dataset"), "^Expected account, or ledger and dataset, not b"),
            (("account", "dataset"), "^Expected account, or ledger and dataset, not both.$"),
            (("account", "analyst"), "^Expected account, or ledger and dataset, not both.$"),
            (("ledger",), "Expected a dataset"),
            (("dataset",), "to be given with a ledger"),
        ],
    )
    def test_halves_and_doubles_of_an_account_are_refused(self, ledger, counted, message):
        given = {
            "account": ledger.account("clinic"),
            "ledger": ledger,
            "dataset": "clinic",
            "analyst": "eve",
        }
        with pytest.raises(InvalidInput, match=message):
            self.build(self.models(), **{name: given[name] for name in counted}, **_SPEND)
        assert ledger.statement("clinic").spends == ()

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [({"account": "clinic"}, "to be an Account"), ({"ledger": "budget.db"}, "to be a Ledger")],
    )
    def test_what_is_no_account_is_refused(self, wrong, message):
        with pytest.raises(InvalidInput, match=message):
            self.build(self.models(), **wrong, **_SPEND)
