"""Answers near public points: more exact where rows lie there, and harmless where they do not."""

import math

import numpy as np
import pytest

import discreet
from discreet.errors import InvalidInput
from discreet.kernels import Fourier
from discreet.readers.attention.comparison import attention
from discreet.testing import Seeded, Silent

SCALE = 4.0


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def even(rng: np.random.Generator, count: int, dim: int = 16) -> np.ndarray:
    return unit(rng.normal(size=(count, dim)))


def clusters(rng: np.random.Generator, count: int, dim: int = 16) -> np.ndarray:
    centres = even(rng, 12, dim)
    return unit(centres[rng.integers(12, size=count)] + 0.7 * even(rng, count, dim))


def built(keys: np.ndarray, seed: int = 1, epsilon: float = 4.0) -> discreet.Memory:
    bounds = {"scale": SCALE, "key_norm": 1.0, "query_norm": 1.0}
    kernel = Fourier(keys.shape[1], frequencies=256, seed=seed, **bounds)
    values = np.sign(keys[:, :4]) / 2
    return discreet.build(
        keys, values, epsilon=epsilon, delta=1e-6, kernel=kernel, entropy=Seeded(seed)
    )


def rms(numbers: np.ndarray) -> float:
    return math.sqrt(np.mean(np.square(numbers)))


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return clusters(np.random.default_rng(5), 20_700)


@pytest.fixture(scope="module")
def memory(rows: np.ndarray) -> discreet.Memory:
    return built(rows[700:])


def exact(queries: np.ndarray, keys: np.ndarray) -> np.ndarray:
    return attention(queries, keys, np.sign(keys[:, :4]) / 2, scale=SCALE)


def test_rows_near_the_points_are_read_several_times_more_exactly(
    rows: np.ndarray, memory: discreet.Memory
) -> None:
    queries, public, keys = rows[:200], rows[200:700], rows[700:]
    truth = exact(queries, keys)
    plain = rms(memory.plain.attend(queries) - truth)
    assert rms(memory.with_reference(public).attend(queries) - truth) < plain / 3
    assert rms(memory.attend(queries) - truth) < plain


def test_even_rows_need_no_points_of_anybody() -> None:
    rows = even(np.random.default_rng(3), 20_200)
    memory, truth = built(rows[200:]), exact(rows[:200], rows[200:])
    plain = rms(memory.plain.attend(rows[:200]) - truth)
    assert rms(memory.attend(rows[:200]) - truth) < plain / 2


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
@pytest.mark.parametrize("count", [2_000, 20_000])
def test_points_elsewhere_cost_nothing(rows: np.ndarray, count: int, epsilon: float) -> None:
    queries, keys = rows[:200], rows[700 : 700 + count]
    elsewhere = clusters(np.random.default_rng(99), 500)
    truth = exact(queries, keys)
    errors = []
    for seed in range(3):
        memory = built(keys, seed, epsilon)
        errors.append(
            [
                rms(each.attend(queries) - truth)
                for each in (memory.plain, memory.with_reference(elsewhere))
            ]
        )
    plain, wrong = np.sqrt(np.mean(np.square(errors), axis=0))
    assert wrong <= 1.05 * plain


@pytest.mark.slow
@pytest.mark.parametrize("points", ["none", "alike", "elsewhere"])
def test_intervals_hold_as_often_as_they_should(rows: np.ndarray, points: str) -> None:
    queries, keys = rows[:200], rows[700:]
    truth, shares = exact(queries, keys), []
    reference = {"alike": rows[200:700], "elsewhere": clusters(np.random.default_rng(99), 500)}
    for seed in range(4):
        memory = built(keys, seed).with_reference(reference.get(points))
        answers, stderr = memory.attend(queries, stderr=True)
        shares.append(np.mean(np.abs(answers - truth) <= 1.96 * stderr))
    assert 0.91 <= np.mean(shares) <= 0.99


