"""Private answers from texts: ours beside what dp-rag and DP-SynRAG published, for `peers.py`.

The records are those of dp-rag's benchmark, whose folder has its own results too; doctors' answers,
which are not public, are rebuilt as in `texts_rag.py`. Nothing of dp-rag or DP-SynRAG is run.
"""

import time
from dataclasses import replace
from typing import Any

import numpy as np
import texts_rag
from peers_data import Places
from sharing import ROOT, tell

DRAWS, RECORDS = 3, 5_000
EPSILONS = (1.0, texts_rag.DPRAG_EPSILON, 10.0)
NEAREST = 3
DPRAG, SYNRAG = "dp-rag", "DP-SynRAG"

Found = dict[str, Any]


def published() -> Found:
    """Return the figures of others, as they wrote them."""
    return dict(texts_rag.PUBLISHED)


def measured(places: Places, draws: int = DRAWS, records: int = RECORDS) -> Found | None:
    """Return shares of right answers, by ε; None if dp-rag's data are not there."""
    if places.dprag is None or not (places.dprag / "evaluation.json").exists():
        tell("texts: no data of dp-rag; --dprag FOLDER says where they are")
        return None
    encoder = texts_rag.encoder_of("static")
    kept = texts_rag.Remembered(encoder, ROOT / "build" / "vectors")
    bench = texts_rag.Bench(places.dprag, replace(encoder, raw=kept), kept, draws)
    data = bench.records(records)
    found: Found = {"records": records, "draws": draws, "delta": texts_rag.DELTA, "right": {}}
    for epsilon in EPSILONS:
        drawn = [
            texts_rag.shares(texts_rag.right(bench.build(data, epsilon, draw), data), data.counts)
            for draw in range(draws)
        ]
        found["right"][f"{epsilon:g}"] = [float(f"{e:.4g}") for e in np.mean(drawn, axis=0)]
    few = {name for name, count in data.counts.items() if count < 30}
    found["few"] = _of(bench, data, few, draws)
    found["pace"] = _pace(bench, data)
    return found


def _of(bench: texts_rag.Bench, data: Any, names: set[str], draws: int) -> Found:  # noqa: ANN401
    """Return the share that is right among two, of diseases that few records have, at ε = 10."""
    rights = [texts_rag.right(bench.build(data, EPSILONS[-1], draw), data) for draw in range(draws)]
    some = [texts_rag.shares({name: each[name] for name in names}, data.counts) for each in rights]
    return {"diseases": len(names), "right": [float(f"{e:.4g}") for e in np.mean(some, axis=0)]}


def _pace(bench: texts_rag.Bench, data: Any) -> Found:  # noqa: ANN401
    """Return the processor seconds of a build and of an answer, beside exact retrieval."""
    from discreet.text.file import to_bytes

    vectors = bench.encoder.encode_all(data.texts)
    start = time.process_time()
    corpus = bench.build(data, texts_rag.DPRAG_EPSILON)
    build = time.process_time() - start
    asked = texts_rag.medical.question(next(iter(data.symptoms.values())))
    corpus.ask(asked)
    vector = bench.encoder.encode(asked)
    return {
        "build": float(f"{build:.3g}"),
        "ask": float(f"{_least(lambda: corpus.ask(asked)):.3g}"),
        "retrieve": float(f"{_least(lambda: np.argsort(-(vectors @ vector))[:NEAREST]):.3g}"),
        "bytes": len(to_bytes(corpus)),
        "kept": int(vectors.nbytes + sum(len(text.encode()) for text in data.texts)),
    }


def _least(call: Any, times: int = 20) -> float:  # noqa: ANN401
    found = []
    for _ in range(times):
        start = time.process_time()
        call()
        found.append(time.process_time() - start)
    return float(np.median(found))
