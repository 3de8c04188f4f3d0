"""How far cells, sums of words, totals of names, and all that a corpus adds up can move.

Up to the claim, and never beyond. Cells move in the L1 norm, all others in the L2 norm.
"""

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from corpora import CLASSES, DIM, NAMES, TOPICS, VOCABULARY, Transcript, encode, labels, texts
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from reader_contract import NUMBERS, ROUNDED, loss
from rounds import exact_sums, moved

from discreet.privacy import Neighbours, Privacy
from discreet.readers.discovery.mechanism import totals_of
from discreet.readers.table import TABLE, TableOptions
from discreet.sums.accumulate import Accumulator
from discreet.sums.cells import RECORD_UNITS
from discreet.sums.selection import LENGTH, Selection
from discreet.sums.settings import Settings, Shape, Unit
from discreet.sums.source import Table
from discreet.testing import Silent
from discreet.text import Corpus, PublicWords
from discreet.text.building import MOST, _units
from discreet.text.layout import NearAnchors, WordsLayout
from discreet.text.words import Directions

EPSILONS = [0.3, 1.0, 7.0, 60.0]
GROUP_ROWS = [0.3, 1.0, 2.5]

# --- cells ----------------------------------------------------------------------------------------

POINTS = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])


def table_settings(count, neighbours, unit=Unit.ROW, group_rows=1.0, epsilon=1.0):
    """Settings of a table with so many labels."""
    options = TableOptions(
        points=POINTS,
        classes=range(count) if count > 1 else None,
        epsilon=epsilon,
        neighbours=neighbours,
        group_rows=group_rows,
    )
    return TABLE.resolve([Shape(heads=(), key_dim=2, value_dim=1)], options, unit=unit)


def nothing(sums):
    return [np.zeros_like(each) for each in sums]


@st.composite
def drawn_rows(draw, count, sizes):
    """Keys of any finite size, and places of labels; places that are none, too."""
    rows = draw(sizes)
    keys = draw(hnp.arrays(np.float64, (rows, 2), elements=NUMBERS))
    return keys, draw(hnp.arrays(np.float64, (rows,), elements=st.integers(-1, count).map(float)))


@pytest.mark.parametrize("neighbours", Neighbours)
@settings(max_examples=150)
@given(count=st.sampled_from([1, 3, 7]), epsilon=st.sampled_from(EPSILONS), data=st.data())
def test_one_row_moves_cells_by_at_most_the_claim(neighbours, count, epsilon, data):
    whole = table_settings(count, neighbours, epsilon=epsilon)
    keys, places = data.draw(drawn_rows(count, st.just(3)))
    one = exact_sums(whole, keys, places)
    if neighbours is Neighbours.ADD_REMOVE:
        other = exact_sums(whole, keys[1:], places[1:])
        assert loss(whole, one, other) <= ROUNDED
        assert loss(whole, one, other) >= 1 / ROUNDED  # whatever the row is
    else:
        new, at = data.draw(drawn_rows(count, st.just(1)))
        keys, places = np.concatenate([new, keys[1:]]), np.concatenate([at, places[1:]])
        assert loss(whole, one, exact_sums(whole, keys, places)) <= ROUNDED


@pytest.mark.parametrize("neighbours", Neighbours)
@settings(max_examples=150)
@given(count=st.sampled_from([1, 3, 7]), group_rows=st.sampled_from(GROUP_ROWS), data=st.data())
def test_one_record_moves_cells_by_at_most_the_claim(neighbours, count, group_rows, data):
    whole = table_settings(count, neighbours, Unit.RECORD, group_rows)
    sizes = st.integers(1, 9)
    one, new, rest = (data.draw(drawn_rows(count, each)) for each in (sizes, sizes, st.just(3)))
    if neighbours is Neighbours.ADD_REMOVE:
        new = new[0][:0], new[1][:0]
    both = []
    for keys, places in (one, new):
        groups = np.array([7] * len(places) + [1, 1, 2])
        joined = (np.concatenate(each) for each in zip((keys, places), rest, strict=True))
        both.append(exact_sums(whole, *joined, groups))
    assert loss(whole, *both) <= ROUNDED


