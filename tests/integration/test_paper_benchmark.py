"""The plain loops agree with the structures, and the command that measures the paper works."""

import pathlib
import subprocess
import sys

import numpy as np
import pytest

from discreet import paper
from discreet.bench import paper_loops
from discreet.testing import Silent

ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.parametrize("rows", [1, 7, 64, 100])
def test_plain_loops_give_the_same_numbers(rows):
    rng = np.random.default_rng(rows)
    points, weights, queries = rng.random((rows, 3)), rng.uniform(-2, 2, rows), rng.random((9, 3))
    structure = paper.DPTreeSoftmax(
        points,
        weights,
        upper=1.0,
        weight_bound=2.0,
        epsilon=1.0,
        delta=1e-6,
        delta_prime=1e-6,
        c=0.1,
        eps_s=0.1,
        entropy=Silent(),
    )
    plain = paper_loops.Softmax(
        points.tolist(),
        weights.tolist(),
        kernel=structure.kernel,
        upper=1.0,
        bound=2.0,
        units=(structure._sums.trees.noise.unit, structure._sums.totals_noise.unit),
    )
    expected = [plain.query(query) for query in queries.tolist()]
    np.testing.assert_allclose(structure.query(queries), expected, rtol=1e-9, atol=1e-6)


@pytest.mark.slow
def test_the_results_page_can_be_made_again(tmp_path):
    subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "paper.py"), "--quick", "--out", str(tmp_path)],
        check=True,
        capture_output=True,
    )
    made = (tmp_path / "paper-results.md").read_text()
    kept = (ROOT / "docs" / "paper-results.md").read_text()
    headings = [line for line in made.splitlines() if line.startswith("#")]
    assert headings == [line for line in kept.splitlines() if line.startswith("#")]
    for picture in tmp_path.glob("*.png"):
        assert (ROOT / "docs" / picture.name).stat().st_size < 100_000
    assert len(list(tmp_path.glob("*.png"))) == 4
