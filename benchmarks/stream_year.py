"""A year of texts, some of them every day: how well the last days of a stream tell good from bad.

Beside it one single release of the same rows, and exact attention over them. Each is asked for its
answers to texts that are in none of them; how often a good one is above a bad one is the AUC.
"""

import pathlib
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sharing import table, tell
from stream_shared import DELTA, EPSILON, KEY, Effort, Promise, Report
from stream_texts import ABOUT, SCALE, Texts, questions, reviews

import discreet
from discreet.errors import MostlyNoiseWarning
from discreet.noise import RoundedGaussian
from discreet.readers.attention.memory import Memory
from discreet.testing import Seeded

OPTIONS: dict[str, Any] = {"epsilon": EPSILON, "delta": DELTA, "scale": SCALE}
ALL, MONTH, HALF_LIFE, WEEK = "all so far", "last 30 days", "half-life of 14 days", "last 7 days"
READINGS = (ALL, MONTH, HALF_LIFE, WEEK)
TUNED = "last 30 days, made for it"
LOST = 0.02  # of AUC is little
MANY, FEW = 300, 14  # rows a day of which something was promised

# --- one year -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Year:
    """The rows of every day, drawn with replacement, and what is made of them.

    Attributes:
        texts: of the rows.
        days: numbers of rows, shape (days, rows a day).
        seed: of the noise.
    """

    texts: Texts
    days: np.ndarray
    seed: int

    def weights(self, reading: str) -> np.ndarray:
        """Return how much each of the private texts counts."""
        days = np.arange(len(self.days))[::-1]
        of_day = {
            ALL: np.ones(len(days)),
            MONTH: days < 30,
            WEEK: days < 7,
            HALF_LIFE: 0.5 ** (days / 14),
        }[reading]
        every = np.repeat(of_day, self.days.shape[1])
        return np.bincount(self.days.ravel(), weights=every, minlength=len(self.texts.keys))

    def stream(
        self, folder: pathlib.Path, seed: int, *, window: int | None = None, rows: bool = True
    ) -> discreet.Stream:
        """Return a stream with all days; without rows, its noise is left."""
        stream = discreet.Stream(
            folder,
            key=KEY,
            steps=len(self.days),
            window=window,
            rows_hint=self.days.size,
            entropy=Seeded(seed),
            **OPTIONS,
        )
        for day, index in enumerate(self.days if rows else self.days[:, :0]):
            keys, labels = self.texts.keys[index], self.texts.labels[index, None]
            stream.append(keys, labels, step=f"{day}")
        return stream

    def single(self, last: int) -> Memory:
        """Return one single release of the last days."""
        index = self.days[-last:].ravel()
        keys, labels = self.texts.keys[index], self.texts.labels[index, None]
        entropy = Seeded(1_000 + self.seed)
        return discreet.build(keys, labels, rows_hint=index.size, entropy=entropy, **OPTIONS)

    def single_decayed(self, stream: discreet.Stream, folder: pathlib.Path) -> Memory:
        """Return one single release of rows whose weights halve: their sums, and noise once.

        No front door makes one. The sums are those of the stream, less what it is without rows.
        """
        hollow = self.stream(folder, self.seed, rows=False)
        made, noise = (read(each, HALF_LIFE).released for each in (stream, hollow))
        assert made.stream is not None
        sigma = made.sigma / made.stream.factor
        entropy = Seeded(2_000 + self.seed)
        drawn = RoundedGaussian(sigma=sigma).sample(made.state.shape, entropy=entropy)
        state = made.state - noise.state + drawn
        return Memory(replace(made, state=state, sigma=sigma, stream=None))


def read(stream: discreet.Stream, reading: str) -> Memory:
    """Return what answers from the rows of a reading."""
    readers: dict[str, Callable[[], Memory]] = {
        ALL: stream.memory,
        MONTH: lambda: stream.window(last=30),
        HALF_LIFE: lambda: stream.decayed(half_life=14),
        WEEK: lambda: stream.window(last=7),
    }
    return readers[reading]()


