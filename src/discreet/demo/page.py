"""The demo's page: one HTML file that loads nothing from elsewhere."""

from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources
from string import Template

from discreet._version import __version__
from discreet.demo.digits import Mean
from discreet.demo.findings import EPSILON, Compared, Findings

HOW_TO_GET_PICTURES = "Pictures need matplotlib: pip install 'discreet[plots]'."


def as_html(found: Findings, *, pictures: bool) -> str:
    """Return the page.

    Args:
        found: what to show.
        pictures: whether to draw; needs matplotlib.
    """
    template = resources.files("discreet.demo").joinpath("page.html").read_text(encoding="utf-8")
    [chosen] = [each for each in found.accuracies if each.epsilon == EPSILON]
    texts = {
        "version": __version__,
        "rows": f"{found.rows:,}",
        "splits": f"{found.splits}",
        "epsilon": f"{EPSILON:g}",
        "private_accuracy": f"{chosen.private.mean:.1%}",
        "exact_accuracy": f"{chosen.exact.mean:.1%}",
        "numbers": f"{found.answers.exact.size:,}",
        "within": f"{found.answers.within:.1%}",
        "levels": f"{found.tree.levels}",
        "node": f"{found.tree.node:.0f}",
        "query": f"{found.tree.query:.0f}",
        "memory": f"{found.tree.memory:.0f}",
        "state_bytes": _rounded(found.paper.state_bytes),
        "rows_needed": _rounded(found.paper.rows),
    }
    blocks = {
        "card": _facts(found.card.sentences),
        "facts": _facts(
            (name.replace("_", " "), _fact(value)) for name, value in found.card.to_dict().items()
        ),
        "accuracy_table": _accuracies(found.accuracies),
        **_pictures(found, drawn=pictures),
    }
    return Template(template).substitute(
        {name: escape(text) for name, text in texts.items()} | blocks
    )


def _pictures(found: Findings, *, drawn: bool) -> dict[str, str]:
    """Return the pictures with what they say to those who do not see them."""
    first, last = found.accuracies[0], found.accuracies[-1]
    few, many = found.by_rows.measured[0], found.by_rows.measured[-1]
    said = {
        "accuracy": (
            f"Accuracy against ε. The private memory rises from {first.private.mean:.2f} at "
            f"ε = {first.epsilon:g} to {last.private.mean:.2f} at ε = {last.epsilon:g}; exact "
            f"attention lies between {first.exact.mean:.2f} and {last.exact.mean:.2f}."
        ),
        "answers": (
            "Scatter of private against exact answers with error bars, along the diagonal; "
            f"{found.answers.within:.1%} are within their bars."
        ),
        "errors": (
            "Error of answers over ε and over the number of rows, predicted as two lines (rows "
            "that are centred, and rows with much in common) and measured as points, near the "
            f"lower line: from {few.mean:.2g} with {few.at:,.0f} rows down to "
            f"{many.mean:.2g} with {many.at:,.0f}."
        ),
        "tree": (
            f"Noise by level of the tree: {found.tree.node:.0f} rows for every node, adding up to "
            f"{found.tree.query:.0f} for a query; {found.tree.memory:.0f} for the memory."
        ),
    }
    if not drawn:
        note = f'<p class="note">{escape(HOW_TO_GET_PICTURES)}</p>'
        return {f"{name}_picture": note for name in said}
    from discreet.demo import gallery
    from discreet.pictures import data_uri

    draw = {
        "accuracy": gallery.accuracy,
        "answers": gallery.answers,
        "errors": gallery.errors,
        "tree": gallery.tree,
    }
    return {
        f"{name}_picture": _figure(data_uri(draw[name](found)), alt) for name, alt in said.items()
    }


def _figure(address: str, alt: str) -> str:
    return f'<figure><img src="{address}" alt="{escape(alt)}"></figure>'


def _facts(pairs: Iterable[tuple[str, str]]) -> str:
    rows = "\n".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(text)}</td></tr>'
        for name, text in pairs
    )
    return f'<div class="table"><table class="facts">\n{rows}\n</table></div>'


def _fact(value: object) -> str:
    match value:
        case None:
            return "not public"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.6g}"
        case int():
            return f"{value:,}"
        case list():
            return ", ".join(map(str, value)) or "one"
    return str(value)


def _accuracies(rows: Sequence[Compared]) -> str:
    headings = ("ε", "scale", "exact (not private)", "private memory", "DP-SGD")
    head = "".join(f'<th scope="col">{escape(each)}</th>' for each in headings)
    body = "\n".join(
        f'<tr><th scope="row">{each.epsilon:g}</th><td>{each.scale:.3g}</td>'
        f'<td>{_mean(each.exact)}</td><td class="ours">{_mean(each.private)}</td>'
        f"<td>{_mean(each.dpsgd)}</td></tr>"
        for each in rows
    )
    return (
        '<div class="table"><table class="numbers">\n'
        "<caption>Unseen digits named correctly: mean of splits ± standard error.</caption>\n"
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )


def _mean(mean: Mean | None) -> str:
    return "" if mean is None else f"{mean.mean:.3f} ±\u00a0{mean.stderr:.3f}"


def _rounded(number: float) -> str:
    """Return a huge number as people write it: 9·10²⁰."""
    digits, power = f"{number:.0e}".split("e+")
    raised = str(int(power)).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{digits}·10{raised}"
