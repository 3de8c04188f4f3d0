"""What comes over HTTP is what the same release answers in process, with its ±."""

import io
import json
import logging
from pathlib import Path

import corpora
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import ipc
from starlette.testclient import TestClient

import discreet
from discreet.serve import Limits, Settings, Shelf, application
from discreet.serve.routes import ROUTES
from discreet.testing import Seeded

ARROW = {"content-type": "application/vnd.apache.arrow.stream"}
QUERIES = [[0.1, 0.2, 0.3], [0.5, -0.5, 0.0]]


def opened(folder, name):
    return discreet.load(folder / f"{name}.safetensors")


def close(given, wanted):
    np.testing.assert_allclose(np.asarray(given), np.asarray(wanted), rtol=1e-5, atol=1e-6)


def asked(client, path, **fields):
    response = client.post(f"/v1/{path}", json=fields)
    assert response.status_code == 200, response.text
    return response.json()


@pytest.mark.parametrize(
    ("path", "method"),
    [("memory/attend", "attend"), ("numbers/predict", "predict"), ("distances/query", "query")],
)
def test_arrays_are_answered_as_in_process(client, folder, path, method):
    name = path.partition("/")[0]
    wanted, errors = getattr(opened(folder, name), method)(np.array(QUERIES), stderr=True)
    found = asked(client, path, queries=QUERIES)
    close(found["answers"], wanted)
    close(found["stderr"], errors)
    assert np.all(np.asarray(found["stderr"]) > 0)
    assert found.keys() == {"answers", "stderr"}
    assert asked(client, path, queries=QUERIES, stderr=False).keys() == {"answers"}


def test_answers_of_float32_are_the_same_to_the_bit(client, folder):
    queries = np.array(QUERIES, dtype=np.float32)
    wanted = opened(folder, "memory").attend(queries)
    found = asked(client, "memory/attend", queries=queries.tolist(), stderr=False)["answers"]
    np.testing.assert_array_equal(np.asarray(found, dtype=np.float32), wanted)


def test_huge_queries_are_clipped_in_their_own_direction(client, folder):
    long = [[1e300, 1e300, 0.0]]
    wanted = opened(folder, "memory").attend(np.array([[1.0, 1.0, 0.0]]) * 9)
    close(asked(client, "memory/attend", queries=long)["answers"], wanted)


def test_heads_and_members_are_asked_by_shape_and_by_number(client, folder):
    given = np.array([QUERIES, QUERIES]) / 2
    wanted = opened(folder, "heads").attend(given)
    close(asked(client, "heads/attend", queries=given.tolist())["answers"], wanted)
    second = opened(folder, "memories")[1].attend(np.array(QUERIES))
    close(asked(client, "memories/attend", queries=QUERIES, member=1)["answers"], second)
    first = opened(folder, "memories")[0].attend(np.array(QUERIES))
    close(asked(client, "memories/attend", queries=QUERIES)["answers"], first)
    assert not np.allclose(first, second)


def test_a_classifier_says_labels_and_probabilities(client, folder):
    model = opened(folder, "classes")
    found = asked(client, "classes/predict", queries=QUERIES)
    assert found["answers"] == model.predict(np.array(QUERIES)).tolist()
    close(found["probabilities"], model.probabilities(np.array(QUERIES)))
    assert found["classes"] == ["no", "yes"]
    close(found["logits"], model.logits(np.array(QUERIES)))
    alone = asked(client, "classes/predict", queries=QUERIES[0])
    assert alone["answers"] == found["answers"][0]
    close(alone["probabilities"], found["probabilities"][0])
    assert "stderr" not in found  # that of a release without second moments is not known


def test_estimators_take_rows_by_name_or_arrays(client, folder):
    model = opened(folder, "table")
    rows = [{"job": "nurse", "age": 30}, {"age": 70, "job": None}]
    found = asked(client, "table/predict", rows=rows)
    table = {"age": [30, 70], "job": ["nurse", None]}
    assert found["answers"] == model.predict(table).tolist()
    close(found["probabilities"], model.predict_proba(table))
    close(np.asarray(found["stderr"])[:, :1], model.release_.stderr(model.keys(table)))
    assert np.shape(found["stderr"]) == np.shape(found["probabilities"])
    model = opened(folder, "squares")
    found = asked(client, "squares/predict", queries=QUERIES)
    assert found["answers"] == model.predict(np.array(QUERIES)).tolist()
    scores, errors = model.release_.predict(model.keys(np.array(QUERIES)), stderr=True)
    close(found["scores"], scores)
    close(found["stderr"], errors)
    assert found["stderr_of"] == "scores"
    numbers, errors = opened(folder, "arrays").predict(np.array(QUERIES), return_std=True)
    found = asked(client, "arrays/predict", queries=QUERIES)
    close(found["answers"], numbers)
    close(found["stderr"], errors)


