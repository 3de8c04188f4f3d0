"""The page about streams is the one that its measurements make, and every part of it runs."""

import json

import numpy as np
import pytest
import stream_kills
import stream_noise
import stream_speed
import stream_table
import stream_year
from scipy.linalg import toeplitz
from stream_shared import QUICK, Effort

import benchmarks
from discreet.noise.correlated import Participation, Reading, chosen
from discreet.testing import Silent

pytestmark = pytest.mark.docs

TINY = Effort(
    **QUICK | {"frequencies": 64, "built": (16, 365), "grown": (20,), "streams": 1, "kills": 3}
)


@pytest.fixture(scope="module")
def benchmark():
    return benchmarks.script("stream")


@pytest.fixture(scope="module")
def found(benchmark):
    return benchmark.known(benchmark.RESULTS)


def test_the_page_is_the_one_that_the_measurements_make(benchmark, found):
    assert set(found) == set(benchmark.PARTS)
    assert benchmark.page(found) == benchmark.PAGE.read_text(encoding="utf-8")


def test_a_missed_promise_is_said(benchmark, found):
    text = benchmark.page(found | {"speed": found["speed"] | {"ratio": 3.0}})
    [line] = [line for line in text.splitlines() if "last steps over the first" in line]
    assert line.endswith("| 3.00 | **missed** |")


def test_a_part_can_be_missing_and_measured_alone(benchmark, tmp_path):
    benchmark.main(["--quick", "--out", str(tmp_path), "--only", "table"])
    [kept] = json.loads((tmp_path / "stream.json").read_text()).items()
    assert kept[0] == "table"
    text = (tmp_path / "stream.md").read_text()
    assert text == benchmark.page(dict([kept]))
    assert "If `steps` is wrong" in text
    assert "When the process is killed" not in text
    with pytest.raises(SystemExit):
        benchmark.main(["--quick"])


def test_other_ways_of_adding_noise_are_as_dense_matrices_say():
    steps = 21
    sums = np.tri(steps)
    k = np.arange(1, steps)
    root = np.tril(toeplitz(np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k))])))
    np.testing.assert_allclose(root @ root, sums, atol=1e-12)
    norm = np.linalg.norm(root, axis=0).max()
    dense = norm * np.linalg.norm(root, axis=1)
    np.testing.assert_allclose(stream_noise.square_root(steps), dense)
    bound = np.linalg.norm(sums, "nuc") / steps
    assert stream_noise.lower_bound(steps) == pytest.approx(bound)
    assert bound < np.sqrt(np.mean(dense**2))


