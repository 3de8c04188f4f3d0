import dataclasses
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
from data import unit_rows
from map_contract import landmarks
from safetensors import numpy as safetensors
from safetensors import safe_open

import discreet
from discreet import CorruptRelease, InvalidInput, NotPrivateWarning
from discreet import _files as packing
from discreet.kernels import Fourier, Minimax, Taylor
from discreet.readers import registry as loading
from discreet.sums import container
from discreet.testing import Seeded

SPEND = {"epsilon": 1.0, "delta": 1e-6}
BOUNDS = {"scale": 1.5, "key_norm": 2.0, "query_norm": 0.5}
KERNELS = {
    "taylor": Taylor(3, degree=2, **BOUNDS),
    "minimax": Minimax(3, degree=2, **BOUNDS),
    "fourier": Fourier(3, frequencies=16, **BOUNDS),
    "landmarks": landmarks(3, **BOUNDS),
}


def build(kernel="fourier", rows=50, **options):
    kernel = KERNELS[kernel]
    return discreet.build(
        unit_rows(2, rows, 3), unit_rows(2, rows, 2, seed=1), **SPEND | options, kernel=kernel
    )


def resealed(memory, change):
    """A file whose settings were changed by somebody who also wrote a new checksum."""
    data = loading.to_bytes(memory)
    tensors = dict(safetensors.load(data))
    length = int.from_bytes(data[:8], "little")
    metadata = json.loads(data[8 : 8 + length])["__metadata__"]
    settings = json.loads(metadata["settings"])
    change(settings, tensors, metadata)
    metadata["settings"] = json.dumps(settings)
    metadata["checksum"] = packing.BLANK
    blank = safetensors.save(tensors, metadata=metadata)
    return blank.replace(packing.BLANK.encode(), packing.digest(blank), 1)


