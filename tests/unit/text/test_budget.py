"""What each part of a corpus spends: a public rule, and what cards say of it."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidInput
from discreet.text.budget import Budget

ASKED = st.fixed_dictionaries(
    {
        "topics": st.booleans(),
        "finding": st.booleans(),
        "words": st.booleans(),
        "facts": st.booleans(),
    }
)


@given(asked=ASKED, epsilon=st.floats(1e-3, 100), delta=st.floats(1e-12, 1e-2))
def test_nothing_is_spent_on_what_nobody_asked_for_and_all_of_the_rest_is(asked, epsilon, delta):
    budget = Budget.of(epsilon=epsilon, delta=delta, **asked)
    gaussian = asked["words"] or asked["facts"]
    pure = epsilon * (0.5 if gaussian else 1.0) if asked["topics"] else 0.0
    assert budget.finding + budget.table == pytest.approx(pure, rel=1e-12)
    assert bool(budget.finding) is (asked["finding"] and asked["topics"])
    assert budget.gaussian == pytest.approx(1.0 if gaussian else 0.0, abs=1e-12)
    assert bool(budget.words) is asked["words"]
    facts = (budget.names, budget.counts, budget.learning)
    assert all(bool(each) is asked["facts"] for each in facts)
    assert budget.disclosure == (0.1 * delta if asked["facts"] else 0.0)


def test_the_lines_of_a_card_have_every_part_and_no_other():
    everything = Budget.of(
        epsilon=2.0, delta=1e-6, topics=True, finding=True, words=True, facts=True
    )
    text = "; ".join(everything.lines)
    for each in (
        "finding topics",
        "counts of topics",
        "typical words",
        "finding names",
        "counting",
    ):
        assert each in text
    assert "ε = 0.2" in text
    assert "ε = 0.8" in text
    alone = Budget.of(epsilon=2.0, delta=1e-6, topics=True, finding=False, words=False, facts=False)
    assert alone.lines == ["counts of topics ε = 2"]


@pytest.mark.parametrize(
    "wrong",
    [{"table": -1.0}, {"words": 1.1}, {"names": -0.1}, {"disclosure": math.nan}, {"table": "1"}],
)
def test_a_budget_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        Budget(**wrong)
