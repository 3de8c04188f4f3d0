"""The page docs/peers.md, written from what `peers.py` measured.

Where another is ahead is found in the figures, and said first. A part that was not measured is left
out.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from sharing import ROOT, table
from stream_noise import HONAKER, INDEPENDENT, SQUARE_ROOT, THIS, TREE
from tables_page import PRIVTAB

WAYS = (THIS, SQUARE_ROOT, HONAKER, TREE, INDEPENDENT)  # of making noise, the best first

PAGE = ROOT / "docs" / "peers.md"

Report = Mapping[str, Any]
Cells = Mapping[str, Mapping[str, Any]]

MEMORY, PUBLIC, FINER = "memory", "memory, public rows", "memory, finer kernel"
PROCESS, WAVES, GAUSSIAN = "process", "waves, Laplace", "waves, Gaussian"
COUNTS, NOISY_ROWS = "counts", "noisy rows"
QUESTIONS = ("1 questions", "100 questions", "10000 questions")
TREES = ("trees, tight", "trees, c", "trees, paper")
OWN = (MEMORY, PUBLIC, FINER)

NAMES = {
    MEMORY: "**memory**, its defaults",
    PUBLIC: "**memory**, given public rows",
    FINER: "**memory**, `eps_s=0.001`",
    COUNTS: "Laplace counts at public points (δ = 0)",
    WAVES: "LSQ features with Laplace noise (δ = 0)",
    GAUSSIAN: "the same features with Gaussian noise",
    NOISY_ROWS: "noise on each row (a weaker promise)",
    "1 questions": "noise per question, 1 question in all",
    "100 questions": "noise per question, 100 in all",
    "10000 questions": "noise per question, 10,000 in all",
    PROCESS: "Gaussian process (a limit: cannot be released)",
    "trees, tight": "the paper's trees, tight accounting",
    "trees, c": "the paper's trees, largest c",
    "trees, paper": "the paper's trees, c = 0.1",
    "exact": "exact attention, not private",
}
ORDER = {name: place for place, name in enumerate(("exact", *NAMES))}
CASES = {
    "digits": "digits: handwritten, 8 × 8 pixels (scikit-learn)",
    "texts": "texts: questions to an assistant, MiniLM (CLINC150)",
    "mnist": "mnist: handwritten digits, 28 × 28 pixels",
    "clusters": "clusters: made-up points around twelve centres",
}
TASKS = {"density": "kernel density", "attention": "attention"}
ONE = "1"  # the ε of most statements


def page(report: Report) -> str:
    """Return docs/peers.md."""
    parts = [
        _begin(),
        _wins(report),
        _sums(report.get("sums", {})),
        _square(report.get("square", {})),
        _speed(report.get("speed", {})),
        _tables(report.get("tables", {})),
        _texts(report.get("texts", {})),
        _streams(report.get("streams", {})),
        _kindness(report),
        _how(report),
    ]
    return "\n".join(part for part in parts if part).rstrip() + "\n"


def mean(cell: Mapping[str, Any]) -> float:
    """Return the mean error of a cell."""
    return float(np.mean(cell["errors"]))


def short(number: float) -> str:
    """Return a number with three digits."""
    return f"{number:,.0f}" if abs(number) >= 1_000 else f"{number:.3g}"


def listed(names: Sequence[str]) -> str:
    """Return names with commas and an "and"."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _begin() -> str:
    return """# Beside other private methods

*What else one could use, at the same (ε, δ) and for the same neighbours, on the same rows, in one run. Made by `benchmarks/peers.py`.*
"""


# --- where another wins ---------------------------------------------------------------------------


def _wins(report: Report) -> str:
    lines = [
        *_wins_of_sums(report.get("sums", {}), report.get("square", {})),
        *_wins_of_tables(report.get("tables", {})),
        *_wins_of_texts(report.get("texts", {})),
        *_wins_of_streams(report.get("streams", {})),
        *_wins_of_speed(report.get("speed", {})),
    ]
    return "\n".join(["## Where another wins", "", *lines, ""])


