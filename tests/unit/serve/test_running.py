"""The server as a process: a real socket, and those who dawdle, talk nonsense or never listen."""

import asyncio
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from typer.testing import CliRunner

import discreet
from discreet.cli import app as cli
from discreet.serve import Limits, Settings, Shelf, Tokens, application
from discreet.serve import app as serving
from discreet.serve.running import is_loopback, run

BODY = json.dumps({"queries": [[0.1, 0.2, 0.3]]}).encode()
HEAD = b"POST /v1/memory/attend HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"


@contextlib.contextmanager
def process(path, *options, log=subprocess.DEVNULL):
    """`discreet serve`, in a process of its own."""
    command = [sys.executable, "-m", "discreet", "serve", str(path), "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as server:
        try:
            found = re.search(r":(\d+) answers", server.stdout.readline())
            assert found
            yield int(found[1]), server
        finally:
            server.terminate()


@pytest.fixture(scope="module")
def port(folder):
    with process(folder / "memory.safetensors", "--timeout", "0.3") as (found, _):
        yield found


@pytest.fixture(scope="module")
def patient(folder):
    """The port of a server with the usual limits."""
    with process(folder / "memory.safetensors") as (found, _):
        yield found


def received(port, *pieces, pause=0.0):
    """What comes back until the server closes the connection, and after how long."""
    began = time.perf_counter()
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        with contextlib.suppress(OSError):  # it may have been closed while we speak
            for piece in pieces:
                connection.sendall(piece)
                time.sleep(pause)
        found = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := connection.recv(65_536):
                found += piece
    return found, time.perf_counter() - began


def said(found):
    head, _, body = found.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["error"]


def test_it_answers_over_a_socket_as_in_process(port, folder):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    for _ in range(3):  # over one connection
        connection.request("POST", "/v1/memory/attend", BODY, {"content-type": "application/json"})
        response = connection.getresponse()
        assert response.status == 200
        found = json.loads(response.read())["answers"]
    wanted = discreet.load(folder / "memory.safetensors").attend(np.array([[0.1, 0.2, 0.3]]))
    np.testing.assert_allclose(found, wanted, atol=1e-6)
    assert response.headers["server"] is None
    connection.close()


NONSENSE = {
    "not HTTP": b"hello\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64) + b"\r\n\r\n",
    "bytes": bytes(range(256)) + b"\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "no version": b"GET /v1\r\n\r\n",
    "no host": b"GET /v1 HTTP/1.1\r\n\r\n",
    "two hosts": b"GET /v1 HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
    "a blank in a name": b"GET /v1 HTTP/1.1\r\nhost: a\r\nx y: 1\r\n\r\n",
    "a head of 100 kB": b"GET /v1 HTTP/1.1\r\nhost: a\r\nx: " + b"y" * 100_000 + b"\r\n\r\n",
    "an address of 100 kB": b"GET /" + b"y" * 100_000 + b" HTTP/1.1\r\nhost: a\r\n\r\n",
    "a negative length": HEAD + b"content-length: -5\r\n\r\n" + BODY,
    "two lengths": HEAD + b"content-length: 5\r\ncontent-length: 6\r\n\r\n" + BODY,
    "a length and chunks": HEAD + b"content-length: 5\r\ntransfer-encoding: gzip\r\n\r\n" + BODY,
    "a chunk that is none": HEAD + b"transfer-encoding: chunked\r\n\r\nzz\r\n" + BODY,
    "a head that ends": b"GET /v1 HT",
    "nothing": b"",
    "half a body": HEAD + b"content-length: 500\r\n\r\n" + BODY,
    "half a chunk": HEAD + b"transfer-encoding: chunked\r\n\r\n20\r\n" + BODY[:10],
    "a body that is too long": HEAD + b"content-length: 9999999\r\n\r\n" + BODY,
    "another host": b"GET /v1 HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n",
}


@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_and_dawdling_get_a_sentence_and_are_cut_off(port, name):
    found, seconds = received(port, NONSENSE[name])
    status, sentence = said(found)
    assert 400 <= status < 500
    assert sentence.startswith("Expected ")
    assert seconds < 3
    if "half" in name or name in {"a head that ends", "nothing"}:
        assert status == 408


def test_drops_of_a_head_or_body_win_no_time(port):
    """Each comes before the time is up, and all together do not."""
    head = (bytes([each]) for each in b"GET /v1 HTTP/1.1\r\nhost: " + b"a" * 50)
    found, seconds = received(port, *head, pause=0.06)
    assert said(found)[0] == 408
    body = (bytes([each]) for each in b" " * 60)
    found, again = received(port, HEAD + b"content-length: 500\r\n\r\n", *body, pause=0.06)
    assert said(found)[0] == 408
    assert max(seconds, again) < 2.5  # all of either take longer


def test_whoever_never_takes_answers_holds_nobody_up(port):
    silent = [socket.create_connection(("127.0.0.1", port), timeout=10) for _ in range(70)]
    request = HEAD + b"content-length: %d\r\n\r\n" % len(BODY) + BODY
    for each in silent:
        each.sendall(request)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/health")
    assert connection.getresponse().status == 200
    for each in (*silent, connection):
        each.close()


def test_connections_that_are_too_many_are_told_so(patient):
    """Those that ask get 429, never a 5xx; and when the others are gone, all is well."""
    request = b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n"
    with contextlib.ExitStack() as stack:
        for _ in range(512):
            stack.enter_context(socket.create_connection(("127.0.0.1", patient), timeout=10))
        found, _ = received(patient, request)
        assert said(found) == (429, "Expected fewer connections at once; try again in a second.")
    end = time.monotonic() + 10
    while received(patient, request)[0].split()[1] != b"200":
        assert time.monotonic() < end, "the server did not recover"


def test_a_process_that_is_told_to_stop_stops_and_says_what_it_did(folder, tmp_path):
    log = tmp_path / "log"
    with (
        log.open("w") as file,
        process(folder / "memory.safetensors", log=file) as (port, server),
    ):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.request("GET", "/v1/memory?secret=0.123")
        assert connection.getresponse().status == 200
        connection.close()
        server.send_signal(signal.SIGTERM)
        assert server.wait(20) == 128 + signal.SIGTERM
    lines = log.read_text()
    assert "GET /v1/{name} 200" in lines
    assert "secret" not in lines
    assert "Traceback" not in lines


def test_new_tokens_are_printed_and_let_in(folder, tmp_path):
    made = CliRunner().invoke(cli, ["serve", "--new-token"])
    assert made.exit_code == 0
    token, line = re.findall(r"^(?:token|hash) +(\S+)$", made.output, re.MULTILINE)
    (tmp_path / "tokens").write_text(line)
    Tokens.read(tmp_path / "tokens").check(f"Bearer {token}")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "Expected a file to serve."),
        (
            ["none.safetensors"],
            "Expected none.safetensors to be a file that discreet released, and it is not there.",
        ),
        (["FILE", "--host", "0.0.0.0"], "Expected --token-file for --host 0.0.0.0"),
        (["FILE", "--max-body", "0"], "Expected --max-body 0 to be a whole number >= 1."),
        (["FILE", "--at-once", "0"], "Expected --at-once 0 to be a whole number >= 1."),
        (["FILE", "--timeout", "-1"], "Expected --timeout -1.0 to be a finite number and > 0."),
        (["FILE", "--token-file", "none"], "Expected none to be a file of hashes, one a line."),
    ],
)
def test_what_is_wrong_on_the_command_line_is_said(folder, arguments, sentence):
    given = [str(folder / "memory.safetensors") if each == "FILE" else each for each in arguments]
    refused = CliRunner().invoke(cli, ["serve", *given])
    assert refused.exit_code == 2
    assert refused.output.startswith(f"discreet: {sentence}")


