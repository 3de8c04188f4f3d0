"""A memory that grows: what it answers, what it keeps, and what it says of itself."""

import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from streams import KEY, again, rows_of, small

import discreet
from discreet import InvalidInput, Stream
from discreet.ledger import Ledger
from discreet.noise.correlated import Continual, Participation
from discreet.shards import Job
from discreet.testing import Seeded, Silent

RNG = np.random.default_rng(11)
DAYS = [rows_of(range(40), RNG) for _ in range(12)]
QUERIES = rows_of(range(25), RNG)[0]


def grown(folder, days=DAYS, **options):
    """A stream of some days, named by number."""
    stream = small(folder, **{"eps_s": 1e-3} | options if "reader" not in options else options)
    for number, day in enumerate(days):
        stream.append(*day, step=f"day {number}")
    return stream


def one_shot(days, weights=None, **options):
    """What one build answers from the same rows; rows of a day may count less."""
    keys, values = (np.concatenate(parts) for parts in zip(*days, strict=True))
    exact = np.exp(QUERIES @ keys.T)
    if weights is not None:
        exact = exact * np.repeat(weights, [len(day[0]) for day in days])
    return exact @ values / exact.sum(axis=1, keepdims=True)


def test_a_silent_stream_is_a_build_of_all_rows_so_far(tmp_path):
    """The same integers, whatever the steps were."""
    stream = grown(tmp_path)
    whole = [np.concatenate(parts) for parts in zip(*DAYS, strict=True)]
    settings = stream.settings
    alone = grown(tmp_path, days=[whole])
    assert np.array_equal(stream.memory().released.state, alone.memory().released.state)
    assert settings.digest == alone.settings.digest


@pytest.mark.parametrize(
    ("read", "exact"),
    [
        (lambda stream: stream.memory(), lambda: one_shot(DAYS)),
        (lambda stream: stream.memory(step="day 4"), lambda: one_shot(DAYS[:5])),
        (lambda stream: stream.window(last=3), lambda: one_shot(DAYS[-3:])),
        (lambda stream: stream.window(last=3, step="day 6"), lambda: one_shot(DAYS[4:7])),
        (lambda stream: stream.window(last=99), lambda: one_shot(DAYS)),
        (
            lambda stream: stream.decayed(half_life=2),
            lambda: one_shot(DAYS, 0.5 ** (np.arange(12)[::-1] / 2)),
        ),
    ],
    ids=["all", "all up to a step", "window", "earlier window", "wider than there is", "decayed"],
)
def test_each_reading_is_attention_over_its_rows(tmp_path, read, exact):
    answers = read(grown(tmp_path)).attend(QUERIES)
    assert answers == pytest.approx(exact(), abs=0.01)


def test_least_squares_grow_alike(tmp_path):
    stream = grown(tmp_path, reader="least_squares")
    keys, values = (np.concatenate(parts) for parts in zip(*DAYS[-4:], strict=True))
    solved = np.linalg.lstsq(np.column_stack([keys, np.ones(len(keys))]), values, rcond=None)[0]
    wanted = np.column_stack([QUERIES, np.ones(len(QUERIES))]) @ solved
    predicted = stream.window(last=4).predict(QUERIES)
    assert np.corrcoef(predicted.ravel(), wanted.ravel())[0, 1] > 0.99


def test_distances_grow_alike(tmp_path):
    weighed = [(keys, np.abs(values)) for keys, values in DAYS]
    stream = grown(tmp_path, weighed, reader="distances", rows_hint=16 * 40)
    points = np.concatenate([keys for keys, _ in DAYS[-3:]])
    exact = np.abs(points[None] - QUERIES[:, None]).sum(axis=(1, 2))
    assert stream.window(last=3).query(QUERIES) == pytest.approx(exact, rel=0.02)


@pytest.mark.parametrize("read", ["memory", "window", "decayed"])
def test_the_stderr_counts_the_noise_of_what_is_read(tmp_path, read):
    """Errors over their ±, over many streams: neither far above one nor far below."""
    reads = {
        "memory": lambda stream: stream.memory(),
        "window": lambda stream: stream.window(last=4),
        "decayed": lambda stream: stream.decayed(half_life=3),
    }
    days = [rows_of(range(600), RNG) for _ in range(6)]
    exacts = {
        "memory": one_shot(days),
        "window": one_shot(days[-4:]),
        "decayed": one_shot(days, 0.5 ** (np.arange(6)[::-1] / 3)),
    }
    ratios = []
    for seed in range(30):
        stream = grown(tmp_path, days, entropy=Seeded(seed), steps=6, epsilon=4.0)
        answers, errors = reads[read](stream).attend(QUERIES[:4], stderr=True)
        ratios.append((answers - exacts[read][:4]) / errors)
    spread = math.sqrt(np.mean(np.square(ratios)))
    assert 0.6 < spread < 1.25


