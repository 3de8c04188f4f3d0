import itertools
import math
import re

import numpy as np
import pytest
from data import unit_rows

import discreet
from discreet import InvalidInput
from discreet.accounting import gaussian_epsilon, gaussian_sigma
from discreet.kernels import FEATURE_RADIUS, Fourier, Minimax, Taylor
from discreet.readers.attention.mechanism import ATTENTION
from discreet.readers.attention.options import Options
from discreet.sums.settings import Shape
from discreet.testing import Seeded, Silent

KEYS, VALUES = unit_rows(60, 4), unit_rows(60, 3, seed=1)
SPEND = {"epsilon": 1.0, "delta": 1e-6}


def build(**options):
    return discreet.build(KEYS, VALUES, **{**SPEND, "scale": 1.0} | options)


@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("kernel", ["fourier", "minimax"])
def test_the_noise_is_recomputed_by_hand(heads, neighbours, kernel):
    """From ε and δ to lattice units, without the library's own sensitivities."""
    keys, values = unit_rows(heads, 10, 4), unit_rows(heads, 10, 3)
    memory = discreet.build(
        keys, values, **SPEND, scale=1.0, neighbours=neighbours, kernel=kernel, tau=0.5
    )
    layout = memory.released.layout
    value, tau = layout.value_radius, layout.tau_units
    assert value * layout.lattice.step == pytest.approx(1.0, rel=1e-3)
    assert tau * layout.lattice.step == pytest.approx(0.5, rel=1e-3)
    one = FEATURE_RADIUS * math.hypot(value, tau)
    if neighbours == "replace":
        one = 2 * FEATURE_RADIUS * value if kernel == "minimax" else 2 * one
    sigma = gaussian_sigma(**SPEND) * math.sqrt(heads) * one
    assert memory.released.sigma == pytest.approx(sigma, rel=2e-3)
    assert memory.released.sigma >= sigma * (1 - 1e-12)


def test_records_get_noise_for_their_rows():
    groups = np.arange(60) // 6
    plain, grouped = build(), build(groups=groups, group_rows=3.0)
    ratio = grouped.released.sigma / grouped.released.layout.row_bound
    assert ratio == pytest.approx(3 * plain.released.sigma / plain.released.layout.row_bound)
    both = build(groups=groups, group_rows=3.0, neighbours="replace")
    assert both.released.sigma / both.released.layout.row_bound == pytest.approx(2 * ratio)
    assert grouped.guarantee.unit == "record"
    assert both.released.rows is None


def test_the_guarantee_is_what_was_asked_for():
    guarantee = build().guarantee
    assert (guarantee.epsilon, guarantee.delta) == (1.0, 1e-6)
    assert guarantee.neighbours == "add_remove"
    assert guarantee.unit == "row"
    assert "queries" in guarantee.scope


def test_layers_share_one_guarantee():
    other = unit_rows(2, 60, 7), unit_rows(2, 60, 2)
    first, second = discreet.build_many(
        [(KEYS, VALUES), other], **SPEND, scale=[1.0, 2.0], value_norm=[1.0, 3.0]
    )
    alone = build()
    mine, theirs = (each.released for each in (first, second))
    sensitivity = mine.layout.row_bound
    assert mine.sigma / sensitivity == pytest.approx(
        math.sqrt(3) * alone.released.sigma / alone.released.layout.row_bound, rel=1e-9
    )
    assert theirs.sigma / theirs.layout.row_bound == pytest.approx(mine.sigma / sensitivity)
    assert mine.release == theirs.release
    assert (first.scale, second.scale) == (1.0, 2.0)
    assert theirs.layout.value_norm == 3.0
    assert "all 2 memories" in str(first.guarantee)
    joint = discreet.combine([first, second])
    assert joint.epsilon == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        ("kernel", "minimax", "fourier"),
        ("kernel", "auto", Fourier(4, frequencies=8, scale=1.0, key_norm=1.0, query_norm=1.0)),
        ("key_norm", 1.0, 2.0),
        ("query_norm", 1.0, 2.0),
        ("value_norm", 1.0, 50.0),
        ("scale", 1.0, 2.0),
        ("tau", 0.3, 0.6),
        ("public_rows", unit_rows(40, 4, seed=2), unit_rows(80, 4, seed=3)),
    ],
)
def test_layers_that_are_alike_have_each_what_was_asked_for_it(name, one, other):
    def layers(given):
        options = {"rows_hint": 10**5, "scale": 1.0, **SPEND, name: given}
        built = discreet.build_many([(KEYS, VALUES)] * 2, **options)
        return [each.released.layout.parameters() for each in built]

    alike, others = layers([one, one])[0], layers([other, other])[0]
    assert alike != others
    assert layers([one, other]) == [alike, others]
    assert layers([other, one]) == [others, alike]