@pytest.mark.parametrize("count", [1, 3, 7])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_row_that_is_replaced_by_one_of_another_cell_reaches_the_claim(count, epsilon):
    whole = table_settings(count, Neighbours.REPLACE, epsilon=epsilon)
    one, other = (exact_sums(whole, POINTS[at : at + 1], np.zeros(1)) for at in (0, 1))
    assert 1 / ROUNDED <= loss(whole, one, other) <= ROUNDED


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("group_rows", GROUP_ROWS)
@pytest.mark.parametrize("size", [1, 2, 3, 128, 1_000, 9_999])
def test_records_of_cells_are_cut_exactly_and_not_more_than_needed(group_rows, size, neighbours):
    """What is lost to cutting is less than a unit for each cell that a record is in."""
    for cells in (1, 4):
        whole = table_settings(3, neighbours, Unit.RECORD, group_rows)
        points = POINTS[np.arange(size) % cells]
        [sums] = exact_sums(whole, points, np.zeros(size), np.zeros(size, int))
        cap = math.floor(group_rows * RECORD_UNITS)
        wanted = min(size * RECORD_UNITS, cap)
        assert wanted - min(cells, size) < sums.sum() <= wanted
        reached = loss(whole, [sums], nothing([sums]))
        if neighbours is Neighbours.REPLACE:  # an opposite one is as far on the other side
            reached *= 2
        assert reached <= ROUNDED
        if size >= group_rows:
            assert reached > 1 - Fraction(2 * cells, cap)


def test_a_record_counts_as_its_rows_do_where_these_are_few_enough():
    whole = table_settings(3, Neighbours.ADD_REMOVE, Unit.RECORD, 5.0)
    keys, places, groups = POINTS[[0, 0, 1, 2, 3]], np.array([0, 1, 2, 2, 0]), np.zeros(5, int)
    by_record = exact_sums(whole, keys, places, groups)
    by_row = exact_sums(table_settings(3, Neighbours.ADD_REMOVE), keys, places)
    assert np.array_equal(by_record[0], by_row[0] * RECORD_UNITS)


@settings(max_examples=80)
@given(count=st.sampled_from([1, 3, 7]), data=st.data())
def test_cells_are_the_same_alone_in_any_batch_and_at_any_position(count, data):
    [layout] = table_settings(count, Neighbours.ADD_REMOVE).layouts
    keys, places = data.draw(drawn_rows(count, st.integers(1, 40)))
    order = np.random.default_rng(data.draw(st.integers(0, 99))).permutation(len(keys))
    whole = layout.cells(keys, places[:, None])
    assert np.array_equal(layout.cells(keys[order], places[order, None]), whole[order])
    for at in range(len(keys)):
        assert np.array_equal(
            layout.cells(keys[at : at + 1], places[at : at + 1, None])[0], whole[at]
        )
    assert np.array_equal(layout.cells(np.asfortranarray(keys), places[:, None]), whole)


@pytest.mark.parametrize("unit", Unit)
def test_sums_of_cells_are_the_same_in_any_order_chunks_and_threads(unit):
    """Of vectors as encoders make them, near ties included."""
    rng = np.random.default_rng(0)
    keys = rng.normal(size=(600, 2)).astype(np.float32)
    keys[::3] = ((POINTS[0] + POINTS[1]) / 2).astype(np.float32)
    places, groups = rng.integers(0, 7, 600)[:, None], np.repeat(np.arange(100), 6)
    whole = table_settings(7, Neighbours.ADD_REMOVE, unit, 2.5 if unit is Unit.RECORD else 1.0)

    def added(order, chunks, threads):
        adder = Accumulator(whole, threads=threads)
        for part in np.array_split(order, chunks):
            owners = groups[part] if unit is Unit.RECORD else None
            adder.add([Table(keys[part], places[part])], groups=owners)
        return adder.sums

    first = added(np.arange(600), 1, 1)
    shuffled = rng.permutation(600)
    ways = [(np.arange(600), 5, 3), (np.arange(600)[::-1], 1, 2), (shuffled, 1, 4)]
    for order, chunks, threads in ways:
        assert all(map(np.array_equal, added(order, chunks, threads), first))


# --- sums of words --------------------------------------------------------------------------------

ANCHORS = np.random.default_rng(0).normal(size=(7, 4))


