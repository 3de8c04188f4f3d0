"""All that a corpus says, as one page: topics and names as bars, and a search among them.

Names of topics, labels and found names are whatever somebody wrote: they are escaped, and the page
runs no script but its own, which has no data in it, and loads nothing.
"""

import base64
import hashlib
import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from string import Template
from typing import Any

import numpy as np

from discreet.accounting.promise import Promise, how_many
from discreet.pages.release import HIDES, WEAK, alarms
from discreet.pages.sheet import card_lines, escaped, sheet
from discreet.text import Answer, Corpus, Fact, Share
from discreet.text.answers import NOT_CLEAR

# So many labels are named before a topic is opened; and of all texts, before a list is.
_BRIEF, _OPEN = 3, 15

_SOURCES = {
    "names": "that the builder wrote down",
    "file": "that the builder wrote down",
    "public texts": "that were made of public texts",
    "found privately": "that were found among public words, with a share of the budget",
}

_LEGEND = (
    '<p class="quiet">How many texts are nearest to each. The true figure lies where the bar is '
    'pale, 95 times in 100. <a href="#read">How to read this</a>.</p>'
)


def corpus_page(corpus: Corpus, *, name: str, title: str | None = None) -> str:
    """Return the page. It is made of the file alone: whoever has that can make it.

    Args:
        corpus: what is in the file.
        name: of the file.
        title: of the page; None for the file's name.

    Returns:
        HTML, whole, that loads nothing from elsewhere.
    """
    texts = _texts(corpus, name)
    head = title or f"What the texts of {name} say"
    blocks = {
        "alarm": alarms(corpus),
        "labels": _labels(corpus),
        "topics": _topics(corpus),
        "names": _names(corpus),
        "reading": "\n".join(f"<li>{each}</li>" for each in _reading(corpus)),
        "card": card_lines(corpus.card),
    }
    body = Template(_part("html")).substitute(
        {key: escaped(text) for key, text in {**texts, "title": head}.items()}, **blocks
    )
    script = _part("js")
    return sheet(
        title=head,
        body=f"{body}\n<script>{script}</script>",
        footer="Made from the file alone: no texts were read for this page.",
        head=f"{_policy(script)}\n<style>\n{_part('css')}</style>",
    )


def _part(suffix: str) -> str:
    return resources.files("discreet.pages").joinpath(f"corpus.{suffix}").read_text("utf-8")


