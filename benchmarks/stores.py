"""How long a build takes from where vectors live, beside the same rows in Parquet.

Every store gets 100,000 rows of 384 numbers and one value, in a folder of its own; PostgreSQL is
started for it. Then each is built from in turn, several times over, right after Parquet, all with
the same seed: a store whose memory has other bits stops the run. The table has the fastest build of
each, and of those builds from Parquet that came just before. Others on the same machine disturb all
of these, processor time least; what a server takes is in the time that passes alone.

Run: python benchmarks/stores.py [--rows 100000] [--dim 384] [--times 3] [--only chroma,postgres]

Needs the extra `stores`, PostgreSQL's server, and the tests' own `clusters`.
"""

import argparse
import contextlib
import pathlib
import sys
import tempfile
import time
import warnings

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import discreet
from discreet.tables import Query, Rows, Vectors
from discreet.testing import Seeded

sys.path.append(str(pathlib.Path(__file__).parents[1] / "tests" / "support"))

Floats = np.ndarray
Stack = contextlib.ExitStack

MOST = 1.3
OPTIONS = {"epsilon": 1.0, "delta": 1e-6}


def rows_of(count: int, dim: int) -> tuple[Floats, Floats]:
    """Return embeddings of length one, and a rating of each."""
    rng = np.random.default_rng(0)
    keys = rng.standard_normal((count, dim), dtype=np.float32)
    keys /= np.linalg.norm(keys, axis=1, keepdims=True)
    return keys, rng.integers(-8, 9, count).astype(np.float32) / 8


def arrow_of(keys: Floats, ratings: Floats) -> pa.Table:
    """Return both as columns."""
    lists = pa.FixedSizeListArray.from_arrays(pa.array(keys.ravel()), keys.shape[1])
    return pa.table({"embedding": lists, "rating": ratings})


def of_parquet(folder: pathlib.Path, keys: Floats, ratings: Floats, stack: Stack) -> Rows:
    """Write a file."""
    parquet.write_table(arrow_of(keys, ratings), folder / "rows.parquet")
    return Rows(folder / "rows.parquet", keys="embedding", values="rating")


def of_chroma(folder: pathlib.Path, keys: Floats, ratings: Floats, stack: Stack) -> Rows:
    """Fill a collection on the disk."""
    import chromadb

    settings = chromadb.Settings(anonymized_telemetry=False)
    client = chromadb.PersistentClient(str(folder / "chroma"), settings)
    made = client.create_collection("reviews", embedding_function=None)
    for start in range(0, len(keys), 5_000):
        some = slice(start, start + 5_000)
        made.add(
            ids=[str(number) for number in range(len(keys))[some]],
            embeddings=keys[some],
            metadatas=[{"rating": rating} for rating in ratings[some].tolist()],
        )
    return Rows(made, values="rating")


def of_lance(folder: pathlib.Path, keys: Floats, ratings: Floats, stack: Stack) -> Rows:
    """Fill a table of LanceDB."""
    import lancedb

    made = lancedb.connect(folder / "lance").create_table("reviews", arrow_of(keys, ratings))
    return Rows(made, values="rating")


def of_faiss(folder: pathlib.Path, keys: Floats, ratings: Floats, stack: Stack) -> Rows:
    """Fill a flat index with ids of its own."""
    import faiss

    index = faiss.IndexIDMap(faiss.IndexFlatIP(keys.shape[1]))
    ids = np.random.default_rng(1).permutation(len(keys)) * 2
    index.add_with_ids(keys, ids)
    beside = dict(zip(ids.tolist(), ratings.tolist(), strict=True))
    return Rows(Vectors(index, {"rating": beside}), values="rating")


def of_inverted_lists(folder: pathlib.Path, keys: Floats, ratings: Floats, stack: Stack) -> Rows:
    """Fill inverted lists."""
    import faiss

    index = faiss.index_factory(keys.shape[1], "IVF256,Flat")
    index.train(keys[:10_000])
    index.add(keys)
    return Rows(Vectors(index, {"rating": ratings}), values="rating")


def of_dataset(folder: pathlib.Path, keys: Floats, ratings: Floats, stack: Stack) -> Rows:
    """Save a dataset of Hugging Face."""
    import datasets

    datasets.disable_progress_bars()
    datasets.Dataset(arrow_of(keys, ratings)).save_to_disk(folder / "dataset")
    return Rows(datasets.load_from_disk(folder / "dataset"), values="rating")


def of_postgres(folder: pathlib.Path, keys: Floats, ratings: Floats, stack: Stack) -> Rows:
    """Start PostgreSQL and fill a table."""
    import psycopg
    from clusters import Cluster

    cluster = Cluster()
    stack.callback(cluster.remove)
    with psycopg.connect(cluster.address()) as connection:
        connection.execute("CREATE TABLE reviews (embedding real[], rating real)")
        with connection.cursor().copy("COPY reviews FROM STDIN") as copy:
            for key, rating in zip(keys.tolist(), ratings.tolist(), strict=True):
                copy.write_row((key, rating))
    rows = Rows(Query(cluster.address(), "SELECT embedding, rating FROM reviews"), values="rating")
    stack.callback(rows.close)
    return rows


STORES = {
    "chroma": of_chroma,
    "lance": of_lance,
    "faiss": of_faiss,
    "faiss (inverted lists)": of_inverted_lists,
    "hugging face": of_dataset,
    "postgres": of_postgres,
}


def measure(rows: Rows, count: int) -> tuple[list[float], np.ndarray]:
    """Return seconds of a read and of a build, and of processors, and the noisy integers."""
    start = time.perf_counter()
    for _ in rows:
        pass
    read, used = time.perf_counter(), time.process_time()
    memory = discreet.build(rows, **OPTIONS, rows_hint=count, entropy=Seeded(1))
    seconds = [read - start, time.perf_counter() - read, time.process_time() - used]
    return seconds, memory.released.state


def main() -> None:
    """Fill, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--only", default=",".join(STORES))
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    keys, ratings = rows_of(asked.rows, asked.dim)
    print(f"{asked.rows:,} rows of {asked.dim} numbers, the fastest of {asked.times}, same bits\n")
    print("| from | read alone, s | build, s | times Parquet | processors, s | times Parquet |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        beside = of_parquet(folder, keys, ratings, contextlib.ExitStack())
        for store in asked.only.split(","):
            with contextlib.ExitStack() as stack:
                rows = STORES[store](folder, keys, ratings, stack)
                print(compared(store, rows, beside, asked.rows, asked.times), flush=True)


def compared(name: str, rows: Rows, beside: Rows, count: int, times: int) -> str:
    """Return the line of one store."""
    of_each: tuple[list[list[float]], list[list[float]]] = ([], [])
    for _ in range(times):
        expected, found = measure(beside, count), measure(rows, count)
        if not np.array_equal(expected[1], found[1]):
            raise SystemExit(f"{name}: other bits than from Parquet")
        of_each[0].append(expected[0])
        of_each[1].append(found[0])
    (_, build, used), (read, other, more) = (
        tuple(map(min, zip(*each, strict=True))) for each in of_each
    )
    late = f" (more than {MOST})" if other > MOST * build else ""
    return (
        f"| {name} | {read:.2f} | {other:.2f} | {other / build:.2f}{late} | {more:.2f} | "
        f"{more / used:.2f} |"
    )


if __name__ == "__main__":
    main()
