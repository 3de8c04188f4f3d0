"""`discreet card --html`."""

import json
import os
import sys

import pytest
from data import unit_rows
from markup import Reader
from typer.testing import CliRunner

import discreet
from discreet.cli import app
from discreet.testing import Seeded

RUNNER = CliRunner()


@pytest.fixture
def memory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = unit_rows(300, 3)
    made = discreet.build(rows, rows, epsilon=1.0, delta=1e-6, scale=1.0)
    made.save("clinic.safetensors")
    return made


def card(*arguments):
    return RUNNER.invoke(app, ["card", "--html", *arguments])


def test_the_page_lies_beside_nothing_else(memory, tmp_path):
    result = card("clinic.safetensors")
    assert result.exit_code == 0, result.output
    assert result.output.startswith(f"clinic.html: {memory.guarantee}")
    assert sorted(os.listdir(tmp_path)) == ["clinic.html", "clinic.safetensors"]
    reader = Reader((tmp_path / "clinic.html").read_text("utf-8"))
    assert "With or without you" in reader.text
    assert len(reader.all("img")) == 1


def test_it_is_replaced_only_by_force_and_goes_where_it_is_told(memory, tmp_path):
    (tmp_path / "clinic.html").write_text("mine")
    refused = card("clinic.safetensors")
    assert refused.exit_code == 2
    assert "--force" in refused.output
    assert (tmp_path / "clinic.html").read_text() == "mine"
    told = card("clinic.safetensors", "-o", "page.html", "--json")
    assert json.loads(told.output) == {"output": "page.html", **memory.card.to_dict()}
    assert card("clinic.safetensors", "--force").exit_code == 0
    assert (tmp_path / "clinic.html").read_text("utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("name", "wrong"), [("clinic.safetensor", "it is not there"), (".", "it is no file")]
)
def test_a_name_that_is_wrong_is_told_from_a_file_that_is(memory, name, wrong):
    refused = RUNNER.invoke(app, ["card", name])
    assert refused.exit_code == 2
    assert wrong in " ".join(refused.output.split())


def test_a_page_is_made_only_where_it_is_asked_for(memory, tmp_path):
    refused = RUNNER.invoke(app, ["card", "clinic.safetensors", "-o", "page.html"])
    assert refused.exit_code == 2
    assert "--html" in refused.output
    assert os.listdir(tmp_path) == ["clinic.safetensors"]


def test_without_matplotlib_it_has_tables(memory, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = card("clinic.safetensors")
    assert result.exit_code == 0, result.output
    assert "discreet[plots]" in result.output
    reader = Reader((tmp_path / "clinic.html").read_text("utf-8"))
    assert reader.all("img") == []
    assert "By the length of the question" in reader.text


def test_a_file_for_tests_is_marked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = unit_rows(300, 3)
    discreet.build(rows, rows, epsilon=1.0, delta=1e-6, scale=1.0, entropy=Seeded(0)).save(
        "test.safetensors"
    )
    result = card("test.safetensors")
    assert result.exit_code == 0, result.output
    assert "NOT PRIVATE: This file was made for a test" in (
        Reader((tmp_path / "test.html").read_text("utf-8")).text
    )


def test_what_is_no_release_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("nothing")
    refused = card("notes.txt")
    assert refused.exit_code == 2
    assert os.listdir(tmp_path) == ["notes.txt"]
