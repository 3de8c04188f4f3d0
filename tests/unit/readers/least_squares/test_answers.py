"""`discreet.least_squares`: from rows to predictions, and all the ways in and out."""

import math
import pickle

import numpy as np
import pytest
import torch
from data import unit_rows
from maps import public_rows

import discreet
from discreet import BudgetExceeded, CorruptRelease, InvalidInput, NotPrivateWarning
from discreet.features.fourier import UnitFourier
from discreet.features.linear import Linear
from discreet.privacy import NOT_PRIVATE
from discreet.readers.least_squares.answers import LeastSquares
from discreet.readers.least_squares.mechanism import LEAST_SQUARES, LeastSquaresOptions
from discreet.sums.door import release
from discreet.sums.partial import Partial, new_key
from discreet.sums.settings import Shape, Unit
from discreet.sums.source import Table
from discreet.testing import Seeded, Silent

SPEND = {"epsilon": 2.0, "delta": 1e-6}
ROWS, DIM = 400, 4
KEYS = unit_rows(ROWS, DIM) * np.linspace(0.2, 1, ROWS)[:, None]
COEFFICIENTS = unit_rows(DIM, 2, seed=5).T
VALUES = (KEYS @ COEFFICIENTS.T) / 2
QUERIES = unit_rows(30, DIM, seed=3) * 0.7


def fit(keys=KEYS, values=VALUES, **options):
    return discreet.least_squares(
        keys,
        values,
        **SPEND | {"features": "linear", "entropy": Seeded(0), "centred": False} | options,
    )


def mapped(made, rows):
    return made.features.query_features(rows[None], made.features.query_arrays())[0]


@pytest.mark.parametrize("kind", ["linear", "rays", "waves", "lines_and_waves"])
def test_without_noise_it_is_ridge_regression(kind):
    made = fit(features=kind, entropy=Silent())
    features = mapped(made, KEYS)
    gram = features.T @ features + np.diag(made.solution.ridge[0])
    truth = mapped(made, QUERIES) @ np.linalg.solve(gram, features.T @ VALUES)
    np.testing.assert_allclose(made.predict(QUERIES), truth, atol=2e-3)
    assert made.solution.own == 1


@pytest.mark.parametrize("kind", ["linear", "rays", "waves"])
def test_centred_it_is_ridge_regression_of_what_differs_from_the_mean(kind):
    values = VALUES * 0.2 + [0.6, -0.3]
    made = fit(KEYS, values, features=kind, entropy=Silent(), centred=True)
    features = mapped(made, KEYS)
    total = features.sum(axis=0)
    squared = total @ total
    noise = made.features.features * (made.solution.sums_sigma / made.released.layout.real_tau) ** 2
    mean = total @ features.T @ values / max(squared - noise, squared / 2)
    np.testing.assert_allclose(made.solution.mean[0, 0], mean, atol=2e-3)
    gram = features.T @ features + np.diag(made.solution.ridge[0])
    weights = np.linalg.solve(gram, features.T @ (values - mean))
    truth = mapped(made, QUERIES) @ weights + mean
    np.testing.assert_allclose(made.predict(QUERIES), truth, atol=5e-3)


def test_a_mean_that_is_far_from_zero_is_no_burden_if_values_are_centred():
    keys = unit_rows(20_000, DIM, seed=9)
    values = keys @ COEFFICIENTS.T / 20 + 0.6
    for kind in ("linear", "rays", "lines_and_waves"):
        errors = []
        for centred in (True, False):
            made = fit(keys, values, features=kind, centred=centred)
            errors.append(np.sqrt(np.mean((made.predict(keys[:300]) - values[:300]) ** 2)))
        assert errors[0] < 0.4 * values.std()
    assert errors[0] < 0.8 * errors[1]  # of the last, which has two ways to make a constant


