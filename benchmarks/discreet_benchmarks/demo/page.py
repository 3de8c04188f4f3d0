"""The demo's page: a story in five pictures, in one HTML file that loads nothing from elsewhere."""

from html import escape
from importlib import resources
from string import Template

from discreet._typing import Floats
from discreet._version import __version__
from discreet.pages.sheet import card_facts, card_lines, numbers, picture, sheet
from discreet_benchmarks.demo import attack, texts
from discreet_benchmarks.demo.attack import Attacked
from discreet_benchmarks.demo.digits import Mean
from discreet_benchmarks.demo.findings import EPSILON, Asked, Findings, splits_for_learning


def as_html(found: Findings, *, pictures: bool) -> str:
    """Return the page.

    Args:
        found: what to show.
        pictures: whether to draw; needs matplotlib.
    """
    template = resources.files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    blocks = {
        "strip": _strip(found.asked),
        "attack_table": _attacks(found),
        "accuracy_table": _accuracies(found),
        "texts": _answers(found.texts),
        "card": card_lines(found.card),
        "facts": card_facts(found.card),
        **_pictures(found, drawn=pictures),
    }
    texts = {name: escape(text) for name, text in _texts(found).items()}
    return sheet(
        title="discreet: private attention over handwritten digits",
        body=Template(template).substitute(texts | blocks),
        footer=f"Made by discreet {__version__}. Noise is drawn anew each time, so figures change "
        "a little from run to run.",
    )


def _texts(found: Findings) -> dict[str, str]:
    """Return the figures that sentences of the page name."""
    chosen, top, attacked = found.chosen, found.ceilings, found.attack_on_chosen
    return {
        "rows": f"{found.rows:,}",
        "splits": f"{found.splits}",
        "few": f"{splits_for_learning(found.splits)}",
        "epsilon": f"{EPSILON:g}",
        "numbers": f"{found.answers.exact.size:,}",
        "within": f"{found.answers.within:.1%}",
        "right": f"{sum(each.answer == each.truth for each in found.asked)}",
        "attack_exact": f"{found.attack_on_exact.share:.0%}",
        "attack_private": f"{attacked.share:.0%}",
        "attack_allowed": _allowed(attacked),
        "attack_chance": f"{1 / attack.CLASSES:.0%}",
        "largest": f"{found.accuracies[-1].epsilon:g}",
        "largest_private": f"{found.attacks[-1].share:.0%}",
        "largest_allowed": _allowed(found.attacks[-1]),
        "classifier": top.classifier_name,
        "classifier_accuracy": f"{top.classifier.mean:.1%}",
        "attention_accuracy": f"{top.attention.mean:.1%}",
        "constant_accuracy": f"{top.constant.mean:.1%}",
        "private_accuracy": f"{chosen.private.mean:.1%}",
        "rounds_accuracy": f"{chosen.rounds.mean:.1%}",
        "limits_sentence": _limits(found),
    }


def _limits(found: Findings) -> str:
    """Return what costs most accuracy at the smallest ε, at the one shown, and at the largest."""
    said = []
    for index in (0, found.accuracies.index(found.chosen), -1):
        losses = {name.partition(":")[0]: loss[index] for name, loss in found.losses.items()}
        worst = max(losses, key=lambda name: losses[name])
        epsilon = found.accuracies[index].epsilon
        said.append(f"the {worst} at ε = {epsilon:g} ({100 * losses[worst]:.0f} points)")
    return f"What costs most accuracy is {said[0]}, {said[1]} and {said[2]}."


def _pictures(found: Findings, *, drawn: bool) -> dict[str, str]:
    """Return the pictures with what they say to those who do not see them."""
    said = _said(found)
    if not drawn:
        return {f"{name}_picture": picture(None, alt) for name, alt in said.items()}
    from discreet.pictures import data_uri
    from discreet_benchmarks.demo import gallery

    return {
        f"{name}_picture": picture(data_uri(getattr(gallery, name)(found)), alt)
        for name, alt in said.items()
    }


