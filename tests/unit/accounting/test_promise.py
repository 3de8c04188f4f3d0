"""What cards say to one person: figures that the promise gives, in words."""

import json
import math
import warnings
from pathlib import Path

import pytest

import discreet
from discreet.accounting.promise import ACCUSED, Promise, how_many
from discreet.errors import NotPrivateWarning
from discreet.privacy import Guarantee

FILES = sorted((Path(__file__).parents[2] / "golden" / "files").glob("*.safetensors"))


def promised(epsilon, delta=0.0, mu=None, **changed):
    return Promise(
        Guarantee(
            epsilon, delta, **{"neighbours": "add_remove", "unit": "row", "scope": "it", **changed}
        ),
        mu,
    )


def test_one_person_is_told_how_many_are_found_at_most():
    promise = promised(1.0)
    # e·10 of 1,000 are 27.2, and nobody may say that they are 27.
    assert promise.facts == {"wrongly_accused_of_1000": 10, "found_at_most_of_1000": 28}
    assert promise.in_words == (
        "a method that wrongly accuses 10 of 1,000 people who were not in the data finds at most "
        "28 of 1,000 who were, with one row each"
    )


@pytest.mark.parametrize(
    ("promise", "most"),
    [
        (promised(0.0), 10),
        (promised(0.0, 0.0005), 11),
        (promised(1.0, 1e-6, 0.25), 19),  # Φ(Φ⁻¹(0.01) + 0.25) = 0.0190 < 0.0272
        (promised(50.0), 1000),
        (promised(1e6, 0.5), 1000),
    ],
)
def test_figures_are_those_of_the_promise_rounded_up(promise, most):
    assert promise.facts["found_at_most_of_1000"] == most
    assert f"at most {most:,} of" in promise.in_words
    assert most == int(how_many(promise.found(ACCUSED / 1000)).replace(",", ""))


def test_records_that_are_replaced_are_told_apart_from_others():
    said = promised(1.0, unit="record", neighbours="replace").in_words
    assert "(another record was in their place)" in said
    assert said.endswith("with one record each")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_cards_of_earlier_files_say_it_too(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        release = discreet.load(path)
    whole = getattr(release, "whole_guarantee", release.guarantee)
    promise = Promise.of(whole, release.receipt)
    facts = json.loads(json.dumps(release.card.to_dict()))
    assert facts.items() >= promise.facts.items()
    assert ("for one person", promise.in_words) in release.card.sentences
    assert promise.in_words in str(release.card)
    assert promise.in_words.startswith("NOT PRIVATE; ")  # their noise came from a seed


def test_somebody_with_several_rows_is_found_more_easily():
    """Group privacy: so many times ε and μ, and δ by the sum of e^(j·ε)."""
    several = promised(0.5, 1e-6, mu=0.2).of_several(3)
    assert several.guarantee.epsilon == 1.5
    assert several.guarantee.delta == pytest.approx(1e-6 * (1 + math.exp(0.5) + math.e))
    assert several.mu == pytest.approx(0.6)
    assert promised(0.5, 1e-6).of_several(3).mu is None
    assert promised(0.5, 0.9).of_several(3).guarantee.delta == 1


def test_a_fair_coin_is_guessed_no_better_than_the_promise_allows():
    assert promised(0.0).coin == 0.5
    assert promised(1.0).coin == pytest.approx(math.e / (math.e + 1))
    assert promised(1.0, 1e-3).coin == pytest.approx((math.e + 1e-3) / (math.e + 1))
    assert promised(1.0, mu=0.1).coin == pytest.approx(0.5199, abs=1e-4)
    assert promised(900.0, 0.9).coin == 1.0
