"""What a classifier says about itself, for people and for programs. Public numbers only."""

from discreet.privacy import Card
from discreet.readers.softmax.layout import Rounds
from discreet.sums.card import protection, protection_facts
from discreet.sums.release import Released


def card_of(released: Released[Rounds]) -> Card:
    """Return the card of a release.

    Args:
        released: the noisy sums, with what is public about them.
    """
    facts = _facts(released)
    return Card(tuple(facts.items()), tuple(_sentences(released, facts)))


def _facts(released: Released[Rounds]) -> dict[str, object]:
    layout = released.layout
    return {
        **protection_facts(released),
        "mechanism": "rounded Gaussian noise, added to integer sums in each round",
        "noise_sigma": released.sigma * layout.real_unit / layout.of_round**0.5,
        "noise_multiplier": released.mechanism.sigma,
        "rounds": layout.rounds,
        "moments": layout.moments,
        "judging": layout.judging,
        "clip": layout.clip,
        "classes": list(layout.classes),
        "key_norm": layout.kernel.key_norm,
        "features": layout.kernel.describe(),
        "key_dim": layout.kernel.dim,
        "state_bytes": released.nbytes,
        "rows": released.rows,
        "rows_hint": released.rows_hint,
        "entropy": released.source,
        "version": released.version,
    }


def _sentences(released: Released[Rounds], facts: dict[str, object]) -> list[tuple[str, str]]:
    layout = released.layout
    noise = (
        f"rounded Gaussian, σ = {facts['noise_sigma']:.6g} at most on each of the sums of each of "
        f"{layout.rounds} rounds, all of them under this one guarantee; of the squared budget "
        f"{layout.moments:.0%} is for second moments, in the first round, and {layout.judging:.0%} "
        "for how sure to be, after the last"
    )
    bounds = (
        f"‖key‖ ≤ {layout.kernel.key_norm:g}; what a row says against a round's coefficients, at "
        f"most {layout.clip:g} long; enforced by clipping"
    )
    count = layout.kernel.features
    size = f"{layout.columns:,} classes, {count:,} features, {released.nbytes:,} bytes"
    own = sum(array.nbytes for array in layout.arrays().values())
    if own:
        size += f", and {own:,} of the features"
    return [
        *protection(released),
        ("noise", noise),
        ("bounds", bounds),
        ("features", layout.kernel.describe()),
        ("size", size),
        ("entropy", released.source),
        ("made by", f"discreet {released.version}"),
    ]
