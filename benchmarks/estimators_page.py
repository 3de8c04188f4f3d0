"""The page about private estimators, made of what `estimators.py` measured, and of nothing else."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from estimators_data import CASES, EPSILONS, Case, Kind
from estimators_peers import NEIGHBOURS, STEPS, about_dpsgd
from estimators_stability import EPSILONS as ALL_EPSILONS
from estimators_stability import falls
from sharing import table

ALLOWED = 0.01  # "auto" may be so much below the better reader
ALIKE = 0.005  # scores that are closer than this are no victory
SLOWEST = 4.0  # a build may take so many times the products alone
SLOWEST_ROUNDS = 3.0  # and rounds so many times the same rounds in plain float32
MOST_FALL = 0.01  # accuracy may fall by so much where ε or rows double
AUTO, READERS = "auto", ("rounds", "least_squares", "average")

COLUMNS_OF_EPSILON = [f"ε = {epsilon:g}" for epsilon in EPSILONS]
BY_EPSILON = " / ".join(f"{epsilon:g}" for epsilon in EPSILONS)

PROMISED = (
    "Accuracy, or R² for regression: the mean over splits (and draws of the noise) ± the standard "
    "deviation of one fit; in brackets what was promised. Rules of `auto` were chosen with "
    "a look at the same rows, if on other splits: figures are somewhat kind."
)
UNSEEN = "No rule and no number of the library was chosen with a look at these."
WATCHED = "Nothing was promised for these, but they were looked at while rules were chosen."

Part = dict[str, Any]


@dataclass(frozen=True)
class Line:
    """One line of the page: what was measured, with the peers of the same rows."""

    case: Case
    found: Part
    peers: Part

    def scores(self, reader: str, epsilon: float) -> np.ndarray:
        """Return a score for each split; "auto" is the reader that it chooses."""
        name = self.chosen(epsilon) if reader == AUTO else reader
        return np.array(self.found[name]["scores"][f"{epsilon:g}"])

    @property
    def readers(self) -> list[str]:
        """The readers that there are for such targets."""
        return [each for each in READERS if each in self.found]

    def mean(self, reader: str, epsilon: float) -> float:
        """Return the mean over splits."""
        return float(self.scores(reader, epsilon).mean())

    def chosen(self, epsilon: float) -> str:
        """Return the reader that "auto" chose."""
        return str(self.found["chosen"][f"{epsilon:g}"])

    def peer(self, name: str, epsilon: float) -> float | None:
        """Return the mean of a peer; None if it was not measured."""
        part = self.peers.get(name)
        return None if part is None else float(np.mean(part[f"{epsilon:g}"]["scores"]))

    def ceiling(self, name: str) -> str:
        """Return the mean of an exact method."""
        part = self.peers.get("ceilings")
        return "–" if part is None else number(np.mean([split[name] for split in part]))

    def missed(self, epsilon: float) -> float:
        """Return by how much the bar is missed; 0 if it is reached, or if there is none."""
        if self.case.bars is None:
            return 0.0
        return max(self.case.bars[EPSILONS.index(epsilon)] - self.mean(AUTO, epsilon), 0.0)

    def behind(self, epsilon: float) -> float:
        """Return by how much "auto" is below the best of the readers."""
        return max(self.mean(each, epsilon) for each in self.readers) - self.mean(AUTO, epsilon)


def number(score: float | None) -> str:
    """Return a score with three digits."""
    return "–" if score is None else f"{score:.3f}".replace("-", "−")


def lines_of(report: Part, *kinds: Kind) -> list[Line]:
    """Return the lines that were measured, in the order of the page."""
    cases = report["cases"]
    return [
        Line(case, cases[case.name], cases.get(case.same_rows_as or case.name, {}))
        for case in CASES
        if case.kind in kinds and "chosen" in cases.get(case.name, {})
    ]


def cells(lines: Sequence[Line]) -> Iterator[tuple[Line, float]]:
    """Return every line at every ε."""
    return ((line, epsilon) for line in lines for epsilon in EPSILONS)


def page(report: Part) -> str:
    """Return the whole page."""
    promised = lines_of(report, Kind.PROMISED)
    unseen, watched = lines_of(report, Kind.UNSEEN), lines_of(report, Kind.WATCHED)
    every = [*promised, *unseen, *watched]
    spoiled = lines_of(report, Kind.SPOILED)
    parts = [
        *first(promised, every),
        *accuracies("## What was promised, and what was measured", promised, PROMISED),
        *misses(promised),
        *accuracies("## Data that nothing was chosen on", unseen, UNSEEN),
        *accuracies("## More data", watched, WATCHED),
        *peers(every),
        *all_readers(every),
        *stability(report.get("stability")),
        *failures(spoiled, every),
        *speeds(report.get("speed")),
        *rounds_speed(report.get("rounds_speed")),
        *method(report),
    ]
    return "\n".join(parts).strip() + "\n"


def first(promised: Sequence[Line], every: Sequence[Line]) -> list[str]:
    """Return what a reader has to act on."""
    close = sum(line.behind(epsilon) <= ALLOWED for line, epsilon in cells(every))
    reached = sum(line.missed(epsilon) == 0 for line, epsilon in cells(promised))
    return [
        "# Private estimators, measured",
        "",
        (
            "`PrivateClassifier` and `PrivateRegressor` with their defaults, δ = 1e-5, add_remove "
            "neighbours. Made by `benchmarks/estimators.py`."
        ),
        "",
        "## What to do",
        "",
        (
            f'- **Leave `reader="auto"`.** It is at most {ALLOWED:g} below the best reader in '
            f"{close} of {4 * len(every)} cells: [every reader](#every-reader). It learns classes "
            "in rounds, and solves for numbers."
        ),
        (
            "- **Give each column its own `bounds`** if columns are quantities (age, hours), one "
            "pair for all if they are pixels, `norm` if rows are embeddings. Tight and honest "
            "ranges matter more than anything else you can choose: [where it fails](#where-it-"
            "fails)."
        ),
        "- **Give `public_rows`** if you have rows of the same kind that are no secret.",
        (
            "- **Expect** what the next tables say for data like yours: "
            f"{reached} of {4 * len(promised)} promised figures are reached."
        ),
        (
            "- **Take DP-SGD instead** if features have to be learnt, too: "
            "[other methods](#beside-other-methods)."
        ),
        "",
    ]


def accuracies(heading: str, lines: Sequence[Line], about: str) -> list[str]:
    """Return the scores of "auto" for each line, with the bars if there are any."""
    if not lines:
        return []
    rows = []
    for line in lines:
        shown = []
        for place, epsilon in enumerate(EPSILONS):
            scores = line.scores(AUTO, epsilon)
            text = f"{number(scores.mean())} ± {scores.std(ddof=min(1, len(scores) - 1)):.3f}"
            if line.case.bars is not None:
                missed = line.missed(epsilon) > 0
                text += f" ({'**missed**' if missed else '≥'} {line.case.bars[place]:g})"
            shown.append(text)
        size = f"{line.found['rows']:,} × {line.found['columns']}"
        splits = line.found[line.chosen(EPSILONS[0])]["splits"]
        fits = len(line.scores(AUTO, EPSILONS[0]))
        times = f"{splits}" if fits == splits else f"{splits} × {fits // splits}"
        rows.append([line.case.title, size, times, *shown])
    return [
        heading,
        "",
        about,
        *table(["data", "rows × columns", "splits × draws", *COLUMNS_OF_EPSILON], rows),
    ]


def misses(lines: Sequence[Line]) -> list[str]:
    """Return the bars that were missed, in words."""
    found = [
        f"{line.case.title} at ε = {epsilon:g} by {line.missed(epsilon):.4f}"
        for line, epsilon in cells(lines)
        if line.missed(epsilon) > 0
    ]
    if not lines:
        return []
    return [f"Missed: {'; '.join(found)}." if found else "Every bar is reached.", ""]


def peers(lines: Sequence[Line]) -> list[str]:
    """Return what other methods reach on the same splits."""
    rows = [
        [
            line.case.title,
            " / ".join(number(line.mean(AUTO, epsilon)) for epsilon in EPSILONS),
            *(
                " / ".join(number(line.peer(name, epsilon)) for epsilon in EPSILONS)
                for name in ("opacus", "dpsgd", "diffprivlib")
            ),
            line.ceiling("linear"),
            line.ceiling("neighbours"),
            number(line.found.get("most_frequent")),
        ]
        for line in lines
    ]
    own = [line for line in lines if line.case.same_rows_as is None]
    settings = [each for line in own for each in line.peers.get("dpsgd", {}).values()]
    return [
        "## Beside other methods",
        "",
        (
            f"At ε = {BY_EPSILON}. Not private: logistic regression (ridge for numbers) and "
            f"{NEIGHBOURS} nearest neighbours, which are what to aim at; *mode* is the share of "
            "the most frequent class, which takes no learning. No peer is given the public rows. "
            "Peers of images of 784 pixels were measured on one split. A dash: not run."
        ),
        *table(
            [
                *("data", "defaults", "Opacus, tuned", "DP-SGD, tuned", "diffprivlib"),
                *("linear", "neighbours", "mode"),
            ],
            rows,
        ),
        *beside_opacus(lines),
        *dpsgd_wins(lines),
        (
            "- *Opacus, tuned*: logistic regression of the columns, rows scaled to length one by "
            "what is public, Poisson sampling, PRV accountant. Learning rate, clipping, epochs and "
            "batch size are picked **on the test set**, which is generous: nobody can do that "
            "privately. On MNIST the largest of the rates is the best one: a longer list may do "
            "better."
        ),
        f"- *DP-SGD, tuned*: {about_dpsgd(settings)}",
        (
            "- *diffprivlib*: its `LogisticRegression` and `LinearRegression` with their defaults, "
            "rows within known bounds. It promises pure ε, which is more (δ = 0), and splits it "
            "between classes."
        ),
        "",
    ]


def beside_opacus(lines: Sequence[Line]) -> list[str]:
    """Return in words how the defaults compare with Opacus."""
    leads = {
        (line.case.title, epsilon): line.mean(AUTO, epsilon) - peer
        for line, epsilon in cells(lines)
        if (peer := line.peer("opacus", epsilon)) is not None
    }
    if not leads:
        return []
    behind = [
        f"{title} at ε = {epsilon:g} by {number(-lead)}"
        for (title, epsilon), lead in leads.items()
        if lead < -ALIKE
    ]
    mean = float(np.mean(list(leads.values())))
    return [
        (
            f"**Beside Opacus.** The defaults are no more than {ALIKE:g} below tuned Opacus "
            f"in {len(leads) - len(behind)} of {len(leads)} cells, and {number(abs(mean))} "
            f"{'ahead' if mean > 0 else '**behind**'} on the mean of all."
            + (f" Behind: {'; '.join(behind)}." if behind else "")
        ),
        "",
    ]


def dpsgd_wins(lines: Sequence[Line]) -> list[str]:
    """Return in words where DP-SGD is better, and what that takes."""
    gaps = {
        (line.case.title, epsilon): peer - line.mean(AUTO, epsilon)
        for line, epsilon in cells(lines)
        if (peer := line.peer("dpsgd", epsilon)) is not None
    }
    if not gaps:
        return []
    by_data: dict[str, list[str]] = {}
    for (title, epsilon), gap in gaps.items():
        if gap > ALIKE:
            by_data.setdefault(title, []).append(f"{number(gap)} at ε = {epsilon:g}")
    wins = sum(gap > ALIKE for gap in gaps.values())
    losses = sum(gap < -ALIKE for gap in gaps.values())
    mean = float(np.mean(list(gaps.values())))
    text = [
        (
            f"**Where DP-SGD wins.** Of {len(gaps)} cells, tuned DP-SGD is more than {ALIKE:g} "
            f"better in {wins}, and more than {ALIKE:g} worse in {losses}; on the mean of all "
            f"cells it is {number(abs(mean))} {'ahead' if mean > 0 else 'behind'}. It needs "
            f"{STEPS} passes over the private rows and tuning, and each try that looks at private "
            "rows would cost budget; here nothing is tuned."
        ),
        "",
    ]
    if by_data:
        text += [*(f"- {title}: by {', '.join(each)}." for title, each in by_data.items()), ""]
    return text


def all_readers(lines: Sequence[Line]) -> list[str]:
    """Return each reader alone, and where "auto" chose the wrong one."""
    rows = []
    for line in lines:
        shown = []
        for epsilon in EPSILONS:
            found = {each: number(line.mean(each, epsilon)) for each in line.readers}
            found[line.chosen(epsilon)] = f"**{found[line.chosen(epsilon)]}**"
            shown.append(", ".join(found.get(each, "–") for each in READERS))
        rows.append([line.case.title, *shown])
    wrong = [
        f"{line.case.title} at ε = {epsilon:g} by {number(line.behind(epsilon))}"
        for line, epsilon in cells(lines)
        if line.behind(epsilon) > ALLOWED
    ]
    fewer = [
        line.case.title
        for line in lines
        if len({line.found[each]["splits"] for each in line.readers}) > 1
    ]
    return [
        "## Every reader",
        "",
        (
            'Rounds, least squares, then averages; bold is what `"auto"` chose, by public numbers '
            "only. Numbers cannot be learnt in rounds."
            + (f" On fewer splits, but for the bold ones: {', '.join(fewer)}." if fewer else "")
        ),
        *table(["data", *COLUMNS_OF_EPSILON], rows),
        (
            f"More than {ALLOWED:g} below the best one: {'; '.join(wrong)}."
            if wrong
            else f"`auto` is never more than {ALLOWED:g} below the best one."
        ),
        "",
    ]


def stability(found: Part | None) -> list[str]:
    """Return by how much accuracy falls, at the most, where ε or rows double."""
    if not found:
        return []
    rows = []
    for name, each in found.items():
        [case] = [case for case in CASES if case.name == name]
        fall, at, what = falls(each)[0]
        sizes = [cell["rows"] for cell in each]
        rows.append(
            [
                case.title,
                f"{min(sizes):,} to {max(sizes):,}",
                f"{len(each)}",
                f"{number(fall)} ± {at['error']:.3f}",
                f"{at['rows']:,} rows, ε = {at['epsilon']:g}, twice the {what}",
            ]
        )
    worst = max(falls(each)[0][0] for each in found.values())
    kept = "within" if worst <= MOST_FALL else "**missing**"
    return [
        "## More never hurts",
        "",
        (
            f"`PrivateClassifier` from ε = {min(ALL_EPSILONS):g} to {max(ALL_EPSILONS):g} and from "
            "100 rows to all, means over seeds: by how much accuracy falls, at the most, where ε "
            f"or the number of rows doubles (a negative fall is a rise). {number(worst)} is {kept} "
            f"the promised {MOST_FALL:g}."
        ),
        *table(["data", "rows", "cells", "largest fall", "where"], rows),
    ]


def rounds_speed(speed: Part | None) -> list[str]:
    """Return how long rounds take."""
    if speed is None:
        return []
    ratio = speed["private"] / speed["plain"]
    kept = "within" if ratio <= SLOWEST_ROUNDS else "**missing**"
    return [
        (
            f"Rounds: {speed['rows']:,} rows of {speed['columns']} columns, {speed['features']:,} "
            f"features, {speed['passes']} passes: {speed['private']:.1f} seconds of the processor, "
            f"{ratio:.2f} times the same passes in plain float32 without privacy, {kept} the "
            f"promised {SLOWEST_ROUNDS:g}. The process grows by {speed['memory'] / 1e6:,.0f} MB, "
            f"of which {4e-6 * speed['rows'] * speed['features']:,.0f} MB are features."
        ),
        "",
    ]


def failures(spoiled: Sequence[Line], others: Sequence[Line]) -> list[str]:
    """Return where not to trust the defaults."""
    plain = {line.case.name: line for line in others}
    compared: dict[str, Line] = {}
    for line in spoiled:
        usual = plain.get(line.case.same_rows_as or "")
        compared |= {each.case.title: each for each in (usual, line) if each is not None}
    rows = [
        [title, *(number(line.mean(AUTO, epsilon)) for epsilon in EPSILONS)]
        for title, line in compared.items()
    ]
    few = [line for line in others if line.found["rows"] < 1_000]
    return [
        "## Where it fails",
        "",
        *(
            [
                (
                    "Public numbers that are loose, or that hide what columns are. A table that "
                    "was scaled to one range is taken for a picture."
                ),
                *table(["data", *COLUMNS_OF_EPSILON], rows),
            ]
            if rows
            else []
        ),
        *(
            f"- {line.case.title}, {line.found['rows']:,} rows: "
            f"{number(line.mean(AUTO, EPSILONS[0]))} at ε = {EPSILONS[0]:g} where exact linear "
            f"has {line.ceiling('linear')} and the most frequent class "
            f"{number(line.found['most_frequent'])}; single fits range from "
            f"{number(line.scores(AUTO, EPSILONS[0]).min())} to "
            f"{number(line.scores(AUTO, EPSILONS[0]).max())}. So few rows are largely luck."
            for line in few
        ),
        "",
    ]


def speeds(speed: Part | None) -> list[str]:
    """Return how long a build takes, and how large its file is."""
    if speed is None:
        return []
    rows = [
        [
            f"{each['rows']:,}",
            f"{each['build']:.1f}",
            f"{each['build'] / each['products']:.2f} ×",
            f"{each['file'] / 1e6:.2f} MB",
        ]
        for each in speed["sizes"]
    ]
    largest = speed["sizes"][-1]
    ratio = largest["build"] / largest["products"]
    flat = len({each["file"] for each in speed["sizes"]}) == 1
    return [
        "## Speed",
        "",
        (
            f"A build of least squares with {speed['features']} features, {speed['columns']} "
            f"columns and {speed['outputs']} outputs, against the float32 products ΦᵀΦ and ΦᵀV "
            "alone (numpy, features already there, the same run), in seconds of the processor. At "
            f"{largest['rows']:,} rows: {ratio:.2f} times, "
            f"{'within' if ratio <= SLOWEST else '**missing**'} the promised {SLOWEST:g}. The file "
            f"{'does not grow' if flat else '**grows**'} with the number of rows."
        ),
        *table(["rows", "processor seconds", "times the products", "file"], rows),
    ]


def method(report: Part) -> list[str]:
    """Return how it was measured."""
    versions = ", ".join(f"{name} {each}" for name, each in report.get("versions", {}).items())
    return [
        "## How it was measured",
        "",
        (
            "- Rows are split at random, and each split has noise of its own, from "
            "`discreet.testing.Seeded`. Of MNIST, the 10,000 test images are always the same; "
            "5,000 of the others are set aside, and public where the table says so."
        ),
        (
            "- Estimators are given ε, δ, public ranges (or a norm), classes, and the number of "
            "rows rounded to two digits. Ranges are plain numbers in the script."
        ),
        (
            "- Film reviews are two lines: all of them, cut off after 256 tokens, and those of at "
            "most 160 words, which the encoder reads to their end. The second came later, when "
            "the first was found to have a ceiling below most of what was promised."
        ),
        (
            "- Regression: 20,000 made-up rows, 8 columns, mostly linear; three sets that differ "
            "in how skewed columns are."
        ),
        f"- {versions}.",
        "",
    ]
