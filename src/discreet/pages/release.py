"""A released file as a page, plain enough for a data protection officer.

The promise to one person is in numbers that everybody can check (`accounting/promise.py`);
`by_length` and `by_epsilon` say how good a memory's answers are, by its own word.
"""

import warnings
from dataclasses import dataclass
from importlib import resources
from string import Template
from typing import TypeAlias

import numpy as np

from discreet._typing import Floats
from discreet.accounting import gaussian_sigma
from discreet.accounting.promise import Promise, how_many
from discreet.errors import MostlyNoiseWarning, NotCoveredWarning
from discreet.features.kernel import Evidence
from discreet.ledger import Standing
from discreet.noise import RoundedGaussian
from discreet.pages.checklist import checklist
from discreet.pages.sheet import (
    MEANINGS,
    card_facts,
    card_lines,
    escaped,
    numbers,
    picture,
    sheet,
)
from discreet.privacy import NOT_PRIVATE, Guarantee, Neighbours, rounded_up
from discreet.readers.attention.bundle import Memories
from discreet.readers.attention.memory import MOSTLY_NOISE, Memory
from discreet.readers.attention.reader import WITHIN
from discreet.readers.discovery import Discovered
from discreet.readers.distances.answers import Distances
from discreet.readers.glm import GeneralizedLinear
from discreet.readers.least_squares.answers import LeastSquares
from discreet.readers.registry import AnyFile, whole_guarantee
from discreet.readers.softmax.answers import SoftmaxRegression
from discreet.readers.table import Table
from discreet.testing import Seeded
from discreet.text import Corpus

Release: TypeAlias = "AnyFile | Discovered | Corpus"

_KINDS: dict[type, str] = {
    Memory: "a private memory: it answers with an average over all rows, in which those like the "
    "question count most",
    Memories: "the private context of a model: its layers attend to it instead of to the rows",
    LeastSquares: "a private regression: it predicts numbers from keys",
    GeneralizedLinear: "a private regression: it predicts numbers, or several labels, of a row",
    SoftmaxRegression: "a private classifier: it says which class a key belongs to",
    Distances: "private sums of distances: how far any point is from all rows together",
    Table: "a private table: how many rows are nearest to each of some public points",
    Discovered: "a private list: names that many rows have, found in them",
    Corpus: "a private corpus: it answers questions in words about texts, one text a row",
}
# What has to be said of the ± of some kernels.
_OF_EVIDENCE = {
    Evidence.CERTIFICATE: " This kernel's part of it is a certified bound, for the worst rows that "
    "there could be: usually it is several times too wide.",
    Evidence.RESIDUAL: " This kernel's part of it is an estimate, on the wide side.",
}
_STRUCTURE = "one of the data structures of a paper on private attention"


# How many rows or records somebody may have.
_COUNTS = (1, 2, 3, 5, 10)

# Shares of people who were not in the data that a method wrongly accuses.
_ACCUSED = (0.001, 0.01, 0.05, 0.1, 0.5)

# What a memory is asked: how many questions, of which parts of the longest length; and at which
# multiples of its ε.
_QUESTIONS = 200
_LENGTHS = (0.0, 0.25, 0.5, 0.75, 1.0)
_EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True)
class Error:
    """The ± of a number of an answer: the median of many questions, 1.96 standard errors.

    Attributes:
        at: the length of questions, or the ε.
        error: noise and kernel together.
        noise: the part that the noise makes.
    """

    at: float
    error: float
    noise: float


def by_length(memory: Memory) -> tuple[Error, ...]:
    """Return the errors of longer and longer questions.

    Questions point everywhere (or where the public rows do that the memory was built with), so they
    say what to expect of a question about which nothing is known. Questions that many rows are like
    have smaller errors. Asking costs nothing.
    """
    directions = _directions(memory)
    found = []
    for share in _LENGTHS:
        length = share * memory.kernel.query_norm
        error, noise = _stderrs(memory, length * directions)
        found.append(Error(length, _typical(error), _typical(noise)))
    return tuple(found)


def by_epsilon(memory: Memory) -> tuple[Error, ...]:
    """Return the errors of the longest questions, had ε been another: about.

    The noise on sums is in proportion to σ(ε, δ); the kernel's part stays.
    """
    error, noise = _stderrs(memory, memory.kernel.query_norm * _directions(memory))
    # A bound is added to the noise, an estimate is independent of it.
    power = 1 if memory.kernel.evidence is Evidence.CERTIFICATE else 2
    kernel = np.maximum(error**power - noise**power, 0.0)
    guarantee, most = memory.guarantee, memory.released.layout.value_norm
    own = gaussian_sigma(epsilon=guarantee.epsilon, delta=guarantee.delta)
    found = []
    for factor in _EPSILONS:
        epsilon = factor * guarantee.epsilon
        times = gaussian_sigma(epsilon=epsilon, delta=guarantee.delta) / own
        other = np.minimum(((times * noise) ** power + kernel) ** (1 / power), 2 * most)
        found.append(Error(epsilon, _typical(other), _typical(np.minimum(times * noise, 2 * most))))
    return tuple(found)


