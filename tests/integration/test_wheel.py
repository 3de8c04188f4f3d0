"""The wheel installs into an empty environment, without extras, and works there."""

import os
import pathlib
import subprocess
import sys

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
memory = discreet.build(keys, values, epsilon=1.0, delta=1e-6, scale=2.0)
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
def installed(tmp_path_factory):
    """The bin folder of a fresh environment with nothing but the wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    run(
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        str(folder),
        str(ROOT),
    )
    [wheel] = folder.glob("discreet-*.whl")
    run(sys.executable, "-m", "venv", str(folder / "venv"))
    python = folder / "venv" / "bin" / "python"
    constraints = ROOT / "constraints.txt"
    run(str(python), "-m", "pip", "install", "--quiet", "-c", str(constraints), str(wheel))
    return python.parent


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


def test_figures_of_others_come_with_the_wheel(installed, tmp_path):
    code = "from discreet_benchmarks.demo import digits; print(len(digits.dpsgd_accuracy()))"
    assert run(str(installed / "python"), "-c", code, cwd=tmp_path).strip() == "4"


@pytest.mark.parametrize(
    ("room", "name", "start"),
    [("demo", "page", "<h1>"), ("pages", "release", "<h1>"), ("pages", "sheet", "<!DOCTYPE html>")],
)
def test_the_templates_of_pages_come_with_the_wheel(installed, tmp_path, room, name, start):
    code = (
        "from importlib import resources\n"
        f"print(resources.files('discreet.{room}').joinpath('{name}.html').read_text('utf-8'))"
    )
    assert run(str(installed / "python"), "-c", code, cwd=tmp_path).startswith(start)
