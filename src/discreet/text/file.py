"""The file of a corpus: its parts, with public topics, words and names; and its card."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet._files import pack
from discreet.accounting import Receipt
from discreet.accounting.compose import covers
from discreet.errors import CorruptRelease, InvalidInput
from discreet.privacy import Card, Guarantee
from discreet.readers.softmax.layout import Rounds
from discreet.readers.table.layout import TableLayout
from discreet.sums import container
from discreet.sums.forecast import protection, protection_facts
from discreet.sums.mechanism import ReleaseOptions
from discreet.sums.release import Released
from discreet.text.answers import NOT_CLEAR
from discreet.text.budget import Budget
from discreet.text.building import Names, Parts, Plan
from discreet.text.corpus import Corpus
from discreet.text.encoders import unloaded
from discreet.text.layout import WordsLayout
from discreet.text.topics import Topics
from discreet.text.words import Vocabulary

_LAYOUTS: dict[str, Any] = {"table": TableLayout, "words": WordsLayout, "facts": Rounds}

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
        },
        "vocabulary": None
        if vocabulary is None
        else {"words": list(vocabulary.words), "most": vocabulary.most},
        "names": None if names is None else {"words": list(names.words), "error": names.error},
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
    plan = _plan(settings)
    topics = _topics(settings, members)
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


def _plan(settings: Any) -> Plan:  # noqa: ANN401
    given = settings["vocabulary"]
    encoder = unloaded(settings["encoder"]["name"], settings["encoder"]["dim"])
    return Plan(
        options=ReleaseOptions(**settings["options"]),
        encoder=encoder,
        topics=None,
        finding=settings["finding"],
        classes=tuple(settings["classes"]),
        vocabulary=None
        if given is None
        else Vocabulary(words=tuple(given["words"]), most=given["most"]),
        facts=settings["names"] is not None,
        people=settings["people"],
    )


def _topics(settings: Any, members: Mapping[str, Released[Any]]) -> Topics | None:  # noqa: ANN401
    given = settings["topics"]
    if given is None:
        return None
    vectors = members["table"].layout.kernel.real_points
    merged = tuple(tuple(each) for each in given["merged"])
    return Topics(tuple(given["names"]), vectors, merged, given["source"])


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
    return Names(words=words, counts=counts, error=given["error"], learnt=members.get("facts"))


def _word_vectors(
    plan: Plan, by_owner: Mapping[str, Mapping[str, NDArray[Any]]]
) -> NDArray[Any] | None:
    if plan.vocabulary is None:
        return None
    vectors = by_owner["vocabulary"]["vectors"]
    if vectors.shape != (len(plan.vocabulary.words), plan.encoder.dim):
        raise CorruptRelease("Expected a vector for each word.")
    return vectors.astype(np.float32)


def _check(corpus: Corpus, settings: Any, members: Mapping[str, Released[Any]]) -> None:  # noqa: ANN401
    """Raise `CorruptRelease` unless the parts belong together, and keep one promise."""
    receipt, guarantee = corpus.receipt, corpus.guarantee
    budget = Budget(**settings["budget"])
    shares = {"words": budget.words, "facts": budget.learning}
    same = all(
        each.guarantee == guarantee
        and dict(each.receipt.mechanisms) == dict(receipt.mechanisms)
        and (each.receipt.id, each.private) == (receipt.id, receipt.private)
        and (name == "table" or abs(each.share - shares[name]) < _ROUNDING)
        for name, each in members.items()
    )
    fits = (
        same
        and budget.gaussian <= 1 + _ROUNDING
        and covers(guarantee, receipt.mechanisms)
        and receipt.private == settings["private"]
        and receipt.covering(receipt.scope) == guarantee.scope
    )
    if not fits:
        raise CorruptRelease("Expected parts of one release, with the noise that it promises.")


def card_of_corpus(corpus: Corpus) -> Card:
    """Return the card of a corpus.

    Args:
        corpus: of any parts.
    """
    plan, topics, table, names = corpus.plan, corpus.topics, corpus.table, corpus.parts.names
    first = next(iter(corpus.released.values()), None)
    if first is None:
        raise InvalidInput("Expected a corpus with at least one part.")
    facts: dict[str, object] = {
        **protection_facts(first),
        "mechanism": "integer noise, added once to sums over texts: " + _mechanism(corpus),
        "budget": asdict(plan.budget),
        "encoder": plan.encoder.name,
        "topics": 0 if topics is None else len(topics),
        "topics_from": None if topics is None else topics.source,
        "topics_merged": 0 if topics is None else sum(len(each) - 1 for each in topics.merged),
        "classes": list(corpus.classes),
        "count_margin": None if table is None else table.count_margin,
        "threshold": corpus.threshold,
        "words": 0 if plan.vocabulary is None else len(plan.vocabulary.words),
        "names": 0 if names is None else len(names.words),
        "state_bytes": corpus.nbytes,
        "rows_hint": plan.options.rows_hint,
        "entropy": corpus.receipt.source,
        "version": first.version,
    }
    lines = [
        *protection(first),
        ("parts", "; ".join(plan.budget.lines)),
        *_topic_lines(corpus),
        *_other_lines(corpus),
        ("encoder", f"{plan.encoder.name}, {plan.encoder.dim} numbers a text, one text at a time"),
        ("size", f"{corpus.nbytes:,} bytes of noisy sums"),
        ("entropy", corpus.receipt.source),
        ("made by", f"discreet {first.version}"),
    ]
    return Card(tuple(facts.items()), tuple(lines))


def _mechanism(corpus: Corpus) -> str:
    kinds = {each.kind.replace("_", " ") for each, _ in corpus.receipt.mechanisms}
    return ", ".join(sorted(kinds - {"disclosure"}))


def _topic_lines(corpus: Corpus) -> list[tuple[str, str]]:
    topics, table = corpus.topics, corpus.table
    if topics is None or table is None:
        return []
    given = sum(map(len, topics.merged))
    merged = "" if given == len(topics) else f", merged from {given:,}, too many for the texts"
    labels = f", by {len(corpus.classes):,} labels" if corpus.classes else ""
    return [
        ("topics", f"{len(topics):,} public ones ({topics.source}{merged}){labels}"),
        ("counts are within", f"±{table.count_margin:.3g}, 95% of the time, noise alone"),
        (
            "a count says",
            "how many texts are nearer to this topic than to any other, as the encoder sees it",
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
        lines.append(
            (
                "names",
                (
                    f"{len(names.words):,} that many texts have, found in the texts; counts within "
                    f"±{names.error:.3g}. What many texts say is told: common is not harmless"
                ),
            )
        )
    return lines
