"""Causal attention over a stream: exact without noise, and private by what it releases alone."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra `torch`")

from streams import moved
from torch import nn

import discreet
from discreet.ledger import Ledger
from discreet.nn import BoundedAttention, CausalBlock, PrivateCausalAttention, PrivateCausalStack
from discreet.testing import Seeded, Silent

WIDTH = 6
SPEND = {"epsilon": 2.0, "delta": 1e-6, "steps": 32}


def records(count, seed=0):
    rng = np.random.default_rng(seed)
    return torch.from_numpy(rng.normal(size=(count, WIDTH))).float()


def attention(seed=0, heads=2):
    torch.manual_seed(seed)
    return BoundedAttention(WIDTH, heads, largest_logit=2.0).eval()


def blocks():
    torch.manual_seed(7)
    feed = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 9), nn.GELU(), nn.Linear(9, WIDTH))
    return [
        CausalBlock(attention(1), norm=nn.LayerNorm(WIDTH), feed_forward=feed),
        CausalBlock(attention(2, heads=1)),
    ]


def exact(layer, given):
    """Each row's attention to all before it; zeros for the first."""
    rows = [layer(given[at : at + 1], given[:at])[0] for at in range(1, len(given))]
    return torch.cat([torch.zeros(1, WIDTH), *rows]).detach()


def exact_stack(stack, hidden):
    with torch.no_grad():
        for block in stack:
            given = hidden if block.norm is None else block.norm(hidden)
            hidden = hidden + exact(block.attention, given)
            if block.feed_forward is not None:
                hidden = hidden + block.feed_forward(hidden)
    return hidden


def test_without_noise_each_record_attends_to_all_before_it():
    layer, given = attention(), records(12)
    private = PrivateCausalAttention(layer, **SPEND, entropy=Silent(), eps_s=1e-3)
    answers = torch.stack([private(record) for record in given])
    torch.testing.assert_close(answers, exact(layer, given), atol=5e-3, rtol=0)


def test_without_noise_a_stack_is_the_model_that_it_was_made_of():
    stack, given = blocks(), records(12, seed=3)
    private = PrivateCausalStack(stack, **SPEND, entropy=Silent(), eps_s=1e-3)
    answers = torch.stack([private(record) for record in given])
    torch.testing.assert_close(answers, exact_stack(stack, given), atol=1e-2, rtol=0)
    assert not torch.allclose(answers, given + exact(stack[0].attention, given), atol=0.1)


def test_records_of_one_step_do_not_see_each_other():
    given = records(9)
    together = PrivateCausalStack(blocks(), **SPEND, entropy=Silent())
    together(given[:5])
    both = together(given[5:])
    for other in (5, 8):
        alone = PrivateCausalStack(blocks(), **SPEND, entropy=Silent())
        alone(given[:5])
        assert torch.equal(alone(given[other]), both[other - 5])


def exact_sums(stack, path, given):
    """Exact sums of each step, and answers, if these states are released before each."""
    sums, answers = [], []
    for totals, record in zip(path, given, strict=True):
        stack._state = replace(stack._state, totals=totals)
        if stack.step:
            stack._modules_of_step = stack._modules_for(stack._state)
        answers.append(stack(record))
        added = zip(stack._state.totals, totals, strict=True)
        sums.append(np.concatenate([(new - old).ravel() for new, old in added]))
    return sums, answers


@pytest.fixture(scope="module")
def neighbours():
    """Two runs with the same releases, of which one lacks the third record: sums and answers."""
    given = [each[None] for each in records(8, seed=5)]
    drawn = PrivateCausalStack(blocks(), **SPEND, entropy=Seeded(1))
    path = [drawn._state.totals]
    for record in given:
        drawn(record)
        path.append(drawn._state.totals)
    with_her = PrivateCausalStack(blocks(), **SPEND, entropy=Silent())
    without = PrivateCausalStack(blocks(), **SPEND, entropy=Silent())
    other = [*given[:2], given[2][:0], *given[3:]]
    return (
        drawn.settings,
        exact_sums(with_her, path[:-1], given),
        exact_sums(without, path[:-1], other),
    )


def test_one_person_moves_all_layers_and_steps_by_at_most_the_claim(neighbours):
    settings, (one, _), (other, _) = neighbours
    differ = [not np.array_equal(a, b) for a, b in zip(one, other, strict=True)]
    assert differ == [False, False, True, False, False, False, False, False]
    rng = np.random.default_rng(1)
    assert 0.2 < moved(one, other, settings, rng) <= 1


def test_all_others_get_the_same_answers_from_the_same_releases(neighbours):
    """What they get is a function of releases and their own records: the billboard lemma."""
    _, (_, one), (_, other) = neighbours
    assert [torch.equal(a, b) for a, b in zip(one, other, strict=True)] == [
        True,
        True,
        False,
        *[True] * 5,
    ]


def test_the_noise_is_that_of_all_heads_and_layers_together():
    stack = PrivateCausalStack(blocks(), **SPEND)
    assert stack.settings.mechanism.sensitivity == pytest.approx(3**0.5)  # 2 heads and 1
    assert stack.guarantee.epsilon == 2.0
    assert "every step" in stack.guarantee.scope


def test_public_queries_are_answered_and_add_nothing():
    stack = PrivateCausalStack(blocks(), **SPEND, entropy=Silent())
    queries = records(4, seed=9)
    assert stack.ask(queries).shape == queries.shape
    stack(records(5))
    before = stack._state
    answers = stack.ask(queries)
    assert stack._state is before
    torch.testing.assert_close(stack.ask(queries[1]), answers[1])