def _stderrs(memory: Memory, queries: Floats) -> tuple[Floats, Floats]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCoveredWarning)  # their errors say so
        warnings.simplefilter("ignore", MostlyNoiseWarning)  # the page says so
        _, error = memory.attend(queries, stderr=True)
    return error, memory.noise_stderr(queries)


def _typical(stderr: Floats) -> float:
    return WITHIN * float(np.median(stderr))


def _directions(memory: Memory) -> Floats:
    """Return questions of length one, shape (*heads, m, d): the same in every run."""
    kernel, heads = memory.kernel, memory.released.layout.heads
    known = kernel.public_sample
    if known is not None:
        points = np.asarray(known, dtype=float)[:_QUESTIONS]
    else:
        law = RoundedGaussian(sigma=2.0**20)
        points = law.sample((_QUESTIONS, kernel.dim), entropy=Seeded(0)).astype(float)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return np.broadcast_to(points, (*heads, *points.shape))


def whole_promise(release: Release) -> Guarantee:
    """Return the guarantee of the whole file, and not only of one entry of its answers.

    Args:
        release: what is in the file.
    """
    if isinstance(release, Corpus | Discovered):
        return release.guarantee
    return whole_guarantee(release)


def as_html(
    release: Release, *, name: str, pictures: bool, standing: Standing | None = None
) -> str:
    """Return the page. Without a ledger it is made of the file alone: whoever has that can make it.

    Args:
        release: what is in the file.
        name: of the file.
        pictures: whether to draw; needs matplotlib.
        standing: what a ledger knows of the release, if it is to stand beside it.

    Returns:
        HTML, whole, that loads nothing from elsewhere.
    """
    promise = Promise.of(whole_promise(release), release.receipt)
    template = resources.files("discreet.pages").joinpath("release.html").read_text("utf-8")
    texts = {"name": name, **_texts(release, promise)}
    blocks = {
        "alarm": alarms(release),
        "part": _part(release, promise),
        "more": _more(promise),
        "accused": _accused(promise),
        "errors": _errors(release, drawn=pictures) if isinstance(release, Memory) else "",
        "card": card_lines(release.card),
        "facts": card_facts(release.card),
        "checklist": checklist(release, promise.guarantee, standing),
    }
    body = Template(template).substitute(
        {key: escaped(text) for key, text in texts.items()}, **blocks
    )
    made_of = "the file alone" if standing is None else "the file and a ledger"
    footer = f"Made from {made_of}: no rows were read for this page."
    return sheet(title=f"{name}: what it promises", body=body, footer=footer)


def _texts(release: Release, promise: Promise) -> dict[str, str]:
    """Return what sentences of the page name. The promise is that of the whole file."""
    guarantee, receipt = promise.guarantee, release.receipt
    unit = guarantee.unit
    change, secret = "it had been left out", f"whether your {unit} was in it"
    if guarantee.neighbours is Neighbours.REPLACE:
        change, secret = (
            f"a made-up {unit} had stood in its place",
            f"which of two {unit}s was yours",
        )
    leaks = ", ".join(receipt.leaks)
    but = f", but for what was taken from the rows ({leaks})" if leaks else ""
    giving = _GIVING if not leaks else "The promise below does not cover all of it."
    return {
        "kind": _KINDS.get(type(release), _STRUCTURE),
        "giving": giving if receipt.private else "",
        "unit": unit,
        "guarantee": str(guarantee),
        "growth": rounded_up(2.718281828459045 ** min(guarantee.epsilon, 700.0)),
        "epsilon": rounded_up(guarantee.epsilon),
        "chance": _CHANCE.format(rounded_up(guarantee.delta)) if guarantee.delta else _NO_CHANCE,
        "change": change,
        "secret": secret,
        "coin": how_many(promise.coin),
        "several": _SEVERAL.get(unit, _OF_A_RECORD),
        "learnt": _learnt(promise.coin).format(but=but),
    }


# Of a promise that lets others be right about somebody so often, nobody can say that it hides; and
# of one that does it so often, not even that it blurs.
HIDES, WEAK = 0.6, 0.75
_HIDDEN = (
    "What others learn from this file about people like you, they would have learnt almost as well "
    "without you. What is true of you alone is hidden by the noise{but}."
)
_BLURRED = (
    "What others learn from this file about people like you, they would have learnt nearly as well "
    "without you. What is true of you alone is blurred by the noise, and not hidden{but}: the "
    "figures below say how often it can be guessed."
)
_HARDLY = (
    "This promise is weak: what is true of you alone may be learnt from this file{but}. The "
    "figures below say how surely."
)
_CHANCE = "δ = {} is a chance, for everything together, that this may not hold."
_NO_CHANCE = "δ = 0: that holds without exception."
_GIVING = (
    "If that is so, the promise below holds for whoever gets it: then it can be given away, and "
    "asked any number of times."
)
_OF_A_RECORD = (
    "The promise is about one record: all rows that the builder gave one id. Which rows those are "
    "is stated by the builder. If they are all of yours, the promise is about you as a whole. If "
    "several records are yours (visits, say, or passages that were encoded each alone), it is "
    "weaker for you."
)
_SEVERAL = {
    "row": "The promise is about one row. If several rows are yours, it is weaker for you: a file "
    "that was built by record can promise more.",
}