def test_combined_releases_compose_exactly():
    memories = [build() for _ in range(3)] + [build(epsilon=0.5, delta=1e-7)]
    total = discreet.combine(memories)
    squared = 3 * gaussian_sigma(**SPEND) ** -2 + gaussian_sigma(epsilon=0.5, delta=1e-7) ** -2
    expected = gaussian_epsilon(sigma=squared**-0.5, delta=1e-6)
    assert total.epsilon == pytest.approx(expected, rel=1e-9)
    assert total.delta == 1e-6
    assert discreet.combine(memories, delta=1e-3).epsilon < total.epsilon
    assert discreet.combine(memories[:1]).epsilon == pytest.approx(1.0, rel=1e-9)
    assert discreet.combine([memories[0]] * 5).epsilon == pytest.approx(1.0, rel=1e-9)


def test_what_does_not_belong_together_is_not_combined():
    with pytest.raises(InvalidInput, match="neighbouring"):
        discreet.combine([build(), build(neighbours="replace")])
    with pytest.raises(InvalidInput, match="unit"):
        discreet.combine([build(), build(groups=np.arange(60))])
    with pytest.raises(InvalidInput, match="releases"):
        discreet.combine([])
    with pytest.raises(InvalidInput, match="releases"):
        discreet.combine([build(), "memory"])
    assert "NOT PRIVATE" in discreet.combine([build(), build(entropy=Silent())]).scope


def test_an_iterator_of_chunks_gives_the_same_state():
    whole = build(entropy=Silent())
    for cuts in ([30], [1, 59], [0]):
        chunks = discreet.build(
            iter(np.split(KEYS, cuts)),
            iter(np.split(VALUES, cuts)),
            **SPEND,
            scale=1.0,
            entropy=Silent(),
        )
        assert np.array_equal(chunks.released.state, whole.released.state)


def test_chunks_of_whole_records_give_the_same_state():
    groups = np.arange(60) // 6
    whole = build(entropy=Silent(), groups=groups)
    split = [np.split(each, [30]) for each in (KEYS, VALUES, groups)]
    options = {**SPEND, "scale": 1.0, "entropy": Silent()}
    chunks = discreet.build(iter(split[0]), iter(split[1]), groups=split[2], **options)
    assert np.array_equal(chunks.released.state, whole.released.state)
    with pytest.raises(InvalidInput, match="record"):
        discreet.build(
            iter([KEYS[:30], KEYS[30:]]),
            iter([VALUES[:30], VALUES[30:]]),
            groups=[np.zeros(30, int), np.zeros(30, int)],
            **options,
        )


@pytest.mark.parametrize(
    ("keys", "values", "message"),
    [
        (iter([KEYS]), iter([VALUES, VALUES]), "as many chunks"),
        (iter([]), iter([]), "at least one chunk"),
        (iter([KEYS]), VALUES, "iterators"),
        (iter([KEYS, KEYS[:, :2]]), iter([VALUES, VALUES]), "first chunk"),
    ],
)
def test_bad_iterators_are_refused(keys, values, message):
    with pytest.raises(InvalidInput, match=message):
        discreet.build(keys, values, **SPEND, scale=1.0)


