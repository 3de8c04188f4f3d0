"""The measurement of how sure classifiers are measures that, and prints its table."""

import numpy as np
import pytest

import benchmarks

pytestmark = pytest.mark.docs


@pytest.fixture(scope="module")
def calibration():
    return benchmarks.script("calibration")


def test_the_error_is_that_of_each_tenth(calibration):
    confidence = np.repeat([0.25, 0.75], 500)
    right = np.tile([1.0, 0.0, 0.0, 0.0], 250)
    assert calibration.expected_error(confidence, right) == pytest.approx(0.25)
    right[500:] = np.tile([1.0, 1.0, 1.0, 0.0], 125)
    assert calibration.expected_error(confidence, right) == pytest.approx(0.0)


def test_it_prints_a_line_for_each_data_set_and_epsilon(calibration, monkeypatch, capsys):
    monkeypatch.setattr(calibration, "DATA", {"wine": calibration.DATA["wine"]})
    monkeypatch.setattr(calibration.sys, "argv", ["calibration.py", "--splits", "2"])
    calibration.main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + len(calibration.EPSILONS)
    accuracy = float(lines[-1].split("|")[3])
    assert accuracy > 0.8
