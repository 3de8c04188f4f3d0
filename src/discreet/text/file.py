"""The file of a corpus: its parts, with public topics, words and names; and its card."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import _validate, provenance
from discreet._files import pack
from discreet._version import __version__
from discreet.accounting import Gaussian, Receipt
from discreet.accounting.compose import covers
from discreet.errors import CorruptRelease
from discreet.noise import RoundedGaussian
from discreet.privacy import Card, Guarantee
from discreet.provenance import Stated
from discreet.readers.attention.memory import MOSTLY_NOISE
from discreet.readers.rounds.counts import Counts
from discreet.readers.softmax.layout import Rounds
from discreet.readers.table.layout import TableLayout
from discreet.sums import container
from discreet.sums.forecast import protection, protection_facts
from discreet.sums.mechanism import ReleaseOptions
from discreet.sums.release import Released
from discreet.sums.settings import Unit, unit_sensitivity
from discreet.text.answers import NOT_CLEAR
from discreet.text.budget import Budget
from discreet.text.building import ANSWERS, MARGIN, Names, Parts, Plan
from discreet.text.corpus import Corpus
from discreet.text.encoders import unloaded
from discreet.text.facts import OTHER
from discreet.text.layout import WordsLayout
from discreet.text.topics import ENOUGH_TO_FIND, Topics
from discreet.text.words import Vocabulary

_LAYOUTS: dict[str, Any] = {"table": TableLayout, "words": WordsLayout, "facts": Rounds}

# What a row, or a record, is: by whether people are protected.
_UNITS = {False: "a row is one text", True: "a record is one person, with all texts"}

# How far shares that were divided may be off.
_ROUNDING = 1e-9


def to_bytes(corpus: Corpus) -> bytes:
    """Return the file of a corpus.

    Args:
        corpus: to be saved.
    """
    tensors: dict[str, NDArray[Any]] = {}
    members = {}
    for name, released in corpus.released.items():
        members[name] = container.settings_of(released)
        tensors |= {f"{name}.{key}": each for key, each in container.tensors_of(released).items()}
    if corpus.word_vectors is not None:
        tensors["vocabulary.vectors"] = corpus.word_vectors.astype(np.float16)
    names = corpus.parts.names
    if names is not None:
        tensors["names.counts"] = np.asarray(names.counts, dtype=np.float64)
    settings = {"members": members, **_public(corpus)}
    return pack(tensors, name=Corpus.kind, settings=settings, card=corpus.card.to_dict())


def _public(corpus: Corpus) -> dict[str, object]:
    plan, topics, names = corpus.plan, corpus.topics, corpus.parts.names
    vocabulary = plan.vocabulary
    return {
        "options": {
            "epsilon": plan.options.epsilon,
            "delta": plan.options.delta,
            "rows_hint": plan.options.rows_hint,
            "group_rows": plan.options.group_rows,
            **provenance.facts(Stated.of(plan.options.stated)),
        },
        "guarantee": asdict(corpus.guarantee),
        "receipt": corpus.receipt.to_dict(),
        "private": corpus.private,
        "source": corpus.receipt.source,
        "encoder": {"name": plan.encoder.name, "dim": plan.encoder.dim},
        "budget": asdict(plan.budget),
        "people": plan.people,
        "finding": plan.finding,
        "classes": list(plan.classes),
        "threshold": corpus.threshold,
        "topics": None
        if topics is None
        else {
            "names": list(topics.names),
            "merged": [list(each) for each in topics.merged],
            "source": topics.source,
            "reach": topics.reach,
        },
        "vocabulary": None
        if vocabulary is None
        else {"words": list(vocabulary.words), "most": vocabulary.most},
        "names": None if names is None else {"words": list(names.words), "margin": names.margin},
    }


def restored(settings: Any, tensors: Mapping[str, NDArray[Any]]) -> Corpus:  # noqa: ANN401 (as a file has them)
    """Return a corpus from the settings and tensors of a file, as far as they can be believed.

    Args:
        settings: of `to_bytes`.
        tensors: likewise.
    """
    by_owner: dict[str, dict[str, NDArray[Any]]] = {}
    for name, array in tensors.items():
        owner, _, rest = name.partition(".")
        by_owner.setdefault(owner, {})[rest] = array
    members: dict[str, Released[Any]] = {
        name: container.restore(each, by_owner[name], _LAYOUTS[name])
        for name, each in settings["members"].items()
    }
    topics = _topics(settings, members)
    plan = _plan(settings, topics)
    names = _names(settings, members, by_owner)
    parts = Parts(
        topics=topics, table=members.get("table"), words=members.get("words"), names=names
    )
    guarantee = Guarantee(**settings["guarantee"])
    receipt = Receipt.from_dict(settings["receipt"])
    corpus = Corpus(
        plan,
        parts,
        threshold=settings["threshold"],
        words=_word_vectors(plan, by_owner),
        guarantee=guarantee,
        receipt=receipt,
    )
    _check(corpus, settings, members)
    return corpus


def _plan(settings: Any, topics: Topics | None) -> Plan:  # noqa: ANN401
    given = settings["vocabulary"]
    encoder = unloaded(settings["encoder"]["name"], settings["encoder"]["dim"])
    return Plan(
        options=ReleaseOptions(**settings["options"]),
        encoder=encoder,
        topics=topics,
        finding=settings["finding"],
        classes=tuple(settings["classes"]),
        vocabulary=None
        if given is None
        else Vocabulary(words=tuple(given["words"]), most=given["most"]),
        facts=settings["names"] is not None,
        people=settings["people"],
        divided=Budget(**settings["budget"]),
    )


def _topics(settings: Any, members: Mapping[str, Released[Any]]) -> Topics | None:  # noqa: ANN401
    given = settings["topics"]
    if given is None:
        return None
    vectors = members["table"].layout.kernel.real_points
    merged = tuple(tuple(each) for each in given["merged"])
    reach = given.get("reach")  # files of before do not have it
    if reach is not None:
        _validate.real("reach", reach)
    return Topics(tuple(given["names"]), vectors, merged, given["source"], reach)


def _names(
    settings: Any,  # noqa: ANN401
    members: Mapping[str, Released[Any]],
    by_owner: Mapping[str, Mapping[str, NDArray[Any]]],
) -> Names | None:
    given = settings["names"]
    if given is None:
        return None
    counts = by_owner["names"]["counts"]
    words = tuple(given["words"])
    if counts.shape != (len(words),) or not all(str(each).isprintable() for each in words):
        raise CorruptRelease("Expected a count for each name.")
    return Names(words=words, counts=counts, margin=given["margin"], learnt=members.get("facts"))


def _word_vectors(
    plan: Plan, by_owner: Mapping[str, Mapping[str, NDArray[Any]]]
) -> NDArray[Any] | None:
    if plan.vocabulary is None:
        return None
    vectors = by_owner["vocabulary"]["vectors"]
    wanted = (len(plan.vocabulary.words), plan.encoder.dim)
    if vectors.shape != wanted or not np.all(np.isfinite(vectors)):
        raise CorruptRelease("Expected a vector for each word.")
    return vectors.astype(np.float32)


def _check(corpus: Corpus, settings: Any, members: Mapping[str, Released[Any]]) -> None:  # noqa: ANN401
    """Raise `CorruptRelease` unless the parts belong together, and keep one promise."""
    receipt, guarantee = corpus.receipt, corpus.guarantee
    same = all(
        each.guarantee == guarantee
        and dict(each.receipt.mechanisms) == dict(receipt.mechanisms)
        and (each.receipt.id, each.private) == (receipt.id, receipt.private)
        and each.stated is None  # the corpus says it, once, for all its parts
        for each in members.values()
    )
    fits = (
        same
        and covers(guarantee, container.few(receipt.mechanisms))
        and (receipt.private, receipt.source) == (settings["private"], settings["source"])
        and receipt.covering(receipt.scope) == guarantee.scope
        and receipt.agrees_with(guarantee)
        and receipt.unit == guarantee.unit
        and _is_divided(corpus.plan.budget, receipt, members)
        and _is_asked_for(corpus)
    )
    if not fits:
        raise CorruptRelease("Expected parts of one release, with the noise that it promises.")
    _ = corpus.card  # of which a file that says odd things of itself has none


def _is_divided(budget: Budget, receipt: Receipt, members: Mapping[str, Released[Any]]) -> bool:
    """Whether the budget is what the receipt says, and parts have the noise of their shares."""
    spent = {"discrete_laplace": 0.0, "disclosure": 0.0, "gaussian": 0.0}
    for each, count in receipt.mechanisms:
        spent[each.kind] += count * (each.infinite_loss or each.spread)
    shares = {"words": budget.words, "facts": budget.learning}
    return (
        math.isclose(spent["discrete_laplace"], budget.finding + budget.table, rel_tol=_ROUNDING)
        and spent["disclosure"] == budget.disclosure
        and (spent["gaussian"] > 0) == (budget.gaussian > 0)
        and budget.gaussian <= 1 + _ROUNDING
        and all(
            math.isclose(_pure(each), budget.table, rel_tol=_ROUNDING)
            if name == "table"
            else math.isclose(each.share, shares[name], rel_tol=_ROUNDING)
            for name, each in members.items()
        )
    )


def _pure(released: Released[Any]) -> float:
    """Return ε of a table, all its parts together."""
    sensitivity = unit_sensitivity(
        released.layout,
        released.guarantee.neighbours,
        Unit(released.guarantee.unit),
        released.group_rows,
    )
    return sensitivity / released.sigma


def _is_asked_for(corpus: Corpus) -> bool:
    """Whether labels, words and names are those of the parts, and figures those of the promise."""
    plan, parts, guarantee = corpus.plan, corpus.parts, corpus.guarantee
    table, words, names = parts.table, parts.words, parts.names
    learnt = None if names is None else names.learnt
    vocabulary = plan.vocabulary
    return (
        guarantee.epsilon == plan.options.epsilon
        and guarantee.delta == (plan.options.delta if plan.budget.gaussian else 0.0)
        and (guarantee.unit == Unit.RECORD) is plan.people
        and (table is None) is (corpus.topics is None) is (corpus.threshold is None)
        and (table is None or table.layout.classes == plan.classes)
        and (words is None) is (vocabulary is None)
        and (
            words is None
            or vocabulary is None
            or (words.layout.words, words.layout.most) == (len(vocabulary.words), vocabulary.most)
        )
        and (names is None or (learnt is None) is not bool(names.words))
        and (
            names is None
            or learnt is None
            or sorted(learnt.layout.classes) == sorted([OTHER, *names.words])
        )
        and (names is None or _is_counted(corpus, names))
        and (corpus.threshold is None or -1 <= corpus.threshold <= 1)
    )


def _is_counted(corpus: Corpus, names: Names) -> bool:
    """Whether counts of names are finite, and as far off as noise of their share is."""
    wanted = 0.0
    if names.words:
        [gaussian] = [each for each, _ in corpus.receipt.mechanisms if isinstance(each, Gaussian)]
        layout = Counts(cells=len(names.words) + 1, marks=ANSWERS)
        moved = unit_sensitivity(
            layout,
            corpus.guarantee.neighbours,
            Unit(corpus.guarantee.unit),
            corpus.plan.options.group_rows,
        )
        sigma = gaussian.sigma * moved / math.sqrt(corpus.plan.budget.counts)
        wanted = MARGIN * math.sqrt(RoundedGaussian(sigma=sigma).variance) * layout.real_unit
    return bool(np.all(np.isfinite(names.counts))) and math.isclose(
        names.margin, wanted, rel_tol=_ROUNDING
    )


@dataclass(frozen=True, kw_only=True)
class _Whole:
    """What a card says of the whole release, whatever came out of it: perhaps no part at all."""

    guarantee: Guarantee
    receipt: Receipt
    group_rows: float
    rows_hint: int | None
    version: str
    rows: None = None
    stream: None = None
    stated: Stated | None = None

    @classmethod
    def of(cls, corpus: Corpus) -> "_Whole":
        """Return what is known of a corpus."""
        first = next(iter(corpus.released.values()), None)
        return cls(
            guarantee=corpus.guarantee,
            receipt=corpus.receipt,
            group_rows=corpus.plan.options.group_rows,
            rows_hint=corpus.plan.options.rows_hint,
            stated=Stated.of(corpus.plan.options.stated),
            version=__version__ if first is None else first.version,
        )

    @property
    def private(self) -> bool:
        """Whether the noise came from the operating system."""
        return self.receipt.private

    @property
    def source(self) -> str:
        """Where it came from."""
        return self.receipt.source


def card_of_corpus(corpus: Corpus) -> Card:
    """Return the card of a corpus.

    Args:
        corpus: of any parts.
    """
    plan, topics, table, names = corpus.plan, corpus.topics, corpus.table, corpus.parts.names
    whole = _Whole.of(corpus)
    facts: dict[str, object] = {
        **protection_facts(whole),
        "mechanism": "integer noise, added once to sums over texts: " + _mechanism(corpus),
        "budget": asdict(plan.budget),
        "encoder": plan.encoder.name,
        "topics": 0 if topics is None else len(topics),
        "topics_from": None if topics is None else topics.source,
        "topics_merged": 0 if topics is None else sum(len(each) - 1 for each in topics.merged),
        "classes": list(corpus.classes),
        "count_margin": None if table is None else table.count_margin,
        "total": None if table is None else table.total,
        "total_margin": None if table is None else table.total_margin,
        "threshold": corpus.threshold,
        "words": 0 if plan.vocabulary is None else len(plan.vocabulary.words),
        "names": 0 if names is None else len(names.words),
        "names_need": corpus.names_need,
        "state_bytes": corpus.nbytes,
        "rows_hint": plan.options.rows_hint,
        "entropy": corpus.receipt.source,
        "version": whole.version,
    }
    lines = [
        *protection(whole),
        ("unit", _UNITS[plan.people]),
        ("parts", "; ".join(plan.budget.lines)),
        *_topic_lines(corpus),
        *_other_lines(corpus),
        ("encoder", f"{plan.encoder.name}, {plan.encoder.dim} numbers a text, one text at a time"),
        ("size", f"{corpus.nbytes:,} bytes of noisy sums"),
        ("entropy", corpus.receipt.source),
        ("made by", f"discreet {whole.version}"),
    ]
    return Card(tuple(facts.items()), tuple(lines))


def _mechanism(corpus: Corpus) -> str:
    kinds = {each.kind.replace("_", " ") for each, _ in corpus.receipt.mechanisms}
    return ", ".join(sorted(kinds - {"disclosure"}))


def _topic_lines(corpus: Corpus) -> list[tuple[str, str]]:
    plan, topics, table = corpus.plan, corpus.topics, corpus.table
    if topics is None or table is None:
        return []
    given = sum(map(len, topics.merged))
    noun = plan.noun
    merged = "" if given == len(topics) else f", merged from {given:,}: too many for rows_hint"
    few = topics.source == "found privately" and (plan.options.rows_hint or 0) < ENOUGH_TO_FIND
    guessed = f": mostly guesses, below {ENOUGH_TO_FIND:,} texts" if few else ""
    labels = f", by {len(corpus.classes):,} labels" if corpus.classes else ""
    return [
        ("topics", f"{len(topics):,} public ones ({topics.source}{guessed}{merged}){labels}"),
        ("counts are within", f"±{table.count_margin:.3g}, 95% of the time, noise alone"),
        (
            "they add up to",
            f"about {max(table.total, 0.0):,.0f} ± {table.total_margin:,.0f} {noun}",
        ),
        *([] if corpus.mostly_noise is None else [(MOSTLY_NOISE, corpus.mostly_noise)]),
        (
            "a count says",
            f"how many {noun} are nearer to this topic than to any other, as the encoder sees it",
        ),
        ("covered", f"questions with a cosine of {corpus.threshold or 0:.2f} to a topic: a hint"),
    ]


def _other_lines(corpus: Corpus) -> list[tuple[str, str]]:
    plan, names = corpus.plan, corpus.parts.names
    lines = []
    if plan.vocabulary is not None:
        lines.append(
            (
                "words",
                f"typical ones of {len(plan.vocabulary.words):,} public words; none if {NOT_CLEAR}",
            )
        )
    if names is not None:
        within = f"; counts within ±{names.margin:.3g}" if names.words else ""
        lines += [
            (
                "names",
                (
                    f"{len(names.words):,} that many texts have, found in the texts{within}. What "
                    "many texts say is told: common is not harmless"
                ),
            ),
            (
                "a name needs",
                f"about {corpus.names_need:.3g} {plan.noun} that have it, and no other",
            ),
        ]
    return lines