def test_what_an_iterator_raises_is_raised():
    def broken():
        yield KEYS
        raise ValueError("a disk of its own")

    with pytest.raises(ValueError, match="a disk of its own"):
        discreet.build(broken(), iter([VALUES, VALUES]), **SPEND, scale=1.0)


def test_layers_of_different_lengths_are_refused():
    with pytest.raises(InvalidInput, match="same number of rows"):
        discreet.build_many([(KEYS, VALUES), (KEYS[1:], VALUES[1:])], **SPEND, scale=1.0)


def test_auto_takes_a_polynomial_where_one_is_small_enough():
    assert isinstance(build(scale=1.0).kernel, Minimax)
    assert build(scale=1.0).kernel.error <= 0.05
    wide = unit_rows(5, 64)
    sharp = discreet.build(wide, wide, **SPEND, scale=2.0)
    assert isinstance(sharp.kernel, Fourier)
    assert sharp.kernel.frequencies == 1024
    flat = discreet.build(wide, wide, **SPEND, scale=1.0)
    assert isinstance(flat.kernel, Minimax)
    assert flat.kernel.features == 2145


def test_a_ready_made_kernel_brings_its_own_bounds():
    kernel = Fourier(4, frequencies=8, scale=2.0, key_norm=3.0, query_norm=0.5)
    memory = build(kernel=kernel, scale=None)
    assert memory.kernel == kernel
    assert build(kernel=kernel, scale=2.0, key_norm=3.0).scale == 2.0
    for wrong in (
        {"scale": 1.0},
        {"scale": None, "key_norm": 2.0},
        {"scale": None, "query_norm": 2.0},
    ):
        with pytest.raises(InvalidInput, match="kernel's own"):
            build(kernel=kernel, **wrong)
    with pytest.raises(InvalidInput, match=r"kernel\.dim"):
        discreet.build(KEYS[:, :2], VALUES, **SPEND, kernel=kernel)


def test_a_temperature_needs_a_public_figure():
    with pytest.raises(InvalidInput, match="rows_hint"):
        build(scale=None)
    assert build(scale=None, rows_hint=100).scale > 0
    assert build(scale=None, neighbours="replace").scale > 0


def test_settings_do_not_depend_on_the_number_of_rows():
    for count in (0, 1, 59):
        fewer = discreet.build(
            KEYS[:count], VALUES[:count], **SPEND, rows_hint=100, entropy=Silent()
        )
        full = build(scale=None, rows_hint=100, entropy=Silent())
        assert fewer.released.layout == full.released.layout
        assert fewer.released.sigma == full.released.sigma
        assert str(fewer.card) == str(full.card)


def test_the_same_seed_gives_the_same_state_and_system_entropy_does_not():
    assert np.array_equal(
        build(entropy=Seeded(5)).released.state, build(entropy=Seeded(5)).released.state
    )
    assert not np.array_equal(build().released.state, build().released.state)


def test_the_state_is_read_only():
    with pytest.raises(ValueError, match="read-only"):
        build().released.state[0] = 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epsilon", 0.0),
        ("epsilon", -1),
        ("epsilon", math.nan),
        ("epsilon", 1e9),
        ("delta", 0),
        ("delta", 1.0),
        ("neighbours", "bounded"),
        ("key_norm", 0),
        ("value_norm", -1.0),
        ("query_norm", math.inf),
        ("scale", 0),
        ("scale", 1000.0),
        ("kernel", "rbf"),
        ("eps_s", 0),
        ("tau", 0),
        ("tau", 100.0),
        ("group_rows", 0),
        ("group_rows", 1e-7),
        ("group_rows", 2.0),
        ("rows_hint", 0),
        ("rows_hint", 2.5),
        ("entropy", 3),
    ],
)
def test_bad_options_are_named(name, value):
    with pytest.raises(InvalidInput, match=name):
        build(**{name: value})


