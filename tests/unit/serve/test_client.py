"""`discreet.connect` answers as the release itself does, and says what is wrong in a sentence."""

import http.server
import json
import socket
import threading
import time
from typing import ClassVar

import corpora
import numpy as np
import pandas as pd
import pytest
import uvicorn

import discreet
from discreet.integrations.retrieval import PublicPassages, source_of
from discreet.serve import Limits, Settings, Tokens, application, new_token
from discreet.serve.running import Guarded

TOKEN, HASH = new_token()
QUERIES = np.array([[0.1, 0.2, 0.3], [0.5, -0.5, 0.0], [0.0, 0.0, 1.0]])


@pytest.fixture(scope="module")
def address(shelf):
    """A server in a thread, which takes two queries at once from those who have the token."""
    settings = Settings(limits=Limits(queries=2), tokens=Tokens((HASH,)), threads=1)
    app = application(shelf, settings)
    server = uvicorn.Server(uvicorn.Config(app, http=Guarded, ws="none", log_config=None))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def served(address):
    return discreet.connect(address, TOKEN)


def opened(folder, name):
    return discreet.load(folder / f"{name}.safetensors")


def close(given, wanted):
    np.testing.assert_allclose(np.asarray(given), np.asarray(wanted), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "method"), [("memory", "attend"), ("numbers", "predict"), ("distances", "query")]
)
def test_numbers_are_those_of_the_release(served, folder, name, method):
    """Three queries, of a server that takes two at once."""
    wanted, errors = getattr(opened(folder, name), method)(QUERIES, stderr=True)
    answers, stderr = getattr(served[name], method)(QUERIES, stderr=True)
    close(answers, wanted)
    close(stderr, errors)
    assert answers.dtype == np.float64
    alone = getattr(served[name], method)(QUERIES[0].astype(np.float32))
    close(alone, wanted[0])
    assert alone.dtype == np.float32


def test_heads_and_members(served, folder):
    given = np.array([QUERIES[:1], QUERIES[1:2]])
    close(served["heads"].attend(given), opened(folder, "heads").attend(given))
    second = opened(folder, "memories")[1].attend(QUERIES)
    close(served["memories"].attend(QUERIES, member=1), second)


def test_models_take_what_they_take_in_process(served, folder):
    table = {"age": [30, 70, None], "job": ["nurse", None, "clerk"]}
    model = opened(folder, "table")
    assert served["table"].predict(table).tolist() == model.predict(table).tolist()
    assert served["table"].predict(pd.DataFrame(table)).tolist() == model.predict(table).tolist()
    close(served["table"].probabilities(table), model.predict_proba(table))
    labels = opened(folder, "classes").predict(QUERIES)
    assert served["classes"].predict(QUERIES).tolist() == labels.tolist()
    assert served["classes"].predict(QUERIES[0]) == labels[0]
    close(served["arrays"].predict(QUERIES), opened(folder, "arrays").predict(QUERIES))


def test_classifiers_say_what_they_decide_by_and_how_sure_it_is(served, folder):
    table = {"age": [30, 70, None], "job": ["nurse", None, "clerk"]}
    model = opened(folder, "table")
    keys = model.keys(table)
    close(served["table"].logits(table), model.release_.logits(keys))
    close(served["table"].stderr(table), model.release_.stderr(keys))
    close(served["table"].predict_proba(table), model.predict_proba(table))
    close(served["classes"].logits(QUERIES), opened(folder, "classes").logits(QUERIES))
    with pytest.raises(discreet.InvalidInput, match="a release with stderr, and classes has none"):
        served["classes"].stderr(QUERIES)
    with pytest.raises(discreet.InvalidInput, match="Expected predict in place of logits"):
        served["numbers"].logits(QUERIES)


def test_all_topics_of_a_corpus(served, folder):
    assert served["corpus"].map() == opened(folder, "corpus").map()
    with pytest.raises(discreet.InvalidInput, match="Expected attend in place of map"):
        served["memory"].map()


def test_a_corpus_gives_the_same_answer(served, folder):
    corpus = opened(folder, "corpus").with_encoder(corpora.encode)
    for question in ("the card arrived", "horse"):
        assert served["corpus"].ask(question, topics=2) == corpus.ask(question, topics=2)
        assert str(served["corpus"].ask(question)) == str(corpus.ask(question))


def test_a_topic_gives_the_same_answer(served, folder):
    corpus = opened(folder, "corpus")
    for each in corpus.map():
        assert served["corpus"].ask_topic(each.question) == each
    with pytest.raises(discreet.InvalidInput, match="the name of a topic"):
        served["corpus"].ask_topic("no topic")


