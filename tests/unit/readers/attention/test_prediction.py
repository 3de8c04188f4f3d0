"""Whoever builds or asks a memory whose answers are mostly noise is told, once; and no one else."""

import re
import warnings

import numpy as np
import pytest
from data import unit_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits

import discreet
from discreet import MostlyNoiseWarning
from discreet.readers.attention.prediction import mostly_noise
from discreet.shards import Job
from discreet.testing import Seeded

SPEND = {"epsilon": 1.0, "delta": 1e-6}

# As 3,400 texts would be: many numbers in a key, and few rows for them.
KEYS = unit_rows(3_400, 384)
VALUES = np.eye(5)[np.arange(3_400) % 5]


@pytest.fixture(autouse=True)
def told():
    """Turn the warning into an error: whoever expects it says so."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", MostlyNoiseWarning)
        yield


def noisy(**options):
    with pytest.warns(MostlyNoiseWarning) as told:
        memory = discreet.build(KEYS, VALUES, **{**SPEND, "rows_hint": 3_400, **options})
    assert len(told) == 1
    return memory, str(told[0].message)


def test_a_build_of_few_rows_says_it_and_names_what_would_help():
    memory, text = noisy()
    plan = discreet.plan(rows=3_400, key_dim=384, value_dim=5, **SPEND)
    assert plan.signal_to_error < 1
    assert f"{plan.signal_to_error:.2g} standard errors" in text
    assert "3,400 rows that are centred" in text
    assert "no rows" not in text
    memory.attend(KEYS[:2])  # and is not told again


def test_it_points_at_the_line_of_the_caller():
    with pytest.warns(MostlyNoiseWarning) as told:
        discreet.build(KEYS, VALUES, **SPEND, rows_hint=3_400)
    assert told[0].filename == __file__


@pytest.mark.parametrize("asked", ["attend", "differences"])
def test_whoever_loads_the_file_is_told_once(tmp_path, asked):
    memory, _ = noisy()
    memory.save(tmp_path / "memory.safetensors")
    loaded = discreet.load(tmp_path / "memory.safetensors")
    with pytest.warns(MostlyNoiseWarning):
        getattr(loaded, asked)(KEYS[:2])
    loaded.attend(KEYS[:2])
    loaded.attend(KEYS[:2], stderr=True)


def test_all_layers_of_a_release_are_one_warning():
    layers = [(KEYS, VALUES), (unit_rows(3_400, 4), VALUES)]
    with pytest.warns(MostlyNoiseWarning, match="of 1 of 2 layers") as told:
        memories = discreet.build_many(layers, **SPEND, scale=[5.0, 1.0])
    assert len(told) == 1
    for memory, (keys, _) in zip(memories, layers, strict=True):
        memory.attend(keys[:2])


def test_a_job_says_it_too():
    job = Job(key_dim=384, value_dim=5, rows_hint=3_400, **SPEND)
    part = job.partial((KEYS, VALUES), shard="one")
    with pytest.warns(MostlyNoiseWarning, match="mostly noise") as told:
        job.release([part], expected=["one"])
    assert len(told) == 1


def test_a_release_that_is_paid_for_is_kept_where_warnings_are_errors(tmp_path):
    memory = discreet.build(KEYS, VALUES, **SPEND, rows_hint=3_400)
    memory.save(tmp_path / "memory.safetensors")
    with pytest.raises(MostlyNoiseWarning):  # but is not asked as if nothing were wrong
        memory.attend(KEYS[:2])


def test_without_a_public_number_the_noisy_sums_are_assessed():
    with pytest.warns(MostlyNoiseWarning, match="as the noisy sums count them"):
        discreet.build(KEYS, VALUES, **SPEND, scale=5.0, entropy=Seeded(1))
    with pytest.warns(MostlyNoiseWarning):
        discreet.build(KEYS[:0], VALUES[:0], **SPEND, scale=1.0, entropy=Seeded(1))


def digits():
    found = load_digits()
    keys = found.data / np.linalg.norm(found.data, axis=1, keepdims=True)
    return keys[:1_347], np.eye(10)[found.target[:1_347]]


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(each, marks=pytest.mark.slow) for each in (1, 2, 3))]
)
def test_good_memories_are_not_warned_of(seed):
    """README's first recipe; digits at the recommended scale, and at a softer one."""
    embeddings = unit_rows(20_000, 32)
    opinions = np.sign(embeddings[:, :1]) / 2
    memory = discreet.build(embeddings, opinions, **SPEND, scale=2.0, entropy=Seeded(seed))
    memory.attend(embeddings[:2])
    keys, values = digits()
    for options in ({"rows_hint": 1_350}, {"scale": 2.0}):
        discreet.build(keys, values, **SPEND, **options, entropy=Seeded(seed)).attend(keys[:2])


