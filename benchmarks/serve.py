"""Questions a second over HTTP, beside the same questions in process; and a long run.

`python benchmarks/serve.py [--requests 100000]` starts `discreet serve` on a file that it makes. It
is asked from a few connections, from 200 at once, and then for long while its memory is looked at.
Standard errors are asked for on both sides, as the server gives them unless told not to. Bodies are
made beforehand, and answers are read but not parsed: the figure is the server's, on the same
machine as whoever asks. Nothing here is a limit of a test.
"""

import argparse
import contextlib
import http.client
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator

import numpy as np
import psutil

import discreet

DIM, ROWS = 32, 20_000
HEADERS = {"content-type": "application/json"}


def memory() -> discreet.Memory:
    """Return a memory with 1,024 frequencies."""
    rng = np.random.default_rng(0)
    keys = rng.normal(size=(ROWS, DIM))
    keys /= np.linalg.norm(keys, axis=1, keepdims=True)
    return discreet.build(
        keys, np.tanh(keys[:, :1]), epsilon=1.0, delta=1e-6, scale=2.0, kernel="fourier"
    )


@contextlib.contextmanager
def served(path: pathlib.Path) -> Iterator[tuple[int, psutil.Process]]:
    """Run the server, and give its port and process."""
    command = [sys.executable, "-m", "discreet", "serve", str(path), "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        try:
            assert server.stdout is not None
            found = re.search(r":(\d+) answers", server.stdout.readline())
            assert found, "the server did not start"
            yield int(found[1]), psutil.Process(server.pid)
        finally:
            server.terminate()


def bodies(batch: int, count: int = 16) -> list[bytes]:
    """Return requests with queries that nobody has asked before."""
    rng = np.random.default_rng(1)
    made = []
    for _ in range(count):
        queries = rng.normal(size=(batch, DIM)) / DIM**0.5
        rounded = [[round(each, 7) for each in row] for row in queries.tolist()]
        made.append(json.dumps({"queries": rounded}).encode())
    return made


def ask(port: int, given: list[bytes], requests: int, times: list[float], wrong: list[int]) -> None:
    """Ask over one connection, and note how long each answer took."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for number in range(requests):
        began = time.perf_counter()
        connection.request("POST", "/v1/memory/attend", given[number % len(given)], HEADERS)
        response = connection.getresponse()
        response.read()
        times.append(time.perf_counter() - began)
        if response.status != 200:
            wrong.append(response.status)
    connection.close()


def load(port: int, batch: int, *, requests: int, connections: int) -> tuple[float, list[float]]:
    """Return requests a second, and how long each took."""
    given, times, wrong = bodies(batch), [], []
    each = requests // connections
    threads = [
        threading.Thread(target=ask, args=(port, given, each, times, wrong))
        for _ in range(connections)
    ]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - began
    assert not wrong, f"{len(wrong)} requests were refused: {set(wrong)}"
    assert len(times) == each * connections, "a connection was lost"
    return len(times) / seconds, sorted(times)


def in_process(made: discreet.Memory, batch: int) -> float:
    """Return batches a second that `attend` answers."""
    queries = np.array(json.loads(bodies(batch)[0])["queries"], dtype=np.float32)
    made.attend(queries, stderr=True)
    count, began = 0, time.perf_counter()
    while time.perf_counter() - began < 2:
        made.attend(queries, stderr=True)
        count += 1
    return count / (time.perf_counter() - began)


def speed(port: int, made: discreet.Memory, batch: int) -> None:
    """Print questions a second over HTTP and in process."""
    alone = in_process(made, batch)
    rate, times = load(port, batch, requests=2_000, connections=4)
    alone = (alone + in_process(made, batch)) / 2  # before and after: others run, too
    print(
        f"batches of {batch}: {batch * rate:,.0f} questions a second over HTTP, "
        f"{batch * alone:,.0f} in process, ratio {rate / alone:.2f}; {said(times)}",
        flush=True,
    )


def crowd(port: int) -> None:
    """Print how 10,000 requests from many connections fare."""
    rate, times = load(port, 1, requests=10_000, connections=200)
    print(
        f"{len(times):,} requests from 200 connections at once: no error, {rate:,.0f} a second, "
        f"{said(times)}",
        flush=True,
    )


def long_run(port: int, server: psutil.Process, requests: int) -> None:
    """Print how much memory the server has after each tenth of many requests."""
    sizes, began = [], time.perf_counter()
    for _ in range(10):
        load(port, 1, requests=requests // 10, connections=10)
        sizes.append(server.memory_info().rss / 2**20)
    seconds = time.perf_counter() - began
    print(
        f"{requests:,} requests in {seconds:,.0f} s: no error; the server has "
        f"{', '.join(f'{each:.1f}' for each in sizes)} MiB after each tenth"
    )


def said(times: list[float]) -> str:
    """Return the median and the 99th percentile of sorted times."""
    median, slow = times[len(times) // 2], times[len(times) * 99 // 100]
    return f"median {1e3 * median:.1f} ms, p99 {1e3 * slow:.1f} ms"


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=100_000)
    requests: int = parser.parse_args().requests
    made = memory()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "memory.safetensors"
        made.save(path)
        with served(path) as (port, server):
            load(port, 64, requests=400, connections=4)  # warm
            for batch in (1, 64):
                speed(port, made, batch)
            crowd(port)
            long_run(port, server, requests)


if __name__ == "__main__":
    main()
