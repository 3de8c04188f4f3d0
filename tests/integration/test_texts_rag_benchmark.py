"""What `benchmarks/texts_rag.py` counts as right, and that its figures are what was aimed at."""

import json
import pathlib
from dataclasses import replace

import pytest

import benchmarks

pytestmark = pytest.mark.docs

FIGURES = pathlib.Path(__file__).parents[2] / "benchmarks" / "texts_rag.json"


@pytest.fixture(scope="module")
def rag():
    pytest.importorskip("wordllama", reason="needs the extra `text`")
    return benchmarks.script("texts_rag")


@pytest.fixture
def bench(rag, tmp_path, monkeypatch):
    """A bench with records that are made up, in place of the real ones."""
    monkeypatch.setattr(
        rag.medical, "real", lambda _, count, repeating=False: rag.medical.made_up(count)
    )
    encoder = rag.encoder_of("static")
    kept = rag.Remembered(encoder, tmp_path / "vectors")
    return rag.Bench(tmp_path, replace(encoder, raw=kept), kept, draws=1)


@pytest.fixture(scope="module")
def figures():
    return json.loads(FIGURES.read_text(encoding="utf-8"))


def test_what_is_right(rag):
    records = rag.medical.made_up(20)
    records.treatments["Flumoria"] = "Redoban injection"
    assert rag.names(records, "Flumoria", "flumoria", "disease")
    assert not rag.names(records, "Flumoria", "quellitis", "disease")
    assert not rag.names(records, "Tribbel Fever", "tribbel", "disease")
    assert rag.names(records, "Flumoria", "redoban", "treatment")
    assert not rag.names(records, "Flumoria", "flumoria", "treatment")
    assert not rag.names(records, "Flumoria", "redo", "treatment")
    records.treatments["Quellitis"] = "Redoban cream"
    assert not rag.names(records, "Flumoria", "redoban", "treatment")


def test_shares_are_weighted_by_records(rag):
    found = {"a": (True, True), "b": (False, True), "c": (False, False)}
    assert rag.shares(found, {"a": 1, "b": 2, "c": 1}) == [0.25, 0.75]


def test_figures_of_published_work_are_those_of_its_file(rag, tmp_path):
    file = {
        "null": 9,
        '["symptoms", "*"]': 9,
        '["symptoms", "Flumoria"]': 6,
        '["symptoms", "Flumoria", 5.3, "success"]': 4,
        '["symptoms", "Quellitis"]': 3,
        '["symptoms", "Quellitis", 1.0, "success"]': 3,
    }
    (tmp_path / "evaluation.json").write_text(json.dumps(file))
    assert rag._dprag(tmp_path) == ({"Flumoria": 6, "Quellitis": 3}, {"Flumoria": 4})


def test_parts_measure(rag, bench, monkeypatch):
    monkeypatch.setattr(rag, "EPSILONS", (8.0,))
    monkeypatch.setattr(rag, "QUESTIONS", 2_000)
    monkeypatch.setattr(rag, "ANSWERS", 60)
    found = rag.accuracy(bench, 1_200)["8"]
    assert found["right"][1] > 0.8
    assert found["discovered"] > 0.9
    found = rag.secrets(bench, 1_200)
    assert found["exact"] > 40
    assert found["ours"] == dict.fromkeys(("1", "5", "10"), 0)
    found = rag.many(bench, 1_200, epsilon=8.0)
    assert len(found["among_2_of_each_thousand"]) == 2
    assert found["first_thousand_asked_again"] == 1_000


def test_an_answer_that_tells_a_secret_is_caught(rag, bench, monkeypatch):
    monkeypatch.setattr(rag, "ANSWERS", 50)
    told = rag.medical.made_up(1_200).with_secrets(rag.SECRETS).secrets.values()
    monkeypatch.setattr(rag.Corpus, "speak", lambda *_, **__: " ".join(told))
    assert set(rag.secrets(bench, 1_200)["ours"].values()) == {rag.SECRETS}


def test_the_figures_are_what_was_aimed_at(figures):
    found = figures["static"]
    assert (found["draws"] >= 3, found["delta"]) == (True, 1e-5)
    few, many = found["accuracy"]["5000"], found["accuracy"]["10000"]
    assert few["1"]["right"][1] >= 0.62
    assert few["5"]["right"][1] >= 0.87
    assert many["1"]["right"][1] >= 0.79
    assert set(found["secrets"]["ours"].values()) == {0}
    assert (found["secrets"]["secrets"], found["secrets"]["answers"]) == (50, 1_000)
    assert found["secrets"]["exact"] > 40
    thousands = found["many"]["among_2_of_each_thousand"]
    assert len(thousands) == 10
    assert abs(thousands[0] - thousands[-1]) < 0.06  # three standard errors of a difference
    assert found["many"]["first_thousand_asked_again"] == 1_000
    assert found["speed"]["milliseconds"] < 5
