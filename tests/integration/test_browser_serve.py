"""The page of `discreet serve` in a real browser: how it looks, what it asks, and whom it believes.

Pictures of it are kept in the folder that DISCREET_SCREENSHOTS names.
"""

import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("playwright.sync_api", reason="needs the extra `browser`")
pytest.importorskip("uvicorn", reason="needs the extra `serve`")

from browser import DESK, PHONE, brightness, contrasts, widths

import discreet
from discreet.serve import new_token
from discreet.sklearn import PrivateClassifier

pytestmark = [pytest.mark.docs, pytest.mark.slow]

EVIL = "<img src=x onerror=document.title='owned'>"
TOPICS = ["card arrival", "exchange rate", EVIL, "averyveryverylongnamewithoutanyblankinit" * 3]
QUESTION = 'my card isn\'t here: "why?" $(date)'


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("served"), np.random.default_rng(0)
    keys = rng.normal(size=(4_000, 6))
    keys /= np.linalg.norm(keys, axis=1, keepdims=True)
    values = np.stack([keys[:, 0], 0 * keys[:, 0]], axis=1)
    discreet.build(
        keys, values, epsilon=2.0, delta=1e-6, scale=2.0, kernel="fourier", reference=keys[:9]
    ).save(folder / "memory.safetensors")
    pair = discreet.build_many(
        [(keys, values), (keys, -values)], epsilon=9.0, delta=1e-6, scale=2.0, eps_s=0.3
    )
    discreet.Memories(tuple(pair), {}, {}).save(folder / "layers.safetensors")
    texts = [f"hello, {TOPICS[row % 2]}" for row in range(4_000)]
    discreet.Corpus.build(
        texts,
        [EVIL if row % 2 else "plain" for row in range(4_000)],
        encoder="static",
        topics=TOPICS,
        classes=[EVIL, "plain"],
        rows_hint=None,
    ).save(folder / "tickets.safetensors")
    table = {"age": np.arange(4_000) % 100, "job": np.where(np.arange(4_000) % 3, "nurse", EVIL)}
    PrivateClassifier(
        2.0,
        1e-6,
        columns={"age": (0, 100), "job": ["nurse", EVIL]},
        classes=["no", "yes"],
        rows_hint=4_000,
    ).fit(table, np.where(table["age"] > 50, "yes", "no")).save(folder / "model.safetensors")
    return folder


def served(folder, *options):
    files = map(str, sorted(folder.glob("*.safetensors")))
    command = [sys.executable, "-m", "discreet", "serve", *files, "--port", "0", *options]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return server, re.match(r"(http\S+) answers", server.stdout.readline())[1]


@pytest.fixture(scope="module")
def address(folder):
    server, found = served(folder)
    yield found
    server.terminate()
    server.communicate()


def opened(visit, address, name, device=DESK, scheme="light"):
    tab = visit(f"{address}/#{name}", device, scheme)
    tab.wait_for_selector("#card .line")
    return tab


def ask(tab):
    tab.get_by_role("button", name="Ask").click()
    tab.wait_for_selector("#answer h3")


def fill(tab, name):
    if name == "memory":
        tab.get_by_label("A public example").select_option(index=2)
    elif name == "tickets":
        tab.get_by_label("A question").fill(QUESTION)
    else:
        tab.get_by_label("age").fill("80")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["desk", "phone"])
@pytest.mark.parametrize("name", ["memory", "tickets", "model"])
def test_the_page_asks_and_looks_right(visit, address, keep, name, kind, scheme):  # noqa: PLR0917
    device = {"desk": DESK, "phone": PHONE}[kind]
    tab = opened(visit, address, name, device, scheme)
    fill(tab, name)
    ask(tab)
    keep(tab, f"serve-{name}-{kind}-{scheme}")
    assert tab.said == []
    assert all(each.startswith((f"{address}/", "data:")) for each in tab.asked)
    wide, window = widths(tab)
    assert wide <= window == device["viewport"]["width"]
    assert min(contrasts(tab, 'main *:not([aria-disabled="true"]):not(option)')) >= 4.5
    assert (brightness(tab) > 0.5) == (scheme == "light")
    assert tab.title() != "owned"
    assert tab.locator("img").count() == 0


