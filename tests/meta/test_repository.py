"""Promises of the repository itself."""

import ast
import contextlib
import importlib.util
import io
import pathlib
import re
import tomllib
from importlib import metadata

import pytest
from documents import blocks, matches
from packaging.requirements import Requirement

ROOT = pathlib.Path(__file__).parents[2]
PACKAGES = (ROOT / "src" / "discreet", ROOT / "benchmarks" / "discreet_benchmarks")
SOURCES = sorted(path for package in PACKAGES for path in package.rglob("*.py"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
RANDOM = {"random", "secrets", "urandom", "getrandom", "default_rng", "RandomState", "uuid4"}


def pins():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {name.lower().replace("_", "-"): version for name, version in pairs}


def test_randomness_has_one_door():
    doors = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            names = {
                ast.Attribute: lambda n: [n.attr],
                ast.Name: lambda n: [n.id],
                ast.Import: lambda n: [alias.name for alias in n.names],
                ast.ImportFrom: lambda n: [n.module or "", *(alias.name for alias in n.names)],
            }.get(type(node), lambda n: [])(node)
            if any(part in RANDOM for name in names for part in name.split(".")):
                doors.append(path.relative_to(ROOT / "src" / "discreet").as_posix())
    # Workers of audits seed what others may draw from, and draw nothing.
    assert set(doors) == {"noise/entropy.py", "audit/workers.py"}
    workers = (ROOT / "src" / "discreet" / "audit" / "workers.py").read_text()
    assert re.findall(r"\w+\.random\b.*", workers) == [
        "np.random.seed(seed)  # noqa: NPY002 (that of others)"
    ]


def test_the_first_example_of_the_readme_runs(tmp_path, monkeypatch):
    first = next(
        each for each in blocks((ROOT / "README.md").read_text()) if each.language == "python"
    )
    monkeypatch.chdir(tmp_path)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(first.text, "README.md", "exec"), {})
    assert printed.getvalue()


@pytest.mark.docs
def test_the_readme_examples_run_and_print_what_it_shows(tmp_path, monkeypatch, capsys):
    torch = pytest.importorskip("torch", reason="needs the extra `torch`")
    torch.manual_seed(0)
    norm, attention = torch.nn.LayerNorm(16), torch.nn.MultiheadAttention(16, 2, batch_first=True)
    with torch.no_grad():
        attention.in_proj_weight.mul_(0.5)
    inputs = {"context": 2_000, "public": 500, "query": 3}
    drawn = {name: norm(torch.randn(count, 16)).detach() for name, count in inputs.items()}
    given = {"attention": attention, **drawn}
    monkeypatch.chdir(tmp_path)
    names = dict(given)
    shown = [each for each in blocks((ROOT / "README.md").read_text()) if each.language == "python"]
    assert len(shown) == 4
    for block in shown:
        exec(compile(block.text, "README.md", "exec"), names)
        printed = capsys.readouterr().out
        assert block.shown is None or matches(block.shown, printed, noisy=block.noisy), printed
    assert shown[0].shown is not None
    assert names["model"].leaks_ == ()
    assert list(names["guesses"]) == ["no", "yes"]
    assert names["output"].shape == names["margin"].shape == (3, 16)


@pytest.mark.docs
def test_the_picture_of_the_readme_shows_what_the_demo_found(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    import draw_demo

    draw_demo.draw(tmp_path / "demo.svg")
    drawn, kept = (path.read_text() for path in (tmp_path / "demo.svg", draw_demo.PATH))
    number = r"-?\d+\.\d+"
    assert re.sub(number, "", drawn) == re.sub(number, "", kept)
    pairs = zip(re.findall(number, drawn), re.findall(number, kept), strict=True)
    assert all(abs(float(one) - float(other)) < 0.01 for one, other in pairs)
    assert "prefers-color-scheme:dark" in kept


@pytest.mark.docs
def test_the_example_of_the_paper_page_runs():
    [example] = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs" / "paper.md").read_text(), re.DOTALL
    )
    names = {}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(example, "paper.md", "exec"), names)
    assert names["out"].shape == (10, 2)
    guarantee, bound = printed.getvalue().splitlines()
    assert "Replacing any one row by another" in guarantee
    assert 0 < float(bound) < 1


