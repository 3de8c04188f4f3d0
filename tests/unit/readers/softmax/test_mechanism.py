"""What public numbers lead to; and all rounds together: a plain loop, one guarantee, interrupts."""

import math

import numpy as np
import pytest
from data import unit_rows
from maps import maps, public_rows
from rounds import calibration, first_round, later_round, resolved

import discreet
from discreet import InvalidInput
from discreet.accounting import Gaussian, Receipt, gaussian_sigma
from discreet.features.fourier import UnitFourier
from discreet.features.landmarks import UnitLandmarks
from discreet.features.linear import UnitLinear
from discreet.noise import RoundedGaussian
from discreet.privacy import Neighbours
from discreet.readers.rounds.descent import noise_of_round
from discreet.readers.rounds.layout import Weights
from discreet.readers.softmax import mechanism
from discreet.readers.softmax.mechanism import SoftmaxOptions
from discreet.sums.settings import Unit
from discreet.testing import Seeded, Silent

DIM, ROUNDS, CLIP, MOMENTS, JUDGING = 4, 16, 0.2, 0.03, 0.03
SPEND = {"epsilon": 2.0, "delta": 1e-6}


def rows_of(count, classes=3, seed=0):
    keys = unit_rows(count, DIM, seed=seed)
    scores = keys @ unit_rows(classes, DIM, seed=seed + 1).T
    return keys, np.argmax(
        scores + np.random.default_rng(seed).gumbel(size=scores.shape) / 9, axis=1
    )


def plain_loop(kernel, keys, labels, epsilon):
    """The same rounds in floating point, without noise; and how many directions it shortens."""
    sigma, classes = gaussian_sigma(epsilon=epsilon, delta=1e-6), 3
    features = kernel.key_features(keys).features / kernel.unit
    of_round = (1 - MOMENTS - JUDGING) / ROUNDS
    reach = 1.3 * max(256 / kernel.features, 1) ** 0.125
    step = reach / (sigma * CLIP / math.sqrt(of_round) * math.sqrt(ROUNDS))
    values, vectors = np.linalg.eigh(features.T @ features)
    edge = sigma / math.sqrt(MOMENTS) * math.sqrt(2 * len(values))
    shorter = np.where(values > max(edge, 32 / step), 32 / step / values, 1.0)
    weights, mean = np.zeros((len(values), classes)), np.zeros((len(values), classes))
    for _ in range(ROUNDS):
        logits = features @ weights
        q = np.exp(logits - logits.max(axis=1, keepdims=True))
        q /= q.sum(axis=1, keepdims=True)
        q -= np.eye(classes)[labels]
        q *= np.minimum(1, CLIP / np.maximum(np.linalg.norm(q, axis=1, keepdims=True), 1e-9))
        gradient = vectors @ (shorter[:, None] * (vectors.T @ (features.T @ q)))
        mean = (mean + gradient) / 2
        weights -= step * mean
    return weights * sure(features @ weights, labels, sigma), np.count_nonzero(shorter < 1)


def sure(logits, labels, sigma):
    """The factor with which a classifier is as sure as it is right, pulled towards one."""
    powers = np.arange(-4, 4) / 2
    noise = 3 * sigma / math.sqrt(JUDGING)
    right = np.count_nonzero(np.argmax(logits, axis=1) == labels)
    gaps = []
    for power in powers:
        weights = np.exp(2**power * (logits - logits.max(axis=1, keepdims=True)))
        gaps.append(right - np.sum(1 / weights.sum(axis=1)) - 2 * noise * power)
    return 2 ** np.interp(0, gaps[::-1], powers[::-1])


@pytest.mark.parametrize(
    ("kind", "count", "epsilon", "preconditioned"),
    [
        ("linear", 200, 2.0, 0),
        ("waves", 500, 2.0, 0),
        ("linear", 20_000, 2.0, 5),
        ("linear, nearly constant", 60_000, 0.01, 1),  # features are cut before they are squared
    ],
)
def test_without_noise_it_is_a_plain_loop(kind, count, epsilon, preconditioned):
    keys, labels = rows_of(count)
    kernel = maps(DIM)[kind]
    options = {"classes": range(3), "epsilon": epsilon, "delta": 1e-6, "features": kernel}
    made = discreet.softmax_regression(keys, labels, entropy=Silent(), **options)
    truth, found = plain_loop(kernel, keys, labels, epsilon)
    assert found == preconditioned
    # What all classes have in common says nothing; cutting residuals towards zero leaves some.
    weights, truth = (each - each.mean(axis=1)[:, None] for each in (made.coefficients, truth))
    np.testing.assert_allclose(weights, truth, atol=2e-3 * np.abs(truth).max())
    whole = resolved(DIM, SoftmaxOptions(**options), unit=Unit.ROW)
    [first] = first_round(whole).layouts
    assert (first.coarseness > 0) is (epsilon < 1)