def test_numbers_have_a_margin_and_noise_is_called_noise(visit, address, folder):
    tab = opened(visit, address, "memory")
    tab.get_by_label("Numbers to ask about").fill("1 0 0 0 0 0")
    ask(tab)
    lines = tab.locator("#answer .bars li").all_inner_texts()
    query = np.array([[1.0, 0, 0, 0, 0, 0]])
    wanted, errors = discreet.load(folder / "memory.safetensors").attend(query, stderr=True)
    for line, value, error in zip(lines, wanted[0], errors[0], strict=True):
        number, margin = map(float, re.search(r"(-?[\d.]+) ± ([\d.]+)", line).groups())
        assert number == pytest.approx(value, abs=margin / 10)
        assert margin == pytest.approx(1.96 * error, rel=0.1)
        assert ("not clear of the noise" in line) == (abs(value) < 1.96 * error)
    tab.get_by_label("Numbers to ask about").fill("1 0")
    tab.get_by_role("button", name="Ask").click()
    tab.wait_for_selector("#said:not([hidden])")
    assert tab.locator("#said").inner_text() == "Expected 6 numbers in each query, and there are 2."


@pytest.mark.parametrize("name", ["memory", "tickets", "model"])
def test_the_line_for_curl_gives_the_same_answer(visit, address, name):
    tab = opened(visit, address, name)
    fill(tab, name)
    with tab.expect_response(lambda each: each.request.method == "POST") as shown:
        ask(tab)
    line = tab.locator("#curl").inner_text()
    if shutil.which("curl") is None:
        pytest.skip("needs curl")
    found = subprocess.run(["sh", "-c", f"{line} -s"], capture_output=True, check=True, text=True)
    assert json.loads(found.stdout) == shown.value.json()


def test_each_memory_of_a_model_can_be_asked(visit, address):
    tab = opened(visit, address, "layers")
    tab.get_by_label("Numbers to ask about").fill("0.9 0 0 0 0 0")
    said = []
    for member in ("0", "1"):
        tab.get_by_label("Which of its 2 memories").fill(member)
        with tab.expect_response(lambda each: each.request.method == "POST") as shown:
            ask(tab)
        said.append(shown.value.json()["answers"][0][0])
    assert said[0] > 0 > said[1]


def test_all_topics_say_what_their_texts_are(visit, address):
    tab = opened(visit, address, "tickets")
    found = tab.locator("#topics .bars li", has_text="card arrival")
    found.wait_for()
    line = found.inner_text()
    assert re.search(r"2,\d\d\d ± \d|1,\d\d\d ± \d", line)
    assert re.search(r"plain \d+\.\d% ± \d+\.\d%", line)


def test_an_address_that_ends_in_nonsense_shows_what_is_here(visit, address):
    tab = visit(f"{address}/#%E0%A4%A", DESK, "light")
    tab.wait_for_selector("#card .line")
    assert tab.said == []


def test_a_keyboard_is_enough(visit, address):
    tab = opened(visit, address, "tickets")
    tab.get_by_label("A question").focus()
    tab.keyboard.type("exchange rate")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#answer h3")
    assert "exchange rate" in tab.locator("#answer").inner_text()
    tab.get_by_role("button", name="Ask").focus()
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#question button[aria-disabled=false]")
    assert tab.evaluate("document.activeElement.textContent") == "Ask"
    tab.locator("#names a", has_text="model").focus()
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#column0")
    assert tab.locator("#names [aria-current]").inner_text() == "model"
    assert tab.locator("#answer").inner_text() == ""


def test_a_token_is_asked_for_and_kept_nowhere(visit, folder, tmp_path):
    token, line = new_token()
    (tmp_path / "tokens").write_text(line)
    server, address = served(folder, "--token-file", str(tmp_path / "tokens"))
    try:
        tab = visit(f"{address}/", DESK, "light")
        tab.get_by_label("Token").fill("wrong")
        tab.get_by_role("button", name="Enter").click()
        tab.wait_for_selector("#said:not([hidden])")
        assert tab.locator("#said").inner_text().startswith("Expected a token")
        tab.get_by_label("Token").fill(token)
        tab.get_by_role("button", name="Enter").click()
        tab.wait_for_selector("#card .line")
        ask(tab)
        assert token not in tab.locator("#curl").inner_text()
        assert tab.evaluate("[localStorage.length, sessionStorage.length, document.cookie]") == [
            0,
            0,
            "",
        ]
    finally:
        server.terminate()
        server.communicate()


def test_without_an_encoder_a_topic_is_picked(visit, folder):
    server, address = served(folder, "--encoder", "none")
    try:
        tab = opened(visit, address, "tickets")
        tab.wait_for_selector("#topic option", state="attached")
        tab.get_by_label("A topic").select_option(label="exchange rate")
        ask(tab)
        assert "exchange rate" in tab.locator("#answer").inner_text()
    finally:
        server.terminate()
        server.communicate()