@pytest.mark.docs
def test_files_that_the_paper_page_names_exist():
    page = (ROOT / "docs" / "paper.md").read_text()
    names = set(re.findall(r"`(?:tests/[\w/]*/)?(test_\w+\.py)`", page))
    assert len(names) > 8
    assert names <= {path.name for path in (ROOT / "tests").rglob("test_*.py")}
    for path in re.findall(r"`((?:paper|kernels|noise|accounting)/\w+\.py)`", page):
        assert (ROOT / "src" / "discreet" / path).exists(), path


def test_the_core_is_light():
    names = {re.split(r"[<>=\[]", requirement)[0] for requirement in PROJECT["dependencies"]}
    assert names == {
        "array-api-compat",
        "cryptography",
        "dp-accounting",
        "numpy",
        "rich",
        "safetensors",
        "scipy",
        "threadpoolctl",
        "typer",
    }
    extras = {
        "bench",
        "browser",
        "dask",
        "dev",
        "diffusers",
        "docs",
        "examples",
        "langchain",
        "llama-index",
        "parquet",
        "plots",
        "postgres",
        "serve",
        "sklearn",
        "stores",
        "text",
        "torch",
        "transformers",
    }
    assert set(PROJECT["optional-dependencies"]) == extras


def test_every_dependency_has_a_range_here_and_a_pin_in_the_constraints():
    requirements = PROJECT["dependencies"] + [
        requirement for extra in PROJECT["optional-dependencies"].values() for requirement in extra
    ]
    named = [r for r in requirements if not r.startswith("discreet[")]
    assert all(re.search(r">=\d", requirement) for requirement in named)
    assert {re.split(r"[<>=\[]", requirement)[0] for requirement in named} <= set(pins())
    assert pins()["torch"] == "2.13.0"


@pytest.mark.parametrize(
    "extras",
    [
        "dev,diffusers,parquet,plots,sklearn,transformers",
        pytest.param("browser,docs,examples,langchain,llama-index,stores", marks=pytest.mark.slow),
    ],
)
def test_whatever_the_tests_need_is_pinned_and_installed_as_pinned(extras):
    pinned, seen, open_requirements = pins(), {}, [f"discreet[{extras}]"]
    while open_requirements:
        requirement = Requirement(open_requirements.pop())
        key = (requirement.name, frozenset(requirement.extras))
        if key not in seen:
            distribution = metadata.distribution(requirement.name)
            seen[key] = distribution.version.partition("+")[0]
            asked = requirement.extras or {""}
            open_requirements += [
                needed
                for needed in distribution.requires or []
                if (marker := Requirement(needed).marker) is None
                or any(marker.evaluate({"extra": extra}) for extra in asked)
            ]
    versions = {name.lower().replace("_", "-"): version for (name, _), version in seen.items()}
    del versions["discreet"]
    assert len(versions) > 20
    assert versions == {name: pinned.get(name) for name in versions}


def test_the_benchmark_refuses_a_ratio_for_the_wrong_law(monkeypatch):
    spec = importlib.util.spec_from_file_location(
        "noise_benchmark", ROOT / "benchmarks" / "noise.py"
    )
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    assert benchmark.compare("laplace", 20_000)["times_faster"] > 1
    wrong = benchmark.DiscreteLaplace
    monkeypatch.setattr(benchmark, "DiscreteLaplace", lambda scale: wrong(scale=1.2 * scale))
    with pytest.raises(SystemExit, match="discreet's draws do not fit the law"):
        benchmark.compare("laplace", 20_000)


@pytest.mark.docs
def test_links_in_the_documents_lead_somewhere():
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    for document in documents:
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", document.read_text()):
            if not target.startswith(("http:", "https:", "mailto:")):
                assert (document.parent / target).exists(), f"{document.name}: {target}"


@pytest.mark.docs
def test_tests_that_the_documents_name_exist():
    for document in (ROOT / "docs").rglob("*.md"):
        for path in re.findall(r"`(tests/[\w/]+\.py)`", document.read_text()):
            assert (ROOT / path).exists(), f"{document.name}: {path}"


@pytest.mark.docs
def test_docstrings_that_name_a_proof_note_name_one_that_exists():
    notes = re.findall(r"^#+ (.+)$", (ROOT / "docs" / "privacy.md").read_text(), re.MULTILINE)
    named = []
    for path in SOURCES:
        named += re.findall(r'docs/privacy\.md`?,\s+"([^"]+)"', path.read_text())
    assert len(named) >= 3
    assert set(named) <= set(notes)