def test_a_port_that_is_taken_is_said(folder):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        path = str(folder / "memory.safetensors")
        refused = CliRunner().invoke(cli, ["serve", path, "--port", str(port)])
    assert refused.exit_code == 2
    assert refused.output.startswith("discreet: Expected an address that can be listened at")
    assert f":{port} " in refused.output
    assert "in use" in refused.output


@pytest.mark.parametrize(
    ("host", "alone"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.0.1", False),
        ("127.0.0.1.example", False),
        ("example.org", False),
    ],
)
def test_only_this_machine_needs_no_token(folder, host, alone):
    assert is_loopback(host) is alone
    if alone:
        return

    def never(_):
        pytest.fail("it listens")

    shelf = Shelf([folder / "memory.safetensors"])
    with pytest.raises(discreet.InvalidInput, match="--token-file"):
        run(shelf, Settings(), host=host, port=0, is_open=False, ready=never)


@pytest.mark.parametrize(("patience", "second"), [(0.05, 429), (5.0, 200)])
def test_questions_wait_for_their_turn_and_not_for_ever(folder, monkeypatch, patience, second):
    """A body that is not there yet takes the only place until it is too late for it."""
    monkeypatch.setattr(serving, "_PATIENCE", patience)
    settings = Settings(limits=Limits(at_once=1, seconds=0.4))
    app = application(Shelf([folder / "memory.safetensors"]), settings)
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/memory/attend",
        "headers": [(b"content-type", b"application/json")],
        "query_string": b"",
    }

    async def asked(receive):
        sent = []

        async def send(message):
            sent.append(message)

        await app(dict(scope), receive, send)
        return sent[0]["status"]

    async def never():
        await asyncio.Event().wait()

    async def at_once():
        return {"type": "http.request", "body": BODY}

    async def all_three():
        slow = asyncio.create_task(asked(never))
        await asyncio.sleep(0.1)
        return await asked(at_once), await slow, await asked(at_once)

    assert asyncio.run(all_three()) == (second, 408, 200)


def test_many_at_once_are_all_answered(patient):
    """More than are read or answered at one time."""
    request = HEAD + b"connection: close\r\ncontent-length: %d\r\n\r\n" % len(BODY) + BODY
    with ThreadPoolExecutor(100) as pool:
        found = pool.map(lambda _: received(patient, request)[0], range(200))
        assert {each.split()[1] for each in found} == {b"200"}


@pytest.mark.slow
def test_many_requests_while_files_are_replaced_have_no_error_and_no_growth(folder, tmp_path):
    psutil = pytest.importorskip("psutil", reason="needs psutil")
    path = tmp_path / "memory.safetensors"
    data = (folder / "memory.safetensors").read_bytes()
    path.write_bytes(data)
    wrong, done = [], threading.Event()

    def ask(port):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        for _ in range(1_250):
            headers = {"content-type": "application/json"}
            connection.request("POST", "/v1/memory/attend", BODY, headers)
            response = connection.getresponse()
            response.read()
            if response.status != 200:
                wrong.append(response.status)
        connection.close()

    def replace():
        while not done.wait(0.3):
            path.with_suffix(".new").write_bytes(data)
            os.replace(path.with_suffix(".new"), path)

    with process(path) as (port, server):
        replacing = threading.Thread(target=replace)
        replacing.start()
        sizes = []
        for _ in range(2):
            threads = [threading.Thread(target=ask, args=(port,)) for _ in range(8)]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
            sizes.append(psutil.Process(server.pid).memory_info().rss)
        done.set()
        replacing.join()
    assert wrong == []
    assert sizes[1] - sizes[0] < 20 * 2**20