def test_waves_are_quiet_where_values_differ_by_little():
    """Noise through features without rows would be larger than all that values differ by."""
    keys = unit_rows(20_000, DIM, seed=9)
    lines = 0
    for width in (1.0, 0.01):
        values = keys @ COEFFICIENTS.T * width / 2
        made = fit(keys, values, features="lines_and_waves", centred=True)
        first = made.features.block_sizes[0]
        ridge = made.solution.ridge[0]
        lines, waves = ridge[0], ridge[-1]
        np.testing.assert_allclose(ridge[:first], lines)
        usual = 0.5 * made.solution.moments_sigma[0] * math.sqrt(len(ridge) - first)
        assert waves == pytest.approx(usual, rel=1e-6) if width == 1 else waves > 10 * usual
        error = np.sqrt(np.mean((made.predict(keys[:300]) - values[:300]) ** 2))
        assert error < 0.6 * values.std()


def test_negative_eigenvalues_are_taken_for_zero():
    """The true second moments have none: what is negative is noise, and shrunk by λ alone."""
    made = fit(KEYS[:0], VALUES[:0], features="waves", rows_hint=100)
    solution = made.solution
    moments = made.released.layout.matrices(*made.released.others)[0] / made.features.unit**2
    values = np.linalg.eigvalsh(moments)
    assert values.min() < -solution.ridge[0, 0]
    wanted = 1 / (np.maximum(values, 0) + solution.ridge[0, 0])
    np.testing.assert_allclose(np.linalg.eigvalsh(solution.inverse[0]), np.sort(wanted), rtol=1e-6)


def test_lines_and_waves_are_shrunk_apart():
    made = fit(features="lines_and_waves", entropy=Silent())
    lines, waves = made.features.block_sizes
    ridge = made.solution.ridge[0]
    unit = 0.5 * made.solution.moments_sigma[0]
    np.testing.assert_allclose(ridge[:lines], unit * math.sqrt(lines))
    np.testing.assert_allclose(ridge[lines:], unit * math.sqrt(waves))


