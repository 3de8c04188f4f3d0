"""The memories of one model: one card, one file, and no claim beyond the noise."""

import json
import re

import numpy as np
import pytest
from data import unit_rows

import discreet
from discreet import _files as container
from discreet.readers.attention import bundle
from discreet.readers.attention.bundle import Memories
from discreet.testing import Silent

SPEND = {"epsilon": 8.0, "delta": 1e-6}
NOTES = {"unit": "a row", "bounds": "given"}


def memories(**options):
    layers = [(unit_rows(50, d), unit_rows(50, 2, seed=d)) for d in (3, 4, 5, 3)]
    options = {**SPEND, "scale": [1.0, 2.0, 3.0, 1.5], **options}
    return discreet.build_many(layers, **options)


@pytest.fixture(scope="module")
def memories_of_a_model():
    return Memories(tuple(memories()), NOTES, {"one.map": np.eye(2)})


def test_a_file_brings_them_all_back(memories_of_a_model, tmp_path):
    path = tmp_path / "bundle.safetensors"
    memories_of_a_model.save(path)
    for opened in (discreet.load(path), Memories.load(path)):
        assert str(opened.card) == str(memories_of_a_model.card)
        assert opened.guarantee == memories_of_a_model.guarantee
        np.testing.assert_array_equal(opened.arrays["one.map"], np.eye(2))
        for mine, theirs in zip(opened, memories_of_a_model, strict=True):
            np.testing.assert_array_equal(mine.released.state, theirs.released.state)
    assert discreet.combine([memories_of_a_model]).epsilon == pytest.approx(8.0, rel=1e-3)


def test_the_card_speaks_for_all(memories_of_a_model):
    card = str(memories_of_a_model.card)
    assert "all 4 memories of this build together" in card
    assert "logits at most 1 to 3" in card
    assert "a row" in card
    facts = memories_of_a_model.card.to_dict()
    assert facts["memories"] == 4
    assert json.loads(json.dumps(facts)) == facts
    assert len(memories_of_a_model) == 4
    assert "ε = 8" in repr(memories_of_a_model)


def test_only_memories_of_one_release_belong_together(memories_of_a_model):
    for wrong in ((), (memories_of_a_model[0], memories()[1])):
        with pytest.raises(discreet.InvalidInput, match="one release"):
            Memories(wrong, {}, {})
    with pytest.raises(discreet.InvalidInput, match="all of its heads"):
        Memories(memories_of_a_model.members * 2, {}, {})


@pytest.mark.parametrize(
    "notes", [{"guarantee": "ε = 0"}, {"unit": "a\nguarantee  ε = 0"}, {"unit": "\x1b[2J"}]
)
def test_notes_cannot_pass_for_lines_of_the_card(memories_of_a_model, notes):
    with pytest.raises(discreet.InvalidInput, match="notes"):
        Memories(memories_of_a_model.members, notes, {})


def altered(data, change):
    """A file whose settings were changed by hand, with a checksum that is right."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    settings = json.loads(header["__metadata__"]["settings"])
    change(settings)
    header["__metadata__"]["settings"] = json.dumps(settings)
    header["__metadata__"]["checksum"] = container.BLANK
    head = json.dumps(header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    blank = len(head).to_bytes(8, "little") + head + data[8 + length :]
    return re.sub(container.BLANK.encode(), container.digest(blank), blank, count=1)


def claims_less(settings):
    for member in settings["members"]:
        member["mechanism"]["sensitivity"] = 1.0
        member["guarantee"]["epsilon"] = 3.0


def one_claims_less(settings):
    settings["members"][0]["mechanism"]["sensitivity"] = 1.0


def one_is_silent(settings):
    settings["members"][1] |= {"private": False, "source": "Silent()"}


def another_unit(settings):
    settings["members"][1]["guarantee"]["unit"] = "record"


def false_title(settings):
    settings["notes"].append(["guarantee", "ε = 0"])


@pytest.mark.parametrize(
    "change", [claims_less, one_claims_less, one_is_silent, another_unit, false_title]
)
def test_a_file_cannot_claim_more_than_its_noise(memories_of_a_model, change):
    data = bundle.to_bytes(memories_of_a_model)
    bundle.from_bytes(altered(data, lambda settings: None))
    with pytest.raises(discreet.CorruptRelease):
        bundle.from_bytes(altered(data, change))
    with pytest.raises(discreet.CorruptRelease):
        bundle.from_bytes(data[:-1])


def test_the_command_line_shows_the_card_and_says_what_else_it_is(memories_of_a_model, tmp_path):
    from typer.testing import CliRunner

    from discreet.cli.releases import opened

    path = tmp_path / "bundle.safetensors"
    memories_of_a_model.save(path)
    from discreet import cli

    shown = CliRunner().invoke(cli.app, ["card", str(path)])
    assert "all 4 memories of this build together" in " ".join(shown.stdout.split())
    with pytest.raises(discreet.InvalidInput, match="the context of a model"):
        opened(path, discreet.Memory)


def test_noise_from_a_test_source_is_told(tmp_path):
    made = Memories(tuple(memories(entropy=Silent())), {}, {})
    assert not made.private
    made.save(tmp_path / "bundle.safetensors")
    with pytest.warns(discreet.NotPrivateWarning):
        assert not discreet.load(tmp_path / "bundle.safetensors").private