def cells_of(sums: Report) -> Iterator[tuple[str, str, str, Cells]]:
    """Return data, task, ε and the methods of all cells, in the order of the page."""
    for name in CASES:
        for task in TASKS:
            by_epsilon = sums.get(f"{name} {task}", {}).get("by_epsilon", {})
            for epsilon in sorted(by_epsilon, key=float):
                yield name, task, epsilon, by_epsilon[epsilon]


def counts_of(square: Report) -> list[str]:
    """Return numbers of rows on the square, the smallest first."""
    return sorted((count for count in square if count != "needs"), key=int)


def ahead(
    found: Sequence[tuple[str, str, str, Cells]], method: str, own: Sequence[str]
) -> tuple[list[str], int, int]:
    """Return where a method has less error than the best of ours, in how many cells, of how many."""
    places: dict[tuple[str, str], list[str]] = {}
    count = 0
    for name, task, epsilon, cells in found:
        if method in cells:
            count += 1
            best = min(mean(cells[each]) for each in own if each in cells)
            if mean(cells[method]) < best:
                places.setdefault((name, task), []).append(epsilon)
    words = [
        f"{name}, {TASKS.get(task, task)}, at ε = {listed(each)}"
        for (name, task), each in places.items()
    ]
    return words, sum(map(len, places.values())), count


def _wins_of_sums(sums: Report, square: Report) -> Iterator[str]:
    found = [
        *cells_of(sums),
        *(
            (f"square of {int(count):,} rows", "attention", epsilon, cells)
            for count in counts_of(square)
            for epsilon, cells in square[count]["by_epsilon"].items()
        ),
    ]
    if not found:
        return
    until = [
        f"{name}, {TASKS[task]}: {break_even(cells):,}"
        for name, task, epsilon, cells in found
        if epsilon == ONE and name in CASES
    ]
    yield f"- **You will ask few questions, and know how many.** Noise for each question, by the Gaussian mechanism, costs less than a memory up to about so many questions in all, at ε = 1: {'; '.join(until)}. Then its budget is spent; a memory's never is."
    words, wins, count = ahead(found, COUNTS, OWN)
    yield f"- **Values are classes, and there are public rows.** Counts of classes at public points, with Laplace noise, have less error than the best memory in {wins} of {count} cells, and δ = 0: {_or_none(words)}. Any library of counts can do that, and so does ours: [`discreet.Corpus`](ask-texts.md) and the reader `table`. How many points is picked kindly here, and values that are numbers need more noise."
    for method, title, more in (
        (WAVES, "Random features with Laplace noise (LSQ)", ", and they have δ = 0"),
        (
            GAUSSIAN,
            "The same features with Gaussian noise",
            " (a memory in plain floating point, with features and τ picked on exact answers)",
        ),
        (NOISY_ROWS, "Noise on each row", ""),
        *((name, NAMES[name][0].upper() + NAMES[name][1:], "") for name in TREES),
    ):
        words, wins, count = ahead(found, method, (MEMORY,))
        if wins:
            has = "has" if method == NOISY_ROWS else "have"
            yield f"- **{title}** {has} less error than a memory with its defaults in {wins} of {count} cells{more}: {_or_none(words)}."
    least, all_cells = best_of_all(found)
    yield f"- **Elsewhere** a memory has the least error of all that can be released and asked without end: with its defaults in {least[0]} of {all_cells} cells, as well as one can have it (public rows, a finer kernel) in {least[1]}."
    words, wins, count = ahead(found, PROCESS, OWN)
    yield f"- **The limit is lower still.** The Gaussian process of Hall, Rinaldo and Wasserman has less error in {wins} of {count} cells. It is no release: somebody has to keep the rows, and every question that was ever asked."


ENDLESS = (COUNTS, WAVES, GAUSSIAN, NOISY_ROWS, *TREES)


def best_of_all(found: Sequence[tuple[str, str, str, Cells]]) -> tuple[tuple[int, int], int]:
    """Return in how many cells a memory beats all other releases: its defaults, and the best one."""
    default = best = 0
    for *_, cells in found:
        others = min(mean(cells[method]) for method in ENDLESS if method in cells)
        default += mean(cells[MEMORY]) < others
        best += min(mean(cells[each]) for each in OWN if each in cells) < others
    return (default, best), len(found)


def _or_none(words: Sequence[str]) -> str:
    return "; ".join(words) if words else "none"