def _policy(script: str) -> str:
    """Return what lets a browser run this script alone, and load nothing."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    rules = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; "
        f"style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    )
    return f'<meta http-equiv="Content-Security-Policy" content="{rules}">'


def _texts(corpus: Corpus, name: str) -> dict[str, str]:
    """Return what sentences of the page name."""
    guarantee, plan = corpus.guarantee, corpus.plan
    promise = Promise.of(guarantee, corpus.receipt)
    both = "topics and names" if corpus.topics is not None else "names"
    command = f'discreet corpus ask {shlex.quote(name)} "a question in words"'
    if plan.encoder.name.startswith(("path:", "custom")):
        command += " --encoder PATH"
    hidden, left = "Any one text is hidden", "had it been left out"
    wonder = "a certain text was among them"
    if plan.people:
        hidden, left = "Any one person is hidden", "had all their texts been left out"
        wonder = "a certain person's texts were among them"
    promised = f"{hidden}: {left}, all this would look almost the same."
    if promise.coin >= HIDES:
        blurred = hidden.replace("is hidden", "is blurred, and not hidden")
        promised = f"{blurred}: {left}, this would look much the same."
    if promise.coin >= WEAK:
        promised = f"This promise is weak: {left}, what is here might look quite different."
    return {
        "lead": _lead(corpus),
        "promised": promised,
        "wonder": wonder,
        "coin": how_many(promise.coin),
        "searched": both if corpus.facts else "topics",
        "encoder": f"{plan.encoder.name}, {plan.encoder.dim} numbers a text",
        "command": command,
        "guarantee": str(guarantee),
        "few": _few(corpus),
    }


def _lead(corpus: Corpus) -> str:
    """Return what there is, in a sentence or two."""
    parts = []
    if corpus.topics is not None:
        by = f", by {len(corpus.classes):,} labels" if corpus.classes else ""
        parts.append(
            f"how many are nearest to each of {len(corpus.topics):,} topics "
            f"{_SOURCES[corpus.topics.source]}{by}"
        )
    if corpus.parts.names is not None:
        found = len(corpus.facts)
        parts.append(
            f"how many have each of {found:,} names that were found in them"
            if found
            else "no name is in enough of them to be told"
        )
    return (
        f"This page is about private texts: {'; and '.join(parts)}. All figures have random noise "
        "in them, which protects whoever wrote the texts. The texts themselves are not here."
    )


def _few(corpus: Corpus) -> str:
    if corpus.table is None:
        return ""
    return (
        f"A topic with fewer texts than about {math.ceil(corpus.table.count_margin):,} cannot be "
        "told from one without any."
    )


def _reading(corpus: Corpus) -> Iterator[str]:
    """Yield how to read the page, as HTML."""
    yield (
        '<span class="bar sample" style="--low:60%;--at:75%;--high:90%" aria-hidden="true"></span> '
        "The line is the figure with its noise. The true one lies where the bar is pale, 95 times "
        "in 100, and a ± says the same in numbers. A ± is about the noise alone."
    )
    yield (
        '<span class="bar unclear sample" style="--high:100%" aria-hidden="true"></span> '
        "Not clear of the noise: there may be no such text at all, or up to so many."
    )
    if corpus.topics is not None:
        yield (
            "A text counts for its nearest topic, and for no other. Which is nearest is the "
            "encoder's judgement: such a text need not be about the topic, only less about others."
        )
    if corpus.plan.people:
        yield (
            f"All texts of one person together count for at most {_limit(corpus)}: where people "
            "have more, counts are lower than the number of texts."
        )
    if corpus.plan.vocabulary is not None:
        yield (
            "Typical words are those of a public list that texts near a topic say clearly more "
            "often than others."
        )
    if corpus.parts.names is not None:
        yield "Names were found in the texts themselves. Each of them is said by many."


def _limit(corpus: Corpus) -> str:
    """Return for how many texts a person counts."""
    most = corpus.plan.options.group_rows
    return f"{most:g} text{'' if most == 1 else 's'}"


def _labels(corpus: Corpus) -> str:
    """Return the shares of labels among all texts; nothing without labels."""
    topics, table = corpus.topics, corpus.table
    if topics is None or table is None or not corpus.classes:
        return ""
    shares, margins = table.shares(np.ones((1, len(topics))))
    found = {
        corpus.classes[at]: Share(float(shares[0, at]), float(margins[0, at]))
        for at in np.argsort(-shares[0], kind="stable")
    }
    listed = _shares(found)
    if len(found) > _OPEN:
        listed = f"<details><summary>All {len(found):,} labels</summary>\n{listed}</details>"
    return f'<h2 id="labels">Labels of all texts</h2>\n{listed}'


def _topics(corpus: Corpus) -> str:
    """Return all topics as a list, the largest first; nothing without topics."""
    topics = corpus.topics
    if topics is None or corpus.table is None:
        return ""
    answers = corpus.map()
    most = max(*(each.topics[0].count for each in answers), 1) + corpus.table.count_margin
    merged = dict(zip(topics.names, topics.merged, strict=True))
    items = "\n".join(_topic(each, most, merged[each.topics[0].name]) for each in answers)
    return f'<h2 id="topics">Topics</h2>\n{_LEGEND}\n<ul class="items">\n{items}\n</ul>'


def _topic(answer: Answer, most: float, merged: Sequence[str]) -> str:
    [topic] = answer.topics
    told = [f"{label} {share}" for label, share in answer.shares.items() if share.clear]
    brief = [_and_more([escaped(each) for each in told])] if told else []
    words = ", ".join(map(escaped, answer.words or ()))
    brief += [f"words: {words}"] if words else []
    inside = [_shares(answer.shares)] if answer.shares else []
    if answer.words is not None:
        inside.append(f"<p>Typical words: {words or 'none is clear of the noise'}.</p>")
    if len(merged) > 1:
        inside.append(f"<p>Stands for: {'; '.join(map(escaped, merged))}.</p>")
    row = _row(topic.name, topic.count, topic.margin, most, " · ".join(brief), clear=topic.clear)
    content = f'<div class="row">{row}</div>'
    if inside:
        content = (
            f"<details><summary>{row}</summary>"
            f'<div class="inside">{"".join(inside)}</div></details>'
        )
    findable = " ".join(dict.fromkeys([topic.name, *merged, *(answer.words or ())]))
    return f'<li data-find="{escaped(findable)}">{content}</li>'


def _and_more(told: Sequence[str]) -> str:
    rest = len(told) - _BRIEF
    return ", ".join(told[:_BRIEF]) + (f" and {rest} more" if rest > 0 else "")


def _row(
    name: str, count: float, margin: float, most: float, brief: str = "", *, clear: bool
) -> str:
    """Return a name, a bar and a count; what is brief is HTML."""
    said = f"{count:,.0f} <i>± {_figure(margin)}</i>"
    if not clear:
        said = f"<i>at most {max(count, 0) + margin:,.0f}</i>"
        brief = f"{NOT_CLEAR} · {brief}" if brief else NOT_CLEAR
    below = f'<span class="brief">{brief}</span>' if brief else ""
    bar = _bar(count / most, margin / most, clear=clear)
    return (
        f'<bdi class="name">{escaped(name)}</bdi> {bar} <span class="count">{said}</span> {below}'
    )


def _figure(margin: float) -> str:
    return f"{margin:,.0f}" if margin >= 1 else f"{margin:.1g}"


def _bar(part: float, margin: float, *, clear: bool) -> str:
    """Return a bar of a part of its width, pale where noise may have moved its end."""
    low, at, high = (
        f"{100 * min(max(each, 0.0), 1.0):.2f}%" for each in (part - margin, part, part + margin)
    )
    kind = "bar" if clear else "bar unclear"
    return (
        f'<span class="{kind}" style="--low:{low};--at:{at};--high:{high}" '
        'aria-hidden="true"></span>'
    )


def _shares(shares: Mapping[Any, Share]) -> str:
    """Return shares of labels as bars; those that are not clear of the noise in a sentence."""
    rows = [
        f"<li><bdi>{escaped(label)}</bdi> {_bar(share.share, share.margin, clear=True)} "
        f'<span class="count">{escaped(share)}</span></li>'
        for label, share in shares.items()
        if share.clear
    ]
    unclear = {label: share for label, share in shares.items() if not share.clear}
    listed = f'<ul class="shares">{"".join(rows)}</ul>' if rows else ""
    if not unclear:
        return listed
    most = max(min(each.share + each.margin, 1.0) for each in unclear.values())
    names = ", ".join(map(escaped, unclear))
    return f'{listed}<p class="quiet">Labels {NOT_CLEAR} (at most {most:.0%} each): {names}.</p>'


def _names(corpus: Corpus) -> str:
    """Return names that were found, as a list; nothing if none were looked for."""
    if corpus.parts.names is None:
        return ""
    found = corpus.facts
    heading = '<h2 id="names">Names that many texts have</h2>'
    if not found:
        return f"{heading}\n<p>None is in enough texts to be told.</p>"
    most = max(*(each.count for each in found), 1.0) + found[0].margin
    items = "\n".join(_fact(each, most) for each in found)
    return f'{heading}\n<ul class="items">\n{items}\n</ul>'


def _fact(fact: Fact, most: float) -> str:
    row = _row(fact.word, fact.count, fact.margin, most, clear=fact.clear)
    return f'<li data-find="{escaped(fact.word)}"><div class="row">{row}</div></li>'
