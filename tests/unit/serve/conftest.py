"""Small releases of every kind that is served, as files; and an application that serves them."""

import warnings

import numpy as np
import pytest

pytest.importorskip("starlette", reason="needs the extra `serve`")
pytest.importorskip("uvicorn", reason="needs the extra `serve`")
pytest.importorskip("httpx2", reason="needs httpx2")
pytest.importorskip("sklearn", reason="needs the extra `sklearn`")

import corpora
from starlette.testclient import TestClient

import discreet
from discreet.serve import Limits, Settings, Shelf, application
from discreet.serve.app import LOOPBACK
from discreet.sklearn import PrivateClassifier, PrivateRegressor

SPEND = {"epsilon": 4.0, "delta": 1e-5}
COLUMNS = {"age": (0, 100), "job": ["clerk", "nurse"]}
HOST = "http://127.0.0.1"
STATED = {"data": "made-up rows", "builder": "the tests"}


def rows(count=400, dim=3):
    rng = np.random.default_rng(0)
    keys = rng.normal(size=(count, dim))
    keys /= np.linalg.norm(keys, axis=1, keepdims=True)
    return keys, np.tanh(keys[:, :2]) / 2


def write_all(folder):
    """Write a file of each kind, under the name of its kind."""
    keys, values = rows()
    labels = np.where(keys[:, 0] > 0, "yes", "no")
    table = {"age": np.arange(400) % 100, "job": np.where(keys[:, 1] > 0, "nurse", "clerk")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", discreet.MostlyNoiseWarning)
        discreet.build(
            *(keys, values),
            **SPEND,
            scale=1.0,
            kernel="fourier",
            features=64,
            reference=keys[:9],
            stated=STATED,
        ).save(folder / "memory.safetensors")
        discreet.build(
            np.stack([keys, -keys]), np.stack([values, values]), **SPEND, scale=1.0, eps_s=0.3
        ).save(folder / "heads.safetensors")
        pair = discreet.build_many([(keys, values), (-keys, values)], **SPEND, scale=1.0, eps_s=0.3)
        discreet.Memories(tuple(pair), {}, {}).save(folder / "memories.safetensors")
        discreet.least_squares(keys, values, **SPEND, rows_hint=400).save(
            folder / "numbers.safetensors"
        )
        discreet.softmax_regression(
            keys, labels, classes=["no", "yes"], rows_hint=400, **SPEND
        ).save(folder / "classes.safetensors")
        discreet.distances(keys, p=2, bounds=(-1, 1), **SPEND).save(
            folder / "distances.safetensors"
        )
        PrivateClassifier(**SPEND, columns=COLUMNS, classes=["no", "yes"], rows_hint=400).fit(
            table, labels
        ).save(folder / "table.safetensors")
        PrivateRegressor(
            **SPEND, norm=1.0, target_bounds=(-1, 1), rows_hint=400, reader="least_squares"
        ).fit(keys, keys[:, 0]).save(folder / "arrays.safetensors")
        PrivateClassifier(
            **SPEND, norm=1.0, classes=["no", "yes"], rows_hint=400, reader="least_squares"
        ).fit(keys, labels).save(folder / "squares.safetensors")
        corpus().save(folder / "corpus.safetensors")
    return folder


def corpus(**options):
    """A corpus, whose encoder no file can name."""
    return discreet.Corpus.build(
        corpora.texts(400),
        corpora.labels(400),
        encoder=corpora.encode,
        topics=list(corpora.TOPICS),
        classes=list(corpora.CLASSES),
        words=corpora.VOCABULARY,
        facts=True,
        rows_hint=1_000,
        **{"epsilon": 4.0, **options},
    )


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return write_all(tmp_path_factory.mktemp("private-folder-name"))


def shelf_of(folder, **options):
    """The files of a folder, with an encoder for texts."""
    shelf = Shelf(sorted(folder.glob("*.safetensors")), **options)
    if "corpus" in shelf:
        texts = shelf["corpus"]
        texts.corpus, texts.takes_words = texts.corpus.with_encoder(corpora.encode), True
    return shelf


@pytest.fixture(scope="session")
def shelf(folder):
    return shelf_of(folder)


@pytest.fixture(scope="session")
def client(shelf):
    with TestClient(application(shelf), base_url=HOST, raise_server_exceptions=False) as opened:
        yield opened


@pytest.fixture(scope="session")
def guarded(shelf):
    """A client of a server that takes little, and is called by no other name than its own."""
    limits = Limits(body=20_000, queries=32, seconds=0.5, text=200)
    app = application(shelf, Settings(limits=limits, hosts=LOOPBACK, threads=2))
    with TestClient(app, base_url=HOST, raise_server_exceptions=False) as opened:
        yield opened
