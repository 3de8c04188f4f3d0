"""Arrays from files of four kinds, by FILE or FILE:NAME."""

import io
import json
import struct
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from data import unit_rows
from pyarrow import parquet
from safetensors.numpy import save_file

from discreet.errors import InvalidInput
from discreet.tables import columns, read_array, read_groups, read_labels

KEYS, VALUES = unit_rows(50, 4), unit_rows(50, 3, seed=1).astype(np.float32)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def lists(array):
    return pa.array(list(array))


def write_all():
    np.save("keys.npy", KEYS)
    np.savez("both.npz", keys=KEYS, values=VALUES)
    np.savez_compressed("packed.npz", keys=KEYS, values=VALUES)
    save_file({"keys": KEYS, "values": VALUES}, "both.safetensors")
    columns = {"keys": lists(KEYS), "values": lists(VALUES)}
    columns |= {f"k{i}": KEYS[:, i] for i in range(4)}
    parquet.write_table(pa.table(columns), "both.parquet")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("keys.npy", KEYS),
        ("both.npz", KEYS),
        ("both.npz:values", VALUES),
        ("packed.npz", KEYS),
        ("packed.npz:values", VALUES),
        ("both.safetensors", KEYS),
        ("both.safetensors:values", VALUES),
        ("both.parquet", KEYS),
        ("both.parquet:values", VALUES),
        ("both.parquet:k2,k0", KEYS[:, [2, 0]]),
        ("both.parquet:k1", KEYS[:, [1]]),
    ],
)
def test_every_kind_of_file_gives_back_what_was_written(given, expected):
    write_all()
    array = read_array(Path(given), "keys")
    assert array.dtype == expected.dtype
    np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize("given", ["keys.npy", "both.npz", "both.safetensors"])
def test_what_is_stored_plainly_is_mapped(given):
    write_all()
    assert isinstance(read_array(Path(given), "keys"), np.memmap)


def test_fortran_order_single_arrays_and_no_rows():
    np.savez_compressed("f.npz", np.asfortranarray(KEYS))
    np.testing.assert_array_equal(read_array(Path("f.npz"), "keys"), KEYS)
    np.save("f.npy", np.asfortranarray(KEYS))
    np.testing.assert_array_equal(read_array(Path("f.npy"), "keys"), KEYS)
    np.save("none.npy", np.empty((0, 4)))
    assert read_array(Path("none.npy"), "keys").shape == (0, 4)


def test_a_colon_in_the_name_of_a_file_stays_there():
    np.save("a:b.npy", KEYS)
    np.testing.assert_array_equal(read_array(Path("a:b.npy"), "keys"), KEYS)


def test_large_lists_in_many_batches(monkeypatch):
    monkeypatch.setattr("discreet.tables.arrow._ROWS_AT_ONCE", 7)
    write_all()
    np.testing.assert_array_equal(read_array(Path("both.parquet"), "keys"), KEYS)


def test_groups_are_numbers_or_texts():
    names = [f"person {i // 2}" for i in range(50)]
    parquet.write_table(pa.table({"who": names, "id": np.arange(50)}), "p.parquet")
    assert list(read_groups(Path("p.parquet:who"))) == names
    np.testing.assert_array_equal(read_groups(Path("p.parquet:id")), np.arange(50))
    np.savez("g.npz", groups=np.array(names))
    assert list(read_groups(Path("g.npz"))) == names


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (np.arange(50), np.arange(50)),
        (np.arange(50) / 2, np.arange(50) / 2),
        (np.arange(50) > 7, np.arange(50) > 7),
        (np.array(["né", "b"] * 25), np.array(["né", "b"] * 25)),
    ],
)
def test_labels_are_numbers_or_texts_in_every_kind_of_file(written, expected):
    parquet.write_table(pa.table({"label": list(written)}), "x.parquet")
    np.savez("x.npz", keys=KEYS, label=written[:, None])
    for given in ("x.parquet", "x.npz"):
        found = read_labels(Path(given), name="label")
        assert (found.dtype.kind, found.ndim) == (expected.dtype.kind, 1)
        np.testing.assert_array_equal(found, expected)


def test_labels_of_bytes_are_texts_and_what_is_no_label_is_refused_unseen():
    np.savez(
        "x.npz",
        utf8=np.array(["né".encode(), b"b"]),
        latin=np.array([b"n\xe9"]),
        wide=KEYS,
        dates=np.zeros(3, dtype="M8[s]"),
    )
    assert list(read_labels(Path("x.npz:utf8"))) == ["né", "b"]
    with pytest.raises(InvalidInput, match="UTF-8") as refused:
        read_labels(Path("x.npz:latin"))
    assert "xe9" not in str(refused.value)
    for name in ("wide", "dates"):
        with pytest.raises(InvalidInput, match=f"{name} in x.npz to hold a number or text"):
            read_labels(Path("x.npz"), name=name)


