import dataclasses
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet import InvalidInput, Neighbours, accounting
from discreet.accounting import Receipt, combine, gaussian_epsilon, receipt, tight
from discreet.accounting.events import Mechanism
from discreet.noise import SystemEntropy
from discreet.paper import DPTree
from discreet.testing import Seeded, Silent

REPLACE = Neighbours.REPLACE
ONE = {"neighbours": REPLACE}
GAUSSIAN = accounting.Gaussian(sigma=3.0, sensitivity=1.0, **ONE)
LAPLACE = accounting.Laplace(scale=20.0, sensitivity=1.0, **ONE)
TRUNCATED = accounting.TruncatedLaplace(sensitivity=7, epsilon=0.01, delta=1e-10, **ONE)
PARTS = ((GAUSSIAN, 2), (LAPLACE, 5), (TRUNCATED, 30))

POSITIVE = st.floats(1e-3, 1e3)
RELATIONS = st.sampled_from(Neighbours)
KINDS = {
    "gaussian": lambda r: st.builds(
        accounting.Gaussian, sigma=POSITIVE, sensitivity=st.floats(1e-3, 1.0), neighbours=r
    ),
    "laplace": lambda r: st.builds(
        accounting.Laplace, scale=POSITIVE, sensitivity=st.floats(1e-3, 0.4), neighbours=r
    ),
    "discrete_laplace": lambda r: st.builds(
        accounting.DiscreteLaplace,
        scale=st.floats(0.5, 2.0**39),
        sensitivity=st.integers(1, 200),
        neighbours=r,
    ),
    "truncated_laplace": lambda r: st.builds(
        accounting.TruncatedLaplace,
        sensitivity=st.integers(100, 10**6),
        epsilon=st.floats(1e-3, 50.0),
        delta=st.floats(1e-30, 0.49),
        neighbours=r,
    ),
}


def issue(*, mechanisms=PARTS, unit="row", scope="the whole", entropy=None, neighbours=REPLACE):
    return Receipt.issue(
        mechanisms=mechanisms,
        neighbours=neighbours,
        unit=unit,
        scope=scope,
        entropy=SystemEntropy() if entropy is None else entropy,
    )


def through_json(value):
    return json.loads(json.dumps(value))


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_a_mechanism_comes_back_from_json_in_every_digit(kind, data):
    mechanism = data.draw(RELATIONS.flatmap(lambda r: KINDS[kind](st.just(r))))
    described = mechanism.to_dict()
    assert described["kind"] == kind
    again = Mechanism.from_dict(through_json(described))
    assert again == mechanism
    assert type(again) is type(mechanism)
    assert repr(again) == repr(mechanism)


@settings(max_examples=50)
@given(data=st.data(), relation=RELATIONS, unit=st.sampled_from(["row", "record", "Kundin"]))
def test_a_receipt_comes_back_from_json_in_every_digit(data, relation, unit):
    any_mechanism = st.one_of([make(st.just(relation)) for make in KINDS.values()])
    pairs = st.lists(st.tuples(any_mechanism, st.integers(1, 10**12)), min_size=1, max_size=5)
    made = issue(
        mechanisms=data.draw(pairs),
        neighbours=relation,
        unit=unit,
        entropy=data.draw(st.sampled_from([SystemEntropy(), Seeded(1), Silent()])),
    )
    again = Receipt.from_dict(through_json(made.to_dict()))
    assert again == made
    assert hash(again) == hash(made)
    assert repr(again) == repr(made)
    assert again.neighbours is relation


def test_the_table_of_kinds_is_closed():
    class Kinder(accounting.Gaussian):
        """A Gaussian that claims to cost nothing."""

        @property
        def spread(self):
            return 1e-12

    kinder = Kinder(sigma=1.0, sensitivity=1.0, **ONE)
    with pytest.raises(InvalidInput, match="one of"):
        kinder.to_dict()
    with pytest.raises(InvalidInput, match="a part of mechanisms=<Kinder>"):
        issue(mechanisms=[(kinder, 1)])


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "exponential"},
        {"kind": ["gaussian"]},
        {"kind": None},
        {"sigma": "3.0"},
        {"sigma": True},
        {"sigma": -1.0},
        {"sigma": float("nan")},
        {"sigma": [3.0]},
        {"neighbours": "nearby"},
        {"neighbours": ["replace"]},
        {"more": 1},
    ],
    ids=repr,
)
def test_a_mechanism_that_makes_no_sense_is_refused(change):
    with pytest.raises(InvalidInput):
        Mechanism.from_dict(GAUSSIAN.to_dict() | change)


