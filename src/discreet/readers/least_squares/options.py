"""What a caller of `least_squares` asks for: one list of options."""

from dataclasses import dataclass
from typing import Required, TypedDict

from discreet import _validate
from discreet._typing import Array
from discreet.features import registry
from discreet.features.base import SymmetricMap
from discreet.sums.moments import check_share
from discreet.sums.options import SharedOptions


class PlanOptions(TypedDict, total=False):
    """The options by name, for type checkers; `LeastSquaresOptions` has defaults and meaning."""

    epsilon: Required[float]
    delta: Required[float]
    neighbours: str
    key_norm: float
    value_norm: float
    features: str | SymmetricMap
    public_rows: Array
    share: float | None
    ridge: float
    centred: bool
    tau: float | None
    group_rows: float


class RegressionOptions(PlanOptions, total=False):
    """All options; what is `rows_hint` here is `rows` in `plan`."""

    rows_hint: int | None


@dataclass(frozen=True, kw_only=True)
class LeastSquaresOptions(SharedOptions):
    """The options of a regression, checked.

    Attributes:
        epsilon: above 0.
        delta: above 0; well below one over the number of people.
        neighbours: "add_remove" (the number of rows is private, too), or "replace".
        key_norm: public bound on ‖key‖₂, and on queries. Choose it without looking at the data.
        value_norm: public bound on ‖value‖₂.
        features: "auto", "linear" (straight lines), "unit_linear" (straight lines between classes),
            "unit_fourier" (curves of any shape: random Fourier features), "linear_and_fourier"
            (both), "unit_landmarks" (like public rows), or a map from `discreet.features`. Files
            and older code call the last four "rays", "waves", "lines_and_waves" and
            "near_landmarks", which still work.
        rows_hint: a public, rounded number of rows. Never computed from the data under
            "add_remove"; under "replace" the number of rows is public, and the default for arrays
            that come whole, without groups. "auto" needs it.
        public_rows: rows that look like the private keys, and that anybody may see, shape (n, d).
            They become part of the release.
        share: of the squared budget, for the second moments; None for a third. 0 leaves the whole
            budget to the sums, for few rows. Then the second moments are those of `public_rows`,
            which must be like the private ones; or, without any, those of features that point
            everywhere alike: predictions are sums over rows that are near, as in a memory.
        ridge: how much is shrunk: λ in units of σ·√features, σ the noise of second moments. 0.5
            for numbers; 0.3 is better for classes.
        centred: whether predictions are shrunk towards the mean of all values (known from the
            noisy sums), and not to zero. For numbers, whose mean may be anything. For classes, less
            1/C, zero is better: the mean has noise, too.
        tau: weight of the column that counts rows; None for value_norm/2 if centred, which needs
            it, else value_norm/(4·d_v^¼).
        group_rows: a record's influence is scaled down to that of so many rows.
        leaks: names of what was taken from the private rows, which the guarantee does not cover.
            `discreet.sklearn` gives them.
    """

    features: str | SymmetricMap = registry.AUTO
    share: float | None = None
    ridge: float = 0.5
    centred: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("key_norm", "value_norm", "tau"):
            if isinstance(getattr(self, name), tuple):
                _validate.reject(name, "...", "one number: a regression has one layer")
        if isinstance(self.public_rows, tuple):
            _validate.reject("public_rows", "...", "one array: a regression has one layer")
        if not isinstance(self.features, str):
            registry.FEATURES.check_registered(self.features)
        elif self.features != registry.AUTO:
            registry.FEATURES.kind_named(self.features)
        if not isinstance(self.centred, bool):
            _validate.reject("centred", "...", "True or False")
        if self.share is not None:
            self._keep({"share": check_share(self.share)})
        self._keep({"ridge": _validate.real("ridge", self.ridge, at_least=1e-3, at_most=1e3)})