def word_settings(neighbours, unit=Unit.ROW, group_rows=1.0, most=3):
    """Settings of sums of words near anchors."""
    layout = WordsLayout(kernel=NearAnchors(Directions.of(ANCHORS)), words=6, most=most)
    return Settings(
        layouts=(layout,),
        privacy=Privacy(1.0, 1e-6, neighbours),
        unit=unit,
        group_rows=group_rows,
    )


@st.composite
def drawn_texts(draw, sizes, most=3):
    """Vectors of any finite size, and marks: none, one twice, and places that are no words."""
    rows = draw(sizes)
    keys = draw(hnp.arrays(np.float64, (rows, 4), elements=NUMBERS))
    marks = draw(hnp.arrays(np.float64, (rows, most), elements=st.integers(-2, 7).map(float)))
    return keys, marks


@pytest.mark.parametrize("neighbours", Neighbours)
@settings(max_examples=100)
@given(most=st.sampled_from([1, 3, 5]), data=st.data())
def test_one_text_moves_sums_of_words_by_at_most_the_claim(neighbours, most, data):
    whole = word_settings(neighbours, most=most)
    keys, marks = data.draw(drawn_texts(st.just(3), most))
    other = keys[1:], marks[1:]
    if neighbours is Neighbours.REPLACE:
        new = data.draw(drawn_texts(st.just(1), most))
        other = tuple(np.concatenate(each) for each in zip(new, other, strict=True))
    both = (exact_sums(whole, *each) for each in ((keys, marks), other))
    assert moved(whole, *both) <= ROUNDED


@pytest.mark.parametrize("neighbours", Neighbours)
@settings(max_examples=60)
@given(group_rows=st.sampled_from(GROUP_ROWS), data=st.data())
def test_one_person_moves_sums_of_words_by_at_most_the_claim(neighbours, group_rows, data):
    whole = word_settings(neighbours, Unit.RECORD, group_rows)
    sizes = st.integers(1, 6)
    one, new, rest = (data.draw(drawn_texts(each)) for each in (sizes, sizes, st.just(3)))
    if neighbours is Neighbours.ADD_REMOVE:
        new = new[0][:0], new[1][:0]
    both = []
    for keys, marks in (one, new):
        groups = np.array([7] * len(marks) + [1, 1, 2])
        joined = (np.concatenate(each) for each in zip((keys, marks), rest, strict=True))
        both.append(exact_sums(whole, *joined, groups))
    assert moved(whole, *both) <= ROUNDED


@pytest.mark.parametrize("marked", [1, 2, 3])
def test_a_text_reaches_the_claim_of_words_however_many_it_marks(marked):
    whole = word_settings(Neighbours.ADD_REMOVE)
    marks = np.array([[0.0, 4.0, 5.0]])
    marks[:, marked:] = -1
    sums = exact_sums(whole, ANCHORS[:1] / np.linalg.norm(ANCHORS[0]), marks)
    assert 0.998 < moved(whole, sums, nothing(sums)) <= ROUNDED


@pytest.mark.parametrize(("size", "group_rows"), [(2, 0.3), (3, 1.0), (129, 2.5), (900, 1.0)])
def test_people_reach_their_cap_of_words(size, group_rows):
    whole = word_settings(Neighbours.ADD_REMOVE, Unit.RECORD, group_rows)
    keys, marks = np.tile(ANCHORS[:1], (size, 1)), np.tile([0.0, 4.0, -1.0], (size, 1))
    sums = exact_sums(whole, keys, marks, np.zeros(size, int))
    assert 0.97 < moved(whole, sums, nothing(sums)) <= ROUNDED


@settings(max_examples=60)
@given(data=st.data())
def test_coordinates_and_marks_are_the_same_alone_and_no_longer_than_the_radius(data):
    [layout] = word_settings(Neighbours.ADD_REMOVE).layouts
    keys, marks = data.draw(drawn_texts(st.integers(1, 20)))
    order = np.random.default_rng(data.draw(st.integers(0, 99))).permutation(len(keys))
    features = layout.kernel.key_features(keys).features
    weights = layout.weighed(features, marks, None)[0]
    assert np.array_equal(layout.kernel.key_features(keys[order]).features, features[order])
    for at in range(len(keys)):
        alone = layout.kernel.key_features(keys[at : at + 1]).features
        assert np.array_equal(alone[0], features[at])
        assert np.array_equal(layout.weighed(alone, marks[at : at + 1], None)[0, 0], weights[at])
    squared = np.sum(features.astype(np.int64) ** 2, axis=1) * np.sum(weights**2, axis=1)
    assert np.all(squared <= layout.outer_bound**2)