@pytest.mark.slow
def test_the_noise_is_what_builds_differ_by(rows: np.ndarray) -> None:
    """With one draw of frequencies and the same readout; so rows that all builds choose alike."""
    queries, keys = rows[:50], rows[700:]
    reference = rows[200:700]
    bounds = {"scale": SCALE, "key_norm": 1.0, "query_norm": 1.0}
    kernel = Fourier(16, frequencies=256, **bounds)
    answers, noise = [], 0
    for seed in range(40):
        values = np.sign(keys[:, :4]) / 2
        memory = discreet.build(
            keys, values, epsilon=4.0, delta=1e-6, kernel=kernel, entropy=Seeded(seed)
        ).with_reference(reference)
        answers.append(memory.attend(queries))
        noise = memory.noise_stderr(queries)
    observed = np.sqrt(np.mean(np.var(answers, axis=0, ddof=1)))
    assert observed == pytest.approx(np.sqrt(np.mean(noise**2)), rel=0.25)


def test_a_file_keeps_the_points(rows: np.ndarray, memory: discreet.Memory, tmp_path) -> None:
    near = memory.with_reference(rows[200:700])
    near.save(tmp_path / "memory.safetensors")
    with pytest.warns(discreet.NotPrivateWarning):
        loaded = discreet.load(tmp_path / "memory.safetensors")
    assert np.array_equal(loaded.attend(rows[:9]), near.attend(rows[:9]))
    assert np.array_equal(loaded.plain.attend(rows[:9]), memory.plain.attend(rows[:9]))
    assert loaded.guarantee == memory.guarantee


def test_torch_answers_alike(rows: np.ndarray, memory: discreet.Memory) -> None:
    torch = pytest.importorskip("torch")
    near = memory.with_reference(rows[200:700])
    asked = torch.from_numpy(rows[:30])
    for ours, theirs in zip(
        near.attend(rows[:30], stderr=True), near.attend(asked, stderr=True), strict=True
    ):
        assert np.allclose(ours, theirs.numpy(), atol=1e-9)
    compiled = torch.func.vmap(lambda q: near.reader.attend(q, near._placed.like(asked)))(
        asked[:, None]
    )
    assert np.allclose(compiled[:, 0].numpy(), near.attend(rows[:30]), atol=1e-9)


def test_heads_have_a_readout_each(rows: np.ndarray) -> None:
    keys = np.stack([rows[700:5_000], even(np.random.default_rng(1), 4_300)])
    both = built_heads(keys).with_reference(rows[200:700])
    assert both.reader.arrays["kept"].shape == (2, 1, 1)
    truth = np.stack([exact(rows[:50], each) for each in keys])
    asked = np.stack([rows[:50]] * 2)
    answers, stderr = both.attend(asked, stderr=True)
    assert np.mean(np.abs(answers - truth) <= 1.96 * stderr) > 0.9
    distances, errors = both.differences(asked)
    assert distances.shape == errors.shape == (2, 50, 4)


def built_heads(keys: np.ndarray) -> discreet.Memory:
    bounds = {"scale": SCALE, "key_norm": 1.0, "query_norm": 1.0}
    kernel = Fourier(16, frequencies=256, **bounds)
    values = np.sign(keys[..., :4]) / 2
    return discreet.build(keys, values, epsilon=8.0, delta=1e-6, kernel=kernel, entropy=Seeded(2))


def test_points_of_another_width_are_refused(memory: discreet.Memory) -> None:
    with pytest.raises(InvalidInput, match="reference"):
        memory.with_reference(np.ones((10, 3)))
    with pytest.raises(InvalidInput, match="reference"):
        memory.with_reference(np.full((10, 16), np.nan))


