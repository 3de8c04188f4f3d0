"""Pictures of the gallery: each takes what an example's `main` returned, and returns a figure.

On white, so that they can be read in a dark page, too; in the style of `discreet.pictures`.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, PercentFormatter
from scipy.stats import sem

from discreet import pictures
from discreet.pictures import Curve

INK, BLUE, ORANGE, FAINT = "#222222", "#0072b2", "#d55e00", "#9a9a9a"
Findings = Any  # each example has its own


def start(title: str, *, height: float = 3.9, panels: int = 1) -> tuple[Figure, list[Axes]]:
    """Return a figure with axes below each other, in the common look."""
    figure = Figure(figsize=(4.8, height), layout="constrained", facecolor="#ffffff")
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=12, weight="bold", color=INK, x=0.02, ha="left")
    axes = list(np.atleast_1d(figure.subplots(panels, 1)))
    for each in axes:
        pictures.dress(each)
    return figure, axes


def legend(axes: Axes, **options: object) -> None:
    """Say what is what."""
    axes.legend(fontsize=8.5, frameon=False, labelcolor=INK, **options)


def legend_below(figure: Figure, axes: Axes) -> None:
    """The same, where there is no room inside."""
    figure.legend(
        *axes.get_legend_handles_labels(),
        loc="outside lower left",
        ncols=2,
        fontsize=8.5,
        frameon=False,
        labelcolor=INK,
    )


def by_epsilon(axes: Axes, epsilons: Sequence[float]) -> None:
    """Space x by ratios, with a tick for each ε."""
    axes.set_xscale("log")
    axes.set_xticks(list(epsilons), [f"{epsilon:g}" for epsilon in epsilons])
    axes.xaxis.set_minor_locator(NullLocator())


def quickstart(answers: Findings) -> Figure:
    """Return what people of each taste do, private and exact."""
    figure, [axes] = start("What do people like this do?")
    looks = (("spent", "o", BLUE), ("came back", "s", ORANGE))
    for column, (name, marker, colour) in enumerate(looks):
        places = np.arange(len(answers.exact)) + 0.12 * (column - 0.5)
        axes.errorbar(
            places,
            answers.private[:, column],
            yerr=2 * answers.stderr[:, column],
            linestyle="none",
            marker=marker,
            color=colour,
            capsize=4,
            label=f"{name}, private, ±2 standard errors",
        )
        exact = answers.exact[:, column]
        label = "exact (NOT private)" if column else None
        axes.plot(places, exact, linestyle="none", marker="_", ms=16, color=INK, label=label)
    axes.set_xticks(range(len(answers.exact)))
    axes.set(xlabel="taste", ylabel="answer", ylim=(-0.35, 0.95))
    legend(axes, loc="upper left")
    return figure


def digits_classifier(found: Findings) -> Figure:
    """Return accuracy against ε."""
    curves = [
        Curve(
            [each.epsilon for each in found],
            [float(np.mean(getattr(each, name))) for each in found],
            [float(sem(getattr(each, name))) for each in found],
        )
        for name in ("private", "exact")
    ]
    named = {"private memory, no training": curves[0], "exact attention (NOT private)": curves[1]}
    return pictures.accuracy_against_epsilon(named, levels={}, floor=0.1, delta=1e-5)


def private_text(found: Findings) -> Figure:
    """Return accuracy against ε, and what a sharper softmax would give."""
    accuracies, sharp = found
    figure, [axes] = start("Reviews judged right by a memory")
    epsilons = [each.epsilon for each in accuracies]
    axes.axhline(sharp, linestyle=":", color=ORANGE, label="exact, scale 15 (NOT private)")
    exact, private = ([getattr(each, n) for each in accuracies] for n in ("exact", "private"))
    axes.plot(epsilons, exact, "--s", color=INK, label="exact, same scale (NOT private)")
    axes.plot(epsilons, private, "-o", color=BLUE, label="private memory")
    return reviews(figure, axes, epsilons)


def private_text_classifier(found: Findings) -> Figure:
    """Return accuracy against ε, beside logistic regression."""
    figure, [axes] = start("Reviews judged right by a classifier")
    epsilons = list(found.private)
    label = "logistic regression (NOT private)"
    axes.axhline(found.exact, linestyle="--", color=INK, label=label)
    private = list(found.private.values())
    axes.plot(epsilons, private, "-o", color=BLUE, label="PrivateClassifier")
    return reviews(figure, axes, epsilons)


def reviews(figure: Figure, axes: Axes, epsilons: Sequence[float]) -> Figure:
    """Return the figure with a line for a coin."""
    axes.axhline(0.5, linestyle="-.", color=FAINT, label="a coin")
    by_epsilon(axes, epsilons)
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.set(xlabel="ε (one review added or removed)", ylabel="accuracy", ylim=(0.42, 0.9))
    legend(axes, loc="upper left")
    return figure


def l1_distances(found: Findings) -> Figure:
    """Return the private mean distance of every profile, and both medians."""
    figure, [axes] = start("How far is everyone from this profile?", height=4.2)
    axes.grid(visible=False)
    levels = np.arange(np.floor(found.grid.min()), np.ceil(found.grid.max()) + 3, 3)
    filled = axes.contourf(found.ages, found.hours, found.grid, levels=levels, cmap="Blues_r")
    figure.colorbar(filled, label="private mean distance (years + hours)")
    look = {"linestyle": "none", "markeredgecolor": "#ffffff"}
    axes.plot(*found.best, "s", ms=10, color=INK, label="exact median (NOT private)", **look)
    axes.plot(*found.chosen, "o", ms=9, color=ORANGE, label="private median", **look)
    axes.set(xlabel="age", ylabel="hours of work a week")
    axes.legend(fontsize=8.5, loc="upper right")
    return figure


def adaptive_attacker(outcomes: Findings) -> Figure:
    """Return how often the attacker is right, against ε."""
    from adaptive_attacker import CHANCE, DELTA, QUESTIONS

    figure, [axes] = start(f"An attacker asks {QUESTIONS:,} adaptive questions", height=4.4)
    private = outcomes[1:]
    epsilons = [each.epsilon for each in private]
    exact = outcomes[0].searched / outcomes[0].trials
    axes.axhline(exact, linestyle="--", color=INK, label="exact attention (NOT private)")
    between = np.geomspace(epsilons[0], epsilons[-1], 100)
    allowed = [replace(private[0], epsilon=epsilon).allowed for epsilon in between]
    axes.plot(between, allowed, ":", color=INK, label="the most that (ε, δ) allows")
    looks = (("told", "key known", "s", ORANGE), ("searched", "key searched", "o", BLUE))
    for name, label, marker, colour in looks:
        counts = [getattr(each, name) for each in private]
        shares = np.array([n / each.trials for n, each in zip(counts, private, strict=True)])
        ends = np.array([each.interval(n) for n, each in zip(counts, private, strict=True)])
        spread = np.abs(ends.T - shares)
        axes.errorbar(
            epsilons, shares, spread, marker=marker, color=colour, capsize=3, label=f"{label}, 95%"
        )
    axes.axhline(CHANCE, linestyle="-.", color=FAINT, label="chance")
    by_epsilon(axes, epsilons)
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.set(xlabel=f"ε (δ = {DELTA:g})", ylabel="diagnoses guessed right")
    legend_below(figure, axes)
    return figure


def bars(axes: Axes, groups: Sequence[str], series: dict[str, Sequence[float]]) -> None:
    """Draw bars in groups, each with its number."""
    looks = ((BLUE, ""), (ORANGE, "//"), (FAINT, ".."), ("#ffffff", ""))
    width = 0.8 / len(series)
    for i, ((name, heights), (colour, hatch)) in enumerate(
        zip(series.items(), looks, strict=False)
    ):
        places = np.arange(len(groups)) + (i - (len(series) - 1) / 2) * width
        drawn = axes.bar(
            places, heights, width, label=name, color=colour, hatch=hatch, edgecolor=INK, lw=0.6
        )
        axes.bar_label(drawn, fmt="%.2f", fontsize=8, color=INK)
    axes.set_xticks(range(len(groups)), groups)
    axes.grid(visible=False, axis="x")


def trained_for_privacy(scores: Findings) -> Figure:
    """Return who answers how well."""
    figure, [axes] = start("Treatment right in hospitals never seen", height=4.2)
    names = list(dict.fromkeys(name for name, _ in scores.private))
    epsilons = list(dict.fromkeys(epsilon for _, epsilon in scores.private))
    groups = [f"ε = {epsilon:g}" for epsilon in epsilons]
    series = {
        name.strip("*"): [scores.private[name, epsilon][0] for epsilon in epsilons]
        for name in names
    }
    bars(axes, groups, series)
    exact, alone = scores.exact[0], scores.alone[0]
    axes.axhline(exact, linestyle="--", color=INK, label="model, exact (NOT private)")
    axes.axhline(alone, linestyle="-.", color=FAINT, label="model, no memory")
    axes.set(ylabel="treatments right", ylim=(0, 1))
    legend_below(figure, axes)
    return figure


def pretrained_speech(rates: Findings) -> Figure:
    """Return how many words are wrong."""
    figure, [axes] = start("Words wrong, all layers private", height=4.2)
    groups = ["no layer looks" if cap == 1e-3 else f"logits up to {cap:g}" for cap in rates.caps]
    series = {
        "exact, clipped (NOT private)": rates.clipped,
        "private but for the noise": rates.silent,
    }
    for i, epsilon in enumerate(rates.epsilons):
        series[f"ε = {epsilon:g}"] = [each[i] for each in rates.noisy]
    bars(axes, groups, series)
    axes.set_ylabel("word error rate")
    legend_below(figure, axes)
    return figure


def rag_topics(answers: Findings) -> Figure:
    """Return three answers: shares of solutions with their ±."""
    solutions = ("restart it", "new battery", "reset password", "reinstall", "refund", "call back")
    shown = (answers[0], answers[5], answers[6])
    figure, axes = start("What solved tickets like this?", height=6.6, panels=3)
    for each, answer in zip(axes, shown, strict=True):
        places = np.arange(len(solutions))
        spread = 2 * answer.stderr
        each.barh(
            places,
            answer.private,
            xerr=spread,
            color=BLUE,
            alpha=0.75,
            capsize=3,
            label="private, ±2 standard errors",
        )
        each.plot(answer.exact, places, "|", ms=13, mew=2, color=INK, label="exact (NOT private)")
        each.set_yticks(places, solutions)
        each.invert_yaxis()
        each.set_xlim(-0.15, 1.0)
        each.xaxis.set_major_formatter(PercentFormatter(1))
        each.set_title(f"“{answer.question}”", fontsize=9.5, loc="left", color=INK)
        each.grid(visible=False, axis="y")
    legend(axes[0], loc="lower right")
    axes[-1].set_xlabel("share among tickets like the question")
    return figure


def private_rag(found: Findings) -> Figure:
    """Return what an attacker gets of planted secrets, and what is answered right."""
    figure, [axes] = start("What do private records answer?", height=3.0)
    rows = {
        "diseases right": (found.right, BLUE),
        "secrets told by the release": (found.told / found.secrets, BLUE),
        "secrets in the nearest documents\n(NOT private)": (found.shown / found.secrets, INK),
    }
    shares, colours = zip(*rows.values(), strict=True)
    drawn = axes.barh(range(len(rows)), shares, color=colours, alpha=0.75, height=0.6)
    axes.bar_label(drawn, [f"{share:.0%}" for share in shares], padding=3, color=INK)
    axes.set_yticks(range(len(rows)), list(rows))
    axes.invert_yaxis()
    axes.set_xlim(0, 1.15)
    axes.xaxis.set_major_formatter(PercentFormatter(1))
    axes.grid(visible=False, axis="y")
    return figure


def cross_attention(found: Findings) -> Figure:
    """Return private outputs of the layer over exact ones, at the smallest and the largest ε."""
    figure, axes = start("Outputs of the layer, private and exact", height=6.0, panels=2)
    for each, served in zip(axes, (found[0], found[-1]), strict=True):
        exact, private = served.exact[::10].ravel(), served.private[::10].ravel()
        each.plot(exact, private, ".", ms=2.5, color=BLUE, alpha=0.6, rasterized=True)
        ends = [exact.min(), exact.max()]
        each.plot(ends, ends, "--", color=INK, lw=1.2)
        each.set_title(
            f"ε = {served.epsilon:g}: {served.private_right:.1%} of labels right "
            f"(exact: {served.exact_right:.1%})",
            fontsize=9.5,
            loc="left",
            color=INK,
        )
        each.set_ylabel("private")
    axes[-1].set_xlabel("exact (NOT private)")
    return figure
