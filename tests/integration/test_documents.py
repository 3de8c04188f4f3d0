"""The documents do what they say: blocks run, pages are complete, and all of it builds."""

import importlib
import importlib.util
import pathlib
import re
import subprocess
import sys

import pytest
from documents import blocks, matches, run

import discreet

pytestmark = pytest.mark.docs

ROOT = pathlib.Path(__file__).parents[2]
DOCS = ROOT / "docs"
# Pages that need libraries which the fast lane does without.
LIBRARIES = {
    "retrievers": ("langchain_core", "llama_index", "wordllama"),
    "stores": ("chromadb", "datasets", "faiss", "lancedb"),
}
HOW_TOS = sorted(
    {*(DOCS / "howto").glob("*.md")}
    - {DOCS / "howto" / f"{name}.md" for name in ("index", *LIBRARIES)}
)
EXTRAS = ("torch", "transformers", "diffusers")
OF_EXTRAS = [
    *((DOCS / "models" / f"{name}.md", name) for name in EXTRAS),
    (DOCS / "self-attention.md", "torch"),
]
MODELS = [
    pytest.param(
        path,
        marks=pytest.mark.skipif(
            importlib.util.find_spec(name) is None, reason=f"needs the extra `{name}`"
        ),
    )
    for path, name in OF_EXTRAS
]
TEXTS = [
    pytest.param(
        DOCS / f"{name}.md",
        marks=pytest.mark.skipif(
            importlib.util.find_spec("wordllama") is None, reason="needs the extra `text`"
        ),
    )
    for name in ("ask-texts", "private-rag")
]
OF_LIBRARIES = [
    pytest.param(
        DOCS / "howto" / f"{page}.md",
        marks=[
            pytest.mark.slow,
            *(
                pytest.mark.skipif(importlib.util.find_spec(name) is None, reason=f"needs {name}")
                for name in names
            ),
        ],
    )
    for page, names in LIBRARIES.items()
]
ROOMS = (
    "accounting",
    "audit",
    "features",
    "integrations.diffusers",
    "integrations.retrieval",
    "integrations.transformers",
    "kernels",
    "ledger",
    "nn",
    "noise",
    "paper",
    "readers.attention",
    "readers.discovery",
    "readers.glm",
    "readers.least_squares",
    "readers.softmax",
    "readers.table",
    "shards",
    "sklearn",
    "tables",
    "testing",
    "text",
)


