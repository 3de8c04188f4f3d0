"""What `discreet demo` shows: private attention on digits, its card, and what else there is."""

from pathlib import Path

from rich.console import Console
from rich.table import Table

from discreet.cli import digits
from discreet.cli.digits import Accuracy
from discreet.memory import Memory
from discreet.paper.needs import Needs, attention_needs

_EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
_CARD_EPSILON = 1.0


def show(picture: Path, *, splits: int = digits.SPLITS) -> None:
    """Print the card and the table, and draw the picture if matplotlib is there."""
    console = Console(highlight=False)
    data = digits.splits(splits)
    memories = {epsilon: data[0].memory(epsilon) for epsilon in _EPSILONS}
    console.rule("[bold]A private memory of 1,347 handwritten digits, and its card")
    console.print(str(memories[_CARD_EPSILON].card), markup=False, soft_wrap=True)
    console.print()
    console.rule("[bold]How well it answers: classes of images that it has never seen, no training")
    private = [digits.private_accuracy(data, epsilon) for epsilon in _EPSILONS]
    exact = [
        digits.exact_accuracy(data, epsilon, memory.scale) for epsilon, memory in memories.items()
    ]
    dpsgd = digits.dpsgd_accuracy()
    console.print(_table(memories, private, exact, dpsgd))
    paper = _paper_line(_paper_needs(memories[_CARD_EPSILON]))
    console.print(paper)
    try:
        from discreet.cli.pictures import Curve, accuracy_against_epsilon, save
    except ImportError:
        console.print("No picture without matplotlib: pip install 'discreet[plots]'.", markup=False)
    else:
        curves = [
            Curve(
                [each.epsilon for each in points],
                [each.mean for each in points],
                [each.stderr for each in points],
            )
            for points in (private, exact, dpsgd)
        ]
        save(
            accuracy_against_epsilon(
                private=curves[0], exact=curves[1], dpsgd=curves[2], delta=digits.DELTA
            ),
            picture,
        )
        console.print(f"Picture: {picture}")


def _table(
    memories: dict[float, Memory],
    private: list[Accuracy],
    exact: list[Accuracy],
    dpsgd: list[Accuracy],
) -> Table:
    table = Table(title=f"Accuracy, mean of splits ± standard error (δ = {digits.DELTA:g})")
    for heading in ("ε", "scale", "exact attention", "private memory", "DP-SGD"):
        table.add_column(heading, justify="right")
    known = {each.epsilon: each for each in dpsgd}
    for mine, truth in zip(private, exact, strict=True):
        other = known.get(mine.epsilon)
        table.add_row(
            f"{mine.epsilon:g}",
            f"{memories[mine.epsilon].scale:.3g}",
            f"{truth.mean:.3f}",
            f"{mine.mean:.3f} ± {mine.stderr:.3f}",
            "" if other is None else f"{other.mean:.3f} ± {other.stderr:.3f}",
        )
    return table


def _paper_needs(memory: Memory) -> Needs:
    return attention_needs(
        rows=digits.ROWS_HINT,
        key_dim=memory.kernel.dim,
        value_dim=10,
        largest_logit=memory.kernel.largest_logit,
        epsilon=memory.guarantee.epsilon,
        delta=memory.guarantee.delta,
    )


def _paper_line(needs: Needs) -> str:
    return (
        "The paper's construction for the same data and logits, at ε = 1: "
        f"{needs.state_bytes:.1e} bytes of state, and {needs.rows:.0e} rows before an answer means "
        "anything."
    )
