"""The list of kinds is closed."""

from dataclasses import dataclass

import pytest
from affine import Affine
from data import unit_rows

import discreet
from discreet import CorruptRelease, InvalidInput
from discreet.features import registry
from discreet.features.fourier import Fourier
from discreet.features.kernel import Wanted
from discreet.features.minimax import Minimax
from discreet.features.taylor import Taylor
from discreet.readers import registry as readers
from discreet.sums.source import Table
from discreet.testing import Seeded

BOUNDS = {"scale": 0.5, "key_norm": 2.0, "query_norm": 0.5}


@dataclass(frozen=True)
class Changed(Fourier):
    """Says that it is "fourier", and is not."""

    def _weights(self, integers):
        return super()._weights(integers) * 0.5


@pytest.mark.parametrize("unknown", [Affine(4, **BOUNDS), Changed(4, frequencies=8, **BOUNDS)])
def test_a_kind_that_no_file_brings_back_is_refused_before_anything_is_read(monkeypatch, unknown):
    def read(*_):
        raise AssertionError("read")

    monkeypatch.setattr(Table, "read", read)
    rows = unit_rows(30, 4)
    for ask in (
        lambda: discreet.build(rows, rows, epsilon=1, delta=1e-6, kernel=unknown),
        lambda: discreet.Builder(epsilon=1, delta=1e-6, kernel=unknown),
        lambda: discreet.plan(
            rows=9, key_dim=4, value_dim=4, epsilon=1, delta=1e-6, kernel=unknown
        ),
    ):
        with pytest.raises(InvalidInput, match="kernel"):
            ask()


def test_a_file_of_an_unknown_kind_is_refused():
    rows = unit_rows(30, 4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "KINDS", (*registry.KINDS, Affine))
        memory = discreet.build(
            rows, rows, epsilon=1, delta=1e-6, kernel=Affine(4, **BOUNDS), value_norm=2.0
        )
        data = readers.to_bytes(memory)
        readers.from_bytes(data)
    with pytest.raises(CorruptRelease):
        readers.from_bytes(data)


def test_names_are_unique_and_wrong_ones_are_told_the_right_ones():
    names = [kind.kind for kind in registry.KERNELS.kinds]
    assert sorted(names) == sorted(set(names)) == ["fourier", "landmarks", "minimax", "taylor"]
    with pytest.raises(InvalidInput, match=r"auto.*minimax.*fourier.*taylor"):
        registry.KERNELS.kind_named("rbf")
    names = [each for kind in registry.KINDS for each in (kind.kind, *kind.aliases)]
    assert len(names) == len(set(names))
    for other in (None, "", "rbf", "minimax"):  # and a kernel is no map for predictions
        with pytest.raises(
            InvalidInput, match=r"features.*auto.*linear.*unit_linear.*unit_fourier"
        ):
            registry.FEATURES.kind_named(other)


OTHER_NAMES = {
    "unit_linear": "rays",
    "unit_fourier": "waves",
    "linear_and_fourier": "lines_and_waves",
    "unit_landmarks": "near_landmarks",
}


@pytest.mark.parametrize(("name", "kind"), OTHER_NAMES.items())
def test_plain_names_are_taken_and_files_keep_the_kind(name, kind):
    """Files of earlier versions say `kind`, and those that are written now do, too."""
    rows = unit_rows(60, 3)
    options = {"epsilon": 1.0, "delta": 1e-6, "public_rows": rows, "entropy": Seeded(1)}
    plain, known = (
        discreet.least_squares(rows, rows, features=each, **options) for each in (name, kind)
    )
    assert plain.features.parameters()["kind"] == kind
    assert plain.features.parameters() == known.features.parameters()


def test_auto_asks_in_order():
    wanted = {"dim": 4, "eps_s": 0.05, "key_norm": 1.0, "query_norm": 1.0}
    flat, sharp = (Wanted(**wanted, scale=scale) for scale in (0.5, 50.0))
    assert isinstance(registry.choose("auto", flat), Minimax)
    assert isinstance(registry.choose("auto", sharp), Fourier)
    assert isinstance(registry.choose("taylor", flat), Taylor)
