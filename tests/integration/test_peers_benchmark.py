"""Rivals have the noise that their promise asks for and no more; the page is what was measured."""

import copy
import itertools
import json
import math
from dataclasses import replace

import numpy as np
import peers_data
import peers_mechanisms as rivals
import peers_page
import peers_speed
import peers_streams
import peers_sums
import peers_tables
import pytest
import stream_noise
import tables_packages
from peers_data import Places
from peers_mechanisms import ADD_REMOVE, REPLACE, Promise, Sums, Weights

import benchmarks
from discreet.readers.attention import comparison as oracle
from discreet.testing import Seeded

pytestmark = [pytest.mark.docs, pytest.mark.filterwarnings("ignore")]

RELATIONS = (ADD_REMOVE, REPLACE)
TAU, LENGTH = 0.4, 0.8


@pytest.fixture(scope="module")
def benchmark():
    return benchmarks.script("peers")


@pytest.fixture(scope="module")
def report(benchmark):
    return benchmark.known(benchmark.RESULTS)


def promise(neighbours=ADD_REMOVE, epsilon=1.0):
    return Promise(epsilon, 1e-6, neighbours)


def sphere(count, dim, seed=0):
    rows = np.random.default_rng(seed).normal(size=(count, dim))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def largest(neighbours, contributions, norm):
    """The largest distance between what neighbours add up to, of rows that add these."""
    alone = max(norm(each) for each in contributions)
    if neighbours == ADD_REMOVE:
        return alone
    pairs = itertools.combinations(contributions, 2)
    return max(alone, *(norm(one - other) for one, other in pairs))


def near(found, bound):
    """Not above the bound, and so close to it that no smaller one would do."""
    assert found <= bound * (1 + 1e-9)
    assert found >= 0.97 * bound


# --- sensitivity: no pair of neighbours passes the bound, and some come near it -------------------


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("tau", [TAU, 3.0])
def test_what_a_row_does_to_an_answer(neighbours, tau):
    values = [sign * LENGTH * np.eye(2)[0] for sign in (1, -1)]
    added = [weight * np.append(value, tau) for weight in (0.0, 0.5, 1.0) for value in values]
    added += [0.7 * np.append(LENGTH * each, tau) for each in sphere(50, 2)]
    near(largest(neighbours, added, np.linalg.norm), promise(neighbours).of_answer(tau, LENGTH))


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("tau", [TAU, 1.5])
def test_what_a_row_does_to_all_answers(neighbours, tau):
    """In the kernel's space, where two rows have the inner product K·(⟨v, v'⟩ + τ²)."""
    weights = Weights(30.0, 30.0)
    keys = np.concatenate([sphere(40, 3), [[1.0, 0, 0]] * 2])
    values = LENGTH * np.concatenate([sphere(40, 1, seed=1), [[1.0], [-1.0]]])
    gram = weights.of(keys, keys) * (values @ values.T + tau**2)
    squares = np.diag(gram)
    found = math.sqrt(squares.max())
    if neighbours == REPLACE:
        found = math.sqrt((squares[:, None] + squares - 2 * gram).max())
    near(found, promise(neighbours).of_function(tau, LENGTH))


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_what_a_row_does_to_sums_of_waves(neighbours):
    """Of one pair, where some key has all signs that hurt; and never more for many pairs."""
    weights, classes = Weights(4.0, 4.0), np.eye(3)
    for pairs in (1, 64):
        added = []
        for key in sphere(300, 2):
            sums = rivals.Waves.of(key[None], classes[:1], weights, features=pairs, seed=5).sums
            added.append(sums[..., [0, -1]] * [1, TAU])
        told = promise(neighbours)
        for norm, bound in (
            (lambda each: np.abs(each).sum(), told.of_waves(pairs, TAU, 1.0)),
            (np.linalg.norm, told.of_waves_squared(pairs, TAU, 1.0)),
        ):
            found = largest(neighbours, added, norm)
            assert found <= bound * (1 + 1e-5)  # features are in single precision
            if pairs == 1:
                assert found >= 0.97 * bound


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_what_a_row_does_to_rows_and_counts(neighbours):
    told, weight, radius = promise(neighbours), 0.5, 1.3
    ends = [sign * np.array([weight * radius, LENGTH]) for sign in (1, -1)]
    near(largest(neighbours, ends, np.linalg.norm), told.of_rows(weight, LENGTH, radius))
    points, one_hot = sphere(5, 3), np.eye(2)
    added = [
        rivals.counts(key[None], one_hot[[label]], points)
        for key in sphere(20, 3, seed=1)
        for label in (0, 1)
    ]
    near(largest(neighbours, added, lambda each: np.abs(each).sum()), told.of_counts())