# --- totals of names ------------------------------------------------------------------------------


def selection(most, decay=1.0, neighbours=Neighbours.ADD_REMOVE):
    return Selection(
        most=most,
        multiplier=2.0,
        share=0.3,
        probability=1e-7,
        neighbours=neighbours,
        decay=decay,
    )


@settings(max_examples=200)
@given(
    most=st.integers(1, 40),
    decay=st.one_of(st.just(1.0), st.sampled_from([0.7, 1e-3, 1 - 2.0**-53]), st.floats(1e-9, 1)),
)
def test_weights_of_names_have_at_most_the_length_of_a_unit_and_nearly_reach_it(most, decay):
    chosen = selection(most, decay)
    for names in range(1, most + 1):
        weights = chosen.weights(names)
        squares = sum(each**2 for each in weights)
        assert len(weights) == names
        assert (1 - 1e-5) * LENGTH**2 < squares <= LENGTH**2
        assert list(weights) == sorted(weights, reverse=True)
    assert chosen.weights(0) == ()


SAID = st.lists(st.sets(st.sampled_from("abcdefg"), max_size=5).map(sorted), min_size=1, max_size=5)


@pytest.mark.parametrize("neighbours", Neighbours)
@settings(max_examples=200)
@given(most=st.integers(1, 4), decay=st.sampled_from([1.0, 0.7]), data=st.data())
def test_one_unit_moves_totals_of_names_by_at_most_the_claim(neighbours, most, decay, data):
    chosen = selection(most, decay, neighbours)
    rest, one, new = data.draw(SAID), data.draw(SAID), data.draw(SAID)
    if neighbours is Neighbours.ADD_REMOVE:
        new = []
    found = []
    for said in (one, new):
        groups = [9] * len(said) + [*range(len(rest))]
        found.append(totals_of([*said, *rest], groups, chosen))
    names = found[0].keys() | found[1].keys()
    squares = sum((found[0].get(name, 0) - found[1].get(name, 0)) ** 2 for name in names)
    assert squares <= Fraction(chosen.sensitivity) ** 2
    claimed = LENGTH * math.sqrt(1 if neighbours is Neighbours.ADD_REMOVE else 2)
    assert chosen.sensitivity == pytest.approx(claimed, rel=1e-14)


def test_a_unit_with_other_names_reaches_the_claim_of_names():
    for neighbours, times in ((Neighbours.ADD_REMOVE, 1), (Neighbours.REPLACE, 2)):
        chosen = selection(2, 0.7, neighbours)
        squares = times * sum(each**2 for each in totals_of([["a", "b"]], None, chosen).values())
        assert squares >= (1 - 1e-6) * chosen.sensitivity**2


@settings(max_examples=100)
@given(said=SAID, seed=st.integers(0, 99))
def test_the_order_of_rows_changes_no_total_and_no_name_of_a_person(said, seed):
    order = np.random.default_rng(seed).permutation(len(said)).tolist()
    mixed = [said[at] for at in order]
    people = [at % 2 for at in range(len(said))]
    shuffled = [people[at] for at in order]
    chosen = selection(3)
    assert totals_of(said, people, chosen) == totals_of(mixed, shuffled, chosen)
    of_people = [
        sorted(_units(map(" ".join, each), owners, lambda text: tuple(text.split())))
        for each, owners in ((said, people), (mixed, shuffled))
    ]
    assert of_people[0] == of_people[1]
    assert all(len(names) == len(set(names)) <= MOST for names in of_people[0])


# --- a whole corpus -------------------------------------------------------------------------------

SPEND = {"epsilon": 8.0, "delta": 1e-3}  # so that few texts are enough for a name
PARTS = {
    "topics": {"topics": TOPICS},
    "labels": {"topics": TOPICS, "classes": CLASSES},
    "many labels": {"topics": TOPICS, "classes": tuple("abcdefg")},
    "words": {"topics": TOPICS, "words": VOCABULARY},
    "found topics": {"topics": PublicWords(["card", "rate", "horse", "loan"]), "words": VOCABULARY},
    "facts": {"facts": True},
    "everything": {"topics": TOPICS, "classes": CLASSES, "words": VOCABULARY, "facts": True},
}


