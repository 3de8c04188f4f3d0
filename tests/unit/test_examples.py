"""Examples in docstrings show what they say."""

import doctest
import importlib
import warnings

import pytest

import discreet


@pytest.mark.parametrize(
    "name",
    ["accounting.compose", "accounting.gaussian", "accounting.receipt", "ledger.ledger"],
)
def test_examples_show_what_they_say(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(f"discreet.{name}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", discreet.MostlyNoiseWarning)  # of two rows
        found = doctest.testmod(module, extraglobs={"discreet": discreet})
    assert found.attempted
    assert not found.failed