def test_points_are_given_at_a_build_at_load_or_afterwards(
    rows: np.ndarray, memory: discreet.Memory, tmp_path
) -> None:
    queries, public, keys = rows[:9], rows[200:700], rows[700:]
    values = np.sign(keys[:, :4]) / 2
    options = {"epsilon": 4.0, "delta": 1e-6, "kernel": memory.kernel}
    wanted = memory.with_reference(public).attend(queries)
    for name in ("reference", "public_rows"):
        points = {name: public}
        made = discreet.build(keys, values, entropy=Seeded(1), **points, **options)
        assert np.array_equal(made.attend(queries), wanted)
        assert np.array_equal(made.released.state, memory.released.state)
    memory.save(tmp_path / "memory.safetensors")
    with pytest.warns(discreet.NotPrivateWarning):
        loaded = discreet.load(tmp_path / "memory.safetensors", reference=public)
    assert np.array_equal(loaded.attend(queries), wanted)
    assert np.array_equal(loaded.with_reference().attend(queries), memory.attend(queries))
    least = discreet.least_squares(keys, values, rows_hint=20_000, epsilon=1.0, delta=1e-6)
    least.save(tmp_path / "other.safetensors")
    with pytest.raises(InvalidInput, match="reference"):
        discreet.load(tmp_path / "other.safetensors", reference=public)


@pytest.mark.slow
def test_a_bundle_is_read_near_points_of_each(rows: np.ndarray, tmp_path) -> None:
    layers = [(rows[700:1_700], np.sign(rows[700:1_700, :2]) / 2)] * 2
    options = {"epsilon": 4.0, "delta": 1e-6, "scale": SCALE, "kernel": "fourier"}
    both = discreet.build_many(layers, entropy=Seeded(1), reference=rows[200:700], **options)
    wanted = [each.attend(rows[:9]) for each in both]
    several = discreet.build_many(layers, entropy=Seeded(1), **options)
    given = several.with_reference([rows[200:700]] * 2)
    assert all(map(np.array_equal, (each.attend(rows[:9]) for each in given), wanted))
    several.save(tmp_path / "memories.safetensors")
    with pytest.warns(discreet.NotPrivateWarning):
        loaded = discreet.load(tmp_path / "memories.safetensors", reference=rows[200:700])
    assert all(map(np.array_equal, (each.attend(rows[:9]) for each in loaded), wanted))
    with pytest.raises(InvalidInput, match="one for each"):
        several.with_reference([rows[200:700]] * 3)


def test_points_that_explain_nothing_are_not_used(rows: np.ndarray) -> None:
    """Beside even rows, other points do not take the place of the usual ones."""
    keys = even(np.random.default_rng(3), 20_000)
    memory, elsewhere = built(keys), clusters(np.random.default_rng(99), 500)
    asked = rows[:50]
    assert np.array_equal(memory.with_reference(elsewhere).attend(asked), memory.attend(asked))


def test_no_rows_and_no_noise_break_nothing() -> None:
    keys = np.zeros((3, 4))
    for rows in (keys[:0], keys):
        memory = discreet.build(
            rows,
            rows[:, :2],
            epsilon=1.0,
            delta=1e-6,
            scale=SCALE,
            kernel="fourier",
            entropy=Silent(),
        )
        for numbers in memory.attend(np.eye(4), stderr=True):
            assert np.all(np.isfinite(numbers))


def test_where_orthogonal_frequencies_do_better_than_points_these_are_left_alone() -> None:
    """In many dimensions, at a soft scale: there a shorter remainder is not a smaller error."""
    rng, dim = np.random.default_rng(4), 384
    rows = clusters(rng, 6_200, dim)
    queries, keys = rows[:200], rows[200:]
    values = np.sign(keys[:, :4]) / 2
    truth = attention(queries, keys, values, scale=0.5)
    errors = []
    for seed in range(3):
        bounds = {"scale": 0.5, "key_norm": 1.0, "query_norm": 1.0}
        kernel = Fourier(dim, frequencies=dim, seed=seed, **bounds)
        memory = discreet.build(
            keys, values, epsilon=20.0, delta=1e-6, kernel=kernel, entropy=Seeded(seed)
        )
        errors.append([rms(each.attend(queries) - truth) for each in (memory.plain, memory)])
    plain, near = np.sqrt(np.mean(np.square(errors), axis=0))
    assert near <= 1.05 * plain
