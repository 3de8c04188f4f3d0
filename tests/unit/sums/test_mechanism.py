import copy
import dataclasses
import inspect
import os
import pickle
import re
import threading
import tracemalloc
import warnings

import numpy as np
import pytest
from data import unit_rows

import discreet
from discreet import BudgetExceeded, InvalidInput, PrivacyLeakWarning
from discreet.errors import LedgerError
from discreet.ledger import Ledger
from discreet.noise import RoundedGaussian
from discreet.readers.attention.mechanism import ATTENTION
from discreet.readers.attention.options import Options
from discreet.readers.least_squares.mechanism import LEAST_SQUARES
from discreet.readers.softmax.mechanism import SOFTMAX
from discreet.sums import accumulate as adder_module
from discreet.sums import mechanism as engine
from discreet.sums.settings import Shape, Unit
from discreet.testing import Seeded, Silent

KEYS, VALUES = unit_rows(600, 4), unit_rows(600, 3, seed=1)
OTHER = unit_rows(2, 600, 5, seed=2), unit_rows(2, 600, 2, seed=3)
OPTIONS = {"epsilon": 1.0, "delta": 1e-6, "scale": 1.0}
GROUPS = np.arange(600) // 7


def states(memories):
    return [memory.released.state for memory in memories]


@pytest.mark.parametrize("cuts", [[], [1], [300], [0, 17, 17, 599]])
def test_chunks_give_what_one_build_gives(cuts):
    [whole] = states([discreet.build(KEYS, VALUES, **OPTIONS, entropy=Silent())])
    builder = discreet.Builder(**OPTIONS)
    for keys, values in zip(np.split(KEYS, cuts), np.split(VALUES, cuts), strict=True):
        builder.add(keys, values)
    [state] = states(builder.release(entropy=Silent()))
    assert np.array_equal(state, whole)


@pytest.mark.parametrize("groups", [None, GROUPS])
def test_layers_in_chunks_give_what_one_build_gives(groups):
    options = OPTIONS | {"group_rows": 1.0 if groups is None else 2.0}
    layers = [(KEYS, VALUES), OTHER]
    whole = discreet.build_many(layers, groups=groups, **options, entropy=Seeded(3))
    builder = discreet.Builder(**options)
    for rows in (slice(0, 7 * 40), slice(7 * 40, None)):
        chunk = [(keys[..., rows, :], values[..., rows, :]) for keys, values in layers]
        builder.add_layers(chunk, None if groups is None else groups[rows])
    for mine, theirs in zip(builder.release(entropy=Seeded(3)), whole, strict=True):
        assert np.array_equal(mine.released.state, theirs.released.state)
        assert mine.guarantee == theirs.guarantee
        assert mine.card.to_dict() == theirs.card.to_dict()


def test_it_is_released_once_and_takes_no_rows_after():
    builder = discreet.Builder(**OPTIONS)
    builder.add(KEYS, VALUES)
    builder.release()
    with pytest.raises(BudgetExceeded, match="spent"):
        builder.release()
    with pytest.raises(BudgetExceeded, match="spent"):
        builder.add(KEYS, VALUES)


def test_two_threads_do_not_both_release():
    builder = discreet.Builder(**OPTIONS)
    builder.add(KEYS, VALUES)
    done, start = [], threading.Barrier(8)

    def release():
        start.wait()
        try:
            done.append(builder.release())
        except BudgetExceeded:
            done.append(None)

    threads = [threading.Thread(target=release) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(each is not None for each in done) == 1
    assert len(done) == 8


def test_rows_of_a_chunk_that_failed_are_not_counted_twice(monkeypatch):
    """Some were added before the bad one was seen: whoever adds them again must not get away."""
    monkeypatch.setattr(adder_module, "_FEATURES_AT_ONCE", 1000)
    spoiled = KEYS.copy()
    spoiled[-1] = np.nan
    builder = discreet.Builder(**OPTIONS)
    builder.add(KEYS[:5], VALUES[:5])
    with pytest.raises(InvalidInput, match="NaN"):
        builder.add(spoiled, VALUES)
    for again in (lambda: builder.add(KEYS, VALUES), builder.release):
        with pytest.raises(InvalidInput, match="begin anew"):
            again()


def test_a_chunk_that_does_not_fit_is_refused_and_the_builder_goes_on():
    builder = discreet.Builder(**OPTIONS)
    builder.add(KEYS, VALUES)
    for layers, groups in (
        ([(KEYS[:, :2], VALUES)], None),
        ([(KEYS, VALUES[1:])], None),
        ([(KEYS, VALUES), OTHER], None),
        ([(KEYS, VALUES)], GROUPS),
        ([(KEYS,)], None),
        ([], None),
    ):
        with pytest.raises(InvalidInput):
            builder.add_layers(layers, groups)
    [memory] = builder.release(entropy=Silent())
    whole = discreet.build(KEYS, VALUES, **OPTIONS, entropy=Silent())
    assert np.array_equal(memory.released.state, whole.released.state)


def test_a_record_lies_within_one_chunk():
    builder = discreet.Builder(**OPTIONS)
    builder.add(KEYS, VALUES, groups=GROUPS)
    with pytest.raises(InvalidInput, match="record"):
        builder.add(KEYS[:1], VALUES[:1], groups=[85])
    with pytest.raises(InvalidInput, match="one type"):
        builder.add(KEYS[:1], VALUES[:1], groups=["85"])
    with pytest.raises(InvalidInput, match="groups"):
        builder.add(KEYS[:1], VALUES[:1])
    builder.add(KEYS[:1], VALUES[:1], groups=[86])
    [memory] = builder.release()
    assert memory.guarantee.unit == "record"


def test_without_a_chunk_there_is_nothing_to_release():
    builder = discreet.Builder(**OPTIONS)
    with pytest.raises(InvalidInput, match="at least one chunk"):
        builder.release()
    builder.add(KEYS[:0], VALUES[:0])
    builder.release()


def test_what_is_inside_stays_inside():
    builder = discreet.Builder(**OPTIONS)
    assert builder.settings is None
    builder.add(KEYS, VALUES)
    assert builder.settings.layouts[0].kernel.dim == 4
    assert repr(builder) == str(builder) == "<Builder: exact sums, private>"
    for copier in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="private"):
            copier(builder)