def test_a_mechanism_needs_all_its_fields_and_a_dictionary():
    for name in GAUSSIAN.to_dict():
        with pytest.raises(InvalidInput):
            Mechanism.from_dict({k: v for k, v in GAUSSIAN.to_dict().items() if k != name})
    for wrong in (None, [], "gaussian", 3):
        with pytest.raises(InvalidInput, match="mechanism="):
            Mechanism.from_dict(wrong)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"id": ""}, "id="),
        ({"id": " "}, "id="),
        ({"id": "a\nb"}, "id="),
        ({"id": 7}, "id="),
        ({"unit": ""}, "unit="),
        ({"unit": None}, "unit="),
        ({"scope": "\x1b[2J"}, "scope="),
        ({"source": ["Seeded(1)"]}, "source=<list>"),
        ({"private": 1}, "private="),
        ({"private": None}, "private="),
        ({"neighbours": "add_remove"}, "neighbours="),
        ({"neighbours": "nearby"}, "neighbours="),
        ({"mechanisms": []}, "got none"),
        ({"mechanisms": None}, "mechanisms="),
        ({"mechanisms": {}}, "mechanisms="),
        ({"mechanisms": ["gaussian"]}, "mechanisms="),
        ({"mechanisms": [{"mechanism": GAUSSIAN.to_dict(), "count": 0}]}, "count="),
        ({"mechanisms": [{"mechanism": GAUSSIAN.to_dict(), "count": "2"}]}, "count="),
        ({"mechanisms": [{"mechanism": GAUSSIAN.to_dict(), "count": 10**19}]}, "count="),
        ({"mechanisms": [{"mechanism": GAUSSIAN.to_dict()}]}, "fields"),
        ({"mechanisms": [{"mechanism": {"kind": "free"}, "count": 1}]}, "kind='free'"),
        ({"more": 1}, "fields"),
        ({"leaks": "bounds"}, "leaks="),
        ({"leaks": [7]}, "leaks"),
        ({"leaks": ["somebody earns 7"]}, "leaks"),
    ],
)
def test_a_receipt_that_makes_no_sense_is_refused(change, name):
    with pytest.raises(InvalidInput, match=name):
        Receipt.from_dict(issue().to_dict() | change)


def test_a_receipt_needs_all_its_fields_and_a_dictionary():
    for name in issue().to_dict():
        with pytest.raises(InvalidInput, match="fields"):
            Receipt.from_dict({k: v for k, v in issue().to_dict().items() if k != name})
    for wrong in (None, [], "receipt"):
        with pytest.raises(InvalidInput, match="receipt="):
            Receipt.from_dict(wrong)


def test_a_receipt_is_frozen_and_its_fields_have_names():
    made = issue()
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.private = True
    with pytest.raises(TypeError):
        Receipt("id", PARTS, REPLACE, "row", "all", "SystemEntropy()", True)  # noqa: FBT003


def test_mixed_relations_are_refused():
    other = dataclasses.replace(GAUSSIAN, neighbours="add_remove")
    with pytest.raises(InvalidInput, match="relation"):
        issue(mechanisms=[(GAUSSIAN, 1), (other, 1)])
    with pytest.raises(InvalidInput, match="neighbours='replace'"):
        issue(mechanisms=[(other, 1)])


def test_every_receipt_has_a_name_of_its_own_whatever_the_source():
    made = [issue(entropy=Seeded(1)) for _ in range(50)] + [issue() for _ in range(50)]
    assert len({each.id for each in made}) == 100
    assert all(len(bytes.fromhex(each.id)) == 16 for each in made)
    issue(entropy=Silent())  # has no words, and is not asked for any


def test_the_name_takes_no_words_from_the_source():
    used, fresh = Seeded(5), Seeded(5)
    issue(entropy=used)
    assert used.words(3).tolist() == fresh.words(3).tolist()


def test_the_mark_tells_the_source():
    assert issue().mark == ""
    assert issue().private
    assert issue().source == "SystemEntropy()"
    seeded = issue(entropy=Seeded(1))
    assert not seeded.private
    assert seeded.mark == "NOT PRIVATE (noise from Seeded(1)): "
    assert seeded.guarantee(delta=1e-6).scope == seeded.mark + "the whole"
    with pytest.raises(InvalidInput, match="entropy="):
        issue(entropy="os.urandom")


