"""The file itself, whatever is in it."""

import json
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors import safe_open

from discreet import CorruptRelease, NotPrivateWarning
from discreet._packing import pack, read, unpack
from discreet.errors import InvalidInput

TENSORS = {"nodes": np.arange(12).reshape(3, 4), "turned": np.arange(6.0).reshape(2, 3).T}
SETTINGS = {"p": 2, "upper": 0.1, "name": "größer"}


@dataclass(frozen=True)
class Held:
    """Something that a file may hold."""

    settings: dict
    tensors: dict
    private: bool = True

    @property
    def receipt(self):
        return SimpleNamespace(source="a die")


def packed(card=None):
    return pack(TENSORS, name="something", settings=SETTINGS, card=card)


def test_what_was_packed_comes_back():
    held = unpack(packed(), {"other": lambda *_: None, "something": Held})
    assert held.settings == SETTINGS
    for name, array in TENSORS.items():
        np.testing.assert_array_equal(held.tensors[name], array)
        assert held.tensors[name].dtype == array.dtype


def test_a_card_is_there_if_one_was_given(tmp_path):
    for card in (None, {"epsilon": 1.0}):
        (tmp_path / "x").write_bytes(packed(card))
        with safe_open(tmp_path / "x", "numpy") as file:
            metadata = file.metadata()
        assert ("card" in metadata) is (card is not None)
        assert json.loads(metadata.get("card", "null")) == card


def test_every_altered_or_missing_byte_is_noticed():
    data = packed()
    for at in range(0, len(data), 7):
        changed = bytearray(data)
        changed[at] ^= 1
        with pytest.raises(CorruptRelease):
            unpack(bytes(changed), {"something": Held})
        with pytest.raises(CorruptRelease):
            unpack(data[:at], {"something": Held})


def test_a_format_that_nobody_knows_is_named():
    with pytest.raises(CorruptRelease, match="Expected other 1, got something 1"):
        unpack(packed(), {"other": Held})


@pytest.mark.parametrize(
    "error", [InvalidInput, KeyError, TypeError, ValueError, ZeroDivisionError, RecursionError]
)
def test_contents_that_make_no_sense_are_no_release(error):
    def fail(settings, tensors):
        raise error("private 7")

    with pytest.raises(CorruptRelease, match="no sense") as caught:
        unpack(packed(), {"something": fail})
    assert "7" not in str(caught.value)


def test_reading_names_the_file_and_warns_of_noise_for_tests(tmp_path):
    path = tmp_path / "x.safetensors"
    path.write_bytes(packed())
    assert read(path, lambda data: unpack(data, {"something": Held})).private
    with pytest.warns(NotPrivateWarning, match=r"x\.safetensors is NOT PRIVATE.*a die"):
        read(path, lambda _: Held({}, {}, private=False))
    path.write_bytes(packed()[:-1])
    with pytest.raises(CorruptRelease, match=r"x\.safetensors: Expected the checksum"):
        read(path, lambda data: unpack(data, {"something": Held}))
