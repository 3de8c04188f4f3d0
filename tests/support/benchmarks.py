"""The scripts in benchmarks/, as modules."""

import importlib.util
import pathlib

ROOT = pathlib.Path(__file__).parents[2]


def script(name):
    """The script of that name; under another, since names of modules are not for two."""
    spec = importlib.util.spec_from_file_location(
        f"{name}_benchmark", ROOT / "benchmarks" / f"{name}.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
