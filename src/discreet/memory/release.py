"""Noise, once. All that leaves a build goes through here, and only what comes out is kept."""

from dataclasses import dataclass

import numpy as np

from discreet import _validate, accounting, privacy
from discreet._version import __version__
from discreet.memory.joint import Unit
from discreet.memory.layout import Layout
from discreet.memory.partial import Partial
from discreet.noise import Entropy, RoundedGaussian, SystemEntropy
from discreet.noise.entropy import Integers, is_private
from discreet.privacy import Guarantee, Neighbours

NOT_PRIVATE = privacy.NOT_PRIVATE


@dataclass(frozen=True, eq=False, repr=False)
class Released:
    """A noisy state with what is public about it: all that a memory needs to answer.

    Attributes:
        state: the noisy sums, in lattice units, shape (heads, d_v + 1, r); read-only.
        layout: kernel, bounds and lattice.
        guarantee: of the whole release.
        mechanism: the whole release, as the accountant sees it.
        sigma: standard deviation of this state's noise before rounding, in lattice units.
        source: where the noise came from.
        private: False if that was a test source.
        group_rows: the influence of a record, in rows; 1 if the unit is a row.
        rows: the number of rows where it is public (neighbours "replace", unit row), else None.
        rows_hint: the public figure that the builder gave, if any.
        release: a random name that all states of one release share.
        version: of the library that made it.
    """

    state: Integers
    layout: Layout
    guarantee: Guarantee
    mechanism: accounting.Gaussian
    sigma: float
    source: str
    private: bool
    group_rows: float
    rows: int | None
    rows_hint: int | None
    release: str
    version: str = __version__

    def __post_init__(self) -> None:
        """Check what a file may get wrong; the state itself is checked where it is read."""
        _validate.instance("layout", self.layout, Layout)
        for name in ("source", "release", "version"):
            _validate.instance(name, getattr(self, name), str)
        _validate.instance("private", self.private, bool)
        _validate.real("sigma", RoundedGaussian(sigma=self.sigma).sigma, above=0)
        _validate.real("group_rows", self.group_rows, above=0)
        for name in ("rows", "rows_hint"):
            if getattr(self, name) is not None:
                _validate.whole(name, getattr(self, name), at_least=0)

    def __repr__(self) -> str:
        mark = "" if self.private else f" {NOT_PRIVATE}"
        return f"<Released{mark}, {self.state.nbytes:,} bytes, {self.guarantee.epsilon:.4g}>"


def release(
    partial: Partial, *, rows_hint: int | None = None, entropy: Entropy | None = None
) -> list[Released]:
    """Add noise to exact sums, and return what may be given away: one state for each layer.

    (ε, δ) as in the partial's settings, for all states together. Each call spends it again.
    """
    _validate.instance("partial", partial, Partial)
    source = SystemEntropy() if entropy is None else entropy
    _validate.instance("entropy", source, Entropy)
    joint = partial.joint
    by_row = joint.unit is Unit.ROW
    public_rows = by_row and joint.privacy.neighbours is Neighbours.REPLACE
    mark = "" if is_private(source) else f"{NOT_PRIVATE} (noise from {source!r}): "
    name = SystemEntropy().words(2).tobytes().hex()
    released = []
    for layout, sums in zip(joint.layouts, partial.sums, strict=True):
        law = joint.law(layout)
        noisy = sums + law.sample(sums.shape, entropy=source)
        noisy.flags.writeable = False
        released.append(
            Released(
                state=np.ascontiguousarray(noisy),
                layout=layout,
                guarantee=joint.guarantee(mark=mark),
                mechanism=joint.mechanism,
                sigma=law.sigma,
                source=repr(source),
                private=is_private(source),
                group_rows=joint.group_rows,
                rows=partial.rows if public_rows else None,
                rows_hint=rows_hint,
                release=name,
            )
        )
    return released