def generator():
    spec = importlib.util.spec_from_file_location("generate_cli", DOCS / "generate_cli.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def public_names():
    """Return every public name, under the shortest path that leads to it."""
    names = {f"discreet.{name}" for name in discreet.__all__}
    for room in ROOMS:
        own = set(importlib.import_module(f"discreet.{room}").__all__) - set(discreet.__all__)
        if room == "features":
            own -= set(discreet.kernels.__all__)
        names |= {f"discreet.{room}.{name}" for name in own}
    return names


def pages():
    return {path: path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md")}


def test_the_tutorial_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run(DOCS / "tutorial.md", tmp_path)
    assert names["stderr"].max() < 0.02  # it is not just noise


@pytest.mark.parametrize(
    "path",
    [
        *(pytest.param(each, marks=pytest.mark.slow) for each in HOW_TOS),
        pytest.param(DOCS / "classifier.md", marks=pytest.mark.slow),
        *MODELS,
        *OF_LIBRARIES,
        *TEXTS,
        DOCS / "attack.md",
        DOCS / "audit.md",
        DOCS / "beyond.md",
        DOCS / "choosing.md",
        DOCS / "errors.md",
        DOCS / "paper.md",
        DOCS / "rows.md",
    ],
    ids=lambda path: path.stem,
)
def test_what_the_other_pages_show_is_what_happens(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len(blocks(path.read_text(encoding="utf-8"))) > 0
    run(path, tmp_path)


def test_a_document_that_shows_something_else_fails(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nx = 1\nprint(x, 3)\n```\n\n```text\n1 ...\n```\n")
    assert run(page, tmp_path)["x"] == 1
    page.write_text("```python\nprint(1)\n```\n\n```text\n2\n```\n")
    with pytest.raises(AssertionError, match="shows"):
        run(page, tmp_path)
    page.write_text("```sh\ndiscreet card missing.safetensors\n```\n")
    with pytest.raises(AssertionError, match=r"missing\.safetensors"):
        run(page, tmp_path)
    assert not matches("a...c", "abd")


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("0.70 ± 0.02 of 4", "0.75 ± 0.026 of 4"),  # within three times its ±
        ("96 ± 65", "-50 ± 65"),
        ("error 0.0017", "error 0.0012"),  # within a factor of 1.9
        ("0.01", "0.02"),  # one unit of the last digit
        ("+0.5 -0.5", "+0.4 -0.6"),
        ("ε = 1, 20,000 rows, ...", "ε = 1, 20,000 rows, and more"),
        ("97.2%", "96.8%"),
        ("68% ± 0.3%", "67% ± 0.2%"),  # rounded, both of them
        ("68% ± 2%", "74% ± 2%"),
    ],
)
def test_noise_may_change_a_page_that_says_so(shown, printed):
    assert matches(shown, printed, noisy=True)
    assert matches(shown, printed) == ("..." in shown)


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("0.70 ± 0.02", "0.78 ± 0.02"),
        ("0.70 ± 0.02", "0.70 ± 0.04"),
        ("68% ± 0.3%", "66% ± 0.3%"),
        ("68% ± 2%", "68% ± 4%"),
        ("error 0.0017", "error 0.0034"),  # a factor of two is no noise, either way
        ("error 0.0034", "error 0.0017"),
        ("1.2e-05", "2.4e-05"),
        ("-0.5", "+0.5"),
        ("20,000 rows", "20,001 rows"),
        ("ε = 1", "ε = 1.1"),
        ("food 0.7", "books 0.7"),
        ("0.7 of 4", "0.7 of 4\n0.7"),
    ],
)
def test_noise_explains_no_more_than_that(shown, printed):
    assert not matches(shown, printed, noisy=True)


def test_only_a_block_that_is_said_to_be_noisy_is(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1.5)\n```\n\n```text noisy\n1.2\n```\n")
    run(page, tmp_path)
    page.write_text("```python\nprint(1.5)\n```\n\n```text\n1.2\n```\n")
    with pytest.raises(AssertionError, match="shows"):
        run(page, tmp_path)


def test_the_page_of_the_command_line_is_up_to_date():
    made = generator()
    assert made.PAGE.read_text(encoding="utf-8") == made.page(), (
        "run: python docs/generate_cli.py --write"
    )


def test_a_command_without_help_fails(monkeypatch):
    made = generator()
    app = made.typer.Typer(callback=lambda: None, help="An app.")
    app.command("silent")(lambda: None)
    monkeypatch.setattr(made.cli, "app", app)
    with pytest.raises(SystemExit, match="silent has no help"):
        made.page()


def test_the_reference_has_every_public_name():
    source = "\n".join(text for path, text in pages().items() if path.parent.name == "api")
    directives = set(re.findall(r"^\.\. (?:auto)?[a-z]+:: ([\w.]+)$", source, re.MULTILINE))
    assert len(public_names()) > 50
    assert public_names() - directives == set()


def test_the_table_of_contents_has_every_page_once():
    listed = []
    for path, text in pages().items():
        for block in re.findall(r"^```\{toctree\}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
            entries = [line for line in block.splitlines() if line and not line.startswith(":")]
            listed += [(path.parent / f"{entry}.md").relative_to(DOCS) for entry in entries]
    everything = [path.relative_to(DOCS) for path in pages() if path != DOCS / "index.md"]
    assert sorted(listed) == sorted(everything)


@pytest.mark.slow
def test_the_pages_build_without_a_warning(tmp_path):
    built = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    done = subprocess.run([*built, DOCS, tmp_path], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    from sphinx.util.inventory import InventoryFile

    inventory = InventoryFile.loads((tmp_path / "objects.inv").read_bytes(), uri="")
    kinds = {kind: set(names) for kind, names in inventory.data.items()}
    python = set().union(*(names for kind, names in kinds.items() if kind.startswith("py:")))
    assert public_names() - python == set()