def test_layers_are_released_modules_with_the_card_of_the_stream(tmp_path):
    layer = attention()
    private = PrivateCausalAttention(layer, **SPEND, entropy=Seeded(2))
    private(records(20))
    [released] = private.layers
    queries = records(3, seed=9)
    assert released.memories[0].released.stream.step == 1
    assert "one guarantee for all steps" in str(released.card)
    assert released.stderr(queries).shape == queries.shape
    released.save(tmp_path / "layer.safetensors")
    with pytest.warns(discreet.NotPrivateWarning):
        again = discreet.nn.attach(layer, tmp_path / "layer.safetensors")
    torch.testing.assert_close(again(queries)[0], released(queries)[0])


def test_a_person_with_several_rows_in_a_step():
    stack = PrivateCausalStack(blocks(), **SPEND, entropy=Silent(), by_record=True, group_rows=2.0)
    given = records(6)
    answers = stack(given, groups=["a", "b", "a", "c", "b", "a"])
    assert answers.shape == given.shape
    with pytest.raises(discreet.InvalidInput, match="groups"):
        stack(given)
    assert stack.step == 1


def test_a_step_without_records_draws_noise():
    stack = PrivateCausalStack(blocks(), **SPEND, entropy=Seeded(4))
    assert stack(records(0)).shape == (0, WIDTH)
    assert stack.step == 1
    assert all(np.any(each != 0) for each in stack._state.totals)


def test_weights_that_change_later_change_nothing():
    layer, given = attention(), records(6)
    usual, changed = (PrivateCausalAttention(layer, **SPEND, entropy=Silent()) for _ in range(2))
    wanted = [usual(record) for record in given]
    with torch.no_grad():
        for weight in layer.parameters():
            weight.zero_()
    assert all(torch.equal(changed(record), out) for record, out in zip(given, wanted, strict=True))


def test_a_stream_is_never_copied():
    stack = PrivateCausalAttention(attention(), **SPEND)
    stack(records(1))
    for copied in (copy.deepcopy, copy.copy, pickle.dumps):
        with pytest.raises(TypeError, match="never pickled or copied"):
            copied(stack)
    with pytest.raises(TypeError, match="never pickled or copied"):
        stack._replicate_for_data_parallel()
    assert not any("state" in name or "buffer" in name for name in stack.state_dict())


def test_threads_take_one_step_after_the_other():
    stack = PrivateCausalAttention(attention(), **SPEND)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(stack, records(40)))
    assert stack.step == 40


def test_what_fails_has_added_nothing(monkeypatch):
    stack = PrivateCausalStack(blocks(), **SPEND, entropy=Silent())
    stack(records(3))
    before = stack._state
    with monkeypatch.context() as patched:
        patched.setattr(stack, "_modules_for", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            stack(records(1))
    assert stack._state is before


def test_blocks_that_are_random_are_refused():
    class Random(nn.Module):
        def forward(self, hidden):
            return nn.functional.dropout(hidden, 0.5, training=True)

    stack = PrivateCausalStack([CausalBlock(attention(), feed_forward=Random())], **SPEND)
    with pytest.raises(discreet.InvalidInput, match="the same of a record each time"):
        stack(records(2))
    assert stack.step == 0


def test_dropout_is_off_and_modes_are_put_back():
    feed = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Dropout(0.5)).train()
    stack = PrivateCausalStack([CausalBlock(attention(), feed_forward=feed)], **SPEND)
    stack(records(2))
    assert feed[1].training


def test_the_card_does_not_say_that_participation_is_enforced():
    stack = PrivateCausalStack(blocks(), **SPEND, entropy=Seeded(1), by_record=True)
    stack(records(3), groups=[1, 2, 3])
    said = dict(stack.layers[0].card.sentences)["participation"]
    assert said == "any one record in one step; nobody has checked that"
    assert "NOT PRIVATE" in repr(stack)


def test_it_is_counted_once_for_all_steps(tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    ledger.create("people", epsilon=2.0, delta=1e-6)
    options = {**SPEND, "ledger": ledger, "dataset": "people"}
    stack = PrivateCausalStack(blocks(), **options)
    for record in records(3):
        stack(record)
    assert len(ledger.statement("people").spends) == 1
    with pytest.raises(discreet.BudgetExceeded):
        PrivateCausalStack(blocks(), **options)


def test_a_fork_is_a_copy():
    stack = PrivateCausalAttention(attention(), **SPEND)
    stack._process += 1
    with pytest.raises(discreet.BudgetExceeded, match="fork"):
        stack(records(1))


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (lambda: PrivateCausalStack([], **SPEND), "at least one block"),
        (lambda: PrivateCausalStack([attention()], **SPEND), "CausalBlock"),
        (lambda: PrivateCausalAttention(attention(), **SPEND, tau=1.0), "tau"),
        (lambda: PrivateCausalAttention(attention(), **{**SPEND, "steps": 0}), "steps"),
        (lambda: PrivateCausalAttention(attention(), **SPEND)(records(4)[None]), "shape"),
        (lambda: PrivateCausalAttention(attention(), **SPEND)(np.zeros((2, WIDTH))), "Tensor"),
        (lambda: PrivateCausalAttention(attention(), **SPEND)(torch.zeros(2, 5)), "shape"),
        (lambda: PrivateCausalAttention(attention(), **SPEND).ask(torch.zeros(5)), "shape"),
        (lambda: PrivateCausalAttention(attention(), **SPEND).layers, "at least one step"),
    ],
)
def test_mistakes_are_named(wrong, text):
    with pytest.raises(discreet.InvalidInput, match=text):
        wrong()
