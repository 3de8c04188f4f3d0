import json
import math
import subprocess
import sys

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as peer
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import BudgetExceeded, InvalidInput, Privacy, accounting
from discreet.accounting import calibrate, gaussian_epsilon, gaussian_sigma, loss, tight
from discreet.accounting.compose import composed_epsilon, concentrated_epsilon

ONE = {"neighbours": "replace"}
DELTAS = st.floats(-11, -0.5).map(lambda power: 10**power)


def truncated(count, epsilon, sensitivity=1000, mass=5e-7):
    return accounting.TruncatedLaplace(
        sensitivity=sensitivity, epsilon=epsilon, delta=mass / count, **ONE
    )


def gaussian(sigma):
    return accounting.Gaussian(sigma=sigma, sensitivity=1.0, **ONE)


def test_basic_adds_up():
    total = accounting.basic([(Privacy(0.1, 1e-7, "replace"), 3), (Privacy(1, 0, "replace"), 1)])
    assert total.epsilon == pytest.approx(1.3)
    assert total.delta == pytest.approx(3e-7)
    assert accounting.basic([(Privacy(1, 0.4, "replace"), 9)]).delta == 1.0


def test_advanced_is_the_papers_formula():
    total = accounting.advanced(Privacy(0.1, 1e-8, "replace"), 50, delta_prime=1e-6)
    expected = 50 * 0.1 * (math.exp(0.1) - 1) + 0.1 * math.sqrt(2 * 50 * math.log(1e6))
    assert total.epsilon == pytest.approx(expected, rel=1e-14)
    assert total.delta == pytest.approx(50e-8 + 1e-6, rel=1e-14)
    assert accounting.advanced(Privacy(0.1, 0.3, "replace"), 9, delta_prime=0.5).delta == 1.0


@pytest.mark.parametrize("sensitivity", [2, 1000, 10**6])
@pytest.mark.parametrize(
    ("count", "epsilon", "total", "tolerance"),
    [(100_000, 0.001, 1.4145, 0.001), (1_000, 0.01, 1.410, 0.003), (10, 0.1, 1.000, 0.001)],
)
def test_golden_truncated_laplace(count, epsilon, total, tolerance, sensitivity):
    mechanism = truncated(count, epsilon, sensitivity)
    assert tight([(mechanism, count)], delta=1e-6) == pytest.approx(total, abs=tolerance)


@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-12])
@pytest.mark.parametrize("count", [2, 50, 3_000, 100_000, 1_000_000])
def test_many_gaussians_on_the_grid_against_one_exact_gaussian(count, delta):
    """Composed on the grid like any other law: never below the truth, even at δ = 1e-12."""
    truth = gaussian_epsilon(sigma=1.0, delta=delta)
    on_grid = composed_epsilon([(gaussian(math.sqrt(count)), count)], delta)
    assert 0 <= on_grid - truth < 3e-4


def test_gaussians_compose_without_any_loss():
    pairs = [(gaussian(3.0), 4), (gaussian(5.0), 1), (gaussian(3.0), 2)]
    sigma = 1 / math.sqrt(6 / 9 + 1 / 25)
    assert tight(pairs, delta=1e-9) == pytest.approx(
        gaussian_epsilon(sigma=sigma, delta=1e-9), rel=1e-9
    )


def test_one_mechanism_is_exact():
    laplace = accounting.Laplace(scale=2.0, sensitivity=1.0, **ONE)
    assert tight([(laplace, 1)], delta=1e-6) == pytest.approx(
        0.5 + 2 * math.log1p(-1e-6), rel=1e-12
    )
    one = truncated(1, 0.5, mass=1e-6)
    assert tight([(one, 1)], delta=1e-6) == pytest.approx(0.5, rel=1e-3)
    assert tight([(one, 1)], delta=1e-7) == math.inf
    assert tight([(one, 1)], delta=0.9) == 0.0