def test_retrievers_take_what_is_served(served, folder):
    """The same texts and figures as of the file."""
    corpus, memory = (opened(folder, name) for name in ("corpus", "memory"))
    sources = [served["corpus"], corpus.with_encoder(corpora.encode)]
    there, here = (source_of(each).find("card horse", 6) for each in sources)
    assert there == here
    pages, points = ["one page", "another"], np.array([[1.0, 0.0], [0.0, 1.0]])
    there, here = (
        PublicPassages(each, pages, vectors=points, encoder=lambda text: QUERIES[0]).find("why", 2)
        for each in (served["memory"], memory)
    )
    assert [each.text for each in there] == [each.text for each in here]
    close([each.score for each in there], [each.score for each in here])


def test_names_cards_and_promises(served, folder):
    assert set(served.names) == set(served) == {path.stem for path in folder.iterdir()}
    assert len(served) == 10
    for name in ("memory", "corpus"):
        release = opened(folder, name)
        assert str(served[name].card) == str(release.card)
        assert served[name].card.stated == release.card.stated
        assert served[name].guarantee == release.guarantee
    assert served["memory"].card.stated["builder"] == "the tests"
    assert "memory" in repr(served)
    assert TOKEN not in repr(served) + repr(served["memory"])


def test_what_is_wrong_is_said_in_a_sentence(served):
    with pytest.raises(discreet.InvalidInput, match="Expected name='none' to be one of"):
        served["none"]
    with pytest.raises(discreet.InvalidInput, match="Expected 3 numbers in each query"):
        served["memory"].attend([[0.1, 0.2]])
    with pytest.raises(discreet.InvalidInput, match="no NaN"):
        served["memory"].attend([[0.1, np.nan, 0.2]])
    with pytest.raises(discreet.InvalidInput, match="real numbers"):
        served["memory"].attend([["a", "b", "c"]])
    with pytest.raises(discreet.InvalidInput, match="Expected attend in place of ask"):
        served["memory"].ask("why?")
    with pytest.raises(discreet.InvalidInput, match="labels have none"):
        served["classes"].predict(QUERIES, stderr=True)
    with pytest.raises(discreet.InvalidInput, match="Expected predict in place of probabilities"):
        served["numbers"].probabilities(QUERIES)
    with pytest.raises(discreet.InvalidInput, match="by name, or a frame"):
        served["table"].predict(QUERIES)
    with pytest.raises(discreet.InvalidInput, match="these columns: age, job"):
        served["table"].predict({"age": [1]})
    with pytest.raises(discreet.InvalidInput, match="one value for each row"):
        served["table"].predict({"age": [1], "job": []})
    with pytest.raises(discreet.InvalidInput, match="1 to 10,000 characters"):
        served["corpus"].ask(" ")


def test_tokens_that_are_wrong_or_could_be_read_are_refused(address):
    for token in (None, "wrong"):
        with pytest.raises(discreet.DiscreetError, match="Expected a token") as refused:
            discreet.connect(address, token)
        assert not isinstance(refused.value, discreet.InvalidInput)
    with pytest.raises(discreet.InvalidInput, match="Expected https for a token"):
        discreet.connect("http://answers.example", TOKEN)
    with pytest.raises(discreet.InvalidInput, match="printable") as odd:
        discreet.connect("https://answers.example", "secret\r\nhost: evil")
    assert "secret" not in str(odd.value)


@pytest.mark.parametrize(
    "address",
    [
        "",
        "answers.example",
        "ftp://answers.example",
        "file:///etc/passwd",
        "http://",
        "http://a:99999",
        "http://a:b",
        "http://user:secret@answers.example",
        "http://a/?q=1",
        "http://a/#f",
        "http://a b",
        "http://a\r\nx: y",
        "http://é.example",
        None,
        7,
    ],
)
def test_addresses_that_are_none_are_refused(address):
    with pytest.raises(discreet.InvalidInput, match="the address of a server"):
        discreet.connect(address)


LISTED = b'{"releases": [], "limits": {"queries": 1, "body": 1}}'


class Strange(http.server.BaseHTTPRequestHandler):
    """A server of something else: what it answers depends on where it is asked."""

    heard: ClassVar = []

    def do_GET(self):
        self.heard.append((self.path, self.headers.get("authorization")))
        where = self.path.split("/")[1]
        status, headers, body = {
            "html": (200, {}, b"<html></html>"),
            "list": (200, {}, b"[]"),
            "deep": (200, {}, b"[" * 100_000),
            "empty": (200, {}, b""),
            "away": (302, {"location": f"http://{self.headers['host']}/stolen/v1"}, b"{}"),
            "bug": (500, {}, b'{"error": "\x1b[2J' + b"x" * 9_000 + b'"}'),
            "nothing": (404, {}, b"{}"),
            "crowded": (429, {}, b'{"error": "Expected fewer."}'),
            "soon": (429 if self.heard.count(self.heard[-1]) < 2 else 200, {}, LISTED),
        }.get(where, (200, {}, b"{}"))
        if where == "slow":
            time.sleep(1)
        self.send_response(status)
        for name, value in {**headers, "content-length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def strange():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Strange) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    "where", ["html", "list", "deep", "empty", "away", "bug", "nothing", "object", "slow"]
)
def test_whoever_answers_otherwise_is_no_server_of_ours(strange, where):
    with pytest.raises(discreet.DiscreetError) as refused:
        discreet.connect(f"{strange}/{where}", "token", timeout=0.3)
    said = str(refused.value)
    assert len(said) <= 500
    assert said.isprintable()
    assert not any(path.startswith("/stolen") for path, _ in Strange.heard)