def test_a_known_step_returns_what_was_stored(tmp_path):
    stream = grown(tmp_path, DAYS[:3], entropy=Seeded(1))
    stored = stream.memory(step="day 1").released.state
    stored_again = stream.append(*DAYS[7], step="day 1")
    assert np.array_equal(stored_again.released.state, stored)
    assert stream.step == 3
    # Not even looked at.
    assert np.array_equal(stream.append("no rows", step="day 1").released.state, stored)


def test_empty_steps_draw_noise_too(tmp_path):
    stream = grown(tmp_path, DAYS[:2], entropy=Seeded(2))
    before = stream.memory().released.state
    after = stream.append(np.zeros((0, 2)), np.zeros((0, 1)), step="nobody").released.state
    assert np.all(before != after)


def test_an_empty_step_needs_no_ids(tmp_path):
    stream = small(tmp_path, by_record=True, key_dim=2, value_dim=1)
    stream.append(*DAYS[0], groups=range(40), step="a")
    stream.append(np.zeros((0, 2)), np.zeros((0, 1)), step="b")
    with pytest.raises(InvalidInput, match="groups"):
        stream.append(*DAYS[1], step="c")
    assert stream.step == 2


def test_rows_of_a_step_come_in_chunks(tmp_path):
    whole, parts = small(tmp_path), small(tmp_path)
    whole.append(*DAYS[0], step="a")
    keys, values = DAYS[0]
    parts.append(iter([(keys[:7], values[:7]), (keys[7:], values[7:])]), step="a")
    assert np.array_equal(whole.memory().released.state, parts.memory().released.state)


def test_rows_of_a_step_come_in_shards(tmp_path):
    whole = small(tmp_path, key_dim=2, value_dim=1)
    parts = small(tmp_path, key_dim=2, value_dim=1)
    whole.append(*DAYS[0], step="a")
    keys, values = DAYS[0]
    job = pickle.loads(pickle.dumps(Job.of_step(parts, "a")))
    sealed = [
        job.partial((keys[:7], values[:7]), shard="x"),
        job.partial((keys[7:], values[7:]), shard="y"),
    ]
    with pytest.raises(InvalidInput, match="missing: 'y'"):
        parts.append_parts(sealed[:1], expected=["x", "y"], step="a")
    with pytest.raises(discreet.CorruptRelease):  # sealed for another step
        parts.append_parts(sealed, expected=["x", "y"], step="b")
    assert parts.step == 0
    made = parts.append_parts(sealed, expected=["x", "y"], step="a")
    assert np.array_equal(whole.memory().released.state, made.released.state)
    known = parts.append_parts([], expected=[], step="a")
    assert np.array_equal(known.released.state, made.released.state)


def test_it_goes_on_where_it_stopped(tmp_path):
    stream = grown(tmp_path, DAYS[:4])
    later = again(stream._path, entropy=Silent())
    assert (later.step, later.names) == (4, stream.names)
    later.append(*DAYS[4], step="day 4")
    # The first one sees what the other has done, and goes on after it.
    stream.append(*DAYS[5], step="day 5")
    assert stream.names == [f"day {number}" for number in range(6)]
    straight = grown(tmp_path, DAYS[:6])
    assert np.array_equal(stream.memory().released.state, straight.memory().released.state)


def test_no_key_is_needed_to_read(tmp_path):
    stream = grown(tmp_path, DAYS[:4], entropy=Seeded(3))
    public = tmp_path / "given away"
    public.mkdir()
    for name in ("settings.safetensors", "steps.jsonl", "states"):
        (stream._path / name).rename(public / name)
    with pytest.warns(discreet.NotPrivateWarning, match="Seeded"):
        published = Stream.published(public)
    assert published.step == 4
    assert repr(published) == "<Published NOT PRIVATE, 4 steps, ε = 1 for all of them>"
    assert published.names == [f"day {number}" for number in range(4)]
    whole = published.memory()
    assert np.array_equal(whole.released.state, stream._begun.state.totals[0])
    assert published.window(last=2).released.stream.reading.length == 2
    assert published.decayed(half_life=2).released.stream.reading.length == 2
    assert published.memory(step="day 1").released.stream.step == 2


