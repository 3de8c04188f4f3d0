"""A ledger with a thousand spends is about as quick as an empty one."""

import pytest

from benchmarks import script

benchmark = script("ledger")


@pytest.mark.slow
@pytest.mark.parametrize("kind", benchmark.KINDS)
def test_a_thousand_spends_cost_less_than_fifty_milliseconds(kind, tmp_path):
    empty, full = benchmark.measure(tmp_path, kind)
    assert full - empty < 50


def test_the_measurement_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(benchmark, "TRIALS", 2)
    for kind in benchmark.KINDS:
        assert min(benchmark.measure(tmp_path, kind, spends=3)) > 0
