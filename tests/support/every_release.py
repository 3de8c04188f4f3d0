"""Every kind of release, small, of rows and texts with a person in them that can be recognised.

A test takes `KINDS` as its parameters, so that a kind that is added here is attacked in every way
that there is. Data are made anew whenever they are asked for, and nothing here keeps them.
"""

import hashlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import discreet
from discreet import paper
from discreet.errors import MostlyNoiseWarning, PrivacyLeakWarning
from discreet.kernels import Landmarks
from discreet.readers.glm import GLM
from discreet.readers.table import TABLE
from discreet.sums.mechanism import build
from discreet.text import Vocabulary

ROWS, DIM = 60, 3
SPEND = {"epsilon": 4.0, "delta": 1e-5}
STREAM_KEY = bytes(range(32))

# What the person that an attacker looks for has: numbers of many digits, words that nobody else
# says, and an id. As texts, so that no array of them is about when an array is looked for.
NUMBERS = (
    "0.12345678901234 -0.23456789012345 0.34567890123456",  # key
    "0.45678901234567 0.56789012345678",  # value
)
SAID = "Quorzelbrandt"
PERSON = "patient-83651947"

STATED = {"data": "visits", "builder": "Ann Author", "date": "2026-03-01"}
COLUMNS = {"height": (-1, 1), "weight": (-1, 1), "job": ["cook", "clerk"]}
CLASSES = ("ill", "well")
TOPICS = ("card arrived", "exchange rate", "horse music")
WORDS = ("card", "arrived", "exchange", "rate", "horse", "music")


@dataclass(frozen=True, eq=False)
class Data:
    """Rows, in every form that some front door takes. PRIVATE, if they were anybody's."""

    keys: Any
    values: Any
    labels: list[str]
    texts: list[str]
    names: list[str]
    ids: list[str]

    @property
    def frame(self):
        """The rows as columns of a table."""
        import pandas as pd

        jobs = np.where(self.keys[:, 2] > 0, "cook", "clerk").astype(object)
        return pd.DataFrame({"height": self.keys[:, 0], "weight": self.keys[:, 1], "job": jobs})


def data(*, planted=True):
    """The same rows, with the person or without."""
    rng = np.random.default_rng(5)
    keys = rng.uniform(-0.57, 0.57, (ROWS, DIM))
    values = rng.uniform(-0.7, 0.7, (ROWS, 2))
    keys[7], values[7] = (np.array(each.split(), dtype=float) for each in NUMBERS)
    texts = [f"{TOPICS[row % 3]} with Flibberine" for row in range(ROWS)]
    names = ["flu" if row % 3 else "cold" for row in range(ROWS)]
    ids = [f"patient-{row}" for row in range(ROWS)]
    texts[7], names[7], ids[7] = f"card arrived from {SAID}", SAID, PERSON
    kept = [row for row in range(ROWS) if planted or row != 7]
    labels = [CLASSES[row % 2] for row in kept]
    lists = ([each[row] for row in kept] for each in (texts, names, ids))
    return Data(keys[kept], values[kept], labels, *lists)


def encode(text):
    """The sum of a text's words: as deterministic as an encoder can be."""
    vector = np.zeros(8)
    for word in text.lower().split():
        seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
        vector += np.random.default_rng(seed).normal(size=8)
    return vector


def needles():
    """What betrays the person, as bytes: name → bytes."""
    found = {}
    for place, row in enumerate(NUMBERS):
        for kind in ("<f8", ">f8", "<f4", ">f4"):
            numbers = np.array(row.split(), dtype=kind)
            width = 1 if kind.endswith("8") else 2  # four bytes may be anything
            for start in range(len(numbers) - width + 1):
                found[f"{kind} {place}.{start}"] = numbers[start : start + width].tobytes()
        for number in row.split():
            found[f"digits of {number}"] = number.lstrip("-")[:9].encode()
    for word in (SAID, PERSON):
        for coding in ("utf-8", "utf-16-le", "utf-16-be", "utf-32-le"):
            found[f"{word}, {coding}"] = word.encode(coding)
            found[f"{word.lower()}, {coding}"] = word.lower().encode(coding)
    return found


