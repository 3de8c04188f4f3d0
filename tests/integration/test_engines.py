"""What docs/howto/shards.md shows of Ray and Spark runs, where they are installed."""

import importlib.util
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

import discreet

pytestmark = pytest.mark.docs

PAGE = (pathlib.Path(__file__).parents[2] / "docs" / "howto" / "shards.md").read_text("utf-8")
ENGINES = {"Ray": "ray", "Spark": "pyspark"}


def shown(heading):
    """Return the program under a heading, and the one that writes the rows."""
    [program] = re.findall(rf"### {heading}\n.*?```py\n(.*?)```", PAGE, re.DOTALL)
    rows = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)
    return program, rows[1]


@pytest.mark.slow
@pytest.mark.parametrize("heading", ENGINES)
def test_the_page_runs_as_printed(heading, tmp_path):
    if importlib.util.find_spec(ENGINES[heading]) is None:
        pytest.skip(f"needs {heading}")
    if heading == "Spark" and shutil.which("java") is None:
        pytest.skip("needs Java")
    program, rows = shown(heading)
    (tmp_path / "rows.py").write_text(rows)
    (tmp_path / "program.py").write_text(program)
    for script in ("rows.py", "program.py"):
        done = subprocess.run(
            [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[-2000:]
    memory = discreet.load(tmp_path / f"{heading.lower()}.safetensors")
    assert memory.private
    assert memory.guarantee.unit == ("record" if heading == "Spark" else "row")
    assert list(memory.attend(np.eye(3, 16)).argmax(axis=1)) == [0, 1, 2]