CLASSES = [f'"{number}" é\\' * 9 for number in range(40)]
RELEASES = {
    **{name: lambda name=name: build(name) for name in KERNELS},
    "replace": lambda: build(neighbours="replace"),
    "records": lambda: build(groups=np.arange(50) // 2, group_rows=1.2345678901234567),
    "least squares": lambda: discreet.least_squares(
        unit_rows(50, 3), unit_rows(50, 2), **SPEND, rows_hint=50
    ),
    "classifier": lambda: discreet.softmax_regression(
        unit_rows(50, 3), np.array(CLASSES)[np.arange(50) % 40], classes=CLASSES, **SPEND
    ),
}


@pytest.mark.parametrize("kind", RELEASES)
def test_how_large_a_file_can_be_is_known_before_rows_are_read(kind):
    release = RELEASES[kind]()
    length = len(loading.to_bytes(release))
    most = container.largest_file(release.released.layout)
    parameters = len(json.dumps(release.released.layout.parameters()))
    assert length < most < length + 4 * parameters + 2**14


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_a_file_gives_back_the_same_memory(tmp_path, kernel, neighbours):
    memory = build(kernel, neighbours=neighbours)
    memory.save(tmp_path / "memory.safetensors")
    again = discreet.load(tmp_path / "memory.safetensors")
    assert np.array_equal(again.released.state, memory.released.state)
    with pytest.raises(ValueError, match="read-only"):
        again.released.state[:] = 0
    assert again.guarantee == memory.guarantee
    assert again.card == memory.card
    assert again.released.mechanism == memory.released.mechanism
    queries = unit_rows(2, 5, 3)
    for mine, theirs in zip(
        memory.attend(queries, stderr=True), again.attend(queries, stderr=True), strict=True
    ):
        np.testing.assert_array_equal(mine, theirs)
    assert discreet.combine([memory, again]).epsilon == pytest.approx(1.0, rel=1e-9)


def test_a_file_answers_in_another_process_with_nothing_else(tmp_path):
    memory = build()
    path = tmp_path / "memory.safetensors"
    memory.save(path)
    np.save(tmp_path / "queries.npy", unit_rows(2, 4, 3))
    code = (
        "import sys, numpy, discreet;"
        "m = discreet.load(sys.argv[1]);"
        "numpy.save(sys.argv[3], m.attend(numpy.load(sys.argv[2])))"
    )
    arguments = [str(tmp_path / name) for name in ("memory.safetensors", "queries.npy", "out.npy")]
    subprocess.run([sys.executable, "-c", code, *arguments], check=True)
    np.testing.assert_allclose(
        np.load(tmp_path / "out.npy"), memory.attend(unit_rows(2, 4, 3)), rtol=1e-6
    )


def test_n_and_one_row_less_make_files_of_the_same_size_shapes_keys_and_card(tmp_path):
    files = []
    for rows in (50, 49):
        path = tmp_path / f"{rows}.safetensors"
        build(rows=rows).save(path)
        with safe_open(path, "np") as opened:
            metadata = opened.metadata()
            shapes = {name: opened.get_tensor(name).shape for name in opened.keys()}  # noqa: SIM118
        settings = json.loads(metadata["settings"])
        settings.pop("release")  # a random name
        files.append((path.stat().st_size, shapes, sorted(metadata), settings, metadata["card"]))
        assert str(discreet.load(path).card)
    assert files[0] == files[1]


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_file_cut_short_anywhere_is_refused(kernel):
    data = loading.to_bytes(build(kernel))
    for length in [*range(0, len(data), 97), len(data) - 1]:
        with pytest.raises(CorruptRelease):
            loading.from_bytes(data[:length])
    with pytest.raises(CorruptRelease):
        loading.from_bytes(data + b"\0")


def test_any_altered_byte_is_noticed():
    data = loading.to_bytes(build())
    rng = np.random.default_rng(0)
    for at in [0, 7, 8, 9, *rng.integers(0, len(data), 300).tolist(), len(data) - 1]:
        altered = bytearray(data)
        altered[at] ^= 1 << int(rng.integers(0, 8))
        with pytest.raises(CorruptRelease):
            loading.from_bytes(bytes(altered))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 8,
        b"PK\x03\x04 a zip",
        b"\x80\x04\x95 a pickle",
        np.random.default_rng(0).bytes(5000),
        safetensors.save({"state": np.zeros(3)}),
        safetensors.save({"state": np.zeros(3)}, metadata={"checksum": "0" * 64}),
        (2**63).to_bytes(8, "little") + b'{"checksum":"' + b"0" * 64 + b'"}',
    ],
)
def test_a_foreign_file_is_refused_with_its_name(tmp_path, data):
    path = tmp_path / "foreign.safetensors"
    path.write_bytes(data)
    with pytest.raises(CorruptRelease, match=re.escape(str(path))):
        discreet.load(path)


FORGERIES = {
    "huge degree": lambda s, t, m: s["kernel"].update(degree=190, dim=190),
    "a degree that takes for ever to check": lambda s, t, m: s["kernel"].update(
        degree=3_000_000, dim=3_000_000
    ),
    "another noise": lambda s, t, m: s.update(sigma=s["sigma"] * 0.99),
    "a better epsilon": lambda s, t, m: s["guarantee"].update(epsilon=0.9),
    "an epsilon that is a little better": lambda s, t, m: s["guarantee"].update(
        epsilon=s["guarantee"]["epsilon"] * (1 - 1e-7)
    ),
    "a delta that is a little better": lambda s, t, m: s["guarantee"].update(
        delta=s["guarantee"]["delta"] * (1 - 1e-6)
    ),
    "a delta below all": lambda s, t, m: s["guarantee"].update(epsilon=1e300, delta=1e-310),
    "a better delta": lambda s, t, m: s["guarantee"].update(delta=1e-9),
    "another unit": lambda s, t, m: s["guarantee"].update(unit="person"),
    "a mechanism that no head could have": lambda s, t, m: s["mechanism"].update(
        sensitivity=1.0, sigma=s["mechanism"]["sigma"]
    ),
    "other neighbours": lambda s, t, m: s["mechanism"].update(neighbours="replace"),
    "negative degree": lambda s, t, m: s["kernel"].update(degree=-1),
    "unknown kernel": lambda s, t, m: s["kernel"].update(kind="rbf"),
    "no kernel": lambda s, t, m: s.pop("kernel"),
    "text for a number": lambda s, t, m: s.update(sigma="0; import os"),
    "no noise": lambda s, t, m: s.update(sigma=-1.0),
    "infinite noise": lambda s, t, m: s.update(sigma=float("inf")),
    "other heads": lambda s, t, m: s.update(heads=[3]),
    "heads that are not a list": lambda s, t, m: s.update(heads=3),
    "other width": lambda s, t, m: s.update(value_dim=9),
    "bad bound": lambda s, t, m: s.update(value_norm=float("nan")),
    "epsilon below zero": lambda s, t, m: s["guarantee"].update(epsilon=-1),
    "no mechanism": lambda s, t, m: s.update(mechanism={}),
    "private as text": lambda s, t, m: s.update(private="yes"),
    "rows as text": lambda s, t, m: s.update(rows="all"),
    "hint as text": lambda s, t, m: s.update(rows_hint="many"),
    "release as number": lambda s, t, m: s.update(release=7),
    "group_rows as text": lambda s, t, m: s.update(group_rows="1"),
    "float state": lambda s, t, m: t.update(state=t["state"].astype(float)),
    "no state": lambda s, t, m: t.pop("state"),
    "later format": lambda s, t, m: m.update(format_version="2"),
    "no settings": lambda s, t, m: m.update(format="other"),
}


