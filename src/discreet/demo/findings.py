"""What the demo finds out about memories of digits. The digits are public; else, NOT PRIVATE."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from discreet.demo import digits
from discreet.demo.digits import Mean, Split
from discreet.memory import Card, Comparison, Memory, compare
from discreet.paper.forest import levels_for
from discreet.paper.needs import Needs, attention_needs
from discreet.paper.node import Noise, node_noise

EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
EPSILON = 1.0  # of the memory whose card and answers are shown

# Errors vary little from split to split: so many are enough for them.
_SPLITS_FOR_ERRORS = 3


@dataclass(frozen=True)
class Compared:
    """Accuracies at one ε, at the temperature that `build` recommends."""

    epsilon: float
    scale: float
    exact: Mean
    private: Mean
    dpsgd: Mean | None


@dataclass(frozen=True)
class Errors:
    """Errors of answers at one temperature, measured and predicted.

    Attributes:
        measured: root mean square over the numbers of all answers.
        centred: what `plan` predicts for rows that vary around zero.
        in_common: what it predicts for rows that have much in common, as pixels have.
    """

    measured: tuple[Mean, ...]
    centred: tuple[float, ...]
    in_common: tuple[float, ...]


@dataclass(frozen=True)
class Tree:
    """Noise of one segment tree over the digits that has the whole budget, in rows.

    Attributes:
        levels: how many there are; a query reads a node of each.
        node: standard error of one node.
        memory: of a memory's denominator, in rows that match the query; same relation and budget.
    """

    levels: int
    node: float
    memory: float

    @property
    def query(self) -> float:
        """Standard error of what a query adds up."""
        return self.node * math.sqrt(self.levels)


@dataclass(frozen=True)
class Findings:
    """All that the demo shows."""

    rows: int
    splits: int
    scale: float
    card: Card
    accuracies: tuple[Compared, ...]
    answers: Comparison
    by_epsilon: Errors
    by_rows: Errors
    tree: Tree
    paper: Needs

    def to_dict(self) -> dict[str, object]:
        """Return everything but single answers, ready for JSON."""
        return {
            "rows": self.rows,
            "splits": self.splits,
            "delta": digits.DELTA,
            "card": self.card.to_dict(),
            "accuracies": [asdict(each) for each in self.accuracies],
            "within_1.96_standard_errors": self.answers.within,
            "error_by_epsilon": asdict(self.by_epsilon),
            "error_by_rows": asdict(self.by_rows),
            "tree": asdict(self.tree) | {"query": self.tree.query},
            "paper": asdict(self.paper),
        }


def find(splits: int = digits.SPLITS, *, epsilons: Sequence[float] = EPSILONS) -> Findings:
    """Build the memories and measure them.

    Args:
        splits: of the data, to average over.
        epsilons: to try; `EPSILON` must be among them.
    """
    data = digits.splits(splits)
    memory = data[0].memory(EPSILON)
    few, scale = data[:_SPLITS_FOR_ERRORS], memory.scale
    rows = len(data[0].keys)
    return Findings(
        rows=rows,
        splits=splits,
        scale=scale,
        card=memory.card,
        accuracies=tuple(_compared(data, epsilons)),
        answers=compare(memory, data[0].keys, data[0].values, data[0].queries),
        by_epsilon=_errors(few, [(epsilon, rows) for epsilon in epsilons], scale, by_rows=False),
        by_rows=_errors(few, [(EPSILON, rows // k) for k in (8, 4, 2, 1)], scale, by_rows=True),
        tree=_tree(scale),
        paper=_needs(memory),
    )


def _compared(data: list[Split], epsilons: Sequence[float]) -> list[Compared]:
    others = {each.at: each for each in digits.dpsgd_accuracy()}
    made = []
    for epsilon in epsilons:
        scale = digits.predicted(rows=digits.ROWS_HINT, epsilon=epsilon, scale=None).scale
        made.append(
            Compared(
                epsilon,
                scale,
                digits.exact_accuracy(data, epsilon, scale),
                digits.private_accuracy(data, epsilon),
                others.get(epsilon),
            )
        )
    return made


def _errors(
    data: list[Split], settings: list[tuple[float, int]], scale: float, *, by_rows: bool
) -> Errors:
    measured, centred, in_common = [], [], []
    for epsilon, rows in settings:
        parts = [each.first(rows) for each in data]
        at = float(rows) if by_rows else epsilon
        measured.append(digits.error(parts, at=at, epsilon=epsilon, scale=scale))
        plan = digits.predicted(rows=rows, epsilon=epsilon, scale=scale)
        centred.append(plan.stderr)
        in_common.append(plan.prediction.if_in_common().stderr)
    return Errors(tuple(measured), tuple(centred), tuple(in_common))


def _tree(scale: float) -> Tree:
    levels = levels_for(digits.ROWS_HINT)
    node = node_noise(
        Noise.TRUNCATED_LAPLACE, epsilon=EPSILON / levels, delta=digits.DELTA / levels
    )
    # The paper's relation, so that both protect the same.
    plan = digits.predicted(
        rows=digits.ROWS_HINT, epsilon=EPSILON, scale=scale, neighbours="replace"
    )
    memory = plan.denominator_stderr / math.exp(plan.kernel.largest_logit)
    return Tree(levels, math.sqrt(node.variance), memory)


def _needs(memory: Memory) -> Needs:
    return attention_needs(
        rows=digits.ROWS_HINT,
        key_dim=memory.kernel.dim,
        value_dim=10,
        largest_logit=memory.kernel.largest_logit,
        epsilon=memory.guarantee.epsilon,
        delta=memory.guarantee.delta,
    )