def test_a_corpus_is_asked_in_words_and_by_topic(client, folder):
    corpus = opened(folder, "corpus").with_encoder(corpora.encode)
    question = "the card arrived"
    found = asked(client, "corpus/ask", question=question, topics=2)["answers"]
    assert found == json.loads(json.dumps(corpus.ask(question, topics=2).to_dict()))
    several = asked(client, "corpus/ask", questions=[question, "horse music"])["answers"]
    assert [each["question"] for each in several] == [question, "horse music"]
    by_topic = asked(client, "corpus/ask", topic="bank loan")["answers"]
    assert by_topic["topics"][0]["name"] == "bank loan"
    listed = client.get("/v1/corpus/topics").json()
    assert {each["question"] for each in listed["topics"]} == set(corpora.TOPICS)
    assert [each["word"] for each in listed["names"]] == [each.word for each in corpus.facts]


def test_without_an_encoder_topics_are_picked(folder):
    shelf = Shelf([folder / "corpus.safetensors"])
    with TestClient(application(shelf), base_url="http://127.0.0.1") as client:
        refused = client.post("/v1/corpus/ask", json={"question": "the card arrived"})
        assert refused.status_code == 400
        assert "encoder" in refused.json()["error"]
        assert asked(client, "corpus/ask", topic="bank loan")["answers"]["covered"]
        assert client.get("/v1/corpus").json()["takes_words"] is False


def stream(**columns):
    table = pa.table(columns)
    sink = io.BytesIO()
    with ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def test_streams_of_arrow_are_answered_with_streams(client, folder):
    wanted, errors = opened(folder, "memory").attend(np.array(QUERIES), stderr=True)
    response = client.post("/v1/memory/attend", content=stream(queries=QUERIES), headers=ARROW)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == ARROW["content-type"]
    table = ipc.open_stream(response.content).read_all()
    close(table["answers"].to_pylist(), wanted)
    close(table["stderr"].to_pylist(), errors)
    rows = stream(age=[30, 70], job=["nurse", None])
    response = client.post("/v1/table/predict", content=rows, headers=ARROW)
    table = ipc.open_stream(response.content).read_all()
    assert json.loads(table.schema.metadata[b"classes"]) == ["no", "yes"]
    assert (
        table["answers"].to_pylist()
        == opened(folder, "table").predict({"age": [30, 70], "job": ["nurse", None]}).tolist()
    )
    words = stream(question=["the card arrived", "horse music"])
    response = client.post("/v1/corpus/ask", content=words, headers=ARROW)
    found = ipc.open_stream(response.content).read_all()["answers"].to_pylist()
    assert [each["question"] for each in found] == ["the card arrived", "horse music"]


def test_the_card_and_the_promise_are_those_of_the_file(client, folder):
    for name in ("memory", "table", "corpus"):
        release = opened(folder, name)
        card = getattr(release, "card_", None) or release.card
        guarantee = getattr(release, "guarantee_", None) or release.guarantee
        found = client.get(f"/v1/{name}/card").json()
        assert [(each["title"], each["text"]) for each in found["lines"]] == list(card.sentences)
        assert found["card"].keys() == card.to_dict().keys()
        assert found["guarantee"]["in_words"] == str(guarantee)
        assert found["guarantee"]["epsilon"] == guarantee.epsilon
        assert "of 1,000" in found["for_one_person"]


def test_what_the_builder_states_is_served_as_that(client):
    found = client.get("/v1/memory/card").json()
    assert found["card"]["stated"] == {"data": "made-up rows", "builder": "the tests"}
    lines = {each["title"]: each for each in found["lines"]}
    assert lines["stated: data"]["text"] == "made-up rows"
    assert [lines[f"stated: {name}"]["stated"] for name in ("data", "builder")] == [True, True]
    assert "stated" not in client.get("/v1/distances/card").json()["card"]


def test_what_is_served_is_listed_with_how_to_ask(client, folder):
    listed = client.get("/v1").json()
    assert "no budget" in listed["note"]
    found = {each["name"]: each for each in listed["releases"]}
    assert found.keys() == {path.stem for path in folder.iterdir()}
    assert found["memory"]["verb"] == "attend"
    assert found["memory"]["key_dim"] == 3
    assert len(found["memory"]["examples"]) == 10  # the origin, and the file's public points
    assert [each["name"] for each in found["table"]["columns"]] == ["age", "job"]
    assert client.get("/v1/memory").json() == found["memory"]


