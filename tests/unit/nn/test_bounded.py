"""Attention to train for private serving: exact, bounded, and the same once it is private."""

import numpy as np
import pytest
from attention import rows

torch = pytest.importorskip("torch", reason="needs the extra `torch`")

import discreet
from discreet.nn import BoundedAttention, Rehearsal, from_multihead
from discreet.testing import Seeded, Silent

SPEND = {"epsilon": 4.0, "delta": 1e-6}
CONTEXT, QUERY = rows(400, 24), rows(2, 6, 24, seed=3)


def attention(**options):
    torch.manual_seed(0)
    made = BoundedAttention(24, 2, head_dim=4, **{"largest_logit": 4.0, **options})
    with torch.no_grad():
        made.sharpness.copy_(torch.tensor([-1.0, 0.5]))
        made.v_proj.weight.mul_(3)  # some values are clipped
    return made


@pytest.mark.parametrize("bias", [False, True])
def test_a_private_copy_answers_the_same_but_for_the_kernel(bias):
    exact = attention(bias=bias)
    plain, weights = exact(QUERY, CONTEXT.expand(2, -1, -1))
    assert weights is None
    private = from_multihead(exact, CONTEXT, entropy=Silent(), **SPEND)
    torch.testing.assert_close(private(QUERY)[0], plain, atol=2e-3, rtol=0)


def test_logits_stay_under_the_cap_whatever_is_learned():
    exact = attention()
    with torch.no_grad():
        exact.sharpness.fill_(50.0)
        exact.q_proj.weight.mul_(1e6)
    assert torch.all(exact.temperatures <= 4.0)
    private = from_multihead(exact, CONTEXT, entropy=Silent(), **SPEND)
    assert private.card.to_dict()["largest_logit"][1] <= 4.0 * (1 + 1e-4)


def test_it_learns():
    exact = attention()
    optimiser = torch.optim.Adam(exact.parameters(), lr=0.05)
    wanted = torch.randn(2, 6, 24) * 0.1
    losses = []
    for _ in range(30):
        loss = ((exact(QUERY, CONTEXT.expand(2, -1, -1))[0] - wanted) ** 2).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]
    assert all(each.grad is not None for each in exact.parameters())


def test_padding_is_left_out():
    exact = attention()
    padded = torch.cat([CONTEXT[:50], torch.full((7, 24), 3.0)]).expand(2, -1, -1)
    mask = (torch.arange(57) >= 50).expand(2, -1)
    plain = exact(QUERY, CONTEXT[:50].expand(2, -1, -1))[0]
    torch.testing.assert_close(exact(QUERY, padded, key_padding_mask=mask)[0], plain)
    exact.rehearsal = Rehearsal(rows=10**9, heads=2, **SPEND)
    torch.testing.assert_close(
        exact(QUERY, padded, key_padding_mask=mask)[0], plain, atol=1e-4, rtol=0
    )


def test_axes_follow_torch():
    first, second = attention(), attention(batch_first=False)
    batch = CONTEXT[:50].expand(2, -1, -1)
    out = first(QUERY, batch)[0]
    turned = second(QUERY.transpose(0, 1), batch.transpose(0, 1))[0]
    torch.testing.assert_close(turned.transpose(0, 1), out)
    torch.testing.assert_close(first(QUERY[0], CONTEXT[:50])[0], out[0])
    with pytest.raises(discreet.InvalidInput, match="attn_mask"):
        first(QUERY, batch, attn_mask=torch.zeros(6, 50))


