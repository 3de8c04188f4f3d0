"""What a structure says about itself. Public numbers only: its guarantee, its noise, its error."""

from discreet._card import Card
from discreet.paper.structure import Structure
from discreet.privacy import NOT_PRIVATE, Guarantee

# How often the error that a card names is kept.
_CONFIDENCE = 0.95


def card_of(structure: Structure) -> Card:
    """Return the card of a structure."""
    guarantee, receipt = structure.guarantee, structure.receipt
    whole = structure.whole_guarantee
    kinds = sorted({mechanism.kind for mechanism, _ in receipt.mechanisms})
    touched = sum(count for _, count in receipt.mechanisms)
    facts: dict[str, object] = {
        "private": structure.private,
        "class": type(structure).__name__,
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "neighbours": str(guarantee.neighbours),
        "unit": guarantee.unit,
        "scope": guarantee.scope,
        "guarantee": str(guarantee),
        "leaks": list(receipt.leaks),
        **_whole_facts(whole if whole != guarantee else None),
        "noise": kinds,
        "nodes_of_a_row": touched,
        "error_bound": structure.error_bound(_CONFIDENCE),
        "error_bound_confidence": _CONFIDENCE,
        "state_bytes": structure.nbytes,
        "entropy": receipt.source,
    }
    mark = (NOT_PRIVATE, f"the noise came from {receipt.source}, a source for tests")
    sentences = [
        *([] if structure.private else [mark]),
        ("structure", f"{facts['class']}, of the paper"),
        (
            "protects",
            f"any one {guarantee.unit} ({guarantee.neighbours.change}): {guarantee.figures}",
        ),
        ("guarantee", str(guarantee)),
        *([("whole file", str(whole))] if whole != guarantee else []),
        ("noise", f"{_words(kinds)}, drawn once; a row touches {touched:,} nodes"),
        (
            "error bound",
            (
                f"at most {facts['error_bound']:.4g}, with probability {_CONFIDENCE:.0%}, whatever "
                "the rows and the query"
            ),
        ),
        ("size", f"{structure.nbytes:,} bytes"),
        ("entropy", receipt.source),
    ]
    return Card(tuple(facts.items()), tuple(sentences))


def _whole_facts(whole: Guarantee | None) -> dict[str, object]:
    """Return what holds for the whole file, where the guarantee covers a part of it only."""
    if whole is None:
        return {}
    return {
        "whole_epsilon": whole.epsilon,
        "whole_delta": whole.delta,
        "whole_guarantee": str(whole),
    }


def _words(kinds: list[str]) -> str:
    return " and ".join(kind.replace("_", " ") for kind in kinds)