CASES = [
    {"epsilon": 1.0, "features": "linear"},
    {"epsilon": 8.0, "features": "waves"},
    {"epsilon": 0.5, "features": "lines_and_waves"},
    {"epsilon": 0.004, "features": "rays"},  # features are cut before they are squared
    {"epsilon": 1.0, "features": "near_landmarks", "public_rows": public_rows(DIM)},
]


class Drawn:
    """Remembers the noise that is drawn."""

    def __init__(self, monkeypatch):
        self.laws = []
        sample = RoundedGaussian.sample

        def watched(law, size, *, entropy=None):
            self.laws.append((law.sigma, size))
            return sample(law, size, entropy=entropy)

        monkeypatch.setattr(RoundedGaussian, "sample", watched)


@pytest.mark.parametrize("group_rows", [None, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["features"])
def test_the_receipt_is_the_composition_of_all_noise_that_was_drawn(
    monkeypatch, case, neighbours, group_rows
):
    keys, labels = rows_of(40)
    unit = Unit.ROW if group_rows is None else Unit.RECORD
    options = {"classes": range(3), "delta": 1e-6, "neighbours": str(neighbours), **case}
    if group_rows is not None:
        options["group_rows"] = group_rows
    options["rows_hint"] = 40
    whole = resolved(DIM, SoftmaxOptions(**options), unit=unit)
    drawn = Drawn(monkeypatch)
    groups = None if group_rows is None else np.arange(40) // 4
    made = discreet.softmax_regression(keys, labels, groups=groups, entropy=Silent(), **options)
    count = made.features.features
    first, later = first_round(whole), later_round(whole, Weights.of(made.coefficients))
    rounds = [first] + [later] * (ROUNDS - 1)

    sums = [sigma for sigma, shape in drawn.laws if shape == (1, 3, count)]
    [diagonal] = [sigma for sigma, shape in drawn.laws if shape == (1, count)]
    [upper] = [sigma for sigma, shape in drawn.laws if len(shape) == 2 and shape[1] != count]
    [calibration_sigma] = [sigma for sigma, shape in drawn.laws if shape == (1, 8 + 3 + 1, 2)]
    assert len(drawn.laws) == ROUNDS + 3
    assert drawn.laws[-1] == (calibration_sigma, (1, 8 + 3 + 1, 2))
    assert sums == [this.laws(this.layouts[0])[0].sigma for this in rounds]
    assert [diagonal, upper] == [law.sigma for law in first.laws(first.layouts[0])[1:]]
    assert diagonal == pytest.approx(upper * math.sqrt(2), rel=1e-12)

    # Each round with all of its parts, and the last release, is one Gaussian of its sensitivity.
    last = calibration(whole)
    assert calibration_sigma == last.laws(last.layouts[0])[0].sigma
    ratios = [
        this.sensitivity(this.layouts[0]) / sigma
        for this, sigma in zip([*rounds, last], [*sums, calibration_sigma], strict=True)
    ]
    squared = math.fsum(ratio**2 for ratio in ratios)
    claimed = made.released.mechanism.spread
    assert claimed == 1 / made.released.mechanism.sigma
    assert squared == pytest.approx(claimed**2, rel=1e-12)

    # T sums, one matrix of second moments and the last release are T + 2 Gaussians. Two parts of
    # replaced rows are never at their worst together: then this is more than what was drawn for.
    [layout] = first.layouts
    times = (1 if neighbours is Neighbours.ADD_REMOVE else 2) * (group_rows or 1.0)
    apart = [times * layout.outer_bound / sigma for sigma in sums]
    apart.append(times * (65536 >> layout.coarseness) ** 2 / diagonal)
    apart.append(ratios[-1])
    total = math.sqrt(math.fsum(ratio**2 for ratio in apart))
    if neighbours is Neighbours.ADD_REMOVE or unit is Unit.RECORD:
        assert total == pytest.approx(claimed, rel=1e-9)
    else:
        assert total >= claimed

    receipts = [
        Receipt.issue(
            mechanisms=[(Gaussian(sigma=1 / ratio, sensitivity=1.0, neighbours=neighbours), 1)],
            neighbours=neighbours,
            unit=str(unit),
            scope="a round",
            entropy=Silent(),
        )
        for ratio in ratios
    ]
    together = discreet.combine(receipts, delta=1e-6).epsilon
    assert together == pytest.approx(made.receipt.guarantee(delta=1e-6).epsilon, rel=1e-9)
    assert together <= case["epsilon"] * (1 + 1e-12)
    assert together >= case["epsilon"] * (1 - 1e-6)
    assert made.guarantee.epsilon == case["epsilon"]
    assert made.guarantee.delta == 1e-6
    assert made.receipt.unit == str(unit)


def test_two_classifiers_cost_more_than_one_and_a_memory_adds_up_with_them():
    keys, labels = rows_of(100)
    options = {"classes": range(3), "features": "linear", **SPEND}
    one, two = (
        discreet.softmax_regression(keys, labels, entropy=Seeded(seed), **options)
        for seed in (1, 2)
    )
    assert discreet.combine([one, one]).epsilon == pytest.approx(2.0, rel=1e-6)
    assert 2.5 < discreet.combine([one, two]).epsilon < 4.0
    memory = discreet.build(keys, np.eye(3)[labels], **SPEND, scale=1.0, entropy=Seeded(3))
    assert 2.5 < discreet.combine([one, memory]).epsilon < 4.0


class Stopping:
    """Chunks that somebody interrupts in a given pass, counted from the first noise on."""

    def __init__(self, stop_at, error):
        self.keys, self.labels = rows_of(60)
        self.entropy = Watched(4)
        self.stop_at, self.error, self.passes = stop_at, error, 0

    def __call__(self):
        self.passes += self.entropy.begun
        yield self.keys[:30], self.labels[:30]
        if self.passes == self.stop_at:
            raise self.error
        yield self.keys[30:], self.labels[30:]


class Watched(Seeded):
    begun = False

    def words(self, count):
        self.begun = True
        return super().words(count)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError("gone")])
