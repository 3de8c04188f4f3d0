"""A page for every kind of file that was ever written."""

import math
import pathlib
import re
import warnings

import numpy as np
import pytest
from data import unit_rows
from hypothesis import given
from hypothesis import strategies as st
from markup import Reader
from scipy import stats

import discreet
from discreet.accounting import gaussian_sigma
from discreet.pages import as_html
from discreet.pages.release import Promise, _directions, by_epsilon, by_length, how_many
from discreet.pages.sheet import MEANINGS
from discreet.privacy import Guarantee
from discreet.readers.attention import Memories
from discreet.readers.attention.reader import WITHIN
from discreet.testing import Seeded

FILES = sorted((pathlib.Path(__file__).parents[2] / "golden" / "files").glob("*.safetensors"))


def opened(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", discreet.NotPrivateWarning)
        return discreet.load(path)


@pytest.fixture(scope="module")
def memory():
    keys = unit_rows(2_000, 4)
    values = np.sign(keys[:, :2]) / 2
    return discreet.build(keys, values, epsilon=1.0, delta=1e-6, scale=2.0)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_file_has_a_page_and_every_line_of_its_card_a_meaning(path):
    release = opened(path)
    text = as_html(release, name=path.name, pictures=False)
    reader = Reader(text)
    assert len(reader.all("h1")) == 1
    assert str(release.guarantee) in reader.text
    for claim in ("given to anybody", "without looking at the rows.", "before any row was read"):
        assert claim not in reader.text
    assert "stated by the builder" in reader.text
    for title, sentence in release.card.sentences:
        assert sentence in reader.text
        assert MEANINGS[title] in reader.text
    assert ("NOT PRIVATE: This file" in reader.text) == (not release.card.to_dict()["private"])
    assert reader.all("script") == []
    loading = [each["href"] for each in reader.all("link")] + reader.all("img")
    assert loading == ["data:,"]


def test_a_private_file_raises_no_alarm_and_says_what_it_knows(memory):
    text = Reader(as_html(memory, name="clinic.safetensors", pictures=True)).text
    assert "NOT PRIVATE" not in text
    assert "What clinic.safetensors promises" in text
    assert "right at most 548 times in 1,000" in text  # Φ(1/(2·4.2247)) = 0.5471
    assert "whether your row was in it" in text
    for each in (*by_length(memory), *by_epsilon(memory)):
        assert f"±{each.error:.2g}" in text


def test_a_file_whose_answers_are_mostly_noise_says_so_and_others_do_not(memory):
    assert "mostly noise" not in as_html(memory, name="clinic.safetensors", pictures=False)
    keys = unit_rows(500, 64)
    noisy = discreet.build(keys, keys[:, :2], epsilon=1.0, delta=1e-6, scale=4.0, entropy=Seeded(1))
    reader = Reader(as_html(noisy, name="clinic.safetensors", pictures=False))
    assert "Answers are predicted to be mostly noise" in reader.text.partition("The card")[0]
    several = Memories((noisy,), {}, {})
    assert "predicted to be mostly noise" in as_html(several, name="model", pictures=False)


@pytest.mark.filterwarnings("ignore::discreet.PrivacyLeakWarning")
def test_a_weak_promise_is_called_weak():
    rows = unit_rows(400, 3)
    for epsilon, said in (
        (1.0, "hidden by the noise"),
        (3.0, "blurred by the noise, and not hidden"),
        (30.0, "This promise is weak"),
    ):
        made = discreet.build(rows, rows, epsilon=epsilon, delta=1e-6, scale=1.0)
        text = Reader(as_html(made, name="a", pictures=False)).text
        others = {"hidden by the noise", "blurred by the noise", "This promise is weak"}
        assert [each in text for each in others] == [said.startswith(each) for each in others]


def test_a_chance_of_nothing_is_no_chance(memory):
    assert "δ = 1e-06 is a chance" in Reader(as_html(memory, name="a", pictures=False)).text
    corpus = discreet.Corpus.build(["a card"], encoder="static", topics=["card", "money"])
    assert corpus.guarantee.delta == 0
    text = Reader(as_html(corpus, name="a", pictures=False)).text
    assert "without exception" in text
    assert "is a chance" not in text


def test_a_replaced_record_is_spoken_of_as_one():
    rows, people = unit_rows(400, 3), np.arange(400) // 4
    made = discreet.build(
        rows,
        rows,
        epsilon=2.0,
        delta=1e-5,
        scale=1.0,
        groups=people,
        neighbours="replace",
        rows_hint=400,
    )
    text = Reader(as_html(made, name="a", pictures=False)).text
    assert "which of two records was yours" in text
    assert "If they are all of yours, the promise is about you as a whole." in text


def test_somebody_with_several_records_is_told_how_much_less_is_promised():
    """Passages are records by themselves: somebody who wrote three of them has three."""
    rows = unit_rows(400, 3)
    made = discreet.build(
        rows, rows, epsilon=1.0, delta=1e-6, scale=1.0, groups=np.arange(400) // 2
    )
    text = Reader(as_html(made, name="a", pictures=False)).text
    assert "however many" not in text
    mu = 1 / discreet.accounting.gaussian_sigma(epsilon=1.0, delta=1e-6)
    figures = [math.ceil(1000 * stats.norm.cdf(count * mu / 2)) for count in (1, 2, 3, 5, 10)]
    assert figures == [548, 594, 639, 723, 882]
    assert "1 548 2 594 3 639 5 723 10 882" in text


def test_somebody_who_has_the_file_is_promised_what_holds_for_all_of_it():
    """A guarantee for one column of answers says nothing of the others, which the file has, too."""
    rng = np.random.default_rng(0)
    options = {"upper": 1.0, "value_bound": 1.0, "epsilon": 1.0, "delta": 1e-6, "p_f": 0.1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # so few rows give noise
        made = discreet.paper.DPCrossAttention(
            rng.random((200, 1)),
            rng.uniform(-1, 1, (200, 16)),
            **options,
            delta_prime=1e-6,
            degree=1,
            scope="entry",
            accounting="tight",
        )
    whole = made.whole_guarantee
    assert whole == made.receipt.guarantee(delta=whole.delta)
    assert whole.epsilon > 3
    text = Reader(as_html(made, name="a", pictures=False)).text
    right = math.ceil(1000 * Promise.of(whole, made.receipt).coin)
    assert right > 950
    assert f"they are right at most {right} times in 1,000" in text
    assert "732" not in text  # what the guarantee of one column would allow
    assert text.index(str(whole)) < text.index(str(made.guarantee))
    assert "This is for somebody who has the file." in text
    facts = made.card.to_dict()
    assert (facts["epsilon"], facts["whole_epsilon"]) == (made.guarantee.epsilon, whole.epsilon)
    assert facts["whole_guarantee"] == str(whole) == dict(made.card.sentences)["whole file"]


def test_names_are_text(memory):
    text = as_html(memory, name="<script>alert(1)</script>", pictures=False)
    assert Reader(text).all("script") == []


def test_the_errors_are_the_memory_s_own(memory):
    lengths = by_length(memory)
    assert [each.at for each in lengths] == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert lengths[0].noise < lengths[-1].noise  # longer questions attend to fewer rows
    queries = _directions(memory)
    np.testing.assert_allclose(np.linalg.norm(queries, axis=-1), 1)
    _, stderr = memory.attend(queries, stderr=True)
    assert lengths[-1].error == pytest.approx(WITHIN * np.median(stderr))


def test_other_epsilons_are_what_other_builds_have():
    """The curve over ε, from one file, beside files that were built at these ε."""
    keys = unit_rows(3_000, 4)
    values = np.sign(keys[:, :2]) / 2

    def built(epsilon):
        return discreet.build(
            keys, values, epsilon=epsilon, delta=1e-6, scale=2.0, entropy=Seeded(1)
        )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", discreet.PrivacyLeakWarning)
        for each in by_epsilon(built(1.0)):
            own = by_length(built(each.at))[-1]
            assert each.noise == pytest.approx(own.noise, rel=0.15)
            assert each.error == pytest.approx(own.error, rel=0.15)


def test_heads_and_public_rows_are_asked_about_too():
    keys = np.stack([unit_rows(300, 4, seed=seed) for seed in range(2)])
    made = discreet.build(keys, keys, epsilon=4.0, delta=1e-5, scale=1.0)
    assert _directions(made).shape == (2, 200, 4)
    assert len(by_length(made)) == 5
    public = unit_rows(900, 4, seed=5)
    made = discreet.build(
        keys[0],
        keys[0],
        epsilon=4.0,
        delta=1e-5,
        scale=3.0,
        public_rows=public,
        kernel="landmarks",
        rows_hint=300,
    )
    assert _directions(made).shape[0] <= 200
    assert re.search("an estimate, on the wide side", as_html(made, name="a", pictures=False))


# What a guarantee means for one person: bounds that hold, and that are attained.


def promise(epsilon=1.0, delta=1e-6, *, mu=None):
    return Promise(Guarantee(epsilon, delta, "add_remove", unit="row", scope="the file"), mu)


def gaussian(epsilon, delta):
    return promise(epsilon, delta, mu=1 / gaussian_sigma(epsilon=epsilon, delta=delta))


def test_the_best_test_of_two_gaussians_attains_it():
    """Seen in draws: the likelihood ratio test is the best there is (Neyman and Pearson)."""
    mu, rng = 0.6, np.random.default_rng(0)
    out, inside = rng.normal(size=400_000), mu + rng.normal(size=400_000)
    for accused in (0.01, 0.1, 0.5):
        threshold = np.quantile(out, 1 - accused)
        assert promise(8.0, mu=mu).found(accused) == pytest.approx(
            np.mean(inside > threshold), abs=0.004
        )
    right = (np.mean(out < mu / 2) + np.mean(inside > mu / 2)) / 2
    assert promise(8.0, mu=mu).coin == pytest.approx(right, abs=0.003)


def test_without_more_it_is_the_definition():
    said = promise(1.0, 0.001)
    assert said.found(0.01) == pytest.approx(math.e * 0.01 + 0.001)
    assert said.found(0.9) == pytest.approx(1 - math.exp(-1) * (0.1 - 0.001))
    assert said.coin == pytest.approx((math.e + 0.001) / (math.e + 1))
    assert promise(0.0, 0.0).coin == 0.5
    assert promise(800.0, 0.0).coin == 1.0


@given(st.floats(0.05, 10), st.floats(1e-9, 0.01), st.floats(0.001, 0.999))
def test_a_gaussian_promises_no_less_than_its_epsilon_and_delta(epsilon, delta, accused):
    """And no more than noise of that size can: by symmetry, and never below chance."""
    both, plain = gaussian(epsilon, delta), promise(epsilon, delta)
    assert accused <= both.found(accused) <= plain.found(accused) <= 1
    assert 0.5 <= both.coin <= plain.coin <= 1


@given(st.floats(0.05, 8), st.floats(1e-9, 0.01))
def test_epsilon_and_delta_of_the_gaussian_are_attained_somewhere(epsilon, delta):
    """Somewhere power = e^ε·a + δ, or the noise would be too large (Balle and Wang)."""
    both = gaussian(epsilon, delta)
    at = stats.norm.sf(epsilon / both.mu + both.mu / 2)
    assert stats.norm.sf(stats.norm.isf(at) - both.mu) == pytest.approx(
        math.exp(epsilon) * at + delta, rel=1e-6
    )


def test_people_are_counted_up():
    assert how_many(0.5470001) == "548"
    assert how_many(0.5) == "500"
    assert how_many(1.0) == "1,000"


@given(st.floats(0.01, 3), st.integers(1, 6))
def test_several_of_one_person_are_told_apart_no_better_than_that(epsilon, count):
    """Laplace noise under a shift of several units, and Gaussian noise, for which it is exact."""
    laplace = 1 - math.exp(-count * epsilon / 2) / 2  # how often the best test is right
    assert laplace <= promise(epsilon, 0.0).of_several(count).coin + 1e-12
    mu = 1 / gaussian_sigma(epsilon=epsilon, delta=1e-5)
    several = promise(epsilon, 1e-5, mu=mu).of_several(count)
    assert several.coin == pytest.approx(stats.norm.cdf(count * mu / 2))
    assert several.coin <= promise(epsilon, 1e-5).of_several(count).coin
    assert promise(epsilon, 1e-5, mu=mu).of_several(1) == promise(epsilon, 1e-5, mu=mu)


def test_several_steps_add_up_their_deltas():
    several = promise(0.5, 1e-3).of_several(3).guarantee
    assert several.epsilon == pytest.approx(1.5)
    assert several.delta == pytest.approx(1e-3 * (1 + math.exp(0.5) + math.exp(1.0)))
    assert promise(600.0, 1e-3).of_several(10).guarantee.delta == 1.0
    assert promise(600.0, 1e-3).of_several(10).coin == 1.0
