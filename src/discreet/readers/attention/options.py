"""What a caller of `build`, `build_many`, `Builder` or `plan` asks for: one list of options."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Required, TypedDict

from discreet import _validate
from discreet._typing import Array
from discreet.errors import InvalidInput
from discreet.features import registry
from discreet.features.base import NORMS
from discreet.features.kernel import Kernel
from discreet.features.public_rows import PublicRows
from discreet.provenance import Stated
from discreet.readers.attention.error_model import Goal
from discreet.sums.mechanism import PerLayer, SharedOptions, checked_points, numbers

KernelPerLayer = str | Kernel | Sequence[str | Kernel]


class CommonOptions(TypedDict, total=False):
    """The options by name, for type checkers; `Options` has their defaults and their meaning."""

    epsilon: Required[float]
    delta: Required[float]
    neighbours: str
    key_norm: PerLayer
    query_norm: PerLayer
    value_norm: PerLayer
    scale: PerLayer | None
    kernel: KernelPerLayer
    eps_s: float
    features: int | None
    goal: str
    public_rows: Array
    reference: Array
    tau: PerLayer | None
    group_rows: float


class BuildOptions(CommonOptions, total=False):
    """All options; what is `rows_hint` here is `rows` in `plan`."""

    rows_hint: int | None
    stated: Stated | Mapping[str, Any] | None


@dataclass(frozen=True, kw_only=True)
class Options(SharedOptions):
    """The options of a build, checked.

    Bounds, `scale`, `tau` and `kernel` may be sequences with one for each layer.

    Attributes:
        epsilon: above 0.
        delta: above 0; well below one over the number of people.
        neighbours: "add_remove" (the number of rows is private, too), or "replace".
        key_norm: public bound on ‖key‖₂. Choose it without looking at the data.
        query_norm: public bound on ‖query‖₂; longer queries are clipped.
        value_norm: public bound on ‖value‖₂.
        scale: logit = scale·⟨query, key⟩, fixed for ever; None for what `plan` recommends, which
            needs `rows_hint`.
        rows_hint: a public, rounded number of rows. Never computed from the data under
            "add_remove"; under "replace" the number of rows is public, and the default for arrays
            that come whole, without groups. With it as many random features are taken as the noise
            deserves.
        kernel: "auto", "minimax", "fourier", "taylor", "landmarks", or a kernel from
            `discreet.kernels`.
        eps_s: relative error of exp that "auto" asks of a polynomial.
        features: the most features that may be taken; None for 4,096 of a polynomial, 16,384
            random ones and 512 landmarks.
        goal: what answers are for: "rank" (votes, classes) or "average" (the numbers themselves).
            The recommended scale follows from it.
        public_rows: rows that look like the private keys, and that anybody may see, shape (n, d);
            for several layers also a list with one such array for each. Random features are read
            more exactly near them (`reference`); "auto" makes landmarks of them where these do
            better still. They become part of the release.
        reference: points near which random features are read more exactly, shape (n, d), or a list
            with one such array for each layer: public rows, or example queries like those that will
            be asked. None for `public_rows`, and beside them points that are spread evenly. They
            become part of the release; `discreet.load` and `Memory.with_reference` take others.
        tau: weight of the denominator; None for value_norm/(4·d_v^¼).
        group_rows: a record's influence is scaled down to that of so many rows.
        stated: where the release comes from, in your words and public: a mapping with some
            of "data", "builder", "purpose", "contact" and "date", or a `discreet.Stated`. In
            the file and on the card, marked as stated by the builder.
        leaks: names of what was taken from the private rows, which the guarantee does not cover.
            `discreet.sklearn` gives them; they are on the receipt, the card and in the file.
    """

    query_norm: PerLayer = 1.0
    scale: PerLayer | None = None
    kernel: KernelPerLayer = registry.AUTO
    eps_s: float = 0.05
    features: int | None = None
    goal: str = Goal.RANK
    reference: Array = field(default=None, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        checked: dict[str, Any] = {
            "query_norm": numbers("query_norm", self.query_norm, NORMS),
            "eps_s": _validate.real("eps_s", self.eps_s, above=0, below=1),
            "goal": Goal.parse(self.goal),
            "reference": checked_points("reference", self.reference),
        }
        if self.scale is not None:
            checked["scale"] = numbers("scale", self.scale, {"above": 0})
        if self.features is not None:
            checked["features"] = _validate.whole(
                "features", self.features, at_least=2, at_most=2**22
            )
        if isinstance(self.kernel, (list, tuple)):
            checked["kernel"] = tuple(self.kernel)
        for kernel in checked.get("kernel", (self.kernel,)):
            if not isinstance(kernel, str):
                registry.KERNELS.check_registered(kernel)
            elif kernel != registry.AUTO:
                registry.KERNELS.kind_named(kernel)
        self._keep(checked)

    def reference_of(self, layer: int, layers: int, *, dim: int) -> PublicRows | None:
        """Return the points that one of so many layers is read near: its own, or public rows.

        Args:
            layer: which, from 0 on.
            layers: how many there are.
            dim: width of its keys.

        Raises:
            InvalidInput: there are not as many as layers, or points are not as wide as keys.
        """
        own = self._points_of("reference", layer, layers, dim=dim)
        return self.public_rows_of(layer, layers, dim=dim) if own is None else own

    def kernel_of(self, layer: int, layers: int) -> str | Kernel:
        """Return the kernel that one of so many layers has: the same for all, or its own.

        Args:
            layer: which, from 0 on.
            layers: how many there are.

        Raises:
            InvalidInput: there are not as many kernels as layers.
        """
        if isinstance(self.kernel, (str, Kernel)):
            return self.kernel
        if len(self.kernel) != layers:
            raise InvalidInput("Expected kernel to be one, or one for each layer.")
        return self.kernel[layer]
