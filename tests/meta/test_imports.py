"""`import discreet` and `discreet --help` stay light, whatever is installed."""

import importlib
import json
import pathlib
import subprocess
import sys

import pytest

import discreet

HEAVY = (
    "scipy",
    "dp_accounting",
    "torch",
    "transformers",
    "diffusers",
    "sklearn",
    "matplotlib",
    "opendp",
    "pyarrow",
    "dask",
    "distributed",
    "chromadb",
    "datasets",
    "faiss",
    "lancedb",
    "psycopg",
    "starlette",
    "uvicorn",
    "langchain_core",
    "llama_index",
)

# What rooms need that a plain installation does not have.
EXTRAS = {
    "integrations.diffusers": "diffusers",
    "integrations.langchain": "langchain_core",
    "integrations.llama_index": "llama_index",
    "integrations.transformers": "transformers",
    "nn": "torch",
    "serve": "starlette",
}

# The finder answers before any other, so even an attempt to import a heavy library is seen, also
# where the library is not installed.
WATCH = """
import sys

class Watch:
    attempts = []
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {heavy!r}:
            self.attempts.append(name)
        return None

sys.meta_path.insert(0, Watch())
{code}
import json
print(json.dumps([Watch.attempts, sorted(sys.modules)]))
"""

HELP = """
import sys, discreet.cli
sys.argv = ["discreet", "--help"]
try:
    discreet.cli.main()
except SystemExit as stop:
    assert not stop.code
"""


def run(code):
    script = WATCH.format(heavy=set(HEAVY), code=code)
    output = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, check=True, text=True
    ).stdout
    attempts, loaded = json.loads(output.splitlines()[-1])
    return attempts, set(loaded)


@pytest.mark.parametrize("code", ["import discreet", HELP], ids=["import", "help"])
def test_nothing_heavy_is_loaded(code):
    attempts, loaded = run(code)
    assert attempts == []
    assert loaded.isdisjoint(HEAVY)
    assert "discreet" in loaded
    assert loaded.isdisjoint(
        {"discreet.tables", "discreet.sklearn", "discreet.nn", "discreet_benchmarks"}
    )


def test_the_watch_sees_what_it_should():
    attempts, loaded = run("import discreet.accounting.loss")
    assert "scipy" in attempts
    assert {"scipy", "dp_accounting"} <= loaded


def test_reading_files_loads_pyarrow_for_a_parquet_file_only():
    attempts, loaded = run("import discreet.tables")
    assert attempts == []
    assert loaded.isdisjoint({"discreet.readers", "discreet.sums"})
    attempts, _ = run("import discreet.tables.arrow")
    assert "pyarrow" in attempts


def test_rows_are_read_without_pandas(tmp_path):
    pa = pytest.importorskip("pyarrow", reason="needs the extra `parquet`")
    parquet = importlib.import_module("pyarrow.parquet")
    table = pa.table({"keys": [[1.0, 2.0]], "values": [3.0], "person": [7]})
    parquet.write_table(table, tmp_path / "rows.parquet")
    names = {"keys": "keys", "values": "values", "groups": "person"}
    code = f"from discreet.tables import Rows; list(Rows({str(tmp_path)!r}, **{names!r}).chunks())"
    _, loaded = run(code)
    assert "pyarrow" in loaded
    assert "pandas" not in loaded  # it takes as long to load as a hundred thousand rows


def test_rooms_load_on_first_use():
    attempts, loaded = run("import discreet; discreet.noise.SystemEntropy()")
    assert "torch" not in attempts
    assert "dp_accounting" not in loaded


def test_a_memory_is_opened_without_the_paper():
    path = pathlib.Path(__file__).parents[1] / "golden" / "files" / "memory-v1-taylor.safetensors"
    code = (
        f"import warnings, discreet; warnings.simplefilter('ignore'); discreet.load({str(path)!r})"
    )
    _, loaded = run(code)
    assert "discreet.readers.attention.memory" in loaded
    assert loaded.isdisjoint({"discreet.paper", "dp_accounting"})


def test_the_top_level_offers_what_it_lists():
    assert sorted(discreet.__all__) == discreet.__all__
    assert set(dir(discreet)) == set(discreet.__all__)
    for name in discreet.__all__:
        assert getattr(discreet, name) is not None
    with pytest.raises(AttributeError, match="nothing_of_this_name"):
        _ = discreet.nothing_of_this_name


@pytest.mark.parametrize(
    "room",
    [
        "noise",
        "accounting",
        "kernels",
        "ledger",
        pytest.param("integrations.diffusers", marks=pytest.mark.slow),  # takes long to load
        "integrations.langchain",
        "integrations.llama_index",
        "integrations.retrieval",
        "integrations.transformers",
        "nn",
        "paper",
        "readers.attention",
        "readers.least_squares",
        "readers.softmax",
        "serve",
        "shards",
        "sklearn",
        "tables",
        "testing",
    ],
)
def test_every_room_lists_what_it_offers(room):
    needed = EXTRAS.get(room)
    if needed is not None:
        pytest.importorskip(needed, reason=f"needs the extra `{needed}`")
    module = importlib.import_module(f"discreet.{room}")
    assert module.__all__
    for name in module.__all__:
        assert getattr(module, name).__doc__
