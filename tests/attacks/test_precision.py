"""What is released are whole numbers, and floats that follow from them: no last bit tells anything.

Noise in floating point can be undone, because some floats are sums of a row and noise for one data
set only (Mironov 2012). So every number that depends on rows is an integer that noise was added to;
every other one is public, and the same for a neighbour; and answers are made of the file alone.
"""

import json
import struct

import numpy as np
import pytest
from every_release import ESTIMATORS, KINDS, STRUCTURES, file_of, load_bytes, released
from scipy import stats

from discreet.noise import RoundedGaussian, SystemEntropy
from discreet.testing import Seeded

each_kind = pytest.mark.parametrize("kind", KINDS)

# Each is run with a fixed seed, so it fails always or never.
ALPHA = 1e-4

# Floats that are worked out from noisy integers of the same file, and kept beside them.
WORKED_OUT = {"names.counts", "totals"}

# Numbers that nothing is known from: of a release, and over the whole file.
NAMES = {"release", "id", "checksum"}


def opened(data):
    """The header of a file, and its arrays, by their names."""
    length = struct.unpack("<Q", data[:8])[0]
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    told = header.pop("__metadata__")
    kinds = {"I64": "<i8", "I32": "<i4", "F64": "<f8", "F32": "<f4", "F16": "<f2"}
    arrays = {}
    for name, each in header.items():
        first, end = each["data_offsets"]
        kind = kinds.get(each["dtype"], "u1")
        arrays[name] = np.frombuffer(body[first:end], dtype=kind).reshape(each["shape"])
    return told, arrays


def plain(value):
    """A header's value without names of releases; texts of JSON are opened."""
    if isinstance(value, str) and value[:1] in {"{", "["}:
        return plain(json.loads(value))
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items() if name not in NAMES}
    return [plain(each) for each in value] if isinstance(value, list) else value


def neighbour_files(kind, folder):
    """Files of two neighbours, noise of the same seed."""
    made = (KINDS[kind].build(folder, planted=each, entropy=Seeded(3)) for each in (True, False))
    return [opened(file_of(each, folder)) for each in made]


@each_kind
def test_what_differs_between_neighbours_are_whole_numbers(kind, tmp_path):
    (_, one), (_, two) = neighbour_files(kind, tmp_path)
    assert {name: (a.shape, a.dtype) for name, a in one.items()} == {
        name: (a.shape, a.dtype) for name, a in two.items()
    }
    differ = {name for name in one if one[name].tobytes() != two[name].tobytes()}
    assert any(one[name].dtype == np.int64 for name in differ)
    assert {name for name in differ if one[name].dtype != np.int64} <= WORKED_OUT


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in STRUCTURES])
def test_what_a_file_says_of_itself_is_the_same_for_neighbours(kind, tmp_path):
    """Scales, steps of the lattice, sizes: all of it.

    Trees know the number of rows: it is public where one is replaced by another.
    """
    (one, _), (two, _) = neighbour_files(kind, tmp_path)
    said, other = plain(one), plain(two)
    if kind == "corpus":  # how many texts there are, as the noisy counts say it
        assert said["card"].pop("total") != other["card"].pop("total")
    assert said == other


@each_kind
def test_answers_are_made_of_the_file_alone(kind, shelf, tmp_path):
    """To the last bit: what made the release knows nothing that a file does not."""
    release = shelf.release(kind)
    again = load_bytes(shelf.file(kind), tmp_path)
    if kind == "corpus" or kind in ESTIMATORS:
        again.save(tmp_path / "twice.safetensors")
        assert opened((tmp_path / "twice.safetensors").read_bytes())[1].keys() == (
            opened(shelf.file(kind))[1].keys()
        )
    for one, two in zip(KINDS[kind].answers(release), KINDS[kind].answers(again), strict=True):
        if isinstance(one, np.ndarray):
            assert one.dtype == two.dtype
            assert one.tobytes() == two.tobytes()
        else:
            assert one == two


def test_counts_of_names_are_whole_numbers_over_a_public_one(shelf):
    made = shelf.release("corpus")
    _, arrays = opened(shelf.file("corpus"))
    counts = arrays["names.counts"]
    assert len(counts)
    # Length 2^k and a count of at most m names: a multiple of a public step.
    from discreet.sums.selection import LENGTH

    assert np.array_equal(counts * LENGTH, np.rint(counts * LENGTH))
    assert made.guarantee.epsilon > 0


@pytest.mark.parametrize("kind", ["memory", "least squares", "softmax regression"])
def test_low_bits_are_those_of_noise(kind, tmp_path):
    """Exact sums of the same rows again and again; what is added covers the last bits evenly."""
    states = []
    for seed in range(40):
        made = released(KINDS[kind].build(tmp_path, entropy=Seeded(seed)))
        states.append(made.released.state.ravel())
    low = np.concatenate(states) % 16
    assert evenly(low)
    # Noise that is a multiple of some step, or half of it, would be seen.
    assert not evenly(np.concatenate(states) // 2 * 2 % 16)


def evenly(low):
    counts = np.bincount(low, minlength=16)
    return stats.chisquare(counts).pvalue > ALPHA


def test_the_law_of_noise_has_no_gaps():
    """Every whole number near the middle comes out, whatever it is added to."""
    drawn = RoundedGaussian(sigma=3.0).sample(100_000, entropy=SystemEntropy())
    for moved in (0, 1, 2**40 + 1):
        assert set(range(moved - 6, moved + 7)) <= set((drawn + moved).tolist())
