"""Private texts, measured: makes docs/texts.md of what corpora with topics, labels and words reach.

Run: python benchmarks/texts_data.py --fetch; python benchmarks/texts.py --clinc FILE (a quarter of
an hour on two cores, and half an hour more the first time, when texts are encoded). What was
measured is kept in benchmarks/texts.json, part by part: with --only some is measured again, and
--page only writes the page. Private answers of a model are measured by `texts_rag.py`.
"""

import argparse
import importlib.metadata
import json
import math
import os
import pathlib
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from importlib import resources

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one process for each core
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sharing import quiet_time, tell
from texts_data import CORPORA, PACKAGES, Places, Texts, looked_up
from texts_page import write_page

import discreet
from discreet.sklearn import PrivateClassifier
from discreet.testing import Seeded, Silent
from discreet.text import Corpus, PublicTexts, PublicWords, TextEncoder, Topics, Vocabulary
from discreet.text.corpus import _weights

RESULTS = pathlib.Path(__file__).with_suffix(".json")

EPSILONS = (0.5, 1.0, 4.0)
DRAWS = 3
DELTA = 1e-6
SIZES = {
    "clinc": (500, 2_000, 8_000, 20_000),
    "clinc-4": (500, 2_000, 8_000),
    "reviews": (500, 2_000, 8_000, 20_000),
    "quiz": (500, 2_000, 8_000),
    "quiz-4": (500, 2_000),
}

# Intervals: draws of the rows, and of the noise for each.
INTERVAL_DRAWS, INTERVAL_SEEDS = 4, 5

# Held-out texts: whose labels are guessed, and who ask.
TESTED, ASKING = 2_000, 400

# Words are looked for among so many of the texts nearest to a question, as one of how many.
NEAREST = 40
TYPICAL = 1.5
WORDS_ASKED = 150

# Texts of the corpus whose speed is measured.
MANY = 100_000

Job = tuple[object, ...]
Figures = dict[str, object]


# The public words that are encoded once.
COMMON = Vocabulary.common(size=4_000)


class Setting:
    """A corpus with a draw of its rows: those that it is built from, and those that ask."""

    def __init__(self, name: str, places: Places) -> None:
        self.data: Texts = CORPORA[name](places)
        self.vocabulary = Vocabulary.common(topics=self.data.topics)
        strangers = resources.files("discreet.text").joinpath("strangers.txt").read_text("utf-8")
        names = [*self.data.topics, *self.data.asked, *strangers.splitlines()]
        words = sorted(set(self.vocabulary.words) - set(COMMON.words))
        self.encoder = looked_up(places, self.data, [*names, *words], COMMON.words)
        self.topics = Topics.of(self.data.topics, self.encoder)
        self.asked = self.encoder.encode_all(self.data.asked).astype(np.float64)

    def split(self, count: int, draw: int) -> tuple[np.ndarray, np.ndarray]:
        """Return rows to build from, and rows that are held out."""
        order = np.random.default_rng(1_000 + draw).permutation(len(self.data.texts))
        return order[:count], order[count:][-TESTED:]

    def build(
        self, rows: np.ndarray, epsilon: float, seed: int | None, **changes: object
    ) -> Corpus:
        """Return a corpus of some rows; without noise if there is no seed."""
        data = self.data
        options: dict[str, object] = {"topics": self.topics, "rows_hint": len(rows)}
        if data.labels is not None:
            options |= {"classes": data.classes, "labels": [data.labels[row] for row in rows]}
        return Corpus.build(
            [data.texts[row] for row in rows],
            encoder=self.encoder,
            epsilon=epsilon,
            delta=DELTA,
            entropy=Silent() if seed is None else Seeded(seed),
            **{**options, **changes},
        )


PLACES = [Places()]  # of this process; workers are told at their start


@lru_cache(maxsize=4)
def setting(name: str) -> Setting:
    """Return a corpus, as it was read before."""
    return Setting(name, PLACES[0])


def measure_labels(job: Job) -> Figures:
    """Return labels right, errors of shares and counts, and how often intervals hold, by ε."""
    name, count = job
    at = setting(name)
    report: dict[str, dict[str, list[float]]] = {}
    for draw in range(DRAWS):
        rows, held = at.split(count, draw)
        truth = np.array([at.data.labels[row] for row in held])
        vectors = at.data.vectors[held].astype(np.float64)
        exact: dict[int, Corpus] = {}
        for epsilon in EPSILONS:
            noisy = at.build(rows, epsilon, 10 * draw + EPSILONS.index(epsilon))
            topics = len(noisy.topics)
            if topics not in exact:
                exact[topics] = at.build(rows, epsilon, None, topics=noisy.topics)
            figures = {
                "topics": topics,
                "right": _share(np.array(noisy.labels_of(vectors)) == truth),
                "right_exact": _share(np.array(exact[topics].labels_of(vectors)) == truth),
                **_errors(noisy, exact[topics], vectors[:ASKING]),
                **_others(at, (rows, held), epsilon, draw),
            }
            found = report.setdefault(f"{epsilon:g}", {})
            for key, number in figures.items():
                found.setdefault(key, []).append(_rounded(number))
    return report


