"""What a regression says about itself, for people and for programs. Public numbers only."""

from discreet.privacy import Card
from discreet.readers.least_squares.layout import Moments
from discreet.sums.card import protection, protection_facts
from discreet.sums.release import Released


def card_of(released: Released[Moments]) -> Card:
    """Return the card of a release.

    Args:
        released: the noisy sums, with what is public about them.
    """
    facts = _facts(released)
    return Card(tuple(facts.items()), tuple(_sentences(released, facts)))


def _facts(released: Released[Moments]) -> dict[str, object]:
    layout = released.layout
    features = layout.kernel
    return {
        **protection_facts(released),
        "noise_sigma": released.sigma * layout.real_unit,
        "moments_sigma": layout.moments_sigma(released.sigma),
        "noise_multiplier": released.mechanism.sigma,
        "share": layout.share,
        "ridge": layout.ridge,
        "centred": layout.centred,
        "key_norm": features.key_norm,
        "value_norm": layout.value_norm,
        "tau": layout.real_tau,
        "features": features.describe(),
        "heads": list(layout.heads),
        "key_dim": features.dim,
        "value_dim": layout.value_dim,
        "state_bytes": released.nbytes,
        "rows": released.rows,
        "rows_hint": released.rows_hint,
        "entropy": released.source,
        "version": released.version,
    }


def _sentences(released: Released[Moments], facts: dict[str, object]) -> list[tuple[str, str]]:
    layout = released.layout
    noise = f"rounded Gaussian, drawn once: σ = {facts['noise_sigma']:.6g} on each of the sums"
    if layout.share:
        noise += (
            f", {facts['moments_sigma']:.6g} on second moments ({layout.share:.0%} of the squared "
            "budget)"
        )
        moments = "released with noise"
        if layout.moment is not None:
            moments += ", and mixed with those of public rows if rows are like them"
    else:
        whose = "of public rows" if layout.moment is not None else "of features that point anywhere"
        moments = f"{whose}: only the sums are private, and have the whole budget"
    bounds = (
        f"‖key‖ ≤ {layout.kernel.key_norm:g}, ‖value‖ ≤ {layout.value_norm:g}, enforced by clipping"
    )
    count = layout.kernel.features
    size = f"{layout.head_count} head(s), {count:,} features, {released.nbytes:,} bytes"
    own = sum(array.nbytes for array in layout.arrays().values())
    if own:
        size += f", and {own:,} of the features"
    return [
        *protection(released),
        ("noise", noise),
        ("bounds", bounds),
        ("features", layout.kernel.describe()),
        ("second moments", moments),
        ("size", size),
        ("entropy", released.source),
        ("made by", f"discreet {released.version}"),
    ]