def asked(parts, some, their_labels, people, as_in=None):
    """What the door is asked for, by a corpus of some texts."""
    given_ = PARTS[parts]
    with Transcript().written(as_in=as_in) as seen:
        Corpus.build(
            some,
            their_labels if "classes" in given_ else None,
            encoder=encode,
            people=people,
            person_texts=2.0,
            rows_hint=None,
            entropy=Silent(),
            **SPEND,
            **given_,
        )
    return seen


def spent(one, other, multiplier):
    """How far two runs are apart: ε in cells; and the rest, squared, over the Gaussian budget."""
    pure = squared = Fraction(0)
    for (this, a), (that, b) in zip(one.sums, other.sums, strict=True):
        assert this.digest == that.digest  # what is asked for depends on what came out alone
        [layout] = this.layouts
        for x, y, law in zip(a, b, this.laws(layout), strict=True):
            apart = np.abs(x - y).ravel().astype(object)
            if this.pure:
                pure += Fraction(int(apart.sum())) / Fraction(law.scale)
            else:
                squared += Fraction(int((apart**2).sum())) / Fraction(law.sigma) ** 2
    for (chosen, a), (_, b) in zip(one.names, other.names, strict=True):
        # Of names that one of them has alone, the threshold takes care.
        apart = sum((a[name] - b[name]) ** 2 for name in a.keys() & b.keys())
        assert len(a.keys() ^ b.keys()) <= chosen.most
        squared += Fraction(apart) / Fraction(chosen.law.sigma) ** 2
    return pure, squared * Fraction(multiplier) ** 2


@pytest.mark.parametrize("by_person", [False, True], ids=["texts", "people"])
@pytest.mark.parametrize("parts", PARTS)
def test_one_text_or_person_moves_all_parts_of_a_corpus_together_by_at_most_one(parts, by_person):
    """Given what came out of one run, the other is asked for the same, and is as near as it says.

    The first person has six texts, one of them with a name that nobody else has.
    """
    some, their_labels = texts(150), labels(150, classes=PARTS[parts].get("classes", CLASSES))
    some[0] = f"card arrived with {NAMES[0]} with Mirabellum Octavian with {NAMES[1]}"
    some[1:4] = [some[0]] * 3
    people = [max(at - 5, 0) for at in range(150)] if by_person else None
    rng = random.Random(0)
    removed = [set(range(6)), {6}] if by_person else [{0}, {rng.randrange(1, 150)}]
    whole = asked(parts, some, their_labels, people)
    plan = plan_of(parts, by_person)
    largest = 0
    for gone in removed:
        left = [at for at in range(150) if at not in gone]
        owners = None if people is None else [people[at] for at in left]
        other = asked(
            parts, [some[at] for at in left], [their_labels[at] for at in left], owners, whole
        )
        multiplier = plan.settings.multiplier if plan.budget.gaussian else 1.0
        pure, squared = spent(whole, other, multiplier)
        assert pure <= Fraction(plan.budget.table + plan.budget.finding) * ROUNDED
        assert squared <= Fraction(plan.budget.gaussian) * (1 + Fraction(1, 10**9))
        largest = max(largest, float(pure), float(squared))
    assert largest > 0.2  # a text that nothing is said of would prove nothing
    if "facts" in PARTS[parts]:
        [(chosen, totals)] = whole.names
        assert "mirabellum octavian" in totals
        assert set(whole.out[_place_of_names(whole)]) >= {"florbinitis", "zargulosis"}
        assert chosen.probability == plan.budget.disclosure


def _place_of_names(transcript):
    [place] = [at for at, each in enumerate(transcript.out) if isinstance(each, dict)]
    return place


def plan_of(parts, by_person):
    """The plan of such a corpus."""
    made = Corpus.build(
        texts(3),
        ["a"] * 3 if "classes" in PARTS[parts] else None,
        encoder=encode,
        people=[0, 1, 2] if by_person else None,
        person_texts=2.0,
        rows_hint=None,
        entropy=Silent(),
        **SPEND,
        **PARTS[parts],
    )
    assert made.plan.encoder.dim == DIM
    return made.plan