@pytest.mark.parametrize("delta", [1e-3, 1e-6])
@pytest.mark.parametrize("count", [2, 30, 500])
def test_agreement_with_dp_accounting(count, delta):
    """Where its FFT is accurate (moderate counts and δ), dp-accounting agrees."""
    scale = 2 * math.sqrt(count)
    theirs = peer.from_laplace_mechanism(scale, value_discretization_interval=1e-4)
    ours = tight([(accounting.Laplace(scale=scale, sensitivity=1.0, **ONE), count)], delta=delta)
    assert ours == pytest.approx(theirs.self_compose(count).get_epsilon_for_delta(delta), abs=5e-4)

    rate, shift = 1 / (4 * scale), 4
    theirs = peer.from_discrete_laplace_mechanism(
        rate, shift, value_discretization_interval=1e-4, use_connect_dots=True
    )
    lattice = accounting.DiscreteLaplace(scale=1 / rate, sensitivity=shift, **ONE)
    ours = tight([(lattice, count)], delta=delta)
    assert ours == pytest.approx(theirs.self_compose(count).get_epsilon_for_delta(delta), abs=5e-4)


def test_a_mixture_of_all_laws_against_dp_accounting():
    step = 1e-4
    theirs = (
        peer.from_laplace_mechanism(20.0, value_discretization_interval=step)
        .self_compose(40)
        .compose(peer.from_gaussian_mechanism(3.0, value_discretization_interval=step))
        .compose(
            peer.from_discrete_laplace_mechanism(
                0.02, 5, value_discretization_interval=step, use_connect_dots=True
            ).self_compose(30)
        )
    )
    ours = [
        (accounting.Laplace(scale=20.0, sensitivity=1.0, **ONE), 40),
        (gaussian(3.0), 1),
        (accounting.DiscreteLaplace(scale=50.0, sensitivity=5, **ONE), 30),
    ]
    for delta in (1e-3, 1e-6):
        assert tight(ours, delta=delta) == pytest.approx(
            theirs.get_epsilon_for_delta(delta), abs=2e-4
        )


def test_truncated_tails_above_delta_have_no_epsilon():
    assert tight([(truncated(10, 0.1, mass=1e-5), 10)], delta=1e-6) == math.inf


def test_infinite_losses_are_never_lost_to_rounding():
    # A tail mass near 1e-16 is of the size of rounding errors of δ(ε).
    small = accounting.TruncatedLaplace(sensitivity=5, epsilon=1.7, delta=1e-16, **ONE)
    assert small.infinite_loss > 7e-17
    assert tight([(small, 1)], delta=1e-20) == math.inf
    assert tight([(small, 10_000)], delta=3e-13) == math.inf
    assert tight([(small, 10_000)], delta=1e-12) < math.inf
    tiny = accounting.TruncatedLaplace(
        sensitivity=47, epsilon=2.9408581316428024, delta=1.1538493358365684e-17, **ONE
    )
    assert tight([(tiny, 10**6)], delta=1e-10) < math.inf


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_numpy_numbers_count_as_what_they_are(kind):
    odd, plain = kind(0.3), float(kind(0.3))
    for make in (
        lambda x: accounting.TruncatedLaplace(sensitivity=3, epsilon=x, delta=1e-9, **ONE),
        lambda x: accounting.Gaussian(sigma=x, sensitivity=x, **ONE),
        lambda x: accounting.Laplace(scale=x, sensitivity=x, **ONE),
        lambda x: accounting.DiscreteLaplace(scale=2 * x, sensitivity=1, **ONE),
    ):
        assert make(odd) == make(plain)
        assert tight([(make(odd), 5)], delta=1e-6) == tight([(make(plain), 5)], delta=1e-6)


@pytest.mark.parametrize("delta", [1e-14, 1e-12, 0.1, 0.3934693402873665])
@pytest.mark.parametrize("count", [1, 2, 3, 5, 10])
def test_pure_mechanisms_never_cost_more_than_their_sum(count, delta):
    for mechanism in (
        accounting.DiscreteLaplace(scale=2.711687393018587, sensitivity=7, **ONE),
        accounting.Laplace(scale=1 / 300, sensitivity=1.0, **ONE),
        accounting.Laplace(scale=1.0, sensitivity=1.0, **ONE),
    ):
        assert tight([(mechanism, count)], delta=delta) <= count * mechanism.spread