def test_a_name_that_is_known_is_taken_as_it_is_and_needs_no_hint():
    np.savez("x.npz", **{"a:b": KEYS, "c": VALUES})
    np.testing.assert_array_equal(read_array(Path("x.npz"), "keys", name="a:b"), KEYS)
    parquet.write_table(pa.table({"a:b": lists(KEYS), "c": KEYS[:, 0]}), "x.parquet")
    np.testing.assert_array_equal(read_array(Path("x.parquet"), "keys", name="a:b"), KEYS)
    for given in ("x.npz", "x.parquet"):
        with pytest.raises(InvalidInput, match=r"has: a:b, c\.$"):
            read_array(Path(given), "keys", name="keys")
        with pytest.raises(InvalidInput, match=rf"has: a:b, c \(write {given}:"):
            read_array(Path(given), "keys")


def zip_with(name, header, body, *, kind=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(name, "w", kind) as archive:
        archive.writestr("keys.npy", header + body)


def npy_header(shape, descr="<f8"):
    text = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode() + b"\n"
    return np.lib.format.magic(1, 0) + struct.pack("<H", len(text)) + text


def bomb():
    """300 MB of zeros in a third of a megabyte, all declared truly."""
    zip_with("x.npz", npy_header((10**6, 300), "<u1"), bytes(300 * 10**6))


def pickled():
    np.savez("x.npz", keys=np.array([{}], dtype=object))


def forged_safetensors(entry):
    head = json.dumps({"keys": entry}).encode()
    Path("x.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + bytes(16))


def table(**columns):
    parquet.write_table(pa.table(columns), "x.parquet")


BAD = {
    "zip bomb": ("x.npz", bomb),
    "pickled objects in a zip": ("x.npz", pickled),
    "no such array": ("x.npz:other", lambda: np.savez("x.npz", keys=KEYS)),
    "several arrays, none asked for": ("x.npz", lambda: np.savez("x.npz", a=KEYS, b=KEYS)),
    "not a zip": ("x.npz", lambda: Path("x.npz").write_text("PK, but no more")),
    "a zip cut short": ("x.npz", lambda: Path("x.npz").write_bytes(packed()[:-40])),
    "empty zip": ("x.npz", lambda: zipfile.ZipFile("x.npz", "w").close()),
    "damaged zip": ("x.npz", lambda: Path("x.npz").write_bytes(damaged(packed()))),
    "a zip with a huge shape": ("x.npz", lambda: zip_with("x.npz", npy_header((10**9, 99)), b"")),
    "a stored huge shape": (
        "x.npz",
        lambda: zip_with("x.npz", npy_header((10**9, 99)), b"", kind=zipfile.ZIP_STORED),
    ),
    "a negative shape": ("x.npz", lambda: zip_with("x.npz", npy_header((-1, -8)), bytes(64))),
    "text in a zip": ("x.npz", lambda: zip_with("x.npz", b"1,2,3\n", b"")),
    "a zip with a huge header": (
        "x.npz",
        lambda: zip_with("x.npz", np.lib.format.magic(2, 0), struct.pack("<I", 2**31) + b"{" * 999),
    ),
    "a name for a .npy": ("x.npy:keys", lambda: np.save("x.npy", KEYS)),
    "another kind of file": ("x.csv", lambda: Path("x.csv").write_text("1,2\n")),
    "safetensors: not one": ("x.safetensors", lambda: Path("x.safetensors").write_text("hello")),
    "safetensors: huge header": (
        "x.safetensors",
        lambda: Path("x.safetensors").write_bytes(struct.pack("<Q", 2**60) + b"{}"),
    ),
    "safetensors: too short": (
        "x.safetensors",
        lambda: forged_safetensors({"dtype": "F64", "shape": [9], "data_offsets": [0, 72]}),
    ),
    "safetensors: overlapping": (
        "x.safetensors",
        lambda: forged_safetensors({"dtype": "F64", "shape": [9], "data_offsets": [0, 16]}),
    ),
    "safetensors: bfloat16": (
        "x.safetensors",
        lambda: forged_safetensors({"dtype": "BF16", "shape": [8], "data_offsets": [0, 16]}),
    ),
    "parquet: not one": ("x.parquet", lambda: Path("x.parquet").write_text("PAR1 and so on PAR1")),
    "parquet: no such column": ("x.parquet:b", lambda: table(a=[1.0])),
    "parquet: ragged lists": ("x.parquet:a", lambda: table(a=[[1.0], [1.0, 2.0, 3.0]])),
    "parquet: more rows than there are": ("x.parquet:a", lambda: (lying_parquet(),)),
    "parquet: two columns of a name": ("x.parquet:a", lambda: (twice(),)),
    "a bomb that lies about its size": ("x.npz", lambda: (bomb(), lie_about_packed_size())),
    "damaged lzma": ("x.npz", lambda: (damaged_lzma(),)),
    "parquet: missing values": ("x.parquet:a,b", lambda: table(a=[1.0, None], b=[1.0, 2.0])),
    "parquet: missing lists": ("x.parquet:a", lambda: table(a=[[1.0], None])),
    "parquet: missing in lists": ("x.parquet:a", lambda: table(a=[[1.0], [None]])),
    "parquet: texts": ("x.parquet:a", lambda: table(a=["one", "two"])),
    "parquet: two columns of texts": ("x.parquet:a,b", lambda: table(a=["one"], b=["two"])),
    "parquet: lists and numbers": ("x.parquet:a,b", lambda: table(a=[[1.0]], b=[1.0])),
    "parquet: dates": ("x.parquet:a", lambda: table(a=pa.array([1], pa.timestamp("s")))),
    "parquet: no rows": ("x.parquet:a", lambda: table(a=pa.array([], pa.list_(pa.float64())))),
}


def lying_parquet():
    """A footer that says 900 rows where there are 500."""
    rows = pa.table({"a": [[0.0, 1.0]] * 500})
    parquet.write_table(rows, "x.parquet", store_schema=False, compression="none")
    data = Path("x.parquet").read_bytes()
    footer = data.rindex(b"PAR1") - 4 - struct.unpack("<I", data[-8:-4])[0]
    at = data.index(b"\x16\xe8\x07", footer)
    Path("x.parquet").write_bytes(data[:at] + b"\x16\x88\x0e" + data[at + 3 :])


def twice():
    schema = pa.schema([("a", pa.float64()), ("a", pa.float64())])
    parquet.write_table(pa.table([[1.0], [2.0]], schema=schema), "x.parquet")


def lie_about_packed_size():
    data = bytearray(Path("x.npz").read_bytes())
    at = data.rindex(b"PK\x01\x02")
    data[at + 20 : at + 24] = struct.pack("<I", 2**30)
    Path("x.npz").write_bytes(data)


def damaged_lzma():
    zip_with("x.npz", npy_header((500, 4)), KEYS.tobytes() * 10, kind=zipfile.ZIP_LZMA)
    data = bytearray(Path("x.npz").read_bytes())
    data[200] ^= 0xFF
    data[300] ^= 0xFF
    Path("x.npz").write_bytes(data)


def packed():
    file = io.BytesIO()
    np.savez_compressed(file, keys=unit_rows(500, 4))
    return file.getvalue()


def damaged(data):
    middle = len(data) // 2
    return data[:middle] + bytes(200) + data[middle + 200 :]


@pytest.mark.parametrize("kind", BAD)
def test_files_that_hold_no_array_are_refused_in_a_sentence(kind):
    given, make = BAD[kind]
    make()
    with pytest.raises(InvalidInput) as caught:
        read_array(Path(given), "keys")
    assert given.partition(":")[0] in str(caught.value)
    assert "\n" not in str(caught.value)


def test_lists_that_differ_between_batches_are_refused(monkeypatch):
    monkeypatch.setattr("discreet.tables.arrow._ROWS_AT_ONCE", 1)
    table(a=[[1.0, 2.0], [3.0]])
    with pytest.raises(InvalidInput, match="one length"):
        read_array(Path("x.parquet:a"), "keys")


def test_categories_are_what_they_stand_for():
    table(who=pa.array(["b", "a", "b"]).dictionary_encode())
    assert read_groups(Path("x.parquet:who")) == ["b", "a", "b"]


def test_a_name_with_a_dot_is_a_column_and_no_path():
    table(**{"a": [{"b": [9.0, 9.0]}], "a.b": [[1.0, 2.0]]})
    try:
        array = read_array(Path("x.parquet:a.b"), "keys")
    except InvalidInput:
        return
    np.testing.assert_array_equal(array, [[1.0, 2.0]])


def test_nothing_is_unpacked_that_does_not_fit_in_memory(monkeypatch):
    write_all()
    monkeypatch.setattr(columns.os, "sysconf", lambda name: 40)  # a machine of 1600 bytes
    for given in ("packed.npz", "both.parquet"):
        with pytest.raises(InvalidInput, match="half of this machine's memory"):
            read_array(Path(given), "keys")
    read_array(Path("both.npz"), "keys")  # mapped, not unpacked


def test_without_pyarrow_parquet_says_what_to_install(monkeypatch):
    write_all()
    monkeypatch.setitem(__import__("sys").modules, "discreet.tables.arrow", None)
    with pytest.raises(InvalidInput, match=r"discreet\[parquet\]"):
        read_array(Path("both.parquet"), "keys")