ASKED = np.zeros((2, 3))
MEMORY = {"name": "m", "kind": "memory", "verb": "attend"}
CORPUS = {"name": "m", "kind": "corpus", "verb": "ask"}
LIMITS = {"queries": 100, "body": 10**6}
LINES = [{"title": "guarantee", "text": "\x1b[2Jgone"}]
SAID = {"epsilon": 1.0, "delta": 0.0, "neighbours": "replace", "unit": "row", "scope": "it"}
# What a server answers where it is asked, and what is asked of it.
FALSE = {
    "a name that moves the cursor": ({**MEMORY, "name": "\x1b[2J"}, LIMITS, {}, list),
    "a name that is none": ({**MEMORY, "name": 5}, LIMITS, {}, list),
    "no kind": ({"name": "m"}, LIMITS, {}, lambda found: found["m"]),
    "no limits": (MEMORY, {}, {}, list),
    "limits of nothing": (MEMORY, {"queries": 0, "body": 1}, {}, list),
    "limits that are texts": (MEMORY, {"queries": "many", "body": 1}, {}, list),
    "no answers": (MEMORY, LIMITS, {}, lambda found: found["m"].attend(ASKED)),
    "one answer of two": (
        *(MEMORY, LIMITS, {"answers": [[1.0]]}),
        lambda found: found["m"].attend(ASKED),
    ),
    "more answers": (
        *(MEMORY, LIMITS, {"answers": [[1.0]] * 3}),
        lambda found: found["m"].attend(ASKED),
    ),
    "texts": (
        *(MEMORY, LIMITS, {"answers": [["a"]] * 2}),
        lambda found: found["m"].attend(ASKED),
    ),
    "lists of two lengths": (
        *(MEMORY, LIMITS, {"answers": [[1.0], []]}),
        lambda found: found["m"].attend(ASKED),
    ),
    "half an answer in words": (
        *(CORPUS, LIMITS, {"answers": {}}),
        lambda found: found["m"].ask("why?"),
    ),
    "no card": (MEMORY, LIMITS, {}, lambda found: found["m"].card),
    "no guarantee": (MEMORY, LIMITS, {}, lambda found: found["m"].guarantee),
    "a guarantee of texts": (
        *(MEMORY, LIMITS, {"guarantee": dict.fromkeys(SAID, "x")}),
        lambda found: found["m"].guarantee,
    ),
}


@pytest.fixture
def liar(monkeypatch):
    """Return what connects to a server that answers whatever it is told to."""

    def connected(release, limits, answer):
        listed = {"releases": [release], "limits": limits}
        said = {"/v1": json.dumps(listed).encode()}

        def exchanged(_, path, fields):
            return 200, said.get(path, json.dumps(answer).encode())

        monkeypatch.setattr("discreet.client._Wire._exchanged", exchanged)
        return discreet.connect("http://127.0.0.1:1")

    return connected


@pytest.mark.parametrize("name", FALSE)
def test_what_a_server_sends_is_not_believed(liar, name):
    *said, ask = FALSE[name]
    with pytest.raises(discreet.DiscreetError, match="Expected a server of discreet at"):
        ask(liar(*said))


def test_no_text_of_a_server_moves_the_cursor(liar):
    card = {"card": {}, "lines": LINES, "guarantee": {**SAID, "unit": "row\x1b[2J"}}
    found = liar({**MEMORY, "kind": "\x1b[2Jmemory"}, LIMITS, card)["m"]
    for each in (repr(found), str(found.card), str(found.guarantee)):
        assert "\x1b" not in each


def test_a_server_that_is_busy_is_asked_again_until_time_is_up(strange):
    assert discreet.connect(f"{strange}/soon").names == ()
    with pytest.raises(discreet.DiscreetError, match="Expected fewer"):
        discreet.connect(f"{strange}/crowded", timeout=0.1)


def test_nobody_there_is_said():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(discreet.DiscreetError, match="to answer, and it does not"):
        discreet.connect(f"http://127.0.0.1:{port}", timeout=1)


def test_an_answer_survives_being_json():
    answer = discreet.text.Answer(question="why?", shares={"a": discreet.text.Share(0.5, 0.1)})
    assert discreet.text.Answer.from_dict(json.loads(json.dumps(answer.to_dict()))) == answer