def test_an_epsilon_too_small_for_any_lattice_is_refused():
    with pytest.raises(InvalidInput, match="epsilon"):
        build(epsilon=1e-9, delta=1e-12)


def test_more_rows_mean_a_coarser_lattice():
    def resolution(rows_hint):
        options = Options(**SPEND, scale=1.0, rows_hint=rows_hint)
        layout = ATTENTION.resolve([Shape(heads=(), key_dim=4, value_dim=3)], options).layouts[0]
        assert rows_hint is None or layout.most_rows >= rows_hint
        return layout.resolution

    assert resolution(None) == resolution(1000) > resolution(2**31) > resolution(2**34)


def test_progress_is_shown(capsys):
    build(progress=True)
    shown = capsys.readouterr()
    assert "rows" in shown.err
    assert shown.out == ""  # results can be piped


def test_a_hint_from_numpy_is_a_whole_number_on_the_card_and_in_the_file(tmp_path):
    memory = build(rows_hint=np.int64(1000))
    memory.save(tmp_path / "memory.safetensors")
    assert discreet.load(tmp_path / "memory.safetensors").card.to_dict()["rows_hint"] == 1000
    assert "1,000" in str(build(rows_hint=1e3).card)


def test_arrays_passed_by_mistake_are_not_shown():
    for call in (
        lambda: build(entropy=np.array([123.456])),
        lambda: build(epsilon=np.array([123.456])),
        lambda: discreet.Memory(np.array([123.456])),
    ):
        with pytest.raises(InvalidInput) as caught:
            call()
        assert "123" not in str(caught.value)


def test_every_head_and_layer_has_noise_of_its_own():
    """Noise that two heads shared would cancel in their difference."""
    keys, values = np.zeros((3, 20, 4)), np.zeros((3, 20, 3))
    layers = [(keys, values), (keys, values)]
    for source in (Seeded(1), None):
        memories = discreet.build_many(layers, **SPEND, scale=1.0, entropy=source)
        noise = [
            (memory.released.state[head] - memory.released.state[head].mean()).ravel()
            for memory in memories
            for head in range(3)
        ]
        correlations = np.corrcoef(noise)[np.triu_indices(6, 1)]
        # The rows of one layer are the same in every head: only the noise differs.
        differences = [(a - b).std() for a, b in itertools.pairwise(noise)]
        # √2·σ from some sixty numbers, and nothing at all if two shared their noise.
        assert min(differences) > 0.5 * memories[0].released.sigma
        assert np.abs(correlations).max() < 0.9


def test_a_kernel_for_other_keys_is_refused():
    box = Taylor.on_box(4, upper=0.5, eps_s=0.05)
    with pytest.raises(InvalidInput, match="nonnegative"):
        build(kernel=box, scale=None, key_norm=box.key_norm, query_norm=box.query_norm)


def test_the_receipt_is_made_before_any_noise_is_drawn(monkeypatch):
    made = []
    issue = discreet.accounting.Receipt.issue

    class Watched(Seeded):
        """Notes how many receipts there were when noise was asked for."""

        def realise(self, sampler, count):
            made.append("noise")
            return super().realise(sampler, count)

    def noted(**facts):
        made.append("receipt")
        return issue(**facts)

    monkeypatch.setattr(discreet.accounting.Receipt, "issue", noted)
    first, second = discreet.build_many(
        [(KEYS, VALUES), (KEYS, VALUES)], **SPEND, scale=1.0, entropy=Watched(1)
    )
    assert made == ["receipt", "noise", "noise"]
    assert first.receipt == second.receipt
    assert not first.receipt.private
    assert first.receipt.guarantee(delta=1e-6).epsilon == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.70004, 1.00001, 3.99999])
def test_no_text_rounds_epsilon_down(epsilon):
    memory = build(epsilon=epsilon)
    for text in (repr(memory), repr(memory.released), str(memory.guarantee), str(memory.card)):
        shown = [float(each) for each in re.findall(r"ε = ([\d.]+)", text)]
        assert shown
        assert min(shown) >= epsilon