@pytest.mark.parametrize("rows", [400, 20_000])
def test_with_public_rows_that_are_alike_second_moments_are_mixed(rows):
    """By the rule n/(n + 4,600·σ): the more noise there is for a row, the more they count."""
    keys = np.concatenate([KEYS] * (rows // ROWS))
    values = np.concatenate([VALUES] * (rows // ROWS))
    made = fit(keys, values, features="near_landmarks", public_rows=KEYS, entropy=Silent())
    solution = made.solution
    noise = solution.moments_sigma / solution.own
    np.testing.assert_allclose(solution.own, rows / (rows + 4_600 * noise), rtol=1e-2)
    features, public = mapped(made, keys), mapped(made, KEYS)
    mixed = solution.own * features.T @ features
    mixed = mixed + (1 - solution.own) * rows * public.T @ public / ROWS
    gram = mixed + np.diag(solution.ridge[0])
    truth = mapped(made, QUERIES) @ np.linalg.solve(gram, features.T @ values)
    np.testing.assert_allclose(made.predict(QUERIES), truth, atol=5e-3)


@pytest.mark.slow
def test_public_rows_that_are_not_alike_do_no_harm():
    keys, values = np.abs(unit_rows(20_000, DIM)), np.zeros((20_000, 2))
    for entropy in (Silent(), Seeded(3)):
        like, unlike = (
            fit(
                keys,
                values,
                features="waves",
                public_rows=public,
                rows_hint=20_000,
                entropy=entropy,
            )
            for public in (np.abs(unit_rows(500, DIM, seed=9)), -np.abs(unit_rows(500, DIM)))
        )
        assert like.solution.own < 0.7
        assert unlike.solution.own == 1


def test_without_noise_and_with_a_public_moment_it_is_the_public_solution():
    made = fit(features="linear", share=0.0, public_rows=KEYS, entropy=Silent(), value_norm=1.0)
    assert made.released.others == ()
    features = mapped(made, KEYS)
    gram = features.T @ features + np.diag(made.solution.ridge[0])
    truth = mapped(made, QUERIES) @ np.linalg.solve(gram, features.T @ VALUES)
    np.testing.assert_allclose(made.predict(QUERIES), truth, atol=2e-3)
    assert made.solution.moments_sigma == 0
    assert "public rows" in str(made.card)


def test_without_second_moments_predictions_are_sums_over_near_rows():
    made = fit(features="waves", share=0.0, entropy=Silent(), rows_hint=400)
    weights = mapped(made, QUERIES) @ mapped(made, KEYS).T
    values, rows = made.sums(QUERIES)
    np.testing.assert_allclose(values, weights @ VALUES, atol=0.05)
    np.testing.assert_allclose(rows, weights.sum(axis=1), atol=0.5)
    ratio = made.predict(QUERIES) / values
    np.testing.assert_allclose(ratio, ratio[0, 0], rtol=1e-9)
    assert "point anywhere" in str(made.card)
    noise = fit(features="waves", share=0.0).predict(QUERIES) - made.predict(QUERIES)
    _, errors = fit(features="waves", share=0.0).predict(QUERIES, stderr=True)
    assert np.std(noise) == pytest.approx(np.mean(errors), rel=0.5)


def test_the_mean_of_values_is_known_from_the_sums():
    values = np.eye(3)[np.random.default_rng(0).choice(3, p=[0.7, 0.2, 0.1], size=20_000)]
    made = fit(unit_rows(20_000, DIM), values, features="rays")
    shares, errors = made.shares
    np.testing.assert_allclose(shares, [0.7, 0.2, 0.1], atol=0.02)
    assert np.all((errors > 1e-5) & (errors < 0.01))
    both = fit(np.stack([KEYS, KEYS]), np.stack([VALUES, VALUES]))
    assert both.shares[0].shape == both.shares[1].shape == (2, 2)


def test_with_many_rows_predictions_are_right():
    keys = unit_rows(20_000, DIM, seed=9)
    values = keys @ COEFFICIENTS.T / 2
    truth = QUERIES @ COEFFICIENTS.T / 2
    made = fit(keys, values)
    predicted, errors = made.predict(QUERIES, stderr=True)
    assert predicted.shape == errors.shape == (30, 2)
    assert np.sqrt(np.mean((predicted - truth) ** 2)) < 0.1 * truth.std()
    assert np.all(errors > 0)
    assert np.mean(errors) < 0.1 * truth.std()


def test_heads_are_regressions_of_their_own_under_one_guarantee():
    keys, values = np.stack([KEYS, -KEYS, KEYS]), np.stack([VALUES, VALUES, -VALUES])
    quiet = fit(keys, values, entropy=Silent())
    asked = np.stack([QUERIES] * 3)
    out = quiet.predict(asked)
    assert out.shape == (3, 30, 2)
    assert quiet.coefficients.shape == (3, DIM + 1, 2)
    np.testing.assert_allclose(out[2], -out[0], atol=1e-9)
    alone = fit(entropy=Silent())
    ratio = quiet.released.sigma / alone.released.sigma
    assert ratio == pytest.approx(math.sqrt(3), rel=1e-6)
    assert quiet.released.mechanism.epsilon_at(1e-6) == pytest.approx(2.0, rel=1e-3)


def test_streams_builder_and_sealed_partials_add_up_the_same():
    whole = fit().released
    chunks = [slice(0, 100), slice(100, 101), slice(101, 400)]
    streamed = fit(iter([KEYS[c] for c in chunks]), iter([VALUES[c] for c in chunks])).released
    builder = discreet.LeastSquaresBuilder(**SPEND, features="linear", centred=False)
    for chunk in chunks:
        builder.add(KEYS[chunk], VALUES[chunk])
    built = builder.release(Seeded(0)).released
    shape = Shape(heads=(), key_dim=DIM, value_dim=2)
    settings = LEAST_SQUARES.resolve(
        [shape], LeastSquaresOptions(**SPEND, features="linear", centred=False)
    )
    key = new_key()
    sealed = [
        Partial.of([Table(KEYS[c], VALUES[c])], settings, shard=str(i)).seal(key)
        for i, c in enumerate(chunks)
    ]
    merged = Partial.empty(settings)
    for each in sealed:
        merged = merged.merge(Partial.unseal(each, key, settings))
    [travelled] = release(merged, entropy=Seeded(0))
    for other in (streamed, built, travelled):
        assert np.array_equal(other.state, whole.state)
        for mine, theirs in zip(whole.others, other.others, strict=True):
            assert np.array_equal(mine, theirs)
    with pytest.raises(BudgetExceeded):
        builder.release()
    with pytest.raises(TypeError):
        pickle.dumps(builder)
    assert repr(builder) == "<LeastSquaresBuilder: exact sums, private>"


def test_records_get_noise_for_their_rows_and_replacement_for_two():
    groups = np.arange(ROWS) // 4
    plain, grouped, both = (
        made.released.sigma / made.released.layout.row_bound
        for made in (
            fit(),
            fit(groups=groups, group_rows=3.0),
            fit(groups=groups, group_rows=3.0, neighbours="replace"),
        )
    )
    assert grouped == pytest.approx(3 * plain, rel=1e-9)
    assert both == pytest.approx(6 * plain, rel=1e-9)
    assert fit(groups=groups).guarantee.unit == "record"
    assert fit(neighbours="replace").released.rows == ROWS
    assert fit(neighbours="replace", features="auto").released.rows_hint == ROWS


def test_receipts_add_up_with_those_of_memories():
    memory = discreet.build(KEYS, VALUES, **SPEND, scale=1.0, entropy=Seeded(1))
    total = discreet.combine([memory, fit()])
    assert 2.0 < total.epsilon < 4.0


@pytest.mark.parametrize("options", [{}, {"share": 0.0, "public_rows": public_rows(DIM)}])
@pytest.mark.parametrize("kind", ["linear", "waves", "near_landmarks"])
def test_a_file_predicts_the_same(tmp_path, kind, options):
    made = fit(features=kind, **{"public_rows": public_rows(DIM), **options})
    path = tmp_path / "fit.safetensors"
    made.save(path)
    with pytest.warns(NotPrivateWarning):
        again = discreet.load(path)
    assert isinstance(again, LeastSquares)
    assert again.card == made.card
    assert again.receipt == made.receipt
    assert np.array_equal(again.predict(QUERIES), made.predict(QUERIES))
    with pytest.raises(CorruptRelease, match="discreet-memory"):
        discreet.Memory.load(path)
    damaged = bytearray(path.read_bytes())
    damaged[-9] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(CorruptRelease):
        discreet.load(path)


def test_load_opens_memories_too(tmp_path):
    memory = discreet.build(KEYS, VALUES, **SPEND, scale=1.0)
    memory.save(tmp_path / "memory.safetensors")
    assert isinstance(discreet.load(tmp_path / "memory.safetensors"), discreet.Memory)
    with pytest.raises(CorruptRelease, match="discreet-least-squares"):
        discreet.LeastSquares.load(tmp_path / "memory.safetensors")


def test_files_and_cards_do_not_depend_on_the_rows(tmp_path):
    sizes, cards = set(), set()
    for rows in (0, 1, 400):
        made = fit(KEYS[:rows], VALUES[:rows], rows_hint=100)
        made.save(tmp_path / "fit.safetensors")
        sizes.add((tmp_path / "fit.safetensors").stat().st_size)
        cards.add(str(made.card))
        assert np.all(np.isfinite(made.predict(QUERIES)))
    assert len(sizes) == len(cards) == 1


def test_the_card_says_what_is_protected_and_how():
    made = fit(rows_hint=400)
    text, facts = str(made.card), made.card.to_dict()
    assert NOT_PRIVATE in text
    assert NOT_PRIVATE in repr(made)
    assert "any one row (added or removed)" in text
    assert "33% of the squared budget" in text
    assert facts["moments_sigma"] == pytest.approx(made.solution.moments_sigma[0], rel=1e-6)
    assert facts["noise_sigma"] == pytest.approx(made.solution.sums_sigma, rel=1e-6)
    assert facts["rows_hint"] == 400
    assert facts["rows"] is None
    assert "the regression" in made.guarantee.scope


def test_torch_asks_and_differentiates():
    made = fit(features="waves")
    queries = torch.tensor(QUERIES, dtype=torch.float32, requires_grad=True)
    out = made.predict(queries)
    assert out.dtype == torch.float32
    np.testing.assert_allclose(out.detach().numpy(), made.predict(QUERIES), atol=1e-4)
    out.sum().backward()
    assert torch.all(torch.isfinite(queries.grad))
    _, errors = made.predict(queries.detach(), stderr=True)
    np.testing.assert_allclose(errors.numpy(), made.predict(QUERIES, stderr=True)[1], rtol=1e-3)


def test_long_keys_and_queries_are_clipped_alike():
    long = fit(KEYS * 10, VALUES, entropy=Silent())
    clipped = KEYS * 10 / np.maximum(np.linalg.norm(KEYS * 10, axis=1, keepdims=True), 1)
    short = fit(clipped, VALUES, entropy=Silent())
    np.testing.assert_allclose(long.predict(QUERIES), short.predict(QUERIES), atol=1e-4)
    unit = QUERIES / np.linalg.norm(QUERIES, axis=1, keepdims=True)
    np.testing.assert_allclose(long.predict(unit * 1e200), long.predict(unit), atol=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": "auto"}, "rows_hint"),
        ({"features": "cubic"}, "features"),
        ({"features": Linear(3)}, "features"),
        ({"features": Linear(DIM, key_norm=2.0)}, "features"),
        ({"features": "near_landmarks"}, "public_rows"),
        ({"share": 1.0}, "share"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": 1e-6}, "epsilon"),
        ({"key_norm": (1.0, 2.0)}, "key_norm"),
        ({"public_rows": [public_rows(DIM)] * 2}, "public_rows"),
        ({"public_rows": public_rows(3), "features": "near_landmarks"}, "public_rows"),
        ({"group_rows": 2.0}, "group_rows"),
        ({"entropy": 7}, "entropy"),
        ({"tau": 1e9}, "tau"),
    ],
)
def test_what_cannot_be_is_refused_with_its_name(options, message):
    with pytest.raises(InvalidInput, match=message):
        fit(**options)


def test_bad_queries_are_refused():
    made = fit()
    for queries in (np.zeros((2, 3)), np.full((2, DIM), np.nan), np.array(["a"] * DIM)):
        with pytest.raises(InvalidInput):
            made.predict(queries)


def test_ready_made_features_are_taken_as_they_are():
    features = UnitFourier(DIM, frequencies=30, scale=1.0, key_norm=1.0, query_norm=1.0)
    assert fit(features=features).features is features


def test_a_release_of_another_kind_is_refused():
    memory = discreet.build(KEYS, VALUES, **SPEND, scale=1.0)
    with pytest.raises(InvalidInput):
        LeastSquares(memory.released)
    with pytest.raises(InvalidInput):
        discreet.Memory(fit().released)


def test_settings_of_a_record_are_of_the_record():
    shape = Shape(heads=(), key_dim=DIM, value_dim=2)
    options = LeastSquaresOptions(**SPEND, features="linear")
    rows, records = (LEAST_SQUARES.resolve([shape], options, unit=unit) for unit in Unit)
    assert rows.digest != records.digest
    other = LeastSquaresOptions(**SPEND, features="linear", share=0.5)
    assert LEAST_SQUARES.resolve([shape], other).digest != rows.digest
    leaky = LeastSquaresOptions(**SPEND, features="linear", leaks=("bounds",))
    assert LEAST_SQUARES.resolve([shape], leaky).digest != rows.digest  # or a merge could lose them