def test_a_receipt_guarantees_what_its_mechanisms_compose_to():
    guarantee = issue().guarantee(delta=1e-6)
    assert guarantee.epsilon == tight(PARTS, delta=1e-6)
    assert guarantee.delta == 1e-6
    assert guarantee.neighbours is REPLACE
    assert (guarantee.unit, guarantee.scope) == ("row", "the whole")
    for delta in (0, 1, None, float("nan")):
        with pytest.raises(InvalidInput, match="delta="):
            issue().guarantee(delta=delta)


def test_a_delta_below_the_truncated_tails_is_named():
    for ask in (issue().guarantee, lambda delta: combine([issue()], delta=delta)):
        with pytest.raises(InvalidInput, match=r"delta=1e-10.*truncated tails"):
            ask(delta=1e-10)


def test_equal_mechanisms_are_put_together():
    made = issue(mechanisms=[(GAUSSIAN, 1), (LAPLACE, 2), (GAUSSIAN, 3)])
    assert made.mechanisms == ((GAUSSIAN, 4), (LAPLACE, 2))


def test_receipts_combine_to_all_their_mechanisms():
    first, second = issue(), issue(mechanisms=[(LAPLACE, 3)])
    together = combine([first, second], delta=1e-6)
    assert together.epsilon == tight([*PARTS, (LAPLACE, 3)], delta=1e-6)
    assert together.scope == "all of 2 releases together, with all answers to any queries,"
    assert (together.unit, together.neighbours, together.delta) == ("row", REPLACE, 1e-6)
    alone = first.guarantee(delta=1e-6).epsilon
    assert combine([first], delta=1e-6).epsilon == alone < together.epsilon


def test_gaussians_combine_without_any_loss():
    made = [issue(mechanisms=[(GAUSSIAN, count)]) for count in (1, 2, 6)]
    assert combine(made, delta=1e-9).epsilon == pytest.approx(
        gaussian_epsilon(sigma=1.0, delta=1e-9), rel=1e-12
    )


def test_a_name_counts_once():
    first = issue()
    again = Receipt.from_dict(through_json(first.to_dict()))
    turned = dataclasses.replace(first, mechanisms=first.mechanisms[::-1])
    once = combine([first], delta=1e-6)
    for copies in ([first, first], (first, again, turned)):
        assert combine(copies, delta=1e-6) == once
    assert combine([issue(), issue()], delta=1e-6).epsilon > once.epsilon


@pytest.mark.parametrize("parts", [((GAUSSIAN, 1),), (*PARTS, (LAPLACE, 1)), ((GAUSSIAN, 3),)])
def test_one_name_for_two_things_is_refused(parts):
    first = issue()
    with pytest.raises(InvalidInput, match="one id"):
        combine([first, dataclasses.replace(first, mechanisms=parts)], delta=1e-6)


def test_only_like_is_combined_with_like():
    turned = dataclasses.replace(LAPLACE, neighbours="add_remove")
    other = issue(mechanisms=[(turned, 1)], neighbours="add_remove")
    with pytest.raises(InvalidInput, match="one neighbouring relation and one unit"):
        combine([issue(), other], delta=1e-6)
    with pytest.raises(InvalidInput, match="one neighbouring relation and one unit"):
        combine([issue(), issue(unit="record")], delta=1e-6)
    # Even where a second receipt of the same name hides it.
    first = issue()
    with pytest.raises(InvalidInput, match="one neighbouring relation and one unit"):
        combine([first, dataclasses.replace(first, unit="record")], delta=1e-6)


def test_one_that_is_not_private_marks_all():
    first = issue()
    marked = "NOT PRIVATE: all of 2 releases together, with all answers to any queries,"
    for others in ([issue(entropy=Silent())], [issue(), dataclasses.replace(first, private=False)]):
        scope = combine([first, *others], delta=1e-6).scope
        assert scope == marked


def test_nothing_to_combine_is_refused():
    with pytest.raises(InvalidInput, match="got none"):
        combine([], delta=1e-6)
    for wrong in (None, issue(), 3):
        with pytest.raises(InvalidInput, match="releases="):
            combine(wrong, delta=1e-6)
    with pytest.raises(InvalidInput, match="a part of releases="):
        combine([GAUSSIAN], delta=1e-6)
    for delta in (0, 1):
        with pytest.raises(InvalidInput, match="delta="):
            combine([issue()], delta=delta)
    with pytest.raises(InvalidInput, match="delta"):
        combine([issue()])