@pytest.mark.parametrize("name", peers_sums.TREES)
def test_trees_promise_what_everybody_does(name):
    setting, problem = peers_sums.on_the_square(256)
    structure = peers_sums.square.structure(
        setting,
        problem.keys,
        problem.values,
        Seeded(0),
        **peers_sums.square.TREES[peers_sums.TREES[name]],
    )
    told = structure.guarantee
    assert told.neighbours.value == REPLACE == problem.neighbours
    assert told.delta <= peers_sums.DELTA * (1 + 1e-9)
    assert told.epsilon <= 1 + 1e-9


# --- answers without noise, and noise without answers ---------------------------------------------


@pytest.fixture(scope="module")
def small():
    rows = peers_data.made_up(Places(), 3_000)
    return replace(rows, queries=rows.queries[:40], public=rows.public[:300])


def test_exact_sums_are_attention(small):
    problem = peers_sums.problem_of(small, peers_sums.ATTENTION)
    expected = oracle.attention(small.queries, small.keys, small.values, scale=4.0)
    np.testing.assert_allclose(problem.truth, expected, atol=1e-9)
    assert problem.off(problem.exact) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("task", [peers_sums.DENSITY, peers_sums.ATTENTION])
def test_waves_without_noise_are_near_the_truth(small, task):
    problem = peers_sums.problem_of(small, task)
    waves = rivals.Waves.of(problem.keys, problem.values, problem.weights, features=4_096, seed=0)
    read = rivals.read_waves(waves.mapped(problem.queries), waves.sums, 4_096)
    least = 0.02 if problem.is_density else 0.2  # of a density of 0.1
    assert problem.off(Sums(read[:, :-1], read[:, -1])) < least


def test_counts_at_the_rows_themselves_are_exact(small):
    few = replace(small, keys=small.keys[:200], one_hot=small.one_hot[:200])
    problem = peers_sums.problem_of(few, peers_sums.ATTENTION)
    counted = rivals.counts(problem.keys, problem.one_hot, problem.keys)
    assert np.array_equal(counted, problem.one_hot)
    sums = rivals.read_counts(problem.queries, problem.keys, counted, problem.weights)
    meant = Sums(sums.numerator @ problem.meaning, sums.denominator)
    assert problem.off(meant) == pytest.approx(0, abs=1e-9)


def test_points_of_counts_are_public_ones(small):
    """Centres of public rows of length one: they change with these, and with no private row."""
    problem = peers_sums.problem_of(small, peers_sums.ATTENTION)
    fewer = replace(problem, keys=problem.keys[:10], one_hot=problem.one_hot[:10])
    made = peers_sums.centres(problem)
    assert [len(points) for points in made] == [16, 64]  # at most half of the public rows
    assert all(map(np.array_equal, made, peers_sums.centres(fewer)))
    np.testing.assert_allclose(np.linalg.norm(made[0], axis=1), 1)


def test_waves_know_lengths_of_rows():
    rng = np.random.default_rng(0)
    keys, queries = rng.random((200, 2)), rng.random((5, 2))
    weights, values = Weights(1.0, 2.0), np.ones((200, 1))
    exact = rivals.exact(queries, keys, values, weights)
    waves = rivals.Waves.of(keys, values, weights, features=20_000, seed=0)
    read = rivals.read_waves(waves.mapped(queries), waves.sums, 20_000)
    np.testing.assert_allclose(read[:, -1], exact.denominator, rtol=0.02)
    assert weights.of(queries, keys).max() <= 1


@pytest.mark.parametrize("wrong", [2 / 3, 1.0, 3 / 2])
def test_noise_is_as_large_as_it_is_said_to_be(wrong):
    """Variances within five standard errors; two thirds or three halves of the scale are not."""
    told, count = promise(), 20_000
    keys, values = np.zeros((count, 1)), np.zeros((count, 1))
    noisy = rivals.noisy_rows(keys, values, told, weight=2.0, length=1.0, radius=1.0, seed=0)
    spread = told.sigma * math.sqrt(5)
    drawn = {
        "rows": (noisy[1][:, 0], spread),
        "keys": (noisy[0][:, 0], spread / 2),
        "laplace": (rivals.laplace((count,), 1), math.sqrt(2)),
        "process": (
            rivals.process(sphere(3, 4), count, Weights(4.0, 4.0), seed=2)[0],
            1.0,
        ),
    }
    for name, (numbers, deviation) in drawn.items():
        kurtosis = 6 if name == "laplace" else 3
        ratio = np.mean(np.square(numbers / (wrong * deviation)))
        inside = abs(ratio - 1) < 5 * math.sqrt((kurtosis - 1) / count)
        assert inside == (wrong == 1), name