def test_each_state_is_an_ordinary_release(tmp_path):
    stream = grown(tmp_path, entropy=Seeded(4), rows_hint=500)
    made = stream.window(last=5)
    made.save(tmp_path / "window.safetensors")
    with pytest.warns(discreet.NotPrivateWarning):
        loaded = discreet.load(tmp_path / "window.safetensors")
    assert np.array_equal(loaded.attend(QUERIES), made.attend(QUERIES))
    assert loaded.card.to_dict() == made.card.to_dict()
    facts = made.card.to_dict()
    assert facts["step"] == 12
    assert facts["reading"] == "the last 5 steps"
    assert facts["noise_over_one_release"] == pytest.approx(
        made.released.sigma
        / (made.released.mechanism.sigma * stream.settings.sensitivity(made.released.layout))
    )
    assert "one guarantee for all steps" in str(made.card)
    assert "drawn once" not in str(made.card)
    assert facts["rows_hint"] == round(500 * 5 / 16)
    said = dict(made.card.sentences)
    assert "by what the builder said of all: 156" in said["rows"]
    assert "about the last 5 steps;" in said["stream"]
    early = dict(stream.window(last=5, step="day 1").card.sentences)["stream"]
    assert "the last 5 steps, of which there are 2 so far" in early


def test_a_file_with_too_little_noise_is_refused(tmp_path):
    """The noise is worked out again from the strategy: a claim that does not follow is none."""
    stream = grown(tmp_path, DAYS[:2], entropy=Seeded(4))
    released = stream.memory().released
    for changes in ({"sigma": released.sigma / 2}, {"stream": None}):
        fake = discreet.Memory(replace(released, **changes))
        fake.save(tmp_path / "fake.safetensors")
        with pytest.raises(discreet.CorruptRelease):
            discreet.load(tmp_path / "fake.safetensors")


@pytest.mark.parametrize("reader", ["attention", "least_squares"])
@pytest.mark.parametrize("heads", [(), (3,)])
def test_the_noise_covers_what_rounding_adds(tmp_path, reader, heads):
    """N, and ρ for each number of each of 2^22 steps, in units of what a row can change."""
    stream = small(tmp_path, reader=reader, heads=heads, key_dim=2, value_dim=1, participations=3)
    settings = stream.settings
    [layout] = settings.layouts
    strategy = settings.continual.strategy
    squares = [
        (strategy.rounding * weight / settings.sensitivity(layout)) ** 2 * math.prod(shape) * 2**22
        for weight, shape in zip(layout.part_weights, layout.shapes, strict=True)
    ]
    slack = math.sqrt(sum(squares) / math.prod(heads))
    assert settings.stretch - Participation(3).sensitivity(strategy) == pytest.approx(slack)
    assert 0 < slack < 1e-3
    sigma = settings.multiplier * settings.sensitivity(layout) * settings.stretch
    assert settings.laws(layout)[0].sigma == pytest.approx(sigma)


def test_all_states_are_one_release(tmp_path):
    stream = grown(tmp_path, DAYS[:3], entropy=Seeded(5))
    states = [stream.memory(step="day 0"), stream.memory(), stream.window(last=1)]
    joint = discreet.combine(states)
    assert joint.epsilon == pytest.approx(1.0)
    assert "this stream" in states[0].guarantee.scope


