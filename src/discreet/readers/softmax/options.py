"""What a caller of `softmax_regression` asks for: one list of options."""

from dataclasses import dataclass, field
from typing import Any, Required, TypedDict

from discreet import _validate
from discreet._typing import Array
from discreet.features import registry
from discreet.features.base import SymmetricMap
from discreet.readers.softmax.rows import Labels, check_classes
from discreet.sums.options import KeyOptions

# Bytes of features that are kept between rounds.
MEMORY_LIMIT = 2e9


class PlanOptions(TypedDict, total=False):
    """The options by name, for type checkers; `SoftmaxOptions` has defaults and meaning."""

    epsilon: Required[float]
    delta: Required[float]
    neighbours: str
    key_norm: float
    features: str | SymmetricMap
    public_rows: Array
    group_rows: float
    memory_limit: float


@dataclass(frozen=True, kw_only=True)
class SoftmaxOptions(KeyOptions):
    """The options of a classifier, checked.

    Attributes:
        classes: all labels that there may be; public, numbers or texts. A label beyond them is
            refused.
        epsilon: above 0.
        delta: above 0; well below one over the number of people.
        neighbours: "add_remove" (the number of rows is private, too), or "replace".
        key_norm: public bound on ‖key‖₂, and on queries. Choose it without looking at the data.
        features: "auto", "linear" (straight lines), "unit_linear" (straight lines between classes),
            "unit_fourier" (curves of any shape: random Fourier features), "linear_and_fourier"
            (both), "unit_landmarks" (like public rows), or a map from `discreet.features`. Files
            and older code call the last four "rays", "waves", "lines_and_waves" and
            "near_landmarks", which still work.
        rows_hint: a public, rounded number of rows. Never computed from the data under
            "add_remove"; under "replace" the number of rows is public, and the default for arrays
            that come whole, without groups. "auto" takes as many random Fourier features as so many
            rows deserve.
        public_rows: rows that look like the private keys, and that anybody may see, shape (n, d).
            They become part of the release.
        group_rows: a record's influence is scaled down to that of so many rows.
        leaks: names of what was taken from the private rows, which the guarantee does not cover.
            `discreet.sklearn` gives them.
        memory_limit: bytes of features that may be kept between rounds; beyond it they are
            computed again in each round. The release is the same, to the bit.
    """

    classes: Any = field(repr=False)
    features: str | SymmetricMap = registry.AUTO
    memory_limit: float = MEMORY_LIMIT

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.key_norm, tuple):
            _validate.reject("key_norm", "...", "one number: a classifier has one layer")
        if isinstance(self.public_rows, tuple):
            _validate.reject("public_rows", "...", "one array: a classifier has one layer")
        if not isinstance(self.features, str):
            registry.FEATURES.check_registered(self.features)
        elif self.features != registry.AUTO:
            registry.FEATURES.kind_named(self.features)
        limit = _validate.real("memory_limit", self.memory_limit, at_least=0)
        # Read once: in order, and as a file gives them back.
        classes = tuple(Labels.of(self.classes, distinct=True).classes.tolist())
        check_classes(classes)
        self._keep({"memory_limit": limit, "classes": classes})