def test_the_process_has_the_covariance_of_the_kernel():
    queries, weights = sphere(6, 3), Weights(2.0, 2.0)
    drawn = rivals.process(queries, 40_000, weights, seed=0)
    np.testing.assert_allclose(np.cov(drawn), weights.of(queries, queries), atol=0.03)


def test_questions_share_a_budget_as_one_mechanism_does():
    told = promise()
    one, many = (rivals.question_spread(told, count, TAU, LENGTH) for count in (1, 10_000))
    assert many == pytest.approx(100 * one)
    assert one == pytest.approx(4.224679 * math.hypot(TAU, LENGTH), rel=1e-5)  # Balle and Wang


def test_features_have_the_noise_of_their_sensitivity(small):
    told = promise(epsilon=0.5)
    for task, alone in ((peers_sums.ATTENTION, 1.0), (peers_sums.DENSITY, 0.0)):
        problem = peers_sums.problem_of(small, task)
        spreads = peers_sums._of_waves(problem, told, 32, TAU)
        assert spreads[peers_sums.WAVES] == told.of_waves(32, TAU, alone) / 0.5
        squared = told.of_waves_squared(32, TAU, problem.length)
        assert spreads[peers_sums.GAUSSIAN_WAVES] == told.sigma * squared


def test_no_query_of_the_square_has_more_noise_than_it_needs():
    _, problem = peers_sums.on_the_square(256)
    far = problem.weights.of(problem.queries, sphere(1_000, 2, seed=3) * 0.5 + 0.5)
    assert np.all(far.max(axis=1) <= peers_sums.reach(problem) + 1e-12)
    assert peers_sums.reach(problem).max() <= 1


@pytest.mark.parametrize("steps", [5, 16])
@pytest.mark.parametrize("name", peers_streams.DRAWN)
def test_drawn_noise_of_streams_is_what_is_computed(name, steps):
    drawn = peers_streams.DRAWN[name](steps, 40_000, np.random.default_rng(0))
    computed = stream_noise.curves(steps)[name]
    np.testing.assert_allclose(np.sqrt(np.mean(drawn**2, axis=1)), computed, rtol=0.025)


# --- the page -------------------------------------------------------------------------------------


def test_the_page_is_the_one_that_the_measurements_make(report):
    assert peers_page.page(report) == peers_page.PAGE.read_text(encoding="utf-8")


def test_everything_was_measured(benchmark, report):
    tasks = (peers_sums.DENSITY, peers_sums.ATTENTION)
    assert set(report["sums"]) == {f"{c} {t}" for c in benchmark.CASES_BY_WORK for t in tasks}
    methods = {*peers_page.NAMES} - {"exact", *peers_page.TREES, peers_page.FINER}
    for cell in report["sums"].values():
        assert set(cell["by_epsilon"]) == {"0.25", "1", "4"}
        assert all(set(each) == methods for each in cell["by_epsilon"].values())
        assert all(
            len(e["errors"]) == peers_sums.Effort().draws
            for each in cell["by_epsilon"].values()
            for e in each.values()
        )
    for name in peers_tables.NAMES:
        rivals_there = report["tables"][name]["rivals"]
        assert set(rivals_there["opacus"]) == set(peers_page.BUDGETS)
        assert bool(rivals_there["dp-ebm"]) == (name != "splice")
    assert {"ours", "published"} == set(report["texts"])
    assert set(report["streams"]) == {str(steps) for steps in peers_streams.STEPS}
    assert set(report["speed"]) == {*benchmark.SPEED_CASES, "square"}


def test_our_figures_are_those_of_the_code(report):
    """The same seeds, the same errors: of the smallest rows, and of the square."""
    problem = peers_sums.problem_of(peers_data.digits(Places()), peers_sums.ATTENTION)
    _, square = peers_sums.on_the_square(2**14)
    cells = report["sums"]["digits attention"]["by_epsilon"]["1"]
    for problem_, cell, seed in (
        (problem, cells, peers_sums.seed_of("digits", 0)),
        (
            square,
            report["square"]["16384"]["by_epsilon"]["1"],
            peers_sums.seed_of(peers_sums.SQUARE, 0),
        ),
    ):
        [(picked, error)] = peers_sums.of_memory(problem_, 1.0, seed, peers_sums.MEMORY)
        kept = cell[peers_sums.MEMORY]
        assert picked == kept["picked"]
        assert error == pytest.approx(kept["errors"][0], rel=1e-3)


def test_figures_of_streams_are_those_of_the_code(report):
    for steps in peers_streams.STEPS:
        curve = stream_noise.curves(steps)[stream_noise.THIS]
        kept = report["streams"][str(steps)][stream_noise.THIS]
        assert kept["last"] == pytest.approx(curve[-1], rel=1e-3)
        assert kept["drawn"] == pytest.approx(curve[-1], rel=5 / math.sqrt(2 * 4_096))