def test_options_are_one_list_with_one_set_of_defaults():
    own = dict(inspect.signature(Options).parameters)
    assert own.pop("leaks").default == ()  # for estimators, which say what they took; not shown
    for function in (discreet.build, discreet.build_many, discreet.Builder):
        shown = inspect.signature(function).parameters
        assert {name: shown[name].default for name in own} == {
            name: each.default for name, each in own.items()
        }
    planned = inspect.signature(discreet.plan).parameters
    assert set(own) - set(planned) == {"rows_hint", "stated"}
    assert set(own) == set(discreet.readers.attention.options.BuildOptions.__annotations__)
    with pytest.raises(TypeError, match="epsilom"):
        discreet.Builder(epsilom=1.0, delta=1e-6)
    with pytest.raises(TypeError, match="delta"):
        discreet.build(KEYS, VALUES, epsilon=1.0)


def chunked(**options):
    builder = discreet.Builder(**options)
    builder.add(KEYS, VALUES)
    return builder.release()


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"epsilon": 20.1}, "epsilon=20.1"),
        ({"delta": 0.01}, "0.01 is too high"),
        ({"delta": 1e-3, "rows_hint": 1000}, "number of rows"),
    ],
)
@pytest.mark.parametrize(
    "build",
    [
        lambda **options: discreet.build(KEYS, VALUES, **options),
        lambda **options: discreet.build_many([(KEYS, VALUES)], **options),
        chunked,
    ],
    ids=["build", "build_many", "Builder"],
)
def test_numbers_that_protect_nobody_are_warned_of_where_they_were_given(build, numbers, message):
    with pytest.warns(PrivacyLeakWarning, match=message) as caught:
        build(**OPTIONS | numbers)
    assert [each.filename for each in caught] == [__file__]


