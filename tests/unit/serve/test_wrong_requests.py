"""Whatever is wrong with a request, the answer is a status from 400 to 499 and one sentence.

Never a traceback, a 5xx, a path of the server or what is in a file; and never an answer.
"""

import io
import json
import struct

import pyarrow as pa
import pytest
from pyarrow import ipc

JSON = {"content-type": "application/json"}
ARROW = {"content-type": "application/vnd.apache.arrow.stream"}
GOOD = [[0.1, 0.2, 0.3]]
ROW = {"age": 30, "job": "nurse"}


def stream(table, **options):
    sink = io.BytesIO()
    with ipc.new_stream(sink, table.schema, options=ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return sink.getvalue()


def changed(data, at, byte):
    return data[:at] + bytes([byte]) + data[at + 1 :]


FINE = stream(pa.table({"queries": GOOD}))
DICTIONARY = pa.table({"job": pa.array(["nurse"]).dictionary_encode(), "age": [30]})
MANY = pa.table({"queries": GOOD * 30})  # which would be answered
# A list that says to go on far behind its end.
ENDS = FINE.rfind(struct.pack("<ii", 0, 3)) + 4
BEYOND = FINE[:ENDS] + struct.pack("<i", 3_000) + FINE[ENDS + 4 :]


def lists_of_nothing(count):
    """One row of so many lists that take no bytes."""
    empty = pa.list_(pa.float32(), 0)
    inner = pa.Array.from_buffers(empty, count, [None], children=[pa.array([], pa.float32())])
    return pa.Array.from_buffers(pa.list_(empty, count), 1, [None], children=[inner])


# Of all verbs that take arrays: what stands for queries.
QUERIES = {
    "nothing": None,
    "a text": "0.1 0.2 0.3",
    "a number": 0.5,
    "true": True,
    "an object": {"0": 0.1},
    "an empty list": [],
    "an empty row": [[]],
    "two empty rows": [[], []],
    "texts": [["a", "b", "c"]],
    "a text among numbers": [[0.1, "0.2", 0.3]],
    "null among numbers": [[0.1, None, 0.3]],
    "true among numbers": [[0.1, True, 0.3]],
    "an object among numbers": [[0.1, {}, 0.3]],
    "a list among numbers": [[0.1, [0.2], 0.3]],
    "a number among rows": [[0.1, 0.2, 0.3], 0.5],
    "null among rows": [[0.1, 0.2, 0.3], None],
    "rows of two lengths": [[0.1, 0.2, 0.3], [0.1, 0.2]],
    "a row and an empty row": [[0.1, 0.2, 0.3], []],
    "too narrow": [[0.1, 0.2]],
    "too wide": [[0.1, 0.2, 0.3, 0.4]],
    "far too wide": [[0.1] * 900],
    "one number too few alone": [0.1, 0.2],
    "too many": GOOD * 33,
    "too many in batches": [GOOD * 11] * 3,
    "an integer beyond float64": [[10**400, 0, 0]],
    "nine axes": [[[[[[[[GOOD]]]]]]]],
    "twenty axes": json.loads("[" * 20 + "0.1,0.2,0.3" + "]" * 20),
}
ARRAYS = (
    "memory/attend",
    "numbers/predict",
    "classes/predict",
    "distances/query",
    "arrays/predict",
)

# Bodies that are no question, whatever is asked.
BODIES = {
    "empty": b"",
    "blank": b"  \n",
    "null": b"null",
    "a list": b"[[0.1, 0.2, 0.3]]",
    "a number": b"7",
    "a text": b'"queries"',
    "not a number": b'{"queries": [[NaN, 0, 0]]}',
    "infinity": b'{"queries": [[Infinity, 0, 0]]}',
    "minus infinity": b'{"queries": [[-Infinity, 0, 0]]}',
    "a number that overflows": b'{"queries": [[1e999, 0, 0]]}',
    "a number of many digits": b'{"queries": [[' + b"9" * 5_000 + b", 0, 0]]}",
    "a name twice": b'{"queries": [[0, 0, 0]], "queries": [[1, 1, 1]]}',
    "a name twice inside": b'{"rows": [{"age": 1, "age": 2}]}',
    "cut short": b'{"queries": [[0.1, 0.2',
    "two objects": b'{"queries": [[0, 0, 0]]}{}',
    "a comma too many": b'{"queries": [[0, 0, 0],]}',
    "single quotes": b"{'queries': [[0, 0, 0]]}",
    "a comment": b'{"queries": [[0, 0, 0]]} // all',
    "deep": b'{"queries": ' + b"[" * 9_000 + b"]" * 9_000 + b"}",
    "deep objects": b'{"a":' * 3_000 + b"1" + b"}" * 3_000,
    "UTF-16": '{"queries": [[0, 0, 0]]}'.encode("utf-16"),
    "Latin-1": '{"question": "café"}'.encode("latin-1"),
    "a byte order mark": b'\xef\xbb\xbf{"queries": [[0, 0, 0]]}',
    "a zero byte": b'{"queries": [[0, 0, 0]]}\x00',
    "form fields": b"queries=0.1&queries=0.2",
    "too long": b'{"queries": [[0, 0, 0]]' + b" " * 20_000 + b"}",
    "an unknown field": b'{"queries": [[0, 0, 0]], "epsilon": 9}',
    "another unknown field": b'{"Queries": [[0, 0, 0]]}',
    "no field": b"{}",
    "Arrow": FINE,
}

FIELDS = {
    "stderr is a text": ("memory/attend", {"queries": GOOD, "stderr": "yes"}),
    "stderr is a number": ("memory/attend", {"queries": GOOD, "stderr": 1}),
    "stderr is null": ("memory/attend", {"queries": GOOD, "stderr": None}),
    "rows for a memory": ("memory/attend", {"rows": [ROW]}),
    "a question for a memory": ("memory/attend", {"question": "why?"}),
    "a member of a single memory": ("memory/attend", {"queries": GOOD, "member": 0}),
    "no heads": ("heads/attend", {"queries": GOOD}),
    "three heads": ("heads/attend", {"queries": [GOOD] * 3}),
    "a member that is not there": ("memories/attend", {"queries": GOOD, "member": 2}),
    "a member before the first": ("memories/attend", {"queries": GOOD, "member": -1}),
    "half a member": ("memories/attend", {"queries": GOOD, "member": 0.5}),
    "a member by name": ("memories/attend", {"queries": GOOD, "member": "first"}),
    "a list of members": ("memories/attend", {"queries": GOOD, "member": [0]}),
    "a member that is true": ("memories/attend", {"queries": GOOD, "member": True}),
    "a huge member": ("memories/attend", {"queries": GOOD, "member": 10**4000}),
    "a query for distances": ("distances/query", {"points": GOOD}),
    "arrays for a table": ("table/predict", {"queries": GOOD}),
    "rows for arrays": ("arrays/predict", {"rows": [ROW]}),
    "rows for keys": ("numbers/predict", {"rows": [ROW]}),
    "no rows": ("table/predict", {"rows": []}),
    "rows as an object": ("table/predict", {"rows": ROW}),
    "rows as a text": ("table/predict", {"rows": "age=30"}),
    "rows as null": ("table/predict", {"rows": None}),
    "rows as lists": ("table/predict", {"rows": [[30, "nurse"]]}),
    "a row that is null": ("table/predict", {"rows": [ROW, None]}),
    "a row that is empty": ("table/predict", {"rows": [{}]}),
    "a column missing": ("table/predict", {"rows": [{"age": 30}]}),
    "a column missing in the second": ("table/predict", {"rows": [ROW, {"age": 30}]}),
    "a column too many": ("table/predict", {"rows": [{**ROW, "name": "Ann"}]}),
    "a column misspelt": ("table/predict", {"rows": [{"Age": 30, "job": "nurse"}]}),
    "a number as a text": ("table/predict", {"rows": [{**ROW, "age": "30"}]}),
    "a number and a text": ("table/predict", {"rows": [ROW, {**ROW, "age": "30"}]}),
    "a list in a cell": ("table/predict", {"rows": [{**ROW, "age": [30]}]}),
    "an object in a cell": ("table/predict", {"rows": [{**ROW, "job": {}}]}),
    "a number as a category": ("table/predict", {"rows": [{**ROW, "job": 7}]}),
    "an endless number in a cell": ("table/predict", {"rows": [{**ROW, "age": 10**400}]}),
    "too many rows": ("table/predict", {"rows": [ROW] * 33}),
    "no question": ("corpus/ask", {"topics": 3}),
    "two questions": ("corpus/ask", {"question": "a card", "topic": "bank loan"}),
    "a question and questions": ("corpus/ask", {"question": "a card", "questions": ["b"]}),
    "an empty question": ("corpus/ask", {"question": ""}),
    "a blank question": ("corpus/ask", {"question": " \n\t"}),
    "a question that is a number": ("corpus/ask", {"question": 7}),
    "a question that is null": ("corpus/ask", {"question": None}),
    "a question that is a list": ("corpus/ask", {"question": ["a card"]}),
    "a question that is too long": ("corpus/ask", {"question": "card " * 50}),
    "questions as a text": ("corpus/ask", {"questions": "a card"}),
    "no questions": ("corpus/ask", {"questions": []}),
    "too many questions": ("corpus/ask", {"questions": ["card"] * 33}),
    "a number among questions": ("corpus/ask", {"questions": ["card", 7]}),
    "a blank among questions": ("corpus/ask", {"questions": ["card", " "]}),
    "a topic that is not there": ("corpus/ask", {"topic": "horses"}),
    "a topic that is a list": ("corpus/ask", {"topic": ["bank loan"]}),
    "a topic that is null": ("corpus/ask", {"topic": None}),
    "a topic that is a path": ("corpus/ask", {"topic": "../../etc/passwd"}),
    "no topics": ("corpus/ask", {"question": "a card", "topics": 0}),
    "endless topics": ("corpus/ask", {"question": "a card", "topics": 10**9}),
    "topics as a text": ("corpus/ask", {"question": "a card", "topics": "all"}),
    "half a topic": ("corpus/ask", {"question": "a card", "topics": 1.5}),
    "a blank that is a number": ("corpus/ask", {"question": "a card", "blank": 1}),
    "a blank that is blank": ("corpus/ask", {"question": "a card", "blank": ""}),
    "vectors for a corpus": ("corpus/ask", {"queries": GOOD}),
}

PATHS = {
    "nowhere": ("GET", "/nothing"),
    "a slash too many": ("GET", "/v1/"),
    "a release that is not there": ("GET", "/v1/none"),
    "its card": ("GET", "/v1/none/card"),
    "a question to it": ("POST", "/v1/none/attend"),
    "the name with its ending": ("GET", "/v1/memory.safetensors"),
    "the name in capitals": ("GET", "/v1/MEMORY"),
    "a name with a blank": ("GET", "/v1/memory%20"),
    "a name with a zero byte": ("GET", "/v1/memory%00"),
    "up": ("GET", "/v1/../../etc/passwd"),
    "up, in code": ("GET", "/v1/..%2f..%2fetc%2fpasswd"),
    "up, in code twice": ("GET", "/v1/%252e%252e/card"),
    "a backslash": ("GET", "/v1/..%5cmemory"),
    "a home": ("GET", "/v1/~root"),
    "script": ("GET", "/v1/%3Cscript%3Ealert(1)%3C%2Fscript%3E"),
    "bytes that are no text": ("GET", "/v1/%ff%fe"),
    "a very long name": ("GET", "/v1/" + "a" * 3_000),
    "many slashes": ("GET", "/v1" + "/a" * 500),
    "another version": ("GET", "/v2/memory"),
    "a verb that is none": ("POST", "/v1/memory/delete"),
    "a verb of another kind": ("POST", "/v1/memory/predict"),
    "another": ("POST", "/v1/corpus/attend"),
    "and another": ("POST", "/v1/classes/query"),
    "and one more": ("POST", "/v1/distances/ask"),
    "topics of a memory": ("GET", "/v1/memory/topics"),
    "a verb by GET": ("GET", "/v1/memory/attend"),
    "a card by POST": ("POST", "/v1/memory/card"),
    "a list by POST": ("POST", "/v1"),
    "DELETE": ("DELETE", "/v1/memory"),
    "PUT": ("PUT", "/v1/memory"),
    "PATCH": ("PATCH", "/v1/memory/attend"),
    "OPTIONS": ("OPTIONS", "/v1/memory/attend"),
    "TRACE": ("TRACE", "/v1"),
    "CONNECT": ("CONNECT", "/v1"),
    "a method of one's own": ("RELEASE", "/v1/memory"),
    "POST to the page": ("POST", "/"),
    "POST to health": ("POST", "/health"),
    "DELETE metrics": ("DELETE", "/metrics"),
    "a file of the server": ("GET", "/page.js"),
    "a hidden file": ("GET", "/.git/config"),
    "an icon": ("GET", "/favicon.ico"),
}

HEADERS = {
    "no content-type": {},
    "an empty content-type": {"content-type": ""},
    "a form": {"content-type": "application/x-www-form-urlencoded"},
    "a form of parts": {"content-type": "multipart/form-data; boundary=x"},
    "text": {"content-type": "text/plain"},
    "JSON of another name": {"content-type": "text/json"},
    "JSON that only begins so": {"content-type": "application/jsonp"},
    "JSON in Latin-1": {"content-type": "application/json; charset=latin-1"},
    "JSON with a boundary": {"content-type": "application/json; boundary=x"},
    "pickle": {"content-type": "application/x-python-pickle"},
    "a file of Arrow": {"content-type": "application/vnd.apache.arrow.file"},
    "gzip": {**JSON, "content-encoding": "gzip"},
    "deflate": {**JSON, "content-encoding": "deflate"},
    "a length and chunks": {**JSON, "content-length": "32", "transfer-encoding": "chunked"},
    "two encodings": {**JSON, "content-encoding": "gzip, br"},
    "JSON as Arrow": ARROW,
    "a length that is none": {**JSON, "content-length": "ten"},
    "a negative length": {**JSON, "content-length": "-1"},
    "a length in other digits": {**JSON, "content-length": b"\xb2"},
    "a length that is too long": {**JSON, "content-length": "20001"},
    "a length of many digits": {**JSON, "content-length": "9" * 5_000},
}

STREAMS = {
    "nothing": b"",
    "the beginning alone": FINE[:100],
    "no end of the batch": FINE[:-20],
    "zeros": bytes(200),
    "a schema alone": stream(pa.table({"queries": pa.array([], pa.list_(pa.float64()))})),
    "compressed by zstd": stream(MANY, compression="zstd"),
    "compressed by lz4": stream(MANY, compression="lz4"),
    "a dictionary": stream(DICTIONARY),
    "texts that are no UTF-8": stream(pa.table({"question": ["caXXfe"]})).replace(
        b"XX", b"\xff\xfe"
    ),
    "a name that is no UTF-8": FINE.replace(b"queries", b"quer\xff\xfes"),
    "a list beyond its end": BEYOND,
    "another column": stream(pa.table({"keys": GOOD})),
    "no column": stream(pa.table({})),
    "two columns of one name": stream(pa.table([pa.array([1.0]), pa.array([2.0])], ["a", "a"])),
    "texts": stream(pa.table({"queries": ["0.1 0.2 0.3"]})),
    "lists of texts": stream(pa.table({"queries": [["a", "b", "c"]]})),
    "bytes": stream(pa.table({"queries": [b"abc"]})),
    "objects": stream(pa.table({"queries": [{"a": 1}]})),
    "dates": stream(pa.table({"queries": pa.array([1], pa.date32())})),
    "nothing but null": stream(pa.table({"queries": pa.nulls(1)})),
    "lists of nothing": stream(pa.table({"queries": pa.array([[None]], pa.list_(pa.null()))})),
    "null among rows": stream(pa.table({"queries": [*GOOD, None]})),
    "null among numbers": stream(pa.table({"queries": [[0.1, None, 0.3]]})),
    "no number": stream(pa.table({"queries": [[0.1, float("nan"), 0.3]]})),
    "infinity": stream(pa.table({"queries": [[0.1, float("inf"), 0.3]]})),
    "rows of two lengths": stream(pa.table({"queries": [*GOOD, [0.1]]})),
    "too wide": stream(pa.table({"queries": [[0.1] * 4]})),
    "too many": stream(pa.table({"queries": GOOD * 33})),
    "endless lists of nothing": stream(pa.table({"queries": lists_of_nothing(200_000)})),
    "endless rows of nothing": stream(pa.table({"queries": pa.nulls(2**31 - 1)})),
    **{
        f"byte {at} is {byte}": changed(FINE, at, byte)
        for at in (*range(0, 48, 6), 20)  # of which the last leads out of the message
        for byte in (0, 255)
    },
}

CASES = {
    **{
        f"{path}: {name}": ("POST", f"/v1/{path}", JSON, json.dumps({"queries": each}).encode())
        for path in ARRAYS
        for name, each in QUERIES.items()
    },
    **{
        f"{path}: {name}": ("POST", f"/v1/{path}", JSON, body)
        for path in ("memory/attend", "table/predict", "corpus/ask")
        for name, body in BODIES.items()
    },
    **{
        name: ("POST", f"/v1/{path}", JSON, json.dumps(fields).encode())
        for name, (path, fields) in FIELDS.items()
    },
    "half a character": ("POST", "/v1/corpus/ask", JSON, rb'{"question": "card \ud800"}'),
    **{
        f"path: {name}": (method, path, JSON, b'{"queries": [[0.1, 0.2, 0.3]]}')
        for name, (method, path) in PATHS.items()
    },
    **{
        f"headers: {name}": (
            "POST",
            "/v1/memory/attend",
            headers,
            b'{"queries": [[0.1, 0.2, 0.3]]}',
        )
        for name, headers in HEADERS.items()
    },
    **{
        f"Arrow: {name}": ("POST", "/v1/memory/attend", ARROW, each)
        for name, each in STREAMS.items()
    },
    **{
        f"host: {host}": ("GET", "/v1", {"host": host}, b"")
        for host in (
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "",
            "[::2]:80",
        )
    },
}

# A change that leaves a stream as good as it was: what is there is padding, or of no account.
HARMLESS = {name for name in CASES if name.startswith("Arrow: byte")}


def check_refused(response, folder):
    assert 400 <= response.status_code < 500, (response.status_code, response.text)
    assert response.headers["content-type"] == "application/json"
    assert response.json().keys() == {"error"}
    said = response.json()["error"]
    assert said.startswith("Expected ")
    assert said.endswith(".")
    assert len(said) < 400
    assert "\n" not in said
    for never in ("Traceback", 'File "', str(folder), folder.name, "/tmp", "site-packages", ".py"):
        assert never not in said


def test_cells_that_take_no_bytes_are_counted_before_there_are_any(guarded):
    body = STREAMS["endless lists of nothing"]
    assert len(body) < 1_000
    response = guarded.post("/v1/memory/attend", content=body, headers=ARROW)
    assert response.status_code == 413
    assert "cells" in response.json()["error"]


def test_there_are_many_kinds():
    assert len(CASES) > 300


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_request_gets_a_sentence(guarded, folder, name):
    method, path, headers, body = CASES[name]
    response = guarded.request(method, path, headers=headers, content=body)
    if response.status_code == 200 and name in HARMLESS:
        assert (
            response.content == guarded.request(method, path, headers=headers, content=FINE).content
        )
        return
    check_refused(response, folder)


def test_what_is_right_is_answered(guarded):
    """The same client and server: else all refusals above would mean nothing."""
    body = b'{"queries": [[0.1, 0.2, 0.3]]}'
    for headers in (JSON, {"content-type": 'Application/JSON; charset="UTF-8"'}):
        assert guarded.post("/v1/memory/attend", headers=headers, content=body).status_code == 200
    assert guarded.post("/v1/memory/attend", headers=ARROW, content=FINE).status_code == 200
    assert guarded.post("/v1/table/predict", json={"rows": [ROW]}).status_code == 200
    assert guarded.post("/v1/corpus/ask", json={"question": "a card"}).status_code == 200
    assert guarded.get("/v1", headers={"host": "localhost:9"}).status_code == 200


def test_a_body_without_length_is_cut_off_where_it_is_too_long(guarded, folder):
    sent = []

    def pieces():
        for _ in range(1_000):
            sent.append(1)
            yield b" " * 1_000

    response = guarded.post("/v1/memory/attend", headers=JSON, content=pieces())
    assert response.status_code == 413, response.text
    check_refused(response, folder)


def test_the_right_method_and_the_right_address_are_named(guarded):
    said = guarded.get("/v1/memory/attend")
    assert said.status_code == 405
    assert said.json()["error"].startswith("Expected POST for this address")
    said = guarded.post("/v1/memory/ask", json={"question": "a"})
    assert said.status_code == 404
    assert "POST /v1/NAME/attend" in said.json()["error"]


@pytest.mark.parametrize("path", ARRAYS)
def test_how_many_numbers_there_should_be_is_said_in_words(guarded, path):
    said = guarded.post(f"/v1/{path}", json={"queries": [[0.1, 0.2]]})
    assert said.status_code == 400
    assert said.json()["error"] == "Expected 3 numbers in each query, and there are 2."
