"""What a builder states: checked, on the card and in the file, and no part of what is released."""

import dataclasses
import datetime
import pickle

import numpy as np
import pytest
from data import unit_rows
from every_release import KINDS, STRUCTURES, TOPICS, data, encode, file_of, load_bytes
from resealing import contents, resealed

import discreet
from discreet import InvalidInput, Stated, provenance
from discreet.errors import CorruptRelease
from discreet.sums.container import to_bytes
from discreet.testing import Seeded

SAID = {
    "data": "visits to the clinic, 2019 to 2024",
    "builder": "Ann Author",
    "purpose": "planning of wards",
    "contact": "ann@clinic.example",
    "date": "2026-03-01",
}
SMALL = {"epsilon": 1.0, "delta": 1e-6, "scale": 1.0, "kernel": "minimax"}


def built(**options):
    rows = unit_rows(200, 3)
    return discreet.build(rows, rows, **{**SMALL, "entropy": Seeded(1)}, **options)


def card_of(release):
    """The card of a release, or of an estimator."""
    return getattr(release, "card_", None) or release.card


def test_what_is_stated_is_a_frozen_value():
    stated = Stated.of(SAID)
    assert stated == Stated.of(stated) == Stated(**SAID)
    assert stated.to_dict() == SAID
    assert stated.missing == ()
    with pytest.raises(dataclasses.FrozenInstanceError):
        stated.data = "other"
    assert Stated(data="a").missing == ("builder", "purpose", "contact", "date")
    assert Stated(date=datetime.date(2026, 3, 1)).date == "2026-03-01"


@pytest.mark.parametrize("nothing", [None, {}, {"data": None}, Stated()])
def test_nothing_can_be_stated(nothing):
    assert Stated.of(nothing) is None
    assert provenance.facts(None) == {}
    assert provenance.lines(None) == []


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"author": "Ann"}, "'author' to be one of data, builder, purpose, contact, date"),
        ({7: "Ann"}, "7 to be one of data"),
        ({"data": ""}, "stated['data']='' to be one line"),
        ({"data": " "}, "one line"),
        ({"builder": "a\nb"}, "one line"),
        ({"builder": "\x1b[31m"}, "one line"),
        ({"purpose": "\N{RIGHT-TO-LEFT OVERRIDE}evil"}, "one line"),
        ({"contact": "x" * 301}, "at most 300"),
        ({"contact": 7}, "one line"),
        ({"data": ["rows"]}, "<list>"),
        ({"date": "1.3.2026"}, "a date such as 2026-03-01"),
        ({"date": "20260301"}, "a date such as 2026-03-01"),
        ({"date": datetime.datetime(2026, 3, 1, 12)}, "a date such as"),  # noqa: DTZ001
        ("a clinic", "a mapping with some of data, builder"),
        ([("data", "a")], "a mapping"),
    ],
)
def test_what_cannot_be_stated_is_named(wrong, said):
    with pytest.raises(InvalidInput) as refused:
        built(stated=wrong)
    assert said in str(refused.value)


def test_it_is_read_from_toml(tmp_path):
    path = tmp_path / "stated.toml"
    path.write_text('data = "visits"\ndate = 2026-03-01\n', encoding="utf-8")
    assert Stated.read(path).to_dict() == {"data": "visits", "date": "2026-03-01"}
    path.write_text("", encoding="utf-8")
    assert Stated.read(path) is None
    for wrong in (b"data = visits", b"\xff", b"data = 7", b"[stated]\ndata = 'a'"):
        path.write_bytes(wrong)
        with pytest.raises(InvalidInput):
            Stated.read(path)
    with pytest.raises(InvalidInput, match=r"nothing\.toml to be a TOML file"):
        Stated.read(tmp_path / "nothing.toml")


def test_a_card_says_whose_word_it_is_and_what_is_missing():
    card = built(stated={"builder": "Ann", "data": "visits"}).card
    assert card.stated == card.to_dict()["stated"] == {"data": "visits", "builder": "Ann"}
    lines = list(card.sentences)
    at = [title for title, _ in lines].index("stated by the builder")
    assert lines[at : at + 3] == [
        (
            "stated by the builder",
            (
                "the next 2 lines, and nothing in this file proves it; "
                "not stated: purpose, contact, date"
            ),
        ),
        ("stated: data", "visits"),
        ("stated: builder", "Ann"),
    ]
    assert "not stated" not in str(built(stated=SAID).card)


def test_it_changes_no_sum_no_noise_and_no_receipt():
    one, other = built(), built(stated=SAID)
    np.testing.assert_array_equal(one.released.state, other.released.state)
    plain, said = (contents(to_bytes(each))[0] for each in (one, other))
    assert said.pop("stated") == SAID
    assert plain.keys() == said.keys()
    assert {name for name in said if said[name] != plain[name]} == {"release"}
    assert one.receipt.to_dict().keys() == other.receipt.to_dict().keys()
    assert one.card.to_dict().keys() == other.card.to_dict().keys() - {"stated"}
    assert one.card.stated == {}


@pytest.mark.parametrize("kind", [each for each in KINDS if each not in STRUCTURES])
def test_every_kind_of_file_carries_it(kind, tmp_path):
    """And the same kind without it has no place for it: its bytes are those of before."""
    made = KINDS[kind]
    options = {**made.options, "stated": SAID, "entropy": None}
    release = made.make(data(), tmp_path, options)
    again = load_bytes(file_of(release, tmp_path), tmp_path)
    assert card_of(again).stated == SAID
    plain = made.make(data(), tmp_path, {**options, "stated": None})
    assert b"stated" not in file_of(plain, tmp_path)