def _errors(noisy: Corpus, exact: Corpus, vectors: np.ndarray) -> dict[str, float]:
    """Return how far noise moves shares, how far they differ, and the ± of counts."""
    errors, _, truth = _moved(noisy, exact, vectors)
    return {
        "share_error": math.sqrt(np.mean(errors**2)),
        "signal": math.sqrt(np.mean(np.var(truth, axis=0))),
        "count_margin": noisy.table.count_margin,
    }


def _moved(
    noisy: Corpus, exact: Corpus, vectors: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return how far noise moves shares, their ±, and shares without noise: (m, labels)."""
    weights = _weights(exact.topics.near(vectors))
    near = weights @ exact.table.cells
    truth = near / near.sum(axis=1, keepdims=True)
    shares, margins = noisy.table.shares(weights)
    return np.abs(shares - truth), margins, truth


def _others(
    at: Setting, split: tuple[np.ndarray, np.ndarray], epsilon: float, draw: int
) -> dict[str, float]:
    """Return what a memory and rounds guess of the same texts, at the same ε."""
    rows, held = split
    truth = np.array([at.data.labels[row] for row in held])
    vectors = at.data.vectors[held].astype(np.float64)
    keys = at.data.vectors[rows].astype(np.float64)
    labels = np.array([at.data.labels[row] for row in rows])
    classes = np.array(at.data.classes)
    memory = discreet.build(
        keys,
        (labels[:, None] == classes).astype(np.float64),
        epsilon=epsilon,
        delta=DELTA,
        rows_hint=len(rows),
        entropy=Seeded(draw),
    )
    rounds = PrivateClassifier(
        epsilon, DELTA, norm=1.0, classes=classes, rows_hint=len(rows), entropy=Seeded(draw)
    ).fit(keys, labels)
    return {
        "right_memory": _share(classes[np.argmax(memory.attend(vectors), axis=1)] == truth),
        "right_rounds": _share(rounds.predict(vectors) == truth),
    }


def measure_intervals(job: Job) -> Figures:
    """Return how often intervals hold, over many draws of the noise, by ε."""
    name, count = job
    at = setting(name)
    report: dict[str, dict[str, list[float]]] = {}
    for draw in range(INTERVAL_DRAWS):
        rows, held = at.split(count, 100 + draw)
        asking = at.data.vectors[held[:ASKING]].astype(np.float64)
        for epsilon in EPSILONS:
            exact = at.build(rows, epsilon, None)
            found = report.setdefault(f"{epsilon:g}", {"shares_hold": [], "counts_hold": []})
            for seed in range(INTERVAL_SEEDS):
                noisy = at.build(rows, epsilon, 500 + 10 * draw + seed)
                errors, margins, _ = _moved(noisy, exact, asking)
                found["shares_hold"].append(_share(errors <= margins + 1e-12))
                counts = np.abs(noisy.table.counts - exact.table.counts)
                found["counts_hold"].append(_share(counts <= noisy.table.count_margin + 1e-9))
    return report


def measure_strangers(job: Job) -> Figures:
    """Return how many questions are said to be covered: strangers of any kind, and own ones."""
    [name] = job
    at = setting(name)
    rows, held = at.split(2_000, 0)
    corpus = at.build(rows, 1.0, 0)

    def covered(vectors: np.ndarray) -> float:
        return _share(at.topics.near(vectors).max(axis=1) >= corpus.threshold)

    found: Figures = {
        "threshold": _rounded(corpus.threshold),
        "own texts": covered(at.data.vectors[held].astype(np.float64)),
        "own questions": covered(at.asked),
    }
    family = name.partition("-")[0]
    for other in OTHERS:
        if other != family:
            data = setting(other).data
            asked = setting(other).asked
            rng = np.random.default_rng(0)
            some = rng.choice(len(data.texts), 400, replace=False)
            found[f"texts of {other}"] = covered(data.vectors[some].astype(np.float64))
            asked = setting(other).asked
            found[f"questions of {other}"] = covered(asked)
    return found


def measure_words(job: Job) -> Figures:
    """Return how many words are shown, and how many of these are truly typical."""
    name, count, epsilon = job
    at = setting(name)
    found: dict[str, list[float]] = {}
    for draw in range(DRAWS):
        rows, held = at.split(count, draw)
        corpus = at.build(rows, epsilon, 20 * draw + 1, words=True)
        truth = Truth(at, rows, at.vocabulary)
        asked = at.data.vectors[held[:WORDS_ASKED]].astype(np.float64)
        shown = {
            "questions": [(v, corpus.ask_vector(v).words or ()) for v in asked],
            "typed": [(v, corpus.ask_vector(v).words or ()) for v in at.asked],
            "topics": [
                (corpus.topics.vectors[at_].astype(np.float64), each.words or ())
                for each in corpus.map()
                for at_ in [corpus.topics.names.index(each.question)]
            ],
        }
        for kind, answers in shown.items():
            lifts = [truth.lifts(vector, words) for vector, words in answers]
            every = np.concatenate(lifts) if lifts else np.zeros(0)
            found.setdefault(f"{kind} words", []).append(_rounded(len(every) / len(answers)))
            found.setdefault(f"{kind} with any", []).append(
                _share(np.array([len(each) > 0 for each in lifts]))
            )
            found.setdefault(f"{kind} shown", []).append(len(every))
            found.setdefault(f"{kind} typical", []).append(int(np.sum(every >= TYPICAL)))
    return found


class Truth:
    """How typical words truly are: in how many of the nearest texts, and of all."""

    def __init__(self, at: Setting, rows: np.ndarray, vocabulary: Vocabulary) -> None:
        self.vectors = at.data.vectors[rows]
        self.places = {word: place for place, word in enumerate(vocabulary.words)}
        self.said = np.zeros((len(rows), len(vocabulary.words)), dtype=bool)
        # All words of a text, not only those that it marks.
        every = Vocabulary(words=vocabulary.words, most=1_000)
        for row, place in enumerate(rows):
            self.said[row, list(every.marks(at.data.texts[place]))] = True
        self.everywhere = self.said.mean(axis=0)

    def lifts(self, vector: np.ndarray, words: Sequence[str]) -> np.ndarray:
        """Return how many times more often words are in the nearest texts than in all."""
        if not words:
            return np.zeros(0)
        nearest = np.argsort(-(self.vectors @ vector.astype(np.float32)))
        near = self.said[nearest[: len(self.vectors) // NEAREST]].mean(axis=0)
        places = [self.places[word] for word in words]
        return near[places] / np.maximum(self.everywhere[places], 0.5 / len(self.vectors))


def measure_finding(job: Job) -> Figures:
    """Return labels right with other topics than names: found privately, or from public texts."""
    name, count, kind = job
    at = setting(name)
    found: dict[str, list[float]] = {}
    for draw in range(DRAWS):
        rows, held = at.split(count, draw)
        public = rows
        topics: object = at.topics
        if kind == "public words":
            topics = PublicWords()
        elif kind == "public texts":
            # Half of what is held out stands for texts that anybody may read.
            held, public = held[: len(held) // 2], held[len(held) // 2 :]
            topics = PublicTexts([at.data.texts[row] for row in public], min(150, len(public) // 4))
        truth = np.array([at.data.labels[row] for row in held])
        vectors = at.data.vectors[held].astype(np.float64)
        noisy = at.build(rows, 1.0, draw, topics=topics)
        figures = {
            "topics": len(noisy.topics),
            "right": _share(np.array(noisy.labels_of(vectors)) == truth),
            "covered": _share(noisy.topics.near(vectors).max(axis=1) >= noisy.threshold),
            "count_margin": noisy.table.count_margin,
        }
        for key, number in figures.items():
            found.setdefault(key, []).append(_rounded(number))
        if draw == 0:
            order = np.argsort(-noisy.table.counts)[:12]
            found["names"] = [noisy.topics.names[each] for each in order]
    return found


def measure_speed(job: Job) -> Figures:
    """Return seconds: to build a corpus of many texts without its encoder, and to ask."""
    del job
    at = setting("clinc")
    rng = np.random.default_rng(0)
    rows = rng.integers(0, len(at.data.texts), MANY)
    texts = [f"{at.data.texts[row]} ({number})" for number, row in enumerate(rows)]
    made = at.data.vectors[rows] + 0.02 * rng.standard_normal((MANY, 384)).astype(np.float32)
    table = dict(zip(texts, made / np.linalg.norm(made, axis=1, keepdims=True), strict=True))

    def raw(text: str) -> np.ndarray:
        found = table.get(text)
        return at.encoder.raw(text) if found is None else found

    fake = TextEncoder("custom", 384, raw)
    labels = [at.data.labels[row] for row in rows]
    options = {"encoder": fake, "topics": at.topics, "classes": at.data.classes, "rows_hint": MANY}
    found: Figures = {}
    for kind, changes in (("topics", {}), ("words", {"words": at.vocabulary})):
        times = []
        for seed in range(3):
            start, used = time.perf_counter(), time.process_time()
            corpus = Corpus.build(texts, labels, entropy=Seeded(seed), **options, **changes)
            times.append((time.perf_counter() - start, time.process_time() - used))
        seconds, used = map(min, zip(*times, strict=True))
        found[f"{kind} a second"] = round(MANY / seconds)
        found[f"{kind} a CPU second"] = round(MANY / used)
        vector = at.topics.vectors[0]
        found[f"{kind} ask ms"] = _rounded(
            1_000 * quiet_time(lambda corpus=corpus, vector=vector: corpus.ask_vector(vector))
        )
    return found


OTHERS = ("clinc", "reviews", "quiz", "chat")

PARTS: dict[str, tuple[Callable[[Job], Figures], list[Job]]] = {
    "labels": (
        measure_labels,
        [(name, size) for name, sizes in SIZES.items() for size in sizes],
    ),
    "intervals": (
        measure_intervals,
        [(name, size) for name in SIZES for size in (500, 2_000)],
    ),
    "strangers": (measure_strangers, [(name,) for name in CORPORA]),
    "words": (
        measure_words,
        [
            (name, size, each)
            for name, sizes in (
                ("clinc", (8_000, 20_000)),
                ("reviews", (8_000, 20_000)),
                ("chat", (8_000, 20_000)),
                ("quiz", (8_000,)),
            )
            for size in sizes
            for each in (1.0, 4.0)
        ],
    ),
    "finding": (
        measure_finding,
        [
            (name, size, kind)
            for name, sizes in (
                ("clinc", (2_000, 8_000, 20_000)),
                ("reviews", (2_000, 8_000, 20_000)),
                ("quiz", (2_000, 8_000)),
            )
            for size in sizes
            for kind in ("names", "public words", "public texts")
        ],
    ),
    "speed": (measure_speed, [("clinc",)]),
}


def measure(part: str, places: Places, corpora: Sequence[str], workers: int) -> None:
    """Measure a part, and write down each of its jobs."""
    work, jobs = PARTS[part]
    jobs = [job for job in jobs if job[0] in corpora]
    start = time.monotonic()
    alone = 1 if part == "speed" else workers
    with ProcessPoolExecutor(alone, initializer=_prepared, initargs=(places,)) as pool:
        for job, found in zip(jobs, pool.map(work, jobs), strict=True):
            keep(part, {key_of(job): found})
    tell(f"{part}: {time.monotonic() - start:.0f} s")
    return found


def key_of(job: Job) -> str:
    """Return the name of a job in the report."""
    return " ".join(f"{each:g}" if isinstance(each, float) else str(each) for each in job)


def _prepared(places: Places) -> None:
    # That seeds are for tests, and that counts of few texts are mostly noise.
    warnings.simplefilter("ignore")
    PLACES[0] = places


def _share(holds: np.ndarray) -> float:
    return _rounded(float(np.mean(holds)))


def _rounded(number: float) -> float:
    return float(f"{number:.4g}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is asked for, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--packages", type=pathlib.Path, default=Places().packages)
    parser.add_argument("--clinc", type=pathlib.Path, help="the file clinc_minilm.npz")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=tuple(PARTS))
    parser.add_argument("--corpus", nargs="+", choices=CORPORA, default=tuple(CORPORA))
    parser.add_argument("--page", action="store_true", help="only write the page again")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    options = parser.parse_args(arguments)
    if not options.page:
        places = Places(options.packages, options.clinc)
        for part in options.only:
            measure(part, places, options.corpus, options.workers)
    write_page(known())


def known() -> dict[str, Figures]:
    """Return what was measured so far."""
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}


def keep(part: str, found: dict[str, Figures]) -> None:
    """Write down what was measured."""
    report = known()
    report[part] = {**report.get(part, {}), **found}
    wanted = ("numpy", "scikit-learn", "wordfreq")
    report["versions"] = {name: importlib.metadata.version(name) for name in wanted}
    report["packages"] = [each.wanted for each in PACKAGES]
    RESULTS.write_text(json.dumps(report, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
