"""Files that were damaged, mixed up, or forged by somebody who can make a checksum, of every kind.

Each is refused with `CorruptRelease`, or opens with a promise that its noise keeps: no other error,
no promise that is too good, no memory that a number in a header asks for.

What cannot be seen from a file is not claimed here: whoever writes all of it, and writes everywhere
that there was more noise than there was, is believed.
"""

import copy
import json
import os
import random
import tracemalloc
import warnings
from contextlib import suppress

import numpy as np
import pytest
from every_release import ESTIMATORS, KINDS, load_bytes, released
from resealing import contents, resealed
from safetensors import numpy as safetensors

from discreet import CorruptRelease, _files
from discreet.accounting.compose import covers
from discreet.errors import DiscreetError

each_kind = pytest.mark.parametrize("kind", KINDS)

# In place of any number, text, list or table in the settings of a file.
ODD = (
    None,
    True,
    -1,
    0,
    1,
    2,
    0.5,
    1e308,
    -1e308,
    1e-320,
    2**70,
    -(2**63),
    "",
    "paper",
    "\x1b[31m",
)
ODD += ([], {}, [1, 2], [[[[]]]], "é" * 3)
SAMPLE = 25  # of such changes of one file; the slow tests have more

# Whose value is a claim, or makes one look better.
CLAIMS = ("epsilon", "delta", "sigma", "scale", "sensitivity", "probability", "of_budget", "share")
CLAIMS += ("total_delta", "count", "unit", "bound", "group_rows", "multiplier", "pure", "eps_0")


def refused(data, folder):
    """Whether a file is refused; what it says of that is one sentence."""
    said = None
    try:
        load_bytes(data, folder)
    except CorruptRelease as error:
        said = str(error)
    assert said is None or "\n" not in said
    return said is not None


def header(data):
    """The first part of a file, as JSON."""
    return json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])


def with_header(data, text, *, length=None):
    """The file with another first part, and a checksum that is right."""
    first = text if isinstance(text, bytes) else text.encode()
    body = data[8 + int.from_bytes(data[:8], "little") :]
    size = (len(first) if length is None else length).to_bytes(8, "little")
    found = _files._CHECKSUM.search(first)
    if found is None:
        return size + first + body
    blank = size + first[: found.start(1)] + _files.BLANK.encode() + first[found.end(1) :] + body
    return blank.replace(_files.BLANK.encode(), _files.digest(blank), 1)


def places(value, path=()):
    """The path to everything in nested lists and dictionaries."""
    yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


def at(value, path):
    for key in path:
        value = value[key]
    return value


def put(value, path, new):
    """The same with something else at one place."""
    if not path:
        return new
    changed = copy.deepcopy(value)
    at(changed, path[:-1])[path[-1]] = new
    return changed


def with_settings(data, settings):
    """The file with other settings, and a checksum that is right."""
    metadata = header(data)["__metadata__"]
    _, tensors = contents(data)
    card = json.loads(metadata["card"])
    return _files.pack(tensors, name=metadata["format"], settings=settings, card=card)


def assert_no_better(data, folder, honest):
    """A file is refused, or promises what was kept, and says and answers something."""
    try:
        opened = load_bytes(data, folder)
    except CorruptRelease:
        return False
    promised = released(opened).guarantee
    spent = honest.receipt.mechanisms
    better = promised != honest.guarantee and not covers(promised, spent)
    assert not better, f"{promised} of noise that gives {honest.guarantee}"
    assert promised.unit == honest.guarantee.unit
    assert released(opened).private or not honest.private
    said = f"{released(opened)!r}{released(opened).card}{promised}"
    assert "\x1b" not in said
    return True


# --- damage ---------------------------------------------------------------------------------------


@each_kind
def test_a_flipped_bit_is_noticed_wherever_it_is(kind, shelf, tmp_path):
    data = shelf.file(kind)
    chance = random.Random(kind)
    size = int.from_bytes(data[:8], "little")
    spots = [*range(8), 8, 7 + size, 8 + size, len(data) - 1, data.index(b'"checksum"') + 13]
    spots += [chance.randrange(len(data)) for _ in range(12)]
    for spot in spots:
        changed = bytearray(data)
        changed[spot] ^= 1 << chance.randrange(8)
        assert refused(bytes(changed), tmp_path), spot