@pytest.mark.parametrize("kind", ["memory", "memories", "corpus", "discovery", "classifier"])
def test_what_a_stranger_writes_there_is_checked_again(kind, tmp_path):
    made = KINDS[kind]
    release = made.make(data(), tmp_path, {**made.options, "stated": SAID, "entropy": None})
    honest = file_of(release, tmp_path)

    def forged(wrong):
        def change(settings, _):
            for each in settings.get("members", []) if kind == "memories" else [settings]:
                (each["options"] if kind == "corpus" else each)["stated"] = wrong

        return resealed(honest, change)

    assert card_of(load_bytes(forged({"data": "other"}), tmp_path)).stated == {"data": "other"}
    for wrong in (
        {"data": "x" * 10_000},
        {"data": "\x1b[31m"},
        {"data": ["<script>"]},
        {"author": "Ann"},
        {"date": "soon"},
        "stated.toml",
        ["data"],
        7,
    ):
        with pytest.raises(CorruptRelease):
            load_bytes(forged(wrong), tmp_path)


def test_memories_of_one_release_state_the_same(tmp_path):
    made = KINDS["memories"]
    release = made.make(data(), tmp_path, {"stated": SAID, "entropy": None})
    one_of_two = resealed(
        file_of(release, tmp_path),
        lambda settings, _: settings["members"][1].update(stated={"data": "other"}),
    )
    with pytest.raises(CorruptRelease):
        load_bytes(one_of_two, tmp_path)


def test_parts_of_a_corpus_state_nothing_of_their_own(tmp_path):
    """The corpus says it once, for all of them: nothing else could be shown of it."""
    honest = file_of(KINDS["corpus"].build(tmp_path), tmp_path)
    forged = resealed(
        honest, lambda settings, _: settings["members"]["table"].update(stated={"data": "other"})
    )
    with pytest.raises(CorruptRelease):
        load_bytes(forged, tmp_path)


def by_builder(keys):
    builder = discreet.Builder(**SMALL, stated=SAID)
    builder.add(keys, keys)
    [memory] = builder.release()
    return memory


def by_least_squares_builder(keys):
    builder = discreet.LeastSquaresBuilder(
        epsilon=1.0, delta=1e-6, features="linear", rows_hint=200, stated=SAID
    )
    builder.add(keys, keys)
    return builder.release()


def by_job(keys):
    from discreet.shards import Job

    job = pickle.loads(pickle.dumps(made := Job(key_dim=3, value_dim=3, **SMALL, stated=SAID)))
    return made.release([job.partial((keys, keys), shard="a")], expected=["a"])


def by_text_job(keys):
    del keys
    from discreet.text.shards import TextJob

    job = TextJob(encoder=encode, topics=TOPICS, rows_hint=200, epsilon=4.0, stated=SAID)
    part = job.partial(data().texts, shard="a")
    return job.release([part], expected=["a"])


def by_clone(keys):
    base = pytest.importorskip("sklearn.base", reason="needs the extra `sklearn`")
    from discreet.sklearn import PrivateRegressor

    model = PrivateRegressor(1.0, 1e-6, norm=1.0, target_bounds=(-1, 1), rows_hint=200, stated=SAID)
    cloned = base.clone(model)
    assert cloned.get_params()["stated"] == SAID
    return pickle.loads(pickle.dumps(cloned.fit(keys, keys[:, 0]))).release_


def by_module(keys):
    torch = pytest.importorskip("torch", reason="needs the extra `torch`")
    from discreet.nn import from_multihead

    attention = torch.nn.MultiheadAttention(4, 2, batch_first=True)
    rows = torch.tensor(np.pad(keys, ((0, 0), (0, 1))), dtype=torch.float32)
    made = from_multihead(
        attention, rows, epsilon=8.0, delta=1e-6, largest_logit=1.0, rows_hint=200, stated=SAID
    )
    return made.memories[0]


DOORS = (by_builder, by_least_squares_builder, by_job, by_text_job, by_clone, by_module)


@pytest.mark.filterwarnings("ignore::discreet.MostlyNoiseWarning")
@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_every_other_way_to_a_release_takes_it(door):
    assert door(unit_rows(200, 3)).card.stated == SAID


def test_a_stream_states_the_same_after_every_step_and_when_it_goes_on(tmp_path):
    keys, key = unit_rows(60, 3), bytes(range(32))
    stream = discreet.Stream(tmp_path / "a", key=key, steps=3, **SMALL, stated=SAID)
    assert stream.append(keys, keys, step="one").card.stated == SAID
    again = discreet.Stream.resume(tmp_path / "a", key=key)
    assert again.append(keys, keys, step="two").card.stated == SAID
    assert discreet.Stream.published(tmp_path / "a").window(last=1).card.stated == SAID


@pytest.mark.parametrize("character", ['"', "\\", "a", "\N{MATHEMATICAL BOLD CAPITAL A}"])
def test_room_that_is_claimed_for_it_is_enough(character):
    """Twice as JSON within JSON, which makes four characters of one at the worst."""
    longest = dict.fromkeys(provenance.NAMES, character * provenance.LONGEST)
    longest["date"] = "2026-03-01"
    plain, said = (len(to_bytes(built(stated=each))) for each in (None, longest))
    assert 0 < said - plain <= provenance.LARGEST
