"""Why the convolution is ours: a plain FFT loses small δ at large counts, and can err downwards."""

import math

from dp_accounting.pld import privacy_loss_distribution as peer

from discreet.accounting import Gaussian, gaussian_epsilon
from discreet.accounting.compose import composed_epsilon

COUNT, DELTA = 100_000, 1e-12


def test_a_plain_fft_reports_too_small_an_epsilon_and_ours_does_not():
    sigma = math.sqrt(COUNT)
    truth = gaussian_epsilon(sigma=1.0, delta=DELTA)  # what the hundred thousand are together
    plain = (
        peer.from_gaussian_mechanism(
            sigma, value_discretization_interval=1 / sigma / 32, use_connect_dots=True
        )
        .self_compose(COUNT)
        .get_epsilon_for_delta(DELTA)
    )
    assert plain < truth - 0.05  # although every single loss was rounded upwards
    mechanism = Gaussian(sigma=sigma, sensitivity=1.0, neighbours="replace")
    assert 0 <= composed_epsilon([(mechanism, COUNT)], DELTA) - truth < 3e-4