def peak_of(layers, **options):
    """Bytes that a build takes beyond its inputs and states."""
    tracemalloc.start()
    try:
        memories = discreet.build_many(layers, **OPTIONS, **options)
        return tracemalloc.get_traced_memory()[1] - sum(memory.nbytes for memory in memories)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("groups", [None, np.arange(1_500) // 3])
def test_many_layers_take_the_memory_of_one(groups):
    layer = unit_rows(2, 1_500, 64), unit_rows(2, 1_500, 64, seed=1)
    peak_of([layer], groups=groups)  # what is made once, and kept
    assert peak_of([layer] * 6, groups=groups) < 1.3 * peak_of([layer], groups=groups)


@pytest.mark.slow
def test_32_layers_of_8_heads_take_the_memory_of_one():
    layer = unit_rows(8, 10_000, 64), unit_rows(8, 10_000, 64, seed=1)
    peak_of([layer])
    assert peak_of([layer] * 32) < 1.3 * peak_of([layer])


@pytest.mark.parametrize("numbers", [{"epsilon": 20.0}, {"delta": 0.0099}, {"rows_hint": 999_999}])
def test_numbers_that_may_protect_somebody_are_not(numbers):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert discreet.build(KEYS, VALUES, **OPTIONS | numbers).private


def test_an_interrupt_after_the_last_row_closes_the_builder(monkeypatch):
    """All rows are in: whoever adds the chunk again would count them twice."""
    add = adder_module.Accumulator.add

    def interrupted(self, *given, **named):
        add(self, *given, **named)
        raise KeyboardInterrupt

    builder = discreet.Builder(**OPTIONS)
    with monkeypatch.context() as patch:
        patch.setattr(adder_module.Accumulator, "add", interrupted)
        with pytest.raises(KeyboardInterrupt):
            builder.add(KEYS, VALUES)
    with pytest.raises(InvalidInput, match="begin anew"):
        builder.add(KEYS, VALUES)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forks with threads
def test_a_fork_does_not_release_again():
    builder = discreet.Builder(**OPTIONS)
    builder.add(KEYS, VALUES)
    child = os.fork()
    if child == 0:
        try:
            builder.release()
        except BudgetExceeded:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    builder.release()


def test_groups_that_stop_half_way_are_refused():
    for groups in ([None, None], [GROUPS[:300], None]):
        with pytest.raises(InvalidInput, match="groups"):
            discreet.build(
                iter(np.split(KEYS, 2)), iter(np.split(VALUES, 2)), groups=iter(groups), **OPTIONS
            )


def test_messages_quote_no_list_and_no_length():
    secret = 7.654321
    for ask in (
        lambda: discreet.build_many([(KEYS, VALUES)], **OPTIONS | {"key_norm": [-secret]}),
        lambda: discreet.build_many([(KEYS, VALUES)], **OPTIONS | {"key_norm": [secret] * 600}),
        lambda: discreet.build_many(KEYS, **OPTIONS),
        lambda: discreet.build(KEYS, VALUES[:, 0], **OPTIONS),
        lambda: discreet.build(KEYS, VALUES, **OPTIONS, neighbours=KEYS),
        lambda: discreet.build(KEYS, VALUES, **OPTIONS, groups=KEYS),
    ):
        with pytest.raises(InvalidInput) as caught:
            ask()
        assert not {"600", "654321"} & set(re.findall(r"\d+", str(caught.value)))


@pytest.mark.parametrize(
    ("mechanism", "options"),
    [
        (ATTENTION, {}),
        (LEAST_SQUARES, {"features": "linear"}),
        (SOFTMAX, {"classes": [0, 1], "features": "linear"}),
    ],
)
def test_somebody_can_say_no_when_settings_are_known_and_nothing_is_counted(
    tmp_path, mechanism, options
):
    ledger = Ledger(tmp_path / "budget.db")
    ledger.create("clinic", epsilon=2.0, delta=1e-5)
    seen = []

    def refuse(settings):
        seen.append(settings.layouts[0].kernel.dim)
        raise OSError("no room")

    values = np.arange(len(KEYS)) % 2 if mechanism is SOFTMAX else VALUES
    chosen = mechanism.options(epsilon=1.0, delta=1e-6, rows_hint=100, **options)
    with pytest.raises(OSError, match="no room"):
        engine.build(
            mechanism,
            mechanism.source(KEYS, values, None, chosen),
            chosen,
            account=ledger.account("clinic"),
            on_resolved=refuse,
        )
    assert seen == [4]
    assert ledger.statement("clinic").spends == ()


def test_a_stop_while_noise_is_drawn_says_that_it_counts(monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    builder = discreet.Builder(**OPTIONS)
    builder.add(KEYS, VALUES)
    monkeypatch.setattr(RoundedGaussian, "sample", stopped)
    with pytest.raises(KeyboardInterrupt) as caught:
        builder.release()
    assert "count (epsilon, delta) as spent" in caught.value.__notes__[0]


@pytest.mark.parametrize("error", [BudgetExceeded, LedgerError])
def test_what_was_refused_after_noise_was_drawn_is_not_tried_again(error):
    """Refused before it, a builder may try again; whoever saw the noise has spent the budget."""

    class Refusing(Seeded):
        def words(self, count):
            raise error("no more")

    builder = discreet.Builder(**OPTIONS)
    builder.add(KEYS, VALUES)
    with pytest.raises(error, match="no more"):
        builder.release(entropy=Refusing(1))
    with pytest.raises(BudgetExceeded, match="its privacy budget is spent"):
        builder.release()


@pytest.mark.parametrize(("layers", "said"), [(1, "the memory"), (3, "all 3 memories")])
def test_a_guarantee_says_what_it_covers(layers, said):
    shapes = [Shape(heads=(), key_dim=2, value_dim=1)] * layers
    options = ATTENTION.options(epsilon=1.0, delta=1e-6, scale=1.0, kernel="minimax")
    settings = ATTENTION.resolve(shapes, options, unit=Unit.ROW)
    assert settings.scope.startswith(said)
    assert dataclasses.replace(settings, layouts=(), noun=("corpus", "corpora")).scope.startswith(
        "the corpus"
    )