@pytest.mark.parametrize("kernel", ["minimax", "taylor"])
@pytest.mark.parametrize("change", FORGERIES.values(), ids=FORGERIES)
def test_a_forged_file_with_a_good_checksum_is_refused(change, kernel):
    with pytest.raises(CorruptRelease):
        loading.from_bytes(resealed(build(kernel), change))


@pytest.mark.parametrize(
    "change",
    [
        lambda s, t, m: t.update(frequencies=t["frequencies"][:3]),
        lambda s, t, m: t.update(frequencies=np.full((16, 3), 2**31 - 1, dtype=np.int32)),
        lambda s, t, m: t.pop("frequencies"),
        lambda s, t, m: s["kernel"].update(frequencies=2**21),
        lambda s, t, m: s["kernel"].update(turn_bits=3),
        lambda s, t, m: s["kernel"].pop("turn_bits"),
    ],
)
def test_forged_frequencies_are_refused(change):
    with pytest.raises(CorruptRelease):
        loading.from_bytes(resealed(build(), change))


def test_settings_nested_without_end_are_refused():
    def nest(settings, tensors, metadata):
        metadata["card"] = "[" * 200_000

    data = resealed(build(), nest)
    assert loading.from_bytes(data).private  # the card is for readers; the settings decide
    deep = data.replace(b'"format":"discreet-memory"', b'"format":' + b"[" * 20 + b"]" * 20)
    with pytest.raises(CorruptRelease):
        loading.from_bytes(deep)


def test_resealing_alone_changes_nothing():
    assert loading.from_bytes(resealed(build(), lambda s, t, m: None)).private


def test_nothing_is_left_behind_when_writing_fails(tmp_path, monkeypatch):
    memory = build()
    path = tmp_path / "memory.safetensors"
    memory.save(path)
    before = path.read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        build().save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["memory.safetensors"]


def test_a_file_is_exchanged_in_one_step(tmp_path, monkeypatch):
    """Until the last moment the old file is the whole old file."""
    path = tmp_path / "memory.safetensors"
    build().save(path)
    before = path.read_bytes()
    seen = []

    def exchange(part, target):
        seen.append((target.read_bytes(), part.read_bytes()))
        raise OSError("stopped")

    monkeypatch.setattr(pathlib.Path, "replace", exchange)
    with pytest.raises(OSError, match="stopped"):
        build().save(path)
    [(old, new)] = seen
    assert old == before == path.read_bytes()
    assert loading.from_bytes(new).private
    assert os.listdir(tmp_path) == ["memory.safetensors"]


def test_the_file_may_be_read_by_whom_the_umask_says(tmp_path):
    build().save(tmp_path / "memory.safetensors")
    mask = os.umask(0)
    os.umask(mask)
    assert (tmp_path / "memory.safetensors").stat().st_mode & 0o777 == 0o666 & ~mask


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        discreet.load(tmp_path / "none.safetensors")