@pytest.mark.slow
@each_kind
def test_all_bits_of_many_bytes_are_noticed(kind, shelf, tmp_path):
    data = shelf.file(kind)
    for spot in range(0, len(data), 1 + len(data) // 300):
        for bit in range(8):
            changed = bytearray(data)
            changed[spot] ^= 1 << bit
            assert refused(bytes(changed), tmp_path), (spot, bit)


@each_kind
def test_a_file_that_was_cut_short_or_goes_on_is_refused(kind, shelf, tmp_path):
    data = shelf.file(kind)
    size = int.from_bytes(data[:8], "little")
    chance = random.Random(kind)
    lengths = [0, 1, 7, 8, 9, 7 + size, 8 + size, 9 + size, len(data) - 8, len(data) - 1]
    for length in lengths + [chance.randrange(len(data)) for _ in range(8)]:
        assert refused(data[:length], tmp_path), length
    for more in (b"\0", b"\0" * 8, data):
        assert refused(data + more, tmp_path)
        # And if the checksum knows of it, the header does not.
        assert refused(with_header(data + more, data[8 : 8 + size]), tmp_path)


# --- headers --------------------------------------------------------------------------------------


def edited(data, change):
    """The file after a change of its header as JSON, with a checksum that is right."""
    first = header(data)
    change(first)
    return with_header(data, json.dumps(first, separators=(",", ":"), ensure_ascii=False))


SHAPES = ([2**40], [2**62, 4], [2**31, 2**31, 2**31], [-1], [0], [1.5], ["1"], None)
OFFSETS = ([0, 2**62], [-8, 8], [8, 0], [2**63, 2**64], [0], None)


@each_kind
def test_a_size_that_is_not_there_is_refused_and_no_memory_is_taken_for_it(kind, shelf, tmp_path):
    data = shelf.file(kind)
    names = [name for name in header(data) if name != "__metadata__"]
    lengths = [2**63, 2**64 - 1, 2**40, len(data), 0]
    forged = [with_header(data, data[8:], length=length) for length in lengths]
    for name in names:
        odd = [{"shape": shape} for shape in SHAPES] + [{"data_offsets": each} for each in OFFSETS]
        forged += [edited(data, lambda h, n=name, o=each: h[n].update(o)) for each in odd]

        def huge(first, name=name):
            first[name].update(shape=[2**50], data_offsets=[0, 2**53])

        forged.append(edited(data, huge))
    tracemalloc.start()
    try:
        assert all(refused(each, tmp_path) for each in forged)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20 * len(data) + 2**20


@each_kind
def test_a_number_that_asks_for_much_gets_little(kind, shelf, tmp_path):
    """Shapes, rows, degrees, counts of mechanisms: large ones are refused before work is done."""
    data = shelf.file(kind)
    settings, _ = contents(data)
    numbers = [
        path
        for path in places(settings)
        if isinstance(at(settings, path), int | float) and not isinstance(at(settings, path), bool)
    ]
    chance = random.Random(kind)
    tracemalloc.start()
    try:
        for path in chance.sample(numbers, min(5, len(numbers))):
            for huge in (10**7, 2**31):
                refused(with_settings(data, put(settings, path, huge)), tmp_path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40 * 2**20


def test_mechanisms_by_the_million_are_refused_at_once(shelf, tmp_path):
    """To compose them would take half a gigabyte, and a minute for losses of a thousand."""
    data = shelf.file("corpus")
    settings, _ = contents(data)
    forged = []
    for path in places(settings):
        if path[-1:] == ("count",) or (path[-3:-2] == ("mechanisms",) and path[-1] == 1):
            forged.append(put(settings, path, 10**7))
        if path[-1:] == ("sensitivity",):
            forged.append(put(settings, path, 1000))
    assert len(forged) > 12
    tracemalloc.start()
    try:
        assert all(refused(with_settings(data, each), tmp_path) for each in forged)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40 * 2**20


@each_kind
def test_two_values_of_one_name_are_refused(kind, shelf, tmp_path):
    """Some programs would show the first, some the last."""
    data = shelf.file(kind)
    first = data[8 : 8 + int.from_bytes(data[:8], "little")].decode()
    metadata = header(data)["__metadata__"]
    for name in ("settings", "format", "card"):
        again = f'"{name}":{json.dumps(metadata[name])}'
        twice = first.replace('"__metadata__":{', f'"__metadata__":{{{again},', 1)
        assert json.loads(twice) == json.loads(first)
        assert refused(with_header(data, twice), tmp_path)
    settings = metadata["settings"]
    epsilon = settings.replace('"epsilon": ', '"epsilon": 0.001, "epsilon": ')
    assert json.loads(epsilon) == json.loads(settings)
    assert epsilon != settings

    def two_claims(header):
        header["__metadata__"]["settings"] = epsilon

    assert refused(edited(data, two_claims), tmp_path)


@each_kind
def test_what_is_not_of_json_and_what_never_ends_is_refused(kind, shelf, tmp_path):
    data = shelf.file(kind)
    settings = header(data)["__metadata__"]["settings"]
    texts = [
        "[" * 100_000,
        '{"a":' * 100_000,
        "[" * 5000 + "]" * 5000,
        "",
        "null",
        "7",
        '"x"',
        "[]",
    ]
    texts += ["{}", settings[:-1], settings + "}", settings.replace(":", ",")]
    texts += [
        settings[:-1] + f', "more": {odd}}}' for odd in ("NaN", "Infinity", "-Infinity", "01")
    ]

    def instead(text):
        return lambda header: header["__metadata__"].update(settings=text)

    for text in texts:
        assert refused(edited(data, instead(text)), tmp_path), text[:40]
    for text in ("{}", "[]", "7", '{"__metadata__":' * 50_000, "\ufeff{}", ""):
        assert refused(with_header(data, text), tmp_path)


@each_kind
def test_the_header_of_another_kind_is_refused(kind, shelf, tmp_path):
    """Settings under the name of every other format, and over the sums of every other release."""
    data = shelf.file(kind)
    own = header(data)["__metadata__"]
    settings, tensors = contents(data)
    for other in KINDS:
        theirs = shelf.file(other)
        name = header(theirs)["__metadata__"]["format"]
        if name != own["format"]:
            forged = _files.pack(
                tensors, name=name, settings=settings, card=json.loads(own["card"])
            )
            assert refused(forged, tmp_path), other
        _, sums = contents(theirs)
        shapes = [
            {name: (a.shape, a.dtype) for name, a in each.items()} for each in (sums, tensors)
        ]
        if shapes[0] != shapes[1]:
            forged = _files.pack(sums, name=own["format"], settings=settings, card=None)
            assert refused(forged, tmp_path), other
    for name, version in ((own["format"], "2"), (own["format"], 1), ("../" * 9, "1"), ("", "1")):

        def renamed(first, name=name, version=version):
            first["__metadata__"].update(format=name, format_version=version)

        assert refused(edited(data, renamed), tmp_path)


@each_kind
def test_sums_that_are_others_in_part_are_refused(kind, shelf, tmp_path):
    data = shelf.file(kind)
    _, tensors = contents(data)
    _, others_sums = contents(shelf.file(kind, planted=False))
    for name, array in tensors.items():
        if not array.size:  # nothing was found
            continue
        public = np.array_equal(array, others_sums.get(name))  # landmarks, topics
        others = [array[..., None], array[:0]]
        if name != "kept":  # points to read near, of which there may be any number
            others.append(np.concatenate([array, array]))
        if array.dtype.kind == "f":
            others += [np.full_like(array, odd) for odd in (np.nan, np.inf)]
        elif not public:
            others += [array.astype(other) for other in ("f8", "f4", "u8", "i4", "u1")]
        for other in others:
            forged = resealed(data, lambda _, held, n=name, o=other: held.update({n: o}))
            assert refused(forged, tmp_path), (name, other.dtype, other.shape)
        for gone in (lambda _, held, n=name: held.pop(n), lambda _, held: held.clear()):
            assert refused(resealed(data, gone), tmp_path), name


@each_kind
def test_names_that_are_paths_lead_nowhere(kind, shelf, tmp_path, monkeypatch):
    """Nothing is read or written but the file itself, whatever names are in it."""
    folder = tmp_path / "in" / "here"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    odd = (
        "../../out",
        "/etc/passwd",
        "..\\out",
        "C:out",
        "~/out",
        "file:///out",
        "$HOME/out",
        "-rf",
    )
    data = shelf.file(kind)
    settings, _ = contents(data)
    texts = [path for path in places(settings) if isinstance(at(settings, path), str)]
    chance = random.Random(kind)
    for name in odd:

        def renamed(_, held, name=name):
            held[name] = next(iter(held.values()))

        for forged in (
            resealed(data, renamed),
            with_settings(data, put(settings, chance.choice(texts), name)),
        ):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                refused(forged, folder)
    found = [
        os.path.relpath(os.path.join(at_, name), tmp_path)
        for at_, _, names in os.walk(tmp_path)
        for name in names
    ]
    assert found == ["in/here/attacked.safetensors"]


# --- claims, with a checksum that is right --------------------------------------------------------


@each_kind
def test_nobody_takes_a_card_for_the_truth(kind, shelf, tmp_path):
    """A card in a file is for those who read it elsewhere; here it is made again."""
    data = shelf.file(kind)
    name, (settings, tensors) = header(data)["__metadata__"]["format"], contents(data)
    card = {"epsilon": 1e-3, "delta": 0.0, "guarantee": "perfect", "private": True}
    opened = load_bytes(_files.pack(tensors, name=name, settings=settings, card=card), tmp_path)
    honest = load_bytes(data, tmp_path)
    assert released(opened).card == released(honest).card
    assert "perfect" not in str(released(opened).card)


# The paper's account promises less than the noise gives: some better promises would be true.
LOOSE = ("distances by trees", "attention by trees")

BETTER = (0, 0.5, 0.9, 0.99, 0.999, 1.001, 1.01, 1.1, 2, -1)  # times a number of a claim


def claims(settings, names=CLAIMS):
    """The path to every number that is a part of a claim."""
    return [
        path
        for path in places(settings)
        if path and path[-1] in names and isinstance(at(settings, path), int | float)
    ]


def multiplied(settings, factors):
    """The settings with some numbers times a factor: path → factor."""
    for path, factor in factors.items():
        settings = put(settings, path, at(settings, path) * factor)
    return settings


def of_promise(path):
    """Whether a place is in a promise, and not in what the noise is said to be."""
    return path[-2:-1] in {("guarantee",), ("options",)} or path[-1] == "total_delta"


def claimed_in_one_place(kind, shelf, folder, most=None):
    data, honest = shelf.file(kind), released(shelf.release(kind))
    settings, _ = contents(data)
    changes = [(path, factor) for path in claims(settings) for factor in BETTER]
    random.Random(kind).shuffle(changes)
    for path, factor in changes[:most]:
        forged = multiplied(settings, {path: factor})
        assert_no_better(with_settings(data, forged), folder, honest)


@each_kind
def test_a_claim_that_is_too_good_in_one_place_is_refused(kind, shelf, tmp_path):
    claimed_in_one_place(kind, shelf, tmp_path, SAMPLE)


@pytest.mark.slow
@each_kind
def test_many_more_claims_that_are_too_good_in_one_place_are_refused(kind, shelf, tmp_path):
    claimed_in_one_place(kind, shelf, tmp_path, 500)


@each_kind
def test_a_promise_that_is_too_good_wherever_it_is_made_is_refused(kind, shelf, tmp_path):
    data = shelf.file(kind)
    settings, _ = contents(data)
    for names in (("epsilon",), ("epsilon", "delta", "total_delta")):
        promised = [path for path in claims(settings, names) if of_promise(path)]
        assert promised
        for factor in (0.0, 0.5, 0.9, 0.99):
            forged = with_settings(data, multiplied(settings, dict.fromkeys(promised, factor)))
            opened = assert_no_better(forged, tmp_path, released(shelf.release(kind)))
            assert not opened or (kind in LOOSE and factor), (names, factor)


@each_kind
def test_noise_that_is_too_small_for_the_promise_wherever_it_is_told_is_refused(
    kind, shelf, tmp_path
):
    """The other way round: the promise of before, and all else agrees that there was less noise."""
    data = shelf.file(kind)
    settings, _ = contents(data)
    less = {"sigma": 0.9, "scale": 0.9, "multiplier": 0.9, "epsilon": 1.1}
    told = [path for path in claims(settings, less) if not of_promise(path)]
    assert told
    forged = multiplied(settings, {path: less[path[-1]] for path in told})
    if kind not in LOOSE:
        assert refused(with_settings(data, forged), tmp_path)
        return
    assert_no_better(with_settings(data, forged), tmp_path, released(shelf.release(kind)))
    for _ in range(9):  # and again, until it is a ninth, which even the paper's account notices
        forged = multiplied(forged, {path: less[path[-1]] ** 2 for path in told})
    assert refused(with_settings(data, forged), tmp_path)


@each_kind
def test_a_claim_about_others_is_refused(kind, shelf, tmp_path):
    """Whom it protects, and against which change, whatever else is as it was."""
    data, honest = shelf.file(kind), released(shelf.release(kind))
    settings, _ = contents(data)
    other = {"add_remove": "replace", "replace": "add_remove"}
    paths = [path for path in places(settings) if path[-1:] == ("neighbours",)]
    for path in paths:
        forged = put(settings, path, other[at(settings, path)])
        assert_no_better(with_settings(data, forged), tmp_path, honest)
    forged = settings
    for path in [each for each in paths if each[-2:-1] == ("guarantee",)]:
        forged = put(forged, path, other[at(settings, path)])
    assert refused(with_settings(data, forged), tmp_path)
    for path in places(settings):
        if path[-1:] == ("unit",) and isinstance(at(settings, path), str):
            for unit in ("person", "\x1b[31m", ""):
                assert refused(with_settings(data, put(settings, path, unit)), tmp_path)


def odd_changes(kind, settings):
    """Everything in the settings, replaced by anything; in an order of chance."""
    changes = []
    for path in places(settings):
        value = at(settings, path)
        odd = list(ODD)
        if isinstance(value, int | float) and not isinstance(value, bool):
            odd += [*(value * factor for factor in BETTER), str(value), value + 1]
        if isinstance(value, str):
            odd += [value + "x", value.upper(), f" {value}", f"{value}\0"]
        changes += [(path, new) for new in odd]
    random.Random(kind).shuffle(changes)
    return changes


def attack(kind, shelf, folder, changes):
    """How many changes were refused; of the others, that nothing breaks."""
    data, honest = shelf.file(kind), released(shelf.release(kind))
    settings, _ = contents(data)
    count = 0
    for path, new in changes:
        if path[-1:] == ("scope",):  # a text about the release, in which a file may say anything
            continue
        forged = with_settings(data, put(settings, path, new))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            count += not assert_no_better(forged, folder, honest)
    return count


@each_kind
def test_anything_anywhere_is_refused_or_changes_no_promise(kind, shelf, tmp_path):
    changes = odd_changes(kind, contents(shelf.file(kind))[0])[:SAMPLE]
    assert attack(kind, shelf, tmp_path, changes) > SAMPLE / 2


@pytest.mark.slow
@each_kind
def test_much_more_anywhere_is_refused_or_changes_no_promise(kind, shelf, tmp_path):
    changes = odd_changes(kind, contents(shelf.file(kind))[0])[SAMPLE : SAMPLE + 600]
    assert attack(kind, shelf, tmp_path, changes) > len(changes) / 2


@each_kind
def test_what_opens_answers_or_says_why_not(kind, shelf, tmp_path):
    """Questions to what was opened in spite of a change: answers, or an error of ours."""
    data = shelf.file(kind)
    settings, _ = contents(data)
    for path, new in odd_changes(kind, settings)[:SAMPLE]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                opened = load_bytes(with_settings(data, put(settings, path, new)), tmp_path)
            except CorruptRelease:
                continue
            if kind in ESTIMATORS and released(opened) is opened:
                continue  # it is the release alone, which is asked in another way
            with suppress(DiscreetError):
                KINDS[kind].answers(opened)


def test_a_file_of_plain_safetensors_is_none_of_ours(tmp_path):
    for metadata in (None, {}, {"format": "pt"}, {"checksum": "0" * 64}):
        assert refused(safetensors.save({"x": np.zeros(3)}, metadata=metadata), tmp_path)
