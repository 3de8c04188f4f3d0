"""The wheel installs into an empty environment, without extras, and works there; with them, too."""

import json
import os
import pathlib
import subprocess
import sys
import sysconfig

import pytest

ROOT = pathlib.Path(__file__).parents[2]

USE = """
import importlib.util
import discreet
from discreet.accounting import Gaussian, gaussian_sigma, tight
from discreet.noise import RoundedGaussian

for extra in ("torch", "sklearn", "matplotlib", "opendp", "pytest"):
    assert importlib.util.find_spec(extra) is None, extra
sigma = gaussian_sigma(epsilon=1.0, delta=1e-6)
noise = RoundedGaussian(sigma=1000 * sigma).sample((100, 100))
assert 0.9 < noise.std() / (1000 * sigma) < 1.1
mechanism = Gaussian(sigma=sigma, sensitivity=1.0, neighbours="replace")
assert abs(tight([(mechanism, 1)], delta=1e-6) - 1) < 1e-6
keys, values = noise[:, :4] / sigma / 2000, noise[:, 4:6] / sigma / 2000
# So large that answers from 100 rows are not mostly noise: warnings are errors here.
memory = discreet.build(keys, values, epsilon=8.0, delta=1e-6, scale=2.0)
memory.save("memory.safetensors")
again = discreet.load("memory.safetensors")
assert (again.attend(keys) == memory.attend(keys)).all()
print("works", discreet.__version__)
"""

pytestmark = pytest.mark.slow  # it makes a virtual environment of its own


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from the source distribution."""
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT))
    [wheel] = folder.glob("discreet-*.whl")
    return wheel


def fresh_environment(folder):
    """The bin folder of a new environment."""
    run(sys.executable, "-m", "venv", str(folder))
    return folder / "bin"


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The bin folder of a fresh environment with nothing but the wheel."""
    place = fresh_environment(tmp_path_factory.mktemp("plain"))
    constraints = ROOT / "constraints.txt"
    run(place / "pip", "install", "--quiet", "-c", str(constraints), str(wheel))
    return place


@pytest.fixture(scope="module")
def with_extras(wheel, tmp_path_factory):
    """The bin folder of an environment with the wheel, and all else from the one of the tests."""
    place = fresh_environment(tmp_path_factory.mktemp("extras"))
    run(place / "pip", "install", "--quiet", "--no-deps", "--no-index", str(wheel))
    # Of a folder that is added so, no other .pth file is read: none leads back to the sources.
    find = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = pathlib.Path(run(place / "python", "-c", find).strip())
    (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return place


def test_the_wheel_works_without_extras(installed, tmp_path):
    python = str(installed / "python")
    assert run(python, "-W", "error", "-c", USE, cwd=tmp_path).startswith("works")
    site = pathlib.Path(
        run(python, "-c", "import discreet; print(discreet.__file__)").strip()
    ).parent
    assert (site / "py.typed").exists()


def test_the_installed_command_works(installed, tmp_path):
    command = str(installed / "discreet")
    environment = {**os.environ, "COLUMNS": "100"}
    assert "demo" in run(command, "--help", cwd=tmp_path, env=environment)
    assert run(command, "--version", cwd=tmp_path).startswith("discreet ")
    refused = subprocess.run(
        [command, "demo"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 2
    assert "pip install 'discreet[sklearn]'" in refused.stderr  # the digits are not in the core


@pytest.mark.parametrize(
    ("package", "name", "start"),
    [
        ("discreet_benchmarks.demo", "dpsgd.json", "{"),
        ("discreet_benchmarks.demo", "page.html", "<h1>"),
        ("discreet_benchmarks.demo", "topics.txt", "accept reservations"),
        ("discreet.pages", "corpus.html", "<h1>"),
        ("discreet.pages", "release.html", "<h1>"),
        ("discreet.text", "strangers.txt", "How long do I boil an egg"),
        ("discreet.pages", "sheet.html", "<!DOCTYPE html>"),
    ],
)
def test_templates_and_figures_of_others_come_with_the_wheel(
    installed, tmp_path, package, name, start
):
    code = (
        "from importlib import resources\n"
        f"print(resources.files('{package}').joinpath('{name}').read_text('utf-8'))"
    )
    assert run(str(installed / "python"), "-c", code, cwd=tmp_path).startswith(start)


def outside(folder):
    """How to run a command in a folder that knows nothing of the repository."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {"cwd": folder, "env": environment}


@pytest.mark.parametrize("package", ["discreet", "discreet_benchmarks"])
def test_both_packages_are_the_installed_ones(with_extras, tmp_path, package):
    code = f"import {package}; print({package}.__file__)"
    place = run(with_extras / "python", "-c", code, **outside(tmp_path)).strip()
    assert pathlib.Path(place).is_relative_to(with_extras.parent)


def test_the_demo_runs_from_the_wheel(with_extras, tmp_path):
    pytest.importorskip("sklearn", reason="needs the extra `sklearn`")
    command = with_extras / "discreet"
    assert "--splits" in run(command, "demo", "--help", **outside(tmp_path))
    found = json.loads(run(command, "demo", "--splits", "2", "--json", **outside(tmp_path)))
    assert found["splits"] == 2
    assert sum(each["dpsgd"] is not None for each in found["accuracies"]) == 4
    [page] = tmp_path.iterdir()
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_the_report_runs_from_the_wheel(with_extras, tmp_path):
    pytest.importorskip("matplotlib", reason="needs the extra `plots`")
    pytest.importorskip("sklearn", reason="needs the extra `sklearn`")
    command = (with_extras / "discreet", "paper", "report")
    assert "--quick" in run(*command, "--help", **outside(tmp_path))
    run(*command, "--quick", "-o", "report", **outside(tmp_path))
    page = (tmp_path / "report" / "paper-results.md").read_text(encoding="utf-8")
    assert page.startswith("# The paper, measured")
    assert len(list((tmp_path / "report").glob("paper-*.png"))) == 9