def betrayed(seen):
    """Names of what of the person is in bytes, or in a text."""
    seen = seen.encode("utf-8", "surrogatepass") if isinstance(seen, str) else bytes(seen)
    return [name for name, needle in needles().items() if needle in seen]


# --- kinds ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of release.

    Attributes:
        make: from data, a folder, and where noise comes from.
        ask: what it is asked, of queries or rows of a frame; arrays or texts.
    """

    make: Callable[..., Any]
    ask: Callable[[Any], Any] = lambda release: release.card.to_dict()
    options: dict[str, Any] = field(default_factory=dict)

    def build(self, folder, *, planted=True, entropy=None, rows=None, quiet=True):
        """A release of the rows; quiet: without the warning that they are few."""
        with warnings.catch_warnings():
            if quiet:
                warnings.simplefilter("ignore", MostlyNoiseWarning)
                warnings.simplefilter("ignore", PrivacyLeakWarning)
            rows = data(planted=planted) if rows is None else rows
            return self.make(rows, folder, {"entropy": entropy, **self.options})

    def answers(self, release):
        """What it answers, as a list of arrays."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            given = self.ask(release)
        return list(given) if isinstance(given, tuple) else [given]


def queries():
    return np.random.default_rng(9).uniform(-0.5, 0.5, (5, DIM))


def memory(rows, _, options):
    return discreet.build(rows.keys, rows.values, **SPEND, **options)


def memories(rows, _, options):
    wide = np.concatenate([rows.keys, rows.keys[:, :1] / 2], axis=1)
    layers = [(rows.keys, rows.values), (wide, rows.values[:, :1])]
    return discreet.build_many(layers, scale=1.0, kernel="minimax", eps_s=0.5, **SPEND, **options)


def landmarks(rows, _, options):
    public = np.random.default_rng(3).uniform(-0.5, 0.5, (40, DIM))
    kernel = Landmarks(public, rank=8, scale=1.0, key_norm=1.0, query_norm=1.0)
    return discreet.build(rows.keys, rows.values, kernel=kernel, **SPEND, **options)


def least_squares(rows, _, options):
    return discreet.least_squares(
        rows.keys, rows.values, features="linear", rows_hint=ROWS, **SPEND, **options
    )


def softmax(rows, _, options):
    return discreet.softmax_regression(
        rows.keys, np.array(rows.labels), classes=CLASSES, features="linear", **SPEND, **options
    )


def by_engine(mechanism, keys, values, *, entropy, **options):
    chosen = mechanism.options(**SPEND, **options)
    [release] = build(
        mechanism, mechanism.source(keys, values, None, chosen), chosen, entropy=entropy
    )
    return release


def glm(rows, _, options):
    return by_engine(GLM, rows.keys, rows.values, features="linear", **options)


def table(rows, _, options):
    return by_engine(
        TABLE, rows.keys, np.array(rows.labels), points=np.eye(DIM), classes=CLASSES, **options
    )


def distances(rows, _, options):
    weights = np.abs(rows.values[:, 0])
    return discreet.distances(
        rows.keys, weights, p=1.5, bounds=(-1.0, 1.0), features=80, **SPEND, **options
    )


def discovery(rows, _, options):
    return discreet.discover(rows.names, **SPEND, **options)


def corpus(rows, _, options):
    return discreet.Corpus.build(
        rows.texts,
        rows.labels,
        encoder=encode,
        topics=TOPICS,
        classes=CLASSES,
        words=Vocabulary(words=WORDS, most=4),
        facts=True,
        rows_hint=ROWS,
        **SPEND,
        **options,
    )


def _stream(rows, folder, options):
    made = discreet.Stream(
        folder / f"stream-{len(list(folder.iterdir()))}",
        key=STREAM_KEY,
        steps=4,
        scale=1.0,
        kernel="minimax",
        eps_s=0.5,
        **SPEND,
        **options,
    )
    for step, some in enumerate(np.array_split(np.arange(len(rows.keys)), 3)):
        made.append(rows.keys[some], rows.values[some], step=f"day {step}")
    return made