def answered(memory: Memory, texts: Texts) -> tuple[float, bool]:
    """Return the AUC of a memory's answers, and whether it warned that they are mostly noise."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        answers = np.asarray(memory.attend(texts.queries))[:, 0]
    warned = any(issubclass(each.category, MostlyNoiseWarning) for each in caught)
    return texts.auc(answers), warned


def one_year(year: Year) -> Report:
    """Return the AUC of each reading: of a stream, of one release, and exactly."""
    texts, found = year.texts, {}
    lasts = {ALL: len(year.days), MONTH: 30, WEEK: 7}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        stream = year.stream(folder / "stream", year.seed)
        for reading in READINGS:
            memory = read(stream, reading)
            auc, warned = answered(memory, texts)
            last = lasts.get(reading)
            if last is None:
                one = year.single_decayed(stream, folder / "hollow")
            else:
                one = year.single(last)
            found[reading] = {
                "stream": auc,
                "one": answered(one, texts)[0],
                "exact": texts.auc(texts.exact(year.weights(reading))),
                "warned": warned,
                "said": dict(memory.card.sentences)["prediction"].split(". ")[0],
            }
        tuned = year.stream(folder / "tuned", 3_000 + year.seed, window=30)
        auc, warned = answered(read(tuned, MONTH), texts)
        found[TUNED] = {**found[MONTH], "stream": auc, "warned": warned}
    return found


def together(years: list[Report]) -> Report:
    """Return means over several years, and the standard error of what a stream loses."""
    found = {}
    for reading in (*READINGS, TUNED):
        every = [year[reading] for year in years]
        lost = [each["one"] - each["stream"] for each in every]
        found[reading] = {
            **{
                name: float(np.mean([each[name] for each in every]))
                for name in ("stream", "one", "exact")
            },
            "lost_stderr": float(np.std(lost, ddof=len(lost) > 1) / np.sqrt(len(lost))),
            "warned": sum(each["warned"] for each in every),
            "said": every[0].get("said", ""),
        }
    return found


def measure(effort: Effort) -> Report:
    """Return the AUCs of years of texts, by data set and rows a day."""
    warnings.simplefilter("ignore", MostlyNoiseWarning)
    sets: Report = {}
    for texts in (reviews(effort), questions(effort)):
        if texts is None:
            continue
        rates: Report = {}
        for rows, count in effort.rows_a_day:
            rng = np.random.default_rng(rows)
            years = []
            for seed in range(count):
                days = rng.integers(len(texts.keys), size=(effort.days, rows))
                years.append(one_year(Year(texts, days, seed)))
            rates[f"{rows}"] = {"years": count, "readings": together(years)}
            month = rates[f"{rows}"]["readings"][MONTH]
            tell(f"{texts.name}, {rows:,} a day: {month['stream']:.3f}, one {month['one']:.3f}")
        sets[texts.name] = {
            "private": len(texts.keys),
            "queries": len(texts.queries),
            "rates": rates,
        }
    return {"days": effort.days, "sets": sets}


# --- the page -------------------------------------------------------------------------------------


def page(report: Report) -> list[str]:
    """Return the section of the page."""
    lines = [
        (
            f"{report['days']} days, ε = {EPSILON:g} and δ = {DELTA:g} for the whole year, scale "
            f"{SCALE:g}. The figure is the AUC of answers to texts that are in no memory: how "
            "often one of the first class is above one of the second; a coin has 0.5. Each cell "
            "has three: the *stream*; *one release*, a single `discreet.build` of the same rows "
            "with the whole ε, which could not be done every day; and *exact* attention over these "
            "rows, without noise. Bold: the state did not warn that its answers are mostly noise."
        ),
        "",
    ]
    for name, found in report["sets"].items():
        lines += [
            f"### {name[0].upper()}{name[1:]}",
            "",
            (
                f"{found['private']:,} private {ABOUT[name]}; {found['queries']:,} others ask. "
                "Rows of a day are drawn with replacement, since a year has more rows than there "
                f"are texts. Means of {years_of(found)} for each number of rows."
            ),
            *rates_table(found),
            *needed_lines(found),
        ]
    return [*lines, *noisy_lines(report)]


def in_short(report: Report) -> list[str]:
    """Return what to act on."""
    return [
        (
            f"- At ε = {EPSILON:g} for the whole year, {name} are ranked nearly as well as without "
            f"any noise (AUC at most {LOST} below) from {needed_words(found, ALL)} rows a day on "
            f"by all so far, {needed_words(found, MONTH)} by the last 30 days, and "
            f"{needed_words(found, WEEK)} by the last 7."
        )
        for name, found in report["sets"].items()
    ]


def years_of(found: Report) -> str:
    """Return how many years there were."""
    counts = sorted({rate["years"] for rate in found["rates"].values()})
    return f"{counts[0]} years" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} years"


def rates_table(found: Report) -> list[str]:
    """Return every AUC of one data set."""
    rows = []
    for reading in (*READINGS, TUNED):
        cells = []
        for each in found["rates"].values():
            cell = each["readings"][reading]
            mark = "" if cell["warned"] else "**"
            stream = f"{mark}{cell['stream']:.3f}{mark}"
            cells.append(f"{stream} / {cell['one']:.3f} / {cell['exact']:.3f}")
        rows.append([reading, *cells])
    return table(["read", *(f"{int(rate):,} a day" for rate in found["rates"])], rows)


def needed(found: Report, reading: str) -> int | None:
    """Return the least number of rows a day, of those tried, from which little is lost to noise."""
    enough = None
    for rate in sorted(map(int, found["rates"]), reverse=True):
        cell = found["rates"][f"{rate}"]["readings"][reading]
        if cell["exact"] - cell["stream"] > LOST:
            break
        enough = rate
    return enough


def needed_words(found: Report, reading: str) -> str:
    """Return that number for the page."""
    rate, most = needed(found, reading), max(map(int, found["rates"]))
    return f"more than {most:,}" if rate is None else f"{rate:,}"


def needed_lines(found: Report) -> list[str]:
    """Return from how many rows a day each reading is nearly exact, and what one release has."""
    parts = [f"{each}: {needed_words(found, each)}" for each in (*READINGS, TUNED)]
    lines = [
        (
            f"Rows a day from which the stream is at most {LOST} below exact attention, of those "
            f"that were tried: {'; '.join(parts)}."
        ),
        "",
    ]
    if f"{MANY}" in found["rates"]:
        month = found["rates"][f"{MANY}"]["readings"][MONTH]
        lost = month["one"] - month["stream"]
        lines += [
            (
                f"At {MANY} a day, the last 30 days of the stream are {lost:.3f} ± "
                f"{month['lost_stderr']:.3f} below one release of them."
            ),
            "",
        ]
    return lines


def noisy_lines(report: Report) -> list[str]:
    """Return what a window of too few rows says of itself."""
    name, found = next(iter(report["sets"].items()))
    few = min(map(int, found["rates"]))
    cell = found["rates"][f"{few}"]["readings"][MONTH]
    return [
        "### What a window says that is noise",
        "",
        (
            f"At {few} rows a day the last 30 days ({name}) warn with `MostlyNoiseWarning` when "
            f"they are asked, and their card says: *{cell['said']}.* Both go by public numbers, "
            "and assume rows that are spread evenly. Real texts lie in groups, so a window may "
            "warn and still rank well, as tables above show; one that does not warn can be used."
        ),
        "",
    ]


def promises(report: Report) -> list[Promise]:
    """Return what was promised of a year of texts."""
    made = []
    for name, found in report["sets"].items():
        if not {f"{MANY}", f"{FEW}"} <= set(found["rates"]):
            continue
        month = found["rates"][f"{MANY}"]["readings"][MONTH]
        lost = month["one"] - month["stream"]
        made.append(
            Promise(
                f"{name}, {MANY} a day: AUC of the last 30 days below one release",
                f"at most {LOST}",
                f"{lost:.3f}",
                kept=lost <= LOST,
            )
        )
        few = found["rates"][f"{FEW}"]
        made.append(
            Promise(
                f"{name}, {FEW} a day: the last 30 days say that they are noise",
                "always",
                f"{few['readings'][MONTH]['warned']} of {few['years']}",
                kept=few["readings"][MONTH]["warned"] == few["years"],
            )
        )
    return made