def test_what_was_made_for_tests_says_so_everywhere(tmp_path):
    memory = build(entropy=Seeded(1))
    memory.save(tmp_path / "memory.safetensors")
    with pytest.warns(NotPrivateWarning, match=r"Seeded\(1\)"):
        again = discreet.load(tmp_path / "memory.safetensors")
    for each in (memory, again):
        assert not each.private
        assert "NOT PRIVATE" in repr(each)
        assert "NOT PRIVATE" in str(each.card)
        assert "NOT PRIVATE" in each.guarantee.scope
        assert each.card.to_dict()["private"] is False
        assert each.card.to_dict()["entropy"] == "Seeded(1)"
    build().save(tmp_path / "private.safetensors")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert discreet.load(tmp_path / "private.safetensors").private
    with safe_open(tmp_path / "memory.safetensors", "np") as opened:
        assert json.loads(opened.metadata()["card"])["private"] is False


def leaky():
    builder = discreet.Builder(**SPEND, scale=1.0, leaks=("key_norm", "rows_hint"))
    builder.add(unit_rows(50, 3), unit_rows(50, 2))
    [memory] = builder.release()
    return memory


def test_what_was_taken_from_the_rows_is_in_the_file_and_in_its_settings(tmp_path):
    made = leaky()
    made.save(tmp_path / "memory.safetensors")
    again = discreet.load(tmp_path / "memory.safetensors")
    assert again.receipt == made.receipt
    assert again.receipt.leaks == ("key_norm", "rows_hint")
    assert again.guarantee == made.guarantee
    assert again.guarantee.scope == made.receipt.covering(made.receipt.scope)
    assert "figure that was taken from the rows: none" in str(again.card)
    assert "given by the builder" not in str(again.card)


def test_a_file_without_leaks_does_not_speak_of_them():
    def look(settings, *_):
        assert "leaks" not in settings

    resealed(build(), look)


@pytest.mark.parametrize("leaks", [["bounds"], ["<b>"], "key_norm", None, 7])
def test_a_file_and_its_guarantee_name_the_same_leaks(leaks):
    def others(settings, *_):
        settings["leaks"] = leaks

    def quiet(settings, *_):
        settings["guarantee"]["scope"] = "the memory, with all answers to any queries,"

    for change in (others, quiet):
        with pytest.raises(CorruptRelease):
            loading.from_bytes(resealed(leaky(), change))


@pytest.mark.parametrize("name", ["source", "version", "release"])
def test_texts_that_would_do_something_to_a_terminal_are_refused(name):
    changed = {name: "1.0\x1b[2J\nguarantee  epsilon = 0"}
    with pytest.raises(CorruptRelease):
        loading.from_bytes(resealed(build(), lambda s, t, m: s.update(changed)))


@pytest.mark.parametrize("changed", [{"rows": 5}, {"group_rows": 7.0}])
def test_a_file_that_contradicts_its_guarantee_is_refused(changed):
    """Under add_remove no number of rows is public, and a row has the influence of one."""
    with pytest.raises(CorruptRelease):
        loading.from_bytes(resealed(build(), lambda s, t, m: s.update(changed)))


@pytest.mark.parametrize("name", ["rows", "rows_hint"])
def test_no_release_is_of_fewer_rows_than_none(name):
    released = build(neighbours="replace").released
    assert getattr(dataclasses.replace(released, **{name: 0}), name) == 0
    with pytest.raises(InvalidInput, match=name):
        dataclasses.replace(released, **{name: -1})


@pytest.mark.parametrize("name", ["group_rows", "sigma", "share"])
def test_no_release_has_no_influence_of_anybody_no_noise_or_no_budget(name):
    released = build().released
    for wrong in (0.0, -1.0, math.nan):
        with pytest.raises(InvalidInput, match=name):
            dataclasses.replace(released, **{name: wrong})


def test_a_file_keeps_what_an_estimator_says_of_its_columns():
    described = {"kind": "classifier", "names": ["age"]}
    made = build()
    kept = type(made)(dataclasses.replace(made.released, estimator=described))
    again = type(made)(
        container.restore(
            container.settings_of(kept.released), container.tensors_of(kept.released), made.layout
        )
    )
    assert again.released.estimator == described
    wrong = container.settings_of(kept.released) | {"estimator": ["age"]}
    with pytest.raises(CorruptRelease, match="estimator"):
        container.restore(wrong, container.tensors_of(kept.released), made.layout)