def _said(found: Findings) -> dict[str, str]:
    """Return what each picture shows, in words."""
    first, last = found.accuracies[0], found.accuracies[-1]
    few, many = found.by_rows.measured[0], found.by_rows.measured[-1]
    shown, top = found.asked[0], found.ceilings
    lost = "; ".join(
        f"{name}, from {100 * loss[0]:.0f} to {100 * loss[-1]:.0f} points"
        for name, loss in found.losses.items()
    )
    return {
        "digit": (
            f"A handwritten {shown.truth}, and ten votes for its class: bars for exact attention, "
            f"points with error bars for the memory, which has most votes for {shown.answer}: "
            f"{shown.private[shown.answer]:.2f} ± {1.96 * shown.stderr[shown.answer]:.2f}."
        ),
        "attacks": (
            "How often an attacker names the secret: "
            + "; ".join(f"{attack.name_of(each)}, {each.share:.0%}" for each in found.attacks)
            + f". A guess is right in {1 / attack.CLASSES:.0%}."
        ),
        "accuracy": (
            f"Accuracy against ε. The private memory rises from {first.private.mean:.2f} at "
            f"ε = {first.epsilon:g} to {last.private.mean:.2f} at ε = {last.epsilon:g}, the "
            f"classifier from {first.rounds.mean:.2f} to {last.rounds.mean:.2f}; without privacy "
            f"{top.classifier_name} reaches {top.classifier.mean:.2f}."
        ),
        "losses": f"Accuracy that is lost, from the smallest ε to the largest: {lost}.",
        "errors": (
            "Error of answers over ε and over the number of rows, predicted as two lines (rows "
            "that are centred, and rows with much in common) and measured as points, near the "
            f"lower line: from {few.mean:.2g} with {few.at:,.0f} rows down to "
            f"{many.mean:.2g} with {many.at:,.0f}."
        ),
    }


def _strip(asked: tuple[Asked, ...]) -> str:
    items = "\n".join(f"<li>{_drawing(each.image)}{_verdict(each)}</li>" for each in asked)
    return f'<ul class="strip">\n{items}\n</ul>'


def _verdict(asked: Asked) -> str:
    told = f"a {asked.answer}"
    return f"{told} ✓" if asked.answer == asked.truth else f"{told} ✗ (it is a {asked.truth})"


def _drawing(image: Floats) -> str:
    """Return a small picture, one square for each pixel that is not white."""
    squares = "".join(
        f'<rect x="{x}" y="{y}" width="1.02" height="1.02" fill-opacity="{ink:.2f}"></rect>'
        for y, line in enumerate(image)
        for x, ink in enumerate(line)
        if ink > 0
    )
    return (
        '<svg viewBox="0 0 8 8" role="img" aria-label="a handwritten digit" '
        f'shape-rendering="crispEdges">{squares}</svg>'
    )


def _answers(found: texts.Texts | None) -> str:
    """Return questions with what texts answer, and how far counts are from exact ones."""
    if found is None:
        return f"<p>{escape(texts.HOW_TO_GET_TEXTS)}</p>"
    told = "\n".join(
        f"<p><b>{escape(each.answer.question)}</b></p>"
        f"<blockquote><p>{escape(str(each.answer))}</p></blockquote>"
        for each in found.asked
    )
    rows = [
        (topic.name, f"{topic.count:,} ± {topic.margin:,.0f}", f"{exact:,}")
        for each in found.asked
        for topic, exact in zip(each.answer.topics, each.exact, strict=True)
    ]
    counts = numbers(
        ("nearest topic", "texts, private", "texts, exact"),
        rows,
        caption="What the texts are nearest to, with noise and without.",
        ours=1,
    )
    return (
        f"<p>These are {found.rows:,} questions that people asked a machine, each with what it is "
        f"about. One release at ε = {EPSILON:g} counts which of {found.topics} public topics each "
        "is nearest to. It answers in words, any number of times, and has no text in it. "
        f"{found.within:.0%} of all counts are within their ±, where 95% are promised. It names "
        f"what unseen questions are about in {found.right:.0%}; "
        f"{1 / len(texts.DOMAINS):.0%} would be chance.</p>\n"
        f"{told}\n<details><summary>The same as numbers</summary>\n{counts}</details>\n"
        '<p class="quiet">The encoder is a small one that knows no word order, so that the demo '
        "is quick. <code>minilm</code> reads better. The questions are a part of CLINC150 (Larson "
        "et al. 2019, CC BY 3.0).</p>"
    )


def _attacks(found: Findings) -> str:
    return numbers(
        ("what she attacks", "right", "95% interval", "allowed"),
        [
            (
                attack.name_of(each),
                f"{each.share:.1%}",
                "{:.0%} to {:.0%}".format(*each.interval),
                _allowed(each),
            )
            for each in found.attacks
        ],
        caption=f"Secrets named, in {found.attacks[0].trials} attacks each, and the most that "
        "(ε, δ) allows.",
        ours=1,
    )


def _allowed(attacked: Attacked) -> str:
    return "everything" if attacked.allowed is None else f"{attacked.allowed:.0%}"


def _accuracies(found: Findings) -> str:
    return numbers(
        ("ε", "memory", "classifier", "least squares", "DP-SGD"),
        [
            (
                f"{each.epsilon:g}",
                *map(_mean, (each.private, each.rounds, each.least_squares, each.dpsgd)),
            )
            for each in found.accuracies
        ],
        caption="Unseen digits named correctly: mean of splits ± standard error.",
        ours=1,
    )


def _mean(mean: Mean | None) -> str:
    return "" if mean is None else f"{mean.mean:.3f} ±\u00a0{mean.stderr:.3f}"