def test_figures_of_tables_are_those_of_the_code(report):
    package = Places().packages / tables_packages.KEEL.file
    if not package.exists():
        pytest.skip("the package of tables is not there")
    areas = peers_tables.tables.measure_privtab(("pima", 0.4))
    assert areas == pytest.approx(report["tables"]["pima"]["ours"]["0.4"], abs=1e-4)


def test_where_another_wins_is_said_first(report):
    def first(changed):
        return peers_page.page(changed).partition("\n## Kernel density")[0]

    worse = copy.deepcopy(report)
    cell = worse["sums"]["digits density"]["by_epsilon"]["1"]
    cell["noisy rows"]["errors"] = [0.0]
    assert "- **Noise on each row** has less error" in first(worse)
    for each in worse["sums"].values():
        for cells in each["by_epsilon"].values():
            cells["noisy rows"]["errors"] = [9.0]
    assert "Noise on each row" not in first(worse)
    worse["square"]["16384"]["by_epsilon"]["1"]["trees, tight"]["errors"] = [0.0]
    assert "- **The paper's trees, tight accounting** have less" in first(worse)
    worse["tables"]["pima"]["rivals"]["dp-ebm"]["0.1"] = [0.99]
    assert "Diabetes at μ = 0.1 (0.990 against" in first(worse)
    worse["texts"]["ours"]["right"]["10"] = [0.5, 0.6]
    assert "Our first word is right in 50%" in first(worse)


def test_who_never_wins_is_not_said_to(report):
    better = copy.deepcopy(report)
    for cell in better["sums"].values():
        for methods in cell["by_epsilon"].values():
            methods["memory"]["errors"] = methods["memory, public rows"]["errors"] = [0.0]
    first = peers_page.page(better).partition("\n## Kernel density")[0]
    assert "have less error than the best memory in 0 of 24 cells" not in first
    assert "digits, attention, at ε" not in first


def test_the_best_of_what_is_tried_is_the_best_on_the_mean():
    drawn = [[({"a": 1}, 1.0), ({"a": 2}, 0.5)], [({"a": 1}, 1.0), ({"a": 2}, 2.0)]]
    assert peers_sums.best(drawn) == {"errors": [1.0, 1.0], "picked": {"a": 1}}


def test_how_many_questions_cost_as_much_as_a_memory():
    cells = {"memory": {"errors": [0.5]}, "1 questions": {"errors": [0.1]}}
    assert peers_page.break_even(cells) in (24, 25)


# --- tiny runs ------------------------------------------------------------------------------------


def test_a_tiny_run_measures_sums(small, monkeypatch):
    monkeypatch.setitem(peers_sums.CASES, "clusters", lambda _: small)
    effort = replace(peers_sums.QUICK, rows=200)
    found = peers_sums.measured("clusters", peers_sums.DENSITY, effort, Places())
    cells = found["by_epsilon"]["1"]
    assert found["mean"] == pytest.approx(0.1, rel=0.2)
    assert cells["1 questions"]["errors"][0] < cells["100 questions"]["errors"][0]
    assert all(peers_sums.mean_of(cell) > 0 for cell in cells.values())


def test_a_tiny_run_makes_a_page(benchmark, tmp_path):
    folder = tmp_path / "not" / "there"
    benchmark.main(
        ["--quick", "--out", str(folder), "--only", "square", "streams", "--workers", "1"]
    )
    kept = json.loads((folder / "peers.json").read_text())
    assert set(kept) == {"square", "streams", "versions"}
    text = (folder / "peers.md").read_text()
    assert "| method | 256 rows |" in text
    assert "## Answers from texts" not in text
    # Without a run, the same page.
    benchmark.main(["--page", "--out", str(folder)])
    assert (folder / "peers.md").read_text() == text


def test_times_and_sizes_are_measured():
    found = peers_speed.measured_square(256)["methods"]
    assert found["memory"]["bytes"] > 0
    assert found["exact"]["kept"] == 8 * 256 * 3
    assert found["trees, tight"]["ask"] > 0


def test_data_that_are_missing_change_nothing(benchmark, tmp_path, capsys):
    places = Places(packages=tmp_path, rivals=tmp_path)
    found = list(benchmark.jobs(("sums", "tables"), places, peers_sums.QUICK, {}, quick=False))
    assert {job.name.split()[0] for job in found} == {"clusters", "digits"}
    said = capsys.readouterr().err
    assert "mnist: data are missing" in said
    assert "tables: data are missing" in said
    assert peers_tables.of_rivals("pima", places) is None


def test_nonsense_is_refused(benchmark, capsys):
    for arguments, word in ((["--only", "all"], "invalid choice"), (["--quick"], "--out")):
        with pytest.raises(SystemExit):
            benchmark.main(arguments)
        assert word in capsys.readouterr().err