def test_the_description_has_every_route_and_field(client):
    described = client.get("/openapi.json").json()
    for each in ROUTES:
        operation = described["paths"][each.path][each.method.lower()]
        assert operation["operationId"] == each.name
        fields = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
        assert list(fields.get("schema", {}).get("properties", {})) == list(each.fields or {})
        came = operation["responses"]["200"].get("content", {}).get("application/json", {})
        assert ("answers" in came.get("schema", {}).get("properties", {})) == bool(each.fields)
    page = client.get("/docs").text
    assert all(each.path in page for each in ROUTES)
    for each in client.get("/v1").json()["releases"]:
        [route] = [one for one in ROUTES if one.name == each["verb"]]
        assert set(each["fields"]) <= set(route.fields)


def test_metrics_count_requests_and_answers_and_nothing_that_was_asked(client):
    def counted(name):
        lines = client.get("/metrics").text.splitlines()
        return [float(each.rpartition(" ")[2]) for each in lines if each.startswith(name)]

    answers = 'discreet_answers_total{route="/v1/{name}/attend"}'
    asked(client, "memory/attend", queries=QUERIES)
    before = counted(answers)
    asked(client, "memory/attend", queries=QUERIES)
    assert counted(answers) == [before[0] + 2]
    client.get("/v1/secret-name-of-somebody")
    assert "secret" not in client.get("/metrics").text


@pytest.mark.parametrize("logged", [False, True])
def test_what_is_asked_is_in_no_log_unless_that_is_wanted(folder, caplog, logged):
    app = application(Shelf([folder / "memory.safetensors"]), Settings(log_queries=logged))
    with (
        TestClient(app, base_url="http://127.0.0.1") as client,
        caplog.at_level(logging.DEBUG, "discreet.serve"),
    ):
        asked(client, "memory/attend", queries=[[0.123456, 0.0, 0.0]])
        client.get("/v1/memory?q=0.123456")
        client.post("/v1/memory/attend", content=b"0.123456")
    assert ("0.123456" in caplog.text) is logged
    assert "POST /v1/{name}/attend 200" in caplog.text


def test_pages_and_answers_have_the_headers_that_protect(client):
    for path in ("/", "/docs", "/v1", "/nothing", "/health"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in headers


GOLDEN = Path(__file__).parents[2] / "golden" / "files"


@pytest.mark.parametrize(
    "path",
    [each for each in sorted(GOLDEN.glob("*.safetensors")) if "structure" not in each.name],
    ids=lambda each: each.stem,
)
def test_files_of_earlier_versions_are_served_with_heads_and_all(path):
    if path.stem in {"discovered-v1", "table-v1"}:
        with pytest.raises(discreet.InvalidInput, match="nothing else is asked by HTTP"):
            Shelf([path], allow_not_private=True)
        return
    shelf = Shelf([path], allow_not_private=True)
    with TestClient(application(shelf), base_url="http://127.0.0.1") as client:
        about = client.get(f"/v1/{path.stem}").json()
        if about["kind"] == "corpus":
            assert client.get(f"/v1/{path.stem}/topics").json()["topics"]
            return
        queries = np.full((*about.get("heads", ()), 2, about["key_dim"]), 0.1)
        found = asked(client, f"{path.stem}/{about['verb']}", queries=queries.tolist())
        assert np.shape(found["answers"])[: queries.ndim - 1] == queries.shape[:-1]


def test_files_that_are_not_private_are_refused_unless_allowed(tmp_path):
    keys = np.eye(3)
    made = discreet.build(
        keys, keys, epsilon=9.0, delta=1e-5, scale=1.0, eps_s=0.3, entropy=Seeded(1)
    )
    made.save(tmp_path / "toy.safetensors")
    with pytest.raises(discreet.InvalidInput, match="NOT PRIVATE"):
        Shelf([tmp_path / "toy.safetensors"])
    shelf = Shelf([tmp_path / "toy.safetensors"], allow_not_private=True)
    with TestClient(application(shelf), base_url="http://127.0.0.1") as client:
        assert client.get("/v1/toy").json()["private"] is False


def test_a_bug_is_no_traceback(folder, caplog, monkeypatch):
    shelf = Shelf([folder / "memory.safetensors"])
    monkeypatch.setattr(shelf["memory"], "answer", lambda *_: 1 / 0)
    with TestClient(
        application(shelf), base_url="http://127.0.0.1", raise_server_exceptions=False
    ) as client:
        response = client.post("/v1/memory/attend", json={"queries": QUERIES})
    assert response.status_code == 500
    assert response.json() == {
        "error": "A bug of the server, sorry: the request may have been right."
    }
    assert "ZeroDivisionError" in caplog.text
    assert "Traceback" not in caplog.text


def test_limits_are_checked():
    with pytest.raises(discreet.InvalidInput, match="max_body"):
        Limits(body=0)
    with pytest.raises(discreet.InvalidInput, match="timeout"):
        Limits(seconds=0)
