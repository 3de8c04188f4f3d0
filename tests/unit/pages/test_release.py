"""A page for every kind of file that was ever written."""

import math
import pathlib
import re
import warnings

import numpy as np
import pytest
from data import unit_rows
from markup import Reader
from scipy import stats

import discreet
from discreet.pages import as_html, asking, explained
from discreet.pages.promise import Promise
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
        assert explained.MEANINGS[title] in reader.text
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
    for each in (*asking.by_length(memory), *asking.by_epsilon(memory)):
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
    for epsilon, weak in ((1.0, False), (30.0, True)):
        made = discreet.build(rows, rows, epsilon=epsilon, delta=1e-6, scale=1.0)
        text = Reader(as_html(made, name="a", pictures=False)).text
        assert ("This promise is weak" in text) is weak
        assert ("hidden by the noise" in text) is not weak


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
    lengths = asking.by_length(memory)
    assert [each.at for each in lengths] == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert lengths[0].noise < lengths[-1].noise  # longer questions attend to fewer rows
    queries = asking._directions(memory)
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
        for each in asking.by_epsilon(built(1.0)):
            own = asking.by_length(built(each.at))[-1]
            assert each.noise == pytest.approx(own.noise, rel=0.15)
            assert each.error == pytest.approx(own.error, rel=0.15)


def test_heads_and_public_rows_are_asked_about_too():
    keys = np.stack([unit_rows(300, 4, seed=seed) for seed in range(2)])
    made = discreet.build(keys, keys, epsilon=4.0, delta=1e-5, scale=1.0)
    assert asking._directions(made).shape == (2, 200, 4)
    assert len(asking.by_length(made)) == 5
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
    assert asking._directions(made).shape[0] <= 200
    assert re.search("an estimate, on the wide side", as_html(made, name="a", pictures=False))
