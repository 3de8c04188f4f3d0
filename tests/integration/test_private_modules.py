"""README's recipe for cross-attention, as printed: its ± is right, and says something."""

import pathlib
import warnings

import pytest
from documents import blocks

torch = pytest.importorskip("torch", reason="needs the extra `torch`")

import discreet
from discreet.nn import bounds_of, from_multihead

pytestmark = pytest.mark.docs

README = pathlib.Path(__file__).parents[2] / "README.md"


def inputs():
    """A layer with logits as trained ones have them, private rows, public ones, and queries."""
    torch.manual_seed(0)
    norm, attention = torch.nn.LayerNorm(32), torch.nn.MultiheadAttention(32, 4, batch_first=True)
    made = {
        name: norm(torch.randn(count, 32)).detach()
        for name, count in (("context", 20_000), ("public", 1_000), ("query", 60))
    }
    return norm, {"attention": attention, **made}


def judged(given, output):
    """How far outputs are off, and how much exact ones differ from query to query."""
    context, query = given["context"], given["query"]
    with torch.no_grad():
        exact = given["attention"](query, context, context)[0]
    return output.detach() - exact, exact.std(dim=0).square().mean().sqrt()


def size(numbers):
    return numbers.square().mean().sqrt()


def test_the_recipe_for_modules_as_printed_has_a_margin_that_is_right_and_says_something():
    _, given = inputs()
    recipe = [each.text for each in blocks(README.read_text()) if each.language == "python"][3]
    names = dict(given)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nobody has to be told that it is noise
        exec(compile(recipe, "README.md", "exec"), names)
    off, spread = judged(given, names["output"])
    margin = names["margin"]
    assert size(margin) < spread / 2  # well below how far answers differ
    assert 2 / 3 < size(off) / size(margin / 1.96) < 3 / 2
    assert 0.91 < (off.abs() <= margin).double().mean() < 0.99
    [clear] = names["private"].memories.observed_signal_to_error.values()
    assert clear > 2


def test_bounds_of_the_weights_are_too_loose_there_and_whoever_takes_them_is_told():
    norm, given = inputs()
    attention = given["attention"]
    bounds = bounds_of(attention, queries=norm, context=norm)
    with pytest.warns(discreet.MostlyNoiseWarning, match="calibrate"):
        private = from_multihead(
            attention, given["context"], epsilon=1.0, delta=1e-6, bounds=bounds
        )
    off, spread = judged(given, private(given["query"])[0])
    assert size(off) > 2 * spread
    assert size(private.stderr(given["query"])) > 2 * spread