def test_a_gaussian_alone_at_any_delta():
    assert tight([(gaussian(1.0), 1)], delta=1e-60) == gaussian_epsilon(sigma=1.0, delta=1e-60)
    assert gaussian_epsilon(sigma=4e8, delta=6e-12) > 0


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: gaussian(1e-200), "sensitivity/sigma="),
        (lambda: gaussian(1e200), "sensitivity/sigma="),
        (lambda: accounting.Laplace(scale=1e-6, sensitivity=1.0, **ONE), "sensitivity/scale="),
        (
            lambda: accounting.DiscreteLaplace(scale=0.5, sensitivity=1000, **ONE),
            "sensitivity/scale=",
        ),
        (lambda: truncated(1, 800.0, 800), "epsilon="),
    ],
)
def test_noise_that_protects_nobody_or_adds_nothing_is_refused(make, name):
    with pytest.raises(InvalidInput, match=name):
        make()


def test_tight_is_never_worse_than_basic():
    for count in (1, 2, 10, 100):
        each = truncated(count, 0.05)
        assert tight([(each, count)], delta=1e-6) <= 0.05 * count * (1 + 1e-9)


def test_relations_never_mix():
    other = accounting.Gaussian(sigma=1.0, sensitivity=1.0, neighbours="add_remove")
    with pytest.raises(InvalidInput, match="add_remove and replace"):
        tight([(gaussian(1.0), 1), (other, 1)], delta=1e-6)
    with pytest.raises(InvalidInput, match="add_remove and replace"):
        accounting.basic([(Privacy(1, 0, "replace"), 1), (Privacy(1, 0, "add_remove"), 1)])
    with pytest.raises(InvalidInput, match="neighbours"):
        calibrate([(gaussian(1.0), 1)], target=Privacy(1, 1e-6, "add_remove"))


@pytest.mark.parametrize("count", [0, -1, 1.5, None, float("nan")])
def test_a_bad_count_is_named(count):
    with pytest.raises(InvalidInput, match="count="):
        tight([(gaussian(1.0), count)], delta=1e-6)
    with pytest.raises(InvalidInput, match="count="):
        accounting.advanced(Privacy(1, 0, "replace"), count, delta_prime=1e-6)
    with pytest.raises(InvalidInput, match="count="):
        accounting.basic([(Privacy(1, 0, "replace"), count)])


@pytest.mark.parametrize("delta", [0, 1, -1, float("nan"), None])
def test_a_bad_delta_is_named(delta):
    with pytest.raises(InvalidInput, match="delta="):
        tight([(gaussian(1.0), 1)], delta=delta)
    with pytest.raises(InvalidInput, match="delta_prime="):
        accounting.advanced(Privacy(1, 0, "replace"), 2, delta_prime=delta)


def test_nothing_to_compose_and_no_mechanism_are_refused():
    with pytest.raises(InvalidInput, match="got none"):
        tight([], delta=1e-6)
    for wrong in ([gaussian(1.0)], gaussian(1.0), (gaussian(1.0), 3), {gaussian(1.0): 3}, None):
        with pytest.raises(InvalidInput, match="mechanisms="):
            tight(wrong, delta=1e-6)
    with pytest.raises(InvalidInput, match="mechanisms="):
        tight([(Privacy(1, 0, "replace"), 1)], delta=1e-6)
    with pytest.raises(InvalidInput, match="parts="):
        accounting.basic([(gaussian(1.0), 2)])
    with pytest.raises(InvalidInput, match="part="):
        accounting.advanced(gaussian(1.0), 2, delta_prime=1e-6)
    with pytest.raises(InvalidInput, match="privacy="):
        accounting.with_sampler_error(1.0, 1e-9)
    with pytest.raises(InvalidInput, match="target="):
        calibrate([(gaussian(1.0), 2)], target=(1, 1e-6))


def test_pairs_may_come_from_any_iterable():
    pairs = [(gaussian(3.0), 4), (gaussian(5.0), 1)]
    assert tight(iter(pairs), delta=1e-6) == tight(pairs, delta=1e-6)


def test_sampler_error_is_charged_to_delta():
    left = accounting.with_sampler_error(Privacy(1.0, 1e-6, "replace"), 1e-9)
    assert left.delta == pytest.approx(1e-6 + (1 + math.e) * 1e-9)
    assert left.epsilon == 1.0