def test_a_ledger_counts_it_once_and_notes_each_step(tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    ledger.create("tickets", epsilon=1.0, delta=1e-6)
    stream = grown(tmp_path, DAYS[:3], ledger=ledger, dataset="tickets")
    [spend] = ledger.statement("tickets").spends
    assert spend.receipt.id == stream.receipt.id
    assert ledger.last_step(stream.receipt.id) == 3
    with pytest.raises(discreet.BudgetExceeded):
        small(tmp_path, key_dim=2, value_dim=1, ledger=ledger, dataset="tickets")
    with pytest.raises(discreet.BudgetExceeded, match="released once"):
        ledger.note_step(stream.receipt.id, 2, "0" * 64)


def test_the_number_of_rows_is_told_only_where_it_is_public(tmp_path):
    hidden = grown(tmp_path, DAYS[:2])
    assert hidden.memory().released.rows is None
    assert all(line.rows == 0 for line in hidden._begun.lines)
    public = grown(tmp_path, DAYS[:3], neighbours="replace", rows_hint=640)
    assert public.memory().released.rows == 120
    assert public.window(last=2).released.rows == 80
    assert public.decayed(half_life=1).released.rows == 40 + 20 + 10
    assert hidden.decayed(half_life=1).released.rows is None


@pytest.mark.parametrize("read", ["memory", "window", "decayed"])
def test_where_the_number_of_rows_is_public_answers_are_as_exact(tmp_path, read):
    """Denominators are kept to what so many rows can weigh: those that are in it."""
    days = [rows_of(range(300), RNG) for _ in range(20)]
    stream = grown(tmp_path, days, neighbours="replace", rows_hint=300 * 16, epsilon=20.0)
    reads = {
        "memory": (stream.memory, np.ones(20)),
        "window": (lambda: stream.window(last=2), np.arange(20) >= 18),
        "decayed": (lambda: stream.decayed(half_life=1), 0.5 ** np.arange(20)[::-1]),
    }
    made, weights = reads[read]
    assert made().attend(QUERIES) == pytest.approx(one_shot(days, weights), abs=0.02)


def test_only_as_many_states_are_kept_as_are_wanted(tmp_path):
    stream, whole = grown(tmp_path, keep=4), grown(tmp_path)
    assert len(list((stream._path / "states").iterdir())) == 4
    kept, other = (each.window(last=3).released.state for each in (stream, whole))
    assert np.array_equal(kept, other)
    later = again(stream._path, entropy=Silent())
    for read in (
        lambda: later.window(last=4),
        lambda: later.decayed(half_life=3),
        lambda: later.memory(step="day 1"),
        lambda: later.append(*DAYS[0], step="day 1"),
    ):
        with pytest.raises(InvalidInput, match="windows of up to 3 steps"):
            read()
    with pytest.raises(InvalidInput, match="keep"):
        small(tmp_path, keep=0)


def test_the_horizon_is_no_limit(tmp_path):
    stream = grown(tmp_path, DAYS, steps=4)
    assert stream.step == 12
    assert stream.horizon == 4


@pytest.mark.parametrize("tune", [{"window": 3}, {"half_life": 2}])
def test_tuned_for_what_is_read_there_is_less_noise(tmp_path, tune):
    usual, tuned = grown(tmp_path, steps=300), grown(tmp_path, steps=300, **tune)

    def noise(stream):
        made = stream.window(last=3) if "window" in tune else stream.decayed(half_life=2)
        if stream is tuned:
            assert np.array_equal(stream.tuned().released.state, made.released.state)
        return made.card.to_dict()["noise_over_one_release"]

    assert noise(tuned) < 0.9 * noise(usual)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"steps": 0}, "steps"),
        ({"participations": 0}, "participations"),
        ({"participations": 2, "lifetime_rows": 3}, "not both"),
        ({"lifetime_rows": 3, "group_rows": 2.0}, "not both"),
        ({"lifetime_rows": 0}, "lifetime_rows"),
        ({"window": 3, "half_life": 2}, "not both"),
        ({"window": 0}, "window"),
        ({"tune": "some"}, "tune"),
        ({"key_dim": 2}, "key_dim and value_dim"),
        ({"window": 30, "steps": 10}, "window"),
        ({"window": 3, "keep": 3}, "keep"),
        ({"half_life": 3, "keep": 9}, "keep"),
        ({"lifetime_rows": 3, "key_dim": 2, "value_dim": 1}, "groups"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"entropy": 3}, "entropy"),
        ({"heads": (0,), "key_dim": 2, "value_dim": 1}, "heads"),
        ({"heads": ("a",), "key_dim": 2, "value_dim": 1}, "heads"),
    ],
)
def test_mistakes_are_named(tmp_path, options, text):
    with pytest.raises(InvalidInput, match=text):
        small(tmp_path, **options)


@pytest.mark.parametrize("key", [b"short", "text", None, b"0" * 33])
def test_a_key_is_32_bytes(tmp_path, key):
    with pytest.raises(InvalidInput, match="32 bytes"):
        Stream(tmp_path / "s", key=key, steps=3, epsilon=1.0, delta=1e-6, scale=1.0)


@pytest.mark.parametrize("name", ["", " ", " day", "day ", 3, None, "line\nline", "x" * 121])
def test_a_step_has_a_public_name(tmp_path, name):
    with pytest.raises(InvalidInput, match="public name"):
        small(tmp_path).append(*DAYS[0], step=name)


