"""The benchmark of errors runs, and leaves what was written by hand as it is."""

import pathlib
import subprocess
import sys

import errors_measure
import errors_readout
import numpy as np
import pytest
from errors_measure import FOURIER, MINIMAX, NYSTROM, Effort, Recipe

import benchmarks
from discreet import NotCoveredWarning

pytestmark = pytest.mark.docs

ROOT = pathlib.Path(__file__).parents[2]
TINY = Effort(builds=1, few=1, most_rows=300)


@pytest.fixture(scope="module")
def benchmark():
    return benchmarks.script("errors")


@pytest.fixture(scope="module")
def source():
    return errors_measure.sphere("12 clusters", errors_measure.clusters(2_500), (300,))


def test_only_the_measured_part_of_the_page_is_replaced(benchmark):
    once = benchmark.replaced("# By hand\n", "errors", "first")
    assert once.startswith("# By hand\n\n<!-- measured")
    assert once.endswith("<!-- end of measured -->\n")
    twice = benchmark.replaced(once, "errors", "second")
    assert twice == once.replace("first", "second")
    assert benchmark.replaced(twice, "errors", "second") == twice


def test_a_page_can_have_two_parts_of_one_script(benchmark):
    first = benchmark.replaced("# By hand\n", "errors", "first")
    both = benchmark.replaced(first, "errors", "second", "readout")
    assert both.startswith(first)
    assert "<!-- measured: benchmarks/errors.py readout -->\n\nsecond\n\n<!-- end" in both
    assert benchmark.replaced(both, "errors", "third", "readout") == both.replace("second", "third")
    assert benchmark.replaced(both, "errors", "third") == both.replace("first", "third")


def test_queries_public_and_private_rows_have_nothing_in_common(source):
    parts = (source.queries, source.public(errors_measure.OWN), source.private(300)[0])
    assert [len(part) for part in parts] == [200, 2_000, 300]
    assert len(np.unique(np.concatenate(parts), axis=0)) == 2_500
    others = source.public(errors_measure.RANDOM), source.public(errors_measure.SHUFFLED)
    assert all(each.shape == parts[1].shape for each in others)
    assert not any(np.array_equal(each, parts[1]) for each in others)


def test_parts_of_rows_that_are_read_out_have_nothing_in_common():
    _, rows = errors_readout.made_up(8, 300)
    parts = (rows.queries, rows.examples, rows.alike, rows.wrong, rows.keys)
    assert [len(part) for part in parts] == [500, 200, 2_048, 2_048, 300]
    assert len(np.unique(np.concatenate(parts), axis=0)) == sum(map(len, parts))


def test_one_release_is_read_in_several_ways():
    _, rows = errors_readout.made_up(8, 1_000)
    ways = errors_readout.GROWING_WAYS
    cell = errors_readout.measured(rows, 1_000, 8.0, 1, ways)
    assert cell == errors_readout.measured(rows, 1_000, 8.0, 1, ways)
    assert cell.error[errors_readout.ALIKE] < cell.error[errors_readout.BEFORE] < cell.spread
    assert all(0.8 < share <= 1 for share in cell.within.values())


def test_a_folder_without_files_leaves_its_rows_out(tmp_path):
    assert [load(tmp_path) for load in errors_readout.KEPT.values()] == [None] * 3
    np.savez(tmp_path / "words.npz", x=np.random.default_rng(0).normal(size=(3_000, 5)))
    words = errors_readout.words(tmp_path)
    assert words.keys.shape == (252, 5)
    np.testing.assert_allclose(np.linalg.norm(words.keys, axis=1), 1)


def test_a_cell_can_be_measured_again_and_its_builds_differ(source):
    wanted = Recipe(FOURIER, 2.0, 64)
    one, two = (errors_measure.measured(source, 300, wanted, 4.0, builds) for builds in (1, 2))
    again = errors_measure.measured.__wrapped__(source, 300, wanted, 4.0, 1)
    assert again == one
    assert two.error != one.error
    assert two.noise_within < two.within
    silent = errors_measure.measured(source, 300, wanted, None, 1)
    assert 0 < silent.error < one.error


def test_polynomials_are_at_the_sharpest_scale_of_halves_that_they_can_bear(source):
    wide = errors_measure.recipe(FOURIER, source, 300, 4.0).scale
    small = errors_measure.recipe(MINIMAX, source, 300, 4.0)
    assert small.scale == wide / 4
    assert small.size == 3


@pytest.mark.slow
def test_every_part_of_the_page_is_made(benchmark, source):
    digits = errors_measure.digits((300,))
    data = [source, digits]
    by_kernel = errors_measure.intervals(data, TINY)
    curves = errors_measure.by_epsilon(data, TINY)
    assert NYSTROM in by_kernel
    with pytest.warns(NotCoveredWarning):  # public rows that are not like the others
        features = benchmark.features_page(data, TINY)
    lines = [
        *benchmark.introduction(data, TINY),
        *benchmark.intervals_page(by_kernel),
        *benchmark.epsilon_page(curves),
        *features,
        *benchmark.plan_page(data, TINY),
    ]
    assert "- Sentences are missing" in "\n".join(lines)
    assert benchmark.draw_intervals(by_kernel).axes
    assert benchmark.draw_epsilon(curves).axes


@pytest.mark.slow
def test_the_measured_part_can_be_made_again(tmp_path):
    script = ROOT / "benchmarks" / "errors.py"
    options = ["--quick", "--write", "--out", tmp_path, "--cache", tmp_path]
    subprocess.run([sys.executable, script, *options], check=True, capture_output=True)
    made, kept = ((folder / "errors.md").read_text() for folder in (tmp_path, ROOT / "docs"))
    headings = [line for line in made.splitlines() if line.startswith("#")]
    assert headings == [line for line in kept.splitlines() if line.startswith("#")]
    pictures = sorted(path.name for path in tmp_path.glob("*.png"))
    assert pictures == ["errors-coverage.png", "errors-epsilon.png", "errors-readout.png"]
    assert all((ROOT / "docs" / name).stat().st_size < 100_000 for name in pictures)