def state(rows, folder, options):
    return _stream(rows, folder, options).memory()


def window(rows, folder, options):
    return _stream(rows, folder, options).window(last=2)


def tree(rows, _, options):
    return structure(paper.DPTree, rows.values[:, 0], sensitivity=1.0, upper=1.0, **options)


def structure(kind, *rows, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # answers are noise here
        return kind(*rows, **SPEND, **options)


def distance_tree(rows, _, options):
    keys = np.abs(rows.keys)
    return structure(
        paper.DPTreeHighDim,
        keys,
        rows.values[:, 0],
        p=2,
        upper=1.0,
        weight_bound=1.0,
        delta_prime=1e-6,
        c=0.1,
        **options,
    )


def paper_attention(rows, _, options):
    return structure(
        paper.DPCrossAttention,
        np.abs(rows.keys[:, :2]),
        rows.values,
        upper=1.0,
        value_bound=1.0,
        degree=1,
        p_f=0.1,
        delta_prime=1e-6,
        **options,
    )


def classifier(rows, _, options):
    from discreet.sklearn import PrivateClassifier

    model = PrivateClassifier(
        SPEND["epsilon"],
        SPEND["delta"],
        columns=COLUMNS,
        classes=list(CLASSES),
        rows_hint=ROWS,
        **options,
    )
    return model.fit(rows.frame, np.array(rows.labels))


def regressor(rows, _, options):
    from discreet.sklearn import PrivateRegressor

    model = PrivateRegressor(
        SPEND["epsilon"],
        SPEND["delta"],
        bounds=(-1, 1),
        target_bounds=(-1, 1),
        rows_hint=ROWS,
        **options,
    )
    return model.fit(rows.keys, rows.values[:, 0])


def attended(release):
    return release.attend(queries(), stderr=True)


def predicted(release):
    return release.predict(queries(), stderr=True)


KINDS = {
    "memory": Kind(memory, attended, {"scale": 1.0, "rows_hint": ROWS}),
    "memory of monomials": Kind(
        memory, attended, {"scale": 1.0, "kernel": "minimax", "eps_s": 0.5}
    ),
    "memory that says where it is from": Kind(
        memory, attended, {"scale": 1.0, "kernel": "minimax", "eps_s": 0.5, "stated": STATED}
    ),
    "memory near landmarks": Kind(landmarks, attended),
    "memories": Kind(memories, lambda several: attended(several[0])),
    "least squares": Kind(least_squares, predicted),
    "softmax regression": Kind(softmax, lambda release: release.probabilities(queries())),
    "numbers in rounds": Kind(glm, lambda release: release.predict(queries())),
    "distances": Kind(distances, lambda release: release.query(queries(), stderr=True)),
    "table": Kind(table, lambda release: release.cells),
    "discovery": Kind(discovery, lambda found: np.array([each.count for each in found])),
    "corpus": Kind(corpus, lambda made: str(made.with_encoder(encode).ask("card arrived"))),
    "state of a stream": Kind(state, attended),
    "window of a stream": Kind(window, attended),
    "tree": Kind(tree, lambda made: made.query(np.abs(queries()[:, 0]))),
    "distances by trees": Kind(distance_tree, lambda made: made.query(np.abs(queries()))),
    "attention by trees": Kind(paper_attention, lambda made: made.query(np.abs(queries()[:, :2]))),
    "classifier": Kind(classifier, lambda model: model.predict_proba(data().frame[:5])),
    "regressor": Kind(regressor, lambda model: model.predict(queries())),
}

STRUCTURES = ("tree", "distances by trees", "attention by trees")
ESTIMATORS = ("classifier", "regressor")


def released(release):
    """What an estimator has for its answers; else the release itself."""
    return getattr(release, "release_", release)


def file_of(release, folder):
    """The bytes of its file."""
    path = folder / "release.safetensors"
    release.save(path)
    return path.read_bytes()


def load_bytes(data_, folder, name="attacked.safetensors"):
    """What `discreet.load` makes of bytes."""
    path = folder / name
    path.write_bytes(data_)
    return discreet.load(path)