def test_rows_must_be_as_in_the_first_step(tmp_path):
    stream = grown(tmp_path, DAYS[:1])
    with pytest.raises(InvalidInput):
        stream.append(np.zeros((3, 5)), np.zeros((3, 1)), step="b")
    with pytest.raises(InvalidInput, match="groups"):
        stream.append(*DAYS[1], groups=range(40), step="b")
    assert stream.step == 1


def test_what_has_no_steps_has_no_state(tmp_path):
    for stream in (small(tmp_path), small(tmp_path, key_dim=2, value_dim=1)):
        with pytest.raises(InvalidInput, match="at least one step"):
            stream.memory()
        assert stream.step == 0
    with pytest.raises(InvalidInput, match="one that was appended"):
        grown(tmp_path, DAYS[:1]).memory(step="other")


def test_only_readers_that_read_once_can_stream(tmp_path):
    with pytest.raises(InvalidInput, match="reads rows once"):
        Stream(
            tmp_path / "s", key=KEY, steps=3, reader="softmax", epsilon=1.0, delta=1e-6, classes=2
        )


def test_it_prints_no_key_and_no_rows(tmp_path):
    stream = grown(tmp_path, DAYS[:2])
    assert repr(stream) == "<Stream NOT PRIVATE, 2 steps, ε = 1 for all of them>"
    assert repr(stream._begun.state) == "<StreamState: after step 2, private>"
    for each in (stream, small(tmp_path)):
        with pytest.raises(TypeError, match="resume it"):
            pickle.dumps(each)


def test_parts_of_a_shuffle_are_refused(tmp_path):
    """They do not know their records, so nobody could count them."""
    stream = small(tmp_path, by_record=True, key_dim=2, value_dim=1)
    job = Job.of_step(stream, "a")
    pieces = job.scatter(DAYS[0], shard="x", parts=1, groups=np.arange(40))
    part = job.gather(pieces, part=0, parts=1, expected=["x"])
    with pytest.raises(InvalidInput, match="shuffle"):
        stream.append_parts([part], expected=["records 1 of 1"], step="a")
    assert stream.step == 0


def test_an_iterator_that_was_read_before_is_no_step(tmp_path):
    stream = grown(tmp_path, DAYS[:1])
    with pytest.raises(InvalidInput, match="at least one chunk"):
        stream.append(iter([]), step="b")
    assert stream.step == 1


def test_a_file_of_counted_rows_is_of_records(tmp_path):
    released = grown(tmp_path, DAYS[:2], entropy=Seeded(4)).memory().released
    with pytest.raises(InvalidInput, match="ids of records"):
        Continual(released.stream.continual.strategy, Participation(None))
    counted = Continual(released.stream.continual.strategy, Participation(None), enforced=True)
    noise = replace(released.stream, continual=counted)
    discreet.Memory(replace(released, stream=noise)).save(tmp_path / "fake.safetensors")
    with pytest.raises(discreet.CorruptRelease):
        discreet.load(tmp_path / "fake.safetensors")


def test_what_cannot_be_written_is_not_counted(tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    ledger.create("tickets", epsilon=1.0, delta=1e-6)
    (tmp_path / "file").write_text("no folder")
    options = {"epsilon": 1.0, "delta": 1e-6, "scale": 1.0, "key_dim": 2, "value_dim": 1}
    with pytest.raises(OSError, match="Not a directory"):
        Stream(
            tmp_path / "file" / "s", key=KEY, steps=3, ledger=ledger, dataset="tickets", **options
        )
    assert not ledger.statement("tickets").spends


def test_a_window_that_is_noise_says_so_and_what_would_help(tmp_path):
    stream = grown(tmp_path, DAYS, entropy=Seeded(4), rows_hint=640)
    window = stream.window(last=1)
    with pytest.warns(discreet.MostlyNoiseWarning, match="mostly noise.*a longer window") as said:
        window.attend(QUERIES)
    assert "Built again" not in str(said[0].message)
    assert "MOSTLY NOISE" in str(window.card)


def test_a_hint_that_is_too_large_does_not_hide_the_noise(tmp_path):
    """The noisy sums show that there are fewer rows: then those are judged by."""
    few = [(keys[:4], values[:4]) for keys, values in DAYS]
    stream = grown(tmp_path, few, entropy=Seeded(4), rows_hint=16 * 4_000)
    with pytest.warns(discreet.MostlyNoiseWarning, match="as the noisy sums count them|no rows"):
        stream.window(last=6).attend(QUERIES)
