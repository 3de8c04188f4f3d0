"""`discreet audit`."""

import json

import pytest
from broken_noise import noise_times

from discreet.cli import main


def run(monkeypatch, capsys, *arguments):
    monkeypatch.setattr("sys.argv", ["discreet", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    return ended.value.code, printed.out, printed.err


def test_a_memory_is_audited_and_drawn(monkeypatch, capsys, tmp_path):
    picture = tmp_path / "audit.png"
    code, out, _ = run(monkeypatch, capsys, "audit", "--builds", 60, "--picture", picture)
    assert code in {0, None}
    assert out.startswith("memory: holds")
    assert "measured   ε ≥ 0." in out
    assert "proves nothing by itself" in out
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_several_are_a_line_each_and_json(monkeypatch, capsys):
    asked = ("audit", "distances", "table", "--builds", 40, "--epsilon", 2)
    _, out, _ = run(monkeypatch, capsys, *asked)
    lines = out.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["mechanism", "distances", "table"]
    assert all(line.endswith("holds") for line in lines[1:3])
    _, out, _ = run(monkeypatch, capsys, *asked, "--json")
    found = json.loads(out)
    assert [each["name"] for each in found] == ["distances", "table"]
    assert all(each["claimed"] == 2 and each["holds"] for each in found)


def test_a_promise_that_does_not_hold_ends_with_one(monkeypatch, capsys):
    with noise_times(0.4):
        code, out, _ = run(monkeypatch, capsys, "audit", "distances", "--builds", 60)
    assert code == 1
    assert "DOES NOT HOLD" in out


def test_one_run(monkeypatch, capsys):
    code, out, _ = run(monkeypatch, capsys, "audit", "--one-run", "--canaries", 40)
    assert code in {0, None}
    assert "about 40 canaries" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nothing",), "memory"),
        (("memory", "table", "--picture", "a.png"), "one mechanism"),
        (("table", "--one-run"), "--one-run"),
        (("--builds", 3), "--builds"),
        (("--confidence", 2), "--confidence"),
        (("--epsilon", -1), "--epsilon"),
    ],
)
def test_what_is_wrong_is_one_sentence(monkeypatch, capsys, tmp_path, arguments, message):
    monkeypatch.chdir(tmp_path)
    code, _, err = run(monkeypatch, capsys, "audit", *arguments)
    assert code == 2
    assert len(err.splitlines()) == 1
    assert message in err
