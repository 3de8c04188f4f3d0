"""Conclusions of examples are chosen by the figures: other figures, other words."""

import importlib
import pathlib
import sys
from dataclasses import replace

import numpy as np
import pytest

pytestmark = pytest.mark.docs

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


@pytest.fixture
def example(monkeypatch):
    """Return what imports a script of examples/."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if (EXAMPLES / f"{name}.py").exists():
            del sys.modules[name]


def test_quickstart(example):
    module = example("quickstart")
    exact = np.array([[0.1, 0.0], [0.5, 0.1]])
    good = module.Answers(exact + 0.01, np.full(exact.shape, 0.01), exact)
    assert module.conclusion(good).startswith("4 of 4 private numbers")
    assert "off by 0.010; spending differs by 0.400" in module.conclusion(good)
    assert "pattern clear" in module.conclusion(good)
    bad = replace(good, private=exact + 0.3)
    assert module.conclusion(bad).startswith("0 of 4")
    assert "too little of the pattern" in module.conclusion(bad)


def test_rag_topics(example):
    module = example("rag_topics")
    first, second = np.array([0.8, 0.2]), np.array([0.2, 0.8])
    few, much = np.full(2, 0.02), np.full(2, 0.5)
    right = module.Answer("?", first, few, first)
    wrong, unclear = replace(right, exact=second), replace(right, stderr=much)
    assert "1 of 2 questions" in module.conclusion([right, unclear], 1.0)
    assert "the exact one each time" in module.conclusion([right, unclear], 1.0)
    assert module.conclusion([right, unclear], 1.0).endswith("clear answer: 1.")
    assert "it is right 1 times" in module.conclusion([right, wrong], 1.0)


def test_private_rag(example):
    module = example("private_rag")
    found = module.Findings(1.0, names=20, right=0.973, secrets=50, shown=48, told=0)
    assert "97% of questions have the right disease" in module.conclusion(found)
    assert module.conclusion(found).endswith("show 48 and the release tells 0.")
    tried = replace(found, tries=4, written=3, told=1)
    assert "tells 1; asked for 4 of them" in module.conclusion(tried)
    assert module.conclusion(tried).endswith("wrote 3 from the documents and 0 from the release.")


def test_cross_attention(example):
    pytest.importorskip("torch", reason="needs the extra `torch`")
    module = example("cross_attention")
    nothing = np.zeros((2, 1))
    served = module.Served(1.0, nothing, nothing, 0.9, 0.8, 0.5)
    assert module.conclusion([served]).endswith("privacy costs 10.0 points.")
    same = replace(served, private_right=0.9)
    assert module.conclusion([same]).endswith("costs nothing that shows.")


def test_digits_classifier(example):
    pytest.importorskip("sklearn", reason="needs the extra `sklearn`")
    module = example("digits_classifier")
    found = module.Accuracy("", 2.0, 3.0, [0.4, 0.5], [0.9, 0.9])
    assert "0.450 at ε = 2 (50% lost)" in module.conclusion([found])


def test_private_texts(example):
    pytest.importorskip("sklearn", reason="needs the extra `sklearn`")
    memory, model = example("private_text"), example("private_text_classifier")
    found = [memory.Accuracy(1.0, 2.0, 0.6, 0.7), memory.Accuracy(4.0, 2.0, 0.65, 0.7)]
    assert memory.conclusion(found, 0.75).endswith("75.0%: 10.0 points more.")
    assert memory.conclusion(found, 0.6).endswith("60.0%: no more.")
    said = model.conclusion(model.Accuracies({1.0: 0.6, 4.0: 0.8}, 0.8))
    assert "60.0% at ε = 1 (20.0 points fewer), 80.0% at ε = 4 (no fewer)" in said


def test_l1_distances(example):
    module = example("l1_distances")
    empty, pair = np.empty(0), np.array([5.0, 5.0])
    near = module.Distances(
        np.array([1.0, 2.0]), np.array([1.1, 2.9]), 0.5, *[empty] * 5, costs=pair
    )
    assert module.conclusion(near).startswith("1 of 2 private distances")
    assert "as good as the exact one" in module.conclusion(near)
    far = replace(near, costs=np.array([7.0, 5.0]))
    assert "2.00 farther from everyone" in module.conclusion(far)


def test_epsilon_sweep(example):
    module = example("epsilon_sweep")
    pairs = [(1 / epsilon, 3 / epsilon) for epsilon in module.EPSILONS]
    assert "3.00 to 3.00 times" in module.conclusion({100: pairs})
    assert module.conclusion({100: pairs}).endswith("by a factor of 32.")


def test_adaptive_attacker(example):
    module = example("adaptive_attacker")
    exact = module.Outcome(None, 100, 100, 100, 1.0)
    lucky, strong = module.Outcome(0.5, 100, 6, 6, 0.0), module.Outcome(4.0, 100, 60, 70, 0.9)
    said = module.conclusion(exact, [lucky, strong])
    assert "in 6.0% at ε = 0.5, no more than chance" in said
    assert "in 60.0% at ε = 4" in said
    assert said.endswith("never more often than (ε, δ) allows.")
    broken = module.conclusion(exact, [replace(lucky, searched=40)])
    assert "in 40.0% at ε = 0.5, more than chance" in broken
    assert "THE PROMISE IS BROKEN" in broken.upper()


def test_trained_for_privacy(example):
    pytest.importorskip("torch", reason="needs the extra `torch`")
    module = example("trained_for_privacy")
    share = {(module.PRIVATE, 1.0): np.array([0.4, 0]), (module.PRIVATE, 4.0): np.array([0.6, 0])}
    scores = module.Scores(500, np.array([0.6, 0]), np.array([0.2, 0]), share)
    assert module.conclusion(scores).endswith("privacy leaves 50% at ε = 1, all at ε = 4.")
    assert "nothing to take" in module.conclusion(replace(scores, exact=scores.alone))


@pytest.mark.slow
def test_trained_for_privacy_in_full(example, monkeypatch, capsys):
    """The whole of it, small: who answers, at all sizes, and the last comparison."""
    torch = pytest.importorskip("torch", reason="needs the extra `torch`")
    module = example("trained_for_privacy")
    small = replace(
        module.FULL, steps=3, fine_steps=2, records=64, worlds=1, rows=(300, 500), compared=1
    )
    monkeypatch.setattr(module, "FULL", small)
    threads = torch.get_num_threads()
    try:
        scores = module.main(["--full"])
    finally:
        torch.set_num_threads(threads)
    text = capsys.readouterr().out
    assert text.count("| 300 |") == text.count("| 500 |") == 8
    assert scores.rows == 500
    assert len(scores.private) == 6 * 3
    assert "for the model that was trained with noise" in text
    assert text.splitlines()[-1] == f"Conclusion: {module.conclusion(scores)}"


def test_pretrained_speech(example):
    pytest.importorskip("transformers", reason="needs the extra `transformers`")
    module = example("pretrained_speech")
    rates = module.Rates((40.0, module.ALIKE), (8.0,), (0.2, 1.0), (1.0, 1.0), ((1.1,), (0.9,)))
    assert "is 1.10 or more" in module.conclusion(rates)
    assert "cannot be made private" in module.conclusion(rates)
    assert "some words survive" in module.conclusion(replace(rates, noisy=((0.3,), (1.0,))))