def test_rows_with_much_in_common_are_assessed_by_what_the_sums_show():
    """Digits and rows that are centred have the same plan, and not the same answers."""
    keys, values = digits()
    plan = discreet.plan(rows=1_350, key_dim=64, value_dim=10, **SPEND)
    assert plan.signal_to_error < 1
    centred = keys - keys.mean(axis=0)
    centred /= np.linalg.norm(centred, axis=1, keepdims=True)
    discreet.build(keys, values, **SPEND, rows_hint=1_350, entropy=Seeded(1)).attend(keys[:2])
    with pytest.warns(MostlyNoiseWarning):
        discreet.build(centred, values, **SPEND, rows_hint=1_350, entropy=Seeded(1))


def advised(text):
    """What a warning says would do, by name."""
    named = text.partition("one standard error:")[2] or text.partition("Built again")[2]
    found = {name: float(value) for name, value in re.findall(r"(\w+)=([\d.]*\d)", named)}
    if rows := re.search(r"([\d,]+) rows[;.]", named):
        found["rows"] = int(rows[1].replace(",", ""))
    return found


@pytest.mark.parametrize(
    ("rows", "key_dim", "options"),
    [
        (3_400, 384, {}),
        (300, 16, {}),
        (300, 16, {"scale": 4.0}),
        (20_000, 16, {"scale": 15.0, "features": 64, "epsilon": 4.0}),
        (1_000, 64, {"scale": 6.0, "neighbours": "replace"}),
    ],
)
def test_each_remedy_would_do(rows, key_dim, options):
    """By the prediction that it is made of: `plan` with it says so."""
    options = {**SPEND, **options}
    keys, values = unit_rows(rows, key_dim), unit_rows(rows, 5, seed=1)
    with pytest.warns(MostlyNoiseWarning) as told:
        memory = discreet.build(keys, values, **{"rows_hint": rows, **options}, entropy=Seeded(1))
    base = {**options, "scale": memory.scale, "features": memory.kernel.features}
    assert discreet.plan(rows=rows, key_dim=key_dim, value_dim=5, **base).signal_to_error < 1
    remedies = advised(str(told[0].message))
    assert remedies
    for name, value in remedies.items():
        changed = {"rows": rows, **base, name: int(value) if name == "features" else value}
        said = discreet.plan(key_dim=key_dim, value_dim=5, **changed).prediction
        common = re.search(r"have (\d+)% in common", str(told[0].message))
        if common:
            said = said.if_in_common(int(common[1]) / 100 + 0.005)
        assert said.signal_to_error >= 0.97, (name, value)


@pytest.mark.slow
def test_fewer_heads_are_offered_where_they_would_do():
    keys, values = unit_rows(16, 2_000, 16), unit_rows(16, 2_000, 4, seed=1)
    with pytest.warns(MostlyNoiseWarning) as told:
        discreet.build(keys, values, **SPEND, scale=4.0, rows_hint=2_000, entropy=Seeded(1))
    fewer = int(re.search(r"(\d+) of the 16 heads", str(told[0].message))[1])
    few = (keys[:fewer], values[:fewer])
    discreet.build(*few, **SPEND, scale=4.0, rows_hint=2_000, entropy=Seeded(1)).attend(few[0])


@st.composite
def options(draw):
    norm = draw(st.sampled_from([1e-6, 1.0, 1e6]))
    return {
        **dict.fromkeys(("key_norm", "query_norm", "value_norm"), norm),
        "epsilon": draw(st.sampled_from([1e-3, 0.1, 1.0, 15.0])),
        "scale": draw(st.sampled_from([1e-3, 0.5, 4.0, 20.0, 60.0])) / norm**2,
        "rows_hint": draw(st.sampled_from([None, 1, 10**6])),
        "kernel": draw(st.sampled_from(["auto", "fourier"])),
        "features": 64,
        "entropy": Seeded(draw(st.integers(0, 99))),
    }


@settings(deadline=None, max_examples=60)
@given(
    given=options(),
    rows=st.sampled_from([0, 1, 7, 500]),
    dim=st.sampled_from([1, 2, 9]),
    width=st.sampled_from([1, 50]),
    heads=st.sampled_from([(), (3,)]),
)
def test_the_prediction_never_fails(given, rows, dim, width, heads):
    """It is done when the noise has been paid for."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MostlyNoiseWarning)
        memory = discreet.build(
            given["key_norm"] * unit_rows(*heads, rows, dim),
            given["value_norm"] * unit_rows(*heads, rows, width, seed=1),
            delta=1e-7,
            **given,
        )
    said = mostly_noise([memory.released])
    assert said is None or "mostly noise" in said
    assert ("MOSTLY NOISE" in str(memory.card)) == (said is not None)


def test_the_card_says_so_and_a_file_has_nothing_of_it():
    memory, text = noisy()
    assert dict(memory.card.sentences)["MOSTLY NOISE"] == text
    assert text not in str(memory.card.to_dict())
    facts = memory.card.to_dict()
    said = facts["predicted_signal"] / facts["predicted_stderr"]
    assert facts["predicted_signal_to_error"] == pytest.approx(said)
