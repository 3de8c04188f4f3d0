"""A released file as a page, plain enough for a data protection officer."""

from html import escape
from importlib import resources
from string import Template

from discreet.kernels.base import Evidence
from discreet.loading import Release
from discreet.memory import Memories, Memory
from discreet.memory.card import MOSTLY_NOISE
from discreet.pages import asking, explained
from discreet.pages.asking import Error
from discreet.pages.promise import ACCUSED, Promise, rounded_up
from discreet.pages.sheet import as_fact, facts, numbers, picture, sheet
from discreet.privacy import NOT_PRIVATE, Neighbours
from discreet.privacy import rounded_up as digits_up
from discreet.regression import LeastSquares
from discreet.rounds import SoftmaxRegression

_KINDS: dict[type, str] = {
    Memory: "a private memory: it answers what rows like a question have to say, on average",
    Memories: "the private context of a model: its layers attend to it instead of to the rows",
    LeastSquares: "a private regression: it predicts numbers from keys",
    SoftmaxRegression: "a private classifier: it says which class a key belongs to",
}
# What has to be said of the ± of some kernels.
_OF_EVIDENCE = {
    Evidence.CERTIFICATE: " This kernel's part of it is a certified bound, for the worst rows that "
    "there could be: usually it is several times too wide.",
    Evidence.RESIDUAL: " This kernel's part of it is an estimate, on the wide side.",
}
_STRUCTURE = "one of the data structures of a paper on private attention"


def as_html(release: Release, *, name: str, pictures: bool) -> str:
    """Return the page. All of it is public: it is made of the file alone.

    Args:
        release: what is in the file.
        name: of the file.
        pictures: whether to draw; needs matplotlib.
    """
    guarantee = release.guarantee
    promise = Promise.of(guarantee, release.receipt)
    template = resources.files("discreet.pages").joinpath("release.html").read_text("utf-8")
    replaced = guarantee.neighbours is Neighbours.REPLACE
    texts = {
        "name": name,
        "kind": _KINDS.get(type(release), _STRUCTURE),
        "unit": guarantee.unit,
        "guarantee": str(guarantee),
        "growth": digits_up(2.718281828459045 ** min(guarantee.epsilon, 700.0)),
        "epsilon": digits_up(guarantee.epsilon),
        "delta": digits_up(guarantee.delta),
        "change": "a made-up row had stood in its place" if replaced else "it had been left out",
        "secret": "which of two rows was yours" if replaced else "whether your row was in it",
        "coin": rounded_up(promise.coin),
        "several": _SEVERAL[guarantee.unit == "row"],
    }
    blocks = {
        "alarm": "" if release.card.to_dict()["private"] else _alarm(),
        "accused": _accused(promise),
        "errors": _errors(release, drawn=pictures) if isinstance(release, Memory) else "",
        "card": explained.lines(release.card),
        "facts": facts(
            (title.replace("_", " "), as_fact(value))
            for title, value in release.card.to_dict().items()
        ),
    }
    body = Template(template).substitute(
        {key: escape(text) for key, text in texts.items()}, **blocks
    )
    footer = "Made from the file alone: nothing on this page was computed from private rows."
    return sheet(title=f"{name}: what it promises", body=body, footer=footer)


_SEVERAL = {
    True: "The promise is about one row. If you have several rows in the data, it is weaker for "
    "you: ask for a file that was built by record.",
    False: "The promise is about you as a whole, however many rows you have in the data.",
}


def _alarm() -> str:
    return f'<p class="alarm">{NOT_PRIVATE}: {escape(explained.MEANINGS[NOT_PRIVATE])}</p>'


def _accused(promise: Promise) -> str:
    rows = [(f"{round(1000 * share):,}", rounded_up(promise.found(share))) for share in ACCUSED]
    return numbers(
        ("of 1,000 who were not in it, wrongly accused", "of 1,000 who were, found at most"),
        rows,
        caption="However somebody goes about finding out who was in the data, with all that the "
        "promise covers, and whatever else they know:",
    )


def _errors(memory: Memory, *, drawn: bool) -> str:
    lengths, epsilons = asking.by_length(memory), asking.by_epsilon(memory)
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
                f'<p class="alarm">{escape(text)}</p>'
                for title, text in memory.card.sentences
                if title == MOSTLY_NOISE
            ),
            picture(_drawn(lengths, epsilons, memory) if drawn else None, alt),
            f"<p>{escape(_about(memory))}</p>",
            _table(lengths, "length of the question", "By the length of the question."),
            _table(
                epsilons,
                "ε",
                "Had ε been another, about, at the longest question. A file cannot be changed: "
                "another ε is another release, and costs that ε as well.",
            ),
        ]
    )


def _about(memory: Memory) -> str:
    norm = memory.released.layout.value_norm
    return (
        f"Values are at most {norm:g} long, so a ± of that size says nothing. The figures are the "
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