def test_calibrate_finds_the_analytic_gaussian():
    [(mechanism, count)] = calibrate([(gaussian(17.0), 9)], target=Privacy(1, 1e-6, "replace"))
    assert count == 9
    assert mechanism.sigma / 3 == pytest.approx(gaussian_sigma(epsilon=1.0, delta=1e-6), rel=1e-5)


@pytest.mark.parametrize(
    "pairs",
    [
        [(truncated(300, 0.01), 300)],
        [(truncated(300, 0.3), 300)],
        [(accounting.Laplace(scale=1.0, sensitivity=1.0, **ONE), 40)],
        [(accounting.DiscreteLaplace(scale=50.0, sensitivity=9, **ONE), 40), (gaussian(9.0), 2)],
    ],
    ids=["too much noise", "too little noise", "laplace", "mixture"],
)
def test_calibrate_spends_the_target_and_no_more(pairs):
    target = Privacy(1.0, 1e-6, "replace")
    found = calibrate(pairs, target=target)
    assert [count for _, count in found] == [count for _, count in pairs]
    assert 0.9999 * target.epsilon < tight(found, delta=target.delta) <= target.epsilon
    factors = [old.spread / new.spread for (old, _), (new, _) in zip(pairs, found, strict=True)]
    assert max(factors) == pytest.approx(min(factors))


def test_calibrate_stops_at_the_smallest_scale_of_the_lattice():
    law = accounting.DiscreteLaplace(scale=50.0, sensitivity=1, **ONE)
    [(found, _)] = calibrate([(law, 1)], target=Privacy(30.0, 1e-6, "replace"))
    assert found.scale == pytest.approx(0.5, rel=1e-9)
    law = accounting.TruncatedLaplace(sensitivity=1, epsilon=0.1, delta=1e-8, **ONE)
    [(found, _)] = calibrate([(law, 1)], target=Privacy(30.0, 1e-6, "replace"))
    assert found.epsilon == pytest.approx(2.0, rel=1e-9)


def test_calibrate_says_when_no_noise_is_enough():
    for mass in (1.1e-6, 1e-5):
        with pytest.raises(BudgetExceeded, match="truncated tails"):
            calibrate([(truncated(10, 0.1, mass=mass), 10)], target=Privacy(1, 1e-6, "replace"))
    # The law's own tail is smaller than its δ, but grows with the noise.
    law = accounting.TruncatedLaplace(sensitivity=1, epsilon=1.0, delta=1e-6, **ONE)
    with pytest.raises(BudgetExceeded, match="truncated tails"):
        calibrate([(law, 100)], target=Privacy(1.0, 101 * law.infinite_loss, "replace"))
    with pytest.raises(BudgetExceeded, match=r"mechanisms, 1\.001e-06 together.*delta=1e-06\."):
        calibrate([(truncated(1, 0.1, mass=1.0000001e-6), 1)], target=Privacy(1, 1e-6, "replace"))
    with pytest.raises(InvalidInput, match=r"target\.epsilon"):
        calibrate([(gaussian(1.0), 1)], target=Privacy(0, 1e-6, "replace"))
    with pytest.raises(InvalidInput, match=r"target\.delta"):
        calibrate([(gaussian(1.0), 1)], target=Privacy(1, 0, "replace"))


HUGE = """
import json, math, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, 4 * 2**30))
from discreet import Privacy, accounting
one, found = {"neighbours": "replace"}, []
for count in (10**9, 10**12, 10**15):
    spread = count ** -0.5
    units = max(1, round(2**34 * spread))   # a lattice with room for so much noise
    gaussian = (accounting.Gaussian(sigma=1 / spread, sensitivity=1.0, **one), count)
    laplace = (accounting.Laplace(scale=1 / spread, sensitivity=1.0, **one), count)
    discrete = (
        accounting.DiscreteLaplace(scale=units / spread, sensitivity=units, **one), count
    )
    truncated = (
        accounting.TruncatedLaplace(
            sensitivity=units, epsilon=spread, delta=1e-9 / count, **one
        ),
        count,
    )
    single = (accounting.Gaussian(sigma=1.0, sensitivity=1.0, **one), 1)
    for pairs in (
        [gaussian], [laplace], [discrete], [truncated], [gaussian, laplace],
        [single, laplace], [discrete, truncated], [gaussian, laplace, discrete, truncated],
    ):
        noise = accounting.calibrate(pairs, target=Privacy(4.0, 1e-6, "replace"))
        found.append([
            sum(n * m.spread ** 2 for m, n in pairs),
            accounting.tight(pairs, delta=1e-6),
            sum(n * m.spread ** 2 for m, n in noise),
        ])
json.dump(found, sys.stdout)
"""