def test_memories_structures_and_receipts_add_up_together():
    rows = np.linspace(0.1, 0.9, 30)
    spend = {"epsilon": 1.0, "delta": 1e-6}
    memory = discreet.build(rows[:, None], rows[:, None], **spend, scale=1.0, neighbours="replace")
    tree = DPTree(rows, sensitivity=1.0, upper=1.0, epsilon=0.5, delta=1e-7)
    together = discreet.combine([memory, tree, memory.receipt, tree.receipt])
    assert together.delta == 1e-6
    assert "all of 2 releases" in together.scope
    pairs = [*memory.receipt.mechanisms, *tree.receipt.mechanisms]
    assert together.epsilon == pytest.approx(tight(pairs, delta=1e-6), rel=1e-9)
    assert 1.0 < together.epsilon < 1.5
    other = discreet.build(rows[:, None], rows[:, None], **spend, scale=1.0)
    with pytest.raises(InvalidInput, match="neighbouring"):
        discreet.combine([other, tree])


def test_what_was_taken_from_the_rows_stays_with_a_receipt_and_all_that_it_is_added_to():
    plain, leaky = issue(), dataclasses.replace(issue(), leaks=("bounds", "classes"))
    assert Receipt.from_dict(through_json(leaky.to_dict())) == leaky
    said = "but for what was taken from the rows and is not covered (bounds, classes)."
    assert f"the whole {said}" in str(leaky.guarantee(delta=1e-6))
    seeded = dataclasses.replace(issue(entropy=Seeded(1)), leaks=("bounds",))
    promise = str(seeded.guarantee(delta=1e-6))
    assert promise.startswith("NOT PRIVATE (noise from Seeded(1)): ")
    assert "the whole but for what was taken" in promise
    again = dataclasses.replace(leaky, id="another", leaks=("classes", "rows_hint"))
    joint = str(combine([plain, leaky, again], delta=1e-6))
    assert "is not covered (bounds, classes, rows_hint)." in joint
    # Somebody may have a copy that does not say it.
    silent = dataclasses.replace(leaky, leaks=())
    assert "is not covered (bounds, classes)." in str(combine([silent, leaky], delta=1e-6))


def test_a_receipt_without_leaks_is_written_as_ever():
    described = issue().to_dict()
    fields = ["id", "mechanisms", "neighbours", "unit", "scope", "source", "private"]
    assert sorted(described) == sorted(fields)
    assert Receipt.from_dict(through_json(described)).leaks == ()
    assert "taken" not in str(Receipt.from_dict(described).guarantee(delta=1e-6))


def test_huge_counts_in_a_file_do_no_harm():
    described = issue().to_dict()
    described["mechanisms"][1]["count"] = 10**18
    assert math.isfinite(Receipt.from_dict(described).guarantee(delta=1e-6).epsilon)


def test_a_name_is_sixteen_bytes_of_the_system(monkeypatch):
    asked = []

    class Counted:
        def words(self, count):
            asked.append(count)
            return SystemEntropy().words(count)

    monkeypatch.setattr(receipt, "SystemEntropy", Counted)
    Receipt.issue(
        mechanisms=PARTS, neighbours=REPLACE, unit="row", scope="all", entropy=SystemEntropy()
    )
    assert asked == [2]


def test_releases_without_a_delta_add_up_to_one_without():
    from discreet.shards import Job

    tables = []
    for epsilon in (0.5, 1.0):
        job = Job(key_dim=2, value_dim=1, reader="table", points=np.eye(2), epsilon=epsilon)
        part = job.partial((np.eye(2), np.zeros((2, 1))), shard="all")
        tables.append(job.release([part], expected=["all"]))
    joint = combine(tables)
    assert (joint.epsilon, joint.delta) == (pytest.approx(1.5, rel=1e-12), 0.0)
    assert combine(tables, delta=1e-6).epsilon <= 1.5
    memory = discreet.build(np.eye(2), np.ones((2, 1)), epsilon=1.0, delta=1e-6, scale=1.0)
    with pytest.raises(InvalidInput, match="delta"):  # a Gaussian mechanism has no loss at δ = 0
        combine([tables[0], memory.receipt])