def break_even(cells: Cells) -> int:
    """Return up to how many questions noise for each has no more error than a memory.

    Noise grows as the root of their number.
    """
    return int((mean(cells[MEMORY]) / mean(cells[QUESTIONS[0]])) ** 2)


def _areas(found: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Return the areas of all methods on a table, by μ."""
    rivals = found.get("rivals") or {}
    measured = {"ours": found["ours"], **{m: rivals.get(m, {}) for m in ("dp-ebm", "opacus")}}
    return {
        method: {budget: float(np.mean(each)) for budget, each in by.items()}
        for method, by in measured.items()
    }


def _published(name: str, budgets: Sequence[str]) -> dict[str, dict[str, float]]:
    _, theirs, regression = PRIVTAB[name]
    return {
        "PrivTab": dict(zip(budgets, theirs, strict=True)),
        "its logistic regression": dict(zip(budgets, regression, strict=True)),
    }


BUDGETS = ("0.1", "0.2", "0.4", "0.8", "1.6")
RIVALS_OF_TABLES = {
    "PrivTab": "PrivTab, published",
    "its logistic regression": "PrivTab's logistic regression, published",
    "dp-ebm": "DP-EBM",
    "opacus": "Opacus, tuned on the test sets",
}


def _wins_of_tables(tables: Report) -> Iterator[str]:
    for method, title in RIVALS_OF_TABLES.items():
        words, cells = [], 0
        for name, (label, *_) in PRIVTAB.items():
            if name not in tables:
                continue
            areas = _areas(tables[name]) | _published(name, BUDGETS)
            for budget in BUDGETS:
                if budget in areas[method] and budget in areas["ours"]:
                    cells += 1
                    theirs, own = areas[method][budget], areas["ours"][budget]
                    if theirs > own:
                        words.append(f"{label} at μ = {budget} ({theirs:.3f} against {own:.3f})")
        if words:
            yield f"- **Small tables: {title}** is ahead in {len(words)} of {cells} cells: {'; '.join(words)}."


def _wins_of_texts(texts: Report) -> Iterator[str]:
    others = texts.get("published")
    if not others:
        return
    yield "- **Answers in sentences.** dp-rag and DP-SynRAG write text and can say what no word of ours says; ours gives words that many records have, with counts."
    if "ours" in texts:
        right = texts["ours"]["right"]
        low, high = others["DP-SynRAG"]["right"]
        first = right["10"][0]
        if first < high:
            yield f"- **One word only.** DP-SynRAG publishes {low:.0%} to {high:.0%} right at ε = 10, with larger models. Our first word is right in {first:.0%}; of our first two, one is right in {right['10'][1]:.0%}."
        first = right["5.3"][0]
        if first < others["dp-rag"]["right"]:
            yield f"- **One word only.** dp-rag publishes {others['dp-rag']['right']:.1%} right; our first word is right in {first:.1%}."


def _wins_of_streams(streams: Report) -> Iterator[str]:
    if not streams:
        return
    year = streams.get("365", next(iter(streams.values())))
    own = year[THIS]
    yield f"- **You release once, at the end.** One release has 1/{own['last']:.3g} of the noise that a stream has after {_steps(streams, year)} steps. And if only single steps are asked for, never totals, releases of each step alone have less noise."
    words = []
    for steps in sorted(streams, key=int):
        ways = streams[steps]
        words += [
            f"{name}: after {ways[name]['quieter']:,} of {int(steps):,} steps"
            for name in (TREE, HONAKER, INDEPENDENT)
            if ways[name]["quieter"]
        ]
    yield f"- **At some steps.** Others have less noise there, and more at most others ({'; '.join(words)}): trees just after a power of two steps, independent releases at the beginning."
    root = year[SQUARE_ROOT]
    if root["most"] < own["most"]:
        yield f"- **The square root of the matrix of prefix sums** has {1 - root['most'] / own['most']:.1%} less noise than a stream, if one can keep {root['arrays']:,} secret arrays instead of {own['arrays']}."


def _steps(streams: Report, ways: Mapping[str, Any]) -> str:
    return next(f"{int(steps):,}" for steps, each in streams.items() if each is ways)


def _wins_of_speed(speed: Report) -> Iterator[str]:
    words = []
    for name, found in speed.items():
        methods = found["methods"]
        if name == "square" or MEMORY not in methods:
            continue
        ask, size = methods["exact"]["ask"], methods[MEMORY]["bytes"]
        ratio = ask / methods[MEMORY]["ask"]
        words.append(
            f"{name} ({found['rows']:,} × {found['dim']}): a memory answers {ratio:.2g} times as fast as exact attention, counts {ask / methods[COUNTS]['ask']:.2g} times, LSQ features {ask / methods[WAVES]['ask']:.2g} times; files are {_bytes(size)}, {_bytes(methods[COUNTS]['bytes'])} and {_bytes(methods[WAVES]['bytes'])}"
        )
    if words:
        yield f"- **Speed and size.** {'; '.join(words)}. With few rows exact attention is fastest: [when it is not](memory-results.md)."


# --- kernel density and attention -----------------------------------------------------------------


def _sums(sums: Report) -> str:
    if not sums:
        return ""
    lines = [_ABOUT_SUMS]
    for task, title in TASKS.items():
        cases = [name for name in CASES if f"{name} {task}" in sums]
        if not cases:
            continue
        found = {name: sums[f"{name} {task}"] for name in cases}
        epsilons = sorted(next(iter(found.values()))["by_epsilon"], key=float)
        head = [f"{name}" for name in cases]
        rows = [
            [NAMES[method], *(_slashed(found[name], method, epsilons) for name in cases)]
            for method in (MEMORY, PUBLIC, COUNTS, WAVES, GAUSSIAN, NOISY_ROWS, *QUESTIONS, PROCESS)
        ]
        rows.append(
            ["the best constant answer", *(short(found[name]["constant"]) for name in cases)]
        )
        what = _ABOUT[task]
        scales = "; ".join(f"{name} {found[name]['scale']:g}" for name in cases)
        lines += [
            f"### {title[0].upper()}{title[1:]}",
            "",
            f"{what} At ε = {' / '.join(epsilons)}. Scales: {scales}.",
        ]
        lines += table(["method", *head], rows)
    sizes = [
        f"*{name}*: {CASES[name].partition(': ')[2]}, {each['rows']:,} rows of {each['dim']} numbers, {each['classes']} classes, {each['public']:,} public rows, {each['queries']} queries"
        for name in CASES
        for each in [sums.get(f"{name} attention") or sums.get(f"{name} density")]
        if each
    ]
    lines += [f"Rows have length one: {'; '.join(sizes)}.", "", _READ_SUMS, ""]
    return "\n".join(lines)


_ABOUT_SUMS = """## Kernel density and attention

Everybody answers the same queries with the same kernel, δ = 1e-6, a row added or removed. The memory is built once, with its defaults, and read near even points (its default readout).
"""
_ABOUT = {
    "density": "Mean absolute error of Σ exp(scale·(⟨q, k⟩ - 1))/n, where the mean is about 0.1.",
    "attention": "Root mean square error of answers (shares of classes), over that of the best constant answer: 1 says as much as no data.",
}
_READ_SUMS = 'Read the rows with *noise per question* as a budget: 10,000 questions cost ten times the noise of 100, and a memory has one error for any number. *Noise on each row* is what "anonymised" embeddings would need; how many rows there are is then told, so a row is replaced by nothing instead of removed.'


def _slashed(found: Mapping[str, Any], method: str, epsilons: Sequence[str]) -> str:
    cells = [found["by_epsilon"][epsilon].get(method) for epsilon in epsilons]
    return " / ".join("–" if cell is None else short(mean(cell)) for cell in cells)


def _square(square: Report) -> str:
    counts = counts_of(square)
    if not counts:
        return ""
    epsilons = sorted(square[counts[0]]["by_epsilon"], key=float)
    methods = (MEMORY, FINER, *TREES, COUNTS, WAVES, GAUSSIAN, NOISY_ROWS, *QUESTIONS, PROCESS)
    rows = [
        [NAMES[method], *(_slashed(square[count], method, epsilons) for count in counts)]
        for method in methods
    ]
    text = f"""## Where the paper's trees can be built

Attention near two corners of a square, the task of [the paper's report](paper-results.md): logits ⟨q, k⟩/2, values ±1, δ = 1e-6 in all, one row **replaced**, for everybody. Error over that of the best constant answer, at ε = {" / ".join(epsilons)}.
"""
    lines = [text, *table(["method", *(f"{int(count):,} rows" for count in counts)], rows)]
    needs = square.get("needs", {})
    told = [
        f"{name}: {_bytes(each['bytes'])} of state, and {each['rows']:.1e} rows before an answer is clear of its noise"
        if each
        else f"{name}: refused, since the net of queries in so many dimensions has no end"
        for name, each in needs.items()
    ]
    if told:
        lines += [
            f"For the rows of the tables above trees cannot be built (ε = 1, from the paper's formulas): {'; '.join(told)}."
        ]
    lines += [
        "",
        "The default kernel of a memory here is a polynomial with an error of at most 5%, which is what is left of its error; `eps_s=0.001` takes a finer one. Points of counts are grids.",
        "",
    ]
    return "\n".join(lines)


# --- speed ----------------------------------------------------------------------------------------


def _bytes(size: float) -> str:
    for unit in ("B", "kB", "MB", "GB", "TB", "PB"):
        if size < 1_000:
            return f"{size:.3g} {unit}"
        size /= 1_000
    return f"{size:.3g} EB"


def _speed(speed: Report) -> str:
    if not speed:
        return ""
    lines = [
        "## Speed and size",
        "",
        "Times of the processor in one run, over what exact attention takes to answer the same queries (numpy, one thread); *kept secret* is what somebody has to guard for ever instead of giving a file away. Public points are found beforehand.",
    ]
    for name, found in speed.items():
        unit = found["methods"]["exact"]["ask"]
        rows = []
        for method, cell in sorted(found["methods"].items(), key=lambda item: ORDER[item[0]]):
            first = f" (the first time {short(cell['first'] / unit)})" if "first" in cell else ""
            size = f"{NAMES[method]}{', ' + cell['of'] if 'of' in cell else ''}"
            rows.append(
                [
                    size,
                    short(cell["build"] / unit) if cell["build"] else "–",
                    f"{short(cell['ask'] / unit)}{first}",
                    _bytes(cell["bytes"]) if "bytes" in cell else "–",
                    _bytes(cell["kept"]) + (" and every answer" if method == PROCESS else "")
                    if "kept" in cell
                    else "–",
                ]
            )
        about = f"{name}: {found['rows']:,} rows of {found['dim']} numbers, {found['queries']} queries at once"
        lines += ["", f"**{about}**."]
        lines += table(["method", "build", "answers", "released", "kept secret"], rows)
    lines += [
        "A memory takes more features than rivals here, as many as the noise deserves (`features=` takes fewer), and its first question fits the readout. Its sums are exact integers with noise from the system's generator; rivals add floating-point noise from a seed, which is faster and [not safe](pitfalls.md).",
        "",
    ]
    return "\n".join(lines)


# --- tables ---------------------------------------------------------------------------------------


def _tables(tables: Report) -> str:
    found = {name: tables[name] for name in PRIVTAB if name in tables}
    if not found:
        return ""
    lines = [_ABOUT_TABLES]
    for name, cell in found.items():
        areas = _areas(cell) | _published(name, BUDGETS)
        rows = []
        for method, title in {
            "ours": "**`PrivateClassifier`**, a schema",
            **RIVALS_OF_TABLES,
        }.items():
            if areas[method]:
                numbers = [
                    f"{areas[method][budget]:.3f}" if budget in areas[method] else "–"
                    for budget in BUDGETS
                ]
                rows.append([title, *numbers])
        errors = [
            float(np.std(each, ddof=1) / np.sqrt(len(each))) for each in cell["ours"].values()
        ]
        lines += [
            f"**{PRIVTAB[name][0]}**, {cell['rows']:,} rows. Standard errors of ours: {min(errors):.3f} to {max(errors):.3f}."
        ]
        lines += table(["AUC", *(f"μ = {budget}" for budget in BUDGETS)], rows)
    lines += [_NOT_ONE_TO_ONE, "", *_pace(found)]
    return "\n".join(lines)


_ABOUT_TABLES = """## Small tables

PrivTab's own three sets and budgets: μ of Gaussian privacy when a row is **replaced**. Ours, DP-EBM and Opacus have half of that μ when a row is **added or removed**, which keeps the same promise (δ = 1e-5). They are measured here, on the same 10 random splits of 80 to 20, with the same public ranges.
"""
_NOT_ONE_TO_ONE = "PrivTab's figures are its authors', not rerun here: their splits, ranges from z-scores of the data where ours are public ranges, a model that was pretrained on simulated tables. Adding or removing a row at half of μ is at least as strong as replacing one at μ, so ours may promise more than it has to. DP-EBM takes lists of categories from the rows, which is not charged, and refuses the three classes of Splice. Opacus trains logistic regression in full batches with exact accounting; learning rate, clipping and number of steps are picked on the test sets, which nobody can do privately. [63 more tables](tables.md), and [more of DP-SGD](estimators.md)."


def _pace(found: Mapping[str, Any]) -> list[str]:
    rows = []
    for name, cell in found.items():
        own = cell["pace"]
        others = (cell.get("rivals") or {}).get("pace", {})
        for method, title in (("dp-ebm", "DP-EBM"), ("opacus", "Opacus, one fit of many tried")):
            if method in others:
                their = others[method]
                rows.append(
                    [
                        f"{PRIVTAB[name][0]}, {title}",
                        f"{their['fit'] / own['fit']:.2g} ×",
                        f"{their['ask'] / own['ask']:.2g} ×",
                        _bytes(their["bytes"]),
                        _bytes(own["bytes"]),
                    ]
                )
    if not rows:
        return []
    head = ["", "a fit, over ours", "predictions, over ours", "its size", "our file"]
    return [
        "Times over ours in the same run. PrivTab says of itself: a summary of 640 KiB.",
        *table(head, rows),
    ]


# --- texts ----------------------------------------------------------------------------------------


def _texts(texts: Report) -> str:
    others, own = texts.get("published"), texts.get("ours")
    if not others or not own:
        return ""
    rows = [
        [
            "**`discreet.Corpus`**, facts",
            f"ε = {epsilon}, δ = {own['delta']:g}, once",
            f"{first:.1%}",
            f"{two:.1%}",
        ]
        for epsilon, (first, two) in sorted(own["right"].items(), key=lambda item: float(item[0]))
    ]
    dprag, synrag = others["dp-rag"], others["DP-SynRAG"]
    low, high = synrag["right"]
    rows += [
        [
            "dp-rag (Sarus), published",
            f"ε = {dprag['epsilon']:g}, δ = {dprag['delta']:g}, for *each* question",
            f"{dprag['right']:.1%}",
            "–",
        ],
        [
            "DP-SynRAG, published",
            f"ε = {synrag['epsilon']:g}, once",
            f"{low:.0%} to {high:.0%}",
            "–",
        ],
    ]
    head = ["method", "budget", "right", "one of two right"]
    pace, few = own["pace"], own["few"]
    return f"""## Answers from texts

The records of dp-rag's benchmark: {own["records"]:,} patients' requests, and a question for each disease. Ours are measured, {own["draws"]} draws of noise; the others' figures are their authors'.
{chr(10).join(table(head, rows))}
Not one to one: doctors' answers in dp-rag's data are not public, so ours are rebuilt from templates; its answers count as right if the name is anywhere in 70 tokens, ours if the first word is the name; DP-SynRAG runs larger models. At ε = 5.3, dp-rag's second question costs ε = 10.6, by plain addition, and its tenth 53. Of the {few["diseases"]} diseases that fewer than 30 records have, our first word is right in {few["right"][0]:.0%} at ε = 10, one of two in {few["right"][1]:.0%}; DP-SynRAG says of itself that it answers about none. More: [texts, measured](texts.md).

Speed and size, without the encoder: an answer takes {short(pace["ask"] / pace["retrieve"])} times as long as exact retrieval of three records, a build with the texts' vectors at hand {short(pace["build"] / pace["ask"])} answers. The file has {_bytes(pace["bytes"])}; exact retrieval keeps {_bytes(pace["kept"])} secret, and hands out records. DP-SynRAG says that it takes 40 minutes to rebuild its texts; dp-rag runs a language model over many records for each answer.
"""


# --- streams --------------------------------------------------------------------------------------


def _streams(streams: Report) -> str:
    if not streams:
        return ""
    lines = [
        "## Releases that go on",
        "",
        "Running totals after every step, all of them under one guarantee, made for so many steps. Noise over that of one single release: computed after the last step, drawn (one run of all steps), the mean over steps and the most. *Arrays*: what has to be kept secret from step to step, as multiples of a state.",
    ]
    for steps in sorted(streams, key=int):
        ways = streams[steps]
        unit = ways[THIS]["seconds"]
        rows = [
            [
                f"**{THIS}**" if name == THIS else name,
                f"{way['last']:.3g}",
                f"{way['drawn']:.3g}" if "drawn" in way else "–",
                f"{way['mean']:.3g}",
                f"{way['most']:.3g}",
                f"{way['arrays']:,}",
                f"{way['seconds'] / unit:.2g} ×" if "seconds" in way else "–",
            ]
            for name, way in ((name, ways[name]) for name in WAYS)
        ]
        head = ["", "last", "drawn", "mean", "most", "arrays", "time"]
        lines += ["", f"**{int(steps):,} steps**."]
        lines += table(head, rows)
    lines += [
        "*Time* is the processor's for the noise of all steps, over a stream's, which draws integers from a generator that is fit for it; the others draw floating-point numbers from a seed. States are equally large, whatever the way. The square root has to go back to every draw that there ever was, so the larger one is not drawn. More: [what a stream costs](stream.md).",
        "",
    ]
    return "\n".join(lines)


# --- what was kind --------------------------------------------------------------------------------


def _kindness(report: Report) -> str:
    most, times, cells = _at_the_end(report.get("sums", {}))
    return f"""## What is kind to others, and what is not

- Whatever rivals can choose is picked **on exact answers**, which nobody could do privately: the number of random features (powers of two; at most {most:,} pairs, which are picked in {times} of {cells} cells, so that more may do better there), the number of public points, the weight τ of the denominator, the scale at which noisy rows are read, and how far denominators are kept from zero, of which rivals are told the smallest. A memory has its defaults, and nothing is tried.
- Noise per question has the best composition that there is: all questions are one Gaussian mechanism. So has the Gaussian process.
- LSQ's features are pairs of a cosine and a sine in place of the published random phases, which halves the variance of the noise; in the plane a query's noise is that of its own largest weight.
- Everybody's noise is the least for the sensitivity that is proved beside it in `benchmarks/peers_mechanisms.py`; tests look for neighbours that come near it and for any that pass it, and compare drawn noise with what it should be.
- Not kind: constants of the library were chosen with a look at digits, MNIST and texts, among others. LSQ and counts are ε-differentially private with δ = 0, which is more than is asked here; with the δ, LSQ would be *the same features with Gaussian noise*.
- Floating-point noise of rivals is taken at its word here. It is [not safe](privacy.md) as it stands.
"""


def _at_the_end(sums: Report) -> tuple[int, int, int]:
    """Return the most pairs that were picked, in how many cells, and how many cells there are."""
    picked = [
        cells[method]["picked"]["pairs"]
        for *_, cells in cells_of(sums)
        for method in (WAVES, GAUSSIAN)
    ]
    most = max(picked, default=0)
    return most, sum(each == most for each in picked), len(picked)


def _how(report: Report) -> str:
    versions = report.get("versions", {})
    of_rivals: dict[str, str] = {}
    for cell in report.get("tables", {}).values():
        of_rivals |= (cell.get("rivals") or {}).get("versions", {})
    said = ", ".join(f"{name} {each}" for name, each in (versions | of_rivals).items())
    return f"""## How it was measured

`python benchmarks/peers.py --fetch --clinc FILE --dprag FOLDER` measures everything but published figures and writes this page: a quarter of an hour on two cores. `--only sums` (or `square`, `tables`, `texts`, `streams`, `speed`) measures a part; `--page` writes the page from `benchmarks/peers.json`. `--fetch` downloads MNIST and the tables, and puts opacus and interpret-core into a folder that only their own process sees. FILE (CLINC150, CC BY 3.0) is as for [texts](texts.md), FOLDER is the data of dp-rag; without them their figures stay as they were.

Noise comes from seeds, two draws of it for each cell of sums (random features of rivals are drawn anew, too): the same run gives the same figures, but for times. {said}.
"""