@pytest.mark.parametrize("stop_at", [1, 7, 15, 16])
def test_an_interrupt_in_a_later_round_says_that_the_budget_is_spent(stop_at, error):
    chunks = Stopping(stop_at, error)
    with pytest.raises(type(error)) as caught:
        discreet.softmax_regression(
            chunks,
            classes=range(3),
            features="linear",
            memory_limit=0,
            entropy=chunks.entropy,
            **SPEND,
        )
    [note] = caught.value.__notes__
    del error.__notes__
    assert f"noise had been drawn in {stop_at} of 17 passes" in note
    assert "Nothing was released" in note
    assert "as spent" in note


def test_an_interrupt_after_the_last_noise_says_so_too(monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(mechanism, "whole", stop)
    keys, labels = rows_of(60)
    with pytest.raises(KeyboardInterrupt) as caught:
        discreet.softmax_regression(keys, labels, classes=range(3), entropy=Seeded(0), **SPEND)
    assert "drawn in 17 of 17 passes" in caught.value.__notes__[0]


@pytest.mark.parametrize("limit", [0, 1e9])
def test_an_interrupt_before_any_noise_costs_nothing(limit):
    chunks = Stopping(0, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt) as caught:
        discreet.softmax_regression(
            chunks,
            classes=range(3),
            features="linear",
            memory_limit=limit,
            entropy=chunks.entropy,
            **SPEND,
        )
    assert not chunks.entropy.begun
    assert not hasattr(caught.value, "__notes__")


def test_what_is_wrong_with_later_rows_is_said_with_the_note():
    keys, labels = rows_of(60)
    chunks = Stopping(99, KeyboardInterrupt())

    def opened():
        bad = keys * np.nan if chunks.entropy.begun else keys
        return iter([(bad, labels)])

    with pytest.raises(InvalidInput, match="NaN") as caught:
        discreet.softmax_regression(
            opened,
            classes=range(3),
            features="linear",
            memory_limit=0,
            entropy=chunks.entropy,
            **SPEND,
        )
    assert "as spent" in caught.value.__notes__[0]


def test_noise_that_cannot_be_drawn_in_a_later_round_is_refused_before_the_first():
    for epsilon in np.geomspace(1.1e-4, 1.5e-4, 12):
        try:
            made = SoftmaxOptions(
                classes=range(3),
                epsilon=epsilon,
                delta=1e-6,
                neighbours="replace",
                features="linear",
            )
            whole = resolved(DIM, made, unit=Unit.ROW)
        except InvalidInput:
            continue
        later_round(whole, Weights.of(np.zeros((DIM + 1, 3))))


@pytest.mark.parametrize("unit", Unit)
def test_noise_that_cannot_be_drawn_is_refused_before_the_first_round(unit):
    for epsilon in np.geomspace(5e-5, 2e-4, 12):
        try:
            made = SoftmaxOptions(classes=range(3), epsilon=epsilon, delta=1e-6, features="linear")
            whole = resolved(DIM, made, unit=unit)
        except InvalidInput as error:
            assert "epsilon" in str(error)  # noqa: PT017
            continue
        later_round(whole, Weights.of(np.zeros((DIM + 1, 3))))


def test_progress_shows_which_round_it_is_and_no_number_of_rows(capsys):
    keys, labels = rows_of(4_321)
    discreet.softmax_regression(
        keys, labels, classes=range(3), features="linear", entropy=Silent(), progress=True, **SPEND
    )
    out, shown = capsys.readouterr()
    assert out == ""
    assert "pass 17 of 17" in shown
    assert "100%" in shown
    assert "4321" not in shown.replace(",", "")
    discreet.softmax_regression(
        keys, labels, classes=range(3), features="linear", entropy=Silent(), **SPEND
    )
    assert capsys.readouterr() == ("", "")


def settings_for(dim=4, classes=3, unit=Unit.ROW, **options):
    chosen = SoftmaxOptions(classes=range(classes), **{"epsilon": 1.0, "delta": 1e-6} | options)
    return resolved(dim, chosen, unit=unit)


def features_for(dim=4, **options):
    [layout] = settings_for(dim, **options).layouts
    return layout.kernel


def test_features_follow_from_public_numbers():
    assert features_for(key_norm=2.0) == UnitFourier(
        4, frequencies=512, scale=3 / 4, key_norm=2.0, query_norm=2.0
    )
    few, many = (features_for(rows_hint=rows).frequencies for rows in (1_000, 10**6))
    assert few < many
    wide = features_for(384, key_norm=2.0)
    assert wide == UnitLinear(384, key_norm=2.0, stretch=8.0)
    assert features_for(384, rows_hint=10**6) == UnitLinear(384, stretch=8.0)
    for dim in (4, 384):
        public = unit_rows(300, dim, seed=9)
        assert isinstance(features_for(dim, public_rows=public), UnitLandmarks)
    for kind in ("linear", "rays", "waves", "lines_and_waves"):
        assert features_for(features=kind, rows_hint=1_000).kind == kind


def test_two_classes_are_cut_less_than_several():
    assert [settings_for(classes=count).layouts[0].clip for count in (2, 3, 100)] == [0.4, 0.2, 0.2]


def test_more_features_than_can_be_squared_are_refused():
    assert features_for(8_191, features="linear").features == 8_192
    with pytest.raises(InvalidInput, match=r"features.*8,193.*8,192"):
        settings_for(8_192, features="linear")


def test_more_classes_than_add_up_exactly_are_refused():
    assert settings_for(classes=2**14, features="linear").layouts[0].columns == 2**14
    with pytest.raises(InvalidInput, match="classes"):
        settings_for(classes=2**14 + 1, features="linear")


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("unit", Unit)
def test_each_release_has_its_share_and_the_settings_of_the_whole(unit, neighbours):
    group_rows = 2.5 if unit is Unit.RECORD else 1.0
    whole = settings_for(
        unit=unit, neighbours=neighbours, features="linear", group_rows=group_rows, rows_hint=77
    )
    [layout] = whole.layouts
    later = later_round(whole, Weights.of(np.ones((5, 3))))
    parts = {"of_first": first_round(whole), "of_round": later, "judging": calibration(whole)}
    for name, part in parts.items():
        assert part.share == getattr(layout, name)
        assert (part.privacy, part.unit) == (whole.privacy, unit)
        assert (part.group_rows, part.rows_hint) == (group_rows, 77)
        [own] = part.layouts
        spent = part.sensitivity(own) / part.sigma(own)
        assert spent**2 * whole.multiplier**2 == pytest.approx(part.share, rel=1e-12)
    of_round = noise_of_round(whole, whole.layouts[0])
    assert of_round == pytest.approx(later.sigma(later.layouts[0]), rel=1e-12)
    first = parts["of_first"]
    assert of_round >= first.laws(first.layouts[0])[0].sigma * (1 - 1e-9)