def test_any_count_has_an_answer_within_bounded_memory():
    """Up to 10^15 mechanisms in 4 GB, never below the truth of that many tiny losses: a Gaussian's.

    Losses of size s, n times, with n·s² fixed: a normal law in the limit, whatever the mechanism.
    """
    output = subprocess.run(
        [sys.executable, "-W", "error", "-c", HUGE],
        capture_output=True,
        check=True,
        text=True,
        timeout=300,
    ).stdout
    found = json.loads(output)
    assert len(found) == 24
    for squares, epsilon, squares_left in found:
        truth = gaussian_epsilon(sigma=1 / math.sqrt(squares), delta=1e-6)
        assert truth * (1 - 1e-3) < epsilon < 1.08 * truth
        sigma = gaussian_sigma(epsilon=4.0, delta=1e-6)
        assert (1 / (1.08 * sigma)) ** 2 < squares_left < (1.001 / sigma) ** 2


def test_the_size_is_known_before_anything_is_allocated(monkeypatch):
    """The grid of each part, before it is filled; and the transform, before it is made."""
    small, large = accounting.Laplace(scale=1e9, sensitivity=1.0, **ONE), gaussian(1.0)
    with monkeypatch.context() as patch:
        patch.setattr(loss, "_discretise", None)
        assert tight([(small, 10**12), (large, 1)], delta=1e-6) > 4
    with monkeypatch.context() as patch:
        patch.setattr(loss, "_convolve", None)
        assert tight([(small, 10**10)], delta=1e-6) > 0
        # Many kinds: each has a spectrum of its own.
        patch.setattr(loss, "_MOST_POINTS", 10**6)
        many = [(accounting.Laplace(scale=20.0 + i, sensitivity=1.0, **ONE), 1) for i in range(400)]
        assert tight(many, delta=1e-6) > 0.9


def test_gaussians_beyond_the_closed_form_still_have_an_epsilon():
    for count in (10**6 + 1, 10**12, 10**18):
        epsilon = tight([(gaussian(1.0), count)], delta=1e-6)
        assert count / 2 < epsilon < count / 2 + 6 * math.sqrt(count)
    assert tight([(gaussian(1.0), 10**6)], delta=1e-6) < tight(
        [(gaussian(1.0), 10**6 + 1)], delta=1e-6
    )


def test_counts_beyond_all_reason_are_named():
    for count in (10**18 + 1, 10**400):
        with pytest.raises(InvalidInput, match="count="):
            tight([(gaussian(1.0), count)], delta=1e-6)


def kinds(spread, count):
    """The four laws with one and the same spread; truncated tails of 1e-13 together."""
    return {
        "gaussian": accounting.Gaussian(sigma=1 / spread, sensitivity=1.0, **ONE),
        "laplace": accounting.Laplace(scale=1 / spread, sensitivity=1.0, **ONE),
        "discrete": accounting.DiscreteLaplace(scale=1000 / spread, sensitivity=1000, **ONE),
        "truncated": accounting.TruncatedLaplace(
            sensitivity=1000, epsilon=spread, delta=1e-13 / count, **ONE
        ),
    }


@pytest.mark.parametrize("kind", kinds(1.0, 1))
@settings(max_examples=40, deadline=None)
@given(
    spread=st.floats(-4, 1).map(lambda power: 10**power), count=st.integers(1, 3000), delta=DELTAS
)
def test_the_closed_form_is_never_below_the_truth(kind, spread, count, delta):
    """The truth: exact for one and for Gaussians, else from the grid, less what that may add."""
    mechanism = kinds(spread, count)[kind]
    bound = concentrated_epsilon([(mechanism, count)], delta)
    assert concentrated_epsilon([(mechanism, 1)], delta) >= mechanism.epsilon_at(delta)
    if kind == "gaussian" and spread * math.sqrt(count) <= 1000:
        truth = gaussian_epsilon(sigma=1 / (spread * math.sqrt(count)), delta=delta)
        assert bound >= truth
    else:
        on_grid = loss.epsilon_on_grid([(mechanism, count)], delta)
        assert bound >= on_grid * (1 - 2e-3) - 1e-6