def test_rehearsed_noise_is_the_noise_of_a_build_in_size_and_between_queries():
    exact = attention()
    batch = CONTEXT.expand(2, -1, -1)
    near = torch.stack([QUERY, QUERY + 0.01 * rows(2, 6, 24, seed=9)], dim=2).flatten(1, 2)
    plain = exact(near, batch)[0].detach()
    exact.rehearsal = Rehearsal(rows=400, heads=2, **SPEND)
    exact.train()
    rehearsed = torch.stack([exact(near, batch)[0].detach() for _ in range(100)]) - plain
    builds = [
        from_multihead(exact, CONTEXT, entropy=Seeded(i), features=1024, **SPEND) for i in range(24)
    ]
    real = torch.stack([each(near)[0].detach() for each in builds]) - plain
    assert rehearsed.std() == pytest.approx(real.std().item(), rel=0.2)
    # Queries that are alike have noise that is alike.
    for noise in (rehearsed, real):
        pairs = noise.unflatten(2, (6, 2))
        apart = (pairs[..., 0, :] - pairs[..., 1, :]).std()
        assert apart < 0.1 * noise.std()
    exact.eval()
    torch.testing.assert_close(exact(near, batch)[0], plain)


def test_more_rows_and_more_epsilon_rehearse_less_noise():
    def spread(**options):
        exact = attention()
        exact.rehearsal = Rehearsal(**{"rows": 4000, "heads": 2, **SPEND, **options})
        outs = [exact(QUERY, CONTEXT.expand(2, -1, -1))[0].detach() for _ in range(30)]
        return torch.stack(outs).std(dim=0).mean().item()

    usual = spread()
    assert spread(rows=40_000) == pytest.approx(0.1 * usual, rel=0.25)
    assert spread(epsilon=16.0) < 0.6 * usual
    assert spread(heads=8) == pytest.approx(2 * usual, rel=0.25)
    assert spread(neighbours="replace") == pytest.approx(2 * usual, rel=0.25)


def test_a_layer_refuses_a_rehearsal_that_is_not_for_it():
    exact = attention()
    for wrong in (Rehearsal(rows=10, heads=1, **SPEND), {"rows": 10}):
        with pytest.raises(discreet.InvalidInput, match="rehearsal"):
            exact.rehearsal = wrong
    exact.rehearsal = Rehearsal(rows=10, heads=2, **SPEND)
    exact.rehearsal = None


def test_it_can_be_trained_in_a_decoder_layer():
    layer = torch.nn.TransformerDecoderLayer(24, 2, 32, batch_first=True)
    layer.multihead_attn = attention()
    layer(QUERY, CONTEXT[:20].expand(2, -1, -1)).sum().backward()
    assert layer.multihead_attn.q_proj.weight.grad.abs().max() > 0


@pytest.mark.parametrize("bad", [{"rows": 0}, {"heads": 0}, {"epsilon": -1.0}, {"group_rows": 0.0}])
def test_a_rehearsal_of_nothing_is_refused(bad):
    with pytest.raises(discreet.InvalidInput):
        Rehearsal(**{"rows": 10, "heads": 1, **SPEND, **bad})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_heads": 5}, "num_heads"),
        ({"num_heads": 2, "largest_logit": 0.0}, "largest_logit"),
        ({"num_heads": 2, "largest_logit": 101.0}, "largest_logit"),
    ],
)
def test_layers_that_make_no_sense_are_refused(options, message):
    with pytest.raises(discreet.InvalidInput, match=message):
        BoundedAttention(24, **options)


@pytest.mark.parametrize(("width", "logit"), [(4, 10.0), (6, 7.0), (8, 4.5)])
def test_weights_of_narrow_heads_are_right_within_a_percent(width, logit):
    exact = BoundedAttention(24, 1, head_dim=width, value_dim=1, largest_logit=2 * logit)
    private = from_multihead(exact, CONTEXT[:3], entropy=Silent(), **SPEND)
    kernel = private.memories[0].kernel
    assert kernel.largest_logit == pytest.approx(logit, rel=1e-4)
    assert kernel.error <= 0.01


def test_values_may_have_a_width_of_their_own():
    torch.manual_seed(0)
    exact = BoundedAttention(24, 2, head_dim=3, value_dim=5, kdim=10, vdim=10)
    context = rows(100, 10)
    plain = exact(QUERY, context.expand(2, -1, -1))[0]
    private = from_multihead(exact, context, entropy=Silent(), **SPEND)
    torch.testing.assert_close(private(QUERY)[0], plain, atol=5e-3, rtol=0)
    assert np.shape(private.memories[0].released.state)[1] == 6
