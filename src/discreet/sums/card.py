"""What every card says of who is protected, and how much."""

from discreet.privacy import NOT_PRIVATE, Neighbours, taken
from discreet.sums.layout import RowLayout
from discreet.sums.release import Released


def protection_facts(released: Released[RowLayout]) -> dict[str, object]:
    """Return the facts of a card that say who is protected, and how much.

    Args:
        released: noisy sums, with what is public about them.
    """
    guarantee = released.guarantee
    return {
        "private": released.private,
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "neighbours": str(guarantee.neighbours),
        "unit": guarantee.unit,
        "group_rows": released.group_rows,
        "scope": guarantee.scope,
        "guarantee": str(guarantee),
        "leaks": list(released.receipt.leaks),
        "mechanism": "rounded Gaussian noise, added once to integer sums",
    }


def protection(released: Released[RowLayout]) -> list[tuple[str, str]]:
    """Return the lines of a card that say who is protected, and how much.

    Args:
        released: noisy sums, with what is public about them.
    """
    guarantee = released.guarantee
    rows = []
    if not released.private:
        rows.append((NOT_PRIVATE, f"the noise came from {released.source}, a source for tests"))
    protects = f"any one {guarantee.unit} ({guarantee.neighbours.change})"
    if guarantee.unit == "record":
        protects += f", with the influence of at most {released.group_rows:g} row(s)"
    counts = "the number of rows is private, too"
    if released.rows is not None:
        counts = f"the number of rows is public: {released.rows:,}"
    elif guarantee.neighbours is Neighbours.REPLACE:
        counts = "the number of records is public, the number of rows is not"
    hint = "none" if released.rows_hint is None else f"{released.rows_hint:,}"
    given = "public figure given by the builder"
    if "rows_hint" in released.receipt.leaks:
        given = "figure that was taken from the rows"
    rows += [
        ("protects", f"{protects}: {guarantee.figures}"),
        ("guarantee", str(guarantee)),
        *taken(released.receipt.leaks),
        ("rows", f"{counts}; {given}: {hint}"),
    ]
    return rows