def _learnt(coin: float) -> str:
    """Return what a page says of what is true of one person alone.

    Args:
        coin: how often somebody who has to tell two people apart is right, at most.
    """
    if coin < HIDES:
        return _HIDDEN
    return _BLURRED if coin < WEAK else _HARDLY


def alarms(release: Release) -> str:
    """Return what has to be read first, if there is anything.

    Args:
        release: what is in the file.
    """
    said, receipt = [], release.receipt
    if not receipt.private:
        said.append(f"{NOT_PRIVATE}: {MEANINGS[NOT_PRIVATE]}")
    if receipt.leaks:
        said.append(
            f"Taken from the private rows, without noise: {', '.join(receipt.leaks)}. The promise "
            "does not cover that, and whoever has the file may learn it. Do not give the file "
            "away unless anybody may know it."
        )
    return "\n".join(f'<p class="alarm">{escaped(each)}</p>' for each in said)


def _part(release: Release, promise: Promise) -> str:
    """Return what the builder asked for, if that covers a part of the file only."""
    if release.guarantee == promise.guarantee:
        return ""
    return (
        "<p>This is for somebody who has the file. The builder asked for a guarantee that covers a "
        "part of it only, and holds for whoever sees no more than that part:</p>\n"
        f"<blockquote><p>{escaped(str(release.guarantee))}</p></blockquote>"
    )


def _more(promise: Promise) -> str:
    unit = promise.guarantee.unit
    return numbers(
        (f"{unit}s of yours in the data", "right at most, of 1,000 times"),
        [(f"{each}", how_many(promise.of_several(each).coin)) for each in _COUNTS],
        caption=f"If several {unit}s are yours, and one coin had been tossed for all of them:",
    )


def _accused(promise: Promise) -> str:
    rows = [(f"{round(1000 * share):,}", how_many(promise.found(share))) for share in _ACCUSED]
    return numbers(
        ("of 1,000 who were not in it, wrongly accused", "of 1,000 who were, found at most"),
        rows,
        caption="However somebody goes about finding out who was in the data, with all that the "
        "promise covers, and whatever else they know:",
    )


def _errors(memory: Memory, *, drawn: bool) -> str:
    lengths, epsilons = by_length(memory), by_epsilon(memory)
    first, last = lengths[0], lengths[-1]
    alt = (
        f"Error of a number of an answer. Over the length of the question: from ±{first.error:.2g} "
        f"at length {first.at:g} to ±{last.error:.2g} at length {last.at:g}. Over ε: from "
        f"±{epsilons[0].error:.2g} at ε = {epsilons[0].at:g} to ±{epsilons[-1].error:.2g} at "
        f"ε = {epsilons[-1].at:g}."
    )
    return "\n".join(
        [
            '<h2 id="errors">How good its answers are</h2>',
            *(
                f'<p class="alarm">{escaped(text)}</p>'
                for title, text in memory.card.sentences
                if title == MOSTLY_NOISE
            ),
            picture(_drawn(lengths, epsilons, memory) if drawn else None, alt),
            f"<p>{escaped(_about(memory))}</p>",
            _table(lengths, "length of the question", "By the length of the question."),
            _table(
                epsilons,
                "ε",
                "About what it would be with another ε, for the longest question. A file cannot be "
                "changed: another ε is another release, and costs that ε as well.",
            ),
        ]
    )


def _about(memory: Memory) -> str:
    norm = memory.released.layout.value_norm
    return (
        f"Values are at most {norm:g} long. A ± says nothing if it is as large as the differences "
        "between answers, which are often far smaller than that. The figures are the "
        "memory's own: it was asked questions that point everywhere (or where the public rows do "
        "that it was built with), and the middle one of their ± is shown. Questions that many rows "
        "are like have less error. Every answer comes with a ± of its own."
    ) + _OF_EVIDENCE.get(memory.kernel.evidence, "")


def _table(errors: tuple[Error, ...], heading: str, caption: str) -> str:
    return numbers(
        (heading, "error", "noise alone"),
        [(f"{each.at:.3g}", f"±{each.error:.2g}", f"±{each.noise:.2g}") for each in errors],
        caption=caption,
        ours=1,
    )


def _drawn(lengths: tuple[Error, ...], epsilons: tuple[Error, ...], memory: Memory) -> str:
    from discreet.pictures import Curve, data_uri, error_against_length_and_epsilon

    def curves(errors: tuple[Error, ...]) -> dict[str, Curve]:
        at = [each.at for each in errors]
        return {
            "error: noise and kernel": Curve(at, [each.error for each in errors]),
            "noise alone": Curve(at, [each.noise for each in errors]),
        }

    return data_uri(
        error_against_length_and_epsilon(
            curves(lengths), curves(epsilons), epsilon=memory.guarantee.epsilon
        )
    )