@pytest.mark.parametrize("height", range(4))
def test_a_node_of_honakers_tree_is_estimated_from_all_below(height):
    leaves = 2**height
    below = [np.kron(np.eye(leaves // size), np.ones(size)) for size in 2 ** np.arange(height + 1)]
    design = np.concatenate(below)
    variance = np.ones(leaves) @ np.linalg.solve(design.T @ design, np.ones(leaves))
    levels = leaves.bit_length()
    noise = stream_noise.of_tree(leaves, honaker=True)[-1]
    assert noise == pytest.approx(np.sqrt(levels * variance))
    assert stream_noise.of_tree(leaves, honaker=False)[-1] == pytest.approx(np.sqrt(levels))


def test_the_noise_of_a_stream_is_what_its_readings_say():
    strategy = chosen(Reading(), Participation(), steps=40)
    said = [strategy.norm * np.sqrt(Reading().variance(strategy, step)) for step in (1, 7, 40)]
    np.testing.assert_allclose(stream_noise.of_stream(40)[[0, 6, 39]], said)


def test_noise_is_measured_on_built_states():
    made = stream_noise.Maker(1_024)
    single = made.single()
    found = stream_noise.together([made.grown(24, 0)], single)
    assert found["measured"] == pytest.approx(found["card"], rel=5 / np.sqrt(2 * made.numbers))
    assert found["card"] == pytest.approx(stream_noise.of_stream(24)[-1], rel=1e-3)


@pytest.mark.slow
def test_noise_of_every_reading_is_measured():
    found = stream_noise.measure(TINY)
    text = "\n".join(stream_noise.page(found))
    assert "| the last 30 steps |" in text


def test_a_stream_that_is_killed_shows_no_step_twice():
    found = stream_kills.measure(TINY)
    assert (found["twice"], found["spends"]) == (0, 1)
    assert (found["backup"], found["older_state"]) == ("BudgetExceeded", "InvalidInput")
    assert found["steps"] == found["seen"] > 0
    assert sum(found["phases"].values()) == 3
    assert all(promise.kept for promise in stream_kills.promises(found))
    assert "refused (`BudgetExceeded`)" in "\n".join(stream_kills.page(found))


def test_whoever_looks_on_notices_a_second_state(tmp_path):
    states = tmp_path / "stream" / "states"
    states.mkdir(parents=True)
    observer = stream_kills.Observer(tmp_path)
    for content in (b"one", b"other"):
        (states / "00000001").write_bytes(content)
        observer.look()
    assert observer.twice == 1
    (tmp_path / "returned.log").write_text(f"\n2 {'a' * 64}\n2 {'b' * 64}\n3 {'c' * 64}\n4 {'d'}")
    observer.look(everywhere=True)
    assert observer.twice == 2
    assert set(observer.seen) == {1, 2, 3}


def test_steps_are_timed_and_files_measured():
    found = stream_speed.measure(TINY)
    assert found["sealed"] % found["state"] < 1_000
    assert found["states"] == found["steps"] * found["state"]
    assert "states and" in "\n".join(stream_speed.page(found))


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(0)
    labels = np.sign(rng.normal(size=1_200))
    vectors = rng.normal(size=(1_200, 6))
    vectors[:, 0] += 1.5 * labels
    return stream_year.Texts.of("made up", vectors, labels)


def test_auc_is_the_share_of_pairs_in_order(texts):
    answers = np.random.default_rng(1).normal(size=len(texts.asked)).round(1)
    good, bad = answers[texts.asked > 0][:, None], answers[texts.asked < 0]
    share = np.mean((good > bad) + 0.5 * (good == bad))
    assert texts.auc(answers) == pytest.approx(share)


def test_a_year_is_read_in_every_way(texts, tmp_path):
    days = np.random.default_rng(2).integers(len(texts.keys), size=(40, 30))
    year = stream_year.Year(texts, days, seed=0)
    found = stream_year.one_year(year)
    assert found[stream_year.ALL]["stream"] > 0.8
    assert all(each["exact"] > 0.8 for each in found.values())
    assert set(stream_year.together([found, found])) == set(found)
    assert year.weights(stream_year.WEEK).sum() == 7 * 30


def test_one_release_of_rows_that_decay_has_their_sums(texts, tmp_path):
    days = np.random.default_rng(3).integers(len(texts.keys), size=(20, 10))
    year = stream_year.Year(texts, days, seed=0)
    stream = year.stream(tmp_path / "stream", 0)
    one = year.single_decayed(stream, tmp_path / "hollow").released
    silent = stream_year.discreet.Stream(
        tmp_path / "silent",
        key=stream_year.KEY,
        steps=20,
        rows_hint=200,
        entropy=Silent(),
        **stream_year.OPTIONS,
    )
    for day, index in enumerate(days):
        silent.append(texts.keys[index], texts.labels[index, None], step=f"{day}")
    exact = silent.decayed(half_life=14).released.state
    spread = np.std((one.state - exact) / one.sigma)
    assert spread == pytest.approx(1, abs=5 / np.sqrt(2 * exact.size))


def test_more_rows_are_needed_as_long_as_noise_takes_much():
    rates = {
        f"{rows}": {"readings": {"x": {"exact": 0.9, "stream": 0.9 - lost}}}
        for rows, lost in ((10, 0.01), (20, 0.1), (30, 0.015), (40, 0.0))
    }
    assert stream_year.needed({"rates": rates}, "x") == 30
    del rates["30"], rates["40"]
    assert stream_year.needed_words({"rates": rates}, "x") == "more than 20"


@pytest.mark.slow
def test_the_table_is_near_the_square_root_everywhere():
    found = stream_table.measure(Effort())
    assert all(promise.kept for promise in stream_table.promises(found))
    assert found["wrong"]["365"]["365"] == pytest.approx(2.97, rel=1e-3)
