"""What a memory says about itself, for people and for programs. Public numbers only."""

from collections.abc import Iterable

from discreet.privacy import Card
from discreet.readers.attention.layout import Layout
from discreet.readers.attention.prediction import (
    matching_rows,
    mostly_noise,
    noise_of_sums,
    planned,
    rows_needed,
)
from discreet.sums.card import protection, protection_facts
from discreet.sums.release import Released

MOSTLY_NOISE = "MOSTLY NOISE"


def card_of(released: Released[Layout]) -> Card:
    """Return the card of a memory.

    Args:
        released: the noisy sums, with what is public about them.
    """
    facts = _facts(released)
    return Card(tuple(facts.items()), tuple(_sentences(released, facts)))


def _facts(released: Released[Layout]) -> dict[str, object]:
    layout = released.layout
    kernel = layout.kernel
    noise = released.sigma * layout.real_unit
    facts: dict[str, object] = {
        **protection_facts(released),
        "noise_sigma": noise,
        "noise_sigma_lattice": released.sigma,
        "noise_multiplier": released.mechanism.sigma,
        "key_norm": kernel.key_norm,
        "query_norm": kernel.query_norm,
        "value_norm": layout.value_norm,
        "tau": layout.real_tau,
        "scale": kernel.scale,
        "largest_logit": kernel.largest_logit,
        "kernel": kernel.describe(),
        "kernel_error": kernel.error,
        "kernel_error_meaning": kernel.error_meaning,
        "worst_numerator_stderr": noise * kernel.bound,
        "worst_denominator_stderr": noise * kernel.bound / layout.real_tau,
        "rows_needed": rows_needed(layout, sigma=released.sigma),
        **_predicted(released),
        "heads": list(layout.heads),
        "key_dim": kernel.dim,
        "value_dim": layout.value_dim,
        "state_bytes": released.state.nbytes,
        "rows": released.rows,
        "rows_hint": released.rows_hint,
        "entropy": released.source,
        "version": released.version,
    }
    return facts


def _predicted(released: Released[Layout]) -> dict[str, object]:
    said = planned(released)
    if said is None:
        return {}
    names = (
        "signal",
        "signal_to_error",
        "stderr",
        "noise_stderr",
        "kernel_stderr",
        "doubled_stderr",
    )
    return {f"predicted_{name}": getattr(said, name) for name in names}


def _sentences(released: Released[Layout], facts: dict[str, object]) -> list[tuple[str, str]]:
    layout, guarantee = released.layout, released.guarantee
    kernel = layout.kernel
    noise = (
        f"rounded Gaussian, σ = {facts['noise_sigma']:.6g} on each of the sums, drawn once: "
        f"{released.mechanism.sigma:.6g} times what a {guarantee.unit} can change in one head"
    )
    bounds = (
        f"‖key‖ ≤ {kernel.key_norm:g}, ‖query‖ ≤ {kernel.query_norm:g}, "
        f"‖value‖ ≤ {layout.value_norm:g}, enforced by clipping"
    )
    temperature = (
        f"logit = {kernel.scale:.6g}·⟨query, key⟩, at most {kernel.largest_logit:.6g}; "
        "fixed when the memory was built"
    )
    numerator = released.sigma * layout.real_unit * kernel.bound
    sums = noise_of_sums(numerator=numerator, denominator=numerator / layout.real_tau)
    said = planned(released)
    size = (
        f"{layout.head_count} head(s), {layout.columns} × {kernel.features:,} integers each, "
        f"{released.state.nbytes:,} bytes"
    )
    own = sum(array.nbytes for array in kernel.arrays().values())
    if own:
        size += f", and {own:,} of the kernel"
    if said is not None:
        size += f"; {said.of_more_features}"
    return [
        *protection(released),
        ("noise", noise),
        ("bounds", bounds),
        ("temperature", temperature),
        ("kernel", f"{kernel.describe()}; {kernel.error:.3g} {kernel.error_meaning}"),
        sums,
        matching_rows(rows_needed(layout, sigma=released.sigma)),
        *([] if said is None else [("prediction", said.verdict)]),
        *noise_warning([released]),
        ("size", size),
        ("entropy", released.source),
        ("made by", f"discreet {released.version}"),
    ]


def noise_warning(releases: Iterable[Released[Layout]]) -> list[tuple[str, str]]:
    """Return the line that says that answers are mostly noise, if they are predicted to be.

    No fact of a card: it depends on the noisy sums, and the length of a file does not.
    """
    text = mostly_noise(releases)
    return [] if text is None else [(MOSTLY_NOISE, text)]