@pytest.mark.parametrize("kind", ["laplace", "discrete", "truncated"])
def test_many_small_losses_cost_a_few_percent_more_than_tight(kind):
    pairs = [(kinds(1e-3, 10**6)[kind], 10**6)]
    assert 1 < concentrated_epsilon(pairs, 1e-6) / tight(pairs, delta=1e-6) < 1.08


def test_the_closed_form_is_the_formula_at_its_best_order():
    """Against 40 digits, with the order found by a fine search of its own."""
    rho, delta = 0.5, 1e-6
    with mpmath.workdps(40):

        def at(theta):
            theta = mpmath.mpf(theta)
            constant = theta * mpmath.log(theta) - (1 + theta) * mpmath.log(1 + theta)
            return (1 + theta) * rho + (mpmath.log(1 / mpmath.mpf(delta)) + constant) / theta

        best = float(min(at(1 + i / 1000) for i in range(10_000)))
    found = concentrated_epsilon([(kinds(1e-3, 10**6)["laplace"], 10**6)], delta)
    assert found == pytest.approx(best, rel=1e-5)
    assert found >= best * (1 - 1e-9)


def test_truncated_tails_are_charged_and_decide():
    mechanism = accounting.TruncatedLaplace(sensitivity=1000, epsilon=1e-3, delta=1e-9, **ONE)
    tails = -math.expm1(500 * math.log1p(-mechanism.infinite_loss))
    assert concentrated_epsilon([(mechanism, 500)], tails) == math.inf
    assert concentrated_epsilon([(mechanism, 500)], tails / 2) == math.inf
    laplace = accounting.Laplace(scale=1e3, sensitivity=1.0, **ONE)
    assert concentrated_epsilon([(mechanism, 500)], 1e-6) == pytest.approx(
        concentrated_epsilon([(laplace, 500)], 1e-6 - tails), rel=1e-9
    )


def test_bounded_losses_never_cost_more_than_their_sum():
    laplace = accounting.Laplace(scale=0.1, sensitivity=1.0, **ONE)
    assert concentrated_epsilon([(laplace, 3)], 1e-6) == 30.0
    gaussian = accounting.Gaussian(sigma=0.1, sensitivity=1.0, **ONE)
    mixed = concentrated_epsilon([(laplace, 3), (gaussian, 1)], 1e-6)
    assert mixed > 30.0 + 50.0  # no such cap where a loss has no bound


@given(spread=st.floats(1e-6, 10), count=st.integers(1, 10**15), delta=DELTAS)
def test_one_more_is_never_cheaper_and_a_larger_delta_never_dearer(spread, count, delta):
    laplace = accounting.Laplace(scale=1 / spread, sensitivity=1.0, **ONE)
    here = concentrated_epsilon([(laplace, count)], delta)
    assert here <= concentrated_epsilon([(laplace, count + 1)], delta)
    assert here <= concentrated_epsilon([(laplace, count)], delta / 2)


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12])
@pytest.mark.parametrize("rho", [0.01, 0.1, 0.5, 50.0])
def test_the_closed_form_is_rounded_to_the_private_side(rho, delta):
    """In 40 digits, at the θ that gives the least; a margin of one part in 10^11 is the most."""
    mechanism = accounting.Gaussian(sigma=1 / math.sqrt(2 * rho), sensitivity=1.0, **ONE)
    found = concentrated_epsilon([(mechanism, 1)], delta)
    with mpmath.workdps(40):
        exact_rho = mpmath.mpf(mechanism.spread) ** 2 / 2

        def at(theta):
            theta = mpmath.mpf(theta)
            constant = theta * mpmath.log1p(1 / theta) + mpmath.log1p(theta)
            return (1 + theta) * exact_rho + (-mpmath.log(delta) - constant) / theta

        grid = np.exp2(np.arange(-8, 12, 1 / 64))
        exact = min(at(float(theta)) for theta in grid)
        assert exact <= found <= exact * (1 + mpmath.mpf(10) ** -11)
